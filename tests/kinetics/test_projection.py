import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.projection import project_enhancement, slab_slices, sliding_maximum


def slow_slab(volume, axis, n):
    """The maximum of each slab, one slice after the other."""
    out = np.empty_like(volume)
    for i in range(volume.shape[axis]):
        first = max(i - (n - 1) // 2, 0)
        around = np.take(volume, range(first, min(i + n // 2 + 1, volume.shape[axis])), axis)
        np.moveaxis(out, axis, 0)[i] = around.max(axis=axis)
    return out


@settings(deadline=None, max_examples=40)
@given(axis=st.integers(0, 2), n=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_fast_slab_is_the_slow_one(axis, n, seed):
    volume = np.random.default_rng(seed).integers(0, 900, (5, 6, 7), np.uint16)
    np.testing.assert_array_equal(sliding_maximum(volume, axis, n), slow_slab(volume, axis, n))


def test_a_projection_of_the_whole_volume_is_the_same_at_every_slice():
    signal = np.zeros((2, 3, 2, 2), np.int16)
    signal[1, 2, 0, 1] = 70
    signal[1, 0, 1, 1] = -50
    along_z, none, along_x = project_enhancement(signal, 1, 0, (0, None, 0))
    # the voxel (2, 0, 1) alone enhances: its column of z, its row of x
    assert along_z.shape == (3, 2, 2)
    assert along_z[:, 0, 1].tolist() == [70, 70, 70]
    assert along_z.sum() == 210
    assert along_x[2, 0].tolist() == [70, 70]
    assert none.size == 0


def test_signal_that_falls_is_black_and_int16_does_not_overflow():
    signal = np.zeros((2, 1, 1, 2), np.int16)
    signal[0] = [[[-32768, 32767]]]
    signal[1] = [[[32767, -32768]]]
    (projected, *_) = project_enhancement(signal, 1, 0, (1, None, None))
    assert projected.dtype == np.uint16
    assert projected.ravel().tolist() == [65535, 0]


def test_any_two_phases_can_be_subtracted():
    signal = np.array([[[[5]]], [[[9]]], [[[30]]]], np.float32)
    (projected, *_) = project_enhancement(signal, 2, 1, (1, None, None))
    assert projected.item() == 21


def test_values_that_are_not_finite_do_not_enhance():
    signal = np.array([[[[5, 1]]], [[[np.nan, np.inf]]]], np.float32)
    (projected, *_) = project_enhancement(signal, 1, 0, (1, None, None))
    assert projected.ravel().tolist() == [0, 0]


def test_a_phase_that_is_not_there_is_refused():
    with pytest.raises(CaseError, match="needs phases 4 and 0"):
        project_enhancement(np.zeros((2, 1, 1, 1)), 4, 0, (1, 1, 1))


def test_a_slab_has_the_nearest_number_of_slices():
    # 10 mm of 2 mm slices; a slab thinner than a slice is that slice
    assert [slab_slices(10, 2.0), slab_slices(1, 3.0), slab_slices(5.0, 2.1)] == [5, 1, 2]
