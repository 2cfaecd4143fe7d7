"""The model's process: its start, a second case, cancelling, and its death, in seconds.

Run: python benchmarks/worker.py [--check] [--rounds N]
The model and the case are those of MAMAMIA_REAL_DATA (default ../shared/data), folder nnunet; the
model with tiles of seconds is the same one with patches of 192 voxels along each axis, the one with
short tiles has patches of 32. Times are on the clock, medians of the rounds, as whoever asks sees
them. ``--check`` exits with 1 if a limit is missed.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, Progress, listening
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.worker.client import Worker

REAL = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETTINGS = EngineSettings(mirroring=False, threads=1)
SHORT, LONG = 32, 192  # voxels along each axis of a patch
SECOND_CASE_S, CANCEL_S, NOTICED_S = 0.3, 2.0, 2.0


@dataclass(frozen=True)
class Given:
    """What every measurement needs; tiles of `slow` take longer than a cancel waits."""

    card: ModelCard
    quick: ModelCard
    slow: ModelCard
    arrays: list[np.ndarray]
    grid: Grid


def model_folder() -> Path:
    return next((REAL / "nnunet").glob("Dataset*/nnUNetTrainer__nnUNetPlans__3d_fullres"))


def given(folder: Path) -> Given:
    files = sorted((REAL / "nnunet" / "images" / "PH_901").glob("*.nii.gz"))
    images = [nib.load(file) for file in files]
    arrays = [np.ascontiguousarray(np.asarray(image.dataobj).transpose()) for image in images]
    cards = [recognise_model(model_folder()), *(patched(folder, edge) for edge in (SHORT, LONG))]
    return Given(*cards, arrays, Grid(arrays[0].shape, images[0].affine))


def patched(folder: Path, edge: int) -> ModelCard:
    """Return the model with another patch: its weights fit any."""
    root = folder / str(edge) / model_folder().name
    shutil.copytree(model_folder(), root)
    plans = json.loads((root / "plans.json").read_text())
    plans["configurations"]["3d_fullres"]["patch_size"] = [edge] * 3
    (root / "plans.json").write_text(json.dumps(plans))
    return recognise_model(root)


def cancel() -> None:
    raise Cancelled


def timed(
    worker: Worker, card: ModelCard, arrays: list[np.ndarray], grid: Grid, text: str, act: Callable
) -> tuple[float, float]:
    """Predict until the progress says `text`, then `act`; seconds until there, and to the end."""
    started, there = time.perf_counter(), 0.0

    def listen(step: Progress) -> None:
        nonlocal there
        if not there and text in step.text:
            there = time.perf_counter()
            act()

    try:
        with listening(listen):
            worker.predict(card, SETTINGS, EngineInput(arrays, grid))
    except (Cancelled, ModelError):
        return there - started, time.perf_counter() - there
    raise SystemExit(f"the case should end where its progress says {text!r}, but had a result")


def first_answer(wanted: Given) -> float:
    """From nothing to what a case would cost: process, torch, weights."""
    with closing(Worker()) as worker:
        started = time.perf_counter()
        worker.plan(wanted.card, SETTINGS, wanted.grid, None)
        return time.perf_counter() - started


def second_case(wanted: Given) -> float:
    """Until a warm process prepares the images that it was handed."""
    with closing(Worker()) as worker:
        small = [np.ascontiguousarray(array[:8, -24:, -24:]) for array in wanted.arrays]
        grid = Grid(small[0].shape, wanted.grid.affine)
        worker.predict(wanted.card, SETTINGS, EngineInput(small, grid))
        pid = worker.pid
        seconds, _ = timed(worker, wanted.card, wanted.arrays, wanted.grid, "Preparing", cancel)
        if worker.pid != pid:
            raise SystemExit("the process should stay warm for a second case, but was started anew")
        return seconds


def cancelled(wanted: Given) -> float:
    """Cancel between tiles of some hundredths of a second; the process stays."""
    with closing(Worker()) as worker:
        worker.plan(wanted.quick, SETTINGS, wanted.grid, None)
        pid = worker.pid
        _, seconds = timed(worker, wanted.quick, wanted.arrays, wanted.grid, "tile 2 ", cancel)
        if worker.pid != pid:
            print("    a busy machine: the process did not answer within 1 s and was ended")
        return seconds


def cancelled_in_a_long_tile(wanted: Given) -> float:
    """Cancel in the midst of a tile of seconds; the process is ended."""
    with closing(Worker()) as worker:
        _, seconds = timed(worker, wanted.slow, wanted.arrays, wanted.grid, "tile 1 ", cancel)
        if worker.pid is not None:
            raise SystemExit("a cancel in a long tile should end the process, but it runs")
        return seconds


def death(wanted: Given) -> float:
    """From the kill to the error that says so."""
    with closing(Worker()) as worker:

        def kill() -> None:
            os.kill(worker.pid, signal.SIGKILL)

        return timed(worker, wanted.card, wanted.arrays, wanted.grid, "tile 1 ", kill)[1]


MEASURED: tuple[tuple[str, Callable[[Given], float], float | None], ...] = (
    ("start to the first answer", first_answer, None),
    ("start of a second case, warm", second_case, SECOND_CASE_S),
    ("cancel answers", cancelled, CANCEL_S),
    ("cancel in a tile of seconds answers", cancelled_in_a_long_tile, CANCEL_S),
    ("a killed process is noticed", death, NOTICED_S),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not (REAL / "nnunet").is_dir():
        print(f"skipped: no model at {REAL / 'nnunet'} (set MAMAMIA_REAL_DATA)")
        return
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = given(Path(folder))
        print(f"median of {options.rounds} round(s), load {os.getloadavg()[0]:.1f}")
        for name, measure, limit in MEASURED:
            found = sorted(measure(wanted) for _ in range(options.rounds))
            seconds = statistics.median(found)
            said = "" if limit is None else f"  limit {limit:g} s"
            print(f"{name:38} {seconds:6.2f} s  ({found[0]:.2f} to {found[-1]:.2f}){said}")
            if limit is not None and seconds >= limit:
                missed.append(name)
    for name in missed:
        print(f"missed: {name}")
    if missed and options.check:
        sys.exit(1)


if __name__ == "__main__":
    main()
