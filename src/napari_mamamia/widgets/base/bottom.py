"""The only dock at the bottom of the window, which is created on demand and can be hidden."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QVBoxLayout, QWidget

from napari_mamamia.widgets.adapter.adapter import add_unnoted_dock
from napari_mamamia.widgets.base.event_loop import EventLoopSteps

BOTTOM_NAME: Final = "MAMA-MIA results"
_HALF: Final = 0.5
_LEAST_OF_LIST: Final = 0.45
_MOST_OF_LIST: Final = 0.6
"""Fractions of the window's width for the results next to the work list (our choice)."""


class BottomDock:
    """A dock with a panel in the viewer's window; without a window, its methods do nothing.

    The dock first gets an empty container, then the panel in the next event-loop iteration, and
    then the panel's content step by step, because Qt takes 90 ms to style the content for its new
    window, and napari takes 50 ms for a dock.

    Parameters
    ----------
    viewer
        The viewer whose window gets the dock.
    panel
        The widget in the dock.
    fill_steps
        Function that returns steps to create the panel's content. Later calls of these steps do
        nothing.
    """

    def __init__(
        self, viewer: Any, panel: QWidget, fill_steps: Callable[[], Sequence[Callable[[], object]]]
    ) -> None:
        self._viewer = viewer
        self._panel = panel
        self._fill_steps = fill_steps
        self._holder: QWidget | None = None
        self._turns = EventLoopSteps(panel)
        self._is_list = False
        self._own_height = 0
        self.list_width: Callable[[], int] = lambda: 0
        """Returns the width in pixels that the pages next to the results need."""

    def prepare(self) -> None:
        """Create the hidden dock before it is needed."""
        if self._find_dock() is None and self._find_window() is not None:
            self._turns.start([self._make_dock, self._fill_dock, *self._fill_steps()])

    def show(self) -> None:
        """Show the panel; create the dock again if napari closed it."""
        # Steps that `prepare` left to later iterations are done immediately below.
        self._turns.start([])
        if self._find_window() is None:
            return
        if self._find_dock() is None:
            self._make_dock()
        self._fill_dock()
        for step in self._fill_steps():
            step()
        self._show_dock()

    def show_step_by_step(self, least_share: float) -> None:
        """Show the panel step by step, with at least this fraction of the window's height."""
        if self._find_window() is not None:
            steps = (self._make_dock, self._fill_dock, *self._fill_steps(), self._show_dock)
            self._turns.start([*steps, lambda: self._give_height(least_share)])

    def take_at_most(self, share: float) -> None:
        """Limit the dock to a fraction of the window's height, in the next event-loop iteration."""
        self._turns.start([lambda: self._lower_dock(share)])

    @property
    def is_shown(self) -> bool:
        """Whether the dock is visible."""
        dock = self._find_dock()
        return dock is not None and dock.isVisible()

    @property
    def share_left(self) -> float:
        """The fraction of the window's width that is left for the results next to the work list."""
        dock = self._find_dock()
        if dock is None:
            return 1 - _LEAST_OF_LIST
        return 1 - self._find_width(dock) / max(int(dock.window().width()), 1)

    def follow_width(self) -> None:
        """Give the results next to the work list their part of the window's current width."""
        dock = self._find_dock()
        if dock is not None and dock.isVisible() and self._is_list:
            dock.setMinimumWidth(self._find_width(dock))

    def _find_width(self, dock: QDockWidget) -> int:
        """Return what the work list leaves of the window's width, within two limits."""
        window = int(dock.window().width())
        most = min(round(_MOST_OF_LIST * window), window - self.list_width())
        return max(round(_LEAST_OF_LIST * window), most)

    def follow_list(self, is_list: bool) -> None:
        """Hide the dock while the work list fills the image area, and show it again afterwards.

        Otherwise the dock would take nearly half of the width and all of the height, and later half
        of the height.
        """
        self._is_list = is_list
        dock = self._find_dock()
        is_seen = dock is not None and dock.isVisible()
        if dock is None:
            return
        if is_list:
            self._own_height = dock.height() if is_seen else 0
            dock.hide()
        elif is_seen or self._own_height:
            before = self._own_height
            dock.setMinimumWidth(0)
            dock.show()
            self._resize_dock(lambda now, whole: before or min(now, round(_HALF * whole)))

    def fold(self) -> None:
        """Hide the dock; `show` displays it again unchanged."""
        self._own_height = 0
        dock = self._find_dock()
        if dock is not None:
            dock.hide()

    def _show_dock(self) -> None:
        self._panel.show()
        dock = self._find_dock()
        if dock is not None:
            dock.show()
            if self._is_list:  # Otherwise Qt gives the dock hardly any width, and ignores requests.
                dock.setMinimumWidth(self._find_width(dock))

    def _find_window(self) -> Any | None:
        return getattr(self._viewer, "window", None)

    def _make_dock(self) -> None:
        window = self._find_window()
        if window is None or self._find_dock() is not None:
            return
        if self._holder is None:
            self._holder = QWidget()
            QVBoxLayout(self._holder).setContentsMargins(0, 0, 0, 0)
        dock = add_unnoted_dock(window, self._holder, BOTTOM_NAME, "bottom")
        dock.hide()
        _leave_the_right(dock)

    def _fill_dock(self) -> None:
        layout = None if self._holder is None else self._holder.layout()
        if layout is not None and self._panel.parent() is not self._holder:
            layout.addWidget(self._panel)

    def _give_height(self, least_share: float) -> None:
        self._resize_dock(lambda now, whole: max(now, round(least_share * whole)))

    def _lower_dock(self, share: float) -> None:
        self._resize_dock(lambda now, whole: min(now, round(share * whole)))

    def _resize_dock(self, find_height: Callable[[int, int], int]) -> None:
        window, dock = self._panel.window(), self._find_dock()
        if dock is not None and isinstance(window, QMainWindow):
            height = find_height(dock.height(), window.height())
            if height != dock.height():
                window.resizeDocks([dock], [height], Qt.Orientation.Vertical)

    def _find_dock(self) -> QDockWidget | None:
        # napari removes the widget from a dock that it closes, so the parent shows whether there
        # is a dock.
        parent = None if self._holder is None else self._holder.parent()
        return parent if isinstance(parent, QDockWidget) else None


def _leave_the_right(dock: QDockWidget) -> None:
    window = dock.parent()
    if isinstance(window, QMainWindow):
        corner, area = Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea
        window.setCorner(corner, area)
