"""Arrow keys and napari's slider go by slices of the case, whatever layer another plugin adds."""

import pytest
from program import wait_until

pytestmark = pytest.mark.door

START = """
import napari
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.place import dock_of
viewer = napari.current_viewer()
panel = dock_of(viewer)
"""
ADD = (
    START
    + """
import numpy as np
viewer.add_image(np.zeros({shape!r}, np.uint8), scale={scale!r}, translate={start!r}, name="other")
"""
)
STATE = (
    START
    + """
from napari_mamamia.widgets.adapter.adapter import main_view
view = main_view(viewer)
axis = viewer.dims.not_displayed[-1]
slider = view.dims.slider_widgets[axis]
raw = panel.scene.layer(Role.PHASE)._slice.image.raw
data = panel.scene.layer(Role.PHASE).data[panel.scene.phase]
import numpy as np
at = axis - viewer.dims.ndim + 3
slices = [np.sort(data.take(k, at), None) for k in range(data.shape[at])]
same = [k for k, one in enumerate(slices) if np.array_equal(one, np.sort(raw, None))]
result = {
    "shown": panel.scene.view.slice_shown()[1],
    "same": same,
    "number": int(slider.curslice_label.text()),
    "total": int(slider.totslice_label.text()),
    "count": data.shape[at],
}
"""
)
FOCUS = (
    START
    + """
from napari_mamamia.widgets.adapter.adapter import canvas_widget
panel.window().activateWindow()
canvas_widget(viewer).setFocus()
"""
)
PLACES = (
    START
    + """
from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QStyle, QStyleOptionSlider
from napari_mamamia.widgets.adapter.adapter import main_view
slider = main_view(viewer).dims.slider_widgets[viewer.dims.not_displayed[-1]]
bar = slider.slider
option = QStyleOptionSlider()
bar.initStyleOption(option)
kind, parts = QStyle.ComplexControl.CC_ScrollBar, QStyle.SubControl
handle = bar.style().subControlRect(kind, option, parts.SC_ScrollBarSlider, bar)
groove = bar.style().subControlRect(kind, option, parts.SC_ScrollBarGroove, bar)
middle, left = bar.mapToGlobal(handle.center()), bar.mapToGlobal(groove.topLeft())
number = slider.curslice_label
at = number.mapToGlobal(number.rect().center())
result = [[middle.x(), middle.y()], left.x(), [at.x(), at.y()]]
"""
)
REMOVE = START + "viewer.layers.remove('other')"
OTHERS = {
    "finer": ((60, 20, 20), (0.5, 0.7, 0.7), (0, 0, 0)),
    "before and behind": ((300, 40, 40), (0.5, 0.7, 0.7), (-23.3, 0, 0)),
    "coarser": ((2, 4, 4), (5.0, 9.0, 9.0), (0, 0, 0)),
    "flat": ((40, 40), (0.25, 0.25), (3.0, -7.0)),
}


def ask(program, code):
    return program.ask("evaluate", code=code)


def state(program):
    """Return where the window stands, having made sure that number and pixels are of one slice."""
    found = ask(program, STATE)
    assert found["number"] == found["shown"] + 1, found
    assert found["total"] == found["count"], found
    assert found["shown"] in found["same"], found
    return found["shown"]


def press(program, key, slice_):
    program.screen.key(key)
    wait_until(lambda: ask(program, STATE)["shown"] == slice_, f"slice {slice_} after {key}", 10)
    assert state(program) == slice_


@pytest.mark.night  # by day test_case_steps goes through all kinds of other layers
def test_arrow_keys_slider_and_number_are_slices_of_the_case(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    program.wait_for_text("A_1")
    loaded = START + "result = panel.session.case is not None and panel.session.case.is_loaded"
    wait_until(lambda: ask(program, loaded), "its phases")
    for name, (shape, scale, begin) in OTHERS.items():
        ask(program, START + "panel.scene.view.go_to((1, 0, 0))")
        ask(program, ADD.format(shape=shape, scale=scale, start=begin))
        ask(program, FOCUS)
        wait_until(lambda: ask(program, STATE)["shown"] == 1, f"the slice stays ({name})", 10)
        for key, slice_ in (("Right", 2), ("Right", 3), ("Left", 2), ("Right", 3)):
            press(program, key, slice_)
        program.screen.picture(program.folder / f"{name}.png")
        drag_and_type(program)
        ask(program, REMOVE)
        wait_until(lambda: state(program) == 2, f"the slice stays as it goes ({name})", 10)


def drag_and_type(program):
    (x, y), left, number = ask(program, PLACES)
    program.screen.drag([(x, y), (x - 40, y), (left + 2, y), (left - 30, y)])
    wait_until(lambda: ask(program, STATE)["shown"] == 0, "the first slice, drawn to the left", 10)
    program.screen.click(*number, times=2)
    program.screen.xdotool("key", "ctrl+a")
    program.screen.xdotool("type", "3")
    program.screen.key("Return")
    wait_until(lambda: ask(program, STATE)["shown"] == 2, "the slice that was typed", 10)
    assert state(program) == 2
