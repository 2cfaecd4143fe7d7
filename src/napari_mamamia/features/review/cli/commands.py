"""Commands of `mamamia review`, from planning a reader study to its report."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from napari_mamamia.cli.given import Program
from napari_mamamia.cli.options import BootstrapOption, OverwriteOption, SeedOption
from napari_mamamia.cli.printing import NOT_EVERY_CASE, print_table, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.blinding import NOT_BLIND, STUDY_HIDDEN, Blinding, Hidden
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.core.review import (
    ConsensusRule,
    Meaning,
    ReadingMode,
    ReviewFormat,
    StudyPlan,
    Triggers,
)

if TYPE_CHECKING:
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.check_study import Problem
    from napari_mamamia.features.review.services.look import Pseudonymizer
    from napari_mamamia.features.review.services.session import ReviewSession

T = TypeVar("T")

# A string instead of a path, because typer would check a path and the share may not answer.
StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", parser=Path, help="Folder of the study.")
]
DataSetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET", parser=Path, help="Data-set folder, case folder or 4-D file."
    ),
]
AskerOption = Annotated[
    str,
    typer.Option("--reader", metavar="NAME", help="Your name; needed if readers are hidden."),
]
UnblindOption = Annotated[
    str,
    typer.Option(
        "--unblind", metavar="REASON", help="Reason to see all readings, which is recorded."
    ),
]
PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="File with the passphrase, instead of a prompt."
    ),
]


def make_out_option(text: str) -> Any:
    """Return the option for an output folder, as a string; see `StudyArgument`."""
    return typer.Option("--out", metavar="DIR", parser=Path, help=text)


def make_images_option(text: str) -> Any:
    """Return the option for a data set with a study's images, as a string; see `StudyArgument`."""
    return typer.Option("--images", metavar="DATASET", parser=Path, help=text)


def open_study(study: Path, out: Path | None = None) -> "FolderStore":
    """Open the study in a folder and return its event store.

    Raises
    ------
    SaveConflictError
        If the output folder `out` is inside the study.
    """
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.look import require_outside
    from napari_mamamia.io.files.user_folders import review_folder

    store = FolderStore(study, review_folder())
    if out is not None:
        require_outside(store, out)
    return store


def save_there(out: Path, save: Callable[[Path], T]) -> T:
    """Call `save(out)` with a time limit, because `out` may be on a network share.

    The result is that of `save`.

    Raises
    ------
    SilentShareError
        If the share stops responding.
    """
    from napari_mamamia.features.review.io.share import Share

    return Share(out).run(save)


def read_passphrase(path: Path | None, *, is_new: bool = True) -> str:
    """Read a passphrase from a file, or prompt for it; prompt twice if `is_new`."""
    if path is not None:
        from napari_mamamia.features.review.io import keys

        return keys.read_passphrase(path)
    try:
        answer: str = typer.prompt(
            "Passphrase", hide_input=True, confirmation_prompt=is_new, err=True
        )
    except typer.Abort as error:
        from napari_mamamia.core.errors import CaseError

        raise CaseError(
            "expected the passphrase of a key, but found no input: write it into a file and add "
            "--passphrase-file FILE"
        ) from error
    return answer


ReaderOption = Annotated[str, typer.Option("--reader", metavar="NAME", help="Your name or id.")]
OfOption = Annotated[str, typer.Option("--of", metavar="NAME", help="Owner of the key.")]


def lead_key(passphrase_file: PassphraseOption = None) -> None:
    """Create a lead's key before the study exists; `init --lead-key` writes it to study.json.

    Example: mamamia review lead-key
    """
    from napari_mamamia.features.review.io.keys import make_lead_key
    from napari_mamamia.features.review.rules.signatures import short_key
    from napari_mamamia.io.files.user_folders import review_folder

    print("A forgotten passphrase cannot be recovered: write it down in a private place.")
    public = make_lead_key(review_folder(), read_passphrase(passphrase_file))
    print(f"Key: {short_key(public)}\n{public}")
    print(
        "Send the 64 digits to the person who creates the study, and compare the 16 digits in "
        "person or by telephone."
    )


def key(
    study: StudyArgument,
    reader: ReaderOption,
    new: Annotated[
        bool, typer.Option("--new", help="Create a new key, and keep the file of the lost key.")
    ] = False,
    passphrase_file: PassphraseOption = None,
) -> None:
    """Create your signing key on this computer, or show its digits.

    Example: mamamia review key STUDY --reader Ann
    """
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
        print(f"It was revoked {mine.ended}. Create a new key with --new.")
    elif mine is not None and mine.counts:
        print("It counts.")
    else:
        print("The key becomes valid when a lead countersigns it: compare the 16 digits.")


