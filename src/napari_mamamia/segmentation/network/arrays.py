"""Single-file networks with any number of inputs, called as functions of arrays."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.device import (
    choose_device,
    is_device_failure,
    lacks_memory,
)
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.network.runtime import first_line, open_session
from napari_mamamia.segmentation.network.script import read_script

ArrayForward = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]
"""A function from a network's inputs to its outputs, both in the order of the file."""

_NUMPY_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


def open_arrays(kind: str, path: Path, settings: EngineSettings) -> ArrayForward:
    """Return a TorchScript or ONNX file as a function of arrays, without running Python code in it.

    Parameters
    ----------
    kind
        The kind of model.
    path
        Path of the file.
    settings
        Device and threads.

    Raises
    ------
    ModelError
        If the file is damaged or cannot be run safely. The returned function raises it if a run
        fails.
    MissingExtraError
        If the runtime is not installed.
    """
    if kind is ModelKind.TORCHSCRIPT:
        forward = _open_script(path, settings)
    elif kind is ModelKind.ONNX:
        forward = _open_onnx(path, settings)
    else:
        raise ModelError(
            f"expected {path} to be TorchScript or ONNX, but it is {kind}: export the network to "
            "one of them"
        )

    def checked(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        try:
            return forward(arrays)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, ModelError) or lacks_memory(error) or is_device_failure(error):
                raise
            shapes = ", ".join(" x ".join(map(str, array.shape)) for array in arrays)
            raise ModelError(
                f"expected {path} to take inputs of {shapes}, but {first_line(error)}: correct "
                '"inputs" and "patch" in its recipe'
            ) from error

    return checked


def _open_script(path: Path, settings: EngineSettings) -> ArrayForward:
    device = choose_device(settings.device)
    module = read_script(path, device)
    if settings.threads:
        torch.set_num_threads(settings.threads)

    def forward(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        with torch.no_grad():
            result = module(*(torch.from_numpy(array).to(device) for array in arrays))
        outputs = result if isinstance(result, tuple | list) else [result]
        return [output.float().cpu().numpy() for output in outputs if torch.is_tensor(output)]

    return forward


def _open_onnx(path: Path, settings: EngineSettings) -> ArrayForward:
    opened = open_session(path, settings)
    inputs = opened.session.get_inputs()
    for each in inputs:
        if each.type not in _NUMPY_TYPES:
            raise ModelError(
                f"expected {path} to take numeric inputs, but its input {each.name} is "
                f"{each.type}: export the network with float32 or int64 inputs"
            )

    def forward(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        feed = {
            each.name: array.astype(_NUMPY_TYPES[each.type], copy=False)
            for each, array in zip(inputs, arrays, strict=True)
        }
        try:
            return list(opened.session.run(None, feed))
        except opened.errors as error:
            raise RuntimeError(first_line(error)) from error

    return forward
