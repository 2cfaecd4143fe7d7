"""Where things lie: volumes, sides, orientations, and the same patient on other grids."""

from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.io.data_set.volumes import write_mask, write_volume
from napari_mamamia.phantom import Breasts, PhantomSpec, Side, Tissue, TumourSpec, make_phantom

CENTRE = (-82.0, 48.0, 3.0)
BALL = TumourSpec(20.0, axis_ratios=(1.0, 1.0), roughness=0.0, centre_mm=CENTRE)


def world_centroid(mask, affine):
    """Mean world position of a (z, y, x) mask, through nibabel's own arithmetic."""
    return nib.affines.apply_affine(affine, np.argwhere(mask)[:, ::-1]).mean(axis=0)


@pytest.fixture(scope="module")
def patient():
    """One axial case over the whole chest."""
    spec = PhantomSpec(
        seed=4, shape=(34, 86, 88), spacing_mm=(6.0, 4.0, 4.0), contrast_to_noise=40.0
    )
    return make_phantom(spec)


def test_a_ball_has_the_volume_and_centre_of_a_ball():
    spec = PhantomSpec(
        tumours=(BALL,),
        shape=(36, 36, 36),
        spacing_mm=(1.0, 1.0, 1.0),
        field_centre_mm=CENTRE,
    )
    phantom = make_phantom(spec)
    assert phantom.reference.volume_mm3 == pytest.approx(4 / 3 * np.pi * 10**3, rel=0.01)
    centre = world_centroid(phantom.reference.array, phantom.case.grid.affine)
    assert centre == pytest.approx(CENTRE, abs=0.1)


def test_a_smooth_ellipsoid_has_the_volume_of_its_axes():
    tumour = TumourSpec(30.0, axis_ratios=(0.8, 0.6), roughness=0.0, centre_mm=CENTRE)
    spec = PhantomSpec(
        tumours=(tumour,), shape=(44,) * 3, spacing_mm=(1.0,) * 3, field_centre_mm=CENTRE
    )
    expected = 4 / 3 * np.pi * 15 * 12 * 9
    assert make_phantom(spec).reference.volume_mm3 == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("longest_mm", [10.0, 50.0])
