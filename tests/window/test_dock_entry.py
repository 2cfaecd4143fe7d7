"""The panel asked for while the window is in use: its modules are imported in a thread first."""

import os
import subprocess
import sys
from importlib import import_module
from threading import Event

import pytest
from napari._app_model import get_app_model
from napari.components import ViewerModel
from napari.settings import get_settings
from one_window import visible_docks
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication, QDockWidget, QLabel

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.widgets.base.pages import list_pages
from napari_mamamia.widgets.controls.call_later import call_later
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
        call_later(viewer.window._qt_window, lambda: (item.trigger(), done.append(True)))
        qtbot.waitUntil(lambda: bool(done))
        qtbot.wait(60)

    return click


@pytest.fixture
def at_turn(monkeypatch):
    """Return a function: something is done between two turns in which a panel comes.

    The dictionary that it returns holds how many turns there were.
    """

    def strike(number, act):
        turns, real = {"n": 0}, entry.WaitingPanel._go_on

        def go_on(waiting):
            real(waiting)
            turns["n"] += 1
            if turns["n"] == number:
                act()

        monkeypatch.setattr(entry.WaitingPanel, "_go_on", go_on)
        return turns

    return strike


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
    assert waiting_words(window) == ["Loading MAMA-MIA..."]
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


def seen_docks(viewer):
    docks = viewer.window._qt_window.findChildren(QDockWidget, "MAMA-MIA")
    return [type(dock.widget()).__name__ for dock in docks if dock.isVisible()]


def cross(viewer):
    viewer.window._wrapped_dock_widgets["MAMA-MIA"].destroyOnClose()


def wait_for_pages(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.pages.still_to_come and not panel.docking.is_filling)
    qtbot.wait(60)


N_TURNS = 24
"""Until the panel is seen on page Score, its modules being there."""
BY_DAY = (1, 2, 9, N_TURNS)
TURNS = [
    n if n in BY_DAY else pytest.param(n, marks=pytest.mark.night) for n in range(1, N_TURNS + 1)
]


def test_the_turns_are_those_that_these_tests_strike(qtbot, window, choose, at_turn):
    turns = at_turn(0, lambda: None)
    choose(window, "Score")
    panel = wait_for_panel(qtbot, window)
    assert turns["n"] == N_TURNS
    panel.close_down()


@pytest.mark.parametrize("number", TURNS)
def test_a_cross_at_any_turn_takes_the_wish_back_until_the_next_click(
    qtbot, window, choose, at_turn, number
):
    turns = at_turn(number, lambda: cross(window))
    choose(window, "Score")
    qtbot.waitUntil(lambda: turns["n"] >= number)
    qtbot.waitUntil(lambda: not seen_docks(window) and not waiting_words(window))
    qtbot.wait(200)
    assert not seen_docks(window)
    choose(window, "Predict")
    panel = wait_for_panel(qtbot, window)
    wait_for_pages(qtbot, panel)
    assert panel.page == "Predict"
    assert panel.pages.shown.isVisible()
    assert made_panels(window) == [panel]
    assert list(window.window.dock_widgets) == ["MAMA-MIA"]
    assert seen_docks(window) == ["MamamiaDock"]
    panel.close_down()


@pytest.mark.parametrize("number", TURNS)
def test_docks_that_other_code_takes_away_at_any_turn_take_the_wish_back(
    qtbot, window, choose, at_turn, number
):
    turns = at_turn(number, lambda: window.window.remove_dock_widget("all"))
    with qtbot.captureExceptions() as errors:
        choose(window, "Score")
        qtbot.waitUntil(lambda: turns["n"] >= number)
        qtbot.wait(200)
    assert not errors
    assert not seen_docks(window)
    choose(window, "Predict")
    panel = wait_for_panel(qtbot, window)
    wait_for_pages(qtbot, panel)
    assert panel.page == "Predict"
    assert made_panels(window) == [panel]
    assert list(window.window.dock_widgets) == ["MAMA-MIA"]
    assert seen_docks(window) == ["MamamiaDock"]
    panel.close_down()


@pytest.mark.parametrize("number", TURNS)
def test_a_further_click_at_any_turn_shows_its_page(qtbot, window, choose, at_turn, number):
    asked = []
    at_turn(number, lambda: asked.append(entry.show_later(window, "Predict")))
    choose(window, "Score")
    qtbot.waitUntil(lambda: bool(asked))
    panel = wait_for_panel(qtbot, window)
    wait_for_pages(qtbot, panel)
    assert panel.page == "Predict"
    assert panel.pages.shown is panel.predict_page
    assert panel.predict_page.isVisible()
    assert made_panels(window) == [panel]
    panel.close_down()


