"""A contrast curve with its enhancement by phase, initial class and delayed class."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.curve_types import (
    CurveThresholds,
    DelayedCourse,
    InitialRise,
    delayed_change,
    delayed_course,
    initial_rise,
)
from napari_mamamia.kinetics.curves import curve_enhancement, region_curve
from napari_mamamia.kinetics.time_axis import TimingRule, known_times
from napari_mamamia.kinetics.timing import PhaseChoice, choose_curve_phases


@dataclass(frozen=True, slots=True)
class ContrastCurve:
    """The curve of a voxel, a patch or a region.

    Parameters
    ----------
    n_voxels
        Number of voxels whose mean is `signal`.
    times_s
        Seconds since the start of phase 0, one for each phase; None if they cannot be used, with
        the reason in `choice.reason`.
    signal
        Mean signal of each phase, in its unit.
    percent
        PE of the mean signals, in percent; nan where phase 0 is not above 0.
    choice
        The initial and the delayed phase.
    change_percent
        d = 100 (S_delayed - S_initial) / S_initial, nan where undefined.
    """

    n_voxels: int
    times_s: tuple[float, ...] | None
    signal: tuple[float, ...]
    percent: tuple[float, ...]
    choice: PhaseChoice
    initial: InitialRise
    delayed: DelayedCourse
    change_percent: float

    @property
    def peak_phase(self) -> int | None:
        """First phase after contrast with the largest PE; None for an undefined curve."""
        later = self.percent[1:]
        if not later or any(math.isnan(value) for value in later):
            return None
        return 1 + max(range(len(later)), key=lambda k: later[k])

    @property
    def peak_percent(self) -> float:
        """Largest PE after contrast in percent; nan for an undefined curve."""
        return math.nan if self.peak_phase is None else self.percent[self.peak_phase]


def contrast_curve(
    signal: Sequence[float] | NDArray[np.float64],
    times_s: Sequence[float | None],
    n_voxels: int = 1,
    thresholds: CurveThresholds | None = None,
    *,
    rule: TimingRule | None = None,
) -> ContrastCurve:
    """Return the contrast curve of the mean signals of each phase, with its classes.

    Parameters
    ----------
    signal
        Mean signal of each phase, ``(phase,)``.
    times_s
        Seconds since the start of phase 0, one for each phase; None where unknown.
    n_voxels
        Number of voxels whose mean is `signal`.
    thresholds
        Thresholds of the classes, see `curve_types`; None for the defaults.
    rule
        The rule for the initial and the delayed phase, see `choose_curve_phases`.

    Raises
    ------
    CaseError
        If there are fewer than two phases.

    Examples
    --------
    >>> curve = contrast_curve((100.0, 220.0, 180.0), (0.0, 100.0, 300.0))
    >>> curve.percent, curve.initial.name, curve.delayed.name
    ((0.0, 120.0, 80.0), 'FAST', 'WASHOUT')
    """
    values = np.asarray(signal, dtype=np.float64)
    choice = choose_curve_phases(times_s, rule)
    percent = curve_enhancement(values)
    change = math.nan
    if choice.late is not None:
        start, end = values[choice.early, None], values[choice.late, None]
        change = float(delayed_change(start, end)[0])
    return ContrastCurve(
        n_voxels,
        known_times(times_s)[0],
        tuple(float(value) for value in values),
        tuple(float(value) for value in percent),
        choice,
        InitialRise(int(initial_rise(percent[choice.early, None], thresholds)[0])),
        DelayedCourse(int(delayed_course(np.array([change]), thresholds)[0])),
        change,
    )


def region_contrast_curve(
    signal: NDArray[Any],
    mask: NDArray[np.bool_],
    times_s: Sequence[float | None],
    rule: TimingRule | None = None,
) -> ContrastCurve:
    """Return the contrast curve of the voxels of `mask`, bool ``(z, y, x)``; nan if it is empty.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    mask
        bool ``(z, y, x)``.
    times_s
        Seconds since the start of phase 0, one for each phase; None where unknown.
    rule
        The rule for the initial and the delayed phase.
    """
    box = Box.around(mask)
    inside = mask[box.slices]
    mean = region_curve(signal[:, *box.slices], inside)
    return contrast_curve(mean, times_s, int(np.count_nonzero(inside)), rule=rule)


def patch_curve(
    signal: NDArray[Any],
    centre: tuple[int, int, int],
    times_s: Sequence[float | None],
    *,
    size: int = 1,
    slice_axis: int = 0,
    rule: TimingRule | None = None,
) -> ContrastCurve:
    """Return the curve of the voxel `centre` (z, y, x), or of a patch of `size` x `size` around it.

    The patch lies within a slice (across `slice_axis`) and is cropped at the edge of the volume.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    centre
        Voxel (z, y, x).
    times_s
        Seconds since the start of phase 0, one for each phase; None where unknown.
    size
        Side of the patch in voxels, an odd number.
    slice_axis
        The array axis across the slices.
    rule
        The rule for the initial and the delayed phase.
    """
    half = size // 2
    index = []
    for axis, (place, n) in enumerate(zip(centre, signal.shape[1:], strict=True)):
        reach = 0 if axis == slice_axis else half
        index.append(slice(max(place - reach, 0), min(place + reach + 1, n)))
    values = signal[:, *index]
    mean = region_curve(values, np.ones(values.shape[1:], np.bool_))
    return contrast_curve(mean, times_s, values[0].size, rule=rule)
