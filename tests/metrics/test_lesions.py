import numpy as np
import pytest
from scipy import ndimage

from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.metrics.lesions import LesionCounts, lesion_counts, parts_of


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


def scipy_parts(mask):
    return ndimage.label(mask, structure=np.ones((3, 3, 3)))


def assert_parts_are_scipys(mask):
    labels, n_parts = scipy_parts(mask)
    parts, places = parts_of(mask), np.argwhere(mask)
    assert parts.n == n_parts
    assert np.array_equal(parts.at(places) + 1, labels[mask])
    assert np.array_equal(parts.voxels, np.bincount(labels.ravel(), minlength=1)[1:])


@pytest.mark.parametrize("share", [0.0, 0.02, 0.06, 0.1, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 30), (30, 1, 1), (1, 30, 2), (7, 11, 13)])
@pytest.mark.parity
def test_parts_are_scipys_voxel_by_voxel(shape, share):
    for seed in range(4):
        assert_parts_are_scipys(np.random.default_rng(seed).random(shape) < share)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, 0, 4), (0, 1, 0)),  # the end of a row and the start of the next
        ((0, 3, 2), (1, 0, 2)),  # the last row of a plane and the first of the next
        ((0, 3, 4), (1, 0, 0)),
        ((0, 0, 4), (1, 1, 0)),
    ],
)
def test_opposite_edges_of_an_image_do_not_touch(one, other):
    mask = np.zeros((2, 4, 5), dtype=bool)
    mask[one] = mask[other] = True
    assert parts_of(mask).n == 2


def test_every_of_26_neighbours_is_one_part_and_no_voxel_further():
    for step in np.ndindex(5, 5, 5):
        mask = np.zeros((5, 5, 5), dtype=bool)
        mask[2, 2, 2] = mask[step] = True
        away = max(abs(n - 2) for n in step)
        assert parts_of(mask).n == (1 if away < 2 else 2)


def test_a_part_that_winds_through_the_volume_is_one():
    # rows in turn, joined at alternating ends; every row is a run and only ends touch
    mask = np.zeros((1, 41, 9), dtype=bool)
    mask[0, ::2] = True
    mask[0, 1::4, -1] = mask[0, 3::4, 0] = True
    for turned in (mask, mask[:, ::-1], mask[..., ::-1], mask.transpose(2, 0, 1)):
        assert parts_of(turned).n == 1
        assert_parts_are_scipys(turned)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parity
def test_meetings_are_the_pairs_of_scipys_labels_that_overlap(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 6, 14, 15)) < (0.05, 0.12)[seed % 2]
    (labels_a, _), (labels_b, _) = scipy_parts(a), scipy_parts(b)
    expected = {*zip(labels_a[a & b] - 1, labels_b[a & b] - 1, strict=True)}
    pairs = list(zip(*parts_of(a).meetings(parts_of(b)), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)


def test_masks_of_many_thousand_parts_are_matched_without_a_table_of_all_pairs():
    # 2 x 62,500 parts: a table of all pairs would take 4 GB
    a, b = np.zeros((2, 100, 100, 50), dtype=bool)
    a[::2, ::2, ::2] = True
    b[::2, ::2, ::2] = True
    b[0, 0, 0], b[1::2] = False, False
    assert lesion_counts(a, b) == LesionCounts(62_499, 1, 0)


def test_lesions_on_different_grids_are_not_counted():
    with pytest.raises(GridMismatchError, match="on one grid"):
        lesion_counts(np.zeros((2, 3, 4), dtype=bool), np.zeros((2, 3, 5), dtype=bool))
