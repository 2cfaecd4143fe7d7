"""Reading mode while real work runs: it is seen and can be stopped, and napari gets all back.

Predict all of a data set, and the import of ISPY1_1002 (465 real DICOM files), in the started
program on a low screen with large text, where what is given back at closing needs more room than
the window has. What is held: progress and cancel are in sight in every state of the window, nothing
is left of what was cancelled, and napari's settings are byte for byte those of before. By day
test_window_import and tests/widgets/test_predicting.py hold progress and cancel, test_frame that
the panels come back.
"""

import shutil
import zipfile

import pytest
from program import ACTIVATE, Program, Screen, close_by_keys, wait_until
from tests.conftest import write_small_data_set

pytestmark = [
    pytest.mark.door,
    pytest.mark.real,
    pytest.mark.night,
    pytest.mark.timeout(1800),
]
LOW = (1280, 720)
LARGE = {"QT_FONT_DPI": "144"}
DOCK = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
viewer = napari.current_viewer()
panel = dock_of(viewer)
window = viewer.window._qt_window
"""
OPEN = (
    DOCK
    + """
case = panel and panel.session.case
result = bool(case and case.is_loaded) and case.case_id
"""
)
IDLE = DOCK + "result = panel.jobs.wait(0) and not panel.planes.is_building"
WIDTH = DOCK + "result = round(window.width() * window.devicePixelRatioF())"
PICTURE = DOCK + "result = window.centralWidget().height()"
FOUND = DOCK + "result = panel.import_page.state.value"


@pytest.fixture(scope="module")
def exam(tmp_path_factory, real_data):
    folder = tmp_path_factory.mktemp("exam")
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(folder)
    return folder / "ISPY1_1002"


@pytest.fixture
def settings(scripts, tmp_path):
    """napari's own settings as a window with its panels left them, on the same screen."""
    folder = tmp_path / "noted"
    folder.mkdir()
    file = folder / "settings.yaml"
    data_set = write_small_data_set(folder / "data")
    command = [str(scripts / "mamamia"), "view", str(data_set), "--panels"]
    with (
        Screen(*LOW) as screen,
        Program(command, screen, folder, NAPARI_CONFIG=str(file), **LARGE) as first,
    ):
        first.widget("cases_table")
        assert close_by_keys(first) == 0
    assert b"window_size" in file.read_bytes()
    return file


def wait_idle(program):
    wait_until(lambda: program.ask("evaluate", code=IDLE), "all work done", 600)


def hold_work_in_sight(program):
    """Wait for progress and its cancel, seen whole."""
    for name in ("header_progress", "header_cancel"):
        row = program.widget(name)
        assert row["visible_rect"] == row["rect"], row
    return row


def start_work(program, name, lane):
    """Press a button; its work is held at its first step until the test has looked at it."""
    held = f"""
import threading
from napari_mamamia.core import progress
gate = threading.Event()
panel._gate = gate
real = panel.jobs.start
def start(lane, title, work, *more, **given):
    def waits():
        if {lane!r} in lane:
            gate.wait(300)
        return work()
    return real(lane, title, waits, *more, **given)
panel.jobs.start = start
result = True
"""
    program.ask("evaluate", code=DOCK + held)
    program.click(name)


def let_go(program):
    program.ask("evaluate", code=DOCK + "panel._gate.set(); del panel.jobs.start; result = True")


def come_and_go(program):
    """Go through what a reader does with the window meanwhile: work comes back to sight."""
    program.screen.key("F11")
    wait_until(lambda: not program.widgets(name="mamamia_dock"), "the picture alone")
    program.screen.key("Escape")
    hold_work_in_sight(program)
    program.click("header_napari")
    wait_until(lambda: program.widgets(**{"class": "QMenuBar"}), "napari's menu")
    # its lists have no room beside the picture of this screen, and are put away
    wait_until(lambda: program.ask("evaluate", code=WIDTH) <= LOW[0], "the window in its screen")
    hold_work_in_sight(program)
    program.click("header_napari")
    wait_until(lambda: not program.widgets(**{"class": "QMenuBar"}), "the menu away")
    hold_work_in_sight(program)


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_work_runs_in_reading_mode_and_naparis_settings_stay_on_a_low_screen(
    start, settings, exam, small_data_set, picture_folder
):
    before = settings.read_bytes()
    data_set = small_data_set.with_name("mine")
    shutil.copytree(small_data_set, data_set)
    program = start(
        *("mamamia", "view", data_set, "--case", "A_1"),
        size=LOW,
        NAPARI_CONFIG=str(settings),
        **LARGE,
    )
    wait_until(lambda: program.ask("evaluate", code=OPEN) == "A_1", "A_1 open")
    wait_idle(program)
    program.ask("evaluate", code=ACTIVATE)

    program.screen.key("F1")
    start_work(program, "cases_predict_all", "predict")
    program.screen.key("F2")
    hold_work_in_sight(program)
    program.screen.picture(picture_folder / "job_predict_all.png")
    come_and_go(program)
    let_go(program)
    wait_idle(program)
    workspace = data_set.with_name("mine-workspace")
    assert len(list((workspace / "predictions").rglob("*.nii.gz"))) > 1

    given = files_of(data_set)
    assert program.ask("drop", name="CanvasBackendDesktop", paths=[str(exam)])
    wait_until(lambda: program.ask("evaluate", code=FOUND) == "found", "the study", 300)
    wait_idle(program)
    assert program.ask("evaluate", code=PICTURE) > 100, "the picture beside the import"
    start_work(program, "import_start", "import run")
    hold_work_in_sight(program)
    program.screen.picture(picture_folder / "job_import.png")
    come_and_go(program)
    program.click("header_cancel")
    let_go(program)
    wait_idle(program)
    assert files_of(data_set) == given, "nothing of what was cancelled"
    program.turn_to("Refine")
    program.click("header_view")
    program.screen.picture(picture_folder / "job_window_grown.png")
    assert close_by_keys(program) == 0, program.output
    assert "Traceback" not in program.output
    assert settings.read_text() == before.decode()
