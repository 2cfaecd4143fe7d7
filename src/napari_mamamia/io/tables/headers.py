"""Find a table's header and columns, and separate cases from comments and totals."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MissingColumnsError
from napari_mamamia.core.names import name_some
from napari_mamamia.core.progress import paced
from napari_mamamia.io.tables.cells import (
    FORMULA_ERROR,
    PLAIN_NUMBER,
    UNSEEN,
    NumberStyle,
    is_blank,
    is_missing,
    is_plain_column,
    parse_number,
    style_of,
)
from napari_mamamia.io.tables.spreadsheets import Sheet, cell_name, wrong_length
from napari_mamamia.io.tables.text_rows import BLANKS_BETWEEN, has_blanks_between

_SUMMARY_WORDS: Final = """
mean means average averages avg median std stdev stddev sd sem se stderr var variance min minimum
max maximum sum total totals overall count iqr ci percentile quantile quartile gmean
mittelwert mittel durchschnitt standardabweichung stdabw stabw varianz summe gesamt insgesamt
gesamtergebnis moyenne moy m\u00e9diane mediane \u00e9cart ecart somme ensemble media mediana
promedio desviaci\u00f3n desviacion deviazione suma somma totale gemiddelde mediaan totaal
standaardafwijking medel
medelv\u00e4rde \u5e73\u5747 \u5e73\u5747\u503c \u5747\u503c \u4e2d\u4f4d\u6570
\u6807\u51c6\u5dee \u603b\u8ba1 \u5408\u8ba1
gesamtmittelwert vertrauensintervall konfidenzintervall m\u00e9dia \u015brednia suma
\u0441\u0440\u0435\u0434\u043d\u0435\u0435 \u043c\u0435\u0434\u0438\u0430\u043d\u0430
\u0441\u0443\u043c\u043c\u0430 skewness kurtosis aggregate summary qu
"""
_NUMBERS_OF_ALL: Final = frozenset(_SUMMARY_WORDS.split())
"""Names of summary rows, as used by programs and people."""
_OTHER_WORDS: Final = """
of over all cases case the and patients subjects samples rows values value n dice dsc score scores
hd nhd norm dev deviation standard error row result results lower upper low high bound limit
interval range confidence macro micro grand weighted geometric arithmetic fold folds type typ
est\u00e1ndar estandar de des der den aller alle f\u00e4lle et y und la le les los cas casos
t\u00edpica tipica foreground test val validation train general g\u00e9n\u00e9ral
g\u00e9n\u00e9rale number st nd rd th
"""
_BESIDE: Final = frozenset(_OTHER_WORDS.split())
_WHOLE: Final = frozenset({"all", "all cases", "alle", "alle f\u00e4lle", "tous", "todos", "n"})
MOST_TITLES: Final = 30
"""Largest number of rows above the header (our choice)."""


METRIC_DEFINITION: Final = "metric_definition"
"""First cell of a comment row that states how a table's numbers were computed."""


_INDEX_NAMES: Final = frozenset({"", "unnamed:_0", "index"})
_NAMED: Final = 5


_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)?")
_PERCENTILE: Final = re.compile(r"\d{1,2}(\.\d+)?\s?%")
_WITH_NUMBER: Final = frozenset(
    {"n", "ci", "percentile", "quantile", "quartile", "cases", "qu", "fold"}
)

_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_COHORT: Final = re.compile(r"[^\W\d_]{2,}\d?[_-]\d+|(?=.{8})[A-Z\d]+([_-][A-Z\d]+)+")
_LONG_NUMBER: Final = 3
_FEWEST: Final = 4
_MOST_SUMMARIES: Final = 12
_STATISTICS: Final[Mapping[str, Callable[[NDArray[np.float64]], SupportsFloat]]] = {
    "mean": np.mean,
    "median": np.median,
    "standard deviation": lambda values: np.std(values, ddof=1),
    "standard deviation (n)": np.std,
    "minimum": np.min,
    "maximum": np.max,
    "sum": np.sum,
    "count": len,
    "first quartile": lambda values: np.quantile(values, 0.25),
    "third quartile": lambda values: np.quantile(values, 0.75),
    "5th percentile": lambda values: np.quantile(values, 0.05),
    "95th percentile": lambda values: np.quantile(values, 0.95),
    "standard error": lambda values: np.std(values, ddof=1) / np.sqrt(len(values)),
    "variance": lambda values: np.var(values, ddof=1),
    "range": np.ptp,
    "coefficient of variation": lambda values: np.std(values, ddof=1) / np.mean(values),
}

