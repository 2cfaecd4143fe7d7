"""Program that opens a rejected checkpoint inside the sandbox.

Unpickling such a file can run any program, which is the reason for the sandbox. This module is
copied into the sandbox as a file and called by `runner`, in a Python with torch and safetensors; it
imports nothing from napari_mamamia. Only a file of plain numbers is taken from the sandbox; this
file is also untrusted, and `convert` checks it.
"""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import torch
from safetensors.torch import save_file

FORMAT: Final = "napari-mamamia nnU-Net checkpoint"
"""Value of ``format`` in the header of a converted checkpoint."""
RESULT: Final = "weights.safetensors"
"""Name of the file written to the sandbox's output folder."""


class _StandIn:
    """Replacement for a class that is not installed, or whose own code failed."""

    def __init__(self, *given: object, **named: object) -> None:
        """Accept any arguments from the file."""

    def __setstate__(self, state: object) -> None:
        """Ignore any state from the file."""


# Not the reader written in C, whose methods cannot be overridden.
class _Unpickler(pickle._Unpickler):
    """Python's unpickler, changed to continue after a function called by the file fails."""

    stack: list[Any]
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        """Return the object that the file refers to, or `_StandIn` if it is not installed."""
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return _StandIn

    def load_reduce(self) -> None:
        """Call a function named in the file, as the pickle format defines."""
        arguments, function = self.stack.pop(), self.stack[-1]
        try:
            self.stack[-1] = function(*arguments)
        except BaseException:  # noqa: BLE001 - a foreign call's failure must not hide the numbers
            self.stack[-1] = _StandIn()

    dispatch[pickle.REDUCE[0]] = load_reduce


def main(order: Mapping[str, Any]) -> None:
    """Write the numbers of the checkpoint ``order["given"]`` to the folder ``order["output"]``."""
    # Everything that torch needs from a pickle module.
    reader = SimpleNamespace(Unpickler=_Unpickler, load=pickle.load, __name__="pickle")
    state = torch.load(order["given"], map_location="cpu", weights_only=False, pickle_module=reader)
    weights = state["network_weights"]
    odd = [str(name) for name, value in weights.items() if not torch.is_tensor(value)]
    if odd or not weights:
        raise TypeError(
            f"expected network_weights to hold only tensors, but {odd[:3]} are not tensors"
        )
    tensors, same = distinct(weights)
    arguments = state.get("init_args")
    configuration = arguments.get("configuration", "") if isinstance(arguments, dict) else ""
    axes = state.get("inference_allowed_mirroring_axes") or ()
    text = header(str(state.get("trainer_name", "")), str(configuration), tuple(axes), same)
    save_file(tensors, Path(order["output"]) / RESULT, text)


def distinct(weights: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the tensors without duplicates, and a mapping from duplicate names to first names.

    nnU-Net's networks list most of their weights two or three times. Names are in the order of the
    input.
    """
    tensors: dict[str, Any] = {}
    same: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for name, value in weights.items():
        place = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride())
        if value.numel() and place in first:
            same[str(name)] = first[place]
            continue
        first[place] = str(name)
        tensors[str(name)] = value.detach().clone(memory_format=torch.contiguous_format)
    return tensors, same


def header(
    trainer: str, configuration: str, axes: tuple[Any, ...], same: Mapping[str, str], **more: str
) -> dict[str, str]:
    """Return the header of a safetensors file as a mapping of names to strings."""
    return {
        "format": FORMAT,
        "version": "1",
        "trainer": trainer,
        "configuration": configuration,
        "mirror_axes": json.dumps([int(axis) for axis in axes]),
        "same": json.dumps(dict(same)),
        **more,
    }
