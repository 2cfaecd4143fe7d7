"""Volumes moved from sheared axes onto a grid at right angles lie where they lay."""

import numpy as np
import pytest

from napari_mamamia.annotations.straighten import (
    straight_grid,
    straightened_labels,
    straightened_phase,
)
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid

SHAPE = (14, 24, 20)
STRAIGHT = np.eye(3)
TURN = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])


def sheared(lean=0.3, turn=STRAIGHT, signs=(-1, 1, 1)):
    """Return a grid whose slices slide along y by `lean` mm for each mm."""
    affine = np.eye(4)
    affine[:3, :3] = turn @ (np.diag(signs) * (0.8, 1.1, 2.5))
    affine[:3, 2] += lean * 2.5 * affine[:3, 1] / 1.1
    affine[:3, 3] = (31.0, -8.0, 12.5)
    return Grid(SHAPE, affine)


def world_of(grid):
    """Return x, y, z in mm of every voxel, (z, y, x, 3), by the affine alone."""
    z, y, x = np.meshgrid(*map(np.arange, grid.shape), indexing="ij")
    voxels = np.stack([x, y, z, np.ones_like(x)], -1)
    return (voxels @ grid.affine.T)[..., :3]


@pytest.mark.parametrize("turn", [STRAIGHT, TURN])
@pytest.mark.parametrize("signs", [(-1, 1, 1), (1, 1, 1), (-1, -1, 1)])
def test_the_new_grid_is_at_right_angles_covers_the_old_one_and_keeps_its_spacing(turn, signs):
    grid = sheared(turn=turn, signs=signs)
    target = straight_grid(grid)
    assert not target.is_sheared
    assert target.spacing_mm == pytest.approx(grid.spacing_mm, abs=1e-5)
    assert np.sign(np.linalg.det(target.affine)) == np.sign(np.linalg.det(grid.affine))
    assert target.orientation == grid.orientation
    corners = np.array(np.meshgrid(*[(0, n - 1) for n in SHAPE], indexing="ij")).reshape(3, -1).T
    inside = np.array([target.to_voxel(grid.to_world_mm(corner)) for corner in corners])
    assert inside.min() > -0.5
    assert (inside < np.array(target.shape) - 0.5).all()


def test_a_grid_at_right_angles_stays():
    grid = sheared(lean=0)
    assert straight_grid(grid) is grid


def test_axes_that_lean_beyond_sense_are_refused():
    with pytest.raises(CaseError, match="expected only slightly sheared axes"):
        straight_grid(sheared(lean=40))


def test_an_image_that_rises_along_a_line_in_space_is_the_same_image_afterwards():
    """Trilinear reading is exact there, so each new voxel holds the value of its own place."""
    grid = sheared(turn=TURN)
    slope = np.array([3.0, -2.0, 1.5])
    volume = (world_of(grid) @ slope + 400).astype(np.float32)
    target = straight_grid(grid)
    moved = straightened_phase(volume, grid, target, "moving")
    expected = world_of(target) @ slope + 400
    back = np.linalg.inv(grid.affine) @ np.concatenate(
        [world_of(target).reshape(-1, 3).T, np.ones((1, moved.size))]
    )
    x, y, z = back[:3].reshape(3, *target.shape)
    deep = np.all([(v > 0.01) & (v < n - 1.01) for v, n in zip((z, y, x), SHAPE, strict=True)], 0)
    off = np.any([(v < -0.01) | (v > n - 0.99) for v, n in zip((z, y, x), SHAPE, strict=True)], 0)
    assert deep.sum() > 0.6 * volume.size
    np.testing.assert_allclose(moved[deep], expected[deep], atol=2e-2)
    assert (moved[off] == volume.min()).all()


def test_a_ball_in_space_stays_a_ball_at_its_place():
    grid = sheared()
    middle = np.array(grid.to_world_mm((7, 12, 10)))
    labels = np.zeros(SHAPE, np.uint8)
    labels[np.linalg.norm(world_of(grid) - middle, axis=-1) < 5.5] = 3
    target = straight_grid(grid)
    moved = straightened_labels(labels, grid, target)
    ball = np.linalg.norm(world_of(target) - middle, axis=-1) < 5.5
    assert set(np.unique(moved)) == {0, 3}
    dice = 2 * ((moved == 3) & ball).sum() / ((moved == 3).sum() + ball.sum())
    assert dice > 0.85
    assert np.linalg.norm(world_of(target)[moved == 3].mean(0) - middle) < 0.5


def test_whole_numbers_stay_whole_and_are_rounded():
    grid = sheared()
    volume = np.random.default_rng(0).integers(-50, 900, SHAPE).astype(np.int16)
    moved = straightened_phase(volume, grid, straight_grid(grid), "moving")
    assert moved.dtype == np.int16
    assert (moved.min(), moved.max() <= volume.max()) == (volume.min(), True)
