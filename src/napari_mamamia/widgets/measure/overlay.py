"""Drawings over one view: outlined lines with their values, shown only on the slice of the drawing.

Qt paints the drawings on a transparent widget over the canvas, which ignores the mouse. The
drawings are sharp at any zoom, need no layer, and are never exported. The widget is hidden if the
slice has no drawings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QFont, QPainter, QPainterPath, QPaintEvent, QPen, QTransform
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.measurement import MeasureKind, PointMm
from napari_mamamia.core.texts import tr
from napari_mamamia.services.measure.shapes import Slice, find_display_mm, list_lines
from napari_mamamia.widgets.controls.controls import discard, named
from napari_mamamia.widgets.viewer.slice_view import SliceView

LINE_COLOUR: Final = "#FFD24D"
"""Colour of drawings, which no mask or map uses; its contrast with black is 14:1."""
OTHERS_COLOUR: Final = "#C9D6E8"
_EDGE: Final = QColor(0, 0, 0, 215)
_WIDTH: Final = 2.0
_EDGE_WIDTH: Final = 4.5
_HANDLE: Final = 4.0
_REACH: Final = 7.0
"""Distance in pixels within which a press grabs a point or a line."""
_HEAD: Final = 11.0
_BESIDE: Final = 10.0
MARK_COLOUR: Final = "#FF8AD8"
"""Colour of marks, which no mask, map or drawing uses; its contrast with black is 9:1."""
_NEAR_MM: Final = 15.0
"""Largest distance in mm from a mark's slice at which the mark is visible.

A nipple measures about 10 mm.
"""
_FAINTEST: Final = 0.25
_MARK: Final = 7.0
_MOST_LINES: Final = 12
"""Maximum number of lines by which a text is moved to avoid other texts."""


@dataclass(frozen=True, slots=True)
class Grip:
    """The grabbed element of a drawing: the point `at`, or a line if `at` is None."""

    key: str
    at: int | None
    on: Slice


@dataclass(frozen=True, slots=True)
class ShownDrawing:
    """A displayed drawing; `say` returns its text, and `is_own` says whether it may be changed."""

    key: str
    kind: MeasureKind
    points_mm: tuple[PointMm, ...]
    on: Slice
    say: Callable[[], str]
    is_own: bool = True
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class ShownMark:
    """A point marked by a reader, such as a nipple, which is drawn fainter on nearby slices."""

    key: str
    point_mm: PointMm
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class _PlacedMark:
    """A mark in the plane of a view: position in mm (across, down) and opacity."""

    mark: ShownMark
    place: NDArray[np.float64]
    strength: float
    on: Slice | None


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A drawing in the plane of a view: points in mm (across, down) as displayed."""

    shown: ShownDrawing
    lines: tuple[NDArray[np.float64], ...]
    points: NDArray[np.float64]
    words: str


class _Sheet(QWidget):
    """The transparent widget on which the drawings are painted."""

    def __init__(self, canvas: QWidget, view: "ViewDrawings") -> None:
        super().__init__(canvas)
        named(self, "measure_sheet", tr("Measurements of this slice."))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self._view = view
        self.hide()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint all drawings of the slice."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._view.paint(painter)
        painter.end()


