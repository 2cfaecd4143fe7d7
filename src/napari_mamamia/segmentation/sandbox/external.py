"""Inspect a CodaBench submission folder without running its code.

Source of the contract: the MAMA-MIA challenge's sample submission, which is a folder with a
``model.py`` that defines ``class Model``, at ``/app/ingested_program`` or in a folder below it.
"""

import ast
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.names import readable_name
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import open_plain

# Whether an untrusted program requests CUDA by name; its text is parsed, never run.

_CUDA: Final = re.compile(r"cuda(:\d+)?")
_ASKED: Final = "is_available"
_CALLS: Final = ("device", "to", "load")
_ARGUMENTS: Final = ("device", "map_location")


def cuda_by_name(files: Iterable[tuple[Path, str]]) -> str:
    r"""Return the location of the first unconditional use of a CUDA device in Python files, or "".

    A use is ``x.cuda()``, or a call of ``device``, ``to`` or ``load`` whose first argument is
    ``"cuda"`` or a name or attribute with this value, or any call in which the argument ``device``
    or ``map_location`` is such a value. A file that checks whether there is a GPU is assumed to run
    without one.

    Examples
    --------
    >>> cuda_by_name([(Path("model.py"), "import torch\nnet.to('cuda:0')")])
    'model.py line 2'
    >>> cuda_by_name([(Path("model.py"), "net.to('cuda' if torch.cuda.is_available() else 'cpu')")])
    ''
    """
    for file, text in files:
        if file.suffix != ".py" or "cuda" not in text or _ASKED in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # The error appears when it is run.
        names = {name for node in ast.walk(tree) for name in _names_for_cuda(node)}
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        lines = [call.lineno for call in calls if _uses_cuda(call, names)]
        if lines:
            return f"{file.name} line {min(lines)}"
    return ""


def _names_for_cuda(node: ast.AST) -> Iterator[str]:
    """Yield the names and attributes that a syntax node sets to a CUDA device."""
    if isinstance(node, ast.Assign) and _is_cuda(node.value, set()):
        yield from (_read_name(target) for target in node.targets if _read_name(target))


