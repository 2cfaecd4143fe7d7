"""What parts two grids, and grids that are one place in another order of axes."""

from itertools import permutations, product

import numpy as np
import pytest

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.reorientation import reorientation_onto

SHAPE = (3, 4, 5)
ROTATED = np.array([[0.8, -0.6, 0, 7], [0.6, 0.8, 0, -3], [0, 0, 1, 2], [0, 0, 0, 1.0]])
GRID = Grid(SHAPE, ROTATED @ np.diag([1.0, 1.5, 2.0, 1.0]))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_every_order_and_direction_of_axes_is_found_and_voxels_keep_their_place(order):
    array = np.arange(60).reshape(SHAPE)
    for flips in product((False, True), repeat=3):
        slices = tuple(slice(None, None, -1 if flip else 1) for flip in flips)
        stored = array.transpose(order)[slices]
        # where voxel (0, 0, 0) and the steps of the stored array lie
        first = [0, 0, 0]
        for k, axis in enumerate(order):
            first[axis] = stored.shape[k] - 1 if flips[k] else 0
        steps = GRID.matrix_mm[:, order] * np.where(flips, -1, 1)
        affine = np.eye(4)
        affine[:3, :3] = steps[:, ::-1]
        affine[:3, 3] = GRID.to_world_mm(first)
        turn = reorientation_onto(Grid(stored.shape, affine), GRID)
        assert turn is not None
        np.testing.assert_array_equal(turn.array(stored), array)


def test_a_grid_that_lies_elsewhere_has_no_turn():
    moved = GRID.affine.copy()
    moved[0, 3] += 0.5
    assert reorientation_onto(Grid(SHAPE, moved), GRID) is None
    assert reorientation_onto(Grid((3, 4, 6), GRID.affine), GRID) is None


def test_the_differences_say_what_and_by_how_much():
    assert GRID.differences(GRID) == ""
    moved = GRID.affine.copy()
    moved[:3, 3] += [3, 4, 0]
    assert GRID.differences(Grid(SHAPE, moved)) == "origin 5.00 mm apart"
    turned = Grid(SHAPE, np.diag([1.0, 1.5, 2.0, 1.0]))
    text = Grid(SHAPE, ROTATED @ np.diag([1.0, 1.5, 2.0, 1.0])).differences(turned)
    assert "direction RAS and RAS, up to 36.9 degrees" in text
    wide = Grid((3, 4, 6), GRID.affine @ np.diag([1.1, 1, 1, 1]))
    assert GRID.differences(wide).startswith("shape (3, 4, 5) and (3, 4, 6) (z, y, x); spacing ")
    assert "up to 0.1 mm" in GRID.differences(wide)
