"""What the board says besides ranks: chance, gate, copies of references, twins, level-down."""

import json
import shutil

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import begun, ids, reference, write_mask, write_team

from napari_mamamia.core.choices import Task
from napari_mamamia.features.challenge.services.challenge.board_pages import (
    describe_row,
    rank_challenge,
    show_rank,
)
from napari_mamamia.features.challenge.services.challenge.evidence import find_level_down
from napari_mamamia.features.challenge.services.challenge.run import run_challenge

pytestmark = pytest.mark.usefixtures("quick_figures")
N = 12


def table(folder, team, predicted):
    rows = [
        f"{case_id},{int(pcr)},{0.3 + 0.4 * pcr + 0.001 * at}"
        for at, (case_id, pcr) in enumerate(zip(ids(N), predicted, strict=True))
    ]
    path = folder / "submissions" / f"{team}.csv"
    path.write_text("\n".join(("patient_id,pcr,score", *rows)))


@pytest.fixture(scope="module")
def responses(tmp_path_factory):
    """Return the board of an honest team and of one that says no to all cases but one."""
    root = tmp_path_factory.mktemp("responses")
    folder = begun(root, N, task=Task.CLASSIFICATION, n_resamples=20, gate=0.6)
    shutil.rmtree(folder / "submissions")
    (folder / "submissions").mkdir()
    response = np.arange(N) % 3 == 0
    honest = response.copy()
    honest[1] = True
    table(folder, "honest", honest)
    table(folder, "gamer", np.arange(N) == 1)  # wrong even there
    run_challenge(folder)
    ranking = rank_challenge(folder, root / "board")
    (board,) = ranking.board.boards
    return root / "board", {row.team: row for row in board.rows}


def test_an_entry_no_better_than_chance_is_marked_at_its_rank(responses):
    folder, rows = responses
    # of 12 cases 4 respond, 5 are predicted to, among them these 4: C(8, 1) of C(12, 5) ways
    assert rows["honest"].chance.p_value == pytest.approx(8 / 792)
    assert rows["honest"].chance.is_better
    # one predicted, no hit: any labelling reaches it
    assert rows["gamer"].chance.p_value == pytest.approx(1.0)
    assert not rows["gamer"].chance.is_better
    assert "no better than chance" in show_rank(rows["gamer"])
    assert show_rank(rows["honest"]) == str(rows["honest"].rank)
    assert "no better than chance" in describe_row(rows["gamer"])
    assert f">{show_rank(rows['gamer'])}<" in (folder / "leaderboard.html").read_text()
    (board,) = json.loads((folder / "leaderboard.json").read_text())["boards"]
    chance = {row["team"]: row["chance"] for row in board["rows"]}
    assert chance["gamer"]["is_better"] is False
    assert chance["honest"]["auc_low"] < chance["honest"]["auc"] <= chance["honest"]["auc_high"]


def test_below_the_gate_fairness_counts_as_zero(responses):
    _, rows = responses
    assert rows["gamer"].gated_score == pytest.approx(rows["gamer"].performance / 2)
    assert rows["honest"].gated_score == pytest.approx(rows["honest"].score)
    assert (rows["honest"].gated_rank, rows["gamer"].gated_rank) == (1, 2)


def test_copies_of_references_are_an_alarm_on_the_board_and_in_its_files(tmp_path):
    folder = begun(tmp_path, 6)
    teams = folder / "submissions"
    for number, case_id in enumerate(ids(6)):  # the same voxels in other bytes
        write_mask(teams / "beta" / f"{case_id}.nii.gz", reference(number), dtype=np.int16)
    run_challenge(folder)
    ranking = rank_challenge(folder, tmp_path / "board")
    rows = {row.team: row for row in ranking.board.boards[0].rows}
    assert (rows["alpha"].n_copies, rows["alpha"].n_near_copies) == (6, 0)
    assert (rows["beta"].n_copies, rows["beta"].n_near_copies) == (0, 6)
    assert [rows[team].is_alarming for team in ("alpha", "beta", "gämma")] == [True, True, False]
    content = json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    assert [note[:6] for note in content["notes"]] == ["alpha:", "beta: "]
    page = (tmp_path / "board" / "leaderboard.html").read_text()
    assert page.count("ALARM") >= 4  # as warnings and as remarks