def _uses_cuda(call: ast.Call, names: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    values = list(call.args) if _read_name(call.func) in _CALLS else []
    values += [keyword.value for keyword in call.keywords if keyword.arg in _ARGUMENTS]
    return any(_is_cuda(value, names) for value in values)


def _is_cuda(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _CUDA.fullmatch(node.value) is not None
    return _read_name(node) in names


def _read_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


INGESTED: Final = "/app/ingested_program"
"""The folder that contains the submission in the challenge; some submissions hard-code this path.
"""

_LITERAL: Final = re.compile(
    r"/app/ingested_program(?:/+|['\"]\s*,\s*['\"])([A-Za-z0-9_][A-Za-z0-9_.\-]*)"
)
_MODEL_CLASS: Final = re.compile(r"^class Model\b", re.MULTILINE)
_RELATIVE: Final = re.compile(r"^\s*from \.", re.MULTILINE)
_LICENCE: Final = re.compile(r"^(licen[cs]e|copying)(\.(txt|md|rst))?$", re.IGNORECASE)
_TEXTS: Final = {".py", ".json", ".yaml", ".yml", ".txt", ".sh", ".cfg", ".toml", ".ini"}
_PROGRAMS: Final = {".pkl", ".pickle", ".joblib", ".pth", ".pt", ".ckpt", ".so", ".pyc"}
_TEXT_BYTES: Final = 2**20
_MOST_FILES: Final = 20_000
_LICENCE_LENGTH: Final = 20_000


@dataclass(frozen=True, slots=True)
class Submission:
    """Facts about a submission, collected without running it.

    Parameters
    ----------
    folder
        The absolute path of the folder with ``model.py``.
    name
        The name of the folder.
    sha256
        SHA-256 of the list of all file names and checksums, sorted by name.
    files
        Number of files, excluding links.
    n_bytes
        Total size of the files in bytes.
    licence
        Contents of a licence file; "" if there is none.
    layouts
        Paths below `INGESTED` at which the submission expects its files, in addition to `INGESTED`.
    is_package
        Whether ``model.py`` uses relative imports from its own folder.
    names_room
        Whether any file mentions `INGESTED`.
    asks_for_cuda
        Location of the first unconditional use of a CUDA device; "" if none. See `cuda_by_name`.
    programs
        Files other than Python source files that may run programs when they are loaded.
    """

    folder: Path
    name: str
    sha256: str
    files: int
    n_bytes: int
    licence: str = ""
    layouts: tuple[str, ...] = ()
    is_package: bool = False
    names_room: bool = False
    asks_for_cuda: str = ""
    programs: tuple[str, ...] = ()

    @property
    def licence_line(self) -> str:
        """Return the first line of the licence, or "no licence file"."""
        lines = (line.strip() for line in self.licence.splitlines())
        return printable(next((line for line in lines if line), "no licence file"), 120)

    def entries(self) -> Iterator[Path]:
        """Yield the folder's direct entries, except links that point outside the folder."""
        for entry in sorted(self.folder.iterdir()):
            if entry.name != "__pycache__" and _is_inside(entry, self.folder):
                yield entry


def read_submission(path: Path) -> Submission:
    """Return the facts about a submission folder without executing its code.

    ``model.py`` must be in the folder itself or in exactly one of its subfolders.

    Raises
    ------
    ModelError
        If there is no ``model.py`` with a ``class Model``, there are several, or there are too many
        files.
    """
    folder = _folder_of_model(path)
    script = _read_text(folder / "model.py")
    if not _MODEL_CLASS.search(script):
        raise ModelError(
            f"{folder / 'model.py'} does not define  class Model  , which the challenge requires: "
            "choose the submission's folder"
        )
    files = sorted(_list_files(folder))
    texts = [_read_text(file) for file in files if file.suffix.lower() in _TEXTS]
    layouts = {name for text in texts for name in _LITERAL.findall(text)}
    there = {entry.name for entry in folder.iterdir()}
    return Submission(
        folder=folder,
        name=readable_name(folder.name),
        sha256=_sum_files(folder, files),
        files=len(files),
        n_bytes=sum(file.stat().st_size for file in files),
        licence=_read_licence(folder),
        layouts=tuple(sorted((layouts | {folder.name}) - there)),
        is_package=bool(_RELATIVE.search(script)),
        asks_for_cuda=cuda_by_name(
            (file, _read_text(file)) for file in files if file.parent == folder
        ),
        names_room=any(INGESTED in text for text in texts),
        programs=tuple(
            readable_name(file.relative_to(folder).as_posix())
            for file in files
            if file.suffix.lower() in _PROGRAMS
        ),
    )


def printable(text: str, most: int = 500) -> str:
    """Return an untrusted string as a single line without control characters.

    A terminal would interpret some control characters as commands.

    Parameters
    ----------
    text
        The untrusted string.
    most
        Maximum number of characters; longer strings are truncated.

    Examples
    --------
    >>> printable(f"bad{chr(27)}[2J  news")
    'bad[2J news'
    """
    line = " ".join(text.split())
    return "".join(letter for letter in line if letter.isprintable())[:most]


def require_plain_file(path: Path, most: int | None = None) -> None:
    """Raise `ModelError` unless an untrusted path is a regular file of limited size.

    Parameters
    ----------
    path
        The file.
    most
        Maximum size in bytes; None for any size.
    """
    name = path.name
    try:
        status = os.lstat(path)
    except OSError as error:
        raise ModelError(f"the program did not write {name}: read its log") from error
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(
            f"expected {name} to be a regular file, but the program made it a link or a different "
            "kind of file; it was not opened"
        )
    if most is not None and status.st_size > most:
        raise ModelError(
            f"expected {name} to have at most {most} bytes, but it has {status.st_size}: it was "
            "not read"
        )


def _folder_of_model(path: Path) -> Path:
    if not path.is_dir():
        raise ModelError(
            f"expected a submission (a folder with model.py), but {path} is not a folder: unpack a "
            "zip archive first, or check the path"
        )
    if (path / "model.py").is_file():
        return path.resolve()
    below = [entry for entry in sorted(path.iterdir()) if (entry / "model.py").is_file()]
    if len(below) == 1 and _is_inside(below[0], path):
        return below[0].resolve()
    names = ", ".join(entry.name for entry in below) or "none"
    raise ModelError(
        f"expected {path} to contain one submission with model.py, but found {names}: choose the "
        "folder that contains model.py"
    )


def _list_files(folder: Path) -> Iterator[Path]:
    count = 0
    for file in folder.rglob("*"):
        if file.is_symlink() or not file.is_file() or "__pycache__" in file.parts:
            continue
        count += 1
        if count > _MOST_FILES:
            raise ModelError(
                f"expected a submission to have at most {_MOST_FILES} files, but {folder} has "
                "more: choose the submission's own folder"
            )
        yield file


def _read_text(file: Path) -> str:
    try:
        with open_plain(file) as stream:
            return stream.read(_TEXT_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise ModelError(
            f"expected {file} to be readable, but {error.strerror}: copy the submission again"
        ) from error


def _sum_files(folder: Path, files: list[Path]) -> str:
    """Return the SHA-256 of the list that ``sha256sum`` would write for the files.

    ``sha256sum`` escapes each line break or backslash in a name, and begins that line with a
    backslash. Without this, a name could imitate the line of another file.
    """
    lines = hashlib.sha256()
    for file in files:
        name, mark = file.relative_to(folder).as_posix(), ""
        if "\n" in name or "\\" in name:
            name, mark = name.replace("\\", "\\\\").replace("\n", "\\n"), "\\"
        lines.update(os.fsencode(f"{mark}{sha256_of(file)}  {name}\n"))
    return lines.hexdigest()


def _read_licence(folder: Path) -> str:
    for entry in sorted(folder.iterdir()):
        if _LICENCE.match(entry.name) and entry.is_file() and not entry.is_symlink():
            return _read_text(entry)[:_LICENCE_LENGTH]
    return ""


def _is_inside(entry: Path, folder: Path) -> bool:
    """Return whether a path resolves to a path inside the folder; False for a link to itself."""
    try:
        return entry.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # The latter for loops, before Python 3.13.
        return False
