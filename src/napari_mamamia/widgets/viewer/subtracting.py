"""Subtraction by a shortcut: the displayed phase minus another phase, computed in a thread."""

from dataclasses import replace

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.show_case import Difference
from napari_mamamia.widgets.base.layers import Role, tag_for, tag_of
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart


class Subtracting(WindowPart):
    """A component that shows and hides the subtraction, which follows the phase slider."""

    def __init__(self, context: WindowContext, text: CanvasText) -> None:
        super().__init__(context)
        self._text = text
        self.minus = 0
        self._scene.viewer.dims.events.current_step.connect(self._follow_phase)
        self._session.phases_changed.connect(self._subtract_again)

    def toggle(self) -> None:
        """Show the subtraction, or the phases again."""
        if self.is_on:
            self.hide()
        else:
            self._ask_subtraction(self.minuend)

    @property
    def minuend(self) -> int:
        """The phase to subtract from: the displayed one, or its neighbour if it is subtracted."""
        phase = self._scene.phase or 0
        if phase != self.minus:
            return phase
        return phase + 1 if phase == 0 else phase - 1

    @property
    def is_on(self) -> bool:
        """Whether a subtraction is shown or being computed."""
        return self._scene.layer(Role.SUBTRACTION) is not None or self._jobs.is_running("subtract")

    def hide(self) -> None:
        """Show the phases again."""
        self._jobs.cancel("subtract")
        if self._scene.layer(Role.SUBTRACTION) is not None:
            self._scene.overlays.hide_subtraction()
        self._text.update()

    def set_minus(self, phase: int) -> None:
        """Set the phase to subtract."""
        self.minus = phase
        if self.is_on:
            self._ask_subtraction(self.minuend)

    def _subtract_again(self) -> None:
        if self.is_on:
            self._ask_subtraction(self.minuend)

    def _follow_phase(self, _event: object = None) -> None:
        layer = self._scene.layer(Role.SUBTRACTION)
        tag = None if layer is None else tag_of(layer)
        phase = self._scene.phase
        if tag is None or phase is None or self._scene.is_changing:
            return
        # At the subtracted phase the difference would be 0 everywhere: the image stays.
        if phase not in (tag.phase, self.minus):
            self._ask_subtraction(phase)

    def _ask_subtraction(self, phase: int) -> None:
        case = self._session.shown_case
        if case is None:
            return
        minus = self.minus
        if max(phase, minus) >= len(case.phases) or not case.is_loaded:
            missing = (
                tr("the case has no post-contrast phase")
                if case.is_loaded
                else tr("the case is still opening")
            )
            if case.is_loaded and minus >= len(case.phases):
                missing = tr(
                    "the case has no {minus}, the phase selected for subtraction under View",
                    minus=phase_name(minus, case.n_before),
                )
            self._notifier.hint(
                tr("No subtraction of {case_id}: {missing}", case_id=case.case_id, missing=missing)
            )
            return

        self._jobs.start(
            "subtract",
            tr(
                "Subtracting {minus} from {phase}",
                minus=phase_name(minus, case.n_before),
                phase=phase_name(phase, case.n_before),
            ),
            lambda: self._services.subtract_phases(case, phase, minus),
            self._show_subtraction,
            still=lambda: self._session.shown_case is case,
        )

    def _show_subtraction(self, difference: Difference) -> None:
        if self._session.case is None:
            return
        tag = tag_for(self._session.case, Role.SUBTRACTION, phase=difference.phase)
        tag = replace(tag, minus=difference.minus)
        self._scene.overlays.show_subtraction(tag, difference.array, difference.limits)
        self._text.update()
