import pytest
from qtpy.QtGui import QCloseEvent
from qtpy.QtWidgets import QDockWidget

from napari_mamamia.io.preferences import Preferences, save_preferences
from napari_mamamia.widgets.dock import PAGES, MamamiaDock
from napari_mamamia.widgets.layers import Role

pytestmark = pytest.mark.window


def visible_docks(viewer):
    window = viewer.window.dock_widgets["MAMA-MIA"].window()
    return [
        dock.windowTitle() or dock.objectName()
        for dock in window.findChildren(QDockWidget)
        if isinstance(dock.widget(), MamamiaDock) and dock.isVisible()
    ]


def test_each_menu_item_opens_the_one_dock_on_its_page(qtbot, window, menu_item, the_dock):
    for page in (*PAGES, "Cases", "Predict", "Cases", "Cases"):
        menu_item(window, "MAMA-MIA", page).trigger()
        qtbot.waitUntil(lambda: the_dock(window) is not None and the_dock(window).isVisible())
        qtbot.wait(20)
        assert visible_docks(window) == ["MAMA-MIA"], page
        assert list(window.window.dock_widgets) == ["MAMA-MIA"]
        assert the_dock(window).page == page


def test_the_panel_is_the_same_one_every_time(qtbot, window):
    panels = []
    for page in PAGES:
        panels.append(window.window.add_plugin_dock_widget("napari-mamamia", page)[1])
        qtbot.wait(20)
    assert len(set(map(id, panels))) == 1
    assert panels[0].page == "Export"


def test_all_pages_at_once_give_one_dock(qtbot, window):
    for page in PAGES:
        window.window.add_plugin_dock_widget("napari-mamamia", page, tabify=True)
    qtbot.waitUntil(lambda: list(window.window.dock_widgets) == ["MAMA-MIA"])
    assert visible_docks(window) == ["MAMA-MIA"]


def test_a_hidden_dock_comes_back_on_the_page_asked_for(qtbot, window, menu_item, docked):
    docked.home.close()
    assert not docked.isVisible()
    menu_item(window, "MAMA-MIA", "Score").trigger()
    qtbot.waitUntil(docked.isVisible)
    assert docked.page == "Score"
    assert visible_docks(window) == ["MAMA-MIA"]


@pytest.fixture
def at_work(qtbot, docked, small_data_set):
    """The dock with case A_2 open, the list filtered, and a stroke that is not saved."""
    save_preferences(Preferences(reader="Ana"))
    docked.session.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    qtbot.waitUntil(lambda: docked.session.case is not None, timeout=20_000)
    qtbot.waitUntil(lambda: docked.session.case.is_loaded, timeout=20_000)
    docked.cases_page.search.setText("A_")
    docked.show_page("Refine")
    docked.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: docked.measure.images is not None, timeout=20_000)
    docked.editing.layer.data[2, 10, 10] = 1
    docked.editing.layer.refresh()
    return docked


def mask_file(small_data_set):
    beside = small_data_set.with_name(f"{small_data_set.name}-workspace")
    return beside / "refined" / "Ana" / "A_2.nii.gz"


def test_the_window_saves_before_it_closes_also_while_its_dock_floats(
    qtbot, window, at_work, small_data_set
):
    at_work.home.setFloating(True)
    at_work.editing.layer.data[2, 11, 11] = 1
    at_work.eventFilter(at_work._main_window, QCloseEvent())  # as Qt asks before it closes
    assert mask_file(small_data_set).exists()


def test_a_dock_that_was_removed_comes_back_with_all_that_was_open(
    qtbot, window, menu_item, docked, the_dock
):
    docked.cases_page.search.setText("A_")
    window.window.remove_dock_widget(docked.home)
    qtbot.waitUntil(lambda: docked.home is None)
    menu_item(window, "MAMA-MIA", "Cases").trigger()
    qtbot.waitUntil(lambda: the_dock(window) is docked and docked.isVisible())
    assert docked.cases_page.search.text() == "A_"


def test_closing_a_floating_dock_stops_nothing(qtbot, window, at_work):
    at_work.home.setFloating(True)
    qtbot.wait(30)
    at_work.home.close()
    assert at_work.editing.live is not None


def test_a_floating_dock_stays_floating(qtbot, window, menu_item, docked):
    docked.home.setFloating(True)
    menu_item(window, "MAMA-MIA", "Predict").trigger()
    qtbot.wait(30)
    assert docked.home.isFloating()
    assert docked.page == "Predict"


def test_the_dock_leaves_the_image_most_of_the_room(qtbot, window, docked):
    qtbot.wait(50)
    assert docked.width() <= 0.3 * docked.window().width()
