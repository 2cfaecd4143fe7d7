"""Prepare the results of a cohort and of model comparisons as tables for the window."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.scoring.cohort import results
from napari_mamamia.scoring.cohort.policy import counted_lines
from napari_mamamia.scoring.report.models import tests_table
from napari_mamamia.scoring.report.tables import (
    disparity_table,
    group_tables,
    numbers_table,
    range_table,
    stratum_table,
)
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    range_text,
)
from napari_mamamia.scoring.statistics.bootstrap import interval_named
from napari_mamamia.services.score.text import describe_left_out

_log = logging.getLogger(__name__)

WEIGHTS_SHOWN: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Fairness weights for which ranks are listed; the figure covers all weights."""
_SHOWN_EXCLUDED: Final = 100


@dataclass(frozen=True, slots=True)
class SavedFigure:
    """A figure that a run wrote: its title and the content of its PNG file."""

    title: str
    png: bytes


def cohort_heads(model: results.ModelScores) -> tuple[str, ...]:
    """Return the lines above a model's results: profile, counts, resamples and clinical table."""
    excluded = model.n_cases - model.n_scored
    resampling = model.resampling
    lines = [
        *describe_left_out(model),
        f"{model.name}: {model.defined_by} · n {model.n_cases} · {model.n_scored} scored · "
        f"{excluded} excluded",
    ]
    if model.segmentation:
        lines += counted_lines(model.segmentation.counted)
    if model.outside:
        lines.append(f"{len(model.outside)} cases that are not in the list of cases are not scored")
    if resampling.n_resamples:
        lines.append(f"bootstrap {resampling.n_resamples}, seed {resampling.seed}")
    else:
        lines.append("there is no bootstrap, so there are no intervals")
    if model.clinical:
        table = model.clinical
        lines.append(f"clinical table {table.name}: {table.n_matched} of {model.n_cases} cases")
        if table.refused:
            lines.append(f"{len(table.refused)} rows of {table.name} could not be read")
    else:
        lines.append("there is no clinical table, so fairness is undefined")
    return (*lines, *model.notes)


def cohort_tables(model: results.ModelScores) -> tuple[ReportTable, ...]:
    """Return tables of a model's results, groups, strata and excluded cases."""
    tables: list[ReportTable] = []
    if model.segmentation:
        tables.append(_narrow_table(numbers_table(model.segmentation, model.defined_by)))
        gaps = (disparity_table(model.segmentation), range_table(model.segmentation))
        tables += [table for table in gaps if table is not None]
        tables += group_tables(model.segmentation)
        tables += [stratum_table(stratum) for stratum in model.segmentation.strata]
    if model.failures:
        tables.append(_make_excluded_table(model))
    return tuple(tables)


def comparison_page(
    comparison: results.ModelComparison, models: Sequence[results.ModelScores]
) -> tuple[ReportTable, ...]:
    """Return tables of the models by rank with intervals, ranks by fairness weight, and tests."""
    by_name = {model.name: model for model in models}
    # NaN differs from itself, so models without a rank come last.
    ordered = sorted(comparison.ranking, key=lambda m: (m.rank != m.rank, m.rank))
    rows = tuple(Row(tuple(_list_rank_cells(model, by_name.get(model.name)))) for model in ordered)
    columns = (
        Column("Rank"),
        Column("Model", is_number=False),
        *(Column(text) for text in ("n", "Ranking score", "Performance", "Fairness")),
    )
    weight = f"weight of fairness {comparison.weight_of_fairness:g}"
    title = f"Models (profile {comparison.profile}, {weight}; 95 % intervals)"
    first = ReportTable(title, columns, rows, comparison.notes)
    tests = (tests_table("Paired comparisons", comparison.tests),) if comparison.tests else ()
    return (first, _make_rank_table(comparison), *tests)


def _list_rank_cells(one: results.RankedModel, model: results.ModelScores | None) -> Iterator[str]:
    result = model.segmentation if model else None
    yield number(one.rank, 0)
    yield one.name
    yield results.n_text(one)
    for name, value in (
        ("ranking_score", one.ranking_score),
        ("performance", one.performance),
        ("fairness", one.fairness),
    ):
        yield _with_interval(value, name, result)


def _with_interval(value: float, name: str, result: results.SegmentationResult | None) -> str:
    if result is None:
        return number(value)
    contrasts = result.uncertainty.by_name("fairness_")
    interval = contrasts.get(name) or interval_named(result.intervals, name)
    if interval is None or interval.low != interval.low:
        return number(value)
    return f"{number(value)} ({range_text(interval.low, interval.high)})"


def _make_rank_table(comparison: results.ModelComparison) -> ReportTable:
    sweep = comparison.sweep
    places = [int(np.argmin(np.abs(sweep.weights - weight))) for weight in WEIGHTS_SHOWN]
    ends = {0: f"0 ({sweep.ends[0]})", len(places) - 1: f"1 ({sweep.ends[1]})"}
    titles = [ends.get(k, f"{sweep.weights[column]:g}") for k, column in enumerate(places)]
    rows = tuple(
        Row((name, *(number(float(sweep.ranks[row, index]), 0) for index in places)))
        for row, name in enumerate(sweep.names)
    )
    columns = (Column("Model", is_number=False), *(Column(title) for title in titles))
    note = f"Composite: {sweep.composite}. Rank 1 is best; – where the score is undefined."
    return ReportTable("Rank at each weight of fairness", columns, rows, (note,))


def _narrow_table(table: ReportTable) -> ReportTable:
    """Return a table with one interval for each value, because a window is narrower than a page."""
    indices = [0, 1, 2, len(table.columns) - 1]
    rows = tuple(Row(tuple(row.cells[k] for k in indices), row.is_small) for row in table.rows)
    notes = (*table.notes, "Basic and BCa intervals are in the report.")
    columns = tuple(table.columns[k] for k in indices)
    return ReportTable(table.title, columns, rows, notes, table.listed)


def _make_excluded_table(model: results.ModelScores) -> ReportTable:
    columns = (Column("Case", is_number=False), Column("Reason", is_number=False))
    rows = tuple(
        Row((failure.case_id, failure.reason)) for failure in model.failures[:_SHOWN_EXCLUDED]
    )
    more = len(model.failures) - len(rows)
    notes = (f"and {more} more: see the case table",) if more else ()
    return ReportTable(f"{len(model.failures)} cases with a problem", columns, rows, notes)


def saved_figures(folder: Path, model: str = "") -> Iterator[SavedFigure]:
    """Yield the figures in a run's folder: those of all models, then those of `model`.

    A figure that cannot be read is skipped.
    """
    for place in (folder, folder / model) if model else (folder,):
        for path in sorted(place.glob("*.png")):
            try:
                yield SavedFigure(path.stem.replace("_", " "), path.read_bytes())
            except OSError as error:
                _log.warning("cannot read the figure %s", error.strerror)
