"""Write the metadata of an import: the patient info file and the clinical row."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.case import ScanTiming
from napari_mamamia.core.choices import Clock
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.io.dicom.facts import ScannerFacts
from napari_mamamia.io.dicom.slices import DYNAMIC_TIME, REFERENCE_TIME
from napari_mamamia.io.exam.exam import Exam
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.io.exam.timing import moments_of
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.services.dicom.finding import FoundStudy

_INFO_NAMES: Final = (
    ("manufacturer", "scanner_manufacturer"),
    ("scanner_model", "scanner_model"),
    ("field_strength", "field_strength"),
    ("echo_time", "echo_time"),
    ("repetition_time", "repetition_time"),
    ("flip_angle", "flip_angle"),
    ("slice_thickness", "slice_thickness"),
)


_UNKNOWN_MOMENT: Final = "unknown: the element does not say which moment of a phase it is"
_MOMENTS: Final = {
    Clock.ACQUISITION_TIME.value: "start of each phase",  # DICOM PS3.3, C.7.10.1.1
    DYNAMIC_TIME: "start of each phase",
    REFERENCE_TIME: "moment most representative of each phase",  # DICOM PS3.3, C.7.6.16.2.2
    "": "unknown: no element gives times",
    Clock.CONTENT_TIME.value: "unknown: when the pixels were made, after each phase",
}


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of the user or the import; `phases` are the numbers of the kept phases.

    `scaling` is the DICOM element by which values were scaled, "" if they are as stored.
    """

    clock_is_named: bool
    phases: tuple[int, ...]
    scaling: str


def clinical_record(
    case_id: str, grid: Grid, n_phases: int, times_s: Sequence[float] | None, facts: ScannerFacts
) -> CaseRecord:
    """Return the row of the clinical table, with columns named as in the MAMA-MIA table.

    Columns about the patient (age, menopause, pCR, ...) stay empty.
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

    ``imaging_data`` has the keys of MAMA-MIA's files; ``import`` describes how the phases were
    found. `scan` holds the header values about the time axis. The content names no file or folder,
    because such names may identify the patient.
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


def write_looked(studies: Sequence[FoundStudy], path: Path) -> Path:
    """Write as JSON how an import used each part of each study, with the problems.

    Raises
    ------
    SaveError
        If the system refuses to write.
    """
    content = {
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
    write_json(content, path, overwrite=True)
    return path


def _hide_description(row: SeriesRow) -> str:
    """Return the evidence without words of a description, which may hold the patient's name."""
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
