"""The panel in the viewer's window: docked, moved by napari, put aside, within the screen."""

from collections.abc import Callable
from typing import Any, Final

from qtpy.QtCore import QEvent, QObject, QRect, Qt, QTimer, Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import main_view, watch_font
from napari_mamamia.widgets.base.jobs import RunningJob
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_OF_WINDOW: Final = (QEvent.Type.WindowActivate, QEvent.Type.Close, QEvent.Type.Resize)
_PUT_AWAY: Final = tr(
    "napari's {} have no room on this screen and are put away: menu Window brings them back"
)
_LENT: Final = tr("napari's {} are put away until the results are folded away")
_LETTERS: Final = 46
_MOST_SHARE: Final = 0.4
_MOST_NEEDED: Final = 0.55
"""The panel's width: so many average letters, and for these no more of the window than the first
share; a page that needs more gets it, up to the second: at 1280 pixels and text of 200 %."""
_SMALLEST: Final = (1024, 600)
_TOO_SMALL: Final = tr(
    "This window needs a screen of {} x {} pixels, and this one has {} x {}: fold the panel away "
    "with F9, or choose smaller text in napari's preferences."
)
_SHRUNK: Final = tr(
    "This window needs {} x {} pixels, and now it has {} x {}: make it larger, or fold the panel "
    "away with F9."
)
_OF_SCREEN: Final = 0.85
"""A window that has this share of a small screen is as large as it can be. Ours: the first one
takes 0.9 of the screen's height."""
_SIZE_SETTLES_MS: Final = 300
_LAID_OUT_MS: Final = 200
"""Until pages are laid out anew in another font, by looking."""
_BARS: Final = 60
"""Pixels of the window's menu and status bar, by looking."""
_NOT_SAVED: Final = tr(
    "Your mask is not saved, so that the window stays open: mend what is said "
    "above and save, or close the window again to lose the last changes"
)


