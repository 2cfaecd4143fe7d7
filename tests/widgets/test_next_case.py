"""State of one case in the next: a window that did everything to A_1 shows B_1 as a new one does.

The whole window is compared: text, value, choice, enabled and visible of every named control, the
layers with their voxels, and the texts on the image. New state of a page is compared without a
line here, as long as an action of `ACTIONS` changes it.
"""

from pathlib import Path

import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QToolButton,
    QWidget,
)
from tests.widgets.conftest import fake_kinetics
from tests.widgets.test_findings_page import describe_mass
from tests.widgets.test_measuring import RULER, DrawingMouse, draw
from tests.widgets.test_motion import registered
from tests.widgets.test_painting import Mouse

from napari_mamamia.core.box import Box
from napari_mamamia.kinetics.map_kinds import MapKind
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.segmentation.model.segmenter import BoxPrompt
from napari_mamamia.widgets.base.layers import Role, array_of, tag_of
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.refine.state import PaintTool

PAGES = ("View", "Findings", "Kinetics", "Predict", "Refine", "Score", "Report")
EDITED = "Refine"
OF_NO_CASE = ("qt_", "header_message", "report_out")


def find(dock, name):
    widget = dock.findChild(QWidget, name)
    assert widget is not None, name
    return widget


def settle(qtbot, dock):
    """Wait until no job runs and no delay is left; delays under a second end at once."""

    def is_settled():
        due = [timer for timer in dock.findChildren(QTimer) if timer.isActive()]
        due = [timer for timer in due if timer.isSingleShot() and timer.interval() < 1000]
        for timer in due:
            if timer.interval():
                timer.start(0)
        return not due and not dock.jobs._workers and not dock.planes.is_building

    for _ in range(2):
        qtbot.waitUntil(is_settled)
        qtbot.wait(5)


def value_of(widget):
    if isinstance(widget, QLineEdit | QLabel):
        return widget.text()
    if isinstance(widget, QComboBox):
        return widget.currentText(), [widget.itemText(k) for k in range(widget.count())]
    if isinstance(widget, QAbstractButton):
        return widget.text(), widget.isChecked()
    if isinstance(widget, QAbstractSlider):
        return widget.value(), widget.minimum(), widget.maximum()
    if isinstance(widget, QAbstractItemView) and widget.model() is not None:
        model = widget.model()
        return [model.index(row, 0).data() for row in range(model.rowCount())]
    return None


def show_curves(dock):
    """Show the curves; without a viewer window their panel is a window of its own."""
    dock.results.show()
    dock.kinetics.show_curves()


def controls_of(qtbot, dock):
    """Return the state of every visible control with a name, by page and name."""
    states = {}
    show_curves(dock)
    for page in PAGES:
        dock.show_page(page)
        if page == EDITED:
            find(dock, "refine_from_reference").click()
            qtbot.waitUntil(lambda: dock.measure.images is not None)
        for line in dock.findChildren(QToolButton):
            if line.arrowType() == Qt.ArrowType.RightArrow:
                line.click()
        settle(qtbot, dock)
        for widget in dock.findChildren(QWidget):
            name = widget.objectName()
            if name and widget.isVisible() and not name.startswith(OF_NO_CASE):
                state = value_of(widget), widget.isEnabled(), widget.property("level")
                states.setdefault((page, name), []).append(state)
    return states


def picture_of(dock):
    """Return the layers with their voxels, and the texts on the image."""
    layers = []
    for layer in dock.viewer.layers:
        tag = tag_of(layer)
        array = array_of(layer) if tag is not None else layer.data
        layers.append((layer.name, layer.visible, layer.opacity, np.asarray(array).copy()))
    texts = {
        n: (o.text, o.visible) for n, o in dock.viewer.canvas.overlays.items() if hasattr(o, "text")
    }
    return layers, texts


def state_of(qtbot, dock):
    return controls_of(qtbot, dock), picture_of(dock)


def open_case(qtbot, dock, case_id):
    dock.open_data_set(Path("data"), case_id)
    qtbot.waitUntil(lambda: dock.session.case_id == case_id and dock.session.case.is_loaded)
    settle(qtbot, dock)


# ------------------------------------------------------------------------- actions


def predict(qtbot, dock):
    dock.show_page("Predict")
    dock.predict()
    qtbot.waitUntil(lambda: dock.session.mask(Role.PREDICTION) is not None)
    dock.findChild(QListWidget, "predict_candidates").setCurrentRow(1)


def refine(qtbot, dock):
    dock.show_page("Refine")
    find(dock, "refine_from_reference").click()
    qtbot.waitUntil(lambda: dock.measure.images is not None)
    mask = np.ones((1, 2, 2), bool)
    for z in (0, 4, 5):
        dock.editing.mask.apply("write", Box((z, 1, 1), (z + 1, 3, 3)), mask)
    dock.editing.mask.undo()
    dock.growing.grow()
    qtbot.waitUntil(lambda: not dock.growing.is_busy and dock.growing.note != "")
    dock.refine_flow.show_changes(True)
    settle(qtbot, dock)


