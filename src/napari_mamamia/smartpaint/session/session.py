"""Editing of a case's mask by a reader; every step is recorded and can be undone.

An `EditingSession` uses no window and no files. Labels are edited in place, the returned boxes must
be redrawn, and each step is passed to `on_record`, for example a journal.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core import edits
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Setting
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.evidence.stroke import (
    SettledStroke,
    StrokeWork,
    prepare_stroke,
    preview_stroke,
    settle_stroke,
)
from napari_mamamia.smartpaint.session.evidence_stroke import (
    CurrentEvidenceStroke,
    KeptStroke,
    LiftedStroke,
    keep_stroke,
    require_fitting,
)
from napari_mamamia.smartpaint.session.gathered_jump import GatheredJump
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES, History
from napari_mamamia.smartpaint.session.state import LabelMarks, MaskState, moved
from napari_mamamia.smartpaint.session.stroke import CurrentStroke, turned_by_press

PAINTED_OUTSIDE: Final = "painted with napari"
"""Name of a step whose changes were painted with napari's own tools."""

Record = Callable[[edits.Step | edits.Turn | edits.Jump], None]

LONGEST_PAUSE_S: Final = 30.0
"""Longest pause in s between two actions that counts as editing time. Our choice."""
FORGET_MARKS: Final = "forget marks"
_LOOKING: Final = (edits.Tool.SMARTPAINT, edits.Tool.EVIDENCE, edits.Tool.LEARNED)

Settings = tuple[tuple[str, Setting], ...]


