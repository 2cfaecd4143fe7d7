"""`mamamia challenge`: create, run, rank, verify and publish a challenge in a folder."""

import sys
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import Program
from napari_mamamia.cli.printing import NOT_EVERY_CASE, print_table, run
from napari_mamamia.cli.quantities import GIGABYTES, SECONDS, Quantity
from napari_mamamia.core.choices import IsolationChoice, ProfileName, Task
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from napari_mamamia.features.challenge.services.challenge.begin import BegunChallenge
    from napari_mamamia.features.challenge.services.challenge.run import TeamOutcome

app = Program(help="Create, run, rank and verify a challenge in a folder.", no_args_is_help=True)

_GIGABYTE: Final = 10**9
_ATTEMPTS: Final = Quantity("a number of attempts", 0, 10**6, "", "0 is any number", True)
_SMALLEST: Final = Quantity("a number of cases", 2, 10**6, "", "such as 10", True)
_SIZE: Final = Quantity("a size", 0.001, 10**6, "GB", "give GB, such as 20")

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the challenge.")]


@app.command("init")
def init(
    folder: FolderArgument,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Folder of reference masks or other truth.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option("--images", metavar="DATASET", help="Data set that programs are run on."),
    ] = None,
    clinical: Annotated[
        Path | None, typer.Option("--clinical", help="Clinical table (.xlsx, .ods, .csv).")
    ] = None,
    columns: options.ColumnsOption = None,
    cases: options.CasesOption = None,
    definition: Annotated[
        str | None,
        typer.Option(
            "--challenge",
            metavar="NAME|FILE",
            help="Definition of the challenge: a known name, or a .toml or .yaml file.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="ROLE=KIND[:FILE]",
            help="Model that a measure of the definition uses; repeatable.",
        ),
    ] = None,
    unusable: options.UnusableOption = None,
    task: Annotated[Task, typer.Option("--task", help="What teams submit.")] = Task.SEGMENTATION,
    name: Annotated[str, typer.Option("--name", help="Title (default: the folder's name).")] = "",
    profile: options.ProfileOption = ProfileName.CLINICAL,
    bootstrap: options.BootstrapOption = 1000,
    seed: options.SeedOption = 42,
    attempts: Annotated[
        int, typer.Option("--attempts", parser=_ATTEMPTS, help="Attempts per team (0: any number).")
    ] = 0,
    express_case: Annotated[
        list[str] | None,
        typer.Option(
            "--express-case",
            metavar="ID",
            help="Case to run first in the express lane; repeatable.",
        ),
    ] = None,
    express_limit: Annotated[
        float,
        typer.Option(
            "--express-limit",
            metavar="SECONDS",
            parser=SECONDS,
            help="Time limit of the express lane.",
        ),
    ] = 1800.0,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            parser=SECONDS,
            help="Time limit of a program for one case.",
        ),
    ] = 300.0,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            "--memory-limit",
            metavar="GB",
            parser=GIGABYTES,
            help="Memory limit (default: 3/4 of the memory).",
        ),
    ] = None,
    size_limit: Annotated[
        float,
        typer.Option(
            "--size-limit", metavar="GB", parser=_SIZE, help="Largest size of a submission."
        ),
    ] = 20.0,
    take_tables: Annotated[
        bool,
        typer.Option(
            "--take-tables", help="Accept tables of scores, and show them as not verified."
        ),
    ] = False,
    gate: options.GateOption = None,
    ladder: Annotated[
        bool,
        typer.Option(
            "--ladder", help=("Replace a team's score only if a later attempt is clearly better.")
        ),
    ] = False,
) -> None:
    """Create a challenge: freeze cases, hashes, definitions and limits in challenge.json.

    Example: mamamia challenge init BOARD --reference EXPERT --profile official-code
    """
    from napari_mamamia.features.challenge.io.challenge_file import ChallengeLimits
    from napari_mamamia.features.challenge.io.definition import definition_named
    from napari_mamamia.features.challenge.services.challenge.answers import has_mask_measures
    from napari_mamamia.features.challenge.services.challenge.begin import (
        ChallengeSettings,
        begin_challenge,
    )
    from napari_mamamia.scoring.case.profiles import profile_named

    listed = options.case_list(cases)
    chosen = None if definition is None else run(partial(definition_named, definition))
    if chosen is not None and chosen.profile and profile == ProfileName.CLINICAL:
        profile = chosen.profile
    limits = ChallengeLimits(
        attempts=attempts,
        case_seconds=time_limit,
        express_seconds=express_limit,
        memory_bytes=int((memory_limit or 0) * _GIGABYTE),
        submission_bytes=int(size_limit * _GIGABYTE),
    )
    settings = ChallengeSettings(
        name=name,
        task=task,
        reference=reference,
        images=images,
        clinical=clinical,
        columns=options.column_choice(columns),
        case_ids=listed.case_ids if listed else (),
        rule=unusable,
        profile=profile_named(profile),
        seed=seed,
        n_resamples=bootstrap,
        express=tuple(express_case or ()),
        takes_tables=take_tables,
        ladder=ladder,
        limits=limits,
        gate=gate,
        definition=chosen,
        models=dict(_split_pair(text) for text in models or ()),
    )
    begun = run(partial(begin_challenge, folder, settings))
    challenge = begun.opened.challenge
    what = f"task {challenge.task}" if chosen is None else f"definition {chosen.name}"
    print(f"challenge   {challenge.name}: {count_of(len(challenge.cases), 'case')}, {what}")
    print(f"sha256      {begun.opened.sha256}")
    if challenge.task is None:
        _print_definition(
            begun, is_table=chosen is not None and chosen.answer.file.endswith(".csv")
        )
        return
    print(f"profile     {challenge.profile}, {challenge.n_resamples} resamples, seed {seed}")
    print(f"            {settings.profile.source}")
    if profile == ProfileName.CLINICAL and chosen is None:
        print(
            "            (default; for the numbers of the MAMA-MIA challenge's scripts, create it"
        )
        print("            again with --profile official-code)")
    print(f"express     {', '.join(challenge.express)}")
    for note in begun.notes:
        print(f"note: {note}")
    has_labels = chosen is not None and has_mask_measures(chosen)
    _print_submissions(begun, has_tables=not has_labels)


