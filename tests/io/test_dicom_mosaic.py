"""Siemens mosaics: tiles become planes at the right places; checked by hand and against peers."""

import gzip
import importlib.util
import shutil
import struct
import subprocess
import warnings
from pathlib import Path

import nibabel
import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.files import read_studies
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.pixels import fill_planes
from napari_mamamia.io.dicom.slices import BadImage
from napari_mamamia.io.exam.exam import find_exam
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.exam.selectors import named_series
from napari_mamamia.io.seg.codes import SegmentMeaning
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.dicom.dicom import import_dicom
from napari_mamamia.services.dicom.finding import ImportSettings

pydicom = pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

MOSAIC = ["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]
OBLIQUE = (0.8, 0.36, 0.48, -0.6, 0.48, 0.64)  # rows and columns of one length, at right angles
FORMS = {"NumberOfImagesInMosaic": b"IS", "AcquisitionMatrixText": b"SH"}
TILE = (4, 5)  # rows and columns of a slice


def csa_header(**fields):
    """Return a CSA header of Siemens' second form; values are texts, one or a list of them."""
    out = b"SV10\4\3\2\1" + struct.pack("<II", len(fields), 77)
    for name, values in fields.items():
        items = [values] if isinstance(values, str) else values
        out += struct.pack(
            "<64si4siii", name.encode(), len(items), FORMS.get(name, b"FD"), 4, len(items), 77
        )
        for item in items:
            raw = item.encode() + b"\0"
            out += struct.pack("<iiii", len(raw), len(raw), 77, len(raw))
            out += raw + b"\0" * (-len(raw) % 4)
    return out


def picture_of(volume):
    """Return the slices (z, y, x) as one picture, tile by tile in rows."""
    n, rows, columns = volume.shape
    side = int(np.ceil(np.sqrt(n)))
    picture = np.zeros((side * rows, side * columns), volume.dtype)
    for k, plane in enumerate(volume):
        top, left = k // side * rows, k % side * columns
        picture[top : top + rows, left : left + columns] = plane
    return picture


def write_mosaic(
    path, volume, *, fields=None, private=None, orientation=phantoms.AXIAL, renamed=str, **elements
):
    """Write one mosaic file; the slices go along the normal unless `fields` says otherwise."""
    normal = np.cross(orientation[:3], orientation[3:])
    told = {
        "NumberOfImagesInMosaic": str(len(volume)),
        "SliceNormalVector": [f"{v:.8f}" for v in normal],
        "AcquisitionMatrixText": f"{volume.shape[1]}*{volume.shape[2]}",
        **(fields or {}),
    }
    header = csa_header(**{name: value for name, value in told.items() if value is not None})

    def add_private(image):
        csa = image.private_block(0x0029, renamed("SIEMENS CSA HEADER"), create=True)
        csa.add_new(0x08, "CS", "IMAGE NUM 4")
        csa.add_new(0x10, "OB", header)
        if private is not None:
            own = image.private_block(0x0019, renamed("SIEMENS MR HEADER"), create=True)
            own.add_new(0x0A, "US", private)

    phantoms.write_image(
        path,
        picture_of(volume),
        then=add_private,
        **{
            "ImageType": MOSAIC,
            "Manufacturer": "SIEMENS",
            "ImageOrientationPatient": list(orientation),
            "SpacingBetweenSlices": phantoms.GAP,
            "SliceThickness": 1.5,
            **elements,
        },
    )
    return volume


def test_creators_in_other_letters_and_blocks_tell_a_mosaic_too(tmp_path):
    values = write_exam(tmp_path / "in", private=7, renamed=lambda name: f" {name.title()} ")
    for file in (tmp_path / "in").iterdir():
        image = pydicom.dcmread(file)
        for group, number in ((0x0029, 0x10), (0x0019, 0x0A)):
            element = image[group, 0x1000 | number]
            image.add_new((group, 0x99), "LO", image[group, 0x10].value)
            image.add_new((group, 0x9900 | number), element.VR, element.value)
            image[group, 0x10].value = "SOMEBODY ELSE"
            element.value = b"no CSA header" if number == 0x10 else 5
        image.save_as(file)
    exam = exam_of(tmp_path / "in")
    assert (len(exam.stacks), len(exam.stacks[0])) == values.shape[:2]


def slices_of(n, seed=0):
    """Return n slices of voxels that are all different and never 0."""
    values = np.random.default_rng(seed).permutation(n * TILE[0] * TILE[1]) + 1 + 1000 * seed
    return values.reshape(n, *TILE).astype(np.int16)


def write_exam(folder, n_phases=3, n=7, **options):
    """Write one mosaic for each phase, 90 s apart; return (phase, z, y, x)."""
    volumes = [slices_of(n, phase) for phase in range(n_phases)]
    for k, volume in enumerate(volumes):
        told = {"AcquisitionTime": f"10{k:02d}{30 * (k % 2):02d}", "InstanceNumber": k + 1}
        write_mosaic(folder / f"{9 - k}.dcm", volume, **{**told, **options})
    return np.stack(volumes)


def exam_of(folder):
    (study,) = read_studies(folder)
    return find_exam(study.images, "the exam")


def values_of(exam):
    out = np.zeros((len(exam.stacks), *exam.grid.shape), exam.stacks[0][0].stored)
    for index, stack in enumerate(exam.stacks):
        fill_planes(stack, out[index])
    return out


def world(affine, x, y, z):
    return (affine @ [x, y, z, 1])[:3]


# ---- by hand


def test_seven_slices_in_three_by_three_tiles_lie_where_the_header_means(tmp_path):
    values = write_exam(tmp_path)
    exam = exam_of(tmp_path)
    assert exam.grid.shape == (7, 4, 5)
    # the picture has 12 x 15 voxels of 0.5 x 0.75 mm and begins at (-10, -20, 30) LPS; a slice is 8
    # rows and 10 columns smaller: half of it is 4 * 0.5 = 2 mm down and 5 * 0.75 = 3.75 mm along
    wanted = np.diag([-0.75, -0.5, 2.0, 1.0])
    wanted[:3, 3] = 6.25, 18.0, 30.0
    np.testing.assert_allclose(exam.grid.affine, wanted, atol=1e-12)
    np.testing.assert_array_equal(values_of(exam), values)
    assert exam.times_s == (0, 90, 120)


def test_slices_that_go_against_the_normal_come_last_first(tmp_path):
    values = write_exam(tmp_path, fields={"SliceNormalVector": ["0", "0", "-1"]})
    exam = exam_of(tmp_path)
    np.testing.assert_array_equal(values_of(exam), values[:, ::-1])
    # 7 slices of 2 mm from z = 30 down: the lowest lies at 18
    np.testing.assert_allclose(exam.grid.affine[:3, 3], (6.25, 18.0, 18.0))
    assert exam.grid.affine[2, 2] == 2.0


@pytest.mark.parametrize(("n", "side"), [(3, 2), (4, 2), (5, 3), (9, 3), (10, 4)])
def test_tiles_fill_the_smallest_square_that_holds_them(tmp_path, n, side):
    values = write_exam(tmp_path, 1, n)
    image = next(tmp_path.iterdir())
    assert pydicom.dcmread(image).Rows == side * TILE[0]
    np.testing.assert_array_equal(values_of(exam_of(tmp_path)), values)


def test_the_first_voxel_of_an_oblique_mosaic_is_where_vectors_say(tmp_path):
    write_exam(tmp_path, 1, orientation=OBLIQUE)
    along, down = np.array(OBLIQUE[:3]), np.array(OBLIQUE[3:])
    first = np.array(phantoms.ORIGIN) + 3.75 * along + 2.0 * down
    last = first + 4 * 0.75 * along + 3 * 0.5 * down + 6 * 2.0 * np.cross(along, down)
    to_ras = np.array([-1, -1, 1])
    affine = exam_of(tmp_path).grid.affine
    np.testing.assert_allclose(world(affine, 0, 0, 0), first * to_ras, atol=1e-9)
    np.testing.assert_allclose(world(affine, 4, 3, 6), last * to_ras, atol=1e-9)


def test_the_number_of_tiles_may_stand_in_siemens_other_block_alone(tmp_path):
    values = write_exam(tmp_path, 1, private=7, fields={"NumberOfImagesInMosaic": None})
    np.testing.assert_array_equal(values_of(exam_of(tmp_path)), values)


@pytest.mark.parametrize("syntax", [phantoms.IMPLICIT, phantoms.BIG_ENDIAN])
def test_mosaics_of_other_forms_of_files_read_alike(tmp_path, syntax):
    values = write_exam(tmp_path, 1, syntax=syntax)
    np.testing.assert_array_equal(values_of(exam_of(tmp_path)), values)


def test_a_compressed_mosaic_is_taken_apart_too(tmp_path):
    values = write_exam(tmp_path, 1)
    (path,) = tmp_path.iterdir()
    image = pydicom.dcmread(path)
    image.compress(pydicom.uid.RLELossless)
    image.save_as(path)
    np.testing.assert_array_equal(values_of(exam_of(tmp_path)), values)


def test_a_folder_of_mosaics_opens_as_a_case_and_is_imported(tmp_path):
    values = write_exam(tmp_path / "in")
    case = load_case(find_phases(tmp_path / "in"))
    np.testing.assert_array_equal(case.signal, values)
    assert case.times_s == (0, 90, 120)
    import_dicom(tmp_path / "in", tmp_path / "out", "P1")
    for k in range(3):
        volume = nibabel.load(tmp_path / f"out/images/P1/P1_000{k}.nii.gz")
        turned = np.asarray(volume.dataobj).T[:, ::-1]  # rows from the bottom up
        np.testing.assert_array_equal(turned, values[k])
        np.testing.assert_allclose(world(volume.affine, 0, 3, 0), (6.25, 18.0, 30.0), atol=1e-5)


# ---- refused


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"fields": {"SliceNormalVector": None}}, "the direction of the slices is unknown"),
        ({"fields": {"SliceNormalVector": ["0", "1"]}}, "SliceNormalVector in the CSA header"),
        ({"fields": {"SliceNormalVector": ["0", "1", "0"]}}, r"the cosine .* is 0\.0000"),
        ({"fields": {"NumberOfImagesInMosaic": None}}, "NumberOfImagesInMosaic .* it is missing"),
        ({"private": 8}, "NumberOfImagesInMosaic to be given once .* its two values are 8 and 7"),
        ({"SpacingBetweenSlices": None}, r"SpacingBetweenSlices .* above 0 mm, but it is None"),
        ({"SpacingBetweenSlices": -2}, r"SpacingBetweenSlices .* above 0 mm, but it is -2"),
        (
            {"fields": {"NumberOfImagesInMosaic": "17"}},
            ("5 x 5 equal tiles, but it has 12 rows and 15 col"),
        ),
    ],
)
def test_what_a_mosaic_must_say_and_does_not_is_refused_by_name(tmp_path, options, reason):
    write_exam(tmp_path, 1, **options)
    with pytest.raises(FormatError, match=reason) as caught:
        exam_of(tmp_path)
    assert "9.dcm" in str(caught.value)


