"""Which kind of model a path holds, told by names and small texts; nothing of it is executed."""

import re
import zipfile
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.segmentation.nnunet_files import ModelFiles

__all__ = ["ModelKind", "kind_of"]

_SUFFIXES: Final = {".onnx": "onnx", ".safetensors": "safetensors", ".xml": "openvino"}


class ModelKind(StrEnum):
    """What kind of model a path holds."""

    NNUNET = "nnU-Net v2"
    NNUNET_V1 = "nnU-Net v1"
    MONAI_BUNDLE = "MONAI bundle"
    TORCHSCRIPT = "TorchScript"
    EXPORTED = "torch.export"
    ONNX = "ONNX"
    OPENVINO = "OpenVINO"
    SAFETENSORS = "safetensors"
    SUBMISSION = "challenge submission"
    UNKNOWN = "unknown"


def kind_of(files: ModelFiles) -> ModelKind:
    """Return the kind of a model that is not nnU-Net v2; UNKNOWN where none is recognised."""
    names = [PurePosixPath(name) for name in files.names]
    last = {name.name for name in names}
    if "plans.pkl" in last:
        return ModelKind.NNUNET_V1
    if any(name.parts[-2:] == ("configs", "metadata.json") for name in names):
        return ModelKind.MONAI_BUNDLE
    if "model.py" in last and _has_model_class(files):
        return ModelKind.SUBMISSION
    for name in names:
        if name.suffix.lower() in _SUFFIXES:
            return ModelKind[_SUFFIXES[name.suffix.lower()].upper()]
    if len(names) == 1 and not files.is_zip:
        return _packed_kind(files.path if files.path.is_file() else files.path / str(names[0]))
    return ModelKind.UNKNOWN


def _packed_kind(path: Path) -> ModelKind:
    """Return what a single zip-like file of torch is."""
    if not zipfile.is_zipfile(path):
        return ModelKind.UNKNOWN
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [PurePosixPath(name) for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError):
        return ModelKind.UNKNOWN
    if any(
        name.name == "archive_format" or name.name == "serialized_exported_program.json"
        for name in inside
    ):
        return ModelKind.EXPORTED
    if any("code" in name.parts for name in inside) and any(n.name == "data.pkl" for n in inside):
        return ModelKind.TORCHSCRIPT
    return ModelKind.UNKNOWN


def _has_model_class(files: ModelFiles) -> bool:
    scripts = [name for name in files.names if PurePosixPath(name).name == "model.py"]
    return any(re.search(r"^class Model\b", files.text(name), re.MULTILINE) for name in scripts)
