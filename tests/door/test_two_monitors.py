"""The started program where two monitors stand side by side, and where one was taken away."""

import numpy as np
import pytest
from program import close_by_keys, wait_until
from test_bad_states import wait_for_case
from test_screens import FILLED, REFERENCE, faults, inside

pytestmark = [pytest.mark.door, pytest.mark.night]

MONITORS = ((1920, 1080), (1280, 720))
BOTH = {"size": (3200, 1080), "monitors": MONITORS}
FIRST, SECOND = (0, 0, 1920, 1080), (1920, 0, 1280, 720)
FRAME = "window = panel.window(); result = list(window.frameGeometry().getRect())"
SCREENS = (
    "result = [list(one.geometry().getRect()) for one in panel.window().screen().virtualSiblings()]"
)
MOVE = """
from qtpy.QtWidgets import QApplication
for width in (1120, 1110, 1100):  # napari 0.9 notes where a window stood one change of size before
    panel.window().setGeometry(2000, 40, width, 640)
    QApplication.processEvents()
result = True
"""


def is_within(monitor, frame):
    (x, y, width, height), (left, top, wide, high) = monitor, frame
    return x <= left and y <= top and left + wide <= x + width and top + high <= y + height


def stands_on(program, monitor):
    """Wait until the window is wholly on a monitor, nothing of it cut and the slice in its room."""
    wait_until(lambda: is_within(monitor, inside(program, FRAME)), f"the window on {monitor}", 9)
    wait_until(lambda: not faults(program), "nothing cut, every control within reach", 9)
    wait_until(lambda: 0.7 < inside(program, FILLED) <= 1, "the slice has the picture's room", 9)


def view(start, data_set, settings, **screen):
    words = ("mamamia", "view", data_set, "--case", "A_1")
    program = start(*words, NAPARI_CONFIG=str(settings), **screen)
    wait_for_case(program)
    return program


def test_a_window_stays_within_the_monitor_that_it_is_on(start, small_data_set, tmp_path):
    program = view(start, small_data_set, tmp_path / "settings.yaml", **BOTH)
    assert sorted(inside(program, SCREENS)) == [list(FIRST), list(SECOND)]
    stands_on(program, FIRST)

    inside(program, MOVE)
    stands_on(program, SECOND)
    program.screen.key("Next")
    program.widget("line_mip")
    wait_until(lambda: is_within(SECOND, inside(program, FRAME)), "on the second still")
    for _ in range(2):
        program.click("header_napari")
        wait_until(lambda: is_within(SECOND, inside(program, FRAME)), "with ☰ too", 9)
    program.screen.key("F9")
    program.widget("panel_show")
    program.screen.key("F9")
    program.widget("mamamia_dock")
    stands_on(program, SECOND)
    assert close_by_keys(program) == 0


def test_a_monitor_that_is_gone_keeps_no_window(start, small_data_set, tmp_path):
    settings = tmp_path / "settings.yaml"
    first = view(start, small_data_set, settings, **BOTH)
    first.click("header_napari")  # napari notes where its window stands with its panels alone
    first.widget("layer list")
    inside(first, MOVE)
    assert close_by_keys(first) == 0
    assert "window_position" in settings.read_text()

    again = view(start, small_data_set, settings, **BOTH)
    stands_on(again, SECOND)
    assert close_by_keys(again) == 0

    alone = view(start, small_data_set, settings, size=MONITORS[0])
    stands_on(alone, FIRST)
    assert close_by_keys(alone) == 0


def line_width(program):
    """Return how thick the reference's line is seen where it is upright: pixels, the commonest."""
    picture = program.canvas_picture().astype(int)
    rgb = np.array([int(REFERENCE[k : k + 2], 16) for k in (1, 3, 5)])
    hit = (np.abs(picture - rgb) <= 30).all(axis=2)
    across = hit[hit.shape[0] // 2 - 40 : hit.shape[0] // 2 + 40]  # the upright sides
    edges = np.diff(np.pad(across.astype(int), ((0, 0), (1, 1))))
    widths = [
        end - begin
        for row in edges
        for begin, end in zip(np.flatnonzero(row == 1), np.flatnonzero(row == -1), strict=True)
    ]
    return int(np.bincount(widths).argmax()) if widths else 0


def test_a_line_keeps_its_width_on_a_monitor_of_twice_the_density(
    start, small_data_set, tmp_path, picture_folder
):
    dense, usual = (0, 0, 1280, 720), (2560, 0, 1400, 900)
    screen = {"size": (3960, 1440), "monitors": ((2560, 1440), (1400, 900))}
    program = view(
        start, small_data_set, tmp_path / "settings.yaml", QT_SCREEN_SCALE_FACTORS="2;1", **screen
    )
    assert sorted(inside(program, SCREENS)) == [list(dense), list(usual)]
    stands_on(program, dense)
    # its edges are mixed with what lies beside it
    wait_until(lambda: line_width(program) in (3, 4), "two points of two pixels", 20)

    inside(program, MOVE.replace("2000", "2640"))
    stands_on(program, usual)
    wait_until(lambda: line_width(program) in (1, 2), "two points of a pixel", 20)
    program.screen.picture(picture_folder / "two_densities.png")
    assert close_by_keys(program) == 0
