"""What a hand draws on a slice becomes points in mm: every number here is worked out by hand."""

import numpy as np
import pytest

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.metrics.shapes import length_mm
from napari_mamamia.services.measure.shapes import (
    Sketch,
    Slice,
    find_display_mm,
    find_slice,
    has_extent,
    list_lines,
    make_points,
    move_point,
)

SHAPE = (6, 20, 24)
PLAIN = np.diag([1.0, 2.0, 3.0, 1.0])  # x 1 mm, y 2 mm, z 3 mm
MIRRORED = np.diag([-1.5, 2.0, 3.0, 1.0])
SHEARED = np.array([[1.0, 0.5, 0, 7], [0, 2.0, 0, -3], [0, 0, 3.0, 1], [0, 0, 0, 1]])
# x runs to superior, y to the left, z to anterior
TURNED = np.array([[0, -2.0, 0, 0], [0, 0, 3.0, 0], [1.0, 0, 0, 0], [0, 0, 0, 1]])
AFFINES = {"plain": PLAIN, "mirrored": MIRRORED, "sheared": SHEARED, "turned": TURNED}


def on(affine=PLAIN, axis=0, index=2):
    return Slice(Grid(SHAPE, affine), axis, index)


@pytest.mark.parametrize("name", AFFINES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_place_is_where_the_affine_puts_it_on_the_slice_shown(name, axis):
    affine, voxel = AFFINES[name], [4.5, 3.25, 6.0]
    point = on(affine, axis).find_point(voxel)
    voxel[axis] = 2
    expected = affine @ [voxel[2], voxel[1], voxel[0], 1]
    np.testing.assert_allclose(point, expected[:3])


def test_a_place_outside_the_image_is_its_edge_or_none():
    # x 0..23 and y 0..19 reach to the outer faces of the voxels, half a voxel farther
    assert on().find_point((2, -4, 90)) == (23.5, -1.0, 6.0)
    assert on().find_point((2, -4, 9), is_clipped=False) is None
    assert on().find_point((2, 0, 23.4), is_clipped=False) == pytest.approx((23.4, 0.0, 6.0))


def test_planes_are_named_by_the_patient_not_by_the_array():
    assert [on(axis=axis).plane for axis in range(3)] == ["axial", "coronal", "sagittal"]
    assert [on(TURNED, axis).plane for axis in range(3)] == ["coronal", "sagittal", "axial"]


def test_the_second_diameter_is_at_right_angles_in_mm_where_the_pixels_are_not():
    # The first runs along (3, 4); the hand goes 10 to the right: (10, 0) on (4, -3) / 5 is 8.
    points = make_points(MeasureKind.CROSS, [(1, 2, 6), (4, 6, 6), (2, 14, 6), (12, 14, 6)], on())
    assert points[:3] == ((1, 2, 6), (4, 6, 6), (2, 14, 6))
    assert points[3] == pytest.approx((2 + 8 * 0.8, 14 - 8 * 0.6, 6))
    assert length_mm(*points[2:]) == pytest.approx(8.0)


@pytest.mark.parametrize("name", AFFINES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_second_diameter_stays_in_its_slice_at_right_angles_on_any_grid(name, axis):
    sheet = on(AFFINES[name], axis)
    voxels = np.array([[1, 4, 5], [4, 12, 17], [2, 8, 12], [3, 12, 9]], float)
    points = make_points(MeasureKind.CROSS, [sheet.find_point(v) for v in voxels], sheet)
    first, second = np.diff(points[:2], axis=0)[0], np.diff(points[2:], axis=0)[0]
    assert np.linalg.norm(second) > 1
    assert first @ second == pytest.approx(0, abs=1e-9)
    assert sheet.grid.to_voxel(points)[:, axis] == pytest.approx(2)


def test_a_second_diameter_that_leaves_the_image_ends_at_its_edge():
    points = make_points(
        MeasureKind.CROSS, [(5, 10, 6), (5, 30, 6), (10, 20, 6), (400, 25, 6)], on()
    )
    assert points[3] == pytest.approx((23.5, 20, 6))


def test_an_ellipse_is_drawn_from_corner_to_corner_of_its_box():
    centre, one, two = make_points(MeasureKind.ELLIPSE, [(2, 10, 6), (8, 2, 6)], on())
    assert centre == (5, 6, 6)
    assert sorted([one, two]) == [(5, 2, 6), (8, 6, 6)]
    (line,) = list_lines(MeasureKind.ELLIPSE, (centre, one, two))
    np.testing.assert_allclose(((line[:, 0] - 5) / 3) ** 2 + ((line[:, 1] - 6) / 4) ** 2, 1)


def test_a_sketch_shows_what_there_is_by_now():
    a, b, c, d = (0, 0, 6), (10, 0, 6), (4, 2, 6), (6, 8, 6)
    ruler = Sketch(MeasureKind.RULER, on())
    assert ruler.begins_line
    assert ruler.shape is None
    assert ruler.place(a).shape is None
    assert ruler.place(a).point_at(b).shape == (MeasureKind.RULER, (a, b))
    assert ruler.place(a).place(b).is_complete
    angle = Sketch(MeasureKind.ANGLE, on()).place(a).place(b)
    assert not angle.begins_line
    assert angle.shape == (MeasureKind.RULER, (a, b))
    assert angle.point_at(c).shape == (MeasureKind.ANGLE, (a, b, c))
    cross = Sketch(MeasureKind.CROSS, on()).place(a).place(b)
    assert cross.begins_line
    assert cross.point_at(c).shape == (MeasureKind.RULER, (a, b))
    # along x, so that the second runs along y
    assert cross.place(c).point_at(d).shape == (MeasureKind.CROSS, (a, b, c, (4, 8, 6)))


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        (MeasureKind.RULER, [(1, 1, 6), (1, 1, 6)]),
        (MeasureKind.ARROW, [(1, 1, 6), (1, 1.0005, 6)]),
        (MeasureKind.CROSS, [(0, 0, 6), (4, 0, 6), (2, 1, 6), (2, 1, 6)]),
        (MeasureKind.ELLIPSE, [(4, 4, 6), (4, 4, 6), (4, 9, 6)]),
        (MeasureKind.ANGLE, [(0, 0, 6), (4, 0, 6), (4, 0, 6)]),
    ],
)
def test_what_has_no_length_measures_nothing(kind, points):
    assert not has_extent(kind, points)


