"""Time and memory of moving one phase onto another, against SimpleITK's plain recipe.

    python benchmarks/registration.py [--shape 80,256,256] [--check]

One phase of 80 x 256 x 256 voxels of 2 x 1 x 1 mm, shifted by 3 mm, is registered to the next one:
by `register_phases` (rigid, then B-spline; levels by physical size, residuals, Jacobian and
resampling included) and by the recipe of SimpleITK's notebooks at full resolution (Mattes mutual
information with 50 bins on 1 % of the voxels; rigid by gradient descent with shrink factors 4, 2,
1; B-spline of 8 x 8 x 8 cells by 10 steps of L-BFGS-B, of which its users take 100; resampling).
Each runs in a process of its own, one after the other; peak memory is that process's (ru_maxrss),
the phases included.
``--check`` exits 1 where ours takes more than 60 s of processor time or
1.5 GB, or is off by 0.3 mm more than the recipe (mean over places in the middle).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

SPACING, SHIFT_MM = (2.0, 1.0, 1.0), (0.0, 3.0, -2.0)
MOST_S, MOST_MB, WORSE_MM = 60.0, 1500.0, 0.3


def two_phases(shape: tuple[int, int, int]) -> NDArray[np.int16]:
    """Return tissue before contrast, shifted, and after contrast with a lesion; with noise."""
    rng = np.random.default_rng(0)
    rough = rng.normal(size=[n // 4 for n in shape]).astype(np.float32)
    smooth = ndimage.gaussian_filter(rough, 2.0)
    zoom = [n / m for n, m in zip(shape, smooth.shape, strict=True)]
    fine = ndimage.zoom(smooth / smooth.std(), zoom, order=1)
    axes = np.ogrid[tuple(slice(-1, 1, n * 1j) for n in shape)]
    inside = axes[1] ** 2 + axes[2] ** 2 < 0.7
    tissue = np.where(inside, 300 + 80 * fine, 0)
    lesion = sum(((a - 0.2) * n) ** 2 for a, n in zip(axes, shape, strict=True)) < 30**2
    post = tissue * np.where(lesion, 2.5, 1.05)
    steps = [mm / s for mm, s in zip(SHIFT_MM, SPACING, strict=True)]
    pre = ndimage.shift(tissue, steps, order=1, mode="nearest")
    found = np.empty((2, *shape), np.int16)
    for image, out in zip((pre, post), found, strict=True):
        noise = 15 * rng.standard_normal(shape, np.float32)
        out[:] = np.maximum(image + noise, 0)
    return found


def ours(signal: NDArray[np.int16]) -> float:
    """Return the mean error of the places that were found, mm."""
    from napari_mamamia.core.case import Case, Phase
    from napari_mamamia.core.grid import Grid
    from napari_mamamia.kinetics.registration.registration import register_phases

    z, y, x = SPACING
    grid = Grid(signal.shape[1:], np.diag([-x, y, z, 1.0]))
    case = Case("BENCHMARK", grid, signal, (Phase(0, 0.0), Phase(1, 90.0)))
    found = register_phases(case).warps[0]
    points = places(signal.shape[1:])
    return float(np.linalg.norm(found.places(points) - points - SHIFT_MM, axis=1).mean())


def recipe(signal: NDArray[np.int16]) -> float:
    """Do the same as SimpleITK's notebooks do: rigid, then B-spline, all at full resolution."""
    import SimpleITK as sitk  # noqa: N813 - as its users write it

    pre, post = (sitk.GetImageFromArray(volume.astype(np.float32)) for volume in signal)
    for image in (pre, post):
        image.SetSpacing(SPACING[::-1])
    centred = sitk.CenteredTransformInitializerFilter.GEOMETRY
    start = sitk.CenteredTransformInitializer(post, pre, sitk.Euler3DTransform(), centred)
    method = recipe_method(sitk)
    method.SetOptimizerAsGradientDescent(1.0, 100, 1e-6, 10)
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetShrinkFactorsPerLevel([4, 2, 1])
    method.SetSmoothingSigmasPerLevel([2, 1, 0])
    method.SmoothingSigmasAreSpecifiedInPhysicalUnitsOn()
    method.SetInitialTransform(start, False)
    rigid = method.Execute(post, pre)
    bend = recipe_method(sitk)
    bend.SetOptimizerAsLBFGSB(1e-5, 10)
    bend.SetMovingInitialTransform(rigid)
    bend.SetInitialTransform(sitk.BSplineTransformInitializer(post, [8, 8, 8], 3), True)
    both = sitk.CompositeTransform([rigid, bend.Execute(post, pre)])
    sitk.Resample(pre, post, both, sitk.sitkLinear, 0.0)
    points = places(signal.shape[1:])
    ends = [both.TransformPoint([float(mm) for mm in point[::-1]])[::-1] for point in points]
    return float(np.linalg.norm(np.array(ends) - points - SHIFT_MM, axis=1).mean())


def recipe_method(sitk: Any) -> Any:
    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(50)
    method.SetMetricSamplingStrategy(method.RANDOM)
    method.SetMetricSamplingPercentage(0.01, 7)
    method.SetInterpolator(sitk.sitkLinear)
    return method


def places(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return places in the middle of the volume, mm (n, 3)."""
    share = np.stack(np.meshgrid(*[np.linspace(0.35, 0.65, 4)] * 3)).reshape(3, -1).T
    return share * (np.array(shape) - 1) * SPACING


def measure(which: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Run one of both in this process."""
    import resource

    with tempfile.TemporaryDirectory() as folder:  # made elsewhere: making takes more memory
        path = Path(folder) / "phases.npy"
        subprocess.run([sys.executable, __file__, *_shape(shape), "--make", path], check=True)
        signal = np.load(path)
    own = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    off = {"ours": ours, "recipe": recipe}[which](signal)
    wall = time.perf_counter() - begun
    now = resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": now.ru_maxrss / 1024, "off_mm": off}


def _shape(shape: tuple[int, int, int]) -> list[str]:
    return ["--shape", ",".join(map(str, shape))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="80,256,256")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--make", type=Path)
    parser.add_argument("--only", choices=("ours", "recipe"))
    given = parser.parse_args()
    z, y, x = (int(n) for n in given.shape.split(","))
    if given.make:
        np.save(given.make, two_phases((z, y, x)))
        return 0
    if given.only:
        print(json.dumps(measure(given.only, (z, y, x))))
        return 0
    found = {}
    for which in ("ours", "recipe"):
        command = [sys.executable, __file__, "--shape", given.shape, "--only", which]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        one = found[which] = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{which:7s} {one['wall_s']:6.1f} s, {one['cpu_s']:6.1f} s of processor, "
            f"peak {one['peak_mb']:6.0f} MB, places off by {one['off_mm']:.2f} mm"
        )
    own, other = found["ours"], found["recipe"]
    print(f"ratio   {own['cpu_s'] / other['cpu_s']:.2f} of the recipe's processor time")
    print(f"load    {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    slow = own["cpu_s"] > MOST_S or own["peak_mb"] > MOST_MB
    return int(given.check and (slow or own["off_mm"] > other["off_mm"] + WORSE_MM))


if __name__ == "__main__":
    sys.exit(main())
