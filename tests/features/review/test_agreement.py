"""Agreement of readers: numbers that scikit-learn, statsmodels, krippendorff and pingouin gave."""

from math import isnan

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_mamamia.features.review.rules.agreement import (
    Scale,
    Weighting,
    absolute_of_sums,
    alpha_of_pairs,
    bland_altman,
    compare_ratios,
    count_pairs,
    estimate_mean,
    estimate_sums,
    fleiss_of_counts,
    kappa_of_counts,
)

A = (1, 2, 3, 3, 4, 4, 4, 5, 2, 1, 4, 5)
B = (1, 2, 3, 4, 4, 4, 5, 5, 2, 2, 4, 4)
C = (1, 3, 3, 3, 4, 5, 4, 5, 2, 1, 4, 5)
ORDER = (1, 2, 3, 4, 5)
V1 = (1.20, 3.45, 0.80, 12.1, 7.30, 2.15, 5.60, 0.45)
V2 = (1.35, 3.10, 0.95, 13.0, 6.90, 2.40, 5.20, 0.60)


def cohen_kappa(first, second, order, weighting=Weighting.NONE):
    """Return the kappa of two readers' ratings, from their table of counts."""
    rated = [(a, b) for a, b in zip(first, second, strict=True) if None not in (a, b)]
    table = [[rated.count((a, b)) for b in order] for a in order]
    return float(kappa_of_counts(np.array(table, dtype=float), weighting))


def count_ratings(ratings, order):
    """Return how often each case was given each category, (cases, categories)."""
    counts = [[list(row).count(category) for category in order] for row in ratings]
    return np.array(counts, dtype=float).reshape(-1, len(order))


def fleiss_kappa(ratings, order, n_readers):
    counts = count_ratings(ratings, order)
    return float(fleiss_of_counts(counts.sum(axis=0), (counts**2).sum(), n_readers))


def krippendorff_alpha(ratings, order, scale=Scale.NOMINAL):
    return float(alpha_of_pairs(count_pairs(count_ratings(ratings, order)).sum(axis=0), scale))


def icc(values):
    """Return ICC(A,1) of (cases, readers) values."""
    values = np.asarray(values, dtype=float)
    centred = values - values.mean()
    n = np.array(float(len(values)))
    return float(absolute_of_sums(n, centred.sum(axis=0), centred.T @ centred))


@pytest.mark.parametrize(
    ("weighting", "kappa"),
    [
        (Weighting.NONE, 0.5636363636),
        (Weighting.LINEAR, 0.7692307692),
        (Weighting.QUADRATIC, 0.9016393443),
    ],
)
def test_cohens_kappa_is_that_of_scikit_learn(weighting, kappa):
    assert cohen_kappa(A, B, ORDER, weighting) == pytest.approx(kappa, abs=1e-10)


@pytest.mark.parametrize(
    ("weighting", "name"), [("none", None), ("linear", "linear"), ("quadratic", "quadratic")]
)
@pytest.mark.parametrize("seed", range(5))
def test_cohens_kappa_of_random_readers_is_that_of_scikit_learn(weighting, name, seed):
    metrics = pytest.importorskip("sklearn.metrics")
    first, second = np.random.default_rng(seed).integers(0, 4, (2, 30)).tolist()
    expected = metrics.cohen_kappa_score(first, second, labels=range(4), weights=name)
    ours = cohen_kappa(first, second, range(4), Weighting(weighting))
    assert ours == pytest.approx(expected, abs=1e-12)


def test_fleiss_and_krippendorff_of_the_three_readers():
    ratings = list(zip(A, B, C, strict=True))
    assert fleiss_kappa(ratings, ORDER, 3) == pytest.approx(0.5705765407, abs=1e-10)
    assert krippendorff_alpha(ratings, ORDER) == pytest.approx(0.5825049702, abs=1e-10)
    ordinal = krippendorff_alpha(ratings, ORDER, Scale.ORDINAL)
    assert ordinal == pytest.approx(0.8892371521, abs=1e-10)


