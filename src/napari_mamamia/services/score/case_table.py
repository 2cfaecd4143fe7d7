"""The table of scored cases, with up to 100,000 rows: filter, search, sort, failure kinds.

Slow functions report their progress. Values that the window needs while drawing, such as a cell or
a count, are stored.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore, CaseTag
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.metrics.registry import Place, metrics_at
from napari_mamamia.scoring.case.failures import Failure, FailureKind
from napari_mamamia.scoring.cohort import groups
from napari_mamamia.scoring.cohort.groups import TAG as TAGGED
from napari_mamamia.scoring.cohort.results import ModelScores
from napari_mamamia.scoring.report.text import STATUS_TEXTS, name_status, variable_label
from napari_mamamia.services.score.case_tags import KNOWN_TAGS
from napari_mamamia.services.score.inspections import CaseInspection

WORST_FIRST: Final = ""
"""The sort key of the initial order."""

_CHUNK: Final = 5000
"""Number of rows between two progress reports."""
_MOST_VALUES: Final = 63
_SORTED_LETTERS: Final = 48
"""Number of letters used for sorting, because numpy pads all strings to the longest."""
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
"""Reference and prediction files by case id; None for a missing file."""
_MOST_TAGS: Final = 60


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """A property by which rows are filtered.

    `values` are the names of at most 63 values. Bit k of ``bits[row]``, (n,) uint64, is set if the
    row has the k-th value; a row can have several values, such as failure kinds. `counts` are the
    numbers of rows with each value.
    """

    name: str
    title: str
    values: tuple[str, ...]
    counts: tuple[int, ...]
    bits: NDArray[np.uint64]

    def has(self, value: str) -> NDArray[np.bool_]:
        """Return whether each row has `value`, as a boolean array (n,)."""
        if value not in self.values:
            return np.zeros(self.bits.shape, dtype=np.bool_)
        return _read_bit(self.bits, self.values.index(value))


@dataclass(frozen=True, slots=True, eq=False)
class SortKey:
    """Sort values of a column, (n,) float64; NaN (unknown) comes last in both directions."""

    name: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CaseTable:
    """The cases of a model in order of id, with data for filtering and sorting.

    `worst` (n,) intp is the order with the worst case first. `plain_texts` is the searchable text
    of each row in lower case, and `texts` also includes failure kinds and tags. `failures` and
    `tags` have the failure kinds and tags of each row. `knows_failures` is True if failure kinds
    were determined.
    """

    rows: tuple[CaseScore, ...]
    keys: tuple[str, ...]
    worst: NDArray[np.intp]
    sort_keys: tuple[SortKey, ...]
    facets: tuple[Facet, ...]
    plain_texts: tuple[str, ...]
    texts: tuple[str, ...]
    failures: tuple[tuple[Failure, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    knows_failures: bool = False

    def facet(self, name: str) -> Facet | None:
        """Return the facet with a given name, or None."""
        return next((facet for facet in self.facets if facet.name == name), None)

    def with_part(self, facet: Facet, key: SortKey) -> "CaseTable":
        """Return the table with a new or replaced facet and sort key."""
        facets = [other for other in self.facets if other.name != facet.name]
        keys = [other for other in self.sort_keys if other.name != key.name]
        facets += [facet] if facet.values else []
        return replace(self, facets=tuple(facets), sort_keys=(*keys, key))


@dataclass(frozen=True, slots=True)
class CaseQuery:
    """A query for the rows with all chosen (facet, value) pairs and all words, sorted by a key."""

    chosen: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    sort: str = WORST_FIRST
    upwards: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The selected rows in order; `order` (m,) intp holds the row indices."""

    order: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.order)

    def row_at(self, place: int) -> int:
        """Return the table's row at a position of the selection."""
        return int(self.order[place])

    def place_of(self, row: int) -> int | None:
        """Return the position of a table row in the selection, or None if it is filtered out."""
        positions = np.flatnonzero(self.order == row)
        return int(positions[0]) if positions.size else None

    @property
    def rows(self) -> list[int]:
        """The selected rows of the table, in order."""
        rows: list[int] = self.order.tolist()
        return rows

    def pick(self, values: Sequence[str]) -> list[str]:
        """Return the values of the selected rows, in their order."""
        return [values[row] for row in self.rows]


