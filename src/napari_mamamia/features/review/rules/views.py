"""Records of a study's state, and functions that read the values of an event."""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from napari_mamamia.features.review.core.review import Meaning
from napari_mamamia.features.review.rules.states import Act, CaseState
from napari_mamamia.io.workspace.event_order import Event


class ReadingView(NamedTuple):
    """One reading of a case; a NamedTuple for speed, as there are hundreds of thousands.

    Parameters
    ----------
    reader, occasion, round
        Id of the reader, occasion (1 is the hidden repeat) and round.
    state
        New, claimed, in work, read, or reopened.
    at, host, session
        Time, computer and session of the reading's last event.
    hash
        Hash of the event that submitted the reading; "" until then.
    mask
        SHA-256 of the mask file, "" for none.
    answers
        Answers of the form, canonical JSON.
    active_s
        Seconds of work.
    """

    reader: str
    occasion: int = 0
    round: int = 1
    state: CaseState = CaseState.NEW
    at: str = ""
    host: str = ""
    session: str = ""
    hash: str = ""
    mask: str = ""
    answers: str = "{}"
    active_s: int = 0

    @property
    def answers_sha256(self) -> str:
        """Return the SHA-256 of the answers, to which a signature is bound."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of comparing readings; `because` lists disagreements, `values` holds all numbers.

    `of` holds the hashes of the readings.
    """

    of: tuple[str, ...]
    agrees: bool
    because: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    reader: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a case: `act` is accept, decide, reject or reopen.

    `choice` is the origin of the mask: a reader's id, a consensus rule, or "edited". If the mask
    was derived from other masks, `parents` holds their SHA-256 and `how` the parameters by name.
    """

    act: Act
    reader: str
    at: str
    hash: str
    mask: str = ""
    answers: str = "{}"
    choice: str = ""
    reason: str = ""
    parents: tuple[str, ...] = ()
    how: tuple[tuple[str, str], ...] = ()

    @property
    def answers_sha256(self) -> str:
        """Return the SHA-256 of the answers, to which a signature is bound."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, with the reason if it is invalid.

    `hash` is the hash of the signature's event, `subject` that of the event with the signed
    content.
    """

    reader: str
    name: str
    meaning: Meaning
    at: str
    hash: str
    subject: str
    mask: str
    key: str
    software: str
    why_not: str = ""

    @property
    def counts(self) -> bool:
        """Return whether the signature is valid."""
        return not self.why_not


@dataclass(frozen=True, slots=True)
class CaseView:
    """The state of a case and its history; `earlier` holds readings of previous rounds."""

    key: str
    state: CaseState
    round: int = 1
    readings: tuple[ReadingView, ...] = ()
    comparison: Comparison | None = None
    decision: Decision | None = None
    adjudicator: str = ""
    signatures: tuple[Signature, ...] = ()
    conflicts: tuple[str, ...] = ()
    earlier: tuple[ReadingView, ...] = ()
    history: tuple[Decision, ...] = ()
    events: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def tips(self) -> tuple[str, ...]:
        """Return the hashes of the events without a following event."""
        last = {event[:3]: event.hash for event in self.events}
        covered = {digest for event in self.events for digest in event.seen}
        return tuple(sorted(set(last.values()) - covered))


def read_text(event: Event, name: str, missing: str = "") -> str:
    """Return a text in an event's body, or `missing` if there is none."""
    value = event.body.get(name, missing)
    return value if isinstance(value, str) else missing


def read_whole(event: Event, name: str, missing: int = 0) -> int:
    """Return an integer in an event's body, -1 for a value of another type."""
    value = event.body.get(name, missing)
    return value if type(value) is int else -1


def read_list(event: Event, name: str) -> tuple[str, ...]:
    """Return a list of texts in an event's body; other values are left out."""
    value = event.body.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def read_pairs(event: Event, name: str) -> tuple[tuple[str, str], ...]:
    """Return a mapping of texts in an event's body; other values are left out."""
    value = event.body.get(name)
    pairs = value.items() if isinstance(value, dict) else ()
    return tuple((one, text) for one, text in pairs if isinstance(text, str))
