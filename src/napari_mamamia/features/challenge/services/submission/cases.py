"""Run a submission on some cases: prepare inputs, run it, check and save outputs."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import CaseError, MamamiaError, ModelError, Remedy, list_remedies
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.program.system import is_root
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance
from napari_mamamia.core.records import CaseFailure, FailureCause
from napari_mamamia.features.challenge.io.challenge_info import challenge_facts
from napari_mamamia.features.challenge.services.submission.table import (
    TABLE,
    Response,
    take_responses,
)
from napari_mamamia.io.data_set.volumes import read_phase_header, write_volume_job
from napari_mamamia.io.files.append_file import opened_to_add
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.segmentation.sandbox.external import Submission
from napari_mamamia.segmentation.sandbox.isolation import Isolation
from napari_mamamia.segmentation.sandbox.limits import Ending, RunLimits, RunOfSubmission
from napari_mamamia.segmentation.sandbox.outputs import MASKS, CheckedMask, take_mask
from napari_mamamia.segmentation.sandbox.run import run_submission_once
from napari_mamamia.segmentation.sandbox.sandbox import Interpreter, Patient
from napari_mamamia.services.case.explained_mask import write_explained
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.predict import SavedPrediction

LOGS = "logs"

_RAISED_LIMITS: Final = {
    Ending.TIME: (Remedy("time_limit", ("SECONDS",)),),
    Ending.MEMORY: (Remedy("memory_limit", ("GB",)),),
}


@dataclass(frozen=True, slots=True)
class SubmissionRun:
    """The settings shared by all cases of a run: the submission, its sandbox and its limits."""

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
    """One start of the program: its cases, their time limit, and whether to save results.

    A trial saves nothing; its cases are run again with all others.
    """

    cases: tuple[CaseFiles, ...]
    seconds: float
    log_name: str
    is_express: bool = False
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The outcome of a case; `saved` and `response` are None if the task does not include them."""

    case_id: str
    saved: SavedPrediction | None = None
    response: Response | None = None
    failure: CaseFailure | None = None
    notes: tuple[str, ...] = ()


def run_on_cases(run: SubmissionRun, part: Part) -> tuple[CaseOutcome, ...]:
    """Run the submission once on some cases and save the outputs that satisfy the contract.

    A run that does not finish gives a failure for each of its cases, even if it wrote files.

    Parameters
    ----------
    run
        The parts of the run that all cases share.
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
    """Write ``predictions.csv``, replacing an older one: patient_id, pcr, score."""
    rows = [(r.case_id, str(r.pcr), repr(r.score)) for r in responses]
    _write_table(out / TABLE, [("patient_id", "pcr", "score"), *rows])


def write_failures(failures: Iterable[CaseFailure], out: Path) -> None:
    """Write ``failures.csv``, replacing an older one: case_id, cause, reason."""
    rows = [(f.case_id, f.cause.value, f.reason) for f in failures]
    _write_table(out / "failures.csv", [("case_id", "cause", "reason"), *rows])


def _write_table(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    text = StringIO()
    write_csv(rows, text)
    write_text_atomically(path, text.getvalue(), overwrite=True)


def _prepare_case(files: CaseFiles, staged: Path) -> tuple[Patient, Grid]:
    """Prepare a case as the contract requires; files of other formats are converted."""
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
    """Check and save the outputs; outputs of an unfinished run are ignored."""
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
    """Create a log file that begins with the submission, its cases and its isolation."""
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
