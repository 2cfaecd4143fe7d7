"""The page Import with services that touch no file: what is shown, chosen, refused, asked for."""

import importlib.util
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLabel, QWidget

from napari_mamamia.core.choices import Clock, Dates
from napari_mamamia.core.errors import FormatError, MissingExtraError, SaveConflictError
from napari_mamamia.core.progress import Progress, report_progress
from napari_mamamia.core.records import CaseFailure, CaseWarning
from napari_mamamia.io.exam.selectors import read_selectors
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.dicom.check import IdState, ImportCheck
from napari_mamamia.services.dicom.dicom import ImportedCase, ImportSummary
from napari_mamamia.services.dicom.inspection import InspectedStudies, judge_again, look_at_source
from napari_mamamia.services.dicom.preview import StudyPreview, part_picture, preview_study
from napari_mamamia.widgets.base.service_record import ImportServices
from napari_mamamia.widgets.dicom.page import ImportState
from napari_mamamia.widgets.dock.dock import MamamiaDock

pytest.importorskip("pydicom")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

OUT = Path("/data/cases")


@pytest.fixture(scope="module")
def real_looks(tmp_path_factory):
    """What real services found, once: a study with a localiser; three, one refused; a doubt."""
    names = ("one", "many", "doubt", "dixon", "broken", "two", "twice", "fast",
             "breasts", "copied", "unclear")  # fmt: skip
    folders = {name: tmp_path_factory.mktemp("looks") / name for name in names}
    dyn = {"SeriesNumber": 5, "SeriesInstanceUID": "2.25.5", "SeriesDescription": "t1_dyn_fs"}
    phantoms.write_exam(folders["one"] / "dyn", 3, **dyn)
    phantoms.write_phase(folders["one"] / "loc", 0, SeriesNumber=1, SeriesInstanceUID="2.25.1",
                         SeriesDescription="localizer")  # fmt: skip
    t2 = {"EchoTime": 80, "SeriesDescription": "t2_tra", "ScanningSequence": "SE"}
    phantoms.write_phase(folders["one"] / "t2", 0, SeriesNumber=3, SeriesInstanceUID="2.25.3", **t2)
    for k, name in enumerate(("A", "B", "C")):
        phantoms.write_exam(folders["many"] / name, 2, StudyInstanceUID=f"2.25.3{k}")
    next((folders["many"] / "B").iterdir()).unlink()
    phantoms.write_exam(folders["doubt"], AcquisitionNumber=lambda phase, _: 9 - phase)
    phantoms.write_exam(folders["dixon"], SeriesNumber=5, ImageType=["ORIGINAL", "PRIMARY", "W"])
    phantoms.write_exam(
        folders["dixon"], SeriesNumber=5, ImageType=["ORIGINAL", "PRIMARY", "F"], prefix="F"
    )
    phantoms.write_exam(folders["broken"], SeriesNumber=5)
    for number, angle in ((5, 10), (9, 25)):
        phantoms.write_exam(folders["two"] / str(number), SeriesNumber=number, FlipAngle=angle,
                            SeriesInstanceUID=f"2.25.{number}")  # fmt: skip
    for number, x0 in ((5, 40.0), (6, -60.0)):
        phantoms.write_exam(
            folders["breasts"] / str(number), SeriesNumber=number,
            SeriesInstanceUID=f"2.25.{number}", ImageOrientationPatient=list(phantoms.SAGITTAL),
            ImagePositionPatient=lambda _, z, x0=x0: [x0 - 2.0 * z, -20.0, 30.0],
        )  # fmt: skip
    (folders["broken"] / "IM_9_001.dcm").write_bytes(b"")
    for k in range(4):
        phantoms.write_phase(folders["twice"], k, values=phantoms.dce_values(max(k - 1, 0)),
                             SeriesNumber=5, AcquisitionTime=f"10{2 * k:02d}00")  # fmt: skip
    for k in range(4):
        phantoms.write_phase(folders["copied"], k, values=phantoms.dce_values(min(k, 2)),
                             AcquisitionTime=f"10{2 * k:02d}00")  # fmt: skip
    for k in range(3):
        phantoms.write_phase(folders["unclear"], k, values=phantoms.without_contrast(k),
                             AcquisitionTime=f"10{2 * k:02d}00")  # fmt: skip
    for k, at in enumerate((0, 5, 10, 15, 20, 25, 90, 180, 270)):
        number = 5 if 0 < k < 6 else 6
        phantoms.write_phase(folders["fast"], k, values=phantoms.dce_values(k), SeriesNumber=number,
                             SeriesInstanceUID=f"2.25.{number}",
                             AcquisitionTime=f"10{at // 60:02d}{at % 60:02d}")  # fmt: skip
    return {
        name: [(s, preview_study(s)) for s in look_at_source(folder).studies]
        for name, folder in folders.items()
    }


