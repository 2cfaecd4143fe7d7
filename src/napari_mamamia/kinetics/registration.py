"""Moving the phases of a case onto one of them: rigid, then B-spline; only where it helps."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.kinetics.registration_itk import (
    Warp,
    find_bspline,
    find_rigid,
    image_of,
    in_thread,
    require_simpleitk,
)
from napari_mamamia.kinetics.registration_quality import (
    Displacement,
    Fit,
    displacement_in,
    fit_of,
    jacobian_determinant,
    verdict_of,
)
from napari_mamamia.kinetics.registration_settings import (
    Interpolation,
    RegistrationSettings,
    TransformKind,
    Verdict,
)
from napari_mamamia.kinetics.registration_volumes import (
    Coarse,
    coarse_case,
    levels_of,
    not_enhancing,
    require_registrable,
    smoothed,
)

__all__ = ["PhaseMotion", "Registered", "register_phases"]

_SPLINE_GAIN: Final = 0.98
"""A B-spline is kept where its residual is at most this share of the rigid one's. Our choice."""

_SLAB_VOXELS: Final = 400_000
_STEPS: Final = 100
_FITTING: Final = 70  # of a phase's 100 steps; the rest resamples it
_NAN3: Final = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class PhaseMotion:
    """What was found of one phase. Numbers "after" are of the registration that was tried.

    Parameters
    ----------
    applied
        What was done to its voxels: "none", "rigid" or "rigid + B-spline".
    rotation_deg, translation_mm
        About and along the array's axes (z, y, x); where a place of the reference phase lies in
        this one, about the middle of the body. A positive turn about z goes from x towards y.
    information
        Mattes mutual information that the optimiser ended at, nats; more is better.
    displacement
        Of the body's voxels.
    jacobian_min, jacobian_max
        Local change of volume in the tumour mask, nan without one; 0 or less is folding.
    body_jacobian_min
        The least in the body.
    before, after
        The fit onto the reference phase.
    outside
        Voxels that lie outside of the phase when it is moved; they take the nearest value.
    """

    phase: int
    verdict: Verdict
    applied: str = "none"
    note: str = ""
    rotation_deg: tuple[float, float, float] = _NAN3
    translation_mm: tuple[float, float, float] = _NAN3
    mesh_mm: tuple[float, ...] = ()
    information: float = math.nan
    displacement: Displacement = field(default_factory=Displacement)
    jacobian_min: float = math.nan
    jacobian_max: float = math.nan
    body_jacobian_min: float = math.nan
    before: Fit = field(default_factory=lambda: Fit(math.nan, math.nan))
    after: Fit = field(default_factory=lambda: Fit(math.nan, math.nan))
    outside: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A case whose phases lie on its reference phase; its grid, times and types are as they were.

    `case` is the case itself where no phase was changed. `quiet_voxels` counts the coarse voxels
    of `quiet_mm3` each in which residuals were measured. `warps` are what was tried, by phase,
    whether it was applied or not.
    """

    case: Case
    motions: tuple[PhaseMotion, ...]
    warps: Mapping[int, Warp]
    settings: RegistrationSettings
    quiet_voxels: int
    quiet_mm3: float

    @property
    def changed(self) -> tuple[int, ...]:
        """The phases whose voxels were moved."""
        return tuple(motion.phase for motion in self.motions if motion.applied != "none")


@dataclass(frozen=True, slots=True, eq=False)
class _Try:
    """A warp with what it does to the coarse phase."""

    warp: Warp
    moved: NDArray[np.float32]
    displacement: Displacement
    jacobian: tuple[float, float]
    body_jacobian_min: float
    seconds: float


def register_phases(
    case: Case, settings: RegistrationSettings | None = None, mask: NDArray[Any] | None = None
) -> Job[Registered]:
    """Return a job that moves every phase onto the reference phase, on that phase's own grid.

    Rigid is tried first, then with `TransformKind.BSPLINE` a B-spline on top of it, which is
    dropped where it folds (determinant of the Jacobian 0 or less in the tumour or the body) or
    leaves a residual of more than 98 % of the rigid one's. A phase that does not get better (see
    `verdict_of`) keeps its own voxels. Masks drawn on the reference phase stay valid: its voxels
    are not touched. Whole numbers are rounded and kept within their type.

    Two runs on one computer give the same voxels: samples are drawn with a fixed seed. Another
    number of threads may change the last digits. The work is done in a thread; closed before its
    end, the job stops at the optimiser's next step, and nothing is left of it.

    Parameters
    ----------
    mask
        The tumour, ``(z, y, x)``, not 0 inside. With 5 mm around it, it takes no part in the fit.

    Raises
    ------
    CaseError, GridMismatchError
        As `require_registrable`.
    MissingExtraError
        If SimpleITK is not installed.
    """
    settings = settings or RegistrationSettings()
    require_simpleitk()
    require_registrable(case, settings, mask)
    total = _STEPS * (len(case.phases) - 1)
    coarse = yield from coarse_case(case, settings, mask)
    tries: dict[int, list[_Try]] = {}
    for place, index in enumerate(_moving(case, settings)):
        job = _try_phase(case, coarse, index, settings, mask)
        tries[index] = yield from _share(job, place * _FITTING, _FITTING, total)
    fits = yield from _judge(coarse, tries, settings)
    return (yield from _finish(case, settings, coarse, tries, fits))


# ----------------------------------------------------------------------------------------- fitting


def _try_phase(
    case: Case,
    coarse: Coarse,
    index: int,
    settings: RegistrationSettings,
    mask: NDArray[Any] | None,
) -> Job[list[_Try]]:
    """Return a job for the warps of one phase, the finest last; a folded one is left out."""
    begun = time.monotonic()
    levels = levels_of(coarse, settings.reference, index)
    text = f"Phase {index}"
    rigid = yield from _share(find_rigid(levels, coarse.middle_mm, settings, text), 0, 40, 100)
    found = [_tried(case, coarse, index, rigid, mask, begun)]
    if settings.transform is TransformKind.BSPLINE:
        spline = yield from _share(find_bspline(levels, rigid, settings, text), 40, 50, 100)
        yield Progress(90, 100, f"{text}: folding")
        found.append(_tried(case, coarse, index, spline, mask, begun))
    return found


def _tried(
    case: Case, coarse: Coarse, index: int, warp: Warp, mask: NDArray[Any] | None, begun: float
) -> _Try:
    place = (coarse.body.shape, coarse.spacing_mm, coarse.origin_mm)
    image = image_of(coarse.phases[index], *place[1:])
    moved, _ = warp.moved(image, *place, Interpolation.CUBIC)
    field_mm = warp.displacement(*place)
    body = jacobian_determinant(field_mm, coarse.spacing_mm)[coarse.body]
    return _Try(
        warp,
        smoothed(moved, coarse.spacing_mm),
        displacement_in(field_mm, coarse.body),
        _jacobian_in(case, warp, mask),
        float(body.min()),
        time.monotonic() - begun,
    )


def _jacobian_in(case: Case, warp: Warp, mask: NDArray[Any] | None) -> tuple[float, float]:
    """Return the least and the greatest change of volume in the mask; nan without voxels."""
    box = Box.empty() if mask is None else Box.around(mask)
    if mask is None or box.is_empty:
        return math.nan, math.nan
    box = box.grown((1, 1, 1), case.grid.shape)
    spacing = case.grid.spacing_mm
    origin = [start * mm for start, mm in zip(box.start, spacing, strict=True)]
    field_mm = warp.displacement(box.shape, spacing, origin)
    values = jacobian_determinant(field_mm, spacing)[mask[box.slices] != 0]
    return float(values.min()), float(values.max())


# ----------------------------------------------------------------------------------------- judging


def _judge(
    coarse: Coarse, tries: dict[int, list[_Try]], settings: RegistrationSettings
) -> Job[tuple[dict[int, list[Fit]], int]]:
    """Return a job for each phase's fits, before and after each try, over the same voxels."""
    steps = coarse.spacing_mm
    plain = {
        index: smoothed(coarse.phases[index], steps) for index in {0, 1, settings.reference, *tries}
    }
    last = {index: found[-1].moved for index, found in tries.items()}
    before = (plain[0], plain[1])
    after = (last.get(0, plain[0]), last.get(1, plain[1]))
    quiet = not_enhancing(coarse, before, after)
    if not quiet.any():
        quiet = coarse.body
    reference = plain[settings.reference]
    fits = {}
    for index, found in tries.items():
        yield Progress(1, 1, f"Phase {index}: quality")
        volumes = [plain[index], *(one.moved for one in found)]
        fits[index] = [fit_of(volume, reference, quiet, coarse.body) for volume in volumes]
    return fits, int(np.count_nonzero(quiet))