def countersign(
    study: StudyArgument,
    reader: Annotated[str, typer.Option("--reader", metavar="NAME", help="Your name, as a lead.")],
    of: OfOption,
    digits: Annotated[
        str, typer.Option("--digits", help="The 16 digits that the owner read to you.")
    ],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Countersign a reader's key as a lead, so that signatures made with the key become valid.

    Example: mamamia review countersign STUDY --reader Eve --of Ann --digits 1234567890123456
    """
    from napari_mamamia.features.review.services import signing
    from napari_mamamia.features.review.services.look import find_key, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of)
    public = find_key(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    signing.countersign(session, person.reader_id, public, passphrase)
    _end_session(session)
    print(signing.describe_countersignature(session.refresh(), public))


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
    """Revoke a lost or stolen key; signatures proven to be older remain valid.

    Example: mamamia review revoke STUDY --reader Ann --reason lost
    """
    from napari_mamamia.features.review.services import signing
    from napari_mamamia.features.review.services.look import find_key_to_revoke, find_person

    session = _begin_session(study, reader)
    person = find_person(session.state, of or reader)
    public = find_key_to_revoke(session.state, person.reader_id, digits)
    passphrase = read_passphrase(passphrase_file, is_new=False)
    about = (person.reader_id, public, reason, passphrase, since)
    ending = signing.revoke(session, *about)
    _end_session(session)
    print(signing.describe_revocation(session.state, public, ending))


def sign(
    study: StudyArgument,
    reader: ReaderOption,
    case: Annotated[list[str], typer.Option("--case", metavar="ID", help="Case; repeatable.")],
    meaning: Annotated[Meaning, typer.Option("--meaning", help="Meaning of the signature.")],
    passphrase_file: PassphraseOption = None,
) -> None:
    """Sign your reading of a case (author), or a decided case (reviewer, approver).

    Example: mamamia review sign STUDY --reader Ann --case P001 --meaning author
    """
    session = _begin_session(study, reader)
    keys = [session.store.study.case_of_id(one).key for one in case]
    passphrase = read_passphrase(passphrase_file, is_new=False)
    for case_id, one in zip(case, keys, strict=True):
        session.sign(one, meaning, passphrase)
        print(f"{case_id}: signed as {meaning}")
    _end_session(session)


def _begin_session(study: Path, reader: str) -> "ReviewSession":
    from napari_mamamia.features.review.services.look import require_known
    from napari_mamamia.features.review.services.session import begin_pseudonymized
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


_RANDOM_SHARE: Final = Quantity("a proportion of random cases", 0, 1, "", "enter 0.1 for 1 in 10")
_TARGET: Final = Quantity("a proportion of errors", 0.01, 1, "", "give 0.95")
_SHOWN: Final = 10

FolderOption = Annotated[Path, make_out_option("Folder for the files.")]


def queue(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES", parser=Path, help="Folder or case_scores.csv of `mamamia score`."
        ),
    ],
    out: FolderOption,
    signs: Annotated[
        Path | None,
        typer.Option(
            "--signs",
            metavar="TABLE",
            parser=Path,
            help="Table with further criteria by case_id.",
        ),
    ] = None,
    random: Annotated[
        float,
        typer.Option(
            "--random",
            parser=_RANDOM_SHARE,
            help=("Proportion of cases that are drawn at random and read first."),
        ),
    ] = 0.1,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Sort cases by disagreement between model and reference: OUT/queue.csv, .json, .txt.

    Example: mamamia review queue SCORES --out QUEUE
    """
    from napari_mamamia.features.review.services.quality_queue import make_queue

    result = run(partial(make_queue, scores, out, signs, seed, random, overwrite=overwrite))
    n_random = result.queue.n_random
    print(
        f"{count_of(len(result.queue.places), 'case')}, the first {n_random} drawn at random, then:"
    )
    for place in result.queue.places[n_random : n_random + _SHOWN]:
        print(f"  {place.case_id}: {place.why or 'nothing known'}")
    for note in result.notes:
        print(f"note: {note}")
    for path in result.files:
        print(f"Queue: {path}")


def capture(
    queue_file: Annotated[
        Path,
        typer.Argument(metavar="QUEUE", parser=Path, help="queue.json of `mamamia review queue`."),
    ],
    found: Annotated[
        Path,
        typer.Option(
            "--found",
            metavar="TABLE",
            parser=Path,
            help="Results in reading order: case_id and error.",
        ),
    ],
    out: FolderOption,
    target: Annotated[
        float, typer.Option("--target", parser=_TARGET, help="Proportion of errors to be found.")
    ] = 0.95,
    overwrite: OverwriteOption = False,
) -> None:
    """Show the errors found, and whether reading may stop: OUT/capture.csv, .json, .txt.

    Example: mamamia review capture QUEUE/queue.json --found results.csv --out CAPTURE
    """
    from napari_mamamia.features.review.services.quality_queue import describe_capture, make_capture

    result = run(partial(make_capture, queue_file, found, out, target, overwrite=overwrite))
    for line in describe_capture(result.capture):
        print(line)
    for path in result.files:
        print(f"Capture: {path}")


app = Program(
    help="A study that several people read in one shared folder, without a server.",
    no_args_is_help=True,
)

_READINGS: Final = Quantity("a number of readings", 1, 100, "", "give 2", is_whole=True)
_SHARE: Final = Quantity("a proportion of hidden repeats", 0, 0.5, "", "enter 0.05 for 1 in 20")
_DICE: Final = Quantity("a Dice", 0, 1, "", "enter a number such as 0.7, or 0 for none")
_PICTURES: Final = Quantity("a number of pictures", 0, 100, "", "give 12", is_whole=True)
_RATIO: Final = Quantity("a ratio of volumes", 0, 1000, "", "enter 1.5, or 0 for none")
_MM: Final = Quantity("a distance", 0, 1000, "mm", "enter 10, or 0 for none")

OutOption = Annotated[Path | None, make_out_option("Folder for the results.")]


@app.command("init")
def init(
    data_set: DataSetArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="STUDY", parser=Path, help="New folder of the study.")
    ],
    lead: Annotated[
        list[str], typer.Option("--lead", metavar="NAME", help="Name of a lead; repeatable.")
    ],
    reader: Annotated[
        list[str], typer.Option("--reader", metavar="NAME", help="Name of a reader; repeatable.")
    ],
    adjudicator: Annotated[
        list[str] | None,
        typer.Option("--adjudicator", metavar="NAME", help="Name of an adjudicator; repeatable."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Title (default: the folder's name).")] = "",
    mode: Annotated[
        ReadingMode, typer.Option("--mode", help="Number of readings of a case, and their readers.")
    ] = ReadingMode.INDEPENDENT,
    readings: Annotated[
        int, typer.Option("--readings", parser=_READINGS, help="Readings of a case.")
    ] = 2,
    blind: Annotated[
        list[Hidden] | None,
        typer.Option("--hide", help="What to hide from readers; repeatable (default: all)."),
    ] = None,
    open_: Annotated[bool, typer.Option("--not-blind", help="Hide nothing.")] = False,
    consensus: Annotated[
        ConsensusRule,
        typer.Option("--consensus", help="Rule that combines readings into one mask."),
    ] = ConsensusRule.MAJORITY_BACKGROUND,
    dice_below: Annotated[
        float,
        typer.Option(
            "--dice-below",
            parser=_DICE,
            help="Two readings with a Dice below this value count as disagreeing.",
        ),
    ] = 0.7,
    volume_ratio: Annotated[
        float,
        typer.Option(
            "--volume-ratio",
            parser=_RATIO,
            help="Readings with a volume ratio above this disagree.",
        ),
    ] = 1.5,
    hausdorff_above: Annotated[
        float,
        typer.Option(
            "--hausdorff-above", parser=_MM, help="Readings with an HD95 above this (mm) disagree."
        ),
    ] = 10.0,
    any_lesions: Annotated[
        bool,
        typer.Option("--any-lesions", help="Do not count different lesions as a disagreement."),
    ] = False,
    any_answers: Annotated[
        bool,
        typer.Option("--any-answers", help="Do not count different answers as a disagreement."),
    ] = False,
    repeats: Annotated[
        float, typer.Option("--repeats", parser=_SHARE, help="Proportion of hidden repeats.")
    ] = 0.0,
    honeypots: Annotated[
        Path | None,
        typer.Option(
            "--honeypots", metavar="FILE", help="Ids of the cases with known truth, one per line."
        ),
    ] = None,
    protocol: Annotated[
        Path | None,
        typer.Option("--protocol", metavar="FILE", help="Reading protocol with the form (JSON)."),
    ] = None,
    order: Annotated[
        Path | None,
        typer.Option(
            "--order", metavar="QUEUE", help="queue.json of `mamamia review queue`: reading order."
        ),
    ] = None,
    seed: SeedOption = 42,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case", metavar="ID", help="Case id, or pattern such as DUKE_*; repeatable."
        ),
    ] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Write the study instead of only showing it.")
    ] = False,
    without_broken: Annotated[
        bool, typer.Option("--without-broken", help="Freeze the study without unreadable cases.")
    ] = False,
    own_key: Annotated[
        str,
        typer.Option(
            "--key", metavar="NAME", help="Lead for whom a key is created for study.json."
        ),
    ] = "",
    lead_key: Annotated[
        list[str] | None,
        typer.Option(
            "--lead-key",
            metavar="NAME=DIGITS",
            help="Key of another lead, from `lead-key`; repeatable.",
        ),
    ] = None,
    passphrase_file: PassphraseOption = None,
) -> None:
    """Plan a study and show the assigned readings; with --freeze write STUDY/study.json.

    Example: mamamia review init DATASET --lead Eve --reader Ann --reader Bob --freeze --out STUDY
    """
    from napari_mamamia.features.review.io.keys import make_lead_key
    from napari_mamamia.features.review.services.plan_study import (
        StudyPeople,
        StudySetup,
        describe_bound,
        describe_draft,
        freeze_study,
        plan_study,
        read_lead_keys,
    )
    from napari_mamamia.io.files.user_folders import review_folder

    if open_ and blind:
        raise typer.BadParameter(
            "expected one of --hide and --not-blind, but found both: leave out one option"
        )
    if 0 < volume_ratio < 1:
        raise typer.BadParameter(
            f"expected a ratio of at least 1, or 0 for none, but found {volume_ratio:g}: enter a "
            "ratio such as 1.5"
        )
    triggers = Triggers(
        dice_below or None,
        volume_ratio or None,
        hausdorff_above or None,
        not any_lesions,
        not any_answers,
    )
    blinding = NOT_BLIND if open_ else Blinding(frozenset(blind)) if blind else STUDY_HIDDEN
    rules = (mode, readings, blinding, consensus, triggers, repeats, seed)
    plan = run(partial(StudyPlan, name or out.name, *rules))
    people = StudyPeople(tuple(lead), tuple(reader), tuple(adjudicator or ()))
    setup = StudySetup(data_set, plan, people, tuple(case or ()), honeypots, protocol, order)
    draft = run(partial(plan_study, setup))
    print("\n".join((f"{plan.name}: mode {plan.mode}", *describe_draft(draft))))
    if not freeze:
        print("Nothing was written: add --freeze to begin the study.")
        return
    bound = [*read_lead_keys("\n".join(lead_key or ()))]
    if own_key:
        bound.append((own_key, make_lead_key(review_folder(), read_passphrase(passphrase_file))))
    origin = freeze_study(draft, out, is_complete=not without_broken, lead_keys=bound)
    print(f"Study: {out}\nstudy.json SHA-256 {origin}. The file will never change.")
    print(describe_bound(bound))


