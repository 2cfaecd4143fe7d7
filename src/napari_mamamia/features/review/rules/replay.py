"""Compute the state of a study from its events; the result is the same on every computer.

Clocks are not used. An event counts if the table in `states` allows its step from the state that
its writer had seen, or if no other event contradicts it. Events that are not allowed do not count;
they remain stored and are reported.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from napari_mamamia.core.program.garbage import uncollected
from napari_mamamia.features.review.core import review
from napari_mamamia.features.review.rules import signatures
from napari_mamamia.features.review.rules.assignment import list_reading_order
from napari_mamamia.features.review.rules.states import (
    DECISIONS,
    STEPS,
    Act,
    CaseState,
    CaseView,
    Comparison,
    Decision,
    ReadingView,
    Scope,
    Signature,
    Step,
    read_list,
    read_pairs,
    read_text,
    read_whole,
    steps_of,
)
from napari_mamamia.io.workspace.event_store import Event, list_past, merge_events

_READING_ACTS: Final = ("claim", "start", "release", "read", "read-again")
_MOVES: Final[Mapping[str, Mapping[CaseState, Step]]] = {
    act: {source: step for step in steps_of(Act(act), Scope.READING) for source in step.sources}
    for act in _READING_ACTS
}
_CASE_STEPS: Final[Mapping[str, Step]] = {
    step.act.value: step for step in STEPS if step.scope is Scope.CASE
}
_PLAIN_ACTS: Final = frozenset({"start", "release"})
"""Acts that only the table of steps restricts; so are claims, except in second-look mode."""
_REMARKS: Final = frozenset({Act.NOTE.value, Act.UNBLIND.value})
"""Acts that do not change the state."""
_S = CaseState


class CaseReplay:
    """The state of a case while its events are replayed in order.

    Parameters
    ----------
    study
        The study.
    origin
        SHA-256 of the study file.
    case
        The case that the events belong to.
    looks
        Ids of the readers of each (case, occasion), in reading order.
    roles
        Roles of each reader.
    keys
        Public keys of the study.
    has_mask
        Function that returns whether the mask with a given SHA-256 is in the store.
    check
        Function that verifies a signature.
    """

    WAITS: Final = "the mask is not in the store yet"

    def __init__(
        self,
        study: review.Study,
        origin: str,
        case: review.StudyCase,
        looks: Mapping[tuple[str, int], Sequence[str]],
        roles: Mapping[str, frozenset[review.Role]],
        keys: Sequence[signatures.KeyView],
        has_mask: Callable[[str], bool],
        check: signatures.Check,
    ) -> None:
        self._study, self._origin, self._case = study, origin, case
        self._roles, self._keys = roles, keys
        self._has_mask, self._check = has_mask, check
        waits = study.plan.mode is review.ReadingMode.SECOND_LOOK
        self._plain_acts = _PLAIN_ACTS if waits else _PLAIN_ACTS | {"claim"}
        self._slots = {
            (reader, occasion): _make_tuple(ReadingView, (reader, occasion, *_UNTOUCHED))
            for occasion in (0, 1)
            for reader in looks.get((case.key, occasion), ())
        }
        self._round = 1
        self._decided: CaseState | None = None
        self._comparison: Comparison | None = None
        self._decision: Decision | None = None
        self._adjudicator = ""
        self._signatures: list[Signature] = []
        self._conflicts: list[tuple[str, frozenset[str]]] = []
        self._earlier: list[ReadingView] = []
        self._history: list[Decision] = []
        self._events: list[Event] = []

    # ---------------------------------------------------------------- taking in

    def take_in(self, events: Sequence[Event]) -> list[tuple[Event, str]]:
        """Replay the case's events in order, and return the events that do not count, with reasons.

        For speed, notes and the steps of readings are handled first, because they are the most
        frequent events.
        """
        left: list[tuple[Event, str]] = []
        roles_of, on_reading, keep = self._roles, self._on_reading, self._events.append
        for event in events:
            act = event.body.get("act")
            roles = roles_of.get(event.reader)
            why = ""
            if roles is None:
                why = f"the study has no reader {event.reader!r}"
            elif not isinstance(act, str):
                why = "the event has no action"
            elif act in _MOVES:
                why = on_reading(event, act, roles)
            elif act not in _REMARKS:
                why = self._on_seldom(event, act, roles)
            keep(event)
            if why:
                left.append((event, why))
        return left

    def _on_seldom(self, event: Event, act: str, roles: frozenset[review.Role]) -> str:
        if act == Act.SIGN:
            return self._on_signature(event)
        if act not in _CASE_STEPS:
            return f"unknown action {act!r}"
        return self._on_case(event, act, roles)

    def _on_reading(self, event: Event, act: str, roles: frozenset[review.Role]) -> str:
        reader, host, session, _, at, body, _, digest, _ = event
        occasion, round_ = body.get("occasion", 0), body.get("round", 1)
        place = (reader, occasion if type(occasion) is int else -1)
        slot = self._slots.get(place)
        if slot is None:
            return "the case is not assigned to this reader"
        if type(round_) is not int or round_ != self._round:
            return self._why_other_round(event)
        if self._decided is not None and not occasion and self._decided is not _S.REOPENED:
            return f"the case already has the state {self._decided}"
        if act not in self._plain_acts and (why := self._why_not_now(event, act, slot, place)):
            return "" if why == _SAME else why
        step = _MOVES[act].get(slot.state)
        if step is None or step.roles.isdisjoint(roles):
            return f"{act} is not possible, because the reading is {slot.state}"
        if slot.hash:
            self._earlier.append(slot)
            self._comparison = self._comparison if occasion else None
        if step.target is _S.READ:
            mask, answers = read_text(event, "mask"), read_text(event, "answers", "{}")
            given = (digest, mask, answers, read_whole(event, "active_s"))
            fresh = (reader, occasion, round_, _S.READ, at, host, session, *given)
        else:
            fresh = (reader, occasion, round_, step.target, at, host, session, *_NOTHING)
        self._slots[place] = _make_tuple(ReadingView, fresh)
        return ""

    def _why_other_round(self, event: Event) -> str:
        return (
            f"the event belongs to round {read_whole(event, 'round', 1)}, but the case is in round "
            f"{self._round}"
        )

    def _why_not_now(
        self, event: Event, act: str, slot: ReadingView, place: tuple[str, int]
    ) -> str:
        if act == "read":
            return self._why_no_reading(event, slot)
        if act == "claim":
            return self._why_no_claim(place)
        if act == "read-again":
            if not read_text(event, "reason").strip():
                return "the event gives no reason"
            self._clear_conflicts(event)
        return ""

    def _why_no_reading(self, event: Event, slot: ReadingView) -> str:
        mask = read_text(event, "mask")
        if mask and not self._has_mask(mask):
            return self.WAITS
        if slot.state is not _S.READ:
            return ""
        if (slot.mask, slot.answers) == (mask, read_text(event, "answers", "{}")):
            return _SAME
        if not self._has_seen(event, slot.hash):
            text = "the same reader read the case twice on computers that were not synchronised"
            self._conflicts.append((text, frozenset({slot.hash, event.hash})))
            return _SAME
        return ""

    def _why_no_claim(self, place: tuple[str, int]) -> str:
        """Return why a claim must wait in second-look mode until the first reading, or ""."""
        for other, slot in self._slots.items():
            if other == place:
                return ""
            if other[1] == place[1] and slot.state is not _S.READ:
                return f"{other[0]} is the first reader and has not read the case yet"
        return ""

    def _on_case(self, event: Event, act: str, roles: frozenset[review.Role]) -> str:
        if read_whole(event, "round", 1) != self._round:
            if act in DECISIONS and self._is_unknown_decision(event):
                return self._note_conflict(event)
            return self._why_other_round(event)
        if not _CASE_STEPS[act].roles & roles:
            return f"the role {' and '.join(sorted(roles))} does not allow this action"
        if act in DECISIONS and self._is_unknown_decision(event):
            return self._note_conflict(event)
        if act == Act.COMPARE:
            return self._on_compare(event)
        if self._current_state not in _CASE_STEPS[act].sources:
            return f"{act} is not possible in the state {self._current_state} of the case"
        if act in (Act.ADJUDICATE, Act.SET_DOWN):
            is_up = act == Act.ADJUDICATE
            self._decided = _S.IN_ADJUDICATION if is_up else _S.DISAGREES
            self._adjudicator = event.reader if is_up else ""
            return ""
        return self._on_decision(event, Act(act), roles)

    def _on_compare(self, event: Event) -> str:
        body = event.body
        fresh = Comparison(
            tuple(sorted(read_list(event, "of"))),
            body.get("agrees") is True,
            read_list(event, "because"),
            read_pairs(event, "values"),
            event.reader,
            event.at,
        )
        before = self._comparison
        if before is not None and (before.of, before.agrees) == (fresh.of, fresh.agrees):
            return ""
        standing = tuple(
            sorted(
                first_reading.hash for first_reading in self._first_readings if first_reading.hash
            )
        )
        if self._current_state is not _S.READ or fresh.of != standing:
            return "the comparison does not refer to the current readings"
        self._comparison = fresh
        if not fresh.agrees or self._study.plan.mode is review.ReadingMode.PANEL:
            self._decided = _S.DISAGREES
        return ""

    def _on_decision(self, event: Event, act: Act, roles: frozenset[review.Role]) -> str:
        mask, reason = read_text(event, "mask"), read_text(event, "reason")
        if act is Act.ACCEPT and not self._may_accept(event.reader, roles):
            return "only a lead, an adjudicator or the second reader in second-look may accept"
        if act is not Act.ACCEPT and not reason.strip():
            return "the event gives no reason"
        if mask and not self._has_mask(mask):
            return self.WAITS
        answers, choice = read_text(event, "answers", "{}"), read_text(event, "choice")
        made_of = (read_list(event, "parents"), read_pairs(event, "how"))
        who = (act, event.reader, event.at, event.hash)
        decision = Decision(*who, mask, answers, choice, reason, *made_of)
        self._clear_conflicts(event)
        self._history.append(decision)
        self._decision, self._adjudicator = decision, ""
        self._decided = _CASE_STEPS[act.value].target
        if act is Act.REOPEN:
            self._begin_round()
        return ""

    def _may_accept(self, reader: str, roles: frozenset[review.Role]) -> bool:
        if roles & review.JUDGES:
            return True
        is_look = self._study.plan.mode is review.ReadingMode.SECOND_LOOK
        return is_look and bool(self._first_readings) and reader == self._first_readings[-1].reader

    def _begin_round(self) -> None:
        self._earlier += [slot for slot in self._slots.values() if slot.hash]
        self._round += 1
        self._slots = {
            slot: ReadingView(*slot, self._round) for slot in self._slots if slot[1] == 0
        }
        self._comparison = None
        self._signatures = []

    # ------------------------------------------------------------------ conflicts

    def _is_unknown_decision(self, event: Event) -> bool:
        return self._decision is not None and not self._has_seen(event, self._decision.hash)

    def _note_conflict(self, event: Event) -> str:
        before = self._decision
        if before is None:
            return ""
        other = (event.body.get("act"), read_text(event, "mask"), read_text(event, "answers", "{}"))
        if (before.act, before.mask, before.answers) != other:
            act = event.body.get("act")
            # without names, because this text is also shown where reader names are hidden
            text = f"{before.act} and {act} were decided independently of each other"
            self._conflicts.append((text, frozenset({before.hash, event.hash})))
            self._decided = _S.DISAGREES
        return ""

    def _clear_conflicts(self, event: Event) -> None:
        self._conflicts = [
            (text, of)
            for text, of in self._conflicts
            if not all(self._has_seen(event, digest) for digest in of)
        ]

    def _has_seen(self, event: Event, digest: str) -> bool:
        by_hash = {event.hash: event for event in self._events}
        chain = event[:3]
        left = list(event.seen)
        left += [one.hash for one in self._events if one[:3] == chain and one.seq < event.seq]
        visited: set[str] = set()
        while left:
            one = by_hash.get(left.pop())
            if one is None or one.hash in visited:
                continue
            if one.hash == digest:
                return True
            visited.add(one.hash)
            left += one.seen
            left += [
                other.hash
                for other in self._events
                if other[:3] == one[:3] and other.seq < one.seq and other.hash not in visited
            ]
        return False

    # ----------------------------------------------------------------- signatures

    def _on_signature(self, event: Event) -> str:
        meaning = read_text(event, "meaning")
        if meaning not in tuple(review.Meaning):
            return f"unknown meaning of a signature {meaning!r}"
        subject: ReadingView | Decision | None
        if meaning == review.Meaning.AUTHOR:
            subject = self._slots.get((event.reader, read_whole(event, "occasion")))
        else:
            subject = self._decision
            if self._decided not in _CASE_STEPS["sign"].sources:
                return f"there is nothing to sign in the state {self._current_state} of the case"
            if not self._may_accept(event.reader, self._roles[event.reader]):
                return (
                    "only a lead, an adjudicator or the second reader in second-look may sign "
                    "a case"
                )
        thing = self._describe_signed(event, review.Meaning(meaning), subject)
        if thing is None:
            return "the signature does not refer to the current result"
        key, signature = read_text(event, "key"), read_text(event, "signature")
        if not self._check(key, signature, thing.message):
            return "the signature is invalid"
        return self._add_signature(event, thing, key)

    def _add_signature(self, event: Event, thing: signatures.SignedThing, key: str) -> str:
        owner = next((one for one in self._keys if one.key == key), None)
        if owner is None or owner.reader != event.reader:
            return "the key does not belong to this reader"
        about = (key, thing.meaning, thing.subject, thing.at)
        if any(
            (signature.key, signature.meaning, signature.subject, signature.at) == about
            for signature in self._signatures
        ):
            return "the signature is a copy of an earlier signature"
        why_not = ""
        if not owner.covers(event):
            why_not = (
                "the key was revoked" if owner.ended else "no lead has countersigned the key yet"
            )
        who = (event.reader, thing.name, thing.meaning, thing.at, event.hash, thing.subject)
        rest = (thing.mask, key, thing.software, why_not)
        self._signatures.append(Signature(*who, *rest))
        if thing.meaning is not review.Meaning.AUTHOR and not why_not:
            self._decided = _S.SIGNED
        return ""

    def _describe_signed(
        self, event: Event, meaning: review.Meaning, subject: ReadingView | Decision | None
    ) -> signatures.SignedThing | None:
        if subject is None or not subject.hash or read_text(event, "subject") != subject.hash:
            return None
        answers = hashlib.sha256(subject.answers.encode()).hexdigest()
        return signatures.SignedThing(
            study=self._origin,
            reader=event.reader,
            name=read_text(event, "name"),
            case=self._case.key,
            case_id=self._study.signed_id(self._case.key),
            round=self._round,
            meaning=meaning,
            mask=subject.mask,
            answers=answers,
            subject=subject.hash,
            software=read_text(event, "software"),
            at=read_text(event, "signed_at"),
            seal=signatures.seal_of(event.prev, event.seen),
        )

    # --------------------------------------------------------------------- result

    @property
    def _first_readings(self) -> list[ReadingView]:
        return [slot for (_, occasion), slot in self._slots.items() if occasion == 0]

    @property
    def _current_state(self) -> CaseState:
        if self._decided is not None and self._decided is not _S.REOPENED:
            return self._decided
        states = {slot.state for slot in self._first_readings}
        if states == {_S.READ}:
            return _S.READ
        if _S.READ in states:
            return _S.SECOND_READING
        for state in (_S.IN_WORK, _S.CLAIMED):
            if state in states:
                return state
        return _S.REOPENED if self._round > 1 or _S.REOPENED in states else _S.NEW

    def view(self) -> CaseView:
        """Return the current state of the case."""
        return CaseView(
            self._case.key,
            self._current_state,
            self._round,
            tuple(self._slots.values()),
            self._comparison,
            self._decision,
            self._adjudicator,
            tuple(self._signatures),
            tuple(text for text, _ in self._conflicts),
            tuple(self._earlier),
            tuple(self._history),
            tuple(self._events),
        )


_SAME: Final = "same"
_UNTOUCHED: Final = ReadingView("")[2:]
_NOTHING: Final = ReadingView("")[7:]
_make_tuple: Final = tuple.__new__


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
    refused
        Events that do not count.
    waiting
        Events that count once their mask is in the store.
    """

    study: review.Study
    cases: tuple[CaseView, ...] = ()
    keys: tuple[signatures.KeyView, ...] = ()
    disputes: tuple[tuple[str, str], ...] = ()
    refused: tuple[Refusal, ...] = ()
    waiting: tuple[Refusal, ...] = ()

    def case(self, key: str) -> CaseView:
        """Return the case with a given key; raise `CaseError` if the key is unknown."""
        self.study.case(key)
        return next(view for view in self.cases if view.key == key)

    def name(self, reader_id: str) -> str:
        """Return the name of a reader."""
        return self.study.reader(reader_id).name

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
    """A replayed case, with the events and keys from which its state was computed."""

    stamp: object
    view: CaseView
    refused: tuple[Refusal, ...]
    waiting: tuple[Refusal, ...]


