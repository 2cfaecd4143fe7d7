"""What a reader of a case is not to see, and what is known of it afterwards.

One record decides for a whole window: a data set opened under it has no reference, no predictions
and no other readers' masks to show, see `services.case.blinding`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self


class Hidden(StrEnum):
    """What can be hidden; the value is the word that people see and files hold."""

    REFERENCE = "reference"
    MODEL = "model"
    OTHER_READERS = "other readers"
    NUMBERS = "numbers"
    CLINICAL = "clinical data"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Blinding:
    """The parts that are hidden.

    Examples
    --------
    >>> Blinding.of(("numbers", "reference")).text
    'Blind: reference and numbers are hidden'
    >>> Blinding().hides(Hidden.MODEL)
    False
    """

    hidden: frozenset[Hidden] = frozenset()

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """Return the blinding of parts by their names; a name that is none is a ValueError."""
        return cls(frozenset(Hidden(name) for name in names))

    @property
    def is_blind(self) -> bool:
        """Whether anything is hidden."""
        return bool(self.hidden)

    def hides(self, part: Hidden | None) -> bool:
        """Whether a part is hidden; None stands for what never is."""
        return part in self.hidden

    def covers(self, other: "Blinding") -> bool:
        """Whether all that another one hides is hidden."""
        return self.hidden >= other.hidden

    @property
    def names(self) -> tuple[str, ...]:
        """The parts hidden, always in the same order."""
        return tuple(part.value for part in Hidden if part in self.hidden)

    @property
    def text(self) -> str:
        """What is hidden in words, "" where nothing is."""
        return (
            f"Blind: {join_words(self.names)} {_choose_verb(self.names)} hidden"
            if self.names
            else ""
        )


NOT_BLIND: Final = Blinding()
ALL_HIDDEN: Final = Blinding(frozenset(Hidden) - {Hidden.SITE})
"""All that a window alone can hide: case ids tell the site, and only a study gives them numbers."""
STUDY_HIDDEN: Final = Blinding(frozenset(Hidden))
"""All that a review study can hide."""


@dataclass(frozen=True, slots=True)
class BlindReading:
    """How blind a mask was made, over all the times that it was worked on.

    `hidden` was hidden each time. `unblinded` tells of what was hidden first and shown later:
    when (ISO 8601, UTC) and which parts, "" for nothing.
    """

    hidden: Blinding = NOT_BLIND
    unblinded: str = ""

    def then(self, at: str, blinding: Blinding) -> "BlindReading":
        """Return the same with a further time, begun at `at` under this blinding."""
        shown = Blinding(self.hidden.hidden - blinding.hidden)
        event = f"{at}: {', '.join(shown.names)} shown" if shown.is_blind else ""
        both = Blinding(self.hidden.hidden & blinding.hidden)
        return BlindReading(both, "; ".join(filter(None, (self.unblinded, event))))

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """What a mask's provenance says of it; nothing of one that never was blind."""
        pairs = ((_HIDDEN, ", ".join(self.hidden.names)), (_UNBLINDED, self.unblinded))
        return tuple(pair for pair in pairs if pair[1])


NEVER_BLIND: Final = BlindReading()
_HIDDEN: Final = "hidden"
_UNBLINDED: Final = "unblinded"


def find_blind_reading(settings: Iterable[tuple[str, object]]) -> BlindReading:
    """Return what the parameters of a mask's provenance say of how blind it was made."""
    by_name = dict(settings)
    parts = {part.value for part in Hidden}
    names = [name for name in str(by_name.get(_HIDDEN, "")).split(", ") if name in parts]
    return BlindReading(Blinding.of(names), str(by_name.get(_UNBLINDED, "")))


def join_words(words: tuple[str, ...]) -> str:
    """Return words as a sentence lists them.

    Examples
    --------
    >>> join_words(("reference", "model", "numbers"))
    'reference, model and numbers'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _choose_verb(names: tuple[str, ...]) -> str:
    is_one = len(names) == 1 and names[0] in (Hidden.REFERENCE, Hidden.MODEL, Hidden.SITE)
    return "is" if is_one else "are"
