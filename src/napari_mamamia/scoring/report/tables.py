"""Tables of a model in a report: metrics, cost, failures, groups, and notes on disparities."""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Final

import numpy as np

from napari_mamamia.core.records import CaseScore
from napari_mamamia.metrics.registry import metric
from napari_mamamia.scoring.case.failures import FailureKind
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.cohort.disparities import (
    NO_INTERVAL,
    DisparityEstimate,
    GapInterval,
    GroupUncertainty,
    PermutationTest,
    SmallGroup,
    is_of_groups,
)
from napari_mamamia.scoring.cohort.groups import TAG, Unassigned
from napari_mamamia.scoring.cohort.policy import counted_lines
from napari_mamamia.scoring.cohort.results import ResponseResult, SegmentationResult, Stratum
from napari_mamamia.scoring.cohort.segmentation_cohort import GroupScore, VariableFairness
from napari_mamamia.scoring.cohort.slices import SliceSearch
from napari_mamamia.scoring.report.content import ModelReport
from napari_mamamia.scoring.report.text import (
    UNKNOWN,
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    range_text,
    variable_label,
)
from napari_mamamia.scoring.statistics.bootstrap import Interval, IntervalMethod, interval_named
from napari_mamamia.scoring.statistics.coverage import describe_coverage

Result = SegmentationResult | ResponseResult

RESAMPLING_RANGE: Final = (
    "The resampling range, as in the paper, is the range of the number if the same cases are "
    "drawn again. Resampling increases disparities and decreases fairness, so the range is not a "
    "confidence interval, and for a disparity it never contains 0."
)
BY_CONTRASTS: Final = (
    "95 % intervals of fairness, disparity and ranking score: from the contrasts of all pairs of "
    "groups with at least {least} cases. The value also includes smaller groups, and an interval "
    "that does not contain the value is not shown."
)
PROFILE_WITH_RANGES: Final = "paper"
"""The only profile whose report shows resampling ranges.

For other profiles, the ranges are only in summary.json.
"""

_MEASURES: Final = {
    "dsc": "Dice",
    "norm_hd": "NormHD",
    "tpr": "TPR",
    "fpr": "FPR",
    "equalised_odds": "Equalised-odds",
}
_MOST_NAMED: Final = 3
_ROUNDING: Final = 1e-12
_LEAST_SHOWN: Final = 0.001
_TWO_DECIMALS_FROM: Final = 0.095
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
"""A row's label, the name of its interval, its value, and a definition or reason for no value."""
IDS_LISTED: Final = 40


def say_disparity(estimate: DisparityEstimate, minimum_group: int) -> tuple[str, ...]:
    """Return sentences about the conclusions that a disparity allows.

    All sentences, except that on the scored value, refer to groups with at least `minimum_group`
    cases.
    """
    name, interval = f"{_MEASURES[estimate.measure]} disparity", estimate.interval
    sentences = [f"{name} {_format_gap(estimate.value)}."]
    if estimate.value != estimate.value:
        return (f"{name} is undefined.",)
    if not interval.is_defined:
        return (*sentences, f"No interval: {interval.reason}.", *_say_left_out(interval))
    if not estimate.is_of_all:
        sentences = [
            (
                f"{name} {_format_gap(estimate.value)} as scored over all groups, and "
                f"{_format_gap(estimate.counted)} between groups with at least {minimum_group} "
                "cases."
            )
        ]
    sentences.append(
        f"Chance alone gives {_format_gap(estimate.by_chance)} on average between groups of these "
        "sizes."
    )
    high, low = _format_gap(interval.high), _format_gap(interval.low)
    sentences.append(f"True disparity: between {low} and {high} (95 %).")
    small = interval.wide_because
    if interval.low > 0:
        wide = f"; the interval is {say_wide(small)}" if small else ""
        sentences.append(f"Groups differ by at least {low}{wide}.")
    else:
        who = f" (group {small.group}, {small.said})" if small else ""
        sentences.append(
            "These data do not show a difference between groups, but do not exclude a gap of "
            f"{high}{who}."
        )
    return (*sentences, *_say_left_out(interval))


def say_wide(small: SmallGroup) -> str:
    """Return a phrase naming a group that makes an interval wide."""
    return f"wide because of group {small.group} ({small.said})"


def interval_cell(interval: GapInterval) -> str:
    """Return a table cell with both ends of an interval; `gap_notes` returns the notes about it."""
    return range_text(interval.low, interval.high)


