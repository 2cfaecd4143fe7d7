"""What a user says of the parts of a study: `series=5,role=water` are used, or left out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.dicom.parts import Part
from napari_mamamia.io.dicom.roles import Role
from napari_mamamia.io.dicom.slices import UNNUMBERED


class _Key(StrEnum):
    SERIES = "series"
    ROLE = "role"
    ECHO = "echo"
    SIDE = "side"
    ORIENTATION = "orientation"
    TRIGGER = "trigger"
    PHASE = "phase"


_SIDES: Final = ("left", "right")
_ORIENTATION: Final = re.compile(r"(?:axial|coronal|sagittal)(?:-\d+)?")
_NUMBERS: Final = frozenset({_Key.SERIES, _Key.ECHO, _Key.TRIGGER, _Key.PHASE})
_NO_NUMBER: Final = "none"
"""What is said as the number of series that have none."""


@dataclass(frozen=True, slots=True)
class Selector:
    """One condition, such as series 5; `value` is in the form that `text` has."""

    key: str
    value: str

    @property
    def text(self) -> str:
        """The selector as it is typed."""
        return f"{self.key}={self.value}"


Group: TypeAlias = tuple[Selector, ...]
"""Selectors that belong together: of one key alternatives, of different keys conditions that must
all hold, as in ``series=5,6,role=water``."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups of parts that a user counts in and leaves out; empty: the import decides.

    A part counts where one of the groups fits it; groups that name phases are for parts of one
    phase each. `side` leaves out the other breast's parts, and names nothing.
    """

    use: tuple[Group, ...] = ()
    leave_out: tuple[Group, ...] = ()
    side: str = ""

    def names_role_of(self, part: Part) -> bool:
        """Whether a part was named by its role, and so counts whatever the import thinks of it."""
        return any(
            _is_match(part, group)
            for group in self.use
            if any(one.key == _Key.ROLE for one in group)
        )

    @property
    def names_phases(self) -> bool:
        """Whether single phases of a series were named."""
        return any(one.key == _Key.PHASE for group in self.groups for one in group)

    def wants_role(self, role: Role) -> bool:
        """Whether a role was named to be used."""
        return any(Selector(_Key.ROLE, role.value) in group for group in self.use)

    def leaves_out_role(self, role: Role) -> bool:
        """Whether a role was named to be left out, whatever the series."""
        return (Selector(_Key.ROLE, role.value),) in self.leave_out

    def uses(self, part: Part) -> bool:
        """Whether a part may count, by what the user said."""
        if self.side and part.side not in ("", self.side):
            return False
        if self.use and not any(_is_match(part, group) for group in self.use):
            return False
        return not any(_is_match(part, group) for group in self.leave_out)

    def uses_series(self, number: int | None) -> bool:
        """Whether a series may count of which nothing but the number is known."""
        used_numbers = [_list_values(group, _Key.SERIES) for group in self.use]
        unwanted = [
            _list_values(group, _Key.SERIES)
            for group in self.leave_out
            if all(one.key == _Key.SERIES for one in group)
        ]
        value = _series_value(number)
        return (
            not used_numbers or any(not values or value in values for values in used_numbers)
        ) and not any(value in values for values in unwanted)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, of what counts and of what does not."""
        return (*self.use, *self.leave_out)

    def names_series(self, number: int | None) -> bool:
        """Whether the user named a series to be used."""
        return any(Selector(_Key.SERIES, _series_value(number)) in group for group in self.use)


def idle_groups(
    groups: Iterable[Group], parts: Sequence[Part], numbers: Iterable[int | None]
) -> list[Group]:
    """Return the groups, and the single values of a group, that fit nothing of a study.

    `numbers` are those of series of which nothing else is known. Roles that only pixels give, and
    those of files, fit wherever they are said.
    """
    series = [{Selector(_Key.SERIES, _series_value(number))} for number in numbers]
    idle: list[Group] = []
    for group in groups:
        if any(one.key == _Key.ROLE for one in group):
            continue
        alone = [(one,) for one in group if not _has_match((one,), parts, series)]
        idle += alone or ([] if _has_match(group, parts, series) else [group])
    return idle


