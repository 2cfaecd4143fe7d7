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
"""Yields the problems of a bundle's file other than a wrong checksum or wrong voxels."""


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """The export's choices before any file is read: `n_masks` files in `n_sets` mask sets."""

    settings: ExportSettings
    n_masks: int
    n_sets: int
    is_dicom: bool


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A whole export: the cases, the names of the mask sets, and the output folder.

    `others` lists, for cases without a mask, the files that carry the case's name.
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
    """The written files of a case, its quality findings, and sentences for the user."""

    entry: CaseEntry
    quality: CaseQuality | None
    notes: tuple[str, ...]
    times_s: tuple[float | None, ...]


def files_of(done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    """Return the written files of all cases."""
    return tuple(file for case in done for file in case.entry.files)


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """One export format.

    Parameters
    ----------
    title, tip
        The format's name and tooltip in the window.
    purpose
        The users of the format, for the documentation.
    folders
        The folders of a bundle that belong to the format.
    describe
        Returns sentences about the files that will be written.
    write
        Writes a case; the writer records each file.
    problem
        Returns why the format cannot be written with the current choices, "" if it can.
    require
        Raises `MamamiaError`, before anything is written, for data that the format cannot hold.
    finish
        Writes files that describe or pack all cases; only called if there is a case.
    notes
        Returns sentences about the data of a case that this format loses.
    verify
        Checks the format's files of the kinds in `verified`, such as "other".
    turned
        The folders whose volumes may be on another grid than the image.
    needs_images
        Whether the format writes the phases, so that they must be read.
    needs_right_angles
        Whether programs that read the format refuse sheared axes.
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
