"""Replay a journal from its first record to its last."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import EditingSummary, Jump, Step, Turn
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.texts import tr_n
from napari_mamamia.io.files.append_file import NO_ORIGIN
from napari_mamamia.io.workspace import journal
from napari_mamamia.services.refine.mask_prints import crc_of
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.state import LabelMarks

_YIELD_EVERY = 8

_ANY: Final = 0
"""Placeholder for the number of the next step after lost steps: any number is accepted."""

_CONTRADICTIONS: Final = (ValueError, IndexError, KeyError, OverflowError, MemoryError)
"""Exceptions that a session raises for a record that contradicts its state."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """One opening of the case, with the times of its first and last records."""

    opened: journal.Opened
    first_at: str
    last_at: str


Refusal = Callable[[journal.Opened], str]
"""Function that returns why an opening record belongs to a different mask, or ""."""

Watch = Callable[[EditingSession, Step], None]
"""Function that is called with the session and a step before the step is applied."""


@dataclass(frozen=True, slots=True)
class MaskOnDisk:
    """The saved mask next to its journal: SHA-256 of the file, and its uint8 labels."""

    sha256: str
    labels: LabelMap


class JournalPlay:
    """The newest state of a mask after its journal has been replayed record by record.

    A record is applied if its chain value shows that it follows the previous record. After a
    damaged, missing or contradictory record, replay continues at the next complete mask: at an
    opening whose record contains the mask, or at the record that saved `on_disk`.

    Parameters
    ----------
    on_disk
        The saved mask, or None.
    refusal
        Function that returns why a journal belongs to a different mask, or "".
    watch
        Function that is called with each step before the step is applied.

    Attributes
    ----------
    session
        The session after the last applied record, or None before the first record.
    sittings
        The openings so far.
    starts
        The file position of each step by its number.
    saved_crc
        CRC-32 of the labels that were last saved, or None if the journal records no save.
    saved_marks
        The marks of each label at the last save, or empty if unknown.
    unsaved
        The records since the last save that changed the mask.
    damages
        The damaged positions in the file, in order.
    knows_disk
        Whether a record states that this program saved `on_disk`.
    n_lost, n_lost_after
        The number of records that could not be applied, and the number of these after the last
        applied record, which are missing from the mask.
    verified
        The number of the last record whose checksum the mask had.
    is_doubtful
        Whether a later checksum shows that the mask differs from the original mask.
    """

    def __init__(
        self,
        path: Path,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        *,
        on_disk: MaskOnDisk | None = None,
        refusal: Refusal = lambda _: "",
        watch: Watch = lambda _session, _step: None,
    ) -> None:
        self.path = path
        self.session: EditingSession | None = None
        self.sittings: tuple[Sitting, ...] = ()
        self.starts: dict[int, int] = {}
        self.saved_crc: int | None = None
        self.unsaved = 0
        self.damages: list[journal.Damage] = []
        self.knows_disk = False
        self.verified = 0
        self.is_doubtful = False
        self.limit_bytes = limit_bytes
        self.on_disk = on_disk
        self.n_records = 0
        self._refusal = refusal
        self._watch = watch
        self._head = NO_ORIGIN
        self._last = -1
        self._is_whole = True
        self._n_done = 0
        self._done: set[str] = set()
        self._waiting: dict[str, journal.PlacedRecord] = {}
        self.saved_marks: tuple[LabelMarks, ...] = ()
        self._acts: list[tuple[str, tuple[int, ...]]] = []

    @property
    def summary(self) -> EditingSummary:
        """Summary of editing in all sittings."""
        return self.session.summary if self.session else EditingSummary()

    @property
    def last_at(self) -> str:
        """Time at which the last applied record was written, or "" before the first record."""
        return self.sittings[-1].last_at if self.sittings else ""

    @property
    def n_lost(self) -> int:
        """Number of records that could not be applied."""
        return self.n_records - self._n_done

    @property
    def n_lost_after(self) -> int:
        """Number of lost records after the last applied record."""
        return max(0, self.n_records - 1 - self._last)

    @property
    def damage_text(self) -> str:
        """A sentence about damage to the file and its consequences, or ""."""
        if not self.damages:
            return ""
        more = f" and {len(self.damages) - 1} more" if len(self.damages) > 1 else ""
        return f"the journal is damaged at {self.damages[0].text}{more}; {self._describe_cost()}"

    def _describe_cost(self) -> str:
        if not self.n_lost:
            return "no record is lost"
        if not self.n_lost_after:
            return (
                f"{self.n_lost} of {self.n_records} records are lost, but a later record has a "
                "complete mask, so the mask is correct up to the last record"
            )
        return (
            f"{self.n_lost} of {self.n_records} records are damaged, are missing or depend on "
            f"such records; the mask is from {self.last_at or 'the saved file'}, and "
            + tr_n(
                "{n} later record is not included",
                "{n} later records are not included",
                self.n_lost_after,
            )
        )

    def read_back(self, number: int) -> Difference:
        """Return the difference of a step from the file."""
        return journal.step_at(self.path, self.starts[number], number).difference

    def take(self, item: journal.PlacedRecord | journal.Damage) -> None:
        """Process the next item of the file.

        Raises
        ------
        FormatError
            If the journal belongs to a different mask.
        """
        if isinstance(item, journal.Damage):
            self.damages.append(item)
            self._is_whole = False
            self.n_records += item.is_lost
            return
        self.n_records = max(self.n_records, item.index + 1)
        # A repeated record is applied only once.
        if item.hash in self._done:
            return
        if isinstance(item.record, journal.Opened) and self._is_foreign(item, item.record):
            return
        if isinstance(item.record, journal.Saved) and self._is_disk(item.record):
            self.knows_disk = True
        if item.prev == self._head:
            self._apply_record(item)
        else:
            self._go_on_from(item)
        while self._head in self._waiting:  # such as records in the wrong order
            self._apply_record(self._waiting.pop(self._head))

    # -------------------------------------------------------------------- inner

    def _is_foreign(self, item: journal.PlacedRecord, opened: journal.Opened) -> bool:
        """Return whether an opening is from a different journal; raise if it is the first opening.

        Two files may have been concatenated; the records after the opening then do not belong to
        this mask.
        """
        reason = _why_other(opened, self.sittings) or self._refusal(opened)
        if reason and self.session is None:
            raise FormatError(reason)
        if reason:
            if self.damages and self.damages[-1].record == item.number:
                self.damages.pop()  # This reason is a better message than a broken chain.
            self.damages.append(journal.Damage(item.number, item.start, reason, is_lost=False))
            self._is_whole = False
        return bool(reason)

    def _apply_record(self, item: journal.PlacedRecord) -> None:
        """Apply a record; if the record contradicts earlier records, stop the replay at it."""
        try:
            self._dispatch_record(item)
        except _CONTRADICTIONS as error:
            self.damages.append(journal.Damage(item.number, item.start, str(error), is_lost=False))
            self._head, self._is_whole = "", False
            self._go_on_from(item)
        else:
            self._count_record(item)

    def _count_record(self, item: journal.PlacedRecord) -> None:
        self._head, self._last, self._is_whole = item.hash, item.index, True
        self._n_done += 1
        self._done.add(item.hash)
        if self.sittings:
            self.sittings = (*self.sittings[:-1], replace(self.sittings[-1], last_at=item.at))

    def _go_on_from(self, item: journal.PlacedRecord) -> None:
        """Continue from a record that contains a complete mask or records a save."""
        record = item.record
        if item.index > self._last and isinstance(record, journal.Opened) and _is_true(record):
            self._begin_sitting(record, item)
            self._count_record(item)
        elif (
            item.index > self._last and isinstance(record, journal.Saved) and self._is_disk(record)
        ):
            self._begin_from_disk(record, item)
        else:
            self._waiting[item.prev] = item

    def _dispatch_record(self, item: journal.PlacedRecord) -> None:
        record = item.record
        if isinstance(record, journal.Opened):
            self._open_sitting(record, item)
        elif self.session is None:
            raise ValueError("no mask was opened before this record")
        elif isinstance(record, journal.Saved):
            self._check_checksum(record.labels_crc)
            self.saved_marks = self._find_marks(self.session, record.head)
            self._mark_verified(item, record.labels_crc)
        else:
            self._play_act(self.session, record, item)

    def _play_act(
        self, session: EditingSession, record: Step | Turn | Jump, item: journal.PlacedRecord
    ) -> None:
        numbers = _find_step_numbers(session, record)
        if isinstance(record, Step):
            self._watch(session, record)
            self.starts[record.number] = item.start
        session.play(record)
        self._acts.append((item.hash, numbers))
        self.unsaved += 1

    def _open_sitting(self, opened: journal.Opened, item: journal.PlacedRecord) -> None:
        """Continue from the previous state, or begin a new state, as the record states."""
        goes_on = opened.continues and self.session is not None
        if goes_on and self.session and crc_of(self.session.labels) == opened.labels_crc:
            self.sittings = (*self.sittings, Sitting(opened, item.at, item.at))
            # This verifies the mask without a save, as `_mark_verified` assumes.
            saved = (self.saved_crc, self.unsaved)
            self._mark_verified(item, opened.labels_crc)
            self.saved_crc, self.unsaved = saved
            return
        if goes_on:
            raise ValueError("the mask from which it continues differs from the previous mask")
        if not _is_true(opened):
            raise ValueError("the mask does not match the checksum in the record")
        self._begin_sitting(opened, item)

    def _begin_sitting(self, opened: journal.Opened, item: journal.PlacedRecord) -> None:
        """Begin a sitting with the mask in the record."""
        earlier = self.summary if self.session else EditingSummary(started_from=opened.base_name)
        number = self.session.next_number if self.session else 1
        self._begin_with(opened.case_id, opened.base, earlier, number if self._is_whole else _ANY)
        self.sittings = (*self.sittings, Sitting(opened, item.at, item.at))
        self._mark_verified(item, opened.labels_crc if opened.base_sha256 else None)

    def _begin_from_disk(self, saved: journal.Saved, item: journal.PlacedRecord) -> None:
        """Continue from the mask on disk; strokes that were painted during the save follow."""
        disk = self.on_disk
        if disk is None:
            return
        case_id = self.sittings[-1].opened.case_id if self.sittings else ""
        self._begin_with(case_id, disk.labels, self.summary, _ANY)
        self._mark_verified(item, saved.labels_crc)
        # Strokes painted during the save precede this record, which is written after the save.
        self._waiting[item.prev] = item
        self._head, self._last = saved.head or item.prev, item.index - 1

    def _begin_with(
        self, case_id: str, labels: LabelMap, earlier: EditingSummary, number: int
    ) -> None:
        self.session = EditingSession(
            case_id,
            labels.grid,
            labels.dense(),
            None,
            earlier=earlier,
            limit_bytes=self.limit_bytes,
        )
        self.session.next_number = number
        self.session.history.read_back = self.read_back
        self.saved_marks = ()

    def _mark_verified(self, item: journal.PlacedRecord, saved_crc: int | None) -> None:
        self.verified, self.is_doubtful = item.number, False
        self.saved_crc, self.unsaved, self._acts = saved_crc, 0, []

    def _check_checksum(self, crc: int) -> None:
        """Check that the mask had this checksum at some time since it was last verified.

        A reader may have painted during the save, so earlier states are also compared.

        Raises
        ------
        ValueError
            If no state has this checksum.
        """
        session = self.session
        if session is None or crc_of(session.labels) == crc:
            return
        labels = session.labels.copy()
        for _, numbers in reversed(self._acts):
            for number in numbers:
                self.read_back(number).flip(labels)
            if crc_of(labels) == crc:
                return
        self.is_doubtful = True
        raise ValueError("the saved mask differs from the mask that the earlier records produce")

    def _find_marks(self, session: EditingSession, head: str) -> tuple[LabelMarks, ...]:
        """Return the marks at the record `head`; a reader may have painted during a save."""
        places = [index for index, _ in self._acts]
        late = self._acts if head in self._done else []
        if head in places:
            late = self._acts[places.index(head) + 1 :]
        steps = [self.read_back(number) for _, numbers in late for number in numbers]
        for step in steps:
            session.state.flip(step)
        marks = session.state.all_marks()
        for step in steps:  # Labels that were changed twice are unchanged.
            session.state.flip(step)
        return marks

    def _is_disk(self, saved: journal.Saved) -> bool:
        disk = self.on_disk
        return (
            disk is not None
            and saved.sha256 == disk.sha256
            and saved.labels_crc == crc_of(disk.labels.dense())
        )


def play_journal(play: JournalPlay) -> JournalPlay:
    """Replay a whole journal and return it, with its newest verified state.

    Raises
    ------
    FormatError
        If the file is not a journal, has a different format (see `scan_journal`), or belongs to a
        different mask.
    """
    _play_records(play, play.path)
    if not play.is_doubtful:
        return play
    proven = JournalPlay(play.path, play.limit_bytes, on_disk=play.on_disk)
    _play_records(proven, play.path, play.verified)
    proven.damages, proven.n_records = play.damages, play.n_records
    proven.knows_disk = play.knows_disk
    return proven


def _play_records(play: JournalPlay, path: Path, until: int | None = None) -> None:
    total = max(path.stat().st_size, 1) if path.is_file() else 1
    for number, item in enumerate(journal.scan_journal(path)):
        if until is not None and isinstance(item, journal.PlacedRecord) and item.number > until:
            break
        play.take(item)
        if number % _YIELD_EVERY == 0:
            report_progress(min(item.start, total), total, "Reading the journal")
    report_progress(total, total, "Read the journal")


def _find_step_numbers(session: EditingSession, record: Step | Turn | Jump) -> tuple[int, ...]:
    """Return the numbers of the steps that a record applies or undoes."""
    if isinstance(record, Step):
        return (record.number,)
    if isinstance(record, Jump):
        return session.history.numbers_to(record.stop)
    by = -1 if record is Turn.UNDO else 1
    return session.history.numbers_to(session.history.position + by)


def _why_other(opened: journal.Opened, sittings: tuple[Sitting, ...]) -> str:
    """Return why an opening belongs to a different mask than the previous openings, or ""."""
    if not sittings:
        return ""
    first = sittings[0].opened
    if (opened.case_id, opened.reader) != (first.case_id, first.reader):
        return (
            f"the record belongs to case {opened.case_id}, reader {opened.reader}, and "
            "therefore to a different journal"
        )
    is_same = opened.base.grid.is_same_place(first.base.grid)
    return "" if is_same else "the grid differs from the grid of the earlier records"


def _is_true(opened: journal.Opened) -> bool:
    """Return whether the mask in a record has the checksum in the record."""
    return crc_of(opened.base.dense()) == opened.labels_crc
