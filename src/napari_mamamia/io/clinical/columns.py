"""Find the column for each field in a clinical table, by name or by the user's choice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as record_field
from itertools import chain, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import FormatError, Remedy
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables import headers
from napari_mamamia.io.tables.tables import write_json

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "case_id": ("patient_id", "case_id"),
        "dataset": ("dataset",),
        "age": ("age",),
        "menopausal_status": ("menopause", "menopausal_status"),
        "breast_density": ("breast_density",),
        "tumour_subtype": ("tumor_subtype", "tumour_subtype"),
        "pcr": ("pcr",),
        "acquisition_times_s": ("acquisition_times",),
    }
)
"""Column names for each field, in lower case with ``_`` for spaces; the first is written."""

COLUMNS_FILE: Final = "clinical_columns.json"
"""Name of a file next to a clinical table that defines its columns."""
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Columns chosen by the user: the column name for each field, or None for an absent field.

    Other fields are found by `COLUMNS`. `source` is the file that fixes the columns, or "".
    """

    names: tuple[tuple[str, str | None], ...] = ()
    source: str = record_field(default="", compare=False)

    @property
    def absent(self) -> frozenset[str]:
        """The fields that the user declared to be absent."""
        return frozenset(field for field, name in self.names if name is None)

    def with_names(self, names: Mapping[str, str | None]) -> "ColumnChoice":
        """Return a copy with some columns renamed."""
        return ColumnChoice(tuple({**dict(self.names), **names}.items()), self.source)

    def column(self, field: str) -> str | None:
        """Return the column name chosen for a field, or None."""
        return dict(self.names).get(field)

    def __str__(self) -> str:
        return ", ".join(f"{field}: {name or 'none'}" for field, name in self.names)


BY_NAME: Final = ColumnChoice()
"""A choice without columns: every field is found by the names in `COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Header:
    """Column indices, counted from 0: those of fields by field, the others by column name.

    `names` are the column names, and `row` is the index of the header in the sheet.
    """

    row: int
    names: Mapping[int, str]
    fields: Mapping[str, tuple[int, ...]]
    other: Mapping[str, int]


@reads("a JSON file that names the columns of a clinical table", "see docs/clinical_tables.md")
def read_columns(path: Path) -> ColumnChoice:
    """Return the column choice in a JSON file.

    An example is ``{"age": "Age (y)", "breast_density": null}``.

    Raises
    ------
    FormatError
        If the file cannot be read, or is not an object of fields and column names.
    """
    content = read_json(path, _MOST_BYTES)
    if not isinstance(content, dict):
        raise ValueError("the content is not an object that maps fields to column names")  # noqa: TRY004 - told with the file
    for field, name in content.items():
        if field not in COLUMNS:
            raise ValueError(f"{field!r} is not one of the fields {', '.join(COLUMNS)}")
        if name is not None and not (isinstance(name, str) and name.strip()):
            raise ValueError(
                f"expected the column for {field} to be a column name or null, but found {name!r}"
            )
    if "case_id" in content and content["case_id"] is None:
        raise ValueError("case_id has no column, although it is required")
    return ColumnChoice(tuple(content.items()), path.name)


def columns_for(table: Path, choice: ColumnChoice = BY_NAME) -> ColumnChoice:
    """Return the columns of a table, chosen by the user or by the JSON file next to the table.

    Raises
    ------
    FormatError
        If ``clinical_columns.json`` next to the table cannot be read.
    """
    beside = table.with_name(COLUMNS_FILE)
    return read_columns(beside) if choice == BY_NAME and beside.is_file() else choice


def write_columns(choice: ColumnChoice, path: Path, *, overwrite: bool = False) -> None:
    """Write a column choice in the format that `read_columns` reads.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    write_json(dict(choice.names), path, overwrite=overwrite)


def find_header(rows: Sequence[Sequence[object]], choice: ColumnChoice = BY_NAME) -> Header | None:
    """Return the first row that contains the name of an id column, or None.

    Below title rows, a header must also name another field or every fixed column, because a legend
    that explains the fields also contains the names of id columns.

    Raises
    ------
    FormatError
        If the header lacks a fixed column.
    """
    for index, names in enumerate(rows[: headers.MOST_TITLES + 1]):
        header = _read_header(index, names, choice, rows[index + 1 :])
        if header is None or len(header.fields) == 1:
            header = _join_header(index, rows, choice) or header
        if header is None:
            continue
        fixed = [name for _, name in choice.names if name is not None]
        missing = [name for name in fixed if not _find_columns(header.names, [name])]
        if index and (missing if fixed else len(header.fields) == 1):
            continue
        if missing:
            raise FormatError(
                f"expected the fixed column {missing[0]!r} in row {index + 1}, but found "
                f"{', '.join(map(repr, header.names.values()))}: correct the column's name",
                remedies=[Remedy("columns", ("FILE",))],
            )
        return header
    return None


def _join_header(
    place: int, rows: Sequence[Sequence[object]], choice: ColumnChoice
) -> Header | None:
    if place + 1 >= len(rows):
        return None
    upper, lower = rows[place], rows[place + 1]
    joined = [
        low if headers.strip_name(low) else high
        for high, low in zip_longest(upper, lower, fillvalue=None)
    ]
    header = _read_header(place + 1, joined, choice, rows[place + 2 :])
    if header is None or len(header.fields) == 1:
        return None
    named = [
        index < len(lower) and bool(headers.strip_name(lower[index]))
        for index in chain(*header.fields.values())
    ]
    return header if any(named) and not all(named) else None


def _read_header(
    row: int, cells: Sequence[object], choice: ColumnChoice, below: Sequence[Sequence[object]]
) -> Header | None:
    """Return the columns in a header row, or None if there is no id column.

    If no column has a known name, the first column without a name may hold the ids, because pandas
    writes an index in this way.
    """
    names = {index: text for index, cell in enumerate(cells) if (text := headers.strip_name(cell))}
    fixed = dict(choice.names)
    fields: dict[str, tuple[int, ...]] = {}
    for field, aliases in COLUMNS.items():
        spellings: Sequence[str | None] = [fixed[field]] if field in fixed else aliases
        if field == "case_id" and field not in fixed:
            spellings = [
                next((alias for alias in reversed(aliases) if _find_columns(names, [alias])), None)
            ]
        places = _find_columns(names, [name for name in spellings if name is not None])
        if places:
            fields[field] = places
    is_index = "case_id" not in fixed and fields and headers.is_index_name(names.get(0, ""))
    if "case_id" not in fields and is_index and headers.holds_ids(below):
        fields = {"case_id": (0,), **fields}
        names = {0: names.get(0, "index"), **names}
    if "case_id" not in fields:
        return None
    taken = {index for places in fields.values() for index in places}
    return Header(row, names, fields, _list_other_columns(names, taken))


def _find_columns(names: Mapping[int, str], wanted: Iterable[str]) -> tuple[int, ...]:
    keys = {headers.spelled(name) for name in wanted}
    return tuple(index for index, name in names.items() if headers.spelled(name) in keys)


def _list_other_columns(names: Mapping[int, str], taken: set[int]) -> dict[str, int]:
    places: dict[str, int] = {}
    for index, text in names.items():
        if index not in taken:
            name, number = text, 1
            while name in places:
                number += 1
                name = f"{text} ({number})"
            places[name] = index
    return places
