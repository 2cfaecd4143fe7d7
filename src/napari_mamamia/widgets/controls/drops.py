"""Files and folders dropped on a widget."""

from pathlib import Path
from typing import Any


def dropped_paths(event: Any) -> list[Path]:
    """Return the local files and folders of a drop, empty if it contains anything else."""
    urls = event.mimeData().urls()
    if not all(url.isLocalFile() for url in urls):
        return []
    return [Path(url.toLocalFile()) for url in urls]
