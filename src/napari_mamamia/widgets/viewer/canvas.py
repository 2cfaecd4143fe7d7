"""Texts on the image: orientation letters, phase with time, and scale bar."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from textwrap import wrap
from typing import Any, Final

from napari.components.overlays import TextOverlay

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter import adapter
from napari_mamamia.widgets.base.layers import LayerTag, Role, find_layer, tag_of
from napari_mamamia.widgets.viewer.scene import Scene

_OPPOSITE: Final = {"R": "L", "L": "R", "A": "P", "P": "A", "S": "I", "I": "S"}
_PLANES: Final = {"R": "sagittal", "L": "sagittal", "A": "coronal", "P": "coronal"} | {
    "S": "axial",
    "I": "axial",
}
_EDGES: Final = ("top", "bottom", "left", "right")
_POSITIONS: Final = ("top_center", "bottom_center", "middle_left", "middle_right")
_PREFIX: Final = "mamamia_"
_MAP: Final = "mamamia_map"
"""Name of the overlay with the colours of a kinetic map."""
_LETTER_SIZE: Final = 14
_TEXT_SIZE: Final = 11
_SMALL: Final = 0.8
_ROOMY_PIXELS: Final = 600
"""Canvas width in pixels from which texts have their full size.

On a narrower canvas, the line in the corner would overlap the letter in the middle. The width is
scaled with the text size of the desktop.
"""
_NARROW_PIXELS: Final = 440
"""Canvas width in pixels below which lines are wrapped; chosen by eye."""
_BROKEN_PIXELS: Final = 360
"""Canvas width in pixels from which a wrapped line has its full size, typical of a second view."""
_LEAST_SHARE: Final = 0.55
_MIDDLE_PIXELS: Final = 30
"""Width in pixels reserved in half a canvas for the middle letter and the edge; chosen by eye."""
_LETTER_WIDE: Final = 0.92
"""Width of a letter in pixels per point of font size, measured for "MIP · phase 1 − 0"."""
_MEASURED_WHOLE: Final = 0.01
"""Fraction of a point added to whole font sizes.

