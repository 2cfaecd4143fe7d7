"""Every file is used, left out by a named rule, or unreadable; and what the user says of it."""

import importlib.util
import json
import shutil
import zipfile
from pathlib import Path

import nibabel
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.printed_remedies import refuses
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings, look_into
from napari_mamamia.services.dicom.inspection import look_at_source

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_hostile", Path(__file__).parents[1] / "dicom_hostile.py"
)
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
protocols = hostile.protocols
phantoms = protocols.phantoms
UNREADABLE = "role=unreadable"


def imported(source, out, *use, leave_out=(), case_id="P1", **settings):
    wanted = ImportSettings(
        use=read_selectors(use), leave_out=read_selectors(leave_out), **settings
    )
    return import_dicom(source, out, case_id, wanted)


def volumes_of(out, case_id="P1"):
    files = sorted((out / "images" / case_id).iterdir())
    return [np.asarray(nibabel.load(file).dataobj).T[:, ::-1] for file in files]


def info_of(out, case_id="P1"):
    return json.loads((out / "patient_info_files" / f"{case_id}.json").read_text())["import"]


# ---- files that cannot be read


def emptied(file):
    file.write_bytes(b"")


def zeroed(file):
    file.write_bytes(bytes(file.stat().st_size))


def cut_in_the_preamble(file):
    file.write_bytes(file.read_bytes()[:60])


def cut_in_the_header(file):
    file.write_bytes(file.read_bytes()[:400])


def without_its_preamble(file):
    file.write_bytes(file.read_bytes()[132:])


def linked_to_nothing(file):
    file.unlink()
    file.symlink_to(file.with_name("gone"))


