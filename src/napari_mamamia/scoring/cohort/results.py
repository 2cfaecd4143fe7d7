"""Records of scoring results for tables, summaries and reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from napari_mamamia.core.cohort import Cohort, RefusedRow, coverage_text
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.scoring.cohort.comparison import PairedComparison
from napari_mamamia.scoring.cohort.disparities import GroupUncertainty, PermutationTest
from napari_mamamia.scoring.cohort.groups import Grouping, Unassigned
from napari_mamamia.scoring.cohort.lowest import LowestScore
from napari_mamamia.scoring.cohort.policy import CountedCases, every_case
from napari_mamamia.scoring.cohort.ranking import CompositeResult, Sweep
from napari_mamamia.scoring.cohort.response_cohort import (
    ChanceTest,
    ResponseCohort,
    ResponsePredictions,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import GroupScore, SegmentationCohort
from napari_mamamia.scoring.statistics.auc import AucInterval
from napari_mamamia.scoring.statistics.bootstrap import Interval
from napari_mamamia.scoring.statistics.performance import SegmentationScores
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class Resampling:
    """Number of bootstrap resamples (0 for no intervals), and the seed of all random draws."""

    n_resamples: int = N_RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.n_resamples < 0 or self.seed < 0:
            raise ValueError(
                "expected the number of resamples and the seed to be 0 or above, but they are "
                f"{self.n_resamples} and {self.seed}"
            )


@dataclass(frozen=True, slots=True)
class ClinicalTable:
    """Summary of a clinical table: file name, readable and rejected rows, and matched cases.

    `coverage` counts the rows that have a value in each field; `notes` list the assumptions that
    were made while reading the table.
    """

    name: str
    n_rows: int
    n_matched: int
    refused: tuple[RefusedRow, ...] = ()
    coverage: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def coverage_text(self) -> str:
        """A line with the number of rows that have a value in each field."""
        return coverage_text(self.n_rows, self.coverage)


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """Groups of a variable that are reported but not scored.

    `grouping` assigns the cases to groups, in the order of the scores' cases.
    """

    grouping: Grouping
    groups: tuple[GroupScore, ...]

    @property
    def variable(self) -> str:
        """The name of the variable that defines the groups."""
        return self.grouping.variable

    @property
    def unassigned(self) -> tuple[Unassigned, ...]:
        """The cases that are in no group, each with the reason."""
        return self.grouping.unassigned


@dataclass(frozen=True, slots=True)
class SegmentationResult:
    """Results of one segmentation model (Task 1).

    `scores` contains the cases with a defined Dice or NormHD. `groupings` (age, menopausal status,
    breast density; empty without a clinical table) have codes in the same order. `intervals`
    contains the percentile, basic and BCa interval of each number of `bootstrap_segmentation`.
    Metrics that contain gaps between groups have only percentiles, which are a resampling range
    rather than a confidence interval; their confidence intervals are in `uncertainty`.

    `cohort` contains the metrics for ranking over the cases that count (`counted`). If some of
    these cases have no usable prediction, `measured` contains the metrics of the other cases. If
    such cases are free, `lowest` gives the lowest ranking score at any fairness weight, and
    `lowest_performance` is the percentile interval of the lowest performance; otherwise both are
    None. `mean_hausdorff95_mm` is the mean over the `n_hausdorff95_mm` cases that have a distance.
    """

    scores: SegmentationScores
    cohort: SegmentationCohort
    groupings: tuple[Grouping, ...]
    intervals: tuple[Interval, ...]
    uncertainty: GroupUncertainty
    permutation_tests: tuple[PermutationTest, ...]
    strata: tuple[Stratum, ...]
    counting: CountedCases | None = None
    as_measured: SegmentationCohort | None = None
    lowest: LowestScore | None = None
    lowest_performance: Interval | None = None
    mean_hausdorff95_mm: float = float("nan")
    n_hausdorff95_mm: int = 0

    @property
    def counted(self) -> CountedCases:
        """The cases that count; by default the scored cases."""
        return self.counting or every_case(self.scores)

    @property
    def measured(self) -> SegmentationCohort:
        """The metrics of the scored cases alone."""
        return self.as_measured or self.cohort


@dataclass(frozen=True, slots=True)
class ResponseResult:
    """Results of one response model (Task 2).

    `intervals` contains the percentile, basic and BCa interval of each number of
    `bootstrap_response`, and of auc and average_precision; `uncertainty` contains the intervals of
    gaps between groups (see `SegmentationResult`). `delong` is the AUC's interval without
    resampling.
    """

    predictions: ResponsePredictions
    cohort: ResponseCohort
    groupings: tuple[Grouping, ...]
    intervals: tuple[Interval, ...]
    uncertainty: GroupUncertainty
    permutation_tests: tuple[PermutationTest, ...]
    delong: AucInterval
    auc_against_chance: ChanceTest


@dataclass(frozen=True, slots=True)
class ModelScores:
    """All results of one model under one profile.

    `rows` contains the cases in order of id (empty for response predictions). `failures` contains
    the cases that were not scored normally and the rejected table rows, including a missing
    prediction that the profile scores as empty. `segmentation` or `response` is None if the run had
    no such task, and `clinical` is None if no table was given. `notes` are sentences. `cohort`
    contains the clinical rows of the cases, with the ids spelled as in the cases. `composites`
    contains the requested variants of the ranking score. `outside` contains the ids of files or
    rows outside the list of cases, which do not count. `metric_definition` is None if the values of
    the cases were computed under the profile; otherwise it is the user's description of these
    values, or "".
    """

    name: str
    profile: str
    n_cases: int
    n_scored: int
    rows: tuple[CaseScore, ...]
    failures: tuple[CaseFailure, ...]
    segmentation: SegmentationResult | None
    response: ResponseResult | None
    clinical: ClinicalTable | None
    resampling: Resampling
    notes: tuple[str, ...] = ()
    cohort: Cohort | None = None
    composites: tuple[CompositeResult, ...] = ()
    outside: tuple[str, ...] = ()
    metric_definition: str | None = None

    @property
    def all_ok(self) -> bool:
        """Whether every case has the metrics that the profile defines for it."""
        empty = (ScoreStatus.PREDICTION_EMPTY, ScoreStatus.REFERENCE_EMPTY, ScoreStatus.BOTH_EMPTY)
        is_value = profile_named(self.profile).unusable.empty_is_value
        defined = {row.case_id for row in self.rows if is_value and row.status in empty}
        return all(failure.case_id in defined for failure in self.failures)

    @property
    def defined_by(self) -> str:
        """The definitions of the metrics of the cases and the cohort, as text for a heading."""
        if self.metric_definition is None:
            return f"profile {self.profile}"
        values = self.metric_definition or "as given"
        return f"values: {values}; groups and weight from profile {self.profile}"


@dataclass(frozen=True, slots=True)
class RankedModel:
    """The rank of a model, with 1 for the highest ranking score and nan for an undefined score.

    `n` is the number of cases that count, of which `n_unusable` have no usable prediction.
    """

    name: str
    n_scored: int
    performance: float
    fairness: float
    ranking_score: float
    rank: float
    rank_by_performance: float
    reason: str = ""
    n: int = 0
    n_unusable: int = 0


def n_text(model: RankedModel) -> str:
    """Return the number of cases that a rank is based on, and how many of them are unusable.

    Examples
    --------
    >>> n_text(RankedModel("m", 22, 0.8, 0.9, 0.85, 1, 1, n=60, n_unusable=38))
    '60, 38 unusable'
    """
    return f"{model.n}, {model.n_unusable} unusable" if model.n_unusable else f"{model.n}"


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Several models under one profile, with ranks, paired tests, and ranks by fairness weight.

    `baseline` is the baseline model ("" for none). `against_baseline` contains the tests of every
    other model minus the baseline, corrected by Holm. `composites` contains the requested variants
    of the ranking score.
    """

    profile: str
    weight_of_fairness: float
    ranking: tuple[RankedModel, ...]
    tests: tuple[PairedComparison, ...]
    sweep: Sweep
    notes: tuple[str, ...] = ()
    baseline: str = ""
    against_baseline: tuple[PairedComparison, ...] = ()
    composites: tuple[CompositeResult, ...] = ()
