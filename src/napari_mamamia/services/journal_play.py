"""Doing again what a journal recorded, from its first record to its last."""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import EditingSummary, Step
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.journal import Damage, PlacedRecord, scan_journal, step_at
from napari_mamamia.io.journal_records import Opened, Saved
from napari_mamamia.smartpaint.history import DEFAULT_LIMIT_BYTES
from napari_mamamia.smartpaint.session import EditingSession

__all__ = ["JournalPlay", "Sitting", "as_labels", "crc_of", "phase_prints", "play_journal"]

_YIELD_EVERY = 8


@dataclass(frozen=True, slots=True)
class Sitting:
    """One opening of the case, and when its first and last record were written."""

    opened: Opened
    first_at: str
    last_at: str


class JournalPlay:
    """The state that a journal leads to, record by record.

    Attributes
    ----------
    session
        The session after the last record, None before the first.
    sittings
        Each opening so far.
    saved_crc
        CRC-32 of the labels last saved; None where the journal saved none.
    unsaved
        Records since then that changed the mask.
    """

    def __init__(self, path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.path = path
        self.session: EditingSession | None = None
        self.sittings: tuple[Sitting, ...] = ()
        self.starts: dict[int, int] = {}
        self.saved_crc: int | None = None
        self.unsaved = 0
        self.damage: Damage | None = None
        self._limit = limit_bytes

    @property
    def summary(self) -> EditingSummary:
        """What went into the mask in all sittings."""
        return self.session.summary if self.session else EditingSummary()

    @property
    def last_at(self) -> str:
        """When the last record was written, "" before the first."""
        return self.sittings[-1].last_at if self.sittings else ""

    def read_back(self, number: int) -> Difference:
        """Return the difference of a step from the file."""
        return step_at(self.path, self.starts[number], number).difference

    def feed(self, placed: PlacedRecord) -> None:
        """Do one record.

        Raises
        ------
        ValueError
            If it contradicts the records before it.
        """
        record = placed.record
        if isinstance(record, Opened):
            self._open(record, placed.at)
            return
        if self.session is None:
            raise FormatError(f"expected {self.path} to begin with what was opened")
        self.sittings = (*self.sittings[:-1], replace(self.sittings[-1], last_at=placed.at))
        if isinstance(record, Saved):
            self.saved_crc, self.unsaved = record.labels_crc, 0
            return
        if isinstance(record, Step):
            self.starts[record.number] = placed.start
        self.session.play(record)
        self.unsaved += 1

    def _open(self, opened: Opened, at: str) -> None:
        self.sittings = (*self.sittings, Sitting(opened, at, at))
        if opened.continues and self.session is not None:
            if crc_of(self.session.labels) != opened.labels_crc:
                raise ValueError("the mask it goes on from is not the one before it")
            return
        earlier = self.summary if self.session else EditingSummary(started_from=opened.base_name)
        number = self.session.next_number if self.session else 1
        self.session = EditingSession(
            opened.case_id,
            opened.base.grid,
            opened.base.dense(),
            None,
            earlier=earlier,
            limit_bytes=self._limit,
        )
        self.session.next_number = number
        self.session.history.read_back = self.read_back
        self.unsaved = 0
        self.saved_crc = opened.labels_crc if opened.base_sha256 else None


def play_journal(play: JournalPlay) -> Job[JournalPlay]:
    """Return a job that plays a whole journal; it stops at a damaged record, see `play.damage`.

    Raises
    ------
    FormatError
        If it is no journal or of another format, see `scan_journal`.
    """
    total = max(play.path.stat().st_size, 1)
    for number, item in enumerate(scan_journal(play.path), start=1):
        if isinstance(item, Damage):
            play.damage = item
            break
        try:
            play.feed(item)
        except (ValueError, IndexError) as error:
            play.damage = Damage(number, item.start, 1, str(error))
            break
        if number % _YIELD_EVERY == 0:
            yield Progress(min(item.start, total), total, "Reading the journal")
    yield Progress(total, total, "Read the journal")
    return play


def crc_of(labels: NDArray[np.uint8]) -> int:
    """Return the CRC-32 of a whole label array."""
    return zlib.crc32(np.ascontiguousarray(labels).data)


def phase_prints(case: Case) -> Job[tuple[str, ...]]:
    """Return a job that gives type and CRC-32 of each phase's values, such as "<i2 0c1d2e3f".

    Empty while phases are still unread.
    """
    if not case.is_loaded:
        return ()
    prints = []
    for index, volume in enumerate(case.signal):
        yield Progress(index, len(case.signal), "Looking at the images")
        values: NDArray[Any] = np.ascontiguousarray(volume)
        prints.append(f"{values.dtype.str} {zlib.crc32(values.data):08x}")
    return tuple(prints)


def as_labels(labels: LabelMap) -> LabelMap:
    """Return a label map of uint8 values; soft masks become 0 and 1.

    Raises
    ------
    FormatError
        If values are not whole numbers of 0 to 255.
    """
    crop = labels.crop
    if crop.dtype == np.uint8:
        return labels
    if np.issubdtype(crop.dtype, np.floating) and np.any(crop != np.rint(crop)):
        return replace(labels, crop=(crop >= 0.5).astype(np.uint8))
    if crop.size and (crop.min() < 0 or crop.max() > 255):
        raise FormatError(
            f"expected labels of 0 to 255 to edit, got {crop.min()} to {crop.max()} in "
            f"{labels.source or 'the mask'}: give the structures smaller values"
        )
    return replace(labels, crop=crop.astype(np.uint8))
