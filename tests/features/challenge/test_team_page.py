"""A team's page: its place, neighbours, groups and cases; names that would break a file system."""

import numpy as np
import pytest
from scipy.stats import t as student
from tests.features.challenge.test_leaderboard import content_of, tables_of, undrawn

from napari_mamamia.features.challenge.scoring.team_page import (
    TeamDetails,
    link_pages,
    name_pages,
    tabulate_groups,
    team_page,
)
from napari_mamamia.scoring.cohort.groups import Grouping
from napari_mamamia.scoring.ranking.ranking import rank_table
from napari_mamamia.scoring.ranking.table import MissingRule, RankingTable, RankSettings
from napari_mamamia.scoring.report.page import render_page


def page_of(tables, name, details=None, **settings):
    names = tables[0].algorithms
    links = link_pages(names)
    return team_page(content_of(tables, links, **settings), name, details or TeamDetails(), links)


def section(page, title):
    return next(one for one in page.sections if one.title.startswith(title))


def test_every_name_makes_a_file_of_its_own_that_any_system_holds():
    names = ["Ä" * 200, "ä" * 200, "a/../../etc", "a\\b", "CON", "nul.txt", "", ".", "..", "  ",
             "A", "a", "a-2", "<script>", "腫瘍", "x\ny", "-", "team"]  # fmt: skip
    pages = list(name_pages(names).values())
    assert len({page.casefold() for page in pages}) == len(names)
    for page in pages:
        assert page.isascii()
        assert len(page) <= 80
        assert not set(page) & set('/\\<>:"|?*\n ')
        assert page.partition(".")[0].casefold() not in ("con", "nul")
        assert not page.startswith((".", "-"))


def test_links_lead_to_the_leaderboard_the_neighbours_and_back():
    page = page_of(tables_of(("A", "B", "C"), 9), "B")
    text = render_page(page, undrawn)
    assert '<a href="../leaderboard.html">' in text
    assert '<a href="A.html">Before: A</a>' in text
    assert '<a href="C.html">After: C</a>' in text
    assert '<th scope="row"><a href="A.html">A</a></th>' in text


def test_neighbours_are_compared_case_by_case():
    # B - A: .2, -.1, 0, .1: mean .05; better in 2, equal in 1, worse in 1
    values = np.array([[0.5, 0.7], [0.6, 0.5], [0.4, 0.4], [0.2, 0.3]])
    page = page_of([RankingTable(("A", "B"), tuple("1234"), values)], "B")
    (row,) = section(page, "Neighbours").tables[0].rows
    assert row.cells[0] == "A"
    assert row.cells[3:7] == ("0.0500", "2", "1", "1")


def test_cases_stand_worst_first_with_rank_and_best_and_why_a_value_was_filled():
    values = np.array([[0.9, 0.5], [np.nan, 0.7], [0.2, 0.1]])
    tables = [RankingTable(("A", "B"), ("x", "y", "z"), values)]
    rule = {"missing": MissingRule.of_text("value:0.5")}
    rows = section(page_of(tables, "A", **rule), "Cases").tables[0].rows
    assert [row.cells for row in rows] == [
        ("y", "–", "2", "0.7000", "no value submitted"),
        ("z", "0.2000", "1", "0.2000", ""),
        ("x", "0.9000", "1", "0.9000", ""),
    ]
    noted = TeamDetails(notes={"z": "unreadable"}, parts=(("Dice", {"z": 0.25}),))
    rows = section(page_of(tables, "A", noted, **rule), "Cases").tables[0].rows
    assert rows[1].cells == ("z", "0.2000", "0.250", "1", "0.2000", "unreadable")


def test_where_less_is_better_the_largest_stands_first_and_the_best_is_the_smallest():
    values = np.array([[1.0, 4.0], [9.0, 2.0]])
    page = page_of([RankingTable(("A", "B"), ("x", "y"), values, False)], "A")
    assert [row.cells[:4] for row in section(page, "Cases").tables[0].rows] == [
        ("y", "9.0000", "2", "2.0000"),
        ("x", "1.0000", "1", "1.0000"),
    ]