@app.command("status")
@reports_result
def status(
    study: StudyArgument,
    out: OutOption = None,
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """Show the state of a study in OUT/status.json; exit with code 3 if there are conflicts.

    Example: mamamia review status STUDY
    """
    from napari_mamamia.features.review.services import check_study

    store = open_study(study, out)
    pseudonymizer = _find_pseudonymizer(store, reader, unblind, passphrase_file, "status")
    result = run(partial(check_study.find_status, store, pseudonymizer))
    report_result(lambda: result)
    cells = [
        (
            reader.name,
            ", ".join(reader.roles),
            f"{reader.n_read} of {reader.n_tasks}",
            f"{reader.active_s / 60:.0f}",
            ", ".join(reader.keys)
            or ("waits" if reader.keys_waiting else "ended" if reader.keys_ended else "–"),
        )
        for reader in result.readers
    ]
    print_table(result.study, ("name", "roles", "read", "minutes", "key"), cells)
    print(", ".join(f"{state} {count}" for state, count in result.states.items() if count))
    for site in result.sites:
        states = ", ".join(f"{state} {count}" for state, count in site.states.items())
        print(f"site {site.site or 'not known'}: {count_of(site.n_cases, 'case')}: {states}")
    if result.n_waiting or result.n_refused:
        print(
            f"{count_of(result.n_waiting, 'event')} waiting for a mask, {result.n_refused} "
            "rejected: see `mamamia review verify`"
        )
    for one in result.readers:
        for text in one.keys_ended:
            print(f"key of {one.name}: {text}")
    _print_problems(result.conflicts)
    if out is not None:
        print(f"Status: {save_there(out, partial(check_study.save_status, result))}")
    if result.conflicts:
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("verify")
@reports_result
def verify(
    study: StudyArgument,
    images: Annotated[
        Path | None, make_images_option("Also check the images of every case.")
    ] = None,
    out: OutOption = None,
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """Verify a study's hashes, signatures and rules; exit with code 3 if there is a problem.

    Example: mamamia review verify STUDY
    """
    from napari_mamamia.features.review.services import check_study

    store = open_study(study, out)
    pseudonymizer = _find_pseudonymizer(store, reader, unblind, passphrase_file, "verify")
    result = run(partial(check_study.verify_study, store, images, pseudonymizer))
    report_result(lambda: result)
    print(
        f"{count_of(result.n_events, 'event')} in {count_of(result.n_files, 'file')}, "
        f"{count_of(result.n_masks, 'mask')}, {count_of(result.n_signatures, 'signature')} "
        f"covering {count_of(result.n_sealed, 'event')}; study.json {result.origin[:16]}"
    )
    for note in result.notes:
        print(f"note: {note.where}: {note.text}")
    _print_problems(result.problems)
    if out is not None:
        print(f"Result: {save_there(out, partial(check_study.save_check, result))}")
    if result.problems:
        raise typer.Exit(NOT_EVERY_CASE)
    print("No problem found.")


@app.command("audit")
def audit(
    study: StudyArgument,
    out: Annotated[Path, make_out_option("Folder for both files.")],
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """Write the audit trail, which lists every event in order: OUT/audit.csv and OUT/audit.html.

    Example: mamamia review audit STUDY --out AUDIT
    """
    from napari_mamamia.features.review.services.check_study import save_audit
    from napari_mamamia.features.review.services.look import NO_PSEUDONYMS, load_study_form

    store = open_study(study, out)
    pseudonymizer = NO_PSEUDONYMS
    if store.study.plan.blinding.hides(Hidden.OTHER_READERS):
        _require_sight(store, reader, unblind, passphrase_file, "audit")
    else:
        pseudonymizer = _find_pseudonymizer(store, reader, unblind, passphrase_file, "audit")
    form = store.read_frozen(load_study_form)
    save = partial(save_audit, store, pseudonymizer=pseudonymizer, form=form)
    for path in run(partial(save_there, out, save)):
        print(f"Audit trail: {path}")


@app.command("agreement")
def agreement(
    study: StudyArgument,
    out: Annotated[Path, make_out_option("Folder for all files.")],
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
    honeypots: Annotated[
        Path | None,
        typer.Option("--honeypots", metavar="FILE", help="The list that was passed to `init`."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", metavar="DIR", help="Folder of the honeypots' known masks."),
    ] = None,
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            "--ordered", metavar="QUESTION", help="Question whose terms are ordered; repeatable."
        ),
    ] = None,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 42,
) -> None:
    """Measure reader agreement: OUT/agreement.json, .csv; exit with code 3 if data is missing.

    Example: mamamia review agreement STUDY --out AGREEMENT
    """
    from napari_mamamia.features.review.io.study_file import read_case_list
    from napari_mamamia.features.review.services.agreement import agree
    from napari_mamamia.features.review.services.agreement.agreement_output import (
        agreement_lines,
        save_agreement,
    )
    from napari_mamamia.features.review.services.look import load_study_form

    if (honeypots is None) is not (truth is None):
        raise typer.BadParameter(
            "expected --honeypots and --truth together, but found only one of them: add the other "
            "option"
        )
    store = open_study(study, out)
    _require_sight(store, reader, unblind, passphrase_file, "agreement")
    pots = None
    if honeypots is not None and truth is not None:
        pots = agree.Truth(read_case_list(honeypots), truth)
    form = store.read_frozen(load_study_form)
    orders = agree.list_orders(form, ordered or ())
    job = partial(agree.measure_agreement, store, pots, orders, bootstrap, seed)
    result = run(job)
    print("\n".join(agreement_lines(result, form)))
    for note in result.notes:
        print(f"note: {note}")
    for path in save_there(out, partial(save_agreement, result)):
        print(f"Agreement: {path}")
    for one in result.left_out:
        print(f"failed: {one.case_id}: {one.what}: {one.why}", file=sys.stderr)
    if result.left_out:
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("export")
def export(
    study: StudyArgument,
    out: Annotated[Path, make_out_option("New folder of the export.")],
    formats: Annotated[
        list[ReviewFormat] | None,
        typer.Option("--format", help="What to export; repeatable (default: masks, answers)."),
    ] = None,
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
    rating: Annotated[
        str,
        typer.Option(
            "--rating", metavar="QUESTION", help="Question whose answers are the MRMC ratings."
        ),
    ] = "",
    positives: Annotated[
        Path | None,
        typer.Option("--positives", metavar="FILE", help="Cases with truth 1, one per line."),
    ] = None,
) -> None:
    """Export accepted masks, answers and tables; exit with code 3 if anything is missing.

    Example: mamamia review export STUDY --out EXPORT
    """
    from napari_mamamia.features.review.io.study_file import read_case_list
    from napari_mamamia.features.review.services.export.study_export import (
        ExportChoice,
        export_study,
    )

    store = open_study(study, out)
    _require_sight(store, reader, unblind, passphrase_file, "export")
    ids = None if positives is None else read_case_list(positives)
    chosen = tuple(dict.fromkeys(formats or (ReviewFormat.MASKS, ReviewFormat.ANSWERS)))
    choice = ExportChoice(chosen, rating, ids)
    result = run(partial(save_there, out, partial(export_study, store, choice=choice)))
    print(
        f"{count_of(result.n_accepted, 'case')} accepted, {len(result.others)} not; "
        f"{count_of(len(result.files), 'file')} in {result.folder}"
    )
    for one in (*result.conflicts, *result.left_out):
        print(f"failed: {one.case_id}: {one.what}: {one.why}", file=sys.stderr)
    if not result.is_complete:
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("report")
def report(
    study: StudyArgument,
    out: Annotated[Path, make_out_option("Folder for the page.")],
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
    names: Annotated[
        bool, typer.Option("--names", help="Show readers by name, not by codes.")
    ] = False,
    by_reader: Annotated[
        bool, typer.Option("--time-by-reader", help="Show the time of each reader.")
    ] = False,
    images: Annotated[
        Path | None, make_images_option("Data set with the images (default: the study's).")
    ] = None,
    pictures: Annotated[
        int,
        typer.Option(
            "--pictures", parser=_PICTURES, help="Number of disagreements with a picture."
        ),
    ] = 12,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a study's report, OUT/report.html; exit with code 3 if there is a problem.

    Example: mamamia review report STUDY --out REPORT
    """
    from napari_mamamia.features.review.services.report.study_report import (
        ReportChoice,
        write_study_report,
    )

    store = open_study(study, out)
    _require_sight(store, reader, unblind, passphrase_file, "report")
    choice = ReportChoice(names, by_reader, images, pictures, bootstrap, seed)
    result = run(partial(write_study_report, store, out, choice, overwrite=overwrite))
    print(f"Report: {result.path}")
    for text in result.problems:
        print(f"failed: {text}", file=sys.stderr)
    if result.problems:
        raise typer.Exit(NOT_EVERY_CASE)


app.command("lead-key")(lead_key)
app.command("key")(key)
app.command("countersign")(countersign)
app.command("revoke")(revoke)
app.command("sign")(sign)
app.command("queue")(queue)
app.command("capture")(capture)


def _require_sight(
    store: "FolderStore", reader: str, reason: str, passphrase_file: Path | None, what: str
) -> None:
    from napari_mamamia.features.review.services.session import require_unblinding
    from napari_mamamia.io.files.user_folders import review_folder

    ask = partial(read_passphrase, passphrase_file, is_new=False)
    require_unblinding(store, reader, reason, review_folder(), ask, what)


def _find_pseudonymizer(
    store: "FolderStore", reader: str, reason: str, passphrase_file: Path | None, what: str
) -> "Pseudonymizer":
    from napari_mamamia.features.review.services.look import (
        NO_PSEUDONYMS,
        make_pseudonymizer,
    )

    if not store.study.hides_site:
        return NO_PSEUDONYMS
    if not reader:
        return make_pseudonymizer(store.study)
    _require_sight(store, reader, reason, passphrase_file, what)
    return NO_PSEUDONYMS


def _print_problems(problems: "tuple[Problem, ...]") -> None:
    for problem in problems:
        print(f"failed: {problem.kind}: {problem.where}: {problem.text}", file=sys.stderr)
