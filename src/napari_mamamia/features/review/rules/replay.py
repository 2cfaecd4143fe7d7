"""From the events of a study to where every case stands: one computation, the same everywhere.

Nothing is decided by clocks: a step counts if the table of `states` has it from where its writer
had seen the case stand, or where nobody knew better. What does not count is kept and told.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.features.review.core.review import Role, Study
from napari_mamamia.features.review.rules.assignment import order_of_looks
from napari_mamamia.features.review.rules.case_replay import CaseReplay
from napari_mamamia.features.review.rules.key_replay import KEY_ACTS, KeyReplay, KeyTable, KeyView
from napari_mamamia.features.review.rules.signatures import Check
from napari_mamamia.features.review.rules.states import STEPS, Act, CaseState
from napari_mamamia.features.review.rules.views import CaseView, read_text
from napari_mamamia.io.workspace.event_order import Event, list_past, merge_events

# By place: that is quicker than by name, and there are hundreds of thousands.
_HASH: Final = itemgetter(Event._fields.index("hash"))
_CLOCK: Final = itemgetter(Event._fields.index("at"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that does not count, and why in plain words."""

    event: Event
    why: str


@dataclass(frozen=True, slots=True)
class ReviewState:
    """Where a study stands.

    Parameters
    ----------
    cases
        One for each case, in the order of the study.
    keys
        All public keys, in the order in which they came.
    disputes
        Whose keys contradict each other, and how: (reader id, in words).
    names
        Names of readers that were changed, by id.
    refused
        Events that do not count.
    waiting
        Events that will count once their mask is there.
    """

    study: Study
    cases: tuple[CaseView, ...] = ()
    keys: tuple[KeyView, ...] = ()
    disputes: tuple[tuple[str, str], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    waiting: tuple[Refusal, ...] = ()

    def case(self, key: str) -> CaseView:
        """Return one case; CaseError for a key that the study has not."""
        self.study.case(key)
        return next(view for view in self.cases if view.key == key)

    def name(self, reader_id: str) -> str:
        """Return how a reader is called now."""
        return self.names.get(reader_id) or self.study.reader(reader_id).name

    @property
    def counts(self) -> dict[CaseState, int]:
        """How many cases stand where; every state has its number."""
        numbers = dict.fromkeys(CaseState, 0)
        for view in self.cases:
            numbers[view.state] += 1
        return numbers

    @property
    def conflicts(self) -> tuple[tuple[str, str], ...]:
        """What contradicts itself and waits for somebody: (case key, in words)."""
        return tuple((view.key, text) for view in self.cases for text in view.conflicts)


@dataclass(frozen=True, slots=True)
class ReplayedCase:
    """A case as it was found, and what it was found by."""

    stamp: object
    view: CaseView
    refused: tuple[Refusal, ...]
    waiting: tuple[Refusal, ...]


_Others: TypeAlias = tuple[KeyTable, Mapping[str, str], Sequence[Refusal]]
"""Keys, changed names and what does not count of what is said of no case."""


@dataclass(slots=True)
class ReplayMemory:
    """What one program remembers of a study between two looks.

    Parameters
    ----------
    cases
        By key.
    others
        Events of no case, and what they gave.
    looks
        Who reads what, in order, by (case, occasion); None at first.
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
    """Return where the study stands after all these events.

    Parameters
    ----------
    origin
        SHA-256 of the study file, which signatures are bound to.
    chains
        Events of each file in their order; what stands in two files counts once.
    has_mask
        Whether a mask is in the store, by its SHA-256.
    check
        Tells whether a signature fits.
    before
        What an earlier call noted of cases; those without a new event are not folded again.
    """
    memory = ReplayMemory() if before is None else before
    with uncollected():
        by_case, others = _group_events(chains)
        # What is the same object is not compared further.
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
            memory.looks = order_of_looks(study.tasks, study.plan.mode)
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
    """Whether a step that does not count did so by all that its writer knew of.

    So it is with a program that worked while the share was away, or handed in what others had
    decided since it was begun. A step that its own past rules out no program writes, nor one of a
    session that never entered the study. Signatures and keys are never late: whose they are is
    proven, or not.

    Parameters
    ----------
    event
        One of those that the state refuses.
    by_hash
        All events of the study.
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
    if act == Act.READ:  # by what was known when the work began: it takes an hour, others decide
        begun = (one for one in mine if one.body.get("case") == key)
        begin = max(begun, key=attrgetter("seq"), default=None)
        known = known if begin is None else [begin.hash]
    past = list_past(by_hash, known)
    events = [event for event in state.case(case.key).events if event.hash in past]
    looks = order_of_looks(state.study.tasks, state.study.plan.mode)
    roles = {reader.reader_id: frozenset(reader.roles) for reader in state.study.readers}
    run = CaseReplay(state.study, origin, case, looks, roles, state.keys, has_mask, check)
    return not any(one is event for one, _ in run.take_in([*_order_events(events), event]))


def _group_events(
    chains: Iterable[Sequence[Event]],
) -> tuple[dict[str, list[Event]], list[Event]]:
    """Return the events of each case, and those of none."""
    by_case: defaultdict[str, list[Event]] = defaultdict(list)
    others: list[Event] = []
    last: object = None
    add = others.append
    for chain in chains:
        for event in chain:
            case = event.body.get("case")
            # A case's events mostly follow each other.
            if case != last:
                add = by_case[case].append if type(case) is str else others.append
                last = case
            add(event)
    return dict(by_case), others


def _order_events(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of one case once, each after those before it in its file and those seen.

    By clock where that is such an order already, which it nearly always is.
    """
    order = sorted(events, key=_CLOCK)
    if len(set(map(_CLOCK, order))) < len(order):
        order.sort(key=attrgetter("at", "hash"))
    if _keeps_files(order) and _follows_seen(order):
        return order
    by_hash = dict(zip(map(_HASH, events), events, strict=True))
    if len(by_hash) < len(events):  # what stands in two files
        return _order_events(list(by_hash.values()))
    # Each as it was written: what it followed is what a signature is bound to.
    return [by_hash[merge_event.hash] for merge_event in merge_events(_chain_anew(events))]


def _keeps_files(order: Iterable[Event]) -> bool:
    """Whether each event stands once, and behind those before it in its file."""
    last: dict[tuple[object, ...], int] = {}
    for event in order:
        file, place = event[:3], event.seq
        if last.get(file, -1) >= place:
            return False
        last[file] = place
    return True


def _follows_seen(order: Sequence[Event]) -> bool:
    """Whether each event stands behind those that its writer had seen."""
    places = dict(zip(map(_HASH, order), itertools.count()))
    return all(
        places.get(one, -1) < index
        for index, event in enumerate(order)
        if event.seen
        for one in event.seen
    )


def _chain_anew(events: Iterable[Event]) -> list[list[Event]]:
    """Return the events of a case by file, each with the one before it there as its `prev`."""
    files: dict[tuple[str, str, str], list[Event]] = {}
    for event in sorted(events, key=lambda event: event.seq):
        file = files.setdefault((event.reader, event.host, event.session), [])
        before = file[-1].hash if file and file[-1].seq < event.seq else event.prev
        file.append(event._replace(prev=before))
    return list(files.values())


def _replay_study(study: Study, origin: str, events: Iterable[Event], check: Check) -> _Others:
    """Return keys, changed names and what does not count of what is said of no case."""
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
            why = f"it does {act!r}, which is not known"
        if why:
            refused.append(Refusal(event, why))
    table = fold.weigh()
    return table, names, [*refused, *(Refusal(event, why) for event, why in table.refused)]


def _rename_reader(
    event: Event, roles: Mapping[str, tuple[Role, ...]], names: dict[str, str]
) -> str:
    """Take a new name in; return why it does not count, "" where it does."""
    reader, name = read_text(event, "of"), read_text(event, "name")
    if Role.LEAD not in roles[event.reader]:
        return "only a lead may do that"
    if reader not in roles or not name.strip():
        return f"the study has no reader {reader!r}, or the name is empty"
    names[reader] = name
    return ""
