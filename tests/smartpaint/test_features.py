"""What a brush compares: features of the box in hand, and their noise."""

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Features
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.brush.noise import noise_of

SPACING = (2.0, 0.7, 0.7)
TIMES_S = (0.0, 60.0, 150.0, 300.0, 450.0)


def case_of(signal, times_s=TIMES_S):
    grid = Grid(signal.shape[1:], np.diag([*SPACING[::-1], 1.0]))
    return Case("A_1", grid, signal, tuple(Phase(k, t) for k, t in enumerate(times_s)))


def noisy(phases, sigma=10.0, shape=(12, 60, 60), seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(500, sigma, (phases, *shape)).astype(np.float32)


def test_features_are_post_its_rise_and_its_late_change():
    signal = np.zeros((5, 2, 4, 4), dtype=np.uint16)
    for phase, value in enumerate((100, 7, 300, 7, 250)):
        signal[phase] = value
    images = measure_features(case_of(signal))
    assert images.names == ("post", "post - pre", "late - post")
    inside = images.in_box(Box((0, 1, 1), (1, 3, 4)))
    assert inside.dtype == np.float32
    assert inside.shape == (3, 1, 2, 3)
    np.testing.assert_array_equal(inside[:, 0, 0, 0], [300, 200, -50])


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (Features.POST, ("post",)),
        (Features.SUBTRACTION, ("post - pre",)),
        (Features.ALL, ("post", "post - pre", "late - post")),
    ],
)
def test_a_choice_keeps_the_measurements_of_its_features(wanted, names):
    images = measure_features(case_of(noisy(5)))
    chosen = images.choose(wanted)
    assert chosen.names == names
    whole = dict(zip(images.names, images.noise, strict=True))
    assert chosen.noise == tuple(whole[name] for name in names)
    assert chosen.choose(wanted) is chosen
    assert measure_features(case_of(noisy(5)), wanted).noise == chosen.noise


def test_without_a_late_phase_two_features_are_compared_and_it_is_said():
    images = measure_features(case_of(noisy(2), (0.0, 150.0)))
    assert images.names == ("post", "post - pre")
    assert images.missing == ("there is no late phase, so the brush compares 2 features",)


def test_a_single_phase_is_compared_as_it_is_and_it_is_said():
    images = measure_features(case_of(noisy(1), (None,)))
    assert images.names == ("image",)
    assert "only one phase" in images.missing[0]
    subtraction = images.choose(Features.SUBTRACTION)
    assert subtraction.names == ("image",)
    assert "no post - pre" in subtraction.missing[1]


def test_a_case_that_is_still_opening_is_refused():
    case = case_of(noisy(2), (0.0, 150.0))
    opening = Case("A_1", case.grid, case.signal, (case.phases[0], Phase(1, 150.0, loaded=False)))
    with pytest.raises(CaseError, match="still opening"):
        measure_features(opening)


def test_nan_passes_through_and_does_not_spoil_the_noise():
    signal = noisy(2)
    signal[1, 3, 4, 5] = np.nan
    images = measure_features(case_of(signal, (0.0, 150.0)))
    assert np.isnan(images.in_box(Box((3, 4, 5), (4, 5, 6)))).all()
    assert images.noise[0] == pytest.approx(10, rel=0.05)


def test_a_difference_of_two_phases_has_the_noise_of_both():
    images = measure_features(case_of(noisy(5)))
    expected = (10, 10 * 2**0.5, 10 * 2**0.5)
    np.testing.assert_allclose(images.noise, expected, rtol=0.05)


def test_progress_ends_at_its_total():
    seen = []
    with listening(seen.append):
        measure_features(case_of(noisy(5)))
    assert [step.done for step in seen] == [0, 1, 2, 3]
    assert seen[-1].fraction == 1


def test_noise_is_found_where_neighbours_share_it():
    """Voxels interpolated to twice their number along x: neighbours are alike, third ones not."""
    coarse = np.random.default_rng(1).normal(0, 10, (20, 80, 40))
    fine = np.repeat(coarse, 2, axis=2)
    assert noise_of(fine, None, SPACING).sigma == pytest.approx(10, rel=0.05)


def test_noise_does_not_take_an_edge_for_noise():
    signal = noisy(1)[0]
    signal[:, :, 20:] += 400
    assert noise_of(signal, None, SPACING).sigma == pytest.approx(10, rel=0.1)


