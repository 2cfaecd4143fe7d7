"""From the events of a study to where every case stands: one computation, the same everywhere.

Nothing is decided by clocks: a step counts if the table of `states` has it from where its writer
had seen the case stand, or where nobody knew better. What does not count is kept and told.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from napari_mamamia.core.garbage import uncollected
from napari_mamamia.core.review import Role, Study
from napari_mamamia.io.workspace.event_order import Event, merge_events
from napari_mamamia.reviewing.assignment import order_of_looks
from napari_mamamia.reviewing.case_fold import CaseFold
from napari_mamamia.reviewing.signatures import (
    Check,
    countersign_message,
    key_message,
    revoke_message,
)
from napari_mamamia.reviewing.states import Act, CaseState
from napari_mamamia.reviewing.views import CaseView, read_list, read_text

_HASH: Final = attrgetter("hash")
_CLOCK: Final = attrgetter("at")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that does not count, and why in plain words."""

    event: Event
    why: str


@dataclass(frozen=True, slots=True)
class KeyView:
    """A public key: whose, and whether it counts.

    Parameters
    ----------
    by
        The lead who gave a word for it; the reader itself for a lead's own first key; "" while
        nobody has.
    since
        When, by the lead's clock.
    ended
        When it was revoked and why, "" while it was not.
    stand
        Hashes of the events whose signatures go on counting after that.
    """

    reader: str
    key: str
    by: str = ""
    since: str = ""
    ended: str = ""
    stand: frozenset[str] = frozenset()

    @property
    def counts(self) -> bool:
        """Whether new signatures by it count."""
        return bool(self.by) and not self.ended

    def covers(self, event: Event) -> bool:
        """Whether a signature in this event counts."""
        return bool(self.by) and (not self.ended or event.hash in self.stand)


@dataclass(frozen=True, slots=True)
class ReviewState:
    """Where a study stands.

    Parameters
    ----------
    cases
        One for each case, in the order of the study.
    keys
        All public keys, in the order in which they came.
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
class FoldedCase:
    """A case as it was found, and what it was found by."""

    stamp: object
    view: CaseView
    refused: tuple[Refusal, ...]
    waiting: tuple[Refusal, ...]


@dataclass(slots=True)
class FoldMemory:
    """What one program remembers of a study's cases between two looks, by key."""

    cases: dict[str, FoldedCase] = field(default_factory=dict)


