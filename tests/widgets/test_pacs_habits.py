"""Keys and drags that radiologists know from a PACS."""

from types import SimpleNamespace

import pytest

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.contrasting import window_text


def test_up_down_home_and_end_step_through_the_slices(opened, viewer):
    last = opened.session.case.grid.display_frame().per_axis(opened.session.case.grid.shape)[0] - 1
    view = opened.scene.view
    seen = []
    for name in (
        "slice_first",
        "slice_next",
        "slice_next",
        "slice_back",
        "slice_last",
        "slice_next",
    ):
        opened.wheel.actions()[name]()
        seen.append(view.slice_shown()[1])
    assert seen == [0, 1, 2, 1, last, last]


def drag(viewer, button, to):
    """Drag from (100, 100) on the canvas, and yield what the picture says while it lasts."""
    event = SimpleNamespace(button=button, modifiers=(), pos=(100, 100), position=(0, 0, 0, 0))
    event.type, event.handled, event.is_dragging = "mouse_press", False, True
    turns = [turn for f in viewer.mouse_drag_callbacks if (turn := f(viewer, event)) is not None]
    runs = [turn for turn in turns if next(turn, StopIteration) is not StopIteration]
    event.type, event.pos = "mouse_move", to
    for run in runs:
        next(run, None)
    text = viewer.canvas.overlays["mamamia_window"]
    said = text.text if text.visible else ""
    event.type = "mouse_release"
    for run in runs:
        next(run, None)
    return said


@pytest.mark.parametrize("button", [2, 3])
def test_a_drag_sets_window_and_level_and_shows_them_on_the_picture(opened, viewer, button):
    layer = opened.scene.layer(Role.PHASE)
    layer.contrast_limits = (0.0, 100.0)
    said = drag(viewer, button, (600, 100))
    low, high = layer.contrast_limits
    assert high - low > 100
    assert said == window_text(low, high)
    assert not viewer.canvas.overlays["mamamia_window"].visible


def test_the_patients_right_changes_sides_by_an_action_and_the_control_shows_it(opened):
    assert not opened.view_panel.neurological.isChecked()
    opened.view_flow.toggle_sides()
    assert opened.view_panel.neurological.isChecked()
    assert opened.planes.sides.neurological
    opened.view_flow.toggle_sides()
    assert not opened.planes.sides.neurological


def test_escape_closes_the_table_of_keys(opened):
    opened.pages.toggle_keys()
    opened._list_actions()["drop_stroke"]()
    assert not opened.pages.shows_keys
