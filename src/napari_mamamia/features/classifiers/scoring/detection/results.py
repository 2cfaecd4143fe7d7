"""The settings and results of a detection run, as records."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import CaseScoreRule, CurveReading, RiskModel
from napari_mamamia.core.provenance import Setting
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Overlaps,
    PredictedBoxes,
)
from napari_mamamia.features.classifiers.scoring.detection.curves import Curve, CurveKind
from napari_mamamia.features.classifiers.scoring.detection.matching import (
    BY_SCORE,
    Matches,
    MatchingRule,
)
from napari_mamamia.scoring.statistics.auc import AucInterval
from napari_mamamia.scoring.statistics.bootstrap import Interval
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED

COCO_IGNORE: Final = "coco-ignore"
DISCARD: Final = "discard-then-match"
"""The two treatments of lesions outside a stratum.

They stay and their boxes do not count, or they are removed before matching.
"""

GIVEN: Final = "given"


@dataclass(frozen=True, slots=True)
class DetectionSettings:
    """Definitions of a detection run.

    Parameters
    ----------
    rule
        The matching rule.
    reading
        Interpolation between two points of a curve.
    case_score
        Rule that combines the scores of a case's boxes.
    risk
        Model of the risk by size, if the tables have no risk.
    cut_mm
        Size between small and large lesions; a lesion of exactly this size is in both groups.
    n_resamples, seed
        Bootstrap over cases; 0 for no intervals.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    rule: MatchingRule = BY_SCORE
    reading: CurveReading = CurveReading.LINEAR
    case_score: CaseScoreRule = CaseScoreRule.MAX
    risk: RiskModel = RiskModel.SOPIK_2018
    cut_mm: float = 20.0
    n_resamples: int = N_RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 0 < self.rule.iou <= 1:
            raise ValueError(
                f"expected a least overlap above 0 and at most 1, but found {self.rule.iou}"
            )
        if not 0 < self.cut_mm < np.inf:
            raise ValueError(f"expected a cut of sizes above 0 mm, but found {self.cut_mm}")
        if self.n_resamples < 0 or self.seed < 0:
            raise ValueError(
                f"expected resamples and seed from 0, but found {self.n_resamples} and {self.seed}"
            )

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the name and value of each setting, for ``run.json``."""
        return (
            ("matching", self.rule.matching.value),
            ("iou", self.rule.iou),
            ("duplicates", self.rule.duplicates.value),
            ("interpolation", self.reading.value),
            ("case_score", self.case_score.value),
            ("risk", self.risk.value),
            ("size_cut_mm", self.cut_mm),
            ("bootstrap", self.n_resamples),
            ("seed", self.seed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DetectionInput:
    """All cases with their lesions and predicted boxes, and the overlaps.

    `centres` are the cases' centres, "" if unknown; () if all are unknown. Without scores
    (`has_scores` False) there is one operating point and no curve.
    """

    case_ids: tuple[str, ...]
    lesions: Lesions
    boxes: PredictedBoxes
    overlaps: Overlaps
    centres: tuple[str, ...] = ()
    has_scores: bool = True

    @property
    def n_cases(self) -> int:
        """Return the number of all cases, including those without a lesion."""
        return len(self.case_ids)


@dataclass(frozen=True, slots=True)
class RiskAdjusted:
    """The scores of the three variants of raFROC; `ceiling` is the maximum of `paper-eq3`."""

    strict: float
    reference_code: float
    paper_eq3: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class Stratum:
    """Lesions of one range of sizes (mm, ends included) under one of the two treatments."""

    name: str
    reading: str
    low_mm: float
    high_mm: float
    n_lesions: int
    n_true_positives: int
    n_false_positives: int
    froc: float


@dataclass(frozen=True, slots=True)
class PatientLevel:
    """Patient-level metrics: cases with against cases without a lesion; NaN with a `reason`.

    `specificity` is the share of cases without a box among cases without a lesion. `sensitivity` is
    the share of cases with a box among cases with a lesion.
    """

    rule: CaseScoreRule
    n_with: int
    n_without: int
    auc: float
    average_precision: float
    sensitivity: float
    specificity: float
    interval: AucInterval | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Centre:
    """The metrics of a centre's cases."""

    name: str
    n_cases: int
    n_lesions: int
    n_true_positives: int
    n_false_positives: int
    froc: float
    strict: float


@dataclass(frozen=True, slots=True, eq=False)
class DetectionResult:
    """The metrics of a detection run.

    `lesions` and `boxes` of `data` have their risks here; `risk` names their source. `curves` has
    one entry for each kind. Scores are nan with the `reason` if there are none.
    """

    data: DetectionInput
    settings: DetectionSettings
    matches: Matches
    risk: str
    curves: tuple[tuple[CurveKind, Curve], ...]
    froc: float
    risk_adjusted: RiskAdjusted
    average_precision: tuple[tuple[str, float], ...]
    strata: tuple[Stratum, ...]
    patient: PatientLevel
    centres: tuple[Centre, ...]
    intervals: tuple[Interval, ...]
    n_nearly_free: int
    warnings: tuple[str, ...]
    reason: str = ""

    @property
    def n_lesions(self) -> int:
        """Return the number of lesions of the reference."""
        return self.data.lesions.cases.size

    @property
    def n_true_positives(self) -> int:
        """Return the number of found lesions at the lowest threshold."""
        return int(np.count_nonzero(self.matches.found_by >= 0))

    @property
    def n_false_positives(self) -> int:
        """Return the number of false boxes at the lowest threshold."""
        return int(np.count_nonzero(self.matches.is_false))

    def curve(self, kind: CurveKind = CurveKind.FROC) -> Curve:
        """Return the curve of a kind."""
        return dict(self.curves)[kind]

    @property
    def box_outcomes(self) -> tuple[str, ...]:
        """Return the outcome of each box: it found a lesion, is false, or does not count."""
        is_found = np.zeros(self.data.boxes.cases.size, dtype=np.bool_)
        is_found[self.matches.found_by[self.matches.found_by >= 0]] = True
        words: NDArray[np.str_] = np.where(
            is_found, "true", np.where(self.matches.is_false, "false", "not counted")
        )
        return tuple(words.tolist())
