"""Tamperings made by machine: each file of a board changed, removed, doubled and added to."""

import shutil

import pytest
from tests.features.challenge.challenge_world import begun, ids

from napari_mamamia.core.choices import Task
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.features.challenge.services.challenge.verify import verify_challenge

pytestmark = pytest.mark.usefixtures("quick_figures")
N = 6
BOARD_FILES = 13
"""Files of a board of three teams in two tasks; a new one needs no line here but this number."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("tampering")
    folder = begun(root, N, task=Task.BOTH, n_resamples=10)
    for team, wrong in (("alpha", 0), ("beta", 1)):
        rows = [
            f"{case_id},{int((k % 3 == 0) ^ (k < wrong))},0.{k + 1}"
            for k, case_id in enumerate(ids(N))
        ]
        table = folder / "submissions" / team / "predictions.csv"
        table.write_text("\n".join(("patient_id,pcr,score", *rows)))
    run_challenge(folder)
    rank_challenge(folder, root / "board")
    assert verify_challenge(root / "board", is_quick=True) == ()
    return root


def reported(root):
    return [f"{one.where}: {one.text}" for one in verify_challenge(root / "board", is_quick=True)]


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def tamper(path, way):
    """Tamper with a file; return a function that undoes it."""
    whole = path.read_bytes()
    if way == "changed":
        at = len(whole) // 2
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    elif way == "removed":
        path.unlink()
    elif way == "longer":
        path.write_bytes(whole + b"\n")
    else:
        twin = path.with_name(f"copy of {path.name}")
        shutil.copy(path, twin)
        return twin.unlink
    return lambda: path.write_bytes(whole)


@pytest.mark.parametrize("way", ["changed", "removed", "longer", "doubled"])
@pytest.mark.parametrize("index", range(BOARD_FILES))
def test_each_tampering_with_a_file_of_the_board_is_reported(world, index, way):
    files = files_below(world / "board")
    assert len(files) == BOARD_FILES, [path.name for path in files]
    undo = tamper(files[index], way)
    try:
        texts = reported(world)
    finally:
        undo()
    assert any(files[index].name in text for text in texts), texts


def test_each_tampering_with_the_results_of_a_team_is_reported(world):
    (folder,) = (world / "challenge" / "results" / "alpha").glob("*/")
    missed = []
    for path in files_below(folder):
        for way in ("changed", "removed", "doubled"):
            undo = tamper(path, way)
            try:
                if not reported(world):
                    missed.append((path.relative_to(folder), way))
            finally:
                undo()
    assert missed == []


def test_each_doubled_removed_or_changed_line_of_the_ledger_is_reported(world):
    path = min(
        (world / "challenge" / "attempts").rglob("*.jsonl"), key=lambda one: one.stat().st_mtime_ns
    )
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    missed = []
    for at, line in enumerate(lines):
        ways = {
            "doubled": [*lines[: at + 1], *lines[at:]],
            "removed": [*lines[:at], *lines[at + 1 :]],
            "changed": [*lines[:at], line.replace(b"a", b"b", 1), *lines[at + 1 :]],
        }
        for way, changed in ways.items():
            path.write_bytes(b"".join(changed))
            if not reported(world):
                missed.append((at, way))
    path.write_bytes(whole)
    assert missed == []


def test_a_team_that_goes_on_working_never_fails_the_sealed_board(world):
    team = world / "challenge" / "submissions" / "beta"
    path = team / "C_00.nii.gz"
    whole = path.read_bytes()
    for content in (b"x", None):
        path.unlink() if content is None else path.write_bytes(content)
        assert reported(world) == []
    path.write_bytes(whole)
    (world / "challenge" / "submissions" / "new.csv").write_text("case_id,dsc\n")
    assert reported(world) == []
