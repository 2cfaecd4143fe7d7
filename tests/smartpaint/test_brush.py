"""One dab: what its dose is, where it falls, and what it does to the membership."""

from math import ceil, exp, floor, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.halves import half_by_day

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Extent, Features, Tool
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.brush.brush import Stamp, deposit, dose, paint, sample_at
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages
from napari_mamamia.smartpaint.brush.reach import (
    START_INSIDE,
    START_OUTSIDE,
    painted_radius_mm,
    stamp_box,
    suggested_radius_mm,
)

SPACING = (2.0, 0.7, 0.7)
SHAPE = (11, 31, 33)
MIDDLE = (5.0, 15.0, 16.0)


def images_of(signal, noise=10.0, spacing=SPACING):
    """Return features of a (phase, z, y, x) signal without measuring anything."""
    grid = Grid(signal.shape[1:], np.diag([*spacing[::-1], 1.0]))
    case = Case("A_1", grid, signal, tuple(Phase(k) for k in range(len(signal))))
    if len(signal) == 1:
        return FeatureImages(case, (Channel("image", 0, None, noise),))
    channels = (
        Channel("post", 1, None, noise),
        Channel("post - pre", 1, 0, noise * 2**0.5),
        Channel("late - post", 2, 1, noise * 2**0.5),
    )
    return FeatureImages(case, channels[: len(signal)])


def noisy(phases=3, seed=0, shape=SHAPE):
    return np.random.default_rng(seed).normal(300, 20, (phases, *shape)).astype(np.float32)


def even(value=100.0, shape=SHAPE):
    return np.full((1, *shape), value, dtype=np.float32)


def start(shape=SHAPE, value=START_OUTSIDE):
    return np.full(shape, value, dtype=np.float32)


def dabbed(membership, images, brush, centre=MIDDLE, spacing=SPACING, amount=3.0):
    """Return a copy of the membership with one dab in it."""
    out = membership.copy()
    box = stamp_box(centre, brush, spacing, out.shape)
    paint(out[box.slices], box, Stamp(centre, amount), brush, images, spacing)
    return out


def distances(centre, shape, spacing):
    along = [(np.arange(n) - c) * s for n, c, s in zip(shape, centre, spacing, strict=True)]
    z, y, x = np.meshgrid(*along, indexing="ij")
    return np.sqrt(z * z + y * y + x * x)


def slow_dab(membership, images, brush, centre, spacing, amount=3.0):
    """The rule of the facts, voxel by voxel: a second implementation, in float64."""
    features = images.choose(brush.features)
    whole = features.in_box(Box.whole(membership.shape)).astype(float)
    noise, factor = features.noise, {1: 1.0, 2: 0.86, 3: 0.8}[len(features.noise)]
    reach = brush.radius_mm * (1 - 0.5 * log(0.95 / 0.5) / 3)
    under = tuple(floor(c + 0.5) for c in centre)
    across = brush.plane_axis if brush.extent is Extent.PLANE else spacing.index(max(spacing))
    disc = []
    for voxel in np.ndindex(membership.shape):
        offsets = [(v - c) * s for v, c, s in zip(voxel, centre, spacing, strict=True)]
        offsets[across] = 0.0
        near = sum(o * o for o in offsets) ** 0.5 <= min(1.5, reach)
        if voxel[across] == under[across] and (near or voxel == under):
            values = [image[voxel] for image in whole]
            disc += [values] if all(np.isfinite(values)) else []
    out = membership.astype(float)
    if not disc:
        return out
    middle = [np.median([row[k] for row in disc]) for k in range(len(whole))]
    mad = [np.median([abs(row[k] - middle[k]) for row in disc]) for k in range(len(whole))]
    scale = [min(max(1.4826 * m, n), 2 * n) for m, n in zip(mad, noise, strict=True)]
    for voxel in np.ndindex(membership.shape):
        offsets = [(v - c) * s for v, c, s in zip(voxel, centre, spacing, strict=True)]
        if brush.extent is Extent.PLANE:
            if voxel[across] != under[across]:
                continue
            offsets[across] = 0.0
        d = 0.0 if voxel == under else sum(o * o for o in offsets) ** 0.5
        values = [image[voxel] for image in whole]
        if (d > reach and voxel != under) or not all(np.isfinite(values)):
            continue
        z = [(v - m) / s for v, m, s in zip(values, middle, scale, strict=True)]
        own = [z[0], *(z[0] + sign * 2**0.5 * z[k] for k, sign in ((1, -1), (2, 1)) if k < len(z))]
        z2 = np.mean(np.square(own))
        fall = min(max((1 - d / brush.radius_mm) / 0.5, 0), 1)
        rho = exp(-0.5 * (1.65 / (factor * brush.tolerance)) ** 2 * z2)
        goal = 1.0 if brush.action is Action.ADD else 0.0
        out[voxel] = goal + (out[voxel] - goal) * exp(-amount * fall * rho)
    return out


