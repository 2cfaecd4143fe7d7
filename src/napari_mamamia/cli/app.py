"""The command `mamamia` and its commands but those that score."""

import codecs
import shlex
import signal
import sys
import warnings
from functools import partial
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from napari_mamamia.cli import (
    clinical,
    converting,
    exporting,
    importing,
    kinetics,
    models,
    pacs,
    perfusion,
    predicting,
    registering,
    replay,
    scoring,
    straightening,
    wrapping,
)
from napari_mamamia.cli.given import Program
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import (
    AsRootOption,
    CaseOption,
    ColumnsOption,
    DataSetArgument,
    OutOption,
    OverwriteOption,
    ResumeOption,
    existing_policy,
)
from napari_mamamia.cli.printing import (
    NOT_EVERY_CASE,
    finish,
    print_case_csv,
    print_case_table,
    print_scores,
    run,
)
from napari_mamamia.cli.quantities import GIGABYTES, SECONDS, Quantity
from napari_mamamia.core.child_environment import child_environment, leave_out_current_folder
from napari_mamamia.core.child_process import become, python_command
from napari_mamamia.core.choices import IsolationChoice, IsolationKind, Task
from napari_mamamia.core.errors import MamamiaError, MissingExtraError, refusal_text
from napari_mamamia.core.names import readable_name
from napari_mamamia.core.provenance import software_version
from napari_mamamia.io.files.own_paths import sweep_temporary

if TYPE_CHECKING:
    from napari_mamamia.segmentation.submission.limits import RunLimits
    from napari_mamamia.services.submission.run_submission import SubmissionSummary
    from napari_mamamia.services.submission.settings import SubmissionSettings


# `mamamia run-submission` and `mamamia check-computer`.

_GIGABYTE = 10**9


_CASES: Final = Quantity("a number of cases", 0, 100_000, "", "give 3, or 0 for none first", True)


