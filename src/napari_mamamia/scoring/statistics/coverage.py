"""How often bootstrap intervals of means contain the true value in simulated data sets."""

from bisect import bisect_right
from typing import Final

import numpy as np

from napari_mamamia.core.names import count_of

SUFFICIENT: Final = 0.93
"""Coverage of a 95 % interval below which a note is given."""

_SIZES: Final = (30, 60, 100, 200, 306, 574)
_FAILURES: Final = (0, 1, 2, 5, 10)
"""Smallest number of failures (cases with a Dice of 0) for each column."""
_PERCENTILE: Final = (
    (0.670, 0.937, 0.964, 0.941, np.nan),
    (0.710, 0.921, 0.935, 0.965, 0.914),
    (0.712, 0.911, 0.937, 0.929, 0.945),
    (0.660, 0.840, 0.929, 0.944, 0.937),
    (0.718, 0.829, 0.933, 0.935, 0.937),
    (np.nan, np.nan, 0.873, 0.941, 0.937),
)
"""Lowest coverage of percentile intervals, or nan where it was not simulated.

Each row is a number of cases. Source: `benchmarks/mean_coverage.py` and
`benchmarks/unseen_coverage.py`, over six distributions and three metrics. Entries with more
failures than the largest simulated fraction predicts are left out.
"""
_BCA: Final = (
    (0.725, 0.953, 0.961, 0.923, np.nan),
    (0.772, 0.945, 0.931, 0.962, 0.904),
    (0.747, 0.940, 0.944, 0.940, 0.942),
    (0.705, 0.891, 0.939, 0.945, 0.939),
    (0.755, 0.868, 0.939, 0.938, 0.936),
    (np.nan, np.nan, 0.899, 0.939, 0.937),
)
"""Lowest coverage of BCa intervals, in the same form as for percentile intervals."""


def describe_coverage(n_cases: int, n_failures: int) -> tuple[str, ...]:
    """Return a note if 95 % intervals of means have a low or unknown coverage, otherwise ().

    `n_failures` is the number of cases with a Dice of 0.

    Examples
    --------
    >>> describe_coverage(306, 12)
    ()
    """
    row = bisect_right(_SIZES, n_cases) - 1
    column = bisect_right(_FAILURES, n_failures) - 1
    percentile, bca = (
        (table[row][column] if row >= 0 else np.nan) for table in (_PERCENTILE, _BCA)
    )
    if percentile >= SUFFICIENT:
        return ()
    cases = f"{count_of(n_cases, 'case')} with {count_of(n_failures, 'failure')} (Dice 0)"
    if np.isnan(percentile):
        return (f"The coverage of 95 % intervals of means is not known for {cases}.",)
    return (
        f"In simulated data sets like this one ({cases}), 95 % intervals of means contained the "
        f"true value in {percentile:.0%} (percentile) and {bca:.0%} (BCa).",
    )
