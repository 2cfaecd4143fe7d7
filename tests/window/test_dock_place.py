"""The one dock: made by whichever menu item comes first, in a window that has none yet."""

import pytest
from one_window import visible_docks

from napari_mamamia.widgets.base.pages import list_pages
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.dock.place import dock_of
from napari_mamamia.widgets.dock.steps import PAGES

pytestmark = pytest.mark.window
FEW = (PAGES[0], PAGES[2], PAGES[-1])
"""By day: each page is another name for the same command, and the menu below asks for them all."""
ALL_PAGES = pytest.mark.parametrize(
    "pages", [FEW, pytest.param(PAGES, marks=pytest.mark.night)], ids=["few", "all"]
)


def test_each_menu_item_opens_the_one_dock_on_its_page(qtbot, window, menu_item, the_dock):
    panels = set()
    for page in (*PAGES, "Cases", "Predict", "Cases", "Cases"):
        menu_item(window, "MAMA-MIA", page).trigger()
        qtbot.waitUntil(lambda: the_dock(window) is not None and the_dock(window).isVisible())
        qtbot.wait(20)
        assert visible_docks(window) == ["MAMA-MIA"], page
        assert list(window.window.dock_widgets) == ["MAMA-MIA"]
        assert the_dock(window).page == page
        panels.add(the_dock(window))
    assert len(panels) == 1


def test_in_a_window_no_page_is_still_to_be_made(window, the_dock):
    window.window.add_plugin_dock_widget("napari-mamamia", PAGES[0])
    panel = the_dock(window)
    assert {page.name for page in list_pages() if page.flow} <= panel._flows.keys()
    assert "keys_panel" in vars(panel)


@pytest.mark.night
@ALL_PAGES
def test_the_panel_is_the_same_one_every_time(qtbot, window, pages):
    panels = []
    for page in pages:
        left, width = [], panels[-1].width() if panels else None
        guest = window.window.add_plugin_dock_widget("napari-mamamia", page)[1]
        guest.destroyed.connect(left.append)
        panels.append(dock_of(window))
        home = panels[0].parentWidget()
        qtbot.waitUntil(lambda left=left: bool(left))
        qtbot.wait(20)
        assert panels[0].parentWidget() is home, "no move into another dock"
        assert width in (None, panels[0].width())
        assert list(window.window.dock_widgets) == visible_docks(window) == ["MAMA-MIA"]
    assert len(set(map(id, panels))) == 1
    assert panels[0].page == pages[-1]


@pytest.mark.night
@ALL_PAGES
def test_all_pages_at_once_give_one_dock(qtbot, window, pages):
    for page in pages:
        window.window.add_plugin_dock_widget("napari-mamamia", page, tabify=True)
    qtbot.waitUntil(lambda: list(window.window.dock_widgets) == ["MAMA-MIA"])
    assert visible_docks(window) == ["MAMA-MIA"]


def test_pages_are_measured_a_turn_before_the_window_is_fitted(qtbot, window, monkeypatch):
    measured, by_then = [], []
    real = PageArea.whole_width.fget
    spy = property(lambda area: measured.append(area) or real(area))
    monkeypatch.setattr(PageArea, "whole_width", spy)
    window.window.add_plugin_dock_widget("napari-mamamia", "Cases")
    panel = dock_of(window)
    panel.docking.fitting.connect(lambda: by_then.append(len(measured)))
    measured.clear()
    qtbot.waitUntil(lambda: bool(by_then))
    assert by_then[0] >= len(PAGES)
    panel.close_down()
