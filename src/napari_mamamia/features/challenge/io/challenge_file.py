"""``challenge.json``: what a challenge is, frozen at its beginning; ``places.json``: where it lies.

The first is never changed: the ledger of attempts is bound to its SHA-256. The second says where
references and images lie on this computer; the hashes of the first prove them, so that a challenge
may move.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import FormatError
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
_REMEDY: Final = "take challenge.json as `mamamia challenge init` wrote it, from a copy"


@dataclass(frozen=True, slots=True)
class FrozenFile:
    """A file by its name below a folder (``/`` between parts) and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FrozenCase:
    """A case of the challenge: its reference mask (None where there is none) and its images."""

    case_id: str
    reference: FrozenFile | None = None
    images: tuple[FrozenFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ChallengeLimits:
    """What a submission may use.

    Parameters
    ----------
    attempts
        Attempts of a team that may be scored; 0 for any number.
    case_seconds
        Time of a program for one case.
    express_seconds
        Time of a program for all cases of the express lane together.
    memory_bytes
        Memory of a program; 0 for three quarters of the computer's.
    submission_bytes
        Size of what is handed in, unpacked.
    submission_files
        Number of files of what is handed in.
    log_lines
        How many of the last lines of a program's log go back to its team.
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
                raise ValueError(f"the limit {name} must be 0 or above, got {getattr(self, name)}")
        for name in ("case_seconds", "express_seconds", "submission_bytes", "submission_files"):
            if not getattr(self, name) > 0:
                raise ValueError(f"the limit {name} must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a challenge is.

    Parameters
    ----------
    name
        Its title.
    task
        What teams hand in: masks, responses or both.
    profile, profile_version
        The definitions of every number.
    rule
        What a case counts that a team did not hand in, or not in a form that can be scored; "" for
        the profile's own rule.
    seed, n_resamples
        Of every resampling.
    metrics
        Names of the numbers of a case that are ranked.
    cases
        The frozen list.
    express
        Ids of the cases of the express lane, the hard one first.
    clinical, columns
        Copy of the clinical table in the challenge's folder, None without one (fairness is then
        undefined), and the file that names its columns.
    takes_tables
        Whether a table of scores that a team computed itself counts; it stands as "as given".
    ladder
        Whether a later attempt replaces the score that is shown only where it is clearly better.
    limits
        What a submission may use.
    """

    name: str
    task: Task
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
    schema: int = SCHEMA
    software: str = ""
    created: str = ""

    def __post_init__(self) -> None:
        ids = [case.case_id for case in self.cases]
        if not ids:
            raise ValueError("a challenge has at least one case")
        if len(set(ids)) < len(ids):
            raise ValueError("each case stands in the list once")
        if set(self.express) - set(ids):
            raise ValueError("the cases of the express lane stand in the list of cases")

    @property
    def case_ids(self) -> tuple[str, ...]:
        """The frozen list of ids, in order."""
        return tuple(case.case_id for case in self.cases)


@dataclass(frozen=True, slots=True)
class ChallengePlaces:
    """Folders of the references and of the images; "" for none.

    Relative ones start at the challenge's folder.
    """

    reference: str = ""
    images: str = ""


@dataclass(frozen=True, slots=True)
class OpenChallenge:
    """A challenge that was read: its folder, the SHA-256 of its file, and its places as paths."""

    folder: Path
    challenge: Challenge
    sha256: str
    places: ChallengePlaces

    @property
    def reference(self) -> Path | None:
        """Folder of the reference masks."""
        return self._find_path(self.places.reference)

    @property
    def images(self) -> Path | None:
        """The data set that programs run on."""
        return self._find_path(self.places.images)

    @property
    def clinical(self) -> Path | None:
        """The clinical table."""
        clinical = self.challenge.clinical
        return self._find_path(clinical.name if clinical else "")

    @property
    def submissions(self) -> Path:
        """Folder that teams' submissions are put into."""
        return self.folder / SUBMISSIONS

    @property
    def attempts(self) -> Path:
        """Folder of the ledger."""
        return self.folder / ATTEMPTS

    def results(self, team: str, digest: str) -> Path:
        """Folder of what a team's submission with this digest gave."""
        return self.folder / RESULTS / team / digest[:16]

    def _find_path(self, place: str) -> Path | None:
        return self.folder / place if place else None


_CHALLENGE: Final = RecordCodec(Challenge, _REMEDY)
_PLACES: Final = RecordCodec(ChallengePlaces, "correct it, it holds paths alone")


@reads("a challenge", "begin one with `mamamia challenge init`, or choose its folder")
def read_challenge(folder: Path) -> OpenChallenge:
    """Return the challenge in `folder`.

    Raises
    ------
    FormatError
        If there is none, or its files are not as they were written.
    """
    # In full: a child process, which starts elsewhere, answers with full paths of sealed files.
    folder = folder.absolute()
    path = folder / CHALLENGE_FILE
    if not path.is_file():
        raise FormatError(
            f"expected a challenge in {folder}, but it has no {CHALLENGE_FILE}: begin one with "
            "`mamamia challenge init`, or choose its folder"
        )
    challenge = _CHALLENGE.record(read_json(path), path)
    if challenge.schema != SCHEMA:
        raise FormatError(
            f"expected a challenge of form {SCHEMA} in {path}, got form {challenge.schema}: use "
            "the version of this software that made it"
        )
    places_path = folder / PLACES_FILE
    places = _PLACES.record(read_json(places_path), places_path)
    return OpenChallenge(folder, challenge, sha256_of(path), places)


def write_challenge(folder: Path, challenge: Challenge, places: ChallengePlaces) -> None:
    """Write both files; ``challenge.json`` comes last, and is never replaced.

    Raises
    ------
    SaveConflictError
        If `folder` holds a challenge.
    SaveError
        If the system refuses to write.
    """
    write_json(_PLACES.plain(places), folder / PLACES_FILE, overwrite=True)
    write_json(_CHALLENGE.plain(challenge), folder / CHALLENGE_FILE)


def relative_place(path: Path | None, folder: Path) -> str:
    """Return a path as ``places.json`` has it: from `folder` where both are on one disk."""
    if path is None:
        return ""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive of Windows
        return path.resolve().as_posix()


def find_changes(place: Path | None, files: Mapping[str, FrozenFile]) -> dict[str, str]:
    """Return by key what is wrong with files below `place`: gone, unreadable, or changed."""
    problems = {}
    for key, file in files.items():
        path = None if place is None else place / file.name
        if path is None or not path.is_file():
            problems[key] = f"{file.name} is gone"
            continue
        try:
            if sha256_of(path) != file.sha256:
                problems[key] = f"{file.name} was changed"
        except FormatError as error:
            problems[key] = str(error)
    return problems