_UNIT_WORDS: Final = """
mm cm m mm2 mm3 mm\u00b2 mm\u00b3 cm3 cm\u00b3 ml cc voxel voxels vox px pixel s sec seconds ms min
y yr yrs years jahre % percent au a.u. 0/1 0-1 0..1 yes/no 1 -
"""
_UNITS: Final = frozenset(_UNIT_WORDS.split())
_ID_OF_UNITS: Final = frozenset({"", "-", "unit", "units", "einheit", "einheiten", "unidad"})
_BRACKETS: Final = re.compile(r"[\[(](.*)[\])]")


def is_summary(cell: object) -> bool:
    """Return whether a row's id cell names a summary of other rows.

    Examples
    --------
    >>> [is_summary(text) for text in ("Mean ± SD", "AVERAGE", "95% CI", "25%", "MEAN_001")]
    [True, True, True, True, False]
    """
    if not isinstance(cell, str) or (cell[-1:].isdigit() and "=" not in cell):
        return False
    text = " ".join(cell.casefold().strip().strip("#*:=-_\u00f8\u2300 ").split())
    if text in _WHOLE or _PERCENTILE.fullmatch(text):
        return True
    tokens = _TOKEN.findall(text)
    words = {token for token in tokens if not token[0].isdigit()}
    if len(words) < len(set(tokens)) and not words & _WITH_NUMBER:
        return False
    return bool(words & _NUMBERS_OF_ALL) and words <= _NUMBERS_OF_ALL | _BESIDE


def find_odd_ids(cells: Sequence[object]) -> frozenset[str]:
    """Return the ids whose form differs from that of all others, in any language.

    An id is odd if all other ids have a digit and this id has none, if all other ids have a number
    of at least three digits and this id has a shorter number in a form that no cohort uses (cohorts
    use ``NACT_12`` or ``TCGA-AR-A1AX``), or if all other ids are plain numbers. The result is empty
    if there are fewer than four other ids, or more odd ids than a summary has rows.

    Examples
    --------
    >>> cases = [f"DUKE_{number:03d}" for number in range(1, 9)]
    >>> sorted(find_odd_ids([*cases, "ISPY1_1001", "NACT_12", "Moyen", "1st Qu."]))
    ['1st Qu.', 'Moyen']
    """
    texts = dict.fromkeys(str(cell).strip() for cell in cells if cell is not None)
    longest = {text: max(map(len, _DIGITS.findall(text)), default=0) for text in texts if text}
    whole = [text for text, length in longest.items() if length]
    if all(text.isdecimal() for text in whole[:_FEWEST]):
        others = [text for text in whole if text.isdecimal()]
    else:
        long = {_form(text) for text in whole if longest[text] >= _LONG_NUMBER}
        others = [
            text
            for text in whole
            if not long
            or _form(text) in long
            or longest[text] >= _LONG_NUMBER
            or _COHORT.fullmatch(text)
        ]
    odd = frozenset(longest) - frozenset(others)
    is_rule = len(others) >= _FEWEST and len(odd) < len(others) and len(odd) <= _MOST_SUMMARIES
    return odd if is_rule else frozenset()


def _form(text: str) -> str:
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


def find_statistic(cells: Sequence[tuple[str, NDArray[np.float64]]]) -> str:
    """Return the name of the statistic of the other rows that a row contains, or "".

    Parameters
    ----------
    cells
        For each number column, the row's number as written and the numbers of the other rows. In
        all columns, the number must be the same statistic, rounded to its written digits.
    """
    return next(
        (
            name
            for name, of in _STATISTICS.items()
            if cells and all(_is_written(text, float(of(values))) for text, values in cells)
        ),
        "",
    )


def _is_written(text: str, value: float) -> bool:
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(text) - value) <= 0.51 * 10.0**-decimals + 1e-9 * abs(value)


