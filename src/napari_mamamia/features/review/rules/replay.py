"""Compute the state of a study from its events; the result is the same on every computer.

Clocks are not used. A step counts if the table of `states` allows it from the state that its writer
had seen, or if no other event contradicts it. Refused events are kept and reported.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.features.review.core.review import Role, Study
from napari_mamamia.features.review.rules.assignment import list_reading_order
from napari_mamamia.features.review.rules.case_replay import CaseReplay
from napari_mamamia.features.review.rules.key_replay import KEY_ACTS, KeyReplay, KeyTable, KeyView
from napari_mamamia.features.review.rules.signatures import Check
from napari_mamamia.features.review.rules.states import STEPS, Act, CaseState
from napari_mamamia.features.review.rules.views import CaseView, read_text
from napari_mamamia.io.workspace.event_order import Event, list_past, merge_events

# Access by index is faster than by name, and there are hundreds of thousands of events.
_HASH: Final = itemgetter(Event._fields.index("hash"))
_CLOCK: Final = itemgetter(Event._fields.index("at"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that does not count, with the reason."""

    event: Event
    why: str


@dataclass(frozen=True, slots=True)
class ReviewState:
    """The state of a study.

    Parameters
    ----------
    study
        The study.
    cases
        State of each case, in the order of the study.
    keys
        All public keys, in the order of their events.
    disputes
        Conflicts between keys: (reader id, description).
    names
        New names of renamed readers, by id.
    refused
        Events that do not count.
    waiting
        Events that count once their mask is in the store.
    """

    study: Study
    cases: tuple[CaseView, ...] = ()
    keys: tuple[KeyView, ...] = ()
    disputes: tuple[tuple[str, str], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    waiting: tuple[Refusal, ...] = ()

    def case(self, key: str) -> CaseView:
        """Return one case; raise `CaseError` for an unknown key."""
        self.study.case(key)
        return next(view for view in self.cases if view.key == key)

    def name(self, reader_id: str) -> str:
        """Return the current name of a reader."""
        return self.names.get(reader_id) or self.study.reader(reader_id).name

    @property
    def counts(self) -> dict[CaseState, int]:
        """Return the number of cases in each state."""
        numbers = dict.fromkeys(CaseState, 0)
        for view in self.cases:
            numbers[view.state] += 1
        return numbers

    @property
    def conflicts(self) -> tuple[tuple[str, str], ...]:
        """Return the unresolved conflicts: (case key, description)."""
        return tuple((view.key, text) for view in self.cases for text in view.conflicts)


@dataclass(frozen=True, slots=True)
class ReplayedCase:
    """A replayed case, with the events and keys that it was computed from."""

    stamp: object
    view: CaseView
    refused: tuple[Refusal, ...]
    waiting: tuple[Refusal, ...]


_Others: TypeAlias = tuple[KeyTable, Mapping[str, str], Sequence[Refusal]]
"""Results of the events that belong to no case: keys, new reader names, refused events."""


@dataclass(slots=True)
class ReplayMemory:
    """Cached results of a replay, for the next replay.

    Parameters
    ----------
    cases
        Replayed cases by key.
    others
        Events that belong to no case, and their result.
    looks
        Ids of the readers of each (case, occasion), in reading order; None before the first replay.
    """

    cases: dict[str, ReplayedCase] = field(default_factory=dict)
    others: tuple[list[Event], _Others] | None = None
    looks: Mapping[tuple[str, int], Sequence[str]] | None = None


def replay_events(
    study: Study,
    origin: str,
    chains: Iterable[Sequence[Event]],
    has_mask: Callable[[str], bool],
    check: Check,
    before: ReplayMemory | None = None,
) -> ReviewState:
    """Return the state of a study after all its events.

    Parameters
    ----------
    study
        The study.
    origin
        SHA-256 of the study file, to which signatures are bound.
    chains
        Events of each file in order; an event in two files counts once.
    has_mask
        Whether a mask is in the store, by its SHA-256.
    check
        Function that verifies a signature.
    before
        Cache of an earlier call; cases without a new event are not replayed again.
    """
    memory = ReplayMemory() if before is None else before
    with uncollected():
        by_case, others = _group_events(chains)
        # List comparison skips elements that are identical objects, so this is fast.
        if memory.others is None or memory.others[0] != others:
            memory.others = others, _replay_study(study, origin, others, check)
        table, names, refused_others = memory.others[1]
        refused = list(refused_others)
        keys = table.keys
        case_keys = {case.key for case in study.cases}
        refused += [
            Refusal(event, f"the study has no case {name!r}")
            for name in by_case.keys() - case_keys
            for event in by_case[name]
        ]
        if memory.looks is None:
            memory.looks = list_reading_order(study.tasks, study.plan.mode)
        roles = {reader.reader_id: frozenset(reader.roles) for reader in study.readers}
        folded = []
        for case in study.cases:
            events = by_case.get(case.key, [])
            stamp = (events, keys)
            one = memory.cases.get(case.key)
            if one is None or one.stamp != stamp or one.waiting:
                run = CaseReplay(study, origin, case, memory.looks, roles, keys, has_mask, check)
                one = memory.cases[case.key] = _replay_case(run, events, stamp)
            folded.append(one)
    refused += [refusal for one in folded for refusal in one.refused]
    waiting = tuple(refusal for one in folded for refusal in one.waiting)
    views = tuple(one.view for one in folded)
    return ReviewState(study, views, keys, table.disputes, names, tuple(refused), waiting)


def _replay_case(run: CaseReplay, events: list[Event], stamp: object) -> ReplayedCase:
    refused: list[Refusal] = []
    waiting: list[Refusal] = []
    for event, why in run.take_in(_order_events(events)):
        (waiting if why == CaseReplay.WAITS else refused).append(Refusal(event, why))
    return ReplayedCase(stamp, run.view(), tuple(refused), tuple(waiting))


_LATE_ACTS: Final = frozenset(step.act for step in STEPS) - {Act.SIGN} | {Act.REASSIGN}


def came_late(
    state: ReviewState,
    origin: str,
    event: Event,
    by_hash: Mapping[str, Event],
    has_mask: Callable[[str], bool],
    check: Check,
) -> bool:
    """Return whether a refused step was valid by all events that its writer knew.

    This happens if a program worked while the share was unreachable, or submitted a reading after
    others had decided the case. A step that its own earlier events forbid, or from a session that
    never entered the study, was not written by this program. Signatures and keys are never late,
    because they are either proven or not.

    Parameters
    ----------
    state
        The state of the study.
    origin
        SHA-256 of the study file.
    event
        One of the refused events.
    by_hash
        All events of the study.
    has_mask, check
        As in `replay_events`.
    """
    act, key = event.body.get("act"), event.body.get("case")
    case = next((case for case in state.study.cases if case.key == key), None)
    mine = [
        by_hash
        for by_hash in by_hash.values()
        if by_hash[:3] == event[:3] and by_hash.seq < event.seq
    ]
    has_entered = any(one.seq == 0 and one.body.get("act") == Act.ENTER for one in mine)
    if case is None or act not in _LATE_ACTS or not has_entered:
        return False
    known = [event.prev, *event.seen]
    if act == Act.READ:  # a reading takes long, so that the knowledge at its start counts
        begun = (one for one in mine if one.body.get("case") == key)
        begin = max(begun, key=attrgetter("seq"), default=None)
        known = known if begin is None else [begin.hash]
    past = list_past(by_hash, known)
    events = [event for event in state.case(case.key).events if event.hash in past]
    looks = list_reading_order(state.study.tasks, state.study.plan.mode)
    roles = {reader.reader_id: frozenset(reader.roles) for reader in state.study.readers}
    run = CaseReplay(state.study, origin, case, looks, roles, state.keys, has_mask, check)
    return not any(one is event for one, _ in run.take_in([*_order_events(events), event]))


def _group_events(
    chains: Iterable[Sequence[Event]],
) -> tuple[dict[str, list[Event]], list[Event]]:
    """Return the events of each case, and those that belong to no case."""
    by_case: defaultdict[str, list[Event]] = defaultdict(list)
    others: list[Event] = []
    last: object = None
    add = others.append
    for chain in chains:
        for event in chain:
            case = event.body.get("case")
            # Events of one case mostly follow each other.
            if case != last:
                add = by_case[case].append if type(case) is str else others.append
                last = case
            add(event)
    return dict(by_case), others


def _order_events(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of one case without duplicates, each after the events that precede it.

    An event follows the earlier events of its file and the events that its writer had seen. The
    order by clock is used if it satisfies these conditions, as nearly always.
    """
    order = sorted(events, key=_CLOCK)
    if len(set(map(_CLOCK, order))) < len(order):
        order.sort(key=attrgetter("at", "hash"))
    if _keeps_files(order) and _follows_seen(order):
        return order
    by_hash = dict(zip(map(_HASH, events), events, strict=True))
    if len(by_hash) < len(events):  # an event is in two files
        return _order_events(list(by_hash.values()))
    # Return the original events, because a signature is bound to the original `prev`.
    return [by_hash[merge_event.hash] for merge_event in merge_events(_chain_anew(events))]


def _keeps_files(order: Iterable[Event]) -> bool:
    """Return whether each event occurs once and after the earlier events of its file."""
    last: dict[tuple[object, ...], int] = {}
    for event in order:
        file, place = event[:3], event.seq
        if last.get(file, -1) >= place:
            return False
        last[file] = place
    return True


def _follows_seen(order: Sequence[Event]) -> bool:
    """Return whether each event comes after the events that its writer had seen."""
    places = dict(zip(map(_HASH, order), itertools.count()))
    return all(
        places.get(digest, -1) < index
        for index, event in enumerate(order)
        if event.seen
        for digest in event.seen
    )


def _chain_anew(events: Iterable[Event]) -> list[list[Event]]:
    """Return the events of a case by file, with `prev` set to the preceding event of the case."""
    files: dict[tuple[str, str, str], list[Event]] = {}
    for event in sorted(events, key=lambda event: event.seq):
        file = files.setdefault((event.reader, event.host, event.session), [])
        before = file[-1].hash if file and file[-1].seq < event.seq else event.prev
        file.append(event._replace(prev=before))
    return list(files.values())


def _replay_study(study: Study, origin: str, events: Iterable[Event], check: Check) -> _Others:
    """Return keys, new names of readers, and refused events that belong to no case."""
    fold = KeyReplay(study, origin, check)
    roles = {reader.reader_id: reader.roles for reader in study.readers}
    names: dict[str, str] = {}
    refused = []
    for event in merge_events([list(events)]):
        act = read_text(event, "act")
        why = ""
        if event.reader not in roles:
            why = f"the study has no reader {event.reader!r}"
        elif act in KEY_ACTS:
            why = fold.take_in(event, act)
        elif act == Act.RENAME:
            why = _rename_reader(event, roles, names)
        elif act not in (Act.ENTER, Act.NOTE, Act.UNBLIND):
            why = f"unknown action {act!r}"
        if why:
            refused.append(Refusal(event, why))
    table = fold.weigh()
    return table, names, [*refused, *(Refusal(event, why) for event, why in table.refused)]


def _rename_reader(
    event: Event, roles: Mapping[str, tuple[Role, ...]], names: dict[str, str]
) -> str:
    """Apply a new name of a reader; return why it is refused, "" otherwise."""
    reader, name = read_text(event, "of"), read_text(event, "name")
    if Role.LEAD not in roles[event.reader]:
        return "only a lead may rename a reader"
    if reader not in roles or not name.strip():
        return f"the study has no reader {reader!r}, or the name is empty"
    names[reader] = name
    return ""