DAMAGES = [emptied, zeroed, cut_in_the_preamble, cut_in_the_header, linked_to_nothing]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".dcm", ""])
def test_a_phase_whose_files_are_broken_is_never_silently_missing(tmp_path, damage, suffix):
    phantoms.write_exam(tmp_path / "in")
    for file in sorted((tmp_path / "in").glob("*.dcm")):
        file.rename(file.with_suffix(suffix))
    for file in sorted((tmp_path / "in").glob("IM_2_*")):
        damage(file)
    with refuses(MamamiaError, r"IM_2_001.*3 more such file.*--leave-out role=unread"):
        imported(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_phase_in_a_folder_of_its_own_that_broke_is_no_smaller_exam(tmp_path):
    for k in range(3):
        phantoms.write_phase(
            tmp_path / "in" / f"phase{k}", k, AcquisitionTime=f"10{k:02d}00",
            SeriesNumber=k, SeriesInstanceUID=f"2.25.{k}",
        )  # fmt: skip
    for file in (tmp_path / "in" / "phase2").iterdir():
        emptied(file)
    with pytest.raises(MamamiaError, match=r"phase2.*it is empty"):
        imported(tmp_path / "in", tmp_path / "out")


def test_broken_files_are_left_out_where_that_is_asked_for_and_the_record_says_so(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (tmp_path / "in" / "loc.dcm").write_bytes(b"")
    (case,) = imported(tmp_path / "in", tmp_path / "out", leave_out=[UNREADABLE]).imported
    assert "1 file that cannot be read" in " ".join(warning.text for warning in case.warnings)
    rows = info_of(tmp_path / "out")["series"]
    assert (rows[-1]["use"], rows[-1]["images"]) == ("unreadable", 1)
    assert len(volumes_of(tmp_path / "out")) == 3


def rewritten(folder, write):
    """Write each file of an exam anew, as `write` says."""
    import pydicom

    values = phantoms.write_exam(folder)
    for file in sorted(folder.glob("*.dcm")):
        write(pydicom.dcmread(file), file)
    return values


def bare_implicit(image, file):
    """As before 1993: no preamble, no mark, no meta information."""
    import pydicom

    plain = pydicom.Dataset({element.tag: element for element in image})
    pydicom.dcmwrite(file, plain, implicit_vr=True, little_endian=True)


def bare_explicit(image, file):
    import pydicom

    plain = pydicom.Dataset({element.tag: element for element in image})
    pydicom.dcmwrite(file, plain, implicit_vr=False, little_endian=True)


def only_without_preamble(image, file):
    without_its_preamble(file)


def as_deflated(image, file):
    import pydicom

    image.file_meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    pydicom.dcmwrite(file, image, enforce_file_format=True)


@pytest.mark.parametrize(
    "write", [bare_implicit, bare_explicit, only_without_preamble, as_deflated]
)
@pytest.mark.filterwarnings("error")
def test_forms_of_files_that_pydicom_reads_are_read_and_nothing_is_muttered(tmp_path, write):
    values = rewritten(tmp_path / "in", write)
    imported(tmp_path / "in", tmp_path / "out")
    assert np.array_equal(volumes_of(tmp_path / "out"), values)


def test_a_file_that_begins_like_an_old_one_and_is_none_is_named(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    (tmp_path / "in" / "IM_9_001").write_bytes(b"\x08\x00\x05\x00\x04\x00\x00\x00" + b"\7" * 300)
    with refuses(MamamiaError, r"IM_9_001.*--leave-out role=unreadable"):
        imported(tmp_path / "in", tmp_path / "out")


def zipped(path, folder):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return path


def test_zips_that_are_cut_inside_or_beside_are_told_as_what_they_are(tmp_path):
    phantoms.write_exam(tmp_path / "in")
    whole = zipped(tmp_path / "exam.zip", tmp_path / "in")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(MamamiaError, match=r"cut\.zip, a damaged or incomplete zip archive"):
        imported(cut, tmp_path / "out")
    (tmp_path / "only").mkdir()
    shutil.copy(whole, tmp_path / "only" / "exam.zip")
    for source in (tmp_path / "only", zipped(tmp_path / "outer.zip", tmp_path / "only")):
        with pytest.raises(
            MamamiaError, match=r"zip files inside a folder are not opened: unpack .*exam\.zip"
        ):
            imported(source, tmp_path / "out")
        with pytest.raises(MamamiaError, match=f"MR images in {source}, but"):
            look_at_source(source)
    with pytest.raises(MamamiaError, match="a single DICOM file: choose its folder"):
        imported(next((tmp_path / "in").iterdir()), tmp_path / "out")
    shutil.copy(whole, tmp_path / "in" / "other.zip")
    (study,) = look_into(tmp_path / "in")
    assert study.archives == (str(tmp_path / "in" / "other.zip"),)


def test_two_studies_of_one_folder_are_told_apart_by_day_and_file(tmp_path):
    for uid, day, prefix in (("2.25.7", "20200310", "A"), ("2.25.8", "20210410", "B")):
        phantoms.write_exam(tmp_path, StudyInstanceUID=uid, SeriesInstanceUID=f"{uid}.1",
                            AcquisitionDate=day, prefix=prefix)  # fmt: skip
    told = [study.origin for study in look_into(tmp_path)]
    assert told == ["of 2020-03-10, first file A_0_001.dcm",
                    "of 2021-04-10, first file B_0_001.dcm"]  # fmt: skip


@pytest.mark.parametrize("name", ["notes.txt", "thumb.jpg", ".hidden", "DICOMDIR", "report.pdf"])
def test_empty_files_that_are_no_images_by_their_names_do_not_matter(tmp_path, name):
    phantoms.write_exam(tmp_path / "in")
    (tmp_path / "in" / name).write_bytes(b"")
    assert len(imported(tmp_path / "in", tmp_path / "out").imported) == 1


@pytest.mark.parametrize("n_rows", [16, 8])
def test_values_that_break_off_in_one_phase_are_refused_with_the_file(tmp_path, n_rows):
    phantoms.write_exam(tmp_path / "in")
    file = tmp_path / "in" / "IM_1_002.dcm"
    raw = file.read_bytes()
    n_bytes = 2 * 20 * n_rows
    file.write_bytes(raw[:-n_bytes] + bytes(n_bytes))
    blank = "16 rows hold only one value" if n_rows == 16 else f"last {n_rows} of 16 rows are blank"
    with refuses(MamamiaError, f"IM_1_002.*its {blank}.*--leave-out series=1,phase=1"):
        imported(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_slices_that_are_blank_in_all_phases_are_no_fault(tmp_path):
    for k in range(3):
        values = phantoms.dce_values(k)
        values[0], values[:, 10:] = 0, 0
        phantoms.write_phase(tmp_path / "in", k, values=values, AcquisitionTime=f"10{k:02d}00")
    assert len(imported(tmp_path / "in", tmp_path / "out").imported) == 1


# ---- one odd file or study ends no other


def three_studies(folder):
    for number, name in enumerate(("A", "B", "C")):
        phantoms.write_exam(folder / name, 2, StudyInstanceUID=f"2.25.1{number}")


def test_broken_files_of_an_unknown_study_are_a_failure_beside_the_others(tmp_path):
    three_studies(tmp_path / "in")
    (tmp_path / "in" / "D").mkdir()
    (tmp_path / "in" / "D" / "IM1.dcm").write_bytes(b"")
    done = CliRunner().invoke(app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 3
    assert sorted(p.name for p in (tmp_path / "out" / "images").iterdir()) == ["A", "B", "C"]
    assert "IM1.dcm" in done.stderr


def test_two_patients_in_one_study_end_no_other_study(tmp_path):
    three_studies(tmp_path / "in")
    phantoms.write_exam(
        tmp_path / "in" / "D", 2, StudyInstanceUID="2.25.19",
        PatientID=lambda phase, _: f"P{phase}",
    )  # fmt: skip
    summary = imported(tmp_path / "in", tmp_path / "out", case_id="")
    assert [case.case_id for case in summary.imported] == ["A", "B", "C"]
    assert "one patient" in summary.failures[0].reason
    assert "P0" not in summary.failures[0].reason.split("in ", 1)[1].replace("IM_0", "")


def test_an_image_without_a_place_of_another_sequence_does_not_end_the_exam(tmp_path):
    phantoms.write_exam(tmp_path / "in" / "dyn", ScanningSequence="GR")
    phantoms.write_phase(
        tmp_path / "in" / "t2", 0, SeriesNumber=9, SeriesInstanceUID="2.25.9",
        ScanningSequence="SE", PixelSpacing=None,
    )  # fmt: skip
    imported(tmp_path / "in", tmp_path / "out")
    rows = {row["number"]: row["use"] for row in info_of(tmp_path / "out")["series"]}
    assert rows == {1: "used", 9: "unreadable"}


# ---- thin exams


def test_two_slices_are_refused_for_that_and_taken_when_asked_for(tmp_path):
    values = phantoms.write_exam(tmp_path / "in", shape=(2, 16, 20))
    with refuses(CaseError, r"at least 3 slices .* found 2 .*--allow-thin"):
        imported(tmp_path / "in", tmp_path / "out")
    imported(tmp_path / "in", tmp_path / "out", allow_thin=True)
    assert np.array_equal(volumes_of(tmp_path / "out"), values)


def test_one_slice_is_as_thick_as_its_header_says_or_refused(tmp_path):
    phantoms.write_exam(tmp_path / "in", shape=(1, 16, 20))
    with pytest.raises(CaseError, match="SliceThickness to be above 0 mm"):
        imported(tmp_path / "in", tmp_path / "out", allow_thin=True)
    phantoms.write_exam(tmp_path / "in2", shape=(1, 16, 20), SliceThickness=5.0)
    imported(tmp_path / "in2", tmp_path / "out", allow_thin=True)
    (file, *_) = sorted((tmp_path / "out" / "images" / "P1").iterdir())
    assert nibabel.load(file).header.get_zooms() == pytest.approx((0.75, 0.5, 5.0))


# ---- what the user says of the parts


@pytest.mark.parametrize(
    ("write", "use", "expected"),
    [
        (protocols.mdixon, ["role=fat"], lambda k: protocols.volume(-1, seed=k)),
        (protocols.mdixon, ["series=5,role=water"], protocols.volume),
        (protocols.left_and_right, ["side=left"], lambda k: protocols.volume(k, seed=5)),
        (protocols.left_and_right, ["side=right"], lambda k: protocols.volume(k, seed=6)),
        (
            protocols.left_and_right_in_one_series,
            ["side=left"],
            lambda k: protocols.volume(k, seed=5),
        ),
        (protocols.moco_without_a_word, ["series=5"], protocols.volume),
        (hostile.projections_in_three_planes_inside, ["orientation=axial"], protocols.volume),
        (hostile.two_triggers_of_each_phase, ["trigger=1"], protocols.volume),
        (
            hostile.two_triggers_of_each_phase,
            ["series=5,trigger=2"],
            lambda k: protocols.volume(k, seed=6),
        ),
        (protocols.twist, ["series=4,6"], protocols.volume),
        (protocols.only_fmri, ["series=14"], lambda k: protocols.volume(-1, seed=k)),
        (protocols.two_dynamics, ["series=5"], protocols.volume),
        (protocols.unproven_repeats, ["series=5"], lambda k: protocols.volume(-1, seed=k)),
    ],
)
def test_a_selector_decides_what_the_import_asked(tmp_path, write, use, expected):
    write(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out", *use)
    for k, values in enumerate(volumes_of(tmp_path / "out")):
        assert np.array_equal(values, expected(k))


def test_a_series_that_was_named_and_does_not_count_is_told(tmp_path):
    hostile.another_echo_time_midway(tmp_path / "in")
    (case,) = imported(tmp_path / "in", tmp_path / "out", "series=5,6,7,8").imported
    assert case.times_s == protocols.TIMES[:3]
    (told,) = [warning.text for warning in case.warnings if "was chosen" in warning.text]
    assert told.startswith(
        "series 8 was chosen, but left out, because its sequence differs from that of "
    )
    assert "TE 2.8 ms" in told


def test_what_is_left_out_does_not_count_and_the_rest_does(tmp_path):
    protocols.two_dynamics(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out", leave_out=["series=9"])
    assert np.array_equal(volumes_of(tmp_path / "out")[5], protocols.volume(5))
    rows = {row["number"]: row["fate"] for row in info_of(tmp_path / "out")["series"]}
    assert rows[9] == "left out: not chosen"


def test_an_earlier_pre_is_kept_where_it_is_named(tmp_path):
    protocols.pre_twice(tmp_path / "in")
    imported(tmp_path / "in", tmp_path / "out", "role=phase,earlier-pre")
    assert len(volumes_of(tmp_path / "out")) == 7


def test_naming_copies_beside_their_originals_makes_no_phases_of_them(tmp_path):
    protocols.moco_without_a_word(tmp_path / "in")
    with pytest.raises(CaseError, match="same AcquisitionTime"):
        imported(tmp_path / "in", tmp_path / "out", "series=5,20")


@pytest.mark.parametrize(
    "text",
    ["series=x", "role=tumour", "side=both", "echo=-1", "5", "a=b", "orientation=up", "trigger=x"],
)
def test_a_selector_that_says_nothing_is_refused_with_those_that_do(text):
    with pytest.raises(CaseError, match="a selector such as series=5"):
        read_selectors([text])


def test_series_named_in_the_old_way_are_the_same_selector(tmp_path):
    protocols.two_dynamics(tmp_path / "in")
    for option in (["--series", "5"], ["--use", "series=5"]):
        done = CliRunner().invoke(
            app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / option[0]), "--case",
                  "P1", *option]
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    one, other = (volumes_of(tmp_path / name) for name in ("--series", "--use"))
    assert np.array_equal(one, other)


# ---- the command in a process of its own


@pytest.mark.door
def test_the_dry_run_tells_each_part_in_words_and_as_json_and_writes_no_case(tmp_path):
    protocols.mdixon(tmp_path / "in")
    shutil.copytree(tmp_path / "in", tmp_path / "both")
    protocols.only_dti(tmp_path / "both")
    words = ("import", tmp_path / "both", "--out", tmp_path / "out", "--dry-run")
    done = mamamia(*words)
    assert done.returncode == 0, done.stderr
    as_json = mamamia(*words, "--json")
    assert (as_json.returncode, "water" in as_json.stderr) == (0, True)
    (study,) = json.loads(as_json.stdout)["studies"]
    parts = {(row["number"], row["part"]): row for row in study["parts"]}
    assert {key: (row["role"], row["use"]) for key, row in parts.items()} == {
        (5, "water"): ("water", "used"),
        (5, "fat"): ("fat", "left out"),
        (12, ""): ("diffusion", "left out"),
    }
    assert parts[5, "fat"]["evidence"] == "F in ImageType"
    assert parts[12, ""]["sentence"] == "left out: diffusion"
    assert study["times_s"] == list(protocols.TIMES)
    for word in ("water", "left out", "F in", "diffusion"):
        assert word in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.door
def test_a_study_that_must_be_asked_about_ends_the_command_with_the_selectors(tmp_path):
    protocols.left_and_right(tmp_path / "in")
    command = ("import", tmp_path / "in", "--out", tmp_path / "out", "--case")
    asked = mamamia(*command, "P1")
    assert asked.returncode == 1
    assert "--use side=left" in asked.stderr
    for side in ("left", "right"):
        done = mamamia(*command, f"P1_{side}", "--use", f"side={side}")
        assert done.returncode == 0, done.stderr
    assert len(volumes_of(tmp_path / "out", "P1_left")) == 6


def test_a_refused_study_says_of_each_part_that_it_asks_or_why_it_is_left_out(tmp_path):
    protocols.two_dynamics(tmp_path / "in")
    protocols.only_dti(tmp_path / "in")
    (found,) = look_into(tmp_path / "in")
    assert {row.number: (row.use, row.role) for row in found.rows} == {
        5: ("asked", "phase"), 9: ("asked", "phase"), 12: ("left out", "diffusion"),
    }  # fmt: skip


def test_no_word_of_a_description_is_in_the_record(tmp_path):
    protocols.dynamic(tmp_path / "in")
    protocols.series(
        tmp_path / "in", 9, 0, protocols.volume(1), 900,
        SeriesDescription="subtrMusterfrau", PatientName="Musterfrau^Erika",
    )  # fmt: skip
    imported(tmp_path / "in", tmp_path / "out")
    record = (tmp_path / "out" / "patient_info_files" / "P1.json").read_text()
    assert "usterfrau" not in record
    assert "a word in SeriesDescription" in record
