"""Reorientation over all 48 orientations and oblique grids; nibabel is the peer."""

import itertools

import nibabel as nib
import numpy as np
import pytest
from tests.halves import third_by_day

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.reorientation import reorientation_to

CODES = [
    "".join(pair[side] for pair, side in zip(order, sides, strict=True))
    for order in itertools.permutations(("RL", "AP", "SI"))
    for sides in itertools.product((0, 1), repeat=3)
]
SHAPE = (3, 4, 5)  # (z, y, x)


def grid_of(code, tilt=0.0):
    """Return a grid whose x, y, z axes run towards the letters of `code`, turned by `tilt`."""
    affine = np.eye(4)
    for axis, (letter, mm) in enumerate(zip(code, (0.7, 0.9, 2.0), strict=True)):
        world = "RLAPSI".index(letter) // 2
        affine[:3, axis] = 0
        affine[world, axis] = mm if letter in "RAS" else -mm
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]]
    affine = turn @ affine
    affine[:3, 3] = (11.0, -7.0, 3.0)
    return Grid(SHAPE, affine)


def test_there_are_48_orientations():
    assert len(set(CODES)) == 48


@pytest.mark.parity
@pytest.mark.parametrize("tilt", [0.0, 0.3])
@pytest.mark.parametrize("target", third_by_day(CODES))
def test_array_and_affine_equal_nibabels_reorientation(target, tilt):
    rng = np.random.default_rng(1)
    array = rng.integers(0, 999, SHAPE)
    for source in CODES:
        grid = grid_of(source, tilt)
        turn = reorientation_to(grid, target)
        image = nib.Nifti1Image(array.transpose().astype(np.int32), grid.affine)
        ours = nib.io_orientation(grid.affine)
        wanted = nib.orientations.axcodes2ornt(target)
        peer = image.as_reoriented(nib.orientations.ornt_transform(ours, wanted))
        np.testing.assert_array_equal(turn.array(array), np.asarray(peer.dataobj).transpose())
        np.testing.assert_allclose(turn.target.affine, peer.affine, atol=1e-12)
        assert turn.target.orientation == target


@pytest.mark.parametrize("target", CODES)
def test_points_boxes_and_arrays_keep_their_place_in_the_patient(target):
    rng = np.random.default_rng(2)
    array = rng.integers(0, 999, (2, *SHAPE))
    box = Box((1, 0, 2), (3, 2, 5))
    for source in CODES[::5]:
        turn = reorientation_to(grid_of(source, 0.2), target)
        np.testing.assert_array_equal(turn.array_back(turn.array(array)), array)
        voxel = (2, 1, 4)
        there = turn.point(voxel)
        np.testing.assert_allclose(
            turn.target.to_world_mm(there), turn.source.to_world_mm(voxel), atol=1e-9
        )
        assert turn.array(array)[0][tuple(int(i) for i in there)] == array[0][voxel]
        inside = np.zeros(SHAPE, bool)
        inside[box.slices] = True
        moved = np.zeros(turn.target.shape, bool)
        moved[turn.box(box).slices] = True
        np.testing.assert_array_equal(turn.array(inside), moved)


def test_a_grid_that_lies_right_already_stays_the_same_object_with_its_header():
    grid = Grid(SHAPE, np.eye(4), nifti_header=bytes(348))
    turn = reorientation_to(grid, "RAS")
    assert turn.target is grid


def test_a_turned_grid_does_not_keep_the_header_bytes_of_the_old_one():
    grid = Grid(SHAPE, np.eye(4), nifti_header=bytes(348))
    assert reorientation_to(grid, "LPS").target.nifti_header is None


@pytest.mark.parametrize("wrong", ["RA", "RAR", "RAX", "", "RASI"])
def test_a_word_that_is_no_orientation_is_refused(wrong):
    with pytest.raises(ValueError, match="an orientation to have one of R"):
        reorientation_to(grid_of("RAS"), wrong)
