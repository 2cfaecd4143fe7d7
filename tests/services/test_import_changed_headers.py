"""Headers that an archive or anonymiser changed: values and places as they were, or a refusal.

Expected values are those that were written into the files, and geometry from before the rounding.
"""

import importlib.util
from pathlib import Path
from subprocess import CompletedProcess

import nibabel
import numpy as np
import pytest
from tests import dicom_protocols as protocols
from tests.cli.warm_program import mamamia
from tests.printed_remedies import as_printed, printed_options
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.seg.writer import source_images
from napari_mamamia.services.dicom.inspection import read_dicom_case

pydicom = pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

SHAPE = (10, 16, 20)
ORIGIN = np.array((-31.17, -42.53, -17.31))


def typed(*words):
    """Run the command here: each test of a class once more in a process of its own (`mamamia`)."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    error = as_printed(done.exception) if done.exception else ""
    return CompletedProcess(words, done.exit_code, done.output, error)


def imported(folder, *options, run=typed):
    """Import with the command; return its exit code, text, and the volumes of the case."""
    out = folder.parent / f"{folder.name}_out{len(options)}{len(''.join(options))}"
    done = run("import", folder, "--out", out, "--case", "A_1", *options)
    files = sorted((out / "images" / "A_1").glob("*.nii.gz"))
    return (
        done.returncode,
        " ".join((done.stdout + done.stderr).split()),
        [*map(nibabel.load, files)],
    )


def values_in(images):
    """Return (phase, z, y, x) as the planes were written: an import turns the rows round."""
    return np.stack([np.asarray(one.dataobj).transpose()[:, ::-1] for one in images])


def exam(folder, **elements):
    """Write an exam of four phases and ten slices."""
    values = phantoms.write_exam(
        folder, 4, shape=SHAPE, InstanceNumber=lambda k, z: 10 * k + z + 1, **elements
    )
    return values.astype(np.int64)


def of_slice(odd, usual, which=6):
    return lambda _, z: odd if z == which else usual


def of_phase(odd, usual, which=2):
    return lambda k, _: odd if k == which else usual


STORED = {
    "0 in one slice": {"RescaleSlope": of_slice("0", "1")},
    "0 in one phase": {"RescaleSlope": of_phase("0", "1")},
    "0 with an intercept": {"RescaleSlope": "0", "RescaleIntercept": "5"},
    "NaN": {"RescaleSlope": "NaN"},
    "1e-30": {"RescaleSlope": "1e-30"},
    "an intercept that drowns all": {"RescaleSlope": "1", "RescaleIntercept": "1e30"},
}


@pytest.mark.filterwarnings("ignore:Invalid value for VR DS")
@pytest.mark.parametrize("name", STORED)
def test_a_slope_that_is_no_calibration_leaves_the_stored_values_and_is_named(tmp_path, name):
    values = exam(tmp_path / "in", **STORED[name])
    code, said, images = imported(tmp_path / "in")
    assert code == 0, said
    assert np.array_equal(values_in(images), values)
    assert (
        "cannot be a calibration and was ignored; the values of these slices are the stored values"
    ) in said


SCALED = {
    "no intercept": ({"RescaleSlope": "2.5"}, 2.5, 0, "scaled by RescaleSlope"),
    "no slope": ({"RescaleIntercept": "-50"}, 1, -50, "scaled by RescaleIntercept"),
    "of a parameter map": ({"RescaleSlope": "1e-6"}, 1e-6, 0, "scaled by RescaleSlope"),
}


@pytest.mark.parametrize("name", SCALED)
def test_slopes_that_can_be_a_calibration_count(tmp_path, name):
    elements, slope, intercept, words = SCALED[name]
    values = exam(tmp_path / "in", **elements)
    code, said, images = imported(tmp_path / "in")
    assert (code, words in said) == (0, True), said
    assert np.allclose(values_in(images), values * slope + intercept, rtol=1e-6)


def test_a_negative_slope_is_asked_about_and_counts_where_the_series_is_named(tmp_path):
    values = exam(tmp_path / "in", RescaleSlope="-1", RescaleIntercept="900")
    code, said, _ = imported(tmp_path / "in")
    assert (code, "expected RescaleSlope to be above 0 in series 1" in said) == (1, True), said
    (options,) = printed_options(said)
    code, said, images = imported(tmp_path / "in", *options)
    assert (code, "makes bright voxels dark" in said) == (0, True), said
    assert np.array_equal(values_in(images), 900 - values)


TWO_SCALES = {
    "0 beside 2.5": {"RescaleSlope": of_slice("0", "2.5")},
    "none beside 2.5": {"RescaleSlope": of_slice(None, "2.5")},
}


@pytest.mark.filterwarnings("ignore:Invalid value for VR DS")
@pytest.mark.parametrize("name", TWO_SCALES)
def test_slices_on_two_scales_are_refused_and_taken_where_the_series_is_named(tmp_path, name):
    values = exam(tmp_path / "in", **TWO_SCALES[name])
    code, said, _ = imported(tmp_path / "in")
    assert (code, "expected the same scaling throughout series 1, but 4 of 40" in said) == (1, True)
    (options,) = printed_options(said)
    code, said, images = imported(tmp_path / "in", *options)
    assert (code, "expected the same scaling" in said) == (0, True)
    assert np.array_equal(values_in(images)[:, 6], values[:, 6])
    assert str(tmp_path) not in (
        next(tmp_path.glob("in_out2*/patient_info_files/A_1.json")).read_text()
    )


def test_a_phase_on_another_scale_is_left_out_as_the_refusal_says(tmp_path):
    values = exam(tmp_path / "in", RescaleSlope=of_phase("0", "2.5"))
    code, said, _ = imported(tmp_path / "in")
    assert code == 1
    options = printed_options(said)[0]
    assert options == ["--leave-out", "series=1,phase=2"]
    code, said, images = imported(tmp_path / "in", *options)
    assert np.array_equal(values_in(images), 2.5 * values[[0, 1, 3]])


def philips(slope, creator="Philips MR Imaging DD 001"):
    def then(image):
        image.private_block(0x2005, creator, create=True).add_new(0x0E, "FL", slope)

    return then


@pytest.mark.parametrize(("scale", "rescale", "factor", "words"), [
    (0.0, "2", 2, "Philips (2005,100E) 0.0 in 40 of 40 slices cannot be a calibration"),
    (float("nan"), "2", 2, "the values of these slices are those scaled by RescaleSlope"),
    (0.5, "0", 2, "scaled by Philips (2005,100E)"),
    (0.5, "4", 2, "scaled by Philips (2005,100E)"),
], ids=str)  # fmt: skip
def test_a_scale_slope_of_philips_that_is_0_is_passed_over(tmp_path, scale, rescale, factor, words):
    values = exam(tmp_path / "in", RescaleSlope=rescale)
    for file in (tmp_path / "in").iterdir():
        image = pydicom.dcmread(file)
        philips(scale)(image)
        image.save_as(file)
    code, said, images = imported(tmp_path / "in")
    assert (code, words in said) == (0, True), said
    assert np.array_equal(values_in(images), factor * values)


def change(folder, then):
    """Change each file of a folder: `then` gets its data set and the number of its phase."""
    for file in sorted(folder.iterdir()):
        image = pydicom.dcmread(file)
        then(image, int(file.name.split("_")[1]))
        image.save_as(file)


def with_mapping(image, slope, intercept=0.0):
    image.RealWorldValueMappingSequence = [
        phantoms.item(RealWorldValueSlope=slope, RealWorldValueIntercept=intercept)
    ]


@pytest.mark.parametrize("by_pydicom", [False, True], ids=["quick", "pydicom"])
@pytest.mark.parametrize(("creator", "block"), [
    ("Philips MR Imaging DD 001", 0x11), ("Philips MR Imaging DD 001", 0xFF),
    ("PHILIPS MR IMAGING DD 001", 0x10), (" Philips MR  Imaging DD 001 ", 0x20),
])  # fmt: skip
def test_philips_scale_slope_counts_in_any_block_of_its_creator(
    tmp_path, creator, block, by_pydicom
):
    scales = (0.5, 0.25, 0.125, 0.5)
    values = exam(tmp_path / "in", RescaleSlope="4")

    def then(image, phase):
        if block != 0x10:  # another one's element of the same number does not count
            image.add_new((0x2005, 0x10), "LO", "Philips MR Imaging DD 002")
            image.add_new((0x2005, 0x100E), "FL", 99.0)
        image.add_new((0x2005, block), "LO", creator)
        image.add_new((0x2005, block << 8 | 0x0E), "FL", scales[phase])
        if by_pydicom:
            with_mapping(image, 4.0)

    change(tmp_path / "in", then)
    code, said, images = imported(tmp_path / "in", "--use", "series=1")
    assert (code, "scaled by Philips (2005,100E)" in said) == (0, True), said
    assert np.array_equal(values_in(images), values / np.reshape(scales, (4, 1, 1, 1)))


@pytest.mark.parametrize(("group", "creator", "number", "vr", "value"), [
    (0x2005, "PHILIPS MR IMAGING DD 001", 0x11, "CS", "P"),
    (0x0043, "gems_parm_01 ", 0x2F, "SS", 1),
])  # fmt: skip
def test_private_elements_say_phase_images_in_any_block(
    tmp_path, group, creator, number, vr, value
):
    exam(tmp_path / "in" / "a")
    exam(tmp_path / "in" / "b", SeriesNumber=2, SeriesInstanceUID="2.25.77",
         SOPInstanceUID=lambda k, z: f"2.25.9.{k}.{z}")  # fmt: skip

    def then(image, _):
        image.add_new((group, 0x42), "LO", creator)
        image.add_new((group, 0x4200 | number), vr, value)

    change(tmp_path / "in" / "b", then)
    code, said, _ = imported(tmp_path / "in", "--dry-run")
    assert (code, "phase image" in said) == (0, True), said


@pytest.mark.parametrize("scales", [(0.5, 0.5, 0.5, 0.5), (0.5, 0.55, 0.5, 0.5)], ids=str)
def test_a_scale_slope_without_creator_is_asked_about_where_it_matters(tmp_path, scales):
    values = exam(tmp_path / "in", RescaleSlope="4")
    change(
        tmp_path / "in",
        lambda image, phase: image.add_new((0x2005, 0x100E), "FL", scales[phase]),
    )
    code, said, images = imported(tmp_path / "in", run=mamamia)
    if len(set(scales)) > 1:
        assert (code, "Philips' Scale Slope (2005,100E)" in said) == (1, True), said
        (options,) = printed_options(said)
        code, said, images = imported(tmp_path / "in", *options)
    assert (code, "does not name its creator" in said) == (0, True), said
    assert np.array_equal(values_in(images), 4 * values)


@pytest.mark.parametrize("slopes", [(1, 0.5, 1, 1), (2, 2.2, 2, 2)], ids=str)
def test_real_world_values_that_differ_between_phases_are_asked_about(tmp_path, slopes):
    values = exam(tmp_path / "in", RescaleSlope="2")
    change(tmp_path / "in", lambda image, phase: with_mapping(image, slopes[phase]))
    code, said, _ = imported(tmp_path / "in", run=mamamia)
    assert (code, "RealWorldValueMappingSequence (slope" in said) == (1, True), said
    assert "receiver" not in said
    code, said, images = imported(tmp_path / "in", *printed_options(said)[-1])
    assert (code, "RealWorldValueMappingSequence" in said) == (0, True), said
    assert np.array_equal(values_in(images), 2 * values)


@pytest.mark.parametrize(("slope", "is_named"), [(2, False), (1, True), (7, True)])
def test_one_real_world_mapping_is_named_where_it_is_another_one(tmp_path, slope, is_named):
    exam(tmp_path / "in", RescaleSlope="2")
    change(tmp_path / "in", lambda image, phase: with_mapping(image, slope))
    code, said, _ = imported(tmp_path / "in")
    assert (code, "RealWorldValueMappingSequence" in said) == (0, is_named), said


@pytest.mark.parametrize("odd", [None, 1])
def test_tables_of_the_modality_are_named_or_asked_about(tmp_path, odd):
    exam(tmp_path / "in")

    def then(image, phase):
        if odd in (None, phase):
            table = phantoms.item(ModalityLUTType="US", LUTDescriptor=[4, 0, 16])
            table.add_new("LUTData", "US", [0, 9, 8, 7])
            image.ModalityLUTSequence = [table]

    change(tmp_path / "in", then)
    code, said, _ = imported(tmp_path / "in")
    assert (code, "ModalityLUTSequence" in said) == (int(odd is not None), True), said


@pytest.mark.parametrize("is_shared", [False, True])
def test_real_world_values_of_frames_are_asked_about(tmp_path, is_shared):
    volumes = np.stack([phantoms.dce_values(k) for k in range(3)])
    times = [f"202003101000{10 * k:02d}" for k in range(3)]

    def scale(groups, time):
        slope = 0.5 if time == 1 or is_shared else 1
        own = phantoms.item(RealWorldValueSlope=slope, RealWorldValueIntercept=0)
        groups.RealWorldValueMappingSequence = [own]

    phantoms.write_enhanced(tmp_path / "in" / "a.dcm", volumes, times, frame=scale)
    code, said, _ = imported(tmp_path / "in")
    assert (code, "RealWorldValueMappingSequence" in said) == (int(not is_shared), True), said


@pytest.mark.parametrize("slope", [0, 3])
def test_slopes_of_0_in_frames_of_an_enhanced_file(tmp_path, slope):
    volumes = np.stack([phantoms.dce_values(k) for k in range(3)])
    times = [f"202003101000{10 * k:02d}" for k in range(3)]

    def scale(groups, time):
        own = phantoms.item(RescaleSlope=0 if time == 1 else slope, RescaleIntercept=0)
        groups.PixelValueTransformationSequence = [own]

    phantoms.write_enhanced(tmp_path / "in" / "a.dcm", volumes, times, frame=scale)
    code, said, images = imported(tmp_path / "in")
    if slope:
        assert (code, "expected the same scaling" in said) == (1, True)
    else:
        assert "RescaleSlope 0.0 in 12 of 12 slices cannot be a calibration" in said
        assert np.array_equal(values_in(images), volumes)


def signed_by(is_signed):
    return {"PixelRepresentation": lambda k, z: int(is_signed(k, z)), "BitsStored": 12,
            "HighBit": 11}  # fmt: skip


@pytest.mark.parametrize("is_signed", [lambda _, z: z % 2, lambda k, _: k == 1], ids=["z", "k"])
def test_each_image_is_read_by_its_own_pixel_representation(tmp_path, is_signed):
    values = exam(tmp_path / "in", **signed_by(is_signed))
    code, said, images = imported(tmp_path / "in")
    assert (code, "PixelRepresentation differs" in said) == (0, True), said
    assert np.array_equal(values_in(images), values)
    assert images[0].get_data_dtype() == np.int16
    case = read_dicom_case(tmp_path / "in")
    assert np.array_equal(case.signal, values)
    assert "PixelRepresentation differs" in " ".join(case.warnings)


def test_values_below_0_beside_unsigned_images_are_asked_about(tmp_path):
    exam(tmp_path / "in")
    for file in (tmp_path / "in").glob("IM_*_00[2468].dcm"):
        image = pydicom.dcmread(file)
        values = image.pixel_array.astype(np.uint16)
        image.PixelData, image.PixelRepresentation = values.tobytes(), 0
        image.save_as(file)
    low = tmp_path / "in" / "IM_2_003.dcm"
    image = pydicom.dcmread(low)
    values = image.pixel_array.copy()
    values[0, 0] = -5
    image.PixelData = values.tobytes()
    image.save_as(low)
    code, said, _ = imported(tmp_path / "in")
    assert (code, "slice 7 of phase 2, from 0 is signed (1) and has values" in said) == (1, True)
    assert printed_options(said) == [
        ["--leave-out", "series=1,phase=2"], ["--use", "series=1"]
    ]  # fmt: skip
    for options in printed_options(said):
        code, said, images = imported(tmp_path / "in", *options)
        assert (code, len(images)) == (0, 3 + (options[0] == "--use")), said


def frame_of(axis, angle):
    """Return directions of rows, columns and slices, turned by an angle around an axis."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross).T


