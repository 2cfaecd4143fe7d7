"""Canvas text, text boxes and the scale bar, drawn together as one cached image.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari
draws as usual.

napari redraws each text for every slice although no text changes. This takes twelve of seventeen
GPU programs and a third of the GUI thread's time for a step.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer

from napari_mamamia.widgets.adapter.patches import patch

_RESTING_MS: Final = 150
"""Delay in ms without changes before the image is created (our choice)."""
_TILE: Final = 32
"""Tile size in pixels; empty tiles are not drawn."""
_BLENDED: Final = ("src_alpha", "one_minus_src_alpha")
_VERTEX: Final = """
attribute vec2 a_position;
void main() { gl_Position = vec4(a_position, 0.0, 1.0); }
"""
_FRAGMENT: Final = """
uniform sampler2D u_picture;
uniform vec2 u_size;
void main() { gl_FragColor = texture2D(u_picture, gl_FragCoord.xy / u_size); }
"""


@patch
def draw_writing_once(view: Any) -> None:
    """Draw the text of a `QtViewer` as one cached image until any text changes."""
    canvas: Any = getattr(view, "canvas", None)
    surface: Any = getattr(canvas, "_scene_canvas", None)
    names = ("_fb_stack", "_draw_order", "_drawing", "draw_visual", "update", "push_fbo", "pop_fbo")
    is_known = hasattr(canvas, "_viewer_overlay_to_visual")
    if is_known and all(hasattr(surface, name) for name in names):
        writing = StillWriting(view, canvas, surface)
        # These are methods of the class because a canvas in a reference cycle would stay until a
        # full garbage collection.
        surface.draw_visual = partial(_draw_visual, writing, type(surface).draw_visual)
        surface.update = partial(_update_node, writing, type(surface).update)
        surface.events.initialize.connect(writing.forget)


def _draw_visual(
    writing: "StillWriting", real: Callable[..., None], visual: Any, event: Any = None
) -> None:
    surface = writing.surface
    if surface is not None:
        writing.draw(partial(real, surface, visual, event=event), visual)


def _update_node(writing: "StillWriting", real: Callable[..., None], node: Any = None) -> None:
    surface = writing.surface
    if surface is not None:
        writing.note(node)
        real(surface, node)


class StillWriting:
    """The cached image of a canvas's text; `is_drawn` says whether the last frame used it."""

    def __init__(self, view: Any, canvas: Any, surface: Any) -> None:
        self._canvas: Any = ref(canvas)
        self._surface: Any = ref(surface)
        self._nodes: list[Any] = []
        self._whole: list[Any] = []
        self._bare: list[Any] = []
        self._program: Any = None
        self._size: tuple[int, ...] = ()
        self._is_taking = False
        self.is_drawn = False
        self._timer = QTimer(view)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_RESTING_MS)
        self._timer.timeout.connect(self.take)

    @property
    def surface(self) -> Any:
        """The vispy canvas, or None after the canvas is deleted."""
        return self._surface()

    def note(self, node: Any) -> None:
        """Discard the image if any of its text has changed."""
        surface = self._surface()
        is_ours = surface is None or surface._drawing or self._is_taking
        if not is_ours and node in self._nodes:
            self.forget()

    def forget(self, _event: object = None) -> None:
        """Draw the text as napari does until the next image is created."""
        self._nodes, self._whole, self._bare, self._program = [], [], [], None

    def draw(self, real: Callable[[], None], visual: Any) -> None:
        """Draw the canvas, using the cached image for its text if the image is still valid.

        Other framebuffers (screenshots, picking at the pointer) are drawn in full.
        """
        surface = self._surface()
        self.is_drawn = False
        if visual is not surface.scene or surface._fb_stack or self._is_taking:
            real()
            return
        order = surface._draw_order.get(visual)
        # A new order of vispy's nodes is a different list.
        is_true = order is not None and order is self._whole and self._size == surface.physical_size
        if not is_true:
            self.forget()
            real()
            with suppress(RuntimeError):  # The view and its timer are deleted.
                self._timer.start()
            return
        surface._draw_order[visual] = self._bare
        try:
            real()
        finally:
            surface._draw_order[visual] = order
        self._draw_picture()
        self.is_drawn = True

    def take(self) -> None:
        """Create the image between two frames."""
        surface, canvas = self._surface(), self._canvas()
        order = None if surface is None else surface._draw_order.get(surface.scene)
        if canvas is None or order is None or not surface.native.isVisible():
            return
        nodes = _list_nodes(canvas)
        drawn = [node for node, is_start in order if is_start and node in nodes and node.visible]
        if not drawn or not all(_make_blendable(node) for node in drawn):
            return
        self._is_taking = True
        try:
            picture = _take_photograph(surface, drawn)
            self._program = _make_program(picture)
        finally:
            self._is_taking = False
        self._nodes, self._whole, self._size = nodes, order, surface.physical_size
        inside = {child for node in nodes for child in _list_below(node)}
        self._bare = [entry for entry in order if entry[0] not in inside]

    def _draw_picture(self) -> None:
        gloo: Any = import_module("vispy.gloo")
        if self._program is not None:
            gloo.set_state(
                depth_test=False,
                cull_face=False,
                blend=True,
                blend_func=("one", "one_minus_src_alpha"),
                blend_equation="func_add",
            )
            self._program.draw("triangles")


