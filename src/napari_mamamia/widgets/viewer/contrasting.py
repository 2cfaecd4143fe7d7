"""Window/level of the displayed image, set by dragging or by named ranges computed in a thread."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from napari.components.overlays import TextOverlay
from qtpy.QtCore import Signal

from napari_mamamia.services.case.show_contrast import contrast_names
from napari_mamamia.widgets.base.layers import Role, array_of, tag_of
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.scene import Scene

_LANE: Final = "contrast"
_RIGHT_BUTTON: Final = 2
_MIDDLE_BUTTON: Final = 3
_NUMBERS: Final = "mamamia_window"
_FULL_DRAG_PIXELS: Final = 400.0
_NARROWEST: Final = 0.005
_KINDS: Final = {
    Role.PHASE: "phase",
    Role.SUBTRACTION: "enhancement",
    Role.PROJECTION: "enhancement",
    Role.MAP: "map",
}


class Contrasting(WindowPart):
    """A component that sets the contrast limits of the image.

    The signal `chosen` carries the range names and the selected range.
    """

    chosen = Signal(object, str)

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._name: dict[str, str] = {}

    @property
    def kind(self) -> str:
        """The type of the displayed image: "phase" or "enhancement"."""
        layer = self._scene.image_on_screen()
        tag = None if layer is None else tag_of(layer)
        return "phase" if tag is None else _KINDS[tag.role]

    @property
    def names(self) -> tuple[str, ...]:
        """The named ranges for the displayed type of image."""
        return contrast_names(self.kind)

    @property
    def name(self) -> str:
        """The last selected range for the displayed type of image."""
        return self._name.get(self.kind, self.names[0])

    def read_names(self) -> dict[str, str]:
        """Return the selected ranges by type of image, for `put_names`."""
        return dict(self._name)

    def put_names(self, names: dict[str, str]) -> None:
        """Set the selected ranges without computing them again."""
        self._name = dict(names)

    def next(self) -> None:
        """Select the next range."""
        names = self.names
        self.choose(names[(names.index(self.name) + 1) % len(names)])

    def choose(self, name: str) -> None:
        """Select a range by its name in `names`."""
        layer, kind = self._scene.image_on_screen(), self.kind
        if layer is None:
            return
        self._name[kind] = name
        self.chosen.emit(self.names, name)
        array, limits_now = self._find_values(layer), tuple(layer.contrast_limits)

        def show(limits: tuple[float, float]) -> None:
            layer.contrast_limits = limits

        find = self._services.contrast_limits
        self._jobs.start(
            _LANE,
            "Contrast",
            lambda: find(array, kind, name, limits_now),
            show,
            still=lambda: layer in self._scene.viewer.layers,
            shown=False,
        )

    def _find_values(self, layer: Any) -> Any:
        array, phase = array_of(layer), self._scene.phase
        return array[phase] if layer is self._scene.layer(Role.PHASE) else array


class WindowLevelDrag:
    """Window/level set by dragging with the right or middle button: right widens, up brightens.

    A drag changes the displayed image, which is the subtraction or the phases, and shows its window
    and level on the image. While a tool is active (`is_free` returns False), the tool handles the
    right button.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.is_free: Callable[[], bool] = lambda: True
        self.attach(scene.viewer)

    def attach(self, viewer: Any) -> None:
        """Enable window/level drags in this view of the case."""
        viewer.mouse_drag_callbacks.append(self._follow_drag)
        viewer.canvas.overlays[_NUMBERS] = TextOverlay(position="bottom_left")

    def _follow_drag(self, viewer: Any, event: Any) -> Iterator[None]:
        layer = self._scene.image_on_screen()
        is_ours = event.button == _MIDDLE_BUTTON or (
            event.button == _RIGHT_BUTTON and not event.modifiers and self.is_free()
        )
        if not is_ours or layer is None:
            return
        numbers = viewer.canvas.overlays[_NUMBERS]
        low, high = layer.contrast_limits
        start = tuple(event.pos)
        event.handled = True
        yield
        while event.type == "mouse_move":
            across = (event.pos[0] - start[0]) / _FULL_DRAG_PIXELS
            down = (event.pos[1] - start[1]) / _FULL_DRAG_PIXELS
            layer.contrast_limits = window_level(low, high, across, down)
            numbers.text = window_text(*layer.contrast_limits)
            numbers.visible = True
            event.handled = True
            yield
        numbers.visible = False


def window_text(low: float, high: float) -> str:
    """Return the width and the level of a window, as a PACS shows them.

    Examples
    --------
    >>> window_text(-50.0, 150.0)
    'W 200  L 50'
    """
    return f"W {high - low:.4g}  L {(low + high) / 2:.4g}"


def window_level(low: float, high: float, across: float, down: float) -> tuple[float, float]:
    """Return contrast limits after a drag, given as fractions of a full drag (right, down).

    A full drag to the right doubles the window; a full drag upwards lowers the level by one window,
    which makes the image brighter.

    Examples
    --------
    >>> window_level(0.0, 100.0, across=1.0, down=0.0)
    (-50.0, 150.0)
    >>> window_level(0.0, 100.0, across=0.0, down=-0.5)
    (-50.0, 50.0)
    """
    width = high - low
    level = (low + high) / 2 + down * width
    wide = width * max(1.0 + across, _NARROWEST)
    return (level - wide / 2, level + wide / 2)
