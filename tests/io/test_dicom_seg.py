"""DICOM SEG: written on a series, read back, accepted by dcmtk and dicom3tools; foreign ones."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError, FormatError, GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.reorientation import reorientation_to
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.exam.selectors import Selection, named_series
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.seg.codes import SegmentMeaning
from napari_mamamia.io.seg.seg import read_segmentation
from napari_mamamia.io.seg.writer import write_segmentation

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("highdicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

MR = "1.2.840.10008.5.1.4.1.1.4"
SHAPE = (5, 12, 10)
BY_MODEL = SegmentMeaning("AUTOMATIC", "kinetic", "napari-mamamia 0.1.0")
ORIENTATIONS = {
    "axial": (1, 0, 0, 0, 1, 0),
    "sagittal": (0, 1, 0, 0, 0, -1),
    "oblique": (0.8, 0.6, 0, -0.6, 0.8, 0),
}


def write_series(folder: Path, orientation=ORIENTATIONS["axial"], **elements) -> Path:
    """Write a complete, plain MR series such as a scanner makes, one file for each slice."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    normal = np.cross(orientation[:3], orientation[3:])
    for k in range(SHAPE[0]):
        image = pydicom.Dataset()
        image.file_meta = pydicom.dataset.FileMetaDataset()
        image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        wanted = {
            "SOPClassUID": MR,
            "SOPInstanceUID": f"2.25.9{k}",
            "StudyInstanceUID": "2.25.7",
            "SeriesInstanceUID": "2.25.8",
            "FrameOfReferenceUID": "2.25.6",
            "PatientID": "TEST",
            "PatientName": "Test^Phantom",
            "PatientBirthDate": "",
            "PatientSex": "F",
            "StudyDate": "20200101",
            "StudyTime": "120000",
            "StudyID": "1",
            "AccessionNumber": "",
            "ReferringPhysicianName": "",
            "Modality": "MR",
            "Manufacturer": "none",
            "SeriesNumber": 3,
            "InstanceNumber": k + 1,
            "ImageType": ["ORIGINAL", "PRIMARY", "M"],
            "AcquisitionTime": "120000",
            "SamplesPerPixel": 1,
            "PhotometricInterpretation": "MONOCHROME2",
            "Rows": SHAPE[1],
            "Columns": SHAPE[2],
            "BitsAllocated": 16,
            "BitsStored": 16,
            "HighBit": 15,
            "PixelRepresentation": 0,
            "PixelSpacing": [0.75, 0.5],
            "SliceThickness": 2.0,
            "ImageOrientationPatient": list(orientation),
            "ImagePositionPatient": list(np.array([-10.0, 5.0, 30.0]) + 2.0 * k * normal),
            **elements,
        }
        for name, value in wanted.items():
            if value is not None:
                setattr(image, name, value)
        image.file_meta.MediaStorageSOPClassUID = MR
        image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
        image.PixelData = rng.integers(0, 900, SHAPE[1:], dtype=np.uint16).tobytes()
        pydicom.dcmwrite(folder / f"{k:03d}.dcm", image, enforce_file_format=True)
    return folder


def series_of(folder):
    source = find_data_set(folder).cases[0].phases[0]
    return source, read_phase_header(source).grid


def labels_on(grid):
    labels = np.zeros(grid.shape, np.uint8)
    labels[1:4, 3:8, 2:6] = 1
    labels[3:5, 9:11, 7:9] = 2
    return labels


NAMES = ((1, "tumour"), (2, "lymph node"))