def test_noise_is_that_of_tissue_where_the_air_was_masked():
    signal = noisy(1)[0]
    signal[:, :, :40] = 0
    assert noise_of(signal, None, SPACING).sigma == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize(("gain", "offset"), [(4.0, 0.0), (0.25, 64.0), (1.0, -512.0)])
def test_noise_follows_the_gain_and_not_the_offset(gain, offset):
    signal = noisy(1)[0].astype(np.float64)
    signal[:, :, 30:] += 40
    once, again = noise_of(signal, None, SPACING), noise_of(signal * gain + offset, None, SPACING)
    assert again.sigma == pytest.approx(gain * once.sigma, rel=1e-3)


def test_an_even_image_has_a_stand_in_above_zero_and_it_is_said():
    even = noise_of(np.full((3, 20, 20), 7.0), None, SPACING)
    assert (even.sigma, even.found) == (1.0, False)
    whole = noise_of(np.full((3, 20, 20), 7, dtype=np.int16), None, SPACING)
    assert whole.sigma == pytest.approx((1 / 12) ** 0.5)
    images = measure_features(case_of(np.full((1, 3, 9, 9), 7.0), (None,)))
    assert "has no measurable noise" in images.missing[-1]


@pytest.mark.parametrize("shape", [(1, 30, 30), (30, 1, 1), (1, 1, 1), (2, 2, 2)])
def test_noise_of_thin_volumes_is_above_zero(shape):
    assert noise_of(np.random.default_rng(0).normal(0, 1, shape), None, SPACING).sigma > 0


@pytest.mark.real
def test_a_real_exam_of_one_slice_gives_three_features(real_data):
    """Noise of a difference of two phases with equal noise is at least that of rounding."""
    folder = real_data("dce_slice") / "images" / "REAL_001"
    files = [nib.load(path) for path in sorted(folder.glob("*.nii.gz"))]
    signal = np.stack([np.asarray(file.dataobj).transpose() for file in files])
    assert signal.shape == (6, 1, 192, 192)
    images = measure_features(case_of(signal, (None,) * 6))
    assert images.names == ("post", "post - pre", "late - post")
    assert min(images.noise) > (1 / 12) ** 0.5
    assert images.missing == ()


# ------------------------------------------------------------------ odd images


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("phase", "left"),
    [(4, ("post", "post - pre")), (0, ("post", "late - post"))],
)
def test_a_feature_without_a_value_is_left_out_and_it_is_said(phase, left, value):
    signal = noisy(5)
    signal[phase] = value
    images = measure_features(case_of(signal))
    assert images.names == left
    (said,) = images.missing
    assert said.endswith("has no values and is not used")
    assert np.isfinite(images.in_box(Box.whole(signal.shape[1:]))).all()


def test_where_the_phase_that_counts_has_no_value_another_is_looked_at():
    signal = noisy(5)
    signal[2] = np.nan
    images = measure_features(case_of(signal))
    assert images.names == ("image",)
    assert images.missing[-1] == "the brush compares only the image of phase 0"


def test_where_no_phase_has_a_value_it_is_said_that_strokes_are_spheres():
    images = measure_features(case_of(np.full((5, 4, 8, 8), np.nan, np.float32)))
    assert images.missing[-1] == "no phase has a finite value, so strokes act like a plain sphere"
    assert images.noise == (1.0,)


@pytest.mark.parametrize("factor", [1e34, 1e-34])
def test_huge_and_tiny_values_are_scaled_with_their_noise(factor):
    usual = measure_features(case_of(noisy(5)))
    signal = noisy(5).astype(np.float64) * factor
    images = measure_features(case_of(signal))
    box = Box((1, 1, 1), (5, 9, 9))
    for k in range(3):
        assert 0.1 < images.noise[k] < 2
        one, other = (found.in_box(box)[k] / found.noise[k] for found in (usual, images))
        np.testing.assert_allclose(one, other, atol=0.02)


def test_a_column_of_voxels_has_a_noise():
    column = np.random.default_rng(0).normal(100, 10, (300, 1, 1)).astype(np.float32)
    assert 7 < noise_of(column, None, (1.0, 1.0, 1.0)).sigma < 13


def test_a_handful_of_finite_voxels_is_no_failure():
    signal = noisy(1, shape=(10, 40, 40))[0]
    signal[np.random.default_rng(0).random(signal.shape) < 0.9] = np.nan
    assert noise_of(signal, None, SPACING).sigma > 0
    signal[np.random.default_rng(1).random(signal.shape) < 0.999] = np.nan
    assert noise_of(signal, None, SPACING).sigma > 0
