"""One tool in hand: put down with its page, at rest where a press would not hit what is seen."""

import numpy as np
import pytest
from napari.layers import Image
from tests.halves import half_by_day
from tests.widgets.test_painting import RIGHT, Mouse, mask_of

from napari_mamamia.core.edits import Action, Brush, Extent, Tool
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.brush_cursor import circle_radius_mm, cursor_text, ring_style
from napari_mamamia.widgets.refine.mouse_tools import TOOL_OVERLAY
from napari_mamamia.widgets.refine.state import PaintTool, RefineState

MIP = "MIP shows many slices"


@pytest.fixture
def refining(qtbot, opened):
    """An own mask made from nothing, with a sphere of 4 mm in hand."""
    opened.show_page("Refine")
    opened.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    opened.painting.set_tool(PaintTool.SPHERE)
    opened.painting.set_brush(Brush(tool=Tool.SPHERE, radius_mm=4.0))
    return opened


@pytest.fixture
def mouse(refining):
    return Mouse(refining)


def sign(dock):
    """What stands on the picture of the tool in hand, and in which colour."""
    overlay = dock.viewer.canvas.overlays[TOOL_OVERLAY]
    return overlay.text if overlay.visible else ""


def colour(dock):
    rgb = dock.viewer.canvas.overlays[TOOL_OVERLAY].color[:3]
    return "#" + "".join(f"{round(float(part) * 255):02X}" for part in rgb)


def paints(dock, mouse):
    """Whether a stroke changes the mask."""
    before = mask_of(dock).copy()
    mouse.stroke((2, 8, 8), (2, 8, 10))
    return bool((mask_of(dock) != before).any())


def show_mip(qtbot, dock):
    dock.view_flow.toggle_projection()
    qtbot.waitUntil(lambda: dock.scene.layer(Role.PROJECTION) is not None)


# ----------------------------------------------------------------------- pages


@pytest.mark.parametrize("page", half_by_day(["Cases", "Predict", "Score", "Kinetics", "Export"]))
def test_a_tool_is_put_down_when_its_page_is_left(refining, mouse, page):
    refining.show_page(page)
    assert refining.painting.state.tool is PaintTool.NONE
    assert sign(refining) == ""
    assert not paints(refining, mouse)
    refining.show_page("Refine")  # it does not come back by itself
    assert not paints(refining, mouse)


def test_a_page_that_is_left_in_the_middle_of_a_stroke_ends_it(refining, mouse):
    mouse.press((2, 8, 8))
    refining.show_page("Score")
    painted = mask_of(refining).copy()
    mouse.drag((2, 8, 16))
    mouse.release((2, 8, 16))
    assert painted.sum() > 0
    np.testing.assert_array_equal(mask_of(refining), painted)
    assert refining.editing.live.position == 1


def test_the_key_of_a_tool_goes_to_its_page_where_it_is_pressed_elsewhere(refining, mouse):
    refining.show_page("Score")
    refining.refine_flow.actions()["outline_tool"]()
    assert refining.page == "Refine"
    assert refining.painting.state.tool is PaintTool.OUTLINE
    assert sign(refining) == "Outline · add"


@pytest.mark.parametrize("name", half_by_day(["other_action", "larger", "grow"]))
def test_another_key_of_refine_does_nothing_on_another_page_and_says_so(refining, name):
    refining.show_page("Score")
    state, case_id = refining.painting.state, refining.session.case_id
    refining.refine_flow.actions()[name]()
    assert refining.painting.state == state
    assert not refining.growing.is_busy
    assert refining.session.case_id == case_id
    assert "Refine page" in refining.header.message.text()


def test_letting_go_of_the_compare_key_on_another_page_shows_the_mask_again(refining):
    actions = refining.refine_flow.actions()
    actions["compare"](True)
    assert not refining.editing.layer.visible
    refining.show_page("Score")
    actions["compare"](False)
    assert refining.editing.layer.visible
    actions["compare"](True)
    assert refining.editing.layer.visible


