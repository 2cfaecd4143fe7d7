import numpy as np
import pytest
from scipy import ndimage

from napari_mamamia.core.errors import GridMismatchError
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


def parts_by_flooding(mask):
    """The parts of a mask as sets of voxels, grown one voxel at a time: slow and plain."""
    left, parts = set(zip(*np.nonzero(mask), strict=True)), []
    while left:
        part = waiting = {left.pop()}
        while waiting:
            near = {
                (z + a, y + b, x + c)
                for z, y, x in waiting
                for a in (-1, 0, 1)
                for b in (-1, 0, 1)
                for c in (-1, 0, 1)
            }
            waiting = near & left
            left -= waiting
            part = part | waiting
        parts.append(part)
    return parts


def counts_by_flooding(reference, prediction):
    lesions, parts = parts_by_flooding(reference), parts_by_flooding(prediction)
    found = sum(any(lesion & part for part in parts) for lesion in lesions)
    false = sum(not any(lesion & part for lesion in lesions) for part in parts)
    return LesionCounts(found, len(lesions) - found, false)


@pytest.mark.parametrize("seed", range(12))
def test_counts_of_noise_are_those_of_flooding_every_part(seed):
    rng = np.random.default_rng(seed)
    reference, prediction = rng.random((2, 5, 9, 8)) < (0.03, 0.08, 0.15)[seed % 3]
    assert lesion_counts(reference, prediction) == counts_by_flooding(reference, prediction)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parity
def test_counts_on_the_crop_are_those_of_scipy_on_the_whole_volume(seed):
    rng = np.random.default_rng(100 + seed)
    volumes = []
    for _ in range(2):
        volume = np.zeros((24, 40, 36), dtype=bool)
        for z, y, x in rng.integers(0, (24, 40, 36), size=(rng.integers(0, 7), 3)):
            volume[z : z + 4, y : y + 6, x : x + 5] = True
        volumes.append(volume)
    reference, prediction = volumes
    lesions, n_lesions = ndimage.label(reference, structure=np.ones((3, 3, 3)))
    parts, n_parts = ndimage.label(prediction, structure=np.ones((3, 3, 3)))
    found = sum(bool(prediction[lesions == i].any()) for i in range(1, n_lesions + 1))
    true = sum(bool(reference[parts == i].any()) for i in range(1, n_parts + 1))
    expected = LesionCounts(found, n_lesions - found, n_parts - true)
    assert lesion_counts(reference, prediction) == expected


def test_lesions_on_different_grids_are_not_counted():
    with pytest.raises(GridMismatchError, match="must share one grid"):
        lesion_counts(np.zeros((2, 3, 4), dtype=bool), np.zeros((2, 3, 5), dtype=bool))
