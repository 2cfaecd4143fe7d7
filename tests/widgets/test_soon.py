"""What is called a turn later, and what it was for being gone by then."""

import pytest
from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QApplication

from napari_mamamia.widgets.controls.soon import call_soon


@pytest.mark.parametrize("after_ms", [0, 20])
def test_it_is_called_once_and_not_at_once(qtbot, after_ms):
    owner, calls = QObject(), []
    call_soon(owner, lambda: calls.append(True), after_ms=after_ms)
    assert not calls
    qtbot.waitUntil(lambda: calls == [True])
    qtbot.waitUntil(lambda: not owner.findChildren(QTimer))
    assert calls == [True]


def test_it_is_not_called_for_an_owner_that_is_gone(qtbot):
    owner, other, calls = QObject(), QObject(), []
    call_soon(owner, lambda: calls.append("gone"))
    call_soon(other, lambda: calls.append("there"))
    owner.deleteLater()
    QApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete)
    qtbot.waitUntil(lambda: bool(calls))
    qtbot.wait(10)
    assert calls == ["there"]
