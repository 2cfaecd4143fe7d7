"""Export masks as a bundle with a manifest into a checked folder; read back every file."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.choices import ExportFormat
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import Cancelled, report_progress
from napari_mamamia.core.provenance import InputFile, now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set import bundle
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import names_a_person
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.output_folder import Existing, claim_folder, run_in, take_back
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.export.format_spec import CaseWork, DoneCase, ExportPlan, case_writer
from napari_mamamia.services.export.formats import EXPORT_FORMATS, formats_of
from napari_mamamia.services.export.plan import (
    DrawnMask,
    ExportSettings,
    MaskFolder,
    chosen_cases,
    drawn_masks,
    find_all_masks,
    label_names,
    parameters_of,
    public_name,
    require_names,
    require_own_folder,
)
from napari_mamamia.services.export.privacy import NOT_SEARCHED, volumes_of
from napari_mamamia.services.export.quality import (
    CaseQuality,
    case_quality,
    load_for_export,
    write_quality,
)
from napari_mamamia.services.export.verify import verify_bundle

# Score and kinetics tables of a workspace are copied into the bundle.

_TABLES: Final = frozenset({".csv", ".xlsx", ".parquet", ".json"})
_NOT_TABLES: Final = frozenset({"run.json"})
_FOLDERS: Final = ("scores", "kinetics")


def copy_tables(
    workspace: Workspace, out: Path, *, overwrite: bool
) -> tuple[bundle.BundleFile, ...]:
    """Copy the tables of ``scores/`` and ``kinetics/`` of a workspace to ``out/tables/``.

    ``.csv``, ``.xlsx``, ``.parquet`` and ``.json`` files are copied byte for byte, with their
    folders, except hidden files and ``run.json``.

    Raises
    ------
    SaveConflictError, SaveError
        If a file exists already or cannot be written.
    """
    copied = []
    for source in _list_tables(workspace.root):
        target = out / "tables" / source.relative_to(workspace.root)
        with saving(target, overwrite=overwrite) as temporary:
            temporary.write_bytes(source.read_bytes())
        copied.append(bundle.describe_file(out, target, "table"))
    return tuple(copied)


def _list_tables(root: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        folder = root / name
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            inside = path.relative_to(root).parts
            hidden = any(part.startswith(".") for part in inside)
            is_table = path.suffix.lower() in _TABLES and path.name not in _NOT_TABLES
            if is_table and not hidden and path.is_file():
                yield path


_RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class ExportedMask:
    """A case that was written and read back unchanged; `files` lists its files with their SHA-256.

    `volume_mm3` is the volume of the mask in the first set. `light` is the quality, or "" if it was
    not checked.
    """

    case_id: str
    volume_mm3: float
    files: tuple[InputFile, ...]
    light: str = ""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The result of an export, in which every file was read back.

    `problems` are the results of verifying the whole bundle; the tuple is empty if the bundle is
    valid. `notes` are sentences, for example about a reader who has no mask for a case. `search`
    states for which patient data the bundle was searched and for which it was not.
    """

    out: Path
    exported: tuple[ExportedMask, ...]
    failures: tuple[CaseFailure, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    search: str = ""


def export_masks(
    data_set: DataSet,
    masks: Path,
    out: Path,
    *,
    label: float | None = None,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> ExportSummary:
    """Write ``out/ID.nii.gz``, ``out/ID.json`` and the manifest.

    This is a simple form of `export_bundle`: one folder of masks is written as NIfTI on the native
    grid, without tables.
    """
    settings = ExportSettings((MaskFolder(masks),), label=label, case_ids=tuple(case_ids))
    return _export_cases(data_set, None, settings, out, existing)


def export_bundle(
    opened: OpenDataSet,
    settings: ExportSettings,
    out: Path,
    existing: Existing = Existing.REFUSE,
) -> ExportSummary:
    """Write masks, optional images, tables and reports to the folder `out`.

    ============================  ================================================================
    ``ID.nii.gz``, ``ID.json``    masks on the native grid with the image's own geometry fields,
                                  and provenance; several sets are in ``masks/SET/``
    ``harmonised/``               the same on the harmonised grid, in the MAMA-MIA layout
    ``dicom_seg/`` and others     files of each further format (`EXPORT_FORMATS`)
    ``tables/``                   score and kinetics tables of the workspace
    ``quality.csv``, ``.html``    unusual properties of each case and mask
    ``manifest.json``             every file with SHA-256, and the grid of each mask
    ============================  ================================================================

    Each mask must be on its case's grid; nothing is resampled. If a case fails, the export
    continues with the other cases, and no file of the failed case remains. The finished bundle is
    verified. If the work is cancelled, all its files are removed. If the folder was not empty,
    files of an earlier export may already have been replaced.

    Raises
    ------
    FormatError
        If a folder of masks is missing or has no mask.
    CaseError
        If two mask sets have the same name, a case in ``settings.case_ids`` has no mask, a layout
        cannot represent the data, or `out` contains the data set or the masks themselves.
    SaveConflictError
        If `out` has other results.
    SaveError
        If the manifest or a table cannot be written.
    """
    return _export_cases(opened.data_set, opened, settings, out, existing)


def _export_cases(
    data_set: DataSet,
    opened: OpenDataSet | None,
    settings: ExportSettings,
    out: Path,
    existing: Existing,
) -> ExportSummary:
    plan = _plan_export(data_set, opened, settings, out, existing is not Existing.REFUSE)
    was_there = out.is_dir()
    was_free = not was_there or not any(out.iterdir())
    claim_folder(out, "export", parameters_of(data_set, settings), existing)
    of_bundle: list[bundle.BundleFile] = []
    try:
        return _write_bundle(plan, opened, of_bundle)
    except (Cancelled, KeyboardInterrupt):
        if (
            was_free
        ):  # An incomplete bundle is removed, because a reader could not see what is missing.
            names = (bundle.MANIFEST_NAME, *(file.name for file in of_bundle))
            take_back(out, [out / name for name in names], was_there=was_there)
        raise


def _write_bundle(
    plan: ExportPlan, opened: OpenDataSet | None, of_bundle: list[bundle.BundleFile]
) -> ExportSummary:
    """Write and verify the bundle; its files except the manifest are appended to `of_bundle`."""
    out = plan.out
    with suppress(FileNotFoundError):
        (out / bundle.MANIFEST_NAME).unlink()  # until the new manifest is complete

    def export(case_id: str) -> DoneCase:
        case = export_case(plan, case_id)
        of_bundle.extend(case.entry.files)
        return case

    batch = for_each_case(plan.cases, export)
    report_progress(0, 1, "Writing the manifest")
    studies = _list_studies(plan)
    notes = tuple(note for case in batch.results for note in case.notes)
    is_searched = bool(studies) or not plan.settings.identified_seg
    unsearched = () if studies or not is_searched else (NOT_SEARCHED,)
    others: list[bundle.BundleFile] = []
    try:
        manifest = _make_manifest(plan, opened, batch.results, (*notes, *unsearched), others)
    finally:
        of_bundle.extend(others)
    bundle.write_manifest(manifest, out)
    verified = verify_bundle(out, None, studies, volumes_of(_list_cases(plan)))
    return ExportSummary(
        out,
        tuple(_summarise_entry(case.entry) for case in batch.results),
        batch.failures,
        verified.problems,
        (*notes, *verified.notes),
        verified.search if is_searched else "",
    )


def _list_studies(plan: ExportPlan) -> tuple[Path, ...]:
    """Return the available DICOM sources whose patients must not be identifiable in the bundle.

    The result is empty if only segmentations with the patient's name were requested.
    """
    settings = plan.settings
    if settings.identified_seg and settings.formats == (ExportFormat.DICOM_SEG,):
        return ()
    studies = [] if settings.study is None else [settings.study]
    if plan.data_set.kind is LayoutKind.DICOM:
        for case_id in plan.cases:
            studies += [f for phase in plan.data_set.case(case_id).phases for f in phase.files]
    return tuple(studies)


def _list_cases(plan: ExportPlan) -> tuple[CaseFiles, ...]:
    if plan.data_set.kind is LayoutKind.DICOM:
        return ()
    by_id = plan.data_set.by_id()
    return tuple(by_id[case_id] for case_id in plan.cases if case_id in by_id)


def _plan_export(
    data_set: DataSet,
    opened: OpenDataSet | None,
    settings: ExportSettings,
    out: Path,
    replacing: bool,
) -> ExportPlan:
    if not settings.formats:
        raise CaseError("expected at least one format, but got none: choose nifti")
    names = require_names(settings)
    sets, others = find_all_masks(data_set, settings)
    require_own_folder(data_set, sets, out)
    cases = chosen_cases(settings, sets, others)
    plan = ExportPlan(data_set, opened, settings, names, sets, others, cases, out, replacing)
    for spec in formats_of(settings):
        spec.require(plan)
    return plan


def _make_manifest(
    plan: ExportPlan,
    opened: OpenDataSet | None,
    done: Sequence[DoneCase],
    notes: tuple[str, ...],
    files: list[bundle.BundleFile],
) -> bundle.Manifest:
    """Write and record the files that belong to no case, and return the manifest."""
    settings, out = plan.settings, plan.out
    entries = tuple(item.entry for item in done)
    files.append(bundle.describe_file(out, out / _RUN_FILE, "other"))
    qualities = [item.quality for item in done if item.quality is not None]
    if qualities:
        for path in write_quality(qualities, out, overwrite=plan.replacing):
            files.append(bundle.describe_file(out, path, "quality"))
    for spec in (
        formats_of(settings) if done else ()
    ):  # An empty submission could be mistaken for a valid submission.
        files += spec.finish(plan, done)
    if opened is not None:
        files += copy_tables(opened.workspace, out, overwrite=plan.replacing)
    return bundle.Manifest(
        software=software_version(),
        created=now_utc(),
        data_set=public_name(plan.data_set),
        profile=settings.profile.value,
        formats=tuple(map(str, settings.formats)),
        masks=plan.names,
        labels=label_names(settings),
        cases=entries,
        files=tuple(files),
        notes=notes,
    )


def _summarise_entry(entry: bundle.CaseEntry) -> ExportedMask:
    files = tuple(InputFile(file.name, file.sha256) for file in entry.files)
    return ExportedMask(entry.case_id, entry.volume_mm3, files, entry.quality)


# Export one case: read and check its masks, then write every requested format.


def export_case(plan: ExportPlan, case_id: str) -> DoneCase:
    """Write all requested files of one case; no file remains if the case fails.

    Raises
    ------
    MamamiaError
        If the case cannot be exported.
    """
    settings = plan.settings
    report_progress(0, 1, "Exporting")
    if case_id in plan.others:
        raise FormatError(plan.others[case_id])
    files = plan.data_set.case(case_id)
    _require_impersonal(files, settings)
    grid = read_phase_header(files.phases[0]).grid
    _require_readable(case_id, grid, settings)
    drawn = drawn_masks(case_id, grid, settings, plan.names, plan.sets)
    formats = formats_of(settings)
    needs_images = settings.with_images or any(spec.needs_images for spec in formats)
    case: Case | None = None
    quality: CaseQuality | None = None
    if needs_images or settings.with_quality:
        record = plan.opened.record(case_id) if plan.opened is not None else None
        case, findings = load_for_export(files, record)
        if case is None and needs_images:
            raise CaseError(findings[0].text)
        if settings.with_quality:
            quality = case_quality(case_id, case, findings, drawn)
    work = CaseWork(plan, files, grid, drawn, case)
    with case_writer(plan.out, case_id, replacing=plan.replacing) as writer:
        report_progress(1, 2, "Writing")
        for spec in formats:
            spec.write(work, writer)
    light = "" if quality is None else quality.light.value
    volume = float((drawn[0].labels > 0).sum()) * grid.voxel_volume_mm3
    entry = bundle.CaseEntry(case_id, volume, light, tuple(writer.files))
    times_s = () if case is None else case.times_s
    lost = (note for spec in formats for note in spec.notes(work))
    notes = (*_note_absent(plan, case_id, drawn), *_note_shear(case_id, grid), *lost)
    return DoneCase(entry, quality, notes, times_s)


def _require_readable(case_id: str, grid: Grid, settings: ExportSettings) -> None:
    """Raise an error if axes are sheared but a format is read with ITK, which rejects such axes."""
    for name, spec in EXPORT_FORMATS.items():
        if grid.is_sheared and spec.needs_right_angles and name in settings.formats:
            raise CaseError(
                f"expected perpendicular axes for {name} (a format usually read with SimpleITK), "
                f"but the axes of {case_id} are sheared: export a resampled copy, or omit that "
                "format",
                remedies=(Remedy(command="straighten"),),
            )


def _note_shear(case_id: str, grid: Grid) -> tuple[str, ...]:
    if not grid.is_sheared:
        return ()
    return (
        f"the axes of {case_id} are sheared, and programs built on ITK cannot read such files; "
        "straighten the data set to get a copy with perpendicular axes",
    )


def _require_impersonal(files: CaseFiles, settings: ExportSettings) -> None:
    """Raise an error for a DICOM case whose id (its folder name) identifies the patient."""
    if settings.identified_seg or not is_dicom_file(files.phases[0].files[0]):
        return
    if names_a_person((file for phase in files.phases for file in phase.files), files.case_id):
        raise CaseError(
            "expected the case id not to identify the patient, but it contains a word of the "
            "patient's name, number or birth date: import the study under a different id, and "
            "export the imported case",
            remedies=(Remedy(command="import"),),
        )


def _note_absent(plan: ExportPlan, case_id: str, drawn: Sequence[DrawnMask]) -> tuple[str, ...]:
    held = {mask.name for mask in drawn}
    return tuple(f"{name} has no mask for {case_id}" for name in plan.names if name not in held)


class TargetState(StrEnum):
    """The state of an output folder."""

    FREE = "free"
    BUNDLE = "an earlier export"
    CUT_OFF = "an export that was cut off"
    TAKEN = "other files"
    READ_ONLY = "read-only"
    NO_FOLDER = "no folder"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """The state of an output folder, and a sentence about it."""

    folder: Path
    state: TargetState
    text: str


def look_at_target(folder: Path) -> ExportTarget:
    """Return the state of `folder` without raising errors or writing files.

    For a folder that does not exist yet, the nearest existing parent is checked.
    """
    try:
        return _looked_at(folder)
    except (OSError, ValueError) as error:
        text = f"{folder} cannot be used ({error}): choose a different folder"
        return ExportTarget(folder, TargetState.NO_FOLDER, text)


def _looked_at(folder: Path) -> ExportTarget:
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not there.is_dir():
        text = f"{there} is a file, not a folder: choose a different folder"
        return ExportTarget(folder, TargetState.NO_FOLDER, text)
    if not os.access(there, os.W_OK):
        text = f"{there} is not writable: choose a different folder"
        return ExportTarget(folder, TargetState.READ_ONLY, text)
    names = [path.name for path in folder.iterdir()] if there == folder else []
    if not names:
        return ExportTarget(folder, TargetState.FREE, "The folder is empty or new.")
    if bundle.MANIFEST_NAME in names:
        text = (
            "The folder contains an earlier export: replace its files, or choose a different "
            "folder."
        )
        return ExportTarget(folder, TargetState.BUNDLE, text)
    if run_in(folder) == "export":
        text = (
            "The folder contains an unfinished export: replace its files, or choose a "
            "different folder."
        )
        return ExportTarget(folder, TargetState.CUT_OFF, text)
    text = (
        f"The folder contains {count_of(len(names), 'other file')}: choose a different folder, or "
        "replace files."
    )
    return ExportTarget(folder, TargetState.TAKEN, text)
