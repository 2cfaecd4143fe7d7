"""Run networks saved by torch.export (``.pt2``) step by step, as data.

torch's own loader is not used, because a file could make it run any program: it unpickles sample
inputs and constants, evaluates expressions and guards, looks up dotted names below ``torch`` and
writes Python code with names from the file. Here, the graph is read as JSON, weights are read as
bytes, and each step calls one ATen operator. Sample inputs, guards and metadata are not read.
Source: torch 2.13, _export/serde/schema.py (version 8) and export/pt2_archive.
"""

import operator
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.segmentation.model.nnunet_files import require_stored

# Arguments and results of the steps of a torch.export graph, as in its JSON. Source: torch 2.13,
# _export/serde/schema.py, Argument, ScalarType, MemoryFormat and Layout.

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
    """Return the names of the graph values that an argument refers to."""
    ((kind, content),) = value.items()
    items = content if isinstance(content, list) else [content]
    if kind in ("as_tensor", "as_tensors"):
        return {str(item["name"]) for item in items}
    if kind in ("as_optional_tensor", "as_optional_tensors"):
        return {str(item["as_tensor"]["name"]) for item in items if "as_tensor" in item}
    if kind.startswith("as_sym_"):
        return {str(item["as_name"]) for item in items if "as_name" in item}
    return set()


def filled(value: Mapping[str, Any], values: Mapping[str, Any], tile: Any) -> Any:
    """Return an argument of the graph as a value that can be passed to an operator."""
    ((kind, content),) = value.items()
    if kind in ("as_none", "as_layout"):
        if kind == "as_layout" and content != _STRIDED:
            raise ValueError("only dense tensors are supported")
        return None
    if kind == "as_tensor":
        return values[content["name"]]
    if kind == "as_tensors":
        return [values[item["name"]] for item in content]
    if kind in ("as_optional_tensor", "as_optional_tensors"):
        items = content if isinstance(content, list) else [content]
        tensors = [values[i["as_tensor"]["name"]] if "as_tensor" in i else None for i in items]
        return tensors if isinstance(content, list) else tensors[0]
    if kind.startswith("as_sym_"):
        return _read_numbers(content, values)
    return _read_plain(kind, content, tile)


def _read_numbers(said: Any, values: Mapping[str, Any]) -> Any:
    """Return a number or a list of numbers, which may depend on the size of the input."""
    if isinstance(said, list):
        return [_read_numbers(item, values) for item in said]
    return values[said["as_name"]] if "as_name" in said else next(iter(said.values()))


def _read_plain(kind: str, said: Any, tile: Any) -> Any:
    if kind == "as_scalar_type":
        return TYPES[said]
    if kind == "as_memory_format":
        return _MEMORY[said]
    if kind == "as_device":  # whatever device it was exported on, it runs on that of the tile
        return tile.device
    if kind in ("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"):
        return said
    raise ValueError(f"arguments of type {kind} are not supported")


def keep(result: Any, outputs: Sequence[Mapping[str, Any]], values: dict[str, Any]) -> None:
    """Store the results of a step under their names in the graph."""
    if len(outputs) != 1:
        for output, one in zip(outputs, result, strict=True):
            keep(one, [output], values)
        return
    ((kind, content),) = outputs[0].items()
    if kind == "as_tensor":
        values[content["name"]] = result
    elif kind == "as_tensors":
        values.update({item["name"]: one for item, one in zip(content, result, strict=True)})
    elif kind.startswith("as_sym_"):
        values[content["as_name"]] = result
    elif kind != "as_none":
        raise ValueError(f"results of type {kind} are not supported")


_SCHEMA: Final = 8
_ATEN: Final = "torch.ops.aten."
_TOUCH_FILES: Final = frozenset(("from_file", "save"))
"""Operators that read or write files.

Source: every operator of torch 2.13 was searched for arguments that name a file.
"""

_ON_NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    f"_operator.{name}": getattr(operator, name)
    for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "getitem",
                 "eq", "ne", "lt", "le", "gt", "ge")
}  # fmt: skip
_AGAIN: Final = (
    "export the network again with torch.export.export and torch.export.save of a recent torch "
    "(2.13 is tested), after model.eval(), or export it to ONNX"
)

