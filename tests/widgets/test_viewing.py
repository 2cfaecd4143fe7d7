"""Subtraction of any two phases, projections, cine and contrast, on a viewer without a window."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtWidgets import QWidget

from napari_mamamia.services.case.show_contrast import contrast_limits
from napari_mamamia.widgets.base.layers import Role, array_of, find_layer
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.viewer.planes import Layout


def press(viewer, key):
    next(function for binding, function in viewer.keymap.items() if str(binding) == key)(viewer)


def control(dock, name):
    found = dock.findChild(QWidget, name)
    assert found is not None, name
    return found


def pick(dock, name, at):
    box = control(dock, name)
    box.setCurrentIndex(at)
    box.activated.emit(at)


def corner(dock):
    return dock.viewer.canvas.overlays["mamamia_phase"].text


@pytest.fixture
def three(qtbot, opened):
    """A case in three planes."""
    opened.planes.set_layout(Layout.PLANES)
    qtbot.waitUntil(lambda: not opened.planes.is_building)
    return opened


def test_any_phase_can_be_subtracted_and_the_result_is_signed(qtbot, opened, viewer):
    pick(opened, "view_minus", 2)
    press(viewer, "D")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.SUBTRACTION) is not None)
    signal = opened.session.case.signal.astype(np.float32)
    found = array_of(opened.scene.layer(Role.SUBTRACTION))
    np.testing.assert_array_equal(found, signal[1] - signal[2])
    assert found.min() < 0
    assert corner(opened) == "post 1 − post 2 · 90 s"
    pick(opened, "view_minus", 0)
    qtbot.waitUntil(lambda: corner(opened) == "post 1 − pre · 90 s")


def test_a_phase_is_never_subtracted_from_itself(qtbot, opened, viewer):
    pick(opened, "view_minus", 1)
    press(viewer, "D")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.SUBTRACTION) is not None)
    assert corner(opened) == "pre − post 1 · 0 s"


def test_the_mip_is_the_brightest_enhancement_along_each_view(qtbot, three, viewer):
    press(viewer, "I")
    qtbot.waitUntil(lambda: three.scene.layer(Role.PROJECTION) is not None)
    signal = three.session.case.signal.astype(int)
    rise = np.maximum(signal[1] - signal[0], 0)
    main = array_of(three.scene.layer(Role.PROJECTION))
    np.testing.assert_array_equal(main[4], rise.max(axis=0))
    sagittal, coronal = (
        array_of(find_layer(pane.model.layers, Role.PROJECTION)) for pane in three.planes.panes
    )
    np.testing.assert_array_equal(sagittal[:, :, 3], rise.max(axis=2))
    np.testing.assert_array_equal(coronal[:, 8, :], rise.max(axis=1))
    assert corner(three) == "MIP · post 1 − pre"
    assert not three.scene.layer(Role.PHASE).visible
    press(viewer, "I")
    assert three.scene.layer(Role.PROJECTION) is None
    assert three.scene.layer(Role.PHASE).visible


def test_a_slab_has_its_thickness_in_mm(qtbot, opened, viewer):
    control(opened, "view_slab").setValue(9)
    press(viewer, "I")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.PROJECTION) is not None)
    signal = opened.session.case.signal.astype(int)
    rise = np.maximum(signal[1] - signal[0], 0)
    # 9 mm of 3 mm slices: the slice and its neighbours
    shown = array_of(opened.scene.layer(Role.PROJECTION))
    np.testing.assert_array_equal(shown[4], rise[3:6].max(axis=0))
    assert corner(opened).startswith("9 mm slab")
    assert control(opened, "view_slab_mm").text() == "9 mm"


def test_subtraction_and_mip_take_turns(qtbot, opened, viewer):
    press(viewer, "I")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.PROJECTION) is not None)
    press(viewer, "D")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.SUBTRACTION) is not None)
    assert opened.scene.layer(Role.PROJECTION) is None
    assert not opened.scene.layer(Role.PHASE).visible
    qtbot.waitUntil(control(opened, "view_image_subtraction").isChecked)
    control(opened, "view_image_phase").click()
    assert opened.scene.layer(Role.SUBTRACTION) is None
    assert opened.scene.layer(Role.PHASE).visible


def test_a_deleted_mip_gives_the_phases_back(qtbot, opened, viewer):
    press(viewer, "I")
    qtbot.waitUntil(lambda: opened.scene.layer(Role.PROJECTION) is not None)
    viewer.layers.remove(opened.scene.layer(Role.PROJECTION))
    assert opened.scene.layer(Role.PHASE).visible


def is_seen(view, role):
    layer = find_layer(view.layers, role)
    return layer is not None and layer.visible


def test_another_case_starts_without_the_mip_of_the_one_before(qtbot, three, viewer):
    press(viewer, "I")
    qtbot.waitUntil(lambda: three.scene.layer(Role.PROJECTION) is not None)
    press(viewer, "N")
    qtbot.waitUntil(lambda: three.session.case_id == "A_2" and three.session.case.is_loaded)
    views = [viewer, *(pane.model for pane in three.planes.panes)]
    assert not any(is_seen(view, Role.PROJECTION) for view in views)
    qtbot.waitUntil(  # it is taken out a turn later
        lambda: all(find_layer(view.layers, Role.PROJECTION) is None for view in views)
    )
    assert all(find_layer(view.layers, Role.PHASE).visible for view in views)


def test_cine_goes_round_the_phases_until_it_is_stopped(opened, viewer):
    seen = []
    press(viewer, "U")
    assert opened.view_flow.cine.is_playing
    for _ in range(4):
        opened.view_flow.cine.step()
        seen.append(opened.scene.phase)
    assert seen == [2, 0, 1, 2]
    press(viewer, "U")
    assert not opened.view_flow.cine.is_playing


def test_cine_stops_with_its_case(qtbot, opened, viewer):
    press(viewer, "U")
    viewer.layers.remove(opened.scene.layer(Role.PHASE))
    qtbot.waitUntil(lambda: not opened.view_flow.cine.is_playing)


def test_a_named_contrast_holds_for_the_image_on_screen(qtbot, opened, viewer):
    opened.scene.go_to_phase(1)
    press(viewer, "Y")
    press(viewer, "Y")
    press(viewer, "Y")
    layer = opened.scene.layer(Role.PHASE)
    shown = opened.session.case.signal[1]
    # the fourth range is the whole one
    whole = (float(shown.min()), float(shown.max()))
    qtbot.waitUntil(lambda: tuple(layer.contrast_limits) == whole)
    press(viewer, "D")
    qtbot.waitUntil(lambda: control(opened, "view_contrast").currentText() == "enhancement")


def test_the_signed_range_is_as_far_below_0_as_above():
    volume = np.linspace(-50, 100, 1001, dtype=np.float32).reshape(7, 11, 13)
    low, high = contrast_limits(volume, "enhancement", "signed", (0.0, 1.0))
    assert low == -high
    # the 99.7th percentile of evenly spread values from -50 to 100
    assert high == pytest.approx(-50 + 0.997 * 150, abs=0.2)


def test_an_image_of_one_value_and_one_without_values_get_a_range_too():
    flat = np.full((2, 3, 4), 7, np.int16)
    assert contrast_limits(flat, "phase", "automatic", (0.0, 1.0)) == (7.0, 8.0)
    empty = np.full((2, 3, 4), np.nan, np.float32)
    assert contrast_limits(empty, "phase", "automatic", (0.0, 1.0)) == (0.0, 1.0)


def test_the_view_is_remembered(qtbot, opened, world, viewer):
    opened.planes.set_layout(Layout.PLANES)
    control(opened, "view_neurological").click()
    control(opened, "view_slab").setValue(15)
    pick(opened, "view_pace", 3)
    again = MamamiaDock(ViewerModel(), world.services())
    qtbot.addWidget(again)
    assert again.planes.wanted is Layout.PLANES
    assert again.planes.sides.neurological
    assert again.projecting.slab_mm == 15
    assert control(again, "view_pace").currentText() == "8 / s"
    again.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: len(again.planes.panes) == 2)


def test_settings_of_another_version_are_left_out(qtbot, world):
    strange = (("layout", "seven planes"), ("slab_mm", "-4"), ("pace", "x"), ("new", "1"))
    world.preferences = replace(world.preferences, view=strange)
    made = MamamiaDock(ViewerModel(), world.services())
    qtbot.addWidget(made)
    assert made.planes.wanted is Layout.ONE
    assert made.projecting.slab_mm == 0


def test_without_a_case_the_keys_and_controls_do_no_harm(dock, viewer):
    for key in ("I", "U", "Y", "D"):
        press(viewer, key)
    for name in ("view_image_projection", "view_layout_planes", "view_layout_one", "view_play"):
        control(dock, name).click()
    assert dock.scene.layer(Role.PROJECTION) is None


def test_every_control_of_the_view_has_a_tooltip(dock):
    names = [child for child in dock.view_panel.findChildren(QWidget) if child.objectName()]
    ours = [child for child in names if child.objectName().startswith("view_")]
    assert len(ours) > 12
    assert all(child.toolTip() for child in ours)


def test_no_pane_keeps_the_projection_of_the_case_before(qtbot, three, viewer):
    press(viewer, "I")
    qtbot.waitUntil(lambda: three.scene.layer(Role.PROJECTION) is not None)
    copies = [pane.copies for pane in three.planes.panes]
    qtbot.waitUntil(lambda: all(one._own.get(Role.PROJECTION) is not None for one in copies))
    three.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: three.session.case_id == "A_2")
    assert all(one._own.get(Role.PROJECTION) is None for one in copies)


def test_a_projection_that_ends_after_its_case_was_left_is_not_shown(qtbot, opened):
    case, services = opened.session.shown_case, opened.projecting._services
    gate, project = threading.Event(), services.project_case

    def project_slowly(asked, *given):
        if asked is case:
            gate.wait(20)
        return project(asked, *given)

    opened.projecting._services = services.replacing(project_case=project_slowly)
    opened.projecting.toggle()
    opened.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2" and opened.session.case.is_loaded)
    gate.set()
    qtbot.waitUntil(lambda: opened.jobs.wait(0))
    assert opened.scene.layer(Role.PROJECTION) is None
