"""The nnU-Net engine: load checkpoints, plans and network once, then label cases.

Weights are read as data. For a cascade, the engine of the first stage is also loaded, from the
neighbouring folder. With torch in single precision on the CPU, the labels equal those of nnunetv2's
own predictor voxel for voxel, in the same process and with the same number of threads.

A voxel can become foreground only if, among the model voxels from which it is interpolated, some
foreground output exceeds the background output (for regions: exceeds 0), because the weights of
linear interpolation are not negative and floating-point sums preserve order. Therefore only the
bounding box of these voxels is resampled, and everything else is background. Inside the box, the
same products and sums are computed in the same order as in SciPy and rounded to half precision as
in nnU-Net, so that ties are resolved in the same way. Source: nnunetv2 2.8.1,
inference/export_prediction.py; SciPy 1.17, ndimage, NI_ZoomShift.

Channels are processed one at a time. Each is reoriented, cropped to nonzero voxels, normalised and
resampled, in this order. Normalisation uses float32 arrays with the memory order of nnU-Net's own
arrays, because the mean of float32 values depends on it. Source: nnunetv2 2.8.1,
preprocessing/preprocessors/default_preprocessor.py, preprocessing/cropping,
preprocessing/normalization/default_normalization_schemes.py.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import nn

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.model import nnunet_geometry, nnunet_tiles
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.device import (
    choose_device,
    release_memory,
    sums_on,
    threads_set,
)
from napari_mamamia.segmentation.model.engine import EngineInput, Laps
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import model_cache, unpack
from napari_mamamia.segmentation.model.nnunet_labels import Labels
from napari_mamamia.segmentation.model.nnunet_plans import (
    ChannelNorm,
    Plans,
    Resampling,
    read_plans,
)
from napari_mamamia.segmentation.model.nnunet_resample import (
    resample_channel,
    resample_labels,
    resize_as_stock,
    separate_axis,
    thick_slices,
)
from napari_mamamia.segmentation.model.planner import OverLimitError
from napari_mamamia.segmentation.nnunet.checkpoint import checkpoint_file, load_checkpoint
from napari_mamamia.segmentation.nnunet.cost import (
    after_first,
    after_stage,
    first_stage_of,
    stage_bytes,
)
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights, trainer_known
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint

_STEPS: Final = 1000  # voxels of a channel at a time
_EPSILON: Final = 1e-8
"""Smallest float32 divisor in normalisation. Source: default_normalization_schemes.py."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The network's input for a case, and the data to convert its output back to the case.

    `data` is a float32 tensor ``(channel, a, b, c)`` on the model's grid. `box` is the cropped box
    along the model's axes, with the case's own spacing. `wanted` is the spacing of the model's
    grid.
    """

    data: Any
    frame: nnunet_geometry.Frame
    box: Box
    wanted: tuple[float, ...]


def prepare(
    arrays: Sequence[NDArray[Any]],
    grid: Grid,
    plans: Plans,
    previous: NDArray[Any] | None = None,
) -> Prepared:
    """Return the input of the network for a case.

    Parameters
    ----------
    arrays
        One ``(z, y, x)`` volume for each channel, of any numeric type.
    grid
        The grid of the volumes.
    plans
        The plans of the model.
    previous
        Labels ``(z, y, x)`` of a cascade's first stage, needed by its second stage.

    Raises
    ------
    ModelError
        If the model has a different number of channels, or the labels of the first stage are
        missing.
    CaseError
        If every voxel is zero, or a voxel is not finite.
    """
    _require_inputs(arrays, grid, plans, previous)
    frame = nnunet_geometry.model_frame(grid, plans)
    seen = [frame.to_model(np.ascontiguousarray(array)) for array in arrays]
    report_progress(0, 1, "Preparing")
    nonzero = seen[0] != 0
    for volume in seen[1:]:
        nonzero |= volume != 0
    box = Box.around(nonzero)
    if box.is_empty:
        raise CaseError(
            "every voxel of the input is zero; choose the images that belong to the case"
        )
    first = None if previous is None else frame.to_model(previous)[box.slices]
    mask = _norm_mask(nonzero[box.slices], first, plans)
    del nonzero
    target = nnunet_geometry.wanted_spacing(frame.spacing, plans)
    how = plans.configuration.data
    shape = nnunet_geometry.model_extents(box.shape, frame.spacing, plans)
    axis = separate_axis(how, frame.spacing, target)
    data = torch.empty((plans.inputs, *shape), dtype=torch.float32)
    for index, (volume, norm) in enumerate(zip(seen, plans.configuration.norms, strict=True)):
        report_progress(index, len(seen), "Normalising")
        channel = _normalise_channel(volume, box, norm, mask)
        steps = (index * _STEPS, (index + 1) * _STEPS, len(seen) * _STEPS)
        with part(*steps):
            data[index] = resample_channel(channel, shape, how, axis)
    if first is not None:
        seg = plans.configuration.seg
        axis = separate_axis(seg, frame.spacing, target)
        labels = resample_labels(_mark_outside(first, mask), shape, seg, axis)
        if labels.shape != shape:
            raise ModelError(
                f"the first stage's labels of {labels.shape} voxels need resampling to {shape}, "
                "but the plans resample only images and not labels; restore the plans.json that "
                "came with the model"
            )
        data[len(seen) :] = torch.from_numpy(plans.labels.one_hot(labels))
    return Prepared(data, frame, box, target)


def _require_inputs(
    arrays: Sequence[NDArray[Any]], grid: Grid, plans: Plans, previous: NDArray[Any] | None
) -> None:
    if len(arrays) != len(plans.channels):
        raise ModelError(
            f"expected one image for each of the {count_of(len(plans.channels), 'channel')} of "
            f"{plans.dataset} ({', '.join(plans.channels)}), but got {len(arrays)}; choose the "
            "phases of its training, one for each channel"
        )
    for name, array in zip(plans.channels, arrays, strict=True):
        if array.shape != grid.shape:
            raise ModelError(
                f"expected channel {name} to have the shape of the case, {grid.shape} (z, y, x), "
                f"but its shape is {array.shape}; use channels on the case's own grid"
            )
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise CaseError(
                f"expected channel {name} to be finite everywhere, but it contains NaN or "
                "infinity; export the images again"
            )
    if plans.configuration.previous_stage and previous is None:
        raise ModelError(
            f"{plans.configuration.name} refines the result of "
            f"{plans.configuration.previous_stage}, but this result is missing; run that stage "
            "first"
        )


def _norm_mask(
    nonzero: NDArray[np.bool_], previous: NDArray[Any] | None, plans: Plans
) -> NDArray[np.bool_] | None:
    """Return the voxels over which to normalise, or None if no channel uses a mask."""
    if previous is None and not any(norm.in_mask for norm in plans.configuration.norms):
        return None
    mask: NDArray[np.bool_] = ndimage.binary_fill_holes(nonzero)
    return mask if previous is None else mask | (previous > 0)


def _mark_outside(previous: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[np.int16]:
    """Return the first stage's labels with -1 outside the mask, as in nnU-Net."""
    labels = previous.astype(np.int16)
    if mask is not None:
        labels[~mask] = -1
    return labels


