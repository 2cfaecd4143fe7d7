"""Seal (copy), record and score submissions, one team at a time.

Several organisers may run a challenge at the same time; each team is processed by only one of them.
An interrupted run continues with the unfinished attempt.
"""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import (
    CaseError,
    FormatError,
    MamamiaError,
    MissingExtraError,
    is_of_system,
    refusal_text,
)
from napari_mamamia.core.names import count_of
from napari_mamamia.core.program.system import limit_memory
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.challenge.io.challenge_file import (
    RESULTS,
    FrozenFile,
    OpenChallenge,
    read_challenge,
)
from napari_mamamia.features.challenge.io.file_list import LIST_FILE, list_files, write_file_list
from napari_mamamia.features.challenge.io.handed_in import (
    MANIFEST,
    SEALED,
    Contents,
    HandedIn,
    SubmissionKind,
    digest_of,
    find_submissions,
    has_tables,
    inner_folder,
    look_inside,
    read_manifest,
    seal_manifest,
    seal_submission,
    write_manifest,
)
from napari_mamamia.features.challenge.io.ledger import (
    Attempt,
    AttemptOutcome,
    LedgerWriter,
    read_ledger,
)
from napari_mamamia.features.challenge.services.challenge.attempt import (
    Evaluation,
    ProgramSettings,
    evaluate,
    require_inputs,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import said
from napari_mamamia.io.files.one_writer import wait_for_turn
from napari_mamamia.io.files.own_paths import own_folder, place_folder, sweep_below
from napari_mamamia.io.volumes.formats import require_readers
from napari_mamamia.services.batch.child import Child, attempt_in_child
from napari_mamamia.services.batch.work import CaseInputs, CaseWork

_STEPS: Final = 1000
_OVER: Final = (AttemptOutcome.SCORED, AttemptOutcome.REFUSED, AttemptOutcome.STOPPED)
_UNREADABLE: Final = "unreadable"
_TABLE_BYTES: Final = 4 << 30
_TABLE_SECONDS: Final = 600.0
"""Time limit, in s, for reading the tables of one submission (our choice)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TeamOutcome:
    """The outcome for one team in this run.

    Parameters
    ----------
    team
        The team.
    kind
        The kind of submission; "" if it could not be read.
    number
        Number of the attempt; 0 if it does not count.
    outcome, reason
        The outcome and its reason.
    breaches, notes
        Cases that violate the contract, and further messages.
    is_new
        Whether the submission was scored in this run; an unchanged submission is not scored again.
    folder
        Folder of the results; None if there are none.
    """

    team: str
    kind: str
    number: int
    outcome: AttemptOutcome
    reason: str = ""
    breaches: tuple[CaseFailure, ...] = ()
    notes: tuple[str, ...] = ()
    is_new: bool = True
    folder: Path | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether the submission was scored or passed, and no case violates the contract."""
        return self.outcome in (AttemptOutcome.SCORED, AttemptOutcome.PASSED) and not self.breaches


@dataclass(frozen=True, slots=True)
class ChallengeRun:
    """The outcome for each team, and the problems of the ledger."""

    opened: OpenChallenge
    teams: tuple[TeamOutcome, ...]
    problems: tuple[str, ...] = ()

    @property
    def all_ok(self) -> bool:
        """Return whether all requested submissions were scored without a problem."""
        return not self.problems and all(team.is_whole for team in self.teams)


def run_challenge(
    folder: Path, teams: Sequence[str] = (), settings: ProgramSettings | None = None
) -> ChallengeRun:
    """Score the teams' submissions and record them in the ledger.

    Parameters
    ----------
    folder
        The challenge.
    teams
        Teams to score; () for all.
    settings
        How programs are run; None for the defaults.

    Raises
    ------
    CaseError
        If a team in `teams` has no submission, or there is no submission at all.
    FormatError
        If there is no challenge, or references or tables differ from their frozen state.
    MissingExtraError
        If a mask needs a package that is not installed; its attempt is not begun.
    SaveError
        If the ledger cannot be written.
    """
    settings = settings or ProgramSettings()
    opened = read_challenge(folder)
    listed = find_submissions(opened.submissions, tuple(teams))
    if not listed.teams and not listed.problems:
        raise CaseError(
            f"expected submissions in {opened.submissions}, but found none: put each team's "
            "submission there as TEAM/, TEAM.zip or TEAM.csv"
        )
    require_inputs(opened)
    references = (case.reference for case in opened.challenge.cases)
    require_readers(reference.name for reference in references if reference is not None)
    outcomes = [
        TeamOutcome(team, "", 0, AttemptOutcome.REFUSED, reason, is_new=False)
        for team, reason in listed.problems
    ]
    total = len(listed.teams) * _STEPS
    with LedgerWriter(opened.attempts, opened.sha256) as writer:
        for number, handed in enumerate(listed.teams):
            start = number * _STEPS
            with part(start, start + _STEPS - 1, total, f"{handed.team}: "):
                outcomes.append(_take_turn(opened, handed, writer, settings))
    report_progress(1, 1, "Finished")
    ledger = read_ledger(opened.attempts, opened.sha256)
    return ChallengeRun(opened, tuple(outcomes), ledger.problems)


def _take_turn(
    opened: OpenChallenge, handed: HandedIn, writer: LedgerWriter, settings: ProgramSettings
) -> TeamOutcome:
    """Process a team's submission under a lock that excludes other processes."""
    folder = opened.folder / RESULTS / handed.team
    folder.mkdir(parents=True, exist_ok=True)
    with wait_for_turn(folder):
        sweep_below(folder)
        return _take_submission(opened, handed, writer, settings)


def _take_submission(
    opened: OpenChallenge, handed: HandedIn, writer: LedgerWriter, settings: ProgramSettings
) -> TeamOutcome:
    ledger = read_ledger(opened.attempts, opened.sha256)
    try:
        digest = digest_of(handed.path, opened.challenge.limits)
    except MamamiaError as error:
        outcome = AttemptOutcome.FAILED if is_of_system(error) else AttemptOutcome.REFUSED
        return TeamOutcome(handed.team, "", 0, outcome, str(error), is_new=False)
    earlier = ledger.of_team(handed.team)
    last = earlier[-1] if earlier and earlier[-1].digest == digest else None
    if last is not None and _is_over(last, settings):
        return _say_earlier(last, opened.results(handed.team, digest))
    is_open = last is not None and last.outcome is AttemptOutcome.OPEN
    used, most = ledger.count(handed.team), opened.challenge.limits.attempts
    if most and used >= most and not is_open and not settings.is_express:
        text = (
            f"expected at most {count_of(most, 'attempt')}, but all are used: this one was not "
            "scored"
        )
        return TeamOutcome(handed.team, "", 0, AttemptOutcome.REFUSED, text, is_new=False)
    begun = last if is_open else None
    with closing(Child()) as child:
        return _make_attempt(opened, handed, digest, begun, writer, settings, child)


def _is_over(last: Attempt, settings: ProgramSettings) -> bool:
    """Return whether an identical submission has already been evaluated."""
    if settings.is_express:
        return last.outcome in (AttemptOutcome.SCORED, AttemptOutcome.REFUSED)
    return last.outcome in _OVER


def _make_attempt(
    opened: OpenChallenge,
    handed: HandedIn,
    digest: str,
    begun: Attempt | None,
    writer: LedgerWriter,
    settings: ProgramSettings,
    child: Child,
) -> TeamOutcome:
    """Seal and score a submission; `begun` is an unfinished attempt with the same content.

    Tables are first read in the subprocess `child`, which may crash.
    """
    team, folder = handed.team, opened.results(handed.team, digest)
    try:
        kind = _seal_copy(opened, handed, folder, digest, child)
    except MissingExtraError:
        raise
    except Exception as error:  # noqa: BLE001 - one submission ends no run
        is_known = isinstance(error, MamamiaError) and not isinstance(error, FormatError)
        if is_known or is_of_system(error):
            return TeamOutcome(team, "", 0, AttemptOutcome.FAILED, str(error))
        reason = _explain_error(error)
        writer.end(writer.begin(team, digest, _UNREADABLE), AttemptOutcome.REFUSED, reason)
        return TeamOutcome(team, _UNREADABLE, 0, AttemptOutcome.REFUSED, reason)
    event = ""
    if not settings.is_express:
        event = begun.event if begun else writer.begin(team, digest, kind)
    try:
        evaluation = _evaluate_sealed(opened, folder, settings, child)
    except Exception as error:  # noqa: BLE001 - one submission ends no run
        is_known = isinstance(error, MamamiaError) or is_of_system(error)
        outcome = AttemptOutcome.FAILED if is_known else AttemptOutcome.REFUSED
        reason = _explain_error(error)
        if event:
            writer.end(event, outcome, reason)
        return TeamOutcome(team, kind, 0, outcome, reason, folder=folder)
    if settings.is_express:
        return _report_team(team, kind, 0, evaluation, folder)
    # The sealed copy is covered by its manifest.
    digest = write_file_list(folder, list_files(folder, (SEALED, MANIFEST)))
    seals = ((MANIFEST, sha256_of(folder / MANIFEST)), (LIST_FILE, digest))
    files = (*seals, *evaluation.files)
    writer.end(event, evaluation.outcome, evaluation.reason, files)
    ledger = read_ledger(opened.attempts, opened.sha256)
    number = next((attempt.number for attempt in ledger.attempts if attempt.event == event), 0)
    return _report_team(team, kind, number, evaluation, folder)


def _explain_error(error: Exception) -> str:
    if isinstance(error, MamamiaError):
        return str(error)
    if isinstance(error, OSError):
        return refusal_text(error)
    _log.error("a submission could not be read", exc_info=error)
    return (
        f"expected a submission that can be read and scored, but {said(error)} "
        f"({type(error).__name__}): the same files are not tried again; ask the team for a new "
        "submission"
    )


def _seal_copy(
    opened: OpenChallenge, handed: HandedIn, folder: Path, digest: str, child: Child
) -> str:
    """Copy a submission unless the copy already exists, and return its kind.

    If a submission needs a package that is not installed, it is not copied, so that it does not use
    up an attempt.
    """
    if (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        _require_readers(manifest.kind, manifest.files)
        return manifest.kind.value
    limits = opened.challenge.limits
    with own_folder(folder.parent) as temporary:
        sealed = seal_submission(handed.path, temporary / SEALED, limits)
        if sealed.sha256 != digest:
            raise CaseError(
                f"expected {handed.path.name} not to change while it is copied, but it changed: "
                "run again when the team has finished"
            )
        contents = _inspect_sealed(opened, temporary / SEALED, child)
        _require_readers(contents.kind, sealed.files)
        numbers = (limits.case_seconds, limits.memory_bytes)
        write_manifest(seal_manifest(handed.team, sealed, contents, numbers), temporary)
        place_folder(temporary, folder)
    return contents.kind.value


def _require_readers(kind: SubmissionKind, files: Sequence[FrozenFile]) -> None:
    if kind is SubmissionKind.MASKS:
        require_readers(file.name for file in files)


@dataclass(frozen=True, slots=True)
class _Inspection:
    """The content of a submission, or why it is unreadable and whether the team is at fault."""

    contents: Contents | None
    reason: str = ""
    is_of_system: bool = False


def _inspect_sealed(opened: OpenChallenge, sealed: Path, child: Child) -> Contents:
    """Inspect a sealed folder; its tables are read in the subprocess `child` with limited memory.

    Raises
    ------
    FormatError
        If something cannot be read, or takes more memory or time than any valid table.
    """
    if opened.challenge.task is None:
        return Contents(SubmissionKind.ANSWERS, inner_folder(sealed))
    if not has_tables(sealed):
        return look_inside(sealed)
    work = CaseWork("inspect", _inspect, _TABLE_BYTES, _Inspection)
    outcome = attempt_in_child(child, work, CaseInputs("", about=sealed.absolute()), _TABLE_SECONDS)
    inspection = outcome.result or _Inspection(None, outcome.reason)
    if inspection.is_of_system:
        raise CaseError(inspection.reason)
    if inspection.contents is None:
        raise FormatError(inspection.reason)
    return inspection.contents


def _inspect(inputs: CaseInputs, most_bytes: int) -> _Inspection:
    limit_memory(most_bytes)
    try:
        return _Inspection(look_inside(inputs.about))
    except MamamiaError as error:
        return _Inspection(None, str(error), is_of_system(error))


def _evaluate_sealed(
    opened: OpenChallenge, folder: Path, settings: ProgramSettings, child: Child
) -> Evaluation:
    manifest, contents = read_manifest(folder), _inspect_sealed(opened, folder / SEALED, child)
    if manifest.kind is not contents.kind:
        raise CaseError(
            f"expected {manifest.kind.value} in {folder / SEALED}, but found "
            f"{contents.kind.value}: the sealed copy was changed; restore it"
        )
    return evaluate(opened, folder, manifest, contents, settings)


def _report_team(
    team: str, kind: str, number: int, evaluation: Evaluation, folder: Path
) -> TeamOutcome:
    return TeamOutcome(
        team,
        kind,
        number,
        evaluation.outcome,
        evaluation.reason,
        evaluation.breaches,
        evaluation.notes,
        folder=folder,
    )


def _say_earlier(last: Attempt, folder: Path) -> TeamOutcome:
    """Return the outcome recorded earlier for the same submission."""
    return TeamOutcome(
        last.team,
        last.kind,
        last.number,
        last.outcome,
        last.reason or "already scored",
        is_new=False,
        folder=folder,
    )
