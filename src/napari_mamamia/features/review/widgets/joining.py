"""Joins page Review to the window's panel."""

from pathlib import Path

from napari_mamamia.features.review.widgets.flow import ReviewFlow
from napari_mamamia.features.review.widgets.page import ReviewPage
from napari_mamamia.widgets.dock.parts import DockParts


def make_review(panel: DockParts, page: ReviewPage) -> ReviewFlow:
    """Make page Review work."""
    at_work = (panel.listing, panel.opening, panel.editing)
    flow = ReviewFlow(panel.context, page, *at_work, panel.readers, panel.protocols)
    flow.shown_wanted.connect(lambda: panel.show_page("Review"))
    panel.accept_checks.follow("Review", flow.reading.list_gaps, page.form.show_gap)
    page.form.changed.connect(panel.accept_checks.look)
    panel.accept_reading = flow.accept
    panel.on_close.append(flow.close)
    return flow


def open_study(panel: DockParts, folder: Path, who: str = "") -> None:
    """Open a review study, as a person of it where one is named."""
    panel.flow("Review").open_study(folder, who)
