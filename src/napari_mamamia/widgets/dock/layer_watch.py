"""Handling of layers that the user or another plugin adds or removes."""

from typing import Any

from qtpy.QtCore import QTimer

from napari_mamamia.widgets.base.blinding import NOTHING_ELSE
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.kinetics.map import KineticMapControl
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.score.agreement import Reviewing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.layer_stack import empty_layer
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.projecting import Projecting


class LayerWatch(WindowPart):
    """The adoption of cases that were added by other means, and the handling of deleted layers."""

    def __init__(
        self,
        context: WindowContext,
        opening: Opening,
        editing: Editing,
        projecting: Projecting,
        kinetic_map: KineticMapControl,
        reviewing: Reviewing,
    ) -> None:
        super().__init__(context)
        self._opening = opening
        self._editing = editing
        self._projecting = projecting
        self._kinetic_map = kinetic_map
        self._reviewing = reviewing
        self._adopt = QTimer(self)
        self._adopt.setSingleShot(True)
        self._adopt.timeout.connect(self._adopt_case)
        self._close = QTimer(self)
        self._close.setSingleShot(True)
        self._close.timeout.connect(self._close_case)
        self._foreign: list[Any] = []
        self._sweep = QTimer(self)
        self._sweep.setSingleShot(True)
        self._sweep.timeout.connect(self._remove_foreign)
        self._session.blinding_changed.connect(self._hide_foreign)
        events = self._scene.viewer.layers.events
        events.inserted.connect(self._on_inserted)
        events.removed.connect(self._on_removed)

    def adopt_later(self) -> None:
        """Adopt a case in the viewer after all its layers are added."""
        self._adopt.start()

    def _adopt_case(self) -> None:
        self._editing.save_if_needed(lambda saved: self._opening.adopt() if saved else None)

    def _close_case(self) -> None:
        """Close a case whose phases were deleted, after napari has removed the selected layers.

        Closing also removes other layers of the case, which must not happen while napari iterates
        over the layers.
        """
        if self._scene.layer(Role.PHASE) is None:
            self._editing.save_if_needed(lambda _saved: self._session.close_case())

    def _on_inserted(self, event: Any) -> None:
        if self._scene.is_changing:
            return
        if self._session.blinding.is_blind:
            self._hide_layer(event.value)
            return
        tag = tag_of(event.value)
        if tag is not None and tag.case_id:
            self.adopt_later()

    def _hide_foreign(self) -> None:
        if self._session.blinding.is_blind:
            for layer in self._scene.viewer.layers:
                self._hide_layer(layer)
            self._scene.viewer.status = ""

    def _hide_layer(self, layer: Any) -> None:
        """Hide a layer that was added by other means and may be a mask, and remove it later.

        The layer is not removed immediately, because napari has not finished adding it.
        """
        layer.visible = False
        layer.metadata = {}
        empty_layer(layer)
        layer.name = "hidden"
        self._foreign.append(layer)
        self._sweep.start()

    def _remove_foreign(self) -> None:
        layers, self._foreign = self._foreign, []
        with self._scene.stack.changing():
            self._scene.stack.remove(layers)
        self._notifier.warn(NOTHING_ELSE)

    def _on_removed(self, event: Any) -> None:
        tag = tag_of(event.value)
        if tag is None or self._scene.is_changing or tag.case_id != self._session.case_id:
            return
        if tag.role is Role.PHASE:
            self._close.start(0)
        elif tag.role is Role.SUBTRACTION:
            self._scene.overlays.hide_subtraction()
        elif tag.role is Role.PROJECTION:
            self._projecting.hide()
            self._scene.overlays.hide_projection()
        elif tag.role is Role.MAP:
            self._kinetic_map.hide()
        elif tag.role is Role.AGREEMENT:
            self._reviewing.turn_off()
        # `Editing` saves strokes on a refined mask before it closes the mask.
        elif tag.role is not Role.REFINED:
            self._session.drop_mask(tag.role)
