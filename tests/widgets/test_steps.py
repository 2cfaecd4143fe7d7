"""The three steps and the work list: which section is open, what leads on, what a reader counts."""

from pathlib import Path

from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QSlider,
    QWidget,
)

from napari_mamamia.core import plugins
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.dock.steps import PAGES, SECTIONS, STEPS
from napari_mamamia.widgets.viewer.active_tool import MouseTool

CONTROLS = QAbstractButton, QAbstractItemView, QComboBox, QLineEdit, QAbstractSpinBox, QSlider
MOST = 14
"""Beside titles of sections."""
NEXT = {"Report": "report_start", "Export": "export_start"}
"""What those pages ask for."""


def click(dock, name):
    control = dock.findChild(QAbstractButton, name)
    assert control.isVisible(), name
    control.click()


def is_shown(dock, name):
    return dock.findChild(QWidget, name).isVisible()


def list_controls(dock):
    """Return the controls that are seen in the step, its titles and the way on among them."""
    inside = QComboBox, QAbstractSpinBox, QAbstractItemView, QLineEdit
    return [
        one.objectName()
        for one in dock.pages.stack.currentWidget().findChildren(QWidget)
        if isinstance(one, CONTROLS)
        and one.isVisible()
        and one.objectName()
        and not isinstance(one.parent(), inside)
    ]


def test_every_page_of_the_menu_is_a_section_of_one_step(dock):
    assert len(SECTIONS) == len(set(SECTIONS))
    assert set(SECTIONS) - set(PAGES) == {"View"}
    for section in SECTIONS:
        dock.show_page(section)
        assert dock.page == section
        assert dock.pages._panel_of(section).areas[section].isVisible()


def test_import_is_told_once_and_what_comes_after_it_too(qtbot, dock):
    with qtbot.waitSignal(dock.pages.turned) as told:
        dock.pages.show_import()
    assert told.args == ["Cases"]
    with qtbot.waitSignal(dock.pages.turned):
        dock.show_page("Cases")
    assert not dock.pages.is_importing


def test_a_case_leads_from_the_work_list_to_read_and_later_to_the_step_before(qtbot, opened):
    assert (opened.pages.step, opened.page) == ("Read", "View")
    click(opened, "step_mask")
    click(opened, "step_work_list")
    opened.cases_page.case_chosen.emit("A_2")
    qtbot.waitUntil(lambda: opened.pages.step == "Mask")


def test_the_way_on_goes_through_the_steps_to_the_next_case(qtbot, opened):
    first = opened.session.case_id
    click(opened, "step_next_mask")
    assert opened.pages.step == "Mask"
    click(opened, "step_next_check")
    assert opened.pages.step == "Check & export"
    click(opened, "step_next_case")
    qtbot.waitUntil(lambda: opened.session.case_id != first)


def test_without_a_case_nothing_leads_on_and_the_section_says_what_is_missing(dock):
    for step in STEPS:
        dock.pages.show_step(step.name)
        assert not [name for name in list_controls(dock) if name.startswith("step_next")]
    assert is_shown(dock, "score_missing")
    click(dock, "score_to_cases")
    assert dock.page == "Cases"


def test_the_way_on_says_its_key_and_follows_a_changed_one(opened):
    assert opened.findChild(QAbstractButton, "step_next_mask").text() == "Next step: Mask   F3"
    opened.pages.set_keys(())
    assert opened.findChild(QAbstractButton, "step_next_mask").text() == "Next step: Mask"


def test_mask_begins_with_the_mask_that_there_is(qtbot, opened):
    opened.pages.show_step("Mask")
    assert opened.page == "Predict"
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    assert opened.page == "Predict", "nothing turns the page under the reader's hand"
    opened.pages.show_step("Read")
    opened.session.masks_changed.emit()
    opened.pages.show_step("Mask")
    assert opened.page == "Refine"


def test_the_brush_is_put_down_outside_mask(opened):
    opened.active_tool.turn_on(MouseTool("painting", "sphere", "Sphere", "Refine"))
    assert opened.pages.step == "Mask"
    assert opened.active_tool.tool is not None
    opened.pages.show_step("Read")
    assert opened.active_tool.tool is None


