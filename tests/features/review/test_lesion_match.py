"""Lesions of two readers matched: by hand, and masks that are meant to confuse it."""

import time
from itertools import combinations, permutations
from math import dist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from napari_mamamia.core.answers import LesionAnchors
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.services.compare import (
    LEAST_IOU,
    MOST_LESIONS,
    group_lesions,
    join_lesions,
    match_masks,
)

GRID = Grid.of_spacing((3, 6, 40), (2.0, 1.0, 1.0))


def mask(*columns, rows=slice(1, 5), values=None, grid=GRID):
    """A mask of bars in slice 1: columns from, to (excluded); 4 rows high unless said."""
    array = np.zeros(grid.shape, np.uint8)
    for at, (start, stop) in enumerate(columns):
        array[1, rows, start:stop] = 1 if values is None else values[at]
    return LabelMap.of(array, grid)


def pairs_of(match):
    return [(one.first, one.second, one.dsc) for one in match.both]


def test_a_lesion_that_one_missed_is_the_others_alone():
    match = match_masks(mask((2, 10), (20, 23)), mask((2, 10)))
    assert pairs_of(match) == [("1", "1", 1.0)]
    assert (match.first_alone, match.second_alone) == (("2",), ())
    # 4 rows x 3 columns x 2 mm3; the middle column is 21
    assert match.first[1].volume_mm3 == 24.0
    assert match.first[1].voxel[0] == 1
    assert match.first[1].voxel[2] == 21


def test_as_many_lesions_at_other_places_are_not_the_same():
    match = match_masks(mask((2, 10), (14, 16)), mask((2, 10), (36, 38)))
    assert pairs_of(match) == [("1", "1", 1.0)]
    assert (match.first_alone, match.second_alone) == (("2",), ("2",))


def test_numbers_go_by_size_and_lesions_by_place():
    # left 24 and right 16 voxels of one, left 16 and right 24 of the other: 16 shared of each
    match = match_masks(mask((2, 8), (20, 24)), mask((2, 6), (20, 26)))
    assert pairs_of(match) == [("1", "2", 0.8), ("2", "1", 0.8)]
    assert match.n_alone == match.n_parts == 0
    assert match.names == {"1": "2", "2": "1"}


@pytest.mark.parametrize("is_turned", [False, True])
def test_one_lesion_over_two_of_the_other_is_split_and_not_missed(is_turned):
    whole, split = mask((2, 10)), mask((2, 5), (6, 10))
    match = match_masks(split, whole) if is_turned else match_masks(whole, split)
    # 16 of 32 voxels: 2 x 16 / (32 + 16); the other part holds 12
    assert [one.dsc for one in match.both] == [2 / 3]
    assert match.n_alone == 0
    assert (match.first_parts if is_turned else match.second_parts) == (("2", "1"),)


def test_lesions_that_touch_at_a_corner_are_one_part_and_joined_for_the_other():
    one = np.zeros(GRID.shape, np.uint8)
    one[1, 1:3, 2:6] = 1
    one[1, 3:5, 6:9] = 2  # another value: renumbered labels are one mask
    other = one.copy()
    other[1, 1:3, 5] = 0
    match = match_masks(LabelMap.of(one, GRID), LabelMap.of(other, GRID))
    assert len(match.first) == 1
    assert len(match.second) == 2
    assert (match.n_parts, match.n_alone) == (1, 0)


def test_labels_renumbered_change_nothing():
    plain, numbered = mask((2, 8), (20, 24)), mask((2, 8), (20, 24), values=(7, 2))
    other = mask((3, 8), (20, 23))
    assert match_masks(plain, other) == match_masks(numbered, other)


def test_the_sum_of_overlaps_is_largest_and_a_sliver_is_no_pair():
    """Columns of one row: A 0-9, 11-20; B 3-13 and 0-1. IoU: 7/14, 3/18 and 2/10."""
    rows = slice(1, 2)
    match = match_masks(mask((0, 10), (11, 21), rows=rows), mask((3, 14), (0, 2), rows=rows))
    # 7/14 = 0.5 is more than 3/18 + 2/10 = 0.367, which would be two pairs
    assert pairs_of(match) == [("1", "1", 2 * 7 / 21)]
    assert match.first_parts == (("2", "1"),)
    assert match.second_parts == (("2", "1"),)


