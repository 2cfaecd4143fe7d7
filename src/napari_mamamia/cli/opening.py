"""Opening a data set for a command; what is odd about it goes to the error stream."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from napari_mamamia.cli.printing import run

if TYPE_CHECKING:
    from napari_mamamia.services.data_set import OpenDataSet

__all__ = ["open_at"]


def open_at(path: Path) -> "OpenDataSet":
    """Return the data set at `path`, and print its warnings."""
    from napari_mamamia.services.data_set import open_data_set

    opened = run(open_data_set(path))
    for warning in opened.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return opened
