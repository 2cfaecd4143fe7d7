import pytest
from qtpy.QtWidgets import QDockWidget

from napari_mamamia.widgets.dock import PAGES, MamamiaDock

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


def test_a_floating_dock_stays_floating(qtbot, window, menu_item, docked):
    docked.home.setFloating(True)
    menu_item(window, "MAMA-MIA", "Predict").trigger()
    qtbot.wait(30)
    assert docked.home.isFloating()
    assert docked.page == "Predict"


def test_the_dock_leaves_the_image_most_of_the_room(qtbot, window, docked):
    qtbot.wait(50)
    assert docked.width() <= 0.3 * docked.window().width()
