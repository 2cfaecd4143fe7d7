"""Bad states of the reading room in the started program: each is told, and nothing is lost."""

import contextlib
import csv
import os
import shutil
import signal

import nibabel as nib
import numpy as np
import pytest
from program import (
    ACTIVATE,
    Program,
    Screen,
    close_by_cross,
    close_by_keys,
    close_by_menu,
    wait_until,
)
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
LARGE = DOCK + "viewer.window._qt_window.resize(1300, 820); result = True"
"""So that the results have their room, and nothing of ours makes the window grow."""
IDLE = DOCK + "result = panel.jobs.wait(0) and not panel.planes.is_building"
PAINTED = """
from qtpy.QtWidgets import QApplication
QApplication.processEvents()
result = True
"""
STEP = DOCK + "result = str(panel.hanging.step)"
JOB = (
    DOCK
    + """
import time
from napari_mamamia.core.progress import report_progress

def work():
    for step in range(3000):
        report_progress(step, 3000, f"step {step}")
        time.sleep(0.01)

panel.jobs.start("long", "A long job", work, lambda _: None)
result = True
"""
)


def wait_for_case(program, case="A_1"):
    wait_until(lambda: program.ask("evaluate", code=OPEN) == case, f"{case} open")
    wait_until(lambda: program.canvas_picture().max() > 100, "its picture")


def give_name(program):
    program.click("header_reader")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    program.wait_for_text("Ana")


def texts(program):
    """Return all that is read in the window."""
    return "\n".join(row["text"] for row in program.widgets())


def wait_for_words(program, words, picture=None):
    """Wait for words that stay; a picture of them is taken once the window is at rest."""
    wait_until(lambda: words in texts(program), f"the words {words!r}")
    wait_until(lambda: program.ask("evaluate", code=IDLE), "the window at rest")
    if picture is not None:
        program.ask("evaluate", code=PAINTED)
        program.screen.picture(picture)
    assert words in texts(program)


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
        first.ask("evaluate", code=LARGE)
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
        code = close_by_keys(program)
    assert (code, settings.read_bytes()) == (0, before)
    assert "cannot be written: this window uses a copy" in program.output


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
    assert close_by_keys(after) == 0
    assert settings.read_bytes() == before


def show_list(program):
    program.screen.key("F1")
    program.widget("cases_table")


def hold_a_ruler_in_the_hanging(program):
    program.screen.key("Next", "Next")
    wait_until(lambda: program.ask("evaluate", code=STEP) != "None", "a step")
    program.screen.key("shift+m")
    wait_until(
        lambda: program.ask("evaluate", code=DOCK + "result = bool(panel.active_tool.tool)"), "it"
    )


def fold_check(program):
    program.screen.key("F4")
    program.widget("section_report")
    program.screen.key("F9")
    program.widget("panel_show")


def be_alone_with_a_job(program):
    assert program.ask("evaluate", code=JOB)
    program.widget("header_progress")
    program.screen.key("F11")
    wait_until(lambda: not program.widgets(name="mamamia_dock"), "the picture alone")


def paint_a_mask(program):
    """Paint with what was painted not yet saved, the brush in hand."""
    give_name(program)
    program.turn_to("Refine")
    program.click("refine_from_reference")
    program.widget("refine_save")
    program.screen.key("q")
    wait_until(
        lambda: program.ask("evaluate", code=DOCK + "result = bool(panel.active_tool.tool)"), "it"
    )
    x, y, width, height = program.canvas()
    x, y = x + width // 2, y + height // 2
    program.screen.drag([(x, y), (x + 20, y), (x + 20, y + 20)])


def leave_the_mode_with_another_plugin(program):
    program.click("header_napari")
    program.widget("layer list")
    assert program.ask("evaluate", code=FOREIGN)


FOREIGN = (
    DOCK
    + """
from qtpy.QtWidgets import QLabel
viewer.window.add_dock_widget(QLabel("somebody else's"), name="Other plugin", area="left")
viewer.add_points([[0, 0]], name="somebody else's points")
result = True
"""
)
WAYS = (
    (show_list, close_by_keys),
    (hold_a_ruler_in_the_hanging, close_by_cross),
    (fold_check, close_by_cross),
    (be_alone_with_a_job, close_by_keys),
    (paint_a_mask, close_by_cross),
    (leave_the_mode_with_another_plugin, close_by_menu),
)


@pytest.mark.parametrize(("come_to", "close"), WAYS, ids=lambda way: way.__name__)
def test_closed_by_key_menu_or_cross_the_window_ends_and_naparis_settings_are_those_of_before(
    start, settings, small_data_set, come_to, close
):
    before = settings.read_bytes()
    program = start("mamamia", "view", small_data_set, "--case", "A_1", NAPARI_CONFIG=str(settings))
    wait_for_case(program)
    program.ask("evaluate", code=ACTIVATE)
    come_to(program)
    assert close(program) == 0, program.output
    assert "Traceback" not in program.output
    after = settings.read_text()
    if come_to is leave_the_mode_with_another_plugin:
        after = after.replace("    Other plugin: left\n", "")  # as napari writes of every plugin's
    assert after == before.decode()
    if come_to is paint_a_mask:
        (mask,) = small_data_set.parent.rglob("refined/Ana/A_1.nii.gz")
        given = small_data_set / "segmentations" / "expert" / "A_1.nii.gz"
        drawn, reference = (np.asarray(nib.load(path).dataobj) > 0 for path in (mask, given))
        assert drawn.any()
        assert (drawn != reference).any(), "the stroke is in it"


