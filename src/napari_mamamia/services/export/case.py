"""One case of an export: its masks read and checked, then written in every layout asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.annotations.harmonise import OrientationProfile, harmonised
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.bundle import CaseEntry
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import names_a_person
from napari_mamamia.io.dicom.headers import is_dicom_file
from napari_mamamia.io.files.sources import CaseFiles, DataSet
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.export.formats import write_bids, write_challenge, write_nnunet
from napari_mamamia.services.export.harmonised import write_harmonised
from napari_mamamia.services.export.masks import DrawnMask, drawn_masks
from napari_mamamia.services.export.plan import ExportFormat, ExportSettings
from napari_mamamia.services.export.quality import CaseQuality, case_quality, load_for_export
from napari_mamamia.services.export.seg import write_seg
from napari_mamamia.services.export.writer import CaseWriter, case_writer


@dataclass(frozen=True, slots=True)
class CasePlan:
    """What the work on one case needs to know of the whole export."""

    data_set: DataSet
    opened: OpenDataSet | None
    settings: ExportSettings
    names: tuple[str, ...]
    sets: tuple[Mapping[str, Path], ...]
    cases: tuple[str, ...]
    channels: int
    out: Path
    replacing: bool


@dataclass(frozen=True, slots=True)
class DoneCase:
    """What was written of one case, what is unusual about it, and sentences for the user."""

    entry: CaseEntry
    quality: CaseQuality | None
    notes: tuple[str, ...]
    times_s: tuple[float | None, ...]


def export_case(plan: CasePlan, case_id: str) -> DoneCase:
    """Write all that is asked for of one case; nothing stays if it fails.

    Raises
    ------
    MamamiaError
        Whatever keeps the case from being exported.
    """
    settings = plan.settings
    report_progress(0, 1, "Exporting")
    files = plan.data_set.case(case_id)
    _require_impersonal(files, settings)
    grid = read_phase_header(files.phases[0]).grid
    _require_readable(case_id, grid, settings)
    drawn = drawn_masks(case_id, grid, settings, plan.names, plan.sets)
    needs_images = settings.with_images or ExportFormat.NNUNET in settings.formats
    case: Case | None = None
    quality: CaseQuality | None = None
    if needs_images or settings.with_quality:
        record = plan.opened.record(case_id) if plan.opened is not None else None
        case, found = load_for_export(files, record)
        if case is None and needs_images:
            raise CaseError(found[0].text)
        if settings.with_quality:
            quality = case_quality(case_id, case, found, drawn)
    with case_writer(plan.out, case_id, replacing=plan.replacing) as writer:
        report_progress(1, 2, "Writing")
        _written(plan, writer, files, grid, drawn, case)
    light = "" if quality is None else quality.light.value
    volume = float((drawn[0].labels > 0).sum()) * grid.voxel_volume_mm3
    entry = CaseEntry(case_id, volume, light, tuple(writer.files))
    times_s = () if case is None else case.times_s
    notes = (
        *_absent(plan, case_id, drawn), *_shear(case_id, grid), *_dropped(case_id, drawn, settings)
    )  # fmt: skip
    return DoneCase(entry, quality, notes, times_s)


def _require_readable(case_id: str, grid: Grid, settings: ExportSettings) -> None:
    """Refuse layouts for programs that read with ITK, which takes axes at right angles only."""
    for wanted in (ExportFormat.NNUNET, ExportFormat.CHALLENGE):
        if grid.is_sheared and wanted in settings.formats:
            raise CaseError(
                f"expected axes at right angles for {wanted}, whose programs read with SimpleITK, "
                f"but those of {case_id} are sheared: export a copy (mamamia straighten DATASET "
                "--out DIR), or leave that format out"
            )


def _shear(case_id: str, grid: Grid) -> tuple[str, ...]:
    if not grid.is_sheared:
        return ()
    return (
        f"the axes of {case_id} are not at right angles (sheared), and programs built on ITK cannot"
        " read its files; a copy at right angles: mamamia straighten DATASET --out DIR",
    )


def _dropped(case_id: str, drawn: Sequence[DrawnMask], settings: ExportSettings) -> Iterator[str]:
    """Yield what the challenge's files do not hold: they know the tumour alone."""
    if ExportFormat.CHALLENGE not in settings.formats:
        return
    for mask in drawn:
        n_voxels = int((mask.labels > 1).sum())
        if n_voxels:
            yield (
                f"the challenge's file of {case_id} holds label 1 alone: {n_voxels} voxel(s) of "
                f"other labels of {mask.name} are background in it; if they are tumour too, map "
                "them to 1 with --label-map"
            )


def _require_impersonal(files: CaseFiles, settings: ExportSettings) -> None:
    """Refuse a DICOM case whose id, the name of its folder, tells the patient."""
    if settings.identified_seg or not is_dicom_file(files.phases[0].files[0]):
        return
    if names_a_person((file for phase in files.phases for file in phase.files), files.case_id):
        raise CaseError(
            "expected a case id that does not tell the patient, but it holds a word of the "
            "patient's name, number or birth date: import the study under another id "
            "(mamamia import DICOM --case ID --out DATASET), and export that"
        )


def _written(
    plan: CasePlan,
    writer: CaseWriter,
    files: CaseFiles,
    grid: Grid,
    drawn: tuple[DrawnMask, ...],
    case: Case | None,
) -> None:
    settings = plan.settings
    turn = harmonised(grid, settings.profile)
    images = case if settings.with_images else None
    if ExportFormat.NIFTI in settings.formats:
        _write_native(plan, writer, drawn, images)
        if settings.profile is not OrientationProfile.AS_IS:
            write_harmonised(writer, files, turn, drawn, images)
    if ExportFormat.CHALLENGE in settings.formats:
        write_challenge(writer, drawn, len(plan.names))
    if ExportFormat.BIDS in settings.formats:
        write_bids(writer, drawn)
    if ExportFormat.NNUNET in settings.formats and case is not None:
        last = drawn[-1]  # the only one, or the fused
        write_nnunet(writer, plan.data_set, settings, turn, last, case, plan.channels)
    if ExportFormat.DICOM_SEG in settings.formats:
        report_progress(1, 2, "Writing DICOM SEG")
        write_seg(writer, files, settings, drawn, len(plan.names), len(plan.cases))


def _write_native(
    plan: CasePlan, writer: CaseWriter, drawn: Sequence[DrawnMask], case: Case | None
) -> None:
    root, case_id = writer.root, writer.case_id
    report_progress(1, 2, "Writing masks")
    for mask in drawn:
        folder = root if len(plan.names) == 1 else root / "masks" / mask.name
        writer.mask(mask, mask.labels, mask.grid, folder / f"{case_id}.nii.gz")
    if case is not None and plan.settings.profile is OrientationProfile.AS_IS:
        for k, volume in enumerate(case.signal):
            report_progress(k, len(case.phases), f"Writing phase {k}")
            path = root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"
            writer.volume(volume, case.grid, path, "image")


def _absent(plan: CasePlan, case_id: str, drawn: Sequence[DrawnMask]) -> tuple[str, ...]:
    held = {mask.name for mask in drawn}
    return tuple(f"{name} has no mask of {case_id}" for name in plan.names if name not in held)
