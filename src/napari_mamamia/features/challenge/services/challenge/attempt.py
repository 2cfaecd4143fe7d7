"""Score a sealed submission: check inputs, list contract violations, read its answers.

A team receives a table of problems and the last lines of its program's log. Neither reveals the
cases: ids are replaced by numbers, and text that looks like a secret is removed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.choices import Task, UnusableRule
from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, is_of_system
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import (
    FrozenFile,
    OpenChallenge,
    find_changes,
)
from napari_mamamia.features.challenge.io.definition import MISSING_TEXTS, AnswerKind
from napari_mamamia.features.challenge.io.handed_in import (
    Contents,
    Manifest,
    SubmissionKind,
    find_handed_masks,
)
from napari_mamamia.features.challenge.io.ledger import AttemptOutcome
from napari_mamamia.features.challenge.services.challenge.answers import (
    AnswerValues,
    find_changed_code,
    find_definition,
    has_mask_measures,
    measure_answers,
    read_definitions,
    write_values,
)
from napari_mamamia.features.challenge.services.challenge.mask_answers import measure_masks
from napari_mamamia.features.challenge.services.submission.run_submission import (
    LOGS,
    TABLE,
    SubmissionSettings,
    run_submission,
)
from napari_mamamia.io.data_set.mask_files import MaskListing
from napari_mamamia.io.data_set.score_files import (
    ResponseRow,
    read_response_table,
    read_score_table,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.segmentation.sandbox.external import printable
from napari_mamamia.segmentation.sandbox.outputs import MASKS
from napari_mamamia.segmentation.sandbox.sandbox import RunLimits
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import STORE_NAME, Place
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.output import SCORE_TABLE, write_scores
from napari_mamamia.services.score.pcr import score_pcr
from napari_mamamia.services.score.report import Scored
from napari_mamamia.services.score.score import FoundPairs, Pairs, cohort_numbers, score_pairs
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.table import score_of_row

_READINGS: Final = 2
_UNREAD: Final = (ScoreStatus.UNREADABLE, ScoreStatus.REFERENCE_UNREADABLE)
_UNSCORED: Final = (ScoreStatus.WORKER_LOST, ScoreStatus.TIME_LIMIT)
FOR_TEAM: Final = "for_team"
LOG_TAIL: Final = "log_tail.txt"
CONTRACT: Final = "contract.csv"
_REMOVED: Final = "[removed]"
_LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class HandedResponses:
    """The response for each frozen case, or why nothing is scored; and all violations."""

    rows: tuple[ResponseRow, ...] = ()
    problem: str = ""
    failures: tuple[CaseFailure, ...] = ()


def pair_masks(
    opened: OpenChallenge,
    handed: MaskListing,
    case_ids: Sequence[str],
    unknown: tuple[str, ...] = (),
) -> FoundPairs:
    """Pair each case's reference with its submitted mask, or with None if there is none.

    Parameters
    ----------
    opened
        The challenge.
    handed
        The submitted masks.
    case_ids
        The cases.
    unknown
        Names of masks of unknown cases, for messages.
    """
    references = {case.case_id: case.reference for case in opened.challenge.cases}
    root = opened.reference
    paths: dict[str, Path | None] = {}
    for case_id in case_ids:
        reference = references[case_id]
        paths[case_id] = root / reference.name if root is not None and reference else None
    return pair_files(paths, handed, unknown)


def pair_files(
    references: Mapping[str, Path | None], handed: MaskListing, unknown: tuple[str, ...] = ()
) -> FoundPairs:
    """Pair each case's reference with its submitted mask, or with None if there is none.

    Parameters
    ----------
    references
        The reference of each case.
    handed, unknown
        As in `pair_masks`.
    """
    pairs: Pairs = {
        case_id: (path, handed.masks.get(case_id)) for case_id, path in references.items()
    }
    reasons = (
        (ScoreStatus.UNREADABLE, handed.others),
        (ScoreStatus.SEVERAL_FILES, handed.problems),
    )
    problems = {
        case_id: (status, reason)
        for status, of_cases in reasons
        for case_id, reason in of_cases.items()
        if case_id in pairs
    }
    return FoundPairs(pairs, problems, unknown)


def score_readable(score: Callable[[], Scored], pairs: Pairs) -> ModelScores:
    """Call `score`; if a case has no result, call it a second time.

    A mask that cannot be decoded is the team's fault, and its status says so. A mask that the
    system currently cannot read is not the team's fault and causes an error.

    Raises
    ------
    FormatError
        If the system cannot read a file; otherwise the case would get the worst score although the
        submission is not at fault.
    CaseError
        If the process that scores a case ends without an answer or exceeds its time, which may also
        depend on memory, other load and the cluster.
    """
    for _ in range(_READINGS):
        model = score().model
        unread = [row.case_id for row in model.rows if row.status in _UNREAD]
        for path in filter(None, chain.from_iterable(map(pairs.__getitem__, unread))):
            sha256_of(path)
        unscored = [row for row in model.rows if row.status in _UNSCORED]
        if not unread and not unscored:
            break
    if unscored:
        first = unscored[0]
        raise CaseError(
            f"expected an answer for each of {len(model.rows)} cases, but {len(unscored)} have "
            f"none ({first.case_id}: {first.reason}): the submission was not scored; free memory, "
            "use fewer processes or a longer time limit, and run the submission again"
        )
    return model


def read_responses(opened: OpenChallenge, table: Path) -> HandedResponses:
    """Read a table of responses, which must have exactly one row for every frozen case.

    Otherwise nothing is scored, because under any rule for missing responses a team could gain by
    leaving out cases of some groups.

    Parameters
    ----------
    opened
        The challenge.
    table
        The submitted table.
    """
    case_ids = opened.challenge.case_ids
    try:
        read = read_response_table(table)
    except MamamiaError as error:
        if is_of_system(error):
            raise
        return HandedResponses((), str(error), (CaseFailure("-", str(error)),))
    by_key = {case_key(row.case_id): row for row in read.rows}
    bad = {case_key(failure.case_id): failure.reason for failure in read.failures}
    broken = tuple(
        CaseFailure(case_id, bad.get(case_key(case_id), "it has no row"))
        for case_id in case_ids
        if case_key(case_id) not in by_key or case_key(case_id) in bad
    )
    if not broken:
        rows = (replace(by_key[case_key(case_id)], case_id=case_id) for case_id in case_ids)
        return HandedResponses(tuple(rows))
    return HandedResponses(
        (),
        f"expected exactly one response for each of {len(case_ids)} cases, but found none or "
        f"several for {len(broken)}: responses are scored only if they are complete",
        broken,
    )


def response_cells(rows: Sequence[ResponseRow]) -> list[tuple[str, str, str | float]]:
    """Return the responses as rows of ``responses.csv``."""
    return [
        (row.case_id, str(int(row.pcr)), row.score if row.score == row.score else "")
        for row in rows
    ]


def read_given_scores(opened: OpenChallenge, table: Path) -> tuple[CaseScore, ...]:
    """Read the scores of all frozen cases from a table; a case without a row is missing.

    Parameters
    ----------
    opened
        The challenge.
    table
        The submitted table.

    Raises
    ------
    FormatError
        If the table cannot be read.
    """
    read, profile = read_score_table(table), opened.challenge.profile
    by_key = {case_key(row.case_id): row for row in read.rows}
    bad = {case_key(failure.case_id): failure.reason for failure in read.failures}
    rows = []
    for case_id in opened.challenge.case_ids:
        row = by_key.get(case_key(case_id))
        reason = bad.get(case_key(case_id), "" if row else "the table has no row for this case")
        if row is None or reason:
            status = ScoreStatus.PREDICTION_MISSING
            rows.append(CaseScore(case_id, status, profile=profile, reason=reason))
        else:
            rows.append(replace(score_of_row(row, profile), case_id=case_id))
    return tuple(rows)


def find_changed_inputs(opened: OpenChallenge, *, with_images: bool = False) -> tuple[str, ...]:
    """Describe changes to the frozen references, the clinical table and, on request, images.

    Parameters
    ----------
    opened
        The challenge.
    with_images
        Whether to also compare the images.
    """
    challenge = opened.challenge
    references = {
        case.case_id: case.reference for case in challenge.cases if case.reference is not None
    }
    changes = [
        f"reference of {case_id}: {problem}"
        for case_id, problem in find_changes(opened.reference, references).items()
    ]
    tables: dict[str, FrozenFile] = {
        name: file
        for name, file in (("table", challenge.clinical), ("columns", challenge.columns))
        if file is not None
    }
    changes += [
        f"clinical {name}: {problem}"
        for name, problem in find_changes(opened.folder, tables).items()
    ]
    own = {file.name: file for file in (*challenge.definitions, *challenge.model_files)}
    changes += [f"definition: {text}" for text in find_changes(opened.folder, own).values()]
    changes += [f"code: {text}" for text in find_changed_code(challenge.code)]
    truth = {file.name: file for file in challenge.truth}
    changes += [f"truth: {text}" for text in find_changes(opened.reference, truth).values()]
    profile = profile_named(challenge.profile)
    if profile.version != challenge.profile_version:
        changes.append(
            f"the profile {profile.name} has version {profile.version} here, but the challenge "
            f"uses {challenge.profile_version}: use the software that created it "
            f"({challenge.software})"
        )
    if with_images:
        for case in challenge.cases:
            images = {file.name: file for file in case.images}
            changes += [
                f"image of {case.case_id}: {problem}"
                for problem in find_changes(opened.images, images).values()
            ]
    return tuple(changes)


def require_inputs(opened: OpenChallenge, *, with_images: bool = False) -> None:
    """Raise `FormatError` if an input has changed since it was frozen.

    Parameters
    ----------
    opened
        The challenge.
    with_images
        Whether to also compare the images.
    """
    changes = find_changed_inputs(opened, with_images=with_images)
    if changes:
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        raise FormatError(
            f"expected all inputs to be as recorded in {opened.folder / 'challenge.json'}, but "
            f"{'; '.join(changes[:3])}{more}: restore the files or packages, or correct "
            "places.json; nothing was scored"
        )


def score_settings(opened: OpenChallenge) -> ScoreSettings:
    """Return the settings with which the challenge's masks are scored."""
    challenge = opened.challenge
    return ScoreSettings(
        profile=profile_named(challenge.profile),
        clinical=opened.clinical,
        n_resamples=challenge.n_resamples,
        seed=challenge.seed,
        unusable=UnusableRule(challenge.rule) if challenge.rule else None,
    )


