"""The command line `mamamia`, which needs neither a display nor napari.

Each command parses its options, calls a service and prints the result. Exit codes: 0 success, 1
failure, 2 usage error, 3 finished but some cases failed, 130 stopped by the user.
"""

from napari_mamamia.cli.app import app, main

__all__ = ["app", "main"]
