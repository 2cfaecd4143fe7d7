"""Islands, holes, margins, smoothing, slice interpolation: by hand, by SimpleITK, by property."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.mask_tools import (
    fill_holes,
    keep_largest,
    margin,
    remove_small,
    smooth,
)
from napari_mamamia.smartpaint.slice_interpolation import interpolate_slices

SPACING = (2.0, 0.7, 0.7)


def grid_of(mask, spacing=(1.0, 1.0, 1.0)):
    z, y, x = spacing
    return Grid(mask.shape, np.diag([x, y, z, 1.0]))


def after(mask, change):
    """The whole mask with a change put in; the change must be as small as can be."""
    box, part = change
    assert part.shape == box.shape
    out = mask.copy()
    out[box.slices] = part
    assert Box.around(out != mask) == box
    return out


def blobs(seed=1, shape=(14, 20, 22), level=0.02):
    return gaussian_filter(np.random.default_rng(seed).normal(size=shape), 1.2) > level


def cube(shape, start, stop):
    mask = np.zeros(shape, dtype=bool)
    mask[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = True
    return mask


def test_the_largest_part_stays():
    mask = cube((8, 8, 8), (0, 0, 0), (2, 2, 2)) | cube((8, 8, 8), (4, 4, 4), (7, 7, 7))
    expected = cube((8, 8, 8), (4, 4, 4), (7, 7, 7))
    box, part = keep_largest(mask, grid_of(mask))
    assert (box.start, box.stop) == ((0, 0, 0), (2, 2, 2))
    assert not part.any()
    np.testing.assert_array_equal(after(mask, (box, part)), expected)


def test_parts_that_share_a_corner_are_one():
    mask = cube((6, 6, 6), (0, 0, 0), (2, 2, 2)) | cube((6, 6, 6), (2, 2, 2), (4, 4, 4))
    assert keep_largest(mask, grid_of(mask))[0].is_empty


def test_of_equal_parts_the_first_stays():
    mask = cube((2, 2, 9), (0, 0, 1), (2, 2, 3)) | cube((2, 2, 9), (0, 0, 6), (2, 2, 8))
    assert after(mask, keep_largest(mask, grid_of(mask)))[:, :, 1:3].all()


def test_parts_below_a_volume_go_and_one_of_just_that_volume_stays():
    # 8 voxels of 2 x 0.7 x 0.7 mm are 7.84 mm3, 1 voxel is 0.98 mm3
    mask = cube((6, 8, 8), (0, 0, 0), (2, 2, 2)) | cube((6, 8, 8), (5, 7, 7), (6, 8, 8))
    rest = after(mask, remove_small(mask, grid_of(mask, SPACING), 7.84))
    np.testing.assert_array_equal(rest, cube((6, 8, 8), (0, 0, 0), (2, 2, 2)))
    assert not after(mask, remove_small(mask, grid_of(mask, SPACING), 7.85)).any()
    assert remove_small(mask, grid_of(mask, SPACING), 0.98)[0].is_empty


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(4))
def test_holes_in_3d_are_those_of_simpleitk(seed):
    mask = blobs(seed, (24, 30, 30), -0.08)
    filled = sitk.BinaryFillhole(sitk.GetImageFromArray(mask.astype(np.uint8)), False, 1)
    expected = sitk.GetArrayFromImage(filled).astype(bool)
    assert (expected != mask).any()
    np.testing.assert_array_equal(after(mask, fill_holes(mask, grid_of(mask))), expected)


@pytest.mark.parity
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_holes_of_slices_are_those_of_simpleitk_slice_by_slice(axis):
    mask = blobs(2, level=-0.05)
    expected = mask.copy()
    for plane in expected.swapaxes(0, axis):
        image = sitk.GetImageFromArray(np.ascontiguousarray(plane).astype(np.uint8))
        plane |= sitk.GetArrayFromImage(sitk.BinaryFillhole(image, False, 1)).astype(bool)
    assert (expected != mask).any()
    np.testing.assert_array_equal(after(mask, fill_holes(mask, grid_of(mask), axis)), expected)


def test_a_tube_is_filled_slice_by_slice_only():
    tube = cube((5, 7, 7), (0, 1, 1), (5, 6, 6)) & ~cube((5, 7, 7), (0, 2, 2), (5, 5, 5))
    assert fill_holes(tube, grid_of(tube))[0].is_empty
    filled = after(tube, fill_holes(tube, grid_of(tube), 0))
    np.testing.assert_array_equal(filled, cube((5, 7, 7), (0, 1, 1), (5, 6, 6)))


def test_a_margin_runs_in_mm():
    # one voxel, 1.4 mm: two voxels of 0.7 mm each way in the slice, none across 2 mm
    mask = cube((5, 9, 9), (2, 4, 4), (3, 5, 5))
    grown = after(mask, margin(mask, grid_of(mask, SPACING), 1.4))
    assert np.flatnonzero(grown[2, 4]).tolist() == [2, 3, 4, 5, 6]
    assert np.flatnonzero(grown[2, 3]).tolist() == [3, 4, 5]  # (1, 2) voxels away: 1.57 mm
    assert np.flatnonzero(grown[:, 4, 4]).tolist() == [2]
    assert np.count_nonzero(grown) == 13


@pytest.mark.parity
@pytest.mark.parametrize("margin_mm", [0.7, 2.1, 5.0])
def test_a_margin_is_the_distance_map_of_simpleitk_cut_there(margin_mm):
    mask = blobs(3, (10, 24, 24), 0.12)
    image = sitk.GetImageFromArray(mask.astype(np.uint8))
    image.SetSpacing(SPACING[::-1])
    distance = sitk.SignedMaurerDistanceMap(image, squaredDistance=False, useImageSpacing=True)
    expected = sitk.GetArrayFromImage(distance) <= margin_mm + 1e-4
    expected |= mask
    grown = after(mask, margin(mask, grid_of(mask, SPACING), margin_mm))
    np.testing.assert_array_equal(grown, expected)


@pytest.mark.parametrize("margin_mm", [0.7, 1.5, 2.1])
def test_a_negative_margin_grows_what_is_outside(margin_mm):
    mask = blobs(4, (10, 24, 24), -0.1)
    grid = grid_of(mask, SPACING)
    shrunk = after(mask, margin(mask, grid, -margin_mm))
    np.testing.assert_array_equal(shrunk, ~after(~mask, margin(~mask, grid, margin_mm)))


def test_the_border_of_the_image_takes_nothing_away():
    mask = np.ones((3, 4, 5), dtype=bool)
    assert margin(mask, grid_of(mask), -2)[0].is_empty


def test_a_margin_grows_to_the_border_and_no_further():
    mask = cube((3, 6, 6), (0, 0, 0), (1, 1, 1))
    grown = after(mask, margin(mask, grid_of(mask), 2))
    assert not grown[:, :, 3:].any()
    assert np.count_nonzero(grown[0]) == 6  # (0,0) (0,1) (0,2) (1,0) (1,1) (2,0)


def test_smoothing_keeps_the_volume_and_takes_off_a_thorn():
    shape = (21, 21, 21)
    z, y, x = np.indices(shape) - 10
    mask = z**2 + y**2 + x**2 <= 36
    mask[10, 10, 17:20] = True
    smoothed = after(mask, smooth(mask, grid_of(mask), 1.5))
    assert not smoothed[10, 10, 18:].any()
    assert abs(np.count_nonzero(smoothed) - np.count_nonzero(mask)) <= 12  # ties by symmetry


def test_a_large_ball_stays_nearly_what_it_is():
    z, y, x = np.indices((25, 25, 25)) - 12
    ball = z**2 + y**2 + x**2 <= 81
    smoothed = after(ball, smooth(ball, grid_of(ball), 1.0))
    assert 2 * np.count_nonzero(smoothed & ball) / (smoothed.sum() + ball.sum()) > 0.98


def test_thick_slices_are_smoothed_in_their_plane():
    mask = cube((3, 20, 20), (1, 5, 5), (2, 15, 15))
    smoothed = after(mask, smooth(mask, grid_of(mask, (16.0, 1.0, 1.0)), 3))
    assert not smoothed[[0, 2]].any()
    assert not smoothed[1, 5, 5]


def test_a_part_of_one_voxel_survives_smoothing_beside_a_large_one():
    mask = cube((10, 10, 20), (2, 2, 2), (8, 8, 8))
    mask[5, 5, 15] = True
    assert after(mask, smooth(mask, grid_of(mask), 1.0))[5, 5, 15]


# interpolation


def slow_interpolation(before, after_, part, spacing):
    """The definition, with distances taken voxel by voxel to every voxel of the other kind."""
    places = np.argwhere(np.ones_like(before)) * spacing
    outside = [*(np.argwhere(np.pad(np.zeros_like(before), 1, constant_values=1)) - 1)]
    border = np.array(outside) * spacing

    def signed(mask):
        inner, outer = np.argwhere(mask) * spacing, np.argwhere(~mask) * spacing
        outer = np.concatenate([outer, border])
        values = []
        for place, inside in zip(places, mask.ravel(), strict=True):
            other = outer if inside else inner
            nearest = np.sqrt(((other - place) ** 2).sum(axis=1)).min()
            values.append(nearest if inside else -nearest)
        return np.reshape(values, mask.shape)

    return (1 - part) * signed(before) + part * signed(after_) > 1e-6  # no rounding


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slices_between_follow_the_definition(axis):
    spacing = (2.0, 0.7, 1.1)
    plane_spacing = np.array([s for a, s in enumerate(spacing) if a != axis])
    y, x = np.indices((13, 14))
    low, high = (y - 5) ** 2 + (x - 6) ** 2 < 16, (abs(y - 6) < 3) & (abs(x - 7) < 6)
    mask = np.zeros((4, 13, 14), dtype=bool)
    mask[0], mask[3] = low, high
    mask = np.ascontiguousarray(np.moveaxis(mask, 0, axis))
    filled = after(mask, interpolate_slices(mask, grid_of(mask, spacing), axis))
    for index in (1, 2):
        expected = slow_interpolation(low, high, index / 3, plane_spacing)
        np.testing.assert_array_equal(filled.take(index, axis=axis), expected)


def test_between_equal_outlines_lies_the_same_outline():
    mask = np.zeros((6, 12, 12), dtype=bool)
    mask[1, 3:8, 2:9] = mask[4, 3:8, 2:9] = True
    filled = after(mask, interpolate_slices(mask, grid_of(mask)))
    assert all((filled[k] == mask[1]).all() for k in (1, 2, 3, 4))
    assert not filled[[0, 5]].any()


def test_outlines_that_do_not_overlap_move_from_one_to_the_other():
    mask = np.zeros((5, 10, 30), dtype=bool)
    mask[0, 3:7, 2:6] = mask[4, 3:7, 22:26] = True
    filled = after(mask, interpolate_slices(mask, grid_of(mask)))
    assert np.count_nonzero(filled[2]) == 16
    assert filled[2, 3:7, 12:16].all()


def test_what_exists_in_between_stays_and_gains():
    mask = np.zeros((5, 12, 12), dtype=bool)
    mask[0, 3:8, 3:8] = mask[4, 3:8, 3:8] = True
    mask[2, 10, 10] = True
    by_hand = after(mask, interpolate_slices(mask, grid_of(mask), slices=[0, 4]))
    assert by_hand[2, 10, 10]
    assert by_hand[2, 3:8, 3:8].all()
    of_all = after(mask, interpolate_slices(mask, grid_of(mask)))
    np.testing.assert_array_equal(of_all[2], mask[2])  # an outlined slice itself


@pytest.mark.parametrize("slices", [[0, 3], [0, 9], [-1, 4]])
def test_a_slice_without_an_outline_is_refused(slices):
    mask = np.zeros((5, 12, 12), dtype=bool)
    mask[0, 3:8, 3:8] = mask[4, 3:8, 3:8] = True
    with pytest.raises(CaseError, match="outline"):
        interpolate_slices(mask, grid_of(mask), slices=slices)


# degenerate input and properties

TOOLS = {
    "largest": keep_largest,
    "small": lambda mask, grid: remove_small(mask, grid, 3.0),
    "holes": fill_holes,
    "slice holes": lambda mask, grid: fill_holes(mask, grid, 1),
    "more": lambda mask, grid: margin(mask, grid, 1.5),
    "less": lambda mask, grid: margin(mask, grid, -1.0),
    "smooth": lambda mask, grid: smooth(mask, grid, 1.0),
    "between": interpolate_slices,
}
MASKS = st.builds(
    lambda shape, seed, share: np.random.default_rng(seed).random(shape) < share,
    st.tuples(st.integers(1, 6), st.integers(1, 7), st.integers(1, 7)),
    st.integers(0, 10_000),
    st.floats(0, 1),
)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_an_empty_mask_stays_empty(tool):
    mask = np.zeros((3, 4, 5), dtype=bool)
    box, part = tool(mask, grid_of(mask))
    assert box.is_empty
    assert part.shape == (0, 0, 0)


@pytest.mark.parametrize("name", TOOLS)
@settings(max_examples=30, deadline=None)
@given(mask=MASKS)
def test_a_tool_leaves_its_input_alone_and_returns_the_smallest_change(name, mask):
    before = mask.copy()
    result = after(mask, TOOLS[name](mask, grid_of(mask, (2.0, 0.7, 1.0))))
    np.testing.assert_array_equal(mask, before)
    if name in ("holes", "slice holes", "more", "between"):
        assert (result | mask == result).all()
    if name in ("largest", "small", "less"):
        assert (result & mask == result).all()


@settings(max_examples=30, deadline=None)
@given(mask=MASKS, name=st.sampled_from(["largest", "small", "holes", "slice holes"]))
def test_doing_it_twice_changes_nothing_more(mask, name):
    """Not so of `between`: of scattered voxels what it fills may span a further gap."""
    once = after(mask, TOOLS[name](mask, grid_of(mask)))
    assert TOOLS[name](once, grid_of(mask))[0].is_empty


@settings(max_examples=30, deadline=None)
@given(mask=MASKS, seed=st.integers(0, 2))
def test_padding_the_image_changes_no_smoothing_beyond_its_reach(mask, seed):
    # 3 standard deviations and one voxel more: what lies beyond is not read
    wide = np.pad(mask, 8)
    wider = np.pad(mask, 12)
    one = after(wide, smooth(wide, grid_of(wide), 1.0))
    two = after(wider, smooth(wider, grid_of(wider), 1.0))
    np.testing.assert_array_equal(two[4:-4, 4:-4, 4:-4], one)


@pytest.mark.parametrize(
    "call",
    [
        lambda mask, grid: remove_small(mask, grid, -1),
        lambda mask, grid: margin(mask, grid, float("nan")),
        lambda mask, grid: smooth(mask, grid, 0),
        lambda mask, grid: keep_largest(mask[:2], grid),
    ],
)
def test_values_out_of_range_are_refused(call):
    mask = np.ones((3, 4, 5), dtype=bool)
    with pytest.raises(CaseError):
        call(mask, grid_of(mask))
