"""Overhead of the batch engine for each case, its memory, and two workers against one.

Run: python benchmarks/batch.py [--check] [--cases N] [--rounds N]
The overhead is that of cases whose work is nothing, with two files of 20 kB each that are
fingerprinted, and a store that keeps every result, in one process. Memory is what the resident
size of that process grows by for each case between the first tenth and the end: the results
themselves. The ratio is of scoring rates on real mask files, from the first finished case to the
last, one worker and two in turn; it is judged only while the machine is quiet. On a busy one the
processor's time says what two workers could gain: a case costs w seconds in its worker and d in the
process that drives the run, which hands out cases and keeps results one after the other, so that
two cores cannot gain more than 2 / (1 + d/w).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from napari_mamamia.core.progress import Progress, listening
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import CaseInputs, CaseWork, Place
from napari_mamamia.services.score.score import score_cases

N_FILES = 500
FILE_BYTES = 20_000
LIMIT_MS = 2.0
LIMIT_BYTES = 2000
LIMIT_RATIO = 1.6
QUIET_LOAD = 0.5
N_PAIRS = 24


def nothing(inputs: CaseInputs, settings: CaseScore) -> CaseScore:
    return replace(settings, case_id=inputs.case_id, dsc=len(inputs.case_id) / 7)


WORK = CaseWork("nothing", nothing, CaseScore("", ScoreStatus.OK), CaseScore)


def simulated_cases(folder: Path, n_cases: int) -> list[CaseInputs]:
    rng = np.random.default_rng(1)
    files = [folder / f"{number}.bin" for number in range(N_FILES)]
    for path in files:
        path.write_bytes(rng.bytes(FILE_BYTES))
    pick = rng.integers(N_FILES, size=(n_cases, 2))
    return [
        CaseInputs(f"CASE_{number:06d}", (files[first], files[second]))
        for number, (first, second) in enumerate(pick)
    ]


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure_engine(n_cases: int) -> tuple[float, float, float]:
    """Milliseconds for each case, of the run and of a resumed one, and bytes for each case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = simulated_cases(folder, n_cases)
        early = []

        def look(progress: Progress) -> None:
            if not early and progress.done > n_cases / 10:
                early.append((progress.done, resident_bytes()))

        start = time.perf_counter()
        with listening(look):
            batch = run_batch(cases, WORK, store=folder / "results.jsonl")
        first_s = time.perf_counter() - start
        done, before = early[0]
        grown = (resident_bytes() - before) / (n_cases - done)
        start = time.perf_counter()
        job = partial(
            run_batch, cases, WORK, store=folder / "results.jsonl", existing=Existing.RESUME
        )
        again = job()
        resumed_s = time.perf_counter() - start
        if len(batch.results) != n_cases or again.n_reused != n_cases:
            sys.exit("not every case was done, or not every result was used again")
    return first_s / n_cases * 1000, resumed_s / n_cases * 1000, grown


def make_pairs(folder: Path) -> dict[str, tuple[Path | None, Path | None]]:
    import nibabel as nib

    shape = (128, 320, 320)
    axes = np.ogrid[tuple(slice(n) for n in shape)]
    rng = np.random.default_rng(2)
    pairs = {}
    for number in range(N_PAIRS):
        own = []
        for kind in ("reference", "prediction"):
            centre = rng.normal((60, 150, 150), 3)
            squares = ((a - c) / r for a, c, r in zip(axes, centre, (12, 40, 40), strict=True))
            mask = sum(square**2 for square in squares) < 1
            path = folder / f"{kind}_{number:02d}.nii.gz"
            image = nib.Nifti1Image(mask.astype(np.uint8).transpose(), np.diag([0.8, 0.8, 1.5, 1]))
            nib.save(image, path)
            own.append(path)
        pairs[f"CASE_{number:02d}"] = (own[0], own[1])
    return pairs


def cpu_s(processes: list[psutil.Process]) -> float:
    """Return the processor time that the processes have taken together."""
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            spent = process.cpu_times()
            total += spent.user + spent.system
    return total


def rate(
    pairs: dict[str, tuple[Path | None, Path | None]], workers: int
) -> tuple[float, float, float]:
    """Cases for each second, and processor seconds a case of the workers and of this process.

    All from the first case that was finished to the last but one, so that no start or end counts.
    """
    seen: list[tuple[float, int, float, float]] = []
    below: list[psutil.Process] = []

    def look(progress: Progress) -> None:
        if 0 < progress.done < len(pairs) and (not seen or progress.done > seen[-1][1]):
            below[:] = below or psutil.Process().children(recursive=True)
            seen[1:] = [(time.perf_counter(), progress.done, cpu_s(below), time.process_time())]

    with listening(look):
        batch = score_cases(pairs, place=Place(workers=workers))
    if len(batch.results) != len(pairs):
        sys.exit(f"not every pair was scored: {batch.failures[0].reason}")
    if len(seen) < 2:
        sys.exit("all pairs were finished at once: too few for a conclusion a rate")
    seconds, done, worker_s, driver_s = (b - a for a, b in zip(*seen, strict=True))
    return done / seconds, worker_s / done, driver_s / done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        print(*measure_engine(options.cases))
        return 0
    load = os.getloadavg()[0]
    command = [sys.executable, __file__, "--engine", "--cases", str(options.cases)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    each_ms, resumed_ms, grown = map(float, text.split())
    print(
        f"{options.cases} cases: {each_ms:.3f} ms each (limit {LIMIT_MS}), "
        f"resumed {resumed_ms:.3f} ms, memory {grown:.0f} bytes each (limit {LIMIT_BYTES})"
    )
    with tempfile.TemporaryDirectory() as name:
        pairs = make_pairs(Path(name))
        turns = [(*rate(pairs, 1), *rate(pairs, 2)) for _ in range(options.rounds)]
    one, alone_s, _, two, worker_s, driver_s = (
        statistics.median(values) for values in zip(*turns, strict=True)
    )
    quiet = load < QUIET_LOAD
    judged = f"limit {LIMIT_RATIO}" if quiet else f"not judged: load {load:.1f} before the run"
    print(
        f"scoring: 1 worker {one:.1f}, 2 workers {two:.1f} cases/s, "
        f"ratio {two / one:.2f} ({judged})"
    )
    print(
        f"processor time of a case: {worker_s * 1000:.1f} ms in one of two workers "
        f"({alone_s * 1000:.1f} ms in the only one), {driver_s * 1000:.1f} ms in the driver: "
        f"two cores could gain {2 / (1 + driver_s / worker_s):.2f} x"
    )
    missed = each_ms > LIMIT_MS or grown > LIMIT_BYTES
    missed |= quiet and two / one < LIMIT_RATIO
    return int(options.check and missed)


if __name__ == "__main__":
    raise SystemExit(main())
