"""A progress bar that is drawn only by the event loop."""

from collections.abc import Iterator
from contextlib import contextmanager

from qtpy.QtWidgets import QProgressBar  # noqa: TID251 - what is mended here


class ProgressBar(QProgressBar):
    """Qt's bar without its text; value and range may be set at any time.

    Qt's own bar redraws at once, together with all pending updates of the window, in the middle of
    a change. napari's layer list raises there while layers are removed, and PyQt6 ends the program
    for that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setTextVisible(False)

    def setRange(self, minimum: int, maximum: int) -> None:
        """Set the range; 0 to 0 is a job of unknown length."""
        with self._drawn_later():
            super().setRange(minimum, maximum)

    def setValue(self, value: int) -> None:
        """Set the progress."""
        with self._drawn_later():
            super().setValue(value)

    @contextmanager
    def _drawn_later(self) -> Iterator[None]:
        self.setUpdatesEnabled(False)
        try:
            yield
        finally:
            self.setUpdatesEnabled(True)
