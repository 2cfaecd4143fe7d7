"""`EditingSession`: one reader edits one case's mask; every step can be undone and is recorded.

It knows no window and no files: labels are edited in place, boxes say what to draw anew, and each
step goes to `on_record`, where a journal may stand.
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
    EvidenceInHand,
    KeptStroke,
    LiftedStroke,
    keep_stroke,
    require_fitting,
)
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES
from napari_mamamia.smartpaint.session.recorded_mask import RecordedMask
from napari_mamamia.smartpaint.session.state import LabelMarks
from napari_mamamia.smartpaint.session.stroke import StrokeInHand, turned_by_press

FORGET_MARKS: Final = "forget marks"
_LOOKING: Final = (Tool.SMARTPAINT, Tool.EVIDENCE)

Settings = tuple[tuple[str, Setting], ...]


class EditingSession(RecordedMask):
    """A mask being edited.

    Parameters
    ----------
    case_id, grid
        What is edited.
    labels
        uint8 ``(z, y, x)`` on `grid`, edited in place: the buffer that the window shows.
    images
        What strokes of evidence and a SmartPaint brush look at; may be set later. Without them such
        a press raises `CaseError`.
    label
        The value that `apply` writes; a brush carries its own.
    locked
        Labels that nothing paints over, and that cannot be painted.
    limit_bytes
        Memory for the differences of steps, see `History`.
    earlier
        What went into the mask before; seconds, strokes and tools count on from there.
    now
        The clock, in seconds.

    Attributes
    ----------
    on_settled
        Is given the step of a lifted stroke that something else than `settle` settled, such as an
        undo that could not wait: what to draw anew.

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
        self._stroke: StrokeInHand | EvidenceInHand | None = None
        self._lifted: LiftedStroke | None = None

    @property
    def is_painting(self) -> bool:
        """Whether a stroke is in hand."""
        return self._stroke is not None

    @property
    def is_settling(self) -> bool:
        """Whether a lifted stroke waits for its result."""
        return self._lifted is not None

    # -------------------------------------------------------------- strokes

    def press(self, point: Voxel, brush: Brush) -> Box:
        """Begin a stroke at `point`; return the box of voxels whose label changed.

        A stroke that is still in hand is released first, one that was lifted is settled. A stroke
        of evidence changes no voxel before it is settled.

        Raises
        ------
        CaseError
            If the brush's label is locked, or a brush that looks at images has none; nothing
            changes.
        """
        self.release()
        self.settle_lifted()
        self._require_unlocked(brush.label)
        images, spacing = self.images, self.grid.spacing_mm
        if brush.tool in _LOOKING and images is None:
            raise CaseError(
                "expected the images that a SmartPaint brush compares, but they are not ready: "
                "wait until all phases are read, or take the plain sphere"
            )
        self._clock.act()
        if brush.tool is Tool.EVIDENCE and images is not None:
            self._stroke = EvidenceInHand(self.state, brush, spacing, images, self.locked)
        else:
            self._stroke = StrokeInHand(self.state, brush, spacing, images, self.locked)
        return self._stroke.press(point)

    def drag(self, point: Voxel) -> Box:
        """Go on with the stroke to `point`; return the box of voxels whose label changed."""
        return Box.empty() if self._stroke is None else self._stroke.drag(point)

    def release(self) -> Step | None:
        """End the stroke and record it; None where it changed nothing.

        A stroke of evidence is settled here and now; `lift` leaves that to a worker.
        """
        if isinstance(self._stroke, EvidenceInHand):
            return None if self.lift() is None else self._settle_waiting()
        hand, self._stroke = self._stroke, None
        if hand is None:
            return None
        return self._record_step(hand.edit, self._take_difference(hand))

    def lift(self) -> StrokeWork | None:
        """End a stroke of evidence; return what a worker gives to `settle_stroke`.

        None where no such stroke is in hand, or it looks at no voxel. The stroke is recorded by
        `settle`, or by whatever needs the mask before.
        """
        hand = self._stroke
        if not isinstance(hand, EvidenceInHand):
            return None
        self._stroke = None
        self.notice_external()
        work = hand.work
        if work is not None:
            self._lifted = LiftedStroke(work, hand.edit)
        return work

    def settle(self, work: StrokeWork, result: SettledStroke | KeptStroke) -> Step | None:
        """Record what came of a lifted stroke; None where it changed nothing.

        A result of a stroke that was settled or abandoned meanwhile is dropped: `work`, as `lift`
        returned it, says of which stroke it is. A `KeptStroke` has its promises kept and its change
        packed already, as a thread does it for the window.

        Raises
        ------
        CaseError
            If the result does not fit the work; the stroke is dropped.
        """
        if self._lifted is None or self._lifted.work is not work:
            return None
        return self._settle_waiting(result)

    def settle_lifted(self) -> Step | None:
        """Settle a lifted stroke here and now; `on_settled` hears of it."""
        step = self._settle_waiting()
        if step is not None and self.on_settled is not None:
            self.on_settled(step)
        return step

    def work_in_hand(self) -> StrokeWork | None:
        """Return what `preview_stroke` needs of a stroke of evidence while it is drawn."""
        return self._stroke.work if isinstance(self._stroke, EvidenceInHand) else None

    def abandon(self) -> Box:
        """Drop the stroke in hand, or the one that was lifted.

        Returns the box to draw anew, empty where no voxel had changed.
        """
        hand, self._stroke, self._lifted = self._stroke, None, None
        if hand is None or isinstance(hand, EvidenceInHand):
            return Box.empty()
        self.state.roll_back(hand.brush.label, hand.boxes)
        return _join_boxes(hand.boxes)

    def difference_in_hand(self) -> Difference | None:
        """Return what the stroke in hand changed so far, and drop it without recording it."""
        hand, self._stroke = self._stroke, None
        if hand is None:
            return None
        if isinstance(hand, EvidenceInHand):
            work = hand.work
            difference = (
                None
                if work is None
                else self._write_kept(work, keep_stroke(work, settle_stroke(work)))
            )
        else:
            difference = self._take_difference(hand)
        if difference is not None:
            self.state.flip(difference)
        return difference

    def preview(self, point: Voxel, brush: Brush) -> tuple[Box, NDArray[np.bool_]]:
        """Return what a press at `point` would turn over: a box and bool voxels in it.

        Nothing where the brush has no images yet, or its label is locked.
        """
        images, spacing = self.images, self.grid.spacing_mm
        is_blind = brush.tool in _LOOKING and images is None
        if is_blind or brush.label in self.locked:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        if brush.tool is not Tool.EVIDENCE or images is None:
            return turned_by_press(self.state, point, brush, spacing, images, self.locked)
        hand = EvidenceInHand(self.state, brush, spacing, images, self.locked)
        hand.press(point)
        work = hand.work
        if work is None:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        preview = preview_stroke(work)
        return preview.box, preview.mask != (self.labels[preview.box.slices] == brush.label)

    def _take_difference(self, hand: StrokeInHand) -> Difference | None:
        hand.finish()
        return self.state.record(hand.brush.label, hand.boxes, soft=True, marks=hand.leaves_marks)

    def _settle_waiting(self, result: SettledStroke | KeptStroke | None = None) -> Step | None:
        """Record the lifted stroke; its result is worked out where there is none.

        Or where something else painted there since it was lifted: that came first.
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
        """Write what a stroke came to; return what that changed, None where it is nothing.

        Its change was packed from what the work holds; where something else stands there by now, or
        was not recorded yet, it is looked for anew.
        """
        settled = kept.settled
        require_fitting(work, settled)
        before, after = (work.labels, work.words), (settled.labels, settled.words)
        if self.state.put(kept.difference, work.box, before, after):
            return kept.difference if kept.difference.labels or kept.difference.evidence else None
        part, label = work.box.slices, work.brush.label
        self.labels[part] = settled.labels
        self.state.words(label)[part] = settled.words
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
        """Make `label` (default: the session's) what `mask_in_box` says inside `box`, one step.

        True voxels get the label but where a locked one stands; voxels that had the label and are
        not True lose it. With `holds` the reader means each voxel that it changes: strokes and
        growth do not undo it. None where nothing changed.

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
        """Make the whole mask `labels`, but for locked labels, as one step.

        Values must be whole numbers 0 to 255.
        """
        self.record_pending()
        box = _join_boxes((labels.box, Box.around(self.labels)))
        new_labels = labels.cut(box).astype(np.uint8)
        return self._write_labels(name, box, new_labels, parameters, WHOLE_MASK)

    def forget_marks(self, label: int | None = None) -> Step | None:
        """Forget what all strokes said of `label` (default: the session's); its mask stays.

        None where nothing was said.

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
        """Make what strokes said of all labels what it was, as steps of one label each."""
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
        """Record a stroke in hand or lifted, and what came from outside."""
        self.release()
        self.notice_external()

    def notice_external(self, box: Box | None = None) -> Step | None:
        """Record what something else painted into the buffer, inside `box` or anywhere.

        What became the painted label is held inside it from now on, what it lost outside. A lifted
        stroke is settled first. While a stroke is in hand nothing is looked at; its release records
        all inside its boxes.
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
