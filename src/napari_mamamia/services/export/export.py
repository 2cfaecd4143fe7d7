"""Export: masks as a bundle that others can trust, every file read back and listed by SHA-256."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.annotations.harmonise import OrientationProfile
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import InputFile, now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.bundle import (
    MANIFEST_NAME,
    BundleFile,
    CaseEntry,
    Manifest,
    describe_file,
    write_manifest,
)
from napari_mamamia.io.data_set.patient_info import TIMES_FILE
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.export.case import CasePlan, DoneCase, export_case
from napari_mamamia.services.export.formats import (
    finish_formats,
    n_channels,
    require_formats,
)
from napari_mamamia.services.export.harmonised import HARMONISED
from napari_mamamia.services.export.plan import (
    ExportFormat,
    ExportSettings,
    MaskFolder,
    chosen_cases,
    find_all_masks,
    label_names,
    parameters_of,
    public_name,
    require_names,
    require_own_folder,
)
from napari_mamamia.services.export.privacy import NOT_SEARCHED, volumes_of
from napari_mamamia.services.export.quality import (
    write_quality,
)
from napari_mamamia.services.export.seg import require_seg
from napari_mamamia.services.export.verify import verify_bundle

# Score and kinetics tables of a workspace, copied into a bundle.

_TABLES: Final = frozenset({".csv", ".xlsx", ".parquet", ".json"})
_NOT_TABLES: Final = frozenset({"run.json"})
_FOLDERS: Final = ("scores", "kinetics")


def copy_tables(workspace: Workspace, out: Path, *, overwrite: bool) -> tuple[BundleFile, ...]:
    """Copy the tables of ``scores/`` and ``kinetics/`` of a workspace to ``out/tables/``.

    Files ``.csv``, ``.xlsx``, ``.parquet`` and ``.json`` are copied byte for byte, with their
    folders; hidden ones and ``run.json`` stay. Nothing is copied where there is none.

    Raises
    ------
    SaveConflictError, SaveError
        As for every file that is written.
    """
    copied = []
    for source in _tables(workspace.root):
        target = out / "tables" / source.relative_to(workspace.root)
        with saving(target, overwrite=overwrite) as temporary:
            temporary.write_bytes(source.read_bytes())
        copied.append(describe_file(out, target, "table"))
    return tuple(copied)


def _tables(root: Path) -> Iterator[Path]:
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
    """One case that was written, read back and found equal; `files` with their SHA-256.

    `volume_mm3` is that of the first set's mask; `light` the quality, "" where it was not checked.
    """

    case_id: str
    volume_mm3: float
    files: tuple[InputFile, ...]
    light: str = ""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export wrote; every file in it was read back before it counted as saved.

    `problems` is what the verification of the whole bundle found, empty for a sound one; `notes`
    are plain sentences, such as that a reader has no mask of a case. `search` says what the bundle
    was searched for that would tell the patient, and what it was not.
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

    The plain form of `export_bundle`: one folder of masks, as NIfTI on the native grid, without
    tables.
    """
    settings = ExportSettings((MaskFolder(masks),), label=label, case_ids=tuple(case_ids))
    return _export(data_set, None, settings, out, existing)


def export_bundle(
    opened: OpenDataSet,
    settings: ExportSettings,
    out: Path,
    existing: Existing = Existing.REFUSE,
) -> ExportSummary:
    """Write masks, images if wanted, tables and reports to the folder `out`.

    ============================  ================================================================
    ``ID.nii.gz``, ``ID.json``    masks on the native grid with the image's own geometry fields,
                                  and provenance; of several sets in ``masks/SET/``
    ``harmonised/``               the same on the harmonised grid, in the MAMA-MIA layout
    ``dicom_seg/``                ``[SET/]ID.dcm``
    ``challenge/``                ``pred_segmentations/ID.nii.gz`` and ``submission.zip``
    ``nnunet/DatasetNNN_Name/``   raw training layout
    ``bids/``                     derivatives
    ``tables/``                   score and kinetics tables of the workspace
    ``quality.csv``, ``.html``    what is unusual about each case and mask
    ``manifest.json``             every file with SHA-256, and what each mask must be
    ============================  ================================================================

    Each mask must lie on its case's grid; nothing is resampled. One case's failure does not stop
    the others, and leaves no file of that case. The finished bundle is verified.

    Raises
    ------
    FormatError
        If a folder of masks is missing or holds no mask.
    CaseError
        If names of mask sets collide, a case of ``settings.case_ids`` has no mask, a layout cannot
        hold what is asked for, or `out` holds the data set or the masks themselves.
    SaveConflictError
        If `out` holds other results.
    SaveError
        If the manifest or a table cannot be written.
    """
    return _export(opened.data_set, opened, settings, out, existing)


