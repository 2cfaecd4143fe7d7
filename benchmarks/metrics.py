"""Time Dice + HD95 from arrays in memory against two peers, on twelve realistic pairs of masks.

    python benchmarks/metrics.py [--rounds N] [--check]

Each round times every program on every pair in turn; a pair's time is its median over the rounds,
and a ratio is a peer's time over ours. ``--check`` exits 1 when the sums over all pairs miss a
limit of issue 2: 7 x surface-distance, 25 x SimpleITK contours with SciPy trees on whole volumes.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
import surface_distance
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from napari_mamamia.metrics.crop import joint_crop
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.metrics.surface import hausdorff95, surface_distances

LIMITS = {"surface-distance": 7.0, "SimpleITK + SciPy": 25.0}

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


@dataclass(frozen=True)
class Scene:
    """A volume with one lesion and a prediction of it; `far` adds a false positive elsewhere."""

    shape: tuple[int, int, int]
    spacing_mm: Spacing
    lesion_mm: float
    shift_mm: float
    far: bool = False


SCENES = (
    Scene((170, 512, 512), (1.0, 0.7, 0.7), 60, 2.0, far=True),
    Scene((170, 512, 512), (1.0, 0.7, 0.7), 25, 1.0),
    Scene((170, 512, 512), (1.0, 0.7, 0.7), 12, 1.0, far=True),
    Scene((160, 448, 448), (1.0, 0.8, 0.8), 40, 1.5),
    Scene((160, 448, 448), (1.0, 0.8, 0.8), 8, 0.8),
    Scene((128, 512, 512), (1.2, 0.66, 0.66), 35, 1.0),
    Scene((128, 512, 512), (1.2, 0.66, 0.66), 15, 0.7, far=True),
    Scene((100, 320, 320), (1.8, 1.0, 1.0), 45, 2.0),
    Scene((100, 320, 320), (1.8, 1.0, 1.0), 20, 1.0),
    Scene((60, 384, 384), (3.0, 0.9, 0.9), 50, 1.5, far=True),
    Scene((60, 256, 256), (2.0, 0.7, 0.7), 30, 1.0),
    Scene((60, 256, 256), (2.0, 0.7, 0.7), 5, 0.5),
)


def add_lesion(
    mask: Bools, spacing: Spacing, centre: NDArray[np.float64], size: float, seed: int
) -> None:
    """Set a rough ellipsoid of `size` mm at the voxel `centre`; equal seeds are equally rough."""
    low = np.maximum(centre - size / np.array(spacing), 0).astype(int)
    high = np.minimum(centre + size / np.array(spacing) + 2, mask.shape).astype(int)
    mm = [(np.arange(a, b) - c) * s for a, b, c, s in zip(low, high, centre, spacing, strict=True)]
    z, y, x = np.meshgrid(*mm, indexing="ij")
    rough = np.random.default_rng(seed).standard_normal(z.shape)
    rough = gaussian_filter(rough, [max(size / 10, 1) / s for s in spacing])
    radius = size / 2 * (1 + 0.12 * rough / rough.std())
    place = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    mask[place] |= np.sqrt(z**2 + (y / 1.15) ** 2 + (x * 1.1) ** 2) < radius


def make_pair(scene: Scene, seed: int) -> tuple[Bools, Bools]:
    """Return the reference and the prediction, every page of memory written."""
    reference, prediction = (np.full(scene.shape, fill_value=False) for _ in range(2))
    spacing = scene.spacing_mm
    centre = np.array(scene.shape) * (0.5, 0.45, 0.3)
    moved = centre + scene.shift_mm / np.array(spacing)
    add_lesion(reference, spacing, np.rint(centre), scene.lesion_mm, seed)
    add_lesion(prediction, spacing, np.rint(moved), scene.lesion_mm * 1.04, seed + 100)
    if scene.far:
        elsewhere = np.array(scene.shape) * (0.35, 0.5, 0.75)
        add_lesion(prediction, spacing, np.rint(elsewhere), 8.0, seed + 200)
    return reference, prediction


def ours(reference: Bools, prediction: Bools, spacing: Spacing) -> tuple[float, float]:
    a, b = joint_crop(reference, prediction)
    return dice(a, b), hausdorff95(surface_distances(a, b, np.diag(spacing)))


def deepmind(reference: Bools, prediction: Bools, spacing: Spacing) -> tuple[float, float]:
    distances = surface_distance.compute_surface_distances(reference, prediction, spacing)
    overlap = surface_distance.compute_dice_coefficient(reference, prediction)
    return float(overlap), float(surface_distance.compute_robust_hausdorff(distances, 95))


def plain(reference: Bools, prediction: Bools, spacing: Spacing) -> tuple[float, float]:
    """Contours and trees over the whole volume, as one would write it first."""
    shared = np.logical_and(reference, prediction).sum()
    overlap = 2 * shared / (reference.sum() + prediction.sum())
    points = []
    for mask in (reference, prediction):
        image = sitk.GetImageFromArray(mask.astype(np.uint8))
        points.append(np.argwhere(sitk.GetArrayFromImage(sitk.LabelContour(image))) * spacing)
    there, back = cKDTree(points[1]).query(points[0])[0], cKDTree(points[0]).query(points[1])[0]
    return float(overlap), float(max(np.percentile(there, 95), np.percentile(back, 95)))


Program = Callable[[Bools, Bools, Spacing], tuple[float, float]]
PROGRAMS: dict[str, Program] = {
    "ours": ours,
    "surface-distance": deepmind,
    "SimpleITK + SciPy": plain,
}


def median_ms(scene: Scene, seed: int, rounds: int) -> tuple[dict[str, float], float, float]:
    """Return each program's median time in ms on a scene, and our Dice and HD95 (mm)."""
    pair = make_pair(scene, seed)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    results = {}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            start = time.perf_counter()
            results[name] = program(*pair, scene.spacing_mm)
            times[name].append((time.perf_counter() - start) * 1e3)
    if not np.allclose(results["ours"], results["SimpleITK + SciPy"], rtol=1e-9):
        raise SystemExit(f"{scene}: {results}: the same definition gave different numbers")
    medians = {name: float(np.median(values)) for name, values in times.items()}
    return medians, *results["ours"]


def report(rows: list[dict[str, float]]) -> dict[str, float]:
    """Print the ratios over all pairs and return the ratio of the sums for each peer."""
    ratios = {}
    for peer, limit in LIMITS.items():
        each = [row[peer] / row["ours"] for row in rows]
        ratios[peer] = sum(row[peer] for row in rows) / sum(row["ours"] for row in rows)
        print(
            f"{peer:>18}: {ratios[peer]:5.1f} x over all pairs (limit {limit:g}); "
            f"by pair median {np.median(each):.1f}, least {min(each):.1f}"
        )
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    print(f"{'volume':>15} {'lesion':>7} {'far':>4} {'Dice':>5} {'HD95 mm':>8} ", end="")
    print(*(f"{name + ' ms':>22}" for name in PROGRAMS))
    rows = []
    for seed, scene in enumerate(SCENES):
        medians, overlap, distance = median_ms(scene, seed, arguments.rounds)
        rows.append(medians)
        size, far = "x".join(map(str, scene.shape)), "yes" if scene.far else "no"
        print(
            f"{size:>15} {scene.lesion_mm:>4g} mm {far:>4} {overlap:5.2f} {distance:8.2f} ", end=""
        )
        print(*(f"{value:22.2f}" for value in medians.values()), flush=True)
    ratios = report(rows)
    if arguments.check and any(ratios[peer] < limit for peer, limit in LIMITS.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
