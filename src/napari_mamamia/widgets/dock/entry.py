"""The panel asked for in a window: its modules come in a thread, it by turns, words meanwhile.

This module is read in the turn of a click, and imports nothing of the panel. Where no event loop
turns nobody would wait for one: napari's command line, a notebook and scripts have the panel at
once, and `dock_of` finishes what still waits.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from napari.utils.notifications import show_error
from qtpy.QtCore import QEvent, Qt, QThread, QTimer
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.features import import_window_parts
from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import (
    add_noted_dock,
    bare,
    current_viewer,
    keep_when_closed,
    main_view,
)
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome, outcome_of
from napari_mamamia.widgets.controls.call_later import call_later

if TYPE_CHECKING:
    from napari_mamamia.widgets.dock.dock import MamamiaDock

    Use: TypeAlias = Callable[[MamamiaDock], object]

DOCK_NAME: Final = "MAMA-MIA"
_PANEL: Final = "mamamia_dock"
_WIDTH: Final = 340
"""The panel's name, and its least width, without its modules."""
_PLACE: Final = "napari_mamamia.widgets.dock.place"
_LOOK_MS: Final = 20
_BROKEN: Final = tr(
    "expected every part of MAMA-MIA to be installed, but {_}: {error}: install it again with "
    "pip install --force-reinstall napari-mamamia, and choose the menu entry again"
)
_NOT_MADE: Final = tr(
    "expected the panel of MAMA-MIA, but {_}: {error}: choose the menu entry again; "
    "what happened is in napari's log"
)
_NO_WINDOW: Final = tr(
    "expected napari's window for the panel of MAMA-MIA, but there is none: open one, such as by "
    "mamamia view, and choose the menu entry there"
)
_log = logging.getLogger(__name__)


def guest_for_menu(page: str, use: "Use | None" = None) -> QWidget:
    """Let the current viewer's panel be shown on a page; return a guest for napari to dock."""
    viewer = current_viewer()
    show_later(viewer, page, use)
    guest = QWidget()
    guest.setObjectName("mamamia_guest")
    call_later(main_view(viewer), lambda: _send_away(viewer, guest))
    return guest


def show_later(viewer: Any, page: str, use: "Use | None" = None) -> None:
    """Show the viewer's panel on a page, and do something with it.

    At once where the panel is there or no event loop turns; else it comes by turns.

    Raises
    ------
    MamamiaError
        Where there is no window: no viewer, or one that is a model alone.
    """
    view = None if viewer is None else main_view(bare(viewer))
    if view is None:
        raise MamamiaError(_NO_WINDOW)
    viewer, window, request = bare(viewer), view.window(), PageRequest(page, use)
    waiting = window.findChild(WaitingPanel)
    if waiting is not None:
        waiting.ask(request)
    elif QThread.currentThread().loopLevel() == 0:
        _fulfil_request(viewer, request, False)
    elif window.findChild(QWidget, _PANEL) is not None:
        _fulfil_request(viewer, request, True)
    else:
        WaitingPanel(viewer, window, request)


