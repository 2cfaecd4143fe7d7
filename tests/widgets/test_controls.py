import re
from itertools import pairwise
from pathlib import Path

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,  # noqa: TID251 - what ours is told by
    QPushButton,
    QTabBar,
    QTableWidget,
    QWidget,
)

import napari_mamamia.widgets
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.controls import (
    MOST_LETTERS,
    discard,
    named,
    refresh_accessible_text,
)
from napari_mamamia.widgets.controls.tab_order import ReadingOrder
from napari_mamamia.widgets.dock.steps import PAGES

pytestmark = pytest.mark.usefixtures("dressed")

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLineEdit,
    QProgressBar,
    QTabBar,
)


@pytest.fixture
def whole(dock):
    """The dock with all its pages made."""
    for page in PAGES:
        dock.show_page(page)
    dock.pages.toggle_keys()
    dock.pages.show_import()
    return dock


def controls(dock):
    """Every control that a user can touch; the parts that Qt makes inside of them do not count."""
    for widget in dock.findChildren(object):
        inside = isinstance(widget.parent(), (QComboBox, QLineEdit, QAbstractItemView, QTabBar))
        if isinstance(widget, CONTROLS) and not inside and not _popup_of_a_combo_box(widget):
            yield widget


def _popup_of_a_combo_box(widget):
    parent = widget.parent()
    return (
        parent is not None and "ComboBox" in type(parent).__name__ + parent.metaObject().className()
    )


def test_every_control_has_a_name_and_a_tooltip(whole):
    found = list(controls(whole))
    assert len(found) > 30
    nameless = [widget for widget in found if not widget.objectName()]
    silent = [widget.objectName() for widget in found if not widget.toolTip()]
    assert nameless == []
    assert silent == []


def test_no_two_controls_have_one_name(whole):
    names = [widget.objectName() for widget in controls(whole)]
    assert len(names) == len(set(names))


def test_each_page_has_at_most_one_primary_button_and_no_text_is_cut_off(qtbot, opened):
    """All pages of one dock, at the width that a page may have: their names stand in the error."""
    primary, cut = {}, []
    for page in PAGES:
        opened.show_page(page)
        opened.resize(max(opened.minimumWidth(), opened.pages.width + 16), 800)
        qtbot.wait(10)
        primary[page] = [
            widget.objectName()
            for widget in opened.pages.shown.findChildren(QAbstractButton)
            if widget.property("primary") and widget.isVisible()
        ]
        cut += [
            (page, widget.objectName(), widget.width(), widget.sizeHint().width())
            for widget in (*opened.findChildren(QAbstractButton), *opened.findChildren(QLabel))
            if widget.isVisible()
            and not _wraps(widget)
            and widget.width() < widget.sizeHint().width()
        ]
        assert opened.minimumSizeHint().width() <= opened.minimumWidth(), page
    assert cut == []
    assert {page: names for page, names in primary.items() if len(names) > 1} == {}
    assert any(primary.values())


def test_the_header_has_room_for_three_masks_and_a_name(qtbot, opened):
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    opened.editing.start(Role.PREDICTION)
    opened.resize(opened.minimumWidth(), 800)
    qtbot.wait(10)
    for name in ("header_mask_reference", "header_mask_prediction", "header_mask_refined"):
        chip = opened.findChild(QAbstractButton, name)
        assert chip.width() >= chip.sizeHint().width(), name
    assert opened.header.reader.width() >= opened.header.reader.sizeHint().width()


def test_no_line_of_the_header_is_empty_without_masks(qtbot, dock):
    dock.show()
    qtbot.waitExposed(dock)
    header = dock.header
    lines = [one.mapTo(header, QPoint(0, 0)).y() for one in (header.keys, header.lesion)]
    lines.append(header.reader.mapTo(header, QPoint(0, 0)).y())
    assert lines == sorted(lines)
    room = header.reader.height() + header.layout().spacing()
    assert [later - before > 1.5 * room for before, later in pairwise(lines)] == [False, False]


def _wraps(widget):
    return isinstance(widget, QLabel) and (
        widget.wordWrap() or widget.sizePolicy().horizontalPolicy().name == "Ignored"
    )


def test_both_themes_have_style_rules(dock, viewer):
    viewer.theme = "light"
    light = dock.styleSheet()
    viewer.theme = "dark"
    assert light != dock.styleSheet()
    assert "primary" in light


