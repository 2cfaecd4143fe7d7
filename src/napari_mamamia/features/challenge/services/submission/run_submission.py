"""Run a challenge submission on a data set, case by case, in isolation and with limits.

Each case has its own process that sees only this case. The time limit therefore applies to each
case, a crash affects one case, and no case can influence the result of another case. A submission
that needs all cases at once (to normalise over the cohort) is run with ``together``, as in the
challenge; its time limit is the number of cases times the limit of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core import progress
from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.names import count_of, readable_name
from napari_mamamia.core.program.system import is_root
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.challenge.services.submission.cases import (
    CaseOutcome,
    Part,
    SubmissionRun,
    run_on_cases,
    write_failures,
    write_responses,
)
from napari_mamamia.features.challenge.services.submission.settings import (
    SubmissionSettings,
    choose_isolation,
    require_device,
)
from napari_mamamia.features.challenge.services.submission.table import (
    TABLE,
    Response,
    constant_note,
)
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.provenance import sidecar_path
from napari_mamamia.segmentation.sandbox.external import INGESTED, Submission, read_submission
from napari_mamamia.segmentation.sandbox.isolation import Isolation
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.segmentation.sandbox.sandbox import find_interpreter
from napari_mamamia.segmentation.sandbox.watch import can_watch
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.predict.predict import SavedPrediction

_STEPS = 1000


@dataclass(frozen=True, slots=True)
class SubmissionSummary:
    """The result of a run: new, skipped and failed cases.

    `stopped` describes where the express lane stopped and how many cases were not run, "" if all
    cases were run.
    """

    submission: Submission
    isolation: Isolation
    saved: tuple[SavedPrediction, ...]
    responses: tuple[Response, ...]
    skipped: tuple[str, ...]
    failures: tuple[CaseFailure, ...]
    notes: tuple[str, ...]
    stopped: str = ""


def run_submission(
    opened: OpenDataSet,
    folder: Path,
    out: Path,
    settings: SubmissionSettings | None = None,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> SubmissionSummary:
    """Run the submission in `folder` on cases of a data set.

    Writes ``out/pred_segmentations/ID.nii.gz`` with ``ID.json``, ``out/predictions.csv``,
    ``out/failures.csv``, ``out/logs`` and ``out/submission.json``. Only outputs that satisfy the
    contract are written; see `segmentation.submission.outputs`.

    Parameters
    ----------
    opened
        The data set.
    folder
        The submission: a folder with ``model.py``.
    out
        Output folder.
    settings
        Settings of the run; None for the defaults.
    case_ids
        Cases to run; () for all.
    existing
        What to do with other results in `out`.

    Raises
    ------
    ModelError
        If the folder is not a submission, or there is neither isolation nor consent.
    CaseError
        If an id is unknown.
    SaveConflictError
        If `out` holds other results.
    """
    settings = settings or SubmissionSettings()
    report_progress(0, 1, "Inspecting the submission")
    submission = read_submission(folder)
    require_device(submission, settings)
    isolation, reasons = choose_isolation(settings)
    case_files = [opened.data_set.case(case_id) for case_id in case_ids] or list(
        opened.data_set.cases
    )
    own_python = isolation.kind in (IsolationKind.BUBBLEWRAP, IsolationKind.NONE)
    run = SubmissionRun(
        submission,
        isolation,
        find_interpreter(settings.python) if own_python else None,
        settings.task,
        settings.limits,
        out,
        overwrite=existing is not Existing.REFUSE,
        cuda_on_processor=settings.cuda_on_processor,
    )
    parameters = _list_parameters(opened, submission, settings)
    claim_folder(out, "run-submission", parameters, existing, opened.data_set.folders)
    write_json(_describe_run(run, reasons), out / "submission.json", overwrite=True)
    finished_ids, responses = _find_finished(out, case_files, settings.task, existing)
    waiting = [files for files in case_files if files.case_id not in finished_ids]
    outcomes, stopped = _run_parts(run, waiting, settings, responses)
    all_responses = [*responses, *(outcome.response for outcome in outcomes if outcome.response)]
    report_progress(1, 1, "Finished")
    return SubmissionSummary(
        submission,
        isolation,
        tuple(outcome.saved for outcome in outcomes if outcome.saved),
        tuple(all_responses),
        tuple(files.case_id for files in case_files if files.case_id in finished_ids),
        tuple(outcome.failure for outcome in outcomes if outcome.failure),
        _list_notes(run, outcomes, all_responses),
        stopped,
    )


def _run_parts(
    run: SubmissionRun,
    waiting: Sequence[CaseFiles],
    settings: SubmissionSettings,
    responses: Sequence[Response],
) -> tuple[list[CaseOutcome], str]:
    """Run the express lane, then the rest; update the tables after each step."""
    all_outcomes: list[CaseOutcome] = []
    parts = _plan_parts(waiting, settings)
    for number, part in enumerate(parts):
        text = f"express lane, {part.log_name}" if part.is_express else part.log_name
        start = number * _STEPS
        with progress.part(start, start + _STEPS - 1, len(parts) * _STEPS, f"{text}: "):
            outcomes = run_on_cases(run, part)
        broken = [outcome.failure for outcome in outcomes if outcome.failure]
        if part.is_trial and not broken:
            continue
        all_outcomes += outcomes
        new_responses = [outcome.response for outcome in all_outcomes if outcome.response]
        if run.task.wants_responses:
            write_responses((*responses, *new_responses), run.out)
        write_failures((outcome.failure for outcome in all_outcomes if outcome.failure), run.out)
        if part.is_express and broken:
            n_waiting = len(waiting) - len(all_outcomes)
            return all_outcomes, (
                f"stopped in the express lane at {broken[0].case_id}: "
                f"{count_of(n_waiting, 'other case')} not run"
            )
    return all_outcomes, ""


def _plan_parts(waiting: Sequence[CaseFiles], settings: SubmissionSettings) -> list[Part]:
    """Return the starts of the program, the express lane first."""
    limit = settings.limits.seconds
    express = limit if settings.express_seconds is None else settings.express_seconds
    n_first = min(settings.express, len(waiting))
    if not settings.together:
        return [
            Part((files,), express if index < n_first else limit, files.case_id, index < n_first)
            for index, files in enumerate(waiting)
        ]
    parts = []
    if 0 < n_first < len(waiting):
        first = tuple(waiting[:n_first])
        parts.append(Part(first, express * n_first, "express", is_express=True, is_trial=True))
    if waiting:
        parts.append(Part(tuple(waiting), limit * len(waiting), "all_cases"))
    return parts


def _list_parameters(
    opened: OpenDataSet, submission: Submission, settings: SubmissionSettings
) -> tuple[tuple[str, Setting], ...]:
    return (
        ("submission", submission.name),
        ("sha256", submission.sha256),
        ("data_set", opened.data_set.name),
        ("task", settings.task.value),
        ("together", settings.together),
        ("cuda_on_processor", settings.cuda_on_processor),
    )


def _describe_run(run: SubmissionRun, reasons: Sequence[str]) -> dict[str, object]:
    """Return the content of ``submission.json``, without paths of this computer."""
    submission = run.submission
    return {
        "name": submission.name,
        "sha256": submission.sha256,
        "files": submission.files,
        "bytes": submission.n_bytes,
        "licence": submission.licence or None,
        "mounted_at": [
            INGESTED,
            *(f"{INGESTED}/{readable_name(name)}" for name in submission.layouts),
        ],
        "may_run_programs_when_loaded": submission.programs,
        "isolation": run.isolation.text,
        "as_root": is_root(),
        "isolation_that_does_not_work_here": list(reasons),
        "task": run.task.value,
        "cuda_on_processor": run.cuda_on_processor,
        "time_limit_s": run.limits.seconds,
        "memory_limit_bytes": run.limits.memory_bytes,
    }


def _find_finished(
    out: Path, wanted: Sequence[CaseFiles], task: Task, existing: Existing
) -> tuple[set[str], list[Response]]:
    """Return the cases that an earlier run finished, and their responses."""
    if existing is not Existing.RESUME:
        return set(), []
    rows: dict[str, Response] = {}
    if task.wants_responses and (out / TABLE).exists():
        try:
            with listening(None):
                read = read_response_table(out / TABLE)
        except MamamiaError:
            return set(), []
        rows = {r.case_id: Response(r.case_id, int(r.pcr), r.score) for r in read.rows}
    finished_ids = set()
    for files in wanted:
        mask = out / MASKS / f"{files.case_id}.nii.gz"
        has_mask = not task.wants_masks or (mask.exists() and sidecar_path(mask).exists())
        if has_mask and (not task.wants_responses or files.case_id in rows):
            finished_ids.add(files.case_id)
    return finished_ids, [response for case_id, response in rows.items() if case_id in finished_ids]


def _list_notes(
    run: SubmissionRun, outcomes: Sequence[CaseOutcome], found: Sequence[Response]
) -> tuple[str, ...]:
    notes = [note for outcome in outcomes for note in outcome.notes]
    if run.cuda_on_processor:
        notes.append(
            "CUDA requests were run on the processor: the times do not apply to a graphics card"
        )
    if is_root():
        notes.append("it ran as root: a program that escapes the sandbox is root")
    if not run.isolation.is_closed:
        notes.append(
            "not isolated: the submission could read, change and send everything that you can"
        )
        if run.submission.names_room:
            notes.append(
                f"its files name {INGESTED}, which exists only with isolation: it may not find its "
                "own weights"
            )
        if not can_watch():
            notes.append("memory was not limited: this system does not report its use")
    if constant := constant_note(found):
        notes.append(constant)
    return tuple(notes)
