"""Figures of a report, created as matplotlib `Figure` objects without global state.

The colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), as in the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.cohort.disparities import GapInterval
from napari_mamamia.scoring.cohort.ranking import Sweep
from napari_mamamia.scoring.statistics.bootstrap import Interval
from napari_mamamia.scoring.statistics.calibration import Calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
GREEN: Final = "#009E73"
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
BLACK: Final = "#000000"
GREY: Final = "#8A8A8A"
MODEL_COLOURS: Final = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
_MODEL_MARKERS: Final = "osD^vPX"

_WIDE: Final = (5.0, 3.1)
_INK: Final = "#333333"
_DOTS_PER_INCH: Final = 200
_OUTSIDE: Final = 1e-9
"""Tolerance for rounding at the ends of an interval."""
_FP_SHOWN: Final = (1 / 16, 8.0)


@dataclass(frozen=True, slots=True, eq=False)
class BoxGroup:
    """The values of one group, without nan; a group that `is_small` is drawn in grey."""

    label: str
    values: NDArray[np.float64]
    is_small: bool = False


@dataclass(frozen=True, slots=True)
class ModelPoint:
    """A model's performance and fairness, with their intervals if there are any."""

    name: str
    performance: float
    fairness: float
    performance_interval: Interval | None = None
    fairness_interval: GapInterval | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """Points of a ROC curve from 0 to 1: the curve of a model, or the single point of a reader."""

    name: str
    false_share: NDArray[np.float64]
    sensitivity: NDArray[np.float64]


def box_plot(groups: Sequence[BoxGroup], value_label: str, variable: str) -> "Figure":
    """Return a box plot with one box for each group, for values from 0 to 1.

    The boxes show median, quartiles, whiskers up to 1.5 times the box, and the mean as a diamond.
    The number of cases is under each label; groups without a value keep their position.
    """
    figure, axes = new_figure((max(_WIDE[0], 0.75 * len(groups) + 1.2), _WIDE[1]))
    defined = [group.values[~np.isnan(group.values)] for group in groups]
    drawn = axes.boxplot(
        [values if values.size else [np.nan] for values in defined],
        widths=min(0.55, 0.13 * len(groups)),
        patch_artist=True,
        showmeans=True,
        medianprops={"color": _INK},
        meanprops={"marker": "D", "markersize": 5, "markeredgecolor": _INK, "markerfacecolor": "w"},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": GREY},
    )
    for box, group in zip(drawn["boxes"], groups, strict=True):
        box.set_facecolor("#E4E4E4" if group.is_small else "#A9D5F0")
        box.set_edgecolor(_INK)
    labels = [
        f"{group.label}\nn = {values.size}" for group, values in zip(groups, defined, strict=True)
    ]
    axes.set_xticks(range(1, len(groups) + 1), labels, fontsize=8, parse_math=False)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel(value_label)
    axes.set_xlabel(variable, parse_math=False)
    return figure


def fairness_performance(
    points: Sequence[ModelPoint], performance_label: str, baseline: str = ""
) -> "Figure":
    """Return a scatter plot of fairness against performance, with intervals as crosses.

    Dotted lines join equal ranking scores for a fairness weight of 0.5. With `baseline`, the name
    of a model, the region that is better than this model in both metrics is shaded.
    """
    figure, axes = new_figure((5.0, 3.7))
    named: Sequence[int] = range(len(points))
    if len(points) > len(MODEL_COLOURS):
        named = _choose_named(np.array([point.performance + point.fairness for point in points]))
    for index, point in enumerate(points):
        is_named = index in named
        colour = MODEL_COLOURS[named.index(index)] if is_named else GREY
        axes.errorbar(
            point.performance,
            point.fairness,
            xerr=_measure_arms(point.performance, point.performance_interval),
            yerr=_measure_arms(point.fairness, point.fairness_interval),
            fmt=_MODEL_MARKERS[named.index(index)] if is_named else ".",
            color=colour,
            ecolor=colour,
            elinewidth=1 if is_named else 0.5,
            capsize=2,
            zorder=3 if is_named else 1,
            label=_format_label(point.name) if is_named else None,
        )
    axes.margins(0.15)
    _equal_scores(axes)
    for point in points:
        if point.name == baseline:
            _better_than(axes, point)
    axes.set_xlabel(performance_label)
    axes.set_ylabel("fairness (1 is best)")
    _add_legend(axes)
    return figure