class FakeImports:
    """Services that answer what a test puts into them."""

    def __init__(self, looks):
        self.looks = looks
        self.error = None
        self.there = set()
        self.refused_ids = {}
        self.target_problem = ""
        self.summary = None
        self.runs = []
        self.judged = []
        self.closed = 0
        self.read = []
        self.broken = ""
        self.may_judge = threading.Event()
        self.may_judge.set()
        self.judge_errors = []

    def source_of(self, paths):
        return paths[0] if paths[0].name in self.looks else None

    def look(self, source):
        report_progress(0, 1, "Looking for DICOM files")
        report_progress(1200, 10_000, "Reading DICOM headers")
        if self.error:
            raise self.error
        looked = InspectedStudies(source, source, [study for study, _ in self.looks[source.name]])
        looked.close = self.close
        return looked

    def close(self):
        self.closed += 1

    def judge(self, found, settings):
        self.may_judge.wait(60)
        if self.judge_errors:
            raise self.judge_errors.pop()
        self.judged.append(settings)
        return judge_again(found, settings)

    def preview(self, found):
        report_progress(0, 1)
        pairs = [pair for pairs in self.looks.values() for pair in pairs]
        return next((p for study, p in pairs if study.exam is found.exam), StudyPreview((), ()))

    def part_picture(self, piece):
        self.read.append(piece.header.series_number)
        if piece.header.description == self.broken:
            report_progress(0, 1)
            raise FormatError("expected a readable DICOM file, but it was cut: export it again")
        return part_picture(piece)

    def check(self, studies, source, out):
        report_progress(0, 1)
        states = tuple(
            IdState(self.refused_ids.get(s.case_id, ""), s.case_id in self.there) for s in studies
        )
        return ImportCheck(self.target_problem, states)

    def run(self, wanted, out):
        self.runs.append((wanted, out))
        report_progress(1, 2, "Importing")
        if isinstance(self.summary, Exception):
            raise self.summary
        return self.summary or ImportSummary(
            tuple(imported(study.found.case_id) for study in wanted)
        )

    def services(self):
        return ImportServices(
            source_of=self.source_of,
            look=self.look,
            judge=self.judge,
            preview=self.preview,
            part_picture=self.part_picture,
            check=self.check,
            run=self.run,
            default_target=lambda opened, recent: OUT,
        )


def imported(case_id, warnings=()):
    return ImportedCase(
        case_id, OUT / case_id, (4, 16, 20), None, "", "", (), tuple(map(CaseWarning, warnings)), 1
    )


@pytest.fixture
def imports(real_looks):
    return FakeImports(real_looks)


@pytest.fixture
def dock(qtbot, viewer, world, imports):
    world.case_ids = ("one", "A", "C", "Erika2", "twice", "breasts_left")
    services = world.services().replacing(imports=imports.services(), recognise=lambda path: None)
    made = MamamiaDock(viewer, services)
    qtbot.addWidget(made)
    made.resize(460, 900)
    made.show()
    return made


@pytest.fixture
def page(dock):
    return dock.import_page


@pytest.fixture
def looked(qtbot, dock, page):
    """Return a function that shows what is in a source, with its checks and pictures there."""

    def look(name):
        dock.import_dicom(Path("/data") / name)
        settle(qtbot, dock)
        return page

    return look


def settle(qtbot, dock):
    lanes = [f"import {name}" for name in ("look", "judge", "preview", "picture", "check", "run")]
    qtbot.waitUntil(lambda: not any(dock.jobs.is_running(lane) for lane in lanes))


def cells(page):
    model = page.study.model
    texts = ([model.index(row, c).data() for c in range(2)] for row in range(model.rowCount()))
    return [[text.replace("\u200b", "").replace("\u00a0", " ") for text in line] for line in texts]


def click(widget):
    assert widget.isVisible()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(8, widget.height() // 2))


def tick(page, row, on):
    index = page.study.model.index(row, 0)
    state = Qt.CheckState.Checked if on else Qt.CheckState.Unchecked
    assert page.study.model.setData(index, state, Qt.ItemDataRole.CheckStateRole)


# ---- ways in


def test_the_button_on_the_page_cases_leads_to_the_import_and_back_to_it(dock, page, looked):
    click(dock.cases_page.to_import)
    assert dock.pages.shown is page
    assert page.state is ImportState.IDLE
    assert page.folder.property("primary")
    looked("one")
    dock.show_page("Cases")
    assert dock.cases_page.to_import.text() == "Back to the import…"
    click(dock.cases_page.to_import)
    assert page.study.isVisible()


def drop(widget, *paths):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, button = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    keys = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(5, 5), copy, data, button, keys)
    QApplication.sendEvent(widget, enter)
    event = QDropEvent(QPointF(5, 5), copy, data, button, keys)
    QApplication.sendEvent(widget, event)
    return enter.isAccepted()