def test_a_box_that_is_waited_for_goes_with_its_page_and_the_image_moves_again(refining):
    refining.show_page("Kinetics")
    refining.kinetics.ftv_box.set_mode("omit")
    assert sign(refining) == "FTV: drag a box to leave out"
    assert not refining.viewer.scene.camera.mouse_pan
    refining.show_page("Score")
    assert not refining.kinetics.ftv_box.is_waiting
    assert sign(refining) == ""
    assert refining.viewer.scene.camera.mouse_pan


def test_another_case_is_opened_with_nothing_in_hand(qtbot, refining):
    refining.opening.open_case("A_2")
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2")
    assert refining.active_tool.tool is None
    assert sign(refining) == ""


def test_a_tool_is_put_down_when_the_dock_is_hidden(refining):
    refining.show()
    assert refining.painting.state.tool is PaintTool.SPHERE
    refining.hide()
    assert refining.active_tool.tool is None


# ------------------------------------------------ where hit and seen are not one


def test_nothing_is_painted_through_a_mip_and_the_reason_goes_with_it(qtbot, refining, mouse):
    show_mip(qtbot, refining)
    assert not paints(refining, mouse)
    assert MIP in refining.header.refusal.text()
    assert sign(refining) == "Sphere · not available here"
    refining.view_flow.toggle_projection()
    assert refining.header.refusal.text() == ""
    assert sign(refining) == "Sphere · add · radius 4.0 mm"
    assert paints(refining, mouse)


def test_a_mip_that_comes_during_a_stroke_ends_it(qtbot, refining, mouse):
    mouse.press((2, 8, 8))
    show_mip(qtbot, refining)
    painted = mask_of(refining).copy()
    mouse.drag((2, 8, 16))
    mouse.release((2, 8, 16))
    np.testing.assert_array_equal(mask_of(refining), painted)


def turn_to_3_d(dock):
    dock.viewer.dims.ndisplay = 3


def thicken(dock):
    dock.viewer.dims.margin_left = (0, 3.0, 0, 0)


def grid_out(dock):
    dock.viewer.canvas.grid.enabled = True


def move_image(dock):
    dock.scene.layer(Role.PHASE).translate = (0, 0, 6.0, 0)


def turn_mask(dock):
    dock.scene.layer(Role.REFINED).rotate = (30.0, 0.0, 0.0)


def hide_mask(dock):
    dock.scene.layer(Role.REFINED).visible = False


def hide_image(dock):
    dock.scene.layer(Role.PHASE).visible = False


def lock_mask(dock):
    dock.scene.layer(Role.REFINED).editable = False


@pytest.mark.parametrize(
    "spoil",
    half_by_day(
        [turn_to_3_d, thicken, grid_out, move_image, turn_mask, hide_mask, hide_image, lock_mask]
    ),
)
def test_nothing_is_painted_where_what_is_hit_is_not_what_is_seen(refining, mouse, spoil):
    assert paints(refining, mouse)
    spoil(refining)
    refining.editing.mask.undo()
    assert not paints(refining, mouse)


def test_nothing_is_painted_while_another_case_is_opened(qtbot, refining, mouse):
    refining.opening.open_case("A_2")
    assert not paints(refining, mouse)
    assert "is being opened" in refining.header.refusal.text()
    qtbot.waitUntil(lambda: refining.session.case_id == "A_2")
    assert refining.header.refusal.text() == ""


def test_a_subtraction_of_the_slice_on_screen_is_painted_on(qtbot, refining, mouse):
    refining.view_flow.toggle_subtraction()
    qtbot.waitUntil(lambda: refining.scene.layer(Role.SUBTRACTION) is not None)
    assert paints(refining, mouse)


def test_a_layer_of_the_users_own_that_was_moved_is_no_reason(refining, mouse):
    refining.viewer.layers.insert(0, Image(np.zeros((4, 4, 4)), translate=(9, 9, 9)))
    refining.painting.set_tool(PaintTool.SPHERE)  # choosing the new layer has put it down
    assert paints(refining, mouse)


