"""Reading mode, in which napari's panels are hidden and a line above the image replaces our panel.

napari's panels, menu and status bar take half of the width from the image. In reading mode they are
hidden, and afterwards they are restored unchanged. None of these changes is saved in napari's
settings.
"""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, QSize, Qt, Signal
from qtpy.QtGui import QShortcut
from qtpy.QtWidgets import QDockWidget, QMainWindow, QToolBar, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import (
    asks_before_close,
    has_own_window_size,
    list_ways_out,
    main_view,
)
from napari_mamamia.widgets.base.bottom import BottomDock
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.controls.controls import tool_button
from napari_mamamia.widgets.dock.case_line import CaseLine, fix_bar
from napari_mamamia.widgets.dock.docking import Docking, find_first_place
from napari_mamamia.widgets.dock.steps import WORK_LIST, Steps
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_STRIP: Final = 24


_NAPARIS: Final = ("layer list", "layer controls")
"""Names of napari's docks; docks of other plugins stay visible."""


class ReadingMode(WindowPart):
    """The reading mode, which hides napari's controls; `is_on` is whether the mode is active.

    `is_wanted` is whether the program starts in reading mode.

    The signal `entering` is emitted before controls are hidden, and `leaving` before they are
    restored and when the window closes. The window geometry before reading mode, and before the
    window grew for its content on a low screen, is restored before napari saves its settings.
    Otherwise napari would save a size that no user chose.
    """

    entering = Signal()
    entered = Signal()
    leaving = Signal()

    def __init__(self, context: WindowContext, line: CaseLine, panel: QWidget) -> None:
        super().__init__(context)
        self.is_on = False
        self.is_wanted = False
        self.line = line
        self._panel = panel
        line.setParent(panel)
        line.hide()
        self._hidden: list[QWidget] = []
        self._had_welcome = False
        self._place: QRect | None = None
        self._own_places: list[QRect] = []

    def toggle(self) -> None:
        """Enter or leave reading mode."""
        if self.is_on:
            self.leave()
        else:
            self.enter()

    def begin(self) -> None:
        """Enter reading mode in a new window, and size the window if the user has set no size."""
        window = self._find_window()
        self.is_wanted = False
        self.enter()
        self._place, self._own_places = None, []  # napari sized the window while it was hidden.
        if window is None or has_own_window_size() or window.isMaximized():
            return
        self._place, self._own_places = window.geometry(), [find_first_place(window)]
        window.setGeometry(self._own_places[0])

    def enter(self) -> None:
        """Hide napari's visible controls, and show the line above the image."""
        window = self._find_window()
        if window is None or self.is_on:
            return
        self.entering.emit()
        layout: Any = (
            window.layout()
        )  # This occurs after a close that was refused (see `_go_back`).
        layout.setSizeConstraint(layout.SizeConstraint.SetDefaultConstraint)
        docks = window.findChildren(QDockWidget)
        parts = [dock for dock in docks if dock.objectName() in _NAPARIS and not dock.isFloating()]
        bars = [window.menuBar(), window.statusBar()]
        self._hidden = [widget for widget in (*parts, *bars) if not widget.isHidden()]
        for widget in self._hidden:
            widget.hide()
        view: Any = main_view(self._scene.viewer)
        self._had_welcome = bool(getattr(view, "show_welcome_screen", False))
        if self._had_welcome:
            view.show_welcome_screen = False
        window.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.line)
        window.addActions(list_ways_out(window))
        self.line.settle()
        self.line.show()
        self.is_on = True
        window.installEventFilter(self)
        self.entered.emit()

    def leave(self) -> None:
        """Show the controls that were visible before."""
        if not self.is_on:
            return
        self.leaving.emit()
        window = self._find_window()
        self.line.give_back()
        if window is not None:
            window.removeToolBar(self.line)
            for action in list_ways_out(window):
                window.removeAction(action)
        self.line.setParent(self._panel)
        self.line.hide()
        hidden, self._hidden = self._hidden, []
        for widget in hidden:
            widget.show()
        view: Any = main_view(self._scene.viewer)
        if self._had_welcome and view is not None:
            view.show_welcome_screen = True
        self._had_welcome, self.is_on = False, False

    def eventFilter(self, watched: QObject, event: Any) -> bool:
        """Restore everything before napari saves the window's state."""
        window = self._find_window()
        if event.type() == QEvent.Type.Resize and watched is window is not None:
            self._note_growth(window, event.oldSize(), event.size())
        if event.type() == QEvent.Type.Close and watched is window:
            if asks_before_close(window, event):
                return True
            self.leave()
            self._go_back()
        return False

    def _note_growth(self, window: QMainWindow, before: QSize, now: QSize) -> None:
        if now == before or now != before.expandedTo(window.minimumSize()):
            return
        corner = window.geometry().topLeft()
        if before not in [geometry.size() for geometry in self._own_places]:
            self._place, self._own_places = QRect(corner, before), []
        self._own_places.append(QRect(corner, now))

    def _go_back(self) -> None:
        window = self._find_window()
        if window is not None and self._place and window.geometry() in self._own_places:
            # The content may now need more space than before, and napari would save that size.
            layout: Any = window.layout()
            layout.setSizeConstraint(layout.SizeConstraint.SetNoConstraint)
            window.setMinimumSize(0, 0)
            window.setGeometry(self._place)

    def _find_window(self) -> QMainWindow | None:
        view = main_view(self._scene.viewer)
        window: Any = None if view is None else view.window()
        return window if isinstance(window, QMainWindow) else None


