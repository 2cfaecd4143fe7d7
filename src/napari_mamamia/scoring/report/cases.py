"""The case table of a report with columns of numbers and of strings, for up to 100,000 rows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.core.records import CaseScore
from napari_mamamia.metrics.registry import MetricSpec, Place, metrics_at
from napari_mamamia.scoring.cohort.groups import TAG, Grouping
from napari_mamamia.scoring.report.content import CaseColumn, ModelReport, is_featured
from napari_mamamia.scoring.report.text import SIZES, UNKNOWN, name_status, number, variable_label

BYTES_IN_MB: Final = 1_000_000

_CELLS: Final = 20_000
"""Number of cells that are written in one uninterruptible step of about 10 ms."""

MOST_CHOICES: Final = 60
"""Largest number of different values for which a text column gets a filter."""

_PRINTED: Final = frozenset(
    ["case_id", "model", "status", "failure_kinds", "reason", "pcr", "predicted", "score"]
) | {spec.name for spec in metrics_at(Place.PAPER)}


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn:
    """One column with n cells.

    In a number column, `numbers` (n,) float64 are shown with `decimals` and are nan if unknown. In
    a string column, `texts` are the different values and `codes` (n,) the indices of the cases'
    values. `choices` are the values of the filter: the strings, or the single tags if a string
    joins several tags with "; ".
    """

    name: str
    label: str
    unit: str = ""
    decimals: int = 0
    numbers: NDArray[np.float64] | None = None
    texts: tuple[str, ...] = ()
    codes: NDArray[np.intp] | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_printed(self) -> bool:
        """Whether the column is printed; on the screen, all columns are displayed."""
        return self.name in _PRINTED

    @property
    def style(self) -> str:
        """The CSS classes of the column's cells."""
        named = ((self.is_number, "number"), (not self.is_printed, "screen"))
        long = (self.name == "reason", "long")
        return " ".join(name for holds, name in (*named, long) if holds)

    @property
    def is_number(self) -> bool:
        """Whether the cells are numbers."""
        return self.numbers is not None

    def cell(self, row: int) -> str:
        """Return the text of a cell."""
        if self.numbers is not None:
            return number(float(self.numbers[row]), self.decimals)
        return self.texts[int(self.codes[row])] if self.codes is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class CaseTable:
    """All columns and the initial row order: ascending by `sorted_by`, with unknown values last."""

    columns: tuple[TableColumn, ...]
    n_rows: int
    sorted_by: str

    @property
    def order(self) -> NDArray[np.intp]:
        """The row indices in the initial order, (n,)."""
        column = next((c for c in self.columns if c.name == self.sorted_by), None)
        if column is None or column.numbers is None:
            return np.arange(self.n_rows)
        return np.argsort(column.numbers, kind="stable")

    def page(self, n_rows: int) -> tuple[tuple[str, ...], ...]:
        """Return the texts of the first rows."""
        return tuple(
            tuple(column.cell(int(row)) for column in self.columns) for row in self.order[:n_rows]
        )


def case_table(models: Sequence[ModelReport]) -> CaseTable:
    """Return the case table of all models (see `case_table_job`)."""
    with listening(None):
        return case_table_job(models)


def case_table_job(models: Sequence[ModelReport]) -> CaseTable:
    """Return the cases of all models as one table, with the worst Dice (or pCR score) first.

    Columns without any known value are left out.
    """
    several = []
    for model in models:
        model_columns = _collect_columns(_make_columns(model))
        several.append(model_columns)
    if len(models) > 1:
        several = [
            [
                _make_text_column("model", "Model", [model.scores.name] * _n_rows(model)),
                *model_columns,
            ]
            for model, model_columns in zip(models, several, strict=True)
        ]
    sizes = [_n_rows(model) for model in models]
    names = list(
        dict.fromkeys(column.name for model_columns in several for column in model_columns)
    )
    joined = _collect_columns(_join_columns(name, several, sizes) for name in names)
    columns = tuple(column for column in joined if _is_known(column))
    return CaseTable(columns, sum(sizes), "dsc" if "dsc" in names else "")


