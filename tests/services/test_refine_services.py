"""Outlines, numbers, growing into the mask and foreign changes, without a window."""

from math import isnan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.edits import Action, Edit
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.services.refine.grow_mask import GrownBefore, merge_grown, seeds_of
from napari_mamamia.services.refine.live_edits import (
    adopt_layer,
    notice_painting,
    suggest_radius_mm,
)
from napari_mamamia.services.refine.mask_work import use_mask_tool
from napari_mamamia.services.refine.numbers import changed_voxels, empty_map, measure_mask
from napari_mamamia.services.refine.outlines import (
    fill_contour,
    line_voxels,
    outline_step,
    outlined_slices,
)
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.session.session import EditingSession

GRID = Grid((6, 20, 24), np.diag([1.5, 2.0, 3.0, 1.0]))


def zeros():
    return np.zeros(GRID.shape, np.uint8)


# ----------------------------------------------------------------------- outlines


def inside_slowly(corners, row, column):
    """Even-odd rule by counting crossings to the right of a place."""
    inside = False
    for (ra, ca), (rb, cb) in zip(corners, (*corners[1:], corners[0]), strict=True):
        crosses = (ra <= row) != (rb <= row)
        if not crosses:
            continue
        at = ca + (row - ra) / (rb - ra) * (cb - ca)
        inside ^= column < at
    return inside


def on_the_line(corners, row, column):
    """Whether a place lies within 1e-9 voxels of the contour, where rounding decides its side."""
    for (ra, ca), (rb, cb) in zip(corners, (*corners[1:], corners[0]), strict=True):
        along, length = (rb - ra, cb - ca), np.hypot(rb - ra, cb - ca)
        share = 0.0
        if length > 0:
            part = (row - ra) / length * (along[0] / length)
            part += (column - ca) / length * (along[1] / length)
            share = min(max(part, 0.0), 1.0)
        if np.hypot(row - ra - share * along[0], column - ca - share * along[1]) < 1e-9:
            return True
    return False


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.floats(-3.2, 22.7), st.floats(-3.3, 26.8)), min_size=3, max_size=9, unique=True
    ),
    st.integers(0, 5),
)
@example([(0.0, 1.0), (1.0, 1.0), (0.0, 3.1598223941372746e-272)], 0)
def test_a_contour_is_filled_as_the_even_odd_rule_says(corners, z):
    drawn = fill_contour([(z, r, c) for r, c in corners], 0, GRID.shape)
    expected, decided = np.zeros((2, *GRID.shape[1:]), bool)
    for row in range(20):
        for column in range(24):
            expected[row, column] = inside_slowly(corners, row, column)
            decided[row, column] = not on_the_line(corners, row, column)
    filled = zeros().astype(bool)
    if drawn is not None:
        filled[drawn.box.slices] = drawn.inside
    assert not np.delete(filled, z, axis=0).any()
    np.testing.assert_array_equal(filled[z][decided], expected[decided])


def test_a_contour_beside_the_volume_holds_nothing():
    assert fill_contour([(9, 1, 1), (9, 1, 5), (9, 5, 5)], 0, GRID.shape) is None
    assert fill_contour([(2, -9, 1), (2, -9, 5), (2, -5, 5)], 0, GRID.shape) is None


def test_a_contour_of_a_single_place_holds_nothing():
    assert fill_contour([(2, 5.0, 5.0)], 0, GRID.shape) is None


def test_an_outline_joins_what_is_there_and_erases_only_inside_itself():
    labels = zeros()
    labels[2, 3, 3:9] = 1
    drawn = fill_contour(
        [(2, 2.5, 4.5), (2, 2.5, 6.5), (2, 4.5, 6.5), (2, 4.5, 4.5)], 0, GRID.shape
    )
    name, box, mask, parameters = outline_step(labels, drawn, 1, Action.ADD)
    assert (name, dict(parameters)) == ("outline", {"axis": 0, "index": 2})
    # rows 3 and 4, columns 5 and 6
    assert box == Box((2, 3, 5), (3, 5, 7))
    assert mask.all()
    _, _, mask, _ = outline_step(labels, drawn, 1, Action.ERASE)
    assert not mask.any()


def test_outlined_slices_are_those_of_applied_outlines_each_once():
    steps = [
        Edit("outline", parameters=(("axis", 0), ("index", 4))),
        Edit("paint 6 mm"),
        Edit("outline", parameters=(("axis", 0), ("index", 4))),
        Edit("outline", parameters=(("axis", 2), ("index", 7))),
    ]
    assert outlined_slices(steps[:3], 1) == ((0, 4),)
    assert outlined_slices(steps, 1) == ((0, 4), (2, 7))
    assert outlined_slices(steps, 2) == ()


