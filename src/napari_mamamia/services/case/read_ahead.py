"""The next case read before it is asked for: shown at once, and only while its files are the same.

Masks are not read ahead: they are what changes while a list is worked through, and take 10 ms.
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
"""Device, number, size and times in ns of each file; another one means that it was written."""

_SHARE: Final = 4
"""What is read ahead takes at most this part of the memory that is free. Ours."""
_SETTLED_NS: Final = 2_000_000_000
"""A file written since so short a time may change again without another time: FAT's clock ticks in
2 s. Source: Microsoft, File Times."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseAhead:
    """A case that was read ahead, with the phase that is shown first or with all.

    `phase` is that phase, `states` are those of the files before they were read. `filling` is held
    while more phases are read into it.
    """

    case: Case
    phase: int
    files: CaseFiles
    record: CaseRecord | None
    states: FileStates
    filling: threading.Lock = field(default_factory=threading.Lock)


def read_ahead(files: CaseFiles, record: CaseRecord | None = None) -> CaseAhead | None:
    """Read the phase of a case that is shown first; None where it must not be kept.

    That is where memory is short, or a file was written in the last two seconds.

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
    """Read the other phases too where memory is free; else return `ahead`."""
    if not _is_room_for(ahead.case.signal.nbytes):
        return ahead
    with ahead.filling:
        report_progress(0, 1, "Reading ahead")  # cancelled before it began: nothing is touched
        return replace(ahead, case=load_remaining(ahead.case, ahead.files))


def is_current(ahead: CaseAhead, files: CaseFiles, record: CaseRecord | None) -> bool:
    """Whether opening these files now would give what was read ahead.

    Waits until nothing more is read into it, which whoever asks has cancelled.
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
    # a copy may keep the time of writing (cp -p), no program keeps that of the change
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _is_room_for(n_bytes: int) -> bool:
    free = free_memory_bytes()
    return free is not None and n_bytes * _SHARE <= free
