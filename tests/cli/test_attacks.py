"""Submissions that were made to win: each attack that was found, through the real command."""

import gzip
import json

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia

pytestmark = pytest.mark.usefixtures("quick_figures")

N = 60
SHAPE = (12, 10, 10)
AFFINE = np.diag([2.0, 1.0, 1.0, 1.0])
BEST = range(6)
"""The smallest and best group: up to 40 years."""
OF_MANY = ("truncated", "shifted", "nan", "dropped")
OF_THE_BEST = ("emptied", "image", "doubled", "shifted")
"""Attacks on the 38 worst cases, and on one case of the best group, so that the gap shrinks."""


def cube(start, dtype=np.uint8):
    array = np.zeros(SHAPE, dtype=dtype)
    array[start : start + 4, 3:7, 3:7] = 1
    return array


def save(path, array, affine=AFFINE):
    path.parent.mkdir(exist_ok=True)
    nib.save(nib.Nifti1Image(array, affine), path)


def name_of(number):
    return f"c{number:02}"


def truncate(path):
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:400]))


def shift(path):
    affine = AFFINE.copy()
    affine[0, 3] += 5.0
    save(path, np.asarray(nib.load(path).dataobj), affine)


def write_nan(path):
    array = cube(2, np.float32)
    array[0, 0, 0] = np.nan
    save(path, array)


def write_image(path):
    rng = np.random.default_rng(1)
    save(path, rng.integers(1, 3000, SHAPE).astype(np.int16))


def write_empty(path):
    save(path, np.zeros(SHAPE, np.uint8))


def double(path):
    save(path.with_name(path.name.replace(".nii.gz", ".nii")), cube(2))


