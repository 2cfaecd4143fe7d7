"""What a challenge of masks and responses says of teams that are not ranked in one of the tasks."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.test_official_numbers import OFFICIAL, PCR, name_of, world  # noqa: F401
from tests.cli.warm_program import mamamia

pytestmark = pytest.mark.usefixtures("quick_figures")


def table(path, predicted):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{name_of(k)},{pcr},{0.2 + 0.6 * pcr}" for k, pcr in enumerate(predicted)]
    path.write_text("\n".join(("patient_id,pcr,score", *rows)))


def test_each_table_says_why_a_team_has_no_rank(world, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    folder = Path("challenge")
    done = mamamia(
        "challenge", "init", folder, "--reference", world / "reference", "--clinical",
        world / "clinical.csv", "--task", "both", *OFFICIAL, has_figures=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    submissions = folder / "submissions"
    for team in ("good", "part"):
        (submissions / team).mkdir(parents=True)
        for path in (world / "team").iterdir():
            (submissions / team / path.name).write_bytes(path.read_bytes())
    one_wrong = np.array(PCR)
    one_wrong[0] = 0
    table(submissions / "good" / "predictions.csv", one_wrong)
    table(submissions / "part" / "predictions.csv", PCR[:5])
    table(submissions / "constant.csv", [0] * len(PCR))
    ran = mamamia("challenge", "run", folder, has_figures=False)
    incomplete = (
        "expected exactly one response for each of 8 cases, but found none or several for 3"
    )
    assert f"part (masks), 1st attempt: scored: {incomplete}" in ran.stdout
    done = mamamia("challenge", "rank", folder, "--out", tmp_path / "board", has_figures=False)
    assert done.returncode == 0, done.stderr
    responses = done.stdout[done.stdout.index("classification") :]
    assert f"part: n 0; no attempt; not ranked: {incomplete}" in responses
    assert "constant: n 8; 1st attempt; not ranked: all 8 predictions are 0" in responses
    assert "constant: n 0; no attempt; not ranked: no submission for this task" in done.stdout
    # Alone with a rank, good leads at any weight, though constant has the higher score.
    assert "Leading response model: good leads" in done.stdout
    assert "Another fairness weight" not in responses
    boards = json.loads((tmp_path / "board" / "leaderboard.json").read_text())["boards"]
    (board,) = (board for board in boards if board["task"] == "classification")
    reasons = {row["team"]: row["reason"] for row in board["rows"]}
    assert reasons["part"].startswith(incomplete)
    assert incomplete in (tmp_path / "board" / "leaderboard.html").read_text()
    assert mamamia("challenge", "verify", folder, has_figures=False).returncode == 0
