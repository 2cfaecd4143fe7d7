"""The tables of a segmentation report: numbers with intervals, groups, strata, subgroups."""

from collections.abc import Iterable, Sequence
from typing import Final

from napari_mamamia.core.records import CaseScore
from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.bootstrap import Interval, IntervalMethod
from napari_mamamia.scoring.comparison import PairedComparison
from napari_mamamia.scoring.composites import CompositeResult, CompositeScore
from napari_mamamia.scoring.failure_kinds import FailureKind
from napari_mamamia.scoring.fairness import GroupScore, VariableFairness
from napari_mamamia.scoring.groups import Unassigned
from napari_mamamia.scoring.permutation import PermutationTest
from napari_mamamia.scoring.prediction_cost import prediction_costs
from napari_mamamia.scoring.report_content import ModelReport
from napari_mamamia.scoring.report_text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    interval_named,
    number,
    p_said,
    p_text,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.results import ModelComparison, SegmentationResult, Stratum
from napari_mamamia.scoring.slices import SliceSearch
from napari_mamamia.scoring.strata import TAG

__all__ = [
    "comparison_tables",
    "composite_tables",
    "cost_table",
    "excluded_table",
    "failure_table",
    "group_tables",
    "interval_notes",
    "interval_rows",
    "interval_warnings",
    "numbers_table",
    "slice_table",
    "stratum_table",
    "unassigned_lists",
]

INTERVAL_COLUMNS: Final = (
    Column("Number", is_number=False),
    Column("Value"),
    Column("95 % interval, percentile"),
    Column("basic"),
    Column("BCa"),
    Column("Definition", is_number=False),
)
IDS_LISTED: Final = 40
ROWS_LISTED: Final = 100

Named = tuple[str, str, float, str]
"""Label, name of the interval, value, definition or the reason why there is no value."""