class Docking(WindowPart):
    """Follows the panel and its window.

    `shown` says that the panel came into sight, `hidden` that its controls went out of it,
    `closed` that its cross was clicked, `window_came` that the user came back to the window,
    `fitting`, once, that the window is about to be brought into its screen.

    Parameters
    ----------
    width
        What the pages need, in pixels.
    measured
        A text of the panel: it has the font that the style rules give, which the panel has not.
    close_down
        Saves and stops all work before the window closes; False where something is not saved.

    Attributes
    ----------
    home
        The one dock that the panel lives in, None before it was docked.
    docks
        The docks it was put into since it was last at home; `place` empties this.
    is_folding
        While this is set the panel goes out of sight and its tool stays in hand.
    is_filling
        While this is set pages come into the panel, and its width waits for `end_filling`.
    """

    shown = Signal()
    hidden = Signal()
    closed = Signal()
    window_came = Signal()
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
        self._size_settled.timeout.connect(self._tell_size)
        self._notifier.said.connect(self._note_said)
        # Between two docks the panel has no parent for a moment: only a turn later is it told from
        # removed.
        self._orphaned = QTimer(self)
        self._orphaned.setSingleShot(True)
        self._orphaned.timeout.connect(self._outlive_dock)
        panel.installEventFilter(self)
        watch_font(self._follow_font)

    def put_aside(self) -> None:
        """Hide with the dock, its cross was clicked: all that is open is open when it is back."""
        self.closed.emit()
        if self.home is not None:
            self.home.hide()

    def make_room(self, share: float) -> None:
        """Put napari's docks on the left away where `share` of the height is wanted below them."""
        window = self._main_window
        if not isinstance(window, QMainWindow):
            return
        left = _docks_on_the_left(window)
        beside = sum(dock.minimumSizeHint().height() for dock in left) + _BARS
        if left and beside + round(share * window.height()) > window.height():
            for dock in left:
                dock.hide()
            self._made_room += left
            self._notifier.hint(_LENT.format(" and ".join(map(_title_of, left))))

    def give_room_back(self) -> None:
        """Show the docks again that `make_room` put away."""
        for dock in self._made_room:
            dock.show()
        self._made_room = []

    def fit_later(self) -> None:
        """Keep the window within its screen where napari's panels are about to come back."""
        before = self._main_window.geometry()
        call_later(self._panel, lambda: self._fit_again(before))

    def _fit_again(self, before: QRect) -> None:
        window = self._main_window
        if self.home is None or not isinstance(window, QMainWindow) or window.isHidden():
            return
        away = fit_window(window, self._width())
        if away:
            window.setGeometry(before)  # where it had its room, without what is put away
            self.take_width()
            self._notifier.hint(_PUT_AWAY.format(" and ".join(away)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the panel; keep the window open once where its mask cannot be saved."""
        if watched is self._panel:
            self._follow_panel(event)
        elif event.type() in _OF_WINDOW and watched is self._main_window:
            return self._follow_window(event)
        return False

    def take_width(self) -> None:
        """Give the dock the width of its letters, or what its pages need, beside the picture."""
        window = self._panel.window()
        if self.home is None or not isinstance(window, QMainWindow):
            return
        letters = _LETTERS * self._measured.fontMetrics().averageCharWidth()
        width = max(self._width(), min(letters, round(_MOST_SHARE * window.width())))
        width = min(width, round(_MOST_NEEDED * window.width()))
        layout = window.layout()
        if layout is not None:
            layout.activate()  # a picture that was just shown has no room yet to give or to take
        window.resizeDocks([self.home], [width], Qt.Orientation.Horizontal)

    def widen(self, width: int) -> None:
        """Take the dock's width anew where a page that was just made needs more than there is."""
        if width > self._panel.contentsRect().width() and not self.is_filling:
            self.take_width()

    def _follow_font(self, _event: object = None) -> None:
        """Give larger texts their room, once the pages are laid out in them."""
        call_later(self._panel, lambda: self.widen(self._width()), after_ms=_LAID_OUT_MS)

    def _follow_panel(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.ParentChange:
            self._note_dock()
        elif event.type() == QEvent.Type.Show:
            self._main_window.installEventFilter(self)
            self.shown.emit()
            call_later(self._panel, self._fit_later_)
        elif event.type() == QEvent.Type.Hide and not event.spontaneous() and not self.is_folding:
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

    def _fit_later_(self) -> None:
        """Measure the pages in a turn of its own: first of all they are dressed for it, 40 ms."""
        if not self._is_fitted and self.home is not None and not self.is_filling:
            self._width()
            call_later(self._panel, self._fit_into_screen)

    def end_filling(self) -> None:
        """Measure the panel and bring the window into its screen, now that it has all pages."""
        self.is_filling = False
        self._fit_later_()

    def _fit_into_screen(self) -> None:
        """Bring the window into its screen, once: napari shows it after it made the docks."""
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

    def _tell_size(self) -> None:
        """Say what the window needs once it was made too small; take that back once it has it."""
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
        """Warn, and again after the first list and the first case: each clears the line."""
        clearing = {"list", "open"}

        def warn_again(ticket: RunningJob, _outcome: object) -> None:
            if ticket.lane in clearing:
                clearing.remove(ticket.lane)
                call_later(self._panel, lambda: self._notifier.warn(text))

        self._notifier.warn(text)
        self._jobs.ended.connect(warn_again)

    def _follow_window(self, event: Any) -> bool:
        """Save before the window closes; where that fails, keep it open once.

        `viewer.close()` takes the layers away first, and then there is no window to keep.
        """
        if event.type() == QEvent.Type.WindowActivate:
            self.window_came.emit()
        if event.type() == QEvent.Type.Resize:
            self._size_settled.start(_SIZE_SETTLES_MS)
        if event.type() == QEvent.Type.Close:
            self.give_room_back()  # before napari notes how its window stands
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


_SHARE: Final = (0.92, 0.90)
_MOST: Final = (1600, 1000)
"""A first window takes that much of the screen, and no more pixels: facts of this project."""


def find_screen_room(window: QWidget) -> QRect:
    """Return what a window may have of the screen on which its middle lies.

    `QWidget.screen` is the first one still where napari has just put its window on another.
    """
    screen = QGuiApplication.screenAt(window.frameGeometry().center()) or window.screen()
    return screen.availableGeometry()


def find_first_place(window: QMainWindow) -> QRect:
    """Return where a first window goes: most of its screen, in the middle."""
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
    """Return what a window needs that is smaller than 1024 x 600 pixels, "" where it has room.

    On a screen of hardly more than that the room is what most of the screen has; what the screen
    itself lacks is said at the start. A minimised window has its size still.
    """
    ratio, room = window.devicePixelRatioF(), find_screen_room(window)
    sizes = [round(ratio * one) for one in (window.width(), window.height())]
    most = [_OF_SCREEN * ratio * one for one in (room.width(), room.height())]
    if all(size >= min(both) for size, *both in zip(sizes, _SMALLEST, most, strict=True)):
        return ""
    return _SHRUNK.format(*_SMALLEST, *sizes)


def fit_window(window: QMainWindow, width: int) -> list[str]:
    """Bring a window into its screen.

    Where our dock of a `width` and napari's docks on the left leave the image no room, napari's are
    put away; its menu Window brings them back.

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
    return [_title_of(dock) for dock in away]


def _title_of(dock: QDockWidget) -> str:
    return str(dock.windowTitle() or dock.objectName())


def _room_of(window: QMainWindow) -> QRect:
    """Return where the inside of a window may be: the screen without its bars and our frame."""
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
