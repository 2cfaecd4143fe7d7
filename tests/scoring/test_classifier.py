"""Operating points, partial AUC, Bayes factors, ladder: the facts' numbers, and by hand."""

from itertools import pairwise

import numpy as np
import pytest

from napari_mamamia.scoring.classifier.operating import (
    SortedCases,
    Units,
    partial_auc,
    reader_point,
    too_few_for,
)
from napari_mamamia.scoring.classifier.scores import (
    BayesFactor,
    BayesRule,
    ClassifierCases,
    ClassifierRules,
    against_reader,
    bayes_factor,
    challengescoring_factors,
    climb,
    percentile_ends,
    robust_leader,
    score_classifiers,
)

LABEL = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=float)
SCORE = np.array([0.9, 0.8, 0.8, 0.3, 0.85, 0.8, 0.4, 0.3, 0.2, 0.1])


def cases(*scores, **more):
    ids = tuple(f"c{place}" for place in range(len(scores[0])))
    names = tuple("ABCD"[: len(scores)])
    return ClassifierCases(ids, more.pop("label", LABEL), names, np.stack(scores), **more)


def specificities_at(label, score, sensitivity):
    """Return the specificities at a sensitivity, by threshold and interpolated."""
    (threshold,), (interpolated,) = SortedCases.of(label, score).points().specificity(sensitivity)
    return threshold, interpolated


def slow_points(label, score):
    """Return the ROC points by counting at every threshold."""
    cuts = [np.inf, *sorted(set(score), reverse=True)]
    called = [score >= cut for cut in cuts]
    yes, no = label == 1, label == 0
    return [(c[yes].mean(), 1 - c[no].mean()) for c in called]


def slow_partial(label, score, above, steps=20001):
    """Return the integral of the interpolated specificity over sensitivities, by the trapezoid."""
    at = np.linspace(above, 1, steps)
    points = slow_points(label, score)
    values = [slow_interpolated(points, one) for one in at]
    return np.trapezoid(values, at)


def slow_interpolated(points, sensitivity):
    for (low, before), (high, after) in pairwise(points):
        if high >= sensitivity - 1e-12:
            if high == low or abs(high - sensitivity) < 1e-12:
                return after
            return before + (sensitivity - low) / (high - low) * (after - before)
    return points[-1][1]


def test_the_worked_example_of_the_facts_to_its_digits():
    (model,) = score_classifiers(cases(SCORE), ClassifierRules((0.87, 0.75, 0.60))).models
    assert model.auc == pytest.approx(0.7291666667, abs=5e-11)
    assert model.auc_variance_delong == pytest.approx(0.0293402778, abs=5e-11)
    assert model.auc_delong.low == pytest.approx(0.3934443575, abs=5e-11)
    assert model.auc_delong.high == 1
    assert model.partial_auc.raw == pytest.approx(0.0708, abs=1e-12)
    assert model.partial_auc.scaled == pytest.approx(0.3933333333, abs=5e-11)
    points = [(round(p.threshold, 10), round(p.interpolated, 10)) for p in model.specificity_at]
    third, two = 0.3333333333, 0.6666666667
    assert points == [(third, 0.42), (two, two), (two, 0.7166666667)]
    assert model.cuts == (0.3, 0.8, 0.8)


@pytest.mark.parametrize("seed", range(6))
def test_points_and_partial_auc_are_those_of_counting_at_every_threshold(seed):
    rng = np.random.default_rng(seed)
    label = (rng.random(40) < 0.4).astype(float)
    score = np.round(rng.random(40) + 0.3 * label, 1 + seed % 2)
    points = slow_points(label, score)
    for sensitivity in (0.3, 0.5, 0.87, 1.0, float(label[:1].mean())):
        threshold, interpolated = specificities_at(label, score, sensitivity)
        reached = [spec for sens, spec in points if sens >= sensitivity - 1e-12]
        assert threshold == pytest.approx(max(reached))
        assert interpolated == pytest.approx(slow_interpolated(points, sensitivity))
    assert partial_auc(label, score, 0.6).raw == pytest.approx(
        slow_partial(label, score, 0.6), abs=1e-4
    )
    assert partial_auc(label, score, 0.0).raw == pytest.approx(
        score_classifiers(cases(score, label=label), ClassifierRules(n_draws=0)).models[0].auc
    )


