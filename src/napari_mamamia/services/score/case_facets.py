"""What scored cases can be looked through by: status, size, group, kind of failure, own tags."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.scoring.cohort.group_rules import rules_of
from napari_mamamia.scoring.cohort.groups import Grouping, group_cases_job
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.cohort.strata import TAG as TAGGED
from napari_mamamia.scoring.cohort.strata import (
    column_groups_job,
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
"""How the name of a facet starts that is a group variable."""

_NUMBERS: Final = (
    "dsc",
    "hausdorff95_mm",
    "norm_hd",
    "nsd_1mm",
    "volume_reference_mm3",
    "volume_prediction_mm3",
)
_GROUPING: Final = "Grouping the cases"
_NO_GROUP: Final = "in no group"
_SIZES: Final = "small, moderate and large by the 20th and 80th percentile of reference volume"
_COMPARED: Final = (ScoreStatus.OK, ScoreStatus.PREDICTION_EMPTY, ScoreStatus.PREDICTION_MISSING)

Pairs = Mapping[str, tuple[Path | None, Path | None]]
"""By case id the reference and the prediction."""


def case_table(model: ModelScores, pairs: Pairs) -> CaseTable:
    """Make the table of a model's cases.

    Reasons name the files of `pairs` without their folders. Failure kinds and tags come later, by
    `with_failures` and `with_tags`.
    """
    rows: list[CaseScore] = []
    keys: list[str] = []
    texts: list[str] = []

    def take(start: int, stop: int) -> None:
        for row in model.rows[start:stop]:
            shown = _without_folders(row, pairs.get(row.case_id, ()))
            rows.append(shown)
            keys.append(case_key(shown.case_id))
            said = (shown.case_id, STATUS_TEXTS[shown.status], shown.reason, shown.warning)
            texts.append(" ".join(said).lower())

    in_chunks(len(model.rows), take, "Making the table")
    columns = []
    for name in _NUMBERS:
        columns.append(SortKey(name, (numbers_of(rows, name))))
    ids = text_key("case", [row.case_id.lower() for row in rows])
    status = text_key("status", [STATUS_TEXTS[row.status] for row in rows])
    reason = text_key("reason", [(r.reason or r.warning).lower() for r in rows])
    report_progress(0, 1, "Sorting the cases")
    facets = _facets(model, rows, columns[_NUMBERS.index("volume_reference_mm3")].values)
    nothing: tuple[tuple[str, ...], ...] = ((),) * len(rows)
    unknown = np.full(len(rows), np.nan)
    return CaseTable(
        rows=tuple(rows),
        keys=tuple(keys),
        worst=worst_first(ids.values, columns[0].values, columns[1].values),
        sort_keys=(ids, status, *columns, reason, SortKey(FAILURE, unknown), SortKey(TAG, unknown)),
        facets=facets,
        plain_texts=tuple(texts),
        texts=tuple(texts),
        failures=((),) * len(rows),
        tags=nothing,
    )


# ------------------------------------------------------------------------- inner


def _facets(
    model: ModelScores, rows: Sequence[CaseScore], volumes: NDArray[np.float64]
) -> tuple[Facet, ...]:
    ids = [row.case_id for row in rows]
    statuses = list(STATUS_TEXTS)
    codes = np.array([statuses.index(row.status) for row in rows], dtype=np.intp)
    found = [facet_of(STATUS, "status", tuple(STATUS_TEXTS.values()), _bits(codes))]
    report_progress(0, 1, _GROUPING)
    if not np.isnan(volumes).all():
        sizes = group_by_volume(ids, np.where(volumes > 0, volumes, np.nan))
        found.append(_facet(SIZE, _SIZES, sizes))
        report_progress(0, 1, _GROUPING)
    diameters = numbers_of(rows, "diameter_reference_mm")
    if not np.isnan(diameters).all():
        cut = group_by_diameter(ids, np.where(diameters > 0, diameters, np.nan))
        found.append(_facet(DIAMETER, "largest diameter, cut at 20 and 50 mm", cut))
    report_progress(0, 1, _GROUPING)
    if model.cohort is None or not rows:
        return tuple(found)
    further = _groups(model, ids)
    return (*found, *further)


def _groups(model: ModelScores, ids: Sequence[str]) -> tuple[Facet, ...]:
    """Return the groups that the run was scored and reported by, of every case.

    The run knows them of its scored cases; only those of the others are looked up.
    """
    result, cohort = model.segmentation, model.cohort
    if cohort is None:
        return ()
    known = result.scores.case_ids if result else ()
    places = {case_id: place for place, case_id in enumerate(ids)}
    rows = np.array([places[case_id] for case_id in known], dtype=np.intp)
    others = sorted(set(ids).difference(known), key=places.__getitem__)
    other_rows = np.array([places[case_id] for case_id in others], dtype=np.intp)
    report_progress(0, 1, _GROUPING)
    found = []
    scored = {grouping.variable: grouping for grouping in (result.groupings if result else ())}
    for own in group_cases_job(others, cohort, rules_of(model.profile)):
        run = scored.get(own.variable)
        parts = [(other_rows, own)] if run is None else [(rows, run), (other_rows, own)]
        found.append(_group(own.variable, len(ids), parts))
    for stratum in result.strata if result else ():
        grouping = stratum.grouping
        if grouping.variable in ("volume", "diameter") or grouping.variable.startswith(TAGGED):
            continue
        parts = [(rows, grouping)]
        column = column_groups_job(others, cohort, grouping.variable)
        if column is not None:
            parts.append((other_rows, column))
        found.append(_group(grouping.variable, len(ids), parts))
    return tuple(found)


def _group(variable: str, n: int, parts: Sequence[tuple[NDArray[np.intp], Grouping]]) -> Facet:
    """Return the facet of a variable over n cases from groupings of some of them (rows)."""
    labels = tuple(dict.fromkeys(label for _, grouping in parts for label in grouping.labels))
    codes = np.full(n, -1, dtype=np.intp)
    for rows, grouping in parts:
        places = np.array([*(labels.index(label) for label in grouping.labels), -1], dtype=np.intp)
        codes[rows] = places[grouping.codes]
    return _facet(f"{GROUP}{variable}", variable_label(variable), Grouping(variable, labels, codes))


def _facet(name: str, title: str, grouping: Grouping) -> Facet:
    codes = np.where(grouping.codes < 0, len(grouping.labels), grouping.codes)
    return facet_of(name, title, (*grouping.labels, _NO_GROUP), _bits(codes))


def _bits(codes: NDArray[np.intp]) -> NDArray[np.uint64]:
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
