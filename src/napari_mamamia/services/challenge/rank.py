"""The leaderboard of a challenge: from sealed scores to ranks with their stability.

A team is shown by its last scored attempt; on the ladder by the last one that was clearly better.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure, ScoreStatus
from napari_mamamia.io.challenge.challenge_file import OpenChallenge, read_challenge, relative_place
from napari_mamamia.io.challenge.leaderboard_file import (
    Board,
    BoardRow,
    Leaderboard,
    write_leaderboard,
)
from napari_mamamia.io.challenge.ledger import Attempt, AttemptOutcome, Ledger, read_ledger
from napari_mamamia.io.challenge.manifest import SubmissionKind
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.scoring.classifier.against import climb
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases
from napari_mamamia.scoring.cohort.model_results import response_result
from napari_mamamia.scoring.cohort.policy import CountedCases
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.response_predictions import ResponsePredictions
from napari_mamamia.scoring.cohort.results import ModelScores, Resampling
from napari_mamamia.scoring.cohort.segmentation_cohort import ranking_scores_of_weights
from napari_mamamia.scoring.ranking.draws import seeded_weights
from napari_mamamia.scoring.ranking.methods import Composite, Weights
from napari_mamamia.scoring.ranking.ranking import rank_tables
from napari_mamamia.scoring.ranking.table import RankingTable, RankSettings
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.challenge.attempt import RESPONSE_TABLE, RESPONSES, SCORES
from napari_mamamia.services.challenge.inputs import require_inputs, score_settings
from napari_mamamia.services.rank.inputs import ReadInputs
from napari_mamamia.services.rank.output import RankSummary
from napari_mamamia.services.rank.rank import write_ranking
from napari_mamamia.services.score.clinical_table import matched, read_table
from napari_mamamia.services.score.output import SCORE_TABLE
from napari_mamamia.services.score.score import cohort_numbers

SEGMENTATION: Final = "segmentation"
CLASSIFICATION: Final = "classification"


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A team's attempt that is shown; `shown` is its score on the ladder, nan without one."""

    attempt: Attempt
    n_attempts: int
    model: ModelScores
    shown: float = nan


@dataclass(frozen=True, slots=True, eq=False)
class ChallengeRanking:
    """The leaderboard, and the ranking of masks by every method (None where there is none)."""

    board: Leaderboard
    summary: RankSummary | None
    read: ReadInputs | None


def rank_challenge(
    folder: Path, out: Path, *, existing: Existing = Existing.REFUSE
) -> ChallengeRanking:
    """Make the leaderboard of the challenge in `folder`, and write it to `out`.

    Writes ``leaderboard.json`` and, of masks, the files of `mamamia rank`.

    Raises
    ------
    CaseError
        If nothing was scored yet.
    FormatError
        If the ledger, a score or what was frozen is not as it was.
    SaveConflictError
        If `out` holds other results.
    """
    opened = read_challenge(folder)
    ledger = read_ledger(opened.attempts, opened.sha256)
    if ledger.problems:
        raise FormatError(
            f"expected the ledger of {folder} as it was written, but {ledger.problems[0]}: bring "
            "it back from a copy; `mamamia challenge verify` lists everything"
        )
    require_inputs(opened)
    ranking = make_ranking(opened, ledger, out)
    parameters = (("challenge", opened.challenge.name), ("sha256", opened.sha256))
    claim_folder(out, "challenge rank", parameters, existing, (folder,))
    overwrite = existing is not Existing.REFUSE
    if ranking.summary is not None and ranking.read is not None:
        write_ranking(ranking.summary, ranking.read, overwrite=overwrite)
    write_leaderboard(ranking.board, out, overwrite=overwrite)
    report_progress(1, 1, "Finished")
    return ranking