def gap_notes(interval: GapInterval) -> tuple[str, ...]:
    """Return notes about an interval: the omitted groups, and the groups that make it wide."""
    left_out, wide = interval.left_out, interval.wide_because
    texts = []
    if left_out:
        names = ", ".join(f"{group.group} ({group.said})" for group in left_out[:_MOST_NAMED])
        more = len(left_out) - _MOST_NAMED
        what = "group" if len(left_out) == 1 else "groups"
        texts.append(f"without {what} {names}" + (f" and {more} more" if more > 0 else ""))
    return (*texts, *((say_wide(wide),) if wide else ()))


def say_without(uncertainty: GroupUncertainty) -> tuple[str, ...]:
    """Return sentences about the variables that the fairness interval does not cover."""
    fairness = uncertainty.fairness
    if not fairness.without or not fairness.is_defined:
        return ()
    names = ", ".join(variable_label(name) for name in fairness.without)
    return (f"The interval of the fairness does not cover {names}, where no gap has an interval.",)


def disparity_table(result: Result) -> ReportTable | None:
    """Return a table of all disparities with chance level and intervals, or None."""
    uncertainty = result.uncertainty
    if not uncertainty.disparities:
        return None
    rows = tuple(_disparity_row(disparity, result) for disparity in uncertainty.disparities)
    headings = ("As scored", "Counted", "By chance", "Beyond", "95 % interval", "p, Holm")
    columns = (
        Column("Disparity", is_number=False),
        *(Column(text) for text in headings),
        Column("Omitted groups, width", is_number=False),
    )
    least = uncertainty.minimum_group
    notes = (
        (
            f"As scored: over all groups. Other columns: over groups with at least {least} cases "
            "(for a rate, cases of its class). By chance: the mean gap between groups of these "
            "sizes that do not differ. Beyond chance: √(counted² − by chance²), at least 0."
        ),
        *say_tests(result.permutation_tests),
    )
    return ReportTable("Disparities (largest − smallest group)", columns, rows, notes)


def say_tests(tests: Sequence[PermutationTest]) -> tuple[str, ...]:
    """Return sentences about how p-values were computed and corrected, or () without tests."""
    defined = [test for test in tests if test.p_value == test.p_value]
    if not defined:
        return ()
    corrected = " and of ".join(
        str(n) for n in dict.fromkeys(t.n_corrected for t in tests if t.measure != "mean")
    )
    return (
        f"p: {defined[0].n_permutations} permutations of the groups' cases, corrected by Holm over "
        f"the disparities shown (families of {corrected}).",
    )


def range_table(result: Result) -> ReportTable | None:
    """Return the greyed resampling ranges as in the paper, or None if the profile has none."""
    if result.cohort.profile != PROFILE_WITH_RANGES:
        return None
    ranges = [(interval.name, interval) for interval in result.intervals if _is_range(interval)]
    rows = tuple(
        Row((_name_range(name), number(i.estimate), range_text(i.low, i.high)), is_small=True)
        for name, i in ranges
    )
    columns = (
        Column("Number", is_number=False),
        Column("Value"),
        Column("Resampling range"),
    )
    if not rows:
        return None
    return ReportTable("Resampling ranges (not intervals)", columns, rows, (RESAMPLING_RANGE,))


def _is_range(interval: Interval) -> bool:
    return is_of_groups(interval.name) and interval.low == interval.low


def _name_range(name: str) -> str:
    kind, _, rest = name.partition("_")
    measure = next((m for m in _MEASURES if rest.startswith(f"{m}_")), "")
    if measure:
        return f"{_MEASURES[measure]} disparity: {variable_label(rest.removeprefix(measure)[1:])}"
    if kind in ("fairness", "disparity") and rest:
        return f"{kind.capitalize()}: {variable_label(rest)}"
    return name.replace("_", " ").capitalize()


def _disparity_row(estimate: DisparityEstimate, result: Result) -> Row:
    test = find_test(result.permutation_tests, estimate.variable, estimate.measure)
    notes = [*gap_notes(estimate.interval)]
    if not estimate.interval.is_defined:
        notes.insert(0, f"no interval: {estimate.interval.reason}")
    label = f"{variable_label(estimate.variable)}: {_MEASURES[estimate.measure]}"
    return Row(
        (
            label,
            number(estimate.value),
            number(estimate.counted),
            number(estimate.by_chance),
            number(estimate.beyond_chance),
            interval_cell(estimate.interval),
            p_text(test.p_holm) if test else UNKNOWN,
            ", ".join(notes) or "all counted",
        )
    )


