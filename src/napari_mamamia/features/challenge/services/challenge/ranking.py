"""Rank the attempts in a challenge's ledger by their sealed scores.

A team is represented by its last scored attempt; with the ladder, by the last one that was clearly
better than its predecessor.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure, ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge, relative_place
from napari_mamamia.features.challenge.io.leaderboard_file import (
    Board,
    BoardRow,
    Leaderboard,
)
from napari_mamamia.features.challenge.io.ledger import Attempt, AttemptOutcome, Ledger
from napari_mamamia.features.challenge.io.manifest import SubmissionKind
from napari_mamamia.features.challenge.services.challenge.attempt import (
    RESPONSE_TABLE,
    RESPONSES,
    SCORES,
)
from napari_mamamia.features.challenge.services.challenge.case_pictures import picture_team
from napari_mamamia.features.challenge.services.challenge.inputs import score_settings
from napari_mamamia.features.challenge.services.challenge.rank_responses import (
    RankedResponses,
    find_number,
    rank_team_responses,
)
from napari_mamamia.features.challenge.services.rank.inputs import ReadInputs
from napari_mamamia.features.challenge.services.rank.output import RankSummary
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.scoring.classifier.against import climb
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases
from napari_mamamia.scoring.cohort.policy import CountedCases
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.ranking.draws import seeded_weights
from napari_mamamia.scoring.ranking.ranking import rank_tables
from napari_mamamia.scoring.ranking.table import VALUE_METHODS, RankingTable, RankSettings
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.services.score.clinical_table import matched, read_table
from napari_mamamia.services.score.composite import (
    count_model,
    guarded_score,
    make_composite,
)
from napari_mamamia.services.score.output import SCORE_TABLE
from napari_mamamia.services.score.score import cohort_numbers

SEGMENTATION: Final = "segmentation"
NOT_FOR_TASK: Final = "no submission for this task"


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """The displayed attempt of a team; `shown` is its score on the ladder, NaN without a score."""

    attempt: Attempt
    n_attempts: int
    model: ModelScores
    shown: float = nan


@dataclass(frozen=True, slots=True, eq=False)
class ChallengeRanking:
    """The leaderboard, the ranking of masks by every method, and the ranking of responses.

    A field that does not apply is None. `models` holds the mask scores by team, `groupings` divide
    the ranked cases, `ledger` has the attempts, and `pictures` show each team's worst cases.
    """

    board: Leaderboard
    summary: RankSummary | None
    read: ReadInputs | None
    responses: RankedResponses | None = None
    models: tuple[tuple[str, ModelScores], ...] = ()
    groupings: tuple[Grouping, ...] = ()
    ledger: Ledger | None = None
    pictures: Mapping[str, tuple[ReportFigure, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def make_ranking(opened: OpenChallenge, ledger: Ledger, out: Path) -> ChallengeRanking:
    """Compute the leaderboard of the ledger's attempts; nothing is written.

    Parameters
    ----------
    opened
        The challenge.
    ledger
        Its ledger.
    out
        Folder of the leaderboard, for relative paths.
    """
    challenge = opened.challenge
    scored = [attempt for attempt in ledger.attempts if attempt.outcome is AttemptOutcome.SCORED]
    if not scored:
        raise CaseError(
            f"expected a scored attempt in {opened.folder}, but found none: run the challenge first"
        )
    rules = score_settings(opened)
    cohort = read_table(rules.clinical, rules.columns)
    settings = RankSettings(
        (RankMethod.COMPOSITE, *VALUE_METHODS),
        n_resamples=challenge.n_resamples,
        seed=challenge.seed,
    )
    boards: list[Board] = []
    notes: list[str] = []
    summary = read = answers = None
    models: tuple[tuple[str, ModelScores], ...] = ()
    groupings: tuple[Grouping, ...] = ()
    pictures: dict[str, tuple[ReportFigure, ...]] = {}
    table = f"{SCORES}/{SCORE_TABLE}"
    masks = [scored_attempt for scored_attempt in scored if table in dict(scored_attempt.files)]
    if masks:
        entries = _choose_entries(opened, ledger, masks, cohort)
        board, read = _rank_masks(opened, ledger, entries, cohort)
        notes += [*read.notes, *_find_twins(entries)]
        boards.append(board)
        models = tuple((entry.attempt.team, entry.model) for entry in entries)
        by_team = dict(models)
        pictures = {
            row.team: picture_team(opened, row, by_team[row.team].rows)
            for row in board.rows
            if row.team in by_team
        }
        if read.tables:
            ranked = rank_tables(read.tables, settings, None, read.composite)
            summary = RankSummary(ranked, None, None, tuple(notes), out)
            if cohort is not None:
                cases = ranked.tables[0].cases
                people = matched(list(cases), cohort)
                groupings = group_cases(cases, people, rules_of(challenge.profile))
    responses = [
        scored_attempt
        for scored_attempt in scored
        if f"{RESPONSES}/{RESPONSE_TABLE}" in dict(scored_attempt.files)
    ]
    if responses and cohort is not None:
        answers = rank_team_responses(opened, ledger, responses, cohort)
        boards.append(_add_unscored(answers.board, ledger))
    board_file = Leaderboard(
        challenge.name,
        opened.sha256,
        relative_place(opened.folder, out),
        ledger.heads,
        challenge.profile,
        challenge.rule or "as the profile says",
        challenge.ladder,
        tuple(boards),
        tuple(notes),
        software_version(),
        now_utc(),
    )
    return ChallengeRanking(
        board_file, summary, read if summary is not None else None, answers, models, groupings,
        ledger, pictures,
    )  # fmt: skip


def _add_unscored(board: Board, ledger: Ledger) -> Board:
    """Return a board in order; teams without a score in its task come last."""
    ranked = {row.team for row in board.rows}
    teams = dict.fromkeys(attempt.team for attempt in ledger.attempts)
    others = [team for team in teams if team not in ranked]
    rows = [*board.rows, *(_make_unscored_row(ledger, team) for team in others)]
    return replace(board, rows=tuple(_sort_rows(rows)))


def _choose_entries(
    opened: OpenChallenge, ledger: Ledger, masks: Sequence[Attempt], cohort: Cohort | None
) -> list[_Entry]:
    """Return the displayed attempt of each team."""
    entries = []
    for number, team in enumerate(dict.fromkeys(mask.team for mask in masks)):
        report_progress(number, len(masks), f"Reading the scores of {team}")
        attempts = [mask for mask in masks if mask.team == team]
        count = ledger.count(team)
        if not opened.challenge.ladder:
            model = _read_model(opened, attempts[-1], cohort)
            entries.append(_Entry(attempts[-1], count, model))
            continue
        models = [_read_model(opened, attempt, cohort) for attempt in attempts]
        draws = [_draw_scores(opened, model, cohort) for model in models]
        rungs = climb(draws)
        last_new = max(index for index, rung in enumerate(rungs) if rung.is_new)
        entries.append(_Entry(attempts[last_new], count, models[last_new], rungs[-1].shown))
    return entries


def _read_model(opened: OpenChallenge, attempt: Attempt, cohort: Cohort | None) -> ModelScores:
    path = opened.results(attempt.team, attempt.digest) / SCORES / SCORE_TABLE
    if sha256_of(path) != dict(attempt.files)[f"{SCORES}/{SCORE_TABLE}"]:
        raise FormatError(
            f"expected the scores of {attempt.team} as recorded in the ledger, but {path} was "
            "changed: restore it, and verify the challenge for a list of all changes"
        )
    rows = read_case_scores(path)
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    rules = replace(score_settings(opened), n_resamples=0)
    return cohort_numbers(attempt.team, rows, failures, len(rows), rules, cohort)


def _draw_scores(
    opened: OpenChallenge, model: ModelScores, cohort: Cohort | None
) -> NDArray[np.float64]:
    """Return a model's score in each resample drawn with the challenge's seed."""
    cases = count_model(model).case_ids
    composite = make_composite([model], cases, cohort)
    n, seed = max(1, opened.challenge.n_resamples), opened.challenge.seed
    blocks = [composite(weights)[:, 0] for weights in seeded_weights(len(cases), n, seed)]
    return np.concatenate(blocks)


def _rank_masks(
    opened: OpenChallenge, ledger: Ledger, entries: Sequence[_Entry], cohort: Cohort | None
) -> tuple[Board, ReadInputs]:
    """Return the leaderboard of masks, and each case's performance for the ranking methods."""
    able = [entry for entry in entries if not count_model(entry.model).rejected]
    by_performance = cohort is None
    scores = np.array([_score_entry(entry, by_performance=by_performance) for entry in entries])
    places = ranks(scores)
    rows = [
        _make_row(entry, score, rank, guarded_score(entry.model, cohort))
        for entry, score, rank in zip(entries, scores.tolist(), places.tolist(), strict=True)
    ]
    ranked_by = (
        "performance, because there is no clinical table" if by_performance else "ranking score"
    )
    if opened.challenge.ladder:
        ranked_by += ", displayed by the ladder"
    board = _add_unscored(Board(SEGMENTATION, ranked_by, tuple(rows)), ledger)
    everyone = {case_id for entry in able for case_id in count_model(entry.model).case_ids}
    cases = [case_id for case_id in opened.challenge.case_ids if case_id in everyone]
    if not able or not cases:
        return board, ReadInputs((), (), None, None, ("no team has a ranked number",))
    values = np.stack([_case_values(count_model(one.model), cases) for one in able], axis=1)
    is_given = np.stack([_find_given(count_model(one.model), cases) for one in able], axis=1)
    names = tuple(one.attempt.team for one in able)
    table = RankingTable(names, tuple(cases), values, True, metric="performance", given=is_given)
    composite = make_composite([one.model for one in able], cases, cohort)
    return board, ReadInputs((table,), (), None, composite, ())


