"""Write flat records as a .csv, .xlsx or .parquet table, with one row for each record."""

import math
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import FormatError, MissingExtraError
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.files.csv_text import as_csv_text
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.tables.spreadsheets import write_workbook

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
    """Write a header and rows in the format that the suffix of the path indicates.

    The suffix is ``.csv``, ``.xlsx`` or ``.parquet``. Numbers have as many digits as are needed to
    read them back exactly, and whole numbers have no decimal point; NaN and infinite numbers become
    empty cells. `n_rows` is used for the progress, and `name` is the name of the sheet. If the work
    is cancelled, no file remains.

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
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        # Counts are floats like all other numbers in such a table, such as 5.0, so that a column
        # has one type.
        plain = ([cell if isinstance(cell, str) else float(cell) for cell in row] for row in rows)
        cells = chain([columns], plain)
        return write_workbook(cells, n_rows + 1, path, name=name, overwrite=overwrite)
    if suffix == ".csv":
        return _write_csv(columns, rows, n_rows, path, overwrite)
    if suffix == ".parquet":
        return write_parquet_table(columns, list(rows), path, overwrite=overwrite)
    raise FormatError(
        f"expected a file name that ends in .csv, .xlsx or .parquet, but got {path}: choose one "
        "of these formats"
    )


def can_write_parquet() -> bool:
    """Return whether pyarrow (the extra ``parquet``) is installed."""
    return find_spec("pyarrow") is not None


def import_parquet(module: str = "pyarrow") -> Any:
    """Import and return a module of pyarrow; this is done on demand, because it takes 0.1 s.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error


def write_parquet_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    path: Path,
    *,
    texts: Collection[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a table as ``.parquet`` with string and float64 columns.

    In a number column, strings and values that are not finite become missing values.

    Parameters
    ----------
    columns, rows
        The names of the columns, and the cells of each row.
    path
        The file to write.
    texts
        Names of string columns; by default the columns without numbers.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    arrow = import_parquet()
    arrays = {}
    for index, name in enumerate(columns):
        report_progress(index, len(columns), f"Writing {path.name}")
        cells = [row[index] for row in rows]
        if name in texts if texts is not None else all(isinstance(cell, str) for cell in cells):
            arrays[name] = arrow.array(map(str, cells), type=arrow.string())
            continue
        numbers = [
            cell if not isinstance(cell, str) and math.isfinite(cell) else None for cell in cells
        ]
        arrays[name] = arrow.array(numbers, type=arrow.float64())
    with saving(path, overwrite=overwrite) as temporary:
        import_parquet("pyarrow.parquet").write_table(arrow.table(arrays), temporary)
    report_progress(len(columns), len(columns), f"Writing {path.name}")


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
