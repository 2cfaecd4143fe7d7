import numpy as np
import pytest

from napari_mamamia.metrics.lesions import LesionCounts, lesion_counts


def spots(*places):
    mask = np.zeros((6, 20, 20), dtype=bool)
    for z, y, x in places:
        mask[z, y : y + 2, x : x + 2] = True
    return mask


def test_lesions_are_found_by_one_shared_voxel():
    # the prediction's spot shares the corner voxel (2, 3, 3) only
    assert lesion_counts(spots((2, 2, 2)), spots((2, 3, 3))) == LesionCounts(1, 0, 0)


def test_missed_and_false_lesions_are_counted_apart():
    reference, prediction = spots((1, 1, 1), (1, 9, 9)), spots((1, 1, 1), (4, 15, 3), (4, 15, 9))
    assert lesion_counts(reference, prediction) == LesionCounts(found=1, missed=1, false=2)


def test_one_part_may_find_two_lesions_and_two_parts_one_lesion():
    two, bridge = spots((2, 2, 2), (2, 2, 6)), np.zeros((6, 20, 20), dtype=bool)
    bridge[2, 2, 2:8] = True
    assert lesion_counts(two, bridge) == LesionCounts(2, 0, 0)
    assert lesion_counts(bridge, two) == LesionCounts(1, 0, 0)


def test_voxels_that_touch_by_a_corner_are_one_lesion():
    diagonal = np.zeros((4, 4, 4), dtype=bool)
    diagonal[1, 1, 1] = diagonal[2, 2, 2] = True
    assert lesion_counts(diagonal, np.zeros_like(diagonal)) == LesionCounts(0, 1, 0)


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 5, 6)])
def test_two_empty_masks_have_no_lesions(shape):
    empty = np.zeros(shape, dtype=bool)
    assert lesion_counts(empty, empty) == LesionCounts(0, 0, 0)
