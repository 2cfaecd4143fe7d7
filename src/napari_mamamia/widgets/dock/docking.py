"""The panel in the viewer's window: docking, moving, closing, and fitting it to the screen."""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, Qt, QTimer, Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import asks_before_close, main_view, watch_font
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_OF_WINDOW: Final = (QEvent.Type.WindowActivate, QEvent.Type.Close, QEvent.Type.Resize)
_PUT_AWAY: Final = tr(
    "napari's {} do not fit on this screen and are hidden: the Window menu shows them again"
)
_LENT: Final = tr("napari's {} are hidden until the results panel is folded")
_LETTERS: Final = 46
_MOST_SHARE: Final = 0.4
_MOST_NEEDED: Final = 0.55
"""Largest fraction of the window's width for a page that needs more than the usual width.

The other limits are the usual width in average letters, and its largest fraction of the window's
width. A page needs more width, for example, if the window has 1280 pixels and text is enlarged to
200 %.
"""
_SMALLEST: Final = (1024, 600)
_TOO_SMALL: Final = tr(
    "This window needs a screen of {} x {} pixels, but this one has {} x {}: fold the panel with "
    "F9, or choose a smaller font in napari's preferences."
)
_SHRUNK: Final = tr(
    "This window needs {} x {} pixels, but has {} x {}: enlarge the window, or fold the panel "
    "with F9."
)
_OF_SCREEN: Final = 0.85
"""Fraction of a small screen at or above which a window counts as maximised.

Our choice: the first window takes 0.9 of the screen's height.
"""
_SIZE_SETTLES_MS: Final = 300
_LAID_OUT_MS: Final = 200
"""Time in ms until pages are laid out with a new font (our choice)."""
_BARS: Final = 60
"""Height in pixels of the window's menu and status bar (our choice)."""
_NOT_SAVED: Final = tr(
    "Your mask is not saved, so the window stays open: fix the problem shown above and save, or "
    "close the window again to discard the last changes"
)


