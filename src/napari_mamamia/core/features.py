"""Features: what a package adds to the program, as one record found by its entry point.

A package names its record in the entry-point group `napari_mamamia.features`; the features in
`napari_mamamia.features` are found the same way. A record holds names only: nothing of a feature
is imported before somebody uses it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final

from napari_mamamia.core.plugins import Problem, load_group

GROUP: Final = "napari_mamamia.features"


def load_attribute(attribute: str) -> Any:
    """Return what ``module:attribute`` names."""
    module, _, name = attribute.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program.

    Parameters
    ----------
    name
        The word after `mamamia`.
    attribute
        The function, or the typer application of a group of commands, as ``module:attribute``.
    summary
        The first line of the command's own help.
    heading
        The heading of `mamamia --help` that the command is listed under.
    """

    name: str
    attribute: str
    summary: str
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Feature:
    """What one package adds to the program.

    Parameters
    ----------
    name
        Its name, unique among the installed features.
    summary
        One line that says what it is for.
    commands
        Its commands.
    library
        Its names in `napari_mamamia`, each as ``module:attribute``.
    extras
        The extras that it needs, such as ``dicom``.
    docs
        Its pages of the documentation, or an address.
    """

    name: str
    summary: str
    commands: tuple[Command, ...] = ()
    library: Mapping[str, str] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()


@cache
def list_features() -> tuple[Feature, ...]:
    """Return the installed features, by name; those that cannot be loaded are left out."""
    return tuple(load_group(GROUP, Feature).members.values())


def list_problems() -> tuple[Problem, ...]:
    """Return what is wrong with the features that were left out."""
    return load_group(GROUP, Feature).problems


def find_library_name(name: str) -> str | None:
    """Return where a name of the library is, as ``module:attribute``; None if no feature has it."""
    homes = (feature.library[name] for feature in list_features() if name in feature.library)
    return next(homes, None)


def list_library_names() -> tuple[str, ...]:
    """Return the names that the installed features add to the library."""
    return tuple(name for feature in list_features() for name in feature.library)
