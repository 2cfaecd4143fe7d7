"""Faster slice steps that show the same image without napari's redundant work.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari
steps as usual.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import proxy, ref

import numpy as np
from napari.layers import Layer

from napari_mamamia.widgets.adapter.patches import patch

_IN_PLANE: Final = 2


@patch
def step_lightly(viewer: Any) -> None:
    """Let a viewer or `ViewerModel` slice its layers once per step, and keep their extents.

    napari slices twice, for the new position in mm and for the new slice number (napari 0.9.2,
    `napari/components/viewer_model.py`, ``dims.events.point`` and ``current_step``), and computes
    the extents of all layers each time, although they do not depend on the slice.
    """
    slicer: Any = getattr(viewer, "_layer_slicer", None)
    update = getattr(viewer, "_update_layers", None)
    submit = getattr(type(slicer), "submit", None)
    if submit is None or update is None or "submit" in vars(slicer):
        return
    step = _LightStep(viewer, partial(submit, proxy(slicer)))
    slicer.submit = step.slice_layers
    with suppress(ValueError):
        viewer.dims.events.current_step.disconnect(update)
        viewer.dims.events.current_step.connect(step.follow_number, position="first")


class _LightStep:
    """The position at which the layers of a viewer were last sliced."""

    def __init__(self, viewer: Any, submit: Callable[..., Any]) -> None:
        self._viewer, self._submit = ref(viewer), submit
        self._sliced: tuple[object, ...] = ()

    def slice_layers(self, *, layers: Sequence[Any], dims: Any, force: bool = False) -> Any:
        """Slice layers as napari does, but keep their extents unless `force` is true."""
        viewer = self._viewer()
        is_whole = viewer is not None and len(layers) == len(viewer.layers)
        self._sliced = _read_place(viewer) if is_whole else ()
        if force:
            return self._submit(layers=layers, dims=dims, force=True)
        with _extents_kept(layers):
            return self._submit(layers=layers, dims=dims)

    def follow_number(self, _event: object = None) -> None:
        """Slice the layers for a new slice number, unless already sliced at this position."""
        viewer = self._viewer()
        if viewer is not None and self._sliced != _read_place(viewer):
            viewer._update_layers()


def _read_place(viewer: Any) -> tuple[object, ...]:
    dims = viewer.dims
    margins = dims.margin_left, dims.margin_right
    return (dims.point, margins, dims.order, dims.ndisplay, [id(layer) for layer in viewer.layers])


@contextmanager
def _extents_kept(layers: Sequence[Any]) -> Iterator[None]:
    name = "_clear_extent"
    held = [layer for layer in layers if hasattr(layer, name) and name not in vars(layer)]
    for layer in held:
        layer._clear_extent = _do_nothing
    try:
        yield
    finally:
        for layer in held:
            # The instance attribute hid the class's method.
            del layer._clear_extent


def _do_nothing() -> None:
    """Do nothing, in place of a napari method that is not needed."""


@patch
def keep_lightly(layer: Layer) -> None:
    """Let a volume layer update only the properties that depend on the slice.

    The layer computes its visible part only after a change (napari 0.9.2,
    `napari/layers/base/base.py`, ``_update_draw``), and reads a slice from its array without
    recomputing the transform from mm to voxels (``data_slice``, half of the time for a slice).
    """
    patched: Any = layer
    look = getattr(type(layer), "_update_draw", None)
    if look is not None:
        patched._update_draw = partial(_look_if_new, ref(layer), look, [])
    state = getattr(layer, "_slicing_state", None)
    take = getattr(type(state), "_set_view_slice", None)
    names = ("_slice", "_slice_input", "_units")
    # This is a property, and reading the layer's own property would compute it.
    has_all = hasattr(type(state), "data_slice") and all(hasattr(state, name) for name in names)
    if take is not None and has_all:
        patched._slicing_state._set_view_slice = partial(_take_slice, ref(state), take, [])


def _take_slice(state_ref: Any, take: Callable[[Any], None], last: list[Any]) -> None:
    """Show the slice of a layer at the position in `_slice_input`.

    `last` holds the layer's transform and the matrix from the viewer's millimetres to voxels for
    the axes that are not displayed. napari itself handles the first slice, and slices that are not
    simply a part of the array.
    """
    state = state_ref()
    cut, layer = state._slice_input, state.layer
    lies = (layer.extent, state._units)
    margins = (cut.world_slice.margin_left, cut.world_slice.margin_right)
    how = (str(layer.projection_mode), layer.multiscale, margins)
    rules = (cut.ndisplay, cut.order, layer.data.shape, how)
    if not last or last[0][0] is not lies[0] or last[0][1] != lies[1] or last[1] != rules:
        last[:] = []
        is_plain = _is_plain(layer, cut)
        if not is_plain or not _is_followed(state._slice, cut):
            take(state)
            if not is_plain or state._slice.empty:
                return
        last[:] = [lies, rules, _find_way(state)]
    # This also applies to the first slice: half-way between two slices, image and mask must round
    # in the same way.
    places = last[2] @ np.append(np.array(cut.world_slice.point)[cut.not_displayed], 1.0)
    index: list[Any] = [slice(None)] * len(cut.order)
    for axis, step in zip(cut.not_displayed, np.rint(places), strict=True):
        index[axis] = int(step)
    if all(0 <= index[axis] < layer.data.shape[axis] for axis in cut.not_displayed):
        _show_slice(state, tuple(index))
    else:
        take(state)


def _is_plain(layer: Any, cut: Any) -> bool:
    margins = (*cut.world_slice.margin_left, *cut.world_slice.margin_right)
    # By default, napari takes the mean even of a single slice, and converts it to float.
    is_thin = str(layer.projection_mode) == "none" or not any(margins)
    is_grey = isinstance(layer.data, np.ndarray) and layer.data.ndim == len(cut.order)
    return bool(is_thin and is_grey and not layer.multiscale and cut.ndisplay == 2)


def _is_followed(before: Any, cut: Any) -> bool:
    """Return whether an earlier slice becomes `cut` if its image and position are replaced.

    All other properties must be equal, and the slice must not be a tile.
    """
    is_flat = before.image.raw.ndim == len(cut.displayed) == _IN_PLANE
    return bool(not before.empty and is_flat and before.tile_to_data.ndim == len(cut.order))


def _find_way(state: Any) -> Any:
    """Return the matrix from mm to voxels for the hidden axes, with the offset as the last column.

    The matrix is derived from the voxels that napari computes for some points (0 mm, and 1 mm along
    two axes at a time, as the margins of a thick slice), so all rules of napari are included.
    """
    cut, hidden = state._slice_input, list(state._slice_input.not_displayed)
    shift, steps = np.zeros(len(hidden)), []
    try:
        for first in range(0, len(hidden), 2):
            places = np.zeros((3, len(cut.order)))
            for row, axis in enumerate(hidden[first : first + 2], start=1):
                places[row, axis] = 1.0
            point, below, right = map(tuple, places)
            whole = cut.world_slice.copy_with(point=point, margin_left=below, margin_right=right)
            state._slice_input = replace(cut, world_slice=whole)
            thick = state.data_slice
            shift = np.array(thick.point)[hidden]
            steps += [
                np.array(margin)[hidden] for margin in (thick.margin_left, thick.margin_right)
            ]
    finally:
        state._slice_input = cut
    return np.column_stack([*steps[: len(hidden)], shift])


def _show_slice(state: Any, index: tuple[Any, ...]) -> None:
    layer, cut, before = state.layer, state._slice_input, state._slice
    rows, columns = cut.displayed
    raw = np.asarray(layer.data[index])
    raw = raw if rows < columns else raw.T
    image = type(before.image)(raw=raw, view=raw)
    response = replace(before, image=image, thumbnail=image, slice_input=cut, empty=False)
    state._slice = response.to_displayed(layer._raw_to_displayed)


def _look_if_new(
    layer_ref: Any,
    real: Callable[..., None],
    last: list[Any],
    scale_factor: float,
    corner_pixels_displayed: Any,
    shape_threshold: Any,
) -> None:
    layer = layer_ref()
    size = layer.extent
    seen = np.concatenate([np.ravel(corner_pixels_displayed), np.ravel(shape_threshold)])
    key = (scale_factor, tuple(seen), layer._slice_input.displayed)
    if last and last[0] is size and last[1] == key:
        return
    real(layer, scale_factor, corner_pixels_displayed, shape_threshold)
    last[:] = [size, key]