def make_ranking(opened: OpenChallenge, ledger: Ledger, out: Path) -> ChallengeRanking:
    """Return the leaderboard of what the ledger tells of; nothing is written."""
    challenge = opened.challenge
    scored = [one for one in ledger.attempts if one.outcome is AttemptOutcome.SCORED]
    if not scored:
        raise CaseError(
            f"expected a scored attempt in {opened.folder}, found none: run it first with "
            "`mamamia challenge run`"
        )
    rules = score_settings(opened)
    cohort = read_table(rules.clinical, rules.columns)
    boards: list[Board] = []
    notes: list[str] = []
    summary = read = None
    table = f"{SCORES}/{SCORE_TABLE}"
    masks = [one for one in scored if table in dict(one.files)]
    if masks:
        entries = _choose_entries(opened, ledger, masks, cohort)
        board, read = _rank_masks(opened, ledger, entries, cohort)
        notes += [*read.notes, *_find_twins(entries)]
        boards.append(board)
        settings = RankSettings(n_resamples=challenge.n_resamples, seed=challenge.seed)
        if read.tables:
            ranked = rank_tables(read.tables, settings, None, read.composite)
            summary = RankSummary(ranked, None, None, _describe_rows(board), out)
    responses = [one for one in scored if f"{RESPONSES}/{RESPONSE_TABLE}" in dict(one.files)]
    if responses and cohort is not None:
        boards.append(_rank_responses(opened, ledger, responses, cohort))
    place = relative_place(opened.folder, out)
    board_file = Leaderboard(
        challenge.name,
        opened.sha256,
        place,
        ledger.heads,
        challenge.profile,
        challenge.rule or "as the profile says",
        challenge.ladder,
        tuple(boards),
        tuple(notes),
        software_version(),
        now_utc(),
    )
    return ChallengeRanking(board_file, summary, read if summary is not None else None)


def _choose_entries(
    opened: OpenChallenge, ledger: Ledger, masks: Sequence[Attempt], cohort: Cohort | None
) -> list[_Entry]:
    """Return the attempt of each team that is shown."""
    entries = []
    for number, team in enumerate(dict.fromkeys(one.team for one in masks)):
        report_progress(number, len(masks), f"Reading the scores of {team}")
        attempts = [one for one in masks if one.team == team]
        count = ledger.count(team)
        if not opened.challenge.ladder:
            model = _read_model(opened, attempts[-1], cohort)
            entries.append(_Entry(attempts[-1], count, model))
            continue
        models = [_read_model(opened, one, cohort) for one in attempts]
        draws = [_draw_scores(opened, model, cohort) for model in models]
        rungs = climb(draws)
        place = max(at for at, rung in enumerate(rungs) if rung.is_new)
        entries.append(_Entry(attempts[place], count, models[place], rungs[-1].shown))
    return entries


def _read_model(opened: OpenChallenge, attempt: Attempt, cohort: Cohort | None) -> ModelScores:
    path = opened.results(attempt.team, attempt.digest) / SCORES / SCORE_TABLE
    if sha256_of(path) != dict(attempt.files)[f"{SCORES}/{SCORE_TABLE}"]:
        raise FormatError(
            f"expected the scores of {attempt.team} as the ledger has them, but {path} was "
            "changed: bring it back; `mamamia challenge verify` lists everything"
        )
    rows = read_case_scores(path)
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    rules = replace(score_settings(opened), n_resamples=0)
    return cohort_numbers(attempt.team, rows, failures, len(rows), rules, cohort)


def _count_model(model: ModelScores) -> CountedCases:
    if model.segmentation is None:
        raise FormatError(f"expected scores of masks of {model.name}, got none: score them again")
    return model.segmentation.counted


def _make_composite(
    models: Sequence[ModelScores], cases: Sequence[str], cohort: Cohort | None
) -> Composite:
    """Return the challenge's own score, the lowest over unusable cases, of weights of the cases.

    Without a clinical table it is the performance alone.
    """
    places = {case_id: at for at, case_id in enumerate(cases)}
    parts = []
    for model in models:
        counted = _count_model(model)
        rules = rules_of(model.profile)
        weight = rules.weight_of_fairness if cohort is not None else 0.0
        groupings: tuple[Grouping, ...] = ()
        if cohort is not None:
            people = matched(counted.case_ids, cohort)
            groupings = group_cases(counted.case_ids, people, rules)
        columns = np.array([places[one] for one in counted.case_ids], dtype=np.intp)
        parts.append((columns, counted, groupings, weight))

    def score(weights: Weights) -> NDArray[np.float64]:
        by_model = [
            ranking_scores_of_weights(counted, groupings, weight, weights[:, columns])
            for columns, counted, groupings, weight in parts
        ]
        return np.stack(by_model, axis=1)

    return score


