"""The repair of a leak in a real window: a click, a line, then growing, with mouse events."""

import numpy as np
import pytest
from one_window import wait_open
from qtpy.QtTest import QTest
from scipy.ndimage import binary_dilation
from tests.window.conftest import canvas_of
from tests.window.test_window_refine import drag, middle_of, native_of, pixel_of

from napari_mamamia.core.box import Box
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.state import PaintTool

pytestmark = [pytest.mark.window, pytest.mark.one_window]


@pytest.fixture
def leaking(qtbot, docked, small_data_set):
    """The true tumour as Ana's mask, with an island and a lobe that hangs on it by a bridge."""
    docked.session.set_reader("Ana")
    docked.header.set_reader("Ana")
    docked.open_data_set(small_data_set, "A_2")
    wait_open(qtbot, docked, "A_2")
    docked.show_page("Refine")
    docked.editing.start(None)
    qtbot.waitUntil(lambda: docked.editing.live is not None)
    qtbot.waitUntil(lambda: docked.measure.images is not None)
    truth = docked.session.mask(Role.REFERENCE).buffer > 0
    (z, y, x), _ = middle_of(truth)
    y, x = round(y), round(x)
    edge = int(np.flatnonzero(truth[z, y])[-1])
    lobe, bridge, island = (np.zeros_like(truth) for _ in range(3))
    bridge[z, y, edge : edge + 6] = True
    lobe[max(z - 1, 0) : z + 2, y - 2 : y + 3, edge + 6 : edge + 11] = True
    island[z, y + 10 : y + 13, edge + 8 : edge + 11] = True
    around = binary_dilation(truth, iterations=2)
    docked.truth, docked.lobe, docked.island = truth, lobe & ~around, island & ~around
    mask = truth | bridge | lobe | island
    docked.editing.mask.apply("prediction", Box.whole(mask.shape), mask)
    docked.scene.view.go_to((z, y, edge + 3), centre=False)
    docked.neck, docked.beside = (z, y, edge + 3), (z, y + 11, edge + 9)
    return docked


def wait_still(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.growing.is_busy)
    qtbot.wait(50)


def differs_from_a_new_picture(panel):
    """Return how many pixels of the image another one has when all is drawn anew."""
    shown = canvas_of(panel.viewer).astype(int)
    for layer in panel.viewer.layers:
        layer.refresh()
    return int((np.abs(canvas_of(panel.viewer) - shown).max(axis=-1) > 40).sum())


@pytest.mark.night  # by day tests/widgets/test_leaks.py, without a window
def test_a_leak_is_clicked_away_cut_off_and_does_not_come_back(
    qtbot, window, leaking, picture, control
):
    panel, live = leaking, leaking.editing.live
    buffer = panel.session.mask(Role.REFINED).buffer
    fold = panel.refine_page.more.fold
    if panel.refine_page.more.is_folded:
        fold.click()
    picture(window, "leak_1_before")

    panel.refine_page.tools.tools[PaintTool.PART].click()
    drag(qtbot, panel, [panel.beside])
    wait_still(qtbot, panel)
    assert not buffer[panel.island].any()
    assert buffer[panel.lobe].all()
    picture(window, "leak_2_island_gone")

    panel.refine_page.tools.tools[PaintTool.CUT].click()
    z, y, x = panel.neck
    drag(qtbot, panel, [(z, y - 3, x), (z, y, x), (z, y + 3, x)])
    wait_still(qtbot, panel)
    assert not buffer[panel.lobe].any()
    assert np.count_nonzero(buffer[panel.truth]) > 0.97 * np.count_nonzero(panel.truth)
    assert [step.name for step in live.steps[-2:]] == ["remove part", "cut"]
    assert differs_from_a_new_picture(panel) == 0
    picture(window, "leak_3_cut")
    # The slice beside it was cut out of sight.
    panel.scene.view.go_to((z - 1, y, x), centre=False)
    assert differs_from_a_new_picture(panel) == 0
    panel.scene.view.go_to((z, y, x), centre=False)

    native = native_of(panel)
    native.setFocus()
    QTest.mouseMove(native, pixel_of(panel, panel.neck))
    panel.growing.grow()
    wait_still(qtbot, panel)
    hold = unpack_marks(live.state.words(live.label)).hold
    assert not (buffer[hold < 0] == live.label).any()
    assert not buffer[panel.lobe].any()
    picture(window, "leak_4_grown_again")

    while live.steps[live.position - 1].name != "prediction":
        panel.editing.mask.undo()
    assert buffer[panel.lobe].all()
    assert buffer[panel.island].all()