class PanelFold(WindowPart):
    """The panel's collapse to a strip at the window's edge, or to image and line only.

    Shortcuts of a hidden widget do not work, so the panel's shortcuts are moved to the strip or the
    line.
    """

    def __init__(
        self, context: WindowContext, panel: QWidget, docking: Docking, reading: ReadingMode
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._docking = docking
        self._reading = reading
        self._bottom: BottomDock | None = None
        self.is_folded = False
        self.is_alone = False
        self._message = (Level.HINT, "")
        self._strip = QToolBar(panel)
        fix_bar(self._strip, "panel_strip")
        self._strip.setFixedWidth(_STRIP)
        tip = with_key(tr("Shows the panel again."), "panel")
        show = tool_button("panel_show", "◂", tip, self.unfold)
        show.setFixedSize(_STRIP, 3 * _STRIP)
        self._strip.addWidget(show)
        self._strip.hide()
        docking.shown.connect(self._follow_panel)
        reading.leaving.connect(self.unfold)
        reading.line.panel_wanted.connect(self.unfold)
        self._notifier.said.connect(self._keep_message)

    def follow_results(self, bottom: BottomDock) -> None:
        """Hide the results too while only the image is shown."""
        self._bottom = bottom

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the panel's shortcuts, by their names in the table."""
        return {"panel": self.toggle, "alone": self.toggle_alone}

    def toggle(self) -> None:
        """Collapse the panel to its strip, or show it."""
        if self.is_folded:
            self.unfold()
        else:
            self.fold()

    def toggle_alone(self) -> None:
        """Show only the image and its line, or show the panel again."""
        if self.is_alone:
            self.unfold()
            return
        self._reading.enter()
        self.is_alone = True
        if self._bottom is not None:
            self._bottom.fold()
        self.fold()
        self._strip.hide()

    def fold(self) -> None:
        """Hide the panel; an active tool stays active and is shown in the line."""
        window: Any = self._panel.window()
        home: Any = self._docking.home
        is_there = home is not None and isinstance(window, QMainWindow)
        if not is_there or home.isFloating() or window.centralWidget().isHidden():
            self.is_alone = False
            return
        if not self.is_folded:
            window.addToolBar(Qt.ToolBarArea.RightToolBarArea, self._strip)
            self._move_shortcuts(self._panel, window)
            self._docking.is_folding = self._reading.is_on
            self.is_folded = True
            home.hide()
            self._docking.is_folding = False
        self._strip.setVisible(not self.is_alone)
        self._reading.line.show_notice(*self._message)

    def unfold(self) -> None:
        """Show the panel again."""
        if self.is_folded and self._docking.home is not None:
            self._docking.home.show()  # Other changes follow, as after napari's Window menu.

    def _follow_panel(self) -> None:
        if not self.is_folded:
            return
        self.is_folded = self.is_alone = False
        window = self._panel.window()
        self._move_shortcuts(window, self._panel)
        if isinstance(window, QMainWindow):
            window.removeToolBar(self._strip)
        self._strip.setParent(self._panel)
        self._strip.hide()
        self._reading.line.show_notice(Level.HINT, "")

    def _move_shortcuts(self, before: QWidget, after: QWidget) -> None:
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        for shortcut in before.findChildren(QShortcut, "mamamia_key", direct):
            shortcut.setParent(after)

    def _keep_message(self, level: Level, text: str) -> None:
        self._message = (level, text)
        if self.is_folded:
            self._reading.line.show_notice(level, text)


class WorkListRoom(WindowPart):
    """The use of the image area for the work list while no case is open in reading mode.

    The image returns as soon as a case is being opened, so that the canvas is visible and has its
    final size before layers are added. The signal `taken`, which is emitted before the change,
    carries whether the list gets the image area.
    """

    taken = Signal(bool)

    def __init__(
        self, context: WindowContext, docking: Docking, reading: ReadingMode, pages: Steps
    ) -> None:
        super().__init__(context)
        self._docking = docking
        self._reading = reading
        self._pages = pages
        self._picture: QWidget | None = None
        coming = self._session.coming_changed
        for change in (pages.turned, reading.entered, docking.shown, coming):
            change.connect(self._follow_step)
        for change in (reading.leaving, docking.hidden):
            change.connect(self._give_back)

    def _follow_step(self, *_events: object) -> None:
        home: Any = self._docking.home
        # The messages of an import and its first case are shown side by side.
        is_news = self._pages.is_importing and self._session.case is not None
        is_list = self._pages.step == WORK_LIST.name and not is_news
        is_list = is_list and not self._session.is_coming
        is_docked = home is not None and home.isVisible() and not home.isFloating()
        if not (is_list and is_docked and self._reading.is_on):
            self._give_back()
            return
        window = home.window()
        if self._picture is None and isinstance(window, QMainWindow):
            self._picture = window.centralWidget()
            self.taken.emit(True)
            self._picture.hide()

    def _give_back(self) -> None:
        picture, self._picture = self._picture, None
        if picture is not None:
            self.taken.emit(False)
            picture.show()
            self._docking.take_width()
