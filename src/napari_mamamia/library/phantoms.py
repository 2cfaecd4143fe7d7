"""Phantoms: synthetic data with known ground truth, for trying out every function."""

from functools import partial
from pathlib import Path
from typing import Literal

from napari_mamamia.core.errors import ArgumentError, SaveConflictError
from napari_mamamia.io.dicom.writer import write_study
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import PathLike, named, path_of
from napari_mamamia.library.data_set import DataSet, open_data_set
from napari_mamamia.library.progress import drive
from napari_mamamia.phantom import PhantomMix, write_data_set
from napari_mamamia.services.case.open_case import load_case


@advising_arguments
def make_phantoms(
    folder: PathLike,
    n_cases: int = 12,
    *,
    seed: int = 2026,
    shape: tuple[int, int, int] | None = None,
    mix: Literal["mixed", "one-breast"] = "mixed",
    progress: bool = True,
) -> DataSet:
    """Write synthetic cases in the MAMA-MIA layout, and return them as a data set.

    Each case has several phases and the true mask as reference. Three cases in four have a degraded
    mask as ``case.automatic``. The clinical table is also synthetic. Scores on phantoms do not
    predict performance in patients.

    Parameters
    ----------
    folder
        The new folder, which appears only when it is complete.
    n_cases
        The number of cases, from 1 to 2000. The first twelve cases differ in type.
    seed
        The random seed; equal seeds give identical voxels.
    shape
        The shape ``(z, y, x)`` of every case; the field of view does not change, and small shapes
        are faster. By default, the shape varies between cases as in real exams.
    mix
        "mixed" for a mixture like that in real data sets, or "one-breast" for sagittal exams of one
        breast.
    progress
        Whether to show a progress bar.

    Raises
    ------
    SaveConflictError
        If `folder` exists and is not empty.
    CaseError
        If `n_cases` is out of range, or a tumour does not fit into the voxels of `shape`.
    ArgumentError
        If an argument has the wrong type.

    Returns
    -------
    DataSet
        The new data set.

    Examples
    --------
    >>> mm.make_phantoms("phantoms", 3, shape=(24, 64, 64)).cases  # doctest: +SKIP
    """
    root = path_of(folder, "the phantoms")
    _require_shape(shape)
    for option, number in (("n_cases", n_cases), ("seed", seed)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ArgumentError(
                f"expected {option} to be a whole number of 0 or above, but got {number!r}; pass "
                "a number such as 12"
            )
    job = partial(write_data_set, root, n_cases, seed, shape, named(PhantomMix, mix, "mix"))
    return open_data_set(drive(job, progress), progress=progress)


@advising_arguments
def make_phantom_study(
    folder: PathLike,
    *,
    seed: int = 2026,
    shape: tuple[int, int, int] | None = None,
    progress: bool = True,
) -> Path:
    """Write a phantom as a DICOM study for trying out `import_dicom`, and return its folder.

    Parameters
    ----------
    folder
        The new folder, which appears only when it is complete.
    seed, shape, progress
        As in `make_phantoms`.

    Raises
    ------
    MissingExtraError
        If pydicom is not installed.
    SaveConflictError
        If `folder` exists.

    Returns
    -------
    Path
        The folder of the study.

    Examples
    --------
    >>> mm.import_dicom(mm.make_phantom_study("study"), "my data", "P001")  # doctest: +SKIP
    """
    target = path_of(folder, "the study")
    _require_shape(shape)
    if target.exists():
        raise SaveConflictError(
            f"the folder {target} already exists, so nothing was written; choose a different name"
        )
    with own_folder() as place:
        drive(partial(write_data_set, place / "one", 1, seed, shape), progress)
        case = drive(partial(load_case, find_data_set(place / "one").cases[0]), progress)
    times = tuple(float(time or 0) for time in case.times_s)
    write_study(case.signal, case.grid, times, target, case.case_id)
    return target


def _require_shape(shape: tuple[int, int, int] | None) -> None:
    if shape is None:
        return
    is_three = isinstance(shape, tuple | list) and len(shape) == 3
    if not is_three or not all(isinstance(n, int) and n >= 8 for n in shape):
        raise ArgumentError(
            f"expected shape to be three numbers (z, y, x) of at least 8, but got {shape!r}; pass "
            "a shape such as (24, 64, 64)"
        )
