"""kill -9 while painting: every stroke that was acknowledged is there at the next opening."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

N_SESSIONS = 25
"""In each of four sweeps: a hundred kills at night, eight for each commit."""


@pytest.fixture(scope="module")
def painting():
    sys.path.insert(0, str(Path(__file__).parent))
    import painting

    yield painting
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def painter():
    """A warm process that forks one painting child after the other."""
    program = str(Path(__file__).with_name("painting.py"))
    process = subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=60)


def kill_while_painting(painter, folder, seed, after):
    """Kill the child -9 as soon as it said `after` words; return all that it acknowledged."""
    painter.stdin.write(f"{folder} {seed}\n")
    painter.stdin.flush()
    pid = int(painter.stdout.readline().split()[1])
    acknowledged = {}
    killed = after == 0
    if killed:
        os.kill(pid, signal.SIGKILL)
    while (words := painter.stdout.readline().split())[0] != "gone":
        if words[0] == "done":
            acknowledged[int(words[1])] = int(words[2])
        if not killed and len(acknowledged) >= after:
            killed = True
            os.kill(pid, signal.SIGKILL)
    return acknowledged


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("sweep", "n_sessions"),
    [(0, 8), *(pytest.param(k, N_SESSIONS, marks=pytest.mark.night) for k in range(4))],
)
def test_every_acknowledged_stroke_of_killed_sessions_is_back(
    painter, painting, tmp_path, sweep, n_sessions
):
    from napari_mamamia.core.edits import Step
    from napari_mamamia.io.workspace.journal import Damage, scan_journal
    from napari_mamamia.services.refine.journal_play import JournalPlay

    case = painting.make_case()
    images = painting.make_images(case)
    rng = np.random.default_rng(3 + sweep)
    n_strokes = 0
    for seed in range(N_SESSIONS * sweep, N_SESSIONS * sweep + n_sessions):
        folder = tmp_path / str(seed)
        acknowledged = kill_while_painting(painter, folder, seed, int(rng.integers(0, 25)))
        journal = painting.journal_of(folder)
        found = {}
        play = JournalPlay(journal)
        for item in scan_journal(journal) if journal.exists() else ():
            if isinstance(item, Damage):
                assert item.reason == "it is incomplete"
                break
            play.take(item)
            if isinstance(item.record, Step):
                found[item.record.number] = painting.crc_of_state(play.session)
        assert {number: found.get(number) for number in acknowledged} == acknowledged, seed
        n_strokes += len(acknowledged)

        editing = painting.open_for(folder, case, images)
        if found:
            last = max(found)
            assert last <= max(acknowledged, default=0) + 1, seed  # the stroke in hand at most
            assert painting.crc_of_state(editing.session) == found[last], seed
            assert editing.recovered.n_steps == len(found), seed
            assert len(editing.session.steps) == len(found), seed
        editing.close()
    assert n_strokes > 8 * n_sessions