@pytest.mark.parametrize("plane", sorted(ORIENTATIONS))
def test_a_segmentation_reads_back_as_the_same_masks(tmp_path, plane):
    source, grid = series_of(write_series(tmp_path / "study", ORIENTATIONS[plane]))
    labels = labels_on(grid)
    path = tmp_path / "seg.dcm"
    write_segmentation(labels, NAMES, grid, source, grid, BY_MODEL, path)
    found = read_segmentation(path)
    assert [(s.number, s.label, s.kind) for s in found.segments] == [
        (1, "tumour", "Neoplasm"),
        (2, "lymph node", "Lymph Node"),
    ]
    assert [s.region for s in found.segments] == ["Breast", "Breast"]
    assert {s.algorithm for s in found.segments} == {"AUTOMATIC"}
    assert {s.algorithm_name for s in found.segments} == {"kinetic"}
    assert found.source_series == "2.25.8"
    for segment in found.segments:
        mask = found.on_grid(segment, grid)
        np.testing.assert_array_equal(mask, labels == segment.number)


@pytest.mark.parametrize("code", ["RAS", "LPI", "PSR", "SLA"])
def test_a_mask_whose_axes_run_otherwise_lands_on_the_same_voxels(tmp_path, code):
    """dcm2niix and others turn axes; the place in the patient is what counts."""
    source, grid = series_of(write_series(tmp_path / "study", ORIENTATIONS["oblique"]))
    turn = reorientation_to(grid, code)
    labels = labels_on(grid)
    path = tmp_path / "seg.dcm"
    write_segmentation(turn.array(labels), NAMES, turn.target, source, grid, BY_MODEL, path)
    found = read_segmentation(path)
    np.testing.assert_array_equal(found.on_grid(found.segments[0], grid), labels == 1)
    np.testing.assert_array_equal(
        found.on_grid(found.segments[0], turn.target), turn.array(labels) == 1
    )


def test_the_frames_refer_to_the_slices_they_lie_on(tmp_path):
    source, grid = series_of(write_series(tmp_path / "study"))
    path = tmp_path / "seg.dcm"
    write_segmentation(labels_on(grid), NAMES[:1], grid, source, grid, BY_MODEL, path)
    seg = pydicom.dcmread(path)
    named = {
        float(frame.PlanePositionSequence[0].ImagePositionPatient[2]): str(
            frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        )
        for frame in seg.PerFrameFunctionalGroupsSequence
    }
    assert named == {32.0: "2.25.91", 34.0: "2.25.92", 36.0: "2.25.93"}  # slices 1 to 3
    item = seg.SegmentSequence[0]
    kind, region = item.SegmentedPropertyTypeCodeSequence[0], item.AnatomicRegionSequence[0]
    category = item.SegmentedPropertyCategoryCodeSequence[0]
    assert (category.CodeValue, category.CodingSchemeDesignator) == ("49755003", "SCT")
    assert (kind.CodeValue, region.CodeValue) == ("108369006", "76752008")
    assert (seg.StudyInstanceUID, seg.FrameOfReferenceUID) == ("2.25.7", "2.25.6")
    assert seg.PatientID == "TEST"


def test_a_manual_mask_names_no_algorithm(tmp_path):
    source, grid = series_of(write_series(tmp_path / "study"))
    path = tmp_path / "seg.dcm"
    by_hand = SegmentMeaning("MANUAL", "Ana", "")
    write_segmentation(labels_on(grid), NAMES, grid, source, grid, by_hand, path)
    found = read_segmentation(path).segments[0]
    assert (found.algorithm, found.algorithm_name) == ("MANUAL", "")


def test_another_place_an_empty_mask_and_an_unknown_label_are_refused(tmp_path):
    source, grid = series_of(write_series(tmp_path / "study"))
    moved = grid.affine.copy()
    moved[2, 3] += 1.0
    other, path = Grid(grid.shape, moved), tmp_path / "seg.dcm"
    labels = labels_on(grid)
    with pytest.raises(GridMismatchError, match=r"are up to 1\.00 mm apart"):
        write_segmentation(labels, NAMES, other, source, grid, BY_MODEL, path)
    with pytest.raises(CaseError, match="at least one marked voxel"):
        write_segmentation(labels * 0, NAMES, grid, source, grid, BY_MODEL, path)
    with pytest.raises(CaseError, match=r"DICOM code.*'thing'"):
        write_segmentation(labels, ((1, "thing"),), grid, source, grid, BY_MODEL, path)
    assert not path.exists()


