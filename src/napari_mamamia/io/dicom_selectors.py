"""What a user says of the parts of a study: `series=5,role=water` are used, or left out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom_parts import Part
from napari_mamamia.io.dicom_roles import Role

__all__ = ["Selection", "Selector", "named_series", "read_selectors"]


class _Key(StrEnum):
    SERIES = "series"
    ROLE = "role"
    ECHO = "echo"
    SIDE = "side"


_SIDES: Final = ("left", "right")


@dataclass(frozen=True, slots=True)
class Selector:
    """One condition, such as series 5; `value` is in the form that `text` has."""

    key: str
    value: str

    @property
    def text(self) -> str:
        """The selector as it is typed."""
        return f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True)
class Selection:
    """The selectors of `--use` and `--leave-out`; empty ones leave all to the import.

    Several of one key are alternatives, of different keys conditions that must all hold.
    """

    use: tuple[Selector, ...] = ()
    leave_out: tuple[Selector, ...] = ()

    @property
    def names_roles(self) -> bool:
        """Whether roles were named, which then count whatever the import thinks of them."""
        return any(one.key == _Key.ROLE for one in self.use)

    def wants_role(self, role: Role) -> bool:
        """Whether a role was named to be used."""
        return Selector(_Key.ROLE, role.value) in self.use

    def leaves_out_role(self, role: Role) -> bool:
        """Whether a role was named to be left out, whatever the series."""
        return Selector(_Key.ROLE, role.value) in self.leave_out

    def uses(self, part: Part) -> bool:
        """Whether a part may count, by what the user said."""
        if self.use and not _matches(part, self.use):
            return False
        return not (self.leave_out and _matches(part, self.leave_out))

    def uses_series(self, number: int | None) -> bool:
        """Whether a series may count of which nothing but the number is known."""
        wanted = {one.value for one in self.use if one.key == _Key.SERIES}
        only_series = all(one.key == _Key.SERIES for one in self.leave_out)
        unwanted = {one.value for one in self.leave_out if only_series}
        return (not wanted or str(number) in wanted) and str(number) not in unwanted

    def names_series(self, number: int | None) -> bool:
        """Whether the user named a series to be used."""
        return Selector(_Key.SERIES, str(number)) in self.use


def named_series(numbers: Iterable[int]) -> tuple[Selector, ...]:
    """Return the selectors of series numbers."""
    return tuple(Selector(_Key.SERIES, str(number)) for number in numbers)


def read_selectors(texts: Sequence[str]) -> tuple[Selector, ...]:
    """Return the selectors of texts such as ``series=5,6,role=water``.

    A value without a key belongs to the key before it.

    Raises
    ------
    CaseError
        If a key or value is not known.

    Examples
    --------
    >>> [one.text for one in read_selectors(["series=5,6", "role=water"])]
    ['series=5', 'series=6', 'role=water']
    """
    found = []
    for text in texts:
        key = ""
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, mark, value = part.partition("=")
            key, value = (name.strip().casefold(), value.strip()) if mark else (key, part)
            found.append(_selector(key, value.casefold(), part))
    return tuple(found)


def _selector(key: str, value: str, text: str) -> Selector:
    known = {
        _Key.SERIES: value.removeprefix("-").isdecimal(),
        _Key.ECHO: value.isdecimal(),
        _Key.SIDE: value in _SIDES,
        _Key.ROLE: value in set(Role),
    }
    if key not in known or not known[_Key(key)]:
        roles = ", ".join(Role)
        raise CaseError(
            f"expected a selector such as series=5, echo=2, side=left or role=water, got {text!r}: "
            f"the roles are {roles}"
        )
    is_number = key in {_Key.SERIES, _Key.ECHO}
    return Selector(key, str(int(value)) if is_number else value)


def _matches(part: Part, selectors: Sequence[Selector]) -> bool:
    values = {
        _Key.SERIES: str(part.header.series_number),
        _Key.ROLE: part.role.value,
        _Key.ECHO: str(part.echo),
        _Key.SIDE: part.side,
    }
    keys = {one.key for one in selectors}
    return all(
        values[_Key(key)] in {one.value for one in selectors if one.key == key} for key in keys
    )
