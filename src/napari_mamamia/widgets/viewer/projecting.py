"""MIP and slab of the enhancement along each view's axis, computed in a thread."""

from dataclasses import replace
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.show_contrast import Projection
from napari_mamamia.widgets.base.layers import Role, tag_for, tag_of
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.planes import Planes
from napari_mamamia.widgets.viewer.subtracting import Subtracting

_LANE: Final = "project"


class Projecting(WindowPart):
    """A component that shows and hides the projection.

    The visible projection follows the phase, the planes and the slab, and uses the phases of the
    subtraction. The signal `changed` reports that the projection was shown or hidden.
    """

    changed = Signal()

    def __init__(
        self, context: WindowContext, planes: Planes, subtracting: Subtracting, text: CanvasText
    ) -> None:
        super().__init__(context)
        self._planes = planes
        self._subtracting = subtracting
        self._text = text
        self.slab_mm = 0.0
        self._scene.viewer.dims.events.current_step.connect(self._follow_phase)
        self._scene.viewer.dims.events.order.connect(self._follow_axes)
        planes.built.connect(self._follow_axes)
        self._session.case_changed.connect(self._forget_projections)
        self._session.phases_changed.connect(self.again)

    @property
    def is_on(self) -> bool:
        """Whether a projection is shown or being computed."""
        return self._scene.layer(Role.PROJECTION) is not None or self._jobs.is_running(_LANE)

    def toggle(self) -> None:
        """Show the projection, or the phases again."""
        if self.is_on:
            self.hide()
        else:
            self._ask_projection(self._subtracting.minuend)

    def hide(self) -> None:
        """Show the phases again."""
        self._jobs.cancel(_LANE)
        self._forget_projections()
        if self._scene.layer(Role.PROJECTION) is not None:
            self._scene.overlays.hide_projection()
        self._text.update()
        self.changed.emit()

    def set_slab(self, slab_mm: float) -> None:
        """Set the thickness of the projected slab in mm; 0 projects the whole volume."""
        self.slab_mm = slab_mm
        self.again()

    def again(self) -> None:
        """Project again, for example after a different phase was chosen for subtraction."""
        if self.is_on:
            self._ask_projection(self._subtracting.minuend)

    # -------------------------------------------------------------------- inner

    def _follow_phase(self, _event: object = None) -> None:
        layer = self._scene.layer(Role.PROJECTION)
        tag = None if layer is None else tag_of(layer)
        phase = self._scene.phase
        if tag is None or phase is None or self._scene.is_changing:
            return
        # At the subtracted phase there is nothing to project: the image stays.
        if phase not in (tag.phase, self._subtracting.minus):
            self._ask_projection(phase)

    def _follow_axes(self, _event: object = None) -> None:
        if self._scene.layer(Role.PROJECTION) is not None:
            self.again()

    def _forget_projections(self) -> None:
        for pane in self._planes.panes:
            pane.copies.set_own(Role.PROJECTION, None)

    def _list_axes(self) -> list[int]:
        views = [self._scene.viewer, *(pane.model for pane in self._planes.panes)]
        axes = {self._scene.view.upright_axis_in(view) for view in views}
        return sorted(axis for axis in axes if axis is not None)

    def _ask_projection(self, phase: int) -> None:
        case, minus = self._session.shown_case, self._subtracting.minus
        if case is None:
            return
        if max(phase, minus) >= len(case.phases) or not case.is_loaded:
            missing = (
                tr("the case has no post-contrast phase")
                if case.is_loaded
                else tr("the case is still opening")
            )
            self._notifier.hint(
                tr("No projection of {case_id}: {missing}", case_id=case.case_id, missing=missing)
            )
            return
        axes, slab_mm = self._list_axes(), self.slab_mm

        self._jobs.start(
            _LANE,
            tr(
                "Projecting {phase} minus {minus}",
                phase=phase_name(phase, case.n_before),
                minus=phase_name(minus, case.n_before),
            ),
            lambda: self._services.project_case(case, phase, minus, axes, slab_mm),
            self._show_projection,
            still=lambda: self._session.shown_case is case,
        )

    def _show_projection(self, found: Projection) -> None:
        case, axis = self._session.case, self._scene.view.upright_axis
        if case is None or axis is None or not found.arrays[axis].size:
            return
        tag = tag_for(case, Role.PROJECTION, phase=found.phase)
        tag = replace(tag, minus=found.minus, note=found.name)
        frame = case.grid.display_frame()
        for pane in self._planes.panes:
            pane_axis = self._scene.view.upright_axis_in(pane.model)
            array = None if pane_axis is None or pane_axis == axis else found.arrays[pane_axis]
            displayed = None if array is None or not array.size else frame.to_display(array)
            pane.copies.set_own(Role.PROJECTION, displayed)
        self._scene.overlays.show_projection(tag, found.arrays[axis], found.limits)
        for pane in self._planes.panes:
            pane.text.update()
        self._text.update()
        self.changed.emit()
