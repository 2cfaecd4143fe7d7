"""Rules, one for each field, that parse the cells of a clinical table.

Each ``parse_...`` returns None for a missing value and raises ``ValueError`` with the reason for an
unreadable value. Nothing is guessed.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from napari_mamamia.core.cohort import MenopausalStatus
from napari_mamamia.io.tables import cells


@dataclass(frozen=True, slots=True)
class MenopauseRule:
    """A spelling of the menopausal status; `pattern` matches the start of the lower-case text."""

    name: str
    pattern: re.Pattern[str]
    status: MenopausalStatus | None


def _match_word(start: str) -> re.Pattern[str]:
    return re.compile(rf"{start}([\s-]*menopaus(al|e))?(?![a-z])")


MENOPAUSE_RULES: Final = (
    MenopauseRule("pre", _match_word("pre"), MenopausalStatus.PRE),
    MenopauseRule("peri", _match_word("peri"), MenopausalStatus.PERI),
    MenopauseRule("post", _match_word("post"), MenopausalStatus.POST),
    MenopauseRule("undecided", re.compile(r"(indeterminate|undetermined|uncertain)\b"), None),
)
"""Rules for the spellings of the menopausal status.

Apart from empty cells, the MAMA-MIA table has "post", "pre" with and without "(<6 months since LMP
AND ...)" in two spacings, and "peri (6-12 months since LMP ...)"; "indeterminate" is from the I-SPY
2 forms. Source: column ``menopause`` of clinical_and_imaging_info.xlsx.
"""

DENSITY_WORDS: Final = {
    "a": ("a", "1", "fatty", "entirely fatty", "almost entirely fatty", "predominantly fatty"),
    "b": ("b", "2", "scattered", "scattered fibroglandular", "scattered fibroglandular densities",
          "scattered areas of fibroglandular density"),
    "c": ("c", "3", "heterogeneously dense"),
    "d": ("d", "4", "extremely dense"),
}  # fmt: skip
"""Spellings of the four BI-RADS densities, including the numbers used before the 5th edition.

Sources: sheet ``legend`` of clinical_and_imaging_info.xlsx; ACR BI-RADS Atlas, 5th edition.
"""

_DENSITY_OF: Final = {word: letter for letter, words in DENSITY_WORDS.items() for word in words}
_DENSITY_PREFIX: Final = re.compile(r"^((acr|bi-?rads|type|category|grade|density)[\s:.-]*)+")
_OLDEST: Final = 120
_LONGEST_S: Final = 24 * 3600
"""Longest plausible time in seconds from the first phase to the last.

Larger values are probably milliseconds, clock times or dates.
"""
_CLOCK: Final = re.compile(r"([01]\d|2[0-3])[0-5]\d[0-5]\d(\.\d+)?")
_STATUS_WORD: Final = re.compile(r"(?<![a-z])(pre|peri|post)(?:[\s-]*menopaus(?:al|e))?(?![a-z])")


def parse_text(value: object) -> str | None:
    """Return the text of a cell without leading and trailing blanks."""
    if cells.is_missing(value):
        return None
    text = str(value).strip()
    if cells.FORMULA_ERROR.fullmatch(text):
        raise ValueError(f"{text} is a formula error; correct the formula in a spreadsheet program")
    return text


def parse_age(value: object) -> float | None:
    """Return an age in years, from 0 to 120; a decimal comma is accepted."""
    if cells.is_missing(value):
        return None
    age = _parse_number(value, "age")
    if not 0 <= age <= _OLDEST:
        raise ValueError(f"age {value} is outside 0 to {_OLDEST} years")
    return age


def parse_menopausal_status(value: object) -> MenopausalStatus | None:
    """Return the menopausal status of the first rule in `MENOPAUSE_RULES` that matches.

    Examples
    --------
    >>> parse_menopausal_status("peri (6-12 months since LMP)")
    <MenopausalStatus.PERI: 'peri'>
    """
    if cells.is_missing(value):
        return None
    text = cells.lower_text(str(value))
    for rule in MENOPAUSE_RULES:
        if rule.pattern.match(text):
            if rule.status and len(set(_STATUS_WORD.findall(text))) > 1:
                raise ValueError(
                    f"menopausal status {value!r} names more than one of pre, peri and post"
                )
            return rule.status
    raise ValueError(f"menopausal status {value!r} is not pre, peri or post")


def parse_breast_density(value: object) -> str | None:
    """Return the breast density "a" to "d", given as a letter, 1 to 4, or in words."""
    if cells.is_missing(value):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    letter = _DENSITY_OF.get(_DENSITY_PREFIX.sub("", cells.lower_text(text)))
    if letter is None:
        raise ValueError(f"breast density {value!r} is not one of a, b, c, d (or 1 to 4)")
    return letter


def parse_pcr(value: object) -> bool | None:
    """Return the pathologic complete response, given as 0 or 1, yes or no, pCR or non-pCR."""
    try:
        return cells.parse_label(value)
    except ValueError:
        raise ValueError(f"pcr {value!r} is neither 0 nor 1") from None


def parse_times(value: object) -> tuple[float, ...] | None:
    """Return ascending times in seconds over at most 24 hours, shifted to start at 0.

    Times are separated by a comma, semicolon or blank. If a semicolon or a blank separates them, a
    comma inside a number is a decimal comma.

    Examples
    --------
    >>> parse_times("[0, 165, 288, 411]")
    (0.0, 165.0, 288.0, 411.0)
    >>> parse_times("0; 60,5; 121")
    (0.0, 60.5, 121.0)
    """
    if cells.is_missing(value) or (text := str(value).strip().strip("[]()").strip()) == "":
        return None
    parts = _parts_of(text)
    times = [_parse_number(part, "acquisition time") for part in parts]
    if not all(a < b for a, b in pairwise(times)):
        raise ValueError(f"acquisition times {value} are not ascending")
    if len(parts) > 1 and all(map(_CLOCK.fullmatch, parts)):
        raise ValueError(
            f"acquisition times {value} look like times of day (HHMMSS), but must be in seconds"
        )
    span = times[-1] - times[0]
    if span > _LONGEST_S:
        raise ValueError(
            f"acquisition times {value} span more than 24 hours, but must be in seconds"
        )
    return tuple(time - times[0] for time in times)


def _parts_of(text: str) -> list[str]:
    if ";" in text:
        parts = text.split(";")
    elif re.search(r",\s", text):
        parts = re.split(r",\s+|\s+", text)
        if any("," in part for part in parts):
            raise ValueError(f"acquisition times {text}: not every comma is followed by a blank")
    elif re.search(r"\s", text):
        parts = text.split()
    else:
        parts = text.split(",")
    return [part.strip() for part in parts if part.strip()]


def _parse_number(value: object, what: str) -> float:
    try:
        if cells.is_percent(value):
            raise ValueError("it has a percent sign")  # noqa: TRY301
        return cells.parse_number(value)
    except cells.AmbiguousNumberError as error:
        raise ValueError(f"{what} {error}") from None
    except ValueError:
        raise ValueError(f"{what} {value!r} is not a number") from None
