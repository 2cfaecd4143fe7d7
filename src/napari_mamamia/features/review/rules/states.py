"""States of readings and cases, the allowed steps between them, and data classes of a state."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from napari_mamamia.features.review.core.review import JUDGES, Meaning, Role
from napari_mamamia.io.workspace.event_store import Event


class CaseState(StrEnum):
    """State of a reading or a case; the values are displayed."""

    NEW = "new"
    CLAIMED = "claimed"
    IN_WORK = "in work"
    READ = "read"
    SECOND_READING = "second reading needed"
    DISAGREES = "disagrees"
    IN_ADJUDICATION = "in adjudication"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SIGNED = "signed"
    REOPENED = "reopened"


class Act(StrEnum):
    """The action that an event records; the values are written to the event."""

    # of a reading
    CLAIM = "claim"
    START = "start"
    RELEASE = "release"
    READ = "read"
    READ_AGAIN = "read-again"
    # of a case
    COMPARE = "compare"
    ADJUDICATE = "adjudicate"
    SET_DOWN = "set-down"
    ACCEPT = "accept"
    DECIDE = "decide"
    REJECT = "reject"
    SIGN = "sign"
    REOPEN = "reopen"
    # without effect on states
    UNBLIND = "unblind"
    NOTE = "note"
    # of the study
    ENTER = "enter"
    KEY = "key"
    COUNTERSIGN = "countersign"
    REVOKE = "revoke"


class Scope(StrEnum):
    """Whether a step changes the state of a reading or of a case."""

    READING = "a reading"
    CASE = "a case"


@dataclass(frozen=True, slots=True)
class Step:
    """An allowed step: its action, the states before it, the state after it, and the roles.

    `needs` describes further conditions, which the replay checks.
    """

    act: Act
    scope: Scope
    sources: frozenset[CaseState]
    target: CaseState
    roles: frozenset[Role]
    needs: str = ""


_S = CaseState
_READER: Final = frozenset({Role.READER})
_UNDECIDED: Final = frozenset(
    {
        _S.NEW,
        _S.CLAIMED,
        _S.IN_WORK,
        _S.READ,
        _S.SECOND_READING,
        _S.DISAGREES,
        _S.IN_ADJUDICATION,
        _S.REOPENED,
    }
)
_DECIDED: Final = frozenset({_S.ACCEPTED, _S.REJECTED, _S.SIGNED})


def _make_step(
    act: Act,
    scope: Scope,
    sources: Iterable[CaseState],
    target: CaseState,
    roles: Iterable[Role],
    needs: str = "",
) -> Step:
    return Step(act, scope, frozenset(sources), target, frozenset(roles), needs)


STEPS: Final = (
    _make_step(
        Act.CLAIM,
        Scope.READING,
        (_S.NEW, _S.REOPENED, _S.CLAIMED, _S.IN_WORK),
        _S.CLAIMED,
        _READER,
        "the case is assigned to the reader; in second-look the first reading is finished",
    ),
    _make_step(Act.START, Scope.READING, (_S.CLAIMED,), _S.IN_WORK, _READER),
    _make_step(Act.RELEASE, Scope.READING, (_S.CLAIMED, _S.IN_WORK), _S.NEW, _READER),
    _make_step(
        Act.READ,
        Scope.READING,
        (_S.CLAIMED, _S.IN_WORK),
        _S.READ,
        _READER,
        "the mask is in the store",
    ),
    _make_step(
        Act.READ_AGAIN,
        Scope.READING,
        (_S.READ,),
        _S.REOPENED,
        _READER,
        "a reason; no decision about the case",
    ),
    _make_step(
        Act.COMPARE,
        Scope.CASE,
        (_S.READ,),
        _S.READ,
        Role,
        "covers the current readings; they agree",
    ),
    _make_step(
        Act.COMPARE,
        Scope.CASE,
        (_S.READ,),
        _S.DISAGREES,
        Role,
        "covers the current readings; they disagree, or the mode is panel",
    ),
    _make_step(
        Act.ADJUDICATE,
        Scope.CASE,
        (_S.DISAGREES, _S.READ, _S.REOPENED),
        _S.IN_ADJUDICATION,
        JUDGES,
    ),
    _make_step(Act.SET_DOWN, Scope.CASE, (_S.IN_ADJUDICATION,), _S.DISAGREES, JUDGES),
    _make_step(
        Act.ACCEPT,
        Scope.CASE,
        (_S.READ,),
        _S.ACCEPTED,
        Role,
        "lead, adjudicator or the second reader in second-look; the mask is in the store",
    ),
    _make_step(
        Act.DECIDE,
        Scope.CASE,
        (_S.IN_ADJUDICATION,),
        _S.ACCEPTED,
        JUDGES,
        "a reason; the mask is in the store",
    ),
    _make_step(Act.REJECT, Scope.CASE, _UNDECIDED, _S.REJECTED, JUDGES, "a reason"),
    _make_step(
        Act.SIGN,
        Scope.READING,
        (_S.READ,),
        _S.READ,
        _READER,
        "as author; the key is valid; covers the current mask and answers",
    ),
    _make_step(
        Act.SIGN,
        Scope.CASE,
        (_S.ACCEPTED, _S.SIGNED),
        _S.SIGNED,
        Role,
        "as reviewer or approver, by a person who may accept; the key is valid; covers the current "
        "mask and answers",
    ),
    _make_step(
        Act.REOPEN, Scope.CASE, _DECIDED, _S.REOPENED, JUDGES, "a reason; starts a new round"
    ),
)
"""All allowed steps; an event with any other step does not count, and `verify` reports it."""

DECISIONS: Final = frozenset({Act.ACCEPT, Act.DECIDE, Act.REJECT, Act.REOPEN})
"""Actions that decide a case; two decisions made without seeing each other are a conflict."""


SIGNED_ACTS: Final = frozenset({Act.SIGN, Act.KEY, Act.COUNTERSIGN, Act.REVOKE})
"""Actions whose events carry a signature."""


def steps_of(act: Act, scope: Scope) -> tuple[Step, ...]:
    """Return the allowed steps for an action on a reading or a case."""
    return tuple(step for step in STEPS if step.act is act and step.scope is scope)


def lines_of_table() -> tuple[str, ...]:
    """Return the table of steps as Markdown lines, for the documentation."""
    lines = ["| action | on | from | to | by | needs |", "|---|---|---|---|---|---|"]
    for step in STEPS:
        sources = ", ".join(state for state in CaseState if state in step.sources)
        roles = ", ".join(role for role in Role if role in step.roles)
        cells = (step.act, step.scope, sources, step.target, roles, step.needs or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return tuple(lines)


class ReadingView(NamedTuple):
    """One reading of a case; a NamedTuple for speed, because a study may have many thousands.

    Parameters
    ----------
    reader, occasion, round
        Id of the reader, occasion (1 is the hidden repeat) and round.
    state
        New, claimed, in work, read, or reopened.
    at, host, session
        Time, computer and session of the reading's last event.
    hash
        Hash of the event that submitted the reading; "" before the submission.
    mask
        SHA-256 of the mask file, or "" if there is no mask.
    answers
        Answers in the form, as canonical JSON.
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
        """Return the SHA-256 of the answers, which signatures cover."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing readings; `because` lists disagreements, `values` all numbers.

    `of` contains the event hashes of the compared readings.
    """

    of: tuple[str, ...]
    agrees: bool
    because: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    reader: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a case; `act` is accept, decide, reject or reopen.

    `choice` is the source of the mask: a reader's id, a consensus rule, or "edited". If the mask
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
        """Return the SHA-256 of the answers, which signatures cover."""
        return hashlib.sha256(self.answers.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, with the reason if it is invalid.

    `hash` is the hash of the event that records the signature, and `subject` the hash of the event
    with the signed content.
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
    """The state of a case with its history; `earlier` holds the readings of previous rounds."""

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
        """Return the hashes of the events that no later event refers to."""
        last = {event[:3]: event.hash for event in self.events}
        covered = {digest for event in self.events for digest in event.seen}
        return tuple(sorted(set(last.values()) - covered))


def read_text(event: Event, name: str, missing: str = "") -> str:
    """Return a string from an event's body, or `missing` if there is none."""
    value = event.body.get(name, missing)
    return value if isinstance(value, str) else missing


def read_whole(event: Event, name: str, missing: int = 0) -> int:
    """Return an integer from an event's body, or -1 if the value has a different type."""
    value = event.body.get(name, missing)
    return value if type(value) is int else -1


def read_list(event: Event, name: str) -> tuple[str, ...]:
    """Return a list of strings from an event's body, ignoring all other values."""
    value = event.body.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def read_pairs(event: Event, name: str) -> tuple[tuple[str, str], ...]:
    """Return a mapping of strings from an event's body as pairs, ignoring all other values."""
    value = event.body.get(name)
    pairs = value.items() if isinstance(value, dict) else ()
    return tuple((one, text) for one, text in pairs if isinstance(text, str))
