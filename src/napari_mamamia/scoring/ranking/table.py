"""The input of a ranking: values by case and algorithm, and rules for ties and missing values."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import (
    Correction,
    MissingKind,
    RankMethod,
    RankResampling,
    RankTies,
)
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.names import name_some
from napari_mamamia.metrics.registry import Better, list_metrics
from napari_mamamia.scoring.statistics.resampling import N_RESAMPLES, SEED

ALPHA: Final = 0.05
"""Significance level of a test. Source: challengeR's default."""

VALUE_METHODS: Final = tuple(one for one in RankMethod if one is not RankMethod.COMPOSITE)
"""Methods that need no input besides the table."""


_LOWER: Final = frozenset(
    ("assd", "asd", "masd", "msd", "hd", "hd95", "hausdorff", "hausdorff95", "normhd", "nhd",
     "distance", "brier", "ece", "mae", "mse", "rmse", "error", "loss", "fnr", "fpr")
)  # fmt: skip
"""Words in a metric's name that mean smaller values are better."""


@dataclass(frozen=True, slots=True)
class MissingRule:
    """The treatment of a missing value; `value` is used for `MissingKind.VALUE`."""

    kind: MissingKind
    value: float = math.nan

    @classmethod
    def of_text(cls, text: str) -> "MissingRule":
        """Return the rule with the name `text`.

        Raises
        ------
        ValueError
            If there is no rule with this name.

        Examples
        --------
        >>> MissingRule.of_text("value:0").value
        0.0
        """
        name, has_value, number = text.strip().partition(":")
        try:
            if has_value and name == MissingKind.VALUE and math.isfinite(float(number)):
                return cls(MissingKind.VALUE, float(number))
            if not has_value and name != MissingKind.VALUE:
                return cls(MissingKind(name))
        except ValueError:
            pass
        names = ", ".join(kind for kind in MissingKind if kind is not MissingKind.VALUE)
        raise ValueError(f"expected value:X with a number X, or one of {names}, but found {text!r}")

    @property
    def text(self) -> str:
        """The rule in the form that users enter."""
        return f"value:{self.value:g}" if self.kind is MissingKind.VALUE else self.kind.value


@dataclass(frozen=True, slots=True, eq=False)
class RankingTable:
    """A table of values (n, m) float64 for n cases and m algorithms, with nan for missing values.

    `task`, `metric` and `site` are "" if there is only one. `given` (n, m) bool is true for values
    from the algorithm itself and false for values that a rule filled in before ranking. By default,
    all values that are not missing come from the algorithm.

    Raises
    ------
    ValueError
        If a name occurs twice, sizes do not fit, a value is infinite, or an axis is empty.
    """

    algorithms: tuple[str, ...]
    cases: tuple[str, ...]
    values: NDArray[np.float64]
    is_larger_better: bool = True
    task: str = ""
    metric: str = ""
    site: str = ""
    given: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(self.cases), len(self.algorithms)) or not values.size:
            raise ValueError(
                f"expected {len(self.cases)} by {len(self.algorithms)} values (cases, "
                f"algorithms), but found an array of shape {values.shape}"
            )
        for names, kind in ((self.algorithms, "algorithm"), (self.cases, "case")):
            name, count = Counter(names).most_common(1)[0]
            if count > 1:
                raise ValueError(
                    f"expected each {kind} only once, but found {name!r} {count} times"
                )
        if np.isinf(values).any():
            case, algorithm = np.argwhere(np.isinf(values))[0]
            raise ValueError(
                f"expected finite values, but found an infinite value for case {self.cases[case]} "
                f"of {self.algorithms[algorithm]}; mark the value as missing, or enter a number"
            )
        if self.given is not None and self.given.shape != values.shape:
            raise ValueError(
                f"expected `given` of shape {values.shape}, one for each value, but found "
                f"{self.given.shape}"
            )
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def stand_ins(self) -> NDArray[np.bool_]:
        """Return an array (n, m) that is true for values that a rule filled in before ranking."""
        there = ~np.isnan(self.values)
        return np.zeros_like(there) if self.given is None else there & ~self.given

    @property
    def n_missing(self) -> NDArray[np.int64]:
        """Return the number of missing values of each algorithm, (m,)."""
        counts: NDArray[np.int64] = np.isnan(self.values).sum(axis=0)
        return counts

    @property
    def name(self) -> str:
        """The known ones of task, metric and site, such as "dsc at DUKE"; "" if none is known."""
        before = " ".join(name for name in (self.task, self.metric) if name)
        return f"{before} at {self.site}".strip() if self.site else before

    @property
    def phrase(self) -> str:
        """The name as part of a sentence, such as " by dsc at DUKE" or " at DUKE"."""
        is_place = bool(self.site) and not self.task and not self.metric
        return f" {'' if is_place else 'by '}{self.name}" if self.name else ""


