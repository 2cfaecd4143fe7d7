"""Where voxels lie: orientation, display frame, comparison."""

from itertools import permutations, product

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid

SPACING = (0.7, 0.8, 2.0)


def _affines():
    for worlds in permutations(range(3)):
        for signs in product((1, -1), repeat=3):
            affine = np.eye(4)
            affine[:3, :3] = 0
            for axis, (world, sign) in enumerate(zip(worlds, signs, strict=True)):
                affine[world, axis] = sign * SPACING[axis]
            affine[:3, 3] = (-31.0, 12.5, 7.0)
            yield affine


ALL_48_AFFINES = list(_affines())


def rotated(degrees, axis=(1.0, 2.0, 3.0), spacing=SPACING):
    turn = Rotation.from_rotvec(np.array(axis) / np.linalg.norm(axis) * np.deg2rad(degrees))
    affine = np.eye(4)
    affine[:3, :3] = turn.as_matrix() * spacing
    return affine


@pytest.mark.parametrize("affine", ALL_48_AFFINES)
def test_orientation_agrees_with_nibabel_for_all_48(affine):
    grid = Grid((3, 4, 5), affine)
    assert grid.orientation == "".join(nib.aff2axcodes(affine))


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_orientation_agrees_with_nibabel_for_any_rotation(seed):
    rng = np.random.default_rng(seed)
    affine = np.eye(4)
    affine[:3, :3] = Rotation.random(random_state=seed).as_matrix() * rng.uniform(0.5, 3, 3)
    assert Grid((2, 2, 2), affine).orientation == "".join(nib.aff2axcodes(affine))


def test_spacing_follows_the_array_axes():
    assert Grid((2, 3, 4), np.diag([-0.7, 0.8, 2.0, 1])).spacing_mm == pytest.approx(
        (2.0, 0.8, 0.7)
    )


def test_voxel_volume_of_a_sheared_grid_is_the_determinant():
    affine = np.eye(4)
    affine[0, 1] = 0.5  # y runs half a millimetre to the right per step: the volume stays 1 mm3
    grid = Grid((2, 2, 2), affine)
    assert grid.is_sheared
    assert grid.voxel_volume_mm3 == pytest.approx(1.0)
    assert grid.spacing_mm == pytest.approx((1.0, np.sqrt(1.25), 1.0))


def test_oblique_is_not_sheared():
    grid = Grid((4, 4, 4), rotated(10))
    assert grid.is_oblique
    assert not grid.is_sheared


def test_a_straight_grid_is_neither_oblique_nor_sheared():
    grid = Grid((4, 4, 4), np.diag([-0.7, 0.7, 2, 1]))
    assert not grid.is_oblique
    assert not grid.is_sheared


# One marked voxel at the patient's far right, anterior, superior corner must be shown at the place
# that a radiologist expects: screen rows run down, columns run right.
@pytest.mark.parametrize("affine", ALL_48_AFFINES)
def test_the_right_anterior_superior_corner_is_shown_where_radiologists_expect_it(affine):
    grid = Grid((3, 4, 5), affine)
    corners = np.array(list(product((0, 2), (0, 3), (0, 4))))
    farthest = corners[np.argmax(grid.to_world_mm(corners).sum(axis=1))]
    volume = np.zeros(grid.shape, dtype=np.uint8)
    volume[tuple(farthest)] = 1
    expected = {
        "axial": lambda n: (n[0] - 1, 0, 0),  # last slice, top row (anterior), left column (right)
        "sagittal": lambda n: (0, 0, 0),  # first slice (right), top row (superior), left (anterior)
        "coronal": lambda n: (0, 0, 0),  # first slice (anterior), top row, left column (right)
    }
    for plane, place in expected.items():
        frame = grid.display_frame(plane)
        shown = frame.to_display(volume)
        assert tuple(np.argwhere(shown)[0]) == place(shown.shape)


