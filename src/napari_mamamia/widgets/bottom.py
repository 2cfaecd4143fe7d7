"""The one dock at the bottom of the window: made when there is something to show, folds away."""

from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_mamamia.widgets.napari_adapter import add_dock, build_dock
from napari_mamamia.widgets.turns import Turns

__all__ = ["BOTTOM_NAME", "BottomDock"]

BOTTOM_NAME: Final = "MAMA-MIA results"
_AREA: Final = "bottom"


class BottomDock:
    """Holds a panel in a dock of the viewer's window; a viewer without a window shows nothing."""

    def __init__(self, viewer: Any, panel: QWidget) -> None:
        self._viewer = viewer
        self._panel = panel
        self._built: Any | None = None
        self._steps = Turns(panel)

    def show(self) -> None:
        """Show the panel, in a new dock where there is none or napari closed it.

        A new one takes three turns of the event loop.
        """
        if getattr(self._viewer, "window", None) is None:
            return
        if self._dock() is None:
            self._steps.start([self._build, self._add, self._appear])
        else:
            self._appear()

    def fold(self) -> None:
        """Hide the dock; `show` brings it back as it was."""
        self._steps.start([])
        dock = self._dock()
        if dock is not None:
            dock.hide()

    def _build(self) -> None:
        if self._built is None:
            self._built = build_dock(self._viewer.window, self._panel, BOTTOM_NAME, _AREA)

    def _add(self) -> None:
        built, self._built = self._built, None
        if built is None:
            window = self._viewer.window
            built = window.add_dock_widget(self._panel, name=BOTTOM_NAME, area=_AREA)
        else:
            add_dock(self._viewer.window, built)
        _leave_the_right(built)

    def _appear(self) -> None:
        dock = self._dock()
        if dock is not None:
            self._panel.show()
            dock.show()

    def _dock(self) -> QDockWidget | None:
        """Return the dock in the window, None where there is none."""
        parent = self._panel.parent()
        return parent if isinstance(parent, QDockWidget) and parent is not self._built else None


def _leave_the_right(dock: QDockWidget) -> None:
    """Let the right dock keep its whole height: its pages are long."""
    window = dock.parent()
    if isinstance(window, QMainWindow):
        corner, area = Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea
        window.setCorner(corner, area)
