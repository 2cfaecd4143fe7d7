"""Networks that OpenVINO runs on the processor: its own files, ONNX files, and torch's."""

import warnings
from pathlib import Path
from typing import Any

import openvino as ov
import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.nnunet_tiles import Forward
from napari_mamamia.segmentation.nnunet.openvino import compiled_forward, core_with_cache


@reads("a network that OpenVINO reads", "copy it again from where it came from", ModelError)
def opened_file(path: Path, shape: tuple[int, ...], settings: EngineSettings) -> Forward:
    """Return an IR (``.xml``) or ONNX file as a function of tiles of `shape`.

    Raises
    ------
    ModelError
        If OpenVINO cannot read or compile it, or it takes tiles of another shape.
    """
    core, _ = core_with_cache()
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        raise ModelError(
            f"{path} should be a network that OpenVINO {ov.__version__} reads, but "
            f"{_first_line(error)}: "
            "copy both its files again, or export it again"
        ) from error
    return _compile_model(core, model, path, shape, settings)


def translated(
    network: nn.Module, path: Path, shape: tuple[int, ...], settings: EngineSettings
) -> Forward:
    """Return a network of torch as a function of tiles of `shape`.

    Raises
    ------
    ModelError
        If OpenVINO cannot translate or compile it.
    """
    core, _ = core_with_cache()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's tracer: extents are fixed
            example = torch.zeros(shape)
            model = ov.convert_model(network, example_input=example, input=[ov.PartialShape(shape)])
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO should translate {path}, but {_first_line(error)}: choose the torch "
            "backend, or "
            "export it as ONNX"
        ) from error
    return _compile_model(core, model, path, shape, settings)


def _compile_model(
    core: Any, model: Any, path: Path, shape: tuple[int, ...], settings: EngineSettings
) -> Forward:
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise ModelError(
            f"{path} should take one volume and give one, but takes {len(model.inputs)} and gives "
            f"{len(model.outputs)}: export the network without the others"
        )
    taken = model.input(0).partial_shape
    if not taken.compatible(ov.PartialShape(shape)):
        raise ModelError(
            f"{path} takes tiles of {taken} (batch, channels, voxels), but its recipe describes "
            f"{list(shape)}: say that patch and its channels, or export it again"
        )
    try:
        if taken.is_dynamic:
            model.reshape(ov.PartialShape(shape))
        return compiled_forward(core, model, settings)
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO should compile {path}, but {_first_line(error)}: choose another backend, or "
            "export it again"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
