"""Guarded use of napari's private attributes, except for drawing (see `drawing`)."""

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
from qtpy.QtCore import QEvent, QObject, QSize, QTimer
from qtpy.QtGui import QAction, QGuiApplication
from qtpy.QtWidgets import QLabel, QMainWindow, QWidget

from napari_mamamia.widgets.adapter.drawing import (
    guard_canvas,
    split_drawing,
)
from napari_mamamia.widgets.adapter.patches import is_on, patch
from napari_mamamia.widgets.adapter.writing import draw_writing_once

_WAYS_OUT: Final = (
    "napari.window.file.close_dialog",
    "napari.window.file.quit_dialog",
    "napari.window.view.toggle_fullscreen",
)
_USUAL_POINTS: Final = 9
"""Default size of napari's font in points."""
_NOTES_PLACE: Final = "_update_default_dock_area"
_AROUND_TITLE: Final = 8
"""Total number of pixels above and below a dock title, as in napari's style sheet."""


@dataclass(frozen=True, slots=True)
class ThemeColours:
    """Colours of napari's theme (hexadecimal RGB), and napari's font size in points."""

    accent: str
    on_accent: str
    line: str
    quiet: str
    stripe: str
    text: str
    font_points: int
    is_dark: bool


def bare(viewer: Any) -> Any:
    """Return the underlying viewer, which napari may have wrapped in a proxy.

    The proxy wraps every layer that it returns, so ``layer in selection`` fails. napari's menu
    passes the viewer, but ``add_plugin_dock_widget`` and commands pass the proxy.
    """
    return getattr(viewer, "__wrapped__", viewer)


def current_viewer() -> Any | None:
    """Return the viewer of the most recently used window, or None if there is no window."""
    viewer = napari.current_viewer()
    return None if viewer is None else bare(viewer)


def list_ways_out(window: QMainWindow) -> list[QAction]:
    """Return napari's menu actions that close the window or program, or that toggle full screen.

    These actions keep their shortcuts while the menu is hidden. Qt triggers the shortcut of a
    hidden menu only if the action is also added to the window.
    """
    menus = [action.menu() for action in window.menuBar().actions()]
    actions = [action for menu in menus if menu is not None for action in menu.actions()]
    return [action for action in actions if action.objectName() in _WAYS_OUT]


def asks_before_close(window: Any, event: Any) -> bool:
    """Let napari ask for confirmation before closing; return whether the event must be ignored.

    napari asks only in its handler for closing by the window frame, after our event filters have
    saved, closed and restored everything (napari 0.9.2, `_qt/qt_main_window.py`, ``closeEvent``).
    Its ``close`` method asks first and then sends another event.
    """
    busy = getattr(getattr(window, "_window", None), "_task_status_manager", None)
    if not event.spontaneous() or not hasattr(window, "_is_close_dialog"):
        return False
    if busy is not None and busy.is_busy():
        return False
    event.ignore()
    timer = QTimer(window)
    timer.setSingleShot(True)
    timer.timeout.connect(partial(window.close, quit_app=False, confirm_need=True))
    timer.start(0)
    return True


def focus_canvas(viewer: Any) -> None:
    """Give the canvas the keyboard focus; do nothing if napari lacks the private attribute."""
    with suppress(AttributeError, RuntimeError):
        viewer.window._qt_viewer.canvas.native.setFocus()


def forget_history(layer: Labels) -> None:
    """Clear the undo history of a labels layer after its data have been replaced.

    napari keeps the history, and the next undo would write old voxels into the new mask (napari
    0.9.2, `napari/layers/labels/labels.py`, ``_reset_history``). Without the private method this
    function does nothing, which is safe because replaced masks are not editable.
    """
    reset = getattr(layer, "_reset_history", None)
    if reset is not None:
        reset()


def has_history(layer: Labels) -> bool:
    """Return whether a labels layer has undo steps; True if napari does not expose them."""
    return bool(getattr(layer, "_undo_history", True) or getattr(layer, "_redo_history", True))


