"""What a model on the disk is, found out from names and small texts; nothing of it is executed."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model_kinds import ModelKind, kind_of
from napari_mamamia.segmentation.nnunet_files import ModelFiles, open_files
from napari_mamamia.segmentation.nnunet_plans import Plans, parsed, read_plans

__all__ = ["RECIPE_NAME", "ModelCard", "ModelKind", "WeightFile", "recognise_model"]

RECIPE_NAME: Final = "mamamia_model.json"
"""Name of the recipe beside a model."""

_CHECKPOINTS: Final = ("checkpoint_final.pth", "checkpoint_best.pth", "checkpoint_latest.pth")
_FOLD: Final = re.compile(r"^fold_(all|\d+)$")
_LICENCE: Final = re.compile(r"^(licen[cs]e|copying)(\.(txt|md|rst))?$", re.IGNORECASE)
_LICENCE_LENGTH: Final = 20_000


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file with weights: its name below the model, bytes, SHA-256 ("" if not computed)."""

    name: str
    n_bytes: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known of a model before it is loaded.

    Parameters
    ----------
    path
        Folder, zip or file, as it was given; `is_zip` says whether it must be unpacked.
    kind, name
        What it is, and a name fit for people and folders.
    inner
        Where, below `path`, the trained model's own folder is; "" for `path` itself.
    configuration, trainer, folds, checkpoints
        nnU-Net's names; `checkpoints` are the file names that every fold has, best choice first.
    channels, labels
        Inputs by name; labels as (name, values), background left out.
    licence
        Text of a licence file beside the model, "" if there is none.
    weights
        Files with weights.
    missing
        Why it cannot be run, in plain sentences; empty if nothing is known to be missing.
    facts
        Further (name, value) pairs to show: patch, spacing, network, previous stage.
    has_recipe
        Whether `RECIPE_NAME` lies beside it.
    """

    path: Path
    kind: ModelKind
    name: str
    is_zip: bool = False
    inner: str = ""
    configuration: str = ""
    trainer: str = ""
    folds: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    labels: tuple[tuple[str, tuple[int, ...]], ...] = ()
    licence: str = ""
    weights: tuple[WeightFile, ...] = ()
    missing: tuple[str, ...] = ()
    facts: tuple[tuple[str, Setting], ...] = ()
    has_recipe: bool = False

    @property
    def sha256(self) -> str:
        """SHA-256 of the weights: the file's own, or of the list of files' sums in order of name.

        "" where none was computed.
        """
        sums = [weight.sha256 for weight in sorted(self.weights, key=lambda item: item.name)]
        if not sums or not all(sums):
            return ""
        return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()

    @property
    def usable(self) -> bool:
        """Whether nothing is known to be missing."""
        return not self.missing


def recognise_model(path: Path, *, inner: str | None = None, checksums: bool = True) -> ModelCard:
    """Return what the model at `path` is.

    Parameters
    ----------
    path
        A folder, a zip or a single file.
    inner
        Which of several models below `path`, by its folder's relative name with ``/``.
    checksums
        Whether the weights' SHA-256 are computed; it takes about a second for each GB.

    Raises
    ------
    ModelError
        If nothing is there, a zip is refused, a text is broken, or several models are below `path`
        and `inner` names none of them.
    """
    files = open_files(path)
    roots = list(_trained_folders(files))
    if inner is not None:
        if inner not in roots:
            raise ModelError(
                f"{path} should hold a model at {inner!r}, but has {_listed(roots)}: choose one"
            )
        return _nnunet_card(files, inner, checksums)
    roots = _last_stages(files, roots)
    if len(roots) > 1:
        raise ModelError(
            f"one model should be at {path}, but there are {len(roots)}: {_listed(roots)}. "
            "Choose the folder of one of them"
        )
    if roots:
        return _nnunet_card(files, roots[0], checksums)
    return _other_card(files, checksums)


def _trained_folders(files: ModelFiles) -> Iterator[str]:
    """Yield every folder that has plans.json and, beside it, dataset.json or a fold."""
    names = set(files.names)
    with_folds = {
        str(PurePosixPath(name).parent.parent)
        for name in names
        if _FOLD.match(PurePosixPath(name).parent.name)
    }
    for name in files.names:
        place = PurePosixPath(name)
        if place.name != "plans.json":
            continue
        root = "" if str(place.parent) == "." else str(place.parent)
        if _below(root, "dataset.json") in names or str(place.parent) in with_folds:
            yield root


def _last_stages(files: ModelFiles, roots: Sequence[str]) -> list[str]:
    """Return `roots` without those that only prepare another one's input."""
    first_stages = set()
    for root in roots:
        trainer, plans_name, configuration = _parts(root or files.path.name)
        plans = parsed(files.text(_below(root, "plans.json")), f"{files.path}: plans.json")
        stages = plans.get("configurations", {})
        before = stages.get(configuration, {}).get("previous_stage") if stages else None
        if before:
            parent = str(PurePosixPath(root).parent)
            sibling = f"{trainer}__{plans_name}__{before}"
            first_stages.add(sibling if parent == "." else f"{parent}/{sibling}")
    return [root for root in roots if root not in first_stages]


