"""napari's own brush, eraser, fill and polygon on the reader's mask: tools in hand like ours."""

from typing import Any, Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.controls.colours import MARK_COLOURS
from napari_mamamia.widgets.refine.tool_signs import ToolSign
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.hand import Hand, HeldTool
from napari_mamamia.widgets.viewer.scene import Scene

OWNER: Final = "napari"
_PAGE: Final = "Refine"
_AT_REST: Final = "pan_zoom"
_NAMES: Final = {
    "paint": "napari's brush",
    "erase": "napari's eraser",
    "fill": "napari's fill",
    "polygon": "napari's polygon",
}
_SIZED: Final = ("paint", "erase")


class NapariPaint(QObject):
    """Follows the mode of the mask's layer into the hand, and back.

    napari asks nobody before it paints, so that its tools are put down where what is hit is not
    what is seen, instead of refusing a press as ours do.
    """

    sign_changed = Signal()

    def __init__(self, scene: Scene, hand: Hand, aim: Aim, notifier: Notifier) -> None:
        super().__init__()
        self._scene = scene
        self._hand = hand
        self._aim = aim
        self._notifier = notifier
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._look)
        scene.viewer.layers.events.inserted.connect(self._on_inserted)
        hand.changed.connect(self._follow_hand)
        aim.changed.connect(self._soon.start)

    def sign(self, _view: Any) -> ToolSign:
        """Return what stands on the picture: tool, action, and how wide it paints."""
        layer = self._scene.layer(Role.REFINED)
        mode = self._hand.mode_of(OWNER)
        if layer is None or not mode:
            return ToolSign("")
        erases = mode == "erase" or layer.selected_label == layer.colormap.background_value
        parts = [_NAMES[mode], "erase" if erases else "add"]
        if mode in _SIZED:
            parts.append(f"{layer.brush_size:g} voxels wide")
        return ToolSign(" · ".join(parts), MARK_COLOURS["erase" if erases else "add"])

    def _on_inserted(self, event: Any) -> None:
        tag = tag_of(event.value)
        if tag is not None and tag.role is Role.REFINED:
            events = event.value.events
            events.mode.connect(self._on_mode)
            for what in (events.selected_label, events.brush_size):
                what.connect(lambda _event: self.sign_changed.emit())

    def _on_mode(self, _event: object = None) -> None:
        mode = self._mode()
        if mode in _NAMES:
            self._hand.take(HeldTool(OWNER, mode, _NAMES[mode], _PAGE))
            self._soon.start()  # other listeners of napari hear of the mode first
        else:
            self._hand.put_down(OWNER)

    def _mode(self) -> str:
        layer = self._scene.layer(Role.REFINED)
        return "" if layer is None else str(layer.mode)

    def _follow_hand(self) -> None:
        """Let napari's tool go with the hand."""
        if not self._hand.mode_of(OWNER) and self._mode() in _NAMES:
            layer = self._scene.layer(Role.REFINED)
            if layer is not None:
                layer.mode = _AT_REST

    def _look(self) -> None:
        """Put the tool down where it would paint what is not seen, and say why."""
        problem = self._aim.problem_in(self._scene.viewer)
        if self._hand.mode_of(OWNER) and problem:
            self._hand.put_down(OWNER)
            self._notifier.warn(problem)
