"""A case's report as DICOM: segmentation of its lesions, structured report, key images."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.answers import Side
from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.form import Form
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import software_version
from napari_mamamia.io.data_set.patient_info import read_patient_info
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import user_secret
from napari_mamamia.io.dicom.pseudonym import Pseudonym
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.seg.codes import Code, load_highdicom
from napari_mamamia.io.seg.writer import write_segmentation
from napari_mamamia.io.sr.documents import (
    CodedGroup,
    CodedNumber,
    CodedReport,
    CodedWord,
    write_key_objects,
    write_measurement_report,
)
from napari_mamamia.reviewing.form_values import AnswerRow
from napari_mamamia.services.export.masks import DrawnMask
from napari_mamamia.services.export.seg import dicom_phases, segment_meaning
from napari_mamamia.services.report.case_page import describe_mask
from napari_mamamia.services.report.measures import Measure
from napari_mamamia.services.report.reading import NO_MASK, CaseReading, Lesion, list_readers
from napari_mamamia.services.review.export.answer_tables import list_answer_rows

FOLDER: Final = "dicom"
IDENTIFIED: Final = "dicom_identified"
"""Where objects with the patient's name lie, apart from those that may be passed on."""
_COURSE_CODES: Final[dict[str, Code]] = {
    "persistent": ("130597", "DCM", "Persistent"),
    "plateau": ("130598", "DCM", "Plateau"),
    "washout": ("130599", "DCM", "Washout"),
}
_COURSE: Final[Code] = ("delayed_course", "99MAMAMIA", "Delayed course of the contrast curve")


@dataclass(frozen=True, slots=True)
class DicomChoice:
    """How DICOM objects are made.

    `study` is the folder of the studies that cases were imported from; `is_identified` writes the
    patient's own name and UIDs, as a PACS needs them; `maker` says how masks were made where no
    provenance tells.
    """

    study: Path | None = None
    is_identified: bool = False
    maker: SegmentMaker = SegmentMaker.FROM_PROVENANCE
    n_cases: int = 1


def require_dicom(choice: DicomChoice) -> None:
    """Refuse DICOM where it cannot be made at all.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    CaseError
        If the folder of the studies is not there.
    """
    load_highdicom()
    if choice.study is not None and not choice.study.is_dir():
        raise CaseError(
            f"expected a DICOM folder at {choice.study} (--study), but there is none: check the "
            "path"
        )


