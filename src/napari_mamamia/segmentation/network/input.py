"""A case's volumes as a network sees them: turned, in single precision, one tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_geometry import Frame

__all__ = ["volumes_of"]


def volumes_of(
    arrays: Sequence[NDArray[Any]], grid: Grid, frame: Frame, spec: NetworkSpec
) -> Job[Any]:
    """Return a job for the channels as one float32 tensor ``(channel, a, b, c)``, axes turned.

    Raises
    ------
    ModelError
        If their number or a shape differs from what the recipe and the case say.
    CaseError
        If every voxel is zero, or one is not finite.
    """
    if len(arrays) != len(spec.channels):
        raise ModelError(
            f"the network takes {len(spec.channels)} channel(s) ({', '.join(spec.channels)}), got "
            f"{len(arrays)}: choose one image for each channel"
        )
    data = torch.empty((len(arrays), *frame.shape), dtype=torch.float32)
    for place, (name, array) in enumerate(zip(spec.channels, arrays, strict=True)):
        yield Progress(place, len(arrays), "Preparing")
        if array.shape != grid.shape:
            raise ModelError(
                f"channel {name} has shape {array.shape}, the case has {grid.shape} (z, y, x): "
                "every channel must lie on the case's own grid"
            )
        data[place] = torch.from_numpy(
            np.ascontiguousarray(frame.to_model(array), dtype=np.float32)
        )
        if not bool(torch.isfinite(data[place]).all()):
            raise CaseError(
                f"channel {name} should be finite everywhere, but holds NaN or infinity: export "
                "the images again"
            )
    if not bool(data.any()):
        raise CaseError("every voxel of the input is zero: open the images that belong to the case")
    return data