def fold_events(
    study: Study,
    origin: str,
    chains: Iterable[Sequence[Event]],
    has_mask: Callable[[str], bool],
    check: Check,
    before: FoldMemory | None = None,
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
    memory = FoldMemory() if before is None else before
    with uncollected():
        by_case, others = _group_events(chains)
        keys, names, refused = _fold_study(study, origin, others, check)
        case_keys = {case.key for case in study.cases}
        refused += [
            Refusal(event, f"the study has no case {name!r}")
            for name in by_case.keys() - case_keys
            for event in by_case[name]
        ]
        looks = order_of_looks(study.tasks, study.plan.mode)
        roles = {one.reader_id: frozenset(one.roles) for one in study.readers}
        folded = []
        for case in study.cases:
            events = by_case.get(case.key, [])
            stamp = (tuple(map(_HASH, events)), tuple(keys))
            one = memory.cases.get(case.key)
            if one is None or one.stamp != stamp or one.waiting:
                run = CaseFold(study, origin, case, looks, roles, keys, has_mask, check)
                one = memory.cases[case.key] = _fold_case(run, events, stamp)
            folded.append(one)
    refused += [refusal for one in folded for refusal in one.refused]
    waiting = tuple(refusal for one in folded for refusal in one.waiting)
    views = tuple(one.view for one in folded)
    return ReviewState(study, views, tuple(keys), names, tuple(refused), waiting)


def _fold_case(run: CaseFold, events: list[Event], stamp: object) -> FoldedCase:
    refused: list[Refusal] = []
    waiting: list[Refusal] = []
    for event in _order_events(events):
        if why := run.apply(event):
            (waiting if why == CaseFold.WAITS else refused).append(Refusal(event, why))
    return FoldedCase(stamp, run.view(), tuple(refused), tuple(waiting))


def _group_events(
    chains: Iterable[Sequence[Event]],
) -> tuple[dict[str, list[Event]], list[Event]]:
    """Return the events of each case, and those of none."""
    by_case: defaultdict[str, list[Event]] = defaultdict(list)
    others: list[Event] = []
    for chain in chains:
        for event in chain:
            case = event.body.get("case")
            if type(case) is str:
                by_case[case].append(event)
            else:
                others.append(event)
    return dict(by_case), others


def _order_events(events: list[Event]) -> Iterable[Event]:
    """Return the events of one case, each after those before it in its file and those it had seen.

    By clock where that is such an order already, which it nearly always is.
    """
    by_hash = dict(zip(map(_HASH, events), events, strict=True))
    order = sorted(by_hash.values(), key=_CLOCK)
    if len({event.at for event in order}) < len(order):
        order.sort(key=attrgetter("at", "hash"))
    if _keeps_order(order, by_hash):
        return order
    return merge_events(_chain_anew(by_hash.values()))


def _keeps_order(order: Iterable[Event], by_hash: Mapping[str, Event]) -> bool:
    last: dict[tuple[str, str, str], int] = {}
    visited = set()
    for reader, host, session, seq, _, _, seen, digest, _ in order:
        chain = (reader, host, session)
        if last.get(chain, -1) >= seq:
            return False
        for one in seen:
            if one not in visited and one in by_hash:
                return False
        last[chain] = seq
        visited.add(digest)
    return True


def _chain_anew(events: Iterable[Event]) -> list[list[Event]]:
    """Return the events of a case by file, each with the one before it there as its `prev`."""
    files: dict[tuple[str, str, str], list[Event]] = {}
    for event in sorted(events, key=lambda event: event.seq):
        file = files.setdefault((event.reader, event.host, event.session), [])
        before = file[-1].hash if file and file[-1].seq < event.seq else event.prev
        file.append(event._replace(prev=before))
    return list(files.values())


def _fold_study(
    study: Study, origin: str, events: Iterable[Event], check: Check
) -> tuple[list[KeyView], dict[str, str], list[Refusal]]:
    """Return keys, changed names and what does not count of what is said of no case."""
    fold = _StudyFold(study, origin, check)
    left = list(merge_events([list(events)]))
    # A lead's word may come before the file of the key that it is for.
    n_before = -1
    while left and len(left) != n_before:
        n_before = len(left)
        left = [event for event in left if fold.apply(event)]
    return fold.keys, fold.names, [Refusal(event, fold.apply(event)) for event in left]


class _StudyFold:
    """Keys and names so far."""

    def __init__(self, study: Study, origin: str, check: Check) -> None:
        self._study, self._origin, self._check = study, origin, check
        self._roles = {one.reader_id: one.roles for one in study.readers}
        self.keys = [KeyView(one.reader, one.key, one.reader) for one in study.lead_keys]
        self.names: dict[str, str] = {}

    def apply(self, event: Event) -> str:
        """Take an event in; return why it does not count, "" where it does."""
        if event.reader not in self._roles:
            return f"the study has no reader {event.reader!r}"
        (act,) = _read_texts(event, "act")
        if act == Act.KEY:
            return self._add_key(event, *_read_texts(event, "key", "proof"))
        if act not in (Act.COUNTERSIGN, Act.REVOKE, Act.RENAME):
            return (
                ""
                if act in (Act.ENTER, Act.NOTE, Act.UNBLIND)
                else f"it does {act!r}, which is not known"
            )
        if Role.LEAD not in self._roles[event.reader]:
            return "only a lead may do that"
        if act == Act.RENAME:
            reader, name = _read_texts(event, "of", "name")
            if reader not in self._roles or not name.strip():
                return f"the study has no reader {reader!r}, or the name is empty"
            self.names[reader] = name
            return ""
        return self._change_key(event, act == Act.REVOKE)

    def _add_key(self, event: Event, key: str, proof: str) -> str:
        if any(one.key == key and one.reader == event.reader for one in self.keys):
            return ""
        if any(one.key == key for one in self.keys):
            return "the key is another reader's"
        if not self._check(key, proof, key_message(self._origin, event.reader, key)):
            return "whoever wrote it does not hold the key"
        leads = {one.reader_id for one in self._study.readers if Role.LEAD in one.roles}
        is_root = event.reader in leads and not any(one.by for one in self.keys)
        by, since = (event.reader, event.at) if is_root else ("", "")
        self.keys.append(KeyView(event.reader, key, by, since))
        return ""

    def _change_key(self, event: Event, is_end: bool) -> str:
        reader, key, lead_key, signature = _read_texts(event, "of", "key", "by", "signature")
        lead = next((one for one in self.keys if one.key == lead_key), None)
        if lead is None or lead.reader != event.reader or not lead.by:
            return "the lead's own key does not count"
        stand = read_list(event, "stand")
        message = (
            revoke_message(self._origin, reader, key, lead_key, stand)
            if is_end
            else countersign_message(self._origin, reader, key, lead_key)
        )
        if not self._check(lead_key, signature, message):
            return "the lead's signature does not fit"
        at = next(
            (i for i, one in enumerate(self.keys) if (one.reader, one.key) == (reader, key)), -1
        )
        if at < 0:
            return "the key is not there"
        one = self.keys[at]
        if is_end:
            reason = str(event.body.get("reason", ""))
            one = replace(one, ended=f"{event.at}: {reason}", stand=frozenset(stand))
        elif not one.by:
            one = replace(one, by=event.reader, since=event.at)
        self.keys[at] = one
        return ""


def _read_texts(event: Event, *names: str) -> list[str]:
    return [read_text(event, name) for name in names]
