"""Additional views next to the main view: splitter, napari canvases and cross-hairs.

A viewer without a window has none of these widgets; its views are only models.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFrame, QSplitter, QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.adapter import adapter
from napari_mamamia.widgets.adapter.outlines import draw_smooth_outlines
from napari_mamamia.widgets.adapter.sliders import fit_slider_texts, sliders_of
from napari_mamamia.widgets.base.event_loop import EventLoopSteps
from napari_mamamia.widgets.base.layers import find_line_style
from napari_mamamia.widgets.controls.controls import discard, fill_column
from napari_mamamia.widgets.viewer.pane import Pane, PaneKind

# The cross-hair: four thin lines on a view's canvas, with a gap in the middle.

_GAP: Final = 14
_WIDTH: Final = 1
_COLOUR: Final = "rgba(240, 228, 66, 190)"
"""Slightly transparent yellow from the palette in `colours`; no mask uses it."""


def canvas_place(
    world: Sequence[float], viewer: Any, size: tuple[int, int]
) -> tuple[float, float] | None:
    """Return the pixel of a world position on a canvas of `size` (width, height), or None in 3-D.

    `world` is (slice, row, column) in mm as displayed in the main view.
    """
    dims, camera = viewer.dims, viewer.scene.camera
    if len(dims.displayed) != 2:
        return None
    down, across = (world[axis - (dims.ndim - len(world))] for axis in dims.displayed)
    rows, columns = (str(way) for way in camera.orientation2d)
    x = (across - camera.center[-1]) * camera.zoom * (-1 if columns == "left" else 1)
    y = (down - camera.center[-2]) * camera.zoom * (-1 if rows == "up" else 1)
    return size[0] / 2 + x, size[1] / 2 + y


class CrossHair:
    """Cross-hair on the widget `canvas` of a view; the lines ignore the mouse.

    Parameters
    ----------
    viewer
        The view whose camera maps positions to pixels.
    canvas
        The widget on which the view's image is drawn.
    """

    def __init__(self, viewer: Any, canvas: QWidget) -> None:
        self._viewer = viewer
        self._canvas = canvas
        self._world: tuple[float, ...] | None = None
        self._lines = [_make_line(canvas, name) for name in ("left", "right", "top", "bottom")]
        self._camera = viewer.scene.camera.events
        for emitter in (self._camera.center, self._camera.zoom, self._camera.orientation):
            emitter.connect(self.draw)
        viewer.canvas.events.size.connect(self.draw)
        viewer.dims.events.ndisplay.connect(self.draw)
        viewer.dims.events.order.connect(self.draw)

    def close(self) -> None:
        """Remove the lines of the cross-hair."""
        for emitter in (self._camera.center, self._camera.zoom, self._camera.orientation):
            emitter.disconnect(self.draw)
        self._viewer.canvas.events.size.disconnect(self.draw)
        self._viewer.dims.events.ndisplay.disconnect(self.draw)
        self._viewer.dims.events.order.disconnect(self.draw)
        for line in self._lines:
            discard(line)
        self._lines = []

    def show(self, world: tuple[float, ...] | None) -> None:
        """Draw the cross-hair at a world position (slice, row, column) in mm; None hides it."""
        self._world = world
        self.draw()

    def draw(self, _event: object = None) -> None:
        """Redraw the cross-hair, for example after the camera moved."""
        width, height = self._canvas.width(), self._canvas.height()
        index = None
        if self._world is not None:
            index = canvas_place(self._world, self._viewer, (width, height))
        if index is None:
            for line in self._lines:
                line.hide()
            return
        x, y = round(index[0]), round(index[1])
        places = (
            (0, y, x - _GAP, _WIDTH),
            (x + _GAP, y, width - x - _GAP, _WIDTH),
            (x, 0, _WIDTH, y - _GAP),
            (x, y + _GAP, _WIDTH, height - y - _GAP),
        )
        for line, (left, top, wide, high) in zip(self._lines, places, strict=True):
            line.setVisible(wide > 0 and high > 0)
            line.setGeometry(left, top, max(wide, 0), max(high, 0))


def _make_line(canvas: QWidget, name: str) -> QFrame:
    frame = QFrame(canvas)
    frame.setObjectName(f"crosshair_{name}")
    frame.setToolTip(tr("The same position in all planes."))
    frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    frame.setStyleSheet(f"background: {_COLOUR}; border: none;")
    frame.hide()
    return frame


class PanePlace(NamedTuple):
    """A place for an additional view: below the main view or next to it, with a number."""

    is_below: bool
    number: int


PRIOR_PLACE: Final = PanePlace(False, 9)
"""The place of a prior exam, which is not a view of the open case."""


def list_places(kinds: Sequence[PaneKind]) -> list[PanePlace]:
    """Return the places for the given kinds of view, in the same order."""
    places: list[PanePlace] = []
    for kind in kinds:
        number = sum(place.is_below is kind.is_below for place in places)
        places.append(PRIOR_PLACE if kind.is_prior else PanePlace(kind.is_below, number))
    return places


def _make_frame(place: PanePlace) -> QFrame:
    frame = QFrame()
    frame.setObjectName(f"pane_frame_{int(place.is_below)}_{place.number}")
    frame.setStyleSheet(f"#{frame.objectName()} {{ background: black; }}")
    rows = QVBoxLayout(frame)
    rows.setContentsMargins(0, 0, 0, 0)
    return frame


_MAIN_SHARE: Final = (64, 36)
_EQUAL: Final = (50, 50)
_WIDE: Final = 1.15
"""Width-to-height ratio of the image area from which views are placed side by side.

