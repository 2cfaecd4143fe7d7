"""Access to the files of a model folder or zip; a zip is checked before it is unpacked."""

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Final, NoReturn

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import explained, open_plain, reads
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.user_folders import cache_folder
from napari_mamamia.io.files.zip_files import open_zip

_MOST_FILES: Final = 20_000
_DEEPEST: Final = 6
_MOST_BYTES: Final = 64 * 2**30  # an ensemble of five large networks has about 10 GB
_MOST_RATIO: Final = 200  # Weights hardly compress; text compresses by a factor of 20.
_STORED_RATIO: Final = 4
_TEXT_BYTES: Final = 64 * 2**20
_BLOCK: Final = 2**22
_ENCRYPTED: Final = 0x1
# An .npz may hold pickled arrays, and a .py is a program.
_PICKLES: Final = frozenset((".pkl", ".pickle", ".joblib", ".npz", ".py"))


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model folder, zip or single file; `sizes` lists (relative name, bytes)."""

    path: Path
    is_zip: bool
    sizes: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """File names relative to `path`, with ``/`` as separator."""
        return tuple(name for name, _ in self.sizes)

    def text(self, name: str) -> str:
        """Return the content of a small text file; raise `ModelError` if it cannot be read.

        A link that points outside the model is an error, because its content would be shown and
        copied into a converted model. Links into the huggingface_hub cache are allowed, because
        that cache is built from links.
        """
        if not self.is_zip:
            require_own(self._find_path(name))
        try:
            with self.open(name) as stream:
                data = stream.read(_TEXT_BYTES + 1)
        except (OSError, KeyError, zipfile.BadZipFile, RuntimeError) as error:
            raise ModelError(
                f"cannot read {name} of {self.path}: {error}; copy the model again"
            ) from error
        if len(data) > _TEXT_BYTES:
            raise ModelError(
                f"expected {name} of {self.path} to be a small text file, but it exceeds "
                f"{_TEXT_BYTES // 2**20} MB and was not read; copy the model again"
            )
        return data.decode("utf-8", errors="replace")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of the model for reading bytes."""
        if self.is_zip:
            with open_zip(self.path) as archive, archive.open(name) as stream:
                yield stream
        else:
            with open_plain(self._find_path(name)) as stream:
                yield stream

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a file as 64 hexadecimal digits."""
        if not self.is_zip:
            return sha256_of(self._find_path(name))
        digest = hashlib.sha256()
        with self.open(name) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def _find_path(self, name: str) -> Path:
        """Return the path of a file inside the folder, or next to a single file."""
        return (self.path if self.path.is_dir() else self.path.parent) / name


@reads("a readable model", "copy the file again from its source", ModelError)
def open_files(path: Path) -> ModelFiles:
    """Return the files at `path`: a folder (at most six levels), a zip, or a single file.

    A torch checkpoint is technically a zip, but is treated as a single file.

    Raises
    ------
    ModelError
        If the path does not exist, or a zip is damaged or has forbidden names or sizes.
    """
    if path.is_dir():
        return ModelFiles(path, False, tuple(_walk_folder(path)))
    if not path.exists():
        raise ModelError(f"the model {path} does not exist; choose a folder, zip or file")
    if path.suffix.lower() == ".zip":
        with _open_archive(path) as archive:
            return ModelFiles(path, True, tuple(_check_members(archive, path)))
    open_plain(path).close()
    return ModelFiles(path, False, ((path.name, path.stat().st_size),))


def model_cache() -> Path:
    """Return the cache folder for unpacked zips and compiled networks; it may be deleted."""
    return cache_folder()


@reads("a complete zip archive of a model", "copy the file again from its source", ModelError)
def unpack(path: Path, into: Path) -> Path:
    """Unpack a zip into a folder below `into` that is named after the zip's SHA-256.

    A zip is unpacked only once. Pickles other than checkpoints are skipped.

    Raises
    ------
    ModelError
        If the zip is damaged, a name points outside the folder, or the zip is too large for a
        model.
    """
    report_progress(0, 1, "Checking the model")
    target = into / "models" / sha256_of(path)[:32]
    if target.is_dir():
        return target
    try:
        with own_folder(target.parent) as folder:
            with _open_archive(path) as archive:
                members = [name for name, _ in _check_members(archive, path)]
                names = [n for n in members if PurePosixPath(n).suffix.lower() not in _PICKLES]
                for index, name in enumerate(names):
                    _extract_member(archive, name, folder / name, index, len(names))
            try:
                place_folder(folder, target)
            except OSError:
                if not target.is_dir():  # Another process was faster.
                    raise
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ModelError(
            f"expected {path} to be a complete zip that can be unpacked to {into}, but {error}; "
            "copy the zip again, or free some space"
        ) from error
    return target


def join_path(root: str, name: str) -> str:
    """Return the path of a file in a folder of a model; "" stands for the model itself."""
    return f"{root}/{name}" if root else name


def require_stored(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise `ModelError` if a torch file is compressed, which torch itself never does.

    A few kilobytes could otherwise fill the memory, because torch decompresses files when it reads
    them.

    Parameters
    ----------
    archive
        The opened zip.
    path
        The path of the file.
    """
    total = sum(member.file_size for member in archive.infolist())
    size = path.stat().st_size
    if total > _STORED_RATIO * size + _TEXT_BYTES:
        raise ModelError(
            f"expected {path} to store its numbers uncompressed, but it would unpack to "
            f"{total / 2**30:.2f} GB from {size / 2**30:.3f} GB, so it was not opened; ask its "
            "author for an uncompressed file"
        )


