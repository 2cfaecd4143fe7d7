"""The panel asked for while the window is in use: its modules are imported in a thread first."""

import subprocess
import sys
from importlib import import_module
from threading import Event

import pytest
from napari._app_model import get_app_model
from one_window import visible_docks
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication, QLabel

from napari_mamamia.widgets.controls.soon import call_soon
from napari_mamamia.widgets.dock import entry, place
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.dock.place import dock_of
from napari_mamamia.widgets.dock.steps import PAGES

pytestmark = pytest.mark.window
PLUGIN = "napari-mamamia"


@pytest.fixture
def gate(monkeypatch):
    """Opens the way of the panel's modules, which are as good as not imported before."""
    opened, real = Event(), import_module

    def take_long(name):
        assert opened.wait(20)
        return real(name)

    monkeypatch.setattr(entry, "import_module", take_long)
    monkeypatch.setattr(entry, "_is_imported", opened.is_set)
    yield opened
    opened.set()


@pytest.fixture
def choose(qtbot, menu_item):
    """Return a function that chooses an entry of napari's menu in a turn, as a click does."""

    def click(viewer, page):
        done = []
        item = menu_item(viewer, "MAMA-MIA", page)
        call_soon(viewer.window._qt_window, lambda: (item.trigger(), done.append(True)))
        qtbot.waitUntil(lambda: bool(done))
        qtbot.wait(60)

    return click


def made_panels(viewer):
    return viewer.window._qt_window.findChildren(MamamiaDock)


def waiting_words(viewer):
    labels = viewer.window._qt_window.findChildren(QLabel, "mamamia_waiting_words")
    return [label.text() for label in labels if label.isVisible()]


def wait_for_panel(qtbot, viewer):
    qtbot.waitUntil(lambda: bool(made_panels(viewer)) and made_panels(viewer)[0].isVisible())
    qtbot.wait(60)
    (panel,) = made_panels(viewer)
    return panel


def test_words_stand_in_its_place_until_it_comes(qtbot, window, gate, choose):
    choose(window, "Score")
    assert waiting_words(window) == ["MAMA-MIA is being loaded..."]
    assert list(window.window.dock_widgets) == ["MAMA-MIA"]
    assert not made_panels(window)
    gate.set()
    panel = wait_for_panel(qtbot, window)
    assert panel.page == "Score"
    assert not waiting_words(window)
    assert list(window.window.dock_widgets) == visible_docks(window) == ["MAMA-MIA"]
    panel.close_down()


def test_it_ends_at_the_page_that_was_asked_for_last(qtbot, window, gate, choose):
    for page in ("Score", "Score", "Leaderboard", "Predict"):
        choose(window, page)
        assert len(waiting_words(window)) == 1, page
    gate.set()
    panel = wait_for_panel(qtbot, window)
    assert panel.page == "Predict"
    panel.close_down()


def test_the_cross_of_what_waits_takes_the_wish_back(qtbot, window, gate, choose):
    choose(window, "Score")
    window.window._wrapped_dock_widgets["MAMA-MIA"].destroyOnClose()
    gate.set()
    qtbot.wait(200)
    assert not made_panels(window)
    assert not window.window.dock_widgets
    choose(window, "Predict")
    panel = wait_for_panel(qtbot, window)
    assert panel.page == "Predict"
    panel.close_down()


def test_a_panel_that_was_made_when_the_wish_was_taken_back_comes_at_the_next_click(
    qtbot, window, gate, choose, monkeypatch
):
    made, real = [], place.make_panel

    def make_and_cross(viewer, **how):
        made.append(real(viewer, **how))
        window.window._qt_window.findChild(entry.WaitingPanel)._look.setInterval(500)
        call_soon(
            window.window._qt_window,
            window.window._wrapped_dock_widgets["MAMA-MIA"].destroyOnClose,
        )
        return made[-1]

    monkeypatch.setattr(place, "make_panel", make_and_cross)
    choose(window, "Score")
    gate.set()
    qtbot.waitUntil(lambda: bool(made))
    qtbot.wait(200)
    assert not window.window.dock_widgets
    assert made_panels(window) == made
    choose(window, "Predict")
    qtbot.waitUntil(made[0].isVisible)
    assert made_panels(window) == made
    assert made[0].page == "Predict"
    made[0].close_down()


