"""Whole stories in a real window, each state with a picture."""

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.mask_watch import SaveState

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def double_click(panel, case_id):
    page = panel.cases_page
    at = page.queue().index(case_id)
    where = page.table.visualRect(page.model.index(at, 0)).center()
    QTest.mouseClick(page.table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.mouseDClick(page.table.viewport(), Qt.MouseButton.LeftButton, pos=where)


def list_data_set(qtbot, panel, folder):
    panel.cases_page.folder.setText(str(folder))
    QTest.keyClick(panel.cases_page.folder, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel.session.opened is not None)


def has_colour(pixels, hexadecimal, at_least=20):
    colour = np.array([int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5)])
    close = np.abs(pixels.astype(int) - colour).max(axis=-1) < 30
    return int(close.sum()) >= at_least


def canvas_widget(panel):
    """The widget that draws the image: the one with the keyboard after a case was opened."""
    return panel.viewer.window._qt_viewer.canvas.native


def test_the_main_job_from_an_empty_window_to_the_mask_after_a_restart(
    qtbot, window, docked, small_data_set, control, picture, canvas
):
    picture(window, "01_nothing_open")
    list_data_set(qtbot, docked, small_data_set)
    assert docked.cases_page.queue() == ["A_1", "A_2", "B_1"]
    picture(window, "02_data_set_open")

    double_click(docked, "A_2")
    wait_open(qtbot, docked, "A_2")
    picture(window, "03_case_open")
    shown = canvas(window)
    assert shown.max() > 200
    assert has_colour(shown, "#56B4E9")
    assert docked.header.position.text() == "2 / 3"
    assert docked.window().focusWidget() is canvas_widget(docked)

    docked.show_page("Predict")
    control(docked, "predict_start")
    qtbot.waitUntil(lambda: docked.session.mask(Role.PREDICTION) is not None)
    picture(window, "04_predicted")
    assert has_colour(canvas(window), "#E69F00")
    assert docked.session.workspace.prediction("kinetic", "A_2").exists()

    docked.show_page("Refine")
    control(docked, "refine_from_prediction")
    docked.header.reader_name.setText("Ana")
    control(docked, "header_reader_ok")
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    before = int(docked.session.mask(Role.REFINED).buffer.sum())
    control(docked, "refine_tool_sphere")
    picture(window, "05_editing")
    paint_a_stroke(qtbot, docked)
    assert docked.session.mask(Role.REFINED).buffer.sum() > before
    picture(window, "06_unsaved")
    assert "unsaved" in docked.header.saved.text()
    control(docked, "refine_save")
    qtbot.waitUntil(lambda: docked.editing.state is SaveState.SAVED)
    picture(window, "07_saved")
    painted = docked.session.mask(Role.REFINED).buffer.copy()

    docked.show_page("Score")
    dice = docked.findChild(QWidget, "score_refined_dsc")
    qtbot.waitUntil(lambda: dice.text() != "–")
    picture(window, "08_scored")

    path = docked.session.workspace.refined("Ana", "A_2")
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)
    docked.cases_flow.open_case("A_1")
    wait_open(qtbot, docked, "A_1")
    assert docked.session.mask(Role.REFINED) is None
    docked.cases_flow.open_case("A_2")
    wait_open(qtbot, docked, "A_2")
    np.testing.assert_array_equal(docked.session.mask(Role.REFINED).buffer, painted)
    assert has_colour(canvas(window), "#009E73")


