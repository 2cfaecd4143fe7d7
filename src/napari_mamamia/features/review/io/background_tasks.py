"""Background tasks on a study's folder: stateless functions of the folder.

A task that was abandoned because the share did not answer may still finish later. Therefore running
a task twice has the same result.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.features.review.io.client_files import EVENTS
from napari_mamamia.features.review.io.mask_files import read_mask, send_masks
from napari_mamamia.features.review.io.study_file import STUDY_NAME, hash_study
from napari_mamamia.io.files.append_file import AppendFile
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.workspace.event_store import EventLog, EventProblem, read_events
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

MASKS: Final = "masks"


def stat_study(folder: Path) -> os.stat_result:
    """Return the file status of the study file; OSError if the share is unreachable."""
    return (folder / STUDY_NAME).stat()


def read_study_events(folder: Path, origin: str, before: EventLog) -> tuple[bool, EventLog]:
    """Return all events with their problems, and whether the study file has the hash `origin`."""
    is_same = hash_study(folder) == origin
    log = read_events(folder / EVENTS, origin, before)
    if is_same:
        return True, log
    text = "the study file was changed after this program opened it"
    return False, replace(log, problems=(EventProblem(STUDY_NAME, text), *log.problems))


def require_same_study(
    folder: Path, origin: str, before: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """Return inode, size and time of the study file, to detect a change without reading it.

    Raises
    ------
    OSError
        If the folder holds a different study than before.
    """
    status = stat_study(folder)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
    if stamp != before and hash_study(folder) != origin:
        raise SaveError(
            f"{folder / STUDY_NAME} was changed after this program opened it: nothing is sent "
            "there; your work stays on this computer"
        )
    return stamp


def read_waiting(folder: Path) -> dict[str, bytes]:
    """Return the complete lines of each unsent event file on this computer, by file name."""
    lines = {}
    for path in sorted(folder.rglob("*.jsonl")):
        with suppress(FileNotFoundError):  # another window has sent and removed the file
            whole = path.read_bytes()
            lines[path.relative_to(folder).as_posix()] = whole[: whole.rfind(b"\n") + 1]
    return lines


def send_all(
    home: Path, outbox: Mapping[str, bytes], sent: Mapping[str, int], folder: Path
) -> tuple[dict[str, int], str]:
    """Send waiting masks to the study, then waiting events.

    Returns
    -------
    tuple
        Number of bytes of each file that the study has, and the error message, "" for none.
    """
    trouble = send_masks(home / MASKS, folder / MASKS)
    lengths: dict[str, int] = {}
    for name, whole in outbox.items():
        report_progress(len(lengths), len(outbox), "Sending")
        try:
            is_known = sent.get(name) == len(whole) and (folder / EVENTS / name).exists()
            if whole and not is_known:
                _send_lines(folder / EVENTS / name, whole)
            lengths[name] = len(whole)
        except OSError as error:
            trouble = str(error)
    return lengths, trouble


def _send_lines(path: Path, whole: bytes) -> None:
    """Append the missing lines to the study's copy of an event file of this computer.

    Raises
    ------
    OSError
        If the share refuses, or its copy differs from the local file; then nothing is written.
    """
    with AppendFile(path, keep=True) as there:
        with open_plain(there.path) as stream:
            before = stream.read()
        if not whole.startswith(before):
            raise SaveError(
                f"expected {there.path} to hold what this computer sent, but it differs: somebody "
                "copied the study or changed the file; keep both"
            )
        if len(whole) > len(before):
            there.append(whole[len(before) :])
            there.sync(every_s=0.0)


def find_mask(path: Path, sha256: str) -> bytes | None:
    """Return the bytes of a mask file, None if missing; raise `FormatError` if it was changed."""
    return read_mask(path, sha256) if path.exists() else None


def list_masks_in(folder: Path) -> frozenset[str]:
    """Return the SHA-256 of the masks in a folder by file name; none if the folder is missing.

    `glob` is not used because it returns nothing for an unreadable folder (Python 3.13): all
    readings would then seem to lack their mask.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return frozenset()
    return frozenset(name.removesuffix(MASK_SUFFIX) for name in names if name.endswith(MASK_SUFFIX))


def list_masks_of_study(folder: Path) -> frozenset[str]:
    """Return the SHA-256 of a study's masks; raise OSError if its folder cannot be read."""
    stat_study(folder)
    return list_masks_in(folder / MASKS)
