"""A dock made before the window is shown: what was drawn meanwhile is all there afterwards."""

import numpy as np
import pytest
from vispy.gloo import gl

from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.colours import MASK_COLOURS
from napari_mamamia.widgets.dock.place import dock_of

DEPTH_FUNC, LESS_OR_EQUAL = 0x0B74, 0x0203


def pixels_of(picture, colour):
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(picture.astype(int) - wanted).max(axis=-1) <= 24).sum())


@pytest.fixture
def hidden(qtbot, make_napari_viewer, small_data_set):
    """A viewer whose dock opened a case, and whose layers were replaced, while it was hidden."""
    viewer = make_napari_viewer(show=False)
    viewer.window.add_plugin_dock_widget("napari-mamamia", "Cases")
    panel = dock_of(viewer)
    qtbot.waitUntil(lambda: panel.docking.home is not None)
    viewer.add_image(np.zeros((4, 4)))
    viewer.layers.clear()
    panel.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.REFERENCE) is not None, timeout=20_000)
    yield viewer
    panel.close_down()


@pytest.fixture
def shown(qtbot, hidden):
    hidden.window.resize(1400, 900)
    hidden.window.show()
    qtbot.waitExposed(hidden.window._qt_window)
    return hidden


@pytest.mark.night
def test_what_a_hidden_window_was_told_of_depths_is_kept_and_its_masks_are_drawn(shown, canvas):
    assert pixels_of(canvas(shown), MASK_COLOURS[Role.REFERENCE]) > 100
    scene = main_view(shown).canvas._scene_canvas
    scene.set_current()
    assert gl.glGetParameter(DEPTH_FUNC) == LESS_OR_EQUAL


def test_masks_are_drawn_over_images_that_write_depths_and_over_ours_by_any_rule(shown, canvas):
    for layer in shown.layers:
        layer.blending = "translucent"
    assert pixels_of(canvas(shown), MASK_COLOURS[Role.REFERENCE]) > 100
    shown.layers[0].blending = "translucent_no_depth"
    main_view(shown).canvas._scene_canvas.context.set_depth_func("less")
    assert pixels_of(canvas(shown), MASK_COLOURS[Role.REFERENCE]) > 100


def test_a_window_without_a_case_is_turned_to_3d_and_back_and_opens_one(
    qtbot, make_napari_viewer, small_data_set
):
    viewer = make_napari_viewer(show=False)
    viewer.window.add_plugin_dock_widget("napari-mamamia", "Cases")
    panel = dock_of(viewer)
    qtbot.waitUntil(lambda: panel.docking.home is not None)
    panel.scene.expect_case(True)
    assert viewer.dims.ndim == 4
    viewer.dims.ndisplay = 3
    qtbot.waitUntil(lambda: viewer.dims.ndim == 3)
    viewer.reset_view()
    panel.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.REFERENCE) is not None, timeout=20_000)
    # napari takes 128 diagonals of what is there
    size = panel.scene.grid.shape * np.array(panel.scene.grid.spacing_mm)
    deep = main_view(viewer).canvas.camera._3D_camera.depth_value
    assert deep == pytest.approx(128 * np.linalg.norm(size))
    viewer.dims.ndisplay = 2
    panel.close_down()
