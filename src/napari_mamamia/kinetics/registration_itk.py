"""Moving one volume onto another with SimpleITK. The one module that knows that package.

Places are millimetres along the array's own axes, (z, y, x) from the middle of voxel 0: distances
are the patient's as long as the axes are at right angles, whatever the orientation.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.kinetics.registration_settings import Interpolation, RegistrationSettings

__all__ = ["Level", "Warp", "find_bspline", "find_rigid", "in_thread", "require_simpleitk"]

T = TypeVar("T")

_POLL_S: Final = 0.1
_RIGID_STEPS: Final = 60  # most steps on each level
_SPLINE_STEPS: Final = 20
_RELAX: Final = 0.7  # each turn of the gradient shortens the step by it
_FIRST_STEP: Final = 0.4  # of a voxel of the level, root mean square over control points
_LAST_STEP: Final = 0.01
_SPLINE_LAST_STEP: Final = 0.02
_SPLINE_LEVELS: Final = 2  # the finest ones: rigid has found what is large
_ORDER: Final = 3


def require_simpleitk() -> ModuleType:
    """Return the package SimpleITK.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import SimpleITK
    except ImportError as error:
        raise MissingExtraError("SimpleITK", "register") from error
    module: ModuleType = SimpleITK
    return module


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One step from coarse to fine: two volumes ``(z, y, x)`` float32 and where to sample.

    `inside` is uint8, 1 where the metric looks. `spacing_mm` and `origin_mm`, the middle of voxel
    0, are along (z, y, x).
    """

    fixed: NDArray[np.float32]
    moving: NDArray[np.float32]
    inside: NDArray[np.uint8]
    spacing_mm: tuple[float, ...]
    origin_mm: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """Where each place of the reference phase lies in another one: a SimpleITK transform.

    `rotation_deg` about and `translation_mm` along the array's axes (z, y, x); the rotation is
    about `centre_mm`. `metric` is the mutual information that was reached, in nats, and its sign
    is turned: more is better.
    """

    transform: Any
    rotation_deg: tuple[float, float, float]
    translation_mm: tuple[float, float, float]
    centre_mm: tuple[float, float, float]
    metric: float
    is_spline: bool = False
    mesh_mm: tuple[float, ...] = ()

    def places(self, points_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where points ``(n, 3)`` of the reference phase lie in the other one, mm."""
        found = [self.transform.TransformPoint(_turned(point, float)) for point in points_mm]
        return np.array(found, np.float64).reshape(-1, 3)[:, ::-1]

    def displacement(
        self, shape: Sequence[int], spacing_mm: Sequence[float], origin_mm: Sequence[float]
    ) -> NDArray[np.float64]:
        """Return how far each voxel of a grid is moved: mm, ``(3, z, y, x)``, (z, y, x) first."""
        itk = require_simpleitk()
        field = itk.TransformToDisplacementField(
            self.transform,
            itk.sitkVectorFloat64,
            _turned(shape, int),
            _turned(origin_mm, float),
            _turned(spacing_mm, float),
        )
        found: NDArray[np.float64] = np.moveaxis(itk.GetArrayFromImage(field)[..., ::-1], -1, 0)
        return found

    def moved(
        self,
        image: Any,
        shape: Sequence[int],
        spacing_mm: Sequence[float],
        origin_mm: Sequence[float],
        interpolation: Interpolation,
    ) -> tuple[NDArray[np.float32], int]:
        """Return an image (of `image_of`) on a grid, float32, and how many voxels lie outside it.

        These take the value at the image's edge that is nearest.
        """
        itk = require_simpleitk()
        method = itk.ResampleImageFilter()
        method.SetSize(_turned(shape, int))
        method.SetOutputSpacing(_turned(spacing_mm, float))
        method.SetOutputOrigin(_turned(origin_mm, float))
        method.SetTransform(self.transform)
        is_cubic = interpolation is Interpolation.CUBIC
        method.SetInterpolator(itk.sitkBSpline3 if is_cubic else itk.sitkLinear)
        method.SetOutputPixelType(itk.sitkFloat32)
        method.SetDefaultPixelValue(float("nan"))
        found: NDArray[np.float32] = itk.GetArrayFromImage(method.Execute(image))
        outside = np.isnan(found)
        count = int(np.count_nonzero(outside))
        if count:
            method.SetUseNearestNeighborExtrapolator(True)
            edge = itk.GetArrayFromImage(method.Execute(image))
            found[outside] = edge[outside]
        return found, count


def image_of(
    volume: NDArray[Any], spacing_mm: Sequence[float], origin_mm: Sequence[float] = (0, 0, 0)
) -> Any:
    """Return a volume ``(z, y, x)`` as a SimpleITK image, its voxels copied."""
    image = require_simpleitk().GetImageFromArray(np.ascontiguousarray(volume))
    image.SetSpacing(_turned(spacing_mm, float))
    image.SetOrigin(_turned(origin_mm, float))
    return image


