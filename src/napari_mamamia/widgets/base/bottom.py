"""The one dock at the bottom of the window: made when something is to be shown, folds away."""

from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QVBoxLayout, QWidget

from napari_mamamia.widgets.base.turns import Turns

BOTTOM_NAME: Final = "MAMA-MIA results"


class BottomDock:
    """Holds a panel in a dock of the viewer's window; a viewer without a window shows nothing.

    The dock gets an empty holder at first and the panel a turn later: Qt takes 50 ms to style all
    that is in the panel for its new window, and napari 50 ms for a dock.
    """

    def __init__(self, viewer: Any, panel: QWidget) -> None:
        self._viewer = viewer
        self._panel = panel
        self._holder: QWidget | None = None
        self._turns = Turns(panel)

    def prepare(self) -> None:
        """Make the dock, hidden, while nothing is to be shown yet."""
        if self._dock() is None and self._window() is not None:
            self._turns.start([self._make, self._fill])

    def show(self) -> None:
        """Show the panel, in a new dock where there is none or napari closed it."""
        self._turns.start([])
        if self._window() is None:
            return
        if self._dock() is None:
            self._make()
        self._fill()
        self._panel.show()
        dock = self._dock()
        if dock is not None:
            dock.show()

    def fold(self) -> None:
        """Hide the dock; `show` brings it back as it was."""
        dock = self._dock()
        if dock is not None:
            dock.hide()

    def _window(self) -> Any | None:
        return getattr(self._viewer, "window", None)

    def _make(self) -> None:
        window = self._window()
        if window is None or self._dock() is not None:
            return
        if self._holder is None:
            self._holder = QWidget()
            QVBoxLayout(self._holder).setContentsMargins(0, 0, 0, 0)
        dock = window.add_dock_widget(self._holder, name=BOTTOM_NAME, area="bottom")
        dock.hide()
        _leave_the_right(dock)

    def _fill(self) -> None:
        layout = None if self._holder is None else self._holder.layout()
        if layout is not None and self._panel.parent() is not self._holder:
            layout.addWidget(self._panel)

    def _dock(self) -> QDockWidget | None:
        parent = None if self._holder is None else self._holder.parent()
        return parent if isinstance(parent, QDockWidget) else None


def _leave_the_right(dock: QDockWidget) -> None:
    """Let the right dock keep its whole height: its pages are long."""
    window = dock.parent()
    if isinstance(window, QMainWindow):
        corner, area = Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea
        window.setCorner(corner, area)
