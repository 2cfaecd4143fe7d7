"""Import DICOM as cases in the MAMA-MIA layout: one study, or a folder of many."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Cancelled, Progress, listening, report_progress
from napari_mamamia.core.records import CaseFailure, CaseWarning
from napari_mamamia.io.data_set.imported_case import (
    add_clinical_row,
    check_clinical_table,
    existing_case,
    placing,
    sweep_data_set,
    upright,
    write_info,
    write_phase,
)
from napari_mamamia.io.dicom.facts import read_facts, user_secret
from napari_mamamia.io.dicom.pixels import common_type, fill_planes, needs_scaling
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.blanks import blank_tails, require_values
from napari_mamamia.io.exam.timing import read_scan_timing
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.dicom.finding import (
    FoundStudy,
    ImportSettings,
    chosen_phases,
    find_studies,
    unpacked,
)
from napari_mamamia.services.dicom.record import (
    Choices,
    clinical_record,
    patient_info,
)

# Stream the planes of a phase into a volume file, with a few planes in memory at a time.

_PART_BYTES: Final = 1 << 23
_LEAST_PLANES: Final = 8
"""Minimum number of planes read together, to keep the reading threads busy."""


class PhasePlanes:
    """An iterable of a phase's planes, read from their files on demand and flipped upright.

    After the last plane, `tails` holds the positions where planes are truncated. The memory of a
    plane is reused for a later plane.

    Parameters
    ----------
    slices
        The planes in the order of the stack.
    shape
        Shape ``(z, y, x)`` of the grid that the planes fill.
    dtype
        Type of the values; a floating-point type if they are scaled.
    turn
        The slice objects that flip ``(z, y, x)`` upright; the order of planes stays.
    check
        Called while planes are read; an exception ends the reading.
    """

    ndim: Final = 3

    def __init__(
        self,
        slices: Sequence[Slice],
        shape: tuple[int, int, int],
        dtype: np.dtype[Any],
        turn: tuple[slice, ...],
        check: Callable[[Progress], None],
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._slices = slices
        self._turn = turn
        self._check = check
        self._tails: list[NDArray[np.intp]] = []

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the planes, read in groups."""
        n_bytes = self.shape[1] * self.shape[2] * self.dtype.itemsize
        step = max(_LEAST_PLANES, _PART_BYTES // n_bytes)
        planes: NDArray[Any] = np.empty((step, *self.shape[1:]), dtype=self.dtype)
        for start in range(0, len(self._slices), step):
            slices = self._slices[start : start + step]
            plane = planes[: len(slices)]
            with listening(self._check):
                fill_planes(slices, plane)
            self._tails.append(blank_tails(plane))
            yield from plane[self._turn]

    @property
    def tails(self) -> NDArray[np.intp]:
        """The result of `blank_tails` for the phase."""
        return np.concatenate(self._tails)


_WRITERS: Final = 8
"""Maximum number of phases that are read and written in parallel: all phases of most exams."""
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ImportedCase:
    """One case that was written; `kept` are the values kept from the headers, by name."""

    case_id: str
    folder: Path
    shape: tuple[int, int, int]
    times_s: tuple[float, ...] | None
    clock: str
    scaling: str
    kept: tuple[tuple[str, object], ...]
    warnings: tuple[CaseWarning, ...]
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """The result of an import: written cases, ids that already existed, and failures."""

    imported: tuple[ImportedCase, ...]
    skipped: tuple[str, ...] = ()
    failures: tuple[CaseFailure, ...] = ()


def import_dicom(
    source: Path, out: Path, case_id: str = "", settings: ImportSettings | None = None
) -> ImportSummary:
    """Write each study of a DICOM folder or zip as a case of the data set `out`.

    A single study that is refused raises an error. Among several studies, a refused one is a
    failure and the others are written. A case is written completely or not at all. Voxels are
    stored with the rows from the bottom up (see `upright`), in the files' integer type, or as
    float32 if the headers scale them.

    Parameters
    ----------
    source
        A folder, searched with its subfolders, or a zip archive. It is only read.
    out
        Data set in the MAMA-MIA layout, created if it is missing; other cases in it stay.
    case_id
        Id of the case; for several studies the prefix of ``_001``, ``_002``, ... If it is empty,
        the id is the name of each study's folder, which must not contain the patient's name.
    settings
        Settings of the import; None for the defaults.

    Raises
    ------
    FormatError, CaseError
        If the source or its only study is refused; the message is the reason.
    SaveConflictError
        If the case already exists and the settings do not allow replacing it.
    SaveError
        If the system refuses to write.
    """
    options = settings or ImportSettings()
    sweep_data_set(out)
    with unpacked(source) as folder:
        studies = find_studies(source, folder, case_id, options)
        check_clinical_table(out, options.columns)
        there = {s.case_id for s in studies if existing_case(out, s.case_id) is not None}
        skipped = sorted(there) if options.existing is Existing.RESUME else []
        for study in studies:
            if study.case_id in skipped and study.exam is not None:
                _complete_row(study, out, options)
        waiting = {study.case_id: study for study in studies if study.case_id not in skipped}
        if len(studies) == 1 and waiting:
            case = import_study(studies[0], out, options)
            return ImportSummary((case,))
        batch = for_each_case(list(waiting), lambda name: import_study(waiting[name], out, options))
        return ImportSummary(batch.results, tuple(skipped), batch.failures)


def import_study(study: FoundStudy, out: Path, settings: ImportSettings) -> ImportedCase:
    """Write one study as a case of `out`; errors as in `import_dicom`."""
    exam = study.exam
    if exam is None:
        raise CaseError(study.problem, remedies=study.remedies)
    phases = chosen_phases(exam, settings.phases)
    stacks = [exam.stacks[index] for index in phases]
    times_s = _shift_times(exam.times_s, phases)
    grid, turn = upright(exam.grid)
    is_over = settings.existing is Existing.OVERWRITE
    with placing(out, study.case_id, overwrite=is_over) as folder:
        written = _write_all(stacks, folder, study.case_id, grid, turn)
        uids = list(dict.fromkeys(p.header.series_uid for stack in stacks for p in stack))
        frames = list(dict.fromkeys(p.header.frame_of_reference for s in stacks for p in s))
        facts = read_facts(stacks[0][0].file, uids, user_secret(), settings.dates, frames)
        sources = [p.scaling.source for stack in stacks for p in stack if p.scaling.source]
        scaling = sources[0] if _is_scaled(stacks) else ""
        choices = Choices(settings.clock is not None, tuple(phases), scaling)
        scan = read_scan_timing(stacks[min(1, len(stacks) - 1)][0].file, stacks[0][0].file)
        info = patient_info(study.case_id, exam, grid, times_s, facts, choices, scan)
        write_info(out, study.case_id, info, overwrite=is_over)
    record = clinical_record(study.case_id, grid, len(stacks), times_s, facts)
    warning = add_clinical_row(out, record, settings.columns)
    columns = (*record.other.items(), ("study_uid (remapped)", facts.study_uid))
    return ImportedCase(
        study.case_id,
        out / "images" / study.case_id,
        grid.shape,
        times_s,
        exam.choice.chosen.text,
        scaling,
        columns,
        (*exam.warnings, CaseWarning(warning)) if warning else exam.warnings,
        sum(written),
    )


def _complete_row(study: FoundStudy, out: Path, settings: ImportSettings) -> None:
    """Write the clinical row of a case whose import was killed after the images."""
    exam = study.exam
    if exam is None:
        return
    phases = chosen_phases(exam, settings.phases)
    grid, _ = upright(exam.grid)
    facts = read_facts(exam.stacks[phases[0]][0].file, (), user_secret(), settings.dates)
    times_s = _shift_times(exam.times_s, phases)
    row = clinical_record(study.case_id, grid, len(phases), times_s, facts)
    add_clinical_row(out, row, settings.columns)


def _shift_times(
    times_s: Sequence[float] | None, wanted: Sequence[int]
) -> tuple[float, ...] | None:
    if times_s is None:
        return None
    return tuple(round(times_s[index] - times_s[wanted[0]], 3) for index in wanted)


def _is_scaled(stacks: Sequence[Sequence[Slice]]) -> bool:
    return needs_scaling(plane for stack in stacks for plane in stack)


def _write_all(
    stacks: Sequence[Sequence[Slice]], folder: Path, case_id: str, grid: Any, turn: Any
) -> list[int]:
    """Write the phases in threads; return the size of each phase in bytes."""
    stored = common_type(plane for stack in stacks for plane in stack)
    dtype = np.dtype(np.float32) if _is_scaled(stacks) else stored
    # The writing threads do not receive the listener that stops the import, but check this event.
    stop = threading.Event()
    counts = [0] * len(stacks)
    tails: dict[int, NDArray[np.intp]] = {}
    total = sum(len(stack) for stack in stacks)

    def check(_: Progress) -> None:
        if stop.is_set():
            raise Cancelled

    def write(index: int) -> int:
        def report(progress: Progress) -> None:
            counts[index] = progress.done
            check(progress)

        planes = PhasePlanes(stacks[index], grid.shape, dtype, turn, check)
        with listening(report):
            n_bytes = write_phase(folder, case_id, index, planes, grid)
        counts[index] = len(stacks[index])
        tails[index] = planes.tails
        return n_bytes

    with ThreadPoolExecutor(_WRITERS) as threads:
        try:
            futures = [threads.submit(write, index) for index in range(len(stacks))]
            waiting: set[Future[Any]] = set(futures)
            while waiting:
                finished, waiting = wait(waiting, _POLL_S, return_when="FIRST_EXCEPTION")
                for future in finished:
                    future.result()
                report_progress(sum(counts), total, f"Importing {case_id}")
            require_values(stacks, [tails[index] for index in range(len(stacks))])
            return [future.result() for future in futures]
        finally:
            stop.set()
            threads.shutdown(wait=True, cancel_futures=True)
