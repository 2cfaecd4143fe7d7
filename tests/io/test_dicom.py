import sys
from pathlib import Path

import numpy as np
import pytest
from tests.printed_remedies import refuses
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError, FormatError, MissingExtraError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.exam.phases import find_phases, read_dicom_header, read_dicom_into
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.io.layouts.find import find_data_set, recognise

pydicom = pytest.importorskip("pydicom")

MR = "1.2.840.10008.5.1.4.1.1.4"
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"
AXIAL = (1, 0, 0, 0, 1, 0)
SAGITTAL = (0, 1, 0, 0, 0, -1)
OBLIQUE = (0.8, 0.6, 0, -0.6, 0.8, 0)
UIDS = {name: f"2.25.{number}" for number, name in enumerate("ABCDEFGH", start=100)}


def write_slice(path: Path, values: np.ndarray, **elements) -> None:
    """Write one single-frame MR file; keyword arguments replace or (None) remove elements."""
    image = pydicom.Dataset()
    image.file_meta = pydicom.dataset.FileMetaDataset()
    image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    wanted = {
        "SOPClassUID": MR,
        "SOPInstanceUID": pydicom.uid.generate_uid(),
        "StudyInstanceUID": "2.25.1",
        "Modality": "MR",
        "ImageType": ["ORIGINAL", "PRIMARY", "M"],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": values.shape[0],
        "Columns": values.shape[1],
        "BitsAllocated": 8 * values.itemsize,
        "BitsStored": 8 * values.itemsize,
        "HighBit": 8 * values.itemsize - 1,
        "PixelRepresentation": int(values.dtype.kind == "i"),
        **elements,
    }
    for name, value in wanted.items():
        if value is not None:
            setattr(image, name, value)
    image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
    image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    image.PixelData = values.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    pydicom.dcmwrite(path, image, enforce_file_format=True)


def write_series(
    folder: Path,
    series: str = "A",
    number: int | None = 1,
    time: str | None = "120000",
    shape=(4, 3, 5),
    orientation=AXIAL,
    spacing=(0.5, 0.75),
    gap=2.0,
    origin=(-10.0, -20.0, 30.0),
    dtype=np.int16,
    heights=None,
    **elements,
) -> np.ndarray:
    """Write a series and return its (z, y, x) values; files are named against slice order."""
    seed = sum(map(ord, series))
    volume = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    normal = np.cross(orientation[:3], orientation[3:])
    for index in range(shape[0]):
        height = index * gap if heights is None else heights[index]
        write_slice(
            folder / f"{series}_{shape[0] - index:03d}.dcm",
            volume[index],
            **{
                "SeriesInstanceUID": UIDS[series],
                "SeriesNumber": number,
                "AcquisitionTime": time,
                "PixelSpacing": list(spacing),
                "ImageOrientationPatient": list(orientation),
                "ImagePositionPatient": [float(v) for v in np.array(origin) + height * normal],
                **elements,
            },
        )
    return volume


def read(files):
    header = read_dicom_header(files)
    out = np.zeros(header.grid.shape, header.dtype)
    read_dicom_into(files, header, out)
    return header, out


# ---- phases and times


def test_series_become_phases_in_order_of_acquisition_time(tmp_path):
    values = {
        name: write_series(tmp_path, name, number, time)
        for name, number, time in [("C", 7, "120210.5"), ("A", 3, "115959"), ("B", 5, "120100")]
    }
    case = find_phases(tmp_path)
    assert case.case_id == tmp_path.name
    assert [phase.time_s for phase in case.phases] == [0.0, 61.0, 131.5]
    for phase, name in zip(case.phases, "ABC", strict=True):
        assert np.array_equal(read(phase.files)[1], values[name])


def test_series_in_direct_subfolders_are_one_exam(tmp_path):
    root = tmp_path / "Untersuchung ä 1"
    write_series(root / "pre", "A", 1, "120000")
    write_series(root / "post 1", "B", 2, "120130")
    assert recognise(root) is LayoutKind.DICOM
    data_set = find_data_set(root)
    assert data_set.kind is LayoutKind.DICOM
    assert [phase.time_s for phase in data_set.cases[0].phases] == [0.0, 90.0]