def script_json(table: CaseTable) -> str:
    """Return the table as JSON for the inside of a ``<script>`` element.

    Numbers are rounded as displayed, and unknown values are null.
    """
    columns = []
    for index, column in enumerate(table.columns):
        parts = [f'"{name}":{_encode_json(value)}' for name, value in _describe_column(column)]
        cells, name = _list_cells(column)
        pieces = []
        for first in range(0, len(cells), _CELLS):
            report_progress(index, len(table.columns), "Writing the case table")
            pieces.append(_encode_json(cells[first : first + _CELLS])[1:-1])
        columns.append("{" + ",".join([*parts, f'"{name}":[{",".join(pieces)}]']) + "}")
    head = f'"sorted_by":{_encode_json(table.sorted_by)},"n_rows":{table.n_rows}'
    return "{" + head + ',"columns":[' + ",".join(columns) + "]}"


def _describe_column(column: TableColumn) -> list[tuple[str, object]]:
    named = ("name", "label", "unit", "decimals", "choices", "style")
    texts = [("texts", column.texts)] if column.numbers is None else []
    return [*((name, getattr(column, name)) for name in named), *texts]


def _encode_json(content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escapes = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"))
    for character, escaped in (*escapes, ("\u2029", "\\u2029")):
        text = text.replace(character, escaped)
    return text


def _list_cells(column: TableColumn) -> tuple[list[Any], str]:
    if column.numbers is None:
        return ([] if column.codes is None else column.codes.tolist()), "codes"
    rounded = np.round(column.numbers, column.decimals)
    undefined = ~np.isfinite(rounded)
    cells = rounded.astype(object)
    if not column.decimals:
        is_whole = np.abs(rounded) < 2**63
        cells[is_whole] = rounded[is_whole].astype(np.int64)
    cells[undefined] = None
    return cells.tolist(), "numbers"


def _n_rows(model: ModelReport) -> int:
    response = model.scores.response
    if model.scores.rows or response is None:
        return len(model.scores.rows)
    return len(response.predictions.case_ids)


def _collect_columns(columns: Iterable[TableColumn]) -> list[TableColumn]:
    table_columns = []
    for column in columns:
        report_progress(0, 1, "Writing the case table")
        table_columns.append(column)
    return table_columns


def _make_columns(model: ModelReport) -> Iterator[TableColumn]:
    rows = model.scores.rows
    if not rows and model.scores.response is not None:
        yield from _response_columns(model)
        return
    ids = [row.case_id for row in rows]
    yield _make_text_column("case_id", "Case", ids)
    yield _make_text_column("status", "Status", [name_status(row) for row in rows])
    for spec in metrics_at(Place.REPORT):
        yield _make_metric_column(spec, rows)
    if model.has_failure_kinds:
        yield _failure_kinds(model, ids)
    yield _make_tag_column("tags", "Tags", [row.tags for row in rows])
    yield from _group_columns(model, ids)
    for column in model.columns:
        yield _make_case_column(column, ids)
    yield from _make_cost_columns(rows)
    remarks = ["; ".join(text for text in (row.reason, row.warning) if text) for row in rows]
    yield _make_text_column("reason", "Reason or warning", remarks, has_filter=False)


def _response_columns(model: ModelReport) -> list[TableColumn]:
    result = model.scores.response
    if result is None:
        return []
    predictions, ids = result.predictions, list(result.predictions.case_ids)
    label = ["yes" if x == 1 else "no" if x == 0 else UNKNOWN for x in predictions.label]
    predicted = ["yes" if x == 1 else "no" for x in predictions.predicted]
    groups = [_make_group_column(grouping, ids, ids) for grouping in result.groupings]
    return [
        _make_text_column("case_id", "Case", ids),
        _make_text_column("pcr", "pCR", label),
        _make_text_column("predicted", "Predicted", predicted),
        TableColumn("score", "Probability of pCR", "", 3, predictions.score),
        *groups,
        *(_make_case_column(column, ids) for column in model.columns),
    ]


def _make_metric_column(spec: MetricSpec, rows: Sequence[CaseScore]) -> TableColumn:
    numbers = np.array([getattr(row, spec.name) for row in rows], dtype=np.float64)
    label = spec.heading[:1].upper() + spec.heading[1:]
    return TableColumn(spec.name, label, spec.unit.replace("mm3", "mm³"), spec.decimals, numbers)


def _failure_kinds(model: ModelReport, ids: Sequence[str]) -> TableColumn:
    kinds = [
        "; ".join(failure.kind.value for failure in model.failures.get(case_id, ()))
        for case_id in ids
    ]
    return _make_tag_column("failure_kinds", "Failure kinds", kinds)


def _make_cost_columns(rows: Sequence[CaseScore]) -> Iterator[TableColumn]:
    seconds = np.array([row.prediction_seconds for row in rows], dtype=np.float64)
    peak = np.array([row.peak_memory_bytes for row in rows], dtype=np.float64)
    title = "Peak memory of the process"
    yield TableColumn("prediction_seconds", "Prediction took", "s", 1, seconds)
    yield TableColumn("peak_memory_bytes", title, "MB", 0, peak / BYTES_IN_MB)
    yield _make_text_column("device", "Device", [row.device or UNKNOWN for row in rows])


def _make_tag_column(name: str, label: str, cells: Sequence[str]) -> TableColumn:
    column = _make_text_column(name, label, cells)
    single = dict.fromkeys(tag for text in column.texts for tag in text.split("; ") if tag)
    return TableColumn(
        column.name,
        column.label,
        texts=column.texts,
        codes=column.codes,
        choices=tuple(sorted(single)),
    )


def _group_columns(model: ModelReport, ids: Sequence[str]) -> Iterator[TableColumn]:
    result = model.scores.segmentation
    if result is None:
        return
    shown = [grouping for grouping in model.strata if is_featured(grouping.variable)]
    strata = [grouping for grouping in shown if not grouping.variable.startswith(TAG)]
    groupings = (*result.groupings, *strata)
    for grouping in groupings:
        yield _make_group_column(grouping, result.scores.case_ids, ids)


def _make_group_column(
    grouping: Grouping, grouped: Sequence[str], ids: Sequence[str]
) -> TableColumn:
    labels = {
        case_id: grouping.labels[code]
        for case_id, code in zip(grouped, grouping.codes.tolist(), strict=True)
        if code >= 0
    }
    label = SIZES.get(grouping.variable) or variable_label(grouping.variable)
    values = [labels.get(case_id, UNKNOWN) for case_id in ids]
    column = _make_text_column(f"group_{grouping.variable}", label, values)
    groups = tuple(text for text in grouping.labels if text in column.texts)
    choices = (*groups, UNKNOWN) if UNKNOWN in column.texts else groups
    return TableColumn(column.name, label, texts=column.texts, codes=column.codes, choices=choices)


def _make_case_column(column: CaseColumn, ids: Sequence[str]) -> TableColumn:
    values: Mapping[str, Any] = column.values
    if any(isinstance(value, str) for value in values.values()):
        return _make_text_column(
            column.name, column.label, [str(values.get(i, UNKNOWN)) for i in ids]
        )
    numbers = np.array([values.get(i, float("nan")) for i in ids], dtype=np.float64)
    return TableColumn(column.name, column.label, column.unit, column.decimals, numbers)


def _make_text_column(
    name: str, label: str, values: Sequence[str], *, has_filter: bool = True
) -> TableColumn:
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.intp)
    texts = tuple(places)
    offered = has_filter and name != "case_id" and 1 < len(texts) <= MOST_CHOICES
    return TableColumn(
        name, label, texts=texts, codes=codes, choices=tuple(sorted(texts)) if offered else ()
    )


def _join_columns(
    name: str, several: Sequence[Sequence[TableColumn]], sizes: Sequence[int]
) -> TableColumn:
    columns = [
        next((c for c in model_columns if c.name == name), None) for model_columns in several
    ]
    first = next(column for column in columns if column is not None)
    if len(columns) == 1:
        return first
    if first.is_number:
        parts = [
            c.numbers if c is not None and c.numbers is not None else np.full(n, np.nan)
            for c, n in zip(columns, sizes, strict=True)
        ]
        joined = np.concatenate(parts)
        return TableColumn(name, first.label, first.unit, first.decimals, joined)
    values = [
        c.cell(row) if c else UNKNOWN
        for c, n in zip(columns, sizes, strict=True)
        for row in range(n)
    ]
    column = _make_text_column(name, first.label, values)
    choices = tuple(dict.fromkeys(text for c in columns if c for text in c.choices))
    return TableColumn(
        name,
        first.label,
        texts=column.texts,
        codes=column.codes,
        choices=choices or (column.choices if name == "model" else ()),
    )


def _is_known(column: TableColumn) -> bool:
    if column.numbers is not None:
        return not np.isnan(column.numbers).all()
    return column.name == "case_id" or any(text not in ("", UNKNOWN) for text in column.texts)
