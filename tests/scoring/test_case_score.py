import math
from dataclasses import fields

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER
from napari_mamamia.scoring.case.score import _wrap_to_uint8, norm_hd, score_label_maps

SHAPE = (12, 14, 16)
AFFINE = np.diag([-0.5, 0.5, 2.0, 1.0])  # voxels of 0.5 mm3
GRID = Grid(SHAPE, AFFINE)


def cube(*, z=4, value=1, dtype=np.uint8, shape=SHAPE):
    """A cube of 4 x 4 x 4 voxels (32 mm3) that begins at slice `z`."""
    array = np.zeros(shape, dtype=dtype)
    array[z : z + 4, 4:8, 4:8] = value
    return array


def labels(array, grid=GRID):
    box = Box.around(array)
    return LabelMap(grid, box, array[box.slices])


EMPTY = labels(np.zeros(SHAPE, dtype=np.uint8))
DISTANCES = ("hausdorff95_mm", "hausdorff95_voxels", "hausdorff_mm", "assd_mm")
METRICS = ("dsc", "iou", *DISTANCES, "nsd_1mm", "nsd_2mm")


def undefined(score):
    return {name for name in METRICS if math.isnan(getattr(score, name))}


def test_a_cube_shifted_by_one_slice_has_the_values_worked_out_by_hand():
    score = score_label_maps("C1", labels(cube()), labels(cube(z=5)))
    # 64 voxels each, 48 shared. The contour of a cube of 4 is 64 - 8 = 56 voxels.
    # Those without a partner at the same place: the trailing face of 16, at one slice = 2 mm, and
    # the 4 middle voxels of the leading face's partner, which lie inside the other cube: for the
    # reference these are its 4 at slice 7 (inside the prediction, 1 voxel = 0.5 mm from its side).
    per_mask = 56
    far, inner = 16 * 2.0, 4 * 0.5
    assert (score.case_id, score.status, score.profile) == ("C1", ScoreStatus.OK, "clinical")
    assert (score.dsc, score.iou) == (0.75, 0.6)
    assert score.hausdorff95_mm == score.hausdorff_mm == 2
    assert score.hausdorff95_voxels == 1
    assert score.assd_mm == pytest.approx((far + inner) / per_mask, abs=1e-12)
    assert score.nsd_1mm == pytest.approx(40 / 56, abs=1e-12)
    assert score.nsd_2mm == 1
    assert score.volume_reference_mm3 == score.volume_prediction_mm3 == 32
    assert (score.reason, score.warning) == ("", "")


def test_values_are_plain_floats_so_that_any_table_can_hold_them():
    score = score_label_maps("C1", labels(cube()), labels(cube(z=5)))
    numbers = [f.name for f in fields(CaseScore) if f.type in (float, "float")]
    assert all(type(getattr(score, name)) is float for name in numbers)


def test_an_empty_prediction_scores_zero_overlap_and_no_distance():
    score = score_label_maps("C1", labels(cube()), EMPTY)
    assert score.status is ScoreStatus.PREDICTION_EMPTY
    assert (score.dsc, score.iou) == (0, 0)
    assert undefined(score) == set(METRICS) - {"dsc", "iou"}
    assert (score.volume_reference_mm3, score.volume_prediction_mm3) == (32, 0)
    assert "the prediction has no foreground" in score.reason


def test_an_empty_reference_scores_zero_overlap_and_no_distance():
    score = score_label_maps("C1", EMPTY, labels(cube()))
    assert score.status is ScoreStatus.REFERENCE_EMPTY
    assert score.dsc == 0
    assert undefined(score) == set(METRICS) - {"dsc", "iou"}
    assert "the reference has no foreground" in score.reason


def test_two_empty_masks_are_undefined_clinically():
    score = score_label_maps("C1", EMPTY, EMPTY)
    assert score.status is ScoreStatus.BOTH_EMPTY
    assert undefined(score) == set(METRICS)
    assert (score.volume_reference_mm3, score.volume_prediction_mm3) == (0, 0)
    assert "undefined" in score.reason


