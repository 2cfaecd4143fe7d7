"""A response model's cohort numbers and their resampled values."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.response_cohort import (
    ResponsePredictions,
    Significance,
    bootstrap_discrimination,
    bootstrap_response,
    equalised_odds,
    score_response,
)
from napari_mamamia.scoring.statistics.auc import auc, average_precision

NAN = float("nan")
PROFILES = ("clinical", "official-code", "paper")


def score_of_cohort(predictions, cohort, rules, weight_of_fairness=None):
    groupings = group_cases(predictions.case_ids, cohort, rules) if cohort else ()
    return score_response(predictions, groupings, rules, weight_of_fairness)


def drawn(cohort: Cohort, seed: int = 0) -> ResponsePredictions:
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(len(cohort.records)), 2)
    rows = zip((r.case_id for r in cohort.records), score > 0.5, score, strict=True)
    return ResponsePredictions.of(rows, cohort)


def small_cohort(n: int = 8) -> Cohort:
    """Return cases that alternate in everything, responders first."""
    return Cohort(
        tuple(
            CaseRecord(
                f"C{i}",
                age=(35, 65)[i % 2],
                menopausal_status=(MenopausalStatus.PRE, MenopausalStatus.POST)[i % 2],
                breast_density="ab"[i % 2],
                pcr=i < n / 2,
            )
            for i in range(n)
        )
    )


def test_the_numbers_of_a_model_by_hand():
    # even cases: responders C0, C2 found, others C4, C6: one false alarm; odd: 1 of 2, none
    said = dict(zip(("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C7"), (1, 1, 1, 0, 1, 0, 0, 0)))  # noqa: B905
    rows = [(case_id, pcr, NAN) for case_id, pcr in said.items()]
    found = score_of_cohort(
        ResponsePredictions.of(rows, small_cohort()), small_cohort(), rules_of("clinical")
    )
    assert found.balanced_accuracy == 0.75
    assert (found.recall.responders, found.recall.non_responders, found.recall.gap) == (
        0.75,
    ) * 2 + (0,)
    assert [v.disparity for v in found.odds.variables] == [1.0, 1.0, 1.0]
    assert (found.fairness, found.ranking_score) == (0.0, 0.375)
    assert np.isnan(found.discrimination.auc)
    assert found.discrimination.reason == "no case has both a known pcr and a score"
    assert (found.n_cases, found.n_scored, found.refused, found.reason) == (8, 8, "", "")


def test_constant_predictions_are_refused():
    rows = [(f"C{i}", 0, i / 10) for i in range(8)]
    predictions = ResponsePredictions.of(rows, small_cohort())
    found = score_of_cohort(predictions, small_cohort(), rules_of("clinical"))
    assert "rejects constant predictions" in found.refused
    assert found.reason == found.refused
    assert np.isnan([found.balanced_accuracy, found.fairness, found.ranking_score]).all()
    assert found.discrimination.auc == 0.0  # the score orders all pairs wrongly


def test_cases_with_unknown_pcr_count_as_the_profile_says():
    cohort = small_cohort()
    cohort = Cohort((*cohort.records[:-1], replace(cohort.records[-1], pcr=None)))
    rows = [(f"C{i}", int(i < 4 or i == 7), 0.5) for i in range(8)]
    predictions = ResponsePredictions.of(rows, cohort)
    clinical = score_of_cohort(predictions, cohort, rules_of("clinical"))
    assert (clinical.balanced_accuracy, clinical.n_scored) == (1.0, 7)
    assert clinical.without_label == ("C7",)
    assert clinical.notes == ("pcr is unknown for 1 of 8 cases: left out",)
    official = score_of_cohort(predictions, cohort, rules_of("official-code"))
    assert (official.balanced_accuracy, official.n_scored) == (0.875, 8)
    assert "where the script stops" in official.notes[0]
    assert [v.odds.variables[1].disparity for v in (official, clinical)] == [0.0, 0.0]


def test_one_class_has_no_balanced_accuracy_and_a_reason():
    cohort = Cohort(tuple(replace(r, pcr=False) for r in small_cohort().records))
    found = score_of_cohort(drawn(cohort), cohort, rules_of("clinical"))
    assert np.isnan(found.ranking_score)
    assert "needs responders and non-responders" in found.reason
    assert "no group of age has responders" in found.reason
    assert found.chance.significance is Significance.UNDEFINED
    assert found.discrimination.reason == "all cases with a score have the same pcr"


def test_an_unknown_clinical_table_leaves_fairness_undefined():
    cohort = small_cohort()
    found = score_of_cohort(drawn(cohort), None, rules_of("clinical"))
    assert found.reason == "there is no clinical table from which to form groups"
    assert not np.isnan(found.balanced_accuracy)
    only = score_of_cohort(drawn(cohort), None, rules_of("clinical"), weight_of_fairness=0)
    assert only.ranking_score == only.balanced_accuracy


def test_no_predictions_at_all_give_reasons_and_no_error():
    found = score_of_cohort(ResponsePredictions.of([], small_cohort()), None, rules_of("clinical"))
    assert np.isnan([found.balanced_accuracy, found.discrimination.auc, found.chance.p_value]).all()
    assert "needs responders" in found.reason


def test_scores_are_judged_where_there_is_one(random_cohort):
    cohort = random_cohort(80, 1)
    full = drawn(cohort, 2)
    score = np.where(np.arange(80) < 20, NAN, full.score)
    found = score_of_cohort(replace(full, score=score), cohort, rules_of("paper")).discrimination
    assert found.n == found.calibration.n == 60
    assert found.auc == auc(full.label[20:], full.score[20:])
    assert found.average_precision == average_precision(full.label[20:], full.score[20:])


@pytest.mark.parametrize("profile", PROFILES)
def test_the_bootstrap_equals_a_plain_loop_over_the_same_resamples(random_cohort, profile):
    cohort = random_cohort(50, seed=3)
    cohort = Cohort((replace(cohort.records[0], pcr=None), *cohort.records[1:]))
    rules, predictions = rules_of(profile), drawn(cohort, 4)
    groupings = group_cases(predictions.case_ids, cohort, rules)
    found = bootstrap_response(predictions, groupings, rules, 0.3, n_resamples=60)
    draws = np.random.default_rng(42).integers(0, 50, (60, 50))
    for chosen, row in zip(draws, found.replicates, strict=True):
        again = ResponsePredictions(
            tuple(map(str, range(50))),
            predictions.label[chosen],
            predictions.predicted[chosen],
            predictions.score[chosen],
        )
        regrouped = [
            Grouping(g.variable, g.labels, g.codes[chosen], (), g.empty_groups) for g in groupings
        ]
        odds = equalised_odds(again, regrouped, rules)
        balanced = score_of_cohort(again, None, rules).balanced_accuracy
        expected = [
            balanced,
            *(v.disparity for v in odds.variables),
            odds.raw,
            odds.fairness,
            0.7 * balanced + 0.3 * odds.fairness,
            *(v.tpr.disparity for v in odds.variables),
            *(v.fpr.disparity for v in odds.variables),
        ]
        assert row == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_estimates_equal_direct_computation(random_cohort):
    cohort, rules = random_cohort(90, seed=5), rules_of("official-code")
    predictions = drawn(cohort, 6)
    groupings = group_cases(predictions.case_ids, cohort, rules)
    found = bootstrap_response(predictions, groupings, rules, 0.5, n_resamples=5)
    direct = score_of_cohort(predictions, cohort, rules)
    numbers = dict(zip(found.names, found.estimates, strict=True))
    assert numbers["balanced_accuracy"] == pytest.approx(direct.balanced_accuracy, abs=1e-12)
    assert numbers["disparity"] == pytest.approx(direct.odds.raw, abs=1e-12)
    assert numbers["ranking_score"] == pytest.approx(direct.ranking_score, abs=1e-12)
    assert bootstrap_response(predictions, (), rules, 0.5).names == ("balanced_accuracy",)


def test_the_resampled_aucs_equal_a_plain_loop(random_cohort):
    predictions = drawn(random_cohort(40, seed=7), 8)
    found = bootstrap_discrimination(predictions, n_resamples=30)
    draws = np.random.default_rng(42).integers(0, 40, (30, 40))
    for chosen, row in zip(draws, found.replicates, strict=True):
        label, score = predictions.label[chosen], predictions.score[chosen]
        assert row == pytest.approx(
            [auc(label, score), average_precision(label, score)], abs=1e-12, nan_ok=True
        )
