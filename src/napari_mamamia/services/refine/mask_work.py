"""Tools for the whole mask, with their names in the window and in the history."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.smartpaint.mask_tools import (
    fill_holes,
    keep_largest,
    margin,
    remove_small,
    smooth,
)
from napari_mamamia.smartpaint.slice_interpolation import interpolate_slices

Change = tuple[Box, NDArray[np.bool_]]
Tool = Callable[[NDArray[np.bool_], Grid, float], Change]

MASK_TOOLS: Final[dict[str, Tool]] = {
    "keep largest": lambda mask, grid, _: keep_largest(mask, grid),
    "remove small": remove_small,
    "fill holes": lambda mask, grid, _: fill_holes(mask, grid),
    "margin": margin,
    "smooth": smooth,
}
"""Tools that need only a mask and at most one amount, by name."""

_INTERPOLATE: Final = "interpolate"


def use_mask_tool(
    labels: NDArray[np.uint8],
    label: int,
    grid: Grid,
    tool: str,
    amount: float,
    planes: Sequence[tuple[int, int]] = (),
) -> Change:
    """Return the box that a tool changes, and the mask in the box after the change.

    Parameters
    ----------
    labels
        A uint8 array ``(z, y, x)`` that must not change during the call; the mask is the voxels
        with the value `label`.
    tool
        The name of a tool in `MASK_TOOLS`, or "interpolate".
    amount
        The amount in mm3 for "remove small", or in mm for "margin" and "smooth". Other tools ignore
        it.
    planes
        The (axis, index) of each outlined plane. "interpolate" fills the space between the planes
        that are perpendicular to the most frequent axis.

    Raises
    ------
    CaseError
        If the amount is out of range, or there are too few planes for interpolation.
    """
    report_progress(0, 1, tool.capitalize())
    mask = labels == label
    if tool == _INTERPOLATE:
        return _interpolate_outlines(mask, grid, planes)
    return MASK_TOOLS[tool](mask, grid, amount)


def _interpolate_outlines(
    mask: NDArray[np.bool_], grid: Grid, planes: Sequence[tuple[int, int]]
) -> Change:
    axes = [axis for axis, _ in planes]
    axis = max(set(axes), key=axes.count) if axes else grid.display_frame().order[0]
    slices = sorted({index for plane_axis, index in planes if plane_axis == axis})
    if len(slices) == 1:
        raise CaseError(
            "expected outlines on at least two parallel slices for interpolation, but got one: "
            "outline a second slice first"
        )
    return interpolate_slices(mask, grid, axis, slices or None)
