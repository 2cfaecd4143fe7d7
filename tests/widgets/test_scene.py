from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtWidgets import QApplication

from napari_mamamia.widgets.base.layers import Role, array_of, find_layers, tag_for, tag_of
from napari_mamamia.widgets.viewer import slice_view
from napari_mamamia.widgets.viewer.scene import Scene


@pytest.fixture
def scene(viewer, case):
    made = Scene(viewer)
    made.show_case(case, (0.0, 400.0))
    return made


def roles(viewer):
    return [str(tag_of(layer).role) for layer in find_layers(viewer.layers)]


def test_masks_lie_above_the_phases_in_fixed_order(scene, viewer, case, new_mask):
    for role in (Role.REFINED, Role.REFERENCE, Role.PREDICTION):
        scene.show_mask(tag_for(case, role), new_mask(case.grid))
    assert roles(viewer) == ["phase", "reference", "prediction", "refined"]


def test_showing_a_mask_again_replaces_its_data_and_keeps_its_visibility(scene, case, new_mask):
    layer = scene.show_mask(tag_for(case, Role.PREDICTION), new_mask(case.grid))
    layer.visible = False
    other = np.zeros(case.grid.shape, np.uint8)
    again = scene.show_mask(tag_for(case, Role.PREDICTION), other)
    assert again is layer
    assert not again.visible
    assert np.shares_memory(again.data, other)


def test_undo_after_a_replaced_mask_does_not_bring_back_old_voxels(scene, case, new_mask):
    layer = scene.show_mask(tag_for(case, Role.REFINED), new_mask(case.grid))
    layer.paint((1, 1, 1), 1)
    other = np.zeros(case.grid.shape, np.uint8)
    scene.show_mask(tag_for(case, Role.REFINED), other)
    layer.undo()
    assert not other.any()


def test_a_new_case_takes_the_place_of_the_one_before(scene, viewer, case, new_case, new_mask):
    scene.show_mask(tag_for(case, Role.REFERENCE), new_mask(case.grid))
    scene.show_mask(tag_for(case, Role.PREDICTION), new_mask(case.grid))
    other = new_case("B_1", np.diag([-1.0, 1.0, 4.0, 1.0]), (9, 16, 18))
    scene.retire_case({Role.REFERENCE})
    layer = scene.show_case(other, (0.0, 300.0))
    scene.stack.remove_retired()
    scene.show_mask(tag_for(other, Role.REFERENCE), np.zeros(other.grid.shape, np.uint8))
    assert roles(viewer) == ["phase", "reference"]
    assert {tag_of(found).case_id for found in viewer.layers} == {"B_1"}
    assert layer.data.shape == (3, 9, 16, 18)
    assert np.shares_memory(layer.data, other.signal)
    assert tuple(layer.scale) == (1.0, 4.0, 1.0, 1.0)


def test_layers_of_the_user_are_left_alone(scene, viewer, new_case):
    own = viewer.add_image(np.zeros((6, 20, 24)), name="my own")
    scene.show_case(new_case("B_1"), (0.0, 300.0))
    assert own in viewer.layers


def test_phases_are_stepped_to_the_ends_and_no_further(scene, viewer):
    scene.go_to_phase(1)
    scene.step_phase(1)
    scene.step_phase(1)
    assert scene.phase == 2
    scene.step_phase(-5)
    assert scene.phase == 0


def test_go_to_shows_the_slice_of_a_voxel(scene, viewer):
    # axial LAS: slices run to superior as z does; anterior up means rows run against y
    scene.view.go_to((4, 3, 7))
    assert viewer.dims.current_step[1:] == (4, 20 - 1 - 3, 7)


def test_go_to_moves_the_view_only_when_asked(scene, viewer):
    before = viewer.scene.camera.center
    scene.view.go_to((4, 3, 7), centre=False)
    assert viewer.scene.camera.center == before
    scene.view.go_to((4, 3, 7))
    # row 16 of 2 mm, column 7 of 1.5 mm
    assert viewer.scene.camera.center[1:] == pytest.approx((32.0, 10.5))


def test_what_is_revealed_moves_the_view_only_where_it_is_zoomed_in_or_out_of_sight(
    scene, viewer, monkeypatch
):
    scene.view.fit()
    zoom, whole = viewer.scene.camera.zoom, viewer.scene.camera.center
    scene.view.reveal((4, 3, 7))
    assert viewer.dims.current_step[1:] == (4, 20 - 1 - 3, 7)
    assert viewer.scene.camera.center == whole, "the whole slice is seen"
    canvas = SimpleNamespace(height=lambda: 200, width=lambda: 300)
    monkeypatch.setattr(slice_view, "canvas_widget", lambda _viewer: canvas)
    # row 16 of 2 mm, column 7 of 1.5 mm: dragged to where it is beyond the upper edge, at 100 px
    viewer.scene.camera.center = (0.0, 32.0 + 101 / zoom, 10.5)
    scene.view.reveal((4, 3, 7))
    assert viewer.scene.camera.center[1:] == pytest.approx((32.0, 10.5))
    just_in_sight = (0.0, 32.0 + 99 / zoom, 10.5 + 149 / zoom)
    viewer.scene.camera.center = just_in_sight
    scene.view.reveal((4, 3, 7))
    assert viewer.scene.camera.center == just_in_sight
    viewer.scene.camera.zoom = 2 * zoom
    scene.view.reveal((4, 3, 7))
    assert viewer.scene.camera.center[1:] == pytest.approx((32.0, 10.5))


