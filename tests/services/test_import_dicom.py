"""`mamamia import`: DICOM studies become cases of a data set, whole or not at all."""

import csv
import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import closing
from pathlib import Path

import nibabel
import numpy as np
import pytest
from tests.printed_remedies import refuses
from tests.stepped import Stepped
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.choices import Clock, Dates
from napari_mamamia.core.errors import CaseError, FormatError, MissingExtraError, SaveConflictError
from napari_mamamia.core.progress import Cancelled, forward_progress, listening
from napari_mamamia.io.clinical.clinical import read_clinical
from napari_mamamia.io.data_set import imported_case
from napari_mamamia.io.dicom.facts import user_secret
from napari_mamamia.io.exam.selectors import named_series
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.volumes import voxel_writer
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings, look_into

pydicom = pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


def imported(source, out, case_id="P1", **settings):
    return import_dicom(source, out, case_id, ImportSettings(**settings))


def volumes_of(out, case_id="P1"):
    files = sorted((out / "images" / case_id).iterdir())
    assert [f.name for f in files] == [f"{case_id}_{k:04d}.nii.gz" for k in range(len(files))]
    return [nibabel.load(file) for file in files]


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---- what is written


def test_an_exam_becomes_a_case_that_opens_with_its_times(tmp_path):
    values = phantoms.write_exam(tmp_path / "in")
    summary = imported(tmp_path / "in", tmp_path / "out")
    assert files_below(tmp_path / "out") == [
        "clinical_and_imaging_info.csv",
        "images/P1/P1_0000.nii.gz",
        "images/P1/P1_0001.nii.gz",
        "images/P1/P1_0002.nii.gz",
        "patient_info_files/P1.json",
    ]
    case = load_case(find_data_set(tmp_path / "out").case("P1"))
    assert case.times_s == (0, 90, 120)
    assert np.array_equal(case.signal, values[:, :, ::-1])
    assert case.signal.dtype == np.int16
    assert "too little noise" in " ".join(warning.text for warning in summary.imported[0].warnings)


@pytest.mark.parametrize(
    ("orientation", "letters"), [(phantoms.AXIAL, "LAS"), (phantoms.SAGITTAL, "PSR")]
)
def test_files_lie_as_those_of_mama_mia_and_each_voxel_at_its_place(tmp_path, orientation, letters):
    values = phantoms.write_exam(tmp_path / "in", ImageOrientationPatient=list(orientation))
    imported(tmp_path / "in", tmp_path / "out")
    image = volumes_of(tmp_path / "out")[1]
    assert "".join(nibabel.aff2axcodes(image.affine)) == letters
    z, y, x = 3, 5, 7
    along, down = np.array(orientation[:3]), np.array(orientation[3:])
    lps = np.array(phantoms.ORIGIN) + x * 0.75 * along + y * 0.5 * down
    lps = lps + z * phantoms.GAP * np.cross(along, down)
    voxel = np.linalg.inv(image.affine) @ [*(lps * [-1, -1, 1]), 1]
    assert voxel[:3] == pytest.approx(np.round(voxel[:3]), abs=1e-4)
    i, j, k = np.round(voxel[:3]).astype(int)
    assert np.asarray(image.dataobj)[i, j, k] == values[1, z, y, x]


def test_without_pydicom_many_studies_are_one_error_and_nothing_is_written(tmp_path, monkeypatch):
    for name in ("monday", "tuesday"):
        phantoms.write_exam(tmp_path / "in" / name)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[dicom\]"):
        imported(tmp_path / "in", tmp_path / "out", "")
    assert not (tmp_path / "out").exists()


