"""Which keys count: leads' words for keys and against them, weighed without any clock.

A word is signed by the key of a lead. It counts if that key counts, and the key may end by words
of others, so all are weighed together: what nothing can take back counts first, then what that
decides, until nothing changes. Two leads' words that each end the other's key are left then: no
program can tell which of the two is the thief. Neither counts, and the site is told.

For the key of a lead that stands in the study's file more than half of the other leads there must
say the same; for any other key one lead is enough. See `docs/methods/review.md`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from napari_mamamia.features.review.core.review import Role, Study
from napari_mamamia.features.review.rules.signatures import (
    Check,
    KeyEnd,
    countersign_message,
    key_message,
    seal_of,
    short_key,
)
from napari_mamamia.features.review.rules.states import Act
from napari_mamamia.features.review.rules.views import read_list, read_text
from napari_mamamia.io.workspace.event_order import Event

KEY_ACTS: Final = frozenset({Act.KEY.value, Act.COUNTERSIGN.value, Act.REVOKE.value})
_NO_KEY: Final = "the lead's own key does not count"
_WAS_ENDED: Final = "the key that it is signed with was revoked, and it is not among what stands"
_CROSSES: Final = "it and the word of the lead whose key it ends are against each other: see keys"


@dataclass(frozen=True, slots=True)
class KeyView:
    """A public key: whose, and whether it counts.

    Parameters
    ----------
    by
        The lead who gave a word for it; the reader itself for a lead's own first key; "" while
        too few have.
    since
        When, by the lead's clock.
    ended
        When it was revoked and why, "" while it was not.
    stand
        Hashes of the events signed with it that go on counting after that.
    n_missing
        Leads who have still to give their word for it.
    against
        Names of who say that it ends, while they are too few.
    is_bound
        Whether it stands in the study's file.
    n_loose
        Words of a lead's key for keys of others that its own end does not list and that count
        nevertheless: who ends his own key cannot take back what others build on.
    """

    reader: str
    key: str
    by: str = ""
    since: str = ""
    ended: str = ""
    stand: frozenset[str] = frozenset()
    n_missing: int = 0
    against: tuple[str, ...] = ()
    is_bound: bool = False
    n_loose: int = 0

    @property
    def counts(self) -> bool:
        """Whether new signatures by it count."""
        return bool(self.by) and not self.ended

    def covers(self, event: Event) -> bool:
        """Whether a signature in this event counts."""
        return bool(self.by) and (not self.ended or event.hash in self.stand)


@dataclass(frozen=True, slots=True)
class KeyTable:
    """All keys, what contradicts itself (reader id, in words), and which events do not count."""

    keys: tuple[KeyView, ...]
    disputes: tuple[tuple[str, str], ...]
    refused: tuple[tuple[Event, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Word:
    """What is said of a key: that it is its reader's, or (`is_end`) that it ends."""

    event: Event
    key: str
    by: str
    is_end: bool
    about: KeyEnd | None = None

    @property
    def stand(self) -> tuple[str, ...]:
        return self.about.stand if self.about else ()


@dataclass(slots=True)
class _Scales:
    """Words that surely count, and those that are not refused."""

    counted: set[_Word]
    possible: set[_Word]

    @property
    def is_done(self) -> bool:
        return self.counted == self.possible


