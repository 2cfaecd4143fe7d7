import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.metrics.overlap import dice, iou

masks = arrays(np.bool_, (3, 4, 5))


def cube(start, shape=(8, 8, 8), size=4):
    mask = np.zeros(shape, dtype=bool)
    mask[tuple(slice(s, s + size) for s in start)] = True
    return mask


def test_dice_of_a_cube_shifted_by_one_voxel_is_three_quarters():
    # 64 voxels each, 3 x 4 x 4 = 48 shared: 2 * 48 / 128
    assert dice(cube((1, 1, 1)), cube((2, 1, 1))) == 0.75


def test_iou_of_a_cube_shifted_by_one_voxel_is_three_fifths():
    # 48 shared, 64 + 64 - 48 = 80 in either
    assert iou(cube((1, 1, 1)), cube((2, 1, 1))) == 0.6


def test_equal_masks_score_one():
    assert dice(cube((2, 2, 2)), cube((2, 2, 2))) == 1
    assert iou(cube((2, 2, 2)), cube((2, 2, 2))) == 1


def test_disjoint_masks_score_zero():
    assert dice(cube((0, 0, 0)), cube((4, 4, 4))) == 0
    assert iou(cube((0, 0, 0)), cube((4, 4, 4))) == 0


def test_one_empty_mask_scores_zero():
    empty = np.zeros((8, 8, 8), dtype=bool)
    assert dice(cube((1, 1, 1)), empty) == 0
    assert iou(empty, cube((1, 1, 1))) == 0


def test_dice_and_iou_of_two_empty_masks_are_nan():
    empty = np.zeros((2, 3, 4), dtype=bool)
    assert math.isnan(dice(empty, empty))
    assert math.isnan(iou(empty, empty))


def test_masks_of_unequal_shape_are_refused_with_both_shapes():
    with pytest.raises(GridMismatchError, match=r"\(2, 3, 4\).*\(2, 3, 5\)"):
        dice(np.ones((2, 3, 4), dtype=bool), np.ones((2, 3, 5), dtype=bool))


def test_masks_that_are_not_bool_are_refused():
    with pytest.raises(TypeError, match="uint8"):
        dice(np.ones((2, 3, 4), dtype=np.uint8), np.ones((2, 3, 4), dtype=bool))


@settings(deadline=None, max_examples=100)
@given(masks, masks)
def test_dice_and_iou_are_symmetric_and_agree_with_plain_counting(a, b):
    shared, either = int((a & b).sum()), int((a | b).sum())
    if either == 0:
        return
    assert dice(a, b) == dice(b, a) == 2 * shared / (int(a.sum()) + int(b.sum()))
    assert iou(a, b) == iou(b, a) == shared / either


@settings(deadline=None, max_examples=50)
@given(masks, masks, st.integers(0, 2), st.integers(0, 2))
def test_dice_does_not_change_when_the_image_grows(a, b, before, after):
    wide_a, wide_b = (np.pad(m, ((before, after),) * 3) for m in (a, b))
    assert dice(wide_a, wide_b) == dice(a, b) or not (a | b).any()
