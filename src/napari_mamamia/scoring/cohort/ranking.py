"""Rank models by the ranking score and its variants, also as a function of the weight."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isnan
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import CompositeName
from napari_mamamia.scoring.cohort.lowest import LowestScore

DEFAULT_WEIGHT: Final = 0.5
"""Default fairness weight. Source: arXiv 2603.01250v2, Eq. 1."""

_ALIKE: Final = 10
"""Number of decimals to which scores must agree to share a rank, because of rounding errors."""


@dataclass(frozen=True, slots=True)
class ModelScore:
    """The metrics by which a model is ranked.

    `performance_low` is the lower end of the performance's interval, or nan without an interval.
    `lowest` replaces both metrics if cases without a usable prediction make them bounds, because
    the lowest ranking score is higher than the score of the two lowest metrics.
    """

    name: str
    performance: float
    fairness: float
    performance_low: float = float("nan")
    lowest: LowestScore | None = None

    def ranking_score(self, weight: float) -> float:
        """Return the ranking score for a fairness weight."""
        if self.lowest is not None:
            return self.lowest.at_weight(weight)
        return float(ranking_score(self.performance, self.fairness, weight))


class Composite(Protocol):
    """A way to combine performance and fairness into one score."""

    name: ClassVar[str]

    def score(self, model: ModelScore, weight: float) -> float:
        """Return the score for a fairness weight from 0 (performance only) to 1."""
        ...


def ranking_score(performance: Any, fairness: Any, weight: float = DEFAULT_WEIGHT) -> Any:
    """Return (1 - weight) performance + weight fairness, for floats or arrays of one shape.

    `weight` is the weight of fairness. At 0 the result is the performance alone and at 1 the
    fairness alone, even if the other number is nan. Source: arXiv 2603.01250v2, Eq. 1.

    Examples
    --------
    >>> ranking_score(0.75, 0.25, weight=0.25)
    0.625
    """
    _check_weight(weight)
    if weight == 0:
        return performance
    return fairness if weight == 1 else (1 - weight) * performance + weight * fairness


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """The weighted mean of performance and fairness, which is the challenge's ranking score."""

    name: ClassVar[str] = "weighted mean"

    def score(self, model: ModelScore, weight: float) -> float:
        """Return `ranking_score`."""
        return model.ranking_score(weight)


class Evidence(StrEnum):
    """The performance value of a model that must exceed the threshold of a gate."""

    PERFORMANCE = "performance"
    LOWER_BOUND = "lower_bound"
    """The lower end of the performance's interval, so that the excess is not due to chance."""


@dataclass(frozen=True, slots=True)
class Gated:
    """Gating by performance: fairness is 0 unless `evidence` exceeds `threshold`.

    The threshold is a chosen performance, chance (0.5 for balanced accuracy), or the upper end of
    the baseline's interval. The paper proposes such a score without a formula; this formula is
    ours.
    """

    name: ClassVar[str] = "performance-gated"
    threshold: float
    evidence: Evidence = Evidence.PERFORMANCE

    def is_open(self, model: ModelScore) -> bool:
        """Return whether the model's fairness counts, which is false if its evidence is nan."""
        by_interval = self.evidence is Evidence.LOWER_BOUND
        return (model.performance_low if by_interval else model.performance) > self.threshold

    def score(self, model: ModelScore, weight: float) -> float:
        """Return `ranking_score`, with fairness 0 if the gate is closed.

        A negative fairness counts even if the gate is closed, so a closed gate never raises the
        score.
        """
        if self.is_open(model):
            return model.ranking_score(weight)
        closed = float(ranking_score(model.performance, 0.0, weight))
        below = model.fairness < 0
        return min(closed, model.ranking_score(weight)) if below else closed


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Adaptive weighting, in which the fairness weight grows with the performance.

    The weight is 0 up to performance `start`, the full weight from `full` on, and linear between.
    The paper proposes such a score without a formula; this formula is ours.
    """

    name: ClassVar[str] = "adaptive weighting"
    start: float
    full: float

    def __post_init__(self) -> None:
        if not self.start < self.full:
            raise ValueError(
                "expected start to be below full for adaptive weighting, but start is "
                f"{self.start:g} and full is {self.full:g}"
            )

    def weight(self, model: ModelScore, weight: float) -> float:
        """Return the fairness weight for this model, or nan if its performance is nan."""
        share = (model.performance - self.start) / (self.full - self.start)
        return weight * float(np.clip(share, 0, 1))

    def score(self, model: ModelScore, weight: float) -> float:
        """Return the `ranking_score` with the fairness weight of this model.

        A better performance can make a poor fairness count more. Therefore a model with cases
        without a usable prediction gets the lowest score over all performances that these cases
        allow. The score is linear up to `start` and from `full` on, and concave in between, so it
        is lowest at an end of the range or at one of these two points.
        """
        _check_weight(weight)
        if np.isnan(model.performance):
            return model.performance
        performances = [model.performance]
        if model.lowest is not None:
            best = model.lowest.highest_performance
            inner = (index for index in (self.start, self.full) if model.performance < index < best)
            performances += [best, *inner]
        scores = []
        for performance in performances:
            model_weight = self.weight(replace(model, performance=performance), weight)
            scores.append(ranking_score(performance, model.fairness, model_weight))
        return float(np.min(scores))


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Scores and ranks of m models at k fairness weights.

    `scores` and `ranks` are (m, k) float64, with the models in the order of `names`; `ends` labels
    the first and the last weight.
    """

    composite: str
    names: tuple[str, ...]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    ranks: NDArray[np.float64]
    ends: tuple[str, str] = ("performance only", "fairness only")


