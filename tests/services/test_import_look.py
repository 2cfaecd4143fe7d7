"""Looking into DICOM before an import, judging it again, checking ids, importing what was seen."""

import importlib.util
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest

from napari_mamamia.core import progress
from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, FormatError, MissingExtraError
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.io.dicom import files as dicom_files
from napari_mamamia.io.exam.selectors import named_series
from napari_mamamia.io.files.sources import DataSet, LayoutKind
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.dicom.check import check_import, default_target
from napari_mamamia.services.dicom.dicom import WantedStudy, import_dicom, import_studies
from napari_mamamia.services.dicom.finding import ImportSettings
from napari_mamamia.services.dicom.inspection import judge_again, look_at_source, read_dicom_case
from napari_mamamia.services.dicom.preview import part_picture, preview_study

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


def look(source):
    return look_at_source(source)


def write_study(folder, n_phases=3, **elements):
    """Write a dynamic series, a localiser, a subtraction and another sequence; return the first."""
    told = {"AcquisitionTime": lambda phase, _: f"10{phase:02d}00", "SeriesDescription": "dyn"}
    values = phantoms.write_exam(
        folder / "dyn", n_phases, SeriesNumber=5, SeriesInstanceUID="2.25.5", **{**told, **elements}
    )
    uid = elements.get("StudyInstanceUID", "2.25.1")
    common = {"StudyInstanceUID": uid, "AcquisitionTime": "095500"}
    for number, name, more in (
        (1, "localizer", {}),
        (8, "SUB", {"ImageType": ["DERIVED", "PRIMARY", "M", "SUB"]}),
        (3, "t2", {"EchoTime": 80, "ScanningSequence": "SE"}),
    ):
        phantoms.write_phase(
            folder / name,
            0,
            SeriesNumber=number,
            SeriesInstanceUID=f"{uid}.{number}",
            SeriesDescription=name,
            **common,
            **more,
        )
    return values


def rows_of(found):
    return {row.number: row for row in found.rows}


# ---- the table


def test_each_series_has_a_kind_and_what_is_left_out_says_why(tmp_path):
    write_study(tmp_path, EchoTime=1.4, ScanningSequence="GR")
    (found,) = look(tmp_path).studies
    rows = rows_of(found)
    assert {number: row.kind for number, row in rows.items()} == {
        1: "localiser",
        3: "another sequence",
        5: "DCE phases",
        8: "computed from others (a subtraction)",
    }
    assert rows[5].phases == (0, 1, 2)
    assert (rows[5].n_slices, rows[5].size, rows[5].n_images) == (4, (16, 20), 12)
    assert all(row.selectors for row in rows.values())
    assert {number: (row.role, row.use) for number, row in rows.items()} == {
        1: ("localiser", "left out"),
        3: ("echo-train", "left out"),
        5: ("phase", "used"),
        8: ("subtraction", "left out"),
    }
    assert rows[8].evidence == "SUB in ImageType"
    assert found.exam.times_s == (0, 60, 120)


def test_a_refused_study_has_its_table_and_the_problem_of_its_series(tmp_path):
    write_study(tmp_path, EchoTime=1.4, ScanningSequence="GR")
    next((tmp_path / "dyn").glob("IM_1_*")).unlink()
    (found,) = look(tmp_path).studies
    assert found.exam is None
    assert "a slice is missing" in rows_of(found)[5].problem
    assert rows_of(found)[5].kind == "no complete stack"
    assert rows_of(found)[3].kind == "another sequence"
    assert rows_of(found)[1].kind == "localiser"


def test_images_without_a_place_are_a_row_with_their_reason(tmp_path):
    phantoms.write_exam(tmp_path, SeriesNumber=5, PixelSpacing=None)
    (found,) = look(tmp_path).studies
    (row,) = found.rows
    assert (row.kind, row.n_images) == ("has no position", 12)
    assert "PixelSpacing" in row.problem


