"""The command `score-detection`, which scores tables of boxes or folders of masks."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.printing import NOT_EVERY_CASE, print_table, run, shown
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import (
    BoxRule,
    CaseScoreRule,
    CurveReading,
    DuplicateRule,
    LesionMatching,
    LesionOverlap,
    RiskModel,
)
from napari_mamamia.io.files.json_text import read_json

if TYPE_CHECKING:
    from napari_mamamia.features.classifiers.services.detection.score_detection import (
        DetectionSummary,
    )

_IOU: Final = Quantity("a least overlap", 0.001, 1, "", "enter a proportion such as 0.1 or 0.5")
_CUT: Final = Quantity("a size", 0.1, 500, "mm", "enter a size in mm, such as 20")
_FAILURES_SHOWN: Final = 20


def _has_masks(given: Mapping[str, Any]) -> bool:
    return given["reference"] is not None or given["prediction"] is not None


_OF_TABLES: Final = Where(
    "with tables of boxes", lambda given: not _has_masks(given), lambda _: "with folders of masks"
)
_OF_MASKS: Final = Where(
    "with folders of masks (--reference, --prediction)", _has_masks, lambda _: "without them"
)
OPTIONS: Final[Mapping[str, Where]] = {
    "cases": ALWAYS,
    "lesions": _OF_TABLES,
    "predictions": _OF_TABLES,
    "reference": ALWAYS,
    "prediction": ALWAYS,
    "probability": _OF_MASKS,
    "box": _OF_MASKS,
    "overlap": _OF_MASKS,
    "label": _OF_MASKS,
    "matching": ALWAYS,
    "iou": Where(
        "with a matching that has a threshold",
        lambda given: given["matching"] is not LesionMatching.ANY_OVERLAP,
        lambda _: "with --matching any-overlap",
    ),
    "duplicates": ALWAYS,
    "interpolation": ALWAYS,
    "case_score": ALWAYS,
    "risk": ALWAYS,
    "size_cut": ALWAYS,
    "bootstrap": ALWAYS,
    "seed": ALWAYS,
    "out": ALWAYS,
    "overwrite": ALWAYS,
}
"""The conditions under which each option applies."""


@reports_result
def score_detection(
    context: typer.Context,
    out: options.OutOption,
    cases: Annotated[
        Path | None,
        typer.Option("--case-list", help="Table of all cases: case_id, optionally centre."),
    ] = None,
    lesions: Annotated[
        Path | None,
        typer.Option("--lesions", help="Table of lesions: case_id, x1, x2, y1, y2, z1, z2 in mm."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions", help="Table of predicted boxes: the same columns, and score."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Folder of reference masks.")
    ] = None,
    prediction: Annotated[
        Path | None, typer.Option("--prediction", help="Folder of predicted masks.")
    ] = None,
    probability: Annotated[
        Path | None,
        typer.Option(
            "--probability",
            help=("Folder of probability maps; a box's score is the maximum in its component."),
        ),
    ] = None,
    matching: Annotated[
        LesionMatching, typer.Option("--matching", help="Rule for matching boxes with lesions.")
    ] = LesionMatching.GREEDY_SCORE,
    iou: Annotated[
        float, typer.Option("--iou", parser=_IOU, help="Minimum overlap of a lesion and its box.")
    ] = 0.1,
    duplicates: Annotated[
        DuplicateRule,
        typer.Option(
            "--duplicates",
            help=("Treatment of a second box on a lesion that has already been found."),
        ),
    ] = DuplicateRule.FALSE_POSITIVE,
    overlap: Annotated[
        LesionOverlap, typer.Option("--overlap", help="Measure of overlap.")
    ] = LesionOverlap.BOX_IOU,
    box: Annotated[
        BoxRule, typer.Option("--box", help="Definition of the box of a mask component.")
    ] = BoxRule.TIGHT,
    interpolation: Annotated[
        CurveReading,
        typer.Option("--interpolation", help="Sensitivity between two points of the curve."),
    ] = CurveReading.LINEAR,
    case_score: Annotated[
        CaseScoreRule,
        typer.Option("--case-score", help="Rule that combines the scores of a case's boxes."),
    ] = CaseScoreRule.MAX,
    risk: Annotated[
        RiskModel, typer.Option("--risk", help="Risk by size, if the tables have no risks.")
    ] = RiskModel.SOPIK_2018,
    size_cut: Annotated[
        float,
        typer.Option(
            "--size-cut", parser=_CUT, help="Size in mm that separates small from large lesions."
        ),
    ] = 20.0,
    label: options.LabelOption = None,
    bootstrap: options.BootstrapOption = 1000,
    seed: options.SeedOption = 42,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score detected lesions (FROC, raFROC, precision, patient level): OUT/detection.json.

    Example: mamamia score-detection --reference EXPERT --prediction MASKS --out DETECTION
    """
    from napari_mamamia.features.classifiers.scoring.detection.matching import MatchingRule
    from napari_mamamia.features.classifiers.scoring.detection.parts import PartRules
    from napari_mamamia.features.classifiers.scoring.detection.results import DetectionSettings
    from napari_mamamia.features.classifiers.services.detection import score_detection as service
    from napari_mamamia.features.classifiers.services.detection.inputs import (
        DetectionMasks,
        DetectionTables,
    )

    refuse_idle(context, OPTIONS)
    settings = DetectionSettings(
        MatchingRule(matching, iou, duplicates),
        interpolation,
        case_score,
        risk,
        size_cut,
        bootstrap,
        seed,
    )
    source: DetectionTables | DetectionMasks
    if reference is not None and prediction is not None:
        rules = PartRules(overlap, box, label)
        source = DetectionMasks(reference, prediction, probability, cases, rules)
    elif cases is not None and lesions is not None and predictions is not None:
        source = DetectionTables(cases, lesions, predictions)
    else:
        raise typer.BadParameter(
            "expected either --case-list, --lesions and --predictions, or --reference and "
            "--prediction, but neither set is complete: pass all options of one set"
        )
    existing = options.existing_policy(False, overwrite)
    summary = run(partial(service.score_detection, source, out, settings, existing=existing))
    _print_detection(summary)


