"""Tables of a model in a report: numbers with intervals, cost, failures, excluded cases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from napari_mamamia.core.records import CaseScore
from napari_mamamia.scoring.case.failure_kinds import FailureKind
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.cohort.gap_records import (
    NO_INTERVAL,
    GapInterval,
    GroupUncertainty,
    is_of_groups,
)
from napari_mamamia.scoring.cohort.policy import counted_lines
from napari_mamamia.scoring.cohort.results import SegmentationResult
from napari_mamamia.scoring.report.content import ModelReport
from napari_mamamia.scoring.report.gaps import (
    BY_CONTRASTS,
    interval_cell,
    say_beside,
    say_without,
)
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    number,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.statistics.bootstrap import Interval, IntervalMethod, interval_named

INTERVAL_COLUMNS: Final = (
    Column("Number", is_number=False),
    Column("Value"),
    Column("95 % interval"),
    Column("basic"),
    Column("BCa"),
    Column("Definition", is_number=False),
)
ROWS_LISTED: Final = 100

Named = tuple[str, str, float, str]
"""Label, name of the interval, value, and a definition or the reason for a missing value."""


def numbers_table(result: SegmentationResult, defined_by: str = "") -> ReportTable:
    """Return the cohort's numbers of Task 1 with their intervals.

    `defined_by` names their definitions; by default the profile.
    """
    cohort, means = result.cohort, result.cohort.performance
    weight = cohort.weight_of_fairness
    numbers: list[Named] = [
        (
            "Ranking score",
            "ranking_score",
            cohort.ranking_score,
            cohort.reason
            or f"{1 - weight:g} × performance + {weight:g} × fairness (weight of fairness "
            f"{weight:g})",
        ),
        (
            "Performance",
            "performance",
            means.value,
            means.reason or "(mean Dice + 1 − mean NormHD)/2",
        ),
        ("Mean Dice (DSC)", "mean_dsc", means.mean_dsc, f"share of 1, over {means.n_dsc} cases"),
        (
            "Mean NormHD",
            "mean_norm_hd",
            means.mean_norm_hd,
            f"share of the largest distance, 0 is best, over {means.n_norm_hd} cases",
        ),
        (
            "Fairness",
            "fairness",
            cohort.fairness.value,
            cohort.fairness.reason or "mean over the variables, 1 is best",
        ),
    ]
    numbers += [
        (
            f"Fairness: {variable_label(v.variable)}",
            f"fairness_{v.variable}",
            v.value,
            v.reason or "1 − (Dice disparity + NormHD disparity)/2",
        )
        for v in cohort.fairness.variables
    ]
    return ReportTable(
        f"Cohort numbers ({defined_by or f'profile {cohort.profile}'}; shares of 1, no unit)",
        INTERVAL_COLUMNS,
        interval_rows(numbers, result.intervals, result.uncertainty.by_name("fairness_")),
        (
            *interval_notes(result.intervals, result.uncertainty),
            *say_without(result.uncertainty),
            *measured_notes(result),
        ),
        interval_warnings(result.intervals),
    )


def measured_notes(result: SegmentationResult) -> tuple[str, ...]:
    """Return notes on the scored cases alone, if the main numbers also count other cases."""
    counted, means = result.counted, result.measured.performance
    if not counted.unusable:
        return ()
    measured = result.measured
    text = (
        f"Over the {means.n_cases} scored cases alone: Dice {number(means.mean_dsc)}, NormHD "
        f"{number(means.mean_norm_hd)}, performance {number(means.value)}, fairness "
        f"{number(measured.fairness.value)}, ranking score {number(measured.ranking_score)}; "
        "groups, disparities and tests refer to these cases. Not for ranking."
    )
    return (*counted_lines(counted), text)


def interval_rows(
    shown: Iterable[Named],
    intervals: Sequence[Interval],
    contrasts: Mapping[str, GapInterval],
) -> tuple[Row, ...]:
    """Return one row for each number, with its interval by the main and the further methods.

    A number that contains gaps between groups has the interval in `contrasts`, and no other.
    """
    rows = []
    for label, name, value, definition in shown:
        if name in contrasts or is_of_groups(name):
            interval = contrasts.get(name, NO_INTERVAL)
            ranges = [interval_cell(interval), UNKNOWN, UNKNOWN]
            lacks = () if interval.is_defined else (f"no interval: {interval.reason}",)
            if value == value:
                definition = "; ".join((definition, *lacks, *say_beside(interval)))
        else:
            by_method = [interval_named(intervals, name, method) for method in IntervalMethod]
            ranges = [_mark_interval(i) if i else UNKNOWN for i in by_method]
        rows.append(Row((label, number(value), *ranges, definition)))
    return tuple(rows)


def _mark_interval(interval: Interval) -> str:
    """Return both ends of an interval, with a star if it has a warning."""
    return range_text(interval.low, interval.high) + ("*" if interval.warning else "")


def interval_notes(intervals: Sequence[Interval], uncertainty: GroupUncertainty) -> tuple[str, ...]:
    """Return notes on how intervals were computed."""
    contrasts = BY_CONTRASTS.format(least=uncertainty.minimum_group)
    of_groups = (contrasts,) if uncertainty.disparities else ()
    if not intervals:
        off = "No resampling: the bootstrap was switched off, or nothing could be resampled."
        return (off, *of_groups)
    most = max(interval.n_resamples + interval.n_undefined for interval in intervals)
    note = f"Intervals of means and rates: percentiles of {most} resamples of the cases."
    return (note, *of_groups)


def interval_warnings(intervals: Sequence[Interval]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a heading and the warnings of intervals; () if there are none."""
    odd = tuple(
        f"{i.name.replace('_', ' ')}, {i.method.value}: {i.warning}"
        for i in intervals
        if i.warning and not is_of_groups(i.name)
    )
    if not odd:
        return ()
    return ((f"* {len(odd)} intervals with a warning", odd),)


