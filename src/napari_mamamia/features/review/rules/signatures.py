"""Canonical messages that are signed: signatures, keys, countersignatures and revocations.

The Ed25519 signing is in `features.review.io.keys`. This module defines the signed bytes, so that
other programs can verify them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from napari_mamamia.features.review.core.review import Meaning
from napari_mamamia.io.files.chained_lines import canonical

Check: TypeAlias = Callable[[str, str, bytes], bool]
"""Function that verifies (public key, signature, message); key and signature as hexadecimal digits.
"""


@dataclass(frozen=True, slots=True)
class SignedThing:
    """The content that a signature is bound to.

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
        SHA-256 of the mask file and of the canonical answers; "" without a mask.
    subject
        Hash of the event that recorded mask and answers.
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
        """Return the bytes to sign: canonical JSON of all fields and the message type."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return _make_message("signature", {**content, "meaning": self.meaning.value})


def seal_of(prev: str, seen: Iterable[str]) -> str:
    """Return the SHA-256 of all hashes that an event follows: the previous event, and those seen.

    Each hash covers a line that contains earlier hashes. A signature over the seal therefore covers
    every event that its writer knew, and changing one of these events requires the signer's key.
    """
    return hashlib.sha256(canonical([prev, sorted(set(seen))])).hexdigest()


def key_message(study: str, reader: str, key: str) -> bytes:
    """Return the message that a new key signs to prove its possession."""
    return _make_message("key", {"study": study, "reader": reader, "key": key})


def enter_message(study: str, reader: str, host: str, session: str, seal: str) -> bytes:
    """Return the message signed at the start of a session; `seal` as in `SignedThing`."""
    content = {"study": study, "reader": reader, "host": host, "session": session, "seal": seal}
    return _make_message("enter", content)


def countersign_message(study: str, reader: str, key: str, lead: str, seal: str) -> bytes:
    """Return the message with which a lead confirms that a public key belongs to a reader.

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
    """The signed content of the revocation of a key.

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
        invalid. "" revokes from now on.
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
    """Return the fingerprint of a public key: 16 digits of its SHA-256 in groups of four.

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
