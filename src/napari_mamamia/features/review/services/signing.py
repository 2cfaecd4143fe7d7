"""Signatures and keys: sign items, list keys, and countersign or revoke keys."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.core.review import Meaning, ReadingMode, Role
from napari_mamamia.features.review.io.keys import read_public_key, set_key_aside, sign_with
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.rules.signatures import (
    KEY_ACTS,
    KeyRevocation,
    KeyView,
    countersign_message,
    seal_of,
    short_key,
)
from napari_mamamia.features.review.rules.states import (
    Act,
    CaseState,
    CaseView,
    Decision,
    ReadingView,
)
from napari_mamamia.features.review.services.client import StudyClient
from napari_mamamia.features.review.services.look import find_key, find_person, require_reason
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.workspace.event_store import Event, list_past


def countersign(lead: ReviewSession, reader_id: str, key: str, passphrase: str) -> Event:
    """Countersign a reader's key as a lead.

    The lead must first compare the key's digits with the reader, in person or by telephone.

    Raises
    ------
    CaseError
        If the lead's own key is not valid, or the passphrase is wrong.
    FormatError
        If the lead's key is not on this computer.
    """
    own_key = read_public_key(lead.key_file)
    if not any(key.key == own_key and key.counts for key in lead.refresh().keys):
        raise CaseError(
            "expected the valid key of a lead, but your key is not valid: another lead has to "
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
        return f"The key of {name} was revoked and is not valid: create a new key."
    if view.by:
        return f"The key of {name} counts."
    return (
        f"Your countersignature is saved. The key of {name} becomes valid when "
        f"{count_of(view.n_missing, 'more lead')} countersign it."
    )


@dataclass(frozen=True, slots=True)
class RevocationResult:
    """The result of revoking a key.

    Parameters
    ----------
    is_ended
        Whether the key is now revoked; for a lead's key, more leads may have to agree.
    n_standing, n_lost
        Numbers of signatures by the key that remain valid and that become invalid.
    names
        Leads who have revoked the key so far, if more leads must agree.
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
    """Revoke a key; signatures that are proven to be older remain valid.

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
        If the person's key is not on this computer.
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
            "other leads agree; until then it remains valid, and `verify` reports it."
        )
    total = ending.n_standing + ending.n_lost
    signed = "no valid signature was made with it"
    if total:
        signed = f"{ending.n_standing} of {count_of(total, 'signature')} by it remain valid"
    return (
        f"The key of {name} is revoked: {signed}. A new key becomes valid when a lead "
        "countersigns it."
    )


def _find_key_to_revoke(
    state: ReviewState, session: ReviewSession, key: str, own_key: str
) -> KeyView:
    """Return the key to revoke; raise `CaseError` if this person may not revoke it."""
    target = next((one for one in state.keys if one.key == key), None)
    if target is None:
        raise CaseError("the key is not in the study: check the list of keys")
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
        "only the owner of a key or a lead with a valid key can revoke it: if you lost your key, "
        "ask a lead to revoke it"
    )


def _parse_moment(text: str) -> str:
    """Convert a time to ISO 8601 in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CaseError(
            f"expected a time such as 2026-11-20T14:30, but found {text!r}: write year-month-day "
            "first"
        ) from error
    if moment > datetime.now(UTC):
        raise CaseError(
            f"expected a time in the past, but found {text!r}: leave out the time to revoke the "
            "key from now on"
        )
    return moment.isoformat(timespec="seconds")


def _list_standing(
    state: ReviewState, target: KeyView, events: Iterable[Event], moment: str
) -> tuple[str, ...]:
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


_SIGNED_STATES = (CaseState.ACCEPTED, CaseState.SIGNED)


@dataclass(frozen=True, slots=True)
class Signable:
    """A reading or decision that a person may sign; `text` describes it for display."""

    case: str
    case_id: str
    meaning: Meaning
    text: str
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class RevocableKey:
    """A key that this person may revoke; `text` states its owner and digits."""

    reader: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class SigningStatus:
    """The state of a person's signatures and keys.

    Parameters
    ----------
    digits
        Short form of this person's key on this computer; "" if there is none.
    counts
        Whether signatures made with this key are valid, which requires a lead's countersignature.
    things
        Items that can be signed, the person's own readings first.
    waiting
        Names of people whose keys wait for a countersignature; empty unless the person is a lead.
    ended
        Time and reason of the revocation of the key on this computer, or "" if it was not revoked.
    endable
        Keys that this person may revoke, the person's own key first.
    """

    digits: str
    counts: bool
    things: tuple[Signable, ...]
    waiting: tuple[str, ...] = ()
    ended: str = ""
    endable: tuple[RevocableKey, ...] = ()


def load_signing_status(client: StudyClient) -> SigningStatus:
    """Return the person's signing status as of the client's last snapshot.

    A damaged key file is treated as missing; a new key is created next to it.
    """
    with client.turn:
        state, me = client.session.state, client.reader
        public = _read_own_key(client)
        counts = any(key.key == public and key.counts for key in state.keys)
        waiting: tuple[str, ...] = ()
        if Role.LEAD in me.roles:
            open_keys = (key.reader for key in state.keys if not key.by and not key.ended)
            names = dict.fromkeys(open_key for open_key in open_keys if open_key != me.reader_id)
            waiting = tuple(map(state.name, names))
        things = sorted(
            _list_things(client, state), key=lambda thing: list(Meaning).index(thing.meaning)
        )
        digits = short_key(public) if public else ""
        ended = next((key.ended for key in state.keys if key.key == public), "")
        endable = tuple(_list_revocable(client, state, public))
        return SigningStatus(digits, counts, tuple(things), waiting, ended, endable)


