"""Files to scores, against a plain loop of SimpleITK and SciPy on the same files.

    python benchmarks/scoring.py [--pairs N] [--rounds N] [--check]

Forty pairs of masks at real sizes, up to 512x512x170, half of them with a false positive far from
the lesion, are written once by SimpleITK as ``.nii.gz`` at its own compression level. The peer
reads both files with SimpleITK, takes LabelContour of the whole volumes and SciPy trees, and works
out Dice, HD95 in voxels and in mm, the largest and the mean distance and the shares within 1 and
2 mm; "two numbers" stops after Dice and HD95 in voxels. Ours is `score_and_inspect`, what ``mamamia
score`` does with each pair: a whole row of ``case_scores.csv`` with volumes, diameter and warnings,
and why the case failed, under the profile official-code. Dice and HD95 in voxels must be equal to
the last bit, mm to rounding. Stages of it: "the row" without why it failed, and "unpacking".

A round scores every pair with every program; times are the processor's, of all threads, and the
median over rounds (the peer is slow: one round). "Unpacking" decompresses the files and drops the
bytes: what no reader can undercut. ``--check`` exits 1 below the limit of ours against the peer.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from zlib_ng import gzip_ng

from metrics import Bools, Scene, add_lesion
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.data_set.volumes import read_label_pair
from napari_mamamia.scoring.case.profiles import OFFICIAL_CODE
from napari_mamamia.scoring.case.score import score_label_maps
from napari_mamamia.services.batch.work import CaseInputs
from napari_mamamia.services.score.score import CaseSettings, score_and_inspect

LIMIT = 25.0
STRETCH = 1.5
VOLUMES = (
    ((170, 512, 512), (1.0, 0.7, 0.7)),
    ((160, 448, 448), (1.0, 0.8, 0.8)),
    ((128, 512, 512), (1.2, 0.66, 0.66)),
    ((100, 320, 320), (1.8, 1.0, 1.0)),
    ((60, 256, 256), (2.0, 0.7, 0.7)),
)
LESIONS_MM = (5, 10, 14, 18, 25, 32, 40, 55)
STEP_BYTES = 1 << 19
SETTINGS = CaseSettings(OFFICIAL_CODE)

Pair = tuple[Path, Path]
Times = NDArray[np.float64]
Points = NDArray[np.float64]


def scenes(n_pairs: int) -> Iterator[Scene]:
    """Every size of volume with every size of lesion in turn; every other one with a far part."""
    for number in range(n_pairs):
        shape, spacing = VOLUMES[number % len(VOLUMES)]
        lesion_mm = LESIONS_MM[number % len(LESIONS_MM)]
        yield Scene(shape, spacing, lesion_mm, 0.5 + lesion_mm / 30, far=number % 2 == 0)


def draw(scene: Scene, seed: int) -> tuple[Bools, Bools]:
    """Return the reference and the prediction of a scene."""
    reference, prediction = (np.zeros(scene.shape, np.bool_) for _ in range(2))
    spacing, size = scene.spacing_mm, scene.lesion_mm
    centre = np.array(scene.shape) * (0.5, 0.45, 0.3)
    moved = centre + scene.shift_mm / np.array(spacing)
    add_lesion(reference, spacing, np.rint(centre), size, seed)
    add_lesion(prediction, spacing, np.rint(moved), size * 1.04, seed + 100)
    if scene.far:
        elsewhere = np.array(scene.shape) * (0.35, 0.5, 0.75)
        add_lesion(prediction, spacing, np.rint(elsewhere), max(8.0, size / 3), seed + 200)
    return reference, prediction


def write_pairs(folder: Path, n_pairs: int) -> list[Pair]:
    """Write the masks as SimpleITK does when asked for compression, and nothing else."""
    pairs = []
    for seed, scene in enumerate(scenes(n_pairs)):
        paths = folder / f"{seed:02d}_reference.nii.gz", folder / f"{seed:02d}_prediction.nii.gz"
        for path, mask in zip(paths, draw(scene, seed), strict=True):
            image = sitk.GetImageFromArray(mask.astype(np.uint8))
            image.SetSpacing(scene.spacing_mm[::-1])
            sitk.WriteImage(image, str(path), useCompression=True)
        pairs.append(paths)
    return pairs


def ours(pair: Pair) -> CaseScore:
    """Do what the command does with a pair."""
    return score_and_inspect(CaseInputs("CASE", pair), SETTINGS).score


def the_row(pair: Pair) -> CaseScore:
    """Stop before why the case failed."""
    masks = read_label_pair(*pair, zero_nonfinite=True)
    return score_label_maps("CASE", *masks, OFFICIAL_CODE)


def whole_volumes(pair: Pair) -> tuple[float, float, tuple[Points, Points]]:
    """Do what one writes first: SimpleITK reads, contours of whole volumes, SciPy trees."""
    images = [sitk.ReadImage(str(path)) for path in pair]
    reference, prediction = (sitk.GetArrayFromImage(image) == 1 for image in images)
    shared = np.logical_and(reference, prediction).sum()
    overlap = 2 * shared / (reference.sum() + prediction.sum())
    a, b = (np.argwhere(sitk.GetArrayFromImage(sitk.LabelContour(image))) for image in images)
    there, back = both_ways(a, b)
    spacing = np.array(images[0].GetSpacing()[::-1])
    return float(overlap), hd95(there, back), (a * spacing, b * spacing)


def both_ways(a: Points, b: Points) -> tuple[Points, Points]:
    return cKDTree(b).query(a)[0], cKDTree(a).query(b)[0]


def hd95(there: Points, back: Points) -> float:
    return float(max(np.percentile(there, 95), np.percentile(back, 95)))


def two_numbers(pair: Pair) -> list[float]:
    """Dice and HD95 in voxels, the challenge's numbers."""
    return list(whole_volumes(pair)[:2])


