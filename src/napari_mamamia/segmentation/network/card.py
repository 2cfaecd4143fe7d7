"""Card, files, shapes and recipe of a single-file network, read before it is loaded.

Everything is read as data (JSON, XML, the bytes of ONNX). No network is built or run, and torch is
not needed.
"""

import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Setting
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_text, summed
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind, network_names
from napari_mamamia.segmentation.model.network_spec import NetworkSpec, network_from
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles, require_stored
from napari_mamamia.segmentation.model.recipe import recipe_from
from napari_mamamia.segmentation.network.onnx import Shape, read_onnx

_HEADER_BYTES: Final = 100_000_000  # Source: safetensors, README, "Format": the header's limit
_METADATA_KEY: Final = "mamamia_network"
_RECIPE: Final = "mamamia_model.json"
_EXAMPLE: Final = (
    '"network": {"channels": ["before contrast", "after"], "labels": {"tumour": 1}, '
    '"patch": [64, 128, 128], "output": "logits"}'
)


_PARAMETER: Final = re.compile(r'<layer\b[^>]*type="Parameter"[^>]*>\s*<data\b[^>]*shape="([^"]*)"')


@reads("a readable network", "copy the file again from its source", ModelError)
def shapes_of(path: Path, kind: str) -> tuple[Shape, Shape]:
    """Return the shapes of a network's input and output; () for a shape not in the file.

    Parameters
    ----------
    path
        The path of the file.
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
                f"{len(facts.inputs)} and {len(facts.outputs)}; export the network with only one "
                "of each"
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


@reads("a readable network", "copy the file again from its source", ModelError)
def own_spec(path: Path, kind: str) -> NetworkSpec | None:
    """Return the network description in the header of a safetensors file, or None.

    Parameters
    ----------
    path
        The path of the file.
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
            f"expected {_METADATA_KEY} in the header of {path} to be a section of a recipe, but "
            f"{error}; write a recipe next to the file"
        ) from error
    return network_from(content, f"{_METADATA_KEY} of {path}")


def shape_text(shape: Shape | None) -> str:
    """Return a shape as text, such as "1 x 2 x any x any x any"."""
    return " x ".join("any" if n is None else str(n) for n in shape) if shape else "any shape"


def _read_extents(text: str) -> Shape:
    numbers = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(int(n) if n.isdigit() else None for n in numbers)


def _exported_shape(path: Path) -> Shape:
    """Return the shape of the only input of a torch.export file, read from the JSON inside it."""
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
    """Return the JSON header of a safetensors file, which follows eight bytes with its length."""
    try:
        with open_plain(path) as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = parsed_json(stream.read(min(length, _HEADER_BYTES)).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"expected {path} to be a complete safetensors file, but its header cannot be read "
            f"({error}); copy the file again"
        ) from error
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise ModelError(
            f"the header of {path} is not an object with named values; copy the file again"
        )
    return header


@dataclass(frozen=True, slots=True)
class NetworkFiles:
    """The files of a network as (name, bytes), with the main file first.

    `missing` lists the reasons why the network cannot be run, as in `ModelCard.missing`.
    `has_recipe` states whether there is a recipe next to the network.
    """

    sizes: tuple[tuple[str, int], ...]
    missing: tuple[str, ...] = ()
    has_recipe: bool = False


def find_network(files: ModelFiles, kind: str) -> NetworkFiles:
    """Find the files of a network of this `kind` at a path.

    Parameters
    ----------
    files
        The files of the model.
    kind
        The kind of model.
    """
    if files.is_zip:
        message = (
            f"expected the network ({kind}) in {files.path} to be unpacked, but it is in a zip; "
            "unpack the zip and choose its folder"
        )
        return NetworkFiles((), (message,))
    names = network_names(files)
    folder = files.path if files.path.is_dir() else files.path.parent
    if len(names) > 1:
        message = (
            f"expected {files.path} to contain one network, but found {len(names)}: "
            f"{', '.join(names[:5])}. Choose one of these files; each needs its own folder for "
            "its recipe"
        )
        return NetworkFiles(tuple(s for s in files.sizes if s[0] in names), (message,))
    path = folder / names[0]
    sizes = [(names[0], path.stat().st_size)]
    missing: tuple[str, ...] = ()
    has_recipe = False
    try:
        for name in list_weight_files(path, kind):
            sizes.append((name, (folder / name).stat().st_size))
        has_recipe = _has_recipe(files, folder)
    except ModelError as error:
        missing = (str(error),)
    return NetworkFiles(tuple(sizes), missing, has_recipe)


