"""Rows that several rooms share."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CaseFailure", "CaseScore", "ScoreStatus"]


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """A case that a batch could not finish, and the reason in plain words."""

    case_id: str
    reason: str


class ScoreStatus(StrEnum):
    """What became of one case when it was scored."""

    OK = "ok"
    PREDICTION_MISSING = "prediction_missing"
    REFERENCE_MISSING = "reference_missing"
    PREDICTION_EMPTY = "prediction_empty"
    REFERENCE_EMPTY = "reference_empty"
    BOTH_EMPTY = "both_empty"
    GRID_MISMATCH = "grid_mismatch"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class CaseScore:
    """The metrics of one case under one profile; nan where a value is undefined.

    Distances carry their unit in the name; volumes are mm3. `dsc`, `iou` and `norm_hd` (no unit, 0
    is best) follow the profile's rules for foreground and empty masks. `reason` says why `status`
    is not ok, `warning` what is unusual about a scored case (both "" otherwise). Definitions:
    docs/methods.md.
    """

    case_id: str
    status: ScoreStatus
    dsc: float = float("nan")
    iou: float = float("nan")
    hausdorff95_mm: float = float("nan")
    hausdorff95_voxels: float = float("nan")
    hausdorff_mm: float = float("nan")
    assd_mm: float = float("nan")
    nsd_1mm: float = float("nan")
    nsd_2mm: float = float("nan")
    norm_hd: float = float("nan")
    volume_reference_mm3: float = float("nan")
    volume_prediction_mm3: float = float("nan")
    profile: str = "clinical"
    warning: str = ""
    reason: str = ""
