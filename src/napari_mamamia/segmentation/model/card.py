"""Description of a model before it is loaded (`ModelCard`)."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles

RECIPE_NAME: Final = "mamamia_model.json"
"""Name of the recipe file that lies next to a model."""

_LICENCE: Final = re.compile(r"^(licen[cs]e|copying)(\.(txt|md|rst))?$", re.IGNORECASE)
_LICENCE_LENGTH: Final = 20_000


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A weights file: its name inside the model, its size in bytes, and its SHA-256 or ""."""

    name: str
    n_bytes: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The description of a model before it is loaded.

    Parameters
    ----------
    path
        The folder, zip or file that the user chose; `is_zip` is True if it must be unpacked.
    kind, name
        The kind of the model, and a name for users and folders.
    inner
        The folder of the trained model below `path`, or "" for `path` itself.
    configuration, trainer, folds, checkpoints
        The names as used by nnU-Net. `checkpoints` are the file names that every fold has, best
        first.
    channels, labels
        The names of the inputs, and the labels as (name, values) without background.
    licence
        The text of a licence file next to the model, or "".
    weights
        The files with weights.
    missing
        The reasons why the model cannot be run, as sentences; empty if no reason is known.
    facts
        Additional (name, value) pairs to show: patch, spacing, network and previous stage.
    has_recipe
        Whether there is a file `RECIPE_NAME` next to the model.
    network
        The input and output of a network in a single file; None for other kinds, and without a
        recipe.
    """

    path: Path
    kind: str
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
    network: NetworkSpec | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the weights file, or of the checksums of several files in order of name.

        The result is "" if no checksum was computed.
        """
        sums = [weight.sha256 for weight in sorted(self.weights, key=lambda item: item.name)]
        if not sums or not all(sums):
            return ""
        return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode()).hexdigest()

    @property
    def usable(self) -> bool:
        """Whether the model can be run, as far as is known before loading."""
        return not self.missing


def summed(
    files: ModelFiles, weights: Sequence[tuple[str, int]], checksums: bool
) -> Iterator[WeightFile]:
    """Yield the weights files, with their SHA-256 if `checksums` is true.

    Parameters
    ----------
    files
        The files of the model.
    weights
        The names and sizes in bytes of the files with weights.
    checksums
        Whether to compute the SHA-256 of the weights.
    """
    for name, n_bytes in weights:
        yield WeightFile(name, n_bytes, files.sha256(name) if checksums else "")


def licence_text(files: ModelFiles, root: str) -> str:
    """Return the text of the licence file that is nearest to the model, or "".

    Parameters
    ----------
    files
        The files of the model.
    root
        The folder of the trained model below the path, or "" for the path itself.
    """
    name = licence_file(files, root)
    return files.text(name)[:_LICENCE_LENGTH] if name else ""


def licence_file(files: ModelFiles, root: str) -> str:
    """Return the name of the licence file that is nearest to the model at `root`, or "".

    Parameters
    ----------
    files
        The files of the model.
    root
        The folder of the trained model below the path, or "" for the path itself.
    """
    places = [PurePosixPath(root), *PurePosixPath(root).parents] if root else [PurePosixPath()]
    for place in places:
        for name in files.names:
            file = PurePosixPath(name)
            if file.parent == place and _LICENCE.match(file.name):
                return name
    return ""
