"""The smoothest region that matches the evidence: a minimum cut by convex total variation.

The energy of a region is the negative evidence inside it plus the weights of the neighbour pairs
that its surface cuts. Relaxed to memberships of 0 to 1 it is convex, and a minimum thresholded at
any level is a region of least energy (Chan, Esedoglu and Nikolova, SIAM J Appl Math 66 (2006)
1632).
"""

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.grow.compiled import find_steps

_MOST: Final = 150  # iterations; our choice, see `benchmarks/grow.py`
_CHECK_EVERY: Final = 10  # iterations
_YIELD_EVERY: Final = 5  # iterations, 35 ms at 96^3
_BACK: Final = 0.15  # tau; of 0.15 to 1.2 this came closest to the exact cut in 40 iterations
_FORTH: Final = 1 / (12 * _BACK)  # sigma; tau sigma |K|^2 <= 1, and |K|^2 <= 12 in three dimensions
_TOLERANCE: Final = 1e-4  # at this excess the region was within Dice 0.999 of the exact cut
_THRESHOLD: Final = 0.5
_FEW: Final = 5  # times the free voxels: with more voxels in all, steps use the free voxels alone

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Three = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Energy:
    """The energy of regions, as arrays of evidence and weights.

    Parameters
    ----------
    evidence
        The finite log odds that a voxel belongs to the region, float32 (z, y, x).
    weights
        For each axis, the non-negative cost of the region's surface between a voxel and the next
        voxel: a float32 array with one element less along the axis.
    lowest, highest
        The smallest and the largest allowed membership, float32 (z, y, x); 0 and 1 in free voxels.
    """

    evidence: Floats
    weights: tuple[Floats, Floats, Floats]
    lowest: Floats
    highest: Floats

    def of(self, membership: Floats) -> float:
        """Return the energy of a membership from 0 to 1, or of a binary region."""
        total = -float(np.sum(self.evidence * membership, dtype=np.float64))
        for axis, weight in enumerate(self.weights):
            here, there = _view_ends(membership, axis)
            total += float(np.sum(weight * np.abs(there - here), dtype=np.float64))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A region of nearly minimum energy.

    `membership` is float32 from 0 to 1, and the region consists of voxels with at least 0.5.
    `excess` is an upper bound of the region's energy above the minimum energy (the primal-dual
    gap), as a fraction of all evidence of free voxels.
    """

    membership: Floats
    excess: float
    iterations: int


def least_cut(energy: Energy, *, tolerance: float = _TOLERANCE, most: int = _MOST) -> Cut:
    """Return a region of minimum energy.

    The search ends when the region's excess is at most `tolerance`, or after `most` iterations.
    Identical input gives identical output.

    Source: Chambolle and Pock, J Math Imaging Vis 40 (2011) 120, algorithm 1, with the anisotropic
    total variation, whose dual variables are bounded by the weights.
    """
    state = _State(energy, (energy.evidence > 0).astype(np.float32))
    free = energy.highest > energy.lowest
    scale = float(np.abs(energy.evidence[free]).sum(dtype=np.float64)) or 1.0
    excess, n_iterations = np.inf, 0
    while n_iterations < most and excess > tolerance:
        for step in range(min(_CHECK_EVERY, most - n_iterations)):
            if step % _YIELD_EVERY == 0:
                report_progress(n_iterations, most, "Following the edge")
            state.iterate()
            n_iterations += 1
        excess = state.excess() / scale
    return Cut(state.membership, excess, n_iterations)


def relax(energy: Energy, start: Floats, n_iterations: int) -> Floats:
    """Return the membership after exactly `n_iterations` steps from `start`.

    Convergence is not tested, so a stroke can be repeated with identical results in the same time.
    `start` is not changed. The steps are computed by numpy, by compiled code with identical results
    if `prepare_steps` has finished, or only for free voxels if there are few.
    """
    take_steps = find_steps()
    n_free = np.count_nonzero(energy.lowest < energy.highest)
    if take_steps is None and n_free * _FEW < start.size:
        take_steps = _take_free_steps
    if take_steps is not None and _is_finite(energy):
        membership = np.ascontiguousarray(np.clip(start, energy.lowest, energy.highest))
        bounds, scales = (energy.lowest, energy.highest), (np.float32(_FORTH), np.float32(_BACK))
        take_steps(energy.evidence, energy.weights, bounds, membership, n_iterations, scales)
        return membership
    state = _State(energy, start)
    for _ in range(n_iterations):
        state.iterate()
    return state.membership


def _is_finite(energy: Energy) -> bool:
    return all(
        np.isfinite(np.einsum("zyx->", array)) for array in (energy.evidence, *energy.weights)
    )


def _take_free_steps(
    evidence: Floats,
    weights: Three,
    bounds: tuple[Floats, Floats],
    membership: Floats,
    n_steps: int,
    scales: tuple[np.float32, np.float32],
) -> None:
    """Take steps in place if few voxels are free; arguments are as in `cut_steps.take_steps`.

    Each free voxel stores the duals of its six pairs. A pair of two free voxels is stored twice
    with equal values, so only neighbours need to be looked up.
    """
    forth, back = scales
    free = np.flatnonzero(bounds[0] < bounds[1])
    ahead = membership.reshape(-1).copy()
    neighbours, most = _find_pairs(free, membership.shape, weights)
    least = -most
    evidence, lowest, highest = (array.reshape(-1)[free] for array in (evidence, *bounds))
    here = ahead[free]
    beyond, line, slope = here.copy(), np.empty_like(here), np.empty_like(here)
    duals = np.zeros_like(most)
    for _ in range(n_steps):
        for number, dual in enumerate(duals):
            ahead.take(neighbours[number], out=slope, mode="clip")
            if number % 2:
                np.subtract(beyond, slope, out=slope)
            else:
                slope -= beyond
            slope *= forth
            dual += slope
            np.minimum(dual, most[number], out=dual)
            np.maximum(dual, least[number], out=dual)
        np.copyto(line, evidence)
        for number, dual in enumerate(duals):
            if number % 2:
                line -= dual
            else:
                line += dual
        line *= back
        line += here
        np.maximum(line, lowest, out=line)
        np.minimum(line, highest, out=line)
        np.add(line, line, out=beyond)
        beyond -= here
        ahead[free] = beyond
        here, line = line, here
    membership.reshape(-1)[free] = here


def _find_pairs(
    free: NDArray[np.intp], shape: tuple[int, ...], weights: Three
) -> tuple[NDArray[np.intp], Floats]:
    """Return each free voxel's neighbours (after, then before it on each axis) and their costs.

    Both arrays are ``(6, voxel)``. At the border, a voxel is its own neighbour at no cost.
    """
    places = np.unravel_index(free, shape)
    neighbours, most = np.empty((6, free.size), np.intp), np.empty((6, free.size), np.float32)
    for axis, weight in enumerate(weights):
        stride, position = prod(shape[axis + 1 :]), places[axis]
        # A pair's number on its axis is the number of its first voxel, minus one for each
        # complete row before it.
        pairs = free - stride * (free // (stride * shape[axis]))
        for side, is_there in enumerate((position < shape[axis] - 1, position > 0)):
            number = 2 * axis + side
            np.copyto(neighbours[number], free)
            np.add(free, -stride if side else stride, out=neighbours[number], where=is_there)
            most[number] = 0
            most[number][is_there] = weight.reshape(-1)[pairs[is_there] - side * stride]
    return neighbours, most


class _State:
    """The state of the iteration: membership u, its extrapolation v, dual variables p."""

    def __init__(self, energy: Energy, start: Floats) -> None:
        self.energy = energy
        shape, size = start.shape, start.size
        # One allocation for all: the system provides large memory in large pages.
        memory = np.zeros((7, size), dtype=np.float32)
        self.membership: Floats = memory[0].reshape(shape)
        self._ahead = memory[1].reshape(shape)
        np.clip(start, energy.lowest, energy.highest, out=self.membership)
        np.copyto(self._ahead, self.membership)
        self._duals = tuple(
            row[: bound.size].reshape(bound.shape)
            for row, bound in zip(memory[2:5], energy.weights, strict=True)
        )
        self._slope, self._force = memory[5], memory[6].reshape(shape)

    def iterate(self) -> None:
        """Update the dual variables and then the membership by one step."""
        for axis, (dual, bound) in enumerate(zip(self._duals, self.energy.weights, strict=True)):
            here, there = _view_ends(self._ahead, axis)
            slope = self._slope[: dual.size].reshape(dual.shape)
            np.subtract(there, here, out=slope)
            slope *= np.float32(_FORTH)
            dual += slope
            np.minimum(dual, bound, out=dual)
            np.negative(bound, out=slope)
            np.maximum(dual, slope, out=dual)
        force = self._compute_force()
        force *= np.float32(_BACK)
        force += self.membership
        np.maximum(force, self.energy.lowest, out=force)
        np.minimum(force, self.energy.highest, out=force)
        np.add(force, force, out=self._ahead)
        self._ahead -= self.membership
        self.membership, self._force = force, self.membership

    def excess(self) -> float:
        """Return the primal-dual gap: the region's energy minus the dual energy.

        The dual energy is a lower bound of the energy of every region.
        """
        region = (self.membership >= _THRESHOLD).astype(np.float32)
        force = self._compute_force()
        cheapest = np.where(force > 0, self.energy.highest, self.energy.lowest)
        return self.energy.of(region) + float(np.sum(force * cheapest, dtype=np.float64))

    def _compute_force(self) -> Floats:
        """Return the evidence plus the divergence of the dual variables, in a work array."""
        out: Floats = self._force
        np.copyto(out, self.energy.evidence)
        for axis, dual in enumerate(self._duals):
            here, there = _view_ends(out, axis)
            here += dual
            there -= dual
        return out


def _view_ends(array: Floats, axis: int) -> tuple[Floats, Floats]:
    """Return views of the first and the second voxels of all neighbour pairs along `axis`."""
    moved = array.swapaxes(0, axis)
    first: Floats = moved[:-1].swapaxes(0, axis)
    second: Floats = moved[1:].swapaxes(0, axis)
    return first, second
