"""Masks that the GPU draws as smooth lines with a dark border, instead of napari's contours.

The module uses napari's private attributes. Each use is guarded; without these attributes, napari
draws contours that are one voxel wide.

The layer remains a labels layer that contains the whole mask, but napari gets no contours for a
slice. Instead, an image of the blurred mask (`annotations/outline_field.py`) is a child of the
layer's node, so the image is shown, hidden, moved and ordered together with the layer. A shader
draws the line at the image's middle value; the line width is constant in screen pixels at any zoom.
Drawing three masks takes no measurable time (docs/methods/speed.md); vispy's own lines take longer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final
from weakref import ref

import numpy as np
from napari.layers import Labels, Layer

from napari_mamamia.annotations.outline_field import CHANNELS, LEVEL, find_outline_field
from napari_mamamia.widgets.adapter.patches import patch

_PLANE: Final = 2
_PAINTING_MODES: Final = frozenset({"paint", "erase", "fill", "polygon"})

_FRAGMENT: Final = """
void draw_outline() {
    // The first channel is the label in front, whose line lies over those of the others.
    vec4 over = gl_FragColor - $level;
    vec4 along_x = dFdx(gl_FragColor);
    vec4 along_y = dFdy(gl_FragColor);
    vec4 slope = max(sqrt(along_x * along_x + along_y * along_y), 1e-5);
    vec4 pixels = abs(over) / slope;
    float nearest = pixels.y;
    vec2 uphill = vec2(along_x.y, along_y.y);
    if (pixels.z < nearest) { nearest = pixels.z; uphill = vec2(along_x.z, along_y.z); }
    if (pixels.w < nearest) { nearest = pixels.w; uphill = vec2(along_x.w, along_y.w); }
    // A dash is counted along the screen's axis that the line follows more.
    float way = abs(uphill.x) < abs(uphill.y) ? gl_FragCoord.x : gl_FragCoord.y;
    float dash = step(mod(way, $other_period), $other_stroke);
    float line = 1.0 - smoothstep($other_half_width - 0.5, $other_half_width + 0.5, nearest);
    float cased = 1.0 - smoothstep($other_half_cased - 0.5, $other_half_cased + 0.5, nearest);
    // In the gaps the casing stays, or the line of the mask below would show.
    float below = max(line, cased);
    vec3 colour_below = $other_colour * line * dash;
    way = abs(along_x.x) < abs(along_y.x) ? gl_FragCoord.x : gl_FragCoord.y;
    dash = step(mod(way, $period), $stroke);
    line = 1.0 - smoothstep($half_width - 0.5, $half_width + 0.5, pixels.x);
    cased = 1.0 - smoothstep($half_cased - 0.5, $half_cased + 0.5, pixels.x);
    float front = dash * max(line, cased);
    float seen = front + below * (1.0 - front);
    vec3 both = $colour * line * dash * front + colour_below * below * (1.0 - front);
    gl_FragColor = vec4(both / max(seen, 1e-5), seen * $opacity);
    if (gl_FragColor.a < 0.004) { discard; }
}
"""


_SPARE_LINE: Final = "_mamamia_spare_line"
"""Name of the canvas attribute that stores the visual created by `stock_line`."""


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Style of a mask outline: colour (hexadecimal), widths and dashes in screen pixels.

    Each `period` has a dash of length `stroke`; the gap shows the image below. A solid line has
    equal `stroke` and `period`. The casing is black. With `label`, this style applies to the
    outline of that label, and `others` is the style of all other labels, which are drawn below with
    black gaps.
    """

    colour: str
    width: float = 2.0
    casing: float = 1.0
    stroke: float = 1.0
    period: float = 1.0
    label: int = 0
    others: "LineStyle | None" = None


@patch
def draw_smooth_outlines(view: Any, look_of: Callable[[Layer], LineStyle | None]) -> None:
    """Draw masks that are added to a view later in the style that `look_of` returns.

    `view` is a `QtViewer`. A layer for which `look_of` returns None is drawn by napari as usual.
    """
    canvas: Any = getattr(view, "canvas", None)
    add = getattr(type(canvas), "add_layer_visual_mapping", None)
    is_known = hasattr(canvas, "layer_to_visual") and hasattr(Labels, "_calculate_contour")
    if add is not None and is_known:
        canvas.add_layer_visual_mapping = partial(_add_visual, ref(canvas), add, look_of)
        for layer, visual in canvas.layer_to_visual.items():
            _give_line(canvas, look_of, layer, visual)


def _add_visual(
    canvas_ref: Any,
    add: Callable[[Any, Layer, Any], None],
    look_of: Callable[[Layer], LineStyle | None],
    layer: Layer,
    visual: Any,
) -> None:
    canvas = canvas_ref()
    if canvas is not None:
        add(canvas, layer, visual)
        _give_line(canvas, look_of, layer, visual)


def _give_line(
    canvas: Any, look_of: Callable[[Layer], LineStyle | None], layer: Layer, visual: Any
) -> None:
    if not isinstance(layer, Labels) or not hasattr(visual, "_layer_node"):
        return
    look = look_of(layer)
    if look is not None:
        patched: Any = layer
        line = vars(canvas).pop(_SPARE_LINE, None) or _make_line()
        patched._smooth_outline = SmoothOutline(layer, visual, line, look_of)
        # napari has already sliced the layer with its own contours.
        layer.refresh(thumbnail=False, extent=False, highlight=False)


