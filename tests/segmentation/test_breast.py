"""The breast mask on bodies drawn by hand, in mm."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.kinetic.breast import breast_mask
from napari_mamamia.segmentation.kinetic.kinetic_settings import BreastSettings

STEP_MM = 3.0
CHEST_MM = 90.0  # depth of the chest's skin in the midline, behind the anterior face


def axes(shape, step=STEP_MM):
    """Return superior, posterior and left in mm from the middle, from the face, from the middle."""
    s, p, left = np.indices(shape) * step
    return s - s.max() / 2, p, left - left.max() / 2


def chest(shape):
    """Return a chest with an elliptic front, 320 mm wide and 220 mm deep."""
    _, p, left = axes(shape)
    return (left / 160) ** 2 + ((p - CHEST_MM - 110) / 110) ** 2 <= 1


def breast(shape, centre_mm):
    s, p, left = axes(shape)
    base = CHEST_MM + 20
    inside = (s / 65) ** 2 + ((p - base) / 80) ** 2 + ((left - centre_mm) / 65) ** 2 <= 1
    return inside & (p <= base)


def noisy(tissue, signal=200.0, noise=8.0):
    rng = np.random.default_rng(0)
    real, imaginary = rng.normal(0, noise, (2, *tissue.shape))
    return np.hypot(np.where(tissue, signal, 0.0) + real, imaginary).astype(np.float32)


def lps(shape, step=STEP_MM):
    return Grid(shape, np.diag([-step, -step, step, 1.0]))


def heart(shape):
    s, p, left = axes(shape)
    return ((s / 40) ** 2 + ((p - CHEST_MM - 75) / 40) ** 2 + ((left - 30) / 45) ** 2) <= 1


def test_two_breasts_are_in_the_mask_and_the_heart_is_not():
    shape = (60, 70, 112)
    right, left = breast(shape, -75), breast(shape, 75)
    found = breast_mask(noisy(chest(shape) | right | left), lps(shape))
    assert found.notes == ()
    for one in (right, left):
        assert found.array[one].mean() > 0.85  # the skin is not in it
    assert not found.array[heart(shape)].any()


def test_the_mask_follows_the_curve_of_the_chest_to_the_side():
    shape = (60, 70, 112)
    found = breast_mask(noisy(chest(shape) | breast(shape, -75) | breast(shape, 75)), lps(shape))
    deepest = shape[1] - 1 - found.array[:, ::-1].argmax(axis=1)
    middle, side = deepest[30, 56], deepest[30, 56 + 38]  # 38 voxels are 114 mm
    # the chest's front falls back by 110 (1 - sqrt(1 - (114/160)^2)) = 33 mm there
    assert (side - middle) * STEP_MM == pytest.approx(33, abs=14)


def test_one_breast_in_a_narrow_view_is_found_and_the_heart_is_not():
    shape = (70, 70, 56)
    tissue = chest(shape) | breast(shape, 0)
    found = breast_mask(noisy(tissue), lps(shape))
    assert found.notes == ()
    assert found.array[breast(shape, 0)].mean() > 0.85
    assert not found.array[heart(shape)].any()


def test_one_slice_of_each_standing_plane_is_enough():
    shape = (70, 70, 56)
    volume, one = noisy(chest(shape) | breast(shape, 0)), breast(shape, 0)
    for cut in (np.s_[35:36], np.s_[:, :, 28:29]):
        found = breast_mask(volume[cut], lps(volume[cut].shape))
        assert found.array[one[cut]].mean() > 0.8
        assert not found.array[heart(shape)[cut]].any()


def test_the_mask_is_the_same_place_whatever_the_axes_are():
    shape = (48, 60, 90)
    volume = noisy(chest(shape) | breast(shape, -70) | breast(shape, 70))
    expected = breast_mask(volume, lps(shape)).array
    # a sagittal file, x to posterior, y to inferior, z to the right
    turned = volume.transpose(2, 0, 1)[::-1, ::-1, :]
    affine = np.zeros((4, 4))
    affine[1, 0], affine[2, 1], affine[0, 2], affine[3, 3] = -STEP_MM, -STEP_MM, STEP_MM, 1
    grid = Grid(turned.shape, affine)
    assert grid.orientation == "PIR"
    found = breast_mask(np.ascontiguousarray(turned), grid).array
    np.testing.assert_array_equal(found[::-1, ::-1, :].transpose(1, 2, 0), expected)


def test_skin_and_nipple_are_left_out():
    shape = (60, 70, 56)
    one = breast(shape, 0)
    s, p, left = axes(shape)
    nipple = (s**2 + left**2 <= 6**2) & (p < 60) & (p > 18)  # the breast's tip is at 30 mm
    tissue = chest(shape) | one | nipple
    found = breast_mask(noisy(tissue), lps(shape))
    assert not (found.array & nipple & (p < 24)).any()
    with_it = breast_mask(noisy(tissue), lps(shape), BreastSettings(nipple_mm=0.0))
    assert (with_it.array & nipple & (p < 24)).any()
    thick = breast_mask(noisy(tissue), lps(shape), BreastSettings(skin_mm=9.0))
    assert thick.array.sum() < found.array.sum()


def test_fat_suppressed_fat_belongs_to_the_breast():
    shape = (60, 70, 112)
    right, left = breast(shape, -75), breast(shape, 75)
    tissue = chest(shape) | right | left
    signal = np.where(right | left, 45.0, 200.0)
    found = breast_mask(noisy(tissue, signal, noise=6.0), lps(shape))
    assert found.array[right | left].mean() > 0.85


def test_without_air_in_front_everything_is_searched_and_a_note_says_so():
    volume = np.random.default_rng(0).normal(300, 20, (20, 20, 20)).astype(np.float32)
    found = breast_mask(volume, lps(volume.shape))
    assert found.array.all()
    assert found.notes == (
        "no air was detected in front of the breast, so the whole image was searched",
    )


def test_a_flat_body_is_searched_as_a_whole_and_a_note_says_so():
    shape = (40, 40, 60)
    tissue = axes(shape)[1] > 45
    found = breast_mask(noisy(tissue), lps(shape))
    assert found.notes == (
        "no breast protrudes from the chest in this view, so the whole body is searched",
    )
    assert found.array[:, -1, :].all()


def test_a_view_that_ends_before_the_chest_is_not_cut_and_a_note_says_so():
    shape = (60, 40, 112)  # ends 27 mm behind the chest's front
    tissue = breast(shape, -75) | breast(shape, 75)
    found = breast_mask(noisy(tissue)[:, :30], lps((60, 30, 112)))
    assert any("the chest was not cut off" in note or "whole body" in note for note in found.notes)
    assert found.array[tissue[:, :30]].mean() > 0.8


def test_values_that_are_not_finite_do_not_matter():
    shape = (48, 60, 90)
    volume = noisy(chest(shape) | breast(shape, -70) | breast(shape, 70))
    expected = breast_mask(volume, lps(shape)).array
    broken = volume.copy()
    broken[np.random.default_rng(0).random(shape) < 0.001] = np.nan
    assert (breast_mask(broken, lps(shape)).array != expected).mean() < 0.01


def both_breasts(shape):
    return breast(shape, -75) | breast(shape, 75)


def test_a_border_that_the_scanner_filled_with_zeros_is_not_taken_for_air():
    # GE and Siemens fill with zeros what an image corrected for distortion does not cover
    shape = (60, 70, 112)
    volume = noisy(chest(shape) | both_breasts(shape), noise=25.0)  # air is a sixth of tissue
    s, _, left = axes(shape)
    bent = 12 + 12 * (s / 90) ** 2 + 12 * (left / 168) ** 2
    framed = np.where(axes(shape)[1] < bent, 0.0, volume)
    framed[:3] = framed[:, :, :4] = framed[:, :, -4:] = 0.0
    found = breast_mask(framed.astype(np.float32), lps(shape))
    assert found.notes == ()
    assert found.array[both_breasts(shape)].mean() > 0.85
    assert not found.array[heart(shape)].any()


def test_air_that_was_blanked_to_zero_is_air():
    shape = (60, 70, 112)
    tissue = chest(shape) | both_breasts(shape)
    found = breast_mask(np.where(tissue, noisy(tissue), 0.0).astype(np.float32), lps(shape))
    assert found.notes == ()
    assert found.array[both_breasts(shape)].mean() > 0.85
    assert found.array[~tissue].mean() < 0.01


def test_noise_that_grows_towards_the_body_is_no_body():
    # as parallel imaging leaves it: least at the image's face, most in its middle
    shape = (60, 70, 112)
    tissue = chest(shape) | both_breasts(shape)
    _, p, left = axes(shape)
    volume = noisy(
        tissue, noise=6.0 * (1 + 1.5 * np.exp(-(left**2) / 90**2) * np.clip(p / 90, 0, 1))
    )
    found = breast_mask(volume, lps(shape))
    assert found.array[both_breasts(shape)].mean() > 0.85
    assert found.array[~tissue].mean() < 0.02
    assert not found.array[heart(shape)].any()


def test_a_body_that_fades_at_both_ends_of_a_narrow_view_is_still_cut():
    shape = (70, 70, 56)
    tissue = chest(shape) | breast(shape, 0)
    fading = np.clip((78 - np.abs(axes(shape)[0])) / 10, 0, 1)  # far from the coil
    found = breast_mask(noisy(tissue, signal=200.0 * fading), lps(shape))
    assert found.notes == ()
    assert not found.array[heart(shape)].any()
    assert found.array[breast(shape, 0)].mean() > 0.75


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="skin_mm to be from 0 to 10 mm, but got 11"):
        replace(BreastSettings(), skin_mm=11.0)
