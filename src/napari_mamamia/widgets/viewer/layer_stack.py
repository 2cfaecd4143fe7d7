"""The program's layers in a viewer, which are found by tag, ordered, updated and removed.

Layers are found by their tag each time, so that a user may rename, reorder or delete any of them.
Only the GUI thread calls this module.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np
from napari.layers import Image, Labels, Layer
from qtpy.QtCore import QTimer

from napari_mamamia.core.blinding import NOT_BLIND
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import HiddenError
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.adapter import drawing
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.labels import late_drawing, trim_contours
from napari_mamamia.widgets.adapter.outlines import stock_line
from napari_mamamia.widgets.adapter.stepping import keep_lightly, step_lightly
from napari_mamamia.widgets.base.blinding import ROLES, why_hidden
from napari_mamamia.widgets.base.layers import (
    MASK_ROLES,
    LayerTag,
    LayerTuple,
    Role,
    case_layer,
    find_layer,
    find_layers,
    marks_layer,
    subtraction_layer,
    tag_of,
)

# Layers created early, in idle time: an image and a labels layer, ready to be inserted. napari
# takes 20 to 50 ms for a layer and its visual, and as much again to insert it.

_WAIT_MS: Final = 150
_KINDS: Final = (("labels", 3), ("image", 3))
_PHASES: Final = ("image", 4)
_AS_MADE: Final = ("units", "axis_labels", "multiscale", "rgb")
"""Keyword arguments that are the same for all volumes of this program."""


def create_layer(made: LayerTuple) -> Any:
    """Return a new layer of this program that has not been added to any viewer."""
    layer = Layer.create(*made)
    keep_lightly(layer)
    if isinstance(layer, Labels):
        late_drawing(layer)
        trim_contours(layer)
    return layer


def empty_layer(layer: Any) -> None:
    """Release the array of an image or a labels layer."""
    if isinstance(layer, Image | Labels) and not layer.multiscale:
        layer.data = np.zeros((1,) * layer.ndim, layer.dtype)


class SpareLayers:
    """A store of one spare layer per type for a viewer with a window; `take` sets the layer's data.

    Spare layers are optional; if there is none, a layer is created.
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._bare: dict[tuple[str, int], Any] = {}
        self._ready: dict[tuple[str, int], Any] = {}
        self._wanted = [_PHASES, *_KINDS]
        self._timer: QTimer | None = None

    def take(self, made: LayerTuple, style: Callable[[Any], None]) -> Any | None:
        """Return a spare layer with the properties of `made`, or None if there is none."""
        data, keywords, kind = made
        spare = self._ready.get((kind, data.ndim))
        if spare is None or (kind == "labels" and data.dtype != spare.data.dtype):
            return None
        del self._ready[kind, data.ndim]
        # Phases need a spare for the first case alone: later ones replace the data of the
        # existing layer.
        self._wanted = list(_KINDS)
        with drawing.sliced_later(spare):
            spare.data = data
            for name, value in keywords.items():
                if name not in _AS_MADE:
                    setattr(spare, name, value)
            if "contrast_limits" in keywords:
                spare.contrast_limits_range = keywords["contrast_limits"]
            style(spare)
        return spare

    def stock_later(self) -> None:
        """Create missing spare layers later, with layer and visual in different iterations."""
        view = main_view(self._viewer)
        if view is None:
            return
        if self._timer is None:
            self._timer = QTimer(view)
            self._timer.setInterval(_WAIT_MS)
            self._timer.timeout.connect(self._stock_one)
        self._timer.start()

    def close(self) -> None:
        """Stop creating spare layers when the window closes."""
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
            self._bare[kind] = create_layer(_make_placeholder(*kind))
        else:
            drawing.make_visual(view, self._bare[kind])
            self._ready[kind] = self._bare.pop(kind)
            return
        if kind[0] == "labels":
            stock_line(view)


def _make_placeholder(kind: str, ndim: int) -> LayerTuple:
    grid = Grid((1, 2, 2), np.eye(4))
    if ndim == _PHASES[1]:
        tiny = Case("", grid, np.zeros((1, *grid.shape), np.int16), (Phase(0),))
        return case_layer(tiny, (0.0, 1.0))
    tag = LayerTag("", Role.MARKS, grid)
    if kind == "labels":
        return marks_layer(tag, np.zeros(grid.shape, np.uint8))
    return subtraction_layer(tag, np.zeros(grid.shape, np.float32), (0.0, 1.0))


BELOW_MASKS = (Role.PHASE, Role.SUBTRACTION, Role.MAP, Role.PROJECTION, Role.DOUBT)
"""The roles of layers below the masks, from bottom to top."""

_ORDER = (*BELOW_MASKS, *MASK_ROLES, Role.AGREEMENT, Role.MARKS)
_UPDATED = ("scale", "translate", "rotate", "affine", "name", "contrast_limits")

Part = tuple[slice, slice, slice]
"""A block of a layer, as slices along the displayed (slice, row, column) axes."""


