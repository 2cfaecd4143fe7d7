"""Processor time of `mamamia score-pcr` and `score-table` on 100,000 rows, one core each.

Usage::

    .venv/bin/python benchmarks/many_rows.py            # the figures
    .venv/bin/python benchmarks/many_rows.py --check    # exit 1 above a limit

The commands run as a user runs them, in a process of their own: tables read, 1000 resamples, BCa,
permutations, intervals, report and figures. Scores are distinct floats, the hardest case of AUC and
average precision. Reported is user and system time of the process and what it starts.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

LIMITS = {"score-pcr": 60.0, "score-table": 40.0}
"""Seconds of processor time."""


def write_table(path: Path, head: str, rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head.split(","))
        writer.writerows(rows)


def write_tables(folder: Path, n: int) -> None:
    """Write a clinical table, case scores and predicted responses of n cases."""
    rng = np.random.default_rng(1)
    ids = [f"CASE_{place:06d}" for place in range(n)]
    age = rng.normal(52, 11, n).clip(20, 95).round().astype(int).tolist()
    menopause = rng.choice(["pre", "post", "peri", ""], n, p=[0.4, 0.45, 0.05, 0.1]).tolist()
    density = rng.choice(["a", "b", "c", "d", ""], n, p=[0.05, 0.2, 0.3, 0.1, 0.35]).tolist()
    label = rng.integers(0, 2, n)
    score = rng.random(n) * 0.7 + 0.3 * label * rng.random(n)
    dice, distance = rng.beta(6, 2, n).tolist(), rng.beta(1, 5, n).tolist()
    head = "patient_id,age,menopausal_status,breast_density,pcr"
    columns = (ids, age, menopause, density, label.tolist())
    write_table(folder / "clinical.csv", head, zip(*columns, strict=True))
    rows = zip(ids, dice, distance, strict=True)
    write_table(folder / "score-table.csv", "case_id,dsc,norm_hd", rows)
    predicted = (score > 0.5).astype(int).tolist()
    rows = zip(ids, predicted, score.tolist(), strict=True)
    write_table(folder / "score-pcr.csv", "patient_id,pcr,score", rows)


def seconds_of(command: str, folder: Path) -> float:
    """Run a command on the tables and return its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    table, clinical = folder / f"{command}.csv", folder / "clinical.csv"
    words = [command, str(table), "--clinical", str(clinical), "--out", str(folder / command)]
    program = Path(sys.executable).with_name("mamamia")
    subprocess.run(
        [str(program), *words], check=True, capture_output=True, env={**os.environ, **one_thread}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the figures; with ``--check`` return 1 above a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 above a limit")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name), options.rows)
        for command, limit in LIMITS.items():
            taken = seconds_of(command, Path(name))
            good &= taken <= limit
            print(f"{command}, {options.rows:,} rows: {taken:.1f} s (limit {limit:.0f} s)")
    return int(options.check and not good)


if __name__ == "__main__":
    raise SystemExit(main())
