"""Register the phases of a case onto one of them, where it improves the fit."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import Interpolation
from napari_mamamia.core.progress import Progress, part, report_progress
from napari_mamamia.kinetics.registration.itk import Warp, readable, require_simpleitk
from napari_mamamia.kinetics.registration.motion import PhaseMotion, choose, judge
from napari_mamamia.kinetics.registration.progress import in_thread
from napari_mamamia.kinetics.registration.quality import Fit
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, Verdict
from napari_mamamia.kinetics.registration.tries import Try, try_phase
from napari_mamamia.kinetics.registration.volumes import (
    Coarse,
    coarse_case,
    require_registrable,
)

# A phase is resampled at its own resolution, slab by slab, in its own data type.

_SLAB_VOXELS: Final = 400_000


def resample(
    case: Case, index: int, warp: Warp, interpolation: Interpolation, out: NDArray[Any]
) -> int:
    """Fill `out` with a warped phase, and return the number of voxels outside the phase.

    `out` is ``(z, y, x)`` of the case's type. Integers are rounded; no value is below the minimum
    or above the maximum of the phase.

    Parameters
    ----------
    case
        The case with its phases.
    index
        Index of the phase.
    warp
        The transform to apply.
    interpolation
        Linear, or cubic B-spline.
    out
        The result, ``(z, y, x)`` of the case's type.
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
    """Yield the first and last slice of slabs, each small enough to resample quickly."""
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
    """Do nothing: computing coefficients is short and cannot be stopped."""


_STEPS: Final = 100
_FITTING: Final = 70  # of a phase's 100 steps; the others resample it


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A case whose phases are registered onto its reference phase.

    Grid, times and types are unchanged.

    `case` is the original case if no phase was changed. `quiet_voxels` is the number of coarse
    voxels of `quiet_mm3` each in which residuals were measured. `warps` are the warps tried, by
    phase, applied or not.
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


def register_phases(
    case: Case, settings: RegistrationSettings | None = None, mask: NDArray[Any] | None = None
) -> Registered:
    """Register every phase onto the reference phase, on the grid of that phase.

    Rigid registration is tried first; with `TransformKind.BSPLINE` a B-spline follows, which is
    dropped if it folds (determinant of the Jacobian 0 or less in the tumour or the body) or leaves
    a residual of more than 98 % of the rigid one's. A phase that does not improve (see
    `verdict_of`) keeps its voxels. Masks drawn on the reference phase stay valid, since its voxels
    are not changed. Integers are rounded and clipped to their type.

    Two runs give the same voxels on any number of cores: samples are drawn with a fixed seed and
    summed in one order. The search uses one core and runs in a thread; if cancelled, it stops at
    the optimiser's next step and leaves nothing.

    Parameters
    ----------
    mask
        The tumour, ``(z, y, x)``, not 0 inside. The fit ignores it and 5 mm around it.

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
    judged: tuple[dict[int, list[Fit]], int],
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
    return (*case.warnings, f"{which} registered: the voxels differ from those of the scanner")