def test_a_rough_tumour_stays_near_its_stated_size_but_is_no_ellipsoid(longest_mm):
    tumour = TumourSpec(longest_mm, roughness=1.0, spicules=20, centre_mm=CENTRE)
    step = longest_mm / 25
    spec = PhantomSpec(
        tumours=(tumour,), shape=(50,) * 3, spacing_mm=(step,) * 3, field_centre_mm=CENTRE
    )
    mask = make_phantom(spec).reference.array
    inside = np.argwhere(mask) * step
    extent = (inside[:, None, :] - inside[None, ::17, :])[:: max(1, len(inside) // 1500)]
    longest = np.sqrt((extent**2).sum(axis=-1)).max()
    assert 0.8 * longest_mm < longest < 1.7 * longest_mm
    smooth = replace(spec, tumours=(replace(tumour, roughness=0.0, spicules=0),))
    ellipsoid = make_phantom(smooth).reference.array
    assert np.count_nonzero(mask ^ ellipsoid) > 0.1 * np.count_nonzero(ellipsoid)


def test_the_same_patient_axial_and_sagittal_has_equal_tumours():
    axial = PhantomSpec(
        seed=9,
        tumours=(TumourSpec(24.0), TumourSpec(12.0)),
        shape=(70, 60, 60),
        spacing_mm=(1.5, 2.0, 2.0),
        field_centre_mm=(-80.0, 40.0, 0.0),
    )
    sagittal = replace(axial, shape=(50, 80, 75), spacing_mm=(2.4, 1.4, 1.6), orientation="PSR")
    one, other = make_phantom(axial), make_phantom(sagittal)
    for number in (1, 2):
        a, b = one.lesions == number, other.lesions == number
        volumes = [
            np.count_nonzero(mask) * phantom.case.grid.voxel_volume_mm3
            for mask, phantom in ((a, one), (b, other))
        ]
        assert volumes[0] == pytest.approx(volumes[1], rel=0.06)
        centres = [
            world_centroid(mask, phantom.case.grid.affine)
            for mask, phantom in ((a, one), (b, other))
        ]
        assert centres[0] == pytest.approx(centres[1], abs=0.35)


@pytest.mark.parametrize("codes", ["PSR", "RPI", "SLP"])
def test_an_orientation_only_permutes_and_flips_the_array(codes):
    las = PhantomSpec(
        seed=5, shape=(20, 24, 30), spacing_mm=(6.0,) * 3, field_centre_mm=(-60.0, 0.0, 0.0)
    )
    extents = {"R": 30, "A": 24, "S": 20}
    same = {"L": "R", "P": "A", "I": "S"}
    x, y, z = (extents[same.get(letter, letter)] for letter in codes)
    turned = make_phantom(replace(las, orientation=codes, shape=(z, y, x)))
    straight = make_phantom(las)
    image = nib.Nifti1Image(turned.tissue.transpose(), turned.case.grid.affine)
    to_las = nib.orientations.ornt_transform(
        nib.io_orientation(image.affine), nib.orientations.axcodes2ornt("LAS")
    )
    back = image.as_reoriented(to_las)
    assert back.affine == pytest.approx(straight.case.grid.affine, abs=1e-3)
    differ = np.asanyarray(back.dataobj).transpose() != straight.tissue
    assert differ.mean() < 1e-3


@pytest.mark.parametrize(
    ("codes", "shape", "spacing_mm"),
    [("LAS", (20, 50, 76), (6.0, 4.0, 4.0)), ("PSR", (24, 40, 40), (5.0, 4.5, 4.0))],
)
def test_written_files_have_the_stated_orientation_and_the_tumour_in_its_place(
    tmp_path, codes, shape, spacing_mm
):
    spec = PhantomSpec(tumours=(BALL,), orientation=codes, shape=shape, spacing_mm=spacing_mm)
    phantom = make_phantom(spec)
    write_volume(phantom.case.signal[1], phantom.case.grid, tmp_path / "image.nii.gz")
    write_mask(phantom.reference, tmp_path / "mask.nii.gz")
    image, mask = nib.load(tmp_path / "image.nii.gz"), nib.load(tmp_path / "mask.nii.gz")
    assert "".join(nib.aff2axcodes(image.affine)) == codes
    assert image.get_data_dtype() == np.int16
    assert np.array_equal(image.affine, phantom.case.grid.affine)
    assert np.array_equal(image.affine, mask.affine)
    zooms = image.header.get_zooms()[::-1]
    assert zooms == pytest.approx(spacing_mm, rel=1e-6)
    inside = np.asanyarray(mask.dataobj).transpose() > 0
    assert world_centroid(inside, mask.affine) == pytest.approx(CENTRE, abs=1.2)


def test_the_heart_lies_on_the_patients_left_and_the_liver_on_the_right(patient):
    affine = patient.case.grid.affine
    heart = world_centroid(patient.tissue == Tissue.HEART_BLOOD, affine)
    liver = world_centroid(patient.tissue == Tissue.LIVER, affine)
    assert heart[0] < -5
    assert liver[0] > 20
    assert heart[2] > liver[2]


def test_breasts_point_to_anterior_and_lungs_lie_behind_them(patient):
    affine = patient.case.grid.affine
    breast = world_centroid(patient.breast, affine)
    muscle = world_centroid(patient.tissue == Tissue.MUSCLE, affine)
    lung = world_centroid(patient.tissue == Tissue.LUNG, affine)
    assert breast[1] > muscle[1] > lung[1]


@pytest.mark.parametrize("side", list(Side))
def test_a_tumour_lies_in_the_breast_of_its_side(side):
    spec = PhantomSpec(
        tumours=(TumourSpec(20.0, side=side),), shape=(30, 66, 104), spacing_mm=(5.0, 3.0, 3.0)
    )
    phantom = make_phantom(spec)
    x = world_centroid(phantom.reference.array, phantom.case.grid.affine)[0]
    assert x > 30 if side == Side.RIGHT else x < -30
    inside = phantom.breast[phantom.reference.array]
    assert inside.mean() > 0.97


def test_after_a_mastectomy_there_is_one_breast():
    spec = PhantomSpec(breasts=Breasts.LEFT, shape=(20, 50, 76), spacing_mm=(7.0, 4.0, 4.0))
    phantom = make_phantom(spec)
    x = phantom.case.grid.to_world_mm(np.argwhere(phantom.breast))[:, 0]
    assert x.max() < 0


def test_reference_is_the_union_of_the_lesions_and_labelled_as_tumour(patient):
    assert np.array_equal(patient.reference.array, patient.lesions > 0)
    labels = patient.tissue[patient.reference.array]
    assert np.isin(labels, (Tissue.TUMOUR, Tissue.TUMOUR_CORE)).all()
    assert not patient.lesions[patient.tissue == Tissue.FIBROGLANDULAR].any()


def test_denser_breasts_hold_more_glandular_tissue():
    shares = []
    for density in "abcd":
        spec = PhantomSpec(
            breast_density=density, shape=(20, 50, 76), spacing_mm=(7.0, 4.0, 4.0), tumours=()
        )
        phantom = make_phantom(spec)
        gland = (phantom.tissue == Tissue.FIBROGLANDULAR) & phantom.breast
        shares.append(np.count_nonzero(gland) / np.count_nonzero(phantom.breast))
    assert shares == sorted(shares)
    assert shares[0] < 0.12
    assert shares[3] > 0.4
