"""Import DICOM studies as cases in the MAMA-MIA layout, and record how they were imported."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import ScanTiming
from napari_mamamia.core.choices import Clock
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, Progress, listening, report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure, CaseWarning
from napari_mamamia.io.data_set import imported_case
from napari_mamamia.io.dicom.facts import ScannerFacts, read_facts, user_secret
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.pixels import common_type, fill_planes, needs_scaling
from napari_mamamia.io.dicom.slices import DYNAMIC_TIME, REFERENCE_TIME, Slice
from napari_mamamia.io.exam.exam import Exam
from napari_mamamia.io.exam.looks import blank_tails, require_values
from napari_mamamia.io.exam.phases import moments_of, read_scan_timing
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.dicom import finding

_INFO_NAMES: Final = (
    ("manufacturer", "scanner_manufacturer"),
    ("scanner_model", "scanner_model"),
    ("field_strength", "field_strength"),
    ("echo_time", "echo_time"),
    ("repetition_time", "repetition_time"),
    ("flip_angle", "flip_angle"),
    ("slice_thickness", "slice_thickness"),
)


_UNKNOWN_MOMENT: Final = "unknown: the element does not state which moment of a phase it refers to"
_MOMENTS: Final = {
    Clock.ACQUISITION_TIME.value: "start of each phase",  # DICOM PS3.3, C.7.10.1.1
    DYNAMIC_TIME: "start of each phase",
    REFERENCE_TIME: "moment most representative of each phase",  # DICOM PS3.3, C.7.6.16.2.2
    "": "unknown: no element gives times",
    Clock.CONTENT_TIME.value: (
        "unknown: the element gives the time of pixel creation, which is after each phase"
    ),
}
# Stream the planes of a phase into a volume file, with only a few planes in memory at a time.

_PART_BYTES: Final = 1 << 23
_LEAST_PLANES: Final = 8
"""Smallest number of planes read together, which is enough to keep the reading threads busy."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices made by the user or by the import; `phases` are the numbers of the kept phases.

    `scaling` is the DICOM element by which values were scaled, or "" for stored values.
    """

    clock_is_named: bool
    phases: tuple[int, ...]
    scaling: str


def clinical_record(
    case_id: str, grid: Grid, n_phases: int, times_s: Sequence[float] | None, facts: ScannerFacts
) -> CaseRecord:
    """Return a row of the clinical table, with columns named as in the MAMA-MIA table.

    Columns about the patient (age, menopause, pCR, ...) are empty.
    """
    slices, rows, columns = grid.shape
    other: dict[str, str | float | bool | None] = {
        "view": grid.acquisition_plane,
        "num_phases": n_phases,
        "image_rows": rows,
        "image_columns": columns,
        "num_slices": slices,
        "pixel_spacing": f"[{grid.spacing_mm[1]:.10g}, {grid.spacing_mm[2]:.10g}]",
        **facts.values,
    }
    if facts.acquisition_date:
        other["acquisition_date"] = facts.acquisition_date
    times = None if times_s is None else tuple(times_s)
    return CaseRecord(case_id, acquisition_times_s=times, other=MappingProxyType(other))


def patient_info(
    case_id: str,
    exam: Exam,
    grid: Grid,
    times_s: Sequence[float] | None,
    facts: ScannerFacts,
    choices: Choices,
    scan: ScanTiming,
) -> dict[str, Any]:
    """Return the content of ``patient_info_files/ID.json``.

    ``imaging_data`` has the keys of the MAMA-MIA files, and ``import`` describes how the phases
    were found. `scan` has the header values about the time axis. The content includes no file or
    folder names, because these may identify the patient.
    """
    imaging: dict[str, Any] = {
        "acquisition_times": None if times_s is None else list(times_s),
        **{theirs: facts.values[ours] for ours, theirs in _INFO_NAMES if ours in facts.values},
        "orientation": grid.orientation,
        "spacing_mm": [round(mm, 6) for mm in grid.spacing_mm],
    }
    if facts.acquisition_date:
        imaging["acquisition_date_shifted"] = facts.acquisition_date
    return {
        "patient_id": case_id,
        "imaging_data": imaging,
        "import": {
            "software": software_version(),
            "imported": now_utc(),
            "study_uid_remapped": facts.study_uid,
            "series_uids_remapped": list(facts.series_uids),
            "frame_of_reference_uid_remapped": facts.frame_uid,
            "clock": {**_describe_clock(exam), "named_by_user": choices.clock_is_named},
            "phases_kept": list(choices.phases),
            "timing": {
                "times_are": _MOMENTS.get(exam.choice.chosen.timed_by, _UNKNOWN_MOMENT),
                **asdict(moments_of([exam.stacks[k] for k in choices.phases])),
                **asdict(scan),
            },
            **({} if exam.joined is None else {"joined": asdict(exam.joined)}),
            "scaling": choices.scaling or "none: stored values",
            "series": [
                {**_describe_series(row), "evidence": _hide_description(row)} for row in exam.rows
            ],
            "warnings": [warning.text for warning in exam.warnings],
        },
    }


def _describe_clock(exam: Exam) -> dict[str, Any]:
    chosen = exam.choice.chosen
    return {
        "chosen": chosen.clock.value,
        "reason": chosen.reason,
        "timed_by": chosen.timed_by,
        "candidates": [
            {"clock": v.clock.value, "works": v.works, "plausible": v.is_plausible}
            for v in exam.choice.verdicts
        ],
    }


def describe_studies(studies: Sequence[finding.FoundStudy]) -> dict[str, object]:
    """Return JSON content that lists how each part of each study is used, and the problems."""
    return {
        "software": software_version(),
        "studies": [
            {
                "case_id": study.case_id,
                "problem": study.problem,
                "remedies": [asdict(remedy) for remedy in study.remedies],
                "times_s": None if study.exam is None else study.exam.times_s,
                "warnings": []
                if study.exam is None
                else [warning.text for warning in study.exam.warnings],
                "parts": [{**_describe_series(row), "sentence": row.fate} for row in study.rows],
            }
            for study in studies
        ],
    }


def _hide_description(row: SeriesRow) -> str:
    """Return the evidence without the description, which may contain the patient's name."""
    is_word = row.evidence.endswith("SeriesDescription")
    return "a word in SeriesDescription" if is_word else row.evidence


