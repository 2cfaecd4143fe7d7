"""Our layers in one viewer: found by tag, put in their order, changed in place, taken out.

Layers are found by their tag each time, so that a user may rename, reorder or delete any of them.
Only the GUI thread calls this.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from napari.layers import Layer

from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.layers import (
    MASK_ROLES,
    LayerTuple,
    Role,
    find_layer,
    find_layers,
    tag_of,
)

__all__ = ["BELOW_MASKS", "LayerStack", "Part"]

BELOW_MASKS = (Role.PHASE, Role.SUBTRACTION, Role.MAP, Role.PROJECTION, Role.DOUBT)
"""The roles of what lies under the masks, lowest first."""

_ORDER = (*BELOW_MASKS, *MASK_ROLES, Role.AGREEMENT, Role.MARKS)
_UPDATED = ("scale", "name", "contrast_limits")

Part = tuple[slice, slice, slice]
"""A block of a layer, (slice, row, column) as it is displayed."""


class LayerStack:
    """What of a viewer's layers belongs to us.

    Parameters
    ----------
    viewer
        A napari viewer or `ViewerModel`, not a proxy of one.

    Attributes
    ----------
    redrawn
        Called with a role and the block (None for all) after a layer's array was changed in place,
        for the other views of the same arrays.
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self._own_change = False
        self.redrawn: list[Callable[[Role, Part | None], None]] = []

    def layer(self, role: Role) -> Any | None:
        """Return our layer with `role`, None where there is none."""
        return find_layer(self.viewer.layers, role)

    def find(self, *roles: Role) -> list[Any]:
        """Return our layers of some roles, lowest first; of all roles where none is named."""
        return find_layers(self.viewer.layers, *roles)

    @property
    def grid(self) -> Grid | None:
        """The grid of the case shown, None where none is."""
        layer = self.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        return None if tag is None else tag.grid

    @property
    def is_changing(self) -> bool:
        """Whether we are adding or removing layers ourselves at this moment."""
        return self._own_change

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let what is added and removed inside count as ours, not as a user's."""
        before, self._own_change = self._own_change, True
        try:
            yield
        finally:
            self._own_change = before

    def put(self, made: LayerTuple, role: Role) -> Any:
        """Add a layer, or give the layer of that role new data.

        Taking a layer out of napari costs a garbage collection, and adding one new controls, which
        together take longer than reading a phase.
        """
        data, keywords, _ = made
        layer = self.layer(role)
        if layer is None:
            layer = Layer.create(*made)
            active = self.viewer.layers.selection.active
            self.viewer.layers.insert(self._place_of(role), layer)
            if active is not None:
                self.viewer.layers.selection.active = active
            return layer
        layer.metadata = keywords["metadata"]
        layer.data = data
        for name in _UPDATED:
            if name in keywords and not np.array_equal(getattr(layer, name), keywords[name]):
                setattr(layer, name, keywords[name])
        return layer

    def remove(self, layers: list[Any]) -> None:
        """Take layers out of the viewer, those that are still there."""
        for layer in layers:
            if layer in self.viewer.layers:
                self.viewer.layers.remove(layer)

    def take_away(self, *roles: Role) -> None:
        """Take our layers of some roles out of the viewer."""
        with self.changing():
            self.remove(self.find(*roles))

    def set_visible(self, role: Role, visible: bool) -> None:
        """Show or hide the layer of a role."""
        layer = self.layer(role)
        if layer is not None:
            layer.visible = visible

    def tell(self, role: Role, part: Part | None = None) -> None:
        """Tell the other views that a layer's array was changed in place."""
        for listener in tuple(self.redrawn):
            listener(role, part)

    def _place_of(self, role: Role) -> int:
        """Return where a layer belongs: above our layers of lower roles."""
        below = [
            place
            for place, layer in enumerate(self.viewer.layers)
            if (tag := tag_of(layer)) and _ORDER.index(tag.role) <= _ORDER.index(role)
        ]
        return max(below, default=-1) + 1
