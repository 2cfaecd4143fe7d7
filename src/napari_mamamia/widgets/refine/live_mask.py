"""The reader's mask during editing: a session's buffer, redrawn on its layer after changes.

The user may paint on the layer with napari's own tools, replace its data, or delete the layer.
Painting becomes a step of the session; a layer that no longer fits is repaired, with a message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QElapsedTimer, QTimer, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import WHOLE_MASK, Brush, Step, Voxel
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.texts import tr
from napari_mamamia.services.refine.live_edits import adopt_layer, notice_painting
from napari_mamamia.services.refine.strokes import StrokeChange
from napari_mamamia.smartpaint.evidence.stroke import StrokeWork
from napari_mamamia.smartpaint.session.evidence_stroke import KeptStroke
from napari_mamamia.smartpaint.session.gathered_jump import GatheredJump
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.stroke import TOO_FAR
from napari_mamamia.widgets.adapter.adapter import forget_history, has_history
from napari_mamamia.widgets.base.layers import LayerTag, Role, array_of
from napari_mamamia.widgets.base.notify import Failed, Finished, outcome_of
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_SETTLING: Final = "stroke"
_PREVIEWING: Final = "stroke preview"
_DOING: Final = "Painting"
_LONGEST_WAIT_S: Final = 20.0


@dataclass(slots=True)
class _Waiting:
    """A stroke drawn while another stroke was being computed."""

    brush: Brush
    places: list[Voxel]
    is_ended: bool = False


class StrokeQueue(WindowPart):
    """The stroke queue of a session.

    The signal `stepped` carries the `Step` of a stroke, or None; afterwards `changed` carries the
    `StrokeChange` of a SmartPaint stroke. `previewed` carries a `Preview` of the current stroke.
    """

    stepped = Signal(object)
    changed = Signal(object)
    previewed = Signal(object)

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._live: EditingSession | None = None
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._is_preview_due = False

    def begin(self, live: EditingSession) -> None:
        """Start painting into this session."""
        self._live = live
        live.on_settled = self.stepped.emit

    def leave(self) -> None:
        """Finish the waiting strokes, then close the session."""
        self.finish()
        live, self._live = self._live, None
        self._waiting.clear()
        if live is not None:
            live.on_settled = None

    @property
    def is_settling(self) -> bool:
        """Whether a finished stroke has not changed the mask yet."""
        return self._jobs.is_running(_SETTLING) or bool(self._waiting)

    # ------------------------------------------------------------------ drawing

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin a stroke at `place` (z, y, x)."""
        if self.is_settling:
            self._waiting.append(_Waiting(brush, [place]))
        elif self._live is not None:
            self._redraw_box(self._live.press(place, brush))
            self._ask_preview()

    def drag(self, place: Voxel) -> None:
        """Continue the current stroke."""
        stroke = self._waiting_in_hand()
        if stroke is not None:
            stroke.places.append(place)
        elif self._live is not None:
            self._redraw_box(self._live.drag(place))
            self._ask_preview()

    def end(self) -> None:
        """End the current stroke; a SmartPaint stroke is then computed in a thread."""
        stroke = self._waiting_in_hand()
        if stroke is not None:
            stroke.is_ended = True
        elif self._live is not None and self._live.is_painting:
            self._end_in_hand(self._live)

    def drop(self) -> None:
        """Discard the current stroke."""
        self._is_preview_due = False
        if self._waiting_in_hand() is not None:
            self._waiting.pop()
        elif self._live is not None and self._live.is_painting:
            self._redraw_box(self._live.abandon())

    def finish(self) -> None:
        """Apply every finished stroke to the mask before the mask is changed in any other way."""
        while self._jobs.is_running(_SETTLING):
            number = self._number
            self._jobs.finish(_SETTLING, _LONGEST_WAIT_S)
            if self._jobs.is_running(_SETTLING) and self._number == number:
                # If the thread does not return, the result is computed here.
                self._jobs.cancel(_SETTLING)

    # -------------------------------------------------------------------- inner

    def _waiting_in_hand(self) -> _Waiting | None:
        is_in_hand = bool(self._waiting) and not self._waiting[-1].is_ended
        return self._waiting[-1] if is_in_hand else None

    def _end_in_hand(self, live: EditingSession) -> None:
        self._is_preview_due = False
        work = live.lift()
        if work is None:
            self.stepped.emit(live.release())
            return
        self._number += 1
        settle = self._services.settle_stroke
        self._jobs.start(
            _SETTLING,
            _DOING,
            lambda: settle(work),
            lambda kept: self._take_result(live, work, kept),
            failed=lambda error: self._lose_stroke(live, error),
            stopped=live.settle_lifted,
            ended=self._go_on,
            still=lambda: self._live is live,
            shown=False,
        )

    def _take_result(self, live: EditingSession, work: StrokeWork, kept: KeptStroke) -> None:
        def lay_in() -> tuple[Step | None, StrokeChange]:
            step = live.settle(work, kept)
            describe = self._services.describe_stroke
            return step, describe(work, kept.settled, live.labels, live.grid)

        outcome = outcome_of(lay_in)
        if isinstance(outcome, Finished):
            step, change = outcome.result
            self.stepped.emit(step)
            self.changed.emit(change)
        elif isinstance(outcome, Failed):
            self._lose_stroke(live, outcome.error)

    def _lose_stroke(self, live: EditingSession, error: Exception) -> None:
        self._redraw_box(live.abandon())
        self.stepped.emit(None)
        self._notifier.fail(_DOING, error)

    def _go_on(self) -> None:
        """Apply the waiting strokes up to the next stroke that is computed in a thread."""
        while self._waiting and not self._jobs.is_running(_SETTLING):
            stroke = self._waiting.pop(0)
            live = self._live
            if live is None:
                return
            outcome = outcome_of(partial(self._draw_again, live, stroke))
            if isinstance(outcome, Failed):
                self._lose_stroke(live, outcome.error)

    def _draw_again(self, live: EditingSession, stroke: _Waiting) -> None:
        first, *others = stroke.places
        self._redraw_box(live.press(first, stroke.brush))
        for other in others:
            self._redraw_box(live.drag(other))
        if stroke.is_ended:
            self._end_in_hand(live)
        else:
            self._ask_preview()

    def _ask_preview(self) -> None:
        self._is_preview_due = self._jobs.is_running(_PREVIEWING)
        live = self._live
        work = None if self._is_preview_due or live is None else live.current_work()
        if work is None:
            return
        preview = self._services.preview_stroke
        self._jobs.start(
            _PREVIEWING,
            _DOING,
            lambda: preview(work),
            self.previewed.emit,
            failed=lambda _error: None,  # the stroke itself reports the problem
            ended=self._preview_again,
            still=lambda: self._live is live and live is not None and live.is_painting,
            shown=False,
        )

    def _preview_again(self) -> None:
        if self._is_preview_due and self._live is not None and self._live.is_painting:
            self._ask_preview()

    def _redraw_box(self, box: Box) -> None:
        self._scene.redraw_box(Role.REFINED, box)


