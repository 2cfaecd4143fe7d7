"""Registration of one volume onto another by mutual information: rigid, then B-spline."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import Progress
from napari_mamamia.kinetics.registration.itk import (
    Warp,
    image_of,
    require_simpleitk,
    turned,
)
from napari_mamamia.kinetics.registration.progress import in_thread
from napari_mamamia.kinetics.registration.settings import RegistrationSettings

_RIGID_STEPS: Final = 60  # largest number of steps on each level
_SPLINE_STEPS: Final = 20
_RELAX: Final = 0.7  # factor on the step at each change of the gradient's direction
_FIRST_STEP: Final = 0.4  # in voxels of the level, root mean square over control points
_LAST_STEP: Final = 0.01
_SPLINE_LAST_STEP: Final = 0.02
_SPLINE_LEVELS: Final = 2  # the finest levels: rigid registration has removed large motion
_ORDER: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level from coarse to fine: two volumes ``(z, y, x)`` float32 and the sampled region.

    `inside` is uint8, 1 where the metric is sampled. `spacing_mm` and `origin_mm`, the centre of
    voxel 0, are along (z, y, x).
    """

    fixed: NDArray[np.float32]
    moving: NDArray[np.float32]
    inside: NDArray[np.uint8]
    spacing_mm: tuple[float, ...]
    origin_mm: tuple[float, ...]


def find_rigid(
    levels: Sequence[Level],
    centre_mm: tuple[float, float, float],
    settings: RegistrationSettings,
    text: str,
) -> Warp:
    """Return the rotation and translation that maximise the mutual information of two volumes.

    The search starts at the identity. Each level uses gradient descent with regular steps: the
    first step moves by at most 0.4 voxels, and each change of the gradient's direction shortens it.

    Parameters
    ----------
    levels
        The volumes, coarse first.
    centre_mm
        Centre of rotation along (z, y, x), mm.
    settings
        Settings of the registration.
    text
        Text of the progress.

    Source: Mattes 2003 (IEEE Trans. Med. Imaging 22:120), as in Insight Toolkit.
    """
    itk = require_simpleitk()
    transform = itk.Euler3DTransform()
    transform.SetCenter(turned(centre_mm, float))
    metric = float("nan")
    for index, level in enumerate(levels):
        method = _make_method(level, settings)
        step = max(level.spacing_mm)
        method.SetOptimizerAsRegularStepGradientDescent(
            _FIRST_STEP * step, _LAST_STEP * step, _RIGID_STEPS, _RELAX
        )
        method.SetOptimizerScalesFromPhysicalShift()
        method.SetInitialTransform(transform, True)
        _run_level(method, level, f"{text}: rigid", index, len(levels), _RIGID_STEPS)
        metric = -float(method.GetMetricValue())
    turns = (transform.GetAngleZ(), transform.GetAngleY(), transform.GetAngleX())
    x, y, z = transform.GetTranslation()
    a, b, c = (float(np.degrees(turn)) for turn in turns)
    return Warp(transform, (a, b, c), (z, y, x), centre_mm, metric)


def find_bspline(
    levels: Sequence[Level], rigid: Warp, settings: RegistrationSettings, text: str
) -> Warp:
    """Return a smooth deformation on top of a rigid warp.

    Cubic B-splines on control points about `settings.mesh_mm` apart, the same on the two finest
    levels; gradient descent with regular steps, whose root mean square over the control points
    starts at 0.2 voxels.

    Parameters
    ----------
    levels
        The volumes, coarse first.
    rigid
        The rigid warp on which the B-spline is added.
    settings
        Settings of the registration.
    text
        Text of the progress.

    Source: Rueckert 1999 (IEEE Trans. Med. Imaging 18:712); here with Mattes' metric and no
    smoothness penalty, since the mesh is coarse.
    """
    itk = require_simpleitk()
    levels = levels[-_SPLINE_LEVELS:]
    finest = levels[-1]
    extent = [n * mm for n, mm in zip(finest.fixed.shape, finest.spacing_mm, strict=True)]
    counts = [max(1, round(mm / settings.mesh_mm)) for mm in extent]
    fixed = image_of(finest.fixed, finest.spacing_mm, finest.origin_mm)
    spline = itk.BSplineTransformInitializer(fixed, turned(counts, int), _ORDER)
    # The optimiser's step is the length of the whole vector: the root mean square times this.
    length = float(np.sqrt(spline.GetNumberOfParameters()))
    metric = float("nan")
    for index, level in enumerate(levels):
        method = _make_method(level, settings)
        step = max(level.spacing_mm) * length
        method.SetOptimizerAsRegularStepGradientDescent(
            _FIRST_STEP * step / 2, _SPLINE_LAST_STEP * step, _SPLINE_STEPS, _RELAX
        )
        method.SetMovingInitialTransform(rigid.transform)
        method.SetInitialTransform(spline, True)
        _run_level(method, level, f"{text}: B-spline", index, len(levels), _SPLINE_STEPS)
        metric = -float(method.GetMetricValue())
    both = itk.CompositeTransform([rigid.transform, spline])
    mesh = tuple(mm / n for mm, n in zip(extent, counts, strict=True))
    return Warp(both, rigid.rotation_deg, rigid.translation_mm, rigid.centre_mm, metric, True, mesh)


def _make_method(level: Level, settings: RegistrationSettings) -> Any:
    itk = require_simpleitk()
    method = itk.ImageRegistrationMethod()
    method.SetNumberOfWorkUnits(1)  # sums in one order: the same result on any number of cores
    method.SetMetricAsMattesMutualInformation(settings.bins)
    method.SetMetricFixedMask(image_of(level.inside, level.spacing_mm, level.origin_mm))
    method.SetMetricSamplingStrategy(method.RANDOM)
    share = min(1.0, settings.samples / max(int(np.count_nonzero(level.inside)), 1))
    method.SetMetricSamplingPercentage(share, settings.seed)
    method.MetricUseFixedImageGradientFilterOff()  # gradients at the samples only
    method.MetricUseMovingImageGradientFilterOff()
    method.SetInterpolator(itk.sitkLinear)
    return method


def _run_level(
    method: Any, level: Level, text: str, place: int, n_levels: int, n_steps: int
) -> None:
    """Run one level in a thread; if closed before its end, it stops at the next step."""
    itk = require_simpleitk()
    fixed = image_of(level.fixed, level.spacing_mm, level.origin_mm)
    moving = image_of(level.moving, level.spacing_mm, level.origin_mm)
    stop = threading.Event()
    counter = [0]

    def on_step() -> None:
        counter[0] += 1
        if stop.is_set():
            method.StopRegistration()

    def progress() -> Progress:
        done_here = place * n_steps + min(counter[0], n_steps)
        return Progress(done_here, n_levels * n_steps, text)

    method.AddCommand(itk.sitkIterationEvent, on_step)
    try:
        in_thread(lambda: method.Execute(fixed, moving), stop.set, progress)
    finally:
        method.RemoveAllCommands()