class ViewDrawings:
    """A component that shows drawings over one view of the case, and finds the drawing at a pixel.

    Parameters
    ----------
    find_canvas
        Function that returns the widget on which the view is drawn, or None without a window;
        nothing is painted in that case.
    """

    def __init__(
        self, view: SliceView, viewer: Any, find_canvas: Callable[[], QWidget | None]
    ) -> None:
        self._view = view
        self.viewer = viewer
        self._find_canvas = find_canvas
        self._sheet: _Sheet | None = None
        self._every: Sequence[ShownDrawing] = ()
        self._marks: Sequence[ShownMark] = ()
        self._placed: list[_Placed] = []
        self._placed_marks: list[_PlacedMark] = []
        self._events = [viewer.dims.events.current_step, viewer.dims.events.order]
        self._events += [viewer.dims.events.ndisplay]
        camera = viewer.scene.camera.events
        self._moves = [camera.center, camera.zoom, camera.orientation, viewer.canvas.events.size]
        for emitter in self._events:
            emitter.connect(self._choose_slice)
        for emitter in self._moves:
            emitter.connect(self._move_sheet)

    def close(self) -> None:
        """Disconnect from the view when it is closed."""
        for emitter in self._events:
            emitter.disconnect(self._choose_slice)
        for emitter in self._moves:
            emitter.disconnect(self._move_sheet)
        self._every, self._placed, self._events, self._moves = (), [], [], []
        self._marks, self._placed_marks = (), []
        if self._sheet is not None:
            discard(self._sheet)
            self._sheet = None

    @property
    def keys(self) -> list[str]:
        """The keys of the drawings on the displayed slice."""
        return [drawing.shown.key for drawing in self._placed]

    @property
    def marks(self) -> dict[str, float]:
        """The opacity of each mark by key, 1 on the mark's own slice."""
        return {placed_mark.mark.key: placed_mark.strength for placed_mark in self._placed_marks}

    def show(self, every: Sequence[ShownDrawing], marks: Sequence[ShownMark] = ()) -> None:
        """Show the drawings of the slice, and the marks near the slice."""
        self._every, self._marks = every, marks
        self._choose_slice()

    def find(self, pixel: Any) -> Grip | None:
        """Return the grip at a pixel (x, y), with points before lines and own drawings first."""
        lead = self._find_transform()
        best: tuple[float, Grip] | None = None
        gripped = [
            drawing for drawing in self._placed if drawing.shown.kind is not MeasureKind.KEY_IMAGE
        ]
        for drawing in gripped if lead is not None else ():
            for away, index in _list_distances(drawing, lead, np.asarray(pixel, float)[:2]):
                may_move = drawing.shown.is_own and index is not None
                rank = away - (0 if not may_move else 1000) - (1 if drawing.shown.is_chosen else 0)
                if drawing.shown.key and away <= _REACH and (best is None or rank < best[0]):
                    best = (
                        rank,
                        Grip(drawing.shown.key, index if may_move else None, drawing.shown.on),
                    )
        return self._find_mark(pixel) if best is None else best[1]

    def _find_mark(self, pixel: Any) -> Grip | None:
        lead = self._find_transform()
        if lead is None:
            return None
        for placed_mark in self._placed_marks:
            centre = lead.map(QPointF(*placed_mark.place))
            away = np.hypot(centre.x() - float(pixel[0]), centre.y() - float(pixel[1]))
            if placed_mark.on is not None and away <= _REACH:
                return Grip(placed_mark.mark.key, 0, placed_mark.on)
        return None

    def find_pixel(self, key: str) -> tuple[float, float] | None:
        """Return the canvas position of a drawing's last point, or None if it is not visible."""
        lead = self._find_transform()
        placed = next((drawing for drawing in self._placed if drawing.shown.key == key), None)
        if lead is None or placed is None:
            return None
        pixel = lead.map(QPointF(*placed.points[0]))
        return pixel.x(), pixel.y()

    # -------------------------------------------------------------------- inner

    def _choose_slice(self, _event: object = None) -> None:
        if not self._every and not self._placed and not self._marks and not self._placed_marks:
            return
        here = self._view.slice_shown_in(self.viewer)
        dims = self.viewer.dims
        down, across = (axis - (dims.ndim - 3) for axis in dims.displayed[-2:])
        self._placed = []
        for drawing in self._every if here is not None else ():
            if (drawing.on.axis, drawing.on.index) == here:
                lines = tuple(
                    find_display_mm(drawing.on.grid, line)[:, [across, down]]
                    for line in list_lines(drawing.kind, drawing.points_mm)
                )
                points = find_display_mm(drawing.on.grid, drawing.points_mm)[:, [across, down]]
                self._placed.append(_Placed(drawing, lines, points, drawing.say()))
        self._place_marks(here, down, across)
        self._show_sheet()

    def _place_marks(self, here: tuple[int, int] | None, down: int, across: int) -> None:
        self._placed_marks = []
        grid = self._view.grid
        if here is None or grid is None:
            return
        step_mm = grid.spacing_mm[here[0]]
        for mark in self._marks:
            voxel = grid.to_voxel(mark.point_mm)
            away_mm = abs(float(voxel[here[0]]) - here[1]) * step_mm
            is_here = away_mm <= step_mm / 2 + 1e-6
            if not is_here and away_mm > _NEAR_MM:
                continue
            strength = 1.0 if is_here else max(1 - away_mm / _NEAR_MM, _FAINTEST)
            position = find_display_mm(grid, [mark.point_mm])[0]
            on = Slice(grid, *here) if is_here else None
            self._placed_marks.append(_PlacedMark(mark, position[[across, down]], strength, on))

    def _show_sheet(self) -> None:
        if not self._placed and not self._placed_marks:
            if self._sheet is not None:
                self._sheet.hide()
            return
        canvas = self._find_canvas()
        if self._sheet is None and canvas is not None:
            self._sheet = _Sheet(canvas, self)
        self._move_sheet()
        if self._sheet is not None and self._sheet.isHidden():
            self._sheet.show()
            self._sheet.lower()

    def _move_sheet(self, _event: object = None) -> None:
        if self._sheet is not None and (self._placed or self._placed_marks):
            room = self._sheet.parentWidget().rect()
            if self._sheet.geometry() != room:
                self._sheet.setGeometry(room)
            self._sheet.update()

    def _find_transform(self) -> QTransform | None:
        """Return the transform from displayed mm (across, down) to pixels, or None in 3-D."""
        camera, dims = self.viewer.scene.camera, self.viewer.dims
        if len(dims.displayed) != 2:
            return None
        canvas = self._find_canvas()
        if canvas is not None:
            width, height = canvas.width(), canvas.height()
        else:
            height, width = (int(n) for n in self.viewer.canvas.size)
        rows, columns = (str(way) for way in camera.orientation2d)
        x = camera.zoom * (-1 if columns == "left" else 1)
        y = camera.zoom * (-1 if rows == "up" else 1)
        shift = (width / 2 - camera.center[-1] * x, height / 2 - camera.center[-2] * y)
        return QTransform(x, 0, 0, y, *shift)

    # ----------------------------------------------------------------- painting

    def paint(self, painter: QPainter) -> None:
        """Paint the drawings of the slice, the selected one last."""
        lead = self._find_transform()
        if lead is None:
            return
        font = painter.font()
        font.setBold(True)
        font.setStyleHint(QFont.StyleHint.SansSerif)
        painter.setFont(font)
        grounds: list[QRectF] = []
        for mark in self._placed_marks:
            _paint_mark(painter, mark, lead, grounds)
        for drawing in sorted(self._placed, key=lambda drawing: drawing.shown.is_chosen):
            _paint_one(painter, drawing, lead, grounds)