def _draw_scores(
    opened: OpenChallenge, model: ModelScores, cohort: Cohort | None
) -> NDArray[np.float64]:
    """Return a model's score in each resample of the challenge's seed."""
    cases = _count_model(model).case_ids
    composite = _make_composite([model], cases, cohort)
    n, seed = max(1, opened.challenge.n_resamples), opened.challenge.seed
    blocks = [composite(weights)[:, 0] for weights in seeded_weights(len(cases), n, seed)]
    return np.concatenate(blocks)


def _rank_masks(
    opened: OpenChallenge, ledger: Ledger, entries: Sequence[_Entry], cohort: Cohort | None
) -> tuple[Board, ReadInputs]:
    """Return the board, and what the methods rank: the performance of each case."""
    able = [one for one in entries if not _count_model(one.model).rejected]
    by_performance = cohort is None
    scores = np.array([_score_entry(one, by_performance=by_performance) for one in entries])
    places = ranks(scores)
    rows = [
        _make_row(entry, score, place)
        for entry, score, place in zip(entries, scores.tolist(), places.tolist(), strict=True)
    ]
    shown = {row.team for row in rows}
    rows += [_make_unscored_row(ledger, team) for team in _list_teams(ledger) if team not in shown]
    ranked_by = "performance, there is no clinical table" if by_performance else "ranking score"
    if opened.challenge.ladder:
        ranked_by += ", shown by the ladder"
    board = Board(SEGMENTATION, ranked_by, tuple(_sort_rows(rows)))
    everyone = {case_id for one in able for case_id in _count_model(one.model).case_ids}
    cases = [case_id for case_id in opened.challenge.case_ids if case_id in everyone]
    if not able or not cases:
        return board, ReadInputs((), (), None, None, ("no team has a ranked number",))
    values = np.stack([_case_values(_count_model(one.model), cases) for one in able], axis=1)
    names = tuple(one.attempt.team for one in able)
    table = RankingTable(names, tuple(cases), values, True, metric="performance")
    composite = _make_composite([one.model for one in able], cases, cohort)
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
    """Return the performance of each case: (Dice + 1 - NormHD) / 2, the worst where it is free.

    Without any distance it is Dice. A case that does not count, both masks being empty, is right.
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


def _make_row(entry: _Entry, score: float, place: float) -> BoardRow:
    counted, attempt = _count_model(entry.model), entry.attempt
    numbers = entry.model.segmentation
    cohort = None if numbers is None else numbers.cohort
    reasons = Counter(one.reason.value for one in counted.unusable)
    return BoardRow(
        attempt.team,
        None if isnan(place) else int(place),
        _find_number(score),
        _find_number(cohort.performance.value if cohort else nan),
        _find_number(cohort.fairness.value if cohort else nan),
        counted.n,
        len(counted.unusable),
        tuple(sorted(reasons.items())),
        attempt.number,
        entry.n_attempts,
        attempt.kind,
        attempt.digest,
        attempt.kind == SubmissionKind.SCORES.value,
        (counted.rejected or (cohort.reason if cohort else "")) if isnan(place) else "",
    )


def _find_number(value: float) -> float | None:
    return None if isnan(value) else float(value)


def _list_teams(ledger: Ledger) -> list[str]:
    return list(dict.fromkeys(one.team for one in ledger.attempts))


def _make_unscored_row(ledger: Ledger, team: str) -> BoardRow:
    """Return the row of a team that has nothing scored in a task."""
    last = ledger.of_team(team)[-1]
    reason = f"{last.outcome.value}: {last.reason}" if last.reason else last.outcome.value
    if last.outcome is AttemptOutcome.SCORED:
        reason = "nothing handed in for this task"
    parts = (None, None, None, None, 0, 0, (), 0, ledger.count(team))
    return BoardRow(team, *parts, last.kind, last.digest, False, reason)


def _sort_rows(rows: Sequence[BoardRow]) -> list[BoardRow]:
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.team))


def _rank_responses(
    opened: OpenChallenge, ledger: Ledger, attempts: Sequence[Attempt], cohort: Cohort
) -> Board:
    """Return the board of responses: each team's last scored ones."""
    rules = rules_of(opened.challenge.profile)
    seed = Resampling(0, opened.challenge.seed)
    rows = []
    last = {one.team: one for one in attempts}
    for attempt in last.values():
        path = opened.results(attempt.team, attempt.digest) / RESPONSES / RESPONSE_TABLE
        if sha256_of(path) != dict(attempt.files)[f"{RESPONSES}/{RESPONSE_TABLE}"]:
            raise FormatError(
                f"expected the responses of {attempt.team} as the ledger has them, but {path} was "
                "changed: bring it back"
            )
        read = read_response_table(path).rows
        people = matched([row.case_id for row in read], cohort)
        triples = [(row.case_id, float(row.pcr), row.score) for row in read]
        result = response_result(ResponsePredictions.of(triples, people), people, rules, seed)
        numbers = result.cohort
        rows.append(
            BoardRow(
                attempt.team,
                None,
                _find_number(float(numbers.ranking_score)),
                _find_number(float(numbers.balanced_accuracy)),
                _find_number(float(numbers.fairness)),
                numbers.n_scored,
                0,
                (),
                attempt.number,
                ledger.count(attempt.team),
                attempt.kind,
                attempt.digest,
                False,
                numbers.refused or "",
            )
        )
    places = ranks(np.array([nan if row.score is None else row.score for row in rows]))
    ranked = [
        replace(row, rank=None if isnan(place) else int(place))
        for row, place in zip(rows, places.tolist(), strict=True)
    ]
    others = [team for team in _list_teams(ledger) if team not in last]
    ranked += [_make_unscored_row(ledger, team) for team in others]
    by = "ranking score: balanced accuracy and equalised odds"
    return Board(CLASSIFICATION, by, tuple(_sort_rows(ranked)))