def find_test(
    tests: Sequence[PermutationTest], variable: str, measure: str
) -> PermutationTest | None:
    """Return the permutation test of one disparity, or None if there is none."""
    return next((t for t in tests if (t.variable, t.measure) == (variable, measure)), None)


def _say_left_out(interval: GapInterval) -> tuple[str, ...]:
    if not interval.left_out:
        return ()
    names = ", ".join(f"{group.group} ({group.said})" for group in interval.left_out)
    return (f"Left out because they are too small: {names}.",)


def _format_gap(value: float) -> str:
    if value <= _ROUNDING:
        return "0"
    if value < _LEAST_SHOWN:
        return f"{value:.1g}"
    return number(value, 2 if value >= _TWO_DECIMALS_FROM else 3)


def numbers_table(result: SegmentationResult, defined_by: str = "") -> ReportTable:
    """Return a table of the Task 1 metrics with their intervals.

    `defined_by` names the definitions of the metrics; by default the profile.
    """
    cohort, means = result.cohort, result.cohort.performance
    weight = cohort.weight_of_fairness
    numbers: list[Named] = [
        (
            "Ranking score",
            "ranking_score",
            cohort.ranking_score,
            cohort.reason
            or f"{1 - weight:g} × performance + {weight:g} × fairness (fairness weight {weight:g})",
        ),
        (
            "Performance",
            "performance",
            means.value,
            means.reason or "(mean Dice + 1 − mean NormHD)/2",
        ),
        ("Mean Dice (DSC)", "mean_dsc", means.mean_dsc, f"fraction, over {means.n_dsc} cases"),
        (
            "Mean NormHD",
            "mean_norm_hd",
            means.mean_norm_hd,
            f"fraction of the largest distance, 0 is best, over {means.n_norm_hd} cases",
        ),
        *_name_distance(result),
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
        f"Cohort numbers ({defined_by or f'profile {cohort.profile}'}; fractions without unit)",
        INTERVAL_COLUMNS,
        interval_rows(numbers, result.intervals, result.uncertainty.by_name("fairness_")),
        (
            *interval_notes(result.intervals, result.uncertainty),
            *coverage_notes(result),
            *say_without(result.uncertainty),
            *measured_notes(result),
        ),
        interval_warnings(result.intervals),
    )


def _name_distance(result: SegmentationResult) -> tuple[Named, ...]:
    n = result.n_hausdorff95_mm
    definition = f"mm, over the {n} cases with a distance; not part of any score"
    named: Named = ("Mean HD95", "mean_hausdorff95_mm", result.mean_hausdorff95_mm, definition)
    return (named,) if n else ()


def coverage_notes(result: SegmentationResult) -> tuple[str, ...]:
    """Return a note if intervals of means have low coverage in a cohort like this one."""
    if not result.intervals:
        return ()
    return describe_coverage(result.counted.n, int(np.count_nonzero(result.counted.dsc == 0)))