centres = st.tuples(
    st.floats(-3, SHAPE[0] + 2), st.floats(-6, SHAPE[1] + 5), st.floats(-6, SHAPE[2] + 5)
)
brushes = st.builds(
    Brush,
    tool=st.sampled_from(Tool),
    action=st.sampled_from(Action),
    radius_mm=st.floats(0.1, 12),
    tolerance=st.floats(0.5, 6),
    features=st.sampled_from(Features),
    extent=st.sampled_from(Extent),
    plane_axis=st.integers(0, 2),
)
seeds = st.integers(0, 100)
quickly = settings(deadline=None, max_examples=60)


@quickly
@given(brushes, centres, seeds)
def test_nothing_changes_outside_the_circle_that_is_drawn(brush, centre, seed):
    membership = np.random.default_rng(seed).random(SHAPE, dtype=np.float32)
    after = dabbed(membership, images_of(noisy(seed=seed)), brush, centre)
    outside = distances(centre, SHAPE, SPACING) > painted_radius_mm(brush) + 1e-4
    under = tuple(floor(c + 0.5) for c in centre)
    if brush.extent is Extent.PLANE:
        moved = list(centre)
        moved[brush.plane_axis] = under[brush.plane_axis]
        outside = distances(moved, SHAPE, SPACING) > painted_radius_mm(brush) + 1e-4
        outside |= np.indices(SHAPE)[brush.plane_axis] != under[brush.plane_axis]
    if all(0 <= u < n for u, n in zip(under, SHAPE, strict=True)):
        outside[under] = False
    np.testing.assert_array_equal(after[outside], membership[outside])


@quickly
@given(brushes, centres, seeds)
def test_membership_stays_between_0_and_1_and_moves_one_way(brush, centre, seed):
    membership = np.random.default_rng(seed).random(SHAPE, dtype=np.float32)
    after = dabbed(membership, images_of(noisy(seed=seed)), brush, centre)
    assert after.min() >= 0
    assert after.max() <= 1
    if brush.tool is not Tool.SMOOTH:
        change = after - membership
        assert (change >= 0).all() if brush.action is Action.ADD else (change <= 0).all()


@quickly
@given(brushes, centres, seeds)
def test_erasing_is_adding_to_what_is_left(brush, centre, seed):
    membership = np.random.default_rng(seed).random(SHAPE, dtype=np.float32)
    images = images_of(noisy(seed=seed))
    there = dabbed(membership, images, brush, centre)
    back = dabbed(1 - membership, images, brush.inverted(), centre)
    np.testing.assert_allclose(back, 1 - there, atol=1e-6)


@quickly
@given(brushes, centres, centres, seeds)
def test_the_order_of_two_adds_does_not_matter(brush, one, other, seed):
    if brush.tool is Tool.SMOOTH:
        return
    membership = np.random.default_rng(seed).random(SHAPE, dtype=np.float32)
    images = images_of(noisy(seed=seed))
    first = dabbed(dabbed(membership, images, brush, one), images, brush, other)
    second = dabbed(dabbed(membership, images, brush, other), images, brush, one)
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("action", Action)
def test_ten_tenths_of_a_dose_are_one_dose(action):
    images, brush = images_of(noisy()), Brush(Tool.SMARTPAINT, action=action)
    once = dabbed(start(value=0.3), images, brush)
    often = start(value=0.3)
    for _ in range(10):
        often = dabbed(often, images, brush, amount=0.3)
    np.testing.assert_allclose(often, once, atol=1e-6)


