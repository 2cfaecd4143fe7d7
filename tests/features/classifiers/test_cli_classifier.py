"""`mamamia score-classifier` as its user runs it, on good tables and on bad ones."""

import json

import pytest
from tests.cli.warm_program import mamamia

HEAD = ("id", "y", "m", "k", "r", "w", "site")
ROWS = (
    ("a", 1, 0.9, 0.1, 1, "A", "x"),
    ("b", 1, 0.8, 0.2, 1, "A", "x"),
    ("c", 1, 0.8, 0.3, 1, "B", "y"),
    ("d", 1, 0.3, 0.4, 0, "B", "y"),
    ("e", 0, 0.85, 0.8, 0, "C", "x"),
    ("f", 0, 0.8, 0.85, 0, "C", "x"),
    ("g", 0, 0.4, 0.3, 1, "D", "y"),
    ("h", 0, 0.3, 0.8, 0, "D", ""),
    ("i", 0, 0.2, 0.8, 0, "E", "y"),
    ("j", 0, 0.1, 0.9, 0, "E", "y"),
)


def table(path, rows=ROWS, head=HEAD, mark=",", encoding="utf-8"):
    lines = [mark.join(map(str, row)) for row in (head, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding)
    return path


def score(folder, path, *more, models=("m", "k")):
    words = [word for model in models for word in ("--score", model)]
    done = mamamia(
        "score-classifier", path, "--id", "id", "--label", "y", *words, "--out", folder / "out",
        "--bootstrap", 200, *more, has_figures=False,
    )  # fmt: skip
    found = folder / "out" / "classifier.json"
    return done, json.loads(found.read_text()) if found.exists() else None


def changed(place, **cells):
    rows = [dict(zip(HEAD, row, strict=True)) for row in ROWS]
    rows[place] |= cells
    return [tuple(row.values()) for row in rows]


def test_the_numbers_are_those_of_the_facts_in_the_shape_of_the_issue(tmp_path):
    more = ("--reader", "r", "--cluster", "w", "--subgroup", "site", "--operating-point", "0.87")
    done, found = score(tmp_path, table(tmp_path / "t.csv"), *more, "--operating-point", "0.6")
    assert done.returncode == 0, done.stderr
    m = found["models"]["m"]
    assert m["auc"] == pytest.approx(0.7291666667, abs=1e-9)
    assert m["auc_variance_delong"] == pytest.approx(0.0293402778, abs=1e-9)
    assert m["partial_auc"] == {"raw": pytest.approx(0.0708), "scaled": pytest.approx(0.3933333333)}
    assert [set(point) for point in m["specificity_at"]] == 3 * [
        {"sensitivity", "threshold", "interpolated"}
    ]
    assert [point["sensitivity"] for point in m["specificity_at"]] == [0.87, 0.6, 0.75]
    assert m["specificity_at"][0]["interpolated"] == pytest.approx(0.42)
    assert found["reader"] == {"sensitivity": 0.75, "specificity": pytest.approx(5 / 6)}
    assert set(found["bayes_factors"]) == {"m over k", "k over m"}
    assert set(found["bayes_factors"]["m over k"]) == {"k", "draws"}
    assert found["resamples"]["n_drawn_each"] == 5
    assert {group["value"] for group in found["subgroups"]} == {"x", "y", "missing"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "At the reader&#39;s sensitivity" in page
    assert "m: AUC 0.729" in done.stdout


def test_resamples_of_a_file_can_be_repeated_by_anybody(tmp_path):
    draws = tmp_path / "draws.csv"
    draws.write_text("0,1,4,5\n2,3,8,9\n0,0,4,4\n4,5,6,7\n")
    _, found = score(tmp_path, table(tmp_path / "t.csv"), "--draws", draws)
    # AUC of m: 0.625, 0.5, 1, none with one class; of k: 0, 0, 0
    assert found["bayes_factors"]["m over k"] == {"k": None, "draws": 3}
    assert found["bayes_factors"]["k over m"] == {"k": 0.0, "draws": 3}
    assert found["resamples"]["n_one_class"] == 1


@pytest.mark.parametrize("line", ["0,10", "0,-1", "0.5,1"])
def test_a_resample_out_of_range_is_refused_with_its_line(tmp_path, line):
    (tmp_path / "draws.csv").write_text(f"0,1,4\n{line}\n")
    done, found = score(tmp_path, table(tmp_path / "t.csv"), "--draws", tmp_path / "draws.csv")
    assert done.returncode == 1
    assert "line 2" in done.stderr
    assert "from 0 to 9" in done.stderr
    assert found is None


@pytest.mark.parametrize("cell", ["", "inf", "often"])
def test_a_score_that_is_no_finite_number_counts_as_the_least_favourable(tmp_path, cell):
    done, found = score(tmp_path, table(tmp_path / "t.csv", changed(0, m=cell)))
    assert done.returncode == 3
    assert "counts as the least favourable score" in done.stderr
    assert found["unusable"] == {"m": 1, "k": 0}
    worst, again = score(tmp_path, table(tmp_path / "t.csv", changed(0, m=-9)), "--overwrite")
    assert worst.returncode == 0
    assert again["models"]["m"] == found["models"]["m"]
    assert again["bayes_factors"] == found["bayes_factors"]


def test_no_gain_from_leaving_out_what_is_hard_unless_it_is_asked_for(tmp_path):
    path = table(tmp_path / "t.csv", changed(3, m=""))
    _, kept = score(tmp_path, path)
    _, out = score(tmp_path, path, "--missing", "leave-out", "--overwrite")
    assert kept["models"]["m"]["auc"] < 0.7291666667 < out["models"]["m"]["auc"]
    assert out["n"] == 9


@pytest.mark.parametrize("cell", ["", "2"])
def test_a_row_without_a_label_is_out_and_said(tmp_path, cell):
    done, found = score(tmp_path, table(tmp_path / "t.csv", changed(4, y=cell)))
    assert done.returncode == 3
    assert "failed: e: row 6 of t.csv: y" in done.stderr
    assert (found["n"], found["failures"][0]["case_id"]) == (9, "e")


def test_a_row_that_is_out_is_not_said_to_count(tmp_path):
    done, _ = score(tmp_path, table(tmp_path / "t.csv", changed(4, y="2", m="x")))
    assert "least favourable" not in done.stdout + done.stderr


def test_a_name_that_comes_twice_counts_once(tmp_path):
    done, found = score(tmp_path, table(tmp_path / "t.csv", [*ROWS, ROWS[0]]))
    assert done.returncode == 3
    assert "id a is already in row 2" in done.stderr
    assert found["n"] == 10


def test_both_breasts_become_an_exam_with_the_larger_score(tmp_path):
    done, found = score(tmp_path, table(tmp_path / "t.csv"), "--exam", "w")
    assert done.returncode == 0, done.stderr
    assert (found["unit"], found["n"], found["n_positive"]) == ("exam", 5, 2)
    # exams: A .9, B .8 against C .85, D .4, E .2
    assert found["models"]["m"]["auc"] == pytest.approx(5 / 6)


def test_a_table_of_another_country_reads_the_same(tmp_path):
    plain, found = score(tmp_path, table(tmp_path / "t.csv"))
    rows = [tuple(str(cell).replace(".", ",") for cell in row) for row in ROWS]
    path = table(tmp_path / "u.csv", rows, mark=";", encoding="utf-8-sig")
    done, again = score(tmp_path, path, "--overwrite")
    assert (plain.returncode, done.returncode) == (0, 0), done.stderr
    assert again["models"] == found["models"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--score", "m"), "but m is named twice"),
        (("--score", "y"), "but y is named twice"),
        (("--reader", "m"), "but m is named twice"),
        (("--operating-point", "1.5"), "of 0.001 to 1"),
        (("--operating-point", "nan"), "of 0.001 to 1"),
        (("--partial-above", "1"), "of 0 to 0.999"),
    ],
)
def test_words_that_mean_nothing_are_refused(tmp_path, words, text):
    done, found = score(tmp_path, table(tmp_path / "t.csv"), *words)
    assert (done.returncode, found) == (2, None)
    assert text in " ".join(done.stderr.replace("│", " ").split())


def test_a_column_that_is_not_there_or_twice_is_refused_with_those_that_are(tmp_path):
    done, _ = score(tmp_path, table(tmp_path / "t.csv"), models=("m", "nobody"))
    assert done.returncode == 1
    assert "nobody is missing" in done.stderr
    assert "id, y, m, k, r, w, site" in done.stderr
    twice = table(tmp_path / "t.csv", head=("id", "y", "m", "m", "r", "w", "site"))
    done, _ = score(tmp_path, twice, models=("m",))
    assert "expected only one column m" in done.stderr
    assert "found 2 (columns 3, 4)" in done.stderr


@pytest.mark.parametrize("text", ["", "id,y,m,k,r,w,site\n"])
def test_a_table_without_cases_is_an_error_and_no_report(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    done, found = score(tmp_path, tmp_path / "t.csv")
    assert (done.returncode, found) == (1, None)
    assert "Traceback" not in done.stderr


def test_one_class_and_one_case_give_no_number_and_say_why(tmp_path):
    _, found = score(tmp_path, table(tmp_path / "t.csv", ROWS[:4]))
    assert found["models"]["m"]["auc"] is None
    assert "every case is positive" in found["notes"][0]
    _, found = score(tmp_path, table(tmp_path / "t.csv", ROWS[:1]), "--overwrite")
    assert (found["n"], found["models"]["m"]["specificity_at"][0]["threshold"]) == (1, None)


@pytest.fixture
def responses(tmp_path):
    """Two models on six cases; `b` lacks one, the reader is a column of the clinical table."""
    (tmp_path / "c.csv").write_text(
        "case_id,age,pcr,read\nA,30,1,1\nB,30,0,0\nC,60,1,1\nD,60,0,1\nE,50,0,0\nF,50,1,0\n"
    )
    rows = ("A,1,0.9", "B,0,0.2", "C,0,0.4", "D,0,0.1", "E,0,0.3", "F,1,0.8")
    (tmp_path / "a.csv").write_text("\n".join(("case_id,pcr,score", *rows)))
    (tmp_path / "b.csv").write_text("\n".join(("case_id,pcr,score", *rows[:4], "e,1,0.95")))
    return tmp_path


def pcr(folder, *tables, more=()):
    words = ["--clinical", folder / "c.csv", "--out", folder / "out", "--bootstrap", 200, *more]
    done = mamamia("score-pcr", *tables, *words, has_figures=False)
    found = folder / "out" / "classifier.json"
    return done, json.loads(found.read_text()) if found.exists() else None


def test_models_of_response_are_compared_with_each_other_and_a_reader(responses):
    tables = (f"one={responses / 'a.csv'}", f"two={responses / 'b.csv'}")
    done, found = pcr(responses, *tables, more=("--reader", "read", "--operating-point", "0.6"))
    assert done.returncode == 0, done.stderr
    assert found["models"]["one"]["auc"] == 1
    # F is missing in two: positive, so below all; E (written e) is .95 there: 4 of 9 pairs
    assert found["models"]["two"]["auc"] == pytest.approx(4 / 9)
    assert found["unusable"] == {"one": 0, "two": 1}
    assert found["reader"]["sensitivity"] == pytest.approx(2 / 3)
    sensitivities = [point["sensitivity"] for point in found["models"]["one"]["specificity_at"]]
    assert sensitivities == [0.6, pytest.approx(2 / 3)]
    assert json.loads((responses / "out" / "one" / "summary.json").read_text())["task2"]["auc"] == 1
    assert (responses / "out" / "report.html").exists()
    assert (responses / "out" / "classifiers.html").exists()
    assert "one over two" in done.stdout


def test_one_table_without_more_is_scored_as_before(responses):
    done, found = pcr(responses, responses / "a.csv")
    assert (done.returncode, found) == (0, None)
    assert (responses / "out" / "summary.json").exists()


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        (("--reader", "nobody"), 1, "to have a column nobody"),
        (("--reader", "age"), 1, "to have a column age"),
        (("--operating-point", "2"), 2, "of 0.001 to 1"),
    ],
)
def test_a_reader_or_point_that_means_nothing_is_refused(responses, more, code, text):
    done, _ = pcr(responses, responses / "a.csv", more=more)
    assert done.returncode == code
    assert text in " ".join(done.stderr.replace("│", " ").split())
    assert not (responses / "out").exists()


def test_two_models_of_one_name_and_one_without_scores_are_refused(responses):
    done, _ = pcr(responses, responses / "a.csv", f"a={responses / 'b.csv'}")
    assert done.returncode == 1
    assert "different names" in done.stderr
    (responses / "b.csv").write_text("case_id,pcr\nA,1\nB,0\n")
    done, _ = pcr(responses, responses / "a.csv", responses / "b.csv")
    assert done.returncode == 1
    assert "b.csv to have a column score" in done.stderr