def test_what_is_left_on_both_sides_is_paired_by_place_within_10_mm():
    # centres of 2 columns: 2.5 and 12.5 lie 10 mm apart, 2.5 and 11.5 lie 9 mm apart
    near = match_masks(mask((2, 4)), mask((11, 13)))
    assert pairs_of(near) == [("1", "1", 0.0)]
    far = match_masks(mask((2, 4)), mask((12, 14)))
    assert pairs_of(far) == []
    assert (far.first_alone, far.second_alone) == (("1",), ("1",))


def test_one_shared_voxel_is_nearer_than_the_nearest_centre():
    # 20 columns and 2 that overlap in one: IoU 4 / 84, centres 10 mm apart; another lies 3 mm away
    match = match_masks(mask((2, 22)), mask((21, 23), (24, 26)))
    assert pairs_of(match) == [("1", "1", 2 * 4 / (80 + 8))]
    assert match.second_alone == ("2",)


def test_empty_masks_have_no_lesions():
    empty = LabelMap.of(np.zeros(GRID.shape, np.uint8), GRID)
    for one, other in ((None, None), (empty, empty), (None, empty), (empty, None)):
        match = match_masks(one, other)
        assert (match.both, match.n_alone, match.n_parts) == ((), 0, 0)
    assert match_masks(mask((2, 4)), None).first_alone == ("1",)
    assert match_masks(empty, mask((2, 4))).second_alone == ("1",)


def test_confetti_is_matched_speck_by_speck_and_quickly():
    grid = Grid.of_spacing((10, 100, 100), (12.0, 12.0, 12.0))
    one, other = np.zeros((2, *grid.shape), np.uint8)
    specks = [(z, y, x) for z in (2, 6) for y in range(5, 95, 9) for x in range(5, 95, 9)]
    for at, place in enumerate(specks):
        one[place] = 1
        if at % 2:
            other[place] = 1
    began = time.process_time()
    match = match_masks(LabelMap.of(one, grid), LabelMap.of(other, grid))
    assert time.process_time() - began < 2
    assert len(specks) == 200
    assert (len(match.both), len(match.first_alone)) == (100, 100)
    assert {pair.dsc for pair in match.both} == {1.0}


def test_noise_is_cut_to_the_largest_and_said():
    grid = Grid.of_spacing((20, 60, 60), (1.0, 1.0, 1.0))
    noise = np.random.default_rng(1).random(grid.shape) < 0.03
    labels = LabelMap.of(noise.astype(np.uint8), grid)
    match = match_masks(labels, labels)
    assert len(match.both) == MOST_LESIONS
    assert match.n_left_out > 0
    assert match.n_alone == 0


def test_of_three_readers_the_most_alike_are_joined_first():
    masks = {
        "a": mask((2, 8), (20, 24)),
        "b": mask((20, 26), (2, 6)),  # the same two, the other way round in size
        "c": mask((20, 24)),
    }
    names = group_lesions(
        (one, other, match_masks(masks[one], masks[other]))
        for one, other in (("a", "b"), ("a", "c"), ("b", "c"))
    )
    assert names["a"]["1"] == names["b"]["2"]
    assert names["a"]["2"] == names["b"]["1"] == names["c"]["1"]
    assert names["a"]["1"] != names["a"]["2"]


@given(st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 12),
                                   st.integers(1, 5)), max_size=3), min_size=3, max_size=4),
       st.randoms(use_true_random=False))  # fmt: skip