STRAIGHT, OBLIQUE, STEEP = np.eye(3), frame_of((1, 1, 1), 1.0), frame_of((0.3, 1, 0.2), 1.5)


def placed(axes, gap, step=None, digits=None, slices=range(10)):
    """Return elements of slices on `axes`, positions rounded to `step`, directions to `digits`."""

    def position(_, z):
        mm = ORIGIN + gap * slices[z] * axes[2]
        return [float(f"{n:.6f}") for n in (mm if step is None else np.round(mm / step) * step)]

    directions = [round(float(n), 6 if digits is None else digits) for n in axes[:2].ravel()]
    return {"ImagePositionPatient": position, "ImageOrientationPatient": directions}


def error_mm(image, axes, gap):
    """Return how far a corner of the volume lies from where it was before the rounding."""
    columns, rows = SHAPE[2] - 1, SHAPE[1] - 1
    true = [ORIGIN + gap * z * axes[2] + x * 0.75 * axes[0] + y * 0.5 * axes[1]
            for z in (0, 9) for y in (0, rows) for x in (0, columns)]  # fmt: skip
    there = [image.affine @ (x, rows - y, z, 1)
             for z in (0, 9) for y in (0, rows) for x in (0, columns)]  # fmt: skip
    return float(np.abs(np.array(there)[:, :3] * (-1, -1, 1) - true).max())