def test_the_same_dab_gives_the_same_bits():
    images, brush = images_of(noisy()), Brush(Tool.SMARTPAINT, radius_mm=8.0)
    np.testing.assert_array_equal(*(dabbed(start(), images, brush) for _ in range(2)))


@pytest.mark.parametrize("extent", Extent)
@pytest.mark.parametrize("plane_axis", [0, 1, 2])
@pytest.mark.parametrize("phases", [1, 2, 3])
@pytest.mark.parametrize(
    "centre", half_by_day([(4.6, 14.3, 17.45), MIDDLE, (-0.4, 1.2, 32.4), (12, 15, 16)])
)
def test_a_dab_agrees_with_the_rule_applied_voxel_by_voxel(extent, plane_axis, phases, centre):
    signal = noisy(phases, seed=phases)
    signal[0, 4:6, 13:16, 15] = np.nan
    brush = Brush(
        Tool.SMARTPAINT, radius_mm=5.3, tolerance=3.0, extent=extent, plane_axis=plane_axis
    )
    small = signal[:, :, 5:27, 6:]
    place = (centre[0], centre[1] - 5, centre[2] - 6)
    images = images_of(np.ascontiguousarray(small))
    membership = np.random.default_rng(9).random(small.shape[1:], dtype=np.float32)
    expected = slow_dab(membership, images, brush, place, SPACING)
    np.testing.assert_allclose(dabbed(membership, images, brush, place), expected, atol=1e-6)


def test_dose_falls_with_distance_where_the_image_is_even():
    brush = Brush(Tool.SMARTPAINT, radius_mm=6.0)
    box = Box.whole(SHAPE)
    amount = dose(Stamp(MIDDLE, 3.0), brush, images_of(even()), SPACING, box)
    along = amount[5, 15, 16:]
    assert (np.diff(along) <= 0).all()
    d = 0.7 * np.arange(len(along))
    drawn = d <= 6 * (1 - 0.5 * log(1.9) / 3)
    expected = 3 * np.clip((1 - d / 6) / 0.5, 0, 1) * drawn
    np.testing.assert_allclose(along, expected, atol=1e-5)


def test_dose_falls_with_dissimilarity_at_one_distance():
    """Voxels on a ring, each one unit of noise further from the sample than the one before."""
    signal = even(100.0)
    ring = [(5, 15 + 4, 16), (5, 15 - 4, 16), (5, 15, 16 + 4), (5, 15, 16 - 4)]
    for step, voxel in enumerate(ring):
        signal[(0, *voxel)] += 10 * step
    amount = dose(
        Stamp(MIDDLE, 3.0),
        Brush(Tool.SMARTPAINT, radius_mm=8.0),
        images_of(signal),
        SPACING,
        Box.whole(SHAPE),
    )
    found = [float(amount[voxel]) for voxel in ring]
    # 2.8 mm lie in the full dose; z is 0, 1, 2, 3 and the tolerance 2.5
    np.testing.assert_allclose(
        found, [3 * exp(-0.5 * (1.65 * z / 2.5) ** 2) for z in range(4)], rtol=1e-5
    )


@pytest.mark.parametrize(("gain", "offset"), [(8.0, 0.0), (0.125, 0.0), (1.0, 256.0)])
def test_the_unit_of_the_intensities_does_not_matter(gain, offset):
    signal = np.round(noisy(seed=3))
    once = dabbed(start(), images_of(signal), Brush(Tool.SMARTPAINT, radius_mm=8.0))
    scaled = images_of((signal * gain + offset).astype(np.float32), noise=10.0 * gain)
    np.testing.assert_allclose(
        dabbed(start(), scaled, Brush(Tool.SMARTPAINT, radius_mm=8.0)), once, atol=1e-5
    )