def test_a_sample_by_weights_is_the_same_as_its_cases_written_out():
    drawn = np.random.default_rng(3).integers(0, 10, (50, 10))
    ready = SortedCases.of(LABEL, SCORE)
    weights = np.array([np.bincount(draw, minlength=10) for draw in drawn])
    aucs, partial = ready.points(weights).auc(), ready.points(weights).partial_auc(0.82)
    by_threshold, between = ready.points(weights).specificity(0.87)
    for place, draw in enumerate(drawn):
        label, score = LABEL[draw], SCORE[draw]
        if len(set(label)) < 2:
            assert np.isnan([aucs[place], partial[place], by_threshold[place]]).all()
            continue
        one = score_classifiers(cases(score, label=label), ClassifierRules(n_draws=0)).models[0]
        assert aucs[place] == pytest.approx(one.auc)
        assert partial[place] == pytest.approx(one.partial_auc.raw)
        assert by_threshold[place] == pytest.approx(one.specificity_at[0].threshold)
        assert between[place] == pytest.approx(one.specificity_at[0].interpolated)


def test_few_positives_are_said():
    assert "at least 8 positives" in too_few_for(0.87, 7)
    assert too_few_for(0.87, 8) == too_few_for(1.0, 3) == ""
    assert too_few_for(0.75, 4) == ""


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_class_leaves_every_number_undefined_and_says_so(value):
    result = score_classifiers(cases(SCORE, SCORE[::-1], label=np.full(10, value)))
    model = result.models[0]
    numbers = [model.auc, model.partial_auc.raw, model.specificity_at[0].threshold,
               model.specificity_at[0].interpolated, model.auc_variance_delong]  # fmt: skip
    assert np.isnan(numbers).all()
    assert len(result.notes) == 1
    assert "every case is" in result.notes[0]
    assert result.factors[0].text == "no draw"
    assert result.leaders == ()


def test_equal_scores_say_nothing_and_tie_with_themselves():
    result = score_classifiers(cases(np.ones(10), np.ones(10)))
    assert result.models[0].auc == 0.5
    assert "the same score" in result.notes[1]
    assert [factor.k for factor in result.factors] == [0, 0]
    assert "no variance" in result.pairs[0].delong.reason
    assert result.leaders[0].tied == ("A", "B")


def test_k_counts_ties_against_the_claim_in_either_direction():
    a, b = np.array([0.8, 0.7, 0.9, 0.75]), np.array([0.8, 0.6, 0.95, 0.7])
    assert bayes_factor(a, b).k == 1
    assert bayes_factor(b, a).k == pytest.approx(1 / 3)
    assert bayes_factor(a + 1, b).k == np.inf
    assert bayes_factor(a + 1, b).text == "> 4"
    assert bayes_factor(np.array([np.nan, 1.0]), np.array([1.0, 0.0])).n_draws == 1


def test_the_factor_of_challengescoring_depends_on_its_reference():
    draws = np.array([[0.8, 0.7, 0.9, 0.75], [0.8, 0.6, 0.95, 0.7]]).T
    assert challengescoring_factors(draws, 0)[1] == 1
    assert challengescoring_factors(draws, 1)[0] == 3


def test_the_three_rules_have_their_limits():
    def holds(rule, *ks):
        return [rule.holds(BayesFactor("a", "b", k, 1000)) for k in ks]

    assert holds(BayesRule.OVER_3, 3, 3.01, np.inf, np.nan) == [False, True, True, False]
    assert holds(BayesRule.AT_LEAST_19, 18.9, 19) == [False, True]
    assert holds(BayesRule.AT_LEAST_39, 38.9, 39) == [False, True]


