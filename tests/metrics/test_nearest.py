"""The fast search against every pair of voxels."""

import numpy as np
import pytest
from tests.halves import third_by_day

from napari_mamamia.metrics import nearest
from napari_mamamia.metrics.nearest import (
    Units,
    nearest_distances,
    nearest_in_units,
    squared_by_rows,
)

GRIDS = {
    "voxels": None,
    "thick slices": np.diag([3.0, 0.7, 0.7]),
    "sagittal, mirrored": np.array([[2.0, 0, 0], [0, 0, -0.8], [0, -0.9, 0]]),
    "long voxels along x": np.diag([0.5, 0.6, 40.0]),
    "thin voxels along x": np.diag([40.0, 30.0, 0.01]),
    "sheared": np.array([[0.0, 0.4, 0.7], [0.0, 0.7, 0.0], [2.0, 0.0, 0.0]]),
}


def every_pair(points, others, matrix):
    m = np.eye(3) if matrix is None else matrix
    apart = (points[:, None] - others[None]) @ m.T
    return np.sqrt((apart**2).sum(axis=2)).min(axis=1)


def random_voxels(rng, n, extent):
    return np.stack([rng.integers(0, e, n) for e in extent], axis=1)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("extent", [(20, 20, 20), (1, 40, 40), (40, 1, 3), (3, 2, 60), (60, 50, 5)])
@pytest.mark.parametrize("n_others", [1, 5, 400])
def test_every_distance_is_that_of_the_nearest_of_all_others(grid, extent, n_others):
    rng = np.random.default_rng(n_others)
    points, others = random_voxels(rng, 300, extent), random_voxels(rng, n_others, extent)
    ours = nearest_distances(points, others, GRIDS[grid])
    assert np.allclose(ours, every_pair(points, others, GRIDS[grid]), rtol=1e-12, atol=1e-12)


def test_in_voxels_the_rows_and_the_tree_give_the_same_bits(monkeypatch):
    rng = np.random.default_rng(5)
    points, others = random_voxels(rng, 500, (60, 10, 40)), random_voxels(rng, 60, (5, 10, 40))
    by_rows = squared_by_rows(points, others, Units.of([None]))[0]
    assert 0 < np.isfinite(by_rows).sum() < 500  # both ways are taken
    mixed = nearest_distances(points, others)
    monkeypatch.setattr(nearest, "_FEWEST", 10**6)
    assert np.array_equal(mixed, nearest_distances(points, others))
    assert np.array_equal(mixed, every_pair(points, others, None))


@pytest.mark.parametrize("grid", ["voxels", "thick slices", "sagittal, mirrored"])
def test_voxels_beyond_reach_of_the_rows_are_found_by_the_tree(grid):
    rng = np.random.default_rng(6)
    near, far = random_voxels(rng, 2000, (12, 12, 12)), random_voxels(rng, 20, (5, 5, 5)) + 60
    points, others = np.concatenate([near, far]), random_voxels(rng, 300, (12, 12, 12))
    ours = nearest_distances(points, others, GRIDS[grid])
    assert np.allclose(ours, every_pair(points, others, GRIDS[grid]), rtol=1e-12)


@pytest.mark.parametrize("seed", third_by_day(range(6)))
def test_two_units_at_once_with_false_positives_far_away_are_those_of_every_pair(seed):
    rng = np.random.default_rng(seed)
    lesion, spots = random_voxels(rng, 1500, (14, 14, 14)), random_voxels(rng, 90, (6, 3, 9))
    far = np.concatenate([spots + rng.integers(30, 200, 3), spots[:40] + np.array((0, 0, 90))])
    points, others = (
        np.concatenate([lesion, far]),
        random_voxels(rng, 700, (13, 15, 14)) + np.array((1, 0, 1)),
    )
    for one, another in ((points, others), (others, points)):
        voxels, mm = nearest_in_units(one, another, Units.of([None, GRIDS["thick slices"]]))
        assert np.array_equal(voxels, every_pair(one, another, None))
        assert np.allclose(mm, every_pair(one, another, GRIDS["thick slices"]), rtol=1e-12)


def test_a_voxel_that_is_one_of_the_others_is_at_distance_zero():
    points = random_voxels(np.random.default_rng(7), 200, (9, 9, 9))
    assert not nearest_distances(points, points).any()


def test_the_order_and_number_of_the_others_do_not_matter():
    rng = np.random.default_rng(8)
    points, others = random_voxels(rng, 200, (15, 15, 15)), random_voxels(rng, 50, (15, 15, 15))
    doubled = np.concatenate([others[::-1], others])
    assert np.array_equal(nearest_distances(points, others), nearest_distances(points, doubled))


def test_without_others_every_distance_is_infinite():
    points = np.zeros((3, 3), dtype=np.intp)
    assert np.isposinf(nearest_distances(points, points[:0])).all()
    assert nearest_distances(points[:0], points).size == 0