def refine_marks(qtbot, dock):
    dock.show_page("Refine")
    dock.refine_page.from_nothing.click()
    qtbot.waitUntil(lambda: dock.measure.images is not None)
    dock.painting.set_tool(PaintTool.SMARTPAINT)
    Mouse(dock).stroke((2, 9, 12), (3, 9, 13))
    qtbot.waitUntil(lambda: not dock.editing.mask.strokes.is_settling)
    dock.painting.set_tool(PaintTool.OUTLINE)
    Mouse(dock).stroke((2, 7, 9), (2, 7, 16), (2, 12, 16), (2, 12, 9))
    dock.refine_flow.show_marks(True)
    settle(qtbot, dock)


def kinetics(qtbot, dock):
    dock.show_page("Kinetics")
    settle(qtbot, dock)
    page = dock.kinetics_page
    page.maps.setCurrentIndex(page.maps.findData(MapKind.PE))
    for where in ("box", "omit"):
        find(dock, f"kinetics_ftv_{where}").click()
        dock.kinetics.ftv_box.set_mode("")
        dock.kinetics.ftv_box.given.emit(BoxPrompt(Box((0, 0, 0), (3, 20, 12))))
    page.times.times_typed.emit("0, 60, 120")
    page.times.timing_chosen.emit(Timing.MANUAL, "1, 2")
    show_curves(dock)
    settle(qtbot, dock)
    assert dock.kinetics.map.shown is not None
    dock.kinetics.curves.pin("mask")
    assert dock.kinetics.curves.pinned


def map_begun(qtbot, dock):
    dock.show_page("Kinetics")
    settle(qtbot, dock)
    dock.kinetics_page.maps.setCurrentIndex(1)


def motion(qtbot, dock):
    fake_kinetics(dock.kinetics.motion, register=lambda case, mask, settings: registered(case))
    dock.show_page("Kinetics")
    find(dock, "motion_register").click()
    qtbot.waitUntil(lambda: dock.kinetics.motion.found is not None)
    find(dock, "motion_use").click()


def score(qtbot, dock):
    dock.show_page("Score")
    dock.score_page.label_chosen.emit(1.0)
    dock.reviewing.turn_on()
    settle(qtbot, dock)
    dock.reviewing.turn_off()


def findings(qtbot, dock):
    dock.show_page("Findings")
    qtbot.waitUntil(lambda: bool(dock.kinetics.findings._facts.lesions), timeout=8000)
    describe_mass(dock)


def measure(qtbot, dock):
    dock.show_page("View")
    mouse = DrawingMouse(dock)
    draw(dock, mouse, RULER, (2, 4, 3), (2, 10, 9))
    draw(dock, mouse, RULER, (3, 4, 3), (3, 10, 9))
    dock.measuring.record.remove(dock.measuring.record.items[0].key)


def measuring(_qtbot, dock):
    dock.show_page("View")
    dock.measuring.use(RULER)


def messages(_qtbot, dock):
    dock.report_page.show_result("A report of A_1 was written", None)
    dock.kinetics.ftv_live.seg_failed.emit("this SEG is of another exam")


def view(_qtbot, dock):
    dock.show_page("View")
    dock.scene.view.go_to((4, 2, 3))
    dock.scene.go_to_phase(2)


ACTIONS = (
    predict,
    refine,
    refine_marks,
    kinetics,
    map_begun,
    motion,
    score,
    findings,
    measure,
    measuring,
    messages,
    view,
)


# ------------------------------------------------------------------------ comparison


_EXPECTED = []


@pytest.fixture
def expected(qtbot, world):
    """The state of a second window, which opened B_1 only; it is the same for all tests."""
    if not _EXPECTED:
        dock = MamamiaDock(ViewerModel(), world.services())
        qtbot.addWidget(dock)
        dock.resize(360, 900)
        dock.show()
        open_case(qtbot, dock, "B_1")
        _EXPECTED.append(state_of(qtbot, dock))
        dock.close_down()
    return _EXPECTED[0]


@pytest.mark.parametrize("act", ACTIONS, ids=lambda act: act.__name__)
def test_the_next_case_shows_nothing_of_the_previous_one(qtbot, opened, expected, act):
    act(qtbot, opened)
    open_case(qtbot, opened, "B_1")
    controls, (layers, texts) = state_of(qtbot, opened)
    expected_controls, (expected_layers, expected_texts) = expected
    keys = controls.keys() | expected_controls.keys()
    differing = {k: (controls.get(k), expected_controls.get(k)) for k in keys}
    assert {k: pair for k, pair in differing.items() if pair[0] != pair[1]} == {}
    assert texts == expected_texts
    assert [layer[:3] for layer in layers] == [layer[:3] for layer in expected_layers]
    for layer, same in zip(layers, expected_layers, strict=True):
        np.testing.assert_array_equal(layer[3], same[3], err_msg=layer[0])
