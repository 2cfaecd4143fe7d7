"""From a prediction to an accepted mask: what a reader does, as docs/methods/actions.md counts."""

import re
from pathlib import Path

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from test_window_refine import drag, native_of

from napari_mamamia.core.case import Mask
from napari_mamamia.io.data_set.volumes import read_labels, write_mask
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.phantom import write_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.widgets.base.layers import Role

pytestmark = [pytest.mark.window, pytest.mark.one_window]
PAGE = Path(__file__).parents[2] / "docs" / "methods" / "actions.md"
RADIUS_MM = 6.0
"""Of the part that is missing and of the leak; the brush's circle is the same as it comes."""


class Hand:
    """Does what a reader does, and counts it: there is no other way to the window in this test."""

    def __init__(self, qtbot, panel, control):
        self._qtbot, self._panel, self._control = qtbot, panel, control
        self.clicks = self.keys = self.strokes = 0

    def click(self, name):
        self._control(self._panel, name)
        self.clicks += 1

    def press_key(self, key, modifier=Qt.KeyboardModifier.NoModifier):
        QTest.keyClick(native_of(self._panel), key, modifier)
        self.keys += 1

    def stroke(self, voxel, button):
        drag(self._qtbot, self._panel, [tuple(map(float, voxel))], button)
        self.strokes += 1
        strokes = self._panel.editing.mask.strokes
        self._qtbot.waitUntil(lambda: not strokes.is_settling)


def make_ball(grid, centre):
    """Return the voxels (z, y, x) near a voxel, in mm."""
    places = np.indices(grid.shape)
    squares = (((places[k] - centre[k]) * grid.spacing_mm[k]) ** 2 for k in range(3))
    return sum(squares) <= RADIUS_MM**2


@pytest.mark.night
def test_the_actions_from_a_prediction_to_an_accepted_mask_are_those_of_the_page(
    qtbot, window, docked, tmp_path, control, picture
):
    root = write_data_set(tmp_path / "data", 2, seed=2026, shape=(32, 120, 120))
    files = find_data_set(root).case("PHANTOM_001")
    truth = read_labels(files.reference).dense() > 0
    inside = np.argwhere(truth)
    middle = np.round(inside.mean(axis=0)).astype(int)
    on_slice = inside[inside[:, 0] == middle[0]]
    missing = on_slice[on_slice[:, 2].argmin()]
    leak = on_slice[on_slice[:, 2].argmax()] + (0, 0, 3)
    grid = load_case(files).grid
    wrong = (truth & ~make_ball(grid, missing)) | (make_ball(grid, leak) & ~truth)
    workspace = Workspace(root.with_name(f"{root.name}-workspace"))
    path = workspace.prediction("wrong", "PHANTOM_001")
    path.parent.mkdir(parents=True)
    write_mask(Mask(grid, wrong), path)
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(root, "PHANTOM_001")
    wait_open(qtbot, docked, "PHANTOM_001")
    qtbot.waitUntil(lambda: docked.scene.layer(Role.PREDICTION) is not None)
    docked.scene.view.go_to(tuple(int(v) for v in middle), centre=False)

    def dice():
        mask = docked.editing.live.labels > 0
        return 2 * np.count_nonzero(mask & truth) / (mask.sum() + truth.sum())

    hand = Hand(qtbot, docked, control)
    hand.click("step_mask")
    hand.click("refine_from_prediction")
    qtbot.waitUntil(lambda: docked.editing.live is not None and docked.measure.images is not None)
    docked.scene.view.go_to(tuple(int(v) for v in middle), centre=False)
    begun = dice()
    picture(window, "actions-begun")
    hand.press_key(Qt.Key.Key_Q)
    hand.stroke(missing, Qt.MouseButton.LeftButton)
    added = dice()
    hand.stroke(leak, Qt.MouseButton.RightButton)
    removed = dice()
    picture(window, "actions-corrected")
    painted = docked.editing.live.labels.copy()
    hand.press_key(Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    wait_open(qtbot, docked, "PHANTOM_002")
    saved = read_labels(workspace.refined("Ana", "PHANTOM_001")).dense()
    np.testing.assert_array_equal(saved > 0, painted > 0)
    assert begun < 0.85 < 0.9 < removed
    assert begun < added < removed
    row = re.search(
        r"\| this window \| (\d+) \| (\d+) \| (\d+) \| \*\*(\d+)\*\* \|", PAGE.read_text()
    )
    counted = (hand.clicks, hand.keys, hand.strokes)
    assert tuple(map(int, row.groups())) == (*counted, sum(counted))
