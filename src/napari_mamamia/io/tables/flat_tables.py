"""Write flat records as a table: .csv, .xlsx and .parquet, one row for each record."""

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.files.csv_text import as_csv_text
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.tables.workbook_writer import write_workbook

_LINE_END: Final = "\n"

Cell = str | float


def write_flat_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    n_rows: int,
    path: Path,
    *,
    name: str = "table",
    overwrite: bool = False,
) -> None:
    """Write a header and rows in the format of the suffix: ``.csv``, ``.xlsx`` or ``.parquet``.

    Numbers have as many digits as are needed to read them back exactly, whole ones no point; nan
    and infinite ones are empty cells. `n_rows` is for the progress, `name` is the sheet's.
    Cancelled work leaves no file.

    Raises
    ------
    FormatError
        If `path` has another suffix.
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        # counts are floats like all other numbers of such a table: 5.0, so that a column has one
        # type
        plain = ([cell if isinstance(cell, str) else float(cell) for cell in row] for row in rows)
        cells = chain([columns], plain)
        return write_workbook(cells, n_rows + 1, path, name=name, overwrite=overwrite)
    if suffix == ".csv":
        return _write_csv(columns, rows, n_rows, path, overwrite)
    if suffix == ".parquet":
        return _write_parquet(columns, rows, path, overwrite)
    raise FormatError(
        f"expected a table as .csv, .xlsx or .parquet, got {path}: choose one of them"
    )


def _write_parquet(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], path: Path, overwrite: bool
) -> None:
    arrow: Any = import_module(
        "pyarrow"
    )  # imported here: it takes 0.1 s, which only such a table should cost
    cells = list(rows)
    table = {}
    for index, name in enumerate(columns):
        values = [row[index] for row in cells]
        if all(isinstance(value, str) for value in values):
            table[name] = arrow.array(values, type=arrow.string())
        else:
            numbers = [float(value) if math.isfinite(float(value)) else None for value in values]
            table[name] = arrow.array(numbers, type=arrow.float64())
    with saving(path, overwrite=overwrite) as temporary:
        import_module("pyarrow.parquet").write_table(arrow.table(table), temporary)


def write_parquet_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    path: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Write a table as ``.parquet``: a column with numbers is float64, others are texts.

    In a column of numbers "" and nan are missing.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    arrow: Any = import_module(
        "pyarrow"
    )  # imported here: it takes 0.1 s, which only writing a table should cost
    arrays = {}
    for index, name in enumerate(columns):
        cells = [row[index] for row in rows]
        if any(isinstance(cell, float) for cell in cells):
            plain = [cell if isinstance(cell, float) and isfinite(cell) else None for cell in cells]
            arrays[name] = arrow.array(plain, type=arrow.float64())
        else:
            arrays[name] = arrow.array(cells, type=arrow.string())
    with saving(path, overwrite=overwrite) as temporary:
        import_module("pyarrow.parquet").write_table(arrow.table(arrays), temporary)


def _write_csv(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    n_rows: int,
    path: Path,
    overwrite: bool,
) -> None:
    with saving(path, overwrite=overwrite) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            stream.write(",".join(map(_format_cell, columns)) + _LINE_END)
            for row in paced(rows, f"Writing {path.name}", n_rows):
                stream.write(",".join(map(_format_cell, row)) + _LINE_END)
        report_progress(n_rows, n_rows, f"Writing {path.name}")


def _format_cell(value: Cell) -> str:
    if isinstance(value, str):
        text = as_csv_text(value)
        quoted = any(mark in text for mark in ',"\r\n') or text != text.strip()
        return '"' + text.replace('"', '""') + '"' if quoted else text
    return repr(float(value)).removesuffix(".0") if math.isfinite(value) else ""
