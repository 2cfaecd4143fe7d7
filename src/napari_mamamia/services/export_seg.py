"""Masks as DICOM SEG: which series they refer to, and who is said to have made them."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, MissingExtraError
from napari_mamamia.core.provenance import Maker, software_version
from napari_mamamia.io.dicom import find_phases
from napari_mamamia.io.dicom_facts import user_secret
from napari_mamamia.io.dicom_pseudonym import Pseudonym
from napari_mamamia.io.dicom_seg_codes import AlgorithmType, SegmentMeaning
from napari_mamamia.io.dicom_seg_writer import write_segmentation
from napari_mamamia.io.dicom_selectors import Selection, named_series, read_selectors
from napari_mamamia.io.dicom_study import imported_study
from napari_mamamia.io.layout import find_data_set
from napari_mamamia.io.patient_info import PatientInfo, read_patient_info
from napari_mamamia.io.sources import CaseFiles, LayoutKind, PhaseSource
from napari_mamamia.io.volumes import VOLUME_SUFFIXES, read_phase_header
from napari_mamamia.services.export_masks import DrawnMask
from napari_mamamia.services.export_plan import ExportSettings, SegmentMaker, label_names
from napari_mamamia.services.export_writer import CaseWriter

__all__ = ["IDENTIFIED_FOLDER", "require_seg", "segment_meaning", "write_seg"]

SEG_FOLDER: Final = "dicom_seg"
IDENTIFIED_FOLDER: Final = "dicom_seg_identified"
"""Where segmentations with the patient's name lie, apart from those that may be passed on."""

_SAID: Final[dict[SegmentMaker, AlgorithmType]] = {
    SegmentMaker.MANUAL: "MANUAL",
    SegmentMaker.SEMIAUTOMATIC: "SEMIAUTOMATIC",
    SegmentMaker.AUTOMATIC: "AUTOMATIC",
}
_BY_HAND: Final = frozenset({"", "sphere", "smooth", "painted with napari", "start over", "erase"})


def require_seg(settings: ExportSettings) -> None:
    """Refuse DICOM SEG where it cannot be made at all.

    Raises
    ------
    MissingExtraError
        If highdicom is not installed.
    CaseError
        If the study to write against is absent.
    """
    if find_spec("highdicom") is None:
        raise MissingExtraError("highdicom", "dicom")
    if settings.study is not None and not settings.study.is_dir():
        raise CaseError(
            f"expected a DICOM folder at {settings.study} (--study), but there is none: check the "
            "path"
        )


def write_seg(
    writer: CaseWriter,
    files: CaseFiles,
    settings: ExportSettings,
    drawn: Sequence[DrawnMask],
    n_sets: int,
    n_cases: int,
) -> None:
    """Write ``dicom_seg/[SET/]ID.dcm`` on the first series after contrast, else on the only one.

    The patient is the case's id and UIDs are remapped, unless the settings ask for an identified
    segmentation, which lies in ``dicom_seg_identified``.

    Raises
    ------
    CaseError
        If the case is no DICOM and there is no study of it.
    GridMismatchError
        If the study does not lie where the case does.
    """
    phases = _dicom_phases(files, settings.study, n_cases)
    source = phases[min(1, len(phases) - 1)]
    header = read_phase_header(source)
    named = settings.identified_seg
    pseudonym = None if named else Pseudonym(writer.case_id, user_secret())
    root = writer.root / (IDENTIFIED_FOLDER if named else SEG_FOLDER)
    for mask in drawn:
        folder = root if n_sets == 1 else root / mask.name
        path = folder / f"{writer.case_id}.dcm"
        write_segmentation(
            mask.labels,
            label_names(settings),
            mask.grid,
            source,
            header.grid,
            segment_meaning(mask, settings.segment_maker),
            path,
            pseudonym=pseudonym,
            software=software_version(),
        )
        writer.record(path, "segmentation", masks=mask.name, grid=mask.grid)


def segment_meaning(mask: DrawnMask, said: SegmentMaker) -> SegmentMeaning:
    """Return how a mask was made, in DICOM's words.

    A model's and a phantom's is automatic; a reader's is manual, or semiautomatic if he started
    from a mask or used a tool that looks at the image; an expert mask of a data set is manual.

    Raises
    ------
    CaseError
        If there is no provenance and nothing is said.
    """
    made = mask.provenance
    if said in _SAID:
        return SegmentMeaning(_SAID[said], made.name, made.software)
    if not mask.has_history or made.maker is Maker.UNKNOWN:
        raise CaseError(
            f"DICOM SEG says how a mask was made, but no provenance was found beside the mask of "
            f"{made.case_id} in {mask.name}: say it with --made-by manual, semiautomatic or "
            "automatic"
        )
    if made.maker in (Maker.MODEL, Maker.PHANTOM):
        return SegmentMeaning("AUTOMATIC", made.name, made.software)
    tools = str(dict(made.parameters).get("tools") or "").split(", ")
    aided = not _BY_HAND.issuperset(tool.lower() for tool in tools)
    started = made.started_from not in ("", "empty")
    how: AlgorithmType = "SEMIAUTOMATIC" if started or aided else "MANUAL"
    return SegmentMeaning(how, made.name, made.software)


def _study_of(files: CaseFiles, info: PatientInfo, study: Path) -> Path | None:
    """Return the subfolder of a case's id, else that of the study which it was imported from."""
    named = study / files.case_id
    if named.is_dir() or not info.study_uid:
        return named if named.is_dir() else None
    return imported_study(study, info.study_uid)


def _dicom_phases(files: CaseFiles, study: Path | None, n_cases: int) -> tuple[PhaseSource, ...]:
    if study is not None:
        info = PatientInfo() if files.info is None else read_patient_info(files.info)
        own = _study_of(files, info, study)
        if own is None and n_cases > 1:
            raise CaseError(
                f"expected the DICOM study of {files.case_id} in {study / files.case_id}, or that "
                "which it was imported from in a subfolder, but there is none: put each case's "
                "files into a subfolder of its id"
            )
        if info.series:  # the same parts again, also where a reader had named them
            use = read_selectors(info.parts) or named_series(info.series)
            return find_phases(own or study, Selection(use), allow_thin=True).phases
        found = find_data_set(own or study)
        if found.kind is not LayoutKind.DICOM:
            raise CaseError(
                f"expected DICOM files in {found.root}, found the layout {found.kind}: choose the "
                "folder of the study"
            )
        return found.cases[0].phases
    first = files.phases[0].files[0]
    if first.name.lower().endswith(VOLUME_SUFFIXES):
        raise CaseError(
            f"a DICOM SEG refers to the DICOM images that it was drawn on, but case "
            f"{files.case_id} is {first.name}: name the study with --study DICOM_FOLDER, or "
            "export NIfTI"
        )
    return files.phases