def test_no_prompt_is_given_on_a_mip(qtbot, refining, mouse):
    refining.show_page("Predict")
    refining.prompts.set_mode("click")
    given = []
    refining.prompts.given.connect(given.append)
    show_mip(qtbot, refining)
    mouse.stroke((2, 8, 8))
    assert given == []
    assert MIP in refining.header.refusal.text()
    refining.view_flow.toggle_projection()
    mouse.stroke((2, 8, 8))
    assert len(given) == 1


def test_growing_from_what_is_pointed_at_rests_on_a_mip(qtbot, refining, mouse):
    qtbot.waitUntil(lambda: refining.measure.images is not None)
    mouse.move((2, 8, 8))
    show_mip(qtbot, refining)
    refining.growing.grow()
    assert not refining.growing.is_busy
    assert MIP in refining.header.message.text()


def test_the_curve_of_a_hidden_place_is_not_drawn_on_a_mip(qtbot, refining):
    curves = refining.kinetics.curves
    mouse = Mouse(refining)
    curves._position = mouse.world((2, 9, 12))
    curves._follow_pointer()
    assert len(curves.plot().lines) == 1
    show_mip(qtbot, refining)
    assert curves.plot().lines == ()
    curves._position = mouse.world((2, 9, 12))
    curves._follow_pointer()
    assert curves.plot().lines == ()
    curves.pin("cursor")
    assert curves.pinned == []
    assert "many slices" in refining.header.message.text()


# ------------------------------------------------------------- napari's own tools


def test_naparis_brush_goes_to_page_refine_and_is_written_on_the_picture(refining):
    refining.show_page("Score")
    layer = refining.scene.layer(Role.REFINED)
    layer.mode = "erase"
    assert refining.page == "Refine"
    assert sign(refining) == "napari's eraser · erase · 10 voxels wide"
    layer.brush_size = 3
    layer.mode = "paint"
    assert sign(refining) == "napari's brush · add · 3 voxels wide"
    layer.selected_label = 0  # the brush paints nothing then: it erases
    assert sign(refining) == "napari's brush · erase · 3 voxels wide"


def test_naparis_brush_is_put_down_with_the_page_and_by_a_tool_of_ours(refining):
    layer = refining.scene.layer(Role.REFINED)
    layer.mode = "paint"
    assert refining.painting.state.tool is PaintTool.NONE
    refining.show_page("Score")
    assert layer.mode == "pan_zoom"
    layer.mode = "fill"
    refining.painting.set_tool(PaintTool.SPHERE)
    assert layer.mode == "pan_zoom"
    assert refining.painting.state.tool is PaintTool.SPHERE


def test_naparis_brush_is_put_down_on_a_mip_with_the_reason(qtbot, refining):
    layer = refining.scene.layer(Role.REFINED)
    layer.mode = "paint"
    show_mip(qtbot, refining)
    qtbot.waitUntil(lambda: layer.mode == "pan_zoom")
    assert MIP in refining.header.message.text()
    layer.mode = "paint"
    qtbot.waitUntil(lambda: layer.mode == "pan_zoom")


# --------------------------------------------------------------- what is written


def test_the_picture_says_what_a_press_does_and_in_its_colour(refining, mouse):
    assert sign(refining) == "Sphere · add · radius 4.0 mm"
    assert colour(refining) == "#009E73"
    refining.refine_flow.actions()["other_action"]()
    assert sign(refining) == "Sphere · erase · radius 4.0 mm"
    assert colour(refining) == "#D55E00"
    refining.painting.set_tool(PaintTool.NONE)
    assert sign(refining) == ""