class LayerStack:
    """The layers of this program in a viewer.

    Parameters
    ----------
    viewer
        A napari viewer or `ViewerModel`, not a proxy of one.

    Attributes
    ----------
    spares
        Layers that were created in advance.
    blinding
        The data hidden from the reader: no layer with a hidden role is created.
    redrawn
        Function called with a role and the block (None for all) after a layer's array was changed
        in place, for the other views of the same arrays.
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self._own_change = False
        self._batch = ExitStack()
        self._is_batched = False
        self._retired: list[Any] = []
        self.spares = SpareLayers(viewer)
        self.blinding = NOT_BLIND
        self.redrawn: list[Callable[[Role, Part | None], None]] = []
        step_lightly(viewer)

    def layer(self, role: Role) -> Any | None:
        """Return this program's layer with `role`, or None if there is none."""
        return find_layer(self.viewer.layers, role)

    def find(self, *roles: Role) -> list[Any]:
        """Return this program's layers from bottom to top, or only those with the given roles."""
        return find_layers(self.viewer.layers, *roles)

    @property
    def grid(self) -> Grid | None:
        """The grid of the displayed case, or None if there is none."""
        layer = self.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        return None if tag is None else tag.grid

    @property
    def is_changing(self) -> bool:
        """Whether this program is currently adding or removing layers."""
        return self._own_change

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Mark layer changes in the context as this program's, and draw once on exit.

        Otherwise napari rebuilds its scene graph at each change, which takes 10 to 20 ms.
        """
        before, self._own_change = self._own_change, True
        try:
            yield
        finally:
            if not before:
                # Before the change ends: events that napari emits while drawing are changes of
                # ours too.
                self._batch.close()
                self._is_batched = False
            self._own_change = before

    def _draw_once(self) -> None:
        """Defer drawing from the first layer that is added, removed, shown or hidden."""
        if self._own_change and not self._is_batched:
            self._is_batched = True
            self._batch.enter_context(drawing.drawn_once(self.viewer.layers))

    def put(self, made: LayerTuple, role: Role, style: Callable[[Any], None] | None = None) -> Any:
        """Add a layer, or set the data of the existing layer with this role.

        The `style` of a new layer is set before napari creates its visuals, because each later
        change takes time. For new data, napari makes every labels layer editable; our layers keep
        their setting. Replacing the layer would take longer than reading a phase, because removing
        a layer runs a garbage collection and adding a layer creates controls.

        Raises
        ------
        HiddenError
            If the layer would show hidden data.
        """
        why = why_hidden(self.blinding, ROLES[role])
        if why:
            raise HiddenError(why)
        data, keywords, _ = made
        layer = self.layer(role)
        if layer is None:
            layer = self._make_layer(made, style or _leave_as_made)
            self._draw_once()
            drawing.insert_unchosen(self.viewer.layers, self._place_of(role), layer)
            self.spares.stock_later()
            return layer
        # Before the data: copies in other views read the tag when their event comes.
        layer.metadata = keywords["metadata"]
        may_edit = layer.editable
        layer.data = data
        layer.editable = may_edit
        # The user may have moved the layer while it showed the previous case.
        for name, value in (_make_unmoved_place(layer.ndim) | keywords).items():
            if name in _UPDATED and not np.array_equal(getattr(layer, name), value):
                setattr(layer, name, value)
        if "contrast_limits" in keywords:
            # Otherwise napari's sliders would keep the range of the previous case.
            layer.contrast_limits_range = keywords["contrast_limits"]
        return layer

    def _make_layer(self, made: LayerTuple, style: Callable[[Any], None]) -> Any:
        layer = self.spares.take(made, style)
        if layer is None:
            layer = create_layer(made)
            style(layer)
        return layer

    def remove(self, layers: list[Any]) -> None:
        """Remove the given layers that are still in the viewer.

        The arrays are released immediately, other memory later.
        """
        for layer in layers:
            if layer in self.viewer.layers:
                self._draw_once()
                self.viewer.layers.remove(layer)
                empty_layer(layer)

    def retire(self, *roles: Role) -> None:
        """Hide this program's layers with these roles and drop their tags, for `remove_retired`."""
        with self.changing():
            for layer in self.find(*roles):
                layer.metadata = {}  # first: listeners of our layers skip it
                if layer.visible:
                    self._draw_once()
                    layer.visible = False
                self._retired.append(layer)

    def remove_retired(self) -> None:
        """Remove all retired layers."""
        for take_out in self.removal_steps():
            take_out()

    def removal_steps(self) -> list[Callable[[], object]]:
        """Return steps that each remove one retired layer in 10 to 20 ms."""
        return [self._remove_next] * len(self._retired)

    def _remove_next(self) -> None:
        if self._retired:
            with drawing.sliced_once(self.viewer), self.changing():
                self.remove([self._retired.pop(0)])

    def take_away(self, *roles: Role) -> None:
        """Remove this program's layers with the given roles from the viewer."""
        with self.changing():
            self.remove(self.find(*roles))

    def set_visible(self, role: Role, visible: bool) -> None:
        """Show or hide the layer with a role."""
        layer = self.layer(role)
        if layer is not None and layer.visible != visible:
            self._draw_once()
            layer.visible = visible

    def report_change(self, role: Role, part: Part | None = None) -> None:
        """Report to the other views that the array of a layer was changed in place."""
        for listener in tuple(self.redrawn):
            listener(role, part)

    def _place_of(self, role: Role) -> int:
        below = [
            index
            for index, layer in enumerate(self.viewer.layers)
            if (tag := tag_of(layer)) and _ORDER.index(tag.role) <= _ORDER.index(role)
        ]
        return max(below, default=-1) + 1


def _make_unmoved_place(ndim: int) -> dict[str, Any]:
    return {"translate": np.zeros(ndim), "rotate": np.eye(ndim), "affine": np.eye(ndim + 1)}


def _leave_as_made(_layer: Any) -> None:
    """Do nothing, as the default style of a layer."""
