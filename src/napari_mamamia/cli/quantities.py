"""Parse numeric options, each of which has a range and a unit."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import typer

from napari_mamamia.io.files.csv_text import is_number

_WEEK_S: Final = 604800
_DAY_S: Final = 86400


@dataclass(frozen=True)
class Quantity:
    """A parser for a numeric option, passed to typer as `parser`.

    Parameters
    ----------
    what
        The name of the quantity in words, such as "a flip angle".
    least, most
        The smallest and largest valid numbers.
    unit
        The unit shown after numbers, such as "degrees"; "" if there is none.
    advice
        Advice on which value to type.
    is_whole
        Whether only whole numbers are accepted.

    Examples
    --------
    >>> angle = Quantity("a flip angle", 1, 90, "degrees", "type degrees, such as 12")
    >>> angle("12")
    12.0
    """

    what: str
    least: float
    most: float
    unit: str
    advice: str
    is_whole: bool = False

    __name__ = "number"  # shown by older versions of typer

    def __call__(self, text: str | float) -> float:
        """Parse the number.

        Raises
        ------
        typer.BadParameter
            If the value is not a number, not finite, or outside the range.
        """
        try:
            number = int(text) if self.is_whole else float(text)
        except ValueError:
            number = math.nan
        if not self.least <= number <= self.most:
            raise typer.BadParameter(f"expected {self.text}, but got {text}: {self.advice}")
        return number

    @property
    def text(self) -> str:
        """Describe the expected value, with its range and unit."""
        whole = ", a whole number," if self.is_whole else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.what}{whole} of {self.least:.12g} to {self.most:.12g}{unit}"


SECONDS: Final = Quantity("a time limit", 0.001, _WEEK_S, "s", "type seconds, such as 600")
SECONDS_OF_PHASE: Final = Quantity("a time", -_DAY_S, _DAY_S, "s", "type seconds, such as 90")
LABEL: Final = Quantity(
    "a mask's value",
    1e-6,
    2**31 - 1,
    "",
    "type the value of the tumour, such as 1; 0 is background",
)


@dataclass(frozen=True)
class _LabelOrName:
    """A parser for a label value or the name of a segment."""

    __name__ = "value or name"

    def __call__(self, text: str | float) -> float | str:
        """Parse a number; a string that is not a number is returned as a name."""
        name = str(text).strip()
        return LABEL(text) if not name or is_number(name) else name


LABEL_OR_NAME: Final = _LabelOrName()
SENSITIVITY: Final = Quantity("a sensitivity", 0.001, 1, "", "type a fraction, such as 0.87")
GIGABYTES: Final = Quantity("an amount of memory", 0.1, 100_000, "GB", "type gigabytes, such as 8")
INDEX: Final = Quantity("a phase", 0, 999, "", "count from 0, before contrast", is_whole=True)


def times_of_text(text: str) -> tuple[float, ...] | None:
    """Parse the time of each phase in seconds; return None if the string is empty.

    Raises
    ------
    typer.BadParameter
        For the reasons given in `numbers_of_text`, or if the times do not increase.
    """
    times = numbers_of_text(text, SECONDS_OF_PHASE, "0,82,148")
    if times is not None and any(late <= early for early, late in pairwise(times)):
        raise typer.BadParameter(
            f"expected times that rise from phase to phase, but got {text}: type the time of every "
            "phase in seconds, in order"
        )
    return times


def numbers_of_text(
    text: str, quantity: Quantity, example: str = "2,4"
) -> tuple[float, ...] | None:
    """Parse numbers separated by commas or spaces; return None if the string is empty.

    Raises
    ------
    typer.BadParameter
        If an entry is not a number, or is outside the range.

    Examples
    --------
    >>> numbers_of_text("0, 82, 148", SECONDS_OF_PHASE)
    (0.0, 82.0, 148.0)
    """
    parts = text.replace(",", " ").split()
    for part in parts:
        try:
            quantity(part)
        except typer.BadParameter as error:
            raise typer.BadParameter(f'{error.message} (several: "{example}")') from error
    return tuple(quantity(part) for part in parts) or None