def _list_distances(
    one: _Placed, lead: QTransform, pixel: NDArray[np.float64]
) -> list[tuple[float, int | None]]:
    points = _map_points(lead, one.points)
    away: list[tuple[float, int | None]] = [
        (float(np.hypot(*(point - pixel))), index) for index, point in enumerate(points)
    ]
    for line in one.lines:
        mapped = _map_points(lead, line)
        start, way = mapped[:-1], np.diff(mapped, axis=0)
        long = np.maximum((way**2).sum(axis=1), 1e-9)
        share = np.clip(((pixel - start) * way).sum(axis=1) / long, 0, 1)
        nearest = start + share[:, None] * way
        away.append((float(np.hypot(*(nearest - pixel).T).min()), None))
    return away


def _map_points(lead: QTransform, places: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.array([lead.m11(), lead.m22()])
    mapped: NDArray[np.float64] = places * scale + np.array([lead.dx(), lead.dy()])
    return mapped


def find_ground(wanted: QRectF, taken: list[QRectF], height: float) -> QRectF:
    """Return a free rectangle for a text near the rectangle `wanted`, and add it to `taken`.

    The rectangle is moved up and down within `height`. If there is no free position, the wanted
    rectangle is returned.
    """
    step = wanted.height() + 1
    for shift in sorted(range(-_MOST_LINES, _MOST_LINES + 1), key=abs):
        ground = wanted.translated(0, shift * step)
        fits = shift == 0 or (ground.top() >= 0 and ground.bottom() <= height)
        if fits and not any(ground.intersects(rectangle) for rectangle in taken):
            taken.append(ground)
            return ground
    taken.append(wanted)
    return wanted


def _paint_mark(
    painter: QPainter, one: _PlacedMark, lead: QTransform, grounds: list[QRectF]
) -> None:
    centre = lead.map(QPointF(*one.place))
    x, y = centre.x(), centre.y()
    path = QPainterPath()
    path.addEllipse(centre, _MARK, _MARK)
    for dx, dy in ((_MARK, 0.0), (0.0, _MARK)):
        path.moveTo(x - dx, y - dy)
        path.lineTo(x + dx, y + dy)
    painter.setOpacity(one.strength)
    painter.strokePath(path, QPen(_EDGE, _EDGE_WIDTH))
    painter.strokePath(path, QPen(QColor(MARK_COLOUR), _WIDTH))
    metrics = painter.fontMetrics()
    wide, high = metrics.horizontalAdvance(one.mark.words) + 8, metrics.height() + 2
    room = painter.viewport()
    text_left = min(max(x + _BESIDE, 2.0), max(room.width() - wide - 2.0, 2.0))
    ground = find_ground(QRectF(text_left, y - high - 2, wide, high), grounds, room.height())
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(0, 0, 0, 200))
    painter.drawRoundedRect(ground, 3, 3)
    painter.setPen(QColor(MARK_COLOUR))
    painter.drawText(ground, Qt.AlignmentFlag.AlignCenter, one.mark.words)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setOpacity(1.0)