def peer(pair: Pair) -> list[float]:
    """Return the surface numbers of a row: also in mm, largest, mean and within tolerances."""
    overlap, voxels, contours = whole_volumes(pair)
    there, back = both_ways(*contours)
    pooled = np.concatenate([there, back])
    within = [float((pooled <= limit * (1 + 1e-6)).mean()) for limit in (1.0, 2.0)]
    return [overlap, voxels, hd95(there, back), float(pooled.max()), float(pooled.mean()), *within]


def row_of(score: CaseScore) -> list[float]:
    """Return the numbers of `peer`, as ours has them."""
    mm = [score.hausdorff95_mm, score.hausdorff_mm, score.assd_mm, score.nsd_1mm, score.nsd_2mm]
    return [score.dsc, score.hausdorff95_voxels, *mm]


def unpacking(pair: Pair) -> None:
    for path in pair:
        with gzip_ng.open(path) as stream:
            while stream.read(STEP_BYTES):
                pass


Program = Callable[[Pair], object]
PROGRAMS: dict[str, Program] = {
    "ours": ours,
    "peer": peer,
    "peer, two numbers": two_numbers,
    "the row": the_row,
    "unpacking": unpacking,
}


def times_ms(pairs: list[Pair], rounds: int, peer_rounds: int) -> dict[str, Times]:
    """Return each program's median time for each pair; the rounds of all programs interleave."""
    times: dict[str, list[list[float]]] = {name: [] for name in PROGRAMS}
    for turn in range(rounds):
        for name, program in PROGRAMS.items():
            if name.startswith("peer") and turn >= peer_rounds:
                continue
            row = []
            for pair in pairs:
                start = time.process_time()
                program(pair)
                row.append((time.process_time() - start) * 1e3)
            times[name].append(row)
    return {name: np.median(rows, axis=0) for name, rows in times.items()}


def require_equal(pairs: list[Pair]) -> None:
    """Stop unless Dice and HD95 in voxels are the peer's to the last bit, mm to rounding."""
    for pair in pairs:
        own, expected = row_of(ours(pair)), peer(pair)
        if own[:2] != expected[:2] or not np.allclose(own, expected, rtol=1e-9, atol=0):
            raise SystemExit(f"{pair[0].name}: ours {own}, peer {expected}")


def report(pairs: list[Pair], times: dict[str, Times]) -> bool:
    """Print the times and the ratios; return whether the limit is met."""
    print("pair", *(f"{name + ' ms':>19}" for name in times))
    for pair, ms in zip(pairs, zip(*times.values(), strict=True), strict=True):
        print(f"{pair[0].name[:2]:>4}", *(f"{value:19.2f}" for value in ms))
    print(" all", *(f"{values.sum():19.2f}" for values in times.values()))
    own = times["ours"]
    each = times["peer"] / own
    ratio = float(times["peer"].sum() / own.sum())
    print(
        f"ours: {own.mean():.1f} ms a pair, {ratio:.1f} x the peer over all pairs "
        f"(limit {LIMIT:g}), by pair median {np.median(each):.1f}, least {each.min():.1f}; "
        f"{times['peer, two numbers'].sum() / own.sum():.1f} x the peer of two numbers; "
        f"{own.sum() / times['unpacking'].sum():.2f} x unpacking alone (stretch {STRETCH:g})"
    )
    return ratio >= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5, help="of ours")
    parser.add_argument("--peer-rounds", type=int, default=1, help="the peer is slow")
    parser.add_argument("--check", action="store_true", help="exit 1 beyond a limit")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        pairs = write_pairs(Path(name), options.pairs)
        require_equal(pairs)
        print(f"load {os.getloadavg()[0]:.1f}; {len(pairs)} pairs, Dice and HD95 equal on all")
        kept = report(pairs, times_ms(pairs, options.rounds, options.peer_rounds))
    return int(options.check and not kept)


if __name__ == "__main__":
    sys.exit(main())
