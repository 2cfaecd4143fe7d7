"""Measure masks by label, and by measures from other packages, as a definition specifies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.errors import CaseError, MamamiaError, is_of_system
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.definition import (
    MISSING_TEXTS,
    AbsentLabel,
    Better,
    ChallengeDefinition,
    Measure,
    definition_content,
    definition_of,
)
from napari_mamamia.features.challenge.scoring.defined_ranking import (
    CaseValue,
    MeasuredCases,
    ValueState,
)
from napari_mamamia.features.challenge.services.challenge.answers import (
    AnswerValues,
    find_measure,
    measure_case,
)
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.scoring.case.profiles import Profile, profile_named
from napari_mamamia.scoring.case.score import (
    grid_problem,
    laid_on,
    nothing_on,
    score_label_maps,
)
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import CaseInputs, CaseWork, Place
from napari_mamamia.services.score.score import FoundPairs

NO_MASK: Final = "there is no mask"


@dataclass(frozen=True, slots=True)
class MaskMeasuring:
    """Settings to pass to a worker process: the challenge definition as JSON, and the profile."""

    definition: str
    profile: str


@dataclass(frozen=True, slots=True)
class MaskValues:
    """A case's values in the order of the measures; `reason` says why a mask is not usable."""

    case_id: str
    values: tuple[CaseValue, ...]
    reason: str = ""


def measure_masks(
    definition: ChallengeDefinition,
    files: FoundPairs,
    profile: Profile,
    place: Place | None = None,
    store: Path | None = None,
) -> AnswerValues:
    """Measure a team's masks.

    Parameters
    ----------
    definition
        The definition.
    files
        Reference and mask of each case.
    profile
        The profile that defines the metrics of a region.
    place
        Where the cases are measured; None for this process.
    store
        File in which finished cases are stored, so that an interrupted run can be continued.

    Raises
    ------
    CaseError
        If a case could not be measured for a reason that is not the team's fault.
    """
    settings = MaskMeasuring(json.dumps(definition_content(definition)), profile.name)
    cases = [
        CaseInputs(case_id, tuple(path and path.absolute() for path in pair))
        for case_id, pair in files.pairs.items()
    ]
    work = CaseWork("measure masks", measure_mask, settings, MaskValues)
    batch = run_batch(cases, work, place, store=store, existing=Existing.RESUME)
    if batch.failures:
        failure = batch.failures[0]
        raise CaseError(
            f"expected values for each of {len(cases)} cases, but {len(batch.failures)} have none "
            f"({failure.case_id}: {failure.reason}): the submission was not scored; correct the "
            "cause, and run it again"
        )
    measured = tuple(
        MeasuredCases(measure.id, tuple(case.values[index] for case in batch.results))
        for index, measure in enumerate(definition.measures)
    )
    unusable = []
    for case in batch.results:
        reason = case.reason
        if reason == NO_MASK:
            problem = files.problems.get(case.case_id)
            worth = MISSING_TEXTS[definition.missing]
            reason = problem[1] if problem else f"{NO_MASK}; such cases {worth}"
        bad = (value.reason for value in case.values
               if not value.is_usable and value.state is not ValueState.NO_TRUTH)  # fmt: skip
        if reason := reason or next(bad, ""):
            unusable.append((case.case_id, reason))
    return AnswerValues(definition.name, measured, tuple(unusable))


