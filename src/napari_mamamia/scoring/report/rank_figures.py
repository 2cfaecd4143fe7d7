"""Figures of a leaderboard: ranks and their stability, methods, pairs, cases and sites.

Algorithms are rows, so that fifty names fit and stay readable on a phone.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.scoring.ranking.ranking import MethodRanking
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.figures import MODEL_COLOURS, SKY
from napari_mamamia.scoring.report.report_figures import ReportFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK: Final = "#333333"
_PALE: Final = "#E4E4E4"
_ROW: Final = 0.27
"""Height in inches of a row with a name."""
_LARGEST_BLOB: Final = 170.0
_MOST_LETTERS: Final = 28
_MOST_NUMBERS: Final = 12
"""Largest number of columns for which a heat map shows numbers in its cells."""


def draw_stability(
    stem: str, names: Sequence[str], methods: Sequence[MethodRanking], n_draws: int
) -> Iterator[ReportFigure]:
    """Yield the figures on the stability of ranks; their names end with `stem`."""
    lead = methods[0]
    order = np.argsort(lead.ranks, kind="stable")
    ordered = [names[index] for index in order.tolist()]
    stable = lead.stability
    if stable is not None:
        shares = share_ranks(stable.ranks[:, order])
        yield ReportFigure(
            f"blobs-{stem}",
            f"Ranks by {lead.method} over {n_draws:,} resamples of the cases: the area of a blob "
            "is the fraction of resamples, the cross is the median, and the bar covers 95 %.",
            Drawing(
                rank_blobs,
                (ordered, shares, stable.median[order], stable.low[order], stable.high[order]),
                has_png=False,
            ),
        )
    if len(methods) > 1:
        ranks = np.stack([method.ranks[order] for method in methods], axis=1)
        yield ReportFigure(
            f"lines-{stem}",
            "Rank by each method; crossing lines show that the order depends on the method.",
            Drawing(
                rank_lines,
                (ordered, [f"{method.method}" for method in methods], ranks),
                has_png=False,
            ),
        )
    taus = [method.stability.tau for method in methods if method.stability is not None]
    if taus:
        yield ReportFigure(
            f"tau-{stem}",
            "Agreement of the resampled orders with the full order, by method; the cross is the "
            "median.",
            Drawing(
                tau_violins, ([f"{m.method}" for m in methods if m.stability], taus), has_png=False
            ),
        )


def share_ranks(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fraction of resamples in which each algorithm (row) has each rank (column).

    Average ranks count as the next whole rank.
    """
    n_draws, m = ranks.shape
    shares = np.zeros((m, m))
    full = np.clip(np.ceil(ranks).astype(np.intp) - 1, 0, m - 1)
    np.add.at(shares, (np.broadcast_to(np.arange(m), full.shape), full), 1 / n_draws)
    return shares


def rank_blobs(
    names: Sequence[str],
    shares: NDArray[np.float64],
    median: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> "Figure":
    """Return a figure of each algorithm's ranks; the area of a blob is the fraction of resamples.

    `shares` (m, m) has an algorithm per row and a rank per column, from 1. The cross is the median,
    and the bar covers 95 %; both are (m,).
    """
    figure, axes = _make_rows_figure(names)
    row, rank = np.nonzero(shares)
    axes.scatter(rank + 1, row, s=_LARGEST_BLOB * shares[row, rank], color=SKY, linewidths=0)
    places = np.arange(len(names))
    axes.hlines(places, low, high, color=_INK, linewidth=1)
    axes.plot(median, places, "x", color=_INK, markersize=5)
    _set_ranks(axes, len(names))
    return figure


def estimate_dots(names: Sequence[str], numbers: NDArray[np.float64], label: str) -> "Figure":
    """Return a figure of each algorithm's number as a dot with its interval.

    Parameters
    ----------
    names
        Names of the m algorithms.
    numbers
        Lower end, number and upper end, (m, 3).
    label
        Label of the axis.
    """
    figure, axes = _make_rows_figure(names)
    places = np.arange(len(names))
    axes.hlines(places, numbers[:, 0], numbers[:, 2], color=_INK, linewidth=1)
    axes.plot(numbers[:, 1], places, "o", color=SKY, markersize=6)
    axes.set_xlabel(label, fontsize=8)
    return figure


def score_boxes(
    names: Sequence[str], quantiles: Sequence[Sequence[float]], label: str = "Score"
) -> "Figure":
    """Return a figure of box plots that show the 2.5, 25, 50, 75 and 97.5 % quantiles.

    Parameters
    ----------
    names
        Names of the m algorithms.
    quantiles
        The quantiles, (m, 5).
    label
        Label of the axis.
    """
    figure, axes = _make_rows_figure(names)
    keys = ("whislo", "q1", "med", "q3", "whishi")
    boxes = [dict(zip(keys, row, strict=True)) for row in quantiles]
    axes.bxp(
        boxes, positions=range(len(names)), widths=0.55, vert=False, showfliers=False,
        manage_ticks=False, patch_artist=True, boxprops={"facecolor": SKY, "edgecolor": _INK},
        medianprops={"color": _INK},
    )  # fmt: skip
    axes.set_xlabel(label, fontsize=8)
    return figure


def rank_podium(names: Sequence[str], shares: NDArray[np.float64]) -> "Figure":
    """Return a figure of the fractions of first, second and third ranks as stacked bars.

    Parameters
    ----------
    names
        Names of the m algorithms.
    shares
        Fraction of resamples with each rank, (m, 3) or fewer columns.
    """
    figure, axes = _make_rows_figure(names)
    start = np.zeros(len(names))
    ranks = (("first", "#C9A227"), ("second", "#A7A9AC"), ("third", "#B4763B"))
    for share, (label, colour) in zip(100 * shares.T, ranks[: shares.shape[1]], strict=True):
        axes.barh(range(len(names)), share, left=start, color=colour, label=label)
        start += share
    axes.set_xlim(0, 100)
    axes.set_xlabel("Resamples, %", fontsize=8)
    axes.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.2), frameon=False)
    return figure


