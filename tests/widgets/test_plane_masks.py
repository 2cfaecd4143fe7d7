"""Masks in three planes: drawn as napari draws the whole array, whatever happened to it.

The picture to compare with is that of a plain napari layer, on which nothing of ours is in use.
"""

from types import SimpleNamespace

import napari.layers.labels.labels as napari_labels
import numpy as np
import pytest
from napari.components import Dims, ViewerModel
from napari.layers import Labels
from tests.halves import third_by_day

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.widgets.adapter.adapter import redraw_part
from napari_mamamia.widgets.adapter.drawing import sliced_once
from napari_mamamia.widgets.adapter.labels import trim_contours
from napari_mamamia.widgets.base.layers import Role, find_layer
from napari_mamamia.widgets.refine.state import PaintTool
from napari_mamamia.widgets.viewer.planes import Layout

SHAPE = (7, 11, 13)
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
AXIAL = np.diag([-1.5, 2.0, 3.0, 1.0])


# ------------------------------------------------------- one layer beside napari's own


def make_hostile_masks():
    """Return masks by name: nothing, everything, the border, many labels, loose voxels."""
    rng = np.random.default_rng(5)
    empty = np.zeros(SHAPE, np.uint8)
    corners, rim, blocks, shell = (empty.copy() for _ in range(4))
    corners[0, 0, 0] = corners[-1, -1, -1] = corners[0, -1, 0] = 1
    rim[:, [0, -1]] = rim[:, :, [0, -1]] = 1
    blocks[1:5, 2:6, 2:6], blocks[1:5, 6:9, 2:9], blocks[2:4, 3:4, 6:8] = 1, 2, 255
    shell[1:6, 1:9, 2:11] = 1
    shell[2:5, 3:7, 4:9] = 0
    return {
        "empty": empty,
        "whole": np.ones(SHAPE, np.uint8),
        "corners": corners,
        "rim": rim,
        "three labels that touch": blocks,
        "hole": shell,
        "loose voxels": (rng.random(SHAPE) < 0.05).astype(np.uint8),
        "every voxel another label": rng.integers(0, 9, SHAPE).astype(np.int32),
        "negative labels": -blocks.astype(np.int16),
        "a line": blocks[:, 3:4],
        "turned round": blocks[::-1, :, ::-1].transpose(2, 0, 1),
    }


MASKS = make_hostile_masks()


def make_layer(mask, contour, *, ours):
    layer = Labels(mask.copy())
    if ours:
        trim_contours(layer)
    layer.contour = contour
    return layer


@pytest.mark.parametrize("name", third_by_day(MASKS))
def test_contours_are_those_of_napari_in_every_slice_of_every_plane(name):
    mask = MASKS[name]
    dims = Dims(ndim=3, range=[(0, size - 1, 1) for size in mask.shape])
    for contour in (0, 1, 3):
        layer, plain = (make_layer(mask, contour, ours=ours) for ours in (True, False))
        for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
            dims.order = order
            for step in range(mask.shape[order[0]]):
                dims.set_current_step(order[0], step)
                for one in (layer, plain):
                    one._slice_dims(dims)
                picture, expected = (one._slice.image.view for one in (layer, plain))
                assert picture.dtype == expected.dtype
                np.testing.assert_array_equal(picture, expected)
        np.testing.assert_array_equal(layer.data, mask)  # the picture is one of its own


@pytest.mark.parametrize("contour", [1, 3])
@pytest.mark.parametrize("name", MASKS)
def test_a_part_drawn_anew_is_what_napari_draws_there(name, contour):
    mask = MASKS[name]
    drawn = {}
    for ours in (True, False):
        layer = make_layer(mask, contour, ours=ours)
        layer._slice_dims(Dims(ndim=3, range=[(0, n - 1, 1) for n in mask.shape], point=(3, 0, 0)))
        events = drawn[ours] = []
        layer.events.labels_update.connect(
            lambda event, to=events: to.append((tuple(event.offset), event.data.copy()))
        )
        rows = min(3, mask.shape[1])
        layer.data[3, :rows, 5:8] = 1
        redraw_part(layer, (slice(3, 4), slice(0, rows), slice(5, 8)))
        layer.data[3, :rows, 4:9] = 0
        redraw_part(layer, (slice(3, 4), slice(0, rows), slice(4, 9)))
        events.append(("whole", layer._slice.image.view.copy()))
    assert len(drawn[True]) == len(drawn[False]) == 3
    for (place, picture), (other_place, expected) in zip(*drawn.values(), strict=True):
        assert place == other_place
        np.testing.assert_array_equal(picture, expected)


def test_the_filters_look_at_the_labels_and_what_they_reach_alone(monkeypatch):
    sizes = []
    real = napari_labels.get_contours

    def note_size(part, *rest):
        sizes.append(part.shape)
        return real(part, *rest)

    monkeypatch.setattr(napari_labels, "get_contours", note_size)
    mask = np.zeros((5, 200, 300), np.uint8)
    mask[2:4, 50:60, 70:90] = 1
    layer = make_layer(mask, 1, ours=True)
    dims = Dims(ndim=3, range=[(0, n - 1, 1) for n in mask.shape])
    sizes.clear()
    for step in (4, 2, 0, 3):
        dims.set_current_step(0, step)
        layer._slice_dims(dims)
    assert sizes == [(12, 22), (12, 22)]  # 10x20 and one voxel around; none where no label is


