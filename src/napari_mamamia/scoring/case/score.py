"""Compute the `CaseScore` of one case from two masks and a profile."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import (
    SOFT_THRESHOLD,
    LabelMap,
    explain_not_a_mask,
    is_soft,
)
from napari_mamamia.core.errors import GridMismatchError, NotAMaskError
from napari_mamamia.core.records import SCORE_COLUMNS, CaseScore, ScoreStatus
from napari_mamamia.metrics.registry import (
    list_metrics,
    metric,
    pair_values,
    prediction_values,
    reference_values,
)
from napari_mamamia.scoring.case.pair import (
    MeasuredPair,
    grid_problem,
    laid_on,
    listed_values,
    measure_pair,
    measured_foreground,
    nothing_on,
    touched_axes,
)
from napari_mamamia.scoring.case.profiles import (
    CLINICAL,
    Emptiness,
    EmptinessOf,
    Foreground,
    MissingPrediction,
    Profile,
)

# Warnings about a case that could be scored, in plain words.

_ROUNDING_VOXELS: Final = 0.01
"""Largest affine difference in voxels that counts as float32 rounding and causes no warning.

The difference is measured at the farthest corner (see `core.grid.SAME_PLACE_VOXELS`).
"""

AFFINE_DIFFERS: Final = "affine_differs"
"""Start of the warning for a case that is scored although its affines differ."""
PREDICTION_IDENTITY: Final = "the prediction's grid is an identity"
ON_REFERENCE: Final = "mm are measured on the reference's grid"

_COUNTED: Final = {
    Foreground.CHOSEN_LABEL: "any value above 0",
    Foreground.MASK: "the value 1 only",
    Foreground.ONE: "the value 1 only",
    Foreground.UINT8: "any value that is not 0 as uint8",
}


def case_warnings(
    reference: LabelMap,
    prediction: LabelMap,
    measured: MeasuredPair,
    profile: Profile,
    label: float | None = None,
) -> tuple[str, ...]:
    """Return sentences about unusual values, geometry and shape of a scored case."""
    pair = measured.pair
    masks = (
        ("reference", reference, pair.reference),
        ("prediction", prediction, pair.prediction),
    )
    warnings = [_warn_of_values(name, labels, profile, label) for name, labels, _ in masks]
    warnings.append(_warn_of_affines(reference, prediction))
    warnings += _warn_of_files(reference, prediction)
    warnings.append(reference.grid.spacing_warning)
    warnings += [
        _warn_of_border(name, mask, pair.box, labels.grid.shape) for name, labels, mask in masks
    ]
    if (n_parts := measured.lesions.n) > 1:
        warnings.append(f"the reference consists of {n_parts} separate parts, scored together")
    return tuple(text for text in warnings if text)


def _warn_of_files(reference: LabelMap, prediction: LabelMap) -> list[str]:
    """Return the warnings from both files' headers, without duplicates."""
    by_text: dict[str, list[str]] = {}
    for name, labels in (("reference", reference), ("prediction", prediction)):
        for text in labels.warnings:
            by_text.setdefault(text, []).append(name)
    return [f"{' and '.join(names)} {text}" for text, names in by_text.items()]


def _warn_of_values(name: str, labels: LabelMap, profile: Profile, label: float | None) -> str:
    if _is_plain(labels.crop):
        return ""
    values = labels.values
    if is_soft(labels.crop) and not profile.takes_any_values and values not in ((), (1.0,)):
        return (
            f"the {name} is a soft mask (values up to {values[-1]:.6g}): {SOFT_THRESHOLD:g} and "
            "more is foreground"
        )
    if label is not None:
        return ""
    expected = len(values) <= 1
    if profile.takes_any_values:
        expected = values in ((), (1.0,))
    elif profile.overlap_foreground is Foreground.MASK:
        expected = values in ((), (1.0,), (255.0,))
    if expected:
        return ""
    overlap, distance = _COUNTED[profile.overlap_foreground], _COUNTED[profile.distance_foreground]
    counted = f"foreground is {overlap}"
    if overlap != distance:
        counted = f"Dice counts {overlap}, distances {distance}"
    return f"the {name} holds the values {listed_values(labels)}: {counted}"


