"""The mouse tool of the Prompt page, which draws points, boxes, scribbles and outlines."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from qtpy.QtCore import Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.texts import tr
from napari_mamamia.features.prompt.segmentation.prompts import PromptKind
from napari_mamamia.services.refine.outlines import line_voxels
from napari_mamamia.widgets.viewer.active_tool import ActiveTool, MouseTool
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.marks import Marks

OWNER: Final = "prompt model"
PAGE: Final = "Prompt"
_LEFT: Final = 1
_RIGHT: Final = 2
KIND_TEXTS: Final = MappingProxyType(
    {
        PromptKind.POINT: tr("Point"),
        PromptKind.BOX: tr("Box"),
        PromptKind.SCRIBBLE: tr("Scribble"),
        PromptKind.OUTLINE: tr("Outline"),
    }
)


def box_on_slice(first: Voxel, last: Voxel, axis: int) -> tuple[Voxel, Voxel]:
    """Convert a drag on one slice to a box: its first voxel, and the voxel after its last.

    Examples
    --------
    >>> box_on_slice((9.0, 30.2, 5.0), (9.0, 20.0, 7.6), 0)
    ((9.0, 20.0, 5.0), (10.0, 31.0, 9.0))
    """
    ends = np.floor(np.array([first, last]) + 0.5)
    low, high = ends.min(0), ends.max(0) + 1
    high[axis] = low[axis] + 1
    z, y, x = (float(n) for n in low)
    z1, y1, x1 = (float(n) for n in high)
    return (z, y, x), (z1, y1, x1)


class PromptDrawing(WindowPart):
    """Draws one prompt per drag of the mouse.

    The signal `drawn` carries the kind, the voxels, and whether they are included. The signal
    `tool_changed` is emitted when a tool is turned on or off.
    """

    drawn = Signal(object, object, bool)
    tool_changed = Signal()

    def __init__(
        self, context: WindowContext, active_tool: ActiveTool, aim: Aim, marks: Marks
    ) -> None:
        super().__init__(context)
        self._active_tool = active_tool
        self._aim = aim
        self._marks = marks
        self.is_including = True
        active_tool.changed.connect(self.tool_changed)
        self.attach(self._scene.viewer)

    def attach(self, viewer: Any) -> None:
        """Also allow drawing in another view of the case."""
        viewer.mouse_drag_callbacks.append(self._follow_drag)

    @property
    def kind(self) -> PromptKind | None:
        """Return the kind of the active tool, or None."""
        mode = self._active_tool.mode_of(OWNER)
        return PromptKind(mode) if mode else None

    def turn_on(self, kind: PromptKind, *, is_including: bool) -> None:
        """Turn a tool on; the right mouse button swaps including and excluding."""
        self.is_including = is_including
        what = tr("in the lesion") if is_including else tr("not in the lesion")
        self._marks.prepare()
        name = f"{KIND_TEXTS[kind]} · {what}"
        self._active_tool.turn_on(MouseTool(OWNER, kind.value, name, PAGE, waits=True))

    def turn_off(self) -> None:
        """Turn the active tool off."""
        self._active_tool.turn_off(OWNER)

    # -------------------------------------------------------------------- inner

    def _follow_drag(self, viewer: Any, event: Any) -> Iterator[None]:
        kind, grid = self.kind, self._scene.grid
        is_button = event.button in (_LEFT, _RIGHT) and not event.modifiers
        if kind is None or grid is None or not is_button:
            return
        shown = self._scene.view.slice_shown_in(viewer)
        is_inside = self._scene.view.voxel_at(event.position) is not None
        if shown is None or not is_inside or self._aim.problem_in(viewer):
            return
        event.handled = True
        is_including = self.is_including != (event.button == _RIGHT)
        colour = "line" if is_including else "erase"
        camera = viewer.scene.camera
        camera.mouse_pan = camera.mouse_zoom = False  # a drag with the right button zooms
        axis, index = shown
        points = [self._find_voxel(event, axis, index)]
        self._marks.clear()
        yield
        while event.type == "mouse_move":
            event.handled = True
            place = self._find_voxel(event, axis, index)
            if self.kind is kind and place != points[-1]:
                self._draw_part(kind, points, place, axis, colour)
                points.append(place)
            yield
        camera.mouse_pan = camera.mouse_zoom = True
        self._marks.clear()
        if self.kind is not kind:
            return
        if kind is PromptKind.POINT:
            points = points[:1]
        elif kind is PromptKind.BOX:
            points = [*box_on_slice(points[0], points[-1], axis)]
        self.drawn.emit(kind, tuple(points), is_including)

    def _find_voxel(self, event: Any, axis: int, index: int) -> Voxel:
        """Return the position of the pointer on a slice, clipped to the image."""
        grid = self._scene.grid
        place = self._scene.view.place_at(event.position)
        if grid is None or place is None:
            return (0.0, 0.0, 0.0)
        z, y, x = (
            float(index) if k == axis else min(max(float(c), 0.0), n - 1.0)
            for k, (c, n) in enumerate(zip(place, grid.shape, strict=True))
        )
        return (z, y, x)

    def _draw_part(
        self, kind: PromptKind, points: list[Voxel], place: Voxel, axis: int, colour: str
    ) -> None:
        grid = self._scene.grid
        if grid is None or kind is PromptKind.POINT:
            return
        if kind is not PromptKind.BOX:
            box, on_line = line_voxels(points[-1], place, grid.shape)
            if not box.is_empty:
                self._marks.add(box, on_line, colour)
            return
        first, after = box_on_slice(points[0], place, axis)
        start, stop = (tuple(int(n) for n in end) for end in (first, after))
        box = Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
        frame = np.ones(box.shape, np.bool_)
        inner = tuple(slice(None) if k == axis else slice(1, -1) for k in range(3))
        frame[inner] = False
        self._marks.draw(box, frame, colour)
