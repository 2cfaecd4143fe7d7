"""Real-size cases for benchmarks."""

import numpy as np
import pytest
from benchmarks.phantoms.full_size import benchmark_phantom
from scipy import ndimage

from napari_mamamia.phantom import Tissue


def test_a_benchmark_case_has_the_asked_shape_and_its_truth_lies_on_the_tumour():
    phantom = benchmark_phantom(shape=(41, 112, 113), phases=4)
    signal = phantom.case.signal
    assert signal.shape == (4, 41, 112, 113)
    assert phantom.case.grid.shape == (41, 112, 113)
    assert phantom.case.grid.orientation == "LAS"
    rise = signal[1].astype(float) - signal[0]
    where = ndimage.binary_erosion(phantom.tissue == Tissue.AIR, iterations=4)
    assert rise[phantom.lesions == 1].mean() > 50 * abs(rise[where].mean())
    air = signal[3][where]
    assert air.mean() == pytest.approx(phantom.sigma * np.sqrt(np.pi / 2), rel=0.05)


def test_repeated_voxels_keep_the_field_of_view():
    phantom = benchmark_phantom(shape=(40, 112, 112), phases=3)
    grid = phantom.case.grid
    assert np.multiply(grid.spacing_mm, grid.shape) == pytest.approx((170, 340, 340), rel=1e-5)
    assert grid.to_world_mm((19.5, 55.5, 55.5))[[0, 2]] == pytest.approx((0, 0), abs=1e-3)
