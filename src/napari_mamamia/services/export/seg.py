"""The DICOM SEG format: which series masks refer to, and how segments were made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.errors import CaseError, MissingExtraError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Maker, software_version
from napari_mamamia.io.data_set.bundle import BundleFile, Manifest
from napari_mamamia.io.data_set.patient_info import PatientInfo, read_patient_info
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import user_secret
from napari_mamamia.io.dicom.pseudonym import Pseudonym
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.exam.selectors import Selection, named_series, read_selectors
from napari_mamamia.io.exam.study import imported_study
from napari_mamamia.io.files.sources import CaseFiles, LayoutKind, PhaseSource
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.seg.codes import AlgorithmType, SegmentMeaning
from napari_mamamia.io.seg.seg import read_segmentation
from napari_mamamia.io.seg.writer import write_segmentation
from napari_mamamia.io.volumes.formats import file_stem
from napari_mamamia.services.export import format_spec
from napari_mamamia.services.export.plan import DrawnMask, label_names

_FOLDER: Final = "dicom_seg"
IDENTIFIED_FOLDER: Final = "dicom_seg_identified"
"""Folder of segmentations with the patient's name, separate from segmentations that may be shared.
"""

_SAID: Final[dict[SegmentMaker, AlgorithmType]] = {
    SegmentMaker.MANUAL: "MANUAL",
    SegmentMaker.SEMIAUTOMATIC: "SEMIAUTOMATIC",
    SegmentMaker.AUTOMATIC: "AUTOMATIC",
}
_BY_HAND: Final = frozenset(
    {
        *("", "sphere", "smooth", "painted with napari", "start over", "erase"),
        *("outline", "erase outline"),
    }
)


def _require_seg(plan: format_spec.ExportPlan) -> None:
    """Raise an error if DICOM SEG cannot be written at all.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    CaseError
        If the study to which the segmentation refers is missing.
    """
    if find_spec("highdicom") is None:
        raise MissingExtraError("highdicom", "dicom")
    settings = plan.settings
    if settings.study is not None and not settings.study.is_dir():
        raise CaseError(
            f"the DICOM folder {settings.study} does not exist: check the path",
            remedies=(Remedy("study", ("DICOM_FOLDER",)),),
        )


def _write_seg(work: format_spec.CaseWork, writer: format_spec.CaseWriter) -> None:
    """Write ``dicom_seg/[SET/]ID.dcm``, which refers to the first series after contrast.

    For a case that joins two breasts, ``ID_left.dcm`` and ``ID_right.dcm`` are written; each refers
    to its own images and is omitted if the breast has no foreground voxel. The case id replaces the
    patient's name, and UIDs are remapped. If the settings request an identified segmentation, it is
    written to ``dicom_seg_identified`` instead.

    Raises
    ------
    CaseError
        If the case is not DICOM and has no study, or a mask has voxels between the two breasts,
        where there is no image.
    GridMismatchError
        If the grids of the study and the case differ.
    """
    report_progress(1, 2, "Writing DICOM SEG")
    settings = work.plan.settings
    targets = _find_targets(work.files, settings.study, len(work.plan.cases))
    headers = [read_phase_header(target.source) for target in targets]
    named = settings.identified_seg
    pseudonym = None if named else Pseudonym(writer.case_id, user_secret())
    root = writer.root / (IDENTIFIED_FOLDER if named else _FOLDER)
    for mask in work.drawn:
        folder = root if len(work.plan.names) == 1 else root / mask.name
        for target, header, (labels, grid) in zip(
            targets, headers, _cut_mask(mask, targets), strict=True
        ):
            if target.side and not labels.any():
                continue
            ending = f"_{target.side}" if target.side else ""
            path = folder / f"{writer.case_id}{ending}.dcm"
            write_segmentation(
                labels,
                label_names(settings),
                grid,
                target.source,
                header.grid,
                segment_meaning(mask, settings.segment_maker),
                path,
                pseudonym=pseudonym,
                software=software_version(),
            )
            writer.record(path, "segmentation", masks=mask.name, grid=grid)


@dataclass(frozen=True, slots=True)
class _Target:
    """The images to which a segmentation refers; for one breast of a joined case, a slice range."""

    source: PhaseSource
    side: str = ""
    first: int = 0
    last: int = 0


def _find_targets(files: CaseFiles, study: Path | None, n_cases: int) -> list[_Target]:
    joined = () if files.info is None else read_patient_info(files.info).joined
    if study is None or not joined:
        phases = dicom_phases(files, study, n_cases)
        return [_Target(phases[min(1, len(phases) - 1)])]
    targets = []
    for side, first, last in joined:
        phases = dicom_phases(files, study, n_cases, side)
        targets.append(_Target(phases[min(1, len(phases) - 1)], side, first, last))
    return targets


def _cut_mask(mask: DrawnMask, targets: Sequence[_Target]) -> list[tuple[NDArray[np.uint8], Grid]]:
    if not targets[0].side:
        return [(mask.labels, mask.grid)]
    parts = []
    left: NDArray[np.bool_] = np.any(mask.labels, axis=(1, 2))
    if len(left) != max(target.last for target in targets) + 1:
        raise CaseError(
            f"expected the mask of {mask.name} to have the "
            f"{max(target.last for target in targets) + 1} slices of the import, but it has "
            f"{len(left)}: export the mask on the grid of its case"
        )
    for target in targets:
        affine = mask.grid.affine.copy()
        affine[:3, 3] += affine[:3, 2] * target.first
        labels = mask.labels[target.first : target.last + 1]
        parts.append((labels, Grid(labels.shape, affine)))
        left[target.first : target.last + 1] = False
    if not mask.labels.any():
        raise CaseError(
            f"expected the mask of {mask.name} to have foreground voxels, as DICOM SEG requires, "
            "but it is empty: correct the mask, or export NIfTI"
        )
    if left.any():
        slices = ", ".join(map(str, np.flatnonzero(left)))
        raise CaseError(
            f"expected the mask of {mask.name} to have foreground voxels only on slices with an "
            f"image, as DICOM SEG requires, but it has voxels on slices ({slices}) between the "
            "two breasts: correct the mask, or export NIfTI"
        )
    return parts


def segment_meaning(mask: DrawnMask, said: SegmentMaker) -> SegmentMeaning:
    """Return how a mask was made, as DICOM terms.

    The mask of a model or a phantom is automatic. The mask of a reader is manual, or semiautomatic
    if it started from another mask or if a tool that analyses the image was used. An expert mask of
    a data set is manual.

    Raises
    ------
    CaseError
        If there is no provenance and `said` is empty.
    """
    provenance = mask.provenance
    if said in _SAID:
        # DICOM requires a name; without provenance, the name is that of this software, which
        # wrote the mask.
        name = provenance.name or "napari-mamamia"
        return SegmentMeaning(_SAID[said], name, provenance.software)
    if not mask.has_history or provenance.maker is Maker.UNKNOWN:
        raise CaseError(
            "a DICOM SEG states how the mask was made, but no provenance file is next to the "
            f"mask of {provenance.case_id} in {mask.name}: choose whether the mask was made "
            "manually, semiautomatically or automatically",
            remedies=tuple(Remedy("made_by", (making,)) for making in _SAID),
        )
    if provenance.maker in (Maker.MODEL, Maker.PHANTOM):
        return SegmentMeaning("AUTOMATIC", provenance.name, provenance.software)
    tools = str(dict(provenance.parameters).get("tools") or "").split(", ")
    aided = not _BY_HAND.issuperset(tool.lower() for tool in tools)
    started = provenance.started_from not in ("", "empty")
    how: AlgorithmType = "SEMIAUTOMATIC" if started or aided else "MANUAL"
    return SegmentMeaning(how, provenance.name, provenance.software)


def _study_of(files: CaseFiles, info: PatientInfo, study: Path) -> Path | None:
    """Return the subfolder named after the case id, or the subfolder of the imported study."""
    named = study / files.case_id
    if named.is_dir() or not info.study_uid:
        return named if named.is_dir() else None
    return imported_study(study, info.study_uid)


def dicom_phases(
    files: CaseFiles, study: Path | None, n_cases: int, side: str = ""
) -> Sequence[PhaseSource]:
    """Return the DICOM phases of a case, or of one breast if `side` is "left" or "right"."""
    if study is not None:
        info = PatientInfo() if files.info is None else read_patient_info(files.info)
        case_study = _study_of(files, info, study)
        if case_study is None and n_cases > 1:
            raise CaseError(
                f"expected {study / files.case_id}, or a subfolder with the imported study, to "
                f"contain the DICOM study of {files.case_id}, but found none: put each case's "
                "files into a subfolder named after its id"
            )
        if info.series:  # the same parts as at the import, including parts that a reader selected
            use = read_selectors(info.parts) or named_series(info.series)
            selection = Selection(use, side=side)
            return find_phases(case_study or study, selection, allow_thin=True).phases
        dicom = find_data_set(case_study or study)
        if dicom.kind is not LayoutKind.DICOM:
            raise CaseError(
                f"expected {dicom.root} to contain DICOM files, but it has the layout "
                f"{dicom.kind}: choose the folder of the study"
            )
        return dicom.cases[0].phases
    first = files.phases[0].files[0]
    if file_stem(first.name):
        raise CaseError(
            f"expected case {files.case_id} to be in DICOM format, because a DICOM SEG refers to "
            f"DICOM images, but it is {first.name}: choose the folder of its study, or omit the "
            "format DICOM SEG",
            remedies=(Remedy("study", ("DICOM_FOLDER",)),),
        )
    return files.phases


def _describe_seg(selection: format_spec.ExportSelection) -> tuple[str, ...]:
    if selection.settings.identified_seg:
        return ("dicom_seg_identified/ID.dcm WITH the patient's name: for your PACS only",)
    return ("dicom_seg/ID.dcm: the case id replaces the patient's name, UIDs are replaced",)


def _missing_study(selection: format_spec.ExportSelection) -> str:
    if selection.is_dicom or selection.settings.study is not None:
        return ""
    return "DICOM SEG refers to DICOM images, which these cases lack: choose their study."


def _verify_seg(path: Path, file: BundleFile, manifest: Manifest) -> Iterator[str]:
    """Yield the problems of a DICOM SEG: frames off the case's grid, segments without a name."""
    seen = read_segmentation(path)
    if file.place is not None:
        grid = file.place.grid()
        for segment in seen.segments:
            seen.on_grid(segment, grid)
    names = {name for _, name in manifest.labels}
    for segment in seen.segments:
        if segment.label not in names:
            yield f"{file.name}: segment {segment.label!r} has no name in the manifest"


DICOM_SEG: Final = format_spec.FormatSpec(
    title="DICOM SEG",
    tip="Coded segmentations that a PACS accepts (highdicom)",
    purpose="PACS and DICOM viewers; with the DICOM study it refers to the source images",
    folders=(_FOLDER, IDENTIFIED_FOLDER),
    describe=_describe_seg,
    write=_write_seg,
    problem=_missing_study,
    require=_require_seg,
    verify=_verify_seg,
)
