"""Save a reader's edited mask without overwriting other masks, and find the saved mask again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.errors import MamamiaError, SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting, now_utc
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.explained_mask import write_explained

ACCEPTED: Final = "accepted"
"""Provenance parameter: time when the reader accepted this version of the mask, ISO 8601 in UTC."""


@dataclass(frozen=True, slots=True)
class SavedMask:
    """A reader's mask on disk, and whether the reader accepted this version."""

    path: Path
    sha256: str
    is_accepted: bool = False


def find_refined(workspace: Workspace, reader: str, case_id: str) -> SavedMask | None:
    """Return the reader's saved mask of a case, or None."""
    path = workspace.refined(reader, case_id)
    return SavedMask(path, sha256_of(path), is_accepted(path)) if path.exists() else None


def is_accepted(path: Path) -> bool:
    """Return whether the provenance of a reader's mask records that the reader accepted it."""
    try:
        return ACCEPTED in dict(read_provenance(sidecar_path(path)).parameters)
    except (MamamiaError, OSError):
        return False


def save_refined(
    workspace: Workspace,
    reader: str,
    case: Case,
    labels: NDArray[Any],
    *,
    started_from: str = "",
    seconds: float | None = None,
    replaces: SavedMask | None = None,
    parameters: tuple[tuple[str, Setting], ...] = (),
    inputs: tuple[InputFile, ...] = (),
    accepted: bool = False,
) -> SavedMask:
    """Save an edited mask as ``refined/READER/ID.nii.gz`` with its provenance.

    Parameters
    ----------
    labels
        The mask ``(z, y, x)``. uint8 values are written unchanged, with one value for each
        structure; in any other data type, every value above 0 becomes 1. The non-zero block is
        copied first, which allows the caller to continue editing.
    started_from
        The origin of the mask, such as ``"prediction kinetic"``.
    parameters, inputs
        Additional provenance: the strokes and tools, and the file of the initial mask.
    accepted
        Whether the reader accepts this version. A later version must be accepted again.
    replaces
        The version that was opened or last saved. The file is not overwritten if another window has
        saved a different version.

    Raises
    ------
    SaveConflictError
        If the mask on disk is not the version `replaces`.
    SaveError
        If the disk is full or read-only; the old file is then unchanged.
    """
    drawn = LabelMap.of(np.asarray(labels), case.grid)
    if drawn.crop.dtype != np.uint8:
        drawn = LabelMap(case.grid, drawn.box, drawn.crop > 0)
    report_progress(0, 1, "Saving")
    target = workspace.refined(reader, case.case_id)
    _require_unchanged(target, replaces)
    # From here on it is too late to cancel, because "stopped" always means that nothing was
    # written.
    report_progress(0, 1, "Saving", binding=True)
    provenance = Provenance(
        case_id=case.case_id,
        maker=Maker.READER,
        name=reader,
        inputs=inputs,
        parameters=(*parameters, *(((ACCEPTED, now_utc()),) if accepted else ())),
        seconds=seconds,
        started_from=started_from,
    )
    write_explained(drawn, provenance, target, overwrite=replaces is not None)
    workspace.note_data_set()
    report_progress(1, 1, "Saved")
    return SavedMask(target, sha256_of(target), accepted)


def _require_unchanged(target: Path, replaces: SavedMask | None) -> None:
    if not target.exists():
        return
    if replaces is None or sha256_of(target) != replaces.sha256:
        raise SaveConflictError(
            f"expected {target} to be unchanged since this case was opened, but it was changed, "
            "perhaps in another window. Your mask is still in this window: open the case again "
            "to see the changed mask, or save under a different reader's name"
        )
