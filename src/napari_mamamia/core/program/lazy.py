"""Lazy import of a package's names on first use, so that importing the package is fast."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` function of a package whose names come from other modules.

    Parameters
    ----------
    package
        The package's ``__name__``.
    homes
        Names by module, relative to the package. A module without names is exported itself.

    Examples
    --------
    >>> find = lazy_names("collections", {"abc": ("Mapping",)})
    >>> find("Mapping").__name__
    'Mapping'
    >>> find("Mappings")
    Traceback (most recent call last):
    AttributeError: module 'collections' has no attribute 'Mappings'
    """

    def find(name: str) -> object:
        for home, names in homes.items():
            if name in names:
                return getattr(import_module(f"{package}.{home}"), name)
            if not names and name == home:
                return import_module(f"{package}.{home}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