def unit_of(cell: object) -> str | None:
    """Return the unit that a cell contains, or None.

    Examples
    --------
    >>> unit_of("[mm]"), unit_of("%"), unit_of("DUKE_001")
    ('mm', '%', None)
    """
    if not isinstance(cell, str):
        return None
    text = cell.strip().casefold()
    bracketed = _BRACKETS.fullmatch(text)
    inner = bracketed[1].strip() if bracketed else text
    return inner if inner in _UNITS else None


def is_unit_row(id_cell: object, others: list[object]) -> bool:
    """Return whether a row has no id, and its other cells are units or empty."""
    if id_cell is not None and str(id_cell).strip(" []()").casefold() not in _ID_OF_UNITS:
        return False
    filled = [cell for cell in others if cell is not None and str(cell).strip()]
    units = [unit_of(cell) for cell in filled]
    return bool(units) and None not in units and set(units) != {"1"}


def split_unit(name: str) -> tuple[str, str]:
    """Return a column's name without the unit in brackets, and the unit or "".

    Examples
    --------
    >>> split_unit("x1 (mm)"), split_unit("dsc [%]"), split_unit("dsc")
    (('x1', 'mm'), ('dsc', '%'), ('dsc', ''))
    """
    before, bracket, _ = name.rstrip().rpartition("(" if name.rstrip().endswith(")") else "[")
    unit = unit_of(name.rstrip()[len(before) :]) if bracket and before.strip() else None
    return (before.strip(), unit) if unit is not None else (name, "")


@dataclass(frozen=True, slots=True)
class Column:
    """A requested column; the first of its `spellings` that a table contains is used.

    If no spelling occurs, exactly one of `synonyms` may replace it. A column with `is_id` may be
    the first column without a name, as pandas writes an index. With `is_exact`, an exact spelling
    takes precedence over others.
    """

    name: str
    spellings: tuple[str, ...]
    synonyms: tuple[str, ...] = ()
    is_needed: bool = False
    is_id: bool = False
    is_exact: bool = False


IDS: Final = Column(
    "case_id",
    ("case_id", "patient_id", "case", "patient", "subject_id", "id"),
    is_needed=True,
    is_id=True,
)
"""The column of case ids.

In a table with case_id and patient_id, case_id is used because a patient may have several cases.
"""


def is_id_name(name: str) -> bool:
    """Return whether a column name is commonly used for ids."""
    return spelled(name) in IDS.spellings


def needed(name: str, *synonyms: str) -> Column:
    """Return a requested column that a table must contain."""
    return Column(name, (name,), synonyms, is_needed=True)


def optional(name: str, *synonyms: str) -> Column:
    """Return a requested column that a table may lack."""
    return Column(name, (name,), synonyms)


@dataclass(frozen=True, slots=True)
class Header:
    """Position of a header (first and last row, counted from 0) and the column names."""

    first: int
    last: int
    names: tuple[str, ...]
    places: Mapping[str, int]


def spelled(name: object) -> str:
    """Return a column name in comparable form: lower case, with ``_`` for blanks and hyphens.

    Examples
    --------
    >>> spelled(" Menopausal-Status "), spelled("# case_id")
    ('menopausal_status', 'case_id')
    """
    text = UNSEEN.sub("", str(name)).strip().removeprefix("#")
    return "_".join(text.casefold().replace("-", " ").replace("_", " ").split())


def strip_name(cell: object) -> str:
    """Return the text of a header cell, or "" if the cell is empty."""
    return "" if is_blank(cell) else UNSEEN.sub("", str(cell)).strip()


def find_header(sheet: Sheet, columns: Sequence[Column], any_of: bool) -> Header | None:
    """Return the first row, or pair of rows, that contains the names of the requested columns."""
    rows = sheet.rows[: MOST_TITLES + 2]
    if not columns:
        return find_full_header(rows)
    names = [[strip_name(cell) for cell in row] for row in rows]
    for place, row in enumerate(names[: MOST_TITLES + 1]):
        places = _match_columns(row, columns, any_of, sheet.rows[place + 1 :])
        if places is not None:
            return Header(place, place, tuple(row), places)
    for place, (above, below) in enumerate(pairwise(names)):
        n_columns = max(len(above), len(below))
        above, below = ([*row, *[""] * (n_columns - len(row))] for row in (above, below))
        joined = [lower or upper for upper, lower in zip(above, below, strict=True)]
        places = _match_columns(joined, columns, any_of, sheet.rows[place + 2 :])
        if places is not None and any(below[index] for index in places.values()):
            return Header(place, place + 1, tuple(joined), places)
    return None


