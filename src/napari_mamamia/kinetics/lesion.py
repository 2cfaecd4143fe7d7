"""Kinetics of a lesion: its curves, and how much of it has each curve type."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.curves import (
    CurveThresholds,
    DelayedCourse,
    InitialRise,
    delayed_change,
    delayed_course,
    initial_rise,
    region_curve,
)
from napari_mamamia.kinetics.map_blocks import peak_enhancement, percent_enhancement
from napari_mamamia.kinetics.map_formulas import ANGIO_FROM_PERCENT
from napari_mamamia.kinetics.timing import PhaseChoice

LEAST_CLUSTER: Final = 3
"""Smallest number of connected voxels (26-connected) that count for the worst curve type.

Smaller clusters are treated as noise. Our choice.
"""

_TOUCHING: Final = ndimage.generate_binary_structure(3, 3)
_PATCH: Final = 3
_COURSES: Final = (DelayedCourse.PERSISTENT, DelayedCourse.PLATEAU, DelayedCourse.WASHOUT)


@dataclass(frozen=True, slots=True)
class HottestPatch:
    """The 3 x 3 patch within one slice of a lesion that has the largest mean initial PE.

    `centre` is its central voxel (z, y, x), and `curve` is its mean signal in each phase.
    """

    centre: tuple[int, int, int]
    curve: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LesionKinetics:
    """Enhancement kinetics of one lesion.

    Volumes are in mm3. Undefined values are NaN or UNDEFINED, with the reason in `reason`.

    Parameters
    ----------
    curve
        The mean signal of the lesion in each phase.
    peak_enhancement
        The largest PE of any voxel and phase in percent.
    initial
        The class of the initial rise of the mean curve.
    angio_volume_mm3
        The volume of the voxels with an initial PE of at least 50 %.
    persistent_mm3, plateau_mm3, washout_mm3
        The parts of the angio-volume by the delayed course of the voxels.
    predominant
        The course of most voxels in the angio-volume; if two are equally frequent, the worse
        course.
    worst
        The worst course (washout, plateau, persistent) with at least `LEAST_CLUSTER` connected
        voxels.
    """

    choice: PhaseChoice
    n_voxels: int
    curve: tuple[float, ...]
    peak_enhancement: float
    initial: InitialRise
    angio_volume_mm3: float
    persistent_mm3: float
    plateau_mm3: float
    washout_mm3: float
    predominant: DelayedCourse
    worst: DelayedCourse
    hottest: HottestPatch | None
    reason: str = ""


def lesion_kinetics(
    signal: NDArray[Any],
    mask: NDArray[np.bool_],
    choice: PhaseChoice,
    voxel_volume_mm3: float,
    *,
    slice_axis: int = 0,
    thresholds: CurveThresholds | None = None,
) -> LesionKinetics:
    """Return the kinetics of the voxels in `mask`.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    mask
        A boolean array ``(z, y, x)``, which counts as one lesion. All values are undefined if it is
        empty.
    choice
        The initial and the delayed phase; see `kinetics.timing.choose_curve_phases`. Without a
        delayed phase, the courses are undefined.
    slice_axis
        The array axis across the slices; the hottest patch is within one slice.

    Source: the classes are those of `kinetics.curves.delayed_course`. The predominant and worst
    curve follow the "worst curve" practice of the BI-RADS atlas; see Wang et al. 2009 for the value
    of the worst curve.
    """
    box = Box.around(mask)
    inside = mask[box.slices]
    part = signal[:, *box.slices]
    count = int(np.count_nonzero(inside))
    if count == 0:
        return _make_undefined(choice, signal.shape[0])
    rise = percent_enhancement(part, choice.early)
    curve = region_curve(part, inside)
    with np.errstate(invalid="ignore"):
        angio = inside & (rise >= ANGIO_FROM_PERCENT)
    courses = _find_courses(part, choice, thresholds)
    volumes = [np.count_nonzero(angio & (courses == kind)) * voxel_volume_mm3 for kind in _COURSES]
    defined = choice.late is not None
    return LesionKinetics(
        choice=choice,
        n_voxels=count,
        curve=tuple(float(value) for value in curve),
        peak_enhancement=_find_largest(peak_enhancement(part)[inside]),
        initial=_find_initial_rise(curve, choice, thresholds),
        angio_volume_mm3=int(np.count_nonzero(angio)) * voxel_volume_mm3,
        persistent_mm3=float(volumes[0]) if defined else math.nan,
        plateau_mm3=float(volumes[1]) if defined else math.nan,
        washout_mm3=float(volumes[2]) if defined else math.nan,
        predominant=_find_predominant(volumes),
        worst=_find_worst(angio, courses),
        hottest=hottest_patch(part, inside, rise, slice_axis, box.start),
        reason=choice.reason,
    )


def hottest_patch(
    signal: NDArray[Any],
    inside: NDArray[np.bool_],
    rise: NDArray[np.float32],
    slice_axis: int = 0,
    offset: tuple[int, int, int] = (0, 0, 0),
) -> HottestPatch | None:
    """Return the hottest 3 x 3 patch whose nine voxels are all `inside`, or None.

    Patches with an undefined PE are ignored. If several patches are equally hot, the first in
    array order is returned.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    inside
        A boolean array ``(z, y, x)``.
    rise
        The initial PE in percent, ``(z, y, x)``.
    slice_axis
        The array axis across the slices.
    offset
        The offset in voxels (z, y, x) that is added to the centre.
    """
    size = tuple(1 if axis == slice_axis else _PATCH for axis in range(3))
    usable = inside & np.isfinite(rise)
    whole = ndimage.binary_erosion(usable, np.ones(size, np.bool_), border_value=0)
    if not whole.any():
        return None
    # The filter sums along rows, so a NaN would spread to all following voxels.
    filled = np.where(usable, rise, 0).astype(np.float64)
    mean = ndimage.uniform_filter(filled, size=size, mode="constant")
    mean[~whole] = -np.inf
    z, y, x = (int(i) for i in np.unravel_index(int(mean.argmax()), mean.shape))
    index = tuple(
        slice(i, i + 1) if axis == slice_axis else slice(i - 1, i + 2)
        for axis, i in enumerate((z, y, x))
    )
    values = signal[:, *index].reshape(signal.shape[0], -1).astype(np.float64).mean(axis=1)
    centre = (z + offset[0], y + offset[1], x + offset[2])
    return HottestPatch(centre, tuple(float(value) for value in values))


def _find_courses(
    part: NDArray[Any], choice: PhaseChoice, thresholds: CurveThresholds | None
) -> NDArray[np.uint8]:
    if choice.late is None:
        return np.full(part.shape[1:], DelayedCourse.UNDEFINED, np.uint8)
    return delayed_course(delayed_change(part[choice.early], part[choice.late]), thresholds)


def _find_initial_rise(
    curve: NDArray[np.float64], choice: PhaseChoice, thresholds: CurveThresholds | None
) -> InitialRise:
    if not curve[0] > 0:
        return InitialRise.UNDEFINED
    rise = 100.0 * (curve[choice.early] - curve[0]) / curve[0]
    return InitialRise(int(initial_rise(np.array([rise]), thresholds)[0]))


def _find_predominant(volumes: list[Any]) -> DelayedCourse:
    if not any(volumes):
        return DelayedCourse.UNDEFINED
    return max(_COURSES, key=lambda kind: (volumes[kind - 1], kind))


def _find_worst(angio: NDArray[np.bool_], courses: NDArray[np.uint8]) -> DelayedCourse:
    for kind in reversed(_COURSES):
        parts, count = ndimage.label(angio & (courses == kind), _TOUCHING)
        if count and int(np.bincount(parts.ravel())[1:].max()) >= LEAST_CLUSTER:
            return kind
    return DelayedCourse.UNDEFINED


def _find_largest(values: NDArray[np.float32]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else math.nan


def _make_undefined(choice: PhaseChoice, n_phases: int) -> LesionKinetics:
    nothing = math.nan
    return LesionKinetics(
        choice=choice,
        n_voxels=0,
        curve=(nothing,) * n_phases,
        peak_enhancement=nothing,
        initial=InitialRise.UNDEFINED,
        angio_volume_mm3=0.0,
        persistent_mm3=nothing,
        plateau_mm3=nothing,
        washout_mm3=nothing,
        predominant=DelayedCourse.UNDEFINED,
        worst=DelayedCourse.UNDEFINED,
        hottest=None,
        reason="the mask is empty",
    )
