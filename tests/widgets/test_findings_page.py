"""Page Findings: answers and marks of a case without a study, kept as they are given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QColor, QWheelEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QWidget,
)

from napari_mamamia.core.answers import (
    WHOLE_CASE,
    Answers,
    CaseFacts,
    Landmark,
    LesionFacts,
    Place,
    Side,
)
from napari_mamamia.core.blinding import Blinding
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.segmentation.model.segmenter import Click
from napari_mamamia.services.findings.case_findings import load_findings_form, open_findings
from napari_mamamia.services.measure.shapes import Slice
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.findings.form_view import FormView
from napari_mamamia.widgets.findings.page import FindingsPage
from napari_mamamia.widgets.measure.overlay import MARK_COLOUR, Grip, ViewDrawings

LESION = Place(FieldScope.LESION, "1")


@pytest.fixture
def findings(qtbot, opened):
    """The page on screen, the lesion of the reference measured."""
    opened.show_page("Findings")
    flow = opened.kinetics.findings
    qtbot.waitUntil(lambda: bool(flow._facts.lesions), timeout=8000)
    return opened


def stored(world, reader="Ana", case_id="A_1"):
    return open_findings(Workspace(world.root / "workspace"), reader, case_id)


def value_of(world, field, place=LESION, **of):
    answer = stored(world, **of).answers.find(field, place)
    return None if answer is None else answer.values


def click(dock, name):
    dock.findChild(QPushButton, name).click()


def choose(dock, name, data):
    box = dock.findChild(QComboBox, name)
    box.setCurrentIndex(box.findData(data))
    box.activated.emit(box.currentIndex())


def missing(form):
    return tuple(gap.text for gap in form.list_gaps() if not gap.contradicts)


def describe_mass(dock):
    click(dock, "findings_place_lesion")
    choose(dock, "findings_answer_finding_1", "mass")
    choose(dock, "findings_answer_mass.shape_1", "irregular")


def test_what_is_answered_is_on_the_disk_a_moment_later_and_there_again(qtbot, findings, world):
    describe_mass(findings)
    qtbot.waitUntil(lambda: value_of(world, "mass.shape") == ("irregular",))
    findings.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: findings.session.case_id == "A_2")
    assert findings.kinetics.findings.list_gaps() == ()
    findings.cases_flow.open_neighbour(-1)
    qtbot.waitUntil(lambda: findings.session.case_id == "A_1")
    flow = findings.kinetics.findings
    qtbot.waitUntil(lambda: flow._findings.answers.find("finding", LESION) is not None)
    qtbot.waitUntil(lambda: bool(flow._facts.lesions), timeout=8000)
    click(findings, "findings_place_lesion")
    box = findings.findChild(QComboBox, "findings_answer_mass.shape_1")
    assert box.currentData() == "irregular"


def test_an_answer_is_not_lost_with_the_case_that_comes_next(qtbot, findings, world):
    describe_mass(findings)
    findings.cases_flow.open_neighbour(1)  # before the moment is over
    qtbot.waitUntil(lambda: value_of(world, "finding") == ("mass",))
    assert value_of(world, "finding", case_id="A_2") is None


def test_an_answer_is_not_lost_where_the_window_closes(qtbot, findings, world):
    describe_mass(findings)
    findings.close_down()
    assert value_of(world, "mass.shape") == ("irregular",)


def test_nothing_is_written_of_a_case_that_nobody_said_anything_of(qtbot, findings, world):
    findings.kinetics.findings.keep()
    findings.close_down()
    assert not (world.root / "workspace" / "findings").exists()


def test_a_nipple_is_clicked_and_lesions_have_their_place(qtbot, findings, world):
    assert "until the nipple is marked" in findings.findings_page.remarks.text()
    click(findings, "findings_mark_nipple_left")
    assert findings.active_tool.tool.name == "Findings: click on the left nipple"
    # voxel (z, y, x) of the blob's centre (2.5, 9.5, 12.5); AXIAL is diag(-1.5, 2, 3)
    findings.tools.landmarks.given.emit(Click((0, 18, 0)))
    qtbot.waitUntil(lambda: bool(stored(world).landmarks.points))
    assert stored(world).landmarks.find(Landmark.NIPPLE, Side.LEFT) == (0.0, 36.0, 0.0)
    (lesion,) = findings.kinetics.findings._facts.lesions
    # 18.75 mm to the left and 7.5 mm up: outer on the left, 68 degrees from 12: 2 o'clock
    assert (lesion.side, lesion.quadrant, lesion.clock) == (Side.LEFT, "UO", "2")
    assert findings.findChild(QPushButton, "findings_mark_nipple_left").text() == "Left ✓"
    click(findings, "findings_place_lesion")
    assert "2 o'clock" in findings.findChild(QLabel, "findings_form_auto").text()
    click(findings, "findings_forget_marks")
    qtbot.waitUntil(lambda: not stored(world).landmarks.points)
    assert findings.kinetics.findings._facts.lesions[0].clock == ""


def test_escape_ends_the_waiting_for_a_click(qtbot, findings, viewer):
    click(findings, "findings_mark_nipple_right")
    assert findings.active_tool.tool is not None
    escape = next(call for key, call in viewer.keymap.items() if str(key) == "Escape")
    escape(viewer)
    assert findings.active_tool.tool is None
    assert not findings.findChild(QPushButton, "findings_mark_nipple_right").isChecked()


def test_the_key_gives_the_breast_of_the_chosen_lesion_its_category(qtbot, findings, world):
    flow = findings.kinetics.findings
    flow.assess(4)
    assert "No breast chosen" in findings.header.message.text()
    click(findings, "findings_place_left")
    flow.assess(4)
    breast = Place(FieldScope.BREAST, "left")
    qtbot.waitUntil(lambda: value_of(world, "assessment", breast) == ("4",))
    assert findings.findChild(QComboBox, "findings_answer_assessment_left").currentData() == "4"


def test_what_is_missing_is_told_as_a_case_is_accepted_and_holds_nobody(qtbot, findings, world):
    describe_mass(findings)
    gone = []
    findings.accept_checks.accept(lambda: gone.append(1))
    assert gone == [1]
    assert "A_1 is accepted. Missing:" in findings.header.message.text()
    assert "Mass: margin (lesion 1)" in missing(findings.findings_page.form)


def test_a_case_that_nobody_described_is_accepted_without_a_word(qtbot, findings):
    assert findings.kinetics.findings.list_gaps() == ()
    assert findings.findings_page.gaps.isHidden()


def test_a_lesion_that_is_in_no_mask_can_be_described(qtbot, findings, world):
    findings.findings_page.lesion_wanted.emit()
    assert findings.findings_page.place == Place(FieldScope.LESION, "2")
    choose(findings, "findings_answer_finding_2", "focus")
    place = Place(FieldScope.LESION, "2")
    qtbot.waitUntil(lambda: value_of(world, "finding", place) == ("focus",))


def test_a_mass_that_is_not_drawn_contradicts(qtbot, findings):
    findings.findings_page.lesion_wanted.emit()
    choose(findings, "findings_answer_finding_2", "mass")
    (text,) = (one for one in findings.findings_page.gaps.texts if one.startswith("⚠"))
    assert "the mask has no lesion 2" in text


def test_numbers_that_are_hidden_are_not_filled_in(qtbot, findings):
    findings.session.blinding = Blinding.of(["numbers"])
    flow = findings.kinetics.findings
    flow._ask_lesions()
    qtbot.waitUntil(lambda: "measurements are hidden" in findings.findings_page.whose.text())
    assert flow._findings.answers.find("volume", LESION) is None
    assert [one.volume_mm3 for one in flow._facts.lesions] == [None]


def test_a_study_has_its_own_form(qtbot, findings):
    findings.session.study = "Trial"
    findings.session.case_changed.emit()
    assert "Review page" in findings.findings_page.missing.text()
    findings.kinetics.findings.assess(4)
    assert "Review page" in findings.header.message.text()


def test_a_record_that_cannot_be_read_shuts_the_page_and_nothing_is_written(qtbot, findings, world):
    flow = findings.kinetics.findings
    known = flow._services

    def fail(*_given):
        raise FormatError("damaged")

    flow._services = known.replacing(findings=known.findings.replacing(open=fail))
    findings.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: "damaged" in findings.findings_page.missing.text())
    flow.keep()
    findings.close_down()
    assert not (world.root / "workspace" / "findings").exists()


def test_who_answers_without_a_name_is_asked_and_loses_nothing(qtbot, dock, world):
    world.preferences = replace(world.preferences, reader=None)
    dock.session.set_reader(None)
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Findings")
    choose(dock, "findings_answer_bpe", "mild")
    dock.header.reader_given.emit("Ben")
    place = Place()
    qtbot.waitUntil(lambda: value_of(world, "bpe", place, reader="Ben") == ("mild",))
    assert dock.findChild(QComboBox, "findings_answer_bpe").currentData() == "mild"


# --------------------------------------------------------------------------- the form


@pytest.fixture
def form(qtbot):
    view = FormView("findings", LESION)
    qtbot.addWidget(view)
    view.set_form(load_findings_form())
    view.show_place(LESION)
    view.set_facts(CaseFacts((LesionFacts("1", Side.RIGHT, 523.6),)))
    view.show()
    return view


def test_a_form_that_is_not_seen_asks_nothing_of_the_case_before(qtbot, form):
    pages = QStackedWidget()
    qtbot.addWidget(pages)
    for page in (form, QWidget()):
        pages.addWidget(page)
    pages.show()
    choose(form, "findings_answer_finding_1", "mass")
    pages.setCurrentIndex(1)
    form.show_answers(Answers(), CaseFacts((LesionFacts("1", Side.LEFT, 20.0),)))
    assert form.findChild(QComboBox, "findings_answer_finding_1") is None
    pages.setCurrentIndex(0)
    assert form.findChild(QComboBox, "findings_answer_finding_1").currentData() == ""
    form.setParent(None)  # or it would go with the pages


def turn_wheel(control):
    place = QPointF(5, 5)
    event = QWheelEvent(
        place,
        place,
        QPoint(0, -120),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(control, event)


def test_a_wheel_over_a_question_answers_nothing(qtbot, form):
    box = form.findChild(QComboBox, "findings_answer_finding_1")
    box.setFocus()
    turn_wheel(box)
    assert box.currentData() == ""
    assert form.current.find("finding", LESION) is None


def test_at_most_a_handful_of_questions_is_seen_and_the_rest_lies_in_a_fold(qtbot, form):
    for field, value in (("finding", "mass"), ("mass.margin", "not_circumscribed")):
        choose(form, f"findings_answer_{field}_1", value)
    first = form.findChild(QComboBox, "findings_answer_finding_1")
    qtbot.waitUntil(lambda: first.isVisible())
    shown = [one for one in form.findChildren(QComboBox) if one.isVisible()]
    assert [one.objectName().removeprefix("findings_answer_") for one in shown] == [
        *("finding_1", "mass.shape_1", "mass.margin_1", "mass.margin_not_1", "mass.internal_1"),
    ]
    assert "right · volume 0.52 ml" in form.findChild(QLabel, "findings_form_auto").text()
    form.findChild(QPushButton, "findings_form_fold").click()
    assert form.findChild(QComboBox, "findings_answer_side_1").isVisibleTo(form)


def test_auto_stands_at_an_answer_until_it_is_touched(qtbot, form):
    form.findChild(QPushButton, "findings_form_fold").click()
    auto = form.findChild(QLabel, "findings_answer_volume_1_auto")
    qtbot.waitUntil(lambda: auto.isVisible())
    assert (auto.isVisibleTo(form), auto.text()) == (True, "auto")
    line = form.findChild(QLineEdit, "findings_answer_volume_1")
    assert line.text() == "0.52"  # ml
    line.setText("0.6")
    line.textEdited.emit("0.6")
    assert form.current.find("volume", LESION).values == ("600",)  # mm3, as the record has it
    assert not auto.isVisibleTo(form)
    assert form.findChild(QLineEdit, "findings_answer_volume_1") is line  # who types goes on


def test_what_is_filled_in_follows_the_mask(qtbot, form):
    form.findChild(QPushButton, "findings_form_fold").click()
    form.set_facts(CaseFacts((LesionFacts("1", Side.RIGHT, 700.0, 22.641),)))
    assert form.findChild(QLineEdit, "findings_answer_volume_1").text() == "0.70"
    longest = form.findChild(QLineEdit, "findings_answer_long_axis_1")
    assert longest.text() == "22.6"  # and the record keeps what was measured
    assert form.current.find("long_axis", LESION).values == ("22.641",)


def test_of_one_breast_alone_its_own_assessment_is_missing(qtbot, form):
    form.set_facts(CaseFacts((), (Side.RIGHT,), is_one_breast=True))
    assert [one for one in missing(form) if "ssessment" in one] == [
        "Assessment category (right breast)"
    ]
    form.set_facts(CaseFacts((), is_one_breast=True))
    assert [one for one in missing(form) if "ssessment" in one] == [
        "Assessment category (displayed breast)"
    ]


def test_in_an_exam_of_one_breast_nothing_of_the_other_is_offered(qtbot):
    page = FindingsPage()
    qtbot.addWidget(page)
    offered = ("findings_place_left", "findings_mark_nipple_left", "findings_mark_chest_wall_left")
    left = [page.findChild(QAbstractButton, name) for name in offered]
    page.choose(Place(FieldScope.BREAST, "left"))
    page.show_lesions(CaseFacts(sides=(Side.RIGHT,), is_one_breast=True), ())
    assert all(control.isHidden() for control in left)
    assert page.place == WHOLE_CASE
    assert not page.findChild(QAbstractButton, "findings_place_right").isHidden()
    page.show_lesions(CaseFacts(), ())
    assert not any(control.isHidden() for control in left)


def test_a_term_of_a_later_lexicon_is_shown_as_it_stands(qtbot, form):
    form.set_answers({"finding@1": "halo"})
    box = form.findChild(QComboBox, "findings_answer_finding_1")
    assert (box.currentData(), box.currentText()) == ("halo", "halo (not in this version)")


# -------------------------------------------------------------------- on the image


def mark_nipple(qtbot, dock, world, voxel=(0, 18, 0)):
    click(dock, "findings_mark_nipple_left")
    dock.tools.landmarks.given.emit(Click(voxel))
    qtbot.waitUntil(lambda: bool(stored(world).landmarks.points))


def test_marks_are_drawn_on_their_slice_and_fainter_on_near_ones(qtbot, findings, world):
    mark_nipple(qtbot, findings, world, (1, 18, 0))
    (view, *_) = findings.measuring.views
    key = "mark NIPPLE LEFT"
    # AXIAL has sagittal slices as its own: 24 columns of 1.5 mm; the mark is in column 0
    strengths = {}
    for column in (0, 2, 5, 9, 12):
        findings.scene.view.go_to((1, 18, column), centre=False)
        strengths[column] = view.marks.get(key, 0.0)
    axis = findings.scene.view.upright_axis
    assert axis is not None
    step = findings.scene.grid.spacing_mm[axis]
    place = {0: 1, 1: 18, 2: 0}[axis]
    for column in strengths:
        here = (1, 18, column)[axis]
        away = abs(here - place) * step
        expected = 1.0 if away == 0 else max(1 - away / 15, 0.25) if away <= 15 else 0.0
        assert strengths[column] == pytest.approx(expected)


def test_a_mark_is_painted_over_the_canvas_where_nothing_else_is_drawn(
    qtbot, findings, world, viewer
):
    mark_nipple(qtbot, findings, world)
    canvas = QWidget()
    qtbot.addWidget(canvas)
    canvas.resize(300, 200)
    canvas.show()
    findings.scene.view.go_to((0, 18, 0), centre=True)
    viewer.scene.camera.zoom = 5.0
    drawings = ViewDrawings(findings.scene.view, viewer, lambda: canvas)
    drawings.show((), findings.measuring.marks)
    sheet = canvas.findChild(QWidget, "measure_sheet")
    assert sheet.size() == canvas.size()
    image = sheet.grab().toImage()
    colour = QColor(MARK_COLOUR)
    places = [(x, y) for x in range(300) for y in range(200) if image.pixelColor(x, y) == colour]
    assert len(places) > 10
    x, y = np.mean([place for place in places if abs(place[0] - 150) < 8], axis=0)
    assert (x, y) == pytest.approx((150, 100), abs=3)  # the middle of the picture
    drawings.close()


def test_a_mark_is_moved_by_a_drag_and_taken_away_by_its_key(qtbot, findings, world):
    mark_nipple(qtbot, findings, world)
    measuring = findings.measuring
    (mark,) = measuring.marks
    assert mark.words == "Nipple left"
    assert mark.point_mm == (0.0, 36.0, 0.0)
    grip = Grip(mark.key, 0, Slice(findings.scene.grid, 0, 0))
    measuring._choose_drawing(mark.key)
    measuring._drag_point(grip, (-3.0, 34.0, 0.0))
    measuring._drop_point()
    moved = (-3.0, 34.0, 0.0)
    qtbot.waitUntil(lambda: stored(world).landmarks.find(Landmark.NIPPLE, Side.LEFT) == moved)
    assert measuring.marks[0].point_mm == moved
    assert findings.measuring.record.items == ()
    measuring.delete()
    qtbot.waitUntil(lambda: not stored(world).landmarks.points)
    assert measuring.marks == ()
    assert findings.kinetics.findings._facts.lesions[0].clock == ""


def test_another_case_shows_none_of_the_marks_of_the_one_before(qtbot, findings, world):
    mark_nipple(qtbot, findings, world)
    assert findings.measuring.marks
    findings.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: findings.session.case_id == "A_2")
    assert findings.measuring.marks == ()


def test_escape_ends_the_waiting_also_on_a_labels_layer_and_gives_the_key_back(
    qtbot, findings, viewer
):
    layer = findings.scene.layer(Role.REFERENCE)
    other = viewer.add_labels(np.zeros((6, 20, 24), np.uint8))
    for chosen in (layer, other):
        viewer.layers.selection.active = chosen
        before = dict(chosen.keymap)
        click(findings, "findings_mark_nipple_right")
        escape = next(call for key, call in chosen.keymap.items() if str(key) == "Escape")
        escape(chosen)
        assert findings.active_tool.tool is None
        assert dict(chosen.keymap) == before
    # a layer that is chosen while a click is waited for has the key too, the one before no more
    viewer.layers.selection.active = other
    click(findings, "findings_mark_nipple_right")
    viewer.layers.selection.active = layer
    assert [str(key) for key in other.keymap] == []
    next(call for key, call in layer.keymap.items() if str(key) == "Escape")(layer)
    assert findings.active_tool.tool is None
    del qtbot
