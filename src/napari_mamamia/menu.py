"""The menu commands of napari.yaml: pages of the panel, and actions.

A menu command imports only this module; the modules of the panel are imported in a thread
(`widgets.dock.entry`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from napari_mamamia.core.features import RESULTS

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_mamamia.widgets.dock.dock import MamamiaDock


def __getattr__(name: str) -> Callable[[], "QWidget"]:
    """Return the function that napari.yaml names for a page: ``show_`` and the page's name."""
    from napari_mamamia.widgets.base.pages import list_pages

    page = next((page for page in list_pages() if f"show_{page.short}" == name), None)
    if page is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    # napari asks a plain function for its signature and its name.
    def show_page() -> "QWidget":
        """Show the viewer's dock on a page; see `guest_for_menu`."""
        if page.step == RESULTS:
            return _guest_on("Batch scoring", lambda panel: panel.show_results(page.name))
        return _guest_on(page.name)

    return show_page


def import_page() -> None:
    """Show the Import page, which makes cases from a DICOM folder or zip."""
    _show_panel("Cases", lambda panel: panel.pages.show_import())


def predict_now() -> None:
    """Show the Predict page, and start a prediction if a case is open."""
    _show_panel("Predict", lambda panel: panel.predict())


def score_now() -> None:
    """Show the Score page, and score the displayed masks."""
    _show_panel("Score")


def _guest_on(page: str, use: "Callable[[MamamiaDock], object] | None" = None) -> "QWidget":
    from napari_mamamia.widgets.dock.entry import guest_for_menu

    return guest_for_menu(page, use)


def _show_panel(page: str, use: "Callable[[MamamiaDock], object] | None" = None) -> None:
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.dock.entry import show_later

    show_later(current_viewer(), page, use)
