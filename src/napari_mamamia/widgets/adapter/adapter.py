"""What we use of what napari keeps private, each use guarded; its drawing is `drawing`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakMethod, ref

import napari
from napari._qt.widgets.qt_viewer_dock_widget import QtViewerDockWidget
from napari.layers import Labels
from napari.qt import QtViewer
from napari.settings import get_settings
from napari.utils.theme import get_theme
from qtpy.QtCore import QEvent, QObject, QSize
from qtpy.QtGui import QAction, QGuiApplication
from qtpy.QtWidgets import QLabel, QMainWindow, QWidget

from napari_mamamia.widgets.adapter.drawing import (
    guard_canvas,
    read_shaders_once,
    split_drawing,
)
from napari_mamamia.widgets.adapter.stepping import follow_lightly
from napari_mamamia.widgets.adapter.writing import draw_writing_once

_WAYS_OUT: Final = (
    "napari.window.file.close_dialog",
    "napari.window.file.quit_dialog",
    "napari.window.view.toggle_fullscreen",
)
_USUAL_POINTS: Final = 9
"""Size of napari's texts where nobody chose another."""
_NOTES_PLACE: Final = "_update_default_dock_area"
_AROUND_TITLE: Final = 8
"""Pixels above and below the title of a dock, as napari's style rules have them."""


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """Of napari's theme, what our own style rules need: colours as hexadecimal RGB, and points."""

    accent: str
    on_accent: str
    line: str
    quiet: str
    stripe: str
    text: str
    font_points: int
    is_dark: bool


def bare(viewer: Any) -> Any:
    """Return the viewer itself where napari hands out a proxy of it.

    The proxy wraps every layer taken from it, so that ``layer in selection`` fails; napari's menu
    gives the viewer, ``add_plugin_dock_widget`` and commands give the proxy.
    """
    return getattr(viewer, "__wrapped__", viewer)


def current_viewer() -> Any | None:
    """Return the viewer whose window was used last, None where there is no window."""
    viewer = napari.current_viewer()
    return None if viewer is None else bare(viewer)


def list_ways_out(window: QMainWindow) -> list[QAction]:
    """Return what in napari's menus ends window or program, or fills the screen; it has keys.

    A hidden menu answers no key, but for an action that stands in the window itself too.
    """
    menus = [action.menu() for action in window.menuBar().actions()]
    actions = [action for menu in menus if menu is not None for action in menu.actions()]
    return [action for action in actions if action.objectName() in _WAYS_OUT]


def focus_canvas(viewer: Any) -> None:
    """Give the keyboard to the image; without the private attribute nothing happens."""
    with suppress(AttributeError, RuntimeError):
        viewer.window._qt_viewer.canvas.native.setFocus()


def forget_history(layer: Labels) -> None:
    """Drop a labels layer's undo steps after its data were replaced.

    napari keeps them, and the next undo would write old voxels into the new mask (napari 0.9.2,
    `napari/layers/labels/labels.py`, ``_reset_history``). Our masks that are replaced are not
    editable, so that without the private method nothing can go wrong.
    """
    reset = getattr(layer, "_reset_history", None)
    if reset is not None:
        reset()


def has_history(layer: Labels) -> bool:
    """Whether a labels layer holds undo steps of its own; True where napari does not tell."""
    return bool(getattr(layer, "_undo_history", True) or getattr(layer, "_redo_history", True))


def layer_scrolling(viewer: Any) -> list[Any]:
    """Return napari's wheel functions that go through the layers with Alt, empty where it has none.

    napari calls every wheel function, handled or not (napari 0.9.2,
    `napari/components/_viewer_mouse_bindings.py`, ``layers_scroll``), so that they must be taken
    out of the public list while the wheel with Alt has another meaning.
    """
    name = "layers_scroll"
    return [f for f in viewer.mouse_wheel_callbacks if getattr(f, "__name__", "") == name]


def slice_scrolling(viewer: Any) -> list[Any]:
    """Return napari's wheel functions that go through the slices with Ctrl, likewise."""
    name = "dims_scroll"
    return [f for f in viewer.mouse_wheel_callbacks if getattr(f, "__name__", "") == name]


