"""The reader's mask during editing: a session's buffer, redrawn on its layer after changes.

The user may paint on the layer with napari's own tools, replace its data, or delete the layer.
Painting becomes a step of the session; a layer that no longer fits is repaired, with a message.
"""

from collections.abc import Callable
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
from napari_mamamia.smartpaint.session.gathered_jump import GatheredJump
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.stroke import TOO_FAR
from napari_mamamia.widgets.adapter.adapter import forget_history, has_history
from napari_mamamia.widgets.base.layers import LayerTag, Role, array_of
from napari_mamamia.widgets.base.notify import Failed, Finished, outcome_of
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.refine.strokes import StrokeQueue
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

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
        """The layer whose events are connected; the user may just have deleted this layer."""
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
        """Make sure before a stroke that the layer shows the session's buffer."""
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
        """Record changes made outside the session as a step."""
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
        """Set the label to `mask` inside `box`; return whether this changed any voxel.

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

        A long jump is prepared in portions while the mask stays unchanged; any other click or
        action cancels the jump.
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
    """Prepare a jump for some ms; return whether it is complete."""
    clock = QElapsedTimer()
    clock.start()
    while way.gather():
        if clock.elapsed() >= _GATHER_FOR_MS:
            return False
    return True
