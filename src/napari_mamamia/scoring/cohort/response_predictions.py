"""Predictions of a response (pCR) model for each case, with the known labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import Cohort


@dataclass(frozen=True, slots=True, eq=False)
class ResponsePredictions:
    """Predictions of a model for n cases, with the known labels.

    `label` (n,) float64: 1 for pathologic complete response, 0 for none, nan if unknown.
    `predicted` (n,) float64, 0 or 1. `score` (n,) float64: the model's probability of response, 0
    to 1, nan if missing.
    """

    case_ids: tuple[str, ...]
    label: NDArray[np.float64]
    predicted: NDArray[np.float64]
    score: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("label", "predicted", "score"):
            column = np.array(getattr(self, name), dtype=np.float64)
            _check_column(name, column, self.case_ids)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if len(set(self.case_ids)) < len(self.case_ids):
            twice = next(i for i in self.case_ids if self.case_ids.count(i) > 1)
            raise ValueError(f"there are two predictions for case {twice}, but expected one")

    @classmethod
    def of(cls, rows: Iterable[tuple[str, float, float]], cohort: Cohort) -> "ResponsePredictions":
        """Return predictions from rows of (case id, pcr, score), with labels from `cohort`."""
        rows = tuple(rows)
        records = cohort.by_id()
        responses = [records[row[0]].pcr if row[0] in records else None for row in rows]
        numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
        label = np.array([np.nan if pcr is None else float(pcr) for pcr in responses])
        return cls(tuple(row[0] for row in rows), label, numbers[:, 0], numbers[:, 1])

    @property
    def constant(self) -> str:
        """A sentence if all predictions are equal; "" if they are not, or without predictions."""
        values = np.unique(self.predicted)
        if values.size != 1:
            return ""
        return (
            f"all {len(self.case_ids)} predictions are {values[0]:g}, and the challenge refuses "
            "constant predictions"
        )


def _check_column(name: str, column: NDArray[Any], case_ids: tuple[str, ...]) -> None:
    if column.shape != (len(case_ids),):
        raise ValueError(
            f"expected {len(case_ids)} values of {name}, one for each case, got an array of shape "
            f"{column.shape}"
        )
    if name == "score":
        wrong, expected = (column < 0) | (column > 1), "a probability from 0 to 1, or nan"
    elif name == "label":
        wrong, expected = ~(np.isin(column, (0, 1)) | np.isnan(column)), "0, 1 or nan"
    else:
        wrong, expected = ~np.isin(column, (0, 1)), "0 or 1"
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"expected {name} to be {expected}, got {column[first]:g} for case {case_ids[first]}; "
            "correct the table"
        )
