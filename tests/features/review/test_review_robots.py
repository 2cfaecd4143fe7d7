"""Readers who are programs, killed at random moments on a share that fails: nothing is lost."""

import errno
import random

import numpy as np
import pytest
from tests.review_robot import Robot, run_robots
from tests.review_study import study

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.review import ReadingMode
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import write_study
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.check_study import verify_study
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_volume

GRID = Grid.of_spacing((4, 10, 10), (2.0, 1.0, 1.0))


def robots_of(tmp_path, n_readers, n_cases):
    """A study, and a robot for each reader; for every fourth the share is often away."""
    names = [f"r{number:02d}" for number in range(n_readers)]
    folder = tmp_path / "STUDY"
    cases = [f"case {number}" for number in range(n_cases)]
    write_study(folder, study(mode=ReadingMode.INDEPENDENT, readers=names, cases=cases))
    masks = []
    for rows in (4, 4, 4, 1):
        array = np.zeros(GRID.shape, np.uint8)
        array[1:3, 2 : 2 + rows, 2:8] = 1
        path = tmp_path / f"{rows}-{len(masks)}.nii.gz"
        write_volume(array, GRID, path)
        masks.append(path.read_bytes())
    fails = [0.3 if number % 4 == 0 else 0.0 for number in range(n_readers)]
    return folder, [
        Robot(folder, tmp_path / who, who, tuple(masks), share)
        for who, share in zip(names, fails, strict=True)
    ]


def require_whole(folder, robots, n_cases, n_deaths, home):
    """Everything that was told to be kept is there, read once by each, and nothing is wrong."""
    store = FolderStore(folder, home, host="lead", session="1")
    checked = verify_study(store)
    assert checked.problems == ()
    hashes = {event.hash for chain in store.read().chains.values() for event in chain}
    acknowledged = {line for one in robots for line in one.ledger.read_text().split()}
    assert acknowledged <= hashes
    # of each death at most the reading that it was about to note is in no ledger
    assert len(acknowledged) >= len(robots) * n_cases - n_deaths
    state = load_state(store)
    assert all(reading.state is CaseState.READ for view in state.cases for reading in view.readings)
    assert sum(len(view.readings) for view in state.cases) == len(robots) * n_cases
    assert {view.state for view in state.cases} <= {CaseState.READ, CaseState.DISAGREES}
    assert not list(home.parent.glob("r*/*/events/**/*.jsonl")), "something waits to be sent"


def find_tampering(folder, home, rng, n_bytes):
    """Change bytes of random files, one at a time; return the places where nobody noticed."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "claims"]
    files = [path for path in files if path.stat().st_size > 1]  # one killed before its first line
    unnoticed = []
    for number in range(n_bytes):
        path = rng.choice(files)
        whole = path.read_bytes()
        at = rng.randrange(len(whole) - 1)
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
        )
        try:
            store = FolderStore(folder, home / str(number), host="check", session="1")
            problems = verify_study(store).problems
        except FormatError:
            problems = ("cannot be opened",)
        if not problems:
            unnoticed.append((path.name, at))
        path.write_bytes(whole)
    return unnoticed


def test_robots_killed_at_any_moment_lose_nothing_and_open_no_socket(tmp_path):
    folder, robots = robots_of(tmp_path, 4, 3)
    n_deaths = run_robots(robots, n_kills=4, seed=1, n_readings=4 * 3)
    assert n_deaths > 0
    require_whole(folder, robots, 3, n_deaths, tmp_path / "lead")
    assert find_tampering(folder, tmp_path / "checks", random.Random(2), 15) == []


@pytest.mark.night
@pytest.mark.timeout(6000)
def test_twenty_robots_read_two_hundred_cases(tmp_path):
    folder, robots = robots_of(tmp_path, 20, 200)
    n_deaths = run_robots(robots, n_kills=150, seed=3, n_readings=20 * 200)
    assert n_deaths > 100
    require_whole(folder, robots, 200, n_deaths, tmp_path / "lead")
    assert find_tampering(folder, tmp_path / "checks", random.Random(4), 40) == []


def test_nobody_begins_in_a_study_that_was_never_seen(tmp_path):
    """What is not seen was taken for what nobody read: the case was read twice, the second lost."""
    folder, (robot,) = robots_of(tmp_path, 1, 1)
    store = FolderStore(folder, tmp_path / "new", host="r00", session="1")
    reach = store._require_share

    def fail():
        raise OSError(errno.ESTALE, "Stale file handle")

    store._require_share = fail
    session = ReviewSession(store, robot.who, tmp_path / "new")
    task = session.next_task()
    with pytest.raises(FormatError, match="Stale file handle"):
        session.claim(task)
    store._require_share = reach
    session.refresh()
    assert session.holds(session.claim(task))
    session.close()
