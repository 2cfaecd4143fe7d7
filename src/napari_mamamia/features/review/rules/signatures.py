"""What is signed: canonical texts of a signature, of a key and of a lead's word for it.

The signing itself is Ed25519 and belongs to `io.review.keys`; here stands what the bytes say, so
that another program can check them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from napari_mamamia.features.review.core.review import Meaning
from napari_mamamia.io.files.chained_lines import canonical

Check: TypeAlias = Callable[[str, str, bytes], bool]
"""Tells whether (public key, signature, message) fit; key and signature in hexadecimal digits."""

_PLAIN, _SEALED = 1, 2
"""Versions of a message: before there were seals, and since."""


@dataclass(frozen=True, slots=True)
class SignedThing:
    """What a signature is bound to.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    reader, name
        Who signs: the id, and the name as it is printed.
    case, case_id, round
        Of the study.
    meaning
        What the signature means.
    mask, answers
        SHA-256 of the mask's file and of the canonical answers; "" without a mask.
    subject
        Hash of the event that made them.
    software
        Name and version.
    at
        When, by the signer's clock: ISO 8601, UTC.
    seal
        Of what the signer had seen, see `seal_of`; "" in signatures from before there were seals.
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
    seal: str = ""

    @property
    def message(self) -> bytes:
        """The bytes that are signed: canonical JSON of all fields and what it is."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _make_message("signature", {**content, "meaning": self.meaning.value})


def seal_of(prev: str, seen: Iterable[str]) -> str:
    """Return the SHA-256 of all that an event comes after: the event before it, and those seen.

    Each of these hashes is of a line that holds such hashes itself, so that a signature over it
    holds for every event that its writer knew: who changes one of them needs the signer's key.
    """
    return hashlib.sha256(canonical([prev, sorted(set(seen))])).hexdigest()


def key_message(study: str, reader: str, key: str) -> bytes:
    """Return what a new key signs itself: that its owner has it."""
    return _make_message("key", {"study": study, "reader": reader, "key": key})


def enter_message(study: str, reader: str, host: str, session: str, seal: str) -> bytes:
    """Return what somebody whose key counts signs as a session begins; `seal` as in SignedThing."""
    content = {"study": study, "reader": reader, "host": host, "session": session, "seal": seal}
    return _make_message("enter", content)


def countersign_message(study: str, reader: str, key: str, lead: str, seal: str = "") -> bytes:
    """Return what a lead signs: that this public key is that reader's; `seal` as in SignedThing."""
    content = {"study": study, "reader": reader, "key": key, "lead": lead, "seal": seal}
    return _make_message("countersign", content)


@dataclass(frozen=True, slots=True)
class KeyEnd:
    """That a key ends, as it is signed.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    reader, key
        Whose key, and which.
    by
        The key that says so: a lead's, or the key itself.
    since
        From when it does not count, ISO 8601 in UTC: what was not proven to be before does not
        stand. "" for from now on.
    reason
        In words.
    stand
        Hashes of the events by that key that go on counting.
    seal
        See `seal_of`.
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
        """The bytes that are signed."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _make_message("revoke", {**content, "stand": list(self.stand)})


def answers_hash(answers: Mapping[str, Any]) -> str:
    """Return the SHA-256 of answers in their canonical form."""
    return hashlib.sha256(canonical(answers)).hexdigest()


def short_key(key: str) -> str:
    """Return the first 16 digits of the SHA-256 of a public key in fours, to be read out.

    Examples
    --------
    >>> short_key("00" * 32)
    '6668 7aad f862 bd77'
    """
    digest = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]
    return " ".join(digest[index : index + 4] for index in range(0, 16, 4))


def _make_message(what: str, content: Mapping[str, Any]) -> bytes:
    about = dict(content)
    version = _SEALED if about.get("seal") else _PLAIN
    if version == _PLAIN:
        about.pop("seal", None)
    return canonical({"what": f"napari-mamamia review {what} {version}", **about})