def _is_plain(values: NDArray[Any]) -> bool:
    """Return whether an array certainly holds only 0 and 1, in two quick passes."""
    if values.dtype == np.bool_ or not values.size:
        return True
    if not np.issubdtype(values.dtype, np.integer):
        return False
    return bool(values.max() == 1 and values.min() >= 0)


def _warn_of_affines(reference: LabelMap, prediction: LabelMap) -> str:
    a, b = reference.grid, prediction.grid
    if a == b:
        return ""
    apart = a.farthest_corner_mm(b)
    if not a.is_same_place(b):
        identity = f"; {PREDICTION_IDENTITY}" if b.is_identity else ""
        return (
            f"{AFFINE_DIFFERS}: the masks lie up to {apart:.2f} mm apart ({a.differences(b)}"
            f"{identity}), which this profile ignores; {ON_REFERENCE}"
        )
    if apart <= _ROUNDING_VOXELS * min(a.spacing_mm):
        return ""
    return f"the affines differ slightly (up to {apart:.3f} mm); the reference's is used"


def _warn_of_border(name: str, mask: NDArray[Any], box: Box, shape: tuple[int, int, int]) -> str:
    axes = ", ".join(touched_axes(mask, box, shape))
    return f"the {name} touches the image border (along {axes})" if axes else ""


_EMPTINESS: Final = (Emptiness.NEITHER, Emptiness.ONE, Emptiness.BOTH)


def _find_emptiness(measured: MeasuredPair, of: EmptinessOf) -> Emptiness:
    if of is EmptinessOf.CONTOUR:
        there = measured.voxels.reference_to_prediction
        back = measured.voxels.prediction_to_reference
        return _EMPTINESS[(not there.size) + (not back.size)]
    return _EMPTINESS[(not measured.lesions.n) + (not measured.parts.n)]


def score_label_maps(
    case_id: str,
    reference: LabelMap | None,
    prediction: LabelMap | None,
    profile: Profile = CLINICAL,
    label: float | None = None,
) -> CaseScore:
    """Return the score of one case from the raw values of its mask files.

    Parameters
    ----------
    case_id
        Identifier of the case, copied into the score.
    reference, prediction
        Labels of the two files, None if a file is missing. The work is done on the joint crop, so
        nothing is expanded to the full grid.
    profile
        Definitions of foreground, grids, missing predictions, and Dice and IoU of two empty masks.
    label
        The label to score under a profile that lets the user choose; None scores all foreground.

    Returns
    -------
    CaseScore
        Undefined values are nan, and `reason` or `warning` says why. Masks that cannot be compared
        raise no error.

    Raises
    ------
    ValueError
        If both masks are missing, or `label` is 0 or given to a profile with its own foreground.
    """
    return score_and_measure(case_id, reference, prediction, profile, label)[0]


def score_and_measure(
    case_id: str,
    reference: LabelMap | None,
    prediction: LabelMap | None,
    profile: Profile = CLINICAL,
    label: float | None = None,
) -> tuple[CaseScore, MeasuredPair | None]:
    """Return the score of `score_label_maps` and the measurements (None without any)."""
    _check_label(profile, label)
    if reference is None:
        if prediction is None:
            raise ValueError(
                f"{case_id} has neither a reference nor a prediction; give at least one"
            )
        score = CaseScore(
            case_id,
            ScoreStatus.REFERENCE_MISSING,
            **_split_further(_measure_sizes(None, prediction, profile, label)),
            profile=profile.name,
            reason="there is no reference file to compare with",
        )
        return score, None
    if prediction is None:
        if reason := _not_a_mask(reference, profile, label):
            unreadable = ScoreStatus.REFERENCE_UNREADABLE
            return CaseScore(case_id, unreadable, profile=profile.name, reason=reason), None
        return _without_prediction(case_id, reference, profile, label)
    problem = _find_problem(reference, prediction, profile, label)
    if problem:
        status, reason = problem
        sizes = _measure_sizes(reference, prediction, profile, label)
        grids = dict.fromkeys(labels.grid.spacing_warning for labels in (reference, prediction))
        warning = "; ".join(filter(None, (*_warn_of_files(reference, prediction), *grids)))
        score = CaseScore(
            case_id,
            status,
            **_split_further(sizes),
            profile=profile.name,
            reason=reason,
            warning=warning,
        )
        return score, None
    aligned = laid_on(reference, prediction, profile)
    measured = measure_pair(reference, aligned, profile, label)
    score = _score_case(case_id, (reference, aligned), measured, profile, label)
    if aligned is not prediction:
        score = replace(score, warning="; ".join(filter(None, (_REORDERED, score.warning))))
    return score, measured


