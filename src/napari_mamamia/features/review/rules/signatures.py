"""The messages that are signed, and the rules that decide which public keys are valid.

Ed25519 signing is in `features.review.io.keys`. This module defines the signed bytes, so that other
programs can verify the signatures.

A countersignature or revocation is signed with a lead's key and counts only if this key is valid,
which may depend on further revocations. Clocks are not trusted. All these statements are therefore
evaluated together: first the statements that nothing can invalidate, then those that follow from
them, until nothing changes. If two leads revoke each other's key, the program cannot know which key
is stolen. Then neither revocation counts, and the conflict is reported.

For a lead's key that is listed in the study file, more than half of the other leads must agree; for
any other key, one lead is enough. See `docs/methods/review.md`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from napari_mamamia.features.review.core.review import Meaning, Role, Study
from napari_mamamia.features.review.rules.states import Act, read_list, read_text
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.workspace.event_store import Event

Check: TypeAlias = Callable[[str, str, bytes], bool]
"""A function that verifies (public key, signature, message); both hexadecimal."""


@dataclass(frozen=True, slots=True)
class SignedThing:
    """The content that a signature covers.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    reader, name
        Id and printed name of the signer.
    case, case_id, round
        Key and id of the case, and the round of reading.
    meaning
        The meaning of the signature.
    mask, answers
        SHA-256 of the mask file ("" if there is no mask), and of the canonical answers.
    subject
        Hash of the event that recorded the mask and the answers.
    software
        Name and version of the software.
    at
        Time by the signer's clock: ISO 8601, UTC.
    seal
        Digest of the events that the signer had seen, see `seal_of`.
    """

    study: str
    reader: str
    name: str
    case: str
    case_id: str
    round: int
    meaning: Meaning
    mask: str
    answers: str
    subject: str
    software: str
    at: str
    seal: str

    @property
    def message(self) -> bytes:
        """Return the bytes to sign: all fields and the message type, as canonical JSON."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _make_message("signature", {**content, "meaning": self.meaning.value})


def seal_of(prev: str, seen: Iterable[str]) -> str:
    """Return the SHA-256 of the hashes of the previous event and of all events seen so far.

    Each hash covers a line that contains earlier hashes. A signature over the seal therefore covers
    every event that its writer knew, and changing any of these events requires the signer's key.
    """
    return hashlib.sha256(canonical([prev, sorted(set(seen))])).hexdigest()


def key_message(study: str, reader: str, key: str) -> bytes:
    """Return the message that is signed with a new key to prove possession of the key."""
    return _make_message("key", {"study": study, "reader": reader, "key": key})


def enter_message(study: str, reader: str, host: str, session: str, seal: str) -> bytes:
    """Return the message that is signed at the start of a session; see `SignedThing` for `seal`."""
    content = {"study": study, "reader": reader, "host": host, "session": session, "seal": seal}
    return _make_message("enter", content)


def countersign_message(study: str, reader: str, key: str, lead: str, seal: str) -> bytes:
    """Return the message that a lead signs to confirm that a public key belongs to a reader.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    reader, key
        Id of the reader, and the public key.
    lead
        Public key of the lead.
    seal
        As in `SignedThing`.
    """
    content = {"study": study, "reader": reader, "key": key, "lead": lead, "seal": seal}
    return _make_message("countersign", content)


@dataclass(frozen=True, slots=True)
class KeyRevocation:
    """The signed content of a key revocation.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    reader, key
        Owner of the key, and the key.
    by
        The revoking key: a lead's key, or the revoked key itself.
    since
        Time of revocation, ISO 8601 in UTC; signatures that are not proven to be earlier are
        invalid. If "", the key is revoked from now on.
    reason
        The reason in words.
    stand
        Hashes of the events by that key that remain valid.
    seal
        As in `seal_of`.
    """

    study: str
    reader: str
    key: str
    by: str
    since: str
    reason: str
    stand: tuple[str, ...]
    seal: str

    @property
    def message(self) -> bytes:
        """Return the bytes to sign."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _make_message("revoke", {**content, "stand": list(self.stand)})


def short_key(key: str) -> str:
    """Return a short form of a public key: 16 digits of its SHA-256, in groups of four.

    Examples
    --------
    >>> short_key("00" * 32)
    '6668 7aad f862 bd77'
    """
    digest = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]
    return " ".join(digest[index : index + 4] for index in range(0, 16, 4))


def _make_message(what: str, content: Mapping[str, Any]) -> bytes:
    version = 2 if "seal" in content else 1
    return canonical({"what": f"napari-mamamia review {what} {version}", **content})


KEY_ACTS: Final = frozenset({Act.KEY.value, Act.COUNTERSIGN.value, Act.REVOKE.value})
_NO_KEY: Final = "the lead's own key is not valid"
_WAS_ENDED: Final = "the signing key was revoked, and the revocation does not preserve this event"
_CROSSES: Final = "two leads have revoked each other's keys: see the list of keys"


@dataclass(frozen=True, slots=True)
class KeyView:
    """A public key with its owner and its validity.

    Parameters
    ----------
    reader, key
        Id of the owner, and the public key in hexadecimal digits.
    by
        Id of the lead who countersigned the key, or of the owner for a lead's first key; "" while
        countersignatures are missing.
    since
        Time of the countersignature, by the lead's clock.
    ended
        Time and reason of the revocation, or "" if the key is not revoked.
    stand
        Hashes of the events signed with the key that remain valid after the revocation.
    n_missing
        Number of countersignatures still needed.
    against
        Names of the people who have revoked the key, while their number is too small.
    is_bound
        Whether the key is listed in the study file.
    n_loose
        Number of countersignatures and revocations made with the key that remain valid although the
        owner's revocation does not list them, because other people rely on them.
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
        """Return whether new signatures with the key are valid."""
        return bool(self.by) and not self.ended

    def covers(self, event: Event) -> bool:
        """Return whether the signature in an event is valid."""
        return bool(self.by) and (not self.ended or event.hash in self.stand)


