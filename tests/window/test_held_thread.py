"""What keeps the window's thread free: swapped layers, late controls, garbage left out."""

import gc
import subprocess
import sys
from functools import wraps

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image, Labels
from napari.layers._scalar_field.scalar_field import ScalarFieldSlicingState
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.program.garbage import is_set_aside
from napari_mamamia.widgets.adapter.adapter import main_view
from napari_mamamia.widgets.adapter.drawing import measured_once, sliced_once
from napari_mamamia.widgets.base.layers import (
    LayerTag,
    Role,
    agreement_layer,
    class_map_layer,
    map_layer,
    marks_layer,
    mask_layer,
    subtraction_layer,
    tag_for,
    tag_of,
    uncertainty_layer,
)
from napari_mamamia.widgets.viewer.layer_stack import create_layer
from napari_mamamia.widgets.viewer.pane import PaneKind
from napari_mamamia.widgets.viewer.planes import Layout
from napari_mamamia.widgets.viewer.scene import Scene

pytestmark = pytest.mark.window
AXIAL = np.diag([-1.5, 2.0, 3.0, 1.0])
SAGITTAL = np.array(
    [[0.0, 0.0, 2.5, 0.0], [-0.7, 0.0, 0.0, 9.0], [0.0, -0.8, 0.0, 4.0], [0.0, 0.0, 0.0, 1.0]]
)


def case_of(name, shape, phases, affine, low):
    signal = (np.arange(phases * np.prod(shape)) % 89 + low).astype(np.int16)
    times = [Phase(k, 60.0 * k) for k in range(phases)]
    return Case(name, Grid(shape, affine), signal.reshape(phases, *shape), tuple(times))


FIRST = case_of("FIRST", (6, 20, 24), 3, AXIAL, 0)
OTHERS = [
    case_of("SAME", (6, 20, 24), 3, AXIAL, 400),
    case_of("LARGER", (9, 31, 17), 5, SAGITTAL, 900),
    case_of("ONE_SLICE", (1, 40, 12), 2, AXIAL, -70),
    case_of("ONE_PHASE", (5, 8, 50), 1, SAGITTAL, 30),
]


def show(scene, case, limits):
    mask = np.zeros(case.grid.shape, np.uint8)
    mask[:1, 2:5, 3:6] = 1
    scene.retire_case({Role.REFERENCE})
    scene.stack.remove_retired()
    scene.show_case(case, limits)
    scene.show_mask(tag_for(case, Role.REFERENCE), mask)
    scene.go_to_phase(case.signal.shape[0] - 1)
    scene.view.go_to((0, 3, 4), centre=False)
    scene.view.fit()


LAYER = ("name", "visible", "blending", "opacity", "ndim", "editable", "mode", "contour")
LAYER += ("contrast_limits", "gamma", "interpolation2d", "selected_label", "contrast_limits_range")


def facts_of(viewer):
    """Return what a viewer shows, as plain values that can be compared."""
    found = {"steps": viewer.dims.current_step, "range": viewer.dims.range}
    found |= {"zoom": viewer.scene.camera.zoom, "centre": viewer.scene.camera.center}
    found |= {"labels": viewer.dims.axis_labels, "ndim": viewer.dims.ndim}
    for layer in viewer.layers:
        facts = {name: getattr(layer, name) for name in LAYER if hasattr(layer, name)}
        for name in ("scale", "translate", "extent"):
            facts[name] = np.asarray(getattr(layer, name)[1 if name == "extent" else slice(None)])
        facts["units"] = tuple(str(unit) for unit in layer.units)
        facts["axes"] = tuple(layer.axis_labels)
        facts["thumbnail"] = layer.thumbnail
        facts["case"] = layer.metadata["napari_mamamia"].case_id
        facts["history"] = len(getattr(layer, "_undo_history", ()))
        found |= {f"{layer.metadata['napari_mamamia'].role} {k}": v for k, v in facts.items()}
    return found


