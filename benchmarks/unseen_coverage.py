"""Coverage of intervals on three generators on which no method was chosen.

Usage::

    OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/unseen_coverage.py    # 6 minutes of CPU time
    .venv/bin/python benchmarks/unseen_coverage.py --verify    # compare with the product

The methods were chosen with `mean_coverage.py` and `fairness_coverage.py`. These generators were
written afterwards and before their first run; nothing was changed after it.

sites
    Dice and NormHD are mixtures of beta distributions: easy, difficult and nearly missed cases.
    Five sites with unequal shares differ in the mixture and in the share of failures. This is the
    shape of per-case tables of multi-centre challenges (BraTS, FeTS, MAMA-MIA): a high mode, a
    tail down to 0, more failures at small sites. The sites are the same in all data sets.
capped
    The Hausdorff distance is log-normal, its NormHD is clipped at 1 (ties without a failure), and
    Dice falls with the distance. The extra tail is a second lesion in the other breast: a good
    Dice with a very large distance, as in whole-breast images.
steps
    Ordinal values: Dice in steps of 0.05, NormHD on seven levels, as for small lesions of few
    voxels or readers' grades. 10 % of the patients have two exams, which share half of the
    variance of quality and of failing and have the same groups, as in PI-CAI or bilateral tumours.
    The intervals treat the exams as independent.

A failure is a Dice of 0 with a NormHD of 1. Groups are five of age and two of menopausal status. In
data sets with a gap, the fourth age group (10 % of the cases) is worse and fails more often.
"""

import argparse
import time
from collections import defaultdict
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from napari_mamamia.core.choices import ProfileName
from napari_mamamia.scoring.cohort.disparities import (
    MINIMUM_GROUP,
    segmentation_uncertainty,
    with_ranking_score,
)
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    bootstrap_segmentation,
    segmentation_fairness,
)
from napari_mamamia.scoring.statistics.bootstrap import Interval, IntervalMethod
from napari_mamamia.scoring.statistics.performance import SegmentationScores
from napari_mamamia.scoring.statistics.resampling import draw_cases, weigh_cases

SIZES = (30, 60, 100, 200, 306, 574)
TABLE_SIZES = (60, 100, 306)
"""Numbers of cases for which intervals of gaps are computed too."""
SHARES = (0.0, 0.01, 0.03, 0.10)
FAILURES = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 10**6))
"""Smallest and largest number of observed failures of each column."""
AGE = (0.25, 0.39, 0.24, 0.10, 0.02)
MENOPAUSE = (0.41, 0.59)
WORSE = 3
"""Index of the age group that is worse in data sets with a gap."""
N_EXACT = 1_000_000
"""Number of cases from which the true means are computed."""
BLOCK = 250
"""Number of data sets that are resampled at a time."""
RULES = rules_of(ProfileName.CLINICAL)
WEIGHT = RULES.weight_of_fairness
NUMBERS = ("mean_dsc", "mean_norm_hd", "performance")

SITE_SHARES = (0.42, 0.27, 0.16, 0.10, 0.05)
SITE_SHARES_OF_WORSE = (0.20, 0.20, 0.20, 0.20, 0.20)
SITE_DIFFICULTY = np.array([0.0, 0.2, 0.4, 0.7, 1.0])
LEVELS_OF_NORM_HD = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0])
TWO_EXAMS = 0.10
"""Share of patients with two exams under `draw_steps`."""


def draw_mixture(rng, difficulty):
    """Return Dice and NormHD of cases at sites of a difficulty from 0 to 1."""
    draw = rng.random(difficulty.shape)
    easy, missed = 0.80 - 0.45 * difficulty, 0.05 + 0.20 * difficulty
    kinds = (draw < easy, draw >= 1 - missed)
    size = difficulty.shape
    dice = np.select(kinds, (rng.beta(14, 2.8, size), rng.beta(1.2, 4, size)), 0.0)
    norm_hd = np.select(kinds, (rng.beta(1.6, 24, size), rng.beta(3, 4, size)), 0.0)
    other = ~(kinds[0] | kinds[1])
    dice = np.where(other, rng.beta(5, 3.5, size), dice)
    return dice, np.where(other, rng.beta(2, 8, size), norm_hd)


def fail(rng, dice, norm_hd, share):
    """Return the values with failures, each case with its share."""
    failed = rng.random(dice.shape) < share
    return np.where(failed, 0.0, dice), np.where(failed, 1.0, norm_hd)


