from math import pi

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.grid import Grid
from napari_mamamia.scoring.case.failures import (
    THRESHOLDS,
    Enhancement,
    FailureKind,
    FailureThresholds,
    contrast_to_noise,
    find_failures,
    match_parts,
    midline_x_mm,
)
from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE
from napari_mamamia.scoring.case.score import measure_pair
from napari_mamamia.services.score.inspections import look_at_case

# 30 x 40 x 150 voxels of 2 mm: 300 mm from left to right, the middle at x index 74.5. The affine
# is LAS: voxel x runs to the patient's left.
SHAPE = (30, 40, 150)
GRID = Grid(SHAPE, np.array([[-2.0, 0, 0, 149.0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]]))


def cubes(*corners, size=6, grid=GRID):
    """A mask of cubes of `size` voxels with their first voxels at `corners` (z, y, x)."""
    array = np.zeros(grid.shape, dtype=bool)
    for z, y, x in corners:
        array[z : z + size, y : y + size, x : x + size] = True
    return Mask(grid, array)


def labels_of(mask):
    box = Box.around(mask.array)
    return LabelMap(mask.grid, box, mask.array[box.slices].astype(np.uint8))


def failures_of_masks(reference, prediction, enhancement=None, thresholds=THRESHOLDS):
    measured = measure_pair(labels_of(reference), labels_of(prediction), CLINICAL)
    return find_failures(match_parts(measured), enhancement, thresholds)


def failures_of_labels(reference, prediction, profile=CLINICAL):
    return look_at_case("C1", (reference, prediction), None, profile, None).failures


def kinds(*args, **kwargs):
    return {failure.kind for failure in failures_of_masks(*args, **kwargs)}


def reason(kind, *args, **kwargs):
    return next(f.reason for f in failures_of_masks(*args, **kwargs) if f.kind is kind)


REFERENCE = cubes((10, 10, 30))  # 216 voxels of 8 mm3 = 1728 mm3, to the patient's right


def test_the_same_mask_twice_has_no_failure():
    assert failures_of_masks(REFERENCE, REFERENCE) == ()


def test_an_empty_prediction_is_a_missed_tumour_and_nothing_else():
    (failure,) = failures_of_masks(REFERENCE, cubes())
    assert (failure.kind, failure.reason) == (FailureKind.MISSED, "nothing is predicted")


def test_a_missing_prediction_file_is_a_missed_tumour():
    assert [f.kind for f in failures_of_labels(labels_of(REFERENCE), None)] == [FailureKind.MISSED]


def test_a_prediction_beside_the_tumour_is_missed_but_not_far():
    # the reference ends at x index 35, the cube starts at 38: 3 steps of 2 mm
    assert kinds(REFERENCE, cubes((10, 10, 38))) == {FailureKind.MISSED}


def test_a_prediction_in_the_other_breast_is_named_with_both_distances():
    # centres at x index 32.5 and 112.5, 42 voxels right and 38 voxels left of the middle at 74.5
    found = reason(FailureKind.WRONG_BREAST, REFERENCE, cubes((10, 10, 110)))
    assert found == (
        "the reference's centroid is 84 mm to the patient's right of the middle of the volume, "
        "the prediction's 76 mm to the patient's left"
    )


def test_sides_are_the_patients_not_the_arrays():
    # the same arrays on a grid whose x runs to the right: left and right change places
    flipped = Grid(SHAPE, np.diag([2.0, 2.0, 2.0, 1.0]))
    found = reason(
        FailureKind.WRONG_BREAST,
        Mask(flipped, REFERENCE.array),
        Mask(flipped, cubes((10, 10, 110)).array),
    )
    assert found.index("left") < found.index("right")


def test_a_centre_near_the_midline_is_on_no_side():
    # a cube from x index 73 on has its centre at 75.5, 2 mm from the middle
    assert FailureKind.WRONG_BREAST not in kinds(cubes((10, 10, 73)), cubes((10, 10, 110)))


def test_a_narrow_volume_has_no_midline_and_no_wrong_breast():
    narrow = Grid((30, 40, 90), np.diag([2.0, 2.0, 2.0, 1.0]))  # 180 mm
    assert np.isnan(midline_x_mm(narrow))
    found = kinds(cubes((10, 10, 10), grid=narrow), cubes((10, 10, 70), grid=narrow))
    assert FailureKind.WRONG_BREAST not in found


