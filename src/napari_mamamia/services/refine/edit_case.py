"""Open a reader's mask of a case for editing, and save it with its provenance."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.blinding import NOT_BLIND, Blinding, BlindReading
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.edits import EditingSummary
from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Setting, now_utc
from napari_mamamia.io.files.append_file import is_open_here
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.workspace.journal import Journal, Opened, Saved, journal_path
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.blinding import blind_reading, require_blind
from napari_mamamia.services.case.open_case import load_mask
from napari_mamamia.services.case.refine import SavedMask, find_refined, save_refined
from napari_mamamia.services.refine.editing import OpenEditing, RecoveredWork
from napari_mamamia.services.refine.journal_play import JournalPlay, MaskOnDisk, play_journal
from napari_mamamia.services.refine.mask_prints import as_labels, crc_of, phase_prints
from napari_mamamia.services.refine.numbers import empty_map
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES
from napari_mamamia.smartpaint.session.session import EditingSession

_MODELS: Final = "models"
"""Name of a provenance parameter: the models that made steps of a mask, with their licences."""

RECOVERED: Final = "recovered from a damaged journal"

_FORGOTTEN: Final = (
    "strokes of earlier sessions are no longer used as evidence, because no journal ends with "
    "this mask; the mask is unchanged, and only new strokes are used"
)

_OWN_LOCK_S: Final = 3.0
_POLL_S: Final = 0.02
"""Time in s between two attempts to lock a journal that an earlier opening still holds.

