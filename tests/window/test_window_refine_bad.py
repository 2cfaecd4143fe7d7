"""Refining in a real window where something is wrong: nothing is lost without a word."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtTest import QTest

from napari_mamamia.core.edits import Brush, Tool
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.services.case.open_case import open_case
from napari_mamamia.services.refine.edit_case import open_editing
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.mask_watch import SaveState
from napari_mamamia.widgets.refine.state import PaintTool

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def begin(qtbot, panel, data_set, case_id):
    """Open a case as Ana, and make a mask from nothing."""
    panel.session.set_reader("Ana")
    panel.header.set_reader("Ana")
    panel.open_data_set(data_set, case_id)
    wait_open(qtbot, panel, case_id)
    panel.show_page("Refine")
    panel.editing.start(None)


def middle(panel):
    return tuple(n // 2 for n in panel.session.case.grid.shape)


def stroke(panel, place=None):
    """Paint one sphere as a press of the mouse does."""
    panel.painting.set_tool(PaintTool.SPHERE)
    mask = panel.editing.mask
    assert panel.painting._try_work(mask.repair_layer)
    mask.press(place or middle(panel), panel.painting.brush_for(False, False))
    mask.release()


@pytest.fixture
def refining(qtbot, docked, small_data_set):
    begin(qtbot, docked, small_data_set, "A_2")
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    stroke(docked)
    return docked


def test_a_case_that_another_window_edits_is_refused_in_plain_words(
    qtbot, docked, small_data_set, picture
):
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    wait_open(qtbot, docked, "A_2")
    opened = docked.session.opened
    case = open_case(opened.data_set.case("A_2"), None)
    other = open_editing(case, opened.workspace, "Ana")
    other.session.press((2.0, 5.0, 5.0), Brush(Tool.SPHERE, radius_mm=3.0))
    other.session.release()
    theirs = other.session.labels.copy()
    docked.show_page("Refine")
    docked.editing.start(None)
    qtbot.waitUntil(lambda: "window" in docked.header.message.text())
    picture(docked.viewer, "31_two_windows")
    assert docked.editing.live is None
    np.testing.assert_array_equal(other.session.labels, theirs)
    other.close()
    docked.editing.start(None)
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    np.testing.assert_array_equal(docked.editing.live.labels, theirs)


def test_on_a_full_disk_it_is_said_strokes_stay_and_are_written_when_there_is_room(
    qtbot, refining, monkeypatch, picture
):
    full, write = [True], os.write

    def refuse(handle, content):
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, content)

    monkeypatch.setattr(os, "write", refuse)
    stroke(refining, (2.0, 4.0, 4.0))
    qtbot.waitUntil(lambda: "No space left" in refining.header.message.text())
    picture(refining.viewer, "32_full_disk")
    painted = refining.editing.live.labels.copy()
    full[0] = False
    refining.editing.save()
    qtbot.waitUntil(lambda: refining.editing.state is SaveState.SAVED)
    path = refining.session.workspace.refined("Ana", "A_2")
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)


def test_a_folder_that_cannot_be_written_is_said(qtbot, docked, small_data_set, monkeypatch):
    make = Path.mkdir

    def refuse(folder, *values, **settings):
        if "-workspace" in str(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        make(folder, *values, **settings)

    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    wait_open(qtbot, docked, "A_2")
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    docked.show_page("Refine")
    docked.editing.start(None)
    qtbot.waitUntil(
        lambda: (
            "Permission denied" in docked.header.message.text() or docked.editing.live is not None
        ),
        timeout=15_000,
    )
    if docked.editing.live is not None:
        stroke(docked)
        docked.editing.save()
        qtbot.waitUntil(lambda: docked.editing.state is SaveState.FAILED)
        assert "Permission denied" in docked.header.message.text()
        assert docked.editing.live.labels.any()


def test_one_slice_is_refined_like_any_other_case(qtbot, docked, real_data, tmp_path, picture):
    shutil.copytree(real_data("dce_slice") / "images", tmp_path / "one slice" / "images")
    begin(qtbot, docked, tmp_path / "one slice", "REAL_001")
    qtbot.waitUntil(lambda: docked.measure.images is not None)
    docked.painting.set_tool(PaintTool.SMARTPAINT)
    docked.editing.mask.press(middle(docked), docked.painting.brush_for(False, False))
    docked.editing.mask.release()
    assert docked.editing.live.labels.any()
    QTest.qWait(50)
    picture(docked.viewer, "33_one_slice")
    docked.growing.grow()
    qtbot.waitUntil(lambda: not docked.growing.is_busy)
    assert docked.editing.live.labels.any()


@pytest.mark.night  # by day: tests/widgets/test_editing.py
def test_a_deleted_layer_saves_first(qtbot, refining):
    painted = refining.editing.live.labels.copy()
    refining.viewer.layers.remove(refining.scene.layer(Role.REFINED))
    qtbot.waitUntil(lambda: refining.editing.live is None)
    path = refining.session.workspace.refined("Ana", "A_2")
    np.testing.assert_array_equal(read_labels(path).dense() > 0, painted > 0)


def test_a_renamed_layer_is_painted_on_as_before(refining):
    layer = refining.scene.layer(Role.REFINED)
    layer.name = "my own words"
    before = int(refining.editing.live.labels.sum())
    stroke(refining, (2.0, 4.0, 4.0))
    assert refining.editing.live.labels.sum() > before
    assert layer in refining.viewer.layers


def test_replaced_data_of_the_same_size_become_a_step(qtbot, refining):
    layer = refining.scene.layer(Role.REFINED)
    before = refining.editing.live.labels.copy()
    layer.data = np.zeros_like(np.asarray(layer.data))
    qtbot.waitUntil(lambda: not refining.editing.live.labels.any())
    refining.editing.mask.undo()
    np.testing.assert_array_equal(refining.editing.live.labels, before)


@pytest.mark.night
def test_data_of_another_size_are_put_aside_and_the_mask_is_shown_again(qtbot, refining):
    layer = refining.scene.layer(Role.REFINED)
    before = refining.editing.live.labels.copy()
    layer.data = np.ones((3, 3, 3), np.uint8)
    qtbot.waitUntil(lambda: "another size" in refining.header.message.text())
    np.testing.assert_array_equal(refining.editing.live.labels, before)
    shown = refining.scene.layer(Role.REFINED).data
    assert np.shares_memory(np.asarray(shown), refining.editing.live.labels)
