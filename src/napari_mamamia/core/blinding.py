"""The data hidden from the reader of a case, and how a mask's provenance records them.

A `Blinding` applies to a whole window: a data set that is opened with it does not show the hidden
references, predictions or masks of other readers. See `services.case.blinding`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self


class Hidden(StrEnum):
    """A kind of data that can be hidden; the value is its name in files and in the window."""

    REFERENCE = "reference"
    MODEL = "model"
    OTHER_READERS = "other readers"
    NUMBERS = "numbers"
    CLINICAL = "clinical data"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Blinding:
    """The set of kinds of data that are hidden from a reader.

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
        """Return the blinding that hides the named kinds of data."""
        return cls(frozenset(Hidden(name) for name in names))

    @property
    def is_blind(self) -> bool:
        """Whether anything is hidden."""
        return bool(self.hidden)

    def hides(self, part: Hidden | None) -> bool:
        """Return whether this kind of data is hidden; None stands for data that is never hidden."""
        return part in self.hidden

    def covers(self, other: "Blinding") -> bool:
        """Return whether this blinding hides everything that `other` hides."""
        return self.hidden >= other.hidden

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hidden kinds of data, in a fixed order."""
        return tuple(part.value for part in Hidden if part in self.hidden)

    @property
    def text(self) -> str:
        """A sentence that lists the hidden kinds of data, or "" if nothing is hidden."""
        return (
            f"Blind: {join_words(self.names)} {_choose_verb(self.names)} hidden"
            if self.names
            else ""
        )


NOT_BLIND: Final = Blinding()
ALL_HIDDEN: Final = Blinding(frozenset(Hidden) - {Hidden.SITE})
"""All kinds of data that can be hidden outside a reader study.

The site is not included: case ids reveal it, and only a study replaces them by numbers.
"""
STUDY_HIDDEN: Final = Blinding(frozenset(Hidden))
"""All kinds of data that a reader study can hide."""


@dataclass(frozen=True, slots=True)
class BlindReading:
    """Blinding of a mask, over all sessions in which the mask was edited.

    `hidden` lists the items that were hidden in every session. `unblinded` lists the items that
    were first hidden and later shown, each with its time (ISO 8601, UTC); `unblinded` is "" if
    there are none.
    """

    hidden: Blinding = NOT_BLIND
    unblinded: str = ""

    def then(self, at: str, blinding: Blinding) -> "BlindReading":
        """Return a copy with one more session under this blinding, which began at the time `at`."""
        shown = Blinding(self.hidden.hidden - blinding.hidden)
        event = f"{at}: {', '.join(shown.names)} shown" if shown.is_blind else ""
        both = Blinding(self.hidden.hidden & blinding.hidden)
        return BlindReading(both, "; ".join(filter(None, (self.unblinded, event))))

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Blinding parameters for a mask's provenance; empty if it was never edited blind."""
        pairs = ((_HIDDEN, ", ".join(self.hidden.names)), (_UNBLINDED, self.unblinded))
        return tuple(pair for pair in pairs if pair[1])


NEVER_BLIND: Final = BlindReading()
_HIDDEN: Final = "hidden"
_UNBLINDED: Final = "unblinded"


def find_blind_reading(settings: Iterable[tuple[str, object]]) -> BlindReading:
    """Return the blind reading that the parameters of a mask's provenance describe."""
    by_name = dict(settings)
    parts = {part.value for part in Hidden}
    names = [name for name in str(by_name.get(_HIDDEN, "")).split(", ") if name in parts]
    return BlindReading(Blinding.of(names), str(by_name.get(_UNBLINDED, "")))


def join_words(words: tuple[str, ...]) -> str:
    """Return the words as one string, separated by commas and "and".

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
