"""The record of an export format, and the input of its functions."""

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
"""Yields the problems of a file of a bundle, besides its checksum and its voxels."""


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """The choices before anything is read: `n_masks` files in `n_sets` sets of masks."""

    settings: ExportSettings
    n_masks: int
    n_sets: int
    is_dicom: bool


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A whole export: the cases, the names of their sets of masks, and the output folder.

    `others` name, for cases without a mask, files that carry their names.
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
    """One case of an export: its masks, and its images if a format or the user needs them."""

    plan: ExportPlan
    files: CaseFiles
    grid: Grid
    drawn: tuple[DrawnMask, ...]
    case: Case | None


@dataclass(frozen=True, slots=True)
class DoneCase:
    """The files written of one case, its quality findings, and sentences for the user."""

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
        Its name in the window, and what it writes.
    purpose
        Its users, for the documentation.
    folders
        The folders of a bundle that belong to it.
    describe
        Returns sentences on what it will write.
    write
        Writes one case; the writer records each file.
    problem
        Returns why it cannot be written with the present choices, "" if it can.
    require
        Raises `MamamiaError` for data that it cannot hold, before anything is written.
    finish
        Writes files that describe or pack all cases; only called if there is one.
    notes
        Returns sentences on the losses of a case in this format.
    verify
        Checks its files of the kinds in `verified`, such as "other".
    turned
        Those of its folders whose volumes may lie on another grid than the image's.
    needs_images
        Whether it writes the phases, so that they must be read.
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
