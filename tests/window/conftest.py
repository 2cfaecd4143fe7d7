"""A real window; pictures of its states go to MAMAMIA_SCREENSHOTS where that is set."""

import gc
import os
import sys
from pathlib import Path

import pytest
from napari._qt.qt_viewer import QtViewer
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget
from tests.quick_napari import accepting_at_once, napari_by_day  # noqa: F401

from napari_mamamia.widgets.dock.place import dock_of

sys.path.insert(0, str(Path(__file__).parent))
from one_window import close_kept, docked_window, kept_dock, put_back

PLUGIN = "napari-mamamia"
MANY = 100_000
"""Objects: of one window there are fewer, of all modules of the tests many more."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Leave what exists before a test out of collections: napari makes three full ones a window.

    Each looks at a million objects of all tests and modules. A dock that closes takes all back, and
    what a window leaves is collected behind it: so nothing of an earlier window is left out, nor of
    one that stays for a module's tests.
    """
    # What is old and not left out is few objects, or all; to count what is left out takes 0.2 s.
    if not QtViewer._instances and len(gc.get_objects(generation=2)) > MANY:
        gc.freeze()


def shares_window(request):
    return request.node.get_closest_marker("one_window") is not None


def may_keep(node):
    """Whether tests have a window that served other modules: not where the marker says `own`."""
    marker = node.get_closest_marker("one_window")
    return marker is not None and not marker.kwargs


@pytest.fixture
def window(request):
    """A napari viewer with its window shown, 1400 x 900; the module's where it is `one_window`."""
    if shares_window(request):
        return request.getfixturevalue("shared_dock").viewer
    viewer = request.getfixturevalue("make_napari_viewer")(show=True)
    viewer.window.resize(1400, 900)
    QApplication.processEvents()
    return viewer


@pytest.fixture
def menu_item():
    """Return a function that finds an item of a viewer's menu by its titles."""

    def find(viewer, *titles):
        menu = viewer.window.plugins_menu
        menu.aboutToShow.emit()
        for title in titles[:-1]:
            menu = next(a for a in menu.actions() if a.text() == title).menu()
        return next(a for a in menu.actions() if a.text().startswith(titles[-1]))

    return find


@pytest.fixture
def docked(request, qtbot, window):
    """The dock as `add_plugin_dock_widget` gives it, settled."""
    if shares_window(request):
        yield request.getfixturevalue("shared_dock")
        return
    window.window.add_plugin_dock_widget(PLUGIN, "Cases")
    panel = dock_of(window)
    qtbot.waitUntil(lambda: panel.docking.home is not None and panel.isVisible())
    yield panel
    panel.close_down()


@pytest.fixture(scope="module")
def dock_of_module(qapp, request):
    """The dock of a window that stays open for a module's tests; ask for `shared_dock`.

    That of `one_window` stays for the next such module, too: to make one takes 2 s.
    """
    if may_keep(request.node):
        yield kept_dock()
    else:
        with docked_window() as panel:
            yield panel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem):
    """Close the window that modules share before a test that has another, or none."""
    yield
    if nextitem is None or not may_keep(nextitem):
        close_kept()


def pytest_sessionfinish():
    """Close it where a run ended before its last test."""
    close_kept()


@pytest.fixture
def shared_dock(qtbot, dock_of_module):
    """The dock as a new one: for modules whose tests all share one window.

    Such a module is marked `one_window`, and asks nowhere for `make_napari_viewer`, which allows no
    second window.
    """
    put_back(qtbot, dock_of_module)
    return dock_of_module


@pytest.fixture
def control():
    """Return a function that clicks the control of a name."""

    def click(panel, name):
        widget = panel.findChild(QWidget, name)
        assert widget is not None, name
        assert widget.isVisible(), name
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton)
        return widget

    return click


PICTURES_WANTED = "MAMAMIA_SCREENSHOTS" in os.environ


@pytest.fixture
def whole_window(qtbot, picture_folder):
    """Return a function that returns the whole window's pixels (rows, columns, RGB).

    It saves them where somebody asked for pictures: packing one takes 60 ms.
    """

    def take(viewer, name):
        qtbot.wait(60)
        path = str(picture_folder / f"{name}.png") if PICTURES_WANTED else None
        return viewer.window.screenshot(path, flash=False, canvas_only=False)[..., :3]

    return take


@pytest.fixture
def picture(qtbot, whole_window):
    """Return a function that keeps a picture of the window where somebody asked for pictures.

    Else it waits as long: the window draws itself, once more would be 100 pictures of nothing.
    """
    return whole_window if PICTURES_WANTED else lambda _viewer, _name: qtbot.wait(60)


def canvas_of(viewer):
    """Return the pixels of the canvas alone."""
    return viewer.screenshot(canvas_only=True, flash=False)[..., :3]


@pytest.fixture
def canvas():
    return canvas_of


@pytest.fixture
def the_dock():
    return dock_of
