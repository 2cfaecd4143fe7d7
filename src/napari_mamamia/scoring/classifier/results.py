"""Records of classifiers: cases, rules and results."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.classifier.against import (
    AgainstReader,
    BayesFactor,
    PairedModels,
    RobustLeader,
)
from napari_mamamia.scoring.classifier.operating import (
    SENSITIVITY,
    SENSITIVITY_ABOVE,
    OperatingPoint,
    PartialAuc,
    ReaderPoint,
    Units,
)
from napari_mamamia.scoring.statistics.resampling import SEED

N_DRAWS: Final = 10_000
N_DRAWS_OF_MANY: Final = 1000
MANY_CASES: Final = 20_000
"""Number of cases above which fewer resamples are drawn.

The default numbers follow DREAM's practice; in large cohorts intervals hardly depend on the number
of resamples.
"""

SMALL_GROUP: Final = 5
"""Number of cases below which a subgroup is shown in grey, as for the groups of scores."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierCases:
    """The scores of k models for n cases, and facts about the cases.

    `label` (n,) holds 0 and 1; `scores` (k, n) any numbers, larger is more positive, without nan;
    `n_filled` (k,) is the number of each model's scores that replace missing ones. `recall` (n,)
    are a reader's 0 and 1, nan if unknown; `clusters` are drawn together. `subgroups` are names
    with a value of each case, "" if missing.
    """

    ids: tuple[str, ...]
    label: NDArray[np.float64]
    models: tuple[str, ...]
    scores: NDArray[np.float64]
    n_filled: tuple[int, ...] = ()
    recall: NDArray[np.float64] | None = None
    clusters: Units | None = None
    subgroups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def n_positive(self) -> int:
        """Return the number of positive cases."""
        return int((self.label == 1).sum())


@dataclass(frozen=True, slots=True)
class ClassifierRules:
    """Operating points, the lower end of the partial AUC, the number of resamples and the seed.

    `n_draws` None takes `N_DRAWS`, or `N_DRAWS_OF_MANY` above `MANY_CASES` cases.
    """

    sensitivities: tuple[float, ...] = (SENSITIVITY,)
    above: float = SENSITIVITY_ABOVE
    n_draws: int | None = None
    seed: int = SEED

    def draws_for(self, n_cases: int) -> int:
        """Return the number of resamples for this number of cases."""
        if self.n_draws is not None:
            return self.n_draws
        return N_DRAWS if n_cases <= MANY_CASES else N_DRAWS_OF_MANY


@dataclass(frozen=True, slots=True)
class Ends:
    """A 95 % interval; nan without one."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PointInterval:
    """Intervals of the specificities at an operating point.

    `minus_reader` is the interval of the difference from the reader's specificity.
    """

    threshold: Ends
    interpolated: Ends
    minus_reader: Ends | None = None


@dataclass(frozen=True, slots=True)
class ClassifierScores:
    """The numbers of one model; `cuts` holds its smallest positive score at each operating point.

    `auc_delong` is DeLong's interval, which assumes independent cases; `auc_bootstrap` and the
    others are percentile intervals over resamples of the cases or of their clusters.
    """

    name: str
    n_filled: int
    auc: float
    auc_variance_delong: float
    auc_delong: Ends
    auc_bootstrap: Ends
    partial_auc: PartialAuc
    partial_auc_bootstrap: Ends
    specificity_at: tuple[OperatingPoint, ...]
    specificity_bootstrap: tuple[PointInterval, ...]
    cuts: tuple[float, ...]
    against_reader: AgainstReader | None


@dataclass(frozen=True, slots=True)
class GroupModel:
    """A model in a subgroup: AUC with DeLong's interval, and recalls at the overall cut."""

    name: str
    auc: float
    auc_delong: Ends
    sensitivity: float
    specificity: float


@dataclass(frozen=True, slots=True)
class Subgroup:
    """The cases with one value of a column; `is_small`: fewer than `SMALL_GROUP`."""

    column: str
    value: str
    n: int
    n_positive: int
    is_small: bool
    models: tuple[GroupModel, ...]


@dataclass(frozen=True, slots=True)
class ClassifierResult:
    """All numbers of k models on the same cases.

    `n_drawn` is the number of cases or clusters in a resample, `n_one_class` the number of
    resamples that lacked a class and were not used.
    """

    n: int
    n_positive: int
    above: float
    sensitivities: tuple[float, ...]
    models: tuple[ClassifierScores, ...]
    reader: ReaderPoint | None
    factors: tuple[BayesFactor, ...]
    leaders: tuple[RobustLeader, ...]
    pairs: tuple[PairedModels, ...]
    subgroups: tuple[Subgroup, ...]
    n_draws: int
    n_one_class: int
    n_drawn: int
    notes: tuple[str, ...]
