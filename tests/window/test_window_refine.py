"""Refining in a real window: outline, grow, paint, undo, save, reopen, with the mouse's events."""

import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from one_window import forget_mask, wait_open
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.answers import Answer, Answers, Place
from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.core.form import FieldScope
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.open_case import open_case
from napari_mamamia.services.refine.edit_case import open_editing, save_editing
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.mask_watch import SaveState
from napari_mamamia.widgets.refine.state import PaintTool

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def native_of(panel):
    """The widget that the image is drawn on."""
    return panel.viewer.window._qt_viewer.canvas.native


def pixel_of(panel, voxel):
    """Return where on the canvas a voxel (z, y, x) of the slice shown is drawn."""
    grid = panel.session.case.grid
    frame = grid.display_frame()
    shown = frame.point_to_display(voxel, grid.shape)
    spacing = frame.per_axis(grid.spacing_mm)
    world = [place * mm for place, mm in zip(shown, spacing, strict=True)]
    canvas = panel.viewer.window._qt_viewer.canvas
    camera = panel.viewer.scene.camera
    down, across = (world[a - (panel.viewer.dims.ndim - 3)] for a in panel.viewer.dims.displayed)
    native = canvas.native
    x = native.width() / 2 + (across - camera.center[-1]) * camera.zoom
    y = native.height() / 2 + (down - camera.center[-2]) * camera.zoom
    return QPoint(round(x), round(y))


def drag(qtbot, panel, voxels, button=Qt.MouseButton.LeftButton, modifier=None):
    """Press, move along and release with the mouse on the canvas."""
    native = native_of(panel)
    keys = modifier or Qt.KeyboardModifier.NoModifier
    pixels = [pixel_of(panel, voxel) for voxel in voxels]
    QTest.mouseMove(native, pixels[0])
    QTest.mousePress(native, button, keys, pixels[0])
    for pixel in pixels[1:]:
        QTest.mouseMove(native, pixel)
        qtbot.wait(12)
    QTest.mouseRelease(native, button, keys, pixels[-1])
    qtbot.wait(12)


def ring(centre, radius, points=24):
    """Return voxels (z, y, x) on a circle in the plane of z."""
    z, y, x = centre
    turns = np.linspace(0, 2 * np.pi, points)
    return [(z, y + radius * np.sin(t), x + radius * np.cos(t)) for t in turns]


def middle_of(mask):
    """Return the voxel in the middle of the mask's fullest plane of z, and a radius inside it."""
    z = int(mask.sum(axis=(1, 2)).argmax())
    places = np.argwhere(mask[z])
    y, x = places.mean(axis=0)
    return (z, float(y), float(x)), 0.45 * float(np.sqrt(len(places)))


@pytest.fixture
def refining(qtbot, docked, small_data_set):
    """A mask made from nothing by Ana, on the slice of the tumour."""
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    wait_open(qtbot, docked, "A_2")
    docked.show_page("Refine")
    docked.editing.start(None)
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    qtbot.waitUntil(lambda: docked.measure.images is not None)
    truth = docked.session.mask(Role.REFERENCE).buffer > 0
    centre, radius = middle_of(truth)
    docked.scene.view.go_to(tuple(round(v) for v in centre), centre=False)
    docked.centre, docked.radius = centre, radius
    return docked


def test_what_is_missing_comes_above_accept_and_goes_while_the_button_stays(
    qtbot, refining, picture, window
):
    page, form = refining.refine_page, refining.findings_page.form
    accept = refining.accept_row.accept

    def place_of_accept():
        return accept.mapToGlobal(accept.rect().topLeft())

    qtbot.waitUntil(lambda: accept.isVisible())
    before, room = place_of_accept(), page.height()
    form.give(Answer("bpe", ("mild",)))
    form.give(Answer("finding", ("mass",), Place(FieldScope.LESION, "9")))
    qtbot.waitUntil(lambda: len(page.gaps.texts) == 2 and page.gaps.isVisible())
    lines = page.gaps.lines
    qtbot.waitUntil(lambda: place_of_accept() == before)
    assert page.gaps.mapToGlobal(page.gaps.rect().bottomLeft()).y() < place_of_accept().y()
    assert all(lines.visualItemRect(lines.item(at)).height() >= 24 for at in range(2))
    picture(window, "25_findings_missing")
    findings = refining.kinetics.findings
    findings._findings = replace(findings._findings, answers=Answers())  # all is taken away
    findings._show_findings(anew=True)
    qtbot.waitUntil(lambda: not page.gaps.isVisible())
    qtbot.waitUntil(lambda: place_of_accept() == before)
    assert page.height() == room


