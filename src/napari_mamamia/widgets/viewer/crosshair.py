"""The cross-hair: four thin lines on a view's canvas, with a gap where they would meet."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFrame, QWidget

from napari_mamamia.widgets.controls.controls import discard

__all__ = ["CrossHair", "canvas_place"]

_GAP: Final = 14
_WIDTH: Final = 1
_COLOUR: Final = "rgba(240, 228, 66, 190)"
"""Yellow of the palette in `colours`, a little translucent; no mask has it."""


def canvas_place(
    world: Sequence[float], viewer: Any, size: tuple[int, int]
) -> tuple[float, float] | None:
    """Return where on a canvas of `size` (width, height) a world position is; None in a 3-D view.

    `world` is (slice, row, column) in mm as the main view displays them.
    """
    dims, camera = viewer.dims, viewer.scene.camera
    if len(dims.displayed) != 2:
        return None
    down, across = (world[axis - (dims.ndim - len(world))] for axis in dims.displayed)
    rows, columns = (str(way) for way in camera.orientation2d)
    x = (across - camera.center[-1]) * camera.zoom * (-1 if columns == "left" else 1)
    y = (down - camera.center[-2]) * camera.zoom * (-1 if rows == "up" else 1)
    return size[0] / 2 + x, size[1] / 2 + y


class CrossHair:
    """Draws on the widget `canvas` of a view; the lines let every mouse event through.

    Parameters
    ----------
    viewer
        The view whose camera says where a place is drawn.
    canvas
        The widget that its image is drawn on.
    """

    def __init__(self, viewer: Any, canvas: QWidget) -> None:
        self._viewer = viewer
        self._canvas = canvas
        self._world: tuple[float, ...] | None = None
        self._lines = [_line(canvas, name) for name in ("left", "right", "top", "bottom")]
        self._camera = viewer.scene.camera.events
        for emitter in (self._camera.center, self._camera.zoom, self._camera.orientation):
            emitter.connect(self.draw)
        viewer.canvas.events.size.connect(self.draw)
        viewer.dims.events.ndisplay.connect(self.draw)
        viewer.dims.events.order.connect(self.draw)

    def close(self) -> None:
        """Take the lines away."""
        for emitter in (self._camera.center, self._camera.zoom, self._camera.orientation):
            emitter.disconnect(self.draw)
        self._viewer.canvas.events.size.disconnect(self.draw)
        self._viewer.dims.events.ndisplay.disconnect(self.draw)
        self._viewer.dims.events.order.disconnect(self.draw)
        for line in self._lines:
            discard(line)
        self._lines = []

    def show(self, world: tuple[float, ...] | None) -> None:
        """Draw at a world position (slice, row, column) in mm; None hides it."""
        self._world = world
        self.draw()

    def draw(self, _event: object = None) -> None:
        """Draw anew, such as after the camera moved."""
        width, height = self._canvas.width(), self._canvas.height()
        at = None
        if self._world is not None:
            at = canvas_place(self._world, self._viewer, (width, height))
        if at is None:
            for line in self._lines:
                line.hide()
            return
        x, y = round(at[0]), round(at[1])
        places = (
            (0, y, x - _GAP, _WIDTH),
            (x + _GAP, y, width - x - _GAP, _WIDTH),
            (x, 0, _WIDTH, y - _GAP),
            (x, y + _GAP, _WIDTH, height - y - _GAP),
        )
        for line, (left, top, wide, high) in zip(self._lines, places, strict=True):
            line.setVisible(wide > 0 and high > 0)
            line.setGeometry(left, top, max(wide, 0), max(high, 0))


def _line(canvas: QWidget, name: str) -> QFrame:
    made = QFrame(canvas)
    made.setObjectName(f"crosshair_{name}")
    made.setToolTip("The same place in all planes")
    made.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    made.setStyleSheet(f"background: {_COLOUR}; border: none;")
    made.hide()
    return made