def test_a_mosaic_without_siemens_private_elements_is_refused(tmp_path):
    phantoms.write_exam(tmp_path, ImageType=MOSAIC)
    with pytest.raises(FormatError, match=r"NumberOfImagesInMosaic .* mosaic .*IM_0_001\.dcm"):
        exam_of(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"SV10", b"SV10\4\3\2\1\xff\xff\xff\xff", b"nonsense" * 9])
def test_a_damaged_private_header_is_a_reason_and_no_crash(tmp_path, damage):
    write_exam(tmp_path, 1)
    (path,) = tmp_path.iterdir()
    image = pydicom.dcmread(path)
    image[0x0029, 0x1010].value = damage
    image.save_as(path)
    found = read_slices(path)
    assert isinstance(found, BadImage)
    assert str(path) in found.reason


def test_a_cut_picture_is_refused_with_the_tile(tmp_path):
    write_exam(tmp_path, 1)
    exam = exam_of(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-100])  # 50 of 180 voxels; the last row of tiles has 60
    out = np.zeros(exam.grid.shape, np.int16)
    with pytest.raises(FormatError, match=r"9\.dcm \(tile 7\), but PixelData was truncated"):
        fill_planes(exam.stacks[0], out)


def test_a_segmentation_cannot_refer_to_a_mosaic(tmp_path):
    pytest.importorskip("highdicom")
    from napari_mamamia.io.seg.writer import write_segmentation

    write_exam(tmp_path / "in", 1, FrameOfReferenceUID="2.25.6")
    source = find_phases(tmp_path / "in").phases[0]
    grid = read_phase_header(source).grid
    labels = np.ones(grid.shape, np.uint8)
    meaning = SegmentMeaning("MANUAL", "Ana", "")
    with pytest.raises(CaseError, match="is a Siemens mosaic"):
        write_segmentation(
            labels, ((1, "tumour"),), grid, source, grid, meaning, tmp_path / "seg.dcm"
        )


