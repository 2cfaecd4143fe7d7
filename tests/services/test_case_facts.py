"""Lesions of a mask, measured for the form: numbers by hand."""

import numpy as np
import pytest

from napari_mamamia.core.answers import Side
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.services.review.case_facts import measure_case

# LAS: the array's x runs to the patient's left, 50 voxels of 6 mm; the middle is between voxels 24
# and 25, low x is the patient's right
AFFINE = np.diag([-6.0, 2.0, 8.0, 1.0])
GRID = Grid((4, 20, 50), AFFINE)


def case(signal_of_lesion=((100, 250, 200),), grid=GRID, times=(0.0, 90.0, 400.0), loaded=True):
    signal = np.full((3, *grid.shape), 100, np.int16)
    for at, values in enumerate(signal_of_lesion):
        signal[:, *BOXES[at]] = np.array(values)[:, None, None, None]
    phases = tuple(Phase(k, times[k], (), loaded=loaded) for k in range(3))
    return Case("A", grid, signal, phases)


BOXES = (np.s_[1:3, 4:9, 5:9], np.s_[1:2, 4:6, 40:42], np.s_[3:4, 0:1, 24:25])


def mask(*boxes):
    array = np.zeros(GRID.shape, np.bool_)
    for box in boxes:
        array[box] = True
    return array


def test_lesions_come_largest_first_with_side_size_and_curve():
    # lesion 1: PE 150 % is fast, then 250 to 200 is -20 %: washout; lesion 2: 40 % slow, then
    # 140 to 150 is +7.1 %: plateau
    facts = measure_case(case(((100, 250, 200), (100, 140, 150))), mask(BOXES[1], BOXES[0]))
    one, two = facts.lesions
    assert (one.name, one.rise, one.course) == ("1", "fast", "washout")
    assert (two.name, two.rise, two.course) == ("2", "slow", "plateau")
    # 2 x 5 x 4 voxels of 96 mm3; in a plane 4 steps of 2 mm and 3 of 6 mm
    assert one.volume_mm3 == pytest.approx(40 * 96)
    assert one.longest_in_plane_mm == pytest.approx(np.sqrt(8**2 + 18**2))
    assert mask(BOXES[0])[one.voxel]
    assert (one.side, two.side) == (Side.RIGHT, Side.LEFT)


def test_sides_do_not_depend_on_how_the_file_runs():
    turned = Grid(GRID.shape, np.diag([6.0, 2.0, 8.0, 1.0]))
    (one,) = measure_case(case(grid=turned), mask(BOXES[0])).lesions
    assert one.side is Side.LEFT


def test_a_lesion_in_the_middle_is_on_no_side():
    (one,) = measure_case(case(), mask(BOXES[2])).lesions
    assert one.side is None


def test_a_narrow_volume_has_no_sides_and_one_breast():
    grid = Grid(GRID.shape, np.diag([-3.0, 2.0, 8.0, 1.0]))  # 150 mm wide
    facts = measure_case(case(grid=grid), mask(BOXES[0]))
    assert facts.is_one_breast
    assert facts.lesions[0].side is None


def test_a_case_that_is_still_opening_has_no_classes():
    (one,) = measure_case(case(loaded=False), mask(BOXES[0])).lesions
    assert (one.rise, one.course) == ("", "")


def test_a_lesion_without_signal_has_no_classes():
    (one,) = measure_case(case(((0, 0, 0),)), mask(BOXES[0])).lesions
    assert (one.rise, one.course) == ("", "")


def test_nothing_drawn_and_an_empty_mask_are_no_lesions():
    assert measure_case(case(), None).lesions == ()
    assert measure_case(case(), mask()).lesions == ()


def test_a_mask_of_another_case_is_refused():
    with pytest.raises(GridMismatchError, match="was made for it"):
        measure_case(case(), np.zeros((4, 20, 51), np.bool_))


def test_a_mask_of_noise_is_measured_in_its_largest_parts():
    array = np.zeros(GRID.shape, np.bool_)
    array[::2, ::2, ::2] = True  # 2 x 10 x 25 parts of a voxel
    array[0, 0, 1] = True
    facts = measure_case(case(), array)
    assert len(facts.lesions) == 100
    assert facts.lesions[0].volume_mm3 == pytest.approx(3 * 96)
