"""Read the next case in advance: it opens at once if its files are still the same.

Masks are not read in advance: they change during the work on a list, and take 10 ms.
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
"""Device, number, size and times in ns of each file; another state means that it was written."""

_SHARE: Final = 4
"""Cases read in advance use at most this fraction (1 / value) of the free memory. Our choice."""
_SETTLED_NS: Final = 2_000_000_000
"""Age in ns below which a file may change again without a new time: FAT's clock ticks every 2 s.
Source: Microsoft, File Times.
"""


@dataclass(frozen=True, slots=True, eq=False)
class CaseAhead:
    """A case that was read in advance, with the phase that is shown first or with all.

    `phase` is that phase, `states` are those of the files before they were read. `filling` is
    locked while more phases are read into it.
    """

    case: Case
    phase: int
    files: CaseFiles
    record: CaseRecord | None
    states: FileStates
    filling: threading.Lock = field(default_factory=threading.Lock)


def read_ahead(files: CaseFiles, record: CaseRecord | None = None) -> CaseAhead | None:
    """Read the phase of a case that is shown first; None if it must not be kept.

    That is if memory is short, or a file was written in the last two seconds.

    Raises
    ------
    CaseError, FormatError
        As `open_case`.
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
    """Read the other phases too if memory is free; else return `ahead`."""
    if not _is_room_for(ahead.case.signal.nbytes):
        return ahead
    with ahead.filling:
        report_progress(0, 1, "Reading ahead")  # cancelled before it began: nothing is touched
        return replace(ahead, case=load_remaining(ahead.case, ahead.files))


def is_current(ahead: CaseAhead, files: CaseFiles, record: CaseRecord | None) -> bool:
    """Return whether opening these files now would give the case that was read in advance.

    Waits until reading into it has stopped; the caller has cancelled that.
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
    # a copy may keep the modification time (cp -p), but no program keeps the change time
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _is_room_for(n_bytes: int) -> bool:
    free = free_memory_bytes()
    return free is not None and n_bytes * _SHARE <= free