The value was chosen by eye.
"""


class PaneWindow:
    """A layout of panes' `QtViewer` widgets, which are placed next to the main view or removed."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._column: QSplitter | None = None
        self._frame: QWidget | None = None
        self._outer: QSplitter | None = None
        self._main_column: QSplitter | None = None
        self._frames: dict[PanePlace, QFrame] = {}
        self._views: dict[Pane, Any] = {}
        self._gone: list[Any] = []
        self._leave = EventLoopSteps()
        self._crosses: dict[Pane | None, CrossHair] = {}
        self._is_moved = False
        self._shared: list[tuple[QSplitter, list[int]]] = []

    @property
    def is_there(self) -> bool:
        """Whether the viewer has a window for additional views."""
        return adapter.main_view(self._viewer) is not None

    @property
    def sizes(self) -> list[int]:
        """Percentages of the main and additional views; empty if the user set none.

        While views are being created, or do not fit, their sizes differ from the user's choice.
        """
        is_own = self._outer is not None and self._is_moved and not self._shared
        widths = self._outer.sizes() if self._outer is not None and is_own else []
        return [round(100 * size / max(sum(widths), 1)) for size in widths]

    def show_frames(
        self,
        places: Sequence[PanePlace],
        *,
        equal: bool,
        sizes: list[int] | None = None,
        stacked: bool | None = None,
    ) -> None:
        """Show an empty, black frame at each of these places, and no other additional view.

        The frames are next to the main view, or below it (`stacked`). With None, the arrangement
        with more space is chosen.
        """
        self._make_room()
        if self._column is None or self._main_column is None or self._outer is None:
            return
        self._place_sliders(below_all=True)
        for place in sorted(places):
            self._add_frame(place)
        size = self._outer.size()
        if stacked is None:
            stacked = size.width() < _WIDE * size.height()
        shares = sizes or list(_EQUAL if equal else _MAIN_SHARE)
        self._end_alone()
        with self._drawn_when_arranged(self._outer):
            for place, frame in self._frames.items():
                frame.setVisible(place in places)
            self._column.show()
            self._lay_out(self._outer, self._column, stacked)
            self._outer.show()  # sizes set before differ by the room of the hidden handles
            whole = max(size.height() if stacked else size.width(), 2)
            self._outer.setSizes([whole * share // 100 for share in shares])
            # Qt distributes its room in proportion: equal numbers, however large, are equal shares.
            for column in (self._column, self._main_column):
                column.setSizes([1000] * column.count())
        self._is_moved = False

    def prepare_frame(self, place: PanePlace) -> None:
        """Create the frame at a place without showing it."""
        self._make_room()
        self._add_frame(place)

    def _add_frame(self, place: PanePlace) -> None:
        column = self._main_column if place.is_below else self._column
        if column is not None and place not in self._frames:
            frame = self._frames[place] = _make_frame(place)
            frame.hide()
            column.addWidget(frame)

    def toggle_alone(self, pane: Pane | None) -> None:
        """Show one view alone (None: the main view), or show all views again."""
        if self._shared:
            self._end_alone()
            return
        if self._outer is None or self._column is None or self._main_column is None:
            return
        view = adapter.main_view(self._viewer) if pane is None else self._views.get(pane)
        splitters = (self._outer, self._column, self._main_column)
        self._shared = [(splitter, splitter.sizes()) for splitter in splitters]
        for splitter in splitters:
            children = [splitter.widget(index) for index in range(splitter.count())]
            kept = [child for child in children if child is view or child.isAncestorOf(view)]
            if kept:
                splitter.setChildrenCollapsible(True)
                splitter.setSizes([1000 * (child in kept) for child in children])
        canvas = adapter.canvas_widget(self._viewer) if pane is None else self.canvas(pane)
        if canvas is not None:
            canvas.setFocus()

    def _end_alone(self) -> None:
        shared, self._shared = self._shared, []
        for splitter, sizes in shared:
            splitter.setSizes(sizes)
            splitter.setChildrenCollapsible(False)
        canvas = adapter.canvas_widget(self._viewer)
        if shared and canvas is not None:
            canvas.setFocus()

    @contextmanager
    def _drawn_when_arranged(self, outer: QSplitter) -> Iterator[None]:
        """Hide all views in the context, because Qt redraws a visible view at each resize.

        Qt moves the keyboard focus away from a hidden widget; the focus is restored afterwards.
        """
        canvas = adapter.canvas_widget(self._viewer)
        had_keyboard = canvas is not None and canvas.hasFocus()
        outer.setUpdatesEnabled(False)
        outer.hide()
        try:
            yield
        finally:
            outer.show()
            outer.setUpdatesEnabled(True)
            if canvas is not None and had_keyboard:
                canvas.setFocus()

    def add(self, pane: Pane, place: PanePlace) -> None:
        """Create the view of a pane in the frame of its place, without showing it."""
        frame = self._frames.get(place)
        layout = None if frame is None else frame.layout()
        if layout is None:
            return
        view = adapter.new_view(pane.model)
        adapter.pass_keys_to_main(view, self._viewer)
        draw_smooth_outlines(view, find_line_style)
        view.setToolTip("")
        view.hide()
        self._views[pane] = view
        layout.addWidget(view)

    def measure(self, pane: Pane) -> None:
        """Give a pane's hidden view the size of its frame, to which the view is fitted."""
        view = self._views.get(pane)
        frame = None if view is None else view.parentWidget()
        if frame is not None:
            pane.model.canvas.size = (frame.height(), frame.width())

    def show(self, pane: Pane) -> None:
        """Show the view of a pane."""
        view = self._views.get(pane)
        canvas = None if view is None else adapter.canvas_of(view)
        if view is None or canvas is None:
            return
        # The keys are bound in the main view: a click in a further one must not take the
        # keyboard focus.
        canvas.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setObjectName(f"pane_{pane.kind.title}")
        canvas.setObjectName(f"canvas_{pane.kind.title}")
        # Qt would draw the canvas twice: for its new size, and for the window.
        canvas.setUpdatesEnabled(False)
        view.show()
        canvas.setUpdatesEnabled(True)
        if pane not in self._crosses:
            self._crosses[pane] = CrossHair(pane.model, canvas)

    def hide(self, pane: Pane) -> None:
        """Hide the view of a pane, but keep the view for later."""
        view = self._views.get(pane)
        if view is not None:
            view.hide()

    def drop(self, pane: Pane) -> None:
        """Remove the view of a pane in later event-loop iterations, or at `close`."""
        self.hide(pane)
        cross, view = self._crosses.pop(pane, None), self._views.pop(pane, None)
        if cross is not None:
            cross.close()
        if view is not None:
            self._gone.append(view)
            self._leave.start([self._close_one] * len(self._gone))

    def settle(self) -> None:
        """Draw the cross-hair of the main view as well."""
        canvas = adapter.canvas_widget(self._viewer)
        if canvas is not None and None not in self._crosses:
            self._crosses[None] = CrossHair(self._viewer, canvas)

    def point(self, world: tuple[float, ...] | None) -> None:
        """Draw all cross-hairs at a world position; None hides them."""
        for pane, cross in self._crosses.items():
            if pane is None:
                cross.show(world)
            elif not self._views[pane].isHidden():
                cross.show(pane.find_world(world))

    def canvas(self, pane: Pane) -> QWidget | None:
        """Return the widget of a pane, or None if it has no window."""
        view = self._views.get(pane)
        return None if view is None else adapter.canvas_of(view)

    def clear(self) -> None:
        """Show the main view alone."""
        self.point(None)
        if self._outer is not None and self._column is not None:
            with self._drawn_when_arranged(self._outer):
                for frame in self._frames.values():
                    frame.hide()
                self._column.hide()

    def close(self) -> None:
        """Remove all views immediately when the window closes."""
        self._leave.start([])
        for cross in self._crosses.values():
            cross.close()
        self._crosses.clear()
        self._gone += self._views.values()
        self._views.clear()
        self.clear()
        with suppress(RuntimeError):  # it was deleted with its window
            self._place_sliders(below_all=False)
        while self._gone:
            self._close_one()

    def _note_hand(self, *_place: int) -> None:
        self._is_moved = True

    def _close_one(self) -> None:
        view = self._gone.pop()
        with suppress(RuntimeError):  # it was deleted with its window
            view.setParent(None)
            view.close()

    @staticmethod
    def _lay_out(outer: QSplitter, column: QSplitter, stacked: bool) -> None:
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        outer.setOrientation(down if stacked else across)
        column.setOrientation(across if stacked else down)

    def _make_room(self) -> None:
        """Create the column for additional views at the first call."""
        if self._column is None:
            main = adapter.main_view(self._viewer)
            holder = None if main is None else main.parentWidget()
            layout = None if holder is None else holder.layout()
            if main is None or layout is None:
                return
            self._frame = QWidget()
            self._frame.setObjectName("planes_frame")
            self._outer = QSplitter(Qt.Orientation.Horizontal)
            self._outer.setObjectName("planes_splitter")
            self._outer.setToolTip("")
            self._outer.setChildrenCollapsible(False)
            self._outer.splitterMoved.connect(self._note_hand)
            self._column = QSplitter(Qt.Orientation.Vertical)
            self._column.setObjectName("planes_column")
            self._column.setChildrenCollapsible(False)
            self._main_column = QSplitter(Qt.Orientation.Vertical)
            self._main_column.setObjectName("main_column")
            self._main_column.setChildrenCollapsible(False)
            fill_column(self._frame, (self._outer, 1), spacing=0)
            layout.addWidget(self._frame)
            self._outer.addWidget(self._main_column)
            self._outer.addWidget(self._column)
            canvas = adapter.canvas_widget(self._viewer)
            had_keyboard = canvas is not None and canvas.hasFocus()
            # Last: Qt takes 50 ms to style napari's view again each time it is moved.
            self._main_column.addWidget(main)
            # Qt hides a widget that gets another parent, and moves its keyboard focus to the
            # next.
            main.show()
            if canvas is not None and had_keyboard:
                canvas.setFocus()

    def _place_sliders(self, *, below_all: bool) -> None:
        """Place napari's sliders below all views, or back below the main view.

        Below the main view, the sliders would reduce its height and force it to be as wide as the
        sliders, which is more than half of a small screen with large text.
        """
        sliders = sliders_of(self._viewer)
        if sliders is None or self._frame is None:
            return
        widget, home = sliders
        layout = (self._frame if below_all else home).layout()
        if layout is not None and layout.indexOf(widget) < 0:
            is_hidden = widget.isHidden()
            layout.addWidget(widget)
            widget.setHidden(is_hidden)  # Qt hides a widget that gets another parent
            fit_slider_texts(adapter.main_view(self._viewer))