def _normalise_channel(
    volume: NDArray[Any], box: Box, norm: ChannelNorm, mask: NDArray[np.bool_] | None
) -> NDArray[np.float32]:
    """Return one channel, cropped and normalised, as float32."""
    image: NDArray[np.float32] = volume.astype(np.float32, order="K", copy=True)[box.slices]
    if norm.scheme == "ZScoreNormalization":
        _z_scored(image, mask if norm.in_mask else None)
    elif norm.scheme == "CTNormalization":
        np.clip(image, norm.low, norm.high, out=image)
        image -= norm.mean
        image /= max(norm.std, _EPSILON)
    elif norm.scheme == "RescaleTo01Normalization":
        image -= image.min()
        image /= np.clip(image.max(), a_min=_EPSILON, a_max=None)
    elif norm.scheme == "RGBTo01Normalization":
        if image.min() < 0 or image.max() > 255:
            raise ModelError(
                "expected a colour channel to have values from 0 to 255, but it has "
                f"{image.min():g} to {image.max():g}; this model was made for colour images"
            )
        image /= 255.0
    return image


def _z_scored(image: NDArray[np.float32], mask: NDArray[np.bool_] | None) -> None:
    if mask is None:
        mean, std = image.mean(), image.std()
        image -= mean
        image /= max(std, _EPSILON)
        return
    values = image[mask]
    image[mask] = (values - values.mean()) / max(values.std(), _EPSILON)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Linear interpolation along one axis: two source indices and two weights per voxel."""

    low: NDArray[np.intp]
    high: NDArray[np.intp]
    weight_low: NDArray[np.float64]
    weight_high: NDArray[np.float64]

    def cut(self, first: int, stop: int) -> "_Line":
        """Return the interpolation for the voxels from `first` up to, but not including, `stop`."""
        span = slice(first, stop)
        return _Line(self.low[span], self.high[span], self.weight_low[span], self.weight_high[span])


def export_labels(
    logits: Any, prepared: Prepared, plans: Plans, region: Box | None = None
) -> NDArray[Any]:
    """Return the labels ``(z, y, x)`` on the case's grid as uint8 or uint16.

    Parameters
    ----------
    logits
        ``(heads, a, b, c)`` half-precision tensor on the CPU, on the model's grid.
    prepared
        The result of `prepare` for the case.
    plans
        The plans of the model.
    region
        Box of the case's grid along the model's axes; voxels outside it become background.
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
    """Return the probability that each voxel is not background, float16 ``(z, y, x)``.

    The probability is computed on the model's grid (1 minus the softmax of background, or for
    regions the largest sigmoid) and interpolated linearly. It does not affect the labels.

    Parameters
    ----------
    logits
        Outputs of the network, ``(heads, a, b, c)``.
    prepared
        The result of `prepare` for the case.
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
    """Return the bounding box of the voxels where a foreground output is largest; may be empty.

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
    """Return the linear interpolation along one axis, with repeated edges.

    Parameters
    ----------
    before
        Number of voxels before resampling.
    after
        Number of voxels after resampling.

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
    """Return labels on a grid of `shape`, interpolated only where foreground is possible."""
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
    """Return one slice of one output in half precision, with SciPy's order of products and sums."""
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
    """Return the labels after resampling every output completely, for unusual plans."""
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
    """Return the label of each pixel from outputs ``(heads, ...)``; ties go to the smaller label.

    With regions, each output applies where its sigmoid exceeds one half, and later outputs override
    earlier ones.
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
    """Return the range of voxels on the new axis that depend on ``first`` to ``stop - 1``."""
    touched = np.flatnonzero((line.high >= first) & (line.low < stop))
    return (int(touched[0]), int(touched[-1]) + 1) if touched.size else (0, 0)


# One fold's network as a function of tiles, in the precision of its device.


def torch_forward(network: nn.Module, device: str, precision: str) -> nnunet_tiles.Forward:
    """Return the network as a function with the same precision as nnU-Net on a device.

    On CUDA this is torch's mixed precision. bf16 on the CPU is used only if it is chosen
    explicitly.

    Parameters
    ----------
    network
        The network with its weights.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.
    precision
        Precision of the computation.
    """

    def plain(tile: Any) -> Any:
        with torch.no_grad():
            return network(tile)

    def mixed(tile: Any) -> Any:
        kind = torch.bfloat16 if precision == "bf16" else torch.float16
        with torch.no_grad(), torch.autocast(device, dtype=kind):
            return network(tile).float() if device == "cpu" else network(tile)

    chosen: Callable[[Any], Any] = mixed if device == "cuda" or precision == "bf16" else plain
    return chosen


def precision_text(settings: EngineSettings, device: str) -> str:
    """Return the precision of the computation as text.

    Parameters
    ----------
    settings
        Settings of the run.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    if device == "cuda" and settings.precision == "fp32":
        return "fp16 autocast"
    if settings.backend == "openvino":
        from napari_mamamia.segmentation.model.openvino import computed_precision

        return computed_precision(settings.precision)
    return settings.precision


