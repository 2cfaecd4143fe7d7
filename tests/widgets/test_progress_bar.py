"""A bar of progress: what a call of it may not do to the rest of its window."""

import pytest
from qtpy.QtWidgets import QProgressBar, QVBoxLayout, QWidget  # noqa: TID251 - to see that it does

from napari_mamamia.widgets.controls.progress_bar import ProgressBar


class CountedWidget(QWidget):
    """A widget that counts how often it is drawn."""

    drawn = 0

    def paintEvent(self, event):
        self.drawn += 1


def shown_window(qtbot, bar):
    """Return a window on screen with a bar, and a widget beside it that waits to be drawn."""
    window, other = QWidget(), CountedWidget()
    room = QVBoxLayout(window)
    room.addWidget(bar)
    room.addWidget(other)
    bar.setRange(0, 1000)
    bar.setValue(400)
    qtbot.addWidget(window)
    window.resize(300, 200)
    window.show()
    qtbot.waitUntil(lambda: other.drawn > 0)
    qtbot.wait(50)
    other.update()
    other.drawn = 0
    return window, other


@pytest.mark.parametrize(
    "change",
    [lambda bar: bar.setRange(0, 0), lambda bar: bar.setValue(900)],
    ids=["range", "value"],
)
def test_nothing_of_the_window_is_drawn_before_the_event_loop_turns(qtbot, change):
    bar = ProgressBar()
    _window, other = shown_window(qtbot, bar)
    change(bar)
    assert other.drawn == 0
    qtbot.waitUntil(lambda: other.drawn > 0)
    assert bar.updatesEnabled()


def test_qt_draws_the_whole_window_at_once(qtbot):
    bar = QProgressBar()
    bar.setTextVisible(False)
    _window, other = shown_window(qtbot, bar)
    bar.setRange(0, 0)
    assert other.drawn > 0
