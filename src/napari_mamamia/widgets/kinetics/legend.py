"""The legend of the map shown: a bar with values and unit, or the classes with their letters."""

from typing import Final

from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPalette
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_mamamia.services.kinetics.show_kinetics import MapKind, ShownMap
from napari_mamamia.widgets.kinetics.colours import SER_COLOURS, TYPE_COLOURS, ramp_of

__all__ = ["KineticLegend"]

_BAR: Final = 12


class KineticLegend(QWidget):
    """Draws nothing while no map is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kinetics_legend")
        self.setAccessibleName("Legend of the map")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._shown: ShownMap | None = None
        self.setToolTip("What the colours of the map mean")

    def sizeHint(self) -> QSize:
        """Return the height of a bar and its values."""
        return QSize(300, self._height)

    def show_map(self, shown: ShownMap | None) -> None:
        """Draw the legend of another map."""
        self._shown = shown
        self.setToolTip("What the colours of the map mean" if shown is None else self.text())
        self.update()

    def text(self) -> str:
        """Return the legend in words."""
        if self._shown is None:
            return ""
        classes = _classes_of(self._shown)
        if classes:
            return ", ".join(f"{letter} {name}" for letter, name, _ in classes)
        low, high = self._shown.limits
        return f"{low:.4g} to {high:.4g} {self._shown.unit}".strip()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw."""
        if self._shown is None:
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        classes = _classes_of(self._shown)
        if classes:
            self._draw_classes(painter, classes, self._shown.kind is MapKind.TYPE)
        else:
            self._draw_bar(painter, self._shown)
        painter.end()

    # -------------------------------------------------------------------- inner

    @property
    def _height(self) -> int:
        return _BAR + int(self.fontMetrics().height()) + 4

    def _draw_classes(
        self, painter: QPainter, classes: list[tuple[str, str, str]], has_names: bool
    ) -> None:
        wide = self.width() / len(classes)
        for place, (letter, name, colour) in enumerate(classes):
            left = place * wide
            painter.fillRect(QRectF(left, 0, wide - 3, _BAR), QColor(colour))
            text = f"{letter}  {name}" if has_names else letter.removeprefix("SER ")
            where = QRectF(left, _BAR + 2, wide - 3, self._height - _BAR - 4)
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_bar(self, painter: QPainter, shown: ShownMap) -> None:
        colours = ramp_of(shown.kind).colours
        bar = QRectF(0, 0, self.width(), _BAR)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for place, (red, green, blue, _) in enumerate(colours):
            gradient.setColorAt(place / (len(colours) - 1), QColor.fromRgbF(red, green, blue))
        painter.fillRect(bar, gradient)
        low, high = shown.limits
        below = QRectF(0, _BAR + 2, self.width(), self._height - _BAR - 4)
        middle = f"{(low + high) / 2:.4g}"
        sides = Qt.AlignmentFlag
        painter.drawText(below, sides.AlignLeft, f"{low:.4g}")
        painter.drawText(below, sides.AlignHCenter, middle)
        painter.drawText(below, sides.AlignRight, f"{high:.4g} {shown.unit}".strip())


def _classes_of(shown: ShownMap) -> list[tuple[str, str, str]]:
    if not shown.is_classes:
        return []
    return list((TYPE_COLOURS if shown.kind is MapKind.TYPE else SER_COLOURS).values())
