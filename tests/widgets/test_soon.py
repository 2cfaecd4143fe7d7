"""What is called a turn later, and what it was for being gone by then."""

import re
import subprocess
import sys

import pytest
from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QApplication
from tests.source import SOURCE

from napari_mamamia.widgets.controls.call_later import call_later

COLLECTED = """
import gc, threading
from qtpy.QtWidgets import QApplication, QWidget
from napari_mamamia.widgets.controls.call_later import call_later
application = QApplication([])
gc.disable()
called = []

class Panel(QWidget):
    def __init__(self):
        super().__init__()
        self.itself = self  # as a panel is: taken apart by a collection, some time or other
        word = "called"
        call_later(self, lambda: called.append((word, self.itself)))
        call_later(self, lambda: called.append((word, self.itself)), after_ms=600_000)

for _ in range(20):
    Panel()
thread = threading.Thread(target=gc.collect)
thread.start()
thread.join()
application.processEvents()
assert {word for word, _ in called} == {"called"} and len(called) == 20, called
print("whole", flush=True)
"""


@pytest.mark.parametrize("after_ms", [0, 20])
def test_it_is_called_once_and_not_at_once(qtbot, after_ms):
    owner, calls = QObject(), []
    call_later(owner, lambda: calls.append(True), after_ms=after_ms)
    assert not calls
    qtbot.waitUntil(lambda: calls == [True])
    qtbot.waitUntil(lambda: not owner.findChildren(QTimer))
    assert calls == [True]


def test_it_is_not_called_for_an_owner_that_is_gone(qtbot):
    owner, other, calls = QObject(), QObject(), []
    call_later(owner, lambda: calls.append("gone"))
    call_later(other, lambda: calls.append("there"))
    owner.deleteLater()
    QApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete)
    qtbot.waitUntil(lambda: bool(calls))
    qtbot.wait(10)
    assert calls == ["there"]


def test_a_collection_in_another_thread_empties_nothing_that_is_called_later():
    made = subprocess.run(
        [sys.executable, "-c", COLLECTED], capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stdout.strip()) == (0, "whole"), made.stderr[-2000:]


def test_no_timer_calls_a_function_of_its_own():
    """A method is held weakly by PyQt and is not called once its object was collected."""
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"timeout\.connect\(\s*(lambda|$)", line)
    ]
    assert found == []