_LOOK_AFTER_MS: Final = 400
_GATHER_FOR_MS: Final = 20
_GOING: Final = tr("Going to that step")
_OVERTAKEN: Final = tr(
    "The mask was edited while the step was read, so the step was not restored: click the step "
    "again."
)
_RESIZED: Final = tr(
    "The layer of your mask had data of a different size or type, so your mask is shown again "
    "unchanged, and no part of it is lost. Keep other data in a separate layer."
)
_JUMPED: Final = tr(
    "The pointer jumped by more than a metre during this stroke, so the gap was not painted. "
    "Continue from there with another stroke."
)
_NOTHING_HERE: Final = tr(
    "This lesion has no more steps to undo or redo: choose another lesion under Paints, or a row "
    "in the history."
)
_NO_MARKS: Final = tr("This lesion has no marks to remove.")
_ADOPTED: Final = tr("The new data in your mask's layer became one step, which Undo reverts.")


class LiveMask(WindowPart):
    """An editing session on a layer; `stepped` reports that a step was made, undone or redone."""

    stepped = Signal()

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self.live: EditingSession | None = None
        self.tag: LayerTag | None = None
        self._layer: Any | None = None
        self._look = QTimer(self)
        self._look.setSingleShot(True)
        self._look.timeout.connect(self._notice_safely)
        self._going = 0
        self.strokes = StrokeQueue(context)
        self.strokes.stepped.connect(self.show_step)

    # ------------------------------------------------------------------- layer

    @property
    def layer(self) -> Any | None:
        """The layer of the edited mask, or None if there is none."""
        return None if self.live is None else self._scene.layer(Role.REFINED)

    @property
    def followed(self) -> Any | None:
        """The layer whose events are connected; the user may just have deleted it."""
        return self._layer

    def begin(self, live: EditingSession, tag: LayerTag) -> None:
        """Start editing with a session, whose buffer is shown in the refined mask's layer."""
        self.end()
        self.live, self.tag = live, tag
        self.strokes.begin(live)
        self.follow()

    def end(self) -> None:
        """Close the session without changing its buffer."""
        self.strokes.leave()
        self._look.stop()
        # A jump that is still being gathered belongs to the session that ends here.
        self._going += 1
        self._leave_layer()
        self.live, self.tag = None, None

    def follow(self) -> None:
        """Connect to the events of the current layer."""
        layer = self.layer
        if layer is self._layer or layer is None:
            return
        self._leave_layer()
        self._layer = layer
        layer.events.paint.connect(self._on_paint)
        layer.events.set_data.connect(self._on_redraw)
        layer.events.data.connect(self._on_data)

    def repair_layer(self) -> None:
        """Ensure, before a stroke, that the layer shows the session's buffer."""
        live, tag = self.live, self.tag
        if live is None or tag is None:
            return
        layer = self.layer
        if layer is not None and self._is_buffer_shown(layer, live.labels):
            return
        words = _RESIZED if layer is not None else ""
        if layer is not None and self._adopt_layer(layer, live):
            words = _ADOPTED
        self._scene.show_mask(tag, live.labels)
        self._scene.mark_painted(live.label)
        self.follow()
        if words:
            self._notifier.warn(words)
            self.stepped.emit()

    def notice(self) -> None:
        """Record changes that were made outside the session as a step."""
        self._look.stop()
        self.strokes.finish()
        live = self.live
        if live is None or live.is_painting:
            return
        step = notice_painting(live)
        if step is not None:
            self._scene.redraw_box(Role.REFINED, step.difference.box)
            self.stepped.emit()

    # ------------------------------------------------------------------ editing

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin a stroke at `place` (z, y, x)."""
        self.strokes.press(place, brush)

    def drag(self, place: Voxel) -> None:
        """Continue the stroke."""
        self.strokes.drag(place)

    def end_stroke(self) -> None:
        """End the stroke, which becomes a step immediately or when its result is ready."""
        self.strokes.end()

    def release(self) -> None:
        """End the current stroke immediately, after all earlier strokes."""
        self.strokes.finish()
        if self.live is not None and self.live.is_painting:
            self.show_step(self.live.release())

    def abandon(self) -> None:
        """Discard the current stroke."""
        self.strokes.drop()

    def apply(
        self,
        name: str,
        box: Box,
        mask: NDArray[np.bool_],
        parameters: tuple[tuple[str, Setting], ...] = (),
        *,
        label: int | None = None,
        holds: bool = False,
    ) -> bool:
        """Set the label to `mask` inside `box`; return whether any voxel changed.

        With `holds`, changed voxels keep their new value in later strokes and growth.
        """
        if self.live is None:
            return False
        self.release()
        step = self.live.apply(name, box, mask, parameters, label=label, holds=holds)
        if step is not None:
            self._scene.redraw_box(Role.REFINED, step.difference.box)
            self._emit_stepped()
        return step is not None

    def forget_marks(self) -> None:
        """Remove all marks of the lesion without changing the lesion's mask."""
        if self.live is None:
            return
        self.release()
        step = self.live.forget_marks()
        if step is None:
            self._notifier.hint(_NO_MARKS)
        self.show_step(step)

    def show_step(self, step: Step | None) -> None:
        """Redraw the voxels that a step of the session changed, and report the step."""
        if step is None:
            return
        self._scene.redraw_box(Role.REFINED, step.difference.box)
        if dict(step.edit.parameters).get(TOO_FAR):
            self._notifier.warn(_JUMPED)
        self._emit_stepped()

    def undo(self) -> None:
        """Undo the last step of the current lesion."""
        self._turn_history("Undoing", lambda live: live.undo(live.label))

    def redo(self) -> None:
        """Redo the last undone step of the current lesion."""
        self._turn_history("Redoing", lambda live: live.redo(live.label))

    def go_to(self, position: int) -> None:
        """Jump to the state after `position` steps.

        A long jump is prepared in portions while the mask is unchanged; any other click or action
        cancels the jump.
        """
        live = self.live
        if live is None:
            return
        self.release()
        self._going += 1
        outcome = outcome_of(lambda: live.prepare_jump(position))
        self._report_failure(outcome, _GOING)
        if isinstance(outcome, Finished):
            self._go_on(live, outcome.result, self._going)

    # -------------------------------------------------------------------- inner

    def _go_on(self, live: EditingSession, way: GatheredJump, number: int) -> None:
        if live is not self.live or number != self._going:
            return
        outcome = outcome_of(lambda: _gather_jump(way))
        self._report_failure(outcome, _GOING)
        if not isinstance(outcome, Finished):
            return
        if not outcome.result:
            call_later(self, lambda: self._go_on(live, way, number))
            return
        changed = live.go(way)
        if changed is None:
            self._notifier.hint(_OVERTAKEN)
            return
        self._scene.redraw_box(Role.REFINED, changed)
        self._emit_stepped()

    def _turn_history(self, doing: str, turn: Callable[[EditingSession], Box | None]) -> None:
        live = self.live
        if live is None:
            return
        self.release()
        outcome = outcome_of(lambda: turn(live))
        self._report_failure(outcome, doing)
        if isinstance(outcome, Finished) and outcome.result is not None:
            self._scene.redraw_box(Role.REFINED, outcome.result)
            self._emit_stepped()
        elif isinstance(outcome, Finished) and {s.label for s in live.steps} - {
            live.label,
            WHOLE_MASK,
        }:
            self._notifier.hint(_NOTHING_HERE)

    def _report_failure(self, outcome: object, doing: str) -> None:
        if isinstance(outcome, Failed):
            self._notifier.fail(doing, outcome.error)

    def _emit_stepped(self) -> None:
        self._forget_naparis()
        self.stepped.emit()

    def _forget_naparis(self) -> None:
        layer = self.layer
        if layer is not None and has_history(layer):
            forget_history(layer)

    def _adopt_layer(self, layer: Any, live: EditingSession) -> bool:
        try:
            return adopt_layer(live, array_of(layer))
        except GridMismatchError:
            return False

    @staticmethod
    def _is_buffer_shown(layer: Any, buffer: NDArray[np.uint8]) -> bool:
        same = layer.data.dtype == buffer.dtype and layer.data.size == buffer.size
        return bool(same and np.may_share_memory(layer.data, buffer))

    def _leave_layer(self) -> None:
        if self._layer is not None:
            self._layer.events.paint.disconnect(self._on_paint)
            self._layer.events.set_data.disconnect(self._on_redraw)
            self._layer.events.data.disconnect(self._on_data)
        self._layer = None

    def _on_paint(self, _event: Any) -> None:
        """Check in the next iteration, because napari emits the event before painting."""
        self._look.start(0)

    def _notice_safely(self) -> None:
        self._report_failure(outcome_of(self.notice), tr("Recording strokes painted with napari"))

    def _on_redraw(self, _event: Any) -> None:
        """Check a little later, because napari has no event for its undo."""
        if self._layer is not None and has_history(self._layer):
            self._look.start(_LOOK_AFTER_MS)

    def _on_data(self, _event: Any) -> None:
        if not self._scene.is_changing:
            call_later(self, self._repair_later)

    def _repair_later(self) -> None:
        self._report_failure(outcome_of(self.repair_layer), tr("Repairing your mask's layer"))


def _gather_jump(way: GatheredJump) -> bool:
    """Prepare a jump for a few ms; return whether it is complete."""
    clock = QElapsedTimer()
    clock.start()
    while way.gather():
        if clock.elapsed() >= _GATHER_FOR_MS:
            return False
    return True
