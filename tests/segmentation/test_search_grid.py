"""Pooling, smoothing and the noise that smoothing leaves."""

import numpy as np
import pytest
from scipy import ndimage
from tests.stepped import Stepped

from napari_mamamia.core.progress import listening, part
from napari_mamamia.segmentation.kinetic.enhancement import (
    noise_left,
    pool_factors,
    pooled,
    pooled_job,
    smoothed,
    spread,
)


def slow_pooled(volume, factors):
    shape = [-(-n // f) for n, f in zip(volume.shape, factors, strict=True)]
    out = np.empty(shape)
    for index in np.ndindex(*shape):
        block = volume[
            tuple(slice(i * f, (i + 1) * f) for i, f in zip(index, factors, strict=True))
        ]
        out[index] = block.mean()
    return out


@pytest.mark.parametrize("factors", [(1, 1, 1), (1, 2, 2), (2, 3, 1), (4, 4, 4)])
def test_pooling_is_the_mean_of_blocks_with_a_smaller_one_at_the_end(factors):
    volume = np.random.default_rng(2).integers(-500, 3000, (5, 7, 9)).astype(np.int16)
    result = pooled(volume, factors)
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_allclose(result, slow_pooled(volume, factors), rtol=1e-5)


def test_pooling_of_a_turned_view_equals_pooling_of_its_copy():
    volume = np.random.default_rng(2).integers(0, 3000, (6, 8, 10)).astype(np.int16)
    view = volume.transpose(2, 0, 1)[::-1, :, ::-1]
    np.testing.assert_array_equal(pooled(view, (2, 2, 2)), pooled(view.copy(), (2, 2, 2)))


def test_values_that_are_not_finite_count_as_0():
    volume = np.array([[[np.nan, 8.0, np.inf, -np.inf]]])
    assert pooled(volume, (1, 1, 2)).tolist() == [[[4.0, 0.0]]]


def test_pooling_in_chunks_equals_pooling_in_one_go():
    volume = np.random.default_rng(0).integers(0, 900, (37, 300, 400)).astype(np.int16)
    seen = []
    with listening(seen.append):
        result = pooled_job(volume, (2, 2, 2), "Reading")
    np.testing.assert_array_equal(result, pooled(volume, (2, 2, 2)))
    assert len(seen) > 2
    assert seen[-1].fraction == 1


def test_no_pooled_voxel_is_larger_than_asked():
    assert pool_factors((5.0, 0.7, 0.9), 1.6) == (1, 2, 1)


def test_spreading_repeats_voxels_and_cuts_what_is_too_much():
    coarse = np.array([[[1, 2]]])
    assert spread(coarse, (1, 2, 2), (1, 1, 3)).tolist() == [[[1, 1, 2]]]


def test_smoothing_equals_scipys_gaussian_in_voxels():
    volume = np.random.default_rng(0).normal(size=(9, 10, 11)).astype(np.float32)
    expected = ndimage.gaussian_filter(volume, (0.5, 1.0, 2.0), mode="nearest", truncate=3.0)
    np.testing.assert_allclose(smoothed(volume, 1.0, (2.0, 1.0, 0.5)), expected, atol=1e-5)


def test_smoothing_leaves_thick_slices_and_single_slices_alone():
    volume = np.zeros((3, 1, 11), dtype=np.float32)
    volume[1, 0, 5] = 1
    result = smoothed(volume, 1.0, (4.0, 1.0, 1.0))
    assert result[0].sum() == result[2].sum() == 0
    assert result[1].sum() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("spacing_mm", [(1.0, 1.0, 1.0), (3.0, 0.8, 0.8)])
def test_noise_that_is_left_is_foretold_despite_anatomy(spacing_mm):
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 20, (24, 60, 60)).astype(np.float32)
    anatomy = np.where(np.indices(noise.shape)[2] > 30, 900, 100).astype(np.float32)
    everywhere = np.ones(noise.shape, dtype=bool)
    foretold = noise_left(anatomy + noise, everywhere, 1.2, spacing_mm)
    inner = smoothed(noise, 1.2, spacing_mm)[4:-4, 5:-5, 5:-5]  # less is averaged at the edges
    assert foretold == pytest.approx(inner.std(), rel=0.06)


def test_noise_of_nothing_is_0():
    volume = np.ones((2, 2, 2), dtype=np.float32)
    assert noise_left(volume, np.zeros((2, 2, 2), dtype=bool), 1.0, (1.0, 1.0, 1.0)) == 0.0
    one = np.ones((1, 1, 1), dtype=np.float32)
    assert noise_left(one, np.ones((1, 1, 1), dtype=bool), 1.0, (1.0, 1.0, 1.0)) == 0.0


def test_a_part_of_a_longer_job_counts_between_its_ends_and_returns_the_result():
    volume = np.ones((4, 2, 2), dtype=np.int16)
    seen = []
    with listening(seen.append), part(20, 60, 100):
        result = pooled_job(volume, (1, 1, 1), "Reading")
    assert result.shape == (4, 2, 2)
    assert [(p.done, p.total) for p in seen] == [(20, 100), (60, 100)]


def test_cancelling_a_part_ends_the_work_within():
    closed = []

    def work():
        try:
            with part(0, 10, 10):
                pooled_job(np.ones((4, 2, 2)), (1, 1, 1), "Reading")
        finally:
            closed.append(True)

    job = Stepped(work)
    next(job)
    job.close()
    assert closed == [True]
