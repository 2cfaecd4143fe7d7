"""Register many cases and write them to a new data set without changing the original."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import CaseError, SaveConflictError
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.provenance import Setting, now_utc, software_version
from napari_mamamia.io.clinical.clinical import read_clinical, write_clinical
from napari_mamamia.io.data_set.imported_case import (
    case_folder,
    existing_case,
    placing,
    write_phase,
)
from napari_mamamia.io.data_set.patient_info import CLINICAL_NAMES, NEW_CLINICAL_NAME
from napari_mamamia.io.data_set.volumes import files_of_volume, read_labels, write_labels
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.volumes.formats import suffix_of
from napari_mamamia.kinetics.registration.itk import require_simpleitk
from napari_mamamia.kinetics.registration.settings import RegistrationSettings
from napari_mamamia.services.batch import work
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.row_table import OK, RowSummary, definitions_of, rows_of_batch
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, read_mask
from napari_mamamia.services.register.case import RegisteredCase, register_case
from napari_mamamia.services.register.registration_row import (
    RegisteredRows,
    RegistrationRow,
    rows_of,
)

TABLE: Final = "registration.csv"
_NOTES: Final = "registration"
_EXPERT: Final = ("segmentations", "expert")
_AUTOMATIC: Final = ("segmentations", "automatic")
_INFOS: Final = "patient_info_files"


@dataclass(frozen=True, slots=True)
class RegisterSettings:
    """The settings of a run: the method, the output folder and the masks."""

    out: str
    method: RegistrationSettings = field(default_factory=RegistrationSettings)
    mask_name: str = "reference"


def register_data_set(
    opened: OpenDataSet,
    out: Path,
    method: RegistrationSettings | None = None,
    *,
    masks: Path | None = None,
    case_ids: Sequence[str] = (),
    place: work.Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> RowSummary[RegistrationRow]:
    """Register each case and write it into a new data set `out`.

    ``images/ID/ID_000k.nii.gz`` is written on the grid of the case with identical header geometry.
    Masks, patient info, splits and clinical rows are copied; they remain valid, because the
    reference phase and the times are unchanged. ``registration.csv`` and ``.xlsx`` have a row for
    each case and phase. ``registration/ID.json`` has the method, version, settings and input files.

    Parameters
    ----------
    masks
        The folder with tumour masks ``ID.nii.gz``, whose voxels the fit ignores; None for the
        reference masks. A case without a mask is registered without a mask.
    case_ids
        The ids of the cases to register; if empty, all cases are registered.
    place, existing
        As in `run_batch`.

    Raises
    ------
    CaseError
        If `case_ids` names a case that does not exist.
    FormatError
        If `masks` is missing or has no mask.
    MissingExtraError
        If SimpleITK is not installed.
    SaveConflictError
        If `out` is inside the data set itself, or has other results.
    """
    require_simpleitk()
    require_apart(opened.data_set.root, out)
    name = "reference" if masks is None else masks.resolve().name
    settings = RegisterSettings(str(out.resolve()), method or RegistrationSettings(), name)
    inputs = work.masked_inputs(opened, masks, case_ids)
    parameters: tuple[tuple[str, Setting], ...] = (
        ("data_set", opened.data_set.name),
        ("masks", name),
        ("cases", " ".join(case_ids)),
        ("method", settings.method.name),
    )
    summary = rows_of_batch(
        inputs,
        work.CaseWork("register", register_files, settings, RegisteredRows),
        out / TABLE,
        RegistrationRow,
        parameters,
        read=opened.data_set.folders | ({masks} if masks is not None else frozenset()),
        rows_of=lambda registered: registered.rows,
        place=place,
        existing=existing,
        still_holds=lambda one: existing_case(out, one.case_id) is not None,
    )
    content = {"software": software_version(), "columns": dict(definitions_of(RegistrationRow))}
    path = out / "registration_columns.json"
    write_json(content, path, overwrite=existing is not Existing.REFUSE)
    written = dict.fromkeys(row.case_id for row in summary.rows if row.status == OK)
    copy_beside_cases(opened, list(written), out)
    return summary


def register_files(inputs: work.CaseInputs, settings: RegisterSettings) -> RegisteredRows:
    """Register one case from its files and write it completely or not at all.

    Parameters
    ----------
    inputs
        The files of the case.
    settings
        The settings of the registration.

    Raises
    ------
    CaseError, FormatError, GridMismatchError, SaveError
    """
    if not isinstance(inputs, work.MaskedInputs) or inputs.sources is None:
        raise CaseError(f"no files are listed for {inputs.case_id}; list the case again")
    case = load_case(inputs.sources, inputs.record)
    path = inputs.files[-1]
    mask = None if path is None else read_mask(path, case)
    registration = register_case(case, mask, settings.method)
    out = Path(settings.out)
    report_progress(0, len(case.phases), "Writing")
    with placing(out, case.case_id, overwrite=True) as folder:
        for index, volume in enumerate(registration.case.signal):
            write_phase(folder, case.case_id, index, volume, case.grid)
        _copy_beside(inputs.sources, out)
        _write_note(registration, case, inputs, settings)
    return rows_of(registration)


def require_apart(root: Path, out: Path) -> None:
    """Raise an error if a new data set would be written into its source.

    Raises
    ------
    SaveConflictError
        If `out` is inside `root`.
    """
    inside = out.resolve()
    if root.resolve() in (inside, *inside.parents):
        raise SaveConflictError(
            f"expected the new data set to be outside the data set {root}, but got {out}; choose "
            "a different folder"
        )


def _copy_beside(files: CaseFiles, out: Path) -> None:
    """Copy masks and patient info, which belong to the unchanged reference phase."""
    for source, folder in ((files.reference, _EXPERT), (files.automatic, _AUTOMATIC)):
        if source is not None:
            target = out.joinpath(*folder)
            if (
                len(files_of_volume(source)) > 1
            ):  # a header that refers to a voxel file refers to exactly one
                written = target / f"{files.case_id}.nii.gz"
                write_labels(read_labels(source), written, overwrite=True)
            else:
                _copy_file(source, target / f"{files.case_id}{suffix_of(source.name)}")
    if files.info is not None:
        _copy_file(files.info, out / _INFOS / f"{files.case_id}.json")


def _copy_file(source: Path, target: Path) -> None:
    with saving(target, overwrite=True) as temporary:
        shutil.copyfile(source, temporary)


def _write_note(
    found: RegisteredCase, case: Case, inputs: work.MaskedInputs, settings: RegisterSettings
) -> None:
    paths = [path for path in inputs.files if path is not None]
    content = {
        "case_id": case.case_id,
        "software": software_version(),
        "created": now_utc(),
        "method": settings.method.name,
        "settings": settings.method,
        "mask": settings.mask_name if inputs.files[-1] is not None else "none",
        "phases_changed": list(found.found.changed),
        "times_s": list(case.times_s),
        "residual_voxels": found.found.quiet_voxels,
        "residual_voxel_mm3": found.found.quiet_mm3,
        "phases": [asdict(row) for row in rows_of(found).rows],
        "inputs": [{"name": path.name, "sha256": sha256_of(path)} for path in paths],
        "note": (
            "the voxels of the changed phases are resampled and differ from those of the scanner"
        ),
    }
    write_json(content, Path(settings.out) / _NOTES / f"{case.case_id}.json", overwrite=True)


def copy_beside_cases(opened: OpenDataSet, case_ids: Sequence[str], out: Path) -> None:
    """Copy the data set's other files: the clinical rows of `case_ids`, and the splits."""
    _write_clinical(opened, case_ids, out)
    if opened.data_set.splits is not None:
        _copy_file(opened.data_set.splits, out / opened.data_set.splits.name)


