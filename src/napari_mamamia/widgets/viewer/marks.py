"""Drawings above the masks on the Refine page: preview, outline, changes and initial mask.

All drawings share one layer and one buffer. A new drawing replaces the previous drawing, and only
the differences are redrawn.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer

from napari_mamamia.core.blank import blank_array
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.widgets.base.layers import Role, array_of, tag_for
from napari_mamamia.widgets.controls.colours import MARK_COLOURS, OUTLINE_VOXELS
from napari_mamamia.widgets.viewer.scene import Scene

_VALUES: Final = {name: value for value, name in enumerate(MARK_COLOURS, start=1)}
_FAINT: Final = 0.35
_CLEAR: Final = 0.55
_FLASH_MS: Final = 700


class Marks:
    """Drawings on the layer for marks, which is created at the first drawing on a case."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._case: Case | None = None
        self._buffer: NDArray[np.uint8] | None = None
        self._shown = Box.empty()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is drawn."""
        return self._shown.is_empty

    def set_case(self, case: Case | None) -> None:
        """Set the case on whose grid later drawings are made, or None for no case."""
        if case is None or self._case is None or case.signal is not self._case.signal:
            self._buffer, self._shown = None, Box.empty()
        self._case = case

    def prepare(self) -> None:
        """Add the layer now, so that the first drawing is fast."""
        self._find_layer()

    def draw(self, box: Box, drawn: NDArray[np.bool_], kind: str, *, faint: bool = False) -> None:
        """Draw the true voxels of `drawn` (with the box's shape) in a colour of `MARK_COLOURS`."""
        self.draw_values([(box, drawn, kind)], faint=faint)

    def draw_values(
        self, parts: list[tuple[Box, NDArray[np.bool_], str]], *, faint: bool = False
    ) -> None:
        """Draw several parts in their colours, replacing the previous drawing."""
        layer = self._find_layer()
        if layer is None or self._buffer is None:
            return
        before = self._wipe_shown()
        for box, drawn, kind in parts:
            self._buffer[box.slices][drawn] = _VALUES[kind]
            self._shown = self._shown.union(box)
        self._set_value(layer, "opacity", _FAINT if faint else _CLEAR)
        self._scene.redraw_box(Role.MARKS, before.union(self._shown))

    def add(self, box: Box, drawn: NDArray[np.bool_], kind: str) -> None:
        """Add a part to the existing drawing."""
        if self._find_layer() is not None and self._buffer is not None:
            self._buffer[box.slices][drawn] = _VALUES[kind]
            self._shown = self._shown.union(box)
            self._scene.redraw_box(Role.MARKS, box)

    def as_outline(self, outline: bool) -> None:
        """Set whether parts are drawn as outlines or filled."""
        layer = self._find_layer()
        if layer is not None:
            self._set_value(layer, "contour", OUTLINE_VOXELS if outline else 0)

    def clear(self) -> None:
        """Erase everything."""
        if not self._shown.is_empty:
            self._scene.redraw_box(Role.MARKS, self._wipe_shown())

    def _wipe_shown(self) -> Box:
        before, self._shown = self._shown, Box.empty()
        if self._buffer is not None:
            self._buffer[before.slices] = 0
        return before

    def _find_layer(self) -> Any | None:
        if self._case is None:
            return None
        if self._buffer is None:
            self._buffer, self._shown = blank_array(self._case.grid.shape, np.uint8), Box.empty()
        layer = self._scene.layer(Role.MARKS)
        if layer is None or not _is_buffer_shown(layer, self._buffer):
            layer = self._scene.show_marks(tag_for(self._case, Role.MARKS), self._buffer)
        return layer

    @staticmethod
    def _set_value(layer: Any, name: str, value: float) -> None:
        if getattr(layer, name) != value:
            setattr(layer, name, value)


class StrokeMarks:
    """Drawings for SmartPaint strokes: the preview outline, and the change made by a stroke."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._is_preview = False
        self._is_flash = False
        self._flash = QTimer()
        self._flash.setSingleShot(True)
        self._flash.setInterval(_FLASH_MS)
        self._flash.timeout.connect(self.clear)

    @property
    def is_shown(self) -> bool:
        """Whether anything is currently drawn."""
        return self._is_preview or self._is_flash

    def draw_preview(self, box: Box, mask: NDArray[np.bool_]) -> None:
        """Draw the outline of the current stroke's preview; `mask` is bool in the box's shape."""
        if not self._is_preview:
            self.clear()
            self._marks.clear()
            self._marks.as_outline(True)
            self._is_preview = True
        self._marks.draw(box, mask, "line")

    def take_preview(self) -> None:
        """Erase the preview outline after the stroke is done."""
        if self._is_preview:
            self.clear()

    def flash(self, box: Box, added: NDArray[np.bool_], removed: NDArray[np.bool_]) -> None:
        """Show briefly which voxels a stroke added and removed."""
        self.clear()
        self._marks.draw_values([(box, added, "added"), (box, removed, "removed")])
        self._is_flash = True
        self._flash.start()

    def clear(self) -> None:
        """Erase everything drawn by this object."""
        if not self.is_shown:
            return
        self._flash.stop()
        self._marks.clear()
        if self._is_preview:
            self._marks.as_outline(False)
        self._is_preview = self._is_flash = False


def _is_buffer_shown(layer: Any, buffer: NDArray[np.uint8]) -> bool:
    # The size first: `array_of` raises if the user gave the layer data of another shape.
    same_size = np.size(layer.data) == buffer.size
    return same_size and np.may_share_memory(array_of(layer), buffer)
