"""The started window on the usual screens, in both themes, with usual and large text.

Large text is napari's own setting (14 points for 9) and a desktop's scale of 150 %, on the
largest screen of 200 % (`QT_FONT_DPI`; on the others less than 1024 x 600 would be left).
In each state the mask is seen, no text is cut and every control can be clicked. By day test_frame
asks the same of the page on screen, and test_window_story of all pages in a window.
"""

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from program import count_colour, wait_until

pytestmark = pytest.mark.door

REFERENCE, PREDICTION, REFINED = "#56B4E9", "#E69F00", "#009E73"
ROOTS = ("mamamia_dock", "results_panel", "case_line")
LAYOUT = (Path(__file__).parent / "layout.py").read_text()
PANEL = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
from qtpy.QtWidgets import QAbstractButton, QWidget
panel = dock_of(napari.current_viewer())
"""
SCROLL = """
from qtpy.QtWidgets import QScrollArea
panel.findChild(QScrollArea, {0!r}).ensureWidgetVisible(panel.findChild(QWidget, {1!r}))
result = True
"""
FILLED = """
viewer = napari.current_viewer()
canvas, extent = viewer.window._qt_viewer.canvas.native, viewer.layers.extent.world
height, width = (extent[1] - extent[0])[-2:]
result = viewer.camera.zoom * max(height / canvas.height(), width / canvas.width())
"""
"""How much of its room the slice takes, in the direction in which it takes more."""
GAPS = """
from napari_mamamia.core.answers import Answer, Place
from napari_mamamia.core.form import FieldScope
for number in "123":
    answer = Answer("finding", ("mass",), Place(FieldScope.LESION, number))
    panel.findings_page.form.give(answer)
"""
"""What is missing of three lesions, and two that nobody drew."""
SIZES = ((1280, 720), (1400, 900), (1920, 1080))
THEMES = ("dark", "light")
FONTS = ("usual", "setting", "scale")
DOUBLE = tuple(product(SIZES[2:], THEMES, ("double",)))
ALL = (*product(SIZES, THEMES, FONTS), *DOUBLE)
SCALES = {"scale": "144", "double": "192"}
"""Of text, in dots per inch: 150 % and 200 % of the usual 96."""
PAGES = (
    "Cases",
    "Predict",
    "Refine",
    "Score",
    "View",
    "Findings",
    "Kinetics",
    "Batch",
    "Report",
    "Export",
    "Review",
)
WITHOUT_PICTURE = ("Cases", "Batch", "Import", "Keys")
"""Where the list has the picture's room, or something stands over it."""
STRIP_OPEN = "Refine, View open"
"""Five lines that the reader laid over the page: what comes next is below them for that long."""
TEXT_CONTRAST, MARK_CONTRAST = 4.5, 3.0  # WCAG 2.1, 1.4.3 and 1.4.11


def inside(program, code):
    """Run code in the started program, where `panel` is our dock."""
    return program.ask("evaluate", code=PANEL + code)


def faults(program):
    return program.ask("evaluate", code=f"{LAYOUT}\nresult = faults({json.dumps(ROOTS)})")


def unseen_next_steps(program):
    """Return the primary buttons that are not whole on the screen before anything is scrolled."""
    code = f"{LAYOUT}\nresult = unseen_next_steps({json.dumps(ROOTS)})"
    return program.ask("evaluate", code=code)


def press(program, name):
    """Click a control in the program's own thread: where it is, `faults` has looked at."""
    inside(program, f"panel.window().findChild(QAbstractButton, {name!r}).click()")


def pixels(program, colour):
    return count_colour(program.canvas_picture(), colour)


def see(program, colour, what):
    return wait_until(lambda: pixels(program, colour) > 30, f"{what} on the screen")


