"""The report page of classifiers: models, operating points, comparisons, reader and subgroups."""

from collections.abc import Iterator

import numpy as np

from napari_mamamia.scoring.classifier.operating import SortedCases
from napari_mamamia.scoring.classifier.scores import (
    SMALL_GROUP,
    ClassifierCases,
    ClassifierResult,
    Ends,
    RobustLeader,
)
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.figures import RocCurve, roc_curves
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import (
    Column,
    ReportTable,
    Row,
    number,
    p_text,
    range_text,
)

_DRAWN = 7
"""Largest number of curves in one figure, limited by the number of distinguishable colours."""

_POINTS = 400
"""Number of points of a drawn curve; more would not be visible."""


def classifier_page(
    result: ClassifierResult,
    notes: tuple[str, ...],
    unit: str,
    source: str,
    cases: ClassifierCases,
) -> Page:
    """Return the report page of classifiers, with `notes` as warnings at the top.

    Parameters
    ----------
    result
        The metrics of the classifiers.
    notes
        Warnings at the top.
    unit
        "exam" or "case".
    source
        Name of the table.
    cases
        Labels and scores, for the curves.
    """
    best = max(result.models, key=lambda model: (not np.isnan(model.auc), model.auc))
    sections = [
        PageSection("Models", (models_table(result),), _draw_curves(cases, result)),
        PageSection("Operating points", tuple(_point_tables(result))),
        *(PageSection(*part) for part in (("Against the reader", _reader_tables(result)),
                                          ("Comparison of models", pair_tables(result)),
                                          ("Subgroups", tuple(_group_tables(result)))) if part[1]),
    ]  # fmt: skip
    return Page(
        f"Classifiers: {source}",
        (
            f"{result.n:,} {unit}s, {result.n_positive:,} of them positive; {len(result.models)} "
            f"model{'s' if len(result.models) > 1 else ''}. Largest AUC: {best.name}, "
            f"{number(best.auc)} ({format_ends(best.auc_bootstrap)}).",
        ),
        tuple(sections),
        notes,
        footer=(
            "Numbers are rounded for reading; the JSON file next to this page contains the exact "
            "values."
        ),
    )


def format_ends(ends: Ends) -> str:
    """Return both ends of an interval as a string."""
    return range_text(ends.low, ends.high)


def models_table(result: ClassifierResult) -> ReportTable:
    """Return a table with each model's AUC and partial AUC and their intervals."""
    headings = ("AUC", "95 % resampled", "95 % DeLong", "Partial AUC", "95 %", "Scaled", "Unusable")
    rows = tuple(
        Row(
            (
                model.name,
                number(model.auc),
                format_ends(model.auc_bootstrap),
                format_ends(model.auc_delong),
                number(model.partial_auc.raw, 4),
                range_text(model.partial_auc_bootstrap.low, model.partial_auc_bootstrap.high, 4),
                number(model.partial_auc.scaled),
                f"{model.n_filled:,}",
            )
        )
        for model in sorted(result.models, key=lambda model: (np.isnan(model.auc), -model.auc))
    )
    return ReportTable(
        "Models by AUC",
        (Column("Model", is_number=False), *(Column(text) for text in headings)),
        rows,
        (
            (
                f"Partial AUC: area above sensitivity {result.above:g}, at most "
                f"{1 - result.above:.2g}; scaled: as a fraction of this maximum. Resampled: "
                f"percentiles over {result.n_draws:,} resamples of {result.n_drawn:,}, "
                f"{result.n_one_class:,} of which lacked a class and were not used. Unusable: "
                "missing or invalid scores."
            ),
        ),
    )


def _point_tables(result: ClassifierResult) -> Iterator[ReportTable]:
    headings = ("By threshold", "95 %", "Interpolated", "95 %", "Positive from score")
    for index, sensitivity in enumerate(result.sensitivities):
        is_own = result.reader is not None and sensitivity == result.reader.sensitivity
        rows = []
        for model in result.models:
            point, ends = model.specificity_at[index], model.specificity_bootstrap[index]
            cut = model.cuts[index]
            cells = (
                model.name,
                number(point.threshold),
                format_ends(ends.threshold),
                number(point.interpolated),
                format_ends(ends.interpolated),
                f"{cut:.6g}" if np.isfinite(cut) else "–",
            )
            rows.append(Row(cells))
        owner = ", which is that of the reader on these cases" if is_own else ""
        yield ReportTable(
            f"Specificity at sensitivity {sensitivity:.4g}{owner}",
            (Column("Model", is_number=False), *(Column(text) for text in headings)),
            tuple(rows),
            (
                "By threshold: the largest specificity of a usable threshold that reaches the "
                "sensitivity. Interpolated: on the line between the points of the curve.",
            ),
        )


