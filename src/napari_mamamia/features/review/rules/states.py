"""States of readings and cases, and the table of the allowed steps between them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.features.review.core.review import Role


class CaseState(StrEnum):
    """State of a reading or a case; the value is the displayed word."""

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
    """The action of an event; the value is written to the event."""

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
    REASSIGN = "reassign"
    # of the study
    ENTER = "enter"
    KEY = "key"
    COUNTERSIGN = "countersign"
    REVOKE = "revoke"
    RENAME = "rename"


class Scope(StrEnum):
    """Whether a step changes a reading or a case."""

    READING = "a reading"
    CASE = "a case"


@dataclass(frozen=True, slots=True)
class Step:
    """An allowed step: action, states before, state after, and roles.

    `needs` states further conditions in words, which the replay enforces.
    """

    act: Act
    scope: Scope
    sources: frozenset[CaseState]
    target: CaseState
    roles: frozenset[Role]
    needs: str = ""


_S = CaseState
_READER: Final = frozenset({Role.READER})
_JUDGES: Final = frozenset({Role.ADJUDICATOR, Role.LEAD})
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
        _JUDGES,
    ),
    _make_step(Act.SET_DOWN, Scope.CASE, (_S.IN_ADJUDICATION,), _S.DISAGREES, _JUDGES),
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
        _JUDGES,
        "a reason; the mask is in the store",
    ),
    _make_step(Act.REJECT, Scope.CASE, _UNDECIDED, _S.REJECTED, _JUDGES, "a reason"),
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
        Act.REOPEN, Scope.CASE, _DECIDED, _S.REOPENED, _JUDGES, "a reason; starts a new round"
    ),
)
"""All allowed steps; every other event is refused, and `verify` reports it."""

DECISIONS: Final = frozenset({Act.ACCEPT, Act.DECIDE, Act.REJECT, Act.REOPEN})
"""Decisions; two of them made without knowledge of each other are a conflict."""


SIGNED_ACTS: Final = frozenset({Act.SIGN, Act.KEY, Act.COUNTERSIGN, Act.REVOKE})
"""Actions that include a signature."""


def steps_of(act: Act, scope: Scope) -> tuple[Step, ...]:
    """Return the steps of an action on a reading or a case."""
    return tuple(step for step in STEPS if step.act is act and step.scope is scope)


def lines_of_table() -> tuple[str, ...]:
    """Return the table of steps as lines of Markdown, for the documentation."""
    lines = ["| action | on | from | to | by | needs |", "|---|---|---|---|---|---|"]
    for step in STEPS:
        sources = ", ".join(state for state in CaseState if state in step.sources)
        roles = ", ".join(role for role in Role if role in step.roles)
        cells = (step.act, step.scope, sources, step.target, roles, step.needs or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return tuple(lines)
