"""A bar of progress that is drawn when the event loop turns, and not before."""

from collections.abc import Iterator
from contextlib import contextmanager

from qtpy.QtWidgets import QProgressBar  # noqa: TID251 - what is mended here


class ProgressBar(QProgressBar):
    """Qt's bar without its text, whose value and range may be set at any time.

    Qt's own draws at once, and with it all of the window that waits to be drawn: in the midst of
    whatever is being changed. Napari's list of layers raises there while layers are taken away, and
    PyQt6 ends the program for that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setTextVisible(False)

    def setRange(self, minimum: int, maximum: int) -> None:
        """Set the range; from 0 to 0 is that of a work whose end is not known."""
        with self._drawn_later():
            super().setRange(minimum, maximum)

    def setValue(self, value: int) -> None:
        """Set how far the work is."""
        with self._drawn_later():
            super().setValue(value)

    @contextmanager
    def _drawn_later(self) -> Iterator[None]:
        self.setUpdatesEnabled(False)
        try:
            yield
        finally:
            self.setUpdatesEnabled(True)