def test_groups_and_numbers_depend_on_no_order_of_readers_and_pairs(masks, chance):
    """Whoever comes first, in whichever direction two are matched, under whatever names."""
    grid = Grid.of_spacing((2, 4, 18), (30.0, 4.0, 2.0))
    arrays = np.zeros((len(masks), *grid.shape), np.uint8)
    for array, each in zip(arrays, masks, strict=True):
        for z, y, x, length in each:
            array[z, y, x : x + length] = 1
    labels = [LabelMap.of(array, grid) for array in arrays]

    def grouped(names, pairs):
        return group_lesions((names[a], names[b], match_masks(labels[a], labels[b]))
                             for a, b in pairs)  # fmt: skip

    pairs = list(combinations(range(len(masks)), 2))
    usual = grouped("abcd", pairs)
    turned = [pair[::-1] if chance.random() < 0.5 else pair for pair in pairs]
    chance.shuffle(turned)
    assert grouped("abcd", turned) == usual
    names = ["abcd"[at] for at in chance.sample(range(4), 4)]
    renamed = grouped(names, turned)
    assert {at: renamed[names[at]] for at in range(len(masks)) if names[at] in renamed} == {
        at: usual["abcd"[at]] for at in range(len(masks)) if "abcd"[at] in usual
    }
    for numbers in usual.values():
        assert len(set(numbers.values())) == len(numbers)


def test_a_further_mask_takes_the_numbers_of_what_is_most_like_it_and_new_ones_for_the_rest():
    masks = {"a": mask((2, 8), (20, 24)), "b": mask((2, 7))}
    numbers = group_lesions([("a", "b", match_masks(masks["a"], masks["b"]))])
    assert numbers == {"a": {"1": "1", "2": "2"}, "b": {"1": "1"}}
    later = mask((20, 25), (2, 6), (33, 36))  # by size: 20 voxels, 16, 12
    joined = join_lesions(numbers, {who: match_masks(later, one) for who, one in masks.items()})
    assert joined == {"1": "2", "2": "1", "3": "3"}
    assert join_lesions({}, {}) == {}


# ------------------------------------------------------------------------ hostile cases


def test_mirrored_breasts_have_nothing_in_common():
    """The same volumes, left and right exchanged: by size they would be the same lesions."""
    array = np.zeros((3, 6, 80), np.uint8)
    array[1, 1:5, 4:12] = array[1, 1:3, 20:22] = 1
    grid = Grid.of_spacing(array.shape, (2.0, 1.0, 1.0))
    one, mirrored = LabelMap.of(array, grid), LabelMap.of(array[:, :, ::-1].copy(), grid)
    match = match_masks(one, mirrored)
    assert match.both == ()
    assert match.first_alone == match.second_alone == ("1", "2")


def test_lesions_that_touch_for_one_reader_are_one_that_the_other_parted():
    joined = mask((2, 10), (10, 16))
    parted = mask((2, 9), (10, 16))
    match = match_masks(joined, parted)
    # 28 of 56 + 28 - 28 voxels are IoU 0.5, 24 of 56 are 0.43
    assert pairs_of(match) == [("1", "1", 2 * 28 / (56 + 28))]
    assert match.second_parts == (("2", "1"),)


def test_distance_is_measured_in_mm_and_not_in_voxels():
    grid = Grid.of_spacing((8, 6, 40), (6.0, 1.0, 1.0))
    arrays = np.zeros((3, *grid.shape), np.uint8)
    arrays[0, 1, 2:4, 5:7] = arrays[1, 3, 2:4, 5:7] = arrays[2, 1, 2:4, 13:15] = 1
    one, two_slices, eight_columns = (LabelMap.of(array, grid) for array in arrays)
    # 2 slices of 6 mm are 12 mm, 8 columns of 1 mm are 8 mm
    assert match_masks(one, two_slices).both == ()
    assert pairs_of(match_masks(one, eight_columns)) == [("1", "1", 0.0)]


def test_masks_of_two_grids_are_refused_and_not_resampled():
    other = Grid.of_spacing((3, 6, 40), (2.0, 1.0, 1.5))
    with pytest.raises(GridMismatchError):
        match_masks(mask((2, 4)), mask((2, 4), grid=other))


def test_equal_sums_are_the_larger_lesions_whichever_way_the_masks_are_given():
    # 4 voxels over two of 4 each, half of each: the one that comes first in the array; alone or not
    match = match_masks(mask((3, 5)), mask((2, 4), (5, 7)))
    assert [(one.first, one.second) for one in match.both] == [("1", "1")]
    wide = match_masks(mask((4, 6)), mask((2, 5), (6, 9)))
    turned = match_masks(mask((2, 5), (6, 9)), mask((4, 6)))
    assert wide.names == {"1": "1"}
    assert turned.names == {"1": "1"}
    # two specks of each at the corners of a square: both ways to pair them have equal sums
    columns = {"first": ((2, 3), (8, 9)), "second": ((5, 6), (11, 12))}
    square = match_masks(*(mask(*one, rows=slice(1, 2)) for one in columns.values()))
    assert square.names == {"1": "1", "2": "2"}


