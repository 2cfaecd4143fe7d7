"""Smooth fields and distances against slow, independent computations."""

import numpy as np
import pytest
from scipy import ndimage

from napari_mamamia.core.grid import Grid
from napari_mamamia.phantom.body.geometry import (
    Points,
    distance_to_mask,
    ellipsoid,
    filled,
    make_field,
)

BOUNDS = ((-20.0, 20.0), (-10.0, 30.0), (0.0, 25.0))


def test_a_field_is_the_cubic_b_spline_of_its_lattice():
    field = make_field(np.random.default_rng(1), 5.0, BOUNDS)
    points = Points.lattice(BOUNDS, 3.7)
    x, y, z = np.meshgrid(*points.along, indexing="ij")
    places = np.stack([x, y, z]).reshape(3, -1)
    index = (places - np.array(field.origin_mm)[:, None]) / field.step_mm
    slow = ndimage.map_coordinates(field.values, index, order=3, prefilter=False)
    slow = slow.reshape(x.shape).transpose(2, 1, 0)
    assert field.at(points) == pytest.approx(slow, abs=1e-4)


def test_a_field_has_mean_zero_and_variance_one():
    field = make_field(np.random.default_rng(2), 1.0, BOUNDS)
    values = field.at(Points.lattice(BOUNDS, 0.9))
    assert abs(values.mean()) < 0.05
    assert values.std() == pytest.approx(1, abs=0.05)


def test_a_field_is_the_same_whatever_block_is_asked_for():
    field = make_field(np.random.default_rng(3), 6.0, BOUNDS)
    points = Points.lattice(BOUNDS, 2.0)
    window = (slice(3, 7), slice(5, 15), slice(2, 9))
    part = field.at(points.block(window))
    assert part == pytest.approx(field.at(points)[window], abs=1e-5)


@pytest.mark.parametrize("codes", ["RAS", "LAS", "PSR", "IPL"])
def test_points_are_the_grids_own_world_positions(codes):
    axis_of = {"R": 0, "L": 0, "A": 1, "P": 1, "S": 2, "I": 2}
    affine = np.eye(4)
    affine[:3, :3] = 0
    for column, letter in enumerate(codes):
        affine[axis_of[letter], column] = (2.0 + column) * (1 if letter in "RAS" else -1)
    affine[:3, 3] = (5, -7, 11)
    grid = Grid((3, 4, 5), affine)
    points = Points.of(grid)
    world = grid.to_world_mm(np.argwhere(np.ones(grid.shape))).reshape(3, 4, 5, 3)
    for axis, found in enumerate((points.x_mm, points.y_mm, points.z_mm)):
        assert np.broadcast_to(found, grid.shape) == pytest.approx(world[..., axis], abs=1e-4)


def test_distance_to_a_ball_is_exact_everywhere():
    points = Points.lattice(BOUNDS, 2.0)
    found = ellipsoid(points, (1.0, 2.0, 3.0), (8.0, 8.0, 8.0))
    away = (points.x_mm - 1) ** 2 + (points.y_mm - 2) ** 2 + (points.z_mm - 3) ** 2
    assert found == pytest.approx(np.sqrt(away) - 8, abs=1e-3)


def test_shares_of_voxels_add_up_to_the_volume_of_a_ball():
    bounds = ((-12.0, 12.0), (-12.0, 12.0), (-12.0, 12.0))
    points = Points.lattice(bounds, 1.0)
    share = filled(ellipsoid(points, (0.0, 0.0, 0.0), (9.0, 9.0, 9.0)), 1.0)
    assert share.sum() == pytest.approx(4 / 3 * np.pi * 9**3, rel=0.01)


def test_distance_to_a_mask_is_negative_inside():
    mask = np.zeros((3, 5, 7), bool)
    mask[1, 2, 3:5] = True
    found = distance_to_mask(mask, (2.0, 1.0, 0.5))
    assert found[1, 2, 2] == 0.5
    assert found[0, 2, 3] == 2.0
    assert found[1, 2, 3] == -0.5
