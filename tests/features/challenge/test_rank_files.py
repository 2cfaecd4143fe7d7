"""`mamamia rank` from files: what is read, refused and written."""

import csv
import json

import numpy as np
import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.core.errors import FormatError, MamamiaError, SaveError
from napari_mamamia.features.challenge.io.ranking_tables import read_draws, read_value_tables
from napari_mamamia.features.challenge.services.rank.inputs import (
    AlgorithmTable,
    RankInputs,
    algorithm_table,
)
from napari_mamamia.features.challenge.services.rank.rank import rank_files
from napari_mamamia.scoring.ranking.table import MissingRule, RankSettings, is_larger_better
from napari_mamamia.services.batch.output_folder import Existing

pytestmark = pytest.mark.usefixtures("quick_figures")

WIDE = "case,A,B,C\nc1,.9,.8,.8\nc2,.5,.7,\nc3,.6,.6,.2\nc4,.95,.7,.9\n"
METHODS = [one.value for one in RankMethod if one is not RankMethod.COMPOSITE]
FEW = RankSettings(n_resamples=20)


@pytest.fixture
def write(tmp_path):
    def written(text, name="t.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
        return path

    return written


def ranked(path, tmp_path, settings=FEW, **named):
    rank_files(RankInputs(table=path, **named), tmp_path / "out", settings)
    return json.loads((tmp_path / "out" / "rank.json").read_text())


def test_the_command_writes_the_shape_that_programs_read(write, tmp_path):
    table = write(WIDE)
    draws = write("c1,c1,c2,c3\nc4,c4,c4,c1\n", "draws.csv")
    words = ["--table", table, "--missing", "value:0", "--draws", draws]
    done = mamamia("rank", *words, "--out", tmp_path / "o", has_figures=False)
    assert done.returncode == 0, done.stderr
    got = json.loads((tmp_path / "o" / "rank.json").read_text())
    assert list(got) == ["methods", "scores", "stability", "draws", "significance", "filled"]
    assert list(got["methods"]) == list(got["scores"]) == list(got["draws"]) == METHODS
    assert got["methods"]["mean-then-rank"] == {"A": 1, "B": 2, "C": 3}
    assert got["scores"]["rank-then-mean"] == {"A": 1.25, "B": 1.75, "C": 2.5}
    assert got["filled"] == {"A": 0, "B": 0, "C": 1}
    assert set(got["significance"]["A"]) == {"B", "C"}
    stable = got["stability"]["mean-then-rank"]
    assert set(stable["kendall_tau_b"]) == {"median", "q25", "q75", "undefined"}
    # c1 c1 c2 c3: 2.9/4, 2.9/4, 1.8/4; c4 c4 c4 c1: 3.75, 2.9, 3.5
    assert got["draws"]["mean-then-rank"] == [{"A": 1, "B": 1, "C": 3}, {"A": 1, "B": 3, "C": 2}]
    assert stable["first"] == {"A": 1, "B": 0.5, "C": 0}
    assert stable["wins"]["A"] == {"B": 0.5, "C": 1}
    assert stable["rank_interval"]["B"] == [pytest.approx(1.05), pytest.approx(2.95)]
    assert "A leads: first in 100 % of 2 resamples" in done.stdout
    assert "q05-then-rank puts B first: the methods do not agree" in done.stdout
    assert "without 1 of 4 cases (c4), B draws level with A" in done.stdout
    rows = list(csv.DictReader((tmp_path / "o" / "ranks.csv").open()))
    assert [row["n_filled"] for row in rows] == ["0", "0", "1"]
    assert [row["q05-then-rank rank"] for row in rows] == ["2", "1", "3"]
    cases = list(csv.DictReader((tmp_path / "o" / "case_ranks.csv").open()))
    assert [cases[1][name] for name in "ABC"] == ["2", "1", "3"]


def test_cases_that_scoring_filled_count_as_filled_and_have_no_value_of_their_own(write, tmp_path):
    head = "case_id,status,dsc\n"
    a = write(f"{head}c1,ok,.9\nc2,ok,.8\nc3,prediction_empty,0\n", "a/case_scores.csv")
    b = write(f"{head}c1,ok,.7\nc2,prediction_missing,0\nc3,unreadable,0\n", "b/case_scores.csv")
    tables = tuple(algorithm_table(str(path)) for path in (a, b))
    rank_files(RankInputs(algorithms=tables), tmp_path / "out", FEW)
    got = json.loads((tmp_path / "out" / "rank.json").read_text())
    assert got["filled"] == {"a": 1, "b": 2}
    assert got["scores"]["mean-then-rank"]["b"] == pytest.approx(0.7 / 3)
    values = list(csv.DictReader((tmp_path / "out" / "case_values.csv").open()))
    assert [(row["a"], row["b"]) for row in values] == [("0.9", "0.7"), ("0.8", ""), ("", "")]


def test_a_missing_value_without_a_rule_is_refused_before_anything_is_written(write, tmp_path):
    done = mamamia("rank", "--table", write(WIDE), "--out", tmp_path / "o")
    assert done.returncode == 1
    assert "values of C (1) are missing, for example for c2" in done.stderr
    assert not (tmp_path / "o").exists()


def test_tables_of_scoring_runs_are_named_by_their_folders_and_know_their_direction(
    write, tmp_path
):
    head = "case_id,dsc,norm_hd\n"
    a = write(f"{head}A_1,.9,.2\nA_2,.8,.3\n", "one/case_scores.csv")
    b = write(f"{head}a_2,.7,.1\nA_1,.8,.1\n", "two/case_scores.csv")
    done = mamamia("rank", a, f"second={b}", "--metric", "dsc", "--metric", "norm_hd",
                   "--out", tmp_path / "o", "--resamples", "5")  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = json.loads((tmp_path / "o" / "rank.json").read_text())
    assert [one["metric"] for one in got["tables"]] == ["dsc", "norm_hd"]
    first, second = (one["methods"]["mean-then-rank"] for one in got["tables"])
    assert first == {"one": 1, "second": 2}
    assert second == {"one": 2, "second": 1}
    assert got["overall"]["methods"]["mean-then-rank"] == {"one": 1, "second": 1}
    assert "smaller is better" in done.stdout


def test_a_long_table_with_sites_has_a_table_for_each_and_all_rules_over_them(write, tmp_path):
    rows = ["algorithm,case,value,site"]
    for site, values in (("X", "12"), ("Y", "21"), ("Z", "12")):
        rows += [f"a,{site}{k},0.{values[0]}{k},{site}" for k in range(3)]
        rows += [f"b,{site}{k},0.{values[1]}{k},{site}" for k in range(3)]
    got = ranked(write("\n".join(rows)), tmp_path)
    assert [one["site"] for one in got["tables"]] == ["X", "Y", "Z"]
    overall = got["overall"]
    assert overall["methods"]["rank-then-mean"] == {"a": 2, "b": 1}
    assert overall["site_rules"]["fets-2022"] == {"a": 2, "b": 1}
    assert set(overall["site_rules"]) == {"fets-2022", "fets-2022-R", "fets-2021-page", "brats"}
    assert overall["leave_one_site_out"]["Z"] == {"a": 1, "b": 1}
    assert overall["worst_site"] == [
        {"site": {"a": "X", "b": "Y"}, "spread": {"a": pytest.approx(0.1), "b": pytest.approx(0.1)}}
    ]
    assert overall["small_sites"] == ["X", "Y", "Z"]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffcase;A;B\nc1;0,5;0,25\nc2;1;0,75\n".encode(),
        b"case\tA\tB\nc1\t.5\t.25\nc2\t1\t7.5e-1\n",
        b"Case_ID,A,B,\n\nc1,.5,.25,\n,,,\nc2,1,.75,\n",
        "algorithm;case;value\nA;c1;0,5\nA;c2;1\nB;c2;0,75\nB;c1;0,25\n".encode("utf-16"),
    ],
)
def test_tables_of_spreadsheet_programs_are_read(text, write):
    (one,) = read_value_tables(write(text)).tables
    assert (one.algorithms, one.cases) == (("A", "B"), ("c1", "c2"))
    assert one.values.tolist() == [[0.5, 0.25], [1, 0.75]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("case,A,A\nc1,1,2\n", "one column A .* found 2"),
        ("case,A\nc1,1\nC1,2\n", "one value of A for case c1 .* rows 2 and 3"),
        ("algorithm,case,value\nA,c1,1\nA,c1,2\n", "one value of A for case c1 .* rows 2 and 3"),
        ("case,A,B\nc1,1,\nc2,2,\n", "a value of B .* found none"),
        ("case,A\nc1,inf\n", "column A, row 2 .* got 'inf'"),
        ("case,A\nc1,good\n", "column A, row 2 .* got 'good'"),
        ("case,A\nc1,1_000\n", "got '1_000'"),
        ('case,A\nc1,"1,000"\n', "may have a decimal comma or a comma between thousands"),
        ("case,A\n,1\n", "name of the case in row 2"),
        ("algorithm,case,value,site\nA,c1,1,\n", "name of the site in row 2"),
        ("algorithm,case,value\n,c1,1\n", "name of the algorithm in row 2"),
        ("case,A,B\nc1,1\n", "2 cells, but the header has 3"),
        ("case\nc1\n", "a column for each algorithm"),
        ("case,A\n", "no rows below the header"),
        ("", "it is empty"),
    ],
)
def test_a_table_that_would_rank_wrongly_is_refused_with_its_row(text, said, write):
    with pytest.raises(FormatError, match=said):
        read_value_tables(write(text))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("case,dsc\nc1,1\n", "case,dsc\nc1,\n"), "a value of b .* found none"),
        (
            ("case,dsc\nc1,1\n", "case,iou\nc1,1\n"),
            "one metric in all tables, but found a.csv: dsc",
        ),
        (("case,x,y\nc1,1,1\n",), "column dsc, value or score .* found x, y"),
        (("case,dsc\nc1,1\nC1,0\n",), "c1|C1 is in rows 2 and 3"),
        (("name,dsc\nc1,1\n",), r"the column case \(or case_id, patient_id\) in"),
        (("case,dsc\n",), "found none"),
    ],
)
def test_tables_of_algorithms_that_do_not_fit_are_refused(texts, said, write, tmp_path):
    tables = [AlgorithmTable(n, write(t, f"{n}.csv")) for n, t in zip("ab", texts, strict=False)]
    with pytest.raises(MamamiaError, match=said):
        rank_files(RankInputs(tuple(tables)), tmp_path / "out", FEW)
    assert not (tmp_path / "out").exists()


