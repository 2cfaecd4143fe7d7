"""Phantoms: data to try everything on, with known truth."""

from typing import Literal

from napari_mamamia.library.arguments import PathLike, named, path_of
from napari_mamamia.library.data_set import DataSet, open_data_set
from napari_mamamia.library.progress import drive
from napari_mamamia.phantom import PhantomMix, write_data_set


def make_phantoms(
    folder: PathLike,
    n_cases: int = 12,
    *,
    seed: int = 2026,
    shape: tuple[int, int, int] | None = None,
    mix: Literal["mixed", "one-breast"] = "mixed",
    progress: bool = True,
) -> DataSet:
    """Write phantom cases in the MAMA-MIA layout and return their data set.

    Each has several phases, the true mask as reference, and for three in four a degraded one as
    ``case.automatic``. The clinical table has breast density, and neither age nor menopausal
    status. Scores on phantoms say nothing about patients.

    Parameters
    ----------
    folder
        The folder to make; it appears whole or not at all.
    n_cases
        1 to 2000; the first twelve differ in every respect that matters.
    seed
        Equal seeds give equal voxels.
    shape
        Voxels ``(z, y, x)`` of every case over the same field of view; fewer are quicker. Without
        it each has its own, as real exams do.
    mix
        What data sets hold, or sagittal exams of one breast.
    progress
        Whether a bar shows how far it is.

    Raises
    ------
    SaveConflictError
        If `folder` exists and is not an empty folder.
    CaseError
        If `n_cases` is out of range.

    Examples
    --------
    >>> mm.make_phantoms("phantoms", 3, shape=(24, 64, 64)).cases  # doctest: +SKIP
    """
    root = path_of(folder, "the phantoms")
    job = write_data_set(root, n_cases, seed, shape, named(PhantomMix, mix, "mix"))
    return open_data_set(drive(job, progress), progress=progress)
