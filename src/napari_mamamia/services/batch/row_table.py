"""A table of cases: the definitions of its columns, and the batch that computes its rows.

A command that measures cases consists of a row (a flat dataclass), a function that computes the row
from files, and `rows_of_batch`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from napari_mamamia.core.provenance import Setting, now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.services.batch.batch import run_batch
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.batch.work import STORE_NAME, CaseInputs, CaseWork, Place

OK: Final = "ok"
FAILED: Final = "failed"

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class _OfCase(Protocol):
    """A result with a case id."""

    @property
    def case_id(self) -> str: ...


Result = TypeVar("Result", bound=_OfCase)
Row = TypeVar("Row")


def text(definition: str, default: str = "") -> Any:
    """Return a dataclass field for a column of strings."""
    return field(default=default, metadata={"definition": definition})


def number(definition: str) -> Any:
    """Return a dataclass field for a column of numbers; NaN is written as an empty cell."""
    return field(default=math.nan, metadata={"definition": definition})


def definitions_of(row: type[Any]) -> tuple[tuple[str, str], ...]:
    """Return the name and definition of each column."""
    return tuple(
        (column.name, str(column.metadata.get("definition", "id of the case")))
        for column in fields(row)
    )


@dataclass(frozen=True, slots=True)
class RowSummary(Generic[Row]):
    """The result of a run: the rows of all cases, including failed cases, and the table's path."""

    rows: tuple[Row, ...]
    failures: tuple[CaseFailure, ...]
    table: Path
    n_reused: int = 0

    @property
    def folder(self) -> Path:
        """The output folder."""
        return self.table.parent


def rows_of_batch(
    inputs: Sequence[CaseInputs],
    work: CaseWork[Result],
    table: Path,
    row: type[Row],
    parameters: tuple[tuple[str, Setting], ...],
    *,
    read: frozenset[Path] = frozenset(),
    failed: Mapping[str, str] = NOTHING,
    rows_of: Callable[[Result], Sequence[Row]] | None = None,
    place: Place | None = None,
    existing: Existing = Existing.REFUSE,
    still_holds: Callable[[Result], bool] | None = None,
) -> RowSummary[Row]:
    """Run `work` for each case and write the rows to `table` as .csv and .xlsx.

    The table's folder is claimed for `parameters`, and every result is stored there as it arrives.

    Parameters
    ----------
    row
        The dataclass of a row; its first columns are case_id, status and reason.
    read
        The folders of the run's inputs, which must not be inside the output folder.
    failed
        Additional values for the row of a case that failed.
    rows_of
        A function that returns the rows for the result of a case; None if the result is the only
        row.
    place, existing, still_holds
        As in `run_batch`.

    Raises
    ------
    SaveConflictError
        If the folder holds other results.
    """
    folder = table.parent
    claim_folder(folder, work.name, parameters, existing, read)
    batch = run_batch(
        inputs,
        work,
        place,
        store=folder / STORE_NAME,
        existing=existing,
        here=lambda one: work.function(one, work.settings),
        still_holds=still_holds,
    )
    rows_by_case: dict[str, Sequence[Any]] = {
        result.case_id: (result,) if rows_of is None else rows_of(result)
        for result in batch.results
    }
    for failure in batch.failures:
        values: tuple[Any, ...] = (failure.case_id, FAILED, failure.reason)
        rows_by_case[failure.case_id] = (row(*values, **failed),)
    rows = tuple(line for input_ in inputs for line in rows_by_case[input_.case_id])
    columns = [name for name, _ in definitions_of(row)]
    cells = [astuple(line) for line in rows]
    for suffix in (".csv", ".xlsx"):
        write_flat_table(
            columns,
            cells,
            len(cells),
            table.with_suffix(suffix),
            name=table.stem,
            overwrite=existing is not Existing.REFUSE,
        )
    return RowSummary(rows, batch.failures, table, batch.n_reused)


def write_definitions(
    summary: RowSummary[Any],
    row: type[Any],
    settings: object,
    existing: Existing,
    further: Mapping[str, object] = NOTHING,
) -> None:
    """Write the column definitions and the settings to a JSON file named after the table."""
    content = {
        "software": software_version(),
        "created": now_utc(),
        "settings": settings,
        "n_cases": len(summary.rows),
        "n_failed": sum(line.status != OK for line in summary.rows),
        **further,
        "columns": dict(definitions_of(row)),
    }
    path = summary.table.with_suffix(".json")
    write_json(content, path, overwrite=existing is not Existing.REFUSE)
