"""Notes on intervals that contain the true value too rarely."""

import numpy as np
import pytest

from napari_mamamia.scoring.statistics.coverage import describe_coverage


@pytest.mark.parametrize(("n_cases", "n_failures"), [(100, 10), (306, 2), (574, 40), (1506, 10)])
def test_enough_cases_and_failures_need_no_note(n_cases, n_failures):
    assert describe_coverage(n_cases, n_failures) == ()


@pytest.mark.parametrize(
    ("n_cases", "n_failures", "percent"),
    [
        (60, 0, "71%"),
        (99, 1, "92%"),
        (150, 1, "91%"),
        (600, 3, "87%"),
        (90, 10, "91%"),
        (306, 0, "72%"),
        (100, 7, "93% (percentile)"),
        (250, 2, "94% (BCa)"),
    ],
)
def test_few_cases_or_failures_get_the_simulated_coverage(n_cases, n_failures, percent):
    (note,) = describe_coverage(n_cases, n_failures)
    assert percent in note
    assert f"{n_cases} cases" in note


@pytest.mark.parametrize(("n_cases", "n_failures"), [(12, 0), (1, 1), (574, 0)])
def test_a_coverage_that_was_not_simulated_is_not_known(n_cases, n_failures):
    (note,) = describe_coverage(n_cases, n_failures)
    assert "not known" in note


def test_intervals_without_an_observed_failure_are_too_narrow():
    # 60 cases, 3 % failures: only data sets in which no failure was observed
    rng = np.random.default_rng(0)
    truth = 0.97 * 6 / 7.6
    n_held = n_sets = 0
    while n_sets < 200:
        values = rng.beta(6, 1.6, 60)
        if (rng.random(60) < 0.03).any():
            continue
        means = values[rng.integers(0, 60, (400, 60))].mean(axis=1)
        low, high = np.percentile(means, (2.5, 97.5))
        n_held += low <= truth <= high
        n_sets += 1
    assert n_held / n_sets < 0.8
