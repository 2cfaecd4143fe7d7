import numpy as np
import pytest
from napari.layers import Labels, Layer

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.widgets.base.layers import (
    METADATA_KEY,
    LayerTag,
    Role,
    array_of,
    case_layer,
    case_of,
    find_layer,
    find_layers,
    map_layer,
    mask_layer,
    style_mask,
    subtraction_layer,
    tag_for,
    tag_of,
    uncertainty_layer,
)

# x to posterior, y to superior, z to the right: sagittal slices, all axes permuted and flipped
SAGITTAL = np.array(
    [[0.0, 0.0, 2.0, 0.0], [-0.8, 0.0, 0.0, 0.0], [0.0, 0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
)


def _case(affine):
    signal = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    return Case("S_1", Grid((3, 4, 5), affine), signal, (Phase(0, 0.0), Phase(1, 90.0)))


@pytest.fixture(params=["axial", "sagittal"])
def either_case(request):
    return _case(np.diag([-0.8, 0.7, 2.0, 1.0]) if request.param == "axial" else SAGITTAL)


def test_a_case_becomes_one_image_layer_that_shares_its_memory(either_case, viewer):
    layer = viewer.add_layer(Layer.create(*case_layer(either_case, (0, 100))))
    assert np.shares_memory(layer.data, either_case.signal)
    assert layer.data.dtype == np.int16
    assert layer.ndim == 4


def test_the_layer_of_a_case_has_mm_units_and_named_axes(either_case, viewer):
    layer = viewer.add_layer(Layer.create(*case_layer(either_case, (0, 100))))
    assert layer.axis_labels == ("phase", "slice", "row", "column")
    assert [str(unit) for unit in layer.units] == [
        "pixel",
        "millimeter",
        "millimeter",
        "millimeter",
    ]
    assert tuple(viewer.dims.axis_labels) == ("phase", "slice", "row", "column")


def test_axial_slices_show_anterior_up_and_the_right_side_on_the_left():
    # LAS: x runs to the left, y to anterior, z to superior. Voxel (z, y, x) = (2, 3, 0) is the
    # most superior, anterior, right one: last slice, first row, first column.
    case = _case(np.diag([-0.8, 0.7, 2.0, 1.0]))
    data, keywords, _ = case_layer(case, (0, 1))
    assert data[1, 2, 0, 0] == case.signal[1, 2, 3, 0]
    assert keywords["scale"] == pytest.approx((1.0, 2.0, 0.7, 0.8))


def test_sagittal_slices_show_superior_up_and_anterior_left():
    # z runs to the right, y to superior, x to posterior. Slices run to the left of the patient, so
    # the leftmost voxel (z = 0) is on the last slice; top row is the highest y.
    case = _case(SAGITTAL)
    data, keywords, _ = case_layer(case, (0, 1))
    assert data[0, 2, 0, 0] == case.signal[0, 0, 3, 0]
    assert keywords["scale"] == pytest.approx((1.0, 2.0, 0.9, 0.8))


def test_painting_on_a_mask_layer_paints_the_array(either_case, viewer):
    buffer = np.zeros(either_case.grid.shape, np.uint8)
    layer = viewer.add_layer(Layer.create(*mask_layer(tag_for(either_case, Role.REFINED), buffer)))
    style_mask(layer)
    voxel = (1, 2, 3)
    frame = either_case.grid.display_frame()
    layer.brush_size = 1
    layer.paint(frame.point_to_display(voxel, buffer.shape), 1)
    assert np.argwhere(buffer).tolist() == [list(voxel)]


def test_array_of_gives_back_the_array_of_the_case(either_case, viewer):
    layer = viewer.add_layer(Layer.create(*case_layer(either_case, (0, 100))))
    np.testing.assert_array_equal(array_of(layer), either_case.signal)
    assert np.shares_memory(array_of(layer), either_case.signal)


def test_a_layer_of_phases_gives_back_its_case(either_case, viewer):
    layer = viewer.add_layer(Layer.create(*case_layer(either_case, (0, 100))))
    found = case_of(layer)
    assert found.case_id == "S_1"
    assert found.times_s == (0.0, 90.0)
    assert np.shares_memory(found.signal, either_case.signal)


def test_array_of_refuses_a_foreign_layer():
    layer = Labels(np.zeros((3, 4, 5), np.uint8), name="somebody else's")
    with pytest.raises(GridMismatchError, match="somebody else's"):
        array_of(layer)


def test_array_of_refuses_replaced_data(either_case):
    buffer = np.zeros(either_case.grid.shape, np.uint8)
    layer = Layer.create(*mask_layer(tag_for(either_case, Role.REFINED), buffer))
    layer.data = np.zeros((9, 9, 9), np.uint8)
    with pytest.raises(GridMismatchError, match="open the case again"):
        array_of(layer)


def test_layers_are_found_by_tag_after_renaming_reordering_and_deleting(either_case, viewer):
    for role in (Role.REFERENCE, Role.PREDICTION):
        buffer = np.zeros(either_case.grid.shape, np.uint8)
        viewer.add_layer(Layer.create(*mask_layer(tag_for(either_case, role), buffer)))
    viewer.add_labels(np.zeros((3, 4, 5), np.uint8), name="S_1 reference of somebody else")
    viewer.layers[0].name = "renamed"
    viewer.layers.move(0, 3)
    assert tag_of(find_layer(viewer.layers, Role.REFERENCE)).role is Role.REFERENCE
    viewer.layers.remove(find_layer(viewer.layers, Role.REFERENCE))
    assert find_layer(viewer.layers, Role.REFERENCE) is None
    assert len(find_layers(viewer.layers)) == 1


def test_a_layer_whose_metadata_were_overwritten_is_nobodys():
    layer = Labels(np.zeros((3, 4, 5), np.uint8), metadata={METADATA_KEY: {"role": "reference"}})
    assert tag_of(layer) is None


def test_only_the_refined_mask_can_be_edited(either_case):
    editable = {}
    for role in (Role.REFERENCE, Role.PREDICTION, Role.REFINED):
        buffer = np.zeros(either_case.grid.shape, np.uint8)
        layer = Layer.create(*mask_layer(tag_for(either_case, role), buffer))
        style_mask(layer)
        editable[role] = layer.editable
    assert editable == {Role.REFERENCE: False, Role.PREDICTION: False, Role.REFINED: True}


def test_masks_are_outlines_in_the_colours_of_the_house(either_case):
    expected = {Role.REFERENCE: "56b4e9", Role.PREDICTION: "e69f00", Role.REFINED: "009e73"}
    for role, colour in expected.items():
        buffer = np.zeros(either_case.grid.shape, np.uint8)
        layer = Layer.create(*mask_layer(tag_for(either_case, role), buffer))
        style_mask(layer)
        drawn = (np.array(layer.get_color(1))[:3] * 255).round().astype(int)
        assert "".join(f"{c:02x}" for c in drawn) == colour
        assert layer.contour == 1


def test_a_tag_holds_the_grid_of_its_case(either_case):
    tag = tag_for(either_case, Role.PHASE)
    assert isinstance(tag, LayerTag)
    assert tag.grid is either_case.grid


def test_no_image_layer_writes_depths_that_would_hide_the_masks_above_it(either_case):
    tag = tag_for(either_case, Role.PHASE)
    volume = np.zeros(either_case.grid.shape, dtype=np.float32)
    made = (
        case_layer(either_case, (0, 100)),
        subtraction_layer(tag, volume, (0, 100)),
        uncertainty_layer(tag, volume),
        map_layer(tag, volume, (0, 1), "grey", [(0, 0, 0, 1), (1, 1, 1, 1)]),
    )
    assert {Layer.create(*layer).blending for layer in made} == {
        "translucent_no_depth",
        "additive",
    }
