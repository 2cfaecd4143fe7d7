"""Save a prediction; an existing prediction of the same model is replaced only on request."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import MamamiaError, ModelError, SaveConflictError
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import FileState, Workspace
from napari_mamamia.segmentation.model.segmenter import Prediction
from napari_mamamia.services.predict.predict import save_prediction


@dataclass(frozen=True, slots=True)
class KeptPrediction:
    """A saved prediction in a workspace: the model's folder, the file and the time of saving."""

    name: str
    case_id: str
    sha256: str
    made: datetime
    file: FileState

    def __str__(self) -> str:
        return f"{self.name}'s prediction of {self.case_id} from {self.made:%Y-%m-%d %H:%M}"


def kept_prediction(workspace: Workspace, name: str, case_id: str) -> KeptPrediction | None:
    """Return a model's saved prediction of a case with its local time, or None.

    Parameters
    ----------
    workspace
        The workspace of the data set.
    name
        The name of the model.
    case_id
        The id of the case.
    """
    path = workspace.prediction(name, case_id)
    try:
        file = FileState.of(path)
    except OSError:
        return None
    try:
        created_at = datetime.fromisoformat(read_provenance(sidecar_path(path)).created)
    except (MamamiaError, OSError, ValueError):
        created_at = datetime.fromtimestamp(file.written_ns / 1e9).astimezone()
    return KeptPrediction(name, case_id, sha256_of(path), created_at.astimezone(), file)


def keep_prediction(
    prediction: Prediction,
    case: Case,
    workspace: Workspace,
    replaces: KeptPrediction | None = None,
    *,
    beside: bool = False,
) -> KeptPrediction:
    """Save a prediction with its provenance as ``predictions/MODEL/ID.nii.gz``.

    Parameters
    ----------
    replaces
        The prediction that the user agreed to replace; None replaces nothing.
    beside
        Whether to keep the existing prediction and use the next free name, such as
        ``predictions/MODEL 2``.

    Raises
    ------
    SaveConflictError
        If a prediction other than `replaces` exists, which is kept.
    SaveError
        If a file cannot be written.
    """
    provenance = prediction.mask.provenance
    if provenance is None:
        raise ModelError(
            "the prediction cannot be saved, because it has no provenance; use predict_case"
        )
    name = provenance.name if replaces is None else replaces.name
    if beside:
        names = _number_names(provenance.name)
        name = next(name for name in names if not workspace.prediction(name, case.case_id).exists())
    _require_same(workspace, name, case.case_id, replaces)
    target = workspace.prediction(name, case.case_id)
    save_prediction(prediction, case, target, overwrite=replaces is not None)
    workspace.note_data_set()
    entry = kept_prediction(workspace, name, case.case_id)
    if entry is None:
        raise SaveConflictError(
            f"expected {target} to be the prediction that was just saved, but another program "
            "removed it; predict the case again"
        )
    return entry


def _number_names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} {number}" for number in count(2))


def _require_same(
    workspace: Workspace, name: str, case_id: str, replaces: KeptPrediction | None
) -> None:
    there = kept_prediction(workspace, name, case_id)
    if there is None or (replaces is not None and there.sha256 == replaces.sha256):
        return
    raise SaveConflictError(
        f"{there} is not the prediction to be replaced, so it was kept; replace it, or keep both"
        if replaces
        else f"there is already {there}, which was kept; replace it, or keep both"
    )