@pytest.mark.parametrize("axes", [STRAIGHT, OBLIQUE, STEEP], ids=["straight", "oblique", "steep"])
@pytest.mark.parametrize(("gap", "step"), [(1.25, 0.1), (1.25, 1.0), (2.3, 1.0)])
def test_rounded_positions_are_a_stack_of_the_mean_gap(tmp_path, axes, gap, step):
    if (step, gap) == (1.0, 1.25) and axes is not STRAIGHT:
        gap = 1.9  # else two slices are rounded to one place
    exam(tmp_path / "in", **placed(axes, gap, step))
    code, said, images = imported(tmp_path / "in")
    assert code == 0, said
    assert f"is rounded to {step:g} mm" in said
    assert error_mm(images[0], axes, gap) < 1.3 * step  # half a step of the first, and of the gaps


def test_a_table_that_moved_by_less_than_the_rounding_is_one_stack(tmp_path):
    moved = {"ImagePositionPatient": lambda k, z: [0, 0, round(1.31 * z + 0.02 * k, 1)]}
    exam(tmp_path / "in", **moved)
    code, said, images = imported(tmp_path / "in")
    assert (code, "is rounded to 0.1 mm" in said) == (0, True), said
    assert abs(images[0].header.get_zooms()[2] - 1.31) < 0.01


