"""Make cases and data sets from separate files and arrays, without a known folder layout."""

import atexit
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.mask_arrays import MaskLike, mask_array
from napari_mamamia.core.names import name_some
from napari_mamamia.io.data_set.volumes import read_header, read_labels, write_volume
from napari_mamamia.io.files.file_names import case_key, safe_case_id
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.sources import CaseFiles, DataSet, LayoutKind, PhaseSource
from napari_mamamia.io.volumes.formats import mask_stem
from napari_mamamia.io.workspace.place import WorkspaceMark, prints_of
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.library.arguments import PathLike, path_of
from napari_mamamia.services.case.data_set import OpenDataSet

_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)


def open_files(
    phases: PathLike | Sequence[PathLike],
    mask: PathLike | None,
    times_s: Sequence[float] | None,
    case_id: str,
) -> CaseFiles:
    """Check that the headers of the files match, and return the files as a case.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, or the numbers of phases and times differ.
    FormatError, GridMismatchError
        If a file cannot be read, or its grid differs from that of the first phase.
    """
    if not isinstance(case_id, str) or (case_id and safe_case_id(case_id) != case_id):
        raise ArgumentError(
            "expected case_id to be usable as a file name (without / or control characters), but "
            f"got {case_id!r}: choose a different id"
        )
    given = [phases] if isinstance(phases, str | Path) else phases
    if not isinstance(given, Sequence) or not given:
        raise ArgumentError(
            f"expected the phase files in order, but got {phases!r}: pass a list of paths, or one "
            "4-D file"
        )
    paths = [path_of(path, "a phase").absolute() for path in given]
    headers = [read_header(path) for path in paths]
    if len(paths) == 1 and headers[0].n_volumes > 1:
        sources = [PhaseSource((paths[0],), volume) for volume in range(headers[0].n_volumes)]
    else:
        for path, header in zip(paths, headers, strict=True):
            if header.n_volumes > 1:
                raise ArgumentError(
                    f"expected one phase in each of {len(paths)} files, but {path} holds "
                    f"{header.n_volumes} phases: pass only this file, or pass 3-D files"
                )
            require_same_grid(header.grid, headers[0].grid, str(path), str(paths[0]))
        sources = [PhaseSource((path,)) for path in paths]
    times = check_times(times_s, len(sources))
    reference = None if mask is None else path_of(mask, "the mask").absolute()
    if reference is not None:
        labels = read_labels(reference).on_grid(headers[0].grid)
        require_same_grid(labels.grid, headers[0].grid, str(reference), str(paths[0]))
    return CaseFiles(
        case_id or safe_case_id(mask_stem(paths[0].name) or paths[0].name),
        tuple(
            PhaseSource(source.files, source.volume, time)
            for source, time in zip(sources, times, strict=True)
        ),
        reference=reference,
    )


def check_times(times_s: Sequence[float] | None, count: int) -> tuple[float | None, ...]:
    """Return the time of each phase in s, or None if unknown; raise an error if impossible."""
    if times_s is None:
        return (None,) * count
    try:
        times = tuple(float(time) for time in times_s)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected times_s to be the time of each phase in seconds, but got {times_s!r}: "
            "pass, for example, (0, 90)"
        ) from error
    rises = all(np.isfinite(times)) and all(b > a for a, b in pairwise(times))
    if len(times) != count or not rises:
        raise ArgumentError(
            f"expected times_s to be {count} increasing numbers in seconds, but got {times}: pass "
            "one for each phase"
        )
    return times


def save_arrays(
    array: ArrayLike,
    affine: ArrayLike | None,
    spacing_mm: tuple[float, float, float] | None,
    mask: MaskLike | None,
) -> tuple[list[Path], Path | None]:
    """Write phases and a mask to a temporary folder, which is removed when Python exits.

    The paths of the phase files and of the mask file are returned.

    Raises
    ------
    ArgumentError
        If the axes of `array` are not ``(phase, z, y, x)``, or not exactly one of `affine` and
        `spacing_mm` is passed.
    """
    signal: NDArray[Any] = np.asarray(array)
    if signal.ndim != 4 or not signal.size or signal.dtype.kind not in "iuf":
        raise ArgumentError(
            f"expected a numeric array with axes (phase, z, y, x), but got {signal.dtype} "
            f"{signal.shape}: stack the phases first"
        )
    if signal.dtype.kind == "f" and signal.dtype.itemsize not in (4, 8):
        signal = signal.astype(np.float32 if signal.dtype.itemsize < 4 else np.float64)
    grid = _make_grid(signal.shape[1:], affine, spacing_mm)
    folder = _FOLDERS.enter_context(own_folder())
    phases = [folder / f"phase_{index:04d}.nii" for index in range(len(signal))]
    for path, phase in zip(phases, signal, strict=True):
        write_volume(phase, grid, path)
    if mask is None:
        return phases, None
    voxels = mask_array(mask, "the mask", grid)
    write_volume(voxels.astype(np.uint8), grid, folder / "mask.nii")
    return phases, folder / "mask.nii"


def _make_grid(
    shape: tuple[int, ...],
    affine: ArrayLike | None,
    spacing_mm: tuple[float, float, float] | None,
) -> Grid:
    if (affine is None) is (spacing_mm is None):
        raise ArgumentError(
            "expected either affine or spacing_mm: pass a 4x4 affine from voxel (x, y, z) to RAS "
            "mm, or the spacing (z, y, x)"
        )
    z, y, x = shape
    try:
        if spacing_mm is not None:
            a, b, c = (float(value) for value in spacing_mm)
            return Grid.of_spacing((z, y, x), (a, b, c))
        return Grid((z, y, x), np.asarray(affine, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the affine or the spacing cannot be used: {error}") from error


def open_cases(cases: Iterable[CaseFiles], workspace: PathLike | None) -> OpenDataSet:
    """Make a data set from separate cases; by default, its workspace is temporary.

    Raises
    ------
    ArgumentError
        If there is no case, or two cases have the same id.
    """
    files = tuple(cases)
    ids = [case_key(case.case_id) for case in files]
    twins = sorted({case_id for case_id in ids if ids.count(case_id) > 1})
    if not files or twins:
        raise ArgumentError(
            "expected each case to have its own id, but got "
            f"{name_some(twins) or 'none'}{' more than once' if twins else ''}: pass case_id for "
            "each"
        )
    root = files[0].phases[0].files[0].parent
    data_set = DataSet(root, LayoutKind.OWN_FILES, files)
    where = (
        _FOLDERS.enter_context(own_folder())
        if workspace is None
        else path_of(workspace, "workspace")
    )
    mark = WorkspaceMark(root, prints_of(data_set))
    return OpenDataSet(data_set, Workspace(where, mark))
