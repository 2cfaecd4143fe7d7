"""Steps of the viewer are phases and slices of the open case, whatever another plugin adds."""

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image, Points
from tests.halves import third_by_day

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.slice_view import read_steps

OTHERS = {
    "finer": ((60, 20, 20), (0.5, 0.7, 0.7), (0, 0, 0)),
    "odd": ((60, 20, 20), (0.37, 0.71, 0.93), (0, 0, 0)),
    "coarser": ((2, 4, 4), (5.0, 9.0, 9.0), (0, 0, 0)),
    "larger": ((200, 400, 400), (0.5, 0.5, 0.5), (-20.3, -31.0, -17.7)),
    "behind": ((40, 20, 20), (0.5, 0.5, 0.5), (33.3, 5.0, 5.0)),
    "before": ((40, 20, 20), (0.5, 0.5, 0.5), (-133.3, 5.0, 5.0)),
    "flat": ((40, 40), (0.25, 0.25), (3.0, -7.0)),
    "more axes": ((2, 3, 9, 8, 8), (0.5, 0.5, 0.5, 0.5, 0.5), (0, -3, 0, 0, 0)),
    "rolled phases": ((7, 9, 8, 8), (0.25, 0.5, 0.5, 0.5), (-1.5, 0, 0, 0)),
}


def shown(dock):
    """Return the slice of the case that stands on screen, as its pixels say."""
    layer = dock.scene.layer(Role.PHASE)
    return np.asarray(layer._slice.image.raw)


def slice_of(dock, phase, k):
    return np.asarray(dock.scene.layer(Role.PHASE).data[phase, k])


def add(dock, name):
    shape, scale, translate = OTHERS[name]
    layer = Image(np.zeros(shape, np.uint8), scale=scale, translate=translate, name=name)
    return dock.viewer.add_layer(layer)


@pytest.mark.parametrize("name", third_by_day(OTHERS))
def test_an_arrow_key_is_a_slice_of_the_case_beside_another_plugins_layer(opened, name):
    dims = opened.viewer.dims
    opened.scene.go_to_phase(1)
    opened.scene.view.go_to((2, 0, 0))
    grid = opened.scene.grid
    layer = add(opened, name)
    axis = dims.ndim - 3
    assert read_steps(dims, grid)[0] == 2, "another layer moves nothing"
    dims.last_used = axis
    for press, slice_ in (("right", 3), ("right", 4), ("left", 3), ("left", 2), ("left", 1)):
        getattr(dims, f"_increment_dims_{press}")()
        assert read_steps(dims, grid)[0] == slice_
        np.testing.assert_array_equal(shown(opened), slice_of(opened, 1, slice_))
    opened.scene.step_phase(1)
    assert opened.scene.phase == 2
    np.testing.assert_array_equal(shown(opened), slice_of(opened, 2, 1))
    last = grid.shape[0] - 1
    opened.scene.view.go_to((last, 0, 0))
    assert read_steps(dims, grid)[0] == last
    opened.viewer.layers.remove(layer)
    assert read_steps(dims, grid)[0] == last, "nor does its end"
    assert dims.nsteps[-3] == grid.shape[0]


@pytest.mark.parametrize("name", ["finer", "before", "larger", "more axes"])
def test_in_another_plane_too(opened, name):
    dims = opened.viewer.dims
    dims.order = (0, 3, 1, 2)
    grid = opened.scene.grid
    add(opened, name)
    axis = dims.ndim - 1
    assert axis in dims.not_displayed
    dims.last_used = axis
    before = read_steps(dims, grid)[2]
    dims._increment_dims_right()
    assert read_steps(dims, grid)[2] == before + 1
    dims.ndisplay = 3
    dims.ndisplay = 2
    assert read_steps(dims, grid)[2] == before + 1


@pytest.mark.parametrize("name", ["larger", "behind", "before"])
def test_what_lies_beyond_the_case_stays_within_reach(opened, name):
    layer = add(opened, name)
    dims = opened.viewer.dims
    seen = set()
    for step in range(dims.nsteps[1]):
        dims.set_current_step(1, step)
        seen.add(round(layer.world_to_data(dims.point)[0]))
    first, last = min(seen), max(seen)
    mm = opened.scene.grid.spacing_mm[0]
    assert first <= mm / 0.5
    assert last >= layer.data.shape[0] - 1 - mm / 0.5


def test_steps_are_naparis_while_no_case_is_open(opened):
    add(opened, "finer")
    opened.session.close_case()
    opened.viewer.layers.clear()
    add(opened, "finer")
    plain = ViewerModel()
    plain.add_layer(Image(np.zeros((60, 20, 20), np.uint8), scale=(0.5, 0.7, 0.7)))
    assert opened.viewer.dims.range == plain.dims.range


def test_the_next_case_has_its_own_steps_behind_the_same_layer(qtbot, opened):
    add(opened, "finer")
    opened.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2" and opened.session.case.is_loaded)
    grid = opened.scene.grid
    spacing = grid.display_frame().per_axis(grid.spacing_mm)
    assert [one.step for one in opened.viewer.dims.range[1:]] == pytest.approx(list(spacing))


def test_points_of_another_plugin_take_no_steps_of_their_own(opened):
    opened.viewer.add_layer(
        Points(np.array([[0, 0.3, 2, 2], [1, 1.9, 5, 5]]), scale=(1, 0.1, 1, 1))
    )
    grid, dims = opened.scene.grid, opened.viewer.dims
    opened.scene.view.go_to((2, 0, 0))
    dims._increment_dims_right(1)
    assert read_steps(dims, grid)[0] == 3


def test_arrow_keys_go_through_slices_from_the_start_and_after_each_change_of_plane(opened):
    dims, grid = opened.viewer.dims, opened.scene.grid
    assert dims.last_used == 1
    for order in ((0, 3, 1, 2), (0, 2, 1, 3), (0, 1, 2, 3)):
        dims.order = order
        assert dims.last_used == order[1]
        dims.ndisplay = 3
        dims.ndisplay = 2
        assert dims.last_used == order[1]
    add(opened, "more axes")
    assert dims.last_used == 2
    before = read_steps(dims, grid)[0]
    dims._increment_dims_left()
    assert read_steps(dims, grid)[0] == before - 1
    # whoever chose another slider keeps it
    dims.last_used = 1
    opened.scene.step_phase(1)
    assert dims.last_used == 1
