"""Taking what teams handed in: sealed, noted in the ledger, scored; a team at a time.

Any number of organisers may run a challenge at once: each team is one's at a time, and the other
finds its work done. A run that was ended goes on with the attempt that it had begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, FormatError, MamamiaError, is_of_system
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.challenge.challenge_file import RESULTS, OpenChallenge, read_challenge
from napari_mamamia.io.challenge.handed_in import (
    HandedIn,
    digest_of,
    find_submissions,
    seal_submission,
)
from napari_mamamia.io.challenge.ledger import (
    Attempt,
    AttemptOutcome,
    LedgerWriter,
    read_ledger,
)
from napari_mamamia.io.challenge.manifest import (
    MANIFEST,
    SEALED,
    look_inside,
    read_manifest,
    seal_manifest,
    write_manifest,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.one_writer import wait_for_turn
from napari_mamamia.io.files.own_paths import own_folder, place_folder, sweep_below
from napari_mamamia.services.challenge.attempt import (
    Evaluation,
    ProgramSettings,
    evaluate,
)
from napari_mamamia.services.challenge.inputs import require_inputs

_STEPS: Final = 1000
_OVER: Final = (AttemptOutcome.SCORED, AttemptOutcome.REFUSED, AttemptOutcome.STOPPED)
_UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class TeamOutcome:
    """What became of a team in this run.

    Parameters
    ----------
    team
        Who.
    kind
        What was handed in, "" where nobody could look.
    number
        The how manieth attempt it is, 0 where it does not count.
    outcome, reason
        What became of it.
    breaches, notes
        Cases that break the contract, and what else is to be told.
    is_new
        Whether it was scored now; what did not change since it was is not scored again.
    folder
        Of its results; None where there are none.
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
        """Whether it was scored and every case keeps the contract."""
        return self.outcome is AttemptOutcome.SCORED and not self.breaches


@dataclass(frozen=True, slots=True)
class ChallengeRun:
    """What became of each team, and what is wrong with the ledger."""

    opened: OpenChallenge
    teams: tuple[TeamOutcome, ...]
    problems: tuple[str, ...] = ()

    @property
    def all_ok(self) -> bool:
        """Whether everything that was asked for was scored, and nothing is wrong."""
        return not self.problems and all(team.is_whole for team in self.teams)


def run_challenge(
    folder: Path, teams: Sequence[str] = (), settings: ProgramSettings | None = None
) -> ChallengeRun:
    """Score what teams handed in to ``submissions`` and note it in the ledger.

    Raises
    ------
    CaseError
        If a team of `teams` handed nothing in, or there is no submission at all.
    FormatError
        If there is no challenge, or references or tables are not as they were frozen.
    SaveError
        If the ledger cannot be written.
    """
    settings = settings or ProgramSettings()
    opened = read_challenge(folder)
    listed = find_submissions(opened.submissions, tuple(teams))
    if not listed.teams and not listed.problems:
        raise CaseError(
            f"expected submissions in {opened.submissions}, found none: put each team's as TEAM/, "
            "TEAM.zip or TEAM.csv there"
        )
    require_inputs(opened)
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
    """Take one team's submission while nobody else does."""
    place = opened.folder / RESULTS / handed.team
    place.mkdir(parents=True, exist_ok=True)
    with wait_for_turn(place):
        sweep_below(place)
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
        text = f"its {most} attempt(s) are used: this one was not scored"
        return TeamOutcome(handed.team, "", 0, AttemptOutcome.REFUSED, text, is_new=False)
    return _make_attempt(opened, handed, digest, last if is_open else None, writer, settings)


def _is_over(last: Attempt, settings: ProgramSettings) -> bool:
    """Whether the same submission needs no second look."""
    if settings.is_express:
        return last.outcome is AttemptOutcome.REFUSED
    return last.outcome in _OVER


def _make_attempt(
    opened: OpenChallenge,
    handed: HandedIn,
    digest: str,
    begun: Attempt | None,
    writer: LedgerWriter,
    settings: ProgramSettings,
) -> TeamOutcome:
    """Seal and score; `begun` is an attempt at the same submission that did not come to its end."""
    team, folder = handed.team, opened.results(handed.team, digest)
    try:
        kind = _seal_copy(opened, handed, folder, digest)
    except FormatError as error:
        if is_of_system(error):
            return TeamOutcome(team, "", 0, AttemptOutcome.FAILED, str(error))
        event = writer.begin(team, digest, _UNREADABLE)
        writer.end(event, AttemptOutcome.REFUSED, str(error))
        return TeamOutcome(team, _UNREADABLE, 0, AttemptOutcome.REFUSED, str(error))
    except MamamiaError as error:
        return TeamOutcome(team, "", 0, AttemptOutcome.FAILED, str(error))
    if settings.is_express:
        return _report_team(team, kind, 0, _evaluate_sealed(opened, folder, settings), folder)
    event = begun.event if begun else writer.begin(team, digest, kind)
    try:
        evaluation = _evaluate_sealed(opened, folder, settings)
    except MamamiaError as error:
        writer.end(event, AttemptOutcome.FAILED, str(error))
        return TeamOutcome(team, kind, 0, AttemptOutcome.FAILED, str(error), folder=folder)
    files = ((MANIFEST, sha256_of(folder / MANIFEST)), *evaluation.files)
    writer.end(event, evaluation.outcome, evaluation.reason, files)
    ledger = read_ledger(opened.attempts, opened.sha256)
    number = next((one.number for one in ledger.attempts if one.event == event), 0)
    return _report_team(team, kind, number, evaluation, folder)


def _seal_copy(opened: OpenChallenge, handed: HandedIn, folder: Path, digest: str) -> str:
    """Copy what was handed in, unless it is there; return its kind."""
    if (folder / MANIFEST).is_file():
        return read_manifest(folder).kind.value
    limits = opened.challenge.limits
    with own_folder(folder.parent) as temporary:
        sealed = seal_submission(handed.path, temporary / SEALED, limits)
        if sealed.sha256 != digest:
            raise CaseError(
                f"expected {handed.path.name} to stay as it is while it is copied, but it changed: "
                "run again when the team has finished"
            )
        contents = look_inside(temporary / SEALED)
        numbers = (limits.case_seconds, limits.memory_bytes)
        write_manifest(seal_manifest(handed.team, sealed, contents, numbers), temporary)
        place_folder(temporary, folder)
    return contents.kind.value


def _evaluate_sealed(opened: OpenChallenge, folder: Path, settings: ProgramSettings) -> Evaluation:
    manifest, contents = read_manifest(folder), look_inside(folder / SEALED)
    if manifest.kind is not contents.kind:
        raise CaseError(
            f"expected {manifest.kind.value} in {folder / SEALED}, found {contents.kind.value}: "
            "the sealed copy was changed; bring it back"
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
    """Return what became of the same submission before."""
    return TeamOutcome(
        last.team,
        last.kind,
        last.number,
        last.outcome,
        last.reason or "as it was scored before",
        is_new=False,
        folder=folder,
    )
