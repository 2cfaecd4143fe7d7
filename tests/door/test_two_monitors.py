"""The started program where two monitors stand side by side, and where one was taken away."""

import pytest
from program import close_by_keys, wait_until
from test_bad_states import wait_for_case
from test_screens import FILLED, faults, inside

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
