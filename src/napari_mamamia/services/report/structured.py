"""Write case reports as DICOM: segmentation of the lesions, structured report and key images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.answers import Side
from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.form import PRIVATE_SCHEME, FieldScope
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import software_version
from napari_mamamia.findings.form_values import AnswerRow
from napari_mamamia.io.data_set.patient_info import read_patient_info
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import user_secret
from napari_mamamia.io.dicom.pseudonym import Pseudonym
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.seg.codes import Code, load_highdicom
from napari_mamamia.io.seg.writer import write_segmentation
from napari_mamamia.io.sr.documents import (
    UNITS,
    CodedGroup,
    CodedNumber,
    CodedReport,
    CodedWord,
    write_key_objects,
    write_measurement_report,
)
from napari_mamamia.services.export.plan import DrawnMask
from napari_mamamia.services.export.seg import dicom_phases, segment_meaning
from napari_mamamia.services.report.case_page import describe_mask
from napari_mamamia.services.report.measures import Measure
from napari_mamamia.services.report.reading import NO_MASK, CaseReading, Lesion, list_readers

FOLDER: Final = "dicom"
IDENTIFIED: Final = "dicom_identified"
"""Folder of objects with the patient's name, separate from objects that can be shared."""
_MEANING: Final = 64
"""Maximum length of a code meaning in DICOM (VR LO)."""


@dataclass(frozen=True, slots=True)
class DicomChoice:
    """Options of the DICOM objects.

    `study` is the folder of the imported DICOM studies. With `is_identified`, the patient's own
    name and UIDs are written, which a PACS needs. `maker` states how masks were made if the
    provenance is unknown.
    """

    study: Path | None = None
    is_identified: bool = False
    maker: SegmentMaker = SegmentMaker.FROM_PROVENANCE
    n_cases: int = 1


def require_dicom(choice: DicomChoice) -> None:
    """Raise an error if DICOM output cannot be made.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    CaseError
        If the folder of the studies does not exist.
    """
    load_highdicom()
    if choice.study is not None and not choice.study.is_dir():
        raise CaseError(
            f"the DICOM folder {choice.study} does not exist: check the path",
            remedies=(Remedy("study", ("DICOM_FOLDER",)),),
        )


