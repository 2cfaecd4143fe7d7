"""Page Review in the real window: how long it holds its thread; 200 cases, 3,000 events.

Run under a screen: ``xvfb-run -a python benchmarks/review_window.py [--check]``. One person who is
lead, adjudicator and reader at once, so that every list is as long as it gets. For each action
stands the longest turn of the event loop in processor time of the window's thread, drawing by
OpenGL apart (see main_thread.py). Limit: 50 ms.
"""

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = str(Path(settings.name) / "settings.yaml")
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import napari  # noqa: E402
from qtpy.QtCore import QTimer  # noqa: E402

from main_thread import MeteredApplication, rest, wait_until  # noqa: E402
from napari_mamamia.features.review.core.review import (  # noqa: E402
    ReadingMode,
    Role,
    Study,
    StudyCase,
    StudyPlan,
    StudyReader,
    Task,
)
from napari_mamamia.features.review.io.study_file import write_study  # noqa: E402
from napari_mamamia.features.review.services.judging import reopen_case  # noqa: E402
from napari_mamamia.io.files.append_file import canonical  # noqa: E402
from napari_mamamia.io.files.checksums import sha256_of  # noqa: E402
from napari_mamamia.widgets.dock.place import show_dock  # noqa: E402

N_CASES, READERS, LIMIT_MS = 200, ("lea", "ana", "ben", "cle", "dan"), 50.0
WAITS_MS = 700


class Writer:
    """A person's file of events, written by a short cut; `tell` returns the event's hash."""

    def __init__(self, folder: Path, reader: str, origin: str) -> None:
        self._path = folder / "events" / reader / "PC-1.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._reader, self._prev, self._seq = reader, origin, 0

    def tell(self, case: int, seen: list[str], **body: object) -> str:
        """Write an event of a case."""
        minute = self._seq % 60, self._seq // 60 % 24, 1 + self._seq // 1440
        entry = {
            "schema": 1,
            "reader": self._reader,
            "host": "PC",
            "session": "1",
            "at": f"2026-11-{minute[2]:02d}T{minute[1]:02d}:{minute[0]:02d}:00.000000+00:00",
            "seen": sorted(seen),
            "body": {"case": f"c{case:04d}", "round": 1, **body},
        }
        text = b'"prev":"%s","seq":%d,"entry":%s}' % (
            self._prev.encode(),
            self._seq,
            canonical(entry),
        )
        self._prev = hashlib.sha256(text).hexdigest()
        with self._path.open("ab") as stream:
            stream.write(b'{"hash":"%s",%s\n' % (self._prev.encode(), text))
        self._seq += 1
        return self._prev


def write(folder: Path) -> None:
    """Make the study: five read each case, a third disagree, a third is decided."""
    everything = (Role.LEAD, Role.ADJUDICATOR, Role.READER)
    people = [
        StudyReader(one, one.title(), everything if one == "lea" else (Role.READER,))
        for one in READERS
    ]
    cases = [StudyCase(f"c{k:04d}", f"PATIENT_{k:04d}_EXAM") for k in range(N_CASES)]
    turns = [(READERS[(k + j) % 5], k) for k in range(N_CASES) for j in range(5)]
    tasks = [Task(reader, f"c{k:04d}") for reader, k in turns]
    plan = StudyPlan("Large", ReadingMode.INDEPENDENT, 5)
    at = "2026-11-01T00:00:00+00:00"
    write_study(
        folder,
        Study("large", at, "test", "nowhere", plan, tuple(cases), tuple(people), tuple(tasks)),
    )
    origin = sha256_of(folder / "study.json")
    writers = {one: Writer(folder, one, origin) for one in READERS}
    for k in range(N_CASES):
        of = []
        for reader, _ in turns[5 * k : 5 * k + 5]:
            writers[reader].tell(k, [], act="claim")
            writers[reader].tell(k, [], act="start")
            if not (k % 10 == 9 and reader == "lea"):  # some are still in work
                of.append(writers[reader].tell(k, [], act="read", answers="{}", active_s=90))
        if len(of) == 5:
            because = [f"Dice 0.{k:03d} below 0.7; volumes 3.55 to 1, above 1.5"] * (k % 3 == 0)
            body = {"agrees": not because, "because": because, "values": {"dice": f"0.{k:03d}"}}
            digest = writers["ana"].tell(k, of, act="compare", of=sorted(of), **body)
            if k % 3 == 1:
                writers["lea"].tell(k, [digest], act="accept", choice="ana")


def main() -> int:
    """Measure each action; 1 where `--check` was given and one is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    application = MeteredApplication(sys.argv[:1])
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1400, 900)
    panel = show_dock(viewer, "Review")
    rest(2000)
    worst = 0.0

    def measure(name, act, until=lambda: True) -> None:
        nonlocal worst
        action = application.begin()
        QTimer.singleShot(0, act)  # within a turn, as a click is
        wait_until(until)
        rest(WAITS_MS)
        ms = 1000 * action.longest
        worst = max(worst, ms)
        print(f"{name:34} {ms:6.1f} ms   {action.where}")

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "STUDY"
        write(folder)
        n_events = sum(len(one.read_bytes().splitlines()) for one in folder.rglob("*.jsonl"))
        print(f"{N_CASES} cases, {n_events} events")
        page, flow = panel.flow("Review").page, panel.flow("Review")
        measure(
            "the study opens",
            lambda: flow.open_study(folder, "Lea"),
            lambda: flow.client,
        )
        measure("everything is shown", flow.look, lambda: page.signing.things.count() > 0)
        measure("looked at again, nothing new", flow.look)
        for at in range(page.tabs.count()):
            measure(f"tab {page.tabs.tabText(at)}", lambda at=at: page.tabs.setCurrentIndex(at))
        client = flow.client
        case = next(one.case for one in client.look().disputes if one.state.value == "accepted")
        reopen_case(client, case, "again")
        measure("a case more to show", flow.look)
        measure("another meaning to sign as", lambda: turn_meaning(page.signing))
        measure("all is chosen to be signed", page.signing.things.selectAll)
        panel.close_down()
    print(f"longest {worst:.1f} ms, limit {LIMIT_MS:g} ms")
    return int(options.check and worst > LIMIT_MS)


def turn_meaning(view) -> None:
    """Choose the last meaning."""
    view.meaning.setCurrentIndex(view.meaning.count() - 1)
    view.meaning.activated.emit(view.meaning.count() - 1)


if __name__ == "__main__":
    sys.exit(main())
