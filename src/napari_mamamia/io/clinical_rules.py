"""How cells of a clinical table are read: every cleaning rule, by name.

Each ``parse_...`` returns None for a missing value and raises ``ValueError`` with the reason for
one that it does not understand; nothing is guessed.
"""

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from napari_mamamia.core.cohort import MenopausalStatus

__all__ = [
    "DENSITY_WORDS",
    "MENOPAUSE_RULES",
    "MISSING",
    "MenopauseRule",
    "is_missing",
    "parse_age",
    "parse_breast_density",
    "parse_id",
    "parse_menopausal_status",
    "parse_pcr",
    "parse_text",
    "parse_times",
]

MISSING: Final = frozenset(
    {"", "-", ".", "?", "na", "n/a", "#n/a", "nan", "none", "null", "unk", "unknown", "missing",
     "not available", "not applicable", "not known", "no info", "no information"}
)  # fmt: skip
"""Texts that stand for a missing value, in any letter case."""


@dataclass(frozen=True, slots=True)
class MenopauseRule:
    """A spelling of menopausal status: the lower-case text matches `pattern` from its start."""

    name: str
    pattern: re.Pattern[str]
    status: MenopausalStatus | None


def _word(start: str) -> re.Pattern[str]:
    """Match a word, alone or with "menopausal", and whatever remark follows it."""
    return re.compile(rf"{start}([\s-]*menopaus(al|e))?(?![a-z])")


MENOPAUSE_RULES: Final = (
    MenopauseRule("pre", _word("pre"), MenopausalStatus.PRE),
    MenopauseRule("peri", _word("peri"), MenopausalStatus.PERI),
    MenopauseRule("post", _word("post"), MenopausalStatus.POST),
    MenopauseRule("undecided", re.compile(r"(indeterminate|undetermined|uncertain)\b"), None),
)
"""The real MAMA-MIA table has, besides empty cells, "post", "pre" with and without "(<6 months
since LMP AND ...)" in two spacings, and "peri (6-12 months since LMP ...)"; "indeterminate" is
from the I-SPY 2 forms. Source: column ``menopause`` of clinical_and_imaging_info.xlsx."""

DENSITY_WORDS: Final = {
    "a": ("a", "1", "fatty", "entirely fatty", "almost entirely fatty", "predominantly fatty"),
    "b": ("b", "2", "scattered", "scattered fibroglandular", "scattered fibroglandular densities",
          "scattered areas of fibroglandular density"),
    "c": ("c", "3", "heterogeneously dense"),
    "d": ("d", "4", "extremely dense"),
}  # fmt: skip
"""Spellings of the four BI-RADS densities; numbers are those of the BI-RADS editions before 5.
Source: sheet ``legend`` of clinical_and_imaging_info.xlsx; ACR BI-RADS Atlas, 5th edition."""

_DENSITY_OF: Final = {word: letter for letter, words in DENSITY_WORDS.items() for word in words}
_DENSITY_PREFIX: Final = re.compile(r"^((acr|bi-?rads|type|category|grade|density)[\s:.-]*)+")
_YES: Final = frozenset(["1", "1.0", "yes", "true", "pcr"])
_NO: Final = frozenset(["0", "0.0", "no", "false", "non-pcr", "no pcr"])
_OLDEST: Final = 120
_LONGEST_S: Final = 24 * 3600
"""From the first phase to the last. An exam takes minutes; the real table's longest has 1,710 s.
What goes beyond are milliseconds, clock times such as 101530 or dates."""
_COMMA_NUMBER: Final = re.compile(r"\d+,\d+")
_BETWEEN_TIMES: Final = re.compile(r"[,;\s]+")


def is_missing(value: object) -> bool:
    """Whether a cell is empty, not a number, or one of `MISSING`."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, str) and _lower(value) in MISSING)


def parse_id(value: object) -> str:
    """Return a case id: text without blanks around it; a whole number without ``.0``.

    Examples
    --------
    >>> parse_id(" DUKE_001 "), parse_id(1001.0)
    ('DUKE_001', '1001')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("the case id is empty" if value is None else f"{value} is no case id")  # noqa: TRY004
    text = str(value).strip()
    if not text:
        raise ValueError("the case id is empty")
    return text


def parse_text(value: object) -> str | None:
    """Return the text of a cell without blanks around it."""
    return None if is_missing(value) else str(value).strip()


def parse_age(value: object) -> float | None:
    """Return years, 0 to 120; a decimal comma is understood."""
    if is_missing(value):
        return None
    age = _number(value, "age")
    if not 0 <= age <= _OLDEST:
        raise ValueError(f"age {value} is outside 0 to {_OLDEST} years")
    return age


def parse_menopausal_status(value: object) -> MenopausalStatus | None:
    """Return the status by the first of `MENOPAUSE_RULES` that fits.

    Examples
    --------
    >>> parse_menopausal_status("peri (6-12 months since LMP)")
    <MenopausalStatus.PERI: 'peri'>
    """
    if is_missing(value):
        return None
    text = _lower(str(value))
    for rule in MENOPAUSE_RULES:
        if rule.pattern.match(text):
            return rule.status
    raise ValueError(f"menopausal status {value!r} is none of pre, peri, post")


def parse_breast_density(value: object) -> str | None:
    """Return "a" to "d", from the letter, 1 to 4, or the words of `DENSITY_WORDS`."""
    if is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    letter = _DENSITY_OF.get(_DENSITY_PREFIX.sub("", _lower(text)))
    if letter is None:
        raise ValueError(f"breast density {value!r} is none of a, b, c, d (or 1 to 4)")
    return letter


def parse_pcr(value: object) -> bool | None:
    """Return pathologic complete response, from 0 and 1, yes and no, true and false."""
    if is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, int | float) and value in (0, 1) else str(value)
    if _lower(text) in _YES:
        return True
    if _lower(text) in _NO:
        return False
    raise ValueError(f"pcr {value!r} is neither 0 nor 1")


def parse_times(value: object) -> tuple[float, ...] | None:
    """Return ascending seconds over at most 24 hours, shifted so that phase 0 is at 0.

    Examples
    --------
    >>> parse_times("[0, 165, 288, 411]")
    (0.0, 165.0, 288.0, 411.0)
    """
    if is_missing(value) or (text := str(value).strip().strip("[]()").strip()) == "":
        return None
    parts = [part for part in _BETWEEN_TIMES.split(text) if part]
    times = [_number(part, "acquisition time") for part in parts]
    if not all(a < b for a, b in pairwise(times)):
        raise ValueError(f"acquisition times {value} do not ascend")
    if times[-1] - times[0] > _LONGEST_S:
        raise ValueError(f"acquisition times {value} span more than 24 hours: seconds are expected")
    return tuple(time - times[0] for time in times)


def _number(value: object, what: str) -> float:
    text = str(value).strip()
    if _COMMA_NUMBER.fullmatch(text):
        text = text.replace(",", ".")
    try:
        number = math.nan if isinstance(value, bool) else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} {value!r} is no number")
    return number


def _lower(text: str) -> str:
    return " ".join(text.casefold().split())
