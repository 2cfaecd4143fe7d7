"""Write score tables and summaries, and read them back without loss."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import readable_name
from napari_mamamia.core.plugins import list_names
from napari_mamamia.core.records import (
    METRIC_GROUP,
    SCORE_COLUMNS,
    CaseScore,
    ScoreStatus,
    list_score_columns,
)
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.tables.flat_tables import write_flat_table, write_parquet_table
from napari_mamamia.io.tables.text_rows import read_own_rows

_TEXTS: Final = frozenset(field.name for field in fields(CaseScore) if field.type is not float) - {
    "further"
}
_FIRST: Final = frozenset(
    [
        "case_id",
        "status",
        "dsc",
        "iou",
        "hausdorff95_mm",
        "hausdorff95_voxels",
        "hausdorff_mm",
        "assd_mm",
        "nsd_1mm",
        "nsd_2mm",
        "norm_hd",
        "volume_reference_mm3",
        "volume_prediction_mm3",
        "profile",
        "warning",
        "reason",
    ]
)
"""Columns that the table has in every version; later columns may be missing."""


def write_case_scores(rows: Sequence[CaseScore], path: Path, *, overwrite: bool = False) -> None:
    """Write a table with a row for each case and the columns from `list_score_columns`.

    The suffix determines the format: ``.csv``, ``.xlsx`` (one sheet "case_scores", in which invalid
    characters become "?") or ``.parquet`` (strings and float64). Numbers have as many digits as are
    needed to read them back exactly. NaN and infinite values are empty cells. If the work is
    cancelled, no file remains.

    Raises
    ------
    FormatError
        If `path` has a different suffix.
    MissingExtraError
        If the suffix is ``.parquet`` and pyarrow is not installed.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    columns = list_score_columns(rows)
    cells = [[getattr(row, name) for name in columns] for row in rows]
    if path.suffix.lower() == ".parquet":
        write_parquet_table(columns, cells, path, texts=_TEXTS, overwrite=overwrite)
    else:
        write_flat_table(columns, cells, len(rows), path, name="case_scores", overwrite=overwrite)


@reads("a score table", "score the cases again")
def read_case_scores(path: Path) -> tuple[CaseScore, ...]:
    """Return the rows of a score table, with NaN for empty cells; other columns are ignored.

    Columns that a table from an earlier version lacks become NaN, or "" for strings.

    Raises
    ------
    FormatError
        If the file cannot be read, lacks a column, or a cell has a wrong type. The message names
        the file, line and column.
    """
    try:
        rows = read_own_rows(path)
    except (OSError, ValueError, csv.Error) as error:
        raise FormatError(
            f"expected a score table in {path}, but it cannot be read ({error}): "
            "score the cases again"
        ) from error
    there = [str(name) for name in rows[0]] if rows else []
    names = (*SCORE_COLUMNS, *list_names(METRIC_GROUP))
    columns = tuple(name for name in names if name in there)
    missing = [n for n in SCORE_COLUMNS if n in _FIRST and n not in there]
    if missing:
        raise FormatError(
            f"expected the columns of a score table in {path}, but "
            f"{', '.join(missing)} are missing: score the cases again"
        )
    return tuple(
        _parse_score(dict(zip(there, map(str, row), strict=False)), columns, path, line)
        for line, row in enumerate(rows[1:], start=2)
        if row
    )


def write_json(content: object, path: Path, *, overwrite: bool = False) -> None:
    """Write dataclasses, mappings, sequences and plain values to a JSON file.

    NaN and infinite numbers become null, enum members become their values, paths and mapping keys
    become strings (file names as in `readable_name`), and numpy scalars and arrays become numbers
    and lists.

    Raises
    ------
    TypeError
        If `content` contains any other type.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    text = json.dumps(plain_content(content), indent=2, ensure_ascii=False, allow_nan=False)
    write_text_atomically(path, text + "\n", overwrite=overwrite)


def _parse_score(
    row: Mapping[str, str], columns: Sequence[str], path: Path, line: int
) -> CaseScore:
    values: dict[str, Any] = {}
    for name in columns:
        cell = row.get(name)
        try:
            values[name] = _parse_value(name, cell)
        except ValueError as error:
            raise FormatError(
                f"expected {'a status' if name == 'status' else 'a number or an empty cell'} in "
                f"column {name} of {path}, line {line}, but found {cell!r}: score the cases again"
            ) from error
    further = tuple((name, values.pop(name)) for name in columns if name not in SCORE_COLUMNS)
    return CaseScore(**values, further=further)


def _parse_value(name: str, cell: str | None) -> str | float:
    if cell is None:
        raise ValueError("the row is too short")
    if name == "status":
        return ScoreStatus(cell)
    if name in _TEXTS:
        return cell
    return float(cell) if cell else math.nan


def plain_content(value: Any) -> Any:
    """Return `value` as JSON types, converted as in `write_json`."""
    if isinstance(value, Enum):
        return plain_content(value.value)
    if isinstance(value, np.generic | np.ndarray):
        return plain_content(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str | Path):
        return readable_name(str(value))
    return _plain_container(value)


def _plain_container(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_content(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_format_key(key): plain_content(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain_content(item) for item in value]
    raise TypeError(f"cannot write {type(value).__name__} as JSON")


def _format_key(key: Any) -> str:
    return readable_name(str(key.value if isinstance(key, Enum) else key))
