"""Three linked planes and two phases, on viewers without a window."""

import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Action, Brush, Extent, Tool
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.pane_sides import Sides
from napari_mamamia.widgets.viewer.planes import Layout

LAS = np.diag([-1.5, 2.0, 3.0, 1.0])
# x runs to posterior, y to superior, z to right: a sagittal stack
PSR = np.array([[0, 0, 3.0, 0], [-1.5, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 0, 1.0]])
TURN = np.deg2rad(20)
OBLIQUE = np.array(
    [
        [-1.5 * np.cos(TURN), 0, 3 * np.sin(TURN), 0],
        [0, 2.0, 0, 0],
        [1.5 * np.sin(TURN), 0, 3 * np.cos(TURN), 0],
        [0, 0, 0, 1.0],
    ]
)


def press(viewer, key):
    next(function for binding, function in viewer.keymap.items() if str(binding) == key)(viewer)


def lay_out(qtbot, dock, layout):
    dock.planes.set_layout(layout)
    qtbot.waitUntil(lambda: not dock.planes.is_building)


@pytest.fixture
def three(qtbot, opened):
    """A case in three planes."""
    lay_out(qtbot, opened, Layout.PLANES)
    return opened


def copy_in(pane, role):
    return find_layer(pane.model.layers, role)


def on_screen(model, role):
    """Return the 2-D picture of a layer as the camera shows it, left to right and top to bottom."""
    layer = find_layer(model.layers, role)
    picture = np.asarray(layer._slice.image.raw)
    down, across = (str(way) for way in model.scene.camera.orientation2d)
    return picture[:: -1 if down == "up" else 1, :: -1 if across == "left" else 1]


def letters(model):
    names = ("top", "bottom", "left", "right")
    return "".join(model.canvas.overlays[f"mamamia_{name}"].text for name in names)


def click(model, position, *, modifiers=(), drag=0):
    """Press and release the left button at a world position, `drag` pixels apart."""
    make = {"position": position, "button": 1, "modifiers": modifiers, "handled": False}
    event = SimpleNamespace(type="mouse_press", pos=(50, 50), **make)
    running = [g for g in (f(model, event) for f in model.mouse_drag_callbacks) if g is not None]
    for turn in running:
        next(turn, None)
    event.type, event.pos = "mouse_move", (50 + drag, 50)
    for turn in running:
        next(turn, None)
    event.type = "mouse_release"
    for turn in running:
        next(turn, None)


# ------------------------------------------------------------------------ planes


def test_the_key_shows_the_two_other_planes_and_takes_them_away(qtbot, opened, viewer):
    press(viewer, "J")
    qtbot.waitUntil(lambda: len(opened.planes.panes) == 2)
    assert [pane.kind.plane for pane in opened.planes.panes] == ["sagittal", "coronal"]
    press(viewer, "J")
    assert opened.planes.panes == []


def test_all_planes_share_the_arrays_of_the_case_and_its_masks(three):
    signal = three.session.case.signal
    reference = three.session.mask(Role.REFERENCE).buffer
    for pane in three.planes.panes:
        assert np.shares_memory(copy_in(pane, Role.PHASE).data, signal)
        assert np.shares_memory(copy_in(pane, Role.REFERENCE).data, reference)
        assert array_of(copy_in(pane, Role.PHASE)).shape == signal.shape


@pytest.mark.parametrize(
    ("affine", "sagittal", "coronal"),
    [
        # file axes of LAS: x left, y anterior, z superior. Superior on top is z from its end;
        # anterior on the left is y from its end; the patient's right on the left is x as it is
        (LAS, lambda v, p: v[::-1, ::-1, p[2]], lambda v, p: v[::-1, p[1], :]),
        (LAS * [-1, 1, 1, 1], lambda v, p: v[::-1, ::-1, p[2]], lambda v, p: v[::-1, p[1], ::-1]),
    ],
)
def test_axial_slices_give_upright_sagittal_and_coronal_ones(
    qtbot, dock, world, affine, sagittal, coronal
):
    world.affine = affine
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    lay_out(qtbot, dock, Layout.PLANES)
    dock.planes.links.go_to((3, 7, 11))
    volume = dock.session.case.signal[1]
    first, second = (on_screen(pane.model, Role.PHASE) for pane in dock.planes.panes)
    np.testing.assert_array_equal(first, sagittal(volume, (3, 7, 11)))
    np.testing.assert_array_equal(second, coronal(volume, (3, 7, 11)))
    assert [letters(pane.model) for pane in dock.planes.panes] == ["SIAP", "SIRL"]