# ---- other programs


@pytest.mark.parity
@pytest.mark.parametrize("orientation", [phantoms.AXIAL, phantoms.SAGITTAL, OBLIQUE])
@pytest.mark.parametrize("sign", [1, -1])
def test_files_equal_those_of_dcm2niix(tmp_path, orientation, sign):
    program = shutil.which("dcm2niix")
    if program is None:
        pytest.skip("dcm2niix is not installed (a Debian package)")
    normal = sign * np.cross(orientation[:3], orientation[3:])
    write_exam(
        tmp_path / "in", 2, orientation=orientation, PatientPosition="HFS",
        AcquisitionDate="20200101", SeriesDate="20200101", MRAcquisitionType="2D",
        fields={"SliceNormalVector": [f"{v:.8f}" for v in normal]},
        EchoTime=2.0, RepetitionTime=2000.0,
    )  # fmt: skip
    (tmp_path / "peer").mkdir()
    subprocess.run(
        [program, "-z", "n", "-f", "%s", "-o", str(tmp_path / "peer"), str(tmp_path / "in")],
        check=True,
        capture_output=True,
    )
    named = ImportSettings(use=named_series([1]))  # its TR is that of an fMRI
    import_dicom(tmp_path / "in", tmp_path / "out", "P1", named)
    (peer,) = map(nibabel.load, (tmp_path / "peer").glob("*.nii"))
    theirs = nibabel.as_closest_canonical(peer)
    for k in range(2):
        ours = nibabel.as_closest_canonical(
            nibabel.load(tmp_path / f"out/images/P1/P1_000{k}.nii.gz")
        )
        np.testing.assert_allclose(ours.affine, theirs.affine, atol=1e-4)
        np.testing.assert_array_equal(ours.dataobj, theirs.dataobj[..., k])


