"""Parse DICOM dates and times (DA, TM, DT) in the forms that the standard allows.

Source: DICOM PS3.5, 6.2, with its notes on the forms of ACR-NEMA 300 (`09:00:07`, `2020.01.02`).
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final, NamedTuple, TypeVar

DAY_S: Final = 86400.0
_DATE: Final = re.compile(r"(\d{4})(\.?)(\d\d)\2(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"(\d\d)(?:(:?)(\d\d)(?:\2(\d\d(?:\.\d{1,6})?))?)?", re.ASCII)
_DATE_TIME: Final = re.compile(r"(\d{8})(\d{2,6}(?:\.\d+)?)([+-]\d{4})?", re.ASCII)
_ZONE: Final = re.compile(r"([+-])(\d\d)(\d\d)", re.ASCII)
_MOST_ZONE_HOURS: Final = 14
_LEAP_SECOND: Final = 60
_CLOCK_LIKE: Final = re.compile(r"[\d:. ]*([ap]m)?", re.IGNORECASE)
_DATE_LIKE: Final = re.compile(r"\d{8}|\d +\d|\..*\.")
_LONGEST: Final = 24

_Parsed = TypeVar("_Parsed")


class Moment(NamedTuple):
    """A time in seconds since the year 1, or since midnight if it has no date.

    The time zone is given as seconds ahead of UTC. `unit_s` is 60 or 3600 where the value has no
    seconds, or no minutes.
    """

    local_s: float
    zone_s: float | None
    unit_s: float = 1.0

    @property
    def utc_s(self) -> float:
        """The time in UTC if the time zone is known, otherwise the time as stored."""
        return self.local_s - (self.zone_s or 0.0)


def read_date(value: Any) -> date | None:
    """Return the day of a DA value (`YYYYMMDD` or `YYYY.MM.DD`), or None if invalid."""
    match = _DATE.fullmatch(_without_padding(value))
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return None


def read_time_s(value: Any) -> float | None:
    """Return the seconds since midnight of a TM value, or None if invalid.

    `HH`, `HHMM`, `HHMMSS`, `HHMMSS.F` with one to six digits of fraction, or with colons. Second 60
    is a leap second and counts as the next minute's first.

    Examples
    --------
    >>> read_time_s("090007.5"), read_time_s("09:00:07"), read_time_s("09")
    (32407.5, 32407.0, 32400.0)
    >>> read_time_s("90007.000"), read_time_s("1:22:00 PM"), read_time_s("096107")
    (None, None, None)
    """
    match = _TIME.fullmatch(_without_padding(value))
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[3] or 0), float(match[4] or 0)
    if hour > 23 or minute > 59 or int(second) > _LEAP_SECOND:
        return None
    return hour * 3600 + minute * 60 + second


def _read_unit_s(value: Any) -> float:
    """Return the precision of a TM value in seconds."""
    match = _TIME.fullmatch(_without_padding(value))
    return 1.0 if match is None or match[4] else 60.0 if match[3] else 3600.0


def read_date_time(value: Any) -> Moment | None:
    """Return the time of a DT value with date and time, or None if invalid."""
    match = _DATE_TIME.fullmatch(_without_padding(value))
    if match is None:
        return None
    day, time_s, zone_s = read_date(match[1]), read_time_s(match[2]), read_zone_s(match[3])
    if day is None or time_s is None or (zone_s is None and match[3]):
        return None
    return Moment(day.toordinal() * DAY_S + time_s, zone_s, _read_unit_s(match[2]))


def read_zone_s(value: Any) -> float | None:
    """Return the offset in seconds of a time zone (`+HHMM` or `-HHMM`), or None if invalid."""
    match = _ZONE.fullmatch(_without_padding(value))
    if match is None or int(match[2]) > _MOST_ZONE_HOURS or int(match[3]) > 59:
        return None
    ahead_s = int(match[2]) * 3600.0 + int(match[3]) * 60.0
    return -ahead_s if match[1] == "-" else ahead_s


class TimeElements:
    """Dates and times of one data set; `refused` maps an element to its invalid value.

    A value that may hold a date or a name is described by its form only, because records keep it.
    """

    __slots__ = ("_content", "refused", "zone_s")

    def __init__(self, content: Any, zone_s: float | None = None) -> None:
        self._content = content
        self.refused: dict[str, str] = {}
        self.zone_s = zone_s
        """Seconds ahead of UTC of all times without a time zone of their own."""
        if zone_s is None:
            self.zone_s = self._read("TimezoneOffsetFromUTC", read_zone_s)

    def time_s(self, name: str) -> float | None:
        """Return the seconds since midnight of a TM element."""
        return self._read(name, read_time_s)

    def date_time(self, name: str) -> Moment | None:
        """Return the time of a DT element."""
        moment = self._read(name, read_date_time)
        return moment._replace(zone_s=self.zone_s) if moment and moment.zone_s is None else moment

    def dated_time(self, which: str) -> Moment | None:
        """Return the time of two elements, such as AcquisitionDate and AcquisitionTime."""
        time_s = self.time_s(f"{which}Time")
        if time_s is None:
            return None
        day = self._read(f"{which}Date", read_date)
        unit_s = _read_unit_s(self._content.get(f"{which}Time"))
        return Moment((day.toordinal() if day else 0) * DAY_S + time_s, self.zone_s, unit_s)

    def _read(self, name: str, read: Callable[[Any], _Parsed | None]) -> _Parsed | None:
        value = self._content.get(name)
        if not _without_padding(value):
            return None
        parsed = read(value)
        if parsed is None:
            self.refused[name] = _describe_value(value, is_time=read is read_time_s)
        return parsed


def _without_padding(value: Any) -> str:
    return "" if value is None else str(value).rstrip(" \0")


def _describe_value(value: Any, *, is_time: bool) -> str:
    text = _without_padding(value)[:_LONGEST]
    if is_time and _CLOCK_LIKE.fullmatch(text) and not _DATE_LIKE.search(text):
        return repr(text)
    form = re.sub(r"[^\W\d_]", "x", re.sub(r"\d", "9", text))
    return f"of the form {form!r}"
