"""Peak memory of every process of a scoring run at 512x512x170, imports included.

Run: python benchmarks/score_memory.py [--check]
The pair has a lesion of 55 mm and a false positive far away; it is scored eight times at each
place, as uint8 and as float32 masks. Each run has a process of its own. What is printed is the
highest resident size (VmHWM of the Linux kernel) that the process that scored ever had, and that of
the process that drove the run. ``--check`` exits 1 above 300 MB for a process that scores.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LIMIT_MB = 300.0
N_CASES = 8
PLACES = {
    "this process": (0, None),
    "a worker": (1, None),
    "a killable process": (0, 300.0),
}


@dataclass(frozen=True, slots=True)
class Peak:
    """What a case's process had needed when the case was scored."""

    case_id: str
    megabytes: float


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def score_and_measure(inputs, settings) -> Peak:
    from napari_mamamia.services.score.score import score_and_inspect

    score_and_inspect(inputs, settings)
    return Peak(inputs.case_id, peak_mb())


def write_pair(folder: Path, dtype: str) -> list[Path]:
    import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses

    from metrics import SCENES, make_pair

    paths = [folder / f"{dtype}_{kind}.nii.gz" for kind in ("reference", "prediction")]
    for path, mask in zip(paths, make_pair(SCENES[0], 0), strict=True):
        sitk.WriteImage(sitk.GetImageFromArray(mask.astype(dtype)), str(path), useCompression=True)
    return paths


def run_there(name: str, paths: list[Path]) -> tuple[float, float]:
    """Return the peaks, in MB, of the process that scored and of this one, which drove it."""
    from napari_mamamia.scoring.case.profiles import CLINICAL
    from napari_mamamia.services.batch.batch import run_batch
    from napari_mamamia.services.batch.work import CaseInputs, CaseWork, Place
    from napari_mamamia.services.score.score import CaseSettings
    from score_memory import Peak as PeakThere
    from score_memory import score_and_measure as look  # not __main__: workers must find it

    workers, limit_s = PLACES[name]
    cases = [CaseInputs(f"CASE_{number}", tuple(paths)) for number in range(N_CASES)]
    work = CaseWork("peak", look, CaseSettings(CLINICAL), PeakThere)
    batch = run_batch(cases, work, Place(workers=workers, time_limit_s=limit_s))
    if len(batch.results) != N_CASES:
        sys.exit(f"not every case was scored: {batch.failures[0].reason}")
    return max(row.megabytes for row in batch.results), peak_mb()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 above the limit")
    parser.add_argument("--place", choices=PLACES, help=argparse.SUPPRESS)
    parser.add_argument("--pair", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.place:
        print(*run_there(options.place, options.pair))
        return 0
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("uint8", "float32"):
            paths = write_pair(Path(folder), dtype)
            for name in PLACES:
                command = [sys.executable, __file__, "--place", name, "--pair", *map(str, paths)]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                scored, drove = map(float, text.split())
                kept &= scored < LIMIT_MB
                print(
                    f"{dtype:>8} in {name:<21} scored with {scored:4.0f} MB (limit "
                    f"{LIMIT_MB:g}), driven with {drove:4.0f} MB",
                    flush=True,
                )
    return int(options.check and not kept)


if __name__ == "__main__":
    sys.exit(main())
