"""Networks that torch runs: TorchScript files, and weights (safetensors) put into a network.

TorchScript is a language of its own: loading and running it runs no Python. Of what it can do, the
two operators that touch files are looked for in its text first, and a file that names one is not
opened. What is not promised: that torch's own reader and its operators have no faults.
"""

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.network_spec import NetworkSpec
from napari_mamamia.segmentation.nnunet_checkpoint import Checkpoint
from napari_mamamia.segmentation.nnunet_network import build_network, put_weights

__all__ = ["read_script", "read_weights"]

_TOUCHES_FILES: Final = re.compile(r"\b(save|from_file)\s*\(")
"""Source: every operator of torch 2.13 was searched for arguments that name a file."""

_OPERATORS: Final = re.compile(r"\bops\s*\.\s*(\w+)\s*\.")
_KNOWN: Final = frozenset(("aten", "prim", "prims", "quantized", "prepacked", "mkldnn_prepacked"))
_COPY: Final = "copy it again from where the model came from"


def read_script(path: Path, device: str) -> nn.Module:
    """Return the network of a TorchScript file, its text looked at first.

    Raises
    ------
    ModelError
        If the file is damaged, names an operator that touches files, or one that torch lacks.
    """
    refused = _refused(path)
    if refused:
        raise ModelError(
            f"{path} should compute only, but calls {', '.join(refused)}: it was not opened and "
            "nothing was run; ask its author for a network without them"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that torch advises torch.export instead
            network = torch.jit.load(path, map_location=device)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(
            f"{path} should be a whole TorchScript file, but torch {torch.__version__} cannot "
            f"open it ({_last_line(error)}): {_COPY}, or export it with this version of torch"
        ) from error
    if hasattr(network, "training"):  # frozen networks have no such thing
        network.eval()
    loaded: nn.Module = network
    return loaded


def read_weights(path: Path, spec: NetworkSpec) -> nn.Module:
    """Return the network that a recipe names, with the weights of a safetensors file.

    Raises
    ------
    ModelError
        If the file is damaged, the network is not on the list of `nnunet_network`, or the weights
        do not fit it.
    """
    if spec.architecture is None:
        raise ModelError(f'{path} holds weights only: say "architecture" in its recipe')
    try:
        weights: dict[str, Any] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(
            f"{path} should be a whole safetensors file, but it is damaged ({error}): {_COPY}"
        ) from error
    network = build_network(spec.architecture, len(spec.channels), spec.heads, "", str(path))
    put_weights(network, Checkpoint(path, _with_shared(network, weights), "", "", ()))
    return network


def _with_shared(network: nn.Module, weights: dict[str, Any]) -> dict[str, Any]:
    """Return weights also under the further names that the network has for the same tensor."""
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


def _refused(path: Path) -> list[str]:
    """Return what a TorchScript file calls and should not, read from its text."""
    try:
        with zipfile.ZipFile(path) as archive:
            texts = [
                archive.read(name).decode("utf-8", errors="replace")
                for name in archive.namelist()
                if "/code/" in name and name.endswith(".py")
            ]
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        raise ModelError(
            f"{path} should be a whole TorchScript file, but {error}: {_COPY}"
        ) from error
    found = {f"torch.{name}" for text in texts for name in _TOUCHES_FILES.findall(text)}
    spaces = {name for text in texts for name in _OPERATORS.findall(text)}
    return sorted(found | {f"operators of {name}" for name in spaces - _KNOWN})


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
