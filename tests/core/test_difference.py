"""Flipped bits: done, undone, done again, exact to the byte."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from napari_mamamia.core.box import Box
from napari_mamamia.core.difference import BitChange, Difference

SHAPES = st.tuples(*(st.integers(1, 6) for _ in range(3)))


def bytes_pair(dtype):
    """Two arrays of one shape, any bits in them."""
    return SHAPES.flatmap(
        lambda shape: st.tuples(
            arrays.arrays(dtype, shape, elements=st.integers(0, np.iinfo(dtype).max)),
            arrays.arrays(dtype, shape, elements=st.integers(0, np.iinfo(dtype).max)),
        )
    )


@given(bytes_pair(np.uint8), bytes_pair(np.uint32))
@settings(deadline=None, max_examples=60)
def test_flipping_once_does_a_step_and_twice_restores_every_byte(labels, soft):
    before, after = labels
    soft_before, soft_after = (bits.view(np.float32) for bits in soft)
    parts = (BitChange.of(before ^ after, Box.whole(before.shape)),)
    soft_parts = (BitChange.of(soft[0] ^ soft[1], Box.whole(soft_before.shape)),)
    step = Difference(1, tuple(filter(None, parts)), tuple(filter(None, soft_parts)))
    array, membership = before.copy(), soft_before.copy()

    step.flip(array, membership)
    assert array.tobytes() == after.tobytes()
    assert membership.tobytes() == soft_after.tobytes()
    step.flip(array, membership)
    assert array.tobytes() == before.tobytes()
    assert membership.tobytes() == soft_before.tobytes()


def test_a_change_lies_in_the_tight_box_of_what_changed():
    flipped = np.zeros((4, 5, 6), np.uint8)
    flipped[1, 2, 3] = flipped[2, 4, 3] = 7
    change = BitChange.of(flipped, Box((10, 20, 30), (14, 25, 36)))
    assert change.box == Box((11, 22, 33), (13, 25, 34))
    assert change.count == 2


def test_nothing_changed_is_no_change():
    assert BitChange.of(np.zeros((2, 2, 2), np.uint8), Box.whole((2, 2, 2))) is None


def test_the_voxels_of_a_step_are_those_whose_label_changed():
    labels = np.zeros((2, 3, 4), np.uint8)
    labels[0, 0, :3] = 1
    soft = np.zeros((2, 3, 4), np.uint32)
    soft[1] = 9
    whole = Box.whole(labels.shape)
    step = Difference(1, (BitChange.of(labels, whole),), (BitChange.of(soft, whole),))
    assert step.changed_voxels == 3
    assert step.box == Box((0, 0, 0), (1, 1, 3))


def test_a_mask_of_one_value_takes_little_memory():
    labels = np.ones((40, 100, 100), np.uint8)
    change = BitChange.of(labels, Box.whole(labels.shape))
    assert change.nbytes < 1000  # 400 000 voxels


def test_changes_that_differ_in_one_bit_are_not_the_same():
    soft = np.random.default_rng(0).integers(1, 2**32, (3, 4, 5), dtype=np.uint32)
    other = soft.copy()
    other[2, 1, 1] ^= 1
    whole = Box.whole(soft.shape)
    a, b = (Difference(1, (), (BitChange.of(bits, whole),)) for bits in (soft, other))
    assert a.same_bits(replace(a))
    assert not a.same_bits(b)
    assert not a.same_bits(replace(a, label=2))


@pytest.mark.parametrize("plane", [b"", b"\0abc", b"\1abc", b"\2", b"\3\1", b"\2ab"])
def test_a_plane_that_does_not_fit_is_refused_and_changes_nothing(plane):
    values = np.zeros((2, 2, 2), np.uint8)
    values[0, 0] = (1, 2)
    change = replace(BitChange.of(values, Box.whole(values.shape)), planes=(plane,))
    array = np.zeros((2, 2, 2), np.uint8)
    with pytest.raises(ValueError, match="expected"):
        change.flip(array)
    assert not array.any()
