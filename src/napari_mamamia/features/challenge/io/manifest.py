"""``submission.json`` of a sealed submission: what it is, what it holds, and what ran it."""

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
    """What a team handed in."""

    MASKS = "masks"
    PROGRAM = "program"
    RESPONSES = "responses"
    SCORES = "scores as given"
    """A table of scores that the team computed itself."""
    NOTHING = "nothing that can be scored"


@dataclass(frozen=True, slots=True)
class AskedRun:
    """What a team asks for in ``mamamia_submission.json``: the container image, pinned by digest.

    The entry is always ``model.py``.
    """

    image: str = ""

    def __post_init__(self) -> None:
        if self.image and _PINNED not in self.image:
            raise ValueError(
                f"an image is named by its digest (NAME{_PINNED}…), got {self.image!r}"
            )


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a submission: its kind, where its content starts, and its tables.

    `folder` holds the masks or the program; `responses` and `scores` are tables, None where there
    is none. `problem` says why nothing can be scored.
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
        Who, and what it is.
    sha256
        Digest of what was handed in, see `handed_in.digest_of`.
    files, left_out
        Every file of the copy, and what was not copied and why.
    entry, image
        What is run of a program, and in which container image ("" for none).
    case_seconds, memory_bytes
        Limits of a program, 0 for other kinds and for three quarters of the memory.
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
"""Our own limit: a submission's one or two, and what lies about."""
_FROM_COPY: Final = "take it from a copy of the challenge's folder"
_MANIFEST: Final = RecordCodec(Manifest, _FROM_COPY)
_FILES: Final = RecordCodec(_ProgramFiles, _FROM_COPY)
_ASKED_RUN: Final = RecordCodec(AskedRun, "ask the team to correct it")


@reads("what a team handed in", "ask the team for a clean copy")
def look_inside(sealed: Path) -> Contents:
    """Return what a sealed folder holds; a program comes before masks, and masks before tables.

    Raises
    ------
    FormatError
        If a table or ``mamamia_submission.json`` cannot be read.
    """
    folder = inner_folder(sealed)
    programs = [one for one in (folder, *_list_folders(folder)) if (one / _MODEL).is_file()]
    asked = _read_asked(folder / _ASKED) if (folder / _ASKED).is_file() else AskedRun()
    if len(programs) == 1:
        return Contents(SubmissionKind.PROGRAM, programs[0], image=asked.image)
    if programs:
        names = name_some([program.name for program in programs])
        return _say_nothing(folder, f"expected one {_MODEL}, found it in {names}: hand in one")
    responses, scores, problem = _sort_tables(folder)
    masks = inner_folder(folder, MASK_FOLDERS)
    # Below a table of scores there may be images, which make no submission of masks.
    if holds_masks(masks, is_deep=scores is None):
        return Contents(SubmissionKind.MASKS, masks, responses, problem=problem)
    if responses is not None:
        return Contents(SubmissionKind.RESPONSES, folder, responses)
    if scores is not None:
        return Contents(SubmissionKind.SCORES, folder, scores=scores)
    expected = f"expected masks (ID.nii.gz), {_MODEL} or a table, found none: hand in one of them"
    return _say_nothing(folder, problem or expected)


@reads("what a team asks for", "ask the team to correct it")
def _read_asked(path: Path) -> AskedRun:
    return _ASKED_RUN.record(read_json(path), path.name)


def seal_manifest(
    team: str, sealed: SealedFiles, contents: Contents, limits: tuple[float, int]
) -> Manifest:
    """Return the manifest of a copy that was looked into; `limits` are seconds and bytes."""
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
    """Write ``submission.json``, new; errors as `write_json`."""
    write_json(_MANIFEST.plain(manifest), folder / MANIFEST)


@reads("the manifest of a submission", _FROM_COPY)
def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in `folder`.

    Raises
    ------
    FormatError
        If it is not there or cannot be read.
    """
    return _MANIFEST.record(read_json(folder / MANIFEST), folder / MANIFEST)


def write_program_files(files: Iterable[FrozenFile], folder: Path) -> None:
    """Write ``program_files.json`` anew: what a program made, below its attempt's folder."""
    plain = _FILES.plain(_ProgramFiles(tuple(files)))
    write_json(plain, folder / PROGRAM_FILES, overwrite=True)


@reads("the list of what a program made", _FROM_COPY)
def read_program_files(folder: Path) -> tuple[FrozenFile, ...]:
    """Return name and SHA-256 of each file that a program made, below the attempt's folder."""
    return _FILES.record(read_json(folder / PROGRAM_FILES), folder / PROGRAM_FILES).files


def _say_nothing(folder: Path, problem: str) -> Contents:
    return Contents(SubmissionKind.NOTHING, folder, problem=problem)


def _list_folders(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(list_names(folder)) if (folder / name).is_dir()]


def _sort_tables(folder: Path) -> tuple[Path | None, Path | None, str]:
    """Return the table of responses, that of scores, and what is wrong with them.

    A submission has one of each at most: of more tables than a few nobody reads all.
    """
    found = find_tables(folder)
    if len(found) > _MOST_TABLES:
        names = name_some([table.name for table in found])
        problem = f"expected one table, found {len(found):,} ({names}): hand in one table"
        return None, None, problem
    responses: list[Path] = []
    scores: list[Path] = []
    problems: list[str] = []
    for table in found:
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
            problems.append(f"expected one table of {name}, found {both}: hand in one")
            tables.clear()
    return next(iter(responses), None), next(iter(scores), None), "; ".join(problems)
