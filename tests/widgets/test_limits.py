"""Limits at both ends: first and last slice, phase, case, row and value; edges of the image."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari._qt.widgets.qt_dims import QtDims
from napari.components import Dims
from napari.layers import Image
from tests.widgets.test_wheel import turn

from napari_mamamia.core.edits import Edit
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.io.workspace.measurements import append_measurement
from napari_mamamia.widgets.adapter.sliders import SliderNumbers, number_sliders
from napari_mamamia.widgets.refine.history_list import HistoryList
from napari_mamamia.widgets.refine.state import RADII_MM, next_radius_mm
from napari_mamamia.widgets.viewer.cine import Cine
from napari_mamamia.widgets.viewer.pane_sides import leave_midline, mirror_mm, put_on_side, side_of
from napari_mamamia.widgets.viewer.prompts import box_around_drag
from napari_mamamia.widgets.viewer.slice_view import read_steps

KEY_IMAGE, RULER = MeasureKind.KEY_IMAGE, MeasureKind.RULER
SHAPE = (6, 20, 24)
LAST = (5, 19, 23)


def steps_of(dock):
    return read_steps(dock.viewer.dims, dock.scene.grid)


def add_around(dock):
    """Add another plugin's layer that reaches beyond the case on all sides."""
    layer = Image(np.zeros((40, 80, 80), np.uint8), scale=(3, 2, 2), translate=(-30, -40, -40))
    return dock.viewer.add_layer(layer)


# ------------------------------------------------------------------ slices


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_wheel_reaches_and_keeps_the_first_and_the_last_slice(opened, is_alone):
    if not is_alone:
        add_around(opened)
    opened.scene.view.go_to((2, 0, 0))
    seen = []
    for turns in (-1, 1):
        for _ in range(8):
            turn(opened.viewer, turns)
            seen.append(steps_of(opened)[0])
    assert seen == [3, 4, 5, 5, 5, 5, 5, 5, 4, 3, 2, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("asked", "reached"), [((-4, -4, -4), (0, 0, 0)), ((90, 90, 90), LAST), (LAST, LAST)]
)
def test_a_place_beyond_the_case_is_its_nearest_voxel(opened, asked, reached):
    links = opened.planes.links
    links.go_to((2, 3, 4))
    links.go_to(asked)
    assert links.place == reached


def test_beside_the_case_the_slice_shown_is_its_first_or_last(opened):
    add_around(opened)
    dims, view = opened.viewer.dims, opened.scene.view
    axis = dims.ndim - 3
    for world, index in ((-20.0, 0), (0.0, 0), (15.0, 5), (18.0, 5), (60.0, 5)):
        dims.set_point(axis, world)
        assert view.slice_shown() == (0, index)


def test_phases_are_numbered_from_0_and_slices_from_1_to_the_last_of_the_case(opened):
    count = len(opened.session.case.phases)
    ends = (count - 1, *(last + 1 for last in LAST))
    for first_slice in (0, -10):
        numbers = [opened.scene._steps.number(axis) for axis in range(4)]
        assert [number.last for number in numbers] == list(ends)
        assert numbers[1].first == first_slice + 1
        assert all(str(last) in number.tip for number, last in zip(numbers, ends, strict=True))
        add_around(opened)  # begins 10 slices before the case
    assert opened.scene._steps.number(4) is None
    assert opened.scene._steps.number(-1) is None


@pytest.mark.parametrize(("typed", "step"), [(-9, 0), (-2, 0), (0, 2), (5, 7), (7, 9), (99, 9)])
def test_a_number_typed_for_a_slider_goes_to_its_step_or_to_the_nearest_end(qtbot, typed, step):
    class Counted:
        def read(self, _axis):
            return SliderNumbers(-2, 5, "counted from -2")

    counted, sliders = Counted(), QtDims(Dims(ndim=3))
    qtbot.addWidget(sliders)
    sliders.dims.range = ((0, 9, 1),) * 3
    number_sliders(SimpleNamespace(dims=sliders), counted.read)
    label = sliders.slider_widgets[0].curslice_label
    label.setText(str(typed))
    label.editingFinished.emit()
    assert sliders.dims.current_step[0] == step
    assert (label.text(), sliders.slider_widgets[0].totslice_label.text()) == (str(step - 2), "5")


# ------------------------------------------------------------------ phases


def test_phases_stop_at_the_first_and_the_last(opened):
    scene, axis = opened.scene, opened.viewer.dims.ndim - 4
    count = len(opened.session.case.phases)
    for asked, reached in (
        (-1, 0),
        (0, 0),
        (count - 1, count - 1),
        (count, count - 1),
        (99, count - 1),
    ):
        scene.go_to_phase(asked)
        assert scene.phase == reached
        assert opened.viewer.dims.current_step[axis] == reached
    scene.step_phase(1)
    assert scene.phase == count - 1
    scene.step_phase(-99)
    assert scene.phase == 0
    scene.step_phase(-1)
    assert scene.phase == 0


