"""The queue of quality control and when one may stop: numbers by hand, and what the rule misses."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.review.core.quality import QualityCase, Queue, QueuePlace
from napari_mamamia.features.review.rules.quality import (
    estimate_rate,
    find_volume_outliers,
    follow_capture,
    order_queue,
)

Case = QualityCase


def order(cases, share=0.0, seed=1):
    return [one.case_id for one in order_queue(cases, seed, share).places]


def test_the_lowest_dice_comes_first_and_what_has_no_number_before_what_is_not_known():
    cases = [Case("good", 0.91), Case("bad", 0.12), Case("both empty"), Case("gone", remark="lost")]
    assert order(cases) == ["gone", "bad", "good", "both empty"]


def test_within_a_step_of_dice_the_other_signs_decide_in_their_order():
    base = Case("", 0.42)
    signs = [
        ("outlier", {"volume_mm3": 1e6, "site": "S"}),
        ("plain", {}),
        ("border", {"touches_border": True}),
        ("doubt", {"doubt": 0.9}),
        ("less doubt", {"doubt": 0.1}),
        ("far", {"hd95_mm": 40.0}),
        ("count", {"count_gap": 1.0}),
        ("side", {"is_other_side": True}),
        ("missed 1", {"n_missed": 1.0}),
        ("missed 2", {"n_missed": 2.0}),
    ]
    cases = [replace(base, case_id=name, **sign) for name, sign in signs]
    cases += [Case(f"S{k}", 0.99, volume_mm3=1000.0 + k, site="S") for k in range(5)]
    cases += [Case("worse", 0.39), Case("same step, lower", 0.4)]
    assert order(cases)[:12] == [
        "worse",
        "missed 2",
        "missed 1",
        "side",
        "count",
        "far",
        "doubt",
        "less doubt",
        "border",
        "outlier",
        "same step, lower",
        "plain",
    ]


def test_a_dice_on_the_edge_of_a_step_is_not_moved_by_rounding():
    # 0.3 / 0.05 is 5.999... in binary: it belongs with 0.34, not with 0.29
    cases = [Case("a", 0.3), Case("b", 0.34, n_missed=1.0), Case("c", 0.29)]
    assert order(cases) == ["c", "b", "a"]


def test_the_random_part_is_first_the_same_for_any_order_of_the_table_and_another_by_another_seed():
    cases = [Case(f"C{k:03d}", k / 100) for k in range(100)]
    queue = order_queue(cases, 7)
    first = [one.case_id for one in queue.places[:10]]
    assert queue.n_random == 10
    assert all(one.is_random for one in queue.places[:10])
    assert first != sorted(first)
    assert [one.case_id for one in order_queue(cases[::-1], 7).places] == [
        one.case_id for one in queue.places
    ]
    assert [one.case_id for one in order_queue(cases, 8).places[:10]] != first
    rest = [one.rank for one in queue.places[10:]]
    assert rest == sorted(rest)


@pytest.mark.parametrize(("n", "share", "n_random"), [(30, 0.1, 3), (31, 0.1, 4), (1, 0.1, 1)])
def test_the_random_part_is_rounded_up_and_0_1_of_30_is_3(n, share, n_random):
    assert order_queue([Case(str(k)) for k in range(n)], 1, share).n_random == n_random


def test_a_drawn_part_is_drawn_evenly():
    # each of 20 cases should be in a tenth of 3000 draws of 2: 300, SD about 16
    counts = dict.fromkeys(map(str, range(20)), 0)
    cases = [Case(one) for one in counts]
    for seed in range(3000):
        for place in order_queue(cases, seed).places[:2]:
            counts[place.case_id] += 1
    assert max(abs(count - 300) for count in counts.values()) < 5 * 16.4


@pytest.mark.parametrize("cases", [[], [Case("a"), Case("a")]])
def test_no_case_and_a_case_twice_are_refused(cases):
    with pytest.raises(CaseError, match="each only once"):
        order_queue(cases, 1)


def test_a_volume_is_held_against_its_own_site_by_its_logarithm():
    small = [Case(f"a{k}", volume_mm3=v, site="A") for k, v in enumerate((90, 95, 100, 105, 111))]
    large = [Case(f"b{k}", volume_mm3=v * 50, site="B") for k, v in enumerate((90, 95, 105, 111))]
    # 2000 is far for A (log 20 = 3 against a MAD of log 1.05 = 0.05) and nothing unusual for B
    odd = [Case("x", volume_mm3=2000.0, site="A"), Case("y", volume_mm3=5000.0, site="B")]
    assert find_volume_outliers([*small, *large, *odd]) == {"x"}
    assert find_volume_outliers([*small[:3], odd[0]]) == frozenset()  # too few to say
    same = [Case(str(k), volume_mm3=7.0, site="A") for k in range(9)]
    assert find_volume_outliers([*same, odd[0]]) == frozenset()
    assert find_volume_outliers([replace(one, site="") for one in (*small, odd[0])]) == frozenset()


# ------------------------------------------------------------------------ the rate


def test_the_interval_of_two_of_ten_by_hand():
    # no error among 2 of 10: with K errors in all, C(10 - K, 2) / 45: K = 7 gives 3/45 = 0.067,
    # K = 8 gives 1/45 = 0.022, below 2.5 %
    rate = estimate_rate(10, 2, 0)
    assert (rate.rate, rate.low, rate.high) == (0.0, 0.0, 0.7)


def slow_interval(n, m, k):
    """By going through every sample of every world."""
    inside = []
    for total in range(n + 1):
        world = [at < total for at in range(n)]
        counts = [sum(world[at] for at in one) for one in itertools.combinations(range(n), m)]
        at_most = np.mean([count <= k for count in counts])
        at_least = np.mean([count >= k for count in counts])
        if at_most > 0.025 and at_least > 0.025:
            inside.append(total / n)
    return min(inside), max(inside)


@pytest.mark.parametrize(("m", "k"), [(m, k) for m in (1, 3, 8) for k in range(m + 1)])
def test_the_interval_is_that_of_every_sample_gone_through(m, k):
    rate = estimate_rate(8, m, k)
    assert (rate.low, rate.high) == pytest.approx(slow_interval(8, m, k))


def test_no_case_read_has_no_rate():
    assert math.isnan(estimate_rate(10, 0, 0).rate)


# ------------------------------------------------------------------------- stopping


def queue_of(ranks_by_draw, n_random=0):
    """A queue whose case of draw d has the rank given; ids are the ranks."""
    places = [
        QueuePlace(f"r{rank}", draw <= n_random, rank, draw)
        for draw, rank in enumerate(ranks_by_draw, start=1)
    ]
    return Queue(tuple(places), 1)


def test_the_chance_of_having_missed_by_hand():
    # ranks 1 to 4 are read, 3 errors; 6 are left, of which 3 were drawn and are fine. With less
    # than 75 % found there are 2 or more in those 6: C(4, 3) / C(6, 3) = 4 / 20
    queue = queue_of([5, 6, 7, 9, 8, 10, 1, 2, 3, 4], n_random=3)
    read = {f"r{rank}": rank <= 3 for rank in (5, 6, 7, 1, 2, 3, 4)}
    capture = follow_capture(queue, read, target=0.75)
    assert capture.p_missed == pytest.approx(0.2)
    assert not capture.may_stop
    # with 4 drawn C(4, 4) / C(6, 4) = 1 / 15 is still above 0.05; with 5 two cannot be left
    assert capture.to_read == ("r9", "r8")
    after = follow_capture(queue, {**read, "r9": False, "r8": False}, target=0.75)
    assert after.may_stop
    assert after.to_read == ()
    # an error among them is one more found and one more in the sample
    again = follow_capture(queue, {**read, "r9": True}, target=0.75)
    # 4 found; less than 75 % of 6 or more, so 3 or more in the urn of 6, of which 4 were drawn
    # and 1 was one: P(1 or fewer) = C(3, 1) C(3, 3) / C(6, 4) = 3 / 15
    assert again.p_missed == pytest.approx(3 / 15)


def test_cases_read_out_of_turn_make_nobody_stop():
    queue = queue_of([3, 1, 2, 5, 4, 6])
    read = {"r6": False, "r5": False, "r4": False}  # not the first of the ranks, nor of the draws
    capture = follow_capture(queue, read)
    assert (capture.p_missed, capture.may_stop, capture.rate.n_read) == (1.0, False, 0)
    assert capture.n_read == 3


def test_what_is_to_be_read_leaves_out_what_was_read_and_counts_its_errors():
    # as by hand above, but r8 was read out of turn: of r9 and r8 only r9 is left to read
    queue = queue_of([5, 6, 7, 9, 8, 10, 1, 2, 3, 4], n_random=3)
    read = {f"r{rank}": rank <= 3 for rank in (5, 6, 7, 1, 2, 3, 4)}
    assert follow_capture(queue, {**read, "r8": False}, target=0.75).to_read == ("r9",)
    # an error in r8: of 5 drawn 1 is one, 4 are found in all; with 3 or more in the urn less than
    # 75 % would be, but 1 drawn and 1 unread are 2 at most
    assert follow_capture(queue, {**read, "r8": True}, target=0.75).to_read == ("r9",)


def test_the_curve_counts_in_the_order_of_reading():
    queue = queue_of([1, 2, 3])
    capture = follow_capture(queue, {"r3": False, "r1": True, "r2": True})
    assert [(one.n_read, one.n_errors) for one in capture.points] == [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
    ]
    assert capture.may_stop
    assert capture.why == "every case was read"
    assert (capture.rate.low, capture.rate.high) == pytest.approx((2 / 3, 2 / 3))


def test_nothing_read_stops_nobody():
    capture = follow_capture(queue_of([2, 1, 3]), {})
    assert not capture.may_stop
    assert capture.to_read


def test_a_case_that_is_not_of_the_queue_is_refused():
    with pytest.raises(CaseError, match="'x'"):
        follow_capture(queue_of([1]), {"x": True})


@pytest.mark.parametrize("places", [[], [1, 1], [1, 3]])
def test_a_queue_that_is_none_is_refused(places):
    with pytest.raises(CaseError, match="each case in a queue once"):
        Queue(tuple(QueuePlace(str(at), False, one, one) for at, one in enumerate(places)), 1)


# ----------------------------------------------------------------------- simulation


def read_by_rule(queue, is_error, target, quiet):
    """Read the random part, then by disagreement until `quiet` in a row are fine, then to the end.

    Returns what was read before the last step, and all.
    """
    read = {}
    run = 0
    for place in queue.places:
        read[place.case_id] = is_error[place.case_id]
        run = 0 if read[place.case_id] or place.is_random else run + 1
        if run == quiet:
            break
    early = dict(read)
    while True:
        capture = follow_capture(queue, read, target)
        if capture.may_stop:
            return early, read
        read |= {one: is_error[one] for one in capture.to_read}


def simulate(n_worlds, lowers_dice):
    """Share of errors found by a rule of thumb, and by the rule; proportion of cases read by it."""
    rows = []
    for seed in range(n_worlds):
        rng = np.random.default_rng(seed)
        wrong = rng.random(300) < 0.1
        dice = rng.beta(8, 2, 300) - lowers_dice * wrong * rng.gamma(2, 0.2, 300)
        cases = [Case(f"C{k}", float(max(one, 0))) for k, one in enumerate(dice)]
        is_error = {one.case_id: bool(bad) for one, bad in zip(cases, wrong, strict=True)}
        queue = order_queue(cases, seed)
        early, read = read_by_rule(queue, is_error, 0.8, 15)
        rows.append(
            (sum(early.values()) / wrong.sum(), sum(read.values()) / wrong.sum(), len(read))
        )
    return np.array(rows)


def test_what_the_rule_misses_and_what_a_rule_of_thumb_does():
    # 80 % of the errors at 95 % confidence: of 40 worlds some 2 may end below
    rows = simulate(40, lowers_dice=1)
    missed_by_thumb, missed_by_rule = (rows[:, :2] < 0.8).mean(axis=0)
    assert missed_by_rule <= 0.15  # 6 of 40: 2 are expected at most, P(7 or more) < 0.4 %
    assert missed_by_thumb > 2 * missed_by_rule + 0.1
    assert rows[:, 1].mean() > 0.85
    assert rows[:, 2].mean() < 0.85 * 300  # and it saves reading where disagreement tells errors


def test_where_disagreement_tells_nothing_the_rule_goes_on_reading():
    rows = simulate(20, lowers_dice=0)
    assert (rows[:, 1] < 0.8).mean() <= 0.2
    assert rows[:, 2].mean() > 0.7 * 300
