"""Maps are made block by block: no seams, little memory, no drift with the signal's scale."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.kinetics.map_blocks import (
    peak_enhancement,
    percent_enhancement,
    signal_enhancement_ratio,
)


def test_blocks_join_without_a_seam():
    signal = np.random.default_rng(0).integers(1, 900, (2, 37, 160, 200)).astype(np.int16)
    one = percent_enhancement(signal, 1)
    each = np.stack([percent_enhancement(signal[:, z], 1) for z in range(37)])
    np.testing.assert_array_equal(one, each)


def test_extra_memory_is_small_beside_the_result():
    signal = np.ones((3, 64, 256, 256), dtype=np.int16)
    result_bytes = 64 * 256 * 256 * 4
    tracemalloc.start()
    signal_enhancement_ratio(signal, 1, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.8 * result_bytes


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.25, 16))
def test_pe_does_not_depend_on_the_scale_of_the_signal(pre, post, scale):
    signal = np.array([[pre], [post]], dtype=np.float32)
    once, again = percent_enhancement(signal, 1), percent_enhancement(signal * scale, 1)
    np.testing.assert_allclose(once, again, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("phase", [0, 1, 2])
def test_one_phase_that_is_not_finite_leaves_ratio_and_peak_undefined(bad, phase):
    signal = np.array([[100, 100], [200, 200], [300, 300]], dtype=np.float32)
    signal[phase, 0] = bad
    for result in (signal_enhancement_ratio(signal, 1, 2), peak_enhancement(signal)):
        assert np.isnan(result[0])
        assert np.isfinite(result[1])


def test_a_volume_without_voxels_gives_an_empty_map():
    assert percent_enhancement(np.zeros((2, 0, 4, 4)), 1).shape == (0, 4, 4)
