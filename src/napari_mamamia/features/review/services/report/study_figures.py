"""Figures of a review study: flow of cases, agreement, reading time, errors found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from napari_mamamia.scoring.report.figures import BLUE, GREY, ORANGE, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

_INK: Final = "#333333"
_FILL: Final = "#F3F7FA"


@dataclass(frozen=True, slots=True)
class FlowBox:
    """A box of a flow diagram: a title with a number, and lines below."""

    title: str
    n: int
    lines: tuple[str, ...] = ()


def flow_diagram(whole: FlowBox, parts: Sequence[FlowBox]) -> "Figure":
    """Draw a box, and below it side by side the boxes into which it divides."""
    from matplotlib.figure import Figure

    n_lines = max(len(part.lines) for part in parts)
    height_inches = 1.45 + 0.14 * n_lines
    figure = Figure(figsize=(1.45 * len(parts), height_inches), facecolor="w")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, len(parts))
    axes.set_ylim(height_inches, 0)
    middle, upper, lower = len(parts) / 2, 0.45, 0.8
    axes.add_patch(_make_box(middle - 0.6, 0.05, 1.2, upper - 0.05))
    axes.text(middle, 0.25, _say_box(whole), ha="center", va="center", fontsize=8)
    for index, part in enumerate(parts):
        axes.add_patch(_make_box(index + 0.03, lower, 0.94, height_inches - lower - 0.05))
        axes.annotate(
            "",
            (index + 0.5, lower),
            (middle, upper),
            arrowprops={"arrowstyle": "-|>", "color": _INK, "linewidth": 0.9},
        )
        axes.text(index + 0.5, lower + 0.08, _say_box(part), ha="center", va="top", fontsize=8)
        axes.text(
            index + 0.5,
            lower + 0.42,
            "\n".join(part.lines),
            ha="center",
            va="top",
            fontsize=7,
            color=_INK,
            linespacing=1.3,
        )
    return figure


def _say_box(box: FlowBox) -> str:
    return f"{box.title}\n{box.n:,}"


def _make_box(x: float, y: float, width: float, height: float) -> "FancyBboxPatch":
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x, y),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.04",
        facecolor=_FILL,
        edgecolor=_INK,
        linewidth=0.9,
    )


def dice_of_cases(values: Sequence[float], trigger: float | None) -> "Figure":
    """Plot each case's lowest Dice between readings, ascending; a line marks the trigger."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 2.7))
    ordered = np.sort(np.array(values, dtype=np.float64))
    colours = [VERMILION if trigger is not None and one < trigger else BLUE for one in ordered]
    axes.scatter(np.arange(1, len(ordered) + 1), ordered, c=colours, s=14)
    if trigger is not None:
        axes.axhline(trigger, color=GREY, linestyle="--", linewidth=1)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("case, lowest first")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("lowest Dice of two readings")
    return figure


def time_bars(classes: Sequence[str], counts: Sequence[int]) -> "Figure":
    """Plot a histogram of reading times in minutes."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 2.7))
    axes.bar(range(len(classes)), counts, color=BLUE, width=0.8)
    axes.set_xticks(range(len(classes)), classes)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("active minutes")
    axes.set_ylabel("readings")
    return figure


def capture_curve(
    n_read: Sequence[int], n_errors: Sequence[int], n_cases: int, totals: tuple[float, float, float]
) -> "Figure":
    """Plot the errors found against the share of cases read.

    `totals` holds the estimated number of errors in all cases and the limits of its interval, drawn
    as a line and a band; NaN values are not drawn.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure((5.0, 3.1))
    axes.plot(
        np.array(n_read) / n_cases, n_errors, color=BLUE, linewidth=1.6, drawstyle="steps-post"
    )
    estimate, low, high = totals
    if not np.isnan(totals).any():
        axes.axhspan(low, high, color=ORANGE, alpha=0.15, linewidth=0)
        axes.axhline(estimate, color=ORANGE, linestyle="--", linewidth=1.2)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("share of cases read")
    axes.set_ylabel("errors found")
    return figure