The value is our choice.
"""


class Opening:
    """The files and notes of a mask while it is being opened."""

    def __init__(
        self,
        case: Case,
        workspace: Workspace | None,
        reader: str,
        started_from: str,
        limit_bytes: int,
    ) -> None:
        self.case = case
        self.workspace = workspace
        self.reader = reader
        self.started_from = started_from
        self.limit_bytes = limit_bytes
        self.start: LabelMap | None = None
        self.start_is_base = False
        self.journal: Journal | None = None
        self.saved: SavedMask | None = None
        self.on_disk: LabelMap | None = None
        self.play: JournalPlay | None = None
        self.prints: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.earlier: EditingSummary | None = None
        self.start_files: tuple[InputFile, ...] = ()
        self.created = ""
        self.n_strokes = 0
        self.blinding: Blinding = workspace.blinding if workspace else NOT_BLIND
        self.before: BlindReading | None = None
        self._is_set_aside = False

    def read(self) -> None:
        """Lock the journal and then read the files."""
        if self.workspace is None:
            self.notes.append("this case has no workspace: steps are not saved to a journal")
            return
        mask = self.workspace.refined(self.reader, self.case.case_id)
        path = journal_path(mask)
        size = path.stat().st_size if path.exists() else 0
        self.journal = self._lock_journal(path)
        self.saved = find_refined(self.workspace, self.reader, self.case.case_id)
        if self.saved is not None:
            self.on_disk = as_labels(load_mask(mask, self.case))
            self.before = BlindReading()
            self._read_provenance(sidecar_path(mask))
        self.prints = phase_prints(self.case)
        if size:
            self._read_journal(path, size)
        if self.before is not None:
            require_blind(self.blinding, self.before, self.reader, self.case.case_id)

    def _lock_journal(self, path: Path) -> Journal:
        """Return the locked journal, which no other window can open while it is locked.

        An opening that was cancelled in this program releases the journal within a moment.
        """
        end = time.monotonic() + _OWN_LOCK_S
        while True:
            try:
                return Journal(path)
            except SaveConflictError as error:
                is_own = is_open_here(path)
                if not is_own or time.monotonic() > end:
                    where = "another window" if is_own else "another program"
                    raise SaveConflictError(
                        f"the mask of {self.case.case_id} cannot be opened for editing, because "
                        f"{self.reader}'s mask is open in {where}. Close it there, or change the "
                        "reader."
                    ) from error
            report_progress(0, 3, "Waiting for an earlier request to open the mask to end")
            time.sleep(_POLL_S)

    def _read_provenance(self, sidecar: Path) -> None:
        try:
            provenance = read_provenance(sidecar) if sidecar.exists() else None
        except FormatError as error:
            self.notes.append(f"the provenance of the saved mask is unknown: {error}")
            return
        if provenance is not None:
            models = dict(provenance.parameters).get(_MODELS)
            self.earlier = EditingSummary(
                provenance.seconds or 0.0,
                started_from=provenance.started_from,
                models=tuple(str(models).split("; ")) if models else (),
            )
            self.start_files = provenance.inputs
            self.created = provenance.created
            strokes = dict(provenance.parameters).get("strokes")
            self.n_strokes = strokes if isinstance(strokes, int) else 0
            self.before = blind_reading(provenance)

    def _read_journal(self, path: Path, size: int) -> None:
        disk = None
        if self.saved is not None and self.on_disk is not None:
            labels = LabelMap(self.case.grid, self.on_disk.box, self.on_disk.crop)
            disk = MaskOnDisk(self.saved.sha256, labels)
        play = JournalPlay(path, self.limit_bytes, on_disk=disk, refusal=self._why_not)
        try:
            play = play_journal(play)
            reason = play.damage_text if play.session is None else ""
        except FormatError as error:
            reason = str(error)
        if reason:
            self._set_aside(reason)
            return
        whole = path.stat().st_size
        if whole < size:
            self.notes.append(
                f"the last record of the journal was incomplete ({size - whole} bytes) and was "
                "removed: only the stroke that was being drawn at the time of the crash is lost"
            )
        self.play = play
        self._read_sittings(play)
        painted_on = play.sittings[-1].opened.phases if play.sittings else ()
        if painted_on and self.prints and painted_on != self.prints:
            self.notes.append("the images differ from the images on which this mask was painted")

    def _read_sittings(self, play: JournalPlay) -> None:
        """Read which data were hidden in each earlier sitting.

        Without earlier sittings, the statement in the mask's provenance is used. If the mask file
        was not made by this journal, the journal and the provenance are used.
        """
        for index, sitting in enumerate(play.sittings):
            before = self.before if index or self.saved else BlindReading(sitting.opened.blinding)
            self.before = (before or BlindReading()).then(sitting.first_at, sitting.opened.blinding)

    def _why_not(self, opened: Opened) -> str:
        """Return why a journal does not belong to this mask, or "" if it does."""
        if opened.case_id != self.case.case_id:
            return f"the journal belongs to case {opened.case_id}, not {self.case.case_id}"
        if opened.reader != self.reader:
            return f"the journal belongs to reader {opened.reader}, not {self.reader}"
        if not opened.base.grid.is_same_place(self.case.grid):
            shapes = f"{opened.base.grid.shape}, this case has {self.case.grid.shape}"
            return f"the grid of the journal differs: shape {shapes}, or a different affine"
        return ""

    def _set_aside(self, reason: str) -> None:
        """Rename a journal that cannot be used, and begin a new journal."""
        if self.journal is None:
            return
        target = self.journal.set_aside()
        where = (
            f"the journal is kept as {target.name}"
            if target
            else "the journal could not be renamed"
        )
        self.notes.append(f"the journal of this mask cannot be used: {reason}; {where}")

    def decide(self) -> OpenEditing:
        """Return the state from which editing continues: the newest verified mask."""
        play = self.play
        if play is None or play.session is None:
            return self._begin_sitting(None)
        has_unsaved = self._has_unsaved(play, play.session)
        if play.damages:
            return self._from_damaged(play, play.session, has_unsaved)
        if self.journal is not None and self._is_set_aside:
            return self._begin_sitting(None)
        self.earlier = play.summary
        if has_unsaved:
            return self._recover_editing(play, play.session)
        if self.on_disk is not None and self._leads_to_disk(play.session):
            return self._continue_editing(play, play.session)
        return self._begin_sitting(play)

    def _leads_to_disk(self, session: EditingSession) -> bool:
        """Return whether the saved mask and the mask of the journal are identical."""
        disk = self.on_disk
        return disk is not None and np.array_equal(
            session.labels, _make_dense(disk, self.case.grid)
        )

    def _continue_editing(self, play: JournalPlay, session: EditingSession) -> OpenEditing:
        """Continue with the saved mask; the strokes in the journal still count as evidence."""
        session.grid = self.case.grid
        base = LabelMap.of(session.labels, self.case.grid)
        return self._open_editing(session, base, play.summary.started_from, play, continues=True)

    def _has_unsaved(self, play: JournalPlay, session: EditingSession) -> bool:
        """Return whether the journal leads to a mask that is newer than the saved mask."""
        crc = crc_of(session.labels)
        if self.on_disk is None:
            return session.position > 0 or play.saved_crc is not None or bool(play.damages)
        if crc == crc_of(_make_dense(self.on_disk, self.case.grid)):
            return False
        if crc == play.saved_crc:
            self.notes.append(
                "another program changed the mask file after this program saved it: editing "
                "continues from the file, and the journal keeps the earlier state"
            )
            return False
        return play.knows_disk or not self._is_disk_newer(play)

    def _is_disk_newer(self, play: JournalPlay) -> bool:
        """Return whether the mask file is newer than the journal and is not mentioned in it."""
        last = _time_of(play.last_at)
        if self.saved is None or (last is not None and self._saved_time() < last):
            return False
        saved = datetime.fromtimestamp(self._saved_time(), UTC).isoformat(timespec="seconds")
        reason = (
            f"the mask file of {saved} is newer than the last record of the journal, which was "
            f"written at {play.last_at or 'an unknown time'}, and no record mentions the file"
        )
        if not play.damages:
            self._set_aside(reason)
            self._is_set_aside = True
        else:
            self.notes.append(reason)
        return True

    def _saved_time(self) -> float:
        """Return the time of the mask in s: the later of its file time and its provenance time."""
        written = self.saved.path.stat().st_mtime if self.saved else 0.0
        return max(written, _time_of(self.created) or 0.0)

    def _recover_editing(self, play: JournalPlay, session: EditingSession) -> OpenEditing:
        """Continue after a crash with the recovered steps, which can be undone."""
        labels = LabelMap.of(session.labels, self.case.grid)
        session.grid = self.case.grid
        on_disk = (
            None if self.on_disk is None else crc_of(_make_dense(self.on_disk, self.case.grid))
        )
        changed = play.saved_crc is not None and play.saved_crc != on_disk
        work = RecoveredWork(play.unsaved, play.last_at, labels, changed)
        name = self.earlier.started_from if self.earlier else ""
        return self._open_editing(session, labels, name, play, work, continues=True)

    def _from_damaged(
        self, play: JournalPlay, session: EditingSession, has_unsaved: bool
    ) -> OpenEditing:
        """Apply the readable part of a damaged journal to the saved mask, as a new step."""
        labels = LabelMap.of(session.labels, self.case.grid)
        self._set_aside(play.damage_text)
        if has_unsaved:
            self.earlier = play.summary
        start, self.start = self.start, None
        if self.on_disk is None:
            self._say_forgotten()
        editing = self._begin_sitting(None)
        if has_unsaved and editing.session.apply_labels(RECOVERED, labels) is not None:
            editing.recovered = RecoveredWork(
                play.unsaved, play.last_at, labels, n_lost=play.n_lost_after
            )
        self.start, self.start_is_base = start, False
        self._lay_start(editing)
        return editing

    def _begin_sitting(self, play: JournalPlay | None) -> OpenEditing:
        """Begin a new sitting from the saved mask, the requested start or an empty mask."""
        start, name = self.on_disk, self.earlier.started_from if self.earlier else ""
        if start is None:
            start, name = self.start, self.started_from if self.start else ""
            self.start_is_base = True
        base = (
            LabelMap(self.case.grid, start.box, start.crop) if start else empty_map(self.case.grid)
        )
        earlier = self.earlier or EditingSummary(started_from=name)
        session = EditingSession(
            self.case.case_id,
            self.case.grid,
            base.dense(),
            None,
            limit_bytes=self.limit_bytes,
            earlier=replace(earlier, started_from=name),
        )
        if play is not None and play.session is not None:
            session.next_number = play.session.next_number
        if self.on_disk is not None:
            self._say_forgotten()
        return self._open_editing(session, base, name, play)

    def _say_forgotten(self) -> None:
        """Add a note that strokes of earlier sittings do not count, if there are such strokes."""
        play = self.play
        if self.n_strokes or (play is not None and play.summary.strokes):
            self.notes.append(_FORGOTTEN)

    def _open_editing(
        self,
        session: EditingSession,
        base: LabelMap,
        name: str,
        play: JournalPlay | None,
        recovered: RecoveredWork | None = None,
        *,
        continues: bool = False,
    ) -> OpenEditing:
        if self.journal is not None:
            self.journal.begin(
                Opened(
                    self.case.case_id,
                    self.reader,
                    base,
                    name,
                    self.saved.sha256 if self.saved else "",
                    crc_of(session.labels),
                    self.prints,
                    continues=continues,
                    blinding=self.blinding,
                )
            )
            if self.before is not None and not self.blinding.covers(self.before.hidden):
                # The opening is recorded even if no stroke follows.
                self.journal.mark()
            for number, start in (play.starts if play else {}).items():
                self.journal.know(number, start)
            session.history.read_back = self.journal.read_back
            session.on_record = self.journal.write
        editing = OpenEditing(
            self.case,
            self.reader,
            self.workspace,
            session,
            self.journal,
            self.saved,
            self.on_disk,
            recovered,
            (),
            self._start_files(),
        )
        now = Blinding() if self.workspace is None else self.blinding
        before = BlindReading(now) if self.before is None else self.before
        editing.saved_marks = play.saved_marks if continues and play else ()
        editing.reading = before.then(now_utc(), now)
        position = session.position
        self._lay_start(editing)
        is_from_disk = self.saved is not None and recovered is None and (continues or position == 0)
        editing.is_as_saved = is_from_disk and session.position == position
        editing.notes = tuple(self.notes)
        return editing

    def _lay_start(self, editing: OpenEditing) -> None:
        """Apply the requested start as a step, unless the session started with it."""
        if self.start is not None and not self.start_is_base:
            editing.session.apply_labels(self.started_from or "start mask", self.start)

    def _start_files(self) -> tuple[InputFile, ...]:
        source = self.start.source if self.start else None
        if source is None or not source.is_file():
            return self.start_files
        file = InputFile(source.name, sha256_of(source))
        return self.start_files if file in self.start_files else (*self.start_files, file)


def _make_dense(labels: LabelMap, grid: Grid) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = LabelMap(grid, labels.box, labels.crop).dense()
    return array


def _time_of(text: str) -> float | None:
    """Return an ISO 8601 time in s, or None if the string is not a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def is_begun(workspace: Workspace, reader: str, case_id: str) -> bool:
    """Return whether the reader has a mask of the case, or a journal of its editing."""
    mask = workspace.refined(reader, case_id)
    return mask.exists() or journal_path(mask).exists()


