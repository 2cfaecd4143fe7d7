"""The current stroke of a plain brush, painted stamp by stamp from press to release."""

from collections.abc import Iterable
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Edit, Stroke, Tool, Voxel
from napari_mamamia.core.provenance import Setting
from napari_mamamia.smartpaint.brush.brush import Stamp, StrokePath, paint
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.brush.reach import stamp_box
from napari_mamamia.smartpaint.session.state import MaskState, joined

TOO_FAR: Final = "places left out"
"""Name of a stroke parameter: the number of points a metre or more from the previous point."""

Spacing = tuple[float, float, float]


class CurrentStroke:
    """A stroke that paints into `state`; `boxes` contain every voxel that may have changed.

    Parameters
    ----------
    locked
        The labels that the stroke does not overwrite.
    """

    def __init__(
        self,
        state: MaskState,
        brush: Brush,
        spacing_mm: Spacing,
        images: FeatureImages | None,
        locked: frozenset[int],
    ) -> None:
        self.brush = brush
        self.boxes: tuple[Box, ...] = ()
        self._state = state
        self._spacing_mm = spacing_mm
        self._images = images
        self._locked = locked
        self._path = StrokePath(brush, spacing_mm, images)
        self._points: list[Voxel] = []

    @property
    def edit(self) -> Edit:
        """The stroke as stored in history and journal, without the numbers of changed voxels."""
        parameters = lock_settings(self._locked)
        if self._path.too_far:
            parameters.append((TOO_FAR, self._path.too_far))
        return Edit(
            stroke_name(self.brush),
            Stroke(self.brush, tuple(self._points)),
            tuple(parameters),
            path_mm=self._path.length_mm,
        )

    @property
    def leaves_marks(self) -> bool:
        """Whether later evidence strokes respect the result of this stroke."""
        return self.brush.tool in (Tool.SPHERE, Tool.SMOOTH)

    def press(self, point: Voxel) -> Box:
        """Paint the first stamp; return the box of voxels whose label changed."""
        self._points.extend(_keep_finite_point(point))
        return self._paint_stamps(self._path.press(point))

    def drag(self, point: Voxel) -> Box:
        """Paint up to `point`; return the box of voxels whose label changed."""
        self._points.extend(_keep_finite_point(point))
        return self._paint_stamps(self._path.drag(point))

    def finish(self) -> Box:
        """Paint up to the last position; return the box of voxels whose label changed.

        Voxels whose label a smoothing brush changed are then fixed, because the next evidence
        stroke would otherwise undo the change.
        """
        changed = self._paint_stamps(self._path.release())
        if self.brush.tool is Tool.SMOOTH:
            self._state.hold_changes(self.brush.label, self.boxes)
        return changed

    def _paint_stamps(self, stamps: Iterable[Stamp]) -> Box:
        state, label, changed = self._state, self.brush.label, Box.empty()
        # A plain sphere marks every voxel of its disc, even those whose label does not change.
        holds = self.brush.action if self.brush.tool is Tool.SPHERE else None
        for stamp in stamps:
            box = stamp_box(stamp.centre, self.brush, self._spacing_mm, state.labels.shape)
            if box.is_empty:
                continue
            start = state.start_of(label, box)
            painted = start.copy()
            paint(painted, box, stamp, self.brush, self._images, self._spacing_mm)
            self.boxes = joined(self.boxes, box)
            changed = changed.union(state.paint(label, box, start, painted, self._locked, holds))
        return changed


def turned_by_press(
    state: MaskState,
    point: Voxel,
    brush: Brush,
    spacing_mm: Spacing,
    images: FeatureImages | None,
    locked: frozenset[int],
) -> tuple[Box, NDArray[np.bool_]]:
    """Return a box, and the voxels in it that a press at `point` would change."""
    box = stamp_box(point, brush, spacing_mm, state.labels.shape)
    turned = np.zeros(box.shape, np.bool_)
    for stamp in StrokePath(brush, spacing_mm, images).press(point):
        start = state.start_of(brush.label, box)
        painted = start.copy()
        paint(painted, box, stamp, brush, images, spacing_mm)
        turned |= state.turned_by(brush.label, box, start, painted, locked)[1]
    return box, turned


def stroke_name(brush: Brush) -> str:
    """Return a stroke's name in the history: its action and its radius in mm.

    Examples
    --------
    >>> stroke_name(Brush(action=Action.ERASE, radius_mm=12.0))
    'erase 12 mm'
    """
    verb = "erase" if brush.action is Action.ERASE else "paint"
    verb = "smooth" if brush.tool is Tool.SMOOTH else verb
    kind = " (sphere)" if brush.tool is Tool.SPHERE else ""
    kind = " (whole lesion)" if brush.tool.is_smart and brush.whole else kind
    return f"{verb} {brush.radius_mm:.3g} mm{kind}"


def lock_settings(locked: frozenset[int]) -> list[tuple[str, Setting]]:
    """Return the stroke parameters that list the locked labels, or [] if no label was locked."""
    labels = " ".join(map(str, sorted(locked)))
    return [("locked", labels)] if labels else []


def _keep_finite_point(point: Voxel) -> list[Voxel]:
    z, y, x = map(float, point)
    return [(z, y, x)] if all(map(isfinite, (z, y, x))) else []
