"""The properties by which scored cases are filtered: status, size, group, failure kind, tags."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.metrics.registry import Place, metrics_at
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases_job
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.cohort.strata import TAG as TAGGED
from napari_mamamia.scoring.cohort.strata import (
    group_by_column,
    group_by_diameter,
    group_by_volume,
)
from napari_mamamia.scoring.report.text import variable_label
from napari_mamamia.services.score.case_table import (
    STATUS_TEXTS,
    CaseTable,
    Facet,
    SortKey,
    facet_of,
    in_chunks,
    name_status,
    numbers_of,
    text_key,
    worst_first,
)

STATUS: Final = "status"
SIZE: Final = "size"
DIAMETER: Final = "diameter"
FAILURE: Final = "failure"
TAG: Final = "tag"
GROUP: Final = "group "
"""Prefix of the facet name of a group variable."""

_GROUPING: Final = "Grouping the cases"
_NO_GROUP: Final = "in no group"
_OTHER_GROUPS: Final = "other groups"
_MOST_LABELS: Final = 62
_SIZES: Final = "small, moderate and large by the 20th and 80th percentile of reference volume"

Pairs = Mapping[str, tuple[Path | None, Path | None]]
"""Reference and prediction by case id."""


def case_table(model: ModelScores, pairs: Pairs) -> CaseTable:
    """Return the table of a model's cases.

    Reasons name the files of `pairs` without their folders. Failure kinds and tags are added later
    by `with_failures` and `with_tags`.
    """
    rows: list[CaseScore] = []
    keys: list[str] = []
    texts: list[str] = []

    def take(start: int, stop: int) -> None:
        for row in model.rows[start:stop]:
            plain = _without_folders(row, pairs.get(row.case_id, ()))
            rows.append(plain)
            keys.append(case_key(plain.case_id))
            words = (plain.case_id, name_status(plain), plain.reason, plain.warning)
            texts.append(" ".join(words).lower())

    in_chunks(len(model.rows), take, "Building the case table")
    numbers = {spec.name: numbers_of(rows, spec.name) for spec in metrics_at(Place.CASES)}
    ids = text_key("case", [row.case_id.lower() for row in rows])
    status = text_key("status", [name_status(row) for row in rows])
    reason = text_key("reason", [(r.reason or r.warning).lower() for r in rows])
    report_progress(0, 1, "Sorting the cases")
    facets = _make_facets(model, rows, numbers["volume_reference_mm3"])
    nothing: tuple[tuple[str, ...], ...] = ((),) * len(rows)
    unknown = np.full(len(rows), np.nan)
    return CaseTable(
        rows=tuple(rows),
        keys=tuple(keys),
        worst=worst_first(ids.values, numbers["dsc"], numbers["hausdorff95_mm"]),
        sort_keys=(
            ids,
            status,
            *(SortKey(name, values) for name, values in numbers.items()),
            reason,
            SortKey(FAILURE, unknown),
            SortKey(TAG, unknown),
        ),
        facets=facets,
        plain_texts=tuple(texts),
        texts=tuple(texts),
        failures=((),) * len(rows),
        tags=nothing,
    )


# ------------------------------------------------------------------------- inner


def _make_facets(
    model: ModelScores, rows: Sequence[CaseScore], volumes: NDArray[np.float64]
) -> tuple[Facet, ...]:
    ids = [row.case_id for row in rows]
    statuses = list(STATUS_TEXTS)
    codes = np.array([statuses.index(row.status) for row in rows], dtype=np.intp)
    facets = [facet_of(STATUS, "status", tuple(STATUS_TEXTS.values()), _make_bits(codes))]
    report_progress(0, 1, _GROUPING)
    if not np.isnan(volumes).all():
        sizes = group_by_volume(ids, np.where(volumes > 0, volumes, np.nan))
        facets.append(_make_facet(SIZE, _SIZES, sizes))
        report_progress(0, 1, _GROUPING)
    diameters = numbers_of(rows, "diameter_reference_mm")
    if not np.isnan(diameters).all():
        cut = group_by_diameter(ids, np.where(diameters > 0, diameters, np.nan))
        facets.append(_make_facet(DIAMETER, "largest diameter, cut at 20 and 50 mm", cut))
    report_progress(0, 1, _GROUPING)
    if model.cohort is None or not rows:
        return tuple(facets)
    further = _make_group_facets(model, ids)
    return (*facets, *further)


def _make_group_facets(model: ModelScores, ids: Sequence[str]) -> tuple[Facet, ...]:
    """Return the groups of every case for scoring and reporting.

    The result holds the groups of scored cases only; those of the other cases are computed here.
    """
    result, cohort = model.segmentation, model.cohort
    if cohort is None:
        return ()
    scored_ids = result.scores.case_ids if result else ()
    places = {case_id: index for index, case_id in enumerate(ids)}
    rows = np.array([places[case_id] for case_id in scored_ids], dtype=np.intp)
    others = sorted(set(ids).difference(scored_ids), key=places.__getitem__)
    other_rows = np.array([places[case_id] for case_id in others], dtype=np.intp)
    report_progress(0, 1, _GROUPING)
    facets = []
    scored = {grouping.variable: grouping for grouping in (result.groupings if result else ())}
    for other_grouping in group_cases_job(others, cohort, rules_of(model.profile)):
        run = scored.get(other_grouping.variable)
        parts = (
            [(other_rows, other_grouping)]
            if run is None
            else [(rows, run), (other_rows, other_grouping)]
        )
        facets.append(_merge_groupings(other_grouping.variable, len(ids), parts))
    for stratum in result.strata if result else ():
        grouping = stratum.grouping
        if grouping.variable in ("volume", "diameter") or grouping.variable.startswith(TAGGED):
            continue
        parts = [(rows, grouping)]
        column = group_by_column(others, cohort, grouping.variable)
        if column is not None:
            parts.append((other_rows, column))
        facets.append(_merge_groupings(grouping.variable, len(ids), parts))
    return tuple(facets)


def _merge_groupings(
    variable: str, n: int, parts: Sequence[tuple[NDArray[np.intp], Grouping]]
) -> Facet:
    """Return the facet of a variable for all n cases from groupings of subsets (rows)."""
    every = tuple(dict.fromkeys(label for _, grouping in parts for label in grouping.labels))
    # A row's groups are the bits of one number; groups without a bit of their own share the last.
    labels = every if len(every) <= _MOST_LABELS else (*every[: _MOST_LABELS - 1], _OTHER_GROUPS)
    codes = np.full(n, -1, dtype=np.intp)
    for rows, grouping in parts:
        # The last entry is for the code -1 (in no group), which keeps its meaning.
        own_places = (min(every.index(label), len(labels) - 1) for label in grouping.labels)
        places = np.array([*own_places, -1], dtype=np.intp)
        codes[rows] = places[grouping.codes]
    return _make_facet(
        f"{GROUP}{variable}", variable_label(variable), Grouping(variable, labels, codes)
    )


def _make_facet(name: str, title: str, grouping: Grouping) -> Facet:
    codes = np.where(grouping.codes < 0, len(grouping.labels), grouping.codes)
    return facet_of(name, title, (*grouping.labels, _NO_GROUP), _make_bits(codes))


def _make_bits(codes: NDArray[np.intp]) -> NDArray[np.uint64]:
    return np.uint64(1) << codes.astype(np.uint64)


def _without_folders(row: CaseScore, files: Iterable[Path | None]) -> CaseScore:
    if not row.reason:
        return row
    reason = row.reason
    for path in files:
        if path is not None:
            for written in (str(path), str(path.absolute())):
                reason = reason.replace(written, path.name)
    return replace(row, reason=reason)