@pytest.mark.parametrize("affine", ALL_48_AFFINES)
def test_display_is_a_view_and_comes_back(affine):
    grid = Grid((3, 4, 5), affine)
    signal = np.arange(2 * 60).reshape(2, 3, 4, 5)
    frame = grid.display_frame()
    shown = frame.to_display(signal)
    assert np.shares_memory(shown, signal)
    np.testing.assert_array_equal(frame.from_display(shown), signal)
    index = (2, 1, 3)
    place = frame.point_to_display(index, grid.shape)
    assert shown[(1, *map(int, place))] == signal[(1, *index)]
    assert frame.point_from_display(place, grid.shape) == index


def test_acquisition_plane_of_mama_mia_files():
    las = np.diag([-0.7, 0.7, 2.0, 1.0])
    assert Grid((80, 512, 512), las).acquisition_plane == "axial"
    psr = np.array([[0, 0, 2.0, 0], [-0.7, 0, 0, 0], [0, 0.7, 0, 0], [0, 0, 0, 1]])
    grid = Grid((60, 256, 256), psr)
    assert grid.orientation == "PSR"
    assert grid.acquisition_plane == "sagittal"


def test_acquisition_plane_is_across_the_thick_axis_whatever_the_order():
    affine = np.diag([2.5, 0.7, 0.7, 1.0])  # x to the right is the thick axis: sagittal slices
    assert Grid((256, 256, 60), affine).acquisition_plane == "sagittal"


def test_isotropic_grids_are_shown_across_the_third_file_axis():
    assert Grid((9, 9, 9), np.eye(4)).acquisition_plane == "axial"


def test_world_and_voxel_are_inverse():
    grid = Grid((5, 6, 7), rotated(25))
    points = np.array([[0, 0, 0], [4, 5, 6], [1.5, 2.5, 3.5]])
    np.testing.assert_allclose(grid.to_voxel(grid.to_world_mm(points)), points, atol=1e-12)
    xyz1 = np.array([3.5, 2.5, 1.5, 1.0])
    np.testing.assert_allclose(grid.to_world_mm(points[2]), (grid.affine @ xyz1)[:3])


def test_grids_that_differ_by_rounding_are_the_same_place():
    a = Grid((80, 512, 512), rotated(3, spacing=(0.7, 0.7, 2)))
    b = Grid(a.shape, a.affine.astype(np.float32))
    require_same_grid(a, b)


def test_a_tenth_of_a_voxel_apart_is_another_place():
    moved = np.eye(4)
    moved[0, 3] = 0.1
    with pytest.raises(GridMismatchError, match=r"0\.10 mm apart"):
        require_same_grid(Grid((2, 2, 2), np.eye(4)), Grid((2, 2, 2), moved), "mask", "case")


def test_another_shape_is_named():
    with pytest.raises(GridMismatchError, match=r"mask has shape \(2, 2, 2\)"):
        require_same_grid(Grid((2, 2, 2), np.eye(4)), Grid((2, 2, 3), np.eye(4)), "mask", "case")


@pytest.mark.parametrize(
    "affine", [np.zeros((4, 4)), np.full((4, 4), np.nan), np.eye(3), np.diag([1.0, 1, 0, 1])]
)
def test_affines_that_do_not_span_space_are_refused(affine):
    with pytest.raises(ValueError, match="affine"):
        Grid((2, 2, 2), affine)


def test_the_header_bytes_do_not_take_part_in_equality():
    assert Grid((2, 2, 2), np.eye(4), b"one") == Grid((2, 2, 2), np.eye(4), b"two")
    assert len({Grid((2, 2, 2), np.eye(4)), Grid((2, 2, 2), np.eye(4))}) == 1


def test_an_affine_cannot_be_edited():
    with pytest.raises(ValueError, match="read-only"):
        Grid((2, 2, 2), np.eye(4)).affine[0, 0] = 2


def test_equal_grids_have_one_hash_also_with_a_negative_zero():
    one = np.diag([2.0, 2.0, 2.0, 1.0])
    other = one.copy()
    other[0, 1] = -0.0
    assert Grid((2, 2, 2), one) == Grid((2, 2, 2), other)
    assert hash(Grid((2, 2, 2), one)) == hash(Grid((2, 2, 2), other))
