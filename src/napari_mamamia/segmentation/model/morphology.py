"""Opening, closing and filling of masks, with balls in mm on grids of any spacing.

A mask is any boolean array ``(a, b, c)``. A ball contains the voxels whose centres are within its
radius. A radius below the spacing therefore has no effect along that axis, and thick slices are not
changed.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_SLACK: Final = 1e-6

Offsets = tuple[tuple[int, int, int], ...]
Bools = NDArray[np.bool_]


def ball_offsets(radius_mm: float, spacing_mm: Sequence[float]) -> Offsets:
    """Return the offsets from the central voxel of a ball to its other voxels.

    Parameters
    ----------
    radius_mm
        The radius of the ball in mm.
    spacing_mm
        The spacing along the axes in mm.

    Examples
    --------
    >>> len(ball_offsets(1.0, (1.0, 1.0, 1.0))), len(ball_offsets(1.0, (3.0, 1.0, 1.0)))
    (6, 4)
    >>> ball_offsets(0.9, (1.0, 1.0, 1.0))
    ()
    """
    return _make_ball(radius_mm, tuple(spacing_mm))


@lru_cache(maxsize=64)
def _make_ball(radius_mm: float, spacing_mm: tuple[float, ...]) -> Offsets:
    reach = [int(radius_mm / s + _SLACK) for s in spacing_mm]
    steps = product(*(range(-r, r + 1) for r in reach))
    inside = []
    for a, b, c in steps:
        squared = sum((o * s) ** 2 for o, s in zip((a, b, c), spacing_mm, strict=True))
        if 0 < squared <= radius_mm**2 * (1 + _SLACK):
            inside.append((a, b, c))
    return tuple(inside)


def dilated(mask: Bools, offsets: Offsets) -> Bools:
    """Return `mask` dilated by a ball.

    Parameters
    ----------
    mask
        A boolean array ``(a, b, c)``.
    offsets
        The offsets of the ball; see `ball_offsets`.
    """
    out = mask.copy()
    for target, source in _list_shifts(mask.shape, offsets):
        out[target] |= mask[source]
    return out


def eroded(mask: Bools, offsets: Offsets) -> Bools:
    """Return `mask` eroded by a ball, without eroding at the edge of the array.

    Tissue continues beyond the edge of an image, so the edge does not erode the mask.

    Parameters
    ----------
    mask
        A boolean array ``(a, b, c)``.
    offsets
        The offsets of the ball; see `ball_offsets`.
    """
    out = mask.copy()
    for target, source in _list_shifts(mask.shape, offsets):
        out[target] &= mask[source]
    return out


def opened(mask: Bools, offsets: Offsets) -> Bools:
    """Return `mask` opened by a ball, which removes the parts into which the ball does not fit.

    Parameters
    ----------
    mask
        A boolean array ``(a, b, c)``.
    offsets
        The offsets of the ball; see `ball_offsets`.
    """
    return dilated(eroded(mask, offsets), offsets)


def closed(mask: Bools, offsets: Offsets) -> Bools:
    """Return `mask` closed by a ball, which fills the gaps into which the ball does not fit.

    The ball is flat across an axis with a single voxel.

    Parameters
    ----------
    mask
        A boolean array ``(a, b, c)``.
    offsets
        The offsets of the ball; see `ball_offsets`.
    """
    if not offsets:
        return mask.copy()
    pad = [max(abs(step[axis]) for step in offsets) for axis in range(3)]
    pad = [p if n > 1 else 0 for p, n in zip(pad, mask.shape, strict=True)]
    wide = np.pad(mask, [(p, p) for p in pad])
    shut = eroded(dilated(wide, offsets), offsets)
    inner = tuple(slice(p, p + n) for p, n in zip(pad, mask.shape, strict=True))
    return np.ascontiguousarray(shut[inner])


def filled(mask: Bools, *, most: float = np.inf) -> Bools:
    """Return `mask` with holes filled, in 3-D and in each plane across an axis.

    Parameters
    ----------
    mask
        A boolean array ``(a, b, c)``.
    most
        The largest ratio of voxels in the result to voxels in `mask`. If it would be exceeded, the
        holes are assumed to be surroundings (as inside a ring of skin around a breast), and a copy
        of `mask` is returned.
    """
    full: Bools = ndimage.binary_fill_holes(mask)
    for axis in range(3):
        plane = np.zeros((3, 3, 3), dtype=np.bool_)
        plane[(1, slice(None), slice(None))] = ndimage.generate_binary_structure(2, 1)
        full |= ndimage.binary_fill_holes(mask, structure=np.moveaxis(plane, 0, axis))
    if np.count_nonzero(full) > most * np.count_nonzero(mask):
        return mask.copy()
    return full


def _list_shifts(
    shape: tuple[int, ...], offsets: Offsets
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield (target, source) slices for each offset that fits into an array of `shape`."""
    for step in offsets:
        if all(abs(o) < n for o, n in zip(step, shape, strict=True)):
            yield (
                tuple(slice(max(-o, 0), n - max(o, 0)) for o, n in zip(step, shape, strict=True)),
                tuple(slice(max(o, 0), n - max(-o, 0)) for o, n in zip(step, shape, strict=True)),
            )
