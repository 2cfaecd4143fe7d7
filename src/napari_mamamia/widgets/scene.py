"""The layers of the open case in one viewer: show, update, step, jump, hide.

Layers are found by their tag each time, so that a user may rename, reorder or delete any of them.
Only the GUI thread calls this.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from napari.layers import Layer
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.colours import OUTLINE_VOXELS
from napari_mamamia.widgets.layers import (
    MASK_ROLES,
    METADATA_KEY,
    LayerTag,
    LayerTuple,
    Role,
    agreement_layer,
    array_of,
    case_layer,
    doubt_layer,
    find_layer,
    find_layers,
    marks_layer,
    mask_layer,
    style_mask,
    subtraction_layer,
    tag_for,
    tag_of,
)
from napari_mamamia.widgets.napari_adapter import forget_history, redraw_part

__all__ = ["Scene"]

_MASK_AXES = 3
_UPDATED = ("scale", "name", "contrast_limits")
_ZOOMED_IN = 1.3
_BOX_NAME = "prompt box"
_BELOW_MASKS = (Role.PHASE, Role.SUBTRACTION, Role.MAP, Role.PROJECTION, Role.DOUBT)

Voxel = tuple[int, int, int]
"""An index (z, y, x) into the case's arrays."""

Part = tuple[slice, slice, slice]
"""A block of a layer, (slice, row, column) as it is displayed."""


