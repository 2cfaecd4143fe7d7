"""The leaderboard: who leads by which attempt, what cheating gains, and its proof."""

import json
import re
import shutil
import time
from multiprocessing import get_context

import numpy as np
import pytest
from tests.features.challenge.challenge_world import begun, ids, reference, write_mask, write_team

from napari_mamamia.core.choices import Task, UnusableRule
from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.features.challenge.io.challenge_file import ChallengeLimits, read_challenge
from napari_mamamia.features.challenge.io.ledger import read_ledger
from napari_mamamia.features.challenge.services.challenge.begin import (
    ChallengeSettings,
    begin_challenge,
)
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.ranking import make_ranking
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.features.challenge.services.challenge.verify import (
    list_unchecked,
    verify_challenge,
)
from napari_mamamia.features.challenge.services.rank.board import open_board, say_lead
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.volumes import streams
from napari_mamamia.services.batch.output_folder import Existing

N = 8

with_dots = pytest.mark.usefixtures("quick_figures")
"""Figures are drawn in the tests without it alone: half of a ranking's time, and of its proof's."""


@pytest.fixture
def challenge(tmp_path):
    folder = begun(tmp_path, N, n_resamples=20)
    run_challenge(folder)
    return folder


def made(folder):
    opened = read_challenge(folder)
    ledger = read_ledger(opened.attempts, opened.sha256)
    return make_ranking(opened, ledger, folder.parent / "board")


def rows_of(ranking):
    return {row.team: row for board in ranking.board.boards[:1] for row in board.rows}


def ranked(folder):
    """Return the rows of masks by team; nothing is written."""
    return rows_of(made(folder))


def written(folder):
    """Return the same, from what is written to ``board``."""
    return rows_of(rank_challenge(folder, folder.parent / "board", existing=Existing.OVERWRITE))


def words(differences):
    return "\n".join(f"{one.where}: {one.text}" for one in differences)


@with_dots
def test_the_board_agrees_with_every_method_of_rank_json(challenge):
    rows = written(challenge)
    assert {team: row.rank for team, row in rows.items()} == {"alpha": 1, "beta": 2, "gämma": 3}
    content = json.loads((challenge.parent / "board" / "rank.json").read_text())
    assert set(content["methods"]) == {
        *("mean-then-rank", "median-then-rank", "q05-then-rank", "rank-then-mean"),
        *("rank-then-median", "test-then-rank", "composite"),
    }
    for team, row in rows.items():
        assert content["scores"]["composite"][team] == pytest.approx(row.score)
        assert content["scores"]["mean-then-rank"][team] == pytest.approx(row.performance)
        assert content["methods"]["composite"][team] == row.rank
    assert content["stability"]["composite"]["first"]["alpha"] == 1.0
    assert "1st attempt" in (challenge.parent / "board" / "leaderboard.html").read_text()


