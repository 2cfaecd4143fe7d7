"""Interpret the cells of other software's tables: ids, missing values, numbers, yes or no.

Each ``parse_...`` raises ``ValueError`` with the reason for a cell that it cannot read; nothing is
guessed. The number format of a column (`NumberStyle`) is derived from all its cells, because the
comma in ``1,234`` alone may separate decimals or thousands.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MISSING: Final = frozenset(
    {"", "-", "--", "\u2013", "\u2014", ".", "?", "na", "n/a", "n.a.", "n.a", "n. a.", "#n/a",
     "<na>", "nan", "nat", "none", "null", "unk", "unknown", "missing", "k.a.", "k. a.",
     "not available", "not applicable", "not known", "no info", "no information"}
)  # fmt: skip
"""Spellings of a missing value, in lower case."""

_LONGEST_MISSING: Final = 40
"""Length of the longest spelling of a missing value; several blanks count as one."""

YES: Final = frozenset(
    {"1", "1.0", "1,0", "yes", "y", "true", "positive", "pos", "ja", "oui", "si", "s\u00ed",
     "s\u00ec", "pcr", "pcr+", "responder", "complete response", "malignant", "positiv",
     "positif", "b\u00f6sartig", "maligne", "malin", "wahr", "vrai"}
)  # fmt: skip
NO: Final = frozenset(
    {"0", "0.0", "0,0", "no", "n", "false", "negative", "neg", "nein", "non", "non pcr", "no pcr",
     "not pcr", "nonpcr", "npcr", "pcr-", "non responder", "nonresponder", "no response", "rd",
     "residual disease", "benign", "negativ", "n\u00e9gatif", "gutartig", "benigne", "b\u00e9nin",
     "b\u00e9nigne", "falsch", "faux"}
)  # fmt: skip
"""Spellings of "no" in a cell, in lower case, with blanks for ``-`` and ``_``."""

UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Invisible characters: soft hyphens, joiners, direction and byte order marks."""
FORMULA_ERROR: Final = re.compile(
    r"#(REF!|VALUE!|DIV/0!|NAME\?|NUM!|NULL!|SPILL!|CALC!|FIELD!|GETTING_DATA|BLOCKED!)|Err:\d+"
)
"""Pattern of the texts that spreadsheet programs show if a formula fails."""
_ROUNDED: Final = re.compile(r"\d[.,]\d+E\+\d+")

PLAIN_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_COMMA: Final = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_COMMA_GROUP: Final = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINT_GROUP: Final = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_COMMA_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3}){2,}(\.\d*)?|,\d{3}\.\d*)")
_POINT_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d*)?|\.\d{3},\d*)")
_BLANK_GROUPS: Final = re.compile(r"[+-]?\d{1,3}([ '\u00a0\u2009\u202f\u2019]\d{3})+([.,]\d+)?")
_BLANKS: Final = re.compile(r"[ '\u00a0\u2009\u202f\u2019]")
_WORDS: Final = re.compile(r"[\s_-]+(?=\w)")


def is_missing(value: object) -> bool:
    """Return whether a cell is empty, NaN, or one of `MISSING`."""
    if isinstance(value, float) and math.isnan(value):
        return True
    if not isinstance(value, str):
        return value is None
    return len(value) < _LONGEST_MISSING and lower_text(value) in MISSING


def is_blank(value: object) -> bool:
    """Return whether a cell is empty or contains only invisible characters."""
    if not isinstance(value, str):
        return value is None
    return not (value if value.isascii() else UNSEEN.sub("", value)).strip()


class AmbiguousNumberError(ValueError):
    """Raised if a cell may mean two different numbers, and its column does not decide."""


def lower_text(text: str) -> str:
    """Return a string in lower case with single blanks."""
    return " ".join(text.casefold().split())


