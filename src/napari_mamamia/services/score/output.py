"""Write the results of a scoring run: the table of cases in three formats and the summary."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from math import isnan
from pathlib import Path
from platform import python_version
from typing import Any, Final

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.io.tables.flat_tables import can_write_parquet
from napari_mamamia.io.tables.tables import write_case_scores, write_json
from napari_mamamia.scoring.case.prediction_cost import prediction_costs
from napari_mamamia.scoring.case.profiles import UnusableReason, profile_named
from napari_mamamia.scoring.cohort.disparities import GapInterval, GroupUncertainty, is_of_groups
from napari_mamamia.scoring.cohort.groups import FAIRNESS_VARIABLES, rules_of
from napari_mamamia.scoring.cohort.ranking import CompositeResult
from napari_mamamia.scoring.cohort.response_cohort import VariableOdds
from napari_mamamia.scoring.cohort.results import (
    ModelComparison,
    ModelScores,
    ResponseResult,
    SegmentationResult,
    Stratum,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import Spread, VariableFairness
from napari_mamamia.scoring.statistics.bootstrap import (
    Interval,
    IntervalMethod,
    interval_named,
)
from napari_mamamia.services.batch.in_subprocess import write_parquet

# The sections ``task1`` and ``task2`` of a summary. Each undefined number has a reason.

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Number:
    """A value, and the reason if the value is NaN."""

    value: float
    reason: str


def task1_content(result: SegmentationResult) -> Content:
    """Return the content of ``task1``; NaN becomes null."""
    cohort, performance = result.cohort, result.cohort.performance
    numbers = {
        "mean_dsc": _Number(performance.mean_dsc, performance.reason),
        "mean_norm_hd": _Number(performance.mean_norm_hd, performance.reason),
        "performance": _Number(performance.value, performance.reason),
        "fairness": _Number(cohort.fairness.value, cohort.fairness.reason),
        "ranking_score": _Number(cohort.ranking_score, cohort.reason),
    }
    own_numbers = {
        fairness.variable: _read_fairness(fairness) for fairness in cohort.fairness.variables
    }
    by_variable = _each_variable(own_numbers, cohort.fairness.reason)
    return {
        **_list_values(numbers),
        "n_dsc": performance.n_dsc,
        "n_norm_hd": performance.n_norm_hd,
        "mean_hausdorff95_mm": result.mean_hausdorff95_mm,
        "n_hausdorff95_mm": result.n_hausdorff95_mm,
        "fairness_by_variable": _list_values(by_variable),
        "weight_of_fairness": cohort.weight_of_fairness,
        "reasons": _list_reasons(numbers, "fairness_by_variable", by_variable),
        "intervals": _describe_intervals(result.intervals, result.uncertainty, "fairness_"),
        "minimum_group": result.uncertainty.minimum_group,
        "variables": [
            _describe_variable(variable, ("dsc", "norm_hd"), result)
            for variable in cohort.fairness.variables
        ],
        "permutation_tests": result.permutation_tests,
        "strata": [_describe_stratum(stratum) for stratum in result.strata],
        "as_measured": _describe_measured(result),
    }


def policy_content(result: SegmentationResult) -> Content:
    """Describe the counted cases, and the cases without a usable prediction with their values."""
    counted = result.counted
    return {
        "n": counted.n,
        "n_unusable": len(counted.unusable),
        "n_unusable_by_reason": {
            reason.value: counted.n_by_reason.get(reason, 0) for reason in UnusableReason
        },
        "unusable": counted.unusable,
        "left_out": counted.left_out,
        "rejected": counted.rejected or None,
        "is_bound": counted.has_free and not counted.rejected,
    }


def _describe_measured(result: SegmentationResult) -> Content:
    """Return the results of scored cases alone, which are never used for ranking."""
    measured, performance = result.measured, result.measured.performance
    return {
        "n": performance.n_cases,
        "mean_dsc": performance.mean_dsc,
        "mean_norm_hd": performance.mean_norm_hd,
        "performance": performance.value,
        "fairness": measured.fairness.value,
        "fairness_interval": result.uncertainty.fairness_of_scored or result.uncertainty.fairness,
        "ranking_score": measured.ranking_score,
    }


def task2_content(result: ResponseResult) -> Content:
    """Return the content of ``task2``; NaN becomes null."""
    cohort, odds = result.cohort, result.cohort.odds
    numbers = _response_numbers(result)
    own_numbers = {
        variable_odds.variable: _read_disparity(variable_odds) for variable_odds in odds.variables
    }
    by_variable = _each_variable(own_numbers, odds.reason)
    return {
        **_list_values(numbers),
        "equalised_odds_disparity": _describe_odds(by_variable, result),
        "weight_of_fairness": cohort.weight_of_fairness,
        "recall": cohort.recall,
        "n_auc": cohort.discrimination.n,
        "auc_delong": result.delong,
        "reliability": cohort.discrimination.calibration.bins,
        "balanced_accuracy_against_chance": cohort.chance,
        "auc_against_chance": result.auc_against_chance,
        "refused": cohort.refused,
        "without_label": cohort.without_label,
        "reasons": _list_reasons(numbers, "equalised_odds_disparity", by_variable),
        "intervals": _describe_intervals(result.intervals, result.uncertainty, "disparity_"),
        "minimum_group": result.uncertainty.minimum_group,
        "variables": [
            _describe_variable(variable, ("tpr", "fpr"), result)
            | {"disparity": _describe_disparity(variable.variable, "equalised_odds", result)}
            for variable in odds.variables
        ],
        "permutation_tests": result.permutation_tests,
    }


def composites_content(composites: Sequence[CompositeResult]) -> Content:
    """Return the variants of the ranking score, or {} if none was requested."""
    if not composites:
        return {}
    return {
        "composites": [
            {"name": composite.name, "definition": composite.definition, "models": composite.scores}
            for composite in composites
        ]
    }


def _response_numbers(result: ResponseResult) -> dict[str, _Number]:
    cohort, odds, discrimination = result.cohort, result.cohort.odds, result.cohort.discrimination
    one_class = "there are no responders or no non-responders with a known pcr"
    balanced = _Number(cohort.balanced_accuracy, cohort.refused or one_class)
    return {
        "balanced_accuracy": balanced,
        "fairness": _Number(cohort.fairness, cohort.refused or odds.reason),
        "ranking_score": _Number(cohort.ranking_score, cohort.reason),
        "mean_disparity_raw": _Number(odds.raw, odds.reason),
        "mean_disparity_clipped": _Number(odds.clipped, odds.reason),
        "recall_gap": _Number(cohort.recall.gap, one_class),
        "p_value": _Number(cohort.chance.p_value, one_class),
        "auc": _Number(discrimination.auc, discrimination.reason),
        "average_precision": _Number(discrimination.average_precision, discrimination.reason),
        "brier": _Number(discrimination.calibration.brier, discrimination.reason),
        "ece": _Number(discrimination.calibration.ece, discrimination.reason),
    }


def _read_fairness(found: VariableFairness) -> _Number:
    return _Number(found.value, found.reason)


def _read_disparity(found: VariableOdds) -> _Number:
    return _Number(found.disparity, found.reason)


def _each_variable(own: Mapping[str, _Number], otherwise: str) -> dict[str, _Number]:
    """Return the value of each scored variable, which is undefined if it was not computed."""
    missing = _Number(float("nan"), otherwise)
    return {name: own.get(name, missing) for name in FAIRNESS_VARIABLES}


def _list_values(numbers: Mapping[str, _Number]) -> Content:
    return {name: number.value for name, number in numbers.items()}


def _list_reasons(
    numbers: Mapping[str, _Number], name: str, by_variable: Mapping[str, _Number]
) -> dict[str, str]:
    """Return the reasons for undefined values; a variable has the key ``NAME.VARIABLE``."""
    everything = dict(numbers)
    everything |= {f"{name}.{variable}": number for variable, number in by_variable.items()}
    return {
        key: number.reason or "undefined"
        for key, number in everything.items()
        if isnan(number.value)
    }


def _describe_odds(by_variable: Mapping[str, _Number], result: ResponseResult) -> Content:
    """Return the disparity of each scored variable; without groups, the only value is null."""
    counted = {variable.variable for variable in result.cohort.odds.variables}
    nothing = dict.fromkeys(("by_chance", "beyond_chance", "interval", "resampling_range"))
    return {
        name: _describe_disparity(name, "equalised_odds", result)
        if name in counted
        else {"value": number.value, **nothing}
        for name, number in by_variable.items()
    }


def _describe_variable(
    variable: VariableFairness | VariableOdds,
    measures: Iterable[str],
    result: SegmentationResult | ResponseResult,
) -> Content:
    """Return a variable with its disparities in the form of `_describe_disparity`."""
    content = {field.name: getattr(variable, field.name) for field in fields(variable)}
    for measure in measures:
        spread: Spread = content[measure]
        disparity = _describe_disparity(variable.variable, measure, result)
        content[measure] = {
            "disparity": disparity,
            "variance": spread.variance,
            "worst": spread.worst,
            "worst_group": spread.worst_group,
        }
    return content


def _describe_disparity(
    variable: str, measure: str, result: SegmentationResult | ResponseResult
) -> Content:
    """Return a disparity, its chance level, and its interval.

    ``counted`` is the disparity between the counted groups; all entries except ``value`` refer to
    these groups.
    """
    estimate = result.uncertainty.of(variable, measure)
    name = f"disparity_{variable if measure == 'equalised_odds' else f'{measure}_{variable}'}"
    return {
        "value": estimate.value,
        "counted": estimate.counted,
        "by_chance": estimate.by_chance,
        "beyond_chance": estimate.beyond_chance,
        "interval": estimate.interval,
        "resampling_range": _describe_range(interval_named(result.intervals, name)),
    }


def _describe_range(interval: Interval | None) -> Content | None:
    """Return the percentiles of a gap's resampled values, or None if there is no bootstrap."""
    if interval is None:
        return None
    names = ("low", "high", "level", "n_resamples", "n_undefined", "warning", "reason")
    return {name: getattr(interval, name) for name in names}


