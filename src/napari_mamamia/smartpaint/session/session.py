"""`EditingSession`: one reader edits one case's mask; every step can be undone and is recorded.

It knows no window and no files: labels are edited in place, boxes say what to draw anew, and each
step goes to `on_record`, where a journal may stand.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.difference import Difference
from napari_mamamia.core.edits import Brush, Edit, EditingSummary, Jump, Step, Tool, Turn, Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Setting
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.session.clock import EditingClock
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES, History
from napari_mamamia.smartpaint.session.state import MaskState
from napari_mamamia.smartpaint.session.stroke import StrokeInHand, turned_by_press
from napari_mamamia.smartpaint.session.way import Way

PAINTED_OUTSIDE: Final = "painted with napari"
"""Name of a step that did not come through the session."""

Settings = tuple[tuple[str, Setting], ...]
Record = Callable[[Step | Turn | Jump], None]


class EditingSession:
    """A mask being edited.

    Parameters
    ----------
    case_id, grid
        What is edited.
    labels
        uint8 ``(z, y, x)`` on `grid`, edited in place: the buffer that the window shows.
    images
        What a SmartPaint brush compares; may be set later. Without them such a press raises
        `CaseError`.
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
        _require_buffer(labels, grid)
        self.case_id = case_id
        self.grid = grid
        self.images = images
        self.label = label
        self.locked = locked
        self.history = History(limit_bytes)
        self.on_record: Record | None = None
        self.state = MaskState(labels)
        self.start_labels = LabelMap.of(labels, grid)
        self.next_number = 1
        self._clock = EditingClock(earlier.seconds if earlier else 0.0, now)
        self._summary = earlier or EditingSummary()
        self._stroke: StrokeInHand | None = None

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The labels as they are now, uint8 ``(z, y, x)``: the buffer itself."""
        return self.state.labels

    @property
    def summary(self) -> EditingSummary:
        """What went into the mask so far."""
        return replace(self._summary, seconds=self._clock.seconds)

    @property
    def steps(self) -> tuple[Edit, ...]:
        """What each step was, in order, undone ones included."""
        return self.history.edits

    @property
    def position(self) -> int:
        """How many of `steps` are applied."""
        return self.history.position

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return self.history.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is an undone step to do again."""
        return self.history.can_redo

    @property
    def is_painting(self) -> bool:
        """Whether a stroke is in hand."""
        return self._stroke is not None

    # -------------------------------------------------------------- strokes

    def press(self, point: Voxel, brush: Brush) -> Box:
        """Begin a stroke at `point`; return the box of voxels whose label changed.

        A stroke that is still in hand is released first.

        Raises
        ------
        CaseError
            If the brush's label is locked, or a SmartPaint brush has no images; nothing changes.
        """
        self.release()
        if brush.label in self.locked:
            raise CaseError(_locked_message(brush.label))
        if brush.tool is Tool.SMARTPAINT and self.images is None:
            raise CaseError(
                "expected the images that a SmartPaint brush compares, but they are not ready: "
                "wait until all phases are read, or take the plain sphere"
            )
        self._clock.act()
        spacing = self.grid.spacing_mm
        self._stroke = StrokeInHand(self.state, brush, spacing, self.images, self.locked)
        return self._stroke.press(point)

    def drag(self, point: Voxel) -> Box:
        """Go on with the stroke to `point`; return the box of voxels whose label changed."""
        return Box.empty() if self._stroke is None else self._stroke.drag(point)

    def release(self) -> Step | None:
        """End the stroke and record it; None where it changed nothing."""
        hand, self._stroke = self._stroke, None
        if hand is None:
            return None
        hand.finish()
        difference = self.state.record(hand.brush.label, hand.boxes, soft=True)
        return self._record_step(hand.edit, difference)

    def abandon(self) -> Box:
        """Drop the stroke in hand; return the box to draw anew, empty where there was none."""
        hand, self._stroke = self._stroke, None
        if hand is None:
            return Box.empty()
        self.state.roll_back(hand.brush.label, hand.boxes)
        return _join_boxes(hand.boxes)

    def difference_in_hand(self) -> Difference | None:
        """Return what the stroke in hand changed so far, and drop it without recording it."""
        hand, self._stroke = self._stroke, None
        if hand is None:
            return None
        hand.finish()
        difference = self.state.record(hand.brush.label, hand.boxes, soft=True)
        if difference is not None:
            self.state.flip(difference)
        return difference

    def preview(self, point: Voxel, brush: Brush) -> tuple[Box, NDArray[np.bool_]]:
        """Return what a press at `point` would turn over: a box and bool voxels in it.

        Nothing where the brush has no images yet, or its label is locked.
        """
        is_blind = brush.tool is Tool.SMARTPAINT and self.images is None
        if is_blind or brush.label in self.locked:
            return Box.empty(), np.zeros((0, 0, 0), np.bool_)
        spacing = self.grid.spacing_mm
        return turned_by_press(self.state, point, brush, spacing, self.images, self.locked)

    # ---------------------------------------------------------- whole steps

    def apply(
        self,
        name: str,
        box: Box,
        mask_in_box: NDArray[np.bool_],
        parameters: Settings = (),
        *,
        label: int | None = None,
    ) -> Step | None:
        """Make `label` (default: the session's) what `mask_in_box` says inside `box`, one step.

        True voxels get the label but where a locked one stands; voxels that had the label and are
        not True lose it. None where nothing changed.

        Raises
        ------
        CaseError
            If the label is locked, or mask and box differ in shape.
        """
        value = self.label if label is None else label
        if value in self.locked:
            raise CaseError(_locked_message(value))
        if mask_in_box.shape != box.shape:
            raise CaseError(f"expected a mask of shape {box.shape}, got {mask_in_box.shape}")
        self._settle_stroke()
        now = self.labels[box.slices]
        new_labels = np.where(mask_in_box, np.uint8(value), now)
        new_labels[(now == value) & ~mask_in_box] = 0
        return self._write_labels(name, box, new_labels, parameters, value)

    def apply_labels(self, name: str, labels: LabelMap, parameters: Settings = ()) -> Step | None:
        """Make the whole mask `labels`, but for locked labels, as one step.

        Values must be whole numbers 0 to 255.
        """
        self._settle_stroke()
        box = _join_boxes((labels.box, Box.around(self.labels)))
        new_labels = labels.cut(box).astype(np.uint8)
        return self._write_labels(name, box, new_labels, parameters, self.label)

    def notice_external(self, box: Box | None = None) -> Step | None:
        """Record what something else painted into the buffer, inside `box` or anywhere.

        While a stroke is in hand nothing is looked at; its release records all inside its boxes.
        """
        if self._stroke is not None:
            return None
        where = box if box is not None else Box.whole(self.grid.shape)
        if where.is_empty or self.state.is_recorded(where):
            return None
        self._clock.act()
        difference = self.state.record(self.label, (where,), soft=False)
        return self._record_step(Edit(PAINTED_OUTSIDE), difference)

    def _settle_stroke(self) -> None:
        """Record a stroke in hand, and what came from outside, before a step."""
        self.release()
        self.notice_external()

    def _write_labels(
        self, name: str, box: Box, labels: NDArray[np.uint8], parameters: Settings, label: int
    ) -> Step | None:
        now = self.labels[box.slices]
        if self.locked:
            locked = list(self.locked)
            is_kept = np.isin(now, locked) | np.isin(labels, locked)
            labels = np.where(is_kept, now, labels)
        now[...] = labels
        self._clock.act()
        return self._record_step(
            Edit(name, parameters=parameters), self.state.record(label, (box,), soft=False)
        )

    # -------------------------------------------------------------- history

    def undo(self) -> Box | None:
        """Undo the last applied step; return the box to draw anew, None where there is none.

        Steps that moved membership but no voxel over the threshold are undone with it, so that
        each undo is seen.

        Raises
        ------
        FormatError, SaveError
            If an old step cannot be read back from the journal; nothing changes.
        """
        self._settle_stroke()
        box = None
        while self.history.can_undo and (box is None or box.is_empty):
            box = self._apply_turn(Turn.UNDO, self.history.to_undo())
        return box

    def redo(self) -> Box | None:
        """Do the next undone step again; return the box to draw anew, None where there is none.

        Raises
        ------
        FormatError, SaveError
            As `undo`.
        """
        self._settle_stroke()
        box = None
        while self.history.can_redo and (box is None or box.is_empty):
            box = self._apply_turn(Turn.REDO, self.history.to_redo())
        return box

    def go_to(self, position: int) -> Box:
        """Go to the state after `position` steps in one act; return the box to draw anew.

        Every row of the history is a state of its own, that of a step which changed no voxel too;
        only `undo` and `redo` pass over such steps.

        Raises
        ------
        CaseError
            If there is no such state, or a step on the way is held nowhere; nothing changes.
        FormatError, SaveError
            As `undo`.
        """
        way = self.way_to(position)
        while way.gather():
            pass
        return self.go(way) or Box.empty()

    def way_to(self, position: int) -> Way:
        """Return the way to the state after `position` steps, to be gathered before `go`.

        Raises
        ------
        CaseError
            If there is no such state.
        """
        self._settle_stroke()
        return Way(self.history, position, self.grid.shape)

    def go(self, way: Way) -> Box | None:
        """Go a gathered way in one act; return the box to draw anew.

        None where something was done since the way was asked for: it leads nowhere any more, and
        nothing changes.
        """
        self._settle_stroke()
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
        """Do what an earlier run recorded, without recording it again.

        Raises
        ------
        ValueError
            If the record does not fit this session: another shape, nothing to undo.
        FormatError, SaveError
            If an old step cannot be read back.
        """
        if isinstance(record, Step):
            self.state.flip(record.difference)
            self.history.add(record)
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
                f"it goes from row {jump.start} to {jump.stop}, but the history stands at row "
                f"{self.history.position} of {rows}"
            )
        way = Way(self.history, jump.stop, self.grid.shape)
        while way.gather():
            pass
        self.state.jump(way)
        self.history.move(jump.stop)

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
        edit = replace(edit, changed_voxels=difference.changed_voxels, at_s=round(seconds, 3))
        step = Step(self.next_number, edit, difference)
        self.next_number += 1
        self.history.add(step)
        self._summary = self._summary.after(edit)
        if self.on_record is not None:
            self.on_record(step)
        return step


def _join_boxes(boxes: Iterable[Box]) -> Box:
    around = Box.empty()
    for box in boxes:
        around = around.union(box)
    return around


def _locked_message(label: int) -> str:
    return (
        f"expected a label that may be painted, but label {label} is locked: unlock it, or "
        "choose another"
    )


def _require_buffer(labels: NDArray[np.uint8], grid: Grid) -> None:
    if labels.dtype != np.uint8 or labels.shape != grid.shape or not labels.flags.writeable:
        raise CaseError(
            f"expected a writable uint8 buffer of shape {grid.shape} to edit, got "
            f"{labels.dtype} {labels.shape}: start editing again"
        )
