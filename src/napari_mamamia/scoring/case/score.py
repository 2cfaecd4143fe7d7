"""One case: two masks and a profile in, a `CaseScore` out."""

from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.metrics.overlap import dice_and_iou
from napari_mamamia.metrics.surface import (
    ContourRule,
    SurfaceDistances,
    assd,
    contour_pair,
    distances_between,
    hausdorff,
    hausdorff95,
    nsd,
)
from napari_mamamia.scoring.case.pair import (
    MaskPair,
    foreground_diameter_mm,
    foreground_volume_mm3,
    listed_values,
    pair_of,
)
from napari_mamamia.scoring.case.profiles import (
    CLINICAL,
    Distance,
    Emptiness,
    EmptinessOf,
    Foreground,
    GridRule,
    MissingPrediction,
    Profile,
)

# What is unusual about a case that could be scored, in plain words.

_ROUNDING_VOXELS: Final = 0.01
"""Affines that differ by less, at the farthest corner, differ by float32 rounding (see
`core.grid.SAME_PLACE_VOXELS`) and are not worth a warning."""

_COUNTED: Final = {
    Foreground.CHOSEN_LABEL: "any value above 0 (in soft masks at least 0.5)",
    Foreground.ONE: "the value 1 only",
    Foreground.UINT8: "any value that is not 0 as uint8",
}


def case_warnings(
    reference: LabelMap,
    prediction: LabelMap,
    pair: MaskPair,
    profile: Profile,
    label: float | None = None,
) -> tuple[str, ...]:
    """Return plain sentences on unusual values, geometry and shape of a scored case."""
    masks = (
        ("reference", reference, pair.reference),
        ("prediction", prediction, pair.prediction),
    )
    found = [_values(name, labels, profile, label) for name, labels, _ in masks]
    found.append(_affines(reference, prediction))
    found += [_border(name, mask, pair.box, labels.grid.shape) for name, labels, mask in masks]
    found.append(_parts(pair.reference != 0))
    return tuple(text for text in found if text)


def _values(name: str, labels: LabelMap, profile: Profile, label: float | None) -> str:
    if label is not None or _is_plain(labels.crop):
        return ""
    values = labels.values
    expected = len(values) <= 1
    if profile.overlap_foreground is not Foreground.CHOSEN_LABEL:
        expected = values in ((), (1.0,))
    if expected:
        return ""
    overlap, distance = _COUNTED[profile.overlap_foreground], _COUNTED[profile.distance_foreground]
    counted = f"foreground is {overlap}"
    if overlap != distance:
        counted = f"Dice counts {overlap}, distances {distance}"
    return f"the {name} holds the values {listed_values(labels)}: {counted}"


def _is_plain(values: NDArray[Any]) -> bool:
    """Whether an array surely holds nothing but 0 and 1, at the cost of two quick passes."""
    if values.dtype == np.bool_ or not values.size:
        return True
    if not np.issubdtype(values.dtype, np.integer):
        return False
    return bool(values.max() == 1 and values.min() >= 0)


def _affines(reference: LabelMap, prediction: LabelMap) -> str:
    a, b = reference.grid, prediction.grid
    if a == b:
        return ""
    apart = a.farthest_corner_mm(b)
    if not a.is_same_place(b):
        return (
            f"affine_differs: the masks lie up to {apart:.2f} mm apart, which this profile "
            "ignores; mm are measured on the reference's grid"
        )
    if apart <= _ROUNDING_VOXELS * min(a.spacing_mm):
        return ""
    return f"the affines differ slightly (up to {apart:.3f} mm); the reference's is used"


def _border(name: str, mask: NDArray[Any], box: Box, shape: tuple[int, int, int]) -> str:
    touched = []
    for axis, letter in enumerate("zyx"):
        planes = np.moveaxis(mask, axis, 0)
        if shape[axis] == 1 or not planes.size:
            continue
        low = box.start[axis] == 0 and planes[0].any()
        high = box.stop[axis] == shape[axis] and planes[-1].any()
        if low or high:
            touched.append(letter)
    axes = ", ".join(touched)
    return f"the {name} touches the image border (along {axes})" if touched else ""


def _parts(reference: NDArray[np.bool_]) -> str:
    own = reference[Box.around(reference).slices]
    label: Any = ndimage.label  # type: ignore[attr-defined, unused-ignore]
    _, n_parts = label(own)  # sharing faces alone: quicker, and one part is one part
    if n_parts > 1:
        _, n_parts = label(own, structure=np.ones((3, 3, 3)))
    if n_parts < 2:
        return ""
    return f"the reference consists of {n_parts} separate parts, scored together"


