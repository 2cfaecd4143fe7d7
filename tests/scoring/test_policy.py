"""What a submission is worth: no set of damaged cases ever raises a number that is ranked."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.scoring.case.profiles import (
    CLINICAL,
    OFFICIAL_CODE,
    PAPER,
    UnusableReason,
    UnusableRules,
)
from napari_mamamia.scoring.cohort.groups import EmptyGroups, Grouping, rules_of
from napari_mamamia.scoring.cohort.lowest import complete_cases, lowest_numbers, lowest_score
from napari_mamamia.scoring.cohort.policy import count_cases
from napari_mamamia.scoring.cohort.ranking import (
    Adaptive,
    Evidence,
    Gated,
    ModelScore,
    WeightedMean,
    ranks,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import rank_counted, score_groups
from napari_mamamia.scoring.statistics.performance import SegmentationScores

DAMAGED = (
    ScoreStatus.PREDICTION_MISSING,
    ScoreStatus.UNREADABLE,
    ScoreStatus.GRID_MISMATCH,
    ScoreStatus.NOT_FINITE,
    ScoreStatus.PREDICTION_EMPTY,
    ScoreStatus.TOO_MANY_LABELS,
)
COMPOSITES = (
    WeightedMean(),
    Gated(0.6),
    Gated(0.5, Evidence.LOWER_BOUND),
    Adaptive(0.3, 0.8),
    Adaptive(0.5, 1.0),
)
RULES = rules_of("clinical")
NAN = float("nan")


def row(name, dsc, norm_hd, status=ScoreStatus.OK, volume=10.0):
    return CaseScore(name, status, dsc=dsc, norm_hd=norm_hd, volume_reference_mm3=volume)


def damaged(one, status):
    """Return what scoring says of a case whose prediction is no longer usable."""
    counts_as_empty = status in (ScoreStatus.PREDICTION_EMPTY, ScoreStatus.PREDICTION_MISSING)
    if counts_as_empty and one.volume_reference_mm3 > 0:
        return replace(one, status=status, dsc=0.0, norm_hd=1.0)
    if status is ScoreStatus.PREDICTION_EMPTY:
        return replace(one, status=ScoreStatus.BOTH_EMPTY, dsc=NAN, norm_hd=NAN)
    return replace(one, status=status, dsc=NAN, norm_hd=NAN)


def grouping_of(codes, name="v", n_groups=None):
    labels = tuple(f"{k}" for k in range(n_groups or max([0, *codes]) + 1))
    return Grouping(name, labels, np.array(codes, dtype=np.intp))


def numbers_of(rows, codes, profile=CLINICAL, rule=None):
    """Return the ranked numbers, by name, of rows with group codes (n, v)."""
    cases = count_cases(rows, profile, rule)
    at = [k for k, one in enumerate(rows) if one.case_id in set(cases.case_ids)]
    groupings = [grouping_of([codes[k][v] for k in at], f"v{v}", 3) for v in range(len(codes[0]))]
    scored = [k for k in at if not np.isnan(rows[k].dsc)]
    scores = SegmentationScores.of((rows[k].case_id, rows[k].dsc, rows[k].norm_hd) for k in scored)
    own = [grouping_of([codes[k][v] for k in scored], f"v{v}", 3) for v in range(len(codes[0]))]
    measured = score_groups(scores, own, RULES)
    found = rank_counted(measured, cases, groupings, RULES)
    cohort = found.cohort
    performance, fairness = cohort.performance.value, cohort.fairness.value
    shares = [one.value for one in cohort.fairness.variables]
    if not np.isnan(cohort.ranking_score):  # one row, one completion
        assert cohort.ranking_score == (performance + fairness) / 2
        means = cohort.performance
        assert performance == (means.mean_dsc + 1 - means.mean_norm_hd) / 2
        assert fairness == sum(shares) / len(shares)
    if found.lowest is not None:
        performance, fairness = found.lowest.at_weight(0.0), found.lowest.at_weight(1.0)
    model = ModelScore("m", performance, fairness, performance - 0.05, found.lowest)
    numbers = {
        "performance": performance,
        "fairness": fairness,
        "ranking_score": cohort.ranking_score,
    }
    for composite, weight in product(COMPOSITES, (0.25, 0.5, 0.9)):
        numbers[f"{composite} at {weight}"] = composite.score(model, weight)
    return numbers


SHARES = st.floats(0, 1, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def cohorts(draw):
    """Draw rows (some with an empty reference), groups, and two nested sets of damaged cases."""
    n = draw(st.integers(2, 14))
    n_variables = draw(st.integers(1, 3))
    rows, codes = [], []
    for k in range(n):
        kind = draw(st.sampled_from(["ok"] * 8 + ["both", "reference"]))
        if kind == "ok":
            rows.append(row(f"c{k:02}", draw(SHARES), draw(SHARES)))
        elif kind == "both":
            rows.append(row(f"c{k:02}", NAN, NAN, ScoreStatus.BOTH_EMPTY, 0.0))
        else:
            rows.append(row(f"c{k:02}", 0.0, 1.0, ScoreStatus.REFERENCE_EMPTY, 0.0))
        codes.append([draw(st.integers(-1, 2)) for _ in range(n_variables)])
    first = draw(st.sets(st.integers(0, n - 1), max_size=n))
    more = draw(st.sets(st.integers(0, n - 1), max_size=n))
    how = [draw(st.sampled_from(DAMAGED)) for _ in range(n)]
    return rows, codes, first, first | more, how


# no case has a group of v1: with its weight from .5 on, an undefined fairness leaves no number
UNDEFINED = (
    [row(f"c{k:02}", 0.0, 0.0) for k in range(3)],
    [[0, -1]] * 3,
    set(),
    {0},
    [ScoreStatus.PREDICTION_MISSING] * 3,
)


@settings(max_examples=50, deadline=None)
@given(cohorts())
@example(UNDEFINED)
def test_no_set_of_damaged_cases_raises_a_ranked_number_and_more_damage_lowers_it(drawn):
    rows, codes, some, more, how = drawn
    # an emptied prediction of a case without a tumour is right, and no damage
    some, more = (
        {k for k in chosen if not (how[k] is ScoreStatus.PREDICTION_EMPTY
                                   and rows[k].volume_reference_mm3 == 0)}
        for chosen in (some, more)
    )  # fmt: skip
    steps = [
        numbers_of([damaged(r, how[k]) if k in hit else r for k, r in enumerate(rows)], codes)
        for hit in (set(), some, more)
    ]
    for before, after in pairwise(steps):
        for name, value in before.items():
            if np.isnan(after[name]):  # no number, no rank
                assert np.isnan(value) or np.isnan(after["fairness"]), name
            elif not np.isnan(value):
                assert after[name] <= value + 1e-9, name


@settings(max_examples=20, deadline=None)
@given(cohorts())
def test_the_lowest_numbers_are_the_lowest_of_all_completions(drawn):
    """By brute force: the lowest lies at 0 or 1 of each free value."""
    rows, codes, some, _, how = drawn
    rows = [r if r.volume_reference_mm3 else row(r.case_id, 0.5, 0.5) for r in rows]
    free = sorted(some)[:3]
    weight = 0.5
    hit = [damaged(r, how[k]) if k in free else r for k, r in enumerate(rows)]
    found = numbers_of(hit, codes)
    completions = []
    for values in product((0.0, 1.0), repeat=2 * len(free)):
        whole = list(rows)
        for k, dsc, norm_hd in zip(free, values[::2], values[1::2], strict=True):
            whole[k] = row(rows[k].case_id, dsc, norm_hd)
        completions.append(numbers_of(whole, codes))
    for name in ("performance", "fairness", "ranking_score"):
        lowest = min(one[name] for one in completions)
        assert found[name] == pytest.approx(lowest, abs=1e-12, nan_ok=True), (name, weight)


def test_one_damaged_case_of_the_smallest_group_raises_the_composite_under_worst_score_only():
    """The attack of issue 15: 60 cases, the best group of 6, one of its cases damaged."""
    rows = [row(f"c{k:02}", 0.95 if k < 6 else 0.7, 0.05 if k < 6 else 0.1) for k in range(60)]
    codes = [[0 if k < 6 else 1] for k in range(60)]
    hit = [damaged(rows[0], ScoreStatus.UNREADABLE), *rows[1:]]
    intact = numbers_of(rows, codes)["ranking_score"]
    worst = numbers_of(hit, codes, rule=UnusableRule.WORST_SCORE)["ranking_score"]
    lowest = numbers_of(hit, codes)["ranking_score"]
    assert lowest < intact < worst
    # by hand: Dice .95 and .70, gap .25; NormHD .05 and .1, gap .05
    performance = ((6 * 0.95 + 54 * 0.7) / 60 + 1 - (6 * 0.05 + 54 * 0.1) / 60) / 2
    assert intact == pytest.approx((performance + 1 - (0.25 + 0.05) / 2) / 2, abs=1e-12)


def test_without_a_free_case_the_bound_is_the_number_itself():
    rng = np.random.default_rng(4)
    rows = [row(f"c{k}", *rng.random(2)) for k in range(30)]
    codes = rng.integers(0, 3, (30, 3))
    cases = count_cases(rows, CLINICAL)
    groupings = [grouping_of(codes[:, v], f"v{v}", 3) for v in range(3)]
    lowest = lowest_numbers(cases, groupings)
    plain = score_groups(
        SegmentationScores(cases.case_ids, cases.dsc, cases.norm_hd), groupings, RULES, 0.3
    )
    score = lowest_score(cases, lowest)
    assert score.at_weight(0.3) == pytest.approx(plain.ranking_score, abs=1e-12)
    assert score.at_weight(1.0) == pytest.approx(plain.fairness.value, abs=1e-12)
    assert score.at_weight(0.0) == pytest.approx(plain.performance.value, abs=1e-12)
    assert score.highest_performance == pytest.approx(plain.performance.value, abs=1e-12)


def test_a_first_group_without_a_case_leaves_the_bound_undefined_as_the_number():
    rows = [row("a", 0.5, 0.5), damaged(row("b", 0.5, 0.5), ScoreStatus.PREDICTION_EMPTY)]
    guarded = replace(OFFICIAL_CODE, unusable=UnusableRules())
    cases = count_cases(rows, guarded)
    empty_first = Grouping(
        "age", ("x", "y"), np.array([1, 1], dtype=np.intp), (), EmptyGroups.AS_SCRIPTS
    )
    lowest = lowest_numbers(cases, [empty_first])
    score = lowest_score(cases, lowest)
    assert np.isnan(score.at_weight(1.0))
    assert score.at_weight(0.0) == pytest.approx((0.25 + 1 - 0.75) / 2)


def test_each_profile_states_its_rules():
    missing, empty = UnusableReason.MISSING, UnusableReason.EMPTY
    for profile in (CLINICAL, PAPER):
        assert {profile.unusable.of(reason) for reason in UnusableReason} == {
            UnusableRule.LEAST_FAVOURABLE
        }
    assert OFFICIAL_CODE.unusable.of(missing) is UnusableRule.REJECT
    # the scripts define it (Dice 0, NormHD 1), whatever rule is asked for besides
    assert OFFICIAL_CODE.unusable.of(empty) is None
    assert OFFICIAL_CODE.unusable.of(empty, UnusableRule.LEAVE_OUT) is None


def test_cases_are_counted_by_rule():
    rows = [
        row("a", 0.5, 0.2),
        row("b", NAN, NAN, ScoreStatus.UNREADABLE),
        row("c", NAN, NAN, ScoreStatus.REFERENCE_MISSING),
        row("d", NAN, NAN, ScoreStatus.BOTH_EMPTY, 0.0),
    ]
    found = count_cases(rows, CLINICAL)
    assert found.case_ids == ("a", "b")
    assert found.free_dsc.tolist() == [False, True]
    assert found.n_by_reason == {UnusableReason.UNREADABLE: 1}
    worst = count_cases(rows, CLINICAL, UnusableRule.WORST_SCORE)
    assert (worst.dsc.tolist(), worst.norm_hd.tolist(), worst.has_free) == ([0.5, 0], [0.2, 1], 0)
    left_out = count_cases(rows, CLINICAL, UnusableRule.LEAVE_OUT)
    assert (left_out.case_ids, left_out.left_out) == (("a",), ("b",))
    rejected = count_cases(rows, OFFICIAL_CODE).rejected
    assert "1 case without a usable prediction (b unreadable)" in rejected
    with pytest.raises(ValueError, match="reject or leave-out"):
        count_cases(rows, OFFICIAL_CODE, UnusableRule.WORST_SCORE)
    # a table whose NormHD goes above what the profile gives has no worst value
    above = [row("a", 0.5, 1.2), row("b", NAN, NAN, ScoreStatus.UNREADABLE)]
    assert "exceeds 1" in count_cases(above, CLINICAL).rejected


def test_dice_alone_is_enough_for_dice():
    rows = [row("a", 0.5, NAN), row("b", NAN, NAN, ScoreStatus.UNREADABLE)]
    numbers = numbers_of(rows, [[0], [1]])
    assert np.isnan(numbers["performance"])
    cases = count_cases(rows, CLINICAL)
    assert cases.free_norm_hd.tolist() == [False, False]
    scores, _ = complete_cases(cases, [], 0.5)
    assert scores.dsc.tolist() == [0.5, 0.0]


def test_a_damaged_model_never_ranks_above_what_it_was():
    rng = np.random.default_rng(1)
    rows = [row(f"c{k}", *rng.random(2)) for k in range(20)]
    codes = rng.integers(0, 3, (20, 2)).tolist()
    rival = numbers_of(rows, codes)["ranking_score"] - 1e-6
    hit = [damaged(r, ScoreStatus.GRID_MISMATCH) if k < 9 else r for k, r in enumerate(rows)]
    before, after = (
        ranks(np.array([numbers_of(own, codes)["ranking_score"], rival]))[0] for own in (rows, hit)
    )
    assert (before, after) == (1, 2)
