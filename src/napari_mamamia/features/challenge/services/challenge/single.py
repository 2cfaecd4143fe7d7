"""Measure one submission by a challenge definition, without a challenge."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np

from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.definition import ChallengeDefinition
from napari_mamamia.features.challenge.io.handed_in import find_handed_masks
from napari_mamamia.features.challenge.scoring.defined_ranking import (
    evaluate_formula,
    measure_team,
)
from napari_mamamia.features.challenge.services.challenge.answers import (
    list_truth,
    load_models,
    measure_folder,
    measure_rules,
    require_measures,
)
from napari_mamamia.features.challenge.services.challenge.attempt import pair_files
from napari_mamamia.features.challenge.services.challenge.mask_answers import measure_masks
from napari_mamamia.io.data_set.mask_files import find_masks, no_mask_error
from napari_mamamia.scoring.case.profiles import CLINICAL, profile_named


@dataclass(frozen=True, slots=True)
class AnswerNumbers:
    """A submission's measures by id (NaN if undefined), and its score (NaN without a formula).

    `problems` says, by id, why a measure was not computed.
    """

    numbers: Mapping[str, float]
    score: float
    problems: Mapping[str, str]
    unusable: tuple[tuple[str, str], ...]
    n: int


def score_answers(
    definition: ChallengeDefinition, root: Path, folder: Path, models: Mapping[str, str]
) -> AnswerNumbers:
    """Measure one submission, without a challenge.

    Parameters
    ----------
    definition
        The definition.
    root
        The folder of the truth, or of the reference masks.
    folder
        The folder of the submission's files.
    models
        Kinds of models by role.

    Raises
    ------
    MamamiaError
        The errors of `list_truth`, `load_models`, `require_measures`, `measure_folder` and
        `measure_masks`.
    """
    if definition.is_by_profile:
        raise FormatError(
            f"expected a definition with its own measures, but {definition.name} ranks by numbers "
            f"of the profile: score {definition.answer.kind.value} with `mamamia score`"
        )
    require_measures(definition)
    rules = measure_rules(definition)
    if definition.has_own_files:
        case_ids, _ = list_truth(definition, root)
        values = measure_folder(definition, root, folder, case_ids, load_models(models, Path()))
    else:
        references: dict[str, Path | None] = dict(find_masks(root))
        case_ids = tuple(references)
        if not case_ids:
            raise no_mask_error(root)
        files = pair_files(references, find_handed_masks(folder, case_ids)[0])
        profile = profile_named(definition.profile or CLINICAL.name)
        values = measure_masks(definition, files, profile)
    problems = {measure.id: measure.problem for measure in values.measures if measure.problem}
    full = np.ones((1, len(case_ids)), dtype=np.int64)
    numbers = {
        rule.measure.id: float(
            measure_team(rule, values.by_id[rule.measure.id].values, definition)(full)[0]
        )
        for rule in rules
        if rule.measure.id not in problems
    }
    formula = definition.ranking.score
    score = float(evaluate_formula(formula, numbers)) if formula and not problems else nan
    return AnswerNumbers(numbers, score, problems, values.unusable, len(case_ids))
