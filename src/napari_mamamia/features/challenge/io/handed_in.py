"""List, hash and seal (copy) the files of submissions; read their manifests and inputs.

A submission is an untrusted folder, zip archive or table. Links are not followed, because a link
may lead to the references. Names in a zip archive cannot leave the folder, and the unpacked bytes
are counted during unpacking.
"""

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader, FileIO
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Final

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.names import name_some, readable_name
from napari_mamamia.core.program.system import open_own
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.challenge.io.challenge_file import ChallengeLimits, FrozenFile
from napari_mamamia.io.data_set.mask_files import MaskListing, holds_masks, list_masks
from napari_mamamia.io.data_set.score_files import read_response_table, read_score_table
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import list_names, natural_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.files.zip_files import find_surplus, open_zip
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.volumes.formats import MASK_SUFFIXES
from napari_mamamia.io.workspace.workspace import file_name

_BLOCK: Final = 1 << 20
_ZIP: Final = ".zip"
_TABLES: Final = (".csv", ".xlsx", ".ods")
_MASK_ENDS: Final = (*MASK_SUFFIXES, ".raw", ".zraw", ".img")
_NOISE: Final = frozenset({"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"})
_DEEPEST: Final = 20
_ENCRYPTED: Final = 1
_MOST_RATIO: Final = 100
_FREE_BYTES: Final = 16 << 20
_MASK_RATIO: Final = 200
_FREE_MASK_BYTES: Final = 2 << 30
"""Unpacked size of masks, in bytes, up to which any compression ratio is allowed (our choice).

Tables and programs shrink by a factor of 5 to 30, but a mask of zeros by a factor of 1000. The
voxels of a mask are read only after its header was compared with the file size.
"""
MANIFEST: Final = "submission.json"
SEALED: Final = "sealed"
MASK_FOLDERS: Final = ("pred_segmentations", "masks")
_MODEL: Final = "model.py"
_ASKED: Final = "mamamia_submission.json"
_PINNED: Final = "@sha256:"
_LESION: Final = "breast_coordinates"
_BOX: Final = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
_IMAGING: Final = (
    "bilateral",
    "dataset",
    "site",
    "scanner_manufacturer",
    "scanner_model",
    "field_strength",
    "echo_time",
    "repetition_time",
)
"""Keys of ``imaging_data`` that a submission receives. Source: official sample submission."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A team's original submission, which is a folder, a zip archive or a table."""

    team: str
    path: Path


@dataclass(frozen=True, slots=True)
class SealedFiles:
    """A sealed copy: its sorted files, their digest, and files that were left out, with reasons."""

    files: tuple[FrozenFile, ...]
    sha256: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamList:
    """The teams in a folder by name, and entries that are not valid submissions, with reasons."""

    teams: tuple[HandedIn, ...]
    problems: tuple[tuple[str, str], ...] = ()


@reads("the folder of submissions", "check the path and that you may read it")
def find_submissions(folder: Path, names: tuple[str, ...] = ()) -> TeamList:
    """Return the submissions in a folder: ``TEAM/``, ``TEAM.zip`` or ``TEAM.csv`` (.xlsx, .ods).

    If two entries have the same team name (ignoring letter case, Unicode normalisation and the
    suffix), both are left out.

    Parameters
    ----------
    names
        The teams to return; () for all.

    Raises
    ------
    CaseError
        If a name in `names` is not a valid folder name, or has no submission.
    """
    selected = {case_key(file_name(name, "the name of a team")) for name in names}
    by_key: dict[str, list[HandedIn]] = {}
    problems: list[tuple[str, str]] = []
    for path in _list_entries(folder):
        stem = path.name if path.is_dir() and not path.is_symlink() else path.stem
        key = case_key(readable_name(stem))
        if selected and key not in selected:
            continue
        try:
            by_key.setdefault(key, []).append(_name_team(stem, path))
        except CaseError as error:
            problems.append((readable_name(stem), str(error)))
    teams = []
    for same in by_key.values():
        if len(same) == 1:
            teams.append(same[0])
            continue
        both = " and ".join(
            name_some([submission.path.name for submission in same]).rsplit(", ", 1)
        )
        text = f"expected one submission per team, but found {both}: keep or rename one"
        problems += dict.fromkeys((submission.team, text) for submission in same)
    there = {case_key(team.team) for team in teams} | {case_key(name) for name, _ in problems}
    missing = [name for name in names if case_key(file_name(name)) not in there]
    if missing:
        raise CaseError(
            f"expected a submission from {name_some(missing)} in {folder}, but found none: put "
            "TEAM/, TEAM.zip or TEAM.csv there"
        )
    return TeamList(tuple(teams), tuple(problems))


