"""Leaks and crumbs: what goes by a click or a line, on shapes whose parts are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, label

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.parts import (
    CRUMB_MM3,
    CRUMB_VOXELS,
    beyond_line,
    part_under,
    without_fragments,
)

SHAPE, SPACING = (24, 60, 90), (2.0, 1.0, 1.0)
GRID = Grid(SHAPE, np.diag([1.0, 1.0, 2.0, 1.0]))
TOUCHING = np.ones((3, 3, 3))


def ball(centre, radius_mm):
    z, y, x = (
        ((np.arange(n) - c) * s) ** 2 for n, c, s in zip(SHAPE, centre, SPACING, strict=True)
    )
    return z[:, None, None] + y[:, None] + x <= radius_mm**2


def bar(x_from, x_to, half=2):
    mask = np.zeros(SHAPE, dtype=bool)
    mask[11:14, 30 - half : 30 + half + 1, x_from:x_to] = True
    return mask


BODY = ball((12, 30, 25), 14)
LOBE = ball((12, 30, 62), 8)
DUMBBELL = BODY | bar(30, 60) | LOBE


def vessel():
    mask = np.zeros(SHAPE, dtype=bool)
    for x in range(30, 88):
        mask |= ball((12, 30 + 6 * np.sin(x / 9), x), 2.6)
    return mask


def gone(removal):
    mask = np.zeros(SHAPE, dtype=bool)
    mask[removal.box.slices] = removal.gone
    return mask


def share(what, of):
    return np.count_nonzero(what & of) / np.count_nonzero(of)


def rough(mask, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=SHAPE), (1, 2, 2))
    soft = gaussian_filter(mask.astype(float), (0.5, 1, 1))
    return soft + 0.15 * noise / noise.std() > 0.5


def test_a_part_of_its_own_goes_whole_and_nothing_else():
    other = ball((12, 30, 62), 6)
    removed = gone(part_under(BODY | other, GRID, (12, 30, 62)))
    np.testing.assert_array_equal(removed, other)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_lobe_goes_up_to_its_neck(seed):
    mask = DUMBBELL if seed is None else rough(DUMBBELL, seed) | bar(30, 60)
    removed = gone(part_under(mask, GRID, (12, 30, 62)))
    assert share(removed, LOBE & mask) > 0.95
    assert share(removed, BODY & mask) < 0.01


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_vessel_goes_and_leaves_the_lesion(seed):
    mask = BODY | vessel() if seed is None else rough(BODY, seed) | vessel()
    y = 30 + 6 * np.sin(70 / 9)
    removed = gone(part_under(mask, GRID, (12, y, 70)))
    assert share(removed, vessel() & ~BODY) > 0.9
    assert share(removed, BODY & mask) < 0.01


def test_what_comes_loose_goes_as_well_unless_the_reader_holds_it():
    removed = gone(part_under(DUMBBELL, GRID, (12, 30, 48)))
    assert share(removed, LOBE) > 0.95
    hold = np.zeros(SHAPE, np.int8)
    hold[12, 30, 64] = 1
    removed = gone(part_under(DUMBBELL, GRID, (12, 30, 48), hold))
    assert share(removed, LOBE) < 0.05


@pytest.mark.parametrize("point", [(12, 30, 25), (12, 25, 20), (16, 30, 25)])
def test_the_lesion_itself_does_not_go(point):
    with pytest.raises(CaseError, match="main part"):
        part_under(DUMBBELL, GRID, point)


def test_the_larger_side_goes_where_the_readers_marks_are_all_on_the_other():
    hold = np.zeros(SHAPE, np.int8)
    hold[LOBE] = 1
    removed = gone(part_under(DUMBBELL, GRID, (12, 30, 25), hold))
    assert share(removed, BODY) > 0.95
    assert share(removed, LOBE) < 0.05


@pytest.mark.parametrize("point", [(0, 0, 0), (-3, 5, 5), (12, 30, 500), (np.nan, 1, 1)])
def test_a_click_beside_the_mask_is_refused(point):
    with pytest.raises(CaseError, match="no mask under the pointer"):
        part_under(DUMBBELL, GRID, point)


def test_a_mask_without_a_neck_and_a_mask_of_all_are_refused():
    for mask in (BODY, np.ones(SHAPE, dtype=bool)):
        with pytest.raises(CaseError, match="main part"):
            part_under(mask, GRID, (12, 30, 25))


@pytest.mark.parametrize("x", [44, 47, 50])
def test_a_line_cuts_off_the_smaller_side_in_all_slices(x):
    removed = gone(beyond_line(DUMBBELL, GRID, ((12, 24, x), (12, 36, x)), 0))
    np.testing.assert_array_equal(removed[:, :, x + 2 :], DUMBBELL[:, :, x + 2 :])
    assert not removed[:, :, : x - 1].any()
    _, count = label(DUMBBELL & ~removed, TOUCHING)
    assert count == 1


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_line_in_any_plane_and_direction_separates(axis):
    middle = np.array([12.0, 30.0, 25.0])
    for turn in (0.0, 0.5, 1.1, 2.2):
        row, column = (a for a in range(3) if a != axis)
        way = np.zeros(3)
        way[row], way[column] = 30 * np.cos(turn) / SPACING[row], 30 * np.sin(turn)
        line = (tuple(middle - way), tuple(middle + way))
        removed = gone(beyond_line(BODY, GRID, line, axis))
        assert 0.3 < share(removed, BODY) <= 0.5
        _, count = label(BODY & ~removed, TOUCHING)
        assert count == 1


def test_a_line_that_is_short_of_the_edges_is_made_longer():
    removed = gone(beyond_line(DUMBBELL, GRID, ((12, 29, 47), (12, 31, 47)), 0))
    assert share(removed, LOBE) == 1


def test_the_side_that_the_reader_holds_stays_however_small():
    hold = np.zeros(SHAPE, np.int8)
    hold[LOBE] = 1
    removed = gone(beyond_line(DUMBBELL, GRID, ((12, 24, 47), (12, 36, 47)), 0, hold))
    assert share(removed, BODY) > 0.99
    assert not (removed & LOBE).any()


def test_a_wall_leaves_what_lies_far_above_and_below_alone():
    # a bridge above the neck, which the line does not need to cut
    far = np.zeros(SHAPE, dtype=bool)
    far[0:2, 28:33, 40:55] = True
    removed = gone(beyond_line(DUMBBELL | far, GRID, ((12, 24, 47), (12, 36, 47)), 0))
    assert not (removed & far).any()
    assert share(removed, LOBE) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (((12, 30, 47), (12, 30, 47)), "no length"),
        (((12, np.nan, 47), (12, 30, 47)), "no length"),
        (((12, 2, 80), (12, 8, 85)), "does not cross"),
        (((12, 30, 23), (12, 30, 27)), "does not separate"),
    ],
)
def test_a_line_that_cuts_nothing_off_is_refused(line, words):
    with pytest.raises(CaseError, match=words):
        beyond_line(DUMBBELL, GRID, line, 0)


def test_an_empty_mask_is_refused_by_both_and_has_no_crumbs():
    empty = np.zeros(SHAPE, dtype=bool)
    with pytest.raises(CaseError, match="no mask"):
        part_under(empty, GRID, (1, 1, 1))
    with pytest.raises(CaseError, match="does not cross"):
        beyond_line(empty, GRID, ((1, 1, 1), (1, 5, 5)), 0)
    assert not without_fragments(empty, GRID).any()


def test_crumbs_go_and_tiny_holes_are_filled():
    mask = BODY.copy()
    mask[2, 5, 80:83] = True
    mask[12, 30, 25] = False
    np.testing.assert_array_equal(without_fragments(mask, GRID), BODY)


def test_what_was_there_before_or_is_held_stays():
    mask = BODY.copy()
    mask[2, 5, 80:83] = True
    mask[12, 30, 25] = False
    np.testing.assert_array_equal(without_fragments(mask, GRID, before=mask), mask)
    hold = np.zeros(SHAPE, np.int8)
    hold[2, 5, 80], hold[12, 30, 25] = 1, -1
    np.testing.assert_array_equal(without_fragments(mask, GRID, hold=hold), mask)


def test_a_small_lesion_is_no_crumb():
    mask = np.zeros(SHAPE, dtype=bool)
    mask[5, 5, 5] = True
    np.testing.assert_array_equal(without_fragments(mask, GRID), mask)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), level=st.floats(-0.5, 0.8))
def test_no_crumb_is_left_in_any_mask(seed, level):
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(12, 20, 20)), 1.0)
    mask = noise / noise.std() > level
    grid = Grid(mask.shape, np.diag([1.0, 1.0, 1.0, 1.0]))
    after = without_fragments(mask, grid)
    parts, _ = label(after, TOUCHING)
    sizes = np.sort(np.bincount(parts.ravel())[1:])
    assert (sizes[:-1] >= min(CRUMB_VOXELS, CRUMB_MM3)).all()
    background, _ = label(np.pad(~after, 1, constant_values=True))
    holes = np.delete(np.bincount(background.ravel()), [0, background[0, 0, 0]])
    assert (holes >= min(CRUMB_VOXELS, CRUMB_MM3)).all()
