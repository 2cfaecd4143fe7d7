"""Two folders of masks and a clinical table: the cohort's numbers, worked out by hand."""

import json
import math
import sys

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.io.clinical.columns import ColumnChoice
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER, PROFILES
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.score.models import PredictionFolder, prediction_folder, score_models
from napari_mamamia.services.score.score import score_folders
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.table import score_table
from napari_mamamia.services.score.text import cohort_lines

pytestmark = pytest.mark.usefixtures("quick_figures")

NONE_BUT_AGE = ColumnChoice((("menopausal_status", None), ("breast_density", None)))
AFFINE = np.diag([2.0, 1.0, 1.0, 1.0])  # 2 mm along x


def save(folder, case_id, start=2, fill=1):
    """Write a cube of 4 x 4 x 4 voxels from x = `start`."""
    array = np.zeros((12, 8, 8), dtype=np.uint8)
    array[start : start + 4, 2:6, 2:6] = fill
    folder.mkdir(exist_ok=True)
    nib.save(nib.Nifti1Image(array, AFFINE), folder / f"{case_id}.nii.gz")


@pytest.fixture
def folders(tmp_path):
    """Four cases: A and D are found, B is one voxel (2 mm) off, C has no prediction."""
    for case_id in "ABCD":
        save(tmp_path / "reference", case_id)
    for case_id, start in (("A", 2), ("B", 3), ("D", 2)):
        save(tmp_path / "model", case_id, start)
    rows = ["patient_id,age,menopause,breast_density,tumor_subtype,dataset"]
    rows += ["a,30,pre,a,luminal,X", "b,40,pre,a,luminal,X"]
    rows += ["c,60,post,a,luminal,Y", "d,51,post,a,luminal,Y"]
    (tmp_path / "clinical.csv").write_text("\n".join(rows))
    return tmp_path


def scored(folders, out="out", **settings):
    settings = ScoreSettings(clinical=folders / "clinical.csv", **settings)
    job = Stepped(score_folders, folders / "reference", folders / "model", folders / out, settings)
    summary = job()
    return summary, json.loads(summary.summary.read_text())


def test_a_missing_prediction_counts_as_an_empty_one_under_clinical(folders):
    summary, found = scored(folders, n_resamples=20)
    dsc, norm_hd = [1, 0.75, 0, 1], [0, 2 / 150, 1, 0]  # B: 2 * 48 / 128, 2 mm of 150 mm
    assert [row.dsc for row in summary.rows] == dsc
    assert [row.norm_hd for row in summary.rows] == norm_hd
    task1 = found["task1"]
    assert (found["profile"], found["n_cases"], found["n_scored"]) == ("clinical", 4, 4)
    assert found["n_missing_scored_as_empty"] == 1
    assert [failure["case_id"] for failure in found["failures"]] == ["C"]
    assert "no prediction file" in found["failures"][0]["reason"]
    assert task1["mean_dsc"] == pytest.approx(2.75 / 4, abs=1e-15)
    assert task1["mean_norm_hd"] == pytest.approx((1 + 2 / 150) / 4, abs=1e-15)
    performance = (2.75 / 4 + 1 - (1 + 2 / 150) / 4) / 2
    assert task1["performance"] == pytest.approx(performance, abs=1e-15)
    # {A, B}: 0.875 and 1/150; {C, D}: 0.5 and 0.5; by age and by menopausal status alike
    apart = 1 - (0.375 + 0.5 - 1 / 150) / 2
    expected = {"age": apart, "menopausal_status": apart, "breast_density": 1}
    assert task1["fairness_by_variable"] == pytest.approx(expected, abs=1e-15)
    fairness = (2 * apart + 1) / 3
    assert task1["fairness"] == pytest.approx(fairness, abs=1e-15)
    assert task1["weight_of_fairness"] == 0.5
    assert task1["ranking_score"] == pytest.approx((performance + fairness) / 2, abs=1e-15)
    assert task1["reasons"] == {}
    assert not summary.all_ok
    text = "  1 case without a prediction file counts as an empty prediction"
    assert text in cohort_lines(summary.model)


