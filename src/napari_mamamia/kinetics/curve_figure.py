"""Figure of contrast curves over time, or over phases if times are unknown."""

import math
from textwrap import fill
from typing import TYPE_CHECKING, Final

from napari_mamamia.kinetics.curves import CurveLine, CurvePlot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE: Final = (6.4, 3.8)
_QUIET: Final = "#666666"
_WARNING: Final = "#8F4500"
_MARKERS: Final = "osD^vPX"
_TITLE_WIDTH: Final = 72
"""Number of title characters that fit into the width of the figure."""


def curve_figure(plot: CurvePlot) -> "Figure":
    """Return a figure of all curves with their names, classes, units and distinct markers."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        axes.set_title(fill(plot.title, _TITLE_WIDTH), loc="left", fontsize=10)
        axes.set_xlabel(plot.x_label)
        axes.set_ylabel(plot.y_labels[0])
        axes.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
        for index, line in enumerate(plot.lines):
            _draw_line(axes, plot, line, _MARKERS[index % len(_MARKERS)])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#EEEEEE", zorder=0)
        _set_ticks(axes, plot)
        if any(_is_drawn(line) for line in plot.lines):
            axes.legend(frameon=False, fontsize=8)
        else:
            axes.text(0.5, 0.5, "no curve is defined", transform=axes.transAxes, ha="center")
        if plot.warning:
            figure.supxlabel(plot.warning, fontsize=8, color=_WARNING, wrap=True)
    return figure


def _draw_line(axes: "Axes", plot: CurvePlot, line: CurveLine, marker: str) -> None:
    if not _is_drawn(line):
        return
    x = [plot.x_of(phase) for phase in range(len(line.percent))]
    label = f"{line.name}: {line.classes}" if line.classes else line.name
    axes.plot(x, line.percent, marker=marker, color=line.colour, label=label, markersize=5)


def _set_ticks(axes: "Axes", plot: CurvePlot) -> None:
    count = max((len(line.percent) for line in plot.lines), default=0)
    if plot.times_s is None:
        axes.set_xticks(range(count))
    axes.tick_params(colors=_QUIET)


def _is_drawn(line: CurveLine) -> bool:
    return any(not math.isnan(value) for value in line.percent)
