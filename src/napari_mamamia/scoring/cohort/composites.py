"""Variants of the ranking score with their definitions, shown next to the ranking score."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np

from napari_mamamia.core.choices import CompositeName
from napari_mamamia.scoring.cohort.lowest import LowestScore
from napari_mamamia.scoring.cohort.ranking import (
    Adaptive,
    Composite,
    Evidence,
    Gated,
    ModelScore,
    WeightedMean,
    ranks,
)


@dataclass(frozen=True, slots=True)
class CompositeChoice:
    """The requested variants of the ranking score, and their gate or baseline.

    Parameters
    ----------
    names
        The variants; the weighted mean is the ranking score itself.
    gate
        Performance above which fairness counts, 0 to 1; None uses the baseline's interval.
    baseline
        Name of the baseline model, "" for none.

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
            raise ValueError(f"expected a gate from 0 to below 1, got {self.gate:g}")
        if set(self.names) - {CompositeName.WEIGHTED} and self.gate is None and not self.baseline:
            names = " and ".join(name for name in self.names if name is not CompositeName.WEIGHTED)
            raise ValueError(f"the composite {names} needs a gate or a baseline; give one of them")


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
    """A model's value of a variant for a fairness weight; a nan `value` has a `reason`."""

    name: str
    value: float
    rank: float
    weight: float
    counts_fairness: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CompositeResult:
    """The values of all models under one variant, with a text of its definition."""

    name: str
    definition: str
    scores: tuple[CompositeScore, ...]


def composite_results(
    models: Sequence[ScoredModel], choice: CompositeChoice, weight: float
) -> tuple[CompositeResult, ...]:
    """Return the values of the models under each requested variant, for a fairness weight.

    Gated, with a gate: fairness counts only if the performance lies above the gate, otherwise it is
    0. Gated by a baseline: fairness counts only if the lower end of the model's interval lies above
    the upper end of the baseline's interval, so the baseline's own fairness never counts. Adaptive:
    the weight of fairness is 0 up to the gate (or, without one, the baseline's performance) and
    grows to its full value at performance 1. Both formulas are ours: arXiv 2603.01250v2 proposes
    such scores without a formula.

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
        f"expected one of the models {names} as the baseline, got {choice.baseline!r}: choose one "
        "of them"
    )


def _make_composite(
    name: CompositeName, choice: CompositeChoice, baseline: ScoredModel | None, weight: float
) -> tuple[Composite, str, str]:
    """Return the composite, its definition, and the reason if it has no value."""
    plain = f"{1 - weight:g} × performance + {weight:g} × fairness"
    if name is CompositeName.WEIGHTED:
        return WeightedMean(), f"{plain}: the challenge's ranking score", ""
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
        reason = "the gate is closed: fairness counts as 0"
    return CompositeScore(model.name, value, rank, model_weight, counts, reason)
