"""Tools of the mouse in `mamamia view`: what is armed is seen, and paints only what is seen."""

import nibabel as nib
import numpy as np
import pytest
from program import count_colour, wait_until

pytestmark = pytest.mark.door

ADD, ERASE, NOT_HERE = "#009E73", "#D55E00", "#E69F00"
SIGN = (slice(30, 80), slice(0, 380))
"""Where on the canvas the sign of a tool stands: below the phase (rows, columns)."""

VOXELS = """
import napari
layer = napari.current_viewer().layers["A_1 refined"]
result = int((layer.data > 0).sum())
"""


class Reader:
    """A reader at the started window, with mouse and keys."""

    def __init__(self, program):
        self.program, self.screen = program, program.screen

    @property
    def middle(self):
        """The middle of the picture, where there is one: the list of cases can fill the window."""
        x, y, width, height = self.program.canvas()
        return x + width // 2, y + height // 2

    def turn_to(self, page, shows):
        self.program.turn_to(page)
        self.program.widget(shows)

    def point(self, across=0, down=0):
        self.screen.xdotool("mousemove", self.middle[0] + across, self.middle[1] + down)

    def drag(self, button=1):
        x, y = self.middle
        self.screen.drag([(x + 60, y), (x + 75, y + 5), (x + 90, y + 10)], button)

    def voxels(self):
        return self.program.ask("evaluate", code=VOXELS)

    def texts(self, name):
        return [row["text"] for row in self.program.widgets(name=name)]

    def is_said(self, part):
        """Whether the head says something: in full, or the first words once a key was pressed."""
        names = ("header_refusal", "header_message_line")
        return any(part in text for name in names for text in self.texts(name))

    def wait_for(self, name, part):
        wait_until(lambda: any(part in text for text in self.texts(name)), f"{part} in {name}")

    def wait_for_sign(self, colour):
        wait_until(
            lambda: count_colour(self.program.canvas_picture()[SIGN], colour) > 40,
            f"a sign in {colour}",
        )

    def wait_for_no_sign(self):
        colours = (ADD, ERASE, NOT_HERE)
        wait_until(
            lambda: (
                not any(
                    count_colour(self.program.canvas_picture()[SIGN], colour) for colour in colours
                )
            ),
            "no sign",
        )


@pytest.fixture
def reader(start, small_data_set):
    """Ana with her own mask of A_1, an empty one, on page Refine."""
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    program.wait_for_text("A_1")
    wait_until(lambda: program.canvas_picture().max() > 100, "the first phase")
    made = Reader(program)
    made.turn_to("Refine", "refine_from_nothing")
    program.click("refine_from_nothing")
    program.click("header_reader_name")
    made.screen.xdotool("type", "Ana")
    made.screen.key("Return")
    wait_until(
        lambda: [w for w in program.widgets(name="refine_tool_smartpaint") if w["enabled"]],
        "SmartPaint",
    )
    return made


@pytest.mark.night
def test_a_tool_is_seen_paints_only_what_is_seen_and_goes_without_a_trace(reader, small_data_set):
    program, screen = reader.program, reader.screen
    bare = program.canvas_picture()

    program.click("refine_tool_sphere")
    reader.wait_for_sign(ADD)
    reader.point(60)
    reader.wait_for("brush_text", "+")

    # the cursor and the picture say what the right button does, while it does it
    x, y = reader.middle
    screen.xdotool("mousemove", x + 60, y, "mousedown", 3, "mousemove", x + 64, y)
    reader.wait_for("brush_text", "−")
    reader.wait_for_sign(ERASE)
    screen.xdotool("mouseup", 3)
    reader.wait_for("brush_text", "+")
    screen.key("w")
    reader.wait_for("brush_text", "−")
    screen.key("w")
    reader.wait_for_sign(ADD)
    assert reader.voxels() == 0

    # a MIP shows all slices: a drag on it would paint on a hidden one
    screen.key("i")
    wait_until(lambda: reader.is_said("MIP"), "why the tool does nothing on a MIP")
    reader.point(62)
    reader.wait_for("brush_text", "MIP")
    reader.wait_for_sign(NOT_HERE)
    reader.drag()
    reader.drag(button=3)
    assert reader.voxels() == 0
    screen.key("i")
    wait_until(lambda: not reader.is_said("MIP"), "the MIP's end")

    # on another page it is put down, and nothing of it stays on the canvas
    reader.turn_to("Score", "score_agreement")
    reader.wait_for_no_sign()
    assert reader.texts("brush_text") == []
    wait_until(
        lambda: np.array_equal(program.canvas_picture(), bare), "the canvas as before the tool"
    )
    reader.drag()  # moves the image
    assert reader.voxels() == 0

    # its key goes back to its page, in sight
    screen.key("q")
    program.widget("refine_tool_smartpaint")
    reader.wait_for_sign(ADD)
    program.click("refine_tool_sphere")
    wait_until(lambda: any(w["checked"] for w in program.widgets(name="refine_tool_sphere")), "it")
    reader.drag()
    wait_until(reader.voxels, "painted voxels")
    program.click("refine_save")
    reader.wait_for("header_saved", "saved ")
    files = list(small_data_set.parent.rglob("Ana/A_1.nii.gz"))
    # asked now: above, a busy window may still have had some of the stroke before it
    assert [int(np.asarray(nib.load(file).dataobj).sum()) for file in files] == [reader.voxels()]

    # the next case has neither sign nor text
    program.click("header_next")
    reader.wait_for("header_case", "A_2")
    reader.wait_for_no_sign()
    assert reader.texts("brush_text") == []