def _describe_intervals(
    intervals: Iterable[Interval], uncertainty: GroupUncertainty, prefix: str
) -> Content:
    """Return the 95 % interval of each value, and the limits computed by other methods.

    The interval of a value that includes gaps between groups is computed from contrasts, and its
    percentiles are the ``resampling_range``. Single disparities are listed with their variable.
    """
    content: Content = {}
    for interval in intervals:
        if is_of_groups(interval.name):
            contrasts = uncertainty.by_name(prefix).get(interval.name)
            if contrasts is not None:
                content[interval.name] = {
                    "estimate": interval.estimate,
                    "method": "contrasts",
                    **_list_fields(contrasts),
                    "resampling_range": _describe_range(interval),
                }
            continue
        entry = content.setdefault(interval.name, {"estimate": interval.estimate})
        ends = {
            "low": interval.low,
            "high": interval.high,
            "warning": interval.warning,
            "reason": interval.reason,
        }
        if interval.method is IntervalMethod.PERCENTILE:
            entry |= {"method": interval.method, "level": interval.level, **ends}
            entry["n_resamples"] = interval.n_resamples
            entry["n_undefined"] = interval.n_undefined
        else:
            entry[interval.method.value] = ends
    return content


def _list_fields(record: GapInterval) -> Content:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _count_reasons(reasons: Iterable[str]) -> list[Content]:
    return [{"reason": reason, "n": n} for reason, n in Counter(reasons).most_common()]


