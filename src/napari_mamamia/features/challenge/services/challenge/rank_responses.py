"""Score and rank the teams by their responses (pCR)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.cohort import Cohort
from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge
from napari_mamamia.features.challenge.io.leaderboard_file import Board, BoardRow
from napari_mamamia.features.challenge.io.ledger import Attempt, Ledger
from napari_mamamia.features.challenge.services.challenge.attempt import RESPONSE_TABLE, RESPONSES
from napari_mamamia.features.challenge.services.challenge.inputs import score_settings
from napari_mamamia.features.challenge.services.rank.output import methods_content
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.scoring.classifier.response_ranking import (
    NamedPredictions,
    ResponseRanking,
    rank_responses,
)
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import group_cases
from napari_mamamia.scoring.cohort.ranking import ranks
from napari_mamamia.scoring.cohort.results import ResponseResult
from napari_mamamia.services.score.clinical_table import matched
from napari_mamamia.services.score.pcr import response_model

CLASSIFICATION: Final = "classification"
RESPONSE_RANKS: Final = "rank_responses.json"


@dataclass(frozen=True, slots=True, eq=False)
class RankedResponses:
    """The leaderboard of responses, each team's scores, and the stability of the ranking."""

    board: Board
    results: tuple[tuple[str, ResponseResult], ...]
    ranking: ResponseRanking | None


def rank_team_responses(
    opened: OpenChallenge, ledger: Ledger, attempts: Sequence[Attempt], cohort: Cohort
) -> RankedResponses:
    """Return each team's last scored responses, ranked.

    Parameters
    ----------
    opened
        The challenge.
    ledger
        Its ledger.
    attempts
        The displayed attempts with responses.
    cohort
        The clinical table.

    Raises
    ------
    FormatError
        If a team's responses differ from the ledger's checksums.
    """
    challenge = opened.challenge
    rules, seed = rules_of(challenge.profile), challenge.seed
    results = [
        (attempt, _score_team(opened, attempt, cohort))
        for attempt in {attempt.team: attempt for attempt in attempts}.values()
    ]
    rows = [_make_row(attempt, result, ledger) for attempt, result in results]
    places = ranks(
        np.array([nan if row.score is None or row.reason else row.score for row in rows])
    )
    ranked = [
        replace(row, rank=None if isnan(rank) else int(rank))
        for row, rank in zip(rows, places.tolist(), strict=True)
    ]
    models = [
        NamedPredictions(scored.team, result.predictions)
        for scored, result in results
        if not result.predictions.constant
    ]
    case_ids = results[0][1].predictions.case_ids
    groupings = group_cases(case_ids, matched(list(case_ids), cohort), rules)
    ranking = rank_responses(models, groupings, rules, challenge.n_resamples, seed)
    by = "ranking score: balanced accuracy and equalised odds"
    board = Board(CLASSIFICATION, by, tuple(ranked))
    return RankedResponses(
        board, tuple((scored.team, result) for scored, result in results), ranking
    )


def _score_team(opened: OpenChallenge, attempt: Attempt, cohort: Cohort) -> ResponseResult:
    path = opened.results(attempt.team, attempt.digest) / RESPONSES / RESPONSE_TABLE
    if sha256_of(path) != dict(attempt.files)[f"{RESPONSES}/{RESPONSE_TABLE}"]:
        raise FormatError(
            f"expected the responses of {attempt.team} as recorded in the ledger, but {path} was "
            "changed: restore it"
        )
    read, clinical = read_response_table(path), opened.clinical
    if clinical is None:
        raise FormatError(
            f"expected a clinical table in {opened.folder}, but found none: restore it"
        )
    model = response_model(attempt.team, read, clinical, cohort, score_settings(opened))
    if model.response is None:
        raise FormatError(
            f"expected scored responses of {attempt.team}, but found none: run it again"
        )
    return model.response


def _make_row(attempt: Attempt, result: ResponseResult, ledger: Ledger) -> BoardRow:
    """Return a team's row; constant predictions have no rank."""
    numbers = result.cohort
    return BoardRow(
        attempt.team,
        None,
        find_number(float(numbers.ranking_score)),
        find_number(float(numbers.balanced_accuracy)),
        find_number(float(numbers.fairness)),
        numbers.n_scored,
        0,
        (),
        attempt.number,
        ledger.count(attempt.team),
        attempt.kind,
        attempt.digest,
        False,
        result.predictions.constant or numbers.reason,
    )


def find_number(value: float) -> float | None:
    """Return a number for the leaderboard, None if it is undefined."""
    return None if isnan(value) else float(value)


def responses_content(ranking: ResponseRanking) -> dict[str, Any]:
    """Return the content of ``rank_responses.json``: ranks, stability, Bayes factors, AUCs."""
    aucs = ranking.aucs
    return {
        **methods_content(ranking.names, (ranking.method,)),
        "bayes_factors": {
            factor.name: {"k": factor.k, "draws": factor.n_draws} for factor in ranking.factors
        },
        "robust": ranking.groups,
        "n_cases": ranking.n_cases,
        "draws": ranking.n_draws,
        "auc": None
        if aucs is None
        else {
            "models": {
                model.name: {
                    "auc": model.auc,
                    "delong": model.auc_delong,
                    "partial_auc": model.partial_auc,
                }
                for model in aucs.models
            },
            "comparisons": aucs.pairs,
            "bayes_factors": {
                factor.name: {"k": factor.k, "draws": factor.n_draws} for factor in aucs.factors
            },
            "leaders": aucs.leaders,
        },
        "notes": ranking.notes,
    }


def write_responses(ranking: ResponseRanking, out: Path, *, overwrite: bool = False) -> None:
    """Write ``rank_responses.json``; errors as in `write_json`."""
    write_json(responses_content(ranking), out / RESPONSE_RANKS, overwrite=overwrite)
