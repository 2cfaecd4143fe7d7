"""The brush at the mouse: a circle at the radius that really paints, and what a press would do."""

from math import sqrt
from typing import Any, Final

from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QLabel

from napari_mamamia.core.edits import Action, Extent
from napari_mamamia.widgets.colours import MARK_COLOURS
from napari_mamamia.widgets.layers import Role
from napari_mamamia.widgets.napari_adapter import canvas_widget, layer_scrolling
from napari_mamamia.widgets.refine_state import PaintTool, RefineState
from napari_mamamia.widgets.scene import Scene

__all__ = ["BrushCursor", "cursor_text", "section_radius_mm"]

_BESIDE: Final = QPoint(14, 14)
_NO_CURSOR: Final = "standard"


def section_radius_mm(radius_mm: float, distance_mm: float) -> float:
    """Return the radius of a sphere's section by a plane at a distance from its centre; 0 beyond.

    Examples
    --------
    >>> section_radius_mm(5.0, 3.0), section_radius_mm(5.0, 6.0)
    (4.0, 0.0)
    """
    return sqrt(max(radius_mm**2 - distance_mm**2, 0.0))


def cursor_text(state: RefineState, *, sphere: bool = False) -> str:
    """Return what stands beside the circle, such as "+ 3-D".

    Examples
    --------
    >>> cursor_text(RefineState(PaintTool.SMARTPAINT), sphere=True)
    '+ 3-D sphere'
    """
    if state.tool is PaintTool.OUTLINE:
        return "outline"
    if not state.is_painting:
        return ""
    sign = "−" if state.brush.action is Action.ERASE else "+"
    if state.tool is PaintTool.SMOOTH:
        sign = "~"
    deep = "3-D" if state.brush.extent is Extent.VOLUME else "2-D"
    plain = " sphere" if sphere or state.tool is PaintTool.SPHERE else ""
    return f"{sign} {deep}{plain}"


class BrushCursor:
    """Sets napari's own circle cursor, in world units, and a small text that follows the mouse.

    A text needs a window; without one there is the circle alone.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._layer: Any | None = None
        self._text: QLabel | None = None
        self._scrolling: list[Any] = []

    def show(self, layer: Any, state: RefineState, radius_mm: float) -> None:
        """Show the cursor of `state` over the image while `layer` is the chosen one.

        `radius_mm` is that of what the brush paints. Moving the image by a drag is switched off.
        """
        self._layer = layer
        layer.mouse_pan = False
        self._take_alt_wheel()
        if state.is_painting:
            layer.cursor_size = 2 * radius_mm
            layer.cursor = "circle"
        else:
            layer.cursor = "cross"
        self.say(state)

    def hide(self) -> None:
        """Give napari its cursor and its drag back."""
        if self._text is not None:
            self._text.hide()
        self._scene.viewer.mouse_wheel_callbacks.extend(self._scrolling)
        self._scrolling = []
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.cursor = _NO_CURSOR
            layer.mouse_pan = True
            layer.mouse_zoom = True

    def _take_alt_wheel(self) -> None:
        callbacks = self._scene.viewer.mouse_wheel_callbacks
        for function in layer_scrolling(self._scene.viewer):
            callbacks.remove(function)
            self._scrolling.append(function)

    def say(self, state: RefineState, *, sphere: bool = False) -> None:
        """Write beside the circle what a press would do: add or erase, 3-D or 2-D."""
        label = self._label()
        if label is None:
            return
        text = cursor_text(state, sphere=sphere)
        if label.text() != text:
            kind = "erase" if state.brush.action is Action.ERASE else "line"
            label.setStyleSheet(
                f"background: rgba(0, 0, 0, 150); color: {MARK_COLOURS[kind]}; padding: 1px 3px;"
            )
            label.setText(text)
            label.adjustSize()
        label.setVisible(bool(text) and self._layer is not None)

    def move(self, pixel: Any) -> None:
        """Let the text follow the mouse; `pixel` is (x, y) on the canvas."""
        if self._text is not None and self._layer is not None:
            self._text.move(QPoint(int(pixel[0]), int(pixel[1])) + _BESIDE)

    def _label(self) -> QLabel | None:
        canvas = canvas_widget(self._scene.viewer)
        if self._text is None and canvas is not None:
            self._text = QLabel(canvas)
            self._text.setObjectName("brush_text")
            self._text.setToolTip("What a press would do")
            self._text.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._text.hide()
        return self._text


def chosen(scene: Scene) -> Any | None:
    """Return the reader's mask layer where it is the chosen one, else None."""
    layer = scene.layer(Role.REFINED)
    return layer if layer is not None and layer is scene.viewer.layers.selection.active else None
