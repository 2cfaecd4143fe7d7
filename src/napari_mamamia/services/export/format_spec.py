"""What an export format is to all that offers it, and what it is given to write."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.bundle import BundleFile, CaseEntry, Manifest
from napari_mamamia.io.files.sources import CaseFiles, DataSet
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.export.masks import DrawnMask
from napari_mamamia.services.export.plan import ExportSettings
from napari_mamamia.services.export.quality import CaseQuality
from napari_mamamia.services.export.writer import CaseWriter

FileCheck: TypeAlias = Callable[[Path, BundleFile, Manifest], Iterator[str]]
"""Yields what is wrong with a file of a bundle, beside its checksum and its voxels."""


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """What is chosen before anything is read: `n_masks` files in `n_sets` sets of masks."""

    settings: ExportSettings
    n_masks: int
    n_sets: int
    is_dicom: bool


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A whole export: the cases, the names of their sets of masks, and where they are written.

    `others` say of cases without a mask which files carry their names.
    """

    data_set: DataSet
    opened: OpenDataSet | None
    settings: ExportSettings
    names: tuple[str, ...]
    sets: tuple[Mapping[str, Path], ...]
    others: Mapping[str, str]
    cases: tuple[str, ...]
    out: Path
    replacing: bool


@dataclass(frozen=True, slots=True)
class CaseWork:
    """One case of an export: its masks, its images where a format or the user asks for them."""

    plan: ExportPlan
    files: CaseFiles
    grid: Grid
    drawn: tuple[DrawnMask, ...]
    case: Case | None


@dataclass(frozen=True, slots=True)
class DoneCase:
    """What was written of one case, what is unusual about it, and sentences for the user."""

    entry: CaseEntry
    quality: CaseQuality | None
    notes: tuple[str, ...]
    times_s: tuple[float | None, ...]


def files_of(done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    """Return the files of all cases that were written."""
    return tuple(file for case in done for file in case.entry.files)


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """One export format.

    Parameters
    ----------
    title, tip
        Its words in the window, and what it writes.
    purpose
        Who takes it, for the documentation.
    folders
        The folders of a bundle that are its own.
    describe
        Sentences on what it will write.
    write
        Writes one case; the writer records each file.
    problem
        Why it cannot be written as far as the choices tell, "" where it can.
    require
        Raises `MamamiaError` for what it cannot hold, before anything is written.
    finish
        Writes what describes or packs all cases; only called where there is one.
    notes
        Sentences on what a case loses in it.
    verify
        Looks into its files of the kinds in `verified`, such as "other".
    turned
        Those of its folders whose volumes may lie on another grid than the image's.
    needs_images
        Whether it writes the phases, so that they are read.
    needs_right_angles
        Whether its readers refuse sheared axes.
    """

    title: str
    tip: str
    purpose: str
    folders: tuple[str, ...]
    describe: Callable[[ExportSelection], Sequence[str]]
    write: Callable[[CaseWork, CaseWriter], None]
    problem: Callable[[ExportSelection], str] = lambda _: ""
    require: Callable[[ExportPlan], None] = lambda _: None
    finish: Callable[[ExportPlan, Sequence[DoneCase]], Sequence[BundleFile]] = lambda *_: ()
    notes: Callable[[CaseWork], Iterator[str]] = lambda _: iter(())
    verify: FileCheck | None = None
    verified: tuple[str, ...] = ("mask", "image", "segmentation")
    turned: tuple[str, ...] = ()
    needs_images: bool = False
    needs_right_angles: bool = False
