"""`mamamia run-submission`: run a challenge submission in isolation."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish, run
from napari_mamamia.cli.quantities import GIGABYTES, SECONDS, Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import IsolationChoice, Task
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from napari_mamamia.features.challenge.services.submission.run_submission import (
        SubmissionSettings,
        SubmissionSummary,
    )
    from napari_mamamia.segmentation.sandbox.sandbox import RunLimits


_GIGABYTE = 10**9


_CASES: Final = Quantity("a number of cases", 0, 100_000, "", "give 3, or 0 for none first", True)


@reports_result
def run_submission(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Submission: a folder with model.py.")
    ],
    data_set: options.DataSetArgument,
    out: options.OutOption,
    express: Annotated[
        int,
        typer.Option(
            "--express",
            parser=_CASES,
            help="Number of cases to run first; a failure stops the run.",
        ),
    ] = 3,
    express_limit: Annotated[
        float | None,
        typer.Option(
            "--express-limit",
            metavar="SECONDS",
            parser=SECONDS,
            help="Time limit for each of those.",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", metavar="SECONDS", parser=SECONDS, help="Time limit for a case."
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
    task: Annotated[
        Task, typer.Option("--task", help="What the submission must return.")
    ] = Task.BOTH,
    case: options.CaseOption = None,
    together: Annotated[
        bool, typer.Option("--together", help="Run all cases in one process, as in the challenge.")
    ] = False,
    isolation: options.IsolationOption = IsolationChoice.AUTO,
    consent: options.ConsentOption = False,
    python: options.PythonOption = None,
    image: Annotated[
        str | None, typer.Option("--image", help="Container image, for docker and podman.")
    ] = None,
    cuda_on_processor: options.CudaOnProcessorOption = False,
    as_root: options.AsRootOption = False,
    resume: options.ResumeOption = False,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Run a challenge submission in isolation: OUT/pred_segmentations, OUT/predictions.csv.

    Example: mamamia run-submission SUBMISSION DATASET --task segmentation --out RUN
    """
    from napari_mamamia.features.challenge.services.submission import run_submission as service
    from napari_mamamia.features.challenge.services.submission.run_submission import (
        SubmissionSettings,
    )
    from napari_mamamia.segmentation.sandbox.isolation import CHALLENGE_IMAGE

    settings = SubmissionSettings(
        task=task,
        express=express,
        express_seconds=express_limit,
        limits=_make_limits(time_limit, memory_limit),
        together=together,
        isolation=options.isolation_kind(isolation),
        consent=consent,
        image=image or CHALLENGE_IMAGE,
        python=python,
        as_root=as_root,
        cuda_on_processor=cuda_on_processor,
    )
    existing = options.existing_policy(resume, overwrite)
    opened = open_at(data_set, columns, layout, patient, visit)
    job = partial(service.run_submission, opened, folder, out, settings, case or (), existing)
    _print_submission(run(job), out, settings)


def _make_limits(seconds: float, gigabytes: float | None) -> "RunLimits":
    from napari_mamamia.segmentation.sandbox.sandbox import RunLimits

    try:
        # 0 would be read as the default; the quantity refuses smaller numbers.
        return RunLimits(seconds, 0 if gigabytes is None else int(gigabytes * _GIGABYTE) or -1)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _print_submission(done: "SubmissionSummary", out: Path, settings: "SubmissionSettings") -> None:
    from napari_mamamia.segmentation.sandbox.external import printable

    submission = done.submission
    report_result(
        lambda: {
            "saved": done.saved,
            "skipped": done.skipped,
            "failures": done.failures,
            "stopped": done.stopped,
        }
    )
    size = f"{count_of(submission.files, 'file')}, {submission.n_bytes / 10**6:.1f} MB"
    print(f"submission  {submission.name} ({size})\nsha256      {submission.sha256}")
    print(f"licence     {submission.licence_line}\nisolation   {done.isolation.text}")
    if submission.programs:
        names = printable(", ".join(submission.programs[:5]))
        print(
            f"programs    {count_of(len(submission.programs), 'file')} that may run programs: "
            f"{names}"
        )
    _print_cases(done)
    for note in done.notes:
        print(f"note: {note}")
    if done.skipped:
        print(f"{count_of(len(done.skipped), 'case')} already finished")
    if settings.task.wants_masks:
        print(
            f"{count_of(len(done.saved), 'mask')} checked and saved in {out / 'pred_segmentations'}"
        )
    if settings.task.wants_responses:
        print(
            f"{count_of(len(done.responses), 'response')} checked and saved in "
            f"{out / 'predictions.csv'}"
        )
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
    """Check this computer: hardware, optional packages, isolation, and models with known output."""
