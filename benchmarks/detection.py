"""How long detection takes: boxes by the thousand, by each matching rule; processor time.

python benchmarks/detection.py [--cases 1000] [--boxes 100] [--resamples 1000]
"""

import argparse
import time

import numpy as np

from napari_mamamia.core.choices import LesionMatching
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    PredictedBoxes,
    box_overlaps,
)
from napari_mamamia.features.classifiers.scoring.detection.detection import score_detection
from napari_mamamia.features.classifiers.scoring.detection.matching import MatchingRule
from napari_mamamia.features.classifiers.scoring.detection.results import (
    DetectionInput,
    DetectionSettings,
)


def made_cases(n_cases: int, n_boxes: int) -> tuple[Lesions, PredictedBoxes]:
    """Return 0 to 3 lesions a case, and boxes of which some lie near one."""
    rng = np.random.default_rng(0)
    lesion_cases = np.repeat(np.arange(n_cases), rng.integers(0, 4, n_cases))
    starts = rng.uniform(0, 150, (lesion_cases.size, 3))
    sides = rng.uniform(5, 60, starts.shape)
    cases = np.repeat(np.arange(n_cases), n_boxes)
    box_starts, box_sides = (
        rng.uniform(0, 150, (cases.size, 3)),
        rng.uniform(5, 60, (cases.size, 3)),
    )
    near = np.flatnonzero(np.isin(cases, lesion_cases) & (rng.random(cases.size) < 0.3))
    of = np.searchsorted(lesion_cases, cases[near])
    box_starts[near] = starts[of] + rng.normal(0, 6, (near.size, 3))
    box_sides[near] = np.maximum(3, sides[of] + rng.normal(0, 6, (near.size, 3)))
    lesions = Lesions(lesion_cases, edges_of(starts, sides), np.full(lesion_cases.size, np.nan))
    scores = rng.random(cases.size)
    boxes = edges_of(box_starts, box_sides)
    return lesions, PredictedBoxes(cases, boxes, scores, np.full(cases.size, np.nan))


def edges_of(starts: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Return x1, x2, y1, y2, z1, z2 of boxes."""
    return np.stack([starts, starts + sides], axis=2).reshape(-1, 6)


def main() -> None:
    """Print one line for each rule."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--boxes", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    lesions, boxes = made_cases(given.cases, given.boxes)
    ids = tuple(f"C{k}" for k in range(given.cases))
    for matching in LesionMatching:
        start = time.process_time()
        data = DetectionInput(ids, lesions, boxes, box_overlaps(lesions, boxes))
        settings = DetectionSettings(MatchingRule(matching), n_resamples=given.resamples)
        score_detection(data, settings)
        seconds = time.process_time() - start
        print(f"{matching.value:<14} {boxes.cases.size:>8,} boxes: {seconds:6.1f} s")


if __name__ == "__main__":
    main()
