"""A word for a key and against one, signed: by leads, and by who holds the key."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.core.review import Role
from napari_mamamia.features.review.io.keys import read_public_key, sign_with
from napari_mamamia.features.review.rules.key_replay import KEY_ACTS, KeyView
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.signatures import KeyEnd, countersign_message, seal_of
from napari_mamamia.features.review.rules.states import Act
from napari_mamamia.features.review.services.look import require_reason
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.workspace.event_order import Event, list_past


def countersign(lead: ReviewSession, reader_id: str, key: str, passphrase: str) -> Event:
    """Give a lead's word that a key is that reader's; compare its digits by voice first.

    Raises
    ------
    CaseError
        If the lead's own key does not count, or the passphrase is not its.
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


def describe_word(state: ReviewState, key: str) -> str:
    """Return what a word for a key brought, in words."""
    view = next(one for one in state.keys if one.key == key)
    name = state.name(view.reader)
    if view.ended:
        return f"The key of {name} was ended and does not count: make a new one."
    if view.by:
        return f"The key of {name} counts."
    return f"Your word is kept. The key of {name} counts once {view.n_missing} more lead(s) agree."


@dataclass(frozen=True, slots=True)
class KeyEnding:
    """What came of a revocation.

    Parameters
    ----------
    is_ended
        Whether the key ends by it; of a lead's key more leads may have to say so.
    n_standing, n_lost
        Signatures by the key that go on counting, and that do not.
    names
        Leads who have said that it ends, while they are too few.
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
) -> KeyEnding:
    """End a key, by a lead or with the key itself; what is proven to be before goes on counting.

    Parameters
    ----------
    since
        From when it does not count (ISO 8601; this computer's time where it names no zone). Of
        what was signed with it those stand that somebody else's event had seen by then: the
        clock of who holds the key proves nothing. "" for now: all that can be seen stands.

    Raises
    ------
    CaseError
        Without a reason, for a time that is none or to come, for who may not, or if the passphrase
        is not the one of the own key.
    FormatError
        If there is no own key on this computer.
    """
    require_reason(reason)
    moment = _parse_moment(since) if since.strip() else ""
    own_key = read_public_key(session.key_file)
    state = session.refresh()
    target = _find_ending(state, session, key, own_key)
    events = [event for chain in session.store.read().chains.values() for event in chain]
    stand = _list_standing(state, target, events, moment)
    prev, seen = session.prepare_seal()
    about = (session.store.origin, reader_id, key, own_key, moment, reason.strip(), stand)
    end = KeyEnd(*about, seal_of(prev, seen))
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
    return KeyEnding(bool(view.ended), n_standing, len(signatures) - n_standing, view.against)


def describe_ending(state: ReviewState, key: str, ending: KeyEnding) -> str:
    """Return what came of a revocation, in words."""
    view = next(one for one in state.keys if one.key == key)
    name = state.name(view.reader)
    disputes = [text for reader, text in state.disputes if reader == view.reader]
    if not ending.is_ended and disputes:
        return f"The key of {name} goes on counting: {disputes[0]}."
    if not ending.is_ended:
        return (
            f"Your word is kept. The key of {name} ends once more than half of the other leads "
            "say so; until then it counts, and `verify` tells of it."
        )
    total = ending.n_standing + ending.n_lost
    signed = "nothing that counts was signed with it"
    if total:
        signed = f"of {total} signature(s) by it {ending.n_standing} go(es) on counting"
    return f"The key of {name} is ended: {signed}. A new key counts once a lead countersigns it."


def _find_ending(state: ReviewState, session: ReviewSession, key: str, own_key: str) -> KeyView:
    """Return the key that is to end; raise `CaseError` where this person may not end it."""
    target = next((one for one in state.keys if one.key == key), None)
    if target is None:
        raise CaseError("expected a key of the study, got another one: look at the keys again")
    if key == own_key:
        return target
    is_lead = Role.LEAD in session.reader.roles
    mine = next((key for key in state.keys if key.key == own_key), None)
    # A lead whose key another lead has ended may answer: else who is quicker would win.
    roles = state.study.reader(target.reader).roles
    is_answer = mine is not None and bool(mine.by) and Role.LEAD in roles
    if is_lead and mine is not None and (mine.counts or is_answer):
        return target
    raise CaseError(
        "expected your own key, or a lead with a key that counts, to end a key, got neither: a key "
        "that you no longer have is ended by a lead; call one"
    )


def _parse_moment(text: str) -> str:
    """Return a time as ISO 8601 in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CaseError(
            f"expected a time such as 2026-11-20T14:30, got {text!r}: write year-month-day first"
        ) from error
    if moment > datetime.now(UTC):
        raise CaseError(
            f"expected a time that is past, got {text!r}: leave it out to end the key from now on"
        )
    return moment.isoformat(timespec="seconds")


def _list_standing(
    state: ReviewState, target: KeyView, events: Iterable[Event], moment: str
) -> tuple[str, ...]:
    """Return the events signed with a key that go on counting."""
    by_hash = {event.hash: event for event in events}
    refused = {one.event.hash for one in state.refused}
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
