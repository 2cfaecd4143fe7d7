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
    """Write a submission that runs a bundle to the new folder `out`, without running it.

    Parameters
    ----------
    bundle
        The unpacked folder of the bundle.
    phases
        The phase for each input image or channel of the bundle; 0 is before contrast.
    labels
        Values of the bundle's result that are tumour; for several outputs, their numbers.

    Raises
    ------
    ModelError
        If the folder is not a bundle, or there are no phases or labels.
    SaveConflictError
        If `out` is not empty.
    SaveError
        If the system refuses to write.
    """
    _require_bundle(bundle)
    if not phases or not labels or min(*phases, *labels, 0) < 0:
        raise ModelError(
            "expected a phase for each image of the bundle and a tumour label, but got phases "
            f"{list(phases)} and labels {list(labels)}; see its configs/metadata.json"
        )
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise SaveConflictError(
            f"the submission should go to a new folder, but {out} is not empty; give another one; "
            "nothing was overwritten"
        )
    try:
        with own_folder(out.parent) as staging:
            shutil.copytree(bundle, staging / "bundle", symlinks=True)
            shutil.copyfile(bundle_in_sandbox.__file__, staging / "model.py")
            write_json({"phases": list(phases), "labels": list(labels)}, staging / "wrap.json")
            place_folder(staging, out)
    except (OSError, shutil.Error) as error:
        raise SaveError(
            f"the submission could not be written to {out}: {error}; choose another folder, or "
            "make room"
        ) from error
    return read_submission(out)


def _require_bundle(bundle: Path) -> None:
    missing = [name for name in _NEEDED if not (bundle / name).exists()]
    if not any((bundle / "configs" / name).is_file() for name in _RUNS):
        missing.append("configs/inference.json")
    if missing:
        raise ModelError(
            f"expected a MONAI bundle at {bundle}, but it lacks {', '.join(missing)}; give the "
            "unpacked folder of the bundle itself"
        )
