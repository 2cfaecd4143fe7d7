"""One napari window with its dock for the tests of modules, brought back to new between them."""

import gc
import shutil
import time
from contextlib import ExitStack, contextmanager

import pytest
from app_model import Application
from napari import Viewer
from napari._app_model._app import NapariApplication, _napari_names
from napari._qt._qapp_model.qactions import init_qactions
from napari._qt.qt_viewer import QtViewer
from napari.plugins import _initialize_plugins
from napari.settings import get_settings
from qtpy.QtCore import QPoint
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QDockWidget, QWidget
from tests.conftest import PATIENCE_MS

from napari_mamamia.core.blinding import NOT_BLIND
from napari_mamamia.widgets.adapter.adapter import canvas_widget
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.dock.place import dock_of, show_dock
from napari_mamamia.widgets.dock.steps import STEPS
from napari_mamamia.widgets.refine.state import PaintTool, RefineState
from napari_mamamia.widgets.viewer.pane_sides import Sides
from napari_mamamia.widgets.viewer.planes import Layout

SIZE = (1400, 900)
_KEPT = ExitStack()
_DOCKS = []
"""What closes the window that modules share, and its dock, where there is one."""


@contextmanager
def docked_window():
    """Open a window with its dock, as a user adds it."""
    with napari_window() as viewer:
        viewer.window.add_plugin_dock_widget("napari-mamamia", "Cases")
        panel = dock_of(viewer)
        yield panel
        panel.close_down()


def kept_dock():
    """Return the dock of the window that stays open until `close_kept`."""
    if not _DOCKS:
        _DOCKS.append(_KEPT.enter_context(docked_window()))
    return _DOCKS[0]


def close_kept():
    """Close the window that modules share, if one is open."""
    _DOCKS.clear()
    _KEPT.close()


@contextmanager
def napari_window():
    """Open a window, as napari's `make_napari_viewer` does, but for longer than one test."""
    _see_windows_go()
    _forget_actions()
    get_settings().reset()
    app = NapariApplication("test_app")
    app.injection_store.namespace = _napari_names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NapariApplication, "get_app_model", lambda: app)
        patch.setattr("napari._qt.threads.status_checker.StatusChecker.start", lambda *_: None)
        patch.setattr("napari._qt.qt_viewer.QtViewer._get_console", lambda *_: QWidget())
        viewer = Viewer(show=True, show_welcome_screen=False)
        try:
            viewer.window.resize(*SIZE)
            yield viewer
            patch.setattr(viewer.window._qt_window, "_save_current_window_settings", lambda: None)
            viewer.close()
        finally:
            # menus of a window that still stands would be made anew for each of 600 actions
            app.menus.menus_changed.disconnect()
            Application.destroy("test_app")
            _forget_actions()
    gc.collect()


