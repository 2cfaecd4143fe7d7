"""Entry point of the panel, which imports its modules in a thread and builds it step by step.

A menu click imports this module, which does not import the panel. Without a running event loop
(napari's command line, notebooks and scripts), the panel is created immediately, and `dock_of`
completes a panel that is still waiting.
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
from napari_mamamia.widgets.adapter import adapter
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome, outcome_of
from napari_mamamia.widgets.controls.call_later import call_later

if TYPE_CHECKING:
    from napari_mamamia.widgets.dock.dock import MamamiaDock

    Use: TypeAlias = Callable[[MamamiaDock], object]

DOCK_NAME: Final = "MAMA-MIA"
_PANEL: Final = "mamamia_dock"
_WIDTH: Final = 340
"""Minimum width of the panel in pixels, known without importing its modules."""
_PLACE: Final = "napari_mamamia.widgets.dock.place"
_LOOK_MS: Final = 20
_BROKEN: Final = tr(
    "expected every module of MAMA-MIA to be installed, but {_}: {error}: reinstall it with "
    "pip install --force-reinstall napari-mamamia, and choose the menu entry again"
)
_NOT_MADE: Final = tr(
    "expected the panel of MAMA-MIA, but {_}: {error}: choose the menu entry again; "
    "details are in napari's log"
)
_NO_WINDOW: Final = tr(
    "expected an open napari window for the MAMA-MIA panel, but found none: open one, for "
    "example with mamamia view, and choose the menu entry there"
)
_log = logging.getLogger(__name__)


def guest_for_menu(page: str, use: "Use | None" = None) -> QWidget:
    """Show the current viewer's panel on a page; return a placeholder widget for napari."""
    viewer = adapter.current_viewer()
    show_later(viewer, page, use)
    guest = QWidget()
    guest.setObjectName("mamamia_guest")
    call_later(adapter.main_view(viewer), lambda: _send_away(viewer, guest))
    return guest


