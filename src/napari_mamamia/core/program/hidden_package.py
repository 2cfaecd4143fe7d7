"""Import a package as if a second package were not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_package(name: str) -> Iterator[None]:
    """Hide a package from imports inside the block, unless it has already been imported.

    To fetch its test files, pydicom imports `requests`, whose dependency urllib3 opens a socket on
    import to check whether this computer has IPv6. It sends no data, but a program that claims not
    to use the network should open no socket. Therefore pydicom, and nibabel, which imports pydicom,
    are first imported inside this block.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # what Python takes for "there is none"
    try:
        yield
    finally:
        del sys.modules[name]