@pytest.mark.parametrize("axes", [STRAIGHT, OBLIQUE], ids=["straight", "oblique"])
@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize("missing", [4, 8])
def test_a_missing_slice_is_refused_however_positions_are_rounded(tmp_path, axes, step, missing):
    left = [z for z in range(10) if z != missing]
    phantoms.write_exam(
        tmp_path / "in", 2, shape=(9, 16, 20), **placed(axes, 1.25, step, slices=left),
        InstanceNumber=lambda k, z: 10 * k + left[z] + 1, SpacingBetweenSlices=1.25,
    )  # fmt: skip
    code, said, _ = imported(tmp_path / "in")
    is_one_place = step == 1 and axes is not STRAIGHT  # rounded to the same one
    words = "images at each of the" if is_one_place else "expected equal gaps"
    assert (code, words in said) == (1, True), said


@pytest.mark.parametrize("told", [
    {"InstanceNumber": lambda k, z: 11 * k + z + (z > 3) + 1},
    {"InstanceNumber": None},
    {"InstanceNumber": lambda k, z: 10 * k + z + 1, "SliceThickness": "1"},
], ids=["numbers", "no number", "numbered anew"])  # fmt: skip
def test_whole_millimetres_that_skip_one_are_a_missing_slice(tmp_path, told):
    left = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
    phantoms.write_exam(
        tmp_path / "in", 2, shape=SHAPE, **{**placed(STRAIGHT, 1.0, 1.0, slices=left), **told}
    )
    code, said, _ = imported(tmp_path / "in")
    assert (code, "expected equal gaps" in said) == (1, True), said


