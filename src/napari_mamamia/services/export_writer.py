"""The files of one case in a bundle: recorded as they are written, taken back after a failure."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Job, run_job
from napari_mamamia.io.bundle import BundleFile, describe_file_job
from napari_mamamia.io.provenance import sidecar_path, write_provenance
from napari_mamamia.io.volumes import write_volume_job
from napari_mamamia.services.export_masks import DrawnMask

__all__ = ["CaseWriter", "case_writer"]


class CaseWriter:
    """Writes the files of one case; `files` are their records."""

    def __init__(self, root: Path, case_id: str, *, replacing: bool) -> None:
        self.root = root
        self.case_id = case_id
        self.replacing = replacing
        self.files: list[BundleFile] = []
        self._written: list[Path] = []

    def volume(
        self, array: NDArray[Any], grid: Grid, path: Path, kind: str, masks: str = ""
    ) -> Job[None]:
        """Return a job that writes and records a mask or an image on `grid`."""
        yield from write_volume_job(array, grid, path, overwrite=self.replacing)
        yield from self._recorded(path, kind, masks, grid)

    def mask(self, drawn: DrawnMask, array: NDArray[Any], grid: Grid, path: Path) -> Job[None]:
        """Return a job that writes a mask and, beside it, who made it."""
        yield from self.volume(array, grid, path, "mask", drawn.name)
        self.history(drawn, sidecar_path(path))

    def history(self, drawn: DrawnMask, path: Path) -> None:
        """Write a mask's provenance."""
        write_provenance(drawn.provenance, path, overwrite=self.replacing)
        self.record(path, "provenance", masks=drawn.name)

    def record(self, path: Path, kind: str, *, masks: str = "", grid: Grid | None = None) -> None:
        """Record a file that was written, with its SHA-256."""
        run_job(self._recorded(path, kind, masks, grid))

    def take_back(self) -> None:
        """Remove what was written."""
        for path in self._written:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _recorded(self, path: Path, kind: str, masks: str, grid: Grid | None) -> Job[None]:
        self._written.append(path)
        described = describe_file_job(
            self.root, path, kind, case_id=self.case_id, masks=masks, grid=grid
        )
        self.files.append((yield from described))


@contextmanager
def case_writer(root: Path, case_id: str, *, replacing: bool) -> Iterator[CaseWriter]:
    """Give a `CaseWriter`; if the block fails or is cancelled, nothing of the case stays."""
    writer = CaseWriter(root, case_id, replacing=replacing)
    finished = False
    try:
        yield writer
        finished = True
    finally:
        if not finished:
            writer.take_back()
