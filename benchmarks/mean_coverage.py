"""How often bootstrap intervals of means and performance contain the true value.

Usage::

    .venv/bin/python benchmarks/mean_coverage.py [--sets 300]    # 7 minutes of CPU time

Data sets of n cases are drawn from three distributions of Dice and NormHD, with a share of failures
(Dice 0, NormHD 1) of 1 to 15 %. For each method, number of cases and *observed* number of failures,
the table gives the lowest coverage over the distributions and numbers (mean Dice, mean NormHD,
performance). Cells with fewer than 100 data sets of each distribution are left out.
"""

import argparse
import time
from collections import defaultdict

import numpy as np

from napari_mamamia.scoring.cohort.segmentation_cohort import bootstrap_segmentation
from napari_mamamia.scoring.statistics.bootstrap import IntervalMethod
from napari_mamamia.scoring.statistics.performance import SegmentationScores

SIZES = (30, 60, 100, 200, 306, 574)
SHARES = (0.01, 0.02, 0.04, 0.08, 0.15)
FAILURES = ((0, 0), (1, 1), (2, 4), (5, 9), (10, 10**6))
"""Smallest and largest number of observed failures of each column."""
N_EXACT = 1_000_000
"""Number of cases from which the true means are computed."""


def draw_latent(rng, n):
    """Return Dice and NormHD that follow one hidden quality of each case."""
    quality = rng.normal(0, 1, n)
    dice = 1 / (1 + np.exp(-(1.4 + 0.9 * quality)))
    return dice, np.minimum(np.exp(np.log(0.08) - 0.5 * quality + rng.normal(0, 0.6, n)), 1)


def draw_two_humps(rng, n):
    """Return Dice and NormHD of easy cases and, for a quarter, of difficult ones."""
    is_easy = rng.random(n) < 0.75
    dice = np.where(is_easy, rng.beta(12, 3, n), rng.beta(3, 5, n))
    return dice, np.where(is_easy, rng.beta(2, 20, n), rng.beta(6, 8, n))


def draw_heavy_tail(rng, n):
    """Return skewed Dice, and NormHD with a long tail up to 1."""
    return rng.beta(6, 1.6, n), np.minimum(np.exp(rng.normal(np.log(0.05), 1.2, n)), 1)


def draw_scores(draw, rng, n, share):
    """Return Dice and NormHD of n cases, of which about a share failed, and the failures."""
    dice, norm_hd = draw(rng, n)
    failed = rng.random(n) < share
    return np.where(failed, 0, dice), np.where(failed, 1, norm_hd), int(failed.sum())


def measure(draw, n, n_sets, held):
    """Add to `held[method, column, name]` whether each interval contains the true value."""
    ids = tuple(map(str, range(n)))
    for share in SHARES:
        dice, norm_hd, _ = draw_scores(draw, np.random.default_rng(0), N_EXACT, share)
        truth = {"mean_dsc": dice.mean(), "mean_norm_hd": norm_hd.mean()}
        truth["performance"] = (truth["mean_dsc"] + 1 - truth["mean_norm_hd"]) / 2
        rng = np.random.default_rng(1)
        for _ in range(n_sets):
            dice, norm_hd, n_failed = draw_scores(draw, rng, n, share)
            column = next(c for c in FAILURES if c[0] <= n_failed <= c[1])
            job = bootstrap_segmentation(SegmentationScores(ids, dice, norm_hd), (), 0.0)
            for method in IntervalMethod:
                for name, value in truth.items():
                    found = job.interval(name, method)
                    held[method, column, name].append(found.low <= value <= found.high)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=300, help="data sets for each setting")
    n_sets = parser.parse_args().sets
    started = time.process_time()
    heads = [f"{a}" if a == b else f"{a}+" if b > 999 else f"{a} to {b}" for a, b in FAILURES]
    print(f"{'n':>5} {'method':<12}" + "".join(f"{head:>16}" for head in heads))
    for n in SIZES:
        by_draw = []
        for draw in (draw_latent, draw_two_humps, draw_heavy_tail):
            held = defaultdict(list)
            measure(draw, n, n_sets, held)
            by_draw.append(held)
        for method in IntervalMethod:
            cells = []
            for column in FAILURES:
                shares = [
                    np.mean(held[method, column, name])
                    for held in by_draw
                    for name in ("mean_dsc", "mean_norm_hd", "performance")
                    if len(held[method, column, name]) >= 100
                ]
                cells.append(f"{min(shares):.3f} ({len(shares) // 3})" if shares else "–")
            print(f"{n:>5} {method:<12}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    print(f"{time.process_time() - started:.0f} s of CPU time")


if __name__ == "__main__":
    main()
