"""The contrast curve of a region: mean signal, enhancement, type and lines of its figure."""

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
    """Return the mean signal of every phase over the voxels of `mask`.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    mask
        bool ``(z, y, x)``.

    Returns
    -------
    numpy.ndarray
        float64 ``(phase,)``, in the signal's unit. Voxels that are not finite in every phase are
        excluded, so that all phases use the same voxels; NaN if none remains.

    Raises
    ------
    ValueError
        If mask and phases differ in shape.
    """
    if mask.shape != signal.shape[1:]:
        raise ValueError(
            f"expected a mask with the phases' shape {signal.shape[1:]}, but got {mask.shape}"
        )
    values = signal[:, mask].astype(np.float64)
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] == 0:
        return np.full(signal.shape[0], np.nan)
    mean: NDArray[np.float64] = values.mean(axis=1)
    return mean


def curve_enhancement(curve: NDArray[np.float64], eps: float = 0.0) -> NDArray[np.float64]:
    """Return the PE of a curve against its first point, in percent.

    This is the PE of the mean signals. It gives bright voxels more weight than the mean of the PE
    of single voxels, and a few dark noisy voxels cannot inflate it. All values are NaN if the first
    point is not above `eps`.

    Parameters
    ----------
    curve
        Mean signal of each phase, ``(phase,)``.
    eps
        Least signal of the first phase, in the signal's unit.

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
    """Class of the initial rise; the number is the label value in a map."""

    UNDEFINED = 0
    SLOW = 1
    MEDIUM = 2
    FAST = 3


class DelayedCourse(IntEnum):
    """Class of the delayed course (curve types I, II and III); the number is the label value."""

    UNDEFINED = 0
    PERSISTENT = 1
    PLATEAU = 2
    WASHOUT = 3


@dataclass(frozen=True, slots=True)
class CurveThresholds:
    """Thresholds of the classes, in percent.

    `medium` and `fast`: from `medium` on the initial PE is medium, above `fast` it is fast (usual
    BI-RADS and CAD convention: slow below 50, fast above 100). `change`: a later change of at most
    this much in either direction is a plateau (Partridge 2014, figure 2: 10).
    """

    medium: float = 50.0
    fast: float = 100.0
    change: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.medium <= self.fast or self.change < 0:
            raise ValueError(
                f"expected thresholds with 0 <= medium <= fast and change >= 0, but got {self}"
            )


def initial_rise(
    enhancement: NDArray[Any], thresholds: CurveThresholds | None = None
) -> NDArray[np.uint8]:
    """Return the `InitialRise` of each PE at the initial phase, as uint8 of the same shape.

    Slow below 50 %, medium from 50 to 100 %, fast above 100 % (defaults); NaN is undefined.

    Parameters
    ----------
    enhancement
        PE at the initial phase, in percent.
    thresholds
        Thresholds of the classes; None for the defaults.

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
    """Return the delayed change d = 100 (S_late - S_initial) / S_initial in percent, float32.

    NaN where S_initial <= eps or a value is not finite. Source: Partridge et al. 2014, figure 2.

    Parameters
    ----------
    initial, late
        Signals of the initial and the delayed phase, of one shape.
    eps
        Values of S_initial up to eps are undefined, in the signal's unit.
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
    """Return the `DelayedCourse` of each `delayed_change`, as uint8 of the same shape.

    Persistent above +10 %, washout below -10 %, plateau between, limits included (defaults); NaN is
    undefined. Voxels without enhancement also get a course; it is meaningful only where the initial
    rise is medium or fast.

    Parameters
    ----------
    change
        Result of `delayed_change`, in percent.
    thresholds
        Thresholds of the classes; None for the defaults.

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
        Thresholds of the classes, see `CurveThresholds`; None for the defaults.
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


LETTERS: Final = {
    DelayedCourse.PERSISTENT: "P",
    DelayedCourse.PLATEAU: "L",
    DelayedCourse.WASHOUT: "W",
}
"""Letter of each delayed course, so that colour is not the only distinction."""

TIME_LABEL: Final = "time since the first phase (s)"
PHASE_LABEL: Final = "phase (acquisition times unknown)"
PERCENT_LABELS: Final = ("enhancement PE (%)", "PE (%)")

CURVE_COLUMNS: Final = ("region", "n_voxels", "phase", "time_s", "mean_signal", "pe_percent")


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One curve of a plot: `colour` as hexadecimal RGB, `percent` the PE of each phase."""

    name: str
    colour: str
    percent: tuple[float, ...]
    classes: str = ""
    n_voxels: int = 0
    signal: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """The curves of one case over one axis.

    `times_s` are seconds; None for an axis of phases, with the reason in `warning`.
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
        """Return the position of a phase on the horizontal axis."""
        return float(phase) if self.times_s is None else self.times_s[phase]


def line_of(name: str, colour: str, curve: ContrastCurve) -> CurveLine:
    """Return a curve as a line of a plot.

    Parameters
    ----------
    name
        Name of the region.
    colour
        Hexadecimal RGB.
    curve
        The contrast curve.
    """
    words = classes_text(curve)
    return CurveLine(name, colour, curve.percent, words, curve.n_voxels, curve.signal)


def classes_text(curve: ContrastCurve) -> str:
    """Return a text of the classes, such as "fast, washout (W)", including unknown classes."""
    if curve.initial is InitialRise.UNDEFINED:
        return "undefined: no signal before contrast"
    first = curve.initial.name.lower()
    if curve.delayed is DelayedCourse.UNDEFINED:
        return f"{first}, no delayed class"
    return f"{first}, {curve.delayed.name.lower()} ({LETTERS[curve.delayed]})"


def curve_rows(plot: CurvePlot) -> tuple[tuple[str | float, ...], ...]:
    """Return a table of the curves with one row for each phase of each curve.

    See `CURVE_COLUMNS`.
    """
    rows: list[tuple[str | float, ...]] = []
    for line in plot.lines:
        for phase, value in enumerate(line.percent):
            time_s = math.nan if plot.times_s is None else plot.times_s[phase]
            signal = line.signal[phase] if line.signal else math.nan
            rows.append((line.name, float(line.n_voxels), float(phase), time_s, signal, value))
    return tuple(rows)