@pytest.mark.parametrize("act", ["zoom", "drag", "turn to 3-D"])
def test_a_slice_that_the_user_moved_is_not_as_it_was_fitted(scene, viewer, act):
    """One that nobody moved is fitted again as its canvas changes, the others stay."""
    assert scene.view.is_as_fitted
    camera = viewer.scene.camera
    if act == "zoom":
        camera.zoom *= 1.05
    elif act == "drag":
        camera.center = (0.0, 1.0, 2.0)
    else:
        viewer.dims.ndisplay = 3
    assert not scene.view.is_as_fitted
    viewer.dims.ndisplay = 2
    scene.view.fit()
    assert scene.view.is_as_fitted


def test_the_voxel_under_the_cursor_is_found_back(scene):
    frame = scene.layer(Role.PHASE).metadata["napari_mamamia"].grid.display_frame()
    s, r, c = frame.point_to_display((4, 3, 7), (6, 20, 24))
    assert scene.view.voxel_at((0, s * 3.0, r * 2.0, c * 1.5)) == (4, 3, 7)
    assert scene.view.voxel_at((0, -30.0, 0.0, 0.0)) is None


def test_masks_are_hidden_while_a_key_is_held_and_only_the_visible_ones_return(
    scene, case, new_mask
):
    shown = scene.show_mask(tag_for(case, Role.REFERENCE), new_mask(case.grid))
    off = scene.show_mask(tag_for(case, Role.PREDICTION), new_mask(case.grid))
    off.visible = False
    scene.set_masks_hidden(True)
    assert not shown.visible
    scene.set_masks_hidden(False)
    assert (shown.visible, off.visible) == (True, False)


def test_masks_return_where_the_key_is_pressed_again_without_its_release(scene, case, new_mask):
    """A window that loses the focus while the key is held hears of no release."""
    shown = scene.show_mask(tag_for(case, Role.REFERENCE), new_mask(case.grid))
    off = scene.show_mask(tag_for(case, Role.PREDICTION), new_mask(case.grid))
    off.visible = False
    scene.set_masks_hidden(True)
    off.visible = True
    scene.set_masks_hidden(True)
    assert not off.visible
    scene.set_masks_hidden(False)
    assert (shown.visible, off.visible) == (True, True)


def test_outlines_turn_into_filled_masks_and_back(scene, case, new_mask):
    layer = scene.show_mask(tag_for(case, Role.REFERENCE), new_mask(case.grid))
    scene.toggle_outline()
    assert (layer.contour, layer.opacity) == (0, 0.5)
    scene.toggle_outline()
    assert (layer.contour, layer.opacity) == (1, 1.0)


def test_the_mask_that_matters_most_is_the_refined_one_then_the_prediction(scene, case, new_mask):
    assert scene.shown_mask() is None
    for role in (Role.REFERENCE, Role.PREDICTION, Role.REFINED):
        scene.show_mask(tag_for(case, role), new_mask(case.grid))
        assert tag_of(scene.shown_mask()).role is role
    scene.stack.set_visible(Role.REFINED, False)
    assert tag_of(scene.shown_mask()).role is Role.PREDICTION


def test_nothing_fails_when_the_user_has_deleted_everything(scene, viewer):
    viewer.layers.clear()
    scene.step_phase(1)
    scene.view.go_to((1, 1, 1))
    scene.set_masks_hidden(True)
    scene.set_masks_hidden(False)
    scene.toggle_outline()
    scene.redraw_phases()
    scene.redraw_mask(Role.REFINED)
    scene.overlays.hide_subtraction()
    assert scene.phase is None
    assert scene.shown_mask() is None
    assert scene.view.voxel_at((0, 0, 0, 0)) is None


def test_a_subtraction_hides_the_phases_and_gives_them_back(scene, viewer, case):
    difference = np.full(case.grid.shape, -5.0, np.float32)
    scene.overlays.show_subtraction(
        tag_for(case, Role.SUBTRACTION, phase=1), difference, (0.0, 9.0)
    )
    assert not scene.layer(Role.PHASE).visible
    shown = scene.layer(Role.SUBTRACTION)
    assert tuple(shown.contrast_limits) == (0.0, 9.0)
    np.testing.assert_array_equal(array_of(shown), difference)
    scene.overlays.hide_subtraction()
    assert scene.layer(Role.SUBTRACTION) is None
    assert scene.layer(Role.PHASE).visible


