"""Lesions of a mask, measured for the form: numbers by hand."""

import numpy as np
import pytest

from napari_mamamia.core.answers import LesionAnchors, Side
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.services.findings.case_facts import (
    find_breasts,
    measure_case,
    measure_lesions,
)

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


def test_a_lesion_below_5_mm_or_3_voxels_has_no_curve():
    # voxels of 96 mm3: two of them are larger than a sphere of 5 mm (65.4 mm3), but too few
    two = np.s_[1:2, 4:6, 5:6]
    (lesion,) = measure_case(case(), mask(two)).lesions
    assert (lesion.rise, lesion.course) == ("", "")
    (lesion,) = measure_case(case(), mask(np.s_[1:2, 4:7, 5:6])).lesions
    assert (lesion.rise, lesion.course) == ("fast", "washout")
    # the same 40 voxels of 1 mm3 are a lesion of 40 mm3
    fine = Grid(GRID.shape, np.diag([-1.0, 1.0, 1.0, 1.0]))
    (lesion,) = measure_case(case(grid=fine), mask(BOXES[0])).lesions
    assert (lesion.rise, lesion.course) == ("", "")


def test_a_lesion_is_looked_at_where_it_is_largest_not_at_its_tip():
    # one voxel in slice 0, one in slice 1, 5 x 4 in slice 2, one in slice 3
    tips = np.s_[0:1, 4:5, 5:6], np.s_[1:2, 4:5, 5:6], np.s_[3:4, 8:9, 8:9]
    (one,) = measure_case(case(), mask(*tips, np.s_[2:3, 4:9, 5:9])).lesions
    assert one.voxel is not None
    z, y, x = one.voxel
    assert (z, y) == (2, 6)
    assert x in {6, 7}


def test_sides_do_not_depend_on_how_the_file_runs():
    turned = Grid(GRID.shape, np.diag([6.0, 2.0, 8.0, 1.0]))
    (one,) = measure_case(case(grid=turned), mask(BOXES[0])).lesions
    assert one.side is Side.LEFT


def test_a_lesion_in_the_middle_is_on_no_side():
    (one,) = measure_case(case(), mask(BOXES[2])).lesions
    assert one.side is None


def test_a_narrow_volume_in_the_scanners_middle_has_no_sides_and_one_breast():
    affine = np.diag([-3.0, 2.0, 8.0, 1.0])  # 150 mm wide
    affine[0, 3] = 70.0  # its middle lies 4 mm from the scanner's
    facts = measure_case(case(grid=Grid(GRID.shape, affine)), mask(BOXES[0]))
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
    with pytest.raises(GridMismatchError, match="choose a mask of this case"):
        measure_case(case(), np.zeros((4, 20, 51), np.bool_))


def test_a_mask_of_noise_is_measured_in_its_largest_parts():
    array = np.zeros(GRID.shape, np.bool_)
    array[::2, ::2, ::2] = True  # 2 x 10 x 25 parts of a voxel
    array[0, 0, 1] = True
    facts = measure_case(case(), array)
    assert len(facts.lesions) == 100
    assert facts.lesions[0].volume_mm3 == pytest.approx(3 * 96)


# ------------------------------------------------- the same lesions in a mask that was changed


def measured(array, before=()):
    return measure_lesions(case(), array.astype(np.uint8), with_numbers=False, before=before)


def anchors_of(facts):
    return tuple(LesionAnchors(one.name, one.anchors) for one in facts.lesions)


def names_at(facts, **places):
    """The number of the lesion at each of some voxels."""
    labels = {one.name: {tuple(at) for at in one.anchors} for one in facts.lesions}
    return {
        key: next((name for name, voxels in labels.items() if voxel in voxels), "")
        for key, voxel in places.items()
    }


def test_a_lesion_keeps_its_number_where_it_becomes_the_largest():
    facts = measured(mask(*BOXES[:2]))
    assert names_at(facts, low=(1, 4, 5), high=(1, 4, 40)) == {"low": "1", "high": "2"}
    array = mask(BOXES[0], np.s_[0:4, 0:15, 38:48])
    again = measured(array, anchors_of(facts))
    assert again.lesions[1].name == "2"
    assert again.lesions[1].anchors[0] == (0, 0, 38)
    # written anew, as after a reopening, it would have been the first
    assert measured(array).lesions[0].anchors[0] == (0, 0, 38)