def with_other_columns(header: Header) -> Header:
    """Return a header that also includes the other columns, except an index column."""
    places = dict(header.places)
    for index, name in enumerate(header.names):
        if name and index not in places.values() and not (index == 0 and is_index_name(name)):
            places.setdefault(name, index)
    return replace(header, places=places)


def find_full_header(rows: Sequence[Sequence[object]]) -> Header | None:
    """Return the first row that contains nearly as many names as any other row."""
    named = [sum(not is_blank(cell) for cell in row) for row in rows[: MOST_TITLES + 1]]
    most = max(named, default=0)
    if not most:
        return None
    least = most - 1 if most > 2 else most
    place = next(
        (
            k
            for k, n in enumerate(named)
            if n >= least and not (n < most and strip_name(rows[k][0]).startswith("# "))
        ),
        0,
    )
    names = [strip_name(cell) for cell in rows[place]]
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        if name:
            places.setdefault(name, index)
    return Header(place, place, tuple(names), places)


def is_index_name(name: str) -> bool:
    """Return whether a column name is empty, or is a name that pandas gives to an index."""
    return spelled(name) in _INDEX_NAMES


def _match_columns(
    names: Sequence[str],
    columns: Sequence[Column],
    any_of: bool,
    below: Sequence[Sequence[object]],
) -> dict[str, int] | None:
    places: dict[str, int] = {}
    for column in columns:
        found = find_columns(names, column)
        if found:
            places[column.name] = found[0]
    missing = [column for column in columns if column.is_needed and column.name not in places]
    is_index = bool(names) and is_index_name(names[0]) and 0 not in places.values()
    if len(missing) == 1 and missing[0].is_id and is_index and places and holds_ids(below):
        places[missing[0].name], missing = 0, []
    if any_of and not any(not column.is_needed and column.name in places for column in columns):
        return None
    return None if missing else places


def find_columns(names: Sequence[str], column: Column) -> list[int]:
    """Return all positions of a requested column; exact spelling takes precedence."""
    for spelling in column.spellings:
        exact = (str,) if column.is_exact else ()
        for plain in (*exact, spelled, lambda name: spelled(split_unit(name)[0])):
            wanted = plain(spelling)
            columns = [index for index, name in enumerate(names) if name and plain(name) == wanted]
            if columns:
                return columns
    plain_names = [spelled(split_unit(name)[0]) for name in names]
    return [index for index, name in enumerate(plain_names) if name and name in column.synonyms]


def holds_ids(rows: Sequence[Sequence[object]]) -> bool:
    """Return whether a first column without a name contains ids and not row numbers."""
    return any(not str(row[0]).strip().isdecimal() for row in rows if row and not is_blank(row[0]))