def test_a_series_without_a_frame_of_reference_is_refused_by_name(tmp_path):
    source, grid = series_of(write_series(tmp_path / "study", FrameOfReferenceUID=None))
    with pytest.raises(FormatError, match=r"FrameOfReferenceUID of .*\.dcm"):
        write_segmentation(
            labels_on(grid), NAMES, grid, source, grid, BY_MODEL, tmp_path / "seg.dcm"
        )


def test_a_segmentation_of_another_image_does_not_fall_on_this_one(tmp_path):
    source, grid = series_of(write_series(tmp_path / "study"))
    path = tmp_path / "seg.dcm"
    write_segmentation(labels_on(grid), NAMES, grid, source, grid, BY_MODEL, path)
    found = read_segmentation(path)
    shifted = grid.affine.copy()
    shifted[0, 3] += 0.25  # half a voxel
    with pytest.raises(GridMismatchError, match="do not lie on the voxels of the image"):
        found.on_grid(found.segments[0], Grid(grid.shape, shifted))
    with pytest.raises(GridMismatchError, match="do not lie on the voxels of the image"):
        found.on_grid(found.segments[0], Grid((2, 12, 10), grid.affine))


@pytest.mark.parametrize("content", [b"", b"text", bytes(128) + b"DICM" + b"\x02\x00"])
def test_what_is_no_segmentation_is_one_error(tmp_path, content):
    path = tmp_path / "seg.dcm"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"expected a DICOM segmentation.*seg\.dcm"):
        read_segmentation(path)


def test_an_image_is_no_segmentation(tmp_path):
    image = write_series(tmp_path / "study") / "000.dcm"
    with pytest.raises(FormatError, match="expected a DICOM segmentation"):
        read_segmentation(image)


# ---------------------------------------------------------------------------- label maps


def write_by_highdicom(folder: Path, kind: str, *, background=False) -> tuple[Path, np.ndarray]:
    """Let highdicom write labels 1 and 2; of several masks, with one more for what lies around."""
    import highdicom as hd
    from pydicom.sr.codedict import codes

    slices = [pydicom.dcmread(f) for f in sorted(write_series(folder / "study").iterdir())]
    labels = np.zeros(SHAPE, np.uint8)
    labels[1:4, 3:8, 2:6] = 1
    labels[3:5, 9:11, 7:9] = 2

    def segment(number, label, category, kind):
        by_hand = hd.seg.SegmentAlgorithmTypeValues.MANUAL
        return hd.seg.SegmentDescription(number, label, category, kind, by_hand)

    lesion = codes.SCT.MorphologicallyAbnormalStructure, codes.SCT.Neoplasm
    segments = [segment(1, "tumour", *lesion), segment(2, "core", *lesion)]
    voxels = labels
    if background:
        around = codes.DCM.Background
        segments.append(segment(3, "all the rest", around, around))
        voxels = np.stack([labels == 1, labels == 2, labels == 0], axis=-1).astype(np.uint8)
    made = hd.seg.Segmentation(
        slices, voxels, kind, segments, "2.25.70", 1, "2.25.71", 1, "a", "b", "1", "c"
    )
    made.save_as(folder / "seg.dcm")
    return folder / "seg.dcm", labels


def number_background_three(image):
    image.PixelData = np.where(image.pixel_array == 0, 3, image.pixel_array).tobytes()
    image.SegmentSequence[0].SegmentNumber = image.PixelPaddingValue = 3


def drop_padding(image):
    del image.PixelPaddingValue