@pytest.mark.parametrize(
    ("spacing", "radius_mm", "expected"),
    [
        # 8.93 mm reach 4 slices of 2 mm and 12 voxels of 0.7 mm each way
        ((2.0, 0.7, 0.7), 10.0, (16.0, 16.8, 16.8)),
        # 8.93 mm reach 1 slice of 5 mm and 8 voxels of 1 mm
        ((5.0, 1.0, 1.0), 10.0, (10.0, 16.0, 16.0)),
        # 3.57 mm reach no slice of 5 mm and 3 voxels of 1 mm
        ((5.0, 1.0, 1.0), 4.0, (0.0, 6.0, 6.0)),
    ],
)
@pytest.mark.parametrize("tool", [Tool.SMARTPAINT, Tool.SPHERE])
def test_a_dab_on_an_even_image_is_a_sphere_in_mm(spacing, radius_mm, expected, tool):
    shape = (15, 41, 41)
    brush = Brush(tool=tool, radius_mm=radius_mm)
    images = images_of(even(shape=shape), spacing=spacing)
    mask = dabbed(start(shape), images, brush, (7.0, 20.0, 20.0), spacing) >= 0.5
    extents = [(n - 1) * s for n, s in zip(Box.around(mask).shape, spacing, strict=True)]
    np.testing.assert_allclose(extents, expected)
    drawn = distances((7, 20, 20), shape, spacing) <= painted_radius_mm(brush)
    np.testing.assert_array_equal(mask, drawn)


def test_an_eraser_takes_away_what_the_brush_paints():
    images = images_of(even())
    added = dabbed(start(), images, Brush(Tool.SMARTPAINT, radius_mm=7.0)) >= 0.5
    brush = Brush(Tool.SMARTPAINT, radius_mm=7.0, action=Action.ERASE)
    erased = dabbed(start(value=START_INSIDE), images, brush) < 0.5
    np.testing.assert_array_equal(added, erased)
    assert added.any()


def test_a_sphere_takes_no_notice_of_the_image_and_needs_none():
    brush = Brush(tool=Tool.SPHERE, radius_mm=7.0)
    np.testing.assert_array_equal(
        dabbed(start(), None, brush), dabbed(start(), images_of(noisy()), brush)
    )
    box = stamp_box(MIDDLE, brush, SPACING, SHAPE)
    assert set(np.unique(dabbed(start(), None, brush)[box.slices])) == {START_OUTSIDE, 1.0}


def test_a_brush_that_compares_images_needs_them():
    with pytest.raises(CaseError, match="plain sphere"):
        dabbed(start(), None, Brush(Tool.SMARTPAINT))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_flat_brush_paints_the_slice_of_its_centre_alone(axis):
    brush = Brush(Tool.SMARTPAINT, radius_mm=6.0, extent=Extent.PLANE, plane_axis=axis)
    centre = (4.6, 15.4, 15.6)
    mask = dabbed(start(), images_of(even()), brush, centre) >= 0.5
    box = Box.around(mask)
    assert (box.start[axis], box.shape[axis]) == ((5, 15, 16)[axis], 1)


def test_a_flat_brush_takes_its_sample_from_its_own_plane():
    signal = even(100.0)
    signal[0, :, :, 16] = 180.0  # a sagittal sheet
    sagittal = Brush(Tool.SMARTPAINT, extent=Extent.PLANE, plane_axis=2)
    axial = Brush(Tool.SMARTPAINT, extent=Extent.PLANE, plane_axis=0)
    images = images_of(signal)
    assert sample_at(MIDDLE, sagittal, images, SPACING).middle == (180.0,)
    assert sample_at(MIDDLE, axial, images, SPACING).middle == (100.0,)


def test_one_noisy_voxel_does_not_set_the_sample():
    signal = even(100.0)
    signal[0, 5, 15, 16] = 900.0
    assert sample_at(MIDDLE, Brush(Tool.SMARTPAINT), images_of(signal), SPACING).middle == (100.0,)


@pytest.mark.parametrize(("step", "scale"), [(0.0, 10.0), (12.0, 1.4826 * 12), (1000.0, 20.0)])
def test_the_scale_of_a_sample_lies_between_one_and_two_units_of_noise(step, scale):
    """Rows 0, 1 and 2 from the middle hold 5, 6 and 2 of the 13 voxels: the MAD is one step."""
    signal = even(100.0)
    signal[0] += step * np.abs(np.arange(SHAPE[1]) - 15)[:, np.newaxis].astype(np.float32)
    sample = sample_at(MIDDLE, Brush(Tool.SMARTPAINT), images_of(signal), SPACING)
    assert sample.middle == (100.0 + step,)
    assert sample.scale == pytest.approx((scale,))


