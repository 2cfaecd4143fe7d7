"""Random clicks in real windows, each in a process of its own: none ends in a crash or an error."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.window, pytest.mark.door]
STRESS = Path(__file__).parent / "stress.py"
FOREIGN = re.compile(r"(?!napari_mamamia\.core\.errors\.|BlockingIOError)[\w.]*(Error|Exception)\b")
"""The last line of a traceback, of an error that is none of ours; ours are told in the window."""
CRASHED = 104
"""The seed that ended in the driver within 24 actions, while commands of a canvas ran elsewhere."""


def run(folder, seed, actions):
    """Return how a process of random clicks ended, and what it printed."""
    command = [sys.executable, str(STRESS), str(folder), str(seed), str(actions)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def assert_went_well(folder, seed, actions):
    code, said, errors = run(folder, seed, actions)
    assert "Fatal Python error" not in errors, (said[-600:], errors[-6000:])
    foreign = [line for line in errors.splitlines() if FOREIGN.match(line)]
    assert foreign == [], (said[-600:], errors[-6000:])
    assert (code, said.splitlines()[-1:]) == (0, ["done"]), (said[-600:], errors[-6000:])


@pytest.mark.night
def test_random_clicks_in_3d_and_2d_with_layers_and_dock_taken_away_end_well(small_data_set):
    assert_went_well(small_data_set, CRASHED, 24)


@pytest.mark.night
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_sixty_random_clicks_end_well(small_data_set, seed):
    assert_went_well(small_data_set, seed, 60)