def _score_entry(entry: _Entry, *, by_performance: bool) -> float:
    if not isnan(entry.shown):
        return entry.shown
    numbers = entry.model.segmentation
    if numbers is None:
        return nan
    cohort = numbers.cohort
    return float(cohort.performance.value if by_performance else cohort.ranking_score)


def _case_values(counted: CountedCases, cases: Sequence[str]) -> NDArray[np.float64]:
    """Return each case's performance, (Dice + 1 - NormHD) / 2; assigned values count as worst.

    If no distance was computed, the performance is Dice. A case that does not count because both
    masks are empty has performance 1.
    """
    dsc = np.where(counted.free_dsc, 0.0, counted.dsc)
    if np.isnan(counted.norm_hd).all():
        values = np.nan_to_num(dsc)
    else:
        worst = counted.worst_norm_hd
        norm_hd = np.where(counted.free_norm_hd, worst, counted.norm_hd)
        values = (np.nan_to_num(dsc) + 1 - np.nan_to_num(norm_hd, nan=worst)) / 2
    by_id = dict(zip(counted.case_ids, values.tolist(), strict=True))
    return np.array([by_id.get(case_id, 1.0) for case_id in cases])


def _find_given(counted: CountedCases, cases: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each case's performance comes from the team's mask, not from a rule."""
    free = counted.free_dsc | counted.free_norm_hd
    by_id = dict(zip(counted.case_ids, free.tolist(), strict=True))
    return np.array([not by_id.get(case_id, False) for case_id in cases])


def _make_row(entry: _Entry, score: float, place: float, guarded: float) -> BoardRow:
    counted, attempt = count_model(entry.model), entry.attempt
    numbers = entry.model.segmentation
    cohort = None if numbers is None else numbers.cohort
    reasons = Counter(case.reason.value for case in counted.unusable)
    return BoardRow(
        attempt.team,
        None if isnan(place) else int(place),
        find_number(score),
        find_number(cohort.performance.value if cohort else nan),
        find_number(cohort.fairness.value if cohort else nan),
        counted.n,
        len(counted.unusable),
        tuple(sorted(reasons.items())),
        attempt.number,
        entry.n_attempts,
        attempt.kind,
        attempt.digest,
        attempt.kind == SubmissionKind.SCORES.value,
        (counted.rejected or (cohort.reason if cohort else "")) if isnan(place) else "",
        find_number(guarded),
    )


def _make_unscored_row(ledger: Ledger, team: str) -> BoardRow:
    """Return the row of a team without a score in a task."""
    last = ledger.of_team(team)[-1]
    reason = f"{last.outcome.value}: {last.reason}" if last.reason else last.outcome.value
    if last.outcome is AttemptOutcome.SCORED:
        reason = last.reason or NOT_FOR_TASK
    parts = (None, None, None, None, 0, 0, (), 0, ledger.count(team))
    return BoardRow(team, *parts, last.kind, last.digest, False, reason)


def _sort_rows(rows: Sequence[BoardRow]) -> list[BoardRow]:
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.team))


def _find_twins(entries: Sequence[_Entry]) -> list[str]:
    """Return a note for each pair of teams with identical masks for some cases.

    Two masks with the same Dice, distance and volume to the last digit are taken for the same mask,
    unless their scores are perfect or the worst possible.
    """
    notes = []
    prints = [
        {
            (row.case_id, row.dsc, row.hausdorff_mm, row.volume_prediction_mm3)
            for row in entry.model.rows
            if 0 < row.dsc < 1 and not isnan(row.volume_prediction_mm3)
        }
        for entry in entries
    ]
    for index, first in enumerate(entries):
        for other in range(index + 1, len(entries)):
            n_same = len(prints[index] & prints[other])
            if n_same:
                names = f"{first.attempt.team} and {entries[other].attempt.team}"
                notes.append(f"{names} have the same mask in {count_of(n_same, 'case')}")
    return notes
