"""Steps of the cut, compiled by numba, with results identical to `cut.relax`.

No operation is reordered or fused (no fastmath). In each plane, only the rows from the first to the
last row with a free voxel are computed, because other rows do not change; the compiler vectorises
this range. The steps proceed through the planes, each two planes behind the previous step, so that
shared planes are still in the processor's cache. Only `compiled.py` imports this module, in a
separate thread, because the import loads a compiler.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numba import config, float32, njit, types, uint64, void
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Three = tuple[Floats, Floats, Floats]
Two = tuple[Floats, Floats]
Places = NDArray[np.uint64]
Place3 = tuple[int, int, int]
Walk = Callable[..., None]

# Indices are unsigned: no test for negative indices is needed, so loops are vectorised.
_ONE: Final[Any] = np.uint64(1)
_HOW: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
_LINE: Final = float32[::1]


def compile_walk(folder: Path) -> Walk:
    """Return `_walk_planes` as machine code, which numba caches in `folder` or another folder.

    If the folder is not writable or the cache is damaged, the code is compiled each time. Any
    exception raised by a broken numba is passed on.
    """
    three, two = types.UniTuple(_LINE, 3), types.UniTuple(_LINE, 2)
    shape, scales = types.UniTuple(uint64, 3), types.UniTuple(float32, 2)
    signature = void(_LINE, three, two, _LINE, _LINE, three, _LINE, shape, uint64, scales)
    before = config.CACHE_DIR
    config.CACHE_DIR = before or str(folder)
    try:
        walk: Walk = njit(signature, cache=True, **_HOW)(_walk_planes)
    except Exception:  # noqa: BLE001 - numba reads its own files by pickle, which raises anything
        walk = njit(signature, **_HOW)(_walk_planes)
    finally:
        config.CACHE_DIR = before
    return walk


def take_steps(
    walk: Walk,
    evidence: Floats,
    weights: Three,
    bounds: Two,
    membership: Floats,
    n_steps: int,
    scales: tuple[np.float32, np.float32],
) -> None:
    """Take steps of the cut in place.

    Parameters
    ----------
    walk
        The result of `compile_walk`.
    evidence, weights
        The finite arrays of `cut.Energy`.
    bounds
        The smallest and the largest allowed membership of each voxel.
    membership
        A contiguous float32 array ``(z, y, x)`` within the bounds.
    scales
        The step sizes of the dual variables and of the membership.
    """
    shape, size = membership.shape, membership.size
    plane = shape[1] * shape[2]
    # Duals start one plane earlier, because the values before the first voxels are 0. One
    # allocation for all.
    *duals, ahead, columns = np.zeros((5, plane + size + 1), np.float32)
    ahead[:size] = membership.reshape(-1)
    # With a pair of no cost at the end of each row, the pairs of a plane are contiguous.
    columns[:size].reshape(shape)[:, :, :-1] = weights[2]
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (evidence, *weights[:2], *bounds)]
    z, y, x = (np.uint64(n) for n in shape)
    walk(
        flat[0],
        (flat[1], flat[2], columns),
        tuple(flat[3:]),
        membership.reshape(-1),
        ahead,
        tuple(duals),
        np.empty(plane, np.float32),
        (z, y, x),
        n_steps,
        scales,
    )


@njit(**_HOW)
def _span_voxels(bounds: Two, spans: Places, shape: Place3) -> None:
    """Store the range of rows with free voxels for each plane: the first row, and the last row + 1.

    ``spans[3]`` is ``(z, 2)`` and is 0 for a plane without free voxels.
    """
    lowest, highest = bounds
    n_planes, n_rows, n_columns = shape
    for z in range(n_planes):
        offset, last = z * n_rows * n_columns, (z + _ONE) * n_rows * n_columns
        first = offset
        while first < last and lowest[first] >= highest[first]:
            first += _ONE
        if first < last:
            while lowest[last - _ONE] >= highest[last - _ONE]:
                last -= _ONE
            spans[3, z, 0] = (first - offset) // n_columns
            spans[3, z, 1] = (last - offset - _ONE) // n_columns + _ONE


@njit(**_HOW)
def _span_pairs(spans: Places, shape: Place3) -> None:
    """Store the ranges of rows for pairs along each axis, from those of free voxels."""
    n_planes, n_rows, _ = shape
    for z in range(n_planes):
        first, last = spans[3, z, 0], spans[3, z, 1]
        spans[2, z, 0], spans[2, z, 1] = first, last
        if first < last:
            spans[1, z, 0], spans[1, z, 1] = first - min(first, _ONE), min(last, n_rows - _ONE)
        if z + _ONE < n_planes:
            begins, ends = spans[3, z + _ONE, 0], spans[3, z + _ONE, 1]
            if first == last:
                first, last = begins, ends
            elif begins < ends:
                first, last = min(first, begins), max(last, ends)
            spans[0, z, 0], spans[0, z, 1] = first, last


@njit(**_HOW)
def _move_duals(
    dual: Floats, begins: int, bound: Floats, at: int, ahead: Floats, ends: Three, forth: float
) -> None:
    """Update a run of dual variables by the slopes over their pairs, within their bounds."""
    here, there, count = ends
    for k in range(count):
        most = bound[at + k]
        value = dual[begins + k] + (ahead[there + k] - ahead[here + k]) * forth
        dual[begins + k] = max(min(value, most), -most)


@njit(**_HOW)
def _add_force(
    line: Floats, evidence: Floats, duals: Three, here: int, steps: tuple[int, int], count: int
) -> None:
    """Write the evidence plus the divergence of the duals into `line` for a run of voxels."""
    deep, rows, columns = duals
    plane, n_columns = steps
    for k in range(count):
        index = here + plane + k
        force = evidence[here + k] + deep[index]
        force = force - deep[index - plane]
        force = force + rows[index]
        force = force - rows[index - n_columns]
        force = force + columns[index]
        line[k] = force - columns[index - _ONE]


@njit(**_HOW)
def _move_members(
    line: Floats, bounds: Two, membership: Floats, ahead: Floats, here: int, count: int, back: float
) -> None:
    """Update a run of memberships by the force in `line`, within their bounds."""
    lowest, highest = bounds
    for k in range(count):
        index = here + k
        value = min(max(line[k] * back + membership[index], lowest[index]), highest[index])
        ahead[index] = (value + value) - membership[index]
        membership[index] = value


@njit(**_HOW)
def _step_plane(
    z: int,
    arrays: tuple[Floats, Three, Two, Floats, Floats, Three, Floats],
    spans: Places,
    steps: tuple[int, int],
    scales: tuple[float, float],
) -> None:
    """Take one step in a plane: update its dual variables, then its voxels."""
    evidence, weights, bounds, membership, ahead, duals, line = arrays
    plane, n_columns = steps
    forth, back = scales
    for axis in range(3):
        first, last = spans[axis, z, 0] * n_columns, spans[axis, z, 1] * n_columns
        here = z * plane + first
        next_to = here + (plane if axis == 0 else n_columns if axis == 1 else _ONE)
        ends = (here, next_to, last - first)
        # Along rows a plane has fewer pairs than voxels.
        index = here - z * n_columns if axis == 1 else here
        _move_duals(duals[axis], plane + here, weights[axis], index, ahead, ends, forth)
    first, last = spans[3, z, 0] * n_columns, spans[3, z, 1] * n_columns
    here, count = z * plane + first, last - first
    _add_force(line, evidence, duals, here, steps, count)
    _move_members(line, bounds, membership, ahead, here, count, back)


def _walk_planes(
    evidence: Floats,
    weights: Three,
    bounds: Two,
    membership: Floats,
    ahead: Floats,
    duals: Three,
    line: Floats,
    shape: Place3,
    n_steps: int,
    scales: tuple[float, float],
) -> None:
    """Take all steps; while a plane takes one step, the plane two before it takes the next step."""
    arrays = (evidence, weights, bounds, membership, ahead, duals, line)
    n_planes, n_rows, n_columns = shape
    steps = (n_rows * n_columns, n_columns)
    spans = np.zeros((4, n_planes, 2), np.uint64)
    _span_voxels(bounds, spans, shape)
    _span_pairs(spans, shape)
    for wave in range(n_planes + n_steps + n_steps):
        for step in range(n_steps):
            if step + step <= wave and wave < step + step + n_planes:
                _step_plane(wave - step - step, arrays, spans, steps, scales)
