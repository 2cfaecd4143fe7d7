"""The modules of the source in whose text a pattern stands: only these are parsed.

To parse all takes 3 s of a processor and to walk through them as long again; most searches are for
names that few modules have. `calls_of` allows no blank before a parenthesis: ruff sees to that.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import napari_mamamia

SOURCE = Path(napari_mamamia.__file__).parent


def calls_of(names: Iterable[str]) -> str:
    """Return a pattern for calls of some names."""
    return rf"\b(?:{'|'.join(sorted(names))})\("


def words_of(names: Iterable[str]) -> str:
    """Return a pattern for names, imported, read or called."""
    return rf"\b(?:{'|'.join(sorted(names))})\b"


def modules_with(*patterns: str, below: str = ".") -> Iterator[tuple[Path, ast.Module]]:
    """Yield path and tree of each module in whose text all patterns stand."""
    for path in sorted((SOURCE / below).rglob("*.py")):
        text = path.read_text("utf-8")
        if all(re.search(pattern, text) for pattern in patterns):
            yield path, ast.parse(text)


def place_of(path: Path) -> str:
    """Return a module's name as Python has it, without the package's."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)