class KeyReplay:
    """Keys and words while their events are taken in."""

    def __init__(self, study: Study, origin: str, check: Check) -> None:
        self._origin, self._check = origin, check
        self._names = {reader.reader_id: reader.name for reader in study.readers}
        self._leads = frozenset(
            reader.reader_id for reader in study.readers if Role.LEAD in reader.roles
        )
        self._bound = frozenset(lead_key.reader for lead_key in study.lead_keys)
        self._roots = {lead_key.key: lead_key.reader for lead_key in study.lead_keys}
        self._owners = dict(self._roots)
        self._times: dict[str, str] = {}
        self._words: list[_Word] = []
        self._about: dict[str, list[_Word]] = {}
        self._unread: list[tuple[Event, str]] = []
        self._refused: list[tuple[Event, str]] = []

    def take_in(self, event: Event, act: str) -> str:
        """Take an event in; return why it does not count whatever else is said, "" otherwise."""
        if act == Act.KEY:
            return self._add_key(event)
        if self._is_own_end(event, act) or event.reader in self._leads:
            self._unread.append((event, act))  # the key may stand in a file that comes later
            return ""
        return "only a lead may do that"

    def weigh(self) -> KeyTable:
        """Return which keys count after all that was taken in."""
        for event, act in self._unread:
            word = self._read_word(event, is_end=act == Act.REVOKE)
            if isinstance(word, str):
                self._refused.append((event, word))
            else:
                self._words.append(word)
        for word in self._words:
            self._about.setdefault(word.key, []).append(word)
        self_ends = {word for word in self._words if word.is_end and word.by == word.key}
        scales = _Scales(self_ends, set(self._words))
        disputes = []
        while not scales.is_done:
            if self._weigh_once(scales):
                continue
            words = [word for word in self._words if word in scales.possible - scales.counted]
            crossing = self._find_crossing(words)
            for word in crossing or words:
                scales.possible.remove(word)
                self._refused.append((word.event, _CROSSES if crossing else _NO_KEY))
            disputes += [self._describe_crossing(word) for word in crossing]
        keys = tuple(self._view_key(key, scales.counted) for key in self._owners)
        return KeyTable(keys, tuple(dict.fromkeys(disputes)), tuple(self._refused))

    # --------------------------------------------------------------- taking in

    def _add_key(self, event: Event) -> str:
        key, proof = read_text(event, "key"), read_text(event, "proof")
        owner = self._owners.get(key)
        if owner is not None:
            return "" if owner == event.reader else "the key is another reader's"
        if not self._check(key, proof, key_message(self._origin, event.reader, key)):
            return "whoever wrote it does not hold the key"
        self._owners[key] = event.reader
        if event.reader in self._leads and not self._roots:
            self._roots[key] = event.reader
            self._times[key] = event.at
        return ""

    def _is_own_end(self, event: Event, act: str) -> bool:
        return act == Act.REVOKE and read_text(event, "by") == read_text(event, "key")

    def _read_word(self, event: Event, *, is_end: bool) -> _Word | str:
        reader, key = read_text(event, "of"), read_text(event, "key")
        by, signature = read_text(event, "by"), read_text(event, "signature")
        if self._owners.get(by) != event.reader:
            return _NO_KEY
        if self._owners.get(key) != reader:
            return "the key is not there"
        for seal in (seal_of(event.prev, event.seen), ""):
            about = None
            message = countersign_message(self._origin, reader, key, by, seal)
            if is_end:
                texts = (read_text(event, "since"), read_text(event, "reason"))
                stand = read_list(event, "stand")
                about = KeyEnd(self._origin, reader, key, by, *texts, stand, seal)
                message = about.message
            if self._check(by, signature, message):
                return _Word(event, key, by, is_end, about)
        return "the lead's signature does not fit"

    # ---------------------------------------------------------------- weighing

    def _list_voters(self, person: str) -> frozenset[str]:
        """Return who has a say about a person's keys."""
        others = self._bound - {person}
        return others if person in self._bound and others else self._leads

    def _count_needed(self, person: str) -> int:
        """Return how many of them must say the same: more than half of the other bound leads."""
        return len(self._bound - {person}) // 2 + 1 if person in self._bound else 1

    def _list_speakers(self, key: str, among: set[_Word], *, is_end: bool) -> list[_Word]:
        """Return the words for or against a key of who has a say, one for each person."""
        voters = self._list_voters(self._owners[key])
        # Of a lead beside whom there is none the own word is all that there can be.
        is_alone = voters <= {self._owners[key]}
        speakers: dict[str, _Word] = {}
        for word in self._about.get(key, ()):
            is_spoken = word.by != key or (is_alone and is_end)
            person = self._owners[word.by]
            if word.is_end is is_end and word in among and person in voters and is_spoken:
                speakers.setdefault(person, word)
        return list(speakers.values())

    def _is_countersigned(self, key: str, among: set[_Word]) -> bool:
        needed = self._count_needed(self._owners[key])
        return key in self._roots or len(self._list_speakers(key, among, is_end=False)) >= needed

    def _is_ended(self, key: str, among: set[_Word]) -> bool:
        needed = self._count_needed(self._owners[key])
        return len(self._list_speakers(key, among, is_end=True)) >= needed

    def _list_standing(self, key: str, among: set[_Word]) -> frozenset[str]:
        """Return what any of the people who end a key lets stand, each in all that he said.

        The key's own words say it only where nobody else spoke: they may be a thief's.
        """
        voters = self._list_voters(self._owners[key])
        lists: dict[str, frozenset[str]] = {}
        for word in self._about.get(key, ()):
            person = "" if word.by == key else self._owners[word.by]
            if word.is_end and word in among and (not person or person in voters):
                before = lists.get(person, frozenset(word.stand))
                lists[person] = before & frozenset(word.stand)
        itself = lists.pop("", frozenset())
        return frozenset[str]().union(*lists.values()) if lists else itself

    def _weigh_once(self, scales: _Scales) -> bool:
        """Decide what can be decided now; return whether anything was."""
        counted, possible = scales.counted, scales.possible
        is_moved = False
        for word in self._words:
            if word in counted or word not in possible:
                continue
            by, digest = word.by, word.event.hash
            is_lost = self._is_ended(by, counted)
            is_listed = digest in self._list_standing(by, possible)
            is_safe = digest in self._list_standing(by, counted) or not self._is_ended(by, possible)
            if not self._is_countersigned(by, possible) or (is_lost and not is_listed):
                why = _WAS_ENDED if is_lost else _NO_KEY
                self._refused.append((word.event, why))
                possible.remove(word)
                is_moved = True
            elif is_safe and self._is_countersigned(by, counted):
                counted.add(word)
                is_moved = True
        return is_moved

    def _find_crossing(self, words: Iterable[_Word]) -> list[_Word]:
        """Return the words that end each other's keys; of longer circles all that end a lead's."""
        ends = [word for word in words if word.is_end and self._owners[word.key] in self._leads]
        pairs = {(end.by, end.key) for end in ends}
        return [end for end in ends if (end.key, end.by) in pairs] or ends

    def _describe_crossing(self, word: _Word) -> tuple[str, str]:
        by, of = self._owners[word.by], self._owners[word.key]
        return of, (
            f"{self._names[by]} (key {short_key(word.by)}) ends key {short_key(word.key)} of "
            f"{self._names[of]}, whose own word is against it: neither counts. One of the two keys "
            "is in wrong hands, and no program can tell which: ask both by voice, then let more "
            "leads say so"
        )

    # ------------------------------------------------------------------ result

    def _view_key(self, key: str, counted: set[_Word]) -> KeyView:
        reader = self._owners[key]
        vouches = self._list_speakers(key, counted, is_end=False)
        by = since = ""
        if key in self._roots:
            by, since = reader, self._times.get(key, "")
        elif self._is_countersigned(key, counted):
            by, since = self._owners[vouches[0].by], vouches[0].event.at
        n_missing = 0 if by else self._count_needed(reader) - len(vouches)
        ends = self._list_speakers(key, counted, is_end=True)
        self_ends = [one for one in self._about.get(key, ()) if one.is_end and one.by == key]
        ended, against = "", tuple(self._names[self._owners[end.by]] for end in ends)
        stand: frozenset[str] = frozenset()
        if self_ends or self._is_ended(key, counted):
            ended, against = _describe_end((ends or self_ends)[0]), ()
            stand = self._list_standing(key, counted)
        is_bound = key in self._roots and bool(self._bound)
        words = [word for word in self._words if word.by == key and word in counted]
        loose = [word for word in words if word.event.hash not in stand and word not in self_ends]
        n_loose = len(loose) if ended else 0
        about = (ended, stand, n_missing, against, is_bound, n_loose)
        return KeyView(reader, key, by, since, *about)


def _describe_end(word: _Word) -> str:
    about = word.about
    since = about.since if about and about.since else word.event.at
    return f"{since[:19].replace('T', ' ')} UTC: {about.reason if about else ''}"
