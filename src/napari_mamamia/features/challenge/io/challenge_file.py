"""The settings of a challenge, ``challenge.json``, and its data paths, ``places.json``.

``challenge.json`` is never changed: the ledger of attempts is bound to its SHA-256. ``places.json``
names the folders of references and images on this computer. A challenge may be moved, because the
hashes in ``challenge.json`` verify the content of these folders.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.plugins import PluginCode
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

CHALLENGE_FILE: Final = "challenge.json"
PLACES_FILE: Final = "places.json"
SUBMISSIONS: Final = "submissions"
ATTEMPTS: Final = "attempts"
RESULTS: Final = "results"
SCHEMA: Final = 1
_REMEDY: Final = (
    "restore challenge.json from a copy of the file that `mamamia challenge init` wrote"
)


@dataclass(frozen=True, slots=True)
class FrozenFile:
    """A file in a folder, identified by its relative path (with ``/``) and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FrozenCase:
    """A case of the challenge, with its reference mask (None if there is none) and its images."""

    case_id: str
    reference: FrozenFile | None = None
    images: tuple[FrozenFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ChallengeLimits:
    """The limits that a submission must respect.

    Parameters
    ----------
    attempts
        Maximum number of scored attempts per team; 0 for no limit.
    case_seconds
        Time limit of a program, in s, for one case.
    express_seconds
        Time limit of a program, in s, for all express-lane cases together (cases run first as a
        trial).
    memory_bytes
        Memory limit of a program, in bytes; 0 for three quarters of the computer's memory.
    submission_bytes
        Maximum size of a submission after unpacking, in bytes.
    submission_files
        Maximum number of files in a submission.
    log_lines
        Maximum number of lines from the end of a program's log that are returned to the team.
    """

    attempts: int = 0
    case_seconds: float = 300.0
    express_seconds: float = 1800.0
    memory_bytes: int = 0
    submission_bytes: int = 20 * 10**9
    submission_files: int = 20_000
    log_lines: int = 50

    def __post_init__(self) -> None:
        for name in ("attempts", "memory_bytes", "log_lines"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"expected the limit {name} to be 0 or above, but found {getattr(self, name)}"
                )
        for name in ("case_seconds", "express_seconds", "submission_bytes", "submission_files"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"expected the limit {name} to be above 0, but found {getattr(self, name)}"
                )


@dataclass(frozen=True, slots=True)
class Challenge:
    """The settings of a challenge.

    Parameters
    ----------
    name
        Title of the challenge.
    task
        What teams submit: masks, responses or both; None if a definition describes the answers.
    profile, profile_version
        The profile that defines how every number is computed, and its version.
    rule
        How a case without a usable answer is scored; "" for the profile's own rule.
    seed, n_resamples
        Seed and number of resamples of every bootstrap.
    metrics
        Names of the case metrics that are ranked.
    cases
        The frozen list of cases.
    express
        Ids of the express-lane cases, which are run first as a trial; the hardest case comes first.
    clinical, columns
        Copy of the clinical table in the challenge's folder, and the file that names its columns.
        If there is no table (None), fairness is undefined.
    takes_tables
        Whether a table of scores that a team computed itself is accepted; it is labelled "as
        given".
    ladder
        Whether a later attempt replaces the displayed score only if it is clearly better.
    limits
        The limits of a submission.
    gate
        Minimum performance for fairness to count in the gated score, which is shown next to the
        ranking score; None for no gated score.
    definitions
        The frozen definition files of its tasks, in the challenge's folder; () in a challenge from
        an earlier version, which uses the built-in definitions.
    models, model_files
        The models that measures use, by role, as ``KIND:ARGUMENT``, and the frozen model files.
    truth
        The frozen truth files that the definition reads, in the folder of references.
    code
        The versions of measures and models that other installed packages provide.
    """

    name: str
    task: Task | None
    profile: str
    profile_version: int
    rule: str
    seed: int
    n_resamples: int
    metrics: tuple[str, ...]
    cases: tuple[FrozenCase, ...]
    express: tuple[str, ...]
    clinical: FrozenFile | None = None
    columns: FrozenFile | None = None
    takes_tables: bool = False
    ladder: bool = False
    limits: ChallengeLimits = field(default_factory=ChallengeLimits)
    gate: float | None = None
    definitions: tuple[FrozenFile, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    model_files: tuple[FrozenFile, ...] = ()
    truth: tuple[FrozenFile, ...] = ()
    code: tuple[PluginCode, ...] = ()
    schema: int = SCHEMA
    software: str = ""
    created: str = ""

    def __post_init__(self) -> None:
        ids = [case.case_id for case in self.cases]
        if not ids:
            raise ValueError("expected at least one case in a challenge, but found none")
        if len(set(ids)) < len(ids):
            raise ValueError("expected each case of a challenge once, but one is listed twice")
        if set(self.express) - set(ids):
            raise ValueError(
                "expected every express-lane case to be in the list of cases, but some are not"
            )

    @property
    def wants_masks(self) -> bool:
        """Return whether teams submit masks."""
        return self.task is not None and self.task.wants_masks

    @property
    def wants_responses(self) -> bool:
        """Return whether teams submit responses."""
        return self.task is not None and self.task.wants_responses

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Return the ids of the frozen cases, in order."""
        return tuple(case.case_id for case in self.cases)


@dataclass(frozen=True, slots=True)
class ChallengePlaces:
    """The folders of the references and of the images; "" if there is none.

    Relative paths start at the challenge's folder.
    """

    reference: str = ""
    images: str = ""


@dataclass(frozen=True, slots=True)
class OpenChallenge:
    """A challenge read from disk: its folder, the SHA-256 of its file, and its data paths."""

    folder: Path
    challenge: Challenge
    sha256: str
    places: ChallengePlaces

    @property
    def reference(self) -> Path | None:
        """Return the folder of the reference masks, or None."""
        return self._find_path(self.places.reference)

    @property
    def images(self) -> Path | None:
        """Return the folder of the data set on which programs are run, or None."""
        return self._find_path(self.places.images)

    @property
    def clinical(self) -> Path | None:
        """Return the path of the clinical table, or None."""
        clinical = self.challenge.clinical
        return self._find_path(clinical.name if clinical else "")

    @property
    def submissions(self) -> Path:
        """Return the folder that receives the teams' submissions."""
        return self.folder / SUBMISSIONS

    @property
    def attempts(self) -> Path:
        """Return the folder of the ledger of attempts."""
        return self.folder / ATTEMPTS

    def results(self, team: str, digest: str) -> Path:
        """Return the results folder for the submission of a team that has this digest."""
        return self.folder / RESULTS / team / digest[:16]

    def _find_path(self, place: str) -> Path | None:
        return self.folder / place if place else None


_CHALLENGE: Final = RecordCodec(Challenge, _REMEDY)
_PLACES: Final = RecordCodec(ChallengePlaces, "correct places.json: it may hold only paths")


@reads("a challenge", "create a challenge there, or choose the folder of a challenge")
def read_challenge(folder: Path) -> OpenChallenge:
    """Read the challenge in a folder.

    Raises
    ------
    FormatError
        If there is no challenge, or its files were changed.
    """
    # The path is absolute because child processes that start elsewhere return paths based on it.
    folder = folder.absolute()
    path = folder / CHALLENGE_FILE
    if not path.is_file():
        raise FormatError(
            f"expected a challenge in {folder}, but found no {CHALLENGE_FILE}: create a challenge "
            "there, or choose the folder of a challenge"
        )
    challenge = _CHALLENGE.record(read_json(path), path)
    if challenge.schema != SCHEMA:
        raise FormatError(
            f"expected a challenge of schema {SCHEMA} in {path}, but found schema "
            f"{challenge.schema}: use the version of this software that wrote it"
        )
    places_path = folder / PLACES_FILE
    places = _PLACES.record(read_json(places_path), places_path)
    return OpenChallenge(folder, challenge, sha256_of(path), places)


def write_challenge(folder: Path, challenge: Challenge, places: ChallengePlaces) -> None:
    """Write ``places.json`` and then ``challenge.json``, which is never overwritten.

    Parameters
    ----------
    folder
        The challenge's folder.
    challenge
        The settings to write.
    places
        The paths of the challenge's data.

    Raises
    ------
    SaveConflictError
        If `folder` already contains a challenge.
    SaveError
        If the system does not allow writing.
    """
    write_json(_PLACES.plain(places), folder / PLACES_FILE, overwrite=True)
    write_json(_CHALLENGE.plain(challenge), folder / CHALLENGE_FILE)


def relative_place(path: Path | None, folder: Path) -> str:
    """Return a path for ``places.json``, relative to `folder` if both are on the same drive."""
    if path is None:
        return ""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # different drives of Windows
        return path.resolve().as_posix()


def find_changes(place: Path | None, files: Mapping[str, FrozenFile]) -> dict[str, str]:
    """Describe each missing, unreadable or changed file in `place`, by key.

    Parameters
    ----------
    place
        The folder of the files; None if there is none.
    files
        The frozen files by key.
    """
    problems = {}
    for key, file in files.items():
        path = None if place is None else place / file.name
        if path is None or not os.path.isfile(path):  # noqa: PTH113 - False for too long a name
            problems[key] = f"{file.name} is gone"
            continue
        try:
            if sha256_of(path) != file.sha256:
                problems[key] = f"{file.name} was changed"
        except FormatError as error:
            problems[key] = str(error)
    return problems
