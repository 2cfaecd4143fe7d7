"""Drawing a closed contour on a slice; released, what it encloses is one step of the session."""

from napari_mamamia.core.edits import Brush, Voxel
from napari_mamamia.services.refine.outlines import fill_contour, line_voxels, outline_step
from napari_mamamia.widgets.refine.live_mask import LiveMask
from napari_mamamia.widgets.viewer.marks import Marks

__all__ = ["Outlining"]


class Outlining:
    """One contour at a time, in whichever plane is on screen."""

    def __init__(self, mask: LiveMask, marks: Marks) -> None:
        self._mask = mask
        self._marks = marks
        self._points: list[Voxel] = []
        self._axis = 0
        self._brush = Brush()

    def press(self, place: Voxel, brush: Brush) -> None:
        """Begin a contour at `place` (z, y, x) on the slice shown."""
        self._marks.clear()
        self._points, self._axis, self._brush = [place], brush.plane_axis, brush

    def drag(self, place: Voxel) -> None:
        """Draw the contour on to `place`."""
        live = self._mask.live
        if live is None or not self._points:
            return
        box, on_line = line_voxels(self._points[-1], place, live.grid.shape)
        self._points.append(place)
        if not box.is_empty:
            self._marks.add(box, on_line, "line")

    def release(self) -> None:
        """Close the contour: what it encloses joins the mask, or leaves it when erasing."""
        points, self._points = self._points, []
        live = self._mask.live
        self._marks.clear()
        outline = fill_contour(points, self._axis, live.grid.shape) if live and points else None
        if live is None or outline is None:
            return
        step = outline_step(live.labels, outline, self._brush.label, self._brush.action)
        self._mask.apply(*step, label=self._brush.label)

    def abandon(self) -> None:
        """Drop the contour in hand."""
        if self._points:
            self._points = []
            self._marks.clear()
