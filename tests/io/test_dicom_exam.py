"""Which images of a study are phases, what orders them, and what is refused or left out."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.printed_remedies import refuses

from napari_mamamia.core.choices import Clock
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.io.dicom import headers as dicom_headers
from napari_mamamia.io.dicom.files import read_studies
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.kinds import role_by_description
from napari_mamamia.io.dicom.pixels import fill_planes
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.dicom.quick import read_quickly
from napari_mamamia.io.dicom.roles import Role
from napari_mamamia.io.exam.exam import find_exam
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.exam.selectors import Selection, named_series
from napari_mamamia.services.case.open_case import load_case

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)


def exam_of(folder, **options):
    (study,) = read_studies(folder)
    assert not study.damaged
    return find_exam(study.images, "the exam", **options)


def values_of(exam):
    out = np.zeros((len(exam.stacks), *exam.grid.shape), exam.stacks[0][0].stored)
    for index, stack in enumerate(exam.stacks):
        fill_planes(stack, out[index])
    return out


def fates(exam):
    return {row.number: row.fate for row in exam.rows}


# ---- clocks


@pytest.mark.parametrize("per_phase", [False, True])
def test_phases_of_one_series_or_one_series_each_come_in_order_of_time(tmp_path, per_phase):
    values = phantoms.write_exam(tmp_path, 3, per_phase=per_phase)
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.ACQUISITION_TIME
    assert exam.times_s == (0, 90, 120)
    assert np.array_equal(values_of(exam), values)


@pytest.mark.parametrize("flips", [(False, True), (True, False), (True, True)])
def test_a_phase_stored_mirrored_or_upside_down_has_its_voxels_at_their_places(tmp_path, flips):
    """The body of `dce_values` fits no mirrored copy of itself, so a flip would be seen."""
    values = np.stack([phantoms.dce_values(phase) for phase in range(4)])
    rows, columns = (slice(None, None, -1 if back else 1) for back in flips)
    along, down = (np.array(axis) for axis in (phantoms.AXIAL[:3], phantoms.AXIAL[3:]))
    n_rows, n_columns = phantoms.SHAPE[1:]

    def corner(_, index):
        first = np.array(phantoms.place(index), dtype=float)
        first += flips[0] * (n_rows - 1) * phantoms.SPACING[0] * down
        return (first + flips[1] * (n_columns - 1) * phantoms.SPACING[1] * along).tolist()

    turned = [*(along * (1 - 2 * flips[1])), *(down * (1 - 2 * flips[0]))]
    for phase in range(4):
        last = {"ImagePositionPatient": corner, "ImageOrientationPatient": turned}
        phantoms.write_phase(
            tmp_path,
            phase,
            values=values[phase][:, rows, columns] if phase == 3 else values[phase],
            SeriesInstanceUID=f"2.25.{200 + phase}",
            SeriesNumber=5 + phase,
            AcquisitionTime=f"10{phase:02d}00",
            **(last if phase == 3 else {}),
        )
    exam = exam_of(tmp_path)
    assert np.array_equal(values_of(exam), values)


def test_temporal_position_is_believed_first_and_timed_by_another_element(tmp_path):
    values = phantoms.write_exam(
        tmp_path,
        TemporalPositionIdentifier=lambda phase, _: phase + 1,
        AcquisitionTime="100000",
        TriggerTime=lambda phase, _: 12_000.0 + 75_000 * phase,
    )
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.TEMPORAL_POSITION
    assert exam.choice.chosen.timed_by == "TriggerTime"
    assert exam.times_s == (0, 75, 150)
    assert np.array_equal(values_of(exam), values)


def test_positions_are_timed_by_temporal_resolution_where_no_time_is_told(tmp_path):
    phantoms.write_exam(
        tmp_path,
        AcquisitionTime=None,
        TemporalPositionIdentifier=lambda phase, _: phase + 1,
        TemporalResolution=60_500,
    )
    assert exam_of(tmp_path).times_s == (0, 60.5, 121)


def test_a_clock_with_plausible_gaps_is_preferred_to_one_without(tmp_path):
    phantoms.write_exam(
        tmp_path,
        AcquisitionTime=lambda phase, _: f"100000.{phase}",
        ContentTime=lambda phase, _: f"10{phase:02d}00",
    )
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.CONTENT_TIME
    assert exam.times_s == (0, 60, 120)


@pytest.mark.parametrize(
    ("starts", "clock"),
    [
        (("100000", "103000", "110000"), Clock.ACQUISITION_TIME),
        (("100000", "103001", "110002"), Clock.CONTENT_TIME),
        (("100000", "100001", "100002"), Clock.ACQUISITION_TIME),
        (("100000", "100000.9", "100001.8"), Clock.CONTENT_TIME),
    ],
)
def test_gaps_of_a_second_to_half_an_hour_are_plausible_and_no_others(tmp_path, starts, clock):
    phantoms.write_exam(
        tmp_path,
        AcquisitionTime=lambda phase, _: starts[phase],
        ContentTime=lambda phase, _: f"10{phase:02d}00",
    )
    assert exam_of(tmp_path).choice.chosen.clock is clock


def test_the_clock_that_the_user_names_counts(tmp_path):
    phantoms.write_exam(tmp_path, AcquisitionNumber=lambda phase, _: 9 - phase)
    assert exam_of(tmp_path, clock=Clock.ACQUISITION_TIME).times_s == (0, 90, 120)
    reversed_exam = exam_of(tmp_path, clock=Clock.ACQUISITION_NUMBER)
    assert reversed_exam.times_s is None
    assert "AcquisitionTime would give another order" in reversed_exam.warnings[0].text
    assert np.array_equal(values_of(reversed_exam)[2], phantoms.dce_values(0))


def test_two_clocks_that_contradict_each_other_are_refused_with_both(tmp_path):
    phantoms.write_exam(tmp_path, AcquisitionNumber=lambda phase, _: 9 - phase)
    with pytest.raises(CaseError, match=r"by AcquisitionTime .* by AcquisitionNumber"):
        exam_of(tmp_path)


def test_an_exam_over_midnight_without_dates_goes_on_after_it_and_says_so(tmp_path):
    phantoms.write_exam(
        tmp_path,
        AcquisitionTime=lambda phase, _: ("235900", "000030", "000200")[phase],
        InstanceNumber=lambda phase, z: 4 * phase + z,
    )
    exam = exam_of(tmp_path)
    assert exam.times_s == (0, 90, 180)
    assert "AcquisitionTime passes midnight" in exam.warnings[0].text


def test_a_morning_and_an_evening_are_no_exam_over_midnight(tmp_path):
    phantoms.write_exam(
        tmp_path, AcquisitionTime=lambda phase, _: ("080000", "200000", "2001")[phase]
    )
    with pytest.raises(CaseError, match=r"two of them are 12\.0 hours apart"):
        exam_of(tmp_path)


@pytest.mark.filterwarnings("ignore:Invalid value for VR")
def test_a_case_opened_without_an_import_says_which_element_holds_no_time(tmp_path):
    phantoms.write_exam(
        tmp_path,
        AcquisitionTime=lambda phase, _: f"9:{phase:02d}:07",
        InstanceNumber=lambda phase, z: 4 * phase + z,
    )
    case = load_case(find_phases(tmp_path))
    assert [phase.time_s for phase in case.phases] == [None, None, None]
    assert "AcquisitionTime '9:00:07' is no time" in case.warnings[0]


def test_a_named_clock_that_orders_nothing_is_refused_with_those_that_do(tmp_path):
    phantoms.write_exam(tmp_path)
    with refuses(CaseError, r"TriggerTime to order .* does not .missing.*AcquisitionTime"):
        exam_of(tmp_path, clock=Clock.TRIGGER_TIME)


@pytest.mark.parametrize("place_by_place", [False, True])
def test_instance_numbers_order_phases_by_stack_or_by_place(tmp_path, place_by_place):
    number = (lambda k, z: 3 * z + k + 1) if place_by_place else (lambda k, z: 4 * k + z + 1)
    values = phantoms.write_exam(tmp_path, AcquisitionTime="100000", InstanceNumber=number)
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.INSTANCE_NUMBER
    assert exam.times_s is None
    assert "no element gives the times of the phases" in exam.warnings[0].text
    assert np.array_equal(values_of(exam), values)


def test_slices_taken_one_after_the_other_keep_their_phase(tmp_path):
    values = phantoms.write_exam(
        tmp_path, AcquisitionTime=lambda phase, z: f"10{phase:02d}{(2 * z) % 4 * 3:02d}.{z}"
    )
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.ACQUISITION_TIME
    assert np.array_equal(values_of(exam), values)


def test_stacks_that_overlap_in_time_do_not_count_as_ordered(tmp_path):
    phantoms.write_exam(tmp_path, 2, AcquisitionTime=lambda phase, z: f"1000{phase + 9 * z:02d}")
    with pytest.raises(CaseError, match="AcquisitionTime: the stacks overlap in time"):
        exam_of(tmp_path)


def test_a_pre_series_and_a_dynamic_series_become_one_exam(tmp_path):
    pre = phantoms.write_phase(tmp_path, 0, SeriesInstanceUID="2.25.7", SeriesNumber=4,
                               AcquisitionTime="095500")  # fmt: skip
    post = [
        phantoms.write_phase(
            tmp_path,
            k,
            SeriesInstanceUID="2.25.8",
            SeriesNumber=5,
            AcquisitionTime="100000",
            InstanceNumber=lambda phase, z: 4 * phase + z,
        )
        for k in (1, 2)
    ]
    exam = exam_of(tmp_path)
    assert exam.choice.chosen.clock is Clock.SERIES
    assert np.array_equal(values_of(exam), np.stack([pre, *post]))
    assert fates(exam) == {4: "phase 0", 5: "phases 1, 2"}


# ---- what is left out, by name


@pytest.mark.parametrize(
    ("elements", "kind"),
    [
        ({"ImageType": ["DERIVED", "SECONDARY", "SUB"]}, "a subtraction"),
        ({"SeriesDescription": "dyn_SUB2"}, "a subtraction"),
        ({"ImageType": ["DERIVED", "PRIMARY", "PROJECTION IMAGE", "MIP"]}, "a projection"),
        ({"SeriesDescription": "t1 MIP sag"}, "a projection"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "localiser"),
        ({"SeriesDescription": "3-plane loc"}, "localiser"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "P", "ND"]}, "phase image"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "REAL"]}, "real part"),
        ({"EchoTime": 90.0, "RepetitionTime": 5000.0}, "another sequence"),
    ],
)
def test_images_that_cannot_be_phases_are_left_out_by_name(tmp_path, elements, kind):
    timing = {"EchoTime": 1.4, "RepetitionTime": 4.1}
    values = phantoms.write_exam(tmp_path / "dyn", **timing)
    phantoms.write_phase(
        tmp_path / "other",
        5,
        **{**timing, "SeriesInstanceUID": "2.25.9", "SeriesNumber": 9, **elements},
    )
    exam = exam_of(tmp_path)
    assert kind in fates(exam)[9]
    assert np.array_equal(values_of(exam), values)


@pytest.mark.parametrize("description", ["dyn_submax", "Tumour mapping", "phase 2", "block 1"])
def test_descriptions_that_only_resemble_such_names_do_not_leave_a_series_out(
    tmp_path, description
):
    phantoms.write_exam(tmp_path, SeriesDescription=description)
    assert len(exam_of(tmp_path).stacks) == 3


SUBTRACTIONS = """
    subtração subtracao diferença sottrazione aftrek verschil odejmowanie różnica Subtraktion
    Differenz différence diferencia odečet rozdíl вычитание субтракция разность 减影 減影 剪影 減算
    サブトラクション ｻﾌﾞﾄﾗｸｼｮﾝ 감산 차감 çıkarma vähennys erotus kivonás scădere αφαίρεση
