"""Where things stand in a study, as records; and how a value of an event is read."""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from napari_mamamia.features.review.core.review import Meaning
from napari_mamamia.features.review.rules.states import Act, CaseState
from napari_mamamia.io.workspace.event_order import Event


class ReadingView(NamedTuple):
    """One reading of a case; a tuple as events are: they come by the hundred thousand.

    Parameters
    ----------
    reader, occasion, round
        Whose, which time (1 is the hidden repeat), in which round.
    state
        New, claimed, in work, read, or reopened.
    at, host, session
        Of the last event of it.
    hash
        Of the event that made it; "" until it is read.
    mask
        SHA-256 of the mask's file, "" for none.
    answers
        Of the form, canonical JSON.
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
        """What a signature is bound to."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing the readings gave; `because` says where they disagree, `values` all numbers.

    `of` are the hashes of the readings.
    """

    of: tuple[str, ...]
    agrees: bool
    because: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    reader: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a case: `act` is accept, decide, reject or reopen.

    `choice` is how the mask came about: a reader's id, a rule of consensus, or "edited". Of a mask
    that was made from others `parents` are their SHA-256, and `how` says how, in words by name.
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
        """What a signature is bound to."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature; one that does not count says why.

    `hash` is of its own event, `subject` of the one that made what was signed; `seals` says
    whether it holds for all that its writer had seen, which those of before do not.
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
    seals: bool = False

    @property
    def counts(self) -> bool:
        """Whether it does."""
        return not self.why_not


@dataclass(frozen=True, slots=True)
class CaseView:
    """Where a case stands, and all that led there; `earlier` are readings of rounds before."""

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
        """The events that no other one comes after: what the next one has seen."""
        last = {event[:3]: event.hash for event in self.events}
        covered = {one for event in self.events for one in event.seen}
        return tuple(sorted(set(last.values()) - covered))


def read_text(event: Event, name: str, missing: str = "") -> str:
    """Return a text of an event's body, `missing` where there is none."""
    value = event.body.get(name, missing)
    return value if isinstance(value, str) else missing


def read_whole(event: Event, name: str, missing: int = 0) -> int:
    """Return a whole number of an event's body; -1 for anything else."""
    value = event.body.get(name, missing)
    return value if type(value) is int else -1


def read_list(event: Event, name: str) -> tuple[str, ...]:
    """Return a list of texts of an event's body; what is none is left out."""
    value = event.body.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def read_pairs(event: Event, name: str) -> tuple[tuple[str, str], ...]:
    """Return an object of texts of an event's body; what is none is left out."""
    value = event.body.get(name)
    pairs = value.items() if isinstance(value, dict) else ()
    return tuple((one, text) for one, text in pairs if isinstance(text, str))
