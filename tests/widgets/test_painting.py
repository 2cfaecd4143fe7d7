"""The mouse on the image: events as napari sends them, on a viewer without a window."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.utils._proxies import ReadOnlyWrapper
from napari.utils.interactions import (
    mouse_move_callbacks,
    mouse_press_callbacks,
    mouse_release_callbacks,
    mouse_wheel_callbacks,
)

from napari_mamamia.core.edits import Action, Extent
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool

LEFT, RIGHT = 1, 2


class Mouse:
    """Sends press, move, release and wheel at voxels (z, y, x) of the open case."""

    def __init__(self, dock):
        self.dock, self.viewer = dock, dock.viewer
        self.event = None

    def world(self, voxel):
        grid = self.dock.session.case.grid
        frame = grid.display_frame()
        shown = frame.point_to_display(voxel, grid.shape)
        spacing = frame.per_axis(grid.spacing_mm)
        return (1.0, *(place * mm for place, mm in zip(shown, spacing, strict=True)))

    def send(
        self,
        callbacks,
        kind,
        voxel,
        button=LEFT,
        modifiers=(),
        delta=(0, 1),
        dragging=True,
        pos=(50.0, 60.0),
    ):
        raw = SimpleNamespace(
            type=kind,
            position=self.world(voxel),
            pos=np.array(pos),
            button=button,
            modifiers=modifiers,
            delta=delta,
            handled=False,
            is_dragging=dragging,
        )
        event = ReadOnlyWrapper(raw, exceptions=("handled",))
        callbacks(self.viewer, event)
        layer = self.viewer.layers.selection.active
        if layer is not None and not raw.handled:
            callbacks(layer, event)
        return raw

    def press(self, voxel, **options):
        self.dock.scene.view.go_to(tuple(round(v) for v in voxel), centre=False)
        return self.send(mouse_press_callbacks, "mouse_press", voxel, **options)

    def drag(self, voxel, **options):
        return self.send(mouse_move_callbacks, "mouse_move", voxel, **options)

    def release(self, voxel, **options):
        return self.send(mouse_release_callbacks, "mouse_release", voxel, **options)

    def stroke(self, *voxels, **options):
        self.press(voxels[0], **options)
        for voxel in voxels[1:]:
            self.drag(voxel, **options)
        self.release(voxels[-1], **options)

    def move(self, voxel, **options):
        return self.send(mouse_move_callbacks, "mouse_move", voxel, dragging=False, **options)

    def wheel(self, turns, *modifiers):
        return self.send(
            mouse_wheel_callbacks, "mouse_wheel", (2, 9, 9), modifiers=modifiers, delta=(0, turns)
        )


@pytest.fixture
def refining(qtbot, opened):
    """An own mask made from nothing, with a sphere of 4 mm in hand."""
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    opened.painting.set_tool(PaintTool.SPHERE)
    brush = opened.painting.state.brush
    opened.painting.set_brush(type(brush)(tool=brush.tool, radius_mm=4.0))
    return opened


@pytest.fixture
def mouse(refining):
    return Mouse(refining)


def mask_of(dock):
    return dock.session.mask(Role.REFINED).buffer


def test_a_drag_paints_and_is_one_step(refining, mouse):
    mouse.stroke((2, 8, 8), (2, 8, 12))
    # spacing 3 x 2 x 1.5 mm: a sphere of 4 mm at voxels (2, 8, 8) and (2, 8, 12) holds both centres
    assert mask_of(refining)[2, 8, 8] == mask_of(refining)[2, 8, 12] == 1
    assert refining.editing.live.position == 1
    assert refining.editing.live.steps[0].name == "paint 4 mm (sphere)"


def test_what_is_painted_lies_within_the_circle_that_the_cursor_shows(refining, mouse):
    mouse.stroke((2, 8, 8))
    z, y, x = np.nonzero(mask_of(refining))
    away = np.sqrt(((z - 2) * 3.0) ** 2 + ((y - 8) * 2.0) ** 2 + ((x - 8) * 1.5) ** 2)
    assert away.max() <= refining.scene.layer(Role.REFINED).cursor_size / 2


def test_the_layer_shows_the_painted_array_itself(refining, mouse):
    mouse.stroke((2, 8, 8))
    shown = refining.scene.layer(Role.REFINED).data
    assert np.shares_memory(shown, mask_of(refining))
    assert shown.sum() == mask_of(refining).sum() > 0


def test_the_right_button_does_the_other_action(refining, mouse):
    mouse.stroke((2, 8, 8))
    mouse.stroke((2, 8, 8), button=RIGHT)
    assert mask_of(refining).sum() == 0
    assert refining.editing.live.steps[1].name == "erase 4 mm (sphere)"
    refining.painting.toggle_action()
    mouse.stroke((2, 8, 8), button=RIGHT)
    assert mask_of(refining).sum() > 0


def test_the_image_does_not_move_while_a_tool_is_on_and_moves_again_after(refining, viewer):
    assert not viewer.scene.camera.mouse_pan
    refining.painting.set_tool(PaintTool.NONE)
    assert viewer.scene.camera.mouse_pan


def test_a_right_drag_does_not_zoom(refining, mouse, viewer):
    mouse.press((2, 8, 8), button=RIGHT)
    assert not viewer.scene.camera.mouse_zoom
    mouse.release((2, 8, 8), button=RIGHT)
    assert viewer.scene.camera.mouse_zoom


def test_space_held_moves_the_image(refining, mouse, viewer):
    refining.painting.pause(True)
    assert viewer.scene.camera.mouse_pan
    mouse.stroke((2, 8, 8))
    assert mask_of(refining).sum() == 0
    refining.painting.pause(False)
    assert not viewer.scene.camera.mouse_pan


def test_shift_at_the_press_acts_on_the_whole_lesion_with_smartpaint_alone(refining, mouse):
    painting = refining.painting
    mouse.press((2, 8, 8), modifiers=("Shift",))
    assert not painting.pressed.brush.whole
    mouse.release((2, 8, 8))
    painting.set_tool(PaintTool.SMARTPAINT)
    assert painting.brush_for(False, shift=True).whole
    assert not painting.brush_for(False, shift=False).whole


def test_in_2_d_only_the_slice_on_screen_is_painted(refining, mouse):
    brush = refining.painting.state.brush
    refining.refine_page.tools.extents[Extent.PLANE].click()
    assert refining.painting.state.brush.extent is Extent.PLANE != brush.extent
    mouse.stroke((2, 8, 8))
    assert set(np.nonzero(mask_of(refining))[0]) == {2}


def test_2_d_in_another_plane_paints_that_plane(refining, mouse, viewer):
    refining.refine_page.tools.extents[Extent.PLANE].click()
    viewer.dims.order = (0, 2, 1, 3)
    mouse.stroke((2, 8, 8))
    # the display frame of this axial case shows rows along y: a plane of one y
    assert set(np.nonzero(mask_of(refining))[1]) == {8}


def test_painting_beyond_the_border_changes_only_what_is_inside(refining, mouse):
    mouse.stroke((0, 0, 0), (0, -3, -3))
    assert mask_of(refining)[0, 0, 0] == 1
    assert mask_of(refining)[-1].sum() == mask_of(refining)[:, -1].sum() == 0


def test_the_wheel_with_alt_changes_the_radius(refining, mouse):
    mouse.wheel(1, "Alt")
    assert refining.painting.state.brush.radius_mm == 4.5
    assert not mouse.wheel(1, "Shift").handled
    assert refining.painting.state.brush.radius_mm == 4.5


def test_a_wheel_that_did_not_turn_changes_nothing(refining, mouse):
    """A trackpad sends such an event where a scroll ends."""
    before = refining.painting.state
    assert mouse.wheel(0, "Alt").handled
    assert refining.painting.state == before


def test_the_preview_shows_what_a_press_would_paint_and_paints_nothing(qtbot, refining, mouse):
    mouse.move((2, 8, 8))
    qtbot.waitUntil(lambda: not refining.marks.is_empty)
    shown = refining.scene.layer(Role.MARKS).data.sum()
    assert mask_of(refining).sum() == 0
    mouse.stroke((2, 8, 8))
    assert refining.marks.is_empty
    assert mask_of(refining).sum() == shown


def test_choosing_another_layer_puts_the_tool_down(refining, mouse, viewer):
    viewer.layers.selection.active = refining.scene.layer(Role.PHASE)
    assert refining.painting.state.tool is PaintTool.NONE
    mouse.stroke((2, 8, 8))
    assert mask_of(refining).sum() == 0


def test_an_outline_fills_what_it_encloses_on_its_slice(refining, mouse):
    refining.painting.set_tool(PaintTool.OUTLINE)
    # a square of rows 5 to 9 and columns 6 to 10, whose corners lie half a voxel outside
    mouse.stroke((2, 4.5, 5.5), (2, 4.5, 10.5), (2, 9.5, 10.5), (2, 9.5, 5.5))
    expected = np.zeros(mask_of(refining).shape, np.uint8)
    expected[2, 5:10, 6:11] = 1
    np.testing.assert_array_equal(mask_of(refining), expected)
    assert refining.editing.live.steps[0].name == "outline"
    assert refining.refine_page.tools.outlines.text() == "from 1 outline"


def test_an_outline_in_another_plane_lies_in_that_plane(refining, mouse, viewer):
    refining.painting.set_tool(PaintTool.OUTLINE)
    viewer.dims.order = (0, 2, 1, 3)
    mouse.stroke((0.5, 8, 5.5), (0.5, 8, 10.5), (3.5, 8, 10.5), (3.5, 8, 5.5))
    expected = np.zeros(mask_of(refining).shape, np.uint8)
    expected[1:4, 8, 6:11] = 1
    np.testing.assert_array_equal(mask_of(refining), expected)


def test_the_right_button_takes_an_outline_away(refining, mouse):
    refining.painting.set_tool(PaintTool.OUTLINE)
    square = [(2, 4.5, 5.5), (2, 4.5, 10.5), (2, 9.5, 10.5), (2, 9.5, 5.5)]
    mouse.stroke(*square)
    mouse.stroke(*square, button=RIGHT)
    assert mask_of(refining).sum() == 0
    assert refining.editing.live.position == 2


def test_a_stroke_that_fails_is_said_and_leaves_the_mask_as_it_was(refining, mouse, monkeypatch):
    mouse.stroke((2, 8, 8))
    before = mask_of(refining).copy()

    def broken(_point):
        raise MemoryError

    mouse.press((2, 12, 12))
    monkeypatch.setattr(refining.editing.live, "drag", broken)
    mouse.drag((2, 12, 14))
    mouse.release((2, 12, 14))
    assert "not enough memory" in refining.header.message.text()
    np.testing.assert_array_equal(mask_of(refining), before)


@pytest.mark.parametrize("tool", [PaintTool.SPHERE, PaintTool.OUTLINE])
def test_plain_tools_paint_before_all_phases_are_read(refining, mouse, tool, caplog):
    refining.editing.live.images = None
    refining.painting.set_tool(tool)
    mouse.stroke((2, 8, 8), (2, 8, 12), (2, 12, 12), (2, 12, 8))
    assert mask_of(refining).sum() > 0
    assert not caplog.records


def test_smartpaint_without_its_images_is_refused_with_the_reason(refining, mouse, caplog):
    refining.editing.live.images = None
    refining.painting.set_tool(PaintTool.SMARTPAINT)
    mouse.stroke((2, 8, 8))
    assert "phases are read" in refining.header.message.text()
    assert mask_of(refining).sum() == 0
    assert not any(record.exc_info for record in caplog.records)  # a refusal, no traceback
    assert "wait until all phases are read" in caplog.text


def test_a_tool_without_an_own_mask_says_what_to_do(opened):
    opened.painting.set_tool(PaintTool.SMARTPAINT)
    assert "Start from" in opened.header.message.text()
    assert opened.painting.state.tool is PaintTool.NONE


def test_painting_in_a_3_d_view_says_what_to_do(refining, mouse, viewer):
    viewer.dims.ndisplay = 3
    mouse.stroke((2, 8, 8))
    assert "3-D view" in refining.header.refusal.text()
    assert mask_of(refining).sum() == 0


def test_adding_and_erasing_change_on_the_key(refining):
    refining.refine_flow.actions()["other_action"]()
    assert refining.painting.state.brush.action is Action.ERASE
    assert refining.refine_page.tools.actions[Action.ERASE].isChecked()


def test_naparis_alt_wheel_is_given_back_with_the_tool(refining, viewer):
    names = [function.__name__ for function in viewer.mouse_wheel_callbacks]
    assert "layers_scroll" not in names
    refining.painting.set_tool(PaintTool.NONE)
    names = [function.__name__ for function in viewer.mouse_wheel_callbacks]
    assert names.count("layers_scroll") == 1


def test_a_second_view_of_the_case_paints_in_its_own_plane(refining, mouse):
    other = ViewerModel()
    other.add_image(refining.scene.layer(Role.PHASE).data, scale=(1, 3, 2, 1.5))
    other.dims.order = (0, 2, 1, 3)
    refining.painting.attach(other)
    refining.refine_page.tools.extents[Extent.PLANE].click()
    mouse.viewer = other
    mouse.stroke((2, 8, 8))
    assert set(np.nonzero(mask_of(refining))[1]) == {8}
    assert len(set(np.nonzero(mask_of(refining))[0])) > 1
