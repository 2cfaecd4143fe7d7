"""Strokes: equal dabs however the mouse was sampled, and no leak across an edge."""

from dataclasses import replace
from itertools import pairwise
from math import dist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Extent, Sampling, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.brush import StrokePath, dose, paint
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.brush.reach import (
    START_INSIDE,
    START_OUTSIDE,
    painted_radius_mm,
    stamp_box,
)

SPACING = (2.0, 0.7, 0.7)
SHAPE = (21, 64, 96)
EDGE_MM = 47.5 * 0.7
"""Where the bright half begins, along x."""


def in_mm(point):
    return tuple(p * s for p, s in zip(point, SPACING, strict=True))


def half_spaces(cnr, seed, phases=1):
    """Return features of two halves, `cnr` apart after contrast, equal before it; noise is 10."""
    rng = np.random.default_rng(seed)
    bright = np.arange(SHAPE[2]) * 0.7 > EDGE_MM
    rises = [1.0] if phases == 1 else [0.0, 1.0, 0.8]
    signal = np.stack([100 + 10 * cnr * rise * bright + rng.normal(0, 10, SHAPE) for rise in rises])
    grid = Grid(SHAPE, np.diag([*SPACING[::-1], 1.0]))
    times = [None] if phases == 1 else [0.0, 150.0, 450.0]
    records = tuple(Phase(k, t) for k, t in enumerate(times))
    return measure_features(Case("A_1", grid, signal.astype(np.float32), records))


def stroke(membership, images, brush, points):
    """Return a copy of the membership after a press at the first point and drags to the others."""
    out, path = membership.copy(), StrokePath(brush, SPACING, images)
    dabs = [*path.press(points[0])]
    for point in points[1:]:
        dabs += path.drag(point)
    for stamp in dabs:
        box = stamp_box(stamp.centre, brush, SPACING, out.shape)
        paint(out[box.slices], box, stamp, brush, images, SPACING)
    return out


def start(value=START_OUTSIDE):
    return np.full(SHAPE, value, dtype=np.float32)


def from_path_mm(points):
    """Return the distance of each voxel from the nearest point of a straight path, in mm."""
    z, y, x = np.meshgrid(
        *[np.arange(n) * s for n, s in zip(SHAPE, SPACING, strict=True)], indexing="ij"
    )
    first, last = (np.array(in_mm(points[k])) for k in (0, -1))
    along = last - first
    share = np.zeros(SHAPE)
    if along.any():
        offset = (z - first[0], y - first[1], x - first[2])
        share = sum(o * a for o, a in zip(offset, along, strict=True)) / (along @ along)
    share = np.clip(share, 0, 1)
    return np.sqrt(
        sum((v - f - share * a) ** 2 for v, f, a in zip((z, y, x), first, along, strict=True))
    )


X = (EDGE_MM + 4) / 0.7
CLICK = [(10.0, 32.0, X)]
ALONG_THE_EDGE = [(10.0, 18.0, X), (10.0, 46.0, X)]


@pytest.mark.parametrize("phases", [1, 3])
@pytest.mark.parametrize("points", [CLICK, ALONG_THE_EDGE], ids=["click", "stroke"])
@pytest.mark.parametrize(("cnr", "leak"), [(2, 0.15), (3, 0.10), (4, 0.05), (5, 0.03)])
def test_little_leaks_across_an_edge_and_little_is_missed(cnr, leak, points, phases):
    """Limits of issue 4: 4 mm inside the edge, r = 10 mm, mean of 8 seeds; recall within 8 mm."""
    bright = np.broadcast_to(np.arange(SHAPE[2]) * 0.7 > EDGE_MM, SHAPE)
    wanted = bright & (from_path_mm(points) <= 8)
    wrong, found = [], []
    for seed in range(8):
        images = half_spaces(cnr, seed, phases)
        mask = stroke(start(), images, Brush(Tool.SMARTPAINT, radius_mm=10.0), points) >= 0.5
        wrong.append(np.count_nonzero(mask & ~bright) / np.count_nonzero(mask))
        found.append(np.count_nonzero(mask & wanted) / np.count_nonzero(wanted))
    assert np.mean(wrong) <= leak
    assert np.mean(found) >= 0.95


def test_an_eraser_stops_at_the_edge_just_as_the_brush_does():
    images = half_spaces(4, 0)
    added = stroke(start(), images, Brush(Tool.SMARTPAINT, radius_mm=10.0), ALONG_THE_EDGE)
    brush = Brush(Tool.SMARTPAINT, radius_mm=10.0, action=Action.ERASE)
    erased = stroke(start(START_INSIDE), images, brush, ALONG_THE_EDGE)
    np.testing.assert_allclose(erased, 1 - added, atol=1e-6)


