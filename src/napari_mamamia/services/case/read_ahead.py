"""Read the next case in advance, so that it opens at once if its files have not changed.

Masks are not read in advance, because they change during the work and can be read in 10 ms.
"""

import threading
import time
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Final, TypeAlias

from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.program.system import free_memory_bytes
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.case.open_case import load_remaining, open_case

FileStates: TypeAlias = tuple[tuple[int, ...], ...]
"""Device, inode, size and times in ns of each file; any difference means a changed file."""

_SHARE: Final = 4
"""Cases that are read in advance use at most 1/4 of the free memory. Our choice."""
_SETTLED_NS: Final = 2_000_000_000
"""File age in ns below which a change may leave the time equal; FAT times have steps of 2 s."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseAhead:
    """A case that was read in advance, with its first displayed phase or all phases.

    `phase` is the first displayed phase, and `states` are the states of the files before they were
    read. `filling` is locked while further phases are read into the case.
    """

    case: Case
    phase: int
    files: CaseFiles
    record: CaseRecord | None
    states: FileStates
    filling: threading.Lock = field(default_factory=threading.Lock)


def read_ahead(files: CaseFiles, record: CaseRecord | None = None) -> CaseAhead | None:
    """Read the first displayed phase of a case, or return None if the case must not be kept.

    A case must not be kept if memory is short, or a file was written in the last two seconds.

    Raises
    ------
    CaseError, FormatError
        As in `open_case`.
    """
    if files.problems or not files.phases:
        return None
    states = _states_of(files)
    newest = max(time_ns for state in states for time_ns in state[-2:])
    header = read_phase_header(files.phases[0])
    n_bytes = prod(header.grid.shape) * header.dtype.itemsize
    if time.time_ns() - newest < _SETTLED_NS or not _is_room_for(n_bytes):
        return None
    case = open_case(files, record)
    shown = next(phase.index for phase in case.phases if phase.loaded)
    return CaseAhead(case, shown, files, record, states)


def read_rest_ahead(ahead: CaseAhead) -> CaseAhead:
    """Also read the other phases if enough memory is free; otherwise return `ahead` unchanged."""
    if not _is_room_for(ahead.case.signal.nbytes):
        return ahead
    with ahead.filling:
        report_progress(
            0, 1, "Reading ahead"
        )  # The work was cancelled before it began, so nothing is changed.
        return replace(ahead, case=load_remaining(ahead.case, ahead.files))


def is_current(ahead: CaseAhead, files: CaseFiles, record: CaseRecord | None) -> bool:
    """Return whether a case that was read in advance still matches the files on disk.

    This function waits until reading into the case, which the caller has cancelled, has stopped.
    """
    with ahead.filling:
        try:
            return (files, record, _states_of(files)) == (ahead.files, ahead.record, ahead.states)
        except OSError:
            return False


def _states_of(files: CaseFiles) -> FileStates:
    info = [] if files.info is None else [files.info]
    paths = dict.fromkeys([*info, *(path for phase in files.phases for path in phase.files)])
    return tuple(map(_state_of, paths))


def _state_of(path: Path) -> tuple[int, ...]:
    # A copy may keep the modification time (cp -p), but no program preserves the change time.
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _is_room_for(n_bytes: int) -> bool:
    free = free_memory_bytes()
    return free is not None and n_bytes * _SHARE <= free
