"""Compare two masks of a scored case to find where they agree and differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.errors import GridMismatchError, MamamiaError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.metrics.nearest import nearest_distances
from napari_mamamia.metrics.surface import ContourRule, contour
from napari_mamamia.scoring.case.score import foreground_of
from napari_mamamia.services.case import show_case
from napari_mamamia.services.case.open_case import load_mask

_TOUCHING: Final = np.ones((3, 3, 3), dtype=np.bool_)
_MOST_PARTS: Final = 200
"""Largest number of listed errors in one case. Our choice."""
_MOST_VOXELS: Final = 20_000


class Agrees(IntEnum):
    """The values of an agreement map: 0 is background in both masks."""

    CORRECT = 1
    FALSE = 2
    MISSED = 3


@dataclass(frozen=True, slots=True)
class ErrorPart:
    """A connected region where the masks differ; `kind` is FALSE or MISSED.

    `voxel` (z, y, x) is the position to show, on the slice where the region is largest.
    `distance_mm` is the largest distance from the region's voxels to the mask that does not contain
    them; it is NaN if this mask is empty. In regions with more than 20,000 voxels, only the contour
    is measured.
    """

    kind: Agrees
    volume_mm3: float
    voxel: tuple[int, int, int]
    distance_mm: float = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """A map of `Agrees` values, uint8 ``(z, y, x)``, and the errors, largest first.

    `n_errors` is the total number; `errors` lists the 200 largest.
    """

    array: NDArray[np.uint8]
    errors: tuple[ErrorPart, ...]
    n_errors: int


def compare_masks(
    reference: show_case.MaskValues,
    shown: show_case.MaskValues,
    grid: Grid,
    counting: show_case.Counting = show_case.AS_CLINICAL,
) -> Agreement:
    """Map where a mask agrees with the reference, and list its errors.

    Parameters
    ----------
    reference, shown
        The raw values of the masks, as read from a file or as an array ``(z, y, x)``.
    grid
        The grid of both masks.
    counting
        The values that count as tumour, as for the profile's Dice. With the clinical profile, this
        is the chosen label or any value above 0. Regions are 26-connected.

    Returns
    -------
    Agreement
        The map of agreement and the errors, largest first.

    Raises
    ------
    GridMismatchError
        If a mask does not have the shape of `grid`.
    """
    for name, values in (("reference", reference), ("mask", shown)):
        shape = values.grid.shape if isinstance(values, LabelMap) else values.shape
        if shape != grid.shape:
            raise GridMismatchError(
                f"expected the {name} to have the shape {grid.shape} (z, y, x) of the case, but "
                f"it has {shape}: open the case again"
            )
    report_progress(0, 3, "Comparing the masks")
    array = np.zeros(grid.shape, dtype=np.uint8)
    masks = show_case.reference_of(reference, grid, counting), show_case.labels_of(shown, grid)
    box = masks[0].box.union(masks[1].box)
    if box.is_empty:
        return Agreement(array, (), 0)
    there, shown_mask = (foreground_of(m.cut(box), counting.profile, counting.label) for m in masks)
    parts: list[tuple[int, Agrees, Box, NDArray[np.bool_]]] = []
    array[box.slices][there & shown_mask] = Agrees.CORRECT
    for step, (kind, wrong) in enumerate(
        ((Agrees.FALSE, shown_mask & ~there), (Agrees.MISSED, there & ~shown_mask)), start=1
    ):
        report_progress(step, 3, "Finding the errors")
        array[box.slices][wrong] = kind
        parts += [(int(part.sum()), kind, own_box, part) for own_box, part in _find_parts(wrong)]
    parts.sort(key=lambda part: part[0], reverse=True)
    edges = {
        Agrees.FALSE: np.argwhere(contour(there, ContourRule.CLOSED)),
        Agrees.MISSED: np.argwhere(contour(shown_mask, ContourRule.CLOSED)),
    }
    errors = []
    for size, kind, own_box, part in parts[:_MOST_PARTS]:
        report_progress(3, 3, "Measuring the errors")
        far = _reach_mm(part, own_box, edges[kind], grid)
        errors.append(_describe_error(size, kind, own_box, part, box, grid, far))
    return Agreement(array, tuple(errors), len(parts))


def review_masks(
    case: Case,
    reference: Path | None,
    prediction: Path | None,
    model: str,
    counting: show_case.Counting = show_case.AS_CLINICAL,
) -> show_case.CaseMasks:
    """Read the two scored masks of a case on the case's grid.

    The display buffers are 1 in the foreground that Dice uses under `counting`. A file that is
    damaged or on a different grid is listed as a problem; no error is raised.
    """
    sources = (("reference", "scored", reference), ("prediction", model, prediction))
    masks, problems = [], []
    for number, (role, name, path) in enumerate(sources):
        report_progress(number, len(sources), f"Reading the scored {role}")
        if path is None:
            problems.append(f"{case.case_id} had no {role} to score")
            continue
        try:
            labels = load_mask(path, case)
        except MamamiaError as error:
            problems.append(f"the scored {role} cannot be shown: {error}")
            continue
        masks.append(
            show_case.OpenMask(role, name, labels, _make_buffer(labels, counting), labels.values)
        )
    report_progress(len(sources), len(sources))
    return show_case.CaseMasks(tuple(masks), tuple(problems))


def _make_buffer(labels: LabelMap, counting: show_case.Counting) -> NDArray[np.uint8]:
    buffer = np.zeros(labels.grid.shape, dtype=np.uint8)
    chosen = foreground_of(labels.crop, counting.profile, counting.label)
    buffer[labels.box.slices] = chosen
    return buffer


def _find_parts(wrong: NDArray[np.bool_]) -> Iterator[tuple[Box, NDArray[np.bool_]]]:
    labelled: Any
    labelled, _ = ndimage.label(wrong, structure=_TOUCHING)
    for number, object_ in enumerate(ndimage.find_objects(labelled), start=1):
        start, stop = zip(*((s.start, s.stop) for s in object_), strict=True)
        yield Box(start, stop), labelled[object_] == number


def _reach_mm(part: NDArray[np.bool_], own_box: Box, edge: NDArray[np.intp], grid: Grid) -> float:
    """Return the largest distance in mm of a region from the voxels `edge`, on the common crop."""
    if not len(edge):
        return float("nan")
    if np.count_nonzero(part) > _MOST_VOXELS:
        part = contour(part, ContourRule.CLOSED)
    places = np.argwhere(part) + np.array(own_box.start)
    return float(nearest_distances(places, edge, grid.matrix_mm).max())


def _describe_error(
    size: int,
    kind: Agrees,
    own_box: Box,
    part: NDArray[np.bool_],
    box: Box,
    grid: Grid,
    distance_mm: float,
) -> ErrorPart:
    middle = show_case.middle_voxel(np.argwhere(part), grid)
    z, y, x = (sum(index) for index in zip(middle, own_box.start, box.start, strict=True))
    volume_mm3 = size * float(np.prod(grid.spacing_mm))
    return ErrorPart(kind, volume_mm3, (z, y, x), distance_mm)
