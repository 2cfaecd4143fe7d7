"""Run a challenge submission on a data set, case by case, in isolation and with limits.

Each case has its own process that sees only this case. The time limit therefore applies to each
case, a crash affects one case, and no case can influence the result of another case. A submission
that needs all cases at once (for example to normalise over the cohort) is run with ``together``, as
in the challenge. Its time limit is the limit for one case times the number of cases.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Final

from napari_mamamia.core import progress
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.errors import CaseError, MamamiaError, ModelError, Remedy, list_remedies
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.names import count_of, readable_name
from napari_mamamia.core.program.system import is_root
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, Setting
from napari_mamamia.core.records import CaseFailure, FailureCause
from napari_mamamia.features.challenge.io.handed_in import challenge_facts
from napari_mamamia.io.data_set.score_files import read_response_table
from napari_mamamia.io.data_set.volumes import read_phase_header, write_volume_job
from napari_mamamia.io.files.append_file import opened_to_add
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.provenance import sidecar_path
from napari_mamamia.segmentation.sandbox.external import (
    INGESTED,
    Submission,
    printable,
    read_submission,
    require_plain_file,
)
from napari_mamamia.segmentation.sandbox.isolation import (
    CHALLENGE_IMAGE,
    Isolation,
    find_isolation,
    has_graphics_card,
    require_no_root,
)
from napari_mamamia.segmentation.sandbox.outputs import MASKS, CheckedMask, take_mask
from napari_mamamia.segmentation.sandbox.run import run_submission_once
from napari_mamamia.segmentation.sandbox.sandbox import (
    Ending,
    Interpreter,
    Patient,
    RunLimits,
    RunOfSubmission,
    find_interpreter,
)
from napari_mamamia.segmentation.sandbox.watch import can_watch
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.explained_mask import write_explained
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.predict import SavedPrediction

TABLE: Final = "predictions.csv"

_COLUMNS: Final = ("patient_id", "pcr", "score")
_TRUTH: Final[Mapping[str, int]] = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}
_TABLE_BYTES: Final = 10 * 2**20
_SHOWN: Final = 5
LOGS = "logs"

_RAISED_LIMITS: Final = {
    Ending.TIME: (Remedy("time_limit", ("SECONDS",)),),
    Ending.MEMORY: (Remedy("memory_limit", ("GB",)),),
}
_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Response:
    """A predicted response: `pcr` 0 or 1, and `score`, the probability of pCR."""

    case_id: str
    pcr: int
    score: float


@reads("the table of a submission", "inspect it", ModelError)
def take_responses(
    output: Path, case_ids: Iterable[str]
) -> tuple[tuple[Response, ...], tuple[str, ...]]:
    """Read the predicted responses in ``predictions.csv`` in order, and return notes on them.

    Parameters
    ----------
    output
        The submission's output folder.
    case_ids
        The cases of the run.

    Raises
    ------
    ModelError
        If the file is missing or too large, lacks a column (patient_id, pcr, score), has a row for
        an unknown case, two rows for one case, a pcr other than 0 and 1, or a score outside 0 to 1;
        or if a case has no row.
    """
    path = output / TABLE
    require_plain_file(path, _TABLE_BYTES)
    ids = list(case_ids)
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as stream:
        rows = list(_read_rows(csv.reader(stream)))
    responses: dict[str, Response] = {}
    for number, row in rows:
        response = _read_response(number, row)
        if response.case_id not in ids:
            raise _bad_row(number, "the patient_id of one of its input cases", response.case_id)
        if response.case_id in responses:
            raise _bad_row(number, "each patient once", f"{response.case_id} again")
        responses[response.case_id] = response
    missing = [case_id for case_id in ids if case_id not in responses]
    if missing:
        raise ModelError(
            f"expected a row in {TABLE} for each of {count_of(len(ids), 'case')}, but found none "
            f"for {', '.join(missing[:_SHOWN])}: the submission must predict every case"
        )
    return tuple(responses.values()), tuple(_list_response_notes(responses.values()))


def constant_note(responses: Iterable[Response]) -> str:
    """Return a note if several cases all have the same predicted class, otherwise ""."""
    values = [response.pcr for response in responses]
    if len(values) < 2 or len(set(values)) != 1:
        return ""
    return (
        f"all {len(values)} predicted responses are {values[0]}: the challenge rejects constant "
        "predictions"
    )


def _list_response_notes(responses: Iterable[Response]) -> Iterator[str]:
    for response in responses:
        if (response.score >= 0.5) != bool(response.pcr) and response.score != 0.5:
            yield (
                f"{response.case_id}: pcr is {response.pcr} but its score is "
                f"{response.score:.3g}; the two are scored separately"
            )


def _read_rows(table: Iterable[list[str]]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        header: list[str] = []
        for number, cells in enumerate(table, start=1):
            if number == 1:
                header = [cell.strip() for cell in cells]
                missing = [name for name in _COLUMNS if name not in header]
                if missing:
                    raise ModelError(
                        f"expected the columns {', '.join(_COLUMNS)} in {TABLE}, but found "
                        f"{printable(', '.join(header), 200)}: return them from "
                        "predict_classification"
                    )
            elif cells:
                yield number, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise ModelError(
            f"expected {TABLE} to be a table, but {error}: inspect the file"
        ) from error


def _read_response(number: int, row: Mapping[str, str]) -> Response:
    pcr = row.get("pcr", "").strip()
    if pcr not in _TRUTH:
        raise _bad_row(number, "a pcr of 0 or 1", repr(pcr))
    try:
        score = float(row.get("score", ""))
    except ValueError:
        score = math.nan
    if not 0 <= score <= 1:
        raise _bad_row(number, "a score from 0 to 1", repr(row.get("score", "")))
    return Response(row.get("patient_id", ""), _TRUTH[pcr], score)


def _bad_row(number: int, expected: str, came: str) -> ModelError:
    return ModelError(
        f"expected {expected} in row {number} of {TABLE}, but found {printable(came, 100)}: "
        "correct the submission's predict_classification"
    )


@dataclass(frozen=True, slots=True)
class SubmissionRun:
    """The settings that all cases of a run share: the submission, its sandbox and its limits."""

    submission: Submission
    isolation: Isolation
    python: Interpreter | None
    task: Task
    limits: RunLimits
    out: Path
    overwrite: bool
    cuda_on_processor: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One start of the program: its cases, their time limit, and whether results are saved.

    A trial saves no results; its cases are run again together with all others.
    """

    cases: tuple[CaseFiles, ...]
    seconds: float
    log_name: str
    is_express: bool = False
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case; `saved` or `response` is None if the task does not include it."""

    case_id: str
    saved: SavedPrediction | None = None
    response: Response | None = None
    failure: CaseFailure | None = None
    notes: tuple[str, ...] = ()


def run_on_cases(run: SubmissionRun, part: Part) -> tuple[CaseOutcome, ...]:
    """Run the submission once on some cases and save the outputs that satisfy the contract.

    If a run does not finish, each of its cases is a failure, even if files were written.

    Parameters
    ----------
    run
        The settings that all cases of the run share.
    part
        The cases.
    """
    with own_folder(run.out.resolve()) as work:
        ready: list[tuple[CaseFiles, Patient, Grid]] = []
        outcomes = []
        for files in part.cases:
            try:
                patient, grid = _prepare_case(files, work / "staged")
                ready.append((files, patient, grid))
            except MamamiaError as error:
                outcomes.append(_make_failure(files.case_id, error))
        if not ready:
            return tuple(outcomes)
        log = _log_file(run, part.log_name, [files.case_id for files, _, _ in ready])
        limits = replace(run.limits, seconds=part.seconds)
        sandbox = work / "room"
        sandbox.mkdir()
        patients = [patient for _, patient, _ in ready]
        ended = run_submission_once(
            run.submission,
            patients,
            run.task,
            run.isolation,
            run.python,
            limits,
            sandbox,
            log,
            cuda_on_processor=run.cuda_on_processor,
        )
        _close_log(log, ended)
        outcomes += _collect_outcomes(run, part, ready, ended, sandbox / "output")
    return tuple(outcomes)


def write_responses(responses: Iterable[Response], out: Path) -> None:
    """Write ``predictions.csv`` (patient_id, pcr, score), replacing an older file."""
    rows = [(r.case_id, str(r.pcr), repr(r.score)) for r in responses]
    _write_table(out / TABLE, [("patient_id", "pcr", "score"), *rows])


def write_failures(failures: Iterable[CaseFailure], out: Path) -> None:
    """Write ``failures.csv`` (case_id, cause, reason), replacing an older file."""
    rows = [(f.case_id, f.cause.value, f.reason) for f in failures]
    _write_table(out / "failures.csv", [("case_id", "cause", "reason"), *rows])


def _write_table(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    text = StringIO()
    write_csv(rows, text)
    write_text_atomically(path, text.getvalue(), overwrite=True)


def _prepare_case(files: CaseFiles, staged: Path) -> tuple[Patient, Grid]:
    """Prepare a case's files as the contract requires; other image formats are converted."""
    if files.problems:
        raise CaseError(f"{files.case_id} cannot be opened: {'; '.join(files.problems)}")
    report_progress(0, 1, "Reading headers")
    headers = [read_phase_header(source) for source in files.phases]
    if not headers:
        raise CaseError(f"{files.case_id} has no phases: add {files.case_id}_0000.nii.gz")
    grid = headers[0].grid
    for index, header in enumerate(headers):
        name = f"phase {index} of case {files.case_id}"
        require_same_grid(header.grid, grid, name, "phase 0")
    info = challenge_facts(files.info, files.case_id) if files.info else ""
    paths = [source.files[0] for source in files.phases if len(source.files) == 1]
    plain = all(path.name.lower().endswith(".nii.gz") for path in paths)
    if plain and len(paths) == len(headers) and all(h.n_volumes == 1 for h in headers):
        return Patient(files.case_id, tuple(paths), info), grid
    case = load_case(files)
    targets = []
    for index, volume in enumerate(case.signal):
        report_progress(index, len(case.signal), "Converting the phases")
        targets.append(staged / f"{files.case_id}_{index:04d}.nii.gz")
        write_volume_job(volume, case.grid, targets[-1])
    return Patient(files.case_id, tuple(targets), info), case.grid


