"""What is known of gaps between groups: their size, what chance gives, how sure they are."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from napari_mamamia.scoring.statistics.contrasts import LEVEL

MINIMUM_GROUP: Final = 5
"""Groups with fewer cases are left out of intervals, tests and sentences: three cases of a number
from 0 to 1 leave its mean open by 0.78 to both sides."""

WIDE_BELOW: Final = 10
"""A group with fewer cases than this makes an interval wide, and is named."""

_DIFFERENT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SmallGroup:
    """A group of few cases: `n` with a value or, of a rate, of its class, which `of` names."""

    variable: str
    group: str
    n: int
    of: str = "cases"

    @property
    def said(self) -> str:
        """How many, for a sentence."""
        if self.of == "cases":
            return f"n = {self.n}"
        return f"{self.n} {self.of.removesuffix('s') if self.n == 1 else self.of}"


@dataclass(frozen=True, slots=True)
class GapInterval:
    """An interval at `level` from the contrasts of groups; both ends nan with the `reason`.

    `left_out` are groups under the minimum size, which the interval does not speak of. A group of
    `wide_because` has few cases and makes it wide. `without` names the variables of a mean that it
    does not speak of at all.
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
        """Whether there is an interval."""
        return not np.isnan(self.low)


NO_INTERVAL: Final = GapInterval(
    float("nan"), float("nan"), reason="no case with a group was scored"
)


@dataclass(frozen=True, slots=True)
class DisparityEstimate:
    """A disparity, what chance gives, what is left without that, and how sure it is.

    `value` is the scored one, over all groups; `counted` is over the groups that interval, chance
    and sentences speak of, those of the minimum size and more. `by_chance` is the mean gap of such
    groups that do not differ, `beyond_chance` sqrt(max(0, counted^2 - by_chance^2)).
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
        """Whether the groups counted here give the scored value."""
        return abs(self.value - self.counted) < _DIFFERENT


@dataclass(frozen=True, slots=True)
class GroupUncertainty:
    """How sure everything is that groups enter.

    `by_variable` are the intervals of the fairness over one variable (Task 1) or of its
    equalised-odds disparity (Task 2), in the order of the groupings. Where ranked numbers count
    cases without a usable prediction they have no interval, and `fairness_of_scored` is that of the
    scored cases alone.
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
        """Return the intervals by the name of the number; of a variable ``PREFIXvariable``."""
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
        """Return one disparity's estimate, undefined where there are no groups."""
        nan = float("nan")
        none = DisparityEstimate(variable, measure, nan, nan, nan, nan, NO_INTERVAL)
        named = (d for d in self.disparities if (d.variable, d.measure) == (variable, measure))
        return next(named, none)


def is_of_groups(name: str) -> bool:
    """Whether gaps between groups enter a resampled number: it is no smooth one then."""
    return name.startswith(("fairness", "disparity", "ranking_score"))
