"""Tools that draw on a slice and take effect when the button is released: contour, line, point."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Voxel
from napari_mamamia.services.refine.outlines import (
    fill_contour,
    line_voxels,
    open_text,
    outline_step,
)
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.viewer.marks import Marks


class Outlining:
    """Tool that draws one contour at a time in the displayed plane."""

    def __init__(
        self,
        mask: LiveMask,
        marks: Marks,
        say: Callable[[str], object],
        grown: Callable[[], tuple[Box, NDArray[np.bool_]] | None],
    ) -> None:
        self._mask = mask
        self._grown = grown
        self._marks = marks
        self._say = say
        self._points: list[Voxel] = []
        self._axis = 0
        self._brush = Brush()

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin a contour at `place` (z, y, x) on the displayed slice."""
        self._marks.clear()
        self._points, self._axis, self._brush = [place], brush.plane_axis, brush

    def drag(self, place: Voxel) -> None:
        """Continue the contour to `place`."""
        live = self._mask.live
        if live is None or not self._points:
            return
        box, on_line = line_voxels(self._points[-1], place, live.grid.shape)
        self._points.append(place)
        if not box.is_empty:
            self._marks.add(box, on_line, "line")

    def release(self) -> None:
        """Close the contour, and add its inside to the mask, or remove it when erasing."""
        points, self._points = self._points, []
        live = self._mask.live
        self._marks.clear()
        outline = fill_contour(points, self._axis, live.grid.shape) if live and points else None
        if live is None or outline is None:
            return
        label, action = self._brush.label, self._brush.action
        step = outline_step(live.labels, outline, label, action, self._grown())
        if self._mask.apply(*step, label=self._brush.label):
            self._say(open_text(points, live.grid.spacing_mm))

    def abandon(self) -> None:
        """Discard the current contour."""
        if self._points:
            self._points = []
            self._marks.clear()


class Pointing:
    """Tool that selects a point or draws a straight line; `use` receives both ends on release.

    If `has_line` is False, both ends are the pressed point.
    """

    def __init__(
        self,
        mask: LiveMask,
        marks: Marks,
        use: Callable[[Voxel, Voxel, Brush], object],
        *,
        has_line: bool,
    ) -> None:
        self._mask = mask
        self._marks = marks
        self._use = use
        self._has_line = has_line
        self._ends: tuple[Voxel, Voxel] | None = None
        self._brush = Brush()

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin at `place` (z, y, x) on the displayed slice."""
        self._marks.clear()
        self._ends, self._brush = (place, place), brush

    def drag(self, place: Voxel) -> None:
        """Draw the line to `place`."""
        live = self._mask.live
        if live is None or self._ends is None or not self._has_line:
            return
        self._ends = (self._ends[0], place)
        self._marks.clear()
        box, on_line = line_voxels(*self._ends, live.grid.shape)
        if not box.is_empty:
            self._marks.add(box, on_line, "line")

    def release(self) -> None:
        """Pass the point or the line to `use`."""
        ends, self._ends = self._ends, None
        self._marks.clear()
        if ends is not None:
            self._use(*ends, self._brush)

    def abandon(self) -> None:
        """Discard the current point or line."""
        if self._ends is not None:
            self._ends = None
            self._marks.clear()