def test_many_cases_are_folded_and_more_than_a_thousand_are_not_all_there():
    page = page_of(tables_of(("A", "B"), 1200), "A", n_resamples=0)
    cases = section(page, "Cases")
    assert len(cases.tables[0].rows) == 40
    assert cases.tables[0].title == "The worst 40 of 1,200 cases by dsc, worst first"
    assert len(cases.folded[0].rows) == 960


def test_several_tables_have_a_line_each_and_the_worst_cases_of_each():
    page = page_of(tables_of(("A", "B"), 30, ("DUKE", "ISPY1")), "B")
    assert [row.cells[0] for row in section(page, "Ranks").tables[1].rows] == [
        "dsc at DUKE", "dsc at ISPY1",
    ]  # fmt: skip
    assert [len(table.rows) for table in section(page, "Cases").tables] == [20, 20]
    (row,) = section(page, "Neighbours").tables[0].rows
    assert sum(int(cell) for cell in row.cells[3:]) == 2  # both tables are counted


def test_a_team_without_ranks_has_a_page_of_what_is_known():
    links = link_pages(("A", "B"))
    page = team_page(None, "B", TeamDetails(warnings=("refused: no zip",)), links, "challenge")
    text = render_page(page, undrawn)
    assert "B: challenge" in text
    assert "refused: no zip" in text


def test_group_means_have_students_interval_and_small_groups_none():
    rng = np.random.default_rng(4)
    values = rng.normal(0.5, 0.1, (50, 2))
    codes = np.array([0] * 24 + [1] * 22 + [2] * 3 + [-1])
    one = rank_table(
        RankingTable(("A", "B"), tuple(map(str, range(50))), values, metric="other"),
        RankSettings(n_resamples=0),
    )
    (table,) = tabulate_groups(one, 0, (Grouping("age", ("young", "old", "rare"), codes),))
    young, old = values[:24, 0], values[24:46, 0]
    reach = student.ppf(0.975, 23) * young.std(ddof=1) / np.sqrt(24)
    low, high = young.mean() - reach, young.mean() + reach
    assert table.rows[0].cells[3] == f"{low:.4f} to {high:.4f}"
    reach = student.ppf(0.975, 21) * old.std(ddof=1) / np.sqrt(22)
    assert table.rows[1].cells[3] == f"{old.mean() - reach:.4f} to {old.mean() + reach:.4f}"
    assert table.rows[2].cells[3] == "–"
    assert table.rows[2].is_small
    assert "1 case outside all groups" in table.notes[0]
    # Welch's interval of the absolute difference, the smaller variance raised to the pooled one
    pooled = (23 * young.var(ddof=1) + 21 * old.var(ddof=1)) / 44
    assert young.var(ddof=1) < pooled < old.var(ddof=1)
    variances = pooled / 24, old.var(ddof=1) / 22
    error = np.sqrt(sum(variances))
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 23 + variances[1] ** 2 / 21)
    high = abs(young.mean() - old.mean()) + student.ppf(0.975, freedom) * error
    assert f"and {high:.3f} (95 %)" in table.notes[0]


@pytest.mark.parametrize(("metric", "high"), [("performance", "1.0000"), ("x", "1.1421")])
def test_no_interval_of_a_share_goes_beyond_its_range(metric, high):
    values = np.array([[1.0], [1.0], [1.0], [1.0], [0.6]])
    one = rank_table(
        RankingTable(("A",), tuple("12345"), values, metric=metric), RankSettings(n_resamples=0)
    )
    (table,) = tabulate_groups(one, 0, (Grouping("age", ("all",), np.zeros(5, np.intp)),))
    # mean .92, SD .1789, t(4) 2.7764: .92 + .2221 = 1.1421
    assert table.rows[0].cells[3].endswith(f" to {high}")


def test_a_rank_that_no_resample_moves_is_one_number():
    values = np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.3]])
    page = page_of([RankingTable(("A", "B"), ("1", "2", "3"), values)], "B")
    sure = next(one for one in page.summary if one.question == "How certain")
    assert "its rank is 2; it is first in 0 %" in sure.sentences[0]
