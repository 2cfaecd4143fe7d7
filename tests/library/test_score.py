"""`mm.score`: what may be compared, what comes back, and what is refused."""

import copy
import pickle
import shutil
import subprocess
import sys
import threading
from contextlib import nullcontext

import nibabel as nib
import numpy as np
import pandas as pd
import pytest

import napari_mamamia as mm

ROLL = {"A_1": 0, "A_2": 1, "B_1": 3}


@pytest.fixture(scope="module")
def data_set(data_set_of_module):
    return mm.open_data_set(data_set_of_module, progress=False)


@pytest.fixture(scope="module")
def predictions(data_set, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "shifted"
    for case in data_set:
        array = np.roll(case.reference.array, ROLL[case.case_id], axis=2)
        mm.write_mask(array, folder / f"{case.case_id}.nii.gz", grid=case.grid)
    return folder


def _score(*given, **options):
    return mm.score(*given, **{"bootstrap": 50, "progress": False} | options)


@pytest.fixture(scope="module")
def scores(data_set, predictions):
    return _score(data_set, predictions, clinical=data_set)


def test_cases_are_a_table_with_dice_by_hand(scores):
    assert scores.cases["dsc"].tolist() == [1.0, 5 / 6, 0.5]  # 6 columns, shifted by 0, 1, 3
    assert scores.cases.loc["A_2", "hausdorff95_mm"] == pytest.approx(0.8)
    assert scores.cases["status"].tolist() == ["ok"] * 3


def test_the_cohort_is_a_table_of_numbers_with_intervals(scores):
    assert scores.cohort.loc["mean_dsc", "value"] == pytest.approx((1 + 5 / 6 + 0.5) / 3)
    low, high = scores.cohort.loc["mean_dsc", ["low", "high"]]
    assert 0.5 <= low < high <= 1
    assert list(scores.cohort.index[-2:]) == ["fairness", "ranking_score"]


def test_groups_say_what_fairness_was_made_of(scores):
    scored = scores.groups[scores.groups["in_fairness"] & (scores.groups["n"] > 0)]
    assert set(scored["variable"]) == {"age", "menopausal_status", "breast_density"}
    assert scored["n"].tolist() == [3, 3, 3]
    assert scored["is_small"].all()


def test_folders_files_mappings_and_arrays_give_the_same_numbers(data_set, predictions, scores):
    references = data_set.root / "segmentations" / "expert"
    by_folder = _score(references, str(predictions))
    masks = {
        case.case_id: mm.read_mask(predictions / f"{case.case_id}.nii.gz") for case in data_set
    }
    by_masks = _score({case.case_id: case.reference for case in data_set}, masks)
    by_data_set = _score(data_set, masks)
    case = data_set["A_2"]
    by_files = _score(references / "A_2.nii.gz", predictions / "A_2.nii.gz")
    by_arrays = _score(
        case.reference.array.astype(np.float64), masks["A_2"].array, grid=case.grid, case_id="A_2"
    )
    pd.testing.assert_frame_equal(by_folder.cases, scores.cases)
    pd.testing.assert_frame_equal(by_masks.cases, scores.cases)
    pd.testing.assert_frame_equal(by_data_set.cases, scores.cases)
    pd.testing.assert_frame_equal(by_files.cases, scores.cases.loc[["A_2"]])
    pd.testing.assert_frame_equal(by_arrays.cases, scores.cases.loc[["A_2"]])


def test_a_missing_and_a_damaged_prediction_are_named_and_the_rest_goes_on(
    data_set, predictions, tmp_path
):
    folder = shutil.copytree(predictions, tmp_path / "some")
    (folder / "A_1.nii.gz").unlink()
    (folder / "B_1.nii.gz").write_bytes(b"no image")
    found = _score(data_set, folder)
    assert found.cases["status"].tolist() == ["prediction_missing", "ok", "unreadable"]
    assert [failure.case_id for failure in found.failures] == ["A_1", "B_1"]
    assert not found.all_ok
    assert "2 of 3 cases with a problem: A_1" in found._repr_html_()


def test_a_case_without_prediction_in_a_mapping_counts_as_in_a_folder(data_set):
    reference = {case.case_id: case.reference for case in data_set}
    found = _score(reference, {"A_1": reference["A_1"]})
    assert found.cases["status"].tolist() == ["ok", "prediction_missing", "prediction_missing"]
    assert found.cases["dsc"].tolist() == [1, 0, 0]


def test_masks_on_other_grids_are_a_status_and_no_number(data_set):
    mask = data_set["A_1"].reference
    moved = mm.Mask(mm.Grid.of_spacing(mask.grid.shape, (2.0, 0.8, 0.8)), mask.array)
    row = _score(mask, moved).cases.loc["case"]
    assert row["status"] == "grid_mismatch"
    assert np.isnan(row["dsc"])


WRONG_PAIRS = {
    "the same folder twice": (lambda r, p: (p, p), "in different folders"),
    "the same folder by another way": (lambda r, p: (p, p / ".." / p.name), "in different folders"),
    "a folder and a file": (lambda r, p: (r, p / "A_1.nii.gz"), "two of the same kind"),
    "nothing": (
        lambda r, p: (r, None),
        "expected an array|one of them is None",
    ),
    "a folder and a mask": (lambda r, p: (r, np.ones((2, 2, 2))), "got the folder"),
    "a number": (lambda r, p: (r / "A_1.nii.gz", 3), "to have a grid"),
    "a list of masks": (lambda r, p: ([1], [2]), "to have a grid"),
    "a mapping and a folder": (lambda r, p: ({"A_1": r / "A_1.nii.gz"}, p), "by case id on both"),
}


@pytest.mark.parametrize("wrong", WRONG_PAIRS)
def test_pairs_that_cannot_be_meant_are_refused(data_set, predictions, wrong):
    make, said = WRONG_PAIRS[wrong]
    references = data_set.root / "segmentations" / "expert"
    with pytest.raises(mm.ArgumentError, match=said):
        _score(*make(references, predictions))


def test_the_references_of_a_data_set_are_no_predictions(data_set):
    with pytest.raises(mm.ArgumentError):
        _score(data_set, data_set.root / "segmentations" / "expert")


def test_folders_that_are_missing_or_hold_no_mask_are_named(data_set, predictions, tmp_path):
    with pytest.raises(mm.FormatError, match="does not exist: check the path"):
        _score(data_set, tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(mm.FormatError, match=r"expected masks .*empty, but found none; choose"):
        _score(data_set, tmp_path / "empty")
    with pytest.raises(mm.FormatError, match="does not exist"):
        _score(tmp_path / "gone", predictions)


WRONG_OPTIONS = {
    "profile": ("clinicla", "official-code"),
    "label": (0, "the label 0 is the background"),
    "bootstrap": (-1, "expected bootstrap to be a whole number of 0 or above"),
    "seed": (1.5, "expected seed to be a whole number of 0 or above"),
    "workers": (-1, "number of processes"),
    "clinical": (3, "expected the clinical table to be a path"),
    "columns": ({"ages": "age"}, "the field 'ages'"),
}


@pytest.mark.parametrize("option", WRONG_OPTIONS)
def test_an_option_that_makes_no_sense_is_an_argument_error(data_set, predictions, option):
    value, said = WRONG_OPTIONS[option]
    with pytest.raises(mm.ArgumentError, match=said):
        _score(data_set, predictions, **{option: value})


def test_what_only_files_have_is_refused_for_masks_in_memory(data_set):
    mask = data_set["A_1"].reference
    with pytest.raises(mm.ArgumentError, match="images needs masks in files or folders"):
        _score(mask, mask, images=data_set)
    with pytest.raises(mm.ArgumentError, match="because distances are in mm"):
        _score(mask.array, mask.array)
    with pytest.raises(mm.ArgumentError, match="apply a threshold"):
        _score(mask.array * 0.3, mask.array, grid=mask.grid)
    with pytest.raises(mm.GridMismatchError, match=r"pass mask\.T"):
        _score(mask, mask.array.T, grid=mask.grid)


def test_a_clinical_table_without_ids_or_with_other_line_ends(data_set, predictions, tmp_path):
    table = tmp_path / "clinical.csv"
    rows = ["patient_id;age;menopause;breast_density"]
    rows += [f"{case_id};51;post;b" for case_id in data_set.case_ids]
    table.write_bytes("\r\n".join(rows).encode("utf-8-sig"))
    found = _score(data_set, predictions, clinical=table)
    assert found.model.clinical.n_matched == 3
    without = tmp_path / "without.csv"
    without.write_text("age,menopause\n51,post\n")
    with pytest.raises(mm.FormatError, match=r"without\.csv"):
        _score(data_set, predictions, clinical=without)


def test_the_same_scores_are_saved_once_and_never_over_others(
    data_set, scores, tmp_path, quick_figures
):
    out = tmp_path / "out"
    assert scores.save(out, progress=False) == out
    there = {path.name for path in out.iterdir()}
    assert there >= {
        "case_scores.csv",
        "case_scores.xlsx",
        "summary.json",
        "report.html",
        "run.json",
    }
    with pytest.raises(mm.SaveConflictError):
        scores.save(out, progress=False)
    scores.save(out, existing="overwrite", progress=False)
    with pytest.raises(mm.ArgumentError, match='"refuse", "overwrite"'):
        scores.save(out, existing="resume")
    references = data_set.root / "segmentations" / "expert"
    with pytest.raises(mm.SaveConflictError, match="not to contain the run's inputs"):
        scores.save(references, existing="overwrite")


def test_the_report_is_one_page_and_a_file_that_exists_stays(scores, tmp_path, quick_figures):
    page = scores.report(tmp_path / "page.html", progress=False)
    text = page.read_text()
    assert "shifted" in text
    page.write_text("mine")
    with pytest.raises(mm.SaveConflictError):
        scores.report(page, progress=False)
    assert page.read_text() == "mine"
    with pytest.raises(mm.ArgumentError, match="path of an HTML file"):
        scores.report(tmp_path / "folder")


def test_models_are_compared_by_rank_and_by_case(data_set, scores, tmp_path, quick_figures):
    perfect = {case.case_id: case.reference for case in data_set}
    best = _score(data_set, perfect, name="perfect", clinical=data_set)
    found = scores.compare(best)
    assert found.ranking.index.tolist() == ["perfect", "shifted"]
    row = found.tests[found.tests["metric"] == "dsc"].iloc[0]
    assert row["mean_difference"] == pytest.approx((0 - 1 / 6 - 0.5) / 3)
    assert found.weights.loc[0.0, "perfect"] == best.cohort.loc["performance", "value"]
    assert "Paired tests" in found._repr_html_()
    out = found.save(tmp_path / "both", progress=False)
    assert {p.name for p in out.iterdir()} >= {"perfect", "shifted", "comparison.json"}
    with pytest.raises(mm.ArgumentError, match="all models to have different names"):
        scores.compare(scores)
    with pytest.raises(mm.ArgumentError, match="at least two models"):
        scores.compare()
    with pytest.raises(mm.ArgumentError, match="baseline to be one of shifted, perfect"):
        scores.compare(best, baseline="nobody")
    with pytest.raises(mm.ArgumentError, match="the same profile for all"):
        scores.compare(_score(data_set, perfect, name="p", profile="paper"))
    with pytest.raises(mm.ArgumentError, match="expected the scores of models"):
        scores.compare(scores.cases)


def test_a_table_of_somebody_else_scores_is_taken_as_it_is(tmp_path, data_set):
    table = tmp_path / "theirs.csv"
    table.write_text("case_id,dsc,norm_hd\nA_1,0.9,0.1\nA_2,0.7,0.2\nB_1,2,0.1\n")
    found = mm.score_table(table, clinical=data_set, bootstrap=0, progress=False)
    # B_1 has no usable row and counts with the worst Dice
    assert found.cohort.loc["mean_dsc", "value"] == pytest.approx(1.6 / 3)
    assert [failure.case_id for failure in found.failures]
    with pytest.raises(mm.ArgumentError, match="score_table"):
        _score(data_set, table)


def test_a_second_file_of_a_case_costs_that_case_alone(tmp_path, data_set, predictions):
    folder = tmp_path / "twice"
    shutil.copytree(predictions, folder)
    (folder / "A_1.nii").write_bytes(b"x")
    found = mm.score(data_set, folder, bootstrap=0, progress=False)
    assert found.cases["status"].tolist() == ["several_files", "ok", "ok"]
    assert found.summary["policy"]["n_unusable"] == 1


def test_the_rule_of_unusable_cases_and_who_counts_are_arguments(tmp_path, data_set, predictions):
    (tmp_path / "cases.txt").write_text("A_1\nA_2\n")
    found = mm.score(
        data_set, predictions, bootstrap=0, progress=False, cases=tmp_path / "cases.txt"
    )
    assert list(found.cases.index) == ["A_1", "A_2"]
    assert found.summary["outside"] == ["B_1"]
    table = tmp_path / "theirs.csv"
    table.write_text("case_id,dsc,norm_hd\nA_1,0.9,0.1\nA_2,0.7,0.2\nB_1,2,0.1\n")
    left = mm.score_table(
        table, bootstrap=0, progress=False, unusable="leave-out", metric_definition="MONAI"
    )
    assert left.cohort.loc["mean_dsc", "value"] == pytest.approx(0.8)
    assert left.summary["metric_definition"] == "MONAI"
    assert repr(left).startswith("NOT FOR RANKING: 1 of 3 cases are left out")
    with pytest.raises(mm.ArgumentError, match="least-favourable"):
        mm.score_table(table, bootstrap=0, progress=False, unusable="best")


def test_scoring_in_a_thread_is_silent_and_equal(data_set, predictions, scores, capfd):
    found = []
    work = threading.Thread(
        target=lambda: found.append(mm.score(data_set, predictions, bootstrap=50))
    )
    work.start()
    work.join()
    pd.testing.assert_frame_equal(found[0].cases, scores.cases)
    assert capfd.readouterr() == ("", "")


def test_scoring_twice_gives_the_same_numbers(data_set, predictions, scores):
    again = _score(data_set, predictions, clinical=data_set)
    pd.testing.assert_frame_equal(again.cohort, scores.cohort)


def test_ctrl_c_stops_and_is_not_swallowed(data_set, predictions, monkeypatch):
    from napari_mamamia.library import progress

    def stopped(step):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "_show_bar", lambda wanted: nullcontext(stopped))
    with pytest.raises(KeyboardInterrupt):
        _score(data_set, predictions)


@pytest.mark.night
@pytest.mark.door
def test_two_processes_give_the_numbers_of_one_in_a_script_without_a_guard(
    data_set, predictions, scores, tmp_path
):
    """multiprocessing runs a script once more in each process; here it must not."""
    script = tmp_path / "script.py"
    script.write_text(
        "import napari_mamamia as mm\n"
        f"data_set = mm.open_data_set({str(data_set.root)!r})\n"
        f"found = mm.score(data_set, {str(predictions)!r}, workers=2, bootstrap=0)\n"
        "print(found.cases['dsc'].tolist())\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert done.stdout == f"{scores.cases['dsc'].tolist()}\n", done.stderr


def test_a_soft_mask_file_counts_from_one_half_as_the_command_does(data_set, tmp_path):
    case = data_set["A_1"]
    soft = case.reference.array.astype(np.float32) * 0.6
    image = nib.Nifti1Image(soft.T, case.affine)
    nib.save(image, tmp_path / "A_1.nii.gz")
    reference = data_set.root / "segmentations" / "expert" / "A_1.nii.gz"
    assert _score(reference, tmp_path / "A_1.nii.gz").cases["dsc"].tolist() == [1.0]


def test_tables_may_be_dataframes_with_the_id_as_index_or_column(data_set, predictions, scores):
    table = data_set.cases
    for given in (table, table.reset_index()):
        found = _score(data_set, predictions, clinical=given)
        pd.testing.assert_frame_equal(found.cohort, scores.cohort)
    own = mm.score_table(scores.cases, bootstrap=0, progress=False)
    assert own.cohort.loc["mean_dsc", "value"] == scores.cohort.loc["mean_dsc", "value"]
    with pytest.raises(mm.FormatError, match=r"patient_id|case_id"):
        mm.score_table(pd.DataFrame({"dsc": [1.0], "norm_hd": [0.0]}), progress=False)


def test_cases_and_scores_go_to_other_processes_and_can_be_copied(data_set, scores):
    case = data_set["A_1"]
    case.signal.sum()
    sent = pickle.dumps(case)
    assert len(sent) < case.signal.nbytes / 4
    assert np.array_equal(pickle.loads(sent).signal, case.signal)
    assert pickle.loads(pickle.dumps(data_set)).case_ids == data_set.case_ids
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(scores)).cohort, scores.cohort)
    assert copy.deepcopy(case).case_id == "A_1"
