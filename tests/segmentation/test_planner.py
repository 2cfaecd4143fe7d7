"""The planner by hand: cost, ladder, limit, and what is said and never done."""

import pytest

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.planner import (
    LADDER,
    Budget,
    Pace,
    Rung,
    plan_run,
    require_within,
    within_memory,
)

FOLDS = ("0", "1", "2", "3", "4")


def tiles_of(settings, in_breast):
    """100 tiles of the whole volume, 40 in the breast; step 0.75 leaves a half; 1 Mvoxel."""
    report_progress(0, 1)
    tiles = 40 if in_breast else 100
    tiles = tiles // 2 if settings.step > 0.5 else tiles
    passes = min(settings.most_copies or 8, 8)
    return TilePlan(tiles, 100 - tiles, passes, len(settings.folds), (100, 100, 100), 0)


def pace_of(settings):
    """1 s for each tile, half of it with bf16; 10 s for the rest."""
    report_progress(0, 1)
    return Pace(0.5 if settings.precision == "bf16" else 1.0, 10.0)


def planned(limit_s, *rungs, asked=None):
    return plan_run(asked or EngineSettings(), FOLDS, tiles_of, pace_of, Budget(limit_s, rungs))


def test_the_cost_is_tiles_times_copies_times_folds_and_the_rest_by_size():
    plan = planned(None)
    assert plan.seconds == 100 * 8 * 5 * 1.0 + 10.0
    assert plan.given_up == ()
    assert not plan.in_breast


def test_without_permission_nothing_is_given_up_and_the_case_fails_with_the_numbers():
    plan = planned(300.0)
    assert (plan.seconds, plan.given_up) == (4010.0, ())
    with pytest.raises(ModelError, match=r"5 min 0 s.*1 h 7 min.*100 tiles x 8 copies x 5 folds"):
        require_within(plan, Budget(300.0), "Big")


def test_what_fits_is_left_as_it_is_though_all_might_be_given_up():
    plan = planned(5000.0, *LADDER)  # 4010 s are less than 0.9 x 5000 s
    assert plan.seconds == 4010.0
    assert plan.given_up == ()


def test_the_share_of_the_limit_that_reading_and_writing_need_is_kept_free():
    assert planned(4400.0, *LADDER).in_breast  # 4010 s are more than 0.9 x 4400 s = 3960 s
    assert not planned(4500.0, *LADDER).in_breast  # and less than 0.9 x 4500 s = 4050 s


@pytest.mark.parametrize(
    ("limit_s", "seconds", "last"),
    [
        (2000.0, 40 * 8 * 5 + 10.0, "tiles outside the breast skipped"),
        (1000.0, 40 * 8 * 5 * 0.5 + 10.0, "bf16"),
        (600.0, 20 * 8 * 5 * 0.5 + 10.0, "step 0.75"),
        (300.0, 20 * 4 * 5 * 0.5 + 10.0, "4 mirrored copies of 8"),
        (150.0, 20 * 2 * 5 * 0.5 + 10.0, "2 mirrored copies of 8"),
        (100.0, 20 * 1 * 5 * 0.5 + 10.0, "1 mirrored copies of 8"),
        (60.0, 20 * 1 * 4 * 0.5 + 10.0, "4 of 5 folds"),
        (30.0, 20 * 1 * 1 * 0.5 + 10.0, "1 of 5 folds"),
    ],
)
def test_the_ladder_is_walked_in_its_order_and_no_further_than_needed(limit_s, seconds, last):
    plan = planned(limit_s, *LADDER)
    assert plan.seconds == seconds
    assert plan.given_up[-1].startswith(last)


def test_each_rung_is_said_once_with_the_estimate_before_and_after():
    said = planned(30.0, *LADDER).given_up
    assert [text.split(":")[0] for text in said] == [
        "tiles outside the breast skipped",
        "bf16",
        "step 0.75",
        "1 mirrored copies of 8",
        "1 of 5 folds",
    ]
    assert said[0].endswith("about 26 min 50 s instead of 1 h 7 min")
    assert said[3].endswith("about 1 min 0 s instead of 6 min 50 s")  # 8 copies at once to 1


def test_a_rung_that_was_not_allowed_is_never_taken():
    plan = planned(30.0, Rung.FLIPS)
    assert plan.settings.precision == "fp32"
    assert plan.settings.step == 0.5
    assert plan.settings.folds == FOLDS
    assert plan.seconds == 100 * 1 * 5 + 10.0
    with pytest.raises(ModelError, match="allow a reduction"):
        require_within(plan, Budget(30.0, (Rung.FLIPS,)), "Big")


def test_a_rung_that_gains_nothing_is_not_taken():
    asked = EngineSettings(step=0.75, precision="bf16", most_copies=1)
    plan = planned(30.0, Rung.PRECISION, Rung.STEP, Rung.FLIPS, asked=asked)
    assert plan.given_up == ()


def test_after_the_memory_did_not_suffice_bf16_is_tried_only_if_it_is_allowed():
    plan = planned(None)
    assert within_memory(plan, Budget(None, (Rung.STEP,))) is None
    smaller = within_memory(plan, Budget(None, (Rung.PRECISION,)))
    assert smaller.settings.precision == "bf16"
    assert "memory" in smaller.given_up[-1]
    assert within_memory(smaller, Budget(None, (Rung.PRECISION,))) is None


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(ModelError, match="above 0 s"):
        Budget(0.0)