def _list_nodes(canvas: Any) -> list[Any]:
    overlays: Any = import_module("napari.components.overlays")
    kinds = (overlays.TextOverlay, overlays.ScaleBarOverlay)
    nodes = []
    for overlay, visuals in canvas._viewer_overlay_to_visual.items():
        if isinstance(overlay, kinds):
            nodes += [node for visual in visuals for node in (visual.box, visual.node)]
    return nodes


def _list_below(node: Any) -> list[Any]:
    return [node, *(inner for child in node.children for inner in _list_below(child))]


def _make_blendable(node: Any) -> bool:
    parts = getattr(node, "_subvisuals", [node])
    states = [visual._vshare.gl_state for visual in parts if hasattr(visual, "_vshare")]
    if len(states) < len(parts) or any(
        tuple(state.get("blend_func", _BLENDED))[:2] != _BLENDED for state in states
    ):
        return False
    node.update_gl_state(blend_func=(*_BLENDED, "one", "one_minus_src_alpha"))
    return True


def _take_photograph(surface: Any, nodes: list[Any]) -> NDArray[np.uint8]:
    """Return the pixels of some nodes as premultiplied (rows, columns, RGBA), top row first."""
    gloo: Any = import_module("vispy.gloo")
    surface.set_current()
    width, height = surface.physical_size
    shape = (height, width)
    buffer = gloo.FrameBuffer(color=gloo.RenderBuffer(shape), depth=gloo.RenderBuffer(shape))
    surface.push_fbo(buffer, (0, 0), surface.size)
    try:
        surface.context.clear(color=(0, 0, 0, 0), depth=True)
        for node in nodes:
            node.draw()
        picture: NDArray[np.uint8] = buffer.read()
    finally:
        surface.pop_fbo()
    return picture


def _make_program(picture: NDArray[np.uint8]) -> Any:
    gloo: Any = import_module("vispy.gloo")
    height, width = picture.shape[:2]
    upright = np.ascontiguousarray(picture[::-1])  # In OpenGL, rows begin at the bottom.
    rows, columns = (np.arange(0, length, _TILE) for length in (height, width))
    seen = np.add.reduceat(np.add.reduceat(upright[..., 3] > 0, rows, 0), columns, 1, dtype=int)
    corners = np.argwhere(seen) * _TILE
    if not len(corners):
        return None
    lower = corners[:, ::-1]
    upper = np.minimum(lower + _TILE, (width, height))
    ends = np.stack([lower, upper], axis=1) * 2.0 / (width, height) - 1.0
    triangles = [(0, 0), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1)]
    places = np.stack([ends[:, (x, y), (0, 1)] for x, y in triangles], axis=1)
    program = gloo.Program(_VERTEX, _FRAGMENT)
    program["a_position"] = np.ascontiguousarray(places.reshape(-1, 2), np.float32)
    program["u_picture"] = gloo.Texture2D(upright, interpolation="nearest")
    program["u_size"] = (float(width), float(height))
    return program
