"""UCSF's choice of phases against a slow one written from its description, by hand and by table.

Source of the rule: rnadkarni2/SlicerBreast_DCEMRI_FTV, chooseEarly_LateByManufacturer.py at
f0e9ca57: only phases after contrast; zero is the start of the first; an image stands at its start
plus half the temporal resolution; early and late are nearest to 150 and 450 s among all of them; of
two or fewer the first and the second. Redo, where early and late are one or early is the first of
more than two: image n stands at (n - 1/2) resolutions.
"""

import ast
import collections
import itertools

import pandas as pd
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.kinetics.time_axis import Timing, TimingRule
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases

PHASE0 = TimingRule(Timing.PHASE0_START)


def slow_ucsf(times, resolution=None, positions=None):
    """Return early and late, counted as the program does."""
    starts = [time - times[1] for time in times[1:]]
    if len(starts) <= 2:
        return tuple(range(1, len(starts) + 1))
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    step = min([gap for gap in gaps if gap >= 2] + ([resolution] if resolution else []))
    images = [start + step / 2 for start in starts]

    def nearest(target):
        best = None
        for number, image in enumerate(images, start=1):
            if best is None or abs(image - target) < abs(images[best - 1] - target):
                best = number
        return best

    early, late = nearest(150), nearest(450)
    if positions is not None and (early == late or early == 1):
        images = [step * (number + 0.5) for number in range(min(positions, len(starts)))]
        early, late = nearest(150), nearest(450)
    return early, late


def taken(times, rule=None):
    choice = choose_phases(times, rule)
    return (choice.early,) if choice.late_taken is None else (choice.early, choice.late_taken)


@pytest.mark.parametrize(
    ("times", "phases"),
    [
        ((0, 1371, 1493, 1615, 1737), (2, 4)),  # Duke Breast_MRI_153
        ((0, 165, 288, 411), (2, 3)),  # DUKE_002
        ((0, 584, 714, 846, 977), (2, 4)),  # DUKE_001
        ((0, 314, 668, 778, 888), (1, 2)),  # DUKE_041, without the header
        ((0, 136, 211, 285), (3, 3)),  # DUKE_057
        ((0, 27, 300, 571), (1, 2)),  # ISPY1_1084
        ((0, 132, 223, 315, 406, 498), (2, 5)),  # ISPY2_100899
        ((0, 85, 144, 202, 260, 318), (3, 5)),  # ISPY2_213672
        ((0, 421, 782), (1, 2)),  # NACT_01
        ((0, 423, 768), (1, 2)),  # ISPY1_1002
        ((0, 90), (1,)),
    ],
)
def test_the_worked_cases_of_the_table(times, phases):
    assert taken(times) == slow_ucsf(times) == phases


def test_ucsf_chooses_again_where_the_header_counts_the_images():
    times = (0, 314, 668, 778, 888)  # DUKE_041: images at 55, 165, 275, 385 s
    choice = choose_phases(times, TimingRule(positions=4))
    assert (choice.early, choice.late) == slow_ucsf(times, positions=4) == (2, 4)
    assert "chosen again" in choice.remark
    assert "choose again" in choose_phases(times).remark
    assert "phases 2 and 4" in choose_phases(times).remark


def test_the_header_s_resolution_counts_where_it_is_less_than_the_gaps():
    times = (0, 423, 768)
    with_header = choose_phases(times, TimingRule(resolution_s=285.817))
    # UCSF's own block of ISPY1_1002 says 142.908 and 487.909
    assert with_header.early_s == pytest.approx(142.9085)
    assert with_header.late_s == pytest.approx(487.9085)
    assert choose_phases(times).early_s == 172.5  # 345 / 2


def test_early_and_late_in_one_phase_leave_ser_undefined_with_the_reason():
    choice = choose_phases((0, 136, 211, 285))
    assert (choice.early, choice.late_taken, choice.late) == (3, 3, None)
    assert choice.reason == (
        "the rule selects phase 3 as both early and late phase, so SER is undefined"
    )


def test_the_distance_to_the_target_is_told_on_the_clock_of_the_rule():
    choice = choose_phases((0, 1371, 1493, 1615, 1737))
    assert choice.timing is Timing.UCSF_FTV
    assert (choice.early_s, choice.late_s) == (183, 427)
    assert (choice.early_gap_s, choice.late_gap_s) == (33, -23)


def test_one_phase_after_contrast_has_no_time_on_a_clock_without_a_resolution():
    choice = choose_phases((0, 90))
    assert (choice.early, choice.early_s, choice.late) == (1, None, None)
    assert choose_phases((0, 90), TimingRule(resolution_s=80)).early_s == 40


