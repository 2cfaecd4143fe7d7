"""Ranking of 50 teams on 1,000 cases with 1,000 resamples; ``--check`` exits 1 above a limit.

Run: python benchmarks/rank.py [--check]
Processor time of one ranking by each method by itself, with its stability and the significance map;
"all but the tests" are those of every method but test-then-rank together, "tests" is that one. The
ranks of 20 resamples are worked out anew by pandas from the copied rows, and must be equal.
"""

import argparse
import sys
import time

import numpy as np
import pandas as pd

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.scoring.ranking.ranking import rank_table
from napari_mamamia.scoring.ranking.table import VALUE_METHODS, RankingTable, RankSettings

TEAMS, CASES, RESAMPLES, SEED = 50, 1000, 1000, 42
LIMITS = {"all but the tests": 60.0, "tests": 180.0}
"""Seconds of processor time."""


def made_table() -> RankingTable:
    rng = np.random.default_rng(0)
    hard = rng.beta(6, 2, (CASES, 1))
    skill = np.linspace(-0.05, 0.05, TEAMS)
    values = np.clip(hard + skill + rng.normal(0, 0.05, (CASES, TEAMS)), 0, 1).round(4)
    teams = tuple(f"team {k}" for k in range(TEAMS))
    return RankingTable(teams, tuple(f"case {k}" for k in range(CASES)), values)


def slow_ranks(method: RankMethod, frame: pd.DataFrame) -> np.ndarray:
    places = frame.rank(axis=1, method="min", ascending=False)
    scores = {
        RankMethod.MEAN: frame.mean(),
        RankMethod.MEDIAN: frame.median(),
        RankMethod.Q05: frame.quantile(0.05),
        RankMethod.RANK_MEAN: -places.mean(),
        RankMethod.RANK_MEDIAN: -places.median(),
    }[method]
    return scores.round(10).rank(method="min", ascending=False).to_numpy()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    table = made_table()
    frame = pd.DataFrame(table.values)
    draws = np.random.default_rng(SEED).integers(0, CASES, (RESAMPLES, CASES))
    spent = {}
    for method in VALUE_METHODS:
        before = time.process_time()
        result = rank_table(table, RankSettings(methods=(method,), seed=SEED))
        spent[method] = time.process_time() - before
        print(f"{method:<18} {spent[method]:6.2f} s")
        if method is not RankMethod.TEST:
            ranks = result.by(method).stability.ranks
            for k in range(20):
                np.testing.assert_array_equal(ranks[k], slow_ranks(method, frame.iloc[draws[k]]))
    tests = spent.pop(RankMethod.TEST)
    found = {"all but the tests": sum(spent.values()), "tests": tests}
    failed = [name for name, limit in LIMITS.items() if found[name] > limit]
    for name, limit in LIMITS.items():
        print(f"{name:<18} {found[name]:6.2f} s  (at most {limit:g})")
    return int(given.check and bool(failed))


if __name__ == "__main__":
    sys.exit(main())