def test_a_control_that_discards_itself_is_silent_and_found_no_more(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    field = named(QLineEdit(parent), "field", "a name")
    inside = named(QLineEdit(field), "inside", "a part")
    said = []

    def end():
        said.append(field.text())
        discard(field)
        field.editingFinished.emit()

    field.editingFinished.connect(end)
    field.setText("fat")
    field.editingFinished.emit()
    assert said == ["fat"]
    assert parent.findChild(QLineEdit, "field") is None
    assert parent.findChild(QLineEdit, "inside") is None
    inside.destroyed.connect(lambda: said.append("gone"))
    inside.blockSignals(False)
    qtbot.waitUntil(lambda: said == ["fat", "gone"])


SIGNS = set("▾▸▶◀‹›✕×◎☰…")


def test_a_screen_reader_calls_each_control_by_a_short_name_and_describes_it(opened, whole):
    """Of every page, whatever comes to it: words, few, without signs; the tooltip beside."""
    nameless, long, odd, undescribed = [], [], [], []
    for control in controls(whole):
        refresh_accessible_text(control)  # as it is when the keyboard comes to it
        name, own = control.accessibleName(), control.objectName()
        nameless += [own] if sum(letter.isalnum() for letter in name) < 2 else []
        long += [own] if len(name) > MOST_LETTERS else []
        odd += [own] if SIGNS & set(name) else []
        undescribed += [own] if control.accessibleDescription() != control.toolTip() else []
    assert (nameless, long, odd, undescribed) == ([], [], [], [])


def test_a_screen_reader_reads_a_text_as_it_stands(opened, whole):
    """A label that is called by its tooltip would be silent about what it says."""
    texts = [one for one in whole.findChildren(QLabel) if one.objectName() and one.toolTip()]
    assert len(texts) > 20
    assert [one.objectName() for one in texts if one.accessibleName()] == []


def test_names_are_words_on_it_before_it_or_of_it(whole):
    called = {
        "batch_out": "Results folder",
        "batch_bootstrap_text": "Bootstrap",
        "batch_choose_clinical": "Choose a table",
        "header_next": "Opens the next case",
        "batch_start": "Start",
        "leaderboard_cases": "cases",
        "key_next_case": "key for next case",
    }
    names = {one: whole.findChild(QWidget, one).accessibleName() for one in called}
    assert names == called


def test_what_a_screen_reader_says_follows_the_text_and_the_tooltip(qtbot, opened):
    control = QPushButton("▶ Play")
    named(control, "view_trial", "Plays the phases")
    assert (control.accessibleName(), control.accessibleDescription()) == (
        "Play", "Plays the phases",
    )  # fmt: skip
    opened.layout().addWidget(control)
    control.show()
    control.setText("▶ Stop")
    control.setToolTip("Stops the phases")
    opened.focus_ring._follow_focus(None, control)
    assert (control.accessibleName(), control.accessibleDescription()) == (
        "Stop", "Stops the phases",
    )  # fmt: skip


def test_no_control_that_can_be_too_small_is_made_elsewhere():
    rooms = Path(napari_mamamia.widgets.__file__).parent
    made = re.compile(r"\b(QCheckBox|QSlider|QToolButton|QRadioButton)\(")
    texts = {path: path.read_text("utf-8") for path in rooms.rglob("*.py")}
    assert [path.name for path, text in texts.items() if made.search(text)] == []


class Holder(ReadingOrder, QWidget):
    """A widget whose controls were made in another order than they stand in."""


def test_tab_goes_line_by_line_and_leaves_out_what_is_hidden_off_or_in_no_line(qtbot):
    window = QWidget()
    root, after = Holder(window), QPushButton(window)
    root.setGeometry(0, 0, 400, 300)
    places = {
        "third": (10, 100, 60, 120),
        "fourth": (200, 160, 60, 30),
        "first": (10, 10, 60, 30),
        "off": (80, 10, 60, 30),
        "hidden": (150, 10, 60, 30),
        "second": (300, 14, 60, 22),
    }
    controls = {}
    for name, place in places.items():
        controls[name] = QPushButton(root)
        controls[name].setGeometry(*place)
    controls["off"].setEnabled(False)
    after.setGeometry(0, 310, 60, 30)
    qtbot.addWidget(window)
    window.show()
    controls["hidden"].hide()
    window.activateWindow()
    controls["first"].setFocus()
    qtbot.waitUntil(controls["first"].hasFocus)
    for name in ("second", "third", "fourth"):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert controls[name].hasFocus(), name
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert after.hasFocus(), "Tab leaves"
    controls["second"].setFocus()
    qtbot.keyClick(controls["second"], Qt.Key.Key_Backtab)
    assert controls["first"].hasFocus()


def test_tab_is_caught_by_no_table_and_no_text(qtbot):
    window = Holder()
    table = named(QTableWidget(3, 3, window), "table", "A table")
    text = named(QPlainTextEdit(window), "text", "A text")
    last = QPushButton(window)
    for at, widget in enumerate((table, text, last)):
        widget.setGeometry(0, 110 * at, 200, 100)
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    table.setFocus()
    qtbot.waitUntil(table.hasFocus)
    qtbot.keyClick(table, Qt.Key.Key_Tab)
    assert text.hasFocus()
    qtbot.keyClick(text, Qt.Key.Key_Tab)
    assert last.hasFocus()
    assert text.toPlainText() == ""
