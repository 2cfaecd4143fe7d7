"""Recognise the kind of a model from file names and small text files, without running code."""

import re
import zipfile
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.zip_files import is_zip, open_zip
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles


class ModelKind(StrEnum):
    """The kinds of models that can be recognised."""

    NNUNET = "nnU-Net v2"
    NNUNET_V1 = "nnU-Net v1"
    MONAI_BUNDLE = "MONAI bundle"
    TORCHSCRIPT = "TorchScript"
    EXPORTED = "torch.export"
    ONNX = "ONNX"
    OPENVINO = "OpenVINO"
    SAFETENSORS = "safetensors"
    SUBMISSION = "challenge submission"
    CHECKPOINT = "torch checkpoint"
    UNKNOWN = "unknown"


NETWORK_KINDS: Final = frozenset(
    (
        ModelKind.TORCHSCRIPT,
        ModelKind.EXPORTED,
        ModelKind.ONNX,
        ModelKind.OPENVINO,
        ModelKind.SAFETENSORS,
    )
)
"""Kinds of networks in a single file; a recipe describes their input and output."""

_SUFFIXES: Final = {".onnx": ModelKind.ONNX, ".safetensors": ModelKind.SAFETENSORS}
_TORCH: Final = frozenset((".pt", ".pth", ".pt2", ".ts", ".jit", ".torchscript"))
_PICKLE_STARTS: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_LOOKED_AT: Final = 2048  # number of bytes of an XML file within which the first element must begin


def kind_of(files: ModelFiles) -> ModelKind:
    """Return the kind of a model that is not nnU-Net v2, or UNKNOWN."""
    names = [PurePosixPath(name) for name in files.names]
    last = {name.name for name in names}
    if "plans.pkl" in last:
        return ModelKind.NNUNET_V1
    if any(name.parts[-2:] == ("configs", "metadata.json") for name in names):
        return ModelKind.MONAI_BUNDLE
    if "model.py" in last and _has_model_class(files):
        return ModelKind.SUBMISSION
    if files.is_zip:
        return next(
            (_SUFFIXES[n.suffix.lower()] for n in names if n.suffix.lower() in _SUFFIXES),
            ModelKind.UNKNOWN,
        )
    kinds = [_file_kind(_find_path(files, name)) for name in network_names(files)]
    clear_kinds = [kind for kind in kinds if kind is not ModelKind.UNKNOWN]
    return clear_kinds[0] if clear_kinds else ModelKind.UNKNOWN


def network_names(files: ModelFiles) -> tuple[str, ...]:
    """Return the files that may be networks: a single file, or the files at the top of a folder."""
    if files.path.is_file():
        return files.names
    suffixes = {*_SUFFIXES, *_TORCH, ".xml"}
    top = [name for name in files.names if "/" not in name]
    return tuple(
        name
        for name in top
        if PurePosixPath(name).suffix.lower() in suffixes
        and _file_kind(files.path / name) is not ModelKind.UNKNOWN
    )


def _file_kind(path: Path) -> ModelKind:
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    try:
        with open_plain(path) as stream:
            start = stream.read(_LOOKED_AT)
    except OSError:
        return ModelKind.UNKNOWN
    if suffix == ".xml":
        match = re.search(rb"^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?<net[\s>]", start)
        return ModelKind.OPENVINO if match else ModelKind.UNKNOWN
    if start.startswith(_PICKLE_STARTS):
        return ModelKind.CHECKPOINT
    return _packed_kind(path)


def _packed_kind(path: Path) -> ModelKind:
    if not is_zip(path):
        return ModelKind.UNKNOWN
    try:
        with open_zip(path) as archive:
            inside = [PurePosixPath(name) for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ModelKind.UNKNOWN
    if any(n.name in ("archive_format", "serialized_exported_program.json") for n in inside):
        return ModelKind.EXPORTED
    if not any(n.name == "data.pkl" for n in inside):
        return ModelKind.UNKNOWN
    has_code = any("code" in name.parts for name in inside)
    return ModelKind.TORCHSCRIPT if has_code else ModelKind.CHECKPOINT


def _find_path(files: ModelFiles, name: str) -> Path:
    return files.path / name if files.path.is_dir() else files.path


def _has_model_class(files: ModelFiles) -> bool:
    scripts = [name for name in files.names if PurePosixPath(name).name == "model.py"]
    return any(re.search(r"^class Model\b", files.text(name), re.MULTILINE) for name in scripts)
