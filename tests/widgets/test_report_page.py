"""Page Report: what is saved before, what is asked for, what fails; the service is a fake."""

import threading
from pathlib import Path

import pytest
from qtpy.QtWidgets import QComboBox, QPushButton

from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.choices import SegmentMaker
from napari_mamamia.core.errors import CaseError, HiddenError, Remedy, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.findings.case_findings import open_findings
from napari_mamamia.services.report.report import CaseReport, ReportSummary
from napari_mamamia.widgets.dock.dock import MamamiaDock

FULL = "cannot write A_1.html (No space left on device): free some space"


class Fake:
    """What the window asked for, and what it is answered."""

    def __init__(self):
        self.requests = []
        self.on_disk = []
        self.failures = ()
        self.error = None
        self.waits = False
        self.whole = []

    def report_anew(self, opened, parent, source, wish, *, case_ids=(), finished=None):
        finished += self.whole
        self.requests.append((parent, source.reader, wish, case_ids))
        self.on_disk.append(open_findings(opened.workspace, source.reader, "A_1").answers.items)
        while self.waits:
            report_progress(0, 1, "Writing")
        if self.error is not None:
            raise self.error
        page = Path("out/A_1.html")
        reports = tuple(CaseReport(one, (page,), (), 1, 0) for one in case_ids or ("A_1", "B_1"))
        return ReportSummary(Path("out"), reports, tuple(self.failures), ())


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def dock(qtbot, viewer, world, fake, monkeypatch):
    monkeypatch.setattr("napari_mamamia.widgets.dock.dock.style_sheet", lambda _theme: "")
    services = world.services().replacing(report_anew=fake.report_anew)
    panel = MamamiaDock(viewer, services)
    qtbot.addWidget(panel)
    yield panel
    panel.close_down()


@pytest.fixture
def page(opened):
    opened.show_page("Report")
    return opened.report_page


def describe_mass(qtbot, dock):
    """Choose "mass" on page Findings, as a reader does."""
    dock.show_page("Findings")
    qtbot.waitUntil(lambda: bool(dock.kinetics.findings._facts.lesions), timeout=8000)
    dock.findChild(QPushButton, "findings_place_lesion").click()
    box = dock.findChild(QComboBox, "findings_answer_finding_1")
    box.setCurrentIndex(box.findData("mass"))
    box.activated.emit(box.currentIndex())


def test_what_was_just_answered_is_on_the_disk_before_the_report_is_made(
    qtbot, opened, page, fake, world
):
    describe_mass(qtbot, opened)
    opened.show_page("Report")
    page.start.click()  # before the moment in which an answer is kept
    qtbot.waitUntil(lambda: "written" in page.result.text())
    (answers,) = fake.on_disk
    assert ("finding", ("mass",)) in [(one.field, one.values) for one in answers]
    (parent, reader, wish, case_ids) = fake.requests[0]
    assert parent == Workspace(world.root / "workspace").exports / "reports"
    assert (reader, wish.has_pdf, wish.dicom, case_ids) == ("Ana", False, None, ("A_1",))
    assert page.open_page.isVisibleTo(page)


def test_an_answer_given_while_the_findings_are_written_does_not_lose_the_report(
    qtbot, opened, page, fake
):
    """The later writing stops the earlier one, and what waited for that waits for this."""
    describe_mass(qtbot, opened)
    flow = opened.kinetics.findings
    gate, writings = threading.Event(), []
    keep = opened.services.findings.keep

    def keep_late(*given):
        writings.append(given)
        if len(writings) == 1:
            while not gate.is_set():
                report_progress(0, 1, "Keeping")
        return keep(*given)

    services = flow._services
    flow._services = services.replacing(findings=services.findings.replacing(keep=keep_late))
    opened.show_page("Report")
    page.start.click()
    qtbot.waitUntil(lambda: len(writings) == 1)
    flow.keep()
    gate.set()
    qtbot.waitUntil(lambda: "is written" in page.result.text())
    assert len(fake.requests) == 1


def test_what_the_findings_lack_stands_above_the_button(qtbot, opened, page):
    assert not page.gaps.isVisibleTo(page)
    describe_mass(qtbot, opened)
    opened.show_page("Report")
    assert "Amount of fibroglandular tissue" in page.gaps.text()
    assert page.gaps.isVisibleTo(page)
    page.cases.setCurrentIndex(1)  # of all: one case's gaps would mislead
    assert not page.gaps.isVisibleTo(page)


