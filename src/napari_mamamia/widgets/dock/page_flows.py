"""Functions that create the controller of a page, called when the page is first shown."""

from typing import TYPE_CHECKING

from napari_mamamia.widgets.batch.flow import BatchFlow
from napari_mamamia.widgets.batch.page import BatchPage
from napari_mamamia.widgets.dicom.flow import ImportFlow
from napari_mamamia.widgets.dicom.page import ImportPage
from napari_mamamia.widgets.export.flow import ExportFlow
from napari_mamamia.widgets.export.page import ExportPage
from napari_mamamia.widgets.report.flow import ReportFlow
from napari_mamamia.widgets.report.page import ReportPage

if TYPE_CHECKING:
    from napari_mamamia.widgets.dock.parts import DockParts


def make_batch(panel: "DockParts", page: BatchPage) -> BatchFlow:
    """Return the controller of the Batch page."""
    flow = BatchFlow(panel.context, page)
    panel.follow_results_button(page.leaderboard, page.leaderboard_wanted, "Leaderboard")
    panel.results_flow.follow(flow)
    return flow


def make_report(panel: "DockParts", page: ReportPage) -> ReportFlow:
    """Return the controller of the Report page."""
    at_work = (panel.editing, panel.kinetics.findings, panel.readers.with_reader)
    return ReportFlow(panel.context, page, *at_work)


def make_export(panel: "DockParts", page: ExportPage) -> ExportFlow:
    """Return the controller of the Export page."""
    return ExportFlow(panel.context, page, panel.editing)


def make_import(panel: "DockParts", page: ImportPage) -> ImportFlow:
    """Return the controller of the Import page."""
    flow = ImportFlow(panel.context, page, panel.cases_flow.open_data_set)
    flow.shown_wanted.connect(panel.pages.show_import)
    flow.left.connect(lambda: panel.show_page("Cases"))
    flow.state_changed.connect(lambda: panel.cases_page.show_import_begun(flow.is_begun))
    panel.on_close.append(flow.close)
    return flow
