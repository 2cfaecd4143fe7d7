"""Who may have what all readers did, and what is noted when somebody else takes it."""

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
"""What a report, an export or the agreement of all readers shows."""


def has_sight(session: ReviewSession) -> bool:
    """Whether somebody may see what all did: a judge without an own reading still to give."""
    is_judge = any(role in session.reader.roles for role in _JUDGES)
    return is_judge and all(one.state is CaseState.READ for _, one in session.queue())


def begin_covered(store: FolderStore, who: str, home: Path) -> ReviewSession:
    """Return somebody's session, which goes by numbers where the site is hidden from that person.

    So does all that it says, in errors too: it knows no other name of a case.
    """
    session = ReviewSession(store, who, home)
    if not has_sight(session):
        pseudonymize_store(store)
        session.refresh()
    return session


def require_sight(
    store: EventStore,
    who: str,
    reason: str,
    home: Path,
    ask: Callable[[], str] = str,
    what: str = "all readings",
) -> None:
    """Let somebody have what all readers of a study did: an event that everybody sees.

    Nothing is asked where readers see each other, and the site, anyway. Who has a key that counts
    shows it. A lead or an adjudicator without an own reading still to give needs no reason. Anybody
    else gives one. The folder can be read by whoever may read it: this keeps nobody from it, it
    tells.

    Parameters
    ----------
    who
        Id or name.
    home
        Where this computer keeps keys.
    ask
        Returns the passphrase of that person's key; called where it has one that counts.
    what
        What is looked at, in words: noted where no reason is given.

    Raises
    ------
    CaseError
        If the study is blind and nobody says who asks, or that person needs a reason and gives
        none, the key is not on this computer, or the passphrase is not the one of the key.
    """
    blinding = Blinding(store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if not blinding.is_blind:
        return
    if not who.strip():
        why = "the site is hidden in this study"
        if blinding.hides(Hidden.OTHER_READERS):
            why = "readers of this study do not see each other"
        raise CaseError(
            f"expected the name of the person who asks, since {why}, got none: give it",
            remedies=(Remedy("reader", ("NAME",)),),
        )
    session = ReviewSession(store, who, home)
    if session.needs_proof:
        session.read_counting_key()  # nobody types a passphrase for a key that is not here
        session.prove(ask())
    if not reason.strip() and not has_sight(session):
        is_judge = any(role in session.reader.roles for role in _JUDGES)
        why = "still reads cases of this study" if is_judge else "is neither lead nor adjudicator"
        raise CaseError(
            f"expected a reason, since {session.reader.name} {why} and would no longer be blind, "
            "got none: let a lead do it, or give a reason, which everybody will see",
            remedies=(Remedy("unblind", ("REASON",)),),
        )
    note_sight(session, reason.strip() or what)
    session.close()


def note_sight(session: ReviewSession, text: str) -> None:
    """Note for everybody that somebody sees what all readers of a blind study did, and why."""
    blinding = Blinding(session.store.study.plan.blinding.hidden & _SHOWN_BY_ALL)
    if blinding.is_blind:
        session.add_to_study(Act.UNBLIND, text=text, shown=list(blinding.names))