@pytest.mark.parametrize("axes", [OBLIQUE, STEEP], ids=["oblique", "steep"])
@pytest.mark.parametrize(("digits", "step"), [(2, None), (2, 0.1), (3, None)])
def test_directions_of_two_digits_are_the_nearest_at_right_angles(tmp_path, axes, digits, step):
    exam(tmp_path / "in", **placed(axes, 1.25, step, digits))
    code, said, images = imported(tmp_path / "in")
    assert code == 0, said
    spacing = np.linalg.norm(images[0].affine[:3, :3], axis=0)
    assert np.allclose(spacing, (0.75, 0.5, 1.25), atol=0.005)
    assert error_mm(images[0], axes, 1.25) < 15 * 10.0**-digits + (step or 0)
    if digits == 2:
        assert "ImageOrientationPatient of series 1 is rounded (" in said


@pytest.mark.parametrize(("elements", "words"), [
    (placed(OBLIQUE, 1.25, digits=1), "perpendicular"),
    ({"ImageOrientationPatient": [0.9, 0, 0, 0, 0.9, 0]}, "perpendicular"),
    ({"ImagePositionPatient": lambda _, z: [0, 0.02 * z, 2.0 * z]}, "sideways by 0.6 degrees"),
    ({"ImagePositionPatient": lambda _, z: [0, 0, round(1.25 * z + 0.02 * z * z, 1)]},
     "more than rounding explains"),
], ids=["one digit", "of length .9", "tilted", "growing gaps"])  # fmt: skip
def test_what_rounding_does_not_explain_is_refused(tmp_path, elements, words):
    exam(tmp_path / "in", **elements)
    code, said, _ = imported(tmp_path / "in")
    assert (code, words in said) == (1, True), said