def draw_sites(rng, owner, worse, share):
    """Return Dice and NormHD at five fixed sites; the worse group is often at small sites."""
    site = np.where(
        worse,
        rng.choice(5, worse.shape, p=SITE_SHARES_OF_WORSE),
        rng.choice(5, worse.shape, p=SITE_SHARES),
    )
    difficulty = SITE_DIFFICULTY[site]
    of_site = 0.6 + 1.8 * difficulty
    mean = float(np.array(SITE_SHARES) @ (0.6 + 1.8 * SITE_DIFFICULTY))
    dice, norm_hd = draw_mixture(rng, difficulty)
    return fail(rng, dice, norm_hd, share * of_site / mean * np.where(worse, 1.5, 1.0))


def draw_new_sites(rng, owner, worse, share):
    """Return Dice and NormHD at six sites that are drawn anew for each data set."""
    n_sites = 6 if len(worse) > 1 else worse.shape[1]
    difficulties = rng.beta(1.2, 2.2, (len(worse), n_sites))
    site = rng.integers(0, n_sites, worse.shape)
    difficulty = np.take_along_axis(difficulties, site, axis=1)
    dice, norm_hd = draw_mixture(rng, difficulty)
    return fail(rng, dice, norm_hd, share * (0.6 + 1.8 * difficulty) / (0.6 + 1.8 * 1.2 / 3.4))


def draw_capped(rng, owner, worse, share):
    """Return Dice and NormHD of a log-normal distance that is clipped."""
    size = worse.shape
    distance = np.exp(np.log(12) + 0.35 * worse + 1.0 * rng.normal(size=size))
    logit = 1.9 - 0.8 * np.log(distance / 12) + 0.6 * rng.normal(size=size)
    second = rng.random(size) < 0.04
    distance = np.where(second, distance + rng.uniform(60, 160, size), distance)
    norm_hd = np.minimum(distance / 120, 1.0)
    return fail(rng, 1 / (1 + np.exp(-logit)), norm_hd, share * np.where(worse, 2.0, 1.0))


def draw_steps(rng, owner, worse, share):
    """Return Dice in steps and NormHD on levels, alike for two exams of a patient."""

    def normal():
        of_patient = np.take_along_axis(rng.normal(size=worse.shape), owner, axis=1)
        return np.sqrt(0.5) * (of_patient + rng.normal(size=worse.shape))

    quality = normal() - 0.5 * worse
    dice = 1 / (1 + np.exp(-(1.2 + 0.8 * quality + 0.4 * rng.normal(size=worse.shape))))
    level = np.digitize(
        -quality + 0.6 * rng.normal(size=worse.shape), (-0.8, 0, 0.7, 1.3, 1.9, 2.6)
    )
    failed = ndtr(normal()) < share * np.where(worse, 2.0, 1.0)
    dice, norm_hd = np.round(dice / 0.05) * 0.05, LEVELS_OF_NORM_HD[level]
    return np.where(failed, 0.0, dice), np.where(failed, 1.0, norm_hd)


GENERATORS = {"sites": draw_sites, "capped": draw_capped, "steps": draw_steps}


