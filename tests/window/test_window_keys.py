"""The keyboard in a real window: a key of the table acts, whatever control was clicked before."""

import pytest
from one_window import forget_mask, wait_open
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractSlider, QApplication, QComboBox

from napari_mamamia.services.case.hanging import HangingStep
from napari_mamamia.widgets.adapter.adapter import canvas_widget
from napari_mamamia.widgets.controls.tab_order import order_controls

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.fixture
def reading(qtbot, docked, small_data_set):
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    docked.viewer.window._qt_window.activateWindow()
    yield docked
    docked.hanging.leave()
    qtbot.waitUntil(lambda: docked.jobs.wait(0) and not docked.planes.is_building)
    docked.active_tool.turn_off()
    forget_mask(docked)


def press(qtbot, control, key):
    control.setFocus()
    qtbot.waitUntil(control.hasFocus)
    QTest.keyClick(control, key)


def test_a_key_for_the_image_gives_no_answer_that_nobody_gave(qtbot, reading):
    reading.show_page("Findings")
    findings = reading.kinetics.findings
    qtbot.waitUntil(lambda: bool(findings._facts.lesions), timeout=15_000)
    shown = lambda: [box for box in reading.findChildren(QComboBox) if box.isVisible()]  # noqa: E731
    qtbot.waitUntil(lambda: len(shown()) > 1)
    names = [box.objectName() for box in shown()]
    for name in names:
        for key in (Qt.Key.Key_M, Qt.Key.Key_I, Qt.Key.Key_I, Qt.Key.Key_PageDown):
            box = reading.findChild(QComboBox, name)
            before = box.currentText()
            press(qtbot, box, key)
            assert reading.findChild(QComboBox, name).currentText() == before, (name, key)
    assert all(answer.is_computed for answer in findings._findings.answers.items)


def test_a_key_acts_whatever_choice_or_slider_was_clicked_before(qtbot, reading):
    reading.show_page("View")
    kinds = QComboBox, QAbstractSlider
    controls = [
        one
        for kind in kinds
        for one in reading.findChildren(kind)
        if one.isVisible() and one.isEnabled() and one.focusPolicy() & Qt.FocusPolicy.TabFocus
    ]
    assert {kind for kind in kinds for one in controls if isinstance(one, kind)} == set(kinds)
    for control in controls:
        phase = reading.viewer.dims.current_step[0]
        press(qtbot, control, Qt.Key.Key_Period)
        assert reading.viewer.dims.current_step[0] == phase + 1, control.objectName()
        QTest.keyClick(control, Qt.Key.Key_Comma)
    press(qtbot, controls[0], Qt.Key.Key_PageDown)
    qtbot.waitUntil(lambda: reading.hanging.step is HangingStep.MIP)


def test_an_open_list_and_the_arrows_choose_by_keys(qtbot, reading):
    reading.show_page("View")
    box = reading.findChild(QComboBox, "view_contrast")
    before = box.currentIndex()
    press(qtbot, box, Qt.Key.Key_Down)
    assert box.currentIndex() == before + 1
    press(qtbot, box, Qt.Key.Key_Up)
    assert box.currentIndex() == before


def test_the_list_of_cases_is_gone_through_and_a_case_opened_by_keys_alone(
    qtbot, docked, small_data_set
):
    docked.viewer.window._qt_window.activateWindow()
    docked.reading.enter()
    try:
        docked.open_data_set(small_data_set)
        table = docked.cases_page.table
        qtbot.waitUntil(table.hasFocus)
        assert docked.cases_page.queue()[table.currentIndex().row()] == "A_1"
        # one of a row of steps is a stop, arrows go on to the others
        steps = {f"step_{one}" for one in ("read", "mask", "check")}
        wanted = {one.objectName() for one in order_controls(docked)} - steps
        met = [table]
        while len(met) < 3 * len(wanted):
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
            met.append(QApplication.focusWidget())
            if met[-1] is table:
                break
        assert met[-1] is table, "Tab comes round"
        assert wanted <= {one.objectName() for one in met}
        QTest.keyClick(table, Qt.Key.Key_Down)
        QTest.keyClick(table, Qt.Key.Key_Return)
        wait_open(qtbot, docked, "A_2")
    finally:
        docked.reading.leave()
        qtbot.waitUntil(lambda: docked.jobs.wait(0))


def test_the_picture_keeps_the_keyboard_as_views_come_and_after_a_name_was_asked_for(
    qtbot, reading
):
    canvas = canvas_widget(reading.viewer)
    canvas.setFocus()
    qtbot.waitUntil(canvas.hasFocus)
    QTest.keyClick(canvas, Qt.Key.Key_J)
    qtbot.waitUntil(lambda: not reading.planes.is_building and len(reading.planes.views()) > 1)
    assert canvas_widget(reading.viewer).hasFocus()
    reading.header.ask_reader("Ana")
    field = reading.header.reader_name
    qtbot.waitUntil(field.hasFocus)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert canvas_widget(reading.viewer).hasFocus()
    QTest.keyClick(canvas_widget(reading.viewer), Qt.Key.Key_J)
