"""Steps that each take a turn of the event loop, so that the window answers in between."""

from collections.abc import Callable, Iterable

from qtpy.QtCore import QObject, QTimer

__all__ = ["Turns"]


class Turns(QObject):
    """Takes one step a turn; new steps replace those that are left."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: list[Callable[[], object]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._take_one)

    def start(self, steps: Iterable[Callable[[], object]]) -> None:
        """Begin with the next turn."""
        self._steps = list(steps)
        if self._steps:
            self._timer.start()
        else:
            self._timer.stop()

    def _take_one(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        if not self._steps:
            self._timer.stop()