def _collect_outcomes(
    run: SubmissionRun,
    part: Part,
    ready: Sequence[tuple[CaseFiles, Patient, Grid]],
    ended: RunOfSubmission,
    output: Path,
) -> list[CaseOutcome]:
    """Check and save the program's outputs; outputs of an unfinished run are ignored."""
    ids = [files.case_id for files, _, _ in ready]
    if ended.ending is not Ending.FINISHED:
        cause = FailureCause.TIME_LIMIT if ended.ending is Ending.TIME else FailureCause.ERROR
        reason = f"{ended.reason} ({LOGS}/{part.log_name}.txt)"
        remedies = _RAISED_LIMITS.get(ended.ending, ())
        return [
            CaseOutcome(case_id, failure=CaseFailure(case_id, reason, cause, remedies))
            for case_id in ids
        ]
    responses: dict[str, Response] = {}
    notes: tuple[str, ...] = ()
    if run.task.wants_responses:
        try:
            all_responses, notes = take_responses(output, ids)
            responses = {response.case_id: response for response in all_responses}
        except ModelError as error:
            return [_make_failure(case_id, error) for case_id in ids]
    outcomes = []
    for files, _, grid in ready:
        case_notes = tuple(note for note in notes if note.startswith(f"{files.case_id}: "))
        try:
            saved = None
            if run.task.wants_masks:
                report_progress(0, 1, "Checking the mask")
                checked = take_mask(output, files.case_id, grid)
                if not part.is_trial:
                    saved = _save_mask(run, files, checked, ended, len(ready))
            outcomes.append(
                CaseOutcome(files.case_id, saved, responses.get(files.case_id), notes=case_notes)
            )
        except MamamiaError as error:
            outcomes.append(_make_failure(files.case_id, error))
    return outcomes


