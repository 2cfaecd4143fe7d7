"""Which phases are early and late."""

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.timing import (
    TimingBasis,
    choose_curve_phases,
    choose_phases,
    known_times,
)


def test_phases_nearest_to_150_and_450_seconds_are_chosen():
    choice = choose_phases((0.0, 90.0, 180.0, 270.0, 360.0, 500.0))
    assert (choice.early, choice.late) == (2, 5)
    assert (choice.early_s, choice.late_s) == (180.0, 500.0)
    assert (choice.early_gap_s, choice.late_gap_s) == (30.0, 50.0)
    assert choice.basis is TimingBasis.TIMES
    assert choice.reason == ""


def test_phase_0_is_never_early_even_when_it_is_nearest():
    choice = choose_phases((0.0, 400.0, 600.0))
    assert choice.early == 1
    assert choice.early_gap_s == 250.0


def test_late_lies_after_early_even_when_an_earlier_phase_is_nearer():
    choice = choose_phases((0.0, 440.0, 900.0), early_nominal_s=440.0)
    assert (choice.early, choice.late) == (1, 2)


def test_of_two_equally_near_phases_the_earlier_is_taken():
    assert choose_phases((0.0, 140.0, 160.0, 440.0, 460.0)).early == 1
    assert choose_phases((0.0, 140.0, 160.0, 440.0, 460.0)).late == 3


def test_late_is_undefined_with_a_reason_when_early_is_the_last_phase():
    choice = choose_phases((0.0, 60.0, 150.0))
    assert (choice.early, choice.late, choice.late_s, choice.late_gap_s) == (2, None, None, None)
    assert choice.reason == "there is no phase after the early one (phase 2)"


def test_two_phases_leave_late_undefined():
    assert choose_phases((0.0, 150.0)).late is None
    assert choose_phases((None, None)).late is None


def test_without_times_phase_order_decides_and_the_result_says_so():
    choice = choose_phases((None, None, None, None))
    assert (choice.early, choice.late) == (1, 3)
    assert choice.basis.value == "by phase order, times unknown"
    assert choice.early_s is None
    assert choice.early_gap_s is None
    assert choice.reason == "no acquisition times are known"


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ((0.0, None, 300.0), "the acquisition time of phase 1 is missing"),
        (
            (0.0, 200.0, 200.0),
            "the acquisition times do not rise from phase to phase (0, 200, 200 s)",
        ),
        (
            (0.0, 200.0, 100.0),
            "the acquisition times do not rise from phase to phase (0, 200, 100 s)",
        ),
        ((0.0, float("nan"), 300.0), "an acquisition time is not a finite number"),
    ],
)
def test_unusable_times_fall_back_on_phase_order_with_the_reason(times, reason):
    choice = choose_phases(times)
    assert (choice.early, choice.late) == (1, 2)
    assert choice.basis is TimingBasis.PHASE_ORDER
    assert choice.reason == reason


def test_times_that_do_not_start_at_zero_are_counted_from_the_first():
    assert known_times((1000.0, 1150.0))[0] == (0.0, 150.0)
    assert choose_phases((1000.0, 1150.0, 1450.0)).early_gap_s == 0.0


def test_one_phase_is_refused():
    with pytest.raises(CaseError, match="got 1 phase"):
        choose_phases((0.0,))
    with pytest.raises(CaseError, match="got 1 phase"):
        choose_curve_phases((0.0,))


def test_initial_phase_is_nearest_to_the_window_of_90_to_120_seconds():
    inside = choose_curve_phases((0.0, 60.0, 118.0, 300.0))
    assert (inside.early, inside.early_gap_s) == (2, 0.0)
    beside = choose_curve_phases((0.0, 80.0, 140.0, 300.0))
    assert (beside.early, beside.early_gap_s) == (1, -10.0)


def test_delayed_phase_is_the_last_one_from_four_and_a_half_minutes_on():
    choice = choose_curve_phases((0.0, 100.0, 280.0, 600.0))
    assert (choice.late, choice.late_gap_s) == (3, 330.0)
    early_end = choose_curve_phases((0.0, 100.0, 269.0))
    assert early_end.late is None
    assert "269 s" in early_end.reason


def test_delayed_phase_is_undefined_when_the_last_phase_is_the_initial_one():
    choice = choose_curve_phases((0.0, 300.0))
    assert choice.late is None
    assert choice.reason == "there is no phase after the initial one (phase 1)"
