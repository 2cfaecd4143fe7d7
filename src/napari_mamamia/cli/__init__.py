"""`mamamia`: parse, call a service, print. Needs neither a display nor napari.

Exit codes: 0 all done, 1 could not be done, 2 usage, 3 finished but not every case, 130 stopped.
"""

from napari_mamamia.cli.app import app, main

__all__ = ["app", "main"]
