"""Redirect CUDA requests to the CPU, when installed in a sandbox as ``sitecustomize``.

Python imports this module at start-up, in the program and in its child processes. After torch is
imported, each call that names a CUDA device uses the CPU instead; ``torch.cuda.is_available`` still
returns the true value. The module uses only the standard library and imports nothing from
napari_mamamia.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

_PROCESSOR = "cpu"
_UNKNOWN_MEMORY = 8 * 10**9


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Import hook that patches torch once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return torch's own module spec, with a loader that patches torch for the CPU."""
        if fullname != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        torch_spec = next((spec for spec in specs if spec is not None), None)
        if torch_spec is None or torch_spec.loader is None:
            return torch_spec
        load = torch_spec.loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            put_on_processor(module)

        torch_spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return torch_spec


def put_on_processor(torch: Any) -> None:
    """Patch torch so that every call that names a CUDA device uses the CPU."""
    from torch.overrides import TorchFunctionMode

    def is_device(value: Any) -> bool:
        return isinstance(value, (str, torch.device))

    def processor(value: Any) -> Any:
        return _PROCESSOR if is_device(value) and str(value).startswith("cuda") else value

    class OnProcessor(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function == tensor.pin_memory:
                return args[0]
            if function in (tensor.cuda, tensor.cpu):
                return (
                    args[0].clone()
                )  # A copy, as from the memory of a card: changes to it do not change the original.
            moved = [processor(value) for value in args]
            named = {name: processor(value) for name, value in (kwargs or {}).items()}
            answer = function(*moved, **named)
            has_moved = function == tensor.to and any(map(is_device, [*args, *named.values()]))
            return answer.clone() if has_moved and answer is args[0] else answer

    tensor = torch.Tensor
    OnProcessor().__enter__()
    name = "_bootstrap_inner"  # Subclasses of Thread often override Thread.run.
    begin = getattr(threading.Thread, name)

    def begun(thread: threading.Thread) -> None:
        with OnProcessor():
            begin(thread)

    setattr(threading.Thread, name, begun)
    _open_on_processor(torch, processor)
    _answer_for_no_card(torch.cuda)


def _open_on_processor(torch: Any, processor: Any) -> None:
    """Patch torch to load tensors saved on a GPU onto the CPU."""
    for owner in (torch, torch.jit):
        owner.load = _map_load(owner.load, processor)


def _map_load(load: Any, processor: Any) -> Any:
    def loaded(file: Any, map_location: Any = None, *args: Any, **named: Any) -> Any:
        plain = map_location is None or processor(map_location) == _PROCESSOR
        if isinstance(map_location, dict):
            plain = any(
                processor(map_location) == _PROCESSOR for map_location in map_location.values()
            )
        return load(file, _PROCESSOR if plain else map_location, *args, **named)

    return loaded


def _answer_for_no_card(cuda: Any) -> None:
    """Patch GPU queries to return CPU values, and GPU commands to do nothing."""
    memory = _UNKNOWN_MEMORY
    if hasattr(os, "sysconf"):  # not on Windows
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    card = SimpleNamespace(
        name=_PROCESSOR, total_memory=memory, major=0, minor=0, multi_processor_count=1
    )
    for name in ("set_device", "synchronize", "empty_cache", "init", "reset_peak_memory_stats"):
        setattr(cuda, name, lambda *_args, **_named: None)
    cuda.current_device = lambda: 0
    cuda.get_device_name = lambda *_: card.name
    cuda.get_device_capability = lambda *_: (card.major, card.minor)
    cuda.get_device_properties = lambda *_: card
    cuda.mem_get_info = lambda *_: (card.total_memory, card.total_memory)
    cuda.device = lambda *_: nullcontext()


if __name__ in ("sitecustomize", "__main__"):
    sys.meta_path.insert(0, _AfterTorch())