UIDS = {
    "all equal": lambda *_: "2.25.9",
    "by place": lambda _, z: f"2.25.9.{z + 1}",
    "two alike": lambda k, z: f"2.25.9.{max(k, 1)}.{z + 1}",
}


@pytest.mark.parametrize("name", UIDS)
def test_images_of_one_uid_that_an_anonymiser_repeated_all_count(tmp_path, name):
    values = exam(tmp_path / "in", SOPInstanceUID=UIDS[name])
    code, said, images = imported(tmp_path / "in")
    assert (code, "several images share a SOPInstanceUID" in said) == (0, True), said
    assert np.array_equal(values_in(images), values)


def test_a_segmentation_cannot_name_images_of_a_phase_that_share_a_uid(tmp_path):
    pytest.importorskip("highdicom")
    exam(tmp_path / "in", SOPInstanceUID=UIDS["all equal"], FrameOfReferenceUID="2.25.4")
    phase = find_phases(tmp_path / "in").phases[0]
    with pytest.raises(
        CaseError, match=r"several images of one phase share the UID.*: write NIfTI"
    ):
        source_images(phase)


def test_one_image_again_with_another_header_counts_once(tmp_path):
    values = exam(tmp_path / "in", SOPInstanceUID=lambda k, z: f"2.25.9.{k + 1}.{z + 1}")
    image = pydicom.dcmread(tmp_path / "in" / "IM_1_003.dcm")
    image.InstitutionName = "another one"
    image.save_as(tmp_path / "in" / "again.dcm")
    code, said, images = imported(tmp_path / "in")
    assert (code, "1 file found twice with the same values" in said) == (0, True)
    assert np.array_equal(values_in(images), values)


DISC = {
    "LOCKFILE": b"", "DICOM/LOCKFILE": b"", "AUTORUN.INF": b"[autorun]", "Thumbs.db": b"\0" * 99,
    "VIEWER/VIEWER.EXE": b"MZ" + b"\0" * 999, "VIEWER/LICENSE": b"", "desktop.ini": b"",
    "VERSION": b"\0\0", "index.html": b"<html>", "dicomdir": b"", "DICOM/.DS_Store": b"",
}  # fmt: skip


def write_disc(folder):
    values = exam(folder / "DICOM")
    for number, file in enumerate(sorted((folder / "DICOM").iterdir())):
        file.rename(file.with_name(f"IM{number:05d}"))
    for name, content in DISC.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return values


def test_marks_and_programs_of_a_disc_stop_nothing(tmp_path):
    values = write_disc(tmp_path / "in")
    code, said, images = imported(tmp_path / "in")
    assert code == 0, said
    assert np.array_equal(values_in(images), values)


