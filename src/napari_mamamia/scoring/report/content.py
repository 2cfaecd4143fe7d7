"""The input of `scoring.report.report`, created from the scores of models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.case.failures import THRESHOLDS, Failure, FailureThresholds
from napari_mamamia.scoring.cohort.groups import TAG, Grouping
from napari_mamamia.scoring.cohort.results import ModelComparison, ModelScores, SegmentationResult
from napari_mamamia.scoring.cohort.slices import N_PERMUTATIONS, SliceSearch, worst_slices
from napari_mamamia.scoring.ranking.ranking import MethodRanking
from napari_mamamia.scoring.report.gallery import CasePicture
from napari_mamamia.scoring.report.text import Answer

FEATURED_STRATA: Final = (
    "volume",
    "diameter",
    "dataset",
    "centre",
    "tumour_subtype",
    "manufacturer",
    "field_strength",
    "multifocal_cancer",
    "bilateral_breast_cancer",
)
"""Strata with their own box plot and column in the case table.

The other strata have only a table, because a clinical table can have dozens of columns.
"""

MOST_GROUPS_SEARCHED: Final = 10
LEAST_SHARE_SEARCHED: Final = 0.5
"""Smallest fraction of cases with a value that a column must have to be searched (our choice).

Columns with a smaller fraction, or with more groups, are left out, because each further slice
increases the corrected p-values of all other slices.
"""


MANY_CASES: Final = 20_000
N_PERMUTATIONS_MANY: Final = 200
"""Number of permutations for the search in a large cohort (our choice).

Each permutation of a large cohort takes 20 ms or more.
"""


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A further column of the case table, with values by case id; a missing id is unknown.

    `values` are either all strings or all numbers. `unit` is "" for strings and fractions. Numbers
    are shown with `decimals`.
    """

    name: str
    label: str
    values: Mapping[str, str | float]
    unit: str = ""
    decimals: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ModelReport:
    """The scores of one model, with failure kinds, pictures, strata and worst subgroups.

    `strata` have their codes in the order of ``scores.segmentation.scores``. `failures` are the
    failure kinds by case id; `pictures` are shown in this order, and `slices` contains the search
    for the worst subgroups of each metric. `has_failure_kinds` says whether failure kinds were
    determined, and `contrast_note` names the cases in which low contrast was not checked.
    """

    scores: ModelScores
    strata: tuple[Grouping, ...] = ()
    failures: Mapping[str, tuple[Failure, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    slices: tuple[SliceSearch, ...] = ()
    pictures: tuple[CasePicture, ...] = ()
    columns: tuple[CaseColumn, ...] = ()
    has_failure_kinds: bool = False
    contrast_note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RankedModels:
    """Models ranked by their ranking score, with the stability of the ranks under resampling."""

    names: tuple[str, ...]
    method: MethodRanking
    n_draws: int


@dataclass(frozen=True, slots=True, eq=False)
class ReportContent:
    """The content of a report: one or several models under one profile, and their comparison.

    `created` is ISO 8601 in UTC. `software` and `versions` name the programs that computed the
    numbers. `baseline` is the baseline model ("" for none). With several models, `summary` comes
    first, and `ranks` describes the certainty of their order; if not `is_ranked`, there are no
    joint figures.
    """

    models: tuple[ModelReport, ...]
    title: str = ""
    comparison: ModelComparison | None = None
    baseline: str = ""
    thresholds: FailureThresholds = THRESHOLDS
    created: str = field(default_factory=now_utc)
    software: str = field(default_factory=software_version)
    versions: tuple[tuple[str, str], ...] = ()
    summary: tuple[Answer, ...] = ()
    ranks: RankedModels | None = None
    is_ranked: bool = True

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", _title_of(self.models))
        profiles = {model.scores.profile for model in self.models}
        if len(profiles) != 1:
            names = ", ".join(sorted(profiles)) or "no model"
            raise ValueError(
                "expected at least one model, all under one profile, for a report, but found "
                f"{names}: create a report for each profile"
            )

    @property
    def defined_by(self) -> str:
        """The text in the head of the report that names the definitions of its metrics."""
        words = dict.fromkeys(model.scores.defined_by for model in self.models)
        return "; ".join(words)

    @property
    def is_given(self) -> bool:
        """Whether the values of the cases were computed by other software."""
        return all(model.scores.metric_definition is not None for model in self.models)

    @property
    def profile(self) -> str:
        """The profile of all metrics in the report."""
        return self.models[0].scores.profile


def _title_of(models: Sequence[ModelReport]) -> str:
    has_masks = any(model.scores.segmentation for model in models)
    has_responses = any(model.scores.response for model in models)
    if has_responses:
        both = "tumour segmentations and predicted responses (pCR)"
        return f"Scores of {both if has_masks else 'predicted responses (pCR)'}"
    return "Scores of tumour segmentations"


def is_featured(variable: str) -> bool:
    """Return whether a stratum has its own box plot and column, which readers' tags always have."""
    return variable in FEATURED_STRATA or variable.startswith(TAG)


def report_of(
    scores: ModelScores,
    failures: Mapping[str, tuple[Failure, ...]] | None = None,
    pictures: Sequence[CasePicture] = (),
    columns: Sequence[CaseColumn] = (),
) -> ModelReport:
    """Return a model's part of a report, with strata and worst subgroups.

    If `failures` is None, failure kinds were not determined.
    """
    result = scores.segmentation
    strata = tuple(stratum.grouping for stratum in result.strata) if result else ()
    slices: tuple[SliceSearch, ...] = ()
    if result:
        slices = _search_slices(result, strata)
    report_progress(1, 1, "Worst subgroups")
    return ModelReport(
        scores,
        strata,
        MappingProxyType(dict(failures or {})),
        slices,
        tuple(pictures),
        tuple(columns),
        failures is not None,
    )


def _search_slices(
    result: SegmentationResult, strata: tuple[Grouping, ...]
) -> tuple[SliceSearch, ...]:
    scores = result.scores
    groupings = [
        grouping
        for grouping in (*result.groupings, *strata)
        if len(grouping.labels) <= MOST_GROUPS_SEARCHED
        and grouping.sizes.sum() >= LEAST_SHARE_SEARCHED * grouping.codes.size
    ]
    if not groupings:
        return ()
    n = N_PERMUTATIONS if len(scores.case_ids) <= MANY_CASES else N_PERMUTATIONS_MANY
    by_dsc = worst_slices("dsc", scores.dsc, groupings, Better.HIGHER, n_permutations=n)
    by_norm_hd = worst_slices("norm_hd", scores.norm_hd, groupings, Better.LOWER, n_permutations=n)
    return by_dsc, by_norm_hd
