"""Write an .xlsx file row by row with little memory use, so that it can be cancelled."""

import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.io.files.save import saving

Cell: TypeAlias = str | float | bool | None

NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML cannot hold."""
_LIKE_AN_ESCAPE: Final = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""Pattern of texts that spreadsheet programs read as an escaped character.

``_x0041_`` is read as a character; ``_x005F_`` is an escaped underscore.
"""

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time in a zip file; a constant time gives equal bytes for equal tables."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FORMATS: Final = "http://schemas.openxmlformats.org"
_MAIN: Final = f"{_FORMATS}/spreadsheetml/2006/main"
_LINKS: Final = f"{_FORMATS}/officeDocument/2006/relationships"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"

_PARTS: Final = (
    (
        "[Content_Types].xml",
        f'<Types xmlns="{_FORMATS}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        "</Types>",
    ),
    (
        "_rels/.rels",
        f'<Relationships xmlns="{_FORMATS}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
    ),
    (
        "xl/_rels/workbook.xml.rels",
        f'<Relationships xmlns="{_FORMATS}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_LINKS}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
    ),
)
"""The minimal parts of a workbook. Source: ECMA-376, Office Open XML, part 1."""


def write_workbook(
    rows: Iterable[Sequence[Cell]],
    n_rows: int,
    path: Path,
    *,
    name: str,
    overwrite: bool = False,
) -> None:
    """Write rows as the only sheet of an .xlsx file; nan and None are empty cells.

    Numbers have as many digits as are needed to read them back exactly. Characters that
    spreadsheets refuse become "?"; a text that starts with = is no formula. Cancelled work leaves
    no file.

    Raises
    ------
    SaveConflictError
        If `path` exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    with saving(path, overwrite=overwrite) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
            for part, text in (*_PARTS, ("xl/workbook.xml", _format_workbook(name))):
                book.writestr(_make_entry(part), _HEAD + text)
            with book.open(_make_entry("xl/worksheets/sheet1.xml"), "w", force_zip64=True) as sheet:
                sheet.write(f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
                for row in paced(_format_rows(rows), f"Writing {path.name}", n_rows):
                    sheet.write(row)
                sheet.write(b"</sheetData></worksheet>")
        report_progress(n_rows, n_rows, f"Writing {path.name}")


def _make_entry(part: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(part, _EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _format_workbook(name: str) -> str:
    quoted = escape(name, {'"': "&quot;"})
    return (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>'
        f'<sheet name="{quoted}" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )


def _format_rows(rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    letters: list[str] = []
    for number, row in enumerate(rows, start=1):
        while len(letters) < len(row):
            letters.append(_name_column(len(letters)))
        cells = (_format_cell(f"{letters[k]}{number}", value) for k, value in enumerate(row))
        yield f'<row r="{number}">{"".join(cells)}</row>'.encode("utf-8", "replace")


def _format_cell(place: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{value:d}</v></c>'
    if isinstance(value, str):
        if not value:
            return ""
        text = escape(_LIKE_AN_ESCAPE.sub("_x005F_", NOT_IN_XML.sub("?", str(value))))
        # XML readers turn a bare carriage return into a line feed.
        text = text.replace("\r", "&#13;")
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
    number = value if isinstance(value, int) else float(value)
    return f'<c r="{place}"><v>{number!r}</v></c>' if math.isfinite(number) else ""


def _name_column(place: int) -> str:
    """Return the letters of a column: A for 0, AA for 26."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
