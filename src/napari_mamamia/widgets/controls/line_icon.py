"""A piece of a mask's line as an icon, black behind it as the line's casing is on the image."""

from typing import Final

from qtpy.QtCore import QSize
from qtpy.QtGui import QColor, QIcon, QPainter, QPixmap

LINE_ICON_SIZE: Final = QSize(26, 12)


def line_icon(colour: str, width: float, stroke: float, period: float) -> QIcon:
    """Return a line of a colour (hexadecimal), `stroke` of each `period` pixels drawn."""
    pixmap = QPixmap(LINE_ICON_SIZE)
    pixmap.fill(QColor("black"))
    painter = QPainter(pixmap)
    thick = round(width + 0.5)
    for start in range(2, pixmap.width() - 2, round(period)):
        length = min(round(stroke), pixmap.width() - 2 - start)
        painter.fillRect(start, (pixmap.height() - thick) // 2, length, thick, QColor(colour))
    painter.end()
    return QIcon(pixmap)