def swap(viewer, case):
    """Show a case, let a user change what is shown, then show another one in its place."""
    scene = Scene(viewer)
    show(scene, FIRST, (0.0, 90.0))
    before = [id(layer) for layer in viewer.layers]
    mask, phases = scene.layer(Role.REFERENCE), scene.layer(Role.PHASE)
    mask.paint((0, 0, 0), 1)
    phases.contrast_limits = (11.0, 12.0)
    phases.translate = (0, 5, 5, 5)
    show(scene, case, (5.0, 700.0))
    assert [id(layer) for layer in viewer.layers] == before


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.case_id)
def test_after_a_swap_everything_equals_a_scene_made_anew(case):
    swapped, fresh = ViewerModel(), ViewerModel()
    swap(swapped, case)
    show(Scene(fresh), case, (5.0, 700.0))
    seen, wanted = facts_of(swapped), facts_of(fresh)
    assert seen.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(seen[name], value, err_msg=name)


def test_after_a_swap_the_picture_equals_one_made_anew(make_napari_viewer):
    swapped, fresh = make_napari_viewer(show=True), make_napari_viewer(show=True)
    for viewer in (swapped, fresh):
        viewer.window.resize(1000, 700)
    swap(swapped, OTHERS[1])
    show(Scene(fresh), OTHERS[1], (5.0, 700.0))
    pictures = [viewer.screenshot(flash=False) for viewer in (swapped, fresh)]
    assert np.ptp(pictures[1]) > 100
    np.testing.assert_array_equal(*pictures)


def test_another_layer_of_the_user_is_left_alone_by_a_swap():
    viewer = ViewerModel()
    scene = Scene(viewer)
    own = viewer.add_image(np.ones((4, 4)), name="FIRST phases")
    show(scene, FIRST, (0.0, 90.0))
    scene.layer(Role.PHASE).name = "renamed by the user"
    show(scene, OTHERS[1], (0.0, 90.0))
    assert own in viewer.layers
    assert own.data.shape == (4, 4)
    assert scene.layer(Role.PHASE).name == "LARGER phases"
    viewer.layers.remove(scene.layer(Role.PHASE))
    show(scene, OTHERS[2], (0.0, 90.0))
    assert scene.layer(Role.PHASE).data.shape == (2, 1, 40, 12)
    assert own in viewer.layers


@pytest.mark.night
@pytest.mark.usefixtures("real_freezing")
def test_controls_are_made_when_a_layer_is_chosen_and_garbage_is_left_out_until_the_end(
    qtbot, window, docked, monkeypatch
):
    box = main_view(window).controls
    show(docked.scene, FIRST, (0.0, 90.0))
    mask = docked.scene.layer(Role.REFERENCE)
    assert type(box.widgets[mask]).__name__ == "QFrame"
    window.layers.selection.active = mask
    qtbot.waitUntil(lambda: type(box.widgets[mask]).__name__ == "QtLabelsControls")
    # shown in a turn of its own, and the frame in its place is gone
    assert type(box.currentWidget()).__name__ == "QFrame"
    qtbot.waitUntil(lambda: box.currentWidget() is box.widgets[mask])
    assert box.count() == len(window.layers) + 1  # and napari's for no layer
    window.layers.selection.active = docked.scene.layer(Role.PHASE)
    qtbot.waitUntil(lambda: type(box.currentWidget()).__name__ == "QtImageControls")
    window.layers.remove(mask)
    own = window.add_labels(np.zeros((4, 4), int))
    assert type(box.widgets[own]).__name__ == "QtLabelsControls"
    docked.scene.remove_mask(Role.PHASE)
    assert set(box.widgets) == set(window.layers)

    # what the window is made of is left out of collections until it closes
    window.layers.clear()
    for step in docked.scene.warm_up_steps():
        step()
    assert is_set_aside()
    assert gc.get_freeze_count() > 10_000

    # what comes later is collected between two actions, never while a button is held
    second_is_over = docked.idle_collection.findChild(QTimer).timeout
    for _ in range(20):
        gc.collect(1)
    with monkeypatch.context() as held:
        held.setattr(QApplication, "mouseButtons", lambda: Qt.MouseButton.LeftButton)
        second_is_over.emit()
        assert gc.get_count()[2] >= 20
    second_is_over.emit()
    assert gc.get_count()[2] < 3

    docked.close_down()
    assert not is_set_aside()
    assert gc.get_freeze_count() == 0


