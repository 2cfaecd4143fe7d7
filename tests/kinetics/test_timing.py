"""Which phases are early and late, initial and delayed: by hand, clock by clock."""

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, known_times
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases

NAN = float("nan")
PHASE0 = TimingRule(Timing.PHASE0_START)


# --- early and late


def test_early_and_late_lie_nearest_to_150_and_450_seconds():
    choice = choose_phases((0, 82, 148, 230, 312, 394), PHASE0)
    assert (choice.early, choice.late) == (2, 5)
    assert (choice.early_s, choice.late_s) == (148, 394)
    assert (choice.early_gap_s, choice.late_gap_s) == (-2, -56)
    assert (choice.timing, choice.reason) == (Timing.PHASE0_START, "")


def test_phase_0_is_never_early_even_where_it_is_nearest_to_150_seconds():
    # 150 s away from phase 0, 250 s from phase 1
    choice = choose_phases((0, 400, 500), PHASE0)
    assert (choice.early, choice.late) == (1, 2)
    assert choice.early_gap_s == 250


def test_late_comes_after_early_even_where_early_is_nearest_to_450_seconds():
    choice = choose_phases((0, 460, 900), PHASE0)
    assert (choice.early, choice.late, choice.late_gap_s) == (1, 2, 450)


def test_late_need_not_be_the_last_phase():
    choice = choose_phases((0, 150, 440, 900), PHASE0)
    assert (choice.early, choice.late) == (1, 2)


def test_of_two_equally_near_phases_the_earlier_is_taken():
    assert choose_phases((0, 100, 200, 400, 500), PHASE0).early == 1
    assert choose_phases((0, 100, 200, 400, 500), PHASE0).late == 3


def test_times_that_do_not_start_at_0_are_counted_from_the_first():
    assert choose_phases((1000, 1150, 1450), PHASE0) == choose_phases((0, 150, 450), PHASE0)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((None, None, None, None), "no acquisition times are known"),
        ((0, None, 300, None), "phase 1, 3 is missing"),
        ((0, 300, 120, 450), "do not increase from phase to phase (0, 300, 120, 450 s)"),
        ((0, 120, 120, 450), "do not increase"),
        ((0, 120, NAN, 450), "not a finite number"),
        ((0, 120, 450, float("inf")), "not a finite number"),
    ],
)
def test_without_usable_times_phases_are_chosen_by_order_and_the_reason_is_said(times, words):
    for choice in (choose_phases(times, PHASE0), choose_curve_phases(times, PHASE0)):
        assert (choice.early, choice.late) == (1, 3)
        assert choice.timing is Timing.PHASE_ORDER
        assert choice.timing.value == "by phase order, times unknown"
        assert words in choice.reason
        gaps = (choice.early_s, choice.late_s, choice.early_gap_s, choice.late_gap_s)
        assert gaps == (None, None, None, None)


def test_one_post_contrast_phase_leaves_late_undefined_with_the_reason():
    choice = choose_phases((0, 120), PHASE0)
    assert (choice.early, choice.late, choice.late_s, choice.late_gap_s) == (1, None, None, None)
    assert choice.reason == "there is no phase after the early phase 1"


def test_one_post_contrast_phase_without_times_names_both_reasons():
    choice = choose_phases((None, None), PHASE0)
    assert choice.late is None
    assert "no acquisition times are known" in choice.reason
    assert "no phase after the early phase" in choice.reason


def test_late_is_undefined_where_the_last_phase_is_early():
    choice = choose_phases((0, 10, 150), PHASE0)
    assert (choice.early, choice.late) == (2, None)
    assert choice.reason == "there is no phase after the early phase 2"


@pytest.mark.parametrize("times", [(), (0,), (None,)])
def test_fewer_than_two_phases_are_an_error_that_says_how_many(times):
    for choose in (choose_phases, choose_curve_phases):
        with pytest.raises(CaseError, match=f"got {len(times)} phase"):
            choose(times, PHASE0)


def test_known_times_are_seconds_since_phase_0():
    assert known_times((30, 90.5, 200)) == ((0, 60.5, 170), "")


# --- phases of a BI-RADS style curve


@pytest.mark.parametrize(
    ("times", "initial", "gap"),
    [
        ((0, 60, 105, 200, 400), 2, 0),  # inside the window
        ((0, 90, 300), 1, 0),  # its first edge
        ((0, 120, 300), 1, 0),  # its last edge
        ((0, 82, 148, 394), 1, -8),  # 8 s before it against 28 s after it
        ((0, 30, 150, 300), 2, 30),  # 60 s before it against 30 s after it
    ],
)
def test_the_initial_phase_lies_nearest_to_90_to_120_seconds(times, initial, gap):
    choice = choose_curve_phases(times, PHASE0)
    assert (choice.early, choice.early_gap_s) == (initial, gap)
    assert choice.late == len(times) - 1


def test_a_delayed_phase_counts_from_270_seconds_exactly():
    assert choose_curve_phases((0, 100, 270), PHASE0).late == 2
    assert choose_curve_phases((0, 100, 270), PHASE0).late_gap_s == 0
    short = choose_curve_phases((0, 100, 269), PHASE0)
    assert short.late is None
    assert "269 s" in short.reason
    assert "270 s" in short.reason


def test_a_delayed_phase_comes_after_the_initial_one():
    choice = choose_curve_phases((0, 300), PHASE0)
    assert (choice.early, choice.late) == (1, None)
    assert "no phase after the initial phase" in choice.reason
