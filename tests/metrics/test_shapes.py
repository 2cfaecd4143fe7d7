"""Lengths, angles, ellipses: by hand, on oblique, sheared and anisotropic grids."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from skimage.draw import ellipse as drawn_ellipse

from napari_mamamia.core.grid import Grid
from napari_mamamia.metrics.diameter import measure_size
from napari_mamamia.metrics.shapes import (
    angle_degrees,
    ellipse_area_mm2,
    length_mm,
    values_in_ellipse,
)

OBLIQUE = Grid(
    (14, 16, 18),
    np.array([[-0.6, 0.3, 0.4, 9], [0.3, 0.7, -0.5, -7], [0.1, 0.2, 2.6, 40], [0, 0, 0, 1]]),
)


def test_a_ruler_over_3_columns_and_1_slice_of_an_anisotropic_grid_has_the_length_by_hand():
    grid = Grid.of_spacing((4, 5, 6), (2.0, 0.5, 0.75))
    ends = grid.to_world_mm([(0, 0, 0), (1, 0, 2)])
    assert length_mm(*ends) == pytest.approx(2.5)  # 2 mm up, 1.5 mm across


def test_a_ruler_on_a_sheared_grid_counts_the_shear():
    grid = Grid((2, 2, 2), np.array([[1, 0, 3.0, 0], [0, 1, 0, 0], [0, 0, 4.0, 0], [0, 0, 0, 1]]))
    assert length_mm(*grid.to_world_mm([(0, 0, 0), (1, 0, 0)])) == pytest.approx(5)


@pytest.mark.parametrize("degrees", [0.0, 1e-7, 30.0, 90.0, 135.0, 180.0 - 1e-7, 180.0])
def test_an_angle_is_exact_also_where_it_is_nearly_nothing(degrees):
    turned = math.radians(degrees)
    other = (7 + 4 * math.cos(turned), 4 * math.sin(turned), 1)
    assert angle_degrees((9, 0, 1), (7, 0, 1), other) == pytest.approx(degrees, abs=1e-9)


def test_an_angle_without_an_arm_is_no_angle():
    assert math.isnan(angle_degrees((1, 1, 1), (1, 1, 1), (2, 1, 1)))


def test_half_axes_that_are_not_at_right_angles_are_conjugate_half_diameters():
    # x = a cos t + b sin t with a = (2, 0), b = (1, 3): the affine image of the unit disk, area
    # pi |det| = pi 6
    assert ellipse_area_mm2((0, 0, 5), (2, 0, 5), (1, 3, 5)) == pytest.approx(6 * math.pi)


def test_an_ellipse_holds_the_voxels_that_another_library_draws():
    grid = Grid.of_spacing((3, 40, 50), (5.0, 1.0, 1.0))
    volume = np.random.default_rng(3).integers(0, 900, grid.shape).astype(np.int16)
    # half axes that end between voxel centres: skimage leaves out those on the edge itself
    rows, columns = drawn_ellipse(20, 25, 6.3, 11.4)
    values = volume[1, rows, columns]
    centre, one, two = grid.to_world_mm([(1, 20, 25), (1, 20, 36.4), (1, 26.3, 25)])
    inside = values_in_ellipse(volume, grid, "axial", centre, one, two)
    assert inside.n_voxels == len(values)
    assert inside.mean == pytest.approx(values.mean())
    assert inside.sd == pytest.approx(values.std(ddof=1))


@pytest.mark.parametrize("plane", ["axial", "sagittal", "coronal"])
def test_an_ellipse_on_an_oblique_grid_holds_what_a_slow_look_at_every_voxel_tells(plane):
    volume = np.random.default_rng(5).normal(size=OBLIQUE.shape).astype(np.float32)
    volume[7, 8, 9] = np.nan
    s, r, c = OBLIQUE.display_frame(plane).order
    centre, a, b = np.array([7.0, 8.0, 9.0]), np.zeros(3), np.zeros(3)
    a[r], b[c] = 3.2, 4.6
    points = OBLIQUE.to_world_mm([centre, centre + a, centre + b])
    slow = [
        volume[voxel]
        for voxel in np.ndindex(*OBLIQUE.shape)
        if voxel[s] == centre[s]
        and ((voxel[r] - centre[r]) / 3.2) ** 2 + ((voxel[c] - centre[c]) / 4.6) ** 2 <= 1
        and np.isfinite(volume[voxel])
    ]
    inside = values_in_ellipse(volume, OBLIQUE, plane, *points)
    assert inside.n_voxels == len(slow) > 20
    assert inside.mean == pytest.approx(np.mean(slow, dtype=np.float64))


@pytest.mark.parametrize(
    "points",
    [
        [(1, 1, 1), (1, 1, 1), (1, 1, 1)],  # a click without a drag
        [(900, 1, 1), (900, 1, 3), (900, 3, 1)],  # outside the volume
        [(1, -50, -50), (1, -50, -48), (1, -48, -50)],
    ],
)
def test_an_ellipse_without_a_voxel_has_no_mean(points):
    grid = Grid.of_spacing((3, 4, 5), (1.0, 1.0, 1.0))
    inside = values_in_ellipse(np.ones(grid.shape), grid, "axial", *grid.to_world_mm(points))
    assert inside.n_voxels == 0
    assert math.isnan(inside.mean)
    assert math.isnan(inside.sd)


def test_an_ellipse_of_one_voxel_has_a_mean_and_no_deviation():
    grid = Grid.of_spacing((3, 4, 5), (1.0, 1.0, 1.0))
    points = grid.to_world_mm([(1, 1, 1), (1, 1, 1.5), (1, 1.5, 1)])
    inside = values_in_ellipse(np.full(grid.shape, 7), grid, "axial", *points)
    assert (inside.n_voxels, inside.mean) == (1, 7.0)
    assert math.isnan(inside.sd)


def test_a_block_of_known_size_has_its_diameters_by_hand():
    lesion = np.zeros((9, 30, 30), bool)
    lesion[2:6, 4:8, 10:14] = True  # 3 steps each way
    lesion[4, 5, 3:25] = True  # the longest: 21 steps along x
    size = measure_size(lesion, Grid.of_spacing(lesion.shape, (2.0, 1.5, 0.5)))
    assert size.in_plane_mm == pytest.approx(10.5)
    assert size.perpendicular_mm == pytest.approx(4.5)  # rows 4 to 7 of that slice
    assert size.head_foot_mm == pytest.approx(6.0)
    assert size.ends == ((4, 5, 3), (4, 5, 24))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_ends_of_the_diameter_are_in_the_slice_of_any_array_axis(axis):
    spacing = [0.5, 0.5, 0.5]
    spacing[axis] = 3.0  # the slices are across the axis of clearly largest spacing
    across, down = (other for other in range(3) if other != axis)
    lesion = np.zeros((20, 21, 22), bool)
    region = [slice(5, 8)] * 3
    lesion[tuple(region)] = True
    region[axis], region[across], region[down] = 6, 5, slice(4, 15)
    lesion[tuple(region)] = True  # the longest row: voxels 4 to 14 in slice 6
    size = measure_size(lesion, Grid.of_spacing(lesion.shape, tuple(spacing)))
    first, last = [6, 6, 6], [6, 6, 6]
    first[across] = last[across] = 5
    first[down], last[down] = 4, 14
    assert size.in_plane_mm == pytest.approx(5.0)  # 10 steps of 0.5
    assert size.ends == (tuple(first), tuple(last))


def test_head_foot_of_a_sagittal_exam_is_along_its_rows():
    # slices to the left, rows from head to foot: (x, y, z) of the file runs A, S, L
    affine = np.array([[0, 0, -3.0, 0], [0.7, 0, 0, 0], [0, 0.9, 0, 0], [0, 0, 0, 1]])
    lesion = np.zeros((6, 20, 20), bool)
    lesion[2:4, 3:14, 5:9] = True
    size = measure_size(lesion, Grid(lesion.shape, affine))
    assert size.head_foot_mm == pytest.approx(9.0)  # 10 steps of 0.9
    assert size.in_plane_mm == pytest.approx(math.hypot(9.0, 2.1))


def test_an_empty_lesion_has_no_diameter_and_one_voxel_has_none_to_speak_of():
    empty = np.zeros((3, 4, 5), bool)
    assert math.isnan(measure_size(empty, Grid.of_spacing(empty.shape, (1, 1, 1))).in_plane_mm)
    empty[1, 2, 3] = True
    size = measure_size(empty, Grid.of_spacing(empty.shape, (1, 1, 1)))
    assert (size.longest_mm, size.in_plane_mm, size.perpendicular_mm, size.head_foot_mm) == (0,) * 4


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.8))
def test_diameters_on_an_oblique_grid_are_those_of_all_pairs(seed, density):
    rng = np.random.default_rng(seed)
    lesion = np.zeros(OBLIQUE.shape, bool)
    lesion[3:9, 2:9, 4:12] = rng.random((6, 7, 8)) < density
    if not lesion.any():
        return
    size = measure_size(lesion, OBLIQUE)
    axis = OBLIQUE.display_frame().order[0]
    places = OBLIQUE.to_world_mm(np.argwhere(lesion))
    flat = {}
    for k in range(lesion.shape[axis]):
        voxels = np.argwhere(lesion)
        voxels = voxels[voxels[:, axis] == k]
        if len(voxels):
            flat[k] = OBLIQUE.to_world_mm(voxels)
    longest = {k: pdist(p).max() if len(p) > 1 else 0.0 for k, p in flat.items()}
    assert size.in_plane_mm == pytest.approx(max(longest.values()))
    assert size.head_foot_mm == pytest.approx(np.ptp(places[:, 2]))
    ends = OBLIQUE.to_world_mm(size.ends)
    assert length_mm(*ends) == pytest.approx(size.in_plane_mm)
    if size.in_plane_mm > 0:
        along = (ends[1] - ends[0]) / size.in_plane_mm
        points = flat[size.ends[0][axis]]
        steps = OBLIQUE.matrix_mm
        normal = np.cross(*[steps[:, k] for k in range(3) if k != axis])
        normal = normal / np.linalg.norm(normal)
        across = points - points.mean(axis=0)
        across = across - np.outer(across @ along, along)
        across = across - np.outer(across @ normal, normal)
        widest = max(np.linalg.norm(one - other) for one in across for other in across)
        assert size.perpendicular_mm == pytest.approx(widest, abs=1e-9)
