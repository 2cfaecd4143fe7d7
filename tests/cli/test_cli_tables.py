"""Tables of others through the real commands: the numbers are computed here, from the cells."""

import json
from itertools import product
from statistics import fmean

import pandas as pd
import pytest
from tests.cli.warm_program import mamamia

import napari_mamamia as mm

IDS = [f"CASE_{n}" for n in range(1, 9)]
DICE = [0.81, 0.64, 0.92, 0.4, 0.77, 0.58, 0.88, 0.7]
LABEL = [1, 0, 1, 0, 1, 0, 0, 1]
SCORE = [0.9, 0.2, 0.45, 0.3, 0.8, 0.55, 0.1, 0.5]


def auc(labels, scores):
    """Pairs of a positive and a negative in the right order, ties as halves."""
    split = [[s for s, y in zip(scores, labels, strict=True) if y == kind] for kind in (1, 0)]
    pairs = [(a > b) + (a == b) / 2 for a, b in product(*split)]
    return sum(pairs) / len(pairs)


def comma(number):
    return str(number).replace(".", ",")


def percent(number):
    return f"{number * 100:.0f}%"


def lines(head, *columns):
    rows = [head, *zip(*columns, strict=True)]
    return "\n".join(";".join(map(str, row)) for row in rows) + "\n"


@pytest.fixture
def run(tmp_path):
    def command(name, text, *more, report="summary.json"):
        table = tmp_path / "t.csv"
        table.write_bytes(text if isinstance(text, bytes) else text.encode())
        arguments = [table if one is None else one for one in (None, *more)]
        if name in ("rank", "score-detection"):
            arguments = [table if one == "TABLE" else one for one in more]
        out = tmp_path / "out"
        done = mamamia(name, *arguments, "--out", out, "--overwrite", has_figures=False)
        path = out / report
        return done, json.loads(path.read_text()) if path.is_file() else None

    return command


SUMMARIES = "mean;0,71;0,1\nStd. Dev.;0,16;0,05\nMittelwert \u00b1 SD;0,71 \u00b1 0,16;\n"


def test_score_table_counts_cases_and_names_what_it_left_out(run):
    text = "sep=;\n# ours\n" + lines(
        ("case_id", "dsc", "norm_hd"), IDS, map(comma, DICE), ["0,1"] * 8
    )
    done, found = run("score-table", text + SUMMARIES, "--bootstrap", "0")
    assert done.returncode == 0
    assert (found["n_cases"], found["task1"]["mean_dsc"]) == (8, pytest.approx(fmean(DICE)))
    assert any("12 (mean), 13 (Std. Dev.)" in note for note in found["notes"])
    assert "note: t.csv: rows 12 (mean)" in " ".join(done.stdout.split())


def test_score_pcr_reads_a_probability_in_percent(run, tmp_path):
    clinical = tmp_path / "clinical.csv"
    words = ["non-pCR", "pCR"]
    clinical.write_text(
        "sep=;\n" + lines(("patient_id", "pcr"), IDS, [words[label] for label in LABEL])
    )
    text = "\ufeffsep=;\n" + lines(
        ("", "pcr", "Probability"), IDS, ["yes" if s >= 0.5 else "no" for s in SCORE],
        map(percent, SCORE),
    )  # fmt: skip
    columns = tmp_path / "columns.json"
    columns.write_text('{"age": null, "menopausal_status": null, "breast_density": null}')
    done, found = run(
        "score-pcr", text.encode("utf-16-le"), "--clinical", clinical, "--columns", columns,
        "--bootstrap", "0",
    )  # fmt: skip
    assert found["task2"]["auc"] == pytest.approx(auc(LABEL, SCORE)), done.stderr
    assert (done.returncode, found["failures"]) == (0, [])


CLASSIFIER = ("--id", "id", "--label", "y", "--score", "m", "--bootstrap", "0")


def test_score_classifier_reads_percent_signs_and_label_words(run):
    words = ["non responder", "Responder"]
    text = lines(("id", "y", "m"), IDS, [words[label] for label in LABEL], map(percent, SCORE))
    done, found = run(
        "score-classifier", text + "average;;46%\n", *CLASSIFIER, report="classifier.json"
    )
    assert (done.returncode, found["n"]) == (0, 8)
    assert found["models"]["m"]["auc"] == pytest.approx(auc(LABEL, SCORE))
    assert "row 10 (average) is left out as a summary" in found["notes"][0]


