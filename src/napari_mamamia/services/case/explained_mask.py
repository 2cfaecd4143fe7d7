"""Write a mask and its provenance together; if one fails, both earlier files remain."""

import shutil
from pathlib import Path

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import MamamiaError, SaveConflictError, SaveError
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.data_set.volumes import write_labels
from napari_mamamia.io.files.own_paths import new_path_in
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path, write_provenance


def write_explained(
    labels: LabelMap,
    provenance: Provenance,
    target: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write a mask to `target` and its provenance beside it.

    If the provenance cannot be written, the earlier mask is restored, or the new one removed: every
    mask has a provenance. A mask that a reader drew is replaced only by a mask that a reader drew,
    whatever `overwrite` says.

    Raises
    ------
    SaveConflictError, SaveError
        As `write_labels` does; an existing file is untouched then.
    """
    if overwrite and provenance.maker is not Maker.READER:
        _require_no_reader(target)
    older = _second_name(target) if overwrite and target.exists() else None
    try:
        write_labels(labels, target, overwrite=overwrite)
        try:
            write_provenance(provenance, sidecar_path(target), overwrite=True)
        except BaseException:  # includes KeyboardInterrupt
            if older is None:
                target.unlink(missing_ok=True)
            else:
                older.replace(target)
            raise
    finally:
        if older is not None:
            older.unlink(missing_ok=True)


def _require_no_reader(target: Path) -> None:
    try:
        history = read_provenance(sidecar_path(target))
    except (MamamiaError, OSError):
        return  # a failure to read provenance means that the mask is not a reader's
    if target.exists() and history.maker is Maker.READER:
        raise SaveConflictError(
            f"expected no reader's mask at {target}, but {history.name} drew the one there: it "
            "was kept; choose a different folder for models"
        )


def _second_name(target: Path) -> Path:
    """Return a temporary name of the same file, or of a copy if the system has no hard links."""
    name = new_path_in(target.parent)
    try:
        name.hardlink_to(target)
    except OSError:
        try:
            shutil.copy2(target, name)
        except OSError as error:
            name.unlink(missing_ok=True)
            raise SaveError(
                f"expected to replace {target}, but it cannot be kept until the new mask is "
                "complete "
                f"({error.strerror or error}): free some space or check the folder; it is unchanged"
            ) from error
    return name
