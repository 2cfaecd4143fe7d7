"""The brush cursor: a circle with the painted radius, and a text about the effect of a press."""

from collections.abc import Callable
from math import sqrt
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QPoint, Qt, Signal
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QLabel, QWidget

from napari_mamamia.core.edits import Action, Brush, Extent, Tool
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.smartpaint.brush.reach import painted_radius_mm
from napari_mamamia.smartpaint.evidence.stroke import window_mm
from napari_mamamia.widgets.adapter.adapter import canvas_widget, layer_scrolling
from napari_mamamia.widgets.adapter.labels import BrushRings, RingStyle
from napari_mamamia.widgets.controls.colours import MARK_COLOURS, WARNING_COLOURS
from napari_mamamia.widgets.refine.state import PaintTool, RefineState
from napari_mamamia.widgets.viewer.scene import Scene

_BESIDE: Final = QPoint(14, 14)
_NO_CURSOR: Final = "standard"
_CORE: Final = (
    1.5,
    0.35,
)  # mm and radii, the lesser: the core that a stroke changes whatever the image shows
_MODIFIER_KEYS: Final = {
    Qt.Key.Key_Shift: ("Shift", Qt.KeyboardModifier.ShiftModifier),
    Qt.Key.Key_Control: ("Control", Qt.KeyboardModifier.ControlModifier),
    Qt.Key.Key_Alt: ("Alt", Qt.KeyboardModifier.AltModifier),
}


def section_radius_mm(radius_mm: float, distance_mm: float) -> float:
    """Return the radius of a sphere's cross-section at a distance from its centre, or 0.

    Examples
    --------
    >>> section_radius_mm(5.0, 3.0), section_radius_mm(5.0, 6.0)
    (4.0, 0.0)
    """
    return sqrt(max(radius_mm**2 - distance_mm**2, 0.0))


def circle_radius_mm(state: RefineState) -> float:
    """Return the radius of the brush cursor in mm.

    For SmartPaint this is the radius of the stroke, and for any other brush the radius of the
    painted sphere.
    """
    if state.tool is PaintTool.SMARTPAINT:
        return state.brush.radius_mm
    return painted_radius_mm(state.brush)


def core_mm(brush: Brush) -> float:
    """Return the distance in mm from the path within which SmartPaint ignores the image.

    Examples
    --------
    >>> core_mm(Brush(radius_mm=10.0)), core_mm(Brush(radius_mm=2.0))
    (1.5, 0.7)
    """
    most_mm, share = _CORE
    return min(most_mm, share * brush.radius_mm)


def ring_style(state: RefineState, instead: str = "") -> RingStyle:
    """Return the style of the brush cursor: its colour, and rings for SmartPaint.

    The rings show the core and the range of a SmartPaint stroke. A stroke for the whole lesion has
    no range.
    """
    colour, brush = sign_colour(state, instead), state.brush
    if state.tool is not PaintTool.SMARTPAINT:
        return RingStyle(colour)
    outer = None if brush.whole else window_mm(brush) / brush.radius_mm
    return RingStyle(colour, core_mm(brush) / brush.radius_mm, outer)


def sign_colour(state: RefineState, instead: str = "") -> str:
    """Return the colour for the effect of a press: add, erase, smooth, or no effect."""
    if instead:
        return WARNING_COLOURS["dark"]
    if state.brush.tool is Tool.SMOOTH and state.is_painting:
        return MARK_COLOURS["line"]
    return MARK_COLOURS[str(state.brush.action)]


def slices_reached(radius_mm: float, spacing_mm: float) -> int:
    """Return the number of slices on each side that a sphere reaches.

    Examples
    --------
    >>> slices_reached(5.0, 2.0), slices_reached(1.0, 2.0)
    (2, 0)
    """
    count = 0
    while section_radius_mm(radius_mm, (count + 1) * spacing_mm) > 0:
        count += 1
    return count


def cursor_text(state: RefineState, *, slices: int | None = None) -> str:
    """Return the text next to the cursor, such as "+ add", with the depth if `slices` is given.

    The brush of `state` already includes the effect of mouse buttons and modifier keys.

    Examples
    --------
    >>> from napari_mamamia.core.edits import Brush
    >>> cursor_text(RefineState(PaintTool.SPHERE, Brush(tool=Tool.SPHERE)))
    '+ sphere add'
    >>> cursor_text(RefineState(PaintTool.SMARTPAINT, Brush().inverted()), slices=2)
    '− erase ±2 slices'
    """
    brush = state.brush
    sign = "−" if brush.action is Action.ERASE else "+"
    if state.tool is PaintTool.NONE:
        return ""
    if state.tool is PaintTool.OUTLINE:
        return tr("{sign} outline", sign=sign)
    if state.tool.brush_tool is None:
        return f"− {state.tool}"
    deep = ""
    if brush.extent is Extent.PLANE and state.tool is not PaintTool.SMARTPAINT:
        deep = " 2-D"
    elif slices is not None:
        deep = tr_n(
            " ±{n} slice",
            " ±{n} slices",
            slices,
        )
    if state.tool is PaintTool.SMOOTH:
        return tr("~ smooth{deep}", deep=deep)
    what = "sphere " * (state.tool is PaintTool.SPHERE) + str(brush.action)
    return (
        tr("{sign} {what}, whole lesion", sign=sign, what=what)
        if brush.whole
        else f"{sign} {what}{deep}"
    )


