"""Describe an nnU-Net v2 model on disk: trained folders, folds, channels and labels."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_text, summed
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles, join_path
from napari_mamamia.segmentation.model.nnunet_plans import Plans, parsed, read_plans

_CHECKPOINTS: Final = tuple(
    f"checkpoint_{which}.{suffix}"
    for which in ("final", "best", "latest")
    for suffix in ("safetensors", "pth")
)
_FOLD: Final = re.compile(r"^fold_(all|\d+)$")


def trained_folders(files: ModelFiles) -> Iterator[str]:
    """Yield every folder that contains plans.json and either dataset.json or a fold."""
    names = set(files.names)
    with_folds = {
        str(PurePosixPath(name).parent.parent)
        for name in names
        if _FOLD.match(PurePosixPath(name).parent.name)
    }
    for name in files.names:
        posix_path = PurePosixPath(name)
        if posix_path.name != "plans.json":
            continue
        root = "" if str(posix_path.parent) == "." else str(posix_path.parent)
        if join_path(root, "dataset.json") in names or str(posix_path.parent) in with_folds:
            yield root


def last_stages(files: ModelFiles, roots: Sequence[str]) -> list[str]:
    """Return the folders in `roots` without models that only prepare another model's input."""
    first_stages = set()
    for root in roots:
        trainer, plans_name, configuration = _split_name(root or files.path.name)
        plans = parsed(files.text(join_path(root, "plans.json")), f"{files.path}: plans.json")
        stages = plans.get("configurations", {})
        before = stages.get(configuration, {}).get("previous_stage") if stages else None
        if before:
            parent = str(PurePosixPath(root).parent)
            sibling = f"{trainer}__{plans_name}__{before}"
            first_stages.add(sibling if parent == "." else f"{parent}/{sibling}")
    return [root for root in roots if root not in first_stages]


def find_nnunet(files: ModelFiles, inner: str | None, checksums: bool) -> ModelCard | None:
    """Return the card of the only nnU-Net model at a path, or None if there is no model.

    Parameters
    ----------
    files
        The files of the model.
    inner
        The folder of one of several trained models.
    checksums
        Whether to compute the SHA-256 of the weights.

    Raises
    ------
    ModelError
        If there are several models and `inner` matches none of them, or a text file cannot be read.
    """
    roots = list(trained_folders(files))
    if inner is not None and (inner or roots):
        return nnunet_card_at(files, inner, checksums)
    roots = last_stages(files, roots)
    if len(roots) > 1:
        raise ModelError(
            f"expected one model at {files.path}, but found {len(roots)}: {', '.join(roots)}; "
            "choose the folder of one of them"
        )
    return nnunet_card(files, roots[0], checksums) if roots else None


def nnunet_card_at(files: ModelFiles, root: str, checksums: bool) -> ModelCard:
    """Return the card of the model in `root`, which must be one of the trained folders.

    Parameters
    ----------
    files
        The files of the model.
    root
        Relative path of the trained folder; "" for the model's path itself.
    checksums
        Whether to compute the SHA-256 of the weights.

    Raises
    ------
    ModelError
        If `root` is not a trained folder, or its text files cannot be read.
    """
    roots = list(trained_folders(files))
    if root not in roots:
        there = ", ".join(roots) or "none"
        raise ModelError(
            f"expected {files.path} to contain a model at {root!r}, but it has {there}; choose one "
            "of these"
        )
    return nnunet_card(files, root, checksums)


def nnunet_card(files: ModelFiles, root: str, checksums: bool) -> ModelCard:
    """Return the card of the model in the trained folder `root`.

    Parameters
    ----------
    files
        The files of the model.
    root
        Relative path of the trained folder; "" for the model's path itself.
    checksums
        Whether to compute the SHA-256 of the weights.

    Raises
    ------
    ModelError
        If the model's plans or dataset.json cannot be read.
    """
    trainer, _, configuration = _split_name(_folder_name(files, root))
    plans_text = files.text(join_path(root, "plans.json"))
    where = f"{files.path}/{root}" if root else str(files.path)
    missing = []
    configuration = configuration or _only_configuration(plans_text, where)
    dataset_name = join_path(root, "dataset.json")
    plans: Plans | None = None
    if dataset_name not in files.names:
        missing.append(
            f"{where} lacks dataset.json; copy the file from the training's result folder"
        )
    elif configuration:
        plans = read_plans(plans_text, files.text(dataset_name), configuration, where)
    folds, checkpoints, weights = _find_folds(files, root)
    if not folds:
        missing.append(
            f"expected a fold of {where} to have a checkpoint, but none has one; copy "
            "fold_0/checkpoint_final.pth"
        )
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
        licence=licence_text(files, root),
        weights=tuple(summed(files, weights, checksums)),
        missing=tuple(missing),
        facts=tuple(_list_facts(plans)) if plans else (),
        has_recipe=join_path(root, RECIPE_NAME) in files.names,
    )


def _list_facts(plans: Plans) -> Iterator[tuple[str, Setting]]:
    configuration = plans.configuration
    yield "dataset", plans.dataset
    yield "network", configuration.architecture.class_name.rpartition(".")[2]
    yield "patch", " x ".join(map(str, configuration.patch))
    yield "spacing_mm", " x ".join(f"{s:g}" for s in configuration.spacing)
    yield "orientation", plans.reader.value
    yield "regions", plans.labels.has_regions
    yield "previous_stage", configuration.previous_stage or None


def _find_folds(
    files: ModelFiles, root: str
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, int]]]:
    """Return the folds, the names of the checkpoints that every fold has, and the weights files."""
    names_by_fold: dict[str, list[str]] = {}
    weights = []
    for name, n_bytes in files.sizes:
        if not name.startswith(join_path(root, "")):
            continue
        parts = PurePosixPath(name[len(join_path(root, "")) :]).parts
        fold = _FOLD.match(parts[0]) if len(parts) == 2 else None
        if fold and parts[1] in _CHECKPOINTS:
            names_by_fold.setdefault(fold[1], []).append(parts[1])
            weights.append((name, n_bytes))
    common = [
        name
        for name in _CHECKPOINTS
        if names_by_fold and all(name in v for v in names_by_fold.values())
    ]
    return tuple(sorted(names_by_fold)), tuple(common), weights


def _without_first_stage(files: ModelFiles, root: str, plans: Plans) -> Iterator[str]:
    trainer, plans_name, _ = _split_name(_folder_name(files, root))
    before = f"{trainer}__{plans_name}__{plans.configuration.previous_stage}"
    parent = PurePosixPath(root).parent if root else None
    if parent is None:
        there = not files.is_zip and (files.path.parent / before / "plans.json").is_file()
    else:
        there = str(parent / before / "plans.json") in files.names
    if not there:
        yield (
            f"{plans.configuration.name} refines the result of {before}, but that model's folder "
            "is not next to it; copy that folder too"
        )


def _only_configuration(plans_text: str, where: str) -> str:
    """Return the configuration in the plans of a renamed folder, or "" if there are several."""
    configurations = parsed(plans_text, f"{where}: plans.json").get("configurations")
    return (
        next(iter(configurations))
        if isinstance(configurations, dict) and len(configurations) == 1
        else ""
    )


def _folder_name(files: ModelFiles, root: str) -> str:
    return PurePosixPath(root).name if root else files.path.name


def _split_name(root: str) -> tuple[str, str, str]:
    """Return trainer, plans and configuration from a folder's name, with "" for missing parts."""
    parts = PurePosixPath(root).name.split("__")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")
