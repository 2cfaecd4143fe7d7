"""The case table of 100,000 rows: how long the GUI stalls while it is shown, filtered and sorted.

``python benchmarks/results_table.py [--rows N] [--check]``, under a screen (``xvfb-run -a`` where
there is none). The dock stands on a `ViewerModel`, so that napari draws nothing. A timer of 5 ms
ticks in the event loop; the longest time between two ticks is the stall. Limit: 50 ms.
"""

import argparse
import random
import sys
import time

from napari.components import ViewerModel
from qtpy.QtCore import QEventLoop, Qt, QTimer
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.core.records import CaseScore, CaseTag, ScoreStatus
from napari_mamamia.scoring.case.failures import Failure, FailureKind
from napari_mamamia.services.score.case_table import (
    case_table,
    with_failures,
    with_tags,
)
from napari_mamamia.services.score.inspections import CaseInspection
from napari_mamamia.services.score.score import cohort_numbers
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.widgets.dock.dock import MamamiaDock

LIMIT_MS = 50.0
TICK_MS = 5


class Heartbeat:
    """A 5 ms timer in the event loop that remembers its longest gap."""

    def __init__(self) -> None:
        self.last, self.longest = time.perf_counter(), 0.0
        self.timer = QTimer()
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self.tick)
        self.timer.start(TICK_MS)

    def tick(self) -> None:
        """Note how long ago the last tick was."""
        now = time.perf_counter()
        self.longest, self.last = max(self.longest, now - self.last), now

    def start(self) -> None:
        """Forget the gaps so far."""
        self.last, self.longest = time.perf_counter(), 0.0


def rows_of(n: int) -> tuple[CaseScore, ...]:
    """Return `n` scored cases, every seventh with a warning and every fiftieth unreadable."""
    chance = random.Random(42)
    rows = []
    for k in range(n):
        if k % 50 == 0:
            rows.append(CaseScore(f"CASE_{k:06d}", ScoreStatus.UNREADABLE, reason=f"cut at {k}"))
            continue
        rows.append(
            CaseScore(
                f"CASE_{k:06d}",
                ScoreStatus.OK,
                dsc=chance.random(),
                hausdorff95_mm=60 * chance.random(),
                norm_hd=chance.random(),
                volume_reference_mm3=10_000 * chance.random(),
                diameter_reference_mm=80 * chance.random(),
                warning="the reference consists of 2 separate parts" if k % 7 == 0 else "",
            )
        )
    return tuple(rows)


def pump(until, seconds: float = 60.0) -> None:
    end = time.perf_counter() + seconds
    while not until() and time.perf_counter() < end:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, TICK_MS)


def idle(seconds: float = 0.3) -> None:
    end = time.perf_counter() + seconds
    pump(lambda: time.perf_counter() > end)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond the limit")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    app = QApplication.instance() or QApplication([])
    rows = rows_of(options.rows)
    cohort = Cohort(
        tuple(
            CaseRecord(row.case_id, 30.0 + k % 50, MenopausalStatus.PRE, "abcd"[k % 4])
            for k, row in enumerate(rows)
        )
    )
    settings = ScoreSettings(n_resamples=0)
    model = cohort_numbers("net", rows, (), len(rows), settings, cohort)
    dock = MamamiaDock(ViewerModel())
    panel, cases = dock.results, dock.results.cases
    panel.resize(1000, 300)
    panel.setParent(None)
    panel.show()
    idle()
    beat, worst = Heartbeat(), 0.0
    made: dict = {}

    def step(name: str, action, until) -> None:
        nonlocal worst
        beat.start()
        began = time.perf_counter()
        action()
        pump(until)
        took = time.perf_counter() - began
        idle()
        worst = max(worst, beat.longest * 1000)
        print(f"{name:<42} {took * 1000:8.0f} ms   longest stall {beat.longest * 1000:6.1f} ms")

    def job(name: str, work) -> None:
        made.pop("end", None)
        step(
            name,
            lambda: dock.jobs.start("bench", name, work, lambda out: made.update(end=out.result)),
            lambda: "end" in made,
        )

    def choose(box, start: str) -> None:
        texts = [box.itemText(k) for k in range(box.count())]
        box.setCurrentIndex(next(k for k, text in enumerate(texts) if text.startswith(start)))

    def shown(n=None):
        return lambda: len(cases.rows.case_ids()) if n is None else cases.rows.rowCount() == n

    print(f"{options.rows:,} rows")
    job("make the table (thread)", lambda: case_table(model, {}))
    table = made["end"]
    step("show it", lambda: cases.show_table(table, "net"), shown(len(rows)))
    found = [
        CaseInspection(row.case_id, (Failure(FailureKind.FRAGMENTED, "in 3 parts"),), None)
        for row in rows[::9]
    ]
    job("kinds of failure (thread)", lambda: with_failures(table, found))
    table = made["end"]
    tags = [CaseTag(row.case_id, "clip", "Ana", "2026") for row in rows[::100]]
    job("tags (thread)", lambda: with_tags(table, tags))
    table = made["end"]
    step(
        "show more of the same",
        lambda: cases.update_table(table),
        lambda: cases.rows.table is table,
    )
    for title, column in (("Dice", 2), ("case", 0), ("reason", 10)):
        for order in (Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder):
            done: list = []
            cases.reordered.connect(lambda done=done: done.append(1))
            step(
                f"sort by {title}, {'down' if order.value else 'up'}",
                lambda column=column, order=order: cases.table.sortByColumn(column, order),
                lambda done=done: bool(done),
            )
    filters = cases.filters
    n_bad = sum(row.status is ScoreStatus.UNREADABLE for row in rows)
    step("filter by status", lambda: choose(filters.status, "unreadable"), shown(n_bad))
    step("clear", filters.clear_all, shown(len(rows)))
    step("filter by failure kind", lambda: choose(filters.failure, "fragmented"), shown(len(found)))
    step("clear", filters.clear_all, shown(len(rows)))
    n_odd = sum(bool(row.warning) for row in rows)
    step("search two words", lambda: filters.search.setText("separate parts"), shown(n_odd))
    step("clear", filters.clear_all, shown(len(rows)))
    step(
        "scroll to the end",
        cases.table.scrollToBottom,
        lambda: cases.table.verticalScrollBar().value() > 0,
    )
    step("mark the open case", lambda: cases.set_current(rows[-1].case_id), lambda: True)
    print(f"longest stall {worst:.1f} ms (limit {LIMIT_MS:g} ms)")
    dock.close_down()
    panel.close()
    app.processEvents()
    return int(options.check and worst > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
