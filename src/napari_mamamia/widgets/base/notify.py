"""Errors and warnings -> what the user reads. Tracebacks go to the log."""

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
    """The job ran to its end."""

    result: T


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user stopped the job, or a newer request took its place; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The job ended with an error."""

    error: Exception


Outcome: TypeAlias = Finished[T] | Stopped | Failed


def outcome_of(work: Callable[[], T]) -> Outcome[T]:
    """Run `work` and return what became of it; no exception leaves a worker thread."""
    try:
        return Finished(work())
    except Cancelled:
        return Stopped()
    except Exception as error:  # noqa: BLE001 - the border between a job and the window
        return Failed(error)


def plain_text(error: Exception) -> str:
    """Return what the user reads of an error: our own messages as they are, others explained."""
    if isinstance(error, MamamiaError):
        return str(error)
    if isinstance(error, MemoryError):
        return tr(
            "there is not enough memory for this: close other programs or layers and try again"
        )
    return tr(
        "something unexpected went wrong ({_}: {error}): your work is kept; try "
        "again, and report it if it comes back",
        _=type(error).__name__,
        error=error,
    )


class Level(StrEnum):
    """How much a message matters."""

    HINT = "hint"
    WARNING = "warning"
    ERROR = "error"


class Notifier(QObject):
    """Says each thing once: in the header's line, and errors as a notification of napari as well.

    `said` carries the level and the text, as `cover` makes it: without words that a blind reader is
    not to see, such as in the name of a file.
    """

    said = Signal(object, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cover: Callable[[str], str] = str

    def hint(self, text: str) -> None:
        """Show what happened, in the header only."""
        self.said.emit(Level.HINT, self.cover(text))

    def warn(self, text: str) -> None:
        """Show something unusual about the data."""
        _log.warning("%s", text)
        self.said.emit(Level.WARNING, self.cover(text))

    def warn_loudly(self, text: str) -> None:
        """Show something that the user should not miss."""
        self.warn(text)
        show_warning(self.cover(text))

    def fail(self, doing: str, error: Exception) -> None:
        """Show that `doing` failed and why; of what nobody foresaw the traceback is logged."""
        if isinstance(error, MamamiaError):
            _log.error("%s failed: %s", doing, error)
        else:
            _log.error("%s failed", doing, exc_info=error)
        text = tr("{doing} failed: {plain_text}", doing=doing, plain_text=plain_text(error))
        self.said.emit(Level.ERROR, self.cover(text))
        show_error(self.cover(text))