def finish_waiting(window: QWidget) -> None:
    """Show at once what waits in a window."""
    waiting = window.findChild(WaitingPanel)
    if waiting is not None:
        waiting.finish()


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page to be shown, and what is to be done with the panel then."""

    page: str
    use: "Use | None"


class WaitingPanel(QWidget):
    """Says in the panel's dock that it is coming; its cross takes the wish back.

    The panel is made in that dock, unseen below the words, and takes their place once the page that
    was asked for is whole: what Qt has dressed it dresses anew wherever it moves.
    """

    _home: Any = None

    def __init__(self, viewer: Any, window: QWidget, request: PageRequest) -> None:
        super().__init__(window)
        self.setObjectName("mamamia_waiting")
        self._viewer = viewer
        self._asked = [request]
        self._imported: Outcome[object] | None = None
        self._panel: MamamiaDock | None = None
        self._steps: list[Callable[[], object]] = []
        self._pages: set[str] = set()
        words = QLabel(tr("MAMA-MIA is being loaded..."))
        words.setObjectName("mamamia_waiting_words")
        words.setToolTip(tr("The panel comes in a few seconds; the image can be used meanwhile"))
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(words)
        self.setMinimumWidth(_WIDTH)  # or the picture would be moved twice
        self._look = QTimer(self)
        self._look.timeout.connect(self._go_on)
        self._look.start(_LOOK_MS)
        if _is_imported():
            self._imported = Finished(None)
        else:
            Thread(target=self._import_panel, name="mamamia imports").start()

    def ask(self, request: PageRequest) -> None:
        """Ask for one thing more; of pages the last is shown."""
        self._asked.append(request)
        if self._home is not None:
            self._show_words()

    def finish(self) -> None:
        """Let the panel come at once, whole, and do what was asked for."""
        self._imported = self._imported or outcome_of(_import_panel)
        outcome = outcome_of(self._take_turns)
        if isinstance(outcome, Failed):
            self._drop_panel()
            raise outcome.error
        self._give_way(is_gradual=False)

    def event(self, event: QEvent) -> bool:
        """Outlive a dock that somebody else takes away: the panel is made in it."""
        if event.type() == QEvent.Type.ParentChange and self._home and self.parent() is None:
            self._leave_dock()
        return bool(super().event(event))

    def _import_panel(self) -> None:
        # Each full collection would look at all of napari's objects again: 0.2 to 0.5 s, with the
        # interpreter's lock held.
        with uncollected():
            self._imported = outcome_of(_import_panel)

    def _go_on(self) -> None:
        outcome = outcome_of(self._take_turn)
        if isinstance(outcome, Failed):
            self._tell_failure(outcome.error)
        elif isinstance(outcome, Finished) and not outcome.result:
            self._give_way(is_gradual=True)

    def _take_turn(self) -> bool:
        """Do what takes a turn: panel, and pages that are asked for; return whether to go on."""
        if self._asked and self._home is None:
            self._show_words()
        elif isinstance(self._imported, Failed):
            raise self._imported.error
        elif self._imported is not None and self._panel is None:
            self._look.setInterval(0)
            self._panel = import_module(_PLACE).begin_panel(self._viewer, self._home)
            self._steps = self._panel.making
        elif self._panel is not None and self._steps:
            # Taken off the list before it runs: the event loop may turn within it.
            self._steps.pop(0)()
        elif self._panel is not None:
            pages = [
                request.page for request in self._list_due() if request.page not in self._pages
            ]
            self._pages.update(pages)
            self._steps = [step for page in pages for step in self._panel.page_steps(page)]
            if not pages and self._asked:
                self._panel.show_page(self._asked[-1].page)
            return bool(pages)
        return True

    def _show_words(self) -> None:
        if self._home is None:
            self._home = add_noted_dock(self._viewer.window, self, DOCK_NAME)
            keep_when_closed(self._home, self._take_back)
            if self._panel is not None:
                self._panel.setParent(self._home)
        self.show()
        self._home.show()
        self._home.raise_()

    def _take_turns(self) -> None:
        while self._take_turn():
            pass

    def _list_due(self) -> list[PageRequest]:
        """Return what is to be done: a page that another was asked for after need not be seen."""
        return [one for one in self._asked if one.use is not None or one is self._asked[-1]]

    def _give_way(self, *, is_gradual: bool) -> None:
        due, home = self._list_due(), self._home
        self._leave_window()
        import_module(_PLACE).settle_panel(self._panel, home)
        for request in due:
            _fulfil_request(self._viewer, request, is_gradual)

    def _take_back(self) -> None:
        """Show nothing; a panel that was begun is made all the same, and found at the next wish."""
        self._asked.clear()
        if self._panel is None:
            self._leave_window()
        else:
            self._home.hide()

    def _leave_dock(self) -> None:
        self._asked.clear()
        self._home = None
        view = main_view(self._viewer)
        if self._panel is not None and view is not None:
            for widget in (self._panel, self):
                widget.setParent(view.window())
                widget.hide()
        else:
            self._leave_window()

    def _tell_failure(self, error: Exception) -> None:
        _log.error("the panel could not be made", exc_info=error)
        text = _BROKEN if isinstance(self._imported, Failed) else _NOT_MADE
        self._drop_panel()
        show_error(tr(text).format(_=type(error).__name__, error=error))

    def _drop_panel(self) -> None:
        """Leave nothing in the window of a panel that could not be made."""
        panel, self._panel = self._panel, None
        self._leave_window()
        if panel is not None:
            panel.setParent(None)
            panel.deleteLater()

    def _leave_window(self) -> None:
        """Go, and leave the dock to the panel; without one it goes too."""
        self._look.stop()
        home, self._home = self._home, None
        if home is not None and self._panel is None:
            self._viewer.window.remove_dock_widget(home)
        self.setParent(None)
        self.deleteLater()


def _send_away(viewer: Any, widget: QWidget) -> None:
    """Take a widget out of the window, with the dock that napari made for it."""
    with suppress(LookupError):  # whoever called the command has not docked it
        viewer.window.remove_dock_widget(widget)
    widget.setParent(None)
    widget.deleteLater()


def _import_panel() -> None:
    import_module(_PLACE)
    import_window_parts()


def _is_imported() -> bool:
    return hasattr(sys.modules.get(_PLACE), "show_dock")  # a module's functions come last


def _fulfil_request(viewer: Any, request: PageRequest, is_gradual: bool) -> None:
    panel = import_module(_PLACE).show_dock(viewer, request.page, is_gradual=is_gradual)
    if request.use is not None:
        request.use(panel)
