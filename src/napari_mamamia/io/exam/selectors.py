"""Selectors, such as `series=5,role=water`, which choose parts of a study."""

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
"""Selector value for a series without a number."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A condition, such as series 5; `value` is written as in `text`."""

    key: str
    value: str

    @property
    def text(self) -> str:
        """The selector as a user would type it."""
        return f"{self.key}={self.value}"


Group: TypeAlias = tuple[Selector, ...]
"""Combined selectors, as in ``series=5,6,role=water``.

Selectors with the same key are alternatives. Selectors with different keys must all match.
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups of parts that a user chose or left out; if empty, the import decides.

    A part is used if one of the groups matches it. A group with phases matches parts of a single
    phase. `side` leaves out the parts of the other breast, but does not choose any part.
    """

    use: tuple[Group, ...] = ()
    leave_out: tuple[Group, ...] = ()
    side: str = ""

    def names_role_of(self, part: Part) -> bool:
        """Return whether the user chose a part by its role, even if its header states otherwise."""
        return any(
            _is_match(part, group)
            for group in self.use
            if any(selector.key == _Key.ROLE for selector in group)
        )

    @property
    def names_phases(self) -> bool:
        """Whether the user chose single phases of a series."""
        return any(selector.key == _Key.PHASE for group in self.groups for selector in group)

    def wants_role(self, role: Role) -> bool:
        """Return whether the user chose a role."""
        return any(Selector(_Key.ROLE, role.value) in group for group in self.use)

    def leaves_out_role(self, role: Role) -> bool:
        """Return whether the user left out a role, in all series."""
        return (Selector(_Key.ROLE, role.value),) in self.leave_out

    def uses(self, part: Part) -> bool:
        """Return whether the user's selection allows a part."""
        if self.side and part.side not in ("", self.side):
            return False
        if self.use and not any(_is_match(part, group) for group in self.use):
            return False
        return not any(_is_match(part, group) for group in self.leave_out)

    def uses_series(self, number: int | None) -> bool:
        """Return whether a series can be used if only its number is known."""
        used_numbers = [_list_values(group, _Key.SERIES) for group in self.use]
        unwanted = [
            _list_values(group, _Key.SERIES)
            for group in self.leave_out
            if all(selector.key == _Key.SERIES for selector in group)
        ]
        value = _series_value(number)
        return (
            not used_numbers or any(not values or value in values for values in used_numbers)
        ) and not any(value in values for values in unwanted)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, chosen or left out."""
        return (*self.use, *self.leave_out)

    def names_series(self, number: int | None) -> bool:
        """Return whether the user chose a series."""
        return any(Selector(_Key.SERIES, _series_value(number)) in group for group in self.use)


def idle_groups(
    groups: Iterable[Group], parts: Sequence[Part], numbers: Iterable[int | None]
) -> list[Group]:
    """Return the groups, and single values in groups, that match nothing in a study.

    `numbers` are the numbers of series about which nothing else is known. Roles that depend on
    pixels or files always match.
    """
    series = [{Selector(_Key.SERIES, _series_value(number))} for number in numbers]
    idle: list[Group] = []
    for group in groups:
        if any(selector.key == _Key.ROLE for selector in group):
            continue
        alone = [(selector,) for selector in group if not _has_match((selector,), parts, series)]
        idle += alone or ([] if _has_match(group, parts, series) else [group])
    return idle


def _has_match(group: Group, parts: Sequence[Part], series: Sequence[set[Selector]]) -> bool:
    return any(_is_match(part, group) for part in parts) or any(
        selectors & {*group} for selectors in series
    )


def named_series(numbers: Iterable[int]) -> tuple[Group, ...]:
    """Return one group with the given series numbers, or an empty tuple if there are none."""
    group = tuple(Selector(_Key.SERIES, str(number)) for number in numbers)
    return (group,) if group else ()


def selectors_of(part: Part) -> Group:
    """Return the group of selectors that matches only one part; empty if there is none.

    The group contains phases if other parts of the same series, role, echo, ... hold other phases.
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
    """Return a group for each string, such as ``series=5,6,role=water``.

    A value without a key belongs to the key before it.

    Raises
    ------
    CaseError
        If a key or value is unknown.

    Examples
    --------
    >>> [[one.text for one in group] for group in read_selectors(["series=5,6", "role=water"])]
    [['series=5', 'series=6'], ['role=water']]
    """
    groups = []
    for text in texts:
        key, group = "", []
        for part in filter(None, (plane.strip() for plane in text.split(","))):
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
            "expected a selector such as series=5, phase=0, echo=2, side=left, role=water, "
            f"trigger=1 or orientation=axial, but found {text!r}: the roles are {roles}"
        )
    is_number = key in _NUMBERS and value != _NO_NUMBER
    return Selector(key, str(int(value)) if is_number else value)


def _is_match(part: Part, group: Group) -> bool:
    values = _values_of(part)
    phases = {str(number) for number in part.phases}
    return all(
        bool(phases & _list_values(group, selector.key))
        if selector.key == _Key.PHASE
        else values[_Key(selector.key)] in _list_values(group, selector.key)
        for selector in group
    )


def _series_value(number: int | None) -> str:
    return _NO_NUMBER if number is None else str(number)


def _values_of(part: Part) -> dict[_Key, str]:
    return {
        _Key.SERIES: _series_value(part.header.series_number),
        _Key.ROLE: part.role.value,
        _Key.ECHO: str(part.echo),
        _Key.SIDE: part.side,
        _Key.ORIENTATION: part.plane,
        _Key.TRIGGER: str(part.trigger or ""),
    }


def _list_values(group: Group, key: str) -> set[str]:
    return {selector.value for selector in group if selector.key == key}