def show_later(viewer: Any, page: str, use: "Use | None" = None) -> None:
    """Show the viewer's panel on a page, and call `use` with the panel.

    The panel is shown immediately if it exists or no event loop runs, otherwise step by step.

    Raises
    ------
    MamamiaError
        If there is no window, because there is no viewer or only a model.
    """
    view = None if viewer is None else adapter.main_view(adapter.bare(viewer))
    if view is None:
        raise MamamiaError(_NO_WINDOW)
    viewer, window, request = adapter.bare(viewer), view.window(), PageRequest(page, use)
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
    """Complete the waiting panels of a window immediately."""
    waiting = window.findChild(WaitingPanel)
    if waiting is not None:
        waiting.finish()


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to show a page, with a callback that receives the panel."""

    page: str
    use: "Use | None"


class WaitingPanel(QWidget):
    """A placeholder in the panel's dock while it loads; closing it cancels the requests.

    The panel is created in the same dock, hidden below the text, and replaces the text when the
    requested page is complete. Moving a finished panel into the dock would make Qt style its
    widgets again.
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
        words = QLabel(tr("Loading MAMA-MIA..."))
        words.setObjectName("mamamia_waiting_words")
        words.setToolTip(
            tr("The panel will appear in a few seconds; the image can already be used.")
        )
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(words)
        self.setMinimumWidth(_WIDTH)  # Otherwise the image would be moved twice.
        self._look = QTimer(self)
        self._look.timeout.connect(self._go_on)
        self._look.start(_LOOK_MS)
        if _is_imported():
            self._imported = Finished(None)
        else:
            Thread(target=self._import_panel, name="mamamia imports").start()

    def ask(self, request: PageRequest) -> None:
        """Add a request; if several pages are requested, the last page is shown."""
        self._asked.append(request)
        if self._home is not None:
            self._show_words()

    def finish(self) -> None:
        """Complete the panel immediately, and run all requests."""
        self._imported = self._imported or outcome_of(_import_panel)
        outcome = outcome_of(self._take_turns)
        if isinstance(outcome, Failed):
            self._drop_panel()
            raise outcome.error
        self._give_way(is_gradual=False)

    def event(self, event: QEvent) -> bool:
        """Keep this widget if the dock in which the panel is created is removed."""
        if event.type() == QEvent.Type.ParentChange and self._home and self.parent() is None:
            self._leave_dock()
        return bool(super().event(event))

    def _import_panel(self) -> None:
        # Each full collection would visit all of napari's objects again, which takes 0.2 to 0.5 s
        # while the interpreter's lock is held.
        with uncollected():
            self._imported = outcome_of(_import_panel)

    def _go_on(self) -> None:
        outcome = outcome_of(self._take_turn)
        if isinstance(outcome, Failed):
            self._report_failure(outcome.error)
        elif isinstance(outcome, Finished) and not outcome.result:
            self._give_way(is_gradual=True)

    def _take_turn(self) -> bool:
        if self._asked and self._home is None:
            self._show_words()
        elif isinstance(self._imported, Failed):
            raise self._imported.error
        elif self._imported is not None and self._panel is None:
            self._look.setInterval(0)
            self._panel = import_module(_PLACE).begin_panel(self._viewer, self._home)
            self._steps = self._panel.making
        elif self._panel is not None and self._steps:
            # The step is removed from the list before it runs, because the event loop may run
            # within the step.
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
            self._home = adapter.add_noted_dock(self._viewer.window, self, DOCK_NAME)
            adapter.keep_when_closed(self._home, self._take_back)
            if self._panel is not None:
                self._panel.setParent(self._home)
        self.show()
        self._home.show()
        self._home.raise_()

    def _take_turns(self) -> None:
        while self._take_turn():
            pass

    def _list_due(self) -> list[PageRequest]:
        return [
            request
            for request in self._asked
            if request.use is not None or request is self._asked[-1]
        ]

    def _give_way(self, *, is_gradual: bool) -> None:
        due, home = self._list_due(), self._home
        self._leave_window()
        import_module(_PLACE).settle_panel(self._panel, home)
        for request in due:
            _fulfil_request(self._viewer, request, is_gradual)

    def _take_back(self) -> None:
        self._asked.clear()
        if self._panel is None:
            self._leave_window()
        else:
            self._home.hide()

    def _leave_dock(self) -> None:
        self._asked.clear()
        self._home = None
        view = adapter.main_view(self._viewer)
        if self._panel is not None and view is not None:
            for widget in (self._panel, self):
                widget.setParent(view.window())
                widget.hide()
        else:
            self._leave_window()

    def _report_failure(self, error: Exception) -> None:
        _log.error("the panel could not be created", exc_info=error)
        text = _BROKEN if isinstance(self._imported, Failed) else _NOT_MADE
        self._drop_panel()
        show_error(tr(text).format(_=type(error).__name__, error=error))

    def _drop_panel(self) -> None:
        panel, self._panel = self._panel, None
        self._leave_window()
        if panel is not None:
            panel.setParent(None)
            panel.deleteLater()

    def _leave_window(self) -> None:
        self._look.stop()
        home, self._home = self._home, None
        if home is not None and self._panel is None:
            self._viewer.window.remove_dock_widget(home)
        self.setParent(None)
        self.deleteLater()


def _send_away(viewer: Any, widget: QWidget) -> None:
    with suppress(LookupError):  # The caller of the command has not docked it.
        viewer.window.remove_dock_widget(widget)
    widget.setParent(None)
    widget.deleteLater()


def _import_panel() -> None:
    import_module(_PLACE)
    import_window_parts()


def _is_imported() -> bool:
    return hasattr(
        sys.modules.get(_PLACE), "show_dock"
    )  # Functions of a module are the last resort.


def _fulfil_request(viewer: Any, request: PageRequest, is_gradual: bool) -> None:
    panel = import_module(_PLACE).show_dock(viewer, request.page, is_gradual=is_gradual)
    if request.use is not None:
        request.use(panel)