def test_the_next_subtraction_keeps_the_window_that_the_user_set(scene, case):
    difference = np.ones(case.grid.shape, np.float32)
    scene.overlays.show_subtraction(
        tag_for(case, Role.SUBTRACTION, phase=1), difference, (0.0, 9.0)
    )
    scene.layer(Role.SUBTRACTION).contrast_limits = (2.0, 4.0)
    scene.overlays.show_subtraction(
        tag_for(case, Role.SUBTRACTION, phase=2), difference * 2, (0.0, 99.0)
    )
    assert tuple(scene.layer(Role.SUBTRACTION).contrast_limits) == (2.0, 4.0)
    assert tag_of(scene.layer(Role.SUBTRACTION)).phase == 2


def test_the_prompt_box_is_drawn_on_the_slice_and_taken_away(scene, viewer):
    scene.box.draw((4, 3, 7), (4, 9, 12), "#E69F00")
    corners = viewer.layers[-1].data[0]
    # rows 16 and 10 of 2 mm, columns 7 and 12 of 1.5 mm, slice 4 of 3 mm
    assert corners[:, 0] == pytest.approx([12.0] * 4)
    assert sorted({round(float(c), 2) for c in corners[:, 1]}) == [20.0, 32.0]
    assert sorted({round(float(c), 2) for c in corners[:, 2]}) == [10.5, 18.0]
    scene.box.erase()
    assert roles(viewer) == ["phase"]
    assert len(viewer.layers) == 1


@pytest.mark.parametrize("synced", [True, False])
@pytest.mark.parametrize("moment", ["before the parts of napari are there", "after", "at a case"])
def test_an_empty_viewer_is_turned_to_3d_at_any_moment_and_its_view_reset(
    qtbot, viewer, moment, synced
):
    """napari cannot fit its camera to four axes without layers."""

    def turn():
        viewer.scene.camera.synced = synced
        QApplication.processEvents()
        viewer.dims.ndisplay = 3
        QApplication.processEvents()
        viewer.reset_view()

    scene = Scene(viewer)
    steps = scene.warm_up_steps()
    if moment == "before the parts of napari are there":
        turn()
    for step in steps:
        step()
    if moment == "after":
        assert viewer.dims.ndim == 4
        turn()
    scene.expect_case(True)
    if moment == "at a case":
        assert viewer.dims.ndim == 4
        turn()
    viewer.reset_view()
    scene.expect_case(False)
    assert viewer.dims.ndisplay == 3
    viewer.dims.ndisplay = 2
    viewer.scene.camera.synced = True
    scene.expect_case(True)
    assert viewer.dims.ndim == 4


def test_the_next_case_is_fitted_while_masks_of_the_case_before_wait_to_go(
    scene, viewer, case, new_case, new_mask
):
    """The own mask of a large exam left the next one small, at the top of the canvas."""
    scene.show_mask(tag_for(case, Role.REFINED), new_mask(case.grid))
    viewer.add_points([[0.0, 900.0, 900.0]], name="of another plugin")
    scene.retire_case(set())
    scene.show_case(new_case("B_1", np.diag([-1.5, 2.0, 3.0, 1.0]), (6, 8, 10)), (0.0, 400.0))
    # rows of 2 mm, columns of 1.5 mm
    assert viewer.scene.camera.center[1:] == pytest.approx((7.0, 6.75))
    room = zip(viewer.canvas.size, (16, 15), strict=True)
    assert viewer.scene.camera.zoom == pytest.approx(0.95 * min(pixels / mm for pixels, mm in room))


def test_the_tumour_of_the_next_case_is_gone_to_whatever_steps_other_layers_have(
    scene, viewer, case, new_case, new_mask
):
    """Slices of 3 mm before, and 1 mm of another plugin, led to a slice far from the tumour."""
    scene.show_mask(tag_for(case, Role.REFINED), new_mask(case.grid))
    scene.retire_case(set())
    scene.show_case(new_case("B_1", np.diag([-1.5, 2.0, 4.5, 1.0]), (9, 20, 24)), (0.0, 300.0))
    scene.view.go_to((6, 3, 7), centre=False)
    assert scene.view.slice_shown() == (0, 6)
    scene.stack.remove_retired()
    assert scene.view.slice_shown() == (0, 6)
    assert viewer.dims.current_step[1] == 6
    points = [[0.0, 0.0, 0.0], [30.0, 9.0, 9.0]]
    assert viewer.add_points(points, name="of another plugin").extent.step[0] == 1.0
    for z in (2, 7):
        scene.view.go_to((z, 3, 7), centre=False)
        assert scene.view.slice_shown() == (0, z)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (0, 2, 1, 3)])
def test_a_slice_is_fitted_as_napari_fits_it(scene, viewer, order):
    viewer.dims.order = order
    scene.view.fit()
    ours = viewer.scene.camera.zoom, viewer.scene.camera.center
    viewer.reset_view(layers=scene.stack.find(Role.PHASE))
    assert ours[0] == pytest.approx(viewer.scene.camera.zoom)
    assert ours[1][-2:] == pytest.approx(viewer.scene.camera.center[-2:])