def test_a_few_resamples_that_all_agree_do_not_prove_more_than_their_number():
    ahead = bayes_factor(np.full(3, 0.9), np.full(3, 0.8))
    assert ahead.text == "> 3"
    assert [rule.holds(ahead) for rule in BayesRule] == [True, False, False]
    assert not BayesRule.OVER_3.holds(bayes_factor(np.ones(2), np.zeros(2)))
    assert BayesRule.AT_LEAST_19.holds(bayes_factor(np.ones(19), np.zeros(19)))


def test_the_rule_decides_between_a_lead_and_a_tie_that_the_partial_auc_breaks():
    rng = np.random.default_rng(0)
    best = 0.8 + 0.02 * rng.normal(size=2000)
    other = best - 0.02 + 0.0108 * rng.normal(size=2000)  # about 1 of 30 contradicts
    far = best - 0.2
    draws = np.stack([best, other, far], axis=1)
    k = bayes_factor(best, other).k
    assert 19 < k < 39
    args = ("one", "two", "three"), np.array([0.8, 0.78, 0.6]), np.array([0.05, 0.07, 0.01]), draws
    lead = robust_leader(*args, BayesRule.AT_LEAST_19)
    tie = robust_leader(*args, BayesRule.AT_LEAST_39)
    assert (lead.tied, lead.winner) == (("one",), "one")
    assert (tie.tied, tie.winner) == (("one", "two"), "two")


def test_the_ladder_shows_a_new_score_only_when_it_is_robustly_better():
    rng = np.random.default_rng(1)
    first = 0.7 + 0.02 * rng.normal(size=1000)
    noise = first + 0.02 * rng.normal(size=1000)
    better = first + 0.05 + 0.01 * rng.normal(size=1000)
    rungs = climb([first, noise, better, noise])
    assert [rung.is_new for rung in rungs] == [True, False, True, False]
    assert [rung.attempt for rung in rungs] == [1, 2, 3, 4]
    assert rungs[0].shown == rungs[1].shown == pytest.approx(first[:10].mean())
    assert rungs[2].shown == rungs[3].shown == pytest.approx(better[:10].mean())
    assert np.isnan(rungs[0].k)


def test_a_reader_is_met_at_the_own_sensitivity_on_the_same_cases():
    recall = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 0], dtype=float)
    point = reader_point(LABEL, recall)
    assert (point.sensitivity, point.specificity) == (0.75, pytest.approx(5 / 6))
    result = score_classifiers(cases(SCORE, recall=recall), ClassifierRules((0.87,)))
    assert result.sensitivities == (0.87, 0.75)
    found = result.models[0].against_reader
    assert (found.cut, found.sensitivity) == (0.8, 0.75)
    # negatives .85 .8 called, .4 .3 .2 .1 cleared; the reader called .4 alone
    assert (found.only_model_right, found.only_reader_right, found.p_mcnemar) == (1, 2, 1.0)
    assert result.models[0].specificity_bootstrap[1].minus_reader is not None


def test_a_reader_who_says_nothing_of_a_case_is_left_out_there():
    recall = np.array([1, np.nan, 1, 0, 0, 0, np.nan, 0, 0, 1], dtype=float)
    assert reader_point(LABEL, recall).sensitivity == pytest.approx(2 / 3)
    assert reader_point(LABEL, recall).specificity == pytest.approx(4 / 5)
    compared = against_reader(LABEL, SCORE, recall, 0.8)
    assert (compared.only_model_right, compared.only_reader_right) == (1, 2)
    assert any("has no recall for 2 of 10" in n for n in
               score_classifiers(cases(SCORE, recall=recall)).notes)  # fmt: skip


def test_an_exam_is_the_largest_of_its_sides():
    units = Units.of(["w1", "w1", "w2", "w3", "w3"])
    found = units.largest(np.array([0.2, 0.9, 0.4, np.nan, 0.1]))
    assert units.names == ("w1", "w2", "w3")
    assert found.tolist() == [0.9, 0.4, 0.1]