def network_path(path: Path, name: str) -> Path:
    """Return the path of one file of a model.

    Parameters
    ----------
    path
        The path of the model's file or folder.
    name
        The name of the file.
    """
    return path / name if path.is_dir() else path.parent / name


def fitted_spec(spec: NetworkSpec, path: Path, kind: str) -> NetworkSpec:
    """Return a recipe's network description, completed with information from the network file.

    Parameters
    ----------
    spec
        Input and output of the network.
    path
        The path of the file.
    kind
        The kind of model.

    Raises
    ------
    ModelError
        If the spec and the file contradict each other, or neither specifies the patch.
    """
    taken, given = shapes_of(path, kind)
    _require_channels(spec, taken, given, path)
    patch = spec.patch
    extents = taken[2:] if taken else ()
    if not patch:
        sizes = tuple(n for n in extents if n is not None)
        if len(sizes) != len(extents) or len(sizes) not in (2, 3):
            raise ModelError(
                f"expected {path} or its recipe to define the size of a tile, but neither does "
                "(the file takes "
                f'{shape_text(taken)}); set "patch" in the section "network" of its recipe'
            )
        return replace(spec, patch=sizes)
    if extents and (
        len(extents) != len(patch) or any(a not in (None, b) for a, b in zip(extents, patch))  # noqa: B905
    ):
        raise ModelError(
            f"expected the recipe's patch to be the size that {path} takes, {shape_text(extents)} "
            f"(fixed when it was exported), but it is {' x '.join(map(str, patch))} voxels; "
            "correct the patch, or export the network with a variable size"
        )
    if kind is ModelKind.SAFETENSORS and spec.architecture is None:
        raise ModelError(
            f"{path} contains weights without a network; specify the network's class and "
            "arguments as "
            '"architecture" in the section "network" of the recipe, as in nnU-Net\'s '
            "plans.json"
        )
    if kind is not ModelKind.SAFETENSORS and spec.architecture is not None:
        raise ModelError(
            f'{path} contains the network itself; remove "architecture" from its recipe'
        )
    return spec


def without_recipe(path: Path, kind: str) -> str:
    """Return a sentence that lists what a recipe for this network must contain.

    Parameters
    ----------
    path
        The path of the file.
    kind
        The kind of model.
    """
    built = ', and "architecture" as in nnU-Net\'s plans' if _is_bare(kind) else ""
    return (
        f"{path} is a network ({kind}) that does not describe its input and output; write a "
        f'recipe ({_RECIPE}) next to it with the section "network", which contains the names of '
        "the "
        f"channels, the labels with their values, the size of a tile, and the meaning of the "
        f"outputs{built}, for example {_EXAMPLE}"
    )


def _is_bare(kind: str) -> bool:
    return kind is ModelKind.SAFETENSORS


def _has_recipe(files: ModelFiles, folder: Path) -> bool:
    """Return whether a recipe is next to the network and no other network is in the folder."""
    if files.path.is_dir():
        return _RECIPE in files.names
    if not (folder / _RECIPE).is_file():
        return False
    names = [file.name for file in sorted(folder.iterdir()) if file.is_file()]
    beside = ModelFiles(folder, False, tuple((name, 0) for name in names))
    others = set(network_names(beside)) - {files.path.name}
    if others:
        raise ModelError(
            f"expected {files.path} to be the only network in its folder, but the folder also "
            f"contains {', '.join(sorted(others)[:3])}, so that it is not clear which network the "
            "recipe describes; put each network with its recipe in its own folder"
        )
    return True


def list_weight_files(path: Path, kind: str) -> list[str]:
    """Return the names of the files next to a network that contain its weights.

    Raises
    ------
    ModelError
        If a file is missing or outside the folder, or an ONNX file has custom operators.
    """
    if kind is ModelKind.OPENVINO:
        weights = path.with_suffix(".bin")
        if not weights.is_file():
            raise ModelError(
                f"expected the weights {weights.name} of {path} to be next to it, but they are "
                "missing; copy that file too"
            )
        return [weights.name]
    if kind is not ModelKind.ONNX:
        return []
    facts = read_onnx(path)
    if facts.domains:
        raise ModelError(
            f"{path} was not opened, because it uses operators from {', '.join(facts.domains)}, "
            "which need additional software; export it with standard ONNX operators only"
        )
    for name in facts.external:
        _require_beside(path, name)
    return list(facts.external)