def cost_table(rows: Sequence[CaseScore]) -> ReportTable:
    """Return time, memory and device of the predictions, median and worst."""
    costs = prediction_costs(rows)
    megabytes = costs.peak_memory_bytes
    devices = ", ".join(f"{name} ({n})" for name, n in costs.devices) or UNKNOWN
    shown = (
        ("Time for a case (s)", costs.seconds, 1, 1.0),
        ("Highest memory of the process (MB)", megabytes, 0, 1e6),
    )
    lines = tuple(
        Row(
            (
                label,
                number(cost.median / unit, decimals),
                number(cost.worst / unit, decimals),
                f"{cost.n}",
            )
        )
        for label, cost, decimals, unit in shown
    )
    headings = (
        Column("Cost", is_number=False),
        Column("Median"),
        Column("Worst"),
        Column("n recorded"),
    )
    notes = (
        (
            f"Device: {devices}. From the provenance of each prediction; memory is the peak of the "
            "whole process up to that case."
        ),
    )
    return ReportTable("What the predictions cost", headings, lines, notes)


def failure_table(model: ModelReport) -> ReportTable | None:
    """Return a table with the number of cases of each failure kind, or None if not determined."""
    if not model.has_failure_kinds:
        return None
    n_cases = max(model.scores.n_cases, 1)
    rows = []
    for kind in FailureKind:
        n = sum(any(f.kind is kind for f in failures) for failures in model.failures.values())
        what = "makes a case hard" if kind.is_circumstance else "error"
        counted = (f"{n}", f"{100 * n / n_cases:.1f}")
        if kind is FailureKind.LOW_CONTRAST and model.contrast_note and not n:
            counted = (UNKNOWN, UNKNOWN)
        rows.append(Row((kind.value, what, *counted), n == 0))
    headings = (
        Column("Kind", is_number=False),
        Column("Type", is_number=False),
        Column("Cases"),
        Column("% of all"),
    )
    notes = (model.contrast_note,) if model.contrast_note else ()
    return ReportTable("Failure kinds", headings, tuple(rows), notes)


def excluded_table(model: ModelReport) -> ReportTable | None:
    """Return a table of the cases that were not scored normally, or None if there are none."""
    failures = model.scores.failures
    if not failures:
        return None
    rows = tuple(Row((f.case_id, f.reason)) for f in failures[:ROWS_LISTED])
    notes: tuple[str, ...] = ()
    if len(failures) > ROWS_LISTED:
        notes = (f"and {len(failures) - ROWS_LISTED} more, in summary.json",)
    headings = (Column("Case", is_number=False), Column("Reason", is_number=False))
    return ReportTable(f"{len(failures)} cases with a problem", headings, rows, notes)