def _describe_stratum(stratum: Stratum) -> Content:
    return {
        "variable": stratum.variable,
        "groups": stratum.groups,
        "n_unassigned": len(stratum.unassigned),
        "unassigned": _count_reasons(case.reason for case in stratum.unassigned),
    }


# Contents of `summary.json` and `comparison.json`. Each undefined value has a reason. The fields
# are listed in docs/methods/scoring_files.md.

_PACKAGES: Final = ("numpy", "scipy")


def summary_content(model: ModelScores) -> Content:
    """Return the content of ``summary.json``; NaN becomes null."""
    content = {
        "profile": model.profile,
        "model": model.name,
        "n_cases": model.n_cases,
        "n_scored": model.n_scored,
        "failures": [{"case_id": f.case_id, "reason": f.reason} for f in model.failures],
        "metric_definition": model.metric_definition,
        "outside": model.outside,
    }
    composites = composites_content(model.composites)
    if model.segmentation:
        content |= _describe_cases(model)
        content["prediction_cost"] = prediction_costs(model.rows)
        content["policy"] = policy_content(model.segmentation)
        content["task1"] = task1_content(model.segmentation) | composites
    if model.response:
        content["task2"] = task2_content(model.response) | composites
    return content | {
        "clinical": model.clinical,
        "bootstrap": model.resampling,
        "notes": model.notes,
        **_made_by(model.profile),
    }