def sweep_weights(
    models: Sequence[ModelScore], composite: Composite | None = None, n_weights: int = 101
) -> Sweep:
    """Return the ranks of models for fairness weights from 0 to 1 in equal steps.

    Without a `composite`, the challenge's weighted mean is used. An undefined score has rank nan.
    """
    if n_weights < 2:
        raise ValueError(f"expected at least 2 weights for a sweep, but found {n_weights}")
    composite = composite or WeightedMean()
    weights = np.linspace(0, 1, n_weights)
    scores = np.array(
        [[composite.score(model, float(weight)) for weight in weights] for model in models]
    ).reshape(len(models), n_weights)
    names = tuple(model.name for model in models)
    return Sweep(composite.name, names, weights, scores, ranks(scores))


def ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks along the first axis, 1 for the highest score.

    Equal scores share the better rank, as in (1, 2, 2, 4); a score of nan has rank nan.

    Examples
    --------
    >>> ranks(np.array([0.5, 0.9, 0.5, 0.1])).tolist()
    [2.0, 1.0, 2.0, 4.0]
    """
    from scipy.stats import rankdata

    if not scores.size:
        return np.zeros(scores.shape)
    rounded = np.round(scores, _ALIKE)
    ranking: NDArray[np.float64] = rankdata(-rounded, method="min", axis=0, nan_policy="omit")
    return ranking.astype(np.float64)


def _check_weight(weight: float) -> None:
    if not 0 <= weight <= 1:
        raise ValueError(f"expected a fairness weight from 0 to 1, but it is {weight:g}")


@dataclass(frozen=True, slots=True)
class CompositeChoice:
    """The requested variants of the ranking score, and their gate or baseline.

    Parameters
    ----------
    names
        Names of the variants; the weighted mean is the ranking score itself.
    gate
        Performance, from 0 to 1, above which fairness counts; by default, the baseline's interval
        is used.
    baseline
        Name of the baseline model, or "" for none.

    Raises
    ------
    ValueError
        If the gate lies outside 0 to 1, or a variant has neither gate nor baseline.
    """

    names: tuple[CompositeName, ...] = ()
    gate: float | None = None
    baseline: str = ""

    def __post_init__(self) -> None:
        if self.gate is not None and not 0 <= self.gate < 1:
            raise ValueError(
                f"expected the gate to be at least 0 and below 1, but it is {self.gate:g}"
            )
        if set(self.names) - {CompositeName.WEIGHTED} and self.gate is None and not self.baseline:
            names = " and ".join(name for name in self.names if name is not CompositeName.WEIGHTED)
            raise ValueError(
                f"the composite {names} needs a gate or a baseline; specify one of them"
            )


NO_COMPOSITES: Final = CompositeChoice()


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """A model's performance with its 95 % percentile interval, and its fairness."""

    name: str
    performance: float
    fairness: float
    low: float = float("nan")
    high: float = float("nan")
    lowest: LowestScore | None = None


@dataclass(frozen=True, slots=True)
class CompositeScore:
    """A model's value under a variant of the ranking score; `reason` explains a nan."""

    name: str
    value: float
    rank: float
    weight: float
    counts_fairness: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CompositeResult:
    """The values of all models under one variant, with the definition of the variant."""

    name: str
    definition: str
    scores: tuple[CompositeScore, ...]


