"""Tables that somebody else computed: `score-table` and `score-pcr`, worked out by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER
from napari_mamamia.services.score.pcr import score_pcr
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.table import score_table

pytestmark = pytest.mark.usefixtures("quick_figures")

CLINICAL_ROWS = """patient_id,age,menopause,breast_density,pcr
A,35,pre,b,1
B,40,peri,c,0
C,62,post,b,1
D,71,,c,0
"""


@pytest.fixture
def clinical(tmp_path):
    path = tmp_path / "clinical.csv"
    path.write_text(CLINICAL_ROWS)
    return path


def table_numbers(tmp_path, text, settings, name="scores.csv"):
    path = tmp_path / name
    path.write_text(text)
    summary = score_table(path, tmp_path / "out", settings)
    return summary, json.loads(summary.summary.read_text())


SCORES = "patient_id,dsc,norm_hd\nd,0.4,0.60\nA,0.9,0.02\nB,0.7,0.10\nC,0.8,0.04\n"


@pytest.mark.parametrize(
    ("profile", "fairness", "ranking_score"),
    [(CLINICAL, 2.2 / 3, 0.7442), (OFFICIAL_CODE, 1.73 / 3, 0.6658), (PAPER, 2.57 / 3, 0.8058)],
)
def test_the_worked_example_of_the_methods_page(
    tmp_path, clinical, profile, fairness, ranking_score
):
    settings = ScoreSettings(profile, clinical, n_resamples=0)
    summary, found = table_numbers(tmp_path, SCORES, settings)
    task1 = found["task1"]
    assert task1["mean_dsc"] == pytest.approx(0.7, abs=1e-12)
    assert task1["mean_norm_hd"] == pytest.approx(0.19, abs=1e-12)
    assert task1["performance"] == pytest.approx(0.755, abs=1e-12)
    assert task1["fairness"] == pytest.approx(fairness, abs=1e-12)
    assert task1["ranking_score"] == pytest.approx((0.755 + fairness) / 2, abs=1e-12)
    assert task1["ranking_score"] == pytest.approx(ranking_score, abs=0.5e-4)
    assert summary.all_ok


def test_bad_rows_become_failures_with_their_row_number(tmp_path, clinical):
    text = (
        "case_id;DSC;NormHD\nA;0.9;0.02\n;0.5;0.1\nB;1.2;0.1\nC;high;0.1\nD;0.4;-1\n"
        "a;0.1;0.1\nE;;\nF;0.5;;\n\nG;0.5;inf\nH\n"
    )
    settings = ScoreSettings(clinical=clinical, n_resamples=0)
    summary, found = table_numbers(tmp_path, text, settings)
    reasons = {item["case_id"]: item["reason"] for item in found["failures"]}
    assert list(reasons) == ["row 3", "B", "C", "D", "a", "E", "G", "H"]
    assert found["policy"]["n_unusable_by_reason"]["unreadable"] == 7  # A comes twice
    expected = {
        "row 3": "row 3 of scores.csv: the case id is empty",
        "B": "row 4 of scores.csv: dsc must be from 0 to 1, but it is '1.2'",
        "C": "row 5 of scores.csv: dsc must be a number, but it is 'high'",
        "D": "row 6 of scores.csv: norm_hd must be 0 or above and finite, but it is '-1'",
        "a": "row 7 of scores.csv: the case is already in row 2, so neither row counts",
    }
    assert {name: reasons[name] for name in expected} == expected
    assert "both empty" in reasons["E"]
    assert reasons["G"].startswith("row 11")
    assert (found["n_cases"], found["n_scored"]) == (9, 1)
    # F alone has a Dice and no row has a NormHD; seven cases count with Dice 0
    assert (found["policy"]["n"], found["policy"]["n_unusable"]) == (8, 7)
    assert found["task1"]["mean_dsc"] == pytest.approx(0.5 / 8)
    assert found["task1"]["as_measured"]["mean_dsc"] == pytest.approx(0.5)
    assert not summary.all_ok


@pytest.mark.parametrize("text", ["", "case_id,norm_hd\nA,1\n", "name,dsc,norm_hd\nA,1,0\n"])
def test_a_table_without_the_columns_is_refused_by_name(tmp_path, clinical, text):
    with pytest.raises(FormatError, match=r"scores\.csv"):
        table_numbers(tmp_path, text, ScoreSettings(clinical=clinical))
    assert not (tmp_path / "out").exists()


def test_a_decimal_comma_is_a_decimal_point(tmp_path):
    text = "\ufeffcase_id;dsc;norm_hd\nA;0,5;0,25\nB;0,7;1\nC;1,2;0,1\n"
    _, found = table_numbers(tmp_path, text, ScoreSettings(n_resamples=0))
    assert found["task1"]["as_measured"]["mean_dsc"] == pytest.approx(0.6)
    assert found["task1"]["as_measured"]["mean_norm_hd"] == pytest.approx(0.625)
    assert found["failures"][0]["reason"].endswith("dsc must be from 0 to 1, but it is '1,2'")


def test_the_mean_hd95_counts_the_cases_with_a_distance(tmp_path):
    text = "case_id,dsc,norm_hd,hd95_mm\nA,.9,.1,2\nB,.8,.2,5\nC,0,1,\nD,.7,.2,11\n"
    _, found = table_numbers(tmp_path, text, ScoreSettings(n_resamples=1000, seed=42))
    assert found["task1"]["mean_hausdorff95_mm"] == 6.0
    assert found["task1"]["n_hausdorff95_mm"] == 3
    draws = np.random.default_rng(42).integers(0, 3, (1000, 3))
    ends = np.percentile(np.array([2.0, 5.0, 11.0])[draws].mean(axis=1), [2.5, 97.5])
    interval = found["task1"]["intervals"]["mean_hausdorff95_mm"]
    assert [interval["low"], interval["high"]] == pytest.approx(ends.tolist())


def test_an_excel_table_is_read_too(tmp_path):
    frame = pd.DataFrame({"Case ID": [1, 2], "DSC": [0.5, None], "Norm_HD": [0.25, 0.75]})
    frame.to_excel(tmp_path / "s.xlsx", index=False)
    job = score_table(tmp_path / "s.xlsx", tmp_path / "out", ScoreSettings(n_resamples=0))
    found = json.loads(job.summary.read_text())
    # the empty Dice counts as 0
    assert (found["n_cases"], found["task1"]["performance"]) == (2, 0.375)


# --- Task 2 ------------------------------------------------------------------------------------

PCR_ROWS = ["patient_id,age,menopause,breast_density,pcr"]
PCR_ROWS += [f"P{n},{30 if n < 4 else 60},pre,a,{n % 2}" for n in range(8)]
PREDICTIONS = "case_id,pcr,score\n" + "\n".join(
    # young: TP 2 of 2, FP 1 of 2; old: TP 1 of 2, FP 0 of 2
    f"p{n},{pcr},{score}"
    for n, (pcr, score) in enumerate(
        [(0, 0.1), (1, 0.9), (1.0, 0.6), (1, 0.8), (0, 0.2), (1, 0.7), (0, 0.3), (0, 0.4)]
    )
)


def pcr_numbers(tmp_path, text=PREDICTIONS, rows=PCR_ROWS, **settings):
    (tmp_path / "clinical.csv").write_text("\n".join(rows))
    (tmp_path / "p.csv").write_text(text)
    arguments = (tmp_path / "p.csv", tmp_path / "clinical.csv", tmp_path / "out")
    summary = score_pcr(*arguments, ScoreSettings(**settings))
    return summary, json.loads(summary.summary.read_text())


def test_response_numbers_are_those_worked_out_by_hand(tmp_path):
    summary, found = pcr_numbers(tmp_path, n_resamples=50)
    task2 = found["task2"]
    assert (found["n_cases"], found["n_scored"], found["failures"]) == (8, 8, [])
    # TPR 3/4, TNR 3/4
    assert task2["balanced_accuracy"] == pytest.approx(0.75, abs=1e-15)
    # age: TPR 1 and 1/2, FPR 1/2 and 0; one group each in the other variables
    disparities = task2["equalised_odds_disparity"]
    assert {name: one["value"] for name, one in disparities.items()} == {
        "age": 1.0,
        "menopausal_status": 0.0,
        "breast_density": 0.0,
    }
    assert set(disparities["age"]) >= {
        "value",
        "by_chance",
        "beyond_chance",
        "interval",
        "resampling_range",
    }
    # two of each class in a group: under five, so that nothing is said of them
    interval = disparities["age"]["interval"]
    assert (interval["low"], interval["high"]) == (None, None)
    assert {(one["group"], one["n"], one["of"]) for one in interval["left_out"]} == {
        (group, 2, of) for group in ("0-40", "51-60") for of in ("responders", "non-responders")
    }
    assert "a gap needs two" in interval["reason"]
    assert task2["mean_disparity_raw"] == pytest.approx(1 / 3, abs=1e-15)
    assert task2["fairness"] == pytest.approx(2 / 3, abs=1e-15)
    assert task2["ranking_score"] == pytest.approx((0.75 + 2 / 3) / 2, abs=1e-15)
    # responders .9 .8 .7 .4, others .1 .6 .2 .3: 15 of 16 pairs in order
    assert task2["auc"] == pytest.approx(15 / 16, abs=1e-15)
    assert task2["brier"] == pytest.approx(
        (0.01 + 0.01 + 0.36 + 0.04 + 0.04 + 0.09 + 0.09 + 0.36) / 8, abs=1e-15
    )
    # thresholds .9 .8 .7 .6 .4: precision 1, 1, 1 at three responders, 4/5 at the fourth
    assert task2["average_precision"] == pytest.approx((3 + 4 / 5) / 4, abs=1e-15)
    assert task2["recall"] == {"responders": 0.75, "non_responders": 0.75, "gap": 0.0}
    assert task2["recall_gap"] == 0
    assert sum(bin_["n"] for bin_ in task2["reliability"]) == 8
    assert 0 < task2["p_value"] <= 1
    assert {"balanced_accuracy", "disparity_age", "fairness", "ranking_score", "auc"} <= set(
        task2["intervals"]
    )
    assert task2["reasons"] == {}
    assert "task1" not in found
    assert summary.all_ok


def test_constant_predictions_are_refused_but_the_auc_stands(tmp_path):
    text = "patient_id,pcr,score\n" + "\n".join(f"P{n},0,{n / 10}" for n in range(8))
    _, found = pcr_numbers(tmp_path, text, n_resamples=10)
    task2 = found["task2"]
    assert "rejects constant predictions" in task2["refused"]
    for name in ("balanced_accuracy", "fairness", "ranking_score"):
        assert task2[name] is None
        assert "constant" in task2["reasons"][name]
    # responders .1 .3 .5 .7 against 0 .2 .4 .6: 1 + 2 + 3 + 4 of 16 pairs
    assert task2["auc"] == pytest.approx(10 / 16)
    assert set(task2["intervals"]) == {"auc", "average_precision"}


def test_bad_rows_unknown_cases_and_unknown_labels_are_failures(tmp_path):
    rows = [*PCR_ROWS, "P8,30,pre,a,", "P9,30,pre,a,1"]
    rows += [f"P{number},30,pre,a,1" for number in (10, 11)]
    text = PREDICTIONS + "\np8,1,0.5\nX1,1,0.5\np9,2,0.5\np0,1,0.5\np10,1,1.5\np11,,0.5\n"
    text += "p9,1,0.5\n"
    _, found = pcr_numbers(tmp_path, text, rows, n_resamples=0)
    reasons = [(item["case_id"], item["reason"]) for item in found["failures"]]
    assert [name for name, _ in reasons] == ["p9", "p0", "p10", "p11", "p9", "X1", "p8"]
    assert reasons[0][1] == "row 12 of p.csv: pcr '2' is neither 0 nor 1"
    assert "already in row 2" in reasons[1][1]
    assert "score must be from 0 to 1" in reasons[2][1]
    assert "needs a prediction of 0 or 1" in reasons[3][1]
    assert "already in row 12, so neither row counts" in reasons[4][1]
    assert "not in the clinical table" in reasons[5][1]
    assert "pcr is not known" in reasons[6][1]
    # p0 and p9 come twice.
    assert (found["n_cases"], found["n_scored"]) == (13, 7)
    assert found["task2"]["without_label"] == ["p8"]
    assert found["task2"]["balanced_accuracy"] == pytest.approx((3 / 4 + 2 / 3) / 2, abs=1e-15)


def test_an_unknown_label_is_a_non_responder_under_official_code(tmp_path):
    rows = [*PCR_ROWS, "P8,30,pre,a,"]
    text = PREDICTIONS + "\np8,1,0.5\n"
    _, found = pcr_numbers(tmp_path, text, rows, n_resamples=0, profile=OFFICIAL_CODE)
    # TPR 3/4, TNR 3/5
    assert found["task2"]["balanced_accuracy"] == pytest.approx(0.675, abs=1e-15)
    assert "non-responder" in found["failures"][0]["reason"]
    assert found["notes"]


def test_predictions_without_scores_have_no_auc_and_say_why(tmp_path):
    text = "\n".join(line.rsplit(",", 1)[0] for line in PREDICTIONS.splitlines())
    _, found = pcr_numbers(tmp_path, text, n_resamples=10)
    task2 = found["task2"]
    assert task2["balanced_accuracy"] == pytest.approx(0.75, abs=1e-15)
    for name in ("auc", "average_precision", "brier", "ece"):
        assert task2[name] is None
        assert "score" in task2["reasons"][name]


def test_a_table_without_a_usable_row_is_told_and_not_a_crash(tmp_path):
    _, found = pcr_numbers(tmp_path, "case_id,pcr,score\nX1,1,0.5\n")
    assert found["n_scored"] == 0
    task2 = found["task2"]
    for name in ("balanced_accuracy", "fairness", "ranking_score", "auc", "brier"):
        assert task2[name] is None
        assert task2["reasons"][name]


def test_a_response_table_without_pcr_is_refused(tmp_path):
    with pytest.raises(FormatError, match="pcr is missing"):
        pcr_numbers(tmp_path, "case_id,score\nP1,0.5\n")


def test_a_table_without_a_row_is_no_result(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("case_id,dsc,norm_hd\n")
    with pytest.raises(FormatError, match="a row for each case"):
        score_table(path, tmp_path / "out")
    with pytest.raises(FormatError, match="a row for each case"):
        pcr_numbers(tmp_path, "case_id,pcr,score\n")
    assert not (tmp_path / "out").exists()


# --- real tables -------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("model", ["conv", pytest.param("resenc", marks=pytest.mark.night)])
def test_the_authors_means_of_each_cohort_follow_from_their_cases(real_data, tmp_path, model):
    folder = real_data("scores")
    table = pd.read_csv(folder / "percase_test_scores.csv")
    own = table.rename(columns={f"dsc_{model}": "dsc", f"normhd_{model}": "norm_hd"})
    own["case_id"] = own.case_id.str.lower()
    own[["case_id", "dsc", "norm_hd"]].to_csv(tmp_path / "s.csv", index=False)
    clinical = real_data("clinical") / "clinical_and_imaging_info.xlsx"
    settings = ScoreSettings(OFFICIAL_CODE, clinical, n_resamples=0)
    job = score_table(tmp_path / "s.csv", tmp_path / "out", settings)
    found = json.loads(job.summary.read_text())
    published = pd.read_csv(folder / "table6_percohort_test.csv").set_index("cohort")
    means = {"ALL": (found["task1"]["mean_dsc"], found["task1"]["mean_norm_hd"])}
    strata = {stratum["variable"]: stratum for stratum in found["task1"]["strata"]}
    for group in strata["dataset"]["groups"]:
        means[group["label"]] = (group["mean_dsc"], group["mean_norm_hd"])
        assert group["n"] == published.loc[group["label"], "n_test"]
    assert set(means) == set(published.index)
    for cohort, (dsc, norm_hd) in means.items():
        assert dsc == pytest.approx(published.loc[cohort, f"dsc_{model}"], abs=0.5e-4 + 1e-9)
        assert norm_hd == pytest.approx(published.loc[cohort, f"normhd_{model}"], abs=0.5e-4 + 1e-9)
    assert found["clinical"]["n_matched"] == found["n_cases"] == found["n_scored"] == 306
    # fairness by an independent way: pandas on the clinical table's own columns
    frame = pd.read_excel(clinical)
    frame["key"] = frame.patient_id.str.lower()
    frame = own.merge(frame, left_on="case_id", right_on="key")
    ages = pd.cut(frame.age, [0, 40, 50, 60, 70, 100])
    means_by_age = frame.groupby(ages, observed=True)[["dsc", "norm_hd"]].mean()
    expected = 1 - float((means_by_age.max() - means_by_age.min()).mean())
    assert found["task1"]["fairness_by_variable"]["age"] == pytest.approx(expected, abs=1e-12)


def test_cases_without_a_score_beside_others_with_one_are_named(tmp_path):
    gaps = PREDICTIONS.replace("p1,1,0.9", "p1,1,").replace("p4,0,0.2", "p4,0,")
    summary, found = pcr_numbers(tmp_path, gaps, n_resamples=20)
    assert found["task2"]["n_auc"] == 6
    assert [failure["case_id"] for failure in found["failures"]] == ["p1", "p4"]
    assert "no score" in found["failures"][0]["reason"]
    assert not summary.all_ok


def test_a_table_without_any_score_has_no_case_left_out(tmp_path):
    none = "\n".join(line.rsplit(",", 1)[0] for line in PREDICTIONS.splitlines())
    summary, found = pcr_numbers(tmp_path, none, n_resamples=20)
    assert found["failures"] == []
    assert summary.all_ok


@pytest.mark.real
@pytest.mark.parametrize(
    ("centre", "published"), [("all", 0.7201), ("duke", 0.5398), ("spy1", 0.6793), ("spy2", 0.7801)]
)
def test_the_published_aucs_follow_from_the_table(real_data, tmp_path, centre, published):
    table = pd.read_csv(real_data("pcr") / "df_pcr_pred_test_article.csv")
    own = table if centre == "all" else table[table.dataset == centre]
    score = own.pred_pcr_vnew
    frame = pd.DataFrame({"patient_id": own.pid, "pcr": (score > 0.5) * 1.0, "score": score})
    frame.to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"patient_id": own.pid, "pcr": own.pCR}).to_csv(tmp_path / "c.csv", index=False)
    settings = ScoreSettings(n_resamples=20)
    job = score_pcr(tmp_path / "p.csv", tmp_path / "c.csv", tmp_path / "out", settings)
    found = json.loads(job.summary.read_text())
    task2 = found["task2"]
    assert task2["auc"] == pytest.approx(published, abs=0.5e-4 + 1e-9)
    hit = np.asarray(score > 0.5)
    yes = np.asarray(own.pCR == 1)
    expected = (hit[yes].mean() + (~hit[~yes]).mean()) / 2
    assert task2["balanced_accuracy"] == pytest.approx(expected, abs=1e-12)
    assert "no case with a known pcr has a group of age" in task2["reasons"]["fairness"]