def test_series_that_the_user_left_out_stay_in_the_table(tmp_path):
    write_study(tmp_path, EchoTime=1.4, ScanningSequence="GR")
    (found,) = look(tmp_path).studies
    chosen = judge_again(found, ImportSettings(use=named_series((3,))))
    assert rows_of(chosen)[3].phases == (0,)
    assert rows_of(chosen)[5].kind == "not chosen"


# ---- headers are read once


def test_judging_again_reads_no_header(tmp_path, monkeypatch):
    phantoms.write_exam(tmp_path, AcquisitionNumber=lambda phase, _: 9 - phase)
    (found,) = look(tmp_path).studies
    assert "expected one order of the phases" in found.problem
    monkeypatch.setattr(dicom_files, "read_slices", None)
    judged = judge_again(found, ImportSettings(clock=Clock.ACQUISITION_TIME))
    assert judged.exam.times_s == (0, 90, 120)


def test_progress_counts_the_headers(tmp_path):
    phantoms.write_exam(tmp_path)
    seen = []
    with listening(seen.append):
        look_at_source(tmp_path)
    assert seen[0].text == "Looking for DICOM files"
    assert seen[-1].text == "Sorting study 1 of 1"


def test_looking_for_files_shows_that_it_goes_on_and_can_be_stopped(tmp_path, monkeypatch):
    phantoms.write_exam(tmp_path)
    monkeypatch.setattr(progress, "PACE_S", 0.0)
    seen = []

    def stop(report):
        seen.append(report.text)
        if "so far" in report.text:
            raise Cancelled

    with pytest.raises(Cancelled), listening(stop):
        look_at_source(tmp_path)
    assert seen[-1] == "Looking for DICOM files: 1 files so far"


REAL = {"ge_4d": (4, 10), "philips_4d": (201, 3), "siemens_enhanced": (6, 4), "ge_fmri": (13, 2)}


@pytest.mark.real
@pytest.mark.parametrize("name", list(REAL))
def test_real_exams_show_their_phases_with_a_picture_each(real_data, name):
    """They are echo-planar, so they are named."""
    (looked,) = look(real_data("dicom") / name).studies
    assert looked.exam is None
    number, n_phases = REAL[name]
    found = judge_again(looked, ImportSettings(use=named_series((number,))))
    (row,) = found.rows
    assert row.phases == tuple(range(n_phases))
    assert len(preview_study(found).pictures) == n_phases


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "why"),
    [("slicecount", "at least 3 slices"), ("sliceorientation", "the same orientation")],
)
def test_real_series_that_must_be_refused_say_why_in_their_row(real_data, name, why):
    (found,) = look(real_data("dicom") / "refuse" / name).studies
    assert why in found.problem
    assert {row.kind for row in found.rows} == {"another sequence"}


def test_without_pydicom_the_way_to_install_it_is_said(tmp_path, monkeypatch):
    phantoms.write_exam(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pydicom", None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[dicom\]"):
        look(tmp_path)


# ---- archives


@pytest.fixture
def own_temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_zip_stays_unpacked_until_it_is_let_go(tmp_path, own_temporary):
    phantoms.write_exam(tmp_path / "in")
    archive = Path(shutil.make_archive(str(tmp_path / "exam"), "zip", tmp_path / "in"))
    looked = look(archive)
    assert looked.studies[0].case_id == "exam"
    assert looked.studies[0].exam.stacks[0][0].file.is_file()
    looked.close()
    assert list(own_temporary.iterdir()) == []


def test_a_zip_that_nobody_holds_goes_with_the_last_reference(tmp_path, own_temporary):
    phantoms.write_exam(tmp_path / "in")
    look(Path(shutil.make_archive(str(tmp_path / "exam"), "zip", tmp_path / "in")))
    assert list(own_temporary.iterdir()) == []


