"""A single dock for each viewer, regardless of the menu item that requests it.

napari docks any widget that a menu command returns under the name of that command, and the next
click on the same item only hides the dock. Our commands instead show the viewer's only panel in the
dock MAMA-MIA, and return an empty placeholder to napari, which is immediately deleted with its
dock. Thus every click opens the page of the menu item, and the dock keeps the position and width
that the user chose. The panel is never moved to another dock, because Qt would style all its
controls again, which takes a second or more.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.features import find_hook
from napari_mamamia.widgets.adapter import adapter
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.dock.entry import DOCK_NAME, finish_waiting

_SOURCES_VARIABLE: Final = "MAMAMIA_SOURCES"
_CASE_VARIABLE: Final = "MAMAMIA_CASE"
_BLIND_VARIABLE: Final = "MAMAMIA_BLIND"
_PROTOCOL_VARIABLE: Final = "MAMAMIA_PROTOCOL"
_STUDY_VARIABLE: Final = "MAMAMIA_STUDY"
_READER_VARIABLE: Final = "MAMAMIA_READER"
_PANELS_VARIABLE: Final = "MAMAMIA_PANELS"
_START_VARIABLE: Final = "MAMAMIA_START"


def dock_of(viewer: Any) -> MamamiaDock | None:
    """Return the viewer's panel, docked or hidden in the window, or None if there is none.

    A panel that is still loading is completed immediately.
    """
    view = adapter.main_view(adapter.bare(viewer))
    if view is None:
        return None
    finish_waiting(view.window())
    panel = view.window().findChild(MamamiaDock)
    return panel if isinstance(panel, MamamiaDock) else None


def show_dock(viewer: Any, page: str, *, is_gradual: bool = False) -> MamamiaDock:
    """Show the viewer's dock on a page, and return the panel.

    The panel has all its pages. With `is_gradual`, it has only the requested pages at first, and
    the other pages follow step by step.
    """
    panel = dock_of(viewer) or make_panel(viewer)
    if not is_gradual:
        panel.pages.make_pages()
    panel.show_page(page)
    _send_home(adapter.bare(viewer), panel)
    return panel


def make_panel(viewer: Any) -> MamamiaDock:
    """Return a new panel with all its pages; `show_dock` docks it."""
    panel = MamamiaDock(viewer)
    _open_what_was_named(panel)
    return panel


def begin_panel(viewer: Any, home: Any) -> MamamiaDock:
    """Return a panel that is hidden in its future dock and is completed by its `making` steps."""
    panel = MamamiaDock(viewer, is_gradual=True)
    panel.setParent(home)
    return panel


def settle_panel(panel: MamamiaDock, home: Any | None) -> None:
    """Assign a completed panel to its dock; the remaining pages follow step by step."""
    _open_what_was_named(panel)
    if home is not None:
        home.setWidget(panel)
        _make_home(panel, home)
        panel.show()
    panel.fill_step_by_step()


def _make_home(panel: MamamiaDock, dock: Any) -> None:
    panel.docking.home = dock
    panel.docking.docks = [dock]
    adapter.keep_when_closed(dock, panel.docking.put_aside)


def _send_home(viewer: Any, panel: MamamiaDock) -> None:
    home = panel.docking.home
    guests = [dock for dock in panel.docking.docks if dock is not home]
    if home is None:
        if guests:
            viewer.window.remove_dock_widget(guests.pop())
        home = adapter.add_noted_dock(viewer.window, panel, DOCK_NAME)
        _make_home(panel, home)
    elif panel.parent() is not home:
        home.setWidget(panel)
    for guest in guests:
        viewer.window.remove_dock_widget(guest)
    panel.docking.docks = [home]
    panel.show()
    home.show()
    home.raise_()
    if panel.reading.is_wanted:
        panel.reading.enter()  # Before the window is shown, so that napari's frame never appears.


def _open_what_was_named(panel: MamamiaDock) -> None:
    """Open the paths or the study passed to ``mamamia view``, once, in the first dock.

    napari's command creates the dock before it shows the window; the data are opened afterwards.
    The blinding is set before any data are opened. If the protocol cannot be read, nothing is
    opened.
    """
    names = (_SOURCES_VARIABLE, _CASE_VARIABLE, _BLIND_VARIABLE, _PROTOCOL_VARIABLE)
    sources, case_id, blind, protocol = (os.environ.pop(name, "") for name in names)
    shows_napari = bool(os.environ.pop(_PANELS_VARIABLE, ""))
    is_program = bool(os.environ.pop(_START_VARIABLE, ""))
    if blind:
        panel.session.set_blinding(ALL_HIDDEN)
    if protocol and not panel.protocols.load(Path(protocol)):
        return
    study, reader = (os.environ.pop(name, "") for name in (_STUDY_VARIABLE, _READER_VARIABLE))
    if is_program and not shows_napari:
        panel.reading.is_wanted = True
        panel.docking.fitting.connect(panel.reading.begin)
    named = study or (json.loads(sources)[0] if sources else "")
    panel.cases_page.show_opening(Path(named).name)
    if study:
        call_later(panel, lambda: find_hook("open_study")(panel, Path(study), reader))
    elif sources:
        paths = [Path(path) for path in json.loads(sources)]
        call_later(panel, lambda: panel.dropping.open_sources(paths, case_id or None))
