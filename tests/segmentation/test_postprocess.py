"""What each step after a model takes away, on masks drawn by hand."""

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.postprocess import (
    BreastArea,
    PostKind,
    PostStep,
    apply_steps,
)

GRID = Grid((10, 12, 14), np.diag([1.0, 1.0, 2.0, 1.0]))  # 2 mm3 a voxel
BREAST = BreastArea(Box((0, 0, 0), (10, 12, 7)))


def mask_of(*boxes):
    mask = np.zeros(GRID.shape, dtype=bool)
    for box in boxes:
        mask[box] = True
    return mask


SMALL = np.s_[1:3, 1:3, 1:3]  # 8 voxels
LARGE = np.s_[4:8, 4:8, 9:13]  # 64 voxels, outside the breast


def test_the_largest_component_after_the_breast_is_not_the_heart():
    steps = [PostStep(PostKind.BREAST_BOX), PostStep(PostKind.LARGEST)]
    after, changes = apply_steps(mask_of(SMALL, LARGE), GRID, steps, BREAST)
    assert np.array_equal(after, mask_of(SMALL))
    assert (changes[0].removed, changes[0].removed_mm3) == (64, 128.0)
    assert changes[0].text == "breast box: removed 64 voxels (128 mm3)"
    assert changes[1].text == "largest component: nothing changed"


def test_the_largest_component_before_the_breast_is_refused():
    steps = [PostStep(PostKind.LARGEST), PostStep(PostKind.BREAST_MASK)]
    with pytest.raises(ModelError, match="the heart could remain"):
        apply_steps(mask_of(SMALL), GRID, steps, BREAST)


def test_voxels_that_touch_at_a_corner_are_one_component():
    joined = mask_of(np.s_[0:2, 0:2, 0:2], np.s_[2:3, 2:3, 2:3], np.s_[6:7, 6:7, 6:7])
    after, _ = apply_steps(joined, GRID, [PostStep(PostKind.LARGEST)])
    assert np.count_nonzero(after) == 9


def test_regions_below_the_smallest_volume_go_and_equal_ones_stay():
    before = mask_of(SMALL, LARGE)  # 16 and 128 mm3
    kept, _ = apply_steps(before, GRID, [PostStep(PostKind.MINIMUM, 16.0)])
    assert np.array_equal(kept, before)
    fewer, _ = apply_steps(before, GRID, [PostStep(PostKind.MINIMUM, 16.1)])
    assert np.array_equal(fewer, mask_of(LARGE))


def test_a_hole_is_filled_and_counted_as_added():
    shell = mask_of(LARGE)
    shell[5:7, 5:7, 10:12] = False
    after, (change,) = apply_steps(shell, GRID, [PostStep(PostKind.FILL)])
    assert np.array_equal(after, mask_of(LARGE))
    assert (change.removed, change.added, change.added_mm3) == (0, 8, 16.0)


def test_closing_joins_what_lies_a_voxel_apart():
    split = mask_of(np.s_[4:5, 2:9, 2:5], np.s_[4:5, 2:9, 6:9])
    after, _ = apply_steps(split, GRID, [PostStep(PostKind.CLOSE, 1.0)])
    assert after[4, 5, 5]
    assert not after[4, 0].any()


def test_the_breast_mask_cuts_voxel_by_voxel():
    inside = np.zeros(GRID.shape, dtype=bool)
    inside[1:2] = True
    breast = BreastArea(Box.around(inside), inside)
    after, _ = apply_steps(mask_of(SMALL), GRID, [PostStep(PostKind.BREAST_MASK)], breast)
    assert np.array_equal(after, mask_of(np.s_[1:2, 1:3, 1:3]))


def test_an_empty_mask_stays_empty_and_the_input_is_left_alone():
    steps = [PostStep(PostKind.LARGEST), PostStep(PostKind.FILL), PostStep(PostKind.CLOSE, 2.0)]
    after, _ = apply_steps(mask_of(), GRID, steps)
    assert not after.any()
    before = mask_of(SMALL, LARGE)
    apply_steps(before, GRID, steps)
    assert np.array_equal(before, mask_of(SMALL, LARGE))


def test_a_breast_step_without_a_breast_and_a_step_without_its_value_are_refused():
    with pytest.raises(ModelError, match="provide the mask or box of the breast"):
        apply_steps(mask_of(SMALL), GRID, [PostStep(PostKind.BREAST_BOX)])
    with pytest.raises(ModelError, match="a value above 0 mm3"):
        PostStep(PostKind.MINIMUM)
