"""Strata: groups that are reported beside the scored ones, such as centre, subtype and size."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.scoring.groups import Found, Grouping, Unassigned, group_each

__all__ = ["group_by_column", "group_by_cuts", "group_by_diameter", "group_by_volume"]

MOST_GROUPS: Final = 40
"""A column with more different values is refused: it holds numbers or names, not groups."""

DIAMETER_CUTS_MM: Final = (20.0, 50.0)
"""Bounds of T1/T2 and T2/T3. Source: AJCC Cancer Staging Manual, 8th edition, breast."""

VOLUME_PERCENTILES: Final = (20.0, 80.0)
"""Small, moderate and large tumours. Source: arXiv 2603.01250v2, figure of tumour volumes."""

_FIELDS: Final = ("dataset", "tumour_subtype", "pcr", "menopausal_status", "breast_density")


def group_by_column(case_ids: Sequence[str], cohort: Cohort, column: str) -> Grouping:
    """Return the groups by the values of a column of the clinical table, in natural order.

    `column` is a field of `CaseRecord` (dataset, tumour_subtype, pcr, ...) or a further column
    under its own name. Empty cells are unassigned.

    Raises
    ------
    ValueError
        If no case has a value there, or there are more than `MOST_GROUPS` different values.
    """
    wanted = set(case_ids)
    cells = [_cell(record, column) for record in cohort.records if record.case_id in wanted]
    values = {_text(cell): cell for cell in cells if cell is not None}
    if not values:
        raise ValueError(
            f"none of the {len(wanted)} cases has a value in column {column!r} of the clinical "
            "table: choose another column"
        )
    if len(values) > MOST_GROUPS:
        raise ValueError(
            f"column {column!r} has {len(values)} different values, at most {MOST_GROUPS} make "
            "groups: choose another column, or cut its numbers into ranges"
        )
    labels = sorted(values, key=lambda text: _order(values[text]))

    def rule(record: CaseRecord) -> Found:
        cell = _cell(record, column)
        return Unassigned(record.case_id, f"{column} is missing") if cell is None else _text(cell)

    return group_each(column, labels, case_ids, cohort, rule)


def group_by_cuts(
    variable: str,
    case_ids: Sequence[str],
    values: NDArray[np.float64],
    cuts: Sequence[float],
    labels: Sequence[str],
) -> Grouping:
    """Return the groups of a number: up to and with the first cut, above it up to the next, ...

    `values` is (n,), in the order of `case_ids`; nan is unassigned. One label more than cuts.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(case_ids),) or len(labels) != len(cuts) + 1:
        raise ValueError(
            f"{variable}: {len(case_ids)} cases, {len(cuts)} cuts need as many values and one "
            f"label more than cuts, got values of shape {values.shape} and {len(labels)} labels"
        )
    missing = np.isnan(values)
    codes = np.where(missing, -1, np.searchsorted(np.asarray(cuts), values, side="left"))
    unassigned = tuple(
        Unassigned(case_id, f"{variable} is not known")
        for case_id, is_missing in zip(case_ids, missing, strict=True)
        if is_missing
    )
    return Grouping(variable, tuple(labels), codes.astype(np.intp), unassigned)


def group_by_volume(case_ids: Sequence[str], volumes_mm3: NDArray[np.float64]) -> Grouping:
    """Return small, moderate and large tumours by the 20th and 80th percentile of the volumes.

    The percentiles (linearly interpolated) are those of the defined volumes given here.
    """
    volumes = np.asarray(volumes_mm3, dtype=np.float64)
    defined = volumes[~np.isnan(volumes)]
    cuts = np.percentile(defined, VOLUME_PERCENTILES) if defined.size else np.zeros(2)
    return group_by_cuts("volume", case_ids, volumes, tuple(cuts), ("small", "moderate", "large"))


def group_by_diameter(case_ids: Sequence[str], diameters_mm: NDArray[np.float64]) -> Grouping:
    """Return tumours up to 20 mm, above 20 to 50 mm, and above 50 mm of largest diameter."""
    labels = ("up to 20 mm", "20 to 50 mm", "over 50 mm")
    return group_by_cuts("diameter", case_ids, diameters_mm, DIAMETER_CUTS_MM, labels)


def _cell(record: CaseRecord, column: str) -> str | float | bool | None:
    cell: Any = getattr(record, column) if column in _FIELDS else record.other.get(column)
    is_nan = isinstance(cell, float) and np.isnan(cell)
    return None if cell is None or cell == "" or is_nan else cell


def _text(cell: str | float | bool) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else f"{cell:g}"


def _order(cell: str | float | bool) -> tuple[bool, float, str]:
    """Return a sorting key: numbers by size, then texts by letter."""
    if isinstance(cell, str):
        return True, 0.0, cell.lower()
    return False, float(cell), ""
