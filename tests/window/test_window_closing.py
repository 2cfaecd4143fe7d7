"""Closing a real window in which a mask is not saved: nothing is lost, or it stays open."""

import errno
import os

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import QEvent
from qtpy.QtGui import QCloseEvent
from qtpy.QtWidgets import QApplication

from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.place import dock_of
from napari_mamamia.widgets.refine.state import PaintTool

pytestmark = pytest.mark.window


def begin(qtbot, panel, data_set, case_id, source):
    """Open a case as Ana, and make a mask from another one."""
    panel.session.set_reader("Ana")
    panel.open_data_set(data_set, case_id)
    wait_open(qtbot, panel, case_id)
    panel.editing.start(source)
    qtbot.waitUntil(lambda: panel.editing.live is not None)


def stroke(panel, place):
    """Paint one sphere as a press of the mouse does."""
    panel.show_page("Refine")
    panel.painting.set_tool(PaintTool.SPHERE)
    mask = panel.editing.mask
    assert panel.painting._try_work(mask.repair_layer)
    mask.press(place, panel.painting.brush_for(False, False))
    mask.release()


@pytest.mark.night  # by day test_window_states: it stays open once where a mask cannot be saved
def test_closing_with_strokes_that_are_nowhere_recorded_is_held_up_with_the_reason(
    qtbot, docked, small_data_set, monkeypatch
):
    begin(qtbot, docked, small_data_set, "A_2", None)
    stroke(docked, (4.0, 16.0, 24.0))

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        patched.setattr(os, "open", refuse)
        patched.setattr("napari_mamamia.io.files.save.os.fsync", refuse, raising=False)
        stroke(docked, (2.0, 4.0, 4.0))
        assert docked.close_down() is False
        assert docked.editing.live is not None
        assert "NOT" in docked.header.saved.text()
        assert docked.editing.live.labels.any()
    assert docked.close_down() is True


@pytest.mark.night
def test_what_was_painted_is_saved_when_the_window_closes(
    qtbot, make_napari_viewer, small_data_set, own_preferences
):
    first = make_napari_viewer(show=True)
    first.window.add_plugin_dock_widget("napari-mamamia", "Cases")
    panel = dock_of(first)
    qtbot.waitUntil(panel.isVisible)
    begin(qtbot, panel, small_data_set, "B_1", Role.REFERENCE)
    panel.scene.layer(Role.REFINED).paint((2, 4, 4), 1)
    painted = panel.session.mask(Role.REFINED).buffer.copy()
    path = panel.session.workspace.refined("Ana", "B_1")
    assert not path.exists()
    first.close()
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)


def test_no_turn_still_to_come_meets_a_window_that_is_gone(qtbot, make_napari_viewer):
    """PyQt6 ends the program for an error in a turn: a notebook, or napari's next window."""
    viewer = make_napari_viewer(show=True)
    viewer.window.add_plugin_dock_widget("napari-mamamia", "Cases")
    panel = dock_of(viewer)
    panel.reading.enter()
    qtbot.waitUntil(panel.isVisible)
    ended = []
    panel.destroyed.connect(lambda: ended.append(True))
    with qtbot.captureExceptions() as errors:
        panel.close_down()
        viewer.close()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QApplication.processEvents()
    assert ended
    assert not errors


def test_the_window_saves_before_it_closes_also_while_its_dock_floats(
    qtbot, docked, small_data_set
):
    begin(qtbot, docked, small_data_set, "A_2", Role.REFERENCE)
    docked.docking.home.setFloating(True)
    stroke(docked, (2.0, 10.0, 10.0))
    path = docked.session.workspace.refined("Ana", "A_2")
    assert not path.exists()
    docking = docked.docking
    docking.eventFilter(docking._main_window, QCloseEvent())  # as Qt asks before it closes
    assert path.exists()