def test_the_phase_shown_is_one_of_the_case_beside_a_longer_series(opened):
    count = len(opened.session.case.phases)
    series = np.zeros((count + 5, 6, 20, 20), np.uint8)
    opened.viewer.add_layer(Image(series, scale=(1, 3, 2, 2), translate=(-2, 0, 0, 0)))
    dims = opened.viewer.dims
    for point, phase in ((-2, 0), (0, 0), (count - 1, count - 1), (count + 1, count - 1)):
        dims.set_point(dims.ndim - 4, point)
        assert opened.scene.phase == phase
    for asked, reached in ((-1, 0), (count, count - 1), (count + 3, count - 1)):
        opened.scene.go_to_phase(asked)
        assert dims.point[dims.ndim - 4] == reached, "no phase of the case is beyond"


@pytest.mark.parametrize(
    ("phase", "minus", "minuend"), [(0, 0, 1), (1, 1, 0), (2, 2, 1), (2, 0, 2), (0, 2, 0)]
)
def test_a_phase_is_never_subtracted_from_itself(opened, phase, minus, minuend):
    opened.scene.go_to_phase(phase)
    subtracting = opened.subtracting
    subtracting.minus = minus
    assert subtracting.minuend == minuend


def test_cine_goes_from_the_last_phase_to_the_first(opened):
    count = len(opened.session.case.phases)
    cine = Cine(opened.scene)
    opened.scene.go_to_phase(count - 2)
    seen = []
    for _ in range(3):
        cine.step()
        seen.append(opened.scene.phase)
    assert seen == [count - 1, 0, 1]


# ------------------------------------------------------------------- cases


def test_a_queue_ends_at_both_ends(opened):
    session = opened.session
    session.set_queue(["B_1", "A_1", "A_2"])
    assert [session.neighbour(by) for by in (-2, -1, 0, 1, 2)] == [None, "B_1", "A_1", "A_2", None]
    session.set_queue(["A_1"])
    assert (session.neighbour(-1), session.neighbour(1), session.position) == (None, None, "1 / 1")
    session.set_queue(["A_2", "B_1"])
    assert (session.neighbour(1), session.position) == ("A_2", ""), "A_1 is not in the list"
    session.set_queue([])
    assert (session.neighbour(1), session.neighbour(-1), session.position) == (None, None, "")


# ------------------------------------------------------- boxes, sides, edges


@pytest.mark.parametrize(
    ("start", "stop", "box"),
    [
        # A drag over the first slice's corner: its 3 x 4 mm are half a slice of 6 mm deep each way.
        ((0, 0, 0), (0, 2, 3), ((0, 0, 0), (1, 3, 4))),
        ((5, 17, 20), (5, 19, 23), ((5, 17, 20), (6, 20, 24))),
        # Beyond the edges nothing belongs to it.
        ((2, -3, -9), (2, 30, 40), ((0, 0, 0), (6, 20, 24))),
        # 12 mm long: one slice of 6 mm each way.
        ((2, 4, 12), (2, 8, 1), ((1, 4, 1), (4, 9, 13))),
    ],
)
def test_a_dragged_box_ends_at_the_edges_of_the_image(start, stop, box):
    grid = Grid.of_spacing(SHAPE, (6.0, 1.0, 1.0))
    dragged = box_around_drag(start, stop, grid)
    assert (dragged.start, dragged.stop) == box


