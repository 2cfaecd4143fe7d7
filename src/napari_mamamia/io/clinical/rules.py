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


def _match_word(start: str) -> re.Pattern[str]:
    """Match a word, alone or with "menopausal", and whatever remark follows it."""
    return re.compile(rf"{start}([\s-]*menopaus(al|e))?(?![a-z])")


MENOPAUSE_RULES: Final = (
    MenopauseRule("pre", _match_word("pre"), MenopausalStatus.PRE),
    MenopauseRule("peri", _match_word("peri"), MenopausalStatus.PERI),
    MenopauseRule("post", _match_word("post"), MenopausalStatus.POST),
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
_YES: Final = frozenset(["1", "1.0", "yes", "true", "pcr", "ja", "oui", "si", "sí", "sì"])
_NO: Final = frozenset(["0", "0.0", "no", "false", "non-pcr", "no pcr", "nein", "non"])
_OLDEST: Final = 120
_LONGEST_S: Final = 24 * 3600
"""From the first phase to the last. What goes beyond are milliseconds, clock times or dates."""
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_CLOCK: Final = re.compile(r"([01]\d|2[0-3])[0-5]\d[0-5]\d(\.\d+)?")
_ERROR: Final = re.compile(
    r"#(REF!|VALUE!|DIV/0!|NAME\?|NUM!|NULL!|SPILL!|CALC!|FIELD!|GETTING_DATA|BLOCKED!)|Err:\d+"
)
"""What spreadsheet programs show where a formula fails; #N/A means a missing value."""
_ROUNDED: Final = re.compile(r"\d[.,]\d+E\+\d+")
UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Signs that nobody sees: soft hyphens, joiners, marks of direction and of byte order."""
_STATUS_WORD: Final = re.compile(r"(?<![a-z])(pre|peri|post)(?:[\s-]*menopaus(?:al|e))?(?![a-z])")


def is_missing(value: object) -> bool:
    """Whether a cell is empty, not a number, or one of `MISSING`."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, str) and _lower_text(value) in MISSING)


def parse_id(value: object) -> str:
    """Return a case id: text without blanks around it; a whole number without ``.0``.

    Signs that nobody sees are left out.

    Examples
    --------
    >>> parse_id(" DUKE_001 "), parse_id(1001.0)
    ('DUKE_001', '1001')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("the case id is empty" if value is None else f"{value} is no case id")  # noqa: TRY004
    text = UNSEEN.sub("", str(value)).strip()
    if not text:
        raise ValueError("the case id is empty")
    if _ERROR.fullmatch(text):
        raise ValueError(f"{text} is no case id but an error of a formula")
    if _ROUNDED.fullmatch(text):
        raise ValueError(f"{text} is no case id but a number that a spreadsheet program rounded")
    return text


def parse_text(value: object) -> str | None:
    """Return the text of a cell without blanks around it."""
    if is_missing(value):
        return None
    text = str(value).strip()
    if _ERROR.fullmatch(text):
        raise ValueError(f"{text} is the error of a formula: mend it in a spreadsheet program")
    return text


def parse_age(value: object) -> float | None:
    """Return years, 0 to 120; a decimal comma is understood."""
    if is_missing(value):
        return None
    age = _parse_number(value, "age")
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
    text = _lower_text(str(value))
    for rule in MENOPAUSE_RULES:
        if rule.pattern.match(text):
            if rule.status and len(set(_STATUS_WORD.findall(text))) > 1:
                raise ValueError(f"menopausal status {value!r} names several of pre, peri, post")
            return rule.status
    raise ValueError(f"menopausal status {value!r} is none of pre, peri, post")


def parse_breast_density(value: object) -> str | None:
    """Return "a" to "d", from the letter, 1 to 4, or the words of `DENSITY_WORDS`."""
    if is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    letter = _DENSITY_OF.get(_DENSITY_PREFIX.sub("", _lower_text(text)))
    if letter is None:
        raise ValueError(f"breast density {value!r} is none of a, b, c, d (or 1 to 4)")
    return letter


def parse_pcr(value: object) -> bool | None:
    """Return pathologic complete response, from 0 and 1, yes and no, true and false."""
    if is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, int | float) and value in (0, 1) else str(value)
    if _lower_text(text) in _YES:
        return True
    if _lower_text(text) in _NO:
        return False
    raise ValueError(f"pcr {value!r} is neither 0 nor 1")


def parse_times(value: object) -> tuple[float, ...] | None:
    """Return ascending seconds over at most 24 hours, shifted so that phase 0 is at 0.

    Between times stands a comma, semicolon or blank. Where a semicolon or a blank does, a comma
    inside a number is a decimal one.

    Examples
    --------
    >>> parse_times("[0, 165, 288, 411]")
    (0.0, 165.0, 288.0, 411.0)
    >>> parse_times("0; 60,5; 121")
    (0.0, 60.5, 121.0)
    """
    if is_missing(value) or (text := str(value).strip().strip("[]()").strip()) == "":
        return None
    parts = _parts_of(text)
    times = [_parse_number(part, "acquisition time") for part in parts]
    if not all(a < b for a, b in pairwise(times)):
        raise ValueError(f"acquisition times {value} do not ascend")
    if len(parts) > 1 and all(map(_CLOCK.fullmatch, parts)):
        raise ValueError(
            f"acquisition times {value} look like times of the day (HHMMSS): seconds are expected"
        )
    span = times[-1] - times[0]
    if span > _LONGEST_S:
        raise ValueError(f"acquisition times {value} span more than 24 hours: seconds are expected")
    return tuple(time - times[0] for time in times)


def _parts_of(text: str) -> list[str]:
    """Return the times of a text; ValueError where it is not clear what a comma means."""
    if ";" in text:
        parts = text.split(";")
    elif re.search(r",\s", text):
        parts = re.split(r",\s+|\s+", text)
        if any("," in part for part in parts):
            raise ValueError(f"acquisition times {text}: not every comma has a blank behind it")
    elif re.search(r"\s", text):
        parts = text.split()
    else:
        parts = text.split(",")
    return [part.strip() for part in parts if part.strip()]


def _parse_number(value: object, what: str) -> float:
    text = str(value).strip()
    if _THOUSANDS.fullmatch(text):
        raise ValueError(f"{what} {value!r} may have a decimal comma or one of thousands")
    is_number = not isinstance(value, bool) and _NUMBER.fullmatch(text)
    number = float(text.replace(",", ".")) if is_number else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} {value!r} is no number")
    return number


def _lower_text(text: str) -> str:
    return " ".join(text.casefold().split())