def select_cases(table: CaseTable, query: CaseQuery) -> Selection:
    """Return the rows that match a query; ties are sorted worst first."""
    report_progress(0, 2, "Filtering")
    is_shown = np.ones(len(table.rows), dtype=np.bool_)
    for name, value in query.chosen:
        facet = table.facet(name)
        is_shown &= facet.has(value) if facet else False
    if query.words:
        is_shown &= _with_words(table.texts, tuple(w.lower() for w in query.words))
    report_progress(1, 2, "Sorting")
    order = table.worst
    key = next((key.values for key in table.sort_keys if key.name == query.sort), None)
    if key is not None:
        # The key is negated instead of reversed, which keeps unknown rows last and ties worst
        # first.
        order = order[np.argsort((key if query.upwards else -key)[order], kind="stable")]
    elif not query.upwards:
        order = order[::-1]
    return Selection(order[is_shown[order]])


def facet_of(name: str, title: str, values: Sequence[str], bits: NDArray[np.uint64]) -> Facet:
    """Return a facet without values that no row has."""
    counted = [(k, value, int(_read_bit(bits, k).sum())) for k, value in enumerate(values)]
    there = [(k, value, n) for k, value, n in counted if n]
    packed = np.zeros(bits.shape, dtype=np.uint64)
    for new, (old, _value, _n) in enumerate(there):
        packed |= _read_bit(bits, old).astype(np.uint64) << np.uint64(new)
    return Facet(name, title, tuple(v for _, v, _ in there), tuple(n for *_, n in there), packed)


def in_chunks(total: int, work: Callable[[int, int], None], text: str) -> None:
    """Call ``work(start, stop)`` for a few thousand rows at a time."""
    for start in range(0, total, _CHUNK):
        report_progress(start, total, text)
        work(start, min(start + _CHUNK, total))


def numbers_of(rows: Sequence[CaseScore], field: str) -> NDArray[np.float64]:
    """Return a field of all rows, (n,) float64."""
    values = np.empty(len(rows), dtype=np.float64)

    def fill(start: int, stop: int) -> None:
        values[start:stop] = [getattr(row, field) for row in rows[start:stop]]

    in_chunks(len(rows), fill, "Reading the scores")
    return values


