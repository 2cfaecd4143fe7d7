"""Seconds to list a MAMA-MIA tree of 1,506 cases; ``--check`` exits 1 above the limit.

Run: python benchmarks/listing.py [--check]
The tree is made of empty files in a temporary folder, so the numbers are those of a warm file
system: only names are read.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from napari_mamamia.io.layouts.find import find_data_set, recognise

CASES = 1506
PHASES = 5
LIMIT_S = 2.0


def make_tree(root: Path) -> None:
    for folder in ("segmentations/expert", "segmentations/automatic", "patient_info_files"):
        (root / folder).mkdir(parents=True)
    for number in range(CASES):
        case_id = f"CASE_{number:04d}"
        folder = root / "images" / case_id
        folder.mkdir(parents=True)
        for phase in range(PHASES):
            (folder / f"{case_id}_{phase:04d}.nii.gz").touch()
        (root / "segmentations/expert" / f"{case_id}.nii.gz").touch()
        (root / "segmentations/automatic" / f"{case_id}.nii.gz").touch()
        (root / "patient_info_files" / f"{case_id.lower()}.json").touch()


def measure(root: Path) -> float:
    start = time.perf_counter()
    data_set = find_data_set(root)
    seconds = time.perf_counter() - start
    complete = [c for c in data_set.cases if len(c.phases) == PHASES and c.reference and c.info]
    if len(complete) != CASES:
        sys.exit(f"expected {CASES} complete cases, got {len(complete)}")
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"exit 1 above {LIMIT_S} s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_tree(root)
        runs = [measure(root) for _ in range(3)]
        start = time.perf_counter()
        recognise(root)
        recognising = time.perf_counter() - start
    print(f"recognise {recognising * 1000:.1f} ms")
    print(
        f"list {CASES} cases x {PHASES} phases: {min(runs):.2f} s (worst of 3: {max(runs):.2f} s)"
    )
    return int(options.check and max(runs) > LIMIT_S)


if __name__ == "__main__":
    raise SystemExit(main())
