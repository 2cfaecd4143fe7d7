"""Files and folders dropped onto a widget."""

from pathlib import Path
from typing import Any


def dropped_paths(event: Any) -> list[Path]:
    """Return the dropped local files and folders, or an empty list for any other content."""
    urls = event.mimeData().urls()
    if not all(url.isLocalFile() for url in urls):
        return []
    return [Path(url.toLocalFile()) for url in urls]
