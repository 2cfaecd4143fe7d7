"""Strata: groups that are reported next to the scored ones, such as centre, subtype and size."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.cohort import CaseRecord, Cohort
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.scoring.cohort.groups import Found, Grouping, Unassigned, group_each

MOST_GROUPS: Final = 40
"""Largest number of different values of a column that forms groups.

A column with more values is refused, since it holds numbers or names.
"""

DIAMETER_CUTS_MM: Final = (20.0, 50.0)
"""Limits between T1, T2 and T3. Source: AJCC Cancer Staging Manual, 8th edition, breast."""

VOLUME_PERCENTILES: Final = (20.0, 80.0)
"""Limits of small, moderate and large tumours. Source: arXiv 2603.01250v2, figure of volumes."""

TAG: Final = "tag: "
"""Prefix of a variable's name if it is a reader's tag, to distinguish it from columns."""

Filled: TypeAlias = str | float | bool
"""The value of a cell that is not empty."""

_FIELDS: Final = ("dataset", "tumour_subtype", "pcr", "menopausal_status", "breast_density")


def group_by_column(case_ids: Sequence[str], cohort: Cohort, column: str) -> Grouping | None:
    """Return the groups by the values of a column of the clinical table, in order.

    `column` is a field of `CaseRecord` (dataset, tumour_subtype, pcr, ...) or the name of a further
    column. Cases with empty cells are unassigned. None if no case has a value, or there are more
    than `MOST_GROUPS` different values.
    """
    values = _collect_values(case_ids, cohort, column)
    if not 0 < len(values) <= MOST_GROUPS:
        return None
    return _group_by_values(case_ids, cohort, column, values)


def group_by_cuts(
    variable: str,
    case_ids: Sequence[str],
    values: NDArray[np.float64],
    cuts: Sequence[float],
    labels: Sequence[str],
) -> Grouping:
    """Return the groups of a number between cuts; a value at a cut belongs to the lower group.

    `values` is (n,), in the order of `case_ids`; nan is unassigned. There is one label more than
    cuts.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(case_ids),) or len(labels) != len(cuts) + 1:
        raise ValueError(
            f"expected {len(case_ids)} values and {len(cuts) + 1} labels of {variable}, got "
            f"values of shape {values.shape} and {len(labels)} labels"
        )
    missing = np.isnan(values)
    codes = np.where(missing, -1, np.searchsorted(np.asarray(cuts), values, side="left"))
    unassigned = tuple(
        Unassigned(case_id, f"{variable} is unknown")
        for case_id, is_missing in zip(case_ids, missing, strict=True)
        if is_missing
    )
    return Grouping(variable, tuple(labels), codes.astype(np.intp), unassigned)


def group_by_volume(case_ids: Sequence[str], volumes_mm3: NDArray[np.float64]) -> Grouping:
    """Return small, moderate and large tumours by the 20th and 80th percentile of the volumes.

    The percentiles are those of the defined volumes given here, linearly interpolated.
    """
    volumes = np.asarray(volumes_mm3, dtype=np.float64)
    defined = volumes[~np.isnan(volumes)]
    cuts = np.percentile(defined, VOLUME_PERCENTILES) if defined.size else np.zeros(2)
    return group_by_cuts("volume", case_ids, volumes, tuple(cuts), ("small", "moderate", "large"))


def group_by_diameter(case_ids: Sequence[str], diameters_mm: NDArray[np.float64]) -> Grouping:
    """Return tumours up to 20 mm, above 20 to 50 mm, and above 50 mm in longest diameter."""
    labels = ("up to 20 mm", "20 to 50 mm", "over 50 mm")
    return group_by_cuts("diameter", case_ids, diameters_mm, DIAMETER_CUTS_MM, labels)


def group_by_tags(case_ids: Sequence[str], tags: Sequence[Sequence[str]]) -> tuple[Grouping, ...]:
    """Return, for each tag, the cases with and without it; the most frequent tag comes first.

    `tags` holds the tags of each case, in the order of `case_ids`. A tag that every case has makes
    no groups.
    """
    counts: dict[str, int] = {}
    for case_tags in tags:
        for tag in set(case_tags):
            counts[tag] = counts.get(tag, 0) + 1
    names = sorted(
        (tag for tag, n in counts.items() if n < len(case_ids)), key=_make_rank_key(counts)
    )
    return tuple(
        Grouping(
            f"{TAG}{name}",
            ("with", "without"),
            np.array([name not in case_tags for case_tags in tags], dtype=np.intp),
        )
        for name in names[:MOST_GROUPS]
    )


def _collect_values(case_ids: Sequence[str], cohort: Cohort, column: str) -> dict[str, Filled]:
    """Return the different values in a column of the cases, by their text."""
    ids = set(case_ids)
    values: dict[str, Filled] = {}
    for record in paced(cohort.records, f"Groups of {column}"):
        if record.case_id in ids:
            cell = _read_cell(record, column)
            if cell is not None:
                values[_format_cell(cell)] = cell
    report_progress(0, 1, f"Groups of {column}")
    return values


def _group_by_values(
    case_ids: Sequence[str], cohort: Cohort, column: str, values: Mapping[str, Filled]
) -> Grouping:
    labels = sorted(values, key=lambda text: _make_sort_key(values[text]))

    def rule(record: CaseRecord) -> Found:
        cell = _read_cell(record, column)
        return (
            Unassigned(record.case_id, f"{column} is missing")
            if cell is None
            else _format_cell(cell)
        )

    return group_each(column, labels, case_ids, cohort, rule)


def _make_rank_key(counts: Mapping[str, int]) -> Callable[[str], tuple[int, str]]:
    return lambda tag: (-counts[tag], tag)


def _read_cell(record: CaseRecord, column: str) -> Filled | None:
    cell: Any = getattr(record, column) if column in _FIELDS else record.other.get(column)
    is_nan = isinstance(cell, float) and np.isnan(cell)
    return None if cell is None or cell == "" or is_nan else cell


def _format_cell(cell: Filled) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else f"{cell:g}"


def _make_sort_key(cell: Filled) -> tuple[bool, float, str]:
    """Return a sort key: numbers by size, then texts alphabetically."""
    if isinstance(cell, str):
        return True, 0.0, cell.lower()
    return False, float(cell), ""