def comparison_content(comparison: ModelComparison) -> Content:
    """Return the content of ``comparison.json``; NaN becomes null."""
    sweep = comparison.sweep
    first, last = sweep.ends
    return {
        "profile": comparison.profile,
        "weight_of_fairness": comparison.weight_of_fairness,
        "models": comparison.ranking,
        "tests": comparison.tests,
        "weight_sweep": {
            "composite": sweep.composite,
            "ends": {"0": first, "1": last},
            "weights_of_fairness": sweep.weights,
            "models": [
                {"name": name, "scores": sweep.scores[index], "ranks": sweep.ranks[index]}
                for index, name in enumerate(sweep.names)
            ],
        },
        "baseline": comparison.baseline or None,
        "against_baseline": comparison.against_baseline,
        **composites_content(comparison.composites),
        "notes": comparison.notes,
        **_made_by(comparison.profile),
    }


def _made_by(profile: str) -> Content:
    return {
        "definitions": {"case": profile_named(profile), "cohort": rules_of(profile)},
        "software": software_version(),
        "versions": {"python": python_version(), **{name: version(name) for name in _PACKAGES}},
        "created": now_utc(),
    }


def _describe_cases(model: ModelScores) -> Content:
    counts = Counter(row.status for row in model.rows)
    as_empty = [
        row.case_id
        for row in model.rows
        if row.status is ScoreStatus.PREDICTION_MISSING and not isnan(row.dsc)
    ]
    undefined = [row.case_id for row in model.rows if isnan(row.dsc) or isnan(row.norm_hd)]
    return {
        "status": {status.value: counts[status] for status in ScoreStatus},
        "n_missing_scored_as_empty": len(as_empty),
        "undefined": undefined,
        "n_warnings": sum(bool(row.warning) for row in model.rows),
    }


SCORE_TABLE: Final = "case_scores.csv"
SUMMARY: Final = "summary.json"
COMPARISON: Final = "comparison.json"


def write_scores(model: ModelScores, out: Path, *, overwrite: bool = False) -> None:
    """Write ``case_scores.csv``, ``.xlsx``, ``.parquet`` (if installed) and ``summary.json``.

    No table of cases is written for a response model.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is False.
    SaveError
        If a file cannot be written.
    """
    table = out / SCORE_TABLE
    suffixes = (".csv", ".xlsx", *[".parquet"] * can_write_parquet())
    names = [table.with_suffix(suffix) for suffix in suffixes] if model.segmentation else []
    for number, path in enumerate(names):
        report_progress(number, len(names) + 1, f"Writing {path.name}")
        if path.suffix == ".parquet":
            write_parquet(model.rows, table, overwrite=overwrite)
        else:
            write_case_scores(model.rows, path, overwrite=overwrite)
    report_progress(len(names), len(names) + 1, f"Writing {SUMMARY}")
    write_json(summary_content(model), out / SUMMARY, overwrite=overwrite)
    report_progress(len(names) + 1, len(names) + 1, "Saved")


def write_comparison(comparison: ModelComparison, out: Path, *, overwrite: bool = False) -> None:
    """Write ``comparison.json``; errors as in `write_scores`."""
    write_json(comparison_content(comparison), out / COMPARISON, overwrite=overwrite)
