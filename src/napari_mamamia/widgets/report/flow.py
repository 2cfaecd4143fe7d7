"""Controller of the Report page: saves mask and findings, then writes the report."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.report.reading import ReportSource
from napari_mamamia.services.report.report import CaseReport, ReportSummary
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.findings.flow import FindingsFlow
from napari_mamamia.widgets.findings.gaps import describe_gaps
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.report.page import ReportPage, ReportRequest
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

FOLDER: Final = "reports"
_MOST_LINES: Final = 5


class ReportFlow(WindowPart):
    """A controller that connects the page, the session, unsaved edits and the report job.

    `with_reader` runs a callback once a reader name is set, because every report names its reader.
    """

    def __init__(
        self,
        context: WindowContext,
        page: ReportPage,
        editing: Editing,
        findings: FindingsFlow,
        with_reader: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(context)
        self.page = page
        self._editing = editing
        self._findings = findings
        page.report_wanted.connect(
            lambda request: with_reader(lambda: self._save_then_write(request))
        )
        session = self._session
        for signal in (session.case_changed, session.masks_changed, session.reader_changed):
            signal.connect(self._follow_case)
        session.case_changed.connect(lambda: page.show_result("", None))
        session.study_imported.connect(page.show_study)
        page.show_study(session.dicom_study)
        self._follow_case()

    def look(self) -> None:
        """Check again which findings are missing, because the page is being displayed."""
        self._follow_case()

    # -------------------------------------------------------------------- inner

    def _follow_case(self) -> None:
        opened, case = self._session.opened, self._session.case
        missing = "" if case is not None else tr("Open a case first.")
        if case is not None and opened is None:
            missing = tr("Reports need a data set: open its folder first.")
        self.page.need(missing)
        if opened is not None:
            self.page.show_data_set(
                len(opened.data_set.cases),
                opened.workspace.exports / FOLDER,
                is_dicom=opened.data_set.kind is LayoutKind.DICOM,
            )
        self.page.show_case(self._describe_mask(), describe_gaps(self._findings.list_gaps()))

    def _describe_mask(self) -> str:
        if self._session.mask(Role.REFINED) is not None:
            return tr("The report measures your mask.")
        if self._session.mask(Role.REFERENCE) is not None:
            return tr("You have no mask for this case, so the report measures the reference.")
        return tr("No mask yet, so the report has no sizes. Make one in the Mask step first.")

    def _save_then_write(self, request: ReportRequest) -> None:
        opened = (
            self._session.opened
        )  # keeps the case that the page names, whatever is opened later
        case_ids = () if request.is_of_all else (self._session.case_id,)
        reader = self._session.reader or ""
        if opened is None:
            return

        def go_on(saved: bool) -> None:
            if saved:
                write = partial(self._write_report, opened, case_ids, reader, request)
                self._findings.keep_then(write)

        self._editing.saving.save_if_new(go_on)

    def _write_report(
        self, opened: OpenDataSet, case_ids: tuple[str, ...], reader: str, request: ReportRequest
    ) -> None:
        page, report_anew = self.page, self._services.report_anew
        source = ReportSource(reader=reader)
        finished: list[CaseReport] = []

        def refuse(error: Exception) -> None:
            page.show_result(tr("Nothing was written: see the message above."), None, "error")
            self._notifier.fail(tr("Writing the report"), error)

        def say_stopped() -> None:
            if not finished:
                page.show_result(tr("Stopped: no report was finished."), None, "warning")
                return
            text = tr_n(
                "Stopped: {n} report is complete, but the other reports were not written.",
                "Stopped: {n} reports are complete, but the other reports were not written.",
                len(finished),
            )
            page.show_result(text, finished[0].files[0].parent, "warning")

        page.set_running(True)
        page.show_result(tr("writing…"), None)
        self._jobs.start(
            "report",
            tr("Writing the report"),
            lambda: report_anew(
                opened, request.parent, source, request.extras, case_ids=case_ids, finished=finished
            ),
            self._show_summary,
            failed=refuse,
            stopped=say_stopped,
            ended=lambda: page.set_running(False),
        )

    def _show_summary(self, summary: ReportSummary) -> None:
        count = len(summary.reports)
        lines = [tr("Reports written: {n}.", n=count)]
        if count == 1:
            lines = [tr("The report of {case_id} is written.", case_id=summary.reports[0].case_id)]
        failures = summary.failures
        lines += [f"{failure.case_id}: {failure.reason}" for failure in failures[:_MOST_LINES]]
        if len(failures) > _MOST_LINES:
            lines.append(tr("… and {n} more", n=len(failures) - _MOST_LINES))
        self.page.show_result(
            "\n".join(lines), _find_page(summary), "warning" if failures else "hint"
        )
        if failures:
            self._notifier.warn_loudly(
                tr_n(
                    "{n} case has no complete report: see the Report page",
                    "{n} cases have no complete report: see the Report page",
                    len(failures),
                )
            )


def _find_page(summary: ReportSummary) -> Path | None:
    if not summary.reports:
        return None
    pages = [path for path in summary.reports[0].files if path.suffix == ".html"]
    return pages[0] if len(summary.reports) == 1 and pages else summary.out