def numbers_table(result: SegmentationResult) -> ReportTable:
    """Return the cohort's numbers of Task 1 with all three intervals."""
    cohort, means = result.cohort, result.cohort.performance
    weight = cohort.weight_of_fairness
    shown: list[Named] = [
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
    shown += [
        (
            f"Fairness: {variable_label(v.variable)}",
            f"fairness_{v.variable}",
            v.value,
            v.reason or "1 − (Dice disparity + NormHD disparity)/2",
        )
        for v in cohort.fairness.variables
    ]
    return ReportTable(
        f"Cohort numbers (profile {cohort.profile}; shares of 1, no unit)",
        INTERVAL_COLUMNS,
        interval_rows(shown, result.intervals),
        interval_notes(result.intervals),
        interval_warnings(result.intervals),
    )


def interval_rows(shown: Iterable[Named], intervals: Sequence[Interval]) -> tuple[Row, ...]:
    """Return one row for each number, with the interval of each method."""
    rows = []
    for label, name, value, definition in shown:
        found = [interval_named(intervals, name, method) for method in IntervalMethod]
        ranges = [_marked(i) if i else UNKNOWN for i in found]
        rows.append(Row((label, number(value), *ranges, definition)))
    return tuple(rows)


def _marked(interval: Interval) -> str:
    """Return both ends, with a star where the interval has a warning."""
    return range_text(interval.low, interval.high) + ("*" if interval.warning else "")


def interval_notes(intervals: Sequence[Interval]) -> tuple[str, ...]:
    """Return how intervals were made."""
    if not intervals:
        return ("No intervals: the bootstrap was switched off, or nothing could be resampled.",)
    most = max(interval.n_resamples + interval.n_undefined for interval in intervals)
    made = (
        f"95 % intervals from {most} resamples of the cases; percentile is the challenge paper's."
    )
    return (made,)


def interval_warnings(intervals: Sequence[Interval]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a heading and what is odd about some intervals; () if nothing is."""
    odd = tuple(
        f"{i.name.replace('_', ' ')}, {i.method.value}: {i.warning}" for i in intervals if i.warning
    )
    if not odd:
        return ()
    return ((f"* {len(odd)} intervals with a warning: read them with care", odd),)


def cost_table(rows: Sequence[CaseScore]) -> ReportTable:
    """Return time, memory and device of the predictions, median and worst."""
    found = prediction_costs(rows)
    megabytes = found.peak_memory_bytes
    devices = ", ".join(f"{name} ({n})" for name, n in found.devices) or UNKNOWN
    shown = (
        ("Time for a case (s)", found.seconds, 1, 1.0),
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
        Column("n that tell it"),
    )
    notes = (
        f"Device: {devices}. As the provenance beside each prediction says; memory is the highest "
        "of the whole process up to that case.",
    )
    return ReportTable("What the predictions cost", headings, lines, notes)


def composite_tables(composites: Sequence[CompositeResult]) -> tuple[ReportTable, ...]:
    """Return one table for each variant of the ranking score, its definition below."""
    headings = (
        Column("Rank"),
        Column("Model", is_number=False),
        Column("Score"),
        Column("Weight of fairness"),
        Column("Fairness counts", is_number=False),
        Column("Why", is_number=False),
    )
    return tuple(
        ReportTable(
            f"Variant of the ranking score: {one.name}",
            headings,
            tuple(_composite_row(score) for score in _by_rank(one.scores)),
            (f"{one.definition[:1].upper()}{one.definition[1:]}.",),
        )
        for one in composites
    )


def _by_rank(scores: Sequence[CompositeScore]) -> list[CompositeScore]:
    return sorted(scores, key=lambda score: (score.rank != score.rank, score.rank))


def _composite_row(score: CompositeScore) -> Row:
    counts = "yes" if score.counts_fairness else "no"
    cells = (number(score.rank, 0), score.name, number(score.value), number(score.weight, 2))
    return Row((*cells, counts, score.reason))


def group_tables(result: SegmentationResult) -> tuple[ReportTable, ...]:
    """Return one table for each scored variable."""
    return tuple(_variable_table(variable, result) for variable in result.cohort.fairness.variables)


def _variable_table(variable: VariableFairness, result: SegmentationResult) -> ReportTable:
    label = variable_label(variable.variable)
    notes = [
        _gap("Dice", variable.dsc.disparity, _test(result, variable.variable, "dsc")),
        _gap("NormHD", variable.norm_hd.disparity, _test(result, variable.variable, "norm_hd")),
    ]
    if variable.dsc.worst_group:
        notes.append(
            f"Worst group by Dice: {variable.dsc.worst_group} ({number(variable.dsc.worst)}); "
            f"variance over groups {number(variable.dsc.variance, 4)}."
        )
    if variable.reason:
        notes.append(f"Fairness is undefined: {variable.reason}.")
    return _groups_table(label, variable.groups, variable.unassigned, notes)


def stratum_table(stratum: Stratum) -> ReportTable:
    """Return the table of groups that are reported but not scored."""
    label = variable_label(stratum.variable)
    return _groups_table(label, stratum.groups, stratum.unassigned, [])


def _groups_table(
    label: str, groups: Sequence[GroupScore], unassigned: Sequence[Unassigned], notes: list[str]
) -> ReportTable:
    columns = ("n", "Mean Dice", "SD", "Mean NormHD", "SD")
    rows = tuple(
        Row(
            (
                group.label,
                f"{group.n}",
                number(group.mean_dsc),
                number(group.sd_dsc),
                number(group.mean_norm_hd),
                number(group.sd_norm_hd),
            ),
            group.is_small,
        )
        for group in groups
    )
    if any(group.is_small for group in groups):
        notes = [*notes, "Grey: fewer cases than the profile asks for; kept in the numbers."]
    headings = (Column("Group", is_number=False), *(Column(text) for text in columns))
    return ReportTable(label, headings, rows, tuple(notes), unassigned_lists(unassigned))


def unassigned_lists(unassigned: Sequence[Unassigned]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return for each reason a heading with the number of cases, and the first ids."""
    by_reason: dict[str, list[str]] = {}
    for case in unassigned:
        by_reason.setdefault(case.reason, []).append(case.case_id)
    found = []
    for reason, ids in by_reason.items():
        more = (f"and {len(ids) - IDS_LISTED} more",) if len(ids) > IDS_LISTED else ()
        heading = f"{len(ids)} unassigned: {reason}"
        found.append((heading, (*ids[:IDS_LISTED], *more)))
    return tuple(found)


def _test(result: SegmentationResult, variable: str, measure: str) -> PermutationTest | None:
    tests = result.permutation_tests
    return next((t for t in tests if (t.variable, t.measure) == (variable, measure)), None)


def _gap(name: str, disparity: float, test: PermutationTest | None) -> str:
    said = f"{name} disparity (largest − smallest group mean) {number(disparity)}"
    if test is None or test.p_value != test.p_value:
        return f"{said}."
    return (
        f"{said}; {p_said(test.p_value)} ({test.n_permutations} permutations, "
        f"{number(test.expected)} expected by chance)."
    )


def slice_table(search: SliceSearch) -> ReportTable:
    """Return the worst subgroups of one metric."""
    name = {"dsc": "Dice", "norm_hd": "NormHD"}.get(search.metric, search.metric)
    better = Better.LOWER if search.metric == "norm_hd" else Better.HIGHER
    rows = tuple(
        Row(
            (
                " and ".join(f"{_short(v)} {group}" for v, group in found.conditions),
                f"{found.n}",
                number(found.mean),
                number(found.mean_elsewhere),
                number(found.statistic, 1),
                p_text(found.p_value),
            ),
            found.p_value > 0.05,
        )
        for found in search.worst
    )
    headings = ("n", f"Mean {name}", "elsewhere", "SE worse", "p, corrected")
    notes = [search.reason[:1].upper() + search.reason[1:] + "."] if search.reason else []
    notes.append(
        f"{search.n_slices} subgroups of up to 3 columns with at least {search.min_support} of "
        f"{search.n_cases} cases; p corrected for the whole search by {search.n_permutations} "
        "permutations (maxT). Grey: not significant at 0.05."
    )
    return ReportTable(
        f"Worst subgroups by {name} ({better.value} is better)",
        (Column("Subgroup", is_number=False), *(Column(text) for text in headings)),
        rows,
        tuple(notes),
    )


def _short(variable: str) -> str:
    if variable.startswith(TAG):
        return f"tag {variable.removeprefix(TAG)}"
    return {"volume": "size", "dataset": "centre"}.get(variable, variable.replace("_", " "))


def failure_table(model: ModelReport) -> ReportTable | None:
    """Return how many cases have each failure kind; None where they were not looked for."""
    if not model.has_failure_kinds:
        return None
    n_cases = max(model.scores.n_cases, 1)
    rows = []
    for kind in FailureKind:
        n = sum(any(f.kind is kind for f in found) for found in model.failures.values())
        what = "makes a case hard" if kind.is_circumstance else "error"
        counted = (f"{n}", f"{100 * n / n_cases:.1f}")
        if kind is FailureKind.LOW_CONTRAST and model.contrast_note and not n:
            counted = (UNKNOWN, UNKNOWN)
        rows.append(Row((kind.value, what, *counted), n == 0))
    headings = (
        Column("Kind", is_number=False),
        Column("What it is", is_number=False),
        Column("Cases"),
        Column("% of all"),
    )
    notes = (model.contrast_note,) if model.contrast_note else ()
    return ReportTable("Failure kinds", headings, tuple(rows), notes)


def excluded_table(model: ModelReport) -> ReportTable | None:
    """Return the cases that were not scored as they should be, None if there are none."""
    failures = model.scores.failures
    if not failures:
        return None
    rows = tuple(Row((f.case_id, f.reason)) for f in failures[:ROWS_LISTED])
    notes: tuple[str, ...] = ()
    if len(failures) > ROWS_LISTED:
        notes = (f"and {len(failures) - ROWS_LISTED} more, in summary.json",)
    headings = (Column("Case", is_number=False), Column("Reason", is_number=False))
    return ReportTable(f"{len(failures)} cases with a problem", headings, rows, notes)


def comparison_tables(comparison: ModelComparison) -> tuple[ReportTable, ...]:
    """Return the ranking of several models, and the paired tests between them."""
    ordered = sorted(comparison.ranking, key=lambda m: (m.rank != m.rank, m.rank))
    ranking = tuple(
        Row(
            (
                number(m.rank, 0),
                m.name,
                f"{m.n_scored}",
                number(m.ranking_score),
                number(m.performance),
                number(m.fairness),
                number(m.rank_by_performance, 0),
            )
        )
        for m in ordered
    )
    head = (
        Column("Rank"),
        Column("Model", is_number=False),
        *(
            Column(text)
            for text in ("n", "Ranking score", "Performance", "Fairness", "Rank by performance")
        ),
    )
    first = ReportTable(
        f"Ranking (profile {comparison.profile}, weight of fairness "
        f"{comparison.weight_of_fairness:g})",
        head,
        ranking,
        comparison.notes,
    )
    tables = [first, *composite_tables(comparison.composites)]
    if comparison.against_baseline:
        title = f"Against the baseline {comparison.baseline}"
        tables.append(_tests_table(title, comparison.against_baseline))
    if len(comparison.tests) > len(comparison.against_baseline):
        tables.append(_tests_table("Paired comparisons", comparison.tests))
    return tuple(tables)


def _tests_table(title: str, tests: Sequence[PairedComparison]) -> ReportTable:
    rows = tuple(
        Row(
            (
                f"{'Dice' if t.metric == 'dsc' else 'NormHD'}: {t.model_a} − {t.model_b}",
                f"{t.n}",
                number(t.mean_difference),
                range_text(t.low, t.high),
                p_text(t.p_t_test_holm),
                p_text(t.p_wilcoxon_holm),
            )
        )
        for t in tests
    )
    headings = ("n", "Mean difference", "95 % interval", "p, t-test", "p, Wilcoxon")
    return ReportTable(
        title,
        (Column("Metric and models", is_number=False), *(Column(text) for text in headings)),
        rows,
        (
            "Both p-values are two-sided and corrected by Holm over the pairs of a metric in this "
            "table.",
        ),
    )