def test_the_midline_is_the_middle_of_the_volume_on_an_oblique_grid_too():
    # sagittal order: array z runs along the patient's x, 100 steps of 3 mm from -150 mm
    affine = np.array([[0, 0, 3.0, -148.5], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert midline_x_mm(Grid((100, 20, 20), affine)) == pytest.approx(0.0)


def test_a_false_part_is_far_from_twenty_millimetres_on():
    # reference ends at x index 35; a part from index 45 on lies 10 steps of 2 mm = 20 mm away
    near, far = cubes((10, 10, 30), (10, 10, 44)), cubes((10, 10, 30), (10, 10, 45))
    assert FailureKind.FAR_FALSE_POSITIVE not in kinds(REFERENCE, near)
    found = reason(FailureKind.FAR_FALSE_POSITIVE, REFERENCE, far)
    assert found == "1 predicted part with 1728 mm3 in total, up to 20 mm from the reference"


def test_false_parts_are_no_over_segmentation():
    # two more cubes elsewhere: three times the volume, but the part on the tumour fits it
    three = cubes((10, 10, 30), (10, 10, 60), (10, 25, 60))
    assert FailureKind.OVER_SEGMENTATION not in kinds(REFERENCE, three)


def test_twice_the_volume_is_over_segmentation():
    grown = REFERENCE.array.copy()
    grown[10:16, 10:16, 36:42] = True  # 432 voxels, exactly 2 x 216
    found = reason(FailureKind.OVER_SEGMENTATION, REFERENCE, Mask(GRID, grown))
    assert found == "the predicted parts that overlap the reference have 2.0 times its volume"
    grown[10, 10, 41] = False
    assert FailureKind.OVER_SEGMENTATION not in kinds(REFERENCE, Mask(GRID, grown))


def test_half_of_the_tumour_is_under_segmentation():
    half = REFERENCE.array.copy()
    half[:, :, 33:] = False  # 3 of 6 columns
    found = reason(FailureKind.UNDER_SEGMENTATION, REFERENCE, Mask(GRID, half))
    assert found == "only 50 % of the reference's volume is predicted"
    half[10, 10, 33] = True
    assert FailureKind.UNDER_SEGMENTATION not in kinds(REFERENCE, Mask(GRID, half))


def test_three_pieces_in_one_lesion_are_fragments():
    pieces = REFERENCE.array.copy()
    pieces[:, :, 31] = False
    assert FailureKind.FRAGMENTED not in kinds(REFERENCE, Mask(GRID, pieces))
    pieces[:, :, 34] = False
    found = reason(FailureKind.FRAGMENTED, REFERENCE, Mask(GRID, pieces))
    assert found == "one lesion is predicted as 3 separate parts"


def test_one_of_two_lesions_missed_is_named_with_its_volume():
    two = cubes((10, 10, 30), (10, 25, 30))
    found = reason(FailureKind.LESION_MISSED, two, REFERENCE)
    assert found == "1 of 2 lesions missed; the largest missed lesion has 1728 mm3"


def test_a_speck_of_the_reference_is_no_missed_lesion():
    specked = REFERENCE.array.copy()
    specked[20:22, 10:14, 30] = True  # 8 voxels = 64 mm3, under a sphere of 5 mm (65.4 mm3)
    assert kinds(Mask(GRID, specked), REFERENCE) == set()


def test_a_tumour_up_to_a_sphere_of_ten_millimetres_is_small():
    # 65 voxels of 8 mm3 = 520 mm3 <= pi/6 1000 = 523.6 mm3; 66 make 528 mm3
    array = np.zeros(SHAPE, dtype=bool)
    array[10:14, 10:14, 30:34] = True
    array[14, 10, 30] = True
    small = Mask(GRID, array)
    assert THRESHOLDS.small_mm3 == pytest.approx(pi / 6 * 1000)
    assert kinds(small, small) == {FailureKind.SMALL_TUMOUR}
    array = array.copy()
    array[14, 10, 31] = True
    assert kinds(Mask(GRID, array), Mask(GRID, array)) == set()


@pytest.mark.parametrize("corner", [(0, 10, 30), (24, 10, 30), (10, 34, 30), (10, 10, 144)])
def test_a_mask_on_an_outer_plane_touches_the_border(corner):
    mask = cubes(corner)
    found = reason(FailureKind.TOUCHES_BORDER, mask, mask)
    assert found == "the reference and the prediction reach the edge of the image"


def test_only_the_mask_that_touches_the_border_is_named():
    longer = REFERENCE.array.copy()
    longer[10:16, 10:16, 28:30] = True
    longer[10:30, 10, 30] = True
    found = reason(FailureKind.TOUCHES_BORDER, REFERENCE, Mask(GRID, longer))
    assert found == "the prediction reaches the edge of the image"


def test_a_single_slice_has_no_border_across_it():
    flat = Grid((1, 40, 150), GRID.affine)
    array = np.zeros(flat.shape, dtype=bool)
    array[0, 10:20, 30:60] = True
    assert FailureKind.TOUCHES_BORDER not in kinds(Mask(flat, array), Mask(flat, array))


def test_masks_on_different_grids_are_a_geometry_mismatch_only():
    other = Grid(SHAPE, np.diag([2.0, 2.0, 2.0, 1.0]))
    (failure,) = failures_of_labels(labels_of(REFERENCE), labels_of(Mask(other, REFERENCE.array)))
    assert failure.kind is FailureKind.GEOMETRY_MISMATCH
    assert "mm apart" in failure.reason


def test_a_profile_that_looks_at_shapes_only_knows_no_differing_affine():
    other = labels_of(Mask(Grid(SHAPE, np.diag([2.0, 2.0, 2.0, 1.0])), REFERENCE.array))
    here = labels_of(REFERENCE)
    assert failures_of_labels(here, other, OFFICIAL_CODE) == ()
    assert len(failures_of_labels(here, other, CLINICAL)) == 1


def test_without_a_reference_no_failure_is_named():
    assert failures_of_masks(cubes(), REFERENCE) == ()
    assert failures_of_masks(cubes(), cubes()) == ()


def test_bounds_can_be_changed():
    strict = FailureThresholds(far_mm=5.0)
    beside = cubes((10, 10, 38))
    assert FailureKind.FAR_FALSE_POSITIVE in kinds(REFERENCE, beside, thresholds=strict)


def images(inside, around):
    """Phases whose difference is `inside` in the reference and alternates around `around`."""
    before = np.full(SHAPE, 100, dtype=np.int16)
    after = before + around + np.where(np.indices(SHAPE).sum(axis=0) % 2, 10, -10)
    after[REFERENCE.array] = 100 + inside
    return Enhancement(before, after.astype(np.int16))


def test_contrast_is_the_gain_above_the_surroundings_in_their_spread():
    # around: 50 -+ 10 alternating, SD 10; inside 80: (80 - 50)/10 = 3, up to n - 1 and parity
    box = Box.around(REFERENCE.array)
    mask = REFERENCE.array[box.slices]
    value = contrast_to_noise(mask, box, GRID, images(80, 50), 8.0)
    assert value == pytest.approx(3.0, rel=0.02)


def test_contrast_is_that_of_a_slow_search_of_the_surroundings():
    rng = np.random.default_rng(5)
    before = rng.integers(50, 150, SHAPE).astype(np.int16)
    after = before + rng.integers(0, 90, SHAPE).astype(np.int16)
    box = Box.around(REFERENCE.array)
    value = contrast_to_noise(
        REFERENCE.array[box.slices], box, GRID, Enhancement(before, after), 6.0
    )
    places = np.argwhere(REFERENCE.array)
    around = [
        index
        for index in np.ndindex(SHAPE)
        if not REFERENCE.array[index]
        and all(6 <= i <= n for i, n in zip(index, (19, 19, 39), strict=True))
        and (2.0 * np.sqrt(((places - index) ** 2).sum(axis=1).min())) <= 6.0
    ]
    gain = after.astype(float) - before
    outside = np.array([gain[index] for index in around])
    expected = (gain[REFERENCE.array].mean() - outside.mean()) / outside.std(ddof=1)
    assert value == pytest.approx(expected, abs=1e-6)  # float32 inside


def test_a_tumour_like_its_surroundings_has_low_contrast():
    faint, bright = images(55, 50), images(120, 50)
    found = reason(FailureKind.LOW_CONTRAST, REFERENCE, REFERENCE, faint)
    assert found == "the tumour enhances 0.5 SD more than the 8 mm around it"
    assert FailureKind.LOW_CONTRAST not in kinds(REFERENCE, REFERENCE, bright)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int16, np.float32])
def test_contrast_of_a_signal_that_falls_is_negative_in_any_type(dtype):
    # around the signal falls by 30 -+ 10 alternating, inside by 60: (-60 + 30)/10 = -3
    before = np.full(SHAPE, 100)
    after = before - 30 + np.where(np.indices(SHAPE).sum(axis=0) % 2, 10, -10)
    after[REFERENCE.array] = 40
    box = Box.around(REFERENCE.array)
    phases = Enhancement(before.astype(dtype), after.astype(dtype))
    value = contrast_to_noise(REFERENCE.array[box.slices], box, GRID, phases, 8.0)
    assert value == pytest.approx(-3.0, rel=0.02)


def test_contrast_is_not_judged_without_an_image_or_without_noise():
    flat = Enhancement(np.zeros(SHAPE, dtype=np.int16), np.zeros(SHAPE, dtype=np.int16))
    assert FailureKind.LOW_CONTRAST not in kinds(REFERENCE, REFERENCE)
    assert FailureKind.LOW_CONTRAST not in kinds(REFERENCE, REFERENCE, flat)


def test_circumstances_are_told_from_errors():
    assert [kind.value for kind in FailureKind if kind.is_circumstance] == [
        "small tumour",
        "low contrast",
        "touching the image border",
    ]
