"""Rows of a table that sum up others, in any language, are no case of any command."""

import statistics

import pytest
from tests.cli.warm_program import mamamia

CASES = [f"DUKE_{at:03d}" for at in range(1, 13)]
DSC = [0.3557, 0.4539, 0.8208, 0.7021, 0.6605, 0.9103, 0.5533, 0.7741, 0.6118, 0.8802, 0.4117, 0.73]
HD = [0.221, 0.2975, 0.3715, 0.11, 0.2, 0.05, 0.31, 0.17, 0.25, 0.07, 0.41, 0.19]
MEAN = [statistics.fmean(DSC), statistics.fmean(HD)]
STDEV = [statistics.stdev(DSC), statistics.stdev(HD)]
LOWER = [statistics.quantiles(values, n=4, method="inclusive")[0] for values in (DSC, HD)]


def write(path, *rows, ids=CASES, head="case_id,dsc,norm_hd", columns=(DSC, HD)):
    lines = [head, *(",".join(map(str, row)) for row in zip(ids, *columns, strict=True))]
    path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def score(folder, table):
    done = mamamia("score-table", table, "--bootstrap", 0, "--out", folder / "out", "--overwrite")
    said = " ".join((done.stdout + done.stderr).split())
    n_cases = sum(line.startswith("DUKE") or ",ok," in line for line in
                  (folder / "out" / "case_scores.csv").read_text().splitlines())  # fmt: skip
    return said, n_cases


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        ("Keskiarvo", MEAN),  # Finnish, in no list of words
        ("Átlag", [f"{value:.4f}" for value in MEAN]),  # Hungarian, rounded as papers round
        ("Snitt", [f"{value:.2f}" for value in MEAN]),
        ("Q1", LOWER),
        ("1st Qu.", LOWER),
        ("DUKE spread", STDEV),
        ("N=12", [12, 12]),
        ("95%-KI", LOWER),
    ],
)
def test_a_row_that_holds_a_statistic_of_the_others_is_left_out_by_name(tmp_path, row, numbers):
    said, n_cases = score(tmp_path, write(tmp_path / "t.csv", (row, *numbers)))
    assert n_cases == len(CASES)
    assert f"row 14 ({row}) is left out as a summary" in said


def test_a_row_of_another_form_with_other_numbers_counts_and_is_named(tmp_path):
    table = write(tmp_path / "t.csv", ("Valiarvo", 0.123, 0.456))
    said, n_cases = score(tmp_path, table)
    assert n_cases == len(CASES) + 1
    assert "row 14 (Valiarvo) is counted although the form of the id" in said


@pytest.mark.parametrize(
    "ids",
    [
        [*CASES[:10], "ISPY1_1001", "NACT_12"],
        [*CASES[:11], "DUKE_1"],
        [*CASES[:11], "TCGA-AR-A1AX"],
        [str(at) for at in range(1, 13)],
        ["alice", "bob", "carol", "dan", "erin", "frank", "gil", "hu", "ida", "joe", "kim", "lou"],
        [f"Breast_MRI_{at:03d}" for at in range(1, 13)],
        [*(f"P{at}" for at in range(1, 12)), "P12b"],
        [f"{at:02d}-{'abc'[at % 3]}" for at in range(12)],
    ],
)
def test_usual_ids_raise_no_alarm(tmp_path, ids):
    said, n_cases = score(tmp_path, write(tmp_path / "t.csv", ids=ids))
    assert n_cases == len(CASES)
    assert "another form" not in said
    assert "summary:" not in said


def test_every_command_that_reads_a_row_per_case_leaves_it_out(tmp_path):
    label = [0, 1] * 6
    out = tmp_path / "out"
    row = ("Keskiarvo", *MEAN, 0.5)
    ratings = write(tmp_path / "r.csv", row, head="id,m,k,y", columns=(DSC, HD, label))
    models = ("--id", "id", "--label", "y", "--score", "m", "--score", "k")
    cases = write(tmp_path / "c.csv", ("Keskiarvo", 0.5), head="case_id,grade", columns=(label,))
    box = "case_id,x1,x2,y1,y2,z1,z2"
    lesions = tmp_path / "l.csv"
    lesions.write_text(f"{box}\nDUKE_001,0,10,0,10,0,10\n")
    boxes = tmp_path / "b.csv"
    boxes.write_text(f"{box},score\nDUKE_001,0,10,0,10,0,10,0.9\n")
    wide = write(tmp_path / "w.csv", ("Keskiarvo", *MEAN), head="case,alpha,beta")
    commands = (
        ("rank", "--table", wide, "--resamples", 0),
        ("score-classifier", ratings, *models, "--bootstrap", 0),
        ("stack", ratings, *models, "--folds", 2, "--out-of-fold"),
        ("split", ratings, "--patient", "id", "--part", "a=1", "--part", "b=1"),
        ("score-detection", "--case-list", cases, "--lesions", lesions, "--predictions", boxes),
    )
    for words in commands:
        done = mamamia(*words, "--out", out, "--overwrite", has_figures=False)
        said = " ".join((done.stdout + done.stderr).replace("│", " ").split())
        assert done.returncode == 0, (words, said)
        assert "row 14 (Keskiarvo) is left out as a summary" in said, (words, said)
