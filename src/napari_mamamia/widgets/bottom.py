"""The one dock at the bottom of the window: made when there is something to show, folds away."""

from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

__all__ = ["BOTTOM_NAME", "BottomDock"]

BOTTOM_NAME: Final = "MAMA-MIA results"


class BottomDock:
    """Holds a panel in a dock of the viewer's window; a viewer without a window shows nothing."""

    def __init__(self, viewer: Any, panel: QWidget) -> None:
        self._viewer = viewer
        self._panel = panel

    def show(self) -> None:
        """Show the panel, in a new dock where there is none or napari closed it."""
        window = getattr(self._viewer, "window", None)
        if window is None:
            return
        dock = self._dock()
        if dock is None:
            dock = window.add_dock_widget(self._panel, name=BOTTOM_NAME, area="bottom")
            _leave_the_right(dock)
        self._panel.show()
        dock.show()

    def fold(self) -> None:
        """Hide the dock; `show` brings it back as it was."""
        dock = self._dock()
        if dock is not None:
            dock.hide()

    def _dock(self) -> QDockWidget | None:
        parent = self._panel.parent()
        return parent if isinstance(parent, QDockWidget) else None


def _leave_the_right(dock: QDockWidget) -> None:
    """Let the right dock keep its whole height: its pages are long."""
    window = dock.parent()
    if isinstance(window, QMainWindow):
        corner, area = Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea
        window.setCorner(corner, area)