def test_a_missing_prediction_leaves_no_official_number_and_distances_are_voxels(folders):
    _, found = scored(folders, profile=OFFICIAL_CODE, n_resamples=20)
    task1 = found["task1"]
    assert (found["n_cases"], found["n_scored"], found["n_missing_scored_as_empty"]) == (4, 3, 0)
    assert found["undefined"] == ["C"]
    assert (task1["mean_dsc"], task1["mean_norm_hd"], task1["ranking_score"]) == (None,) * 3
    assert task1["fairness_by_variable"]["age"] is None
    assert "C missing" in task1["reasons"]["ranking_score"]
    measured = task1["as_measured"]
    assert measured["mean_dsc"] == pytest.approx(2.75 / 3, abs=1e-12)
    assert measured["mean_norm_hd"] == pytest.approx(1 / 150 / 3, abs=1e-12)
    # {A, B}: 0.875 and half a voxel of 150; {D}: 1 and 0
    dsc, norm_hd = (
        task1["variables"][0][name]["disparity"]["value"] for name in ("dsc", "norm_hd")
    )
    assert (dsc, norm_hd) == pytest.approx((0.125, 0.5 / 150), abs=1e-12)
    menopause = task1["variables"][1]
    assert [(g["label"], g["n"]) for g in menopause["groups"]] == [
        ("pre", 2),
        ("post", 1),
        ("unknown", 0),
    ]


def test_the_paper_has_no_group_for_age_40_and_says_so(folders):
    _, found = scored(folders, profile=PAPER, n_resamples=0)
    age = found["task1"]["variables"][0]
    assert [item["case_id"] for item in age["unassigned"]] == ["B"]
    assert "age 40" in age["unassigned"][0]["reason"]
    assert found["task1"]["intervals"] == {}


def test_groups_under_ten_cases_are_flagged_in_the_clinical_profile_only(folders):
    flags = {}
    for profile in PROFILES.values():
        _, found = scored(folders, profile.name, profile=profile, n_resamples=0)
        groups = found["task1"]["variables"][2]["groups"]
        flags[profile.name] = [group["is_small"] for group in groups]
    assert flags == {
        "clinical": [True, False, False, False],
        "official-code": [False] * 4,
        "paper": [False] * 4,
    }


def test_groups_that_are_too_small_are_named_in_one_line_for_each_variable(folders):
    summary, _ = scored(folders, n_resamples=20)
    lines = [line for line in cohort_lines(summary.model) if line.startswith("  age: ")]
    (line,) = [line for line in lines if "0-40 (n" in line]
    assert "Dice disparity" in line
    assert "NormHD disparity" in line
    assert "small group" not in line


def test_strata_are_reported_with_n_and_means(folders):
    _, found = scored(folders, n_resamples=0)
    strata = {stratum["variable"]: stratum["groups"] for stratum in found["task1"]["strata"]}
    assert [(g["label"], g["n"], g["mean_dsc"]) for g in strata["dataset"]] == [
        ("X", 2, 0.875),
        ("Y", 2, 0.5),
    ]
    assert "tumour_subtype" not in strata  # one group only
    assert [g["label"] for g in strata["volume"]] == ["small", "moderate", "large"]


def test_intervals_follow_from_the_seed(folders):
    intervals = []
    for out, seed in (("one", 1), ("two", 1), ("three", 2)):
        _, found = scored(folders, out, n_resamples=50, seed=seed)
        intervals.append(found["task1"]["intervals"])
        assert found["bootstrap"] == {"n_resamples": 50, "seed": seed}
    assert intervals[0] == intervals[1] != intervals[2]
    assert set(intervals[0]) == {
        "mean_dsc",
        "mean_norm_hd",
        "performance",
        "mean_hausdorff95_mm",
        "fairness_age",
        "fairness_menopausal_status",
        "fairness_breast_density",
        "fairness",
        "ranking_score",
    }
    # a plain loop over resamples of the cases
    dsc = np.array([1, 0.75, 0, 1])
    rng = np.random.default_rng(1)
    means = [dsc[rows].mean() for rows in rng.integers(0, 4, (50, 4))]
    low, high = np.percentile(means, [2.5, 97.5])
    entry = intervals[0]["mean_dsc"]
    assert (entry["low"], entry["high"]) == pytest.approx((low, high), abs=1e-12)


def test_without_a_clinical_table_fairness_is_null_with_the_reason(folders):
    job = Stepped(score_folders, folders / "reference", folders / "model", folders / "out")
    summary = job()
    found = json.loads(summary.summary.read_text())
    task1 = found["task1"]
    assert found["clinical"] is None
    assert task1["fairness"] is task1["ranking_score"] is None
    assert task1["fairness_by_variable"] == dict.fromkeys(
        ("age", "menopausal_status", "breast_density")
    )
    for name in ("fairness", "ranking_score", "fairness_by_variable.age"):
        assert "no clinical table" in task1["reasons"][name]
    assert task1["performance"] is not None
    assert set(task1["intervals"]) == {
        "mean_dsc",
        "mean_norm_hd",
        "mean_hausdorff95_mm",
        "performance",
    }


