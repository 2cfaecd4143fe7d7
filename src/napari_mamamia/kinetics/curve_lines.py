"""Contrast curves for figures and tables, each with a name, a colour and its classes."""

import math
from dataclasses import dataclass
from typing import Final

from napari_mamamia.kinetics.contrast_curve import ContrastCurve
from napari_mamamia.kinetics.curve_types import DelayedCourse, InitialRise

LETTERS: Final = {
    DelayedCourse.PERSISTENT: "P",
    DelayedCourse.PLATEAU: "L",
    DelayedCourse.WASHOUT: "W",
}
"""Letter of each delayed course, so that colour is not the only distinction."""

TIME_LABEL: Final = "time since phase 0 (s)"
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