_Others: TypeAlias = tuple[signatures.KeyTable, Sequence[Refusal]]
"""Results of the events that belong to no case: keys and refused events."""


@dataclass(slots=True)
class ReplayMemory:
    """Results of one replay, cached for the next replay.

    Parameters
    ----------
    cases
        Replayed cases by key.
    others
        Events that belong to no case, with their result.
    looks
        Ids of the readers of each (case, occasion), in reading order; None before the first replay.
    """

    cases: dict[str, ReplayedCase] = field(default_factory=dict)
    others: tuple[list[Event], _Others] | None = None
    looks: Mapping[tuple[str, int], Sequence[str]] | None = None


def replay_events(
    study: review.Study,
    origin: str,
    chains: Iterable[Sequence[Event]],
    has_mask: Callable[[str], bool],
    check: signatures.Check,
    before: ReplayMemory | None = None,
) -> ReviewState:
    """Return the state of a study after replaying all its events.

    Parameters
    ----------
    study
        The study.
    origin
        SHA-256 of the study file, to which signatures are bound.
    chains
        Events of each file in order; an event that is in two files counts once.
    has_mask
        Function that returns whether the mask with a given SHA-256 is in the store.
    check
        Function that verifies a signature.
    before
        Cache from an earlier call; cases without a new event are not replayed again.
    """
    memory = ReplayMemory() if before is None else before
    with uncollected():
        by_case, others = _group_events(chains)
        # List comparison skips elements that are identical objects, so this is fast.
        if memory.others is None or memory.others[0] != others:
            memory.others = others, _replay_study(study, origin, others, check)
        table, refused_others = memory.others[1]
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
    return ReviewState(study, views, keys, table.disputes, tuple(refused), waiting)