def composite_results(
    models: Sequence[ScoredModel], choice: CompositeChoice, weight: float
) -> tuple[CompositeResult, ...]:
    """Return the values of the models under each requested variant, for a fairness weight.

    In the gated variant with a gate, fairness counts only if the performance exceeds the gate, and
    otherwise as 0. In the gated variant with a baseline, fairness counts only if the lower end of
    the model's interval exceeds the upper end of the baseline's interval, so the baseline's
    fairness never counts. In the adaptive variant, the fairness weight is 0 up to the gate (or,
    without a gate, the baseline's performance) and grows to its full value at performance 1. Both
    formulas are ours: arXiv 2603.01250v2 proposes such scores without a formula.

    Raises
    ------
    ValueError
        If no model has the baseline's name.
    """
    baseline = _find_baseline(models, choice)
    results = []
    for name in dict.fromkeys(choice.names):
        composite, definition, reason = _make_composite(
            CompositeName(name), choice, baseline, weight
        )
        results.append(_rank_models(models, composite, definition, reason, weight))
    return tuple(results)


def _find_baseline(models: Sequence[ScoredModel], choice: CompositeChoice) -> ScoredModel | None:
    if not choice.baseline:
        return None
    for model in models:
        if model.name == choice.baseline:
            return model
    names = ", ".join(model.name for model in models)
    raise ValueError(
        f"expected the baseline to be one of the models {names}, but it is {choice.baseline!r}: "
        "choose one of them"
    )


def _make_composite(
    name: CompositeName, choice: CompositeChoice, baseline: ScoredModel | None, weight: float
) -> tuple[Composite, str, str]:
    plain = f"{1 - weight:g} × performance + {weight:g} × fairness"
    if name is CompositeName.WEIGHTED:
        return WeightedMean(), f"{plain}, the ranking score of the challenge", ""
    if name is CompositeName.ADAPTIVE:
        return _make_adaptive(choice, baseline, weight)
    if choice.gate is not None:
        definition = f"{plain}, with fairness 0 unless the performance is above {choice.gate:g}"
        return Gated(choice.gate), definition, ""
    high = baseline.high if baseline else float("nan")
    definition = (
        f"{plain}, with fairness 0 unless the lower end of the performance's 95 % interval is "
        f"above the upper end of the baseline's interval ({choice.baseline}: {high:.4f})"
    )
    reason = "the baseline's performance has no interval" if isnan(high) else ""
    return Gated(high, Evidence.LOWER_BOUND), definition, reason


def _make_adaptive(
    choice: CompositeChoice, baseline: ScoredModel | None, weight: float
) -> tuple[Composite, str, str]:
    start, whose = choice.gate, "the gate"
    if start is None:
        start = baseline.performance if baseline else float("nan")
        whose = f"the performance of the baseline {choice.baseline}"
    definition = (
        "(1 − w) × performance + w × fairness, where w grows linearly from 0 at performance "
        f"{start:.4g} ({whose}) to {weight:g} at performance 1"
    )
    if not start < 1:
        reason = (
            "the performance at which the weight starts to grow is "
            f"{'undefined' if isnan(start) else 'perfect'}"
        )
        return Adaptive(0.0, 1.0), definition, f"{reason}: {whose}"
    return Adaptive(start, 1.0), definition, ""


def _rank_models(
    models: Sequence[ScoredModel],
    composite: Composite,
    definition: str,
    reason: str,
    weight: float,
) -> CompositeResult:
    inputs = [ModelScore(m.name, m.performance, m.fairness, m.low, m.lowest) for m in models]
    values = np.array([np.nan if reason else composite.score(model, weight) for model in inputs])
    places = ranks(values)
    scores = tuple(
        _score_model(model, composite, float(values[k]), float(places[k]), reason, weight)
        for k, model in enumerate(inputs)
    )
    return CompositeResult(composite.name, definition, scores)


def _score_model(
    model: ModelScore,
    composite: Composite,
    value: float,
    rank: float,
    reason: str,
    weight: float,
) -> CompositeScore:
    model_weight = composite.weight(model, weight) if isinstance(composite, Adaptive) else weight
    counts = composite.is_open(model) if isinstance(composite, Gated) else model_weight > 0
    if isnan(value) and not reason:
        reason = "performance or fairness is undefined"
    elif isinstance(composite, Gated) and not counts and not reason:
        reason = "the gate is closed, so fairness is 0"
    return CompositeScore(model.name, value, rank, model_weight, counts, reason)
