"""A network in one file on the disk: which files belong to it, and what it says of itself.

Everything is read as data: nothing is built and nothing is run, and no torch is needed.
"""

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model.kinds import ModelKind, network_names
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles
from napari_mamamia.segmentation.network.onnx import Shape, read_onnx
from napari_mamamia.segmentation.network.shapes import shape_text, shapes_of

_RECIPE: Final = "mamamia_model.json"
_EXAMPLE: Final = (
    '"network": {"channels": ["before contrast", "after"], "labels": {"tumour": 1}, '
    '"patch": [64, 128, 128], "output": "logits"}'
)


@dataclass(frozen=True, slots=True)
class NetworkFiles:
    """The network's own file and what belongs to it, as (name, bytes), its own first.

    `missing` says in plain words why it cannot be run, as `ModelCard.missing` does, and
    `has_recipe` whether a recipe lies beside it.
    """

    sizes: tuple[tuple[str, int], ...]
    missing: tuple[str, ...] = ()
    has_recipe: bool = False


def find_network(files: ModelFiles, kind: ModelKind) -> NetworkFiles:
    """Return the files of a network of `kind` at a path."""
    if files.is_zip:
        message = (
            f"{files.path} holds a network ({kind.value}): unpack the zip and choose its folder"
        )
        return NetworkFiles((), (message,))
    names = network_names(files)
    folder = files.path if files.path.is_dir() else files.path.parent
    if len(names) > 1:
        message = (
            f"one network should be in {files.path}, but there are {len(names)}: "
            f"{', '.join(names[:5])}. Choose one of these files, each with its recipe in a folder "
            "of its own"
        )
        return NetworkFiles(tuple(s for s in files.sizes if s[0] in names), (message,))
    path = folder / names[0]
    sizes = [(names[0], path.stat().st_size)]
    missing: tuple[str, ...] = ()
    has_recipe = False
    try:
        for name in _list_weight_files(path, kind):
            sizes.append((name, (folder / name).stat().st_size))
        has_recipe = _has_recipe(files, folder)
    except ModelError as error:
        missing = (str(error),)
    return NetworkFiles(tuple(sizes), missing, has_recipe)


def network_path(path: Path, name: str) -> Path:
    """Return where a file of a model is; `path` is the model's folder, or the file itself."""
    return path / name if path.is_dir() else path.parent / name


def fitted_spec(spec: NetworkSpec, path: Path, kind: ModelKind) -> NetworkSpec:
    """Return what a recipe says, made whole with what the file itself says.

    Raises
    ------
    ModelError
        If the two contradict each other, or neither says the patch.
    """
    taken, given = shapes_of(path, kind)
    _require_channels(spec, taken, given, path)
    patch = spec.patch
    extents = taken[2:] if taken else ()
    if not patch:
        sizes = tuple(n for n in extents if n is not None)
        if len(sizes) != len(extents) or len(sizes) not in (2, 3):
            raise ModelError(
                f"{path} leaves open how many voxels a tile has (it takes {shape_text(taken)}): "
                'say "patch" in the section "network" of its recipe'
            )
        return replace(spec, patch=sizes)
    if extents and (
        len(extents) != len(patch) or any(a not in (None, b) for a, b in zip(extents, patch))  # noqa: B905
    ):
        raise ModelError(
            f"the recipe's patch is {' x '.join(map(str, patch))} voxels, but {path} takes "
            f"{shape_text(extents)} (fixed when it was exported): say that patch, or export it "
            "with extents that may vary"
        )
    if kind is ModelKind.SAFETENSORS and spec.architecture is None:
        raise ModelError(
            f"{path} holds weights without a network: say its class and arguments as "
            '"architecture" in the section "network" of the recipe, as nnU-Net\'s plans.json has it'
        )
    if kind is not ModelKind.SAFETENSORS and spec.architecture is not None:
        raise ModelError(f'{path} holds the network itself: leave "architecture" out of its recipe')
    return spec


def without_recipe(path: Path, kind: ModelKind) -> str:
    """Return the sentence that says what a recipe must say."""
    built = ', and "architecture" as nnU-Net\'s plans have it' if _is_bare(kind) else ""
    return (
        f"{path} is a network ({kind.value}) that does not say what it takes and gives: write a "
        f'recipe ({_RECIPE}) beside it with the section "network": names of the channels, labels '
        f"with their values, voxels of a tile, and what the outputs are{built}, for example "
        f"{_EXAMPLE}"
    )


def _is_bare(kind: ModelKind) -> bool:
    return kind is ModelKind.SAFETENSORS


def _has_recipe(files: ModelFiles, folder: Path) -> bool:
    """Whether a recipe beside the network is meant for it: the only network of its folder."""
    if files.path.is_dir():
        return _RECIPE in files.names
    if not (folder / _RECIPE).is_file():
        return False
    names = [file.name for file in sorted(folder.iterdir()) if file.is_file()]
    beside = ModelFiles(folder, False, tuple((name, 0) for name in names))
    others = set(network_names(beside)) - {files.path.name}
    if others:
        raise ModelError(
            f"a recipe lies beside {files.path}, and so do other networks "
            f"({', '.join(sorted(others)[:3])}), so that it is not clear whose it is: put each "
            "network with its recipe in a folder of its own"
        )
    return True


def _list_weight_files(path: Path, kind: ModelKind) -> list[str]:
    """Return the names of the files beside a network that hold its weights."""
    if kind is ModelKind.OPENVINO:
        weights = path.with_suffix(".bin")
        if not weights.is_file():
            raise ModelError(
                f"the weights of {path} should lie beside it as {weights.name}, but are not "
                "there: copy that file too"
            )
        return [weights.name]
    if kind is not ModelKind.ONNX:
        return []
    facts = read_onnx(path)
    if facts.domains:
        raise ModelError(
            f"{path} should use operators of ONNX only, but some are of {', '.join(facts.domains)},"
            " which need a program of their own: it was not opened; export it without them"
        )
    for name in facts.external:
        _require_beside(path, name)
    return list(facts.external)


def _require_beside(path: Path, name: str) -> None:
    """Raise `ModelError` unless a file that a network names lies in its own folder."""
    posix_path = PurePosixPath(name)
    plain = (
        name and not posix_path.is_absolute() and ".." not in posix_path.parts and "\\" not in name
    )
    if not plain or ":" in name:
        raise ModelError(
            f"{path} should keep its weights beside it, but names {name!r}, which leaves its "
            "folder: it was not opened; ask its author for a clean file"
        )
    file = path.parent / name
    if not file.is_file():
        raise ModelError(f"{path} keeps its weights in {name!r}, which is not there: copy it too")
    if not file.resolve().is_relative_to(path.parent.resolve()):
        raise ModelError(
            f"{path} should keep its weights beside it, but {name!r} is a link that leaves the "
            "folder: it was not opened; copy the file itself there"
        )


def _require_channels(spec: NetworkSpec, taken: Shape, given: Shape, path: Path) -> None:
    if taken and (len(taken) not in (4, 5) or taken[0] not in (None, 1)):
        raise ModelError(
            f"{path} should take one tile at a time, as 1 x channels x voxels, but takes "
            f"{shape_text(taken)}: export it for a batch of one"
        )
    for what, shape, count in (
        ("channel(s)", taken, len(spec.channels)),
        ("output(s)", given, spec.heads),
    ):
        if len(shape) > 1 and shape[1] not in (None, count):
            raise ModelError(
                f"the recipe of {path} describes {count} {what}, but the network has {shape[1]}: "
                'correct channels, labels or output in its section "network"'
            )
