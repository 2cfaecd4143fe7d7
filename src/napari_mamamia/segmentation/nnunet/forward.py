"""One fold's network as a function of tiles, in the precision that its device computes in."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.nnunet_tiles import Forward

__all__ = ["precision_text", "torch_forward"]


def torch_forward(network: nn.Module, device: str, precision: str) -> Forward:
    """Return the network as a function, with the precision that nnU-Net uses on a device.

    On CUDA that is torch's own mixed precision. bf16 on the processor is asked for by name only.
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
    """Return what provenance says of the precision: torch's own mixed one on CUDA."""
    if device == "cuda" and settings.precision == "fp32":
        return "fp16 autocast"
    return settings.precision
