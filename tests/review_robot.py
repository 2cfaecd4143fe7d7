"""Readers of a review study who are programs; also what the worlds of faults are furnished with."""

import errno
import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.features.review.core.review import Role
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.session import ReviewSession


def read_all(folder: Path, home: Path, masks: Path) -> None:
    """Let every reader of a study read all cases, with the masks of a folder in turn."""
    contents = [path.read_bytes() for path in sorted(masks.glob("*.nii.gz"))]
    for number, who in enumerate(one.reader_id for one in FolderStore(folder, home).study.readers):
        store = FolderStore(folder, home / who, host=who, session="1")
        session = ReviewSession(store, who, home / who)
        while (task := session.next_task()) is not None:
            session.claim(task)
            session.start(task)
            session.finish(task, contents[number % len(contents)], {"bpe": "mild"}, active_s=60)
        session.close()
    lead = next(one.reader_id for one in store.study.readers if Role.LEAD in one.roles)
    judge = ReviewSession(FolderStore(folder, home / "judge", host="judge"), lead, home / "judge")
    for view in judge.state.cases:
        if view.state is CaseState.DISAGREES:
            judge.adjudicate(view.key)
            judge.decide(view.key, view.readings[0].mask, view.readings[0].reader, "it is closer")
        else:
            judge.accept(view.key)
    judge.close()


# ------------------------------------------------------------------------ robots


HASH = 64


@dataclass(frozen=True)
class Robot:
    """A reader in a process of its own; `fails` is how often the share is away for it, 0 to 1."""

    folder: Path
    home: Path
    who: str
    masks: tuple[bytes, ...]
    fails: float = 0.0

    @property
    def ledger(self) -> Path:
        """Where it notes what the program told it to be kept: the hash of each event, a line."""
        return self.home / "ledger.txt"

    @property
    def n_kept(self) -> int:
        """How many readings it was told to be kept."""
        return self.ledger.stat().st_size // (HASH + 1) if self.ledger.exists() else 0

    def work(self, seed: int) -> None:
        """Read all that is given, from wherever an earlier self was killed."""
        refuse_sockets()
        rng = random.Random(seed)
        self.home.mkdir(exist_ok=True)
        store = FolderStore(self.folder, self.home, host=self.who, session=str(seed))
        reach = store._require_share

        def reach_now_and_then():
            if rng.random() < self.fails:
                raise OSError(errno.ESTALE, "Stale file handle")
            reach()

        store._require_share = reach_now_and_then
        session = ReviewSession(store, self.who, self.home)
        with self.ledger.open("a") as ledger:
            while (task := session.next_task()) is not None:
                if not store.is_known:
                    session.refresh()  # nobody begins in a study that was never seen
                    continue
                if not session.holds(session.claim(task)):
                    continue  # a dead self's, which could not be let go of while the share is away
                session.start(task)
                mask = self.masks[rng.randrange(len(self.masks))]
                event = session.finish(task, mask, {"bpe": rng.choice("ab")}, active_s=1)
                ledger.write(f"{event.hash}\n")
                ledger.flush()
                os.fsync(ledger.fileno())
        store._require_share = reach
        session.close()


def refuse_sockets():
    """End this process with 77 where anything opens a socket."""

    def look(event, _):
        if event in ("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo"):
            os._exit(77)

    sys.addaudithook(look)


def run_robots(robots: Sequence[Robot], n_kills: int, seed: int, n_readings: int) -> int:
    """Let robots work at once, kill one again and again; return how many died.

    Kills are spread over all `n_readings`: each comes at a random moment behind the reading of a
    random number. A robot is started anew until it ends by itself.
    """
    rng = random.Random(seed)
    places = sorted(rng.randrange(n_readings) for _ in range(n_kills))
    context = multiprocessing.get_context("fork")
    n_starts = itertools.count(seed * 1000)

    def start(robot: Robot):
        process = context.Process(target=robot.work, args=(next(n_starts),), daemon=True)
        process.start()
        return process

    at_work = {robot: start(robot) for robot in robots}
    n_deaths = 0
    while at_work:
        time.sleep(rng.random() * 0.1)
        victim = rng.choice([*at_work.values()])
        if places and places[0] <= sum(one.n_kept for one in robots) and victim.is_alive():
            places.pop(0)
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
        for robot, process in list(at_work.items()):
            if process.is_alive():
                continue
            process.join()
            if process.exitcode == 0:
                del at_work[robot]
                continue
            assert process.exitcode == -signal.SIGKILL, f"{robot.who} ended: {process.exitcode}"
            n_deaths += 1
            at_work[robot] = start(robot)
    return n_deaths