@with_dots
def test_a_leaderboard_is_proved_and_each_change_of_it_or_below_it_is_named(challenge):
    written(challenge)
    board = challenge.parent / "board"
    assert verify_challenge(board) == ()
    for name, old, new in (
        ("leaderboard.json", '"rank": 2', '"rank": 1'),
        ("leaderboard.json", '"attempt": 1', '"attempt": 2'),
        ("rank.json", '"beta": 2.0', '"beta": 1.0'),
    ):
        whole = (board / name).read_text()
        assert old in whole
        (board / name).write_text(whole.replace(old, new, 1))
        assert "leaderboard: " in words(verify_challenge(board, is_quick=True))
        (board / name).write_text(whole)
    (path,) = (challenge / "attempts").rglob("*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    assert "the ledger no longer has the line" in words(verify_challenge(board, is_quick=True))
    path.write_bytes(whole)
    write_team(challenge / "submissions" / "beta", 0, N)
    # a team's own folder is not part of the sealed board
    assert verify_challenge(board, is_quick=True) == ()
    assert "beta was changed after" in "\n".join(list_unchecked(board))
    run_challenge(challenge)
    # a later attempt is not part of the board either, which is then named as older
    assert verify_challenge(board, is_quick=True) == ()
    assert "is older" in "\n".join(list_unchecked(board))


def test_every_page_of_a_leaderboard_is_proved(challenge, request):
    written(challenge)
    board = challenge.parent / "board"
    pages = sorted(path.relative_to(board).as_posix() for path in board.rglob("*.html"))
    assert pages == [
        "leaderboard.html", "teams/alpha.html", "teams/beta.html", "teams/gamma.html",
    ]  # fmt: skip
    for name in pages:
        whole = (board / name).read_text()
        assert whole.count("0.9") > 1
        (board / name).write_text(whole.replace("0.9", "0.8", 1))
        assert f"{name}: line " in words(verify_challenge(board, is_quick=True))
        (board / name).write_text(whole)
    leaderboard = board / "leaderboard.html"
    whole = leaderboard.read_text()
    leaderboard.write_text(whole.replace(">alpha<", ">alphb<", 2))  # one is in a drawing
    (changed,) = verify_challenge(board)
    assert changed.text.startswith("leaderboard.html: line ")
    leaderboard.write_text(whole)
    request.getfixturevalue("quick_figures")
    shutil.copy(board / "teams" / "beta.html", board / "teams" / "zeta.html")
    (board / "teams" / "notes.html").write_text("my own")
    assert "teams/zeta.html belongs to no team" in words(verify_challenge(board, is_quick=True))
    (board / "teams" / "beta.html").unlink()
    assert "beta.html" in words(verify_challenge(board, is_quick=True))
    written(challenge)
    (added,) = verify_challenge(board, is_quick=True)
    assert added.text == "teams/notes.html was added"
    (board / "teams" / "notes.html").unlink()
    assert verify_challenge(board, is_quick=True) == ()
    assert {path.name for path in (board / "teams").iterdir()} == {
        "alpha.html", "beta.html", "gamma.html",
    }  # fmt: skip


@with_dots
def test_a_teams_page_says_what_was_filled_in_by_which_rule_and_why(challenge):
    team = challenge / "submissions" / "beta"
    (team / "C_01.nii.gz").unlink()
    (team / "C_02.nii.gz").write_bytes(b"no image")
    run_challenge(challenge)
    written(challenge)
    text = (challenge.parent / "board" / "teams" / "beta.html").read_text()
    assert "missing, counts as least-favourable" in text
    assert "unreadable, counts as least-favourable: C_02.nii.gz: " in text
    assert "2 of its values were filled in" in text
    assert f"{challenge.parent}" not in text  # nothing tells where the organiser's files lie
    assert (
        "unusable: 1 missing, 1 unreadable"
        in (challenge.parent / "board" / "leaderboard.html").read_text()
    )


@with_dots
def test_ranking_stops_at_a_ledger_or_a_score_that_was_changed(challenge):
    (table,) = (challenge / "results" / "beta").rglob("case_scores.csv")
    whole = table.read_text()
    table.write_text(whole.replace(",ok,", ",ok,", 1).replace("0.", "0.9", 1))
    with pytest.raises(FormatError, match="scores of beta to be as recorded in the ledger"):
        written(challenge)
    table.write_text(whole)
    (path,) = (challenge / "attempts").rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"team":"beta"', b'"team":"bete"', 1))
    with pytest.raises(FormatError, match="the ledger of"):
        written(challenge)
    assert not (challenge.parent / "board").exists()


@with_dots
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.night) for seed in range(1, 25))]
)
def test_damaged_dropped_and_moved_cases_never_raise_a_rank_or_a_score(challenge, seed):
    rng = np.random.default_rng(seed)
    before = ranked(challenge)
    team = challenge / "submissions" / "gämma"
    for case_id in rng.choice(ids(N), rng.integers(1, N), replace=False):
        path = team / f"{case_id}.nii.gz"
        kind = rng.integers(5)
        if kind == 0:
            path.unlink()
        elif kind == 1:
            path.write_bytes(path.read_bytes()[:40])
        elif kind == 2:
            affine = np.diag([-0.8, 0.8, 2.0, 1.0])
            affine[0, 3] = 5.0
            write_mask(path, reference(int(case_id[2:])), affine)
        elif kind == 3:
            write_mask(path, np.full((6, 20, 24), np.nan), dtype=np.float32)
        else:
            write_mask(path, np.zeros((6, 20, 24)))
    run_challenge(challenge)
    after = ranked(challenge)
    assert after["gämma"].rank >= before["gämma"].rank
    assert after["gämma"].score <= before["gämma"].score + 1e-12
    assert after["gämma"].performance <= before["gämma"].performance + 1e-12
    assert after["gämma"].n == before["gämma"].n
    table = made(challenge).summary.ranking.tables[0]
    place = table.table.algorithms.index("gämma")
    assert [one.ranks[place] for one in table.methods] == [3.0] * 7


@with_dots
def test_a_rejected_submission_has_no_rank_and_says_why(tmp_path):
    folder = begun(tmp_path, 4, rule=UnusableRule.REJECT)
    (folder / "submissions" / "beta" / "C_00.nii.gz").unlink()
    run_challenge(folder)
    rows = ranked(folder)
    assert rows["beta"].rank is None
    assert "rejected" in rows["beta"].reason
    assert (rows["alpha"].rank, rows["gämma"].rank) == (1, 2)
    with pytest.raises(CaseError, match="leave-out"):
        begin_challenge(
            tmp_path / "x",
            ChallengeSettings(reference=tmp_path / "reference", rule=UnusableRule.LEAVE_OUT),
        )


