"""Runtimes for single-file networks; each has a function that returns a `Forward`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.segmentation.model.device import (
    choose_device,
    is_device_failure,
    lacks_memory,
    require_onnx,
    usual_threads,
)
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import NetworkSpec, OutputKind
from napari_mamamia.segmentation.model.nnunet_tiles import Forward
from napari_mamamia.segmentation.network.onnx import read_onnx

_ROUNDING: Final = 1e-3  # a sum of half-precision shares may exceed 1 by this much
_FLOATS: Final = {"tensor(float)": torch.float32, "tensor(float16)": torch.float16}
_CUDA: Final = "CUDAExecutionProvider"
# ONNX Runtime's errors have no common base class below Exception.
_ORT_ERRORS: Final = (
    "EPFail", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded",
    "NoModel", "NoSuchFile", "NotImplemented", "RuntimeException",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class NetworkRuntime:
    """A network as a function of tiles, with its runtime and device.

    `tiles_on` is the device of the tiles. `threads` is None if torch's own number of threads
    applies. `precision` is the precision in use, or "" if it is the requested precision.
    """

    forward: Forward
    backend: str
    device: str
    tiles_on: str
    threads: int | None = None
    precision: str = ""


def open_network(
    kind: str, path: Path, spec: NetworkSpec, settings: EngineSettings
) -> NetworkRuntime:
    """Open a network from a file and return it ready to run.

    The `Forward` raises `ModelError` if outputs have an unexpected shape or are not finite.

    Parameters
    ----------
    kind
        The kind of model.
    path
        The path of the file.
    spec
        Input and output of the network.
    settings
        Settings of the run.

    Raises
    ------
    ModelError
        If the file is damaged, cannot be run safely, or does not fit the recipe.
    MissingExtraError
        If the runtime is not installed.
    """
    if kind is ModelKind.OPENVINO or settings.backend == "openvino":
        runtime = _with_openvino(kind, path, spec, settings)
    elif kind is ModelKind.ONNX:
        runtime = _with_onnxruntime(path, settings)
    else:
        device = choose_device(settings.device)
        module = _torch_module(kind, path, spec, device).to(device)
        forward = _torch_forward(module, device, settings.precision)
        runtime = NetworkRuntime(forward, "torch", device, device)
    checked = _check_outputs(runtime.forward, spec, path)
    return NetworkRuntime(
        checked, runtime.backend, runtime.device, runtime.tiles_on, runtime.threads
    )


def _torch_module(kind: str, path: Path, spec: NetworkSpec, device: str) -> nn.Module:
    from napari_mamamia.segmentation.network.exported import read_exported
    from napari_mamamia.segmentation.network.script import read_script

    if kind is ModelKind.TORCHSCRIPT:
        return read_script(path, device)
    if kind is ModelKind.EXPORTED:
        return read_exported(path)
    return _read_weights(path, spec)


def _read_weights(path: Path, spec: NetworkSpec) -> nn.Module:
    """Return a recipe's network with the weights from a safetensors file.

    Raises
    ------
    ModelError
        If the file is damaged, the network is not listed in `nnunet.network`, or the weights do not
        fit the network.
    """
    from napari_mamamia.segmentation.nnunet.network import build_network, put_weights
    from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint, read_tensors

    if spec.architecture is None:
        raise ModelError(f'{path} contains only weights; add "architecture" to its recipe')
    weights, _ = read_tensors(path)
    network = build_network(spec.architecture, len(spec.channels), spec.heads, "", str(path))
    put_weights(network, Checkpoint(path, _add_shared(network, weights), "", "", ()))
    return network


def _add_shared(network: nn.Module, weights: dict[str, Any]) -> dict[str, Any]:
    """Return the weights under every name by which the network refers to the same tensor."""
    stored = {
        value.data_ptr(): weights[name]
        for name, value in network.state_dict().items()
        if name in weights
    }
    shared = {
        name: stored[value.data_ptr()]
        for name, value in network.state_dict().items()
        if name not in weights and value.data_ptr() in stored
    }
    return {**weights, **shared}


def _torch_forward(module: nn.Module, device: str, precision: str) -> Forward:
    def plain(tile: Any) -> Any:
        with torch.no_grad():
            return module(tile)

    def short(tile: Any) -> Any:
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            return module(tile)

    return short if precision == "bf16" else plain


@dataclass(frozen=True, slots=True, eq=False)
class OnnxSession:
    """An open ONNX file, with its device, its threads, and the errors that a run can raise."""

    session: Any
    device: str
    threads: int
    errors: tuple[type[BaseException], ...]


def open_session(path: Path, settings: EngineSettings) -> OnnxSession:
    """Open an ONNX file with ONNX Runtime on the CPU or an NVIDIA GPU.

    Raises
    ------
    ModelError
        If the file cannot be opened, or the GPU cannot be used.
    MissingExtraError
        If ONNX Runtime is not installed.
    """
    require_onnx()
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    errors = tuple(getattr(state, name) for name in _ORT_ERRORS if hasattr(state, name))
    device = _onnx_device(settings.device, onnxruntime.get_available_providers())
    threads = settings.threads or usual_threads()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    weights: dict[str, bytes] = {}
    for name in read_onnx(path).external:
        with open_plain(path.parent / name) as stream:
            weights[name] = stream.read()
    give = getattr(options, "add_external_initializers_from_files_in_memory", None)
    if (
        weights and give is not None
    ):  # otherwise it maps the file, and a truncated file crashes the process
        give(list(weights), list(weights.values()), [len(content) for content in weights.values()])
    providers: list[Any] = ["CPUExecutionProvider"]
    if device == "cuda":
        number = settings.device.partition(":")[2] or "0"
        providers.insert(0, (_CUDA, {"device_id": number}))
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    except (*errors, RuntimeError, ValueError) as error:
        raise ModelError(
            f"ONNX Runtime {onnxruntime.__version__} cannot open {path} ({first_line(error)}); "
            "copy the file again, or export the network for this version"
        ) from error
    if device == "cuda" and _CUDA not in session.get_providers():
        raise ModelError(
            f"ONNX Runtime cannot use the GPU for {path.name}; choose the device cpu, or install "
            "CUDA libraries that are compatible with this version of onnxruntime"
        )
    return OnnxSession(session, device, threads, errors)


def _with_onnxruntime(path: Path, settings: EngineSettings) -> NetworkRuntime:
    """Return the ONNX runtime for a file with one input."""
    opened = open_session(path, settings)
    session = opened.session
    taken = session.get_inputs()[0]
    if taken.type not in _FLOATS:
        raise ModelError(
            f"expected {path} to take single- or half-precision input, but it takes {taken.type}; "
            "export the network with float32 input"
        )

    def forward(tile: Any) -> Any:
        given = tile.to("cpu", _FLOATS[taken.type]).numpy()
        try:
            return torch.from_numpy(session.run(None, {taken.name: given})[0])
        except opened.errors as error:
            raise RuntimeError(first_line(error)) from error

    return NetworkRuntime(forward, "onnxruntime", opened.device, "cpu", opened.threads)


def _onnx_device(wanted: str, providers: list[str]) -> str:
    if wanted == "auto":
        return "cuda" if _CUDA in providers else "cpu"
    device = wanted.partition(":")[0]
    if device == "cpu" or (device == "cuda" and _CUDA in providers):
        return device
    raise ModelError(
        f"the device {wanted} was chosen, but this ONNX Runtime supports only "
        f"{', '.join(providers)}; choose auto or cpu, or install onnxruntime-gpu"
    )


def _with_openvino(
    kind: str, path: Path, spec: NetworkSpec, settings: EngineSettings
) -> NetworkRuntime:
    """Return OpenVINO's CPU runtime for a file; torch networks are translated first."""
    from napari_mamamia.segmentation.model.device import require_openvino

    require_openvino()
    from napari_mamamia.segmentation.model.openvino import (
        computed_precision,
        opened_file,
        translated,
    )

    if settings.device not in ("auto", "cpu"):
        raise ModelError(
            f"the device {settings.device} was chosen, but OpenVINO runs only on the CPU here; "
            "choose auto or cpu, or a format that torch runs"
        )
    shape = (1, len(spec.channels), *spec.patch)
    if kind in (ModelKind.OPENVINO, ModelKind.ONNX):
        forward = opened_file(path, shape, settings)
    else:
        forward = translated(_torch_module(kind, path, spec, "cpu"), path, shape, settings)
    precision = computed_precision(settings.precision)
    return NetworkRuntime(forward, "openvino", "cpu", "cpu", settings.threads, precision)


