"""Bad states of the reading room in the started program: each is told, and nothing is lost."""

import contextlib
import os
import signal

import pytest
from program import Program, Screen, close_by_keys, wait_until
from tests.conftest import write_small_data_set

pytestmark = [pytest.mark.door, pytest.mark.night, pytest.mark.timeout(900)]

RIGHTS = "-dac_override,-dac_read_search,-fowner"
PLAIN = ("setpriv", f"--bounding-set={RIGHTS}") if os.geteuid() == 0 else ()
"""What makes root obey the rights of files, as everybody else has to."""
DOCK = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
viewer = napari.current_viewer()
panel = dock_of(viewer)
"""
OPEN = (
    DOCK
    + """
case = panel and panel.session.case
result = bool(case and case.is_loaded) and case.case_id
"""
)
STEP = DOCK + "result = str(panel.hanging.step)"


def wait_for_case(program, case="A_1"):
    wait_until(lambda: program.ask("evaluate", code=OPEN) == case, f"{case} open")
    wait_until(lambda: program.canvas_picture().max() > 100, "its picture")


@contextlib.contextmanager
def read_only(*folders):
    """Take the right to write from folders with all that is in them, and give it back."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    modes = {path: path.stat().st_mode for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.fixture(scope="module")
def noted(scripts, tmp_path_factory):
    """napari's own settings as a window with its panels left them."""
    folder = tmp_path_factory.mktemp("noted")
    file = folder / "settings.yaml"
    data_set = write_small_data_set(folder / "data")
    command = [str(scripts / "mamamia"), "view", str(data_set), "--panels"]
    with Screen() as screen, Program(command, screen, folder, NAPARI_CONFIG=str(file)) as first:
        first.widget("cases_table")
        assert close_by_keys(first) == 0
    assert b"window_size" in file.read_bytes()
    return file.read_bytes()


@pytest.fixture
def settings(noted, tmp_path):
    """A file of napari's settings as such a window left it."""
    file = tmp_path / "napari settings" / "settings.yaml"
    file.parent.mkdir()
    file.write_bytes(noted)
    return file


def test_naparis_settings_are_read_only_and_the_mode_comes_and_goes(
    start, settings, small_data_set
):
    before = settings.read_bytes()
    command = ("mamamia", "view", small_data_set, "--case", "A_1")
    with read_only(settings.parent):
        program = start(*command, before=PLAIN, NAPARI_CONFIG=str(settings))
        wait_for_case(program)
        program.click("header_napari")
        program.widget("layer list")
        program.click("header_napari")
        wait_until(lambda: not program.widgets(name="layer list"), "napari's list away")
        program.screen.key("Next")
        wait_until(lambda: program.ask("evaluate", code=STEP) != "None", "a step")
    assert settings.read_bytes() == before
    assert "cannot be written: this window has a copy" in program.output


def test_killed_in_reading_mode_naparis_settings_are_those_of_before_and_the_next_start_is_normal(
    start, settings, small_data_set
):
    before = settings.read_bytes()
    command = ("mamamia", "view", small_data_set, "--case", "A_1")
    killed = start(*command, NAPARI_CONFIG=str(settings))
    wait_for_case(killed)
    assert not killed.widgets(name="layer list")
    killed.screen.key("Next")
    wait_until(lambda: killed.ask("evaluate", code=STEP) != "None", "a step")
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait(30)
    assert settings.read_bytes() == before

    after = start(*command, "--panels", NAPARI_CONFIG=str(settings))
    wait_for_case(after)
    for name in ("layer list", "layer controls"):
        after.widget(name)
    assert after.widgets(**{"class": "QMenuBar"})