def _save_mask(
    run: SubmissionRun,
    files: CaseFiles,
    checked: CheckedMask,
    ended: RunOfSubmission,
    n_cases: int,
) -> SavedPrediction:
    report_progress(0, 1, "Saving")
    target = run.out / MASKS / f"{files.case_id}.nii.gz"
    inputs = []
    for file in dict.fromkeys(file for phase in files.phases for file in phase.files):
        report_progress(0, 1, "Checksums of the input")
        inputs.append(InputFile(file.name, sha256_of(file)))
    provenance = Provenance(
        case_id=files.case_id,
        maker=Maker.MODEL,
        name=run.submission.name,
        inputs=tuple(inputs),
        parameters=(
            ("submission_sha256", run.submission.sha256),
            ("licence", run.submission.licence_line),
            ("isolation", run.isolation.text),
            ("as_root", is_root()),
            ("cuda_on_processor", run.cuda_on_processor),
            ("network", "none" if run.isolation.is_closed else "not restricted"),
            ("task", run.task.value),
            ("cases_in_one_run", n_cases),
            ("time_limit_s", run.limits.seconds),
            ("memory_limit_bytes", run.limits.memory_bytes),
        ),
        seconds=ended.seconds,
        note=f"challenge submission, {run.isolation.text}",
        peak_memory_bytes=ended.peak_bytes,
    )
    mask = Mask(checked.mask.grid, checked.mask.array, provenance)
    labels = LabelMap.of(mask.array, mask.grid)
    write_explained(labels, provenance, target, overwrite=run.overwrite)
    return SavedPrediction(files.case_id, target, mask.volume_mm3, ended.seconds, checked.notes)


def _make_failure(case_id: str, error: MamamiaError) -> CaseOutcome:
    failure = CaseFailure(case_id, str(error), remedies=list_remedies(error))
    return CaseOutcome(case_id, failure=failure)


