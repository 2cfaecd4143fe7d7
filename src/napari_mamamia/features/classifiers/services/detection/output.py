"""Write the results of a detection run: detection.json, tables of lesions, boxes and curves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.choices import LesionMatching
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.scoring.detection.results import (
    RATES,
    CurveKind,
    DetectionResult,
    PatientLevel,
)
from napari_mamamia.io.tables.flat_tables import Cell, write_flat_table
from napari_mamamia.io.tables.tables import write_json

SUMMARY: Final = "detection.json"
LESIONS: Final = "lesions.csv"
BOXES: Final = "boxes.csv"
CURVE: Final = "curve.csv"

_FAILURES_KEPT: Final = 1000
_EDGES: Final = ("x1_mm", "x2_mm", "y1_mm", "y2_mm", "z1_mm", "z2_mm")

Content = dict[str, Any]
Row = list[Cell]


def write_detection(
    result: DetectionResult,
    failures: Sequence[CaseFailure],
    warnings: Sequence[str],
    out: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write ``detection.json`` and the three tables of a detection run.

    Parameters
    ----------
    result
        The numbers.
    failures, warnings
        Failures and notes to list.
    out
        Output folder.
    overwrite
        Whether to replace existing files.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is False.
    SaveError
        If the operating system does not allow writing.
    """
    report_progress(0, 4, "Writing the tables")
    for name, (columns, rows) in TABLES.items():
        listed = list(rows(result))
        write_flat_table(columns, listed, len(listed), out / name, overwrite=overwrite)
    write_json(detection_content(result, failures, warnings), out / SUMMARY, overwrite=overwrite)
    report_progress(4, 4, "Tables written")


def detection_content(
    result: DetectionResult, failures: Sequence[CaseFailure], warnings: Sequence[str]
) -> Content:
    """Return the content of ``detection.json``; NaN becomes null.

    Parameters
    ----------
    result
        The numbers.
    failures, warnings
        Failures and notes to list.
    """
    data, settings = result.data, result.settings
    has_threshold = settings.rule.matching is not LesionMatching.ANY_OVERLAP
    froc = result.curve()
    points = np.stack([froc.fp_per_case, froc.sensitivity], axis=1)
    if not data.has_scores:
        points = points[-1:]
    risks = result.risk_adjusted
    return {
        "matching": settings.rule.matching,
        "iou": settings.rule.iou if has_threshold else None,
        "overlap": data.overlaps.kind,
        "duplicates": settings.rule.duplicates,
        "interpolation": settings.reading,
        "n_cases": data.n_cases,
        "n_cases_without_lesion": result.patient.n_without,
        "n_lesions": result.n_lesions,
        "n_boxes": data.boxes.cases.size,
        "n_true_positives": result.n_true_positives,
        "n_false_positives": result.n_false_positives,
        "n_nearly_free": result.n_nearly_free,
        "froc": {
            "score": result.froc,
            "reached_fp_per_case": froc.reached_fp_per_case,
            "curve": points.tolist(),
        },
        "sensitivity_at": {
            kind.value: dict(
                zip(map(str, RATES), curve.at(np.array(RATES), settings.reading), strict=True)
            )
            for kind, curve in result.curves
            if not result.reason
        },
        "rafroc": {
            CurveKind.STRICT: risks.strict,
            CurveKind.REFERENCE_CODE: risks.reference_code,
            CurveKind.PAPER_EQ3: risks.paper_eq3,
            "ceiling": risks.ceiling,
        },
        "risk": result.risk,
        "average_precision": dict(result.average_precision),
        "strata": _strata_content(result),
        "patient": _patient_content(result.patient),
        "centres": {
            centre.name: {
                "n_cases": centre.n_cases,
                "n_lesions": centre.n_lesions,
                "n_true_positives": centre.n_true_positives,
                "n_false_positives": centre.n_false_positives,
                "froc": centre.froc,
                "rafroc_strict": centre.strict,
            }
            for centre in result.centres
        },
        "intervals": result.intervals,
        "settings": dict(settings.parameters),
        "reason": result.reason,
        "warnings": [*warnings, *result.warnings],
        "n_failures": len(failures),
        "failures": [
            {"case_id": failure.case_id, "reason": failure.reason}
            for failure in failures[:_FAILURES_KEPT]
        ],
        "software": software_version(),
        "created": now_utc(),
    }