def layer_scrolling(viewer: Any) -> list[Any]:
    """Return napari's wheel callbacks that scroll through layers with Alt, or an empty list.

    napari calls every wheel function, even for handled events (napari 0.9.2,
    `napari/components/_viewer_mouse_bindings.py`, ``layers_scroll``), so these functions must be
    removed from the public list while the wheel with Alt has another meaning.
    """
    name = "layers_scroll"
    return [f for f in viewer.mouse_wheel_callbacks if getattr(f, "__name__", "") == name]


def slice_scrolling(viewer: Any) -> list[Any]:
    """Return napari's wheel callbacks that scroll through slices with Ctrl, or an empty list."""
    name = "dims_scroll"
    return [f for f in viewer.mouse_wheel_callbacks if getattr(f, "__name__", "") == name]


def redraw_part(layer: Labels, part: tuple[slice, slice, slice]) -> None:
    """Redraw the box `part` of a labels layer whose data were changed there in place.

    `part` contains slices along the layer's axes (slice, row, column). Slice caches of small
    integer layers share memory with the data, so only the texture needs an update (napari 0.9.2,
    `napari/layers/labels/labels.py`, ``_partial_labels_refresh``); without the private methods the
    whole slice is redrawn.
    """
    note = getattr(layer, "_accumulate_updated_slice", None)
    draw = getattr(layer, "_partial_labels_refresh", None)
    if note is None or draw is None:
        layer.refresh(thumbnail=False, extent=False, highlight=False)
        return
    note(part)
    draw()


def square_off_brush(viewer: Any) -> None:
    """Remove the dark background square that napari draws behind its brush circle.

    The square is drawn next to the circle and remains when the circle is hidden (napari 0.9.2,
    `napari/_vispy/overlays/brush_circle.py`, whose ``_on_visible_change`` ignores the square).
    """
    with suppress(KeyError, AttributeError):
        viewer.canvas.overlays["_brush_circle"].box = False


def canvas_widget(viewer: Any) -> Any | None:
    """Return the Qt widget of the canvas, or None if there is no window."""
    with suppress(AttributeError, RuntimeError):
        return viewer.window._qt_viewer.canvas.native
    return None


def main_view(viewer: Any) -> QWidget | None:
    """Return napari's main view (canvas and sliders), or None if there is no window."""
    with suppress(AttributeError, RuntimeError):
        view = viewer.window._qt_viewer
        return view if isinstance(view, QWidget) else None
    return None


@patch
def keep_when_closed(dock: Any, put_aside: Callable[[], None]) -> None:
    """Make the close button of a dock call `put_aside` instead of destroying the dock.

    The title bar looks up ``QtViewerDockWidget.destroyOnClose`` at each click (napari 0.9.2).
    """
    # A weak reference to the panel, which refers to its dock, avoids a cycle that would keep both
    # alive.
    weakly = WeakMethod(put_aside)

    def on_cross() -> None:
        call = weakly()
        if call is not None:
            call()

    if hasattr(dock, "destroyOnClose"):
        dock.destroyOnClose = on_cross


class _View(QtViewer):
    """A napari view without shortcuts, because the main view already has them.

    napari binds all shortcuts again for each view, and updates the tips of every welcome screen for
    each of the 98 shortcuts; this takes a third of the time for creating a view (napari 0.9.2,
    `_qt/qt_viewer.py`).
    """

    def _bind_shortcuts(self) -> None:
        pass


def tend_canvas(view: Any) -> None:
    """Apply the canvas patches to a `QtViewer`."""
    guard_canvas(view)
    split_drawing(view)
    spare_empty_depth(view)


