"""Resample volumes with the same result as nnU-Net, but several times faster.

nnU-Net resizes with scikit-image, which evaluates a tensor product of cubic splines voxel by voxel.
The product is separable: SciPy's zoom of unit impulses gives one matrix for each axis, and applying
these matrices gives the same sums in a different order. Sums are in double precision, so that after
rounding to single precision the results equal those of nnU-Net (except for about one voxel in ten
million, by one unit in the last place). Source: nnunetv2 2.8.1,
preprocessing/resampling/default_resampling.py; the idea of the separable form: TotalSegmentator,
pull request 606.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from skimage.transform import resize

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.nnunet_plans import Resampling

_NOTHING: Final = 1e-18  # relative weight below a double's last place: removed from the operator
_ROWS: Final = 64  # output rows that share one band of the operator
_SLAB: Final = 2**22  # voxels in double precision at a time

Shape = Sequence[int]


def separate_axis(how: Resampling, spacing: Sequence[float], wanted: Sequence[float]) -> int | None:
    """Return the axis with thick slices, which are resampled separately, or None.

    The present spacing decides if its maximum exceeds its minimum by more than the given factor;
    otherwise, the target spacing decides. If two axes share the maximum spacing, there is no such
    axis.

    Parameters
    ----------
    how
        The resampling settings of the plans.
    spacing
        The present spacing along the three axes, in mm.
    wanted
        The model's spacing along the three axes, in mm.
    """
    if how.separate_z is False:
        return None
    if how.separate_z or _is_thick(spacing, how.anisotropy):
        chosen = spacing
    elif _is_thick(wanted, how.anisotropy):
        chosen = wanted
    else:
        return None
    largest = np.flatnonzero(max(chosen) / np.array(chosen) == 1)
    return int(largest[0]) if len(largest) == 1 else None


def resample_channel(
    channel: NDArray[np.float32], shape: Shape, how: Resampling, axis: int | None
) -> Any:
    """Return one volume on a new grid as a float32 tensor of `shape`.

    Values are clipped to the original range of the volume or, with thick slices, of the slice.

    Parameters
    ----------
    channel
        One volume, float32.
    shape
        Size of the new grid in voxels.
    how
        The resampling settings of the plans.
    axis
        The axis of thick slices, as returned by `separate_axis`.
    """
    if tuple(channel.shape) == tuple(shape) or how.method == "none":
        return torch.from_numpy(np.ascontiguousarray(channel))
    if how.method == "torch":
        return _resize_linear(torch.from_numpy(np.ascontiguousarray(channel)), shape, axis)
    if axis is None:
        return _at_once(channel, shape, how.order)
    if how.order_z != 0:
        slow = resize_as_stock(channel, shape, how, axis)
        return torch.from_numpy(slow.astype(np.float32))
    return _by_slice(channel, shape, how.order, axis)


@lru_cache(maxsize=32)
def spline_operator(before: int, after: int, order: int) -> Any:
    """Return the float64 matrix ``(after, before)`` that resamples one axis.

    Its columns are SciPy's zoom of unit impulses, with splines of the given order, repeated edges,
    and voxels treated as blocks rather than points.

    Parameters
    ----------
    before
        Number of voxels before resampling.
    after
        Number of voxels after resampling.
    order
        Order of the spline, 0 to 5.
    """
    impulses = np.eye(before)
    columns = [
        ndimage.zoom(impulse, after / before, order=order, mode="nearest", grid_mode=True)
        for impulse in impulses
    ]
    return torch.from_numpy(np.ascontiguousarray(np.stack(columns, axis=1)))


def thick_slices(before: int, after: int) -> NDArray[np.intp]:
    """Return, for each slice of the new grid, the index of the nearest slice of the old grid.

    Parameters
    ----------
    before
        Number of slices before resampling.
    after
        Number of slices after resampling.

    Source: nnunetv2 2.8.1, default_resampling.py (coordinates), SciPy map_coordinates of order 0.
    """
    place = float(before) / after * (np.arange(after) + 0.5) - 0.5
    nearest: NDArray[np.intp] = np.floor(np.clip(place, 0, before - 1) + 0.5).astype(np.intp)
    return nearest


def resize_as_stock(
    volume: NDArray[Any], shape: Shape, how: Resampling, axis: int | None
) -> NDArray[np.float64]:
    """Return one volume on a new grid, resized by scikit-image, which is slow.

    Parameters
    ----------
    volume
        One volume.
    shape
        Size of the new grid in voxels.
    how
        The resampling settings of the plans.
    axis
        The axis of thick slices, as returned by `separate_axis`.
    """
    extents = np.array(shape)
    as_float = volume.astype(np.float64)
    if axis is None:
        return _resize_array(as_float, extents, how.order)
    plane = np.delete(extents, axis)
    slices = [_resize_array(one, plane, how.order) for one in np.moveaxis(as_float, axis, 0)]
    whole = np.stack(slices, axis=axis)
    return _along_thick(whole, shape, axis, how.order_z)


def resample_labels(
    labels: NDArray[Any], shape: Shape, how: Resampling, axis: int | None
) -> NDArray[Any]:
    """Return a label map on a new grid, for the second stage of a cascade.

    The binary volume of each label is resized, and each voxel gets the label with the largest
    value. If values are equal, the label of the nearest voxel is chosen if it is among them,
    otherwise the smallest label. Source: batchgenerators 0.25.5, augmentations/utils.py,
    resize_segmentation; nnunetv2 2.8.1, default_resampling.py.

    Parameters
    ----------
    labels
        The label map.
    shape
        Size of the new grid in voxels.
    how
        The resampling settings of the plans.
    axis
        The axis of thick slices, as returned by `separate_axis`.

    Raises
    ------
    ModelError
        If the plans do not use nnU-Net's default resampling.
    """
    if tuple(labels.shape) == tuple(shape) or how.method == "none":
        return labels
    if how.method != "spline" or (axis is not None and how.order_z != 0):
        raise ModelError(
            "expected a cascade's first stage to use nnU-Net's default resampling, but it uses "
            f"{how.method} of order {how.order} and {how.order_z} across slices; run this model "
            "with nnU-Net itself"
        )
    extents = np.array(shape)
    if axis is None:
        return _vote_labels(
            labels, lambda one, order: _resize_array(one, extents, order), how.order
        )
    plane = np.delete(extents, axis)
    slices = [
        _vote_labels(
            np.asarray(part), lambda one, order: _resize_array(one, plane, order), how.order
        )
        for part in np.moveaxis(labels, axis, 0)
    ]
    picked = thick_slices(labels.shape[axis], shape[axis])
    return np.take(np.stack(slices, axis=axis), picked, axis=axis)


def _vote_labels(
    labels: NDArray[Any],
    resized: Callable[[NDArray[np.float64], int], NDArray[np.float64]],
    order: int,
) -> NDArray[Any]:
    values = np.unique(labels)
    nearest = resized(labels.astype(np.float64), 0)
    if order == 0:
        return nearest.astype(labels.dtype)
    best = resized((labels == values[0]).astype(np.float64), order)
    winner = np.full(best.shape, values[0], dtype=labels.dtype)
    by_nearest = nearest == values[0]
    for value in values[1:]:
        score = resized((labels == value).astype(np.float64), order)
        here = nearest == value
        by_nearest = np.where(score > best, here, by_nearest | ((score == best) & here))
        winner[score > best] = value
        np.maximum(best, score, out=best)
    winner[by_nearest] = nearest[by_nearest].astype(labels.dtype)
    return winner


def _at_once(channel: NDArray[np.float32], shape: Shape, order: int) -> Any:
    low, high = float(channel.min()), float(channel.max())
    half = _in_planes(channel, shape[1], shape[2], order)
    out = torch.empty(tuple(shape), dtype=torch.float32)
    lines = spline_operator(channel.shape[0], shape[0], order)
    step = max(_SLAB // max(shape[2] * max(shape[0], channel.shape[0]), 1), 1)
    for row in range(0, shape[1], step):
        report_progress(shape[1] + row, 2 * shape[1], "Resampling")
        part = _apply_operator(lines, half[:, row : row + step].reshape(channel.shape[0], -1))
        part = part.clamp_(low, high).reshape(shape[0], -1, shape[2])
        out[:, row : row + step] = part
    return out


def _by_slice(channel: NDArray[np.float32], shape: Shape, order: int, axis: int) -> Any:
    turned = np.moveaxis(channel, axis, 0)
    plane = [n for index, n in enumerate(shape) if index != axis]
    if tuple(turned.shape[1:]) == tuple(plane):
        flat = torch.from_numpy(np.ascontiguousarray(turned))
    else:
        fine = _in_planes(turned, plane[0], plane[1], order)
        low = torch.from_numpy(turned.min(axis=(1, 2)).astype(np.float64))[:, None, None]
        high = torch.from_numpy(turned.max(axis=(1, 2)).astype(np.float64))[:, None, None]
        flat = torch.clamp(fine, low, high).float()
    picked = torch.from_numpy(thick_slices(turned.shape[0], shape[axis]))
    return flat[picked].movedim(0, axis).contiguous()


def _in_planes(channel: NDArray[np.float32], rows: int, columns: int, order: int) -> Any:
    """Return a float64 volume ``(slice, rows, columns)``, resampled only within slices."""
    depth, height, width = channel.shape
    down, across = spline_operator(height, rows, order), spline_operator(width, columns, order)
    out = torch.empty((depth, rows, columns), dtype=torch.float64)
    step = max(_SLAB // (max(height, rows) * max(width, columns)), 1)
    for first in range(0, depth, step):
        report_progress(first, 2 * depth, "Resampling")
        slab = torch.from_numpy(np.ascontiguousarray(channel[first : first + step], np.float64))
        lying = _apply_operator(across, slab.movedim(2, 0).reshape(width, -1))
        lying = lying.reshape(columns, -1, height).permute(2, 1, 0).reshape(height, -1)
        block = _apply_operator(down, lying).reshape(rows, -1, columns)
        out[first : first + step] = block.movedim(0, 1)
    return out


def _apply_operator(operator: Any, lines: Any) -> Any:
    """Return ``operator @ lines``; zero weights of the band matrix `operator` are skipped."""
    if operator.shape[0] == operator.shape[1]:
        return lines  # equal extents: the operator is the identity
    out = torch.empty((operator.shape[0], lines.shape[1]), dtype=torch.float64)
    for row in range(0, operator.shape[0], _ROWS):
        band = operator[row : row + _ROWS]
        used = torch.nonzero((band.abs() > _NOTHING).any(dim=0)).flatten()
        first, stop = int(used[0]), int(used[-1]) + 1
        torch.mm(band[:, first:stop], lines[first:stop], out=out[row : row + _ROWS])
    return out


def _resize_linear(volume: Any, shape: Shape, axis: int | None) -> Any:
    """Return a volume resized by linear interpolation in torch, for plans with "torchres".

    Source: nnunetv2 2.8.1, preprocessing/resampling/resample_torch.py.
    """
    zoom = torch.nn.functional.interpolate
    as_float = volume.float()
    if axis is None:
        return zoom(as_float[None, None], tuple(shape), mode="trilinear")[0, 0]
    plane = tuple(n for index, n in enumerate(shape) if index != axis)
    turned = as_float.movedim(axis, 0)
    if tuple(turned.shape[1:]) != plane:
        turned = zoom(turned[None], plane, mode="bilinear")[0]
    whole = turned.movedim(0, axis)
    if tuple(whole.shape) == tuple(shape):
        return whole
    return zoom(whole[None, None].contiguous(), tuple(shape), mode="nearest-exact")[0, 0]


def _along_thick(
    whole: NDArray[np.float64], shape: Shape, axis: int, order: int
) -> NDArray[np.float64]:
    if whole.shape[axis] == shape[axis]:
        return whole
    places = [np.arange(n, dtype=np.float64) for n in shape]
    scale = float(whole.shape[axis]) / shape[axis]
    places[axis] = scale * (places[axis] + 0.5) - 0.5
    grid = np.meshgrid(*places, indexing="ij")
    mapped: NDArray[np.float64] = ndimage.map_coordinates(whole, grid, order=order, mode="nearest")
    return mapped


def _resize_array(array: NDArray[np.float64], shape: Any, order: int) -> NDArray[np.float64]:
    resized: Callable[..., NDArray[np.float64]] = resize  # scikit-image has no type hints
    return resized(array, shape, order, mode="edge", anti_aliasing=False)


def _is_thick(spacing: Sequence[float], factor: float) -> bool:
    return bool(np.max(spacing) / np.min(spacing) > factor)