def test_one_name_for_two_algorithms_is_refused(write, tmp_path):
    one = write("case,dsc\nc1,1\n", "x.csv")
    tables = (algorithm_table(str(one)), algorithm_table(f"x={one}"))
    with pytest.raises(MamamiaError, match="a different name for each algorithm, but found x, x"):
        rank_files(RankInputs(tables), tmp_path / "out", FEW)


@pytest.mark.parametrize("text", ["c1,c9\n", "", "case\nc1\n"])
def test_draws_out_of_range_are_refused_before_anything_is_written(text, write, tmp_path):
    draws, table = write(text, "d.csv"), write(WIDE)
    settings = RankSettings(missing=MissingRule.of_text("value:0"))
    with pytest.raises(FormatError, match="resample"):
        rank_files(RankInputs(table=table, draws=draws), tmp_path / "out", settings)
    assert not (tmp_path / "out").exists()


def test_draws_of_a_spreadsheet_have_rows_of_any_length(write):
    assert read_draws(write("c1;c1;\n\nc2;;\n", "d.csv")) == (("c1", "c1"), ("c2",))


@pytest.mark.parametrize(
    ("text", "rule", "ranks"),
    [
        ("case,A\nc1,.5\n", None, {"A": 1}),
        ("case,A,B\nc1,.5,.5\nc2,.5,.5\n", None, {"A": 1, "B": 1}),
        ("case,A,B\nc1,.5,.6\n", None, {"A": 2, "B": 1}),
        ("case,A,B\nc1,,.6\nc2,.9,.5\n", "worst-rank", {"A": 2, "B": 1}),
    ],
)
def test_the_least_that_can_be_ranked_is_ranked(text, rule, ranks, write, tmp_path):
    rules = RankSettings(n_resamples=10, missing=MissingRule.of_text(rule) if rule else None)
    got = ranked(write(text), tmp_path, rules)
    assert got["methods"]["mean-then-rank"] == ranks
    text = (tmp_path / "out" / "rank.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


@pytest.mark.parametrize(
    ("larger_is_better", "value", "gains"),
    [(False, 0, True), (False, 100, False), (True, 0, False), (True, 6, True)],
)
def test_a_value_that_rewards_leaving_cases_out_is_named(
    larger_is_better, value, gains, write, tmp_path
):
    inputs = RankInputs(
        table=write("case,A,B\nc1,9,8\nc2,,7\nc3,5,3\n"), larger_is_better=larger_is_better
    )
    rules = RankSettings(n_resamples=0, missing=MissingRule.of_text(f"value:{value}"))
    summary = rank_files(inputs, tmp_path / "out", rules)
    assert (
        any("an algorithm gains by leaving out hard cases" in note for note in summary.notes)
        is gains
    )


def test_one_case_is_said_to_prove_nothing(write, tmp_path):
    rank_files(RankInputs(table=write("case,A,B\nc1,.9,.8\n")), tmp_path / "out", FEW)
    page = (tmp_path / "out" / "leaderboard.html").read_text()
    assert "Undecided (1 case is too few for a conclusion)" in page
    assert "Certain:" not in page


@pytest.mark.parametrize("damaged", [(), (3, 4, 11)])
def test_the_challenges_own_score_is_that_of_the_scoring_run(damaged, write, tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"P{k},{30 + k},{'pre' if k % 2 else 'post'},{'abcd'[k % 4]}" for k in range(24)]
    clinical = write("\n".join(["patient_id,age,menopause,breast_density", *rows]), "c.csv")
    tables = []
    for name in "ab":
        lines = [f"P{k},{rng.random():.3f},{rng.random():.3f}" for k in range(24)]
        if name == "b":
            lines = [f"P{k},,0.5" if k in damaged else line for k, line in enumerate(lines)]
        path = write("\n".join(["case_id,dsc,norm_hd", *lines]), f"{name}.csv")
        tables.append(AlgorithmTable(name, path))
    rules = RankSettings(n_resamples=20, missing=MissingRule.of_text("value:0"))
    rank_files(RankInputs(tuple(tables), clinical=clinical), tmp_path / "out", rules)
    got = json.loads((tmp_path / "out" / "rank.json").read_text())
    for one in tables:
        words = ["--clinical", clinical, "--bootstrap", 0, "--out", tmp_path / one.name]
        done = mamamia("score-table", one.path, *words, has_figures=False)
        assert done.returncode in (0, 3), done.stderr
        summary = json.loads((tmp_path / one.name / "summary.json").read_text())
        expected = summary["task1"]["ranking_score"]
        assert got["scores"]["composite"][one.name] == pytest.approx(expected)


def test_cases_that_a_team_leaves_out_never_raise_its_composite(write, tmp_path):
    rng = np.random.default_rng(5)
    rows = [f"P{k},{30 + 2 * k},{'pre' if k % 3 else 'post'},{'abcd'[k % 4]}" for k in range(18)]
    clinical = write("\n".join(["patient_id,age,menopause,breast_density", *rows]), "c.csv")
    lines = [f"P{k},{rng.random():.3f},{rng.random():.3f}" for k in range(18)]
    rules = RankSettings(n_resamples=0, missing=MissingRule.of_text("value:0"))
    scores = []
    for dropped in ((), (4,), (4, 5, 9)):
        here = tmp_path / f"d{len(dropped)}"
        here.mkdir()
        for name in "ab":
            left = [one for k, one in enumerate(lines) if name == "a" or k not in dropped]
            (here / f"{name}.csv").write_text("\n".join(["case_id,dsc,norm_hd", *left]))
        tables = tuple(AlgorithmTable(name, here / f"{name}.csv") for name in "ab")
        rank_files(RankInputs(tables, clinical=clinical), here / "out", rules)
        scores.append(json.loads((here / "out" / "rank.json").read_text())["scores"]["composite"])
    assert scores[0]["a"] == scores[0]["b"] == scores[2]["a"]
    assert scores[0]["b"] > scores[1]["b"] > scores[2]["b"]


def test_scores_of_other_profiles_are_refused(write, tmp_path):
    tables = [
        AlgorithmTable(name, write(f"case_id,dsc,profile\nc1,.5,{profile}\n", f"{name}.csv"))
        for name, profile in (("a", "clinical"), ("b", "paper"))
    ]
    with pytest.raises(FormatError, match="the same profile, but found clinical, paper"):
        rank_files(RankInputs(tuple(tables)), tmp_path / "out", FEW)


def test_a_metrics_name_tells_which_way_is_good():
    names = ("dsc", "Dice_ET", "HD95", "Hausdorff95_TC", "norm_hd", "assd_mm", "value", "hardness")
    told = [is_larger_better(name) for name in names]
    assert told == [True, True, False, False, False, False, None, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "or one table of all, but found neither"),
        (["a.csv", "--table", "b.csv"], "found both"),
        (["a.csv", "--missing", "best"], "expected value:X with a number X"),
        (["a.csv", "--method", "composite"], "needs another method in addition to the composite"),
        (["a.csv", "--method", "composite", "--method", "mean-then-rank"], "it needs --clinical"),
    ],
)
def test_words_that_do_not_fit_are_errors_of_the_command_line(words, said, tmp_path):
    done = mamamia("rank", *words, "--out", tmp_path / "o", has_figures=False)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_second_ranking_leaves_no_page_of_a_team_that_is_gone(write, tmp_path):
    ranked(write("case,A,B,ä/x\nc1,.9,.8,.1\nc2,.5,.7,.2\n"), tmp_path)
    teams = tmp_path / "out" / "teams"
    assert {path.name for path in teams.iterdir()} == {"A.html", "B.html", "a-x.html"}
    (teams / "mine.html").write_text("somebody's own")
    two = RankInputs(table=write("case,A,B\nc1,.9,.8\nc2,.5,.7\n", "two.csv"))
    rank_files(two, tmp_path / "out", FEW, existing=Existing.OVERWRITE)
    assert {path.name for path in teams.iterdir()} == {"A.html", "B.html", "mine.html"}


