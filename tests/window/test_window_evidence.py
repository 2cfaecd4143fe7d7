"""A reader's stories with SmartPaint strokes in a real window, with the mouse, at 1400 x 900.

Phantoms with their truth: where a reader presses is where mask and truth differ most.
"""

from dataclasses import replace

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget
from scipy.ndimage import distance_transform_edt
from test_window_refine import drag, native_of, pixel_of

from napari_mamamia.core.edits import Action
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.phantom import PhantomMix, write_data_set
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool

pytestmark = [pytest.mark.window, pytest.mark.one_window]
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two cases: a mass, and a tumour with a rim."""
    root = tmp_path_factory.mktemp("mixed") / "data"
    return write_data_set(root, 2, seed=2026, shape=(32, 120, 120))


@pytest.fixture(scope="module")
def sagittal(tmp_path_factory):
    """An exam of one breast in sagittal slices of 4 mm."""
    root = tmp_path_factory.mktemp("sagittal") / "data"
    return write_data_set(root, 1, seed=2026, mix=PhantomMix.ONE_BREAST)


def begin(qtbot, panel, root, case_id):
    """Open a case as Ana and make her an empty mask, at the middle of the tumour."""
    panel.session.set_reader("Ana")
    panel.header.set_reader("Ana")
    panel.open_data_set(root, case_id)
    wait_open(qtbot, panel, case_id)
    panel.show_page("Refine")
    panel.editing.start(None)
    qtbot.waitUntil(lambda: panel.measure.images is not None)
    truth = panel.session.mask(Role.REFERENCE).buffer > 0
    middle = np.round(np.argwhere(truth).mean(axis=0))
    panel.scene.view.go_to(tuple(int(v) for v in middle), centre=True)
    panel.viewer.scene.camera.zoom *= 1.8
    panel.scene.view.go_to(tuple(int(v) for v in middle), centre=True)
    qtbot.wait(50)
    native_of(panel).setFocus()
    return truth, tuple(middle.tolist())


def dice(panel, truth, label=1):
    mask = panel.editing.live.labels == label
    return 2 * np.count_nonzero(mask & truth) / (np.count_nonzero(mask) + np.count_nonzero(truth))


def settle(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.editing.mask.strokes.is_settling)
    qtbot.wait(20)


def outline_of(panel, truth, middle):
    """Return voxels on an ellipse round the tumour in the slice on screen."""
    axis = panel.scene.view.upright_axis
    places = np.argwhere(truth.take(round(middle[axis]), axis=axis))
    centre, half = places.mean(axis=0), np.ptp(places, axis=0) / 2 + 0.5
    turns = np.linspace(0, 2 * np.pi, 25)
    rows, columns = centre[0] + half[0] * np.sin(turns), centre[1] + half[1] * np.cos(turns)
    return [
        tuple(np.insert((row, column), axis, middle[axis]))
        for row, column in zip(rows, columns, strict=True)
    ]


def correct(qtbot, panel, truth):
    """Press where mask and truth differ most; return which button, and what the page says of it."""
    mask = panel.editing.live.labels == 1
    depth = distance_transform_edt(mask != truth, sampling=panel.session.case.grid.spacing_mm)
    place = np.unravel_index(depth.argmax(), depth.shape)
    panel.scene.view.go_to(tuple(int(v) for v in place), centre=False)
    qtbot.wait(30)
    radius_mm = max(2.0, round(1.43 * float(depth.max()) * 2) / 2)
    panel.painting.set_brush(replace(panel.painting.state.brush, radius_mm=radius_mm))
    button = LEFT if truth[place] else RIGHT
    drag(qtbot, panel, [tuple(map(float, place))], button)
    settle(qtbot, panel)
    return button, panel.findChild(QWidget, "refine_stroke").text()


def test_outline_grow_correct_accept(qtbot, window, docked, mixed, picture):
    truth, middle = begin(qtbot, docked, mixed, "PHANTOM_001")
    native, live = native_of(docked), docked.editing.live
    says = docked.refine_page.tools.next_step
    assert "press on the tumour" in says.text()
    QTest.keyClick(native, Qt.Key.Key_O)
    drag(qtbot, docked, outline_of(docked, truth, middle))
    assert "grow the outline" in says.text()
    picture(window, "80_outlined")
    QTest.keyClick(native, Qt.Key.Key_R)
    qtbot.waitUntil(lambda: live.position == 2)
    grown = dice(docked, truth)
    assert grown > 0.7
    QTest.keyClick(native, Qt.Key.Key_Q)
    for _ in range(2):
        button, said = correct(qtbot, docked, truth)
        assert said.startswith("+" if button == LEFT else "−"), said
    assert dice(docked, truth) > grown - 0.01
    picture(window, "81_corrected")
    painted = live.labels.copy()
    path = docked.session.workspace.refined("Ana", "PHANTOM_001")
    QTest.keyClick(native, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    wait_open(qtbot, docked, "PHANTOM_002")
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)


def set_circle(panel, truth):
    """Make the circle a little larger than the tumour, as the page says."""
    depth = distance_transform_edt(truth, sampling=panel.session.case.grid.spacing_mm).max()
    radius_mm = round(1.43 * float(depth) * 2) / 2
    panel.painting.set_brush(replace(panel.painting.state.brush, radius_mm=radius_mm))


@pytest.mark.night
def test_a_tumour_with_a_rim_from_one_press_then_what_is_too_much(
    qtbot, window, docked, mixed, picture
):
    """A press in the dark core with a circle larger than the tumour: the core belongs to it."""
    truth, middle = begin(qtbot, docked, mixed, "PHANTOM_002")
    native, live = native_of(docked), docked.editing.live
    QTest.keyClick(native, Qt.Key.Key_Q)
    set_circle(docked, truth)
    QTest.mouseMove(native, pixel_of(docked, middle))
    QTest.mousePress(native, LEFT, pos=pixel_of(docked, middle))
    qtbot.waitUntil(lambda: not docked.marks.is_empty)
    picture(window, "82_rim_preview")
    assert live.position == 0
    assert not live.labels.any()
    QTest.mouseRelease(native, LEFT, pos=pixel_of(docked, middle))
    settle(qtbot, docked)
    first = dice(docked, truth)
    assert first > 0.6
    assert live.labels[tuple(int(v) for v in middle)] == 1
    for _ in range(3):
        correct(qtbot, docked, truth)
    assert dice(docked, truth) >= first - 0.01
    picture(window, "83_rim")
    # while the right button is down, cursor and picture say so
    QTest.mousePress(native, RIGHT, pos=pixel_of(docked, middle))
    assert native.findChild(QWidget, "brush_text").text().startswith("− erase")
    assert docked.painting.pressed.brush.action is Action.ERASE
    picture(window, "84_erasing")
    steps, before = live.position, live.labels.copy()
    QTest.keyClick(native, Qt.Key.Key_Escape)
    QTest.mouseRelease(native, RIGHT, pos=pixel_of(docked, middle))
    settle(qtbot, docked)
    assert live.position == steps
    np.testing.assert_array_equal(live.labels, before)


@pytest.mark.night  # by day tests/widgets/test_refine_page.py, test_strokes.py
def test_two_lesions_each_with_its_own_strokes(qtbot, window, docked, mixed, picture, control):
    truth, middle = begin(qtbot, docked, mixed, "PHANTOM_001")
    native, live = native_of(docked), docked.editing.live
    QTest.keyClick(native, Qt.Key.Key_Q)
    set_circle(docked, truth)
    drag(qtbot, docked, [middle])
    settle(qtbot, docked)
    first = live.labels == 1
    assert dice(docked, truth) > 0.6
    control(docked, "refine_more_fold")
    docked.refine_page.findChild(QWidget, "refine_new_lesion").click()
    control(docked, "refine_more_fold")
    says = docked.refine_page.tools.next_step
    qtbot.waitUntil(lambda: "Press on the middle" in says.text())
    beside = (middle[0], middle[1] + 22.0, middle[2])
    drag(qtbot, docked, [beside])
    settle(qtbot, docked)
    second = live.labels == 2
    assert second.any()
    np.testing.assert_array_equal(live.labels == 1, first)
    # an eraser of the second lesion over the first leaves it alone
    drag(qtbot, docked, [middle], RIGHT)
    settle(qtbot, docked)
    np.testing.assert_array_equal(live.labels == 1, first)
    picture(window, "85_two_lesions")
    labels = docked.findChild(QWidget, "refine_label")
    assert labels.isVisible()
    labels.activated.emit(0)
    drag(qtbot, docked, [middle], RIGHT)
    settle(qtbot, docked)
    assert np.count_nonzero(live.labels == 1) < np.count_nonzero(first)
    np.testing.assert_array_equal(live.labels == 2, second)
    # undo goes back in this lesion alone, also where steps of the other follow
    QTest.keyClick(native, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    np.testing.assert_array_equal(live.labels == 1, first)
    QTest.keyClick(native, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert not (live.labels == 1).any()
    np.testing.assert_array_equal(live.labels == 2, second)
    picture(window, "85_lesion_1_undone")
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(native, Qt.Key.Key_Z, both)
    np.testing.assert_array_equal(live.labels == 1, first)


@pytest.mark.night
def test_thick_sagittal_slices(qtbot, window, docked, sagittal, picture):
    truth, middle = begin(qtbot, docked, sagittal, "ONE_BREAST_001")
    grid, live = docked.session.case.grid, docked.editing.live
    assert grid.acquisition_plane == "sagittal"
    native = native_of(docked)
    QTest.keyClick(native, Qt.Key.Key_O)
    drag(qtbot, docked, outline_of(docked, truth, middle))
    QTest.keyClick(native, Qt.Key.Key_R)
    qtbot.waitUntil(lambda: live.position == 2)
    assert dice(docked, truth) > 0.8
    picture(window, "86_sagittal_grown")
    QTest.keyClick(native, Qt.Key.Key_Q)
    assert docked.painting.state.tool is PaintTool.SMARTPAINT
    before = dice(docked, truth)
    for _ in range(2):
        correct(qtbot, docked, truth)
    assert dice(docked, truth) > before - 0.01
    picture(window, "87_sagittal_corrected")