def _print_submissions(begun: "BegunChallenge", *, has_tables: bool) -> None:
    forms = "TEAM/, TEAM.zip or TEAM.csv" if has_tables else "TEAM/ or TEAM.zip"
    print(f"Put submissions as {forms} in {begun.opened.submissions}")


def _split_pair(text: str) -> tuple[str, str]:
    role, has_value, value = text.partition("=")
    if not has_value or not role or not value:
        raise typer.BadParameter(f"expected ROLE=KIND or ROLE=KIND:FILE, but found {text!r}.")
    return role, value


def _print_definition(begun: "BegunChallenge", *, is_table: bool) -> None:
    challenge = begun.opened.challenge
    print(f"measures    {', '.join(challenge.metrics)}")
    print(f"resamples   {challenge.n_resamples}, seed {challenge.seed}")
    for role, text in challenge.models.items():
        print(f"model       {role}: {text}")
    for note in begun.notes:
        print(f"note: {note}")
    _print_submissions(begun, has_tables=is_table)


@app.command("score")
def score(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="Folder of one team's submission.")
    ],
    definition: Annotated[
        str,
        typer.Option(
            "--challenge", metavar="NAME|FILE", help="Definition: a known name or a file."
        ),
    ],
    reference: Annotated[Path, typer.Option("--reference", help="Folder of the truth.")],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="ROLE=KIND[:FILE]", help="Model that a measure uses; repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write metrics.json.")
    ] = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Score one submission by a challenge definition, without a challenge; exit 3 if incomplete.

    Example: mamamia challenge score TEAM --challenge odelia-2025 --reference TRUTH
    """
    from napari_mamamia.features.challenge.io.definition import definition_named
    from napari_mamamia.features.challenge.services.challenge.single import score_answers
    from napari_mamamia.io.tables.tables import write_json

    chosen = run(partial(definition_named, definition))
    named = dict(_split_pair(text) for text in models or ())
    measured = run(partial(score_answers, chosen, reference, answers, named))
    numbers = dict(measured.numbers)
    if chosen.ranking.score:
        numbers["score"] = measured.score
    for name, number in numbers.items():
        print(f"{name}: {number:.6g}")
    for name, problem in measured.problems.items():
        print(f"{name}: {problem}")
    for case_id, reason in measured.unusable:
        print(f"failed: {case_id}: {reason}", file=sys.stderr)
    if out is not None:
        # Codabench and grand-challenge take only numbers.
        aggregates = {name: {"mean": n} for name, n in numbers.items() if isfinite(n)}
        counts = {"n": measured.n, "n_unusable": len(measured.unusable)}
        content = {"aggregates": aggregates, **counts}
        run(partial(write_json, content, out, overwrite=overwrite))
    if measured.unusable:
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("run")
def run_teams(
    folder: FolderArgument,
    team: Annotated[
        list[str] | None, typer.Option("--team", metavar="NAME", help="Only this team; repeatable.")
    ] = None,
    express: Annotated[
        bool,
        typer.Option("--express", help="Run only the express lane: no attempt, no scores."),
    ] = False,
    workers: options.WorkersOption = 0,
    isolation: options.IsolationOption = IsolationChoice.AUTO,
    consent: options.ConsentOption = False,
    python: options.PythonOption = None,
    cuda_on_processor: options.CudaOnProcessorOption = False,
    as_root: options.AsRootOption = False,
) -> None:
    """Score the submissions in FOLDER/submissions and record each attempt in the ledger.

    Example: mamamia challenge run BOARD
    """
    from napari_mamamia.features.challenge.services.challenge.attempt import ProgramSettings
    from napari_mamamia.features.challenge.services.challenge.run import run_challenge
    from napari_mamamia.features.challenge.services.submission.run_submission import (
        SubmissionSettings,
    )

    program = SubmissionSettings(
        isolation=options.isolation_kind(isolation),
        consent=consent,
        python=python,
        as_root=as_root,
        cuda_on_processor=cuda_on_processor,
    )
    settings = ProgramSettings(program, options.place_of(workers, "", None), express)
    finished = run(partial(run_challenge, folder, tuple(team or ()), settings))
    for outcome in finished.teams:
        _print_team(outcome)
    for problem in finished.problems:
        print(f"failed: ledger: {problem}", file=sys.stderr)
    if not finished.all_ok:
        raise typer.Exit(NOT_EVERY_CASE)


def _print_team(outcome: "TeamOutcome") -> None:
    from napari_mamamia.features.challenge.io.ledger import AttemptOutcome
    from napari_mamamia.features.challenge.services.challenge.board_pages import ordinal

    is_passed = outcome.outcome is AttemptOutcome.PASSED
    if outcome.outcome is not AttemptOutcome.SCORED and not is_passed:
        print(f"failed: {outcome.team}: {outcome.reason}", file=sys.stderr)
    attempt = f", {ordinal(outcome.number)} attempt" if outcome.number else ""
    kind = f" ({outcome.kind})" if outcome.kind else ""
    reason = f": {outcome.reason}" if outcome.reason and (outcome.number or is_passed) else ""
    print(f"{outcome.team}{kind}{attempt}: {outcome.outcome.value}{reason}")
    for note in outcome.notes:
        print(f"    note: {note}")
    if outcome.breaches:
        rows = [(breach.case_id, breach.reason) for breach in outcome.breaches]
        print_table(f"{outcome.team}: problems", ("case", "problem"), rows, is_folded=True)


@app.command("rank")
def rank(
    folder: FolderArgument,
    out: options.OutOption,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write the leaderboard: OUT/leaderboard.html, one page per team, and data files.

    Example: mamamia challenge rank BOARD --out RANKS
    """
    from napari_mamamia.features.challenge.services.challenge.board_pages import (
        answer_board,
        describe_row,
        rank_challenge,
        show_rank,
    )

    existing = options.existing_policy(False, overwrite)
    ranking = run(partial(rank_challenge, folder, out, existing=existing))
    board = ranking.board
    mentioned = set()
    for ranked in board.boards:
        measures = list(ranking.defined[ranked.task].numbers) if ranking.defined else []
        named = ranking.defined[ranked.task].titles if ranking.defined else {}
        titles = [named[name] for name in measures] or ["performance", "fairness"]
        heads = ("rank", "team", "n", "score", *titles)
        numbers = [
            (
                "–" if row.rank is None else show_rank(row),
                row.team,
                f"{row.n}, {row.n_unusable} unusable" if row.n_unusable else str(row.n),
                *(
                    "–" if value is None else f"{value:.4f}"
                    for value in (
                        row.score,
                        *(
                            map(dict(row.measures).get, measures)
                            if measures
                            else (row.performance, row.fairness)
                        ),
                    )
                ),
            )
            for row in ranked.rows
        ]
        title = f"{board.challenge}, {ranked.task}: {ranked.ranked_by} ({board.profile})"
        print_table(title, heads, numbers, to_the_right=heads[2:], is_folded=True)
        for row in ranked.rows:
            # A team that is refused in all tasks is listed once.
            if row.rank is not None or (row.team, row.reason) not in mentioned:
                print(describe_row(row))
            mentioned.add((row.team, row.reason))
    for note in board.notes:
        print(f"note: {note}")
    for answer in answer_board(ranking):
        print(f"{answer.question}: {' '.join(answer.sentences)}")
    last_lines = ranking.ledger.heads if ranking.ledger else ()
    print(f"ledger: {', '.join(head[:16] for head in last_lines)} (send this to the teams)")
    print(f"Leaderboard: {out / 'leaderboard.html'}, each team's page in {out / 'teams'}")
    print(f"For programs: {out / 'leaderboard.json'}")