def _write_clinical(opened: OpenDataSet, case_ids: Sequence[str], out: Path) -> None:
    """Write the clinical rows of the cases; rows from an earlier run in `out` are kept."""
    matches = (_record_of(opened, case_id) for case_id in case_ids)
    records = [record for record in matches if record is not None]
    there = next((path for name in CLINICAL_NAMES if (path := out / name).is_file()), None)
    source_table = opened.data_set.clinical
    name = NEW_CLINICAL_NAME
    if source_table is not None and source_table.suffix != ".ods":  # The original is not changed.
        name = source_table.name
    if there is not None:
        keys = {case_key(record.case_id) for record in records}
        with listening(None):
            present = read_clinical(there).records
        older = [one for one in present if case_key(one.case_id) not in keys]
        old_records = [one for one in older if case_folder(out, one.case_id).is_dir()]
        records = [*old_records, *records]
    if records:
        write_clinical(Cohort(tuple(records)), there or out / name, overwrite=True)


def _record_of(opened: OpenDataSet, case_id: str) -> CaseRecord | None:
    """Return a case's clinical row, with its times from any source in the data set."""
    record = opened.record(case_id)
    sources = opened.data_set.case(case_id).phases
    times = tuple(source.time_s for source in sources if source.time_s is not None)
    if len(times) < len(sources):
        return record
    if record is None:
        return CaseRecord(case_id, acquisition_times_s=times)
    return replace(record, acquisition_times_s=record.acquisition_times_s or times)