_SECRETS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"-----BEGIN [^-]*PRIVATE KEY-----.*",
        r"\b[a-z][a-z0-9+.\-]*://\S*",
        r"\b(?:bearer|basic)\s+\S+",
        r"[\w\-]*(?:passw(?:or)?d|secret|token|api[_\-]?key|credential|auth)[\w\-]*"
        r"[\"']?\s*[=:]\s*(?:\"[^\"]*\"|'[^']*'|\S+)",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\b(?:gh[pousr]|glpat|hf|sk|xox[a-z])[_\-][A-Za-z0-9_\-]{10,}",
        r"\b[\w.+\-]+@[\w\-]+(?:\.[\w\-]+)+\b",
        r"(?<![\w/])(?:/(?:home|root|mnt|media|data|Users|srv|tmp|var)/|[A-Z]:\\)\S*",
        r"\b(?=[A-Za-z0-9+/_\-]*[0-9])[A-Za-z0-9+/_\-]{32,}={0,2}",
    )
)
"""Patterns of secrets, which are removed from a log.

They match keys, URLs, request headers, assignments to names such as "password", tokens of known
services, e-mail addresses, file paths, and any long word with digits.
"""


def tail_of_log(text: str, case_ids: Iterable[str], n_lines: int) -> str:
    r"""Return the last lines of a log, with case ids and secrets removed.

    Parameters
    ----------
    text
        The log.
    case_ids
        Case ids to replace.
    n_lines
        Number of lines to return.

    Examples
    --------
    >>> tail_of_log("start\nDUKE_001 failed: password=hunter2\n", ("DUKE_001",), 1)
    '[case] failed: [removed]\n'
    """
    lines = [printable(line, 10**6) for line in text.splitlines()]
    ids = sorted(filter(None, case_ids), key=len, reverse=True)
    case = re.compile("|".join(map(re.escape, ids)), re.IGNORECASE) if ids else None
    tail = []
    # The whole log is searched first, so that a key of several lines is also removed from the last
    # lines.
    for line in _without_key_blocks(lines)[-n_lines:] if n_lines else ():
        clean = line if case is None else case.sub("[case]", line)
        for secret in _SECRETS:
            clean = secret.sub(_REMOVED, clean)
        tail.append(clean[:_LONGEST])
    return "".join(f"{line}\n" for line in tail)


