"""Growth: what the outlines decide, what unclean input gives, and how a job behaves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.grow import (
    blocks,
    coarsening,
    grow,
    log_odds,
    refined,
    tissue_of,
)
from napari_mamamia.smartpaint.grow.prompts import grow_from_box
from napari_mamamia.smartpaint.grow.start import GrowSettings, Outline

NOISE = 10.0


def sphere(shape, spacing, radius_mm, centre=None):
    centre = (np.array(shape) - 1) / 2 if centre is None else np.array(centre)
    z, y, x = ((np.arange(n) - c) * s for n, c, s in zip(shape, centre, spacing, strict=True))
    return z[:, None, None] ** 2 + y[:, None] ** 2 + x**2 <= radius_mm**2


def case_of(bright, spacing=(2.0, 1.0, 1.0), contrast=60.0, phases=3, seed=0):
    """A case whose lesion rises by `contrast` over noise of 10."""
    rng = np.random.default_rng(seed)
    signal = 100 + NOISE * rng.standard_normal((phases, *bright.shape))
    signal[1:, bright] += contrast
    if phases == 1:
        signal[0, bright] += contrast
    z, y, x = spacing
    grid = Grid(bright.shape, np.diag([x, y, z, 1.0]))
    times = (0.0, 150.0, 450.0)[:phases]
    records = tuple(Phase(k, time) for k, time in enumerate(times))
    return Case("CASE", grid, np.rint(signal).astype(np.int16), records)


def grown(case, outlines, chosen=None):
    images = measure_features(case)
    result = grow(images, case.grid, outlines, chosen)
    mask = np.zeros(case.grid.shape, dtype=bool)
    mask[result.box.slices] = result.mask
    return mask, result


def outline(mask, index, axis=0):
    return Outline(axis, index, mask.take(index, axis=axis))


BALL = sphere((15, 40, 40), (2.0, 1.0, 1.0), 9)


def dice(a, b):
    return 2 * np.count_nonzero(a & b) / (np.count_nonzero(a) + np.count_nonzero(b))


def test_the_true_outline_of_the_middle_slice_gives_the_ball():
    mask, _ = grown(case_of(BALL), [outline(BALL, 7)])
    assert dice(mask, BALL) > 0.97


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shift", [(0, 0), (3, 0), (0, -5)])
def test_in_its_slice_the_region_keeps_to_the_outline_within_the_tolerance(axis, shift):
    # the outline lies off the lesion: the reader is right, but for 1.5 mm
    index = BALL.shape[axis] // 2
    drawn = np.roll(BALL.take(index, axis=axis), shift, axis=(0, 1))
    mask, _ = grown(case_of(BALL), [Outline(axis, index, drawn)])
    plane = mask.take(index, axis=axis)
    spacing = [s for a, s in enumerate((2.0, 1.0, 1.0)) if a != axis]
    depth = distance_transform_edt(drawn, sampling=spacing)
    away = distance_transform_edt(~drawn, sampling=spacing)
    assert plane[depth > 1.5].all()
    assert not plane[away > 1.5].any()


def test_a_second_outline_takes_away_what_it_leaves_out():
    # two touching balls; the reader outlines the left one in two slices
    shape, spacing = (15, 40, 50), (2.0, 1.0, 1.0)
    left = sphere(shape, spacing, 8, (7, 20, 16))
    both = left | sphere(shape, spacing, 8, (7, 20, 31))
    case = case_of(both, spacing)
    one, _ = grown(case, [outline(left, 7)])
    two, _ = grown(case, [outline(left, 7), outline(left, 5), outline(left, 9)])
    beyond = distance_transform_edt(~left[5]) > 1.5
    assert (one[5] & beyond).any()
    assert not (two[5] & beyond).any()
    assert dice(two, left) > dice(one, left)


def test_outlines_of_different_axes_combine_and_inside_wins_where_they_disagree():
    narrow = np.zeros((15, 40), dtype=bool)
    narrow[4:11, 19:22] = True  # an x plane outlined too narrow: at z = 7, y = 13 it says outside
    outlines = [outline(BALL, 7), Outline(2, 20, narrow)]
    mask, _ = grown(case_of(BALL), outlines)
    assert mask[7, 13, 20]
    away = distance_transform_edt(~narrow, sampling=(2.0, 1.0))
    beyond = away > 1.5
    beyond[7] = False  # the crossing with the z plane, where inside wins
    assert not mask[:, :, 20][beyond].any()


def test_outlines_of_one_plane_are_joined():
    halves = np.zeros((2, 40, 40), dtype=bool)
    halves[0, :, :20], halves[1, :, 20:] = BALL[7, :, :20], BALL[7, :, 20:]
    joined, _ = grown(case_of(BALL), [Outline(0, 7, half) for half in halves])
    at_once, _ = grown(case_of(BALL), [outline(BALL, 7)])
    np.testing.assert_array_equal(joined, at_once)


def test_a_closed_line_counts_as_its_inside_and_the_notes_say_so():
    line = BALL[7] & ~np.roll(np.roll(BALL[7], 1, 0) & np.roll(BALL[7], -1, 0), 0, 1)
    line |= BALL[7] & ~(np.roll(BALL[7], 1, 1) & np.roll(BALL[7], -1, 1))
    assert not line[20, 20]
    from_line, result = grown(case_of(BALL), [Outline(0, 7, line)])
    from_disc, _ = grown(case_of(BALL), [outline(BALL, 7)])
    np.testing.assert_array_equal(from_line, from_disc)
    assert any("hole" in note for note in result.notes)


def test_nothing_lies_beyond_the_radius():
    everywhere = np.ones((15, 40, 40), dtype=bool)
    everywhere[:, :3] = False  # the ring sees this, and lets the rest look like the lesion
    drawn = sphere((15, 40, 40), (2.0, 1.0, 1.0), 5)
    mask, _ = grown(case_of(everywhere), [outline(drawn, 7)], GrowSettings(radius_mm=7))
    centre = np.argwhere(drawn[7]).mean(axis=0)
    places = np.argwhere(mask) * (2.0, 1.0, 1.0)
    assert np.linalg.norm(places - (14, *centre), axis=1).max() <= 7


def test_the_limit_is_1_3_times_the_distance_of_the_farthest_edge():
    # a disc of one voxel row, 9 voxels of 1 mm long: its edge lies 4.5 mm along and 0.5 mm across
    tall = np.zeros((31, 40, 40), dtype=bool)
    tall[:, 17:24, 16:25] = True
    drawn = np.zeros((40, 40), dtype=bool)
    drawn[17:24, 16:25] = True  # half extents 3.5 and 4.5 mm: radius 5.70 mm, limit 7.41 mm
    mask, result = grown(case_of(tall, (1.0, 1.0, 1.0)), [Outline(0, 15, drawn)])
    assert np.flatnonzero(mask[:, 20, 20]).tolist() == list(range(8, 23))
    assert any("search area" in note for note in result.notes)


def test_a_dark_core_is_filled():
    shell = BALL & ~sphere(BALL.shape, (2.0, 1.0, 1.0), 4)
    mask, _ = grown(case_of(shell), [outline(BALL, 7)])
    assert mask[7, 20, 20]
    assert dice(mask, BALL) > 0.95


def test_a_dark_core_in_a_slice_without_an_outline_is_filled_too():
    # three slices from the outline, so that only the filling of holes can put it in
    core = sphere(BALL.shape, (2.0, 1.0, 1.0), 3, (9, 20, 20))
    mask, _ = grown(case_of(BALL & ~core), [outline(BALL, 6)])
    assert mask[core].all()


def test_a_neighbour_that_does_not_touch_stays_out():
    shape, spacing = (15, 40, 40), (2.0, 1.0, 1.0)
    lesion = sphere(shape, spacing, 7, (7, 20, 20))
    dot = sphere(shape, spacing, 2.5, (11, 20, 30))
    mask, _ = grown(case_of(lesion | dot), [outline(lesion, 7)], GrowSettings(radius_mm=14))
    assert dice(mask, lesion) > 0.95
    assert not (mask & dot).any()


def test_equal_input_gives_equal_output():
    first, _ = grown(case_of(BALL, contrast=20), [outline(BALL, 7)])
    second, _ = grown(case_of(BALL, contrast=20), [outline(BALL, 7)])
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("gain", "offset"), [(4, 0), (1, 1000)])
def test_gain_and_offset_of_the_scanner_change_nothing(gain, offset):
    case = case_of(BALL, contrast=20)
    other = replace(case, signal=case.signal * np.int16(gain) + np.int16(offset))
    first, _ = grown(case, [outline(BALL, 7)])
    second, _ = grown(other, [outline(BALL, 7)])
    np.testing.assert_array_equal(first, second)


def test_the_grown_box_is_small_and_holds_what_was_drawn():
    drawn = np.roll(BALL[7], 4, axis=1)
    _, result = grown(case_of(BALL), [Outline(0, 7, drawn)])
    rows, columns = np.nonzero(drawn)
    assert result.box.start[1] <= rows.min()
    assert result.box.stop[2] > columns.max()
    assert np.prod(result.box.shape) < BALL.size
    assert result.mask.shape == result.box.shape
    assert result.mask.dtype == bool


# unclean input


def test_a_flat_image_gives_the_outline_back_with_a_note():
    mask, result = grown(case_of(BALL, contrast=0), [outline(BALL, 7)])
    expected = np.zeros_like(BALL)
    expected[7] = BALL[7]
    np.testing.assert_array_equal(mask, expected)
    assert any("does not differ" in note for note in result.notes)


def test_an_outline_of_a_whole_plane_comes_back_with_a_note():
    mask, result = grown(case_of(BALL), [Outline(0, 7, np.ones((40, 40), dtype=bool))])
    assert mask[7].all()
    assert np.count_nonzero(mask) == 1600
    assert any("nothing around" in note for note in result.notes)


@pytest.mark.parametrize("voxels", [1, 2, 3])
def test_an_outline_of_few_voxels_is_kept_whole_and_grows_a_little(voxels):
    drawn = np.zeros((40, 40), dtype=bool)
    drawn[20, 19 : 19 + voxels] = True
    mask, result = grown(case_of(BALL), [Outline(0, 7, drawn)])
    assert mask[7][drawn].all()
    assert any("narrower" in note for note in result.notes)
    assert np.count_nonzero(mask) < 100


def test_a_wide_outline_of_voxels_coarser_than_the_tolerance_is_not_called_narrow():
    # every voxel of 2 mm lies deeper than 1.5 mm: the outline is 18 mm wide
    coarse = sphere((9, 24, 24), (4.0, 2.0, 2.0), 9)
    _, result = grown(case_of(coarse, (4.0, 2.0, 2.0)), [outline(coarse, 4)])
    assert not any("narrower" in note for note in result.notes)


def test_an_outline_at_the_border_does_not_wrap_round():
    ball = sphere((15, 40, 40), (2.0, 1.0, 1.0), 9, (0, 20, 2))
    mask, _ = grown(case_of(ball), [outline(ball, 0)])
    assert dice(mask, ball) > 0.95
    assert not mask[:, :, 20:].any()


def test_one_slice_grows_in_2d_and_the_notes_say_so():
    disc = sphere((1, 40, 40), (2.0, 1.0, 1.0), 8)
    hasty = np.roll(disc[0], 1, axis=0)
    mask, result = grown(case_of(disc), [Outline(0, 0, hasty)])
    assert dice(mask, disc) > dice(hasty[None], disc)
    assert any("2-D" in note for note in result.notes)


def test_a_missing_late_phase_means_two_features_and_a_note():
    mask, result = grown(case_of(BALL, phases=2), [outline(BALL, 7)])
    assert dice(mask, BALL) > 0.95
    assert any("no late phase" in note for note in result.notes)


def test_nan_in_the_image_is_decided_by_the_neighbours():
    case = case_of(BALL)
    signal = case.signal.astype(np.float32)
    signal[1, 5:9, 18:23, 18:23] = np.nan
    signal[1, 2, 4, 4] = np.inf
    mask, _ = grown(replace(case, signal=signal), [outline(BALL, 7)])
    assert dice(mask, BALL) > 0.95
    assert mask[5:9, 18:23, 18:23].all()


def test_an_image_of_nan_gives_the_outline_back():
    case = case_of(BALL)
    case = replace(case, signal=np.full(case.signal.shape, np.nan, dtype=np.float32))
    mask, result = grown(case, [outline(BALL, 7)])
    assert np.count_nonzero(mask) == np.count_nonzero(BALL[7])
    assert any("no values" in note for note in result.notes)


def test_a_large_region_is_found_on_a_coarser_grid_and_the_notes_say_which():
    fine, _ = grown(case_of(BALL), [outline(BALL, 7)])
    coarse, result = grown(case_of(BALL), [outline(BALL, 7)], GrowSettings(most_voxels=2000))
    assert any("2 x 2 x 2 mm" in note for note in result.notes)
    assert dice(fine, coarse) > 0.93


def test_on_a_coarser_grid_the_outline_still_holds_to_the_voxel():
    drawn = np.roll(BALL[7], (3, -2), axis=(0, 1))
    mask, _ = grown(case_of(BALL), [Outline(0, 7, drawn)], GrowSettings(most_voxels=500))
    assert mask[7][distance_transform_edt(drawn) > 1.5].all()
    assert not mask[7][distance_transform_edt(~drawn) > 1.5].any()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [Outline(0, 7, np.zeros((40, 40), dtype=bool))],
        [Outline(0, 15, np.ones((40, 40), dtype=bool))],
        [Outline(1, 7, np.ones((40, 40), dtype=bool))],
        [Outline(3, 7, np.ones((40, 40), dtype=bool))],
    ],
    ids=["none", "empty", "beyond", "wrong plane", "no axis"],
)
def test_outlines_that_are_none_are_refused(wrong):
    case = case_of(BALL)
    images = measure_features(case)
    with pytest.raises(CaseError, match="outline"):
        grow(images, case.grid, wrong)


@pytest.mark.parametrize("name", ["reach", "radius_mm", "tolerance_mm", "smoothness"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_settings_must_be_above_0(name, value):
    with pytest.raises(ValueError, match="above 0"):
        GrowSettings(**{name: value})


# clicks, boxes, candidates


@pytest.mark.parametrize("point", [(-1, 5, 5), (7, 40, 5), (7, 5, float("nan"))])
def test_a_click_beside_the_image_is_refused(point):
    case = case_of(BALL)
    with pytest.raises(CaseError, match="click"):
        grow_from_click(measure_features(case), case.grid, point)


def test_a_click_takes_its_size_from_the_image():
    case = case_of(BALL)
    result = grow_from_click(measure_features(case), case.grid, (7, 20, 20))
    said = next(note for note in result.notes if "across" in note)
    assert 14 <= float(said.split("about ")[1].split()[0]) <= 22  # it is 18 mm across
    mask = np.zeros_like(BALL)
    mask[result.box.slices] = result.mask
    assert dice(mask, BALL) > 0.95


def test_a_box_without_anything_bright_gives_no_region_and_says_so():
    case = case_of(BALL, contrast=0)
    box = Box((5, 15, 15), (9, 25, 25))
    result = grow_from_box(measure_features(case), case.grid, box)
    assert not result.mask.any()
    assert result.box == box
    assert any("brighter" in note for note in result.notes)


def test_a_box_of_the_whole_image_works():
    case = case_of(BALL)
    images = measure_features(case)
    result = grow_from_box(images, case.grid, Box.whole(BALL.shape))
    mask = np.zeros_like(BALL)
    mask[result.box.slices] = result.mask
    assert dice(mask, BALL) > 0.95


@pytest.mark.parametrize("box", [Box.empty(), Box((0, 0, 0), (16, 4, 4))])
def test_a_box_that_leaves_the_image_is_refused(box):
    case = case_of(BALL)
    with pytest.raises(CaseError, match="box"):
        grow_from_box(measure_features(case), case.grid, box)


# pieces


def test_a_lone_voxel_has_the_noise_as_its_scale():
    tissue = tissue_of(np.array([[120.0]]), (10.0,))
    other = tissue_of(np.array([[100.0]]), (10.0,))
    assert tissue.middle == [120.0]
    # ((110-100)^2 - (110-120)^2) / (2 * 100) = 0; at 130: (900 - 100) / 200 = 4
    features = np.array([[110.0, 130.0]], dtype=np.float32)
    np.testing.assert_allclose(log_odds(features, tissue, other), [0.0, 4.0], atol=1e-4)


def test_two_copies_of_one_feature_hardly_count_more_than_one():
    rng = np.random.default_rng(0)
    inside, around = rng.normal(20, 10, (1, 4000)), rng.normal(0, 10, (1, 4000))
    place = np.array([[20.0]], dtype=np.float32)
    one = log_odds(place, tissue_of(inside, (10.0,)), tissue_of(around, (10.0,)))
    twice = [np.repeat(values, 2, axis=0) for values in (inside, around)]
    both = log_odds(np.repeat(place, 2, axis=0), *(tissue_of(v, (10.0, 10.0)) for v in twice))
    assert both[0] == pytest.approx(one[0], rel=0.1)


def test_evidence_stays_within_8():
    tissue, other = tissue_of(np.array([[1000.0]]), (1.0,)), tissue_of(np.array([[0.0]]), (1.0,))
    features = np.array([[1000.0, 0.0, np.nan]], dtype=np.float32)
    assert log_odds(features, tissue, other).tolist() == [8.0, -8.0, 0.0]


def test_the_finest_axis_is_coarsened_first():
    assert coarsening((10, 10, 10), (3.0, 1.0, 1.0), 1000) == (1, 1, 1)
    assert coarsening((10, 10, 10), (3.0, 1.0, 1.0), 500) == (1, 2, 1)
    assert coarsening((10, 10, 10), (3.0, 1.0, 1.0), 250) == (1, 2, 2)


def test_blocks_at_the_end_may_be_smaller():
    sums = blocks(np.arange(5.0).reshape(1, 1, 5), (1, 1, 2), np.add)
    assert sums.tolist() == [[[1.0, 5.0, 4.0]]]


def test_blocks_become_voxels_by_linear_interpolation():
    # blocks of 4 with 0 and 1: their centres lie at 1.5 and 5.5, half-way at 3.5
    mask = refined(np.array([[[0.0, 1.0]]], dtype=np.float32), (1, 1, 4), (1, 1, 8))
    assert mask.tolist() == [[[False] * 4 + [True] * 4]]


def test_a_stopped_job_leaves_the_case_as_it_was():
    case = case_of(BALL)
    before = case.signal.copy()
    job = Stepped(grow, measure_features(case), case.grid, [outline(BALL, 7)])
    for _ in range(3):
        step = next(job)
        assert 0 <= step.fraction <= 1
    job.close()
    np.testing.assert_array_equal(case.signal, before)