def _has_match(group: Group, parts: Sequence[Part], series: Sequence[set[Selector]]) -> bool:
    return any(_is_match(part, group) for part in parts) or any(
        selectors & {*group} for selectors in series
    )


def named_series(numbers: Iterable[int]) -> tuple[Group, ...]:
    """Return the one group of series numbers, none where there are none."""
    group = tuple(Selector(_Key.SERIES, str(number)) for number in numbers)
    return (group,) if group else ()


def selectors_of(part: Part) -> Group:
    """Return the group that names a part and no other, empty where nothing tells it from others.

    Phases stand in it where others of the same series, role, echo, ... are of another part.
    """
    values = _values_of(part)
    if not part.turn:
        values.pop(_Key.ORIENTATION)
    named = tuple(Selector(key, value) for key, value in values.items() if value)
    if len(part.phases) == part.n_numbered:
        return named
    if UNNUMBERED in part.phases:
        return ()
    return named + tuple(Selector(_Key.PHASE, str(number)) for number in part.phases)


def read_selectors(texts: Sequence[str]) -> tuple[Group, ...]:
    """Return a group for each text such as ``series=5,6,role=water``.

    A value without a key belongs to the key before it.

    Raises
    ------
    CaseError
        If a key or value is not known.

    Examples
    --------
    >>> [[one.text for one in group] for group in read_selectors(["series=5,6", "role=water"])]
    [['series=5', 'series=6'], ['role=water']]
    """
    groups = []
    for text in texts:
        key, group = "", []
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, mark, value = part.partition("=")
            key, value = (name.strip().casefold(), value.strip()) if mark else (key, part)
            group.append(_parse_selector(key, value.casefold(), part))
        if group:
            groups.append(tuple(group))
    return tuple(groups)


def _parse_selector(key: str, value: str, text: str) -> Selector:
    checks = {
        _Key.SERIES: value == _NO_NUMBER or value.removeprefix("-").isdecimal(),
        _Key.ECHO: value.isdecimal(),
        _Key.SIDE: value in _SIDES,
        _Key.ROLE: value in set(Role),
        _Key.ORIENTATION: _ORIENTATION.fullmatch(value) is not None,
        _Key.TRIGGER: value.isdecimal(),
        _Key.PHASE: value.isdecimal(),
    }
    if key not in checks or not checks[_Key(key)]:
        roles = ", ".join(Role)
        raise CaseError(
            f"expected a selector such as series=5, phase=0, echo=2, side=left, role=water, "
            f"trigger=1 or orientation=axial, got {text!r}: the roles are {roles}"
        )
    is_number = key in _NUMBERS and value != _NO_NUMBER
    return Selector(key, str(int(value)) if is_number else value)


def _is_match(part: Part, group: Group) -> bool:
    values = _values_of(part)
    phases = {str(number) for number in part.phases}
    return all(
        bool(phases & _list_values(group, one.key))
        if one.key == _Key.PHASE
        else values[_Key(one.key)] in _list_values(group, one.key)
        for one in group
    )


def _series_value(number: int | None) -> str:
    return _NO_NUMBER if number is None else str(number)


def _values_of(part: Part) -> dict[_Key, str]:
    """Return what selectors can say of a part, "" where nothing is to be said."""
    return {
        _Key.SERIES: _series_value(part.header.series_number),
        _Key.ROLE: part.role.value,
        _Key.ECHO: str(part.echo),
        _Key.SIDE: part.side,
        _Key.ORIENTATION: part.plane,
        _Key.TRIGGER: str(part.trigger or ""),
    }


def _list_values(group: Group, key: str) -> set[str]:
    return {one.value for one in group if one.key == key}
