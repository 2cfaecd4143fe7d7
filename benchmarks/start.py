"""Processor time until the program has started: ``mamamia --help``, and ``import napari_mamamia``.

Run: ``python benchmarks/start.py [--check]``. Each is a process of its own, Python's start counted
in, files in the page cache; medians of 9. ``--check`` exits 1 above a limit.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 9
COMMAND = str(Path(sys.executable).with_name("mamamia"))
STARTS = {
    "mamamia --help": ([COMMAND, "--help"], 0.25),
    "import napari_mamamia": ([sys.executable, "-c", "import napari_mamamia"], 0.15),
}
"""What is started, and its limit in seconds."""


def processor_seconds(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return sum(
        getattr(after, part) - getattr(before, part)
        for part in ("children_user", "children_system")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond a limit")
    options = parser.parse_args()
    kept = True
    print(f"processor time, median of {RUNS} processes, load {os.getloadavg()[0]:.1f}")
    for name, (command, limit) in STARTS.items():
        processor_seconds(command)  # reads the files
        seconds = statistics.median(processor_seconds(command) for _ in range(RUNS))
        print(f"{name:24}{seconds:6.2f} s   (limit {limit} s)")
        kept &= seconds <= limit
    return int(options.check and not kept)


if __name__ == "__main__":
    raise SystemExit(main())