def test_an_end_of_the_first_diameter_turns_the_second_about_its_middle():
    # (2, 2)-(10, 2) with (6, 0)-(6, 6): the second is 6 long, its middle (6, 3).
    points = [(2, 2, 6), (10, 2, 6), (6, 0, 6), (6, 6, 6)]
    moved = move_point(MeasureKind.CROSS, points, 1, (2, 12, 6), on())
    assert moved[:2] == ((2, 2, 6), (2, 12, 6))
    assert sorted(p[0] for p in moved[2:]) == pytest.approx([3, 9])
    assert [p[1] for p in moved[2:]] == pytest.approx([3, 3])


def test_an_end_of_the_second_diameter_goes_along_it_alone():
    points = [(2, 2, 6), (10, 2, 6), (6, 0, 6), (6, 6, 6)]
    moved = move_point(MeasureKind.CROSS, points, 3, (9, 14, 6), on())
    assert moved == ((2, 2, 6), (10, 2, 6), (6, 0, 6), pytest.approx((6, 14, 6)))
    moved = move_point(MeasureKind.CROSS, points, 2, (9, -0.5, 6), on())
    assert moved[2] == pytest.approx((6, -0.5, 6))
    assert moved[3] == (6, 6, 6)


def test_an_ellipse_goes_with_its_centre_and_its_half_axis_keeps_its_way():
    points = [(5, 6, 6), (8, 6, 6), (5, 10, 6)]
    assert move_point(MeasureKind.ELLIPSE, points, 0, (6, 8, 6), on()) == (
        (6, 8, 6),
        (9, 8, 6),
        (6, 12, 6),
    )
    assert move_point(MeasureKind.ELLIPSE, points, 1, (12, 19, 6), on())[1] == (12, 6, 6)


def test_a_ruler_lies_in_the_slice_it_was_drawn_on_after_it_was_rounded_for_the_record():
    for name, affine in AFFINES.items():
        for axis in range(3):
            sheet = on(affine, axis, index=3)
            ends = [sheet.find_point(voxel) for voxel in ((0, 1, 2), (5, 15, 17))]
            rounded = tuple(tuple(round(mm, 3) for mm in end) for end in ends)
            drawn = Measurement("A", MeasureKind.RULER, rounded, sheet.plane)
            again = find_slice(drawn, sheet.grid)
            assert (again.axis, again.index) == (axis, 3), (name, axis)


@pytest.mark.parametrize("name", AFFINES)
def test_a_point_is_displayed_where_the_layer_shows_its_voxel(name):
    grid = Grid(SHAPE, AFFINES[name])
    frame, voxel = grid.display_frame(), (2.0, 3.5, 6.25)
    shown = np.array(frame.point_to_display(voxel, SHAPE)) * frame.per_axis(grid.spacing_mm)
    np.testing.assert_allclose(find_display_mm(grid, [grid.to_world_mm(voxel)])[0], shown)