ATTACKS = {
    "truncated": truncate,
    "shifted": shift,
    "nan": write_nan,
    "dropped": lambda path: path.unlink(),
    "emptied": write_empty,
    "image": write_image,
    "doubled": double,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Sixty cases; an honest model is a voxel better in 22 of them than the one that cheats."""
    folder = tmp_path_factory.mktemp("attacks")
    rows = ["case_id,age,menopause,breast_density"]
    for number in range(N):
        save(folder / "reference" / f"{name_of(number)}.nii.gz", cube(2))
        age = 30 if number in BEST else 45
        rows.append(f"{name_of(number)},{age},{('pre', 'post')[number % 2]},{'abcd'[number % 4]}")
        away = 0 if number in BEST else 1 if number % 3 else 2
        save(folder / "cheat" / f"{name_of(number)}.nii.gz", cube(2 + away))
        near = 0 if number in BEST else 1
        save(folder / "honest" / f"{name_of(number)}.nii.gz", cube(2 + near))
    (folder / "clinical.csv").write_text("\n".join(rows))
    return folder


def worst_cases(n=38):
    """The cases that the cheat is worst in."""
    return [k for k in range(N) if k not in BEST and not k % 3] + [
        k for k in range(N) if k not in BEST and k % 3
    ][: n - 18]


def attacked(world, name, numbers):
    folder = world / name
    folder.mkdir()
    for number in range(N):
        source = world / "cheat" / f"{name_of(number)}.nii.gz"
        (folder / source.name).write_bytes(source.read_bytes())
        if number in numbers:
            ATTACKS[name.split("-")[0]](folder / source.name)
    return folder


def compared(world, folders, out, *extras):
    words = ["score", "--reference", world / "reference", "--clinical", world / "clinical.csv"]
    for folder in folders:
        words += ["--prediction", world / folder]
    done = mamamia(*words, "--out", world / out, "--bootstrap", 0, *extras, has_figures=False)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads((world / out / "comparison.json").read_text())
    return done, {one["name"]: one for one in found["models"]}, found


@pytest.fixture(scope="module")
def clinical(world):
    names = []
    for attack in OF_MANY:
        names.append(f"{attack}-38")
        attacked(world, names[-1], worst_cases())
    for attack in OF_THE_BEST:
        names.append(f"{attack}-best")
        attacked(world, names[-1], (0,))
    return compared(world, ["honest", "cheat", *names], "clinical")


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_raises_a_number_or_a_rank(world, clinical, attack):
    _, models, found = clinical
    intact = models["cheat"]
    assert models["honest"]["rank"] == 1
    scores = {one["name"]: np.array(one["scores"]) for one in found["weight_sweep"]["models"]}
    names = [f"{attack}-38"] * (attack in OF_MANY) + [f"{attack}-best"] * (attack in OF_THE_BEST)
    for name in names:
        one = models[name]
        for number in ("performance", "fairness", "ranking_score"):
            assert one[number] <= intact[number] + 1e-12, (name, number)
        assert (scores[name] <= scores["cheat"] + 1e-12).all()
        assert one["rank"] > intact["rank"]
        assert one["n"] == N
        assert one["n_unusable"] == (38 if name.endswith("38") else 1)
        summary = json.loads((world / "clinical" / name / "summary.json").read_text())
        reason = {"truncated": "unreadable", "shifted": "other_grid", "nan": "not_finite",
                  "dropped": "missing", "emptied": "empty", "image": "too_many_labels",
                  "doubled": "unreadable"}[attack]  # fmt: skip
        assert summary["policy"]["n_unusable_by_reason"][reason] == one["n_unusable"]
        # the numbers of the scored cases alone are told, and would have won
        measured = summary["task1"]["as_measured"]
        if name.endswith("38") and attack not in ("dropped", "emptied"):
            assert measured["performance"] > models["honest"]["performance"]


def test_n_stands_beside_every_rank(world, clinical):
    done, _, _ = clinical
    assert "   1  honest (n 60): ranking score" in done.stdout
    assert "truncated-38 (n 60, 38 unusable): ranking score" in done.stdout
    assert (
        "38 cases without a usable prediction (38 unreadable): scored with the values"
        in done.stdout
    )
    page = (world / "clinical" / "report.html").read_text()
    assert "60, 38 unusable" in page
    own = (world / "clinical" / "truncated-38" / "report.html").read_text()
    assert "For the 22 scored cases alone" in own


def test_the_reason_says_what_parts_two_grids(world, clinical):
    rows = (world / "clinical" / "shifted-best" / "case_scores.csv").read_text()
    assert "differences: origin 5.00 mm apart" in rows


def test_under_official_code_cases_left_out_reject_the_submission(world, clinical):
    folders = ["honest", "cheat", "dropped-38", "emptied-best"]
    done, models, _ = compared(world, folders, "official", "--profile", "official-code")
    rejected = models["dropped-38"]
    assert rejected["rank"] is rejected["ranking_score"] is rejected["performance"] is None
    assert "rejected by the rule of the profile official-code: 38 cases" in rejected["reason"]
    assert "rejected by the rule" in done.stdout
    assert models["emptied-best"]["ranking_score"] <= models["cheat"]["ranking_score"]
    page = (world / "official" / "report.html").read_text()
    assert "fairness and ranking of Task 1 are NaN" in page


def test_left_out_cases_are_said_first_and_never_ranked(world, clinical):
    words = ["score", "--reference", world / "reference", "--bootstrap", 0]
    one = ("--prediction", world / "truncated-38", "--out", world / "left", "--unusable")
    done = mamamia(*words, *one, "leave-out", has_figures=False)
    assert done.returncode == 3
    # a case that can't be read is told by its path, which may hold any number
    told = [line for line in done.stdout.splitlines() if str(world) not in line]
    left_out = next(line for line in told if "60" in line)
    assert left_out == "NOT FOR RANKING: 38 of 60 cases are left out"
    several = ("--prediction", world / "cheat", "--prediction", world / "honest")
    refused = mamamia(*words, *several, "--out", world / "no", "--unusable", "leave-out")
    assert refused.returncode != 0
    assert "expected a rule that allows ranking, but got leave-out" in " ".join(
        refused.stderr.split()
    )


def test_a_frozen_list_says_who_counts(world, clinical):
    """A team adds files, and drops one of the listed cases."""
    listed = [name_of(number) for number in range(20)]
    n_hit = sum(number < 20 for number in worst_cases())
    (world / "cases.txt").write_text("# the test set\n" + "\n".join(listed))
    _, models, _ = compared(
        world, ["cheat", "dropped-38"], "listed", "--case-list", world / "cases.txt"
    )
    assert (models["cheat"]["n"], models["cheat"]["n_unusable"]) == (20, 0)
    assert (models["dropped-38"]["n"], models["dropped-38"]["n_unusable"]) == (20, n_hit)
    summary = json.loads((world / "listed" / "cheat" / "summary.json").read_text())
    assert summary["outside"] == [name_of(number) for number in range(20, N)]


def test_a_list_whose_references_changed_stops_before_anything_is_written(world, clinical):
    lines = ["case_id,sha256", f"{name_of(0)},{'0' * 64}"]
    (world / "hashes.csv").write_text("\n".join(lines))
    words = ["score", "--reference", world / "reference", "--prediction", world / "cheat"]
    words += ["--bootstrap", 0, "--out", world / "changed", "--case-list"]
    done = mamamia(*words, world / "hashes.csv", has_figures=False)
    assert done.returncode == 1
    assert (
        f"{name_of(0)}.nii.gz to have the SHA-256 recorded in hashes.csv, but it differs"
        in " ".join(done.stderr.split())
    )
    (world / "more.txt").write_text(f"{name_of(0)}\nnobody\n")
    done = mamamia(*words, world / "more.txt", has_figures=False)
    assert done.returncode == 1
    assert "1 of 2 cases have none (nobody)" in " ".join(done.stderr.split())
    assert not (world / "changed").exists()


def test_the_same_grid_in_another_axis_order_is_scored_as_it_is(world, tmp_path):
    # far along the first axis, where the turned array ends before
    array = cube(8)
    turned = np.ascontiguousarray(array.transpose(2, 0, 1)[::-1])
    affine = np.zeros((4, 4))
    affine[:3, :3] = AFFINE[:3, :3][:, [2, 0, 1]] * [-1, 1, 1]
    affine[:, 3] = [0, 0, SHAPE[2] - 1, 1]
    reference, prediction = tmp_path / "reference", tmp_path / "turned"
    save(reference / "a.nii.gz", cube(7))
    save(prediction / "a.nii.gz", turned, affine)
    words = ["score", "--reference", reference, "--prediction", prediction, "--bootstrap", 0]
    done = mamamia(*words, "--out", tmp_path / "out", has_figures=False)
    assert done.returncode == 0, done.stdout
    row = (tmp_path / "out" / "case_scores.csv").read_text().splitlines()[1]
    assert row.startswith("a,ok,0.75,")
    assert "so they were reordered without resampling" in row
    assert "no picture" not in done.stderr
    assert (
        "a: outlines of reference and prediction" in (tmp_path / "out" / "report.html").read_text()
    )


def test_a_table_says_how_its_numbers_were_made_or_they_are_as_given(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("case_id,dsc\nA,0.5\nB,0.7\n")
    words = ["score-table", table, "--bootstrap", 0]
    done = mamamia(*words, "--out", tmp_path / "given", has_figures=False)
    assert done.returncode == 0, done.stderr
    assert "values: as given" in done.stdout
    assert "mean DSC                           0.6000" in done.stdout
    page = (tmp_path / "given" / "report.html").read_text()
    assert "Values: as given" in page
    assert "under profile clinical" not in page
    assert "every number of this page" not in page
    table.write_text("case_id,dsc\nmetric_definition,Dice of MONAI 1.6\nA,0.5\nB,0.7\n")
    done = mamamia(*words, "--out", tmp_path / "row", has_figures=False)
    assert "values: Dice of MONAI 1.6" in done.stdout
    told = ("--metric-definition", "HD95 of all surfaces")
    done = mamamia(*words, *told, "--out", tmp_path / "told", has_figures=False)
    assert "values: HD95 of all surfaces" in done.stdout


def test_a_report_on_responses_is_not_headed_segmentations(tmp_path):
    (tmp_path / "c.csv").write_text("case_id,age,pcr\nA,30,1\nB,30,0\nC,60,1\nD,60,0\n")
    (tmp_path / "p.csv").write_text("case_id,pcr,score\nA,1,0.9\nB,0,0.2\nC,0,0.4\nD,0,0.1\n")
    words = ["score-pcr", tmp_path / "p.csv", "--clinical", tmp_path / "c.csv", "--bootstrap", 0]
    done = mamamia(*words, "--out", tmp_path / "out", has_figures=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>Scores of predicted responses (pCR)</h1>" in page


def test_leaving_hard_cases_out_of_the_responses_wins_no_rank(tmp_path):
    (tmp_path / "c.csv").write_text("case_id,age,pcr\nA,30,1\nB,30,0\nC,60,1\nD,60,0\n")
    (tmp_path / "all.csv").write_text("case_id,pcr,score\nA,1,0.9\nB,0,0.2\nC,0,0.4\nD,0,0.1\n")
    (tmp_path / "easy.csv").write_text("case_id,pcr,score\nA,1,0.9\nB,0,0.2\n")
    tables = (tmp_path / "all.csv", tmp_path / "easy.csv")
    words = ["score-pcr", *tables, "--clinical", tmp_path / "c.csv", "--bootstrap", 0]
    done = mamamia(*words, "--out", tmp_path / "out", has_figures=False)
    assert done.returncode == 0, done.stderr
    why = "No model is ranked, because the models predict different cases"
    assert "2 of the 4 cases with a known pCR in the clinical table have no prediction" in (
        done.stdout
    )
    assert f"{why}: easy lacks 2 of 4 (C, D)." in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert why in page
    assert " leads: " not in page
    assert not list((tmp_path / "out" / "figures").glob("weight_sweep*"))
    # Nothing of the kind is said of two tables that are whole.
    tables = (tmp_path / "all.csv", f"again={tmp_path / 'all.csv'}")
    words[1:3] = tables
    done = mamamia(*words, "--out", tmp_path / "whole", has_figures=False)
    assert "No model is ranked" not in done.stdout