class EditingClock:
    """Accumulates the time between actions.

    Parameters
    ----------
    seconds
        The editing time of earlier sittings in s, to which new time is added.
    now
        A monotonic clock in seconds.
    """

    def __init__(self, seconds: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._now = now
        self._last: float | None = None

    def act(self) -> float:
        """Register an action of the reader; return the editing time so far in s."""
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
        A uint8 array ``(z, y, x)`` on `grid`, which is edited in place.
    label
        The label value to edit by default.
    limit_bytes
        The memory limit for the differences of steps; see `History`.
    earlier
        The summary of earlier editing; its time, strokes and tools are continued.
    now
        The clock, a function that returns seconds.

    Attributes
    ----------
    on_record
        Function that is called with each step, undo, redo and jump.

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
        earlier: edits.EditingSummary | None = None,
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
        self._summary = earlier or edits.EditingSummary()

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The current labels as the uint8 buffer ``(z, y, x)`` itself."""
        return self.state.labels

    @property
    def summary(self) -> edits.EditingSummary:
        """Summary of the editing so far."""
        return replace(self._summary, seconds=self._clock.seconds)

    @property
    def steps(self) -> tuple[edits.Edit, ...]:
        """The edit of each step in order, including undone steps."""
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

    def notice_external(self, box: Box | None = None) -> edits.Step | None:
        """Record changes that other tools painted into the buffer, inside `box` or anywhere.

        Voxels that gained the painted label are then fixed inside the label; voxels that lost the
        label are fixed outside.
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
            edits.Edit(PAINTED_OUTSIDE), self.state.record(label, (box,), marks=True)
        )

    def undo(self, label: int | None = None) -> Box | None:
        """Undo the last applied step; return the box to redraw, or None if there is no step.

        With `label`, the last step of that lesion is undone, regardless of later steps for other
        lesions; the undo is then recorded as a new step. This is possible because flipped bits do
        not depend on order, provided that no later step changed the same voxels.

        Strokes that changed only the membership, but no label, are undone together with this step,
        so each undo is visible. An evidence stroke, or a step that is not a stroke, is undone
        separately.

        Raises
        ------
        CaseError
            If a later step changed the voxels of the step; nothing is then changed.
        FormatError, SaveError
            If an old step cannot be read back from the journal; nothing is then changed.
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
        """Redo the next undone step; return the box to redraw, or None if there is no step.

        If `label` is given, redo the most recently undone step of that lesion.

        Raises
        ------
        FormatError, SaveError
            As in `undo`.
        """
        self.record_pending()
        if label is not None and self._is_taken_back(label) and not self._is_redo_of(label):
            return self._undo_last()
        box = None
        while (box is None or box.is_empty) and self._is_redo_of(label):
            edit = self.steps[self.position]
            box = self._apply_turn(edits.Turn.REDO, self.history.to_redo())
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

        Every row of the history is a separate state, even after a step that changed no voxel; only
        `undo` and `redo` skip such steps.

        Raises
        ------
        CaseError
            If the state does not exist, or a step in between is not stored; nothing is then
            changed.
        FormatError, SaveError
            As in `undo`.
        """
        way = self.prepare_jump(position)
        while way.gather():
            pass
        return self.go(way) or Box.empty()

    def prepare_jump(self, position: int) -> GatheredJump:
        """Return the jump to the state after `position` steps, which must be gathered before `go`.

        Raises
        ------
        CaseError
            If the state does not exist.
        """
        self.record_pending()
        return GatheredJump(self.history, position, self.grid.shape, self.state.snapshot)

    def go(self, way: GatheredJump) -> Box | None:
        """Apply a gathered jump and return the box to redraw.

        If the mask was edited after the jump was requested, nothing is changed and the result is
        None.
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

    def play(self, record: edits.Step | edits.Turn | edits.Jump) -> None:
        """Replay a record of an earlier session, without recording it again.

        Raises
        ------
        ValueError
            If the record does not match this session, for example because the shape differs or
            there is nothing to undo.
        FormatError, SaveError
            If an old step cannot be read back.
        """
        if isinstance(record, edits.Step):
            self.state.flip(record.difference)
            self._add_step(record)
            self.next_number = max(self.next_number, record.number + 1)
        elif isinstance(record, edits.Jump):
            self._play_jump(record)
        elif record is edits.Turn.UNDO:
            self.state.flip(self.history.to_undo())
            self.history.back()
        else:
            self.state.flip(self.history.to_redo())
            self.history.forward()
        act = record.edit if isinstance(record, edits.Step) else record
        self._summary = self._summary.after(act)
        self._clock.seconds = max(self._clock.seconds, self._summary.seconds)

    def _play_jump(self, jump: edits.Jump) -> None:
        rows = len(self.history.edits)
        if jump.start != self.history.position or not 0 <= jump.stop <= rows:
            raise ValueError(
                f"the jump goes from row {jump.start} to {jump.stop}, but the history is at row "
                f"{self.history.position} of {rows}"
            )
        way = GatheredJump(self.history, jump.stop, self.grid.shape, self.state.snapshot)
        while way.gather():
            pass
        self.state.jump(way)
        self.history.move(jump.stop)

    def _find_row_to_undo(self, label: int | None) -> int:
        """Return the row of the last step (with `label`, of that lesion), or 0 if there is none."""
        if label is None or not self.can_undo:
            return self.position if self.can_undo else 0
        return max(edits.standing_rows(self.steps[: self.position], label), default=0)

    def _undo_last(self) -> Box:
        return self._apply_turn(edits.Turn.UNDO, self.history.to_undo())

    def _is_redo_of(self, label: int | None) -> bool:
        """Return whether the next undone step belongs to the lesion and is not a reversal."""
        if label is None or not self.can_redo:
            return self.can_redo
        edit = self.steps[self.position]
        return edit.label in (label, edits.WHOLE_MASK) and edit.undone_row is None

    def _is_taken_back(self, label: int) -> bool:
        """Return whether the last applied step reverses a step of the lesion."""
        edit = self.steps[self.position - 1] if self.can_undo else None
        return edit is not None and edit.label == label and edit.undone_row is not None

    def _take_back(self, row: int) -> Box:
        """Reverse the step in a row by adding a new step."""
        edit, difference = self.steps[row - 1], self.history.difference_of(row)
        self._require_untouched(row, edit, difference)
        self.state.flip(difference)
        step = self._record_step(
            edits.Edit(f"undo ({row} {edit.name})", parameters=((edits.UNDOES_ROW, row),)),
            difference,
        )
        return Box.empty() if step is None else step.difference.box

    def _require_untouched(self, row: int, edit: edits.Edit, difference: Difference) -> None:
        """Raise `CaseError` if a later step changed voxels that this step had changed."""
        is_touched = edit.label == edits.WHOLE_MASK
        if not is_touched:
            box = difference.box
            since = np.zeros(box.shape, np.uint8)
            for later in self.history.differences_to(row):
                since ^= self._cut_flipped(later, box)
            is_touched = bool(((since != 0) & (self._cut_flipped(difference, box) != 0)).any())
        if is_touched:
            raise CaseError(
                f"expected no later change of the voxels of step {row} ({edit.name}), but a later "
                "step changed these voxels, so nothing was changed: click a row of the history "
                "to undo all later steps too"
            )

    def _cut_flipped(self, difference: Difference, box: Box) -> NDArray[np.uint8]:
        """Return the flipped bits of the labels in a box; the whole grid would take 60 ms."""
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

    def _add_step(self, step: edits.Step) -> None:
        self.history.add(step)
        if self.history.is_keyframe_due and self.state.is_quickly_kept:
            self.history.keep_keyframe(self.state.snapshot())

    def _apply_turn(self, turn: edits.Turn, difference: Difference) -> Box:
        self.state.flip(difference)
        if turn is edits.Turn.UNDO:
            self.history.back()
        else:
            self.history.forward()
        self._clock.act()
        self._summary = self._summary.after(turn)
        if self.on_record is not None:
            self.on_record(turn)
        return difference.box

    def _record_step(self, edit: edits.Edit, difference: Difference | None) -> edits.Step | None:
        if difference is None:
            return None
        seconds = self._clock.act()
        edit = replace(
            edit,
            changed_voxels=difference.changed_voxels,
            at_s=round(seconds, 3),
            label=difference.label,
        )
        step = edits.Step(self.next_number, edit, difference)
        self.next_number += 1
        self._add_step(step)
        self._summary = self._summary.after(edit)
        if self.on_record is not None:
            self.on_record(step)
        return step


def _is_made_of_stamps(edit: edits.Edit) -> bool:
    """Return whether a step is a stroke made of stamps, which may change only the membership."""
    return edit.stroke is not None and not edit.stroke.brush.tool.is_smart


def _require_buffer(labels: NDArray[np.uint8], grid: Grid) -> None:
    if labels.dtype != np.uint8 or labels.shape != grid.shape or not labels.flags.writeable:
        raise CaseError(
            f"expected the edited buffer to be writable uint8 of shape {grid.shape}, but got "
            f"{labels.dtype} {labels.shape}: start editing again"
        )


class EditingSession(RecordedMask):
    """A mask that is being edited.

    Parameters
    ----------
    case_id, grid
        The case and its grid.
    labels
        A uint8 array ``(z, y, x)`` on `grid`, which is edited in place and shown in the window.
    images
        The images that evidence strokes and a SmartPaint brush compare, which can be set later.
        Without images, a press with such a brush raises `CaseError`.
    label
        The value that `apply` writes; a brush has its own value.
    locked
        The labels that cannot be painted or overwritten.
    limit_bytes
        The memory limit for the differences of steps; see `History`.
    earlier
        The summary of earlier editing; its time, strokes and tools are continued.
    now
        The clock, a function that returns seconds.

    Attributes
    ----------
    on_settled
        Function that is called with the step of a released stroke that was not settled by `settle`,
        for example because an undo could not wait. The box of the step must be redrawn.

    Raises
    ------
    CaseError
        If `labels` is not a writable uint8 array of the grid's shape.
    """

    def __init__(
        self,
        case_id: str,
        grid: Grid,
        labels: NDArray[np.uint8],
        images: FeatureImages | None,
        *,
        label: int = 1,
        locked: frozenset[int] = frozenset(),
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        earlier: edits.EditingSummary | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            grid, labels, label=label, limit_bytes=limit_bytes, earlier=earlier, now=now
        )
        self.case_id = case_id
        self.images = images
        self.locked = locked
        self.on_settled: Callable[[edits.Step], None] | None = None
        self._stroke: CurrentStroke | CurrentEvidenceStroke | None = None
        self._lifted: LiftedStroke | None = None

    @property
    def is_painting(self) -> bool:
        """Whether a stroke is being drawn."""
        return self._stroke is not None

    @property
    def is_settling(self) -> bool:
        """Whether a released stroke is still waiting for its result."""
        return self._lifted is not None

    # -------------------------------------------------------------- strokes

    def press(self, point: edits.Voxel, brush: edits.Brush) -> Box:
        """Begin a stroke at `point`; return the box of voxels whose label changed.

        A stroke that is still being drawn is released first, and a released stroke is settled. An
        evidence stroke changes no voxel until it is settled.

        Raises
        ------
        CaseError
            If the brush's label is locked, or a brush that compares images has no images; nothing
            is then changed.
        """
        self.release()
        self.settle_lifted()
        self._require_unlocked(brush.label)
        images, spacing = self.images, self.grid.spacing_mm
        if brush.tool in _LOOKING and images is None:
            raise CaseError(
                "expected the images for the SmartPaint brush to be ready, but phases are still "
                "being read: wait until all phases are read, or choose the plain sphere"
            )
        self._clock.act()
        if brush.tool.is_smart and images is not None:
            self._stroke = CurrentEvidenceStroke(self.state, brush, spacing, images, self.locked)
        else:
            self._stroke = CurrentStroke(self.state, brush, spacing, images, self.locked)
        return self._stroke.press(point)

    def drag(self, point: edits.Voxel) -> Box:
        """Continue the stroke to `point`; return the box of voxels whose label changed."""
        return Box.empty() if self._stroke is None else self._stroke.drag(point)

    def release(self) -> edits.Step | None:
        """End the stroke and record it; return None if it changed nothing.

        An evidence stroke is settled immediately; use `lift` to settle it in a worker.
        """
        if isinstance(self._stroke, CurrentEvidenceStroke):
            return None if self.lift() is None else self._settle_waiting()
        stroke, self._stroke = self._stroke, None
        if stroke is None:
            return None
        return self._record_step(stroke.edit, self._take_difference(stroke))

    def lift(self) -> StrokeWork | None:
        """End an evidence stroke; return the input for `settle_stroke` in a worker.

        The result is None if no such stroke is being drawn, or its box is empty. The stroke is
        recorded by `settle`, or by any earlier method that needs the mask.
        """
        stroke = self._stroke
        if not isinstance(stroke, CurrentEvidenceStroke):
            return None
        self._stroke = None
        self.notice_external()
        work = stroke.work
        if work is not None:
            self._lifted = LiftedStroke(work, stroke.edit)
        return work

    def settle(self, work: StrokeWork, result: SettledStroke | KeptStroke) -> edits.Step | None:
        """Record the result of a released stroke; return None if the result changed nothing.

        `work`, as returned by `lift`, identifies the stroke. The result of a stroke that has
        already been settled or abandoned is ignored. A `KeptStroke` has already been limited to its
        guarantees and compressed in a thread.

        Raises
        ------
        CaseError
            If the result does not match the work; the stroke is then dropped.
        """
        if self._lifted is None or self._lifted.work is not work:
            return None
        return self._settle_waiting(result)

    def settle_lifted(self) -> edits.Step | None:
        """Settle a released stroke immediately and call `on_settled`."""
        step = self._settle_waiting()
        if step is not None and self.on_settled is not None:
            self.on_settled(step)
        return step

    def current_work(self) -> StrokeWork | None:
        """Return the input of `preview_stroke` for the evidence stroke that is being drawn."""
        return self._stroke.work if isinstance(self._stroke, CurrentEvidenceStroke) else None

    def abandon(self) -> Box:
        """Drop the current or released stroke.

        The result is the box to redraw, which is empty if no voxel had changed.
        """
        stroke, self._stroke, self._lifted = self._stroke, None, None
        if stroke is None or isinstance(stroke, CurrentEvidenceStroke):
            return Box.empty()
        self.state.roll_back(stroke.brush.label, stroke.boxes)
        return _join_boxes(stroke.boxes)

    def current_difference(self) -> Difference | None:
        """Return the changes of the current stroke so far, and drop the stroke unrecorded."""
        stroke, self._stroke = self._stroke, None
        if stroke is None:
            return None
        if isinstance(stroke, CurrentEvidenceStroke):
            work = stroke.work
            difference = (
                None
                if work is None
                else self._write_kept(work, keep_stroke(work, settle_stroke(work)))
            )
        else:
            difference = self._take_difference(stroke)
        if difference is not None:
            self.state.flip(difference)
        return difference

    def preview(self, point: edits.Voxel, brush: edits.Brush) -> tuple[Box, NDArray[np.bool_]]:
        """Return the voxels that a press at `point` would change, as a box and a boolean array.

        The box is empty if the brush has no images yet, or its label is locked.
        """
        images, spacing = self.images, self.grid.spacing_mm
        is_blind = brush.tool in _LOOKING and images is None
        if is_blind or brush.label in self.locked:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        if not brush.tool.is_smart or images is None:
            return turned_by_press(self.state, point, brush, spacing, images, self.locked)
        stroke = CurrentEvidenceStroke(self.state, brush, spacing, images, self.locked)
        stroke.press(point)
        work = stroke.work
        if work is None:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        preview = preview_stroke(work)
        return preview.box, preview.mask != (self.labels[preview.box.slices] == brush.label)

    def _take_difference(self, stroke: CurrentStroke) -> Difference | None:
        stroke.finish()
        return self.state.record(
            stroke.brush.label, stroke.boxes, soft=True, marks=stroke.leaves_marks
        )

    def _settle_waiting(
        self, result: SettledStroke | KeptStroke | None = None
    ) -> edits.Step | None:
        """Record the released stroke, and compute its result if `result` is None.

        The result is also computed if another tool has painted in the box since the release,
        because those changes must be applied first.
        """
        lifted, self._lifted = self._lifted, None
        if lifted is None:
            return None
        work = lifted.work
        if not np.array_equal(self.labels[work.box.slices], work.labels):
            self.notice_external(work.box)
            words = self.state.words(work.brush.label)
            work = prepare_stroke(
                work.images, self.labels, words, work.brush, work.path, work.locked
            )
            result = None
        result = result or settle_stroke(work)
        stroke = result if isinstance(result, KeptStroke) else keep_stroke(work, result)
        return self._record_step(
            lifted.describe(stroke.settled, stroke.held_back), self._write_kept(work, stroke)
        )

    def _write_kept(self, work: StrokeWork, kept: KeptStroke) -> Difference | None:
        """Write the result of a stroke; return the difference, or None if nothing changed.

        The change was packed from the input of the stroke. If the values have changed since, or
        changes are not recorded yet, it is computed again.
        """
        settled = kept.settled
        require_fitting(work, settled)
        before, after = (work.labels, work.words), (settled.labels, settled.words)
        if self.state.put(kept.difference, work.box, before, after):
            return kept.difference if kept.difference.labels or kept.difference.evidence else None
        crop, label = work.box.slices, work.brush.label
        self.labels[crop] = settled.labels
        self.state.words(label)[crop] = settled.words
        return self.state.record(label, (work.box,), marks=True)

    # ---------------------------------------------------------- whole steps

    def apply(
        self,
        name: str,
        box: Box,
        mask_in_box: NDArray[np.bool_],
        parameters: Settings = (),
        *,
        label: int | None = None,
        holds: bool = False,
    ) -> edits.Step | None:
        """Set `label` (default: the session's) to `mask_in_box` inside `box`, as one step.

        True voxels get the label, except voxels with a locked label; False voxels lose the label.
        With `holds`, each changed voxel is fixed, so strokes and growth do not undo the change. The
        result is None if nothing changed.

        Raises
        ------
        CaseError
            If the label is locked, or the shapes of mask and box differ.
        """
        value = self.label if label is None else label
        self._require_unlocked(value)
        if mask_in_box.shape != box.shape:
            raise CaseError(
                f"expected the mask to have the shape {box.shape}, but it has {mask_in_box.shape}"
            )
        self.record_pending()
        now = self.labels[box.slices]
        new_labels = np.where(mask_in_box, np.uint8(value), now)
        new_labels[(now == value) & ~mask_in_box] = 0
        return self._write_labels(name, box, new_labels, parameters, value, holds=holds)

    def apply_labels(
        self, name: str, labels: LabelMap, parameters: Settings = ()
    ) -> edits.Step | None:
        """Set the whole mask to `labels`, except for locked labels, as one step.

        Values must be whole numbers from 0 to 255.
        """
        self.record_pending()
        box = _join_boxes((labels.box, Box.around(self.labels)))
        new_labels = labels.cut(box).astype(np.uint8)
        return self._write_labels(name, box, new_labels, parameters, edits.WHOLE_MASK)

    def forget_marks(self, label: int | None = None) -> edits.Step | None:
        """Remove all marks of `label` (by default the session's label) without changing its mask.

        The result is None if there were no marks.

        Raises
        ------
        CaseError
            If the label is locked.
        """
        value = self.label if label is None else label
        self._require_unlocked(value)
        self.record_pending()
        box = self.state.marked_box(value)
        if box.is_empty:
            return None
        self.state.words(value)[box.slices] = 0
        edit = edits.Edit(FORGET_MARKS, parameters=(("label", value),))
        return self._record_step(edit, self.state.record(value, (box,), marks=True))

    def restore_marks(self, name: str, marks: Sequence[LabelMarks]) -> tuple[edits.Step, ...]:
        """Restore the marks of all labels as one step for each label."""
        self.record_pending()
        by_label = {mark.label: mark for mark in marks}
        present = {mark.label: mark.box for mark in self.state.all_marks()}
        steps = []
        for label in sorted({*by_label, *present}):
            words = self.state.words(label)
            box = present.get(label, Box.empty())
            words[box.slices] = 0
            if label in by_label:
                box = box.union(by_label[label].box)
                words[by_label[label].box.slices] = by_label[label].words
            edit = edits.Edit(name, parameters=(("label", label),))
            step = self._record_step(edit, self.state.record(label, (box,), marks=True))
            steps += [step] if step is not None else []
        return tuple(steps)

    def record_pending(self) -> None:
        """Record a current or released stroke, and changes made by other tools."""
        self.release()
        self.notice_external()

    def notice_external(self, box: Box | None = None) -> edits.Step | None:
        """Record changes that other tools painted into the buffer, inside `box` or anywhere.

        Voxels that gained the painted label are then fixed inside the label; voxels that lost the
        label are fixed outside. A released stroke is settled first. While a stroke is being drawn,
        nothing is compared; its release records every change inside its boxes.
        """
        if self._stroke is not None:
            return None
        self.settle_lifted()
        return super().notice_external(box)

    def _require_unlocked(self, label: int) -> None:
        if label in self.locked:
            raise CaseError(
                f"expected the label to be unlocked for painting, but label {label} is locked: "
                "unlock it, or choose a different label"
            )

    def _write_labels(
        self,
        name: str,
        box: Box,
        labels: NDArray[np.uint8],
        parameters: Settings,
        label: int,
        *,
        holds: bool = False,
    ) -> edits.Step | None:
        now = self.labels[box.slices]
        if self.locked:
            locked = list(self.locked)
            is_kept = np.isin(now, locked) | np.isin(labels, locked)
            labels = np.where(is_kept, now, labels)
        now[...] = labels
        if holds:
            self.state.hold_changes(label, (box,))
        self._clock.act()
        return self._record_step(
            edits.Edit(name, parameters=parameters), self.state.record(label, (box,), marks=holds)
        )


def _join_boxes(boxes: Iterable[Box]) -> Box:
    around = Box.empty()
    for box in boxes:
        around = around.union(box)
    return around
