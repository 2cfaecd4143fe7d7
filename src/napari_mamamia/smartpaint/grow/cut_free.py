"""Steps of the cut where few voxels are free: the sums of `cut.relax` in its order for these alone.

Each free voxel keeps the duals of its six pairs; one between two free voxels is kept twice, and is
the same both times. So neighbours alone are looked up by their number.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Three = tuple[Floats, Floats, Floats]


def take_free_steps(
    evidence: Floats,
    weights: Three,
    bounds: tuple[Floats, Floats],
    membership: Floats,
    n_steps: int,
    scales: tuple[np.float32, np.float32],
) -> None:
    """Take steps of the cut, in place; arguments are those of `cut_steps.take_steps`."""
    forth, back = scales
    free = np.flatnonzero(bounds[0] < bounds[1])
    ahead = membership.reshape(-1).copy()
    neighbours, most = _find_pairs(free, membership.shape, weights)
    least = -most
    evidence, lowest, highest = (part.reshape(-1)[free] for part in (evidence, *bounds))
    here = ahead[free]
    own, line, slope = here.copy(), np.empty_like(here), np.empty_like(here)
    duals = np.zeros_like(most)
    for _ in range(n_steps):
        for number, dual in enumerate(duals):
            ahead.take(neighbours[number], out=slope, mode="clip")
            if number % 2:
                np.subtract(own, slope, out=slope)
            else:
                slope -= own
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
        np.add(line, line, out=own)
        own -= here
        ahead[free] = own
        here, line = line, here
    membership.reshape(-1)[free] = here


def _find_pairs(
    free: NDArray[np.intp], shape: tuple[int, ...], weights: Three
) -> tuple[NDArray[np.intp], Floats]:
    """Return of each free voxel its neighbours, after and before along each axis, and their cost.

    Both ``(6, voxel)``. Beyond an end a voxel is its own neighbour at no cost.
    """
    places = np.unravel_index(free, shape)
    neighbours, most = np.empty((6, free.size), np.intp), np.empty((6, free.size), np.float32)
    for axis, weight in enumerate(weights):
        stride, place = prod(shape[axis + 1 :]), places[axis]
        # The number of a pair among those of its axis is that of its first voxel, less what the
        # rows before it lack.
        pairs = free - stride * (free // (stride * shape[axis]))
        for side, is_there in enumerate((place < shape[axis] - 1, place > 0)):
            number = 2 * axis + side
            np.copyto(neighbours[number], free)
            np.add(free, -stride if side else stride, out=neighbours[number], where=is_there)
            most[number] = 0
            most[number][is_there] = weight.reshape(-1)[pairs[is_there] - side * stride]
    return neighbours, most
