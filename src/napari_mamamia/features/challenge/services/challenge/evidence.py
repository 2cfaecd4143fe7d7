"""Check ranked entries: chance, gate, copied references, identical masks, level-down effect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import CompositeName
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.names import count_of
from napari_mamamia.core.records import CaseScore
from napari_mamamia.features.challenge.io.answer_files import file_name
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge
from napari_mamamia.features.challenge.io.definition import AnswerKind, ChallengeDefinition
from napari_mamamia.features.challenge.io.file_list import read_file_list
from napari_mamamia.features.challenge.io.handed_in import SubmissionKind, read_manifest
from napari_mamamia.features.challenge.io.leaderboard_file import (
    Board,
    BoardRow,
    ChanceEvidence,
    LevelDown,
)
from napari_mamamia.features.challenge.io.ledger import Attempt
from napari_mamamia.features.challenge.services.challenge.answers import (
    AnswerValues,
    read_definitions,
)
from napari_mamamia.scoring.cohort.groups import group_cases, rules_of
from napari_mamamia.scoring.cohort.ranking import CompositeChoice, ScoredModel, composite_results
from napari_mamamia.scoring.cohort.results import ModelScores, ResponseResult
from napari_mamamia.services.score.clinical_table import matched
from napari_mamamia.services.score.report import count_model, make_composite

_ALPHA: Final = 0.05
_NEAR: Final = 0.999
LEVELS: Final = (1, 2, 3)
"""Numbers of worst cases that are omitted in the check for the level-down effect."""


def compare_with_chance(result: ResponseResult) -> ChanceEvidence | None:
    """Compare responses with chance by a permutation test; None if all labels are equal.

    Permutation keeps the numbers of responders and of predicted responders. Balanced accuracy
    therefore increases with the number of true positives, which has a hypergeometric distribution,
    and the p-value is exact.
    """
    from scipy.stats import hypergeom

    predictions = result.predictions
    is_known = ~np.isnan(predictions.label)
    label, predicted = predictions.label[is_known] == 1, predictions.predicted[is_known] == 1
    n_yes = int(label.sum())
    if n_yes in (0, label.size):
        return None
    n_hits = int((label & predicted).sum())
    p_value = float(hypergeom.sf(n_hits - 1, label.size, n_yes, int(predicted.sum())))
    auc = result.delong
    numbers = (None if isnan(value) else float(value) for value in (auc.auc, auc.low, auc.high))
    return ChanceEvidence(p_value, p_value < _ALPHA, *numbers)


def apply_gate(
    board: Board, models: Mapping[str, ScoredModel], gate: float | None, weight: float
) -> Board:
    """Add the gated score and rank of each ranked team, if the challenge has a gate.

    Parameters
    ----------
    board
        The teams of a task.
    models
        Performance and fairness by team.
    gate
        Minimum performance for fairness to count; None for no gate.
    weight
        Weight of fairness.
    """
    ranked = [models[row.team] for row in board.rows if row.rank is not None and row.team in models]
    if gate is None or not ranked:
        return board
    choice = CompositeChoice((CompositeName.GATED,), gate)
    (result,) = composite_results(ranked, choice, weight)
    gated = {score.name: score for score in result.scores if not isnan(score.value)}
    rows = [
        replace(row, gated_score=gated[row.team].value, gated_rank=int(gated[row.team].rank))
        if row.team in gated
        else row
        for row in board.rows
    ]
    return replace(board, rows=tuple(rows), gate=result.definition)


def count_copies(
    opened: OpenChallenge, attempt: Attempt, rows: Sequence[CaseScore]
) -> tuple[int, int]:
    """Count the files that are byte-for-byte copies of references, and nearly equal masks.

    Parameters
    ----------
    opened
        The challenge.
    attempt
        The displayed attempt.
    rows
        Scores of the attempt's cases.
    """
    folder = opened.results(attempt.team, attempt.digest)
    references = {case.reference.sha256 for case in opened.challenge.cases if case.reference}
    references |= find_secret_files(opened)
    if attempt.kind == SubmissionKind.PROGRAM:
        files = read_file_list(folder).files
    else:
        files = read_manifest(folder).files
    n_copies = sum(file.sha256 in references for file in files)
    return n_copies, max(0, sum(row.dsc > _NEAR for row in rows) - n_copies)


def find_secret_files(opened: OpenChallenge) -> set[str]:
    """Return the SHA-256 of the truth files that teams must predict: those of the first role.

    The files of other roles, such as the pre-contrast images, are given to the teams.
    """
    if opened.challenge.task is not None:
        return set()
    patterns = tuple(read_definitions(opened)[0].truth.files.values())[:1]
    names = {file_name(patterns[0], case_id) for case_id in opened.challenge.case_ids if patterns}
    return {file.sha256 for file in opened.challenge.truth if file.name in names}


def find_level_down(
    model: ModelScores,
    values: NDArray[np.float64],
    is_given: NDArray[np.bool_],
    cohort: Cohort | None,
) -> tuple[LevelDown, ...]:
    """Return, for k = 1 to 3, the group whose k worst cases raise the ranking score most.

    The score is recomputed without the k worst readable cases of each group. If the score is higher
    with these cases, poor masks in this group are an advantage, because they lower the mean of the
    best group and so narrow the gap between groups.

    Parameters
    ----------
    model
        A team's scores.
    values, is_given
        The performance of each case that counts, and whether it comes from a readable mask.
    cohort
        The clinical table; if None, there are no groups.
    """
    case_ids = count_model(model).case_ids
    if cohort is None:
        return ()
    groupings = group_cases(case_ids, matched(list(case_ids), cohort), rules_of(model.profile))
    order = np.argsort(values, kind="stable")
    names, weights = [], [np.ones(len(case_ids), dtype=np.int64)]
    for grouping in groupings:
        for code, label in enumerate(grouping.labels):
            in_group = grouping.codes == code
            worst = order[(in_group & is_given)[order]]
            for k in LEVELS:
                if k <= worst.size and k < in_group.sum():
                    names.append((grouping.variable, label, k))
                    weights.append(weights[0].copy())
                    weights[-1][worst[:k]] = 0
    scores = make_composite([model], case_ids, cohort)(np.stack(weights))[:, 0]
    found = [
        LevelDown(*name, float(scores[0] - score))
        for name, score in zip(names, scores[1:].tolist(), strict=True)
        if not isnan(scores[0] - score)
    ]
    most = ([effect for effect in found if effect.k == k] for k in LEVELS)
    return tuple(max(effects, key=lambda effect: effect.gain) for effects in most if effects)


def count_near(definition: ChallengeDefinition, values: AnswerValues) -> int:
    """Count the cases in which each Dice that a definition measures is nearly 1.

    Parameters
    ----------
    definition
        The definition.
    values
        A team's values.
    """
    of_dice = [values.by_id[measure.id].values for measure in definition.measures
               if measure.of == "dsc"]  # fmt: skip
    n_near = 0
    for of_case in zip(*of_dice, strict=True):
        dice = [value.rows[0][0] for value in of_case if value.is_usable]
        n_near += bool(dice) and min(dice) > _NEAR
    return n_near


def print_scores(model: ModelScores) -> set[tuple[object, ...]]:
    """Return Dice, distance and volume of each mask, unless it is perfect or the worst possible."""
    return {
        (row.case_id, row.dsc, row.hausdorff_mm, row.volume_prediction_mm3)
        for row in model.rows
        if 0 < row.dsc < 1 and not isnan(row.volume_prediction_mm3)
    }


def print_values(definition: ChallengeDefinition, values: AnswerValues) -> set[tuple[object, ...]]:
    """Return all values of each mask, unless all are whole numbers, such as a Dice of 0 or 1.

    Parameters
    ----------
    definition
        The definition; other answers than masks have no values here.
    values
        A team's values.
    """
    prints: set[tuple[object, ...]] = set()
    if definition.answer.kind is not AnswerKind.MASKS:
        return prints
    for of_case in zip(*(measure.values for measure in values.measures if measure.values),
                       strict=True):  # fmt: skip
        rows = tuple(value.rows for value in of_case)
        numbers = [number for value in of_case for row in value.rows for number in row]
        if any(not number.is_integer() for number in numbers if isfinite(number)):
            prints.add((of_case[0].case_id, rows))
    return prints


def find_twins(prints: Mapping[str, set[tuple[object, ...]]]) -> list[str]:
    """Return a note for each group of teams that submitted identical masks.

    Two masks count as identical if their numbers agree to the last digit. A team joins a group if
    it shares a mask with any team in the group.

    Parameters
    ----------
    prints
        The numbers of the masks by team.
    """
    groups: list[list[str]] = []
    for team in prints:
        linked = [group for group in groups if any(prints[team] & prints[name] for name in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(name for group in linked for name in group), team])
    notes = []
    for group in groups:
        names = [name for name in prints if name in group]
        counts = [
            len(prints[first] & prints[second])
            for index, first in enumerate(names)
            for second in names[index + 1 :]
        ]
        if counts:
            low, high = min(counts), max(counts)
            cases = count_of(high, "case") if low == high else f"{low} to {high} cases of each pair"
            notes.append(f"{', '.join(names[:-1])} and {names[-1]} have the same mask in {cases}")
    return notes


def list_alarms(boards: Sequence[Board]) -> tuple[str, ...]:
    """Return a sentence for each team with copies of references, as notes on the leaderboard."""
    rows = (row for board in boards for row in board.rows)
    texts = (f"{row.team}: {describe_copies(row)}" for row in rows if row.is_alarming)
    return tuple(dict.fromkeys(texts))


def describe_copies(row: BoardRow) -> str:
    """Return a warning about a team's copies of references, or "" if there are none."""
    if not row.is_alarming:
        return ""
    what = "file" if row.kind == SubmissionKind.ANSWERS.value else "mask"
    texts = [f"{count_of(row.n_copies, what)} identical to the reference byte for byte"]
    near = f"{count_of(row.n_near_copies, 'further mask')} with a Dice above {_NEAR:g}"
    parts = [*texts * bool(row.n_copies), *[near] * bool(row.n_near_copies)]
    return f"ALARM: {' and '.join(parts)}; check how the team obtained the references"
