"""A ranking as the window shows it: read back from its files, and what is damaged is said."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.leaderboard_file import (
    Board,
    BoardRow,
    Leaderboard,
    write_leaderboard,
)
from napari_mamamia.features.challenge.services.rank.board import (
    BoardTable,
    CaseOrder,
    list_ranked,
    open_board,
    order_cases,
    say_lead,
)
from napari_mamamia.features.challenge.services.rank.inputs import RankInputs
from napari_mamamia.features.challenge.services.rank.rank import rank_files
from napari_mamamia.features.challenge.services.rank.team_masks import (
    find_team_folder,
    find_team_mask,
)
from napari_mamamia.io.data_set.rank_files import is_ranking, read_case_numbers, read_rank_file
from napari_mamamia.scoring.ranking.table import MissingRule, RankSettings

pytestmark = pytest.mark.usefixtures("quick_figures")

WIDE = "case,A,B,C\nc1,.9,.8,.8\nc2,.5,.7,\nc3,.6,.6,.2\nc4,.95,.7,.9\n"
SITES = (
    "algorithm,case,value,site\nA,c1,.9,N\nB,c1,.8,N\nA,c2,.7,N\nB,c2,.5,N\n"
    "A,d1,.4,S\nB,d1,.6,S\nA,d2,.3,S\nB,d2,.5,S\n"
)
HEAD = "task,metric,site,case"


def ranked(tmp_path, text=WIDE, missing="value:0", **named):
    table = tmp_path / "t.csv"
    table.write_text(text)
    settings = RankSettings(missing=MissingRule.of_text(missing), n_resamples=40)
    rank_files(RankInputs(table=table, **named), tmp_path / "out", settings)
    return tmp_path / "out"


def rank_json(methods, **parts):
    return json.dumps({"methods": methods, **parts})


def simple_board(tmp_path, ranks, first=None, **more):
    stability = {} if first is None else {"mean-then-rank": {"first": first}}
    text = rank_json({"mean-then-rank": ranks}, stability=stability, **more)
    (tmp_path / "rank.json").write_text(text)
    return open_board(tmp_path)


# ------------------------------------------------------------------- what is shown


def test_a_ranking_is_shown_with_the_values_that_were_given(tmp_path):
    board = open_board(ranked(tmp_path))
    (table,) = board.tables
    assert (table.n_cases, board.rule, board.notes) == (4, "value:0", ())
    best, *_, last = list_ranked(table, 0)
    # means: 2.95/4, 2.8/4 and, the missing value counting 0, 1.9/4
    assert (best.name, last.name) == ("A", "C")
    assert (best.score, last.score) == pytest.approx((0.7375, 0.475))
    assert dict(table.filled) == {"A": 0, "B": 0, "C": 1}
    grid = table.grid
    assert not grid.are_ranks
    assert grid.digits == 3
    assert math.isnan(grid.values[1, 2])
    np.testing.assert_allclose(grid.spread, [0.1, 0.2, 0.4, 0.25])
    np.testing.assert_allclose(grid.worst, [0.8, np.nan, 0.2, 0.7])
    # from .95, the best of the table, to .2, the worst
    np.testing.assert_allclose(grid.badness[3], [0, 0.25 / 0.75, 0.05 / 0.75])


def test_cases_are_sorted_by_spread_by_the_worst_value_and_by_a_team(tmp_path):
    grid = open_board(ranked(tmp_path)).tables[0].grid
    names = lambda by, **how: [grid.cases[at] for at in order_cases(grid, by, **how)]  # noqa: E731
    assert names(CaseOrder.LISTED) == ["c1", "c2", "c3", "c4"]
    assert names(CaseOrder.SPREAD) == ["c3", "c4", "c2", "c1"]
    # no answer is worse than any; then .2, .7 and .8
    assert names(CaseOrder.WORST) == ["c2", "c3", "c4", "c1"]
    assert names(CaseOrder.WORST, upwards=True) == ["c1", "c4", "c3", "c2"]
    assert names("A") == ["c2", "c3", "c1", "c4"]


def test_of_a_distance_the_largest_value_is_the_worst(tmp_path):
    folder = ranked(tmp_path, "case,A,B\nc1,2,30\nc2,4,5\n", larger_is_better=False)
    (table,) = open_board(folder).tables
    assert table.grid.worst.tolist() == [30, 5]
    assert table.grid.badness[0].tolist() == [0, 1]
    assert table.grid.digits == 1
    assert list_ranked(table, 0)[0].name == "A"


def test_several_tables_are_offered_with_all_together_first(tmp_path):
    board = open_board(ranked(tmp_path, SITES))
    assert [table.title for table in board.tables] == ["All tables together (2)", "at N", "at S"]
    assert board.tables[0].grid is None
    assert "Choose one table" in board.tables[0].why_no_grid
    assert board.tables[2].grid.cases == ("d1", "d2")
    assert [list_ranked(table, 0)[0].name for table in board.tables[1:]] == ["A", "B"]


@pytest.mark.parametrize(
    ("ranks", "first", "words"),
    [
        ({"A": 1, "B": 2}, (0.97, 0.03), "A clearly leads by mean-then-rank: first in 97 % of the "
         "resamples of the cases, B in 3 %."),
        ({"A": 1, "B": 2}, (0.75, 0.25), "A probably leads"),
        ({"A": 1, "B": 2}, (0.6, 0.4), "A leads by mean-then-rank: first in 60 % of the resamples "
         "of the cases, B in 40 %. The lead is uncertain."),
        ({"A": 1, "B": 2}, (0.997, 0.003), "in over 99 % of the resamples of the cases, B in "
         "under 1 %."),
        ({"A": 1, "B": 2}, None, "The certainty was not computed"),
        ({"A": 1, "B": 1, "C": 3}, (0.5, 0.5), "A and B share the first rank"),
        ({"A": 1, "B": 1}, (0.5, 0.5), "no team leads"),
        ({"A": 1}, (1.0,), "A is the only team"),
        ({"A": None, "B": None}, None, "No team has a rank"),
        ({"A": None, "B": 1}, None, "B leads"),
    ],
)  # fmt: skip
def test_who_leads_is_said_as_sure_as_it_is(tmp_path, ranks, first, words):
    shares = None if first is None else dict(zip("AB", first, strict=False))
    assert words in say_lead(simple_board(tmp_path, ranks, shares).tables[0], 0)


def test_no_lead_on_a_handful_of_cases_is_sure(tmp_path):
    table = simple_board(tmp_path, {"A": 1, "B": 2}, {"A": 1.0, "B": 0.0}).tables[0]
    assert say_lead(replace(table, n_cases=1), 0).endswith(
        "The lead is uncertain: 1 case is too few for a conclusion."
    )
    assert "clearly" not in say_lead(replace(table, n_cases=4), 0)
    assert "A clearly leads" in say_lead(replace(table, n_cases=5), 0)


def challenge_board(tmp_path, places, *, ladder=False):
    rows = tuple(
        BoardRow(team, rank, None if rank is None else 1.0 - rank / 10, None, None, 6, 0, (), 1, 1,
                 "masks", "d" * 64)
        for team, rank in places.items()
    )  # fmt: skip
    boards = (Board("segmentation", "ranking score", rows),)
    shown = Leaderboard("Cup", "a" * 64, "../ch", (), "clinical", "as the profile says", ladder,
                        boards)  # fmt: skip
    write_leaderboard(shown, tmp_path)
    ranks = {"composite": {"A": 1, "B": 2}, "mean-then-rank": {"A": 2, "B": 1}}
    (tmp_path / "rank.json").write_text(rank_json(ranks))
    return open_board(tmp_path)


@pytest.mark.parametrize(
    ("places", "ladder", "leads", "methods"),
    [
        ({"A": 1, "B": 2}, False, "composite", ["composite", "mean-then-rank"]),
        ({"A": 2, "B": 1}, False, "mean-then-rank", ["composite", "mean-then-rank"]),
        ({"A": 1, "B": 1}, False, "challenge", ["challenge", "composite", "mean-then-rank"]),
        ({"A": 1, "B": 2}, True, "ladder", ["ladder", "composite", "mean-then-rank"]),
    ],
)
def test_a_challenge_is_led_by_what_its_board_ranks_by(tmp_path, places, ladder, leads, methods):
    (table,) = challenge_board(tmp_path, places, ladder=ladder).tables
    assert (table.leads, [one.name for one in table.methods]) == (leads, methods)
    if leads == methods[0] != "composite":
        assert {one.name: one.rank for one in table.methods[0].algorithms} == places


def test_a_team_that_the_board_refuses_is_named_and_a_damaged_board_is_a_note(tmp_path):
    board = challenge_board(tmp_path, {"A": 1, "B": 2, "C": None})
    assert "Not ranked: C." in board.notes
    (tmp_path / "leaderboard.json").write_text("{")
    board = open_board(tmp_path)
    assert board.tables[0].leads == "composite"
    assert any("expected a leaderboard" in note for note in board.notes)


# ------------------------------------------------------------------ hostile inputs


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", "null", '{"methods": []}', '{"methods": {}}',
        '{"methods": {"m": []}}', '{"methods": {"m": {}}}', '{"methods": {"m": {"A": "first"}}}',
        '{"methods": {"m": {"A": true}}}', '{"methods": {"m": {"A": Infinity}}}',
        '{"methods": {"m": {"A": 1}}, "scores": 7}', '{"tables": []}', '{"tables": {}}',
        '{"tables": [1]}', '{"methods": {"m": {"A": 1}}, "filled": {"A": "many"}}',
        '{"methods": {"m": {"A": 1}}, "filled": {"A": NaN}}',
        '{"methods": {"m": {"A": 1}}, "stability": {"m": {"rank_interval": {"A": 3}}}}',
        '{"methods": {"m": {"A": 1}}, "stability": {"m": {"rank_interval": {"A": [1]}}}}',
    ],
)  # fmt: skip
def test_a_damaged_ranking_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "rank.json").write_text(text)
    with pytest.raises(FormatError, match=r"rank\.json.*newer version"):
        open_board(tmp_path)


def test_a_folder_without_a_ranking_is_refused(tmp_path):
    assert not is_ranking(tmp_path)
    with pytest.raises(FormatError, match=r"no rank\.json"):
        open_board(tmp_path)


def test_what_a_newer_version_adds_passes(tmp_path):
    methods = {"bradley-terry": {"A": 1, "B": 2}, "mean-then-rank": {"A": 2, "B": 1}}
    more = {"format": 9, "scores": {"bradley-terry": {"A": 1.5, "B": None}}, "sure": {"A": 1}}
    (tmp_path / "rank.json").write_text(rank_json(methods, **more))
    (table,) = open_board(tmp_path).tables
    assert [method.name for method in table.methods] == ["bradley-terry", "mean-then-rank"]
    assert list_ranked(table, 1)[0].name == "B"


def test_without_values_the_ranks_of_cases_are_shown_and_without_both_the_teams_alone(tmp_path):
    folder = ranked(tmp_path)
    (folder / "case_values.csv").unlink()
    grid = open_board(folder).tables[0].grid
    assert grid.are_ranks
    assert grid.values[0].tolist() == [1, 2, 2]
    assert grid.badness[0].tolist() == [0, 0.5, 0.5]
    (folder / "case_ranks.csv").unlink()
    (table,) = open_board(folder).tables
    assert table.grid is None
    assert "rank again" in table.why_no_grid
    assert (table.n_cases, len(list_ranked(table, 0))) == (4, 3)


@pytest.mark.parametrize(
    "text",
    [
        "", "case,A\n", f"{HEAD}\n", f"{HEAD},A,A\n", f"{HEAD},A\n,,,c1\n", f"{HEAD},A\n,,,c1,x\n",
        f"{HEAD},A\n,,,c1,inf\n", f"{HEAD},A\n,,,c1,1\n,,,c1,2\n", f'{HEAD},A\n,,,"c1,1\n',
    ],
)  # fmt: skip
def test_a_damaged_table_of_cases_is_a_note_and_the_ranks_stand(tmp_path, text):
    folder = ranked(tmp_path)
    for name in ("case_values.csv", "case_ranks.csv"):
        (folder / name).write_text(text)
    board = open_board(folder)
    assert board.tables[0].grid is None
    assert all("case_" in note for note in board.notes)
    assert len(board.notes) == 2
    assert list_ranked(board.tables[0], 0)[0].name == "A"


def test_a_table_of_other_teams_is_not_shown_as_theirs(tmp_path):
    folder = ranked(tmp_path)
    (folder / "case_values.csv").write_text(f"{HEAD},A,B,X\n,,,c1,1,2,3\n")
    (table,) = open_board(folder).tables
    assert table.grid is None
    assert "different teams" in table.why_no_grid


def test_a_damaged_file_of_details_is_a_note(tmp_path):
    folder = ranked(tmp_path)
    (folder / "rank_details.json").write_text('{"settings": []')
    board = open_board(folder)
    assert board.tables[0].grid is not None
    assert "rank_details.json" in board.notes[0]


def test_names_are_read_back_as_they_were_whatever_they_look_like(tmp_path):
    names = ["=HYPERLINK(1)", "x" * 200, "a;b;c;d;e;f;g;h", 'Ä,"ö"']
    rows = "".join(
        f'"{n.replace(chr(34), chr(34) * 2)}",c1,.{k + 1}\n' for k, n in enumerate(names)
    )
    board = open_board(ranked(tmp_path, f"algorithm,case,value\n{rows}"))
    assert set(board.tables[0].grid.teams) == set(names)


def test_a_team_without_any_value_is_shown_by_what_it_counts(tmp_path):
    folder = tmp_path
    (folder / "rank.json").write_text(rank_json({"mean-then-rank": {"A": 1, "B": 2}}))
    (folder / "case_values.csv").write_text(f"{HEAD},A,B\n,,,c1,.5,\n,,,c2,.5,\n")
    grid = open_board(folder).tables[0].grid
    assert np.isnan(grid.badness[:, 1]).all()
    assert grid.badness[:, 0].tolist() == [0, 0]
    assert order_cases(grid, CaseOrder.WORST) == (0, 1)


def test_a_table_where_nobody_gave_a_value_does_not_break(tmp_path):
    (tmp_path / "rank.json").write_text(rank_json({"mean-then-rank": {"A": 1}}))
    (tmp_path / "case_values.csv").write_text(f"{HEAD},A\n,,,c1,\n")
    grid = open_board(tmp_path).tables[0].grid
    assert math.isnan(grid.spread[0])
    assert order_cases(grid, CaseOrder.SPREAD) == (0,)


# ------------------------------------------------------------------- masks of teams


def test_masks_are_found_where_they_were_named_beside_another_team_or_as_a_model(tmp_path):
    for name in ("sent/A", "sent/B", "predictions/C", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    known = {"A": tmp_path / "sent" / "A", "odd": tmp_path / "elsewhere"}
    find = lambda team: find_team_folder(team, known, tmp_path / "predictions")  # noqa: E731
    assert find("A") == tmp_path / "sent" / "A"
    assert find("B") == tmp_path / "sent" / "B"
    assert find("C") == tmp_path / "predictions" / "C"
    assert find("D") is None


@pytest.mark.parametrize("team", ["..", ".", "", "../predictions", "/etc", "a/b"])
def test_a_teams_name_leads_into_no_other_folder(tmp_path, team):
    (tmp_path / "sent" / "A").mkdir(parents=True)
    (tmp_path / "sent" / "a" / "b").mkdir(parents=True)
    assert find_team_folder(team, {"A": tmp_path / "sent" / "A"}, tmp_path) is None


def test_the_mask_of_a_case_is_found_whatever_its_letters(tmp_path):
    (tmp_path / "duke_001.nii.gz").touch()
    assert find_team_mask(tmp_path, "DUKE_001") == tmp_path / "duke_001.nii.gz"
    assert find_team_mask(tmp_path, "DUKE_002") is None
    with pytest.raises(FormatError):
        find_team_mask(tmp_path / "none", "DUKE_001")


def test_fifty_teams_of_a_thousand_cases_are_read(tmp_path):
    teams = [f"T{k}" for k in range(50)]
    (tmp_path / "rank.json").write_text(
        rank_json({"mean-then-rank": {team: k + 1 for k, team in enumerate(teams)}})
    )
    line = ",".join(["0.5"] * 50)
    rows = "".join(f",,,c{k},{line}\n" for k in range(1000))
    (tmp_path / "case_values.csv").write_text(f"{HEAD},{','.join(teams)}\n{rows}")
    board = open_board(tmp_path)
    assert isinstance(board.tables[0], BoardTable)
    assert board.tables[0].grid.values.shape == (1000, 50)
    assert read_rank_file(tmp_path / "rank.json").overall is None
    assert read_case_numbers(tmp_path / "case_values.csv")[0].cases[-1] == "c999"
