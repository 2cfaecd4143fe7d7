"""Connects the Review page with the window's dock panel."""

from pathlib import Path

from napari_mamamia.features.review.widgets.flow import ReviewFlow
from napari_mamamia.features.review.widgets.page import ReviewPage
from napari_mamamia.widgets.dock.parts import DockParts
from napari_mamamia.widgets.dock.steps import STEPS, WORK_LIST


def make_review(panel: DockParts, page: ReviewPage) -> ReviewFlow:
    """Create the controller of the Review page, and connect it with the dock panel."""
    at_work = (panel.listing, panel.opening, panel.editing)
    flow = ReviewFlow(panel.context, page, *at_work, panel.readers, panel.protocols)
    flow.shown_wanted.connect(lambda: panel.show_page("Review"))
    panel.accept_checks.follow("Review", flow.reading.list_gaps, page.form.show_gap)
    page.form.changed.connect(panel.accept_checks.look)
    panel.accept_reading = flow.accept
    panel.on_close.append(flow.close)

    def leave_empty_step(_page: str) -> None:
        session = panel.session
        is_empty = flow.client is not None and session.case is None and not session.is_coming
        if is_empty and panel.pages.step not in (WORK_LIST.name, STEPS[0].name):
            panel.show_page("Review")

    panel.pages.turned.connect(leave_empty_step)
    return flow


def open_study(panel: DockParts, folder: Path, who: str = "") -> None:
    """Open a review study, and begin as the person `who` if one is given."""
    panel.flow("Review").open_study(folder, who)
