"""The one dock: made by whichever menu item comes first, in a window that has none yet."""

import pytest
from one_window import visible_docks

from napari_mamamia.widgets.dock.steps import PAGES

pytestmark = pytest.mark.window


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
    assert panels[0].page == PAGES[-1]


def test_all_pages_at_once_give_one_dock(qtbot, window):
    for page in PAGES:
        window.window.add_plugin_dock_widget("napari-mamamia", page, tabify=True)
    qtbot.waitUntil(lambda: list(window.window.dock_widgets) == ["MAMA-MIA"])
    assert visible_docks(window) == ["MAMA-MIA"]
