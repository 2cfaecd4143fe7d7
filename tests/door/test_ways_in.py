"""Every way into the window: each one draws the masks, the brush and the phases on the screen.

A drop is a Qt event sent to the started window: a drag between two windows by xdotool needs a
window manager and a file manager, which know nothing of ours.
"""

import numpy as np
import pytest
from program import close_by_keys, count_colour, wait_still, wait_until
from test_reading_mode import share_of_image
from test_screens import PAGES, unseen_next_steps

import dicom_phantoms as phantoms

pytestmark = pytest.mark.door

REFERENCE, PREDICTION, REFINED = "#56B4E9", "#E69F00", "#009E73"


def see(program, colour, what):
    wait_until(lambda: count_colour(program.canvas_picture(), colour) > 40, f"{what} on screen")


def change(program, do, what):
    """Wait until the image on the screen is another one after `do`."""
    wait_until(lambda: not program.widgets(name="header_progress"), "the end of all work")
    before = program.canvas_picture().astype(int)
    do()

    def is_other():
        now = program.canvas_picture()
        return now.shape == before.shape and np.abs(now - before).mean() > 0.05

    wait_until(is_other, what, 30)


def middle(program):
    x, y, width, height = program.canvas()
    return x + width // 2, y + height // 2


def test_mamamia_view_draws_every_mask_the_brush_circle_and_another_phase(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    program.wait_for_text("A_1")
    see(program, REFERENCE, "the reference")
    program.screen.xdotool("mousemove", *middle(program))
    change(program, lambda: program.screen.key("period"), "another phase")
    program.turn_to("Predict")
    program.click("predict_start")
    see(program, PREDICTION, "the prediction")
    program.turn_to("Refine")
    program.click("refine_from_prediction")
    program.click("header_reader_name")
    program.screen.xdotool("type", "Ana")
    program.click("header_reader_ok")
    see(program, REFINED, "the refined mask")
    program.click("refine_tool_sphere")
    assert circle_pixels(program) > 100
    assert share_of_image(program) > 0.45
    assert not program.widgets(**{"class": "QMenuBar"}), (
        "in reading mode, which is not told to napari"
    )
    assert close_by_keys(program) == 0, program.output
    settings = (program.folder / "napari" / "settings.yaml").read_bytes()
    assert b"window_size" in settings
    assert b"window_statusbar: false" not in settings


def circle_pixels(program):
    """Return how many pixels the brush draws beside its text, the mouse in the image's middle."""
    x, y = middle(program)
    left, top, _, _ = program.canvas()
    program.screen.xdotool("mousemove", left + 5, y)
    away = program.canvas_picture().astype(int)
    program.screen.xdotool("mousemove", x, y, "mousemove_relative", 1, 1)
    text = program.widget("brush_text")["rect"]

    def drawn():
        changed = np.abs(program.canvas_picture() - away).max(axis=2) > 40
        row, column = text[1] - top - 4, text[0] - left - 4
        changed[row : row + text[3] + 8, column : column + text[2] + 8] = False
        return int(changed.sum())

    return wait_until(lambda: drawn() > 100 and drawn(), "the brush circle", 20)


@pytest.mark.night
def test_the_menu_opens_the_dock_and_a_dropped_data_set_shows_its_masks(start, small_data_set):
    program = start("napari")
    program.screen.click(*menu_place(program, "Plugins"))
    for title in ("MAMA-MIA", "Cases"):
        program.screen.click(*menu_place(program, title))
    program.widget("step_bar")
    assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(small_data_set)])
    program.wait_for_text("3 cases")
    x, y, width, _ = program.wait_rect("cases_table")
    program.screen.click(x + width // 3, y + 50, times=2)
    see(program, REFERENCE, "the reference")
    for page in PAGES:  # napari's own window is lower than ours
        program.turn_to(page)
        wait_until(lambda: not unseen_next_steps(program), f"what comes next on {page}", 10)


def menu_place(program, title):
    """Return the middle of a menu's item that is open on the screen."""
    code = f"""
from qtpy.QtWidgets import QApplication, QMenu, QMenuBar
found = []
for kind in (QMenuBar, QMenu):
    for menu in [w for w in QApplication.allWidgets() if isinstance(w, kind) and w.isVisible()]:
        for action in menu.actions():
            if action.text().replace("&", "").startswith({title!r}):
                place = menu.mapToGlobal(menu.actionGeometry(action).center())
                found.append([place.x(), place.y()])
result = found
"""
    return wait_still(lambda: program.ask("evaluate", code=code), f"menu {title}")[-1]


@pytest.mark.night
def test_the_named_widget_takes_a_dropped_dicom_folder_to_an_open_case(start, tmp_path):
    study = tmp_path / "study"
    study.mkdir()
    for phase in range(3):
        phantoms.write_phase(study, phase, shape=(6, 32, 40), AcquisitionTime=f"10{phase:02d}00")
    program = start("napari", "-w", "napari-mamamia", "Cases", HOME=str(tmp_path))
    program.widget("step_bar")
    assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(study)])
    program.click("import_start")
    wait_until(lambda: program.canvas_picture().max() > 100, "the first phase")
    program.screen.xdotool("mousemove", *middle(program))
    change(program, lambda: program.screen.key("period"), "another phase")
