"""Intervals of the largest gap: worked examples, an exhaustive search, and simulated coverage."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_ind

from napari_mamamia.scoring.statistics.contrasts import (
    GapColumns,
    GroupMoments,
    beyond_chance,
    gap_ends,
    mean_gap_high,
    range_by_chance,
    range_point,
    rate_gap_ends,
    wilson_limits,
)

THREE = GroupMoments(
    np.array([120.0, 77.0, 6.0]), np.array([0.74, 0.70, 0.58]), np.array([0.21, 0.23, 0.12]) ** 2
)
AGES = (77, 120, 73, 30, 6)


def moments_of(groups):
    n, mean, variance = (
        [f(g) for g in groups] for f in (len, np.mean, lambda g: np.var(g, ddof=1))
    )
    return GroupMoments(np.array(n, float), np.array(mean), np.array(variance))


def test_a_group_takes_at_least_the_pooled_variance():
    # (119 * .21^2 + 76 * .23^2 + 5 * .12^2) / 200; .21^2 = .0441 and .12^2 = .0144 lie below it
    assert THREE.used == pytest.approx([0.0467015, 0.0529, 0.0467015], abs=1e-12)


def test_equal_groups_with_rare_failures_rarely_look_different():
    # NormHD: log-normal with 3 % failures of 1; a group of 40 often has none, by chance. With its
    # own variance alone, 11 % of these intervals exclude 0
    rng = np.random.default_rng(1)

    def draw(n):
        values = np.minimum(np.exp(rng.normal(np.log(0.08), 0.8, n)), 1)
        return np.where(rng.random(n) < 0.03, 1, values)

    found = [gap_ends(moments_of([draw(40), draw(266)])) for _ in range(400)]
    assert np.mean([ends.low > 0 for ends in found]) <= 0.05


def test_the_worked_example_of_three_groups_to_its_digits():
    found = gap_ends(THREE)
    assert found.low == 0
    assert found.high == pytest.approx(0.386045, abs=5e-7)
    assert found.pair == (0, 2)
    freedom = np.array([154.773, 5.511921, 5.918563])
    points = range_point(0.95, 3, freedom)
    assert points == pytest.approx([2.366479, 3.148509, 3.080544], abs=1e-6)


def test_chance_and_what_is_beyond_it_are_those_of_the_worked_example():
    chance = range_by_chance(THREE.errors)
    assert chance == pytest.approx(0.0858, abs=2e-4)
    assert beyond_chance(0.16, chance) == pytest.approx(0.135, abs=5e-4)
    assert beyond_chance(0.05, chance) == 0


def test_chance_is_the_mean_range_of_drawn_numbers():
    errors = np.array([0.04, 0.01, 0.0, 0.09])
    drawn = np.random.default_rng(0).normal(size=(200_000, 4)) * np.sqrt(errors)
    assert range_by_chance(errors) == pytest.approx(np.ptp(drawn, axis=1).mean(), abs=2e-3)
    assert range_by_chance(np.array([1.0, 1.0])) == pytest.approx(2 / np.sqrt(np.pi), abs=1e-9)
    assert range_by_chance(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("n_groups", "points"),
    [
        (3, (3.2539, 2.7413, 2.53, 2.3437)),
        (4, (3.6899, 3.0594, 2.7989, 2.569)),
        (5, (4.0115, 3.2911, 2.9924, 2.7278)),
    ],
)
def test_points_of_the_studentised_range_are_those_of_tables(n_groups, points):
    freedom = np.array([5, 10, 20, np.inf])
    assert range_point(0.95, n_groups, freedom) == pytest.approx(points, abs=6e-5)


def test_with_two_groups_of_one_spread_the_interval_is_welchs_of_the_difference():
    rng = np.random.default_rng(3)
    groups = [rng.normal(0.9, 0.1, 40), rng.normal(0.6, 0.1, 25)]
    groups = [
        mean + (g - g.mean()) / g.std(ddof=1) * 0.1
        for g, mean in zip(groups, (0.9, 0.6), strict=True)
    ]
    found, welch = gap_ends(moments_of(groups)), ttest_ind(*groups, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_with_two_groups_the_smaller_variance_is_raised_to_the_pooled():
    rng = np.random.default_rng(3)
    groups = [rng.normal(0.9, 0.1, 40), rng.normal(0.6, 0.2, 25)]
    variances = [np.var(group, ddof=1) for group in groups]
    pooled = (39 * variances[0] + 24 * variances[1]) / 63
    errors = pooled / 40, variances[1] / 25
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / 39 + errors[1] ** 2 / 24)
    gap = groups[0].mean() - groups[1].mean()
    reach = t.ppf(0.975, freedom) * np.sqrt(sum(errors))
    found = gap_ends(moments_of(groups))
    assert (found.low, found.high) == pytest.approx((gap - reach, gap + reach), abs=1e-4)


def test_the_worked_example_of_rates_to_its_digits():
    hits, n = np.array([18.0, 40, 3]), np.array([20.0, 60, 6])
    low, high = wilson_limits(hits, n, 2.3437006)
    assert low == pytest.approx([0.650043, 0.515454, 0.154334], abs=5e-7)
    assert high == pytest.approx([0.977582, 0.789923, 0.845666], abs=5e-7)
    found = rate_gap_ends(hits, n)
    assert (found.low, found.pair) == (0, (0, 2))
    assert found.high == pytest.approx(0.720604, abs=5e-7)


def columns_of(values, codes, n_groups):
    members = codes[:, None] == np.arange(n_groups)
    moments = moments_of([values[codes == group] for group in range(n_groups)])
    apart = np.where(members, values[:, None] - moments.mean, 0) / moments.n
    return GapColumns(moments, apart)


def test_the_search_for_the_worst_pairs_finds_what_all_combinations_give():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(2, 90))
    values[1] += 0.6 * values[0]
    codes = (rng.integers(0, 3, 90), rng.integers(0, 2, 90))
    gaps = [columns_of(values[0], codes[0], 3), columns_of(values[1], codes[1], 2)]
    apart = np.hstack([gap.apart for gap in gaps])
    covariance = apart.T @ apart
    errors = np.concatenate([gap.moments.errors for gap in gaps])
    scale = np.sqrt(errors / np.diagonal(covariance))
    covariance = covariance * scale[:, None] * scale
    means = np.concatenate([gap.moments.mean for gap in gaps])
    n = np.concatenate([gap.moments.n for gap in gaps])
    ends = []
    for first, second in product(permutations(range(3), 2), permutations((3, 4), 2)):
        signs = np.zeros(5)
        signs[[first[0], second[0]]], signs[[first[1], second[1]]] = 1, -1
        used = [*first, *second]
        freedom = errors[used].sum() ** 2 / (errors[used] ** 2 / (n[used] - 1)).sum()
        ends.append(signs @ means + t.ppf(0.975, freedom) * np.sqrt(signs @ covariance @ signs))
    assert mean_gap_high(gaps) == pytest.approx(max(ends) / 2, abs=1e-9)


def test_the_joint_upper_end_is_below_the_mean_of_single_ones():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 4, 200)
    gaps = [columns_of(rng.normal(size=200), codes, 4) for _ in range(4)]
    single = np.mean([gap_ends(gap.moments).high for gap in gaps])
    assert max(np.ptp(g.moments.mean) for g in gaps) / 4 < mean_gap_high(gaps) < single


# The simulation: few seconds, seeds fixed, margins of 3 standard errors and more. The large one is
# benchmarks/fairness_coverage.py.


@pytest.mark.parametrize("gap", [0.0, 0.15])
def test_the_interval_of_a_gap_covers_it(gap):
    rng, n = np.random.default_rng(11), np.array(AGES, dtype=np.float64)
    truth = np.array([0, 0, 0, 0, -gap])
    held, lengths, low_ends = 0, [], 0
    for _ in range(400):
        mean = truth + rng.normal(size=5) * 0.22 / np.sqrt(n)
        variance = 0.22**2 * rng.chisquare(n - 1) / (n - 1)
        found = gap_ends(GroupMoments(n, mean, variance))
        held += found.low <= gap <= found.high
        low_ends += found.low > 0
        lengths.append(found.high - found.low)
    assert held / 400 > 0.92
    assert 0.3 < np.mean(lengths) < 0.75
    if not gap:
        assert low_ends / 400 < 0.08


def test_a_percentile_range_never_holds_a_gap_of_zero_and_the_interval_does():
    rng, sizes = np.random.default_rng(12), np.array(AGES)
    ends, held = np.cumsum(sizes), 0
    for _ in range(30):
        values = rng.normal(0.7, 0.22, ends[-1])
        groups = np.split(values, ends[:-1])
        draws = np.array([[rng.choice(g, g.size).mean() for g in groups] for _ in range(60)])
        assert np.percentile(np.ptp(draws, axis=1), 2.5) > 0
        held += gap_ends(moments_of(groups)).low == 0
    assert held >= 26


@pytest.mark.parametrize("rate", [0.6, 0.95])
def test_the_interval_of_a_gap_of_rates_covers_it(rate):
    rng, n = np.random.default_rng(13), np.array([22.0, 40, 25, 10, 5])
    rates, held = np.array([rate, rate, rate, rate, rate - 0.2]), 0
    for _ in range(400):
        found = rate_gap_ends(rng.binomial(n.astype(int), rates).astype(np.float64), n)
        held += found.low <= 0.2 <= found.high
    assert held / 400 > 0.92


@pytest.mark.parametrize("gap", [0.0, 0.2])
def test_the_interval_of_a_mean_of_gaps_covers_it(gap):
    rng, held, n = np.random.default_rng(14), 0, 300
    for _ in range(150):
        codes = [rng.choice(k, n, p=p) for k, p in ((3, (0.4, 0.5, 0.1)), (2, (0.3, 0.7)))]
        both = rng.multivariate_normal((0, 0), ((0.05, 0.03), (0.03, 0.05)), n).T
        both = both + gap * ((codes[0] == 2) + 0.0)
        gaps = [columns_of(v, c, c.max() + 1) for c in codes for v in both]
        truth = gap / 2  # the second variable has none
        low = np.mean([gap_ends(g.moments, low=1 - 0.05 / 4).low for g in gaps])
        held += low <= truth + 1e-12 <= mean_gap_high(gaps) + 1e-12
    assert held / 150 > 0.92


def test_normal_points_are_those_without_end_of_freedom():
    assert range_point(0.95, 2, np.array([np.inf])) == pytest.approx(norm.ppf(0.975), abs=1e-6)