def write_structured(
    reading: CaseReading,
    choice: DicomChoice,
    out: Path,
    form: Form | None = None,
    *,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write ``ID_seg.dcm``, ``ID_sr.dcm`` and ``ID_ko.dcm`` as far as there is something to say.

    Raises
    ------
    CaseError
        If the case did not come from DICOM, its study is not there, or it was joined of two.
    GridMismatchError
        If the study does not lie where the case does.
    """
    report_progress(0, 3, "Writing DICOM")
    case_id = reading.case.case_id
    phases = _find_phases(reading, choice)
    source = phases[min(1, len(phases) - 1)]
    grid = read_phase_header(source).grid
    pseudonym = None if choice.is_identified else Pseudonym(case_id, user_secret())
    folder = out / (IDENTIFIED if choice.is_identified else FOLDER)
    files: list[Path] = []
    segmentation = None
    shared: dict[str, Any] = {"pseudonym": pseudonym, "overwrite": overwrite}
    if reading.lesions:
        segmentation = folder / f"{case_id}_seg.dcm"
        _write_lesions(reading, choice, source, grid, segmentation, shared)
        files.append(segmentation)
    report_progress(1, 3, "Writing DICOM")
    groups = tuple(_list_groups(reading, form))
    if groups:
        files.append(folder / f"{case_id}_sr.dcm")
        reader = ", ".join(list_readers(reading.drawn))
        report = CodedReport(groups, reader, software_version())
        write_measurement_report(report, source, segmentation, files[-1], **shared)
    report_progress(2, 3, "Writing DICOM")
    places = _list_key_places(reading, grid)
    if places:
        files.append(folder / f"{case_id}_ko.dcm")
        marked = "Key images marked by readers"
        words = marked if reading.key_images else "Largest slices of lesions"
        words = f"{words}. Mask: {describe_mask(reading.mask_name, reading.provenance)}."
        write_key_objects(source, places, words, files[-1], **shared)
    return tuple(files)


def _find_phases(reading: CaseReading, choice: DicomChoice) -> tuple[PhaseSource, ...]:
    info = reading.files.info
    if info is not None and read_patient_info(info).joined:
        raise CaseError(
            f"the case {reading.case.case_id} was joined of two breasts with images of their own: "
            "a DICOM report of both is not written; export its segmentations with mamamia export"
        )
    phases = dicom_phases(reading.files, choice.study, choice.n_cases)
    if not phases:
        raise CaseError(f"expected DICOM phases of {reading.case.case_id}, got none: check --study")
    return phases


def _write_lesions(
    reading: CaseReading,
    choice: DicomChoice,
    source: PhaseSource,
    grid: Grid,
    path: Path,
    shared: dict[str, Any],
) -> None:
    case = reading.case
    labels = np.zeros(case.grid.shape, np.uint8)
    for number, lesion in enumerate(reading.lesions, start=1):
        labels[lesion.voxels] = number
    history = reading.provenance
    drawn = DrawnMask(reading.mask_name, labels, case.grid, history, history is not NO_MASK)
    names = [(number, "lesion") for number in range(1, len(reading.lesions) + 1)]
    meaning = segment_meaning(drawn, choice.maker)
    software = software_version()
    write_segmentation(
        labels, names, case.grid, source, grid, meaning, path, software=software, **shared
    )


def _list_groups(reading: CaseReading, form: Form | None) -> Iterator[CodedGroup]:
    """Yield what is said of each lesion of the mask, of what was drawn, and of the exam."""
    answers = list_answer_rows(form, reading.answers)
    for number, lesion in enumerate(reading.lesions, start=1):
        name = f"lesion {lesion.facts.name}"
        words = [_code_answer(one) for one in answers if _is_of(one, "lesion", lesion.facts.name)]
        side = _side_of(lesion)
        yield CodedGroup(
            name,
            _code_measures(lesion.measures),
            (*_code_course(lesion), *filter(None, words)),
            number,
            side,
        )
    for number, drawn in enumerate(reading.drawn, start=1):
        if drawn.measures:
            name = f"{drawn.item.kind} {number} of {drawn.item.reader}"[:64]
            yield CodedGroup(name, _code_measures(drawn.measures))
    for scope, place in dict.fromkeys((one.scope, one.place) for one in answers):
        if scope != "lesion":
            words = [_code_answer(one) for one in answers if _is_of(one, scope, place)]
            whole = tuple(filter(None, words))
            if whole:
                yield CodedGroup(f"{scope} {place}".strip(), (), whole, side=place)


def _side_of(lesion: Lesion) -> str:
    side = lesion.facts.side
    return side.value if side in (Side.RIGHT, Side.LEFT) else ""


def _is_of(one: AnswerRow, scope: str, place: str) -> bool:
    return (one.scope, one.place) == (scope, place)


def _code_measures(measures: tuple[Measure, ...]) -> tuple[CodedNumber, ...]:
    """Return the numbers that are defined."""
    return tuple(
        CodedNumber((one.code.value, one.code.scheme, one.name), one.value, one.unit)
        for one in measures
        if np.isfinite(one.value)
    )


def _code_course(lesion: Lesion) -> tuple[CodedWord, ...]:
    code = _COURSE_CODES.get(lesion.facts.course)
    return () if code is None else (CodedWord(_COURSE, code),)


def _code_answer(one: AnswerRow) -> CodedWord | None:
    """Return a chosen term with its first public code, else in the private scheme; None for text.

    Numbers that were typed stay in page and table: they have no unit that the report could name.
    """
    if not one.known or one.value == "" or (one.text == one.value and not one.codes):
        return None
    concept = _first_code(one.question_codes) or ("99MAMAMIA", one.field)
    value = _first_code(one.codes) or ("99MAMAMIA", f"{one.field}.{one.value}")
    return CodedWord(
        (concept[1], concept[0], (one.question or one.field)[:64]),
        (value[1], value[0], one.text[:64]),
    )


def _first_code(text: str) -> tuple[str, str] | None:
    scheme, colon, value = text.split(" ")[0].partition(":")
    return (scheme, value) if colon else None


def _list_key_places(reading: CaseReading, grid: Grid) -> list[int]:
    """Return the numbers of the source's slices that hold key images, else the largest slices."""
    points = [one.points_mm[0] for one in reading.key_images]
    if not points:
        points = [
            tuple(reading.case.grid.to_world_mm(lesion.size.ends).mean(axis=0))
            for lesion in reading.lesions
            if lesion.size.ends
        ]
    places = [int(np.floor(grid.to_voxel(point)[0] + 0.5)) for point in points]
    return [place for place in dict.fromkeys(places) if 0 <= place < grid.shape[0]]
