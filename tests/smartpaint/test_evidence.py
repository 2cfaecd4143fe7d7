"""A stroke of evidence: what it promises a reader, on scenes where the answer is known."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import binary_propagation, distance_transform_edt

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.evidence.appearance import _find_sides
from napari_mamamia.smartpaint.evidence.marks import (
    ONE_SEEN,
    Marks,
    hold_voxels,
    pack_marks,
    unpack_marks,
)
from napari_mamamia.smartpaint.evidence.scene import measure_distance, thin_path
from napari_mamamia.smartpaint.evidence.settle import find_holes
from napari_mamamia.smartpaint.evidence.stroke import (
    prepare_stroke,
    preview_stroke,
    settle_stroke,
    window_mm,
)

SHAPE, SPACING = (24, 48, 48), (2.0, 1.0, 1.0)
MIDDLE = (12.0, 24.0, 24.0)


def ball(centre, radius_mm, shape=SHAPE, spacing=SPACING):
    z, y, x = (
        ((np.arange(n) - c) * s) ** 2 for n, c, s in zip(shape, centre, spacing, strict=True)
    )
    return z[:, None, None] + y[:, None] + x <= radius_mm**2


def images_of(lesion, *, step=8.0, seed=0):
    """One feature: noise of 1 with a lesion that is `step` noise units brighter."""
    signal = np.random.default_rng(seed).normal(0, 1, lesion.shape) + step * lesion
    grid = Grid(lesion.shape, np.diag([*SPACING[::-1], 1.0]))
    case = Case("A", grid, signal.astype(np.float32)[np.newaxis], (Phase(0),))
    return FeatureImages(case, (Channel("image", 0, None, 1.0),))


def stroke(images, labels, words, path, *, action=Action.ADD, radius_mm=8.0, whole=False):
    brush = Brush(tool=Tool.EVIDENCE, action=action, radius_mm=radius_mm, whole=whole)
    settled = settle_stroke(prepare_stroke(images, labels, words, brush, path))
    labels[settled.box.slices] = settled.labels
    words[settled.box.slices] = settled.words
    return settled


def empty():
    return np.zeros(SHAPE, np.uint8), np.zeros(SHAPE, np.uint16)


def dice(a, b):
    return 2 * np.count_nonzero(a & b) / (np.count_nonzero(a) + np.count_nonzero(b))


def test_a_press_in_a_bright_ball_finds_the_ball():
    lesion = ball(MIDDLE, 10.0)
    labels, words = empty()
    stroke(images_of(lesion), labels, words, (MIDDLE,), radius_mm=8.0)
    assert dice(labels > 0, lesion) > 0.97


def test_where_there_is_no_lesion_yet_a_press_for_the_whole_is_a_press_without_a_word():
    """It said that the image was no guide there, of a lesion that it then found."""
    lesion, made = ball(MIDDLE, 10.0), []
    for whole in (False, True):
        labels, words = empty()
        settled = stroke(images_of(lesion), labels, words, (MIDDLE,), radius_mm=8.0, whole=whole)
        assert settled.notes == ()
        made.append(labels)
    np.testing.assert_array_equal(*made)


def test_a_stroke_on_one_of_two_balls_leaves_the_other_alone():
    lesion, other = ball((12, 24, 12), 7.0), ball((12, 24, 38), 7.0)
    labels, words = empty()
    stroke(images_of(lesion | other), labels, words, ((12.0, 24.0, 12.0),), radius_mm=6.0)
    assert dice(labels > 0, lesion) > 0.95
    assert not (labels[other] > 0).any()


def test_adding_never_removes_and_erasing_never_adds():
    rng = np.random.default_rng(5)
    images = images_of(ball(MIDDLE, 9.0), step=3.0)
    labels, words = empty()
    for number in range(40):
        action = Action.ADD if number % 3 else Action.ERASE
        place = tuple(rng.uniform((4, 8, 8), (20, 40, 40)))
        before = labels.copy()
        stroke(images, labels, words, (place,), action=action, radius_mm=rng.uniform(2, 9))
        if action is Action.ADD:
            assert (labels >= before).all()
        else:
            assert (labels <= before).all()


def test_nothing_changes_outside_the_window():
    images, path = images_of(np.ones(SHAPE, bool)), ((12.0, 10.0, 10.0), (12.0, 14.0, 10.0))
    labels, words = empty()
    stroke(images, labels, words, path, radius_mm=3.0)
    settled_box = prepare_stroke(
        images, labels, words, Brush(tool=Tool.EVIDENCE, radius_mm=3.0), path
    ).box
    away = measure_distance(settled_box, path, SPACING)
    outside = np.ones(SHAPE, bool)
    outside[settled_box.slices] = away > window_mm(Brush(radius_mm=3.0))
    assert labels.any()
    assert not labels[outside].any()


def test_what_was_erased_does_not_come_back_with_a_stroke_beside_it():
    lesion = ball(MIDDLE, 10.0)
    images = images_of(lesion)
    labels, words = empty()
    stroke(images, labels, words, (MIDDLE,))
    erased_at = (12.0, 24.0, 32.0)
    before = labels.copy()
    stroke(images, labels, words, (erased_at,), action=Action.ERASE, radius_mm=4.0)
    erased = (before > 0) & (labels == 0) & ball(erased_at, 4.0)
    assert erased.any()
    stroke(images, labels, words, ((12.0, 24.0, 20.0),), radius_mm=8.0)
    assert not labels[erased & ~ball((12.0, 24.0, 20.0), 8.0)].any()
    stroke(images, labels, words, (erased_at,), radius_mm=4.0)
    assert labels[12, 24, 32]


def test_a_stroke_that_the_image_contradicts_is_obeyed_when_it_is_repeated():
    images = images_of(ball((12, 24, 12), 7.0))
    place = (12.0, 24.0, 38.0)
    labels, words = empty()
    circle = ball(place, 6.0)
    shares = []
    for _ in range(4):
        stroke(images, labels, words, (place,), radius_mm=6.0)
        shares.append(labels[circle].mean())
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_press_up_to_a_quarter_of_the_radius_beside_the_last_one_repeats_it():
    lesion = ball((12, 24, 14), 10.0)
    images = images_of(lesion, step=12.0)
    labels, words = lesion.astype(np.uint8), np.zeros(SHAPE, np.uint16)
    places = [(12.0, 24.0, 31.0), (12.0, 25.5, 31.0), (12.0, 24.0, 32.5), (12.0, 24.0, 31.0)]
    for place in places:
        stroke(images, labels, words, (place,), radius_mm=6.0)
    assert labels[ball(places[-1], 6.0)].mean() == 1.0


def test_where_the_image_contradicts_the_middle_of_a_large_circle_is_obeyed_at_once():
    images = images_of(ball(MIDDLE, 18.0), step=20.0)
    labels, words = ball(MIDDLE, 18.0).astype(np.uint8), np.zeros(SHAPE, np.uint16)
    stroke(images, labels, words, (MIDDLE,), action=Action.ERASE, radius_mm=10.0)
    # An unsteady hand is 1.5 mm off: 0.8 of the radius less that is surely meant.
    assert not labels[ball(MIDDLE, 0.8 * 10.0 - 1.5)].any()
    assert labels[ball(MIDDLE, 18.0) & ~ball(MIDDLE, 10.0)].all()


def test_a_stroke_for_the_whole_lesion_that_the_image_contradicts_stays_in_its_window():
    lesion, too_large = ball(MIDDLE, 12.0), ball(MIDDLE, 15.0)
    before = too_large.astype(np.uint8)
    labels, words = before.copy(), np.zeros(SHAPE, np.uint16)
    place = (12.0, 24.0, 34.0)  # inside, 2 mm from the edge of the lesion
    given = {"action": Action.ERASE, "radius_mm": 3.0, "whole": True}
    stroke(images_of(lesion, step=20.0), labels, words, (place,), **given)
    near = ball(place, window_mm(Brush(radius_mm=3.0)))
    assert labels[12, 24, 34] == 0
    np.testing.assert_array_equal(labels[~near], before[~near])


def test_a_stroke_for_the_whole_lesion_stays_near_where_lesion_and_surroundings_look_alike():
    before = ball(MIDDLE, 15.0).astype(np.uint8)
    labels, words = before.copy(), np.zeros(SHAPE, np.uint16)
    place = (12.0, 24.0, 38.0)
    given = {"action": Action.ERASE, "radius_mm": 3.0, "whole": True}
    settled = stroke(images_of(ball(MIDDLE, 12.0), step=1.0), labels, words, (place,), **given)
    near = ball(place, window_mm(Brush(radius_mm=3.0)))
    assert labels[12, 24, 38] == 0
    np.testing.assert_array_equal(labels[~near], before[~near])
    assert any("near its circle" in note for note in settled.notes)


def test_the_same_stroke_gives_the_same_bits():
    images = images_of(ball(MIDDLE, 9.0), step=3.0)
    settled = []
    for _ in range(2):
        labels, words = empty()
        stroke(images, labels, words, (MIDDLE,))
        stroke(images, labels, words, ((12.0, 24.0, 30.0),), action=Action.ERASE, radius_mm=4.0)
        settled.append((labels, words))
    np.testing.assert_array_equal(settled[0][0], settled[1][0])
    np.testing.assert_array_equal(settled[0][1], settled[1][1])


def test_a_locked_label_is_not_painted_over():
    lesion = ball(MIDDLE, 9.0)
    labels, words = empty()
    labels[ball((12, 24, 30), 4.0)] = 2
    before = labels == 2
    brush = Brush(tool=Tool.EVIDENCE, radius_mm=8.0)
    work = prepare_stroke(images_of(lesion), labels, words, brush, (MIDDLE,), frozenset({2}))
    settled = settle_stroke(work)
    np.testing.assert_array_equal(settled.labels == 2, before[settled.box.slices])
    assert (settled.labels == 1).any()


def test_a_stroke_for_the_whole_lesion_repairs_a_shell():
    lesion = ball(MIDDLE, 12.0)
    images = images_of(lesion)
    labels, words = empty()
    labels[ball(MIDDLE, 15.0)] = 1
    start = dice(labels > 0, lesion)
    edge = (12.0, 24.0, 38.0)
    stroke(images, labels, words, (edge,), action=Action.ERASE, radius_mm=3.0, whole=True)
    assert start < 0.75
    assert dice(labels > 0, lesion) > 0.95


def test_where_nothing_can_be_told_apart_the_stroke_says_so():
    labels, words = empty()
    settled = stroke(images_of(np.zeros(SHAPE, bool)), labels, words, (MIDDLE,))
    assert any("look similar" in note for note in settled.notes)


@pytest.mark.parametrize("action", [Action.ADD, Action.ERASE])
def test_where_nothing_can_be_told_apart_the_whole_circle_is_obeyed(action):
    labels, words = empty()
    labels[...] = action is Action.ERASE
    images = images_of(np.zeros(SHAPE, bool))
    stroke(images, labels, words, (MIDDLE,), action=action, radius_mm=5.0)
    assert (labels[ball(MIDDLE, 5.0)] == (action is Action.ADD)).mean() >= 0.8
    assert (labels[~ball(MIDDLE, 13.0)] == (action is Action.ERASE)).all()


def test_a_preview_is_close_to_what_comes():
    lesion = ball(MIDDLE, 10.0)
    labels, words = empty()
    brush = Brush(tool=Tool.EVIDENCE, radius_mm=8.0)
    work = prepare_stroke(images_of(lesion), labels, words, brush, (MIDDLE,))
    shown, settled = preview_stroke(work), settle_stroke(work)
    assert dice(shown.mask, settled.labels > 0) > 0.9


@pytest.mark.parametrize("radius_mm", [0.5, 40.0])
def test_a_stroke_beside_the_image_changes_nothing(radius_mm):
    labels, words = empty()
    settled = stroke(
        images_of(ball(MIDDLE, 9.0)), labels, words, ((500.0, 0.0, 0.0),), radius_mm=radius_mm
    )
    assert settled.box.is_empty
    assert not labels.any()


def test_marks_survive_packing():
    rng = np.random.default_rng(1)
    marks = Marks(
        (rng.integers(-100, 101, 50) / 100).astype(np.float32),
        rng.integers(-1, 2, 50).astype(np.int8),
        rng.integers(0, 4, 50).astype(np.uint8),
        rng.integers(0, 16, 50).astype(np.uint8),
    )
    again = unpack_marks(pack_marks(marks))
    np.testing.assert_allclose(again.pull, marks.pull, atol=1e-6)
    np.testing.assert_array_equal(again.hold, marks.hold)
    np.testing.assert_array_equal(again.count, marks.count)
    np.testing.assert_array_equal(again.seen, marks.seen)


def test_nothing_said_is_zero():
    assert pack_marks(unpack_marks(np.zeros(3, np.uint16))).tolist() == [0, 0, 0]


def test_a_word_grows_by_one_that_was_seen_once_more():
    rng = np.random.default_rng(2)
    words = rng.integers(0, 2**16, 500).astype(np.uint16)
    words &= np.uint16(0xEFFF)  # not seen as often as can be
    before, after = unpack_marks(words), unpack_marks(words + ONE_SEEN)
    np.testing.assert_array_equal(after.seen, before.seen + 1)
    for part in ("pull", "hold", "count"):
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))


def test_held_voxels_are_obeyed_by_a_stroke_beside_them():
    images = images_of(ball(MIDDLE, 10.0))
    labels, words = empty()
    part = ball((12, 24, 30), 2.0) & ~ball(MIDDLE, 5.0)
    hold_voxels(words, part, Action.ERASE)
    stroke(images, labels, words, (MIDDLE,), radius_mm=5.0)
    assert not labels[part].any()


def test_a_stroke_lifts_what_was_held_against_it_in_its_whole_circle():
    """Held outside within the circle but off its middle: the stroke, not the old hold, counts."""
    labels, words = empty()
    circle = ball(MIDDLE, 5.0)
    hold_voxels(words, circle, Action.ERASE)
    stroke(images_of(ball(MIDDLE, 10.0)), labels, words, (MIDDLE,), radius_mm=5.0)
    assert not (unpack_marks(words).hold[circle] == -1).any()


def test_distance_to_a_path_is_that_to_its_nearest_piece():
    # From (0, 0, 0) to (0, 0, 6): beside the piece 3 voxels of 1 mm, beyond its end 4 and 3 -> 5.
    path = ((0.0, 0.0, 0.0), (0.0, 0.0, 6.0))
    away = measure_distance(Box((0, 0, 0), (2, 4, 12)), path, SPACING)
    assert away[0, 3, 3] == 3.0
    assert away[0, 3, 10] == 5.0
    assert away[1, 0, 0] == 2.0


def test_a_path_in_three_directions_has_the_distances_of_its_slow_sum():
    path = ((1.0, 2.0, 3.0), (4.0, 8.0, 5.0), (2.0, 1.0, 9.0))
    box = Box((0, 0, 0), (6, 10, 12))
    away = measure_distance(box, path, SPACING)
    dense = np.concatenate([np.linspace(a, b, 2000) for a, b in pairwise(path)]) * np.array(SPACING)
    for voxel in ((0, 0, 0), (3, 5, 5), (5, 9, 11), (2, 2, 8)):
        slow = np.sqrt(((dense - np.array(voxel) * SPACING) ** 2).sum(axis=1)).min()
        assert away[voxel] == pytest.approx(slow, abs=2e-3)


def test_thinning_keeps_corners_and_leaves_out_what_lies_between():
    straight = [(0.0, 0.0, float(x)) for x in range(20)]
    corner = [(0.0, float(y), 19.0) for y in range(1, 20)]
    assert thin_path(straight + corner, SPACING, 5.0) == [straight[0], straight[-1], corner[-1]]


def test_a_first_circle_well_within_a_lesion_finds_the_lesion_where_there_are_two_features():
    lesion = ball(MIDDLE, 11.0)
    rng = np.random.default_rng(3)
    signal = rng.normal(0, 1, (2, *SHAPE)) + np.array([2.0, 10.0])[:, None, None, None] * lesion
    grid = Grid(SHAPE, np.diag([*SPACING[::-1], 1.0]))
    case = Case("A", grid, signal.astype(np.float32), (Phase(0), Phase(1)))
    channels = (Channel("post", 1, None, 1.0), Channel("post - pre", 1, 0, 1.4))
    labels, words = empty()
    stroke(FeatureImages(case, channels), labels, words, (MIDDLE,), radius_mm=6.0)
    assert dice(labels > 0, lesion) > 0.9


@pytest.mark.parametrize(("seed", "step", "radius_mm"), [(5, 1.0, 6.0), (0, 2.5, 20.0)])
def test_with_shift_a_first_press_has_the_bits_of_one_without(seed, step, radius_mm):
    """Also where nothing changes beyond the circle (the first differed in two voxels)."""
    images = images_of(ball(MIDDLE, 8.0), step=step, seed=seed)
    (labels, words), (plain, plain_words) = empty(), empty()
    stroke(images, labels, words, (MIDDLE,), radius_mm=radius_mm, whole=True)
    stroke(images, plain, plain_words, (MIDDLE,), radius_mm=radius_mm)
    np.testing.assert_array_equal(labels, plain)
    np.testing.assert_array_equal(words, plain_words)


blobs = arrays(np.bool_, st.tuples(*[st.integers(1, 7)] * 3))


@given(blobs)
def test_holes_are_what_no_way_leads_to_from_the_border(mask):
    """The slow way: walk in from the border of the array, in the plane where there is only one."""
    flat = tuple(n for n in mask.shape if n > 1) or (1,)
    outside = ~mask.reshape(flat)
    border = np.ones(flat, bool)
    border[tuple(slice(1, -1) for _ in flat)] = False
    reached = binary_propagation(outside & border, mask=outside).reshape(mask.shape)
    np.testing.assert_array_equal(find_holes(mask), ~mask & ~reached)


@given(blobs, st.tuples(*[st.sampled_from([0.7, 1.0, 2.0, 6.5])] * 3))
def test_samples_lie_where_distances_of_the_whole_box_say(mask, spacing):
    inner, outer = _find_sides(mask, spacing)
    if mask.all() or not mask.any():
        np.testing.assert_array_equal(inner, mask)
        assert not outer.any()
        return
    depth = distance_transform_edt(mask, spacing)
    np.testing.assert_array_equal(inner, mask & (depth > min(1.0, 0.4 * depth.max())))
    away = distance_transform_edt(~mask, spacing)
    np.testing.assert_array_equal(outer, (away > 1.5) & (away <= 9.0))
