"""Check whether a mouse press would hit the displayed voxel, and why it would not."""

from typing import Any, Final

import numpy as np
from qtpy.QtCore import Signal

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_SPACE_AXES: Final = 3
_OPENING: Final = "open"
_IMAGES: Final = (Role.PHASE, Role.SUBTRACTION, Role.PROJECTION)
_OPENS: Final = tr("Another case is being opened: wait until it is on screen.")
_IN_3D: Final = tr("A 3-D view is on screen: go back to slices first (napari's Ctrl+Y).")
_THICK: Final = tr("napari shows thick slices: set their thickness back to 0 first.")
_GRIDDED: Final = tr("napari shows its layers side by side: leave the grid view first (Ctrl+G).")
_HIDDEN: Final = tr("The image is hidden: show its layer first.")
_MOVED: Final = tr(
    "A layer of this case was moved or rotated: Alt-click napari's Transform button to reset it."
)


class Aim(WindowPart):
    """A component that checks a view on request; `changed` reports a possibly different result."""

    changed = Signal()

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        events = self._scene.viewer.layers.events
        events.inserted.connect(self._on_inserted)
        events.removed.connect(self.look)
        self.attach(self._scene.viewer)
        self._jobs.started.connect(self._on_job)
        self._jobs.ended.connect(self._on_job)

    def attach(self, viewer: Any) -> None:
        """Include this view of the case in the checks."""
        dims = viewer.dims.events
        for event in (dims.ndisplay, dims.order, dims.margin_left, dims.margin_right):
            event.connect(self.look)
        viewer.canvas.grid.events.enabled.connect(self.look)

    def look(self, _event: object = None) -> None:
        """Report that an input of the check has changed."""
        self.changed.emit()

    def problem_in(self, viewer: Any) -> str:
        """Return why a press in a view would miss the displayed voxel, or "" if it would hit."""
        grid = self._scene.grid
        if grid is None:
            return ""
        if self._jobs.is_running(_OPENING):
            return _OPENS
        return self._problem_of_view(viewer) or self._problem_of_layers(grid)

    def _problem_of_view(self, viewer: Any) -> str:
        if self._scene.view.upright_axis_in(viewer) is None:
            return _IN_3D
        dims = viewer.dims
        across = [axis for axis in dims.not_displayed if axis >= dims.ndim - _SPACE_AXES]
        if any(dims.margin_left[axis] or dims.margin_right[axis] for axis in across):
            return _THICK
        return _GRIDDED if viewer.canvas.grid.enabled else ""

    def _problem_of_layers(self, grid: Grid) -> str:
        projection = self._scene.layer(Role.PROJECTION)
        tag = None if projection is None else tag_of(projection)
        if projection is not None and tag is not None and projection.visible:
            text = tr(
                "The {note} shows many slices at once: return to single slices first",
                note=tag.note or "MIP",
            )
            return with_key(text, "projection")
        images = [layer for layer in self._scene.stack.find(*_IMAGES) if layer.visible]
        if not images:
            return _HIDDEN
        drawn = [*images, *self._scene.stack.find(Role.REFINED)]
        return _MOVED if any(_is_moved(layer, grid) for layer in drawn) else ""

    def _on_inserted(self, event: Any) -> None:
        tag = tag_of(event.value)
        if tag is not None:
            event.value.events.visible.connect(self._look_at_ours)
        self.look()

    def _look_at_ours(self, event: Any) -> None:
        if tag_of(event.source) is not None:  # the layer may be removed together with its case
            self.look()

    def _on_job(self, ticket: RunningJob, _outcome: object = None) -> None:
        if ticket.lane == _OPENING:
            self.look()


def _is_moved(layer: Any, grid: Grid) -> bool:
    """Return whether a layer differs from its grid at the corner or along an axis.

    The corner and one end of each axis determine an affine transform.
    """
    scale = np.asarray(grid.display_frame().per_axis(grid.spacing_mm))
    shape = np.asarray(layer.data.shape[-_SPACE_AXES:])
    lead = [0.0] * (layer.ndim - _SPACE_AXES)
    # An axis of one voxel gets a length too, or a rotation about it would be missed.
    for corner in (np.zeros(_SPACE_AXES), *np.diag(np.maximum(shape - 1, 1))):
        world = np.asarray(layer.data_to_world((*lead, *corner)))[-_SPACE_AXES:]
        if not np.allclose(world, corner * scale, atol=0.25 * float(scale.min())):
            return True
    return False
