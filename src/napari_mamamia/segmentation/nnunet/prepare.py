"""Convert a case's volumes to the network's input, as nnU-Net prepares it.

Channels are processed one at a time. Order of steps: reorient, crop to voxels that are not zero,
normalise, resample. Normalisation works on float32 with the memory order of nnU-Net's own arrays,
since a mean of float32 values depends on it. Source: nnunetv2 2.8.1,
preprocessing/preprocessors/default_preprocessor.py, preprocessing/cropping,
preprocessing/normalization/default_normalization_schemes.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.segmentation.model.nnunet_geometry import (
    Frame,
    model_extents,
    model_frame,
    wanted_spacing,
)
from napari_mamamia.segmentation.model.nnunet_plans import ChannelNorm, Plans
from napari_mamamia.segmentation.model.nnunet_resample import (
    resample_channel,
    resample_labels,
    separate_axis,
)

_STEPS: Final = 1000  # voxels of a channel at a time
_EPSILON: Final = 1e-8
"""Smallest divisor. Source: default_normalization_schemes.py, for float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The network's input, and the data for the way back to the case's grid.

    `data` is a float32 tensor ``(channel, a, b, c)`` on the model's grid; `box` is the crop, along
    the model's axes at the case's own spacing; `wanted` is the spacing of the model's grid.
    """

    data: Any
    frame: Frame
    box: Box
    wanted: tuple[float, ...]


def prepare(
    arrays: Sequence[NDArray[Any]],
    grid: Grid,
    plans: Plans,
    previous: NDArray[Any] | None = None,
) -> Prepared:
    """Return the network's input for a case.

    Parameters
    ----------
    arrays
        One ``(z, y, x)`` volume for each channel, of any numeric type.
    grid
        Their grid.
    plans
        The plans of the model.
    previous
        Labels ``(z, y, x)`` of a cascade's first stage, needed by its second stage.

    Raises
    ------
    ModelError
        If the number of channels differs from the model's, or the labels of the first stage are
        missing.
    CaseError
        If every voxel is zero, or a voxel is not finite.
    """
    _require_inputs(arrays, grid, plans, previous)
    frame = model_frame(grid, plans)
    seen = [frame.to_model(np.ascontiguousarray(array)) for array in arrays]
    report_progress(0, 1, "Preparing")
    nonzero = seen[0] != 0
    for volume in seen[1:]:
        nonzero |= volume != 0
    box = Box.around(nonzero)
    if box.is_empty:
        raise CaseError("every voxel of the input is zero; open the images that belong to the case")
    first = None if previous is None else frame.to_model(previous)[box.slices]
    mask = _norm_mask(nonzero[box.slices], first, plans)
    del nonzero
    target = wanted_spacing(frame.spacing, plans)
    how = plans.configuration.data
    shape = model_extents(box.shape, frame.spacing, plans)
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
                f"a first stage's labels of {labels.shape} voxels need resampling to {shape}, but "
                "the plans resample images and not labels; restore the plans.json that came with "
                "the model"
            )
        data[len(seen) :] = torch.from_numpy(plans.labels.one_hot(labels))
    return Prepared(data, frame, box, target)


def _require_inputs(
    arrays: Sequence[NDArray[Any]], grid: Grid, plans: Plans, previous: NDArray[Any] | None
) -> None:
    if len(arrays) != len(plans.channels):
        raise ModelError(
            f"{plans.dataset} has {count_of(len(plans.channels), 'channel')} "
            f"({', '.join(plans.channels)}), "
            f"but got {len(arrays)}; choose the phases of its training, one for each channel"
        )
    for name, array in zip(plans.channels, arrays, strict=True):
        if array.shape != grid.shape:
            raise ModelError(
                f"channel {name} has shape {array.shape}, but the case has {grid.shape} (z, y, "
                "x); every channel must be on the case's own grid"
            )
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise CaseError(
                f"expected channel {name} to be finite everywhere, but it holds NaN or infinity; "
                "export the images again"
            )
    if plans.configuration.previous_stage and previous is None:
        raise ModelError(
            f"{plans.configuration.name} refines the result of "
            f"{plans.configuration.previous_stage}, which is missing; run that stage first"
        )


def _norm_mask(
    nonzero: NDArray[np.bool_], previous: NDArray[Any] | None, plans: Plans
) -> NDArray[np.bool_] | None:
    """Return the voxels used for normalisation, or None if no channel uses a mask."""
    if previous is None and not any(norm.in_mask for norm in plans.configuration.norms):
        return None
    mask: NDArray[np.bool_] = ndimage.binary_fill_holes(nonzero)
    return mask if previous is None else mask | (previous > 0)


def _mark_outside(previous: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[np.int16]:
    """Return the labels of a first stage with -1 outside the mask, as in nnU-Net."""
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
                "expected a colour channel to have values of 0 to 255, but it has "
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