@pytest.mark.parametrize("number", TURNS)
def test_a_folder_opened_at_any_turn_comes_in_the_panel(
    qtbot, window, choose, at_turn, number, small_data_set
):
    at_turn(number, lambda: window.open(str(small_data_set), plugin=PLUGIN))
    choose(window, "Score")
    panel = wait_for_panel(qtbot, window)
    qtbot.waitUntil(lambda: panel.session.opened is not None)
    wait_for_pages(qtbot, panel)
    assert panel.page == "Cases"
    assert made_panels(window) == [panel]
    panel.close_down()


@pytest.mark.parametrize("number", TURNS)
def test_a_window_closed_at_any_turn_leaves_nothing(
    qtbot, make_napari_viewer, choose, at_turn, number
):
    viewer = make_napari_viewer(show=True)
    turns = at_turn(number, viewer.close)
    with qtbot.captureExceptions() as errors:
        choose(viewer, "Score")
        qtbot.waitUntil(lambda: turns["n"] >= number)
        for _ in range(2):
            qtbot.wait(100)
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not errors
    left = [one.objectName() for one in QApplication.allWidgets()]
    assert "mamamia_dock" not in left
    assert "mamamia_waiting" not in left
    assert "mamamia_header" not in left


@pytest.mark.parametrize("number", TURNS)
def test_code_that_asks_for_it_at_any_turn_has_it_whole(qtbot, window, choose, at_turn, number):
    found = []
    at_turn(number, lambda: found.append(dock_of(window)))
    choose(window, "Score")
    qtbot.waitUntil(lambda: bool(found))
    (panel,) = made_panels(window)
    assert found == [panel]
    assert panel.page == "Score"
    assert panel.isVisible()
    wait_for_pages(qtbot, panel)
    for page in PAGES:
        panel.show_page(page)
        assert panel.pages.shown.isVisible(), page
    panel.close_down()


def test_a_page_that_is_opened_while_it_is_being_dressed_is_whole(qtbot, window, choose):
    choose(window, "Score")
    panel = wait_for_panel(qtbot, window)
    panel.pages.make_pages("Review")
    panel.show_page("Review")
    wait_for_pages(qtbot, panel)
    assert panel.pages.shown is panel.flow("Review").page
    assert panel.flow("Review").page.isVisible()
    panel.close_down()


def test_pages_come_a_turn_each_and_the_one_asked_for_at_once(qtbot, window, gate, choose):
    choose(window, "Report")
    gate.set()
    qtbot.waitUntil(lambda: bool(made_panels(window)) and made_panels(window)[0].isVisible())
    (panel,) = made_panels(window)
    assert panel.pages.shown is panel.report_page
    qtbot.waitUntil(lambda: not panel.pages.still_to_come and not panel.docking.is_filling)
    assert {page.name for page in list_pages() if page.flow} <= panel._flows.keys()
    assert "keys_panel" in vars(panel)
    qtbot.waitUntil(lambda: panel.docking._is_fitted)
    for page in PAGES:
        panel.show_page(page)
        assert panel.pages.shown.isVisible(), page
    panel.close_down()


@pytest.mark.parametrize("step", ["begin", "_make_tools", "_lay_out_lines", "_dress_panel"])
def test_a_panel_that_cannot_be_made_is_told_once(qtbot, window, gate, choose, monkeypatch, step):
    said = []
    monkeypatch.setattr(entry, "show_error", said.append)
    with monkeypatch.context() as broken:

        def fail(*_what, **_how):
            raise AttributeError("no such part")

        where, name = (place, "begin_panel") if step == "begin" else (MamamiaDock, step)
        broken.setattr(where, name, fail)
        choose(window, "Score")
        gate.set()
        qtbot.waitUntil(lambda: bool(said))
        qtbot.wait(100)
    (text,) = said
    assert text == (
        "expected the panel of MAMA-MIA, but AttributeError: no such part: choose the menu entry "
        "again; details are in napari's log"
    )
    assert not window.window.dock_widgets
    assert not made_panels(window)
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
    assert text.startswith("expected every module of MAMA-MIA to be installed, but ")
    assert "No module named 'scipy'" in text
    assert "reinstall it with" in text
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