def test_sagittal_slices_give_upright_axial_and_coronal_ones(qtbot, dock, world):
    world.affine = PSR
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    lay_out(qtbot, dock, Layout.PLANES)
    assert [pane.kind.plane for pane in dock.planes.panes] == ["axial", "coronal"]
    dock.planes.links.go_to((3, 7, 11))
    volume = dock.session.case.signal[1]
    axial, coronal = (on_screen(pane.model, Role.PHASE) for pane in dock.planes.panes)
    # z runs to the right: the patient's right on the left of the screen is z from its end;
    # x runs to posterior: anterior on top is x as it is; y runs to superior
    np.testing.assert_array_equal(axial, volume[::-1, 7, :].T)
    np.testing.assert_array_equal(coronal, volume[::-1, ::-1, 11].T)
    assert letters(dock.viewer) == "SIAP"
    assert [letters(pane.model) for pane in dock.planes.panes] == ["APRL", "SIRL"]


def test_an_oblique_case_says_so_in_every_plane(qtbot, dock, world):
    world.affine = OBLIQUE
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    assert dock.viewer.canvas.overlays["mamamia_plane"].text == "axial, oblique"
    lay_out(qtbot, dock, Layout.PLANES)
    texts = [pane.model.canvas.overlays["mamamia_plane"].text for pane in dock.planes.panes]
    assert texts == ["sagittal, oblique", "coronal, oblique"]


def test_every_plane_has_a_scale_bar(three):
    assert all(pane.model.canvas.overlays["scale_bar"].visible for pane in three.planes.panes)


# ------------------------------------------------------------------------- place


def test_a_slice_step_in_the_main_view_moves_the_cross_hair_alone(three, viewer):
    sagittal, coronal = three.planes.panes
    before = [tuple(pane.model.dims.current_step) for pane in (sagittal, coronal)]
    _, y, x = three.planes.links.place
    viewer.dims.set_current_step(1, 5)
    assert three.planes.links.place == (5, y, x)
    assert [tuple(pane.model.dims.current_step) for pane in (sagittal, coronal)] == before


def test_a_click_in_one_plane_moves_the_slices_of_the_others(three, viewer):
    sagittal, coronal = three.planes.panes
    # rows of an LAS case run to posterior on screen: row 6 of 20 is y 13; slices are z
    click(sagittal.model, (1.0, 4 * 3.0, 6 * 2.0, 9 * 1.5))
    assert three.planes.links.place == (4, 13, 9)
    assert viewer.dims.current_step[1] == 4
    assert coronal.model.dims.current_step[2] == 6


def test_a_drag_or_a_click_outside_leaves_the_cross_hair(three, viewer):
    place = three.planes.links.place
    click(viewer, (1.0, 3.0, 2.0, 1.5), drag=9)
    click(viewer, (1.0, 3.0, -50.0, 1.5))
    assert three.planes.links.place == place


def test_while_a_tool_is_on_a_click_needs_ctrl(three, viewer):
    three.planes.links.is_free = lambda: False
    place = three.planes.links.place
    click(viewer, (1.0, 6.0, 4.0, 3.0))
    assert three.planes.links.place == place
    click(viewer, (1.0, 6.0, 4.0, 3.0), modifiers=("Control",))
    assert three.planes.links.place == (2, 17, 2)


def test_the_cross_hair_follows_the_mouse_while_shift_is_held(three, viewer):
    event = SimpleNamespace(position=(1.0, 6.0, 4.0, 3.0), modifiers=("Shift",), pos=(1, 1))
    for callback in viewer.mouse_move_callbacks:
        callback(viewer, event)
    assert three.planes.links.place == (2, 17, 2)


def test_all_planes_show_the_same_phase(three, viewer):
    press(viewer, ".")
    assert three.scene.phase == 2
    assert [pane.model.dims.current_step[0] for pane in three.planes.panes] == [2, 2]


def test_going_to_the_tumour_moves_every_plane(qtbot, three):
    three.planes.links.go_to((0, 0, 0))
    three.jumping.to_lesion()
    qtbot.waitUntil(lambda: three.planes.links.place != (0, 0, 0))
    blob = three.session.mask(Role.REFERENCE).buffer
    assert blob[three.planes.links.place] == 1
    for pane in three.planes.panes:
        assert np.asarray(copy_in(pane, Role.REFERENCE)._slice.image.raw).any()


# ----------------------------------------------------------------------- drawing


def test_masks_are_drawn_in_all_planes_as_in_the_main_one(three):
    layer = three.scene.layer(Role.REFERENCE)
    three.scene.toggle_outline()
    three.scene.stack.set_visible(Role.REFERENCE, False)
    for pane in three.planes.panes:
        copy = copy_in(pane, Role.REFERENCE)
        assert (copy.contour, copy.opacity, copy.visible) == (0, layer.opacity, False)
        np.testing.assert_array_equal(copy.colormap.map(1), layer.colormap.map(1))


