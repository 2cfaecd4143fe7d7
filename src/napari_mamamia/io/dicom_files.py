"""DICOM files of a folder tree: found, read in threads, and sorted into studies."""

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import Job, Progress, paced
from napari_mamamia.io.dicom_headers import is_dicom_file, read_slices
from napari_mamamia.io.dicom_parts import Image
from napari_mamamia.io.dicom_slices import BadImage, Header, OtherImage
from napari_mamamia.io.foreign import reads

__all__ = ["Study", "dicom_files", "read_studies"]

_INDEX: Final = "DICOMDIR"
_THREADS: Final = 4
_AHEAD: Final = 64
"""Headers asked for ahead of the one that is waited for."""


@dataclass(frozen=True, slots=True)
class Study:
    """The images of one study below a folder.

    `folder` is the deepest folder that holds all of its files. `damaged` are the reasons why files
    could not be read at all; `n_foreign` counts files without the DICOM mark.
    """

    uid: str
    folder: Path
    images: tuple[Image, ...]
    damaged: tuple[str, ...] = ()
    n_foreign: int = 0

    @property
    def headers(self) -> Iterator[Header]:
        """Headers of the images that have one."""
        for image in self.images:
            header = _header(image)
            if header is not None:
                yield header


def dicom_files(folder: Path) -> Job[tuple[list[Path], int]]:
    """Return a job for the DICOM files below a folder, by path, and how many other files lie there.

    Hidden files and folders, links to folders and ``DICOMDIR`` are passed over.

    Raises
    ------
    FormatError
        If the folder cannot be read.
    """
    yield Progress(0, 1, "Looking for DICOM files")
    files: list[Path] = []
    n_foreign = 0
    for item in paced(_marked(folder)):
        if item is None:
            n_files = len(files) + n_foreign
            yield Progress(0, 1, f"Looking for DICOM files: {n_files:,} files so far")
        elif item[1]:
            files.append(item[0])
        else:
            n_foreign += 1
    return files, n_foreign


@reads("readable DICOM files", "export the series again")
def read_studies(folder: Path) -> Job[tuple[Study, ...]]:
    """Return a job for the studies below a folder, in order of their first file.

    Only headers are read. Progress counts files.

    Raises
    ------
    FormatError
        If the folder cannot be read, or holds no DICOM file.
    MissingExtraError
        If pydicom is not installed.
    """
    files, n_foreign = yield from dicom_files(folder)
    if not files:
        raise FormatError(
            f"expected MR images in {folder}, got no image in DICOM form among {n_foreign} "
            "file(s): choose the folder of the DCE series"
        )
    images: list[tuple[Path, Image | str]] = []
    with closing(_headers(files)) as read:
        for item in paced(read):
            if item is None:
                yield Progress(len(images), len(files), "Reading DICOM headers")
            else:
                images.append(item)
    return _by_study(folder, images, n_foreign)


def _marked(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files below a folder in order of path, and whether each has the DICOM mark."""

    def refuse(error: OSError) -> None:
        raise FormatError(
            f"expected a readable folder at {error.filename}, but {error.strerror}: check that "
            "you may read it"
        ) from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and name != _INDEX:
                path = Path(parent, name)
                yield path, is_dicom_file(path)


def _headers(files: Sequence[Path]) -> Generator[tuple[Path, Image | str], None, None]:
    """Yield what each file is, in order; the reason where it is damaged."""
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(files), _AHEAD):
            part = files[start : start + _AHEAD]
            yield from zip(part, threads.map(_read, part), strict=True)


def _read(path: Path) -> Image | str:
    try:
        return read_slices(path)
    except FormatError as error:
        return str(error)


def _by_study(
    folder: Path, images: Sequence[tuple[Path, Image | str]], n_foreign: int
) -> tuple[Study, ...]:
    """Sort images into studies; files without one go where the files of their folder are."""
    groups: dict[str, list[tuple[Path, Image]]] = {}
    damaged: dict[str, list[str]] = {}
    loose: list[tuple[Path, Image | str]] = []
    study_of: dict[Path, str] = {}
    for path, image in images:
        header = None if isinstance(image, str) else _header(image)
        if header is None or isinstance(image, str):
            loose.append((path, image))
            continue
        groups.setdefault(header.study_uid, []).append((path, image))
        study_of.setdefault(path.parent, header.study_uid)
    only = next(iter(groups)) if len(groups) == 1 else ""
    for path, image in loose:
        uid = study_of.get(path.parent, only)
        if isinstance(image, str):
            damaged.setdefault(uid, []).append(image)
            groups.setdefault(uid, [])
        else:
            groups.setdefault(uid, []).append((path, image))
    return tuple(
        Study(
            uid,
            _common_folder(folder, [path for path, _ in members]),
            tuple(image for _, image in members),
            (*damaged.get(uid, ()),),
            n_foreign,
        )
        for uid, members in groups.items()
    )


def _common_folder(root: Path, files: Sequence[Path]) -> Path:
    if not files:
        return root
    return Path(os.path.commonpath([str(path.parent) for path in files]))


def _header(image: Image) -> Header | None:
    if isinstance(image, OtherImage | BadImage):
        return image.header
    return image[0].header if image else None
