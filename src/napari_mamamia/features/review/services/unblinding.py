"""Check permission to see all readings of a blind study, and record the unblinding."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.features.review.core.review import Role
from napari_mamamia.features.review.io.store import EventStore, FolderStore
from napari_mamamia.features.review.rules.states import Act, CaseState
from napari_mamamia.features.review.services.pseudonymizer import pseudonymize_store
from napari_mamamia.features.review.services.session import ReviewSession

_JUDGES: Final = (Role.LEAD, Role.ADJUDICATOR)
_SHOWN_BY_ALL: Final = frozenset({Hidden.OTHER_READERS, Hidden.SITE})
"""Items shown by a report, an export or the agreement of all readers."""


def may_see_all(session: ReviewSession) -> bool:
    """Return whether a person is an adjudicator without open readings, who may see all readings."""
    is_judge = any(role in session.reader.roles for role in _JUDGES)
    return is_judge and all(one.state is CaseState.READ for _, one in session.queue())


def begin_pseudonymized(store: FolderStore, who: str, home: Path) -> ReviewSession:
    """Return a person's session, with pseudonyms if the site is hidden from the person.

    Messages of the session then contain no case ids either.
    """
    session = ReviewSession(store, who, home)
    if not may_see_all(session):
        pseudonymize_store(store)
        session.refresh()
    return session


def require_unblinding(
    store: EventStore,
    who: str,
    reason: str,
    home: Path,
    ask: Callable[[], str] = str,
    what: str = "all readings",
) -> None:
    """Require permission to see all readings of a study, and record it as an event.

    Nothing is required if the study hides neither readers nor the site. A person with a valid key
    must prove it. A lead or an adjudicator without open readings needs no reason; any other person
    must give a reason. This check does not restrict access to the folder, but makes unblinding
    visible.

    Parameters
    ----------
    store
        The study.
    who
        Id or name.
    reason
        The reason for unblinding.
    home
        This computer's folder of keys.
    ask
        Function that returns the passphrase of the person's key; called if the key is valid.
    what
        Description of what is shown; recorded if no reason is given.

    Raises
    ------
    CaseError
        If the study is blind and no person is named, a required reason is missing, the key is not
        on this computer, or the passphrase is wrong.
    """
    blinding = Blinding(store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if not blinding.is_blind:
        return
    if not who.strip():
        why = "the site is hidden in this study"
        if blinding.hides(Hidden.OTHER_READERS):
            why = "readers of this study do not see each other"
        raise CaseError(
            f"expected the name of the person who asks, because {why}, but found none: give it",
            remedies=(Remedy("reader", ("NAME",)),),
        )
    session = ReviewSession(store, who, home)
    if session.needs_proof:
        session.read_counting_key()  # checked before the passphrase is requested
        session.prove(ask())
    if not reason.strip() and not may_see_all(session):
        is_judge = any(role in session.reader.roles for role in _JUDGES)
        why = "has open readings in this study" if is_judge else "is neither lead nor adjudicator"
        raise CaseError(
            f"expected a reason, because {session.reader.name} {why} and would no longer be "
            "blind, but found none: let a lead do it, or give a reason, which everybody will see",
            remedies=(Remedy("unblind", ("REASON",)),),
        )
    note_unblinding(session, reason.strip() or what)
    session.close()


def note_unblinding(session: ReviewSession, text: str) -> None:
    """Record visibly that a person sees all readings of a blind study, and why."""
    blinding = Blinding(session.store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if blinding.is_blind:
        session.add_to_study(Act.UNBLIND, text=text, shown=list(blinding.names))
