import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.metrics.crop import joint_crop

sparse = arrays(
    np.bool_,
    array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=6),
    elements=st.integers(0, 9).map(lambda n: n == 0),
)


def plain_box(array):
    places = np.argwhere(array)
    if not len(places):
        return Box.empty()
    low, high = places.min(axis=0), places.max(axis=0) + 1
    return Box(tuple(int(v) for v in low), tuple(int(v) for v in high))


@settings(deadline=None, max_examples=200)
@given(sparse, st.permutations([0, 1, 2]), st.sampled_from([1, -1]))
def test_box_around_holds_exactly_the_foreground_in_any_memory_order(mask, order, step):
    view = mask.transpose(order)[::step]
    assert Box.around(view) == plain_box(view)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_box_around_takes_any_value_but_zero(dtype):
    values = np.zeros((4, 5, 6), dtype=dtype)
    values[1, 2, 3] = 2
    values[2, 4, 3] = 1
    assert Box.around(values) == Box((1, 2, 3), (3, 5, 4))


def test_joint_crop_has_a_margin_of_one_inside_the_image_and_none_beyond_it():
    a, b = np.zeros((2, 9, 9, 9), dtype=bool)
    a[0, 4, 4] = True
    b[2, 5, 7] = True
    cut_a, cut_b = joint_crop(a, b)
    # z 0..2 grows to 0..3, y 4..5 to 3..6, x 4..7 to 3..8
    assert cut_a.shape == cut_b.shape == (4, 4, 6)
    assert cut_a[0, 1, 1]
    assert cut_b[2, 2, 4]
    assert cut_a.sum() == cut_b.sum() == 1


def test_joint_crop_of_two_empty_masks_is_empty():
    empty = np.zeros((3, 3, 3), dtype=bool)
    cut, _ = joint_crop(empty, empty)
    assert cut.size == 0


def test_joint_crop_refuses_unequal_shapes_and_flat_arrays():
    with pytest.raises(GridMismatchError):
        joint_crop(np.zeros((2, 2, 2)), np.zeros((2, 2, 3)))
    with pytest.raises(ValueError, match="three axes"):
        joint_crop(np.zeros((2, 2)), np.zeros((2, 2)))