@pytest.mark.parametrize("at", ["Unpacking", "Sorting"])
def test_a_look_that_is_stopped_leaves_nothing_behind(tmp_path, own_temporary, at):
    phantoms.write_exam(tmp_path / "in")
    archive = Path(shutil.make_archive(str(tmp_path / "exam"), "zip", tmp_path / "in"))

    def stop(progress):
        if progress.text.startswith(at):
            raise Cancelled

    with pytest.raises(Cancelled), listening(stop):
        look_at_source(archive)
    assert list(own_temporary.iterdir()) == []


# ---- ids


def test_a_folder_that_tells_the_patient_gives_a_neutral_id(tmp_path):
    for k, name in enumerate(("Muster_Erika", "B")):
        phantoms.write_exam(
            tmp_path / name, StudyInstanceUID=f"2.25.1{k}", PatientName="Muster^Erika"
        )
    looked = look(tmp_path)
    assert [found.case_id for found in looked.studies] == ["B", "CASE_002"]
    assert looked.renamed == {1}


@pytest.mark.parametrize(
    ("case_id", "said"),
    [
        ("Erika", "does not identify the patient"),
        ("x4711x", "does not identify the patient"),
        ("", "Give the case an id"),
        ("../x", "expected a case id"),
        ("a_0001", "expected a case id"),
    ],
)
def test_an_id_is_refused_whoever_gave_it(tmp_path, case_id, said):
    phantoms.write_exam(tmp_path / "in", PatientName="Muster^Erika", PatientID="4711")
    (found,) = look(tmp_path / "in").studies
    found = replace(found, case_id=case_id)
    (state,) = check_import([found], tmp_path / "in", tmp_path / "out").ids
    assert said in state.problem


def test_two_studies_of_one_id_are_refused_whatever_the_letter_case(tmp_path):
    phantoms.write_exam(tmp_path)
    (found,) = look(tmp_path).studies
    twins = [replace(found, case_id=name) for name in ("P1", "p1", "P2")]
    states = check_import(twins, tmp_path, None).ids
    assert [bool(state.problem) for state in states] == [True, True, False]


