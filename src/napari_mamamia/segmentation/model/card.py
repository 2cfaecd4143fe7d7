"""`ModelCard`: what is known of a model before it is loaded."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles

RECIPE_NAME: Final = "mamamia_model.json"
"""Name of the recipe beside a model."""

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
    network
        What a network in a single file takes and gives; None for other kinds, and until a recipe
        says it.
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
    network: NetworkSpec | None = None

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


def summed(
    files: ModelFiles, weights: Sequence[tuple[str, int]], checksums: bool
) -> Iterator[WeightFile]:
    """Yield files with weights, with their SHA-256 if `checksums` are wanted."""
    for name, n_bytes in weights:
        yield WeightFile(name, n_bytes, files.sha256(name) if checksums else "")


def licence_text(files: ModelFiles, root: str) -> str:
    """Return the text of the licence nearest to the model, "" if there is none."""
    name = licence_file(files, root)
    return files.text(name)[:_LICENCE_LENGTH] if name else ""


def licence_file(files: ModelFiles, root: str) -> str:
    """Return the name of the licence nearest to the model at `root`, "" if there is none."""
    places = [PurePosixPath(root), *PurePosixPath(root).parents] if root else [PurePosixPath()]
    for place in places:
        for name in files.names:
            file = PurePosixPath(name)
            if file.parent == place and _LICENCE.match(file.name):
                return name
    return ""
