"""Describe a MONAI bundle from its text files, before it is loaded."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.bundle.allowed import objections
from napari_mamamia.segmentation.bundle.config import (
    BundleConfig,
    DataFormat,
    label_names,
    read_config,
    read_format,
)
from napari_mamamia.segmentation.bundle.files import (
    bundle_root,
    bundle_weights,
    config_names,
    read_inference,
    read_metadata,
)
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_text, summed
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles

_SHOWN: Final = (
    "version",
    "monai_version",
    "task",
    "description",
    "authors",
    "copyright",
    "intended_use",
    "image_classes",
    "data_source",
)
_LONGEST: Final = 300
_BLENDED: Final = (
    "the bundle resamples labels by linear interpolation; the values are rounded, so a rim of "
    "label 1 can appear between background and label 2"
)


def bundle_card(files: ModelFiles, kind: str, checksums: bool) -> ModelCard:
    """Return the card of a MONAI bundle, read from its text files.

    The card's checksum includes the configs. `missing` lists the reasons why the bundle cannot be
    run.
    """
    has_recipe = RECIPE_NAME in files.names
    card = ModelCard(files.path, kind, "", files.is_zip, has_recipe=has_recipe)
    try:
        root = bundle_root(files)
        metadata = read_metadata(files)
    except ModelError as error:
        return replace(card, licence=licence_text(files, ""), missing=(str(error),))
    weights = bundle_weights(files)
    where = f"{files.path}/{root}" if root else str(files.path)
    data_format = config = None
    missing: list[str] = []
    try:
        data_format = read_format(metadata, where)
        config = read_config(read_inference(files))
        missing += objections(config, data_format, weights)
    except ModelError as error:
        missing.append(str(error))
    deciding = [item for item in files.sizes if item[0] in (weights, *config_names(files))]
    licence = str(metadata.get("license") or metadata.get("copyright") or "")[:_LONGEST]
    return replace(
        card,
        name=_choose_name(metadata, PurePosixPath(root).name or files.path.stem),
        channels=data_format.channels if data_format else (),
        labels=label_names(data_format, config) if data_format and config else (),
        licence=licence_text(files, root) or licence,
        weights=tuple(summed(files, deciding, checksums)),
        missing=tuple(missing),
        facts=tuple(_list_facts(metadata, data_format, config)),
    )


def _list_facts(
    metadata: Mapping[str, Any], data_format: DataFormat | None, config: BundleConfig | None
) -> Iterator[tuple[str, Setting]]:
    for name in _SHOWN:
        value = metadata.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield name, str(value)[:_LONGEST]
    if data_format and data_format.value_range:
        yield "value_range", " to ".join(data_format.value_range)
    if config is not None:
        yield from _run_facts(config)


def _run_facts(config: BundleConfig) -> Iterator[tuple[str, Setting]]:
    yield "network", config.network.name.rpartition(".")[2] if config.network else "TorchScript"
    size = config.windows.roi_size
    yield "patch", "whole volume" if size is None else " x ".join(map(str, reversed(size)))
    for step in config.preprocessing:
        if step.name == "Spacingd":
            yield "spacing_mm", _format_spacing(step.argument("pixdim"))
        if step.name == "Orientationd":
            yield "orientation", str(step.argument("axcodes", "as it is"))
    if _blends_labels(config):
        yield "note", _BLENDED


def _blends_labels(config: BundleConfig) -> bool:
    """Return whether labels, and not probabilities, are resampled linearly to the image's grid."""
    names = [step.name for step in config.postprocessing]
    if "AsDiscreted" not in names:
        return False
    after = config.postprocessing[names.index("AsDiscreted") :]
    return any(s.name == "Invertd" and s.argument("nearest_interp", True) is False for s in after)


def _format_spacing(pixdim: Any) -> str:
    """Return a spacing along (z, y, x) as text from MONAI's order (x, y, z)."""
    values = pixdim if isinstance(pixdim, list | tuple) else [pixdim] * 3
    texts = (f"{v:g}" if isinstance(v, int | float) else "not known" for v in reversed(values))
    return " x ".join(texts)


def _choose_name(metadata: Mapping[str, Any], usual: str) -> str:
    name = metadata.get("name")
    return name.strip() if isinstance(name, str) and name.strip() else usual
