"""Check TorchScript files before torch opens them.

TorchScript is a separate language: loading and running it executes no Python. Its text is first
searched for the two operators that access files, and for operators and classes that do not belong
to torch; a file that contains any of these is not opened. torch's own reader extracts the text,
because it also finds text under upper-case names and duplicate names, as loading does. Faults in
torch's reader and operators cannot be excluded.
"""

import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch
from torch import nn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.segmentation.model.nnunet_files import require_stored

_TOUCHES_FILES: Final = re.compile(r"\b(save|from_file)\b")
"""Pattern for operators that access files.

Source: every operator of torch 2.13 was searched for arguments that name a file.
"""

_OPERATORS: Final = re.compile(r"\bops\s*\.\s*(\w+)\s*\.")
_KNOWN: Final = frozenset(("aten", "prim", "prims", "quantized", "prepacked", "mkldnn_prepacked"))
_CLASSES: Final = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(\w+)")
_NUMBERS: Final = frozenset(("quantized", "rnn", "sparse", "mkldnn"))
"""Namespaces of torch's compiled classes that contain weights.

Other namespaces contain processes, graphs of other programs, and measurements. Source:
torch._C._jit_get_custom_class_schemas() of torch 2.13.
"""

_COMMENT: Final = re.compile(r"#[^\n]*")
_OLD_FORM: Final = "model.json"
_COPY: Final = "copy the file again from its source"


@reads("a complete TorchScript file", "copy the file again from its source", ModelError)
def read_script(path: Path, device: str = "cpu") -> nn.Module:
    """Return the network in a TorchScript file after checking the file's text.

    Parameters
    ----------
    path
        The path of the file.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Raises
    ------
    ModelError
        If the file is damaged, or calls an operator that accesses files or does not belong to
        torch.
    """
    refused = _find_refused(path)
    if refused:
        raise ModelError(
            f"expected {path} to contain only computations, but it calls {', '.join(refused)}, so "
            "it was neither opened nor run; ask its author for a network without these calls"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's advice to use torch.export instead
            network = torch.jit.load(str(path), map_location=device)
    except (RuntimeError, ValueError, OSError) as error:
        raise _make_damage_error(path, error) from error
    if hasattr(network, "training"):  # frozen networks have none
        network.eval()
    loaded: nn.Module = network
    return loaded


def _find_refused(path: Path) -> list[str]:
    """Return the forbidden calls in a TorchScript file, found in its text."""
    try:
        calls = {call for text in _read_texts(path) for call in _find_calls(text)}
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        if isinstance(error, ModelError):
            raise
        raise _make_damage_error(path, error) from error
    return sorted(calls)


def _read_texts(path: Path) -> Iterator[str]:
    """Yield the records that contain code or name compiled classes, as found by torch's reader."""
    with open_zip(path) as archive:
        require_stored(archive, path)
    reader = torch._C.PyTorchFileReader(str(path))
    for name in reader.get_all_records():
        low = name.casefold()
        if low == _OLD_FORM:
            raise ModelError(
                f"{path} has the format of torch before 1.1, in which code may be anywhere, so it "
                "was not opened; save the network again with torch.jit.save of a recent torch"
            )
        if low.endswith((".py", ".pkl")):
            yield bytes(reader.get_record(name)).decode("latin-1")


def _find_calls(text: str) -> Iterator[str]:
    """Yield the forbidden calls in one record; a comment may come between any two words."""
    # Also without removing comments: a # inside a string does not begin a comment, and the text
    # after it counts.
    for one in (text, _COMMENT.sub(" ", text)):
        yield from (f"torch.{name}" for name in _TOUCHES_FILES.findall(one))
        spaces = set(_OPERATORS.findall(one)) - _KNOWN
        yield from (f"operators of {name}" for name in spaces)
        classes = set(_CLASSES.findall(one)) - _NUMBERS
        yield from (f"classes of {name}" for name in classes)


def _make_damage_error(path: Path, error: Exception) -> ModelError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[-1] if lines else type(error).__name__
    return ModelError(
        f"expected {path} to be a complete TorchScript file, but torch {torch.__version__} cannot "
        f"open it ({reason}); {_COPY}, or export the network with this version of torch"
    )