def redraw_part(layer: Labels, part: tuple[slice, slice, slice]) -> None:
    """Draw a labels layer anew inside `part`, after its data were changed there in place.

    `part` is in the layer's own axes (slice, row, column), with starts and stops. Slice caches of
    small integer layers share memory with the data, so that only the texture's part is missing
    (napari 0.9.2, `napari/layers/labels/labels.py`, ``_partial_labels_refresh``); without the
    private methods the whole slice is drawn anew.
    """
    note = getattr(layer, "_accumulate_updated_slice", None)
    draw = getattr(layer, "_partial_labels_refresh", None)
    if note is None or draw is None:
        layer.refresh(thumbnail=False, extent=False, highlight=False)
        return
    note(part)
    draw()


def square_off_brush(viewer: Any) -> None:
    """Take the background box of napari's brush circle away, a dark square at the mouse.

    It is drawn beside the circle and stays when the circle goes (napari 0.9.2,
    `napari/_vispy/overlays/brush_circle.py`, whose ``_on_visible_change`` leaves the box out).
    """
    with suppress(KeyError, AttributeError):
        viewer.canvas.overlays["_brush_circle"].box = False


def canvas_widget(viewer: Any) -> Any | None:
    """Return the Qt widget that the image is drawn on; None without a window."""
    with suppress(AttributeError, RuntimeError):
        return viewer.window._qt_viewer.canvas.native
    return None


def main_view(viewer: Any) -> QWidget | None:
    """Return napari's own view in the window: canvas and sliders; None without a window."""
    with suppress(AttributeError, RuntimeError):
        view = viewer.window._qt_viewer
        return view if isinstance(view, QWidget) else None
    return None


def keep_when_closed(dock: Any, put_aside: Callable[[], None]) -> None:
    """Let the cross of a dock call `put_aside`, where napari would take the dock apart.

    napari 0.9.2, ``QtViewerDockWidget.destroyOnClose``, which the title bar looks up at each click.
    """
    weakly = WeakMethod(put_aside)  # the panel knows its dock: no circle keeps both alive

    def on_cross() -> None:
        call = weakly()
        if call is not None:
            call()

    if hasattr(dock, "destroyOnClose"):
        dock.destroyOnClose = on_cross


class _View(QtViewer):
    """napari's view without its shortcuts: they are the main view's, as the keyboard is.

    napari binds all of them again for each view, and writes the tips of every welcome screen anew
    at each of the 98: a third of the time that a view takes (napari 0.9.2, `_qt/qt_viewer.py`).
    """

    def _bind_shortcuts(self) -> None:
        pass


def tend_canvas(view: Any) -> None:
    """Let the canvas of a `QtViewer` keep what it is told, and draw no more than it must."""
    read_shaders_once()
    guard_canvas(view)
    split_drawing(view)
    follow_lightly(view)
    spare_empty_depth(view)


def spare_empty_depth(view: Any) -> None:
    """Let a view without layers be turned to 3-D while it has sliders already.

    napari asks how deep a scene of two axes is along the axes that are displayed, which are the
    third and fourth here, and fails (napari 0.9.2, `_qt/qt_viewer.py`, ``_update_camera_depth``).
    It asks again with each layer that comes.
    """
    measure = getattr(view, "_update_camera_depth", None)
    if measure is None:
        return
    turned, weakly = view.viewer.dims.events.ndisplay, WeakMethod(measure)

    def measure_layers() -> None:
        measure_now = weakly()
        if measure_now is not None and len(measure_now.__self__.viewer.layers):
            measure_now()

    n_before = len(turned.callbacks)
    turned.disconnect(measure)
    if len(turned.callbacks) < n_before:  # not where an earlier dock did so
        turned.connect(measure_layers)


def new_view(model: Any) -> Any:
    """Return a further view of a `ViewerModel`: napari's canvas without its sliders."""
    view = _View(model, show_welcome_screen=False)
    tend_canvas(view)
    draw_writing_once(view)
    with suppress(AttributeError):
        view.dims.hide()
    return view


def canvas_of(view: Any) -> QWidget | None:
    """Return the widget that a view of `new_view` draws on."""
    native = getattr(getattr(view, "canvas", None), "native", None)
    return native if isinstance(native, QWidget) else None


