"""From sealed files to what is scored: every frozen case in its order, whatever was handed in."""

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
    """A row of each frozen case; or why they are not scored, and each breach."""

    rows: tuple[ResponseRow, ...] = ()
    problem: str = ""
    failures: tuple[CaseFailure, ...] = ()


def pair_masks(
    opened: OpenChallenge,
    handed: MaskListing,
    case_ids: Sequence[str],
    unknown: tuple[str, ...] = (),
) -> FoundPairs:
    """Return reference and mask of each case, None where none was handed in."""
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
    """Return the scores that `score` finds; it is called again where a case has none.

    What the system hands out and no reader understands stays with whoever wrote it.

    Raises
    ------
    FormatError
        If the system refuses a file, which is nobody's submission's fault: a case would count as
        the worst, or for nobody, in numbers that stand for good.
    CaseError
        If the process that scores a case ends without an answer, or in no time: memory, other work
        and the cluster decide that, too.
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
            "memory, give fewer processes or more time, and run again"
        )
    return model


def read_responses(opened: OpenChallenge, table: Path) -> HandedResponses:
    """Return the responses of a table, if it has one of every frozen case.

    Else nothing is scored: no rule for a missing class keeps a team from gaining by leaving cases
    out, whatever the groups are.
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
        f"expected one response for each of {len(case_ids)} cases, got none or several for "
        f"{len(broken)}: responses are scored only where they are complete",
        broken,
    )


def response_cells(rows: Sequence[ResponseRow]) -> list[tuple[str, str, str | float]]:
    """Return the rows as they stand in ``responses.csv``."""
    return [
        (row.case_id, str(int(row.pcr)), row.score if row.score == row.score else "")
        for row in rows
    ]


def read_given_scores(opened: OpenChallenge, table: Path) -> tuple[CaseScore, ...]:
    """Return the scores of a table, a row of each frozen case; what has none is missing.

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
        reason = bad.get(case_key(case_id), "" if row else "the table has no row of it")
        if row is None or reason:
            status = ScoreStatus.PREDICTION_MISSING
            rows.append(CaseScore(case_id, status, profile=profile, reason=reason))
        else:
            rows.append(replace(score_of_row(row, profile), case_id=case_id))
    return tuple(rows)
