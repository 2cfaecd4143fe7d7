"""The panel in the viewer's window: docked, moved by napari, put aside, within the screen."""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, Qt, QTimer, Signal
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_OF_WINDOW: Final = (QEvent.Type.WindowActivate, QEvent.Type.Close)
_PUT_AWAY: Final = (
    "napari's {} have no room on this screen and are put away: menu Window brings them back"
)
_NOT_SAVED: Final = (
    "Your mask is not saved, so that the window stays open: mend what is said above and save, or "
    "close the window again to lose the last changes"
)


class Docking(WindowPart):
    """Follows the panel and its window.

    `shown` says that the panel came into sight, `hidden` that its controls went out of it,
    `closed` that its cross was clicked, `window_came` that the user came back to the window.

    Parameters
    ----------
    width
        What the pages need, in pixels.
    close_down
        Saves and stops all work before the window closes; False where something is not saved.

    Attributes
    ----------
    home
        The one dock that the panel lives in, None before it was docked.
    docks
        The docks it was put into since it was last at home; `place` empties this.
    """

    shown = Signal()
    hidden = Signal()
    closed = Signal()
    window_came = Signal()

    def __init__(
        self,
        context: WindowContext,
        panel: QWidget,
        width: Callable[[], int],
        close_down: Callable[[], bool],
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._width = width
        self._close_down = close_down
        self.home: QDockWidget | None = None
        self.docks: list[QDockWidget] = []
        self.was_warned = False
        self._is_fitted = False
        # Between two docks the panel has no parent for a moment: only a turn later is it told from
        # removed.
        self._orphaned = QTimer(self)
        self._orphaned.setSingleShot(True)
        self._orphaned.timeout.connect(self._outlive_dock)
        panel.installEventFilter(self)

    def put_aside(self) -> None:
        """Hide with the dock, its cross was clicked: all that is open is open when it is back."""
        self.closed.emit()
        if self.home is not None:
            self.home.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the panel; keep the window open once where its mask cannot be saved."""
        if watched is self._panel:
            self._follow_panel(event)
        elif event.type() in _OF_WINDOW and watched is self._main_window:
            return self._follow_window(event)
        return False

    def _follow_panel(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.ParentChange:
            self._note_dock()
        elif event.type() == QEvent.Type.Show:
            self._main_window.installEventFilter(self)
            self.shown.emit()
            QTimer.singleShot(0, self._fit_into_screen)
        elif event.type() == QEvent.Type.Hide and not event.spontaneous():
            self.hidden.emit()  # a minimised window keeps its tool in hand

    def _note_dock(self) -> None:
        """Remember the docks that napari puts the panel into, and see when its own is removed."""
        dock = self._panel.parent()
        if isinstance(dock, QDockWidget):
            self.docks.append(dock)
        elif dock is None and self.home is not None:
            self._orphaned.start()

    def _outlive_dock(self) -> None:
        """Stay in the window after something removed the dock."""
        if self._panel.parent() is not None:
            return
        self.home, self.docks = None, []
        self.put_aside()
        window = self._main_window
        if window is not self._panel:
            # `dock_of` looks among the window's children: without a parent a second panel would be
            # made.
            self._panel.setParent(window)
            self._panel.hide()

    @property
    def _main_window(self) -> QWidget:
        """The viewer's window, also while the panel floats beside it or its dock is closed."""
        view = main_view(self._scene.viewer)
        return self._panel.window() if view is None else view.window()

    def _fit_into_screen(self) -> None:
        """Bring the window into its screen, once: napari shows it after it made the docks."""
        window = self._panel.window()
        if self._is_fitted or self.home is None or not isinstance(window, QMainWindow):
            return
        self._is_fitted = True
        away = fit_window(window, self.home, self._width())
        if away:
            self._notifier.hint(_PUT_AWAY.format(" and ".join(away)))

    def _follow_window(self, event: Any) -> bool:
        """Save before the window closes; where that fails, keep it open once.

        `viewer.close()` takes the layers away first, and then there is no window to keep.
        """
        if event.type() == QEvent.Type.WindowActivate:
            self.window_came.emit()
        if event.type() != QEvent.Type.Close or self._close_down() or self.was_warned:
            return False
        if self._scene.layer(Role.PHASE) is None:
            return False
        self.was_warned = True
        self._notifier.warn_loudly(_NOT_SAVED)
        event.ignore()
        return True


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
        # Until then the window keeps the least size that it had with the docks that were put away.
        layout.activate()
    inside = window.geometry()
    size = inside.size().boundedTo(room.size())
    if size != inside.size():
        window.resize(size)
    # Right and bottom of a QRect are its last pixels, hence the 1.
    right, bottom = room.right() - size.width() + 1, room.bottom() - size.height() + 1
    x = max(min(inside.left(), right), room.left())
    y = max(min(inside.top(), bottom), room.top())
    if (x, y) != (inside.left(), inside.top()):
        # `move` places the frame, whereas `geometry` is the inside.
        frame = window.frameGeometry()
        window.move(x - inside.left() + frame.left(), y - inside.top() + frame.top())
