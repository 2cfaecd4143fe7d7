"""Tables of a response (pCR) report."""

from napari_mamamia.scoring.cohort.disparities import GroupUncertainty
from napari_mamamia.scoring.cohort.response_cohort import VariableOdds
from napari_mamamia.scoring.cohort.results import ResponseResult
from napari_mamamia.scoring.report import tables
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    p_said,
    range_text,
    variable_label,
)


def response_table(result: ResponseResult) -> ReportTable:
    """Return a table of the Task 2 metrics with their intervals."""
    cohort, measures = result.cohort, result.cohort.discrimination
    weight = cohort.weight_of_fairness
    why = cohort.refused
    numbers: list[tables.Named] = [
        (
            "Ranking score",
            "ranking_score",
            cohort.ranking_score,
            cohort.reason or f"{1 - weight:g} × balanced accuracy + {weight:g} × fairness",
        ),
        (
            "Balanced accuracy",
            "balanced_accuracy",
            cohort.balanced_accuracy,
            why or "(recall of responders + recall of non-responders)/2, 0.5 is chance",
        ),
        ("Fairness", "fairness", cohort.fairness, why or cohort.odds.reason or "1 is best"),
        ("Disparity, mean", "disparity", cohort.odds.raw, "equalised odds, 0 is best, not clipped"),
    ]
    numbers += [
        (
            f"Disparity: {variable_label(v.variable)}",
            f"disparity_{v.variable}",
            v.disparity,
            v.reason or "TPR gap + FPR gap, 0 to 2",
        )
        for v in cohort.odds.variables
    ]
    numbers += [
        ("AUC", "auc", measures.auc, measures.reason or f"over {measures.n} cases with a score"),
        ("Average precision", "average_precision", measures.average_precision, measures.reason),
        ("Recall of responders", "", cohort.recall.responders, "TPR"),
        ("Recall of non-responders", "", cohort.recall.non_responders, "TNR"),
        ("Recall gap", "", cohort.recall.gap, "absolute difference of the two recalls"),
        ("Brier score", "", measures.calibration.brier, "0 is best"),
        ("ECE", "", measures.calibration.ece, "expected calibration error over quantile bins"),
    ]
    uncertainty = result.uncertainty
    rows = tables.interval_rows(numbers, result.intervals, uncertainty.by_name("disparity_"))
    return ReportTable(
        f"Response numbers (profile {cohort.profile}; fractions without unit)",
        tables.INTERVAL_COLUMNS,
        rows,
        (
            *_describe_tests(result),
            *tables.interval_notes(result.intervals, uncertainty),
            *tables.say_without(uncertainty),
            *cohort.notes,
        ),
        tables.interval_warnings(result.intervals),
    )


def _describe_tests(result: ResponseResult) -> tuple[str, ...]:
    chance, auc, delong = result.cohort.chance, result.auc_against_chance, result.delong
    random = f"{chance.n_classifiers} random classifiers"
    return (
        f"Balanced accuracy against {random}: {p_said(chance.p_value)} "
        f"({chance.significance.value}). AUC: {p_said(auc.p_value)} "
        f"({auc.significance.value}).",
        f"95 % interval of the AUC by DeLong: {range_text(delong.low, delong.high)}.",
    )


def odds_tables(result: ResponseResult) -> tuple[ReportTable, ...]:
    """Return the rates of the groups, with one table for each variable."""
    return tuple(
        _make_rates_table(variable, result.uncertainty) for variable in result.cohort.odds.variables
    )


def _make_rates_table(variable: VariableOdds, uncertainty: GroupUncertainty) -> ReportTable:
    headings = ("n", "Responders", "TPR", "FPR")
    rows = tuple(
        Row(
            (
                group.label,
                f"{group.n}",
                f"{group.n_responders}",
                number(group.tpr),
                number(group.fpr),
            ),
            group.is_small,
        )
        for group in variable.groups
    )
    estimate = uncertainty.of(variable.variable, "equalised_odds")
    notes = [
        f"TPR gap {number(variable.tpr.disparity)}, FPR gap {number(variable.fpr.disparity)}.",
        " ".join(tables.say_disparity(estimate, uncertainty.minimum_group)),
    ]
    if any(group.is_small for group in variable.groups):
        notes.append(
            "Grey groups have fewer cases than the profile requires, but are included in "
            "the numbers."
        )
    return ReportTable(
        variable_label(variable.variable),
        (Column("Group", is_number=False), *(Column(text) for text in headings)),
        rows,
        tuple(notes),
        tables.unassigned_lists(variable.unassigned),
    )
