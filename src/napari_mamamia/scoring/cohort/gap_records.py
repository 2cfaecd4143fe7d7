"""Records of gaps between groups: their size, the gap expected by chance, and their intervals."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.scoring.statistics.contrasts import LEVEL

MINIMUM_GROUP: Final = 5
"""Default size of the smallest group in intervals, tests and sentences.

With three cases of a number from 0 to 1, the mean is uncertain by 0.78 in both directions.
"""

WIDE_BELOW: Final = 10
"""Group size below which a group makes an interval wide and is named next to it."""

_DIFFERENT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SmallGroup:
    """A small group: `n` cases with a value, or with the class `of` if the number is a rate."""

    variable: str
    group: str
    n: int
    of: str = "cases"

    @property
    def said(self) -> str:
        """The number of cases, as part of a sentence."""
        if self.of == "cases":
            return f"n = {self.n}"
        return f"{self.n} {self.of.removesuffix('s') if self.n == 1 else self.of}"


@dataclass(frozen=True, slots=True)
class GapInterval:
    """An interval at `level` from contrasts of groups; both ends are nan if it is undefined.

    `left_out` holds groups under the minimum size, which the interval does not cover. The groups in
    `wide_because` have few cases and make it wide. `without` names the variables that the interval
    of a mean does not cover.
    """

    low: float
    high: float
    level: float = LEVEL
    left_out: tuple[SmallGroup, ...] = ()
    wide_because: SmallGroup | None = None
    without: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_defined(self) -> bool:
        """Whether the interval is defined."""
        return not np.isnan(self.low)


NO_INTERVAL: Final = GapInterval(
    float("nan"), float("nan"), reason="no scored case belongs to a group"
)


@dataclass(frozen=True, slots=True)
class DisparityEstimate:
    """A disparity, its expectation by chance, the excess over chance, and its interval.

    `value` is the scored disparity, over all groups. `counted` is the disparity over the groups of
    the minimum size and more; interval, chance and sentences refer to these groups. `by_chance` is
    the mean gap of such groups if they do not differ, `beyond_chance` is sqrt(max(0, counted^2 -
    by_chance^2)).
    """

    variable: str
    measure: str
    value: float
    counted: float
    by_chance: float
    beyond_chance: float
    interval: GapInterval

    @property
    def is_of_all(self) -> bool:
        """Whether the counted groups are all groups, so that they give the scored value."""
        return abs(self.value - self.counted) < _DIFFERENT


@dataclass(frozen=True, slots=True)
class GroupUncertainty:
    """The uncertainty of all numbers that depend on groups.

    `by_variable` holds the intervals of the fairness over one variable (Task 1) or of its
    equalised-odds disparity (Task 2), in the order of the groupings. If ranked numbers count cases
    without a usable prediction they have no interval; `fairness_of_scored` is then the interval
    over the scored cases alone.
    """

    minimum_group: int
    disparities: tuple[DisparityEstimate, ...]
    by_variable: tuple[GapInterval, ...]
    mean_disparity: GapInterval
    fairness: GapInterval
    ranking_score: GapInterval
    fairness_of_scored: GapInterval | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of the groupings."""
        return tuple(dict.fromkeys(disparity.variable for disparity in self.disparities))

    def by_name(self, prefix: str) -> dict[str, GapInterval]:
        """Return the intervals by the name of the number (``PREFIXvariable`` for a variable)."""
        by_variable = {
            f"{prefix}{variable}": interval
            for variable, interval in zip(self.variables, self.by_variable, strict=True)
        }
        return by_variable | {
            "fairness": self.fairness,
            "disparity": self.mean_disparity,
            "ranking_score": self.ranking_score,
        }

    def of(self, variable: str, measure: str) -> DisparityEstimate:
        """Return the estimate of one disparity, undefined without groups."""
        nan = float("nan")
        none = DisparityEstimate(variable, measure, nan, nan, nan, nan, NO_INTERVAL)
        named = (d for d in self.disparities if (d.variable, d.measure) == (variable, measure))
        return next(named, none)


def is_of_groups(name: str) -> bool:
    """Return whether a resampled number contains gaps between groups, so that it is not smooth."""
    return name.startswith(("fairness", "disparity", "ranking_score"))
