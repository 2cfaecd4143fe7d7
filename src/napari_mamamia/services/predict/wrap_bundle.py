"""Convert a MONAI bundle to a submission, which runs the bundle's own code in a sandbox."""

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
    """Write a submission that runs a bundle into the new folder `out`; the bundle is not run.

    Parameters
    ----------
    bundle
        The unpacked folder of the bundle.
    phases
        The phase for each input image or channel of the bundle; phase 0 is before contrast.
    labels
        The values in the bundle's result that are tumour, or the output numbers if there are
        several outputs.

    Raises
    ------
    ModelError
        If the folder is not a bundle, or there are no phases or labels.
    SaveConflictError
        If `out` is not empty.
    SaveError
        If a file cannot be written.
    """
    _require_bundle(bundle)
    if not phases or not labels or min(*phases, *labels, 0) < 0:
        raise ModelError(
            "expected a phase for each image of the bundle and at least one tumour label, but "
            f"got phases {list(phases)} and labels {list(labels)}; see the bundle's "
            "configs/metadata.json"
        )
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise SaveConflictError(
            f"expected {out} to be a new or empty folder, but it is not empty, so nothing was "
            "written; choose a different folder"
        )
    try:
        with own_folder(out.parent) as staging:
            shutil.copytree(bundle, staging / "bundle", symlinks=True)
            shutil.copyfile(bundle_in_sandbox.__file__, staging / "model.py")
            write_json({"phases": list(phases), "labels": list(labels)}, staging / "wrap.json")
            place_folder(staging, out)
    except (OSError, shutil.Error) as error:
        raise SaveError(
            f"the submission could not be written to {out}: {error}; choose a different folder, "
            "or free some space"
        ) from error
    return read_submission(out)


def _require_bundle(bundle: Path) -> None:
    missing = [name for name in _NEEDED if not (bundle / name).exists()]
    if not any((bundle / "configs" / name).is_file() for name in _RUNS):
        missing.append("configs/inference.json")
    if missing:
        raise ModelError(
            f"expected {bundle} to be a MONAI bundle, but it lacks {', '.join(missing)}; choose "
            "the unpacked folder of the bundle itself"
        )
