"""Prompts in the image: a click on the tumour, or a box around it."""

from collections.abc import Iterator
from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.box import Box
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.segmenter import BoxPrompt, Click
from napari_mamamia.widgets.colours import MASK_COLOURS
from napari_mamamia.widgets.layers import Role, tag_of
from napari_mamamia.widgets.scene import Scene
from napari_mamamia.widgets.slice_view import Voxel

__all__ = ["PromptTool", "box_around_drag"]

_LEFT_BUTTON: Final = 1
_BOX_COLOUR: Final = MASK_COLOURS["prediction"]


def box_around_drag(start: Voxel, stop: Voxel, grid: Grid) -> Box:
    """Return the box of a drag from voxel to voxel on one slice.

    Through the slices, where a drag says nothing, it is as deep as the longer side of the drag in
    mm, half of it each way.
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
    """Waits for one click or one drag; `given` carries the prompt, `mode_changed` the mode."""

    given = Signal(object)
    mode_changed = Signal(str)

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self._mode = ""
        scene.viewer.mouse_drag_callbacks.append(self._drag)

    @property
    def is_waiting(self) -> bool:
        """Whether a click or a drag is waited for."""
        return bool(self._mode)

    def set_mode(self, mode: str) -> None:
        """Wait for a "click" or a "box", or ("") for nothing."""
        self._mode = mode
        self._scene.viewer.scene.camera.mouse_pan = not mode
        layer = self._scene.viewer.layers.selection.active
        if mode and layer is not None and hasattr(layer, "mode"):
            layer.mode = "pan_zoom"
        self.mode_changed.emit(mode)

    def cancel(self) -> None:
        """Wait for nothing any more; the mouse is left as it is where nothing was waited for."""
        if self._mode:
            self.set_mode("")

    def _drag(self, _viewer: Any, event: Any) -> Iterator[None]:
        grid = self._grid()
        start = self._scene.view.voxel_at(event.position)
        if not self._mode or event.button != _LEFT_BUTTON or grid is None or start is None:
            return
        mode, stop = self._mode, start
        event.handled = True
        yield
        while event.type == "mouse_move":
            stop = self._scene.view.voxel_at(event.position) or stop
            if mode == "box":
                self._scene.box.draw(start, stop, _BOX_COLOUR)
            yield
        self._scene.box.erase()
        self.set_mode("")
        if mode == "click":
            self.given.emit(Click(start))
        elif start != stop:
            self.given.emit(BoxPrompt(box_around_drag(start, stop, grid)))

    def _grid(self) -> Grid | None:
        layer = self._scene.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        return None if tag is None else tag.grid
