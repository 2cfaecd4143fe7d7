"""A second view of the open case next to the main view, for a different plane or phase."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from napari.components import ViewerModel
from napari.layers import Labels, Layer

from napari_mamamia.core.grid import Plane
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter.adapter import redraw_part
from napari_mamamia.widgets.adapter.drawing import drawn_once, sliced_once
from napari_mamamia.widgets.adapter.labels import late_drawing, trim_contours
from napari_mamamia.widgets.adapter.stepping import keep_lightly, step_lightly
from napari_mamamia.widgets.base.layers import METADATA_KEY, Role, find_layers, tag_of
from napari_mamamia.widgets.viewer.canvas import CanvasText
from napari_mamamia.widgets.viewer.pane_sides import (
    Sides,
    find_across,
    find_side_axis,
    find_zoom,
    fit_half,
    mirror_mm,
    put_on_side,
    side_of,
    turned_camera,
)
from napari_mamamia.widgets.viewer.scene import Scene
from napari_mamamia.widgets.viewer.slice_view import Voxel

# Copies of the main view's layers in another view: the same arrays, drawn in the same way. A copy
# shares its array with its original, so that a stroke in one view appears in all of them; only
# the picture must be drawn again.

_MOUSE: Final = ("cursor", "cursor_size", "mouse_zoom", "mouse_pan")
_BOTH: Final = ("opacity", "colormap", "scale", *_MOUSE)
_OF_LABELS: Final = ("contour", "selected_label")
_OF_IMAGES: Final = ("contrast_limits", "gamma", "interpolation2d")
_PARTS: Final = 3


class LayerCopies:
    """Copies in `model` of this program's layers in `source`, updated until `close` is called.

    Parameters
    ----------
    source, model
        The main viewer, and the `ViewerModel` of another view of the same case.
    left_out
        Roles that are not copied. If there are any, the phases are always shown.
    filled
        Whether to copy and show all layers immediately; otherwise `copy_next` copies one layer, and
        `resume` copies all remaining layers.

    Notes
    -----
    The user's own layers are not copied. A copy that a user removes from `model` is not created
    again until its layer is replaced.
    """

    def __init__(
        self,
        source: Any,
        model: Any,
        left_out: frozenset[Role] = frozenset(),
        *,
        filled: bool = True,
    ) -> None:
        self._left_out = left_out
        self._source = source
        self._model = model
        self._copies: dict[Any, Any] = {}
        self._own: dict[Role, Any] = {}
        self._is_parked = not filled
        self._handlers: dict[Any, list[tuple[str, Callable[..., None]]]] = {}
        self._is_closed = False
        self._is_filled = filled
        source.layers.events.inserted.connect(self.follow)
        source.layers.events.removed.connect(self.follow)
        source.layers.events.reordered.connect(self.follow)
        source.layers.selection.events.active.connect(self._choose_copy)
        self.follow()

    def copy_next(self) -> None:
        """Copy one missing layer, if any layer is missing."""
        missing = [layer for layer in self._list_layers() if layer not in self._copies]
        if missing and not self._is_closed:
            self._copy_layer(missing[0])

    def fill(self) -> None:
        """Copy the missing layers, and start following the main view."""
        self._is_filled = True
        self.follow()

    def park(self) -> None:
        """Hide all copies, because napari does not slice layers that are not visible."""
        self._is_parked = True
        for role in tuple(self._own):
            self.set_own(role, None)
        self._own.clear()
        self.show_visible()

    def resume(self, left_out: frozenset[Role]) -> None:
        """Copy the missing layers except those with the roles `left_out`; see `show_visible`."""
        self._left_out = left_out
        self._is_parked = False
        self.fill()

    def show_visible(self) -> None:
        """Show the copies of all visible layers except those that are left out."""
        changed = [
            copy for layer, copy in self._copies.items() if copy.visible != self._is_shown(layer)
        ]
        if changed:
            with drawn_once(self._model.layers):
                for copy in changed:
                    copy.visible = not copy.visible

    def close(self) -> None:
        """Stop following the main view; the copies remain unchanged."""
        self._is_closed = True
        events = self._source.layers.events
        for emitter in (events.inserted, events.removed, events.reordered):
            emitter.disconnect(self.follow)
        self._source.layers.selection.events.active.disconnect(self._choose_copy)
        for layer in tuple(self._handlers):
            self._leave_layer(layer)

    def of(self, layer: Any) -> Any | None:
        """Return the copy of a layer, or None if there is none."""
        return self._copies.get(layer)

    def set_own(self, role: Role, data: Any) -> None:
        """Set this view's own data (of the same shape) for a role; None means the main view's."""
        self._own[role] = data
        for layer, copy in self._copies.items():
            tag = tag_of(layer)
            if tag is not None and tag.role is role:
                copy.data = self._data_of(layer)

    def _data_of(self, layer: Any) -> Any:
        tag = tag_of(layer)
        own_array = None if tag is None else self._own.get(tag.role)
        return (
            own_array
            if own_array is not None and own_array.shape == layer.data.shape
            else layer.data
        )

    def follow(self, _event: object = None) -> None:
        """Copy new layers, drop removed layers, and adopt the layer order.

        This method may be called once more after the view is closed.
        """
        if self._is_closed or not self._is_filled:
            return
        ours = self._list_layers()
        for layer in tuple(self._copies):
            if layer not in ours:
                self._drop_copy(layer)
        if not self._is_parked:
            for layer in ours:
                if layer not in self._copies:
                    self._copy_layer(layer)
        self._sort_copies(ours)
        self._choose_copy()

    def redraw(self, role: Role, part: tuple[slice, slice, slice] | None) -> None:
        """Redraw the copy of a role inside `part` (slice, row, column); None redraws everything."""
        for layer, copy in self._copies.items():
            tag = tag_of(layer)
            if tag is None or tag.role is not role or not copy.visible:
                continue
            if part is None or not isinstance(copy, Labels):
                copy.refresh(thumbnail=False, extent=False, highlight=False)
            elif self._is_on_screen(part):
                redraw_part(copy, part)

    # ------------------------------------------------------------------- inner

    def _list_layers(self) -> list[Any]:
        layers = find_layers(self._source.layers)
        return [layer for layer in layers if layer in self._copies or self._is_wanted(layer)]

    def _is_wanted(self, layer: Any) -> bool:
        tag = tag_of(layer)
        return tag is not None and tag.role not in self._left_out

    def _is_shown(self, layer: Any) -> bool:
        tag = tag_of(layer)
        is_only = bool(self._left_out) and tag is not None and tag.role is Role.PHASE
        is_visible = is_only or (layer.visible and self._is_wanted(layer))
        return is_visible and not self._is_parked

    def _is_on_screen(self, part: tuple[slice, slice, slice]) -> bool:
        dims = self._model.dims
        lead = dims.ndim - _PARTS
        hidden = (axis for axis in range(lead, dims.ndim) if axis not in dims.displayed)
        steps = dims.current_step
        return all(part[a - lead].start <= steps[a] < part[a - lead].stop for a in hidden)

    def _copy_layer(self, layer: Any) -> None:
        is_mask = isinstance(layer, Labels)
        names = [*_BOTH, *(_OF_LABELS if is_mask else _OF_IMAGES)]
        keywords: dict[str, Any] = {
            "name": layer.name,
            "scale": layer.scale,
            "units": layer.units,
            "axis_labels": layer.axis_labels,
            "colormap": layer.colormap,
            "opacity": layer.opacity,
            "blending": layer.blending,
            "visible": self._is_shown(layer) and not is_mask,
            "multiscale": False,
            "metadata": layer.metadata,
        }
        if not is_mask:
            keywords |= {name: getattr(layer, name) for name in _OF_IMAGES} | {"rgb": False}
            keywords["visible"] = self._is_shown(layer)
        copy: Any = Layer.create(self._data_of(layer), keywords, "labels" if is_mask else "image")
        copy.editable = False
        keep_lightly(copy)
        if is_mask:
            late_drawing(copy)
            trim_contours(copy)
            copy.contour = layer.contour
            copy.selected_label = layer.selected_label
            copy.visible = self._is_shown(layer)
        for name in _MOUSE:
            setattr(copy, name, getattr(layer, name))
        self._copies[layer] = copy
        self._model.layers.append(copy)
        self._connect_copy(layer, copy, names)

    def _connect_copy(self, layer: Any, copy: Any, names: Iterable[str]) -> None:
        handlers: list[tuple[str, Callable[..., None]]] = []
        for name in names:
            if hasattr(layer.events, name):
                handlers.append((name, _make_setter(layer, copy, name)))
        handlers.append(("visible", lambda _event=None: self.show_visible()))

        def new_data(_event: object = None) -> None:
            copy.metadata = {METADATA_KEY: layer.metadata.get(METADATA_KEY)}
            copy.data = self._data_of(layer)

        handlers.append(("data", new_data))
        for name, handler in handlers:
            getattr(layer.events, name).connect(handler)
        self._handlers[layer] = handlers

    def _leave_layer(self, layer: Any) -> None:
        for name, handler in self._handlers.pop(layer, []):
            getattr(layer.events, name).disconnect(handler)

    def _drop_copy(self, layer: Any) -> None:
        self._leave_layer(layer)
        copy = self._copies.pop(layer)
        if copy in self._model.layers:
            with drawn_once(self._model.layers):
                self._model.layers.remove(copy)

    def _sort_copies(self, ours: list[Any]) -> None:
        copies = [self._copies[layer] for layer in ours if layer in self._copies]
        there = [copy for copy in copies if copy in self._model.layers]
        for index, copy in enumerate(there):
            if self._model.layers[index] is not copy:
                self._model.layers.move(self._model.layers.index(copy), index)

    def _choose_copy(self, _event: object = None) -> None:
        if self._is_closed or not self._is_filled:
            return
        copy = self._copies.get(self._source.layers.selection.active)
        if copy is not None and copy in self._model.layers:
            self._model.layers.selection.active = copy


def _make_setter(layer: Any, copy: Any, name: str) -> Callable[..., None]:
    def take_over(_event: object = None) -> None:
        value = getattr(layer, name)
        # The layer may already have the next case's axes, while its copy waits for the data.
        if name == "scale" and len(value) != copy.ndim:
            return
        setattr(copy, name, value)

    return take_over


_AXES: Final = 3
_ONE_PHASE_LACKS: Final = frozenset({Role.SUBTRACTION, Role.MAP, Role.PROJECTION})


@dataclass(frozen=True, slots=True)
class PaneKind:
    """The content of an additional view: its plane and phase; None follows the main view.

    `side` is "right" or "left" for one breast, "other" for the slice at the same distance on the
    other side of the midline, and "" for both breasts. `is_mirrored` swaps left and right,
    including the letters. `is_below` places the view below the main view. `is_prior` marks a view
    of another exam.
    """

    plane: Plane | None = None
    phase: int | None = None
    side: str = ""
    is_mirrored: bool = False
    is_below: bool = False
    is_prior: bool = False

    @property
    def title(self) -> str:
        """A name for the view's widgets, which is unique within an arrangement."""
        what = "prior" if self.is_prior else self.plane or f"phase_{self.phase}"
        return f"{what}_{self.side}" if self.side else what

    @property
    def left_out(self) -> frozenset[Role]:
        """The roles that the view does not show; a view of one phase shows only that phase."""
        return frozenset() if self.phase is None else _ONE_PHASE_LACKS