def _print_detection(summary: "DetectionSummary") -> None:
    from napari_mamamia.features.classifiers.scoring.detection.report import (
        REPORT,
        headline,
        rule_text,
    )
    from napari_mamamia.features.classifiers.services.detection.output import SUMMARY

    result = summary.result
    report_result(lambda: read_json(summary.folder / SUMMARY))
    print(f"{rule_text(result)}\n{headline(result)}")
    for name, value in result.average_precision:
        print(f"Average precision at overlap {name}: {shown(value, 4)}")
    patient = result.patient
    why = f" ({patient.reason})" if patient.reason else ""
    print(f"Patient level: AUC {shown(patient.auc, 4)}{why}, average precision "
          f"{shown(patient.average_precision, 4)}")  # fmt: skip
    heads = ("size", "reading", "lesions", "found", "false", "FROC")
    rows = (
        (
            stratum.name,
            stratum.reading,
            f"{stratum.n_lesions}",
            f"{stratum.n_true_positives}",
            f"{stratum.n_false_positives}",
            shown(stratum.froc, 4),
        )
        for stratum in result.strata
    )
    print_table("By axial box side", heads, rows, to_the_right=heads[2:])
    if result.centres:
        centre_heads = ("centre", "cases", "lesions", "found", "false", "FROC", "raFROC strict")
        rows_of_centres = (
            (
                centre.name,
                f"{centre.n_cases}",
                f"{centre.n_lesions}",
                f"{centre.n_true_positives}",
                f"{centre.n_false_positives}",
                shown(centre.froc, 4),
                shown(centre.strict, 4),
            )
            for centre in result.centres
        )
        print_table("By centre", centre_heads, rows_of_centres, to_the_right=centre_heads[1:])
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"Numbers: {summary.folder / SUMMARY}\nReport: {summary.folder / REPORT}")
    for failure in summary.failures[:_FAILURES_SHOWN]:
        print(f"failed: {failure.case_id}: {failure.reason}", file=sys.stderr)
    if len(summary.failures) > _FAILURES_SHOWN:
        more = len(summary.failures) - _FAILURES_SHOWN
        print(f"failed: {more} more, in {summary.folder / SUMMARY}", file=sys.stderr)
    if summary.failures:
        raise typer.Exit(NOT_EVERY_CASE)