def by_nibabel(path):
    """Return nibabel's affine (voxel row, column, slice -> LPS) and voxels (row, column, slice)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from nibabel.nicom.dicomwrappers import wrapper_from_file
    wrapper = wrapper_from_file(path)
    assert wrapper.is_mosaic
    return wrapper.affine, wrapper.get_unscaled_data()


def require_equal_to_nibabel(path):
    affine, voxels = by_nibabel(path)
    pieces = read_slices(path)
    assert len(pieces) == voxels.shape[2]
    out = np.zeros((len(pieces), *pieces[0].shape), pieces[0].stored)
    fill_planes(pieces, out)
    np.testing.assert_array_equal(out, voxels.transpose(2, 0, 1))
    for k, piece in enumerate(pieces):
        np.testing.assert_allclose(piece.position_mm, world(affine, 0, 0, k), atol=1e-4)
        down = np.array(piece.orientation[3:]) * piece.spacing_mm[0]
        np.testing.assert_allclose(affine[:3, 0], down, atol=1e-6)
    return pieces


@pytest.mark.parity
@pytest.mark.parametrize("orientation", [phantoms.AXIAL, phantoms.SAGITTAL, OBLIQUE])
def test_places_and_voxels_equal_those_of_nibabel(tmp_path, orientation):
    write_exam(tmp_path, 1, orientation=orientation)
    require_equal_to_nibabel(next(tmp_path.iterdir()))


@pytest.mark.parity
def test_a_mosaic_of_a_real_scanner_equals_nibabels(tmp_path):
    """nibabel's own test file: 48 slices of a Siemens Trio in 7 x 7 tiles of 128 x 128."""
    packed = Path(nibabel.__file__).parent / "nicom/tests/data/siemens_dwi_1000.dcm.gz"
    if not packed.exists():
        pytest.skip("this nibabel came without its test data")
    path = tmp_path / "real.dcm"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    pieces = require_equal_to_nibabel(path)
    assert (len(pieces), pieces[0].shape) == (48, (128, 128))
