"""Write the files of a case into a temporary folder and move them into place together."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.io.data_set.bundle import BundleFile, describe_large_file
from napari_mamamia.io.data_set.volumes import write_volume_job
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.workspace.provenance import sidecar_path, write_provenance
from napari_mamamia.services.export.masks import DrawnMask


class CaseWriter:
    """A writer of one case's files below `root`; `files` records them."""

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
        """Write a mask and, beside it, its provenance with the fields that a standard requires."""
        self.volume(array, grid, path, "mask", drawn.name)
        self.history(drawn, sidecar_path(path), standard)

    def history(
        self, drawn: DrawnMask, path: Path, standard: Sequence[tuple[str, str | bool]] = ()
    ) -> None:
        """Write a mask's provenance, after the keys that a standard requires."""
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

    If the block fails or is cancelled, no file of the case is moved, and older files stay
    unchanged.

    Raises
    ------
    SaveConflictError
        If a file exists and `replacing` is off; no file is moved then.
    SaveError
        If the system refuses to write.
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
            f"expected to save the files of the case in {root}, but {error.strerror or error}: "
            "free some space or choose another folder, and export again"
        ) from error


def _require_free(root: Path, names: Sequence[Path]) -> None:
    for name in names:
        if os.path.lexists(root / name):
            raise SaveConflictError(
                f"expected no file at {root / name}, but there is one already: nothing of the case "
                "was written; choose another folder, or allow overwriting"
            )