def test_where_no_score_is_a_number_there_is_no_auc(run):
    text = lines(("id", "y", "m"), IDS, LABEL, [f"p={score}" for score in SCORE])
    done, found = run("score-classifier", text, *CLASSIFIER, report="classifier.json")
    assert (done.returncode, found) == (1, None)
    assert "(row 2: m must be a number, but it is 'p=0.9')" in done.stderr
    assert "AUC" not in done.stdout


def test_rank_takes_the_same_writings(run, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("case_id\tdsc\n" + "".join(f"{name}\t0.5\n" for name in IDS))
    text = "sep=;\n" + lines(("case_id", "dsc"), IDS, map(percent, DICE)) + "total;568%\n"
    done, found = run("rank", text, "A=" + str(tmp_path / "t.csv"), f"B={other}",
                      report="rank_details.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert found["tables"][0]["n_cases"] == 8
    assert any("row 11 (total)" in note for note in found["notes"])
    bare = lines(("case_id", "dsc"), IDS, [100 * value for value in DICE])
    done, _ = run("rank", bare, "A=" + str(tmp_path / "t.csv"), f"B={other}")
    assert done.returncode == 1
    assert "if the values are percentages" in " ".join(done.stderr.split())


def test_score_detection_takes_the_same_writings(run, tmp_path):
    head = ("case_id", "x1", "x2", "y1", "y2", "z1", "z2")
    edges = [["0,5"] * 8, ["10,5"] * 8, *([["0"] * 8, ["10"] * 8] * 2)]
    (tmp_path / "cases.csv").write_text("sep=;\ncase_id\n" + "\n".join(IDS))
    (tmp_path / "lesions.csv").write_text("sep=;\n" + lines(head, IDS, *edges))
    text = "# boxes\n" + lines((*head, "Probability"), IDS, *edges, map(percent, SCORE))
    done, found = run(
        "score-detection", text + "mean;0,5;10,5;0;10;0;10;50%\n",
        "--case-list", tmp_path / "cases.csv", "--lesions", tmp_path / "lesions.csv",
        "--predictions", "TABLE", "--bootstrap", "0", report="detection.json",
    )  # fmt: skip
    assert (found["n_true_positives"], found["n_false_positives"]) == (8, 0), done.stderr
    assert (done.returncode, found["n_failures"]) == (0, 0)
    assert "row 11 (mean) is left out as a summary" in " ".join(done.stderr.split())


# ---- DataFrames


def message(*arguments, **named):
    with pytest.raises(mm.MamamiaError) as caught:
        mm.score_table(*arguments, bootstrap=0, progress=False, **named)
    return str(caught.value)


FRAME = pd.DataFrame({"case_id": IDS, "dsc": DICE, "norm_hd": 0.1})


def test_a_frame_that_is_refused_names_its_column_and_the_argument():
    text = message(FRAME.rename(columns={"dsc": "overlap"}))
    assert "the DataFrame table to have columns" in text
    assert "'case_id', 'overlap', 'norm_hd'" in text
    assert "table.rename(columns={'its column': 'dsc'})" in text
    text = message(FRAME.assign(dsc=FRAME.dsc * 100))
    assert text.startswith("expected all numbers in column dsc of the DataFrame table")
    clinical = pd.DataFrame({"patient_id": IDS, "Age (y)": 50.0, "Density": "b"})
    text = message(FRAME, clinical=clinical)
    assert "the DataFrame clinical" in text
    assert "columns={'age': 'Age (y)', 'menopausal_status': 'its column'" in text
    for refusal in (text, message(FRAME, clinical=clinical.rename(columns={"patient_id": "no"}))):
        assert ".csv" not in refusal
        assert "mamamia" not in refusal


def test_a_bad_row_of_a_frame_is_named_by_its_place():
    frame = FRAME.assign(dsc=["high", *DICE[1:]])
    found = mm.score_table(frame, bootstrap=0, progress=False)
    (failure,) = found.model.failures
    assert failure.reason == (
        "row table.iloc[0] of the DataFrame table: dsc must be a number, but it is 'high'"
    )


def test_ids_in_an_index_without_a_name_are_ids():
    frame = FRAME.set_index("case_id").rename_axis(None)
    found = mm.score_table(frame, bootstrap=0, progress=False)
    assert list(found.cases.index) == IDS