def _see_windows_go():
    """Wait until the windows of earlier tests are gone; a job of theirs may still be at its end."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while QtViewer._instances:
        assert time.monotonic() < end, "a window of an earlier test is still there"
        QApplication.processEvents()
        time.sleep(0.1)
        gc.collect()


def _forget_actions():
    _initialize_plugins.cache_clear()
    init_qactions.cache_clear()


def wait_open(qtbot, panel, case_id):
    """Wait until a case is open with all its phases, and its masks are shown, a turn each."""
    session = panel.session
    qtbot.waitUntil(lambda: session.case_id == case_id and session.case.is_loaded)
    qtbot.waitUntil(lambda: all(panel.scene.layer(role) is not None for role in session.masks))


def open_kinetics(qtbot, panel, data_set, case_id):
    """Open a case that has a reference on the page Kinetics, at its lesion."""
    panel.open_data_set(data_set, case_id)
    wait_open(qtbot, panel, case_id)
    qtbot.waitUntil(lambda: Role.REFERENCE in panel.session.masks)
    panel.show_page("Kinetics")
    panel.jumping.to_lesion()
    qtbot.waitUntil(lambda: not panel.jobs.is_running("lesion"))


def visible_docks(viewer):
    """Return the titles of the docks that hold our panel and are seen."""
    window = viewer.window.dock_widgets["MAMA-MIA"].window()
    return [
        dock.windowTitle() or dock.objectName()
        for dock in window.findChildren(QDockWidget)
        if isinstance(dock.widget(), MamamiaDock) and dock.isVisible()
    ]


def put_back(qtbot, panel):
    """Bring a used dock to the state of a new one, and prove it."""
    viewer = panel.viewer
    panel.reading.leave()
    panel.pages.show_step(STEPS[0].name)  # a case that comes is shown in the step of the last one
    assert show_dock(viewer, "Cases") is panel
    qtbot.waitUntil(lambda: panel.docking.home is not None and panel.isVisible())
    panel.jobs.cancel_all()
    qtbot.waitUntil(lambda: panel.jobs.wait(0))
    panel.editing.discard()
    panel.planes.set_layout(Layout.ONE)
    panel.planes.set_sides(Sides())
    panel.painting.set_brush(RefineState().brush)
    if not panel.refine_page.more.is_folded:
        panel.refine_page.more.fold.click()
    panel.session.close_case()
    panel.session.opened = None
    panel.session.set_blinding(NOT_BLIND)
    panel.protocols.protocol = None
    panel.session.set_queue([])
    panel.session.set_reader(None)
    panel.header.set_reader(None)
    viewer.layers.clear()
    QTest.mouseMove(canvas_widget(viewer), QPoint(1, 1))  # a move to where it is would be none
    viewer.theme = "dark"
    viewer.window.resize(*SIZE)
    panel.docking.home.setFloating(False)
    panel.results.hide()
    panel.cases_page.search.setText("")
    qtbot.waitUntil(lambda: not panel.planes.is_building and panel.jobs.wait(0))
    QApplication.processEvents()
    panel.header.say(Level.HINT, "")
    assert_new(panel)


def forget_mask(panel):
    """Take a painted mask away, with its files and all that was chosen for it."""
    panel.painting.set_tool(PaintTool.NONE)
    panel.painting.set_brush(RefineState().brush)
    folder = panel.session.workspace.root
    panel.editing.discard()
    panel.session.set_reader(None)
    shutil.rmtree(folder, ignore_errors=True)
    panel.planes.set_sides(Sides())
    assert panel.editing.live is None
    assert panel.active_tool.tool is None
    assert Role.REFINED not in panel.session.masks
    assert panel.scene.layer(Role.REFINED) is None


def assert_new(panel):
    """Say what is left of an earlier test."""
    viewer, editing = panel.viewer, panel.editing
    found = {
        "layers": list(viewer.layers),
        "case": panel.session.case,
        "data set": panel.session.opened,
        "masks": panel.session.masks,
        "reader": panel.session.reader,
        "hidden": (panel.session.blinding, panel.header.blind.text()),
        "mask that is edited": (editing.live, editing.open, editing.layer, editing.is_dirty),
        "tool": (panel.active_tool.tool, panel.painting.state.brush),
        "views": (panel.planes.layout, panel.planes.wanted, panel.planes.panes),
        "sides": panel.planes.sides,
        "reading mode": (panel.reading.is_on, panel.fold.is_folded, panel.fold.is_alone),
        "picture": canvas_widget(viewer).isVisible(),
        "docks": (visible_docks(viewer), panel.docking.home.isFloating(), panel.isVisible()),
        "page": (panel.page, panel.cases_page.search.text()),
        "marks": panel.marks.is_empty,
        "fold": panel.refine_page.more.is_folded,
        "said": (panel.header.message.text(), panel.header.state.currentIndex()),
        "jobs": panel.jobs._workers,
        "theme": viewer.theme,
        "size": (viewer.window._qt_window.width(), viewer.window._qt_window.height()),
    }
    assert found == {
        "layers": [],
        "case": None,
        "data set": None,
        "masks": {},
        "reader": None,
        "hidden": (NOT_BLIND, ""),
        "mask that is edited": (None, None, None, False),
        "tool": (None, RefineState().brush),
        "views": (Layout.ONE, Layout.ONE, []),
        "sides": Sides(),
        "reading mode": (False, False, False),
        "picture": True,
        "docks": (["MAMA-MIA"], False, True),
        "page": ("Cases", ""),
        "marks": True,
        "fold": True,
        "said": ("", 0),
        "jobs": {},
        "theme": "dark",
        "size": SIZE,
    }
