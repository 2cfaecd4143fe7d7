"""The panel asked for in a window: its modules come in a thread of their own, words meanwhile.

This module is read in the turn of a click, and imports nothing of the panel. Where no event loop
turns nobody would wait for one: napari's command line, a notebook and scripts have the panel at
once, and `dock_of` finishes what still waits.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from napari.utils.notifications import show_error
from qtpy.QtCore import Qt, QThread, QTimer
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import (
    add_unnoted_dock,
    bare,
    current_viewer,
    keep_when_closed,
    main_view,
)
from napari_mamamia.widgets.base.notify import Failed, Finished, Outcome, outcome_of
from napari_mamamia.widgets.controls.soon import call_soon

if TYPE_CHECKING:
    from napari_mamamia.widgets.dock.dock import MamamiaDock

    Use: TypeAlias = Callable[[MamamiaDock], object]

DOCK_NAME: Final = "MAMA-MIA"
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
_log = logging.getLogger(__name__)


def guest_for_menu(page: str, use: "Use | None" = None) -> QWidget:
    """Let the current viewer's panel be shown on a page; return a guest for napari to dock."""
    viewer = current_viewer()
    view = None if viewer is None else main_view(viewer)
    if view is None:
        raise MissingExtraError("napari", "pyqt6")
    show_soon(viewer, page, use)
    guest = QWidget()
    guest.setObjectName("mamamia_guest")
    call_soon(view, lambda: _send_away(viewer, guest))
    return guest


def show_soon(viewer: Any, page: str, use: "Use | None" = None) -> None:
    """Show the viewer's panel on a page, and do something with it.

    At once where the panel's modules are there or no event loop turns; else as soon as they are.
    """
    viewer = bare(viewer)
    view = main_view(viewer)
    waiting = None if view is None else view.window().findChild(WaitingPanel)
    if waiting is not None:
        waiting.asked.append(partial(_show_page, viewer, page, use))
    elif view is None or QThread.currentThread().loopLevel() == 0:
        _show_page(viewer, page, use, False)
    elif _is_imported():
        _show_page(viewer, page, use, True)
    else:
        WaitingPanel(viewer, partial(_show_page, viewer, page, use))


def finish_waiting(window: QWidget) -> None:
    """Show at once what waits in a window."""
    waiting = window.findChild(WaitingPanel)
    if waiting is not None:
        waiting.finish()


class WaitingPanel(QWidget):
    """Says in the panel's place that it is coming; its cross takes the wish back.

    Attributes
    ----------
    asked
        What is done once the panel's modules are there, in this order.
    """

    def __init__(self, viewer: Any, act: Callable[[bool], object]) -> None:
        super().__init__()
        self.setObjectName("mamamia_waiting")
        self.asked = [act]
        self._viewer = viewer
        self._imported: Outcome[object] | None = None
        self._panel: MamamiaDock | None = None
        words = QLabel(tr("MAMA-MIA is being loaded..."))
        words.setObjectName("mamamia_waiting_words")
        words.setToolTip(tr("The panel comes in a few seconds; the image can be used meanwhile"))
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(words)
        dock = add_unnoted_dock(viewer.window, self, DOCK_NAME, "right")
        keep_when_closed(dock, self._leave_window)
        self._look = QTimer(self)
        self._look.timeout.connect(self._go_on)
        self._look.start(_LOOK_MS)
        Thread(target=self._import_panel, name="mamamia imports").start()

    def finish(self, *, is_gradual: bool = False) -> None:
        """Leave, and do what was asked for, with a panel that has all its pages or is gradual."""
        asked = self.asked
        panel, self._panel = self._panel, None
        if panel is not None:
            self.destroyed.disconnect(panel.deleteLater)
        self._leave_window()
        if panel is not None:
            import_module(_PLACE).dock_gradually(self._viewer, panel)
        for act in asked:
            act(is_gradual)

    def _import_panel(self) -> None:
        # Each full collection would look at all of napari's objects again: 0.2 to 0.5 s, with the
        # interpreter's lock held.
        with uncollected():
            self._imported = outcome_of(lambda: import_module(_PLACE))

    def _go_on(self) -> None:
        if isinstance(self._imported, Failed):
            self._tell_failure(_BROKEN, self._imported.error)
        elif self._imported is not None and self._panel is None:
            place: Any = import_module(_PLACE)
            outcome = outcome_of(lambda: place.make_panel(self._viewer, is_gradual=True))
            if isinstance(outcome, Finished):
                # Without a parent: in the window Qt would dress it, and once more in its dock.
                self._panel = outcome.result
                self.destroyed.connect(outcome.result.deleteLater)
            elif isinstance(outcome, Failed):
                self._tell_failure(_NOT_MADE, outcome.error)
        elif self._imported is not None:
            self.finish(is_gradual=True)

    def _tell_failure(self, text: str, error: Exception) -> None:
        _log.error("the panel could not be made", exc_info=error)
        self._leave_window()
        show_error(tr(text).format(_=type(error).__name__, error=error))

    def _leave_window(self) -> None:
        self._look.stop()
        if self._panel is not None:  # it is put away in the window: `dock_of` finds it there
            self.destroyed.disconnect(self._panel.deleteLater)
            self._panel.setParent(self.window())
            self._panel.hide()
        _send_away(self._viewer, self)


def _send_away(viewer: Any, widget: QWidget) -> None:
    """Take a widget out of the window, with the dock that napari made for it."""
    with suppress(LookupError):  # whoever called the command has not docked it
        viewer.window.remove_dock_widget(widget)
    widget.setParent(None)
    widget.deleteLater()


def _is_imported() -> bool:
    return hasattr(sys.modules.get(_PLACE), "show_dock")  # a module's functions come last


def _show_page(viewer: Any, page: str, use: "Use | None", is_gradual: bool) -> None:
    panel = import_module(_PLACE).show_dock(viewer, page, is_gradual=is_gradual)
    if use is not None:
        use(panel)