@with_dots
def test_cases_without_a_usable_answer_are_counted_as_filled_and_have_no_value(tmp_path):
    folder = begun(tmp_path, 4)
    for case_id in ("C_00", "C_02"):
        (folder / "submissions" / "beta" / f"{case_id}.nii.gz").unlink()
    run_challenge(folder)
    assert written(folder)["beta"].n_unusable == 2
    (table,) = open_board(tmp_path / "board").tables
    assert dict(table.filled) == {"alpha": 0, "beta": 2, "gämma": 0}
    grid, beta = table.grid, table.grid.teams.index("beta")
    assert np.isnan(grid.values).sum() == 2
    assert np.isnan(grid.values[[0, 2], beta]).all()


@with_dots
def test_the_ladder_shows_a_new_score_only_where_it_is_clearly_better(tmp_path):
    folder = begun(tmp_path, N, n_resamples=50, ladder=True)
    run_challenge(folder)
    first = ranked(folder)["beta"]
    write_team(folder / "submissions" / "beta", 2, N)  # worse
    run_challenge(folder)
    second = ranked(folder)["beta"]
    assert (second.attempt, second.n_attempts, second.score) == (1, 2, first.score)
    write_team(folder / "submissions" / "beta", 0, N)  # right
    run_challenge(folder)
    rows = written(folder)
    third = rows["beta"]
    assert (third.attempt, third.n_attempts, third.score) == (3, 3, 1.0)
    text = (tmp_path / "board" / "leaderboard.html").read_text()
    assert "By guarded score, alpha, beta share the lead." in text
    assert "On the locked test set itself (not for the teams): " in text
    # the window leads by what the board ranks by, and says so
    (table,) = open_board(tmp_path / "board").tables
    assert (table.leads, table.methods[0].name) == ("ladder", "ladder")
    assert {one.name: one.rank for one in table.methods[0].algorithms} == {
        row.team: row.rank for row in rows.values()
    }
    assert say_lead(table, 0) == "alpha and beta share the first rank by ladder."
    assert verify_challenge(tmp_path / "board") == ()


def test_a_teams_page_shows_its_worst_cases_and_no_other_ones(tmp_path, monkeypatch):
    folder = begun(tmp_path, 6)
    (folder / "submissions" / "beta" / "C_00.nii.gz").write_bytes(b"no image")
    run_challenge(folder)
    written(folder)
    text = (tmp_path / "board" / "teams" / "beta.html").read_text()
    shown = re.findall(
        r'loading="lazy"[^>]*data:image/png;base64,([^"]+)"[^>]*alt="(C_\d+): Dice', text
    )
    # moved by a voxel: the smallest tumours, of 3 and 4 voxels, have the least Dice; C_00 has none
    assert [case for _, case in shown] == ["C_04", "C_01", "C_05", "C_02"]
    assert len({picture for picture, _ in shown}) > 1
    # a changed picture is found by the hash of the page, and by drawing it again
    path = tmp_path / "board" / "teams" / "beta.html"
    path.write_text(text.replace(shown[0][0], "AAAA", 1))
    (changed,) = verify_challenge(tmp_path / "board", is_quick=True)
    assert changed.text == "teams/beta.html was changed"
    assert "teams/beta.html: line " in words(verify_challenge(tmp_path / "board"))
    # one that the disk refuses now is told, and no page is taken for whole
    with monkeypatch.context() as patch:

        def refuse(path):
            if path.name == "C_04.nii.gz":
                raise OSError(116, "Stale file handle", str(path))
            return open_plain(path)

        patch.setattr(streams, "open_plain", refuse)
        with pytest.raises(FormatError, match="Stale file handle"):
            rank_challenge(folder, tmp_path / "refused")
    # sealed masks that are gone are no crash: the figure is empty
    (path,) = (folder / "results" / "beta").glob("*/sealed/C_04.nii.gz")
    path.write_bytes(b"x")
    assert rank_challenge(folder, tmp_path / "again").pictures["beta"]


@with_dots
def test_twins_and_a_team_without_a_score_are_told(challenge):
    shutil.copytree(challenge / "submissions" / "beta", challenge / "submissions" / "copy")
    (challenge / "submissions" / "junk").mkdir()
    (challenge / "submissions" / "junk" / "a.txt").write_text("x")
    run_challenge(challenge)
    board = made(challenge).board
    alarm, twins = board.notes
    assert alarm.startswith("alpha: ALARM")  # its masks are the references
    assert twins == f"beta and copy have the same mask in {N} cases"
    junk = next(row for row in board.boards[0].rows if row.team == "junk")
    assert junk.rank is None
    assert junk.reason.startswith("refused: ")


@with_dots
def test_one_team_one_case_and_no_score_at_all(tmp_path):
    folder = begun(tmp_path, 1)
    with pytest.raises(CaseError, match="expected a scored attempt"):
        ranked(folder)
    run_challenge(folder, ["beta"])
    assert ranked(folder)["beta"].rank == 1


