"""The Report page: cases, formats and folder of a report, and missing requirements."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import QUrl, Signal
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QLabel

from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.report.report import ReportExtras
from napari_mamamia.services.report.structured import DicomChoice
from napari_mamamia.widgets.controls.controls import (
    button,
    label,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.form import Browse, Form, option
from napari_mamamia.widgets.controls.page import Page

_MAKERS: Final = (
    (SegmentMaker.FROM_PROVENANCE, tr("as recorded"), ""),
    (SegmentMaker.MANUAL, tr("manual"), ""),
    (SegmentMaker.SEMIAUTOMATIC, tr("semi-automatic"), ""),
    (SegmentMaker.AUTOMATIC, tr("automatic"), ""),
)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Formats and folders of a report."""

    pdf: bool = option(
        False,
        "",
        "report_pdf",
        tr("Also writes each page as a PDF, to print or to send."),
        text=tr("PDF, A4"),
    )
    dicom: bool = option(
        False,
        "",
        "report_dicom",
        tr(
            "Writes a structured report (TID 1500), a segmentation and key images, for cases "
            "imported from DICOM."
        ),
        text=tr("DICOM SR, SEG and key images"),
    )
    study: Path | None = option(
        None,
        tr("Study"),
        "report_study",
        tr("DICOM folder from which the case was imported."),
        placeholder=tr("DICOM folder of the case"),
        browse=Browse("report_study_browse", tr("Choose the DICOM folder"), tr("DICOM study")),
    )
    maker: SegmentMaker = option(
        SegmentMaker.FROM_PROVENANCE,
        tr("Mask origin"),
        "report_maker",
        tr("States how masks without a record were made, as DICOM requires."),
        choices=_MAKERS,
    )
    identified: bool = option(
        False,
        "",
        "report_identified",
        tr(
            "Keeps the name and UIDs of the study; otherwise the case id replaces the "
            "patient's name."
        ),
        text=tr("keep the patient's name, for your PACS"),
    )
    parent: Path | None = option(
        None,
        tr("Folder"),
        "report_out",
        tr("Folder for the reports; each report gets a new folder in it, and nothing is replaced."),
        browse=Browse("report_browse", tr("Choose another folder"), tr("Report to")),
    )


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request for reports on the open case or all cases, in a new folder inside `parent`."""

    is_of_all: bool
    extras: ReportExtras
    parent: Path


class ReportPage(Page):
    """The Report page; `report_wanted` carries a `ReportRequest`."""

    report_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__("report")
        self._is_running = self._is_dicom = self._is_own_parent = False
        self._n_cases = 0
        self._result: Path | None = None
        self.mask = label("report_mask", tip=tr("Which mask the report measures."))
        self.gaps = label(
            "report_gaps", tip=tr("Missing answers and contradictions in the findings.")
        )
        set_level(self.gaps, "warning")
        self.cases = combo_box(
            "report_cases",
            tr(
                "Writes one page for the open case, or one page per case and a table of all "
                "numbers."
            ),
        )
        self.cases.addItem(tr("The open case"))
        self.cases.currentIndexChanged.connect(lambda _at: self._follow_choice())
        self.form = Form(ReportOptions)
        self.fields = self.form.fields
        self.form.changed.connect(self._follow_choice)
        self.fields["parent"].textEdited.connect(self._take_own_parent)
        self.problem = label("report_problem", tip=tr("Why no report can be written yet."))
        set_level(self.problem, "warning")
        self.start = button(
            "report_start",
            tr("Write the report"),
            tr("Saves your mask and findings, and writes the report for research use."),
            self._request_report,
            primary=True,
        )
        self.result = label("report_result", tip=tr("Result of the last report."))
        self.open_page = button(
            "report_open",
            tr("Open the report"),
            tr("Shows the report in the browser."),
            self._open_result,
        )
        self.add_form(
            row(QLabel(tr("Cases")), self.cases, 1),
            self.mask,
            self.gaps,
            *self.form.rows.values(),
        )
        for control in (self.problem, self.start):
            self.body.addWidget(control)
        self.add_answer(self.open_page, self.result)
        self.body.addStretch()
        self.open_page.hide()
        self._follow_choice()

    # ------------------------------------------------------------- for the flow

    def show_case(self, mask: str, gaps: str) -> None:
        """Show which mask the report on the open case uses, and which findings are missing."""
        self.mask.setText(mask)
        self.gaps.setText(gaps)
        self._follow_choice()

    def show_data_set(self, n_cases: int, parent: Path, *, is_dicom: bool) -> None:
        """Show the number of cases in a data set, keeping a folder that the reader chose."""
        self._n_cases, self._is_dicom = n_cases, is_dicom
        while self.cases.count() > 1:
            self.cases.removeItem(1)
        if n_cases > 1:
            self.cases.addItem(tr_n("{n} case", "All {n} cases, with a table", n_cases))
        if not self._is_own_parent:
            self.fields["parent"].setText(str(parent))
        self._follow_choice()

    def show_study(self, folder: Path | None) -> None:
        """Fill in the DICOM study from which the cases were imported, if there is one."""
        if folder is not None:
            self.fields["study"].setText(str(folder))

    def show_result(self, text: str, path: Path | None, level: str = "hint") -> None:
        """Show the result, with a button that opens `path`, or no button for None."""
        set_level(self.result, level)
        self.result.setText(text)
        self._result = path
        self.open_page.setVisible(path is not None)
        self.show_answer(bool(text))

    def set_running(self, running: bool) -> None:
        """Disable the button while a report is being written."""
        self._is_running = running
        self._follow_choice()

    # -------------------------------------------------------------------- inner

    @property
    def _is_of_all(self) -> bool:
        return int(self.cases.currentIndex()) == 1

    def _follow_choice(self) -> None:
        is_dicom, rows = self.fields["dicom"].isChecked(), self.form.rows
        for control in (self.mask, self.gaps):
            control.setVisible(bool(control.text()) and not self._is_of_all)
        rows["study"].setVisible(is_dicom and not self._is_dicom)
        rows["maker"].setVisible(is_dicom)
        rows["identified"].setVisible(is_dicom)
        chosen, problem = self.form.settings(), ""
        if is_dicom and not self._is_dicom and chosen.study is None:
            problem = tr(
                "DICOM reports refer to DICOM images, but this case has none: choose the case's "
                "DICOM study, or turn DICOM output off."
            )
        elif chosen.parent is None:
            problem = tr("Choose a folder for the report.")
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self.start.setEnabled(not problem and not self._is_running)

    def _take_own_parent(self, _text: str) -> None:
        self._is_own_parent = True

    def _request_report(self) -> None:
        chosen, dicom = self.form.settings(), None
        if chosen.parent is None:
            return
        if chosen.dicom:
            n_cases = self._n_cases if self._is_of_all else 1
            dicom = DicomChoice(chosen.study, chosen.identified, chosen.maker, n_cases=n_cases)
        extras = ReportExtras(chosen.pdf, dicom)
        self.report_wanted.emit(ReportRequest(self._is_of_all, extras, chosen.parent))

    def _open_result(self) -> None:
        if self._result is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._result)))
