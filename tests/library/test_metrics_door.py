"""`mm.metrics`: the metrics by name, on whatever array somebody has in hand."""

import math

import nibabel as nib
import numpy as np
import pytest
import SimpleITK

import napari_mamamia as mm
from napari_mamamia.metrics.registry import METRICS

GRID = mm.Grid.of_spacing((4, 10, 12), (2.0, 0.5, 1.5))


def _cube(shift=0):
    mask = np.zeros(GRID.shape, bool)
    mask[1:3, 3:7, 3 + shift : 7 + shift] = True
    return mask


def test_two_cubes_one_column_apart_by_hand():
    a, b = _cube(), _cube(1)
    assert mm.metrics.dice(a, b) == 0.75  # 3 of 4 columns shared
    assert mm.metrics.iou(a, b) == 0.6
    assert mm.metrics.hausdorff_mm(a, b, GRID) == 1.5
    assert mm.metrics.hausdorff95_mm(a, b, GRID) == 1.5
    assert mm.metrics.hausdorff95_voxels(a, b) == 1.0
    assert mm.metrics.nsd(a, b, GRID, tolerance_mm=1.5) == 1.0
    assert mm.metrics.volume_mm3(a, GRID) == 32 * 1.5
    assert mm.metrics.longest_diameter_mm(a, GRID) == pytest.approx(
        math.hypot(1 * 2.0, 3 * 0.5, 3 * 1.5)
    )
    assert mm.metrics.lesion_counts(a, b).found == 1


def test_measure_gives_every_metric_but_the_profile_own_as_the_score_has_it():
    a, b = _cube(), _cube(2)
    row = mm.score(a, b, grid=GRID, bootstrap=0, progress=False).cases.loc["case"]
    found = mm.metrics.measure(a, b, GRID)
    assert set(found) == {spec.name for spec in METRICS} - {"norm_hd"}
    assert {name: row[name] for name in found} == found


def test_measure_needs_to_know_the_grid_and_says_nan_where_a_mask_is_empty():
    with pytest.raises(mm.ArgumentError, match="expected a grid"):
        mm.metrics.measure(_cube(), _cube())
    found = mm.metrics.measure(_cube(), np.zeros(GRID.shape, bool), GRID)
    assert (found["dsc"], found["volume_prediction_mm3"]) == (0.0, 0.0)
    assert math.isnan(found["hausdorff_mm"])


def test_each_metric_by_its_own_name_is_equal_to_the_score():
    a, b = _cube(), _cube(2)
    row = mm.score(a, b, grid=GRID, bootstrap=0, progress=False).cases.loc["case"]
    door = {
        "nsd_1mm": lambda: mm.metrics.nsd(a, b, GRID, 1.0),
        "nsd_2mm": lambda: mm.metrics.nsd(a, b, GRID, 2.0),
        "dsc": lambda: mm.metrics.dice(a, b, GRID),
        "volume_reference_mm3": lambda: mm.metrics.volume_mm3(a, GRID),
        "volume_prediction_mm3": lambda: mm.metrics.volume_mm3(b, GRID),
        "diameter_reference_mm": lambda: mm.metrics.longest_diameter_mm(a, GRID),
    }
    for name in ("iou", "hausdorff95_mm", "hausdorff95_voxels", "hausdorff_mm", "assd_mm"):
        door[name] = lambda name=name: getattr(mm.metrics, name)(a, b, GRID)
    assert {name: own() for name, own in door.items()} == {name: row[name] for name in door}


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_a_mask(kind):
    assert mm.metrics.dice(_cube().astype(kind) * 7, _cube(1), GRID) == 0.75


def test_a_mask_record_brings_its_grid():
    mask = mm.Mask(GRID, _cube())
    assert mm.metrics.hausdorff95_mm(mask, _cube(1)) == 1.5
    other = mm.Mask(mm.Grid.of_spacing(GRID.shape, (3.0, 0.5, 1.5)), _cube())
    with pytest.raises(mm.GridMismatchError, match="mm apart"):
        mm.metrics.dice(mask, other)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: _cube() * 0.7, "apply a threshold to probabilities yourself"),
        (lambda: np.where(_cube(), np.nan, 0), "NaN or infinity"),
        (lambda: _cube().astype(int) * -1, "no labels below 0"),
        (lambda: np.arange(480).reshape(GRID.shape), "looks like an image"),
        (lambda: _cube() + _cube(1).astype(int), "mask == 1"),
        (lambda: _cube()[0], r"to be an array \(z, y, x\)"),
        (lambda: np.array([["a"]]), "to have bool or numeric values"),
        (lambda: _cube() * 1j, "to have bool or numeric values"),
        (lambda: "mask.nii.gz", r"read_mask\(path\)"),
        (lambda: None, r"read_mask\(path\)"),
        (lambda: nib.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4)), "from_nibabel"),
        (lambda: SimpleITK.GetImageFromArray(np.zeros((2, 2, 2), np.uint8)), "GetArrayFromImage"),
    ],
)
def test_what_is_no_mask_is_refused_and_the_way_out_is_told(wrong, said):
    with pytest.raises(mm.ArgumentError, match=said):
        mm.metrics.dice(_cube(), wrong(), GRID)
    with pytest.raises(mm.ArgumentError, match=said):
        mm.metrics.hausdorff_mm(wrong(), _cube(), GRID)


def test_other_shapes_are_refused_and_turned_axes_are_told():
    with pytest.raises(mm.GridMismatchError, match=r"pass mask\.T"):
        mm.metrics.dice(_cube(), _cube().T, GRID)
    with pytest.raises(mm.GridMismatchError, match="masks of the same case"):
        mm.metrics.dice(_cube(), _cube()[1:])


def test_distances_in_mm_need_a_grid_that_is_one():
    with pytest.raises(mm.ArgumentError, match=r"Grid\.of_spacing"):
        mm.metrics.assd_mm(_cube(), _cube(1))
    with pytest.raises(mm.ArgumentError, match="to be a Grid, but got tuple"):
        mm.metrics.assd_mm(_cube(), _cube(1), (2.0, 0.5, 1.5))
    with pytest.raises(mm.ArgumentError, match="tolerance to be 0 mm or above"):
        mm.metrics.nsd(_cube(), _cube(1), GRID, -1.0)


def test_empty_masks_are_undefined_and_no_error():
    empty = np.zeros(GRID.shape, bool)
    assert math.isnan(mm.metrics.dice(empty, empty))
    assert math.isnan(mm.metrics.hausdorff95_mm(_cube(), empty, GRID))
    assert mm.metrics.dice(_cube(), empty) == 0
    assert mm.metrics.volume_mm3(empty, GRID) == 0


def test_a_name_that_is_not_there_is_an_attribute_error_and_the_list_is_shown():
    assert not hasattr(mm.metrics, "dise")
    assert {"dice", "nsd", "assd_mm"} <= set(dir(mm.metrics))
