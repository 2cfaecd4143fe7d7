"""Resamples of cases as weights, which count how often each case is drawn."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

N_RESAMPLES: Final = 1000
SEED: Final = 42
"""Default seed of resamples. Source: arXiv 2603.01250v2, intervals."""

_BLOCK: Final = 1 << 17
"""Number of indices that are stored at a time (1 MB), so that they fit into the cache.

Thus memory use does not grow with the number of resamples.
"""

_ROWS: Final = 60
_WEIGHTS: Final = 1 << 24
"""Largest number of weights that are stored at a time (16 MB)."""


def draw_cases(
    n_cases: int, n_resamples: int = N_RESAMPLES, seed: int = SEED
) -> Iterator[NDArray[np.int64]]:
    """Return an iterator over the drawn cases of each resample, in blocks of rows (b, n).

    Resample k is row k of `numpy.random.default_rng(seed).integers(0, n, (n_resamples, n))`,
    regardless of the block size, so calls with the same number of cases and seed draw the same
    cases.

    Raises
    ------
    ValueError
        If there is no case or no resample. The error is raised by the call, not by the iterator.
    """
    if n_cases < 1 or n_resamples < 1:
        raise ValueError(
            f"expected at least one case and one resample, but found {n_cases} cases and "
            f"{n_resamples} resamples"
        )
    rng = np.random.default_rng(seed)
    blocks = row_blocks(n_resamples, n_cases)
    return (rng.integers(0, n_cases, size=(n_rows, n_cases)) for n_rows in blocks)


def count_in_rows(places: NDArray[np.int64], n_places: int) -> NDArray[np.int64]:
    """Return the counts (b, m) of the numbers 0 to `n_places` - 1 in each row of `places`."""
    n_rows = len(places)
    if n_rows > 1:
        places = places + np.arange(n_rows)[:, None] * n_places
    counts = np.bincount(places.ravel(), minlength=n_rows * n_places)
    return counts.reshape(n_rows, n_places)


def weigh_cases(
    resamples: Iterable[NDArray[np.int64]], n_cases: int
) -> Iterator[NDArray[np.uint8]]:
    """Yield how often each case occurs in each resample of `draw_cases`, in blocks (b, n).

    Blocks have up to `_ROWS` resamples, so that a matrix product reads the cases' values once for
    the whole block. uint8 is sufficient, because drawing a case 256 times has a probability below
    1e-500.
    """
    held: list[NDArray[np.uint8]] = []
    rows = min(_ROWS, max(1, _WEIGHTS // n_cases))
    for drawn in resamples:
        held.append(count_in_rows(drawn, n_cases).astype(np.uint8))
        if sum(map(len, held)) >= rows:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def row_blocks(n_rows: int, row_length: int) -> Iterator[int]:
    """Yield block sizes that sum to `n_rows`, each small enough for memory."""
    step = max(1, _BLOCK // max(1, row_length))
    for first in range(0, n_rows, step):
        yield min(step, n_rows - first)