def ranks_of_texts(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the alphabetical rank of each string, (n,) float64, or NaN for an empty string."""
    letters = max(1, min(max(map(len, texts), default=0), _SORTED_LETTERS))
    array = np.empty(len(texts), dtype=f"<U{letters}")

    def fill(start: int, stop: int) -> None:
        array[start:stop] = texts[start:stop]

    in_chunks(len(texts), fill, "Sorting the cases")
    ranks = np.unique(array, return_inverse=True)[1].astype(np.float64)
    ranks[array == ""] = np.nan
    return ranks


def text_key(name: str, texts: Sequence[str]) -> SortKey:
    """Return the sort key of a column of strings; empty strings come last."""
    return SortKey(name, (ranks_of_texts(texts)))


def worst_first(
    ids: NDArray[np.float64], dsc: NDArray[np.float64], distance_mm: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the order (n,) of the cases: cases without Dice first, then by ascending Dice.

    Ties are sorted by descending distance, then by `ids`.
    """
    has_dice = ~np.isnan(dsc)
    nearness = -np.nan_to_num(distance_mm, nan=0.0)
    return np.lexsort((ids, nearness, np.where(has_dice, dsc, 0.0), has_dice))


def _with_words(texts: Sequence[str], words: tuple[str, ...]) -> NDArray[np.bool_]:
    has_words = np.zeros(len(texts), dtype=np.bool_)

    def look(start: int, stop: int) -> None:
        has_words[start:stop] = [all(word in text for word in words) for text in texts[start:stop]]

    in_chunks(len(texts), look, "Searching")
    return has_words


def _read_bit(bits: NDArray[np.uint64], place: int) -> NDArray[np.bool_]:
    if place > _MOST_VALUES:
        raise ValueError(
            f"expected at most {_MOST_VALUES + 1} values of a facet, but got value {place + 1}"
        )
    is_set: NDArray[np.bool_] = (bits >> np.uint64(place)) & np.uint64(1) > 0
    return is_set


def case_table(model: ModelScores, pairs: Pairs) -> CaseTable:
    """Return the table of a model's cases.

    Reasons contain the file names of `pairs` without their folders. Failure kinds and tags are
    added later by `with_failures` and `with_tags`.
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
        sizes = groups.group_by_volume(ids, np.where(volumes > 0, volumes, np.nan))
        facets.append(_make_facet(SIZE, _SIZES, sizes))
        report_progress(0, 1, _GROUPING)
    diameters = numbers_of(rows, "diameter_reference_mm")
    if not np.isnan(diameters).all():
        cut = groups.group_by_diameter(ids, np.where(diameters > 0, diameters, np.nan))
        facets.append(_make_facet(DIAMETER, "largest diameter, divided at 20 and 50 mm", cut))
    report_progress(0, 1, _GROUPING)
    if model.cohort is None or not rows:
        return tuple(facets)
    further = _make_group_facets(model, ids)
    return (*facets, *further)


def _make_group_facets(model: ModelScores, ids: Sequence[str]) -> tuple[Facet, ...]:
    """Return the facets of all cases for the groups that are scored or reported.

    The scores contain only the groups of scored cases; the groups of other cases are computed here.
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
    for other_grouping in groups.group_cases_job(others, cohort, groups.rules_of(model.profile)):
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
        column = groups.group_by_column(others, cohort, grouping.variable)
        if column is not None:
            parts.append((other_rows, column))
        facets.append(_merge_groupings(grouping.variable, len(ids), parts))
    return tuple(facets)


def _merge_groupings(
    variable: str, n: int, parts: Sequence[tuple[NDArray[np.intp], groups.Grouping]]
) -> Facet:
    """Merge groupings of subsets of rows into the facet of a variable for all n cases."""
    every = tuple(dict.fromkeys(label for _, grouping in parts for label in grouping.labels))
    # The groups of a row are the bits of one number; groups without their own bit share the last
    # bit.
    labels = every if len(every) <= _MOST_LABELS else (*every[: _MOST_LABELS - 1], _OTHER_GROUPS)
    codes = np.full(n, -1, dtype=np.intp)
    for rows, grouping in parts:
        # The last entry is for the code -1 (in no group), which keeps its meaning.
        own_places = (min(every.index(label), len(labels) - 1) for label in grouping.labels)
        places = np.array([*own_places, -1], dtype=np.intp)
        codes[rows] = places[grouping.codes]
    return _make_facet(
        f"{GROUP}{variable}", variable_label(variable), groups.Grouping(variable, labels, codes)
    )


def _make_facet(name: str, title: str, grouping: groups.Grouping) -> Facet:
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


def with_failures(table: CaseTable, found: Sequence[CaseInspection]) -> CaseTable:
    """Return the table with the failure kinds of the inspected cases."""
    by_id = {inspection.case_id: inspection.failures for inspection in found}
    pairs = zip(table.rows, table.failures, strict=True)
    failures = tuple(by_id.get(row.case_id, before) for row, before in pairs)
    kinds = tuple(kind.value for kind in FailureKind)
    named = tuple(tuple(failure.kind.value for failure in several) for several in failures)
    table = _with_several(
        replace(table, failures=failures, knows_failures=True), FAILURE, "failure", kinds, named
    )
    return table


def with_tags(table: CaseTable, tags: Iterable[CaseTag]) -> CaseTable:
    """Return the table with the tags of all readers, predefined tags first.

    Case ids are compared ignoring letter case.
    """
    by_key: dict[str, dict[str, str]] = {}
    for tag in tags:
        by_key.setdefault(case_key(tag.case_id), {})[tag.tag.casefold()] = tag.tag
    order = {tag: index for index, tag in enumerate(KNOWN_TAGS)}

    def listed(key: str) -> tuple[str, ...]:
        case_tags = by_key.get(key, {}).values()
        return tuple(
            sorted(case_tags, key=lambda tag: (order.get(tag, len(order)), tag.casefold()))
        )

    named = tuple(listed(key) if key in by_key else () for key in table.keys)
    counted = Counter(tag for case_tags in named for tag in case_tags)
    free = [tag for tag, _ in counted.most_common(_MOST_TAGS) if tag not in KNOWN_TAGS]
    values = (*KNOWN_TAGS, *sorted(free))
    table = _with_several(replace(table, tags=named), TAG, "own tag", values, named)
    return table


def _with_several(
    table: CaseTable,
    name: str,
    title: str,
    values: Sequence[str],
    named: Sequence[Sequence[str]],
) -> CaseTable:
    """Return the table with a facet that can have several values in each row."""
    places = {value: index for index, value in enumerate(values)}
    bits = np.zeros(len(named), dtype=np.uint64)
    texts = list(table.plain_texts)

    def fill(start: int, stop: int) -> None:
        for row in range(start, stop):
            bits[row] = sum(1 << places[value] for value in named[row] if value in places)
            further = [failure.kind.value for failure in table.failures[row]] + list(
                table.tags[row]
            )
            if further:
                texts[row] = f"{texts[row]} {' '.join(further).lower()}"

    in_chunks(len(named), fill, "Sorting the cases")
    key = text_key(name, [", ".join(row_values).lower() for row_values in named])
    facet = facet_of(name, title, tuple(values), bits)
    return replace(table.with_part(facet, key), texts=tuple(texts))
