"""The report on a detection run: curves, sizes, patients, centres, missed and false boxes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.choices import DuplicateRule, LesionMatching
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.scoring.detection.results import (
    RATES,
    CurveKind,
    DetectionResult,
)
from napari_mamamia.scoring.report.drawing import Draw, Drawing, draw_here
from napari_mamamia.scoring.report.figures import FrocLine, froc_figure
from napari_mamamia.scoring.report.page import Page, PageSection, write_page
from napari_mamamia.scoring.report.report_figures import ReportFigure, write_figure
from napari_mamamia.scoring.report.text import Column, ReportTable, Row, number, range_text
from napari_mamamia.scoring.statistics.bootstrap import IntervalMethod, interval_named

REPORT: Final = "report.html"
FIGURES: Final = "figures"

_LISTED: Final = 50
_STEPS: Final = np.geomspace(1 / 16, 8, 400)
_DEFINITIONS: Final = {
    CurveKind.FROC: "mean sensitivity at 1/8, 1/4, 1/2, 1, 2, 4 and 8 false positives per case",
    CurveKind.STRICT: (
        "found lesions are weighted by risk (as a proportion of all risk), and false boxes by 1 − "
        "risk, on the same scale for all models"
    ),
    CurveKind.REFERENCE_CODE: (
        "as strict, but all risks are divided by the largest risk in this "
        "data set and this model's boxes, so two models have different "
        "scales"
    ),
    CurveKind.PAPER_EQ3: (
        "as strict, but the found risk is divided by the number of lesions, "
        "which gives at most the ceiling"
    ),
}
_LABELS: Final = {
    CurveKind.FROC: "FROC",
    CurveKind.STRICT: "raFROC, strict",
    CurveKind.REFERENCE_CODE: "raFROC, reference-code",
    CurveKind.PAPER_EQ3: "raFROC, paper-eq3",
}
_SECOND: Final = {
    DuplicateRule.FALSE_POSITIVE: "a false positive",
    DuplicateRule.IGNORED: "not counted",
}


def write_detection_page(
    result: DetectionResult,
    name: str,
    out: Path,
    failures: Sequence[CaseFailure] = (),
    warnings: Sequence[str] = (),
    *,
    overwrite: bool = False,
    draw: Draw = draw_here,
) -> Path:
    """Write a model's report: ``report.html`` and the folder ``figures``.

    Parameters
    ----------
    result
        The numbers.
    name
        Name of the model.
    out
        Output folder.
    failures, warnings
        Failures and notes to list.
    overwrite
        Whether to replace existing files.
    draw
        Function that draws the figures; tests replace it.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is False.
    SaveError
        If the operating system does not allow writing.
    """
    figures = tuple(_make_figures(result))
    drawn = {id(figure.drawing): draw(figure.drawing) for figure in figures}
    sections = [
        PageSection(
            "Curves",
            (_scores_table(result), *_rates_tables(result), _precision_table(result)),
            figures,
        ),
        PageSection("Sizes", (_strata_table(result),)),
        PageSection("Patients", (_patients_table(result),)),
        *([PageSection("Centres", (_centres_table(result),))] if result.centres else []),
        PageSection("Lesions and boxes", _make_lists(result)),
    ]
    page = Page(
        f"Detection: {name}",
        (f"{rule_text(result)}; this rule applies to every number on this page.", headline(result)),
        tuple(sections),
        tuple(warnings),
        tuple(f"{failure.case_id}: {failure.reason}" for failure in failures),
        "Numbers are rounded for reading; detection.json, lesions.csv, boxes.csv and curve.csv "
        "contain the full numbers.",
    )
    path = write_page(
        page, out / REPORT, overwrite=overwrite, draw=lambda drawing: drawn[id(drawing)]
    )
    for figure in figures:
        write_figure(figure.name, drawn[id(figure.drawing)], out / FIGURES, overwrite=overwrite)
    return path


def rule_text(result: DetectionResult) -> str:
    """Describe, in one line, how lesions and boxes are matched."""
    rule, data = result.settings.rule, result.data
    matching = f"Matching {rule.matching.value}"
    if rule.matching is not LesionMatching.ANY_OVERLAP:
        matching += f", {data.overlaps.kind.value} at least {rule.iou:g}"
        matching += f", a second box on a lesion is {_SECOND[rule.duplicates]}"
    return f"{matching}; risk {result.risk}; {result.settings.reading.value} between points"


def headline(result: DetectionResult) -> str:
    """Return the main results in one or two sentences."""
    n_cases = result.data.n_cases
    text = (
        f"{result.n_true_positives} of {result.n_lesions} lesions found, "
        f"{result.n_false_positives} false boxes in {n_cases} cases "
        f"({number(result.n_false_positives / n_cases, 2)} per case), {result.n_nearly_free} of "
        "them nearly without weight in raFROC."
    )
    if result.reason:
        return f"{text} No FROC score: {result.reason}."
    scores = result.risk_adjusted
    return (
        f"{text} FROC {number(result.froc)}; raFROC {number(scores.strict)} (strict), "
        f"{number(scores.reference_code)} (reference-code), {number(scores.paper_eq3)} (paper-eq3, "
        f"ceiling {number(scores.ceiling)})."
    )


def _make_figures(result: DetectionResult) -> Iterator[ReportFigure]:
    rule = rule_text(result)
    if not result.n_lesions:
        return
    froc = (_make_line(result, CurveKind.FROC),)
    yield ReportFigure(
        "froc",
        f"FROC: found lesions against false positives per case, log axis. {rule}.",
        Drawing(froc_figure, (froc, "false positives per case")),
    )
    readings = tuple(_make_line(result, kind) for kind in CurveKind if kind is not CurveKind.FROC)
    yield ReportFigure(
        "rafroc",
        "The three readings of risk-adjusted FROC, which are not comparable with each other; false "
        f"positives weighted by 1 − risk. {rule}.",
        Drawing(
            froc_figure,
            (readings, "weighted false positives per case", result.risk_adjusted.ceiling),
        ),
    )


def _make_line(result: DetectionResult, kind: CurveKind) -> FrocLine:
    curve, label = result.curve(kind), _LABELS[kind]
    if not result.data.has_scores:
        return FrocLine(label, curve.fp_per_case[-1:], curve.sensitivity[-1:])
    x = np.unique(np.append(_STEPS, RATES))
    return FrocLine(label, x, curve.at(x, result.settings.reading))


def _scores_table(result: DetectionResult) -> ReportTable:
    risks = result.risk_adjusted
    values = (
        (CurveKind.FROC, result.froc),
        (CurveKind.STRICT, risks.strict),
        (CurveKind.REFERENCE_CODE, risks.reference_code),
        (CurveKind.PAPER_EQ3, risks.paper_eq3),
    )
    rows = []
    for kind, value in values:
        ranges = [
            range_text(ends.low, ends.high) if ends else number(np.nan)
            for method in (IntervalMethod.PERCENTILE, IntervalMethod.BCA)
            for ends in [interval_named(result.intervals, kind.value, method)]
        ]
        rows.append(Row((_LABELS[kind], number(value), *ranges, _DEFINITIONS[kind])))
    rows.append(
        Row(("ceiling of paper-eq3", number(risks.ceiling), "", "", "mean risk of lesions"))
    )
    headings = (
        Column("Score", is_number=False),
        *map(Column, ("Value", "95 % interval, percentile", "BCa")),
        Column("Definition", is_number=False),
    )
    notes = [result.reason] if result.reason else []
    if result.intervals:
        first = result.intervals[0]
        notes.append(
            f"Intervals from {first.n_resamples} resamples of cases; {first.n_undefined} without a "
            "lesion were not used."
        )
    return ReportTable("Scores (proportions without unit)", headings, tuple(rows), tuple(notes))


def _rates_tables(result: DetectionResult) -> tuple[ReportTable, ...]:
    if result.reason:
        return ()
    reading = result.settings.reading
    rows = tuple(
        Row((_LABELS[kind], *map(number, curve.at(np.array(RATES), reading).tolist())))
        for kind, curve in result.curves
    )
    headings = tuple(Column(f"{rate:g}") for rate in RATES)
    reached = number(result.curve().reached_fp_per_case, 2)
    note = f"The curve of FROC reached {reached} false positives per case."
    return (
        ReportTable(
            "Sensitivity at false positives per case (weighted ones in raFROC)",
            (Column("Curve", is_number=False), *headings),
            rows,
            (note,),
        ),
    )


def _precision_table(result: DetectionResult) -> ReportTable:
    rows = tuple(Row((name, number(value))) for name, value in result.average_precision)
    kind = result.data.overlaps.kind.value
    return ReportTable(
        "Average precision", (Column(f"Overlap ({kind})", is_number=False), Column("AP")), rows
    )


def _strata_table(result: DetectionResult) -> ReportTable:
    headings = (
        Column("Axial box side", is_number=False),
        Column("Reading", is_number=False),
        *map(Column, ("Lesions", "Found", "False boxes", "FROC")),
    )
    rows = tuple(
        Row(
            (
                stratum.name,
                stratum.reading,
                f"{stratum.n_lesions}",
                f"{stratum.n_true_positives}",
                f"{stratum.n_false_positives}",
                number(stratum.froc),
            )
        )
        for stratum in result.strata
    )
    notes = (
        "coco-ignore: a box on a lesion of the other stratum does not count. discard-then-match: "
        "those lesions are removed before matching, so that such a box is false if its size is "
        "in this stratum.",
        "Each stratum reaches a rate of false positives at its own threshold of the score.",
    )
    return ReportTable("By size", headings, rows, notes)


def _patients_table(result: DetectionResult) -> ReportTable:
    patient = result.patient
    why = patient.reason or "0.5 is chance; ties count half"
    interval = patient.interval
    ends = range_text(interval.low, interval.high) if interval else number(np.nan)
    share = number(patient.n_with / max(1, patient.n_with + patient.n_without))
    rows = (
        Row(("AUC", number(patient.auc), ends, why)),
        Row(
            (
                "Average precision",
                number(patient.average_precision),
                "",
                patient.reason or f"chance is {share}, the proportion of cases with a lesion",
            )
        ),
        Row(
            ("Sensitivity", number(patient.sensitivity), "", "cases with a lesion that have a box")
        ),
        Row(
            (
                "Specificity",
                number(patient.specificity),
                "",
                "cases without a lesion that have no box",
            )
        ),
    )
    headings = (
        Column("Number", is_number=False),
        Column("Value"),
        Column("95 % interval, DeLong"),
        Column("Definition", is_number=False),
    )
    note = (
        f"{patient.n_with} cases with a lesion, {patient.n_without} without. The score of a case: "
        f"{patient.rule.value} of its boxes; the lowest score without boxes."
    )
    return ReportTable("Cases with a lesion against cases without", headings, rows, (note,))


def _centres_table(result: DetectionResult) -> ReportTable:
    headings = ("Cases", "Lesions", "Found", "False boxes", "FROC", "raFROC, strict")
    rows = tuple(
        Row(
            (
                centre.name,
                f"{centre.n_cases}",
                f"{centre.n_lesions}",
                f"{centre.n_true_positives}",
                f"{centre.n_false_positives}",
                number(centre.froc),
                number(centre.strict),
            )
        )
        for centre in result.centres
    )
    columns = (Column("Centre", is_number=False), *(Column(text) for text in headings))
    return ReportTable("Cases of each centre", columns, rows)


def _make_lists(result: DetectionResult) -> tuple[ReportTable, ...]:
    """Return tables of missed lesions (highest risk first) and false boxes (by score)."""
    data, matches = result.data, result.matches
    lesions, boxes = data.lesions, data.boxes
    sizes, box_sizes = lesions.sizes_mm, boxes.sizes_mm
    missed = np.flatnonzero(matches.found_by < 0)
    missed = missed[np.argsort(-lesions.risks[missed], kind="stable")]
    false = np.flatnonzero(matches.is_false)
    if data.has_scores:
        false = false[np.argsort(-boxes.scores[false], kind="stable")]
    headings = (Column("Case", is_number=False), Column("Axial box side (mm)"), Column("Risk"))
    missed_rows = tuple(
        Row((data.case_ids[lesions.cases[k]], number(sizes[k], 1), number(lesions.risks[k])))
        for k in missed[:_LISTED]
    )
    false_rows = tuple(
        Row(
            (
                data.case_ids[boxes.cases[k]],
                number(box_sizes[k], 1),
                number(boxes.risks[k]),
                "unreadable" if np.isposinf(boxes.scores[k]) else number(boxes.scores[k]),
            )
        )
        for k in false[:_LISTED]
    )
    return (
        ReportTable(
            f"{missed.size:,} missed lesions, largest risk first",
            headings,
            missed_rows,
            _say_more(missed.size, "lesions.csv"),
        ),
        ReportTable(
            f"{false.size:,} false boxes, highest score first",
            (*headings, Column("Score")),
            false_rows,
            _say_more(false.size, "boxes.csv"),
        ),
    )


def _say_more(n: int, where: str) -> tuple[str, ...]:
    return (f"and {n - _LISTED:,} more, in {where}",) if n > _LISTED else ()