def test_napari_draws_on_our_mask_with_its_own_tools_once_they_are_chosen():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    mask = scene.layer(Role.REFERENCE)
    assert not mask._overlays["brush_stroke"].visible
    mask.editable = True
    mask.mode = "paint"
    own = Labels(np.zeros((4, 4), int))
    for name, overlay in mask._overlays.items():
        assert overlay.visible == own._overlays[name].visible, name


def test_the_choice_of_layers_stays_when_ours_are_added():
    window = ViewerModel()
    own = window.add_image(np.ones((4, 4)))
    chosen = []
    window.layers.selection.events.active.connect(lambda event: chosen.append(event.value))
    Scene(window).show_mask(tag_for(FIRST, Role.REFERENCE), np.zeros(FIRST.grid.shape, np.uint8))
    assert window.layers.selection.active is own
    assert chosen == []
    assert window.add_image(np.ones((2, 2))) is window.layers.selection.active


def test_a_mask_that_comes_while_the_agreement_is_shown_waits_below_it():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    empty = np.zeros(FIRST.grid.shape, np.uint8)
    scene.overlays.show_agreement(tag_for(FIRST, Role.AGREEMENT), empty)
    late = scene.show_mask(tag_for(FIRST, Role.PREDICTION), empty)
    assert not late.visible
    scene.overlays.hide_agreement()
    assert late.visible


def test_the_array_of_a_layer_that_we_take_out_is_let_go():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    mask = scene.layer(Role.REFERENCE)
    scene.remove_mask(Role.REFERENCE)
    assert mask.data.nbytes == 1
    assert isinstance(scene.layer(Role.PHASE), Image)


def test_layers_that_change_together_are_drawn_once():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    empty = np.zeros(FIRST.grid.shape, np.uint8)
    for role in (Role.PREDICTION, Role.REFINED):
        scene.show_mask(tag_for(FIRST, role), empty)
    drawn = []
    scene.viewer.layers.events.end_batch.connect(drawn.append)
    scene.overlays.show_agreement(tag_for(FIRST, Role.AGREEMENT), empty)
    assert len(drawn) == 1
    scene.overlays.hide_agreement()
    assert len(drawn) == 2
    scene.show_case(OTHERS[0], (0.0, 90.0))
    assert len(drawn) == 3
    scene.show_case(OTHERS[1], (0.0, 90.0))  # swaps only
    assert len(drawn) == 3


def test_the_picture_after_overlays_came_and_went_is_the_one_before(make_napari_viewer):
    window = make_napari_viewer(show=True)
    window.window.resize(800, 600)
    scene = Scene(window)
    show(scene, FIRST, (0.0, 90.0))
    tag, empty = tag_for(FIRST, Role.AGREEMENT), np.zeros(FIRST.grid.shape, np.uint8)
    before = window.screenshot(flash=False)
    scene.overlays.show_agreement(tag, empty + np.uint8(2))
    agreement = window.screenshot(flash=False)
    scene.overlays.hide_agreement()
    np.testing.assert_array_equal(window.screenshot(flash=False), before)
    difference = tag_for(FIRST, Role.SUBTRACTION, phase=1)
    scene.overlays.show_subtraction(difference, empty + np.float32(5), (0.0, 5.0))
    white = window.screenshot(flash=False)
    scene.overlays.hide_subtraction()
    np.testing.assert_array_equal(window.screenshot(flash=False), before)
    assert not np.array_equal(agreement, before)
    assert white.mean() > before.mean() + 20


