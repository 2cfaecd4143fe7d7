"""A message moves nothing: it has a line, and what needs more is laid over until one goes on."""

import pytest
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QLabel

from napari_mamamia.widgets.base.notify import Level

SHORT = "A mask was saved."
LONG = "What was found in the journal of this case, and what became of it. " * 5


@pytest.fixture
def panel(qtbot, dressed, dock):
    dock.resize(340, 690)
    dock.show()
    qtbot.waitExposed(dock)
    return dock


def part(panel, name):
    return panel.findChild(object, name)


def places(panel):
    controls = [one for one in panel.findChildren(QAbstractButton) if one.isVisible()]
    ours = {"header_message_more", "header_message_close"}
    return {
        one.objectName(): one.mapTo(panel, QPoint(0, 0))
        for one in controls
        if one.objectName() not in ours
    }


def is_whole(panel):
    message, sheet = part(panel, "header_message"), part(panel, "header_message_sheet")
    return message.isVisible() and sheet.height() >= message.heightForWidth(message.width())


def test_beside_no_masks_a_message_has_the_whole_line_but_for_the_question(qtbot, panel):
    """In the work list at 1280 pixels *Score all the cases: 3 are scored, …* stood beside none."""
    header, sheet = panel.header, part(panel, "header_message_sheet")
    panel.resize(1280, 690)
    header.lend()
    header.show_image_controls(False)
    header.say(Level.HINT, LONG)
    field = header.reader_name
    for _ in range(2):
        qtbot.waitUntil(lambda: sheet.geometry().right() == header.geometry().right())
        header.ask_reader(None)
        qtbot.waitUntil(field.isVisible)
        qtbot.wait(20)
        line = QRect(field.parentWidget().mapTo(panel, QPoint(0, 0)), field.parentWidget().size())
        assert not sheet.geometry().intersects(line)
        hint = field.fontMetrics().horizontalAdvance(field.placeholderText())
        assert field.width() >= hint + 12, "your name or init…"
        header.set_reader(None)
    header.show_image_controls(True)
    header.take_back()


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("text", [SHORT, LONG])
def test_no_control_moves_as_a_message_comes_and_goes(qtbot, panel, level, text):
    before = places(panel)
    assert len(before) > 8
    panel.header.say(level, text)
    qtbot.wait(20)
    assert places(panel) == before
    assert part(panel, "header_message_sheet").isVisible()
    panel.header.say(Level.HINT, "")
    qtbot.wait(20)
    assert places(panel) == before
    assert not part(panel, "header_message_sheet").isVisible()


def test_no_control_moves_as_a_tool_does_nothing_or_work_runs(qtbot, panel):
    before = places(panel)
    panel.header.set_refusal("The brush paints on slices, and this is a projection.")
    panel.header.say(Level.ERROR, LONG)
    panel.header.show_progress("Predicting 12 cases of a data set with a long name")
    qtbot.wait(20)
    now = places(panel)
    assert {name: now.get(name) for name in before if name != "header_view"} == {
        name: place for name, place in before.items() if name != "header_view"
    }
    assert part(panel, "header_refusal").isVisible()


def test_a_short_message_has_its_line_and_nothing_to_unfold(qtbot, panel):
    panel.header.say(Level.WARNING, SHORT)
    assert is_whole(panel)
    assert not part(panel, "header_message_more").isVisible()


def test_of_a_long_hint_the_first_words_are_seen_and_all_on_demand(qtbot, panel):
    panel.header.say(Level.HINT, LONG)
    words = part(panel, "header_message_line")
    assert words.isVisible()
    assert (words.text(), words.toolTip()) == (LONG, LONG)
    part(panel, "header_message_more").click()
    assert is_whole(panel)
    part(panel, "header_message_more").click()
    assert words.isVisible()
    part(panel, "header_message_close").click()
    assert panel.header.message.text() == ""


@pytest.mark.parametrize("level", [Level.WARNING, Level.ERROR])
def test_a_long_warning_is_seen_whole_until_one_goes_on_elsewhere(qtbot, panel, level):
    panel.header.say(level, LONG)
    assert is_whole(panel)
    place = panel.pages.stack.mapTo(panel, QPoint(5, 600))
    QTest.mouseClick(panel.windowHandle(), Qt.MouseButton.LeftButton, pos=place)
    assert not is_whole(panel)
    assert part(panel, "header_message_line").isVisible()
    panel.header.say(level, LONG)  # another one is seen whole again
    assert is_whole(panel)


@pytest.mark.parametrize("is_line_lent", [False, True])
def test_no_long_message_lies_over_the_steps(qtbot, panel, is_line_lent):
    """A click that was meant for a step met its edge, and nothing happened."""
    if is_line_lent:
        panel.header.lend()
    steps = [name for name in places(panel) if name.startswith("step_")]
    assert len(steps) == 4
    for text in (
        LONG,
        LONG * 12,
        "Two lines of a warning that is hardly longer than its place. " * 2,
    ):
        panel.header.say(Level.WARNING, text)
        qtbot.wait(20)
        sheet = part(panel, "header_message_sheet").geometry()
        for name in steps:
            one = part(panel, name)
            assert not sheet.intersects(QRect(one.mapTo(panel, QPoint(0, 0)), one.size())), name
        assert panel.rect().contains(sheet)
        qtbot.mouseClick(panel.header.message, Qt.MouseButton.LeftButton)
        words = part(panel, "header_message_line")
        qtbot.waitUntil(words.isVisible)
        line = part(panel, "header_message_sheet").geometry()
        assert line.bottom() < sheet.top()


def test_a_line_that_comes_above_the_steps_brings_no_message_over_them(qtbot, panel):
    """Beside napari's own panels the line of the hanging came as its case was shown."""
    panel.header.say(Level.WARNING, LONG)
    above = QLabel("Hanging: your own view")
    above.setFixedHeight(40)
    panel._top.insertWidget(1, above)
    step = part(panel, "step_read")
    qtbot.wait(50)
    sheet = part(panel, "header_message_sheet").geometry()
    place = QRect(step.mapTo(panel, QPoint(0, 0)), step.size())
    assert above.isVisible()
    assert sheet.top() > place.bottom()


def test_a_click_on_a_laid_over_message_folds_it(qtbot, panel):
    panel.header.say(Level.ERROR, LONG)
    qtbot.mouseClick(panel.header.message, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not is_whole(panel))


def test_the_second_of_two_clicks_is_none_on_a_message_that_came_between(qtbot, panel):
    panel.header.say(Level.ERROR, LONG)
    for name in ("header_message_close", "header_message_more", "header_message"):
        qtbot.mouseDClick(part(panel, name), Qt.MouseButton.LeftButton)
        qtbot.wait(20)
        assert panel.header.message.text() == LONG
        assert is_whole(panel), name


def test_the_keyboard_in_what_a_message_covers_folds_it(qtbot, panel):
    panel.header.say(Level.ERROR, LONG)
    panel.activateWindow()
    covered = part(panel, "section_cases")
    assert (
        part(panel, "header_message_sheet")
        .geometry()
        .contains(covered.mapTo(panel, covered.rect().center()))
    )
    covered.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(lambda: not is_whole(panel))


def test_what_has_more_lines_than_the_panel_is_scrolled(qtbot, panel):
    panel.header.say(Level.ERROR, LONG * 12)
    bar = part(panel, "header_message_area").verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    sheet = part(panel, "header_message_sheet")
    assert sheet.geometry().bottom() < panel.height()
