"""Performance of a segmentation model: mean Dice and mean normalised Hausdorff distance."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationScores:
    """Dice and NormHD of n cases, with nan for undefined values.

    `dsc` (n,) is float64 from 0 to 1. `norm_hd` (n,) is float64 from 0 (best) upwards, and may
    exceed 1 if the profile does not clip it. The profile defines both metrics.
    """

    case_ids: tuple[str, ...]
    dsc: NDArray[np.float64]
    norm_hd: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, highest in (("dsc", 1.0), ("norm_hd", np.inf)):
            column = np.array(getattr(self, name), dtype=np.float64)
            _check_column(name, column, self.case_ids, highest)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if len(set(self.case_ids)) < len(self.case_ids):
            twice = next(i for i in self.case_ids if self.case_ids.count(i) > 1)
            raise ValueError(f"expected one score for case {twice}, but found two")

    @classmethod
    def of(cls, rows: Iterable[tuple[str, float, float]]) -> "SegmentationScores":
        """Return the scores of rows of case id, dsc and norm_hd.

        Raises
        ------
        ValueError
            If a case is repeated, a Dice lies outside 0 to 1, or a distance is negative or
            infinite.
        """
        rows = tuple(rows)
        numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
        return cls(tuple(row[0] for row in rows), numbers[:, 0], numbers[:, 1])


@dataclass(frozen=True, slots=True)
class Performance:
    """Means over the cases with a defined value, and performance (mean DSC + 1 - mean NormHD)/2.

    `n_dsc` and `n_norm_hd` are the numbers of cases in each mean, and `excluded` are the ids of the
    cases that lack either value. `reason` explains why `value` is nan, or is "".
    """

    value: float
    mean_dsc: float
    mean_norm_hd: float
    n_cases: int
    n_dsc: int
    n_norm_hd: int
    excluded: tuple[str, ...]
    reason: str = ""


def segmentation_performance(scores: SegmentationScores) -> Performance:
    """Return the performance of a model over its cases.

    Source: arXiv 2603.01250v2, Task 1; without cases all metrics are nan.
    """
    has_dsc, has_norm_hd = ~np.isnan(scores.dsc), ~np.isnan(scores.norm_hd)
    mean_dsc, mean_norm_hd = (
        _compute_mean(scores.dsc[has_dsc]),
        _compute_mean(scores.norm_hd[has_norm_hd]),
    )
    excluded = np.flatnonzero(~(has_dsc & has_norm_hd))
    return Performance(
        float(performance_of(mean_dsc, mean_norm_hd)),
        mean_dsc,
        mean_norm_hd,
        len(scores.case_ids),
        int(has_dsc.sum()),
        int(has_norm_hd.sum()),
        tuple(scores.case_ids[index] for index in excluded),
        _explain_undefined(has_dsc, has_norm_hd),
    )


def performance_of(mean_dsc: Any, mean_norm_hd: Any) -> Any:
    """Return (mean DSC + 1 - mean NormHD)/2, which is at most 1, for floats or arrays of one shape.

    Source: arXiv 2603.01250v2, Task 1.

    Examples
    --------
    >>> round(performance_of(0.7360, 0.0949), 5)
    0.82055
    """
    return (mean_dsc + 1 - mean_norm_hd) / 2


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Return part / whole for each element, or nan where the whole is 0."""
    shares = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    np.divide(part, whole, out=shares, where=whole != 0)
    return shares


def _explain_undefined(has_dsc: NDArray[np.bool_], has_norm_hd: NDArray[np.bool_]) -> str:
    if not has_dsc.size:
        return "there is no case with a defined score"
    if has_dsc.any() and has_norm_hd.any():
        return ""
    undefined = "score"
    if has_dsc.any() or has_norm_hd.any():
        undefined = "NormHD" if has_dsc.any() else "Dice"
    return f"none of the {has_dsc.size} cases has a defined {undefined}"


def _compute_mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _check_column(
    name: str, column: NDArray[np.float64], case_ids: tuple[str, ...], highest: float
) -> None:
    if column.shape != (len(case_ids),):
        raise ValueError(
            f"expected {len(case_ids)} values of {name}, one for each case, but found an array of "
            f"shape {column.shape}"
        )
    wrong = np.flatnonzero((column < 0) | (column > highest) | np.isinf(column))
    if wrong.size:
        bounds = "from 0 to 1" if highest == 1 else "0 or above and finite"
        raise ValueError(
            f"expected {name} to be {bounds} (nan: undefined), but it is {column[wrong[0]]:g} for "
            f"case {case_ids[wrong[0]]}: correct the table"
        )
