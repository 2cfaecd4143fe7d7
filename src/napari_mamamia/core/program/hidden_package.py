"""Importing a package as if another one were not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_package(name: str) -> Iterator[None]:
    """Hide a package from imports in the block, unless it was imported before.

    pydicom loads `requests` to fetch its test files, whose urllib3 opens a socket on import, to see
    whether this computer has IPv6. It sends nothing; but a program that claims to use no network
    should open no socket. So pydicom, and nibabel, which imports it, are first imported in here.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # what Python takes for "there is none"
    try:
        yield
    finally:
        del sys.modules[name]