def _check_outputs(forward: Forward, spec: NetworkSpec, path: Path) -> Forward:
    """Return `forward` with a check of all outputs."""
    shape = (1, spec.heads, *spec.patch)

    def looked_at(tile: Any) -> Any:
        output = _run_forward(forward, tile, path)
        if isinstance(output, tuple | list | dict) or not torch.is_tensor(output):
            many = f"{len(output)} results" if hasattr(output, "__len__") else type(output).__name__
            raise ModelError(
                f"expected {path} to return one tensor for a tile, but it returns {many}; export "
                "the network with its last output only"
            )
        if tuple(output.shape) != shape:
            raise ModelError(
                f"expected {path} to return {' x '.join(map(str, shape))} numbers for a tile "
                "(batch, outputs, voxels), as in its recipe, but it returns "
                f"{' x '.join(map(str, output.shape))}; correct labels, output or patch in the "
                'section "network"'
            )
        output = output.float()
        if not bool(torch.isfinite(output).all()):
            raise ModelError(
                f"some outputs of {path} are NaN or infinite; the weights are damaged, or the "
                "input must be normalised as in training (recipe: normalise)"
            )
        _require_shares(output, spec, path)
        return output

    return looked_at


def _require_shares(found: Any, spec: NetworkSpec, path: Path) -> None:
    """Raise `ModelError` if outputs declared as probabilities are outside 0 to 1."""
    if spec.output not in (OutputKind.PROBABILITIES, OutputKind.LABEL_PROBABILITIES):
        return
    low, high = float(found.min()), float(found.max())
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        logits = OutputKind.LOGITS if spec.has_background else OutputKind.LABEL_LOGITS
        raise ModelError(
            f"expected {path} to return probabilities from 0 to 1, as in its recipe, but it "
            "returns "
            f'{low:.3g} to {high:.3g}; set "output": "{logits.value}" if these are logits'
        )


def _run_forward(forward: Callable[[Any], Any], tile: Any, path: Path) -> Any:
    try:
        return forward(tile)
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
        # Errors of memory are not reported here: `sum_tiles` frees memory and tries again.
        if isinstance(error, ModelError) or lacks_memory(error) or is_device_failure(error):
            raise
        raise ModelError(
            f"expected {path} to accept a tile of {' x '.join(map(str, tile.shape[1:]))} "
            "(channels, voxels), "
            f"but {first_line(error)}; set the patch and channels that were used for export in "
            'the section "network" of its recipe'
        ) from error


def first_line(error: BaseException) -> str:
    """Return the most informative line of an error message, the last one for TorchScript."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "TorchScript" in lines[0] else lines[0]