@pytest.mark.night  # by day test_window_evidence grows and corrects; test_window_story saves
def test_outline_grow_ten_strokes_undo_save_reopen_and_compare(
    qtbot, window, refining, control, picture, canvas
):
    panel, native = refining, native_of(refining)
    buffer = panel.session.mask(Role.REFINED).buffer
    centre, radius = panel.centre, panel.radius
    camera = tuple(window.scene.camera.center), window.scene.camera.zoom
    picture(window, "20_refine_start")

    native.setFocus()
    QTest.keyClick(native, Qt.Key.Key_O)
    assert panel.painting.state.tool is PaintTool.OUTLINE
    drag(qtbot, panel, ring(centre, radius))
    # an outline is close to a disc of that radius
    assert abs(int(buffer.sum()) - np.pi * radius**2) < 0.35 * np.pi * radius**2
    assert np.flatnonzero(buffer.any(axis=(1, 2))).tolist() == [centre[0]]
    picture(window, "21_outlined")

    QTest.keyClick(native, Qt.Key.Key_R)
    qtbot.waitUntil(lambda: not panel.growing.is_busy)
    assert len(np.flatnonzero(buffer.any(axis=(1, 2)))) > 1
    picture(window, "22_grown")

    QTest.keyClick(native, Qt.Key.Key_Q)
    states = [buffer.copy()]
    for stroke in range(10):
        z, y, x = centre
        panel.painting.set_tool(PaintTool.SPHERE if stroke % 2 else PaintTool.SMARTPAINT)
        right = stroke % 3 == 2
        button = Qt.MouseButton.RightButton if right else Qt.MouseButton.LeftButton
        at = (z, y + radius * 1.4 * np.sin(stroke), x + radius * 1.4 * np.cos(stroke))
        drag(qtbot, panel, [at, (z, at[1] + 2, at[2] + 1)], button)
        states.append(buffer.copy())
    live = panel.editing.live
    assert (tuple(window.scene.camera.center), window.scene.camera.zoom) == camera
    assert live.position > 8
    picture(window, "23_painted")

    position = live.position
    for _ in range(3):
        QTest.keyClick(native, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert live.position == position - 3
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(native, Qt.Key.Key_Z, both)
    assert live.position == position - 2
    painted = buffer.copy()
    dice = panel.findChild(QWidget, "refine_dice_now")
    qtbot.waitUntil(lambda: dice.text() not in ("–", "0.00"))
    picture(window, "24_undone")

    QTest.keyPress(native, Qt.Key.Key_T)
    assert not panel.scene.layer(Role.REFINED).visible
    QTest.keyRelease(native, Qt.Key.Key_T)
    assert panel.scene.layer(Role.REFINED).visible
    control(panel, "refine_more_fold")
    panel.refine_page.changes.click()
    qtbot.waitUntil(lambda: not panel.marks.is_empty)
    picture(window, "25_changes")
    panel.refine_page.changes.click()
    control(panel, "refine_more_fold")

    control(panel, "refine_save")
    qtbot.waitUntil(lambda: panel.editing.state is SaveState.SAVED)
    picture(window, "26_saved")
    path = panel.session.workspace.refined("Ana", "A_2")
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)

    panel.cases_flow.open_case("A_1")
    wait_open(qtbot, panel, "A_1")
    panel.cases_flow.open_case("A_2")
    wait_open(qtbot, panel, "A_2")
    qtbot.waitUntil(lambda: panel.editing.live is not None)
    assert panel.editing.state is SaveState.SAVED
    np.testing.assert_array_equal(panel.session.mask(Role.REFINED).buffer, painted)
    picture(window, "27_reopened")

    native.setFocus()
    QTest.keyClick(native, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    wait_open(qtbot, panel, "B_1")


def test_the_cursor_is_a_circle_and_says_what_a_press_does(qtbot, window, refining, picture):
    refining.painting.set_tool(PaintTool.SMARTPAINT)
    native = native_of(refining)
    QTest.mouseMove(native, pixel_of(refining, refining.centre))
    text = native.findChild(QWidget, "brush_text")
    qtbot.waitUntil(text.isVisible)
    assert text.text().startswith("+ add ±")
    assert window.cursor.style == "circle"
    # in world units, mm: the circle of the stroke, radius 6 mm
    assert window.cursor.size == 12
    picture(window, "28_cursor")


def test_unsaved_work_of_a_crash_is_offered_in_the_dock(
    qtbot, window, refining, control, picture, small_data_set
):
    panel = refining
    panel.cases_flow.open_case("A_1")
    wait_open(qtbot, panel, "A_1")
    painted = crash(panel, "A_2")
    panel.cases_flow.open_case("A_2")
    wait_open(qtbot, panel, "A_2")
    qtbot.waitUntil(lambda: panel.refine_page.offer.isVisible())
    picture(window, "29_recovered")
    np.testing.assert_array_equal(panel.session.mask(Role.REFINED).buffer, painted)
    control(panel, "refine_leave")
    assert not panel.session.mask(Role.REFINED).buffer.any()
    control(panel, "refine_undo")
    np.testing.assert_array_equal(panel.session.mask(Role.REFINED).buffer, painted)


def crash(panel, case_id):
    """Paint a sphere and end as a kill does: the mask is not written, the journal stays."""
    opened = panel.session.opened
    case = open_case(opened.data_set.case(case_id), None)
    editing = open_editing(case, opened.workspace, "Ana")
    editing.session.press(panel.centre, Brush(Tool.SPHERE))
    editing.session.release()
    editing.journal.close()
    return editing.session.labels.copy()


@pytest.mark.parametrize(
    "themes", [["dark"], pytest.param(["light", "dark"], marks=pytest.mark.night)]
)
def test_every_state_of_the_page_fits(qtbot, window, refining, whole_window, themes):
    refining.painting.set_tool(PaintTool.SMARTPAINT)
    drag(qtbot, refining, [refining.centre, refining.centre])
    refining.refine_page.more.fold.click()
    for theme, (width, height) in product(themes, ((1400, 900), (1900, 1050))):
        window.theme = theme
        window.window.resize(width, height)
        pixels = whole_window(window, f"refine_{theme}_{width}")
        assert pixels[:, -refining.width() :].astype(int).std() > 5
        assert refining.minimumSizeHint().width() <= refining.width()
        assert refining.accept_row.accept.isVisible()


@pytest.mark.night  # by day test_window_refine_bad: on a full disk it is said, strokes stay
def test_a_full_disk_is_said_in_the_header_and_the_strokes_stay(
    qtbot, window, refining, picture, monkeypatch
):
    reason = "NOT recorded: No space left on device; 1 record would be lost"
    monkeypatch.setattr(OpenEditing, "problem", property(lambda _: reason))
    refining.painting.set_tool(PaintTool.SPHERE)
    drag(qtbot, refining, [refining.centre, refining.centre])
    assert "NOT kept" in refining.header.saved.text()
    assert "No space left" in refining.header.message.text()
    assert refining.session.mask(Role.REFINED).buffer.any()
    picture(window, "30_not_kept")


@pytest.fixture
def left_behind(small_data_set):
    """Ana's mask: a stroke that was saved, and one that the journal alone has, as after a kill."""
    workspace = Workspace(small_data_set.with_name(f"{small_data_set.name}-workspace"))
    case = open_case(find_data_set(small_data_set).case("A_1"))
    opened = open_editing(case, workspace, "Ana")
    sphere = Brush(tool=Tool.SPHERE, radius_mm=4.0)
    counts = []
    for place in ((4, 10, 10), (4, 22, 30)):
        opened.session.press(place, sphere)
        opened.session.release()
        counts.append(int(np.count_nonzero(opened.session.labels)))
        if len(counts) == 1:
            save_editing(opened)
    opened.close()
    return counts


@pytest.mark.parametrize("is_late", [True, False])
def test_a_reader_who_is_named_later_has_the_strokes_that_were_not_saved(
    qtbot, docked, small_data_set, left_behind, monkeypatch, is_late
):
    """The file of the mask was read beside its journal: read later it came over the strokes."""
    gate, real = threading.Event(), docked.opening._open_masks

    def read(*given):
        masks = real(*given)
        if is_late:
            gate.wait(60)
        return masks

    docked.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, docked, "A_1")
    monkeypatch.setattr(docked.opening, "_open_masks", read)
    said = []
    docked.notifier.said.connect(lambda *what: said.append(what[1]))
    docked.header.reader_given.emit("Ana")
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    gate.set()
    qtbot.waitUntil(lambda: not docked.jobs.is_running("masks"))
    qtbot.wait(50)
    live, layer = docked.editing.live, docked.scene.layer(Role.REFINED)
    assert np.may_share_memory(layer.data, live.labels)
    docked.editing.mask.repair_layer()
    assert int(np.count_nonzero(live.labels)) == left_behind[1] > left_behind[0]
    assert docked.session.mask(Role.REFINED).buffer is live.labels
    assert not [text for text in said if "became one step" in text]
    forget_mask(docked)