def draw_owners(rng, name, n_sets, n):
    """Return for each exam the index of the patient's first exam, (n_sets, n)."""
    owner = np.tile(np.arange(n), (n_sets, 1))
    if name == "steps":
        of_pairs = 2 * TWO_EXAMS / (1 + TWO_EXAMS)
        owner[:, 1::2] -= rng.random((n_sets, n // 2)) < of_pairs
    return owner


def draw_groups(rng, owner):
    """Return the codes of age and menopausal status, equal for the exams of a patient."""
    return [
        np.take_along_axis(rng.choice(len(shares), owner.shape, p=shares), owner, axis=1)
        for shares in (AGE, MENOPAUSE)
    ]


@cache
def true_means(draw, share):
    """Return the true means (2, 2) of Dice and NormHD, of other cases and of worse cases."""
    rng = np.random.default_rng(7)
    owner = np.arange(N_EXACT)[None]
    means = []
    for is_worse in (False, True):
        values = draw(rng, owner, np.full((1, N_EXACT), is_worse), share)
        means.append([column.mean() for column in values])
    return np.array(means)


def resample_weights(n):
    """Return the product's resamples of n cases as shares, (1000, n)."""
    return np.concatenate([block.astype(float) for block in weigh_cases(draw_cases(n), n)]) / n


def interval_ends(values, weights):
    """Return percentile and BCa ends, each (2, n_sets), of the means of values (n_sets, n)."""
    replicates = np.sort(values @ weights.T, axis=1)
    estimates = values.mean(axis=1)[:, None]
    below = (replicates < estimates - 1e-12).sum(axis=1) + (replicates <= estimates + 1e-12).sum(
        axis=1
    )
    bias = ndtri(below / (2 * replicates.shape[1]))
    apart = values - estimates
    squares = (apart**2).sum(axis=1)
    skew = np.divide(
        (apart**3).sum(axis=1), 6 * squares**1.5, out=np.zeros_like(bias), where=squares > 0
    )
    tails = np.full((2, len(values)), [[0.025], [0.975]])
    shifted = bias + ndtri(tails)
    corrected = ndtr(bias + shifted / (1 - skew * shifted))
    return quantiles(replicates, tails), quantiles(replicates, corrected)


def quantiles(ordered, shares):
    """Return quantiles (2, n_sets) of rows in ascending order, linearly interpolated."""
    place = np.nan_to_num(shares) * (ordered.shape[1] - 1)
    lower = np.minimum(place.astype(int), ordered.shape[1] - 2)
    rows = np.arange(len(ordered))
    step = ordered[rows, lower + 1] - ordered[rows, lower]
    ends = ordered[rows, lower] + (place - lower) * step
    return np.where(np.isnan(shares), np.nan, ends)


def numbers_of(dice, norm_hd):
    """Return each case's contribution to mean Dice, mean NormHD and performance."""
    return (dice, norm_hd, (dice + 1 - norm_hd) / 2)


def measure_means(name, draw, n, n_sets, seed):
    """Return coverage by share, and by observed failures, of both methods and three numbers.

    The coverage by observed failures is computed over the shares above 0.
    """
    weights = resample_weights(n)
    by_share, by_failures = {}, defaultdict(list)
    for place, share in enumerate(SHARES):
        rng = np.random.default_rng([seed, n, place, *map(ord, name)])
        other, _ = true_means(draw, share)
        truth = (other[0], other[1], (other[0] + 1 - other[1]) / 2)
        held = defaultdict(list)
        failures = []
        for _ in range(0, n_sets, BLOCK):
            owner = draw_owners(rng, name, BLOCK, n)
            dice, norm_hd = draw(rng, owner, np.zeros((BLOCK, n), dtype=bool), share)
            failures.append((dice == 0).sum(axis=1))
            for number, values, true in zip(NUMBERS, numbers_of(dice, norm_hd), truth, strict=True):
                both = interval_ends(values, weights)
                for method, (low, high) in zip(("percentile", "bca"), both, strict=True):
                    held[method, number].append((low <= true) & (true <= high))
        failures = np.concatenate(failures)
        for key, blocks in held.items():
            hits = np.concatenate(blocks)
            by_share[share, *key] = hits.mean()
            if share:
                for column in FAILURES:
                    is_in = (failures >= column[0]) & (failures <= column[1])
                    by_failures[column, *key].append(hits[is_in])
    return by_share, {key: np.concatenate(hits) for key, hits in by_failures.items()}


def measure_groups(name, draw, n, share, has_gap, n_sets, seed):
    """Return counts of intervals that hold the truth, are defined, and exclude no gap."""
    weights = resample_weights(n)
    rng = np.random.default_rng([seed, n, round(1000 * share), has_gap, *map(ord, name)])
    other, worse = true_means(draw, share)
    ids = tuple(map(str, range(n)))
    counts = defaultdict(lambda: np.zeros(3))
    whole = AGE[WORSE] * worse + (1 - AGE[WORSE]) * other if has_gap else other
    true_performance = (whole[0] + 1 - whole[1]) / 2
    for _ in range(0, n_sets, BLOCK):
        owner = draw_owners(rng, name, BLOCK, n)
        codes = draw_groups(rng, owner)
        is_worse = (codes[0] == WORSE) & has_gap
        dice, norm_hd = draw(rng, owner, is_worse, share)
        (low, high), _ = interval_ends(numbers_of(dice, norm_hd)[2], weights)
        for index in range(BLOCK):
            scores = SegmentationScores(ids, dice[index], norm_hd[index])
            groupings = [
                Grouping(variable, tuple(map(str, range(len(shares)))), code[index])
                for variable, shares, code in zip(
                    ("age", "menopause"), (AGE, MENOPAUSE), codes, strict=True
                )
            ]
            fairness = segmentation_fairness(scores, groupings, RULES)
            uncertainty = segmentation_uncertainty(scores, groupings, fairness, MINIMUM_GROUP, 1.0)
            performance = Interval(
                "performance", 0, low[index], high[index], IntervalMethod.PERCENTILE, 0.95, 1000, 0
            )
            uncertainty = with_ranking_score(uncertainty, performance, WEIGHT)
            is_counted = groupings[0].sizes[WORSE] >= MINIMUM_GROUP
            gaps = np.abs(worse - other) * (has_gap and is_counted)
            true_fairness = 1 - gaps.sum() / 4
            for estimate in uncertainty.disparities:
                gap = gaps[int(estimate.measure == "norm_hd")] * (estimate.variable == "age")
                key = f"{estimate.variable} {estimate.measure}"
                count(counts[key], estimate.interval, gap, estimate.interval.low > 0)
            count(
                counts["fairness"],
                uncertainty.fairness,
                true_fairness,
                uncertainty.fairness.high < 1,
            )
            score = (1 - WEIGHT) * true_performance + WEIGHT * true_fairness
            count(counts["ranking_score"], uncertainty.ranking_score, score, False)
    return counts


def count(total, interval, truth, excludes):
    """Add whether an interval is defined, holds the truth, and excludes the absence of a gap."""
    if interval.is_defined:
        total += (1, interval.low - 1e-12 <= truth <= interval.high + 1e-12, excludes)


def print_means(n_sets, seed):
    """Print the coverage of means by share and by observed failures."""
    lowest = {}
    print(
        "Coverage of means by generator: percentile of Dice, NormHD, performance; BCa of the same"
    )
    for n in SIZES:
        observed = []
        for name, draw in GENERATORS.items():
            by_share, by_failures = measure_means(name, draw, n, n_sets, seed)
            observed.append(by_failures)
            for share in SHARES:
                cells = " ".join(
                    f"{by_share[share, method, number]:.3f}"
                    for method in ("percentile", "bca")
                    for number in NUMBERS
                )
                print(f"{n:>5} {share:<5} {name:<8} {cells}", flush=True)
        for method in ("percentile", "bca"):
            for column in FAILURES:
                shares = [
                    one[column, method, number].mean()
                    for one in observed
                    for number in NUMBERS
                    if len(one[column, method, number]) >= 100
                ]
                lowest[n, method, column] = min(shares, default=np.nan)
    print("\nLowest coverage of means by observed failures", *[c[0] for c in FAILURES])
    for method in ("percentile", "bca"):
        for n in SIZES:
            cells = " ".join(f"{lowest[n, method, column]:.3f}" for column in FAILURES)
            print(f"{n:>5} {method:<12} {cells}")


def print_new_sites(n_sets, seed):
    """Print the coverage of means if each data set has other sites."""
    print("\nCoverage of means for new sites (not what the intervals are for), 306 cases")
    by_share, _ = measure_means("new sites", draw_new_sites, 306, n_sets, seed)
    for share in SHARES:
        cells = " ".join(f"{by_share[share, 'percentile', number]:.3f}" for number in NUMBERS)
        print(f"{share:<5} {cells}")


def print_groups(n_sets, seed):
    """Print null exclusions and coverage of the intervals that contain gaps."""
    keys = [f"{v} {m}" for v in ("age", "menopause") for m in ("dsc", "norm_hd")]
    keys += ["fairness", "ranking_score"]
    print("\nIntervals of gaps: coverage (null exclusions) [undefined]:", *keys)
    for n in TABLE_SIZES:
        for share in SHARES:
            for name, draw in GENERATORS.items():
                for has_gap in (False, True):
                    counts = measure_groups(name, draw, n, share, has_gap, n_sets, seed)
                    cells = []
                    for key in keys:
                        n_defined, n_held, n_excluded = counts[key]
                        text = f"{n_held / n_defined:.3f}"
                        if not has_gap or key.startswith("menopause"):
                            text += f" ({n_excluded / n_defined:.3f})"
                        if n_defined < n_sets:
                            text += f" [{1 - n_defined / n_sets:.2f}]"
                        cells.append(text)
                    kind = "gap" if has_gap else "null"
                    print(f"{n:>5} {share:<5} {name:<8} {kind:<5}" + " | ".join(cells), flush=True)


def verify(seed):
    """Compare the ends of both methods with the product's bootstrap on a few data sets.

    BCa differs where a resampled mean of ordinal values equals the estimate except for rounding.
    """
    largest = dict.fromkeys(GENERATORS, 0.0)
    for name, draw in GENERATORS.items():
        rng = np.random.default_rng(seed)
        owner = draw_owners(rng, name, 5, 100)
        dice, norm_hd = draw(rng, owner, np.zeros((5, 100), dtype=bool), 0.03)
        weights = resample_weights(100)
        for index in range(5):
            scores = SegmentationScores(tuple(map(str, range(100))), dice[index], norm_hd[index])
            job = bootstrap_segmentation(scores, (), 0.0)
            for number, values in zip(NUMBERS, numbers_of(dice, norm_hd), strict=True):
                both = interval_ends(values, weights)
                for method, ends in zip(("percentile", "bca"), both, strict=True):
                    found = job.interval(number, IntervalMethod(method))
                    apart = np.abs(ends[:, index] - (found.low, found.high)).max()
                    largest[name] = max(largest[name], float(apart))
    print("largest difference from the product's intervals:", largest)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=4000, help="data sets of each mean")
    parser.add_argument("--group-sets", type=int, default=1000, help="data sets of each gap")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--verify", action="store_true")
    given = parser.parse_args()
    if given.verify:
        verify(given.seed)
        return
    started = time.process_time()
    print_means(given.sets, given.seed)
    print_new_sites(given.sets, given.seed)
    print_groups(given.group_sets, given.seed)
    print(f"{time.process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()
