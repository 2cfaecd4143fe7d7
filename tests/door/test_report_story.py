"""A report written from the window, read back by highdicom: same mask, numbers, words and place.

The exams come from DICOM: ISPY1_1002 of the shared data, Breast_MRI_153 where it was fetched, and a
phantom that stands for them elsewhere.
"""

import csv
import json
import os
import re
import subprocess
import warnings
import zipfile
from pathlib import Path
from shutil import which

import nibabel as nib
import numpy as np
import pytest
from morning import Hand, open_first
from program import wait_until

from dicom_phantoms import write_image
from napari_mamamia.phantom import PhantomSpec, Side, TumourSpec, make_phantom

pytestmark = [pytest.mark.door, pytest.mark.night, pytest.mark.timeout(3000)]
CASE = "EXAM_1"
OWN = "99MAMAMIA"
SAID = (
    ("finding", ("4147007", "SCT"), "mass"),
    ("mass.shape", ("49608001", "SCT"), "irregular"),
    ("mass.margin", ("RID34355", "RADLEX"), "not circumscribed"),
    ("mass.internal", ("RID6060", "RADLEX"), "heterogeneous"),
    ("111005", ("assessment.5", OWN), "5, highly suggestive of malignancy"),
)
"""What is answered, by the question's code, with the codes of `shared/facts/reading_room.md`."""


def unpacked_exam(find, folder):
    with zipfile.ZipFile(find("ispy1_1002.zip")) as archive:
        archive.extractall(folder)
    return folder / "ISPY1_1002"


def fetched_exam(_find, _folder):
    named = os.environ.get("MAMAMIA_REAL_EXAM", "")
    if not named or not Path(named).is_dir():
        pytest.skip("the fetched exam is absent: set MAMAMIA_REAL_EXAM to its DICOM folder")
    return Path(named)


def phantom_exam(_find, folder):
    """Write a phantom as a scanner's series; its places by hand, from the affine alone."""
    size = {"shape": (40, 128, 160), "spacing_mm": (3.0, 2.2, 2.2)}
    mass = TumourSpec(26.0, side=Side.RIGHT, early_enhancement_percent=120.0)
    phantom = make_phantom(PhantomSpec("P", 31, tumours=(mass,), **size))
    to_lps = np.diag([-1.0, -1.0, 1.0, 1.0]) @ phantom.case.grid.affine
    steps = np.linalg.norm(to_lps[:3, :3], axis=0)
    across, down, _ = (to_lps[:3, :3] / steps).T
    for k, phase in enumerate(phantom.case.signal):
        for z, plane in enumerate(np.asarray(phase).astype(np.int16)):
            write_image(
                folder / "s5" / f"{k}_{z:03d}.dcm",
                plane,
                FrameOfReferenceUID="2.25.6",
                PatientID="P",
                PatientName="Nobody^At All",
                SeriesNumber=5,
                InstanceNumber=40 * k + z + 1,
                TemporalPositionIdentifier=k + 1,
                AcquisitionDate="20200101",
                AcquisitionTime=f"10{2 * k:02d}00",
                SliceThickness=float(steps[2]),
                PixelSpacing=[float(steps[1]), float(steps[0])],
                ImageOrientationPatient=[float(one) for one in (*across, *down)],
                ImagePositionPatient=[float(one) for one in (to_lps @ (0, 0, z, 1))[:3]],
            )
    return folder


EXAMS = (
    pytest.param(phantom_exam, id="phantom"),
    pytest.param(unpacked_exam, id="ISPY1_1002", marks=pytest.mark.real),
    pytest.param(fetched_exam, id="Breast_MRI_153", marks=pytest.mark.real),
)


def text_of(program, name):
    rows = program.widgets(name=name)
    return rows[0]["text"] if rows else ""


def describe_mass(hand):
    """Answer as a reader does; return what page Findings says was measured of the lesion."""
    hand.key("F2")
    hand.click("section_findings")
    hand.click("findings_place_lesion")
    hand.answer("finding_1", "mass")
    hand.answer("mass.shape_1", "irregular")
    hand.answer("mass.margin_1", "not_circumscribed")
    hand.answer("mass.internal_1", "heterogeneous")
    told = text_of(hand.program, "findings_form_auto")
    hand.picture("report_findings")
    hand.click("findings_place_right")
    hand.key("alt+5")
    return told


def list_answers(item):
    """Yield each coded answer as pydicom reads it: the question's code, the term's, its words."""
    for one in item.get("ContentSequence", []):
        if one.ValueType == "CODE":
            asked, term = one.ConceptNameCodeSequence[0], one.ConceptCodeSequence[0]
            yield asked.CodeValue, (term.CodeValue, term.CodingSchemeDesignator), term.CodeMeaning
        yield from list_answers(one)


def centre_mm(voxels, affine):
    return nib.affines.apply_affine(affine, np.argwhere(voxels).mean(axis=0))


