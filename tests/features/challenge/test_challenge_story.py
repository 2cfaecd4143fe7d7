"""An organiser's story through the real commands: four teams and more, a board, a changed byte."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import ids, write_references, write_team

N = 6


def table_of(wrong):
    rows = [
        f"{case},{int((at % 3 == 0) ^ (at in wrong))},0.{at + 1}" for at, case in enumerate(ids(N))
    ]
    return "\n".join(("patient_id,pcr,score", *rows))


def run_challenge(*words):
    return mamamia("challenge", *words, has_figures=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return an organiser's folder after init, four teams and three that went wrong, and run."""
    root = tmp_path_factory.mktemp("organiser")
    references, folder = write_references(root, N), root / "Wettkampf ä"
    begun = run_challenge(
        "init", folder, "--reference", references, "--clinical", root / "clinical.csv",
        "--task", "both", "--bootstrap", 30, "--name", "Test cup",
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    teams = folder / "submissions"
    write_team(teams / "Größe", 0, N)
    (teams / "Größe" / "predictions.csv").write_text(table_of(()))
    write_team(teams / "damaged", 1, N)
    (teams / "damaged" / "C_00.nii.gz").write_bytes(b"no image")
    (teams / "damaged" / "C_01.nii.gz").unlink()
    (teams / "damaged" / "C_02.nii.gz").unlink()
    (teams / "damaged" / "C_02.nii.gz").symlink_to(references / "C_02.nii.gz")
    write_team(teams / "middle", 1, N)
    shutil.copytree(teams / "middle", teams / "copycat")
    (teams / "table.csv").write_text(table_of((1, 3)))
    (teams / "broken.zip").write_bytes(b"PK and nothing")
    with zipfile.ZipFile(teams / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("predictions.csv", "patient_id,pcr,score\n" + "C_00,1,0.5\n" * 3_000_000)
    (teams / "empty").mkdir()
    done = run_challenge("run", folder)
    return folder, done


def boards_of(board):
    content = json.loads((board / "leaderboard.json").read_text())
    return {
        one["task"]: [(row["team"], row["rank"]) for row in one["rows"]]
        for one in content["boards"]
    }, content["notes"]


def test_every_team_hears_what_became_of_its_work(world):
    _, done = world
    assert done.returncode == 3  # finished, but not everything is as it should be
    for text in ("Größe (masks), 1st attempt: scored", "copycat (masks), 1st attempt: scored",
                 "table (responses), 1st attempt: scored"):  # fmt: skip
        assert text in done.stdout
    assert "failed: broken: " in done.stderr
    assert "failed: bomb: expected files compressed at most 100 times in bomb.zip" in done.stderr
    assert "failed: empty: expected masks (ID.nii.gz), model.py or a table" in done.stderr
    assert "C_02" in done.stdout.partition("damaged: problems")[2]


def test_the_board_ranks_proves_itself_and_names_what_was_changed(world, tmp_path):
    folder, _ = world
    board = tmp_path / "board"
    ranked = run_challenge("rank", folder, "--out", board)
    assert ranked.returncode == 0, ranked.stderr
    assert "Masks: who leads: By composite Größe leads (score 1.0000; 6 cases)." in ranked.stdout
    assert "What would change the lead: " in ranked.stdout
    boards, notes = boards_of(board)
    assert boards["segmentation"][:4] == [
        ("Größe", 1), ("copycat", 2), ("middle", 2), ("damaged", 4),
    ]  # fmt: skip
    assert boards["classification"][:2] == [("Größe", 1), ("table", 2)]
    assert "copycat, damaged and middle have the same mask in 3 to 6 cases of each pair" in notes
    page = (board / "leaderboard.html").read_text()
    assert page.index("Masks: who leads") < page.index("<nav")
    assert 'href="teams/Grosse.html">Größe</a>' in page
    assert "Größe leads" in page
    again = run_challenge("rank", folder, "--out", board)
    assert again.returncode == 1
    assert "to be empty, but it contains files (challenge rank" in again.stderr
    assert run_challenge("rank", folder, "--out", board, "--overwrite").returncode == 0

    verified = run_challenge("verify", board)
    assert (verified.returncode, verified.stdout.startswith("verified: ")) == (0, True), (
        verified.stdout
    )
    (sealed,) = (folder / "results" / "middle").glob("*/sealed/C_03.nii.gz")
    for path, name in (
        (sealed, "middle, attempt 1: sealed copy: "),
        (board / "teams" / "middle.html", "leaderboard: teams/middle.html: line "),
        (next((folder / "attempts").rglob("*.jsonl")), "ledger: "),
    ):
        difference = change_byte(path, name, board)
        assert name in difference, difference
    table, whole = folder / "submissions" / "table.csv", table_of((1, 3))
    table.write_text(table_of((1,)))
    verified = run_challenge("verify", board, "--quick")
    table.write_text(whole)
    assert verified.returncode == 0
    assert "not checked: table: table.csv was changed" in verified.stdout


def change_byte(path: Path, name: str, board: Path) -> str:
    """Change one byte in the middle of a file, return what `verify` says of it, change it back."""
    whole = path.read_bytes()
    at = len(whole) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    told = run_challenge("verify", board, "--quick")
    path.write_bytes(whole)
    assert told.returncode == 3
    return told.stdout


def test_a_changed_ledger_stops_the_board_and_a_missing_folder_says_so(world, tmp_path):
    folder, _ = world
    path = max((folder / "attempts").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"team":"middle"', b'"team":"muddle"', 1))
    refused = run_challenge("rank", folder, "--out", tmp_path / "board")
    path.write_bytes(whole)
    assert refused.returncode == 1
    assert "expected the ledger of" in refused.stderr
    missing = run_challenge("rank", tmp_path / "nowhere", "--out", tmp_path / "board")
    assert missing.returncode == 1
    assert "found no challenge.json" in missing.stderr
    assert not (tmp_path / "board").exists()


def test_a_team_that_hands_in_twice_under_one_spelling_is_left_out_and_told(world):
    folder, _ = world
    twin = folder / "submissions" / "Middle.csv"
    twin.write_text("case_id,dsc\nC_00,1\n")
    try:
        done = run_challenge("run", folder, "--team", "middle")
    finally:
        twin.unlink()
    assert done.returncode == 3
    assert "expected one submission per team" in done.stderr
