"""At any size of text the dock's title is whole, a long message wraps, and no panel goes sideways.

A question for the reader's name moves nothing that the pointer may aim at.
"""

import numpy as np
import pytest
from program import wait_until
from test_screens import PAGES, faults

pytestmark = pytest.mark.door

START = """
import napari
from qtpy.QtWidgets import QLabel, QScrollArea
from napari.settings import get_settings
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
"""
LONG = (
    "The journal /home/somebody/a_folder_with_a_very_long_name/anotherwithoutanysignwheretobreakit"
    "0123456789abcdef0123456789abcdef/DUKE_041.journal cannot be used (written for another case): "
    "it was set aside, nothing was lost"
)
SAY = START + f"panel.header.say(Level.WARNING, {LONG!r})"
HUSH = START + "panel.header.say(Level.HINT, '')"
FONT = START + "get_settings().appearance.font_size = {0}"
SIDEWAYS = (
    START
    + """
areas = [one for one in panel.findChildren(QScrollArea) if one.isVisible()]
inner = [one for one in panel.findChildren(QLabel, "header_message") if one.isVisible()]
result = [
    one.objectName() for one in areas if one.horizontalScrollBar().maximum() > 0
] + [one.objectName() for one in inner if QLabel.minimumSizeHint(one).width() > one.width()]
if panel.header.minimumSizeHint().width() > panel.width():
    result.append("header")
"""
)
TITLE = (
    START
    + """
bar = panel.docking.home.titleBarWidget()
title, corner = bar.title, bar.title.mapToGlobal(bar.title.rect().topLeft())
place = title.mapTo(bar, title.rect().topLeft()).y()
result = {
    "rect": [corner.x(), corner.y(), title.width(), title.height()],
    "whole": place >= 0 and place + title.height() <= bar.height(),
    "needs": title.fontMetrics().height(),
    "covered": panel.y() < bar.geometry().bottom(),
}
"""
)
SLIDERS = (
    START
    + """
from napari_mamamia.widgets.adapter.adapter import main_view
result = []
for one in main_view(panel.viewer).dims.slider_widgets:
    for field in (one.axis_label, one.curslice_label) if one.isVisible() else ():
        metrics = field.fontMetrics()
        whole = field.width() >= metrics.horizontalAdvance(field.text()) + 2
        high = field.height() >= metrics.height() - 1
        result.append([field.font().pointSize(), whole and high])
"""
)
COPIED = (
    START
    + """
from qtpy.QtGui import QGuiApplication
message = panel.header.message
message.setSelection(0, len(QLabel.text(message)))
message._copy_selected()
result = [message.text(), QGuiApplication.clipboard().text(), message.accessibleName(),
          message.toolTip().removeprefix("<qt>").removesuffix("</qt>")]
"""
)
ROWS = (
    START
    + """
table = panel.cases_page.table
result = table.viewport().height() / table.verticalHeader().defaultSectionSize()
"""
)
LEAST_ROWS = {9: 12, 18: 3}
"""Of the work list at 1280 x 720, for each size of text."""


def ask(program, code):
    return program.ask("evaluate", code=code)


def title_ink(program):
    """Return the rows of the title's place in which something is written, as the screen shows."""
    x, y, width, height = ask(program, TITLE)["rect"]
    picture = program.screen.picture()[y - 2 : y + height + 2, x : x + width].astype(int)
    return np.flatnonzero(np.ptp(picture.max(axis=2), axis=1) > 60)


def look(program, points):
    ask(program, FONT.format(points))
    seen = lambda: ask(program, TITLE)  # noqa: E731
    wait_until(lambda: seen()["rect"][3] >= seen()["needs"] and seen()["whole"], "a title", 10)
    assert not seen()["covered"]
    capital = 0.6 * points * 96 / 72
    wait_until(lambda: len(title_ink(program)) >= capital, f"{points} points, whole letters", 5)
    sized = [[points, True]] * 4
    wait_until(lambda: ask(program, SLIDERS) == sized, f"{points} points beside the sliders", 5)
    ask(program, SAY)
    wait_until(lambda: not ask(program, SIDEWAYS), f"nothing goes sideways, {points} points", 5)
    assert not [line for line in faults(program) if line.startswith("header_message")]


def wait_for_case(program, case_id="A_1"):
    program.wait_for_text(case_id)
    program.widget("step_bar")
    is_loaded = "result = panel.session.case is not None and panel.session.case.is_loaded"
    wait_until(lambda: ask(program, START + is_loaded), "its phases")


