"""The started program on a screen of twice the usual density, as each Mac's is.

Qt counts in points there, of two pixels each: what a hand points at, what a ruler measures and
how thick a line is seen must be what they are on a usual screen.
"""

import numpy as np
import pytest
from program import count_colour, wait_still, wait_until
from test_screens import FILLED, REFERENCE, faults, inside, unseen_next_steps
from test_tools import Reader

from napari_mamamia.io.workspace.measurements import read_measurements

pytestmark = [pytest.mark.door, pytest.mark.night]

DENSITY, LENGTH, ACROSS, DOWN = 2, 240, 90, -50
DENSE = {"size": (2800, 1800), "QT_SCALE_FACTOR": str(DENSITY)}
CAMERA = """
camera = napari.current_viewer().scene.camera
result = [float(camera.zoom), *map(float, camera.center)]
"""
MIDDLE_OF_MASK = """
import numpy as np
layer = napari.current_viewer().layers["A_1 refined"]
found = np.argwhere(np.asarray(layer.data) > 0)
result = [len(found), *map(float, layer.data_to_world(found.mean(axis=0)))] if len(found) else []
"""


@pytest.fixture
def program(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", **DENSE)
    program.wait_for_text("A_1")
    wait_until(lambda: count_colour(program.canvas_picture(), REFERENCE) > 30, "the reference")
    return program


def camera_at_rest(program):
    return wait_still(lambda: inside(program, CAMERA), "the camera")


def test_hand_ruler_and_circle_meet_what_is_seen(program, small_data_set, picture_folder):
    workspace = small_data_set.with_name(f"{small_data_set.name}-workspace")
    reader = Reader(program)
    assert inside(program, "result = panel.devicePixelRatioF()") == DENSITY
    wait_until(lambda: not faults(program) and not unseen_next_steps(program), "all in reach", 9)
    assert 0.9 < inside(program, FILLED) <= 1

    # a ruler: pixels of the screen over the camera's points per mm and the pixels of a point
    program.turn_to("View")
    program.click("measure_fold")
    program.click("measure_ruler")
    x, y = reader.middle
    program.screen.drag([(x - LENGTH // 2, y), (x, y), (x + LENGTH // 2, y)])
    program.widget("header_reader_name")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    wait_until(lambda: read_measurements(workspace).items, "the record of what was drawn")
    (ruler,) = read_measurements(workspace).items
    zoom, *_ = camera_at_rest(program)
    expected_mm = LENGTH / DENSITY / zoom
    ends = np.asarray(ruler.points_mm, float)
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(expected_mm, rel=0.02)
    program.screen.key("Escape")

    # a sphere: it is where the pointer was, and as large as its circle
    reader.turn_to("Refine", "refine_from_nothing")
    program.click("refine_from_nothing")
    wait_until(lambda: [w for w in program.widgets(name="refine_tool_sphere") if w["enabled"]], "")
    program.click("refine_tool_sphere")
    x, y = reader.middle
    program.screen.xdotool("mousemove", x + ACROSS, y + DOWN)
    reader.wait_for("brush_text", "+")
    zoom, *centre = camera_at_rest(program)
    program.screen.picture(picture_folder / "dense_circle.png")
    program.screen.xdotool("mousedown", 1, "mouseup", 1)
    n, *place = wait_until(lambda: inside(program, MIDDLE_OF_MASK), "the sphere")
    down, across = place[-2] - centre[-2], place[-1] - centre[-1]
    assert across * zoom * DENSITY == pytest.approx(ACROSS, abs=zoom * DENSITY)
    assert down * zoom * DENSITY == pytest.approx(DOWN, abs=zoom * DENSITY)
    program.screen.picture(picture_folder / "dense_sphere.png")
    assert n > 0