@dataclass(frozen=True, slots=True)
class KeyTable:
    """All keys, the conflicts as (reader id, description), and the rejected events."""

    keys: tuple[KeyView, ...]
    disputes: tuple[tuple[str, str], ...]
    refused: tuple[tuple[Event, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Word:
    """A countersignature of a key, or a revocation if `is_end`."""

    event: Event
    key: str
    by: str
    is_end: bool
    about: KeyRevocation | None = None

    @property
    def stand(self) -> tuple[str, ...]:
        return self.about.stand if self.about else ()


@dataclass(slots=True)
class _Scales:
    """The statements that certainly count, and the statements that may still count."""

    counted: set[_Word]
    possible: set[_Word]

    @property
    def is_done(self) -> bool:
        return self.counted == self.possible


class KeyReplay:
    """Replays the key events of a study to find the valid keys."""

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
        """Add an event; return why it is invalid regardless of other events, or ""."""
        if act == Act.KEY:
            return self._add_key(event)
        is_own_end = act == Act.REVOKE and read_text(event, "by") == read_text(event, "key")
        if is_own_end or event.reader in self._leads:
            self._unread.append((event, act))  # the key's event may be in a file that is read later
            return ""
        return "only a lead may countersign or revoke another key"

    def weigh(self) -> KeyTable:
        """Decide which keys are valid, considering all events."""
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
            return "" if owner == event.reader else "the key belongs to another reader"
        if not self._check(key, proof, key_message(self._origin, event.reader, key)):
            return "the event does not prove possession of the key"
        self._owners[key] = event.reader
        if event.reader in self._leads and not self._roots:
            self._roots[key] = event.reader
            self._times[key] = event.at
        return ""

    def _read_word(self, event: Event, *, is_end: bool) -> _Word | str:
        reader, key = read_text(event, "of"), read_text(event, "key")
        by, signature = read_text(event, "by"), read_text(event, "signature")
        if self._owners.get(by) != event.reader:
            return _NO_KEY
        if self._owners.get(key) != reader:
            return "the key is unknown"
        seal = seal_of(event.prev, event.seen)
        about = None
        message = countersign_message(self._origin, reader, key, by, seal)
        if is_end:
            texts = (read_text(event, "since"), read_text(event, "reason"))
            about = KeyRevocation(
                self._origin, reader, key, by, *texts, read_list(event, "stand"), seal
            )
            message = about.message
        if not self._check(by, signature, message):
            return "the lead's signature is invalid"
        return _Word(event, key, by, is_end, about)

    # ---------------------------------------------------------------- weighing

    def _list_voters(self, person: str) -> frozenset[str]:
        others = self._bound - {person}
        return others if person in self._bound and others else self._leads

    def _count_needed(self, person: str) -> int:
        return len(self._bound - {person}) // 2 + 1 if person in self._bound else 1

    def _list_speakers(self, key: str, among: set[_Word], *, is_end: bool) -> list[_Word]:
        voters = self._list_voters(self._owners[key])
        # A lead without other leads may revoke their own key.
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
        """Return the hashes of a revoked key's events that remain valid.

        Each person who revoked the key keeps the events that all of that person's revocations list.
        An event remains valid if at least one person keeps it. A revocation by the key itself
        counts only if nobody else revoked the key, because it may come from a thief.
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
        ends = [word for word in words if word.is_end and self._owners[word.key] in self._leads]
        pairs = {(end.by, end.key) for end in ends}
        return [end for end in ends if (end.key, end.by) in pairs] or ends

    def _describe_crossing(self, word: _Word) -> tuple[str, str]:
        by, of = self._owners[word.by], self._owners[word.key]
        return of, (
            f"{self._names[by]} (key {short_key(word.by)}) revokes key {short_key(word.key)} of "
            f"{self._names[of]}, who revokes the first key in turn, so neither revocation counts. "
            "One of the two keys is in the wrong hands. Ask both leads in person or by "
            "telephone, then ask more leads to countersign or revoke"
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
