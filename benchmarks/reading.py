"""Time reading masks and images from ``.nii.gz`` against nibabel and SimpleITK.

    python benchmarks/reading.py [--rounds N] [--check]

Masks are 512x512x170 uint8 with a lesion of 10 to 60 mm, as nibabel and as SimpleITK write them;
the image is 5 phases of int16 512x512x170, noise on smooth anatomy, gzip level 6. Files lie in
memory where the system has such a folder, so that no disk blurs the comparison, and times are the
processor's, so that other programs do not. Each round runs every program once, in random order; a
ratio is the median over rounds of the peer's time by ours. ``--check`` exits 1 if a ratio misses
its limit of issue 2.
"""

import argparse
import gzip
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

from napari_mamamia.io.data_set.volumes import (
    read_labels,
    read_labels_dense,
    read_phase_header,
    read_phase_into,
)
from napari_mamamia.io.files.sources import PhaseSource

SHAPE, PHASES = (170, 512, 512), 5
AFFINE = np.diag([-0.7, 0.7, 1.0, 1.0])
LESIONS_MM = (10, 25, 60)
LIMITS = {
    ("mask, dense", "nibabel"): 3.5,
    ("mask, dense", "SimpleITK"): 4.5,
    ("mask, crop", "nibabel"): 4.5,
    ("mask, crop", "SimpleITK"): 5.5,
    ("image, 5 phases", "nibabel"): 1.8,
}
Read = Callable[[], Any]


def lesion(size_mm: float, seed: int) -> NDArray[np.uint8]:
    """Return a mask with one rough ball."""
    mask = np.zeros(SHAPE, np.uint8)
    reach = int(size_mm)
    z, y, x = np.ogrid[-reach:reach, -reach:reach, -reach:reach]
    rough = gaussian_filter(np.random.default_rng(seed).standard_normal((2 * reach,) * 3), 3)
    distance_mm = np.sqrt((z * 1.0) ** 2 + (y * 0.7) ** 2 + (x * 0.7) ** 2)
    ball = distance_mm < size_mm / 2 * (1 + 0.1 * rough / rough.std())
    mask[85 - reach : 85 + reach, 200 - reach : 200 + reach, 150 - reach : 150 + reach] = ball
    return mask


def phase(seed: int) -> NDArray[np.int16]:
    """Return noise on smooth anatomy, with air around it."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.standard_normal((170, 128, 128)).astype(np.float32), 3)
    anatomy = np.clip(zoom(smooth / smooth.std(), (1, 4, 4), order=1) * 150 + 300, 0, None)
    anatomy[anatomy < 200] = 0
    return np.abs(anatomy + rng.normal(scale=12, size=SHAPE)).astype(np.int16)


def write_mask_files(folder: Path) -> list[Path]:
    paths = []
    for seed, size_mm in enumerate(LESIONS_MM):
        mask = lesion(size_mm, seed)
        paths += [folder / f"nibabel {size_mm}.nii.gz", folder / f"SimpleITK {size_mm}.nii.gz"]
        nib.save(nib.Nifti1Image(mask.T, AFFINE), paths[-2])
        image = sitk.GetImageFromArray(mask)
        image.SetSpacing((0.7, 0.7, 1.0))
        sitk.WriteImage(image, str(paths[-1]), useCompression=True)
    return paths


def write_image_files(folder: Path) -> list[Path]:
    image = nib.Nifti1Image(phase(0).T, AFFINE)
    data = gzip.compress(image.to_bytes(), 6)
    paths = [folder / f"CASE_1_{k:04d}.nii.gz" for k in range(PHASES)]
    for path in paths:
        path.write_bytes(data)
    return paths


def by_nibabel(path: Path) -> NDArray[Any]:
    values: NDArray[Any] = np.asanyarray(nib.load(path).dataobj)
    return values.T


def by_simpleitk(path: Path) -> NDArray[Any]:
    values: NDArray[Any] = sitk.GetArrayFromImage(sitk.ReadImage(str(path)))
    return values


def ours_phases(paths: list[Path]) -> NDArray[Any]:
    sources = [PhaseSource((path,)) for path in paths]
    out = np.empty((len(paths), *SHAPE), np.int16)
    for source, place in zip(sources, out, strict=True):
        read_phase_into(source, read_phase_header(source), place)
    return out


def times_ms(programs: dict[str, Read], rounds: int) -> dict[str, NDArray[np.float64]]:
    """Return each program's time in every round."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in random.sample(list(programs.items()), len(programs)):
            start = time.process_time()
            result = program()
            times[name].append((time.process_time() - start) * 1e3)
            del result
    return {name: np.array(values) for name, values in times.items()}


def compare(what: str, times: dict[str, NDArray[np.float64]], rows: list[str]) -> bool:
    """Print a line for each of `rows` against each peer; return whether all limits are met."""
    kept = True
    for row in rows:
        for peer in ("nibabel", "SimpleITK"):
            ratio = float(np.median(times[peer] / times[row]))
            limit = LIMITS.get((row, peer))
            kept &= limit is None or ratio >= limit
            ours, theirs = np.median(times[row]), np.median(times[peer])
            said = "" if limit is None else f"  (limit {limit})"
            print(
                f"{what:>22} {row:>16} {ours:8.1f} ms {peer:>10} {theirs:8.1f} ms "
                f"{ratio:6.1f} x{said}",
                flush=True,
            )
    return kept


def compare_masks(folder: Path, rounds: int) -> bool:
    kept = True
    for path in write_mask_files(folder):
        programs: dict[str, Read] = {
            "mask, dense": lambda path=path: read_labels_dense(path),
            "mask, crop": lambda path=path: read_labels(path),
            "nibabel": lambda path=path: by_nibabel(path),
            "SimpleITK": lambda path=path: by_simpleitk(path),
        }
        if not np.array_equal(read_labels_dense(path)[1], by_nibabel(path)):
            raise SystemExit(f"{path.name}: two readers gave two masks")
        rows = ["mask, dense", "mask, crop"]
        kept &= compare(path.name[: -len(".nii.gz")] + " mm", times_ms(programs, rounds), rows)
    return kept


def compare_images(folder: Path, rounds: int) -> bool:
    paths = write_image_files(folder)
    programs: dict[str, Read] = {
        "image, 5 phases": lambda: ours_phases(paths),
        "nibabel": lambda: [by_nibabel(path) for path in paths],
        "SimpleITK": lambda: [by_simpleitk(path) for path in paths],
    }
    if not np.array_equal(ours_phases(paths[:1])[0], by_nibabel(paths[0])):
        raise SystemExit("two readers gave two images")
    return compare("gzip level 6", times_ms(programs, rounds), ["image, 5 phases"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        kept = compare_masks(Path(name), arguments.rounds)
        kept &= compare_images(Path(name), max(arguments.rounds // 2, 1))
    if arguments.check and not kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
