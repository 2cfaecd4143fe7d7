from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtCore import QRegularExpression, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QPushButton

from napari_mamamia.widgets.cases.page import CasesPage
from napari_mamamia.widgets.controls.page_area import PageArea


@pytest.fixture
def page(qtbot):
    made = CasesPage()
    qtbot.addWidget(made)
    made.resize(340, 700)
    made.show()
    return made


@pytest.fixture
def filled(page, world):
    page.show_data_set(Path("/data/set"), "3 case(s)", [world.row(c) for c in world.case_ids])
    return page


def test_with_nothing_open_the_next_step_is_to_open_a_folder(page):
    shown = [button for button in page.findChildren(QPushButton) if button.isVisible()]
    assert [one.objectName() for one in shown if one.property("primary")] == ["start_folder"]
    assert {"start_zip", "start_study", "start_demo"} < {one.objectName() for one in shown}
    assert not page.table.isVisible()
    assert not page.browse.isVisible()


def test_recent_data_sets_are_buttons_of_the_start(page, qtbot):
    page.set_recent([Path(f"/data/set {number}") for number in range(7)])
    recent = page.start.findChildren(QPushButton, QRegularExpression("^start_recent_"))
    assert [one.text() for one in recent] == [f"…/data/set {number}" for number in range(5)]
    with qtbot.waitSignal(page.folder_chosen) as heard:
        QTest.mouseClick(recent[2], Qt.MouseButton.LeftButton)
    assert heard.args == [Path("/data/set 2")]
    page.set_recent([])
    assert not page.start.findChildren(QPushButton, QRegularExpression("^start_recent_"))


def test_with_a_data_set_open_the_table_stands_in_front(filled):
    assert filled.table.isVisible()
    assert not filled.start.isVisible()
    assert not filled.browse.property("primary")
    assert filled.queue() == ["A_1", "A_2", "B_1"]


@pytest.mark.parametrize("room", [20, 400])
def test_on_a_low_screen_the_table_gives_way_and_its_buttons_stay_in_sight(qtbot, world, room):
    page = CasesPage()
    area = PageArea(page, "cases_area")
    qtbot.addWidget(area)
    page.show_data_set(Path("/data/set"), "3 case(s)", [world.row(c) for c in world.case_ids])
    area.show()
    qtbot.waitExposed(area)
    area.setFixedSize(1100, page.minimumSizeHint().height() + room)
    qtbot.waitUntil(lambda: page.height() == area.viewport().height(), timeout=5000)
    corner = page.open.mapTo(area, page.open.rect().bottomRight())
    assert area.rect().contains(corner)
    assert page.table.height() >= page.table.minimumSizeHint().height() + room // 2


def test_enter_in_the_folder_field_opens_it(page, qtbot):
    page.folder.setText("/data/my set")
    with qtbot.waitSignal(page.folder_chosen) as heard:
        QTest.keyClick(page.folder, Qt.Key.Key_Return)
    assert heard.args == [Path("/data/my set")]


def test_double_click_and_enter_open_a_case(filled, qtbot):
    table = filled.table
    where = table.visualRect(filled.model.index(1, 0)).center()
    with qtbot.waitSignal(filled.case_chosen) as heard:
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
        QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert heard.args == ["A_2"]
    with qtbot.waitSignal(filled.case_chosen) as heard:
        QTest.keyClick(table, Qt.Key.Key_Down)
        QTest.keyClick(table, Qt.Key.Key_Return)
    assert heard.args == ["B_1"]


def test_a_click_on_a_title_sorts_and_the_queue_follows(filled, qtbot):
    with qtbot.waitSignal(filled.queue_changed):
        filled.table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    assert filled.queue() == ["B_1", "A_2", "A_1"]


def test_search_narrows_the_queue(filled):
    filled.search.setText("A_")
    assert filled.queue() == ["A_1", "A_2"]


def test_a_clinical_column_can_be_added_and_taken_away(filled):
    before = filled.model.columnCount()
    action = next(a for a in filled.columns.menu().actions() if a.text() == "age")
    action.setChecked(True)
    assert filled.model.columnCount() == before + 1
    assert filled.model.index(0, before).data() == "40"
    action.setChecked(False)
    assert filled.model.columnCount() == before


def test_recent_data_sets_are_offered(page, qtbot):
    assert not page.recent.isEnabled()
    page.set_recent([Path("/data/one"), Path("/data/two")])
    with qtbot.waitSignal(page.folder_chosen) as heard:
        page.recent.menu().actions()[1].trigger()
    assert heard.args == [Path("/data/two")]


def test_the_open_case_is_selected_in_the_table(filled):
    filled.set_current("B_1")
    assert filled.table.currentIndex().row() == 2


def test_letters_pressed_on_the_table_are_left_to_the_window(filled):
    filled.table.setFocus()
    filled.set_current("A_1")
    QTest.keyClick(filled.table, Qt.Key.Key_B)
    assert filled.table.currentIndex().row() == 0


def test_the_first_case_that_nobody_refined_is_chosen_and_the_button_opens_it(filled, qtbot, world):
    rows = [world.row(one) for one in world.case_ids]
    filled.show_data_set(Path("/data/set"), "", [replace(rows[0], refined=("Ana",)), *rows[1:]])
    filled.choose_next()
    with qtbot.waitSignal(filled.case_chosen) as heard:
        filled.open.click()
    assert heard.args == ["A_2"]
    filled.table.selectRow(2)
    filled.choose_next()
    assert filled.table.currentIndex().row() == 2, "a choice stays"


def test_while_something_is_being_opened_nothing_else_is_offered(page):
    page.show_opening("exam.zip")
    assert not page.start.isVisible()
    assert "exam.zip" in page.note.text()
    page.show_opening("")
    assert page.start.isVisible()


def test_with_a_list_open_the_next_opening_leaves_it_on_the_page(filled):
    note = filled.note.text()
    filled.show_opening("other")
    filled.show_opening("")
    assert filled.table.isVisible()
    assert not filled.start.isVisible()
    assert filled.note.text() == note