def test_twins_are_one_note_for_each_group_of_teams(tmp_path):
    folder = begun(tmp_path, 6)
    teams = folder / "submissions"
    for name in ("copy", "other"):
        shutil.copytree(teams / "beta", teams / name)
    write_mask(teams / "other" / "C_00.nii.gz", np.roll(reference(0), 2, axis=0))
    write_team(teams / "alpha", 3, 6)
    shutil.copytree(teams / "gämma", teams / "zeta")
    run_challenge(folder)
    notes = rank_challenge(folder, tmp_path / "board").board.notes
    assert notes == (
        "beta, copy and other have the same mask in 5 to 6 cases of each pair",
        "gämma and zeta have the same mask in 6 cases",
    )


def test_the_gain_of_worse_masks_in_a_group_is_named(tmp_path):
    n = 12
    folder = begun(tmp_path, n, n_resamples=0)
    teams = folder / "submissions"
    write_team(teams / "beta", 0, n)
    for number in range(0, n, 2):  # the even cases, post, are poor
        moved = np.roll(reference(number), 2, axis=1)
        write_mask(teams / "beta" / f"{ids(n)[number]}.nii.gz", moved)
    worse = np.roll(reference(1), 2, axis=1)
    write_mask(teams / "beta" / "C_01.nii.gz", worse)  # in the better group
    run_challenge(folder)
    ranking = rank_challenge(folder, tmp_path / "board")
    model = dict(ranking.models)["beta"]
    dsc = np.array([row.dsc for row in model.rows])
    norm_hd = np.array([row.norm_hd for row in model.rows])
    age = np.digitize(35 + 5 * np.arange(n), (40, 50, 60, 70), right=True)

    def score(is_counted):
        means, fair = (dsc[is_counted].mean() + 1 - norm_hd[is_counted].mean()) / 2, []
        for codes in (age, np.arange(n) % 2, np.arange(n) % 2):
            groups = [is_counted & (codes == code) for code in np.unique(codes)]
            gaps = [
                np.ptp([values[group].mean() for group in groups if group.any()])
                for values in (dsc, norm_hd)
            ]
            fair.append(1 - sum(gaps) / 2)
        return (means + np.mean(fair)) / 2

    everyone, gains = np.ones(n, bool), {}
    for codes in (age, np.arange(n) % 2):
        for code in np.unique(codes):
            members = np.flatnonzero(codes == code)
            if members.size > 1:
                worst = members[np.argmin((dsc + 1 - norm_hd)[members])]
                gains[worst] = score(everyone) - score(np.arange(n) != worst)
    (row,) = (row for row in ranking.board.boards[0].rows if row.team == "beta")
    assert row.score == pytest.approx(score(everyone))
    first = row.level_down[0]
    assert (first.k, first.gain) == (1, pytest.approx(max(gains.values())))
    assert gains[1] > 0
    assert [effect.k for effect in row.level_down] == [1, 2, 3]
    assert find_level_down(model, dsc, np.ones(n, bool), None) == ()


def test_init_names_the_profile_and_where_its_definitions_come_from(tmp_path):
    begun(tmp_path, 3)
    words = ("--reference", tmp_path / "reference", "--clinical", tmp_path / "clinical.csv")
    done = mamamia("challenge", "init", tmp_path / "new", *words)
    assert done.returncode == 0, done.stderr
    assert "official-code" in done.stdout
    done = mamamia(
        "challenge", "init", tmp_path / "other", *words, "--profile", "official-code",
        "--gate", "0.5",
    )  # fmt: skip
    assert "the computations of the published scripts" in done.stdout
    assert json.loads((tmp_path / "other" / "challenge.json").read_text())["gate"] == 0.5