def test_from_an_injection_only_what_comes_after_it_is_chosen():
    # the pre was taken twice, at 0 and 600 s: the second stands at 675 s, the next at 825 s
    times = (0, 600, 750, 900, 1050)
    rule = TimingRule(Timing.INJECTION, 725)
    choice = choose_phases(times, rule)
    assert (choice.timing, choice.early, choice.late) == (Timing.INJECTION, 2, 4)
    assert (choice.early_s, choice.late_s) == (100, 400)
    assert choose_curve_phases(times, rule).early == 2
    # without it the second pre passes for the first phase with contrast: 75, 225, 375, 525 s
    assert choose_phases(times).early == choose_curve_phases(times).early == 1


@pytest.mark.parametrize("injection", [-20, 0, 1200])
def test_an_injection_outside_of_the_exam_is_refused(injection):
    with pytest.raises(CaseError, match=r"to be between phase 0 and the last phase, but it is at"):
        choose_phases((0, 600, 750, 900), TimingRule(Timing.INJECTION, injection))


def test_named_phases_are_taken_as_they_are():
    rule = TimingRule(Timing.MANUAL, phases=(1, 3))
    for choose in (choose_phases, choose_curve_phases):
        choice = choose((0, 100, 200, 300), rule)
        assert (choice.timing, choice.early, choice.late) == (Timing.MANUAL, 1, 3)
    assert choose_phases((None, None, None, None), rule).late == 3


@pytest.mark.parametrize("phases", [(0, 2), (2, 2), (3, 1), (1, 4)])
def test_named_phases_that_are_not_there_are_refused(phases):
    with pytest.raises(CaseError, match="a later phase from 1 to 3"):
        choose_phases((0, 100, 200, 300), TimingRule(Timing.MANUAL, phases=phases))


@pytest.mark.parametrize(
    "parts",
    [
        {"timing": Timing.INJECTION},
        {"timing": Timing.MANUAL},
        {"injection_s": 20.0},
        {"phases": (1, 2)},
        {"timing": Timing.PHASE_ORDER},
        {"timing": Timing.INJECTION, "injection_s": float("nan")},
    ],
)
def test_a_rule_without_what_it_needs_is_refused(parts):
    with pytest.raises(CaseError):
        TimingRule(**parts)


@pytest.fixture(scope="module")
def timed_rows(request):
    from tests.conftest import REAL_DATA

    path = REAL_DATA / "clinical" / "clinical_and_imaging_info.xlsx"
    if not path.exists():
        pytest.skip(f"real files are absent: {path} (set MAMAMIA_REAL_DATA)")
    table = pd.read_excel(path).dropna(subset=["acquisition_times"])
    return {
        (case_id, maker): tuple(float(time) for time in ast.literal_eval(text))
        for case_id, maker, text in zip(
            table.patient_id, table.manufacturer, table.acquisition_times, strict=True
        )
    }


@pytest.mark.real
def test_every_timed_row_of_the_clinical_table_gets_ucsfs_phases(timed_rows):
    wrong = {
        case: (times, taken(times), slow_ucsf(times))
        for case, times in timed_rows.items()
        if taken(times) != slow_ucsf(times)
    }
    assert len(timed_rows) == 1473
    assert wrong == {}


@pytest.mark.real
def test_every_timed_row_gets_ucsfs_phases_with_its_second_choice(timed_rows):
    for times in timed_rows.values():
        posts = len(times) - 1
        rule = TimingRule(positions=posts)
        assert taken(times, rule) == slow_ucsf(times, positions=posts)


@pytest.mark.real
def test_the_rule_of_before_took_other_phases_in_1010_of_1473_rows(timed_rows):
    differing = collections.Counter(
        case_id.split("_")[0]
        for (case_id, _), times in timed_rows.items()
        if taken(times) != taken(times, PHASE0)
    )
    assert differing == {"DUKE": 284, "ISPY1": 4, "ISPY2": 722}  # and none of 64 of NACT


@pytest.mark.real
def test_the_second_choice_would_fire_in_46_rows(timed_rows):
    fired = collections.Counter(
        case_id.split("_")[0]
        for (case_id, maker), times in timed_rows.items()
        if not maker.lower().startswith("philips")  # UCSF's program chooses once there
        and choose_phases(times, TimingRule(positions=len(times) - 1)).remark
    )
    assert fired == {"DUKE": 22, "ISPY1": 14, "ISPY2": 4, "NACT": 6}
