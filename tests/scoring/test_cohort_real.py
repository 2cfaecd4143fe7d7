"""Published numbers that must follow from published parts."""

import numpy as np
import pandas as pd
import pytest
from tests.halves import half_by_day

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.groups import group_by_column, group_cases, rules_of
from napari_mamamia.scoring.cohort.ranking import ModelScore, ranking_score, sweep_weights
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    bootstrap_segmentation,
    group_table,
    score_groups,
)
from napari_mamamia.scoring.statistics.auc import auc
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap
from napari_mamamia.scoring.statistics.performance import (
    SegmentationScores,
    performance_of,
    segmentation_performance,
)

pytestmark = pytest.mark.real

ROUNDED = 0.5e-4 + 1e-9
"""Half of the last printed digit."""


@pytest.fixture
def task1(real_data):
    return pd.read_csv(real_data("leaderboard") / "task1_table4.csv")


@pytest.fixture
def task2(real_data):
    return pd.read_csv(real_data("leaderboard") / "task2_table5.csv")


def status_of(text) -> MenopausalStatus | None:
    return None if pd.isna(text) else MenopausalStatus(text.split()[0])


@pytest.fixture
def cohort(real_data) -> Cohort:
    table = pd.read_excel(real_data("clinical") / "clinical_and_imaging_info.xlsx")
    return Cohort(
        tuple(
            CaseRecord(
                row.patient_id,
                age=None if pd.isna(row.age) else row.age,
                menopausal_status=status_of(row.menopause),
                breast_density=None if pd.isna(row.breast_density) else row.breast_density,
                pcr=None if pd.isna(row.pcr) else bool(row.pcr),
                dataset=row.dataset,
            )
            for row in table.itertuples()
        )
    )


@pytest.fixture
def table_of_scores(real_data):
    return pd.read_csv(real_data("scores") / "percase_test_scores.csv")


def scores_of(table, model: str) -> SegmentationScores:
    return SegmentationScores.of(
        zip(table.case_id, table[f"dsc_{model}"], table[f"normhd_{model}"], strict=True)
    )


def test_all_21_rows_of_table_4_follow_from_their_parts(task1):
    assert len(task1) == 21
    performance = performance_of(task1.dsc.to_numpy(), task1.norm_hd.to_numpy())
    assert np.abs(performance - task1.performance).max() < 1e-4
    combined = ranking_score(task1.performance.to_numpy(), task1.fairness.to_numpy())
    assert np.abs(combined - task1.combined).max() < 1e-4


def test_all_15_rows_of_table_5_follow_from_their_parts(task2):
    assert len(task2) == 15
    fairness = 1 - task2.fairness_disparity.to_numpy()
    combined = ranking_score(task2.balanced_accuracy.to_numpy(), fairness)
    assert np.abs(combined - task2.combined).max() < 1e-4


def test_the_printed_ranks_of_table_4_are_not_those_of_the_ranking_score(task1):
    models = [ModelScore(r.team, r.performance, r.fairness) for r in task1.itertuples()]
    ours = sweep_weights(models, n_weights=3).ranks[:, 1]
    printed_order_by_score = task1.printed_rank[np.argsort(-task1.combined, kind="stable")]
    expected = [1, 2, 3, 4, 7, 6, 5, 8, 12, 9, 10, 11, 13, 14, 15, 16, 17, 20, 18, 19, 21]
    assert printed_order_by_score.tolist() == expected
    assert ours[[4, 6]].tolist() == [7, 5]
    assert ours[12:15].tolist() == [13, 13, 13]  # the same model three times


def test_eleven_of_the_36_published_rows_have_an_estimate_outside_its_interval(task1, task2):
    outside = []
    for table, name in ((task1, "fairness"), (task2, "fairness_disparity")):
        for row in table.itertuples():
            ends = [getattr(row, f"{name}_ci_{end}") for end in ("low", "high")]
            estimate = np.array([getattr(row, name)])
            result = Bootstrap(("x",), estimate, np.array(ends)[:, None], np.zeros((2, 1)))
            outside.append("outside its" in result.interval("x", level=1 - 1e-9).reason)
    assert (len(outside), sum(outside[:21]), sum(outside[21:])) == (36, 3, 8)


@pytest.mark.parametrize("model", ["conv", "resenc"])
def test_the_published_means_of_each_cohort_follow_from_the_cases(
    real_data, table_of_scores, cohort, model
):
    published = pd.read_csv(real_data("scores") / "table6_percohort_test.csv").set_index("cohort")
    scores = scores_of(table_of_scores, model)
    grouping = group_by_column(scores.case_ids, cohort, "dataset")
    rows = group_table(scores, grouping)
    assert [row.label for row in rows] == ["DUKE", "ISPY1", "ISPY2", "NACT"]
    assert grouping.unassigned == ()
    for row in rows:
        expected = published.loc[row.label]
        assert row.n == expected.n_test
        assert row.mean_dsc == pytest.approx(expected[f"dsc_{model}"], abs=ROUNDED)
        assert row.mean_norm_hd == pytest.approx(expected[f"normhd_{model}"], abs=ROUNDED)
    everybody = segmentation_performance(scores)
    assert everybody.mean_dsc == pytest.approx(published.loc["ALL", f"dsc_{model}"], abs=ROUNDED)
    assert everybody.mean_norm_hd == pytest.approx(
        published.loc["ALL", f"normhd_{model}"], abs=ROUNDED
    )


