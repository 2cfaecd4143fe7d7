"""Grey values as images on the screen, with the aspect ratio of the anatomy."""

from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QBuffer, QByteArray, QIODevice, QRect, Qt
from qtpy.QtGui import QColor, QImage, QPainter, QPixmap

from napari_mamamia.services.dicom.preview import SlicePicture

_TIP_SIDE: Final = 256
_MARK: Final = "#9AA0A6"
"""Grey with a contrast of at least 3:1 to the backgrounds of both themes."""


def grey_pixmap(pixels: NDArray[np.uint8], width: int, height: int) -> QPixmap:
    """Return grey values (rows, columns) as a pixmap of a given size in pixels."""
    rows, columns = pixels.shape
    image = QImage(pixels.tobytes(), columns, rows, columns, QImage.Format.Format_Grayscale8)
    return QPixmap.fromImage(
        # The image must own its bytes, because Python's bytes are freed with this function, and
        # an image of equal size is not copied.
        image.copy().scaled(
            max(1, width),
            max(1, height),
            Qt.AspectRatioMode.IgnoreAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
    )


def slice_pixmap(picture: SlicePicture, side: int) -> QPixmap:
    """Return a slice as a pixmap with a longer side of `side` pixels, in proportion to its mm."""
    longest = max(picture.height_mm, picture.width_mm)
    width = round(side * picture.width_mm / longest)
    return grey_pixmap(picture.pixels, width, round(side * picture.height_mm / longest))


def square_pixmap(picture: SlicePicture | None, side: int) -> QPixmap:
    """Return a slice centred in a square, so that texts next to images are aligned.

    If `picture` is None, the square is empty.
    """
    square = _make_empty_pixmap(side)
    if picture is not None:
        inner = slice_pixmap(picture, side)
        painter = QPainter(square)
        painter.drawPixmap((side - inner.width()) // 2, (side - inner.height()) // 2, inner)
        painter.end()
    return square


def no_picture(side: int) -> QPixmap:
    """Return a framed, crossed-out square."""
    square = _make_empty_pixmap(side)
    painter = QPainter(square)
    painter.setPen(QColor(_MARK))
    frame = QRect(0, 0, side - 1, side - 1)
    painter.drawRect(frame)
    painter.drawLine(frame.bottomLeft(), frame.topRight())
    painter.end()
    return square


def picture_tip(picture: SlicePicture, text: str) -> str:
    """Return a tooltip with a large image of the slice above the plain `text`."""
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    slice_pixmap(picture, _TIP_SIDE).save(buffer, "PNG")
    image = bytes(content.toBase64()).decode()
    return f'<img src="data:image/png;base64,{image}"><br>{escape(text)}'


def _make_empty_pixmap(side: int) -> QPixmap:
    square = QPixmap(side, side)
    square.fill(Qt.GlobalColor.transparent)
    return square