def test_a_line_has_no_gap_and_ends_where_it_should():
    box, on_line = line_voxels((1, 2, 2), (1, 9, 14), GRID.shape)
    assert (box.start, box.stop) == ((1, 2, 2), (2, 10, 15))
    places = np.argwhere(on_line)
    order = places[np.argsort(places[:, 2])]
    assert np.abs(np.diff(order, axis=0)).max() == 1
    assert on_line[0, 0, 0]
    assert on_line[0, -1, -1]


# ------------------------------------------------------------------------ numbers


def test_numbers_of_two_cubes_are_those_worked_out_by_hand():
    labels, reference = zeros(), zeros()
    labels[1:3, 4:8, 4:8] = 1
    reference[1:3, 4:8, 6:10] = 1
    got = measure_mask(labels, LabelMap.of(reference, GRID), GRID)
    # 32 voxels each, 16 shared; a voxel is 1.5 x 2 x 3 = 9 mm3
    assert got.dice == pytest.approx(0.5)
    assert got.volume_mm3 == pytest.approx(288.0)
    # every voxel is contour: of the 32, those in columns 4 and 5 lie 2 and 1 columns away
    assert got.hausdorff95_mm == pytest.approx(3.0)
    # corners 3 mm, 6 mm and 4.5 mm apart
    assert got.longest_mm == pytest.approx(np.sqrt(9 + 36 + 20.25))


def test_an_empty_mask_has_volume_0_and_undefined_distances():
    reference = zeros()
    reference[1, 1, 1] = 1
    got = measure_mask(zeros(), LabelMap.of(reference, GRID), GRID)
    assert got.volume_mm3 == 0
    assert got.dice == 0
    assert isnan(got.hausdorff95_mm)
    assert isnan(got.longest_mm)


def test_only_the_voxels_of_the_label_are_measured():
    labels = zeros()
    labels[1, 1, 1:4] = 2
    labels[1, 5, 1] = 1
    assert measure_mask(labels, None, GRID, 2).volume_mm3 == pytest.approx(27.0)


def test_changed_voxels_are_told_apart():
    start, now = zeros(), zeros()
    start[1, 1, 1:4] = 1
    now[1, 1, 2:6] = 1
    box, added, removed = changed_voxels(LabelMap.of(start, GRID), now)
    places = np.argwhere(added) + np.array(box.start)
    assert places.tolist() == [[1, 1, 4], [1, 1, 5]]
    assert (np.argwhere(removed) + np.array(box.start)).tolist() == [[1, 1, 1]]


# ------------------------------------------------------------------ growing, tools


def test_seeds_are_what_the_mask_holds_on_the_planes():
    labels = zeros()
    labels[4, 2:4, 2:4] = 1
    (seed,) = seeds_of(labels, 1, ((0, 4), (0, 1)))
    assert (seed.axis, seed.index, int(seed.mask.sum())) == (0, 4, 4)


def test_a_second_growing_replaces_what_the_first_added_and_keeps_the_rest():
    labels = zeros()
    labels[2, 2, 2] = 1
    first = Grown(Box((1, 2, 2), (4, 3, 3)), np.ones((3, 1, 1), bool))
    box, mask, added = merge_grown(labels, 1, first, None, GRID)
    assert added.ravel().tolist() == [True, False, True]
    labels[box.slices] = mask
    labels[5, 5, 5] = 1
    before = GrownBefore(Edit("grow"), box, added)
    second = Grown(Box((2, 2, 2), (4, 3, 3)), np.ones((2, 1, 1), bool))
    box, mask, _ = merge_grown(labels, 1, second, before, GRID)
    # slice 1 was grown and is no longer; 2 was drawn; 3 is grown again
    assert mask.ravel().tolist() == [False, True, True]
    assert box == Box((1, 2, 2), (4, 3, 3))


def test_interpolating_between_one_outline_is_refused():
    labels = zeros()
    labels[1, 2:5, 2:5] = 1
    with pytest.raises(CaseError, match="outline a second slice"):
        use_mask_tool(labels, 1, GRID, "interpolate", 0.0, ((0, 1),))


