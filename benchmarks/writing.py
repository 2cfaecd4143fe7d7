"""Time saving a 512x512x170 mask as ``.nii.gz`` against nibabel and SimpleITK.

    python benchmarks/writing.py [--rounds N] [--check]

Masks have a lesion of 10, 25 and 60 mm; every program starts from the same bool array, but "ours,
known box" from the block that is not zero, as saving an edited mask does. Ours also
compares what it wrote with the mask before the file gets its name, and replaces the old file in one
step; "nibabel, verified" reads its file back and compares, to do equal work. Files lie in memory
where the system has such a folder, so that no disk blurs the comparison, and times are the
processor's, so that other programs do not. Each round runs every program once, in random order.
``--check`` exits 1 if the medians of ours, summed over the masks, are not 10 x shorter than
nibabel's, or those with the known box for any one of the masks.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels_dense, write_labels, write_mask

SHAPE = (170, 512, 512)
AFFINE = np.diag([-0.7, 0.7, 1.0, 1.0])
LESIONS_MM = (10, 25, 60)
LIMIT_NIBABEL = 10.0


def lesion(size_mm: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask with one rough ball, every page of its memory written."""
    mask = np.full(SHAPE, fill_value=False)
    reach = int(size_mm)
    z, y, x = np.ogrid[-reach:reach, -reach:reach, -reach:reach]
    rough = gaussian_filter(np.random.default_rng(seed).standard_normal((2 * reach,) * 3), 3)
    distance_mm = np.sqrt((z * 1.0) ** 2 + (y * 0.7) ** 2 + (x * 0.7) ** 2)
    ball = distance_mm < size_mm / 2 * (1 + 0.1 * rough / rough.std())
    mask[85 - reach : 85 + reach, 200 - reach : 200 + reach, 150 - reach : 150 + reach] = ball
    return mask


def by_nibabel(mask: NDArray[np.bool_], path: Path) -> None:
    nib.save(nib.Nifti1Image(mask.astype(np.uint8).T, AFFINE), path)


def by_nibabel_verified(mask: NDArray[np.bool_], path: Path) -> None:
    by_nibabel(mask, path)
    if not np.array_equal(np.asanyarray(nib.load(path).dataobj).T, mask):
        raise SystemExit(f"{path.name}: nibabel's mask did not read back")


def by_simpleitk(mask: NDArray[np.bool_], path: Path) -> None:
    image = sitk.GetImageFromArray(mask.astype(np.uint8))
    sitk.WriteImage(image, str(path), useCompression=True)


def ours(mask: NDArray[np.bool_], path: Path) -> None:
    write_mask(Mask(Grid(SHAPE, AFFINE), mask), path, overwrite=True)


KNOWN = "ours, known box"
PROGRAMS: dict[str, Callable[[NDArray[np.bool_], Path], None]] = {
    "ours": ours,
    KNOWN: ours,
    "nibabel": by_nibabel,
    "nibabel, verified": by_nibabel_verified,
    "SimpleITK": by_simpleitk,
}


def times_ms(mask: NDArray[np.bool_], folder: Path, rounds: int) -> dict[str, NDArray[np.float64]]:
    """Return each program's time in every round."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    labels = LabelMap.of(mask, Grid(SHAPE, AFFINE))
    PROGRAMS[KNOWN] = lambda _, path: write_labels(labels, path, overwrite=True)
    for _ in range(rounds):
        for name, program in random.sample(list(PROGRAMS.items()), len(PROGRAMS)):
            start = time.process_time()
            program(mask, folder / f"{name}.nii.gz")
            times[name].append((time.process_time() - start) * 1e3)
    return {name: np.array(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    memory = Path("/dev/shm")
    sums = dict.fromkeys(PROGRAMS, 0.0)
    least = float("inf")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        for seed, size_mm in enumerate(LESIONS_MM):
            mask = lesion(size_mm, seed)
            times = times_ms(mask, Path(name), arguments.rounds)
            if not np.array_equal(read_labels_dense(Path(name) / "ours.nii.gz")[1], mask):
                raise SystemExit("the mask did not read back")
            both = [(Path(name) / f"{own}.nii.gz").read_bytes() for own in ("ours", KNOWN)]
            if both[0] != both[1]:
                raise SystemExit("the known box gives other bytes")
            least = min(least, float(np.median(times["nibabel"]) / np.median(times[KNOWN])))
            for peer in PROGRAMS:
                sums[peer] += float(np.median(times[peer]))
                size_kb = (Path(name) / f"{peer}.nii.gz").stat().st_size / 1e3
                print(
                    f"lesion of {size_mm:2d} mm {peer:>18} {np.median(times[peer]):7.1f} ms "
                    f"{size_kb:5.0f} kB {np.median(times[peer] / times['ours']):6.1f} x",
                    flush=True,
                )
    for peer in ("nibabel", "nibabel, verified", "SimpleITK"):
        print(f"over all masks {peer:>18} {sums[peer] / sums['ours']:6.1f} x")
    ratio = sums["nibabel"] / sums["ours"]
    print(f"limit: {LIMIT_NIBABEL:g} x nibabel, reached {ratio:.1f} x")
    print(f"limit: {LIMIT_NIBABEL:g} x nibabel with the known box, reached {least:.1f} x or more")
    if arguments.check and min(ratio, least) < LIMIT_NIBABEL:
        sys.exit(1)


if __name__ == "__main__":
    main()
