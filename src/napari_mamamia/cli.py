"""`mamamia`: parse, call a service, print. Needs neither a display nor napari.

Exit codes: 0 all done; 1 nothing could be done; 2 usage; 3 finished, but not every case; 130
stopped.
"""

import csv
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from napari_mamamia.core.errors import MamamiaError, MissingExtraError
from napari_mamamia.core.progress import Job, Progress, run_job
from napari_mamamia.core.provenance import software_version

if TYPE_CHECKING:
    from napari_mamamia.core.records import CaseFailure, CaseScore
    from napari_mamamia.services.batch_work import Place
    from napari_mamamia.services.data_set import CaseRow, OpenDataSet
    from napari_mamamia.services.output_folder import Existing
    from napari_mamamia.services.score import ScoreSummary
    from napari_mamamia.services.score_settings import ScoreSettings

__all__ = ["app", "main"]

T = TypeVar("T")

NOT_EVERY_CASE = 3
STOPPED = 130

app = typer.Typer(
    help="Tumour annotation and benchmark scoring on breast DCE-MRI. Not a medical device.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DataSetArgument = Annotated[
    Path, typer.Argument(metavar="DATASET", help="Data-set folder, case folder or 4-D file.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
CaseOption = Annotated[
    list[str] | None, typer.Option("--case", metavar="ID", help="Only this case; repeatable.")
]
LabelOption = Annotated[
    float | None, typer.Option("--label", help="Value that is tumour (default: any above 0).")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue the run that made the output folder.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace files of the same name in the output folder.")
]
ClinicalOption = Annotated[
    Path | None, typer.Option("--clinical", help="Clinical table (.xlsx, .csv), for fairness.")
]
BootstrapOption = Annotated[
    int, typer.Option("--bootstrap", min=0, help="Resamples for the intervals (0: none).")
]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=0, help="Processes that work at once (0: only this one).")
]
SchedulerOption = Annotated[
    str, typer.Option("--scheduler", metavar="ADDRESS", help="dask scheduler, tcp://host:port.")
]
TimeLimitOption = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="End a case after that.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]


class ProfileName(StrEnum):
    """Names of `scoring.profiles.PROFILES`."""

    OFFICIAL_CODE = "official-code"
    PAPER = "paper"
    CLINICAL = "clinical"


ProfileOption = Annotated[
    ProfileName, typer.Option("--profile", help="The definitions of every number.")
]


def main() -> None:
    """Run the command line; errors that the user can mend are one line, not a traceback."""
    try:
        app()
    except MamamiaError as error:
        _fail(f"error: {error}", 1)
    except KeyboardInterrupt:
        _fail("stopped; what was finished is kept", STOPPED)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(software_version())
        raise typer.Exit


@app.command()
def demo(out: OutOption, resume: ResumeOption = False, overwrite: OverwriteOption = False) -> None:
    """Make 12 phantom cases with known truth, then predict, score and export them."""
    from napari_mamamia.services.demo import make_demo

    summary = _run(make_demo(out, _existing(resume, overwrite)))
    _print_scores(summary.rows)
    print("Phantoms are made by this software: their scores say nothing about patients.")
    print(f"Scores:  {summary.workspace / 'scores'}\nExport:  {summary.export}")
    print(f"To see it in the window:  mamamia view {shlex.quote(str(summary.data_set))}")
    _finish(summary.failures)


