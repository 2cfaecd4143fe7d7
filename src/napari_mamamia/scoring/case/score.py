"""Compute the `CaseScore` of one case from two masks and a profile, on their joint crop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import (
    SOFT_THRESHOLD,
    LabelMap,
    explain_not_a_mask,
    foreground,
    is_soft,
)
from napari_mamamia.core.errors import GridMismatchError, NotAMaskError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.records import SCORE_COLUMNS, CaseScore, ScoreStatus
from napari_mamamia.core.reorientation import reorientation_onto
from napari_mamamia.metrics import surface
from napari_mamamia.metrics.compared import ComparedMasks
from napari_mamamia.metrics.lesions import Parts, parts_of
from napari_mamamia.metrics.registry import (
    list_metrics,
    metric,
    pair_values,
    prediction_values,
    reference_values,
)
from napari_mamamia.metrics.volume import volume_mm3
from napari_mamamia.scoring.case.profiles import (
    CLINICAL,
    Emptiness,
    EmptinessOf,
    Foreground,
    GridRule,
    MissingPrediction,
    Profile,
)

_VALUES_LISTED: Final = 5
# Warnings about a case that could be scored, in plain words.

_ROUNDING_VOXELS: Final = 0.01
"""Largest affine difference, in voxels, that counts as float32 rounding without a warning.

