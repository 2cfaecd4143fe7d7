"""The wheel over the image: slices, zoom at the pointer, phases; tools and drags are left alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari.utils._proxies import ReadOnlyWrapper
from napari.utils.interactions import mouse_wheel_callbacks

from napari_mamamia.widgets.refine.state import PaintTool

AT = (1.0, 9.0, 16.0, 20.0)


def turn(viewer, turns, *modifiers, dragging=False, inverted=False, sideways=False):
    """Turn the wheel over a world place as napari hears of it; return whether it was taken."""
    raw = SimpleNamespace(
        type="mouse_wheel",
        position=AT,
        modifiers=modifiers,
        delta=(turns, 0) if sideways else (0, turns),
        native=SimpleNamespace(inverted=lambda: inverted),
        is_dragging=dragging,
        handled=False,
    )
    mouse_wheel_callbacks(viewer, ReadOnlyWrapper(raw, exceptions=("handled",)))
    return raw.handled


@pytest.fixture
def slices(opened):
    """The open case at its third slice of six."""
    opened.viewer.dims.set_current_step(1, 2)
    return opened


def slice_of(dock):
    return dock.viewer.dims.current_step[1]


def test_a_turn_of_the_wheel_is_a_slice(slices):
    assert turn(slices.viewer, -1)
    assert slice_of(slices) == 3
    turn(slices.viewer, 1)
    turn(slices.viewer, 1)
    assert slice_of(slices) == 1
    # a wheel that is set to many lines at once still goes one slice
    turn(slices.viewer, -8)
    assert slice_of(slices) == 2


def test_natural_scrolling_goes_the_other_way_as_in_napari(slices):
    turn(slices.viewer, -1, inverted=True)
    assert slice_of(slices) == 1


def test_small_turns_of_a_trackpad_add_up_to_a_slice(slices):
    for _ in range(3):
        turn(slices.viewer, -0.25)
    assert slice_of(slices) == 2
    turn(slices.viewer, -0.25)
    assert slice_of(slices) == 3


def test_the_wheel_stops_at_the_last_slice(slices):
    for _ in range(20):
        turn(slices.viewer, -1)
    assert slice_of(slices) == 5


def test_ctrl_and_wheel_zoom_at_the_pointer_and_stay_on_the_slice(slices):
    camera = slices.viewer.scene.camera
    zoom, centre = camera.zoom, camera.center
    assert turn(slices.viewer, 1, "Control")
    assert camera.zoom == pytest.approx(1.2 * zoom)
    assert slice_of(slices) == 2
    # what lies under the pointer stays there: its distance from the centre shrinks as the zoom
    # grows
    for at, place in ((-2, 16.0), (-1, 20.0)):
        assert (place - camera.center[at]) * 1.2 == pytest.approx(place - centre[at])
    turn(slices.viewer, -1, "Control")
    assert camera.zoom == pytest.approx(zoom)
    assert camera.center == pytest.approx(centre)


def test_shift_and_wheel_go_through_the_phases(slices):
    before = slices.scene.phase
    assert turn(slices.viewer, -1, "Shift")
    assert slices.scene.phase == before + 1
    turn(slices.viewer, 1, "Shift", sideways=True)
    assert slices.scene.phase == before
    assert slice_of(slices) == 2


def test_with_a_tool_in_hand_the_wheel_with_shift_is_the_tools(qtbot, slices):
    slices.show_page("Refine")
    slices.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: slices.editing.live is not None)
    slices.painting.set_tool(PaintTool.SPHERE)
    assert slices.active_tool.tool is not None
    phase = slices.scene.phase
    assert not turn(slices.viewer, -1, "Shift")
    assert slices.scene.phase == phase
    # slices are gone through with a tool in hand as well
    assert turn(slices.viewer, -1)
    assert slice_of(slices) == 3


def test_during_a_drag_the_image_stays(slices):
    zoom = slices.viewer.scene.camera.zoom
    assert turn(slices.viewer, -1, dragging=True)
    turn(slices.viewer, 1, "Control", dragging=True)
    assert slice_of(slices) == 2
    assert slices.viewer.scene.camera.zoom == zoom


def test_other_keys_and_a_volume_in_space_are_naparis(slices):
    assert not turn(slices.viewer, -1, "Alt")
    assert not turn(slices.viewer, -1, "Control", "Shift")
    slices.viewer.dims.ndisplay = 3
    assert not turn(slices.viewer, -1)


def test_without_a_case_the_wheel_is_naparis(dock, viewer):
    viewer.add_image(np.zeros((4, 8, 8)))
    viewer.dims.set_current_step(0, 2)
    assert not turn(viewer, -1)
    assert viewer.dims.current_step[0] == 2
    # napari's own way with Ctrl goes on
    turn(viewer, -1, "Control")
    assert viewer.dims.current_step[0] == 3


def test_a_turn_is_a_slice_whatever_steps_a_layer_of_another_plugin_has(slices):
    points = [[0.0, 0.0, 0.0], [20.0, 9.0, 9.0]]
    layer = slices.viewer.add_points(points, name="of another plugin")
    assert layer.extent.step[0] == 1.0, "slices are 3 mm apart"
    slices.scene.view.go_to((2, 9, 12), centre=False)
    seen = []
    for turns in (-1, -1, -1, -1, -1, 1):
        turn(slices.viewer, turns)
        seen.append(slices.scene.view.slice_shown()[1])
    assert seen == [3, 4, 5, 5, 5, 4]
