"""User messages for errors and warnings; tracebacks go to the log."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from napari.utils.notifications import show_error, show_warning
from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Cancelled
from napari_mamamia.core.texts import tr

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """Outcome of a job that was completed."""

    result: T


@dataclass(frozen=True, slots=True)
class Stopped:
    """Outcome of a job that was stopped by the user or replaced by a newer request."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Outcome of a job that ended with an error."""

    error: Exception


Outcome: TypeAlias = Finished[T] | Stopped | Failed


def outcome_of(work: Callable[[], T]) -> Outcome[T]:
    """Run `work` and return its outcome, so that no exception escapes the worker thread."""
    try:
        return Finished(work())
    except Cancelled:
        return Stopped()
    except Exception as error:  # noqa: BLE001 - the border between a job and the window
        return Failed(error)


def plain_text(error: Exception) -> str:
    """Return the text of an error for the user; errors of other libraries are explained."""
    if isinstance(error, MamamiaError):
        return str(error)
    if isinstance(error, MemoryError):
        return tr("there is not enough memory: close other programs or layers, and try again")
    return tr(
        "an unexpected error occurred ({_}: {error}); your work is kept. Try again, and report "
        "the error if it recurs",
        _=type(error).__name__,
        error=error,
    )


class Level(StrEnum):
    """Severity of a message."""

    HINT = "hint"
    WARNING = "warning"
    ERROR = "error"


class Notifier(QObject):
    """A notifier that shows each message in the header, and errors also as napari notifications.

    The signal `said` carries the level and the text after `cover` has removed words that a blinded
    reader must not see, for example in file names. `withdrawn` carries the text of a hint that no
    longer applies.
    """

    said = Signal(object, str)
    withdrawn = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cover: Callable[[str], str] = str

    def hint(self, text: str) -> None:
        """Show a hint in the header only."""
        self.said.emit(Level.HINT, self.cover(text))

    def withdraw(self, text: str) -> None:
        """Remove a hint if it is still shown, because it no longer applies."""
        self.withdrawn.emit(self.cover(text))

    def warn(self, text: str) -> None:
        """Show a warning about unusual data."""
        _log.warning("%s", text)
        self.said.emit(Level.WARNING, self.cover(text))

    def warn_loudly(self, text: str) -> None:
        """Show a warning that the user should not miss."""
        self.warn(text)
        show_warning(self.cover(text))

    def fail(self, doing: str, error: Exception) -> None:
        """Show that `doing` failed and why; log the traceback of an unexpected error."""
        if isinstance(error, MamamiaError):
            _log.error("%s failed: %s", doing, error)
        else:
            _log.error("%s failed", doing, exc_info=error)
        text = tr("{doing} failed: {plain_text}", doing=doing, plain_text=plain_text(error))
        self.said.emit(Level.ERROR, self.cover(text))
        show_error(self.cover(text))
