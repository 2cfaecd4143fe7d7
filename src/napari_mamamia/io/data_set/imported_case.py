"""Write an imported case completely in the MAMA-MIA layout, or write nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.errors import FormatError, Remedy, SaveConflictError, SaveError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.io.clinical.clinical import read_clinical, write_clinical
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice, columns_for
from napari_mamamia.io.data_set.patient_info import CLINICAL_NAMES, NEW_CLINICAL_NAME
from napari_mamamia.io.data_set.volumes import write_volume_job
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import list_names
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.one_writer import wait_for_turn
from napari_mamamia.io.files.own_paths import own_folder, place_folder, sweep
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.volumes.voxel_writer import Planes

_IMAGES: Final = "images"
_INFOS: Final = "patient_info_files"
_TABLE: Final = "clinical_table"
"""Name of the lock for the clinical table, independent of the table's file name."""
_NO_LOCKS: Final = (
    "this file system has no locks, so two simultaneous imports into one data set may lose a row "
    "of the clinical table"
)


def case_folder(data_set: Path, case_id: str) -> Path:
    """Return the folder that contains a case's phases."""
    return data_set / _IMAGES / case_id


def sweep_data_set(data_set: Path) -> None:
    """Remove unfinished cases of killed imports, and restore the cases that these imports moved."""
    for folder in (data_set, data_set / _IMAGES, data_set / _INFOS):
        sweep(folder)


def existing_case(data_set: Path, case_id: str) -> Path | None:
    """Return the folder of a case that already exists (ignoring letter case), or None."""
    images = data_set / _IMAGES
    names = list_names(images) if images.is_dir() else []
    key = case_key(case_id)
    return next((images / name for name in names if case_key(name) == key), None)


def upright(grid: Grid) -> tuple[Grid, tuple[slice, ...]]:
    """Return a grid with rows counted from the bottom, and the slices that flip an array to it.

    DICOM counts rows downwards. After the flip, axial exams are LAS and sagittal exams PSR
    (nibabel's "towards" letters), as in MAMA-MIA and in the files of dcm2niix.
    """
    affine = grid.affine.copy()
    affine[:3, 3] += affine[:3, 1] * (grid.shape[1] - 1)
    affine[:3, 1] *= -1
    turned = Grid(grid.shape, affine)
    return turned, (slice(None), slice(None, None, -1), slice(None))


