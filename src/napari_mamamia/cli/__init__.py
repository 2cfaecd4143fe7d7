"""The command line `mamamia`; it needs neither a display nor napari.

Each command parses its options, calls a service and prints the result. Exit codes: 0 all done, 1
failed, 2 usage error, 3 finished without some cases, 130 stopped.
"""

from napari_mamamia.cli.app import app, main

__all__ = ["app", "main"]