@dataclass(frozen=True, slots=True)
class RankSettings:
    """The settings that affect ranks.

    If `missing` is None, no value may be missing. With `is_exact`, values that agree to 10 decimals
    differ if their floats differ. With `covering`, rank intervals with guaranteed coverage are also
    computed. Without resamples, there is no stability.
    """

    methods: tuple[RankMethod, ...] = VALUE_METHODS
    ties: RankTies = RankTies.MIN
    missing: MissingRule | None = None
    is_exact: bool = False
    correction: Correction = Correction.NONE
    alpha: float = ALPHA
    n_resamples: int = N_RESAMPLES
    seed: int = SEED
    resampling: RankResampling = RankResampling.CASES
    covering: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Merits:
    """A table prepared for ranking: no value is missing, and larger values are better.

    `values` (n, m) are -inf for values that a rule makes worse than all others. `kept` (n,) are the
    indices of the cases in the table, and `filled` (m,) is the number of values that a rule filled
    in for each algorithm.
    """

    values: NDArray[np.float64]
    kept: NDArray[np.intp]
    filled: NDArray[np.int64]
    sign: float
    is_exact: bool

    @property
    def compared(self) -> NDArray[np.float64]:
        """Return the values to compare, rounded unless `is_exact`."""
        return comparable(self.values, self.is_exact)


def comparable(values: NDArray[np.float64], is_exact: bool) -> NDArray[np.float64]:
    """Return values rounded to 10 decimals, to remove rounding errors between equal values.

    Examples
    --------
    >>> bool(np.ptp(comparable(np.array([0.3, 0.1 + 0.2]), is_exact=False)))
    False
    """
    return values if is_exact else np.round(values, 10)


def is_larger_better(metric: str) -> bool | None:
    """Infer from the name of a metric whether larger values are better; None if unknown.

    Examples
    --------
    >>> is_larger_better("dsc"), is_larger_better("Hausdorff95_WT"), is_larger_better("value")
    (True, False, None)
    """
    words = re.findall(r"[a-z0-9]+", metric.casefold())
    spec = next(
        (candidate for candidate in list_metrics() if candidate.name == "_".join(words)), None
    )
    if spec is not None and spec.better is not Better.NEITHER:
        return spec.better is Better.HIGHER
    if _LOWER.intersection(words):
        return False
    return True if {"dsc", "dice", "iou", "nsd", "auc"}.intersection(words) else None


def fill_missing(table: RankingTable, settings: RankSettings) -> Merits:
    """Return a table without missing values, according to the settings' rule.

    Parameters
    ----------
    table
        The table.
    settings
        The rule for missing values.

    Raises
    ------
    ValueError
        If values are missing and there is no rule, or the rule leaves no case.
    """
    sign = 1.0 if table.is_larger_better else -1.0
    missing = np.isnan(table.values)
    places = np.arange(len(table.cases))
    before = table.stand_ins
    filled = (missing | before).sum(axis=0)
    if not missing.any():
        return Merits(sign * table.values, places, filled, sign, settings.is_exact)
    rule = settings.missing
    if rule is None:
        raise _make_missing_error(table)
    if rule.kind is MissingKind.DROP_CASE:
        places = np.flatnonzero(~missing.any(axis=1))
        if not places.size:
            raise ValueError(
                "no case has a value from every algorithm; choose a rule for missing values "
                f"other than {rule.text}"
            )
        stand_ins = before[places].sum(axis=0)
        return Merits(sign * table.values[places], places, stand_ins, sign, settings.is_exact)
    filler = sign * rule.value if rule.kind is MissingKind.VALUE else -np.inf
    return Merits(
        np.where(missing, filler, sign * table.values), places, filled, sign, settings.is_exact
    )


def _make_missing_error(table: RankingTable) -> CaseError:
    lacking = [
        f"{name} ({count})"
        for name, count in zip(table.algorithms, table.n_missing.tolist(), strict=True)
        if count
    ]
    where = f" ({table.name})" if table.name else ""
    rows = np.flatnonzero(np.isnan(table.values).any(axis=1))
    return CaseError(
        f"expected a value of every algorithm for each of the {len(table.cases)} cases{where}, "
        f"but values of {name_some(lacking, 3)} are missing, for example for "
        f"{name_some([table.cases[row] for row in rows], 3)}: complete the table, or choose a "
        "rule for missing values",
        remedies=(Remedy("missing", ("RULE",)),),
    )