def _paint_one(painter: QPainter, one: _Placed, lead: QTransform, grounds: list[QRectF]) -> None:
    drawing = one.shown
    points = _map_points(lead, one.points)
    path = QPainterPath()
    lines = [_map_points(lead, line) for line in one.lines]
    for mapped in lines:
        path.moveTo(*mapped[0])
        for point in mapped[1:]:
            path.lineTo(*point)
    if drawing.kind is MeasureKind.ARROW:
        _add_head(path, points)
    colour = QColor(LINE_COLOUR if drawing.is_own else OTHERS_COLOUR)
    edge, line_pen = QPen(_EDGE, _EDGE_WIDTH), QPen(colour, _WIDTH)
    for pen in (edge, line_pen):
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    if not drawing.is_own:
        line_pen.setDashPattern([4.0, 3.0])
    painter.strokePath(path, edge)
    painter.strokePath(path, line_pen)
    if drawing.is_chosen and drawing.kind is not MeasureKind.KEY_IMAGE:
        painter.setPen(QPen(_EDGE, 1.5))
        painter.setBrush(QColor("white"))
        for x, y in points:
            painter.drawRect(QRectF(x - _HANDLE, y - _HANDLE, 2 * _HANDLE, 2 * _HANDLE))
    _paint_words(painter, one, points, np.vstack([points, *lines]), colour, grounds)


def _add_head(path: QPainterPath, points: NDArray[np.float64]) -> None:
    way = points[0] - points[1]
    long = float(np.hypot(*way))
    if long < 1:
        return
    along = way / long * _HEAD
    beside = np.array([-along[1], along[0]]) * 0.45
    path.moveTo(*(points[1] + along + beside))
    path.lineTo(*points[1])
    path.lineTo(*(points[1] + along - beside))


def _paint_words(
    painter: QPainter,
    one: _Placed,
    points: NDArray[np.float64],
    drawn: NDArray[np.float64],
    colour: QColor,
    grounds: list[QRectF],
) -> None:
    """Paint a text on a dark background, to the right of all points in `drawn`.

    The text of an arrow is at its tail, and a text about the whole image is in the lower corner.
    """
    if not one.words:
        return
    metrics, room = painter.fontMetrics(), painter.viewport()
    wide, high = metrics.horizontalAdvance(one.words) + 8, metrics.height() + 4
    if one.shown.kind is MeasureKind.KEY_IMAGE:
        beside = np.array([0.0, room.height() - high])
    elif one.shown.kind is MeasureKind.ARROW:
        beside = points[0]
    else:
        beside = drawn[int(drawn[:, 0].argmax())]
    x = min(max(beside[0] + _BESIDE, 2.0), max(room.width() - wide - 2.0, 2.0))
    y = min(max(beside[1] - high / 2, 2.0), max(room.height() - high - 2.0, 2.0))
    ground = find_ground(QRectF(x, y, wide, high), grounds, room.height())
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(0, 0, 0, 200))
    painter.drawRoundedRect(ground, 3, 3)
    painter.setPen(colour)
    painter.drawText(ground, Qt.AlignmentFlag.AlignCenter, one.words)
    painter.setBrush(Qt.BrushStyle.NoBrush)