def test_what_goes_with_its_case_is_hidden_at_once_and_leaves_the_list_a_turn_later():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    empty = np.zeros(FIRST.grid.shape, np.uint8)
    gone = [scene.show_mask(tag_for(FIRST, Role.REFINED), empty)]
    gone.append(scene.show_marks(tag_for(FIRST, Role.MARKS), empty))
    scene.overlays.show_agreement(tag_for(FIRST, Role.AGREEMENT), empty)
    gone.append(scene.layer(Role.AGREEMENT))
    scene.retire_case({Role.REFERENCE})
    assert not any(layer.visible for layer in gone)
    assert scene.layer(Role.REFERENCE).visible
    scene.show_case(OTHERS[0], (0.0, 90.0))
    assert [tag.role for tag in map(tag_of, scene.stack.find())] == [Role.PHASE, Role.REFERENCE]
    scene.stack.remove_retired()
    assert list(scene.viewer.layers) == scene.stack.find()


def all_overlays():
    """Return a layer of every maker that a spare one may stand in for."""
    shape = FIRST.grid.shape
    small, real = np.ones(shape, np.uint8), np.linspace(-3, 9, np.prod(shape)).reshape(shape)
    tag = LayerTag("A", Role.MAP, FIRST.grid)
    classes = {1: ("P", "persistent", "#0072B2"), 2: ("W", "washout", "#D55E00")}
    yield mask_layer(tag_for(FIRST, Role.PREDICTION), small)
    yield agreement_layer(tag, small)
    yield marks_layer(tag, small)
    yield class_map_layer(tag, small, classes, "curve")
    for dtype in (np.float32, np.int16):
        yield subtraction_layer(tag, real.astype(dtype), (1.0, 4.0))
    yield uncertainty_layer(tag, real.astype(np.float32))
    yield map_layer(tag, real.astype(np.float32), (0.0, 2.0), "ramp", [(0, 0, 0, 1), (1, 1, 1, 1)])


def unstyled(_layer):
    """Leave a layer as it was made."""


def test_a_spare_layer_is_what_a_new_one_would_be(qtbot, window, docked):
    spares = docked.scene.stack.spares
    names = (*LAYER, "translate", "scale", "units", "axis_labels", "colormap", "extent", "features")
    for made in all_overlays():
        spares.stock_later()
        qtbot.waitUntil(lambda: ("image", 3) in spares._ready and ("labels", 3) in spares._ready)
        spare, new = spares.take(made, unstyled), create_layer(made)
        assert spares.take(made, unstyled) is None
        assert spare.metadata == new.metadata
        np.testing.assert_array_equal(spare.data, new.data)
        for name in names:
            if hasattr(new, name):
                seen, wanted = (getattr(layer, name) for layer in (spare, new))
                if "contrast" in name:
                    seen, wanted = [[float(limit) for limit in pair] for pair in (seen, wanted)]
                assert str(seen) == str(wanted), (new.name, name)


