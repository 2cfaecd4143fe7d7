"""The window within its screen: made smaller where it is larger, napari's own docks put away."""

from typing import Final

from qtpy.QtCore import QRect, Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow

_LEAST_IMAGE: Final = 400
"""Width in pixels that the image keeps, by looking."""


def fit_window(window: QMainWindow, own: QDockWidget, width: int) -> list[str]:
    """Bring a window into its screen, and give our dock the width that its pages need.

    Where our dock and napari's docks on the left leave the image no room, napari's are put away;
    its menu Window brings them back.

    Returns
    -------
    list
        The titles of the docks that were put away.
    """
    room = _room_of(window)
    left = _docks_on_the_left(window)
    beside = max((dock.minimumSizeHint().width() for dock in left), default=0)
    too_wide = beside + width + _LEAST_IMAGE > room.width()
    too_high = window.minimumSizeHint().height() > room.height()
    away = left if too_wide or too_high else []
    for dock in away:
        dock.hide()
    if not window.isMaximized() and not window.isFullScreen():
        _bring_into(window, room)
    window.resizeDocks([own], [min(width, room.width() // 2)], Qt.Orientation.Horizontal)
    return [dock.windowTitle() or dock.objectName() for dock in away]


def _room_of(window: QMainWindow) -> QRect:
    """Return where the inside of a window may be: the screen without its bars and our frame."""
    whole, inside = window.frameGeometry(), window.geometry()
    return (
        window.screen()
        .availableGeometry()
        .adjusted(
            inside.left() - whole.left(),
            inside.top() - whole.top(),
            inside.right() - whole.right(),
            inside.bottom() - whole.bottom(),
        )
    )


def _docks_on_the_left(window: QMainWindow) -> list[QDockWidget]:
    docks = (dock for dock in window.findChildren(QDockWidget) if dock.isVisible())
    side = Qt.DockWidgetArea.LeftDockWidgetArea
    return [d for d in docks if window.dockWidgetArea(d) == side and not d.isFloating()]


def _bring_into(window: QMainWindow, room: QRect) -> None:
    layout = window.layout()
    if layout is not None:
        layout.activate()
    inside = window.geometry()
    size = inside.size().boundedTo(room.size())
    if size != inside.size():
        window.resize(size)
    right, bottom = room.right() - size.width() + 1, room.bottom() - size.height() + 1
    x = max(min(inside.left(), right), room.left())
    y = max(min(inside.top(), bottom), room.top())
    if (x, y) != (inside.left(), inside.top()):
        frame = window.frameGeometry()
        window.move(x - inside.left() + frame.left(), y - inside.top() + frame.top())