def test_it_comes_and_opens_a_folder_where_napari_cannot_write_its_settings(
    qtbot, window, gate, monkeypatch, small_data_set
):
    """As in a folder that is read-only, which root may write all the same."""

    def refuse(*_what, **_how):
        raise PermissionError(13, "Permission denied", "settings.yaml")

    with monkeypatch.context() as read_only, qtbot.captureExceptions() as errors:
        read_only.setattr(type(get_settings()), "_maybe_save", refuse)
        call_later(window.window._qt_window, lambda: entry.show_later(window, "Score"))
        qtbot.waitUntil(lambda: bool(waiting_words(window)))
        gate.set()
        panel = wait_for_panel(qtbot, window)
        window.open(str(small_data_set), plugin=PLUGIN)
        qtbot.waitUntil(lambda: panel.session.opened is not None)
        wait_for_pages(qtbot, panel)
    assert seen_docks(window) == ["MamamiaDock"]
    assert not errors
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
    call_later(window.window._qt_window, lambda: command("napari-mamamia.import_dicom"))
    qtbot.waitUntil(lambda: bool(waiting_words(window)))
    assert waiting_words(window)
    gate.set()
    panel = wait_for_panel(qtbot, window)
    assert panel.pages.is_importing
    panel.close_down()


NO_WINDOW = "expected an open napari window for the MAMA-MIA panel, but found none: open one"


@pytest.mark.parametrize("viewer", [None, ViewerModel()])
def test_where_there_is_no_window_it_says_so(qapp, viewer):
    with pytest.raises(MamamiaError, match=NO_WINDOW):
        entry.show_later(viewer, "Score")
    assert not [one for one in QApplication.allWidgets() if isinstance(one, MamamiaDock)]


def test_its_commands_called_without_a_screen_say_so():
    code = """
from npe2 import PluginManager
manager = PluginManager.instance()
manager.discover()
commands = manager.commands
ids = "cases leaderboard review import_dicom predict_now score_now"
for name in ids.split():
    try:
        commands.execute(f"napari-mamamia.{name}")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
    alone = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=alone)
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert len(lines) == 6, made.stdout
    assert all(line.startswith(f"MamamiaError: {NO_WINDOW}") for line in lines), made.stdout


def test_a_click_imports_nothing_of_the_panel():
    code = (
        "import sys, napari_mamamia.menu, napari_mamamia.widgets.dock.entry; "
        "bad = [m for m in sys.modules if m.startswith(('napari_mamamia.services', "
        "'napari_mamamia.io', 'napari_mamamia.commands')) or m.endswith('dock.dock')]; "
        "sys.exit(str(bad) if bad else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_whether_a_folder_is_ours_is_told_without_what_opens_it(small_data_set):
    """napari asks in a turn of its window: all of it took 0.7 s to import."""
    (small_data_set.parent / "other").mkdir()  # a folder with a data set alone opens that one
    code = f"""
import sys
from napari_mamamia.commands import get_reader
assert get_reader({str(small_data_set)!r}).__name__ == "_read_folder"
assert get_reader({str(small_data_set.parent)!r}) is None
heavy = ("nibabel", "scipy", "pydicom", "nrrd", "napari_mamamia.services", "napari_mamamia.phantom")
sys.exit(", ".join(name for name in sys.modules if name.startswith(heavy)) or 0)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_an_application_that_goes_before_the_panel_ends_without_a_fault(small_data_set, tmp_path):
    """As at the end of a script, whose application is a local of a function."""
    code = f"""
import napari
from qtpy.QtCore import QEventLoop, QTimer
from qtpy.QtWidgets import QApplication
from napari_mamamia.widgets.dock.place import dock_of

def main():
    application = QApplication([])
    viewer = napari.Viewer(show=True)
    QTimer.singleShot(0, lambda: viewer.open({str(small_data_set)!r}, plugin="napari-mamamia"))
    loop, timer = QEventLoop(), QTimer()
    def look():
        panels = viewer.window._qt_window.findChildren(object_type, "mamamia_dock")
        if panels and panels[0].isVisible() and panels[0].session.opened is not None:
            if panels[0].docking._is_fitted:
                QTimer.singleShot(500, loop.quit)
    from qtpy.QtWidgets import QWidget as object_type
    timer.timeout.connect(look)
    timer.start(20)
    loop.exec()
    dock_of(viewer).close_down()
    viewer.close()

main()
print("over")
"""
    own = os.environ | {
        "NAPARI_CONFIG": str(tmp_path / "settings.yaml"),
        "MAMAMIA_CONFIG_DIR": str(tmp_path),
    }
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=own, timeout=300
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "over"), ended.stderr