@pytest.mark.parametrize("find", EXAMS)
def test_what_a_window_reports_is_read_back_the_same_and_a_stopped_report_leaves_nothing(
    start, scripts, real_data, tmp_path, find, picture_folder
):
    hd = pytest.importorskip("highdicom")
    exam = find(real_data, tmp_path / "dicom")
    data_set = tmp_path / "cases"
    workspace = tmp_path / "cases-workspace"
    # of one user: what stands for UIDs is drawn from a secret of the user's
    config = {"MAMAMIA_CONFIG_DIR": str(tmp_path / "config")}

    def mamamia(*words):
        command, more = [scripts / "mamamia", *words], {**os.environ, **config}
        subprocess.run(command, check=True, capture_output=True, timeout=1200, env=more)

    mamamia("import", exam, "--out", data_set, "--case", CASE)
    mamamia("predict", data_set, "--out", workspace / "predictions" / "kinetic")
    program = start("mamamia", "view", data_set, **config)
    name = find.__name__
    hand = Hand(program, lambda what: program.screen.picture(picture_folder / f"{what}_{name}.png"))
    program.widget("cases_table")
    program.click("header_reader")
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    program.wait_for_text("Ana")
    open_first(program, CASE)
    hand.begin(CASE)
    hand.key("F3")
    hand.click("refine_from_prediction")
    program.widget("refine_save")
    hand.key("g", "q")
    hand.stroke(0.0, 0.0)
    told = describe_mass(hand)
    program.turn_to("Report")
    program.click("report_dicom")
    program.click("report_study")
    program.screen.xdotool("type", str(exam))
    program.screen.key("Tab")
    wait_until(lambda: program.widget("report_start")["enabled"], "the study is named")

    program.click("report_start")
    program.click("header_cancel")
    wait_until(lambda: "Stopped" in text_of(program, "report_result"), "the stop", 600)
    # a stop is said at once, while the thread lets go of its file
    exports = workspace / "exports"
    wait_until(lambda: not any(path.is_file() for path in exports.rglob("*")), "nothing is left")

    program.click("report_start")
    written = f"{CASE} is written"
    wait_until(lambda: written in text_of(program, "report_result"), "the report", 900)
    assert text_of(program, "header_message") == "", "of the report that was stopped"
    hand.picture("report_written")
    program.end()
    (folder,) = (workspace / "exports" / "reports").iterdir()
    dicom = folder / "dicom"

    # the table's numbers are the report's, and those of the page as far as it shows them
    rows = list(csv.DictReader((folder / "measures.csv").open()))
    expected = [
        (f"lesion {row['place']}", float(f"{float(row['number']):.6g}"))
        for row in rows
        if row["scope"] == "lesion" and row["number"] and row["source"] != "answered"
    ]
    report = hd.sr.srread(dicom / f"{CASE}_sr.dcm")
    groups = report.content.get_volumetric_roi_measurement_groups()
    pairs = [(str(one.tracking_identifier), of) for one in groups for of in one.get_measurements()]
    assert [(group, float(of.value)) for group, of in pairs] == expected
    in_mm = {"ml": 1000.0, "mm3": 1.0, "mm": 1.0}
    numbers = [
        float(of.value) * in_mm[of.unit.value]
        for group, of in pairs
        if group == "lesion 1" and of.unit.value in in_mm
    ]
    for what, unit, rounded in (("plane", "mm", 0.05), ("volume", "ml", 5.0)):
        shown = float(re.search(rf"{what} ([\d.]+) {unit}", told)[1]) * in_mm[unit]
        assert any(abs(number - shown) <= rounded + 1e-5 * number for number in numbers), told

    # the reader's own mask: every voxel, where it lies, and its volume once more from both
    path = workspace / "refined" / "Ana" / f"{CASE}.nii.gz"
    mask = nib.load(path)
    drawn = np.asarray(mask.dataobj) > 0
    segmentation = hd.seg.segread(dicom / f"{CASE}_seg.dcm")
    solid = segmentation.get_volume(combine_segments=True)
    assert np.count_nonzero(solid.array) == np.count_nonzero(drawn)
    lps = centre_mm(solid.array > 0, solid.affine)
    assert lps * (-1, -1, 1) == pytest.approx(centre_mm(drawn, mask.affine), abs=0.01)
    volumes = [
        float(of.value) * 1000.0
        for _, of in pairs
        if (of.name.meaning, of.unit.value) == ("Volume", "ml")
    ]
    by_voxels = np.count_nonzero(drawn) * abs(np.linalg.det(mask.affine[:3, :3]))
    assert sum(volumes) == pytest.approx(by_voxels, rel=1e-4)
    assert segmentation.number_of_segments == len(groups)
    named = [one.value for one in report.iterall() if one.keyword == "ReferencedSegmentNumber"]
    assert sorted(set(named)) == list(range(1, len(groups) + 1))
    referenced = {
        one.value for one in report.iterall() if one.keyword == "ReferencedSOPInstanceUID"
    }
    assert segmentation.SOPInstanceUID in referenced
    info = json.loads((data_set / "patient_info_files" / f"{CASE}.json").read_text())
    frame = info["import"]["frame_of_reference_uid_remapped"]
    assert segmentation.FrameOfReferenceUID == frame

    answers = list(list_answers(report))
    for one in SAID:
        assert one in answers, answers
    if which("dciodvfy") is None:
        warnings.warn("dciodvfy (dicom3tools) is not installed: not asked", stacklevel=1)
        return
    for path in sorted(dicom.iterdir()):
        run = subprocess.run(["dciodvfy", "-new", path], capture_output=True, check=False)
        said = run.stderr.decode(errors="replace")
        assert "Error" not in said, f"{path.name}: {said}"