def test_one_series_is_one_phase_at_time_0(tmp_path):
    write_series(tmp_path, time=None)
    (phase,) = find_phases(tmp_path).phases
    assert (len(phase.files), phase.time_s) == (4, 0.0)


def test_files_of_a_phase_are_in_slice_order_whatever_their_names(tmp_path):
    write_series(tmp_path)
    (phase,) = find_phases(tmp_path).phases
    assert [file.name for file in phase.files] == [f"A_00{n}.dcm" for n in (4, 3, 2, 1)]


def test_trigger_time_counts_where_acquisition_time_is_the_same(tmp_path):
    write_series(tmp_path, "A", 1, TriggerTime=0)
    write_series(tmp_path, "B", 2, TriggerTime=90000.0)
    assert [phase.time_s for phase in find_phases(tmp_path).phases] == [0.0, 90.0]


def test_content_time_makes_no_two_phases_of_one_acquisition_time(tmp_path):
    write_series(tmp_path, "A", 1, ContentTime="120000")
    write_series(tmp_path, "B", 2, ContentTime="120130")
    with refuses(CaseError, r"series 1 and series 2 have the same AcquisitionTime.*--clock"):
        find_phases(tmp_path)


def test_an_exam_over_midnight_is_ordered_by_its_dates(tmp_path):
    write_series(tmp_path, "A", 1, "235930", AcquisitionDate="20200101")
    write_series(tmp_path, "B", 2, "000100", AcquisitionDate="20200102")
    assert [phase.time_s for phase in find_phases(tmp_path).phases] == [0.0, 90.0]


def test_series_without_any_clock_are_ordered_by_their_numbers_and_have_no_times(tmp_path):
    values = {name: write_series(tmp_path, name, n, None) for name, n in [("B", 2), ("A", 1)]}
    phases = find_phases(tmp_path).phases
    assert [phase.time_s for phase in phases] == [None, None]
    assert np.array_equal(read(phases[0].files)[1], values["A"])


def test_series_without_clocks_and_numbers_are_refused_with_each_clock_named(tmp_path):
    write_series(tmp_path, "A", None, None)
    write_series(tmp_path, "B", None, None)
    with pytest.raises(CaseError, match=r"AcquisitionTime: missing.*SeriesNumber: missing"):
        find_phases(tmp_path)


def test_series_numbers_do_not_count_against_acquisition_times(tmp_path):
    write_series(tmp_path, "A", 3, "120000")
    write_series(tmp_path, "B", 5, "120200")
    write_series(tmp_path, "C", 4, "120400")
    phases = find_phases(tmp_path).phases
    assert [phase.files[0].name[0] for phase in phases] == ["A", "B", "C"]
    assert [phase.time_s for phase in phases] == [0.0, 120.0, 240.0]


def test_two_series_of_one_time_are_refused(tmp_path):
    write_series(tmp_path, "A", 1, "120000")
    write_series(tmp_path, "B", 2, "120100")
    write_series(tmp_path, "C", 3, "120100")
    with pytest.raises(CaseError, match="series 2 and series 3 have the same AcquisitionTime"):
        find_phases(tmp_path)


# ---- geometry


@pytest.mark.parametrize(
    ("orientation", "letters"), [(AXIAL, "LPS"), (SAGITTAL, "PIR"), (OBLIQUE, "LPS")]
)
def test_voxels_lie_where_the_headers_say(tmp_path, orientation, letters):
    origin, spacing, gap = (-10.0, 20.0, 30.0), (0.5, 0.75), 2.0
    volume = write_series(tmp_path, orientation=orientation, origin=origin)
    header, out = read(find_phases(tmp_path).phases[0].files)
    assert np.array_equal(out, volume)
    along, down = np.array(orientation[:3]), np.array(orientation[3:])
    z, y, x = 3, 2, 4
    lps = origin + x * 0.75 * along + y * 0.5 * down + z * 2.0 * np.cross(along, down)
    assert header.grid.to_world_mm((z, y, x)) == pytest.approx(lps * [-1, -1, 1])
    assert header.grid.spacing_mm == pytest.approx((gap, *spacing))
    assert header.grid.orientation == letters