def test_window_and_level_hold_for_all_planes(three):
    three.scene.layer(Role.PHASE).contrast_limits = (10, 200)
    for pane in three.planes.panes:
        assert tuple(copy_in(pane, Role.PHASE).contrast_limits) == (10, 200)


@pytest.mark.parametrize("outline", [0, 1])
def test_a_changed_box_is_drawn_anew_in_every_plane_that_shows_it(three, outline):
    mask = three.session.mask(Role.REFERENCE).buffer
    three.scene.layer(Role.REFERENCE).contour = outline
    three.planes.links.go_to((2, 8, 11))
    drawn = []
    for pane in three.planes.panes:
        copy_in(pane, Role.REFERENCE).events.labels_update.connect(
            lambda event, name=pane.kind.plane: drawn.append(name)
        )
    box = Box((0, 3, 9), (2, 6, 12))
    expected = mask.copy()
    expected[box.slices] = mask[box.slices] = 1
    three.scene.redraw_box(Role.REFERENCE, box)
    # the coronal slice, y 8, does not meet y 3 to 5
    assert drawn == ["sagittal"]
    # outlines are drawn into a picture of their own, never into the mask
    np.testing.assert_array_equal(mask, expected)


def test_a_new_mask_and_a_removed_one_show_in_all_planes(qtbot, three):
    three.predict()
    qtbot.waitUntil(lambda: three.session.mask(Role.PREDICTION) is not None)
    assert all(copy_in(pane, Role.PREDICTION) is not None for pane in three.planes.panes)
    three.viewer.layers.remove(three.scene.layer(Role.PREDICTION))
    assert all(copy_in(pane, Role.PREDICTION) is None for pane in three.planes.panes)


def test_a_copy_that_a_user_deletes_does_no_harm(three):
    pane = three.planes.panes[0]
    pane.model.layers.remove(copy_in(pane, Role.REFERENCE))
    three.scene.layer(Role.REFERENCE).opacity = 0.3
    three.scene.redraw_box(Role.REFERENCE, Box((0, 0, 0), (6, 20, 24)))
    three.planes.links.go_to((1, 2, 3))
    assert copy_in(pane, Role.PHASE) is not None


def test_the_neurological_view_mirrors_what_runs_from_right_to_left_alone(three, viewer):
    sagittal, coronal = three.planes.panes
    before = on_screen(viewer, Role.PHASE).copy()
    three.planes.set_sides(Sides(neurological=True))
    np.testing.assert_array_equal(on_screen(viewer, Role.PHASE), before[:, ::-1])
    found = [letters(model) for model in (viewer, sagittal.model, coronal.model)]
    assert found == ["APLR", "SIAP", "SILR"]
    three.planes.set_sides(Sides())
    np.testing.assert_array_equal(on_screen(viewer, Role.PHASE), before)


# --------------------------------------------------------------------- bad input


def test_another_case_is_shown_in_three_planes_too(qtbot, three, viewer, world):
    world.affine = PSR
    press(viewer, "N")
    qtbot.waitUntil(lambda: three.session.case_id == "A_2" and three.session.case.is_loaded)
    qtbot.waitUntil(lambda: not three.planes.is_building)
    assert [pane.kind.plane for pane in three.planes.panes] == ["axial", "coronal"]
    for pane in three.planes.panes:
        assert np.shares_memory(copy_in(pane, Role.PHASE).data, three.session.case.signal)


def test_a_case_of_one_slice_stays_in_one_plane_with_the_reason(
    qtbot, three, viewer, new_case, monkeypatch
):
    said = []
    three.notifier.said.connect(lambda level, text: said.append(text))
    case = new_case("B_9", shape=(1, 20, 24))
    three.scene.show_case(case, (0, 100))
    three.session.set_case(case, None, [])
    assert three.planes.panes == []
    assert any("only one slice" in text for text in said)
    back = new_case("B_10")
    three.scene.show_case(back, (0, 100))
    three.session.set_case(back, None, [])
    qtbot.waitUntil(lambda: len(three.planes.panes) == 2)


def test_reading_the_rest_of_a_case_leaves_the_cross_hair(three):
    three.planes.links.go_to((4, 3, 2))
    three.session.set_loaded(replace(three.session.case))
    assert three.planes.links.place == (4, 3, 2)


