"""Intervals against scipy's bootstrap and plain loops."""

import numpy as np
import pytest
from scipy import stats

from napari_mamamia.scoring.statistics import bootstrap as room
from napari_mamamia.scoring.statistics import resampling
from napari_mamamia.scoring.statistics.bootstrap import (
    Bootstrap,
    IntervalMethod,
    bootstrap,
    bootstrap_sums,
)
from napari_mamamia.scoring.statistics.resampling import draw_cases, weigh_cases

SKEWED = np.array(
    [
        [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6],
        [0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41],
    ],
    dtype=float,
).ravel()


def mean_of(values):
    return lambda weights: ((weights @ values) / weights.sum(axis=1))[:, None]


def variance_of(values):
    def statistic(weights):
        n = weights.sum(axis=1)
        return (weights @ values**2 / n - (weights @ values / n) ** 2)[:, None]

    return statistic


def resampled(statistic, n_cases, n_resamples=1000, seed=42) -> Bootstrap:
    """Resample numbers of weights (b, n), how often each case counts: slow and plain."""
    drawn = np.concatenate(list(weigh_cases(draw_cases(n_cases, n_resamples, seed), n_cases)))
    estimates = statistic(np.ones((1, n_cases)))[0]
    names = ("x", "y")[: len(estimates)]
    left_out = statistic(1 - np.eye(n_cases))
    return bootstrap(names, [statistic(drawn.astype(float))], estimates, left_out, n_resamples)


def replicates_of(column, estimate, leave_one_out=(0.0, 1.0)) -> Bootstrap:
    column = np.array(column, dtype=float)[:, None]
    return Bootstrap(("x",), np.array([estimate]), column, np.array(leave_one_out)[:, None])


def test_weights_are_the_counts_of_plainly_drawn_resamples():
    drawn = np.random.default_rng(42).integers(0, 7, (20, 7))
    expected = [[list(row).count(case) for case in range(7)] for row in drawn]
    assert np.concatenate(list(weigh_cases(draw_cases(7, 20), 7))).tolist() == expected


def test_blocks_give_the_same_resamples_as_one_piece(monkeypatch):
    whole = np.concatenate(list(weigh_cases(draw_cases(11, 50), 11)))
    monkeypatch.setattr(resampling, "_BLOCK", 40)
    assert {len(block) for block in draw_cases(11, 50)} == {3, 2}
    for rows, weights, lengths in ((1, 1000, {3, 2}), (7, 1000, {9, 5}), (7, 22, {3, 2})):
        monkeypatch.setattr(resampling, "_ROWS", rows)
        monkeypatch.setattr(resampling, "_WEIGHTS", weights)
        blocks = list(weigh_cases(draw_cases(11, 50), 11))
        assert {len(block) for block in blocks} == lengths
        assert np.concatenate(blocks).tolist() == whole.tolist()


@pytest.mark.parametrize("n_cases", [1, 2, 300, 3000])
def test_every_case_of_a_resample_is_counted(n_cases):
    # one case is drawn n times: the counts must hold that
    for weights in weigh_cases(draw_cases(n_cases, 70), n_cases):
        assert (weights.sum(axis=1, dtype=int) == n_cases).all()


@pytest.mark.parametrize("statistic", [np.mean, np.var], ids=["mean", "variance"])
@pytest.mark.parametrize("method", list(IntervalMethod))
def test_intervals_equal_those_of_scipy(method, statistic):
    values = np.random.default_rng(1).gamma(1.0, size=40)
    names = {"percentile": "percentile", "basic": "basic", "bca": "BCa"}
    peer = stats.bootstrap(
        (values,),
        statistic,
        n_resamples=1000,
        method=names[method],
        rng=np.random.default_rng(42),
    )
    ours = mean_of(values) if statistic is np.mean else variance_of(values)
    found = resampled(ours, 40).interval("x", method)
    expected = peer.confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.estimate == pytest.approx(statistic(values), abs=1e-12)


def test_bca_of_a_skewed_number_is_that_of_scipy_over_many_resamples():
    result = resampled(variance_of(SKEWED), len(SKEWED), n_resamples=20_000)
    found = result.interval("x", IntervalMethod.BCA, level=0.90)
    peer = stats.bootstrap(
        (SKEWED,),
        np.var,
        n_resamples=20_000,
        confidence_level=0.90,
        method="BCa",
        rng=np.random.default_rng(7),
    )
    # both have a standard error of about 0.7: sqrt(.05 x .95 / 20000) over the density .1 / 42
    expected = (peer.confidence_interval.low, peer.confidence_interval.high)
    assert (found.low, found.high) == pytest.approx(expected, abs=4)
    plain = result.interval("x", IntervalMethod.PERCENTILE, level=0.90)
    assert found.low > plain.low + 5  # the correction is no small matter here
    assert found.high > plain.high + 5