The difference is measured at the farthest corner (see `core.grid.SAME_PLACE_VOXELS`).
"""

OTHER_VALUES: Final = "contains the values"
"""Text in the warning about a mask with more values than the profile expects."""
AFFINE_DIFFERS: Final = "affine_differs"
"""Start of the warning about a case that is scored although its affines differ."""
PREDICTION_IDENTITY: Final = "the prediction's grid is an identity"
ON_REFERENCE: Final = "mm are measured on the reference's grid"

_COUNTED: Final = {
    Foreground.CHOSEN_LABEL: "any value above 0",
    Foreground.MASK: "only the value 1",
    Foreground.ONE: "only the value 1",
    Foreground.UINT8: "any value that is not 0 as uint8",
}


@dataclass(frozen=True, slots=True, eq=False)
class MaskPair:
    """Reference and prediction on `box`, which is their joint crop with a margin of one voxel.

    All arrays have the shape of the box. The first two arrays are bool and are used for Dice and
    IoU. The last two are used for distances; they are bool, or uint8 labels if the profile keeps
    labels separate.
    """

    box: Box
    overlap_reference: NDArray[np.bool_]
    overlap_prediction: NDArray[np.bool_]
    reference: NDArray[Any]
    prediction: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPair:
    """Measurements of a pair of masks on `grid`, which the score and the failure kinds share.

    `mm` contains the distances between `contours` under the contour rule CLOSED, and `voxels` the
    distances under the rule OPEN. `lesions` and `parts` are the connected parts of the reference
    and of the prediction in the foreground that is used for distances.
    """

    pair: MaskPair
    grid: Grid
    contours: surface.ContourPair
    mm: surface.SurfaceDistances
    voxels: surface.SurfaceDistances
    lesions: Parts
    parts: Parts

    @property
    def compared(self) -> ComparedMasks:
        """The input of the metrics: the foreground for Dice, and the distances."""
        masks = self.pair.overlap_reference, self.pair.overlap_prediction
        return ComparedMasks(*masks, self.grid.matrix_mm, self.mm, self.voxels)


def grid_problem(reference: Grid, prediction: Grid, profile: Profile) -> str:
    """Return why the profile does not allow masks on these two grids to be compared, or ""."""
    if profile.grid_rule is GridRule.SAME_SHAPE and reference.shape == prediction.shape:
        return ""
    try:
        require_same_grid(reference, prediction, "the reference", "the prediction")
    except GridMismatchError as error:
        return str(error)
    return ""


def laid_on(reference: LabelMap, prediction: LabelMap, profile: Profile) -> LabelMap:
    """Return the prediction in the reference's axis order, if both masks use one physical grid.

    Nothing is resampled: axes are only permuted and flipped. A prediction on another grid is
    returned unchanged, as is any prediction under a profile that compares only shapes.
    """
    if profile.grid_rule is GridRule.SAME_SHAPE or prediction.grid.is_same_place(reference.grid):
        return prediction
    turn = reorientation_onto(prediction.grid, reference.grid)
    if turn is None:
        return prediction
    crop = turn.array(prediction.crop) if prediction.crop.size else prediction.crop
    return replace(prediction, grid=turn.target, box=turn.box(prediction.box), crop=crop)


def nothing_on(grid: Grid) -> LabelMap:
    """Return a label map without foreground, as a replacement for a missing mask."""
    return LabelMap(grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))


def measure_pair(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MeasuredPair:
    """Return both masks with their distances and components.

    The arguments are those of `pair_of`.
    """
    pair = pair_of(reference, prediction, profile, label)
    matrix_mm = reference.grid.matrix_mm
    foregrounds = pair.reference != 0, pair.prediction != 0
    opened = surface.contour_pair(pair.reference, pair.prediction, surface.ContourRule.OPEN)
    if opened.is_plain:
        closed = opened
        mm, voxels = surface.distances_between(opened, (matrix_mm, None))
    else:
        closed = surface.contour_pair(*foregrounds, surface.ContourRule.CLOSED)
        (mm,) = surface.distances_between(closed, (matrix_mm,))
        (voxels,) = surface.distances_between(opened, (None,))
    lesions, parts = parts_of(foregrounds[0]), parts_of(foregrounds[1])
    return MeasuredPair(pair, reference.grid, closed, mm, voxels, lesions, parts)


def pair_of(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> MaskPair:
    """Return both masks on their joint crop; the grids must have the same shape.

    `label` is the label to score under a profile that lets the user choose; if None, all foreground
    is scored.
    """
    box = reference.box.union(prediction.box)
    if not box.is_empty:
        # The contour lies between foreground and background, so the crop needs a margin of
        # background.
        box = box.grown((1, 1, 1), reference.grid.shape)
    values_r, values_p = reference.cut(box), prediction.cut(box)
    return MaskPair(
        box,
        _as_bool(_select_foreground(values_r, profile.overlap_foreground, label)),
        _as_bool(_select_foreground(values_p, profile.overlap_foreground, label)),
        _select_foreground(values_r, profile.distance_foreground, label),
        _select_foreground(values_p, profile.distance_foreground, label),
    )


def touched_axes(mask: NDArray[Any], box: Box, shape: tuple[int, int, int]) -> list[str]:
    """Return the axes "z", "y", "x" along which a mask on the crop `box` reaches the image border.

    An axis of 1 voxel has no border.
    """
    touched = []
    for axis, letter in enumerate("zyx"):
        if shape[axis] == 1 or not mask.size:
            continue
        planes = np.moveaxis(mask, axis, 0)
        low = box.start[axis] == 0 and planes[0].any()
        if low or (box.stop[axis] == shape[axis] and planes[-1].any()):
            touched.append(letter)
    return touched


def foreground_volume_mm3(mask: LabelMap, profile: Profile, label: float | None = None) -> float:
    """Return the volume in mm3 of the foreground that the profile uses for distances."""
    return volume_mm3(measured_foreground(mask, profile, label), mask.grid.matrix_mm)


def measured_foreground(
    mask: LabelMap, profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return the mask's foreground for distances under the profile, as a bool array on its crop."""
    return _as_bool(_select_foreground(mask.crop, profile.distance_foreground, label))


def foreground_of(
    values: NDArray[Any], profile: Profile, label: float | None = None
) -> NDArray[np.bool_]:
    """Return the foreground of raw label values for Dice under the profile, as a bool array."""
    chosen: NDArray[np.bool_] = _select_foreground(values, profile.overlap_foreground, label) != 0
    return chosen


def listed_values(mask: LabelMap) -> str:
    """Return the first distinct non-zero values of a mask, such as "1, 2", or "" if it is empty."""
    values = mask.values
    listed = ", ".join(f"{value:g}" for value in values[:_VALUES_LISTED])
    return f"{listed}, ..." if len(values) > _VALUES_LISTED else listed


def _as_bool(values: NDArray[Any]) -> NDArray[np.bool_]:
    return values if values.dtype == np.bool_ else values != 0