def test_dicom_dropped_on_any_page_of_the_dock_is_looked_into(qtbot, dock, page):
    dock.show_page("Score")
    assert drop(dock.score_page, Path("/data/one"))
    settle(qtbot, dock)
    assert dock.pages.shown is page
    assert page.state is ImportState.FOUND


def test_another_folder_dropped_on_the_dock_is_opened_as_a_data_set_and_listed(qtbot, dock):
    dock.show_page("Kinetics")
    drop(dock, Path("/data/set"))
    assert dock.pages.shown is dock.cases_page
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.session.opened.data_set.root == Path("/data/set")


def test_the_line_over_the_picture_takes_what_the_dock_takes(qtbot, dock):
    assert drop(dock.case_line, Path("/data/set"))
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.session.opened.data_set.root == Path("/data/set")


def test_a_known_data_set_is_opened_and_a_volume_is_left_to_napari(qtbot, dock, world):
    dock.dropping._services = dock.services.replacing(recognise=lambda path: LayoutKind.MAMA_MIA)
    assert dock.dropping.take([Path("/data/one")])
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    dock.dropping._services = dock.services.replacing(recognise=lambda path: LayoutKind.SINGLE_FILE)
    assert not dock.dropping.take([Path("/data/one")])
    assert not dock.dropping.take([])


# ---- pictures of the parts


def seen(page, row):
    """Return the grey values of the picture in a row, None where the square is empty."""
    index = page.study.model.index(row, 0)
    drawn = index.data(Qt.ItemDataRole.DecorationRole).toImage()
    greys = [
        drawn.pixelColor(x, y).value()
        for y in range(drawn.height())
        for x in range(drawn.width())
        if drawn.pixelColor(x, y).alpha()
    ]
    return greys or None


def tip(page, row):
    return page.study.model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole)


def test_every_part_has_a_picture_that_is_large_on_hover(looked):
    page = looked("one")
    for row in range(3):
        assert max(seen(page, row)) > 200
        assert tip(page, row).startswith('<img src="data:image/png;base64,')
    assert tip(page, 2).endswith("<br>unnamed")
    page.study.model.rows = (replace(page.study.model.rows[0], sequence="<b>GR & 3D"),)
    assert tip(page, 0).endswith("<br>&lt;b&gt;GR &amp; 3D")


def test_parts_of_a_refused_study_have_pictures_where_one_must_choose(looked):
    page = looked("two")
    assert page.study.problem.isVisible()
    assert all(seen(page, row) for row in range(2))


def test_a_picture_that_cannot_be_read_says_so_and_the_others_come(imports, looked):
    imports.broken = "localizer"
    page = looked("one")
    assert imports.read == [1, 3, 5]
    assert max(seen(page, 0)) < 200  # the stroke of the empty square
    assert "No picture: expected a readable DICOM file, but it was cut" in tip(page, 0)
    assert max(seen(page, 1)) > 200


def test_a_part_is_read_once_however_often_the_study_is_judged(qtbot, dock, imports, looked):
    page = looked("one")
    tick(page, 2, False)
    tick(page, 1, True)
    settle(qtbot, dock)
    assert imports.read == [1, 3, 5]
    assert all(seen(page, row) for row in range(3))


def test_pictures_of_one_study_do_not_stay_for_the_next(looked):
    model = looked("one").study.model
    model.show_picture(0, "it was cut")
    tip = model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.endswith("No picture: it was cut")
    model.show_rows(model.rows, None, frozenset())
    assert model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == model.rows[0].sequence


def test_files_that_are_no_images_have_no_picture(looked):
    page = looked("broken")
    rows = [row for row in range(page.study.model.rowCount()) if "No picture" in tip(page, row)]
    assert rows


def test_pictures_are_not_read_any_more_once_the_page_is_closed(qtbot, dock, imports, page):
    go = threading.Event()

    def held(piece):
        imports.read.append(piece.header.series_number)
        while not go.wait(0.01):
            report_progress(0, 1)
        return part_picture(piece)

    pictures = dock.import_flow.choosing._pictures
    services = imports.services().replacing(part_picture=held)
    pictures._services = dock.services.replacing(imports=services)
    dock.import_dicom(Path("/data/one"))
    qtbot.waitUntil(lambda: imports.read == [1])
    click(page.back)
    go.set()
    qtbot.waitUntil(lambda: dock.jobs.wait(0))
    qtbot.wait(10)
    assert imports.read == [1]
    assert pictures._known == {}


# ---- looking


def test_headers_are_counted_while_they_are_read(page):
    page.show_looking(Path("/data/one"))
    page.show_progress(Progress(1200, 10_000, "Reading DICOM headers"))
    assert page.note.text() == "Reading DICOM headers: 1,200 of 10,000"
    assert page.progress.value() == 120


def test_a_missing_extra_is_said_with_the_command(qtbot, dock, imports, page, looked):
    imports.error = MissingExtraError("pydicom", "dicom")
    looked("one")
    assert page.state is ImportState.IDLE
    assert 'pip install "napari-mamamia[dicom]"' in page.note.text()
    assert page.note.property("level") == "error"


