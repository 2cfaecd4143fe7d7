"""Order the events of several writers identically on every computer."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One event: its writer, place and time, and its content.

    A tuple, not a dataclass: there are hundreds of thousands, and creating one takes a third of the
    time.

    Parameters
    ----------
    reader, host, session, seq
        The reader, the computer, the run of the program, and the number in this run, from 0.
    at
        Clock of that computer, ISO 8601 in UTC.
    body
        The content: JSON without floats.
    seen
        Hashes of the last event of each other file that its writer knew.
    hash, prev
        Of its line, and of the previous line.
    """

    reader: str
    host: str
    session: str
    seq: int
    at: str
    body: Mapping[str, Any]
    seen: tuple[str, ...] = ()
    hash: str = ""
    prev: str = ""


def merge_events(chains: Iterable[Sequence[Event]]) -> tuple[Event, ...]:
    """Return all events once, each after the events on which it depends.

    Remaining ties are resolved by clock, then reader, computer, session, sequence number and hash,
    so that every computer finds the same order.
    """
    by_hash = {event.hash: event for events in chains for event in events}
    order = sorted(by_hash.values(), key=_rank_event)
    return tuple(order) if _keeps_order(order, by_hash) else _order_by_needs(by_hash)


def list_past(by_hash: Mapping[str, Event], hashes: Iterable[str]) -> set[str]:
    """Return the events that the given events have seen or follow, including themselves."""
    past: set[str] = set()
    left = list(hashes)
    while left:
        digest = left.pop()
        event = by_hash.get(digest)
        if event is not None and digest not in past:
            past.add(digest)
            left += (event.prev, *event.seen)
    return past


def _keeps_order(order: Iterable[Event], by_hash: Mapping[str, Event]) -> bool:
    """Return whether each event follows all events on which it depends."""
    gone: set[str] = set()
    for event in order:
        if event.prev not in gone and event.prev in by_hash:
            return False
        if any(other not in gone and other in by_hash for other in event.seen):
            return False
        gone.add(event.hash)
    return True


def _order_by_needs(by_hash: Mapping[str, Event]) -> tuple[Event, ...]:
    needs = {digest: _list_needs(event, by_hash) for digest, event in by_hash.items()}
    then: dict[str, list[str]] = {}
    for digest, others in needs.items():
        for other in others:
            then.setdefault(other, []).append(digest)
    ready = [_rank_event(by_hash[digest]) for digest, others in needs.items() if not others]
    heapq.heapify(ready)
    order: list[Event] = []
    while ready:
        digest = heapq.heappop(ready)[-1]
        order.append(by_hash[digest])
        for other in then.get(digest, ()):
            needs[other].discard(digest)
            if not needs[other]:
                heapq.heappush(ready, _rank_event(by_hash[other]))
    return tuple(order)


def _list_needs(event: Event, by_hash: Mapping[str, Event]) -> set[str]:
    return {other for other in (event.prev, *event.seen) if other in by_hash}


def _rank_event(event: Event) -> tuple[str, str, str, str, int, str]:
    # Including the hash, so that every computer finds the same order.
    return (event.at, event.reader, event.host, event.session, event.seq, event.hash)
