"""Drawing of napari's labels layer: pen, contours and brush cursor.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari
draws as usual.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import numpy as np
from napari.layers import Labels
from napari.qt import QtViewer
from numpy.typing import NDArray
from qtpy.QtWidgets import QWidget

from napari_mamamia.widgets.adapter.patches import is_on, patch

_CIRCLE: Final = "_brush_circle"
_NAPARIS_COLOUR: Final = "white"
_CORNERS: Final = 64
_DASHES: Final = 28


@patch
def late_drawing(layer: Labels) -> None:
    """Delay creating a labels layer's pen and polygon overlays until a drawing mode is chosen.

    napari creates both when the layer is inserted, which takes 20 to 30 ms even if the user never
    draws (napari 0.9.2, `napari/layers/labels/labels.py`, ``_overlays``).
    """
    overlays = getattr(layer, "_overlays", {})
    mode_overlays = [overlays[name] for name in ("polygon", "brush_stroke") if name in overlays]
    visible = [overlay for overlay in mode_overlays if overlay.visible]

    def show(_event: object = None) -> None:
        for overlay in visible:
            overlay.visible = True

    for overlay in visible:
        overlay.visible = False
    layer.events.mode.connect(show)


@patch
def trim_contours(layer: Labels) -> None:
    """Compute the contours of a labels layer only within the bounding box of its labels.

    The result is unchanged. napari filters the whole slice at each step, which takes 2 ms for
    160x448 pixels with a small tumour. Outside the bounding box every pixel is background; the box
    includes the margin of the filters (napari 0.9.2, `napari/layers/labels/labels.py`,
    ``_calculate_contour``). The layer keeps its whole array. Without the private method napari
    computes contours as usual.
    """
    find_whole = getattr(type(layer), "_calculate_contour", None)
    if find_whole is not None:
        patched: Any = layer
        patched._calculate_contour = partial(_find_contours, ref(layer), find_whole)


def _find_contours(
    layer_ref: Any, find_whole: Callable[..., Any], labels: Any, data_slice: tuple[slice, ...]
) -> Any:
    layer = layer_ref()
    smooth = getattr(layer, "_smooth_outline", None)
    is_smooth = smooth is not None and smooth.draw(labels)
    if layer.contour < 1 or labels.ndim > 2:
        return find_whole(layer, labels, data_slice)
    background = layer.colormap.background_value
    label = labels[data_slice]
    contours = np.full(label.shape, background, label.dtype)
    if is_smooth:
        return contours
    labelled = label != background
    hits = [np.flatnonzero(labelled.any(axis=1 - axis)) for axis in range(2)]
    if all(hit.size for hit in hits):
        box = tuple(slice(int(hit[0]), int(hit[-1]) + 1) for hit in hits)
        crop = tuple(
            slice(whole.start + side.start, whole.start + side.stop)
            for whole, side in zip(data_slice, box, strict=True)
        )
        contours[box] = find_whole(layer, labels, crop)
    return contours


# Rings at the pointer: napari's brush circle in a colour, a ring inside the circle, and a dashed
# ring around it. The rings are children of napari's circle (napari 0.9.2,
# `napari/_vispy/overlays/brush_circle.py`), so moving the pointer draws nothing more. Without the
# private attributes there is only napari's white circle.


@dataclass(frozen=True, slots=True)
class RingStyle:
    """Colour of the brush cursor, and the radii of its rings relative to the brush radius."""

    colour: str = _NAPARIS_COLOUR
    inner: float | None = None
    outer: float | None = None


class BrushRings:
    """The colour and rings of the brush cursor in each view."""

    def __init__(self) -> None:
        self._lines: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._drawn: WeakKeyDictionary[Any, tuple[RingStyle, int]] = WeakKeyDictionary()
        self.look = RingStyle()

    def show(self, look: RingStyle) -> None:
        """Use a style in every view that the pointer enters."""
        self.look = look
        for circle in tuple(self._drawn):
            self._dress_circle(circle)

    def enter(self, canvas: QWidget | None) -> None:
        """Style the brush cursor of the view whose canvas contains the pointer.

        napari creates the cursor when the cursor first becomes visible.
        """
        circle = _find_circle(canvas) if is_on("brush_rings") else None
        if circle is None:
            return
        if circle not in self._drawn:
            circle.overlay.events.size.connect(lambda _event: self._dress_circle(circle))
        self._dress_circle(circle)

    def _dress_circle(self, circle: Any) -> None:
        drawn = (self.look, int(circle.overlay.size))
        if self._drawn.get(circle) == drawn:
            return
        self._drawn[circle] = drawn
        with suppress(AttributeError, RuntimeError):
            circle._white_circle.border_color = self.look.colour
            self._draw_rings(circle, drawn[1] / 2)

    def _draw_rings(self, circle: Any, radius: float) -> None:
        line = self._lines.get(circle)
        parts = _ring_segments(self.look, radius)
        if line is None and len(parts):
            line = self._lines[circle] = _make_line(circle.node)
        if line is None:
            return
        line.visible = bool(len(parts))
        if len(parts):
            line.set_data(pos=parts, color=self.look.colour)


def make_circle(viewer: Any) -> None:
    """Let napari create its hidden brush cursor in advance, which takes 25 ms.

    Otherwise napari creates the cursor when the first tool is chosen.
    """
    circle = viewer.canvas.overlays.get(_CIRCLE)
    if circle is not None and not circle.visible:
        circle.visible = True
        circle.visible = False


def make_dashes() -> None:
    """Let vispy create and cache its dash patterns in any thread, which takes 30 to 60 ms.

    vispy needs the patterns for the line of the brush cursor (vispy 0.17,
    `visuals/line/dash_atlas.py`).
    """
    with suppress(ImportError, AttributeError):
        import_module("vispy.visuals.line.dash_atlas").DashAtlas()


def _make_line(parent: Any) -> Any:
    # Imported with the first circle, so that the window starts quickly.
    visuals: Any = import_module("vispy.scene.visuals")
    return visuals.Line(connect="segments", method="gl", antialias=True, parent=parent)


def _ring_segments(look: RingStyle, radius: float) -> NDArray[np.float32]:
    parts = []
    if look.inner is not None:
        parts.append(_walk_ring(look.inner * radius, _CORNERS, 1.0))
    if look.outer is not None:
        parts.append(_walk_ring(look.outer * radius, _DASHES, 0.5))
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.float32)


def _walk_ring(radius: float, n_lines: int, share: float) -> NDArray[np.float32]:
    turns = np.arange(n_lines)[:, None] + np.array([0.0, share])
    angles = (2 * np.pi / n_lines * turns).ravel()
    return (radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float32)


def _find_circle(canvas: QWidget | None) -> Any | None:
    view: Any = canvas
    with suppress(AttributeError, RuntimeError, KeyError, IndexError):
        while view is not None and not isinstance(view, QtViewer):
            view = view.parent()
        if view is not None:
            overlay = view.canvas.viewer.canvas.overlays[_CIRCLE]
            return view.canvas._viewer_overlay_to_visual[overlay][0]
    return None
