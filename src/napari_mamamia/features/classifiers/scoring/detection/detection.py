"""Compute all detection metrics from the lesions and predicted boxes of all cases."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import CaseScoreRule
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.classifiers.scoring.detection.boxes import Numbers, risk_of_size
from napari_mamamia.features.classifiers.scoring.detection.matching import Matches, match_lesions
from napari_mamamia.features.classifiers.scoring.detection.results import (
    COCO_IGNORE,
    DISCARD,
    GIVEN,
    RATES,
    Centre,
    Curve,
    CurveKind,
    DetectionInput,
    DetectionResult,
    DetectionSettings,
    Events,
    PatientLevel,
    RiskAdjusted,
    Stratum,
    average_precision_of_lesions,
)
from napari_mamamia.scoring.statistics.auc import auc, auc_interval, average_precision
from napari_mamamia.scoring.statistics.bootstrap import Interval, IntervalMethod, bootstrap
from napari_mamamia.scoring.statistics.resampling import draw_cases, weigh_cases

NEARLY_FREE: Final = 0.1
"""Weight (1 - risk) below which a false box has hardly any effect on raFROC."""

OVERLAP_THRESHOLDS: Final = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)

NO_SCORES: Final = "the boxes have no scores, so there is one operating point and no curve to score"
NO_LESION: Final = "there is no lesion to find"

_CELLS: Final = 1 << 21
"""Maximum number of array elements while cases are being resampled (16 MB)."""
_LEFT_OUT: Final = 1_000_000_000
"""Product of cases and events above which BCa intervals use no jackknife acceleration."""

_TEXT: Final = "Scoring the detection"


def score_detection(
    data: DetectionInput, settings: DetectionSettings | None = None
) -> DetectionResult:
    """Compute every detection metric.

    If a lesion or box has no risk, the risk is derived from its size. Scores are NaN, with a
    reason, if boxes have no scores or there are no lesions. If there is no true positive, the
    scores are 0.

    Parameters
    ----------
    data
        Lesions and predicted boxes of all cases.
    settings
        The settings; None for the defaults.
    """
    settings = settings or DetectionSettings()
    report_progress(0, 5, _TEXT)
    data, risk = _with_risks(data, settings)
    matches = match_lesions(
        data.overlaps, data.boxes.scores, data.lesions.cases.size, settings.rule
    )
    events = Events.of(matches, data.lesions, data.boxes, data.n_cases)
    curves = tuple((kind, events.curve(kind)) for kind in CurveKind)
    report_progress(1, 5, _TEXT)
    reason = "" if data.has_scores else NO_SCORES
    if not data.lesions.cases.size:
        reason = NO_LESION
    scores = {
        kind: float("nan") if reason else curve.score(settings.reading) for kind, curve in curves
    }
    weights = 1 - np.nan_to_num(data.boxes.risks[matches.is_false])
    result = DetectionResult(
        data,
        settings,
        matches,
        risk,
        curves,
        scores[CurveKind.FROC],
        _risk_adjusted(scores, data),
        _average_precisions(data, settings),
        _score_strata(data, settings),
        _patient_level(data, settings),
        _score_centres(data, settings, matches, events),
        _make_intervals(events, settings, scores) if not reason else (),
        int(np.count_nonzero(weights < NEARLY_FREE)),
        (),
        reason,
    )
    report_progress(5, 5, _TEXT)
    return replace(result, warnings=_list_warnings(result))


def _with_risks(data: DetectionInput, settings: DetectionSettings) -> tuple[DetectionInput, str]:
    lesions, boxes = data.lesions, data.boxes
    risks = np.concatenate([lesions.risks, boxes.risks])
    of_lesions = _fill_gaps(lesions.risks, risk_of_size(lesions.sizes_mm, settings.risk))
    of_boxes = _fill_gaps(boxes.risks, risk_of_size(boxes.sizes_mm, settings.risk))
    filled = replace(
        data, lesions=replace(lesions, risks=of_lesions), boxes=replace(boxes, risks=of_boxes)
    )
    return filled, settings.risk.value if np.isnan(risks).all() else GIVEN


def _fill_gaps(values: Numbers, instead: Numbers) -> Numbers:
    filled: Numbers = np.where(np.isnan(values), instead, values)
    return filled


def _risk_adjusted(scores: dict[CurveKind, float], data: DetectionInput) -> RiskAdjusted:
    risks = data.lesions.risks
    return RiskAdjusted(
        scores[CurveKind.STRICT],
        scores[CurveKind.REFERENCE_CODE],
        scores[CurveKind.PAPER_EQ3],
        float(risks.mean()) if risks.size else float("nan"),
    )


# ---------------------------------------------------------------- precision


def _average_precisions(
    data: DetectionInput, settings: DetectionSettings
) -> tuple[tuple[str, float], ...]:
    """Return average precision at overlaps 0.1 and 0.5, and the mean over 0.1, 0.15, ..., 0.5.

    The rule `any-overlap` has no threshold and therefore only one value.
    """
    values = []
    for iou in OVERLAP_THRESHOLDS:
        report_progress(1, 5, _TEXT)
        rule = replace(settings.rule, iou=iou)
        n_lesions = data.lesions.cases.size
        matches = match_lesions(data.overlaps, data.boxes.scores, n_lesions, rule)
        events = Events.of(matches, data.lesions, data.boxes, data.n_cases)
        values.append(average_precision_of_lesions(events) if data.has_scores else float("nan"))
    first, last = OVERLAP_THRESHOLDS[0], OVERLAP_THRESHOLDS[-1]
    return (
        (f"{first:g}", values[0]),
        (f"{last:g}", values[-1]),
        (f"{first:g}:{last:g}:0.05", float(np.mean(values))),
    )


# ---------------------------------------------------------------- strata


def _score_strata(data: DetectionInput, settings: DetectionSettings) -> tuple[Stratum, ...]:
    report_progress(2, 5, _TEXT)
    cut = settings.cut_mm
    ranges = ((f"0-{cut:g}mm", 0.0, cut), (f"{cut:g}mm-", cut, np.inf))
    return tuple(
        _score_stratum(data, settings, name, reading, low, high)
        for name, low, high in ranges
        for reading in (COCO_IGNORE, DISCARD)
    )


def _score_stratum(
    data: DetectionInput,
    settings: DetectionSettings,
    name: str,
    reading: str,
    low_mm: float,
    high_mm: float,
) -> Stratum:
    in_range = _is_within(data.lesions.sizes_mm, low_mm, high_mm)
    sizes = data.boxes.sizes_mm
    # An unreadable box counts in every stratum.
    within = _is_within(sizes, low_mm, high_mm) | np.isnan(sizes)
    overlaps = data.overlaps
    if reading == DISCARD:
        there = in_range[overlaps.lesions]
        overlaps = replace(
            overlaps,
            predictions=overlaps.predictions[there],
            lesions=overlaps.lesions[there],
            values=overlaps.values[there],
        )
    matches = match_lesions(overlaps, data.boxes.scores, in_range.size, settings.rule, in_range)
    matches = replace(matches, is_false=matches.is_false & within)
    events = Events.of(matches, data.lesions, data.boxes, data.n_cases, in_range)
    n_lesions = int(np.count_nonzero(in_range))
    has_curve = data.has_scores and n_lesions > 0
    return Stratum(
        name,
        reading,
        low_mm,
        high_mm,
        n_lesions,
        int(np.count_nonzero(matches.found_by >= 0)),
        int(np.count_nonzero(matches.is_false)),
        events.curve(CurveKind.FROC).score(settings.reading) if has_curve else float("nan"),
    )


def _is_within(sizes_mm: Numbers, low_mm: float, high_mm: float) -> NDArray[np.bool_]:
    within: NDArray[np.bool_] = (sizes_mm >= low_mm) & (sizes_mm <= high_mm)
    return within


# ---------------------------------------------------------------- cases


def case_scores(data: DetectionInput, rule: CaseScoreRule, label: Numbers) -> Numbers:
    """Compute each case's score from its boxes; a case without boxes gets the lowest score.

    The lowest score is 0 or, if some scores are negative, a number below all scores. An unreadable
    box counts against the prediction: it gives a case without a lesion the highest score, and is
    ignored in a case with a lesion.

    Parameters
    ----------
    data
        Lesions and predicted boxes of all cases.
    rule
        How the scores of boxes are combined.
    label
        1 for a case with a lesion, otherwise 0.
    """
    boxes = data.boxes
    usable = np.isfinite(boxes.scores)
    cases, scores = boxes.cases[usable], boxes.scores[usable]
    if rule is CaseScoreRule.NOISY_OR:
        missed = np.ones(data.n_cases)
        np.multiply.at(missed, cases, 1 - scores)
        values = 1 - missed
    else:
        lowest = 0.0 if not scores.size or scores.min() >= 0 else -np.inf
        values = np.full(data.n_cases, lowest)
        np.maximum.at(values, cases, scores)
    unread = np.zeros(data.n_cases, dtype=np.bool_)
    unread[boxes.cases[np.isposinf(boxes.scores)]] = True
    values[unread & (label == 0)] = np.inf
    return values


def _patient_level(data: DetectionInput, settings: DetectionSettings) -> PatientLevel:
    report_progress(3, 5, _TEXT)
    rule, scores = settings.case_score, data.boxes.scores
    n_lesions = np.bincount(data.lesions.cases, minlength=data.n_cases)
    label = (n_lesions > 0).astype(np.float64)
    n_with = int(label.sum())
    n_without = data.n_cases - n_with
    has_box = np.bincount(data.boxes.cases, minlength=data.n_cases) > 0
    shares = (
        float(has_box[label == 1].mean()) if n_with else float("nan"),
        float((~has_box[label == 0]).mean()) if n_without else float("nan"),
    )
    finite = scores[np.isfinite(scores)]
    is_share = bool(((finite >= 0) & (finite <= 1)).all())
    reason = ""
    if not n_with:
        reason = "no case with a lesion"
    elif not n_without:
        reason = "no case without a lesion"
    elif not data.has_scores:
        reason = NO_SCORES
    elif rule is CaseScoreRule.NOISY_OR and not is_share:
        reason = "noisy-or needs scores from 0 to 1"
    if reason:
        nothing = (float("nan"), float("nan"))
        return PatientLevel(rule, n_with, n_without, *nothing, *shares, None, reason)
    values = case_scores(data, rule, label)
    area, precision = auc(label, values), average_precision(label, values)
    interval = auc_interval(label, values)
    return PatientLevel(rule, n_with, n_without, area, precision, *shares, interval)


def _score_centres(
    data: DetectionInput, settings: DetectionSettings, matches: Matches, events: Events
) -> tuple[Centre, ...]:
    centres = np.array(data.centres, dtype=np.str_)
    rows = []
    for name in sorted(set(data.centres)):
        weights = (centres == name).astype(np.float64)
        n_lesions = int(weights[data.lesions.cases].sum())
        is_found = matches.found_by >= 0
        scores = [float("nan")] * 2
        if data.has_scores and n_lesions:
            scores = events.scores_of(
                (CurveKind.FROC, CurveKind.STRICT), weights[None], settings.reading
            )[0].tolist()
        rows.append(
            Centre(
                name or "unknown",
                int(weights.sum()),
                n_lesions,
                int(weights[data.lesions.cases[is_found]].sum()),
                int(weights[data.boxes.cases[matches.is_false]].sum()),
                *scores,
            )
        )
    return tuple(rows)


# ---------------------------------------------------------------- intervals


def _make_intervals(
    events: Events, settings: DetectionSettings, scores: dict[CurveKind, float]
) -> tuple[Interval, ...]:
    """Return percentile and BCa intervals for FROC and raFROC, from resampled cases.

    All scores are undefined in a resample without a lesion; the result counts such resamples.
    """
    n_cases, n_events = events.lesions.size, max(1, events.cases.size)
    if not settings.n_resamples:
        return ()
    kinds = tuple(scores)

    sums = events.sums(events.bends)

    def numbers(weights: Numbers) -> Numbers:
        return sums.scores(kinds, weights, settings.reading)

    rows = max(1, _CELLS // max(n_events, n_cases))
    drawn = weigh_cases(draw_cases(n_cases, settings.n_resamples, settings.seed), n_cases)
    replicates = (
        numbers(block[index : index + rows].astype(np.float64))
        for block in drawn
        for index in range(0, len(block), rows)
    )
    left_out = np.full((1, len(kinds)), np.nan)
    has_acceleration = n_cases * n_events <= _LEFT_OUT
    if has_acceleration:
        parts = []
        for start in range(0, n_cases, rows):
            report_progress(4, 5, _TEXT)
            parts.append(numbers(_without_each(n_cases, start, rows)))
        left_out = np.concatenate(parts)
    estimates = np.array([scores[kind] for kind in kinds])
    resampled = bootstrap(
        tuple(kind.value for kind in kinds), replicates, estimates, left_out, settings.n_resamples
    )
    methods = [IntervalMethod.PERCENTILE]
    if has_acceleration:
        methods.append(IntervalMethod.BCA)
    return tuple(interval for method in methods for interval in resampled.intervals(method))


def _without_each(n_cases: int, first: int, n_rows: int) -> Numbers:
    stop = min(first + n_rows, n_cases)
    weights = np.ones((stop - first, n_cases))
    weights[np.arange(stop - first), np.arange(first, stop)] = 0
    return weights


# ---------------------------------------------------------------- what to know


def _list_warnings(result: DetectionResult) -> tuple[str, ...]:
    data, settings = result.data, result.settings
    texts = []
    counts = np.bincount(data.lesions.cases, minlength=data.n_cases)
    if data.n_cases and (counts == 1).all():
        texts.append(
            "every case has exactly one lesion; if the reference contains only the primary tumour "
            "(as in MAMA-MIA), a false positive may be a true additional lesion"
        )
    if result.reason:
        return tuple(texts)
    if data.n_cases < 8:
        texts.append(
            f"with {data.n_cases} cases, one false positive is {1 / data.n_cases:.3g} per case, "
            "which exceeds the lowest rate of the score, 0.125"
        )
    texts += _warn_of_curve(result.curve(), data)
    if np.any(data.lesions.sizes_mm == settings.cut_mm):
        texts.append(f"lesions of exactly {settings.cut_mm:.1f} mm are counted in both strata")
    texts.append(
        "each stratum reaches a rate of false positives at its own score threshold, so the strata "
        "do not describe the same setting of the model"
    )
    return tuple(texts)


def _warn_of_curve(curve: Curve, data: DetectionInput) -> list[str]:
    texts = []
    if curve.reached_fp_per_case < RATES[-1]:
        texts.append(
            f"the curve reached {curve.reached_fp_per_case:.3g} false positives per case; beyond "
            "this rate, the score uses the last sensitivity"
        )
    finite = data.boxes.scores[np.isfinite(data.boxes.scores)]
    if finite.size > 1 and finite.min() == finite.max():
        texts.append(
            "all scores are equal, so there is one operating point, and the score uses the line "
            "from 0 to this point"
        )
    return texts
