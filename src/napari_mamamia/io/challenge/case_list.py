"""A list of cases in a table: the column case_id or patient_id, each id once."""

from pathlib import Path

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.clinical.rules import parse_id
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.tables.spreadsheets import read_sheets

_NAMES = ("case_id", "patient_id")


@reads("a table with the column case_id", "save it again as .xlsx or CSV UTF-8")
def read_case_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of a table in its order.

    Raises
    ------
    FormatError
        If it has no such column, no row, an empty cell there, or an id twice.
    """
    sheet = next(read_sheets(path, f"Reading {path.name}"), None)
    rows = sheet.rows if sheet is not None else ()
    header = [str(name or "").strip().casefold() for name in (rows[0] if rows else ())]
    places = [header.index(name) for name in _NAMES if name in header]
    if not places:
        raise FormatError(
            f"expected the column case_id in {path}, found {', '.join(filter(None, header))}: "
            "name it so"
        )
    ids: dict[str, str] = {}
    for number, row in enumerate(rows[1:], start=2):
        cell = row[places[0]] if places[0] < len(row) else None
        if all(one is None or one == "" for one in row):
            continue
        case_id = parse_id(cell)
        if case_key(case_id) in ids:
            raise FormatError(
                f"expected each case once in {path}, but {case_id} of row {number} was there: "
                "remove it"
            )
        ids[case_key(case_id)] = case_id
    if not ids:
        raise FormatError(f"expected a row for each case in {path}, but there is none: add them")
    return tuple(ids.values())
