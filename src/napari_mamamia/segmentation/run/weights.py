"""Recognise and describe a model on disk from file names and small text files."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.plugins import describe_error, leave_out
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_text, summed
from napari_mamamia.segmentation.model.kinds import ModelKind, kind_of
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles, open_files
from napari_mamamia.segmentation.nnunet.card import find_nnunet
from napari_mamamia.segmentation.run.engines import MODEL_KINDS

_WHY_NOT: Final[Mapping[str, str]] = {
    ModelKind.NNUNET_V1: (
        "{path} is a model of nnU-Net v1 (plans.pkl), which is not supported, because a pickle "
        "can run any program and the networks of v1 differ. Train or convert it with nnU-Net v2"
    ),
    ModelKind.CHECKPOINT: (
        "{path} contains weights or objects that torch.save wrote, not a network, because the "
        "network's code is in its author's program. Export the network there (ONNX, torch.export "
        "or TorchScript), or store its weights as safetensors if it is one of nnU-Net's networks"
    ),
    ModelKind.UNKNOWN: (
        "expected a model at {path} (an nnU-Net v2 folder with plans.json, dataset.json and "
        "fold_0/checkpoint_final.pth, its zip, a MONAI bundle, TorchScript, torch.export, ONNX or "
        "safetensors file), but none was recognised; choose another folder or file"
    ),
}
"""Reasons why models of a kind that is not in `MODEL_KINDS` cannot be run."""


@reads("a readable model", "copy the file again from its source", ModelError)
def recognise_model(path: Path, *, inner: str | None = None, checksums: bool = True) -> ModelCard:
    """Return the card of the model at `path`.

    Parameters
    ----------
    path
        A folder, a zip or a single file.
    inner
        The folder of one of several models below `path`, as a relative path with ``/``.
    checksums
        Whether to compute the SHA-256 of the weights, which takes about a second for each GB.

    Raises
    ------
    ModelError
        If the path does not exist, a zip is unsafe, a text file is invalid, or several models are
        below
        `path` and `inner` does not select one.
    """
    files = open_files(path)
    return find_nnunet(files, inner, checksums) or _describe_other(files, checksums)


def _describe_other(files: ModelFiles, checksums: bool) -> ModelCard:
    kind = _find_kind(files)
    spec = MODEL_KINDS.get(kind)
    if spec is not None and spec.card is not None:
        return spec.card(files, kind, checksums)
    heavy = [item for item in files.sizes if _is_weight(item[0])]
    return ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=licence_text(files, ""),
        weights=tuple(summed(files, heavy, checksums)),
        missing=(_WHY_NOT[kind].format(path=files.path),) if kind in _WHY_NOT else (),
        has_recipe=any(PurePosixPath(name).name == RECIPE_NAME for name in files.names),
    )


def _find_kind(files: ModelFiles) -> str:
    """Return the kind of a model; plug-ins are asked if no built-in kind can run it."""
    kind = kind_of(files)
    if kind in MODEL_KINDS:
        return kind
    for name, spec in MODEL_KINDS.plugins.items():
        try:
            if spec.recognise is not None and spec.recognise(files):
                return name
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            leave_out(MODEL_KINDS.group, name, describe_error(error))
    return kind


def _is_weight(name: str) -> bool:
    suffixes = {".pth", ".pt", ".ts", ".pt2", ".onnx", ".bin", ".safetensors", ".model"}
    return PurePosixPath(name).suffix.lower() in suffixes
