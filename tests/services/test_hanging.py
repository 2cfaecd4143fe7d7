"""Which steps of the hanging a case has, which exam is its prior, and one place in both."""

from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.grid import Grid
from napari_mamamia.phantom import Breasts, PhantomSpec, make_phantom
from napari_mamamia.services.case.breast_place import find_breast_box
from napari_mamamia.services.case.hanging import (
    HangingStep,
    PhaseRoles,
    find_imaged_side,
    find_priors,
    find_roles,
    plan_hanging,
    read_hanging_settings,
    refuse_prior,
    wish_grey,
    wish_share,
    wish_step,
    write_hanging_settings,
)
from napari_mamamia.services.case.prior import carry_place, is_inside, link_by_frame, link_places

MIP, BOTH, SIDES, LATE, PRIOR = HangingStep
WIDE = np.diag([-12.0, 2.0, 13.0, 1.0])
NARROW = np.diag([-1.5, 2.0, 3.0, 1.0])


def case_of(times_s, affine=WIDE, shape=(6, 20, 24), n_before=1):
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate(times_s))
    signal = np.zeros((len(times_s), *shape), np.int16)
    return Case("A", Grid(shape, affine), signal, phases, n_before=n_before)


def test_a_case_of_both_breasts_with_a_prior_has_all_steps_in_their_order():
    plan = plan_hanging(case_of((0, 90, 180, 270, 360)), has_prior=True)
    assert plan.steps == (MIP, BOTH, SIDES, LATE, PRIOR)
    assert plan.left_out == ()
    assert plan.roles == PhaseRoles(0, 1, 4)


@pytest.mark.parametrize(
    ("case", "steps", "word"),
    [
        (case_of((0,)), (), "only one phase"),
        (case_of((0, 90, 360), NARROW), (MIP, LATE), "only one breast is imaged"),
        (case_of((0, 60, 120, 180)), (MIP, BOTH, SIDES), "a delayed phase must be at 270 s"),
        (case_of((0, 90, 360), shape=(1, 20, 24)), (SIDES, LATE), "a single slice"),
    ],
)
def test_a_step_that_a_case_cannot_have_is_left_out_with_its_reason(case, steps, word):
    plan = plan_hanging(case, has_prior=False)
    assert plan.steps == steps
    assert {*plan.steps, *(step for step, _ in plan.left_out)} == set(HangingStep)
    assert any(word in why for _, why in plan.left_out)


def test_roles_count_from_the_last_phase_before_contrast_and_need_no_times():
    assert find_roles(case_of((0, 60, 150, 240, 450), n_before=2)) == PhaseRoles(1, 2, 4)
    roles = find_roles(case_of((None, None, None)))
    assert (roles.pre, roles.first, roles.late) == (0, 1, 2)
    # a case whose phases are all before contrast has nothing to subtract
    assert find_roles(case_of((0, 60), n_before=2)).first is None


def test_an_unwanted_step_is_neither_shown_nor_told():
    plan = plan_hanging(case_of((0, 90, 360)), has_prior=False, unwanted=frozenset({SIDES, PRIOR}))
    assert plan.steps == (MIP, BOTH, LATE)
    assert plan.left_out == ()


def records(*rows):
    return [CaseRecord(name, other=other) for name, other in rows]


def test_the_newest_earlier_exam_of_the_same_patient_comes_first():
    table = records(
        ("NOW", {"Patient": 7.0, "exam_date": "2024-05-01"}),
        ("OLD", {"Patient": 7, "exam_date": "20210501"}),
        ("LATER", {"Patient": "7", "exam_date": "2025-05-01"}),
        ("LAST", {"Patient": "7", "exam_date": "2024-04-30"}),
        ("UNDATED", {"Patient": "7", "exam_date": "spring"}),
        ("OTHER", {"Patient": "8", "exam_date": "2020-01-01"}),
        ("NOBODY", {"exam_date": "2020-01-01"}),
    )
    choices = find_priors(table, "NOW")
    assert [choice.case_id for choice in choices] == ["LAST", "OLD", "UNDATED"]
    assert choices[0].why == "1 day before"
    assert choices[1].why == "1096 days before"  # 2024 is a leap year
    assert "unknown" in choices[2].why
    # without a patient nothing is guessed, not even between rows that lack one alike
    assert find_priors(table, "NOBODY") == ()
    assert find_priors(table, "ABSENT") == ()


def sided(x_mm):
    """One breast, 36 mm wide, whose volume is centred at x mm (right is positive)."""
    affine = NARROW.copy()
    affine[0, 3] = x_mm + 1.5 * 23 / 2
    return Grid((6, 20, 24), affine)


def test_a_prior_of_the_other_side_or_patient_is_refused():
    right, left, middle = sided(80.0), sided(-80.0), sided(5.0)
    assert [find_imaged_side(grid) for grid in (right, left, middle)] == ["right", "left", ""]
    assert "shows the left breast, but the case" in refuse_prior(right, None, left, None)
    assert refuse_prior(right, None, right, None) == ""
    assert refuse_prior(right, None, middle, None) == ""  # not known is not another one
    assert refuse_prior(right, None, Grid((6, 20, 24), WIDE), None) == ""
    # the table's word comes before the scanner's coordinates
    told = CaseRecord("B", other={"laterality": "R"})
    assert refuse_prior(right, None, left, told) == ""
    one, two = (CaseRecord("A", other={"patient": name}) for name in ("p1", "p2"))
    assert "a different patient" in refuse_prior(right, one, right, two)