def require_once(path: Path, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raise `FormatError` if two columns of a header match the same requested column."""
    for column in columns:
        found = find_columns(names, column)
        if len(found) > 1:
            listed = ", ".join(str(index + 1) for index in found)
            raise FormatError(
                f"expected only one column {column.name} in {path}, but found {len(found)} "
                f"(columns {listed}): keep the correct column"
            )


def explain_missing(
    path: Path, sheets: Sequence[Sheet], columns: Sequence[Column], any_of: bool
) -> FormatError:
    """Return the error for a file without the requested columns, which names them."""
    if not sheets or not any(sheet.rows for sheet in sheets):
        return FormatError(
            f"expected a table with a header in {path}, but it is empty: choose another file"
        )
    best: list[str] = []
    score = (-1, -1)
    for sheet in sheets:
        for row in sheet.rows[: MOST_TITLES + 1]:
            names = [strip_name(cell) for cell in row]
            matched = sum(bool(find_columns(names, column)) for column in columns)
            if any(names) and (matched, not best) > score:
                best, score = names, (matched, 0)
    missing = [c.name for c in columns if c.is_needed and not find_columns(best, c)]
    if any_of and not missing:
        missing = ["each of the others"]
    names = [_name_column(column) for column in columns if column.is_needed]
    wanted = f"the column{'s' * (len(names) > 1)} {', '.join(names)}"
    if any_of:
        wanted += f" and one of {', '.join(c.name for c in columns if not c.is_needed)}"
    if _is_parted_by_blanks(best, columns):
        return FormatError(f"expected a table in {path}, but {BLANKS_BETWEEN}")
    there = ", ".join(filter(None, best))
    shown = there if len(there) <= 300 else there[:297] + "..."
    return MissingColumnsError(
        f"expected {wanted} in {path}, but {', '.join(missing)} is missing (found "
        f"{shown or 'no header'}): rename the columns",
        str(path),
        missing,
        list(filter(None, best)),
    )


def _is_parted_by_blanks(names: Sequence[str], columns: Sequence[Column]) -> bool:
    if len(names) != 1 or not has_blanks_between(names[0]):
        return False
    words = names[0].split()
    return all(find_columns(words, column) for column in columns if column.is_needed)


def _name_column(column: Column) -> str:
    others = column.spellings[1:3] if column.is_id else ()
    return f"{column.name} (or {', '.join(others)})" if others else column.name


@dataclass(frozen=True, slots=True)
class Row:
    """The row of a case: its number in the file (from 1), its cells, and a problem or ""."""

    number: int
    cells: Sequence[object]
    problem: str = ""


@dataclass(slots=True)
class DataRows:
    """The rows below a header in order, with comments, units of columns, and omitted rows."""

    rows: list[Row] = field(default_factory=list)
    comments: list[tuple[str, ...]] = field(default_factory=list)
    units: dict[int, str] = field(default_factory=dict)
    summaries: list[tuple[int, str]] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    @property
    def marked_note(self) -> str:
        """Return a note about cases that begin with #, or ""."""
        if not self.marked:
            return ""
        return (
            f"{_name_rows(self.marked)} read as cases although they begin with #; remove the #, "
            "or remove the rows if they are comments"
        )

    @property
    def odd_note(self) -> str:
        """Return a note about cases with ids of an unusual form, or ""."""
        if not self.odd:
            return ""
        return (
            f"{_name_rows(self.odd)} counted although the form of the id differs from all others; "
            "delete summary rows"
        )

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Sentences about rows that may or may not be cases."""
        named = _name_rows([f"{row} ({word})" for row, word in self.summaries])
        summaries = f"{named} left out as a summary; if it is a case, change its id"
        return tuple(filter(None, (summaries if self.summaries else "", self.marked_note)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows that were left out, or that may not be cases."""
        headers = f"{_name_rows([str(row) for row in self.headers])} left out as a repeated header"
        notes = (*self.doubtful, self.odd_note, headers if self.headers else "")
        return tuple(filter(None, notes))


def data_rows(sheet: Sheet, header: Header, id_place: int | None, text: str) -> DataRows:
    """Return the rows of cases below a header, and the omitted rows.

    Parameters
    ----------
    sheet, header
        The sheet, and the position of its header. A cell that only looks empty in one of the
        header's `places` is a problem of the row.
    id_place
        The id column, or None for a table without ids, in which the first column reveals summaries.
    text
        The progress text.
    """
    data = DataRows()
    data.comments += [_texts(row) for row in sheet.rows[: header.first]]
    width = max((index + 1 for index, name in enumerate(header.names) if name), default=0)
    read = sorted(header.places.values())
    named = [index for index in read or range(len(header.names)) if header.names[index]]
    names = [spelled(name) for name in header.names]
    start = header.last + 1
    for place, cells in enumerate(paced(sheet.rows[start:], text, len(sheet.rows)), start):
        gaps = sheet.gaps.get(place, {})
        if all(is_blank(cell) for cell in cells) and not gaps:
            continue
        wrong = _wrong_length(sheet, cells, width, len(header.names))
        if (comment := _read_comment(cells, wrong)) is not None:
            if comment:
                data.comments.append(comment)
                continue
            data.marked.append(f"{place + 1} ({_texts(cells)[0][:40]})")
        at = 0 if id_place is None else id_place
        id_cell = cells[at] if at < len(cells) else None
        if (
            place == start
            and not gaps
            and is_unit_row(id_cell, [c for k, c in enumerate(cells) if k != at])
        ):
            data.units |= {k: unit for k, cell in enumerate(cells) if (unit := unit_of(cell))}
            continue
        if named and all(
            k < len(cells) and spelled(strip_name(cells[k])) == names[k] for k in named
        ):
            data.headers.append(place + 1)
            continue
        if (word := _find_summary(cells, id_cell, id_place)) is not None:
            data.summaries.append((place + 1, word))
            continue
        gap = next((k for k in read if k in gaps), None)
        problem = f"{cell_name(place, gap)} is {gaps[gap]}" if gap is not None else wrong
        data.rows.append(Row(place + 1, cells, problem))
    _part_odd_rows(data, id_place)
    return data


def _part_odd_rows(data: DataRows, id_place: int | None) -> None:
    """Leave out rows with an odd id and with numbers that are a statistic of the other rows.

    Other rows with an odd id are kept and named in the notes.
    """
    if id_place is None:
        return
    ids = [_texts(row.cells[id_place : id_place + 1]) for row in data.rows]
    odd = find_odd_ids([text for texts in ids for text in texts])
    if not odd:
        return
    names = [texts[0] if texts and texts[0] in odd else "" for texts in ids]
    others = [row for row, name in zip(data.rows, names, strict=True) if not name]
    columns = _columns_of_numbers(others, id_place)
    rows = []
    for row, name in zip(data.rows, names, strict=True):
        written = [
            (text, values)
            for index, (style, values) in columns.items()
            if index < len(row.cells) and (text := _written_number(row.cells[index], style))
        ]
        if name and find_statistic(written):
            data.summaries.append((row.number, name))
            continue
        rows.append(row)
        data.odd += [f"{row.number} ({name[:40]})"] if name else []
    data.rows = rows
    data.summaries.sort()


def _columns_of_numbers(
    rows: Sequence[Row], id_place: int
) -> dict[int, tuple[NumberStyle, NDArray[np.float64]]]:
    columns = {}
    for index in range(max((len(row.cells) for row in rows), default=0)):
        cells = [row.cells[index] for row in rows if index < len(row.cells)]
        style = NumberStyle() if is_plain_column(cells) else style_of(cells)
        texts = [text for cell in cells if (text := _written_number(cell, style))]
        if index != id_place and 2 * len(texts) > len(rows):
            columns[index] = style, np.array(texts, dtype=np.float64)
    return columns


def _written_number(cell: object, style: NumberStyle) -> str:
    if is_missing(cell):
        return ""
    try:
        number = parse_number(cell, style)
    except ValueError:
        return ""
    text = str(cell).strip().replace(",", ".") if isinstance(cell, str) else ""
    return text if PLAIN_NUMBER.fullmatch(text) else repr(number)


def _wrong_length(sheet: Sheet, cells: Sequence[object], width: int, full: int) -> str:
    if width <= len(cells) <= full:
        return ""
    return wrong_length(sheet, cells, full)


def _read_comment(cells: Sequence[object], wrong: str) -> tuple[str, ...] | None:
    first = next((str(cell).strip() for cell in cells if not is_blank(cell)), "")
    if first[:1] not in ("#", "m", "M"):
        return None
    texts = _texts(cells)
    if first.lstrip("# ").rstrip(":").casefold() == METRIC_DEFINITION:
        return texts
    if not first.startswith("#") or first.startswith("#N/A") or FORMULA_ERROR.fullmatch(first):
        return None
    return texts if wrong or len(texts) == 1 else ()


def _find_summary(cells: Sequence[object], id_cell: object, id_place: int | None) -> str | None:
    if is_summary(id_cell):
        return str(id_cell).strip()
    if id_place is None or not is_missing(id_cell):
        return None
    return next((str(cell).strip() for cell in cells if is_summary(cell)), None)


def _texts(cells: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(cell).strip() for cell in cells if not is_blank(cell))


def _name_rows(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"row {names[0]} is"
    return f"rows {name_some(names, _NAMED)} are"