def write_letter(
    folder: Path,
    log: str,
    breaches: Sequence[CaseFailure],
    case_ids: Sequence[str],
    n_lines: int,
) -> None:
    """Write ``for_team/contract.csv`` and, for a program, ``for_team/log_tail.txt``.

    Parameters
    ----------
    folder
        The attempt's folder.
    log
        The program's log; "" if the submission is not a program.
    breaches
        The cases that violate the contract, with reasons.
    case_ids
        All cases, whose ids are replaced; () if the team submitted files with these ids.
    n_lines
        Number of lines of the log.

    Raises
    ------
    SaveError
        If the system does not allow writing.
    """
    target = folder / FOR_TEAM
    numbers = {breach.case_id: number for number, breach in enumerate(breaches, start=1)}
    rows = [
        (
            f"case {numbers[breach.case_id]}" if case_ids else breach.case_id,
            tail_of_log(breach.reason, case_ids, 1).strip(),
        )
        for breach in breaches
    ]
    write_contract(target / CONTRACT, rows)
    if tail := tail_of_log(log, case_ids, n_lines):
        write_text_atomically(target / LOG_TAIL, tail, overwrite=True)


def write_contract(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    """Write the table of contract violations (case and problem), replacing an older one."""
    text = StringIO()
    write_csv([("case", "problem"), *rows], text)
    write_text_atomically(path, text.getvalue(), overwrite=True)


def _without_key_blocks(lines: Sequence[str]) -> list[str]:
    clean = []
    is_inside = False
    for line in lines:
        is_inside = is_inside or ("-----BEGIN" in line and "KEY" in line)
        clean.append(_REMOVED if is_inside else line)
        if "-----END" in line:
            is_inside = False
    return clean


SCORES: Final = "scores"
RESPONSES: Final = "responses"
RESPONSE_TABLE: Final = "responses.csv"
RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """Settings for running programs and scoring cases here; see `SubmissionSettings`."""

    program: SubmissionSettings = field(default_factory=SubmissionSettings)
    place: Place | None = None
    is_express: bool = False
    """Whether to run only the express-lane cases, which are checked but not scored."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of evaluating a submission.

    `breaches` are the cases that violate the contract, with reasons; `notes` are further messages;
    `files` maps the names of result files in the attempt's folder to their SHA-256.
    """

    outcome: AttemptOutcome
    reason: str = ""
    breaches: tuple[CaseFailure, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Answers:
    """The masks and responses to score, whatever the kind of submission."""

    masks: Path | None = None
    responses: Path | None = None
    failures: tuple[CaseFailure, ...] = ()
    notes: tuple[str, ...] = ()


def evaluate(
    opened: OpenChallenge,
    folder: Path,
    manifest: Manifest,
    contents: Contents,
    settings: ProgramSettings,
) -> Evaluation:
    """Score a sealed submission; write ``scores``, ``responses``, ``run`` and ``for_team``.

    An interrupted run of the same submission is continued.

    Parameters
    ----------
    opened
        The challenge.
    folder
        The attempt's folder, with the sealed copy.
    manifest, contents
        The manifest and the content of the copy.
    settings
        How programs are run and cases scored.

    Raises
    ------
    MamamiaError
        For a failure that is not the team's fault, such as a full disk or changed references.
    """
    if contents.kind is SubmissionKind.ANSWERS:
        return _evaluate_defined(opened, folder, manifest, contents.folder, settings)
    refusal = _find_refusal(opened, contents)
    if refusal:
        write_letter(folder, "", [CaseFailure("-", refusal)], (), 0)
        return Evaluation(AttemptOutcome.REFUSED, refusal)
    if contents.kind is SubmissionKind.SCORES and contents.scores is not None:
        return _evaluate_given(opened, folder, contents.scores)
    notes = (contents.problem,) if opened.challenge.wants_responses else ()
    answers = _Answers(contents.folder, contents.responses, notes=tuple(filter(None, notes)))
    if contents.kind is SubmissionKind.RESPONSES:
        answers = _Answers(None, contents.responses)
    if contents.kind is SubmissionKind.PROGRAM:
        outcome = _run_program(opened, folder, contents, settings)
        if isinstance(outcome, Evaluation):
            return outcome
        answers = outcome
    return _score_answers(opened, folder, manifest, answers, settings)


def _evaluate_defined(
    opened: OpenChallenge,
    folder: Path,
    manifest: Manifest,
    answers: Path,
    settings: ProgramSettings,
) -> Evaluation:
    """Measure the answers by the definition, and by its honest definition if it names one."""
    files: list[str] = []
    failures: tuple[CaseFailure, ...] = ()
    for definition in read_definitions(opened):
        try:
            values = measure_answers(opened, definition, answers)
        except FormatError as error:
            if is_of_system(error):
                raise
            return Evaluation(AttemptOutcome.REFUSED, str(error), (CaseFailure("-", str(error)),))
        failures = tuple(CaseFailure(case_id, reason) for case_id, reason in values.unusable)
        if not settings.is_express:
            files.append(write_values(values, folder))
    notes = manifest.left_out
    if settings.is_express:
        return _report_express(folder, failures, len(opened.challenge.cases), notes)
    write_letter(folder, "", failures, (), 0)
    sums = _sum_results(folder, files)
    return Evaluation(AttemptOutcome.SCORED, "", failures, notes, sums)


def _find_refusal(opened: OpenChallenge, contents: Contents) -> str:
    """Return why a submission cannot be scored in this challenge, or "" if it can."""
    challenge, kind = opened.challenge, contents.kind
    if kind is SubmissionKind.NOTHING:
        return contents.problem
    takes_scores = challenge.takes_tables and challenge.wants_masks and not has_own_measures(opened)
    if kind is SubmissionKind.SCORES and not takes_scores:
        return (
            "expected masks, a program or responses, but found a table of scores that the team "
            "computed itself: this challenge computes scores from masks"
        )
    if kind is SubmissionKind.PROGRAM and opened.images is None:
        return (
            "expected masks or a table, but found a program: this challenge was created "
            "without images"
        )
    if kind is SubmissionKind.MASKS and opened.reference is None:
        return (
            "expected a table, but found masks: this challenge was created without reference masks"
        )
    has_masks = kind in (SubmissionKind.MASKS, SubmissionKind.SCORES, SubmissionKind.PROGRAM)
    has_responses = contents.responses is not None or kind is SubmissionKind.PROGRAM
    is_masks = has_masks and challenge.wants_masks
    if not is_masks and not (has_responses and challenge.wants_responses):
        return (
            f"expected an answer to the task {challenge.task}, but found only {kind.value}: submit "
            "an answer to that task"
        )
    return ""


def _run_program(
    opened: OpenChallenge, folder: Path, contents: Contents, settings: ProgramSettings
) -> _Answers | Evaluation:
    """Run a program in the sandbox, first on the express-lane cases as a trial."""
    challenge, limits = opened.challenge, opened.challenge.limits
    if opened.images is None:
        raise FormatError(
            f"expected images in {opened.folder}, but found none: create the challenge with images"
        )
    require_inputs(opened, with_images=True)
    express = challenge.express
    rest = [case_id for case_id in challenge.case_ids if case_id not in express]
    # A case with a time limit in the full run has the same limit in the express lane.
    express_seconds = min(limits.case_seconds, limits.express_seconds / max(1, len(express)))
    run_settings = replace(
        settings.program,
        task=challenge.task or Task.SEGMENTATION,
        express=len(express),
        express_seconds=express_seconds,
        limits=RunLimits(limits.case_seconds, limits.memory_bytes),
        image=contents.image or settings.program.image,
    )
    case_ids = express if settings.is_express else (*express, *rest)
    data_set = open_data_set(opened.images)
    ran = run_submission(
        data_set, contents.folder, folder / RUN, run_settings, case_ids, Existing.RESUME
    )
    log = _read_logs(folder / RUN / LOGS, [failure.case_id for failure in ran.failures] or case_ids)
    write_letter(folder, log, ran.failures, challenge.case_ids, limits.log_lines)
    if ran.stopped or settings.is_express:
        outcome, reason = AttemptOutcome.STOPPED, ran.stopped
        if not ran.stopped:
            outcome, reason = _judge_express(len(ran.failures), len(case_ids))
        files = _sum_results(folder, [RUN + "/failures.csv"])
        return Evaluation(outcome, reason, ran.failures, ran.notes, files)
    responses = folder / RUN / TABLE if challenge.wants_responses else None
    masks = folder / RUN / MASKS if challenge.wants_masks else None
    return _Answers(masks, responses, ran.failures, ran.notes)


def _judge_express(n_broken: int, n_cases: int) -> tuple[AttemptOutcome, str]:
    outcome = AttemptOutcome.STOPPED if n_broken else AttemptOutcome.PASSED
    return outcome, f"the output for {n_cases - n_broken} of {n_cases} cases is valid"


def _report_express(
    folder: Path, breaches: Sequence[CaseFailure], n_cases: int, notes: Sequence[str]
) -> Evaluation:
    """Write the feedback of an express test of files that a team submitted, and return it."""
    write_letter(folder, "", breaches, (), 0)
    outcome, reason = _judge_express(len(breaches), n_cases)
    return Evaluation(outcome, reason, tuple(breaches), tuple(notes))


def _read_logs(folder: Path, case_ids: Iterable[str]) -> str:
    """Return the last lines of the logs of several cases, one log after the other."""
    texts = []
    for path in [folder / f"{case_id}.txt" for case_id in case_ids] + [folder / "all_cases.txt"]:
        if path.is_file() and not path.is_symlink():
            texts.append(path.read_bytes()[-(1 << 20) :].decode("utf-8", errors="replace"))
    return "\n".join(texts)


def _score_answers(
    opened: OpenChallenge,
    folder: Path,
    manifest: Manifest,
    answers: _Answers,
    settings: ProgramSettings,
) -> Evaluation:
    challenge = opened.challenge
    breaches = list(answers.failures)
    notes = [*answers.notes, *manifest.left_out]
    results: list[str] = []
    if answers.masks is not None and has_own_measures(opened):
        values, unknown = measure_team_masks(opened, answers.masks, settings, folder / SCORES)
        reasons = {failure.case_id: failure.reason for failure in breaches}
        breaches = [CaseFailure(case_id, reasons.get(case_id, reason))
                    for case_id, reason in values.unusable]  # fmt: skip
        notes += _note_masks(opened, manifest, unknown)
        if settings.is_express:
            return _report_express(folder, breaches, len(challenge.express), notes)
        results.append(write_values(values, folder))
    elif answers.masks is not None and challenge.wants_masks:
        model, unknown = _score_masks(opened, folder, manifest.team, answers.masks, settings)
        reasons = {failure.case_id: failure.reason for failure in breaches}
        breaches = [
            CaseFailure(
                failure.case_id, reasons.get(failure.case_id, failure.reason), failure.cause
            )
            for failure in model.failures
        ]
        notes += _note_masks(opened, manifest, unknown)
        results += [f"{SCORES}/{SCORE_TABLE}"]
        if settings.is_express:
            return _report_express(folder, breaches, len(model.rows), notes)
    problem = ""
    if answers.responses is not None and challenge.wants_responses:
        problem, broken = _score_responses(opened, folder, answers.responses)
        breaches += broken
        results += [] if problem else [f"{RESPONSES}/{RESPONSE_TABLE}"]
    if manifest.kind is not SubmissionKind.PROGRAM:
        write_letter(folder, "", breaches, (), 0)
    if problem and not results:
        return Evaluation(AttemptOutcome.REFUSED, problem, tuple(breaches), tuple(notes))
    files = _sum_results(folder, results)
    return Evaluation(AttemptOutcome.SCORED, problem, tuple(breaches), tuple(notes), files)


def _explain_missing(opened: OpenChallenge, model: ModelScores) -> ModelScores:
    """Add to the scores how missing masks count, in a challenge with its own measures."""
    definition = find_definition(opened, AnswerKind.MASKS)
    if definition.is_by_profile:
        return model
    text = f"there is no mask; such cases {MISSING_TEXTS[definition.missing]}"
    rows = tuple(
        replace(row, reason=text) if row.status is ScoreStatus.PREDICTION_MISSING else row
        for row in model.rows
    )
    reasons = {row.case_id: row.reason for row in rows}
    failures = tuple(
        replace(failure, reason=reasons[failure.case_id]) for failure in model.failures
    )
    return replace(model, rows=rows, failures=failures)


def _score_masks(
    opened: OpenChallenge, folder: Path, team: str, masks: Path, settings: ProgramSettings
) -> tuple[ModelScores, tuple[str, ...]]:
    """Score every frozen case, even without a mask, and write the results to ``scores``."""
    challenge, scores_folder = opened.challenge, folder / SCORES
    case_ids = challenge.express if settings.is_express else challenge.case_ids
    handed, unknown = find_handed_masks(masks, challenge.case_ids)
    pairs = pair_masks(opened, handed, case_ids, unknown)
    rules = score_settings(opened)
    if settings.is_express:
        plain = replace(rules, clinical=None, n_resamples=0)
        model = score_readable(partial(score_pairs, team, pairs, plain, None), pairs.pairs)
        return _explain_missing(opened, model), ()
    cohort, store = read_table(opened.clinical, rules.columns), scores_folder / STORE_NAME
    more: dict[str, Any] = {"place": settings.place, "store": store, "existing": Existing.RESUME}
    score = partial(score_pairs, team, pairs, rules, cohort, **more)
    model = _explain_missing(opened, score_readable(score, pairs.pairs))
    write_scores(model, scores_folder, overwrite=True)
    return model, unknown


def has_own_measures(opened: OpenChallenge) -> bool:
    """Return whether the challenge measures masks by label or by measures from other packages."""
    return any(has_mask_measures(definition) for definition in read_definitions(opened))


def measure_team_masks(
    opened: OpenChallenge, masks: Path, settings: ProgramSettings, scratch: Path | None = None
) -> tuple[AnswerValues, tuple[str, ...]]:
    """Measure masks with the definition's own measures; also return names of unknown masks.

    Parameters
    ----------
    opened
        The challenge.
    masks
        The folder of the masks.
    settings
        Where cases are measured, and whether only the express-lane cases are measured.
    scratch
        Folder in which finished cases are stored, so that an interrupted run can be continued.
    """
    challenge = opened.challenge
    case_ids = challenge.express if settings.is_express else challenge.case_ids
    handed, unknown = find_handed_masks(masks, challenge.case_ids)
    store = None if scratch is None or settings.is_express else scratch / STORE_NAME
    definition = find_definition(opened, AnswerKind.MASKS)
    pairs, profile = pair_masks(opened, handed, case_ids), profile_named(challenge.profile)
    return measure_masks(definition, pairs, profile, settings.place, store), unknown


def _note_masks(opened: OpenChallenge, manifest: Manifest, unknown: Sequence[str]) -> list[str]:
    """Return notes on masks of unknown cases and on byte-for-byte copies of references."""
    others = [f"masks of unknown cases, ignored: {len(unknown)}"] if unknown else []
    sums = {case.reference.sha256 for case in opened.challenge.cases if case.reference is not None}
    n_same = sum(file.sha256 in sums for file in manifest.files)
    copies = [f"masks identical to the references, byte for byte: {n_same}"] if n_same else []
    return [*others, *copies]


def _score_responses(
    opened: OpenChallenge, folder: Path, table: Path
) -> tuple[str, tuple[CaseFailure, ...]]:
    """Score complete responses; return why they cannot be scored, and contract violations."""
    answer = read_responses(opened, table)
    if answer.problem:
        return answer.problem, answer.failures
    if opened.clinical is None:
        raise FormatError(
            "expected a clinical table, but found none: create the challenge with a clinical table"
        )
    target = folder / RESPONSES
    own_table = target / RESPONSE_TABLE
    cells = response_cells(answer.rows)
    heads = ("patient_id", "pcr", "score")
    write_flat_table(heads, cells, len(cells), own_table, name="responses", overwrite=True)
    rules = score_settings(opened)
    score_pcr(own_table, opened.clinical, target, rules, existing=Existing.OVERWRITE)
    return "", ()


def _evaluate_given(opened: OpenChallenge, folder: Path, table: Path) -> Evaluation:
    """Record scores that the team computed itself; a case without a score is missing."""
    rules = score_settings(opened)
    try:
        rows = read_given_scores(opened, table)
    except MamamiaError as error:
        if is_of_system(error):
            raise
        return Evaluation(AttemptOutcome.REFUSED, str(error), (CaseFailure("-", str(error)),))
    failures = tuple(
        CaseFailure(row.case_id, row.reason) for row in rows if row.status is not ScoreStatus.OK
    )
    cohort = read_table(opened.clinical, rules.columns)
    model = cohort_numbers("given", rows, failures, len(rows), rules, cohort)
    write_scores(model, folder / SCORES, overwrite=True)
    write_letter(folder, "", failures, (), 0)
    note = "scores as the team submitted them, not verified"
    files = _sum_results(folder, [f"{SCORES}/{SCORE_TABLE}"])
    return Evaluation(AttemptOutcome.SCORED, "", failures, (note,), files)


def _sum_results(folder: Path, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, sha256_of(folder / name)) for name in names if (folder / name).is_file())