class Pane:
    """An additional view: a `ViewerModel` whose layers share the arrays of the scene's layers.

    Parameters
    ----------
    scene
        The main view.
    kind
        The content of the view.
    filled
        Whether all layers and texts are created immediately; otherwise ``copies.copy_next`` and
        ``text.make_steps`` create them one by one, and `resume` creates all that remain.

    Attributes
    ----------
    model
        The model of the view for a `QtViewer`, without which it also works.
    """

    def __init__(self, scene: Scene, kind: PaneKind, *, filled: bool = True) -> None:
        self.kind = kind
        self._scene = scene
        self.model: Any = ViewerModel()
        step_lightly(self.model)
        self.copies = LayerCopies(scene.viewer, self.model, kind.left_out, filled=filled)
        self.text = CanvasText(scene, self.model, names_phase=kind.phase is not None)
        self.text.is_held = not filled
        self.text.name_side = self._name_side
        self.whole_zoom = 1.0

    def fill(self) -> None:
        """Create all layers and texts, and start following the main view."""
        self.copies.fill()
        self.text.is_held = False
        self.text.update()

    def park(self) -> None:
        """Stop drawing until `resume` is called."""
        self.text.is_held = True
        self.copies.park()

    def resume(self, kind: PaneKind, sides: Sides, place: Sequence[int], phase: int | None) -> None:
        """Show a view of `kind` at a position (slice, row, column of the main view)."""
        self.kind = kind
        self.text.is_held = True
        self.copies.resume(kind.left_out)
        with sliced_once(self.model):
            self.turn(sides)
            self.show(place, phase)
            self.copies.show_visible()
        self.text.is_held = False
        self.text.name_phase(kind.phase is not None)

    def close(self) -> None:
        """Disconnect from the main view."""
        self.text.close()
        self.copies.close()

    def turn(self, sides: Sides) -> None:
        """Show the plane of this view for the grid of the open case."""
        grid, dims = self._scene.grid, self.model.dims
        if grid is None or dims.ndim < _AXES:
            return
        lead = dims.ndim - _AXES
        turn, against = grid.display_frame(self.kind.plane).within(grid.display_frame())
        order = (*range(lead), *(lead + axis for axis in turn))
        if tuple(dims.order) != order:
            dims.order = order
        down, across = turned_camera(grid, turn, against, sides)
        if self.kind.is_mirrored:
            across = "left" if across == "right" else "right"
        self.model.scene.camera.orientation2d = (down, across)
        self.text.update()

    @property
    def half_zoom(self) -> float:
        """Zoom in pixels per mm at which the view's breast just fits; infinity without one."""
        grid, breast = self._scene.grid, self._scene.view.breast
        return math.inf if grid is None else find_zoom(self.model, grid, self.kind.side, breast)

    def fit(self, zoom: float | None = None) -> None:
        """Show the whole plane or breast; `zoom` is given if a different view sets the scale."""
        grid, breast = self._scene.grid, self._scene.view.breast
        if len(self.model.layers):
            if grid is None or not fit_half(self.model, grid, self.kind.side, breast, zoom):
                self.model.reset_view()
            self.whole_zoom = float(self.model.scene.camera.zoom)

    @property
    def slice_axis(self) -> int:
        """The axis of the main view (0 slice, 1 row, 2 column) perpendicular to this view."""
        dims = self.model.dims
        lead = dims.ndim - _AXES
        hidden = [axis - lead for axis in dims.not_displayed if axis >= lead]
        return hidden[0] if len(hidden) == 1 else -1

    def show(self, shown: Sequence[int], phase: int | None) -> None:
        """Show the slice through `shown` (slice, row, column of the main view) at `phase`.

        Only the axes that are not displayed are set, because napari would slice again for displayed
        axes.
        """
        dims = self.model.dims
        lead = dims.ndim - _AXES
        axes, steps = [], []
        phase = self.kind.phase if self.kind.phase is not None else phase
        if lead == 1 and phase is not None:
            axes.append(0)
            steps.append(phase)
        if self.slice_axis >= 0:
            axes.append(lead + self.slice_axis)
            steps.append(self._find_slice(shown))
        if any(dims.current_step[a] != s for a, s in zip(axes, steps, strict=True)):
            with sliced_once(self.model):
                dims.set_current_step(axes, steps)
        if axes:
            # Wheel and arrow keys step the last used axis, which should be the one through these
            # slices.
            dims.last_used = axes[-1]

    def read_place(self, shown: Sequence[int]) -> tuple[int, int, int] | None:
        """Return the main view's (slice, row, column) after a slice step in this pane."""
        axis, dims = self.slice_axis, self.model.dims
        if axis < 0:
            return None
        places = list(shown)
        places[axis] = dims.current_step[dims.ndim - len(places) + axis]
        return places[0], places[1], places[2]

    def find_world(self, world: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Return the cross-hair position in this view in mm, or None if there is none."""
        return world

    def turn_centre(self, centre: Sequence[float], half: str) -> tuple[float, ...]:
        """Convert a centre of the main view to a centre of this view, or the reverse.

        If both views show one breast each, the centre is mirrored at the midline. `half` is the
        breast in the main view.
        """
        grid, sides = self._scene.grid, {self.kind.side, half}
        along = None if grid is None else find_across(self.model, grid)
        places = list(centre)
        if grid is not None and along is not None and "" not in sides and len(sides) > 1:
            places[along - 2] = mirror_mm(grid, places[along - 2])
        return tuple(places)

    def _find_slice(self, shown: Sequence[int]) -> int:
        grid, axis = self._scene.grid, self.slice_axis
        if grid is None or not self.kind.side or axis != find_side_axis(grid):
            return shown[axis]
        return put_on_side(grid, shown[axis], self.kind.side)

    def _name_side(self) -> str:
        grid, axis, dims = self._scene.grid, self.slice_axis, self.model.dims
        if not self.kind.side or grid is None:
            return ""
        side = self.kind.side
        if axis == find_side_axis(grid) and dims.ndim >= _AXES:
            side = side_of(grid, dims.current_step[dims.ndim - _AXES + axis])
        return tr("{side}, mirrored", side=side) if self.kind.is_mirrored else side

    def centre(self, voxel: Voxel) -> None:
        """Centre the view on a voxel (z, y, x)."""
        grid = self._scene.grid
        if grid is not None:
            frame = grid.display_frame()
            displayed = frame.point_to_display(voxel, grid.shape)
            spacing = frame.per_axis(grid.spacing_mm)
            dims = self.model.dims
            lead = dims.ndim - _AXES
            centre = [displayed[axis - lead] * spacing[axis - lead] for axis in dims.displayed]
            self.model.scene.camera.center = centre
