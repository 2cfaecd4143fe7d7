"""The contrast curve of a region: mean signal, enhancement, curve type, and lines of a plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.time_axis import TimingRule, known_times
from napari_mamamia.kinetics.timing import PhaseChoice, choose_curve_phases


def region_curve(signal: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean signal in `mask` for each phase.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    mask
        A boolean array ``(z, y, x)``.

    Returns
    -------
    numpy.ndarray
        A float64 array ``(phase,)`` in the signal's unit. Voxels that are not finite in every phase
        are excluded, so all phases use the same voxels; NaN if no voxel remains.

    Raises
    ------
    ValueError
        If the shapes of mask and phases differ.
    """
    if mask.shape != signal.shape[1:]:
        raise ValueError(
            f"expected the mask to have the phases' shape {signal.shape[1:]}, but it has "
            f"{mask.shape}"
        )
    values = signal[:, mask].astype(np.float64)
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] == 0:
        return np.full(signal.shape[0], np.nan)
    mean: NDArray[np.float64] = values.mean(axis=1)
    return mean


def curve_enhancement(curve: NDArray[np.float64], eps: float = 0.0) -> NDArray[np.float64]:
    """Return the percent enhancement (PE) of a curve relative to its first point.

    This is the PE of the mean signals. Compared with the mean PE of single voxels, bright voxels
    have more weight, and a few dark, noisy voxels cannot inflate the result. All values are NaN if
    the first point is not above `eps`.

    Parameters
    ----------
    curve
        The mean signal of each phase, ``(phase,)``.
    eps
        The smallest valid signal of the first phase, in the signal's unit.

    Examples
    --------
    >>> curve_enhancement(np.array([200.0, 500.0, 450.0]))
    array([  0., 150., 125.])
    """
    if not curve[0] > eps:
        return np.full(curve.shape, np.nan)
    enhancement: NDArray[np.float64] = 100.0 * (curve - curve[0]) / curve[0]
    return enhancement


class InitialRise(IntEnum):
    """Class of the initial rise; its number is the label in a map."""

    UNDEFINED = 0
    SLOW = 1
    MEDIUM = 2
    FAST = 3


class DelayedCourse(IntEnum):
    """Class of the delayed course (curve types I, II and III); its number is the label in a map."""

    UNDEFINED = 0
    PERSISTENT = 1
    PLATEAU = 2
    WASHOUT = 3


@dataclass(frozen=True, slots=True)
class CurveThresholds:
    """Thresholds of the curve classes in percent.

    An initial PE is slow below `medium` and fast above `fast` (50 and 100 by the usual BI-RADS and
    CAD convention). A later change of at most `change` in either direction is a plateau (10 in
    Partridge 2014, figure 2).
    """

    medium: float = 50.0
    fast: float = 100.0
    change: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.medium <= self.fast or self.change < 0:
            raise ValueError(
                "expected thresholds to satisfy 0 <= medium <= fast and change >= 0, but got "
                f"{self}"
            )


def initial_rise(
    enhancement: NDArray[Any], thresholds: CurveThresholds | None = None
) -> NDArray[np.uint8]:
    """Return the `InitialRise` of each initial PE as a uint8 array of the same shape.

    By default, the rise is slow below 50 %, medium from 50 to 100 %, and fast above 100 %; NaN is
    undefined.

    Parameters
    ----------
    enhancement
        The PE at the initial phase in percent.
    thresholds
        The thresholds of the classes; None for the defaults.

    Examples
    --------
    >>> initial_rise(np.array([np.nan, 49.0, 50.0, 100.0, 101.0]))
    array([0, 1, 2, 2, 3], dtype=uint8)
    """
    limits = thresholds or CurveThresholds()
    out = np.full(enhancement.shape, InitialRise.SLOW, dtype=np.uint8)
    out[enhancement >= limits.medium] = InitialRise.MEDIUM
    out[enhancement > limits.fast] = InitialRise.FAST
    out[np.isnan(enhancement)] = InitialRise.UNDEFINED
    return out


