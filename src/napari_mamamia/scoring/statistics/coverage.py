"""How often bootstrap intervals of means contained the true value in simulated data sets."""

from bisect import bisect_right
from typing import Final

import numpy as np

from napari_mamamia.core.names import count_of

SUFFICIENT: Final = 0.93
"""Coverage of a 95 % interval from which no note is given."""

_SIZES: Final = (30, 60, 100, 200, 306, 574)
_FAILURES: Final = (0, 1, 2, 5, 10)
"""Smallest number of failures (Dice 0) of each column."""
_PERCENTILE: Final = (
)
"""Lowest coverage of percentile intervals (row: number of cases), nan where it was not simulated.

Source: `benchmarks/mean_coverage.py`, over three distributions and three numbers.
"""
_BCA: Final = (
)
"""The same of BCa intervals."""


def describe_coverage(n_cases: int, n_failures: int) -> tuple[str, ...]:
    """Return a note if 95 % intervals of means have a low coverage for such cases, otherwise ()."""
    if n_cases < _SIZES[0]:
        return (f"Coverage of intervals is not known for fewer than {_SIZES[0]} cases.",)
    row = bisect_right(_SIZES, n_cases) - 1
    column = bisect_right(_FAILURES, n_failures) - 1
    percentile, bca = _PERCENTILE[row][column], _BCA[row][column]
    if np.isnan(percentile) or percentile >= SUFFICIENT:
        return ()
    return (
        f"In simulated data sets of {_SIZES[row]} cases with {count_of(_FAILURES[column], 'failure')} "
        f"(Dice 0), 95 % intervals of means contained the true value in {percentile:.0%} (percentile) and {bca:.0%} (BCa).",
    )
