"""From a network's averaged outputs to labels and to the probability of foreground."""

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.segmentation.model.network_spec import NetworkSpec, OutputKind

__all__ = ["decided", "foreground", "labels_of", "probability_of"]

_SLICES: Final = 16


def labels_of(outputs: Any, spec: NetworkSpec, region: Box | None = None) -> Job[NDArray[Any]]:
    """Return a job for labels ``(a, b, c)`` of float32 outputs ``(heads, a, b, c)``.

    Outside `region` everything is background.
    """
    found = np.zeros(tuple(outputs.shape[1:]), dtype=spec.dtype)
    where = (slice(None),) * 3 if region is None else region.slices
    source, target = outputs[(slice(None), *where)], found[where]
    for first in range(0, target.shape[0], _SLICES):
        yield Progress(first, target.shape[0], "Writing labels")
        target[first : first + _SLICES] = decided(source[:, first : first + _SLICES], spec)
    return found


def probability_of(
    outputs: Any, spec: NetworkSpec, region: Box | None = None
) -> Job[NDArray[np.float16]]:
    """Return a job for the probability that a voxel is not background; 0 outside `region`."""
    found = np.zeros(tuple(outputs.shape[1:]), dtype=np.float16)
    where = (slice(None),) * 3 if region is None else region.slices
    source, target = outputs[(slice(None), *where)], found[where]
    for first in range(0, target.shape[0], _SLICES):
        yield Progress(first, target.shape[0], "Writing probabilities")
        target[first : first + _SLICES] = foreground(source[:, first : first + _SLICES], spec)
    return found


def decided(outputs: Any, spec: NetworkSpec) -> NDArray[Any]:
    """Return the label of each voxel.

    With background the largest output wins, of equal ones the first. Labels on their own count
    above the threshold, later ones over earlier ones.
    """
    values = [value for _, value in spec.labels]
    if spec.has_background:
        table = np.array([0, *values], dtype=spec.dtype)
        chosen: NDArray[Any] = table[np.argmax(outputs.numpy(), axis=0)]
        return chosen
    shares = torch.sigmoid(outputs) if spec.output is OutputKind.LABEL_LOGITS else outputs
    found = np.zeros(tuple(outputs.shape[1:]), dtype=spec.dtype)
    for share, value in zip(shares.numpy(), values, strict=True):
        found[share > spec.threshold] = value
    return found


def foreground(outputs: Any, spec: NetworkSpec) -> NDArray[Any]:
    """Return 1 - the probability of background, or the largest of labels on their own; 0 to 1."""
    if spec.output is OutputKind.LOGITS:
        found = 1 - torch.softmax(outputs, dim=0)[0]
    elif spec.output is OutputKind.PROBABILITIES:
        found = 1 - outputs[0]
    elif spec.output is OutputKind.LABEL_LOGITS:
        found = torch.sigmoid(outputs).amax(dim=0)
    else:
        found = outputs.amax(dim=0)
    clipped: NDArray[Any] = found.clamp(0, 1).numpy()
    return clipped
