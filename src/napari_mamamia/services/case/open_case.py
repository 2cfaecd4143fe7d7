"""Open a case; the displayed phase is read first, and the other phases are added later."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import do_abreast, report_progress, saying
from napari_mamamia.io.data_set.patient_info import PatientInfo, read_patient_info
from napari_mamamia.io.data_set.volumes import (
    read_phase_header,
    read_phase_into,
    read_series_into,
)
from napari_mamamia.io.files.headers import VolumeHeader
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.layouts.label_names import read_reference, read_tumour
from napari_mamamia.kinetics.arrival import find_arrival
from napari_mamamia.kinetics.time_axis import MOST_SPACING_S

_ABREAST: Final = 2
"""Number of phases that are read in parallel after the first phase. Our choice.

Decompression releases the GIL.
"""
_MOST_VALUES: Final = 64
_SAMPLE: Final = 1_000_000
"""Number of evenly spaced voxels in which the distinct values of a mask are counted. Our choice."""


def open_case(files: CaseFiles, record: CaseRecord | None = None, first: int = 1) -> Case:
    """Check all headers and read one phase; `load_remaining` reads the other phases.

    The phase to read is `first`, or the last phase if the case is shorter, or phase 0 of a 4-D
    file.

    Raises
    ------
    CaseError
        If a phase is missing, or phases differ in shape or affine.
    FormatError
        If a file is damaged.
    """
    if files.problems:
        raise CaseError(f"{files.case_id} cannot be opened: {'; '.join(files.problems)}")
    report_progress(0, 1, "Reading headers")
    headers = list(map(read_phase_header, files.phases))
    _require_fitting(files, headers)
    signal = np.zeros((len(headers), *headers[0].grid.shape), dtype=_common_dtype(headers))
    times, warning = _read_times(files, record)
    warnings = dict.fromkeys(text for header in headers for text in header.warnings)
    index = 0 if files.is_series else min(first, len(headers) - 1)
    phases = tuple(
        Phase(k, times[k], source.files, loaded=False) for k, source in enumerate(files.phases)
    )
    info, damage = _patient_info(files)
    breast, doubt = _breast_box(files.case_id, info, headers[0].grid.shape)
    case = Case(
        files.case_id,
        headers[0].grid,
        signal,
        phases,
        (
            *files.warnings,
            *warnings,
            *warning,
            *damage,
            *doubt,
            *_warn_of_spacing(files.case_id, headers[0].grid),
        ),
        breast,
        scan=info.scan,
        frame_uid=info.frame_uid,
    )
    _read_phase(files, signal, index)
    return _with_loaded(case, {index})


def _warn_of_spacing(case_id: str, grid: Grid) -> tuple[str, ...]:
    return (f"{case_id}: {grid.spacing_warning}",) if grid.spacing_warning else ()


def load_remaining(case: Case, files: CaseFiles) -> Case:
    """Read the remaining phases of `case` into the same array.

    The returned case has a warning for each volume with only zeros or with non-finite values.
    """
    waiting = [phase.index for phase in case.phases if not phase.loaded]
    if waiting and files.is_series:
        header = read_phase_header(files.phases[0])
        read_series_into(files.phases[0].files[0], header, case.signal)
    else:
        read = partial(_read_phase, files, case.signal)
        do_abreast(read, waiting, _ABREAST, f"Reading {count_of(len(waiting), 'phase')}")
    return _with_arrival(_with_loaded(case, set(waiting)))


def load_case(files: CaseFiles, record: CaseRecord | None = None) -> Case:
    """Open a case and read all its phases."""
    case = open_case(files, record)
    return load_remaining(case, files)


def load_mask(path: Path, case: Case, label: float | None = None) -> LabelMap:
    """Return the label map at `path`, which must be on the case's grid.

    If a ``dataset.json`` names several labels, the map contains only the tumour, unless `label` is
    given.

    Raises
    ------
    FormatError, GridMismatchError
    """
    return _on_grid(read_tumour(path, label), path, case)


def load_reference(path: Path, files: CaseFiles, case: Case) -> LabelMap:
    """Return the label map of a case's reference at `path`; errors as in `load_mask`."""
    return _on_grid(read_reference(path, files), path, case)


