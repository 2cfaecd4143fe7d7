"""Import nibabel's headers without opening a socket.

nibabel imports pydicom, which loads `requests` to fetch its test files, whose urllib3 opens a
socket on import, to see whether this computer has IPv6. Nothing is sent, but a program that claims
not to use the network should not open a socket.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["HeaderDataError", "Nifti1Header", "Nifti2Header", "data_type_codes"]


@contextmanager
def _without_package(name: str) -> Iterator[None]:
    """Hide a package from imports in the block, unless it was imported before."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # what Python takes for "there is none"
    try:
        yield
    finally:
        del sys.modules[name]


with _without_package("requests"):
    from nibabel.nifti1 import Nifti1Header, data_type_codes
    from nibabel.nifti2 import Nifti2Header
    from nibabel.spatialimages import HeaderDataError