@pytest.mark.parametrize("tool", [Tool.SMARTPAINT, Tool.SPHERE])
@pytest.mark.parametrize("times", [1, 20])
def test_what_a_stroke_paints_lies_within_the_drawn_circle(tool, times):
    """However often it goes to and fro: on an even image everything within, nothing outside."""
    images = half_spaces(0, 0)
    images.case.signal[:] = 100.0
    brush = Brush(tool=tool, radius_mm=6.0)
    mask = stroke(start(), images, brush, ALONG_THE_EDGE * times) >= 0.5
    distance, reach = from_path_mm(ALONG_THE_EDGE), painted_radius_mm(brush)
    assert not mask[distance > reach].any()
    # it ends at most one step of 0.75 mm short of the pointer
    assert mask[distance < 0.99 * reach - 0.75].all()


def test_going_to_and_fro_does_not_wear_an_edge_away():
    images, brush = half_spaces(3, 1), Brush(Tool.SMARTPAINT, radius_mm=10.0)
    # both ways along whole steps of 1.25 mm, so that the dabs fall on the same places
    y = [18.0, 18.0 + 17.5 / 0.7]
    there = [(10.0, y[0], X), (10.0, y[1], X)]
    once = stroke(start(), images, brush, there)
    often = stroke(start(), images, brush, [*there, *there[::-1]] * 5)
    np.testing.assert_allclose(often, once, atol=1e-4)


def test_pressing_again_paints_on():
    images, brush = half_spaces(3, 1), Brush(Tool.SMARTPAINT, radius_mm=10.0)
    once = stroke(start(), images, brush, CLICK)
    twice = stroke(once, images, brush, CLICK)
    remaining = (1 - once) / (1 - START_OUTSIDE)
    np.testing.assert_allclose(1 - twice, (1 - START_OUTSIDE) * remaining**2, atol=1e-6)


@pytest.mark.parametrize("tool", Tool)
def test_a_stroke_never_turns_against_its_action(tool):
    images = half_spaces(2, 3, phases=3)
    membership = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    for action in Action:
        brush = Brush(tool=tool, action=action, radius_mm=5.0)
        after = stroke(membership, images, brush, ALONG_THE_EDGE)
        assert after.min() >= 0
        assert after.max() <= 1
        outside = from_path_mm(ALONG_THE_EDGE) > painted_radius_mm(brush) + 1e-4
        np.testing.assert_array_equal(after[outside], membership[outside])
        if tool is not Tool.SMOOTH:
            change = after - membership
            assert (change >= 0).all() if action is Action.ADD else (change <= 0).all()