def open_editing(
    case: Case,
    workspace: Workspace | None,
    reader: str,
    start: LabelMap | None = None,
    images: FeatureImages | None = None,
    *,
    started_from: str = "",
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> OpenEditing:
    """Open a reader's mask of a case for editing.

    Editing continues from unsaved steps in the journal, or else from the reader's saved mask, from
    `start`, or from an empty mask. If there is earlier work, `start` is applied to it as a separate
    step, which can be undone.

    Parameters
    ----------
    start, started_from
        The initial mask and its name, such as "prediction kinetic".
    images
        The images that a SmartPaint brush compares. They can also be set later as
        ``session.images``.

    Raises
    ------
    SaveConflictError
        If the same mask is being edited in another window.
    FormatError, GridMismatchError
        If the saved mask is damaged or on a different grid.
    HiddenError
        If the workspace's blinding hides data that were visible when the mask was made.
    """
    report_progress(0, 3, "Opening the mask")
    opening = Opening(case, workspace, reader, started_from, limit_bytes)
    if start is not None:
        opening.start = as_labels(start)
    try:
        opening.read()
        editing = opening.decide()
    # If the user cancels, the journal must also be released, because it is locked.
    except BaseException:
        if opening.journal is not None:
            opening.journal.close()
        raise
    editing.session.images = images
    report_progress(3, 3, "Opened the mask")
    return editing


def save_editing(editing: OpenEditing, *, accepted: bool = False) -> SavedMask:
    """Save the mask with its provenance; a stroke that is being drawn is not included.

    `accepted` records that the reader accepts this version.

    Raises
    ------
    SaveConflictError, SaveError
        As in `save_refined`; the journal and the session are then unchanged.
    ValueError
        If there is no workspace to save to.
    """
    return prepare_saving(editing, accepted=accepted)()


def prepare_saving(editing: OpenEditing, *, accepted: bool = False) -> Callable[[], SavedMask]:
    """Copy the current mask, and return a function that saves the copy from any thread.

    Call `prepare_saving` in the thread that edits. The errors are the same as in `save_editing`.
    """
    if editing.workspace is None:
        raise ValueError("expected the case to have a workspace to save to, but it has none")
    editing.session.notice_external()
    # Only the bounding box is copied, because allocating a whole volume can block the window for
    # 60 ms.
    mask = LabelMap.of(editing.session.state.recorded_labels, editing.case.grid)
    # This is the record at the time of the copy; strokes may follow before the file is written.
    head = editing.journal.mark() if editing.journal else ""
    summary = editing.session.summary
    return partial(_save_labels, editing, editing.workspace, mask, summary, head, accepted)


def _save_labels(
    editing: OpenEditing,
    workspace: Workspace,
    mask: LabelMap,
    summary: EditingSummary,
    head: str,
    accepted: bool,
) -> SavedMask:
    labels = mask.dense()
    crc = crc_of(labels)
    saved = save_refined(
        workspace,
        editing.reader,
        editing.case,
        labels,
        started_from=summary.started_from,
        seconds=round(summary.seconds, 1),
        replaces=editing.saved,
        parameters=(
            *summary_settings(summary),
            *((("protocol", editing.protocol),) if editing.protocol else ()),
            *editing.reading.settings,
        ),
        inputs=editing.start_files,
        accepted=accepted,
    )
    editing.saved, editing.on_disk = saved, mask
    if editing.journal is not None:
        editing.journal.write(Saved(saved.sha256, crc, head))
    return saved


def summary_settings(summary: EditingSummary) -> tuple[tuple[str, Setting], ...]:
    """Return the summary of a mask's editing as settings of its provenance."""
    return (
        ("strokes", summary.strokes),
        ("other steps", summary.steps),
        ("undos", summary.undos),
        ("path_mm", round(summary.path_mm, 1)),
        ("tools", ", ".join(summary.tools)),
        *(((_MODELS, "; ".join(summary.models)),) if summary.models else ()),
    )