def _replay_case(run: CaseReplay, events: list[Event], stamp: object) -> ReplayedCase:
    refused: list[Refusal] = []
    waiting: list[Refusal] = []
    for event, why in run.take_in(_order_events(events)):
        (waiting if why == CaseReplay.WAITS else refused).append(Refusal(event, why))
    return ReplayedCase(stamp, run.view(), tuple(refused), tuple(waiting))


_LATE_ACTS: Final = frozenset(step.act for step in STEPS) - {Act.SIGN}


def came_late(
    state: ReviewState,
    origin: str,
    event: Event,
    by_hash: Mapping[str, Event],
    has_mask: Callable[[str], bool],
    check: signatures.Check,
) -> bool:
    """Return whether a rejected step was valid given the events that its writer had seen.

    This happens if a program worked while the share was unreachable, or submitted a reading after
    others had decided the case. If a step is forbidden by its own earlier events, or comes from a
    session that never entered the study, this program did not write the step. Signatures and keys
    are never late, because they are either proven or not.

    Parameters
    ----------
    state
        The state of the study.
    origin
        SHA-256 of the study file.
    event
        One of the rejected events.
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
    """Return one case's events without duplicates, each after the events that precede it.

    An event follows the earlier events in its file and the events that its writer had seen. The
    order by clock is used if that order satisfies these conditions, which is nearly always the
    case.
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
    last: dict[tuple[object, ...], int] = {}
    for event in order:
        file, place = event[:3], event.seq
        if last.get(file, -1) >= place:
            return False
        last[file] = place
    return True