def test_the_tumour_of_the_case_before_is_not_looked_for_in_the_next_one(qtbot, three, new_case):
    three.jumping.to_lesion()
    case = new_case("B_9", shape=(5, 8, 9))
    three.scene.show_case(case, (0, 100))
    three.session.set_case(case, None, [])
    three.planes.links.go_to((1, 2, 3))
    qtbot.waitUntil(lambda: not three.jobs.is_running("lesion"))
    assert three.planes.links.place == (1, 2, 3)


def test_a_closed_case_closes_the_planes(qtbot, three, viewer):
    viewer.layers.remove(three.scene.layer(Role.PHASE))
    qtbot.waitUntil(lambda: three.planes.panes == [])


def test_without_a_case_the_keys_do_no_harm(dock, viewer):
    press(viewer, "J")
    press(viewer, "Shift+J")
    assert dock.planes.panes == []


def test_a_view_is_kept_and_used_again(qtbot, three):
    before = [pane.model for pane in three.planes.panes]
    lay_out(qtbot, three, Layout.ONE)
    assert three.planes.panes == []
    assert not any(layer.visible for model in before for layer in model.layers)
    lay_out(qtbot, three, Layout.PHASES)
    (second,) = three.planes.panes
    assert second.model is before[0]
    assert second.kind.plane is None
    assert copy_in(second, Role.PHASE).visible
    lay_out(qtbot, three, Layout.PLANES)
    assert [pane.model for pane in three.planes.panes] == before
    assert [pane.kind.plane for pane in three.planes.panes] == ["sagittal", "coronal"]


def test_a_view_that_is_not_shown_holds_no_array_of_a_closed_case(qtbot, three, new_case):
    array = weakref.ref(array_of(three.scene.layer(Role.PHASE)))
    lay_out(qtbot, three, Layout.ONE)
    case = new_case("B_9")
    three.scene.show_case(case, (0, 100))
    three.session.set_case(case, None, [])
    gc.collect()
    assert array() is None


def test_closed_planes_leave_nothing_behind(qtbot, three):
    models = [weakref.ref(pane.model) for pane in three.planes.panes]
    copies = [weakref.ref(layer) for pane in three.planes.panes for layer in pane.model.layers]
    layer = three.scene.layer(Role.REFERENCE)
    listening = len(layer.events.opacity.callbacks)
    three.planes.close()
    assert len(layer.events.opacity.callbacks) == listening - 2
    gc.collect()
    assert [ref() for ref in (*models, *copies)] == [None] * 6


# ---------------------------------------------------------------------- two phases


def test_planes_that_are_left_while_they_are_built_leave_nothing(qtbot, opened):
    planes = opened.planes
    for steps in (1, 14):
        planes.set_layout(Layout.PLANES)
        planes._build.stop()
        for _ in range(steps):
            planes._build_next()
        planes.set_layout(Layout.ONE)
        assert (planes.panes, planes.is_building, planes._unfinished) == ([], False, None)
    planes.set_layout(Layout.PLANES)
    qtbot.waitUntil(lambda: len(planes.panes) == 2 and not planes.is_building)


def test_two_phases_stand_side_by_side_with_the_same_slice(qtbot, opened, viewer):
    lay_out(qtbot, opened, Layout.PHASES)
    (pane,) = opened.planes.panes
    viewer.dims.set_current_step(1, 4)
    press(viewer, ".")
    assert pane.model.dims.current_step[:2] == (0, 4)
    assert pane.model.canvas.overlays["mamamia_phase"].text == "pre · 0 s"
    viewer.scene.camera.zoom = 7.0
    assert pane.model.scene.camera.zoom == 7.0
    pane.model.scene.camera.center = (3.0, 4.0)
    assert tuple(viewer.scene.camera.center)[-2:] == (3.0, 4.0)


def test_the_second_phase_stays_a_phase_while_the_main_view_shows_a_subtraction(
    qtbot, opened, viewer
):
    lay_out(qtbot, opened, Layout.PHASES)
    press(viewer, "D")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.SUBTRACTION) is not None)
    (pane,) = opened.planes.panes
    assert copy_in(pane, Role.SUBTRACTION) is None
    assert copy_in(pane, Role.PHASE).visible
    assert pane.model.canvas.overlays["mamamia_phase"].text == "pre · 0 s"


def test_a_case_of_one_phase_has_no_second_one_to_show(qtbot, opened, new_case):
    said = []
    opened.notifier.said.connect(lambda level, text: said.append(text))
    case = new_case("B_9")
    one = type(case)(case.case_id, case.grid, case.signal[:1], case.phases[:1])
    opened.scene.show_case(one, (0, 100))
    opened.session.set_case(one, None, [])
    opened.planes.toggle_phases()
    assert opened.planes.panes == []
    assert any("only one phase" in text for text in said)


