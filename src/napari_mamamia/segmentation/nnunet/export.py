"""Convert the network's outputs to labels on the case's own grid, as nnU-Net but faster.

A voxel can become foreground only if, among the model voxels from which it is interpolated, some
foreground output is above that of background (for regions: above 0), since the weights of linear
interpolation are not negative and floating-point sums keep order. Therefore only the box of those
voxels is resampled; everything else is background. Inside the box the same products and sums are
computed in the same order as in SciPy, and rounded to half precision as in nnU-Net, so that ties
are resolved equally. Source: nnunetv2 2.8.1, inference/export_prediction.py; SciPy 1.17, ndimage,
NI_ZoomShift.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.nnunet_labels import Labels
from napari_mamamia.segmentation.model.nnunet_plans import Plans, Resampling
from napari_mamamia.segmentation.model.nnunet_resample import (
    resample_channel,
    resize_as_stock,
    separate_axis,
    thick_slices,
)
from napari_mamamia.segmentation.nnunet.prepare import Prepared


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Linear interpolation along one axis: two source indices and their weights for each voxel."""

    low: NDArray[np.intp]
    high: NDArray[np.intp]
    weight_low: NDArray[np.float64]
    weight_high: NDArray[np.float64]

    def cut(self, first: int, stop: int) -> "_Line":
        """Return the part for voxels `first` to `stop`."""
        span = slice(first, stop)
        return _Line(self.low[span], self.high[span], self.weight_low[span], self.weight_high[span])


def export_labels(
    logits: Any, prepared: Prepared, plans: Plans, region: Box | None = None
) -> NDArray[Any]:
    """Return labels ``(z, y, x)`` on the case's grid, uint8 or uint16.

    Parameters
    ----------
    logits
        ``(heads, a, b, c)`` half tensor on the CPU, on the model's grid.
    prepared
        The result of `prepare` for the case.
    plans
        The plans of the model.
    region
        Box of the case's grid along the model's axes; outside it everything becomes background.
    """
    report_progress(0, 1, "Writing labels")
    whole = np.zeros(prepared.frame.shape, dtype=plans.labels.dtype)
    how = plans.configuration.logits
    axis = separate_axis(how, prepared.wanted, prepared.frame.spacing)
    shape = prepared.box.shape
    if tuple(logits.shape[1:]) == shape:
        cropped = _export_direct(logits, plans.labels)
    elif how.method == "none":
        raise ModelError(
            f"expected outputs of {tuple(logits.shape[1:])} voxels to be resampled to {shape}, "
            "but the plans resample the input and not the outputs (nnU-Net itself fails here); "
            "restore the plans.json that came with the model"
        )
    elif how.method == "spline" and how.order == 1 and (axis is None or how.order_z == 0):
        cropped = _in_box(logits, shape, axis, plans.labels)
    else:
        cropped = _export_slowly(logits, shape, how, axis, plans.labels)
    whole[prepared.box.slices] = cropped
    if region is not None:
        outside = np.ones(whole.shape, dtype=np.bool_)
        outside[region.slices] = False
        whole[outside] = 0
    return np.ascontiguousarray(prepared.frame.from_model(whole))


def export_probability(logits: Any, prepared: Prepared, plans: Plans) -> NDArray[np.float16]:
    """Return the probability that a voxel is not background, float16 ``(z, y, x)``.

    It is computed on the model's grid (1 minus softmax of background; the largest sigmoid with
    regions) and interpolated linearly; no label depends on it.

    Parameters
    ----------
    logits
        Outputs of the network, ``(heads, a, b, c)``.
    prepared
        Input of the network, with the way back.
    plans
        The plans of the model.
    """
    whole = np.zeros(prepared.frame.shape, dtype=np.float16)
    shares = torch.empty(logits.shape[1:], dtype=torch.float32)
    for plane, target in zip(logits.movedim(1, 0), shares, strict=True):
        as_float = plane.float()
        if plans.labels.has_regions:
            target.copy_(torch.sigmoid(as_float).amax(dim=0))
        else:
            target.copy_(1 - torch.softmax(as_float, dim=0)[0])
    report_progress(0, 1, "Writing probabilities")
    how = Resampling("spline", 1, 0, plans.configuration.logits.separate_z)
    axis = separate_axis(how, prepared.wanted, prepared.frame.spacing)
    fine = resample_channel(shares.numpy(), prepared.box.shape, how, axis)
    whole[prepared.box.slices] = fine.numpy().astype(np.float16)
    return np.ascontiguousarray(prepared.frame.from_model(whole))


def foreground_box(logits: Any, labels: Labels) -> Box:
    """Return the box of model voxels where a foreground output wins; empty if there is none.

    Parameters
    ----------
    logits
        Outputs of the network, ``(heads, a, b, c)``.
    labels
        The label table.
    """
    hit = np.zeros(tuple(logits.shape[1:]), dtype=np.bool_)
    for plane, row in zip(logits.movedim(1, 0), hit, strict=True):
        values = plane.float()
        wins = (values > 0) if labels.has_regions else (values[1:] > values[:1])
        row[...] = wins.any(dim=0).numpy()
    return Box.around(hit)


def linear_places(before: int, after: int) -> _Line:
    """Return the interpolation of one axis from `before` to `after` voxels, with repeated edges.

    Parameters
    ----------
    before
        Extent of the present axis in voxels.
    after
        Extent of the new axis in voxels.

    Source: SciPy ndimage, NI_ZoomShift with grid_mode, order 1, mode nearest.
    """
    place = (np.arange(after) + 0.5) * (before / after) - 0.5
    place = np.clip(place, 0, before - 1)
    low = np.floor(place)
    share = place - low
    first = low.astype(np.intp)
    return _Line(first, np.minimum(first + 1, before - 1), 1.0 - share, share)


