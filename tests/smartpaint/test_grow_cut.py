"""The cut of least energy: against every region of a tiny image, and against SciPy's max flow."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from napari_mamamia.smartpaint.grow.cut import Energy, least_cut


def random_energy(shape, seed, smoothness=1.0):
    rng = np.random.default_rng(seed)
    weights = [
        smoothness * rng.random([n - (a == axis) for a, n in enumerate(shape)], dtype=np.float32)
        for axis in range(3)
    ]
    evidence = rng.normal(0, 1, shape).astype(np.float32)
    return Energy(evidence, tuple(weights), np.zeros_like(evidence), np.ones_like(evidence))


def slow_energy(energy, region):
    """The definition, voxel by voxel and pair by pair."""
    total = 0.0
    for place in np.ndindex(region.shape):
        total -= float(energy.evidence[place]) * float(region[place])
        for axis in range(3):
            there = tuple(p + (a == axis) for a, p in enumerate(place))
            if there[axis] < region.shape[axis] and region[place] != region[there]:
                total += float(energy.weights[axis][place])
    return total


def flow_region(energy, unit=10_000):
    """An exact least region by SciPy, with capacities in whole numbers."""
    n = energy.evidence.size
    number = np.arange(n).reshape(energy.evidence.shape)
    rows, columns, capacity = [], [], []
    for axis, weight in enumerate(energy.weights):
        moved = number.swapaxes(0, axis)
        here, there = (
            moved[part].swapaxes(0, axis).ravel() for part in (slice(-1), slice(1, None))
        )
        cost = np.rint(weight.ravel() * unit).astype(np.int32)
        rows += [here, there]
        columns += [there, here]
        capacity += [cost, cost]
    gain = np.rint(energy.evidence.ravel() * unit).astype(np.int32)
    inner, outer = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    rows += [np.full(inner.size, n), outer]
    columns += [inner, np.full(outer.size, n + 1)]
    capacity += [gain[inner], -gain[outer]]
    places = (np.concatenate(rows), np.concatenate(columns))
    graph = csr_array((np.concatenate(capacity), places), shape=(n + 2, n + 2))
    left = graph - maximum_flow(graph, n, n + 1).flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    region = np.zeros(n + 2, dtype=bool)
    region[breadth_first_order(left, n, return_predecessors=False)] = True
    return region[:n].reshape(energy.evidence.shape)


@pytest.mark.parametrize("seed", range(5))
def test_no_region_of_a_tiny_image_has_less_energy(seed):
    energy = random_energy((2, 2, 3), seed)
    least = min(
        slow_energy(energy, np.reshape(bits, (2, 2, 3))) for bits in product((0, 1), repeat=12)
    )
    cut = least_cut(energy, tolerance=1e-6, most=2000)
    assert slow_energy(energy, cut.membership >= 0.5) == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_energy_is_that_of_an_exact_cut_within_the_excess_it_states(seed):
    energy = random_energy((9, 14, 13), seed, smoothness=1.5)
    exact = energy.of(flow_region(energy).astype(np.float32))
    cut = least_cut(energy, most=3000)
    found = energy.of((cut.membership >= 0.5).astype(np.float32))
    scale = float(np.abs(energy.evidence).sum())
    assert found - exact <= (cut.excess + 1e-5) * scale
    assert cut.excess <= 1e-4


def test_the_energy_of_a_region_is_its_definition():
    energy = random_energy((3, 4, 5), 7)
    region = np.random.default_rng(1).random((3, 4, 5)) > 0.5
    expected = slow_energy(energy, region)
    assert energy.of(region.astype(np.float32)) == pytest.approx(expected, abs=1e-4)


def test_bounds_hold_against_all_evidence():
    energy = random_energy((3, 8, 8), 3)
    lowest, highest = energy.lowest.copy(), energy.highest.copy()
    lowest[1, 2, 2], highest[:, 6:] = 1, 0
    against = energy.evidence.copy()
    against[1, 2, 2], against[:, 6:] = -8, 8
    bound = Energy(against, energy.weights, lowest, highest)
    membership = least_cut(bound).membership
    assert membership[1, 2, 2] == 1
    assert not membership[:, 6:].any()


def test_no_evidence_and_no_edges_ends_at_once():
    shape = (1, 4, 4)
    zeros = np.zeros(shape, dtype=np.float32)
    weights = tuple(np.zeros([n - (a == x) for a, n in enumerate(shape)], "f4") for x in range(3))
    cut = least_cut(Energy(zeros, weights, zeros, zeros + 1))
    assert cut.iterations <= 10


def test_the_job_stops_at_its_limit_and_says_by_how_much_it_missed():
    energy = random_energy((8, 20, 20), 5, smoothness=6.0)
    cut = least_cut(energy, tolerance=1e-12, most=15)
    assert cut.iterations == 15
    assert cut.excess > 1e-12