def find_rigid(
    levels: Sequence[Level],
    centre_mm: tuple[float, float, float],
    settings: RegistrationSettings,
    text: str,
) -> Job[Warp]:
    """Return a job for the rotation and shift that let two volumes share most information.

    It starts where they are. On each level gradient descent with regular steps: the first one
    moves by at most 0.4 voxels, each turn of the gradient shortens it.

    Source: Mattes 2003 (IEEE Trans. Med. Imaging 22:120), as in Insight Toolkit.
    """
    itk = require_simpleitk()
    transform = itk.Euler3DTransform()
    transform.SetCenter(_turned(centre_mm, float))
    metric = float("nan")
    for place, level in enumerate(levels):
        method = _method(level, settings)
        step = max(level.spacing_mm)
        method.SetOptimizerAsRegularStepGradientDescent(
            _FIRST_STEP * step, _LAST_STEP * step, _RIGID_STEPS, _RELAX
        )
        method.SetOptimizerScalesFromPhysicalShift()
        method.SetInitialTransform(transform, True)
        yield from _execute(method, level, f"{text}: rigid", place, len(levels), _RIGID_STEPS)
        metric = -float(method.GetMetricValue())
    turns = (transform.GetAngleZ(), transform.GetAngleY(), transform.GetAngleX())
    x, y, z = transform.GetTranslation()
    a, b, c = (float(np.degrees(turn)) for turn in turns)
    return Warp(transform, (a, b, c), (z, y, x), centre_mm, metric)


def find_bspline(
    levels: Sequence[Level], rigid: Warp, settings: RegistrationSettings, text: str
) -> Job[Warp]:
    """Return a job for a smooth deformation on top of a rigid warp.

    Cubic B-splines on control points about `settings.mesh_mm` apart, the same on the two finest
    levels; gradient descent with regular steps, whose root mean square over the control points
    begins at 0.2 voxels.

    Source: Rueckert 1999 (IEEE Trans. Med. Imaging 18:712); here with Mattes' metric and without a
    penalty, for which the mesh is coarse.
    """
    itk = require_simpleitk()
    levels = levels[-_SPLINE_LEVELS:]
    finest = levels[-1]
    extent = [n * mm for n, mm in zip(finest.fixed.shape, finest.spacing_mm, strict=True)]
    counts = [max(1, round(mm / settings.mesh_mm)) for mm in extent]
    fixed = image_of(finest.fixed, finest.spacing_mm, finest.origin_mm)
    spline = itk.BSplineTransformInitializer(fixed, _turned(counts, int), _ORDER)
    length = float(np.sqrt(spline.GetNumberOfParameters()))
    metric = float("nan")
    for place, level in enumerate(levels):
        method = _method(level, settings)
        step = max(level.spacing_mm) * length
        method.SetOptimizerAsRegularStepGradientDescent(
            _FIRST_STEP * step / 2, _SPLINE_LAST_STEP * step, _SPLINE_STEPS, _RELAX
        )
        method.SetMovingInitialTransform(rigid.transform)
        method.SetInitialTransform(spline, True)
        yield from _execute(method, level, f"{text}: B-spline", place, len(levels), _SPLINE_STEPS)
        metric = -float(method.GetMetricValue())
    both = itk.CompositeTransform([rigid.transform, spline])
    mesh = tuple(mm / n for mm, n in zip(extent, counts, strict=True))
    return Warp(both, rigid.rotation_deg, rigid.translation_mm, rigid.centre_mm, metric, True, mesh)


def in_thread(
    work: Callable[[], T], stop: Callable[[], None], step: Callable[[], Progress]
) -> Job[T]:
    """Return a job that runs `work` in a thread and says `step()` every 0.1 s.

    Closed before its end, it calls `stop` and waits until `work` returns.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run, name="registration", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_S)
            yield step()
    finally:
        stop()
        thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _method(level: Level, settings: RegistrationSettings) -> Any:
    itk = require_simpleitk()
    method = itk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(settings.bins)
    method.SetMetricFixedMask(image_of(level.inside, level.spacing_mm, level.origin_mm))
    method.SetMetricSamplingStrategy(method.RANDOM)
    share = min(1.0, settings.samples / max(int(np.count_nonzero(level.inside)), 1))
    method.SetMetricSamplingPercentage(share, settings.seed)
    method.MetricUseFixedImageGradientFilterOff()  # gradients at the samples alone
    method.MetricUseMovingImageGradientFilterOff()
    method.SetInterpolator(itk.sitkLinear)
    return method


def _execute(
    method: Any, level: Level, text: str, place: int, n_levels: int, n_steps: int
) -> Job[None]:
    """Run one level in a thread; closed before its end, it stops at the next step."""
    itk = require_simpleitk()
    fixed = image_of(level.fixed, level.spacing_mm, level.origin_mm)
    moving = image_of(level.moving, level.spacing_mm, level.origin_mm)
    stop = threading.Event()
    done = [0]

    def on_step() -> None:
        done[0] += 1
        if stop.is_set():
            method.StopRegistration()

    def progress() -> Progress:
        done_here = place * n_steps + min(done[0], n_steps)
        return Progress(done_here, n_levels * n_steps, text)

    method.AddCommand(itk.sitkIterationEvent, on_step)
    try:
        yield from in_thread(lambda: method.Execute(fixed, moving), stop.set, progress)
    finally:
        method.RemoveAllCommands()


def _turned(values: Sequence[Any], kind: Callable[[Any], Any]) -> list[Any]:
    """Return (z, y, x) as SimpleITK has it, (x, y, z), in plain Python numbers."""
    return [kind(value) for value in reversed(list(values))]