def test_the_strip_view_has_one_place_at_a_time(opened):
    strip = opened.view_panel
    opened.show_page("View")
    assert strip.isVisible()
    assert not opened.header.view.isEnabled()
    opened.show_page("Refine")
    assert not strip.isVisible()
    opened.header.view.click()
    assert strip.isVisible()
    assert strip.parent() is opened
    opened.show_page("Kinetics")
    assert strip.isVisible()
    opened.header.view.click()
    opened.show_page("View")
    assert strip.isVisible()
    assert strip.parent() is opened.pages.view_home


def test_a_page_that_is_shut_says_so_below_its_title_and_the_others_are_one_click_away(dock):
    dock.show_page("Score")
    dock.pages.shut({"Score": "Hidden in this reading."})
    assert is_shown(dock, "page_shut")
    click(dock, "section_export")
    assert not is_shown(dock, "page_shut")
    click(dock, "section_score")
    assert is_shown(dock, "page_shut")
    dock.pages.shut({})
    assert dock.pages.shown is dock.score_page
    assert dock.score_page.isVisible()


def test_no_step_shows_more_controls_than_a_reader_takes_in(qtbot, opened):
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    opened.editing.start(Role.PREDICTION)
    qtbot.waitUntil(lambda: opened.editing.live is not None)
    shown = {}
    for section in [name for step in STEPS for name in step.sections]:
        opened.show_page(section)
        names = list_controls(opened)
        shown[section] = [name for name in names if not name.startswith("section_")]
    assert all(shown.values())
    assert {section: names for section, names in shown.items() if len(names) > MOST} == {}


def list_unseen(dock):
    """Return the primary buttons that are not whole in sight."""
    return [
        one.objectName()
        for one in dock.findChildren(QAbstractButton)
        if one.property("primary") and one.isVisible()
        if one.visibleRegion().boundingRect().size() != one.size()
    ]


def test_what_comes_next_is_seen_in_a_low_window_without_scrolling(
    qtbot, dock, world, new_mask, case
):
    world.predictions["A_1"] = new_mask(case.grid)  # or nothing could be exported
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    opened = dock
    opened.resize(opened.width(), 480)  # 100 less than in napari's own window
    for section in SECTIONS:
        opened.show_page(section)
        qtbot.wait(1)
        assert not list_unseen(opened), section
    for page, boxes in (
        ("Report", ("report_dicom", "report_identified")),
        ("Export", ("export_format_dicom_seg", "export_format_nnunet")),
    ):
        opened.show_page(page)
        for box in boxes:
            opened.findChild(QAbstractButton, box).setChecked(True)
        qtbot.wait(50)
        assert is_shown(opened, NEXT[page])
        assert not list_unseen(opened), f"{page} with all that can be asked"


def test_a_form_with_room_to_spare_does_not_scroll(qtbot, opened):
    opened.resize(opened.width(), 1000)
    for page in ("Export", "Report"):
        opened.show_page(page)
        qtbot.wait(50)
        form = opened.findChild(QScrollArea, f"{page.lower()}_form")
        assert form.verticalScrollBar().maximum() == 0, page


def test_the_panel_shows_the_plug_ins_that_were_left_out(qtbot, dock, monkeypatch):
    problem = plugins.Problem("napari_mamamia.maps", "mine", "my-package", "it is broken")
    monkeypatch.setattr(plugins, "_problems", [problem])
    messages = []
    dock.notifier.said.connect(lambda level, text: messages.append((level, text)))
    dock.fill_step_by_step()
    qtbot.waitUntil(lambda: (Level.WARNING, problem.text) in messages)


def test_a_step_opens_on_a_section_that_is_not_locked(opened):
    opened.show_page("Predict")
    opened.show_page("Cases")
    opened.pages.shut({"Predict": "Blind: model is hidden in this reading."})
    opened.pages.show_step("Mask")
    assert opened.page == "Refine"


def test_the_rows_above_the_next_step_stay_while_no_case_is_open(opened):
    for control in opened.pages._next_buttons:
        assert control.sizePolicy().retainSizeWhenHidden()
