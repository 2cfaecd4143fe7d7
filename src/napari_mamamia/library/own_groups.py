"""Fairness over custom groups, such as race or scanner, which a script passes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.scoring.cohort.disparities import (
    permute_segmentation_groups,
    segmentation_uncertainty,
)
from napari_mamamia.scoring.cohort.groups import MOST_GROUPS, Grouping, Unassigned, rules_of
from napari_mamamia.scoring.cohort.segmentation_cohort import segmentation_fairness
from napari_mamamia.scoring.statistics.performance import SegmentationScores

if TYPE_CHECKING:
    import pandas as pd

ALL: Final = "mean of these variables"


def fairness_table(
    scores: SegmentationScores,
    profile: str,
    groups: Mapping[str, Any],
    table: "pd.DataFrame | None",
    minimum_group: int,
) -> "pd.DataFrame":
    """Compute fairness and disparities over custom groups, with intervals and tests.

    Parameters
    ----------
    scores
        The scores of the cases.
    profile
        The name of the scoring profile.
    groups
        Maps each variable to a column of `table`, or to a mapping from case id to value.
    table
        A table indexed by case id; None if `groups` contains the values.
    minimum_group
        The smallest group that is included in intervals and tests.

    Raises
    ------
    ArgumentError
        If there are no groups, a column is missing, or a variable has too few or too many values.
    """
    import pandas as pd

    if not isinstance(groups, Mapping) or not groups:
        raise ArgumentError(
            f"expected groups to be a dict, but got {groups!r}: pass, for example,  "
            f"groups={{'race': 'race'}}, table=data_set.columns"
        )
    groupings = [
        _group(name, _find_values(name, source, table), scores.case_ids)
        for name, source in groups.items()
    ]
    fairness = segmentation_fairness(scores, groupings, rules_of(profile))
    uncertainty = segmentation_uncertainty(scores, groupings, fairness, minimum_group)
    tests = {
        (test.variable, test.measure): test
        for test in permute_segmentation_groups(scores, groupings)
    }

    def list_rows() -> Iterator[tuple[object, ...]]:
        for scored, interval in zip(fairness.variables, uncertainty.by_variable, strict=True):
            n_groups = sum(group.n > 0 for group in scored.groups)
            for measure in ("dsc", "norm_hd"):
                estimate = uncertainty.of(scored.variable, measure)
                test = tests[scored.variable, measure]
                ends = (estimate.interval.low, estimate.interval.high)
                row = (estimate.value, *ends, test.p_value, test.p_holm)
                yield scored.variable, measure, *row, n_groups, estimate.interval.reason
            ends = (interval.low, interval.high)
            joint = tests.get((scored.variable, "mean"))
            p_values = (joint.p_value, joint.p_holm) if joint else (np.nan, np.nan)
            reason = scored.reason or interval.reason
            yield scored.variable, "fairness", scored.value, *ends, *p_values, n_groups, reason
        interval = uncertainty.fairness
        ends = (interval.low, interval.high)
        yield (
            ALL,
            "fairness",
            fairness.value,
            *ends,
            np.nan,
            np.nan,
            len(groupings),
            fairness.reason,
        )

    names = ["variable", "measure", "value", "low", "high", "p", "p_holm", "n_groups", "reason"]
    return pd.DataFrame(list(list_rows()), columns=names).set_index(["variable", "measure"])


def _find_values(name: str, source: Any, table: "pd.DataFrame | None") -> dict[str, object]:
    """Return each case's value of a variable, by lower-case case id."""
    if isinstance(source, str):
        if table is None:
            raise ArgumentError(
                f"expected a table with the column {source!r} for {name}, but got no table: pass "
                "`table=data_set.columns` or the values by case id"
            )
        if source not in table.columns:
            raise ArgumentError(
                f"expected the source of {name} to be a column of the table, but got {source!r}: "
                f"choose one of {name_some(list(map(str, table.columns)))}"
            )
        source = table[source]
    if not hasattr(source, "items"):
        raise ArgumentError(
            f"expected {name} to be a column name or values by case id, but got "
            f"{type(source).__name__}: pass a dict or a pandas Series with the case ids as index"
        )
    return {case_key(str(case_id)): value for case_id, value in source.items()}


def _group(name: str, values: Mapping[str, object], case_ids: tuple[str, ...]) -> Grouping:
    """Group the cases by value; a case with an empty value belongs to no group."""
    texts = [_format_value(values.get(case_key(case_id))) for case_id in case_ids]
    labels = sorted({text for text in texts if text}, key=natural_key)
    if not labels:
        raise ArgumentError(
            f"expected {name} to have a value for a scored case, but found none: pass a variable "
            "whose ids are those of the scored cases"
        )
    if len(labels) > MOST_GROUPS:
        raise ArgumentError(
            f"expected {name} to have at most {MOST_GROUPS} different values in the scored "
            f"cases, but found {len(labels)}: pass a variable with fewer groups"
        )
    codes = [labels.index(text) if text else -1 for text in texts]
    unassigned = tuple(
        Unassigned(case_id, f"{name} is unknown")
        for case_id, text in zip(case_ids, texts, strict=True)
        if not text
    )
    return Grouping(name, tuple(labels), np.array(codes, dtype=np.intp), unassigned)


def _format_value(value: object) -> str:
    is_missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "" if is_missing else str(value).strip()