@pytest.mark.parametrize("profile", [OFFICIAL_CODE, PAPER])
def test_two_empty_masks_have_dice_zero_in_the_challenge(profile):
    score = score_label_maps("C1", EMPTY, EMPTY, profile)
    assert (score.status, score.dsc) == (ScoreStatus.BOTH_EMPTY, 0)
    assert "Dice is 0 as the profile defines" in score.reason


@pytest.mark.parametrize("profile", [CLINICAL, PAPER])
def test_a_missing_prediction_is_scored_as_an_empty_one(profile):
    score = score_label_maps("C1", labels(cube()), None, profile)
    assert (score.status, score.dsc) == (ScoreStatus.PREDICTION_MISSING, 0)
    assert score.volume_reference_mm3 == 32
    assert math.isnan(score.volume_prediction_mm3)
    assert (
        score.reason == "there is no prediction file, so the case was scored as an empty prediction"
    )


def test_a_missing_prediction_beside_an_empty_reference_stays_undefined():
    score = score_label_maps("C1", EMPTY, None)
    assert score.status is ScoreStatus.PREDICTION_MISSING
    assert math.isnan(score.dsc)
    assert "neither mask has foreground" in score.reason


def test_a_missing_prediction_is_not_scored_by_official_code():
    score = score_label_maps("C1", labels(cube()), None, OFFICIAL_CODE)
    assert score.status is ScoreStatus.PREDICTION_MISSING
    assert undefined(score) == set(METRICS)
    assert score.volume_reference_mm3 == 32
    assert "does not score" in score.reason


def test_a_missing_reference_leaves_only_the_volume_of_the_prediction():
    score = score_label_maps("C1", None, labels(cube()))
    assert score.status is ScoreStatus.REFERENCE_MISSING
    assert undefined(score) == set(METRICS)
    assert score.volume_prediction_mm3 == 32
    assert "no reference file" in score.reason


def test_a_case_without_any_file_is_refused():
    with pytest.raises(ValueError, match="C1"):
        score_label_maps("C1", None, None)


@pytest.mark.parametrize("profile", [CLINICAL, PAPER, OFFICIAL_CODE])
def test_masks_of_unequal_shape_have_volumes_only_and_a_reason_with_both_shapes(profile):
    shape = (12, 14, 15)
    other = labels(cube(shape=shape), Grid(shape, AFFINE))
    score = score_label_maps("C1", labels(cube()), other, profile)
    assert score.status is ScoreStatus.GRID_MISMATCH
    assert undefined(score) == set(METRICS)
    assert (score.volume_reference_mm3, score.volume_prediction_mm3) == (32, 32)
    assert "(12, 14, 16)" in score.reason
    assert "(12, 14, 15)" in score.reason
    with pytest.raises(GridMismatchError):
        norm_hd(labels(cube()), other, profile)


def moved(mm, scale=1.0):
    affine = AFFINE * scale
    affine[3, 3], affine[0, 3] = 1, mm
    return Grid(SHAPE, affine)


@pytest.mark.parametrize("profile", [CLINICAL, PAPER])
def test_masks_in_different_places_are_a_grid_mismatch_with_the_distance(profile):
    score = score_label_maps("C1", labels(cube()), labels(cube(), moved(3.0)), profile)
    assert score.status is ScoreStatus.GRID_MISMATCH
    assert "3.00 mm apart" in score.reason


def test_official_code_compares_equal_shapes_and_warns_that_the_affine_differs():
    other = labels(cube(z=5), moved(3.0, scale=2.0))
    score = score_label_maps("C1", labels(cube()), other, OFFICIAL_CODE)
    assert (score.status, score.dsc) == (ScoreStatus.OK, 0.75)
    assert score.warning.startswith("affine_differs")
    # One slice on the reference's grid, and both volumes: the scripts know no other grid.
    assert score.hausdorff_mm == 2
    assert (score.volume_reference_mm3, score.volume_prediction_mm3) == (32, 32)


