"""Page Export at work: the workspace's masks, written and verified."""

from qtpy.QtCore import QObject

from napari_mamamia.core.progress import Job
from napari_mamamia.services.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.export import ExportSummary
from napari_mamamia.services.output_folder import Existing
from napari_mamamia.widgets.editing import Editing
from napari_mamamia.widgets.export_page import ExportPage, ExportRequest, MaskSet
from napari_mamamia.widgets.jobs import JobRunner
from napari_mamamia.widgets.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.opening import Opening
from napari_mamamia.widgets.service_record import Services
from napari_mamamia.widgets.session import Session

__all__ = ["ExportFlow"]


class ExportFlow(QObject):
    """Joins the page, the session and the export job."""

    def __init__(
        self,
        page: ExportPage,
        session: Session,
        opening: Opening,
        editing: Editing,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._editing = editing
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._rows: dict[str, CaseRow] = {}
        page.export_wanted.connect(self._save_then_export)
        opening.listed.connect(self._take_rows)
        session.row_changed.connect(self._take_row)
        self._show_sets()

    def _take_rows(self, rows: tuple[CaseRow, ...]) -> None:
        self._rows = {row.case_id: row for row in rows}
        self._page.show_result("", None)
        self._show_sets()

    def _take_row(self, row: CaseRow) -> None:
        self._rows[row.case_id] = row
        self._show_sets()

    def _show_sets(self) -> None:
        opened = self._session.opened
        sets = [] if opened is None else _mask_sets(opened, tuple(self._rows.values()))
        missing = "" if opened else "Open a data set first."
        if opened and not sets:
            missing = "There is nothing to export yet: predict or edit a case first."
        self._page.need(missing)
        self._page.show_sets(sets)

    def _save_then_export(self, wanted: ExportRequest) -> None:
        self._editing.save_if_needed(lambda saved: self._export(wanted) if saved else None)

    def _export(self, wanted: ExportRequest) -> None:
        opened = self._session.opened
        if opened is None:
            return
        existing = Existing.OVERWRITE if wanted.replace else Existing.REFUSE

        def make_job() -> Job[ExportSummary]:
            return self._services.export_masks(
                opened.data_set, wanted.masks, wanted.out, existing=existing
            )

        def done(outcome: Outcome[ExportSummary]) -> None:
            self._page.set_running(False)
            if isinstance(outcome, Finished):
                self._show_summary(outcome.result)
            elif isinstance(outcome, Failed):
                self._page.show_result("nothing was exported: see the message above", None)
                self._notifier.fail("Export", outcome.error)
            else:
                self._page.show_result("stopped: what was written so far is complete", wanted.out)

        self._page.set_running(True)
        self._page.show_result("exporting…", None)
        self._jobs.start("export", "Exporting", make_job, done)

    def _show_summary(self, summary: ExportSummary) -> None:
        lines = [f"{len(summary.exported)} mask(s) verified in {summary.out}"]
        lines += [f"{failure.case_id}: {failure.reason}" for failure in summary.failures]
        self._page.show_result("\n".join(lines), summary.out)
        if summary.failures:
            self._notifier.warn_loudly(
                f"{len(summary.failures)} mask(s) were not exported: see the page Export"
            )


def _mask_sets(opened: OpenDataSet, rows: tuple[CaseRow, ...]) -> list[MaskSet]:
    """Return the folders of masks that the workspace holds, readers first."""
    workspace = opened.workspace
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for name in row.refined:
            counts["refined", name] = counts.get(("refined", name), 0) + 1
        for name in row.predictions:
            counts["prediction", name] = counts.get(("prediction", name), 0) + 1
    any_case = rows[0].case_id if rows else "case"
    return [
        MaskSet(
            f"{'refined by' if role == 'refined' else 'prediction'} {name}",
            (
                workspace.refined(name, any_case)
                if role == "refined"
                else workspace.prediction(name, any_case)
            ).parent,
            count,
            workspace.exports / f"{role}-{name}",
        )
        for (role, name), count in sorted(counts.items(), reverse=True)
    ]
