"""What is known of a case: its mask and lesions, what was drawn, answered and measured on it."""

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
from napari_mamamia.services.batch.masked_inputs import masks_of_cases
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, read_mask
from napari_mamamia.services.findings.case_facts import measure_case
from napari_mamamia.services.report.described import Described, describe_case
from napari_mamamia.services.report.measures import Measure, list_lesion_measures, measure_drawn

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)
NO_MASK: Final = Provenance("", Maker.UNKNOWN, "")


@dataclass(frozen=True, slots=True)
class ReportSource:
    """Which masks and whose measurements a report is made of.

    `masks` is a folder of masks; without one a case has the mask of `reader`, or that of the one
    reader who drew one, or its reference. `reader` "" takes what all readers drew.
    """

    masks: Path | None = None
    reader: str = ""
    label: float | None = None


@dataclass(frozen=True, slots=True)
class ReportRecords:
    """What readers left in a workspace: findings, drawings, and what is damaged, in words."""

    findings: Mapping[FindingsKey, FindingsRecord]
    measurements: MeasurementRecord
    remarks: tuple[str, ...]


def read_records(root: Path) -> ReportRecords:
    """Return the records of the workspace at `root`, of all its cases.

    Raises
    ------
    FormatError
        If a file is there but cannot be read.
    """
    drawn = read_measurements(root)
    counts = {
        "findings": count_findings_problems(root),
        "measurements": (len(drawn.problems), drawn.n_newer),
    }
    remarks = tuple(
        f"of the record of {name} {n_damaged} damaged place(s) and {n_newer} event(s) of a later "
        "version are left out"
        for name, (n_damaged, n_newer) in counts.items()
        if n_damaged or n_newer
    )
    return ReportRecords(read_findings(root), drawn, remarks)


@dataclass(frozen=True, slots=True, eq=False)
class Lesion:
    """One lesion of the mask: its facts, sizes and voxels, bool ``(z, y, x)``."""

    facts: LesionFacts
    size: LesionSize
    voxels: NDArray[np.bool_]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Its numbers."""
        return list_lesion_measures(self.facts, self.size)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a reader drew, with its numbers."""

    item: Measurement
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CaseReading:
    """A case as it is reported.

    Parameters
    ----------
    mask
        bool ``(z, y, x)``; None where there is none.
    mask_name, provenance
        Which mask it is, and what is known of its making.
    described
        What a reader said of it, and what of that is open.
    remarks
        What is unusual, in plain sentences.
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
        """The key images that readers marked."""
        return tuple(one.item for one in self.drawn if one.item.kind is MeasureKind.KEY_IMAGE)


def read_case(
    opened: OpenDataSet,
    files: CaseFiles,
    source: ReportSource,
    records: ReportRecords | None = None,
) -> CaseReading:
    """Return all that is known of a case; `records` are the workspace's, None to read them now.

    Raises
    ------
    CaseError
        If the case cannot be opened, or several readers drew masks or described it and none is
        named.
    FormatError, GridMismatchError
        If a file is damaged, or the mask lies on another grid.
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
        tuple(Drawn(one, measure_drawn(one, case)) for one in drawn),
        described,
        tuple(remarks),
    )


@dataclass(frozen=True, slots=True)
class ReportMask:
    """The mask that a case is reported with: `name` says what it is, or why there is none.

    `reader` is who drew it in this workspace, "" for nobody.
    """

    path: Path | None
    name: str
    reader: str = ""


def find_mask(opened: OpenDataSet, files: CaseFiles, source: ReportSource) -> ReportMask:
    """Return the mask that a case is reported with.

    Raises
    ------
    CaseError
        If several readers drew one and none is named.
    """
    if source.masks is not None:
        path = masks_of_cases(source.masks, [files.case_id]).get(case_key(files.case_id))
        name = source.masks.name
        return ReportMask(path, name if path else f"no mask of it in {name}")
    refined = [
        one
        for one in opened.workspace.masks_of(files.case_id)
        if one.role == "refined" and source.reader in ("", one.name)
    ]
    if len(refined) > 1:
        names = ", ".join(one.name for one in refined)
        raise CaseError(
            f"expected the mask of one reader of {files.case_id}, got those of {names}: name the "
            "one who reports, or a folder of masks",
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
            remarks.append(f"how the mask was made is not known: {error}")
    return NO_MASK


def _part_lesions(
    case: Case, mask: NDArray[np.bool_] | None, facts: CaseFacts
) -> tuple[Lesion, ...]:
    """Return the lesions that `facts` names, each by one of its voxels."""
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
    """Return who drew something, each once."""
    return tuple(dict.fromkeys(one.item.reader for one in drawn))