def test_the_clinical_row_has_times_and_scanner_fields_under_mama_mias_names(tmp_path):
    phantoms.write_exam(
        tmp_path / "in", Manufacturer="SIEMENS", MagneticFieldStrength=1.5, EchoTime=1.36
    )
    imported(tmp_path / "in", tmp_path / "out")
    (row,) = read_clinical(tmp_path / "out" / "clinical_and_imaging_info.csv").records
    assert row.acquisition_times_s == (0, 90, 120)
    told = {name: row.other[name] for name in ("manufacturer", "field_strength", "echo_time",
            "num_phases", "image_rows", "image_columns", "num_slices", "pixel_spacing", "view",
            "high_bit")}  # fmt: skip
    assert told == {
        "manufacturer": "SIEMENS", "field_strength": 1.5, "echo_time": 1.36, "num_phases": 3,
        "image_rows": 16, "image_columns": 20, "num_slices": 4, "pixel_spacing": "[0.5, 0.75]",
        "view": "axial", "high_bit": 15,
    }  # fmt: skip


def test_a_second_case_adds_a_row_and_keeps_what_the_table_had(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    (out / "clinical_and_imaging_info.csv").write_text(
        "patient_id,age,pcr,site\nOLD,51,1,A\nP2,44,0,B\n"
    )
    imported(tmp_path / "in", out, "P1")
    told = imported(tmp_path / "in", out, "P2").imported[0].warnings
    with (out / "clinical_and_imaging_info.csv").open() as stream:
        rows = {row["patient_id"]: row for row in csv.DictReader(stream)}
    assert (rows["OLD"]["age"], rows["OLD"]["site"], rows["OLD"]["pcr"]) == ("51", "A", "1")
    assert (rows["P2"]["age"], rows["P2"]["acquisition_times"]) == ("44", "[0, 90, 120]")
    assert rows["P1"]["acquisition_times"] == "[0, 90, 120]"
    assert "only empty cells were filled" in told[-1].text


def test_a_table_with_a_faulty_row_is_refused_before_anything_is_written(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    (out / "clinical_and_imaging_info.csv").write_text("patient_id,age\nA,51\nA,52\n")
    with pytest.raises(FormatError, match="row 3 is not"):
        imported(tmp_path / "in", out)
    assert files_below(out) == ["clinical_and_imaging_info.csv"]


def test_the_chosen_clock_and_its_rivals_are_stored_beside_the_case(tmp_path):
    phantoms.write_exam(tmp_path / "in", ContentTime="100000")
    imported(tmp_path / "in", tmp_path / "out", clock=Clock.ACQUISITION_TIME)
    info = json.loads((tmp_path / "out" / "patient_info_files" / "P1.json").read_text())
    clock = info["import"]["clock"]
    assert (clock["chosen"], clock["named_by_user"]) == ("AcquisitionTime", True)
    rivals = {found["clock"]: found["works"] for found in clock["candidates"]}
    assert rivals["AcquisitionTime"]
    assert not rivals["ContentTime"]
    assert info["imaging_data"]["acquisition_times"] == [0, 90, 120]


def test_phases_may_be_picked_and_times_start_at_0_again(tmp_path):
    values = phantoms.write_exam(tmp_path / "in", 4)
    imported(tmp_path / "in", tmp_path / "out", phases=(1, 3))
    volumes = volumes_of(tmp_path / "out")
    assert len(volumes) == 2
    assert np.array_equal(np.asarray(volumes[1].dataobj).T[:, ::-1], values[3])
    (row,) = read_clinical(tmp_path / "out" / "clinical_and_imaging_info.csv").records
    assert row.acquisition_times_s == (0, 120)


@pytest.mark.parametrize("phases", [(0, 9), (1, 0), (1, 1), (-1, 0)])
def test_phases_that_are_not_there_are_refused(tmp_path, phases):
    phantoms.write_exam(tmp_path / "in")
    with pytest.raises(CaseError, match=r"increasing phase numbers from 0 to 2"):
        imported(tmp_path / "in", tmp_path / "out", phases=phases)
    assert not (tmp_path / "out").exists()


def test_scaled_values_are_written_as_the_quantity(tmp_path):
    values = phantoms.write_exam(tmp_path / "in", RescaleSlope=0.5, RescaleIntercept=-3)
    summary = imported(tmp_path / "in", tmp_path / "out")
    written = np.asarray(volumes_of(tmp_path / "out")[2].dataobj).T[:, ::-1]
    assert written.dtype == np.float32
    assert np.array_equal(written, (values[2] * 0.5 - 3).astype(np.float32))
    assert summary.imported[0].scaling == "RescaleSlope"


# ---- enhancement


def test_the_record_says_which_moments_of_the_phases_the_headers_tell(tmp_path):
    values = np.stack([phantoms.dce_values(k) for k in range(3)])
    times = [f"202001011{k}0000.000000" for k in range(3)]

    def frame(groups, time):
        groups.FrameContentSequence[0].FrameReferenceDateTime = f"202001011{time}0040.000000"

    for name, told in (("A", frame), ("B", None)):
        phantoms.write_enhanced(tmp_path / name / "a.dcm", values, times, frame=told)
        import_dicom(tmp_path / name, tmp_path / "out", name)
    infos = tmp_path / "out" / "patient_info_files"
    a, b = (json.loads((infos / f"{n}.json").read_text())["import"]["timing"] for n in "AB")
    assert (a["centres_s"], a["centres_are"]) == ([40, 3640, 7240], "FrameReferenceDateTime")
    assert (b["centres_s"], b["centres_are"]) == (None, "unknown, because no element gives it")
    assert a["times_are"] == b["times_are"] == "start of each phase"


def test_phases_that_do_not_enhance_are_imported_with_a_warning(tmp_path):
    for phase in range(2):
        phantoms.write_phase(
            tmp_path / "in",
            phase,
            values=phantoms.without_contrast(phase),
            AcquisitionTime=f"10{phase:02d}00",
        )
    (case,) = imported(tmp_path / "in", tmp_path / "out").imported
    assert any("no enhancement is visible" in warning.text for warning in case.warnings)
    assert len(volumes_of(tmp_path / "out")) == 2


def test_phases_in_the_wrong_order_are_asked_about_and_imported_with_a_warning(tmp_path):
    for phase in range(3):
        phantoms.write_phase(
            tmp_path / "in",
            phase,
            values=phantoms.dce_values(2 - phase),
            AcquisitionTime=f"10{phase:02d}00",
        )
    with pytest.raises(CaseError, match="contrast to arrive and stay"):
        imported(tmp_path / "in", tmp_path / "out")
    named = named_series([1])
    (case,) = imported(tmp_path / "in", tmp_path / "out", use=named).imported
    assert "phase 0 looks brighter than the later ones" in " ".join(
        warning.text for warning in case.warnings
    )


# ---- nothing is overwritten, nothing half


def test_a_case_that_is_there_is_not_overwritten_unasked(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out", "P1")
    before = (tmp_path / "out/images/P1/P1_0000.nii.gz").stat().st_mtime_ns
    with pytest.raises(SaveConflictError, match="skip finished cases"):
        imported(tmp_path / "in", tmp_path / "out", "p1")
    assert (tmp_path / "out/images/P1/P1_0000.nii.gz").stat().st_mtime_ns == before


def test_resume_passes_over_a_case_that_is_there(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out")
    again = imported(tmp_path / "in", tmp_path / "out", existing=Existing.RESUME)
    assert (again.imported, again.skipped) == ((), ("P1",))


def test_resume_adds_the_row_that_a_killed_import_left_out(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out")
    table = tmp_path / "out" / "clinical_and_imaging_info.csv"
    before = table.read_bytes()
    table.unlink()
    imported(tmp_path / "in", tmp_path / "out", existing=Existing.RESUME)
    assert table.read_bytes() == before


def test_patient_info_that_somebody_else_wrote_is_not_overwritten_unasked(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    info = tmp_path / "out" / "patient_info_files" / "P1.json"
    info.parent.mkdir(parents=True)
    info.write_text('{"patient_id": "P1", "primary_lesion": {}}')
    with pytest.raises(SaveConflictError, match="is not from an import"):
        imported(tmp_path / "in", tmp_path / "out")
    assert files_below(tmp_path / "out") == ["patient_info_files/P1.json"]
    assert "primary_lesion" in info.read_text()


def test_overwrite_replaces_the_whole_case(tmp_path):
    phantoms.write_exam(tmp_path / "in", 4)
    imported(tmp_path / "in", tmp_path / "out")
    imported(tmp_path / "in", tmp_path / "out", phases=(0, 1), existing=Existing.OVERWRITE)
    assert len(volumes_of(tmp_path / "out")) == 2


@pytest.fixture
def unmeasured(monkeypatch):
    """Files whose length nobody compares with their header: the values break off while read."""
    monkeypatch.setattr("napari_mamamia.io.dicom.headers.require_room", lambda *_, **__: None)


def test_a_file_that_is_cut_is_told_with_its_headers(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    file = tmp_path / "in" / "IM_2_001.dcm"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(
        CaseError,
        match=r"640 bytes.*IM_2_001\.dcm, as its header says, but found 590 after the header",
    ):
        imported(tmp_path / "in", tmp_path / "out")


@pytest.mark.usefixtures("unmeasured")
def test_a_file_that_is_cut_leaves_no_trace_of_the_case(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    file = tmp_path / "in" / "IM_2_001.dcm"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(CaseError, match=r"IM_2_001\.dcm.*truncated"):
        imported(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("unmeasured")
def test_a_failed_overwrite_leaves_the_older_case_as_it_was(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out")
    before = {f: (tmp_path / "out" / f).read_bytes() for f in files_below(tmp_path / "out")}
    file = tmp_path / "in" / "IM_2_001.dcm"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(CaseError):
        imported(tmp_path / "in", tmp_path / "out", existing=Existing.OVERWRITE)
    assert {f: (tmp_path / "out" / f).read_bytes() for f in files_below(tmp_path / "out")} == before


def test_a_cancelled_import_leaves_no_file(tmp_path):
    phantoms.write_exam(tmp_path / "in")

    def stop(progress):
        if progress.text.startswith("Importing"):
            raise Cancelled

    with pytest.raises(Cancelled), listening(stop):
        import_dicom(tmp_path / "in", tmp_path / "out", "P1")
    assert not (tmp_path / "out").exists()


def test_an_import_that_is_cancelled_inside_a_phase_leaves_no_file(tmp_path, monkeypatch):
    phantoms.write_exam(tmp_path / "in")
    write, begun = imported_case.write_volume_job, threading.Event()

    def never_done(*args, **options):
        """Write the first block, and then wait to be stopped."""
        with closing(Stepped(write, *args, **options)) as job:
            step = next(job)
            while True:
                begun.set()
                forward_progress(step)
                time.sleep(0.01)

    monkeypatch.setattr(voxel_writer, "_YIELD_SECONDS", 0.0)
    monkeypatch.setattr(imported_case, "write_volume_job", never_done)
    job = Stepped(import_dicom, tmp_path / "in", tmp_path / "out", "P1")
    for step in job:
        if begun.is_set() and step.text.startswith("Importing"):
            break
    assert list((tmp_path / "out/images").rglob(".*.part"))
    job.close()
    assert not (tmp_path / "out").exists()


# ---- many studies


def write_studies(folder, *names):
    for number, name in enumerate(names):
        phantoms.write_exam(folder / name / "series", 2, StudyInstanceUID=f"2.25.1{number}")


def test_a_folder_of_studies_is_a_batch_and_one_failure_is_one_row(tmp_path):
    write_studies(tmp_path / "in", "A", "B", "C")
    next((tmp_path / "in" / "B" / "series").iterdir()).unlink()
    summary = imported(tmp_path / "in", tmp_path / "out", "")
    assert [case.case_id for case in summary.imported] == ["A_series", "C_series"]
    (failure,) = summary.failures
    assert failure.case_id == "B_series"
    assert "a slice is missing" in failure.reason
    assert sorted(find_data_set(tmp_path / "out").by_id()) == ["A_series", "C_series"]


def test_ids_of_many_studies_are_numbered_after_the_users_prefix(tmp_path):
    write_studies(tmp_path / "in", "Mueller", "Meier")
    summary = imported(tmp_path / "in", tmp_path / "out", "SITE")
    assert [case.case_id for case in summary.imported] == ["SITE_001", "SITE_002"]


@pytest.mark.parametrize("case_id", ["../x", "a/b", "a_0001", "", ".x", "a b"])
def test_ids_that_would_not_be_read_back_are_refused(tmp_path, case_id):
    phantoms.write_exam(tmp_path / "in")
    if case_id:
        with pytest.raises(CaseError, match="expected a case id"):
            imported(tmp_path / "in", tmp_path / "out", case_id)
    else:
        assert imported(tmp_path / "in", tmp_path / "out", "").imported[0].case_id == "in"


# ---- the person


PHI = {
    "PatientName": "Musterfrau^Erika Xanthippe",
    "PatientID": "PID-8675309",
    "PatientBirthDate": "19610417",
    "PatientAddress": "Geheimweg 77",
    "PatientTelephoneNumbers": "030555123",
    "PatientMotherBirthName": "Zwiebelfisch",
    "PatientComments": "knows Frau Quitte",
    "OtherPatientIDs": "ALT-4711",
    "ReferringPhysicianName": "Quacksalber^Otto",
    "PerformingPhysicianName": "Eisenbart^Hans",
    "OperatorsName": "Schalter^Inge",
    "AccessionNumber": "ACC998877",
    "InstitutionName": "Klinikum Nirgendwo",
    "InstitutionAddress": "Nirgendweg 5",
    "StationName": "MRNIRGENDS",
    "DeviceSerialNumber": "SER123454321",
    "StudyID": "STID5566",
    "StudyDescription": "Mamma Musterfrau",
    "SeriesDescription": "dyn Musterfrau",
    "ProtocolName": "Protokoll Musterfrau",
    "StudyDate": "20190613",
    "SeriesDate": "20190613",
    "AcquisitionDate": "20190613",
    "ContentDate": "20190613",
    "ManufacturerModelName": "Modell von Musterfrau",
    "StudyInstanceUID": "1.2.3.4567890.11",
    "SeriesInstanceUID": "1.2.3.4567890.22",
    "FrameOfReferenceUID": "1.2.3.4567890.33",
    "ImageComments": "Geheimnis",
}


@pytest.mark.parametrize("dates", list(Dates))
def test_no_value_of_a_persons_element_is_in_any_written_byte(tmp_path, dates):
    source = tmp_path / "Musterfrau Erika"
    phantoms.write_exam(source, **PHI)
    (case,) = imported(source, tmp_path / "out", "P1", dates=dates).imported
    written = b""
    for name in files_below(tmp_path / "out"):
        raw = (tmp_path / "out" / name).read_bytes()
        written += raw + name.encode() + (gzip.decompress(raw) if name.endswith(".gz") else b"")
    secrets = {part for value in PHI.values() for part in value.replace("^", " ").split()}
    secrets |= {"2019-06-13", "2019/06/13", str(tmp_path), *PHI.values()}
    secrets -= {"von", "dyn", "5", "77"}  # too short or common to be found by a search
    assert [s for s in secrets if s.casefold().encode() in written.lower()] == []
    assert "scanner_model" not in dict(case.kept)


def test_uids_and_dates_are_moved_the_same_way_in_every_import_of_this_user(tmp_path):
    first_visit = {"AcquisitionDate": "20190613", "FrameOfReferenceUID": "2.25.33"}
    phantoms.write_exam(tmp_path / "in", PatientID="77", **first_visit)
    second_visit = {"AcquisitionDate": "20190703", "StudyInstanceUID": "2.25.5"}
    phantoms.write_exam(
        tmp_path / "later", PatientID="77", **second_visit, FrameOfReferenceUID="2.25.34"
    )
    infos = []
    for name, source in (("A", "in"), ("B", "in"), ("C", "later")):
        imported(tmp_path / source, tmp_path / "out", name, dates=Dates.SHIFT)
        infos.append(json.loads((tmp_path / f"out/patient_info_files/{name}.json").read_text()))
    first, again, later = infos
    assert first["import"]["study_uid_remapped"] == again["import"]["study_uid_remapped"]
    assert first["import"]["study_uid_remapped"] != later["import"]["study_uid_remapped"]
    frames = [one["import"]["frame_of_reference_uid_remapped"] for one in infos]
    assert frames[0] == frames[1] != frames[2]
    assert frames[0].startswith("2.25.")
    days = [np.datetime64(i["imaging_data"]["acquisition_date_shifted"]) for i in infos]
    assert days[2] - days[0] == np.timedelta64(20, "D")
    assert 1 <= (np.datetime64("2019-06-13") - days[0]).astype(int) <= 365
    assert len(user_secret()) == 32


def test_a_secret_that_was_being_written_when_the_program_was_killed_is_no_secret(
    own_preferences, monkeypatch
):
    class Killed(BaseException):
        pass

    def killed(_):
        raise Killed

    with monkeypatch.context() as once:
        once.setattr("napari_mamamia.io.dicom.facts.secrets.token_bytes", killed)
        with pytest.raises(Killed):
            user_secret()
    secret = user_secret()
    assert len(secret) == 32
    (path,) = own_preferences.glob("*.key")
    assert path.stat().st_mode & 0o077 == 0
    assert user_secret() == secret


def test_a_folder_that_tells_the_patient_is_refused_as_an_id(tmp_path):
    source = tmp_path / "Musterfrau_2019"
    phantoms.write_exam(source, PatientName="MUSTERFRAU^ERIKA")
    with refuses(CaseError, "enter a case id \\(--case ID\\)"):
        imported(source, tmp_path / "out", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("written", "tesla"), [(15000, 1.5), (30000, 3), (1.5, 1.5), (3.0, 3)])
def test_a_field_in_gauss_is_kept_in_tesla(tmp_path, written, tesla):
    phantoms.write_exam(tmp_path / "in", MagneticFieldStrength=written)
    (case,) = imported(tmp_path / "in", tmp_path / "out", "ISPY1_1002").imported
    assert dict(case.kept)["field_strength"] == tesla


# ---- archives


def zip_of(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path


def test_a_zip_is_imported_like_its_folder(tmp_path):
    values = phantoms.write_exam(tmp_path / "in" / "deep")
    archive = zip_of(tmp_path / "in", tmp_path / "study one.zip")
    summary = imported(archive, tmp_path / "out", "")
    assert summary.imported[0].case_id == "study_one"
    written = np.asarray(volumes_of(tmp_path / "out", "study_one")[0].dataobj).T
    assert np.array_equal(written[:, ::-1], values[0])


@pytest.mark.parametrize("name", ["../evil.dcm", "/etc/evil", "a/../../evil", "..\\evil", "C:evil"])
def test_a_zip_whose_names_lead_out_of_the_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(FormatError, match="points outside the folder"):
        imported(tmp_path / "a.zip", tmp_path / "out")
    assert files_below(tmp_path) == ["a.zip"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.dcm", bytes(30_000_000))
    with pytest.raises(FormatError, match="as a zip bomb does"):
        imported(tmp_path / "a.zip", tmp_path / "out")


def test_a_zip_that_understates_its_sizes_is_stopped_while_unpacking(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.dcm", bytes(30_000_000))
    size = (30_000_000).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (1000).to_bytes(4, "little")))
    with pytest.raises(FormatError, match=r"a\.zip"):
        imported(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FormatError, match="is a link"):
        imported(tmp_path / "a.zip", tmp_path / "out")


# ---- the command


def test_a_dry_run_prints_series_phases_times_and_what_is_left_out_and_writes_nothing(tmp_path):
    phantoms.write_exam(tmp_path / "in" / "dyn")
    phantoms.write_phase(
        tmp_path / "in" / "loc", 9, SeriesNumber=2, SeriesInstanceUID="2.25.9",
        SeriesDescription="localizer",
    )  # fmt: skip
    (tmp_path / "in" / "report.pdf").write_text("x")
    done = CliRunner().invoke(
        app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--dry-run"]
    )
    assert done.exit_code == 0, done.output
    for text in ("  pre: 0.0 s", "post 1: 90.0 s, 4 slices", "pre is 0", "localiser",
                 "ordered by AcquisitionTime", "TriggerTime: missing",
                 "1 file below the source left out"):  # fmt: skip
        assert text in done.output
    assert not (tmp_path / "out").exists()


def test_a_refused_study_ends_the_command_with_the_reason(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (tmp_path / "in" / "IM_1_002.dcm").unlink()
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from napari_mamamia.cli import main; main()", "import"),
            *(str(tmp_path / "in"), "--out", str(tmp_path / "out")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: expected 3 images at each of the ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_batch_with_a_failure_exits_with_3(tmp_path):
    write_studies(tmp_path / "in", "A", "B")
    next((tmp_path / "in" / "B" / "series").iterdir()).unlink()
    done = CliRunner().invoke(app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 3
    assert "1 case imported" in done.output


# ---- real files


def same_as_reference(out, case_id, reference, exact):
    image = nibabel.load(reference)
    expected = np.asarray(image.dataobj)
    volumes = volumes_of(out, case_id)
    found = np.stack([np.asarray(volume.dataobj) for volume in volumes], axis=-1)
    assert volumes[0].affine == pytest.approx(image.affine, abs=2e-5)
    assert found.shape == expected.shape
    if exact:
        assert np.array_equal(found, expected)
    else:
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.real
@pytest.mark.parametrize(
    ("folder", "series", "exact"),
    [("ge_4d", 4, True), ("siemens_enhanced", 6, True), ("philips_4d", 201, False)],
)
def test_real_series_equal_their_reference_voxel_for_voxel(
    real_data, tmp_path, folder, series, exact
):
    """They are echo-planar, so they are named."""
    source = real_data("dicom") / folder
    imported(source / "In", tmp_path / "out", use=named_series([series]))
    (reference,) = (source / "Ref").glob("*.nii")
    same_as_reference(tmp_path / "out", "P1", reference, exact)


@pytest.mark.real
@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("slicecount", "expected at least 3 slices in series 4, but found 2"),
        ("sliceorientation", "expected the same orientation throughout series 202"),
    ],
)
def test_real_series_that_must_be_refused_are_and_nothing_is_written(
    real_data, tmp_path, folder, reason
):
    with pytest.raises(CaseError, match=reason):
        imported(real_data("dicom") / "refuse" / folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.real
def test_a_real_series_without_times_is_imported_by_its_instance_numbers(real_data, tmp_path):
    with refuses(CaseError, r"8 x echo-planar.*--use series"):
        imported(real_data("dicom") / "ge_fmri", tmp_path / "out")
    named = named_series([13])
    (case,) = imported(real_data("dicom") / "ge_fmri", tmp_path / "out", use=named).imported
    assert case.times_s is None
    assert "was used because it was chosen" in case.warnings[0].text
    assert len(volumes_of(tmp_path / "out")) == 2


@pytest.mark.parity
@pytest.mark.parametrize("orientation", [phantoms.AXIAL, phantoms.SAGITTAL])
def test_files_equal_those_of_dcm2niix(tmp_path, orientation):
    program = shutil.which("dcm2niix")
    if program is None:
        pytest.skip("dcm2niix is not installed (a Debian package)")
    phantoms.write_exam(
        tmp_path / "in", per_phase=True, ImageOrientationPatient=list(orientation),
        AcquisitionDate="20200101", SliceThickness=2.0, PatientPosition="FFP",
        InstanceNumber=lambda phase, index: index + 1,
    )  # fmt: skip
    (tmp_path / "peer").mkdir()
    subprocess.run(
        [program, "-z", "n", "-f", "%s", "-o", str(tmp_path / "peer"), str(tmp_path / "in")],
        check=True,
        capture_output=True,
    )
    imported(tmp_path / "in", tmp_path / "out")
    for index, volume in enumerate(volumes_of(tmp_path / "out")):
        peer = nibabel.load(tmp_path / "peer" / f"{5 + index}.nii")
        assert volume.affine == pytest.approx(peer.affine, abs=1e-4)
        assert np.array_equal(np.asarray(volume.dataobj), np.asarray(peer.dataobj))


def test_looking_writes_nothing_and_names_the_problem_of_each_study(tmp_path):
    write_studies(tmp_path / "in", "A", "B")
    next((tmp_path / "in" / "B" / "series").iterdir()).unlink()
    before = files_below(tmp_path)
    good, bad = look_into(tmp_path / "in")
    assert good.exam is not None
    assert "a slice is missing" in bad.problem
    assert files_below(tmp_path) == before
