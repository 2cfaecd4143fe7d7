"""``submission.json`` of a sealed submission: its kind, its files, and a program's limits."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some
from napari_mamamia.features.challenge.io.challenge_file import FrozenFile
from napari_mamamia.features.challenge.io.handed_in import SealedFiles, find_tables, inner_folder
from napari_mamamia.io.data_set.mask_files import holds_masks
from napari_mamamia.io.data_set.score_files import read_response_table, read_score_table
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.tables.tables import write_json

MANIFEST: Final = "submission.json"
SEALED: Final = "sealed"
PROGRAM_FILES: Final = "program_files.json"
MASK_FOLDERS: Final = ("pred_segmentations", "masks")
_MODEL: Final = "model.py"
_ASKED: Final = "mamamia_submission.json"
_PINNED: Final = "@sha256:"


class SubmissionKind(StrEnum):
    """The kind of a team's submission."""

    MASKS = "masks"
    PROGRAM = "program"
    RESPONSES = "responses"
    SCORES = "scores as given"
    """A table of scores that the team computed itself."""
    NOTHING = "nothing that can be scored"


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A team's request in ``mamamia_submission.json``: a container image, pinned by digest.

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

    `folder` holds the masks or the program; `responses` and `scores` are tables, None if missing.
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
    """A sealed submission.

    Parameters
    ----------
    team, kind
        The team, and the kind of submission.
    sha256
        Digest of the submission, see `handed_in.digest_of`.
    files, left_out
        Every file of the copy, and the files that were not copied with reasons.
    entry, image
        The script of a program, and its container image ("" for none).
    case_seconds, memory_bytes
        Limits of a program; 0 for other kinds, and 0 bytes for three quarters of the memory.
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


@dataclass(frozen=True, slots=True)
class _ProgramFiles:
    files: tuple[FrozenFile, ...]


_MOST_TABLES: Final = 20
"""Maximum number of tables in a submission, which needs one or two. Our own limit."""
_FROM_COPY: Final = "restore it from a copy of the challenge's folder"
_MANIFEST: Final = RecordCodec(Manifest, _FROM_COPY)
_FILES: Final = RecordCodec(_ProgramFiles, _FROM_COPY)
_ASKED_RUN: Final = RecordCodec(AskedRun, "ask the team to correct it")


@reads("a submission", "ask the team for a clean copy")
def look_inside(sealed: Path) -> Contents:
    """Determine the content of a sealed folder: a program, otherwise masks, otherwise tables.

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
        return _say_nothing(folder, f"expected one {_MODEL}, but found it in {names}: submit one")
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
    """Return the manifest of an inspected copy; `limits` are seconds and bytes.

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
    """Write ``submission.json`` as a new file; errors as `write_json`."""
    write_json(_MANIFEST.plain(manifest), folder / MANIFEST)


@reads("the manifest of a submission", _FROM_COPY)
def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in `folder`.

    Raises
    ------
    FormatError
        If the manifest is missing or cannot be read.
    """
    return _MANIFEST.record(read_json(folder / MANIFEST), folder / MANIFEST)


def write_program_files(files: Iterable[FrozenFile], folder: Path) -> None:
    """Write ``program_files.json``, the list of files that a program wrote for its attempt."""
    plain = _FILES.plain(_ProgramFiles(tuple(files)))
    write_json(plain, folder / PROGRAM_FILES, overwrite=True)


@reads("the list of files that a program wrote", _FROM_COPY)
def read_program_files(folder: Path) -> tuple[FrozenFile, ...]:
    """Return relative path and SHA-256 of each file that a program wrote for its attempt."""
    return _FILES.record(read_json(folder / PROGRAM_FILES), folder / PROGRAM_FILES).files


def _say_nothing(folder: Path, problem: str) -> Contents:
    return Contents(SubmissionKind.NOTHING, folder, problem=problem)


def _list_folders(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(list_names(folder)) if (folder / name).is_dir()]


def _sort_tables(folder: Path) -> tuple[Path | None, Path | None, str]:
    """Return the table of responses, the table of scores, and a problem with the tables.

    A submission has at most one of each. A folder with many tables is refused before they are read.
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
            problems.append(f"expected one table of {name}, but found {both}: submit one")
            tables.clear()
    return next(iter(responses), None), next(iter(scores), None), "; ".join(problems)
