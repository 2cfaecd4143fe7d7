"""Collect the data of a case for its report: mask, lesions, measurements and findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.answers import CaseFacts, LesionFacts
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, MamamiaError, Remedy
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.findings import (
    FindingsKey,
    FindingsRecord,
    count_findings_problems,
    read_findings,
)
from napari_mamamia.io.workspace.measurements import MeasurementRecord, read_measurements
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.metrics.diameter import LesionSize, measure_size
from napari_mamamia.services.batch.work import masks_of_cases
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, read_mask
from napari_mamamia.services.findings.case_facts import measure_case
from napari_mamamia.services.report.described import Described, describe_case
from napari_mamamia.services.report.measures import Measure, list_lesion_measures, measure_drawn

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)
NO_MASK: Final = Provenance("", Maker.UNKNOWN, "")


@dataclass(frozen=True, slots=True)
class ReportSource:
    """The masks and readers for a report.

    `masks` is a folder of masks. Without it, the mask of a case is drawn by `reader` or by the only
    reader who drew a mask, or else is the reference. If `reader` is "", the measurements of all
    readers are reported.
    """

    masks: Path | None = None
    reader: str = ""
    label: float | None = None


@dataclass(frozen=True, slots=True)
class ReportRecords:
    """The records in a workspace: findings, measurements, and notes about damaged records."""

    findings: Mapping[FindingsKey, FindingsRecord]
    measurements: MeasurementRecord
    remarks: tuple[str, ...]


def read_records(root: Path) -> ReportRecords:
    """Return the records of all cases in the workspace at `root`.

    Raises
    ------
    FormatError
        If a file exists but cannot be read.
    """
    drawn = read_measurements(root)
    counts = {
        "findings": count_findings_problems(root),
        "measurements": (len(drawn.problems), drawn.n_newer),
    }
    remarks = tuple(
        (
            f"the record of {name} could not be read completely; it lacks "
            f"{count_of(n_damaged, 'damaged entry', 'damaged entries')} and "
            f"{count_of(n_newer, 'event')} from a later version"
        )
        for name, (n_damaged, n_newer) in counts.items()
        if n_damaged or n_newer
    )
    return ReportRecords(read_findings(root), drawn, remarks)


@dataclass(frozen=True, slots=True, eq=False)
class Lesion:
    """A lesion of the mask with its measured facts and its boolean voxels ``(z, y, x)``."""

    facts: LesionFacts
    size: LesionSize
    voxels: NDArray[np.bool_]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of the lesion."""
        return list_lesion_measures(self.facts, self.size)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn measurement of a reader, with its measures."""

    item: Measurement
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaseReading:
    """The data of a case for its report.

    Parameters
    ----------
    mask
        The mask as a boolean array ``(z, y, x)``, or None.
    mask_name, provenance
        The name of the mask, and its provenance, if known.
    described
        The findings of a reader, with unanswered questions.
    remarks
        Sentences about anything unusual.
    """

    case: Case
    files: CaseFiles
    mask: NDArray[np.bool_] | None
    mask_name: str
    provenance: Provenance
    facts: CaseFacts
    lesions: tuple[Lesion, ...]
    drawn: tuple[Drawn, ...]
    described: Described
    remarks: tuple[str, ...] = ()

    @property
    def key_images(self) -> tuple[Measurement, ...]:
        """The key images marked by readers."""
        return tuple(
            drawing.item for drawing in self.drawn if drawing.item.kind is MeasureKind.KEY_IMAGE
        )


def read_case(
    opened: OpenDataSet,
    files: CaseFiles,
    source: ReportSource,
    records: ReportRecords | None = None,
) -> CaseReading:
    """Return the data of a case; the workspace's `records` are read if they are None.

    Raises
    ------
    CaseError
        If the case cannot be opened, or several readers drew or described it and no reader is
        specified.
    FormatError, GridMismatchError
        If a file is damaged, or the mask is on a different grid.
    """
    report_progress(0, 3, "Reading")
    row = opened.record(files.case_id)
    case = load_case(files, row)
    chosen = find_mask(opened, files, source)
    path = chosen.path
    records = read_records(opened.workspace.root) if records is None else records
    remarks = [*case.warnings, *records.remarks]
    mask = None if path is None else read_mask(path, case, source.label)
    provenance = NO_MASK if path is None else _read_history(path, remarks)
    report_progress(1, 3, "Measuring")
    reader = source.reader or chosen.reader
    described, facts = describe_case(
        opened.workspace,
        case.case_id,
        records.findings,
        measure_case(case, mask, record=row),
        reader,
        has_mask=mask is not None,
    )
    key = case_key(files.case_id)
    drawn = [
        item
        for item in records.measurements.items
        if case_key(item.case_id) == key and source.reader in ("", item.reader)
    ]
    report_progress(2, 3, "Measuring")
    return CaseReading(
        case,
        files,
        mask,
        chosen.name,
        provenance,
        facts,
        _part_lesions(case, mask, facts),
        tuple(Drawn(item, measure_drawn(item, case)) for item in drawn),
        described,
        tuple(remarks),
    )


@dataclass(frozen=True, slots=True)
class ReportMask:
    """The mask for a case's report; `name` describes the mask, or explains why there is none.

    `reader` is the reader who drew the mask in this workspace, or "".
    """

    path: Path | None
    name: str
    reader: str = ""


def find_mask(opened: OpenDataSet, files: CaseFiles, source: ReportSource) -> ReportMask:
    """Return the mask for a case's report.

    Raises
    ------
    CaseError
        If several readers drew a mask and no reader is specified.
    """
    if source.masks is not None:
        path = masks_of_cases(source.masks, [files.case_id]).get(case_key(files.case_id))
        name = source.masks.name
        return ReportMask(path, name if path else f"{name} has no mask of this case")
    refined = [
        one
        for one in opened.workspace.masks_of(files.case_id)
        if one.role == "refined" and source.reader in ("", one.name)
    ]
    if len(refined) > 1:
        names = ", ".join(mask.name for mask in refined)
        raise CaseError(
            f"expected one reader's mask of {files.case_id} for the report, but {names} have "
            "masks: choose the reader of the report, or a folder of masks",
            remedies=(Remedy("reader", ("NAME",)), Remedy("masks", ("DIR",))),
        )
    if refined:
        return ReportMask(refined[0].path, f"drawn by {refined[0].name}", refined[0].name)
    if files.reference is not None:
        return ReportMask(files.reference, "the data set's reference")
    return ReportMask(None, "no mask")


def _read_history(path: Path, remarks: list[str]) -> Provenance:
    beside = sidecar_path(path)
    if beside.exists():
        try:
            return read_provenance(beside)
        except MamamiaError as error:
            remarks.append(f"it is unknown how the mask was made: {error}")
    return NO_MASK


def _part_lesions(
    case: Case, mask: NDArray[np.bool_] | None, facts: CaseFacts
) -> tuple[Lesion, ...]:
    """Return the lesions in `facts` with their voxels, each located by one of its voxels."""
    if mask is None or not facts.lesions:
        return ()
    parts, _ = ndimage.label(mask, _TOUCHING)
    lesions = []
    for lesion in facts.lesions:
        if lesion.voxel is not None:
            voxels = parts == parts[lesion.voxel]
            lesions.append(Lesion(lesion, measure_size(voxels, case.grid), voxels))
    return tuple(lesions)


def list_readers(drawn: Sequence[Drawn]) -> tuple[str, ...]:
    """Return the distinct names of readers with measurements."""
    return tuple(dict.fromkeys(drawing.item.reader for drawing in drawn))
