"""The states of the window that go wrong or take long, each with a picture."""

import threading
from functools import partial

import pytest
from one_window import napari_window, put_back, wait_open
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QPushButton

from napari_mamamia.core.errors import ModelError, SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.dock.dock import MamamiaDock
from napari_mamamia.widgets.refine.mask_watch import SaveState

pytestmark = pytest.mark.window

REAL = Services()


class Slow:
    """Real services that wait to be let go, or fail when told to."""

    def __init__(self):
        self.go = threading.Event()
        self.go.set()
        self.error = None

    def held(self, work, text):
        """Do the work once it may go on, and show `text` while it waits."""
        while not self.go.wait(0.01):
            report_progress(2, 5, text)
        if self.error:
            raise self.error
        return work()

    def services(self):
        return REAL.replacing(
            open_case=lambda *a, **k: self.held(
                partial(REAL.open_case, *a, **k), "Reading phase 1"
            ),
            predict_case=lambda *a, **k: self.held(
                partial(REAL.predict_case, *a, **k), "Searching for the breast"
            ),
            prepare_saving=lambda *a, **k: partial(
                self.held, REAL.prepare_saving(*a, **k), "Saving"
            ),
        )


@pytest.fixture(scope="module")
def slow_of_module():
    return Slow()


@pytest.fixture(scope="module")
def panel_of_module(qapp, slow_of_module):
    """A dock with those services, in a window for all tests here."""
    with napari_window() as viewer:
        made = MamamiaDock(viewer, slow_of_module.services())
        viewer.window.add_dock_widget(made, name="MAMA-MIA")
        yield made
        made.close_down()


@pytest.fixture
def slow(slow_of_module):
    slow_of_module.error = None
    slow_of_module.go.set()
    return slow_of_module


@pytest.fixture
def panel(qtbot, panel_of_module, slow):
    panel_of_module.docking.was_warned = False
    put_back(qtbot, panel_of_module)
    return panel_of_module


@pytest.fixture
def window(panel):
    return panel.viewer


def test_a_wrong_folder_is_told_in_the_header(qtbot, window, panel, picture, tmp_path):
    (tmp_path / "nothing here").mkdir()
    panel.cases_page.folder.setText(str(tmp_path / "nothing here"))
    QTest.keyClick(panel.cases_page.folder, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "found no case" in panel.header.message.text())
    assert panel.header.message.isVisible()
    open_folder = panel.cases_page.start.findChild(QPushButton, "start_folder")
    assert open_folder.isVisible()
    assert open_folder.property("primary")
    picture(window, "11_wrong_folder")


@pytest.mark.night
def test_opening_predicting_stopping_and_failing(
    qtbot, window, panel, slow, small_data_set, picture
):
    slow.go.clear()
    panel.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(lambda: panel.header.progress_text.toolTip().endswith("Reading phase 1"))
    picture(window, "12_case_opening")
    slow.go.set()
    wait_open(qtbot, panel, "A_1")

    panel.show_page("Predict")
    slow.go.clear()
    panel.predict_page.start.click()
    qtbot.waitUntil(lambda: "breast" in panel.header.progress_text.toolTip())
    assert panel.predict_page.cancel.isVisible()
    picture(window, "13_predicting")
    panel.predict_page.cancel.click()
    picture(window, "14_cancelled")
    assert "stopped" in panel.predict_page.result.text()
    assert panel.header.state.currentIndex() == 0

    slow.go.set()
    slow.error = ModelError("phase 0 is constant: check the export of phase 0")
    panel.predict_page.start.click()
    qtbot.waitUntil(lambda: "phase 0 is constant" in panel.header.message.text())
    picture(window, "15_predicting_failed")
    slow.error = None
    panel.predict_page.start.click()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None, timeout=30_000)


@pytest.mark.night  # by day: tests/widgets/test_editing.py
def test_a_saving_that_fails_and_is_mended(qtbot, window, panel, slow, small_data_set, picture):
    panel.session.set_reader("Ana")
    panel.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, panel, "A_1")
    panel.show_page("Refine")
    panel.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: panel.editing.live is not None, timeout=15_000)
    panel.scene.layer(Role.REFINED).paint((2, 4, 4), 1)
    slow.error = SaveError("cannot write A_1.nii.gz (No space left on device): free some space")
    panel.refine_page.save.click()
    qtbot.waitUntil(lambda: panel.editing.state is SaveState.FAILED)
    assert "No space left" in panel.header.message.text()
    picture(window, "16_save_failed")
    slow.error = None
    panel.refine_page.save.click()
    qtbot.waitUntil(lambda: panel.editing.state is SaveState.SAVED, timeout=10_000)


def test_the_window_stays_open_once_where_a_mask_cannot_be_saved(
    qtbot, window, panel, slow, small_data_set, caplog
):
    panel.session.set_reader("Ana")
    panel.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, panel, "A_1")
    panel.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: panel.editing.live is not None, timeout=15_000)
    panel.scene.layer(Role.REFINED).paint((2, 4, 4), 1)
    slow.error = SaveError("cannot write A_1.nii.gz (No space left on device): free some space")
    panel.window().close()
    assert panel.window().isVisible()
    assert "stays open" in panel.header.message.text()
    caplog.clear()  # its record of the error would keep the window alive
    slow.error = None
    panel.refine_page.save.click()
    qtbot.waitUntil(lambda: panel.editing.state is SaveState.SAVED, timeout=10_000)


def test_a_case_without_reference_and_without_late_phase(
    qtbot, window, panel, small_data_set, picture, canvas
):
    (small_data_set / "segmentations" / "expert" / "A_1.nii.gz").unlink()
    for k in (2, 3):
        (small_data_set / "images" / "A_1" / f"A_1_{k:04d}.nii.gz").unlink()
    panel.open_data_set(small_data_set, "A_1")
    wait_open(qtbot, panel, "A_1")
    panel.show_page("Predict")
    assert "no late phase" in panel.predict_page.card.inputs.texts
    picture(window, "17_no_late_phase")
    assert "acquisition times" in panel.header.message.text()
    panel.show_page("Score")
    qtbot.waitUntil(lambda: "neither a reference mask" in panel.score_page.no_reference.text())
    picture(window, "18_no_reference")
    assert canvas(window).max() > 200
    panel.session.set_reader("Ana")
    panel.show_page("Refine")
    panel.editing.start(None)
    qtbot.waitUntil(lambda: panel.measure.images is not None, timeout=15_000)
    assert "no late phase" in panel.refine_page.tools.hint.text()
    dice = panel.refine_page.numbers.cells["dice", "now"]
    qtbot.waitUntil(lambda: "no reference" in dice.toolTip(), timeout=15_000)
    assert dice.text() == "–"
    picture(window, "31_refine_no_reference_no_late_phase")


@pytest.mark.real
def test_the_real_slice_opens_and_its_tumour_is_found(
    qtbot, window, panel, real_data, tmp_path, picture
):
    panel.listing.open_data_set(real_data("dce_slice"), None, tmp_path / "workspace")
    wait_open(qtbot, panel, "REAL_001")
    panel.predict()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None, timeout=30_000)
    picture(window, "19_real_slice")
    # shared/data/README.md: the tumour stands near P 85-115, rows 95-125 from the top; the array
    # of a PSR file has x to posterior and y to superior
    mask = panel.scene.layer(Role.PREDICTION).data[0]
    rows, columns = mask.nonzero()
    assert 95 <= rows.mean() <= 125
    assert 85 <= columns.mean() <= 115
