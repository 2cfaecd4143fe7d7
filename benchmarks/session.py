"""The editing session: undo, journal, memory and how long one call holds the window.

Run: python benchmarks/session.py [--check] [--strokes N]
A case of 96x384x384 voxels (2x0.7x0.7 mm), three phases int16, is painted with strokes of 10 and
20 mm radius along random paths of 60 mm, a place every 2 mm, into a session whose journal lies in
a temporary folder. Every call is timed as the window makes it: press, each drag, release (with the
journal's write), undo. Memory is the growth of the resident size over the strokes after the first
fifty. Limits: any undo 20 ms, journal write p95 5 ms, longest call 50 ms, memory the history limit.
"""

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Step
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import open_editing
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.smartpaint.brush.features import measure_features

SHAPE = (96, 384, 384)
SPACING_MM = (2.0, 0.7, 0.7)
LIMIT_BYTES = 64 << 20
UNDO_MS, WRITE_MS, CALL_MS = 20.0, 5.0, 50.0
N_WARM = 100
QUIET_LOAD = 1.0


def make_case() -> Case:
    rng = np.random.default_rng(1)
    signal = rng.normal(300, 20, (3, *SHAPE)).astype(np.int16)
    signal[1:, 36:60, 130:230, 130:230] += 100
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate((0.0, 150.0, 450.0)))
    z, y, x = SPACING_MM
    return Case("BENCHMARK", Grid(SHAPE, np.diag([x, y, z, 1.0])), signal, phases)


def path(rng: np.random.Generator) -> list[tuple[float, float, float]]:
    start, angle = rng.uniform((36, 130, 130), (60, 230, 230)), rng.uniform(0, 2 * np.pi)
    step = np.array([0.0, np.sin(angle), np.cos(angle)]) * 2.0 / np.array(SPACING_MM)
    return [tuple(map(float, start + k * step)) for k in range(31)]


class Timed:
    """Calls of a session, each timed in ms."""

    def __init__(self, editing: OpenEditing) -> None:
        self.session = editing.session
        self.calls: dict[str, list[tuple[float, float]]] = {}
        write = self.session.on_record
        self.session.on_record = lambda record: self.call(
            "journal write" if isinstance(record, Step) else "journal write (turn)", write, record
        )

    def call(self, name, function, *values):
        """Call a function and note how long it took."""
        start, cpu = time.perf_counter(), time.thread_time()
        result = function(*values)
        took = (time.perf_counter() - start, time.thread_time() - cpu)
        self.calls.setdefault(name, []).append((took[0] * 1000, took[1] * 1000))
        return result

    def stroke(self, rng: np.random.Generator, radius_mm: float) -> None:
        """Paint along a random path."""
        action = Action.ERASE if rng.random() < 0.3 else Action.ADD
        first, *others = path(rng)
        brush = Brush(radius_mm=radius_mm, action=action)
        self.call("press", self.session.press, first, brush)
        for place in others:
            self.call("drag", self.session.drag, place)
        self.call("release", self.session.release)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def big_steps(timed: Timed) -> None:
    """Lay a prediction over the mask: 1.3 million voxels in a box of 6 million."""
    box = Box((10, 60, 60), (86, 340, 340))
    axes = np.ogrid[tuple(slice(-1, 1, n * 1j) for n in box.shape)]
    ball = sum(a**2 for a in axes) < 0.55
    timed.call("apply 1.3 million voxels", timed.session.apply, "prediction", box, ball)


def turn_back(timed: Timed, n: int) -> None:
    for _ in range(n):
        timed.call("undo", timed.session.undo)
    for _ in range(n):
        timed.call("redo", timed.session.redo)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    parser.add_argument("--strokes", type=int, default=1000)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    case = make_case()
    images = measure_features(case)
    rng = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as folder:
        job = partial(
            open_editing, case, Workspace(Path(folder)), "B", None, images, limit_bytes=LIMIT_BYTES
        )
        editing = job()
        timed = Timed(editing)
        before = 0
        for number in range(options.strokes):
            if number == min(N_WARM, options.strokes - 1):
                before = resident_bytes()
            timed.stroke(rng, (10.0, 20.0)[number % 2])
        grown = resident_bytes() - before
        big_steps(timed)
        turn_back(timed, options.strokes // 2 + 5)
        size = editing.journal.path.stat().st_size
        held = editing.session.history.nbytes
        editing.close()
    return report(timed, grown, size, held, options.strokes, load, options.check)


def report(timed: Timed, grown: int, size: int, held: int, n: int, load: float, check: bool) -> int:
    quiet = load < QUIET_LOAD
    judged = "wall time" if quiet else "processor time, because the machine was busy"
    print(f"{n} strokes of 10 and 20 mm, load {load:.1f} before the run; judged by {judged}")
    print(f"  {'ms':26}  wall: p50     p95    most    processor: p50  p95    most")
    worst = {}
    for name, values in timed.calls.items():
        wall, cpu = np.percentile(np.array(values), (50, 95, 100), axis=0).T
        worst[name] = (wall if quiet else cpu)[1:]
        both = "".join(f"{value:8.2f}" for value in (*wall, *cpu))
        print(f"  {name:26}{both}   n={len(values)}")
    mb = 1 << 20
    print(f"  journal {size / mb:.0f} MB ({size / n / 1024:.0f} kB a stroke)")
    print(f"  history holds {held / mb:.0f} of {LIMIT_BYTES / mb:.0f} MB")
    print(f"  memory grown by {grown / mb:.0f} MB (limit {LIMIT_BYTES / mb:.0f} MB)")
    undo = worst["undo"][1]
    write = worst["journal write"][0]
    longest = max(most for _, most in worst.values())
    missed = {
        f"an undo of {undo:.1f} ms": undo > UNDO_MS,
        f"a journal write p95 of {write:.1f} ms": write > WRITE_MS,
        f"a call of {longest:.0f} ms": longest > CALL_MS,
        f"memory of {grown / mb:.0f} MB": grown > LIMIT_BYTES,
    }
    over = [text for text, is_over in missed.items() if is_over]
    print("over the limit: " + "; ".join(over) if over else "all within the limits")
    return int(check and bool(over))


if __name__ == "__main__":
    raise SystemExit(main())
