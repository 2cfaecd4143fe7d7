"""What the headers of masks say of lengths and places, through the real commands.

Volumes and voxels are those that SimpleITK, the published scripts' reader, has of the same files.
"""

import json

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - as the scripts call it
from tests.cli.test_mask_values import score
from tests.cli.warm_program import mamamia

import napari_mamamia as mm

pytestmark = pytest.mark.usefixtures("quick_figures")

AFFINE = np.diag([-0.4, 0.4, 1.0, 1.0])
AFFINE[:3, 3] = (30, -20, 10)
TRUE = np.zeros((12, 10, 8), np.uint8)
TRUE[2:10, 1:9, 2:6] = 1
GUESS = np.roll(TRUE, 1, axis=0)
"""Both 8 x 8 x 4 = 256 voxels."""


def save(path, array=TRUE, affine=AFFINE, edit=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(array, affine)
    image.set_sform(affine, 1)
    image.set_qform(affine, 1)
    image.header.set_xyzt_units("mm")
    if edit:
        edit(image.header)
    nib.save(nib.Nifti1Image(array, None, image.header), path)  # the header stays as edited
    return path


def volume_ml(path):
    image = sitk.ReadImage(str(path))
    return float(np.prod(image.GetSpacing()) * (sitk.GetArrayFromImage(image) == 1).sum() / 1000)


def notes_of(out):
    return "\n".join(json.loads((out / "summary.json").read_text())["notes"])


def test_a_prediction_on_another_affine_is_measured_on_the_references_grid(tmp_path):
    moved, thick = AFFINE.copy(), AFFINE @ np.diag([1, 1, 3, 1])
    moved[0, 3] += 40
    others = {"eye": np.eye(4), "moved": moved, "thick": thick, "turned": AFFINE[[1, 0, 2, 3]]}
    for name, affine in {**others, "same": AFFINE}.items():
        save(tmp_path / "reference" / f"{name}.nii.gz")
        save(tmp_path / "team" / f"{name}.nii.gz", GUESS, affine)
    done, rows = score(tmp_path, tmp_path / "out", "--profile", "official-code")
    ml = volume_ml(tmp_path / "reference" / "same.nii.gz")
    for name, row in rows.items():
        for column in ("volume_reference_mm3", "volume_prediction_mm3"):
            assert float(row[column]) / 1000 == pytest.approx(ml, rel=1e-6), name
        assert ("affine_differs" in row["warning"]) == (name != "same"), name
    assert "the prediction's grid is an identity" in rows["eye"]["warning"]
    for text in (done.stdout, notes_of(tmp_path / "out")):
        assert "4 of 5 cases: the affines of prediction and reference differ" in text
        assert "1 of 5 cases: the prediction's grid is an identity" in text


@pytest.mark.parametrize("profile", ["clinical", "official-code"])
def test_lengths_in_the_headers_unit_become_mm_as_in_simpleitk(tmp_path, profile):
    in_micrometres = np.diag([1000, 1000, 1000, 1]) @ AFFINE
    in_metres = np.diag([0.001, 0.001, 0.001, 1]) @ AFFINE
    cases = {
        "micron": (in_micrometres, "micron"), "meter": (in_metres, "meter"),
        "mm": (AFFINE, "mm"), "unknown": (AFFINE, "unknown"),
    }  # fmt: skip
    for name, (affine, unit) in cases.items():
        for folder, array in (("reference", TRUE), ("team", GUESS)):

            def edit(header, unit=unit):
                header.set_xyzt_units(unit)

            save(tmp_path / folder / f"{name}.nii.gz", array, affine, edit)
    done, rows = score(tmp_path, tmp_path / "out", "--profile", profile)
    for name, row in rows.items():
        ml = volume_ml(tmp_path / "reference" / f"{name}.nii.gz")
        assert ml == pytest.approx(0.04096, rel=1e-6)
        assert float(row["volume_reference_mm3"]) / 1000 == pytest.approx(ml, rel=1e-6), name
        assert float(row["volume_prediction_mm3"]) / 1000 == pytest.approx(ml, rel=1e-6), name
        # Moved by one voxel of 0.4 mm along x.
        assert float(row["hausdorff95_mm"]) == pytest.approx(0.4, rel=1e-6), name
    assert "gives lengths in micrometres, which are converted to mm" in rows["micron"]["warning"]
    assert "gives lengths in metres, which are converted to mm" in rows["meter"]["warning"]
    assert rows["mm"]["warning"] == rows["unknown"]["warning"] == ""
    for text in (done.stdout, notes_of(tmp_path / "out")):
        assert "2 of 4 cases: lengths in the header are not in mm" in text


def test_nrrd_and_metaimage_in_another_unit_are_read_as_simpleitk_reads_them(tmp_path):
    image = sitk.GetImageFromArray(TRUE)
    image.SetSpacing((0.4, 0.4, 1.0))
    image.SetOrigin((3, 4, 5))
    for suffix, line, units in (
        ("nrrd", b"\nkinds", b'\nspace units: "um" "um" "um"\nkinds'),
        ("mha", b"\nElementDataFile", b"\nDistanceUnits = um\nElementDataFile"),
    ):
        for folder in ("reference", "team"):
            path = tmp_path / folder / f"{suffix}_um.{suffix}"
            path.parent.mkdir(exist_ok=True)
            sitk.WriteImage(image, str(path))
            path.write_bytes(path.read_bytes().replace(line, units, 1))
            assert sitk.ReadImage(str(path)).GetSpacing() == (0.4, 0.4, 1.0)
    done, rows = score(tmp_path, tmp_path / "out")
    for row in rows.values():
        assert float(row["volume_reference_mm3"]) == pytest.approx(0.16 * TRUE.sum(), rel=1e-9)
        assert "gives lengths in um, which were read as mm" in row["warning"]
    assert "2 of 2 cases: lengths in the header are not in mm" in done.stdout


def test_a_mask_written_for_a_case_in_micrometres_overlays_it(tmp_path):
    in_micrometres = np.diag([1000, 1000, 1000, 1]) @ AFFINE
    source = save(
        tmp_path / "in.nii.gz", TRUE, in_micrometres, lambda header: header.set_xyzt_units("micron")
    )
    with pytest.warns(UserWarning, match="micrometres"):
        mask = mm.read_mask(source)
    np.testing.assert_allclose(mask.grid.affine, AFFINE, rtol=1e-6, atol=1e-6)
    mm.write_mask(mask, tmp_path / "out.nii.gz")
    mm.write_mask(mask, tmp_path / "out.nrrd")
    mm.to_nibabel(mask).to_filename(tmp_path / "image.nii.gz")
    expected = sitk.ReadImage(str(source))
    for name in ("out.nii.gz", "out.nrrd", "image.nii.gz"):
        image = sitk.ReadImage(str(tmp_path / name))
        assert image.GetSpacing() == pytest.approx(expected.GetSpacing(), rel=1e-6), name
        assert image.GetOrigin() == pytest.approx(expected.GetOrigin(), rel=1e-6), name
        assert (sitk.GetArrayFromImage(image) == sitk.GetArrayFromImage(expected)).all(), name
    again = nib.load(tmp_path / "out.nii.gz").header
    first = nib.load(source).header
    for name in ("xyzt_units", "srow_x", "srow_y", "srow_z", "pixdim"):
        np.testing.assert_array_equal(again[name], first[name], name)
    from_image = mm.from_nibabel(nib.load(source))
    np.testing.assert_array_equal(from_image.grid.affine, mask.grid.affine)


def test_sform_and_qform_that_disagree_are_named_with_both(tmp_path):
    spaced = np.diag([2, 2, 2, 1]) @ AFFINE
    flipped = np.diag([-1, 1, 1, 1]) @ AFFINE
    moved = AFFINE.copy()
    moved[1, 3] += 12
    swapped = AFFINE[:, [1, 0, 2, 3]]
    qforms = {"spacing": spaced, "direction": flipped, "origin": moved, "axes": swapped}
    for name, qform in {**qforms, "alike": AFFINE}.items():
        for folder, array in (("reference", TRUE), ("team", GUESS)):

            def edit(header, qform=qform):
                header.set_qform(qform, 1)

            save(tmp_path / folder / f"{name}.nii.gz", array, AFFINE, edit)
    done, rows = score(tmp_path, tmp_path / "out")
    for name in qforms:
        expected = "direction" if name == "axes" else name
        warning = rows[name]["warning"]
        assert warning.count("sform and qform differ by") == 1, warning
        assert f" {expected} " in warning, name
        assert float(rows[name]["volume_reference_mm3"]) == pytest.approx(40.96, rel=1e-5)
    assert "sform and qform" not in rows["alike"]["warning"]
    for text in (done.stdout, notes_of(tmp_path / "out")):
        assert "4 of 5 cases: sform and qform of a mask differ" in text


def test_a_spacing_that_no_image_has_is_stated_and_a_lost_grid_too(tmp_path):
    def without_codes(header):
        header["sform_code"] = header["qform_code"] = 0

    sizes = {"big": 1e6, "wide": 100, "small": 0.001, "tiny": 1e-6, "plain": 1.5}
    for folder, array in (("reference", TRUE), ("team", GUESS)):
        for name, mm_wide in sizes.items():
            save(
                tmp_path / folder / f"{name}.nii.gz",
                array,
                np.diag([-mm_wide, mm_wide, mm_wide, 1.0]),
            )
        save(tmp_path / folder / "no_codes.nii.gz", array, np.eye(4), without_codes)
        save(tmp_path / folder / "slab.nii.gz", array, np.diag([-1.0, 1, 99, 1]))
        long = np.zeros((40, 4, 300), np.uint8)
        long[2:5, 1:3, 1:4] = 1
        save(tmp_path / folder / "long.nii.gz", long, np.diag([-1.0, 1, 7, 1]))
    done, rows = score(tmp_path, tmp_path / "out")
    assert {name for name, row in rows.items() if "spacing is impossible" in row["warning"]} == {
        "big", "wide", "small", "tiny", "long",
    }  # fmt: skip
    assert [name for name, row in rows.items() if "is an identity" in row["warning"]] == [
        "no_codes"
    ]
    assert float(rows["big"]["volume_reference_mm3"]) == pytest.approx(256e18, rel=1e-5)
    assert float(rows["tiny"]["volume_reference_mm3"]) == pytest.approx(256e-18, rel=1e-5)
    assert "RuntimeWarning" not in done.stderr
    for text in (done.stdout, notes_of(tmp_path / "out")):
        assert "5 of 8 cases: the spacing is impossible for an image of a body" in text
        assert "1 of 8 cases: the grid is an identity" in text
    for name in ("big", "tiny"):
        with pytest.warns(UserWarning, match="the spacing is impossible for an image of a body"):
            mm.read_mask(tmp_path / "team" / f"{name}.nii.gz")


def test_an_axis_without_length_or_direction_is_still_refused(tmp_path):
    def flatten(header):
        header["srow_z"] = header["srow_x"]

    def make_endless(header):
        header["srow_x"][0] = np.inf

    for name, edit in (("flat", flatten), ("endless", make_endless)):
        save(tmp_path / "reference" / f"{name}.nii.gz")
        save(tmp_path / "team" / f"{name}.nii.gz", GUESS, AFFINE, edit)
    done, rows = score(tmp_path, tmp_path / "out")
    assert done.returncode == 3
    assert "affine to be invertible" in rows["flat"]["reason"]
    assert "finite 4x4 matrix" in rows["endless"]["reason"]
    assert "RuntimeWarning" not in done.stderr


def test_a_spacing_that_the_caller_states_is_no_lost_one():
    scores = mm.score(
        TRUE, GUESS, grid=mm.Grid.of_spacing(TRUE.shape, (1, 1, 1)), bootstrap=0, progress=False
    )
    assert "identity" not in scores.cases["warning"]["case"]
    assert (
        mm.score(TRUE, GUESS, grid=mm.Grid(TRUE.shape, np.eye(4)), bootstrap=0, progress=False)
        .cases["warning"]["case"]
        .startswith("the grid is an identity")
    )


def test_the_window_command_and_export_read_the_same_unit(tmp_path):
    """`export` writes masks of a data set in micrometres so that they overlay its images."""
    in_micrometres = np.diag([1000, 1000, 1000, 1]) @ AFFINE

    def edit(header):
        header.set_xyzt_units("micron")

    signal = (np.arange(TRUE.size).reshape(TRUE.shape) % 90).astype(np.int16)
    for phase in (0, 1):
        images = tmp_path / "data" / "images" / "A_1"
        save(images / f"A_1_000{phase}.nii.gz", signal, in_micrometres, edit)
    mask = save(tmp_path / "team" / "A_1.nii.gz", GUESS, in_micrometres, edit)
    out = tmp_path / "bundle"
    done = mamamia(
        "export", tmp_path / "data", "--masks", tmp_path / "team", "--out", out, has_figures=False
    )
    assert done.returncode == 0, done.stderr
    (written,) = (path for path in out.rglob("A_1.nii.gz") if "images" not in path.parts)
    one, other = (sitk.ReadImage(str(path)) for path in (mask, written))
    assert one.GetSpacing() == pytest.approx(other.GetSpacing(), rel=1e-6)
    assert one.GetOrigin() == pytest.approx(other.GetOrigin(), rel=1e-6)
    assert (sitk.GetArrayFromImage(one) == sitk.GetArrayFromImage(other)).all()


def test_without_resamples_the_terminal_says_which_intervals_are_left(tmp_path):
    lines = ["patient_id,age,menopause,breast_density"]
    for number in range(12):
        for folder, array in (("reference", TRUE), ("team", np.roll(TRUE, number % 3, axis=0))):
            save(tmp_path / folder / f"C_{number:02}.nii.gz", array)
        lines.append(f"C_{number:02},{30 + 20 * (number % 2)},{('pre', 'post')[number % 2]},a")
    (tmp_path / "clinical.csv").write_text("\n".join(lines))
    text = (
        "Intervals of disparities and fairness are computed from the group means without resamples"
    )
    done, _ = score(tmp_path, tmp_path / "none", "--clinical", tmp_path / "clinical.csv")
    assert text in done.stdout
    assert " 95 %" in next(line for line in done.stdout.splitlines() if "  fairness  " in line)
    done, _ = score(
        tmp_path, tmp_path / "some", "--clinical", tmp_path / "clinical.csv", "--bootstrap", 20
    )
    assert text not in done.stdout
