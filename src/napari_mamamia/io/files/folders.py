"""List the visible names in a folder, and sort names naturally."""

import os
import re
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError

_DIGITS: Final = re.compile(r"(\d+)")


def natural_key(text: str) -> tuple[tuple[str, int, str], ...]:
    """Return a sort key that puts PH_2 before PH_10.

    Examples
    --------
    >>> sorted(["PH_10", "PH_2", "AB_3"], key=natural_key)
    ['AB_3', 'PH_2', 'PH_10']
    """
    parts = _DIGITS.split(text)
    return tuple(
        ("", int(part), part) if odd % 2 else (part.casefold(), 0, part)
        for odd, part in enumerate(parts)
    )


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder in no particular order, without hidden names.

    Raises
    ------
    FormatError
        If the folder is missing or cannot be read.
    """
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208
    except OSError as error:
        raise FormatError(
            f"cannot read the folder {folder}: {error.strerror or error}; check the path and the "
            "read permission"
        ) from error
