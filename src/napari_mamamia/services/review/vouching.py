"""A lead's word for keys: given and taken back, signed with the lead's own."""

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.review.keys import read_public_key, sign_with
from napari_mamamia.io.workspace.event_order import Event
from napari_mamamia.reviewing.signatures import countersign_message, revoke_message
from napari_mamamia.reviewing.states import Act
from napari_mamamia.services.review.session import ReviewSession


def countersign(lead: ReviewSession, reader_id: str, key: str, passphrase: str) -> Event:
    """Give a lead's word that a key is that reader's; compare its digits by voice first.

    Raises
    ------
    CaseError
        If the lead's own key does not count, or the passphrase is not its.
    FormatError
        If there is no key of the lead on this computer.
    """
    own_key = _require_counting_key(lead)
    message = countersign_message(lead.store.origin, reader_id, key, own_key)
    signature = sign_with(lead.key_file, passphrase, message)
    return lead.add_to_study(
        Act.COUNTERSIGN, of=reader_id, key=key, by=own_key, signature=signature
    )


def revoke(lead: ReviewSession, reader_id: str, key: str, reason: str, passphrase: str) -> Event:
    """End a key; the signatures by it that can be seen now go on counting.

    Raises
    ------
    CaseError, FormatError
        As `countersign`; also without a reason.
    """
    if not reason.strip():
        raise CaseError("expected a reason, got an empty text: say why in a few words")
    own_key = _require_counting_key(lead)
    stand = tuple(
        sorted(
            one.hash
            for view in lead.refresh().cases
            for one in view.signatures
            if one.key == key and one.counts
        )
    )
    message = revoke_message(lead.store.origin, reader_id, key, own_key, stand)
    signature = sign_with(lead.key_file, passphrase, message)
    about = {"of": reader_id, "key": key, "by": own_key, "signature": signature}
    return lead.add_to_study(Act.REVOKE, **about, stand=list(stand), reason=reason)


def _require_counting_key(lead: ReviewSession) -> str:
    public = read_public_key(lead.key_file)
    if not any(one.key == public and one.counts for one in lead.refresh().keys):
        raise CaseError(
            "expected a lead's key that counts, but yours does not: another lead has to "
            "countersign it first"
        )
    return public