def test_small_parts_are_removed_by_their_volume():
    labels = zeros()
    labels[1, 1, 1] = 1
    labels[3, 5, 5:9] = 1
    box, mask = use_mask_tool(labels, 1, GRID, "remove small", 20.0)
    # 9 mm3 goes, 36 mm3 stays
    assert (box.start, box.shape, mask.any()) == ((1, 1, 1), (1, 1, 1), False)


# ---------------------------------------------------------------- foreign changes


@pytest.fixture
def live():
    labels = zeros()
    labels[2, 5:9, 5:9] = 1
    return EditingSession("A", GRID, labels, None)


def test_painting_by_something_else_becomes_a_step_of_its_block(live):
    assert notice_painting(live) is None
    live.labels[4, 1, 1] = 1
    step = notice_painting(live)
    assert step.edit.changed_voxels == 1
    live.undo()
    assert live.labels[4, 1, 1] == 0


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((6, 20, 23), np.uint8),
        np.full(GRID.shape, -1, np.int32),
        np.full(GRID.shape, 300, np.int32),
        np.full(GRID.shape, 0.5, np.float32),
        np.full(GRID.shape, np.nan, np.float32),
    ],
)
def test_data_that_are_no_mask_of_the_case_are_not_taken_over(live, array):
    before = live.labels.copy()
    assert not adopt_layer(live, array)
    np.testing.assert_array_equal(live.labels, before)


def test_whole_numbers_kept_as_floats_are_taken_over(live):
    array = np.zeros(GRID.shape, np.float64)
    array[1, 1, 1] = 1
    assert adopt_layer(live, array)
    assert live.labels.sum() == 1


def test_a_radius_is_suggested_up_to_the_limit_and_only_near_an_edge(live):
    # two rows of 2 mm or two columns of 1.5 mm to the edge, and a slice of 3 mm
    assert suggest_radius_mm(live, (2.0, 6.0, 6.0), (0.5, 40.0)) == pytest.approx(3.0)
    far = EditingSession("A", GRID, empty_map(GRID).dense(), None)
    assert suggest_radius_mm(far, (2.0, 6.0, 6.0), (0.5, 40.0)) is None


def test_a_label_map_of_nothing_covers_nothing():
    made = empty_map(GRID)
    assert isinstance(made, LabelMap)
    assert made.box.is_empty


def test_a_second_lesion_is_not_compared_with_the_one_part_of_the_first():
    reference, labels = zeros(), zeros()
    reference[1:3, 2:5, 2:5] = labels[1:3, 2:5, 2:5] = 1
    labels[4:6, 8:10, 8:10] = 2
    expert = LabelMap.of(reference, GRID)
    first, second = (measure_mask(labels, expert, GRID, label) for label in (1, 2))
    assert (first.dice, first.against, first.compared) == (1.0, "", None)
    assert np.isnan([second.dice, second.hausdorff95_mm]).all()
    assert "no part of the reference" in second.reason
    assert second.compared.volume_mm3 == 0


def test_of_several_lesions_each_is_compared_with_its_own_parts_of_the_reference():
    labels, expert = zeros(), zeros()
    expert[1, 1:3, 1:3] = 1
    expert[5, 6:9, 6:9] = 1
    expert[1, 9, 9] = 1  # touched by none: nearest to the second
    labels[1, 1:3, 1:3] = 1
    labels[5, 6:9, 6:9] = 2
    reference = LabelMap.of(expert, GRID)
    first, second = (measure_mask(labels, reference, GRID, label) for label in (1, 2))
    assert (first.dice, first.against) == (1.0, "1 of 3 parts of the reference")
    assert second.dice == pytest.approx(2 * 9 / (9 + 10))
    assert second.against == "2 of 3 parts of the reference"
    # its own parts alone, as the reference has three
    assert first.compared.volume_mm3 + second.compared.volume_mm3 == pytest.approx(
        volume_mm3(reference.foreground(), GRID.matrix_mm)
    )
    labels[3, 4, 4] = 3
    third = measure_mask(labels, reference, GRID, 3)
    assert np.isnan(third.dice)
    assert third.reason == "no part of the reference belongs to this lesion"


def test_one_lesion_is_compared_with_the_whole_reference():
    labels, expert = zeros(), zeros()
    expert[1, 1:3, 1:3] = 1
    expert[5, 6:9, 6:9] = 1
    labels[1, 1:3, 1:3] = 1
    numbers = measure_mask(labels, LabelMap.of(expert, GRID), GRID)
    assert numbers.dice == pytest.approx(2 * 4 / (4 + 13))
    assert numbers.against == ""