# ------------------------------------------------------------------ the planes of a case


@pytest.fixture
def open_three(qtbot, dock, world):
    """Return a function that opens case A_1 on a grid in three planes, the masks as outlines."""

    def open_case(affine=AXIAL):
        world.affine = affine
        dock.open_data_set(world.root, "A_1")
        qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
        dock.planes.set_layout(Layout.PLANES)
        qtbot.waitUntil(lambda: not dock.planes.is_building)
        for layer in dock.scene.mask_layers():
            layer.contour = 1
        dock.planes.links.go_to((2, 9, 12))
        return dock

    return open_case


@pytest.fixture
def painting(qtbot, open_three):
    """A refined mask in three planes, with a plain sphere of 4 mm in hand."""
    dock = open_three()
    dock.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    dock.scene.layer(Role.REFINED).contour = 1
    dock.show_page("Refine")
    dock.painting.set_tool(PaintTool.SPHERE)
    dock.painting.set_brush(Brush(tool=Tool.SPHERE, radius_mm=4.0))
    return dock


def draw_plainly(model, layer):
    """Return the picture that napari alone makes of a layer's array, on a viewer's slice."""
    plain = Labels(
        layer.data.copy(), scale=layer.scale, translate=layer.translate, units=layer.units
    )
    plain.contour = layer.contour
    plain._slice_dims(model.dims)
    plain.refresh()
    return plain._slice.image.view


def check_pictures(dock, role, buffer):
    """Check every view's picture of a mask; return how many pixels each one draws."""
    main = dock.scene.layer(role)
    counts = []
    for model in dock.planes.views():
        layer = find_layer(model.layers, role)
        assert np.shares_memory(layer.data, buffer)
        assert (layer.contour, layer.opacity) == (main.contour, main.opacity)
        np.testing.assert_array_equal(layer.scale, main.scale)
        np.testing.assert_array_equal(layer.translate, main.translate)
        np.testing.assert_array_equal(layer.colormap.map([0, 1, 2]), main.colormap.map([0, 1, 2]))
        picture = layer._slice.image.view
        np.testing.assert_array_equal(picture, draw_plainly(model, layer))
        counts.append(int(np.count_nonzero(picture)))
    assert len(counts) == 3
    return counts


def press_at(model, position, button=1):
    make = {"position": position, "button": button, "modifiers": (), "handled": False}
    event = SimpleNamespace(type="mouse_press", pos=(50, 50), **make)
    running = [g for g in (f(model, event) for f in model.mouse_drag_callbacks) if g is not None]
    for turn in running:
        next(turn, None)
    event.type = "mouse_release"
    for turn in running:
        next(turn, None)


@pytest.mark.parametrize("affine", [AXIAL, PSR, OBLIQUE], ids=["axial", "sagittal", "oblique"])
def test_the_planes_of_any_grid_draw_masks_as_napari_does(open_three, affine):
    dock = open_three(affine)
    buffer = dock.session.mask(Role.REFERENCE).buffer
    # the blob is 2 x 4 x 6 voxels; its contour leaves out what has four equal neighbours
    assert sorted(check_pictures(dock, Role.REFERENCE, buffer)) == [8, 12, 16]
    dock.planes.links.go_to((0, 0, 0))
    assert check_pictures(dock, Role.REFERENCE, buffer) == [0, 0, 0]
    buffer[0, 0, 0] = buffer[0, -1, 0] = buffer[-1, 0, 0] = buffer[0, 0, -1] = 2
    dock.scene.redraw_mask(Role.REFERENCE)
    assert check_pictures(dock, Role.REFERENCE, buffer) == [3, 3, 3]
    buffer[:] = 0
    dock.scene.redraw_mask(Role.REFERENCE)
    assert check_pictures(dock, Role.REFERENCE, buffer) == [0, 0, 0]


@pytest.mark.parametrize("place", [0, 1], ids=["main", "sagittal"])
def test_a_stroke_far_from_the_mask_its_undo_and_its_redo_are_drawn_in_all_planes(painting, place):
    buffer = painting.session.mask(Role.REFINED).buffer
    painting.planes.links.go_to((5, 5, 5))  # not in the blob's box in any plane
    assert check_pictures(painting, Role.REFINED, buffer) == [0, 0, 0]
    # slice 5 of 3 mm, row 14 of 2 mm (y is 19 - 14), column 5 of 1.5 mm
    press_at(painting.planes.views()[place], (1.0, 15.0, 28.0, 7.5))
    assert buffer[5, 5, 5] == 1
    painted = check_pictures(painting, Role.REFINED, buffer)
    assert min(painted) > 0
    painting.editing.mask.undo()
    assert check_pictures(painting, Role.REFINED, buffer) == [0, 0, 0]
    painting.editing.mask.redo()
    assert check_pictures(painting, Role.REFINED, buffer) == painted


