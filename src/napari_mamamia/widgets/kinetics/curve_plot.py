"""A plot of contrast curves drawn by Qt itself, quick enough to follow the cursor."""

import math
from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_mamamia.kinetics.curve_lines import CurvePlot

__all__ = ["CurvePlotView", "nice_ticks"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 40
_DOT: Final = 3.5
_MOST_TICKS: Final = 6
_EMPTY: Final = CurvePlot("", None, ())


def nice_ticks(low: float, high: float, most: int = _MOST_TICKS) -> tuple[float, ...]:
    """Return round numbers that cover `low` to `high`, steps of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> nice_ticks(0.0, 212.0)
    (0.0, 50.0, 100.0, 150.0, 200.0, 250.0)
    """
    span = max(high - low, 1e-9)
    raw = span / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return tuple(k * step for k in range(first, last + 1))


class CurvePlotView(QWidget):
    """Draws a `CurvePlot`: axes with names and units, each phase a dot."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("curve_plot")
        self.setToolTip("Enhancement of each phase against its time; one colour for each region")
        self.setAccessibleName("Plot of contrast curves")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(260, 150)
        self.plot = _EMPTY

    def sizeHint(self) -> QSize:
        """Return a size that shows five phases well."""
        return QSize(560, 200)

    def show_plot(self, plot: CurvePlot) -> None:
        """Draw other curves."""
        self.plot = plot
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw axes and curves."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        area = QRectF(_LEFT, _TOP, self.width() - _LEFT - _RIGHT, self.height() - _TOP - _BOTTOM)
        drawn = [line for line in self.plot.lines if _defined(line.percent)]
        if not drawn:
            painter.setPen(ink)
            text = self.plot.warning or "Move the pointer over the image, or show a mask."
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
            painter.end()
            return
        x_ticks, y_ticks = self._ticks([line.percent for line in drawn])
        self._draw_axes(painter, area, ink, x_ticks, y_ticks)
        for line in drawn:
            points = [
                _place(area, x_ticks, y_ticks, self.plot.x_of(phase), value)
                for phase, value in enumerate(line.percent)
                if math.isfinite(value)
            ]
            _draw_line(painter, points, QColor(line.colour))
        painter.end()

    # -------------------------------------------------------------------- inner

    def _ticks(
        self, curves: Sequence[Sequence[float]]
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        values = [value for curve in curves for value in curve if math.isfinite(value)]
        count = max(len(curve) for curve in curves)
        last = self.plot.x_of(count - 1)
        if self.plot.times_s is None:
            x_ticks = tuple(float(phase) for phase in range(count))
        else:
            x_ticks = nice_ticks(0.0, max(last, 1.0), 8)
        return x_ticks, nice_ticks(min(0.0, *values), max(10.0, *values))

    def _draw_axes(
        self,
        painter: QPainter,
        area: QRectF,
        ink: QColor,
        x_ticks: tuple[float, ...],
        y_ticks: tuple[float, ...],
    ) -> None:
        faint = QColor(ink)
        faint.setAlpha(50)
        for value in y_ticks:
            y = _place(area, x_ticks, y_ticks, x_ticks[0], value).y()
            painter.setPen(faint)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(ink)
            where = QRectF(14, y - 9, _LEFT - 20, 18)
            painter.drawText(
                where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{value:g}"
            )
        for value in x_ticks:
            x = _place(area, x_ticks, y_ticks, value, y_ticks[0]).x()
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 4))
            where = QRectF(x - 30, area.bottom() + 4, 60, 16)
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, f"{value:g}")
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.drawLine(area.topLeft(), area.bottomLeft())
        below = QRectF(area.left(), area.bottom() + 20, area.width(), 18)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, self.plot.x_label)
        painter.save()
        painter.translate(12, area.center().y())
        painter.rotate(-90)
        beside = QRectF(-area.height() / 2 - 20, -9, area.height() + 40, 18)
        painter.drawText(beside, Qt.AlignmentFlag.AlignCenter, self.plot.y_label)
        painter.restore()


def _place(
    area: QRectF, x_ticks: tuple[float, ...], y_ticks: tuple[float, ...], x: float, y: float
) -> QPointF:
    wide = max(x_ticks[-1] - x_ticks[0], 1e-9)
    high = max(y_ticks[-1] - y_ticks[0], 1e-9)
    across = (x - x_ticks[0]) / wide
    up = (y - y_ticks[0]) / high
    return QPointF(area.left() + across * area.width(), area.bottom() - up * area.height())


def _draw_line(painter: QPainter, points: list[QPointF], colour: QColor) -> None:
    pen = QPen(colour)
    pen.setWidthF(2.0)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(QPolygonF(points))
    painter.setBrush(colour)
    for point in points:
        painter.drawEllipse(point, _DOT, _DOT)


def _defined(percent: Sequence[float]) -> bool:
    return any(math.isfinite(value) for value in percent)