@app.command("verify")
def verify_all(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A challenge, or the leaderboard of one.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare only hashes; do not compute the scores again.")
    ] = False,
) -> None:
    """Verify a challenge against its inputs; list all differences and exit with code 3 if any.

    Example: mamamia challenge verify BOARD
    """
    from napari_mamamia.features.challenge.services.challenge.verify import (
        list_unchecked,
        verify_challenge,
    )

    differences = run(partial(verify_challenge, folder, is_quick=quick))
    for difference in differences:
        print(f"differs: {difference.where}: {difference.text}")
    if not differences:
        what = "hashes and ledger" if quick else "hashes, ledger and every score"
        print(f"verified: {what} of {folder} are unchanged")
    for text in run(partial(list_unchecked, folder, is_quick=quick)):
        print(f"not checked: {text}")
    if differences:
        raise typer.Exit(NOT_EVERY_CASE)


@app.command("publish")
def publish_boards(
    boards: Annotated[
        list[Path], typer.Argument(metavar="BOARD...", help="Folder of a leaderboard; repeatable.")
    ],
    out: options.OutOption,
    title: Annotated[
        str, typer.Option("--title", help="Title of the site (default: the challenge's).")
    ] = "",
    link: Annotated[
        list[str] | None,
        typer.Option("--link", metavar="TEAM=URL", help="Web page of a team; repeatable."),
    ] = None,
    minimum_group: Annotated[
        int,
        typer.Option(
            "--minimum-group",
            metavar="N",
            parser=_SMALLEST,
            help="Smallest number of cases behind a published number.",
        ),
    ] = 10,
    public_cases: Annotated[
        Path | None,
        typer.Option(
            "--public-cases",
            metavar="FILE",
            help="Cases of the public part; the others are the private part.",
        ),
    ] = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Publish leaderboards as a web site without case ids and without values of single cases.

    Example: mamamia challenge publish RANKS --out SITE
    """
    from napari_mamamia.features.challenge.services.challenge.publish import (
        PAGE,
        PublishSettings,
        publish,
    )

    pairs = [text.partition("=") for text in link or ()]
    try:
        links = {team: address for team, _, address in pairs}
        settings = PublishSettings(title, links, minimum_group, options.case_list(public_cases))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    existing = options.existing_policy(False, overwrite)
    published = run(partial(publish, boards, out, settings, existing=existing))
    for task in published.site.tasks:
        print(f"{task.challenge}, {task.task}: {count_of(len(task.rows), 'team')}")
    if published.unsearched:
        n_unsearched = count_of(len(published.unsearched), "id")
        print(f"not searched: {n_unsearched} of cases, which are short numbers")
    print(f"No case id found in the files of {out}")
    print(f"Site: {out / PAGE}")
