"""Dataclasses that several packages share."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.plugins import list_names

METRIC_GROUP: Final = "napari_mamamia.metrics"
"""The entry-point group for additional metrics."""


class FailureCause(StrEnum):
    """Why a batch could not process a case."""

    ERROR = "error"
    """The case itself failed: a file cannot be read, or has unexpected content."""
    TIME_LIMIT = "time_limit"
    """The case exceeded its time limit and was stopped."""
    WORKER_LOST = "worker_lost"
    """The process, machine or scheduler that ran the case was lost."""


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """A case that a batch could not process, with the reason."""

    case_id: str
    reason: str
    cause: FailureCause = FailureCause.ERROR
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseWarning:
    """An unusual property of a readable case, and how to change it."""

    text: str
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseTag:
    """A reader's remark on the case, such as "implant"; `created` is an ISO 8601 time in UTC."""

    case_id: str
    tag: str
    reader: str
    created: str


class ScoreStatus(StrEnum):
    """The result of scoring one case."""

    OK = "ok"
    PREDICTION_MISSING = "prediction_missing"
    REFERENCE_MISSING = "reference_missing"
    PREDICTION_EMPTY = "prediction_empty"
    REFERENCE_EMPTY = "reference_empty"
    BOTH_EMPTY = "both_empty"
    GRID_MISMATCH = "grid_mismatch"
    UNREADABLE = "unreadable"
    NOT_FINITE = "not_finite"
    TOO_MANY_LABELS = "too_many_labels"
    SEVERAL_FILES = "several_files"
    REFERENCE_UNREADABLE = "reference_unreadable"
    TIME_LIMIT = "time_limit"
    WORKER_LOST = "worker_lost"


@dataclass(frozen=True, slots=True)
class CaseScore:
    """The metrics of one case under one profile; undefined values are NaN.

    Names of distances include the unit; volumes are in mm3. `dsc`, `iou` and `norm_hd` (no unit; 0
    is best) follow the profile's rules for foreground and empty masks. `prediction_seconds`,
    `peak_memory_bytes` and `device` come from the prediction's provenance (NaN and "" if it lacks
    them). `tags` are a reader's remarks on the case, joined by "; ". `reason` explains a `status`
    other than ok, and `warning` describes what is unusual about a scored case; either may be "".
    `further` holds the metrics of installed packages, which can also be read as attributes.
    Definitions: docs/methods/case_metrics.md.
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
    diameter_reference_mm: float = float("nan")
    prediction_seconds: float = float("nan")
    peak_memory_bytes: float = float("nan")
    device: str = ""
    tags: str = ""
    profile: str = "clinical"
    warning: str = ""
    reason: str = ""
    further: tuple[tuple[str, float], ...] = ()

    @property
    def is_disjoint(self) -> bool:
        """Whether the case was scored and the two masks share no voxel."""
        return self.status is ScoreStatus.OK and self.dsc == 0

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> float:
            """Return a metric of an installed package, or NaN if this case does not have it."""
            if name == "further" or name not in list_names(METRIC_GROUP):
                raise AttributeError(f"CaseScore has no attribute {name!r}")
            return dict(self.further).get(name, float("nan"))


SCORE_COLUMNS: Final = tuple(field.name for field in fields(CaseScore) if field.name != "further")


def list_score_columns(rows: Iterable[CaseScore]) -> tuple[str, ...]:
    """Return the columns of a score table: the fields of `CaseScore`, then further metrics."""
    further = dict.fromkeys(name for row in rows for name, _ in row.further)
    return (*SCORE_COLUMNS, *further)
