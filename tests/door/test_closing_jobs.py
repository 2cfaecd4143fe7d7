"""The window is closed by its cross, key or menu while a job runs: all ends, nothing is half there.

What was finished stays, no process is left, nothing is printed, and the exit code is 0. Jobs are
held at each of their reports, as on a slow disk, so that each runs at the moment of closing.
"""

import subprocess

import nibabel as nib
import numpy as np
import pytest
from program import close_by_cross, close_by_keys, close_by_menu, wait_until

import dicom_phantoms as phantoms

pytestmark = [pytest.mark.door, pytest.mark.night]

SLOW = """
import time
from napari_mamamia.widgets.base import jobs
if not hasattr(jobs, "usual"):
    jobs.usual = jobs._Worker._report_progress
def report_slowly(worker, progress):
    time.sleep({0})
    jobs.usual(worker, progress)
jobs._Worker._report_progress = report_slowly
"""
RUNNING = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
jobs = dock_of(napari.current_viewer()).jobs
result = [worker.ticket.lane for worker in jobs._workers.values() if worker.ticket.shown]
"""
IDLE = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
jobs = dock_of(napari.current_viewer()).jobs
result = not any(worker.ticket.shown for worker in jobs._workers.values())
"""
CASE = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
result = dock_of(napari.current_viewer()).session.case_id
"""
ALL_CASES = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
dock_of(napari.current_viewer()).report_page.cases.setCurrentIndex(1)
dock_of(napari.current_viewer()).report_page.fields["pdf"].setChecked(True)
"""
TICK = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
sets = dock_of(napari.current_viewer()).export_page.sets
box = sets.visualItemRect(sets.item(0))
place = sets.viewport().mapToGlobal(box.center())
result = [place.x() - box.width() // 2 + 12, place.y()]
"""
LANES = {"predict_all": "predict all", "export_all": "export", "import_study": "import run"}


def read_all(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def predict_all(program, _study):
    program.ask("evaluate", code=SLOW.format(0.2))
    program.click("cases_predict_all")


def export_all(program, _study):
    program.click("cases_predict_all")
    wait_until(lambda: program.widgets(name="cases_note"), "the list")
    wait_until(lambda: not program.widgets(name="header_progress"), "the predictions")
    program.click("cases_export_all")
    program.wait_rect("export_sets")
    program.screen.click(*program.ask("evaluate", code=TICK))  # no prediction is ticked by itself
    program.ask("evaluate", code=SLOW.format(0.2))
    program.click("export_start")


def import_study(program, study, held_s=0.2):
    assert program.ask("drop", name="mamamia_dock", paths=[str(study)])
    program.widget("import_start")
    program.ask("evaluate", code=SLOW.format(held_s))
    program.click("import_start")


@pytest.mark.parametrize("close", [close_by_cross, close_by_keys, close_by_menu])
@pytest.mark.parametrize("begin", [predict_all, export_all, import_study])
def test_a_job_at_work_ends_with_the_window(start, small_data_set, tmp_path, begin, close):
    before = read_all(small_data_set)
    study = tmp_path / "study"
    study.mkdir()
    for phase in range(3):
        phantoms.write_phase(study, phase, shape=(40, 128, 128), AcquisitionTime=f"10{phase:02d}00")
    program = start("mamamia", "view", small_data_set)
    program.wait_for_text("3 cases")
    if close is close_by_menu:
        program.click("header_napari")
    begin(program, study)
    lane = LANES[begin.__name__]
    wait_until(lambda: lane in program.ask("evaluate", code=RUNNING), f"{begin.__name__} at work")
    assert close(program) == 0, program.output
    assert program.output == ""
    rows = subprocess.run(["ps", "-eo", "sess,args"], capture_output=True, text=True, check=True)
    left = [row for row in rows.stdout.splitlines() if row.split()[0] == str(program.process.pid)]
    assert not left
    after = read_all(small_data_set)
    table = small_data_set / "clinical_and_imaging_info.xlsx"
    imported = before.pop(table) != after[table]
    assert before.items() <= after.items(), "the data set has what it had"
    # an import that was so far gone is whole, one that was not left nothing
    phases = [path for path in after.keys() - before.keys() if path.parent.name == "study"]
    assert len(phases) == (3 if imported else 0)
    for path in tmp_path.rglob("*.nii.gz"):
        assert np.asarray(nib.load(path).dataobj).size, path
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".part")]
    # half a bundle is none: nobody could say what it lacks
    bundles = {path.parent for path in tmp_path.rglob("run.json") if "exports" in path.parts}
    assert all((bundle / "manifest.json").exists() for bundle in bundles)


def test_an_export_that_was_cancelled_runs_again_at_once(start, small_data_set, tmp_path):
    program = start("mamamia", "view", small_data_set)
    program.wait_for_text("3 cases")
    export_all(program, None)
    wait_until(lambda: "export" in program.ask("evaluate", code=RUNNING), "the export")
    program.click("header_cancel")
    program.wait_for_text("nothing was exported, and no files remain")
    program.click("export_start")
    wait_until(lambda: list(tmp_path.rglob("manifest.json")), "a whole bundle")
    (manifest,) = tmp_path.rglob("manifest.json")
    names = {path.name for path in manifest.parent.glob("*.nii.gz")}
    assert names == {"A_1.nii.gz", "A_2.nii.gz", "B_1.nii.gz"}


def stop_at_work(program, lane, after_s):
    """Press Cancel once a job of the lane has run for a while, and wait until all its work ends."""
    wait_until(lambda: lane in program.ask("evaluate", code=RUNNING), f"{lane} at work")
    program.screen.xdotool("sleep", after_s)
    program.click("header_cancel")
    wait_until(lambda: program.ask("evaluate", code=IDLE), "the end of the work", 60)


def assert_nothing_half(folder):
    names = [path.name for path in folder.rglob("*")]
    assert not [name for name in names if name.endswith((".tmp", ".part")) or ".was-" in name]
    for path in folder.rglob("*.nii.gz"):
        assert np.asarray(nib.load(path).dataobj).size, path


def test_an_import_that_was_cancelled_runs_again_at_once(start, small_data_set, tmp_path):
    before = read_all(small_data_set)
    study = tmp_path / "study"
    study.mkdir()
    for phase in range(3):
        phantoms.write_phase(study, phase, shape=(40, 128, 128), AcquisitionTime=f"10{phase:02d}00")
    program = start("mamamia", "view", small_data_set)
    program.wait_for_text("3 cases")
    import_study(program, study, held_s=0.6)
    stop_at_work(program, "import run", 0)
    program.wait_for_text("Stopped: finished cases are kept")
    assert read_all(small_data_set) == before, "nothing of what was cancelled, all of the rest"
    program.click("import_start")
    wait_until(lambda: program.ask("evaluate", code=CASE) == "study", "the case that was imported")
    after = read_all(small_data_set)
    table = small_data_set / "clinical_and_imaging_info.xlsx"
    assert before.pop(table) != after[table]
    assert before.items() <= after.items(), "the data set has what it had"
    assert len([path for path in after.keys() - before.keys() if path.parent.name == "study"]) == 3
    assert_nothing_half(tmp_path)


@pytest.mark.parametrize("after_s", [0, 1])
def test_a_batch_that_was_cancelled_goes_on_at_once(start, small_data_set, tmp_path, after_s):
    before = read_all(small_data_set)
    program = start("mamamia", "view", small_data_set)
    program.wait_for_text("3 cases")
    program.click("cases_predict_all")
    workspace = small_data_set.with_name(f"{small_data_set.name}-workspace")
    masks = workspace / "predictions"
    wait_until(lambda: len(list(masks.rglob("*.nii.gz"))) == 3, "the predictions")
    wait_until(lambda: program.ask("evaluate", code=IDLE), "the end of the work", 60)
    program.turn_to("Batch")
    program.widget("batch_start")
    program.ask("evaluate", code=SLOW.format(0.3))
    program.click("batch_start")
    stop_at_work(program, "batch", after_s)
    program.wait_for_text("Cancelled. Finished cases are kept")
    assert_nothing_half(tmp_path)
    assert not list(workspace.rglob("report.html")), "no report of a part of the cases"
    program.ask("evaluate", code=SLOW.format(0))
    program.click("batch_start")
    program.wait_for_text("Finished: every case was scored.")
    (scores,) = workspace.rglob("case_scores.csv")
    rows = scores.read_text("utf-8").splitlines()[1:]
    assert sorted(row.split(",")[0] for row in rows) == ["A_1", "A_2", "B_1"]
    assert (scores.parent / "report.html").is_file()
    assert_nothing_half(tmp_path)
    after = read_all(small_data_set)
    assert after == before


@pytest.mark.parametrize("after_s", [0, 0.7, 2])
def test_a_report_that_was_cancelled_is_written_at_once(start, small_data_set, tmp_path, after_s):
    before = read_all(small_data_set)
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    program.wait_for_text("A_1")
    wait_until(lambda: program.ask("evaluate", code=CASE) == "A_1", "the case")
    program.click("header_reader")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    program.turn_to("Report")
    program.widget("report_cases")
    program.ask("evaluate", code=ALL_CASES)
    program.ask("evaluate", code=SLOW.format(0.3))
    program.click("report_start")
    stop_at_work(program, "report", after_s)
    program.wait_for_text("Stopped: ")
    reports = small_data_set.with_name(f"{small_data_set.name}-workspace") / "exports" / "reports"
    stopped = read_all(reports)
    whole = {path.parent for path in stopped if path.suffix == ".pdf"}
    assert {path.parent for path in stopped if path.suffix == ".html"} <= whole, "a page, no PDF"
    assert_nothing_half(tmp_path)
    program.ask("evaluate", code=SLOW.format(0))
    program.click("report_start")
    program.wait_for_text("Reports written: 3.")
    written = read_all(reports)
    assert stopped.items() <= written.items(), "what was finished is as it was"
    new = {path.name for path in written.keys() - stopped.keys()}
    assert {f"{case}.pdf" for case in ("A_1", "A_2", "B_1")} <= new, new
    assert_nothing_half(tmp_path)
    assert read_all(small_data_set) == before