@pytest.mark.parity
@pytest.mark.parametrize("orientation", [AXIAL, SAGITTAL, OBLIQUE])
def test_voxels_and_affine_equal_simpleitks(tmp_path, orientation):
    sitk = pytest.importorskip("SimpleITK")
    write_series(tmp_path, orientation=orientation)
    header, out = read(find_phases(tmp_path).phases[0].files)
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path)))
    image = reader.Execute()
    assert np.array_equal(out, sitk.GetArrayFromImage(image))
    lps = np.eye(4)
    lps[:3, :3] = np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()
    lps[:3, 3] = image.GetOrigin()
    assert header.grid.affine == pytest.approx(np.diag([-1, -1, 1, 1]) @ lps, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.uint8])
def test_the_type_of_the_values_is_kept(tmp_path, dtype):
    volume = write_series(tmp_path, dtype=dtype)
    header, out = read(find_phases(tmp_path).phases[0].files)
    assert header.dtype == dtype
    assert np.array_equal(out, volume)


def test_rescale_slope_and_intercept_are_applied(tmp_path):
    volume = write_series(tmp_path, RescaleSlope=2.5, RescaleIntercept=-10)
    header, out = read(find_phases(tmp_path).phases[0].files)
    assert (header.slope, header.intercept, header.dtype) == (2.5, -10.0, np.float32)
    assert np.array_equal(out, (volume * 2.5 - 10).astype(np.float32))


def test_slices_scaled_one_by_one_keep_their_own_scale(tmp_path):
    volume = write_series(tmp_path, RescaleSlope=1)
    write_slice(
        tmp_path / "A_001.dcm",
        volume[3],
        SeriesInstanceUID=UIDS["A"],
        PixelSpacing=[0.5, 0.75],
        ImageOrientationPatient=list(AXIAL),
        ImagePositionPatient=[-10, -20, 36],
        RescaleSlope=3,
        RescaleIntercept=1,
    )
    header, out = read(find_phases(tmp_path).phases[0].files)
    assert "have different scalings" in header.warnings[0]
    assert np.array_equal(out[:3], volume[:3])
    assert np.array_equal(out[3], volume[3] * 3 + 1)


def test_reading_reports_each_plane_and_can_be_stopped(tmp_path):
    write_series(tmp_path, shape=(40, 3, 5))
    files = find_phases(tmp_path).phases[0].files
    header = read_dicom_header(files)
    out = np.zeros(header.grid.shape, header.dtype)
    job = Stepped(read_dicom_into, files, header, out)
    assert (next(job).done, next(job).total) == (1, 40)
    job.close()
    assert not out[32:].any()  # 32 planes are read ahead
    steps = []
    with listening(steps.append):
        read_dicom_into(files, header, out)
    assert [(step.done, step.total) for step in steps] == [(n, 40) for n in range(1, 41)]


# ---- refusals


def refused(folder: Path, error, *words: str) -> None:
    with pytest.raises(error) as caught:
        find_phases(folder)
    for word in words:
        assert word in str(caught.value)


def test_a_missing_slice_is_refused_with_the_files_beside_the_gap(tmp_path):
    write_series(tmp_path, shape=(5, 3, 5))
    (tmp_path / "A_003.dcm").unlink()
    refused(tmp_path, CaseError, "2.000 mm", "4.000 mm", "A_004.dcm", "A_002.dcm")


def test_a_doubled_slice_is_refused_with_both_files(tmp_path):
    write_series(tmp_path, heights=(0, 2, 2, 4))
    refused(tmp_path, CaseError, "A_003.dcm", "A_002.dcm", "same position")


def test_a_series_of_several_times_that_no_clock_orders_is_refused(tmp_path):
    write_series(tmp_path, shape=(6, 3, 5), heights=(0, 2, 4, 0, 2, 4))
    refused(tmp_path, CaseError, "orders the 2 phases", "InstanceNumber: missing", "the same in")


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_slices_to_check_gaps_are_refused(tmp_path, count):
    write_series(tmp_path, shape=(count, 3, 5))
    refused(tmp_path, CaseError, "at least 3 slices", f"found {count}")


