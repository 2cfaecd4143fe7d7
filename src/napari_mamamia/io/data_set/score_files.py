"""Read score and response tables of other software row by row, and report invalid rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.records import CaseFailure, ScoreStatus
from napari_mamamia.io.clinical.rules import parse_pcr
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.cells import parse_id
from napari_mamamia.io.tables.headers import IDS, METRIC_DEFINITION, Column, needed, optional
from napari_mamamia.io.tables.table import Table, read_table

_DEFINITIONS: Final = 3
"""Largest number of different metric definitions that are reported.

If there are more, the column is assumed to contain notes.
"""

_SCORE_COLUMNS: Final = (
    IDS,
    needed("dsc", "dice", "dice_score", "dice_coefficient"),
    Column("norm_hd", ("norm_hd", "normhd"), ("nhd", "normalised_hd", "normalized_hd")),
    optional("hausdorff95_mm", "hd95_mm"),
    optional("status"),
    optional(METRIC_DEFINITION),
)
_RESPONSE_COLUMNS: Final = (
    IDS,
    needed("pcr", "pcr_pred", "pred_pcr", "predicted_pcr", "pcr_prediction"),
    optional(
        "score", "probability", "prob", "pcr_score", "pcr_prob", "pcr_probability",
        "prob_pcr", "probability_pcr", "y_score", "y_prob",
    ),
    optional(METRIC_DEFINITION),
)  # fmt: skip
_STATUSES: Final = {status.value: status for status in ScoreStatus}
_BOUNDS: Final[Mapping[str, float]] = {"dsc": 1.0, "score": 1.0}
"""Largest possible value of each column whose values are bounded."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A case's Dice (0 to 1), normalised Hausdorff distance, and HD95 in mm; NaN if undefined.

    `status` is the case's status in the tables of this software; an unknown status is treated as
    ok.
    """

    case_id: str
    dsc: float
    norm_hd: float
    status: ScoreStatus = ScoreStatus.OK
    hausdorff95_mm: float = math.nan


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """The predicted response of a case, with its probability (NaN if missing)."""

    case_id: str
    pcr: bool
    score: float


T = TypeVar("T", ScoreRow, ResponseRow)


@dataclass(frozen=True, slots=True)
class ReadRows(Generic[T]):
    """The valid rows of a table in order, and a failure for each invalid row.

    A failure contains the row number. `unnamed` is the number of failures without a case id.
    `definition` is the table's description of how its numbers were computed, or "". A case with two
    rows is among the failures, and neither row is in `rows`, because it is unknown which row is
    correct. `notes` tell the user about rows that are not cases and about the encoding.
    """

    rows: tuple[T, ...]
    failures: tuple[CaseFailure, ...]
    unnamed: frozenset[str] = frozenset()
    definition: str = ""
    notes: tuple[str, ...] = ()


@reads("a readable score table", "save it again as .xlsx or CSV UTF-8")
def read_score_table(path: Path) -> ReadRows[ScoreRow]:
    """Return the columns case_id (or patient_id), dsc, norm_hd and hausdorff95_mm of a table.

    Only the first two are required. An empty cell is an undefined number. A row is invalid if it
    has neither Dice nor NormHD (unless its status states that the prediction is empty), a number
    outside its range, no id, or the id of another row. Letter case does not distinguish case ids. A
    row or column named ``metric_definition`` states how the numbers were computed; in a row, the
    second cell contains the text. Further columns are ignored.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column, or has no row.
    """

    def row(case_id: str, cells: Mapping[str, object], numbers: Mapping[str, float]) -> ScoreRow:
        dsc, norm_hd = numbers["dsc"], numbers.get("norm_hd", math.nan)
        status = _STATUSES.get(str(cells.get("status") or ""), ScoreStatus.OK)
        has_number = not (math.isnan(dsc) and math.isnan(norm_hd))
        if not has_number and status is not ScoreStatus.PREDICTION_EMPTY:
            raise ValueError("dsc and norm_hd are both empty")
        return ScoreRow(case_id, dsc, norm_hd, status, numbers.get("hausdorff95_mm", math.nan))

    columns = ("dsc", "norm_hd", "hausdorff95_mm")
    return _read_rows(read_table(path, _SCORE_COLUMNS), columns, row)


@reads("a readable response table", "save it again as .xlsx or CSV UTF-8")
def read_response_table(path: Path) -> ReadRows[ResponseRow]:
    """Return the columns case_id (or patient_id), pcr and score of a table.

    `pcr` is the predicted class (0 or 1), and `score` (or probability) is the probability of
    response. The column score may be missing, and its cells may be empty. Invalid rows and ids are
    treated as in `read_score_table`.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column, or has no row.
    """

    def row(case_id: str, cells: Mapping[str, object], numbers: Mapping[str, float]) -> ResponseRow:
        pcr = parse_pcr(cells["pcr"])
        if pcr is None:
            raise ValueError("pcr is empty, but each case needs a prediction of 0 or 1")
        return ResponseRow(case_id, pcr, numbers.get("score", math.nan))

    return _read_rows(read_table(path, _RESPONSE_COLUMNS), ("score",), row)


def _read_rows(
    table: Table,
    number_columns: Sequence[str],
    parse: Callable[[str, Mapping[str, object], Mapping[str, float]], T],
) -> ReadRows[T]:
    path = table.path
    columns = {name: table.column(name) for name in table.header.places}
    numbers, bad_cells = {}, dict[int, str]()
    for name in filter(table.has, number_columns):
        numbers[name], bad = table.numbers(name, low=0, high=_BOUNDS.get(name, math.inf))
        bad_cells = {cell.row: cell.reason for cell in bad} | bad_cells
    definitions = [
        line[1]
        for line in table.comments
        if len(line) > 1 and line[0].lstrip("# ").casefold().rstrip(":") == METRIC_DEFINITION
    ]
    rows: dict[str, T] = {}
    failures: list[CaseFailure] = []
    unnamed: set[str] = set()
    twice: set[str] = set()
    first_row: dict[str, int] = {}
    for index, line in enumerate(table.rows):
        cells = {name: column[index] for name, column in columns.items()}
        name = f"row {line.number}"
        unnamed.add(name)
        try:
            name = parse_id(cells["case_id"])
            unnamed.discard(f"row {line.number}")
            key = case_key(name)
            if key in first_row:
                twice.add(key)
                raise ValueError(  # noqa: TRY301
                    f"the case is already in row {first_row[key]}, so neither row counts"
                )
            first_row[key] = line.number
            if reason := line.problem or bad_cells.get(index, ""):
                raise ValueError(reason)  # noqa: TRY301
            definitions.append(str(cells.get(METRIC_DEFINITION) or ""))
            rows[key] = parse(
                name, cells, {name: column[index] for name, column in numbers.items()}
            )
        except ValueError as reason:
            failures.append(CaseFailure(name, f"row {line.number} of {path.name}: {reason}"))
    if not rows:
        unusable = "the only row cannot be used"
        if len(failures) > 1:
            unusable = f"none of the {len(failures):,} rows can be used"
        raise FormatError(
            f"expected a row for each case in {path}, but "
            + (
                (f"{unusable} ({failures[0].reason}): correct the table")
                if failures
                else (
                    "no row follows the header: check whether the program that wrote the file "
                    "finished"
                )
            )
        )
    words = [text.strip() for text in dict.fromkeys(definitions) if text.strip()]
    return ReadRows(
        tuple(row for key, row in rows.items() if key not in twice),
        tuple(failures),
        frozenset(unnamed),
        "; ".join(words[:_DEFINITIONS]),
        tuple(f"{path.name}: {note}" for note in table.notes),
    )