def write_structured(
    reading: CaseReading,
    choice: DicomChoice,
    out: Path,
    *,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write ``ID_seg.dcm``, ``ID_sr.dcm`` and ``ID_ko.dcm``, if they have content.

    Raises
    ------
    CaseError
        If the case was not imported from DICOM, joins two breasts, or its study is missing.
    GridMismatchError
        If the study and the case differ in position.
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
    groups = tuple(_list_groups(reading))
    if groups:
        files.append(folder / f"{case_id}_sr.dcm")
        people = dict.fromkeys((reading.described.reader, *list_readers(reading.drawn)))
        report = CodedReport(
            groups,
            ", ".join(filter(None, people)),
            software_version(),
            is_complete=not reading.described.missing,
        )
        write_measurement_report(report, source, segmentation, files[-1], **shared)
    report_progress(2, 3, "Writing DICOM")
    places = _list_key_places(reading, grid)
    if places:
        files.append(folder / f"{case_id}_ko.dcm")
        parts = {
            "key images marked by readers": reading.key_images,
            "largest slices of lesions": reading.lesions,
        }
        words = " and ".join(name for name, some in parts.items() if some).capitalize()
        words = f"{words}. Mask: {describe_mask(reading.mask_name, reading.provenance)}."
        write_key_objects(source, places, words, files[-1], **shared)
    return tuple(files)


def list_structured(out: Path, case_id: str) -> tuple[Path, ...]:
    """Return the possible paths of a case's DICOM objects, whether or not they exist."""
    kinds = ("seg", "sr", "ko")
    folders = (FOLDER, IDENTIFIED)
    return tuple(out / folder / f"{case_id}_{kind}.dcm" for folder in folders for kind in kinds)


def _find_phases(reading: CaseReading, choice: DicomChoice) -> Sequence[PhaseSource]:
    info = reading.files.info
    if info is not None and read_patient_info(info).joined:
        raise CaseError(
            f"expected a case from one series, but {reading.case.case_id} joins separate images "
            "of two breasts: export segmentations instead of a DICOM report"
        )
    phases = dicom_phases(reading.files, choice.study, choice.n_cases)
    if not phases:
        raise CaseError(
            f"expected {reading.case.case_id} to have DICOM phases, but found none: check the "
            "folder of its study",
            remedies=(Remedy("study", ("DICOM_FOLDER",)),),
        )
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


def _list_groups(reading: CaseReading) -> Iterator[CodedGroup]:
    """Yield the content for each lesion of the mask, other lesions, measurements and the exam."""
    described = reading.described
    for number, lesion in enumerate(reading.lesions, start=1):
        rows = described.of_place(FieldScope.LESION, lesion.facts.name)
        numbers = (*_code_measures(lesion.measures, is_computed=True), *_code_numbers(rows))
        side = _find_laterality(lesion, rows)
        yield CodedGroup(f"lesion {lesion.facts.name}", numbers, _code_words(rows), number, side)
    of_mask = {lesion.facts.name for lesion in reading.lesions}
    for name in described.lesions:
        if name not in of_mask:
            rows = described.of_place(FieldScope.LESION, name)
            side = next((row.value for row in rows if row.field == "side"), "")
            yield CodedGroup(
                f"lesion {name} without a mask"[:64],
                _code_numbers(rows),
                _code_words(rows),
                side=side,
            )
    for count, drawn in enumerate(reading.drawn, start=1):
        if drawn.measures:
            of = f", lesion {drawn.item.lesion}" if drawn.item.lesion else ""
            name = f"{drawn.item.kind} {count} of {drawn.item.reader}"[: 64 - len(of)] + of
            yield CodedGroup(name, _code_measures(drawn.measures))
    rest = [row for row in described.rows if row.scope != FieldScope.LESION]
    for scope, place in dict.fromkeys((row.scope, row.place) for row in rest):
        rows = described.of_place(FieldScope(scope), place)
        words, numbers = _code_words(rows), _code_numbers(rows)
        if words or numbers:
            yield CodedGroup(f"{scope} {place}".strip(), numbers, words, side=place)


def _find_laterality(lesion: Lesion, rows: Sequence[AnswerRow]) -> str:
    """Return the side of a lesion, or "" if its mask and the reader disagree."""
    measured = lesion.facts.side
    sides = {row.value for row in rows if row.field == "side"}
    if measured is not None:
        sides.add(measured.value)
    return next(iter(sides)) if len(sides) == 1 and sides <= {Side.RIGHT, Side.LEFT} else ""


def _code_measures(
    measures: tuple[Measure, ...], *, is_computed: bool = False
) -> tuple[CodedNumber, ...]:
    return tuple(
        CodedNumber(
            (measure.code.value, measure.code.scheme, measure.name),
            measure.value,
            measure.unit,
            is_computed,
        )
        for measure in measures
        if np.isfinite(measure.value)
    )


def _code_words(rows: Sequence[AnswerRow]) -> tuple[CodedWord, ...]:
    """Return the chosen terms with their first public code, or else with a private code.

    Free text, and terms that the form no longer has, appear only on the page and in the table.
    """
    return tuple(
        CodedWord(_code_question(row), (value[1], value[0], row.text[:_MEANING]), row.computed)
        for row in rows
        if row.known and row.codes and (value := _first_code(row.codes))
    )


def _code_numbers(rows: Sequence[AnswerRow]) -> tuple[CodedNumber, ...]:
    """Return numeric answers with a unit that a structured report supports."""
    return tuple(
        CodedNumber(_code_question(row), float(row.value), row.unit, row.computed)
        for row in rows
        if row.known and row.unit in UNITS and row.value
    )


def _code_question(row: AnswerRow) -> Code:
    scheme, value = _first_code(row.question_codes) or (PRIVATE_SCHEME, row.field)
    return value, scheme, (row.question or row.field)[:_MEANING]


def _first_code(text: str) -> tuple[str, str] | None:
    scheme, colon, value = text.split(" ")[0].partition(":")
    return (scheme, value) if colon else None


def _list_key_places(reading: CaseReading, grid: Grid) -> list[int]:
    """Return the indices of slices with key images, followed by the lesions' largest slices."""
    points = [key_image.points_mm[0] for key_image in reading.key_images]
    points += [
        tuple(reading.case.grid.to_world_mm(lesion.size.ends).mean(axis=0))
        for lesion in reading.lesions
        if lesion.size.ends
    ]
    places = [int(np.floor(grid.to_voxel(point)[0] + 0.5)) for point in points]
    return [index for index in dict.fromkeys(places) if 0 <= index < grid.shape[0]]
