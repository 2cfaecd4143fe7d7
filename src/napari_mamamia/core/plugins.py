"""Plug-ins: objects that installed packages name in their entry points, found by group."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """A plug-in that was left out: its group, its name, the package it is from, and why."""

    group: str
    name: str
    package: str
    reason: str

    @property
    def text(self) -> str:
        """The problem in a sentence."""
        return f"{self.name} of {self.package} ({self.group}) was left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plugins(Generic[T]):
    """The plug-ins of a group by name, and those that were left out."""

    members: Mapping[str, T]
    problems: tuple[Problem, ...]


@cache
def load_group(group: str, kind: type[T], taken: frozenset[str] = frozenset()) -> Plugins[T]:
    """Load the plug-ins of an entry-point group once; a broken one breaks nothing else.

    Parameters
    ----------
    group
        The entry-point group.
    kind
        What each plug-in must be an instance of.
    taken
        Built-in names, which no plug-in may have.
    """
    from importlib.metadata import entry_points  # 15 ms of the program's start

    members: dict[str, T] = {}
    problems: list[Problem] = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        package = point.dist.name if point.dist is not None else "an unknown package"
        reason = ""
        if point.name in taken or point.name in members:
            reason = "the name is taken"
        else:
            try:
                loaded = point.load()
            except Exception as error:  # noqa: BLE001 - foreign code may raise anything
                reason = f"{type(error).__name__}: {error}"
            else:
                if isinstance(loaded, kind):
                    members[point.name] = loaded
                else:
                    reason = f"expected a {kind.__name__}, but found a {type(loaded).__name__}"
        if reason:
            problems.append(Problem(group, point.name, package, reason))
    return Plugins(members, tuple(problems))
