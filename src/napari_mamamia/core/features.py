"""Features: additions to the program that packages declare as entry points.

A record describes each feature. A package refers to its record in the entry-point group
`napari_mamamia.features`; the features in `napari_mamamia.features` are found in the same way. A
record contains only names, so that the modules of a feature are imported on first use.
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
    """Import and return the object with the path ``module:attribute``."""
    module, _, name = attribute.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand of `mamamia`.

    Parameters
    ----------
    name
        The word after `mamamia`.
    attribute
        The function, or the typer application of a group of commands, as ``module:attribute``.
    summary
        The first line of the command's help text.
    heading
        The heading of `mamamia --help` under which the command is listed.
    """

    name: str
    attribute: str
    summary: str
    heading: str = ""


RESULTS: Final = "Results"
"""Value of `step` for a page that is a tab of the results below the image."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the window.

    Parameters
    ----------
    name
        The page's unique name in the window, used as the heading of its section and in the menu.
    step
        The name of the step that contains the section, `RESULTS`, or "" for a page without a
        section.
    widget
        The class of the page's widget as ``module:attribute``; it takes no arguments.
    flow
        Function that is called with the window's panel and the widget when the page is first shown,
        and returns the object that controls the page, as ``module:attribute``; "" if the panel
        creates
        the page itself.
    title
        A shorter heading.
    tip
        One sentence that describes the page.
    reveals
        The kinds of hidden data that the page shows; while one of them is hidden, it stays closed.
    key
        The shortcut that opens the page, such as ``Shift-Q``; "" for none.
    menu
        Whether napari's menu has an entry for the page.
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
        """The name in the form used for identifiers."""
        return self.name.lower().replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Opener:
    """A kind of folder that a feature can open in the window.

    Parameters
    ----------
    name
        A noun phrase for the folder, such as ``a ranking``.
    page
        The page that is shown with the folder.
    recognises
        Function that returns whether a path is such a folder, as ``module:attribute``.
    opens
        Function that is called with the window's panel and the path and opens the folder, as
        ``module:attribute``.
    is_listed
        Whether the folder can also be opened from the work list and from napari; otherwise, it can
        only be dropped on the window.
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
    """The additions that one package makes to the program.

    Parameters
    ----------
    name
        The feature's unique name among the installed features.
    summary
        One line that describes the feature's purpose.
    commands
        The commands that the feature adds.
    pages
        The pages that the feature adds to the window.
    openers
        The kinds of folders that the feature opens in the window.
    services
        Sets of services that the feature's pages call, by name, each as ``module:attribute``.
    reveals
        The kinds of hidden data that each service would show, by ``set.service``.
    hooks
        Functions that the core calls if the feature is installed, by hook name, each as
        ``module:attribute``.
    library
        The names that the feature adds to `napari_mamamia`, each as ``module:attribute``.
    extras
        The extras that the feature needs, such as ``dicom``.
    docs
        The feature's documentation pages, or a web address.
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
    """Return the installed features sorted by name, without features that cannot be loaded."""
    return tuple(load_group(GROUP, Feature).values())


def load_part(feature: Feature, attribute: str) -> Any:
    """Import and return an attribute of a feature; if this fails, warn and return None."""
    try:
        return load_attribute(attribute)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        leave_out(GROUP, attribute, describe_error(error), feature.name)
        return None


def add_named(members: dict[str, T], feature: Feature, additions: Iterable[T], noun: str) -> None:
    """Add a feature's records by their `name`, except records whose name is already in use.

    Parameters
    ----------
    members
        The records by name; this mapping is changed.
    feature
        The feature.
    additions
        The feature's records.
    noun
        Noun for a record in warnings, such as ``page``.
    """
    for record in additions:
        name: str = record.name  # type: ignore[attr-defined]
        if name in members:
            leave_out(GROUP, f"the {noun} {name}", "the name is taken", feature.name)
        else:
            members[name] = record


@cache
def list_library_names() -> Mapping[str, str]:
    """Return the names that features add to the library, with their ``module:attribute``."""
    names: dict[str, str] = {}
    for feature in list_features():
        for name, attribute in feature.library.items():
            if name in names:
                leave_out(GROUP, f"the library name {name}", "the name is taken", feature.name)
            else:
                names[name] = attribute
    return names


def find_opener(path: Path, *, is_listed: bool = False) -> Opener | None:
    """Return the opener that can open a path in the window, or None.

    Parameters
    ----------
    path
        A folder or file.
    is_listed
        Whether to consider only openers with `is_listed`.
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
        If no installed feature provides the hook.
    """
    for feature in list_features():
        if name in feature.hooks:
            return load_attribute(feature.hooks[name])  # type: ignore[no-any-return]
    raise MamamiaError(
        f"expected an installed feature to provide {name}, but none does: install the package that "
        "provides it"
    )


def import_window_parts() -> None:
    """Import the modules of all pages and services of the features, which is slow."""
    for feature in list_features():
        pages = (part for page in feature.pages for part in (page.widget, page.flow))
        for attribute in (*pages, *feature.services.values()):
            load_part(feature, attribute)
