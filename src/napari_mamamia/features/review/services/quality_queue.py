"""Write the quality-control queue for a score table, and evaluate the results of reading it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.features.review.core.quality import RANDOM_SHARE, QualityCase, Queue
from napari_mamamia.features.review.io import quality_files
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.rules import quality
from napari_mamamia.io.clinical.sites import find_site
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.io.tables.tables import read_case_scores, write_json
from napari_mamamia.scoring.report.text import STATUS_TEXTS
from napari_mamamia.services.score.output import SCORE_TABLE

QUEUE: Final = "queue"
CAPTURE: Final = "capture"
_FAILED_TO_SCORE: Final = frozenset(
    status for status in ScoreStatus if status not in (ScoreStatus.OK, ScoreStatus.BOTH_EMPTY)
)
"""Reasons for a missing score that rank a case as if its Dice were 0."""


@dataclass(frozen=True, slots=True)
class QueueResult:
    """A queue, with its files and notes."""

    queue: Queue
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def make_queue(
    scores: Path,
    out: Path,
    signs: Path | None = None,
    seed: int = 42,
    random_share: float = RANDOM_SHARE,
    *,
    overwrite: bool = False,
) -> QueueResult:
    """Order the cases in a score table, and write ``queue.csv``, ``.json`` and ``.txt``.

    Parameters
    ----------
    scores
        ``case_scores.csv`` of `mamamia score`, or its folder.
    out
        Folder for the files.
    signs
        A table with further criteria, see `read_signs`.
    seed, random_share
        Seed of the random order, and fraction of the cases in the random part.
    overwrite
        Whether existing files may be replaced.

    Raises
    ------
    FormatError, CaseError
        If a table is invalid.
    SaveConflictError
        If a file exists and `overwrite` is False.
    """
    report_progress(0, 2, "Reading the scores")
    rows = Share(scores).run(_read_scores)
    more = {} if signs is None else Share(signs).run(quality_files.read_signs)
    cases = [_join_case(row, more.get(row.case_id, quality_files.CaseSigns())) for row in rows]
    queue = quality.order_queue(cases, seed, random_share)
    strangers = sorted(set(more) - {row.case_id for row in rows})
    notes = [
        f"{stranger} is in {signs} but has no score, and was left out" for stranger in strangers[:5]
    ]
    if len(strangers) > len(notes):
        notes.append(f"and {len(strangers) - len(notes)} more")
    report_progress(1, 2, "Writing the queue")
    files = Share(out).run(partial(_write_queue, queue, overwrite))
    return QueueResult(queue, files, tuple(notes))


def _read_scores(place: Path) -> tuple[CaseScore, ...]:
    return read_case_scores(place / SCORE_TABLE if place.is_dir() else place)


def _join_case(row: CaseScore, signs: quality_files.CaseSigns) -> QualityCase:
    reason = STATUS_TEXTS[row.status] if row.status in _FAILED_TO_SCORE else ""
    return QualityCase(
        row.case_id,
        row.dsc,
        signs.missed_lesions,
        signs.other_side,
        signs.count_difference,
        row.hausdorff95_mm,
        signs.doubt,
        signs.touches_border,
        row.volume_reference_mm3,
        signs.site or find_site(row.case_id),
        reason,
    )


def _write_queue(queue: Queue, overwrite: bool, out: Path) -> tuple[Path, ...]:
    table, record, text = (out / f"{QUEUE}.{suffix}" for suffix in ("csv", "json", "txt"))
    columns = ("place", "case_id", "part", "rank", "draw", "why")
    rows = [
        (
            float(index),
            one.case_id,
            "random" if one.is_random else "disagreement",
            float(one.rank),
            float(one.draw),
            one.why,
        )
        for index, one in enumerate(queue.places, start=1)
    ]
    write_flat_table(columns, rows, len(rows), table, overwrite=overwrite)
    write_text_atomically(record, quality_files.queue_text(queue), overwrite=overwrite)
    ids = "".join(f"{one.case_id}\n" for one in queue.places)
    head = (
        f"# {count_of(len(queue.places), 'case')}; the first {queue.n_random} are drawn at random "
        f"(seed {queue.seed}): read them first\n"
    )
    write_text_atomically(text, head + ids, overwrite=overwrite)
    return table, record, text


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The errors found in a queue, and the paths of the written files."""

    capture: quality.Capture
    files: tuple[Path, ...]


def make_capture(
    queue: Path, marks: Path, out: Path, target: float = quality.TARGET, *, overwrite: bool = False
) -> CaptureResult:
    """Evaluate the results for a queue, and write ``capture.csv``, ``.json`` and ``.txt``.

    Raises
    ------
    FormatError, CaseError
        If a file is invalid, or a case is not in the queue.
    SaveConflictError
        If a file exists and `overwrite` is False.
    """
    is_error = Share(marks).run(quality_files.read_marks)
    capture = quality.follow_capture(Share(queue).run(quality_files.read_queue), is_error, target)
    files = Share(out).run(partial(_write_capture, capture, is_error, overwrite))
    return CaptureResult(capture, files)


def _write_capture(
    capture: quality.Capture, is_error: Mapping[str, bool], overwrite: bool, out: Path
) -> tuple[Path, ...]:
    table, record, text = (out / f"{CAPTURE}.{suffix}" for suffix in ("csv", "json", "txt"))
    columns, rows = list_capture_rows(capture, is_error)
    write_flat_table(columns, rows, len(rows), table, overwrite=overwrite)
    write_json(capture, record, overwrite=overwrite)
    words = "\n".join((*describe_capture(capture), *capture.to_read)) + "\n"
    write_text_atomically(text, words, overwrite=overwrite)
    return table, record, text


def list_capture_rows(
    capture: quality.Capture, is_error: Mapping[str, bool]
) -> tuple[tuple[str, ...], list[tuple[float | str, ...]]]:
    """Return the capture curve as column names and rows, one row per case that was read.

    `share_found` is relative to the errors found so far, not to all errors.
    """
    columns = ("case_id", "error", "n_read", "share_read", "n_errors", "share_found")
    rows: list[tuple[float | str, ...]] = []
    for (case_id, mark), point in zip(is_error.items(), capture.points[1:], strict=True):
        share = point.n_errors / capture.n_errors if capture.n_errors else math.nan
        rows.append(
            (
                case_id,
                "yes" if mark else "no",
                float(point.n_read),
                point.n_read / capture.n_cases,
                float(point.n_errors),
                share,
            )
        )
    return columns, rows


def describe_capture(capture: quality.Capture) -> tuple[str, ...]:
    """Describe the errors found, and whether the stopping rule is met, as lines of text."""
    rate = capture.rate
    line = "no case in the random order was read, so the error rate is unknown"
    if rate.n_read:
        percents = [f"{100 * one:.1f}" for one in (rate.rate, rate.low, rate.high)]
        line = (
            f"errors in {percents[0]} % of all cases (95 % interval {percents[1]} to {percents[2]} "
            f"%), by {rate.n_errors} of {rate.n_read} drawn at random"
        )
    lines = [
        f"{count_of(capture.n_errors, 'error')} in {capture.n_read} of "
        f"{count_of(capture.n_cases, 'case')}",
        line,
        f"{'may stop' if capture.may_stop else 'go on'}: {capture.why}",
    ]
    return tuple(lines)