def test_slices_that_shift_sideways_are_refused(tmp_path):
    for index in range(4):
        write_slice(
            tmp_path / f"{index}.dcm",
            np.zeros((3, 5), np.int16),
            SeriesInstanceUID="2.25.9",
            PixelSpacing=[1, 1],
            ImageOrientationPatient=list(AXIAL),
            ImagePositionPatient=[0.5 * index, 0, 2 * index],
        )
    refused(tmp_path, CaseError, "shift sideways")


def test_unequal_slice_counts_are_refused_with_both(tmp_path):
    write_series(tmp_path, "A", 1, "120000")
    write_series(tmp_path, "B", 2, "120100", shape=(5, 3, 5))
    refused(tmp_path, CaseError, "slices x rows x columns 4 x 3 x 5 and 5 x 3 x 5")


@pytest.mark.parametrize(
    "other", [{"spacing": (0.6, 0.75)}, {"origin": (-10, -20, 31)}, {"orientation": SAGITTAL}]
)
def test_series_of_another_place_are_refused(tmp_path, other):
    write_series(tmp_path, "A", 1, "120000")
    write_series(tmp_path, "B", 2, "120100", **other)
    refused(tmp_path, CaseError, "the same size and position", "series 1", "series 2")


def test_two_exams_in_one_folder_are_refused(tmp_path):
    write_series(tmp_path, "A", 1, "120000")
    write_series(tmp_path, "B", 2, "120100", StudyInstanceUID="2.25.2")
    refused(tmp_path, CaseError, "different studies")


@pytest.mark.parametrize(
    ("elements", "word"),
    [
        ({"spacing": (0.6, 0.75)}, "PixelSpacing"),
        ({"orientation": SAGITTAL}, "orientation"),
        ({"shape": (1, 4, 5)}, "size"),
    ],
)
def test_slices_of_one_series_that_differ_are_refused(tmp_path, elements, word):
    write_series(tmp_path / "a")
    write_series(tmp_path / "b", **({"shape": (1, 3, 5), "origin": (-10, -20, 38)} | elements))
    refused(tmp_path, CaseError, f"expected the same {word}", "series 1")


@pytest.mark.parametrize(
    "name",
    ["PixelSpacing", "ImageOrientationPatient", "ImagePositionPatient", "Rows", "BitsAllocated"],
)
def test_a_missing_element_is_refused_with_file_and_name(tmp_path, name):
    write_series(tmp_path)
    image = pydicom.dcmread(tmp_path / "A_002.dcm")
    del image[name]
    image.save_as(tmp_path / "A_002.dcm")
    refused(tmp_path, FormatError, f"expected {name}", "A_002.dcm")


@pytest.mark.parametrize(
    ("elements", "words"),
    [
        ({"PixelSpacing": [0, 1]}, ("PixelSpacing", "above 0 mm")),
        ({"ImagePositionPatient": [0, 1]}, ("3 numbers", "ImagePositionPatient")),
        ({"NumberOfFrames": 6}, ("several frames",)),
    ],
)
def test_odd_elements_are_refused_with_the_file(tmp_path, elements, words):
    write_series(tmp_path, **elements)
    refused(tmp_path, FormatError, ".dcm", *words)


def test_a_folder_of_computed_images_only_is_refused_by_their_kind(tmp_path):
    write_series(tmp_path, ImageType=["DERIVED", "PRIMARY", "SUB"])
    refused(tmp_path, FormatError, "4 x computed from others (a subtraction)")


def test_directions_that_are_not_at_right_angles_are_refused(tmp_path):
    write_series(tmp_path, ImageOrientationPatient=[1, 0, 0, 0.6, 0.8, 0])
    refused(tmp_path, CaseError, "perpendicular")


def test_images_that_are_no_mr_are_left_out(tmp_path):
    write_series(tmp_path)
    write_slice(tmp_path / "note.dcm", np.zeros((2, 2), np.uint8), SOPClassUID=SECONDARY_CAPTURE)
    assert len(find_phases(tmp_path).phases) == 1


