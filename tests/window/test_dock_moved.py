"""The one dock hidden, floating, removed: it comes back with all that was open."""

import pytest
from one_window import visible_docks

from napari_mamamia.widgets.base.layers import Role

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.fixture
def at_work(qtbot, docked, small_data_set):
    """The dock with case A_2 open for editing."""
    docked.session.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    qtbot.waitUntil(lambda: docked.session.case is not None and docked.session.case.is_loaded)
    docked.show_page("Refine")
    docked.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    return docked


@pytest.mark.night
def test_a_hidden_dock_comes_back_on_the_page_asked_for(qtbot, window, menu_item, docked):
    docked.docking.home.close()
    assert not docked.isVisible()
    menu_item(window, "MAMA-MIA", "Score").trigger()
    qtbot.waitUntil(docked.isVisible)
    assert docked.page == "Score"
    assert visible_docks(window) == ["MAMA-MIA"]


def test_a_dock_that_was_removed_comes_back_with_all_that_was_open(
    qtbot, window, menu_item, docked, the_dock
):
    docked.cases_page.search.setText("A_")
    window.window.remove_dock_widget(docked.docking.home)
    qtbot.waitUntil(lambda: docked.docking.home is None)
    menu_item(window, "MAMA-MIA", "Cases").trigger()
    qtbot.waitUntil(lambda: the_dock(window) is docked and docked.isVisible())
    assert docked.cases_page.search.text() == "A_"


def test_closing_a_floating_dock_stops_nothing(qtbot, window, at_work):
    at_work.docking.home.setFloating(True)
    qtbot.wait(30)
    at_work.docking.home.close()
    assert at_work.editing.live is not None


def test_a_floating_dock_stays_floating(qtbot, window, menu_item, docked):
    docked.docking.home.setFloating(True)
    menu_item(window, "MAMA-MIA", "Predict").trigger()
    qtbot.wait(30)
    assert docked.docking.home.isFloating()
    assert docked.page == "Predict"


def test_the_dock_leaves_the_image_most_of_the_room(qtbot, window, docked):
    qtbot.wait(50)
    assert docked.width() <= 0.3 * docked.window().width()
