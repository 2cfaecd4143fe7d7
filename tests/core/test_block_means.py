"""Means over blocks, against the plain mean of each block."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from napari_mamamia.core.block_means import block_means


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.float32, ">i2"])
@pytest.mark.parametrize("shape", [(3, 16, 12), (2, 17, 15), (1, 2, 9), (1, 1, 1), (2, 4, 3)])
def test_each_value_is_the_mean_of_its_block(shape: tuple[int, int, int], dtype: DTypeLike) -> None:
    planes = np.random.default_rng(3).integers(0, 30_000, shape).astype(dtype)
    edge_y, edge_x = min(4, shape[1]), min(4, shape[2])
    means = block_means(planes)
    assert means.shape == (shape[0], shape[1] // edge_y, shape[2] // edge_x)
    assert means.dtype == np.float32
    for z, y, x in np.ndindex(means.shape):
        block = planes[z, y * edge_y : (y + 1) * edge_y, x * edge_x : (x + 1) * edge_x]
        assert means[z, y, x] == pytest.approx(float(block.astype(np.float64).mean()), rel=1e-6)


def test_sums_of_the_largest_16_bit_values_are_exact() -> None:
    planes = np.full((1, 8, 8), 65_535, np.uint16)
    planes[0, 0, 0] = 65_534
    assert block_means(planes).tolist() == [[[65_535 - 1 / 16, 65_535], [65_535, 65_535]]]


def test_planes_that_lie_apart_in_memory_give_the_same_means() -> None:
    planes = np.random.default_rng(4).integers(-900, 900, (6, 20, 24)).astype(np.int16)
    assert np.array_equal(block_means(planes[::2, ::-1]), block_means(planes[::2, ::-1].copy()))


def test_a_block_with_a_value_that_is_no_number_has_none_and_the_others_do() -> None:
    planes = np.ones((1, 8, 8), np.float32)
    planes[0, 1, 6] = np.nan
    assert np.isnan(block_means(planes)).tolist() == [[[False, True], [False, False]]]
