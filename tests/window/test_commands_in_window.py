import json

import pytest
from napari._app_model import get_app_model

from napari_mamamia.widgets.base.layers import Role

pytestmark = pytest.mark.window


@pytest.mark.night
def test_a_folder_opened_by_napari_is_shown_in_the_dock(qtbot, window, small_data_set, the_dock):
    window.open(str(small_data_set), plugin="napari-mamamia")
    panel = the_dock(window)
    qtbot.waitUntil(lambda: panel.session.opened is not None, timeout=10_000)
    assert panel.page == "Cases"
    assert panel.isVisible()
    assert panel.cases_page.queue() == ["A_1", "A_2", "B_1"]
    panel.close_down()


@pytest.mark.night
def test_sample_data_are_the_open_case_of_the_dock(qtbot, window, docked):
    window.open_sample("napari-mamamia", "axial")
    qtbot.waitUntil(lambda: docked.session.case_id == "PHANTOM_AXIAL")
    assert docked.session.mask(Role.REFERENCE) is not None
    assert docked.predict_page.start.isEnabled()


@pytest.mark.night
def test_the_commands_of_the_layers_menu_are_there_and_work(qtbot, window, docked, small_data_set):
    docked.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(
        lambda: docked.session.case is not None and docked.session.case.is_loaded, timeout=15_000
    )
    commands = get_app_model().commands
    commands.execute_command("napari-mamamia.predict_now")
    assert docked.page == "Predict"
    qtbot.waitUntil(lambda: docked.session.mask(Role.PREDICTION) is not None, timeout=30_000)
    commands.execute_command("napari-mamamia.score_now")
    assert docked.page == "Score"


@pytest.mark.night  # by day each started program of tests/door is opened so
def test_the_command_line_names_the_data_set_in_the_environment(
    qtbot, window, small_data_set, monkeypatch, menu_item, the_dock
):
    monkeypatch.setenv("MAMAMIA_SOURCES", json.dumps([str(small_data_set)]))
    monkeypatch.setenv("MAMAMIA_CASE", "B_1")
    menu_item(window, "MAMA-MIA", "Cases").trigger()
    panel = the_dock(window)
    qtbot.waitUntil(lambda: panel.session.case_id == "B_1", timeout=15_000)
    panel.close_down()
