"""Making a submission of a MONAI bundle, to be run as its author wrote it in a closed room."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import ModelError, SaveConflictError, SaveError
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.segmentation.bundle import in_sandbox as bundle_in_sandbox
from napari_mamamia.segmentation.sandbox.external import Submission, read_submission

_NEEDED: Final = ("configs/metadata.json", "models")
_RUNS: Final = ("inference.json", "inference.yaml", "inference.yml")


def wrap_bundle(
    bundle: Path, out: Path, phases: Sequence[int], labels: Sequence[int]
) -> Submission:
    """Write a submission to the new folder `out` that runs a bundle; nothing of it is run here.

    Parameters
    ----------
    bundle
        Its folder, unpacked.
    phases
        The phase that each of its images or channels gets, 0 before contrast.
    labels
        Values of its result that are tumour; of several outputs, their numbers.

    Raises
    ------
    ModelError
        If it is no bundle, or there are no phases or labels.
    SaveConflictError
        If there is something at `out`.
    SaveError
        If the system refuses to write.
    """
    _require_bundle(bundle)
    if not phases or not labels or min(*phases, *labels, 0) < 0:
        raise ModelError(
            f"a phase for each image of the bundle and a tumour label should be given, got phases "
            f"{list(phases)} and labels {list(labels)}: see its configs/metadata.json"
        )
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise SaveConflictError(
            f"the submission should go to a new folder, but there is something at {out}: give "
            "another one; nothing was overwritten"
        )
    try:
        with own_folder(out.parent) as staging:
            shutil.copytree(bundle, staging / "bundle", symlinks=True)
            shutil.copyfile(bundle_in_sandbox.__file__, staging / "model.py")
            write_json({"phases": list(phases), "labels": list(labels)}, staging / "wrap.json")
            place_folder(staging, out)
    except (OSError, shutil.Error) as error:
        raise SaveError(
            f"the submission should be written to {out}, but {error}: choose another folder, or "
            "make room"
        ) from error
    return read_submission(out)


def _require_bundle(bundle: Path) -> None:
    missing = [name for name in _NEEDED if not (bundle / name).exists()]
    if not any((bundle / "configs" / name).is_file() for name in _RUNS):
        missing.append("configs/inference.json")
    if missing:
        raise ModelError(
            f"a MONAI bundle should be at {bundle}, but it lacks {', '.join(missing)}: give the "
            "folder of the bundle itself, unpacked"
        )
