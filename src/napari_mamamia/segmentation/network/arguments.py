"""Arguments and results of the steps of a torch.export graph, as its JSON writes them.

Source: torch 2.13, _export/serde/schema.py, Argument, ScalarType, MemoryFormat and Layout.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

__all__ = ["TYPES", "filled", "keep", "names_in"]

TYPES: Final = {
    1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64,
    6: torch.float16, 7: torch.float32, 8: torch.float64, 12: torch.bool, 13: torch.bfloat16,
}  # fmt: skip
_MEMORY: Final = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_STRIDED: Final = 7


def names_in(value: Mapping[str, Any]) -> set[str]:
    """Return the names of the values that an argument refers to."""
    ((kind, said),) = value.items()
    items = said if isinstance(said, list) else [said]
    if kind in ("as_tensor", "as_tensors"):
        return {str(item["name"]) for item in items}
    if kind in ("as_optional_tensor", "as_optional_tensors"):
        return {str(item["as_tensor"]["name"]) for item in items if "as_tensor" in item}
    if kind.startswith("as_sym_"):
        return {str(item["as_name"]) for item in items if "as_name" in item}
    return set()


def filled(value: Mapping[str, Any], values: Mapping[str, Any], tile: Any) -> Any:
    """Return an argument as a value that an operator takes."""
    ((kind, said),) = value.items()
    if kind in ("as_none", "as_layout"):
        if kind == "as_layout" and said != _STRIDED:
            raise ValueError("a tensor that is not dense")
        return None
    if kind == "as_tensor":
        return values[said["name"]]
    if kind == "as_tensors":
        return [values[item["name"]] for item in said]
    if kind in ("as_optional_tensor", "as_optional_tensors"):
        items = said if isinstance(said, list) else [said]
        found = [values[i["as_tensor"]["name"]] if "as_tensor" in i else None for i in items]
        return found if isinstance(said, list) else found[0]
    if kind.startswith("as_sym_"):
        return _numbers(said, values)
    return _plain(kind, said, tile)


def _numbers(said: Any, values: Mapping[str, Any]) -> Any:
    """Return a number that may depend on the input's extents, or a list of such."""
    if isinstance(said, list):
        return [_numbers(item, values) for item in said]
    return values[said["as_name"]] if "as_name" in said else next(iter(said.values()))


def _plain(kind: str, said: Any, tile: Any) -> Any:
    if kind == "as_scalar_type":
        return TYPES[said]
    if kind == "as_memory_format":
        return _MEMORY[said]
    if kind == "as_device":  # wherever it was exported, it runs where the tile is
        return tile.device
    if kind in ("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"):
        return said
    raise ValueError(f"an argument of the kind {kind}")


def keep(result: Any, outputs: Sequence[Mapping[str, Any]], values: dict[str, Any]) -> None:
    """Store what a step gives under the names that the file has for it."""
    if len(outputs) != 1:
        for output, one in zip(outputs, result, strict=True):
            keep(one, [output], values)
        return
    ((kind, said),) = outputs[0].items()
    if kind == "as_tensor":
        values[said["name"]] = result
    elif kind == "as_tensors":
        values.update({item["name"]: one for item, one in zip(said, result, strict=True)})
    elif kind.startswith("as_sym_"):
        values[said["as_name"]] = result
    elif kind != "as_none":
        raise ValueError(f"a result of the kind {kind}")
