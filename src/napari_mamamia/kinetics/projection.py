"""Maximum intensity projections of enhancement over the whole volume or a slab.

The projected value is the positive part of a subtraction, max(S_later - S_earlier, 0), in the
signal's unit, so a falling signal is black.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress

_AXES: Final = 3
_BLOCK_VOXELS: Final = 1 << 20
"""Number of voxels between two progress reports, which take about 20 ms."""


def slab_slices(slab_mm: float, spacing_mm: float) -> int:
    """Return the number of slices in a slab, rounded to a whole number of at least 1.

    Parameters
    ----------
    slab_mm
        The thickness of the slab in mm.
    spacing_mm
        The distance between slices in mm.

    Examples
    --------
    >>> slab_slices(20.0, 3.0), slab_slices(0.5, 3.0)
    (7, 1)
    """
    return max(1, round(slab_mm / spacing_mm))


def project_enhancement(
    signal: NDArray[Any], later: int, earlier: int, slabs: Sequence[int | None]
) -> tuple[NDArray[Any], ...]:
    """Project the positive part of a subtraction along each array axis.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type. Values that are not finite count as
        no enhancement.
    later, earlier
        The phases: `earlier` is subtracted from `later`.
    slabs
        The number of slices in a projection along z, y and x: 0 for the whole volume, None for no
        projection along the axis.

    Returns
    -------
    tuple of numpy.ndarray
        One array ``(z, y, x)`` for each axis, which is empty for an axis without a projection. The
        data type is uint16 for integers of up to 16 bits, or else float32. Voxel i is the maximum
        of the slab of n slices that starts at slice i - (n - 1) // 2, cropped at the ends of the
        volume. A projection of the whole volume is the same for all slices and uses the memory of
        one slice.

    Raises
    ------
    CaseError
        If `signal` lacks one of the phases.
    """
    if signal.ndim != _AXES + 1 or not all(0 <= k < signal.shape[0] for k in (later, earlier)):
        raise CaseError(
            f"this projection needs phases {later} and {earlier}, but the (phase, z, y, x) array "
            f"has shape {signal.shape}; choose phases of this case"
        )
    volume = _positive_difference(signal, later, earlier)
    projections: list[NDArray[Any]] = []
    for axis, n_slices in enumerate(slabs):
        if n_slices is None:
            projections.append(np.empty((0, 0, 0), volume.dtype))
        elif n_slices == 0:
            report_progress(axis, len(slabs), "Projecting")
            flat = volume.max(axis=axis, keepdims=True)
            projections.append(np.broadcast_to(flat, volume.shape))
        else:
            slab = _project_slabs(volume, axis, n_slices)
            projections.append(slab)
    report_progress(len(slabs), len(slabs), "Projecting")
    return tuple(projections)


def sliding_maximum(block: NDArray[Any], axis: int, n_slices: int) -> NDArray[Any]:
    """Return the maximum of `n_slices` neighbours along an axis, for non-negative values.

    Windows of 1, 2, 4, ... slices are combined until two windows cover `n_slices`, so the work
    grows with the logarithm of the thickness.

    Parameters
    ----------
    block
        An array with values of at least 0.
    axis
        The axis of the window.
    n_slices
        The length of the window, at least 1.
    """
    length = block.shape[axis]
    padding = [(0, 0)] * block.ndim
    padding[axis] = ((n_slices - 1) // 2, n_slices // 2)
    joined = np.moveaxis(np.pad(block, padding), axis, 0)
    width = 1
    while 2 * width <= n_slices:
        joined = np.maximum(joined[:-width], joined[width:])
        width *= 2
    rest = n_slices - width
    if rest:
        joined = np.maximum(joined[:length], joined[rest : rest + length])
    return np.moveaxis(joined[:length], 0, axis)


def _project_slabs(volume: NDArray[Any], axis: int, n_slices: int) -> NDArray[Any]:
    """Project slabs, in blocks along an axis other than the projected one."""
    across = 0 if axis != 0 else 1
    out = np.empty_like(volume)
    total = volume.shape[across]
    step = max(1, _BLOCK_VOXELS * total // max(volume.size, 1))
    for start in range(0, total, step):
        report_progress(start, total, "Projecting slabs")
        part = [slice(None)] * _AXES
        part[across] = slice(start, start + step)
        out[tuple(part)] = sliding_maximum(volume[tuple(part)], axis, n_slices)
    return out


def _positive_difference(signal: NDArray[Any], later: int, earlier: int) -> NDArray[Any]:
    is_short = signal.dtype.kind in "iub" and signal.dtype.itemsize <= 2
    # A difference of 16-bit values needs 17 bits, but its positive part fits into an unsigned
    # 16-bit type.
    working = np.int32 if is_short else np.float32
    out = np.empty(signal.shape[1:], np.uint16 if is_short else np.float32)
    total = signal.shape[1]
    step = max(1, _BLOCK_VOXELS * total // max(out.size, 1))
    for start in range(0, total, step):
        report_progress(start, total, "Subtracting")
        part = slice(start, start + step)
        with np.errstate(invalid="ignore"):
            block = signal[later, part].astype(working) - signal[earlier, part].astype(working)
        if not is_short:
            np.nan_to_num(block, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        out[part] = np.maximum(block, 0)
    return out
