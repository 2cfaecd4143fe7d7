"""Countersign and revoke keys, as a lead or as the owner of a key."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.review import Role
from napari_mamamia.features.review.io.keys import read_public_key, sign_with
from napari_mamamia.features.review.rules.key_replay import KEY_ACTS, KeyView
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.signatures import (
    KeyRevocation,
    countersign_message,
    seal_of,
)
from napari_mamamia.features.review.rules.states import Act
from napari_mamamia.features.review.services.look import require_reason
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.workspace.event_order import Event, list_past


def countersign(lead: ReviewSession, reader_id: str, key: str, passphrase: str) -> Event:
    """Countersign a reader's key as a lead; compare its digits first in person or by telephone.

    Raises
    ------
    CaseError
        If the lead's own key does not count, or the passphrase is wrong.
    FormatError
        If there is no key of the lead on this computer.
    """
    own_key = read_public_key(lead.key_file)
    if not any(key.key == own_key and key.counts for key in lead.refresh().keys):
        raise CaseError(
            "expected a lead's key that counts, but yours does not: another lead has to "
            "countersign it first"
        )
    prev, seen = lead.prepare_seal()
    about = (lead.store.origin, reader_id, key, own_key, seal_of(prev, seen))
    signature = sign_with(lead.key_file, passphrase, countersign_message(*about))
    body = {"of": reader_id, "key": key, "by": own_key, "signature": signature}
    return lead.add_to_study(Act.COUNTERSIGN, seen, **body)


def describe_countersignature(state: ReviewState, key: str) -> str:
    """Describe the effect of a countersignature."""
    view = next(one for one in state.keys if one.key == key)
    name = state.name(view.reader)
    if view.ended:
        return f"The key of {name} was revoked and does not count: make a new one."
    if view.by:
        return f"The key of {name} counts."
    return (
        f"Your countersignature is saved. The key of {name} counts once "
        f"{count_of(view.n_missing, 'more lead')} countersign it."
    )


@dataclass(frozen=True, slots=True)
class RevocationResult:
    """Result of a revocation.

    Parameters
    ----------
    is_ended
        Whether the key is revoked; for a lead's key more leads may have to agree.
    n_standing, n_lost
        Numbers of signatures by the key that remain valid and that become invalid.
    names
        Leads who have revoked the key, while they are too few.
    """

    is_ended: bool
    n_standing: int
    n_lost: int
    names: tuple[str, ...] = ()


def revoke(
    session: ReviewSession,
    reader_id: str,
    key: str,
    reason: str,
    passphrase: str,
    since: str = "",
) -> RevocationResult:
    """Revoke a key; signatures proven to be earlier remain valid.

    Parameters
    ----------
    session
        The session of the lead or owner.
    reader_id, key
        Owner of the key, and the key.
    reason
        The reason.
    passphrase
        Passphrase of the person's own key.
    since
        Time from which the key is invalid (ISO 8601; local time without a zone). A signature
        remains valid if an event of somebody else had seen it by this time; the clock of the key's
        holder proves nothing. "" means now, so that all visible signatures remain valid.

    Raises
    ------
    CaseError
        If the reason or the permission is missing, the time is invalid or in the future, or the
        passphrase is wrong.
    FormatError
        If this computer has no key of the person.
    """
    require_reason(reason)
    moment = _parse_moment(since) if since.strip() else ""
    own_key = read_public_key(session.key_file)
    state = session.refresh()
    target = _find_key_to_revoke(state, session, key, own_key)
    events = [event for chain in session.store.read().chains.values() for event in chain]
    stand = _list_standing(state, target, events, moment)
    prev, seen = session.prepare_seal()
    about = (session.store.origin, reader_id, key, own_key, moment, reason.strip(), stand)
    end = KeyRevocation(*about, seal_of(prev, seen))
    signature = sign_with(session.key_file, passphrase, end.message)
    body = {"of": reader_id, "key": key, "by": own_key, "signature": signature}
    more = {"since": moment, "reason": end.reason, "stand": list(stand)}
    session.add_to_study(Act.REVOKE, seen, **body, **more)
    after = session.refresh()
    view = next(one for one in after.keys if one.key == key)
    signatures = [
        signature for case in after.cases for signature in case.signatures if signature.key == key
    ]
    n_standing = sum(signature.counts for signature in signatures)
    return RevocationResult(
        bool(view.ended), n_standing, len(signatures) - n_standing, view.against
    )


def describe_revocation(state: ReviewState, key: str, ending: RevocationResult) -> str:
    """Describe the effect of a revocation."""
    view = next(one for one in state.keys if one.key == key)
    name = state.name(view.reader)
    disputes = [text for reader, text in state.disputes if reader == view.reader]
    if not ending.is_ended and disputes:
        return f"The key of {name} remains valid: {disputes[0]}."
    if not ending.is_ended:
        return (
            f"Your revocation is saved. The key of {name} is revoked once more than half of the "
            "other leads agree; until then it counts, and `verify` reports it."
        )
    total = ending.n_standing + ending.n_lost
    signed = "no valid signature was made with it"
    if total:
        signed = f"{ending.n_standing} of {count_of(total, 'signature')} by it remain valid"
    return f"The key of {name} is revoked: {signed}. A new key counts once a lead countersigns it."


def _find_key_to_revoke(
    state: ReviewState, session: ReviewSession, key: str, own_key: str
) -> KeyView:
    """Return the key to revoke; raise `CaseError` if this person may not revoke it."""
    target = next((one for one in state.keys if one.key == key), None)
    if target is None:
        raise CaseError(
            "expected a key of the study, but found another one: check the list of keys"
        )
    if key == own_key:
        return target
    is_lead = Role.LEAD in session.reader.roles
    mine = next((key for key in state.keys if key.key == own_key), None)
    # A lead whose key was revoked by another lead may revoke in turn; otherwise the faster lead
    # would win.
    roles = state.study.reader(target.reader).roles
    is_answer = mine is not None and bool(mine.by) and Role.LEAD in roles
    if is_lead and mine is not None and (mine.counts or is_answer):
        return target
    raise CaseError(
        "expected your own key, or a lead with a key that counts, to revoke a key, but found "
        "neither: if you lost your key, ask a lead to revoke it"
    )


def _parse_moment(text: str) -> str:
    """Return a time as ISO 8601 in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CaseError(
            f"expected a time such as 2026-11-20T14:30, but found {text!r}: write year-month-day "
            "first"
        ) from error
    if moment > datetime.now(UTC):
        raise CaseError(
            f"expected a time in the past, but found {text!r}: leave it out to revoke the key "
            "from now on"
        )
    return moment.isoformat(timespec="seconds")


def _list_standing(
    state: ReviewState, target: KeyView, events: Iterable[Event], moment: str
) -> tuple[str, ...]:
    """Return the hashes of the events signed with a key that remain valid."""
    by_hash = {event.hash: event for event in events}
    refused = {refusal.event.hash for refusal in state.refused}
    words = {
        digest
        for digest, event in by_hash.items()
        if event.body.get("act") in KEY_ACTS and event.body.get("by") == target.key
    }
    mine = [
        signature
        for case in state.cases
        for signature in case.signatures
        if signature.key == target.key
    ]
    if not moment:
        return tuple(sorted({one.hash for one in mine if one.counts} | (words - refused)))
    others = (
        by_hash
        for by_hash in by_hash.values()
        if by_hash.reader != target.reader and by_hash.at <= moment
    )
    proven = list_past(by_hash, (other.hash for other in others))
    fit = {one.hash for one in mine} | words
    return tuple(sorted(one for one in fit & proven if by_hash[one].at <= moment))
