"""The story of a trained model in the real window: drop, edit, predict, cancel, again, step."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_mamamia.core.progress import report_progress
from napari_mamamia.services.predict.predict import save_prediction
from napari_mamamia.widgets.base.layers import Role

pytest.importorskip("dynamic_network_architectures")
pytestmark = pytest.mark.window

MAKER = Path(__file__).parents[1] / "segmentation" / "conftest.py"
WRITE = """
import importlib.util, sys
from pathlib import Path
found = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(found)
sys.modules["made"] = made
found.loader.exec_module(made)
made.write_model(Path(sys.argv[2]), made.Spec(folds=("0", "1"), channels=("pre", "post")))
"""


@pytest.fixture
def model_folder(tmp_path):
    """A model with random weights, written by another process: torch stays out of this one."""
    folder = tmp_path / "results"
    subprocess.run([sys.executable, "-c", WRITE, str(MAKER), str(folder)], check=True)
    return folder


@pytest.fixture
def opened(qtbot, docked, small_data_set):
    docked.open_data_set(small_data_set, "A_1")
    qtbot.waitUntil(
        lambda: docked.session.case is not None and docked.session.case.is_loaded, timeout=120_000
    )
    docked.show_page("Predict")
    return docked


def drop(widget, path):
    """Drag a folder onto a widget and let it go, as a file manager does."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    left, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    place, copy = QPointF(20, 20), Qt.DropAction.CopyAction
    QApplication.sendEvent(widget, QDragEnterEvent(place.toPoint(), copy, data, left, keys))
    QApplication.sendEvent(widget, QDropEvent(place, copy, data, left, keys))


def choose(listing, row, keys=Qt.KeyboardModifier.NoModifier):
    """Click on a line of a list."""
    listing.scrollToItem(listing.item(row))
    place = listing.visualItemRect(listing.item(row)).center()
    QTest.mouseClick(listing.viewport(), Qt.MouseButton.LeftButton, keys, place)


def picture_of(widget, picture_folder, name):
    widget.grab().save(str(picture_folder / f"{name}.png"))


@pytest.fixture
def held_saving(monkeypatch):
    """Nothing is saved before this is set: the tiny model may end before its cancel is clicked."""
    go_on = threading.Event()

    def save_later(*given, **named):
        while not go_on.wait(0.01):
            report_progress(0, 1, "Waiting")
        return save_prediction(*given, **named)

    saving = "napari_mamamia.services.predict.keep_prediction.save_prediction"
    monkeypatch.setattr(saving, save_later)
    return go_on


def progress_told(dock):
    return dock.header.progress_text.toolTip()


@pytest.mark.night  # by day with a fake model: tests/widgets/test_predict_models.py
def test_drop_edit_predict_cancel_predict_again_and_step(
    qtbot, window, opened, model_folder, control, picture, picture_folder, held_saving
):
    had_torch = "torch" in sys.modules
    page = opened.predict_page
    window.theme = "dark"
    picture(window, "predict-kinetic-dark")
    assert page.card.inputs.texts[0] == "before contrast ← pre"
    drop(page, model_folder)
    qtbot.waitUntil(lambda: page.models.list.count() == 2, timeout=120_000)
    assert page.models.current == "Dataset900_Made_3d_fullres"
    assert "channel 0 pre ← pre" in page.card.inputs.texts
    assert page.start.isEnabled()
    qtbot.waitUntil(lambda: "tiles x 8 copies x 2 folds" in page.card.needs.text(), timeout=120_000)
    qtbot.waitUntil(lambda: page.card.inputs.has_pictures, timeout=20_000)
    picture(window, "predict-inputs-dark")
    control(opened, "predict_edit_recipe")
    recipes = opened.predict_flow.recipes
    qtbot.waitUntil(lambda: recipes.dialog is not None, timeout=20_000)
    editor = recipes.dialog
    editor.form.channels.combos[1].setCurrentText("p1-x")
    qtbot.wait(100)
    picture_of(editor, picture_folder, "predict-recipe-refused")
    assert not editor.save.isEnabled()
    editor.form.channels.combos[1].setCurrentText("p1-p0")
    picture_of(editor, picture_folder, "predict-recipe")
    control(editor, "recipe_save")
    qtbot.waitUntil(lambda: recipes.dialog is None, timeout=20_000)
    assert page.card.inputs.texts[1] == "channel 1 post ← post 1 - pre"
    assert page.options.recipe.currentText() == "own (edited)"
    qtbot.waitUntil(lambda: page.card.inputs.has_pictures, timeout=20_000)
    qtbot.waitUntil(lambda: "tiles x 8 copies" in page.card.needs.text(), timeout=120_000)
    page.options.uncertainty.setChecked(True)
    page.options.limited.setChecked(True)
    picture(window, "predict-model-dark")

    told = []
    opened.jobs.progressed.connect(lambda _ticket, _step: told.append(progress_told(opened)))
    control(opened, "predict_start")
    qtbot.waitUntil(lambda: any("tile" in text for text in told), timeout=120_000)
    picture(window, "predict-running")
    control(opened, "predict_cancel")
    qtbot.waitUntil(lambda: "stopped" in page.result.text(), timeout=20_000)
    held_saving.set()
    assert opened.session.mask(Role.PREDICTION) is None
    picture(window, "predict-cancelled")

    control(opened, "predict_start")
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None, timeout=120_000)
    made = opened.session.mask(Role.PREDICTION).provenance
    assert made.name == "Dataset900_Made_3d_fullres"
    assert made.device.startswith("cpu (")
    assert dict(made.parameters)["folds"] == "0,1"
    assert "p1-p0" in dict(made.parameters)["channels"]
    assert opened.scene.layer(Role.DOUBT).colormap.name == "magma"
    assert page.uncertainty.is_shown
    picture(window, "predict-doubt-dark")
    before = page.uncertainty.list.currentRow()
    QTest.keyClick(window.window._qt_viewer.canvas.native, Qt.Key.Key_G)
    assert page.uncertainty.list.currentRow() == before + 1
    window.theme = "light"
    picture(window, "predict-doubt-light")
    if not had_torch:
        assert "torch" not in sys.modules
    host = opened.predict_flow.models._host
    assert host.pid is not None
    opened.close_down()
    assert host.pid is None


@pytest.mark.night
def test_a_folder_that_is_no_model_is_refused_with_the_reason(qtbot, opened, tmp_path, picture):
    (tmp_path / "empty").mkdir()
    opened.predict_page.model_added.emit(tmp_path / "empty")
    said = opened.header.message
    qtbot.waitUntil(lambda: "none was recognised" in said.text(), timeout=20_000)
    assert opened.predict_page.models.list.count() == 1
