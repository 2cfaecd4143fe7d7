"""Read the shapes and the recipe section in a network's file.

The file is read as data: JSON, XML and the bytes of ONNX; nothing is built and nothing is run.
"""

import re
import zipfile
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import NetworkSpec, network_from
from napari_mamamia.segmentation.model.nnunet_files import require_stored
from napari_mamamia.segmentation.network.onnx import Shape, read_onnx

_HEADER_BYTES: Final = 100_000_000  # Source: safetensors, README, "Format": the header's limit
_METADATA_KEY: Final = "mamamia_network"
_PARAMETER: Final = re.compile(r'<layer\b[^>]*type="Parameter"[^>]*>\s*<data\b[^>]*shape="([^"]*)"')


@reads("a readable network", "copy it again from its source", ModelError)
def shapes_of(path: Path, kind: str) -> tuple[Shape, Shape]:
    """Return the shapes of a network's input and output, () if its file does not state them.

    Parameters
    ----------
    path
        Path of the file or folder.
    kind
        The kind of model.

    Raises
    ------
    ModelError
        If an ONNX file is damaged, or has more than one input or output.
    """
    if kind is ModelKind.ONNX:
        facts = read_onnx(path)
        if len(facts.inputs) != 1 or len(facts.outputs) != 1:
            raise ModelError(
                f"expected {path} to have one input and one output, but it has "
                f"{len(facts.inputs)} and {len(facts.outputs)}; export the network without the "
                "others"
            )
        return facts.inputs[0][1], facts.outputs[0][1]
    if kind is ModelKind.OPENVINO:
        with open_plain(path) as stream:
            text = stream.read().decode("utf-8", errors="replace")
        parameters = _PARAMETER.findall(text)
        return (_read_extents(parameters[0]) if len(parameters) == 1 else ()), ()
    if kind is ModelKind.EXPORTED:
        return _exported_shape(path), ()
    return (), ()


@reads("a readable network", "copy it again from its source", ModelError)
def own_spec(path: Path, kind: str) -> NetworkSpec | None:
    """Return the spec in the header of a safetensors file, None if it has none.

    Parameters
    ----------
    path
        Path of the file or folder.
    kind
        The kind of model.

    Raises
    ------
    ModelError
        If the spec is invalid, or the header is damaged.
    """
    if kind is not ModelKind.SAFETENSORS:
        return None
    text = _read_header(path).get("__metadata__", {}).get(_METADATA_KEY)
    if text is None:
        return None
    try:
        content = parsed_json(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{path}: expected {_METADATA_KEY} of its header to be the section of a recipe, but "
            f"{error}; write a recipe next to it"
        ) from error
    return network_from(content, f"{_METADATA_KEY} of {path}")


def shape_text(shape: Shape | None) -> str:
    """Return a shape as text, such as "1 x 2 x any x any x any"."""
    return " x ".join("any" if n is None else str(n) for n in shape) if shape else "any shape"


def _read_extents(text: str) -> Shape:
    numbers = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(int(n) if n.isdigit() else None for n in numbers)


def _exported_shape(path: Path) -> Shape:
    """Return the extents of the one input of a torch.export file, read from its JSON."""
    try:
        with open_zip(path) as archive:
            require_stored(archive, path)
            name = next(n for n in archive.namelist() if n.endswith("/models/model.json"))
            module = parsed_json(archive.read(name).decode("utf-8"))["graph_module"]
        users = [s["user_input"] for s in module["signature"]["input_specs"] if "user_input" in s]
        values = module["graph"]["tensor_values"]
        sizes = values[users[0]["arg"]["as_tensor"]["name"]]["sizes"]
        return tuple(int(n["as_int"]) if "as_int" in n else None for n in sizes)
    except (
        zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, IndexError, StopIteration,
        RecursionError, NotImplementedError,
    ):  # fmt: skip
        return ()  # the reader reports the error when the network is loaded


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a safetensors file: eight bytes of length, then JSON."""
    try:
        with open_plain(path) as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = parsed_json(stream.read(min(length, _HEADER_BYTES)).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"expected {path} to be a complete safetensors file, but its header cannot be read "
            f"({error}); copy it again"
        ) from error
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise ModelError(f"expected {path} to have a table as its header; copy the file again")
    return header
