"""Our nnU-Net engine beside nnunetv2's own predictor: same checkpoint, case and threads, one run.

Run: python benchmarks/nnunet.py [--threads N] [--tiles few|all] [--rounds N] [--check]
The model and the case are those of MAMAMIA_REAL_DATA (default ../shared/data), folder nnunet; with
``--tiles few`` a corner of the case. Each engine runs in a process of its own, so that peak memory
is its own; times are from the arrays in memory to the labels, loading apart, after one warm-up
tile. On a busy machine compare the seconds of processor. ``--check`` exits with 1 if a target is
missed.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nibabel as nib
import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.segmentation.model.engine import EngineInput

REAL = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
CORNER = (slice(8, 40), slice(140, 256), slice(96, 200))
LARGE, LARGE_SPACING = (80, 512, 512), (2.0, 0.68, 0.68)
ENGINES = ("stock", "torch fp32", "openvino fp32", "openvino bf16")
TARGETS = {"torch fp32": 1.1, "openvino fp32": 2.2, "openvino bf16": 3.5}
MEMORY, RESAMPLING, EXPORT, BF16_DICE = 0.6, 8.0, 4.0, 0.99


@dataclass(frozen=True)
class Timed:
    """Seconds on the clock and of the processor."""

    wall: float
    busy: float


def timed(work: Callable[[], Any]) -> tuple[Timed, Any]:
    wall, busy = time.perf_counter(), time.process_time()
    found = work()
    return Timed(time.perf_counter() - wall, time.process_time() - busy), found


def case(tiles: str) -> tuple[list[np.ndarray], Grid]:
    files = sorted((REAL / "nnunet" / "images" / "PH_901").glob("*.nii.gz"))
    images = [nib.load(file) for file in files]
    arrays = [np.ascontiguousarray(np.asarray(image.dataobj).transpose()) for image in images]
    if tiles == "few":
        arrays = [np.ascontiguousarray(array[CORNER]) for array in arrays]
    return arrays, Grid(arrays[0].shape, images[0].affine)


def model_folder() -> Path:
    return next((REAL / "nnunet").glob("Dataset*/nnUNetTrainer__nnUNetPlans__3d_fullres"))


def stock_predictor() -> Any:
    import torch
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    predictor = nnUNetPredictor(
        use_mirroring=False,
        perform_everything_on_device=device.type == "cuda",
        device=device,
        allow_tqdm=False,
    )
    predictor.initialize_from_trained_model_folder(str(model_folder()), (0,))
    return predictor


def runner(engine: str, threads: int) -> Callable[[list[np.ndarray], Grid], np.ndarray]:
    """Return the loaded engine as a function; the first call may still compile."""
    import torch

    torch.set_num_threads(threads)
    if engine == "stock":
        predictor = stock_predictor()
        return lambda arrays, grid: predictor.predict_single_npy_array(
            np.stack(arrays).astype(np.float32), {"spacing": list(grid.spacing_mm)}
        )
    from napari_mamamia.segmentation.model.engine_settings import EngineSettings
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet
    from napari_mamamia.segmentation.run.weights import recognise_model

    backend, precision = engine.split()
    settings = EngineSettings(
        mirroring=False, threads=threads, backend=backend, precision=precision
    )
    loaded = load_nnunet(recognise_model(model_folder()), settings)
    return lambda arrays, grid: loaded.predict(EngineInput(arrays, grid)).labels


def child(engine: str, threads: int, tiles: str, out: Path) -> None:
    arrays, grid = case(tiles)
    run = runner(engine, threads)
    small = [np.ascontiguousarray(array[:8, -24:, -24:]) for array in arrays]
    run(small, Grid(small[0].shape, grid.affine))
    spent, labels = timed(lambda: run(arrays, grid))
    np.save(out, labels.astype(np.uint8))
    peak = peak_bytes()
    print(json.dumps({"wall": spent.wall, "busy": spent.busy, "peak": peak}))


def peak_bytes() -> int:
    """Return this program's peak memory; getrusage would count the parent's at the fork too."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_own_process(engine: str, threads: int, tiles: str, out: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", engine, "--out", str(out)]
    command += ["--threads", str(threads), "--tiles", tiles]
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **limits, "nnUNet_def_n_proc": str(threads)},
    )
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def end_to_end(threads: int, tiles: str, rounds: int) -> list[str]:
    """Engines take turns; medians of the rounds are compared."""
    print(
        f"end to end, {threads} thread(s), {tiles} tiles, median of {rounds} round(s), load "
        f"{os.getloadavg()[0]:.1f}"
    )
    runs: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    labels: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for engine in ENGINES:
                out = Path(folder) / f"{engine}.npy"
                runs[engine].append(in_own_process(engine, threads, tiles, out))
                labels[engine] = np.load(out)
    print(
        "engine          seconds  of processor  ratio  peak GB  of stock  differing voxels   Dice"
    )
    medians = {engine: median_of(found) for engine, found in runs.items()}
    missed = []
    for engine in ENGINES:
        missed += compared(engine, medians, labels)
    return missed


