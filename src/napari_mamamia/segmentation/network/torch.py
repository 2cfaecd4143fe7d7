"""Weights (safetensors) put into a network that a recipe names, from nnU-Net's list."""

from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint

_COPY: Final = "copy it again from where the model came from"


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
