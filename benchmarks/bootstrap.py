"""Bootstrap of cohort numbers against plain loops; ``--check`` exits 1 below a limit.

Run: python benchmarks/bootstrap.py [--check] [--rounds N]
Tasks 1 and 2, 1000 x 574: a pandas loop resamples the rows of a table and works out the same
numbers group by group; one round times some of its resamples and scales them to 1000. "sums",
1000 x 100,000 x 52: a loop counts one resample's cases and multiplies. "pCR", 10,000 cases: AUC and
average precision of 1000 resamples and without each case, of weights sorted anew, as it was done
before; times of these two are the processor's. Ours and the loop take turns in one process;
printed are medians over the rounds. The loop's numbers must equal ours, resample by resample.
Without a limit: the pCR numbers of 100,000 cases.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases, rules_of
from napari_mamamia.scoring.cohort.response_cohort import (
    ResponsePredictions,
    bootstrap_discrimination,
    bootstrap_response,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import bootstrap_segmentation
from napari_mamamia.scoring.statistics.bootstrap import Bootstrap, bootstrap_sums
from napari_mamamia.scoring.statistics.performance import SegmentationScores, ratio

N_CASES = 574
N_RESAMPLES = 1000
LOOPED = 10
"""Resamples of the pandas loop that one round times."""
LIMITS = {"task 1": 50.0, "task 2": 500.0, "sums": 5.0, "pCR": 8.0}
MANY = 100_000
N_SUMS = 52
N_PCR = 10_000
RULES = rules_of("clinical")


def make_cohort(rng: np.random.Generator) -> Cohort:
    statuses = tuple(MenopausalStatus)
    return Cohort(
        tuple(
            CaseRecord(
                f"C{number}",
                age=float(rng.integers(25, 85)),
                menopausal_status=statuses[rng.integers(3)],
                breast_density="abcd"[rng.integers(4)],
                pcr=bool(rng.random() < 0.3),
            )
            for number in range(N_CASES)
        )
    )


def table_of(groupings: tuple[Grouping, ...], **columns: np.ndarray) -> pd.DataFrame:
    groups = {g.variable: np.array(g.labels)[g.codes] for g in groupings}
    return pd.DataFrame({**groups, **columns})


def loop_task1(table: pd.DataFrame, draws: np.ndarray, variables: list[str]) -> np.ndarray:
    found = []
    for chosen in draws:
        own = table.iloc[chosen]
        performance = (own["dsc"].mean() + 1 - own["norm_hd"].mean()) / 2
        fairness = []
        for variable in variables:
            means = [
                (group["dsc"].mean(), group["norm_hd"].mean()) for _, group in own.groupby(variable)
            ]
            gaps = [max(column) - min(column) for column in zip(*means, strict=True)]
            fairness.append(1 - sum(gaps) / 2)
        found.append((performance + sum(fairness) / len(fairness)) / 2)
    return np.array(found)


def rates(own: pd.DataFrame) -> tuple[float, float]:
    label, said = own["label"], own["predicted"]
    hits, misses = ((label == 1) & (said == 1)).sum(), ((label == 1) & (said == 0)).sum()
    alarms, rest = ((label == 0) & (said == 1)).sum(), ((label == 0) & (said == 0)).sum()
    return hits / (hits + misses), alarms / (alarms + rest)


def loop_task2(table: pd.DataFrame, draws: np.ndarray, variables: list[str]) -> np.ndarray:
    found = []
    for chosen in draws:
        own = table.iloc[chosen]
        tpr, fpr = rates(own)
        disparities = []
        for variable in variables:
            both = [rates(group) for _, group in own.groupby(variable)]
            disparities.append(sum(max(c) - min(c) for c in zip(*both, strict=True)))
        fairness = 1 - min(sum(disparities) / len(disparities), 1)
        found.append(((tpr + 1 - fpr) / 2 + fairness) / 2)
    return np.array(found)


def ranking_scores(found: Bootstrap) -> np.ndarray:
    return found.replicates[:, found.names.index("ranking_score")]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    name: str,
    ours: Callable[[], np.ndarray],
    loop: Callable[[np.ndarray], np.ndarray],
    rounds: int,
) -> bool:
    draws = np.random.default_rng(42).integers(0, N_CASES, (N_RESAMPLES, N_CASES))[:LOOPED]
    difference = float(np.abs(ours()[:LOOPED] - loop(draws)).max())
    pairs = [(seconds(ours), seconds(lambda: loop(draws))) for _ in range(rounds)]
    fast = statistics.median(pair[0] for pair in pairs)
    slow = statistics.median(pair[1] for pair in pairs) * N_RESAMPLES / LOOPED
    factor = statistics.median(b * N_RESAMPLES / LOOPED / a for a, b in pairs)
    print(
        f"{name}: {fast * 1000:.1f} ms, pandas loop {slow:.2f} s, {factor:.0f} x "
        f"(limit {LIMITS[name]:.0f} x), largest difference {difference:.1e}"
    )
    return factor >= LIMITS[name] and difference < 1e-12


def compare_sums(rounds: int) -> bool:
    """Take sums of many cases: ours in tiles of all resamples, the loop one by one."""
    parts = np.random.default_rng(0).random((MANY, N_SUMS))
    names = tuple(map(str, range(N_SUMS)))

    def loop() -> np.ndarray:
        rng = np.random.default_rng(42)
        draws = (rng.integers(0, MANY, MANY) for _ in range(LOOPED))
        return np.array([np.bincount(own, minlength=MANY).astype(float) @ parts for own in draws])

    def ours() -> np.ndarray:
        return bootstrap_sums(names, parts, lambda sums: sums).replicates

    scale = N_RESAMPLES / LOOPED
    return compare_times("sums", ours, loop, scale, rounds, lambda found: found[:LOOPED] / MANY)


def weighted_numbers(weights: np.ndarray, label: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return AUC and average precision of rows of weights (b, n), by order of score."""
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-np.inf))
    weights, label = weights[:, order], label[order]
    yes, no = (
        np.add.reduceat(weights * (label == kind), starts, axis=1)[:, ::-1] for kind in (1, 0)
    )
    n_yes, n_no = yes.sum(axis=1), no.sum(axis=1)
    hits, alarms = np.cumsum(yes, axis=1), np.cumsum(no, axis=1)
    area = (yes * (n_no[:, None] - alarms + no / 2)).sum(axis=1)
    precision = np.nan_to_num(ratio(hits, hits + alarms))
    both = ratio(area, n_yes * n_no), ratio((yes * precision).sum(axis=1), n_yes)
    return np.stack(both, axis=1)


