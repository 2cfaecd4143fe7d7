"""Steps of the cut, compiled by numba: the sums of `cut.relax` in its order, so the same bits.

Nothing is reordered or fused (no fastmath). In each row only what lies between its first and last
free voxel is worked on, since the rest changes nothing; and the steps follow each other through the
planes, each two planes behind the one before, so that what they share is still in the cache.
`compiled.py` alone imports this module, in a thread of its own: it loads a compiler.
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
Walk = Callable[..., None]

# Places are unsigned: they need no test for counting from the end, so that loops become vectors.
_ONE: Final = np.uint64(1)
_HOW: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
_LINE: Final = float32[::1]


def compile_walk(folder: Path) -> Walk:
    """Return `_walk_planes` as machine code, which numba keeps in `folder` or a folder of its own.

    Without a folder that it can write to, or with a damaged one, it is compiled anew each time.
    Raises whatever numba does where it is broken.
    """
    three, two = types.UniTuple(_LINE, 3), types.UniTuple(_LINE, 2)
    spans, scales = uint64[:, :, :, ::1], types.UniTuple(float32, 2)
    signature = void(_LINE, three, two, _LINE, _LINE, three, _LINE, spans, uint64, scales)
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
    """Take steps of the cut, in place.

    Parameters
    ----------
    walk
        Of `compile_walk`.
    evidence, weights
        As in `cut.Energy`, finite.
    bounds
        The least and the greatest membership.
    membership
        float32 ``(z, y, x)``, contiguous, within the bounds.
    scales
        By which slopes move the duals, and the force moves the membership.
    """
    shape, size = membership.shape, membership.size
    plane = shape[1] * shape[2]
    # Duals begin a plane early: what lies before the first voxels is 0. One request for all.
    *duals, ahead = np.zeros((4, plane + size), np.float32)
    ahead[:size] = membership.reshape(-1)
    flat = [np.ascontiguousarray(part).reshape(-1) for part in (evidence, *weights, *bounds)]
    walk(
        flat[0],
        tuple(flat[1:4]),
        tuple(flat[4:]),
        membership.reshape(-1),
        ahead,
        tuple(duals),
        np.empty(shape[2], np.float32),
        np.zeros((4, shape[0], shape[1], 2), np.uint64),
        n_steps,
        scales,
    )


@njit(**_HOW)
def _span_voxels(bounds: Two, spans: Places, n_columns: int) -> None:
    """Write where the free voxels of each row begin and end, 0 and 0 where there are none."""
    lowest, highest = bounds
    n_rows = np.uint64(spans.shape[2])
    for z in range(np.uint64(spans.shape[1])):
        for y in range(n_rows):
            row = (z * n_rows + y) * n_columns
            first, last = row, row + n_columns
            while first < last and lowest[first] >= highest[first]:
                first += _ONE
            while first < last and lowest[last - _ONE] >= highest[last - _ONE]:
                last -= _ONE
            if first < last:
                spans[3, z, y, 0], spans[3, z, y, 1] = first - row, last - row


@njit(**_HOW)
def _span_pairs(spans: Places, n_columns: int) -> None:
    """Write for pairs along each axis where those with a free voxel begin and end in each row."""
    n_planes, n_rows = np.uint64(spans.shape[1]), np.uint64(spans.shape[2])
    for z in range(n_planes):
        for y in range(n_rows):
            first, last = spans[3, z, y, 0], spans[3, z, y, 1]
            for axis in range(2):
                deep, low = (z + _ONE, y) if axis == 0 else (z, y + _ONE)
                if deep < n_planes and low < n_rows:
                    begins, ends = spans[3, deep, low, 0], spans[3, deep, low, 1]
                    if first == last:
                        spans[axis, z, y, 0], spans[axis, z, y, 1] = begins, ends
                    elif begins == ends:
                        spans[axis, z, y, 0], spans[axis, z, y, 1] = first, last
                    else:
                        spans[axis, z, y, 0] = min(first, begins)
                        spans[axis, z, y, 1] = max(last, ends)
            if first < last and n_columns > _ONE:
                spans[2, z, y, 0] = first - min(first, _ONE)
                spans[2, z, y, 1] = min(last, n_columns - _ONE)


@njit(**_HOW)
def _move_duals(
    dual: Floats, begins: int, bound: Floats, at: int, ahead: Floats, ends: Three, forth: float
) -> None:
    """Move a row of duals, each by the slope over its pair, within its bounds."""
    here, there, count = ends
    for k in range(count):
        most = bound[at + k]
        value = dual[begins + k] + (ahead[there + k] - ahead[here + k]) * forth
        dual[begins + k] = max(min(value, most), -most)


@njit(**_HOW)
def _add_force(
    line: Floats, evidence: Floats, duals: Three, here: int, steps: tuple[int, int], count: int
) -> None:
    """Write evidence plus divergence of the duals of a row of voxels into `line`."""
    deep, rows, columns = duals
    plane, n_columns = steps
    for k in range(count):
        at = here + plane + k
        force = evidence[here + k] + deep[at]
        force = force - deep[at - plane]
        force = force + rows[at]
        force = force - rows[at - n_columns]
        force = force + columns[at]
        line[k] = force - columns[at - _ONE]


@njit(**_HOW)
def _move_members(
    line: Floats, bounds: Two, membership: Floats, ahead: Floats, here: int, count: int, back: float
) -> None:
    """Move a row of memberships by the force in `line`, within their bounds."""
    lowest, highest = bounds
    for k in range(count):
        at = here + k
        value = min(max(line[k] * back + membership[at], lowest[at]), highest[at])
        ahead[at] = (value + value) - membership[at]
        membership[at] = value


@njit(**_HOW)
def _step_plane(
    z: int,
    arrays: tuple[Floats, Three, Two, Floats, Floats, Three, Floats],
    spans: Places,
    steps: tuple[int, int],
    scales: tuple[float, float],
) -> None:
    """Take one step in a plane: duals row by row, and what they do to the voxels before them."""
    evidence, weights, bounds, membership, ahead, duals, line = arrays
    plane, n_columns = steps
    forth, back = scales
    n_rows = np.uint64(spans.shape[2])
    for y in range(n_rows):
        row = z * plane + y * n_columns
        first, count = spans[0, z, y, 0], spans[0, z, y, 1] - spans[0, z, y, 0]
        here = row + first
        ends = (here, here + plane, count)
        _move_duals(duals[0], plane + here, weights[0], here, ahead, ends, forth)
        # Along rows and columns a plane has fewer pairs than voxels.
        first, count = spans[1, z, y, 0], spans[1, z, y, 1] - spans[1, z, y, 0]
        here = row + first
        ends = (here, here + n_columns, count)
        _move_duals(duals[1], plane + here, weights[1], here - z * n_columns, ahead, ends, forth)
        first, count = spans[2, z, y, 0], spans[2, z, y, 1] - spans[2, z, y, 0]
        here = row + first
        ends = (here, here + _ONE, count)
        at = here - (z * n_rows + y)
        _move_duals(duals[2], plane + here, weights[2], at, ahead, ends, forth)
        first, count = spans[3, z, y, 0], spans[3, z, y, 1] - spans[3, z, y, 0]
        here = row + first
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
    spans: Places,
    n_steps: int,
    scales: tuple[float, float],
) -> None:
    """Take all steps: while a plane takes one, the plane two before it takes the next one."""
    arrays = (evidence, weights, bounds, membership, ahead, duals, line)
    n_planes, n_columns = np.uint64(spans.shape[1]), np.uint64(line.size)
    steps = (np.uint64(spans.shape[2]) * n_columns, n_columns)
    _span_voxels(bounds, spans, n_columns)
    _span_pairs(spans, n_columns)
    for wave in range(n_planes + n_steps + n_steps):
        for step in range(n_steps):
            if step + step <= wave and wave < step + step + n_planes:
                _step_plane(wave - step - step, arrays, spans, steps, scales)
