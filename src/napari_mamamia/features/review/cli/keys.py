"""Commands for keys and signatures: `lead-key`, `key`, `countersign`, `revoke`, `sign`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.core.names import count_of
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
OfOption = Annotated[str, typer.Option("--of", metavar="NAME", help="Owner of the key.")]


def lead_key(passphrase_file: PassphraseOption = None) -> None:
    """Make a lead's key before the study exists; `init --lead-key` puts it into study.json."""
    from napari_mamamia.features.review.io.keys import make_lead_key
    from napari_mamamia.features.review.rules.signatures import short_key
    from napari_mamamia.io.files.user_folders import review_folder

    print("A forgotten passphrase cannot be recovered: write it down in a private place.")
    public = make_lead_key(review_folder(), read_passphrase(passphrase_file))
    print(f"Key: {short_key(public)}\n{public}")
    print(
        "Give the 64 digits to the person who makes the study, and compare the 16 digits in "
        "person or by telephone."
    )


def key(
    study: StudyArgument,
    reader: ReaderOption,
    new: Annotated[
        bool, typer.Option("--new", help="Make a new key, keeping the lost one's file.")
    ] = False,
    passphrase_file: PassphraseOption = None,
) -> None:
    """Make your signing key on this computer, or show its digits."""
    from napari_mamamia.features.review.io.keys import read_public_key, set_key_aside
    from napari_mamamia.features.review.rules.signatures import short_key

    session = _begin_session(study, reader)
    if session.key_file.exists() and new:
        print(f"Kept as {set_key_aside(session.key_file)}")
    if session.key_file.exists():
        public = read_public_key(session.key_file)
    else:
        print("A forgotten passphrase cannot be recovered: write it down in a private place.")
        public = session.make_key(read_passphrase(passphrase_file))
        _end_session(session)
    print(f"Key of {reader}: {short_key(public)}\n{public}")
    mine = next((key for key in session.refresh().keys if key.key == public), None)
    if mine is not None and mine.ended:
        print(f"It was revoked {mine.ended}. Make a new one with --new.")
    elif mine is not None and mine.counts:
        print("It counts.")
    else:
        print("It counts once a lead countersigns it: compare the 16 digits.")


def countersign(
    study: StudyArgument,
    reader: Annotated[str, typer.Option("--reader", metavar="NAME", help="Your name, as a lead.")],
    of: OfOption,
    digits: Annotated[
        str, typer.Option("--digits", help="The 16 digits that the owner read to you.")
    ],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Countersign a reader's key as a lead; signatures by the key count from then on."""
    from napari_mamamia.features.review.services import countersigning
    from napari_mamamia.features.review.services.look import find_key, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of)
    public = find_key(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    countersigning.countersign(session, person.reader_id, public, passphrase)
    _end_session(session)
    print(countersigning.describe_countersignature(session.refresh(), public))


def revoke(
    study: StudyArgument,
    reader: Annotated[
        str, typer.Option("--reader", metavar="NAME", help="Your name, as owner or lead.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="The reason, visible to everybody.")],
    of: Annotated[
        str, typer.Option("--of", metavar="NAME", help="Owner of the key (default: you).")
    ] = "",
    digits: Annotated[
        str, typer.Option("--digits", help="16 digits of the key, if there are several.")
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="TIME", help="Time of the loss, as 2026-11-20T14:30 (default: now)."
        ),
    ] = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """Revoke a lost or stolen key; signatures proven to be earlier remain valid."""
    from napari_mamamia.features.review.services import countersigning
    from napari_mamamia.features.review.services.look import find_key_to_revoke, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of or reader)
    public = find_key_to_revoke(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    about = (person.reader_id, public, reason, passphrase, since)
    ending = countersigning.revoke(session, *about)
    _end_session(session)
    print(countersigning.describe_revocation(session.state, public, ending))


def sign(
    study: StudyArgument,
    reader: ReaderOption,
    case: Annotated[list[str], typer.Option("--case", metavar="ID", help="Case; repeatable.")],
    meaning: Annotated[Meaning, typer.Option("--meaning", help="Meaning of the signature.")],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Sign your reading of a case (author), or a decided case (reviewer, approver)."""
    session = _begin_session(study, reader)
    keys = [session.store.study.case_of_id(one).key for one in case]
    passphrase = read_passphrase(passphrase_file, is_new=False)
    for case_id, one in zip(case, keys, strict=True):
        session.sign(one, meaning, passphrase)
        print(f"{case_id}: signed as {meaning}")
    _end_session(session)


def _begin_session(study: Path, reader: str) -> "ReviewSession":
    from napari_mamamia.features.review.services.look import require_known
    from napari_mamamia.features.review.services.unblinding import begin_pseudonymized
    from napari_mamamia.io.files.user_folders import review_folder

    store = open_study(study)
    session = begin_pseudonymized(store, reader, review_folder())
    require_known(store)
    return session


def _end_session(session: "ReviewSession") -> None:
    session.close()
    if session.n_unsent:
        print(
            f"{count_of(session.n_unsent, 'event')} waiting on this computer: the study cannot "
            "be reached"
        )