def _export(
    data_set: DataSet,
    opened: OpenDataSet | None,
    settings: ExportSettings,
    out: Path,
    existing: Existing,
) -> ExportSummary:
    plan = _planned(data_set, opened, settings, out, existing is not Existing.REFUSE)
    claim_folder(out, "export", parameters_of(data_set, settings), existing)
    with suppress(FileNotFoundError):
        (out / MANIFEST_NAME).unlink()  # of an earlier export: until the end there is none
    batch = for_each_case(plan.cases, lambda case_id: export_case(plan, case_id))
    report_progress(0, 1, "Writing the manifest")
    studies = _studies(plan)
    notes = tuple(note for done in batch.results for note in done.notes)
    is_searched = bool(studies) or not plan.settings.identified_seg
    unsearched = () if studies or not is_searched else (NOT_SEARCHED,)
    manifest = _manifest(plan, opened, batch.results, (*notes, *unsearched))
    write_manifest(manifest, out)
    verified = verify_bundle(out, None, studies, volumes_of(_cases(plan)))
    return ExportSummary(
        out,
        tuple(_summarised(done.entry) for done in batch.results),
        batch.failures,
        verified.problems,
        (*notes, *verified.notes),
        verified.search if is_searched else "",
    )


def _studies(plan: CasePlan) -> tuple[Path, ...]:
    """Return the DICOM at hand whose patients the bundle must not tell.

    None where nothing but segmentations with the patient's name was asked for.
    """
    settings = plan.settings
    if settings.identified_seg and settings.formats == (ExportFormat.DICOM_SEG,):
        return ()
    studies = [] if settings.study is None else [settings.study]
    if plan.data_set.kind is LayoutKind.DICOM:
        for case_id in plan.cases:
            studies += [f for phase in plan.data_set.case(case_id).phases for f in phase.files]
    return tuple(studies)


def _cases(plan: CasePlan) -> tuple[CaseFiles, ...]:
    """Return the exported cases that are no DICOM."""
    if plan.data_set.kind is LayoutKind.DICOM:
        return ()
    known = plan.data_set.by_id()
    return tuple(known[case_id] for case_id in plan.cases if case_id in known)


def _planned(
    data_set: DataSet,
    opened: OpenDataSet | None,
    settings: ExportSettings,
    out: Path,
    replacing: bool,
) -> CasePlan:
    if not settings.formats:
        raise CaseError("an export needs a format, got none: choose nifti")
    names = require_names(settings)
    sets = find_all_masks(data_set, settings)
    require_own_folder(data_set, sets, out)
    cases = chosen_cases(settings, sets)
    require_formats(data_set, settings, names, cases)
    if ExportFormat.DICOM_SEG in settings.formats:
        require_seg(settings)
    wanted = ExportFormat.NNUNET in settings.formats
    channels = n_channels(data_set, settings, cases) if wanted else 0
    return CasePlan(data_set, opened, settings, names, sets, cases, channels, out, replacing)


def _manifest(
    plan: CasePlan, opened: OpenDataSet | None, done: Sequence[DoneCase], notes: tuple[str, ...]
) -> Manifest:
    settings, out = plan.settings, plan.out
    entries = tuple(item.entry for item in done)
    of_cases = [file for entry in entries for file in entry.files]
    files: list[BundleFile] = [describe_file(out, out / _RUN_FILE, "other")]
    qualities = [item.quality for item in done if item.quality is not None]
    if qualities:
        for path in write_quality(qualities, out, overwrite=plan.replacing):
            files.append(describe_file(out, path, "quality"))
    files += finish_formats(
        out,
        plan.data_set,
        settings,
        plan.names,
        of_cases,
        plan.channels,
        overwrite=plan.replacing,
    )
    files += _times(plan, done)
    if opened is not None:
        files += copy_tables(opened.workspace, out, overwrite=plan.replacing)
    return Manifest(
        software=software_version(),
        created=now_utc(),
        data_set=public_name(plan.data_set),
        profile=settings.profile.value,
        formats=tuple(wanted.value for wanted in settings.formats),
        masks=plan.names,
        labels=label_names(settings),
        cases=entries,
        files=tuple(files),
        notes=notes,
    )


def _times(plan: CasePlan, done: Sequence[DoneCase]) -> tuple[BundleFile, ...]:
    """Write ``times.json`` beside images that were exported, for the cases whose times are known.

    The images of a bundle open as a data set of their own, which has no clinical table.
    """
    settings = plan.settings
    known = [
        {"case_id": item.entry.case_id, "times_s": item.times_s}
        for item in done
        if item.times_s and None not in item.times_s
    ]
    if not known or not settings.with_images or ExportFormat.NIFTI not in settings.formats:
        return ()
    turned = settings.profile is not OrientationProfile.AS_IS
    path = (plan.out / HARMONISED if turned else plan.out) / TIMES_FILE
    write_json(known, path, overwrite=plan.replacing)
    return (describe_file(plan.out, path, "other"),)


def _summarised(entry: CaseEntry) -> ExportedMask:
    files = tuple(InputFile(file.name, file.sha256) for file in entry.files)
    return ExportedMask(entry.case_id, entry.volume_mm3, files, entry.quality)
