"""`mamamia stack`, `audit` and `split` as their users run them."""

import csv
import json

import numpy as np
import pytest
from tests.cli.warm_program import mamamia


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(5)
    label = (rng.random(120) < 0.4).astype(int)
    lines = ["id,woman,y,m,k,r,site,spacing,hash"]
    for place, y in enumerate(label):
        a, b = rng.normal(size=2) + y
        recall = int(rng.random() < (0.8 if y else 0.2))
        near = rng.normal() + 2 * y
        cells = (f"e{place}", f"w{place // 2}", y, a, b, recall, place % 3, near, f"h{place % 119}")
        lines.append(",".join(map(str, cells)))
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


STACK = ("--id", "id", "--label", "y", "--score", "m", "--score", "k", "--folds", 4)


def test_a_stack_asks_whether_its_scores_are_out_of_fold(table, tmp_path):
    done = mamamia("stack", table, *STACK, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "no model was trained or selected" in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_a_stack_is_compared_with_its_models_and_the_reader(table, tmp_path):
    out = tmp_path / "out"
    words = ("--out-of-fold", "--reader", "r", "--cluster", "woman", "--bootstrap", 100)
    done = mamamia("stack", table, *STACK, *words, "--out", out, has_figures=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "stack.json").read_text())
    assert set(found["models"]) == {"stack", "stack with reader"}
    assert set(found["models"]["stack with reader"]["coefficients"]) == {"m", "k", "r"}
    scores = json.loads((out / "classifier.json").read_text())
    aucs = {name: model["auc"] for name, model in scores["models"].items()}
    assert aucs["stack with reader"] > aucs["stack"] > max(aucs["m"], aucs["k"]) - 0.02
    assert set(scores["against_reader"]) == set(aucs)
    with (out / "stack.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 120
    folds = {row["case_id"]: row["fold"] for row in rows}
    assert all(folds[f"e{2 * k}"] == folds[f"e{2 * k + 1}"] for k in range(60))


def test_rows_without_a_score_are_out_of_a_stack_and_counted(table, tmp_path):
    text = table.read_text().splitlines()
    text[5] = ",".join("" if k == 3 else cell for k, cell in enumerate(text[5].split(",")))
    (tmp_path / "t.csv").write_text("\n".join(text))
    words = ("--out-of-fold", "--bootstrap", 0, "--out", tmp_path / "out")
    done = mamamia("stack", tmp_path / "t.csv", *STACK, *words, has_figures=False)
    assert done.returncode == 3
    assert "e4: row 6" in done.stderr
    assert json.loads((tmp_path / "out" / "stack.json").read_text())["n_left_out"] == 1


def test_too_few_cases_for_the_folds_are_said(table, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(table.read_text().splitlines()[:6]))
    done = mamamia("stack", tmp_path / "t.csv", *STACK, "--out-of-fold", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "for 4 folds" in done.stderr


def test_an_audit_names_the_column_that_tells_the_label(table, tmp_path):
    out = tmp_path / "out"
    words = ("--label", "y", "--split", "site", "--patient", "woman", "--hash", "hash")
    left = ("--leave-out", "m", "--leave-out", "k", "--leave-out", "r")
    done = mamamia("audit", table, *words, *left, "--out", out, has_figures=False)
    assert done.returncode == 0, done.stderr
    assert "y: spacing: AUC alone" in done.stdout
    assert "equal pixels: 1" in done.stdout
    found = json.loads((out / "audit.json").read_text())
    assert found["joint"][0]["target"] == "y"
    assert found["joint"][0]["p_value"] == 0.001
    assert {one["kind"] for one in found["duplicates"]} == {"patient in several parts",
                                                            "equal pixels"}  # fmt: skip
    assert (out / "leaks.csv").exists()


def test_a_label_that_is_none_is_out_of_an_audit_and_said(table, tmp_path):
    text = table.read_text().splitlines()
    text[3] = ",".join("2" if k == 2 else cell for k, cell in enumerate(text[3].split(",")))
    (tmp_path / "t.csv").write_text("\n".join(text))
    words = ("--label", "y", "--out", tmp_path / "out")
    done = mamamia("audit", tmp_path / "t.csv", *words, has_figures=False)
    assert done.returncode == 3
    assert "row 4 of t.csv: y must be 0 or 1, but it is '2', so the row" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ((), 2, "--label or --split"),
        (("--label", "nobody"), 1, "to have a column nobody"),
        (("--label", "m"), 1, "to contain labels 0 and 1"),
        (("--split", "id"), 1, "2 to 10 parts"),
    ],
)
def test_an_audit_of_nothing_is_refused(table, tmp_path, words, code, text):
    done = mamamia("audit", table, *words, "--out", tmp_path / "out")
    assert done.returncode == code
    assert text in " ".join(done.stderr.replace("│", " ").split())