def median_of(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def compared(
    engine: str, medians: dict[str, dict[str, float]], labels: dict[str, np.ndarray]
) -> list[str]:
    """Print one engine's line beside stock's; return the targets that it misses."""
    stock, base, found = labels["stock"], medians["stock"], medians[engine]
    ratio, memory = base["busy"] / found["busy"], found["peak"] / base["peak"]
    wrong = int(np.count_nonzero(labels[engine] != stock))
    score = dice(labels[engine] > 0, stock > 0)
    print(
        f"{engine:15} {found['wall']:7.1f}  {found['busy']:12.1f}  {ratio:5.2f}  "
        f"{found['peak'] / 1e9:7.2f}  {memory:8.2f}  {wrong:8} of {stock.sum()}  {score:.4f}"
    )
    checks = (  # (missed, what was measured)
        (engine in TARGETS and ratio < TARGETS[engine], f"{ratio:.2f} times as fast"),
        (engine == "torch fp32" and wrong > 0, f"{wrong} voxels differ"),
        (engine == "torch fp32" and memory > MEMORY, f"{memory:.3f} of stock's memory"),
        (engine.endswith("bf16") and score < BF16_DICE, f"Dice {score:.4f}"),
    )
    return [f"{engine}: {what}" for is_missed, what in checks if is_missed]


def resampling(threads: int) -> list[str]:
    """Three float32 channels of a clinical size to 1 mm, cubic."""
    import torch
    from nnunetv2.preprocessing.resampling.default_resampling import resample_data_or_seg_to_shape

    from napari_mamamia.segmentation.model.nnunet_geometry import target_shape
    from napari_mamamia.segmentation.model.nnunet_plans import Resampling
    from napari_mamamia.segmentation.model.nnunet_resample import resample_channel

    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    volume = rng.normal(0, 1, LARGE).astype(np.float32)
    shape = target_shape(LARGE, LARGE_SPACING, (1.0, 1.0, 1.0))
    how = Resampling("spline", 3)
    stock, theirs = timed(
        lambda: resample_data_or_seg_to_shape(
            volume[None], shape, LARGE_SPACING, (1.0, 1.0, 1.0), order=3, force_separate_z=None
        )
    )
    ours, mine = timed(lambda: resample_channel(volume, shape, how, None))
    apart = float(np.abs(mine.numpy() - theirs[0]).max())
    ratio = stock.busy / ours.busy
    print(
        f"resampling {LARGE} to {tuple(shape)}: {stock.busy:.2f} and {ours.busy:.2f} s of "
        f"processor, ratio {ratio:.1f}, largest difference {apart:.1e}"
    )
    return [] if ratio >= RESAMPLING else [f"resampling: {ratio:.1f}, wanted {RESAMPLING}"]


def export(threads: int) -> list[str]:
    """Bring outputs with one lesion of 30 mm from a 1 mm grid back to a clinical size."""
    import torch
    from nnunetv2.inference.export_prediction import (
        convert_predicted_logits_to_segmentation_with_correct_shape as convert,
    )
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager

    from napari_mamamia.segmentation.model.nnunet_geometry import model_frame
    from napari_mamamia.segmentation.model.nnunet_plans import read_plans
    from napari_mamamia.segmentation.nnunet.engine import Prepared, export_labels

    torch.set_num_threads(threads)
    root = model_folder()
    texts = [(root / name).read_text() for name in ("plans.json", "dataset.json")]
    plans = read_plans(texts[0], texts[1], "3d_fullres", str(root))
    affine = np.diag([*LARGE_SPACING[::-1], 1.0])
    grid = Grid(LARGE, affine)
    shape = (160, 348, 348)
    away = np.indices(shape, dtype=np.float32) - np.array([80, 120, 200]).reshape(3, 1, 1, 1)
    logits = torch.from_numpy(
        np.stack([np.sqrt((away**2).sum(axis=0)) - 15, np.zeros(shape)]).astype(np.float16)
    )
    prepared = Prepared(None, model_frame(grid, plans), Box.whole(LARGE), (1.0, 1.0, 1.0))
    manager = PlansManager(str(root / "plans.json"))
    properties = {
        "spacing": list(LARGE_SPACING),
        "shape_before_cropping": LARGE,
        "shape_after_cropping_and_before_resampling": LARGE,
        "bbox_used_for_cropping": [[0, n] for n in LARGE],
    }
    stock, theirs = timed(
        lambda: convert(
            logits.clone(),
            manager,
            manager.get_configuration("3d_fullres"),
            manager.get_label_manager(json.loads(texts[1])),
            properties,
            num_threads_torch=threads,
        )
    )
    ours, mine = timed(lambda: export_labels(logits, prepared, plans))
    ratio, wrong = stock.busy / ours.busy, int(np.count_nonzero(mine != theirs))
    print(
        f"export of a {np.count_nonzero(mine)} voxel lesion to {LARGE}: {stock.busy:.2f} and "
        f"{ours.busy:.2f} s of processor, ratio {ratio:.1f}, differing voxels {wrong}"
    )
    missed = [] if ratio >= EXPORT else [f"export: {ratio:.1f}, wanted {EXPORT}"]
    return missed + ([f"export: {wrong} voxels differ, wanted none"] if wrong else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiles", choices=("few", "all"), default="all")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=("end", "resampling", "export"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    chosen: SimpleNamespace = parser.parse_args(namespace=SimpleNamespace())
    if chosen.child:
        child(chosen.child, chosen.threads, chosen.tiles, chosen.out)
        return
    missed: list[str] = []
    if chosen.only in (None, "resampling"):
        missed += resampling(chosen.threads)
    if chosen.only in (None, "export"):
        missed += export(chosen.threads)
    if chosen.only in (None, "end"):
        missed += end_to_end(chosen.threads, chosen.tiles, chosen.rounds)
    for line in missed:
        print(f"missed: {line}")
    if chosen.check and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
