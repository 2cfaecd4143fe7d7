"""The rectangle that a drag draws on the slice shown, while a prompt is given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.viewer.layer_stack import LayerStack
from napari_mamamia.widgets.viewer.slice_view import Voxel

__all__ = ["PromptBox"]

_SPACE_AXES = 3
_BOX_NAME = "prompt box"


class PromptBox:
    """One rectangle at a time, in a layer of its own that nobody edits.

    Parameters
    ----------
    stack
        Our layers in the viewer.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        self._layer: Any | None = None

    def draw(self, start: Voxel, stop: Voxel, colour: str) -> None:
        """Draw a rectangle from voxel to voxel (z, y, x) on the slice shown."""
        corners = self._rectangle(start, stop)
        if corners is None:
            return
        viewer = self._stack.viewer
        with self._stack.changing():
            self.erase()
            active = viewer.layers.selection.active
            layer = viewer.add_shapes(
                [corners],
                shape_type="rectangle",
                name=_BOX_NAME,
                edge_color=colour,
                face_color="transparent",
                edge_width=1.0,
                units=("mm",) * _SPACE_AXES,
                axis_labels=("slice", "row", "column"),
            )
            layer.editable = False
            self._layer = layer
            viewer.layers.selection.active = active

    def erase(self) -> None:
        """Take the rectangle away."""
        with self._stack.changing():
            if self._layer is not None:
                self._stack.remove([self._layer])
            self._layer = None

    def _rectangle(self, start: Voxel, stop: Voxel) -> NDArray[np.float64] | None:
        grid, dims = self._stack.grid, self._stack.viewer.dims
        displayed = [axis - (dims.ndim - _SPACE_AXES) for axis in dims.displayed]
        if grid is None or len(displayed) != 2:
            return None
        a, b = _world(start, grid), _world(stop, grid)
        corners = np.tile(np.array(a), (4, 1))
        down, across = displayed
        corners[2:, down] = b[down]
        corners[1:3, across] = b[across]
        return corners


def _world(voxel: Voxel, grid: Grid) -> list[float]:
    """Return where a voxel (z, y, x) is displayed, in mm along slice, row, column."""
    frame = grid.display_frame()
    spacing = frame.per_axis(grid.spacing_mm)
    return [
        i * mm for i, mm in zip(frame.point_to_display(voxel, grid.shape), spacing, strict=True)
    ]