@pytest.mark.parametrize("tool", [Tool.SMARTPAINT, Tool.SPHERE])
@pytest.mark.parametrize("radius_mm", [0.01, 0.2, 0.3])
@pytest.mark.parametrize("centre", [MIDDLE, (5.4, 15.4, 16.4), (4.5, 14.5, 15.5)])
def test_a_brush_smaller_than_a_voxel_paints_the_voxel_under_the_pointer(tool, radius_mm, centre):
    brush = Brush(tool=tool, radius_mm=radius_mm)
    mask = dabbed(start(), images_of(noisy()), brush, centre) >= 0.5
    assert [tuple(voxel) for voxel in np.argwhere(mask)] == [(5, 15, 16)]


@pytest.mark.parametrize("tool", Tool)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [0, 1])
def test_a_dab_at_the_border_does_not_come_out_on_the_other_side(tool, axis, side):
    brush = Brush(tool=tool, radius_mm=5.0)
    centre = list(MIDDLE)
    centre[axis] = SHAPE[axis] - 1 if side else 0
    membership = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    changed = dabbed(membership, images_of(even()), brush, tuple(centre)) != membership
    assert changed.any()
    far = np.moveaxis(changed, axis, 0)
    assert not (far[: SHAPE[axis] // 2] if side else far[SHAPE[axis] // 2 + 1 :]).any()


@pytest.mark.parametrize("tool", Tool)
@pytest.mark.parametrize("centre", [(-50, 5, 5), (5, 1e9, 5), (5, 5, np.nan), (np.inf, 5, 5)])
def test_a_dab_beyond_the_volume_changes_nothing(tool, centre):
    brush = Brush(tool=tool)
    assert stamp_box(centre, brush, SPACING, SHAPE).is_empty
    np.testing.assert_array_equal(dabbed(start(), images_of(even()), brush, centre), start())


def test_the_box_of_a_dab_does_not_change_its_dose():
    brush, images = Brush(Tool.SMARTPAINT, radius_mm=5.0), images_of(noisy())
    box = stamp_box(MIDDLE, brush, SPACING, SHAPE)
    whole = dose(Stamp(MIDDLE, 3.0), brush, images, SPACING, Box.whole(SHAPE))
    np.testing.assert_array_equal(
        whole[box.slices], dose(Stamp(MIDDLE, 3.0), brush, images, SPACING, box)
    )
    assert np.count_nonzero(whole) == np.count_nonzero(whole[box.slices])


def test_nan_is_similar_to_nothing():
    signal = even(100.0)
    signal[0, :, :, 18:] = np.nan
    after = dabbed(start(), images_of(signal), Brush(Tool.SMARTPAINT, radius_mm=6.0))
    assert (after[:, :, 18:] == START_OUTSIDE).all()
    assert (after[5, 15, 12:18] > 0.5).all()


def test_a_dab_in_the_midst_of_nan_paints_nothing():
    signal = even(np.nan)
    np.testing.assert_array_equal(
        dabbed(start(), images_of(signal), Brush(Tool.SMARTPAINT)), start()
    )


def test_a_volume_of_one_slice_can_be_painted():
    shape = (1, 31, 33)
    images = images_of(even(shape=shape))
    for extent in Extent:
        mask = (
            dabbed(
                start(shape),
                images,
                Brush(Tool.SMARTPAINT, radius_mm=5.0, extent=extent),
                (0, 15, 16),
            )
            >= 0.5
        )
        assert Box.around(mask).shape == (1, 13, 13)  # 4.46 mm reach 6 voxels of 0.7 mm


def test_integers_are_compared_without_overflow():
    signal = np.zeros((3, *SHAPE), dtype=np.uint16)
    signal[0], signal[1], signal[2] = 60000, 20, 10
    images = images_of(signal)
    assert images.in_box(Box.whole(SHAPE))[:, 0, 0, 0].tolist() == [20.0, -59980.0, -10.0]
    assert dabbed(start(), images, Brush(Tool.SMARTPAINT))[5, 15, 16] > 0.9


def test_smoothing_takes_off_a_spike_and_keeps_a_plain():
    brush = Brush(tool=Tool.SMOOTH, radius_mm=6.0)
    np.testing.assert_allclose(dabbed(start(), None, brush), start(), atol=1e-7)
    membership = start()
    membership[5, 15, 16] = START_INSIDE
    assert dabbed(membership, None, brush)[5, 15, 16] < 0.5


def test_smoothing_blends_with_the_mean_of_a_gaussian_of_1_mm():
    """A dab of dose 3 in its middle takes 1 - exp(-3) of the mean, summed up here by hand."""
    membership = np.random.default_rng(2).random((1, 31, 31)).astype(np.float32)
    brush = Brush(tool=Tool.SMOOTH, radius_mm=8.0, extent=Extent.PLANE)
    after = dabbed(membership, None, brush, (0, 15, 15), (2.0, 1.0, 1.0))
    weights = np.array([exp(-0.5 * k * k) for k in range(-3, 4)])
    weights /= weights.sum()
    mean = weights @ membership[0, 12:19, 12:19].astype(float) @ weights
    old = float(membership[0, 15, 15])
    assert after[0, 15, 15] == pytest.approx(old + (mean - old) * (1 - exp(-3)), abs=1e-6)


def test_a_deposit_of_nothing_leaves_every_bit():
    membership = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    for action in Action:
        after = membership.copy()
        deposit(after, np.zeros(SHAPE, dtype=np.float32), action)
        np.testing.assert_array_equal(after, membership)


def test_the_suggested_radius_is_the_distance_to_the_edge():
    mask = np.zeros(SHAPE, dtype=bool)
    mask[2:9, 5:26, 5:28] = True
    # from (5, 15, 16) the next voxel outside is 4 slices of 2 mm, 11 rows or 12 columns away
    assert suggested_radius_mm(mask, MIDDLE, SPACING, (1.0, 20.0)) == pytest.approx(7.7)
    assert suggested_radius_mm(mask, (5, 15, 7), SPACING, (1.0, 20.0)) == pytest.approx(2.1)
    assert suggested_radius_mm(mask, (5, 15, 2), SPACING, (1.0, 20.0)) == pytest.approx(2.1)


@pytest.mark.parametrize("point", [MIDDLE, (-3.0, 40.0, 16.0), (0, 0, 0)])
def test_the_suggested_radius_keeps_its_limits(point):
    nothing = np.zeros(SHAPE, dtype=bool)
    assert suggested_radius_mm(nothing, point, SPACING, (1.0, 12.0)) == 12.0
    checkered = np.indices(SHAPE).sum(axis=0) % 2 == 0
    assert suggested_radius_mm(checkered, MIDDLE, SPACING, (1.0, 12.0)) == 1.0


@quickly
@given(centres, seeds, st.floats(2, 15))
def test_the_suggested_radius_is_that_of_a_search_over_all_voxels(point, seed, most):
    mask = np.random.default_rng(seed).random(SHAPE) < 0.02
    inside = tuple(min(max(p, 0), n - 1) for p, n in zip(point, SHAPE, strict=True))
    under = tuple(floor(p + 0.5) for p in inside)
    other = distances(inside, SHAPE, SPACING)[mask != mask[under]]
    expected = min(max(other.min(), 0.5), most) if other.size else most
    found = suggested_radius_mm(mask, inside, SPACING, (0.5, most))
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_box_of_a_dab_holds_its_circle():
    box = stamp_box(MIDDLE, Brush(Tool.SMARTPAINT, radius_mm=5.0), SPACING, SHAPE)
    reach = painted_radius_mm(Brush(Tool.SMARTPAINT, radius_mm=5.0))
    for axis, (low, high) in enumerate(zip(box.start, box.stop, strict=True)):
        step = SPACING[axis]
        assert low == ceil(MIDDLE[axis] - reach / step)
        assert high == floor(MIDDLE[axis] + reach / step) + 1