def _extract_member(
    archive: zipfile.ZipFile, name: str, target: Path, done: int, total: int
) -> None:
    """Write one member of a zip, whose size must be the size stated in the zip's directory."""
    target.parent.mkdir(parents=True, exist_ok=True)
    left = archive.getinfo(name).file_size
    with archive.open(name) as source, target.open("xb") as sink:
        while block := source.read(_BLOCK):
            report_progress(done, total, f"Unpacking {name}")
            left -= len(block)
            if left < 0:
                raise _other_size(archive, name, "larger")
            sink.write(block)
    if left:
        raise _other_size(archive, name, "smaller")


def _other_size(archive: zipfile.ZipFile, name: str, which: str) -> ModelError:
    return ModelError(
        f"expected {name} in {archive.filename} to have the size that the zip's directory states, "
        f"but it is {which}, so the zip was not unpacked; copy the zip again from its source"
    )


def require_own(file: Path) -> None:
    """Raise `ModelError` if a file is a link that points outside its folder.

    In the cache of huggingface_hub, snapshots/REVISION/FILE are links to blobs/SHA. Source:
    huggingface_hub, "Understand caching".
    """
    if not file.is_symlink():
        return
    target = file.resolve()
    blobs = [p.parent / "blobs" for p in file.absolute().parents if p.name == "snapshots"]
    if not any(target.is_relative_to(place.resolve()) for place in (file.parent, *blobs)):
        raise ModelError(
            f"expected {file} to be a file of the model, but it is a link that points outside its "
            "folder, so it was not read; copy the file itself into the folder"
        )


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    expected = "a complete zip archive of a model"
    with explained(path, expected, "copy the zip again", ModelError), open_zip(path) as archive:
        yield archive


def _check_members(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and size of each file in a zip after checking all files."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    ratio = total / max(packed, 2**16)
    if len(members) > _MOST_FILES or total > _MOST_BYTES or ratio > _MOST_RATIO:
        raise ModelError(
            f"{path} would unpack to {len(members)} files of {total / 2**30:.1f} GB from "
            f"{packed / 2**30:.3f} GB, which is too much for a model, so it was not unpacked"
        )
    seen: set[str] = set()
    for member in members:
        reason = _find_objection(member)
        if reason is None and member.filename.casefold() in seen:
            reason = "appears twice"
        if reason is not None:
            raise ModelError(
                f"expected {path} to contain only regular files below one folder, but "
                f"{member.filename!r} {reason}, so it was not unpacked; ask its author for a "
                "corrected zip"
            )
        seen.add(member.filename.casefold())
    for member in members:
        yield member.filename, member.file_size


def _find_objection(member: zipfile.ZipInfo) -> str | None:
    name = member.filename
    parts = PurePosixPath(name).parts
    windows = PureWindowsPath(name)
    if name.startswith("/") or windows.drive or windows.root or "\\" in name or "\0" in name:
        return "names an absolute path"
    if ".." in parts or any(part.strip(" .") == "" for part in parts):
        return "points outside the folder"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    return None


def _walk_folder(folder: Path) -> Iterator[tuple[str, int]]:
    def refuse(error: OSError) -> NoReturn:
        """Raise an error for a folder whose files cannot be listed.

        The model would otherwise appear smaller than it is.
        """
        raise ModelError(
            f"cannot read the folders of {folder}: {error}; check its permissions, and try again"
        ) from error

    count = 0
    for where, folders, files in os.walk(folder, onerror=refuse):
        here = Path(where)
        folders.sort()
        if len(here.relative_to(folder).parts) >= _DEEPEST:
            folders.clear()
        for name in sorted(files):
            count += 1
            if count > _MOST_FILES:
                return
            file = here / name
            if file.is_file():
                yield file.relative_to(folder).as_posix(), file.stat().st_size