def name_it_only(image):
    del image.PixelPaddingValue
    first, second = image.SegmentSequence[:2]
    first.SegmentLabel = "background"
    first.SegmentedPropertyTypeCodeSequence = second.SegmentedPropertyTypeCodeSequence
    first.SegmentedPropertyCategoryCodeSequence = second.SegmentedPropertyCategoryCodeSequence


@pytest.mark.parametrize(
    "change",
    [None, drop_padding, name_it_only, number_background_three],
    ids=["as written", "unpadded", "named", "third"],
)
def test_the_background_of_a_label_map_is_no_segment(tmp_path, change):
    path, labels = write_by_highdicom(tmp_path, "LABELMAP")
    if change is not None:
        image = pydicom.dcmread(path)
        change(image)
        image.save_as(path)
    found = read_segmentation(path)
    assert [(s.number, s.label) for s in found.segments] == [(1, "tumour"), (2, "core")]
    assert [int(s.mask.sum()) for s in found.segments] == [(labels == k).sum() for k in (1, 2)]


def test_a_background_among_binary_segments_is_left_out_and_said(tmp_path):
    path, labels = write_by_highdicom(tmp_path, "BINARY", background=True)
    found = read_segmentation(path)
    assert [int(s.mask.sum()) for s in found.segments] == [(labels == k).sum() for k in (1, 2)]
    assert found.warnings == ("seg.dcm lists the background as 1 segment, which was left out",)


# ------------------------------------------------------- one file that holds several phases

PHASES = 3


def write_enhanced(folder: Path, **elements) -> Path:
    """Write an enhanced file of 3 phases whose frames run place by place; its UID is 2.25.9."""
    volumes = np.stack([phantoms.dce_values(k) for k in range(PHASES)])
    times = [f"2020010112{k:02d}00" for k in range(PHASES)]
    phantoms.write_enhanced(
        folder / "all.dcm", volumes, times,
        SOPInstanceUID="2.25.9", FrameOfReferenceUID="2.25.6", PatientID="TEST",
        PatientName="Test^Phantom", PatientBirthDate="", PatientSex="F", StudyDate="20200101",
        StudyTime="120000", StudyID="1", AccessionNumber="", ReferringPhysicianName="",
        Manufacturer="none", InstanceNumber=1, **elements,
    )  # fmt: skip
    return folder


def enhanced_phase(folder: Path, phase: int):
    source = find_data_set(folder).cases[0].phases[phase]
    return source, read_phase_header(source).grid


def cube_on(grid):
    labels = np.zeros(grid.shape, np.uint8)
    labels[1:3, 4:9, 5:12] = 1
    labels[2:4, 11:13, 2:4] = 2
    return labels


@pytest.mark.parametrize("phase", range(PHASES))
def test_a_segmentation_names_the_frames_of_its_phase_only(tmp_path, phase):
    source, grid = enhanced_phase(write_enhanced(tmp_path / "study"), phase)
    labels, path = cube_on(grid), tmp_path / "seg.dcm"
    write_segmentation(labels, NAMES, grid, source, grid, BY_MODEL, path)
    seg = pydicom.dcmread(path)
    named = {
        (
            int(group.SegmentIdentificationSequence[0].ReferencedSegmentNumber),
            float(group.PlanePositionSequence[0].ImagePositionPatient[2]),
        ): group.DerivationImageSequence[0].SourceImageSequence[0]
        for group in seg.PerFrameFunctionalGroupsSequence
    }
    # slices lie at 30, 32, 34, 36 mm; frame numbers run place by place: 1 2 3, 4 5 6, ...
    assert {key: int(item.ReferencedFrameNumber) for key, item in named.items()} == {
        (1, 32.0): 4 + phase,
        (1, 34.0): 7 + phase,
        (2, 34.0): 7 + phase,
        (2, 36.0): 10 + phase,
    }
    assert {str(item.ReferencedSOPInstanceUID) for item in named.values()} == {"2.25.9"}
    assert {str(item.SpatialLocationsPreserved) for item in named.values()} == {"YES"}
    (whole,) = seg.SourceImageSequence
    assert list(whole.ReferencedFrameNumber) == [1 + phase, 4 + phase, 7 + phase, 10 + phase]
    (series,) = seg.ReferencedSeriesSequence
    (instance,) = series.ReferencedInstanceSequence
    assert instance.ReferencedSOPInstanceUID == "2.25.9"
    assert "ReferencedFrameNumber" not in instance  # that list has no such element