def measured_notes(result: SegmentationResult) -> tuple[str, ...]:
    """Return notes about the scored cases alone, if the main metrics also count other cases."""
    counted, means = result.counted, result.measured.performance
    if not counted.unusable:
        return ()
    measured = result.measured
    text = (
        f"For the {means.n_cases} scored cases alone: Dice {number(means.mean_dsc)}, NormHD "
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
    """Return one row for each metric, with intervals by the main and further methods.

    A metric that contains gaps between groups has only the interval in `contrasts`.
    """
    rows = []
    for label, name, value, definition in shown:
        if name in contrasts or is_of_groups(name):
            interval = contrasts.get(name, NO_INTERVAL)
            ranges = [interval_cell(interval), UNKNOWN, UNKNOWN]
            lacks = () if interval.is_defined else (f"no interval: {interval.reason}",)
            if value == value:
                definition = "; ".join((definition, *lacks, *gap_notes(interval)))
        else:
            by_method = [interval_named(intervals, name, method) for method in IntervalMethod]
            ranges = [_mark_interval(i) if i else UNKNOWN for i in by_method]
        rows.append(Row((label, number(value), *ranges, definition)))
    return tuple(rows)


def _mark_interval(interval: Interval) -> str:
    is_odd = interval.warning or (interval.reason and not isnan(interval.estimate))
    return range_text(interval.low, interval.high) + ("*" if is_odd else "")


def interval_notes(intervals: Sequence[Interval], uncertainty: GroupUncertainty) -> tuple[str, ...]:
    """Return notes about how intervals were computed."""
    contrasts = BY_CONTRASTS.format(least=uncertainty.minimum_group)
    of_groups = (contrasts,) if uncertainty.disparities else ()
    if not intervals:
        off = (
            "There are no resamples, because the bootstrap was switched off or nothing could be "
            "resampled."
        )
        return (off, *of_groups)
    most = max(interval.n_resamples + interval.n_undefined for interval in intervals)
    note = f"Intervals of means and rates: percentiles of {most} resamples of the cases."
    return (note, *of_groups)


def interval_warnings(intervals: Sequence[Interval]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a heading with the warnings of the intervals, or () if there are none."""
    odd = tuple(
        f"{i.name.replace('_', ' ')}, {i.method.value}: {i.warning or i.reason}"
        for i in intervals
        if (i.warning or i.reason) and not isnan(i.estimate) and not is_of_groups(i.name)
    )
    if not odd:
        return ()
    return ((f"* {len(odd)} intervals with a warning or without ends", odd),)


def cost_table(rows: Sequence[CaseScore]) -> ReportTable:
    """Return a table of the predictions' time, memory and device, with medians and maxima."""
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
            f"Device: {devices}. The values come from the provenance of each prediction; memory "
            "is the peak of the whole process up to that case."
        ),
    )
    return ReportTable("Cost of the predictions", headings, lines, notes)


def failure_table(model: ModelReport) -> ReportTable | None:
    """Return a table with the number of cases of each failure kind; None if kinds are unknown."""
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


def group_tables(result: SegmentationResult) -> tuple[ReportTable, ...]:
    """Return one table for each scored variable."""
    return tuple(_variable_table(variable, result) for variable in result.cohort.fairness.variables)


def _variable_table(variable: VariableFairness, result: SegmentationResult) -> ReportTable:
    label, least = variable_label(variable.variable), result.uncertainty.minimum_group
    notes = [
        " ".join(say_disparity(result.uncertainty.of(variable.variable, measure), least))
        for measure in ("dsc", "norm_hd")
    ]
    # Sentences are never based on a single patient.
    counted = [g for g in variable.groups if g.n >= least and g.mean_dsc == g.mean_dsc]
    if len(counted) > 1:
        worst = min(counted, key=lambda group: group.mean_dsc)
        notes.append(
            f"Worst group by Dice: {worst.label} ({number(worst.mean_dsc)}, n = {worst.n}); "
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
        notes = [
            *notes,
            (
                "Grey groups have fewer cases than the profile requires, but are "
                "included in the numbers."
            ),
        ]
    headings = (Column("Group", is_number=False), *(Column(text) for text in columns))
    return ReportTable(label, headings, rows, tuple(notes), unassigned_lists(unassigned))


def unassigned_lists(unassigned: Sequence[Unassigned]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a heading with the number of cases and the first ids, for each reason."""
    by_reason: dict[str, list[str]] = {}
    for case in unassigned:
        by_reason.setdefault(case.reason, []).append(case.case_id)
    lists = []
    for reason, ids in by_reason.items():
        more = (f"and {len(ids) - IDS_LISTED} more",) if len(ids) > IDS_LISTED else ()
        heading = f"{len(ids)} unassigned: {reason}"
        lists.append((heading, (*ids[:IDS_LISTED], *more)))
    return tuple(lists)


def slice_table(search: SliceSearch) -> ReportTable:
    """Return the worst subgroups of one metric."""
    spec = metric(search.metric)
    name, better = spec.label, spec.better
    rows = tuple(
        Row(
            (
                " and ".join(f"{_shorten_variable(v)} {group}" for v, group in subgroup.conditions),
                f"{subgroup.n}",
                number(subgroup.mean),
                number(subgroup.mean_elsewhere),
                number(subgroup.statistic, 1),
                p_text(subgroup.p_value),
            ),
            subgroup.p_value > 0.05,
        )
        for subgroup in search.worst
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


def _shorten_variable(variable: str) -> str:
    if variable.startswith(TAG):
        return f"tag {variable.removeprefix(TAG)}"
    return {"volume": "size", "dataset": "centre"}.get(variable, variable.replace("_", " "))