def _on_grid(labels: LabelMap, path: Path, case: Case) -> LabelMap:
    labels = labels.on_grid(case.grid)
    require_same_grid(labels.grid, case.grid, str(path), f"case {case.case_id}")
    return labels


def read_mask(path: Path, case: Case, label: float | None = None) -> NDArray[np.bool_]:
    """Return the mask for a measurement as a boolean array ``(z, y, x)``.

    The mask contains the voxels with the value `label`, or all foreground voxels.

    Raises
    ------
    CaseError
        If the file has as many distinct values as an image, or no voxel has the value `label`.
    FormatError, GridMismatchError
        As in `load_mask`.
    """
    labels = load_mask(path, case, label)
    require_few_values(labels, case.case_id)
    voxels = labels.mask(label).array
    if label is not None and labels.values and not voxels.any():
        there = ", ".join(f"{value:g}" for value in labels.values[:5])
        raise CaseError(
            f"expected the mask of {case.case_id} to have the value {label:g}, but found only "
            f"{there}: choose one of these, or no value",
            remedies=(Remedy("label", ("VALUE",)),),
        )
    return voxels


def require_few_values(labels: LabelMap, case_id: str) -> None:
    """Raise `CaseError` if a mask file has as many distinct values as an image."""
    values = np.unique(labels.crop.ravel()[:: max(labels.crop.size // _SAMPLE, 1)])
    if len(values) > _MOST_VALUES and values[-1] > 1:
        raise CaseError(
            f"expected the mask of {case_id} to have few distinct values, but {labels.source} has "
            f"more than {len(values):,}, up to {values[-1]:g}, and looks like an image: choose "
            "the folder with the masks"
        )


def _read_phase(files: CaseFiles, signal: NDArray[Any], index: int) -> None:
    header = read_phase_header(files.phases[index])
    fits = header.dtype == signal.dtype
    out = signal[index] if fits else np.empty(header.grid.shape, dtype=header.dtype)
    with saying(f"Reading phase {index}"):
        read_phase_into(files.phases[index], header, out)
    if not fits:
        signal[index] = out


def _require_fitting(files: CaseFiles, headers: list[VolumeHeader]) -> None:
    if not headers:
        raise CaseError(
            f"expected phases for {files.case_id}, but found none: add {files.case_id}_0000.nii.gz"
        )
    first = headers[0].grid
    for k, header in enumerate(headers):
        if header.n_volumes > 1 and not files.is_series:
            raise CaseError(
                f"expected phase {k} of case {files.case_id} to have one volume, but it has "
                f"{header.n_volumes}: split the file into one file per phase, or open only this "
                f"file ({header.path})"
            )
        if header.grid.shape != first.shape:
            raise CaseError(
                f"expected all phases to have the same shape, but phase {k} of case "
                f"{files.case_id} has shape {header.grid.shape} (z, y, x) and phase 0 has "
                f"{first.shape}: export the series again or remove phase {k} ({header.path})"
            )
        if not header.grid.is_same_place(first):
            raise CaseError(
                f"expected all phases to have the same affine, but phase {k} of case "
                f"{files.case_id} is up to {header.grid.farthest_corner_mm(first):.2f} mm away "
                f"from phase 0: export the series again or register phase {k} first "
                f"({header.path})"
            )


def _common_dtype(headers: list[VolumeHeader]) -> np.dtype[Any]:
    """Return the dtype that can hold every phase; for floating point, float32 at most."""
    dtype = np.result_type(*(header.dtype for header in headers))
    return np.dtype(np.float32) if np.issubdtype(dtype, np.floating) else dtype


def _read_times(
    files: CaseFiles, record: CaseRecord | None
) -> tuple[tuple[float | None, ...], tuple[str, ...]]:
    n = len(files.phases)
    file_times = tuple(source.time_s for source in files.phases)
    if None not in file_times:
        return file_times, ()
    table = record.acquisition_times_s if record else None
    if table is None and files.info is not None:
        info = read_patient_info(files.info)
        table = info.acquisition_times_s
        if info.times_problem:
            return (None,) * n, (
                f"the acquisition_times in the patient file of {files.case_id} are not increasing "
                f"numbers of seconds ({info.times_problem}) and are not used: correct the file",
            )
    if table is None:
        return (None,) * n, ()
    if len(table) != n:
        return (None,) * n, (
            f"{files.case_id} has {n} phases but {len(table)} acquisition times, so the times are "
            "not used: correct the clinical table or the number of phase files",
        )
    return table, ()


def _patient_info(files: CaseFiles) -> tuple[PatientInfo, tuple[str, ...]]:
    if files.info is None:
        return PatientInfo(), ()
    try:
        info = read_patient_info(files.info)
        return replace(info, breast_box=None, box_problem="") if files.hides_box else info, ()
    except FormatError as error:
        lost = "the position of the breast and the timing are unknown"
        return PatientInfo(), (f"{files.case_id}: {lost}: {error}",)


def _breast_box(
    case_id: str, info: PatientInfo, shape: tuple[int, int, int]
) -> tuple[Box | None, tuple[str, ...]]:
    """Return the breast box in the patient file, clipped to the volume, or a warning if unusable.

    The published pipelines use this box as an array index, which also clips it at the edge.
    """
    breast_box = info.breast_box
    if info.box_problem:
        return None, (
            f"the breast_coordinates in the patient file of {case_id} are not a valid block of "
            f"voxels from x_min to z_max ({info.box_problem}) and are not used: correct the file",
        )
    if breast_box is None:
        return None, ()
    ends = list(zip(breast_box.start, breast_box.stop, shape, strict=True))
    if any(a >= min(b, n) for a, b, n in ends):
        return None, (
            f"the breast_coordinates {breast_box.start} to {breast_box.stop} (z, y, x) in the "
            f"patient file of {case_id} are outside the volume {shape} and are not used: correct "
            "the file",
        )
    z, y, x = (min(b, n) for _, b, n in ends)
    return Box(breast_box.start, (z, y, x)), ()


def _with_loaded(case: Case, read: set[int]) -> Case:
    phases, warnings = list(case.phases), list(case.warnings)
    for index in sorted(read):
        phases[index] = replace(phases[index], loaded=True)
        oddity = _find_oddity(case.signal[index], index)
        warnings += [oddity] if oddity else []
    return replace(case, phases=tuple(phases), warnings=tuple(warnings))


def _with_arrival(case: Case) -> Case:
    """Return the case with the contrast arrival detected from its voxels."""
    arrival = find_arrival(case.signal)
    warnings = case.warnings
    if arrival.is_repeated and not _is_dynamic(case, arrival.n_before):
        again = ", ".join(str(k) for k in range(1, arrival.n_before))
        warnings = (
            *warnings,
            (
                f"{arrival.evidence}; phase {again} is treated as a second scan before contrast, "
                "which is neither early nor late"
            ),
        )
    return replace(case, n_before=arrival.n_before, contrast=arrival.evidence, warnings=warnings)


def _is_dynamic(case: Case, n_before: int) -> bool:
    """Return whether the first `n_before` phases are as close as phases of an ultrafast series."""
    times = [math.inf if time is None else time for time in case.times_s[:n_before]]
    return all(late - early <= MOST_SPACING_S for early, late in pairwise(times))


def _find_oddity(volume: NDArray[Any], index: int) -> str:
    if not volume.any():
        return f"phase {index} contains only zeros: the file was probably exported incompletely"
    if np.issubdtype(volume.dtype, np.floating):
        bad = int(volume.size - np.count_nonzero(np.isfinite(volume)))
        if bad:
            return (
                f"phase {index} has {count_of(bad, 'voxel')} with NaN or infinity; these values "
                "are treated as unknown"
            )
    return ""
