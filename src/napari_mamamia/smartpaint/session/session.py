"""`EditingSession`: one reader edits one case's mask; every step is recorded and can be undone.

It uses no window and no files: labels are edited in place, boxes tell the caller what to redraw,
and each step goes to `on_record`, for example a journal.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import (
    WHOLE_MASK,
    Brush,
    Edit,
    EditingSummary,
    Step,
    Tool,
    Voxel,
)
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
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES
from napari_mamamia.smartpaint.session.recorded_mask import RecordedMask
from napari_mamamia.smartpaint.session.state import LabelMarks
from napari_mamamia.smartpaint.session.stroke import CurrentStroke, turned_by_press

FORGET_MARKS: Final = "forget marks"
_LOOKING: Final = (Tool.SMARTPAINT, Tool.EVIDENCE)

Settings = tuple[tuple[str, Setting], ...]


class EditingSession(RecordedMask):
    """A mask being edited.

    Parameters
    ----------
    case_id, grid
        The case and its grid.
    labels
        uint8 ``(z, y, x)`` on `grid`, edited in place: the buffer that the window shows.
    images
        The images that strokes of evidence and a SmartPaint brush compare; may be set later.
        Without
        them such a press raises `CaseError`.
    label
        The value that `apply` writes; a brush carries its own.
    locked
        Labels that cannot be painted, and that no stroke paints over.
    limit_bytes
        Memory for the differences of steps, see `History`.
    earlier
        Summary of earlier editing; seconds, strokes and tools continue from it.
    now
        The clock, in seconds.

    Attributes
    ----------
    on_settled
        Called with the step of a released stroke that was settled by something else than `settle`,
        such as an undo that could not wait: its box needs a redraw.

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
        earlier: EditingSummary | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            grid, labels, label=label, limit_bytes=limit_bytes, earlier=earlier, now=now
        )
        self.case_id = case_id
        self.images = images
        self.locked = locked
        self.on_settled: Callable[[Step], None] | None = None
        self._stroke: CurrentStroke | CurrentEvidenceStroke | None = None
        self._lifted: LiftedStroke | None = None

    @property
    def is_painting(self) -> bool:
        """Whether a stroke is being drawn."""
        return self._stroke is not None

    @property
    def is_settling(self) -> bool:
        """Whether a released stroke waits for its result."""
        return self._lifted is not None

    # -------------------------------------------------------------- strokes

    def press(self, point: Voxel, brush: Brush) -> Box:
        """Begin a stroke at `point`; return the box of voxels whose label changed.

        A stroke that is still being drawn is released first; a released stroke is settled. A stroke
        of evidence changes no voxel before it is settled.

        Raises
        ------
        CaseError
            If the brush's label is locked, or a brush that compares images has none; nothing
            changes.
        """
        self.release()
        self.settle_lifted()
        self._require_unlocked(brush.label)
        images, spacing = self.images, self.grid.spacing_mm
        if brush.tool in _LOOKING and images is None:
            raise CaseError(
                "expected the images that a SmartPaint brush compares, but they are not ready: "
                "wait until all phases are read, or choose the plain sphere"
            )
        self._clock.act()
        if brush.tool is Tool.EVIDENCE and images is not None:
            self._stroke = CurrentEvidenceStroke(self.state, brush, spacing, images, self.locked)
        else:
            self._stroke = CurrentStroke(self.state, brush, spacing, images, self.locked)
        return self._stroke.press(point)

    def drag(self, point: Voxel) -> Box:
        """Continue the stroke to `point`; return the box of voxels whose label changed."""
        return Box.empty() if self._stroke is None else self._stroke.drag(point)

    def release(self) -> Step | None:
        """End the stroke and record it; None if it changed nothing.

        A stroke of evidence is settled at once; use `lift` to settle it in a worker.
        """
        if isinstance(self._stroke, CurrentEvidenceStroke):
            return None if self.lift() is None else self._settle_waiting()
        stroke, self._stroke = self._stroke, None
        if stroke is None:
            return None
        return self._record_step(stroke.edit, self._take_difference(stroke))

    def lift(self) -> StrokeWork | None:
        """End a stroke of evidence; return the input for `settle_stroke` in a worker.

        None if no such stroke is being drawn, or its box is empty. The stroke is recorded by
        `settle`, or by any method that needs the mask before.
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

    def settle(self, work: StrokeWork, result: SettledStroke | KeptStroke) -> Step | None:
        """Record the result of a released stroke; None if it changed nothing.

        The result of a stroke that was settled or abandoned meanwhile is dropped: `work`, as
        returned by `lift`, identifies the stroke. A `KeptStroke` is within its guarantees and has
        its change packed already, as a thread does it for the window.

        Raises
        ------
        CaseError
            If the result does not fit the work; the stroke is dropped.
        """
        if self._lifted is None or self._lifted.work is not work:
            return None
        return self._settle_waiting(result)

    def settle_lifted(self) -> Step | None:
        """Settle a released stroke at once, and call `on_settled`."""
        step = self._settle_waiting()
        if step is not None and self.on_settled is not None:
            self.on_settled(step)
        return step

    def current_work(self) -> StrokeWork | None:
        """Return the input of `preview_stroke` for a stroke of evidence while it is drawn."""
        return self._stroke.work if isinstance(self._stroke, CurrentEvidenceStroke) else None

    def abandon(self) -> Box:
        """Drop the current stroke, or the released one.

        Returns the box to redraw, empty if no voxel had changed.
        """
        stroke, self._stroke, self._lifted = self._stroke, None, None
        if stroke is None or isinstance(stroke, CurrentEvidenceStroke):
            return Box.empty()
        self.state.roll_back(stroke.brush.label, stroke.boxes)
        return _join_boxes(stroke.boxes)

    def current_difference(self) -> Difference | None:
        """Return the changes of the current stroke so far, and drop it without recording it."""
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

    def preview(self, point: Voxel, brush: Brush) -> tuple[Box, NDArray[np.bool_]]:
        """Return the voxels that a press at `point` would change: a box and bool voxels in it.

        The box is empty if the brush has no images yet, or its label is locked.
        """
        images, spacing = self.images, self.grid.spacing_mm
        is_blind = brush.tool in _LOOKING and images is None
        if is_blind or brush.label in self.locked:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        if brush.tool is not Tool.EVIDENCE or images is None:
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

    def _settle_waiting(self, result: SettledStroke | KeptStroke | None = None) -> Step | None:
        """Record the released stroke; its result is computed if there is none.

        It is also computed if something else painted there since the release, because that came
        first.
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
        """Write the result of a stroke; return the difference, None if nothing changed.

        The change was packed from the input of the stroke. If other values are there by now, or
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
    ) -> Step | None:
        """Set `label` (default: the session's) to `mask_in_box` inside `box`, as one step.

        True voxels get the label, except those with a locked label; voxels that had the label and
        are not True lose it. With `holds` the reader means each voxel that changes: strokes and
        growth do not undo it. None if nothing changed.

        Raises
        ------
        CaseError
            If the label is locked, or mask and box differ in shape.
        """
        value = self.label if label is None else label
        self._require_unlocked(value)
        if mask_in_box.shape != box.shape:
            raise CaseError(f"expected a mask of shape {box.shape}, got {mask_in_box.shape}")
        self.record_pending()
        now = self.labels[box.slices]
        new_labels = np.where(mask_in_box, np.uint8(value), now)
        new_labels[(now == value) & ~mask_in_box] = 0
        return self._write_labels(name, box, new_labels, parameters, value, holds=holds)

    def apply_labels(self, name: str, labels: LabelMap, parameters: Settings = ()) -> Step | None:
        """Set the whole mask to `labels`, except for locked labels, as one step.

        Values must be whole numbers 0 to 255.
        """
        self.record_pending()
        box = _join_boxes((labels.box, Box.around(self.labels)))
        new_labels = labels.cut(box).astype(np.uint8)
        return self._write_labels(name, box, new_labels, parameters, WHOLE_MASK)

    def forget_marks(self, label: int | None = None) -> Step | None:
        """Remove all marks of `label` (default: the session's); its mask stays.

        None if there were no marks.

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
        edit = Edit(FORGET_MARKS, parameters=(("label", value),))
        return self._record_step(edit, self.state.record(value, (box,), marks=True))

    def restore_marks(self, name: str, marks: Sequence[LabelMarks]) -> tuple[Step, ...]:
        """Restore the marks of all labels, as one step for each label."""
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
            edit = Edit(name, parameters=(("label", label),))
            step = self._record_step(edit, self.state.record(label, (box,), marks=True))
            steps += [step] if step is not None else []
        return tuple(steps)

    def record_pending(self) -> None:
        """Record a current or released stroke, and changes from outside."""
        self.release()
        self.notice_external()

    def notice_external(self, box: Box | None = None) -> Step | None:
        """Record changes that something else painted into the buffer, inside `box` or anywhere.

        Voxels that became the painted label are held inside it from now on; voxels that it lost are
        held outside. A released stroke is settled first. While a stroke is being drawn nothing is
        compared; its release records every change inside its boxes.
        """
        if self._stroke is not None:
            return None
        self.settle_lifted()
        return super().notice_external(box)

    def _require_unlocked(self, label: int) -> None:
        if label in self.locked:
            raise CaseError(
                f"expected a label that may be painted, but label {label} is locked: unlock it, or "
                "choose another"
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
    ) -> Step | None:
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
            Edit(name, parameters=parameters), self.state.record(label, (box,), marks=holds)
        )


def _join_boxes(boxes: Iterable[Box]) -> Box:
    around = Box.empty()
    for box in boxes:
        around = around.union(box)
    return around
