"""The definition of an export format, the input of its functions, and the writer of its files."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.io.data_set.bundle import BundleFile, CaseEntry, Manifest, describe_large_file
from napari_mamamia.io.data_set.volumes import write_volume_job
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.sources import CaseFiles, DataSet
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.export.plan import DrawnMask, ExportSettings
from napari_mamamia.services.export.quality import CaseQuality

FileCheck: TypeAlias = Callable[[Path, BundleFile, Manifest], Iterator[str]]
"""Function that yields problems with a file of the bundle, except wrong checksums and voxels."""


class CaseWriter:
    """A writer of one case's files below `root`; `files` lists the written files."""

    def __init__(self, root: Path, case_id: str) -> None:
        self.root = root
        self.case_id = case_id
        self.files: list[BundleFile] = []

    def volume(
        self, array: NDArray[Any], grid: Grid, path: Path, kind: str, masks: str = ""
    ) -> None:
        """Write and record a mask or an image on `grid`."""
        write_volume_job(array, grid, path)
        self._record_file(path, kind, masks, grid)

    def mask(
        self,
        drawn: DrawnMask,
        array: NDArray[Any],
        grid: Grid,
        path: Path,
        standard: Sequence[tuple[str, str | bool]] = (),
    ) -> None:
        """Write a mask, and a file with its provenance and the fields that a standard requires."""
        self.volume(array, grid, path, "mask", drawn.name)
        self.history(drawn, sidecar_path(path), standard)

    def history(
        self, drawn: DrawnMask, path: Path, standard: Sequence[tuple[str, str | bool]] = ()
    ) -> None:
        """Write a mask's provenance after the keys that a standard requires."""
        write_provenance(drawn.provenance, path, standard=standard)
        self.record(path, "provenance", masks=drawn.name)

    def record(self, path: Path, kind: str, *, masks: str = "", grid: Grid | None = None) -> None:
        """Record a file that was written, with its SHA-256."""
        with listening(None):
            self._record_file(path, kind, masks, grid)

    def _record_file(self, path: Path, kind: str, masks: str, grid: Grid | None) -> None:
        self.files.append(
            describe_large_file(self.root, path, kind, case_id=self.case_id, masks=masks, grid=grid)
        )


@contextmanager
def case_writer(root: Path, case_id: str, *, replacing: bool) -> Iterator[CaseWriter]:
    """Yield a `CaseWriter` for a temporary folder; its files move to `root` when the block ends.

    If the block fails or is cancelled, no file of the case is moved, and older files are unchanged.

    Raises
    ------
    SaveConflictError
        If a file exists and `replacing` is False; no file is then moved.
    SaveError
        If a file cannot be written.
    """
    with own_folder(root) as folder:
        yield CaseWriter(folder, case_id)
        _put_in_place(folder, root, replacing=replacing)


def _put_in_place(folder: Path, root: Path, *, replacing: bool) -> None:
    try:
        names = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
        if not replacing:
            _require_free(root, names)
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).replace(root / name)
    except SaveConflictError:
        raise
    except OSError as error:
        raise SaveError(
            f"the files of the case could not be saved in {root}, because "
            f"{error.strerror or error}: free some space or choose another folder, and export "
            "again"
        ) from error


def _require_free(root: Path, names: Sequence[Path]) -> None:
    for name in names:
        if os.path.lexists(root / name):
            raise SaveConflictError(
                f"{root / name} already exists, so no file of the case was written: choose a "
                "different folder, or allow overwriting"
            )


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """The choices of an export before any file is read; `n_masks` files in `n_sets` mask sets."""

    settings: ExportSettings
    n_masks: int
    n_sets: int
    is_dicom: bool


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The plan of an export: the cases, the names of the mask sets, and the output folder.

    For cases without a mask, `others` lists the files whose names contain the case id.
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
    """One case of an export: its masks, and its images if a format or the user requires them."""

    plan: ExportPlan
    files: CaseFiles
    grid: Grid
    drawn: tuple[DrawnMask, ...]
    case: Case | None


@dataclass(frozen=True, slots=True)
class DoneCase:
    """The written files of a case, its quality findings, and notes for the user."""

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
        The use of the format, for the documentation.
    folders
        The folders in a bundle that belong to the format.
    describe
        Function that returns sentences about the files that will be written.
    write
        Function that writes a case; the writer records each file.
    problem
        Function that returns why the format cannot be written with the current choices, or "".
    require
        Function that raises `MamamiaError`, before anything is written, if the format cannot
        represent the data.
    finish
        Function that writes files that describe or pack all cases; called only if there is a case.
    notes
        Function that returns sentences about data of a case that are lost in this format.
    verify
        Function that checks the format's files of the kinds in `verified`, such as "other".
    turned
        The folders whose volumes may be on a different grid from the image.
    needs_images
        Whether the format writes the phases, which must then be read.
    needs_right_angles
        Whether programs that read the format do not support sheared axes.
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
