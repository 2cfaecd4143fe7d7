"""Reading mode from the command: the image has the room, napari's settings stay as they were.

By day test_ways_in measures the room of the image, and reads the settings that a window left.
"""

import pytest
from program import close_by_keys, wait_until

pytestmark = pytest.mark.door


def ready(program):
    program.widget("mamamia_dock")
    wait_until(lambda: program.widgets(name="header_case", text="A_1"), "the case")
    return program


def share_of_image(program):
    _, _, width, height = program.canvas()
    screen = program.screen.size
    return width * height / (screen[0] * screen[1])


@pytest.mark.night
def test_the_image_has_most_of_a_small_screen_and_napari_is_a_click_away(start, small_data_set):
    program = start("mamamia", "view", small_data_set, size=(1280, 720))
    program.widget("cases_table")
    welcome = {"class": "QtWelcomeWidget"}  # napari's, out of sight in the mode and back after it
    wait_until(lambda: not program.widgets(**welcome), "the welcome gone")
    program.click("header_napari")
    wait_until(lambda: program.widgets(**welcome), "the welcome back")
    program.click("header_napari")
    wait_until(lambda: not program.widgets(**welcome), "the welcome gone again")
    wait_until(lambda: program.widget("cases_table")["rect"][2] > 1000, "the list's room")
    x, y, width, _ = program.wait_rect("cases_table")
    program.screen.click(x + width // 3, y + 34, times=2)
    ready(program)
    # 22 % of this screen before there was a reading mode (facts of the reading room).
    wait_until(lambda: share_of_image(program) > 0.45, "the room of the image")
    assert not program.widgets(**{"class": "QMenuBar"})
    program.click("header_napari")
    wait_until(lambda: program.widgets(name="layer list"), "napari's list of layers")
    assert share_of_image(program) < 0.40
    program.click("header_napari")
    wait_until(lambda: share_of_image(program) > 0.45, "the room of the image again")


@pytest.fixture
def run(start, small_data_set, tmp_path):
    """Return a function that starts, perhaps leaves the mode, closes; it returns the settings.

    It closes by napari's own keys, which work while its menu is hidden, too.
    """
    settings = tmp_path / "napari.yaml"

    def run(*words, leave=False):
        command = ("mamamia", "view", small_data_set, "--case", "A_1", *words)
        program = ready(start(*command, NAPARI_CONFIG=str(settings)))
        if leave:
            program.click("header_napari")
        assert close_by_keys(program) == 0
        return settings.read_bytes()

    run.settings = settings
    return run


@pytest.mark.night
def test_naparis_settings_are_byte_for_byte_those_of_before(run):
    before = run("--panels")
    assert b"window_size" in before
    assert run() == before


@pytest.mark.night
def test_settings_stay_where_the_mode_was_left_and_none_are_made_up(run):
    before = run("--panels")
    assert run(leave=True) == before
    run.settings.unlink()
    assert b"window_statusbar: false" not in run()