def run_submission(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Submission: a folder with model.py.")
    ],
    data_set: DataSetArgument,
    out: OutOption,
    express: Annotated[
        int,
        typer.Option("--express", parser=_CASES, help="Cases to run first; one failure stops."),
    ] = 3,
    express_limit: Annotated[
        float | None,
        typer.Option(
            "--express-limit", metavar="SECONDS", parser=SECONDS, help="Time for each of those."
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option("--time-limit", metavar="SECONDS", parser=SECONDS, help="Time for a case."),
    ] = 300.0,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            "--memory-limit", metavar="GB", parser=GIGABYTES, help="Memory (default: 3/4 of all)."
        ),
    ] = None,
    task: Annotated[Task, typer.Option("--task", help="What is asked for.")] = Task.BOTH,
    case: CaseOption = None,
    together: Annotated[
        bool, typer.Option("--together", help="All cases in one process, as the challenge.")
    ] = False,
    isolation: Annotated[
        IsolationChoice, typer.Option("--isolation", help="What keeps it in.")
    ] = IsolationChoice.AUTO,
    consent: Annotated[
        bool,
        typer.Option(
            "--consent-no-isolation",
            help="Run it even where nothing keeps it in: it can then do whatever you can.",
        ),
    ] = False,
    python: Annotated[
        Path | None, typer.Option("--python", help="Python that has what the submission needs.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="Container image, for docker and podman.")
    ] = None,
    cuda_on_processor: Annotated[
        bool,
        typer.Option(
            "--cuda-on-processor", help="Give it the processor where it asks for CUDA by name."
        ),
    ] = False,
    as_root: AsRootOption = False,
    resume: ResumeOption = False,
    columns: ColumnsOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Run a challenge submission in isolation: OUT/pred_segmentations, OUT/predictions.csv."""
    from napari_mamamia.segmentation.submission.isolation import CHALLENGE_IMAGE
    from napari_mamamia.services.submission import run_submission as service
    from napari_mamamia.services.submission.settings import SubmissionSettings

    settings = SubmissionSettings(
        task=task,
        express=express,
        express_seconds=express_limit,
        limits=_make_limits(time_limit, memory_limit),
        together=together,
        isolation=None if isolation is IsolationChoice.AUTO else IsolationKind(isolation.value),
        consent=consent,
        image=image or CHALLENGE_IMAGE,
        python=python,
        as_root=as_root,
        cuda_on_processor=cuda_on_processor,
    )
    existing = existing_policy(resume, overwrite)
    opened = open_at(data_set, columns)
    job = partial(service.run_submission, opened, folder, out, settings, case or (), existing)
    _print_submission(run(job), out, settings)


def _make_limits(seconds: float, gigabytes: float | None) -> "RunLimits":
    from napari_mamamia.segmentation.submission.limits import RunLimits

    try:
        # 0 would be taken for the default, and less is refused.
        return RunLimits(seconds, 0 if gigabytes is None else int(gigabytes * _GIGABYTE) or -1)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _print_submission(done: "SubmissionSummary", out: Path, settings: "SubmissionSettings") -> None:
    submission = done.submission
    size = f"{submission.files} file(s), {submission.n_bytes / 10**6:.1f} MB"
    print(f"submission  {submission.name} ({size})\nsha256      {submission.sha256}")
    print(f"licence     {submission.licence_line}\nisolation   {done.isolation.text}")
    if submission.programs:
        names = ", ".join(submission.programs[:5])
        print(f"programs    {len(submission.programs)} file(s) may run programs: {names}")
    _print_cases(done)
    for note in done.notes:
        print(f"note: {note}")
    if done.skipped:
        print(f"{len(done.skipped)} case(s) were there already")
    if settings.task.wants_masks:
        print(f"{len(done.saved)} mask(s) checked and saved in {out / 'pred_segmentations'}")
    if settings.task.wants_responses:
        print(f"{len(done.responses)} response(s) checked and saved in {out / 'predictions.csv'}")
    if done.stopped:
        print(done.stopped)
    finish(done.failures)


def _print_cases(done: "SubmissionSummary") -> None:
    responses = {response.case_id: response for response in done.responses}
    for saved in done.saved:
        answer = responses.get(saved.case_id)
        pcr = f"  pcr {answer.pcr} ({answer.score:.3f})" if answer else ""
        print(f"{saved.case_id}  {saved.volume_mm3 / 1000:.2f} ml  {saved.seconds:.1f} s{pcr}")
        for note in saved.notes:
            print(f"    {note}")


def check_computer(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Text file for the log.")
    ] = None,
    case: Annotated[
        Path | None, typer.Option("--case", metavar="PATH", help="A case of your own to try.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Check this computer: hardware, extras, isolation, and models whose result is known."""
    from napari_mamamia.services.submission import check_computer as service

    checked = run(partial(service.check_computer, case))
    text = service.check_text(checked)
    print(text, end="")
    if out is not None:
        service.save_check(checked, out, overwrite=overwrite)
        print(f"Log without names and patient data: {out}")
    if not checked.all_ok:
        raise typer.Exit(NOT_EVERY_CASE)


app = Program(
    help="Tumour annotation and benchmark scoring on breast DCE-MRI. Not a medical device.",
    epilog="Exit codes: 0 every case done, 1 could not be done, 2 wrong usage, 3 finished but not "
    "every case (each is named with its reason), 130 stopped.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


_SHOWN = "napari_mamamia.shown"


def _replace_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what stands for signs that a terminal cannot show: U+FFFD for bytes of a file name."""
    if isinstance(error, UnicodeEncodeError) and error.encoding.replace("-", "") == "utf8":
        return readable_name(error.object[error.start : error.end]).encode(), error.end
    return codecs.backslashreplace_errors(error)


def main() -> None:
    """Run the command line; errors that the user can mend are one line, not a traceback."""
    leave_out_current_folder()
    codecs.register_error(_SHOWN, _replace_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_SHOWN)
    warnings.filterwarnings("ignore", module=r"pydicom(\.|$)")  # what matters we say ourselves
    for name in ("SIGTERM", "SIGHUP"):
        _stop_at(name)
    sweep_temporary()
    try:
        app()
    except MamamiaError as error:
        _exit_with_message(f"error: {error}", 1)
    except OSError as error:
        _exit_with_message(f"error: {refusal_text(error)}", 1)


def _stop_at(name: str) -> None:
    """Let a signal end the program as Ctrl-C does, which tidies up; a second one ends it at once.

    One that is ignored, as below nohup, stays so.
    """
    # Windows has no SIGHUP.
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, _stop_on_signal)


def _stop_on_signal(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


@app.callback(invoke_without_command=True)
def _print_version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(software_version())
        raise typer.Exit


@app.command()
def demo(
    out: OutOption,
    one_breast: Annotated[
        bool, typer.Option("--one-breast", help="8 sagittal exams of one breast instead.")
    ] = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Make 12 phantom cases with known truth, then predict, score and export them."""
    from napari_mamamia.phantom import PhantomMix
    from napari_mamamia.services.demo import make_demo
    from napari_mamamia.services.score.report import REPORT
    from napari_mamamia.services.score.text import cohort_lines

    mix = PhantomMix.ONE_BREAST if one_breast else PhantomMix.MIXED
    summary = run(partial(make_demo, out, existing_policy(resume, overwrite), mix))
    print_scores(summary.scored.rows)
    print("\n".join(cohort_lines(summary.scored.model)))
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print("Phantoms are made by this software: their scores say nothing about patients.")
    print(f"Scores:  {summary.scored.table}\nReport:  {summary.scored.folder / REPORT}")
    print(f"Export:  {summary.export}")
    print(f"To see it in the window:  mamamia view {shlex.quote(str(summary.data_set))}")
    finish(summary.failures)


@app.command()
def cases(
    data_set: DataSetArgument,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    columns: ColumnsOption = None,
) -> None:
    """List the cases of a data set, what each has and what is wrong."""
    from napari_mamamia.services.case.data_set import case_rows

    opened = open_at(data_set, columns)
    rows = case_rows(opened)
    if as_csv:
        print_case_csv(rows)
    else:
        print_case_table(rows, opened)
    if any(row.files.problems for row in rows):
        raise typer.Exit(NOT_EVERY_CASE)


app.command()(predicting.predict)
models.models.command("convert")(converting.convert)
models.models.command("wrap")(wrapping.wrap)
app.add_typer(models.models, name="models")
app.command()(scoring.score)
app.command("score-table")(scoring.score_table)
app.command("score-pcr")(scoring.score_pcr)
app.command()(clinical.clinical)
app.command()(replay.replay)
app.command("run-submission")(run_submission)
app.command("check-computer")(check_computer)
app.command("import")(importing.import_)
app.add_typer(pacs.app, name="pacs")
app.command()(exporting.export)
app.command()(exporting.verify)
app.command()(kinetics.kinetics)
app.command()(perfusion.perfusion)
app.command()(registering.register)
app.command()(straightening.straighten)


@app.command()
def view(
    data_set: DataSetArgument,
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Case to open.")] = None,
    blind: Annotated[
        bool,
        typer.Option(
            "--blind",
            help="Hide reference, model, other readers, numbers and clinical data, and record it.",
        ),
    ] = False,
    protocol: Annotated[
        Path | None,
        typer.Option(
            "--protocol",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Annotation protocol (JSON) to read by; it may hide things, too.",
        ),
    ] = None,
) -> None:
    """Open the window on a data set."""
    from napari_mamamia.io.data_set.layout import find_data_set
    from napari_mamamia.io.workspace.protocol import read_protocol

    if find_spec("napari") is None or find_spec("qtpy") is None:
        raise MissingExtraError("napari", "pyqt6")
    layout = find_data_set(data_set)
    # The window starts in the home folder: nothing of the current one may steer it.
    asked = {"MAMAMIA_DATA_SET": str(layout.root.resolve())}
    if case is not None:
        asked["MAMAMIA_CASE"] = layout.case(case).case_id
    if blind:
        asked["MAMAMIA_BLIND"] = "1"
    if protocol is not None:
        read_protocol(protocol)
        asked["MAMAMIA_PROTOCOL"] = str(protocol.resolve())
    command = python_command("napari", "-w", "napari-mamamia", "Cases")
    become(command, child_environment(**asked), Path.home())


def _exit_with_message(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)
