"""The open case in one viewer: its layers are shown, updated, stepped through and hidden.

Layers are found by their tag each time, so that a user may rename, reorder or delete any of them.
Only the GUI thread calls this module.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from napari.layers import Layer
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.garbage import set_aside, take_back
from napari_mamamia.widgets.adapter.adapter import (
    forget_history,
    main_view,
    redraw_part,
)
from napari_mamamia.widgets.adapter.drawing import measured_once, sliced_once
from napari_mamamia.widgets.adapter.labels import make_circle, make_dashes
from napari_mamamia.widgets.adapter.sliders import sliders_of
from napari_mamamia.widgets.base.layers import (
    MASK_ROLES,
    METADATA_KEY,
    LayerTag,
    LayerTuple,
    Role,
    agreement_layer,
    array_of,
    case_layer,
    mark_painted,
    marks_layer,
    mask_layer,
    style_mask,
    subtraction_layer,
    tag_for,
    tag_of,
    uncertainty_layer,
)
from napari_mamamia.widgets.controls.colours import OUTLINE_VOXELS
from napari_mamamia.widgets.viewer.layer_stack import BELOW_MASKS, LayerStack
from napari_mamamia.widgets.viewer.slice_view import (
    CaseSteps,
    EmptyAxes,
    SliceView,
    Voxel,
)

_SHINES_THROUGH = 0.6


class Overlays:
    """A component that shows and hides images computed from the open case.

    Parameters
    ----------
    stack
        Our layers in the viewer.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        self._below_agreement: list[Any] = []

    # --------------------------------------------------- in place of the phases

    def show_subtraction(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a difference instead of the phases; the user's contrast limits are kept."""
        with self._stack.changing():
            before = self._stack.layer(Role.SUBTRACTION)
            shown_limits = limits if before is None else tuple(before.contrast_limits)
            self._stack.take_away(Role.PROJECTION)
            self._stack.put(subtraction_layer(tag, array, shown_limits), Role.SUBTRACTION)
            self._stack.set_visible(Role.PHASE, False)

    def hide_subtraction(self) -> None:
        """Show the phases again."""
        self._show_phases_without(Role.SUBTRACTION)

    def show_projection(
        self, tag: LayerTag, array: NDArray[Any], limits: tuple[float, float]
    ) -> None:
        """Show a projection instead of the phases; contrast limits for the same type are kept."""
        with self._stack.changing():
            before = self._stack.layer(Role.PROJECTION)
            old = None if before is None else tag_of(before)
            same = before is not None and old is not None and old.note == tag.note
            shown_limits = tuple(before.contrast_limits) if before is not None and same else limits
            self._stack.take_away(Role.SUBTRACTION)
            self._stack.put(subtraction_layer(tag, array, shown_limits), Role.PROJECTION)
            self._stack.set_visible(Role.PHASE, False)

    def hide_projection(self) -> None:
        """Show the phases again."""
        self._show_phases_without(Role.PROJECTION)

    def _show_phases_without(self, role: Role) -> None:
        with self._stack.changing():
            self._stack.take_away(role)
            self._stack.set_visible(Role.PHASE, True)

    # ------------------------------------------------------------ kinetic map

    def show_map(self, made: LayerTuple, *, covers: bool) -> None:
        """Show a kinetic map above the image, replacing the previous map."""
        with self._stack.changing():
            before = self._stack.layer(Role.MAP)
            # A map of classes is a labels layer, a map of numbers an image layer: they cannot
            # exchange data.
            if before is not None:
                self._stack.remove([before])
            layer = self._stack.put(made, Role.MAP)
            if made[2] == "labels":
                layer.editable = False
        self.style_map(covers)

    def style_map(self, covers: bool) -> None:
        """Make the kinetic map opaque or translucent."""
        layer = self._stack.layer(Role.MAP)
        if layer is not None:
            layer.opacity = 1.0 if covers else _SHINES_THROUGH

    def hide_map(self) -> None:
        """Remove the kinetic map."""
        self._stack.take_away(Role.MAP)

    def redraw_map(self) -> None:
        """Redraw the kinetic map after its array was filled in place."""
        layer = self._stack.layer(Role.MAP)
        if layer is not None:
            layer.refresh(thumbnail=False, extent=False, highlight=False)
            self._stack.report_change(Role.MAP)

    # ------------------------------------------------------------------ doubt

    def show_uncertainty(self, tag: LayerTag, array: NDArray[Any], said: str, most: float) -> None:
        """Show a model's uncertainty above the image; see `uncertainty_layer`."""
        with self._stack.changing():
            self._stack.put(uncertainty_layer(tag, array, said, most), Role.DOUBT).visible = True

    def hide_uncertainty(self) -> None:
        """Remove the uncertainty map."""
        self._stack.take_away(Role.DOUBT)

    # ------------------------------------------------------------- agreement

    def show_agreement(self, tag: LayerTag, array: NDArray[np.uint8]) -> None:
        """Show an agreement map and hide the mask outlines, which would cover the differences."""
        layer = self._stack.layer(Role.AGREEMENT)
        if layer is not None and array_of(layer).shape == array.shape:
            np.copyto(array_of(layer), array)
            layer.refresh(extent=False, highlight=False)
            self._stack.report_change(Role.AGREEMENT)
            return
        with self._stack.changing():
            self._stack.put(agreement_layer(tag, array), Role.AGREEMENT).editable = False
            self._below_agreement = [mask for mask in self._stack.find(*MASK_ROLES) if mask.visible]
            for mask in self._below_agreement:
                mask.visible = False

    def keep_below_agreement(self, mask: Any) -> None:
        """Hide a mask that is added while an agreement map is shown, until the map is hidden."""
        if self._stack.layer(Role.AGREEMENT) is not None:
            mask.visible = False
            self._below_agreement.append(mask)

    def hide_agreement(self) -> None:
        """Remove the agreement map, and show the hidden masks again."""
        with self._stack.changing():
            self._stack.take_away(Role.AGREEMENT)
            for mask in self._below_agreement:
                mask.visible = True
            self._below_agreement = []


_SPACE_AXES = 3
_BOX_NAME = "prompt box"


class PromptBox:
    """A rectangle in its own layer, which is not editable; there is at most one at a time.

    Parameters
    ----------
    stack
        The layers of this program in the viewer.
    """

    def __init__(self, stack: LayerStack) -> None:
        self._stack = stack
        self._layer: Any | None = None

    def draw(self, start: Voxel, stop: Voxel, colour: str) -> None:
        """Draw a rectangle from voxel to voxel (z, y, x) on the displayed slice."""
        corners = self._find_corners(start, stop)
        if corners is None:
            return
        viewer = self._stack.viewer
        with self._stack.changing():
            self.erase()
            active = viewer.layers.selection.active
            layer = viewer.add_shapes(
                [corners],
                shape_type="rectangle",
                name=_BOX_NAME,
                edge_color=colour,
                face_color="transparent",
                edge_width=1.0,
                units=("mm",) * _SPACE_AXES,
                axis_labels=("slice", "row", "column"),
            )
            layer.editable = False
            self._layer = layer
            viewer.layers.selection.active = active

    def erase(self) -> None:
        """Remove the rectangle."""
        with self._stack.changing():
            if self._layer is not None:
                self._stack.remove([self._layer])
            self._layer = None

    def _find_corners(self, start: Voxel, stop: Voxel) -> NDArray[np.float64] | None:
        grid, dims = self._stack.grid, self._stack.viewer.dims
        displayed = [axis - (dims.ndim - _SPACE_AXES) for axis in dims.displayed]
        if grid is None or len(displayed) != 2:
            return None
        a, b = _find_world_place(start, grid), _find_world_place(stop, grid)
        corners = np.tile(np.array(a), (4, 1))
        down, across = displayed
        corners[2:, down] = b[down]
        corners[1:3, across] = b[across]
        return corners


def _find_world_place(voxel: Voxel, grid: Grid) -> list[float]:
    """Return the display position of a voxel (z, y, x), in mm along slice, row, column."""
    frame = grid.display_frame()
    spacing = frame.per_axis(grid.spacing_mm)
    return [
        i * mm for i, mm in zip(frame.point_to_display(voxel, grid.shape), spacing, strict=True)
    ]


_OF_ONE_CASE = (*BELOW_MASKS[1:], Role.REFINED, Role.MARKS)
"""Roles of layers that are removed together with their case instead of being reused."""


class Scene:
    """The layers of the open case in a viewer.

    Parameters
    ----------
    viewer
        A napari viewer or `ViewerModel`, not a proxy of one.

    Attributes
    ----------
    stack
        Our layers in that viewer, shared with `view`, `overlays` and `box`.
    view
        The displayed slice, and navigation.
    overlays
        Images shown above the phases or instead of them.
    box
        The rectangle of a prompt.
    companions
        Scenes of other exams next to this scene, whose masks are hidden and outlined together with
        the
        masks of this scene.
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self.companions: list[Scene] = []
        self.stack = LayerStack(viewer)
        self.view = SliceView(self.stack)
        self.overlays = Overlays(self.stack)
        self.box = PromptBox(self.stack)
        self._is_warm = False
        self._is_closed = False
        self._hidden: list[Any] = []
        self._empty = EmptyAxes(viewer)
        self._steps = CaseSteps(self.stack)

    # ---------------------------------------------------------------- layers

    def layer(self, role: Role) -> Any | None:
        """Return this program's layer with `role`, or None if there is none."""
        return self.stack.layer(role)

    def mask_layers(self) -> list[Any]:
        """Return the layers of masks, from bottom to top."""
        return self.stack.find(*MASK_ROLES)

    @property
    def grid(self) -> Grid | None:
        """The grid of the displayed case, or None if there is none."""
        return self.stack.grid

    @property
    def is_changing(self) -> bool:
        """Whether this program is currently adding or removing layers."""
        return self.stack.is_changing

    def warm_up_steps(self) -> list[Callable[[], object]]:
        """Return napari's one-time initialisation as steps to run before the first case.

        Call `load_napari_parts` in a thread first; otherwise it blocks one iteration for 0.3 s. The
        list is empty after the initialisation, or if there are layers.

        The last step excludes the window's objects (about 300,000) from garbage collection until
        `cool_down` is called, because a full collection blocks the window for 200 ms, often in the
        middle of a stroke.
        """
        if self._is_warm or len(self.viewer.layers):
            return []
        self._is_warm = True
        sliders = [partial(self._make_sliders, n_axes) for n_axes in (_SPACE_AXES, _SPACE_AXES + 1)]
        circle = partial(make_circle, self.viewer)
        return [self.set_aside, *sliders, self.stack.spares.stock_later, circle]

    def _make_sliders(self, n_axes: int) -> None:
        """Create sliders up to this number, one per iteration, which takes 20 ms each."""
        if len(self.viewer.layers) or self.viewer.dims.ndim >= n_axes:
            return
        # New sliders have three steps at first: if visible they would resize the image, which
        # draws itself twice for it.
        sliders, *_ = sliders_of(self.viewer) or (None,)
        was_hidden = sliders is None or sliders.isHidden()
        if sliders is not None:
            sliders.hide()
        self._empty.lay_axes(0, n_axes)
        if sliders is not None:
            sliders.setHidden(was_hidden)

    def set_aside(self) -> None:
        """Exclude the existing objects from garbage collection, if this viewer has a window."""
        if main_view(self.viewer) is not None and not self._is_closed:
            set_aside()

    def expect_case(self, expected: bool) -> None:
        """Create sliders while the first case is read, which saves 20 ms when the case is shown."""
        # napari shows a slider of an axis with more than one step, and hides that of one with one
        # step.
        self._empty.lay_axes(int(expected))

    def cool_down(self) -> None:
        """Include all objects in garbage collection again when the window closes."""
        self._is_closed = True
        take_back()

    def retire_case(self, kept: Collection[Role]) -> None:
        """Hide layers that the next case does not reuse, except masks with the roles `kept`.

        The hidden layers stay in napari's layer list until `LayerStack.removal_steps` removes them.
        """
        with self.stack.changing():
            self.stack.retire(Role.AGREEMENT)
            self.overlays.hide_agreement()
            gone = [role for role in MASK_ROLES if role not in kept]
            self.stack.retire(*_OF_ONE_CASE, *gone)

    def show_case(
        self,
        case: Case,
        limits: tuple[float, float],
        masks: Sequence[tuple[LayerTag, NDArray[np.uint8]]] = (),
    ) -> Any:
        """Replace the previous case's layers with the phases and masks of `case`."""
        with self.stack.changing():
            self.overlays.hide_agreement()
            self.stack.take_away(*_OF_ONE_CASE)
            with measured_once(self.viewer):
                layer = self.stack.put(case_layer(case, limits), Role.PHASE)
                for tag, buffer in masks:
                    self.show_mask(tag, buffer)
            self._steps.follow_case()
            self.stack.set_visible(Role.PHASE, True)
            self.viewer.layers.selection.active = layer
            self.view.fit()
        return layer

    def prepare_case(self, case: Case, limits: tuple[float, float]) -> None:
        """Insert the hidden layer of the first case's phases, which `show_case` shows later."""
        with sliced_once(self.viewer), self.stack.changing():
            self.stack.put(case_layer(case, limits), Role.PHASE, _hide_layer)

    def choose_phases(self) -> bool:
        """Select the layer of phases; return False if there is none or it is already selected."""
        layer, selection = self.layer(Role.PHASE), self.viewer.layers.selection
        if layer is None or selection.active is layer:
            return False
        selection.active = layer
        return True

    def replace_phases(self, case: Case, note: str) -> None:
        """Show different voxels for the current case; `note` describes them on the image."""
        layer = self.layer(Role.PHASE)
        if layer is None:
            return
        tag = replace(tag_for(case, Role.PHASE), note=note)
        # Before the data: copies in other views read the tag when their event comes.
        layer.metadata = {METADATA_KEY: tag}
        layer.data = case.grid.display_frame().to_display(case.signal)

    def show_mask(self, tag: LayerTag, buffer: NDArray[np.uint8]) -> Any:
        """Add the mask with a role, or replace the existing mask and keep its style."""
        with self.stack.changing():
            is_new = self.layer(tag.role) is None
            layer = self.stack.put(mask_layer(tag, buffer), tag.role, style_mask)
            if is_new:
                self.overlays.keep_below_agreement(layer)
            else:
                forget_history(layer)
        return layer

    def mark_painted(self, label: int) -> None:
        """Highlight one lesion of the edited mask; 0 highlights none."""
        layer = self.layer(Role.REFINED)
        if layer is not None:
            mark_painted(layer, label)

    def drop_other_cases(self, case_id: str) -> None:
        """Remove this program's layers of every case except one."""
        with self.stack.changing():
            ours = self.stack.find()
            self.stack.remove(
                [layer for layer in ours if (tag := tag_of(layer)) and tag.case_id != case_id]
            )

    def redraw_mask(self, role: Role) -> None:
        """Redraw a mask after its buffer was changed in place."""
        layer = self.layer(role)
        if layer is not None:
            forget_history(layer)
            layer.refresh(extent=False, highlight=False)
            self.stack.report_change(role)

    def remove_mask(self, role: Role) -> None:
        """Remove the mask with a role from the viewer, if there is one."""
        self.stack.take_away(role)

    def redraw_box(self, role: Role, box: Box) -> None:
        """Redraw a mask or the marks inside `box` (z, y, x) after a change in place."""
        layer = self.layer(role)
        tag = None if layer is None else tag_of(layer)
        if layer is None or tag is None or box.is_empty:
            return
        frame, shape = tag.grid.display_frame(), tag.grid.shape
        # Corners as voxels, both inside: a flip of the display swaps them.
        last = [stop - 1 for stop in box.stop]
        ends = (frame.point_to_display(corner, shape) for corner in (box.start, last))
        pairs = (sorted((round(a), round(b))) for a, b in zip(*ends, strict=True))
        s, r, c = (slice(a, b + 1) for a, b in pairs)
        redraw_part(layer, (s, r, c))
        self.stack.report_change(role, (s, r, c))

    def redraw_phases(self) -> None:
        """Redraw the phases after some of them were read."""
        layer = self.layer(Role.PHASE)
        if layer is not None and layer.visible:
            layer.refresh(thumbnail=False, extent=False, highlight=False)
        self.stack.report_change(Role.PHASE)

    # ------------------------------------------------------------------ marks

    def show_marks(self, tag: LayerTag, buffer: NDArray[np.uint8]) -> Any:
        """Add the layer of marks, or set a new buffer for the existing layer."""
        with self.stack.changing():
            is_new = self.layer(Role.MARKS) is None
            layer = self.stack.put(marks_layer(tag, buffer), Role.MARKS, _protect_layer)
            if not is_new:
                forget_history(layer)
        return layer

    # ----------------------------------------------------------------- phase

    @property
    def phase(self) -> int | None:
        """The displayed phase, or None if no case is open."""
        return self.phase_in(self.viewer)

    def phase_in(self, viewer: Any) -> int | None:
        """Return the displayed phase in another view of the same layers."""
        layer = self.layer(Role.PHASE)
        if layer is None:
            return None
        axis = viewer.dims.ndim - _SPACE_AXES - 1
        phase = round(viewer.dims.point[axis]) if axis >= 0 else 0
        return min(max(phase, 0), int(layer.data.shape[0]) - 1)

    def go_to_phase(self, phase: int) -> None:
        """Show `phase`, or the nearest existing phase."""
        layer = self.layer(Role.PHASE)
        axis = self.viewer.dims.ndim - _SPACE_AXES - 1
        if layer is not None and axis >= 0:
            last = layer.data.shape[0] - 1
            self.viewer.dims.set_point(axis, min(max(phase, 0), last))

    def step_phase(self, by: int) -> None:
        """Show the phase that is `by` steps away, stopping at the ends."""
        if self.phase is not None:
            self.go_to_phase(self.phase + by)

    # ------------------------------------------------------------- appearance

    def image_on_screen(self) -> Any | None:
        """Return the displayed image's layer: the projection, the difference or the phases."""
        for role in (Role.PROJECTION, Role.SUBTRACTION, Role.PHASE):
            layer = self.layer(role)
            if layer is not None:
                return layer
        return None

    def shown_mask(self) -> Any | None:
        """Return the visible mask with the highest priority: refined, prediction, reference."""
        visible = [layer for layer in self.mask_layers() if layer.visible]
        order = {role: index for index, role in enumerate(MASK_ROLES)}
        return max(visible, key=lambda layer: order[_find_role(layer)], default=None)

    def set_masks_hidden(self, hidden: bool) -> None:
        """Hide the visible masks, or show the masks that this method has hidden."""
        if hidden:
            drawn = self.stack.find(*MASK_ROLES, Role.AGREEMENT)
            # Added: if the window loses the focus while a key is held, its release is not
            # reported.
            self._hidden += [layer for layer in drawn if layer.visible]
        for layer in self._hidden:
            layer.visible = not hidden
        if not hidden:
            self._hidden = []
        for scene in self.companions:
            scene.set_masks_hidden(hidden)

    def toggle_outline(self) -> None:
        """Switch all masks between filled areas and outlines."""
        masks = [layer for scene in (self, *self.companions) for layer in scene.mask_layers()]
        filled = any(layer.contour == 0 for layer in masks)
        for layer in masks:
            layer.contour = OUTLINE_VOXELS if filled else 0
            layer.opacity = 1.0 if filled else 0.5


def _hide_layer(layer: Any) -> None:
    layer.visible = False


def _protect_layer(layer: Any) -> None:
    layer.editable = False


def _find_role(layer: Layer) -> Role:
    tag = tag_of(layer)
    return Role.PHASE if tag is None else tag.role


def load_napari_parts() -> Any:
    """Import napari's modules for the first layer, which takes 0.3 s, and return a unit registry.

    Any thread may call this function. It returns a separate registry for `use_units`, because pint
    fills its default registry at the first use, and another thread could see a partly filled
    registry. If napari already uses a registry, that registry is returned for another window.
    """
    import pandas  # noqa: F401 - for a layer's table of features
    import pint
    import skimage.color.colorconv  # noqa: F401 - for the colours of a layer of labels
    from pint.registry import LazyRegistry

    make_dashes()
    table: Any = pint.application_registry
    used = table.get()
    is_bare = isinstance(used, LazyRegistry)
    return pint.UnitRegistry(on_redefinition="raise") if is_bare else used


def use_units(units: Any) -> None:
    """Make napari use these units if it has none yet; call this in the GUI thread only."""
    import pint
    from pint.registry import LazyRegistry

    table: Any = pint.application_registry
    if isinstance(table.get(), LazyRegistry):
        table.set(units)
