"""Prompts on the image: a click on the tumour, or a box around the tumour."""

from collections.abc import Iterator
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click
from napari_mamamia.widgets.base.layers import Role, tag_of
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.viewer.active_tool import ActiveTool, MouseTool
from napari_mamamia.widgets.viewer.aim import Aim
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel

_LEFT_BUTTON: Final = 1
_ASKS: Final = {
    "click": tr("click on the tumour"),
    "box": tr("drag a box"),
    "omit": tr("drag a box to leave out"),
}
_BOX_COLOUR: Final = MASK_COLOURS["prediction"]


def box_around_drag(start: Voxel, stop: Voxel, grid: Grid) -> Box:
    """Return the box for a drag from voxel to voxel on one slice.

    The depth of the box perpendicular to the slices equals the longer side of the drag in mm, with
    half of the depth in each direction.
    """
    low = [min(a, b) for a, b in zip(start, stop, strict=True)]
    high = [max(a, b) for a, b in zip(start, stop, strict=True)]
    spacing = grid.spacing_mm
    sides = [(b - a + 1) * mm for a, b, mm in zip(low, high, spacing, strict=True)]
    through = min(range(3), key=lambda axis: high[axis] - low[axis])
    half = round(max(sides) / 2 / spacing[through])
    low[through], high[through] = low[through] - half, high[through] + half
    z0, y0, x0 = (max(a, 0) for a in low)
    z1, y1, x1 = (min(b + 1, n) for b, n in zip(high, grid.shape, strict=True))
    return Box((z0, y0, x0), (z1, y1, x1))


class PromptTool(QObject):
    """A tool that waits for a click or a drag.

    The signal `given` carries the prompt, and `mode_changed` the mode.

    Parameters
    ----------
    owner, page, title
        The tool's owner, page and displayed name.
    """

    given = Signal(object)
    mode_changed = Signal(str)

    def __init__(
        self, scene: Scene, active_tool: ActiveTool, aim: Aim, owner: str, page: str, title: str
    ) -> None:
        super().__init__()
        self._scene = scene
        self._active_tool = active_tool
        self._aim = aim
        self._owner = owner
        self._page = page
        self._title = title
        self._mode = ""
        active_tool.changed.connect(self._follow_tool)
        scene.viewer.mouse_drag_callbacks.append(self._follow_drag)

    @property
    def is_waiting(self) -> bool:
        """Whether a click or a drag is expected."""
        return bool(self._active_tool.mode_of(self._owner))

    def set_mode(self, mode: str, ask: str = "") -> None:
        """Wait for a "click", a "box" or a box to "omit"; "" stops waiting.

        `ask` is the text on the image if the prompt is not about the tumour.
        """
        if mode:
            name = f"{self._title}: {ask or _ASKS[mode]}"
            self._active_tool.turn_on(MouseTool(self._owner, mode, name, self._page, waits=True))
        else:
            self._active_tool.turn_off(self._owner)

    def _follow_tool(self) -> None:
        mode, before = self._active_tool.mode_of(self._owner), self._mode
        if mode == before:
            return
        self._mode = mode
        camera = self._scene.viewer.scene.camera
        layer = self._scene.viewer.layers.selection.active
        if mode:
            if layer is not None and hasattr(layer, "mode"):
                # One of napari's brushes would paint during the drag.
                layer.mode = "pan_zoom"
            camera.mouse_pan = False
        else:
            self._scene.box.erase()
            # While a tool of napari is active its layer disables panning, and keeps that.
            camera.mouse_pan = layer is None or bool(layer.mouse_pan)
        self.mode_changed.emit(mode)

    def _follow_drag(self, viewer: Any, event: Any) -> Iterator[None]:
        grid, mode = self._find_grid(), self._mode
        start = self._scene.view.voxel_at(event.position)
        if not mode or event.button != _LEFT_BUTTON or grid is None or start is None:
            return
        if self._aim.problem_in(viewer):
            return
        stop = start
        event.handled = True
        yield
        while event.type == "mouse_move":
            stop = self._scene.view.voxel_at(event.position) or stop
            if mode != "click" and self.is_waiting:
                self._scene.box.draw(start, stop, _BOX_COLOUR)
            yield
        if not self.is_waiting or self._aim.problem_in(viewer):
            return
        self.set_mode("")
        if mode == "click":
            self.given.emit(Click(start))
        elif start != stop:
            self.given.emit(BoxPrompt(box_around_drag(start, stop, grid)))

    def _find_grid(self) -> Grid | None:
        layer = self._scene.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        return None if tag is None else tag.grid
