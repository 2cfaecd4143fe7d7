"""Processor time of classifiers: 100,000 rows scored, a stack, an audit, a split.

Usage::

    .venv/bin/python benchmarks/classifier.py            # the table
    .venv/bin/python benchmarks/classifier.py --check    # exit 1 where a limit is passed
"""

import argparse
import sys
import time

import numpy as np

from napari_mamamia.features.classifiers.scoring.audit import MetadataColumn, audit
from napari_mamamia.features.classifiers.scoring.split import PartShare, deal_patients
from napari_mamamia.features.classifiers.scoring.stacking import fit_stack
from napari_mamamia.scoring.classifier.operating import Units
from napari_mamamia.scoring.classifier.scores import ClassifierCases, score_classifiers

N = 100_000
LIMITS = {
    "two models and a reader, 100,000 rows": 60.0,
    "stack of 8 models, 2,000 rows": 60.0,
    "audit of 12 columns, 20,000 rows": 120.0,
    "split of 100,000 patients, 3 strata": 10.0,
}
"""Seconds of processor time."""


def scored(rng):
    label = (rng.random(N) < 0.011).astype(float)
    scores = rng.normal(size=(2, N)) + np.array([[1.0], [0.8]]) * label
    recall = (rng.random(N) < 0.1 + 0.7 * label).astype(float)
    ids = tuple(map(str, range(N)))
    women = Units(np.arange(N) // 2, ids[: N // 2])
    score_classifiers(
        ClassifierCases(ids, label, ("a", "b"), scores, recall=recall, clusters=women)
    )


def stacked(rng):
    label = (rng.random(2000) < 0.1).astype(float)
    columns = rng.normal(size=(2000, 8)) + label[:, None]
    names, ids = tuple("abcdefgh"), tuple(map(str, range(2000)))
    fit_stack(columns, label, names, Units(np.arange(2000), ids), label.tolist())


def audited(rng):
    n = 20_000
    label = (rng.random(n) < 0.1).astype(float)
    columns = [MetadataColumn(f"n{k}", rng.normal(size=n)) for k in range(6)]
    columns += [
        MetadataColumn(f"t{k}", None, tuple(rng.choice(list("abcde"), n))) for k in range(6)
    ]
    audit(columns, [("label", label)], Units(np.arange(n), tuple(map(str, range(n)))))


def dealt(rng):
    columns = {name: [str(one) for one in rng.integers(0, k, N)] for name, k in
               (("a", 3), ("b", 8), ("c", 20))}  # fmt: skip
    deal_patients(columns, [PartShare("x", 5), PartShare("y", 2), PartShare("z", 3)])


def main() -> None:
    """Print the table; with ``--check`` fail where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    passed = False
    for name, work in zip(LIMITS, (scored, stacked, audited, dealt), strict=True):
        begin = time.process_time()
        work(np.random.default_rng(0))
        seconds = time.process_time() - begin
        passed |= seconds > LIMITS[name]
        print(f"{name:<42} {seconds:7.1f} s (at most {LIMITS[name]:g})")
    if given.check and passed:
        sys.exit(1)


if __name__ == "__main__":
    main()