def _describe_series(row: SeriesRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "part": row.part,
        "selector": ",".join(selector.text for selector in row.selectors),
        "role": row.role.value,
        "evidence": row.evidence,
        "use": row.use.value,
        "images": row.n_images,
        "slices": row.n_slices,
        "phases": row.n_phases,
        "fate": row.short_fate,
    }


class PhasePlanes:
    """An iterable of a phase's planes, which are read on demand and flipped upright.

    After the last plane, `tails` has the positions at which planes are truncated. The memory of a
    plane is reused for a later plane.

    Parameters
    ----------
    slices
        The planes in the order of the stack.
    shape
        The shape ``(z, y, x)`` of the phase.
    dtype
        The data type of the values, which is a floating-point type for scaled values.
    turn
        The slice objects that flip ``(z, y, x)`` upright. The order of the planes is not changed.
    check
        A function that is called while planes are read; an exception stops the reading.
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
"""Largest number of phases that are read and written in parallel; few exams have more phases."""
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ImportedCase:
    """A case that was written; `kept` holds the values kept from the headers, by name."""

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
    source: Path, out: Path, case_id: str = "", settings: finding.ImportSettings | None = None
) -> ImportSummary:
    """Write each study of a DICOM folder or zip as a case of the data set `out`.

    If a single study cannot be imported, an error is raised. If one of several studies cannot be
    imported, it is recorded as a failure, and the other studies are written. A case is written
    completely or not at all. Voxels are stored with the rows from the bottom up (see `upright`), in
    the files' integer type, or as float32 if the headers scale the values.

    Parameters
    ----------
    source
        A folder, which is searched with its subfolders, or a zip archive. Neither is changed.
    out
        A data set in the MAMA-MIA layout, which is created if it does not exist. Its other cases
        are not changed.
    case_id
        The id of the case; for several studies, the prefix of ``_001``, ``_002`` and so on. If it
        is empty, the id is the name of each study's folder, which must not contain the patient's
        name.
    settings
        The settings of the import; None for the defaults.

    Raises
    ------
    FormatError, CaseError
        If the source or its only study cannot be imported; the message gives the reason.
    SaveConflictError
        If the case already exists and the settings do not allow replacing it.
    SaveError
        If a file cannot be written.
    """
    options = settings or finding.ImportSettings()
    imported_case.sweep_data_set(out)
    with finding.unpacked(source) as folder:
        studies = finding.find_studies(source, folder, case_id, options)
        imported_case.check_clinical_table(out, options.columns)
        there = {
            s.case_id for s in studies if imported_case.existing_case(out, s.case_id) is not None
        }
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


def import_study(
    study: finding.FoundStudy, out: Path, settings: finding.ImportSettings
) -> ImportedCase:
    """Write one study as a case of `out`; errors as in `import_dicom`."""
    exam = study.exam
    if exam is None:
        raise CaseError(study.problem, remedies=study.remedies)
    phases = finding.chosen_phases(exam, settings.phases)
    stacks = [exam.stacks[index] for index in phases]
    times_s = _shift_times(exam.times_s, phases)
    grid, turn = imported_case.upright(exam.grid)
    is_over = settings.existing is Existing.OVERWRITE
    with imported_case.placing(out, study.case_id, overwrite=is_over) as folder:
        written = _write_all(stacks, folder, study.case_id, grid, turn)
        uids = list(dict.fromkeys(p.header.series_uid for stack in stacks for p in stack))
        frames = list(dict.fromkeys(p.header.frame_of_reference for s in stacks for p in s))
        facts = read_facts(stacks[0][0].file, uids, user_secret(), settings.dates, frames)
        sources = [p.scaling.source for stack in stacks for p in stack if p.scaling.source]
        scaling = sources[0] if _is_scaled(stacks) else ""
        choices = Choices(settings.clock is not None, tuple(phases), scaling)
        scan = read_scan_timing(stacks[min(1, len(stacks) - 1)][0].file, stacks[0][0].file)
        info = patient_info(study.case_id, exam, grid, times_s, facts, choices, scan)
        imported_case.write_info(out, study.case_id, info, overwrite=is_over)
    record = clinical_record(study.case_id, grid, len(stacks), times_s, facts)
    warning = imported_case.add_clinical_row(out, record, settings.columns)
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


def _complete_row(study: finding.FoundStudy, out: Path, settings: finding.ImportSettings) -> None:
    """Write the clinical row of a case whose import was killed after the images."""
    exam = study.exam
    if exam is None:
        return
    phases = finding.chosen_phases(exam, settings.phases)
    grid, _ = imported_case.upright(exam.grid)
    facts = read_facts(exam.stacks[phases[0]][0].file, (), user_secret(), settings.dates)
    times_s = _shift_times(exam.times_s, phases)
    row = clinical_record(study.case_id, grid, len(phases), times_s, facts)
    imported_case.add_clinical_row(out, row, settings.columns)


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
    # The writing threads do not have the listener that stops the import, so they check this
    # event.
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
            n_bytes = imported_case.write_phase(folder, case_id, index, planes, grid)
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


@dataclass(frozen=True, slots=True)
class WantedStudy:
    """A study to import; `found` contains the chosen id and was checked with `settings`."""

    found: finding.FoundStudy
    settings: finding.ImportSettings


def import_studies(wanted: Sequence[WantedStudy], out: Path) -> ImportSummary:
    """Write each study as a case of the data set `out`, using headers that were already read.

    A study that cannot be imported is recorded as a failure, and the other studies are written. A
    case is written completely or not at all. A study whose files have changed since the inspection
    is not imported.

    Raises
    ------
    CaseError
        If an id is invalid, or two studies have the same id.
    FormatError
        If no row can be added to the clinical table of `out`.
    """
    by_id = {study.found.case_id: study for study in wanted}
    _require_ids([study.found.case_id for study in wanted])
    imported_case.check_clinical_table(out)  # This uses a column file next to the table.
    batch = for_each_case(list(by_id), lambda case_id: _import_study(by_id[case_id], out))
    return ImportSummary(batch.results, (), batch.failures)


def _import_study(study: WantedStudy, out: Path) -> ImportedCase:
    exam = study.found.exam
    for stack in () if exam is None else exam.stacks:
        for plane in (stack[0], stack[-1]):
            _require_unchanged(plane)
    return import_study(study.found, out, study.settings)


def _require_unchanged(piece: Slice) -> None:
    """Raise an error if the file of a plane has changed since the inspection."""
    now = read_slices(piece.file)
    if not isinstance(now, tuple) or piece not in now:
        raise FormatError(
            f"expected {piece.file} to be unchanged since it was read, but it has changed: open "
            "the folder again"
        )


def _require_ids(case_ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for case_id in case_ids:
        finding.require_id(case_id)
        if case_key(case_id) in seen:
            raise CaseError(
                f"expected each study to have a different id, but two have {case_id}: change one id"
            )
        seen.add(case_key(case_id))
