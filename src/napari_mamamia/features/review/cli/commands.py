"""Commands of `mamamia review`, from planning a study to its report."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli.given import Program
from napari_mamamia.cli.options import (
    BootstrapOption,
    OverwriteOption,
    SeedOption,
)
from napari_mamamia.cli.printing import NOT_EVERY_CASE, print_table, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.core.blinding import NOT_BLIND, STUDY_HIDDEN, Blinding, Hidden
from napari_mamamia.core.names import count_of
from napari_mamamia.features.review.cli.keys import countersign, key, lead_key, revoke, sign
from napari_mamamia.features.review.cli.options import (
    AskerOption,
    DataSetArgument,
    PassphraseOption,
    StudyArgument,
    UnblindOption,
    make_images_option,
    make_out_option,
    open_study,
    read_passphrase,
    save_there,
)
from napari_mamamia.features.review.cli.quality import capture, queue
from napari_mamamia.features.review.core.review import (
    ConsensusRule,
    ReadingMode,
    ReviewFormat,
    StudyPlan,
    Triggers,
)

if TYPE_CHECKING:
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.check_study import Problem
    from napari_mamamia.features.review.services.pseudonymizer import Pseudonymizer

app = Program(
    help="A study that several people read on one shared folder, without a server.",
    no_args_is_help=True,
)

_READINGS: Final = Quantity("a number of readings", 1, 100, "", "give 2", is_whole=True)
_SHARE: Final = Quantity("a share of hidden repeats", 0, 0.5, "", "give 0.05 for 1 in 20")
_DICE: Final = Quantity("a Dice", 0, 1, "", "give a number such as 0.7; 0 for none")
_PICTURES: Final = Quantity("a number of pictures", 0, 100, "", "give 12", is_whole=True)
_RATIO: Final = Quantity("a ratio of volumes", 0, 1000, "", "give 1.5; 0 for none")
_MM: Final = Quantity("a distance", 0, 1000, "mm", "give 10; 0 for none")

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
        ReadingMode, typer.Option("--mode", help="How often a case is read, and by whom.")
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
        ConsensusRule, typer.Option("--consensus", help="How readings become one mask.")
    ] = ConsensusRule.MAJORITY_BACKGROUND,
    dice_below: Annotated[
        float,
        typer.Option("--dice-below", parser=_DICE, help="Readings with a lower Dice disagree."),
    ] = 0.7,
    volume_ratio: Annotated[
        float,
        typer.Option(
            "--volume-ratio", parser=_RATIO, help="Readings with a larger volume ratio disagree."
        ),
    ] = 1.5,
    hausdorff_above: Annotated[
        float,
        typer.Option(
            "--hausdorff-above", parser=_MM, help="Readings with a larger HD95 (mm) disagree."
        ),
    ] = 10.0,
    any_lesions: Annotated[
        bool, typer.Option("--any-lesions", help="Different lesions are no disagreement.")
    ] = False,
    any_answers: Annotated[
        bool, typer.Option("--any-answers", help="Different answers are no disagreement.")
    ] = False,
    repeats: Annotated[
        float, typer.Option("--repeats", parser=_SHARE, help="Proportion of hidden repeats.")
    ] = 0.0,
    honeypots: Annotated[
        Path | None,
        typer.Option("--honeypots", metavar="FILE", help="Case ids of known truth, one per line."),
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
        bool, typer.Option("--freeze", help="Write the study; otherwise only show it.")
    ] = False,
    without_broken: Annotated[
        bool, typer.Option("--without-broken", help="Freeze without cases that cannot be read.")
    ] = False,
    own_key: Annotated[
        str,
        typer.Option("--key", metavar="NAME", help="Lead who makes a key now, for study.json."),
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
    """Plan a study and show the assigned readings; with --freeze write STUDY/study.json."""
    from napari_mamamia.features.review.io.keys import make_lead_key
    from napari_mamamia.features.review.services.make_study import (
        StudyPeople,
        describe_bound,
        freeze_study,
        read_lead_keys,
    )
    from napari_mamamia.features.review.services.plan_study import (
        StudySetup,
        describe_draft,
        plan_study,
    )
    from napari_mamamia.io.files.user_folders import review_folder

    if open_ and blind:
        raise typer.BadParameter(
            "expected one of --hide and --not-blind, but found both: leave one out"
        )
    if 0 < volume_ratio < 1:
        raise typer.BadParameter(
            f"expected a ratio of 1 or more, or 0 for none, but found {volume_ratio:g}: give 1.5"
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
        print("Nothing was written: add --freeze to begin with this.")
        return
    bound = [*read_lead_keys("\n".join(lead_key or ()))]
    if own_key:
        bound.append((own_key, make_lead_key(review_folder(), read_passphrase(passphrase_file))))
    origin = freeze_study(draft, out, is_complete=not without_broken, lead_keys=bound)
    print(f"Study: {out}\nstudy.json SHA-256 {origin}. The file never changes from now on.")
    print(describe_bound(bound))


@app.command("status")
def status(
    study: StudyArgument,
    out: OutOption = None,
    reader: AskerOption = "",
    unblind: UnblindOption = "",
    passphrase_file: PassphraseOption = None,
) -> None:
    """Show the state of a study; exit 3 on conflicts. OUT/status.json."""
    from napari_mamamia.features.review.services import check_study

    store = open_study(study, out)
    pseudonymizer = _find_pseudonymizer(store, reader, unblind, passphrase_file, "status")
    result = run(partial(check_study.find_status, store, pseudonymizer))
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
            "refused: see `mamamia review verify`"
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
    """Verify a study's hashes, signatures and rules; exit 3 on any problem."""
    from napari_mamamia.features.review.services import check_study

    store = open_study(study, out)
    pseudonymizer = _find_pseudonymizer(store, reader, unblind, passphrase_file, "verify")
    result = run(partial(check_study.verify_study, store, images, pseudonymizer))
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
    """Write the audit trail: every event in order, OUT/audit.csv and OUT/audit.html."""
    from napari_mamamia.features.review.services.audit import save_audit
    from napari_mamamia.features.review.services.pseudonymizer import NO_PSEUDONYMS
    from napari_mamamia.features.review.services.study_form import load_study_form

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
        typer.Option("--honeypots", metavar="FILE", help="The list that `init` was given."),
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
    """Measure reader agreement; exit 3 if anything was left out. OUT/agreement.json, .csv."""
    from napari_mamamia.features.review.io.study_file import read_case_list
    from napari_mamamia.features.review.services.agreement import agree
    from napari_mamamia.features.review.services.agreement.agreement_output import (
        agreement_lines,
        save_agreement,
    )
    from napari_mamamia.features.review.services.study_form import load_study_form

    if (honeypots is None) is not (truth is None):
        raise typer.BadParameter(
            "expected --honeypots and --truth together, but found one: give both"
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
    """Export accepted masks, answers and tables; exit 3 on conflicts or missing content."""
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
    """Write a study's report as one HTML page; exit 3 on problems. OUT/report.html."""
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
    from napari_mamamia.features.review.services.unblinding import require_unblinding
    from napari_mamamia.io.files.user_folders import review_folder

    ask = partial(read_passphrase, passphrase_file, is_new=False)
    require_unblinding(store, reader, reason, review_folder(), ask, what)


def _find_pseudonymizer(
    store: "FolderStore", reader: str, reason: str, passphrase_file: Path | None, what: str
) -> "Pseudonymizer":
    """Return the pseudonymizer of a study whose site is hidden from this person."""
    from napari_mamamia.features.review.services.pseudonymizer import (
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
