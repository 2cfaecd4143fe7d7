"""Find DICOM files in a folder tree, read them in several threads, and sort them into studies."""

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.dicom.elements import begins_bare
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.parts import Image
from napari_mamamia.io.dicom.probe import may_be_dicom
from napari_mamamia.io.dicom.remedies import LEAVE_UNREADABLE_OUT
from napari_mamamia.io.dicom.slices import BadImage, Header, OtherImage
from napari_mamamia.io.files.foreign import open_plain, reads

_INDEX: Final = "DICOMDIR"
_HEAD: Final = 132
_MARK: Final = slice(128, 132)
_SUFFIXES: Final = frozenset({".dcm", ".ima", ".dicom"})
_FIRST_GROUPS: Final = (b"\x02\x00", b"\x08\x00")
"""Group numbers with which a DICOM file without preamble can begin: 0002 or 0008."""
_THREADS: Final = 4
_AHEAD: Final = 64
"""Number of headers read ahead of the current header."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """An unreadable file or folder; `reason` is the full message."""

    path: Path
    reason: str
    is_blank: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """The images of one study in a folder tree.

    `folder` is the deepest folder that contains all files of the study. `damaged` lists unreadable
    files in the study's folders, each with a message. `n_foreign` counts the files below the source
    folder that are not DICOM. `archives` are zip files among those files, which are not opened.
    """

    uid: str
    folder: Path
    images: tuple[Image, ...]
    damaged: tuple[Damaged, ...] = ()
    n_foreign: int = 0
    archives: tuple[Path, ...] = ()

    @property
    def headers(self) -> Iterator[Header]:
        """Headers of those images that have one."""
        for image in self.images:
            header = _find_header(image)
            if header is not None:
                yield header


def dicom_files(folder: Path) -> tuple[list[Path], int]:
    """Return the sorted paths of the DICOM files below a folder, and the number of other files.

    Hidden files and folders, links to folders and ``DICOMDIR`` are ignored.

    Raises
    ------
    FormatError
        If the folder cannot be read.
    """
    files, damaged, n_foreign, _ = _sorted_files(folder)
    return files, n_foreign + len(damaged)


def require_readable(study: Study) -> None:
    """Raise `FormatError` if some unreadable files may belong to the study."""
    if not study.damaged:
        return
    more = len(study.damaged) - 1
    others = f" (and {count_of(more, 'more such file')})" if more else ""
    reason = f"{study.damaged[0].reason}{others}"
    if not any(map(bool, study.headers)):
        raise FormatError(reason)
    raise FormatError(
        f"{reason}; or import only the readable files", remedies=[LEAVE_UNREADABLE_OUT]
    )


@reads("readable DICOM files", "export the series again")
def read_studies(folder: Path) -> tuple[Study, ...]:
    """Return the studies below a folder, in the order of their first files.

    Only headers are read. Progress is reported in files.

    Raises
    ------
    FormatError
        If the folder cannot be read, or holds no DICOM file.
    MissingExtraError
        If pydicom is not installed.
    """
    files, damaged, n_foreign, archives = _sorted_files(folder)
    if not files:
        raise FormatError(damaged[0].reason if damaged else _no_image(folder, n_foreign, archives))
    images: list[tuple[Path, Image | Damaged]] = [(file.path, file) for file in damaged]
    with closing(_read_headers(files)) as read:
        images += paced(read, "Reading DICOM headers", len(files))
    return _by_study(folder, images, n_foreign, archives)


def _no_image(folder: Path, n_foreign: int, archives: Sequence[Path]) -> str:
    if archives:
        return (
            f"expected MR images in {folder}, but its {n_foreign} files are not DICOM, and zip "
            f"files inside a folder are not opened: unpack {archives[0].relative_to(folder)}, or "
            "import it separately"
        )
    return (
        f"expected MR images in {folder}, but none of its {n_foreign} files is a DICOM image: "
        "choose the folder of the DCE series"
    )


def _sorted_files(folder: Path) -> tuple[list[Path], list[Damaged], int, tuple[Path, ...]]:
    report_progress(0, 1, "Looking for DICOM files")
    files: list[Path] = []
    damaged: list[Damaged] = []
    archives: list[Path] = []
    n_seen = 0
    for look in paced(_walk_files(folder), "Looking for DICOM files: {:,} files so far".format):
        n_seen += 1
        if isinstance(look, Damaged):
            damaged.append(look)
        elif look[1]:
            files.append(look[0])
        elif look[0].suffix.lower() == ".zip":
            archives.append(look[0])
    n_foreign = n_seen - len(files) - len(damaged)
    return files, damaged, n_foreign, tuple(archives)


def _walk_files(folder: Path) -> Iterator[tuple[Path, bool] | Damaged]:
    """Yield the files below a folder in order of path, and whether each file is DICOM.

    Hidden files and folders, links to folders and ``DICOMDIR`` are ignored.
    """
    lost: list[Damaged] = []

    def remember(error: OSError) -> None:
        path = Path(error.filename)
        reason = f"cannot read the folder {path}: {error.strerror}; check its read permission"
        if path == folder:
            raise FormatError(reason) from error
        lost.append(Damaged(path, reason))

    for parent, folders, names in os.walk(folder, onerror=remember):
        # The list is changed in place, because `os.walk` enters the folders that remain in the
        # list.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from _inspect_files(
            [
                Path(parent, n)
                for n in sorted(names)
                if not n.startswith(".") and n.upper() != _INDEX
            ]
        )
    yield from lost


def _inspect_files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool] | Damaged]:
    """Yield each file in one folder, and whether it begins as a DICOM file does.

    Empty marker files of a disc, such as LOCKFILE, are treated as damaged images only if the images
    in the folder also have names without a number.
    """
    empty: list[Damaged] = []
    has_words = False
    for path in paths:
        look = _inspect_file(path)
        if isinstance(look, Damaged) and look.is_blank and _is_word(path.name):
            empty.append(look)
            continue
        has_words |= not isinstance(look, Damaged) and look[1] and _is_word(path.name)
        yield look
    yield from empty if has_words else [(damaged.path, False) for damaged in empty]


def _is_word(name: str) -> bool:
    return "." not in name and not any(letter.isdigit() for letter in name)


def _inspect_file(path: Path) -> tuple[Path, bool] | Damaged:
    suffix = path.suffix.lower()
    try:
        with open_plain(path) as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        if not may_be_dicom(path.name):
            return path, False
        return _describe_damage(path, f"it cannot be read ({error.strerror or error})")
    if head[_MARK] == b"DICM":
        return path, True
    if not may_be_dicom(path.name):
        return path, False
    if not any(head):
        damage = _describe_damage(path, "it begins with zeros only" if head else "it is empty")
        return replace(damage, is_blank=True)
    if begins_bare(head):
        return path, True
    is_named = suffix in _SUFFIXES
    if is_named or head[:2] in _FIRST_GROUPS:
        return _describe_damage(path, "its first bytes are not those of a DICOM file")
    return path, False


def _describe_damage(path: Path, why: str) -> Damaged:
    return Damaged(
        path,
        f"expected a readable DICOM file at {path}, but {why}, possibly because a copy was "
        "interrupted: copy or export the series again",
    )


def _read_headers(files: Sequence[Path]) -> Generator[tuple[Path, Image | Damaged], None, None]:
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(files), _AHEAD):
            file = files[start : start + _AHEAD]
            yield from zip(file, threads.map(_read_image, file), strict=True)


def _read_image(path: Path) -> Image | Damaged:
    try:
        return read_slices(path)
    except FormatError as error:
        return Damaged(path, str(error))


def _by_study(
    folder: Path,
    images: Sequence[tuple[Path, Image | Damaged]],
    n_foreign: int,
    archives: tuple[Path, ...] = (),
) -> tuple[Study, ...]:
    """Sort images into studies; a file without a study belongs to the study in its folder.

    Damaged files of unknown study form a separate study at the end.
    """
    groups: dict[str, list[tuple[Path, Image]]] = {}
    loose: list[tuple[Path, Image | Damaged]] = []
    study_of: dict[Path, str] = {}
    for path, image in images:
        header = None if isinstance(image, Damaged) else _find_header(image)
        if header is None or isinstance(image, Damaged):
            loose.append((path, image))
            continue
        groups.setdefault(header.study_uid, []).append((path, image))
        study_of.setdefault(path.parent, header.study_uid)
    places = {
        uid: _common_folder(folder, [path for path, _ in members])
        for uid, members in groups.items()
    }
    damaged: dict[str, list[Damaged]] = {}
    for path, image in loose:
        uid = study_of.get(path.parent) or _find_nearest_study(path, places)
        if isinstance(image, Damaged):
            damaged.setdefault(uid, []).append(image)
        else:
            groups.setdefault(uid, []).append((path, image))
    if damaged.get(""):
        groups[""] = groups.pop("", [])
    return tuple(
        Study(
            uid,
            places.get(uid, folder),
            tuple(image for _, image in members),
            (*damaged.get(uid, ()),),
            n_foreign,
            archives,
        )
        for uid, members in groups.items()
    )


def _find_nearest_study(path: Path, places: Mapping[str, Path]) -> str:
    if len(places) == 1:
        return next(iter(places))
    around = [(len(folder.parts), uid) for uid, folder in places.items() if folder in path.parents]
    deepest = max(around, default=(0, ""))
    is_one = sum(depth == deepest[0] for depth, _ in around) == 1
    return deepest[1] if is_one else ""


def _common_folder(root: Path, files: Sequence[Path]) -> Path:
    if not files:
        return root
    return Path(os.path.commonpath([str(path.parent) for path in files]))


def _find_header(image: Image) -> Header | None:
    if isinstance(image, OtherImage | BadImage):
        return image.header
    return image[0].header if image else None
