"""Named variants of the ranking score: hand-worked numbers, and their definitions in words."""

import numpy as np
import pytest

from napari_mamamia.core.choices import CompositeName
from napari_mamamia.scoring.cohort.ranking import CompositeChoice, ScoredModel, composite_results

GOOD = ScoredModel("good", 0.8, 0.6, low=0.75, high=0.85)
FAIR = ScoredModel("fair", 0.5, 1.0, low=0.45, high=0.55)
BASE = ScoredModel("base", 0.6, 0.9, low=0.55, high=0.65)
MODELS = (GOOD, FAIR, BASE)


def values(*names, weight=0.5, models=MODELS, **choice):
    (found,) = composite_results(models, CompositeChoice(names, **choice), weight)
    return found, {score.name: score for score in found.scores}


def test_nothing_is_computed_that_was_not_asked_for():
    assert composite_results(MODELS, CompositeChoice(), 0.5) == ()


def test_the_weighted_one_is_the_ranking_score_itself():
    _, found = values(CompositeName.WEIGHTED)
    assert [found[name].value for name in ("good", "fair", "base")] == pytest.approx(
        [0.7, 0.75, 0.75]
    )
    assert found["fair"].rank == found["base"].rank == 1  # fair because uninformative


def test_a_gate_takes_the_fairness_of_a_weak_model():
    result, found = values(CompositeName.GATED, gate=0.7)
    assert found["good"].value == pytest.approx(0.7)
    assert found["fair"].value == pytest.approx(0.25)  # 0.5 x 0.5 + 0.5 x 0
    assert (found["good"].rank, found["good"].counts_fairness) == (1, True)
    assert not found["fair"].counts_fairness
    assert "above 0.7" in result.definition


def test_a_gate_by_the_baseline_compares_intervals():
    result, found = values(CompositeName.GATED, baseline="base")
    assert found["good"].counts_fairness  # 0.75 > 0.65
    assert not found["fair"].counts_fairness
    assert found["base"].value == pytest.approx(0.3)  # never above its own interval
    assert "base: 0.6500" in result.definition


def test_a_baseline_without_an_interval_gives_no_gate():
    bare = ScoredModel("base", 0.6, 0.9)
    _, found = values(CompositeName.GATED, baseline="base", models=(GOOD, bare))
    assert all(np.isnan(score.value) and "no interval" in score.reason for score in found.values())


def test_the_adaptive_weight_grows_from_the_baseline_to_perfection():
    result, found = values(CompositeName.ADAPTIVE, baseline="base")
    # good: (0.8 - 0.6)/0.4 of 0.5 = 0.25, and 0.75 x 0.8 + 0.25 x 0.6
    assert found["good"].weight == pytest.approx(0.25)
    assert found["good"].value == pytest.approx(0.75)
    assert (found["fair"].weight, found["fair"].value) == (0, 0.5)
    assert "performance 0.6 (the performance of the baseline base)" in result.definition


def test_an_undefined_fairness_has_no_composite_and_says_so():
    _, found = values(CompositeName.WEIGHTED, models=(ScoredModel("x", 0.5, float("nan")),))
    assert np.isnan(found["x"].value)
    assert "undefined" in found["x"].reason


@pytest.mark.parametrize("name", [CompositeName.GATED, CompositeName.ADAPTIVE])
def test_a_variant_without_gate_and_baseline_is_refused(name):
    with pytest.raises(ValueError, match="needs a gate or a baseline"):
        CompositeChoice((name,))


def test_a_gate_outside_the_scale_is_refused():
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        CompositeChoice((CompositeName.GATED,), gate=1.2)


def test_an_unknown_baseline_is_refused_with_the_models():
    with pytest.raises(ValueError, match="good, fair, base"):
        composite_results(MODELS, CompositeChoice((), baseline="none"), 0.5)
