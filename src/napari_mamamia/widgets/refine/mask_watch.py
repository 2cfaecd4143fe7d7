"""How far the edited mask is saved, in one value and in plain words."""

import time
from enum import StrEnum
from typing import Final

from napari_mamamia.core.edits import Edit
from napari_mamamia.core.texts import tr
from napari_mamamia.smartpaint.session.session import EditingSession


class SaveState(StrEnum):
    """How far the edited mask is saved."""

    NONE = "none"
    NEW = "new"
    UNSAVED = "unsaved"
    SAVING = "saving"
    SAVED = "saved"
    FAILED = "failed"


Mark = tuple[int, Edit | None]
"""Where in its history a session stands: how many steps are applied, and the last of them."""

_NOWHERE: Final[Mark] = (-1, None)


class SaveTrack:
    """Follows one session: the mask is saved where the session stands where it stood at saving."""

    def __init__(self) -> None:
        self.state = SaveState.NONE
        self._on_disk = _NOWHERE
        self._begun = _NOWHERE
        self._saved_at: float | None = None

    def begin(self, live: EditingSession, *, is_saved: bool) -> None:
        """Follow a session that was just opened; `is_saved` says that the disk has this mask."""
        here = mark_of(live)
        self._on_disk = here if is_saved else _NOWHERE
        self._begun = here if not is_saved and here[0] == 0 else _NOWHERE
        self._saved_at = None
        self.state = SaveState.NONE
        self.look(live)

    def leave(self) -> None:
        """Follow nothing."""
        self.state = SaveState.NONE
        self._on_disk = self._begun = _NOWHERE

    def look(self, live: EditingSession) -> None:
        """See where the session stands now: an undo can bring back what is on the disk."""
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
        """Say that the mask is being saved; return where the session stands now."""
        self.state = SaveState.SAVING
        return mark_of(live)

    def saved(self, mark: Mark, live: EditingSession) -> None:
        """Say that the mask of `mark` is on the disk."""
        self._saved_at = time.monotonic()
        self._on_disk, self._begun = mark, _NOWHERE
        self.state = SaveState.UNSAVED
        self.look(live)

    def failed(self) -> None:
        """Say that saving failed."""
        self.state = SaveState.FAILED

    @property
    def is_dirty(self) -> bool:
        """Whether something is not on disk yet."""
        return self.state in (SaveState.UNSAVED, SaveState.SAVING, SaveState.FAILED)

    def text(self, journal: str) -> str:
        """Return the state in plain words; `journal` is what becomes of unsaved strokes."""
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
        """Return the state in a word or two."""
        return {
            SaveState.NONE: "",
            SaveState.NEW: tr("not edited"),
            SaveState.UNSAVED: tr("unsaved"),
            SaveState.SAVING: tr("saving…"),
            SaveState.SAVED: tr("saved"),
            SaveState.FAILED: tr("NOT saved"),
        }[self.state]


def mark_of(live: EditingSession) -> Mark:
    """Return where a session stands in its history."""
    position = live.position
    return (position, live.steps[position - 1] if position else None)


def _format_age(then: float | None) -> str:
    """Return how long ago something was, such as "0:12 ago"."""
    if then is None:
        return "earlier"
    minutes, seconds = divmod(int(time.monotonic() - then), 60)
    return tr("{minutes}:{seconds:02d} ago", minutes=minutes, seconds=seconds)
