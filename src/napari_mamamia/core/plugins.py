"""Plug-ins: objects that installed packages name in their entry points, found by group."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """A plug-in that was left out: its group, its name, its package, and the reason."""

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
    """Load the plug-ins of an entry-point group once; a broken plug-in does not affect the others.

    Parameters
    ----------
    group
        The entry-point group.
    kind
        The class that each plug-in must be an instance of.
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
                if isinstance(loaded, kind) and getattr(loaded, "name", point.name) != point.name:
                    reason = f"its entry point should be called {loaded.name}"  # type: ignore[attr-defined]
                elif isinstance(loaded, kind):
                    members[point.name] = loaded
                else:
                    reason = f"expected a {kind.__name__}, but found a {type(loaded).__name__}"
        if reason:
            problems.append(Problem(group, point.name, package, reason))
    return Plugins(members, tuple(problems))


@cache
def list_names(group: str) -> tuple[str, ...]:
    """Return the names of a group's plug-ins without loading them."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=group)}))


class Registry(Mapping[str, T]):
    """Members by name: the built-in members, then those of installed packages.

    Plug-ins are loaded once, on first use. A plug-in that is broken, or whose name is taken, is
    left out (`problems`).

    Parameters
    ----------
    group
        The entry-point group of the plug-ins.
    kind
        The class of the members.
    built_in
        The members of this software by name.

    Examples
    --------
    >>> colours = Registry("napari_mamamia.no_such_group", str, {"sky": "blue"})
    >>> list(colours), colours["sky"], colours.problems
    (['sky'], 'blue', ())
    """

    def __init__(self, group: str, kind: type[T], built_in: Mapping[str, T]) -> None:
        self._group = group
        self._kind = kind
        self._built_in = built_in

    @property
    def _plugins(self) -> Plugins[T]:
        taken = frozenset(map(str, self._built_in))
        return load_group(self._group, self._kind, taken)  # type: ignore[arg-type]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the plug-ins that were left out."""
        return self._plugins.problems

    def __getitem__(self, name: str) -> T:
        """Return a member by name."""
        return self._built_in[name] if name in self._built_in else self._plugins.members[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, the built-in names first."""
        yield from self._built_in
        yield from self._plugins.members

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._built_in) + len(self._plugins.members)