@pytest.mark.parametrize("phase", range(PHASES))
def test_a_segmentation_of_one_phase_of_many_lies_where_it_was_drawn(tmp_path, phase):
    source, grid = enhanced_phase(write_enhanced(tmp_path / "study"), phase)
    turn = reorientation_to(grid, "RAS")
    labels, path = cube_on(grid), tmp_path / "seg.dcm"
    write_segmentation(turn.array(labels), NAMES, turn.target, source, grid, BY_MODEL, path)
    found = read_segmentation(path)
    assert len(found.segments) == 2
    for segment in found.segments:
        np.testing.assert_array_equal(found.on_grid(segment, grid), labels == segment.number)
    # by highdicom's own reader: label 1 begins with voxel (1, 4, 5) at x = -10 + 5 * 0.75,
    # y = -20 + 4 * 0.5, z = 32 (LPS), and ends with (2, 8, 11) at -1.75, -16, 34
    import highdicom

    volume = highdicom.seg.segread(path).get_volume(combine_segments=False)
    voxels = np.argwhere(volume.array[..., 0])
    places = voxels @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    np.testing.assert_allclose(places.min(axis=0), (-6.25, -18.0, 32.0), atol=1e-6)
    np.testing.assert_allclose(places.max(axis=0), (-1.75, -16.0, 34.0), atol=1e-6)


def test_the_second_phase_is_the_one_that_a_segmentation_is_found_by(tmp_path):
    """A viewer asks for the masks of the frames it shows: highdicom's question, by frame."""
    import highdicom

    source, grid = enhanced_phase(write_enhanced(tmp_path / "study"), 1)
    labels, path = cube_on(grid), tmp_path / "seg.dcm"
    write_segmentation(labels, NAMES, grid, source, grid, BY_MODEL, path)
    seg = highdicom.seg.segread(path)
    seen = seg.get_pixels_by_source_frame("2.25.9", [5, 8, 11], segment_numbers=[1, 2])
    np.testing.assert_array_equal(seen[..., 0], labels[1:] == 1)
    np.testing.assert_array_equal(seen[..., 1], labels[1:] == 2)
    assert not seg.get_pixels_by_source_frame("2.25.9", [4, 7, 10]).any()  # phase 0


def test_a_phase_spread_over_several_multi_frame_files_is_refused(tmp_path):
    source, grid = enhanced_phase(write_enhanced(tmp_path / "study"), 1)
    other = shutil.copy(tmp_path / "study/all.dcm", tmp_path / "study/more.dcm")
    mixed = PhaseSource((source.files[0], Path(other), *source.files[2:]), frames=source.frames)
    with pytest.raises(CaseError, match=r"frames of 2 files such as .*all\.dcm"):
        write_segmentation(cube_on(grid), NAMES, grid, mixed, grid, BY_MODEL, tmp_path / "seg.dcm")


# ----------------------------------------------------------------------------- other programs


@pytest.fixture(params=["single frames", "phase 1 of 3 in one file"])
def made(tmp_path, request):
    path = tmp_path / "seg.dcm"
    if request.param == "single frames":
        source, grid = series_of(write_series(tmp_path / "study"))
        labels = labels_on(grid)
    else:
        source, grid = enhanced_phase(write_enhanced(tmp_path / "study"), 1)
        labels = cube_on(grid)
    write_segmentation(
        labels, NAMES, grid, source, grid, BY_MODEL, path, software="napari-mamamia 0"
    )
    return path


