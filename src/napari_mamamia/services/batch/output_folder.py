"""Claim an output folder, so that results of two runs are never mixed or silently overwritten."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import MamamiaError, Remedy, SaveConflictError, SaveError
from napari_mamamia.core.provenance import Setting, now_utc, software_version
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import sweep_below
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.tables.tables import write_json

RUN_FILE = "run.json"
_WITHOUT_RESUME: Final = frozenset(
    {
        "audit",
        "challenge rank",
        "export",
        "ftv-from",
        "rank",
        "score-classifier",
        "score-detection",
        "score-pcr",
        "score-table",
        "split",
        "stack",
        "straighten",
    }
)
"""Commands that cannot resume an earlier run."""


class Existing(StrEnum):
    """The action if the output folder is not empty."""

    REFUSE = "refuse"
    RESUME = "resume"
    ADD = "add"
    OVERWRITE = "overwrite"


def claim_folder(
    folder: Path,
    command: str,
    parameters: tuple[tuple[str, Setting], ...],
    existing: Existing,
    read: Iterable[Path] = (),
) -> None:
    """Prepare `folder` for one run and record the run in ``run.json``.

    A new or empty folder is always accepted. With OVERWRITE, a folder with content is also
    accepted, and files of the same name are replaced. With RESUME, it is accepted if its
    ``run.json`` has the same command and parameters; unfinished files of a killed run are removed
    first. With ADD, it is accepted and its ``run.json`` is kept; the command must not replace any
    existing file. `read` lists the folders of the run's inputs. In every mode they must not be
    inside `folder`, because a run could then replace an expert's masks.

    Raises
    ------
    SaveConflictError
        If the folder holds other results, or the run's inputs.
    SaveError
        If the folder cannot be created or written to.
    """
    _require_apart(folder, read)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep_below(folder)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise SaveError(
            f"{folder} cannot be used as the output folder ({error.strerror}): choose a different "
            "folder"
        ) from error
    if not is_empty and existing is Existing.REFUSE:
        has_resume = command not in _WITHOUT_RESUME and _is_same_run(folder, command, parameters)
        resumed = ", continue the run that made it," if has_resume else ""
        raise SaveConflictError(
            f"expected {folder} to be empty, but it contains files{_say_run(folder)}: choose a "
            f"new folder{resumed} or replace its files",
            remedies=(*(Remedy("resume"),) * has_resume, Remedy("overwrite")),
        )
    if not is_empty and existing is Existing.RESUME:
        _require_same_run(folder, command, parameters)
    if existing is Existing.ADD and (folder / RUN_FILE).exists():
        return
    record = {
        "command": command,
        "parameters": dict(parameters),
        "software": software_version(),
        "started": now_utc(),
    }
    write_json(record, folder / RUN_FILE, overwrite=True)


@contextmanager
def claimed_folder(
    folder: Path,
    command: str,
    parameters: tuple[tuple[str, Setting], ...],
    existing: Existing,
    read: Iterable[Path] = (),
) -> Iterator[None]:
    """Claim `folder` for the block; see `claim_folder`.

    If the block raises a `MamamiaError` before it has written any content, the folder is left as it
    was before.
    """
    was_there, run_before = folder.exists(), _read_run_file(folder)
    claim_folder(folder, command, parameters, existing, read)
    before = _list_files(folder)
    try:
        yield
    except MamamiaError:
        after = _list_files(folder)
        added = [path for path in after if path not in before]
        if any(after[path][0] for path in added) or any(
            after.get(path) != state for path, state in before.items()
        ):
            raise
        if run_before is None:
            take_back(folder, added, was_there=was_there)
        else:
            with saving(folder / RUN_FILE, overwrite=True) as temporary:
                temporary.write_bytes(run_before)
        raise


def _list_files(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return size and modification time of all files in a folder, except its ``run.json``."""
    files: dict[Path, tuple[int, int]] = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file() and path != folder / RUN_FILE:
                files[path] = (path.stat().st_size, path.stat().st_mtime_ns)
    return files


def _read_run_file(folder: Path) -> bytes | None:
    try:
        return (folder / RUN_FILE).read_bytes()
    except OSError:
        return None


def run_in(folder: Path) -> str | None:
    """Return the command of the run that claimed a folder, or None if it is unknown."""
    try:
        run = read_json(folder / RUN_FILE)
        return str(run["command"]) if run["software"] and run["started"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def take_back(folder: Path, written: Iterable[Path] = (), *, was_there: bool = False) -> None:
    """Remove the files that a stopped run wrote to a folder: `written` and ``run.json``.

    If the folder has other files, the folder, these files and ``run.json`` are kept. A folder that
    existed before the run (`was_there`) is also kept.
    """
    with suppress(OSError):
        for path in written:
            path.unlink(missing_ok=True)
        below = sorted((one for one in folder.rglob("*") if one.is_dir()), reverse=True)
        for inner in below:
            with suppress(OSError):
                inner.rmdir()
        if {path.name for path in folder.iterdir()} <= {RUN_FILE}:
            (folder / RUN_FILE).unlink(missing_ok=True)
            if not was_there:
                folder.rmdir()


def _require_apart(folder: Path, read: Iterable[Path]) -> None:
    target = folder.resolve()
    for one in sorted(set(read)):
        if one.resolve().is_relative_to(target):
            raise SaveConflictError(
                f"expected the output folder not to contain the run's inputs, but {one} is in "
                f"{folder}, so nothing was written: choose a different folder"
            )


def _say_run(folder: Path) -> str:
    """Return the command and time of the run that wrote a folder, in parentheses, or ""."""
    try:
        run = read_json(folder / RUN_FILE)
        of = run["parameters"].get("model") or run["parameters"].get("name") or ""
        began = datetime.fromisoformat(run["started"]).astimezone()
        return f" ({run['command']}{' by ' if of else ''}{of}, {began:%Y-%m-%d %H:%M})"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return ""


def _require_same_run(
    folder: Path, command: str, parameters: tuple[tuple[str, Setting], ...]
) -> None:
    path = folder / RUN_FILE
    try:
        run = read_json(path)
        same = (run["command"], run["parameters"]) == (command, dict(parameters))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SaveConflictError(
            f"{folder} contains files but no readable {RUN_FILE}, so its run cannot be resumed: "
            "choose a new folder, or replace the files",
            remedies=(Remedy("overwrite"),),
        ) from error
    if not same:
        raise SaveConflictError(
            f"{folder} contains the results of a different run "
            f"({_list_changes(run, command, parameters)}): choose a new folder, or replace the "
            "files",
            remedies=(Remedy("overwrite"),),
        )


def _is_same_run(folder: Path, command: str, parameters: tuple[tuple[str, Setting], ...]) -> bool:
    try:
        _require_same_run(folder, command, parameters)
    except SaveConflictError:
        return False
    return True


def _list_changes(
    found: Mapping[str, Any], command: str, parameters: tuple[tuple[str, Setting], ...]
) -> str:
    if found["command"] != command:
        return f"the command was {found['command']}, but is now {command}"
    there = found["parameters"]
    earlier, now = there if isinstance(there, dict) else {}, dict(parameters)
    names = [name for name in {**earlier, **now} if earlier.get(name) != now.get(name)]
    return "; ".join(
        f"{name} {earlier.get(name) or 'not given'} there, {now.get(name) or 'not given'} here"
        for name in names
    )
