"""Measuring with the real mouse: the pixels of a line on any grey, the record, every view."""

import numpy as np
import pytest
from one_window import forget_mask, wait_open
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLineEdit, QWidget
from tests.window.test_window_refine import drag, native_of, pixel_of

from napari_mamamia.core.measurement import MeasureKind
from napari_mamamia.io.workspace.measurements import read_measurements
from napari_mamamia.metrics.shapes import length_mm
from napari_mamamia.widgets.measure.overlay import LINE_COLOUR
from napari_mamamia.widgets.viewer.planes import Layout

pytestmark = [pytest.mark.window, pytest.mark.one_window(own=True)]

COLOUR = np.array([int(LINE_COLOUR[k : k + 2], 16) for k in (1, 3, 5)])


@pytest.fixture
def reading(qtbot, docked, small_data_set):
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    wait_open(qtbot, docked, "A_2")
    docked.show_page("View")
    z, y, x = docked.session.case.grid.shape
    docked.scene.view.go_to((z // 2, y // 2, x // 2), centre=False)
    docked.scene.view.fit()
    docked.middle = (z // 2, y // 2, x // 2)
    yield docked
    qtbot.waitUntil(lambda: docked.jobs.wait(0))
    docked.active_tool.turn_off()
    forget_mask(docked)


def is_line(pixels):
    return np.abs(pixels.astype(int) - COLOUR).max(axis=-1) < 30


def canvas_pixels(panel, name, whole_window):
    """Return the canvas as it stands in the window, (rows, columns, RGB)."""
    whole, native = whole_window(panel.viewer, name), native_of(panel)
    corner = native.mapTo(panel.viewer.window._qt_window, native.rect().topLeft())
    return whole[
        corner.y() : corner.y() + native.height(), corner.x() : corner.x() + native.width()
    ]


def stored(panel):
    return read_measurements(panel.session.workspace.root, "A_2").items


def test_a_ruler_is_dragged_seen_with_a_dark_edge_on_any_grey_and_kept(
    qtbot, reading, whole_window
):
    z, y, x = reading.middle
    start, end = (z, y, x - 12), (z, y, x + 12)
    before = reading.viewer.scene.camera.center
    reading.measuring.use(MeasureKind.RULER)
    drag(qtbot, reading, [start, (z, y, x), end])
    assert reading.viewer.scene.camera.center == before, "a drag draws, it does not pan"
    qtbot.waitUntil(lambda: len(stored(reading)) == 1)
    spacing = reading.session.case.grid.spacing_mm[2]
    half_pixel = 1 / reading.viewer.scene.camera.zoom
    assert abs(length_mm(*stored(reading)[0].points_mm) - 24 * spacing) <= 2 * half_pixel
    reading.measuring.record.choose("")
    layer = reading.viewer.layers[0]
    limits = layer.contrast_limits
    a, b = pixel_of(reading, start), pixel_of(reading, end)
    row, columns = a.y(), slice(a.x() + 12, b.x() - 12)
    for grey in (0, 128, 255):
        # what is black, grey or white whatever the image holds
        low = {0: 1e5, 128: -1e5, 255: -2e5}[grey]
        layer.contrast_limits_range = (-3e5, 3e5)
        layer.contrast_limits = (low, low + (2e5 if grey == 128 else 1e5))
        pixels = canvas_pixels(reading, f"measure_{grey}", whole_window)
        band = pixels[row - 8 : row + 9, columns]
        assert abs(int(band[0].mean()) - grey) < 12
        on_line = is_line(band).any(axis=0)
        assert on_line.mean() > 0.95, grey
        dark = (band[6:11].max(axis=-1) < 70).any(axis=0)
        assert dark.mean() > 0.95, grey
    layer.contrast_limits = limits
    reading.scene.view.go_to((z + 1, y, x), centre=False)
    assert not is_line(canvas_pixels(reading, "measure_next_slice", whole_window)).any()
    sheets = native_of(reading).findChildren(QWidget, "measure_sheet")
    assert not any(one.isVisible() for one in sheets)


@pytest.mark.night
def test_what_is_drawn_moves_with_the_zoom_and_is_seen_in_every_view(
    qtbot, reading, picture, whole_window
):
    z, y, x = reading.middle
    reading.measuring.use(MeasureKind.RULER)
    drag(qtbot, reading, [(z, y, x - 12), (z, y, x + 12)])
    QTest.keyClick(native_of(reading), Qt.Key.Key_Escape)
    assert reading.active_tool.tool is None
    wide = np.ptp(np.nonzero(is_line(canvas_pixels(reading, "measure_1", whole_window)))[1])
    reading.viewer.scene.camera.zoom *= 1.5
    wider = np.ptp(np.nonzero(is_line(canvas_pixels(reading, "measure_2", whole_window)))[1])
    assert wider > wide
    reading.planes.set_layout(Layout.PLANES)
    qtbot.waitUntil(lambda: not reading.planes.is_building)
    assert [len(view.keys) for view in reading.measuring.views] == [1, 0, 0]
    sagittal = next(v for v in reading.measuring.views[1:])
    sheet_view = sagittal.viewer
    canvas = reading.planes.canvas(sheet_view)
    reading.measuring.use(MeasureKind.RULER)
    centre = canvas.rect().center()
    QTest.mouseMove(canvas, centre)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, centre)
    for step in (10, 20, 30):
        QTest.mouseMove(canvas, centre + type(centre)(0, step))
        qtbot.wait(12)
    end = centre + type(centre)(0, 30)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, end)
    qtbot.waitUntil(lambda: len(stored(reading)) == 2)
    drawn = stored(reading)[-1]
    assert drawn.plane == reading.planes.panes[0].kind.plane
    assert length_mm(*drawn.points_mm) == pytest.approx(30 / sheet_view.scene.camera.zoom, rel=0.1)
    picture(reading.viewer, "measure_planes")
    reading.planes.set_layout(Layout.ONE)
    qtbot.waitUntil(lambda: len(reading.measuring.views) == 1)


@pytest.mark.night
def test_an_arrow_asks_for_words_on_the_image_and_the_list_has_all(qtbot, reading, picture):
    z, y, x = reading.middle
    section = reading.pages.measure
    section.fold.click()
    section.tools[MeasureKind.ARROW].click()
    drag(qtbot, reading, [(z, y - 8, x - 8), (z, y, x)])
    field = native_of(reading).findChild(QLineEdit, "measure_words")
    assert field.isVisible()
    QTest.keyClicks(field, "clip M")
    QTest.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [one.text for one in stored(reading)] == ["clip M"])
    assert native_of(reading).findChild(QLineEdit, "measure_words") is None
    for kind, places in (
        (
            MeasureKind.CROSS,
            [[(z, y + 4, x - 10), (z, y + 4, x + 10)], [(z, y, x), (z, y + 9, x + 3)]],
        ),
        (MeasureKind.ELLIPSE, [[(z, y - 8, x + 5), (z, y - 2, x + 10)]]),
        (MeasureKind.ANGLE, [[(z, y - 3, x - 12), (z, y - 3, x - 2)], [(z, y - 9, x + 4)] * 2]),
    ):
        section.tools[kind].click()
        for line in places:
            drag(qtbot, reading, line)
    picture(reading.viewer, "measure_all")
    qtbot.waitUntil(lambda: len(stored(reading)) == 4)
    assert section.list.model().rowCount() == 4
    QTest.keyClick(native_of(reading), Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: len(stored(reading)) == 3)
    QTest.keyClick(native_of(reading), Qt.Key.Key_Z, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: len(stored(reading)) == 4)
    section.fold.click()


@pytest.mark.night  # by day: tests/widgets/test_measuring.py
def test_words_of_rulers_that_end_at_one_place_are_all_read(qtbot, reading, whole_window):
    z, y, x = reading.middle
    reading.measuring.use(MeasureKind.RULER)
    end = (z, y, x + 12)
    drag(qtbot, reading, [(z, y, x - 12), (z, y, x), end])
    qtbot.waitUntil(lambda: len(stored(reading)) == 1)
    one = is_line(canvas_pixels(reading, "words_of_one", whole_window))
    drag(qtbot, reading, [(z, y - 12, x), (z, y - 6, x), end])
    qtbot.waitUntil(lambda: len(stored(reading)) == 2)
    reading.measuring.record.choose("")
    both = is_line(canvas_pixels(reading, "words_of_both", whole_window))
    at = pixel_of(reading, end)
    beside = slice(at.x() + 10, at.x() + 110)
    words = [np.flatnonzero(seen[:, beside].any(axis=1)) for seen in (one, both)]
    # rows of letters: twice as many, as no word lies on the other
    assert len(words[1]) >= 1.6 * len(words[0])
    rows = reading.pages.measure.list
    assert rows.sizeHintForRow(0) >= 24
