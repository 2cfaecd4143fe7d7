"""Write a mask and its provenance together; if either cannot be written, the old files are kept."""

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
    """Write a mask to `target` and its provenance to a file next to it.

    Every mask has a provenance: if the provenance cannot be written, the earlier mask is restored,
    or the new mask is removed. A mask that a reader drew can only be replaced by a mask that a
    reader drew, regardless of `overwrite`.

    Raises
    ------
    SaveConflictError, SaveError
        As in `write_labels`; an existing file is then unchanged.
    """
    if overwrite and provenance.maker is not Maker.READER:
        _require_no_reader(target)
    older = _second_name(target) if overwrite and target.exists() else None
    try:
        write_labels(labels, target, overwrite=overwrite)
        try:
            write_provenance(provenance, sidecar_path(target), overwrite=True)
        except BaseException:  # This includes KeyboardInterrupt.
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
        return  # If the provenance cannot be read, the mask is not a reader's mask.
    if target.exists() and history.maker is Maker.READER:
        raise SaveConflictError(
            f"{target} is a mask that {history.name} drew, so it was not replaced: choose a "
            "different folder for the model's masks"
        )


def _second_name(target: Path) -> Path:
    """Return a temporary hard link to a file, or a copy if the system has no hard links."""
    name = new_path_in(target.parent)
    try:
        name.hardlink_to(target)
    except OSError:
        try:
            shutil.copy2(target, name)
        except OSError as error:
            name.unlink(missing_ok=True)
            raise SaveError(
                f"{target} cannot be replaced, because its backup cannot be kept until the new "
                f"mask is complete ({error.strerror or error}): free some space or check the "
                "folder; the mask is unchanged"
            ) from error
    return name