def luminance(rgb):
    part = np.asarray(rgb, float) / 255
    linear = np.where(part <= 0.03928, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(picture):
    """Return the greatest contrast of a picture's pixels against its commonest colour."""
    colours, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
    ground, others = luminance(colours[counts.argmax()]), luminance(colours)
    high, low = np.maximum(others, ground), np.minimum(others, ground)
    return float(((high + 0.05) / (low + 0.05)).max())


def picture_of(program, name, part=lambda width: slice(None)):
    x, y, width, height = program.widget(name)["rect"]
    return program.screen.picture()[y : y + height, x : x + width][:, part(width)]


def low_contrasts(program):
    """Return what of the header and the search field is too faint, shown and hidden."""
    found = {}
    chip = "header_mask_reference"
    for shown in ("shown", "hidden"):
        found[f"name of a {shown} mask"] = (
            contrast(picture_of(program, chip, lambda width: slice(width // 3, None))),
            TEXT_CONTRAST,
        )
        mark = contrast(picture_of(program, chip, lambda width: slice(0, width // 4)))
        found[f"square of a {shown} mask"] = (mark, MARK_CONTRAST)
        press(program, chip)
        wait_until(lambda s=shown: (pixels(program, REFERENCE) == 0) == (s == "shown"), "the chip")
    program.turn_to("Cases")
    field = contrast(picture_of(program, "cases_search", lambda width: slice(4, width - 4)))
    found["what the search field asks for"] = (field, TEXT_CONTRAST)
    return {what: value for what, (value, least) in found.items() if value < least}


def ring_contrast(program):
    """Return the contrast of the ring around the search field once it was clicked."""
    program.click("cases_search")
    program.widget("focus_ring", seconds=20)
    edge = picture_of(program, "focus_ring")
    return contrast(np.concatenate([edge[:1], edge[4:6]]))


def tick_contrast(program):
    """Return the contrast of a tick box that is not ticked."""
    program.turn_to("Export")
    wait_until(lambda: program.widgets(name="export_format_dicom_seg"), "the formats")
    inside(program, SCROLL.format("export_form", "export_format_dicom_seg"))
    wait_until(lambda: program.widget("export_format_dicom_seg")["hit"], "the box in sight")
    return contrast(picture_of(program, "export_format_dicom_seg", lambda _: slice(0, 14)))


def look(program, where, found, keep):
    """Add what stays cut or out of reach once the page has settled; keep a picture of it."""
    try:
        wait_until(lambda: not faults(program), where, 4)
    except AssertionError:
        found.update({f"{where}: {fault}": None for fault in faults(program)})
    if where != STRIP_OPEN:
        found.update({f"{where}: unseen {one}": None for one in unseen_next_steps(program)})
    keep(where)
    if where in WITHOUT_PICTURE:
        return
    picture, masks = program.canvas_picture(), (REFERENCE, PREDICTION, REFINED)
    filled = inside(program, FILLED)
    if not 0.9 < filled <= 1:
        found[f"{where}: the slice has {filled:.2f} of the picture's room"] = None
    if not any(count_colour(picture, one) for one in masks):
        found[f"{where}: no pixel of a mask"] = None


def holds(area, other):
    (x, y, width, height), (x2, y2, width2, height2) = area, other
    inside = x <= x2 and y <= y2 and x2 + width2 <= x + width and y2 + height2 <= y + height
    return inside and area != other


def jumps(program, root):
    """Return where Tab goes back up the page: to what lies above, or before it in its line."""
    stops = program.ask("evaluate", code=f"{LAYOUT}\nresult = tab_stops({root!r})")
    assert len(stops) > 5, stops
    found = []
    for (name, place, area), (after, place2, area2) in pairwise(stops):
        # what stands in one area is compared by itself, else the areas, but for one in the other
        (x, y, width, height), (x2, y2, _, height2) = (
            of if area == area2 or holds(around, other) else around
            for of, around, other in ((place, area, area2), (place2, area2, area))
        )
        above = y2 + height2 <= y and x2 < x + width
        before = x2 < x and min(y + height, y2 + height2) - max(y, y2) > min(height, height2) / 2
        if above or before:
            found.append(f"Tab goes from {name} back to {after}")
    return found


def walk(program, keep):
    """Go through all pages as a reader does; return what is cut or out of reach on the way."""
    found = {}
    for page in PAGES:
        program.turn_to(page)
        look(program, page, found, keep)
        found.update(dict.fromkeys(f"{page}: {one}" for one in jumps(program, "mamamia_dock")))
    found.update(dict.fromkeys(jumps(program, "case_line")))
    program.turn_to("Predict")
    press(program, "predict_start")
    see(program, PREDICTION, "the prediction")
    look(program, "Predict, done", found, keep)
    program.turn_to("Score")
    wait_until(lambda: "0." in program.widget("score_prediction_dsc")["text"], "the Dice")
    look(program, "Score, with numbers", found, keep)
    program.turn_to("Refine")
    press(program, "refine_from_prediction")
    look(program, "Refine, reader asked", found, keep)
    inside(program, "panel.header.reader_given.emit('Dr A. Long-Surname')")
    see(program, REFINED, "the refined mask")
    wait_until(lambda: program.widgets(name="refine_tool_smartpaint"), "the tools")
    inside(program, "[c.setText('130.4 mm') for c in panel.refine_page.numbers.cells.values()]")
    look(program, "Refine", found, keep)
    inside(program, GAPS)
    look(program, "Refine, findings missing", found, keep)
    press(program, "header_view")
    look(program, STRIP_OPEN, found, keep)
    press(program, "header_keys")
    look(program, "Keys", found, keep)
    inside(program, "panel.pages.show_import()")
    look(program, "Import", found, keep)
    return list(found)


@pytest.mark.night
@pytest.mark.parametrize(("size", "theme", "font"), ALL)
def test_masks_are_seen_nothing_is_cut_and_every_control_can_be_clicked(
    start, small_data_set, size, theme, font, picture_folder
):
    def keep(where):
        name = where.lower().replace(", ", "_").replace(" ", "_")
        program.screen.picture(picture_folder / f"{name}_{size[0]}_{theme}_{font}.png")

    more = {"NAPARI_APPEARANCE_THEME": theme}
    if font == "setting":
        more["NAPARI_APPEARANCE_FONT_SIZE"] = "14"
    if font in SCALES:
        more["QT_FONT_DPI"] = SCALES[font]
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=size, **more)
    program.wait_for_text("A_1")
    see(program, REFERENCE, "the reference")
    assert low_contrasts(program) == {}
    assert ring_contrast(program) >= MARK_CONTRAST
    assert walk(program, keep) == []
    assert tick_contrast(program) >= MARK_CONTRAST
