"""Strokes that a robot reader needs to correct a mask, and what growth makes of true outlines.

    python benchmarks/refine.py [--set tune|report|warn] [--scene NAME] [--start NAME]
                                [--tool NAME] [--hands 11,12,13] [--budget 10] [--check]
                                [--within] [--steady] [--compiled] [--folder DIR] [--from MIRRORS]

The scenes stand in ``refine_scenes.json``, fixed by seed and file before the evidence brush was
tuned on any: ``tune`` may be looked at, figures are given on ``report``, ``warn`` are lesions that
cannot be seen. ``--folder`` (or MAMAMIA_REFINE) keeps them as .npz, some 40 MB; the breast exams
are fetched then (``--from`` a folder of bare repositories OWNER+NAME/repo). Without it, and without
MAMAMIA_REAL_DATA, what is absent is left out, each with a line.

The robot is described in ``refining/robot.py``, its tools in ``refining/tools.py``, the starts in
``refining/starts.py``. The evidence brush has a circle of 1.43 times the wrong part's depth; it
acts on the whole lesion where that part reaches beyond 1.1 windows, and gives way to a press with
the plain sphere after two strokes without gain. The smart brush of before and the sphere of 1.3
times the depth see the same gestures; so do peers (``--tool``: threshold, airbrush, random walker,
fast marching).

NoC85, NoC90: strokes until Dice is .85, .90, budget + 1 where it never is. A fall is a stroke that
lowers Dice by more than .001. Times are ms of the processor for the tool alone, one thread.
``--check`` compares with the goals of issue 14 and ends with 1 where one is missed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from refining import one_thread  # noqa: F401 - first, before numpy is loaded
from refining.robot import RefiningTool, run_robot
from refining.scenes import Scene, SceneError, SceneSpec, load_scene, read_list
from refining.starts import STARTS, Bools, run_growth
from refining.table import HEAD, Figures, Row, Verdict, format_rows
from refining.tools import MAIN, TOOLS

HANDS = (11, 12, 13)
BUDGET = 10
WARN_STARTS = ("empty",)
PEER_NAMES = ("threshold", "airbrush", "random walker", "fast marching")


@dataclass(frozen=True)
class Task:
    """What one process does at a time: a scene, from one start, with one tool."""

    spec: SceneSpec
    start: str
    tool: str
    hands: tuple[int, ...]
    budget: int
    sweeps: bool
    within: bool
    steady: bool
    compiled: bool
    folder: Path | None


def choose_tool(name: str) -> Callable[[Scene, Bools], RefiningTool]:
    if name in TOOLS:
        return TOOLS[name]
    from refining.peers import PEERS  # SimpleITK is not asked for without need

    return PEERS[name]


@lru_cache
def require_compiled() -> None:
    from napari_mamamia.smartpaint.grow.compiled import wait_for_steps  # not before `one_thread`

    if not wait_for_steps():
        raise SystemExit("expected compiled steps, but numba gives none: install the extra fast")


@lru_cache(maxsize=2)
def scene_of(name: str, folder: Path | None) -> Scene:
    (spec,) = (spec for spec in read_list() if spec.name == name)
    return load_scene(spec, folder)


@lru_cache(maxsize=2)
def start_of(name: str, folder: Path | None, start: str) -> Bools:
    return STARTS[start](scene_of(name, folder))


def run_task(task: Task) -> Row:
    if task.compiled:
        require_compiled()
    scene = scene_of(task.spec.name, task.folder)
    mask = start_of(task.spec.name, task.folder, task.start)
    tool = choose_tool(task.tool)
    how = {"sweeps": task.sweeps, "within": task.within, "steady": task.steady}
    runs = tuple(
        run_robot(scene, tool(scene, mask.copy()), hand, task.budget, **how) for hand in task.hands
    )
    return Row(scene.name, scene.groups, task.start, task.tool, runs, task.budget)


def grow_scene(name: str, folder: Path | None) -> tuple[str, list[tuple[float, float]]]:
    return name, run_growth(scene_of(name, folder))


def prepare(specs: Sequence[SceneSpec], asked: argparse.Namespace) -> list[SceneSpec]:
    """Make each scene that can be made, and leave the others out with a line."""
    present = []
    for spec in specs:
        try:
            load_scene(spec, asked.folder, asked.mirror, fetches=asked.fetches)
        except SceneError as reason:
            print(f"{spec.name} left out: {reason}")
        else:
            present.append(spec)
    return present


def plan_tasks(specs: Sequence[SceneSpec], asked: argparse.Namespace) -> list[Task]:
    hands = tuple(int(hand) for hand in asked.hands.split(","))
    how = (not asked.clicks, asked.within, asked.steady, asked.compiled, asked.folder)
    return [
        Task(spec, start, tool, hands, asked.budget, *how)
        for spec in specs
        for start in asked.start or (WARN_STARTS if spec.set == "warn" else STARTS)
        for tool in asked.tool or MAIN
    ]


def print_groups(rows: Sequence[Row]) -> None:
    """Print means: of all scenes that can be seen, and of each group."""
    print(HEAD)
    groups = ["", *dict.fromkeys(group for row in rows for group in row.groups)]
    for start in dict.fromkeys(row.start for row in rows):
        for group in groups:
            for tool in dict.fromkeys(row.tool for row in rows):
                chosen = Figures(rows, {}).of(start, group, tool)
                if chosen:
                    print(format_rows(group or "all", chosen))


def print_growth(runs: dict[str, list[tuple[float, float]]]) -> None:
    print("Dice after 1, 2, 3, 4 true outlines (error .8 mm); s of the processor:")
    for name, of_scene in runs.items():
        scores, times = zip(*of_scene, strict=True)
        text = " ".join(f"{score:.3f}" for score in scores)
        print(f"  {name:28}{text:24}" + " ".join(f"{seconds:.2f}" for seconds in times))


def write_rows(path: Path, rows: Sequence[Row], growth: dict[str, list[float]]) -> None:
    text = [
        {
            "scene": row.scene,
            "start": row.start,
            "tool": row.tool,
            "hands": [
                {
                    "dice": [round(score, 5) for score in run.scores],
                    "ms": [round(ms, 1) for ms in run.ms],
                    "notes": sorted(run.notes),
                    "warned_at": run.warned_at,
                }
                for run in row.runs
            ],
        }
        for row in rows
    ]
    path.write_text(json.dumps({"rows": text, "growth": growth}), encoding="utf-8")


def measure(
    specs: Sequence[SceneSpec], asked: argparse.Namespace
) -> tuple[list[Row], dict[str, list[float]]]:
    rows: list[Row] = []
    growth: dict[str, list[tuple[float, float]]] = {}
    print(HEAD)
    # Forked processes would share locks of threads that they do not have.
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        for row in pool.map(run_task, [] if asked.growth else plan_tasks(specs, asked)):
            rows.append(row)
            print(format_rows(row.scene, [row]), flush=True)
        if asked.growth or not (asked.start or asked.tool):
            names = [spec.name for spec in specs if spec.set != "warn"]
            growth.update(pool.map(grow_scene, names, [asked.folder] * len(names)))
    if growth:
        print_growth(growth)
    return rows, {name: [score for score, _ in runs] for name, runs in growth.items()}


def judge_scenes(rows: Sequence[Row]) -> Verdict:
    """Judge whether the brush was seen on every scene that the goals are about."""
    wanted = {spec.name for spec in read_list() if spec.set in ("report", "warn")}
    seen = wanted & {row.scene for row in rows if row.tool == "evidence"}
    n = f"{len(seen)} of {len(wanted)}"
    return Verdict("scenes that the goals are about", n, "all", seen == wanted)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [spec.name for spec in read_list()]
    parser.add_argument("--set", choices=["report", "tune", "warn"], action="append")
    parser.add_argument("--scene", choices=names, action="append", metavar="NAME")
    parser.add_argument("--start", choices=STARTS, action="append")
    parser.add_argument("--tool", "--method", choices=[*TOOLS, *PEER_NAMES], action="append")
    parser.add_argument("--hands", default=",".join(map(str, HANDS)), help="seeds: 11,12,13")
    parser.add_argument("--budget", type=int, default=BUDGET, help="strokes of one run")
    parser.add_argument("--clicks", action="store_true", help="press, do not sweep")
    parser.add_argument("--within", action="store_true", help="sweep within the wrong part alone")
    parser.add_argument("--steady", action="store_true", help="a hand that is never off")
    parser.add_argument("--compiled", action="store_true", help="strokes with numba's steps")
    parser.add_argument("--growth", action="store_true", help="true outlines alone")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    named = os.environ.get("MAMAMIA_REFINE")
    parser.add_argument("--folder", type=Path, default=Path(named) if named else None)
    parser.add_argument("--from", dest="mirror", type=Path, help="bare repositories")
    parser.add_argument("--out", type=Path, help="write every score to this JSON file")
    parser.set_defaults(fetches=True)
    return parser.parse_args()


def main() -> int:
    asked = read_arguments()
    if asked.folder is not None:
        return compare(asked)
    with tempfile.TemporaryDirectory() as scratch:
        asked.folder, asked.fetches = Path(scratch), False
        return compare(asked)


def compare(asked: argparse.Namespace) -> int:
    sets = asked.set or ["report", "warn"]
    specs = [
        spec
        for spec in read_list()
        if (spec.name in asked.scene if asked.scene else spec.set in sets)
    ]
    begun = time.perf_counter()
    specs = prepare(specs, asked)
    rows, growth = measure(specs, asked)
    if rows:
        print()
        print_groups(rows)
    if asked.out:
        write_rows(asked.out, rows, growth)
    figures = Figures(rows, growth)
    verdicts = [judge_scenes(rows), *figures.judge()]
    print()
    print(*verdicts, sep="\n")
    warned = [row.scene for row in figures.of("empty") if row.warns]
    print(f"  scenes that can be seen and warn at the first stroke: {', '.join(warned) or 'none'}")
    for row, sphere in figures.below_sphere():
        reached = f"{row.after(10):.3f}, the sphere {sphere.after(10):.3f}"
        print(f"  below the sphere: {row.scene} from {row.start}: {reached}")
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    print(f"{len(specs)} scenes, {time.perf_counter() - begun:.0f} s; load {load}")
    return int(asked.check and any(not verdict.holds for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
