from itertools import combinations, product

import numpy as np
import pytest

from napari_mamamia.metrics.registry import Better
from napari_mamamia.scoring.cohort import slices
from napari_mamamia.scoring.cohort.groups import Grouping


def worst_slices(*args, **kwargs):
    return slices.worst_slices(*args, **kwargs)


def random_groupings(n, seed, missing=0.1):
    rng = np.random.default_rng(seed)
    found = []
    for variable, labels in (("age", "vwxyz"), ("centre", "DEF"), ("density", "abcd"), ("s", "mn")):
        codes = rng.integers(0, len(labels), n)
        codes[rng.random(n) < missing] = -1
        found.append(Grouping(variable, tuple(labels), codes))
    return found


def slices_by_brute_force(groupings, values, least, most_columns):
    """Every different set of cases with its mean, by plain loops over labels and cases."""
    cases = [i for i, value in enumerate(values) if not np.isnan(value)]
    found = {}
    for size in range(1, most_columns + 1):
        for chosen in combinations(groupings, size):
            for labels in product(*(range(len(g.labels)) for g in chosen)):
                members = frozenset(
                    i
                    for i in cases
                    if all(g.codes[i] == k for g, k in zip(chosen, labels, strict=True))
                )
                if len(members) >= least and len(cases) - len(members) >= least:
                    name = tuple(
                        (g.variable, g.labels[k]) for g, k in zip(chosen, labels, strict=True)
                    )
                    found.setdefault(members, name)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
def test_slices_and_their_numbers_are_those_of_brute_force(seed, better):
    rng = np.random.default_rng(seed)
    values = rng.random(90)
    values[rng.random(90) < 0.1] = np.nan
    groupings = random_groupings(90, seed)
    search = worst_slices("dsc", values, groupings, better, min_support=8, n_permutations=20)
    expected = slices_by_brute_force(groupings, values, 8, 3)
    assert search.n_slices == len(expected)
    everything = values[~np.isnan(values)]
    rows = []
    for members, name in expected.items():
        inside = values[sorted(members)]
        error = everything.std(ddof=1) * np.sqrt(1 / inside.size - 1 / everything.size)
        apart = everything.mean() - inside.mean()
        rows.append((apart / error if better is Better.HIGHER else -apart / error, name, members))
    rows.sort(key=lambda row: -row[0])
    by_name = {frozenset(name): statistic for statistic, name, _ in rows}
    rows = [
        (statistic, name, members)
        for statistic, name, members in rows
        if not any(by_name[other] + 0.5 > statistic for other in by_name if other < frozenset(name))
    ]
    assert len(search.worst) == min(10, len(rows))
    for got, (statistic, name, members) in zip(search.worst, rows, strict=False):
        assert got.conditions == name
        assert got.n == len(members)
        assert got.mean == pytest.approx(values[sorted(members)].mean(), abs=1e-12)
        others = [i for i in range(90) if i not in members and not np.isnan(values[i])]
        assert got.mean_elsewhere == pytest.approx(values[others].mean(), abs=1e-12)
        assert got.statistic == pytest.approx(statistic, abs=1e-9)


def test_a_planted_slice_of_two_columns_is_found_and_sure():
    groupings = random_groupings(600, 3)
    rng = np.random.default_rng(3)
    values = np.clip(rng.normal(0.75, 0.15, 600), 0, 1)
    planted = (groupings[1].codes == 2) & (groupings[2].codes == 3)
    values[planted] -= 0.25
    worst = worst_slices("dsc", values, groupings).worst[0]
    assert worst.conditions == (("centre", "F"), ("density", "d"))
    assert worst.name == "centre F, density d"
    assert worst.n == planted.sum()
    assert worst.p_value == 1 / 1001  # no random cohort of 1000 reaches it


def test_without_a_worse_slice_one_search_in_twenty_is_significant():
    # 200 cohorts without any structure: the share with p <= 0.05 lies within 3 SD of 0.05
    groupings = random_groupings(120, 8)
    rng = np.random.default_rng(8)
    found = [
        worst_slices("dsc", rng.random(120), groupings, n_permutations=99, n_worst=1, seed=k)
        for k in range(200)
    ]
    n_significant = sum(search.worst[0].p_value <= 0.05 for search in found)
    assert 1 <= n_significant <= 19  # 200 x 0.05 = 10, SD 3.1


def test_the_p_value_counts_random_cohorts_that_reach_the_statistic():
    # two groups of 2: of 6 equally likely splits, 2 put {0, 0} or {1, 1} together; only one of
    # them in group a. With values 0 0 1 1, the worst group of a random cohort has mean 0 in 2 of 6
    groups = [Grouping("g", ("a", "b"), np.array([0, 0, 1, 1]))]
    search = worst_slices(
        "dsc", np.array([0.0, 0, 1, 1]), groups, min_support=2, n_permutations=3000
    )
    assert search.worst[0].conditions == (("g", "a"),)
    assert search.worst[0].p_value == pytest.approx(1 / 3, abs=0.03)


def test_a_slice_with_the_same_cases_as_a_shorter_one_is_not_repeated():
    codes = np.repeat([0, 1], 30)
    groups = [Grouping("centre", ("A", "B"), codes), Grouping("scanner", ("S", "T"), codes)]
    search = worst_slices("dsc", np.random.default_rng(0).random(60), groups)
    assert search.n_slices == 2
    assert {s.conditions[0][0] for s in search.worst} == {"centre"}


def test_too_little_support_is_told():
    groups = [Grouping("g", ("a", "b"), np.array([0, 0, 1, 1]))]
    search = worst_slices("dsc", np.array([0.1, 0.2, 0.3, 0.4]), groups)
    assert search.worst == ()
    assert search.reason == "no combination of groups has 20 cases inside and outside"


def test_a_metric_without_values_or_spread_is_told():
    groups = [Grouping("g", ("a", "b"), np.repeat([0, 1], 25))]
    assert worst_slices("dsc", np.full(50, np.nan), groups).reason == "no case has a value"
    same = worst_slices("dsc", np.full(50, 0.5), groups)
    assert same.reason == "the metric is the same in all cases"


def test_the_same_seed_gives_the_same_result():
    values, groupings = np.random.default_rng(1).random(80), random_groupings(80, 1)
    once, again = (worst_slices("dsc", values, groupings, min_support=5) for _ in range(2))
    assert once == again


def test_codes_of_other_cases_are_refused():
    groups = [Grouping("g", ("a", "b"), np.array([0, 1]))]
    with pytest.raises(ValueError, match="group the same cases"):
        worst_slices("dsc", np.zeros(3), groups)


def test_a_metric_that_cannot_be_worse_is_refused():
    with pytest.raises(ValueError, match="higher or lower"):
        worst_slices("volume", np.zeros(3), [], Better.NEITHER)


def test_a_slice_that_is_no_worse_than_a_broader_one_is_not_listed():
    # centre A is bad whatever the scanner: halves of it have the same mean and a larger error
    centre, scanner = np.repeat([0, 1], 80), np.tile([0, 1], 80)
    values = np.where(centre == 0, 0.4, 0.8) + np.tile([0.0, 0.0, 0.01, 0.01], 40)
    groups = [Grouping("centre", ("A", "B"), centre), Grouping("scanner", ("S", "T"), scanner)]
    listed = [found.conditions for found in worst_slices("dsc", values, groups).worst]
    assert listed[0] == (("centre", "A"),)
    assert (("centre", "A"), ("scanner", "S")) not in listed
