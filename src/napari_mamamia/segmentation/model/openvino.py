"""Networks compiled by OpenVINO for the CPU: nnU-Net, IR, ONNX and torch networks.

Compiled networks are faster than torch but not bit-identical: a voxel's label may differ if two
outputs are within two half-precision steps. nnU-Net's compiled networks are cached under a name
derived from the weights, the patch and the versions.
"""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import openvino as ov
import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.nnunet_files import model_cache
from napari_mamamia.segmentation.model.nnunet_plans import Plans
from napari_mamamia.segmentation.model.nnunet_tiles import Forward

_KINDS: Final = {"fp32": "f32", "bf16": "bf16"}


def compiled_network(
    network: nn.Module, plans: Plans, weights_sha256: str, settings: EngineSettings
) -> Forward:
    """Return a network compiled for tiles of the model's patch size, as a function of tensors.

    Parameters
    ----------
    network
        The network with its weights.
    plans
        The plans of the model.
    weights_sha256
        SHA-256 of the weights; "" if unknown.
    settings
        Settings of the run.

    Raises
    ------
    ModelError
        If OpenVINO cannot translate or compile the network.
    """
    shape = (1, plans.inputs, *plans.configuration.patch)
    core, folder = core_with_cache()
    try:
        model = _translate_network(
            network, shape, _find_cache_path(folder, weights_sha256, shape), core
        )
        return compiled_forward(core, model, settings)
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO cannot compile {plans.dataset}: {str(error).splitlines()[0]}; choose the "
            "torch backend"
        ) from error


def computed_precision(asked: str) -> str:
    """Return the precision that OpenVINO actually uses if the precision `asked` is requested.

    On a CPU without bf16 it computes in single precision without reporting it.
    """
    has_bf16 = "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return asked if has_bf16 else "fp32"


def core_with_cache() -> tuple[Any, Path]:
    """Return the OpenVINO core, and the cache folder for compiled networks.

    If the folder cannot be created, the path is empty and nothing is cached.
    """
    folder = model_cache() / "openvino"
    core = ov.Core()
    core.set_property({"ENABLE_MMAP": False})  # a truncated file would crash the process
    try:
        folder.mkdir(parents=True, exist_ok=True)
        core.set_property({"CACHE_DIR": str(folder)})
    except OSError:
        folder = Path()  # the network is translated again the next time
    return core, folder


def compiled_forward(core: Any, model: Any, settings: EngineSettings) -> Forward:
    """Return an OpenVINO network, compiled for the CPU, as a function of tensors.

    Parameters
    ----------
    core
        OpenVINO's core.
    model
        The network as an OpenVINO model.
    settings
        Settings of the run.

    Raises
    ------
    RuntimeError
        If OpenVINO cannot compile the network.
    """
    options: dict[str, Any] = {"INFERENCE_PRECISION_HINT": _KINDS[settings.precision]}
    if settings.threads is not None:
        options["INFERENCE_NUM_THREADS"] = settings.threads
    request = core.compile_model(model, "CPU", options).create_infer_request()

    def forward(tile: Any) -> Any:
        outputs = request.infer([np.ascontiguousarray(tile.numpy())], share_inputs=True)
        # A copy: the next tile's outputs are written into the same memory.
        return torch.from_numpy(np.array(outputs[0], dtype=np.float32))

    return forward


def _translate_network(
    network: nn.Module, shape: tuple[int, ...], stored: Path | None, core: Any
) -> Any:
    """Return a network as an OpenVINO model, read from the cache if possible."""
    if stored is not None and stored.is_file() and stored.with_suffix(".bin").is_file():
        return core.read_model(stored)
    example = torch.zeros(shape)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # torch's tracer: extents are fixed, so they may be constants
        model = ov.convert_model(network, example_input=example, input=[ov.PartialShape(shape)])
    if stored is not None:
        part = stored.with_name(f".{os.getpid()}-{stored.name}")
        ov.save_model(model, part, compress_to_fp16=False)
        # The .xml is written last: a reader that finds it finds its numbers too.
        part.with_suffix(".bin").replace(stored.with_suffix(".bin"))
        part.replace(stored)
    return model


def _find_cache_path(folder: Path, weights_sha256: str, shape: tuple[int, ...]) -> Path | None:
    """Return the cache path of a translated network, or None if it cannot be cached."""
    if not weights_sha256 or folder == Path():
        return None
    key = f"{weights_sha256} {shape} {ov.__version__} {torch.__version__}"
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.xml"


@reads("a network that OpenVINO can read", "copy the file again from its source", ModelError)
def opened_file(path: Path, shape: tuple[int, ...], settings: EngineSettings) -> Forward:
    """Return an IR (``.xml``) or ONNX file as a function of tiles of the given shape.

    Raises
    ------
    ModelError
        If OpenVINO cannot read or compile the file, or the network takes tiles of a different
        shape.
    """
    core, _ = core_with_cache()
    for file in (path, path.with_suffix(".bin")):
        if file == path or file.exists():
            open_plain(file).close()
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO {ov.__version__} cannot read the network {path}: {_first_line(error)}; "
            "copy all files of the network again, or export the network again"
        ) from error
    return _compile_model(core, model, path, shape, settings)


def translated(
    network: nn.Module, path: Path, shape: tuple[int, ...], settings: EngineSettings
) -> Forward:
    """Return a torch network as a function of tiles of the given shape.

    Raises
    ------
    ModelError
        If OpenVINO cannot translate or compile the network.
    """
    core, _ = core_with_cache()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's tracer: extents are fixed
            example = torch.zeros(shape)
            model = ov.convert_model(network, example_input=example, input=[ov.PartialShape(shape)])
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO cannot translate {path}: {_first_line(error)}; choose the torch backend, "
            "or export the network as ONNX"
        ) from error
    return _compile_model(core, model, path, shape, settings)


def _compile_model(
    core: Any, model: Any, path: Path, shape: tuple[int, ...], settings: EngineSettings
) -> Forward:
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise ModelError(
            f"expected {path} to have one input and one output, but it has {len(model.inputs)} "
            f"and {len(model.outputs)}; export the network with only one of each"
        )
    taken = model.input(0).partial_shape
    if not taken.compatible(ov.PartialShape(shape)):
        raise ModelError(
            f"expected {path} to take tiles of {list(shape)} (batch, channels, voxels), as in its "
            f"recipe, but it takes {taken}; correct the patch and channels of the recipe, or "
            "export the network again"
        )
    try:
        if taken.is_dynamic:
            model.reshape(ov.PartialShape(shape))
        return compiled_forward(core, model, settings)
    except RuntimeError as error:
        raise ModelError(
            f"OpenVINO cannot compile {path}: {_first_line(error)}; choose a different backend, "
            "or export the network again"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