def test_a_screen_below_1024_x_600_is_told_what_is_needed(start, small_data_set, picture_folder):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1000, 560))
    wait_for_case(program)
    wait_for_words(
        program,
        "needs a screen of 1024 x 600 pixels, but this one has 1000 x 560",
        picture_folder / "bad_small_screen.png",
    )


def test_a_window_made_smaller_says_what_it_needs_until_it_is_large_again(
    start, small_data_set, picture_folder
):
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    wait_for_case(program)
    number = program.ask("evaluate", code=DOCK + "result = int(viewer.window._qt_window.winId())")
    program.screen.xdotool("windowsize", number, 900, 580)
    words = "This window needs 1024 x 600 pixels, but has 900 x 580"
    wait_for_words(program, words, picture_folder / "bad_small_window.png")
    program.screen.xdotool("windowsize", number, 1200, 700)
    wait_until(lambda: words not in texts(program), "the words gone")


def test_a_read_only_data_set_takes_nothing_and_what_is_made_of_it_is_kept_elsewhere(
    start, small_data_set, tmp_path, picture_folder
):
    locked = tmp_path / "locked"
    locked.mkdir()
    data_set = locked / "data"
    shutil.copytree(small_data_set, data_set)
    given = {path: path.read_bytes() for path in locked.rglob("*") if path.is_file()}
    with read_only(locked):
        program = start("mamamia", "view", data_set, "--case", "A_1", before=PLAIN)
        wait_for_case(program)
        give_name(program)
        program.turn_to("View")
        program.click("measure_fold")
        program.click("measure_ruler")
        x, y, width, height = program.canvas()
        middle = (x + width // 2, y + height // 2)
        program.screen.drag([(middle[0] - 60, middle[1]), middle, (middle[0] + 60, middle[1])])
        program.screen.key("Escape")
        program.click("section_findings")
        program.click("findings_place_right")
        program.screen.key("alt+4")
        program.turn_to("Refine")
        program.click("refine_from_reference")
        program.widget("refine_save")
        program.screen.key("ctrl+Return")
        wait_until(lambda: program.ask("evaluate", code=OPEN) == "A_2", "the next case")
        program.turn_to("Cases")
        said = texts(program)
        program.screen.picture(picture_folder / "bad_read_only.png")
        assert close_by_keys(program) == 0
    assert {path: path.read_bytes() for path in locked.rglob("*") if path.is_file()} == given
    (mask,) = program.folder.rglob("refined/Ana/A_1.nii.gz")
    workspace = mask.parents[2]
    assert workspace.name in said or "cannot be written" in said, said
    assert (np.asarray(nib.load(mask).dataobj) > 0).any()
    kept = {path.relative_to(workspace).parts[0] for path in workspace.rglob("*") if path.is_file()}
    assert {"measurements", "findings"} <= kept, kept


@pytest.fixture
def odd_cases(tmp_path):
    """A case of one phase, and two exams of one patient: of the right breast and of the left."""
    root = tmp_path / "odd"
    rng = np.random.default_rng(5)
    affine = np.diag([-0.8, 0.8, 2.0, 1.0])
    for case_id, n_phases in (("L_OLD", 4), ("ONE_1", 1), ("R_NEW", 4)):
        folder = root / "images" / case_id
        folder.mkdir(parents=True)
        for k in range(n_phases):
            volume = rng.normal(200, 3, (48, 32, 8))
            volume[20:26, 14:20, 3:6] += (0, 260, 240, 190)[k]
            image = nib.Nifti1Image(volume.astype(np.int16), affine)
            nib.save(image, folder / f"{case_id}_{k:04d}.nii.gz")
    expert = root / "segmentations" / "expert"
    expert.mkdir(parents=True)
    mask = np.zeros((48, 32, 8), np.uint8)
    mask[20:26, 14:20, 3:6] = 1
    nib.save(nib.Nifti1Image(mask, affine), expert / "R_NEW.nii.gz")
    rows = (
        ("patient_id", "subject_id", "exam_date", "laterality"),
        ("L_OLD", 7, "2024-05-01", "left"),
        ("ONE_1", 8, "2025-05-01", "right"),
        ("R_NEW", 7, "2025-05-01", "right"),
    )
    with (root / "clinical_and_imaging_info.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return root


def test_one_phase_no_prior_the_other_breast_no_nipple_and_no_dicom_are_said(
    start, odd_cases, picture_folder
):
    program = start("mamamia", "view", odd_cases, "--case", "ONE_1", size=(1280, 720))
    wait_for_case(program, "ONE_1")
    x, y, width, height = program.canvas()
    program.screen.xdotool("mousemove", x + width // 2, y + height // 2)
    program.screen.key("Next")
    wait_for_words(program, "only one phase", picture_folder / "bad_one_phase.png")
    program.screen.key("n")
    wait_for_case(program, "R_NEW")
    program.screen.key("shift+p")
    why = "the exam shows the left breast, but the case shows the right breast"
    wait_for_words(
        program, f"L_OLD is not a prior of R_NEW: {why}", picture_folder / "bad_other_side.png"
    )
    assert program.ask("evaluate", code=STEP) == "None"
    program.turn_to("View")
    program.click("section_findings")
    program.click("findings_place_lesion")
    program.widget("findings_answer_finding_1")
    wait_for_words(
        program,
        "The right nipple is not marked, so the clock position is unknown",
        picture_folder / "bad_no_nipple.png",
    )
    program.turn_to("Report")
    program.click("report_dicom")
    wait_for_words(program, "DICOM reports refer to DICOM images, but this case has none")
    assert not program.widget("report_start")["enabled"]
    program.screen.picture(picture_folder / "bad_no_dicom.png")
    program.click("report_dicom")
    wait_until(lambda: program.widget("report_start")["enabled"], "a report without DICOM")