class Docking(WindowPart):
    """The docking of the panel in its window.

    The signal `shown` reports that the panel became visible, `hidden` that its controls were
    hidden, `closed` that the panel was closed, `window_came` that the user returned to the window,
    and `window_resized` that the window has a new size. `fitting` is emitted once,
    before the window is moved into its screen.

    Parameters
    ----------
    width
        The width that the pages need, in pixels.
    measured
        A label in the panel, which has the font of the style rules, unlike the panel.
    close_down
        Function that saves and stops all jobs before the window closes, and returns False if
        something is not saved.

    Attributes
    ----------
    home
        The dock of the panel, or None before it is docked.
    docks
        The docks into which the panel was put since it was last in its own dock. `place` empties
        this list.
    is_folding
        Whether the panel is hidden while its tool stays active.
    is_filling
        Whether pages are being added to the panel, whose width is set by `end_filling`.
    """

    shown = Signal()
    hidden = Signal()
    closed = Signal()
    window_came = Signal()
    window_resized = Signal()
    fitting = Signal()

    def __init__(
        self,
        context: WindowContext,
        panel: QWidget,
        width: Callable[[], int],
        measured: QWidget,
        close_down: Callable[[], bool],
    ) -> None:
        super().__init__(context)
        self._panel = panel
        self._width = width
        self._measured = measured
        self._close_down = close_down
        self.home: QDockWidget | None = None
        self.docks: list[QDockWidget] = []
        self.was_warned = False
        self.is_folding = False
        self.is_filling = False
        self._is_fitted = False
        self._made_room: list[QDockWidget] = []
        self._size_told = self._last_said = ""
        self._size_settled = QTimer(self)
        self._size_settled.setSingleShot(True)
        self._size_settled.timeout.connect(self._report_size)
        self._size_settled.timeout.connect(self.window_resized)
        self._notifier.said.connect(self._note_said)
        # Between two docks the panel briefly has no parent, which only later can be distinguished
        # from removal.
        self._orphaned = QTimer(self)
        self._orphaned.setSingleShot(True)
        self._orphaned.timeout.connect(self._outlive_dock)
        panel.installEventFilter(self)
        watch_font(self._follow_font)

    def put_aside(self) -> None:
        """Hide the panel together with its closed dock; open data are kept for later."""
        self.closed.emit()
        if self.home is not None:
            self.home.hide()

    def make_room(self, share: float) -> None:
        """Hide napari's left docks if the results below them need a `share` of the height."""
        window = self._main_window
        if not isinstance(window, QMainWindow):
            return
        docks = _docks_on_the_left(window)
        beside = sum(dock.minimumSizeHint().height() for dock in docks) + _BARS
        if docks and beside + round(share * window.height()) > window.height():
            for dock in docks:
                dock.hide()
            self._made_room += docks
            self._notifier.hint(_LENT.format(" and ".join(map(_title_of, docks))))

    def give_room_back(self) -> None:
        """Show the docks that `make_room` has hidden."""
        for dock in self._made_room:
            dock.show()
        self._made_room = []

    def fit_later(self) -> None:
        """Keep the window within its screen when napari's panels are about to be shown again."""
        before = self._main_window.geometry()
        call_later(self._panel, lambda: self._fit_again(before))

    def _fit_again(self, before: QRect) -> None:
        window = self._main_window
        if self.home is None or not isinstance(window, QMainWindow) or window.isHidden():
            return
        away = fit_window(window, self._width())
        if away:
            window.setGeometry(before)  # This is its previous space, without hidden docks.
            self.take_width()
            self._notifier.hint(_PUT_AWAY.format(" and ".join(away)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow events of the panel; keep the window open once if its mask cannot be saved."""
        if watched is self._panel:
            self._follow_panel(event)
        elif event.type() in _OF_WINDOW and watched is self._main_window:
            return self._follow_window(event)
        return False

    def take_width(self) -> None:
        """Set the dock's width according to its letters, or to the width that its pages need."""
        window = self._panel.window()
        if self.home is None or not isinstance(window, QMainWindow):
            return
        letters = _LETTERS * self._measured.fontMetrics().averageCharWidth()
        width = max(self._width(), min(letters, round(_MOST_SHARE * window.width())))
        width = min(width, round(_MOST_NEEDED * window.width()))
        layout = window.layout()
        if layout is not None:
            layout.activate()  # An image that was just shown has no size yet.
        window.resizeDocks([self.home], [width], Qt.Orientation.Horizontal)

    def widen(self, width: int) -> None:
        """Widen the dock if a new page needs more space."""
        if width > self._panel.contentsRect().width() and not self.is_filling:
            self.take_width()

    def _follow_font(self, _event: object = None) -> None:
        call_later(self._panel, lambda: self.widen(self._width()), after_ms=_LAID_OUT_MS)

    def _follow_panel(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.ParentChange:
            self._note_dock()
        elif event.type() == QEvent.Type.Show:
            self._main_window.installEventFilter(self)
            self.shown.emit()
            call_later(self._panel, self._fit_later_)
        elif event.type() == QEvent.Type.Hide and not event.spontaneous() and not self.is_folding:
            self.hidden.emit()  # A minimised window keeps its tool active.

    def _note_dock(self) -> None:
        dock = self._panel.parent()
        if isinstance(dock, QDockWidget):
            self.docks.append(dock)
        elif dock is None and self.home is not None:
            self._orphaned.start()

    def _outlive_dock(self) -> None:
        if self._panel.parent() is not None:
            return
        self.home, self.docks = None, []
        self.put_aside()
        window = self._main_window
        if window is not self._panel:
            # `dock_of` searches the window's children, so without a parent a second panel would
            # be created.
            self._panel.setParent(window)
            self._panel.hide()

    @property
    def _main_window(self) -> QWidget:
        view = main_view(self._scene.viewer)
        return self._panel.window() if view is None else view.window()

    def _fit_later_(self) -> None:
        if not self._is_fitted and self.home is not None and not self.is_filling:
            self._width()
            call_later(self._panel, self._fit_into_screen)

    def end_filling(self) -> None:
        """Measure the complete panel and move the window into its screen."""
        self.is_filling = False
        self._fit_later_()

    def _fit_into_screen(self) -> None:
        window = self._panel.window()
        if self._is_fitted or self.home is None or not isinstance(window, QMainWindow):
            return
        self._is_fitted = True
        self.fitting.emit()
        away = fit_window(window, self._width())
        self.take_width()
        room, ratio = find_screen_room(window), window.devicePixelRatioF()
        wide, high = round(ratio * room.width()), round(ratio * room.height())
        if wide < _SMALLEST[0] or high < _SMALLEST[1]:
            self._warn_twice(_TOO_SMALL.format(*_SMALLEST, wide, high))
        if away:
            self._notifier.hint(_PUT_AWAY.format(" and ".join(away)))

    def _report_size(self) -> None:
        window = self._main_window
        if not self._is_fitted or not isinstance(window, QMainWindow) or window.isHidden():
            return
        before, self._size_told = self._size_told, say_too_small(window)
        if self._size_told and self._size_told != before:
            self._notifier.warn(self._size_told)
        elif before and not self._size_told and self._last_said == before:
            self._notifier.hint("")

    def _note_said(self, _level: object, text: str) -> None:
        self._last_said = text

    def _warn_twice(self, text: str) -> None:
        clearing = {"list", "open"}

        def warn_again(ticket: RunningJob, _outcome: object) -> None:
            if ticket.lane in clearing:
                clearing.remove(ticket.lane)
                call_later(self._panel, lambda: self._notifier.warn(text))

        self._notifier.warn(text)
        self._jobs.ended.connect(warn_again)

    def _follow_window(self, event: Any) -> bool:
        """Save before the window closes; if saving fails, keep the window open once.

        The window cannot be kept open for `viewer.close()`, which removes the layers first.
        """
        if event.type() == QEvent.Type.WindowActivate:
            self.window_came.emit()
        if event.type() == QEvent.Type.Resize:
            self._size_settled.start(_SIZE_SETTLES_MS)
        if event.type() == QEvent.Type.Close:
            if asks_before_close(self._main_window, event):
                return True
            self.give_room_back()  # This precedes napari's saving of the window geometry.
        if event.type() != QEvent.Type.Close or self._close_down() or self.was_warned:
            return False
        if self._scene.layer(Role.PHASE) is None:
            return False
        self.was_warned = True
        self._notifier.warn_loudly(_NOT_SAVED)
        event.ignore()
        return True


_LEAST_IMAGE: Final = 400
"""Minimum width of the image in pixels (our choice)."""


_SHARE: Final = (0.92, 0.90)
_MOST: Final = (1600, 1000)
"""Maximum size of the first window in pixels (our choice)."""


def find_screen_room(window: QWidget) -> QRect:
    """Return the available area of the screen that contains the window's centre.

    `QWidget.screen` still returns the first screen if napari has just moved its window.
    """
    screen = QGuiApplication.screenAt(window.frameGeometry().center()) or window.screen()
    return screen.availableGeometry()


def find_first_place(window: QMainWindow) -> QRect:
    """Return the centred geometry of a first window, which covers most of its screen."""
    room = find_screen_room(window)
    frame, inside = window.frameGeometry(), window.geometry()
    edges = (frame.width() - inside.width(), frame.height() - inside.height())
    sizes = (room.width(), room.height())
    width, height = (
        min(most, round(share * size) - edge)
        for most, share, size, edge in zip(_MOST, _SHARE, sizes, edges, strict=True)
    )
    left = room.left() + (room.width() - width) // 2
    return QRect(left, room.top() + (room.height() - height) // 2, width, height)


def say_too_small(window: QMainWindow) -> str:
    """Return the size that a window needs if it is below 1024 x 600 pixels, or "" otherwise.

    On a screen that is hardly larger, the available area is most of the screen; a screen that is
    too small is reported at the start. A minimised window keeps its size.
    """
    ratio, room = window.devicePixelRatioF(), find_screen_room(window)
    sizes = [round(ratio * length) for length in (window.width(), window.height())]
    most = [_OF_SCREEN * ratio * length for length in (room.width(), room.height())]
    if all(size >= min(both) for size, *both in zip(sizes, _SMALLEST, most, strict=True)):
        return ""
    return _SHRUNK.format(*_SMALLEST, *sizes)


def fit_window(window: QMainWindow, width: int) -> list[str]:
    """Move a window into its screen.

    If the panel's dock of `width` and napari's docks on the left leave too little space for the
    image, napari's docks are hidden. The user can show them again from napari's Window menu.

    Returns
    -------
    list
        The titles of the hidden docks.
    """
    room = _room_of(window)
    docks = _docks_on_the_left(window)
    beside = max((dock.minimumSizeHint().width() for dock in docks), default=0)
    too_wide = beside + width + _LEAST_IMAGE > room.width()
    too_high = window.minimumSizeHint().height() > room.height()
    away = docks if too_wide or too_high else []
    for dock in away:
        dock.hide()
    if not window.isMaximized() and not window.isFullScreen():
        _bring_into(window, room)
    return [_title_of(dock) for dock in away]


def _title_of(dock: QDockWidget) -> str:
    return str(dock.windowTitle() or dock.objectName())


def _room_of(window: QMainWindow) -> QRect:
    whole, inside = window.frameGeometry(), window.geometry()
    return find_screen_room(window).adjusted(
        inside.left() - whole.left(),
        inside.top() - whole.top(),
        inside.right() - whole.right(),
        inside.bottom() - whole.bottom(),
    )


def _docks_on_the_left(window: QMainWindow) -> list[QDockWidget]:
    docks = (dock for dock in window.findChildren(QDockWidget) if dock.isVisible())
    side = Qt.DockWidgetArea.LeftDockWidgetArea
    return [d for d in docks if window.dockWidgetArea(d) == side and not d.isFloating()]


def _bring_into(window: QMainWindow, room: QRect) -> None:
    layout = window.layout()
    if layout is not None:
        # Until then, the window keeps the minimum size that it had with the hidden docks.
        layout.activate()
    inside = window.geometry()
    size = inside.size().boundedTo(room.size())
    if size != inside.size():
        window.resize(size)
    # Right and bottom of a QRect are its last pixels, so 1 is added.
    right, bottom = room.right() - size.width() + 1, room.bottom() - size.height() + 1
    x = max(min(inside.left(), right), room.left())
    y = max(min(inside.top(), bottom), room.top())
    if (x, y) != (inside.left(), inside.top()):
        # `move` positions the frame, whereas `geometry` is the inner area.
        frame = window.frameGeometry()
        window.move(x - inside.left() + frame.left(), y - inside.top() + frame.top())