def _require_beside(path: Path, name: str) -> None:
    """Raise `ModelError` unless a referenced file is in the network's own folder."""
    posix_path = PurePosixPath(name)
    plain = (
        name and not posix_path.is_absolute() and ".." not in posix_path.parts and "\\" not in name
    )
    if not plain or ":" in name:
        raise ModelError(
            f"expected the weights of {path} to be in its folder, but {name!r} is outside that "
            "folder, so the network was not opened; ask its author for a corrected file"
        )
    file = path.parent / name
    if not file.is_file():
        raise ModelError(
            f"expected the weights {name!r} of {path} to be next to it, but they are missing; "
            "copy the weights too"
        )
    if not file.resolve().is_relative_to(path.parent.resolve()):
        raise ModelError(
            f"the weights {name!r} of {path} are a link that points outside the folder, so the "
            "network was not opened; copy the file itself into the folder"
        )


def _require_channels(spec: NetworkSpec, taken: Shape, given: Shape, path: Path) -> None:
    if taken and (len(taken) not in (4, 5) or taken[0] not in (None, 1)):
        raise ModelError(
            f"expected {path} to take one tile at a time, as 1 x channels x voxels, but it takes "
            f"{shape_text(taken)}; export the network for a batch size of 1"
        )
    for what, shape, count in (
        ("channel", taken, len(spec.channels)),
        ("output", given, spec.heads),
    ):
        if len(shape) > 1 and shape[1] not in (None, count):
            raise ModelError(
                f"the recipe of {path} describes {count_of(count, what)}, but the network has "
                f"{shape[1]}; "
                'correct channels, labels or output in its section "network"'
            )


def network_card(files: ModelFiles, kind: str, checksums: bool) -> ModelCard:
    """Return the card of a single-file network, completed with the recipe next to it.

    Parameters
    ----------
    files
        The files of the model.
    kind
        The kind of model.
    checksums
        Whether to compute the SHA-256 of the weights.
    """
    network_files = find_network(files, kind)
    card = ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=licence_text(files, ""),
        weights=tuple(summed(files, network_files.sizes, checksums)),
        missing=network_files.missing,
        has_recipe=network_files.has_recipe,
    )
    spec = None
    try:
        if network_files.has_recipe:
            spec = recipe_from(files.text(RECIPE_NAME), f"{files.path}: {RECIPE_NAME}").network
        if spec is None and not network_files.missing:
            spec = own_spec(network_path(files.path, network_files.sizes[0][0]), kind)
        if spec is not None:
            return with_network(card, spec)
    except ModelError as error:
        return replace(card, missing=(*card.missing, str(error)))
    return replace(card, missing=card.missing or (without_recipe(files.path, kind),))


def with_network(card: ModelCard, spec: NetworkSpec | None) -> ModelCard:
    """Return the card of a network, completed with the network description of a recipe.

    Parameters
    ----------
    card
        The card of the model.
    spec
        Input and output of the network; None returns the card unchanged.

    Raises
    ------
    ModelError
        If the recipe contradicts the file, or this kind of model describes its input itself.
    """
    if spec is None:
        return card
    if card.kind not in NETWORK_KINDS:
        raise ModelError(
            f"{card.path} has the format {card.kind}, in which a model describes its own input and "
            'output; remove the section "network" from its recipe'
        )
    missing = tuple(
        reason for reason in card.missing if reason != without_recipe(card.path, card.kind)
    )
    if not missing:
        name = card.weights[0].name
        spec = fitted_spec(spec, network_path(card.path, name), card.kind)
    patch = " x ".join(map(str, spec.patch))
    facts: tuple[tuple[str, Setting], ...] = (
        ("patch", patch),
        ("output", spec.output.value),
        ("orientation", spec.orientation or "as stored"),
    )
    return replace(
        card,
        channels=spec.channels,
        labels=tuple((label, (value,)) for label, value in spec.labels),
        missing=missing,
        facts=facts,
        network=spec,
    )