def test_a_lesion_that_loses_its_middle_is_the_same():
    array = mask(np.s_[0:4, 2:12, 5:15])
    facts = measured(array)
    array[:, 4:10, 7:13] = False
    array[1:2, 4:19, 30:45] = True  # and a larger one is drawn beside it
    again = measured(array, anchors_of(facts))
    assert names_at(again, ring=(0, 2, 5), larger=(1, 4, 30)) == {"ring": "1", "larger": "2"}


def test_what_was_joined_has_its_numbers_back_once_it_is_drawn_apart():
    apart = mask(*BOXES[:2])
    facts = measured(apart)
    joined = apart.copy()
    joined[1, 5, 5:42] = True
    both = measured(joined, anchors_of(facts))
    assert [one.name for one in both.lesions] == ["1"]
    assert both.joined == (("2", "1"),)
    # the second was described: its anchors are kept, and the first's too while both are one
    kept = (*anchors_of(both), anchors_of(facts)[1])
    once_more = measured(joined, kept)
    assert once_more.joined == (("2", "1"),)
    again = measured(apart, (*anchors_of(once_more), kept[-1]))
    assert anchors_of(again) == anchors_of(facts)
    assert again.joined == again.parted == ()


def test_a_lesion_that_was_cut_gives_the_smaller_part_a_new_number():
    whole = mask(np.s_[1:2, 4:6, 2:22])
    facts = measured(whole)
    cut = whole.copy()
    cut[:, :, 8] = False
    again = measured(cut, anchors_of(facts))
    assert names_at(again, short=(1, 4, 2), long=(1, 4, 9)) == {"short": "2", "long": "1"}
    assert again.parted == (("2", "1"),)


def test_an_erased_lesion_leaves_its_number_to_nobody():
    facts = measured(mask(*BOXES[:2]))
    again = measured(mask(BOXES[1], BOXES[2]), anchors_of(facts))
    assert names_at(again, old=(1, 4, 40), new=(3, 0, 24)) == {"old": "2", "new": "3"}


def test_a_described_speck_among_200_parts_keeps_its_number():
    array = np.zeros(GRID.shape, np.bool_)
    array[::2, ::2, ::2] = True
    speck = LesionAnchors("1", ((2, 18, 48),))  # the last in array order
    facts = measured(array, (speck,))
    assert len(facts.lesions) == 100
    assert facts.lesions[0].anchors == speck.voxels


def test_anchors_outside_the_mask_belong_to_nobody():
    facts = measured(mask(BOXES[0]), (LesionAnchors("4", ((900, 900, 900), (0, 0, 0))),))
    assert [one.name for one in facts.lesions] == ["1"]


@pytest.mark.parametrize(
    ("x_mm", "said", "sides"),
    [
        (100.0, "", (Side.RIGHT,)),  # its centre lies 99 mm to the patient's right
        (100.0, "left", (Side.LEFT,)),  # the clinical table knows better
        (0.0, "L", (Side.LEFT,)),
        (1.0, "", (Side.RIGHT, Side.LEFT)),  # in the scanner's middle, and nothing tells
    ],
)
def test_of_one_breast_alone_is_asked_what_is_in_view(x_mm, said, sides):
    affine = np.diag([-2.0, 2.0, 8.0, 1.0])  # 2 x 2 voxels wide
    affine[0, 3] = x_mm
    record = CaseRecord("A", other={"laterality": said}) if said else None
    grid = Grid((4, 20, 2), affine)
    assert find_breasts(grid, record).sides == sides
    facts = measure_case(case((), grid=grid), None, record=record)
    assert (facts.sides, facts.is_one_breast, facts.lesions) == (sides, True, ())
    drawn = np.zeros(grid.shape, np.bool_)
    drawn[1:3, 4:9, 0] = True
    (lesion,) = measure_case(case((), grid=grid), drawn, record=record).lesions
    assert lesion.side == (sides[0] if len(sides) == 1 else None), "the breast in view, or asked"


def test_of_two_breasts_both_are_asked_whatever_the_table_says():
    facts = find_breasts(GRID, CaseRecord("A", other={"laterality": "left"}))
    assert (facts.sides, facts.is_one_breast) == ((Side.RIGHT, Side.LEFT), False)
    assert facts.midline_x_mm == pytest.approx(-6.0 * 24.5)
