"""Surface distances worked out by hand."""

import math

import numpy as np
import pytest

from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.metrics.surface import (
    ContourRule,
    SurfaceDistances,
    assd,
    contour,
    hausdorff,
    hausdorff95,
    nsd,
    surface_distances,
)


def voxels(*places, shape=(9, 9, 9)):
    mask = np.zeros(shape, dtype=bool)
    for place in places:
        mask[place] = True
    return mask


def box(start, stop, shape=(9, 9, 9)):
    mask = np.zeros(shape, dtype=bool)
    mask[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))] = True
    return mask


def test_the_contour_of_a_cube_of_three_is_all_but_its_middle():
    cube = box((2, 2, 2), (5, 5, 5))
    expected = cube & ~voxels((3, 3, 3))
    assert np.array_equal(contour(cube, ContourRule.CLOSED), expected)
    assert np.array_equal(contour(cube, ContourRule.OPEN), expected)


def test_a_voxel_missing_across_an_edge_makes_no_contour():
    # only face neighbours count: of the voxels around the middle none is missing
    full = box((2, 2, 2), (5, 5, 5)) & ~voxels((2, 2, 3))
    assert not contour(full, ContourRule.CLOSED)[3, 3, 3]


def test_the_image_border_is_contour_only_when_closed():
    full = np.ones((3, 3, 3), dtype=bool)
    assert not contour(full, ContourRule.OPEN).any()
    assert np.array_equal(
        contour(full, ContourRule.CLOSED), full & ~voxels((1, 1, 1), shape=(3,) * 3)
    )


def test_a_box_on_the_border_is_open_there_under_the_open_rule():
    # 4 x 1 x 1 voxels from the border: each has background beside it in y, so all are contour
    rod = box((0, 4, 4), (4, 5, 5))
    assert np.array_equal(contour(rod, ContourRule.OPEN), rod)
    # a slab over the whole plane: only its inner layer has a differing neighbour in the image
    slab = box((0, 0, 0), (3, 9, 9))
    assert np.array_equal(contour(slab, ContourRule.OPEN), box((2, 0, 0), (3, 9, 9)))


def test_the_border_between_two_labels_is_contour_on_both_sides():
    labels = np.ones((1, 1, 6), dtype=np.uint8)
    labels[..., 3:] = 2
    assert contour(labels, ContourRule.OPEN)[0, 0].tolist() == [0, 0, 1, 1, 0, 0]


def test_two_voxels_two_mm_apart_have_all_distances_two_mm():
    d = surface_distances(voxels((3, 4, 4)), voxels((4, 4, 4)), np.diag([2.0, 0.7, 0.7]))
    assert hausdorff(d) == hausdorff95(d) == assd(d) == 2
    assert nsd(d, 1.0) == 0
    assert nsd(d, 2.0) == 1


def test_two_voxels_apart_by_two_three_four_steps_match_the_worked_fixture():
    # fixture D of the facts, spacing 2.5 x 0.8 x 0.8: sqrt(4 + 9 + 16) voxels, sqrt(25 + 16) mm
    a, b = voxels((1, 1, 1)), voxels((3, 4, 5))
    in_voxels = surface_distances(a, b, rule=ContourRule.OPEN)
    in_mm = surface_distances(a, b, np.diag([2.5, 0.8, 0.8]))
    assert round(hausdorff95(in_voxels), 4) == round(hausdorff(in_voxels), 4) == 5.3852
    assert round(hausdorff95(in_mm), 4) == round(hausdorff(in_mm), 4) == 6.4031


def test_distances_stand_in_array_order_of_the_contour_voxels():
    d = surface_distances(voxels((0, 0, 0), (0, 0, 2), (0, 0, 5)), voxels((0, 0, 2)))
    assert d.reference_to_prediction.tolist() == [2, 0, 3]
    assert d.prediction_to_reference.tolist() == [0]


def test_a_cube_shifted_by_two_slices_is_two_slices_away():
    a, b = box((1, 2, 2), (5, 6, 6)), box((3, 2, 2), (7, 6, 6))
    d = surface_distances(a, b, np.diag([3.0, 1.0, 1.0]))
    # the trailing face of each lies 2 slices of 3 mm beyond the other's own face
    assert hausdorff(d) == 6
    assert hausdorff(surface_distances(a, b)) == 2


def test_the_95th_percentile_is_interpolated_and_the_larger_direction_counts():
    # 21 distances 0..20: rank 0.95 * 20 = 19; the other direction holds only zeros
    d = SurfaceDistances(np.arange(21.0), np.zeros(5))
    assert hausdorff95(d) == 19
    # 5 distances: rank 3.8, between 3 and 13
    d = SurfaceDistances(np.zeros(1), np.array([0.0, 1, 2, 3, 13]))
    assert hausdorff95(d) == pytest.approx(3 + 0.8 * 10, abs=1e-12)
    assert hausdorff(d) == 13