def test_a_source_that_is_refused_says_why(imports, looked):
    imports.error = FormatError("expected MR images in /data/one, got none: choose another")
    assert "expected MR images" in looked("one").note.text()


def test_the_same_source_dropped_again_while_it_is_read_goes_on(dock, imports, qtbot):
    calls = []
    plain = imports.look
    dock.import_flow._services = dock.services.replacing(
        imports=imports.services().replacing(look=lambda s: calls.append(s) or plain(s)),
    )
    for _ in range(5):
        dock.import_dicom(Path("/data/one"))
    settle(qtbot, dock)
    assert len(calls) == 1


def test_a_stopped_look_leaves_the_page_ready_for_another(qtbot, dock, page):
    dock.import_dicom(Path("/data/one"))
    click(page.cancel)
    assert page.state is ImportState.IDLE
    assert "Stopped" in page.note.text()
    assert page.folder.isEnabled()


# ---- the table


def test_the_table_says_of_each_series_what_it_is(looked):
    assert cells(looked("one")) == [
        [
            "1 · localizer\n4 x 16 x 20\n2 x 0.5 x 0.75 mm",
            "left out: localiser ('localizer' in SeriesDescription)\n4 images",
        ],
        [
            "3 · t2_tra\n4 x 16 x 20\n2 x 0.5 x 0.75 mm",
            "left out: another sequence (spin echo in ScanningSequence)\n4 images",
        ],
        [
            "5 · t1_dyn_fs\n4 x 16 x 20\n2 x 0.5 x 0.75 mm",
            "DCE: pre – post 2\n0, 90, 120 s\n12 images",
        ],
    ]


def test_every_series_can_be_ticked_and_those_that_give_phases_are(looked):
    model = looked("one").study.model
    role = Qt.ItemDataRole.CheckStateRole
    states = [model.index(row, 0).data(role) for row in range(3)]
    assert [Qt.CheckState(state) for state in states] == [
        Qt.CheckState.Unchecked,
        Qt.CheckState.Unchecked,
        Qt.CheckState.Checked,
    ]


@pytest.mark.usefixtures("dressed")
def test_every_text_of_the_table_has_room_at_the_narrowest_and_a_usual_width(qtbot, dock, looked):
    page = looked("one")
    model = page.study.model
    wide = replace(model.rows[2], spacing_mm=(11.5, 0.9375, 0.9375), n_slices=180, size=(512, 512))
    model.show_rows((*model.rows[:2], wide), (0, 90, 120), frozenset())
    for width in (dock.minimumWidth(), 420, 520):
        dock.resize(width, 900)
        qtbot.wait(10)
        table = page.study.table
        for row in range(3):
            for column in range(2):
                index = page.study.model.index(row, column)
                beside = 30 + page.study.model._side if column == 0 else 6
                box = table.columnWidth(column) - beside
                needed = table.fontMetrics().boundingRect(
                    0, 0, box, 10_000, int(Qt.TextFlag.TextWordWrap), index.data()
                )
                assert needed.width() <= box, (repr(index.data()), width)
                assert needed.height() <= table.rowHeight(row)
        cut = [
            label.objectName()
            for label in page.findChildren(QLabel)
            if label.isVisible()
            and not label.wordWrap()
            and label.width() < label.sizeHint().width()
        ]
        assert cut == []


def test_pictures_stand_above_the_ticks_of_the_phases(looked):
    page = looked("one")
    assert [box.text() for box in page.study.phases.boxes] == [
        "pre · 0 s",
        "post 1 · 90 s",
        "post 2 · 120 s",
    ]
    assert all(not label.pixmap().isNull() for label in page.study.phases._pictures)


def test_phases_are_counted_while_the_phase_before_contrast_is_not_known(looked):
    page = looked("unclear")
    assert [box.text() for box in page.study.phases.boxes] == [
        "phase 1 · 0 s",
        "phase 2 · 120 s",
        "phase 3 · 240 s",
    ]
    assert page.study.phases.boxes[0].toolTip() == "Makes phase 1 part of the case."
    assert page.study.model.index(0, 1).data().startswith("DCE: phase 1 – phase 3")
    kinds = [looked("one").study.model.index(row, 1).data() for row in range(3)]
    assert any(kind.startswith("DCE: pre – post 2") for kind in kinds)


def test_what_is_kept_of_the_headers_is_said(looked):
    text = looked("one").form.kept.text()
    assert "Removed: name, number, birth date" in text