@pytest.mark.parametrize(("count", "right"), [(24, range(12)), (23, range(11))])
def test_each_index_has_a_side_and_a_mirror_image(count, right):
    grid = Grid((6, 20, count), np.diag([-2.0, 1.0, 3.0, 1.0]))
    frame = [int(i) for i in range(count)]
    sides = [side_of(grid, index) for index in frame]
    assert [index for index in frame if sides[index] == "right"] == list(right)
    for index in frame:
        assert put_on_side(grid, index, "other") == count - 1 - index
        assert put_on_side(grid, index, sides[index]) == index
        assert put_on_side(grid, index, "") == index
        assert mirror_mm(grid, 2.0 * index) == 2.0 * (count - 1 - index)
    # 20 mm from the midline begins a breast: indices of 2 mm.
    middle = (count - 1) / 2
    for index in frame:
        assert leave_midline(grid, index) == (count // 4 if 2 * abs(index - middle) < 20 else index)


# --------------------------------------------------------------- the brush


def test_the_radius_stays_within_its_limits():
    least, most = RADII_MM
    assert next_radius_mm(least, -1) == least
    assert next_radius_mm(least, 1) == least + 0.5
    assert next_radius_mm(most, 1) == most
    assert next_radius_mm(most, -1) < most
    radius, seen = most, []
    while radius > least:
        radius = next_radius_mm(radius, -1)
        seen.append(radius)
    assert seen == sorted(set(seen), reverse=True)
    assert seen[-1] == least


def test_the_sliders_of_a_radius_and_a_slab_hold_their_least_and_their_most(opened):
    tools = opened.refine_page.tools
    least, most = RADII_MM
    wanted = []
    tools.brush_wanted.connect(lambda brush: wanted.append(brush.radius_mm))
    tools.radius.setValue(tools.radius.minimum())
    tools.radius.setValue(tools.radius.maximum())
    assert wanted[-2:] == [least, most]
    panel = opened.view_panel
    panel.set_slab(0.0)
    assert panel.slab_mm.text() == "whole volume"
    panel.slab.setValue(panel.slab.maximum() + 1)
    assert (panel.slab.value(), panel.slab_mm.text()) == (60, "60 mm")
    assert opened.projecting.slab_mm == 60.0
    panel.slab.setValue(-1)
    assert (panel.slab.value(), panel.slab_mm.text()) == (0, "whole volume")
    assert opened.projecting.slab_mm == 0.0


# --------------------------------------------------------------- measuring


def keep_images_of(dock, reader):
    """Return who kept a key image of the slice shown."""
    return sorted(
        drawn.item.reader
        for drawn in dock.measuring.record.items
        if drawn.item.kind is KEY_IMAGE and drawn.is_own == (drawn.item.reader == reader)
    )


def test_a_key_image_of_another_reader_is_neither_ones_own_nor_taken_away(qtbot, opened, world):
    opened.show_page("View")
    measuring = opened.measuring
    measuring.use(KEY_IMAGE)
    (own,) = [drawn.item for drawn in measuring.record.items]
    theirs = Measurement("A_1", KEY_IMAGE, own.points_mm, own.plane, own.phase, reader="Ben")
    append_measurement(world.root / "workspace", theirs)
    measuring.use(KEY_IMAGE)
    assert measuring.record.items == ()
    measuring.record.read()
    qtbot.waitUntil(lambda: len(measuring.record.items) == 1)
    assert keep_images_of(opened, "Ana") == ["Ben"]
    measuring.use(KEY_IMAGE)
    assert keep_images_of(opened, "Ana") == ["Ana", "Ben"], "theirs is not taken for one's own"
    measuring.use(KEY_IMAGE)
    assert keep_images_of(opened, "Ana") == ["Ben"], "one's own is dropped, theirs stays"


@pytest.mark.parametrize(
    ("x_y_z_mm", "voxel"),
    [
        # voxels of 1.5 x 2 x 3 mm, x to the left of the patient
        ((-4.5, 8.0, 0.0), (0, 4, 3)),
        ((-4.5, 8.0, 15.0), (5, 4, 3)),
        ((60.0, -60.0, 6.0), (2, 0, 0)),
        ((-60.0, 60.0, 6.0), (2, 19, 23)),
        ((-4.5, 8.0, -3.0), None),
        ((-4.5, 8.0, 18.0), None),
    ],
)
def test_a_drawing_is_gone_to_within_the_image_or_said_to_lie_outside(
    qtbot, opened, world, x_y_z_mm, voxel
):
    opened.show_page("View")
    ends = (x_y_z_mm, (x_y_z_mm[0] - 9.0, *x_y_z_mm[1:]))
    stored = append_measurement(
        world.root / "workspace", Measurement("A_1", RULER, ends, "axial", 1, reader="Ben")
    )
    record, revealed = opened.measuring.record, []
    opened.scene.view.reveal = revealed.append
    record.read()
    qtbot.waitUntil(lambda: len(record.items) == 1)
    opened.measuring.go_to(stored.measurement_id)
    assert revealed == ([] if voxel is None else [voxel])
    assert ("lies outside" in opened.header.message.text()) == (voxel is None)
    assert record.chosen == stored.measurement_id


def test_an_empty_list_has_no_chosen_line_and_nothing_to_undo(opened):
    section = opened.pages.measure
    assert opened.measuring.record.items == ()
    assert section.list.model().rowCount() == 0
    opened.measuring.delete()
    opened.measuring.record.undo()
    assert not opened.measuring.record.can_undo
    assert section.list.height() > 0


# ----------------------------------------------------------------- history


def test_the_newest_step_is_the_first_line_and_the_start_the_last(qtbot):
    history = HistoryList()
    qtbot.addWidget(history)
    wanted = []
    history.position_wanted.connect(wanted.append)
    model = history.view.model()
    history.show_steps((), 0, "empty mask", can_undo=False, can_redo=False)
    assert (model.rowCount(), model.position_of(0)) == (1, 0)
    assert model.index(0, 0).data() == "start: empty mask"
    steps = (Edit("outline"), Edit("grow"), Edit("smooth"))
    history.show_steps(steps, 2, "empty mask", can_undo=True, can_redo=True)
    assert [model.position_of(row) for row in range(model.rowCount())] == [3, 2, 1, 0]
    names = [model.index(row, 0).data() for row in range(model.rowCount())]
    assert "smooth" in names[0]
    assert names[-1] == "start: empty mask"
    for row, position in ((0, 3), (3, 0)):
        history.view.clicked.emit(model.index(row, 0))
        assert wanted[-1] == position