def _export_direct(logits: Any, labels: Labels) -> NDArray[Any]:
    out = np.zeros(tuple(logits.shape[1:]), dtype=labels.dtype)
    box = foreground_box(logits, labels)
    first, stop = box.start[0], box.stop[0]
    for z in range(first, stop):
        if (z - first) % 16 == 0:
            report_progress(z - first, stop - first, "Writing labels")
        out[z] = _decide_labels(logits[:, z].numpy(), labels)
    return out


def _in_box(logits: Any, shape: Sequence[int], axis: int | None, labels: Labels) -> NDArray[Any]:
    """Return labels of `shape`, interpolated within the box of possible foreground."""
    out = np.zeros(tuple(shape), dtype=labels.dtype)
    box = foreground_box(logits, labels)
    if box.is_empty:
        return out
    turn = [*range(3)] if axis is None else [axis, *(k for k in range(3) if k != axis)]
    source = logits.permute(0, *(k + 1 for k in turn))
    target = out.transpose(turn)
    lines = [
        _make_nearest(source.shape[k + 1], target.shape[k])
        if axis is not None and k == 0
        else linear_places(source.shape[k + 1], target.shape[k])
        for k in range(3)
    ]
    spans = [
        _find_span(line, box.start[k], box.stop[k]) for line, k in zip(lines, turn, strict=True)
    ]
    if any(first == stop for first, stop in spans):
        return out  # all foreground is between the voxels from which coarser ones are interpolated
    (z0, z1), (y0, y1), (x0, x1) = spans
    down, across = lines[1].cut(y0, y1), lines[2].cut(x0, x1)
    for z in range(z0, z1):
        if (z - z0) % 4 == 0:
            report_progress(z - z0, z1 - z0, "Writing labels")
        values = [_blend_slice(head, lines[0], z, down, across, axis is None) for head in source]
        target[z, y0:y1, x0:x1] = _decide_labels(np.stack(values), labels)
    return out


def _blend_slice(
    head: Any, deep: _Line, z: int, down: _Line, across: _Line, blended: bool
) -> NDArray[np.float16]:
    """Return one slice of one output in half precision; products and sums in SciPy's order."""
    y0, y1 = int(down.low.min()), int(down.high.max()) + 1
    x0, x1 = int(across.low.min()), int(across.high.max()) + 1
    pairs = [(deep.low[z], deep.weight_low[z])]
    if blended:
        pairs.append((deep.high[z], deep.weight_high[z]))
    total: Any = None
    for index, weight in pairs:
        plane = head[int(index), y0:y1, x0:x1].double()
        if blended:
            plane = plane * float(weight)
        for rows, row_weight in ((down.low, down.weight_low), (down.high, down.weight_high)):
            lines = plane[torch.from_numpy(rows - y0)] * torch.from_numpy(row_weight)[:, None]
            for columns, column_weight in (
                (across.low, across.weight_low),
                (across.high, across.weight_high),
            ):
                term = lines[:, torch.from_numpy(columns - x0)]
                term *= torch.from_numpy(column_weight)
                total = term if total is None else total.add_(term)
    # NumPy rounds double to half in one step; torch would round to single precision in between
    half: NDArray[np.float16] = total.numpy().astype(np.float16)
    return half


def _export_slowly(
    logits: Any, shape: Sequence[int], how: Resampling, axis: int | None, labels: Labels
) -> NDArray[Any]:
    """Return labels by resampling every output completely, for plans with unusual settings."""
    heads = []
    for index, head in enumerate(logits):
        report_progress(index, len(logits), "Writing labels")
        if how.method == "torch":
            fine = resample_channel(head.float().numpy(), shape, how, axis)
            heads.append(fine.numpy())
        else:
            heads.append(resize_as_stock(head.numpy(), shape, how, axis).astype(np.float16))
    out = np.zeros(tuple(shape), dtype=labels.dtype)
    for z in range(shape[0]):
        out[z] = _decide_labels(np.stack([head[z] for head in heads]), labels)
    return out


def _decide_labels(values: NDArray[Any], labels: Labels) -> NDArray[Any]:
    """Return the label of each pixel from ``(heads, ...)`` outputs; ties go to the smaller label.

    With regions each output counts where its sigmoid exceeds one half, later ones over earlier
    ones.
    """
    out = np.zeros(values.shape[1:], dtype=labels.dtype)
    if labels.has_regions:
        share = torch.sigmoid(torch.from_numpy(values).float()).numpy()
        for value, part in zip(labels.region_order, share, strict=True):
            out[part > 0.5] = value
        return out
    wide = values.astype(np.float32)
    best = wide[0]
    for label in range(1, len(wide)):
        better = wide[label] > best
        out[better] = label
        best = np.where(better, wide[label], best)
    return out


def _make_nearest(before: int, after: int) -> _Line:
    picked = thick_slices(before, after) if before != after else np.arange(after)
    one = np.ones(after)
    return _Line(picked, picked, one, one)


def _find_span(line: _Line, first: int, stop: int) -> tuple[int, int]:
    """Return the voxels of the new axis that depend on ``first .. stop - 1``."""
    touched = np.flatnonzero((line.high >= first) & (line.low < stop))
    return (int(touched[0]), int(touched[-1]) + 1) if touched.size else (0, 0)