def pcr_cases(n: int) -> ResponsePredictions:
    rng = np.random.default_rng(3)
    score, label = np.round(rng.random(n), 4), (rng.random(n) < 0.3).astype(float)
    cohort = Cohort(tuple(CaseRecord(f"C{k}", pcr=bool(own)) for k, own in enumerate(label)))
    rows = [(f"C{k}", float(own > 0.5), float(own)) for k, own in enumerate(score)]
    return ResponsePredictions.of(rows, cohort)


def compare_pcr(rounds: int) -> bool:
    """Take both of 1000 resamples and without each case; the loop of blocks of weights."""
    cases = pcr_cases(N_PCR)
    label, score, step = cases.label, cases.score, 32

    def loop() -> np.ndarray:
        rng, found = np.random.default_rng(42), []
        for first in range(0, N_RESAMPLES, step):
            draws = rng.integers(0, N_PCR, (min(step, N_RESAMPLES - first), N_PCR))
            weights = np.array([np.bincount(own, minlength=N_PCR) for own in draws], dtype=float)
            found.append(weighted_numbers(weights, label, score))
        for first in range(0, N_PCR, step):
            weights = 1.0 - np.eye(min(step, N_PCR - first), N_PCR, first)
            found.append(weighted_numbers(weights, label, score))
        return np.concatenate(found)

    def ours() -> np.ndarray:
        found = bootstrap_discrimination(cases)
        return np.concatenate([found.replicates, found.leave_one_out])

    return compare_times("pCR", ours, loop, 1, rounds, lambda found: found)


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def compare_times(
    name: str,
    ours: Callable[[], np.ndarray],
    loop: Callable[[], np.ndarray],
    scale: float,
    rounds: int,
    chosen: Callable[[np.ndarray], np.ndarray],
) -> bool:
    difference = float(np.abs(chosen(ours()) - chosen(loop())).max())
    pairs = [(cpu_seconds(ours), cpu_seconds(loop) * scale) for _ in range(rounds)]
    fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
    factor = statistics.median(b / a for a, b in pairs)
    print(
        f"{name}: {fast:.3f} s, loop {slow:.2f} s, {factor:.1f} x (limit {LIMITS[name]:.0f} x), "
        f"largest difference {difference:.1e}"
    )
    return factor >= LIMITS[name] and difference < 1e-12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 below a limit")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    cohort = make_cohort(rng)
    ids = tuple(record.case_id for record in cohort.records)
    groupings = group_cases(ids, cohort, RULES)
    variables = [grouping.variable for grouping in groupings]
    scores = SegmentationScores(ids, rng.random(N_CASES), rng.random(N_CASES))
    rows = zip(ids, rng.integers(0, 2, N_CASES), rng.random(N_CASES), strict=True)
    predictions = ResponsePredictions.of(rows, cohort)
    table1 = table_of(groupings, dsc=scores.dsc, norm_hd=scores.norm_hd)
    table2 = table_of(groupings, label=predictions.label, predicted=predictions.predicted)
    good = [
        compare(
            "task 1",
            lambda: ranking_scores(bootstrap_segmentation(scores, groupings, 0.5)),
            lambda draws: loop_task1(table1, draws, variables),
            options.rounds,
        ),
        compare(
            "task 2",
            lambda: ranking_scores(bootstrap_response(predictions, groupings, RULES, 0.5)),
            lambda draws: loop_task2(table2, draws, variables),
            options.rounds,
        ),
        compare_sums(min(options.rounds, 3)),
        compare_pcr(min(options.rounds, 3)),
    ]
    many = pcr_cases(MANY)
    print(f"pCR of {MANY:,}: {cpu_seconds(lambda: bootstrap_discrimination(many)):.2f} s")
    return int(options.check and not all(good))


if __name__ == "__main__":
    raise SystemExit(main())