def test_affines_that_differ_by_more_than_rounding_are_warned_of():
    assert score_label_maps("C1", labels(cube()), labels(cube(), moved(1e-4))).warning == ""
    warned = score_label_maps("C1", labels(cube()), labels(cube(), moved(0.02)))
    assert warned.status is ScoreStatus.OK
    assert "differ slightly (up to 0.020 mm)" in warned.warning


def test_several_labels_are_all_foreground_unless_one_is_chosen():
    both = cube()
    both[4:6, 4:8, 4:8] = 2
    score = score_label_maps("C1", labels(cube()), labels(both))
    assert score.dsc == 1
    assert "the prediction contains the values 1, 2" in score.warning
    # 32 of the 64 voxels are label 2: none in the reference, and label 1 is 32 of 64
    assert score_label_maps("C1", labels(both), labels(cube(value=2)), label=2).dsc == 64 / 96
    chosen = score_label_maps("C1", labels(cube()), labels(both), label=1)
    assert (chosen.dsc, chosen.warning) == (64 / 96, "")
    assert chosen.volume_prediction_mm3 == 16


def test_a_mask_without_the_chosen_label_is_empty_and_the_reason_names_what_it_holds():
    score = score_label_maps("C1", labels(cube(value=3)), labels(cube()), label=3)
    assert score.status is ScoreStatus.PREDICTION_EMPTY
    assert "its values are 1" in score.reason


def test_a_label_is_refused_where_the_profile_has_its_own_rule():
    with pytest.raises(ValueError, match="paper"):
        score_label_maps("C1", labels(cube()), labels(cube()), PAPER, label=1)
    with pytest.raises(ValueError, match="background"):
        score_label_maps("C1", labels(cube()), labels(cube()), label=0)


def test_a_soft_mask_counts_from_one_half_clinically_and_on_paper():
    soft = np.zeros(SHAPE, dtype=np.float32)
    soft[4:8, 4:8, 4:8] = 0.5
    soft[8:9, 4:8, 4:8] = 0.25
    score = score_label_maps("C1", labels(cube()), labels(soft))
    assert score.dsc == 1
    assert "is a soft mask (values up to 0.5); values of at least 0.5 are" in score.warning
    assert score_label_maps("C1", labels(cube()), labels(soft), PAPER).dsc == 1
    faint = score_label_maps("C1", labels(cube()), labels(soft * 0.6))
    assert faint.status is ScoreStatus.PREDICTION_EMPTY
    assert "its largest value is 0.3; values of at least 0.5 are foreground" in faint.reason


def test_255_as_the_only_value_is_a_mask_and_2_is_another_label_on_paper():
    for profile in (CLINICAL, PAPER):
        score = score_label_maps("C1", labels(cube()), labels(cube(value=255)), profile)
        assert (score.dsc, score.warning) == (1, "")
    score = score_label_maps("C1", labels(cube()), labels(cube(value=2)), PAPER)
    assert score.status is ScoreStatus.PREDICTION_EMPTY
    assert "its values are 2" in score.reason


def test_a_mask_at_the_image_border_is_warned_of_with_its_axis():
    score = score_label_maps("C1", labels(cube(z=0)), labels(cube(z=1)))
    assert score.warning == "the reference touches the image border (along z)"
    single = np.zeros((1, 14, 16), dtype=np.uint8)
    single[0, 4:8, 4:8] = 1
    grid = Grid((1, 14, 16), AFFINE)
    assert score_label_maps("C1", labels(single, grid), labels(single, grid)).warning == ""