def measure_mask(inputs: CaseInputs, settings: MaskMeasuring) -> MaskValues:
    """Measure one case.

    Raises
    ------
    CaseError
        If there is no reference.
    FormatError
        If the reference cannot be read, or the system does not allow reading the mask.
    """
    definition = definition_of(json.loads(settings.definition), "the definition")
    profile = profile_named(settings.profile)
    has_labels = bool(definition.answer.labels)
    reference, prediction, reason = _read_pair(inputs, profile, has_labels=has_labels)
    scores: dict[str, CaseScore] = {}
    values = []
    for measure in definition.measures:
        codes = definition.answer.labels.get(measure.label)
        regions = _select(reference, codes), _select(prediction, codes)
        spec = find_measure(definition, measure)
        if spec is not None and measure.worst is None and isinstance(spec.worst, int | float):
            measure = replace(measure, worst=float(spec.worst))
        if measure.label and not regions[0].crop.any():
            absent = definition.answer.absent
            mask = None if reason else regions[1]
            value = _value_absent(inputs.case_id, measure, mask, absent)
        elif spec is None:
            if measure.label not in scores:
                scores[measure.label] = score_label_maps(inputs.case_id, *regions, profile)
            value = _value_of_score(measure, scores[measure.label], has_mask=not reason)
        else:
            arrays = [_array_of(region, measure.label) for region in regions]
            answer = None if reason else arrays[1]
            given = (answer, arrays[0], reference.grid.spacing_mm)
            value = measure_case(spec, measure, inputs.case_id, answer, given)
        values.append(value)
    return MaskValues(inputs.case_id, tuple(values), reason)


def _read_pair(
    inputs: CaseInputs, profile: Profile, *, has_labels: bool
) -> tuple[LabelMap, LabelMap, str]:
    """Read both masks on the reference's grid; an unusable mask is empty and has a reason."""
    reference_path, path = inputs.files
    if reference_path is None:
        raise CaseError(f"expected a reference for {inputs.case_id}, but found none: restore it")
    reference = read_labels(reference_path)
    nothing = nothing_on(reference.grid)
    if path is None:
        return reference, nothing, NO_MASK
    try:
        prediction = read_labels(path)
    except MamamiaError as error:
        if is_of_system(error):
            raise
        return reference, nothing, str(error)
    reference, prediction = on_common_grid(reference, prediction)
    prediction = laid_on(reference, prediction, profile)
    problem = grid_problem(reference.grid, prediction.grid, profile)
    if not problem and has_labels and (prediction.crop != np.rint(prediction.crop)).any():
        problem = "expected whole numbers as labels, but found fractions"
    return (reference, nothing, problem) if problem else (reference, prediction, "")


def _select(labels: LabelMap, codes: Sequence[int] | None) -> LabelMap:
    """Return a label's region as 1; if `codes` is None, the region of the whole mask."""
    if codes is None:
        return labels
    return replace(labels, crop=np.isin(labels.crop, codes).astype(np.uint8))


def _array_of(region: LabelMap, label: str) -> np.ndarray[Any, Any]:
    array = region.dense()
    return array != 0 if label else array


def _list_worst(measure: Measure) -> tuple[tuple[float, ...], ...]:
    return () if measure.worst is None else ((measure.worst,),)


def _value_absent(
    case_id: str, measure: Measure, prediction: LabelMap | None, absent: AbsentLabel
) -> CaseValue:
    """Return the value of a case whose reference does not contain the label."""
    worst, reason = _list_worst(measure), f"the reference does not have the label {measure.label}"
    if absent is AbsentLabel.LEAVE_OUT:
        return CaseValue(case_id, (), (), ValueState.NO_TRUTH, reason)
    if prediction is None:
        return CaseValue(case_id, (), worst, ValueState.FAILED)
    if not prediction.crop.any():
        return CaseValue(case_id, ((float(measure.better is Better.HIGH),),), worst)
    if worst:
        return CaseValue(case_id, worst, worst)
    return CaseValue(case_id, (), (), ValueState.NOT_DEFINED, f"{reason}, but the mask has it")


def _value_of_score(measure: Measure, score: CaseScore, *, has_mask: bool) -> CaseValue:
    """Return one column of a region's score as a case value."""
    number = float(getattr(score, measure.of))
    worst = _list_worst(measure)
    if not has_mask:
        return CaseValue(score.case_id, (), worst, ValueState.FAILED)
    if score.status is ScoreStatus.OK and isfinite(number):
        return CaseValue(score.case_id, ((number,),), worst)
    what = f"label {measure.label}: " if measure.label else ""
    reason = f"{what}{score.reason or f'{measure.of} is not defined'}"
    return CaseValue(score.case_id, (), worst, ValueState.NOT_DEFINED, reason)