def test_a_clock_that_the_user_names_sorts_the_phases_anew(qtbot, dock, imports, looked):
    page = looked("doubt")
    assert "xpected one order of the phases" in page.study.problem.text()
    assert not page.start.isEnabled()
    clock = page.study.clock
    clock.setCurrentIndex(clock.findData(Clock.ACQUISITION_TIME))
    clock.activated.emit(clock.currentIndex())
    settle(qtbot, dock)
    assert imports.judged[0].clock is Clock.ACQUISITION_TIME
    assert page.study.reason.text().startswith("AcquisitionTime: 3 equal stacks")
    assert not page.study.problem.isVisible()
    assert page.start.isEnabled()


def test_clocks_that_order_nothing_cannot_be_chosen(looked):
    clock = looked("one").study.clock
    can = {clock.itemText(k): clock.model().item(k).isEnabled() for k in range(clock.count())}
    assert can["automatic"]
    assert can["AcquisitionTime"]
    assert not can["TriggerTime"]


def test_a_series_that_is_ticked_or_not_decides_what_the_phases_are(qtbot, dock, imports, looked):
    page = looked("one")
    tick(page, 1, True)
    settle(qtbot, dock)
    tick(page, 2, False)
    settle(qtbot, dock)
    t2, dynamic = read_selectors(["series=3,role=echo-train,echo=1", "series=5,role=phase,echo=1"])
    assert [settings.use for settings in imports.judged] == [(t2, dynamic), (t2,)]
    assert cells(page)[1][1] == "DCE: phase 1\n0 s · 4 images"
    assert cells(page)[2][1].startswith("left out: not chosen")


def test_the_fat_of_a_series_is_chosen_beside_its_water(qtbot, dock, imports, looked):
    page = looked("dixon")
    assert [text.split("\n")[0] for text, _ in cells(page)] == [
        "5 · no description · fat", "5 · no description · water"
    ]  # fmt: skip
    assert cells(page)[0][1].startswith("left out: fat image (F in ImageType)")
    tick(page, 0, True)
    settle(qtbot, dock)
    tick(page, 1, False)
    settle(qtbot, dock)
    assert cells(page)[1][1].startswith("left out: not chosen")
    assert cells(page)[0][1].startswith("DCE: pre – post 2")
    assert "is not a DCE phase (fat image)" in page.study.warnings.text()


def test_a_study_that_is_asked_about_says_that_ticks_decide(qtbot, dock, imports, looked):
    page = looked("two")
    assert page.study.problem.text().endswith("the series to use in the table.")
    tick(page, 1, False)
    settle(qtbot, dock)
    assert cells(page)[0][1].startswith("DCE: pre – post 2")
    assert not page.study.problem.isVisible()


def test_two_breasts_are_joined_where_that_is_ticked_and_asked_about_else(
    qtbot, dock, imports, looked
):
    page = looked("breasts")
    assert page.study.join.isVisible()
    assert not page.study.join.isChecked()
    assert "xpected series with the same size and position" in page.study.problem.text()
    assert "click the correct answer below" in page.study.problem.text()
    click(page.study.join)
    settle(qtbot, dock)
    assert imports.judged[-1].sides == "join"
    assert page.study.problem.text() == ""
    assert "slices 4 to 49 between them contain 0" in page.study.warnings.text()
    assert not page.open.isVisible()
    click(page.study.join)
    settle(qtbot, dock)
    assert imports.judged[-1].sides == "ask"
    assert page.study.problem.isVisible()


def test_two_breasts_become_two_cases_by_one_click_and_one_again_by_another(
    qtbot, dock, imports, looked
):
    page = looked("breasts")
    click(page.study.part)
    settle(qtbot, dock)
    rows = [[page.studies_model.index(k, c).data() for c in range(2)] for k in range(2)]
    assert rows == [["breasts_left", "3 phases, 4 x 16 x 20"],
                    ["breasts_right", "3 phases, 4 x 16 x 20"]]  # fmt: skip
    assert page.start.text() == "Import 2 cases"
    assert not page.study.breasts.isVisible()
    click(page.start)
    settle(qtbot, dock)
    wanted, _ = imports.runs[-1]
    assert [study.found.case_id for study in wanted] == ["breasts_left", "breasts_right"]
    for study, side in zip(wanted, ("left", "right"), strict=True):
        used = [row for row in study.found.rows if row.phases]
        assert [row.part for row in used] == [side]


def test_one_of_two_cases_is_sorted_where_sorting_the_other_fails(qtbot, dock, imports, looked):
    page = looked("breasts")
    imports.judge_errors.append(FormatError("expected a DICOM file, but it is gone: look again"))
    click(page.study.part)
    settle(qtbot, dock)
    assert "Analysing breasts_right failed" in dock.header.message.text()
    assert page.studies_model.index(0, 1).data() == "3 phases, 4 x 16 x 20"
    assert page.start.isEnabled()


def test_a_choice_in_a_study_counts_though_one_in_another_follows_at_once(
    qtbot, dock, imports, looked
):
    page = looked("many")
    imports.may_judge.clear()
    for row in (0, 2):
        page.studies.selectRow(row)
        page.study.clock_chosen.emit(Clock.ACQUISITION_TIME)
    imports.may_judge.set()
    settle(qtbot, dock)
    for row in (0, 2):
        page.studies.selectRow(row)
        assert page.study.clock.currentText() == "AcquisitionTime", row


