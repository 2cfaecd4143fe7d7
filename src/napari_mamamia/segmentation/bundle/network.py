"""The network of a MONAI bundle: TorchScript, or a class of an allow-list with weights as data."""

import inspect
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import monai
import monai.networks.nets
import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.bundle.allowed import network_name
from napari_mamamia.segmentation.bundle.references import IN_A_ROOM, NumberType, understood
from napari_mamamia.segmentation.bundle.steps import Step
from napari_mamamia.segmentation.bundle.transforms import said_by_monai
from napari_mamamia.segmentation.network.script import read_script
from napari_mamamia.segmentation.nnunet.checkpoint import (
    DAMAGE,
    require_plain_zip,
    unsafe_globals,
)

__all__ = ["load_network"]

_INNER: Final = ("model", "state_dict", "network")
_PREFIX: Final = "module."
_COPY: Final = "copy the bundle again from where it came from"


def load_network(path: Path, step: Step | None, where: str) -> nn.Module:
    """Return the network with its weights, ready to predict, on the processor.

    Parameters
    ----------
    path
        ``models/model.ts`` or ``models/model.pt``.
    step
        The class and its arguments, for weights without a network; None where the config has none.
    where
        Names the config in messages.

    Raises
    ------
    ModelError
        If the file is damaged or wants to run something, the class is not in the allow-list, or the
        weights do not fit it.
    """
    if path.suffix == ".ts":
        return read_script(path)
    if step is None:
        raise ModelError(
            f"{where} should have network_def with the class of the network, since {path.name} "
            "holds weights only: complete the bundle, or export the network as models/model.ts"
        )
    network = _built(step, where)
    weights = _weights(path)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        said = "; ".join(line.strip() for line in str(error).splitlines()[1:4])
        raise ModelError(
            f"{path} should hold the weights of {step.name} as {where} describes it, but they do "
            f"not fit ({said}): {_COPY}"
        ) from error
    return network.eval()


def _built(step: Step, where: str) -> nn.Module:
    """Return the network without weights: MONAI's own class of an allowed name."""
    name = network_name(step, where)
    kind: Any = getattr(monai.networks.nets, name, None) if name else None
    if not inspect.isclass(kind):
        raise ModelError(
            f"{where}: {step.key} should be a known network of MONAI {monai.__version__}, got "
            f"{step.name}, which was not looked up: see which version the bundle was made for, or "
            "export the network as models/model.ts"
        )
    arguments = understood(dict(step.arguments), where)
    if any(isinstance(value, NumberType) for value in arguments.values()):
        raise ModelError(f"{where}: {step.key} takes no types of numbers: correct the bundle")
    with said_by_monai(f"{where}: {step.key} ({name})"):
        network: nn.Module = kind(**arguments)
    return network


def _weights(path: Path) -> Mapping[str, Any]:
    """Return the table of tensors in a file: the file's own, or that under a usual name."""
    found = _loaded(path)
    for name in _INNER:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    if not isinstance(found, Mapping) or not all(torch.is_tensor(v) for v in found.values()):
        raise ModelError(
            f"{path} should hold a network's weights by name, but holds other things: {_COPY}"
        )
    if found and all(str(name).startswith(_PREFIX) for name in found):
        return {str(name).removeprefix(_PREFIX): value for name, value in found.items()}
    return found


def _loaded(path: Path) -> Any:
    require_plain_zip(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = ", ".join(unsafe_globals(path)) or "something that is not told"
        raise ModelError(
            f"{path} should hold numbers only, but loading it would call {wanted}: it was not "
            f"opened and nothing was run. Ask its author for a clean file, or {IN_A_ROOM}"
        ) from error
    except DAMAGE as error:
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelError(
            f"{path} should be a whole file of weights, but it is damaged or of another kind "
            f"({said}): {_COPY}"
        ) from error