def test_the_image_border_is_contour_in_mm_and_none_in_voxels():
    # Slabs over whole planes of 11 x 11, 3 and 6 slices of 2 mm from the border. In voxels only the
    # inner faces (slices 2 and 5) are contour, 3 apart throughout. In mm the border slice and the
    # rim of 40 voxels of every slice are contour too. Thick slab, 121 + 121 + 4 x 40 = 402 voxels:
    # its inner face is 6 mm away, its rims in slices 3 and 4 are 2 and 4 mm away, the rest shared.
    # Thin slab, 121 + 121 + 40 = 282 voxels: only the rings inside the rim of its inner face
    # (32, 24, 16, 8, 1 voxels) have no partner, 1 to 5 steps of 0.5 mm from the rim.
    thick_sum = 121 * 6 + 40 * 2 + 40 * 4
    thin_sum = 0.5 * (32 * 1 + 24 * 2 + 16 * 3 + 8 * 4 + 1 * 5)
    thin, thick = np.zeros((2, 12, 11, 11), dtype=np.uint8)
    thin[:3], thick[:6] = 1, 1
    grid = Grid((12, 11, 11), AFFINE)
    score = score_label_maps("C1", labels(thin, grid), labels(thick, grid))
    assert score.hausdorff95_voxels == 3
    assert score.hausdorff_mm == 6
    assert score.assd_mm == pytest.approx((thick_sum + thin_sum) / (402 + 282), abs=1e-12)


def test_a_reference_in_two_parts_is_warned_of():
    apart = cube()
    apart[0, 0, 0] = 1
    corner = cube()
    corner[3, 3, 3] = 1  # touches the cube by a corner: still one part
    assert "2 separate parts" in score_label_maps("C1", labels(apart), labels(cube())).warning
    assert "parts" not in score_label_maps("C1", labels(corner), labels(cube())).warning


def test_norm_hd_takes_the_distance_that_the_profile_names():
    # a plane of 10 x 10 voxels and the same with one voxel 6 slices away: 1 of 101 contour voxels
    # is far, so HD95 is 0 and HD is 6 slices of 2 mm
    plane = np.zeros(SHAPE, dtype=np.uint8)
    plane[2, 2:12, 2:12] = 1
    far = plane.copy()
    far[8, 5, 5] = 1
    pair = labels(plane), labels(far)
    assert norm_hd(*pair, CLINICAL) == 0
    assert norm_hd(*pair, OFFICIAL_CODE) == 0
    assert norm_hd(*pair, PAPER) == 12 / 150


def test_nothing_is_made_dense_for_a_small_mask_in_a_huge_grid():
    # 10^12 voxels would need a terabyte
    grid = Grid((10_000, 10_000, 10_000), AFFINE)
    block = np.ones((4, 4, 4), dtype=np.uint8)
    a = LabelMap(grid, Box((5000, 5000, 5000), (5004, 5004, 5004)), block)
    b = LabelMap(grid, Box((5001, 5000, 5000), (5005, 5004, 5004)), block)
    assert score_label_maps("C1", a, b).dsc == 0.75


@pytest.mark.parametrize(
    ("profile", "expected"), [(OFFICIAL_CODE, 10 / 150), (PAPER, 20 / 150), (CLINICAL, 20 / 150)]
)
def test_the_worked_example_of_the_methods_page(profile, expected):
    # a cube of 4 x 4 x 4 voxels and the same ten slices of 2 mm away
    shape = (20, 14, 16)
    grid = Grid(shape, AFFINE)
    pair = (labels(cube(z=z, shape=shape), grid) for z in (1, 11))
    assert norm_hd(*pair, profile) == pytest.approx(expected, abs=1e-15)


def test_floats_become_uint8_as_c_does_it_wherever_they_lie():
    values = np.array([0.6, 1.9, -1.0, 256.0, 257.5, 300.0, -300.7, 1e30, np.nan, np.inf])
    # cut to whole numbers, modulo 256; 1e30 is a multiple of 256
    assert _wrap_to_uint8(values).tolist() == [0, 1, 255, 0, 1, 44, 212, 0, 0, 0]
    assert _wrap_to_uint8(np.array([-1, 256, 300], np.int16)).tolist() == [255, 0, 44]