def test_two_cases_are_taken_back(qtbot, dock, looked):
    page = looked("breasts")
    click(page.study.part)
    settle(qtbot, dock)
    page.studies.selectRow(1)
    assert page.study.undo.text() == "Undo: two cases"
    click(page.study.undo)
    settle(qtbot, dock)
    assert page.studies_model.rowCount() == 1
    assert page.form.case_id.text() == "breasts"
    assert page.study.part.isVisible()


def test_a_tick_in_one_of_two_cases_lets_the_other_be_sorted_too(qtbot, dock, imports, looked):
    page = looked("breasts")
    imports.may_judge.clear()
    click(page.study.part)
    for is_used in (False, True):
        tick(page, 0, is_used)
    imports.may_judge.set()
    settle(qtbot, dock)
    rows = [[page.studies_model.index(k, c).data() for c in range(2)] for k in range(2)]
    assert rows == [["breasts_left", "3 phases, 4 x 16 x 20"],
                    ["breasts_right", "3 phases, 4 x 16 x 20"]]  # fmt: skip
    assert page.start.text() == "Import 2 cases"


def remedies(page):
    """Return the buttons of the remedies."""
    layout = page.study.remedies.layout()
    return [layout.itemAt(at).widget() for at in range(layout.count())]


def test_a_bad_phase_of_a_series_is_left_out_by_a_click_and_kept_again_by_another(
    qtbot, dock, imports, looked
):
    page = looked("copied")
    assert [button.text() for button in remedies(page)] == [
        "Leave out phase 3 of series 1", "Leave out phase 2 of series 1"]  # fmt: skip
    click(remedies(page)[0])
    settle(qtbot, dock)
    assert not page.study.problem.isVisible()
    assert [line[1].split("\n")[0] for line in cells(page)] == [
        "DCE: pre – post 2", "left out: not chosen"]  # fmt: skip
    assert page.start.isEnabled()
    click(page.study.undo)
    settle(qtbot, dock)
    assert page.study.problem.isVisible()
    assert len(remedies(page)) == 2


def test_a_tick_in_the_table_takes_the_place_of_what_was_clicked(qtbot, dock, imports, looked):
    page = looked("copied")
    click(remedies(page)[0])
    settle(qtbot, dock)
    tick(page, 1, True)
    settle(qtbot, dock)
    assert imports.judged[-1].leave_out == ()
    assert not page.study.undo.isVisible()


def test_a_study_of_one_stack_has_nothing_to_join(looked):
    assert not looked("one").study.join.isVisible()


def test_an_earlier_pre_has_no_tick_and_one_keeps_it(qtbot, dock, imports, looked):
    page = looked("twice")
    role = Qt.ItemDataRole.CheckStateRole
    ticks = [Qt.CheckState(page.study.model.index(row, 0).data(role)) for row in range(2)]
    assert "earlier pre-contrast" in cells(page)[0][1]
    assert ticks == [Qt.CheckState.Unchecked, Qt.CheckState.Checked]
    tick(page, 0, True)
    settle(qtbot, dock)
    assert len(page.study.phases.boxes) == 4
    assert [line[1] for line in cells(page)] == [
        "DCE: pre 1 – post 2\n0, 120, 240, 360 s\n16 images"
    ]
    click(page.start)
    assert imports.runs[-1][0][0].settings.use


def test_what_no_selector_tells_from_the_phases_has_no_tick(looked):
    model = looked("one").study.model
    used = model.rows[2]
    copy = replace(used, phases=(), kind="copy")
    model.show_rows((used, copy), (0, 90, 120), frozenset({used.selectors}))
    role = Qt.ItemDataRole.CheckStateRole
    assert Qt.CheckState(model.index(0, 0).data(role)) == Qt.CheckState.Checked
    assert model.index(1, 0).data(role) is None
    assert not model.flags(model.index(1, 0)) & Qt.ItemFlag.ItemIsUserCheckable


def test_what_is_asked_is_said_without_the_options_of_the_command_line(looked):
    page = looked("fast")
    said = page.study.problem.text()
    assert "are less than 20 s apart" in said
    assert "--" not in said
    assert "tick only the series to use in the table" in said
    assert [line[1].split("\n")[1] for line in cells(page)] == [
        "20 images, 5 for each slice",
        "16 images, 4 for each slice",
    ]


def test_files_that_cannot_be_read_stop_the_import_until_they_are_left_out(
    qtbot, dock, imports, looked
):
    page = looked("broken")
    assert "IM_9_001.dcm, but it is empty" in page.study.problem.text()
    assert not page.start.isEnabled()
    tick(page, 1, False)
    settle(qtbot, dock)
    assert page.start.isEnabled()
    assert "1 file that cannot be read" in page.study.warnings.text()
    tick(page, 1, True)
    settle(qtbot, dock)
    assert not page.start.isEnabled()


