"""Cases and data sets of separate files and arrays, without a folder in a known layout."""

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
    """Return the files of a case; their headers are read and must match each other.

    Raises
    ------
    ArgumentError
        If an argument is of the wrong kind, or the numbers of phases and times differ.
    FormatError, GridMismatchError
        If a file cannot be read, or lies on another grid than the first phase.
    """
    if not isinstance(case_id, str) or (case_id and safe_case_id(case_id) != case_id):
        raise ArgumentError(
            "expected a case_id that can be used as a file name (no / or control characters), "
            f"got {case_id!r}: choose a different one"
        )
    given = [phases] if isinstance(phases, str | Path) else phases
    if not isinstance(given, Sequence) or not given:
        raise ArgumentError(
            f"expected the phase files in order, got {phases!r}: pass a list of paths, or one 4-D "
            "file"
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
                    f"{header.n_volumes}: pass it alone, or 3-D files"
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
    """Return the time of each phase in s, None if unknown; refuse impossible times."""
    if times_s is None:
        return (None,) * count
    try:
        times = tuple(float(time) for time in times_s)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected the time of each phase in seconds for times_s, got {times_s!r}: pass, for "
            "example, (0, 90)"
        ) from error
    rises = all(np.isfinite(times)) and all(b > a for a, b in pairwise(times))
    if len(times) != count or not rises:
        raise ArgumentError(
            f"expected {count} rising numbers (seconds) for times_s, got {times}: pass one for "
            "each phase"
        )
    return times


def save_arrays(
    array: ArrayLike,
    affine: ArrayLike | None,
    spacing_mm: tuple[float, float, float] | None,
    mask: MaskLike | None,
) -> tuple[list[Path], Path | None]:
    """Write phases and a mask to a temporary folder, which is removed when Python ends.

    Returns the files of the phases and of the mask.

    Raises
    ------
    ArgumentError
        If `array` is not ``(phase, z, y, x)``, or not one of `affine` and `spacing_mm` is given.
    """
    signal: NDArray[Any] = np.asarray(array)
    if signal.ndim != 4 or not signal.size or signal.dtype.kind not in "iuf":
        raise ArgumentError(
            f"expected an array of numbers (phase, z, y, x), got {signal.dtype} {signal.shape}: "
            "stack the phases first"
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
            "give either affine or spacing_mm: affine is 4x4, voxel (x, y, z) to RAS mm, and "
            "spacing_mm is (z, y, x)"
        )
    z, y, x = shape
    try:
        if spacing_mm is not None:
            a, b, c = (float(value) for value in spacing_mm)
            return Grid.of_spacing((z, y, x), (a, b, c))
        return Grid((z, y, x), np.asarray(affine, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"cannot use this affine or spacing: {error}") from error


def open_cases(cases: Iterable[CaseFiles], workspace: PathLike | None) -> OpenDataSet:
    """Return a data set of separate cases; without `workspace`, use a temporary folder.

    Raises
    ------
    ArgumentError
        If there is no case, or two share an id.
    """
    files = tuple(cases)
    ids = [case_key(case.case_id) for case in files]
    twins = sorted({case_id for case_id in ids if ids.count(case_id) > 1})
    if not files or twins:
        raise ArgumentError(
            "expected each case to have its own id, got "
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