def delayed_change(
    initial: NDArray[Any], late: NDArray[Any], *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return the delayed change 100 (S_late - S_initial) / S_initial in percent, as float32.

    The result is NaN if S_initial <= eps or a value is not finite. Source: Partridge et al. 2014,
    figure 2.

    Parameters
    ----------
    initial, late
        The signals of the initial and the delayed phase, which have the same shape.
    eps
        The result is undefined if S_initial is at most this value, in the signal's unit.
    """
    start, end = initial.astype(np.float32), late.astype(np.float32)
    out = np.full_like(start, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        np.divide(end - start, start, out=out, where=start > eps)
        out *= np.float32(100.0)
    out[~np.isfinite(out)] = np.nan
    return out


def delayed_course(
    change: NDArray[Any], thresholds: CurveThresholds | None = None
) -> NDArray[np.uint8]:
    """Return the `DelayedCourse` of each `delayed_change` as a uint8 array of the same shape.

    By default, the course is persistent above +10 %, washout below -10 %, and plateau otherwise;
    NaN is undefined. Voxels without enhancement also have a course, but it is meaningful only if
    the initial rise is medium or fast.

    Parameters
    ----------
    change
        The result of `delayed_change`, in percent.
    thresholds
        The thresholds of the classes; None for the defaults.

    Examples
    --------
    >>> delayed_course(np.array([np.nan, 10.5, 10.0, -10.0, -10.5]))
    array([0, 1, 2, 2, 3], dtype=uint8)
    """
    limits = thresholds or CurveThresholds()
    out = np.full(change.shape, DelayedCourse.PLATEAU, dtype=np.uint8)
    out[change > limits.change] = DelayedCourse.PERSISTENT
    out[change < -limits.change] = DelayedCourse.WASHOUT
    out[np.isnan(change)] = DelayedCourse.UNDEFINED
    return out


@dataclass(frozen=True, slots=True)
class ContrastCurve:
    """The curve of a voxel, a patch or a region.

    Parameters
    ----------
    n_voxels
        The number of voxels over which `signal` is the mean.
    times_s
        The time of each phase in s after the start of phase 0; None if times cannot be used, with
        the reason in `choice.reason`.
    signal
        The mean signal of each phase.
    percent
        The PE of the mean signals in percent; NaN if phase 0 is not above 0.
    choice
        The initial and the delayed phase.
    change_percent
        The delayed change 100 (S_delayed - S_initial) / S_initial in percent; NaN if undefined.
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
        """First post-contrast phase with the largest PE, or None if the curve is undefined."""
        later = self.percent[1:]
        if not later or any(math.isnan(value) for value in later):
            return None
        return 1 + max(range(len(later)), key=lambda k: later[k])

    @property
    def peak_percent(self) -> float:
        """Largest post-contrast PE in percent; NaN if the curve is undefined."""
        return math.nan if self.peak_phase is None else self.percent[self.peak_phase]


def contrast_curve(
    signal: Sequence[float] | NDArray[np.float64],
    times_s: Sequence[float | None],
    n_voxels: int = 1,
    thresholds: CurveThresholds | None = None,
    *,
    rule: TimingRule | None = None,
) -> ContrastCurve:
    """Return the contrast curve for mean signals, with its classes.

    Parameters
    ----------
    signal
        The mean signal of each phase, ``(phase,)``.
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    n_voxels
        The number of voxels over which `signal` is the mean.
    thresholds
        The thresholds of the classes; None for the defaults.
    rule
        The rule for the initial and the delayed phase; see `choose_curve_phases`.

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
    """Return the contrast curve of the voxels in `mask`; NaN if the mask is empty.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    mask
        A boolean array ``(z, y, x)``.
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
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
    """Return the curve of the voxel `centre`, or of a patch of `size` x `size` voxels around it.

    The patch is within one slice (across `slice_axis`) and is cropped at the edge of the volume.

    Parameters
    ----------
    signal
        The signal ``(phase, z, y, x)`` in any real data type.
    centre
        The central voxel (z, y, x).
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    size
        The side length of the patch in voxels, an odd number.
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


LETTERS: Final = {
    DelayedCourse.PERSISTENT: "P",
    DelayedCourse.PLATEAU: "L",
    DelayedCourse.WASHOUT: "W",
}
"""Letter of each delayed course, so that courses can be distinguished without colour."""

TIME_LABEL: Final = "time since the first phase (s)"
PHASE_LABEL: Final = "phase (acquisition times unknown)"
PERCENT_LABELS: Final = ("enhancement PE (%)", "PE (%)")

CURVE_COLUMNS: Final = ("region", "n_voxels", "phase", "time_s", "mean_signal", "pe_percent")


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One curve in a plot; `colour` is hexadecimal RGB, and `percent` is the PE of each phase."""

    name: str
    colour: str
    percent: tuple[float, ...]
    classes: str = ""
    n_voxels: int = 0
    signal: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """The curves of one case on a common axis.

    `times_s` are in seconds, or None if the axis shows phases, with the reason in `warning`.
    """

    title: str
    times_s: tuple[float, ...] | None
    lines: tuple[CurveLine, ...]
    warning: str = ""

    @property
    def x_label(self) -> str:
        """Label of the horizontal axis, with its unit."""
        return PHASE_LABEL if self.times_s is None else TIME_LABEL

    @property
    def x_labels(self) -> tuple[str, ...]:
        """Label of the horizontal axis with its unit, and a short form for narrow plots."""
        return (PHASE_LABEL, "phase") if self.times_s is None else (TIME_LABEL, "time (s)", "s")

    @property
    def y_labels(self) -> tuple[str, ...]:
        """Label of the vertical axis with its unit, and a short form for narrow plots."""
        return PERCENT_LABELS

    def x_of(self, phase: int) -> float:
        """Return the horizontal position of a phase."""
        return float(phase) if self.times_s is None else self.times_s[phase]


def line_of(name: str, colour: str, curve: ContrastCurve) -> CurveLine:
    """Return a contrast curve as a line of a plot.

    Parameters
    ----------
    name
        The name of the region.
    colour
        The colour as hexadecimal RGB.
    curve
        The contrast curve.
    """
    words = classes_text(curve)
    return CurveLine(name, colour, curve.percent, words, curve.n_voxels, curve.signal)


def classes_text(curve: ContrastCurve) -> str:
    """Return the classes of a curve as text, such as "fast, washout (W)"."""
    if curve.initial is InitialRise.UNDEFINED:
        return "undefined: no signal before contrast"
    first = curve.initial.name.lower()
    if curve.delayed is DelayedCourse.UNDEFINED:
        return f"{first}, no delayed class"
    return f"{first}, {curve.delayed.name.lower()} ({LETTERS[curve.delayed]})"


def curve_rows(plot: CurvePlot) -> tuple[tuple[str | float, ...], ...]:
    """Return a table of the curves (`CURVE_COLUMNS`), with a row for each phase of each curve."""
    rows: list[tuple[str | float, ...]] = []
    for line in plot.lines:
        for phase, value in enumerate(line.percent):
            time_s = math.nan if plot.times_s is None else plot.times_s[phase]
            signal = line.signal[phase] if line.signal else math.nan
            rows.append((line.name, float(line.n_voxels), float(phase), time_s, signal, value))
    return tuple(rows)