def test_numbers_are_those_of_the_answers_where_the_form_gave_some():
    first, second = mask((2, 8), (20, 24)), mask((2, 6), (20, 26))
    swapped = (LesionAnchors("1", ((1, 1, 20), (1, 2, 23))), LesionAnchors("2", ((1, 1, 2),)))
    match = match_masks(first, second, (swapped, ()))
    assert match.names == {"2": "2", "1": "1"}
    assert [one.name for one in match.first] == ["2", "1"]
    assert match_masks(second, first, ((), swapped)).names == {"1": "1", "2": "2"}


def test_a_number_that_has_no_lesion_in_its_mask_is_given_to_no_other():
    gone = (LesionAnchors("1", ((1, 1, 30), (900, 0, 0))), LesionAnchors("7", ()))
    match = match_masks(mask((2, 8)), mask((2, 8)), (gone, gone))
    assert match.names == {"2": "2"}


def bars(draw_bar):
    return st.lists(draw_bar, min_size=0, max_size=4)


bar = st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 12), st.integers(1, 5))


@given(bars(bar), bars(bar))
def test_pairs_are_the_best_of_all_ways_to_pair(ones, others):
    """All ways are tried, with lesions labelled and measured by `scipy.ndimage`."""
    grid = Grid.of_spacing((2, 4, 18), (30.0, 4.0, 2.0))
    arrays = np.zeros((2, *grid.shape), np.uint8)
    for array, each in zip(arrays, (ones, others), strict=True):
        for z, y, x, length in each:
            array[z, y, x : x + length] = 1
    labels = [ndimage.label(array, np.ones((3, 3, 3))) for array in arrays]
    (parts, n), (more, m) = labels
    iou = np.zeros((n, m))
    apart = np.zeros((n, m))
    for a in range(n):
        for b in range(m):
            one, other = parts == a + 1, more == b + 1
            iou[a, b] = (one & other).sum() / (one | other).sum()
            centres = (np.argwhere(part).mean(axis=0) * (30.0, 4.0, 2.0) for part in (one, other))
            apart[a, b] = dist(*centres)
    match = match_masks(*(LabelMap.of(array, grid) for array in arrays))
    place = [
        {one.name: int(labels[k][0][one.voxel]) - 1 for one in lesions}
        for k, lesions in enumerate((match.first, match.second))
    ]
    pairs = [(place[0][one.first], place[1][one.second]) for one in match.both]
    by_overlap = [pair for pair in pairs if iou[pair] >= LEAST_IOU]
    assert sum(iou[pair] for pair in by_overlap) == pytest.approx(
        find_best(np.where(iou >= LEAST_IOU, iou, 0)), abs=1e-6
    )
    near = np.where(iou > 0, 1 + iou, np.where(apart < 10, 1 - apart / 10, 0))
    near[[a for a, _ in by_overlap], :] = 0
    near[:, [b for _, b in by_overlap]] = 0
    rest = [pair for pair in pairs if pair not in by_overlap]
    assert sum(near[pair] for pair in rest) == pytest.approx(find_best(near), abs=1e-6)
    for one in match.both:
        shared = iou[place[0][one.first], place[1][one.second]]
        assert one.dsc == pytest.approx(2 * shared / (1 + shared))
    n_told = len(pairs) + len(match.first_alone) + len(match.first_parts)
    assert n_told == n
    for name in match.first_alone:
        assert not iou[place[0][name]].any()


def find_best(gain):
    """The largest sum over all ways to give each row one column or none."""
    n, m = gain.shape
    slots = [*range(m), *([None] * n)]
    ways = set(permutations(slots, n))
    return max(sum(gain[a, b] for a, b in enumerate(way) if b is not None) for way in ways)
