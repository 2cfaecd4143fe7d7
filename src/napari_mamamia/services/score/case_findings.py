"""Add failure kinds and tags to the table of scored cases; each row can have several."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.scoring.case.failure_kinds import FailureKind
from napari_mamamia.services.score.case_facets import FAILURE, TAG
from napari_mamamia.services.score.case_table import (
    CaseTable,
    facet_of,
    in_chunks,
    text_key,
)
from napari_mamamia.services.score.case_tags import KNOWN_TAGS
from napari_mamamia.services.score.inspections import CaseInspection

_MOST_TAGS: Final = 60


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

    Case ids are compared without letter case.
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
