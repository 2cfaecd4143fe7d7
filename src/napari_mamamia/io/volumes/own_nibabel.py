"""nibabel's headers, imported so that no socket is opened.

nibabel asks for pydicom, which loads `requests` to fetch test files of its own, whose urllib3 opens
a socket as it is imported, to see whether this computer has IPv6. Nothing is sent by it; but a
program that says that it talks to nobody should not have to explain one.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["HeaderDataError", "Nifti1Header", "Nifti2Header", "data_type_codes"]


@contextmanager
def _without_package(name: str) -> Iterator[None]:
    """Let what is imported within find no package of a name, unless it was imported before."""
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
