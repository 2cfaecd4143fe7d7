"""Write measurements and answers as DICOM SR (TID 1500), and key images as KO documents.

Source: DICOM PS3.16, TID 1500 and TID 2010; the caller provides the codes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from napari_mamamia.core.errors import SaveError
from napari_mamamia.io.dicom.elements import open_dicom
from napari_mamamia.io.dicom.pseudonym import Pseudonym, mark_impersonal, without_person
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import PhaseSource
from napari_mamamia.io.seg.codes import Code, load_highdicom
from napari_mamamia.io.seg.writer import referring_to, source_images

_REPORT_OFFSET: Final = 1100
_KEYS_OFFSET: Final = 1200
"""Offset added to the series number of the source, so that documents sort last."""
_TITLE: Final[Code] = ("126000", "DCM", "Imaging Measurement Report")
_PROCEDURE: Final[Code] = ("241615005", "SCT", "Magnetic resonance imaging of breast")
_LESION: Final[Code] = ("52988006", "SCT", "Lesion")
_FINDING: Final[Code] = ("404684003", "SCT", "Finding")
_BREAST: Final[Code] = ("76752008", "SCT", "Breast")
_KEY_IMAGES: Final[Code] = ("113000", "DCM", "Of Interest")
_PERSON: Final[Code] = ("121006", "DCM", "Person")
_DEVICE: Final[Code] = ("121007", "DCM", "Device")
SIDES: Final[dict[str, Code]] = {
    "right": ("24028007", "SCT", "Right"),
    "left": ("7771000", "SCT", "Left"),
}
UNITS: Final[dict[str, str]] = {
    "mm": "millimeter", "mm2": "square millimeter", "mm3": "cubic millimeter",
    "ml": "milliliter", "deg": "degree", "1": "no units",
}  # fmt: skip
_DERIVATION: Final[Code] = ("121401", "DCM", "Derivation")
_COMPUTED: Final[Code] = ("computed", "99MAMAMIA", "Computed, not changed by the reader")
_MANUFACTURER: Final = "napari-mamamia developers"

CodedLine: TypeAlias = tuple[str, tuple[str, ...], float, str]
"""A measurement in the form used for comparison: group, code with scheme, value, unit."""
WordLine: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], bool]
"""An answer in the form used for comparison: group, question code, answer code, is computed."""


@dataclass(frozen=True, slots=True)
class CodedNumber:
    """A measurement: concept, value, UCUM unit, and whether the program computed it."""

    concept: Code
    value: float
    unit: str
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class CodedWord:
    """An answer: question, chosen term, and whether the program filled it in."""

    concept: Code
    value: Code
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class CodedGroup:
    """Measurements and answers about one lesion or the exam.

    `segment` is the lesion's number in the segmentation. `side` is "right", "left" or "" if
    unknown.
    """

    name: str
    numbers: tuple[CodedNumber, ...] = ()
    words: tuple[CodedWord, ...] = ()
    segment: int | None = None
    side: str = ""


@dataclass(frozen=True, slots=True)
class CodedReport:
    """A report: its groups, the reader ("" for none), and this software's name and version.

    `is_complete` is False if required questions are unanswered.
    """

    groups: tuple[CodedGroup, ...]
    reader: str = ""
    software: str = ""
    is_complete: bool = True


def write_measurement_report(
    report: CodedReport,
    source: PhaseSource,
    segmentation: Path | None,
    path: Path,
    *,
    pseudonym: Pseudonym | None = None,
    overwrite: bool = False,
) -> None:
    """Write a report as Comprehensive 3D SR; verify the file before it gets its final name.

    Parameters
    ----------
    report
        The content of the report.
    source
        The DICOM phase that was measured.
    segmentation
        The SEG that contains the groups' segments; None if no group has one.
    path
        The file to write.
    pseudonym
        Replacement for the patient's identity; None to keep it.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    FormatError
        If a source file cannot be read or lacks required attributes.
    SaveConflictError, SaveError
        If the file exists or cannot be written, or differs when it is read back.
    """
    hd = load_highdicom()
    with referring_to(source.files[0]):
        images = _take_images(source, pseudonym)
        evidence = list(images)
        drawn = None
        if segmentation is not None:
            drawn = open_dicom(segmentation, segmentation)
            evidence.append(drawn)
        groups = [_make_group(hd, group, drawn, images, source.frames) for group in report.groups]
        content = hd.sr.MeasurementReport(
            observation_context=_make_context(hd, report),
            procedure_reported=_make_concept(hd, _PROCEDURE),
            imaging_measurements=groups,
            title=_make_concept(hd, _TITLE),
            referenced_images=images,
        )
        document = hd.sr.Comprehensive3DSR(
            evidence=evidence,
            content=content,
            series_instance_uid=hd.UID(),
            series_number=_number_series(images, _REPORT_OFFSET),
            sop_instance_uid=hd.UID(),
            instance_number=1,
            manufacturer=_MANUFACTURER,
            is_complete=report.is_complete,
            is_final=False,
        )
        document.SeriesDescription = "Measurements for research use"
        if pseudonym is not None:
            mark_impersonal(document)
    _save_verified(
        document,
        path,
        overwrite,
        lambda there: (
            list_document_numbers(there) == list_numbers(report)
            and list_document_words(there) == list_words(report)
        ),
    )


def write_key_objects(
    source: PhaseSource,
    places: Sequence[int],
    description: str,
    path: Path,
    *,
    pseudonym: Pseudonym | None = None,
    overwrite: bool = False,
) -> None:
    """Write a key object selection of those slices of a phase that have the indices `places`.

    A multi-frame file is selected as a whole, because the selection does not refer to frames.

    Raises
    ------
    MissingExtraError, FormatError, SaveConflictError, SaveError
        As in `write_measurement_report`.
    """
    hd = load_highdicom()
    import highdicom.ko as ko

    with referring_to(source.files[0]):
        images = _take_images(source, pseudonym)
        chosen = [images[place] for place in dict.fromkeys(places)] if len(images) > 1 else images
        content = ko.KeyObjectSelection(
            document_title=_make_concept(hd, _KEY_IMAGES),
            referenced_objects=chosen,
            description=description,
        )
        document: Any = ko.KeyObjectSelectionDocument(
            evidence=chosen,
            content=content,
            series_instance_uid=hd.UID(),
            series_number=_number_series(images, _KEYS_OFFSET),
            sop_instance_uid=hd.UID(),
            instance_number=1,
            manufacturer=_MANUFACTURER,
        )
        document.SeriesDescription = "Key images for research use"
        if pseudonym is not None:
            mark_impersonal(document)
    expected = [str(one.SOPInstanceUID) for one in chosen]
    _save_verified(document, path, overwrite, lambda there: list_key_uids(there) == expected)


def list_document_numbers(document: Any) -> tuple[CodedLine, ...]:
    """Return the measurements in a document, starting with those of segments."""
    return tuple(
        (
            str(group.tracking_identifier),
            (str(measurement.name.value), str(measurement.name.scheme_designator)),
            float(measurement.value),
            str(measurement.unit.value),
        )
        for group in _list_document_groups(document)
        for measurement in group.get_measurements()
    )


def list_document_words(document: Any) -> tuple[WordLine, ...]:
    """Return the answers in a document, starting with those of segments."""
    lines = []
    for group in _list_document_groups(document):
        # highdicom rebuilds its evaluations without their child content items.
        computed = [
            _read_code(item.name)
            for item in group[0].ContentSequence
            if item.ValueType == "CODE" and _has_modifier(item)
        ]
        for qualitative_evaluation in group.get_qualitative_evaluations():
            name = _read_code(qualitative_evaluation.name)
            where = str(group.tracking_identifier)
            lines.append((where, name, _read_code(qualitative_evaluation.value), name in computed))
    return tuple(lines)


def _list_document_groups(document: Any) -> list[Any]:
    content = load_highdicom().sr.Comprehensive3DSR.from_dataset(document).content
    return [
        *content.get_volumetric_roi_measurement_groups(),
        *content.get_image_measurement_groups(),
    ]


def _has_modifier(item: Any) -> bool:
    inner = item.get("ContentSequence") or ()
    return any(_read_code(one.value) == _COMPUTED for one in inner)


def _read_code(code: Any) -> Code:
    return str(code.value), str(code.scheme_designator), str(code.meaning)


def list_numbers(
    report: CodedReport,
) -> tuple[CodedLine, ...]:
    """Return the measurements in a report, in the form of `list_document_numbers`."""
    return tuple(
        (group.name, number.concept[:2], _round_number(number.value), number.unit)
        for group in _order_groups(report)
        for number in group.numbers
    )


def list_words(report: CodedReport) -> tuple[WordLine, ...]:
    """Return the answers in a report, in the form of `list_document_words`."""
    return tuple(
        (group.name, word.concept, word.value, word.is_computed)
        for group in _order_groups(report)
        for word in group.words
    )


def _order_groups(report: CodedReport) -> list[CodedGroup]:
    return sorted(report.groups, key=lambda group: group.segment is None)


def list_key_uids(document: Any) -> list[str]:
    """Return the UIDs of the images to which a key object selection refers."""
    return [
        str(item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID)
        for item in document.ContentSequence
        if item.ValueType == "IMAGE"
    ]


def _save_verified(
    document: Any, path: Path, overwrite: bool, is_equal: Callable[[Any], bool]
) -> None:
    # Reader names need letters outside the default character set, and highdicom copies the
    # source's set.
    document.SpecificCharacterSet = "ISO_IR 192"
    with saving(path, overwrite=overwrite) as temporary:
        document.save_as(temporary)
        if not is_equal(open_dicom(temporary, path)):
            raise SaveError(
                f"expected {path} to contain the report that was written, but its content "
                "differs: save the file again; an existing file is unchanged"
            )


def _take_images(source: PhaseSource, pseudonym: Pseudonym | None) -> list[Any]:
    images = source_images(source)
    return images if pseudonym is None else [without_person(image, pseudonym) for image in images]


def _number_series(images: Sequence[Any], offset: int) -> int:
    return int(images[0].get("SeriesNumber") or 0) + offset


def _make_concept(hd: Any, code: Code) -> Any:
    return hd.sr.CodedConcept(*code)


def _round_number(value: float) -> float:
    return float(f"{value:.6g}")


def _make_context(hd: Any, report: CodedReport) -> Any:
    device = hd.sr.ObserverContext(
        observer_type=_make_concept(hd, _DEVICE),
        observer_identifying_attributes=hd.sr.DeviceObserverIdentifyingAttributes(
            uid=hd.UID(),
            name="napari-mamamia",
            manufacturer_name=_MANUFACTURER,
            model_name=report.software or "napari-mamamia",
        ),
    )
    person = None
    if report.reader:
        name = report.reader.replace("^", " ").replace("=", " ").replace("\\", " ")[:64]
        person = hd.sr.ObserverContext(
            observer_type=_make_concept(hd, _PERSON),
            observer_identifying_attributes=hd.sr.PersonObserverIdentifyingAttributes(
                name=f"{name}^"
            ),
        )
    return hd.sr.ObservationContext(person, device)


def _make_group(
    hd: Any, group: CodedGroup, drawn: Any, images: Sequence[Any], frames: Sequence[int]
) -> Any:
    sr = hd.sr
    computed = _make_concept(hd, _COMPUTED)
    numbers = [
        sr.Measurement(
            name=_make_concept(hd, number.concept),
            value=_round_number(number.value),
            unit=sr.CodedConcept(number.unit, "UCUM", UNITS[number.unit]),
            derivation=computed if number.is_computed else None,
        )
        for number in group.numbers
    ]
    words = [_make_word(hd, word) for word in group.words]
    side = SIDES.get(group.side)
    site = sr.FindingSite(
        _make_concept(hd, _BREAST), None if side is None else _make_concept(hd, side)
    )
    shared = {
        "tracking_identifier": sr.TrackingIdentifier(uid=hd.UID(), identifier=group.name),
        "finding_sites": [site],
        "measurements": numbers or None,
        "qualitative_evaluations": words or None,
    }
    if group.segment is None or drawn is None:
        return sr.MeasurementsAndQualitativeEvaluations(
            finding_type=_make_concept(hd, _FINDING), **shared
        )
    shown = [frame + 1 for frame in frames] or None
    segment = sr.ReferencedSegment(
        sop_class_uid=drawn.SOPClassUID,
        sop_instance_uid=drawn.SOPInstanceUID,
        segment_number=group.segment,
        source_images=[
            sr.SourceImageForSegmentation(image.SOPClassUID, image.SOPInstanceUID, shown)
            for image in images
        ],
    )
    return sr.VolumetricROIMeasurementsAndQualitativeEvaluations(
        referenced_segment=segment, finding_type=_make_concept(hd, _LESION), **shared
    )


def _make_word(hd: Any, word: CodedWord) -> Any:
    evaluation = hd.sr.QualitativeEvaluation(
        _make_concept(hd, word.concept), _make_concept(hd, word.value)
    )
    if word.is_computed:
        modifier = hd.sr.CodeContentItem(
            name=_make_concept(hd, _DERIVATION),
            value=_make_concept(hd, _COMPUTED),
            relationship_type=hd.sr.RelationshipTypeValues.HAS_CONCEPT_MOD,
        )
        evaluation[0].ContentSequence = hd.sr.ContentSequence([modifier])
    return evaluation
