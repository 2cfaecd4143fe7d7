"""Pages that are made when they are first asked for: by whom, and what they know then."""

from pathlib import Path

import pytest
from qtpy.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QTabBar, QWidget

from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND
from napari_mamamia.core.features import find_hook
from napari_mamamia.widgets.dock.dock import MamamiaDock

LATE = ("Batch scoring", "Review", "Report", "Export")
NOT_SECTIONS = ("Import", "Keys")


def list_made(dock):
    """Return which of the late parts there are."""
    made = {name for name in (*LATE, *NOT_SECTIONS) if name in dock._flows}
    return made | ({"Keys"} if "keys_panel" in vars(dock) else set())


def make(dock, name):
    """Make a late part."""
    return dock.keys_panel if name == "Keys" else dock.flow(name)


def describe(page):
    """Return what each control of a page says and how it stands."""
    return [
        (
            one.objectName(),
            one.isVisibleTo(page),
            one.isEnabledTo(page),
            one.toolTip(),
            one.text() if isinstance(one, (QLabel, QLineEdit, QAbstractButton)) else "",
            [one.itemText(k) for k in range(one.count())] if isinstance(one, QComboBox) else (),
            [one.tabText(k) for k in range(one.count())] if isinstance(one, QTabBar) else (),
        )
        for one in page.findChildren(QWidget)
        if one.objectName() and not one.objectName().startswith("qt_")
    ]


@pytest.fixture
def other_dock(qtbot, world):
    """Return a dock on a viewer of its own, with the same services."""

    def make(viewer):
        made = MamamiaDock(viewer, world.services())
        qtbot.addWidget(made)
        return made

    return make


def test_a_page_is_made_when_it_is_first_shown_and_no_other(dock):
    assert list_made(dock) == set()
    assert dock.findChild(QWidget, "export") is None
    dock.show_page("Export")
    assert list_made(dock) == {"Export"}
    page = dock.findChild(QWidget, "export")
    assert page.isVisible()
    dock.show_page("Cases")
    dock.show_page("Export")
    assert dock.pages.shown is page
    dock.pages.toggle_keys()
    dock.pages.show_import()
    assert list_made(dock) == {"Export", *NOT_SECTIONS}
    for name in LATE:
        dock.show_page(name)
        assert dock.pages.shown is dock.flow(name).page


def test_a_page_that_is_made_late_shows_what_one_that_was_there_shows(
    qtbot, dock, world, case, new_mask, other_dock, tmp_path
):
    dock_before = other_dock(type(dock.viewer)())
    for name in (*LATE, *NOT_SECTIONS):
        make(dock_before, name)
    world.predictions = {"A_1": new_mask(case.grid)}
    for one in (dock_before, dock):
        one.open_data_set(Path("data"), "A_1")
        qtbot.waitUntil(lambda one=one: one.session.case is not None and not one.jobs._newest)
        one.session.set_reader("Ben")
        one.session.set_row(one.session.opened, world.row("A_1"))
        one.session.set_dicom_study(tmp_path)
        one.keys.change("smartpaint", "F7")
    assert list_made(dock) == set()
    assert "kinetic" in dock_before.export_page.sets.item(0).text()
    for name in LATE:
        early, late = (describe(one.flow(name).page) for one in (dock_before, dock))
        assert late == early, name
    assert describe(dock.keys_panel) == describe(dock_before.keys_panel)
    assert describe(dock.import_page) == describe(dock_before.import_page)


def test_a_key_of_ones_own_is_named_on_a_page_that_is_made_later(dock):
    dock.keys.change("accept", "F7")
    tips = [one.toolTip() for one in dock.flow("Review").page.findChildren(QWidget)]
    assert any("(key F7)" in tip for tip in tips)
    assert dock.keys_panel.buttons["accept"].text() == "F7"


def test_a_page_that_is_shut_is_made_once_it_is_open(dock):
    dock.session.set_blinding(ALL_HIDDEN)
    dock.show_page("Export")
    assert list_made(dock) == set()
    assert dock.findChild(QLabel, "page_shut").isVisible()
    dock.session.set_blinding(NOT_BLIND)
    assert list_made(dock) == {"Export"}
    assert dock.pages.shown is dock.export_page


def test_what_is_dropped_makes_the_page_that_it_needs(dock, tmp_path):
    asked = []
    find_hook("open_study")(dock, tmp_path)
    assert list_made(dock) == {"Review"}
    assert dock.page == "Review"
    dock.dropping.dicom_dropped.emit(tmp_path)
    assert list_made(dock) == {"Review", "Import"}
    assert dock.pages.is_importing
    dock.import_flow.left.connect(lambda: asked.append("left"))
    dock.import_page.closed.emit()
    assert asked == ["left"]


def test_a_window_closes_with_its_pages_made_or_not(dock, other_dock):
    assert dock.close_down()
    assert list_made(dock) == set()
    made = other_dock(type(dock.viewer)())
    for name in (*LATE, *NOT_SECTIONS):
        make(made, name)
    assert made.close_down()


def test_a_dock_grows_for_a_page_that_needs_more_and_never_shrinks(dock, monkeypatch):
    taken = []
    monkeypatch.setattr(dock.docking, "take_width", lambda: taken.append(True))
    dock.pages.filled.emit(100)
    assert taken == []
    dock.pages.filled.emit(dock.width() + 1)
    assert taken == [True]
