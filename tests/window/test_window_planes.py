"""Three planes in a real window: the mouse on every canvas, and nothing left when they close."""

import numpy as np
import pytest
from napari.qt import QtViewer
from one_window import forget_mask, put_back
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QFrame

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.pane_sides import Sides
from napari_mamamia.widgets.viewer.pane_window import canvas_place
from napari_mamamia.widgets.viewer.planes import Layout

pytestmark = pytest.mark.window

PLACE = (4, 17, 23)
"""A voxel (z, y, x) in the tumour."""


def main_canvas(panel):
    return panel.viewer.window._qt_viewer.canvas.native


def lay_out(qtbot, panel, layout):
    panel.planes.set_layout(layout)
    qtbot.waitUntil(lambda: not panel.planes.is_building)
    qtbot.wait(120)


@pytest.fixture
def window(dock_of_module):
    return dock_of_module.viewer


@pytest.fixture
def three(qtbot, dock_of_module, data_set_of_module):
    """A case in three planes, at its tumour: opened once, and for each test as it was then."""
    panel = dock_of_module
    if panel.session.case is None:
        put_back(qtbot, panel)
        panel.open_data_set(data_set_of_module, "A_1")
        qtbot.waitUntil(lambda: panel.session.case is not None)
        qtbot.waitUntil(lambda: panel.session.case.is_loaded)
    forget_mask(panel)
    lay_out(qtbot, panel, Layout.PLANES)
    panel.scene.view.go_to(PLACE)
    qtbot.waitUntil(lambda: panel.planes.links.place == PLACE)
    assert len(panel.planes.panes) == 2
    assert set(panel.session.masks) == {Role.REFERENCE}
    assert panel.viewer.theme == "dark"
    return panel


def pixel(panel, pane, voxel):
    """Return where on a pane's canvas a voxel (z, y, x) is drawn."""
    grid = panel.session.case.grid
    frame = grid.display_frame()
    spacing = frame.per_axis(grid.spacing_mm)
    shown = frame.point_to_display(voxel, grid.shape)
    canvas = panel.planes.window.canvas(pane)
    world = [i * mm for i, mm in zip(shown, spacing, strict=True)]
    x, y = canvas_place(world, pane.model, (canvas.width(), canvas.height()))
    return canvas, QPoint(round(x), round(y))


@pytest.mark.night  # by day: tests/widgets/test_planes.py
def test_a_click_in_the_sagittal_plane_moves_the_others(qtbot, three, picture, window):
    sagittal = three.planes.panes[0]
    canvas, at = pixel(three, sagittal, (6, 12, three.planes.links.place[2]))
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    z, y, _ = three.planes.links.place
    assert (z, y) == (6, 12)
    assert window.dims.current_step[1] == 6
    picture(window, "20_three_planes")


@pytest.mark.parametrize("neurological", [pytest.param(False, marks=pytest.mark.night), True])
def test_a_stroke_on_the_coronal_canvas_paints_where_it_is_seen(
    qtbot, three, window, picture, neurological
):
    three.planes.set_sides(Sides(neurological))
    three.session.set_reader("Ana")
    three.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: three.editing.live is not None)
    three.painting.set_tool(PaintTool.SPHERE)
    three.painting.set_brush(Brush(tool=Tool.SPHERE, radius_mm=2.5))
    coronal = three.planes.panes[1]
    mask = three.session.mask(Role.REFINED).buffer
    y = three.planes.links.place[1]
    assert mask[2, y, 10] == 0
    canvas, at = pixel(three, coronal, (2, y, 10))
    centre = tuple(coronal.model.scene.camera.center)
    QTest.mouseMove(canvas, at)
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: bool(mask[2, y, 10]))
    assert mask[2, y, 48 - 1 - 10] == 0
    assert tuple(coronal.model.scene.camera.center) == centre
    picture(window, f"21_painted_{neurological}")


def turn_wheel(canvas, at, turns, key=Qt.KeyboardModifier.NoModifier):
    """Turn the wheel over a canvas as the system does, 120 units a notch."""
    place, step = QPointF(at), QPoint(0, 120 * turns)
    none, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(place, canvas.mapToGlobal(place), QPoint(), step, none, key, phase, False)
    QApplication.sendEvent(canvas, event)


