"""What stands on the canvas comes from one picture while it does not change, and looks the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import QPoint
from qtpy.QtGui import QImage
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget
from tests.conftest import PATIENCE_MS
from tests.window.test_light_steps import FIRST, canvas_pixels, show

from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.writing import draw_writing_once
from napari_mamamia.widgets.base.layers import Role

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.fixture
def stage(shared_dock):
    """The viewer with a case and its texts, vispy's canvas, and what draws the texts."""
    show(shared_dock.scene, FIRST)
    shared_dock.canvas_text.set_loaded(None)
    viewer = shared_dock.viewer
    view = main_view(viewer)
    canvas = view.canvas._scene_canvas
    (writing,) = (part for part in canvas.draw_visual.args if hasattr(part, "take"))
    rest = writing._timer.interval()
    writing._timer.setInterval(10 * PATIENCE_MS)
    see(canvas)
    yield SimpleNamespace(viewer=viewer, view=view, canvas=canvas, writing=writing, rest=rest)
    writing._timer.setInterval(rest)


def see(canvas):
    """Return what the window itself shows of the canvas, (rows, columns, RGB)."""
    for _ in range(4):
        QApplication.processEvents()
    image = canvas.native.grabFramebuffer().convertToFormat(QImage.Format.Format_RGBA8888)
    data = image.constBits()
    data.setsize(image.sizeInBytes())
    pixels = np.frombuffer(data, np.uint8).reshape(image.height(), -1, 4)
    return pixels[:, : image.width(), :3].astype(int)


def see_both(stage):
    """Return the canvas as napari draws it, and with the picture."""
    stage.writing.forget()
    stage.canvas.update()
    anew = see(stage.canvas)
    assert not stage.writing.is_drawn
    stage.writing.take()
    still = see(stage.canvas)
    assert stage.writing.is_drawn
    return anew, still


def write(stage, text):
    stage.viewer.canvas.overlays["mamamia_phase"].text = text


def narrow(stage):
    stage.view.window().resize(1100, 700)


def turn(stage):
    stage.viewer.dims.order = (0, 3, 1, 2)


def hide(stage):
    stage.viewer.canvas.overlays["mamamia_left"].visible = False


def test_the_picture_has_the_pixels_of_what_it_stands_for(stage):
    anew, still = see_both(stage)
    assert np.abs(anew - still).max() <= 1  # one rounding more
    stage.viewer.dims.set_current_step(1, 6)
    stepped = see(stage.canvas)
    assert stage.writing.is_drawn
    stage.writing.forget()
    assert np.abs(see(stage.canvas) - stepped).max() <= 1


def say(stage):
    write(stage, "phase 9 · 777 s")


@pytest.mark.parametrize(
    "change",
    [say, *(pytest.param(one, marks=pytest.mark.night) for one in (narrow, turn, hide))],
)
def test_a_change_is_on_the_screen_at_once_and_in_the_next_picture(stage, change):
    _, before = see_both(stage)
    change(stage)
    after = see(stage.canvas)
    assert after.shape != before.shape or (after != before).any()
    anew, still = see_both(stage)
    assert np.abs(anew - after).max() == 0
    assert np.abs(anew - still).max() <= 1


def test_the_picture_is_taken_when_nothing_of_it_changed_for_a_moment(qtbot, stage):
    stage.writing._timer.setInterval(stage.rest)
    stage.writing.forget()
    see(stage.canvas)
    qtbot.waitUntil(lambda: bool(stage.writing._whole))
    see(stage.canvas)
    assert stage.writing.is_drawn


def test_a_screenshot_and_a_search_below_the_mouse_draw_all_anew(stage):
    see_both(stage)
    shot = canvas_pixels(stage.viewer)
    stage.writing.forget()
    assert np.abs(canvas_pixels(stage.viewer).astype(int) - shot).max() <= 1
    see_both(stage)
    QTest.mouseMove(stage.canvas.native, QPoint(20, 20))
    stage.canvas.visual_at((20, 20))
    assert np.abs(see(stage.canvas) - see_both(stage)[0]).max() <= 1


def test_without_napari_s_private_parts_nothing_is_changed():
    bare = SimpleNamespace(canvas=SimpleNamespace(_scene_canvas=SimpleNamespace()))
    draw_writing_once(bare)
    assert vars(bare.canvas._scene_canvas) == {}


def test_the_legend_of_agreement_lies_on_the_picture_and_moves_nothing(
    qtbot, docked, small_data_set
):
    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    docked.predict()
    qtbot.waitUntil(lambda: docked.scene.layer(Role.PREDICTION) is not None)
    docked.show_page("Score")
    buttons = [docked.findChild(QWidget, f"step_{name}") for name in ("read", "check")]
    buttons += [docked.findChild(QWidget, f"section_{name}") for name in ("score", "export")]
    qtbot.wait(100)
    before = [one.mapTo(docked, QPoint(0, 0)) for one in buttons]
    docked.reviewing.turn_on()
    qtbot.waitUntil(lambda: "missed" in docked.legend.text())
    qtbot.wait(100)
    assert [one.mapTo(docked, QPoint(0, 0)) for one in buttons] == before
    native = main_view(docked.viewer).canvas.native
    assert docked.legend.isVisible()
    place = docked.legend.geometry()
    assert native.rect().contains(place)
    assert place.right() < native.width() / 2  # the letter in the middle is free
    under = QApplication.widgetAt(native.mapToGlobal(place.center()))
    assert under is native  # a press on it is one on the picture
    docked.viewer.canvas.overlays["mamamia_map"].text = "P\nL\nW"
    docked.viewer.canvas.overlays["mamamia_map"].visible = True
    assert docked.legend.geometry().bottom() < place.bottom() - 30  # over the map's own
    docked.viewer.canvas.overlays["mamamia_map"].visible = False
    docked.viewer.window.resize(1100, 700)
    qtbot.waitUntil(lambda: native.height() - docked.legend.geometry().bottom() < 10)
    docked.reviewing.turn_off()
    assert not docked.legend.isVisible()