def parse_id(value: object) -> str:
    """Return a case id as a string without outer blanks; whole numbers get no ``.0``.

    Invisible characters are removed.

    Examples
    --------
    >>> parse_id(" DUKE_001 "), parse_id(1001.0)
    ('DUKE_001', '1001')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("the case id is empty" if value is None else f"{value} is not a case id")  # noqa: TRY004
    text = UNSEEN.sub("", str(value)).strip()
    if not text:
        raise ValueError("the case id is empty")
    if FORMULA_ERROR.fullmatch(text):
        raise ValueError(f"{text} is a formula error, not a case id")
    if _ROUNDED.fullmatch(text):
        raise ValueError(f"{text} is a number that a spreadsheet program rounded, not a case id")
    return text


def parse_label(value: object) -> bool | None:
    """Return the Boolean value of a cell, such as ``1``, ``yes``, ``negative``; None if missing.

    Examples
    --------
    >>> parse_label("TRUE"), parse_label("non-pCR"), parse_label(1.0), parse_label("NA")
    (True, False, True, None)
    """
    if is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, int | float) and value in (0, 1) else str(value)
    text = _WORDS.sub(" ", UNSEEN.sub("", text).strip().lstrip("'")).casefold()
    if text in YES or text in NO:
        return text in YES
    raise ValueError(f"must be 0 or 1, but it is {str(value).strip()!r}")


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """What a comma and a point mean in the numbers of a column.

    Each meaning is "decimal", "thousands", or "" if unknown.
    """

    comma: str = ""
    point: str = "decimal"


def parse_number(value: object, style: NumberStyle = NumberStyle()) -> float:
    """Return a finite number; ``46.1%`` becomes 0.461, and a decimal comma is accepted.

    Examples
    --------
    >>> parse_number("0,83"), parse_number("50 %"), parse_number("1.234,5"), parse_number("1 200")
    (0.83, 0.5, 1234.5, 1200.0)
    """
    if (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and style.point == "decimal" and PLAIN_NUMBER.fullmatch(value)
    ):
        number = float(value)
    else:
        text = _number_text(value) if isinstance(value, str) else ""
        is_percent = text.endswith("%")
        number = _parse_text(text.removesuffix("%").rstrip(), style, value)
        number = number / 100 if is_percent else number
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, but it is {_shown(value)}")
    return number


def is_percent(value: object) -> bool:
    """Return whether a cell is a number with a percent sign."""
    return isinstance(value, str) and value.rstrip().endswith("%")


def style_of(cells: Iterable[object], hint: NumberStyle | None = None) -> NumberStyle:
    """Return the number format of the cells in a column.

    Parameters
    ----------
    cells
        The cells of the column; only strings are informative.
    hint
        The number format of the whole table, for a column that is ambiguous.

    Raises
    ------
    ValueError
        If the cells contradict each other, and one is ambiguous.
    """
    texts = [
        _number_text(cell).removesuffix("%").rstrip() for cell in cells if isinstance(cell, str)
    ]
    comma_group = next(filter(_COMMA_GROUP.fullmatch, texts), "")
    point_group = next(filter(_POINT_GROUP.fullmatch, texts), "")
    comma_groups = any(map(_COMMA_GROUPS.fullmatch, texts))
    point_groups = any(map(_POINT_GROUPS.fullmatch, texts))
    comma_decimal = point_groups or any(
        _COMMA.fullmatch(text) and not _COMMA_GROUP.fullmatch(text) for text in texts
    )
    point_decimal = comma_groups or any(
        "." in text and PLAIN_NUMBER.fullmatch(text) and not _POINT_GROUP.fullmatch(text)
        for text in texts
    )
    is_decimal = comma_decimal or (hint is not None and hint.comma == "decimal")
    comma, point = "decimal" if comma_decimal else "thousands" if comma_groups else "", "decimal"
    if not comma and comma_group and hint is not None:
        comma = hint.comma
    if comma_group and comma_decimal and (comma_groups or point_decimal):
        comma = ""
    if point_groups:
        point = "" if point_group and point_decimal else "thousands"
    elif point_group and not point_decimal and is_decimal:
        point = ""
    return NumberStyle(comma, point)


def is_plain_column(cells: Iterable[object]) -> bool:
    """Return whether no number in a column has a comma or an ambiguous point."""
    return not any(
        isinstance(cell, str) and ("," in cell or _POINT_GROUP.fullmatch(cell.strip()))
        for cell in cells
    )


def mixed_percent(cells: Sequence[object]) -> tuple[int, int] | None:
    """Return the indices of a cell with and a cell without a percent sign, or None."""
    signs = [index for index, cell in enumerate(cells) if is_percent(cell)]
    if not signs:
        return None
    bare = (index for index, cell in enumerate(cells) if not is_percent(cell) and _is_number(cell))
    place = next(bare, None)
    return None if place is None else (signs[0], place)


def _is_number(cell: object) -> bool:
    if is_missing(cell):
        return False
    try:
        return parse_number(cell, NumberStyle("decimal", "decimal")) != 0
    except ValueError:
        return False


def _number_text(value: str) -> str:
    return UNSEEN.sub("", value).strip().removeprefix("'").replace("\u2212", "-")


def _parse_text(text: str, style: NumberStyle, value: object) -> float:
    for pattern, mark, meaning in (
        (_POINT_GROUP, ".", style.point),
        (_COMMA_GROUP, ",", style.comma),
    ):
        if pattern.fullmatch(text) and meaning == "thousands":
            return float(text.replace(mark, ""))
        if pattern.fullmatch(text) and not meaning:
            name = "comma" if mark == "," else "point"
            raise AmbiguousNumberError(
                f"{_shown(value)} may have a decimal {name} or a {name} between thousands"
            )
    if _COMMA_GROUPS.fullmatch(text):
        return float(text.replace(",", ""))
    if _POINT_GROUPS.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    if PLAIN_NUMBER.fullmatch(text) or _COMMA.fullmatch(text) or _BLANK_GROUPS.fullmatch(text):
        return float(_BLANKS.sub("", text).replace(",", "."))
    if text.casefold().lstrip("+-") in {"inf", "infinity", "nan"}:
        return math.inf
    raise ValueError(f"must be a number, but it is {_shown(value)}")


def _shown(value: object) -> str:
    text = repr(value.strip()) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
