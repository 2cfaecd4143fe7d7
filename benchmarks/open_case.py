"""Time and memory of opening a real-size case (5 phases of 160x448x448 int16) from disk (Linux).

Run ``python benchmarks/open_case.py [--check]``. Limits: first phase in the window's layer within
1.5 s of the request, peak memory of the open case at most 1.3 times the size of its phases in
their file type. Both are whole-process figures of a child process, so that nothing of this
script's own counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import write_volume

SHAPE, PHASES = (160, 448, 448), 5
FIRST_PHASE_S, MEMORY_RATIO = 1.5, 1.3

CHILD = """
import json, sys, time
from pathlib import Path
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.case.open_case import load_remaining, open_case
def kilobytes(key):
    # not ru_maxrss, which a child inherits from its parent
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])
files = find_data_set(Path(sys.argv[1])).cases[0]
before = kilobytes("VmRSS")
start = time.perf_counter()
case = open_case(files)
first = time.perf_counter() - start
case = load_remaining(case, files)
whole = time.perf_counter() - start
grown = (kilobytes("VmHWM") - before) * 1024
print(json.dumps({"first": first, "whole": whole, "ratio": grown / case.signal.nbytes}))
"""


def write_case(folder: Path) -> None:
    rng = np.random.default_rng(0)
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    body = ((y - 220) ** 2 / 200**2 + (x - 224) ** 2 / 210**2 < 1) & (z >= 0)
    texture = rng.integers(0, 120, SHAPE, dtype=np.int16)
    for k in range(PHASES):
        volume = np.where(body, 400 + 60 * k + texture, texture // 8).astype(np.int16)
        target = folder / "images" / "BENCH_1" / f"BENCH_1_{k:04d}.nii.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_volume(volume, Grid(SHAPE, np.diag([-0.7, 0.7, 1.2, 1.0])), target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond a limit")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_case(Path(folder))
        command = [sys.executable, "-c", CHILD, folder]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(options.runs)]
    first, whole, ratio = (
        statistics.median(run[key] for run in runs) for key in ("first", "whole", "ratio")
    )
    print(f"median of {options.runs} runs, {PHASES} phases of {SHAPE} int16, page cache warm")
    print(f"first phase read   {first:6.2f} s      (limit {FIRST_PHASE_S} s, to the screen)")
    print(f"all phases read    {whole:6.2f} s")
    print(f"memory / file type {ratio:6.2f}        (limit {MEMORY_RATIO})")
    missed = first > FIRST_PHASE_S or ratio > MEMORY_RATIO
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