def test_assd_pools_the_contour_voxels_of_both_masks():
    # three voxels with 0, 1, 5 and one with 0: 6 / 4, not the mean of the two means
    assert assd(SurfaceDistances(np.array([0.0, 1, 5]), np.array([0.0]))) == 1.5


def test_nsd_counts_voxels_at_exactly_the_tolerance():
    d = SurfaceDistances(np.array([0.0, 1, 1.5]), np.array([2.0]))
    assert nsd(d, 1.0) == 0.5
    assert nsd(d, 2.0) == 1


@pytest.mark.parametrize("degrees", range(5, 50, 5))
def test_nsd_does_not_hang_on_the_rounding_of_an_oblique_affine(degrees):
    # 1 mm cubes on a turned grid, kept as float32 as NIfTI does: a shift by one voxel is 1 mm
    # whatever the last digit says
    angle = math.radians(degrees)
    c, s = float(np.float32(math.cos(angle))), float(np.float32(math.sin(angle)))
    matrix = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    cube = box((2, 2, 2), (5, 5, 5))
    for axis in range(3):
        assert nsd(surface_distances(cube, np.roll(cube, 1, axis), matrix), 1.0) == 1


def test_a_sheared_grid_is_measured_along_its_true_axes():
    # z steps lean by 1.5 mm along x while they rise 2 mm: one step is 2.5 mm long
    affine = np.array([[1, 0, 1.5, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]], dtype=float)
    matrix = Grid((9, 9, 9), affine).matrix_mm
    step = surface_distances(voxels((3, 4, 4)), voxels((4, 4, 4)), matrix)
    assert hausdorff(step) == 2.5
    # one step up and two back in x: 1.5 - 2 = -0.5 and 2 mm
    back = surface_distances(voxels((3, 4, 4)), voxels((4, 4, 2)), matrix)
    assert hausdorff(back) == pytest.approx(math.hypot(0.5, 2), abs=1e-12)


def test_an_oblique_grid_gives_the_distances_of_the_straight_one():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    a, b = box((1, 2, 2), (5, 6, 6)), box((2, 3, 1), (7, 6, 6))
    straight = surface_distances(a, b, np.diag([3.0, 0.7, 0.9]))
    turned = surface_distances(a, b, turn @ np.diag([3.0, 0.7, 0.9]))
    assert np.allclose(straight.reference_to_prediction, turned.reference_to_prediction, 1e-12)
    assert np.allclose(straight.prediction_to_reference, turned.prediction_to_reference, 1e-12)


def test_a_box_on_the_border_differs_between_the_two_rules():
    # The reference fills y and x and 6 slices from the border; the prediction 3 of them. Closed,
    # both have the border layer and their inner layers lie 3 apart. Open, only the inner layers
    # count, so every distance is 3.
    a, b = box((0, 0, 0), (6, 9, 9)), box((0, 0, 0), (3, 9, 9))
    opened = surface_distances(a, b, rule=ContourRule.OPEN)
    assert set(opened.reference_to_prediction) == set(opened.prediction_to_reference) == {3.0}
    closed = surface_distances(a, b, rule=ContourRule.CLOSED)
    assert hausdorff(closed) == 3
    assert closed.prediction_to_reference.min() == 0


EMPTY = np.zeros((9, 9, 9), dtype=bool)


@pytest.mark.parametrize(
    ("a", "b"), [(EMPTY, EMPTY), (voxels((1, 1, 1)), EMPTY), (EMPTY, voxels((1, 1, 1)))]
)
def test_every_surface_metric_is_nan_when_a_mask_is_empty(a, b):
    d = surface_distances(a, b, np.eye(3))
    assert not d.is_defined
    assert all(math.isnan(v) for v in (hausdorff(d), hausdorff95(d), assd(d), nsd(d, 1.0)))


def test_the_distances_to_an_empty_mask_are_infinite_one_for_each_contour_voxel():
    d = surface_distances(voxels((1, 1, 1), (3, 3, 3)), EMPTY)
    assert d.reference_to_prediction.tolist() == [math.inf, math.inf]
    assert d.prediction_to_reference.size == 0


def test_a_mask_that_fills_the_image_has_no_contour_under_the_open_rule():
    d = surface_distances(~EMPTY, voxels((4, 4, 4)), rule=ContourRule.OPEN)
    assert d.reference_to_prediction.size == 0
    assert math.isnan(hausdorff95(d))
    assert hausdorff(surface_distances(~EMPTY, voxels((4, 4, 4)))) == math.sqrt(48)


def test_bad_arguments_are_refused_with_what_came():
    one = voxels((1, 1, 1))
    with pytest.raises(GridMismatchError, match=r"\(9, 9, 9\).*\(2, 2, 2\)"):
        surface_distances(one, np.zeros((2, 2, 2), dtype=bool))
    with pytest.raises(ValueError, match="3x3"):
        surface_distances(one, one, np.eye(4))
    with pytest.raises(ValueError, match="tolerance"):
        nsd(surface_distances(one, one), -1.0)
