"""The table of scored cases for filtering, searching and sorting, with up to 100,000 rows.

Slow functions report their progress; values that the window needs while drawing (a cell, a count)
are stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.scoring.case.failure_kinds import Failure

STATUS_TEXTS: Final = {
    ScoreStatus.OK: "scored",
    ScoreStatus.PREDICTION_MISSING: "no prediction",
    ScoreStatus.REFERENCE_MISSING: "no reference",
    ScoreStatus.PREDICTION_EMPTY: "prediction empty",
    ScoreStatus.REFERENCE_EMPTY: "reference empty",
    ScoreStatus.BOTH_EMPTY: "both empty",
    ScoreStatus.GRID_MISMATCH: "other grid",
    ScoreStatus.UNREADABLE: "unreadable",
    ScoreStatus.NOT_FINITE: "not finite",
    ScoreStatus.TOO_MANY_LABELS: "too many labels",
    ScoreStatus.SEVERAL_FILES: "several files",
    ScoreStatus.REFERENCE_UNREADABLE: "reference unreadable",
    ScoreStatus.TIME_LIMIT: "over the time limit",
    ScoreStatus.WORKER_LOST: "worker lost",
}
"""The text shown for each status."""


def name_status(row: CaseScore) -> str:
    """Return the text shown for the status of a row: a scored mask may not overlap at all."""
    return "no overlap" if row.is_disjoint else STATUS_TEXTS[row.status]


WORST_FIRST: Final = ""
"""The sort key of the initial order."""

_CHUNK: Final = 5000
"""Number of rows between two progress reports."""
_MOST_VALUES: Final = 63
_SORTED_LETTERS: Final = 48
"""Number of letters used for sorting, since numpy pads all texts to the longest."""


@dataclass(frozen=True, slots=True, eq=False)
class Facet:
    """A property by which rows are filtered.

    `values` are the texts of its values, 63 at most. Bit k of ``bits[row]``, (n,) uint64, tells
    whether the row has the k-th value; a row can have several values, such as failure kinds.
    `counts` are the numbers of rows with each value.
    """

    name: str
    title: str
    values: tuple[str, ...]
    counts: tuple[int, ...]
    bits: NDArray[np.uint64]

    def has(self, value: str) -> NDArray[np.bool_]:
        """Return a boolean for each row (n,): whether the row has `value`."""
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
    """The cases of a model in order of id, with the data for filtering and sorting.

    `worst` (n,) intp is the order with the worst first, `plain_texts` the searched text of each row
    (lower case), and `texts` the same with failure kinds and tags. `failures` and `tags` hold the
    failure kinds and tags of each row; `knows_failures` tells whether failure kinds were
    determined.
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
        """Return the facet with a name, None if there is none."""
        return next((facet for facet in self.facets if facet.name == name), None)

    def with_part(self, facet: Facet, key: SortKey) -> "CaseTable":
        """Return the table with a new or replaced facet and sort key."""
        facets = [other for other in self.facets if other.name != facet.name]
        keys = [other for other in self.sort_keys if other.name != key.name]
        facets += [facet] if facet.values else []
        return replace(self, facets=tuple(facets), sort_keys=(*keys, key))


@dataclass(frozen=True, slots=True)
class CaseQuery:
    """A query: rows with all chosen (facet, value) pairs and all words, sorted by a key."""

    chosen: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    sort: str = WORST_FIRST
    upwards: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The selected rows in order: `order` (m,) intp holds row indices."""

    order: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.order)

    def row_at(self, place: int) -> int:
        """Return the table's row at a position of the selection."""
        return int(self.order[place])

    def place_of(self, row: int) -> int | None:
        """Return the position of a table row in the selection, None if it is filtered out."""
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
        # Negated instead of reversed, so that unknown rows stay last and ties stay worst first.
        order = order[np.argsort((key if query.upwards else -key)[order], kind="stable")]
    elif not query.upwards:
        order = order[::-1]
    return Selection(order[is_shown[order]])


def facet_of(name: str, title: str, values: Sequence[str], bits: NDArray[np.uint64]) -> Facet:
    """Return a facet, leaving out values that no row has."""
    counted = [(k, value, int(_read_bit(bits, k).sum())) for k, value in enumerate(values)]
    there = [(k, value, n) for k, value, n in counted if n]
    packed = np.zeros(bits.shape, dtype=np.uint64)
    for new, (old, _value, _n) in enumerate(there):
        packed |= _read_bit(bits, old).astype(np.uint64) << np.uint64(new)
    return Facet(name, title, tuple(v for _, v, _ in there), tuple(n for *_, n in there), packed)


def in_chunks(total: int, work: Callable[[int, int], None], text: str) -> None:
    """Call ``work(start, stop)`` for some thousand rows at a time."""
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
    """Return the alphabetical rank of each text, (n,) float64; NaN for an empty text."""
    letters = max(1, min(max(map(len, texts), default=0), _SORTED_LETTERS))
    array = np.empty(len(texts), dtype=f"<U{letters}")

    def fill(start: int, stop: int) -> None:
        array[start:stop] = texts[start:stop]

    in_chunks(len(texts), fill, "Sorting the cases")
    ranks = np.unique(array, return_inverse=True)[1].astype(np.float64)
    ranks[array == ""] = np.nan
    return ranks


def text_key(name: str, texts: Sequence[str]) -> SortKey:
    """Return the sort key of a column of texts; empty texts come last."""
    return SortKey(name, (ranks_of_texts(texts)))


def worst_first(
    ids: NDArray[np.float64], dsc: NDArray[np.float64], distance_mm: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the order of the cases (n,): cases without a Dice first, then by ascending Dice.

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
            f"expected at most {_MOST_VALUES + 1} values of a facet, got value {place + 1}"
        )
    is_set: NDArray[np.bool_] = (bits >> np.uint64(place)) & np.uint64(1) > 0
    return is_set