def test_the_last_series_goes_on_counting(qtbot, dock, imports, looked):
    page = looked("one")
    tick(page, 2, False)
    settle(qtbot, dock)
    assert imports.judged[-1].use == ()
    assert "DCE: pre – post 2" in cells(page)[2][1]
    ticked = page.study.model.index(2, 0).data(Qt.ItemDataRole.CheckStateRole)
    assert Qt.CheckState(ticked) == Qt.CheckState.Checked


# ---- what is in the way


def test_an_id_that_is_refused_stops_the_import_at_once(qtbot, dock, imports, looked):
    page = looked("one")
    assert page.start.isEnabled()
    imports.refused_ids["Erika"] = "The id Erika holds a word of the patient's name."
    page.form.case_id.clear()
    QTest.keyClicks(page.form.case_id, "Erika")
    settle(qtbot, dock)
    assert "holds a word of the patient's name" in page.form.id_state.text()
    assert not page.start.isEnabled()
    assert page.blocked.isVisible()
    QTest.keyClicks(page.form.case_id, "2")
    settle(qtbot, dock)
    assert page.start.isEnabled()
    click(page.start)
    settle(qtbot, dock)
    assert imports.runs[0][0][0].found.case_id == "Erika2"


def test_a_case_that_is_there_is_replaced_only_when_that_is_ticked(qtbot, dock, imports, looked):
    imports.there.add("one")
    page = looked("one")
    assert "already has a case with this id" in page.form.id_state.text()
    assert not page.start.isEnabled()
    click(page.form.replace)
    settle(qtbot, dock)
    click(page.start)
    settle(qtbot, dock)
    assert imports.runs[0][0][0].settings.existing is Existing.OVERWRITE


def test_a_folder_that_cannot_take_a_case_stops_the_import(qtbot, dock, imports, looked):
    page = looked("one")
    imports.target_problem = "/x is not writable: choose a different folder."
    page.form.target.setText("/x")
    settle(qtbot, dock)
    assert "is not writable" in page.form.target_state.text()
    assert not page.start.isEnabled()


def test_a_study_without_any_phase_left_cannot_be_imported(looked):
    page = looked("one")
    for box in page.study.phases.boxes:
        click(box)
    assert "Keep at least one phase" in page.study.problem.text()
    assert not page.start.isEnabled()
    click(page.study.phases.boxes[1])
    assert page.start.isEnabled()


# ---- importing


def test_what_was_confirmed_is_imported_and_the_case_opens(qtbot, dock, imports, looked):
    page = looked("one")
    click(page.study.phases.boxes[1])
    page.form.dates.setCurrentIndex(page.form.dates.findData(Dates.SHIFT))
    click(page.start)
    qtbot.waitUntil(lambda: dock.session.case_id == "one")
    ((wanted,), out) = imports.runs[0]
    assert out == OUT
    assert wanted.settings.phases == (0, 2)
    assert wanted.settings.dates is Dates.SHIFT
    assert wanted.settings.existing is Existing.REFUSE
    assert dock.session.opened.data_set.root == OUT
    qtbot.waitUntil(lambda: dock.page == "View")
    assert page.state is ImportState.IDLE
    assert imports.closed == 1


def test_of_several_studies_the_ticked_ones_go_on_and_refused_ones_are_listed(
    qtbot, dock, imports, looked
):
    page = looked("many")
    model = page.studies_model
    assert [model.index(k, 1).data() for k in range(3)] == [
        "2 phases, 4 x 16 x 20",
        "refused",
        "2 phases, 4 x 16 x 20",
    ]
    assert page.start.text() == "Import 2 cases"
    page.studies.selectRow(1)
    assert "a slice is missing" in page.study.problem.text()
    click(page.start)
    qtbot.waitUntil(lambda: page.state is ImportState.DONE)
    assert [study.found.case_id for study in imports.runs[0][0]] == ["A", "C"]
    assert "2 cases imported into" in page.note.text()
    assert "B: expected 2 images at each of the" in page.note.text()
    qtbot.waitUntil(lambda: dock.session.case_id == "A")
    click(page.to_cases)
    assert dock.pages.shown is dock.cases_page


