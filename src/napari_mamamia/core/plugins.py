"""Plug-ins: objects that installed packages declare as entry points."""

import hashlib
import inspect
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

T = TypeVar("T")


class PluginWarning(UserWarning):
    """Warning that a plug-in was not loaded."""


def be_quiet() -> None:
    """Suppress plug-in warnings in a worker process, because its parent already shows them."""
    warnings.simplefilter("ignore", PluginWarning)


@dataclass(frozen=True, slots=True)
class Problem:
    """A plug-in that was not loaded: its entry-point group, name, package and the reason."""

    group: str
    name: str
    package: str
    reason: str

    @property
    def text(self) -> str:
        """The problem as a sentence."""
        return f"{self.name} of {self.package} ({self.group}) was left out: {self.reason}"


_problems: Final[list[Problem]] = []


def list_problems() -> tuple[Problem, ...]:
    """Return the problems of all plug-ins that were not loaded in this process."""
    return tuple(_problems)


def leave_out(group: str, name: str, reason: str, package: str = "") -> None:
    """Warn that a plug-in is not loaded, and record the problem for `list_problems`.

    Parameters
    ----------
    group
        The entry-point group.
    name
        The name of the plug-in.
    reason
        Why it is not loaded.
    package
        The package of the plug-in; by default the package whose entry point has this name.
    """
    from importlib.metadata import entry_points

    points = entry_points(group=group)
    packages = (point.dist.name for point in points if point.name == name and point.dist)
    problem = Problem(group, name, package or next(packages, "an unknown package"), reason)
    if problem not in _problems:
        _problems.append(problem)
        warnings.warn(problem.text, PluginWarning, stacklevel=2)


def describe_error(error: Exception) -> str:
    """Return an error as the text of the reason why a plug-in is not loaded."""
    return f"{type(error).__name__}: {error}"


@cache
def load_group(group: str, kind: type[T], taken: frozenset[str] = frozenset()) -> Mapping[str, T]:
    """Return the plug-ins of an entry-point group by name; load the group only once.

    A broken plug-in is left out with a warning, and does not affect the others.

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
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        reason = ""
        if point.name in taken or point.name in members:
            reason = "the name is taken"
        else:
            try:
                loaded = point.load()
            except Exception as error:  # noqa: BLE001 - foreign code may raise anything
                reason = describe_error(error)
            else:
                if not isinstance(loaded, kind):
                    reason = f"expected a {kind.__name__}, but found a {type(loaded).__name__}"
                elif getattr(loaded, "name", point.name) != point.name:
                    reason = f"its entry point should have the name {loaded.name}"  # type: ignore[attr-defined]
                else:
                    members[point.name] = loaded
        if reason:
            leave_out(group, point.name, reason, point.dist.name if point.dist else "")
    return members


@cache
def list_names(group: str) -> tuple[str, ...]:
    """Return the names of the plug-ins in an entry-point group, without loading them."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=group)}))


class Registry(Mapping[str, T]):
    """A mapping of names to built-in members, followed by members from installed packages.

    Plug-ins are loaded once, on first use. A plug-in that is broken, or whose name is already in
    use, is left out with a warning.

    Parameters
    ----------
    group
        The entry-point group of the plug-ins.
    kind
        The class of the members.
    built_in
        The members of this software by name.
    reserved
        Further names that no plug-in may have.

    Examples
    --------
    >>> colours = Registry("napari_mamamia.no_such_group", str, {"sky": "blue"})
    >>> list(colours), colours["sky"]
    (['sky'], 'blue')
    """

    def __init__(
        self, group: str, kind: type[T], built_in: Mapping[str, T], reserved: Iterable[str] = ()
    ) -> None:
        self.group = group
        self._kind = kind
        self._built_in = built_in
        self._taken = frozenset(map(str, (*built_in, *reserved)))

    @property
    def plugins(self) -> Mapping[str, T]:
        """The members of installed packages by name."""
        return load_group(self.group, self._kind, self._taken)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> T:
        return self._built_in[name] if name in self._built_in else self.plugins[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self.plugins

    def __len__(self) -> int:
        return len(self._built_in) + len(self.plugins)

    def code(self, name: str) -> "PluginCode | None":
        """Return the code of a member from an installed package, or None for a built-in member."""
        if name not in self.plugins:
            return None
        from importlib.metadata import entry_points

        spec: Any = self.plugins[name]
        point = next(point for point in entry_points(group=self.group) if point.name == name)
        values = [getattr(spec, one.name) for one in fields(spec)]
        modules = {point.module, *(value.__module__ for value in values if callable(value))}
        top = point.module.partition(".")[0]
        files = {module: inspect.getsourcefile(sys.modules[module])
                 for module in sorted(modules) if module.partition(".")[0] == top}  # fmt: skip
        sums = [(module, hashlib.sha256(Path(file).read_bytes()).hexdigest())
                for module, file in files.items() if file is not None]  # fmt: skip
        package = (point.dist.name, point.dist.version) if point.dist else ("", "")
        return PluginCode(self.group, name, *package, tuple(sums))


@dataclass(frozen=True, slots=True)
class PluginCode:
    """The code of a plug-in: its package with the version, and the SHA-256 of its modules.

    `modules` are the module of the entry point, and the modules of the functions in its fields that
    belong to the same top-level package.
    """

    group: str
    name: str
    package: str
    version: str
    modules: tuple[tuple[str, str], ...]