@pytest.mark.parametrize("has_numbers", [True, False])
def test_an_empty_file_named_as_the_images_are_is_one_that_broke_off(tmp_path, has_numbers):
    write_disc(tmp_path / "in")
    folder = tmp_path / "in" / "DICOM"
    if not has_numbers:
        for k, file in enumerate(sorted(folder.glob("IM*"))):
            file.rename(folder / ("Q" + chr(65 + k // 26) + chr(65 + k % 26)))
    (folder / ("IM00099" if has_numbers else "QZZ")).write_bytes(b"")
    code, said, _ = imported(tmp_path / "in")
    assert (code, "it is empty" in said) == (1, True), said
    code, said, images = imported(tmp_path / "in", *printed_options(said)[0])
    assert (code, len(images)) == (0, 4), said


def test_the_program_itself_reads_each_of_these_headers(tmp_path):
    """One of each class through the command in a process of its own."""
    for number, elements in enumerate((
        STORED["0 in one slice"], STORED["NaN"], signed_by(lambda _, z: z % 2),
        placed(STRAIGHT, 1.25, 0.1), placed(OBLIQUE, 1.25, digits=2),
        {"SOPInstanceUID": UIDS["all equal"]},
    )):  # fmt: skip
        values = exam(tmp_path / f"in{number}", **elements)
        code, said, images = imported(tmp_path / f"in{number}", run=mamamia)
        assert code == 0, said
        assert np.array_equal(values_in(images), values)


def refused(folder, *options):
    code, said, _ = imported(folder, *options)
    assert code == 1, said
    return said


@pytest.mark.filterwarnings("ignore:Invalid value for VR")
@pytest.mark.parametrize(("name", "value", "words"), [
    ("SeriesNumber", "77x.31", "expected SeriesNumber to be a whole number"),
    ("ImagePositionPatient", ["-70,077", "0", "0"], "expected ImagePositionPatient to be"),
    ("PixelSpacing", ["0,5", "0,5"], "expected PixelSpacing to be"),
])  # fmt: skip
def test_what_is_no_number_is_named_by_its_element(tmp_path, name, value, words):
    exam(tmp_path / "in")
    for file in (tmp_path / "in").iterdir():
        image = pydicom.dcmread(file)
        image[name] = pydicom.DataElement(
            name, "LO", value if isinstance(value, str) else "\\".join(value),
            already_converted=True,
        )  # fmt: skip
        image.save_as(file)
        raw = file.read_bytes()
        tag = pydicom.datadict.tag_for_keyword(name)
        head = (tag >> 16).to_bytes(2, "little") + (tag & 0xFFFF).to_bytes(2, "little")
        vr = pydicom.datadict.dictionary_VR(tag).encode()
        file.write_bytes(raw.replace(head + b"LO", head + vr))
    assert words in refused(tmp_path / "in")


def test_no_way_is_offered_that_leaves_out_every_file(tmp_path):
    exam(tmp_path / "in", SeriesInstanceUID="")
    said = refused(tmp_path / "in")
    assert ("SeriesInstanceUID" in said, "--leave-out" in said) == (True, False), said


def test_a_date_of_the_year_1_is_none_that_can_be_shifted(tmp_path):
    exam(tmp_path / "in", AcquisitionDate="00010101", StudyDate="00010101")
    code, said, images = imported(tmp_path / "in", "--dates", "shift")
    assert (code, len(images), "date_shifted" in said) == (0, 4, False), said


def test_a_table_that_moved_between_phases_is_no_doubled_slice(tmp_path):
    exam(tmp_path / "in", ImagePositionPatient=lambda k, z: [0, 0, 3 * z + 1.5 * (k == 2)])
    said = refused(tmp_path / "in")
    assert "found 1 at 10 of them and 3 at" in said


def test_dark_values_that_viewers_show_bright_are_named(tmp_path):
    values = exam(tmp_path / "in", PhotometricInterpretation="MONOCHROME1")
    code, said, images = imported(tmp_path / "in")
    assert (code, "PhotometricInterpretation is MONOCHROME1 in 40 of 40" in said) == (0, True)
    assert np.array_equal(values_in(images), values)


def test_a_long_gap_is_compared_with_the_others(tmp_path):
    times = ("100000", "100130", "103130", "103300")
    exam(tmp_path / "in", AcquisitionTime=lambda k, _: times[k])
    _, said, _ = imported(tmp_path / "in")
    assert "there are 1800 s between phases 2 and 3 of 4, but usually 90 s" in said


@pytest.mark.parametrize(("factor", "is_named"), [(1, False), (1.35, True), (2, True)])
def test_air_and_body_that_are_brighter_alike_after_phase_0_are_named(tmp_path, factor, is_named):
    def values(k):
        rng = np.random.default_rng([3, k])
        air = np.hypot(*rng.normal(0, 6, (2, *protocols.SHAPE)))
        own = np.hypot(protocols.volume(k), air)
        return np.rint(own * (factor if k else 1)).astype(np.int16)

    protocols.dynamic(tmp_path / "in", values=values)
    code, said, _ = imported(tmp_path / "in")
    assert (code, "as bright as phase 0 in both air and body" in said) == (0, is_named), said