_TOTAL: Final = 1000  # steps of a whole run: preparing, predicting, writing
_PREPARED: Final = 80
_PREDICTED: Final = 960


@dataclass(slots=True, eq=False)
class NnUNetEngine:
    """A loaded model; create it with `load_nnunet` and release it with `close`."""

    card: ModelCard
    plans: Plans
    settings: EngineSettings
    device: str
    network: nn.Module
    checkpoints: tuple[tuple[str, Checkpoint], ...]
    first_stage: "NnUNetEngine | None" = None
    _filled: str = field(default="", repr=False)
    _compiled: dict[str, nnunet_tiles.Forward] = field(default_factory=dict, repr=False)

    @property
    def folds(self) -> tuple[str, ...]:
        """Names of the folds whose outputs are averaged."""
        return tuple(fold for fold, _ in self.checkpoints)

    @property
    def flips(self) -> tuple[tuple[int, ...], ...]:
        """Mirrored copies, each as a set of batch axes; empty if mirroring is off."""
        if not self.settings.mirroring:
            return ()
        return nnunet_tiles.flips_of(self.checkpoints[0][1].mirror_axes, self.settings.most_copies)

    def plan(self, grid: Grid, region: Box | None = None) -> TilePlan:
        """Return the cost for a case on `grid`, assuming that it has no empty border.

        The cost includes a cascade's first stage, which always uses the whole volume.
        """
        shape, step = nnunet_geometry.model_shape(grid, self.plans), self.settings.step
        tiles = nnunet_tiles.region_tiles(shape, self.plans, step, grid, region)
        tile_plan = TilePlan(
            tiles=len(tiles.places),
            skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            folds=len(self.checkpoints),
            model_shape=tiles.shape,
            bytes_needed=stage_bytes(self.plans, tiles.padded, grid),
            tile_voxels=math.prod(tiles.patch),
        )
        first = self.first_stage
        return (
            tile_plan
            if first is None
            else after_stage(tile_plan, first.plan(grid), first.card, grid)
        )

    def predict(self, given: EngineInput) -> EngineResult:
        """Label one case, and report progress for every tile and mirrored copy.

        See `Engine.predict`. At the deadline, the completed folds are averaged, and `Ran.cut_short`
        names the missing folds.

        Raises
        ------
        ModelError
            If the channels do not fit the model.
        OverLimitError
            If no fold was completed before the deadline.
        CaseError
            If all voxels are zero, or a voxel is not finite.
        """
        with threads_set(self.settings.threads) as threads:
            return self._predict_case(given, threads)

    def run_one_tile(self) -> None:
        """Run the first fold's network once on an empty tile to measure its time."""
        fold, checkpoint = self.checkpoints[0]
        with threads_set(self.settings.threads):
            tile = torch.zeros(
                (1, self.plans.inputs, *self.plans.configuration.patch), device=self.device
            )
            output = self._make_forward(fold, checkpoint)(tile)
            output.flatten()[:1].cpu()  # a GPU returns before it has finished

    def close(self) -> None:
        """Release the networks and their GPU memory."""
        if self.first_stage is not None:
            self.first_stage.close()
        self._compiled.clear()
        self.network = nn.Identity()
        self.checkpoints = ()
        release_memory(self.device)

    def _predict_case(self, given: EngineInput, threads: int) -> EngineResult:
        """Run both stages of a cascade, or the only stage.

        The first stage gets a share of the progress and time that corresponds to its tiles. Its
        first fold may take longer, because the second stage needs its result.
        """
        if self.first_stage is None:
            return self._one_stage(given, threads)
        began, deadline = time.monotonic(), given.deadline
        share = self.plan(given.grid, given.region).first_share
        folds_until = None if deadline is None else began + share * (deadline - began)
        steps = int(_TOTAL * share)
        with part(0, steps, _TOTAL, "First stage: "):
            whole = replace(given, region=None)
            first = self.first_stage._one_stage(whole, threads, folds_until=folds_until)
        seconds = time.monotonic() - began
        with part(steps, _TOTAL, _TOTAL):
            result = self._one_stage(given, threads, first.labels)
        return replace(result, ran=after_first(result.ran, first.ran, seconds))

    def _one_stage(
        self,
        given: EngineInput,
        threads: int,
        previous: NDArray[Any] | None = None,
        folds_until: float | None = None,
    ) -> EngineResult:
        grid, region = given.grid, given.region
        watch = Laps()
        with part(0, _PREPARED, _TOTAL):
            prepared = prepare(given.arrays, grid, self.plans, previous)
        watch.add("prepare")
        shape, step = tuple(prepared.data.shape[1:]), self.settings.step
        tiles = nnunet_tiles.region_tiles(shape, self.plans, step, grid, region, prepared.box)
        with part(_PREPARED, _PREDICTED, _TOTAL):
            logits, folds = self._average_folds(prepared, tiles, given.deadline, folds_until)
        # The network's input is as large as the outputs, and is no longer needed.
        prepared = replace(prepared, data=None)
        watch.add("predict")
        inside = None if region is None else prepared.frame.box_to_model(region, grid)
        with part(_PREDICTED, _TOTAL, _TOTAL):
            labels = export_labels(logits, prepared, self.plans, inside)
        probability = None
        if self.settings.keep_probability:
            with part(_TOTAL, _TOTAL, _TOTAL):
                probability = export_probability(logits, prepared, self.plans)
        watch.add("export")
        report_progress(_TOTAL, _TOTAL, "Done")
        return EngineResult(
            labels, self._describe_run(tiles, folds, threads, watch.done), probability
        )

    def _average_folds(
        self,
        prepared: Prepared,
        tiles: nnunet_tiles.TileGrid,
        deadline: float | None,
        folds_until: float | None = None,
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the mean half-precision output over the folds, and the names of the folds.

        The first fold may take until `deadline`, all others until `folds_until` if it is set.
        """
        total: Any = None
        folds: list[str] = []
        count, heads = len(self.checkpoints), self.plans.labels.heads
        for index, (fold, checkpoint) in enumerate(self.checkpoints):
            message = f"Fold {fold}, {index + 1} of {count}" if count > 1 else "Predicting"
            if folds and folds_until is not None:
                deadline = folds_until
            if folds and deadline is not None and time.monotonic() >= deadline:
                break
            report_progress(index, count, message)
            forward = self._make_forward(fold, checkpoint)
            try:
                with part(index * 1000, (index + 1) * 1000, count * 1000):
                    logits = nnunet_tiles.sum_tiles(
                        forward,
                        prepared.data,
                        tiles,
                        heads,
                        flips=self.flips,
                        device=self.device,
                        sums_on=sums_on(self.device, 2 * (heads + 1) * math.prod(tiles.padded)),
                        deadline=deadline,
                        text=message,
                    )
            except nnunet_tiles.TimeIsUp as stop:
                if folds:
                    break
                raise OverLimitError(
                    f"expected {self.card.name} to finish one fold within the time limit, but its "
                    f"{len(tiles.places)} tiles x {len(self.flips) + 1} copies took longer; allow "
                    "more time, choose fewer mirrored copies or a larger step, or restrict the "
                    "region"
                ) from stop
            total = logits if total is None else total.add_(logits)
            folds.append(fold)
        if len(folds) > 1:
            total /= len(folds)
        return total, tuple(folds)

    def _make_forward(self, fold: str, checkpoint: Checkpoint) -> nnunet_tiles.Forward:
        if self.settings.backend == "openvino":
            if fold not in self._compiled:
                from napari_mamamia.segmentation.model.openvino import compiled_network

                put_weights(self.network, checkpoint)
                self._compiled[fold] = compiled_network(
                    self.network, self.plans, self._sum_of(fold), self.settings
                )
            return self._compiled[fold]
        if self._filled != fold:
            put_weights(self.network, checkpoint)
            self._filled = fold
        return torch_forward(self.network, self.device, self.settings.precision)

    def _sum_of(self, fold: str) -> str:
        name = self.checkpoints[0][1].path.name
        weight_name = str(PurePosixPath(self.card.inner) / f"fold_{fold}" / name)
        return next((w.sha256 for w in self.card.weights if w.name == weight_name), "")

    def _describe_run(
        self,
        tiles: nnunet_tiles.TileGrid,
        done: tuple[str, ...],
        threads: int,
        laps: Sequence[tuple[str, float]],
    ) -> Ran:
        cut = ""
        if len(done) < len(self.checkpoints):
            cut = f"the time limit was reached after {len(done)} of {len(self.checkpoints)} folds"
        return Ran(
            folds_asked=self.folds,
            folds_done=done,
            tiles=len(tiles.places),
            tiles_skipped=tiles.skipped,
            passes=len(self.flips) + 1,
            step=self.settings.step,
            device=self.device,
            backend=self.settings.backend,
            precision=precision_text(self.settings, self.device),
            threads=threads,
            cut_short=cut,
            seconds=tuple(laps),
        )


def load_nnunet(card: ModelCard, settings: EngineSettings | None = None) -> NnUNetEngine:
    """Load a model: unpack its zip, read its weights as data, and build its network.

    Parameters
    ----------
    card
        The card of the model.
    settings
        Settings of the run; None for the defaults.

    Raises
    ------
    ModelError
        If the card describes another kind of model, a fold or checkpoint is missing, the file is
        damaged or contains code, the trainer is unknown, or the weights do not fit the network.
    MissingExtraError
        If the backend is not installed.
    """
    settings = settings or EngineSettings()
    if card.kind is not ModelKind.NNUNET or card.missing:
        kind = f"expected {card.path} to be an nnU-Net v2 model, but it is {card.kind}"
        raise ModelError("; ".join(card.missing) or f"{kind}: choose another")
    device = choose_device("cpu" if settings.backend == "openvino" else settings.device)
    folder = card.path
    if card.is_zip:
        folder = unpack(card.path, model_cache())
    report_progress(0, 2, "Loading the model")
    root = folder / card.inner if card.inner else folder
    checkpoints = tuple(_load_checkpoints(root, card, settings))
    trainer = checkpoints[0][1].trainer
    if not trainer_known(trainer) and not settings.accept_trainer:
        raise ModelError(
            f"expected {card.name} to come from one of nnU-Net's own trainers, but it was made by "
            f"{trainer!r}, whose code is not available; if it uses the network of the plans, "
            'accept the trainer ("accept_trainer": true in the recipe)'
        )
    plans = _load_plans(root, checkpoints[0][1].configuration or card.configuration)
    report_progress(1, 2, "Loading the model")
    network = build_network(
        plans.configuration.architecture, plans.inputs, plans.labels.heads, trainer, str(root)
    )
    put_weights(network, checkpoints[0][1])
    engine = NnUNetEngine(
        card, plans, settings, device, network.to(device), checkpoints, _filled=checkpoints[0][0]
    )
    if plans.configuration.previous_stage:
        beside = replace(card, path=folder, is_zip=False)
        engine.first_stage = _first_stage(beside, plans, settings)
    report_progress(2, 2, "Loaded")
    return engine


def _first_stage(card: ModelCard, plans: Plans, settings: EngineSettings) -> NnUNetEngine:
    """Load the first stage of a cascade from the folder next to the second stage."""
    before = first_stage_of(card, plans, checksums=bool(card.sha256))
    folds = tuple(fold for fold in settings.folds if fold in before.folds)
    stage_settings = replace(settings, folds=folds, checkpoint="", keep_probability=False)
    return load_nnunet(before, stage_settings)


def _load_checkpoints(
    root: Path, card: ModelCard, settings: EngineSettings
) -> list[tuple[str, Checkpoint]]:
    folds = settings.folds or card.folds
    absent = [fold for fold in folds if fold not in card.folds]
    if absent:
        raise ModelError(
            f"{card.name} has the folds {', '.join(card.folds)}, but not {', '.join(absent)}; "
            "choose from the existing folds, or copy the missing folder"
        )
    name = settings.checkpoint or next(iter(card.checkpoints), "")
    if not name:
        raise ModelError(
            f"expected the folds of {card.name} to have a checkpoint with the same name, but they "
            "have none in common; choose one with the checkpoint setting"
        )
    files = {fold: checkpoint_file(root / f"fold_{fold}", name) for fold in folds}
    return [(fold, load_checkpoint(file)) for fold, file in files.items()]


def _load_plans(root: Path, configuration: str) -> Plans:
    texts = []
    for name in ("plans.json", "dataset.json"):
        try:
            with open_plain(root / name) as stream:
                texts.append(stream.read().decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"expected {root / name} to be readable, but {error}; copy the model again"
            ) from error
    return read_plans(texts[0], texts[1], configuration, str(root))