def test_what_changes_together_is_sliced_once_and_shows_the_new_voxels():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    phases = scene.layer(Role.PHASE)
    sliced = []
    phases.events.set_data.connect(sliced.append)
    other = OTHERS[0]
    with sliced_once(scene.viewer):
        phases.data = other.grid.display_frame().to_display(other.signal)
        scene.go_to_phase(0)
        scene.go_to_phase(1)
        scene.view.go_to((4, 0, 0), centre=False)
        assert sliced == []
    assert len(sliced) == 1
    step = scene.viewer.dims.current_step
    np.testing.assert_array_equal(phases._slice.image.raw, phases.data[step[0], step[1]])
    scene.go_to_phase(2)  # and as ever afterwards
    np.testing.assert_array_equal(phases._slice.image.raw, phases.data[2, step[1]])


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.case_id)
def test_the_next_case_is_measured_once_and_napari_finds_no_slice_of_it_twice(case, monkeypatch):
    calls = []

    def count(kind, name):
        real = getattr(kind, name)

        @wraps(real)  # napari finds it again by its name
        def counted(one, *given):
            calls.append(name)
            return real(one, *given)

        monkeypatch.setattr(kind, name, counted)

    count(ViewerModel, "_on_layers_change")
    count(ScalarFieldSlicingState, "_set_view_slice")
    found = ScalarFieldSlicingState.data_slice.fget
    looked = property(lambda state: calls.append("data_slice") or found(state))
    monkeypatch.setattr(ScalarFieldSlicingState, "data_slice", looked)
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))
    calls.clear()
    mask = np.zeros(case.grid.shape, np.uint8)
    with sliced_once(scene.viewer):
        scene.show_case(case, (5.0, 700.0), [(tag_for(case, Role.REFERENCE), mask)])
        scene.view.go_to((0, 3, 4), centre=False)
    # each layer is asked once where its voxels lie
    assert calls == ["_on_layers_change", "data_slice", "data_slice"]


def test_a_layer_that_fails_inside_leaves_napari_measuring():
    scene = Scene(ViewerModel())
    show(scene, FIRST, (0.0, 90.0))

    def fail():
        with measured_once(scene.viewer):
            scene.layer(Role.PHASE).data = np.zeros((2, 9, 20, 24), np.int16)
            assert scene.viewer.dims.range[1].stop == 5 * 3.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert scene.viewer.dims.range[1].stop == 8 * 3.0
    scene.layer(Role.PHASE).data = np.zeros((2, 3, 20, 24), np.int16)
    scene.layer(Role.REFERENCE).data = np.zeros((3, 20, 24), np.uint8)
    assert scene.viewer.dims.range[1].stop == 2 * 3.0


@pytest.mark.night  # by day without a window: tests/widgets/test_planes.py
@pytest.mark.parametrize("left_after", [(1, 14), (4, 9)])
def test_planes_that_are_left_while_they_are_built_leave_nothing(qtbot, docked, left_after):
    planes = docked.planes
    show(docked.scene, FIRST, (0.0, 90.0))
    docked.session.set_case(FIRST, None, [])
    for steps in left_after:
        planes.set_layout(Layout.PLANES)
        planes._build.stop()
        for _ in range(steps):
            planes._build_next()
        planes.set_layout(Layout.ONE)
        assert (planes.panes, planes.is_building, planes._unfinished) == ([], False, None)
        planes.set_layout(Layout.PLANES)  # at once again, while the views before are leaving
        qtbot.waitUntil(lambda: len(planes.panes) == 2 and not planes.is_building)
        assert [pane.kind for pane in planes.panes] == [PaneKind("sagittal"), PaneKind("coronal")]
        assert all(len(pane.model.layers) == 2 for pane in planes.panes)
        planes.set_layout(Layout.ONE)
    docked.close_down()
    assert planes.window._gone == []


UNITS = """
import os
import pint
from napari_mamamia.widgets.viewer.scene import load_napari_parts, use_units

table = load_napari_parts()
for pints_own in ("unused", "used"):
    if os.fork() == 0:  # each in a process of its own, as it is once all is loaded
        own = table
        if pints_own == "used":
            own = pint.application_registry.get()
            pixel = pint.application_registry.pixel
        use_units(table)
        assert pint.application_registry.get() is own
        assert pint.application_registry.mm / pint.application_registry.cm is not None
        os._exit(0)
    assert os.wait()[1] == 0, pints_own
"""


@pytest.mark.night
def test_the_units_loaded_in_a_thread_replace_only_those_that_nobody_has_used():
    subprocess.run([sys.executable, "-c", UNITS], check=True)