def test_a_file_in_the_place_of_the_pages_is_an_error_of_ours(write, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "teams").write_text("x")
    inputs = RankInputs(table=write("case,A,B\nc1,.9,.8\nc2,.5,.7\n"))
    with pytest.raises(SaveError, match=r"teams.B\.html"):
        rank_files(inputs, tmp_path / "out", FEW, existing=Existing.OVERWRITE)


def test_with_a_clinical_table_a_page_has_its_groups(write, tmp_path):
    people = "".join(f"c{at},{30 + 5 * at},pre,a\n" for at in range(8))
    clinical = write(f"patient_id,age,menopausal_status,breast_density\n{people}", "clinical.csv")
    tables = []
    for name, value in (("A", 0.5), ("B", 0.7)):
        rows = "".join(f"c{at},{value},0.1\n" for at in range(8))
        tables.append(AlgorithmTable(name, write(f"case_id,dsc,norm_hd\n{rows}", f"{name}.csv")))
    inputs = RankInputs(algorithms=tuple(tables), clinical=clinical)
    rank_files(inputs, tmp_path / "out", FEW)
    text = (tmp_path / "out" / "teams" / "B.html").read_text()
    assert "Menopausal status" in text
    assert "0.7000 to 0.7000" in text  # eight equal values


# ------------------------------------------------------------------ one unit, and only algorithms


