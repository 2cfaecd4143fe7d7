"""Format results as a few lines of text for the terminal and the window."""

from collections.abc import Iterable
from math import isnan

from napari_mamamia.core.names import count_of
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.cohort.disparities import NO_INTERVAL, is_of_groups
from napari_mamamia.scoring.cohort.policy import counted_lines, not_for_ranking
from napari_mamamia.scoring.cohort.ranking import CompositeResult
from napari_mamamia.scoring.cohort.results import (
    ModelComparison,
    ModelScores,
    ResponseResult,
    SegmentationResult,
    Stratum,
    n_text,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import VariableFairness
from napari_mamamia.scoring.report import tables
from napari_mamamia.scoring.report.text import ReportTable, p_said
from napari_mamamia.scoring.statistics.bootstrap import (
    Interval,
    IntervalMethod,
    interval_named,
)

_WIDTH = 34
_SHOWN = 10
_OF_GROUP_MEANS = (
    "Intervals of disparities and fairness are computed from the group means without resamples; "
    "other intervals need resamples."
)
_SIZES = {
    "volume": "by reference volume (20th, 80th percentile)",
    "diameter": "by longest diameter of the reference",
}
_MB = 1_000_000


def cohort_lines(model: ModelScores) -> tuple[str, ...]:
    """Return the cohort's metrics with profile, n, excluded cases and 95 % intervals as lines."""
    excluded = model.n_cases - model.n_scored
    head = (
        f"{model.name}: {model.defined_by}, {count_of(model.n_cases, 'case')}, {model.n_scored} "
        f"scored, {excluded} excluded"
    )
    lines = [*describe_left_out(model), head, *_describe_counted(model)]
    lines += [*_describe_clinical(model), *_describe_missing(model)]
    if model.segmentation:
        lines += _describe_task1(model.segmentation)
    if model.response:
        lines += _describe_task2(model.response)
    lines += _describe_composites(model.composites)
    if model.segmentation:
        lines += _describe_costs(model)
    results = [result for result in (model.segmentation, model.response) if result]
    if not model.resampling.n_resamples and any(r.uncertainty.disparities for r in results):
        lines.append(f"  {_OF_GROUP_MEANS}")
    lines += [f"  note: {note}" for note in model.notes]
    return tuple(lines)


def comparison_lines(comparison: ModelComparison) -> tuple[str, ...]:
    """Return the models by rank as lines, then the paired tests of each pair."""
    lines = [
        f"Ranks under profile {comparison.profile}, weight of fairness "
        f"{comparison.weight_of_fairness:g}"
    ]
    ordered = sorted(comparison.ranking, key=lambda model: (isnan(model.rank), model.rank))
    for model in ordered:
        rank = "–" if isnan(model.rank) else f"{model.rank:.0f}"
        lines.append(
            f"  {rank:>3}  {model.name} (n {n_text(model)}): ranking score "
            f"{_to_text(model.ranking_score)}, performance {_to_text(model.performance)} (rank "
            f"{_to_text(model.rank_by_performance, 0)}), fairness {_to_text(model.fairness)}"
        )
        if isnan(model.rank) and model.reason:
            lines.append(f"       {model.reason}")
    lines += _describe_composites(comparison.composites)
    if comparison.baseline:
        lines.append(f"  against the baseline {comparison.baseline}:")
    for test in comparison.against_baseline or comparison.tests:
        lines.append(
            f"  {test.metric}: {test.model_a} - {test.model_b} = {_to_text(test.mean_difference)} "
            f"({_to_text(test.low)} to {_to_text(test.high)}, n {test.n}); after Holm, t-test "
            f"{p_said(test.p_t_test_holm)}, Wilcoxon {p_said(test.p_wilcoxon_holm)}"
        )
    return (*lines, *(f"  note: {note}" for note in comparison.notes))


def _describe_clinical(model: ModelScores) -> list[str]:
    """Describe the coverage of the clinical table, its assumptions, and rows that were not read."""
    table = model.clinical
    if table is None:
        return []
    lines = [f"  {text}" for text in (table.coverage_text, *table.notes)]
    if table.refused:
        rows = ", ".join(f"row {r.row} ({r.reason})" for r in table.refused[:_SHOWN])
        lines.append(
            f"  {count_of(len(table.refused), 'row')} of {table.name} could not be read: {rows}"
        )
    return lines


def describe_left_out(model: ModelScores) -> list[str]:
    """Return a warning that cases are excluded, so that models must not be ranked."""
    text = not_for_ranking(model.segmentation.counted) if model.segmentation else ""
    return [text] if text else []


def _describe_counted(model: ModelScores) -> list[str]:
    """Describe the cases without a usable prediction, their values, and the counted cases."""
    lines = []
    if model.segmentation:
        lines += [f"  {text}" for text in counted_lines(model.segmentation.counted)]
    if model.outside:
        names = ", ".join(model.outside[:_SHOWN]) + ", ..." * (len(model.outside) > _SHOWN)
        lines.append(f"  {count_of(len(model.outside), 'case')} outside the list of cases: {names}")
    return lines


def _describe_missing(model: ModelScores) -> list[str]:
    missing = sum(
        row.status is ScoreStatus.PREDICTION_MISSING and not isnan(row.dsc) for row in model.rows
    )
    verb = "counts as an empty prediction" if missing == 1 else "count as empty predictions"
    text = f"  {count_of(missing, 'case')} without a prediction file {verb}"
    return [text] if missing else []


def _describe_task1(result: SegmentationResult) -> list[str]:
    cohort, performance = result.cohort, result.cohort.performance
    numbers = [
        ("mean DSC", "mean_dsc", performance.mean_dsc, performance.reason),
        ("mean NormHD", "mean_norm_hd", performance.mean_norm_hd, performance.reason),
        ("performance", "performance", performance.value, performance.reason),
    ]
    if result.n_hausdorff95_mm:
        n_cases = count_of(result.n_hausdorff95_mm, "case")
        text = f"mean HD95 in mm ({n_cases})"
        numbers.insert(2, (text, "mean_hausdorff95_mm", result.mean_hausdorff95_mm, ""))
    numbers += [
        (f"fairness over {v.variable}", f"fairness_{v.variable}", v.value, v.reason)
        for v in cohort.fairness.variables
    ]
    numbers.append(("fairness", "fairness", cohort.fairness.value, cohort.fairness.reason))
    score = f"ranking score (weight {cohort.weight_of_fairness:g})"
    numbers.append((score, "ranking_score", cohort.ranking_score, cohort.reason))
    lines = [_format_line(*item, result, "fairness_") for item in numbers]
    lines += [f"  {note}" for note in tables.coverage_notes(result)]
    lines += _describe_gaps(result, ("dsc", "norm_hd"))
    for variable in cohort.fairness.variables:
        if variable.unassigned:
            lines.append(
                f"  {variable.variable}: {count_of(len(variable.unassigned), 'case')} in no group"
            )
        lines += _list_small_groups(variable, result)
    for stratum in result.strata:
        if stratum.variable in _SIZES:
            lines += _size_lines(stratum)
    return lines + _list_warnings(result.intervals) + _list_ranges(result)


def _size_lines(stratum: Stratum) -> list[str]:
    """Describe the groups by tumour size, which are reported but not scored."""
    parts = [
        f"{group.label} {_to_text(group.mean_dsc, 3)} (n {group.n}{', few cases' * group.is_small})"
        for group in stratum.groups
        if group.n
    ]
    return [f"  mean DSC {_SIZES[stratum.variable]}: {', '.join(parts)}"]


def _describe_task2(result: ResponseResult) -> list[str]:
    cohort, discrimination = result.cohort, result.cohort.discrimination
    numbers = [("balanced accuracy", "balanced_accuracy", cohort.balanced_accuracy, cohort.refused)]
    numbers += [
        (f"disparity over {v.variable}", f"disparity_{v.variable}", v.disparity, v.reason)
        for v in cohort.odds.variables
    ]
    score = f"ranking score (weight {cohort.weight_of_fairness:g})"
    numbers += [
        ("fairness", "fairness", cohort.fairness, cohort.refused or cohort.odds.reason),
        (score, "ranking_score", cohort.ranking_score, cohort.reason),
        ("AUC", "auc", discrimination.auc, discrimination.reason),
        (
            "average precision",
            "average_precision",
            discrimination.average_precision,
            discrimination.reason,
        ),
        ("Brier score", "brier", discrimination.calibration.brier, discrimination.reason),
        ("ECE", "ece", discrimination.calibration.ece, discrimination.reason),
        ("recall gap", "recall_gap", cohort.recall.gap, ""),
    ]
    lines = [_format_line(*item, result, "disparity_") for item in numbers]
    lines += _describe_gaps(result, ("equalised_odds",))
    chance = cohort.chance
    lines.append(
        f"  p against {chance.n_classifiers} random classifiers: {_to_text(chance.p_value)} "
        f"({chance.significance.value})"
    )
    for variable in cohort.odds.variables:
        if variable.unassigned:
            lines.append(
                f"  {variable.variable}: {count_of(len(variable.unassigned), 'case')} in no group"
            )
    return lines + _list_warnings(result.intervals) + _list_ranges(result)


def _format_line(
    text: str,
    name: str,
    value: float,
    reason: str,
    result: SegmentationResult | ResponseResult,
    prefix: str,
) -> str:
    start = f"  {text:<{_WIDTH}} {_to_text(value)}"
    if isnan(value):
        return f"{start}  ({reason or 'undefined'})"
    contrasts = result.uncertainty.by_name(prefix).get(name)
    if contrasts is None and is_of_groups(name):
        contrasts = NO_INTERVAL
    interval = contrasts or interval_named(result.intervals, name)
    if interval is None:
        return start
    if isnan(interval.low):
        return f"{start}  (no interval: {interval.reason})"
    level = f"{100 * interval.level:.0f} %"
    parts = (f"{_to_text(interval.low)} to {_to_text(interval.high)}", level)
    notes = tables.gap_notes(contrasts) if contrasts else ()
    return f"{start}  ({', '.join((*parts, *notes))})"


def _describe_gaps(
    result: SegmentationResult | ResponseResult, measures: tuple[str, ...]
) -> list[str]:
    """Describe each disparity, and list the groups that are not counted.

    Disparities of one variable with the same conclusions share a line.
    """
    uncertainty = result.uncertainty
    values: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for disparity in uncertainty.disparities:
        if disparity.measure in measures:
            value, *rest = tables.say_disparity(disparity, uncertainty.minimum_group)
            values.setdefault((disparity.variable, tuple(rest)), []).append(value)
    lines = [
        f"  {variable}: {' '.join((*first, *rest))}" for (variable, rest), first in values.items()
    ]
    return lines + [f"  {text}" for text in tables.say_without(uncertainty)]


def _list_ranges(result: SegmentationResult | ResponseResult) -> list[str]:
    """Return the resampling ranges with their label, if the profile shows them."""
    table = tables.range_table(result)
    if table is None:
        return []
    ranges = [f"    {name}: {value}, {ends}" for name, value, ends in _cells_of(table)]
    return [f"  {tables.RESAMPLING_RANGE}", *ranges]


def _cells_of(table: ReportTable) -> list[tuple[str, ...]]:
    return [row.cells for row in table.rows]


def _describe_composites(composites: Iterable[CompositeResult]) -> list[str]:
    lines = []
    for composite in composites:
        lines.append(f"  {composite.name}: {composite.definition}")
        for score in sorted(composite.scores, key=lambda score: (isnan(score.rank), score.rank)):
            why = f"  ({score.reason})" if score.reason else ""
            lines.append(
                f"  {_to_text(score.rank, 0):>5}  {score.name}: {_to_text(score.value)}{why}"
            )
    return lines


def _describe_costs(model: ModelScores) -> list[str]:
    costs = prediction_costs(model.rows)
    lines = []
    if costs.seconds.n:
        seconds = costs.seconds
        lines.append(
            f"  {'time for a prediction':<{_WIDTH}} median {seconds.median:.1f} s, worst "
            f"{seconds.worst:.1f} s (n {seconds.n})"
        )
    if costs.peak_memory_bytes.n:
        memory = costs.peak_memory_bytes
        lines.append(
            f"  {'peak memory of the process':<{_WIDTH}} median {memory.median / _MB:.0f} MB, "
            f"worst {memory.worst / _MB:.0f} MB (n {memory.n})"
        )
    if costs.devices:
        devices = ", ".join(f"{name} ({n})" for name, n in costs.devices)
        lines.append(f"  {'device':<{_WIDTH}} {devices}")
    return lines


def _list_small_groups(variable: VariableFairness, result: SegmentationResult) -> list[str]:
    """Name the small groups, except those that the lines on disparities already name."""
    named = {
        group.group
        for disparity in result.uncertainty.disparities
        if disparity.variable == variable.variable and not disparity.interval.is_defined
        for group in disparity.interval.left_out
    }
    small = [group for group in variable.groups if group.is_small and group.label not in named]
    names = ", ".join(f"{group.label} (n {group.n})" for group in small)
    groups = "small group" if len(small) == 1 else "small groups"
    return [f"  {variable.variable}: {groups} {names}"] if small else []


def _list_warnings(intervals: Iterable[Interval]) -> list[str]:
    return [
        f"  warning: {interval.name}: {interval.warning}"
        for interval in intervals
        if interval.warning
        and interval.method is IntervalMethod.PERCENTILE
        and not is_of_groups(interval.name)
    ]


def _to_text(value: float, digits: int = 4) -> str:
    return "–" if isnan(value) else f"{value:.{digits}f}"
