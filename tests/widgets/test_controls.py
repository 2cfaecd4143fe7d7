import pytest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QTabBar,
    QWidget,
)

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.controls import discard, named
from napari_mamamia.widgets.dock.page_tabs import PAGES

pytestmark = pytest.mark.usefixtures("dressed")

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLineEdit,
    QProgressBar,
    QTabBar,
)


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


def test_every_control_has_a_name_and_a_tooltip(dock):
    found = list(controls(dock))
    assert len(found) > 30
    nameless = [widget for widget in found if not widget.objectName()]
    silent = [widget.objectName() for widget in found if not widget.toolTip()]
    assert nameless == []
    assert silent == []


def test_no_two_controls_have_one_name(dock):
    names = [widget.objectName() for widget in controls(dock)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("page", PAGES)
def test_each_page_has_at_most_one_primary_button(opened, page):
    opened.show_page(page)
    opened.resize(360, 800)
    primary = [
        widget.objectName()
        for widget in opened.pages.shown.findChildren(QAbstractButton)
        if widget.property("primary") and widget.isVisible()
    ]
    assert len(primary) <= 1


@pytest.mark.parametrize("page", PAGES)
def test_no_text_is_cut_off_at_the_width_of_the_dock(qtbot, opened, page):
    opened.show_page(page)
    opened.resize(opened.minimumWidth(), 800)
    qtbot.wait(10)
    cut = [
        (widget.objectName(), widget.width(), widget.sizeHint().width())
        for widget in (*opened.findChildren(QAbstractButton), *opened.findChildren(QLabel))
        if widget.isVisible() and not _wraps(widget) and widget.width() < widget.sizeHint().width()
    ]
    assert cut == []
    assert opened.minimumSizeHint().width() <= opened.minimumWidth()


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