def _select_foreground(values: NDArray[Any], rule: Foreground, label: float | None) -> NDArray[Any]:
    if rule is Foreground.CHOSEN_LABEL:
        return foreground(values, label)
    if rule is Foreground.ONE:
        return np.asarray(values == 1)
    if rule is Foreground.MASK:
        if is_soft(values):
            return foreground(values)
        present = values[values != 0]
        return np.asarray(values == (255 if present.size and (present == 255).all() else 1))
    return _wrap_to_uint8(values)


def _wrap_to_uint8(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return values as C casts them to uint8: truncated modulo 256, with nan and infinity as 0.

    The conversion is explicit because casts of floats outside 0 to 255 are undefined in C and
    differ between processors.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return values.astype(np.uint8)
    finite = np.where(np.isfinite(values), values, 0)
    return np.fmod(np.trunc(finite), 256).astype(np.int16).astype(np.uint8)


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
        warnings.append(
            f"the reference consists of {n_parts} separate parts, which are scored together"
        )
    return tuple(text for text in warnings if text)


def _warn_of_files(reference: LabelMap, prediction: LabelMap) -> list[str]:
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
            f"the {name} is a soft mask (values up to {values[-1]:.6g}); values of at least "
            f"{SOFT_THRESHOLD:g} are foreground"
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
    return f"the {name} {OTHER_VALUES} {listed_values(labels)}: {counted}"


def _is_plain(values: NDArray[Any]) -> bool:
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
    """Return the score of one case, computed from the raw values of its mask files.

    Parameters
    ----------
    case_id
        Identifier of the case, copied into the score.
    reference, prediction
        Labels of the two files, or None if a file is missing. The computation uses the joint crop,
        so nothing is expanded to the full grid.
    profile
        Definitions of foreground, grids, missing predictions, and Dice and IoU of two empty masks.
    label
        The label to score under a profile that lets the user choose; if None, all foreground is
        scored.

    Returns
    -------
    CaseScore
        The score. Undefined values are nan, and `reason` or `warning` explains why. Masks that
        cannot be compared raise no error.

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
    """Return the score of `score_label_maps`, and the measurements, or None if there are none."""
    _check_label(profile, label)
    if reference is None:
        if prediction is None:
            raise ValueError(
                f"expected a reference or a prediction for {case_id}, but found neither: pass at "
                "least one of them"
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
    "the prediction is on the reference's grid, but its axes are stored in a different order, so "
    "they were reordered without resampling"
)


def _find_problem(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None
) -> tuple[ScoreStatus, str] | None:
    if reason := _not_a_mask(reference, profile, label):
        return ScoreStatus.REFERENCE_UNREADABLE, f"the reference is not a mask: {reason}"
    aligned = laid_on(reference, prediction, profile)
    if problem := grid_problem(reference.grid, aligned.grid, profile):
        return ScoreStatus.GRID_MISMATCH, problem
    if reason := _not_a_mask(prediction, profile, label):
        return ScoreStatus.TOO_MANY_LABELS, f"the prediction is not a mask: {reason}"
    return None


def _not_a_mask(labels: LabelMap, profile: Profile, label: float | None) -> str:
    if profile.takes_any_values or _is_plain(labels.crop):
        return ""
    takes_label = profile.distance_foreground is Foreground.CHOSEN_LABEL
    return explain_not_a_mask(labels.crop, label, takes_label=takes_label)


def norm_hd(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> float:
    """Return the normalised Hausdorff distance of a case, from 0 (best) upwards; nan if undefined.

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
            "cannot be used; leave out the label, or choose the clinical profile"
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
        warnings += ("a mask has no contour inside the image, so hausdorff95_voxels is undefined",)
    # The masks are measured on one grid, because under some profiles their affines may differ.
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
    reason = "there is no prediction file, so the case was scored as an empty prediction"
    if score.status is ScoreStatus.BOTH_EMPTY:
        reason += f"; {score.reason}"
    # A missing prediction has no volume rather than a volume of 0.
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
        return (
            f" (its largest value is {highest:.6g}; values of at least {SOFT_THRESHOLD:g} are "
            "foreground)"
        )
    values = listed_values(mask)
    return f" (its values are {values})" if values else ""
