"""Unpack a zip of DICOM files to a temporary folder, and reject malicious archives."""

import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from napari_mamamia.core.errors import FormatError, SaveError
from napari_mamamia.core.progress import paced, part, report_progress
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.zip_files import open_zip

MOST_BYTES: Final = 64 << 30
MOST_RATIO: Final = 100.0
MOST_FILES: Final = 500_000
"""Largest number of files in an archive (our choice).

DICOM files compress 2 to 20 times, and a study has tens to thousands of files with a total of
several GB. A zip bomb compresses 1000 times or more.
"""
_FREE_OF_RATIO: Final = 1 << 20
_BLOCK: Final = 1 << 20


@reads("a complete zip archive", "copy or export it again")
def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder.

    Names, sizes and kinds are checked before anything is written, and sizes are checked again while
    writing, because a header may be wrong.

    Raises
    ------
    FormatError
        If a name points outside the folder, a member is a link or is encrypted, the contents
        are far larger than the archive (a zip bomb), or the archive is damaged.
    SaveError
        If the files cannot be written.
    """
    with open_zip(archive) as opened:
        members = [info for info in opened.infolist() if not info.is_dir()]
        _require_harmless(archive, members)
        for index, info in enumerate(members):
            text = f"Unpacking {archive.name}"
            report_progress(index, len(members), text)
            with part(index, index + 1, len(members)):
                for _ in paced(_copy_member(opened, info, folder, archive), text):
                    pass


def _copy_member(
    opened: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, archive: Path
) -> Iterator[int]:
    target = folder.joinpath(*_split_path(info))
    written = 0
    with opened.open(info) as source, _create_file(target, archive) as stream:
        while block := source.read(_BLOCK):
            written += len(block)
            if written > info.file_size:
                raise _make_hostile_error(
                    archive, f"{info.filename} is longer than its header says"
                )
            with _catch_write_errors(archive):
                stream.write(block)
                # Otherwise a full disk is reported when the file is closed, outside this block's
                # error handling.
                stream.flush()
            yield written


def _create_file(target: Path, archive: Path) -> BinaryIO:
    with _catch_write_errors(archive):
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("xb")


@contextmanager
def _catch_write_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SaveError(
            f"cannot unpack {archive}: {error.strerror or error}; free some space"
        ) from error


def _require_harmless(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MOST_FILES:
        raise _make_hostile_error(
            archive, f"it contains {len(members)} files, above the limit of {MOST_FILES}"
        )
    total = sum(info.file_size for info in members)
    packed = max(archive.stat().st_size, 1)
    if total > MOST_BYTES:
        raise _make_hostile_error(
            archive, f"it unpacks to {total >> 30} GiB, above the limit of {MOST_BYTES >> 30} GiB"
        )
    if total > _FREE_OF_RATIO and total > MOST_RATIO * packed:
        raise _make_hostile_error(
            archive, f"it unpacks to {total / packed:.0f} times its size, as a zip bomb does"
        )
    seen: set[str] = set()
    for info in members:
        _require_harmless_member(archive, info, seen)


def _require_harmless_member(archive: Path, info: zipfile.ZipInfo, seen: set[str]) -> None:
    name = info.filename
    parts = _split_path(info)
    if name.startswith("/") or ":" in name or ".." in parts or not parts:
        raise _make_hostile_error(archive, f"the name {name!r} points outside the folder")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise _make_hostile_error(archive, f"{name!r} is a link")
    if info.flag_bits & 1:
        raise FormatError(
            f"expected an archive without a password at {archive}, but {name!r} is encrypted: "
            "unpack it yourself and import the folder"
        )
    # On Windows and macOS, names that differ only in letter case refer to one file.
    key = "/".join(parts).casefold()
    if key in seen:
        raise _make_hostile_error(archive, f"it contains {name!r} twice")
    seen.add(key)


def _split_path(info: zipfile.ZipInfo) -> tuple[str, ...]:
    return PurePosixPath(info.filename.replace("\\", "/")).parts


def _make_hostile_error(archive: Path, why: str) -> FormatError:
    return FormatError(
        f"expected an archive of DICOM files at {archive}, but {why}: nothing was unpacked; get "
        "another copy of the archive"
    )
