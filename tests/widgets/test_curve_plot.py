"""The plot of contrast curves as it is drawn."""

import numpy as np
import pytest
from qtpy.QtGui import QImage

from napari_mamamia.kinetics.curve_lines import CurveLine, CurvePlot
from napari_mamamia.widgets.kinetics.curves_tab import CurvePlotView

PLOT = CurvePlot("A_1", (0.0, 90.0, 180.0), (CurveLine("mask", "#56b4e9", (0.0, 150.0, 120.0)),))


def draw(qtbot, height: int, points: int) -> np.ndarray:
    """Return the drawn plot as grey values, uint8 ``(rows, columns)``."""
    view = CurvePlotView()
    qtbot.addWidget(view)
    font = view.font()
    font.setPointSize(points)
    view.setFont(font)
    view.show_plot(PLOT)
    view.resize(480, height)
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