def test_a_place_is_carried_in_mm_whatever_the_slices_and_axes():
    # 3 mm axial slices from 10 mm on, against a sagittal stack: x to posterior, y up, z to right
    here = Grid(
        (10, 30, 20), np.array([[-2, 0, 0, 19], [0, 2, 0, -29], [0, 0, 3, 10.0], [0, 0, 0, 1]])
    )
    there = Grid(
        (9, 40, 50), np.array([[0, 0, 4.0, -16], [-1, 0, 0, 25], [0, 1, 0, 0], [0, 0, 0, 1]])
    )
    # voxel (4, 12, 7): x = 19 - 14 = 5, y = -29 + 24 = -5, z = 10 + 12 = 22 mm
    # there: z = (5 + 16) / 4 = 5.25, y = 22, x = 25 + 5 = 30
    assert carry_place(here, (4, 12, 7), there, (0, 0, 0)) == pytest.approx((5.25, 22, 30))
    assert carry_place(here, (4, 12, 7), there, (4, 1, -2)) == pytest.approx((6.25, 20, 29))
    assert not is_inside(there, carry_place(here, (9, 12, 7), there, (0, 0, 10)))  # z = 47 mm
    link = link_places(here, (4, 12, 7), there, (6, 20, 29))
    assert link.is_by_hand
    assert link.offset_mm == pytest.approx((3.0, 1.0, -2.0))
    assert carry_place(here, (4, 12, 7), there, link.offset_mm) == pytest.approx((6, 20, 29))


def test_wishes_are_read_as_written_and_damaged_ones_lose_only_what_is_damaged():
    wishes = wish_step(read_hanging_settings(""), LATE, wanted=False)
    wishes = wish_share(wish_grey(wishes, BOTH, "signed"), SIDES, 97)
    again = read_hanging_settings(write_hanging_settings(wishes))
    assert again == wishes
    assert again.shares == {SIDES: 90}
    assert wish_step(again, LATE, wanted=True).unwanted == frozenset()
    for text in ("{", "[1]", "null", '{"unwanted": 3, "moved shares": [1], "grey": "x"}'):
        assert read_hanging_settings(text) == read_hanging_settings("")
    mixed = '{"unwanted": ["late", "x"], "moved shares": {"both": 500, "sides": 40, "y": 50}}'
    assert read_hanging_settings(mixed).unwanted == {LATE}
    assert read_hanging_settings(mixed).shares == {SIDES: 40}
    assert (
        read_hanging_settings('{"shares": {"sides": 90}}').shares == {}
    )  # perhaps moved by no hand


@pytest.mark.parametrize(("one", "other", "same"), [
    ("2.25.7", "2.25.7", True), ("2.25.7", "2.25.8", False), ("", "", False), ("2.25.7", "", False),
])  # fmt: skip
def test_exams_are_linked_in_mm_only_in_one_frame_of_reference(one, other, same):
    here, there = (replace(case_of((0.0, 90.0)), frame_uid=uid) for uid in (one, other))
    link = link_by_frame(here, there)
    assert (link.is_same_frame, link.is_known, link.is_by_hand) == (same, same, False)
    assert link_places(here.grid, (1, 2, 3), there.grid, (1, 2, 4)).is_known


@pytest.mark.parametrize("orientation", ["LAS", "RPI", "PSR"])
def test_the_breast_is_found_in_any_orientation_and_holds_most_of_the_phantoms(orientation):
    shape, spacing = ((40, 110, 120), (4.0, 3.0, 3.0))
    if orientation == "PSR":
        shape, spacing = (120, 40, 110), (3.0, 4.0, 3.0)
    spec = PhantomSpec("P", 3, shape=shape, spacing_mm=spacing, orientation=orientation)
    phantom = make_phantom(spec)
    grid = phantom.case.grid
    box = find_breast_box(phantom.case)
    x = grid.to_world_mm(np.argwhere(phantom.breast))[:, 0]
    middle = float(grid.to_world_mm([(n - 1) / 2 for n in grid.shape])[0])
    right = np.argwhere(phantom.breast)[x > middle]
    inside = ((right >= box.start) & (right < box.stop)).all(axis=1)
    assert inside.mean() > 0.97
    nipple = right[np.argmax(grid.to_world_mm(right)[:, 1])]
    assert ((nipple >= box.start) & (nipple < box.stop)).all()
    corners = grid.to_world_mm(np.array([box.start, np.array(box.stop) - 1]))
    assert corners[:, 0].min() > middle - max(spacing)  # no voxel of the other breast
    ends = grid.to_world_mm([(0, 0, 0), np.array(grid.shape) - 1])
    assert np.ptp(corners[:, 1]) < 0.9 * np.ptp(ends[:, 1])  # not the whole body


def test_after_a_mastectomy_the_breast_that_is_there_sets_the_block_of_both():
    spec = PhantomSpec("P", 3, shape=(40, 110, 120), spacing_mm=(4.0, 3.0, 3.0))
    alone = find_breast_box(make_phantom(replace(spec, breasts=Breasts.LEFT)).case)
    both = find_breast_box(make_phantom(spec).case)
    assert np.abs(np.subtract(alone.start, both.start)).max() <= 3
    assert np.abs(np.subtract(alone.stop, both.stop)).max() <= 3


def test_no_breast_is_named_where_one_is_imaged_or_none_stands_out():
    assert find_breast_box(case_of((0.0, 90.0), NARROW)) is None
    assert find_breast_box(case_of((0.0, 90.0))) is None
