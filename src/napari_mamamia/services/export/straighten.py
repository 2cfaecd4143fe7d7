"""Resample cases with sheared axes onto perpendicular axes, into a new data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.annotations.straighten import (
    straight_grid,
    straightened_labels,
    straightened_phase,
)
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.imported_case import placing, write_info, write_phase
from napari_mamamia.io.data_set.volumes import files_of_volume, read_phase_header, write_volume_job
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, load_mask
from napari_mamamia.services.register.phases import copy_beside_cases, require_apart

_NOTES: Final = "straightened"
_MASKS: Final = ("expert", "automatic")


@dataclass(frozen=True, slots=True)
class StraightCase:
    """A case that was resampled onto perpendicular axes.

    `lean_degrees` is the largest deviation of two axes from a right angle. Shapes are (z, y, x).
    `masks_mm3` has the name of each mask, with its volume before and after resampling.
    """

    case_id: str
    lean_degrees: float
    shape: tuple[int, int, int]
    new_shape: tuple[int, int, int]
    masks_mm3: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class StraightenSummary:
    """The resampled cases; `n_straight` further cases already have perpendicular axes."""

    folder: Path
    cases: tuple[StraightCase, ...]
    failures: tuple[CaseFailure, ...]
    n_straight: int


def straighten_data_set(
    opened: OpenDataSet,
    out: Path,
    *,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> StraightenSummary:
    """Resample each case with sheared axes onto a grid with perpendicular axes.

    ``images/ID/ID_000k.nii.gz`` (trilinear interpolation) and ``segmentations/`` (nearest voxel)
    are written on the grid of `annotations.straighten.straight_grid`, with clinical rows, splits,
    and a patient info that contains only the times, because boxes refer to the old voxels.
    ``straightened/ID.json`` has the method, the source files, and the volume of each mask before
    and after resampling.

    Raises
    ------
    CaseError
        If `case_ids` names an unknown case, or no case is sheared.
    SaveConflictError
        If `out` is inside the data set itself, or has other results.
    """
    require_apart(opened.data_set.root, out)
    data_set = opened.data_set
    chosen = [data_set.case(case_id) for case_id in case_ids] or list(data_set.cases)
    sheared = [files for files in chosen if _is_sheared(files)]
    if not sheared:
        raise CaseError(
            f"expected {data_set.root} to have a case with sheared axes, but the axes of all "
            f"{len(chosen)} cases are perpendicular: use the data set as it is"
        )
    parameters = (("data_set", data_set.name), ("cases", " ".join(case_ids)))
    claim_folder(out, "straighten", parameters, existing)
    by_id = {files.case_id: files for files in sheared}
    batch = for_each_case(
        tuple(by_id), lambda case_id: _straighten_case(opened, by_id[case_id], out, existing)
    )
    copy_beside_cases(opened, [case.case_id for case in batch.results], out)
    return StraightenSummary(out, batch.results, batch.failures, len(chosen) - len(sheared))


def _is_sheared(files: CaseFiles) -> bool:
    """Return whether a case must be resampled; True if it is unreadable, so that it fails later."""
    try:
        return bool(files.phases) and read_phase_header(files.phases[0]).grid.is_sheared
    except FormatError:
        return True


def _straighten_case(
    opened: OpenDataSet, files: CaseFiles, out: Path, existing: Existing
) -> StraightCase:
    case = load_case(files, opened.record(files.case_id))
    target = straight_grid(case.grid)
    replaces = existing is not Existing.REFUSE
    with placing(out, case.case_id, overwrite=replaces) as folder:
        for index, volume in enumerate(case.signal):
            text = f"Phase {index}: resampling"
            moved = straightened_phase(volume, case.grid, target, text)
            write_phase(folder, case.case_id, index, moved, target)
        masks = _write_masks(files, case, target, out)
        _write_notes(files, case, target, out, masks)
    return StraightCase(
        case.case_id, _lean_degrees(case.grid), case.grid.shape, target.shape, masks
    )


def _write_masks(
    files: CaseFiles, case: Case, target: Grid, out: Path
) -> tuple[tuple[str, float, float], ...]:
    moved: list[tuple[str, NDArray[Any]]] = []
    volumes = []
    for name, path in zip(_MASKS, (files.reference, files.automatic), strict=True):
        if path is None:
            continue
        report_progress(0, 1, f"Resampling the mask {name}")
        labels = load_mask(path, case)
        whole = np.zeros(case.grid.shape, labels.crop.dtype)
        whole[labels.box.slices] = labels.crop
        moved.append((name, straightened_labels(whole, case.grid, target)))
        before = np.count_nonzero(whole) * case.grid.voxel_volume_mm3
        after = np.count_nonzero(moved[-1][1]) * target.voxel_volume_mm3
        volumes.append((name, before, after))
    for name, array in moved:  # All grids are readable here.
        written = out / "segmentations" / name / f"{case.case_id}.nii.gz"
        write_volume_job(array, target, written, overwrite=True)
    return tuple(volumes)


def _write_notes(
    files: CaseFiles,
    case: Case,
    target: Grid,
    out: Path,
    masks: tuple[tuple[str, float, float], ...],
) -> None:
    sources = dict.fromkeys(path for phase in files.phases for path in phase.files)
    masked = [
        file
        for path in (files.reference, files.automatic)
        if path is not None
        for file in files_of_volume(path)
    ]
    content = {
        "case_id": case.case_id,
        "software": software_version(),
        "created": now_utc(),
        "method": "phases trilinear, masks nearest voxel, onto the nearest perpendicular axes",
        "lean_degrees": _lean_degrees(case.grid),
        "affine_before": case.grid.affine.tolist(),
        "affine_after": target.affine.tolist(),
        "shape_zyx_before": list(case.grid.shape),
        "shape_zyx_after": list(target.shape),
        "masks_mm3": {name: {"before": old, "after": new} for name, old, new in masks},
        "inputs": [{"name": p.name, "sha256": sha256_of(p)} for p in (*sources, *masked)],
        "note": "the voxels are resampled and differ from those of the scanner",
    }
    write_json(content, out / _NOTES / f"{case.case_id}.json", overwrite=True)
    if None not in case.times_s:
        info = {"imaging_data": {"acquisition_times": list(case.times_s)}}
        write_info(out, case.case_id, {"patient_id": case.case_id, **info}, overwrite=True)


def _lean_degrees(grid: Grid) -> float:
    directions = grid.matrix_mm / np.array(grid.spacing_mm)
    cosines = np.abs(directions.T @ directions)[np.triu_indices(3, 1)]
    return float(np.degrees(np.arcsin(np.clip(cosines.max(), 0, 1))))
