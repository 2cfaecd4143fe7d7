"""A report written from the window of a real exam, read back by highdicom with the same numbers."""

import csv
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from program import wait_until

pytestmark = [
    pytest.mark.door,
    pytest.mark.real,
    pytest.mark.night,
    pytest.mark.timeout(1800),
]
CASE = "EXAM_1"
DOCK = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
"""
OPEN = (
    DOCK
    + """
case = panel and panel.session.case
result = bool(case and case.is_loaded) and case.case_id
"""
)
OBJECTS = {f"{CASE}_seg.dcm", f"{CASE}_sr.dcm"}


def unpacked_exam(find, folder):
    with zipfile.ZipFile(find("ispy1_1002.zip")) as archive:
        archive.extractall(folder)
    return folder / "ISPY1_1002"


def fetched_exam(_find, _folder):
    named = os.environ.get("MAMAMIA_REAL_EXAM", "")
    if not named or not Path(named).is_dir():
        pytest.skip("the fetched exam is absent: set MAMAMIA_REAL_EXAM to its DICOM folder")
    return Path(named)


def text_of(program, name):
    rows = program.widgets(name=name)
    return rows[0]["text"] if rows else ""


@pytest.mark.parametrize("find", [unpacked_exam, fetched_exam], ids=["ISPY1_1002", "Duke 153"])
def test_the_report_of_a_window_is_read_back_by_highdicom_and_a_stopped_one_leaves_nothing(
    start, scripts, real_data, tmp_path, find, picture_folder
):
    hd = pytest.importorskip("highdicom")
    exam = find(real_data, tmp_path / "dicom")
    data_set = tmp_path / "cases"
    workspace = tmp_path / "cases-workspace"

    def mamamia(*words):
        command = [scripts / "mamamia", *words]
        subprocess.run(command, check=True, capture_output=True, timeout=900)

    mamamia("import", exam, "--out", data_set, "--case", CASE)
    mamamia("predict", data_set, "--out", workspace / "predictions" / "kinetic")
    program = start("mamamia", "view", data_set, "--case", CASE)
    wait_until(lambda: program.ask("evaluate", code=OPEN) == CASE, "the case", 300)
    program.click("header_reader")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    program.wait_for_text("Ana")
    program.turn_to("Refine")
    program.click("refine_from_prediction")
    program.widget("refine_save")
    program.turn_to("View")
    program.click("section_findings")
    program.click("findings_place_right")
    program.screen.key("alt+5")
    program.turn_to("Report")
    program.click("report_dicom")
    program.click("report_study")
    program.screen.xdotool("type", str(exam))
    program.screen.key("Tab")
    wait_until(lambda: program.widget("report_start")["enabled"], "the study is named")

    program.click("report_start")
    program.click("header_cancel")
    wait_until(lambda: "Stopped" in text_of(program, "report_result"), "the stop", 300)
    left = [path for path in (workspace / "exports").rglob("*") if path.is_file()]
    assert left == [], left

    program.click("report_start")
    written = f"{CASE} is written"
    wait_until(lambda: written in text_of(program, "report_result"), "the report", 600)
    program.screen.picture(picture_folder / f"report_story_{find.__name__}.png")
    program.end()
    (folder,) = (workspace / "exports" / "reports").iterdir()
    (dicom,) = (path for path in folder.iterdir() if path.is_dir() and "dicom" in path.name)
    assert {path.name for path in dicom.iterdir()} >= OBJECTS
    rows = list(csv.DictReader((folder / "measures.csv").open()))
    told = [
        (f"lesion {row['place']}", float(f"{float(row['number']):.6g}"))
        for row in rows
        if row["scope"] == "lesion" and row["number"] and row["source"] != "answered"
    ]
    report = hd.sr.srread(dicom / f"{CASE}_sr.dcm")
    groups = report.content.get_volumetric_roi_measurement_groups()
    read = [
        (str(group.tracking_identifier), float(one.value))
        for group in groups
        for one in group.get_measurements()
    ]
    assert read
    assert read == told

    # the volume once more, from the voxels of the SEG and its own spacing alone
    segmentation = hd.seg.segread(dicom / f"{CASE}_seg.dcm")
    spacing = segmentation.get_volume_geometry().spacing
    voxels = int((segmentation.pixel_array > 0).sum())
    volumes = [
        float(one.value)
        for group in groups
        for one in group.get_measurements()
        if "olume" in one.name.meaning
    ]
    assert sum(volumes) == pytest.approx(voxels * np.prod(spacing), rel=1e-4)