def rank_lines(
    names: Sequence[str], methods: Sequence[str], ranks: NDArray[np.float64]
) -> "Figure":
    """Return a figure of each algorithm's rank by each method, joined by lines."""
    from matplotlib.figure import Figure

    n = len(names)
    figure = Figure(figsize=(5.6, max(2.2, _ROW * n + 1.3)), layout="constrained", facecolor="w")
    axes = figure.add_subplot()
    for index, row in enumerate(ranks):
        colour = MODEL_COLOURS[index] if index < len(MODEL_COLOURS) else "#BDBDBD"
        axes.plot(
            range(len(methods)), row, color=colour, marker="o", markersize=4, zorder=n - index
        )
    last = len(methods) - 1
    # Names of algorithms with the same rank are written below each other.
    for place, at in enumerate(np.argsort(ranks[:, -1], kind="stable").tolist()):
        axes.plot((last, last + 0.15), (ranks[at, -1], place + 1), color="#BDBDBD", linewidth=0.6)
        _write_text(axes, last + 0.2, place + 1, _shorten_name(names[at]), "left")
    labels = [method.replace("-then-", "\nthen ") for method in methods]
    axes.set_xticks(range(len(methods)), labels, fontsize=7)
    axes.set_xlim(-0.2, last + 0.15)
    axes.set_ylim(n + 0.6, 0.4)
    axes.set_yticks(_pick_ranks(n))
    axes.set_ylabel("rank (1 is best)", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def significance_map(names: Sequence[str], p_values: NDArray[np.float64], alpha: float) -> "Figure":
    """Return a figure of the pairs in which the row is significantly better than the column.

    Pairs with p <= `alpha` are dark. `p_values` is (m, m) with nan on the diagonal.
    """
    cells = np.where(np.isnan(p_values), 0.5, p_values <= alpha)
    figure, axes = _make_map_figure(names, len(names))
    axes.imshow(cells, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    _name_columns(axes, names)
    axes.set_ylabel("better ...", fontsize=9)
    axes.set_xlabel("... than", fontsize=9)
    return figure


def rank_counts(names: Sequence[str], counts: NDArray[np.int64]) -> "Figure":
    """Return a figure of the number of cases in which each algorithm had each rank."""
    n_ranks = counts.shape[1]
    figure, axes = _make_map_figure(names, n_ranks)
    axes.imshow(counts, cmap="Blues", vmin=0, vmax=1.7 * max(1, counts.max()), aspect="auto")
    if n_ranks <= _MOST_NUMBERS:
        _write_cells(axes, [[f"{n}" if n else "" for n in row] for row in counts.tolist()])
    axes.set_xticks(
        [rank - 1 for rank in _pick_ranks(n_ranks)], [f"{r}" for r in _pick_ranks(n_ranks)]
    )
    axes.set_xlabel("rank in a case (1 is best)", fontsize=9)
    return figure


def podium(
    names: Sequence[str], ranks: NDArray[np.float64], values: NDArray[np.float64], seed: int
) -> "Figure":
    """Return a figure in which each case is a line over the algorithms, ordered by rank.

    `ranks` and `values` are (n, m). Within a rank each algorithm has its own column; ties are
    broken at random by `seed`.
    """
    from matplotlib.figure import Figure

    n, m = ranks.shape
    figure = Figure(figsize=(5.6, 3.6), layout="constrained", facecolor="w")
    axes = figure.add_subplot()
    order = np.lexsort((np.random.default_rng(seed).random((n, m)), ranks), axis=1)
    x = np.arange(m)[None, :] + 0.8 * (order / max(1, m - 1) - 0.5)
    y = np.take_along_axis(values, order, axis=1)
    axes.plot(x.T, y.T, color="#D0D0D0", linewidth=0.4, zorder=1, rasterized=True)
    for index, name in enumerate(names):
        is_own = order == index
        axes.plot(
            x[is_own],
            y[is_own],
            ".",
            color=MODEL_COLOURS[index % len(MODEL_COLOURS)],
            markersize=3,
            rasterized=True,
            label=f" {_shorten_name(name)}",
        )
    axes.set_xticks(range(m), [f"{index + 1}" for index in range(m)])
    axes.set_xlabel("position in a case (1 is best)", fontsize=9)
    axes.set_ylabel("value", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    legend = figure.legend(fontsize=7, markerscale=2, loc="outside lower center", ncols=3)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def tau_violins(methods: Sequence[str], taus: Sequence[NDArray[np.float64]]) -> "Figure":
    """Return violin plots of Kendall's tau-b between resampled and full ranks, by method."""
    figure, axes = _make_rows_figure(methods)
    for index, tau in enumerate(taus):
        values = tau[~np.isnan(tau)]
        if not values.size:
            continue
        if np.ptp(values) > 0:
            violins: Any = axes.violinplot(
                values, [index], orientation="horizontal", widths=0.8, showextrema=False
            )
            for body in violins["bodies"]:
                body.set_facecolor(SKY)
                body.set_alpha(0.9)
        axes.plot(np.median(values), index, "x", color=_INK, markersize=5)
    axes.set_xlabel("Kendall's tau-b (1: the same order)", fontsize=9)
    axes.set_xlim(right=1.03)
    return figure


def site_heat_map(
    sites: Sequence[str], names: Sequence[str], means: NDArray[np.float64], is_larger_better: bool
) -> "Figure":
    """Return a heat map of each algorithm's mean at each site, with crosses for missing results.

    `means` is (sites, algorithms); better values have darker colours.
    """
    shown = means.T if is_larger_better else -means.T
    figure, axes = _make_map_figure(names, len(sites))
    values = shown[~np.isnan(shown)]
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    axes.set_facecolor(_PALE)
    axes.imshow(shown, cmap="Blues", vmin=low, vmax=high + 0.7 * (high - low or 1), aspect="auto")
    if len(sites) <= _MOST_NUMBERS:
        cells = [["×" if np.isnan(v) else f"{v:.3g}" for v in row] for row in means.T]
        _write_cells(axes, cells)
    _name_columns(axes, sites)
    return figure


def _make_rows_figure(names: Sequence[str]) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    height = max(1.6, _ROW * len(names) + 0.8)
    figure = Figure(figsize=(5.0, height), layout="constrained", facecolor="w")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), [_shorten_name(name) for name in names], parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color="#E8E8E8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _make_map_figure(names: Sequence[str], n_columns: int) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    size = (max(3.6, min(9.0, 0.3 * n_columns + 2.2)), max(1.8, _ROW * len(names) + 1.2))
    figure = Figure(figsize=size, layout="constrained", facecolor="w")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), [_shorten_name(name) for name in names], parse_math=False)
    axes.tick_params(labelsize=8, length=0)
    axes.spines[:].set_visible(False)
    return figure, axes


def _name_columns(axes: "Axes", names: Sequence[str]) -> None:
    labels = [_shorten_name(name) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=8, parse_math=False)


def _set_ranks(axes: "Axes", n: int) -> None:
    axes.set_xlim(0.5, n + 0.5)
    axes.set_xticks(_pick_ranks(n))
    axes.set_xlabel("rank (1 is best)", fontsize=9)


def _pick_ranks(n: int) -> list[int]:
    step = -(-n // 15)
    return list(range(1, n + 1, step))


def _write_cells(axes: "Axes", texts: Sequence[Sequence[str]]) -> None:
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            _write_text(axes, column, row, text, "center")


def _write_text(axes: "Axes", x: float, y: float, text: str, side: str) -> None:
    written = axes.text(x, y, text, ha=side, va="center", fontsize=7, color=_INK, clip_on=False)
    written.set_parse_math(False)


def _shorten_name(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
