"""The saved state of the edited mask, as a value and as text."""

import time
from enum import StrEnum
from typing import Final

from napari_mamamia.core.edits import Edit
from napari_mamamia.core.texts import tr
from napari_mamamia.smartpaint.session.session import EditingSession


class SaveState(StrEnum):
    """The saved state of the edited mask."""

    NONE = "none"
    NEW = "new"
    UNSAVED = "unsaved"
    SAVING = "saving"
    SAVED = "saved"
    FAILED = "failed"


Mark = tuple[int, Edit | None]
"""A position in a session's history: the number of applied steps, and the last applied step."""

_NOWHERE: Final[Mark] = (-1, None)


class SaveTrack:
    """A tracker of whether a session is at the position of its last save."""

    def __init__(self) -> None:
        self.state = SaveState.NONE
        self._on_disk = _NOWHERE
        self._begun = _NOWHERE
        self._saved_at: float | None = None

    def begin(self, live: EditingSession, *, is_saved: bool) -> None:
        """Start tracking an opened session; `is_saved` says whether the mask on disk is equal."""
        here = mark_of(live)
        self._on_disk = here if is_saved else _NOWHERE
        self._begun = here if not is_saved and here[0] == 0 else _NOWHERE
        self._saved_at = None
        self.state = SaveState.NONE
        self.look(live)

    def leave(self) -> None:
        """Stop tracking."""
        self.state = SaveState.NONE
        self._on_disk = self._begun = _NOWHERE

    def look(self, live: EditingSession) -> None:
        """Update the state from the session's position; an undo may return to the saved mask."""
        if self.state is SaveState.SAVING:
            return
        here = mark_of(live)
        if here == self._on_disk:
            self.state = SaveState.SAVED
        elif here == self._begun:
            self.state = SaveState.NEW
        elif self.state is not SaveState.FAILED:
            self.state = SaveState.UNSAVED

    def start_saving(self, live: EditingSession) -> Mark:
        """Record that saving has started, and return the session's position."""
        self.state = SaveState.SAVING
        return mark_of(live)

    def saved(self, mark: Mark, live: EditingSession) -> None:
        """Record that the mask at position `mark` is on disk."""
        self._saved_at = time.monotonic()
        self._on_disk, self._begun = mark, _NOWHERE
        self.state = SaveState.UNSAVED
        self.look(live)

    def failed(self) -> None:
        """Record that saving failed."""
        self.state = SaveState.FAILED

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return self.state in (SaveState.UNSAVED, SaveState.SAVING, SaveState.FAILED)

    def text(self, journal: str) -> str:
        """Return the state as text; `journal` describes whether the journal keeps the strokes."""
        journal_note = f" · {journal}" if journal else ""
        return {
            SaveState.NONE: "",
            SaveState.NEW: tr("not edited yet"),
            SaveState.UNSAVED: f"unsaved{journal_note}",
            SaveState.SAVING: f"saving…{journal_note}",
            SaveState.SAVED: tr("saved {format_age}", format_age=_format_age(self._saved_at)),
            SaveState.FAILED: tr("NOT saved{journal_note}", journal_note=journal_note),
        }[self.state]

    @property
    def short_text(self) -> str:
        """Return the state in one or two words."""
        return {
            SaveState.NONE: "",
            SaveState.NEW: tr("not edited"),
            SaveState.UNSAVED: tr("unsaved"),
            SaveState.SAVING: tr("saving…"),
            SaveState.SAVED: tr("saved"),
            SaveState.FAILED: tr("NOT saved"),
        }[self.state]


def mark_of(live: EditingSession) -> Mark:
    """Return a session's position in its history."""
    position = live.position
    return (position, live.steps[position - 1] if position else None)


def _format_age(then: float | None) -> str:
    if then is None:
        return "earlier"
    minutes, seconds = divmod(int(time.monotonic() - then), 60)
    if minutes:
        return tr("{minutes} min ago", minutes=minutes)
    return tr("{seconds} s ago", seconds=seconds)