def _reader_tables(result: ClassifierResult) -> tuple[ReportTable, ...]:
    if result.reader is None:
        return ()
    reader = result.reader
    rows = [
        Row(
            (
                "the reader",
                number(reader.sensitivity),
                number(reader.specificity),
                "–",
                "–",
                "–",
                "–",
            )
        )
    ]
    for model in result.models:
        at_point = model.against_reader
        if at_point is None:
            continue
        beyond = next(p.minus_reader for p in model.specificity_bootstrap if p.minus_reader)
        rows.append(
            Row(
                (
                    model.name,
                    number(at_point.sensitivity),
                    number(at_point.specificity),
                    format_ends(beyond),
                    f"{at_point.only_model_right:,}",
                    f"{at_point.only_reader_right:,}",
                    p_text(at_point.p_mcnemar),
                )
            )
        )
    headings = (
        "Sensitivity", "Specificity", "95 % of model - reader", (
            "Negatives that only the model calls negative"
        ),
        "Negatives that only the reader calls negative", "p (McNemar)",
    )  # fmt: skip
    return (
        ReportTable(
            "At the reader's sensitivity",
            (Column("", is_number=False), *(Column(text) for text in headings)),
            tuple(rows),
            ("The threshold of each model is the highest that reaches the reader's sensitivity on "
"these cases, which favours the model slightly. McNemar: exact, two-sided, on the "
"negatives.",),
        ),
    )  # fmt: skip


def pair_tables(result: ClassifierResult) -> tuple[ReportTable, ...]:
    """Return tables of all pairs of models: AUC difference, DeLong's test, Bayes factor."""
    if not result.pairs:
        return ()
    factors = {(factor.better, factor.other): factor for factor in result.factors}
    rows = []
    for pair in result.pairs:
        difference = pair.delong.auc_a - pair.delong.auc_b
        a, b = pair.model_a, pair.model_b
        if difference < 0:
            a, b = b, a
        low, high = (pair.low, pair.high) if difference >= 0 else (-pair.high, -pair.low)
        cells = (
            f"{a} over {b}",
            number(abs(difference)),
            range_text(low, high),
            p_text(pair.delong.p_value),
            p_text(pair.p_holm),
            factors[a, b].text,
        )
        rows.append(Row(cells))
    headings = ("AUC difference", "95 % resampled", "p (DeLong)", "after Holm", "Bayes factor K")
    return (
        ReportTable(
            "Every pair of models",
            (Column("", is_number=False), *(Column(text) for text in headings)),
            tuple(rows),
            (
                *map(_describe_leader, result.leaders),
                (
                    "K: number of resamples in which the first model is better, divided by the "
                    "number of other resamples (ties count against the first model); > B if "
                    "none of B resamples contradicts."
                ),
            ),
        ),
    )


def _describe_leader(leader: RobustLeader) -> str:
    if len(leader.tied) == 1:
        return f"Rule {leader.rule.value}: {leader.winner} leads robustly."
    tied = ", ".join(leader.tied)
    return f"Rule {leader.rule.value}: {tied} are tied; partial AUC puts {leader.winner} first."


def _group_tables(result: ClassifierResult) -> Iterator[ReportTable]:
    columns = dict.fromkeys(group.column for group in result.subgroups)
    first = result.sensitivities[0]
    for column in columns:
        rows = []
        for group in result.subgroups:
            if group.column != column:
                continue
            for model in group.models:
                cells = (
                    group.value, model.name, f"{group.n:,}", f"{group.n_positive:,}",
                    number(model.auc), format_ends(model.auc_delong), number(model.sensitivity),
                    number(model.specificity),
                )  # fmt: skip
                rows.append(Row(cells, group.is_small))
        headings = ("n", "Positive", "AUC", "95 % DeLong", "Sensitivity", "Specificity")
        yield ReportTable(
            column,
            (
                Column("Group", is_number=False),
                Column("Model", is_number=False),
                *(Column(text) for text in headings),
            ),
            tuple(rows),
            (
                f"Sensitivity and specificity at the threshold of all cases for sensitivity "
                f"{first:.4g}. Grey: fewer than {SMALL_GROUP} cases.",
            ),
        )


def _draw_curves(cases: ClassifierCases, result: ClassifierResult) -> tuple[ReportFigure, ...]:
    if not 0 < result.n_positive < result.n:
        return ()
    order = sorted(range(len(result.models)), key=lambda index: -result.models[index].auc)
    curves = []
    for model_index in order[:_DRAWN]:
        points = SortedCases.of(cases.label, cases.scores[model_index]).points()
        steps = np.unique(np.linspace(0, points.positives.shape[1] - 1, _POINTS).astype(int))
        curves.append(
            RocCurve(
                cases.models[model_index],
                points.negatives[0, steps] / points.n_negative[0],
                points.positives[0, steps] / points.n_positive[0],
            )
        )
    spot = None
    if result.reader is not None:
        reader = result.reader
        index = np.array([1 - reader.specificity]), np.array([reader.sensitivity])
        spot = RocCurve("the reader", *index)
    others = f" The {_DRAWN} largest AUCs of {len(order)}." if len(order) > _DRAWN else ""
    return (
        ReportFigure(
            "roc",
            f"ROC curves; grey band: sensitivities above {result.above:g}, whose area is the "
            f"partial AUC.{others}",
            Drawing(roc_curves, (tuple(curves), spot, result.above)),
        ),
    )
