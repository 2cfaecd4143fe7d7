"""The queue of strokes, which are computed in a thread and applied to the mask in order.

A SmartPaint stroke changes the mask when its result arrives. Any stroke that is drawn in the
meantime waits, so that strokes take effect in the order in which they were drawn.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Step, Voxel
from napari_mamamia.services.refine.strokes import StrokeChange
from napari_mamamia.smartpaint.evidence.stroke import StrokeWork
from napari_mamamia.smartpaint.session.evidence_stroke import KeptStroke
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Failed, Finished, outcome_of
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
        """Whether a finished stroke has not yet changed the mask."""
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