def text_scale() -> float:
    """Return how many times larger the desktop wants texts than at 96 dots an inch; 1 at least."""
    screen = QGuiApplication.primaryScreen()
    return 1.0 if screen is None else max(float(screen.logicalDotsPerInch()) / 96, 1.0)


def font_share() -> float:
    """Return how many times larger the user wants napari's texts than its usual 9 points."""
    return float(get_settings().appearance.font_size) / _USUAL_POINTS


def watch_font(then: Callable[[], None]) -> None:
    """Call `then` whenever the user changes the size of napari's texts."""
    get_settings().appearance.events.font_size.connect(then)


class _TitleFit(QObject):
    """Gives the text of a title bar its height whenever its font changes."""

    def __init__(self, bar: Any) -> None:
        super().__init__(bar)
        self._bar = ref(bar)
        bar.title.installEventFilter(self)
        self._fit_bar()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange, QEvent.Type.Show):
            self._fit_bar()
        return False

    def _fit_bar(self) -> None:
        bar = self._bar()
        if bar is not None and not bar.vertical:
            height = bar.title.fontMetrics().height()
            bar.title.setMinimumHeight(height)
            # both: a dock places its content by the hint, and its title by the minimum
            bar.sizeHint = lambda: QSize(0, height + _AROUND_TITLE)
            bar.setMinimumHeight(height + _AROUND_TITLE)
            bar.updateGeometry()


def fit_title(dock: Any) -> None:
    """Let the title of a dock have the height of its text, wherever the dock goes.

    napari asks a font that the title has not: at 18 points its top was cut (napari 0.9.2,
    `_qt/widgets/qt_viewer_dock_widget.py`, ``QtCustomTitleBar``).
    """
    dock.setTitleBarWidget = partial(_put_title, ref(dock))
    _put_title(ref(dock), dock.titleBarWidget())


def _put_title(dock_ref: Any, bar: Any) -> None:
    dock = dock_ref()
    if dock is None:
        return
    if bar is not dock.titleBarWidget():
        type(dock).setTitleBarWidget(dock, bar)
    if isinstance(getattr(bar, "title", None), QLabel) and hasattr(bar, "vertical"):
        _TitleFit(bar)


def add_unnoted_dock(window: Any, widget: QWidget, name: str, area: str) -> Any:
    """Add a dock of ours, and keep it out of napari's settings, which it writes at once otherwise.

    They say where each dock was, to open it there again (napari 0.9.2,
    `_qt/widgets/qt_viewer_dock_widget.py`, ``_update_default_dock_area``); this one is put in place
    by us.
    """
    return _add_dock(window, widget, name, area, lambda _dock, _area: None)


def add_noted_dock(window: Any, widget: QWidget, name: str) -> Any:
    """Add a dock where it was last; napari notes where it is, if it can write its settings."""
    note = getattr(QtViewerDockWidget, _NOTES_PLACE, None)

    def note_if_writable(dock: Any, area: Any) -> None:
        with suppress(OSError):
            note(dock, area)  # type: ignore[misc]

    return _add_dock(window, widget, name, None, note_if_writable)


def _add_dock(
    window: Any, widget: QWidget, name: str, area: str | None, note_place: Callable[..., None]
) -> Any:
    note = getattr(QtViewerDockWidget, _NOTES_PLACE, None)
    if note is not None:
        setattr(QtViewerDockWidget, _NOTES_PLACE, note_place)
    try:
        dock = window.add_dock_widget(widget, name=name, area=area)
    finally:
        if note is not None:
            setattr(QtViewerDockWidget, _NOTES_PLACE, note)
    fit_title(dock)
    return dock


def has_own_window_size() -> bool:
    """Return whether napari's settings hold a size that the user left a window with."""
    return get_settings().application.window_size is not None


def theme_colours(viewer: Any) -> ThemeColours:
    """Return the colours of the viewer's theme, and the size of napari's texts."""
    theme = get_theme(viewer.theme)
    return ThemeColours(
        accent=theme.current.as_hex("long"),
        on_accent="#ffffff" if theme.type == "dark" else "#000000",
        line=theme.secondary.as_hex("long"),
        quiet=theme.primary.as_hex("long"),
        stripe=theme.background.as_hex("long"),
        text=theme.text.as_hex("long"),
        font_points=int(get_settings().appearance.font_size),
        is_dark=theme.type == "dark",
    )
