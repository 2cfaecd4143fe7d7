"""The mouse wheel scrolls a page, also a page inside a page, and turns no number on the way."""

import pytest
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QWheelEvent
from qtpy.QtWidgets import QApplication, QLabel, QPushButton, QSpinBox

from napari_mamamia.widgets.controls.controls import column
from napari_mamamia.widgets.controls.page_area import PageArea


def turn_wheel(widget):
    place = QPointF(widget.rect().center())
    turn, none = QPoint(0, -240), Qt.MouseButton.NoButton
    keys, phase = Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(place, widget.mapToGlobal(place), QPoint(), turn, none, keys, phase, False)
    QApplication.sendEvent(widget, event)


@pytest.fixture
def areas(qtbot):
    """A low page with a long page inside, which ends with a number."""
    labels = [QLabel(f"line {k}") for k in range(40)]
    inner = PageArea(column(*labels, QSpinBox()), "inner", is_part=True, is_fitted=True)
    outer = PageArea(column(inner, QPushButton("Decide")), "outer")
    qtbot.addWidget(outer)
    outer.resize(300, 300)
    outer.show()
    qtbot.waitExposed(outer)
    return outer, inner


def test_the_wheel_scrolls_the_inner_page(areas):
    _outer, inner = areas
    assert inner.verticalScrollBar().maximum() > 0
    turn_wheel(inner.viewport())
    assert inner.verticalScrollBar().value() > 0


def test_the_wheel_over_a_number_that_was_not_clicked_leaves_it(areas):
    _outer, inner = areas
    number = inner.findChild(QSpinBox)
    number.setValue(7)
    inner.setFocus()
    turn_wheel(number)
    assert number.value() == 7