def _nnunet_card(files: ModelFiles, root: str, checksums: bool) -> ModelCard:
    trainer, _, configuration = _parts(_folder_name(files, root))
    plans_text = files.text(_below(root, "plans.json"))
    where = f"{files.path}/{root}" if root else str(files.path)
    missing = []
    configuration = configuration or _only_configuration(plans_text, where)
    dataset_name = _below(root, "dataset.json")
    plans: Plans | None = None
    if dataset_name not in files.names:
        missing.append(f"dataset.json is not in {where}: copy it from the training's result folder")
    elif configuration:
        plans = read_plans(plans_text, files.text(dataset_name), configuration, where)
    folds, checkpoints, weights = _folds(files, root)
    if not folds:
        missing.append(f"no fold of {where} has a checkpoint: copy fold_0/checkpoint_final.pth")
    if plans is not None and plans.configuration.previous_stage:
        missing.extend(_without_first_stage(files, root, plans))
    dataset = plans.dataset if plans else _folder_name(files, root)
    return ModelCard(
        path=files.path,
        kind=ModelKind.NNUNET,
        name="_".join(part for part in (dataset, configuration) if part),
        is_zip=files.is_zip,
        inner=root,
        configuration=configuration,
        trainer=trainer,
        folds=folds,
        checkpoints=checkpoints,
        channels=plans.channels if plans else (),
        labels=plans.labels.names if plans else (),
        licence=_licence(files, root),
        weights=tuple(_summed(files, weights, checksums)),
        missing=tuple(missing),
        facts=tuple(_facts(plans)) if plans else (),
        has_recipe=_below(root, RECIPE_NAME) in files.names,
    )


def _facts(plans: Plans) -> Iterator[tuple[str, Setting]]:
    configuration = plans.configuration
    yield "dataset", plans.dataset
    yield "network", configuration.architecture.class_name.rpartition(".")[2]
    yield "patch", " x ".join(map(str, configuration.patch))
    yield "spacing_mm", " x ".join(f"{s:g}" for s in configuration.spacing)
    yield "orientation", plans.reader.value
    yield "regions", plans.labels.has_regions
    yield "previous_stage", configuration.previous_stage or None


def _folds(
    files: ModelFiles, root: str
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, int]]]:
    """Return folds, checkpoint names that all of them have, and the files with weights."""
    found: dict[str, list[str]] = {}
    weights = []
    for name, n_bytes in files.sizes:
        if not name.startswith(_below(root, "")):
            continue
        parts = PurePosixPath(name[len(_below(root, "")) :]).parts
        fold = _FOLD.match(parts[0]) if len(parts) == 2 else None
        if fold and parts[1] in _CHECKPOINTS:
            found.setdefault(fold[1], []).append(parts[1])
            weights.append((name, n_bytes))
    common = [name for name in _CHECKPOINTS if found and all(name in v for v in found.values())]
    return tuple(sorted(found)), tuple(common), weights


def _without_first_stage(files: ModelFiles, root: str, plans: Plans) -> Iterator[str]:
    trainer, plans_name, _ = _parts(_folder_name(files, root))
    before = f"{trainer}__{plans_name}__{plans.configuration.previous_stage}"
    parent = PurePosixPath(root).parent if root else None
    if parent is None:
        there = not files.is_zip and (files.path.parent / before / "plans.json").is_file()
    else:
        there = str(parent / before / "plans.json") in files.names
    if not there:
        yield (
            f"{plans.configuration.name} refines the result of {before}, which does not lie beside "
            "it: copy that folder too"
        )


def _other_card(files: ModelFiles, checksums: bool) -> ModelCard:
    kind = kind_of(files)
    missing: tuple[str, ...] = ()
    if kind is ModelKind.NNUNET_V1:
        missing = (
            f"{files.path} is a model of nnU-Net v1 (plans.pkl): a pickle can run any program and "
            "v1's networks differ. Train or convert it with nnU-Net v2",
        )
    elif kind is ModelKind.UNKNOWN:
        missing = (
            f"{files.path} should be a model (an nnU-Net v2 folder with plans.json, dataset.json "
            "and fold_0/checkpoint_final.pth, its zip, a MONAI bundle, TorchScript, torch.export, "
            "ONNX or safetensors file), but none was recognised: choose another folder or file",
        )
    heavy = [item for item in files.sizes if _is_weight(item[0])]
    return ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=_licence(files, ""),
        weights=tuple(_summed(files, heavy, checksums)),
        missing=missing,
        has_recipe=any(PurePosixPath(name).name == RECIPE_NAME for name in files.names),
    )


def _summed(
    files: ModelFiles, weights: Sequence[tuple[str, int]], checksums: bool
) -> Iterator[WeightFile]:
    for name, n_bytes in weights:
        yield WeightFile(name, n_bytes, files.sha256(name) if checksums else "")


def _licence(files: ModelFiles, root: str) -> str:
    """Return the text of the licence nearest to the model, "" if there is none."""
    places = [PurePosixPath(root), *PurePosixPath(root).parents] if root else [PurePosixPath()]
    for place in places:
        for name in files.names:
            file = PurePosixPath(name)
            if file.parent == place and _LICENCE.match(file.name):
                return files.text(name)[:_LICENCE_LENGTH]
    return ""


def _only_configuration(plans_text: str, where: str) -> str:
    """Return the one configuration of a renamed folder's plans, "" if there are several."""
    found = parsed(plans_text, f"{where}: plans.json").get("configurations")
    return next(iter(found)) if isinstance(found, dict) and len(found) == 1 else ""


def _is_weight(name: str) -> bool:
    suffixes = {".pth", ".pt", ".ts", ".pt2", ".onnx", ".bin", ".safetensors", ".model"}
    return PurePosixPath(name).suffix.lower() in suffixes


def _folder_name(files: ModelFiles, root: str) -> str:
    return PurePosixPath(root).name if root else files.path.name


def _parts(root: str) -> tuple[str, str, str]:
    """Return trainer, plans and configuration of a folder's name, "" where it has another form."""
    parts = PurePosixPath(root).name.split("__")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")


def _below(root: str, name: str) -> str:
    return f"{root}/{name}" if root else name


def _listed(roots: Sequence[str]) -> str:
    return ", ".join(roots) if roots else "none"
