"""Features: a package's additions to the program, as one record found by its entry point.

A package names its record in the entry-point group `napari_mamamia.features`; the features in
`napari_mamamia.features` are found the same way. A record contains only names, so the modules of a
feature are imported when they are first used.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.plugins import describe_error, leave_out, load_group

T = TypeVar("T")

GROUP: Final = "napari_mamamia.features"


def load_attribute(attribute: str) -> Any:
    """Return the object named by ``module:attribute``."""
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


RESULTS: Final = "Results"
"""The `step` of a page that is a tab of the results below the image."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the window.

    Parameters
    ----------
    name
        Its name, unique in the window; the heading of its section and its entry in the menu.
    step
        The name of the step that it is a section of, `RESULTS`, or "" where it has no section.
    widget
        The class of its widget, which takes no arguments, as ``module:attribute``.
    flow
        What is called with the window's panel and the widget when the page is first shown, and
        returns an object that makes it work, as ``module:attribute``. "" where the panel itself
        makes the page.
    title
        A shorter heading.
    tip
        One sentence that says what the page shows.
    reveals
        What a reader would see on it; the page is shut while any of that is hidden.
    key
        The key that opens it, such as ``Shift-Q``; "" for none.
    menu
        Whether napari's menu has an entry for it.
    """

    name: str
    step: str
    widget: str = ""
    flow: str = ""
    title: str = ""
    tip: str = ""
    reveals: frozenset[Hidden] = frozenset()
    key: str = ""
    menu: bool = True

    @property
    def short(self) -> str:
        """The name in an identifier."""
        return self.name.lower().replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Opener:
    """A kind of folder that a feature opens in the window.

    Parameters
    ----------
    name
        A noun phrase for the folder, such as ``a ranking``.
    page
        The page that is shown with the folder.
    recognises
        Function that returns whether a path is such a folder, as ``module:attribute``.
    opens
        Function that opens the folder, called with the window's panel and the path, as
        ``module:attribute``.
    is_listed
        Whether the folder also opens from the work list and from napari; otherwise it opens only
        when
        it is dropped on the window.
    """

    name: str
    page: str
    recognises: str
    opens: str
    is_listed: bool = False

    def open(self, panel: Any, path: Path) -> None:
        """Open a path in the window."""
        load_attribute(self.opens)(panel, path)


@dataclass(frozen=True, slots=True)
class Feature:
    """The additions of one package to the program.

    Parameters
    ----------
    name
        Its name, unique among the installed features.
    summary
        One line that describes its purpose.
    commands
        Its commands.
    pages
        Its pages of the window.
    openers
        The kinds of folders that it opens in the window.
    services
        Sets of services that its pages call, by name, each as ``module:attribute``.
    reveals
        The kinds of hidden data that each service would show, by ``set.service``.
    hooks
        Functions that the core calls if the feature is installed, by the core's name for them, each
        as ``module:attribute``.
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
    pages: tuple[Page, ...] = ()
    openers: tuple[Opener, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    reveals: Mapping[str, frozenset[Hidden]] = field(default_factory=dict)
    hooks: Mapping[str, str] = field(default_factory=dict)
    library: Mapping[str, str] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()


@cache
def list_features() -> tuple[Feature, ...]:
    """Return the installed features, by name; those that cannot be loaded are left out."""
    return tuple(load_group(GROUP, Feature).values())


def load_part(feature: Feature, attribute: str) -> Any:
    """Return a part of a feature; if it cannot be imported, leave it out and return None."""
    try:
        return load_attribute(attribute)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        leave_out(GROUP, attribute, describe_error(error), feature.name)
        return None


def add_named(members: dict[str, T], feature: Feature, additions: Iterable[T], noun: str) -> None:
    """Add a feature's records by their `name`; leave out those whose name is taken.

    Parameters
    ----------
    members
        The records by name, which are added to.
    feature
        The feature.
    additions
        Its records.
    noun
        What the records are, such as ``page``.
    """
    for record in additions:
        name: str = record.name  # type: ignore[attr-defined]
        if name in members:
            leave_out(GROUP, f"the {noun} {name}", "the name is taken", feature.name)
        else:
            members[name] = record


@cache
def list_library_names() -> Mapping[str, str]:
    """Return the names that features add to the library, each with its ``module:attribute``."""
    names: dict[str, str] = {}
    for feature in list_features():
        for name, attribute in feature.library.items():
            if name in names:
                leave_out(GROUP, f"the library name {name}", "the name is taken", feature.name)
            else:
                names[name] = attribute
    return names


def find_opener(path: Path, *, is_listed: bool = False) -> Opener | None:
    """Return the opener for a path in the window, None if no feature has one.

    Parameters
    ----------
    path
        A folder or file.
    is_listed
        Whether only openers of the work list are considered.
    """
    for feature in list_features():
        for opener in feature.openers:
            recognises = load_part(feature, opener.recognises)
            if opener.is_listed >= is_listed and recognises is not None and recognises(path):
                return opener
    return None


def find_hook(name: str) -> Callable[..., Any]:
    """Return the function that an installed feature provides for a hook.

    Raises
    ------
    MamamiaError
        If no feature provides it.
    """
    for feature in list_features():
        if name in feature.hooks:
            return load_attribute(feature.hooks[name])  # type: ignore[no-any-return]
    raise MamamiaError(
        f"expected a feature with {name}, but none is installed: install the package that "
        "provides it"
    )


def import_window_parts() -> None:
    """Import the modules of the features' pages and services, which takes long."""
    for feature in list_features():
        pages = (part for page in feature.pages for part in (page.widget, page.flow))
        for attribute in (*pages, *feature.services.values()):
            load_part(feature, attribute)