_REORDERED: Final = (
    "the axes of the prediction are stored in another order on the reference's grid: they were "
    "reordered, not resampled"
)


def _find_problem(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None
) -> tuple[ScoreStatus, str] | None:
    """Return why two masks cannot be compared under a profile, or None if they can."""
    if reason := _not_a_mask(reference, profile, label):
        return ScoreStatus.REFERENCE_UNREADABLE, f"the reference is not a mask: {reason}"
    aligned = laid_on(reference, prediction, profile)
    if problem := grid_problem(reference.grid, aligned.grid, profile):
        return ScoreStatus.GRID_MISMATCH, problem
    if reason := _not_a_mask(prediction, profile, label):
        return ScoreStatus.TOO_MANY_LABELS, f"the prediction is not a mask: {reason}"
    return None


def _not_a_mask(labels: LabelMap, profile: Profile, label: float | None) -> str:
    """Return why the values of a file are not a mask, or "" if they are acceptable."""
    if profile.takes_any_values or _is_plain(labels.crop):
        return ""
    takes_label = profile.distance_foreground is Foreground.CHOSEN_LABEL
    return explain_not_a_mask(labels.crop, label, takes_label=takes_label)


def norm_hd(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> float:
    """Return the normalised Hausdorff distance of a case, 0 (best) upwards; nan if undefined.

    The profile defines the distance, its divisor, its limit and the values for empty masks.

    Raises
    ------
    GridMismatchError
        If the profile does not compare masks on these grids.
    ValueError
        If `label` is 0 or given to a profile with its own foreground.
    """
    _check_label(profile, label)
    prediction = laid_on(reference, prediction, profile)
    problem = grid_problem(reference.grid, prediction.grid, profile)
    if problem:
        raise GridMismatchError(problem)
    measured = measure_pair(reference, prediction, profile, label)
    measure = metric(profile.distance).of_pair
    distance = float("nan") if measure is None else measure(measured.compared)
    return profile.norm_hd(distance, _find_emptiness(measured, profile.emptiness_of))


def _check_label(profile: Profile, label: float | None) -> None:
    if label is None:
        return
    if profile.distance_foreground is not Foreground.CHOSEN_LABEL:
        raise ValueError(
            f"the profile {profile.name} defines its own foreground, so the label {label:g} "
            "cannot be used; leave the label out or choose the profile clinical"
        )
    if label == 0:
        raise ValueError("the label 0 is background; choose another label")


def sizes_of_reference(
    reference: LabelMap, profile: Profile, label: float | None = None
) -> dict[str, float]:
    """Return the columns of a score that depend only on the reference, by name.

    Raises
    ------
    NotAMaskError
        If the values of the reference are not a mask under the profile.
    """
    if reason := _not_a_mask(reference, profile, label):
        raise NotAMaskError(f"the reference is not a mask: {reason}")
    return _measure_sizes(reference, None, profile, label)


def _measure_sizes(
    reference: LabelMap | None,
    prediction: LabelMap | None,
    profile: Profile,
    label: float | None,
) -> dict[str, Any]:
    """Return the metrics of each valid mask alone, on its own grid."""
    values: dict[str, float] = {}
    for mask, values_of in ((reference, reference_values), (prediction, prediction_values)):
        if mask is not None and not _not_a_mask(mask, profile, label):
            foreground = measured_foreground(mask, profile, label)
            values |= values_of(foreground, mask.grid.matrix_mm)
    return values


def _score_case(
    case_id: str,
    masks: tuple[LabelMap, LabelMap],
    measured: MeasuredPair,
    profile: Profile,
    label: float | None,
) -> CaseScore:
    reference, prediction = masks
    values: dict[str, Any] = pair_values(measured.compared)
    distance = values[profile.distance]
    values["norm_hd"] = profile.norm_hd(distance, _find_emptiness(measured, profile.emptiness_of))
    for spec in list_metrics():
        if spec.both_empty_by_profile:
            values[spec.name] = profile.overlap(values[spec.name])
    status = _decide_status(measured)
    warnings = case_warnings(reference, prediction, measured, profile, label)
    if status is ScoreStatus.OK and not measured.voxels.is_defined:
        warnings += ("a mask without a contour inside the image: hausdorff95_voxels is undefined",)
    # Both masks are measured on one grid: under some profiles their affines may differ.
    values |= _measure_sizes(reference, replace(prediction, grid=reference.grid), profile, label)
    return CaseScore(
        case_id,
        status,
        **_split_further(values),
        profile=profile.name,
        warning="; ".join(warnings),
        reason=_explain_status(status, reference, prediction, profile),
    )


def _split_further(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `CaseScore`, with the metrics of plugins in one separate field."""
    own = {name: value for name, value in values.items() if name in SCORE_COLUMNS}
    further = tuple((name, value) for name, value in values.items() if name not in SCORE_COLUMNS)
    return own | ({"further": further} if further else {})


def _without_prediction(
    case_id: str, reference: LabelMap, profile: Profile, label: float | None
) -> tuple[CaseScore, MeasuredPair | None]:
    missing = ScoreStatus.PREDICTION_MISSING
    if profile.missing_prediction is MissingPrediction.NOT_SCORED:
        score = CaseScore(
            case_id,
            missing,
            **_split_further(_measure_sizes(reference, None, profile, label)),
            profile=profile.name,
            reason=f"there is no prediction file, and the profile {profile.name} does not score "
            "a case without one",
        )
        return score, None
    nothing = nothing_on(reference.grid)
    measured = measure_pair(reference, nothing, profile, label)
    score = _score_case(case_id, (reference, nothing), measured, profile, label)
    reason = "there is no prediction file: scored as an empty prediction"
    if score.status is ScoreStatus.BOTH_EMPTY:
        reason += f"; {score.reason}"
    # A missing prediction has no volume, rather than a volume of 0.
    unknown: dict[str, Any] = dict.fromkeys(
        _measure_sizes(None, nothing, profile, label), float("nan")
    )
    score = replace(score, status=missing, reason=reason, **_split_further(unknown))
    return score, measured


def _decide_status(measured: MeasuredPair) -> ScoreStatus:
    match measured.lesions.n > 0, measured.parts.n > 0:
        case True, True:
            return ScoreStatus.OK
        case True, False:
            return ScoreStatus.PREDICTION_EMPTY
        case False, True:
            return ScoreStatus.REFERENCE_EMPTY
        case _:
            return ScoreStatus.BOTH_EMPTY


def _explain_status(
    status: ScoreStatus, reference: LabelMap, prediction: LabelMap, profile: Profile
) -> str:
    undefined = "Dice is 0 and distances are undefined"
    if status is ScoreStatus.PREDICTION_EMPTY:
        values = _describe_values(prediction, profile)
        return f"the prediction has no foreground{values}: {undefined}"
    if status is ScoreStatus.REFERENCE_EMPTY:
        values = _describe_values(reference, profile)
        return f"the reference has no foreground{values}: {undefined}"
    if status is ScoreStatus.BOTH_EMPTY:
        if not isnan(profile.overlap(float("nan"))):
            dice = f"Dice is {profile.overlap_both_empty:g} as the profile defines"
            return f"neither mask has foreground: {dice}, distances are undefined"
        return "neither mask has foreground: Dice and distances are undefined"
    return ""


def _describe_values(mask: LabelMap, profile: Profile) -> str:
    if mask.crop.size and is_soft(mask.crop) and not profile.takes_any_values:
        highest = float(np.fmax.reduce(mask.crop, axis=None))
        return f" (its largest value is {highest:.6g}; {SOFT_THRESHOLD:g} and above is foreground)"
    values = listed_values(mask)
    return f" (its values are {values})" if values else ""