def test_text_is_whole_at_200_percent_and_no_message_moves_what_is_below_the_pointer(
    start, small_data_set
):
    """One started program by day; at night all sizes, and a program for each promise."""
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    look(program, 18)
    assert ask(program, COPIED) == [LONG] * 4
    ask(program, HUSH)
    keep_places_below_a_message(program, 18)
    look(program, 9)


@pytest.mark.night
def test_title_and_message_are_whole_from_100_to_200_percent(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    for points in (9, 11, 14, 18, 9):
        look(program, points)
    assert ask(program, COPIED) == [LONG] * 4


@pytest.mark.night
def test_no_page_goes_sideways_at_any_size_of_text(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    for points in (9, 12, 14, 18):
        look(program, points)
        for page in PAGES:
            program.turn_to(page)
            found = wait_until(lambda: (ask(program, SIDEWAYS),), page)
            assert found == ([],), f"{page}, {points} points"


@pytest.mark.parametrize("points", [18, pytest.param(9, marks=pytest.mark.night)])
def test_the_question_for_a_name_moves_nothing_below_the_pointer(start, small_data_set, points):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    ask(program, FONT.format(points))
    program.turn_to("Refine")
    names = ("step_mask", "section_refine", "refine_from_reference")
    before = [program.wait_rect(name) for name in names]
    x, y = program.widget("refine_from_reference")["centre"]
    program.screen.click(x, y, times=2)
    program.widget("header_reader_name")
    assert [program.wait_rect(name) for name in names] == before
    program.screen.xdotool("type", "Ana")
    program.screen.key("Return")
    wait_until(lambda: ask(program, START + "result = panel.editing.live is not None"), "a mask")
    assert program.wait_rect("step_mask") == before[0]
    # the work list has no masks to show, and keeps the place for the question and for a message
    program.turn_to("Cases")
    names = ("section_cases", "cases_table", "cases_open")
    before = [program.wait_rect(name) for name in names]
    assert ask(program, ROWS) >= LEAST_ROWS[points]
    ask(program, SAY)
    program.click("header_reader")
    program.widget("header_reader_name")
    program.widget("header_message_line")
    assert [program.wait_rect(name) for name in names] == before
    assert not [line for line in faults(program) if line.startswith("header_")]
    ask(program, HUSH)
    wait_until(lambda: not program.widgets(name="header_message_line"), "no message")
    assert [program.wait_rect(name) for name in names] == before


@pytest.mark.night
@pytest.mark.parametrize("points", [18, 9])
def test_no_message_moves_what_is_below_the_pointer(start, small_data_set, points):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1280, 720))
    wait_for_case(program)
    keep_places_below_a_message(program, points)


def keep_places_below_a_message(program, points):
    ask(program, FONT.format(points))
    program.turn_to("Refine")
    names = ("step_mask", "section_refine", "refine_from_reference")
    before = [program.wait_rect(name) for name in names]
    ask(program, SAY)
    program.widget("header_message")
    assert [program.wait_rect(name) for name in names] == before
    program.screen.click(*program.widget("refine_from_reference")["centre"])
    program.widget("header_message_line")  # it gives way to who goes on
    assert [program.wait_rect(name) for name in names] == before
    assert not [line for line in faults(program) if line.startswith("header_message")]
    program.click("header_message_more")
    program.widget("header_message")
    program.click("header_message_close")
    wait_until(lambda: not program.widgets(name="header_message_close"), "no message")
    assert [program.wait_rect(name) for name in names] == before


@pytest.mark.night
def test_a_page_is_whole_after_the_window_grew(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1920, 1080))
    wait_for_case(program)
    ask(program, FONT.format(14))
    for width, height in ((1400, 900), (1920, 1080)):
        ask(program, START + f"panel.window().setGeometry(0, 0, {width}, {height})")
        for page in ("Batch", "Export"):
            program.turn_to(page)
            wait_until(lambda: not faults(program), f"{page}, {width} x {height}", 5)


@pytest.mark.night
def test_results_next_to_the_work_list_use_what_it_leaves_of_the_window(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1", size=(1920, 1080))
    wait_for_case(program)
    ask(program, START + "panel.window().setGeometry(0, 0, 1280, 720)")
    program.turn_to("Batch")
    program.click("batch_leaderboard")
    program.widget("results_panel")
    ask(program, START + "panel.window().setGeometry(0, 0, 1920, 1080)")
    wide = lambda: program.widget("results_panel")["rect"][2] > 1920 / 2  # noqa: E731
    wait_until(wide, "results in half of the window", 10)
    ask(program, START + "panel.window().setGeometry(0, 0, 1280, 720)")
    ask(program, FONT.format(14))
    wait_until(lambda: not faults(program), "no cut text next to the work list", 10)
    wait_until(lambda: not ask(program, SIDEWAYS), "nothing goes sideways", 5)