def test_the_right_button_is_written_while_it_is_down(refining, mouse):
    mouse.press((2, 8, 8), button=RIGHT)
    assert sign(refining) == "Sphere · erase · radius 4.0 mm"
    assert refining.painting.pressed.brush.action is Action.ERASE
    refining.painting.toggle_action()  # the stroke goes on as it began
    assert sign(refining) == "Sphere · erase · radius 4.0 mm"
    mouse.release((2, 8, 8), button=RIGHT)
    refining.painting.toggle_action()
    assert sign(refining) == "Sphere · add · radius 4.0 mm"


def test_shift_is_the_whole_lesion_also_in_words(qtbot, refining, mouse):
    refining.painting.set_tool(PaintTool.SMARTPAINT)
    assert sign(refining) == "SmartPaint · add · radius 4.0 mm"
    mouse.move((2, 8, 8), modifiers=("Shift",))
    assert sign(refining) == "SmartPaint · add · radius 4.0 mm · whole lesion"
    mouse.move((2, 8, 8))
    assert sign(refining) == "SmartPaint · add · radius 4.0 mm"


@pytest.mark.parametrize(
    ("tool", "brush", "text"),
    [
        (PaintTool.SMARTPAINT, Brush(), "+ add"),
        (PaintTool.SMARTPAINT, Brush().inverted(), "− erase"),
        (PaintTool.SMARTPAINT, Brush(whole=True).inverted(), "− erase, whole lesion"),
        (PaintTool.SMOOTH, Brush(tool=Tool.SMOOTH), "~ smooth"),
        (PaintTool.SPHERE, Brush(tool=Tool.SPHERE).inverted(), "− sphere erase"),
        (PaintTool.SPHERE, Brush(tool=Tool.SPHERE, extent=Extent.PLANE), "+ sphere add 2-D"),
        (PaintTool.OUTLINE, Brush().inverted(), "− outline"),
        (PaintTool.NONE, Brush(), ""),
    ],
)
def test_the_text_at_the_cursor_says_what_a_press_does(tool, brush, text):
    assert cursor_text(RefineState(tool, brush)) == text


def test_smartpaint_shows_what_is_held_its_circle_and_how_far_it_acts():
    """10 mm: core min(1.5, 3.5) mm, window 1.6 x 10 + 4 = 20 mm; 2 mm: .7 and 7.2 mm."""
    large = RefineState(PaintTool.SMARTPAINT, Brush(radius_mm=10.0))
    small = RefineState(PaintTool.SMARTPAINT, Brush(radius_mm=2.0).inverted())
    assert circle_radius_mm(large) == 10.0
    assert (ring_style(large).inner, ring_style(large).outer) == pytest.approx((0.15, 2.0))
    assert (ring_style(small).inner, ring_style(small).outer) == pytest.approx((0.35, 3.6))
    assert (ring_style(large).colour, ring_style(small).colour) == ("#009E73", "#D55E00")
    whole = RefineState(PaintTool.SMARTPAINT, Brush(whole=True))
    assert ring_style(whole).outer is None
    sphere = ring_style(RefineState(PaintTool.SPHERE, Brush(tool=Tool.SPHERE)))
    assert (sphere.inner, sphere.outer) == (None, None)


def test_naparis_brush_circle_has_no_box_that_stays_on_the_canvas(opened):
    assert not opened.viewer.canvas.overlays["_brush_circle"].box


def test_a_suggested_radius_goes_with_the_brush(refining):
    suggested = refining.refine_page.tools.suggested
    refining.refine_page.tools.show_suggestion(3.0)
    refining.painting.set_tool(PaintTool.OUTLINE)
    assert suggested.text() == ""


def test_a_note_on_growing_goes_with_its_step(qtbot, refining, world):
    qtbot.waitUntil(lambda: refining.measure.images is not None)
    mouse = Mouse(refining)
    mouse.stroke((2, 9, 12))
    refining.growing.grow()
    note = refining.refine_page.tools.grow_note
    qtbot.waitUntil(lambda: "a note" in note.text())
    refining.editing.mask.undo()
    assert note.text() == ""
    refining.editing.mask.redo()
    assert "a note" in note.text()