@contextmanager
def placing(data_set: Path, case_id: str, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden folder to fill, which becomes the case's folder at the end of the block.

    If the block fails, the hidden folder is removed, and an older case is not changed.

    Raises
    ------
    SaveConflictError
        If the case exists and `overwrite` is False.
    SaveError
        If the files cannot be written.
    """
    target = existing_case(data_set, case_id) or case_folder(data_set, case_id)
    if target.exists() and not overwrite:
        raise _make_conflict_error(target)
    is_new = not data_set.exists()
    try:
        with own_folder(target.parent) as temporary:
            yield temporary
            # Another import may have created the case while the block ran.
            if target.exists() and not overwrite:
                raise _make_conflict_error(target)
            earlier = target if target.exists() else None
            place_folder(temporary, case_folder(data_set, case_id), earlier)
    except OSError as error:
        # These errors are OSErrors too, and already have a remedy.
        if isinstance(error, SaveConflictError | SaveError):
            raise
        raise SaveError(
            f"cannot save {target}: {error.strerror or error}; nothing was written; check the "
            "folder and the free disk space"
        ) from error
    finally:
        with suppress(OSError):  # Nothing remains of a first case that failed, not even folders.
            target.parent.rmdir()
            if is_new:
                data_set.rmdir()


def write_phase(folder: Path, case_id: str, index: int, array: Planes, grid: Grid) -> int:
    """Write one phase, verify the file, and return its size in bytes."""
    path = folder / f"{case_id}_{index:04d}.nii.gz"
    write_volume_job(array, grid, path)
    return path.stat().st_size


def write_info(
    data_set: Path, case_id: str, content: Mapping[str, Any], *, overwrite: bool = False
) -> Path:
    """Write ``patient_info_files/ID.json``, without overwriting files from other sources.

    Raises
    ------
    SaveConflictError
        If a file that was not written by an import exists, and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    path = data_set / _INFOS / f"{case_id}.json"
    if not overwrite and path.exists() and not _is_of_an_import(path):
        raise SaveConflictError(
            f"the patient info {path} already exists and is not from an import, so nothing was "
            "written; give the case another id, or replace the file",
            remedies=(Remedy("case", ("ID",)), Remedy("overwrite")),
        )
    write_json(content, path, overwrite=True)
    return path


def check_clinical_table(data_set: Path, columns: ColumnChoice = BY_NAME) -> None:
    """Raise `FormatError` if no row can be added to the data set's clinical table.

    The same error is raised if columns were fixed but no table exists yet, because a new table has
    the standard columns.
    """
    path = next((p for n in CLINICAL_NAMES if (p := data_set / n).is_file()), None)
    if path is not None:
        _whole_table(path, columns)
    elif columns != BY_NAME:
        raise FormatError(
            f"{data_set} has a columns file for its clinical table, but no clinical table: remove "
            "the columns file, or add the table first"
        )


def add_clinical_row(data_set: Path, record: CaseRecord, columns: ColumnChoice = BY_NAME) -> str:
    """Add a row to the clinical table; return a note for the user, or "".

    The table in the data set's root is used; if there is none, a .csv file is created. In an
    existing row, only empty cells are filled; missing columns are added. A lock prevents other
    imports from changing the table at the same time. `columns` are the columns that the user fixed,
    which keep their names.

    Raises
    ------
    FormatError
        If the table cannot be read, or has rows that would be lost by writing it again.
    SaveError
        If the table cannot be written.
    """
    with wait_for_turn(data_set / _TABLE) as turn:
        message = _with_row(data_set, record, columns)
    return ". ".join(filter(None, (message, "" if turn.is_alone else _NO_LOCKS)))


def _with_row(data_set: Path, record: CaseRecord, columns: ColumnChoice) -> str:
    path = next((p for n in CLINICAL_NAMES if (p := data_set / n).is_file()), None)
    if path is None:
        write_clinical(Cohort((record,)), data_set / NEW_CLINICAL_NAME)
        return ""
    columns = columns_for(path, columns)
    cohort = _whole_table(path, columns)
    key = case_key(record.case_id)
    old = next((row for row in cohort.records if case_key(row.case_id) == key), None)
    if old is None:
        records: Sequence[CaseRecord] = (*cohort.records, record)
    else:
        records = tuple(
            _complete_record(old, record) if row is old else row for row in cohort.records
        )
    if tuple(records) == cohort.records:
        return ""
    write_clinical(Cohort(tuple(records)), path, columns, overwrite=True)
    return (
        ""
        if old is None
        else (f"{path.name} already had a row for {old.case_id}; only empty cells were filled")
    )


def _is_of_an_import(path: Path) -> bool:
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "import" in content


def _whole_table(path: Path, columns: ColumnChoice) -> Cohort:
    if path.suffix.lower() == ".ods":
        raise FormatError(
            f"the clinical table {path} cannot be changed, because .ods files can only be read; "
            "save it as .xlsx or .csv instead"
        )
    with listening(None):
        cohort = read_clinical(path, columns)
    if cohort.refused:
        raise FormatError(
            f"expected all rows of the clinical table {path} to be readable, but row "
            f"{cohort.refused[0].row} is not ({cohort.refused[0].reason}): correct this row, "
            "because it would be lost otherwise"
        )
    return cohort


def _complete_record(old: CaseRecord, new: CaseRecord) -> CaseRecord:
    other = {**new.other, **{name: v for name, v in old.other.items() if v is not None}}
    times = old.acquisition_times_s or new.acquisition_times_s
    return CaseRecord(
        old.case_id,
        old.age,
        old.menopausal_status,
        old.breast_density,
        old.tumour_subtype,
        old.pcr,
        old.dataset or new.dataset,
        times,
        MappingProxyType(other),
    )


def _make_conflict_error(target: Path) -> SaveConflictError:
    return SaveConflictError(
        f"a case already exists at {target}, so nothing was written; give the case another id, "
        "skip finished cases, or replace the existing case",
        remedies=(Remedy("case", ("ID",)), Remedy("resume"), Remedy("overwrite")),
    )