def _list_entries(folder: Path) -> list[Path]:
    names = sorted(list_names(folder), key=natural_key) if folder.is_dir() else []
    paths = [folder / name for name in names if name not in _NOISE]
    return [
        path
        for path in paths
        if path.is_dir() or path.is_symlink() or path.suffix.lower() in (_ZIP, *_TABLES)
    ]


def _name_team(stem: str, path: Path) -> HandedIn:
    team = file_name(stem, "the name of a team")
    if path.is_symlink():
        raise CaseError(
            f"expected a submission, but {path.name} is a link: put the submission itself there"
        )
    return HandedIn(team, path)


@reads("a submission", "ask the team for a clean copy")
def digest_of(path: Path, limits: ChallengeLimits) -> str:
    """Return the SHA-256 that identifies a submission.

    For a zip archive or a table, it is the SHA-256 of the file; for a folder, the SHA-256 of the
    list of names and checksums.

    Parameters
    ----------
    path
        A folder, a zip archive or a table.
    limits
        Limits of the size and the number of files.

    Raises
    ------
    FormatError
        If a file cannot be read, or a limit is exceeded.
    """
    if path.is_dir():
        return _sum_files(_list_folder(path, limits)[0], path)
    with _open_handed(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@reads("a submission", "ask the team for a clean copy")
def seal_submission(path: Path, target: Path, limits: ChallengeLimits) -> SealedFiles:
    """Copy a submission to a new folder; a zip archive is unpacked.

    Parameters
    ----------
    path
        A folder, a zip archive or a table.
    target
        The new folder.
    limits
        Limits of the size and the number of files.

    Raises
    ------
    FormatError
        If a file cannot be read, a limit is exceeded, or a zip archive contains a name outside the
        folder, a link, a repeated name or an encrypted file.
    """
    target.mkdir(parents=True)
    budget = _Budget(path, limits)
    if path.is_dir():
        names, left_out = _list_folder(path, limits)
        for number, name in enumerate(names):
            report_progress(number, len(names), f"Copying {name}")
            with _open_handed(path / name) as source:
                budget.copy(source, target / name, name)
    elif path.suffix.lower() == _ZIP:
        left_out = _unpack_zip(path, target, budget)
    else:
        left_out = ()
        with _open_handed(path) as source:
            budget.copy(source, target / path.name, path.name)
    digest = budget.digest if path.is_dir() else digest_of(path, limits)
    return SealedFiles(tuple(budget.files), digest, left_out)


def find_tables(folder: Path) -> tuple[Path, ...]:
    """Return the tables directly in a folder, sorted by name."""
    paths = (folder / name for name in sorted(list_names(folder)))
    return tuple(path for path in paths if path.suffix.lower() in _TABLES and path.is_file())


def has_tables(folder: Path) -> bool:
    """Return whether a folder or any of its subfolders contains a table."""
    return any(path.suffix.lower() in _TABLES for path in folder.rglob("*"))


def inner_folder(folder: Path, names: tuple[str, ...] = ()) -> Path:
    """Return the folder that has the content: the given one, or its only non-empty subfolder.

    A subfolder named in `names` is always entered.
    """
    for _ in range(_DEEPEST):
        entries = [name for name in list_names(folder) if name not in _NOISE]
        named = [name for name in entries if name in names and (folder / name).is_dir()]
        if not named and len(entries) == 1 and (folder / entries[0]).is_dir():
            named = entries
        if not named:
            break
        folder = folder / named[0]
    return folder


def find_handed_masks(
    folder: Path, case_ids: tuple[str, ...]
) -> tuple[MaskListing, tuple[str, ...]]:
    """Return the masks of the given cases, and the names of masks of unknown cases.

    Parameters
    ----------
    folder
        The folder with the content.
    case_ids
        The cases of the challenge.
    """
    listing = list_masks(folder, case_ids)
    keys = {case_key(case_id) for case_id in case_ids}
    unknown = [
        path.relative_to(folder).as_posix()
        for case_id, path in listing.masks.items()
        if case_key(case_id) not in keys
    ]
    return listing, tuple(unknown)


class _Budget:
    """A copier that checks the number and total size of files against the limits."""

    def __init__(self, path: Path, limits: ChallengeLimits) -> None:
        self._path, self._left = path, limits.submission_bytes
        self.limits = limits
        self.files: list[FrozenFile] = []

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the list of file names and checksums."""
        return _sum_lines((file.name, file.sha256) for file in self.files)

    def copy(self, source: IO[bytes], target: Path, name: str) -> None:
        """Copy one file to a new file, and record its checksum."""
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        handle = open_own(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(handle, "wb") as sink:
            while block := source.read(_BLOCK):
                report_progress(0, 1, f"Copying {target.name}")
                self._left -= len(block)
                if self._left < 0:
                    raise _over_limit(self._path, self.limits)
                digest.update(block)
                sink.write(block)
        self.files.append(FrozenFile(name, digest.hexdigest()))


def _open_handed(path: Path) -> BufferedReader:
    """Open a regular file without following a link that may have replaced it in the meantime."""
    handle = open_own(path, os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FormatError(
            f"expected a regular file at {path}, but found something else: submit a copy of it"
        )
    return BufferedReader(FileIO(handle))


def _list_folder(folder: Path, limits: ChallengeLimits) -> tuple[list[str], tuple[str, ...]]:
    """Return the sorted names of regular files in a folder, and the other entries with reasons."""
    names: list[str] = []
    left_out: list[str] = []
    n_bytes = 0
    for where, folders, files in os.walk(folder, onerror=_raise_error):
        here = Path(where)
        depth = len(here.relative_to(folder).parts)
        inner = sorted(name for name in folders if not _is_noise(name))
        links = [name for name in inner if (here / name).is_symlink()]
        folders[:] = [name for name in inner if name not in links] if depth < _DEEPEST else []
        for name in sorted([*links, *(name for name in files if not _is_noise(name))]):
            path = here / name
            readable = readable_name(path.relative_to(folder).as_posix())
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                left_out.append(f"{readable} is a link or not a regular file")
            elif name != readable_name(name):
                left_out.append(f"{readable} has a name that is not UTF-8")
            else:
                names.append(readable)
                n_bytes += status.st_size
        if len(names) > limits.submission_files or n_bytes > limits.submission_bytes:
            raise _over_limit(folder, limits)
    return sorted(names), tuple(left_out)


def _raise_error(error: OSError) -> None:
    raise error


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name in _NOISE


def _over_limit(path: Path, limits: ChallengeLimits) -> FormatError:
    return FormatError(
        f"expected at most {limits.submission_files:,} files of "
        f"{limits.submission_bytes / 10**9:g} GB in total in {path.name}, but found more: submit "
        "only the files that are needed"
    )


def _sum_files(names: list[str], folder: Path) -> str:
    sums = []
    for number, name in enumerate(names):
        report_progress(number, len(names), f"Checksum of {name}")
        with _open_handed(folder / name) as stream:
            sums.append((name, hashlib.file_digest(stream, "sha256").hexdigest()))
    return _sum_lines(iter(sums))


def _sum_lines(sums: Iterator[tuple[str, str]]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sums)
    return hashlib.sha256(lines.encode()).hexdigest()


def _unpack_zip(path: Path, target: Path, budget: _Budget) -> tuple[str, ...]:
    with _open_members(path) as (archive, members):
        _check_members(path, members, budget.limits)
        left_out = []
        for number, member in enumerate(sorted(members, key=lambda member: member.filename)):
            if any(_is_noise(name) for name in PurePosixPath(member.filename).parts):
                left_out.append(f"{member.filename} does not belong to a submission")
                continue
            report_progress(number, len(members), f"Unpacking {member.filename}")
            with archive.open(member) as source:
                budget.copy(source, target / member.filename, member.filename)
    return tuple(left_out)


@contextmanager
def _open_members(path: Path) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    with open_zip(path) as archive:
        yield archive, [member for member in archive.infolist() if not member.is_dir()]


def _check_members(path: Path, members: list[zipfile.ZipInfo], limits: ChallengeLimits) -> None:
    seen: set[str] = set()
    for member in members:
        key = case_key(member.filename)
        objection = _find_objection(member) or ("appears twice" if key in seen else "")
        if objection:
            raise FormatError(
                f"expected regular files below one folder in {path.name}, but "
                f"{readable_name(member.filename)!r} {objection}: it was not unpacked; ask the "
                "team for a clean zip archive"
            )
        seen.add(key)
    n_bytes = sum(member.file_size for member in members)
    if len(members) > limits.submission_files or n_bytes > limits.submission_bytes:
        raise _over_limit(path, limits)
    masks = [member for member in members if member.filename.lower().endswith(_MASK_ENDS)]
    others = [member for member in members if not member.filename.lower().endswith(_MASK_ENDS)]
    for some, ratio, free, what in (
        (others, _MOST_RATIO, _FREE_BYTES, "the tables and programs"),
        (masks, _MASK_RATIO, _FREE_MASK_BYTES, "the masks"),
    ):
        if find_surplus(some, ratio) > free:
            largest = max(some, key=lambda member: member.file_size)
            raise FormatError(
                f"expected files compressed at most {ratio} times in {path.name}, but {what} would "
                f"unpack to {sum(info.file_size for info in some) / 10**6:,.0f} MB from "
                f"{sum(info.compress_size for info in some) / 10**6:,.1f} MB (the largest is "
                f"{largest.filename!r}): it was not unpacked; ask the team for an archive without "
                "it, or for a folder"
            )


def _find_objection(member: zipfile.ZipInfo) -> str:
    name = member.filename
    windows = PureWindowsPath(name)
    parts = name.split("/")
    checks: tuple[tuple[Callable[[], bool], str], ...] = (
        (
            lambda: name.startswith("/") or bool(windows.drive or windows.root) or "\\" in name,
            "is an absolute path",
        ),
        (lambda: any(not part.strip(" .") for part in parts), "points outside the folder"),
        (lambda: len(parts) > _DEEPEST, "is nested too deeply"),
        (lambda: any(len(part.encode()) > 255 for part in parts), "has too long a name"),
        (
            lambda: stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG),
            "is a link or a device",
        ),
        (lambda: bool(member.flag_bits & _ENCRYPTED), "is encrypted with a password"),
    )
    return next((text for holds, text in checks if holds()), "")


class SubmissionKind(StrEnum):
    """The kind of a team's submission."""

    MASKS = "masks"
    PROGRAM = "program"
    RESPONSES = "responses"
    SCORES = "scores as given"
    """A table of scores that the team computed itself (shown "as given")."""
    ANSWERS = "answers"
    """Files that the definition of the challenge describes."""
    NOTHING = "nothing that can be scored"


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A team's settings in ``mamamia_submission.json``: a container image, pinned by digest.

    The entry point is always ``model.py``.
    """

    image: str = ""

    def __post_init__(self) -> None:
        if self.image and _PINNED not in self.image:
            raise ValueError(
                f"expected an image with its digest (NAME{_PINNED}…), but found {self.image!r}"
            )


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a submission: its kind, the folder with the content, and its tables.

    `folder` contains the masks or the program; `responses` and `scores` are tables, or None.
    `problem` explains why nothing can be scored.
    """

    kind: SubmissionKind
    folder: Path
    responses: Path | None = None
    scores: Path | None = None
    image: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a sealed submission.

    Parameters
    ----------
    team, kind
        The team, and the kind of submission.
    sha256
        Digest of the submission, see `digest_of`.
    files, left_out
        The files that were copied, and the files that were not copied, with reasons.
    entry, image
        The program's script, and its container image ("" for none).
    case_seconds, memory_bytes
        Time and memory limits of a program. Both are 0 for other kinds; 0 bytes means three
        quarters of the computer's memory.
    """

    team: str
    kind: SubmissionKind
    sha256: str
    files: tuple[FrozenFile, ...]
    left_out: tuple[str, ...] = ()
    entry: str = ""
    image: str = ""
    case_seconds: float = 0.0
    memory_bytes: int = 0


_MOST_TABLES: Final = 20
"""Maximum number of tables in a submission, which needs only one or two (our choice)."""
_FROM_COPY: Final = "restore it from a copy of the challenge's folder"
_MANIFEST: Final = RecordCodec(Manifest, _FROM_COPY)
_ASKED_RUN: Final = RecordCodec(AskedRun, "ask the team to correct it")


@reads("a submission", "ask the team for a clean copy")
def look_inside(sealed: Path) -> Contents:
    """Find out what a sealed folder contains: a program, otherwise masks, otherwise tables.

    Raises
    ------
    FormatError
        If a table or ``mamamia_submission.json`` cannot be read.
    """
    folder = inner_folder(sealed)
    programs = [path for path in (folder, *_list_folders(folder)) if (path / _MODEL).is_file()]
    request = _read_asked(folder / _ASKED) if (folder / _ASKED).is_file() else AskedRun()
    if len(programs) == 1:
        return Contents(SubmissionKind.PROGRAM, programs[0], image=request.image)
    if programs:
        names = name_some([program.name for program in programs])
        return _say_nothing(
            folder, f"expected only one {_MODEL}, but found several, in {names}: submit only one"
        )
    responses, scores, problem = _sort_tables(folder)
    masks = inner_folder(folder, MASK_FOLDERS)
    # A folder with a table of scores may also hold images, which are not submitted masks.
    if holds_masks(masks, is_deep=scores is None):
        return Contents(SubmissionKind.MASKS, masks, responses, problem=problem)
    if responses is not None:
        return Contents(SubmissionKind.RESPONSES, folder, responses)
    if scores is not None:
        return Contents(SubmissionKind.SCORES, folder, scores=scores)
    expected = (
        f"expected masks (ID.nii.gz), {_MODEL} or a table, but found none: submit one of them"
    )
    return _say_nothing(folder, problem or expected)


@reads("the request of a submission", "ask the team to correct it")
def _read_asked(path: Path) -> AskedRun:
    return _ASKED_RUN.record(read_json(path), path.name)


def seal_manifest(
    team: str, sealed: SealedFiles, contents: Contents, limits: tuple[float, int]
) -> Manifest:
    """Make the manifest of a sealed copy whose content is known.

    Parameters
    ----------
    team
        The team.
    sealed
        The copy.
    contents
        The content of the copy.
    limits
        Seconds and bytes for a program.
    """
    is_program = contents.kind is SubmissionKind.PROGRAM
    return Manifest(
        team,
        contents.kind,
        sealed.sha256,
        sealed.files,
        sealed.left_out,
        entry=_MODEL if is_program else "",
        image=contents.image,
        case_seconds=limits[0] if is_program else 0.0,
        memory_bytes=limits[1] if is_program else 0,
    )


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write a new file ``submission.json``; the errors are those of `write_json`."""
    write_json(_MANIFEST.plain(manifest), folder / MANIFEST)


@reads("the manifest of a submission", _FROM_COPY)
def read_manifest(folder: Path) -> Manifest:
    """Read the manifest in a folder.

    Raises
    ------
    FormatError
        If the manifest is missing or cannot be read.
    """
    return _MANIFEST.record(read_json(folder / MANIFEST), folder / MANIFEST)


def _say_nothing(folder: Path, problem: str) -> Contents:
    return Contents(SubmissionKind.NOTHING, folder, problem=problem)


def _list_folders(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(list_names(folder)) if (folder / name).is_dir()]


def _sort_tables(folder: Path) -> tuple[Path | None, Path | None, str]:
    """Return the response table, the score table, and a description of any problem.

    A submission has at most one table of each kind. A folder with many tables is rejected before
    any table is read.
    """
    table_files = find_tables(folder)
    if len(table_files) > _MOST_TABLES:
        names = name_some([table.name for table in table_files])
        problem = f"expected one table, but found {len(table_files):,} ({names}): submit one table"
        return None, None, problem
    responses: list[Path] = []
    scores: list[Path] = []
    problems: list[str] = []
    for table in table_files:
        reasons = []
        for reader, sort in ((read_response_table, responses), (read_score_table, scores)):
            try:
                reader(table)
                sort.append(table)
            except FormatError as error:
                reasons.append(str(error))
        if len(reasons) > 1:
            problems.append(reasons[1] if "score" in table.name else reasons[0])
    for name, tables in (("responses", responses), ("scores", scores)):
        if len(tables) > 1:
            both = " and ".join(name_some([table.name for table in tables]).rsplit(", ", 1))
            problems.append(f"expected one table for {name}, but found {both}: submit one")
            tables.clear()
    return next(iter(responses), None), next(iter(scores), None), "; ".join(problems)


@reads("the JSON of a patient", "correct, replace or remove the file")
def challenge_facts(path: Path, case_id: str) -> str:
    """Return the fields of a patient info file that a submission may see, as JSON text.

    The keys are patient_id, primary_lesion.breast_coordinates and eight of imaging_data. All other
    fields are left out, in particular age, response and tumour subtype. A key that is missing in
    the file is also missing in the result.

    Parameters
    ----------
    path
        The patient info file.
    case_id
        The case, for error messages.

    Raises
    ------
    FormatError
        If the file cannot be read or is not a JSON object.
    """
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"expected JSON in {path}, but it cannot be read ({error}): replace or remove the file"
        ) from error
    if not isinstance(content, dict):
        raise FormatError(
            f"expected a JSON object in {path}, but found {type(content).__name__}: export the "
            "patient info again"
        )
    lesion, imaging = (
        _read_section(content, "primary_lesion"),
        _read_section(content, "imaging_data"),
    )
    facts: dict[str, object] = {"patient_id": case_id}
    if _LESION in lesion:
        box = _read_section(lesion, _LESION)
        facts["primary_lesion"] = {_LESION: {key: box[key] for key in _BOX if key in box}}
    facts["imaging_data"] = {key: imaging[key] for key in _IMAGING if key in imaging}
    return json.dumps(facts)


def _read_section(content: dict[str, object], key: str) -> dict[str, object]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}