def test_alpha_with_missing_ratings_is_krippendorffs_own_example():
    """Four observers, twelve units: nominal .743, ordinal .815 (Krippendorff 2011)."""
    rows = (
        (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
        (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
        (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
    )
    units = list(zip(*rows, strict=True))
    assert round(krippendorff_alpha(units, ORDER), 3) == 0.743
    assert round(krippendorff_alpha(units, ORDER, Scale.ORDINAL), 3) == 0.815


def test_one_category_alone_has_no_kappa():
    assert isnan(cohen_kappa((1, 1), (1, 1), ORDER))
    assert isnan(fleiss_kappa(((1, 1), (1, 1)), ORDER, 2))
    assert isnan(krippendorff_alpha(((1, 1), (1, 1)), ORDER))


def test_no_case_in_common_has_no_kappa():
    assert isnan(cohen_kappa((1, None), (None, 2), ORDER))
    assert isnan(krippendorff_alpha(((1, None), (None, 2)), ORDER))
    assert isnan(krippendorff_alpha((), ORDER))
    assert isnan(fleiss_kappa((), ORDER, 2))


def test_volumes_agree_as_the_facts_say():
    found = bland_altman(V1, V2)
    assert found.bias == pytest.approx(-0.05625)
    assert found.sd == pytest.approx(0.4403225279, abs=1e-10)
    assert (found.low, found.high) == pytest.approx((-0.9192821547, 0.8067821548), abs=1e-9)
    ratio = compare_ratios(V1, V2)
    assert ratio.ratio == pytest.approx(0.9368768906, abs=1e-10)
    assert (ratio.low, ratio.high) == pytest.approx((0.7176271636, 1.2231118786), abs=1e-9)
    assert icc(np.column_stack((V1, V2))) == pytest.approx(0.994853, abs=1e-6)


def test_icc_of_shrout_and_fleiss():
    """Their table 4: ICC(2,1) .29 (Psychological Bulletin 86, 420)."""
    rated = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert round(icc(rated), 2) == 0.29


def test_empty_masks_have_no_ratio_and_are_counted():
    found = compare_ratios((2.0, 0.0, 8.0), (1.0, 3.0, 4.0))
    assert (found.ratio, found.n, found.n_left_out) == (pytest.approx(2.0), 2, 1)


def test_too_few_cases_have_no_spread():
    assert isnan(bland_altman((), ()).bias)
    one = bland_altman((3.0,), (1.0,))
    assert one.bias == 2.0
    assert isnan(one.sd)
    assert isnan(one.low)
    assert isnan(icc(np.ones((1, 2))))
    assert isnan(icc(np.ones((4, 2))))
    assert isnan(compare_ratios((0.0,), (1.0,)).ratio)


def test_an_interval_over_cases_is_that_of_resampled_means():
    """A slow way beside it: each resample drawn and averaged in a loop."""
    values = [1.0, 2.0, 4.0, 9.0]
    draw = np.random.default_rng(3)
    means = [np.mean(draw.choice(values, 4)) for _ in range(4000)]
    found = estimate_mean([*values, float("nan")], 4000, 1)
    assert (found.value, found.n, found.n_undefined) == (4.0, 4, 0)
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(means, [0.025, 0.975])), abs=0.2
    )
    assert isnan(estimate_mean([float("nan")]).value)
    assert estimate_mean([]).n == 0
    one = estimate_mean([3.0])
    assert (one.low, one.high) == (3.0, 3.0)


def test_resamples_without_a_value_are_left_out_and_counted():
    # two cases: (yes, yes) and (no, no); one of them alone, every second resample, has no kappa
    parts = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 0, 0]])
    found = estimate_sums(
        lambda sums: kappa_of_counts(sums.reshape(*sums.shape[:-1], 2, 2)), parts, 400
    )
    assert (found.value, found.n) == (1.0, 2)
    assert 0.4 < found.n_undefined / 400 < 0.6


@settings(suppress_health_check=[HealthCheck.too_slow])  # of the computer, not of the rows
@given(st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=3, max_size=12))
def test_the_icc_is_that_of_the_analysis_of_variance(rows):
    """McGraw and Wong 1996, their case 2 A, from mean squares of the values themselves."""
    values = np.array(rows)
    n, k = values.shape
    of_cases = k * ((values.mean(axis=1) - values.mean()) ** 2).sum()
    of_readers = n * ((values.mean(axis=0) - values.mean()) ** 2).sum()
    rest = ((values - values.mean()) ** 2).sum() - of_cases - of_readers
    rows_ms, columns_ms, error = of_cases / (n - 1), of_readers / (k - 1), rest / (n - 1) / (k - 1)
    whole = rows_ms + (k - 1) * error + k * (columns_ms - error) / n
    if np.ptp(values) > 1e-3:
        assert icc(values) == pytest.approx((rows_ms - error) / whole, abs=1e-6)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=20))
def test_kappa_and_alpha_are_1_at_most_and_the_order_of_readers_is_no_matter(pairs):
    first, second = zip(*pairs, strict=True)
    for weighting in Weighting:
        one, other = (
            cohen_kappa(first, second, ORDER, weighting),
            cohen_kappa(second, first, ORDER, weighting),
        )
        assert (isnan(one) and isnan(other)) or one == pytest.approx(other, abs=1e-12)
        assert isnan(one) or one <= 1 + 1e-12
    alpha = krippendorff_alpha(pairs, ORDER, Scale.ORDINAL)
    assert isnan(alpha) or alpha <= 1 + 1e-12