class Scene:
    """What of a viewer belongs to us.

    Parameters
    ----------
    viewer
        A napari viewer or `ViewerModel`, not a proxy of one.

    Attributes
    ----------
    redrawn
        Called with a role and the block (None for all) after a layer's array was changed in place,
        for the other views of the same arrays.
    moved
        Called with the voxel that `go_to` went to, and whether the view was centred on it.
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self._own_change = False
        self._is_warm = False
        self._whole_zoom = 0.0
        self._hidden: list[Any] = []
        self._below_agreement: list[Any] = []
        self._box: Any | None = None
        self.redrawn: list[Callable[[Role, Part | None], None]] = []
        self.moved: list[Callable[[Voxel, bool], None]] = []

    # ---------------------------------------------------------------- layers

    def layer(self, role: Role) -> Any | None:
        """Return our layer with `role`, None where there is none."""
        return find_layer(self.viewer.layers, role)

    def mask_layers(self) -> list[Any]:
        """Return the layers of masks, lowest first."""
        return find_layers(self.viewer.layers, *MASK_ROLES)

    @property
    def is_changing(self) -> bool:
        """Whether we are adding or removing layers ourselves at this moment."""
        return self._own_change

    def warm_up(self) -> None:
        """Let napari do now what it does once: units, controls and visuals of its first layers.

        It takes about a second, which otherwise the first case would wait for. Nothing is drawn:
        the layers are gone before the window is painted again.
        """
        if self._is_warm or len(self.viewer.layers):
            return
        self._is_warm = True
        grid = Grid((1, 2, 2), np.eye(4))
        tiny = Case("-", grid, np.zeros((1, 1, 2, 2), np.uint8), (Phase(0),))
        with self._changing():
            self._put(case_layer(tiny, (0.0, 1.0)), Role.PHASE)
            self._put(mask_layer(tag_for(tiny, Role.REFERENCE), tiny.signal[0]), Role.REFERENCE)
            self._remove(find_layers(self.viewer.layers))

    def show_case(self, case: Case, limits: tuple[float, float]) -> Any:
        """Replace the layers of the case before by the phases of `case`."""
        with self._changing():
            self.hide_agreement()
            roles = (*_BELOW_MASKS[1:], Role.REFINED, Role.MARKS)
            others = find_layers(self.viewer.layers, *roles)
            self._remove(others)
            layer = self._put(case_layer(case, limits), Role.PHASE)
            layer.visible = True
            self.viewer.layers.selection.active = layer
            self.fit()
        return layer

    def replace_phases(self, case: Case, note: str) -> None:
        """Show other voxels of the case on screen; `note` says on the image what they are."""
        layer = self.layer(Role.PHASE)
        if layer is None:
            return
        tag = replace(tag_for(case, Role.PHASE), note=note)
        layer.metadata = {METADATA_KEY: tag}
        layer.data = case.grid.display_frame().to_display(case.signal)

    def keep_masks(self, roles: Collection[Role]) -> None:
        """Take away the masks of the case before that have no successor among `roles`."""
        with self._changing():
            gone = [role for role in MASK_ROLES if role not in roles]
            self._remove(find_layers(self.viewer.layers, *gone) if gone else [])

    def show_mask(self, tag: LayerTag, buffer: NDArray[np.uint8]) -> Any:
        """Add the mask of a role, or replace the one that is there, keeping how it is drawn."""
        with self._changing():
            is_new = self.layer(tag.role) is None
            data, keywords, kind = mask_layer(tag, buffer)
            if is_new:
                keywords["visible"] = False
            layer = self._put((data, keywords, kind), tag.role)
            if is_new:
                style_mask(layer)
                layer.visible = True
            else:
                forget_history(layer)
        return layer

    def drop_other_cases(self, case_id: str) -> None:
        """Take away our layers of every case but one."""
        with self._changing():
            ours = find_layers(self.viewer.layers)
            self._remove(
                [layer for layer in ours if (tag := tag_of(layer)) and tag.case_id != case_id]
            )

    def redraw_mask(self, role: Role) -> None:
        """Draw a mask again after its buffer was changed in place."""
        layer = self.layer(role)
        if layer is not None:
            forget_history(layer)
            layer.refresh(extent=False, highlight=False)
            self._tell(role)

    def remove_mask(self, role: Role) -> None:
        """Take the mask of a role out of the viewer, if it is there."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, role))

    def redraw_box(self, role: Role, box: Box) -> None:
        """Draw a mask or the marks anew inside `box` (z, y, x), changed there in place."""
        layer = self.layer(role)
        tag = None if layer is None else tag_of(layer)
        if layer is None or tag is None or box.is_empty:
            return
        frame, shape = tag.grid.display_frame(), tag.grid.shape
        last = [stop - 1 for stop in box.stop]
        ends = (frame.point_to_display(place, shape) for place in (box.start, last))
        pairs = (sorted((round(a), round(b))) for a, b in zip(*ends, strict=True))
        s, r, c = (slice(a, b + 1) for a, b in pairs)
        redraw_part(layer, (s, r, c))
        self._tell(role, (s, r, c))

    def redraw_phases(self) -> None:
        """Draw the phases again after some were filled in."""
        layer = self.layer(Role.PHASE)
        if layer is not None and layer.visible:
            layer.refresh(thumbnail=False, extent=False, highlight=False)
        self._tell(Role.PHASE)

    # ----------------------------------------------------------- subtraction

    def show_subtraction(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a difference in place of the phases; a range that the user set is kept."""
        with self._changing():
            before = self.layer(Role.SUBTRACTION)
            kept = limits if before is None else tuple(before.contrast_limits)
            self._remove(find_layers(self.viewer.layers, Role.PROJECTION))
            self._put(subtraction_layer(tag, array, kept), Role.SUBTRACTION)
            self._set_phases_visible(False)

    def hide_subtraction(self) -> None:
        """Show the phases again."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, Role.SUBTRACTION))
            self._set_phases_visible(True)

    # ------------------------------------------------------------ kinetic map

    def show_map(self, made: LayerTuple, *, covers: bool) -> None:
        """Show a kinetic map over the image, in place of the one before."""
        with self._changing():
            before = self.layer(Role.MAP)
            if before is not None:
                self._remove([before])
            layer = self._put(made, Role.MAP)
            if made[2] == "labels":
                layer.editable = False
        self.style_map(covers)

    def style_map(self, covers: bool) -> None:
        """Let the kinetic map cover the image, or shine through."""
        layer = self.layer(Role.MAP)
        if layer is not None:
            layer.opacity = 1.0 if covers else 0.6

    def hide_map(self) -> None:
        """Take the kinetic map away."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, Role.MAP))

    def redraw_map(self) -> None:
        """Draw the kinetic map again after its array was filled in place."""
        layer = self.layer(Role.MAP)
        if layer is not None:
            layer.refresh(thumbnail=False, extent=False, highlight=False)
            self._tell(Role.MAP)

    # ------------------------------------------------------------------ doubt

    def show_doubt(self, tag: LayerTag, array: NDArray[Any], said: str, most: float) -> None:
        """Show where a model was in doubt, over the image; see `doubt_layer`."""
        with self._changing():
            self._put(doubt_layer(tag, array, said, most), Role.DOUBT).visible = True

    def hide_doubt(self) -> None:
        """Take the map of doubt away."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, Role.DOUBT))

    def show_projection(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a projection in place of the phases; of the same kind, the range is kept."""
        with self._changing():
            before = self.layer(Role.PROJECTION)
            old = None if before is None else tag_of(before)
            same = before is not None and old is not None and old.note == tag.note
            kept = tuple(before.contrast_limits) if before is not None and same else limits
            self._remove(find_layers(self.viewer.layers, Role.SUBTRACTION))
            self._put(subtraction_layer(tag, array, kept), Role.PROJECTION)
            self._set_phases_visible(False)

    def hide_projection(self) -> None:
        """Show the phases again."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, Role.PROJECTION))
            self._set_phases_visible(True)

    # ------------------------------------------------------------- agreement

    def show_agreement(self, tag: LayerTag, array: NDArray[np.uint8]) -> None:
        """Show an agreement map in place of the outlines, which would cover what differs."""
        layer = self.layer(Role.AGREEMENT)
        if layer is not None and array_of(layer).shape == array.shape:
            np.copyto(array_of(layer), array)
            layer.refresh(extent=False, highlight=False)
            self._tell(Role.AGREEMENT)
            return
        with self._changing():
            self._put(agreement_layer(tag, array), Role.AGREEMENT).editable = False
            self._below_agreement = [mask for mask in self.mask_layers() if mask.visible]
            for mask in self._below_agreement:
                mask.visible = False

    def hide_agreement(self) -> None:
        """Take the agreement map away and show again the masks that it replaced."""
        with self._changing():
            self._remove(find_layers(self.viewer.layers, Role.AGREEMENT))
            for mask in self._below_agreement:
                mask.visible = True
            self._below_agreement = []

    # ------------------------------------------------------------------ marks

    def show_marks(self, tag: LayerTag, buffer: NDArray[np.uint8]) -> Any:
        """Add the layer of marks, or give the one that is there another buffer."""
        with self._changing():
            is_new = self.layer(Role.MARKS) is None
            data, keywords, kind = marks_layer(tag, buffer)
            if is_new:
                keywords["visible"] = False
            layer = self._put((data, keywords, kind), Role.MARKS)
            if is_new:
                layer.editable = False
                layer.visible = True
            else:
                forget_history(layer)
        return layer

    # -------------------------------------------------------- phase and place

    @property
    def phase(self) -> int | None:
        """The phase on screen; None where no case is shown."""
        return self.phase_in(self.viewer)

    def phase_in(self, viewer: Any) -> int | None:
        """Return the phase on screen in another view of the same layers."""
        layer = self.layer(Role.PHASE)
        if layer is None:
            return None
        axis = viewer.dims.ndim - _MASK_AXES - 1
        shown = int(viewer.dims.current_step[axis]) if axis >= 0 else 0
        return min(shown, int(layer.data.shape[0]) - 1)

    def go_to_phase(self, phase: int) -> None:
        """Show `phase`, or the nearest one that there is."""
        layer = self.layer(Role.PHASE)
        axis = self.viewer.dims.ndim - _MASK_AXES - 1
        if layer is not None and axis >= 0:
            last = layer.data.shape[0] - 1
            self.viewer.dims.set_current_step(axis, min(max(phase, 0), last))

    def step_phase(self, by: int) -> None:
        """Show the phase `by` further on, stopping at the ends."""
        if self.phase is not None:
            self.go_to_phase(self.phase + by)

    def go_to(self, voxel: Voxel, *, centre: bool = True) -> None:
        """Show the slice of `voxel` (z, y, x); with `centre`, move the view there as well."""
        layer = self.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        if layer is None or tag is None:
            return
        frame = tag.grid.display_frame()
        shown = frame.point_to_display(voxel, tag.grid.shape)
        dims = self.viewer.dims
        axes = range(dims.ndim - _MASK_AXES, dims.ndim)
        dims.set_current_step(list(axes), [round(place) for place in shown])
        if centre:
            spacing = frame.per_axis(tag.grid.spacing_mm)
            world = [place * mm for place, mm in zip(shown, spacing, strict=True)]
            self.viewer.scene.camera.center = [world[axis - axes.start] for axis in dims.displayed]
        for listener in tuple(self.moved):
            listener(voxel, centre)

    @property
    def is_zoomed_in(self) -> bool:
        """Whether clearly less than the whole slice is on screen."""
        return self.relative_zoom > _ZOOMED_IN

    @property
    def relative_zoom(self) -> float:
        """How much larger the image is than where the whole slice fits; 1 where it just fits."""
        whole = self._whole_zoom
        return float(self.viewer.scene.camera.zoom) / whole if whole > 0 else 1.0

    def fit(self) -> None:
        """Show the whole slice."""
        if len(self.viewer.layers):
            self.viewer.reset_view()
            self._whole_zoom = float(self.viewer.scene.camera.zoom)

    def voxel_at(self, position: tuple[float, ...]) -> Voxel | None:
        """Return the voxel (z, y, x) of the case at a world position; None outside the volume."""
        place = self.place_at(position)
        grid = self.grid
        if place is None or grid is None:
            return None
        z, y, x = (round(i) for i in place)
        inside = all(0 <= i < n for i, n in zip((z, y, x), grid.shape, strict=True))
        return (z, y, x) if inside else None

    def place_at(self, position: tuple[float, ...]) -> tuple[float, float, float] | None:
        """Return the voxel coordinates (z, y, x) of a world position, inside the volume or not.

        Through the slices it is the slice shown. None where no case is shown.
        """
        grid = self.grid
        if grid is None or len(position) < _MASK_AXES:
            return None
        frame = grid.display_frame()
        spacing = frame.per_axis(grid.spacing_mm)
        shown = [p / mm for p, mm in zip(position[-_MASK_AXES:], spacing, strict=True)]
        return frame.point_from_display(shown, grid.shape)

    def slice_shown(self) -> tuple[int, int] | None:
        """Return the array axis (0 z, 1 y, 2 x) across the slice shown and its index there."""
        axis, grid = self.upright_axis, self.grid
        if axis is None or grid is None:
            return None
        dims = self.viewer.dims
        frame = grid.display_frame()
        steps = dims.current_step[dims.ndim - _MASK_AXES :]
        place = frame.point_from_display([float(step) for step in steps], grid.shape)
        return axis, min(max(round(place[axis]), 0), grid.shape[axis] - 1)

    @property
    def upright_axis(self) -> int | None:
        """The array axis (0 z, 1 y, 2 x) across the slice shown; None in a 3-D view."""
        return self.upright_axis_in(self.viewer)

    def upright_axis_in(self, viewer: Any) -> int | None:
        """Return the same of another view of the case."""
        grid = self.grid
        dims = viewer.dims
        lead = dims.ndim - _MASK_AXES
        across = set(range(_MASK_AXES)) - {axis - lead for axis in dims.displayed}
        if grid is None or len(across) != 1:
            return None
        return grid.display_frame().order[across.pop()]

    @property
    def grid(self) -> Grid | None:
        """The grid of the case shown, None where none is."""
        layer = self.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        return None if tag is None else tag.grid

    # ------------------------------------------------------------- appearance

    def image_on_screen(self) -> Any | None:
        """Return the layer of the image that is looked at: projection, difference, else phases."""
        for role in (Role.PROJECTION, Role.SUBTRACTION, Role.PHASE):
            layer = self.layer(role)
            if layer is not None:
                return layer
        return None

    def shown_mask(self) -> Any | None:
        """Return the visible mask that matters most: refined, prediction, reference; else None."""
        visible = [layer for layer in self.mask_layers() if layer.visible]
        order = {role: place for place, role in enumerate(MASK_ROLES)}
        return max(visible, key=lambda layer: order[_role(layer)], default=None)

    def set_masks_hidden(self, hidden: bool) -> None:
        """Hide the visible masks, or show again those that this call hid."""
        if hidden:
            drawn = find_layers(self.viewer.layers, *MASK_ROLES, Role.AGREEMENT)
            self._hidden = [layer for layer in drawn if layer.visible]
        for layer in self._hidden:
            layer.visible = not hidden
        if not hidden:
            self._hidden = []

    def toggle_outline(self) -> None:
        """Draw all masks filled, or all as outlines."""
        masks = self.mask_layers()
        filled = any(layer.contour == 0 for layer in masks)
        for layer in masks:
            layer.contour = OUTLINE_VOXELS if filled else 0
            layer.opacity = 1.0 if filled else 0.5

    def set_visible(self, role: Role, visible: bool) -> None:
        """Show or hide the layer of a role."""
        layer = self.layer(role)
        if layer is not None:
            layer.visible = visible

    # --------------------------------------------------------------- prompt box

    def draw_box(self, start: Voxel, stop: Voxel, colour: str) -> None:
        """Draw a rectangle from voxel to voxel (z, y, x) on the slice shown."""
        corners = self._rectangle(start, stop)
        if corners is None:
            return
        with self._changing():
            self.erase_box()
            active = self.viewer.layers.selection.active
            layer = self.viewer.add_shapes(
                [corners],
                shape_type="rectangle",
                name=_BOX_NAME,
                edge_color=colour,
                face_color="transparent",
                edge_width=1.0,
                units=("mm",) * _MASK_AXES,
                axis_labels=("slice", "row", "column"),
            )
            layer.editable = False
            self._box = layer
            self.viewer.layers.selection.active = active

    def erase_box(self) -> None:
        """Take the rectangle away."""
        with self._changing():
            if self._box is not None:
                self._remove([self._box])
            self._box = None

    def _rectangle(self, start: Voxel, stop: Voxel) -> NDArray[np.float64] | None:
        layer = self.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        dims = self.viewer.dims
        displayed = [axis - (dims.ndim - _MASK_AXES) for axis in dims.displayed]
        if tag is None or len(displayed) != 2:
            return None
        frame = tag.grid.display_frame()
        spacing = frame.per_axis(tag.grid.spacing_mm)
        a, b = (
            [
                i * mm
                for i, mm in zip(frame.point_to_display(v, tag.grid.shape), spacing, strict=True)
            ]
            for v in (start, stop)
        )
        corners = np.tile(np.array(a), (4, 1))
        down, across = displayed
        corners[2:, down] = b[down]
        corners[1:3, across] = b[across]
        return corners

    # ------------------------------------------------------------------ inner

    @contextmanager
    def _changing(self) -> Iterator[None]:
        before, self._own_change = self._own_change, True
        try:
            yield
        finally:
            self._own_change = before

    def _tell(self, role: Role, part: Part | None = None) -> None:
        for listener in tuple(self.redrawn):
            listener(role, part)

    def _put(self, made: LayerTuple, role: Role) -> Any:
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

    def _remove(self, layers: list[Any]) -> None:
        for layer in layers:
            if layer in self.viewer.layers:
                self.viewer.layers.remove(layer)

    def _place_of(self, role: Role) -> int:
        """Return where a layer belongs: above our layers of lower roles."""
        order = [*_BELOW_MASKS, *MASK_ROLES, Role.AGREEMENT, Role.MARKS]
        below = [
            place
            for place, layer in enumerate(self.viewer.layers)
            if (tag := tag_of(layer)) and order.index(tag.role) <= order.index(role)
        ]
        return max(below, default=-1) + 1

    def _set_phases_visible(self, visible: bool) -> None:
        layer = self.layer(Role.PHASE)
        if layer is not None:
            layer.visible = visible


def _role(layer: Layer) -> Role:
    tag = tag_of(layer)
    return Role.PHASE if tag is None else tag.role
