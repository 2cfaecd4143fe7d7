"""A slice step without napari's double work shows what napari's own step would show."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Layer
from qtpy.QtWidgets import QApplication, QDockWidget, QFrame

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.stepping import keep_lightly, step_lightly
from napari_mamamia.widgets.base.layers import Role, tag_for, tag_of
from napari_mamamia.widgets.viewer.scene import Scene

pytestmark = [pytest.mark.window, pytest.mark.one_window]

AXIAL = np.diag([-1.5, 2.0, 3.0, 1.0])
SAGITTAL = np.array(
    [[0.0, 0.0, 2.5, 0.0], [-0.7, 0.0, 0.0, 9.0], [0.0, -0.8, 0.0, 4.0], [0.0, 0.0, 0.0, 1.0]]
)


def case_of(name, shape, phases, affine):
    rng = np.random.default_rng(len(name))
    signal = rng.integers(0, 900, (phases, *shape), np.int16)
    return Case(name, Grid(shape, affine), signal, tuple(Phase(k, 60.0 * k) for k in range(phases)))


FIRST = case_of("FIRST", (9, 30, 34), 3, AXIAL)
OTHERS = [
    case_of("SAGITTAL", (12, 31, 17), 5, SAGITTAL),
    case_of("ONE_SLICE", (1, 40, 12), 2, AXIAL),
    case_of("ONE_PHASE", (5, 8, 50), 1, SAGITTAL),
]


def mask_of(case, role):
    rng = np.random.default_rng(len(role))
    return (rng.random(case.grid.shape) < 0.3).astype(np.uint8)


def show(scene, case):
    scene.retire_case(set())
    scene.stack.remove_retired()
    scene.show_case(case, (0.0, 900.0))
    for role in (Role.REFERENCE, Role.PREDICTION, Role.REFINED):
        scene.show_mask(tag_for(case, role), mask_of(case, role))
    scene.view.fit()


def slice_by_hand(layer, dims):
    """Return the voxels of a layer on screen, None outside of it; numpy alone."""
    lead = dims.ndim - layer.ndim
    hidden = [axis - lead for axis in dims.not_displayed if axis >= lead]
    order = [axis - lead for axis in dims.displayed if axis >= lead]
    place = np.rint(layer.world_to_data(dims.point))
    index = [slice(None)] * layer.ndim
    for axis in hidden:
        if not 0 <= place[axis] < layer.data.shape[axis]:
            return None
        index[axis] = int(place[axis])
    return layer.data[tuple(index)].transpose(np.argsort(np.argsort(order)))


def check_slices(viewer):
    """Compare what each visible layer of ours shows with what its array has there."""
    compared = 0
    for layer in viewer.layers:
        if layer.visible and tag_of(layer) is not None:
            wanted = slice_by_hand(layer, viewer.dims)
            assert layer._slice.empty == (wanted is None), layer.name
            if wanted is not None:
                np.testing.assert_array_equal(layer._slice.image.raw, wanted, err_msg=layer.name)
                compared += 1
    return compared


def hide_step_show(scene):
    layer = scene.layer(Role.PREDICTION)
    layer.visible = False
    scene.viewer.dims.set_current_step(scene.viewer.dims.order[-3], 3)
    layer.visible = True


def move(scene):
    scene.layer(Role.REFINED).translate = (6.0, 0.0, 0.0)
    scene.layer(Role.PREDICTION).scale = (2.0, 1.0, 1.0)
    scene.viewer.dims.set_current_step(scene.viewer.dims.order[-3], 2)


def give_other_voxels(scene):
    layer = scene.layer(Role.REFINED)
    layer.data = 1 - layer.data


def turn(*order):
    def act(scene):
        scene.viewer.dims.order = order

    return act


def step(axis, place):
    return lambda scene: scene.viewer.dims.set_current_step(axis, place)


def set_dims(**values):
    def act(scene):
        for name, value in values.items():
            setattr(scene.viewer.dims, name, value)

    return act


def add_strangers(scene):
    """Add layers of others, one of them larger than the case, one of tiles."""
    viewer = scene.viewer
    viewer.add_points([[2.0, 3.0, 4.0]], name="theirs")
    viewer.add_labels(np.ones((20, 10, 10), np.uint16), scale=(3.0, 1.0, 1.0))
    viewer.add_image([np.zeros((8, 64, 64)), np.zeros((4, 32, 32))], multiscale=True)


def drop_and_reorder(scene):
    viewer = scene.viewer
    viewer.layers.remove(scene.layer(Role.PREDICTION))
    viewer.layers.reverse()


def step_often(scene):
    for place in (0, 5, 1, 4, 2, 3, 7):
        scene.viewer.dims.set_current_step(1, place)


ACTS = {
    "first slice": step(1, 0),
    "last slice": step(1, 8),
    "past the end": step(1, 99),
    "phase": step(0, 2),
    "many at once": step_often,
    "sagittal": turn(0, 3, 1, 2),
    "step, sagittal": step(3, 11),
    "turned over": turn(0, 3, 2, 1),
    "coronal": turn(0, 2, 1, 3),
    "step, coronal": step(2, 7),
    "axial": turn(0, 1, 2, 3),
    "hidden meanwhile": hide_step_show,
    "moved by the user": move,
    "other voxels": give_other_voxels,
    "3-D": set_dims(ndisplay=3),
    "phase in 3-D": step(0, 1),
    "2-D": set_dims(ndisplay=2),
    "layers of others": add_strangers,
    "step among them": step(1, 6),
    "gone, reordered": drop_and_reorder,
    "step after that": step(1, 4),
    "another case": lambda scene: show(scene, OTHERS[0]),
    "step in it": step(1, 5),
    "one slice": lambda scene: show(scene, OTHERS[1]),
    "phase of it": step(0, 1),
    "one phase": lambda scene: show(scene, OTHERS[2]),
    "last step": step(1, 1),
}


PICTURED = ("turned over", "moved by the user", "other voxels", "gone, reordered")
AT_NIGHT = (*PICTURED, "many at once", "hidden meanwhile", "2-D", "step in it")


def test_after_each_act_every_layer_shows_what_its_array_has_there():
    scene = Scene(ViewerModel())
    show(scene, FIRST)
    assert check_slices(scene.viewer) == 4
    compared = {}
    for name, act in ACTS.items():
        act(scene)
        compared[name] = check_slices(scene.viewer)
    # Of one or five slices nothing is seen where a layer of others reaches further and the place,
    # the sixth slice of the case before, is there.
    unseen = [name for name, count in compared.items() if not count]
    assert unseen == ["one slice", "phase of it", "one phase"]


def test_a_step_slices_each_layer_once(monkeypatch):
    scene = Scene(ViewerModel())
    show(scene, FIRST)
    sliced, real = [], Layer._slice_dims
    monkeypatch.setattr(Layer, "_slice_dims", lambda *a, **k: sliced.append(1) or real(*a, **k))
    scene.viewer.dims.set_current_step(1, 7)
    assert len(sliced) == len(scene.viewer.layers) == 4
    scene.viewer.dims.point = (1.0, 3.0, 0.0, 0.0)  # two axes at once, in mm
    assert len(sliced) == 8
    assert check_slices(scene.viewer) == 4


def test_a_layer_that_a_step_keeps_its_size_of_tells_a_new_one_at_once():
    scene = Scene(ViewerModel())
    show(scene, FIRST)
    viewer = scene.viewer
    viewer.dims.set_current_step(1, 3)
    top = viewer.dims.range[1].stop
    scene.layer(Role.REFINED).translate = (30.0, 0.0, 0.0)
    assert viewer.dims.range[1].stop == top + 30.0


def draw_anew(viewer):
    """Let napari itself work out again all that a step leaves as it is."""
    view = main_view(viewer)
    for layer, visual in view.canvas.layer_to_visual.items():
        type(layer._slicing_state)._set_view_slice(layer._slicing_state)
        layer._slicing_state.layer.events.set_data()
        type(visual)._on_matrix_change(visual)
    return canvas_pixels(viewer)


def hide_texts(viewer):
    for overlay in viewer.canvas.overlays.values():
        overlay.visible = False


def canvas_pixels(viewer):
    for _ in range(3):
        QApplication.processEvents()
    return viewer.screenshot(canvas_only=True, flash=False)


@pytest.mark.parametrize(
    "pictured",
    [PICTURED, pytest.param(AT_NIGHT, marks=pytest.mark.night)],
    ids=["some", "more"],
)
def test_after_acts_the_picture_is_the_one_that_napari_draws_anew(shared_dock, pictured):
    scene = shared_dock.scene
    show(scene, FIRST)
    shared_dock.canvas_text.set_loaded(None)
    for name, act in ACTS.items():
        act(scene)
        if name not in pictured:
            continue
        seen = canvas_pixels(scene.viewer).astype(int)
        # a matrix that is multiplied anew may round the edge of a letter by one grey level
        assert np.abs(seen - draw_anew(scene.viewer)).max() <= 1, name


def test_a_mask_stepped_through_as_an_outline_is_filled_with_the_voxels_of_its_slice(shared_dock):
    scene, viewer = shared_dock.scene, shared_dock.viewer
    scene.show_case(FIRST, (0.0, 900.0))
    volume = np.zeros(FIRST.grid.shape, np.uint8)
    for k in range(9):
        volume[k, 3 + k : 12 + k, 5 + k : 18 + k] = 1
    layer = scene.show_mask(tag_for(FIRST, Role.REFINED), volume)
    scene.view.fit()
    shared_dock.canvas_text.is_held = True  # a text may be written by a turn that is still to come
    for k in (0, 3, 6):
        viewer.dims.set_current_step(1, k)
        hide_texts(viewer)
        outline = canvas_pixels(viewer)
    layer.contour = 0
    filled = canvas_pixels(viewer)
    assert (filled != outline).any()
    np.testing.assert_array_equal(filled, draw_anew(viewer))
    layer.contour = 1
    np.testing.assert_array_equal(canvas_pixels(viewer), outline)
    layer.editable, layer.mode = True, "paint"
    hide_texts(viewer)
    painted = canvas_pixels(viewer)
    assert (painted != outline).any()
    np.testing.assert_array_equal(painted, draw_anew(viewer))


def test_without_napari_s_private_parts_nothing_is_changed():
    bare = SimpleNamespace(layer=SimpleNamespace())
    for patch in (step_lightly, keep_lightly):
        patch(bare)
    assert vars(bare) == {"layer": SimpleNamespace()}


def test_a_mask_in_a_layer_made_ahead_is_sliced_for_the_place_on_screen(shared_dock, qtbot):
    scene, viewer = shared_dock.scene, shared_dock.viewer
    scene.show_case(FIRST, (0.0, 900.0))
    viewer.dims.set_current_step(1, 7)
    spares = scene.stack.spares
    spares.stock_later()
    qtbot.waitUntil(lambda: ("labels", 3) in spares._ready)
    spare = spares._ready["labels", 3]
    state, taken = spare._slicing_state, []
    take = state._set_view_slice
    state._set_view_slice = lambda: taken.append(state._slice_input) or take()
    mask = mask_of(FIRST, Role.REFINED)
    assert scene.show_mask(tag_for(FIRST, Role.REFINED), mask) is spare
    assert check_slices(viewer) == 2
    assert len(taken) <= 2  # at its insertion, and for its line: not for each of its values


def test_texts_that_wait_for_their_turns_are_not_written_over_the_next_case(shared_dock):
    text = shared_dock.canvas_text
    shared_dock.scene.show_case(FIRST, (0.0, 900.0))
    text.is_held = True
    first, *later = text.write_steps(frozenset({0}))
    first()
    shared_dock.scene.show_case(OTHERS[1], (0.0, 900.0))
    text.set_loaded(None)
    overlays = shared_dock.viewer.canvas.overlays
    written = {name: overlay.text for name, overlay in overlays.items() if hasattr(overlay, "text")}
    for step in later:
        step()
    assert {name: overlays[name].text for name in written} == written
    assert written["mamamia_phase"] == "post 1 · 60 s"  # not: still reading


def test_napari_makes_the_controls_of_a_layer_when_their_box_is_seen(shared_dock, qtbot):
    view = main_view(shared_dock.viewer)
    box = view.window().findChild(QDockWidget, "layer controls")
    box.hide()
    layer = shared_dock.scene.show_case(FIRST, (0.0, 900.0))
    for _ in range(5):
        QApplication.processEvents()
    assert type(view.controls.widgets[layer]) is QFrame
    box.show()
    qtbot.waitUntil(lambda: type(view.controls.widgets[layer]) is not QFrame)
    # they are shown a turn after they are made
    qtbot.waitUntil(lambda: view.controls.currentWidget() is view.controls.widgets[layer])
