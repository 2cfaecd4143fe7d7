"""The Curves tab: the plot, the regions with their curve types, pinning and export."""

import math
from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen, QPixmap, QPolygonF
from qtpy.QtWidgets import (
    QGridLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.kinetics.curves import CurveLine, CurvePlot
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    discard,
    fill_column,
    fill_row,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import checkbox, line_edit

# A plot of contrast curves drawn with Qt, fast enough to follow the cursor.

_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 22, 12, 40
"""Margins in pixels around the curves at the default text size."""
_CLEAR: Final = 3
"""Distance in pixels between a text and the edge."""
_TICK: Final = 4
_BETWEEN: Final = 8
"""Minimum distance in pixels between two tick labels."""
_DOT: Final = 3.5
_MOST_TICKS, _MOST_X_TICKS = 6, 8
_EMPTY: Final = CurvePlot("", None, ())
_WORDS: Final = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value


def nice_ticks(low: float, high: float, most: int = _MOST_TICKS) -> tuple[float, ...]:
    """Return round numbers that cover `low` to `high`, in steps of 1, 2 or 5 times a power of ten.

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
    """A widget that draws a `CurvePlot` with named axes and units, and a dot for each phase."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("curve_plot")
        self.setToolTip(
            tr("Enhancement in each phase plotted against time, with one colour per region.")
        )
        self.setAccessibleName(tr("Plot of contrast curves"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(140, 90)
        self.plot = _EMPTY

    def sizeHint(self) -> QSize:
        """Return a size that suits five phases."""
        return QSize(560, 200)

    def show_plot(self, plot: CurvePlot) -> None:
        """Draw the curves of a plot."""
        self.plot = plot
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw axes and curves."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        drawn = [line for line in self.plot.lines if _is_defined(line.percent)]
        if not drawn:
            painter.setPen(ink)
            text = self.plot.warning or tr("Move the pointer over the image, or show a mask.")
            painter.drawText(self.rect(), _WORDS, text)
            painter.end()
            return
        area, x_ticks, y_ticks = self._find_area([line.percent for line in drawn])
        self._draw_axes(painter, area, ink, x_ticks, y_ticks)
        for line in drawn:
            points = [
                _place_point(area, x_ticks, y_ticks, self.plot.x_of(phase), value)
                for phase, value in enumerate(line.percent)
                if math.isfinite(value)
            ]
            _draw_line(painter, points, QColor(line.colour))
        painter.end()

    # -------------------------------------------------------------------- inner

    def _find_area(
        self, curves: Sequence[Sequence[float]]
    ) -> tuple[QRectF, tuple[float, ...], tuple[float, ...]]:
        metrics = self.fontMetrics()
        line = metrics.height()
        values = [value for curve in curves for value in curve if math.isfinite(value)]
        bottom = max(_BOTTOM, 2 * line + _TICK + _CLEAR)
        high = self.height() - _TOP - bottom
        most = max(2, min(_MOST_TICKS, high // line))
        y_ticks = nice_ticks(min(0.0, *values), max(10.0, *values), most)
        beside = max(metrics.horizontalAdvance(f"{value:g}") for value in y_ticks)
        left = max(_LEFT, line + beside + 2 * _BETWEEN)
        wide = self.width() - left - _RIGHT
        x_ticks = self._find_x_ticks(max(len(curve) for curve in curves), wide)
        return QRectF(left, _TOP, wide, high), x_ticks, y_ticks

    def _find_x_ticks(self, count: int, wide: int) -> tuple[float, ...]:
        last = self.plot.x_of(count - 1)
        if self.plot.times_s is None:
            return tuple(float(phase) for phase in range(count))
        number = self.fontMetrics().horizontalAdvance(f"{last:.0f}") + _BETWEEN
        return nice_ticks(0.0, max(last, 1.0), max(2, min(_MOST_X_TICKS, wide // number)))

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
        line = painter.fontMetrics().height()
        for value in y_ticks:
            y = _place_point(area, x_ticks, y_ticks, x_ticks[0], value).y()
            painter.setPen(faint)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(ink)
            where = QRectF(line, y - line / 2, area.left() - line - 6, line)
            painter.drawText(
                where, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{value:g}"
            )
        for value in x_ticks:
            x = _place_point(area, x_ticks, y_ticks, value, y_ticks[0]).x()
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + _TICK))
            where = QRectF(x - 30, area.bottom() + _TICK, 60, line)
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, f"{value:g}")
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.drawLine(area.topLeft(), area.bottomLeft())
        self._write_name(painter, self.plot.x_labels, area, upwards=False)
        self._write_name(painter, self.plot.y_labels, area, upwards=True)

    def _write_name(
        self, painter: QPainter, names: Sequence[str], area: QRectF, *, upwards: bool
    ) -> None:
        line, room = painter.fontMetrics().height(), self.height() if upwards else self.width()
        widths = map(painter.fontMetrics().horizontalAdvance, names)
        texts = zip(names, widths, strict=True)
        text, width = next(((t, w) for t, w in texts if w + 2 * _CLEAR <= room), ("", 0))
        half = width / 2 + _CLEAR
        middle = area.center().y() if upwards else area.center().x()
        middle = min(max(middle, half), room - half)
        painter.save()
        if upwards:
            painter.translate(_CLEAR + line / 2, middle)
            painter.rotate(-90)
        else:
            painter.translate(middle, area.bottom() + _TICK + 1.5 * line)
        rect_f = QRectF(-half, -line / 2, 2 * half, line)
        painter.drawText(rect_f, Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()


def _place_point(
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


def _is_defined(percent: Sequence[float]) -> bool:
    return any(math.isfinite(value) for value in percent)


_WIDE = 460
_LEAST_LIST = 32
_SWATCH = 12


class CurvesTab(QWidget):
    """The Curves tab.

    The signal `pin_wanted` requests to pin the curve of "mask" or "cursor". `removed` carries the
    index of a pinned region, `renamed` its index and new name. `table_wanted` and `figure_wanted`
    request to save a file.
    """

    pin_wanted = Signal(str)
    removed = Signal(int)
    renamed = Signal(int, str)
    patch_changed = Signal(int)
    table_wanted = Signal()
    figure_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("curves_tab")
        self.view = CurvePlotView()
        self.warning = label("curves_warning", tip=tr("Uncertainty of these curves"))
        set_level(self.warning, "warning")
        self._list = QGridLayout()
        self._list.setColumnStretch(1, 1)
        self._list.setVerticalSpacing(3)
        side = QWidget()
        side.setMaximumWidth(_WIDE)
        fill_column(side, self._make_buttons(), (self._make_list(), 1), self.warning)
        fill_row(self, (self.view, 1), (side, 1), margins=(0, 4, 0, 0))
        self._keys: tuple[object, ...] = ()

    def show_curves(self, plot: CurvePlot, n_live: int) -> None:
        """Draw curves; the first `n_live` belong to pointer and mask, all others are pinned."""
        self.view.show_plot(plot)
        self.warning.setText(plot.warning)
        self.warning.setVisible(bool(plot.warning))
        keys = tuple((line.name, line.colour) for line in plot.lines)
        if (n_live, keys) != self._keys:
            self._keys = (n_live, keys)
            self._rebuild_list(plot.lines, n_live)
        for index, line in enumerate(plot.lines):
            self._write_line(index, line)
        for save_button in (self.save_table, self.save_figure):
            save_button.setEnabled(bool(plot.lines))

    # -------------------------------------------------------------------- inner

    def _make_buttons(self) -> QWidget:
        self.pin = button(
            "curves_pin",
            tr("Pin mask"),
            tr("Keeps the curve of the displayed mask, to compare it with other curves."),
            lambda: self.pin_wanted.emit("mask"),
        )
        self.pin_cursor = button(
            "curves_pin_cursor",
            tr("Pin pointer"),
            tr("Pins the curve of the last voxel under the pointer."),
            lambda: self.pin_wanted.emit("cursor"),
        )
        self.patch = checkbox(
            "curves_patch",
            "3 × 3",
            tr("Uses the mean of 3 x 3 voxels under the pointer instead of a single voxel."),
            is_on=True,
            on_toggle=lambda on: self.patch_changed.emit(3 if on else 1),
        )
        self.save_table = button(
            "curves_table",
            tr("Save table…"),
            tr("Saves the curves as .csv or .xlsx."),
            self.table_wanted.emit,
        )
        self.save_figure = button(
            "curves_figure",
            tr("Save figure…"),
            tr("Saves the plot as .png and .svg."),
            self.figure_wanted.emit,
        )
        pins = row(self.pin, self.pin_cursor, 1)
        return column(pins, row(self.patch, 1, self.save_table, self.save_figure))

    def _make_list(self) -> QWidget:
        holder = QWidget()
        outer = QVBoxLayout(holder)
        outer.setContentsMargins(0, 0, 6, 0)
        outer.addLayout(self._list)
        outer.addStretch(1)
        area: QScrollArea = named(
            QScrollArea(), "curves_list", tr("The regions with the classes of their curves.")
        )
        area.setWidgetResizable(True)
        area.setMinimumHeight(_LEAST_LIST)
        area.setWidget(holder)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return area

    def _rebuild_list(self, lines: tuple[CurveLine, ...], n_live: int) -> None:
        while self._list.count():
            item = self._list.takeAt(0)
            widget = None if item is None else item.widget()
            if widget is not None:
                discard(widget)
        self._texts: list[QLabel] = []
        for index, line in enumerate(lines):
            # The classes are below the name: next to it they were truncated on a small screen.
            above, below = 2 * index, 2 * index + 1
            self._list.addWidget(_make_swatch(line.colour), above, 0)
            pinned = index - n_live
            if pinned < 0:
                self._list.addWidget(QLabel(line.name), above, 1)
            else:
                self._list.addWidget(self._name_of(pinned, line.name), above, 1)
                self._list.addWidget(self._make_remover(pinned), above, 2)
            text = label(f"curves_classes_{index}", tip=tr("Initial and delayed class, largest PE"))
            self._list.addWidget(text, below, 1, 1, 2)
            self._texts.append(text)

    def _name_of(self, pinned: int, name: str) -> QLineEdit:
        name_field = line_edit(
            f"curves_name_{pinned}",
            tr("Name of this region in the table and the figure."),
            text=name,
        )
        name_field.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        name_field.editingFinished.connect(lambda: self.renamed.emit(pinned, name_field.text()))
        return name_field

    def _make_remover(self, pinned: int) -> QWidget:
        return tool_button(
            f"curves_remove_{pinned}",
            "✕",
            tr("Removes this region."),
            lambda: self.removed.emit(pinned),
        )

    def _write_line(self, place: int, line: CurveLine) -> None:
        peak = max((value for value in line.percent[1:] if value == value), default=None)
        top = "" if peak is None else tr(", peak {peak:.0f} %", peak=peak)
        count = tr_n(" · {n} voxel", " · {n} voxels", line.n_voxels) if line.n_voxels else ""
        text = f"{line.classes}{top}"
        self._texts[place].setText(text)
        self._texts[place].setToolTip(f"{text}{count}")


def _make_swatch(colour: str) -> QLabel:
    pixmap = QPixmap(_SWATCH, _SWATCH)
    pixmap.fill(QColor(colour))
    swatch = QLabel()
    swatch.setPixmap(pixmap)
    swatch.setFixedWidth(_SWATCH + 4)
    return swatch