def _strata_content(result: DetectionResult) -> Content:
    content: Content = {}
    for stratum in result.strata:
        content.setdefault(stratum.name, {})[stratum.reading] = {
            "n_lesions": stratum.n_lesions,
            "n_true_positives": stratum.n_true_positives,
            "n_false_positives": stratum.n_false_positives,
            "froc": stratum.froc,
        }
    return content


def _patient_content(patient: PatientLevel) -> Content:
    interval = patient.interval
    return {
        "auc": patient.auc,
        "average_precision": patient.average_precision,
        "case_score": patient.rule,
        "n_with_lesion": patient.n_with,
        "n_without_lesion": patient.n_without,
        "sensitivity": patient.sensitivity,
        "specificity": patient.specificity,
        "auc_interval_delong": None if interval is None else [interval.low, interval.high],
        "reason": patient.reason,
    }


def _lesion_rows(result: DetectionResult) -> Iterator[Row]:
    data, matches = result.data, result.matches
    lesions, sizes, number = (
        data.lesions,
        data.lesions.sizes_mm,
        _numbers_in_case(data.lesions.cases),
    )
    for row, case in enumerate(lesions.cases.tolist()):
        box = int(matches.found_by[row])
        score = float(data.boxes.scores[box]) if box >= 0 else float("nan")
        yield [
            data.case_ids[case],
            data.centres[case] if data.centres else "",
            float(number[row]),
            *lesions.edges_mm[row].tolist(),
            float(sizes[row]),
            float(lesions.risks[row]),
            "yes" if box >= 0 else "no",
            float(box + 1) if box >= 0 else float("nan"),
            float(matches.overlap[row]),
            score,
        ]


def _box_rows(result: DetectionResult) -> Iterator[Row]:
    data, outcomes = result.data, result.box_outcomes
    boxes, sizes = data.boxes, data.boxes.sizes_mm
    for row, case in enumerate(boxes.cases.tolist()):
        yield [
            data.case_ids[case],
            float(row + 1),
            *boxes.edges_mm[row].tolist(),
            float(boxes.scores[row]),
            float(sizes[row]),
            float(boxes.risks[row]),
            outcomes[row],
        ]


def _curve_rows(result: DetectionResult) -> Iterator[Row]:
    for kind, curve in result.curves:
        columns = (curve.thresholds, curve.fp_per_case, curve.sensitivity)
        first = 0 if result.data.has_scores else curve.thresholds.size - 1
        for row in list(zip(*(column.tolist() for column in columns), strict=True))[first:]:
            yield [kind.value, *row]


def _numbers_in_case(cases: Any) -> Any:
    order = np.argsort(cases, kind="stable")
    starts = np.searchsorted(cases[order], cases[order])
    numbers = np.empty(len(cases), dtype=np.intp)
    numbers[order] = np.arange(len(cases)) - starts + 1
    return numbers


TABLES: Final[Mapping[str, tuple[tuple[str, ...], Callable[[DetectionResult], Iterator[Row]]]]] = {
    LESIONS: (
        ("case_id", "centre", "lesion", *_EDGES, "axial_box_side_mm", "risk", "found",
         "found_by_box", "overlap", "score"),
        _lesion_rows,
    ),
    BOXES: (
        ("case_id", "box", *_EDGES, "score", "axial_box_side_mm", "risk", "outcome"),
        _box_rows,
    ),
    CURVE: (("curve", "threshold", "fp_per_case", "sensitivity"), _curve_rows),
}  # fmt: skip
"""The tables written next to ``detection.json``: their columns, and functions that yield rows."""