def test_what_naparis_own_brush_paints_is_drawn_in_all_planes(qtbot, painting):
    buffer = painting.session.mask(Role.REFINED).buffer
    painting.planes.links.go_to((3, 5, 5))
    drawn = []
    for pane in painting.planes.panes:
        find_layer(pane.model.layers, Role.REFINED).events.labels_update.connect(drawn.append)
    painting.scene.layer(Role.REFINED).paint((3, 14, 5), 1)
    qtbot.waitUntil(lambda: len(drawn) >= 2)
    assert min(check_pictures(painting, Role.REFINED, buffer)) > 0


def test_a_prediction_and_a_mask_started_from_it_are_drawn_in_all_planes(qtbot, open_three):
    dock = open_three()
    dock.predict()
    qtbot.waitUntil(lambda: dock.session.mask(Role.PREDICTION) is not None)
    prediction = dock.session.mask(Role.PREDICTION)
    dock.planes.links.go_to(tuple(int(i) for i in Box.around(prediction.buffer).centre))
    dock.scene.layer(Role.PREDICTION).contour = 1
    assert min(check_pictures(dock, Role.PREDICTION, prediction.buffer)) > 0
    dock.editing.start(Role.PREDICTION)
    qtbot.waitUntil(lambda: dock.editing.live is not None)
    dock.scene.layer(Role.REFINED).contour = 1
    buffer = dock.session.mask(Role.REFINED).buffer
    assert min(check_pictures(dock, Role.REFINED, buffer)) > 0


def test_a_renamed_hidden_or_deleted_mask_is_so_in_all_planes(open_three):
    dock = open_three()
    buffer = dock.session.mask(Role.REFERENCE).buffer
    layer = dock.scene.layer(Role.REFERENCE)
    layer.name = "mine"
    layer.visible = False
    dock.planes.links.go_to((0, 0, 0))
    dock.planes.links.go_to((3, 10, 14))
    layer.visible = True
    assert min(check_pictures(dock, Role.REFERENCE, buffer)) > 0
    layer.contour = 3
    check_pictures(dock, Role.REFERENCE, buffer)
    layer.contour = 0
    assert sorted(check_pictures(dock, Role.REFERENCE, buffer)) == [8, 12, 24]
    dock.viewer.layers.remove(layer)
    assert all(find_layer(m.layers, Role.REFERENCE) is None for m in dock.planes.views())
    dock.planes.links.go_to((1, 1, 1))


def test_the_next_case_is_drawn_with_its_own_mask_on_its_own_grid(qtbot, open_three, world):
    dock = open_three()
    world.affine = PSR
    next(f for key, f in dock.viewer.keymap.items() if str(key) == "N")(dock.viewer)
    qtbot.waitUntil(lambda: dock.session.case_id == "A_2" and dock.session.case.is_loaded)
    qtbot.waitUntil(lambda: not dock.planes.is_building)
    dock.planes.links.go_to((2, 9, 12))
    dock.scene.layer(Role.REFERENCE).contour = 1
    buffer = dock.session.mask(Role.REFERENCE).buffer
    assert sorted(check_pictures(dock, Role.REFERENCE, buffer)) == [8, 12, 16]


def test_the_label_under_the_pointer_is_that_of_the_mask_and_not_of_its_outline(open_three):
    dock = open_three()
    shown = dock.planes.links.find_shown_place()
    for model in dock.planes.views():
        layer = find_layer(model.layers, Role.REFERENCE)
        inside = tuple(i * mm for i, mm in zip(shown, layer.scale, strict=True))
        assert layer.get_value(inside, world=True) == 1
        assert layer.get_value((0.0, 0.0, 0.0), world=True) in (0, None)


# --------------------------------------------------------------------- once a step


def test_a_step_of_the_cross_hair_slices_each_layer_once_in_each_view(open_three):
    dock = open_three()
    sliced = []
    for model in dock.planes.views():
        for layer in model.layers:
            layer.events.set_data.connect(lambda event, one=layer: sliced.append(one))
    dock.planes.links.go_to((3, 10, 13))
    layers = [layer for model in dock.planes.views() for layer in model.layers if layer.visible]
    assert len(layers) == 6
    assert sorted(map(id, sliced)) == sorted(map(id, layers))


def test_a_layer_that_moves_while_slices_wait_has_its_new_size_afterwards():
    viewer = ViewerModel()
    still, moved = viewer.add_labels(MASKS["hole"]), viewer.add_labels(MASKS["hole"])
    assert viewer.layers.extent.world[1].tolist() == [6.0, 10.0, 12.0]
    with sliced_once(viewer):
        moved.translate = (0.0, 5.0, 0.0)
        viewer.dims.set_current_step(0, 2)
    assert viewer.layers.extent.world[1].tolist() == [6.0, 15.0, 12.0]
    still.scale = (1.0, 1.0, 2.0)  # and as ever afterwards
    assert viewer.layers.extent.world[1].tolist() == [6.0, 15.0, 24.0]