def test_a_study_that_is_not_ticked_is_not_imported(qtbot, dock, imports, looked):
    page = looked("many")
    index = page.studies_model.index(2, 0)
    page.studies_model.setData(index, Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    settle(qtbot, dock)
    assert page.start.text() == "Import 1 case"
    click(page.start)
    settle(qtbot, dock)
    assert [study.found.case_id for study in imports.runs[0][0]] == ["A"]


def test_an_id_that_is_typed_belongs_to_the_study_on_screen(qtbot, dock, imports, looked):
    page = looked("many")
    page.studies.selectRow(2)
    settle(qtbot, dock)
    page.form.case_id.clear()
    QTest.keyClicks(page.form.case_id, "SITE_7")
    settle(qtbot, dock)
    page.studies.selectRow(0)
    assert page.form.case_id.text() == "A"
    assert page.studies_model.index(2, 0).data() == "SITE_7"


def test_a_conflict_that_comes_late_is_shown_with_what_to_do(qtbot, imports, looked):
    why = (
        "expected no case at /data/cases/images/one, but there is one already: nothing was written"
    )
    imports.summary = ImportSummary((), failures=(CaseFailure("one", why),))
    page = looked("one")
    click(page.start)
    qtbot.waitUntil(lambda: page.state is ImportState.DONE)
    assert "there is one already: nothing was written" in page.note.text()
    assert page.note.property("level") == "error"
    click(page.to_table)
    assert page.study.isVisible()


def test_an_import_that_fails_as_a_whole_leaves_the_table_and_the_reason(qtbot, imports, looked):
    imports.summary = SaveConflictError("the clinical table has a fault: mend it")
    page = looked("one")
    click(page.start)
    qtbot.waitUntil(lambda: "mend it" in page.note.text())
    assert page.study.isVisible()
    qtbot.waitUntil(page.start.isEnabled)


def test_warnings_of_an_import_stay_on_the_page(qtbot, dock, imports, looked):
    imports.summary = ImportSummary((imported("one", ("no enhancement is seen",)),))
    page = looked("one")
    click(page.start)
    qtbot.waitUntil(lambda: dock.session.case_id == "one")
    assert page.state is ImportState.DONE
    assert "one: no enhancement is seen." in page.note.text()


@pytest.mark.parametrize("is_other", [False, True])
def test_cases_whose_listing_was_stopped_are_listed_once_they_are_asked_for(
    qtbot, dock, imports, looked, is_other
):
    if is_other:
        dock.open_data_set(Path("/data/before"))
        qtbot.waitUntil(lambda: dock.session.opened is not None)
    imports.summary = ImportSummary((imported("one", ("no enhancement is seen",)),))
    page = looked("one")
    usual, held = dock.listing._list_cases, [True]

    def wait(*given, **named):
        while held:
            report_progress(0, 1, "Listing")
            time.sleep(0.01)
        return usual(*given, **named)

    dock.listing._list_cases = wait
    click(page.start)
    qtbot.waitUntil(lambda: dock.jobs.is_running("list"))
    qtbot.waitUntil(lambda: page.state is ImportState.DONE)
    click(dock.findChild(QWidget, "header_cancel"))
    qtbot.waitUntil(lambda: not dock.jobs.is_running("list"))
    assert page.to_cases.isVisible()
    held.clear()
    click(page.to_cases)
    assert dock.pages.shown is dock.cases_page
    qtbot.waitUntil(lambda: dock.session.opened and dock.session.opened.data_set.root == OUT)
    qtbot.waitUntil(lambda: "one" in dock.session.rows)
    assert dock.session.case is None, "to list was asked for, not to open"
    click(dock.cases_page.to_import)
    click(dock.findChild(QWidget, "import_back"))
    qtbot.wait(20)
    assert not dock.jobs.is_running("list"), "it is listed once"


def test_dicom_of_one_study_can_be_opened_as_it_lies_there(qtbot, dock, imports, looked):
    page = looked("one")
    click(page.open)
    qtbot.waitUntil(lambda: dock.session.opened is not None)
    assert dock.session.opened.data_set.root.name.startswith("one")
    assert imports.runs == []
    assert dock.cases_page.to_import.text() == "Import DICOM…"


def test_after_a_choice_the_files_as_they_lie_there_are_no_longer_offered(looked):
    page = looked("one")
    click(page.study.phases.boxes[2])
    assert not page.open.isVisible()


def test_the_export_knows_the_study_that_the_case_came_from(qtbot, dock, tmp_path, looked, imports):
    folder = tmp_path / "one"
    folder.mkdir()
    dock.import_dicom(folder)
    settle(qtbot, dock)
    click(dock.import_page.start)
    settle(qtbot, dock)
    assert dock.export_page.options.fields["study"].text() == str(folder)


def test_closing_lets_go_of_what_was_unpacked(dock, imports, looked):
    page = looked("one")
    click(page.back)
    assert imports.closed == 1
    assert dock.pages.shown is dock.cases_page
    looked("one")
    dock.close_down()
    assert imports.closed == 2


def test_every_control_has_a_name_and_a_tooltip(looked):
    page = looked("many")
    named = (page.start, page.open, page.folder, page.zip, page.back, page.cancel, page.studies,
             page.study.table, page.study.clock, page.form.case_id, page.form.target,
             page.form.dates, page.form.replace, *page.study.phases.boxes)  # fmt: skip
    assert all(isinstance(w, QWidget) and w.objectName() and w.toolTip() for w in named)