"""
DYNAMICS = """
    kontraście динамика 动态增强 造影 조영증강 dinamik sonrası jälkeen dynamik dinâmico pós contrast
"""


@pytest.mark.parametrize(
    ("words", "role"),
    [(SUBTRACTIONS, Role.SUBTRACTION), ("扩散 拡散 확산 diffusion DWI", Role.DIFFUSION)],
)
def test_words_of_other_languages_say_what_a_series_is(words, role):
    found = {word: role_by_description(f"t1 {word}_2", is_derived=False) for word in words.split()}
    assert [word for word, one in found.items() if one is None or one[0] is not role] == []


def test_words_of_other_languages_for_a_dynamic_are_no_role():
    found = {w: role_by_description(f"t1 {w}", is_derived=False) for w in DYNAMICS.split()}
    assert [word for word, one in found.items() if one is not None] == []


def test_phase_images_mixed_into_one_series_are_left_out(tmp_path):
    values = phantoms.write_exam(tmp_path / "m")
    phantoms.write_exam(tmp_path / "p", ImageType=["ORIGINAL", "PRIMARY", "P"])
    exam = exam_of(tmp_path)
    assert np.array_equal(values_of(exam), values)
    assert "left out: phase image" in [row.fate for row in exam.rows]


def test_the_echoes_of_one_series_are_two_acquisitions_and_the_user_must_say_which(tmp_path):
    phantoms.write_exam(tmp_path / "a", EchoTime=1.2)
    phantoms.write_exam(tmp_path / "b", EchoTime=2.5, SeriesNumber=1)
    with refuses(CaseError, r"TE 1.2 ms and 2.5 ms.*--use series=1,echo=1"):
        exam_of(tmp_path)


def test_the_user_may_name_the_series_that_count(tmp_path):
    phantoms.write_exam(tmp_path / "a", per_phase=True)
    phantoms.write_phase(
        tmp_path / "b", 7, shape=(6, 16, 20), SeriesInstanceUID="2.25.9", SeriesNumber=9
    )
    with pytest.raises(CaseError, match="the same size and position"):
        exam_of(tmp_path)
    assert len(exam_of(tmp_path, selection=Selection(named_series((5, 6, 7)))).stacks) == 3


# ---- refusals


def test_a_slice_that_one_phase_lacks_is_refused_by_its_place(tmp_path):
    phantoms.write_exam(tmp_path)
    (tmp_path / "IM_1_002.dcm").unlink()
    with pytest.raises(CaseError, match=r"in series 1, but found 2 .*: a slice is missing"):
        exam_of(tmp_path)


def test_a_slice_doubled_in_one_phase_is_refused_by_its_place(tmp_path):
    phantoms.write_exam(tmp_path)
    phantoms.write_image(
        tmp_path / "x.dcm",
        phantoms.dce_values(0)[0],
        ImagePositionPatient=phantoms.place(2),
        AcquisitionTime="100500",
    )
    with pytest.raises(CaseError, match=r"found 4 at .* a slice is duplicated"):
        exam_of(tmp_path)


def test_a_phase_of_its_own_series_that_lacks_a_slice_is_refused(tmp_path):
    phantoms.write_exam(tmp_path, per_phase=True, shape=(5, 16, 20))
    (tmp_path / "IM_1_003.dcm").unlink()
    with pytest.raises(CaseError, match=r"expected equal gaps of .* in series 6"):
        exam_of(tmp_path)


def test_a_broken_dynamic_series_is_refused_and_no_other_series_takes_its_place(tmp_path):
    phantoms.write_exam(tmp_path, ScanningSequence="GR", SeriesNumber=5)
    phantoms.write_phase(
        tmp_path, 0, prefix="T2", ScanningSequence="SE", SeriesInstanceUID="2.25.9", SeriesNumber=9
    )
    (tmp_path / "IM_1_002.dcm").unlink()
    with pytest.raises(CaseError, match=r"in series 5, but found 2 .* a slice is missing"):
        exam_of(tmp_path)
    assert fates(exam_of(tmp_path, selection=Selection(named_series((9,)))))[9] == "phase 0"


def test_a_tilted_stack_is_refused_with_its_angle(tmp_path):
    phantoms.write_exam(
        tmp_path,
        ImagePositionPatient=lambda _, z: [0.0, 2.0 * z * np.tan(np.radians(15)), 2.0 * z],
    )
    with pytest.raises(CaseError, match=r"shift sideways by 15\.0 degrees"):
        exam_of(tmp_path)


def test_a_table_that_moved_sideways_between_phases_is_refused(tmp_path):
    phantoms.write_exam(tmp_path, ImagePositionPatient=lambda phase, z: [0.5 * phase, 0.0, 2.0 * z])
    with pytest.raises(CaseError, match=r"1.00 mm apart sideways, because the table moved"):
        exam_of(tmp_path)


def test_a_series_that_turns_midway_is_refused_by_its_orientation(tmp_path):
    phantoms.write_exam(
        tmp_path,
        1,
        ImageOrientationPatient=list(phantoms.AXIAL),
    )
    phantoms.write_phase(
        tmp_path, 4, prefix="SAG", ImageOrientationPatient=list(phantoms.SAGITTAL), EchoTime=9.0
    )
    with pytest.raises(CaseError, match="expected only one orientation in series 1"):
        exam_of(tmp_path)


def test_a_file_that_is_there_twice_counts_once(tmp_path):
    values = phantoms.write_exam(tmp_path)
    shutil.copy(tmp_path / "IM_0_001.dcm", tmp_path / "copy.dcm")
    exam = exam_of(tmp_path)
    assert "1 file found twice" in exam.warnings[0].text
    assert np.array_equal(values_of(exam), values)


def test_two_images_of_one_uid_place_and_time_that_differ_are_refused_with_both_files(tmp_path):
    phantoms.write_exam(tmp_path, SOPInstanceUID=lambda phase, z: f"2.25.{phase + 1}.{z + 1}")
    phantoms.write_image(
        tmp_path / "x.dcm", phantoms.dce_values(0)[2], SOPInstanceUID="2.25.1.2",
        ImagePositionPatient=phantoms.place(1), AcquisitionTime="100000",
    )  # fmt: skip
    with pytest.raises(CaseError, match=r"SOPInstanceUID, .*IM_0_003.dcm and .*x.dcm agree in all"):
        exam_of(tmp_path)


def test_an_image_without_pixel_spacing_is_refused_by_name(tmp_path):
    phantoms.write_exam(tmp_path, PixelSpacing=lambda k, z: None if (k, z) == (1, 2) else [1, 1])
    with pytest.raises(FormatError, match=r"expected PixelSpacing in .*IM_1_002.dcm"):
        exam_of(tmp_path)


def test_files_that_are_no_dicom_are_passed_over_and_counted(tmp_path):
    values = phantoms.write_exam(tmp_path / "deep" / "er")
    (tmp_path / "deep" / "notes.txt").write_text("no DICOM")
    (tmp_path / "broken.dcm").write_bytes(bytes(500))
    (tmp_path / "DICOMDIR").write_bytes(b"\0" * 128 + b"DICM")
    (study,) = read_studies(tmp_path)
    assert study.n_foreign == 1
    assert [one.path.name for one in study.damaged] == ["broken.dcm"]
    assert np.array_equal(values_of(find_exam(study.images, "x")), values)


# ---- forms of files


@pytest.mark.parametrize("syntax", [phantoms.IMPLICIT, phantoms.BIG_ENDIAN, phantoms.EXPLICIT])
def test_values_of_each_plain_transfer_syntax_are_equal(tmp_path, syntax):
    values = phantoms.write_exam(tmp_path, syntax=syntax)
    assert np.array_equal(values_of(exam_of(tmp_path)), values)


def test_a_compressed_series_gives_its_values(tmp_path):
    pydicom = pytest.importorskip("pydicom")
    values = phantoms.write_exam(tmp_path)
    for file in tmp_path.iterdir():
        image = pydicom.dcmread(file)
        image.compress(pydicom.uid.RLELossless)
        image.save_as(file)
    assert np.array_equal(values_of(exam_of(tmp_path)), values)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("program", "option"),
    [("dcmcjpeg", "+e1"), ("dcmcjpls", "+el"), ("dcmcjpeg", "+el")],
    ids=["JPEG lossless, first order", "JPEG-LS lossless", "JPEG lossless"],
)
def test_a_series_that_dcmtk_compressed_without_loss_gives_its_values(tmp_path, program, option):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is absent (Debian package dcmtk)")
    values = phantoms.write_exam(tmp_path)
    for file in tmp_path.iterdir():
        subprocess.run([program, option, file, file], check=True)
    syntaxes = {pydicom_of(file).file_meta.TransferSyntaxUID for file in tmp_path.iterdir()}
    assert all(syntax.is_compressed for syntax in syntaxes)
    assert np.array_equal(values_of(exam_of(tmp_path)), values)


def pydicom_of(file):
    return pytest.importorskip("pydicom").dcmread(file)


def test_a_compression_without_a_plugin_is_refused_by_its_name_and_the_packages(
    tmp_path, monkeypatch
):
    pydicom = pytest.importorskip("pydicom")
    phantoms.write_exam(tmp_path)
    for file in tmp_path.iterdir():
        image = pydicom.dcmread(file)
        image.compress(pydicom.uid.RLELossless)
        image.save_as(file)
        image.file_meta.TransferSyntaxUID = pydicom.uid.JPEG2000Lossless
        image.save_as(file)
    decoder = pydicom.pixels.get_decoder(pydicom.uid.JPEG2000Lossless)
    monkeypatch.setattr(decoder, "_available", {})
    with pytest.raises(FormatError, match=r"JPEG 2000 .*Lossless.* needs .*pip install .*dicom"):
        values_of(exam_of(tmp_path))


def test_frames_of_an_enhanced_file_become_phases(tmp_path):
    values = np.stack([phantoms.dce_values(k) for k in range(3)])
    times = [f"202001011000{10 * k:02d}.000000" for k in range(3)]
    phantoms.write_enhanced(tmp_path / "a.dcm", values, times)
    exam = exam_of(tmp_path)
    assert exam.times_s == (0, 10, 20)
    assert np.array_equal(values_of(exam), values)


def test_an_enhanced_file_opens_in_the_window_phase_by_phase(tmp_path):
    values = np.stack([phantoms.dce_values(k) for k in range(3)])
    times = [f"202001011000{10 * k:02d}.000000" for k in range(3)]
    phantoms.write_enhanced(tmp_path / "a.dcm", values, times)
    case = load_case(find_phases(tmp_path))
    assert case.times_s == (0, 10, 20)
    assert np.array_equal(case.signal, values)


def test_an_enhanced_file_that_lacks_frames_is_refused(tmp_path):
    values = np.stack([phantoms.dce_values(k) for k in range(2)])
    times = ["20200101100000", "20200101100100"]
    phantoms.write_enhanced(tmp_path / "a.dcm", values, times, NumberOfFrames=9)
    with pytest.raises(FormatError, match=r"expected 9 frames.*describes 8"):
        exam_of(tmp_path)


def test_philips_own_slope_makes_the_signal_and_rescale_does_not_matter(tmp_path):
    pydicom = pytest.importorskip("pydicom")
    values = phantoms.write_exam(tmp_path, RescaleSlope=2.0, RescaleIntercept=4.0)
    for file in tmp_path.iterdir():
        image = pydicom.dcmread(file)
        block = image.private_block(0x2005, "Philips MR Imaging DD 001", create=True)
        block.add_new(0x0E, "FL", 0.5)
        image.save_as(file)
    exam = exam_of(tmp_path)
    scaling = exam.stacks[0][0].scaling
    # signal = (stored * 2 + 4) / (2 * 0.5) = 2 stored + 4
    assert (scaling.slope, scaling.intercept) == (2.0, 4.0)
    assert scaling.source == "Philips (2005,100E)"
    out = np.zeros(exam.grid.shape, np.float32)
    fill_planes(exam.stacks[1], out)
    assert np.array_equal(out, 2.0 * values[1] + 4.0)


# ---- the quick header reader against pydicom


def assert_quick_is_pydicoms(files, monkeypatch):
    quick = [read_slices(file) for file in files]
    monkeypatch.setattr(dicom_headers, "read_quickly", lambda stream: None)
    slow = [read_slices(file) for file in files]
    assert quick == slow


@pytest.mark.parametrize("syntax", [phantoms.IMPLICIT, phantoms.EXPLICIT])
def test_headers_read_quickly_are_those_that_pydicom_reads(tmp_path, monkeypatch, syntax):
    phantoms.write_exam(
        tmp_path,
        2,
        syntax=syntax,
        SeriesDescription="dyn é",
        SpecificCharacterSet="ISO_IR 100",
        EchoTime=1.25,
        ScanOptions=["FS", "PFP"],
        TriggerTime="12.5 ",
        TemporalPositionIdentifier=3,
        RescaleSlope="2.0",
        RedPaletteColorLookupTableData=bytes(70_000),
        ReferencedImageSequence=[],
    )
    assert_quick_is_pydicoms(sorted(tmp_path.iterdir()), monkeypatch)


@pytest.mark.real
@pytest.mark.parametrize("folder", ["ge_4d/In", "philips_4d/In", "ge_fmri/001", "refuse"])
def test_real_headers_read_quickly_are_those_that_pydicom_reads(real_data, monkeypatch, folder):
    files = sorted(file for file in (real_data("dicom") / folder).rglob("*") if is_dicom_file(file))
    with files[0].open("rb") as stream:
        assert read_quickly(stream) is not None
    assert_quick_is_pydicoms(files[:20], monkeypatch)


@pytest.mark.parametrize("syntax", [phantoms.EXPLICIT, phantoms.IMPLICIT])
def test_the_studies_of_these_tests_have_the_bytes_that_pydicom_writes(tmp_path, syntax):
    elements = {
        "SOPInstanceUID": "2.25.7",
        "ImagePositionPatient": phantoms.place(3),
        "AcquisitionTime": "101530.5",
        "EchoTime": 1.4,
        "PatientName": "Muster^Ute",
        "InstanceNumber": 12,
        "ScanOptions": ["FS", "PFP"],
        "SeriesDescription": "",
    }
    values = phantoms.dce_values(1)[2]
    for name, then in (("ours.dcm", None), ("theirs.dcm", lambda _: None)):  # `then`: by pydicom
        phantoms.write_image(tmp_path / name, values, syntax=syntax, then=then, **elements)
    assert (tmp_path / "ours.dcm").read_bytes() == (tmp_path / "theirs.dcm").read_bytes()