def test_a_case_that_is_there_is_told_before_the_import(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (found,) = look(tmp_path / "in").studies
    out = tmp_path / "out"
    check = check_import([found], tmp_path / "in", out)
    assert not check.ids[0].is_there
    import_studies([WantedStudy(found, ImportSettings())], out)
    again = check_import([replace(found, case_id="IN")], tmp_path / "in", out)
    assert again.ids[0].is_there
    assert again.ids[0].problem == ""


# ---- where it goes


def test_folders_that_cannot_take_a_case_are_named(tmp_path, small_data_set):
    phantoms.write_exam(tmp_path / "in")
    (tmp_path / "file").write_text("x")
    (tmp_path / "raw" / "imagesTr").mkdir(parents=True)
    (tmp_path / "raw" / "imagesTr" / "A_0000.nii.gz").touch()
    said = {
        out: check_import([], tmp_path / "in", out).target_problem
        for out in (
            tmp_path / "in" / "out",
            tmp_path / "file" / "out",
            tmp_path / "raw",
            small_data_set,
            tmp_path / "new" / "out",
            None,
        )
    }
    assert list(said.values()) == [
        f"{tmp_path / 'in' / 'out'} is in the DICOM folder, which must not be changed: "
        "choose a different folder.",
        f"{tmp_path / 'file'} is a file, not a folder: choose a different folder.",
        f"{tmp_path / 'raw'} has a layout to which no case can be added: "
        "choose a different folder.",
        "",
        "",
        "Choose the data set to import into.",
    ]


def test_the_open_data_set_is_the_default_then_a_recent_one_then_a_folder_at_home(
    small_data_set, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    opened = find_data_set(small_data_set)
    dicom = DataSet(tmp_path, LayoutKind.DICOM, ())
    assert default_target(opened, ()) == small_data_set
    assert default_target(dicom, (tmp_path / "gone", small_data_set)) == small_data_set
    assert default_target(None, ()) == tmp_path / "home" / "mamamia-cases"


# ---- pictures


def test_pictures_are_the_middle_slices_under_one_grey_range(tmp_path):
    values = phantoms.write_exam(tmp_path, Manufacturer="SIEMENS")
    (found,) = look(tmp_path).studies
    preview = preview_study(found)
    middle = values[:, 2].astype(float)
    white = max(np.percentile(plane, 99.5) for plane in middle)
    for picture, plane in zip(preview.pictures, middle, strict=True):
        expected = np.clip(plane / white, 0, 1) * 255
        assert np.abs(picture.pixels - expected).max() <= 1
        assert (picture.height_mm, picture.width_mm) == (16 * 0.5, 20 * 0.75)
    assert ("manufacturer", "SIEMENS") in preview.kept


def test_large_slices_are_made_smaller_by_means_of_blocks(tmp_path):
    values = np.arange(3 * 200 * 300, dtype=np.int16).reshape(3, 200, 300) % 1000
    phantoms.write_phase(tmp_path, 0, values=values)
    (found,) = look(tmp_path).studies
    (picture,) = preview_study(found).pictures
    blocks = [
        [values[1, y : y + 3, x : x + 3].mean() for x in range(0, 300, 3)] for y in range(0, 198, 3)
    ]
    small = np.array(blocks)
    low, high = small.min(), np.percentile(small, 99.5)
    expected = np.clip((small - low) / (high - low), 0, 1) * 255
    assert np.abs(picture.pixels - expected).max() <= 1.01


def test_a_look_finds_the_same_as_an_import(tmp_path):
    for phase in range(2):
        phantoms.write_phase(
            tmp_path / "in",
            phase,
            values=phantoms.without_contrast(phase),
            AcquisitionTime=f"10{phase:02d}00",
        )
    (found,) = look(tmp_path / "in").studies
    (case,) = import_dicom(tmp_path / "in", tmp_path / "out", "P1").imported
    assert "no enhancement is visible" in " ".join(warning.text for warning in found.exam.warnings)
    assert case.warnings == found.exam.warnings


# ---- importing what was seen


def test_each_study_is_imported_under_its_own_id_and_settings(tmp_path):
    first = phantoms.write_exam(tmp_path / "in" / "a", 3, StudyInstanceUID="2.25.11")
    phantoms.write_exam(tmp_path / "in" / "b", 2, StudyInstanceUID="2.25.12")
    a, b = look(tmp_path / "in").studies
    wanted = [
        WantedStudy(replace(a, case_id="X"), ImportSettings(phases=(0, 2))),
        WantedStudy(replace(b, case_id="Y"), ImportSettings()),
    ]
    summary = import_studies(wanted, tmp_path / "out")
    assert [case.case_id for case in summary.imported] == ["X", "Y"]
    files = sorted((tmp_path / "out" / "images" / "X").iterdir())
    assert len(files) == 2
    last = np.asarray(nibabel.load(files[1]).dataobj).T
    assert np.array_equal(last[:, ::-1], first[2])
    assert summary.imported[0].times_s == (0, 120)


def test_a_refused_study_is_a_failure_and_the_others_go_on(tmp_path):
    for k, name in enumerate("ab"):
        phantoms.write_exam(tmp_path / "in" / name, StudyInstanceUID=f"2.25.1{k}")
    next((tmp_path / "in" / "a").iterdir()).unlink()
    wanted = [WantedStudy(found, ImportSettings()) for found in look(tmp_path / "in").studies]
    summary = import_studies(wanted, tmp_path / "out")
    assert [case.case_id for case in summary.imported] == ["b"]
    assert "a slice is missing" in summary.failures[0].reason


def test_a_case_that_is_there_is_a_failure_with_what_to_do(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    wanted = [WantedStudy(look(tmp_path / "in").studies[0], ImportSettings())]
    import_studies(wanted, tmp_path / "out")
    again = import_studies(wanted, tmp_path / "out")
    assert again.imported == ()
    assert "a case already exists at" in again.failures[0].reason


def test_files_that_changed_since_the_look_are_refused(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (found,) = look(tmp_path / "in").studies
    phantoms.write_phase(tmp_path / "in", 2, SeriesNumber=1, AcquisitionTime="113000")
    summary = import_studies([WantedStudy(found, ImportSettings())], tmp_path / "out")
    assert "but it has changed" in summary.failures[0].reason
    assert not (tmp_path / "out").exists()


def test_one_id_for_two_studies_writes_nothing(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (found,) = look(tmp_path / "in").studies
    twins = [WantedStudy(replace(found, case_id=name), ImportSettings()) for name in ("P", "p")]
    with pytest.raises(CaseError, match="each study to have a different id"):
        import_studies(twins, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- without a window


def test_a_zip_is_read_as_a_case_without_a_window(tmp_path, own_temporary):
    values = phantoms.write_exam(tmp_path / "in")
    archive = Path(shutil.make_archive(str(tmp_path / "exam"), "zip", tmp_path / "in"))
    case = read_dicom_case(archive)
    assert np.array_equal(case.signal, values)
    assert case.times_s == (0, 90, 120)
    assert list(own_temporary.iterdir()) == []


def test_neither_folder_nor_zip_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(FormatError, match="expected a folder or a zip archive"):
        look(tmp_path / "x.txt")


def middle_of(folder, number):
    (found,) = look(folder).studies
    return next(row.middle for row in found.rows if row.number == number)


def test_the_picture_of_a_part_is_its_middle_slice_in_a_grey_range_of_its_own(tmp_path):
    phantoms.write_exam(tmp_path / "dyn", SeriesNumber=5, SeriesInstanceUID="2.25.5")
    values = phantoms.write_phase(
        tmp_path / "sub", 1, values=phantoms.dce_values(1) - phantoms.dce_values(0), SeriesNumber=9,
        SeriesInstanceUID="2.25.9", ImageType=["DERIVED", "PRIMARY", "SUB"],
    )  # fmt: skip
    picture = part_picture(middle_of(tmp_path, 9))
    plane = values[2].astype(float)
    low, high = plane.min(), np.percentile(plane, 99.5)
    expected = np.clip((plane - low) / (high - low), 0, 1) * 255
    assert np.abs(picture.pixels - expected).max() <= 1
    assert (picture.height_mm, picture.width_mm) == (16 * 0.5, 20 * 0.75)


def test_a_part_without_whole_stacks_has_a_picture_too(tmp_path):
    write_study(tmp_path)
    next((tmp_path / "t2").glob("IM_0_002.dcm")).unlink()
    assert part_picture(middle_of(tmp_path, 3)).pixels.shape == (16, 20)


def test_a_plane_far_too_large_for_a_picture_is_not_read(tmp_path):
    phantoms.write_exam(tmp_path, SeriesNumber=5)
    huge = replace(middle_of(tmp_path, 5), shape=(65535, 65535))
    with pytest.raises(FormatError, match="at most 16,777,216 pixels"):
        part_picture(huge)


def test_a_plane_of_one_row_has_a_picture(tmp_path):
    phantoms.write_exam(tmp_path, SeriesNumber=5, shape=(4, 1, 400))
    piece = middle_of(tmp_path, 5)
    assert part_picture(piece).pixels.shape == (1, 100)


def test_a_scaling_that_is_no_number_gives_a_picture_all_the_same(tmp_path):
    phantoms.write_exam(tmp_path, SeriesNumber=5)
    piece = middle_of(tmp_path, 5)
    broken = replace(piece, scaling=replace(piece.scaling, slope=float("nan")))
    assert part_picture(broken).pixels.shape == (16, 20)