def test_all_cases_and_one_that_fails_is_named(qtbot, page, fake):
    fake.failures = [CaseFailure("A_2", "the volume is damaged")]
    page.cases.setCurrentIndex(1)
    page.start.click()
    qtbot.waitUntil(lambda: "written" in page.result.text())
    assert fake.requests[0][3] == ()
    assert page.result.text() == "Reports written: 2.\nA_2: the volume is damaged"
    assert page.result.property("level") == "warning"


def test_a_full_disk_is_told_and_the_button_works_again(qtbot, page, fake):
    fake.error = SaveError(FULL)
    page.start.click()
    qtbot.waitUntil(page.start.isEnabled)
    assert "Nothing was written" in page.result.text()
    assert not page.open_page.isVisibleTo(page)
    fake.error = None
    page.start.click()
    qtbot.waitUntil(lambda: "is written" in page.result.text())


def test_a_report_that_is_stopped_says_so(qtbot, opened, page, fake):
    fake.waits = True
    page.start.click()
    qtbot.waitUntil(lambda: len(fake.requests) == 1)
    assert not page.start.isEnabled()
    opened.jobs.stop("report")
    qtbot.waitUntil(page.start.isEnabled)
    assert page.result.text() == "Stopped: no report was finished."
    assert not page.open_page.isVisibleTo(page)


def test_a_stop_among_many_says_how_many_whole_reports_are_there(
    qtbot, opened, page, fake, tmp_path
):
    fake.waits = True
    fake.whole = [CaseReport(name, (tmp_path / f"{name}.html",), (), 1, 0) for name in ("A", "B")]
    page.cases.setCurrentIndex(1)
    page.start.click()
    qtbot.waitUntil(lambda: len(fake.requests) == 1)
    opened.jobs.stop("report")
    qtbot.waitUntil(page.start.isEnabled)
    assert page.result.text().startswith("Stopped: 2 reports are complete")
    assert page._result == tmp_path


def test_no_option_of_the_command_is_named_in_the_window(qtbot, opened, page, fake):
    said = []
    opened.notifier.said.connect(lambda _level, text: said.append(text))
    several = "but Ana, Ben have masks: choose the reader of the report, or a folder"
    fake.failures = [CaseFailure("A_2", several)]
    page.cases.setCurrentIndex(1)
    page.start.click()
    qtbot.waitUntil(lambda: "written" in page.result.text())
    assert page.result.text().endswith("choose the reader of the report, or a folder")
    fake.error = CaseError(
        "expected X to be a DICOM folder, but it does not exist", remedies=(Remedy("study"),)
    )
    page.start.click()
    qtbot.waitUntil(page.start.isEnabled)
    assert said[-1].endswith("expected X to be a DICOM folder, but it does not exist")


def test_how_a_mask_was_made_can_be_said_where_no_record_tells(qtbot, opened, page, fake, tmp_path):
    opened.session.set_dicom_study(tmp_path)
    page.fields["dicom"].click()
    assert page.fields["maker"].isVisibleTo(page)
    page.fields["maker"].setCurrentIndex(page.fields["maker"].findData(SegmentMaker.MANUAL))
    page.start.click()
    qtbot.waitUntil(lambda: "written" in page.result.text())
    assert fake.requests[0][2].dicom.maker is SegmentMaker.MANUAL


def test_dicom_needs_the_study_that_an_import_fills_in(qtbot, opened, page, fake, tmp_path):
    page.fields["dicom"].click()
    assert not page.start.isEnabled()
    assert "DICOM study" in page.problem.text()
    opened.session.set_dicom_study(tmp_path)
    assert page.start.isEnabled()
    page.start.click()
    qtbot.waitUntil(lambda: "written" in page.result.text())
    dicom = fake.requests[0][2].dicom
    assert (dicom.study, dicom.is_identified, dicom.n_cases) == (tmp_path, False, 1)


def test_who_gave_no_name_is_asked_first(qtbot, opened, page, fake):
    opened.session.set_reader(None)
    page.start.click()
    assert fake.requests == []
    opened.header.reader_given.emit("Bea")
    qtbot.waitUntil(lambda: "written" in page.result.text())
    assert fake.requests[0][1] == "Bea"


def test_a_folder_of_ones_own_stays_and_none_is_asked_for(qtbot, opened, page, tmp_path):
    page.fields["parent"].setText("")
    page.fields["parent"].textEdited.emit("")
    assert not page.start.isEnabled()
    page.fields["parent"].setText(str(tmp_path))
    opened.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    assert page.fields["parent"].text() == str(tmp_path)


def test_a_blind_reading_shuts_the_page_and_the_service(opened, page):
    opened.session.set_blinding(Blinding.of(["reference"]))
    assert "Blind" in opened.blind.why_shut("Report")
    with pytest.raises(HiddenError, match="reference is hidden"):
        opened.services.report_anew(None, None, None, None)
