"""Store nnU-Net checkpoints as safetensors files, which contain numbers and text but no code.

Tensors that share their numbers are stored once. The header contains their additional names, the
trainer, the configuration, the mirroring axes, and the SHA-256 of the original checkpoint. Source
of the format: huggingface/safetensors, README.md, "Format".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file

from napari_mamamia.core.errors import ModelError, SaveError
from napari_mamamia.io.files.foreign import open_plain, reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.save import saving
from napari_mamamia.segmentation.nnunet.unpickle import FORMAT, distinct, header
from napari_mamamia.segmentation.sandbox.external import printable

_AXES: Final = (0, 1, 2)
_NAME_LENGTH: Final = 200
_COPY: Final = "convert the model again, or copy the file again from its source"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The parts of a checkpoint that a run needs.

    `mirror_axes` are the axes along which mirrored copies may be made (0 is the model's first
    axis); they are empty if the trainer did not mirror.
    """

    path: Path
    weights: Mapping[str, Any]
    trainer: str
    configuration: str
    mirror_axes: tuple[int, ...]


@reads("a complete safetensors file", "copy the file again from its source", ModelError)
def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the tensors in a safetensors file by name, and the strings in its header.

    The file is read rather than memory-mapped, because the process would crash if a mapped file
    were truncated in the meantime.

    Raises
    ------
    ModelError
        If the file is damaged or truncated.
    """
    with open_plain(path) as stream:
        content = stream.read()
    try:
        tensors: dict[str, Any] = load(content)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"expected {path} to be a complete safetensors file, but it is damaged or truncated "
            f"({printable(str(error))}); {_COPY}"
        ) from error
    header = parsed_json(content[8 : 8 + int.from_bytes(content[:8], "little")].decode("utf-8"))
    return tensors, header.get("__metadata__") or {}


@reads("a complete safetensors file", "copy the file again from its source", ModelError)
def read_safetensors(path: Path) -> Checkpoint:
    """Return a checkpoint from a safetensors file; reading the file cannot run code.

    Raises
    ------
    ModelError
        If the file is damaged, or is not a checkpoint that this software wrote.
    """
    weights, texts = read_tensors(path)
    if texts.get("format") != FORMAT:
        raise ModelError(
            f"expected {path} to be a converted checkpoint of this software, but the format in "
            f"its header is {printable(texts.get('format', 'nothing'), 60)!r}; choose the model's "
            "own format"
        )
    for name, first in _read_same(texts, path).items():
        if first not in weights:
            raise ModelError(
                f"expected {name} in {path} to be stored as {first}, but that tensor is missing; "
                f"{_COPY}"
            )
        weights[name] = weights[first]
    return Checkpoint(
        path=path,
        weights=weights,
        trainer=printable(texts.get("trainer", ""), _NAME_LENGTH),
        configuration=printable(texts.get("configuration", ""), _NAME_LENGTH),
        mirror_axes=_read_axes(texts, path),
    )


def write_safetensors(checkpoint: Checkpoint, path: Path, source_sha256: str) -> int:
    """Write a checkpoint, then read it again and compare; return the number of tensors.

    Parameters
    ----------
    checkpoint
        The weights and settings of a fold.
    path
        The path of the new file.
    source_sha256
        SHA-256 of the original checkpoint.

    Raises
    ------
    SaveConflictError
        If a file already exists at `path`.
    SaveError
        If the file cannot be written, or differs when it is read again.
    """
    tensors, same = distinct(checkpoint.weights)
    text = header(
        checkpoint.trainer,
        checkpoint.configuration,
        checkpoint.mirror_axes,
        same,
        source_sha256=source_sha256,
    )
    with saving(path) as temporary:
        try:
            save_file(tensors, temporary, text)
        except SafetensorError as error:
            raise SaveError(
                f"cannot write {path.name} to {path.parent}: {error}; free some space, or choose "
                "a different folder"
            ) from error
        temporary.chmod(0o644)  # the permissions of the package's own file allow its writer alone
        if not _is_equal(checkpoint, read_safetensors(temporary)):
            raise SaveError(
                f"expected {path} to contain the numbers of {checkpoint.path}, but they differ "
                "when the file is read again; check the disk and convert the checkpoint again"
            )
    return len(tensors)


def _is_equal(one: Checkpoint, other: Checkpoint) -> bool:
    """Return whether two checkpoints are bit-identical, including NaN values."""
    facts = [(c.trainer, c.configuration, c.mirror_axes, set(c.weights)) for c in (one, other)]
    return facts[0] == facts[1] and all(
        _same_bits(value, other.weights[name]) for name, value in one.weights.items()
    )


def _same_bits(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    bits = [value.contiguous().flatten().view(torch.uint8) for value in (one, other)]
    return bool(torch.equal(bits[0], bits[1]))


def _read_same(texts: Mapping[str, str], path: Path) -> dict[str, str]:
    same_names = _parse_entry(texts, "same", path)
    if not isinstance(same_names, dict) or not all(
        isinstance(same_name, str) for same_name in same_names.values()
    ):
        raise ModelError(
            f"the header of {path} does not list the tensors that share numbers; {_COPY}"
        )
    return same_names


def _read_axes(texts: Mapping[str, str], path: Path) -> tuple[int, ...]:
    axes = _parse_entry(texts, "mirror_axes", path)
    if not isinstance(axes, list) or any(type(a) is not int or a not in _AXES for a in axes):
        raise ModelError(
            f"expected the mirroring axes in {path} to be among 0, 1, 2, but they are "
            f"{printable(str(axes), 60)}; {_COPY}"
        )
    return tuple(axes)


def _parse_entry(texts: Mapping[str, str], key: str, path: Path) -> Any:
    try:
        return parsed_json(texts.get(key, "null"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{key} in the header of {path} cannot be read; {_COPY}") from error