def test_cases_that_the_clinical_table_lacks_are_listed_as_unassigned(folders):
    (folders / "clinical.csv").write_text("case_id,age\nA,30\nB,x\n")
    _, found = scored(folders, n_resamples=0, columns=NONE_BUT_AGE)
    assert found["clinical"]["n_matched"] == 1
    assert found["clinical"]["refused"][0]["row"] == 3
    unassigned = found["task1"]["variables"][0]["unassigned"]
    assert [item["case_id"] for item in unassigned] == ["B", "C", "D"]
    reasons = found["task1"]["reasons"]
    assert "no case has a group of menopausal_status" in reasons["fairness_by_variable"
                                                                 ".menopausal_status"]  # fmt: skip
    assert found["task1"]["fairness"] is None


def test_a_case_is_found_by_patient_id_where_the_table_has_both(folders):
    rows = ["patient_id,case_id,age", "A,x1,30", "B,x2,30", "b,x3,90", "z,C,60"]
    (folders / "clinical.csv").write_text("\n".join(rows))
    _, found = scored(folders, n_resamples=0, columns=NONE_BUT_AGE)
    age = found["task1"]["variables"][0]
    # A by patient id, C by case id; B fits two rows, D none
    assert [item["case_id"] for item in age["unassigned"]] == ["B", "D"]


def test_the_three_tables_hold_the_same_rows(folders):
    summary, _ = scored(folders, n_resamples=0)
    rows = read_case_scores(summary.table)
    assert [row.norm_hd for row in rows] == [row.norm_hd for row in summary.rows]
    for frame in (
        pd.read_excel(summary.table.with_suffix(".xlsx")),
        pd.read_parquet(summary.table.with_suffix(".parquet")),
    ):
        assert list(frame.case_id) == list("ABCD")
        assert list(frame.norm_hd) == pytest.approx([row.norm_hd for row in rows], abs=1e-15)


