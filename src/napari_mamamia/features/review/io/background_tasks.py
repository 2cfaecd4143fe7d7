"""What is done in a study's folder: errands, which keep nothing but what they return.

One that was given up since the share was silent may still come to its end: done twice each of them
is what it is done once.
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
    """Return what the system says of the study's file; OSError where it is away."""
    return (folder / STUDY_NAME).stat()


def read_study_events(folder: Path, origin: str, before: EventLog) -> tuple[bool, EventLog]:
    """Return whether the study's file is the one of `origin`, and all events with what is wrong."""
    is_same = hash_study(folder) == origin
    log = read_events(folder / EVENTS, origin, before)
    if is_same:
        return True, log
    text = "it is not the file that this program opened: somebody changed it"
    return False, replace(log, problems=(EventProblem(STUDY_NAME, text), *log.problems))


def require_same_study(
    folder: Path, origin: str, before: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """Return what tells the study's file from a changed one without reading it.

    Raises
    ------
    OSError
        If the folder holds another study than before.
    """
    status = stat_study(folder)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
    if stamp != before and hash_study(folder) != origin:
        raise SaveError(
            f"{folder / STUDY_NAME} is not the file that this program opened: nothing is "
            "sent there; what you do is kept on this computer"
        )
    return stamp


def read_waiting(folder: Path) -> dict[str, bytes]:
    """Return the whole lines of each file of events that waits on this computer, by its name."""
    lines = {}
    for path in sorted(folder.rglob("*.jsonl")):
        with suppress(FileNotFoundError):  # another window sent it and is done with it
            whole = path.read_bytes()
            lines[path.relative_to(folder).as_posix()] = whole[: whole.rfind(b"\n") + 1]
    return lines


def send_all(
    home: Path, outbox: Mapping[str, bytes], sent: Mapping[str, int], folder: Path
) -> tuple[dict[str, int], str]:
    """Bring a study up to what waits on this computer, masks first.

    Returns
    -------
    tuple
        How many bytes of each file the study has now, and what was refused, "" for nothing.
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
    """Bring the study's copy of one file of this computer up to it.

    Raises
    ------
    OSError
        If the share refuses, or its copy is not the beginning of ours: then it is left alone.
    """
    with AppendFile(path, keep=True) as there:
        with open_plain(there.path) as stream:
            before = stream.read()
        if not whole.startswith(before):
            raise SaveError(
                f"expected {there.path} to be what this computer sent, but it goes on "
                "otherwise: somebody copied the study or changed the file; keep both"
            )
        if len(whole) > len(before):
            there.append(whole[len(before) :])
            there.sync(every_s=0.0)


def find_mask(path: Path, sha256: str) -> bytes | None:
    """Return the bytes of a mask's file, None for none; FormatError where they were changed."""
    return read_mask(path, sha256) if path.exists() else None


def list_masks_in(folder: Path) -> frozenset[str]:
    """Return the SHA-256 of the masks in a folder, going by their names; none where it is missing.

    Not by `glob`, which takes a folder that cannot be read for an empty one (Python 3.13): readings
    would have no mask, and a status say that nobody has read.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return frozenset()
    return frozenset(name.removesuffix(MASK_SUFFIX) for name in names if name.endswith(MASK_SUFFIX))


def list_masks_of_study(folder: Path) -> frozenset[str]:
    """Return the masks of a study that is there; OSError where it is away or cannot be read."""
    stat_study(folder)
    return list_masks_in(folder / MASKS)