def _follows_seen(order: Sequence[Event]) -> bool:
    places = dict(zip(map(_HASH, order), itertools.count()))
    return all(
        places.get(digest, -1) < index
        for index, event in enumerate(order)
        if event.seen
        for digest in event.seen
    )


def _chain_anew(events: Iterable[Event]) -> list[list[Event]]:
    files: dict[tuple[str, str, str], list[Event]] = {}
    for event in sorted(events, key=lambda event: event.seq):
        file = files.setdefault((event.reader, event.host, event.session), [])
        before = file[-1].hash if file and file[-1].seq < event.seq else event.prev
        file.append(event._replace(prev=before))
    return list(files.values())


def _replay_study(
    study: review.Study, origin: str, events: Iterable[Event], check: signatures.Check
) -> _Others:
    fold = signatures.KeyReplay(study, origin, check)
    roles = {reader.reader_id: reader.roles for reader in study.readers}
    refused = []
    for event in merge_events([list(events)]):
        act = read_text(event, "act")
        why = ""
        if event.reader not in roles:
            why = f"the study has no reader {event.reader!r}"
        elif act in signatures.KEY_ACTS:
            why = fold.take_in(event, act)
        elif act not in (Act.ENTER, Act.NOTE, Act.UNBLIND):
            why = f"unknown action {act!r}"
        if why:
            refused.append(Refusal(event, why))
    table = fold.weigh()
    return table, [*refused, *(Refusal(event, why) for event, why in table.refused)]