_EMPTINESS: Final = (Emptiness.NEITHER, Emptiness.ONE, Emptiness.BOTH)


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """A pair of masks with its distances, one computation for each contour rule and unit."""

    pair: MaskPair
    mm: SurfaceDistances
    voxels: SurfaceDistances

    def emptiness(self, of: EmptinessOf) -> Emptiness:
        if of is EmptinessOf.CONTOUR:
            there, back = self.voxels.reference_to_prediction, self.voxels.prediction_to_reference
            return _EMPTINESS[(not there.size) + (not back.size)]
        return _EMPTINESS[(not self.pair.reference.any()) + (not self.pair.prediction.any())]

    def distance(self, column: Distance) -> float:
        if column is Distance.HAUSDORFF95_VOXELS:
            return hausdorff95(self.voxels)
        return hausdorff(self.mm) if column is Distance.HAUSDORFF_MM else hausdorff95(self.mm)

    def norm_hd(self, profile: Profile) -> float:
        emptiness = self.emptiness(profile.emptiness_of)
        return profile.norm_hd(self.distance(profile.distance), emptiness)


def score_masks(
    case_id: str, reference: Mask, prediction: Mask, profile: Profile = CLINICAL
) -> CaseScore:
    """Return the score of `prediction`; a foreground voxel counts as the value 1.

    Nothing is raised for masks that cannot be compared: `status` and `reason` tell. A few
    milliseconds for a lesion of ordinary size, most of them to find it.
    """
    return score_label_maps(case_id, _as_labels(reference), _as_labels(prediction), profile)


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
        Goes into the score as it is.
    reference, prediction
        None where the file is missing. Nothing is made dense: the work is done on the joint crop.
    profile
        Says which values are foreground, what differing grids and missing predictions mean, and
        what Dice and IoU of two empty masks are.
    label
        The one label to score, for a profile that lets the user choose; None takes all foreground.

    Returns
    -------
    CaseScore
        What is undefined is nan, and `reason` or `warning` says why. Nothing is raised for masks
        that cannot be compared.

    Raises
    ------
    ValueError
        If both masks are missing, or `label` is 0 or given to a profile with its own foreground.
    """
    _check_label(profile, label)
    if reference is None:
        if prediction is None:
            raise ValueError(f"{case_id} has neither a reference nor a prediction: give one")
        return CaseScore(
            case_id,
            ScoreStatus.REFERENCE_MISSING,
            volume_prediction_mm3=foreground_volume_mm3(prediction, profile, label),
            profile=profile.name,
            reason="there is no reference file, so nothing can be compared",
        )
    if prediction is None:
        return _without_prediction(case_id, reference, profile, label)
    problem = _grid_problem(reference, prediction, profile)
    if problem:
        return CaseScore(
            case_id,
            ScoreStatus.GRID_MISMATCH,
            volume_reference_mm3=foreground_volume_mm3(reference, profile, label),
            volume_prediction_mm3=foreground_volume_mm3(prediction, profile, label),
            diameter_reference_mm=foreground_diameter_mm(reference, profile, label),
            profile=profile.name,
            reason=problem,
        )
    return _scored(case_id, reference, prediction, profile, label)


def norm_hd(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None = None
) -> float:
    """Return the normalised Hausdorff distance of a case, 0 (best) upwards; nan if undefined.

    Which distance, its divisor, its limit and the values of empty masks are the profile's.

    Raises
    ------
    GridMismatchError
        If the profile does not compare masks on these grids.
    ValueError
        If `label` is 0 or given to a profile with its own foreground.
    """
    _check_label(profile, label)
    problem = _grid_problem(reference, prediction, profile)
    if problem:
        raise GridMismatchError(problem)
    return _measure(reference, prediction, profile, label).norm_hd(profile)


def _as_labels(mask: Mask) -> LabelMap:
    box = Box.around(mask.array)
    return LabelMap(mask.grid, box, mask.array[box.slices])


def _check_label(profile: Profile, label: float | None) -> None:
    if label is None:
        return
    if profile.distance_foreground is not Foreground.CHOSEN_LABEL:
        raise ValueError(
            f"the profile {profile.name} has its own rule for foreground, got label {label:g}: "
            "leave the label out or take the profile clinical"
        )
    if label == 0:
        raise ValueError("label 0 is background: choose a label other than 0")


def _grid_problem(reference: LabelMap, prediction: LabelMap, profile: Profile) -> str:
    """Return why the profile does not compare the two grids, "" if it does."""
    same_shape = reference.grid.shape == prediction.grid.shape
    if same_shape and profile.grid_rule is GridRule.SAME_SHAPE:
        return ""
    try:
        require_same_grid(reference.grid, prediction.grid, "the reference", "the prediction")
    except GridMismatchError as error:
        return str(error)
    return ""


def _measure(
    reference: LabelMap, prediction: LabelMap, profile: Profile, label: float | None
) -> _Measured:
    pair = pair_of(reference, prediction, profile, label)
    matrix_mm = reference.grid.matrix_mm
    opened = contour_pair(pair.reference, pair.prediction, ContourRule.OPEN)
    if opened.is_plain:
        return _Measured(pair, *distances_between(opened, (matrix_mm, None)))
    foregrounds = pair.reference != 0, pair.prediction != 0
    closed = contour_pair(*foregrounds, ContourRule.CLOSED)
    (mm,), (voxels,) = distances_between(closed, (matrix_mm,)), distances_between(opened, (None,))
    return _Measured(pair, mm, voxels)


def _scored(
    case_id: str,
    reference: LabelMap,
    prediction: LabelMap,
    profile: Profile,
    label: float | None,
) -> CaseScore:
    measured = _measure(reference, prediction, profile, label)
    pair, mm = measured.pair, measured.mm
    dsc, shared_share = dice_and_iou(pair.overlap_reference, pair.overlap_prediction)
    distances = {column: measured.distance(column) for column in Distance}
    status = _status(pair)
    warnings = case_warnings(reference, prediction, pair, profile, label)
    if status is ScoreStatus.OK and not measured.voxels.is_defined:
        warnings += ("a mask without contour inside the image: hausdorff95_voxels is undefined",)
    return CaseScore(
        case_id,
        status,
        dsc=profile.overlap(dsc),
        iou=profile.overlap(shared_share),
        hausdorff95_mm=distances[Distance.HAUSDORFF95_MM],
        hausdorff95_voxels=distances[Distance.HAUSDORFF95_VOXELS],
        hausdorff_mm=distances[Distance.HAUSDORFF_MM],
        assd_mm=assd(mm),
        nsd_1mm=nsd(mm, 1.0),
        nsd_2mm=nsd(mm, 2.0),
        norm_hd=profile.norm_hd(
            distances[profile.distance], measured.emptiness(profile.emptiness_of)
        ),
        volume_reference_mm3=foreground_volume_mm3(reference, profile, label),
        volume_prediction_mm3=foreground_volume_mm3(prediction, profile, label),
        diameter_reference_mm=foreground_diameter_mm(reference, profile, label),
        profile=profile.name,
        warning="; ".join(warnings),
        reason=_reason(status, reference, prediction, profile),
    )


def _without_prediction(
    case_id: str, reference: LabelMap, profile: Profile, label: float | None
) -> CaseScore:
    missing = ScoreStatus.PREDICTION_MISSING
    if profile.missing_prediction is MissingPrediction.NOT_SCORED:
        return CaseScore(
            case_id,
            missing,
            volume_reference_mm3=foreground_volume_mm3(reference, profile, label),
            diameter_reference_mm=foreground_diameter_mm(reference, profile, label),
            profile=profile.name,
            reason=f"there is no prediction file, and the profile {profile.name} does not score "
            "such a case",
        )
    nothing = LabelMap(reference.grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))
    score = _scored(case_id, reference, nothing, profile, label)
    reason = "there is no prediction file: scored as an empty prediction"
    if score.status is ScoreStatus.BOTH_EMPTY:
        reason += f"; {score.reason}"
    return replace(score, status=missing, volume_prediction_mm3=float("nan"), reason=reason)


def _status(pair: MaskPair) -> ScoreStatus:
    match bool(pair.reference.any()), bool(pair.prediction.any()):
        case True, True:
            return ScoreStatus.OK
        case True, False:
            return ScoreStatus.PREDICTION_EMPTY
        case False, True:
            return ScoreStatus.REFERENCE_EMPTY
        case _:
            return ScoreStatus.BOTH_EMPTY


def _reason(
    status: ScoreStatus, reference: LabelMap, prediction: LabelMap, profile: Profile
) -> str:
    undefined = "Dice is 0 and distances are undefined"
    if status is ScoreStatus.PREDICTION_EMPTY:
        return f"the prediction has no foreground{_instead(prediction)}: {undefined}"
    if status is ScoreStatus.REFERENCE_EMPTY:
        return f"the reference has no foreground{_instead(reference)}: {undefined}"
    if status is ScoreStatus.BOTH_EMPTY:
        if not isnan(profile.overlap(float("nan"))):
            given = f"Dice is {profile.overlap_both_empty:g} by the profile"
            return f"neither mask has foreground: {given}, distances are undefined"
        return "neither mask has foreground: Dice and distances are undefined"
    return ""


def _instead(mask: LabelMap) -> str:
    values = listed_values(mask)
    return f" (its values are {values})" if values else ""
