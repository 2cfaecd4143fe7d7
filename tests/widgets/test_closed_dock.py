"""What a closed dock leaves behind: nothing that napari, which stays, still holds."""

import gc
import weakref
from pathlib import Path

import pint
from napari.components import ViewerModel
from napari.settings import get_settings
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication

from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.viewer.scene import load_napari_parts


def delete(dock):
    dock.close()
    dock.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def leave(qtbot, dock):
    """Open a case and close the dock; return references to what should be gone after it."""
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    left = [weakref.ref(part) for part in (dock, dock.viewer, dock.session.case.signal)]
    delete(dock)
    return left


def test_a_closed_dock_and_its_viewer_are_freed(qtbot, world):
    left = leave(qtbot, MamamiaDock(ViewerModel(), world.services()))

    def all_are_gone():
        gc.collect()
        return [reference() for reference in left] == [None, None, None]

    qtbot.waitUntil(all_are_gone)  # after what the event loop has yet to deliver


def test_a_change_of_the_font_reaches_open_docks_alone(qtbot, world, monkeypatch):
    dressed = []
    open_one, closed = (MamamiaDock(ViewerModel(), world.services()) for _ in range(2))
    qtbot.addWidget(open_one)
    delete(closed)
    monkeypatch.setattr(
        "napari_mamamia.widgets.dock.dock.style_sheet",
        lambda theme: dressed.append(theme.font_points) or "",
    )
    appearance = get_settings().appearance
    before = appearance.font_size
    try:
        appearance.font_size = before + 3
        appearance.font_size = before + 4
    finally:
        appearance.font_size = before
    assert dressed.count(before + 4) == 1


def test_a_further_window_takes_the_units_that_napari_has(opened):
    assert load_napari_parts() is pint.application_registry.get()
