"""Register the phases of a case onto a reference phase if this improves the fit."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import Interpolation, TransformKind
from napari_mamamia.core.errors import CaseError, GridMismatchError, Remedy
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import Progress, forward_progress, part, report_progress
from napari_mamamia.kinetics.background import bright_from
from napari_mamamia.kinetics.registration import quality
from napari_mamamia.kinetics.registration.itk import (
    Warp,
    image_of,
    readable,
    require_simpleitk,
    turned,
)
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, Verdict

T = TypeVar("T")

_POLL_S: Final = 0.1
_RIGID_STEPS: Final = 60  # largest number of steps on each level
_SPLINE_STEPS: Final = 20
_RELAX: Final = 0.7  # factor on the step at each change of the gradient's direction
_FIRST_STEP: Final = 0.4  # in voxels of the level, root mean square over control points
_LAST_STEP: Final = 0.01
_SPLINE_LAST_STEP: Final = 0.02
_SPLINE_LEVELS: Final = 2  # the finest levels: rigid registration has removed large motion
_ORDER: Final = 3
LEAST_VOXELS: Final = 4
"""Smallest number of voxels along an axis for which motion can be measured. Our choice."""

TUMOUR_MARGIN_MM: Final = 5.0
"""Margin in mm around the mask that sampling and residuals exclude. Our choice."""

QUIET_BELOW_PERCENT: Final = 20.0
"""PE of the first post-contrast phase below which a voxel counts as not enhancing. Our choice."""

_SKIN_MM: Final = 5.0  # samples reach this far beyond the body's edge, which shows motion best
_SMOOTH_MM: Final = 2.0
_COARSER: Final = (4, 2, 1)
_LEAST_SIDE: Final = 8  # smallest number of voxels along an axis of a level
_SPLINE_GAIN: Final = 0.98
"""Largest ratio of the B-spline residual to the rigid residual that is accepted. Our choice."""
# A phase is resampled at its own resolution, slab by slab, in its own data type.

_SLAB_VOXELS: Final = 400_000


def in_thread(work: Callable[[], T], stop: Callable[[], None], step: Callable[[], Progress]) -> T:
    """Run `work` in a thread and return its result; report the progress `step()` every 0.1 s.

    If the work is cancelled, `stop` is called, and the function waits until `work` returns.
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
            forward_progress(step())
    finally:
        stop()
        thread.join()
    if failures:
        raise failures[0]
    return results[0]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A resolution level with two volumes ``(z, y, x)`` in float32 and the sampled region.

    `inside` is uint8 and is 1 where the metric is sampled. `spacing_mm` and `origin_mm` (the centre
    of voxel 0) are along (z, y, x).
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

    The search starts at the identity. Each level uses regular-step gradient descent: the first step
    moves by at most 0.4 voxels, and each change of the gradient's direction shortens the step.

    Parameters
    ----------
    levels
        The volumes from coarse to fine.
    centre_mm
        The centre of rotation along (z, y, x) in mm.
    settings
        The settings of the registration.
    text
        The text of the progress reports.

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
    """Return a smooth deformation that is added to a rigid warp.

    The deformation is a cubic B-spline with control points about `settings.mesh_mm` apart, which
    are the same on the two finest levels. Regular-step gradient descent starts with a
    root-mean-square step of 0.2 voxels over the control points.

    Parameters
    ----------
    levels
        The volumes from coarse to fine.
    rigid
        The rigid warp to which the B-spline is added.
    settings
        The settings of the registration.
    text
        The text of the progress reports.

    Source: Rueckert 1999 (IEEE Trans. Med. Imaging 18:712); here with Mattes' metric and without a
    smoothness penalty, because the mesh is coarse.
    """
    itk = require_simpleitk()
    levels = levels[-_SPLINE_LEVELS:]
    finest = levels[-1]
    extent = [n * mm for n, mm in zip(finest.fixed.shape, finest.spacing_mm, strict=True)]
    counts = [max(1, round(mm / settings.mesh_mm)) for mm in extent]
    fixed = image_of(finest.fixed, finest.spacing_mm, finest.origin_mm)
    spline = itk.BSplineTransformInitializer(fixed, turned(counts, int), _ORDER)
    # The optimiser's step is the length of the whole vector, which is the root mean square times
    # this.
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
    """Run one level in a thread; if the generator is closed early, stop at the next step."""
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


Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A case that is resampled to voxels of about `settings.finest_mm`.

    `phases` is float32 ``(phase, z, y, x)``, and `body` is boolean ``(z, y, x)``. `near` is the
    tumour mask with its margin (empty without a mask). `origin_mm` is the centre of voxel 0.
    """

    phases: NDArray[np.float32]
    body: Bools
    near: Bools
    spacing_mm: tuple[float, ...]
    origin_mm: tuple[float, ...]

    @property
    def middle_mm(self) -> tuple[float, float, float]:
        """Centre of the body in mm."""
        places = ndimage.center_of_mass(self.body)
        z, y, x = (
            o + i * s for i, s, o in zip(places, self.spacing_mm, self.origin_mm, strict=True)
        )
        return (float(z), float(y), float(x))


def require_registrable(
    case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None
) -> None:
    """Raise an error if the phases of a case cannot be registered.

    Parameters
    ----------
    case
        The case with its phases.
    settings
        The settings of the registration.
    mask
        The tumour mask ``(z, y, x)``, or None.

    Raises
    ------
    CaseError
        If there are fewer than two phases, the reference phase does not exist, the volume is
        thinner than 4 voxels, its axes are not perpendicular, or a phase is constant or has NaN
        values.
    GridMismatchError
        If the shapes of mask and case differ.
    """
    case.require_phases(2)
    name = case.case_id
    if settings.reference >= len(case.phases):
        raise CaseError(
            f"expected the reference phase of {name} to be from 0 to {len(case.phases) - 1}, but "
            f"got {settings.reference}; choose a phase of the case"
        )
    if min(case.grid.shape) < LEAST_VOXELS:
        raise CaseError(
            f"expected at least {LEAST_VOXELS} voxels along each axis for registration, but "
            f"{name} has {case.grid.shape} (z, y, x); use the phases of this case without "
            "registration"
        )
    if case.grid.is_sheared:
        raise CaseError(
            f"expected perpendicular axes for registration, but the axes of {name} are sheared; "
            "register a straightened copy",
            remedies=(Remedy(command="straighten"),),
        )
    if mask is not None and mask.shape != case.grid.shape:
        raise GridMismatchError(
            f"expected the mask to have the shape {case.grid.shape} (z, y, x) of case {name}, but "
            f"it has {mask.shape}; choose the mask of this case"
        )
    for index, volume in enumerate(case.signal):
        _require_values(volume, index, name)


def coarse_case(case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None) -> Coarse:
    """Return the case on coarse voxels (block means), with a mask of the body.

    The body is separated from air by Otsu's threshold on the square root of the smoothed reference
    phase. It is the largest component, with holes filled slice by slice. If it is less than 2 % of
    the volume, the whole volume is used.

    Parameters
    ----------
    case
        The case with its phases.
    settings
        The settings of the registration.
    mask
        The tumour mask ``(z, y, x)``, or None.
    """
    spacing, shape = case.grid.spacing_mm, case.grid.shape
    factors = _choose_factors(settings.finest_mm, spacing, shape)
    phases = []
    for index, volume in enumerate(case.signal):
        report_progress(index, len(case.signal) + 1, "Preparing the phases")
        phases.append(_block_means(volume, factors))
    steps = tuple(s * f for s, f in zip(spacing, factors, strict=True))
    origin = tuple(s * (f - 1) / 2 for s, f in zip(spacing, factors, strict=True))
    report_progress(len(case.signal), len(case.signal) + 1, "Searching for the body")
    body = _find_body(smoothed(phases[settings.reference], steps))
    near = np.zeros_like(body)
    if mask is not None:
        near = _grow_region(_block_means(mask != 0, factors) > 0, TUMOUR_MARGIN_MM, steps)
    return Coarse(np.stack(phases), body, near, steps, origin)


def levels_of(coarse: Coarse, reference: int, moving: int) -> tuple[Level, ...]:
    """Return two phases at three resolutions: 4, 2 and 1 times the finest voxel size.

    Each level has at least 8 voxels along each axis. The sampled region is the body with a margin
    of 5 mm, without the tumour and its margin, where changing contrast would be mistaken for
    motion.

    Parameters
    ----------
    coarse
        The case on coarse voxels.
    reference, moving
        The indices of the reference phase and the moving phase.
    """
    around = _grow_region(coarse.body, _SKIN_MM, coarse.spacing_mm) & ~coarse.near
    if not around.any():
        around = ~coarse.near
    levels = []
    for times in _COARSER:
        mm = times * max(coarse.spacing_mm)
        shape = coarse.body.shape
        # The finest level is the coarse case itself, because the choice could merge voxels along
        # a finer axis.
        factors = (1, 1, 1) if times == 1 else _choose_factors(mm, coarse.spacing_mm, shape)
        pairs = list(zip(coarse.spacing_mm, factors, coarse.origin_mm, strict=True))
        levels.append(
            Level(
                _block_means(coarse.phases[reference], factors),
                _block_means(coarse.phases[moving], factors),
                (_block_means(around, factors) >= 0.5).astype(np.uint8),
                tuple(s * f for s, f, _ in pairs),
                tuple(o + s * (f - 1) / 2 for s, f, o in pairs),
            )
        )
    return tuple(levels)


def not_enhancing(
    coarse: Coarse, before: Sequence[NDArray[np.float32]], after: Sequence[NDArray[np.float32]]
) -> Bools:
    """Return the body voxels that do not enhance, in which residuals show motion and not contrast.

    In these voxels, the PE of the first phase after contrast is below 20 % before and after the
    registration. The tumour with a margin of 5 mm is excluded.

    Parameters
    ----------
    before, after
        The smoothed phases 0 and 1, before and after the tried registration.
    """
    quiet = coarse.body & ~coarse.near
    for pre, post in (before, after):
        with np.errstate(invalid="ignore", divide="ignore"):
            quiet &= 100 * (post - pre) < QUIET_BELOW_PERCENT * pre
    return quiet


def smoothed(volume: NDArray[np.float32], spacing_mm: Sequence[float]) -> NDArray[np.float32]:
    """Return a volume smoothed by a Gaussian with a standard deviation of 2 mm.

    Resampling smooths noise, which would look like a better fit. This effect is small if both
    volumes of a comparison are smoothed with this Gaussian.

    Parameters
    ----------
    volume
        A float32 array ``(z, y, x)``.
    spacing_mm
        The values along (z, y, x) in mm.
    """
    sigma = [_SMOOTH_MM / mm for mm in spacing_mm]
    smooth_volume: NDArray[np.float32] = ndimage.gaussian_filter(volume, sigma, mode="nearest")
    return smooth_volume


def _require_values(volume: NDArray[Any], index: int, name: str) -> None:
    if np.issubdtype(volume.dtype, np.floating) and not np.isfinite(volume).all():
        bad = int(volume.size - np.count_nonzero(np.isfinite(volume)))
        raise CaseError(
            f"expected phase {index} of {name} to have only finite values, but found "
            f"{count_of(bad, 'voxel')} with NaN or infinity; export that phase again"
        )
    if volume.min() == volume.max():
        raise CaseError(
            f"expected phase {index} of {name} to show an image, but every voxel has the value "
            f"{volume.flat[0]}; export that phase again"
        )


def _choose_factors(
    wanted_mm: float, spacing_mm: Sequence[float], shape: Sequence[int]
) -> tuple[int, int, int]:
    pairs = zip(spacing_mm, shape, strict=True)
    z, y, x = (max(1, min(round(wanted_mm / mm), n // _LEAST_SIDE)) for mm, n in pairs)
    return (z, y, x)


def _block_means(volume: NDArray[Any], factors: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return block means; incomplete blocks at the far ends are dropped."""
    n = [size // factor for size, factor in zip(volume.shape, factors, strict=True)]
    whole = volume[tuple(slice(k * f) for k, f in zip(n, factors, strict=True))]
    out = np.empty(n, np.float32)
    for place in range(n[0]):
        slab = whole[place * factors[0] : (place + 1) * factors[0]]
        blocks = slab.reshape(factors[0], n[1], factors[1], n[2], factors[2])
        out[place] = blocks.mean(axis=(0, 2, 4), dtype=np.float32)
    return out


def _find_body(volume: NDArray[np.float32]) -> Bools:
    root = np.sqrt(np.maximum(volume, 0))
    tissue = root > bright_from(root)
    labels, count = ndimage.label(tissue)
    if count > 1:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        tissue = labels == int(sizes.argmax())
    filled = np.stack([ndimage.binary_fill_holes(plane) for plane in tissue])
    if np.count_nonzero(filled) < 0.02 * filled.size:
        return np.ones_like(filled)
    return filled


def _grow_region(region: Bools, distance_mm: float, spacing_mm: Sequence[float]) -> Bools:
    """Return a region enlarged by `distance_mm`."""
    if not region.any():
        return region
    wide_region: Bools = ndimage.distance_transform_edt(~region, sampling=spacing_mm) <= distance_mm
    return wide_region


@dataclass(frozen=True, slots=True, eq=False)
class Try:
    """A candidate warp, with its effect on the coarse phase."""

    warp: Warp
    moved: NDArray[np.float32]
    displacement: quality.Displacement
    jacobian: tuple[float, float]
    body_jacobian_min: float
    seconds: float


def try_phase(
    case: Case,
    coarse: Coarse,
    index: int,
    settings: RegistrationSettings,
    mask: NDArray[Any] | None,
) -> list[Try]:
    """Return the warps tried on one phase, the finest last, except warps that fold.

    Parameters
    ----------
    case
        The case with its phases.
    coarse
        The case on coarse voxels.
    index
        The index of the phase.
    settings
        The settings of the registration.
    mask
        The tumour mask ``(z, y, x)``, or None.
    """
    begun = time.monotonic()
    levels = levels_of(coarse, settings.reference, index)
    text = f"Phase {index}"
    with part(0, 40, 100):
        rigid = find_rigid(levels, coarse.middle_mm, settings, text)
    tries = [_make_try(case, coarse, index, rigid, mask, begun)]
    if settings.transform is TransformKind.BSPLINE:
        with part(40, 90, 100):
            spline = find_bspline(levels, rigid, settings, text)
        report_progress(90, 100, f"{text}: folding")
        tries.append(_make_try(case, coarse, index, spline, mask, begun))
    return tries


def _make_try(
    case: Case, coarse: Coarse, index: int, warp: Warp, mask: NDArray[Any] | None, begun: float
) -> Try:
    place = (coarse.body.shape, coarse.spacing_mm, coarse.origin_mm)
    moved, _ = warp.moved(readable(coarse.phases[index], *place[1:]), *place)
    field_mm = warp.displacement(*place)
    body = quality.jacobian_determinant(field_mm, coarse.spacing_mm)[coarse.body]
    return Try(
        warp,
        smoothed(moved, coarse.spacing_mm),
        quality.displacement_in(field_mm, coarse.body),
        _jacobian_in(case, warp, mask),
        float(body.min()),
        time.monotonic() - begun,
    )


def _jacobian_in(case: Case, warp: Warp, mask: NDArray[Any] | None) -> tuple[float, float]:
    """Return the smallest and largest local volume change in a mask; NaN if the mask is empty."""
    box = Box.empty() if mask is None else Box.around(mask)
    if mask is None or box.is_empty:
        return math.nan, math.nan
    box = box.grown((1, 1, 1), case.grid.shape)
    spacing = case.grid.spacing_mm
    origin = [start * mm for start, mm in zip(box.start, spacing, strict=True)]
    field_mm = warp.displacement(box.shape, spacing, origin)
    values = quality.jacobian_determinant(field_mm, spacing)[mask[box.slices] != 0]
    return float(values.min()), float(values.max())


_NAN3: Final = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class PhaseMotion:
    """Motion of one phase; `after` and similar values refer to the attempted registration.

    Parameters
    ----------
    applied
        The registration applied to the voxels: "none", "rigid" or "rigid + B-spline".
    rotation_deg, translation_mm
        The rotation about and translation along the array axes (z, y, x) from the reference phase
        to this phase, with the centre of the body as the centre of rotation. A positive rotation
        about z goes from x towards y.
    information
        The Mattes mutual information at the end of the optimisation in nats; larger is better.
    displacement
        The displacements of the voxels in the body.
    jacobian_min, jacobian_max
        The smallest and largest local volume change in the tumour mask, or NaN without a mask; 0 or
        less is folding.
    body_jacobian_min
        The smallest local volume change in the body.
    before, after
        The fit to the reference phase before and after registration.
    outside
        The number of voxels outside the moved phase, which have the nearest value.
    """

    phase: int
    verdict: Verdict
    applied: str = "none"
    note: str = ""
    rotation_deg: tuple[float, float, float] = _NAN3
    translation_mm: tuple[float, float, float] = _NAN3
    mesh_mm: tuple[float, ...] = ()
    information: float = math.nan
    displacement: quality.Displacement = field(default_factory=quality.Displacement)
    jacobian_min: float = math.nan
    jacobian_max: float = math.nan
    body_jacobian_min: float = math.nan
    before: quality.Fit = field(default_factory=lambda: quality.Fit(math.nan, math.nan))
    after: quality.Fit = field(default_factory=lambda: quality.Fit(math.nan, math.nan))
    outside: int = 0
    seconds: float = 0.0


def judge(
    coarse: Coarse, tries: dict[int, list[Try]], settings: RegistrationSettings
) -> tuple[dict[int, list[quality.Fit]], int]:
    """Return each phase's fit before and after each warp, measured on the same voxels."""
    steps = coarse.spacing_mm
    plain = {
        index: smoothed(coarse.phases[index], steps) for index in {0, 1, settings.reference, *tries}
    }
    last = {index: phase_tries[-1].moved for index, phase_tries in tries.items()}
    before = (plain[0], plain[1])
    after = (last.get(0, plain[0]), last.get(1, plain[1]))
    quiet = not_enhancing(coarse, before, after)
    if not quiet.any():
        quiet = coarse.body
    reference = plain[settings.reference]
    fits = {}
    for index, phase_tries in tries.items():
        report_progress(1, 1, f"Phase {index}: quality")
        volumes = [plain[index], *(phase_try.moved for phase_try in phase_tries)]
        fits[index] = [quality.fit_of(volume, reference, quiet, coarse.body) for volume in volumes]
    return fits, int(np.count_nonzero(quiet))


def choose(index: int, found: list[Try], fits: list[quality.Fit]) -> tuple[Try, PhaseMotion]:
    """Return the best warp, and the phase's motion under this warp."""
    chosen, fit, note = found[0], fits[1], ""
    if len(found) > 1:
        finer, finer_fit = found[1], fits[2]
        # The order matters: `min` keeps its first value if the other value is NaN, as without a
        # mask.
        folds = min(finer.body_jacobian_min, finer.jacobian[0]) <= 0
        if folds:
            note = "the B-spline folds, so the rigid registration is used"
        elif finer_fit.residual_percent > _SPLINE_GAIN * fit.residual_percent:
            note = "the B-spline is no better than the rigid registration"
        else:
            chosen, fit = finer, finer_fit
    verdict = quality.verdict_of(fits[0], fit)
    name = "rigid + B-spline" if chosen.warp.is_spline else "rigid"
    if verdict is not Verdict.BETTER:
        note = "; ".join(filter(None, (note, "left unchanged")))
    return chosen, PhaseMotion(
        index,
        verdict,
        name if verdict is Verdict.BETTER else "none",
        note,
        chosen.warp.rotation_deg,
        chosen.warp.translation_mm,
        chosen.warp.mesh_mm,
        chosen.warp.metric,
        chosen.displacement,
        *chosen.jacobian,
        chosen.body_jacobian_min,
        fits[0],
        fit,
        seconds=found[-1].seconds,
    )


def resample(
    case: Case, index: int, warp: Warp, interpolation: Interpolation, out: NDArray[Any]
) -> int:
    """Fill `out` with a warped phase, and return the number of voxels outside the phase.

    Integers are rounded; no value is below the minimum or above the maximum of the phase.

    Parameters
    ----------
    case
        The case with its phases.
    index
        The index of the phase.
    warp
        The transform to apply.
    interpolation
        The interpolation: linear or cubic B-spline.
    out
        The result array ``(z, y, x)`` with the case's data type.
    """
    spacing, volume = case.grid.spacing_mm, case.signal[index]
    text = f"Phase {index}: resampling"
    ready = Progress(0, len(out), text)
    source = in_thread(
        lambda: readable(volume, spacing, interpolation=interpolation), _stop_nothing, lambda: ready
    )
    outside = 0
    for start, stop in _iterate_slabs(out.shape):
        report_progress(start, len(out), text)
        place = (stop - start, *out.shape[1:]), spacing, (start * spacing[0], 0.0, 0.0)
        moved, count = warp.moved(source, *place)
        out[start:stop] = _in_type(moved, out.dtype)
        outside += count
    return outside


def _iterate_slabs(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first and last slice of each slab, which is small enough to resample quickly."""
    thick = max(1, _SLAB_VOXELS // math.prod(shape[1:]))
    for start in range(0, shape[0], thick):
        yield start, min(start + thick, shape[0])


def _in_type(values: NDArray[np.float32], dtype: np.dtype[Any]) -> NDArray[Any]:
    if not np.issubdtype(dtype, np.integer):
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    whole_numbers: NDArray[Any] = np.clip(
        np.rint(values.astype(np.float64)), limits.min, limits.max
    )
    return whole_numbers.astype(dtype)


def _stop_nothing() -> None:
    """Ignore a request to stop, because computing coefficients takes little time."""


_STEPS: Final = 100
_FITTING: Final = 70  # of a phase's 100 steps; the others resample it


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A case whose phases are registered onto its reference phase.

    Grid, times and data types are unchanged. `case` is the original case if no phase was changed.
    `quiet_voxels` is the number of coarse voxels, each of `quiet_mm3`, in which residuals were
    measured. `warps` has the tried warps by phase, whether or not they were applied.
    """

    case: Case
    motions: tuple[PhaseMotion, ...]
    warps: Mapping[int, Warp]
    settings: RegistrationSettings
    quiet_voxels: int
    quiet_mm3: float

    @property
    def changed(self) -> tuple[int, ...]:
        """Indices of the phases that were moved."""
        return tuple(motion.phase for motion in self.motions if motion.applied != "none")


def register_phases(
    case: Case, settings: RegistrationSettings | None = None, mask: NDArray[Any] | None = None
) -> Registered:
    """Register every phase onto the reference phase, on the grid of that phase.

    Rigid registration is tried first. With `TransformKind.BSPLINE`, a B-spline follows, which is
    rejected if it folds (Jacobian determinant 0 or less in the tumour or the body) or its residual
    is more than 98 % of the rigid residual. A phase that does not improve (see `verdict_of`) keeps
    its voxels. Masks drawn on the reference phase remain valid, because its voxels are not changed.
    Integers are rounded and clipped to their data type.

    Results are identical on any number of cores, because samples are drawn with a fixed seed and
    summed in a fixed order. The search uses one core and runs in a thread; if cancelled, it stops
    at the optimiser's next step.

    Parameters
    ----------
    mask
        The tumour mask ``(z, y, x)``, which is not 0 inside. The fit ignores the tumour and a
        margin of 5 mm.

    Raises
    ------
    CaseError, GridMismatchError
        As in `require_registrable`.
    MissingExtraError
        If SimpleITK is not installed.
    """
    settings = settings or RegistrationSettings()
    require_simpleitk()
    require_registrable(case, settings, mask)
    total = _STEPS * (len(case.phases) - 1)
    coarse = coarse_case(case, settings, mask)
    tries: dict[int, list[Try]] = {}
    moving = [phase.index for phase in case.phases if phase.index != settings.reference]
    for place, index in enumerate(moving):
        with part(place * _FITTING, place * _FITTING + _FITTING, total):
            tries[index] = try_phase(case, coarse, index, settings, mask)
    fits = judge(coarse, tries, settings)
    return _finish_registration(case, settings, coarse, tries, fits)


# ------------------------------------------------------------------------------------------- inner


def _finish_registration(
    case: Case,
    settings: RegistrationSettings,
    coarse: Coarse,
    tries: dict[int, list[Try]],
    judged: tuple[dict[int, list[quality.Fit]], int],
) -> Registered:
    fits, n_quiet = judged
    chosen = {index: choose(index, tries[index], fits[index]) for index in tries}
    better = [index for index, (_, motion) in chosen.items() if motion.applied != "none"]
    signal = case.signal.copy() if better else case.signal
    total = _STEPS * (len(case.phases) - 1)
    motions = [PhaseMotion(settings.reference, Verdict.REFERENCE)]
    for place, (index, (best, motion)) in enumerate(chosen.items()):
        if index in better:
            begun = time.monotonic()
            start = len(chosen) * _FITTING + place * (_STEPS - _FITTING)
            with part(start, start + _STEPS - _FITTING, total):
                outside = resample(case, index, best.warp, settings.interpolation, signal[index])
            seconds = motion.seconds + time.monotonic() - begun
            motion = replace(motion, outside=outside, seconds=seconds)
        motions.append(motion)
    motions.sort(key=lambda motion: motion.phase)
    report_progress(total, total, "Registered")
    volume = math.prod(coarse.spacing_mm)
    new_case = (
        case if not better else replace(case, signal=signal, warnings=_list_warnings(case, better))
    )
    warps = MappingProxyType({index: best.warp for index, (best, _) in chosen.items()})
    return Registered(new_case, tuple(motions), warps, settings, n_quiet, volume)


def _list_warnings(case: Case, better: list[int]) -> tuple[str, ...]:
    listed = ", ".join(map(str, better))
    which = f"phase {listed} was" if len(better) == 1 else f"phases {listed} were"
    return (*case.warnings, f"{which} registered, so the voxels differ from those of the scanner")
