"""The plot of contrast curves as it is drawn."""

from itertools import pairwise

import numpy as np
import pytest
from qtpy.QtCore import QRectF
from qtpy.QtGui import QImage, QPainter

from napari_mamamia.kinetics.curves import CurveLine, CurvePlot
from napari_mamamia.widgets.kinetics import curves_tab
from napari_mamamia.widgets.kinetics.curves_tab import CurvePlotView

PLOT = CurvePlot("A_1", (0.0, 90.0, 180.0), (CurveLine("mask", "#56b4e9", (0.0, 150.0, 120.0)),))


def draw(qtbot, height: int, points: int, width: int = 480) -> np.ndarray:
    """Return the drawn plot as grey values, uint8 ``(rows, columns)``."""
    view = CurvePlotView()
    qtbot.addWidget(view)
    font = view.font()
    font.setPointSize(points)
    view.setFont(font)
    view.show_plot(PLOT)
    view.resize(width, height)
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    rows = image.constBits().asarray(image.sizeInBytes())
    return np.array(rows).reshape(image.height(), image.bytesPerLine())[:, : image.width()]


@pytest.mark.parametrize("points", [9, 14])
@pytest.mark.parametrize("height", [90, 110, 130, 150, 165, 180, 240])
def test_the_name_of_the_vertical_axis_is_whole_in_any_height(qtbot, height, points):
    """Its last letter was cut off where the plot was hardly higher than the text."""
    beside = draw(qtbot, height, points)[:, 2:20]
    is_ink = (beside != beside[0, 0]).any(axis=1)
    first, last = np.flatnonzero(is_ink)[[0, -1]]
    assert first > 0
    assert last < height - 1
    assert last - first > 3 * points  # at least its short form


@pytest.mark.parametrize(
    ("width", "points"), [(140, 9), (140, 14), (180, 18), (240, 14), (480, 9), (480, 18)]
)
def test_numbers_below_the_plot_stand_apart_and_its_name_is_whole(
    qtbot, monkeypatch, width, points
):
    """In the corner of a small screen they were one smear, and the name was cut at both ends."""
    written = []
    real = QPainter.drawText

    class Painter(QPainter):
        def drawText(self, place, flags, text):
            at = self.combinedTransform().mapRect(QRectF(place))
            needed = self.fontMetrics().horizontalAdvance(text)
            written.append((text, at.center().x(), at.center().y(), needed, place.width()))
            real(self, place, flags, text)

    monkeypatch.setattr(curves_tab, "QPainter", Painter)
    picture = draw(qtbot, 120, points, width)
    assert picture.shape[1] == width
    assert all(needed <= room for _text, _x, _y, needed, room in written)
    *numbers, name, _upwards = written
    ticks = [one for one in numbers if one[2] == numbers[-1][2]]
    assert len(ticks) >= 2
    for (_, x, _, wide, _), (_, x2, _, wide2, _) in pairwise(ticks):
        assert x2 - wide2 / 2 - (x + wide / 2) >= 3
    assert name[1] - name[3] / 2 >= 0
    assert name[1] + name[3] / 2 <= width
    assert name[0] in PLOT.x_labels