def _choose(index: int, found: list[_Try], fits: list[Fit]) -> tuple[_Try, PhaseMotion]:
    """Return the warp that is best, and the phase's motion under it."""
    chosen, fit, note = found[0], fits[1], ""
    if len(found) > 1:
        finer, finer_fit = found[1], fits[2]
        folds = min(finer.body_jacobian_min, finer.jacobian[0]) <= 0
        if folds:
            note = "the B-spline folds: rigid instead"
        elif finer_fit.residual_percent > _SPLINE_GAIN * fit.residual_percent:
            note = "the B-spline gains nothing over rigid"
        else:
            chosen, fit = finer, finer_fit
    verdict = verdict_of(fits[0], fit)
    name = "rigid + B-spline" if chosen.warp.is_spline else "rigid"
    if verdict is not Verdict.BETTER:
        note = "; ".join(filter(None, (note, "left as it was")))
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


# -------------------------------------------------------------------------------------- resampling


def _finish(
    case: Case,
    settings: RegistrationSettings,
    coarse: Coarse,
    tries: dict[int, list[_Try]],
    judged: tuple[dict[int, list[Fit]], int],
) -> Job[Registered]:
    fits, n_quiet = judged
    chosen = {index: _choose(index, tries[index], fits[index]) for index in tries}
    better = [index for index, (_, motion) in chosen.items() if motion.applied != "none"]
    signal = case.signal.copy() if better else case.signal
    total = _STEPS * (len(case.phases) - 1)
    motions = [PhaseMotion(settings.reference, Verdict.REFERENCE)]
    for place, (index, (best, motion)) in enumerate(chosen.items()):
        if index in better:
            begun = time.monotonic()
            start = len(chosen) * _FITTING + place * (_STEPS - _FITTING)
            job = _resample(case, index, best.warp, settings, signal[index])
            outside = yield from _share(job, start, _STEPS - _FITTING, total)
            seconds = motion.seconds + time.monotonic() - begun
            motion = replace(motion, outside=outside, seconds=seconds)
        motions.append(motion)
    motions.sort(key=lambda motion: motion.phase)
    yield Progress(total, total, "Registered")
    volume = math.prod(coarse.spacing_mm)
    told = case if not better else replace(case, signal=signal, warnings=_told(case, better))
    warps = MappingProxyType({index: best.warp for index, (best, _) in chosen.items()})
    return Registered(told, tuple(motions), warps, settings, n_quiet, volume)