class SmoothOutline:
    """The outline of one layer in one view; a new colour map of the layer updates its style."""

    def __init__(
        self,
        layer: Labels,
        visual: Any,
        line: tuple[Any, Any],
        look_of: Callable[[Layer], LineStyle | None],
    ) -> None:
        self._layer, self._visual = ref(layer), ref(visual)
        self._picture, self._shader = line
        self._look_of = look_of
        self._look: LineStyle | None = None
        self._pixel_scale = 1.0
        self._follow_screen()
        self._take_look()
        self._is_drawn = self._is_painted_by_napari = False
        layer.events.opacity.connect(self._set_opacity)
        layer.events.colormap.connect(self._take_look)
        layer.events.mode.connect(self._change_mode)
        self._set_opacity()

    def draw(self, labels: Any) -> bool:
        """Draw the outline of a slice ``(rows, columns)``; return False to draw voxels instead.

        Voxels are drawn for readers who paint with napari's own brush.
        """
        layer, visual = self._layer(), self._visual()
        self._is_drawn = (
            layer is not None
            and visual is not None
            and layer.contour >= 1
            and labels.ndim <= _PLANE
            and layer.mode not in _PAINTING_MODES
        )
        if self._is_drawn and visual is not None:
            self._hang_on(visual._layer_node._image_node)
        first = self._look.label if self._look else 0
        field = find_outline_field(labels, first) if self._is_drawn else None
        self._picture.visible = field is not None
        if field is not None:
            self._picture.set_data(field.values)
            self._picture.transform.translate = (field.column, field.row)
        return self._is_drawn

    def _hang_on(self, node: Any) -> None:
        if self._picture.parent is node:
            return
        self._picture.parent = node
        prepare, last_texture = node._prepare_draw, None

        def prepare_or_skip(view: Any = None) -> Any:
            nonlocal last_texture
            # A new texture is drawn once, because its pending commands would otherwise stay in
            # the queue. Later commands wait in the node and are sent to the GPU when the node is
            # visible.
            if self._is_drawn and node._texture is last_texture:
                return False
            result = prepare(view)
            last_texture = node._texture
            return result

        node._prepare_draw = prepare_or_skip

    def _follow_screen(self) -> None:
        prepare = self._picture._prepare_draw

        def prepare_as_dense(view: Any = None) -> Any:
            scale = float(self._picture.transforms.pixel_scale)
            if scale != self._pixel_scale and self._look is not None:
                self._pixel_scale = scale
                _set_look(self._shader, self._look, scale)
            return prepare(view)

        self._picture._prepare_draw = prepare_as_dense

    def _take_look(self, _event: object = None) -> None:
        layer = self._layer()
        look = None if layer is None else self._look_of(layer)
        if look is not None and look != self._look:
            self._look = look
            _set_look(self._shader, look, self._pixel_scale)

    def _set_opacity(self, _event: object = None) -> None:
        layer = self._layer()
        if layer is not None:
            self._shader.fshader["opacity"] = float(layer.opacity)
            self._picture.update()

    def _change_mode(self, _event: object = None) -> None:
        layer = self._layer()
        if layer is not None and (layer.mode in _PAINTING_MODES) != self._is_painted_by_napari:
            self._is_painted_by_napari = layer.mode in _PAINTING_MODES
            layer.refresh()


@patch
def stock_line(view: Any) -> None:
    """Create the visual for the next outline in a `QtViewer` in advance, which takes 10 ms."""
    canvas: Any = getattr(view, "canvas", None)
    if canvas is not None and _SPARE_LINE not in vars(canvas):
        vars(canvas)[_SPARE_LINE] = _make_line()


def _make_line() -> tuple[Any, Any]:
    visuals: Any = import_module("vispy.scene.visuals")
    transforms: Any = import_module("vispy.visuals.transforms")
    filters: Any = import_module("vispy.visuals.filters.base_filter")
    blank = np.zeros((1, 1, CHANNELS), np.uint8)
    picture = visuals.Image(blank, interpolation="linear", method="subdivide")
    picture.set_gl_state("translucent", depth_test=False)
    picture.transform = transforms.STTransform()
    picture.visible = False
    shader = filters.Filter(fcode=_FRAGMENT)
    picture.attach(shader)
    return picture, shader


def _set_look(shader: Any, look: LineStyle, pixel_scale: float) -> None:
    shader.fshader["level"] = LEVEL
    for before, style in (("", look), ("other_", look.others or look)):
        for name, value in _values_of(style, pixel_scale).items():
            shader.fshader[before + name] = value


def _values_of(look: LineStyle, pixel_scale: float) -> dict[str, Any]:
    colours: Any = import_module("vispy.color")
    half_width = look.width / 2 * pixel_scale
    return {
        "colour": tuple(float(channel) for channel in colours.Color(look.colour).rgb),
        "half_width": half_width,
        "half_cased": half_width + look.casing * pixel_scale,
        "stroke": look.stroke * pixel_scale,
        "period": look.period * pixel_scale,
    }