@pytest.mark.parity
def test_dciodvfy_finds_no_error(made):
    if shutil.which("dciodvfy") is None:
        pytest.skip("dciodvfy is absent (Debian package dicom3tools)")
    done = subprocess.run(["dciodvfy", made], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).splitlines()
    assert [line for line in said if line.startswith("Error")] == []
    assert "Segmentation" in said[0]


@pytest.mark.parity
def test_dcmtk_reads_every_segment(made):
    if shutil.which("dcmdump") is None:
        pytest.skip("dcmdump is absent (Debian package dcmtk)")
    done = subprocess.run(["dcmdump", made], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[tumour]" in done.stdout
    assert "[108369006]" in done.stdout
    assert "NumberOfFrames" in done.stdout


# --------------------------------------------------------------------------------- real objects


@pytest.fixture
def real_seg(real_data):
    folder = real_data("dicom_seg") / "highdicom" / "test_files"
    return lambda name: folder / f"seg_image_ct_{name}.dcm"


def stored_frames(path):
    """Return the raw frames, (frame, row, column), and the height (LPS z) of each."""
    found = pydicom.dcmread(path)
    frames = found.pixel_array.reshape(-1, found.Rows, found.Columns)
    heights = [
        float(group.PlanePositionSequence[0].ImagePositionPatient[2])
        for group in found.PerFrameFunctionalGroupsSequence
    ]
    return frames, heights


@pytest.mark.real
def test_a_real_binary_object_has_the_voxels_of_its_frames(real_seg):
    found = read_segmentation(real_seg("binary"))
    frames, heights = stored_frames(real_seg("binary"))
    (segment,) = found.segments
    assert segment.threshold is None
    assert found.warnings == ()
    for frame, height in zip(frames, heights, strict=True):
        k = round(float(found.grid.to_voxel((0, 0, height))[0]))
        np.testing.assert_array_equal(segment.mask[k], frame > 0)


@pytest.mark.real
def test_a_real_fractional_object_states_its_threshold(real_seg):
    found = read_segmentation(real_seg("true_fractional"))
    frames, _ = stored_frames(real_seg("true_fractional"))
    (segment,) = found.segments
    assert segment.threshold == 0.5
    assert "at least 0.5" in found.warnings[0]
    # 255 is the largest value: half of it is 127.5
    assert np.count_nonzero(segment.mask) == np.count_nonzero(frames >= 127.5)
    assert np.count_nonzero(segment.mask) > 0


@pytest.mark.real
def test_real_overlapping_segments_are_kept_apart(real_seg):
    found = read_segmentation(real_seg("binary_overlap"))
    assert [segment.label for segment in found.segments] == ["first segment", "second segment"]
    both = found.segments[0].mask & found.segments[1].mask
    assert both.any()
    frames, _ = stored_frames(real_seg("binary_overlap"))
    total = sum(np.count_nonzero(segment.mask) for segment in found.segments)
    assert total == np.count_nonzero(frames)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "series"), [("ge_4d", 4), ("philips_4d", 201), ("siemens_enhanced", 6)]
)
def test_a_mask_on_a_real_series_survives_the_round_trip(real_data, tmp_path, name, series):
    """They are echo-planar, so they are named."""
    named = Selection(named_series([series]))
    source = find_phases(real_data("dicom") / name / "In", named).phases[0]
    grid = read_phase_header(source).grid
    labels = np.zeros(grid.shape, np.uint8)
    middle = tuple(slice(n // 3, 2 * n // 3) for n in grid.shape)
    labels[middle] = 1
    path = tmp_path / "seg.dcm"
    write_segmentation(labels, NAMES[:1], grid, source, grid, BY_MODEL, path)
    found = read_segmentation(path)
    np.testing.assert_array_equal(found.on_grid(found.segments[0], grid), labels > 0)