def _choose_named(scores: NDArray[np.float64]) -> list[int]:
    best = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
    return sorted(best[: len(MODEL_COLOURS)].tolist())


def weight_sweep(sweep: Sweep) -> "Figure":
    """Return a figure of ranks, or of one model's ranking score, over the fairness weight."""
    several = len(sweep.names) > 1
    figure, axes = new_figure((_WIDE[0], max(_WIDE[1], 0.2 * len(sweep.names))))
    rows = sweep.ranks if several else sweep.scores
    named: Sequence[int] = range(len(sweep.names))
    if len(sweep.names) > len(MODEL_COLOURS):
        named = _choose_named(-sweep.ranks[:, len(sweep.weights) // 2])
    for index, name in enumerate(sweep.names):
        is_named = index in named
        axes.plot(
            sweep.weights,
            rows[index],
            color=MODEL_COLOURS[named.index(index)] if is_named else GREY,
            marker=_MODEL_MARKERS[named.index(index)] if is_named else "",
            markevery=max(1, len(sweep.weights) // 10),
            markersize=4,
            linewidth=1.5 if is_named else 0.7,
            zorder=3 if is_named else 1,
            label=_format_label(name) if is_named else None,
        )
    if several:
        axes.set_ylim(len(sweep.names) + 0.5, 0.5)
        axes.set_yticks(range(1, len(sweep.names) + 1))
    axes.set_ylabel("rank (1 is best)" if several else "ranking score")
    ends = [f"0\n{sweep.ends[0]}", "0.25", "0.5", "0.75", f"1\n{sweep.ends[1]}"]
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ends)
    axes.set_xlabel("fairness weight")
    _add_legend(axes, is_beside=len(sweep.names) > len(MODEL_COLOURS))
    return figure


def reliability_diagram(calibration: Calibration) -> "Figure":
    """Return a plot of the response rate against the mean score of each bin, labelled with n."""
    figure, axes = new_figure((4.2, 3.7))
    axes.plot((0, 1), (0, 1), color=GREY, linestyle=":", linewidth=1, label="perfect")
    means = [bin_.mean_score for bin_ in calibration.bins]
    rates = [bin_.response_rate for bin_ in calibration.bins]
    axes.plot(means, rates, color=BLUE, marker="o", markersize=5, label="predicted")
    for bin_ in calibration.bins:
        axes.annotate(
            f"{bin_.n}",
            (bin_.mean_score, bin_.response_rate),
            xytext=(4, 5),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("mean predicted probability of pCR")
    axes.set_ylabel("share of cases with pCR")
    _add_legend(axes)
    return figure


def roc_curves(curves: Sequence[RocCurve], reader: RocCurve | None, above: float) -> "Figure":
    """Return ROC curves with a band for the partial area and a star for the reader."""
    figure, axes = new_figure((4.4, 4.0))
    axes.axhspan(above, 1.0, color="#F0F0F0", zorder=0)
    axes.plot((0, 1), (0, 1), color=GREY, linestyle=":", linewidth=1)
    for curve, colour in zip(curves, MODEL_COLOURS, strict=False):
        label = _format_label(curve.name)
        axes.plot(curve.false_share, curve.sensitivity, color=colour, linewidth=1.4, label=label)
    if reader is not None:
        (star,) = axes.plot(
            reader.false_share, reader.sensitivity, "*k", label=_format_label(reader.name)
        )
        star.set_markersize(11)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("1 - specificity")
    axes.set_ylabel("sensitivity")
    _add_legend(axes)
    return figure


def volume_histogram(volumes_mm3: NDArray[np.float64]) -> "Figure":
    """Return a histogram of tumour volumes on a log axis, with the 20th and 80th percentiles.

    Volumes of 0 and nan are left out.
    """
    figure, axes = new_figure(_WIDE)
    volumes = volumes_mm3[~np.isnan(volumes_mm3)]
    volumes = volumes[volumes > 0]
    if volumes.size:
        low, high = np.log10(volumes.min()) - 0.05, np.log10(volumes.max()) + 0.05
        axes.hist(volumes, bins=np.logspace(low, high, 25).tolist(), color=SKY, edgecolor="w")
        for share, edge in zip((20, 80), np.percentile(volumes, (20, 80)), strict=True):
            axes.axvline(float(edge), color=_INK, linestyle="--", linewidth=1)
            axes.annotate(
                f"{share}th: {edge:,.0f} mm³",
                (float(edge), 0.97),
                xycoords=("data", "axes fraction"),
                xytext=(-4 if share == 20 else 4, 0),
                textcoords="offset points",
                ha="right" if share == 20 else "left",
                va="top",
                fontsize=8,
            )
        axes.set_xscale("log")
    axes.set_xlabel("volume of the reference (mm³)")
    axes.set_ylabel("cases")
    return figure


@dataclass(frozen=True, slots=True, eq=False)
class FrocLine:
    """A curve or a single marker in a FROC figure: false positives per case, and sensitivity."""

    label: str
    fp_per_case: NDArray[np.float64]
    sensitivity: NDArray[np.float64]


def froc_figure(lines: Sequence[FrocLine], fp_label: str, ceiling: float = np.nan) -> "Figure":
    """Return a plot of sensitivity against false positives per case, from 1/16 to 8 on a log axis.

    A dotted line marks `ceiling`, if it is defined.
    """
    figure, axes = new_figure((5.0, 3.7))
    for index, line in enumerate(lines):
        colour = MODEL_COLOURS[index % len(MODEL_COLOURS)]
        if line.fp_per_case.size == 1:
            x = np.clip(line.fp_per_case, _FP_SHOWN[0], _FP_SHOWN[1])
            axes.plot(x, line.sensitivity, "o", color=colour, label=line.label)
        else:
            style = "-" if index % 2 == 0 else "--"
            axes.plot(line.fp_per_case, line.sensitivity, style, color=colour, label=line.label)
    if not np.isnan(ceiling):
        axes.axhline(ceiling, color=_INK, linestyle=":", linewidth=1)
        axes.annotate(
            f"ceiling of paper-eq3: {ceiling:.3f}",
            (_FP_SHOWN[0], ceiling),
            xytext=(2, 3),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xscale("log", base=2)
    axes.set_xlim(*_FP_SHOWN)
    ticks = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]
    axes.set_xticks(ticks, ["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(fp_label)
    axes.set_ylabel("sensitivity")
    _add_legend(axes)
    return figure


def svg_of(figure: "Figure") -> str:
    """Return a figure as an ``<svg>`` element that scales to the available width.

    Text remains text, and nothing external is loaded. Equal figures give equal strings.
    """
    from matplotlib import rc_context

    buffer = BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "napari-mamamia"}):
        nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue().decode()
    return text[text.index("<svg") :]


def png_of(figure: "Figure") -> bytes:
    """Return a figure as PNG bytes with 200 dots per inch."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def new_figure(size_inches: tuple[float, float]) -> "tuple[Figure, Axes]":
    """Return an empty figure in the common style: left and bottom axes, and thin lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size_inches, layout="constrained", facecolor="w")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)
    axes.grid(axis="y", color="#E8E8E8", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _format_label(name: str) -> str:
    return f" {name}" if name.startswith("_") else name


def _add_legend(axes: "Axes", *, is_beside: bool = False) -> None:
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    legend = axes.legend(**beside) if is_beside else axes.legend()
    legend.set_frame_on(False)
    for text in legend.get_texts():
        text.set_fontsize(8)
        text.set_parse_math(False)


def _measure_arms(
    value: float, interval: Interval | GapInterval | None
) -> NDArray[np.float64] | None:
    """Return the lengths of an error bar below and above the value, or None without an interval.

    A resampled number can lie outside its interval, and then also gets no error bar.
    """
    if interval is None or np.isnan([value, interval.low, interval.high]).any():
        return None
    if not interval.low - _OUTSIDE <= value <= interval.high + _OUTSIDE:
        return None
    return np.array([[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]])


def _equal_scores(axes: "Axes") -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for total in np.arange(np.floor(10 * (left + bottom)), np.ceil(10 * (right + top)) + 1) / 10:
        axes.plot(
            (left, right), (total - left, total - right), color="#D0D0D0", lw=0.7, ls=":", zorder=0
        )
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _better_than(axes: "Axes", point: ModelPoint) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    axes.fill_between(
        (point.performance, right), point.fairness, top, color=GREEN, alpha=0.1, linewidth=0
    )
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
