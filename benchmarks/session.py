"""The editing session: undo, journal, memory and how long one call holds the window.

Run: python benchmarks/session.py [--check] [--strokes N] [--part dabs|evidence]

Dabs: a case of 96x384x384 voxels (2x0.7x0.7 mm), three phases int16, is painted with strokes of 10
and 20 mm radius along random paths of 60 mm, a place every 2 mm, into a session whose journal lies
in a temporary folder. Every call is timed as the window makes it: press, each drag, release (with
the journal's write), undo. Memory is the growth of the resident size over the strokes after the
first hundred. Limits: any undo 20 ms, journal write p95 5 ms, longest call 50 ms, memory the
history limit.

Evidence: a case of 160x448x448 voxels (1.1x0.8x0.8 mm), two phases, strokes of evidence of 3 to 8
mm radius on a lesion of 40 mm, every second press 10 mm long. Timed are the calls that the window's
thread makes: press, drag, lift, settle (with the journal's write); the solver, which a worker runs,
apart. Then the history is gone back to its beginning and on to its end in one act each. Limits:
each way 1 s of processor time, longest call of the window's thread 50 ms of processor time, memory
grown by 64 MB after the first hundred strokes.
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
from napari_mamamia.core.edits import Action, Brush, Step, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.garbage import collect_if_due, set_aside, take_back
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import open_editing
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.stroke import settle_stroke

SHAPE = (96, 384, 384)
SPACING_MM = (2.0, 0.7, 0.7)
LIMIT_BYTES = 64 << 20
UNDO_MS, WRITE_MS, CALL_MS = 20.0, 5.0, 50.0
LARGE = (160, 448, 448)
LARGE_SPACING_MM = (1.1, 0.8, 0.8)
WAY_S, FLAT_BYTES = 1.0, 64 << 20
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
        brush = Brush(Tool.SMARTPAINT, radius_mm=radius_mm, action=action)
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
    parser.add_argument("--part", choices=("dabs", "evidence"), default=None)
    options = parser.parse_args()
    parts = {"dabs": paint_dabs, "evidence": draw_evidence}
    chosen = [options.part] if options.part else list(parts)
    return max(parts[part](options.strokes, options.check) for part in chosen)


def paint_dabs(n_strokes: int, check: bool) -> int:
    """Paint, undo and redo with the brush of dabs; return 1 if a limit that counts is missed."""
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
        for number in range(n_strokes):
            if number == min(N_WARM, n_strokes - 1):
                before = resident_bytes()
            timed.stroke(rng, (10.0, 20.0)[number % 2])
        grown = resident_bytes() - before
        big_steps(timed)
        turn_back(timed, n_strokes // 2 + 5)
        size = editing.journal.path.stat().st_size
        held = editing.session.history.nbytes
        editing.close()
    return report(timed, grown, size, held, n_strokes, load, check)


def make_large_case() -> Case:
    rng = np.random.default_rng(1)
    signal = rng.normal(300, 20, (2, *LARGE)).astype(np.int16)
    z, y, x = (
        ((np.arange(n) - n / 2) * step) ** 2
        for n, step in zip(LARGE, LARGE_SPACING_MM, strict=True)
    )
    signal[1][z[:, None, None] + y[:, None] + x < 20.0**2] += 100
    z_mm, y_mm, x_mm = LARGE_SPACING_MM
    grid = Grid(LARGE, np.diag([x_mm, y_mm, z_mm, 1.0]))
    return Case("LARGE", grid, signal, (Phase(0, 0.0), Phase(1, 150.0)))


def draw_stroke(timed: Timed, rng: np.random.Generator) -> None:
    """Draw a stroke of evidence as the window does: lifted, settled by a worker, recorded."""
    away = rng.normal(0, 10, 3) / LARGE_SPACING_MM
    place = np.array(LARGE) / 2 + away
    action = Action.ERASE if rng.random() < 0.3 else Action.ADD
    brush = Brush(tool=Tool.EVIDENCE, radius_mm=float(rng.uniform(3, 8)), action=action)
    timed.call("press", timed.session.press, tuple(map(float, place)), brush)
    for step in range(1, 6 * int(rng.random() < 0.5)):
        timed.call("drag", timed.session.drag, (place[0], place[1] + 2.5 * step, place[2]))
    work = timed.call("lift", timed.session.lift)
    settled = timed.call("solver (a worker's)", settle_stroke, work)
    timed.call("settle", timed.session.settle, work, settled)


def draw_evidence(n_strokes: int, check: bool) -> int:
    """Draw strokes of evidence and go far in their history; return 1 if a limit is missed."""
    load = os.getloadavg()[0]
    case = make_large_case()
    images = measure_features(case)
    rng = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as folder:
        editing = open_editing(
            case, Workspace(Path(folder)), "B", None, images, limit_bytes=LIMIT_BYTES
        )
        timed = Timed(editing)
        before = 0
        set_aside()
        for number in range(n_strokes):
            if number == min(N_WARM, n_strokes - 1):
                before = resident_bytes()
            draw_stroke(timed, rng)
            collect_if_due()  # as the window does, between two actions
        grown = resident_bytes() - before
        last, held = timed.session.position, timed.session.history.nbytes
        for position in (0, last, 0, last // 2, last):
            way = f"from row {timed.session.position} to {position}"
            timed.call(way, timed.session.go_to, position)
        for _ in range(50):
            timed.call("undo", timed.session.undo)
        take_back()
        size = editing.journal.path.stat().st_size
        editing.close()
    print(f"{n_strokes} strokes of evidence, {last} steps, load {load:.1f}; processor time counts")
    print(f"  {'ms':26}  wall: p50     p95    most    processor: p50  p95    most")
    most = {}
    for name, values in timed.calls.items():
        wall, cpu = np.percentile(np.array(values), (50, 95, 100), axis=0).T
        most[name] = cpu[2]
        print(f"  {name:26}{''.join(f'{v:8.2f}' for v in (*wall, *cpu))}   n={len(values)}")
    mb = 1 << 20
    print(f"  journal {size / mb:.0f} MB, history holds {held / mb:.1f} MB")
    print(f"  memory grown by {grown / mb:.0f} MB (limit {FLAT_BYTES / mb:.0f} MB)")
    ways = {name: ms for name, ms in most.items() if name.startswith("from row")}
    calls = {name: most[name] for name in ("press", "drag", "lift", "settle", "undo")}
    missed = {f"{name}: {ms / 1000:.2f} s": ms > WAY_S * 1000 for name, ms in ways.items()} | {
        f"{name}: {ms:.0f} ms": ms > CALL_MS for name, ms in calls.items()
    }
    missed[f"memory of {grown / mb:.0f} MB"] = grown > FLAT_BYTES
    over = [text for text, is_over in missed.items() if is_over]
    print("over the limit: " + "; ".join(over) if over else "all within the limits")
    return int(check and bool(over))


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