def rank_table(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    done = mamamia("rank", "--table", path, "--resamples", 10, "--out", tmp_path / "o",
                   has_figures=False)  # fmt: skip
    return done, " ".join((done.stdout + done.stderr).split())


def long_table(metric, factors):
    """Return values 0.5 to 0.8 of each algorithm by its factor, with and without a metric."""
    rows = [
        f"c{case},{name},{(0.5 + case / 10) * factor}" + (f",{metric}" if metric else "")
        for name, factor in factors.items()
        for case in range(4)
    ]
    return "\n".join((f"case,algorithm,value{',metric' if metric else ''}", *rows))


@pytest.mark.parametrize("metric", ["dsc", "Dice", "IoU", "jaccard", "dice_WT", "mean DSC"])
def test_one_algorithm_in_percent_is_refused_wherever_the_metric_is_named(tmp_path, metric):
    done, said = rank_table(tmp_path, long_table(metric, {"A": 1, "B": 100}))
    assert done.returncode == 1
    assert f"expected {metric} from 0 to 1, but the values of B are not (B: 50 to 80)" in said


@pytest.mark.parametrize("metric", ["", "score", "nsd"])
def test_one_algorithm_in_percent_is_named_where_no_metric_has_bounds(tmp_path, metric):
    done, said = rank_table(tmp_path, long_table(metric, {"A": 1, "B": 100, "C": 0.9}))
    assert done.returncode == 0
    assert "the median of B (65) is more than 20 times that of C (0.585)" in said


@pytest.mark.parametrize(
    ("metric", "factors"),
    [("", {"A": 1, "B": 15}), ("hd95", {"A": 3, "B": 40}), ("dice_WT", {"A": 100, "B": 90})],
)
def test_algorithms_in_one_unit_raise_no_alarm(tmp_path, metric, factors):
    done, said = rank_table(tmp_path, long_table(metric, factors))
    assert done.returncode == 0, said
    assert "one unit" not in said


@pytest.mark.parametrize("column", ["age", "Age (years)", "centre", "Group", "breast-density"])
def test_a_column_about_cases_is_no_algorithm(tmp_path, column):
    rows = [f"c{case},{0.5 + case / 10},{0.4 + case / 10},{40 + case}" for case in range(4)]
    done, said = rank_table(tmp_path, "\n".join((f"case,A,B,{column}", *rows)))
    assert done.returncode == 0, said
    assert f"{column} read as properties of the cases, not as algorithms" in said
    got = json.loads((tmp_path / "o" / "rank.json").read_text())
    assert got["methods"]["mean-then-rank"] == {"A": 1, "B": 2}