def _log_file(run: SubmissionRun, name: str, case_ids: Sequence[str]) -> Path:
    """Create a log file that begins with the submission, its cases and the isolation."""
    path = run.out / LOGS / f"{name}.txt"
    submission = run.submission
    text = (
        f"submission {submission.name}, sha256 {submission.sha256}\n"
        f"licence: {submission.licence_line}\n{run.isolation.text}\n"
        f"cases: {', '.join(case_ids)}\n--- output of the submission ---\n"
    )
    write_text_atomically(path, text, overwrite=True)
    return path


def _close_log(log: Path, ended: RunOfSubmission) -> None:
    dropped = f"{ended.dropped_bytes} further bytes of output were dropped\n"
    peak = "" if ended.peak_bytes is None else f", at most {ended.peak_bytes / 10**6:.0f} MB"
    text = (
        f"\n--- end ---\n{dropped if ended.dropped_bytes else ''}"
        f"{ended.ending.value} after {ended.seconds:.1f} s{peak}\n{ended.reason}\n"
    )
    with suppress(OSError), opened_to_add(log) as file:
        file.write(text.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class SubmissionSettings:
    """Settings for running a submission.

    Parameters
    ----------
    task
        The task of the submission: masks, responses or both.
    express
        Number of cases that are run first, before all others; a failure in one of them stops the
        run.
    express_seconds
        Time limit for each of these cases, in s; None for the same limit as for all other cases.
    limits
        Limits for one case.
    together
        Whether all cases are run in one process, as in the challenge.
    isolation
        The kind of isolation; None chooses the best available kind, and NONE requires `consent`.
    consent
        Whether the user agrees to a run without isolation if none is available.
    image
        Container image, for isolation with docker or podman.
    python
        The Python interpreter that has the submission's packages; None for the current one.
    as_root
        Whether the root user may run the submission.
    cuda_on_processor
        Whether code that requests the CUDA device is run on the CPU.
    """

    task: Task = Task.BOTH
    express: int = 3
    express_seconds: float | None = None
    limits: RunLimits = field(default_factory=RunLimits)
    together: bool = False
    isolation: IsolationKind | None = None
    consent: bool = False
    image: str = CHALLENGE_IMAGE
    python: Path | None = None
    as_root: bool = False
    cuda_on_processor: bool = False


def require_device(submission: Submission, settings: SubmissionSettings) -> None:
    """Raise `ModelError` if a submission requests CUDA by name and there is no GPU."""
    if submission.asks_for_cuda and not settings.cuda_on_processor and not has_graphics_card():
        raise ModelError(
            f"{submission.name} requests CUDA by name ({submission.asks_for_cuda}), but this "
            "computer has no NVIDIA graphics card: run it on a computer that has one, or on the "
            "processor, which is slow",
            remedies=(Remedy("cuda_on_processor"),),
        )


def choose_isolation(settings: SubmissionSettings) -> tuple[Isolation, tuple[str, ...]]:
    """Return the kind of isolation to use, and why better kinds are not available.

    Raises
    ------
    ModelError
        If there is neither isolation nor consent, the requested isolation does not work, or the
        user is root and root is not allowed.
    """
    require_no_root(as_root=settings.as_root)
    chosen_kind = settings.isolation
    no_sandbox = Isolation(IsolationKind.NONE)
    if chosen_kind is IsolationKind.NONE and settings.consent:
        return no_sandbox, ()
    kinds = tuple(IsolationKind)[:-1] if chosen_kind is None else (chosen_kind,)
    tried: tuple[str, ...] = ()
    for kind in kinds:
        check = find_isolation((kind,), settings.image)
        if check.usable:
            return check.usable[0], tried
        tried += check.reasons
    if chosen_kind is None and settings.consent:
        return no_sandbox, tried
    reasons = "; ".join(tried) or "running without isolation was requested"
    raise ModelError(
        f"expected a sandbox for the submission, an untrusted program, but found none ({reasons}): "
        "install bubblewrap, or agree that it can read, change and send everything that you can",
        remedies=(Remedy("consent_no_isolation"),),
    )


@dataclass(frozen=True, slots=True)
class SubmissionSummary:
    """The result of a run: new, skipped and failed cases.

    If a failure among the first (express) cases stopped the run, `stopped` says where, and how many
    cases were not run; otherwise it is "".
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
    """Run a submission on cases of a data set.

    The run writes ``out/pred_segmentations/ID.nii.gz`` with ``ID.json``, ``out/predictions.csv``,
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
        If `out` contains other results.
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
    """Run the express-lane cases as a trial, then the rest; update the tables after each step."""
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
    """Return the starts of the program: first a trial of the express-lane cases."""
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
    """Return the content of ``submission.json``, which contains no paths of this computer."""
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
    """Return the cases that an earlier run has finished, and their responses."""
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