def _resample(
    case: Case, index: int, warp: Warp, settings: RegistrationSettings, out: NDArray[Any]
) -> Job[int]:
    """Fill `out` with the moved phase, slab by slab; return how many voxels lay outside."""
    spacing = case.grid.spacing_mm
    text = f"Phase {index}: resampling"
    image = image_of(case.signal[index], spacing)
    outside = 0
    for start, stop in _slabs(out.shape, settings.interpolation):
        yield Progress(start, len(out), text)
        shape = (stop - start, *out.shape[1:])
        origin = (start * spacing[0], 0.0, 0.0)
        work = _moving_slab(warp, image, shape, spacing, origin, settings.interpolation)
        now = Progress(start, len(out), text)
        moved, count = yield from in_thread(work, _nothing, lambda now=now: now)  # type: ignore[misc]
        out[start:stop] = _in_type(moved, out.dtype)
        outside += count
    return outside


def _moving_slab(warp: Warp, image: Any, *place: Any) -> Any:
    return lambda: warp.moved(image, *place)


def _slabs(shape: tuple[int, ...], interpolation: Interpolation) -> Iterator[tuple[int, int]]:
    """Yield first and last slices; one slab where each would filter the whole volume anew."""
    is_cubic = interpolation is Interpolation.CUBIC
    thick = shape[0] if is_cubic else max(1, _SLAB_VOXELS // math.prod(shape[1:]))
    for start in range(0, shape[0], thick):
        yield start, min(start + thick, shape[0])


def _in_type(values: NDArray[np.float32], dtype: np.dtype[Any]) -> NDArray[Any]:
    if not np.issubdtype(dtype, np.integer):
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    found: NDArray[Any] = np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max)
    return found.astype(dtype)


def _told(case: Case, better: list[int]) -> tuple[str, ...]:
    listed = ", ".join(map(str, better))
    which = f"phase {listed} was" if len(better) == 1 else f"phases {listed} were"
    return (*case.warnings, f"{which} registered: these are not the voxels of the scanner")


def _moving(case: Case, settings: RegistrationSettings) -> list[int]:
    return [phase.index for phase in case.phases if phase.index != settings.reference]


def _share(job: Job[Any], start: int, width: int, total: int) -> Job[Any]:
    """Pass a job's progress on as a part of a longer one."""
    try:
        while True:
            inner = next(job)
            done = start + int(inner.fraction * width)
            yield Progress(min(done, total), total, inner.text)
    except StopIteration as stop:
        return stop.value
    finally:
        job.close()


def _nothing() -> None:
    """Stop nothing: a slab is done in a moment."""