def test_clusters_are_drawn_whole():
    """Each case twice, in clusters of two: resamples are those of the cases alone."""
    twice = cases(np.repeat(SCORE, 2), label=np.repeat(LABEL, 2),
                  clusters=Units.of([str(k // 2) for k in range(20)]))  # fmt: skip
    rules = ClassifierRules(n_draws=300)
    once, both = score_classifiers(cases(SCORE), rules), score_classifiers(twice, rules)
    assert both.models[0].auc_bootstrap == once.models[0].auc_bootstrap
    assert both.models[0].partial_auc_bootstrap == once.models[0].partial_auc_bootstrap
    assert both.n_drawn == 10
    assert "clusters" in both.notes[-1]


def test_resamples_that_are_given_are_taken_as_they_are():
    other = np.array([0.7, 0.9, 0.2, 0.4, 0.6, 0.1, 0.5, 0.3, 0.2, 0.1])
    draws = np.random.default_rng(9).integers(0, 10, (200, 10))
    result = score_classifiers(cases(SCORE, other), ClassifierRules(), list(draws))

    def slow_auc(score, draw):
        yes, no = score[draw][LABEL[draw] == 1], score[draw][LABEL[draw] == 0]
        above = (yes[:, None] > no).sum() + (yes[:, None] == no).sum() / 2
        return above / (yes.size * no.size) if yes.size and no.size else np.nan

    apart = np.array([slow_auc(SCORE, d) - slow_auc(other, d) for d in draws])
    apart = apart[~np.isnan(apart)]
    better = {factor.name: factor for factor in result.factors}["A over B"]
    assert better.k == pytest.approx((apart > 1e-12).sum() / (apart <= 1e-12).sum())
    assert better.n_draws == apart.size
    assert result.n_one_class == 200 - apart.size


def test_delong_between_models_is_the_test_that_stands_in_statistics():
    from napari_mamamia.scoring.statistics.auc import compare_aucs

    result = score_classifiers(cases(SCORE, SCORE[::-1], np.arange(10.0)))
    assert [(p.model_a, p.model_b) for p in result.pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert result.pairs[0].delong == compare_aucs(LABEL, SCORE, SCORE[::-1])
    smallest = min(pair.delong.p_value for pair in result.pairs)
    assert min(pair.p_holm for pair in result.pairs) == pytest.approx(3 * smallest)


def test_subgroups_have_their_auc_and_recalls_at_the_cut_of_all_cases():
    group = ("x",) * 5 + ("y",) * 3 + ("",) * 2
    result = score_classifiers(cases(SCORE, subgroups=(("site", group),)), ClassifierRules((0.75,)))
    x, y, missing = result.subgroups
    assert [(g.value, g.n, g.n_positive, g.is_small) for g in (x, y, missing)] == [
        ("x", 5, 4, False), ("y", 3, 0, True), ("missing", 2, 0, True)]  # fmt: skip
    assert x.models[0].auc == 0.25
    assert (x.models[0].sensitivity, x.models[0].specificity) == (0.75, 0.0)
    assert np.isnan(y.models[0].auc)
    assert y.models[0].specificity == pytest.approx(2 / 3)


def test_no_draws_leave_the_numbers_and_no_interval():
    result = score_classifiers(cases(SCORE, SCORE[::-1]), ClassifierRules(n_draws=0))
    assert result.models[0].auc == pytest.approx(0.7291666667)
    assert np.isnan(result.models[0].auc_bootstrap.low)
    assert np.isnan(result.factors[0].k)


def test_draws_beside_the_estimate_give_no_interval():
    draws = np.arange(101.0)
    assert percentile_ends(50.0, draws) == pytest.approx((2.5, 97.5))
    assert np.isnan(percentile_ends(99.0, draws)).all()
