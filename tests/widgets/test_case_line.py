"""The line over the picture says whose case it is in any width, whatever else it says."""

import pytest
from qtpy.QtWidgets import QMainWindow

from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.hanging import HangingPlan, HangingStep, PhaseRoles
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.notify import Level
from napari_mamamia.widgets.dock.case_line import CaseLine
from napari_mamamia.widgets.hanging.bar import HangingBar
from napari_mamamia.widgets.viewer.active_tool import MouseTool

PLAN = HangingPlan(tuple(HangingStep), (), PhaseRoles(0, 1, 3))
ELLIPSE = MouseTool("measure", "ellipse", "Ellipse: from corner to corner", "View")
CASE_ID = "ISPY2_100899"


@pytest.fixture
def line(qtbot):
    header, bar = Header(), HangingBar()
    window = QMainWindow()
    for one in (window, header, bar):
        qtbot.addWidget(one)
    made = CaseLine(header, bar)
    window.addToolBar(made)
    bar.walked.emit(PLAN, HangingStep.MIP)
    header.set_case(CASE_ID, "12 / 60")
    header.set_reader("Ana")
    made.settle()
    made.show_tool_name(None)
    made.window_shown, made.header = window, header
    window.show()
    return made


def is_whole(label):
    return label.fontMetrics().horizontalAdvance(label.text()) <= label.contentsRect().width()


def cut(line):
    """Return what on the line is not whole, and what stands over its neighbour or the edge."""
    shown = [one for one in (*line.chips.values(), line.armed) if one.isVisible()]
    shown += [line.header.reader, line.header.keys, line.header.case, line.header.position]
    found = [one.objectName() for one in shown if one.width() < one.minimumSizeHint().width()]
    edge = line._line.parentWidget().width()
    return found + [one.objectName() for one in shown if one.geometry().right() > edge]


@pytest.mark.parametrize(("points", "widths"), [(9, (560, 853, 1280)), (18, (900, 1170))])
def test_the_name_of_the_case_is_whole_whatever_is_in_hand_or_saved(qtbot, line, points, widths):
    """With an ellipse in hand it was "P…6" at text of 150 % on 1280 pixels."""
    line.window_shown.setStyleSheet(f"* {{ font-size: {points}pt; }}")
    header = line.header
    for width in widths:
        line.window_shown.resize(width, 200)
        for tool in (None, ELLIPSE):
            line.show_tool_name(tool)
            for text, short in (("unsaved · strokes kept", "unsaved"), ("saved 12 s ago", "saved")):
                header.set_saved(text, Level.HINT, short)
                qtbot.wait(20)
                assert is_whole(header.case), (width, tool, text)
                said = header.saved._text_for(header.saved.contentsRect().width())
                assert said in (text, short)
                assert header.saved.width() >= header.saved.minimumSizeHint().width()
                assert cut(line) == [], (width, tool, text)
        is_short = line.armed.text() == "● Ellipse"
        assert is_short or line.armed.text() == f"● {ELLIPSE.name}"


def test_the_steps_come_back_when_nothing_is_in_hand(qtbot, line):
    line.window_shown.resize(853, 200)
    line.show_tool_name(ELLIPSE)
    qtbot.wait(20)
    short = [chip.text() for chip in line.chips.values()]
    line.show_tool_name(None)
    line.window_shown.resize(1280, 200)
    qtbot.wait(20)
    assert line.chips[HangingStep.MIP].text() == f"1 {tr('MIP')}"
    assert [chip.text() for chip in line.chips.values()] != short


def test_what_runs_says_nothing_rather_than_one_letter(qtbot, line):
    header = line.header
    line.window_shown.resize(853, 200)
    qtbot.wait(20)
    header.state.setFixedWidth(120)
    header.show_progress("Writing the report of PHANTOM_006")
    assert header.progress_text.text() == ""
    assert "Writing the report" in header.progress_text.toolTip()
    header.state.setFixedWidth(400)
    header.show_progress("Writing the report of PHANTOM_006")
    assert header.progress_text.text().startswith("Writing")
