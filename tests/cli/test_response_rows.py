"""Rows of predicted responses that are there twice, or not at all, through the real commands."""

import json

import pytest
from tests.cli.warm_program import mamamia

pytestmark = pytest.mark.usefixtures("quick_figures")

PCR = (1, 0, 1, 0, 1, 0, 0, 1)
PREDICTED = (1, 0, 0, 0, 1, 1, 0, 1)
IDS = [f"C_{number}" for number in range(8)]
ROWS = dict(zip(IDS, PREDICTED, strict=True))


@pytest.fixture
def folder(tmp_path):
    lines = ["patient_id,age,menopause,breast_density,pcr"]
    lines += [f"{name},{35 + 5 * k},pre,b,{PCR[k]}" for k, name in enumerate(IDS)]
    (tmp_path / "clinical.csv").write_text("\n".join(lines))
    return tmp_path


def score(folder, rows, profile, *extras):
    lines = ["patient_id,pcr,score", *(f"{name},{pcr},{0.2 + 0.6 * pcr}" for name, pcr in rows)]
    (folder / "table.csv").write_text("\n".join(lines))
    done = mamamia(
        "score-pcr", folder / "table.csv", "--clinical", folder / "clinical.csv", "--profile",
        profile, "--bootstrap", 0, "--out", folder / "out", "--overwrite", *extras,
        has_figures=False,
    )  # fmt: skip
    summary = folder / "out" / "summary.json"
    return done, json.loads(summary.read_text())["task2"] if summary.exists() else None


def balanced_accuracy(ids):
    """Return the mean of both recalls, counted by hand."""
    pairs = [(pcr, ROWS[name]) for name, pcr in zip(IDS, PCR, strict=True) if name in ids]
    recalls = [
        sum(p == pcr for pcr, p in pairs if pcr == kind) / sum(pcr == kind for pcr, _ in pairs)
        for kind in (0, 1)
    ]
    return sum(recalls) / 2


@pytest.mark.parametrize("profile", ["clinical", "paper", "official-code"])
def test_of_two_rows_for_one_case_neither_counts_in_either_order(folder, profile):
    once = list(ROWS.items())
    again = [("C_0", 0), ("c_2", 1), ("C_3", 0)]
    for rows in (once + again, again + once):
        done, task = score(folder, rows, profile)
        assert done.returncode == 3
        others = [name for name in IDS if name not in ("C_0", "C_2", "C_3")]
        assert task["balanced_accuracy"] == pytest.approx(balanced_accuracy(others))
        for row in ("C_0", "_2", "C_3"):
            assert any(row in line and "neither row counts" in line
                       for line in done.stderr.splitlines()), row  # fmt: skip
        assert "8 cases, 5 scored, 3 excluded" in done.stdout


def test_a_table_of_doubles_alone_scores_nothing_and_says_why(folder):
    done, task = score(folder, [("C_0", 1), ("C_0", 1)], "clinical")
    assert done.returncode == 3
    assert task["ranking_score"] is None
    assert "no case was scored, so there are no groups" in done.stdout
    assert "there is no clinical table" not in done.stdout


def test_official_code_names_each_case_without_a_row_and_ends_with_3(folder):
    some = [(name, ROWS[name]) for name in IDS if name not in ("C_2", "C_5")]
    done, task = score(folder, some, "official-code")
    assert done.returncode == 3
    for name in ("C_2", "C_5"):
        assert f"failed: {name}: the case has no row" in done.stderr
    assert "8 cases, 6 scored, 2 excluded" in done.stdout
    assert task["balanced_accuracy"] == pytest.approx(balanced_accuracy([n for n, _ in some]))

    done, _ = score(folder, some, "clinical")  # a table of a part of the cases is no fault there
    assert done.returncode == 0
    assert "2 of the 8 cases with a known pCR" in done.stdout

    (folder / "some.csv").write_text(
        "\n".join(line for line in (folder / "clinical.csv").read_text().splitlines()
                  if line[:3] not in ("C_2", "C_5"))
    )  # fmt: skip
    done, _ = score(folder, some, "official-code", "--clinical", folder / "some.csv")
    assert done.returncode == 0, done.stderr  # the way on that the message names
    done, _ = score(folder, list(ROWS.items()), "official-code")
    assert done.returncode == 0, done.stderr
