"""What the stop rule of quality control misses, and how much reading it costs, in made worlds.

Usage::

    .venv/bin/python benchmarks/quality_queue.py [--worlds 200]

In each world some references are wrong; a wrong one has a lower Dice with the model, by how much is
drawn (gamma, shape 2); the Dice of the others is drawn from a beta distribution (8, 2). A reader
goes through the random part, then by disagreement until 5 % of the cases in a row are fine, then
reads what `follow_capture` lists until it allows to stop. Beside it the rule of thumb that stops
where the listing begins.
"""

import argparse

import numpy as np

from napari_mamamia.features.review.core.quality import QualityCase, Queue
from napari_mamamia.features.review.rules.quality import estimate_rate, follow_capture, order_queue

WORLDS = (
    (300, 0.10, 0.2, 0.95),
    (300, 0.10, 0.2, 0.80),
    (1500, 0.10, 0.2, 0.95),
    (1500, 0.10, 0.2, 0.80),
    (1500, 0.05, 0.2, 0.95),
    (1500, 0.10, 0.05, 0.80),
    (1500, 0.10, 0.0, 0.80),
)
QUIET = 0.05


def read_to_the_end(
    queue: Queue, is_error: dict[str, bool], target: float
) -> tuple[dict[str, bool], dict[str, bool]]:
    """Return what was read where a rule of thumb stops, and where the rule does."""
    read: dict[str, bool] = {}
    run = 0
    for place in queue.places:
        read[place.case_id] = is_error[place.case_id]
        run = 0 if is_error[place.case_id] or place.is_random else run + 1
        if run >= QUIET * len(queue.places):
            break
    early = dict(read)
    while not (capture := follow_capture(queue, read, target)).may_stop:
        read |= {one: is_error[one] for one in capture.to_read}
    return early, read


def simulate(n: int, rate: float, fall: float, target: float, n_worlds: int) -> str:
    """Return a row of the table."""
    rows = []
    for seed in range(n_worlds):
        rng = np.random.default_rng(seed)
        wrong = rng.random(n) < rate
        dice = np.maximum(rng.beta(8, 2, n) - wrong * rng.gamma(2, fall or 1e-9, n), 0)
        cases = [QualityCase(f"C{k}", float(one)) for k, one in enumerate(dice)]
        is_error = {one.case_id: bool(bad) for one, bad in zip(cases, wrong, strict=True)}
        queue = order_queue(cases, seed)
        early, read = read_to_the_end(queue, is_error, target)
        drawn = [is_error[one.case_id] for one in queue.places if one.is_random]
        told = estimate_rate(n, len(drawn), sum(drawn))
        covers = told.low <= wrong.mean() <= told.high
        shares = [sum(one.values()) / wrong.sum() for one in (early, read)]
        rows.append((*shares, len(early) / n, len(read) / n, covers))
    table = np.array(rows)
    below = (table[:, :2] < target - 1e-9).mean(axis=0)
    cells = (
        f"{n:,}",
        f"{rate:.0%}",
        f"{2 * fall:.2f}",
        f"{target:.0%}",
        f"{table[:, 3].mean():.0%}",
        f"{below[1]:.1%}",
        f"{table[:, 1].mean():.1%} ({table[:, 1].min():.1%})",
        f"{table[:, 2].mean():.0%}",
        f"{below[0]:.1%}",
        f"{table[:, 4].mean():.1%}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=200)
    n_worlds = parser.parse_args().worlds
    print(
        "| cases | wrong | lower Dice by | target | read | target missed | found (least) | "
        "rule of thumb: read | missed | interval holds |"
    )
    print("|" + "---|" * 10)
    for world in WORLDS:
        print(simulate(*world, n_worlds), flush=True)


if __name__ == "__main__":
    main()