@app.command()
def cases(
    data_set: DataSetArgument,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """List the cases of a data set, what each has and what is wrong."""
    from napari_mamamia.services.data_set import case_rows

    opened = _open(data_set)
    rows = case_rows(opened)
    if as_csv:
        _print_case_csv(rows)
    else:
        _print_case_table(rows, opened)
    if any(row.files.problems for row in rows):
        raise typer.Exit(NOT_EVERY_CASE)


@app.command()
def predict(
    data_set: DataSetArgument,
    out: OutOption,
    model: Annotated[
        str, typer.Option("--model", help="Model; 'kinetic' needs no weights.")
    ] = "kinetic",
    case: CaseOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Segment the tumour: writes OUT/ID.nii.gz and OUT/ID.json for each case."""
    from napari_mamamia.services.predict import predict_data_set, segmenter_named

    segmenter = segmenter_named(model)
    opened = _open(data_set)
    existing = _existing(resume, overwrite)
    summary = _run(predict_data_set(opened, segmenter, out, case or (), existing))
    for saved in summary.saved:
        print(f"{saved.case_id}  {saved.volume_mm3 / 1000:.2f} ml  {saved.seconds:.1f} s")
        for note in saved.notes:
            print(f"    {note}")
    if summary.skipped:
        print(f"{len(summary.skipped)} case(s) were there already")
    print(f"{len(summary.saved)} prediction(s) saved in {out} ({segmenter.note})")
    _finish(summary.failures)


@app.command()
def score(
    reference: Annotated[Path, typer.Option("--reference", help="Folder of reference masks.")],
    prediction: Annotated[
        list[str],
        typer.Option(
            "--prediction",
            metavar="[NAME=]DIR",
            help="Folder of predicted masks; repeatable: each model gets OUT/NAME.",
        ),
    ],
    out: OutOption,
    clinical: ClinicalOption = None,
    profile: ProfileOption = ProfileName.CLINICAL,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 42,
    label: LabelOption = None,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    time_limit: TimeLimitOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare folders of masks: writes OUT/case_scores.csv (.xlsx, .parquet), OUT/summary.json."""
    from napari_mamamia.services.score import score_folders
    from napari_mamamia.services.score_models import prediction_folder, score_models
    from napari_mamamia.services.score_text import comparison_lines

    existing, place = _existing(resume, overwrite), _place(workers, scheduler, time_limit)
    settings = _score_settings(profile, clinical, label, bootstrap, seed)
    folders = [prediction_folder(text) for text in prediction]
    if len(folders) == 1:
        (only,) = folders
        job = score_folders(
            reference, only.folder, out, settings, name=only.name, place=place, existing=existing
        )
        _finish_scores([_run(job)], out)
        return
    job_of_all = score_models(reference, folders, out, settings, place=place, existing=existing)
    compared = _run(job_of_all)
    _finish_scores(compared.models, out, comparison_lines(compared.comparison))


@app.command("score-table")
def score_table(
    table: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help="Table with case_id or patient_id, dsc, norm_hd."),
    ],
    out: OutOption,
    clinical: ClinicalOption = None,
    profile: ProfileOption = ProfileName.CLINICAL,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Compute a cohort's numbers from case scores that somebody else computed."""
    from napari_mamamia.services import score_table as service

    existing = _existing(False, overwrite)
    settings = _score_settings(profile, clinical, None, bootstrap, seed)
    job = service.score_table(table, out, settings, existing=existing)
    _finish_scores([_run(job)], out, cases=False)


@app.command("score-pcr")
def score_pcr(
    predictions: Annotated[
        Path,
        typer.Argument(metavar="PREDICTIONS", help="Table with patient_id or case_id, pcr, score."),
    ],
    clinical: Annotated[Path, typer.Option("--clinical", help="Clinical table with pcr.")],
    out: OutOption,
    profile: ProfileOption = ProfileName.CLINICAL,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 42,
    overwrite: OverwriteOption = False,
) -> None:
    """Score predicted response (pCR) against the clinical table: writes OUT/summary.json."""
    from napari_mamamia.services import score_pcr as service

    existing = _existing(False, overwrite)
    settings = _score_settings(profile, None, None, bootstrap, seed)
    job = service.score_pcr(predictions, clinical, out, settings, existing=existing)
    _finish_scores([_run(job)], out, cases=False)


@app.command()
def export(
    data_set: DataSetArgument,
    masks: Annotated[Path, typer.Option("--masks", help="Folder of masks ID.nii.gz.")],
    out: OutOption,
    case: CaseOption = None,
    label: LabelOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write masks with the input's exact geometry, provenance and checksums."""
    from napari_mamamia.services.export import export_masks

    opened = _open(data_set)
    job = export_masks(
        opened.data_set,
        masks,
        out,
        label=label,
        case_ids=case or (),
        existing=_existing(False, overwrite),
    )
    summary = _run(job)
    print(f"{len(summary.exported)} mask(s) saved and verified in {out}")
    _finish(summary.failures)


@app.command()
def view(
    data_set: DataSetArgument,
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Case to open.")] = None,
) -> None:
    """Open the window on a data set."""
    from napari_mamamia.io.layout import find_data_set

    if find_spec("napari") is None or find_spec("qtpy") is None:
        raise MissingExtraError("napari", "pyqt6")
    found = find_data_set(data_set)
    environment = dict(os.environ, MAMAMIA_DATA_SET=str(found.root.resolve()))
    if case is not None:
        environment["MAMAMIA_CASE"] = found.case(case).case_id
    command = [sys.executable, "-m", "napari", "-w", "napari-mamamia", "Cases"]
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


def _existing(resume: bool, overwrite: bool) -> "Existing":
    from napari_mamamia.services.output_folder import Existing

    if resume and overwrite:
        raise typer.BadParameter("--resume and --overwrite exclude each other")
    if overwrite:
        return Existing.OVERWRITE
    return Existing.RESUME if resume else Existing.REFUSE


def _open(path: Path) -> "OpenDataSet":
    from napari_mamamia.services.data_set import open_data_set

    opened = _run(open_data_set(path))
    for warning in opened.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return opened


def _run(job: Job[T]) -> T:
    """Drive a job with a progress bar on the error stream."""
    with _progress_bar() as report:
        return run_job(job, report)


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Bar(
        *columns,
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=None)

        def report(progress: Progress) -> None:
            bar.update(
                task, completed=progress.done, total=progress.total, description=progress.text
            )

        yield report


def _finish(failures: "tuple[CaseFailure, ...]") -> None:
    for failure in failures:
        print(f"failed: {failure.case_id}: {failure.reason}", file=sys.stderr)
    if failures:
        raise typer.Exit(NOT_EVERY_CASE)


def _place(workers: int, scheduler: str, time_limit_s: float | None) -> "Place":
    from napari_mamamia.services.batch_work import Place

    try:
        return Place(workers, scheduler, time_limit_s)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _score_settings(
    profile: ProfileName, clinical: Path | None, label: float | None, bootstrap: int, seed: int
) -> "ScoreSettings":
    from napari_mamamia.scoring.profiles import profile_named
    from napari_mamamia.services.score_settings import ScoreSettings

    try:
        return ScoreSettings(profile_named(profile), clinical, label, bootstrap, seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _finish_scores(
    models: "Sequence[ScoreSummary]",
    out: Path,
    comparison: Sequence[str] = (),
    *,
    cases: bool = True,
) -> None:
    """Print the cases and the cohort's numbers of each model; exit code 3 unless all are ok."""
    from napari_mamamia.services.score_report import REPORT
    from napari_mamamia.services.score_text import cohort_lines

    for scored in models:
        if cases:
            _print_scores(scored.rows)
        print("\n".join(cohort_lines(scored.model)))
        print(f"Scores saved in {scored.table if cases else scored.folder}")
    for line in comparison:
        print(line)
    print(f"Report: {out / REPORT}")
    if not cases:
        _finish(models[0].model.failures)
    if not all(scored.all_ok for scored in models):
        raise typer.Exit(NOT_EVERY_CASE)


def _print_scores(rows: "tuple[CaseScore, ...]") -> None:
    from rich.console import Console
    from rich.table import Table

    profile = rows[0].profile if rows else "clinical"
    table = Table(title=f"Case scores (profile: {profile})")
    table.add_column("case")
    table.add_column("status")
    for head in ("Dice", "HD95 mm", "NormHD", "NSD 1 mm", "reference ml", "prediction ml"):
        table.add_column(head, justify="right")
    for row in rows:
        volumes = (row.volume_reference_mm3 / 1000, row.volume_prediction_mm3 / 1000)
        table.add_row(
            row.case_id,
            row.status.value,
            _number(row.dsc, 3),
            _number(row.hausdorff95_mm, 1),
            _number(row.norm_hd, 3),
            _number(row.nsd_1mm, 3),
            *(_number(volume, 2) for volume in volumes),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for row in rows:
        if row.reason:
            print(f"{row.case_id}: {row.reason}")


def _number(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}"


def _print_case_csv(rows: "tuple[CaseRow, ...]") -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(
        ["case_id", "phases", "reference", "predictions", "refined", "status", "problems"]
    )
    for row in rows:
        writer.writerow(
            [
                row.case_id,
                row.n_phases,
                "yes" if row.has_reference else "no",
                " ".join(row.predictions),
                " ".join(row.refined),
                row.status,
                "; ".join(row.files.problems),
            ]
        )


def _print_case_table(rows: "tuple[CaseRow, ...]", opened: "OpenDataSet") -> None:
    from rich.console import Console
    from rich.table import Table

    data_set = opened.data_set
    table = Table(title=f"{data_set.name}: {len(rows)} case(s), layout {data_set.kind}")
    for head in ("case", "phases", "reference", "predictions", "refined", "status"):
        table.add_column(head)
    for row in rows:
        table.add_row(
            row.case_id,
            str(row.n_phases),
            "yes" if row.has_reference else "–",
            ", ".join(row.predictions) or "–",
            ", ".join(row.refined) or "–",
            "; ".join(row.files.problems) or row.status,
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print(f"Workspace: {opened.workspace.root}")
