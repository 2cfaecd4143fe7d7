"""Remove a separate part of a mask, or a leak beyond a narrow connection, by a click or line."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.parts import Removal, beyond_line, part_under

REMOVE_STEP = "remove part"
CUT_STEP = "cut"


def remove_part(
    labels: NDArray[np.uint8], words: NDArray[np.uint16], label: int, grid: Grid, point: Voxel
) -> Removal:
    """Return the part of a label under the pointer, to be removed; see `part_under`.

    `labels` and `words` (the label's marks) ``(z, y, x)`` must not change during the call.

    Raises
    ------
    CaseError
        If the label has no voxel at this point, or the part is its main part.
    """
    report_progress(0, 1, "Finding the part")
    box, mask, hold, crop_grid = _crop_label(labels, words, label, grid)
    removal = part_under(mask, crop_grid, _move_point(point, box), hold)
    return _move_removal(removal, box)


def cut_off(
    labels: NDArray[np.uint8],
    words: NDArray[np.uint16],
    label: int,
    grid: Grid,
    line: tuple[Voxel, Voxel],
    plane_axis: int,
) -> Removal:
    """Return the voxels that a line across a label cuts off in 3-D; see `beyond_line`.

    Raises
    ------
    CaseError
        If the line does not cross the label, or does not divide it.
    """
    report_progress(0, 1, "Cutting")
    box, mask, hold, crop_grid = _crop_label(labels, words, label, grid)
    start, stop = (_move_point(end, box) for end in line)
    return _move_removal(beyond_line(mask, crop_grid, (start, stop), plane_axis, hold), box)


def cut_removal(
    labels: NDArray[np.uint8], label: int, removal: Removal
) -> tuple[Box, NDArray[np.bool_]]:
    """Return the box of a removal, and the label's mask in it without the removed voxels."""
    return removal.box, (labels[removal.box.slices] == label) & ~removal.gone


def _crop_label(
    labels: NDArray[np.uint8], words: NDArray[np.uint16], label: int, grid: Grid
) -> tuple[Box, NDArray[np.bool_], NDArray[np.int8], Grid]:
    box = Box.around(labels == label).grown((1, 1, 1), labels.shape)
    mask = labels[box.slices] == label
    return box, mask, unpack_marks(words[box.slices]).hold, Grid(mask.shape, grid.affine)


def _move_point(point: Voxel, box: Box) -> Voxel:
    z, y, x = (coordinate - start for coordinate, start in zip(point, box.start, strict=True))
    return (z, y, x)


def _move_removal(removal: Removal, box: Box) -> Removal:
    (z, y, x), (a, b, c), (d, e, f) = box.start, removal.box.start, removal.box.stop
    return replace(removal, box=Box((z + a, y + b, x + c), (z + d, y + e, x + f)))