# ------------------------------------------------------------------------- painting


@pytest.fixture
def painting(qtbot, three):
    """A refined mask in three planes, with a plain sphere of 4 mm in hand."""
    three.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: three.editing.live is not None)
    three.show_page("Refine")
    three.painting.set_tool(PaintTool.SPHERE)
    three.painting.set_brush(Brush(tool=Tool.SPHERE, radius_mm=4.0))
    return three


def paint_at(model, position, button=1):
    make = {"position": position, "button": button, "modifiers": (), "handled": False}
    event = SimpleNamespace(type="mouse_press", pos=(50, 50), **make)
    running = [g for g in (f(model, event) for f in model.mouse_drag_callbacks) if g is not None]
    for turn in running:
        next(turn, None)
    event.type = "mouse_release"
    for turn in running:
        next(turn, None)


def test_a_press_in_any_plane_paints_the_mask_there_and_all_planes_draw_it(painting):
    mask = painting.session.mask(Role.REFINED).buffer
    painting.planes.links.go_to((3, 5, 5))
    sagittal, coronal = painting.planes.panes
    drawn = []
    for model in (painting.viewer, sagittal.model, coronal.model):
        find_layer(model.layers, Role.REFINED).events.labels_update.connect(
            lambda event, at=model: drawn.append(at)
        )
    before = mask.copy()
    # slice 3 of 3 mm, row 14 of 2 mm (y is 19 - 14), column 5 of 1.5 mm
    paint_at(sagittal.model, (1.0, 9.0, 28.0, 7.5))
    assert mask[3, 5, 5] == 1
    assert before[3, 5, 5] == 0
    assert {id(model) for model in drawn} == {
        id(model) for model in (painting.viewer, sagittal.model, coronal.model)
    }
    for pane in painting.planes.panes:
        assert np.shares_memory(copy_in(pane, Role.REFINED).data, mask)


def test_what_is_painted_with_naparis_own_brush_is_drawn_in_the_other_planes(qtbot, painting):
    mask = painting.session.mask(Role.REFINED).buffer
    sagittal = painting.planes.panes[0]
    painting.planes.links.go_to((3, 5, 5))
    drawn = []
    copy_in(sagittal, Role.REFINED).events.labels_update.connect(drawn.append)
    assert mask[3, 5, 5] == 0
    painting.scene.layer(Role.REFINED).paint((3, 14, 5), 1)  # row 14 of 20: y is 19 - 14
    assert mask[3, 5, 5] == 1
    qtbot.waitUntil(lambda: bool(drawn))


def test_a_flat_brush_paints_in_the_plane_that_it_is_used_in(painting):
    mask = painting.session.mask(Role.REFINED).buffer
    brush = painting.painting.state.brush
    painting.painting.set_brush(replace(brush, extent=Extent.PLANE))
    before = mask.copy()
    sagittal = painting.planes.panes[0]
    painting.planes.links.go_to((3, 5, 5))
    paint_at(sagittal.model, (1.0, 9.0, 28.0, 7.5))
    changed = np.argwhere(mask != before)
    # a sagittal plane of an axial stack is one x
    assert set(changed[:, 2]) == {5}
    assert len(set(changed[:, 0])) > 1


def test_painting_is_right_in_the_neurological_view_too(painting, viewer):
    painting.planes.set_sides(Sides(neurological=True))
    mask = painting.session.mask(Role.REFINED).buffer
    paint_at(viewer, (1.0, 6.0, 28.0, 7.5))
    assert mask[2, 5, 5] == 1
    assert mask[2, 5, 24 - 1 - 5] == 0


def test_the_right_button_erases_in_any_plane_and_undo_brings_it_back(painting):
    mask = painting.session.mask(Role.REFINED).buffer
    before = mask.copy()
    painting.planes.links.go_to((2, 9, 12))
    coronal = painting.planes.panes[1]
    paint_at(coronal.model, (1.0, 6.0, 20.0, 18.0), button=2)
    assert painting.painting.brush_for(True, False).action is Action.ERASE
    assert mask[2, 9, 12] == 0
    painting.editing.mask.undo()
    np.testing.assert_array_equal(mask, before)


def test_the_cursor_of_the_brush_is_on_every_plane(painting):
    layer = painting.scene.layer(Role.REFINED)
    assert layer.cursor == "circle"
    for pane in painting.planes.panes:
        copy = copy_in(pane, Role.REFINED)
        assert (copy.cursor, copy.cursor_size) == ("circle", layer.cursor_size)
        assert not copy.mouse_pan
        assert pane.model.layers.selection.active is copy