def test_a_folder_of_other_images_only_is_refused_by_their_name(tmp_path):
    write_slice(tmp_path / "note.dcm", np.zeros((2, 2), np.uint8), SOPClassUID=SECONDARY_CAPTURE)
    refused(tmp_path, FormatError, "1 x Secondary Capture Image Storage")


def test_a_folder_without_dicom_is_refused(tmp_path):
    refused(tmp_path, FormatError, "expected MR images", "none of its")


def test_a_file_that_was_cut_is_refused_by_name(tmp_path):
    write_series(tmp_path)
    files = find_phases(tmp_path).phases[0].files
    header = read_dicom_header(files)
    whole = files[2].read_bytes()
    files[2].write_bytes(whole[:-10])
    with pytest.raises(FormatError, match=files[2].name):
        read_dicom_into(files, header, np.zeros(header.grid.shape, header.dtype))
    files[2].write_bytes(whole[:140])
    with pytest.raises(FormatError, match=files[2].name):
        find_phases(tmp_path)


def test_files_out_of_order_are_refused(tmp_path):
    write_series(tmp_path)
    files = find_phases(tmp_path).phases[0].files
    with pytest.raises(FormatError, match="slice order"):
        read_dicom_header(files[::-1])


def test_a_plane_of_another_size_is_refused(tmp_path):
    write_series(tmp_path)
    files = find_phases(tmp_path).phases[0].files
    header = read_dicom_header(files)
    with pytest.raises(FormatError, match="rows and columns"):
        read_dicom_into(files, header, np.zeros((4, 9, 9), header.dtype))


def test_without_pydicom_the_extra_is_named(tmp_path, monkeypatch):
    write_series(tmp_path, SOPClassUID=f"{MR}.1")
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[dicom\]"):
        find_phases(tmp_path)


# ---- real files


@pytest.mark.real
@pytest.mark.parametrize(
    ("folder", "error", "word"),
    [
        ("refuse/sliceorientation", CaseError, "expected the same orientation"),
        ("refuse/slicecount", CaseError, "at least 3 slices"),
    ],
)
def test_real_series_that_leave_a_doubt_are_refused_for_the_right_reason(
    real_data, folder, error, word
):
    path = real_data("dicom") / folder
    assert recognise(path) is LayoutKind.DICOM
    with pytest.raises(error, match=word):
        find_data_set(path)


@pytest.mark.real
def test_one_volume_of_a_real_series_equals_its_reference(real_data):
    nibabel = pytest.importorskip("nibabel")
    files = sorted((real_data("dicom") / "ge_4d" / "In").iterdir())
    places = {}
    for file in files:
        header = pydicom.dcmread(file, stop_before_pixels=True)
        places.setdefault(tuple(header.ImagePositionPatient), []).append(
            (int(header.InstanceNumber), file)
        )
    first = [min(images)[1] for images in places.values()]
    first.sort(key=lambda f: float(pydicom.dcmread(f, stop_before_pixels=True).SliceLocation))
    header = read_dicom_header(first)
    out = np.zeros(header.grid.shape, header.dtype)
    read_dicom_into(first, header, out)
    (reference,) = (real_data("dicom") / "ge_4d" / "Ref").glob("*.nii")
    image = nibabel.load(reference)
    expected = np.asarray(image.dataobj)[..., 0]
    to_reference = np.linalg.inv(image.affine) @ header.grid.affine
    corners = to_reference @ np.array([[0, 63, 0, 0], [0, 0, 63, 0], [0, 0, 0, 14], [1, 1, 1, 1]])
    assert corners[:3] == pytest.approx(np.round(corners[:3]), abs=0.01)
    assert np.array_equal(np.sort(np.diag(np.round(to_reference[:3, :3]))), [-1, 1, 1])
    flips = tuple(slice(None, None, int(step)) for step in np.diag(np.round(to_reference[:3, :3])))
    assert np.array_equal(out.transpose(2, 1, 0), expected[flips])