def test_the_wheel_goes_through_the_slices_of_the_plane_below_it_and_zooms_with_ctrl(qtbot, three):
    canvas = main_canvas(three)
    middle = QPoint(canvas.width() // 2, canvas.height() // 2)
    camera, before = three.viewer.scene.camera, three.viewer.dims.current_step
    zoom = camera.zoom
    turn_wheel(canvas, middle, -1)
    assert three.viewer.dims.current_step[1] == before[1] + 1
    assert three.viewer.dims.current_step[0] == before[0]
    assert camera.zoom == zoom
    turn_wheel(canvas, middle, 1, Qt.KeyboardModifier.ControlModifier)
    assert three.viewer.dims.current_step[1] == before[1] + 1
    assert camera.zoom == pytest.approx(1.2 * zoom)
    turn_wheel(canvas, middle, -1, Qt.KeyboardModifier.ControlModifier)
    turn_wheel(canvas, middle, 1)
    assert three.viewer.dims.current_step == before
    # over the sagittal plane it is x that changes, and the others follow
    sagittal, at = pixel(three, three.planes.panes[0], PLACE)
    turn_wheel(sagittal, at, -1)
    qtbot.waitUntil(lambda: three.planes.links.place != PLACE)
    assert three.planes.links.place[:2] == PLACE[:2]
    assert abs(three.planes.links.place[2] - PLACE[2]) == 1


def test_the_cross_hair_is_drawn_on_all_three_canvases(three):
    canvases = [main_canvas(three)]
    canvases += [three.planes.window.canvas(pane) for pane in three.planes.panes]
    for canvas in canvases:
        lines = [f for f in canvas.findChildren(QFrame) if f.objectName().startswith("crosshair")]
        assert sum(line.isVisible() for line in lines) >= 3


def test_a_key_after_a_click_on_a_plane_hides_them_and_shows_the_main_view_alone(
    qtbot, three, window
):
    main_canvas(three).setFocus()
    canvas, at = pixel(three, three.planes.panes[0], (4, 12, 20))
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    assert three.window().focusWidget() is main_canvas(three)
    QTest.keyClick(main_canvas(three), Qt.Key.Key_J)
    assert three.planes.panes == []

    def is_alone():
        return [view.viewer for view in QtViewer._instances if view.isVisible()] == [window]

    qtbot.waitUntil(is_alone)
    assert not main_canvas(three).findChild(QFrame, "crosshair_left").isVisible()
    shown = window.screenshot(canvas_only=True, flash=False)[..., :3]
    assert np.asarray(shown).max() > 200


@pytest.mark.night
def test_no_scale_bar_reaches_the_letter_below_the_image(three):
    """The bar takes a quarter of its canvas at most, however the view came to its zoom."""
    for pane in three.planes.panes:
        canvas = three.planes.window.canvas(pane)
        picture = canvas.grab().toImage()
        width, height = picture.width(), picture.height()
        rows = range(height - height // 6, height)
        white = [
            x
            for x in range(width // 2 - width // 10, width)
            if any(picture.pixelColor(x, y).value() > 240 for y in rows)
        ]
        bar = [x for x in white if x > width * 0.55]
        assert bar
        assert min(bar) > width * 0.65


def test_a_double_click_shows_one_view_alone_and_another_shows_all(qtbot, three):
    sagittal, at = pixel(three, three.planes.panes[0], PLACE)
    main = main_canvas(three)
    before = sagittal.width(), main.width()
    main.setFocus()
    here = three.scene.view.slice_shown()[1]
    QTest.mouseDClick(sagittal, Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: sagittal.width() > before[0] + 100)
    assert main.visibleRegion().isEmpty()
    assert three.window().focusWidget() is sagittal
    QTest.keyClick(sagittal, Qt.Key.Key_Down)
    assert three.scene.view.slice_shown()[1] == here + 1
    QTest.mouseDClick(sagittal, Qt.MouseButton.LeftButton, pos=sagittal.rect().center())
    qtbot.waitUntil(lambda: not main.visibleRegion().isEmpty())
    assert (sagittal.width(), main.width()) == before
