"""Work that is spread over event-loop iterations, so that the window stays responsive."""

from collections.abc import Callable, Iterable

from qtpy.QtCore import QObject, Qt, QTimer
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.program.garbage import collect_if_due

_IDLE_MS = 1000


class EventLoopSteps(QObject):
    """A runner that executes one step per event-loop iteration; new steps replace pending steps."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: list[Callable[[], object]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._take_one)

    def start(self, steps: Iterable[Callable[[], object]]) -> None:
        """Start the steps in the next event-loop iteration."""
        self._steps = list(steps)
        if self._steps:
            self._timer.start()
        else:
            self._timer.stop()

    def _take_one(self) -> None:
        if self._steps:
            # The step is removed from the list before it runs, because it may start other steps.
            self._steps.pop(0)()
        if not self._steps:
            self._timer.stop()


class IdleCollection(QObject):
    """Garbage collection that runs between two user actions rather than during a stroke."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(_IDLE_MS)
        self._timer.timeout.connect(self._collect_garbage)
        self._timer.start()

    @staticmethod
    def _collect_garbage() -> None:
        if QApplication.mouseButtons() == Qt.MouseButton.NoButton:
            collect_if_due()