def test_a_split_keeps_a_woman_in_one_part_of_the_right_size(table, tmp_path):
    out = tmp_path / "out"
    parts = ("--part", "train=5", "--part", "val=2", "--part", "test=3")
    done = mamamia("split", table, "--patient", "woman", "--stratum", "y", "--stratum", "spacing",
                   *parts, "--out", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "split.json").read_text())
    assert [part["n"] for part in found["parts"]] == [30, 12, 18]
    assert found["method"] == "stratified-dealing"
    with (out / "split.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len({row["woman"] for row in rows}) == len(rows) == 60


@pytest.mark.parametrize(
    ("parts", "n_folds"), [(("train=7", "val=2", "test=1"), 1), (("a=1", "b=1", "c=1"), 3)]
)
def test_folds_of_nnunet_keep_a_woman_together(tmp_path, parts, n_folds):
    rows = [(f"W{number}", f"W{number}_{side}") for number in range(12) for side in "LR"]
    table = tmp_path / "cases.csv"
    table.write_text("\n".join(["woman,case", *map(",".join, rows)]))
    options = [word for part in parts for word in ("--part", part)]
    out = tmp_path / "out"
    done = mamamia("split", table, "--patient", "woman", "--case", "case", *options, "--out", out)
    assert done.returncode == 0, done.stderr
    folds = json.loads((out / "splits_final.json").read_text())
    assert len(folds) == n_folds
    for fold in folds:
        women = [{case[:-2] for case in fold[name]} for name in ("train", "val")]
        assert all(women)
        assert not women[0] & women[1]
    if n_folds == 3:
        assert sorted(case for fold in folds for case in fold["val"]) == sorted(c for _, c in rows)


@pytest.mark.parametrize("parts", [("a=1",), ("a=1", "a=2"), ("a=1", "b=0"), ("a=1", "b")])
def test_parts_that_mean_nothing_are_refused(table, tmp_path, parts):
    words = [word for part in parts for word in ("--part", part)]
    done = mamamia("split", table, "--patient", "woman", *words, "--out", tmp_path / "out")
    assert done.returncode in (1, 2)
    assert "part" in done.stderr
    assert not (tmp_path / "out").exists()


ALIKE = [("P001", "p001"), ("P02", "P2"), ("Q 7", "Q7"), ("R_10", "R_010")]
UNLIKE = [("P010", "P100"), ("A1", "A10"), ("A-1", "B-1"), ("0", "00x")]


@pytest.mark.parametrize("command", ["split", "audit", "score-classifier"])
@pytest.mark.parametrize("pair", [*ALIKE, *UNLIKE])
def test_patients_that_may_be_one_are_named(tmp_path, command, pair):
    """They would be in two parts: leakage."""
    women = [*pair, *(f"W{at + 30}" for at in range(22))]
    rows = [f"e{at},{name},{at % 2},{at % 7},{'ab'[at % 2]}" for at, name in enumerate(women)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(("exam,woman,y,m,part", *rows)))
    words = {
        "split": ("--patient", "woman", "--part", "a=1", "--part", "b=1"),
        "audit": ("--label", "y", "--split", "part", "--patient", "woman"),
        "score-classifier": ("--id", "exam", "--label", "y", "--score", "m", "--cluster", "woman",
                             "--bootstrap", 0),
    }[command]  # fmt: skip
    done = mamamia(command, path, *words, "--out", tmp_path / "out", has_figures=False)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, said
    text = f"woman {pair[0]!r} and {pair[1]!r} are treated as different"
    assert (text in said) is (pair in ALIKE), said