def paint_a_stroke(qtbot, panel):
    """Drag the brush over the canvas with the mouse, near the middle of the image."""
    native = canvas_widget(panel)
    middle = QPoint(native.width() // 2, native.height() // 2)
    QTest.mouseMove(native, middle)
    QTest.mousePress(native, Qt.MouseButton.LeftButton, pos=middle)
    for step in range(1, 6):
        QTest.mouseMove(native, middle + QPoint(8 * step, 0))
        qtbot.wait(10)
    QTest.mouseRelease(native, Qt.MouseButton.LeftButton, pos=middle + QPoint(40, 0))
    qtbot.waitUntil(lambda: panel.editing.is_dirty)


def test_the_keys_reach_the_window(qtbot, window, docked, small_data_set, picture):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    qtbot.waitUntil(lambda: docked.scene.layer(Role.REFERENCE) is not None)
    native = canvas_widget(docked)
    QTest.keyClick(native, Qt.Key.Key_Period)
    assert docked.scene.phase == 2
    QTest.keyClick(native, Qt.Key.Key_Comma)
    assert docked.scene.phase == 1
    QTest.keyPress(native, Qt.Key.Key_H)
    assert not docked.scene.layer(Role.REFERENCE).visible
    QTest.keyRelease(native, Qt.Key.Key_H)
    assert docked.scene.layer(Role.REFERENCE).visible
    QTest.keyClick(native, Qt.Key.Key_H, Qt.KeyboardModifier.ShiftModifier)
    assert docked.scene.layer(Role.REFERENCE).contour == 0
    QTest.keyClick(native, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: docked.scene.layer(Role.SUBTRACTION) is not None)
    picture(window, "09_subtraction")
    QTest.keyClick(native, Qt.Key.Key_N)
    wait_open(qtbot, docked, "A_2")
    QTest.keyClick(native, Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
    wait_open(qtbot, docked, "A_1")
    docked.window().activateWindow()
    qtbot.waitUntil(docked.window().isActiveWindow)
    QTest.keyClick(native, Qt.Key.Key_Question)
    qtbot.waitUntil(docked.keys_panel.isVisible)
    picture(window, "10_keys")


def test_the_middle_button_sets_window_and_level(qtbot, window, docked, small_data_set):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    native = canvas_widget(docked)
    layer = docked.scene.layer(Role.PHASE)
    low, high = layer.contrast_limits
    centre = tuple(window.scene.camera.center)
    QTest.mousePress(native, Qt.MouseButton.MiddleButton, pos=QPoint(200, 200))
    QTest.mouseMove(native, QPoint(300, 200))
    qtbot.wait(20)
    QTest.mouseRelease(native, Qt.MouseButton.MiddleButton, pos=QPoint(300, 200))
    # 100 of 400 pixels: a quarter wider, half of it on each side
    width = high - low
    assert tuple(layer.contrast_limits) == pytest.approx((low - width / 8, high + width / 8))
    assert tuple(window.scene.camera.center) == centre


def test_letters_scale_bar_and_phase_stand_on_the_image(
    qtbot, window, docked, small_data_set, canvas
):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    with_text = canvas(window).astype(int)
    for overlay in window.canvas.overlays.values():
        overlay.visible = False
    without = canvas(window).astype(int)
    changed = np.abs(with_text - without).max(axis=-1) > 60
    height, width = changed.shape
    edge = 60
    for name, part in {
        "left": changed[height // 3 : -height // 3, :edge],
        "right": changed[height // 3 : -height // 3, -edge:],
        "top": changed[:edge, width // 3 : -width // 3],
        "bottom": changed[-edge:, width // 3 : -width // 3],
        "phase": changed[:edge, : width // 3],
        "scale bar": changed[-edge:, -width // 4 :],
    }.items():
        assert part.sum() > 10, name


SMALL, LARGE = (1400, 900), (1900, 1050)


@pytest.mark.parametrize(
    "states",
    [
        [("dark", *SMALL), ("light", *LARGE)],
        pytest.param([("dark", *LARGE), ("light", *SMALL)], marks=pytest.mark.night),
    ],
    ids=["day", "others"],
)
def test_every_page_fits_in_both_themes_and_sizes(
    qtbot, window, docked, small_data_set, whole_window, states
):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    for theme, width, height in states:
        window.theme = theme
        window.window.resize(width, height)
        for page in ("Cases", "Predict", "Refine", "Score", "Export"):
            docked.show_page(page)
            pixels = whole_window(window, f"page_{page.lower()}_{theme}_{width}")
            assert pixels[:, -docked.width() :].astype(int).std() > 5, (page, theme, width)
            assert docked.pages.stack.currentWidget().height() <= docked.height()
            assert docked.minimumSizeHint().width() <= docked.width()
