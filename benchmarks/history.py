"""Run the benchmarks, and record the main ratios of the run in a file of `benchmarks/history`.

Run: python benchmarks/history.py [--only NAME ...]
Every benchmark prints its own results. From them, the ratios in `RATIOS` are recorded as JSON, with
the date, the machine, the commit and the load. Each ratio compares two programs in the same run, so
runs on different machines can be compared. The site draws the records on its page "Benchmark
history". `--only` runs some of the benchmarks.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

TOP = Path(__file__).parents[1]
HISTORY = Path(__file__).with_name("history")
RATIOS: Final[Mapping[str, Mapping[str, str]]] = {
    "reading": {
        "image of 5 phases, read: nibabel / ours": r"image, 5 phases .* nibabel .* ([\d.]+) x",
        "image of 5 phases, read: SimpleITK / ours": r"image, 5 phases .* SimpleITK .* ([\d.]+) x",
    },
    "writing": {"mask, written: nibabel / ours": r"over all masks\s+nibabel\s+([\d.]+) x"},
    "metrics": {
        "Dice and HD95: surface-distance / ours": r"surface-distance:\s+([\d.]+) x over all pairs",
        "Dice and HD95: SimpleITK and SciPy / ours": r"SimpleITK \+ SciPy:\s+([\d.]+) x over all",
    },
    "scoring": {
        "score of a pair of files: SimpleITK and SciPy / ours": r"([\d.]+) x the peer over"
    },
    "bootstrap": {
        "bootstrap of segmentation: pandas / ours": r"task 1: .* ([\d.]+) x \(limit",
        "bootstrap of response: pandas / ours": r"task 2: .* ([\d.]+) x \(limit",
    },
    "batch": {"cases scored per second: 2 workers / 1 worker": r"2 workers .* ratio ([\d.]+) "},
}
"""Ratios by benchmark, each with the pattern of its value in the printed results."""
_WIDTH, _HEIGHT, _MARGIN = 640, 150, 44


def read_ratios(name: str, output: str) -> dict[str, float]:
    """Return the main ratios that a benchmark printed.

    Raises
    ------
    ValueError
        If a ratio is missing.
    """
    ratios = {}
    for ratio, pattern in RATIOS.get(name, {}).items():
        match = re.search(pattern, output)
        if match is None:
            raise ValueError(
                f"expected {name} to print the ratio '{ratio}', but it did not: correct its "
                "pattern in benchmarks/history.py"
            )
        ratios[ratio] = float(match[1])
    return ratios


def describe_machine() -> str:
    """Return processor, cores and system of this computer, without its name."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    processor = model[1] if model else platform.processor() or platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"


def read_runs(folder: Path = HISTORY) -> list[dict[str, Any]]:
    """Return all recorded runs, the oldest first."""
    runs = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    return sorted(runs, key=lambda run: str(run["date"]))


def draw_ratio(name: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG of one ratio over time; each point has a tooltip with its run."""
    points = [(run, float(run["ratios"][name])) for run in runs if name in run["ratios"]]
    times = [datetime.fromisoformat(run["date"]).timestamp() for run, _ in points]
    first, span = times[0], max(times[-1] - times[0], 1.0)
    highest = 1.15 * max(value for _, value in points)
    places = [
        (
            _MARGIN + (time - first) / span * (_WIDTH - 2 * _MARGIN),
            _HEIGHT - 24 - value / highest * (_HEIGHT - 40),
        )
        for time, (_, value) in zip(times, points, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="currentColor"><title>'
        f"{escape(run['date'][:10])}, {escape(run['commit'])}: {value:g} x</title></circle>"
        f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{value:g} x</text>'
        for (x, y), (run, value) in zip(places, points, strict=True)
    )
    bottom = _HEIGHT - 24
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img" font-size="12" '
        f'fill="currentColor" aria-label="{escape(name)}">'
        f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{bottom}" y2="{bottom}" '
        'stroke="currentColor"/>'
        f'<polyline points="{line}" fill="none" stroke="currentColor"/>{marks}'
        f'<text x="{_MARGIN}" y="{_HEIGHT - 6}">{escape(points[0][0]["date"][:10])}</text>'
        f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 6}" text-anchor="end">'
        f"{escape(points[-1][0]['date'][:10])}</text></svg>"
    )


def history_page(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the site with a figure for each ratio and a table of the runs."""
    names = dict.fromkeys(name for ratios in RATIOS.values() for name in ratios)
    drawn = [name for name in names if any(name in run["ratios"] for run in runs)]
    rows = "\n".join(
        f"| {run['date'][:10]} | `{run['commit']}` | {run['machine']} | {run['load']:.1f} | "
        f"{len(run['ratios'])} |"
        for run in runs
    )
    parts = [
        "# Benchmark history",
        "Each ratio compares another program with this software in the same run. A higher value is "
        "faster. `make bench` records a run in `benchmarks/history`; [Speed](methods/speed.md) "
        "explains the benchmarks. Times on a busy machine vary, so compare runs of similar load.",
        *(f"## {name}\n\n{draw_ratio(name, runs)}" for name in drawn),
        f"## Runs\n\n| date | commit | machine | load | ratios |\n|---|---|---|---|---|\n{rows}",
    ]
    return "\n\n".join(parts) + "\n"


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    names.remove(Path(__file__).stem)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    commit = git("rev-parse", "--short=8", "HEAD") + (
        " and changes" if git("status", "--porcelain") else ""
    )
    now, load = datetime.now(UTC), os.getloadavg()[0]
    ratios: dict[str, float] = {}
    for name in parser.parse_args().only:
        print(f"== {name}", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(f"{name}.py"))]
        lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                lines.append(line)
        if process.returncode:
            return process.returncode
        ratios |= read_ratios(name, "".join(lines))
    run = {
        "date": now.isoformat(timespec="seconds"),
        "commit": commit,
        "machine": describe_machine(),
        "python": platform.python_version(),
        "load": load,
        "ratios": ratios,
    }
    HISTORY.mkdir(exist_ok=True)
    path = HISTORY / f"{now:%Y-%m-%dT%H%M%S}.json"
    path.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(f"recorded in {path.relative_to(TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
