"""Noise, coil, fat suppression and motion are what the spec states."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from skimage.registration import phase_cross_correlation

from napari_mamamia.phantom import PhantomSpec, Side, Tissue, TumourKind, TumourSpec, make_phantom

SPEC = PhantomSpec(
    seed=11,
    shape=(30, 66, 104),
    spacing_mm=(5.0, 3.0, 3.0),
    tumours=(TumourSpec(28.0),),
    contrast_to_noise=8.0,
    fibroglandular_signal=400.0,
)


def air(phantom):
    """Voxels at least three from any tissue."""
    return ~ndimage.binary_dilation(phantom.tissue != Tissue.AIR, iterations=3)


def contrast(phantom, *, with_fat):
    """Mean of the primary tumour minus its surround in phase 1, by brute force over distances."""
    phase = phantom.case.signal[1].astype(np.float64)
    tumour = np.argwhere(phantom.lesions == 1) * phantom.spec.spacing_mm
    kinds = [Tissue.FIBROGLANDULAR, Tissue.FAT] if with_fat else [Tissue.FIBROGLANDULAR]
    normal = np.argwhere(np.isin(phantom.tissue, kinds))
    places = normal * phantom.spec.spacing_mm
    near = np.abs(places - tumour.mean(axis=0)).max(axis=1) < 60
    normal, places = normal[near], places[near]
    away = np.array([np.sqrt(((tumour - place) ** 2).sum(axis=1)).min() for place in places])
    ring = normal[(away > 2) & (away <= 12)]
    return phase[phantom.lesions == 1].mean() - phase[tuple(ring.T)].mean()


@pytest.fixture(scope="module")
def noisy():
    return make_phantom(SPEC)


def test_signal_is_int16_not_negative_and_of_a_scanners_range(noisy):
    signal = noisy.case.signal
    assert signal.dtype == np.int16
    assert signal.shape == (5, 30, 66, 104)
    assert signal.min() >= 0
    assert 800 < signal.max() < 6000


def test_air_is_rayleigh_distributed(noisy):
    values = noisy.case.signal[2][air(noisy)].astype(np.float64)
    assert len(values) > 20_000
    assert values.mean() == pytest.approx(noisy.sigma * np.sqrt(np.pi / 2), rel=0.02)
    assert values.std() == pytest.approx(noisy.sigma * np.sqrt(2 - np.pi / 2), rel=0.03)


def test_noise_differs_between_phases_and_is_not_correlated(noisy):
    where = air(noisy)
    a, b = (noisy.case.signal[k][where].astype(float) for k in (0, 3))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03


@pytest.mark.parametrize("cnr", [3.0, pytest.param(8.0, marks=pytest.mark.night)])
@pytest.mark.parametrize("suppressed", [True, False])
def test_contrast_to_noise_is_as_stated(cnr, suppressed):
    spec = replace(SPEC, contrast_to_noise=cnr, fat_suppressed=suppressed)
    phantom = make_phantom(spec)
    # Sigma from the air of this image; the contrast from its twin with almost no noise, because
    # the magnitude lifts dark tissue where noise is strong.
    sigma = phantom.case.signal[1][air(phantom)].mean() / np.sqrt(np.pi / 2)
    twin = make_phantom(replace(spec, contrast_to_noise=150.0))
    assert contrast(twin, with_fat=suppressed) / sigma == pytest.approx(cnr, rel=0.03)


def test_contrast_to_noise_holds_for_a_rim_tumour_in_the_noisy_image_itself():
    spec = replace(SPEC, tumours=(TumourSpec(36.0, TumourKind.RIM),), contrast_to_noise=14.0)
    phantom = make_phantom(spec)
    sigma = phantom.case.signal[0][air(phantom)].mean() / np.sqrt(np.pi / 2)
    assert contrast(phantom, with_fat=True) / sigma == pytest.approx(14, rel=0.05)


def test_without_a_tumour_cnr_is_the_signal_to_noise_ratio_of_gland():
    phantom = make_phantom(replace(SPEC, tumours=(), contrast_to_noise=10.0))
    assert phantom.sigma == 40.0
    assert not phantom.reference.array.any()


def test_a_rim_tumour_has_a_core_that_enhances_less_than_its_rim():
    spec = replace(SPEC, tumours=(TumourSpec(40.0, TumourKind.RIM),), contrast_to_noise=50.0)
    phantom = make_phantom(spec)
    first, second = phantom.case.signal[:2].astype(float)
    core, rim = (phantom.tissue == kind for kind in (Tissue.TUMOUR_CORE, Tissue.TUMOUR))
    assert core.sum() > 20
    rise = [second[part].mean() / first[part].mean() - 1 for part in (core, rim)]
    assert rise[0] < 0.5 < 1.0 < rise[1]


def test_a_non_mass_tumour_is_not_one_solid_body():
    spec = replace(SPEC, tumours=(TumourSpec(50.0, TumourKind.NON_MASS),), contrast_to_noise=20.0)
    mask = make_phantom(spec).reference.array
    filled = ndimage.binary_closing(np.pad(mask, 6), iterations=4)[6:-6, 6:-6, 6:-6]
    assert np.count_nonzero(mask) < 0.85 * np.count_nonzero(filled)


def test_without_bias_one_tissue_has_one_signal_and_with_it_it_varies():
    spread = []
    for percent in (0.0, 25.0):
        phantom = make_phantom(replace(SPEC, bias_percent=percent, contrast_to_noise=150.0))
        values = phantom.case.signal[0][ndimage.binary_erosion(phantom.tissue == Tissue.MUSCLE)]
        spread.append(values.std() / values.mean())
    assert spread[0] < 0.05 < 0.1 < spread[1]


def test_suppressed_fat_is_darker_than_gland_and_unsuppressed_fat_brighter():
    for suppressed, darker in ((True, True), (False, False)):
        phantom = make_phantom(
            replace(SPEC, fat_suppressed=suppressed, contrast_to_noise=60.0, bias_percent=0.0)
        )
        phase = phantom.case.signal[0]
        fat = np.median(phase[(phantom.tissue == Tissue.FAT) & phantom.breast])
        gland = np.median(phase[phantom.tissue == Tissue.FIBROGLANDULAR])
        assert (fat < 0.75 * gland) if darker else (fat > 1.6 * gland)


def test_where_suppression_fails_fat_is_bright_in_all_phases_alike():
    good = make_phantom(replace(SPEC, contrast_to_noise=60.0))
    failed = make_phantom(replace(SPEC, contrast_to_noise=60.0, fat_suppression_failure_mm=40.0))
    fat = (good.tissue == Tissue.FAT) & good.breast
    change = failed.case.signal[0][fat].astype(float) - good.case.signal[0][fat]
    bright = change > 150
    assert 0.01 < bright.mean() < 0.5
    first, second = (failed.case.signal[k][fat].astype(float)[bright] for k in (0, 1))
    assert second.mean() == pytest.approx(first.mean(), rel=0.05)


def test_motion_by_whole_voxels_shifts_the_image_by_as_many():
    rest = replace(SPEC, bias_percent=0.0, contrast_to_noise=150.0)
    move = ((0.0,) * 3, (0.0,) * 3, (-6.0, 3.0, 5.0), (0.0,) * 3, (0.0,) * 3)
    still, moved = make_phantom(rest), make_phantom(replace(rest, motion_mm=move))
    # LAS with spacing (5, 3, 3): 6 mm to the left is +2 in x, 3 mm to anterior +1 in y,
    # 5 mm to superior +1 in z.
    expected = np.roll(still.case.signal[2].astype(float), (1, 1, 2), axis=(0, 1, 2))
    inner = (slice(2, -2), slice(3, -3), slice(4, -4))
    apart = np.abs(moved.case.signal[2][inner] - expected[inner])
    assert apart.mean() < 2.0 * still.sigma
    assert np.array_equal(moved.case.signal[1], still.case.signal[1])
    assert np.array_equal(moved.reference.array, still.reference.array)


def test_motion_by_parts_of_a_voxel_is_found_by_phase_correlation():
    rest = replace(SPEC, bias_percent=0.0, contrast_to_noise=80.0, times_s=(0.0, 120.0, 400.0))
    move = ((1.5, -2.0, 2.5), (0.0,) * 3, (0.0,) * 3)
    still, moved = make_phantom(rest), make_phantom(replace(rest, motion_mm=move))
    shift, _, _ = phase_cross_correlation(
        moved.case.signal[0].astype(float), still.case.signal[0].astype(float), upsample_factor=20
    )
    z_mm, y_mm, x_mm = shift * np.array(rest.spacing_mm)
    assert (-x_mm, y_mm, z_mm) == pytest.approx(move[0], abs=0.5)


@pytest.mark.parametrize("side", list(Side))
def test_a_vessel_reaches_the_tumour(side):
    centre = (82.0 if side == Side.RIGHT else -82.0, 48.0, 3.0)
    tumour = TumourSpec(14.0, side=side, centre_mm=centre)
    spec = PhantomSpec(
        tumours=(tumour,), shape=(44,) * 3, spacing_mm=(0.6,) * 3, field_centre_mm=centre
    )
    phantom = make_phantom(spec)
    around = ndimage.binary_dilation(phantom.lesions == 1, iterations=3)
    assert (phantom.tissue[around] == Tissue.VESSEL).any()