def _find_twins(entries: Sequence[_Entry]) -> list[str]:
    """Return a note for each two teams whose masks are the same in some cases.

    Two masks that agree in Dice, distance and volume to the last digit, and are neither right nor
    wrong altogether, are taken for one.
    """
    notes = []
    prints = [
        {
            (row.case_id, row.dsc, row.hausdorff_mm, row.volume_prediction_mm3)
            for row in one.model.rows
            if 0 < row.dsc < 1 and not isnan(row.volume_prediction_mm3)
        }
        for one in entries
    ]
    for at, first in enumerate(entries):
        for other in range(at + 1, len(entries)):
            n_same = len(prints[at] & prints[other])
            if n_same:
                names = f"{first.attempt.team} and {entries[other].attempt.team}"
                notes.append(f"{names} have the same mask of {n_same} case(s)")
    return notes


def _describe_rows(board: Board) -> tuple[str, ...]:
    """Return what a page says of each team's attempts."""
    return tuple(describe_row(row) for row in board.rows)


def describe_row(row: BoardRow) -> str:
    """Return a team's n and attempts in words: "n 60, 38 unusable; 7th attempt"."""
    n = f"n {row.n}" + (f", {row.n_unusable} unusable" if row.n_unusable else "")
    attempt = f"{ordinal(row.attempt)} attempt" if row.attempt else "no attempt"
    more = f" of {row.n_attempts}" if row.n_attempts > row.attempt else ""
    given = "; scores as given" if row.is_as_given else ""
    reason = f"; not ranked: {row.reason}" if row.rank is None else ""
    return f"{row.team}: {n}; {attempt}{more}{given}{reason}"


def ordinal(number: int) -> str:
    """Return a number as English counts: 1st, 2nd, 3rd, 11th.

    Examples
    --------
    >>> [ordinal(number) for number in (1, 2, 3, 7, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '7th', '11th', '12th', '13th', '21st', '112th']
    """
    teens = 10 <= number % 100 < 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
