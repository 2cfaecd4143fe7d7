"""Layers made ahead while nobody waits: an image and a labels layer, ready to be inserted.

napari takes 20 to 50 ms for a layer and what it is drawn with, and as much again to insert it.
"""

from typing import Any, Final

import numpy as np
from napari.layers import Labels, Layer
from qtpy.QtCore import QTimer

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.drawing import late_drawing, make_visual
from napari_mamamia.widgets.base.layers import (
    LayerTag,
    LayerTuple,
    Role,
    case_layer,
    marks_layer,
    subtraction_layer,
)

__all__ = ["SpareLayers", "create_layer"]

_WAIT_MS: Final = 150
_KINDS: Final = (("labels", 3), ("image", 3))
_PHASES: Final = ("image", 4)
_AS_MADE: Final = ("units", "axis_labels", "multiscale", "rgb")
"""Keywords that are the same for every volume of ours."""


def create_layer(made: LayerTuple) -> Any:
    """Return a new layer of ours, in no viewer yet."""
    layer = Layer.create(*made)
    if isinstance(layer, Labels):
        late_drawing(layer)
    return layer


class SpareLayers:
    """Keeps one layer of each kind for a viewer with a window; `take` gives it what it shows.

    Nothing depends on them: where there is none, a layer is made anew.
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._bare: dict[tuple[str, int], Any] = {}
        self._ready: dict[tuple[str, int], Any] = {}
        self._wanted = [_PHASES, *_KINDS]
        self._timer: QTimer | None = None

    def take(self, made: LayerTuple) -> Any | None:
        """Return a spare layer as `made` would be, None where there is no such one."""
        data, keywords, kind = made
        spare = self._ready.get((kind, data.ndim))
        if spare is None or (kind == "labels" and data.dtype != spare.data.dtype):
            return None
        del self._ready[kind, data.ndim]
        self._wanted = list(_KINDS)
        spare.data = data
        for name, value in keywords.items():
            if name not in _AS_MADE:
                setattr(spare, name, value)
        if "contrast_limits" in keywords:
            spare.contrast_limits_range = keywords["contrast_limits"]
        return spare

    def stock_soon(self) -> None:
        """Make what is missing, in a while: a layer in one turn, its visual in another."""
        view = main_view(self._viewer)
        if view is None:
            return
        if self._timer is None:
            self._timer = QTimer(view)
            self._timer.setInterval(_WAIT_MS)
            self._timer.timeout.connect(self._stock_one)
        self._timer.start()

    def close(self) -> None:
        """Make no more, because the window closes."""
        if self._timer is not None:
            self._timer.stop()

    def _stock_one(self) -> None:
        view = main_view(self._viewer)
        missing = [kind for kind in self._wanted if kind not in self._ready]
        if view is None or not missing:
            self.close()
            return
        kind = missing[0]
        if kind not in self._bare:
            self._bare[kind] = create_layer(_placeholder(*kind))
        else:
            make_visual(view, self._bare[kind])
            self._ready[kind] = self._bare.pop(kind)


def _placeholder(kind: str, ndim: int) -> LayerTuple:
    """Return a layer of four voxels with nothing set that not all layers of its kind set."""
    grid = Grid((1, 2, 2), np.eye(4))
    if ndim == _PHASES[1]:
        tiny = Case("", grid, np.zeros((1, *grid.shape), np.int16), (Phase(0),))
        return case_layer(tiny, (0.0, 1.0))
    tag = LayerTag("", Role.MARKS, grid)
    if kind == "labels":
        return marks_layer(tag, np.zeros(grid.shape, np.uint8))
    return subtraction_layer(tag, np.zeros(grid.shape, np.float32), (0.0, 1.0))