class HeldKeys(QObject):
    """An event filter that reports which of Shift, Ctrl and Alt are pressed.

    Changes are reported even if the pointer does not move.
    """

    changed = Signal(object)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Read the modifier keys of a canvas event; the event is processed as usual."""
        if isinstance(event, QKeyEvent) and event.key() in _MODIFIER_KEYS:
            name, _ = _MODIFIER_KEYS[Qt.Key(event.key())]
            # The modifiers of a key's own event include that key on some systems only.
            held = {n for n, m in _MODIFIER_KEYS.values() if event.modifiers() & m}
            is_down = event.type() == QEvent.Type.KeyPress
            self.changed.emit(held | {name} if is_down else held - {name})
        return False


class BrushCursor:
    """A component that controls napari's circle cursor, its rings, and a text at the pointer.

    Rings and text need a window; without a window, only the circle is shown.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._layer: Any | None = None
        self._text: QLabel | None = None
        self._scrolling: list[Any] = []
        self._is_over = False
        self._rings = BrushRings()
        self.held = HeldKeys()
        self.canvas_of_view: Callable[[Any], QWidget | None] = canvas_widget

    def show(self, layer: Any, state: RefineState, instead: str = "") -> None:
        """Show the effect of a press while `layer` is the selected layer.

        If a press paints nothing, the text `instead` is shown. Panning by dragging is turned off.
        """
        self._layer = layer
        radius_mm = circle_radius_mm(state)
        self._rings.show(ring_style(state, instead))
        layer.mouse_pan = False
        self._take_alt_wheel()
        if instead:
            layer.cursor = "forbidden"
        elif state.is_painting:
            layer.cursor_size = 2 * radius_mm
            layer.cursor = "circle"
        else:
            layer.cursor = "cross"
        grid, axis = self._scene.grid, self._scene.view.upright_axis
        slices = None
        if grid is not None and axis is not None:
            slices = slices_reached(radius_mm, grid.spacing_mm[axis])
        self._show_text(instead or cursor_text(state, slices=slices), sign_colour(state, instead))

    def hide(self) -> None:
        """Restore napari's cursor and panning."""
        if self._text is not None:
            self._text.hide()
        self._scene.viewer.mouse_wheel_callbacks.extend(self._scrolling)
        self._scrolling = []
        self._rings.show(RingStyle())
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

    def _show_text(self, text: str, colour: str) -> None:
        label = self._make_label()
        if label is None:
            return
        if label.text() != text:
            label.setStyleSheet(
                f"background: rgba(0, 0, 0, 225); color: {colour}; padding: 1px 3px;"
            )
            label.setText(text)
            label.adjustSize()
        label.setVisible(bool(text) and self._is_over)

    def move(self, pixel: Any, viewer: Any | None = None) -> None:
        """Move the text with the pointer; `pixel` is (x, y) on the canvas of `viewer`."""
        self._is_over = True
        if self._text is not None and self._layer is not None:
            canvas = self.canvas_of_view(viewer or self._scene.viewer)
            self._rings.enter(canvas)
            if canvas is not None and self._text.parent() is not canvas:
                self._text.setParent(canvas)
                canvas.installEventFilter(self.held)
            room = self._text.parentWidget()
            x, y = int(pixel[0]) + _BESIDE.x(), int(pixel[1]) + _BESIDE.y()
            if room is not None:
                x = min(x, max(room.width() - self._text.width(), 0))
                y = min(y, max(room.height() - self._text.height(), 0))
            self._text.move(QPoint(x, y))
            self._text.setVisible(bool(self._text.text()))

    def come_home(self) -> None:
        """Move the text back to the main view, because the view that contains it is closing."""
        home = canvas_widget(self._scene.viewer)
        if self._text is not None and home is not None:
            self._text.setParent(home)
            self._text.hide()

    def leave(self, viewer: Any) -> None:
        """Hide the text when the pointer leaves a view, until the pointer moves in a view again."""
        if not viewer.mouse_over_canvas:
            self._is_over = False
            if self._text is not None:
                self._text.hide()

    def _make_label(self) -> QLabel | None:
        canvas = canvas_widget(self._scene.viewer)
        if self._text is None and canvas is not None:
            self._text = QLabel(canvas)
            self._text.setObjectName("brush_text")
            self._text.setToolTip(tr("Action of a mouse press."))
            self._text.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            self._text.hide()
            canvas.installEventFilter(self.held)
        return self._text
