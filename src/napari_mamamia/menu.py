"""The menu commands of napari.yaml: pages of the panel, and actions.

A click imports only this module; the panel's own modules are imported in a thread
(`widgets.dock.entry`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_mamamia.widgets.dock.dock import MamamiaDock


def cases_page() -> "QWidget":
    """Show the viewer's dock on the page Cases; see `guest_for_menu`."""
    return _guest_on("Cases")


def predict_page() -> "QWidget":
    """Show the viewer's dock on the page Predict; see `guest_for_menu`."""
    return _guest_on("Predict")


def refine_page() -> "QWidget":
    """Show the viewer's dock on the page Refine; see `guest_for_menu`."""
    return _guest_on("Refine")


def score_page() -> "QWidget":
    """Show the viewer's dock on the page Score; see `guest_for_menu`."""
    return _guest_on("Score")


def findings_page() -> "QWidget":
    """Show the viewer's dock on the page Findings; see `guest_for_menu`."""
    return _guest_on("Findings")


def kinetics_page() -> "QWidget":
    """Show the viewer's dock on the page Kinetics; see `guest_for_menu`."""
    return _guest_on("Kinetics")


def batch_page() -> "QWidget":
    """Show the viewer's dock on the page Batch; see `guest_for_menu`."""
    return _guest_on("Batch scoring")


def leaderboard_view() -> "QWidget":
    """Show the viewer's dock on the page Batch, with the leaderboard below the image."""
    return _guest_on("Batch scoring", lambda panel: panel.show_leaderboard())


def report_page() -> "QWidget":
    """Show the viewer's dock on the page Report; see `guest_for_menu`."""
    return _guest_on("Report")


def export_page() -> "QWidget":
    """Show the viewer's dock on the page Export; see `guest_for_menu`."""
    return _guest_on("Export")


def review_page() -> "QWidget":
    """Show the viewer's dock on the page Review; see `guest_for_menu`."""
    return _guest_on("Review")


def import_page() -> None:
    """Show the page Import, which makes cases of a DICOM folder or zip."""
    _show_panel("Cases", lambda panel: panel.pages.show_import())


def predict_now() -> None:
    """Show the page Predict and start a prediction if a case is open."""
    _show_panel("Predict", lambda panel: panel.predict())


def score_now() -> None:
    """Show the page Score and score the displayed masks."""
    _show_panel("Score")


def _guest_on(page: str, use: "Callable[[MamamiaDock], object] | None" = None) -> "QWidget":
    from napari_mamamia.widgets.dock.entry import guest_for_menu

    return guest_for_menu(page, use)


def _show_panel(page: str, use: "Callable[[MamamiaDock], object] | None" = None) -> None:
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.dock.entry import show_later

    show_later(current_viewer(), page, use)