def test_percentile_and_basic_intervals_by_hand():
    # 0, 1, ..., 100: the middle 95 % go from 2.5 to 97.5; mirrored at 40: -17.5 to 77.5
    result = replicates_of(range(101), 40.0)
    plain, mirrored = (result.interval("x", m) for m in ("percentile", "basic"))
    assert (plain.low, plain.high) == pytest.approx((2.5, 97.5))
    assert (mirrored.low, mirrored.high) == pytest.approx((-17.5, 77.5))
    assert (plain.warning, plain.n_resamples, plain.n_undefined) == ("", 101, 0)


def test_an_estimate_outside_its_own_interval_has_none():
    found = replicates_of(range(101), 99.0).interval("x")
    assert np.isnan([found.low, found.high]).all()
    assert "99.0000 lies outside its percentile interval (2.5000 to 97.5000)" in found.reason
    assert found.warning == ""


def test_a_range_of_resampled_values_may_lie_beside_the_estimate():
    found = replicates_of(range(101), 99.0).interval("x", is_range=True)
    assert (found.low, found.high) == pytest.approx((2.5, 97.5))
    assert "99.0000 lies outside its" in found.warning


def test_undefined_resamples_are_left_out_and_counted():
    found = replicates_of([*range(101), np.nan, np.nan], 50.0).interval("x")
    assert (found.low, found.high) == pytest.approx((2.5, 97.5))
    assert (found.n_resamples, found.n_undefined) == (101, 2)
    assert found.warning == "2 resamples left the number undefined and were not used"


def test_bca_is_undefined_when_all_resamples_lie_on_one_side():
    found = replicates_of(range(1, 10), 0.0).interval("x", IntervalMethod.BCA)
    assert np.isnan([found.low, found.high]).all()
    assert found.reason == "the estimate lies below all resampled values, so BCa is undefined"


def test_an_undefined_number_has_no_interval():
    found = replicates_of(range(10), np.nan).interval("x")
    assert np.isnan(found.low)
    assert found.reason == "the number itself is undefined"
    assert replicates_of([np.nan], 0.5).interval("x").reason.endswith("in every resample")


@pytest.mark.parametrize("method", list(IntervalMethod))
def test_a_number_that_never_changes_is_its_own_interval(method):
    found = resampled(mean_of(np.full(9, 0.1)), 9).interval("x", method)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1), abs=1e-12)
    assert found.warning == ""


def test_the_seed_decides_the_resamples():
    values = np.arange(20.0)
    one, same, other = (resampled(mean_of(values), 20, seed=s) for s in (1, 1, 2))
    assert one.replicates.tolist() == same.replicates.tolist() != other.replicates.tolist()


@pytest.mark.parametrize("products", [1, 60, 200, 700, 1 << 18])
@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parity
def test_sums_in_tiles_equal_one_product(monkeypatch, products, rows):
    parts = np.random.default_rng(0).random((13, 4))
    draws = np.random.default_rng(42).integers(0, 13, (20, 13))
    monkeypatch.setattr(room, "_PRODUCTS", products)
    monkeypatch.setattr(resampling, "_ROWS", rows)
    monkeypatch.setattr(resampling, "_BLOCK", 30)
    found = bootstrap_sums(tuple("abcd"), parts, lambda sums: sums, n_resamples=20)
    assert found.replicates == pytest.approx(parts[draws].sum(axis=1), abs=1e-12)
    assert found.estimates == pytest.approx(parts.sum(axis=0), abs=1e-12)
    assert found.leave_one_out[5] == pytest.approx(np.delete(parts, 5, axis=0).sum(axis=0))


def test_sums_of_a_large_cohort_equal_a_plain_loop():
    parts = np.random.default_rng(1).random((20_000, 30))
    found = bootstrap_sums(tuple(map(str, range(30))), parts, lambda sums: sums, n_resamples=7)
    draws = np.random.default_rng(42).integers(0, 20_000, (7, 20_000))
    expected = [parts[own].sum(axis=0) for own in draws]
    assert found.replicates == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize(("n_cases", "n_resamples"), [(0, 10), (10, 0)])
def test_nothing_to_resample_is_refused(n_cases, n_resamples):
    with pytest.raises(ValueError, match="at least one case and one resample"):
        bootstrap_sums(("x",), np.zeros((n_cases, 1)), lambda sums: sums, n_resamples)


def test_a_level_outside_0_to_1_is_refused():
    with pytest.raises(ValueError, match="level"):
        replicates_of(range(10), 5.0).interval("x", level=95)


def test_all_intervals_come_in_the_order_of_names():
    values = np.arange(5.0)

    def both(weights):
        return np.hstack([mean_of(values)(weights), variance_of(values)(weights)])

    found = resampled(both, 5, n_resamples=50).intervals()
    assert [(i.name, i.estimate) for i in found] == [("x", 2.0), ("y", 2.0)]
