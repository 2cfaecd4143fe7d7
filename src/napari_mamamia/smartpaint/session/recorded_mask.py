"""`RecordedMask`: a mask whose every change is a recorded step, with undo, jump and replay."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import (
    UNDOES_ROW,
    WHOLE_MASK,
    Edit,
    EditingSummary,
    Jump,
    Step,
    Tool,
    Turn,
    standing_rows,
)
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.smartpaint.session.gathered_jump import GatheredJump
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES, History
from napari_mamamia.smartpaint.session.state import MaskState, moved

PAINTED_OUTSIDE: Final = "painted with napari"
"""Name of a step that was not made by the session."""

Record = Callable[[Step | Turn | Jump], None]

LONGEST_PAUSE_S: Final = 30.0
"""Longest pause in seconds between two acts that counts as editing time; our choice."""


class EditingClock:
    """Adds up the time between acts.

    Parameters
    ----------
    seconds
        Editing time of earlier sittings, to which new time is added.
    now
        A monotonic clock in seconds.
    """

    def __init__(self, seconds: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._now = now
        self._last: float | None = None

    def act(self) -> float:
        """Register an act of the reader; return the editing time so far in seconds."""
        now = self._now()
        if self._last is not None and now - self._last < LONGEST_PAUSE_S:
            self.seconds += now - self._last
        self._last = now
        return self.seconds


class RecordedMask:
    """The labels of a session with their history.

    Parameters
    ----------
    grid, labels
        uint8 ``(z, y, x)`` on `grid`, edited in place.
    label
        The default value to edit.
    limit_bytes
        Memory for the differences of steps, see `History`.
    earlier
        Summary of earlier editing; seconds, strokes and tools continue from it.
    now
        The clock, in seconds.

    Attributes
    ----------
    on_record
        Called with each step, undo, redo and jump.

    Raises
    ------
    CaseError
        If `labels` is not a writable uint8 array of the grid's shape.
    """

    def __init__(
        self,
        grid: Grid,
        labels: NDArray[np.uint8],
        *,
        label: int = 1,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        earlier: EditingSummary | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        _require_buffer(labels, grid)
        self.grid = grid
        self.label = label
        self.history = History(limit_bytes)
        self.on_record: Record | None = None
        self.state = MaskState(labels)
        self.history.keep_keyframe(self.state.snapshot())
        self.start_labels = LabelMap.of(labels, grid)
        self.next_number = 1
        self._clock = EditingClock(earlier.seconds if earlier else 0.0, now)
        self._summary = earlier or EditingSummary()

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The current labels, uint8 ``(z, y, x)``: the buffer itself."""
        return self.state.labels

    @property
    def summary(self) -> EditingSummary:
        """Summary of the editing so far."""
        return replace(self._summary, seconds=self._clock.seconds)

    @property
    def steps(self) -> tuple[Edit, ...]:
        """The edit of each step, in order, including undone steps."""
        return self.history.edits

    @property
    def position(self) -> int:
        """Number of applied `steps`."""
        return self.history.position

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return self.history.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone step to redo."""
        return self.history.can_redo

    def record_pending(self) -> None:
        """Record all pending changes as a step."""
        self.notice_external()

    def notice_external(self, box: Box | None = None) -> Step | None:
        """Record changes that something else painted into the buffer, inside `box` or anywhere.

        Voxels that became the painted label are held inside it from now on; voxels that it lost are
        held outside.
        """
        where = box if box is not None else Box.whole(self.grid.shape)
        if where.is_empty or self.state.is_recorded(where):
            return None
        self._clock.act()
        now, then = (a[where.slices] for a in (self.labels, self.state.recorded_labels))
        box = moved(Box.around(now != then), where.start)
        label = self.state.painted_label(box, self.label)
        self.state.hold_changes(label, (box,))
        return self._record_step(
            Edit(PAINTED_OUTSIDE), self.state.record(label, (box,), marks=True)
        )

    def undo(self, label: int | None = None) -> Box | None:
        """Undo the last applied step; return the box to redraw, None if there is no step.

        With `label`, undo the last step of that lesion, whatever was done to others since; the undo
        is then a step of its own. Flipped bits do not depend on order, as long as no later step
        touched any of its voxels.

        Strokes that changed the membership but moved no voxel across the threshold are undone with
        it, so that each undo is visible. A stroke of evidence, and a step that is no stroke, is
        undone by itself.

        Raises
        ------
        CaseError
            If another lesion, or the whole mask, changed later at the voxels of the step; nothing
            changes.
        FormatError, SaveError
            If an old step cannot be read back from the journal; nothing changes.
        """
        self.record_pending()
        box = None
        while box is None or box.is_empty:
            row = self._find_row_to_undo(label)
            if not row:
                break
            edit = self.steps[row - 1]
            is_last = row == self.position
            box = self._undo_last() if is_last else self._take_back(row)
            if not _is_made_of_stamps(edit):
                break
        return box

    def redo(self, label: int | None = None) -> Box | None:
        """Redo the next undone step; return the box to redraw, None if there is no step.

        With `label`, redo the step of that lesion that was undone last.

        Raises
        ------
        FormatError, SaveError
            As `undo`.
        """
        self.record_pending()
        if label is not None and self._is_taken_back(label) and not self._is_redo_of(label):
            return self._undo_last()
        box = None
        while (box is None or box.is_empty) and self._is_redo_of(label):
            edit = self.steps[self.position]
            box = self._apply_turn(Turn.REDO, self.history.to_redo())
            if not _is_made_of_stamps(edit):
                break
        return box

    def undoes_in(self, label: int) -> bool:
        """Return whether a lesion has a step to undo."""
        return bool(self._find_row_to_undo(label))

    def redoes_in(self, label: int) -> bool:
        """Return whether a lesion has a step to redo."""
        return self._is_redo_of(label) or self._is_taken_back(label)

    def go_to(self, position: int) -> Box:
        """Jump to the state after `position` steps; return the box to redraw.

        Every row of the history is a state of its own, even that of a step which changed no voxel;
        only `undo` and `redo` skip such steps.

        Raises
        ------
        CaseError
            If there is no such state, or a step on the way is stored nowhere; nothing changes.
        FormatError, SaveError
            As `undo`.
        """
        way = self.prepare_jump(position)
        while way.gather():
            pass
        return self.go(way) or Box.empty()

    def prepare_jump(self, position: int) -> GatheredJump:
        """Return the jump to the state after `position` steps, to be gathered before `go`.

        Raises
        ------
        CaseError
            If there is no such state.
        """
        self.record_pending()
        return GatheredJump(self.history, position, self.grid.shape, self.state.snapshot)

    def go(self, way: GatheredJump) -> Box | None:
        """Apply a gathered jump; return the box to redraw.

        None, and nothing changes, if the mask was edited after the jump was requested.
        """
        self.record_pending()
        if way.revision != self.history.revision:
            return None
        if way.jump.start == way.jump.stop:
            return Box.empty()
        box = self.state.jump(way)
        self.history.move(way.jump.stop)
        self._clock.act()
        self._summary = self._summary.after(way.jump)
        if self.on_record is not None:
            self.on_record(way.jump)
        return box

    def play(self, record: Step | Turn | Jump) -> None:
        """Replay a record of an earlier session, without recording it again.

        Raises
        ------
        ValueError
            If the record does not fit this session: another shape, nothing to undo.
        FormatError, SaveError
            If an old step cannot be read back.
        """
        if isinstance(record, Step):
            self.state.flip(record.difference)
            self._add_step(record)
            self.next_number = max(self.next_number, record.number + 1)
        elif isinstance(record, Jump):
            self._play_jump(record)
        elif record is Turn.UNDO:
            self.state.flip(self.history.to_undo())
            self.history.back()
        else:
            self.state.flip(self.history.to_redo())
            self.history.forward()
        act = record.edit if isinstance(record, Step) else record
        self._summary = self._summary.after(act)
        self._clock.seconds = max(self._clock.seconds, self._summary.seconds)

    def _play_jump(self, jump: Jump) -> None:
        rows = len(self.history.edits)
        if jump.start != self.history.position or not 0 <= jump.stop <= rows:
            raise ValueError(
                f"it goes from row {jump.start} to {jump.stop}, but the history is at row "
                f"{self.history.position} of {rows}"
            )
        way = GatheredJump(self.history, jump.stop, self.grid.shape, self.state.snapshot)
        while way.gather():
            pass
        self.state.jump(way)
        self.history.move(jump.stop)

    def _find_row_to_undo(self, label: int | None) -> int:
        """Return the row of the last step, or of the last step of a lesion; 0 if there is none."""
        if label is None or not self.can_undo:
            return self.position if self.can_undo else 0
        return max(standing_rows(self.steps[: self.position], label), default=0)

    def _undo_last(self) -> Box:
        return self._apply_turn(Turn.UNDO, self.history.to_undo())

    def _is_redo_of(self, label: int | None) -> bool:
        """Return whether the next undone step is one of a lesion, and not a reversal."""
        if label is None or not self.can_redo:
            return self.can_redo
        edit = self.steps[self.position]
        return edit.label in (label, WHOLE_MASK) and edit.undone_row is None

    def _is_taken_back(self, label: int) -> bool:
        """Return whether the last applied step reversed a step of a lesion."""
        edit = self.steps[self.position - 1] if self.can_undo else None
        return edit is not None and edit.label == label and edit.undone_row is not None

    def _take_back(self, row: int) -> Box:
        """Reverse the step of a row by a step of its own."""
        edit, difference = self.steps[row - 1], self.history.difference_of(row)
        self._require_untouched(row, edit, difference)
        self.state.flip(difference)
        step = self._record_step(
            Edit(f"undo ({row} {edit.name})", parameters=((UNDOES_ROW, row),)), difference
        )
        return Box.empty() if step is None else step.difference.box

    def _require_untouched(self, row: int, edit: Edit, difference: Difference) -> None:
        """Raise `CaseError` if a later step changed voxels that a step had changed."""
        is_touched = edit.label == WHOLE_MASK
        if not is_touched:
            box = difference.box
            since = np.zeros(box.shape, np.uint8)
            for later in self.history.differences_to(row):
                since ^= self._cut_flipped(later, box)
            is_touched = bool(((since != 0) & (self._cut_flipped(difference, box) != 0)).any())
        if is_touched:
            raise CaseError(
                f"expected no later change of the voxels of step {row} ({edit.name}), but a later "
                "step changed them: nothing was changed; click a row of the history to go back, "
                "together with every later step"
            )

    def _cut_flipped(self, difference: Difference, box: Box) -> NDArray[np.uint8]:
        """Return the flipped bits of the labels inside a box; the whole grid would take 60 ms."""
        flipped = np.zeros(box.shape, np.uint8)
        for change in difference.labels:
            starts = zip(change.box.start, box.start, strict=True)
            stops = zip(change.box.stop, box.stop, strict=True)
            if any(max(a) >= min(b) for a, b in zip(starts, stops, strict=True)):
                continue
            bits = np.zeros(change.box.shape, np.uint8)
            replace(change, box=Box.whole(bits.shape)).flip(bits)
            flipped ^= LabelMap(self.grid, change.box, bits).cut(box)
        return flipped

    def _add_step(self, step: Step) -> None:
        self.history.add(step)
        if self.history.is_keyframe_due and self.state.is_quickly_kept:
            self.history.keep_keyframe(self.state.snapshot())

    def _apply_turn(self, turn: Turn, difference: Difference) -> Box:
        self.state.flip(difference)
        if turn is Turn.UNDO:
            self.history.back()
        else:
            self.history.forward()
        self._clock.act()
        self._summary = self._summary.after(turn)
        if self.on_record is not None:
            self.on_record(turn)
        return difference.box

    def _record_step(self, edit: Edit, difference: Difference | None) -> Step | None:
        if difference is None:
            return None
        seconds = self._clock.act()
        edit = replace(
            edit,
            changed_voxels=difference.changed_voxels,
            at_s=round(seconds, 3),
            label=difference.label,
        )
        step = Step(self.next_number, edit, difference)
        self.next_number += 1
        self._add_step(step)
        self._summary = self._summary.after(edit)
        if self.on_record is not None:
            self.on_record(step)
        return step


def _is_made_of_stamps(edit: Edit) -> bool:
    """Return whether a step is a stroke of stamps, which may change membership alone."""
    return edit.stroke is not None and edit.stroke.brush.tool is not Tool.EVIDENCE


def _require_buffer(labels: NDArray[np.uint8], grid: Grid) -> None:
    if labels.dtype != np.uint8 or labels.shape != grid.shape or not labels.flags.writeable:
        raise CaseError(
            f"expected a writable uint8 buffer of shape {grid.shape} to edit, but got "
            f"{labels.dtype} {labels.shape}: start editing again"
        )
