"""`mamamia score`, `score-table` and `score-pcr` as their user runs them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.cli.printing import print_scores
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.services.score import report as score_report

pytestmark = pytest.mark.usefixtures("quick_figures")


def quick(*arguments):
    """Run `mamamia` in a process of its own that draws no figures."""
    return mamamia(*arguments, has_figures=False)


def cold(*arguments):
    """Start `mamamia` as a shell does."""
    command = [Path(sys.executable).with_name("mamamia"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def expert(small_data_set):
    return small_data_set / "segmentations" / "expert"


@pytest.fixture
def clinical(small_data_set):
    return small_data_set / "clinical_and_imaging_info.xlsx"


def test_score_prints_the_cohort_with_profile_n_excluded_and_intervals(expert, clinical, tmp_path):
    out = tmp_path / "out"
    folders = ("--reference", expert, "--prediction", expert, "--clinical", clinical)
    extras = ("--profile", "official-code", "--bootstrap", 20, "--seed", 7, "--out", out)
    done = mamamia("score", *folders, *extras)
    assert done.returncode == 0, done.stderr
    assert "profile official-code, 3 cases, 3 scored, 0 excluded" in done.stdout
    assert "1.0000  (1.0000 to 1.0000, 95 %)" in done.stdout
    found = json.loads((out / "summary.json").read_text())
    assert found["task1"]["fairness_by_variable"]["age"] is None  # as the scripts: no case to 40
    assert "0-40" in found["task1"]["reasons"]["fairness_by_variable.age"]
    assert found["bootstrap"] == {"n_resamples": 20, "seed": 7}
    again = quick("score", *folders, *extras)
    assert again.returncode == 1
    assert "--overwrite" in again.stderr
    assert quick("score", *folders, *extras, "--overwrite").returncode == 0


def test_quiet_prints_each_case_that_failed(expert, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    first, *rest = sorted(expert.iterdir())
    for path in rest:
        shutil.copy(path, masks)
    done = quick(
        "score", "--reference", expert, "--prediction", masks, "--out", tmp_path / "o", "-q"
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == [
        first.name.removesuffix(".nii.gz")
    ]


@pytest.mark.door
def test_score_never_writes_through_a_link_that_lies_in_its_output_folder(expert, tmp_path):
    out, outside = tmp_path / "out", tmp_path / "outside"
    command = ("score", "--reference", expert, "--prediction", expert, "--bootstrap", 0)
    command = (*command, "--out", out)
    assert quick(*command).returncode == 0
    outside.mkdir()
    store = out / "case_results.jsonl"
    kept = store.rename(outside / "kept.jsonl").read_bytes()
    store.symlink_to(outside / "kept.jsonl")
    done = cold(*command, "--overwrite")
    assert done.returncode == 1, done.stdout
    assert "it is a link to another path" in " ".join(done.stderr.split())
    assert (outside / "kept.jsonl").read_bytes() == kept
    store.unlink()
    store.hardlink_to(outside / "kept.jsonl")
    others = [path for path in out.iterdir() if path.is_file() and path != store]
    for path in others:
        (outside / path.name).write_bytes(b"mine")
        if path.name != "run.json":  # says whose folder it is
            path.unlink()
            path.symlink_to(outside / path.name)
    done = quick(*command, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert (outside / "kept.jsonl").read_bytes() == kept
    assert {(outside / path.name).read_bytes() for path in others} == {b"mine"}
    assert len(store.read_bytes().splitlines()) == 3


def test_the_reference_folder_as_a_model_is_warned_of_first(expert, small_data_set, tmp_path):
    for number, reference in enumerate((expert, small_data_set)):
        words = ("--reference", reference, "--prediction", expert, "--bootstrap", 0)
        done = quick("score", *words, "--out", tmp_path / str(number))
        assert done.returncode == 0, done.stderr
        assert "is the reference folder" in " ".join(done.stderr.split())


def test_several_models_are_compared(expert, tmp_path):
    out = tmp_path / "out"
    options = ("--reference", expert, "--bootstrap", 0, "--out", out)
    done = quick("score", *options, "--prediction", f"a={expert}", "--prediction", f"b={expert}")
    assert done.returncode == 0, done.stderr
    assert (out / "a" / "summary.json").exists()
    assert (out / "b" / "case_scores.csv").exists()
    assert json.loads((out / "comparison.json").read_text())["tests"][0]["reason"]
    assert "no clinical table" in done.stdout


def test_usage_errors_of_scoring_exit_with_2(expert, tmp_path):
    options = ("--reference", expert, "--prediction", expert, "--out", tmp_path / "out")
    assert quick("score", *options, "--profile", "mine").returncode == 2
    assert quick("score", *options, "--bootstrap", -1).returncode == 2
    done = quick("score", *options, "--profile", "paper", "--label", 2)
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


def test_a_bad_row_of_a_score_table_is_named_and_exits_with_3(clinical, tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("patient_id,dsc,norm_hd\na_1,0.5,0.25\nA_2,1.5,0.25\nB_1,0.5,0.25\n")
    out = tmp_path / "out"
    done = quick("score-table", table, "--clinical", clinical, "--out", out)
    assert done.returncode == 3
    assert "failed: A_2: row 3 of scores.csv" in done.stderr
    found = json.loads((out / "summary.json").read_text())
    # A_2 has no usable row: Dice 0 and NormHD 1 in the mean
    assert found["task1"]["as_measured"]["performance"] == 0.625
    assert found["task1"]["performance"] == pytest.approx((1 / 3 + 1 - 0.5) / 2)
    assert found["task1"]["as_measured"]["ranking_score"] == (0.625 + 1) / 2
    assert found["policy"]["n_unusable_by_reason"]["unreadable"] == 1
    table.write_text("patient_id,dsc,norm_hd\na_1,0.5,0.25\n")
    done = quick("score-table", table, "--clinical", clinical, "--out", tmp_path / "good")
    assert done.returncode == 0


def test_response_predictions_are_scored(tmp_path):
    (tmp_path / "c.csv").write_text("case_id,age,pcr\nA,30,1\nB,30,0\nC,60,1\nD,60,0\n")
    (tmp_path / "p.csv").write_text("case_id,pcr,score\nA,1,0.9\nB,0,0.2\nC,0,0.4\nD,0,0.1\n")
    out = tmp_path / "out"
    done = quick("score-pcr", tmp_path / "p.csv", "--clinical", tmp_path / "c.csv", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "balanced accuracy" in done.stdout
    task2 = json.loads((out / "summary.json").read_text())["task2"]
    assert (task2["balanced_accuracy"], task2["auc"]) == (0.75, 1.0)
    assert quick("score-pcr", tmp_path / "p.csv", "--out", out).returncode == 2


def test_a_picture_that_the_report_lacks_is_told_in_a_warning(expert, tmp_path, monkeypatch):
    """The masks were scored; when they are read once more, for their pictures, one cannot be."""
    reason = "the network drive went away"

    def read_pair(files, *settings):
        if files[0].name.startswith(hidden):
            raise FormatError(reason)
        return real(files, *settings)

    hidden, real = sorted(expert.iterdir())[1].name.removesuffix(".nii.gz"), score_report.read_pair
    monkeypatch.setattr(score_report, "read_pair", read_pair)
    words = ["score", "--reference", str(expert), "--prediction", str(expert), "--bootstrap", "0"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "one")])
    assert done.exit_code == 0, done.output
    assert (
        f"warning: there is no picture of {hidden} (expert) in the report: {reason}\n"
        in done.stderr
    )
    assert done.stderr.count("warning: there is no picture") == 1
    again = ["--prediction", f"other={expert}", "--out", str(tmp_path / "two")]
    done = CliRunner().invoke(app, [*words, *again])
    assert done.exit_code == 0, done.output
    told = [f"no picture of {hidden} ({name})" in done.stderr for name in ("expert", "other")]
    assert told == [True, True]


def test_a_score_table_with_two_columns_of_one_name_is_refused_and_other_names_may_repeat(tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "out"
    table.write_text("case_id,dsc,norm_hd,DSC\nA,0.5,0.1,0.9\nB,0.4,0.2,0.8\n")
    done = quick("score-table", table, "--out", out, "--bootstrap", 0)
    assert done.returncode == 1
    assert "expected only one column dsc" in done.stderr
    assert "columns 2, 4" in done.stderr
    table.write_text("case_id,dsc,norm_hd,note,note\nA,0.5,0.1,x,y\n")
    assert quick("score-table", table, "--out", out, "--bootstrap", 0).returncode == 0


FOREIGN = (
    "Registry of 2024\nSubject,Age (y),menopause,breast_density,Response pCR\n"
    "A,30,pre,a,1\nB,60,post,b,0\nC,51,post,x,1\n"
)


@pytest.mark.door
def test_a_foreign_table_is_shown_confirmed_and_scored_with(tmp_path):
    table, columns = tmp_path / "t.csv", tmp_path / "columns.json"
    table.write_text(FOREIGN)
    scores = tmp_path / "scores.csv"
    scores.write_text("case_id,dsc,norm_hd\nA,0.5,0.5\nB,0.25,0.5\n")
    command = ("score-table", scores, "--clinical", table, "--bootstrap", 0)
    done = quick(*command, "--out", tmp_path / "refused")
    assert done.returncode == 1
    assert not (tmp_path / "refused").exists()
    shown = cold("clinical", table, "--write-columns", columns)
    assert shown.returncode == 0  # no ids are known yet, but what was asked for is written
    assert "age: proposed 'Age (y)' for its name, its unit y, and 3 values" in shown.stdout
    shown = quick("clinical", table, "--columns", columns)
    assert shown.returncode == 3
    assert shown.stdout.startswith("clinical table: 2 cases; age 2 of 2,")
    assert "row 5 was not read" in shown.stdout
    assert "D5 (breast_density): 'x'" in shown.stdout
    done = quick(*command, "--columns", columns, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "  clinical table: 2 cases; age 2 of 2, menopausal status 2 of 2" in done.stdout
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert found["clinical"]["coverage"]["pcr"] == 2
    assert found["clinical"]["refused"][0]["cells"][0]["cell"] == "D5"
    assert "clinical table: 2 cases; age 2 of 2" in (tmp_path / "out" / "report.html").read_text()


def test_a_needed_field_that_is_absent_stops_scoring_unless_the_file_says_so(tmp_path):
    table, columns = tmp_path / "t.csv", tmp_path / "columns.json"
    table.write_text("patient_id,age,Response\nA,30,1\nB,60,0\n")
    (tmp_path / "p.csv").write_text("case_id,pcr,score\nA,1,0.9\nB,0,0.1\n")
    command = ("score-pcr", tmp_path / "p.csv", "--clinical", table, "--bootstrap", 0)
    done = quick(*command, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "values of pcr for the score of responses" in " ".join(done.stderr.split())
    columns.write_text('{"pcr": "Response"}')
    done = quick(*command, "--columns", columns, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "pcr 2 of 2" in done.stdout


def test_the_least_group_is_named_beside_what_it_leaves_out(tmp_path):
    table, clinical = tmp_path / "s.csv", tmp_path / "c.csv"
    rows = [(f"P{k}", 30 if k < 8 else 45 if k < 16 else 65) for k in range(19)]
    scores = [f"{name},0.{50 + k},0.1" for k, (name, _) in enumerate(rows)]
    table.write_text("\n".join(["case_id,dsc,norm_hd", *scores]))
    persons = [f"{name},{age},pre,a" for name, age in rows]
    clinical.write_text("\n".join(["patient_id,age,menopause,breast_density", *persons]))
    common = ("score-table", table, "--bootstrap", 0)
    done = quick(*common, "--clinical", clinical, "--out", tmp_path / "five")
    assert done.returncode == 0, done.stderr
    assert "Left out because they are too small: 61-70 (n = 3)." in done.stdout
    found = json.loads((tmp_path / "five/summary.json").read_text())["task1"]
    age = found["variables"][0]["dsc"]["disparity"]
    assert (age["value"], age["counted"]) == pytest.approx((0.135, 0.08))
    assert [one["group"] for one in age["interval"]["left_out"]] == ["61-70"]
    least = ("--minimum-group", 3, "--clinical", clinical, "--out", tmp_path / "three")
    done = quick(*common, *least)
    assert "Left out" not in done.stdout
    assert "group 61-70 (n = 3)" in done.stdout
    for wrong in (("--minimum-group", 1, "--clinical", clinical), ("--minimum-group", 9)):
        assert quick(*common, *wrong, "--out", tmp_path / "wrong").returncode == 2


def test_the_reference_may_be_the_data_set_itself(small_data_set, expert, tmp_path):
    words = ("--prediction", expert, "--bootstrap", 0, "--no-report")
    done = quick("score", "--reference", small_data_set, *words, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (found["n_scored"], found["task1"]["mean_dsc"]) == (3, 1.0)


def test_folders_without_a_common_case_are_refused_and_not_scored_as_0(expert, tmp_path):
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for path in expert.glob("*.nii.gz"):
        (renamed / f"{path.name[0]}__{path.name[2:]}").write_bytes(path.read_bytes())
    done = quick("score", "--reference", expert, "--prediction", renamed, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "'A_1'" in done.stderr
    assert "'A__1'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_case_without_overlap_is_not_called_ok_in_the_terminal(capsys):
    rows = [
        CaseScore("A", ScoreStatus.OK, dsc=0.0),
        CaseScore("B", ScoreStatus.OK, dsc=0.9),
    ]
    print_scores(tuple(rows))
    printed = capsys.readouterr().out
    assert "no overlap" in printed
    assert "scored" in printed
    assert " ok " not in printed
