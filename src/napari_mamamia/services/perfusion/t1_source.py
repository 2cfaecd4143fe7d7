"""T1 before contrast of one case: typed, from a map, or from volumes of several flip angles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.data_set.volumes import read_volume
from napari_mamamia.kinetics.perfusion.spoiled_echo import MOST_T1_S
from napari_mamamia.kinetics.perfusion.t1_map import t1_of_flip_angles

__all__ = ["read_t1_map", "t1_of_volumes"]

_MOST_MEDIAN_S: Final = 20.0
"""A map whose median is above has another unit: water's T1 is 4 s."""


def read_t1_map(path: Path, case: Case) -> NDArray[np.float32]:
    """Return a T1 map in s, ``(z, y, x)``.

    Raises
    ------
    CaseError
        If it holds several volumes, or its values are no seconds.
    FormatError, GridMismatchError
        If it is damaged, or lies on another grid than the case.
    """
    values = _on_grid(path, case).astype(np.float32)
    positive = values[np.isfinite(values) & (values > 0)]
    median = float(np.median(positive)) if positive.size else 0.0
    if not 0 < median <= _MOST_MEDIAN_S:
        unit = "milliseconds" if median > _MOST_MEDIAN_S else "no T1 at all"
        raise CaseError(
            f"expected T1 in seconds, up to {MOST_T1_S:g}, in {path}, got a median of {median:g}, "
            f"which looks like {unit}: write the map in seconds"
        )
    return values


def t1_of_volumes(
    paths: Sequence[Path], degrees: Sequence[float], repetition_s: float, case: Case
) -> Job[NDArray[np.float32]]:
    """Return a job for T1 in s of one volume for each flip angle, plane by plane.

    Raises
    ------
    CaseError
        As `t1_of_flip_angles`; also if a file holds several volumes.
    FormatError, GridMismatchError
        As `read_t1_map`.
    """
    volumes = []
    for number, path in enumerate(paths):
        yield Progress(number, len(paths), "Reading flip angles")
        volumes.append(_on_grid(path, case))
    t1 = np.empty(case.grid.shape, np.float32)
    for plane in range(len(t1)):
        yield Progress(plane, len(t1), "T1 of the flip angles")
        signals = np.stack([volume[plane].astype(np.float64) for volume in volumes])
        t1[plane], _ = t1_of_flip_angles(signals, degrees, repetition_s)
    return t1


def _on_grid(path: Path, case: Case) -> NDArray[Any]:
    header, values = read_volume(path)
    if values.ndim != 3:
        raise CaseError(
            f"expected one volume in {path}, got {len(values)}: write a file for each volume"
        )
    require_same_grid(header.grid, case.grid, str(path), f"case {case.case_id}")
    return values