@patch
def spare_empty_depth(view: Any) -> None:
    """Allow a view without layers to switch to 3-D while it already has sliders.

    napari reads the depth of a two-axis scene along the displayed axes, here the third and fourth,
    and fails (napari 0.9.2, `_qt/qt_viewer.py`, ``_update_camera_depth``). napari reads the depth
    again with each new layer.
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
    if (
        len(turned.callbacks) < n_before
    ):  # The method is restored only if no earlier dock has replaced it.
        turned.connect(measure_layers)


def new_view(model: Any) -> Any:
    """Return an additional view of a `ViewerModel`, with napari's canvas but without sliders."""
    kind = _View if is_on("bind_shortcuts") else QtViewer
    view = kind(model, show_welcome_screen=False)
    tend_canvas(view)
    draw_writing_once(view)
    with suppress(AttributeError):
        view.dims.hide()
    return view


def pass_keys_to_main(view: Any, viewer: Any) -> None:
    """Let the main view handle the keys that are pressed in an additional view.

    Otherwise such keys do nothing (napari 0.9.2, `_qt/qt_viewer.py`, ``_key_map_handler``).
    """
    with suppress(AttributeError, RuntimeError):
        handler = viewer.window._qt_viewer._key_map_handler
        events = view.canvas._scene_canvas.events
        events.key_press.disconnect(view._key_map_handler.on_key_press)
        events.key_release.disconnect(view._key_map_handler.on_key_release)
        events.key_press.connect(handler.on_key_press)
        events.key_release.connect(handler.on_key_release)


def canvas_of(view: Any) -> QWidget | None:
    """Return the canvas widget of a view from `new_view`."""
    native = getattr(getattr(view, "canvas", None), "native", None)
    return native if isinstance(native, QWidget) else None


def text_scale() -> float:
    """Return the desktop's text scale relative to 96 dots per inch, which is at least 1."""
    screen = QGuiApplication.primaryScreen()
    return 1.0 if screen is None else max(float(screen.logicalDotsPerInch()) / 96, 1.0)


def font_share() -> float:
    """Return napari's font size relative to the default of 9 points."""
    return float(get_settings().appearance.font_size) / _USUAL_POINTS


def watch_font(then: Callable[[], None]) -> None:
    """Call `then` whenever the user changes napari's font size."""
    get_settings().appearance.events.font_size.connect(then)


class _TitleFit(QObject):
    """A filter that fits the height of a title bar to its text whenever the font changes."""

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
            # Both are set, because a dock places its content by the size hint and its title by
            # the minimum size.
            bar.sizeHint = lambda: QSize(0, height + _AROUND_TITLE)
            bar.setMinimumHeight(height + _AROUND_TITLE)
            bar.updateGeometry()


@patch
def fit_title(dock: Any) -> None:
    """Set the height of a dock's title bar to the height of its text, wherever the dock moves.

    napari measures with a different font, so the top of a title at 18 points is cut off (napari
    0.9.2, `_qt/widgets/qt_viewer_dock_widget.py`, ``QtCustomTitleBar``).
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
    """Add a dock without saving its area in napari's settings.

    napari saves the area of each new dock immediately, so that it opens there the next time (napari
    0.9.2, `_qt/widgets/qt_viewer_dock_widget.py`, ``_update_default_dock_area``). This program
    places the dock itself.
    """
    return _add_dock(window, widget, name, area, lambda _dock, _area: None)


def add_noted_dock(window: Any, widget: QWidget, name: str) -> Any:
    """Add a dock in its last area; napari saves the area if its settings are writable."""
    note = getattr(QtViewerDockWidget, _NOTES_PLACE, None)

    def note_if_writable(dock: Any, area: Any) -> None:
        with suppress(OSError):
            note(dock, area)  # type: ignore[misc]

    return _add_dock(window, widget, name, None, note_if_writable)


def _add_dock(
    window: Any, widget: QWidget, name: str, area: str | None, note_place: Callable[..., None]
) -> Any:
    note = getattr(QtViewerDockWidget, _NOTES_PLACE, None) if is_on("default_area") else None
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
    """Return whether napari's settings contain a window size from the user."""
    return get_settings().application.window_size is not None


def theme_colours(viewer: Any) -> ThemeColours:
    """Return the colours of the viewer's theme and napari's font size."""
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
