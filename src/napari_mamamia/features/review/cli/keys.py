"""`mamamia review lead-key`, `key`, `countersign`, `revoke` and `sign`: keys and signatures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.features.review.cli.options import (
    PassphraseOption,
    StudyArgument,
    open_study,
    read_passphrase,
)
from napari_mamamia.features.review.core.review import Meaning

if TYPE_CHECKING:
    from napari_mamamia.features.review.services.session import ReviewSession

ReaderOption = Annotated[str, typer.Option("--reader", metavar="NAME", help="Your name or id.")]
OfOption = Annotated[str, typer.Option("--of", metavar="NAME", help="Whose key it is.")]


def lead_key(passphrase_file: PassphraseOption = None) -> None:
    """Make a lead's key before there is a study; `init --lead-key` binds it in study.json."""
    from napari_mamamia.features.review.io.keys import make_lead_key
    from napari_mamamia.features.review.rules.signatures import short_key
    from napari_mamamia.io.files.user_folders import review_folder

    print("Nobody can find a forgotten passphrase again: write it down where only you look.")
    public = make_lead_key(review_folder(), read_passphrase(passphrase_file))
    print(f"Key: {short_key(public)}\n{public}")
    print("Give the 64 digits to who makes the study, and read the 16 to each other by voice.")


def key(
    study: StudyArgument,
    reader: ReaderOption,
    new: Annotated[bool, typer.Option("--new", help="Make one beside a lost one.")] = False,
    passphrase_file: PassphraseOption = None,
) -> None:
    """Make your key for signatures on this computer, or say which one it is."""
    from napari_mamamia.features.review.io.keys import read_public_key, set_key_aside
    from napari_mamamia.features.review.rules.signatures import short_key

    session = _begin_session(study, reader)
    if session.key_file.exists() and new:
        print(f"Kept as {set_key_aside(session.key_file)}")
    if session.key_file.exists():
        public = read_public_key(session.key_file)
    else:
        print("Nobody can find a forgotten passphrase again: write it down where only you look.")
        public = session.make_key(read_passphrase(passphrase_file))
        _end_session(session)
    print(f"Key of {reader}: {short_key(public)}\n{public}")
    mine = next((one for one in session.refresh().keys if one.key == public), None)
    if mine is not None and mine.ended:
        print(f"It was ended {mine.ended}. Make a new one with --new.")
    elif mine is not None and mine.counts:
        print("It counts.")
    else:
        print("It counts once a lead countersigns it: read the 16 digits to each other.")


def countersign(
    study: StudyArgument,
    reader: Annotated[str, typer.Option("--reader", metavar="NAME", help="Your name: a lead's.")],
    of: OfOption,
    digits: Annotated[
        str, typer.Option("--digits", help="The 16 digits that its owner read to you.")
    ],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Give a lead's word that a key is that reader's; what it signed counts from then on."""
    from napari_mamamia.features.review.services import countersigning
    from napari_mamamia.features.review.services.look import find_key, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of)
    public = find_key(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    countersigning.countersign(session, person.reader_id, public, passphrase)
    _end_session(session)
    print(countersigning.describe_word(session.refresh(), public))


def revoke(
    study: StudyArgument,
    reader: Annotated[
        str, typer.Option("--reader", metavar="NAME", help="Your name: the owner's, or a lead's.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why, for everybody to read.")],
    of: Annotated[
        str, typer.Option("--of", metavar="NAME", help="Whose key it is (default: yours).")
    ] = "",
    digits: Annotated[
        str, typer.Option("--digits", help="Its 16 digits, where that person has several.")
    ] = "",
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="From when, as 2026-11-20T14:30 (now)."),
    ] = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """End a key that was lost or stolen; what is proven to be before goes on counting."""
    from napari_mamamia.features.review.services import countersigning
    from napari_mamamia.features.review.services.look import find_ending_key, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of or reader)
    public = find_ending_key(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    about = (person.reader_id, public, reason, passphrase, since)
    ending = countersigning.revoke(session, *about)
    _end_session(session)
    print(countersigning.describe_ending(session.state, public, ending))


def sign(
    study: StudyArgument,
    reader: ReaderOption,
    case: Annotated[list[str], typer.Option("--case", metavar="ID", help="Case; repeatable.")],
    meaning: Annotated[Meaning, typer.Option("--meaning", help="What the signature means.")],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Sign your reading of a case (author), or what was accepted (reviewer, approver)."""
    session = _begin_session(study, reader)
    keys = [session.store.study.case_of_id(one).key for one in case]
    passphrase = read_passphrase(passphrase_file, is_new=False)
    for case_id, one in zip(case, keys, strict=True):
        session.sign(one, meaning, passphrase)
        print(f"{case_id}: signed as {meaning}")
    _end_session(session)


def _begin_session(study: Path, reader: str) -> "ReviewSession":
    from napari_mamamia.features.review.services.look import require_known
    from napari_mamamia.features.review.services.unblinding import begin_covered
    from napari_mamamia.io.files.user_folders import review_folder

    store = open_study(study)
    session = begin_covered(store, reader, review_folder())
    require_known(store)
    return session


def _end_session(session: "ReviewSession") -> None:
    session.close()
    if session.n_unsent:
        print(f"{session.n_unsent} event(s) wait on this computer: the study cannot be reached")
