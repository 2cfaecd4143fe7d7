"""A progress bar that is redrawn only by the event loop."""

from collections.abc import Iterator
from contextlib import contextmanager

from qtpy.QtWidgets import QProgressBar  # noqa: TID251 - what is mended here


class ProgressBar(QProgressBar):
    """A progress bar without text, whose value and range may be set at any time.

    Qt's bar redraws itself and all pending parts of the window immediately, even in the middle of a
    change. If layers are being removed, napari's layer list then raises an error, and PyQt6 aborts
    the program.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setTextVisible(False)

    def setRange(self, minimum: int, maximum: int) -> None:
        """Set the range; a range of 0 to 0 means that the length is unknown."""
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
