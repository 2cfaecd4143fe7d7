"""Rows of every list and table of ours are targets: 24 pixels high at least (WCAG 2.2, 2.5.8)."""

import pytest
from qtpy.QtCore import QSignalBlocker, QStringListModel
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QListWidget,
    QTableView,
    QWidget,
)

pytestmark = [pytest.mark.window, pytest.mark.one_window(own=True)]
LEAST = 24
LINES = ["one"]


def is_ours(view):
    """Whether a view is a list or table: open choices come by themselves, no titles of columns."""
    parent = view.parentWidget()
    while parent is not None and not isinstance(parent, QComboBox):
        parent = parent.parentWidget()
    return parent is None and not isinstance(view, QHeaderView)


def row_height(view):
    """Return the height of a row, also of a list that holds none now."""
    view.ensurePolished()
    if isinstance(view, QTableView):
        return view.verticalHeader().defaultSectionSize()
    if isinstance(view, QListWidget):
        view.addItems(LINES)
        height = view.sizeHintForRow(view.count() - 1)
        view.takeItem(view.count() - 1)
        return height
    model = view.model()
    view.setModel(QStringListModel(LINES, view))
    height = view.sizeHintForRow(0)
    view.setModel(model)
    return height


def heights(dock):
    rooms: tuple[QWidget, ...] = dock, dock.results, dock.case_line
    views = [view for room in rooms for view in room.findChildren(QAbstractItemView)]
    return {view.objectName(): row_height(view) for view in views if is_ours(view)}


def test_rows_of_all_lists_and_tables_can_be_hit(docked):
    docked.pages.make_pages()
    found = heights(docked)
    assert len(found) > 18, found
    assert "" not in found
    assert {name: height for name, height in found.items() if height < LEAST} == {}


def choice_heights(dock):
    """Return the lowest line of each open choice, and of one that has none now."""
    found = {}
    rooms: tuple[QWidget, ...] = dock, dock.results, dock.case_line
    for combo in (one for room in rooms for one in room.findChildren(QComboBox)):
        view, is_empty = combo.view(), not combo.count()
        with QSignalBlocker(combo):
            combo.addItems(LINES * is_empty)
            view.ensurePolished()
            found[combo.objectName()] = min(
                view.sizeHintForRow(row) for row in range(combo.count())
            )
            if is_empty:
                combo.clear()
    return found


def test_lines_of_all_open_choices_can_be_hit(docked):
    docked.pages.make_pages()
    found = choice_heights(docked)
    assert len(found) > 30, found
    assert "" not in found
    assert {name: height for name, height in found.items() if height < LEAST} == {}


def test_rows_grow_with_the_text(docked):
    docked.pages.make_pages()
    before = heights(docked)
    for room in (docked, docked.results, docked.case_line):
        rules = room.styleSheet()
        room.setStyleSheet(f"{rules} QAbstractItemView {{ font-size: 18pt; }}")
    try:
        after = heights(docked)
        assert {name for name, height in after.items() if height <= before[name]} == set()
    finally:
        docked._dress_panel()
