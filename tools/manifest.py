"""Write the pages of the window into napari.yaml, from their records.

Usage::

    .venv/bin/python tools/manifest.py          # `make manifest`: after a new page
    .venv/bin/python tools/manifest.py --check  # is napari.yaml up to date?

napari reads the file before it imports anything, so its entries cannot be made at run time.
"""

import re
import sys
from pathlib import Path

from napari_mamamia.core.features import Page
from napari_mamamia.widgets.base.pages import BUILT_IN, list_pages

MANIFEST = Path(__file__).parents[1] / "src" / "napari_mamamia" / "napari.yaml"
COMMANDS = re.compile(
    r"(    - id: .*\n      title: .*\n      python_name: napari_mamamia\.menu:show_\w+\n)+"
)
WIDGETS = re.compile(r"(?<=  widgets:\n)(    - command: .*\n      display_name: .*\n)+")


def list_menu_pages() -> list[Page]:
    """Return the pages of this software that have an entry in napari's menu."""
    own = [p for p in list_pages() if p in BUILT_IN or p.widget.startswith("napari_mamamia.")]
    return [page for page in own if page.menu]


def write_pages(text: str) -> str:
    """Return the text of the manifest with the entries of all pages."""
    pages = list_menu_pages()
    commands = "".join(
        f"    - id: napari-mamamia.{page.short}\n      title: {page.name}\n"
        f"      python_name: napari_mamamia.menu:show_{page.short}\n"
        for page in pages
    )
    widgets = "".join(
        f"    - command: napari-mamamia.{page.short}\n      display_name: {page.name}\n"
        for page in pages
    )
    return WIDGETS.sub(widgets, COMMANDS.sub(commands, text, count=1), count=1)


def main() -> None:
    """Write the manifest, or check it."""
    text = MANIFEST.read_text("utf-8")
    written = write_pages(text)
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if text == written else f"{MANIFEST.name} lacks a page: run tools/manifest.py")
    MANIFEST.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