def test_the_training_tables_groups_have_the_known_sizes(cohort):
    ids = [record.case_id for record in cohort.records]
    sizes = {
        profile: [g.sizes.tolist() for g in group_cases(ids, cohort, rules_of(profile))]
        for profile in ("official-code", "clinical", "paper")
    }
    # 678 of 1506 statuses: 335 + 166 + 142 pre, 35 peri, 420 post, 408 missing
    assert sizes["official-code"][1] == [678, 420, 408]
    assert sizes["clinical"][1] == [678, 420]
    assert sizes["paper"][1] == [643, 420]
    assert [sizes[profile][2] for profile in sizes] == [[3, 14, 31, 12]] * 3
    # 3 ages are missing; 40 and 71 lie in no group of the paper, 39 cases
    assert sum(sizes["official-code"][0]) == sum(sizes["clinical"][0]) == 1503
    assert sum(sizes["paper"][0]) == 1503 - 39
    reasons = [u.reason for u in group_cases(ids, cohort, rules_of("paper"))[0].unassigned]
    assert reasons.count("the age is missing") == 3
    assert len(reasons) == 42


@pytest.mark.parametrize("profile", half_by_day(["official-code", "paper", "clinical"]))
def test_fairness_of_a_real_model_equals_pandas(cohort, table_of_scores, profile):
    scores = scores_of(table_of_scores, "resenc")
    rules = rules_of(profile)
    found = score_groups(scores, group_cases(scores.case_ids, cohort, rules), rules)
    frame = pd.DataFrame({"dsc": scores.dsc, "norm_hd": scores.norm_hd})
    expected = []
    for grouping in group_cases(scores.case_ids, cohort, rules):
        codes = pd.Series(grouping.codes).where(grouping.codes >= 0)
        means = frame.groupby(codes).mean()
        expected.append(1 - float((means.max() - means.min()).mean()))
    assert [v.value for v in found.fairness.variables] == pytest.approx(expected, abs=1e-12)
    performance = (frame.dsc.mean() + 1 - frame.norm_hd.mean()) / 2
    assert found.ranking_score == pytest.approx((performance + np.mean(expected)) / 2, abs=1e-12)
    groupings = group_cases(scores.case_ids, cohort, rules)
    assert bootstrap_segmentation(scores, groupings, 0.5).interval("mean_dsc").warning == ""


@pytest.mark.parametrize(
    ("centre", "published"),
    [("all", 0.7201), ("duke", 0.5398), ("spy1", 0.6793), ("spy2", 0.7801)],
)
def test_the_published_aucs_of_a_real_response_model(real_data, centre, published):
    table = pd.read_csv(real_data("pcr") / "df_pcr_pred_test_article.csv")
    own = table if centre == "all" else table[table.dataset == centre]
    found = auc(own.pCR.to_numpy(float), own.pred_pcr_vnew.to_numpy(float))
    assert found == pytest.approx(published, abs=ROUNDED)


def test_the_disparities_of_a_real_model_are_no_surer_than_the_groups_are_large(
    cohort, table_of_scores
):
    # 306 cases, age 77 120 78 24 6 : numbers worked out by another program
    from napari_mamamia.scoring.cohort.disparities import segmentation_uncertainty

    scores, rules = scores_of(table_of_scores, "conv"), rules_of("clinical")
    groupings = group_cases(scores.case_ids, cohort, rules)
    fairness = score_groups(scores, group_cases(scores.case_ids, cohort, rules), rules).fairness
    found = segmentation_uncertainty(scores, groupings, fairness, 5, 1.0)
    dsc, norm_hd = found.of("age", "dsc"), found.of("age", "norm_hd")
    assert (dsc.value, norm_hd.value) == pytest.approx((0.119, 0.139), abs=5e-4)
    assert (dsc.interval.low, dsc.interval.high) == pytest.approx((0, 0.360), abs=5e-4)
    assert (norm_hd.interval.low, norm_hd.interval.high) == pytest.approx((0, 0.900), abs=5e-4)
    assert (dsc.by_chance, norm_hd.by_chance) == pytest.approx((0.116, 0.377), abs=0.01)
    density = found.of("breast_density", "dsc").interval
    assert "one group of breast density" in density.reason
    assert [one.n for one in density.left_out] == [1, 3, 4]