Step = tuple[
    Callable[..., Any], tuple[tuple[str, Any, bool], ...], tuple[Any, ...], tuple[str, ...]
]


class ExportedNetwork(nn.Module):  # type: ignore[misc]  # torch is Any to mypy
    """A graph of ATen operators with its weights; create it with `read_exported`.

    `input_shape` contains None for a variable size. `forward` takes and returns one tensor.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        weights: Mapping[str, Any],
        given: tuple[str, str],
        input_shape: tuple[int | None, ...],
    ) -> None:
        super().__init__()
        self._steps = tuple(steps)
        self._names = tuple(weights)
        for number, value in enumerate(weights.values()):
            # By number: the file's names may hold dots, which torch does not allow in a buffer's
            # name.
            self.register_buffer(f"weight_{number}", value)
        self._input, self._output = given
        self.input_shape = input_shape

    def forward(self, tile: Any) -> Any:
        """Return the output of the network for a batch.

        Values are released after the last step that needs them.
        """
        values = {name: getattr(self, f"weight_{n}") for n, name in enumerate(self._names)}
        values[self._input] = tile
        for call, arguments, outputs, spent in self._steps:
            ordered = [filled(value, values, tile) for _, value, named in arguments if not named]
            by_name = {
                name: filled(value, values, tile) for name, value, named in arguments if named
            }
            keep(call(*ordered, **by_name), outputs, values)
            for name in spent:
                values.pop(name, None)
        return values[self._output]


@reads("a complete torch.export file", "copy the file again from its source", ModelError)
def read_exported(path: Path) -> ExportedNetwork:
    """Return the network in a ``.pt2`` file without executing anything in it.

    Raises
    ------
    ModelError
        If the file is damaged or of an unsupported version, contains pickled objects, or has a step
        that is not an ATen operator.
    """
    try:
        with open_zip(path) as archive:
            require_stored(archive, path)
            return _read_network(archive, path)
    except (
        zipfile.BadZipFile, OSError, KeyError, ValueError, TypeError, IndexError, AttributeError,
        RuntimeError, EOFError, NotImplementedError, RecursionError,
    ) as error:  # fmt: skip
        if isinstance(error, ModelError):
            raise
        reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        raise ModelError(
            f"expected {path} to be a complete torch.export file, but it cannot be read "
            f"({reason}); copy the file again, or {_AGAIN}"
        ) from error


def _read_network(archive: zipfile.ZipFile, path: Path) -> ExportedNetwork:
    names = archive.namelist()
    top = names[0].split("/")[0]
    model = _read_json(archive, f"{top}/models/model.json", path)
    if model["schema_version"]["major"] != _SCHEMA:
        raise ModelError(
            f"expected {path} to have version {_SCHEMA} of torch.export's format, but it has "
            f"{model['schema_version']['major']}; {_AGAIN}"
        )
    graph, signature = model["graph_module"]["graph"], model["graph_module"]["signature"]
    stored = {
        **_read_tensors(archive, f"{top}/data/weights", "weights", path),
        **_read_tensors(archive, f"{top}/data/constants", "constants", path),
    }
    weights, user = _read_inputs(signature["input_specs"], stored, path)
    output = _find_output(signature["output_specs"], path)
    refused = sorted(
        {t for t in (n["target"] for n in graph["nodes"]) if _find_operator(t) is None}
    )
    if refused:
        raise ModelError(
            f"expected {path} to consist of ATen operators only, but it has "
            f"{', '.join(map(repr, refused[:5]))}; nothing was run; export the network without "
            "them"
        )
    sizes = graph["tensor_values"][user]["sizes"]
    shape = tuple(int(n["as_int"]) if "as_int" in n else None for n in sizes)
    return ExportedNetwork(_read_steps(graph["nodes"], output), weights, (user, output), shape)


def _read_inputs(
    specs: Sequence[Mapping[str, Any]], stored: Mapping[str, Any], path: Path
) -> tuple[dict[str, Any], str]:
    """Return the weights by name in the graph, and the name of the only input."""
    keys = {
        "parameter": "parameter_name",
        "buffer": "buffer_name",
        "tensor_constant": "tensor_constant_name",
    }
    weights, users = {}, []
    for spec in specs:
        ((kind, content),) = spec.items()
        if kind in keys:
            weights[str(content["arg"]["name"])] = stored[content[keys[kind]]]
        elif kind == "user_input":
            users.append(str(content["arg"]["as_tensor"]["name"]))
        else:
            raise ModelError(
                f"expected {path} to need only tensors, but it needs a {kind}; nothing was read; "
                f"{_AGAIN}"
            )
    if len(users) != 1:
        raise ModelError(f"expected {path} to take one tensor, but it takes {len(users)}; {_AGAIN}")
    return weights, users[0]


def _find_output(specs: Sequence[Mapping[str, Any]], path: Path) -> str:
    kinds = [next(iter(spec)) for spec in specs]
    if kinds != ["user_output"]:
        raise ModelError(
            f"expected {path} to return one tensor and change no input, but it returns "
            f"{', '.join(kinds)}; {_AGAIN}"
        )
    return str(specs[0]["user_output"]["arg"]["as_tensor"]["name"])


def _read_tensors(archive: zipfile.ZipFile, folder: str, what: str, path: Path) -> dict[str, Any]:
    """Return the stored tensors by name; several tensors may share one file."""
    config = _read_json(archive, f"{folder}/model_{what}_config.json", path)["config"]
    files: dict[str, Any] = {}
    tensors = {}
    for name, entry in config.items():
        file = str(entry["path_name"])
        if entry["use_pickle"] or not file.startswith(("weight_", "tensor_")):
            raise ModelError(
                f"expected {path} to contain only numbers, but {name!r} is a pickled object "
                f"({file}), which could run any program; it was not opened; {_AGAIN}"
            )
        meta = entry["tensor_meta"]
        kind = TYPES[meta["dtype"]]
        if file not in files:
            # torch needs writable memory, which bytes are not.
            data = bytearray(archive.read(f"{folder}/{file}"))
            files[file] = torch.frombuffer(data, dtype=kind) if data else torch.zeros(0, dtype=kind)
        sizes, strides = ([int(n["as_int"]) for n in meta[key]] for key in ("sizes", "strides"))
        start = int(meta["storage_offset"]["as_int"])
        tensors[name] = torch.as_strided(files[file], sizes, strides, start)
    return tensors


def _read_steps(nodes: Sequence[Mapping[str, Any]], output: str) -> list[Step]:
    """Return the steps of the graph, each with the names that no later step uses."""
    steps: list[Step] = []
    needed = {output}
    for node in reversed(nodes):
        arguments = tuple(
            (str(item["name"]), item["arg"], item.get("kind", 1) == 2) for item in node["inputs"]
        )
        used = {name for _, value, _ in arguments for name in names_in(value)}
        call = _find_operator(node["target"])
        if call is not None:
            steps.append((call, arguments, tuple(node["outputs"]), tuple(used - needed)))
        needed |= used
    return steps[::-1]


def _find_operator(target: str) -> Callable[..., Any] | None:
    """Return the operator of a step, or None if it is neither an ATen nor a number operator."""
    if target in _ON_NUMBERS:
        return _ON_NUMBERS[target]
    parts = target.removeprefix(_ATEN).split(".")
    fits = target.startswith(_ATEN) and len(parts) == 2 and all(p.isidentifier() for p in parts)
    if not fits or parts[0].startswith("__") or parts[0] in _TOUCH_FILES:
        return None
    packet = getattr(torch.ops.aten, parts[0], None)
    operator = getattr(packet, parts[1], None)
    return operator if isinstance(operator, torch._ops.OpOverload) else None


def _read_json(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    if name not in archive.namelist():
        raise ModelError(
            f"expected {path} to contain {name.partition('/')[2]}, which recent versions of torch "
            f"save, but it is missing; {_AGAIN}"
        )
    return dict(parsed_json(archive.read(name).decode("utf-8")))