napari truncates the font size when it measures the background box of a text, and drew boxes that
were one letter too short (napari 0.9.2, `_vispy/utils/text.py`, ``get_text_metrics``).
"""
_BARS_MM: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_SURROUND: Final = "black"


def edge_letters(
    grid: Grid, displayed: tuple[int, ...], reversed_axes: tuple[bool, bool] = (False, False)
) -> dict[str, str]:
    """Return the patient directions at the edges of the image.

    Parameters
    ----------
    grid
        The case's grid; an oblique axis gets the nearest direction.
    displayed
        Which of the axes (slice, row, column), as 0, 1, 2, run down and across the screen.
    reversed_axes
        Whether the camera reverses the vertical and the horizontal axis.

    Returns
    -------
    dict
        One letter of R L A P S I for "top", "bottom", "left", "right"; empty in a 3-D view.

    Examples
    --------
    >>> import numpy as np
    >>> edge_letters(Grid((4, 4, 4), np.diag([-1.0, 1.0, 3.0, 1.0])), (1, 2))
    {'top': 'A', 'bottom': 'P', 'left': 'R', 'right': 'L'}
    """
    if len(displayed) != 2:
        return {}
    frame = grid.display_frame()
    towards = []
    for axis, is_reversed in zip(displayed, reversed_axes, strict=True):
        # Letters are in file order (x, y, z), axes in array order (z, y, x).
        letter = grid.orientation[2 - frame.order[axis]]
        towards.append(_OPPOSITE[letter] if frame.flips[axis] != is_reversed else letter)
    bottom, right = towards
    letters = (_OPPOSITE[bottom], bottom, _OPPOSITE[right], right)
    return dict(zip(_EDGES, letters, strict=True))


def phase_text(
    phase: int,
    time_s: float | None,
    *,
    subtracted: bool,
    loaded: bool,
    alone: bool = False,
    minus: int = 0,
    note: str = "",
    n_before: int = 1,
) -> str:
    """Return the line in the corner of the image; `alone` says whether the case has one phase.

    `minus` is the subtracted phase, and `note` names the projection of the difference.

    Examples
    --------
    >>> phase_text(2, 147.0, subtracted=False, loaded=True)
    'post 2 · 147 s'
    >>> phase_text(0, 0.0, subtracted=False, loaded=True)
    'pre · 0 s'
    >>> phase_text(3, None, subtracted=True, loaded=True, minus=1, note="MIP")
    'MIP · post 3 − post 1'
    """
    name = tr("one phase") if alone else phase_name(phase, n_before)
    if subtracted:
        name = f"{name} − {phase_name(minus, n_before)}"
    if note:
        return f"{note} · {name}"
    if not loaded:
        return tr("{name} · still reading", name=name)
    return name if time_s is None else f"{name} · {time_s:.0f} s"


def plane_text(grid: Grid, displayed: tuple[int, ...]) -> str:
    """Return the name of the displayed plane, or "" in a 3-D view.

    The name of an oblique volume ends with "oblique": its planes are the scanner's planes, and the
    letters show the nearest directions.

    Examples
    --------
    >>> import numpy as np
    >>> plane_text(Grid((4, 4, 4), np.diag([-1.0, 1.0, 3.0, 1.0])), (0, 2))
    'coronal'
    """
    if len(displayed) != 2:
        return ""
    across = ({0, 1, 2} - set(displayed)).pop()
    letter = grid.orientation[2 - grid.display_frame().order[across]]
    name = _PLANES[letter]
    return tr("{name}, oblique", name=name) if grid.is_oblique else name


def bar_length_mm(width_mm: float) -> float:
    """Return the length of a scale bar, at most a quarter of the image width `width_mm`.

    Examples
    --------
    >>> bar_length_mm(310.0), bar_length_mm(17.0), bar_length_mm(1.0)
    (50.0, 2.0, 1.0)
    """
    fitting = [length for length in _BARS_MM if length <= width_mm / 4]
    return fitting[-1] if fitting else _BARS_MM[0]


class CanvasText:
    """A component that updates the letters, the phase line and the scale bar of a view.

    Parameters
    ----------
    scene
        The displayed layers.
    viewer
        The view with the texts; None for the scene's own view. Texts in any other view are smaller.
    names_phase
        Whether the corner shows the phase; otherwise it shows the plane.

    Attributes
    ----------
    is_held
        Whether the texts are not written yet.
    name_side
        Function that returns which breast the view shows, or "" for none.
    """

    def __init__(
        self, scene: Scene, viewer: Any | None = None, *, names_phase: bool = True
    ) -> None:
        self._scene = scene
        self._viewer = scene.viewer if viewer is None else viewer
        self._names_plane = not names_phase
        self._names_phase = names_phase
        self._loaded: frozenset[int] | None = None
        self._is_closed = self._follows_zoom = self._is_narrow = False
        self.is_held = False
        self.name_side: Callable[[], str] = lambda: ""
        self._full = 1.0 if viewer is None else _SMALL
        self._most_letters = 1
        viewer = self._viewer
        adapter.square_off_brush(viewer)
        for edge, position in zip(_EDGES, _POSITIONS, strict=True):
            viewer.canvas.overlays[_PREFIX + edge] = TextOverlay(position=position)
        for name in ("phase", "plane", "tool"):
            viewer.canvas.overlays[_PREFIX + name] = TextOverlay(position="top_left")
        self._place_plane()
        self._fit_texts()
        viewer.canvas.events.size.connect(self._fit_texts)
        adapter.watch_font(self._fit_texts)
        for event in (viewer.dims.events.current_step, viewer.dims.events.order):
            event.connect(self.update)
        viewer.dims.events.ndisplay.connect(self.update)
        viewer.scene.camera.events.orientation.connect(self.update)
        scene.viewer.layers.events.inserted.connect(self.update)
        scene.viewer.layers.events.removed.connect(self.update)

    def close(self) -> None:
        """Disconnect from the scene when the view is closed."""
        self._is_closed = True
        events = self._scene.viewer.layers.events
        events.inserted.disconnect(self.update)
        events.removed.disconnect(self.update)

    def name_phase(self, named: bool) -> None:
        """Set whether the corner shows the phase; otherwise it shows the plane."""
        self._names_phase, self._names_plane = named, not named
        self._place_plane()
        self.update()

    def _place_plane(self) -> None:
        overlay = self._viewer.canvas.overlays[_PREFIX + "plane"]
        overlay.position = "top_right" if self._names_phase else "top_left"

    def name_plane(self, named: bool) -> None:
        """Set whether to show the name of the plane; an oblique plane always shows it."""
        self._names_plane = named
        self.update()

    def follow_zoom(self) -> None:
        """Keep the scale bar away from the letter at the bottom; napari's bar would be too long.

        Call this method after the view has its canvas, because later listeners are called first.
        The bar is also shortened when the canvas gets narrower at the same zoom.
        """
        if self._follows_zoom:
            return
        self._follows_zoom = True
        self._viewer.scene.camera.events.zoom.connect(self._fit_bar)
        self._viewer.canvas.events.size.connect(self._fit_bar)
        self._fit_bar()

    def set_loaded(self, phases: frozenset[int] | None) -> None:
        """Set which phases are read (None for all), and start updating the texts."""
        self._loaded, self.is_held = phases, False
        self.update()

    def write_steps(self, phases: frozenset[int]) -> list[Callable[[], object]]:
        """Return steps that write the delayed texts, each writing one text in 5 to 15 ms.

        The list is empty if another case was shown in the meantime, because all texts were written
        then.
        """
        self._loaded = phases
        names = list(self._list_texts(self._phase_tag))
        return [*(partial(self._write_held, name) for name in names), self._end_holding]

    def _write_held(self, name: str) -> None:
        if self.is_held and not self._is_closed:
            text = self._list_texts(self._phase_tag)[name]
            _write_text(self._viewer.canvas.overlays[name], text)

    def _end_holding(self) -> None:
        if self.is_held:
            self.is_held = False
            self.update()

    def update(self, _event: object = None) -> None:
        """Update all texts; this is fast enough to be done for each slice.

        This method may be called once more after the view is closed.
        """
        if self._is_closed or self.is_held:
            return
        tag = self._phase_tag
        overlays = self._viewer.canvas.overlays
        for name, text in self._list_texts(tag).items():
            _write_text(overlays[name], text)
        overlays["scale_bar"].visible = tag is not None
        if tag is not None and self._viewer is self._scene.viewer:
            self.follow_zoom()
        self._darken_canvas(tag is not None)

    def make_steps(self) -> list[Callable[[], None]]:
        """Return steps that let napari create the visuals of the texts, in 5 to 20 ms each.

        Without these steps, napari creates a visual when its text is first visible. The steps draw
        no text.
        """
        names = [name for name in self._viewer.canvas.overlays if str(name).startswith(_PREFIX)]
        return [partial(self._prepare_overlay, name) for name in (*names, "scale_bar")]

    def _prepare_overlay(self, name: str) -> None:
        overlay = self._viewer.canvas.overlays[name]
        if not overlay.visible and not self._is_closed:
            overlay.visible = True
            overlay.visible = False

    @property
    def _phase_tag(self) -> LayerTag | None:
        layer = self._scene.layer(Role.PHASE)
        return None if layer is None else tag_of(layer)

    def _list_texts(self, tag: LayerTag | None) -> dict[str, str]:
        letters = {} if tag is None else edge_letters(tag.grid, *self._read_view())
        texts = {_PREFIX + edge: letters.get(edge, "") for edge in _EDGES}
        phase, plane = self._phase_line(), self._plane_line(tag)
        if self._is_narrow:
            phase = _break_line(phase.replace(" · ", "\n"), self._most_letters)
            plane = _break_line(plane.replace(", ", "\n", 1), self._most_letters)
        texts |= {_PREFIX + "phase": phase, _PREFIX + "plane": plane}
        return texts

    def _darken_canvas(self, has_case: bool) -> None:
        canvas = self._viewer.canvas
        colour = _SURROUND if has_case else None
        if (canvas.background_color_override is None) == has_case:
            canvas.background_color_override = colour

    def _fit_texts(self, _event: object = None) -> None:
        if self._is_closed:
            return
        large = adapter.font_share()
        width = int(self._viewer.canvas.size[1]) / (adapter.text_scale() * large)
        was_narrow, self._is_narrow = self._is_narrow, width < _NARROW_PIXELS
        roomy = _BROKEN_PIXELS if self._is_narrow else _ROOMY_PIXELS
        most = _SMALL if self._is_narrow else self._full
        share = min(max(width / roomy, _LEAST_SHARE), most)
        letters, before = _count_letters(width, round(_TEXT_SIZE * share)), self._most_letters
        self._most_letters = letters
        overlays = self._viewer.canvas.overlays
        sizes = dict.fromkeys((_PREFIX + edge for edge in _EDGES), _LETTER_SIZE)
        texts = (_PREFIX + "phase", _PREFIX + "plane", _PREFIX + "tool", "scale_bar")
        sizes |= dict.fromkeys(texts, _TEXT_SIZE)
        if _MAP in overlays:
            sizes[_MAP] = _TEXT_SIZE
        for name, size in sizes.items():
            overlays[name].font_size = round(size * share * large) + _MEASURED_WHOLE
        if self._is_narrow != was_narrow or (self._is_narrow and letters != before):
            self.update()

    def _fit_bar(self, _event: object = None) -> None:
        zoom = float(self._viewer.scene.camera.zoom)
        if zoom > 0:
            length = bar_length_mm(float(self._viewer.canvas.size[1]) / zoom)
            bar = self._viewer.canvas.overlays["scale_bar"]
            if bar.length != length:
                bar.length = length
                # napari's bar updates its length only after a new zoom or font (napari 0.9.2,
                # napari/_vispy/overlays/scale_bar.py, _on_size_or_zoom_change)
                bar.events.font_size.emit(bar.font_size)

    def _read_view(self) -> tuple[tuple[int, ...], tuple[bool, bool]]:
        dims = self._viewer.dims
        displayed = tuple(axis - (dims.ndim - 3) for axis in dims.displayed)
        down, across = self._viewer.scene.camera.orientation2d
        return displayed, (str(down) == "up", str(across) == "left")

    def _plane_line(self, tag: LayerTag | None) -> str:
        side = self.name_side()
        if tag is None or not (self._names_plane or tag.grid.is_oblique or side):
            return ""
        line = plane_text(tag.grid, self._read_view()[0])
        line = f"{line}, {side}" if side else line
        return line if self._names_phase or not tag.note else f"{line}\n{tag.note}"

    def _phase_line(self) -> str:
        phase = self._scene.phase_in(self._viewer) if self._names_phase else None
        layer = self._scene.layer(Role.PHASE)
        tag = None if layer is None else tag_of(layer)
        if phase is None or tag is None:
            return ""
        layers = self._viewer.layers
        difference = find_layer(layers, Role.PROJECTION) or find_layer(layers, Role.SUBTRACTION)
        difference_tag = None if difference is None else tag_of(difference)
        if difference_tag is not None and difference_tag.phase is not None:
            phase = difference_tag.phase
        time_s = tag.times_s[phase] if phase < len(tag.times_s) else None
        loaded = self._loaded is None or phase in self._loaded
        alone = layer is not None and layer.data.shape[0] == 1
        line = phase_text(
            phase,
            time_s,
            subtracted=difference_tag is not None,
            loaded=loaded,
            alone=alone,
            minus=0 if difference_tag is None else difference_tag.minus,
            note="" if difference_tag is None else difference_tag.note,
            n_before=tag.n_before,
        )
        return f"{line}\n{tag.note}" if tag.note else line


def has_room(viewer: Any, text: str, points: float) -> bool:
    """Return whether a text's lines, at a font size in points, fit next to the middle letter."""
    width = int(viewer.canvas.size[1]) / adapter.text_scale()
    most = _count_letters(width, max(round(points), 1))
    return max(map(len, text.splitlines()), default=0) <= most


def _count_letters(width: float, size: int) -> int:
    return max(1, int((width / 2 - _MIDDLE_PIXELS) / (_LETTER_WIDE * size)))


def _break_line(line: str, most_letters: int) -> str:
    r"""Return a line wrapped into short lines without breaking words.

    Examples
    --------
    >>> _break_line("phase 0\nbefore contrast", 11)
    'phase 0\nbefore\ncontrast'
    """
    parts = (wrap(text, most_letters, break_long_words=False) for text in line.splitlines())
    return "\n".join(chain.from_iterable(parts))


def _write_text(overlay: TextOverlay, text: str) -> None:
    if overlay.text != text:
        overlay.text = text
    if overlay.visible != bool(text):
        overlay.visible = bool(text)