def test_the_same_stroke_gives_the_same_bits():
    images = half_spaces(2, 3, phases=3)
    one, other = (stroke(start(), images, Brush(Tool.SMARTPAINT), ALONG_THE_EDGE) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_a_locked_stroke_keeps_the_sample_of_its_press():
    """Pressed on the bright half and dragged into the dark one, it paints bright voxels alone."""
    images = half_spaces(8, 0)
    points = [(10.0, 32.0, X), (10.0, 32.0, 30.0)]
    brush = Brush(Tool.SMARTPAINT, radius_mm=5.0)
    follow = stroke(start(), images, brush, points) >= 0.5
    locked = stroke(start(), images, replace(brush, sampling=Sampling.LOCKED), points) >= 0.5
    dark = np.arange(SHAPE[2]) * 0.7 <= EDGE_MM
    assert np.count_nonzero(follow[:, :, dark]) > 500
    assert np.count_nonzero(locked[:, :, dark]) == 0
    assert np.count_nonzero(locked) > 100


# ------------------------------------------------------------------- the path

points = st.tuples(st.floats(-5, 30), st.floats(-20, 90), st.floats(-20, 120))
brushes = st.builds(
    Brush,
    tool=st.sampled_from(Tool),
    radius_mm=st.floats(0.5, 15),
    extent=st.sampled_from(Extent),
)


def dabs_along(brush, places):
    path = StrokePath(brush, SPACING)
    dabs = [*path.press(places[0])]
    for place in places[1:]:
        dabs += path.drag(place)
    return dabs, path.length_mm


@settings(deadline=None, max_examples=100)
@given(brushes, st.lists(points, min_size=2, max_size=5), st.lists(st.floats(0, 1), max_size=30))
def test_the_dabs_do_not_depend_on_how_the_mouse_was_sampled(brush, corners, shares):
    """Each straight piece is reported at its ends alone, then at many places between them too."""
    dense = [corners[0]]
    for first, last in pairwise(corners):
        between = [
            tuple(a + share * (b - a) for a, b in zip(first, last, strict=True))
            for share in sorted(shares)
        ]
        dense += [*between, last]
    few, length = dabs_along(brush, corners)
    many, same_length = dabs_along(brush, dense)
    assert same_length == pytest.approx(length, abs=1e-6)
    assert len(many) == len(few)
    np.testing.assert_allclose(
        [stamp.centre for stamp in many], [stamp.centre for stamp in few], atol=1e-4
    )
    assert [stamp.amount for stamp in many] == [stamp.amount for stamp in few]


@settings(deadline=None, max_examples=100)
@given(brushes, points, points)
def test_dabs_of_a_straight_stroke_lie_an_eighth_of_a_radius_apart(brush, first, last):
    dabs, length = dabs_along(brush, [first, last])
    assert length == pytest.approx(dist(in_mm(first), in_mm(last)))
    step = max(brush.radius_mm / 8, 0.7 / 4)
    assert len(dabs) - 1 == pytest.approx(length / step, abs=1.001)
    gaps = [dist(in_mm(a.centre), in_mm(b.centre)) for a, b in pairwise(dabs)]
    np.testing.assert_allclose(gaps, step, rtol=1e-5)


def test_a_sweep_of_the_smoothing_brush_deposits_a_press_over_one_and_a_half_radii():
    dabs, _ = dabs_along(Brush(tool=Tool.SMOOTH, radius_mm=7.0), [(5, 0, 0), (5, 15.0, 0)])
    # 10.5 mm are twelve steps of 0.875 mm
    assert [stamp.amount for stamp in dabs] == [3.0, *[pytest.approx(0.25)] * 12]


def test_a_click_is_one_dab_of_a_full_dose():
    dabs, length = dabs_along(Brush(Tool.SMARTPAINT), [(5.0, 9.0, 9.0), (5.0, 9.0, 9.0)])
    assert ([stamp.amount for stamp in dabs], length) == ([3.0], 0.0)


def test_a_pointer_without_a_place_is_left_out():
    path = StrokePath(Brush(Tool.SMARTPAINT, radius_mm=4.0), SPACING)
    assert path.press((np.nan, 1, 1)) == ()
    assert [stamp.centre for stamp in path.drag((5.0, 0.0, 0.0))] == [(5.0, 0.0, 0.0)]
    assert path.drag((5.0, np.inf, 0.0)) == ()
    assert len(path.drag((5.0, 10.0, 0.0))) == 14  # 7 mm in steps of 0.5 mm


@pytest.mark.parametrize("radius_mm", [0.05, 0.3, 0.7])
def test_a_stroke_of_a_tiny_brush_leaves_no_gaps(radius_mm):
    images = half_spaces(0, 0)
    images.case.signal[:] = 100.0
    mask = (
        stroke(
            start(), images, Brush(Tool.SMARTPAINT, radius_mm=radius_mm), [(10, 5, 5), (10, 40, 75)]
        )
        >= 0.5
    )
    line = np.argwhere(mask[10].any(axis=0)).ravel()
    np.testing.assert_array_equal(line, np.arange(5, 76))


def test_a_stroke_deposits_the_largest_dose_of_its_dabs():
    """The same dabs, their doses written down for the whole volume, on a path with a corner."""
    images, brush = half_spaces(2, 5, phases=3), Brush(Tool.SMARTPAINT, radius_mm=3.0)
    corners = [(10.0, 8.0, 8.0), (3.0, 50.0, 20.0), (18.0, 20.0, 90.0), (10.0, 8.0, 8.0)]
    dabs, _ = dabs_along(brush, corners)
    whole = Box.whole(SHAPE)
    largest = np.zeros(SHAPE, dtype=np.float32)
    for stamp in dabs:
        np.maximum(largest, dose(stamp, brush, images, SPACING, whole), out=largest)
    expected = 1 - (1 - START_OUTSIDE) * np.exp(-largest)
    np.testing.assert_allclose(stroke(start(), images, brush, corners), expected, atol=2e-6)


@pytest.mark.parametrize("end_mm", [0.0, 0.3, 4.9, 5.0, 7.3])
def test_a_stroke_ends_where_the_pointer_was_last(end_mm):
    path = StrokePath(Brush(Tool.SMARTPAINT, radius_mm=8.0), SPACING)  # a dab each millimetre
    dabs = [*path.press((10, 20, 20)), *path.drag((10, 20 + end_mm / 0.7, 20)), *path.release()]
    assert dist(in_mm(dabs[-1].centre), in_mm((10, 20 + end_mm / 0.7, 20))) < 1e-5
    assert len(dabs) == 1 + int(np.ceil(end_mm - 1e-6))
    assert path.release() == ()


def test_the_last_dab_of_the_smoothing_brush_has_its_share_of_a_step():
    brush = Brush(tool=Tool.SMOOTH, radius_mm=8.0)
    path = StrokePath(brush, SPACING)
    whole = path.press((10, 20, 20)) and path.drag((10, 20 + 1.0 / 0.7, 20))[0].amount
    path.drag((10, 20 + 1.25 / 0.7, 20))
    (last,) = path.release()
    assert last.amount == pytest.approx(0.25 * whole)


def test_a_pointer_that_jumps_by_more_than_a_metre_is_left_out_and_counted():
    path = StrokePath(Brush(Tool.SMARTPAINT, radius_mm=4.0), SPACING)
    path.press((10, 20, 20))
    assert path.drag((1e9, 20, 20)) == ()
    assert (path.too_far, path.length_mm) == (1, 0.0)
    assert path.drag((10, 20, 30))[-1].centre[2] > 29