def _list_revocable(client: StudyClient, state: ReviewState, public: str) -> Iterator[RevocableKey]:
    open_keys = [key for key in state.keys if not key.ended]
    for open_key in open_keys:
        if open_key.key == public:
            yield RevocableKey(open_key.reader, open_key.key, f"{short_key(open_key.key)} (yours)")
    has_word = any(key.key == public and key.by for key in state.keys)
    if Role.LEAD not in client.reader.roles or not has_word:
        return
    for one in open_keys:
        if one.key != public:
            text = f"{short_key(one.key)} of {state.name(one.reader)}"
            yield RevocableKey(one.reader, one.key, text)


def _read_own_key(client: StudyClient) -> str:
    try:
        return read_public_key(client.session.key_file) if client.has_key else ""
    except FormatError:
        return ""


def _list_things(client: StudyClient, state: ReviewState) -> Iterator[Signable]:
    me = client.reader.reader_id
    for view in state.cases:
        case_id = state.study.case(view.key).case_id
        for reading in view.readings:
            is_open = reading.reader == me and reading.state is CaseState.READ
            if is_open and not _is_signed(view, me, Meaning.AUTHOR, reading):
                text = f"{case_id} · your reading of {reading.at[:10]}"
                yield Signable(view.key, case_id, Meaning.AUTHOR, text, reading.occasion)
        decision = view.decision
        if decision is None or view.state not in _SIGNED_STATES or not _may_judge(client, view):
            continue
        text = f"{case_id} · {_describe_decision(state, view, decision)}"
        for meaning in (Meaning.REVIEWER, Meaning.APPROVER):
            if not _is_signed(view, me, meaning, decision):
                yield Signable(view.key, case_id, meaning, text)


def _may_judge(client: StudyClient, view: CaseView) -> bool:
    looks = [reading.reader for reading in view.readings if reading.occasion == 0]
    is_second_look = client.store.study.plan.mode is ReadingMode.SECOND_LOOK
    return client.is_judge or (is_second_look and looks[-1:] == [client.reader.reader_id])


def _is_signed(
    view: CaseView, reader: str, meaning: Meaning, subject: ReadingView | Decision
) -> bool:
    return any(
        (signature.reader, signature.meaning, signature.subject) == (reader, meaning, subject.hash)
        for signature in view.signatures
    )


def _describe_decision(state: ReviewState, view: CaseView, decision: Decision) -> str:
    choice = decision.choice
    if choice in {reader.reader_id for reader in state.study.readers}:
        is_hidden = state.study.plan.blinding.hides(Hidden.OTHER_READERS)
        choice = "a reading" if is_hidden else f"the reading of {state.name(choice)}"
    text = f"{choice}, by {state.name(decision.reader)}"
    judged = [signature for signature in view.signatures if signature.meaning is not Meaning.AUTHOR]
    by = "; ".join(f"{one.name} ({one.meaning})" for one in judged)
    return f"{text}; signed by {by}" if by else text


def sign_things(client: StudyClient, things: Sequence[Signable], passphrase: str) -> str:
    """Sign several items with one passphrase, and describe the result.

    Raises
    ------
    WrongPassphraseError
        If the passphrase does not decrypt the key; no item is signed in that case.
    CaseError
        If there is no key, or an item can no longer be signed; earlier signatures remain.
    """
    if not client.has_key:
        raise CaseError("expected your key on this computer, but found none: create your key first")
    needs = ""
    for n_before, thing in enumerate(things):
        report_progress(n_before, len(things), f"Signing {thing.case_id}")
        needs = client.sign(thing.case, thing.meaning, passphrase, thing.occasion)
    signed = f"{len(things)} signature{'s' * (len(things) != 1)}"
    if needs:
        look = load_signing_status(client)
        return (
            f"{signed} kept. {'They count' if len(things) != 1 else 'It counts'} once a lead has "
            f"countersigned your key: read the lead its digits, {look.digits}"
        )
    return f"{signed}, which count{'s' * (len(things) == 1)}."


def make_own_key(client: StudyClient, passphrase: str) -> str:
    """Create this person's key on this computer, and return its digits; an old file is kept.

    Raises
    ------
    CaseError
        If the passphrase is too short; the previous key is kept in that case.
    """
    with client.turn:
        path = client.session.key_file
        aside = set_key_aside(path) if path.exists() else None
        try:
            return short_key(client.session.make_key(passphrase))
        except CaseError:
            if aside is not None:
                aside.rename(path)
            raise


def end_key(
    client: StudyClient, key: RevocableKey, reason: str, since: str, passphrase: str
) -> str:
    """Revoke a key from now on or from a given time, and describe the result; see `revoke`."""
    with client.turn:
        if not client.has_key:
            raise CaseError(
                "expected your own key on this computer, but found none: if you lost your key, "
                "ask a lead"
            )
        session = client.session
        ending = revoke(session, key.reader, key.key, reason, passphrase, since)
        return describe_revocation(session.state, key.key, ending)


def countersign_key(client: StudyClient, name: str, digits: str, passphrase: str) -> str:
    """Countersign, as a lead, the key that has these digits, and describe the result.

    Raises
    ------
    CaseError
        If this person is not a lead, no key has these digits, the lead's own key does not count, or
        the passphrase is wrong.
    """
    with client.turn:
        if Role.LEAD not in client.reader.roles:
            raise CaseError("only a lead can countersign a key: ask a lead")
        if not client.has_key:
            raise CaseError(
                "expected your own key on this computer, but found none: create your key first"
            )
        state = client.session.refresh()
        reader_id = find_person(state, name).reader_id
        key = find_key(state, reader_id, digits)
        countersign(client.session, reader_id, key, passphrase)
        return describe_countersignature(client.session.refresh(), key)