def test_pages_come_a_turn_each_and_the_one_asked_for_at_once(qtbot, window, gate, choose):
    choose(window, "Report")
    gate.set()
    qtbot.waitUntil(lambda: bool(made_panels(window)) and made_panels(window)[0].isVisible())
    (panel,) = made_panels(window)
    assert panel.pages.shown is panel.report_page
    qtbot.waitUntil(lambda: not panel.pages.still_to_come and not panel.docking.is_filling)
    late = {"batch_flow", "review_flow", "report_flow", "export_flow", "import_flow", "keys_panel"}
    assert late <= vars(panel).keys()
    qtbot.waitUntil(lambda: panel.docking._is_fitted)
    for page in PAGES:
        panel.show_page(page)
        assert panel.pages.shown.isVisible(), page
    panel.close_down()


def test_a_panel_that_cannot_be_made_is_told_once(qtbot, window, gate, choose, monkeypatch):
    said = []
    monkeypatch.setattr(entry, "show_error", said.append)
    with monkeypatch.context() as broken:

        def fail(_viewer, **_how):
            raise AttributeError("no such part")

        broken.setattr(place, "make_panel", fail)
        choose(window, "Score")
        gate.set()
        qtbot.waitUntil(lambda: bool(said))
        qtbot.wait(100)
    assert len(said) == 1
    assert not window.window.dock_widgets
    choose(window, "Score")
    wait_for_panel(qtbot, window).close_down()


def test_a_window_that_is_closed_meanwhile_gets_no_panel(qtbot, make_napari_viewer, gate, choose):
    viewer = make_napari_viewer(show=True)
    choose(viewer, "Score")
    with qtbot.captureExceptions() as errors:
        viewer.close()
        gate.set()
        qtbot.wait(100)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qtbot.wait(100)
    assert not errors
    assert not [one for one in QApplication.allWidgets() if isinstance(one, MamamiaDock)]


def test_a_part_that_is_missing_is_told_and_may_come_later(
    qtbot, window, gate, choose, monkeypatch
):
    said = []
    monkeypatch.setattr(entry, "show_error", said.append)
    with monkeypatch.context() as broken:

        def fail(_name):
            raise ModuleNotFoundError("No module named 'scipy'")

        broken.setattr(entry, "import_module", fail)
        choose(window, "Score")
        qtbot.waitUntil(lambda: bool(said))
    (text,) = said
    assert text.startswith("expected every part of MAMA-MIA to be installed, but ")
    assert "No module named 'scipy'" in text
    assert "install it again" in text
    assert not window.window.dock_widgets
    gate.set()
    choose(window, "Score")
    wait_for_panel(qtbot, window).close_down()


def test_code_that_asks_for_it_meanwhile_has_it_at_once(qtbot, window, gate, choose):
    choose(window, "Score")
    gate.set()
    panel = dock_of(window)
    assert panel.page == "Score"
    assert panel.isVisible()
    assert made_panels(window) == [panel]
    panel.close_down()


def test_without_an_event_loop_it_is_there_when_the_call_returns(window, monkeypatch):
    monkeypatch.setattr(entry, "_is_imported", lambda: False)
    window.window.add_plugin_dock_widget(PLUGIN, "Score")
    (panel,) = made_panels(window)
    assert panel.isVisible()
    panel.close_down()


def test_other_docks_and_an_open_case_are_as_they_were(qtbot, window, gate, choose):
    window.open_sample(PLUGIN, "axial")
    window.add_points([[1, 2, 3]], name="mine")
    window.window.add_dock_widget(QLabel("another"), name="another")
    choose(window, "Score")
    gate.set()
    panel = wait_for_panel(qtbot, window)
    qtbot.waitUntil(lambda: panel.session.case_id == "PHANTOM_AXIAL")
    assert "mine" in window.layers
    assert visible_docks(window) == ["MAMA-MIA"]
    assert set(window.window.dock_widgets) == {"another", "MAMA-MIA"}
    panel.close_down()


def test_the_command_import_shows_its_page(qtbot, window, gate):
    command = get_app_model().commands.execute_command
    call_soon(window.window._qt_window, lambda: command("napari-mamamia.import_dicom"))
    qtbot.waitUntil(lambda: bool(waiting_words(window)))
    assert waiting_words(window)
    gate.set()
    panel = wait_for_panel(qtbot, window)
    assert panel.pages.is_importing
    panel.close_down()


def test_a_click_imports_nothing_of_the_panel():
    code = (
        "import sys, napari_mamamia.menu, napari_mamamia.widgets.dock.entry; "
        "bad = [m for m in sys.modules if m.startswith(('napari_mamamia.services', "
        "'napari_mamamia.io', 'napari_mamamia.commands')) or m.endswith('dock.dock')]; "
        "sys.exit(str(bad) if bad else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