@with_dots
def test_without_a_clinical_table_performance_ranks_and_says_so(tmp_path):
    folder = begun(tmp_path, 3, clinical=None)
    run_challenge(folder)
    ranking = made(folder)
    board = ranking.board.boards[0]
    assert board.ranked_by == "performance, because there is no clinical table"
    assert [row.team for row in board.rows] == ["alpha", "beta", "gämma"]
    composite = ranking.summary.ranking.tables[0].methods[0]
    assert composite.scores[1] == pytest.approx(board.rows[1].performance)


@with_dots
def test_masks_and_responses_have_a_board_each(tmp_path):
    folder = begun(tmp_path, N, task=Task.BOTH, n_resamples=30)
    for team, wrong in (("alpha", 0), ("beta", 1)):
        rows = [
            f"{case_id},{int((k % 3 == 0) ^ (k < wrong))},0.{k + 1}"
            for k, case_id in enumerate(ids(N))
        ]
        table = folder / "submissions" / team / "predictions.csv"
        table.write_text("\n".join(("patient_id,pcr,score", *rows)))
    run_challenge(folder)
    boards = {one.task: one for one in rank_challenge(folder, tmp_path / "board").board.boards}
    first, second, *others = boards["classification"].rows
    assert (first.team, first.rank, first.performance) == ("alpha", 1, 1.0)
    assert (second.team, second.rank) == ("beta", 2)
    assert {row.reason for row in others} == {"no submission for this task"}
    assert len(boards["segmentation"].rows) == 3
    content = json.loads((tmp_path / "board" / "rank_responses.json").read_text())
    assert content["methods"]["composite"] == {"alpha": 1.0, "beta": 2.0}
    # a resample without a class in a group has no score
    assert 20 < content["bayes_factors"]["alpha over beta"]["draws"] <= 30
    # the two give the same probabilities
    (pair,) = content["auc"]["comparisons"]
    assert pair["delong"]["auc_a"] == pair["delong"]["auc_b"]
    text = (tmp_path / "board" / "leaderboard.html").read_text()
    assert "Leading response model" in text
    assert "Bayes factor K: row over column" in text
    assert "cases are wrong" in (tmp_path / "board" / "teams" / "beta.html").read_text()
    assert verify_challenge(tmp_path / "board") == ()
    ranks = tmp_path / "board" / "rank_responses.json"
    ranks.write_text(ranks.read_text().replace('"beta": 2.0', '"beta": 1.0', 1))
    assert "rank_responses.json: /methods/composite/beta" in words(
        verify_challenge(tmp_path / "board", is_quick=True)
    )


def test_responses_alone_have_pages(tmp_path):
    folder = begun(tmp_path, N, task=Task.CLASSIFICATION, n_resamples=10)
    shutil.rmtree(folder / "submissions")
    (folder / "submissions").mkdir()
    rows = [f"{case_id},{int(k % 3 == 0)},0.{k + 1}" for k, case_id in enumerate(ids(N))]
    table = folder / "submissions" / "only.csv"
    table.write_text("\n".join(("patient_id,pcr,score", *rows)))
    run_challenge(folder)
    rank_challenge(folder, tmp_path / "board")
    assert "only leads" in (tmp_path / "board" / "leaderboard.html").read_text()
    assert not (tmp_path / "board" / "rank.json").exists()
    assert verify_challenge(tmp_path / "board") == ()


@with_dots
def test_an_output_that_holds_something_is_refused_and_the_challenge_never_taken(challenge):
    written(challenge)
    with pytest.raises(SaveConflictError, match="to be empty, but it contains files"):
        rank_challenge(challenge, challenge.parent / "board")
    with pytest.raises(SaveConflictError, match="the run's inputs"):
        rank_challenge(challenge, challenge, existing=Existing.OVERWRITE)


@with_dots
def test_a_ranking_that_was_killed_is_whole_after_the_next(challenge):
    board = challenge.parent / "board"
    process = get_context("fork").Process(target=rank_challenge, args=(challenge, board))
    process.start()
    while process.is_alive() and not (board / "rank.json").exists():
        time.sleep(0.002)
    process.kill()
    process.join(30)
    written(challenge)
    assert verify_challenge(board, is_quick=True) == ()


@with_dots
def test_attempts_that_are_used_up_stand_on_the_board(tmp_path):
    folder = begun(tmp_path, 2, limits=ChallengeLimits(attempts=2))
    run_challenge(folder)
    for shift in (2, 0):
        write_team(folder / "submissions" / "beta", shift, 2)
        run_challenge(folder)
    row = ranked(folder)["beta"]
    assert (row.attempt, row.n_attempts) == (2, 2)
    assert row.performance < 0.9  # the third, which is right, was not scored
