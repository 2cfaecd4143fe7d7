"""Read nnU-Net checkpoints as data; checkpoints that contain code are rejected.

A ``.pth`` file is a pickle, and unpickling it can run any program. This module uses torch's
restricted reader with the few additional types that nnU-Net itself stores. Source of the list: the
contents of a real checkpoint of nnunetv2 2.8.1 apart from tensors (its log and best score are numpy
scalars, its arguments contain a torch.device).
"""

import codecs
import pickle
import pickletools
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from napari_mamamia.core.errors import ModelError, RefusedCheckpointError, Remedy
from napari_mamamia.io.files.foreign import open_bounded, open_plain, reads
from napari_mamamia.io.files.zip_files import is_zip, open_zip
from napari_mamamia.segmentation.model.nnunet_files import require_stored
from napari_mamamia.segmentation.nnunet.safetensors import Checkpoint, read_safetensors

_SCALAR: Final = np._core.multiarray.scalar  # type: ignore[attr-defined]
_ALLOWED: Final[list[Any]] = [
    _SCALAR,
    # A checkpoint names the module of the numpy that wrote it, version 1 or 2.
    (_SCALAR, "numpy.core.multiarray.scalar"),
    (_SCALAR, "numpy._core.multiarray.scalar"),
    np.dtype,
    np.dtypes.Float16DType,
    np.dtypes.Float32DType,
    np.dtypes.Float64DType,
    np.dtypes.Int64DType,
    # How older pickles of Python store bytes, such as those of a numpy scalar.
    (codecs.encode, "_codecs.encode"),
]
_KEYS: Final = ("network_weights", "trainer_name", "init_args")
_MOST_AXES: Final = 3
_WRAPPERS: Final = ("module.", "_orig_mod.")
_COPY: Final = "copy the file again from its source"

DAMAGE: Final = (
    RuntimeError, EOFError, OSError, ValueError, LookupError, AttributeError, TypeError,
    AssertionError, ArithmeticError, struct.error,
)  # fmt: skip
"""Exceptions that torch's restricted reader raises for damaged files and files of other types."""

SAFE_SUFFIX: Final = ".safetensors"


def checkpoint_file(fold: Path, name: str) -> Path:
    """Return the path of a fold's checkpoint, or of the converted file that replaces it.

    Recipes and settings also use the name ``checkpoint_best.pth`` for a converted model.
    """
    path = fold / name
    converted = path.with_suffix(SAFE_SUFFIX)
    return converted if converted.is_file() and not path.is_file() else path


@reads("a complete checkpoint", "copy the file again from its source", ModelError)
def load_checkpoint(path: Path) -> Checkpoint:
    """Return a checkpoint; the file is read rather than memory-mapped, as in `read_tensors`.

    Raises
    ------
    ModelError
        If the file is missing, truncated, or not an nnU-Net checkpoint.
    RefusedCheckpointError
        If the file contains code; the message lists the calls.
    """
    if path.suffix == SAFE_SUFFIX and path.is_file():
        return read_safetensors(path)
    content = _load_file(path)
    if not isinstance(content, dict) or any(key not in content for key in _KEYS):
        has = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise ModelError(
            f"expected {path} to contain {', '.join(_KEYS)}, as nnU-Net v2 saves them, but it has "
            f"{has}; choose the checkpoint that nnU-Net wrote, or use the model's own format"
        )
    weights, arguments = content["network_weights"], content["init_args"]
    if not isinstance(weights, dict) or not all(torch.is_tensor(v) for v in weights.values()):
        raise ModelError(f"network_weights in {path} does not consist of named tensors; {_COPY}")
    axes = content.get("inference_allowed_mirroring_axes") or ()
    if not isinstance(arguments, dict) or not all(axis in range(_MOST_AXES) for axis in axes):
        raise ModelError(
            f"expected {path} to name its configuration and mirroring axes from 0 to 2, but its "
            f"axes are {axes!r}; {_COPY}"
        )
    return Checkpoint(
        path=path,
        weights=unwrapped(weights),
        trainer=str(content["trainer_name"]),
        configuration=str(arguments.get("configuration", "")),
        mirror_axes=tuple(int(axis) for axis in axes)[:_MOST_AXES],
    )


def unwrapped(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return weights without the name prefixes that DataParallel and torch.compile add."""
    for prefix in _WRAPPERS * 2:  # either may wrap the other
        if all(name.startswith(prefix) for name in weights):
            weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    return dict(weights)


@reads("a complete checkpoint", "copy the file again from its source", ModelError)
def unsafe_globals(path: Path) -> tuple[str, ...]:
    """Return the forbidden names that loading a checkpoint would call, without loading it."""
    with torch.serialization.safe_globals(_ALLOWED):
        try:
            with open_plain(path) as stream:
                return tuple(sorted(torch.serialization.get_unsafe_globals_in_checkpoint(stream)))
        except (*DAMAGE, pickle.UnpicklingError):
            return tuple(sorted(_globals_of_pickle(path)))


def require_plain_zip(path: Path) -> None:
    """Raise `ModelError` if a checkpoint would unpack to many times its size."""
    if is_zip(path):
        with suppress(zipfile.BadZipFile), open_zip(path) as archive:
            require_stored(archive, path)


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise ModelError(
            f"expected a checkpoint at {path}, but there is no file; choose a fold and a "
            "checkpoint that the model has, or copy the missing file"
        )
    require_plain_zip(path)
    try:
        with torch.serialization.safe_globals(_ALLOWED), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # warnings about pickle's version: the file is refused or read anyway
            with open_plain(path) as stream:
                return torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        names = unsafe_globals(path)
        if not names:
            raise ModelError(
                f"expected {path} to be a checkpoint, but it cannot be read as data "
                f"({_first_line(error)}); {_COPY}"
            ) from error
        raise RefusedCheckpointError(
            f"expected {path} to contain only numbers, but loading it would call "
            f"{', '.join(names)}, so it was neither opened nor run. Ask its author for a clean "
            "file, or convert it in a sandbox, which extracts only the numbers",
            remedies=(Remedy(command="models convert", values=(str(path.parent.parent),)),),
        ) from error
    except DAMAGE as error:
        raise ModelError(
            f"expected {path} to be a complete checkpoint, but it is damaged or truncated "
            f"({_first_line(error)}); {_COPY}"
        ) from error


def _globals_of_pickle(path: Path) -> Iterator[str]:
    """Yield the names that a pickle outside a zip would import, read from its opcodes as data."""
    texts: list[str] = []
    memo: list[str] = []
    with suppress(*DAMAGE), open_bounded(path) as stream:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "GLOBAL":
                yield str(argument).replace(" ", ".")
            elif opcode.name == "STACK_GLOBAL":
                yield ".".join(texts[-2:])
                # The value on the stack is not text, but may be memoised like text.
                texts.append("")
            elif opcode.name == "MEMOIZE":
                memo.append(texts[-1] if texts else "")
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                texts.append(memo[int(str(argument))])
            elif isinstance(argument, str):
                texts.append(argument)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