def test_without_pyarrow_the_other_two_tables_are_written(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    summary, _ = scored(folders, n_resamples=0)
    tables = sorted(path.name for path in summary.table.parent.glob("case_scores.*"))
    assert tables == ["case_scores.csv", "case_scores.xlsx"]


def test_no_scored_case_at_all_is_told_and_not_a_crash(folders):
    for path in (folders / "model").iterdir():
        path.write_bytes(b"torn")
    summary, found = scored(folders, profile=OFFICIAL_CODE)
    assert (found["n_cases"], found["n_scored"]) == (4, 0)
    assert len(found["failures"]) == 4
    for name in ("mean_dsc", "performance", "fairness", "ranking_score"):
        assert found["task1"][name] is None
        assert found["task1"]["reasons"][name]
    assert found["task1"]["intervals"] == {}
    assert len(summary.rows) == 4


def test_a_label_belongs_to_the_clinical_profile(folders):
    save(folders / "reference", "A", fill=2)
    save(folders / "model", "A", fill=2)
    summary, _ = scored(folders, label=2, n_resamples=0)
    assert summary.rows[0].dsc == 1
    assert math.isnan(summary.rows[1].dsc)
    with pytest.raises(ValueError, match="official-code defines its own foreground"):
        ScoreSettings(OFFICIAL_CODE, label=2)
    with pytest.raises(ValueError, match="background"):
        ScoreSettings(CLINICAL, label=0)


def test_a_damaged_clinical_table_stops_the_run_before_anything_is_written(folders):
    (folders / "clinical.csv").write_text("name,age\nA,30\n")
    with pytest.raises(FormatError, match="patient_id"):
        scored(folders)
    assert not (folders / "out").exists()


def test_scoring_our_own_table_again_gives_the_same_numbers(folders):
    summary, first = scored(folders, n_resamples=30)
    settings = ScoreSettings(clinical=folders / "clinical.csv", n_resamples=30)
    again = score_table(summary.table, folders / "again", settings)
    second = json.loads(again.summary.read_text())
    for key in first["task1"].keys() - {"strata"}:
        assert second["task1"][key] == first["task1"][key]


@pytest.fixture
def models(folders):
    for case_id in "ABCD":
        save(folders / "other", case_id, 4)  # 2 * 32 / 128 and 4 mm of 150 mm
    return [
        PredictionFolder("first", folders / "model"),
        PredictionFolder("Zweites Modell", folders / "other"),
    ]


def test_each_model_gets_its_folder_and_the_comparison_stands_above(folders, models):
    settings = ScoreSettings(clinical=folders / "clinical.csv", n_resamples=20)
    out = folders / "out"
    summary = score_models(folders / "reference", models, out, settings)
    assert [scored.model.name for scored in summary.models] == ["first", "Zweites Modell"]
    for name in ("first", "Zweites Modell"):
        assert json.loads((out / name / "summary.json").read_text())["model"] == name
        assert (out / name / "case_scores.parquet").exists()
    found = json.loads((out / "comparison.json").read_text())
    one, two = found["models"]
    # first: worked out above; second: the same in every case, so fairness is 1
    assert two["performance"] == pytest.approx((0.5 + 1 - 4 / 150) / 2, abs=1e-15)
    assert two["fairness"] == pytest.approx(1, abs=1e-15)
    assert (one["rank"], one["rank_by_performance"]) == (2, 2)
    assert (two["rank"], two["rank_by_performance"]) == (1, 1)
    test = found["tests"][0]
    assert (test["metric"], test["model_a"], test["n"]) == ("dsc", "first", 4)
    assert test["mean_difference"] == pytest.approx(2.75 / 4 - 0.5, abs=1e-15)
    sweep = found["weight_sweep"]
    assert sweep["ends"] == {"0": "performance only", "1": "fairness only"}
    assert (sweep["weights_of_fairness"][0], sweep["weights_of_fairness"][-1]) == (0, 1)
    assert sweep["models"][0]["scores"][0] == one["performance"]
    assert sweep["models"][1]["scores"][-1] == two["fairness"]
    assert not summary.all_ok


def test_two_models_of_one_name_and_names_that_are_no_folder_are_refused(folders, models):
    for name in ("FIRST", "a/b", ".."):
        pair = [models[0], PredictionFolder(name, models[1].folder)]
        with pytest.raises(CaseError):
            score_models(folders / "reference", pair, folders / "out")
    assert not (folders / "out").exists()


def test_models_on_other_cases_are_compared_on_the_common_ones_with_a_note(folders, models):
    settings = ScoreSettings(OFFICIAL_CODE, n_resamples=0)
    job = score_models(folders / "reference", models, folders / "out", settings)
    comparison = job.comparison
    assert comparison.tests[0].n == 3
    assert "first 3, Zweites Modell 4; 3 in common" in comparison.notes[0]


def test_several_models_do_not_replace_results_unless_told(folders, models):
    settings = ScoreSettings(n_resamples=0)
    arguments = (folders / "reference", models, folders / "out", settings)
    score_models(*arguments)
    with pytest.raises(SaveConflictError):
        score_models(*arguments)
    score_models(*arguments, existing=Existing.OVERWRITE)


def test_a_prediction_argument_is_a_name_and_a_folder_or_a_folder(tmp_path):
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert prediction_folder(str(odd)) == PredictionFolder("a=b", odd)
    assert prediction_folder(f"my net={tmp_path}") == PredictionFolder("my net", tmp_path)
    assert prediction_folder(str(tmp_path)).name == tmp_path.name


def test_progress_ends_at_its_total_and_a_closed_job_leaves_no_table(folders):
    settings = ScoreSettings(clinical=folders / "clinical.csv", n_resamples=20)
    arguments = (folders / "reference", folders / "model")
    steps = list(Stepped(score_folders, *arguments, folders / "out", settings))
    assert steps[-1].done == steps[-1].total
    assert {step.text for step in steps} >= {"Resampling cases", "Writing summary.json"}
    job = Stepped(score_folders, *arguments, folders / "stopped", settings)
    for step in job:
        if step.text == "Resampling cases":
            break
    job.close()
    left = sorted(path.name for path in (folders / "stopped").iterdir())
    assert left == ["case_results.jsonl", "run.json"]


def test_a_summary_without_cases_of_one_variable_has_valid_json_and_versions(folders):
    summary, found = scored(folders, n_resamples=0)
    assert "NaN" not in summary.summary.read_text()
    assert found["definitions"]["case"]["name"] == "clinical"
    assert found["definitions"]["cohort"]["min_group_size"] == 10
    assert set(found["versions"]) == {"python", "numpy", "scipy"}
    assert found["software"].startswith("napari-mamamia ")
