"""Read sealed masks, responses and scores for every frozen case in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, MamamiaError, is_of_system
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import OpenChallenge
from napari_mamamia.io.data_set.mask_files import MaskListing
from napari_mamamia.io.data_set.score_files import (
    ResponseRow,
    read_response_table,
    read_score_table,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.services.score.pairs import FoundPairs, Pairs
from napari_mamamia.services.score.report import Scored
from napari_mamamia.services.score.table import score_of_row

_READINGS: Final = 2
_UNREAD: Final = (ScoreStatus.UNREADABLE, ScoreStatus.REFERENCE_UNREADABLE)
_UNSCORED: Final = (ScoreStatus.WORKER_LOST, ScoreStatus.TIME_LIMIT)


@dataclass(frozen=True, slots=True)
class HandedResponses:
    """A response for each frozen case, or why nothing is scored and each contract violation."""

    rows: tuple[ResponseRow, ...] = ()
    problem: str = ""
    failures: tuple[CaseFailure, ...] = ()


def pair_masks(
    opened: OpenChallenge,
    handed: MaskListing,
    case_ids: Sequence[str],
    unknown: tuple[str, ...] = (),
) -> FoundPairs:
    """Return reference and mask of each case; None for a mask that was not submitted.

    Parameters
    ----------
    opened
        The challenge.
    handed
        The submitted masks.
    case_ids
        The cases.
    unknown
        Names of masks of other cases, for messages.
    """
    references = {case.case_id: case.reference for case in opened.challenge.cases}
    root = opened.reference
    pairs: Pairs = {}
    for case_id in case_ids:
        reference = references[case_id]
        path = root / reference.name if root is not None and reference is not None else None
        pairs[case_id] = (path, handed.masks.get(case_id))
    reasons = (
        (ScoreStatus.UNREADABLE, handed.others),
        (ScoreStatus.SEVERAL_FILES, handed.problems),
    )
    problems = {
        case_id: (status, reason)
        for status, of_cases in reasons
        for case_id, reason in of_cases.items()
        if case_id in pairs
    }
    return FoundPairs(pairs, problems, unknown)


def score_readable(score: Callable[[], Scored], pairs: Pairs) -> ModelScores:
    """Call `score`, and once again if a case has no result.

    A mask that cannot be decoded is the team's fault and gets that status. A mask that the system
    cannot read at the moment is not the team's fault.

    Raises
    ------
    FormatError
        If the system refuses to read a file, since the case would be scored as the worst although
        the submission is not at fault.
    CaseError
        If the process that scores a case ends without an answer or exceeds its time, which may also
        depend on memory, other load and the cluster.
    """
    for _ in range(_READINGS):
        model = score().model
        unread = [row.case_id for row in model.rows if row.status in _UNREAD]
        for path in filter(None, chain.from_iterable(map(pairs.__getitem__, unread))):
            sha256_of(path)
        unscored = [row for row in model.rows if row.status in _UNSCORED]
        if not unread and not unscored:
            break
    if unscored:
        first = unscored[0]
        raise CaseError(
            f"expected an answer for each of {len(model.rows)} cases, but {len(unscored)} have "
            f"none ({first.case_id}: {first.reason}): nothing of this submission counts; free "
            "memory, use fewer processes or a longer time limit, and run it again"
        )
    return model


def read_responses(opened: OpenChallenge, table: Path) -> HandedResponses:
    """Return the responses of a table if it has exactly one row for every frozen case.

    Otherwise nothing is scored: under any rule for missing responses, a team could gain by leaving
    out cases of some groups.

    Parameters
    ----------
    opened
        The challenge.
    table
        The submitted table.
    """
    case_ids = opened.challenge.case_ids
    try:
        read = read_response_table(table)
    except MamamiaError as error:
        if is_of_system(error):
            raise
        return HandedResponses((), str(error), (CaseFailure("-", str(error)),))
    by_key = {case_key(row.case_id): row for row in read.rows}
    bad = {case_key(failure.case_id): failure.reason for failure in read.failures}
    broken = tuple(
        CaseFailure(case_id, bad.get(case_key(case_id), "it has no row"))
        for case_id in case_ids
        if case_key(case_id) not in by_key or case_key(case_id) in bad
    )
    if not broken:
        rows = (replace(by_key[case_key(case_id)], case_id=case_id) for case_id in case_ids)
        return HandedResponses(tuple(rows))
    return HandedResponses(
        (),
        f"expected one response for each of {len(case_ids)} cases, but found none or several for "
        f"{len(broken)}: responses are scored only if they are complete",
        broken,
    )


def response_cells(rows: Sequence[ResponseRow]) -> list[tuple[str, str, str | float]]:
    """Return the rows for ``responses.csv``."""
    return [
        (row.case_id, str(int(row.pcr)), row.score if row.score == row.score else "")
        for row in rows
    ]


def read_given_scores(opened: OpenChallenge, table: Path) -> tuple[CaseScore, ...]:
    """Return the scores of a table for all frozen cases; a case without a row is missing.

    Parameters
    ----------
    opened
        The challenge.
    table
        The submitted table.

    Raises
    ------
    FormatError
        If the table cannot be read.
    """
    read, profile = read_score_table(table), opened.challenge.profile
    by_key = {case_key(row.case_id): row for row in read.rows}
    bad = {case_key(failure.case_id): failure.reason for failure in read.failures}
    rows = []
    for case_id in opened.challenge.case_ids:
        row = by_key.get(case_key(case_id))
        reason = bad.get(case_key(case_id), "" if row else "the table has no row of this case")
        if row is None or reason:
            status = ScoreStatus.PREDICTION_MISSING
            rows.append(CaseScore(case_id, status, profile=profile, reason=reason))
        else:
            rows.append(replace(score_of_row(row, profile), case_id=case_id))
    return tuple(rows)
