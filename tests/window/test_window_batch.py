"""Batch scoring in a real window: form, run, table, review of the worst case, a leaderboard."""

import shutil

import nibabel as nib
import numpy as np
import pytest
from napari.settings import get_settings
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QDockWidget, QScrollArea

from napari_mamamia.core.choices import RankMethod
from napari_mamamia.features.challenge.services.rank.inputs import RankInputs, algorithm_table
from napari_mamamia.features.challenge.services.rank.rank import rank_files
from napari_mamamia.scoring.ranking.table import RankSettings
from napari_mamamia.services.score.score import score_folders
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.widgets.base.bottom import BOTTOM_NAME
from napari_mamamia.widgets.base.layers import Role

pytestmark = [pytest.mark.window, pytest.mark.one_window]


def has_colour(pixels, hexadecimal, at_least=20):
    colour = np.array([int(hexadecimal[k : k + 2], 16) for k in (1, 3, 5)])
    close = np.abs(pixels.astype(int) - colour).max(axis=-1) < 40
    return int(close.sum()) >= at_least


@pytest.fixture
def predictions(small_data_set):
    """Predictions of a model: one right, one shifted by two columns, one file cut off."""
    expert = small_data_set / "segmentations" / "expert"
    folder = small_data_set.parent / "my data set-workspace" / "predictions" / "net"
    folder.mkdir(parents=True)
    shutil.copy(expert / "A_1.nii.gz", folder)
    image = nib.load(expert / "A_2.nii.gz")
    shifted = np.roll(np.asarray(image.dataobj), 2, axis=0)
    nib.save(nib.Nifti1Image(shifted, image.affine, image.header), folder / "A_2.nii.gz")
    whole = (expert / "B_1.nii.gz").read_bytes()
    (folder / "B_1.nii.gz").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture
def ready(qtbot, docked, small_data_set, predictions):
    docked.open_data_set(small_data_set)
    qtbot.waitUntil(lambda: docked.session.opened is not None, timeout=15_000)
    docked.show_page("Batch scoring")
    return docked


@pytest.mark.parametrize("width", [860, 1400])
def test_the_work_list_is_whole_beside_the_results(qtbot, window, docked, small_data_set, width):
    """At text of 150 % on 1280 pixels its lines went out of sight, and the steps read "Wor…ist"."""
    docked.reading.enter()
    window.window.resize(width, 700)
    docked.open_data_set(small_data_set)
    qtbot.waitUntil(lambda: docked.session.opened is not None)
    docked.show_page("Cases")
    qtbot.wait(50)
    area, lines = docked.findChild(QScrollArea, "cases_area"), docked._top
    side_by_side = lines.Direction.RightToLeft
    assert lines.direction() == side_by_side
    for _ in range(2):
        docked.bottom.show()
        qtbot.waitUntil(docked.results.isVisible)
        qtbot.wait(100)
        assert area.horizontalScrollBar().maximum() == 0
        steps = [docked.findChild(QAbstractButton, f"step_{name}") for name in STEP_NAMES]
        assert [one for one in steps if one.width() < one.minimumSizeHint().width()] == []
        assert (lines.direction() == side_by_side) == (width > 1000)
        docked.results.fold_wanted.emit()
        qtbot.waitUntil(lambda: lines.direction() == side_by_side)
    docked.reading.leave()


STEP_NAMES = ("work_list", "read", "mask", "check")


@pytest.mark.night  # by day: a run is cancelled and gone on with, a team's error is looked at
def test_from_the_form_to_the_largest_error_of_the_worst_case(
    qtbot, window, ready, control, picture, canvas, predictions
):
    assert ready.batch_page.models.folder.currentText() == str(predictions)
    picture(window, "30_batch_form")
    control(ready, "batch_start")
    qtbot.waitUntil(lambda: not ready.jobs.is_running("batch"), timeout=60_000)
    assert "1 case needs attention" in ready.batch_page.state.text()
    assert BOTTOM_NAME in window.window.dock_widgets
    assert BOTTOM_NAME not in get_settings().application.plugin_widget_positions
    assert ready.results.isVisible()
    assert ready.results.case_ids() == ["B_1", "A_2", "A_1"]
    picture(window, "31_batch_finished")
    reason = ready.results.cases.rows.index(0, 10).data()
    assert reason.startswith("B_1.nii.gz")

    table, shown = ready.results.cases.table, ready.results.cases.rows
    where = table.visualRect(shown.index(1, 0)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    qtbot.waitUntil(lambda: ready.scene.layer(Role.AGREEMENT) is not None, timeout=15_000)
    qtbot.waitUntil(lambda: ready.session.case.is_loaded, timeout=15_000)
    assert ready.session.case_id == "A_2"
    # columns 20 to 25 of 3 x 6 rows; two columns off: 2 x 6 x 3 voxels of 1.28 mm3 = 0.05 ml
    assert "error 1 of 2 in the prediction" in ready.legend.text()
    assert "0.05 ml" in ready.legend.text()
    ready.scene.layer(Role.AGREEMENT).opacity = 1.0
    picture(window, "32_batch_review")
    pixels = canvas(window)
    for colour in ("#CCCCCC", "#D55E00", "#0072B2"):
        assert has_colour(pixels, colour), colour

    native = window.window._qt_viewer.canvas.native
    QTest.keyClick(native, Qt.Key.Key_G)
    assert "error 2 of 2" in ready.legend.text()
    QTest.keyClick(native, Qt.Key.Key_G, Qt.KeyboardModifier.ShiftModifier)
    assert "error 1 of 2" in ready.legend.text()

    control(ready.results, "results_fold")
    assert not ready.results.isVisible()
    ready.show_page("Batch scoring")  # a case that opens leads to Read
    control(ready, "batch_table")
    qtbot.waitUntil(ready.results.isVisible)
    # the case is open, and its picture behind the list: nothing was seen to happen
    ready.results.cases.case_chosen.emit("A_2")
    qtbot.waitUntil(lambda: ready.page != "Batch scoring")
    assert ready.session.case_id == "A_2"


@pytest.mark.night  # by day: tests/widgets/test_batch_page.py
@pytest.mark.usefixtures("quick_figures")
def test_a_run_can_be_cancelled_and_gone_on_with(qtbot, window, ready, control, picture):
    control(ready, "batch_start")
    control(ready, "batch_cancel")
    assert ready.batch_page.state.text().startswith("Cancelled")
    picture(window, "33_batch_cancelled")
    assert ready.jobs.wait(2.0)
    control(ready, "batch_start")
    qtbot.waitUntil(lambda: not ready.jobs.is_running("batch"), timeout=60_000)
    if ready.batch_page.taken.isVisible():
        picture(window, "34_batch_taken")
        control(ready, "batch_resume")
        qtbot.waitUntil(lambda: not ready.jobs.is_running("batch"), timeout=60_000)
    assert ready.batch_page.state.text().startswith("Finished")


@pytest.mark.night
@pytest.mark.usefixtures("quick_figures")
def test_page_and_table_fit_in_both_themes(qtbot, window, ready, control, picture):
    control(ready, "batch_start")
    qtbot.waitUntil(lambda: not ready.jobs.is_running("batch"))
    for theme in ("light", "dark"):
        window.theme = theme
        picture(window, f"35_batch_{theme}")
        assert ready.minimumSizeHint().width() <= ready.width()
        assert ready.pages.stack.currentWidget().height() <= ready.height()
        assert ready.results.width() < ready.window().width() - ready.width() + 20


@pytest.mark.night
def test_two_models_are_compared_filtered_reviewed_and_tagged(
    qtbot, window, ready, control, picture, predictions
):
    second = predictions.parent / "shifted"
    shutil.copytree(predictions, second)
    (second / "B_1.nii.gz").unlink()
    ready.session.set_reader("Ana")
    control(ready, "batch_add_model")
    line = ready.batch_page.models.lines[1]
    line.folder.setEditText(str(second))
    ready.batch_page.options.fields["n_resamples"].setValue(20)
    picture(window, "36_batch_two_models")
    control(ready, "batch_start")
    qtbot.waitUntil(lambda: not ready.jobs.is_running("batch"), timeout=120_000)
    assert "2 models" in ready.batch_page.result.text()
    cohort = ready.results.cohort
    assert "Rank at each weight of fairness" in cohort.page.toPlainText()
    assert cohort.figure.isEnabled()
    picture(window, "37_batch_compared")

    control(ready, "batch_table")
    rows, filters = ready.results.cases.rows, ready.results.cases.filters
    qtbot.waitUntil(lambda: rows.table.knows_failures, timeout=30_000)
    filters.status.setCurrentIndex(1)
    assert filters.count.text() == "2 of 3 shown"
    picture(window, "38_batch_filtered")
    filters.clear.click()

    ready.results_flow.open_case("A_2")
    qtbot.waitUntil(lambda: ready.scene.layer(Role.AGREEMENT) is not None, timeout=15_000)
    ready.show_page("Score")
    assert ready.score_page.errors.rows.rowCount() == 2
    control(ready, "score_tag_clip")
    qtbot.waitUntil(lambda: "clip" in [rows.index(row, 9).data() for row in range(3)])
    picture(window, "39_batch_errors_and_tags")
    ready.results.show_log()
    text = ready.results.log.lines.toPlainText()
    assert "Batch scoring" in text
    assert "A_2" not in text
    picture(window, "40_batch_log")


# ------------------------------------------------------------------- the leaderboard


@pytest.fixture
def ranking(small_data_set, tmp_path):
    """Two teams scored and ranked: one is right, the other shifted and without B_1."""
    expert = small_data_set / "segmentations" / "expert"
    tables = []
    for team, shift in (("right", 0), ("shifted", 2)):
        folder = tmp_path / "teams" / team
        folder.mkdir(parents=True)
        for path in sorted(expert.glob("*.nii.gz"))[: 3 if shift == 0 else 2]:
            image = nib.load(path)
            moved = np.roll(np.asarray(image.dataobj), shift, axis=0)
            nib.save(nib.Nifti1Image(moved, image.affine, image.header), folder / path.name)
        out = tmp_path / "scores" / team
        score_folders(expert, folder, out, ScoreSettings(n_resamples=0), name=team)
        tables.append(algorithm_table(str(out / "case_scores.csv")))
    settings = RankSettings(methods=(RankMethod.MEAN, RankMethod.RANK_MEAN), n_resamples=50)
    rank_files(RankInputs(algorithms=tuple(tables)), tmp_path / "ranks", settings)
    return tmp_path / "ranks"


@pytest.mark.usefixtures("quick_figures")
def test_from_the_menu_to_the_error_of_a_team(
    qtbot, window, docked, small_data_set, ranking, menu_item, picture, canvas, tmp_path
):
    docked.open_data_set(small_data_set)
    qtbot.waitUntil(lambda: docked.session.opened is not None, timeout=15_000)
    menu_item(window, "MAMA-MIA", "Leaderboard").trigger()
    view = docked.results.extra["Leaderboard"]
    qtbot.waitUntil(view.isVisible)
    assert docked.page == "Batch scoring"
    view.folder_chosen.emit(ranking)
    qtbot.waitUntil(lambda: view.teams_model.rowCount() == 2, timeout=10_000)
    assert view.sentence.text().startswith("right leads by mean-then-rank")
    assert "3 cases are too few for a conclusion" in view.sentence.text()
    assert [view.teams_model.index(row, 6).data() for row in (0, 1)] == ["0", "1"]
    # B_1 was not answered by the second team: it is the case to look at
    view.orders.setCurrentIndex(2)
    view.orders.activated.emit(2)
    assert view.case_ids()[0] == "B_1"
    # rows enough to work with, at 900 pixels
    qtbot.waitUntil(lambda: view.cases.viewport().height() > 5 * view.cases.rowHeight(0))
    picture(window, "35_leaderboard")

    row = view.case_ids().index("A_2")
    index = view.cases_model.index(row, 3)
    where = view.cases.visualRect(index).center()
    QTest.mouseClick(view.cases.viewport(), Qt.MouseButton.LeftButton, pos=where)
    qtbot.waitUntil(view.decline_masks.isVisible, timeout=15_000)
    assert "shifted" in view.masks_text.text()
    assert docked.session.case_id == "A_2"
    view.masks_chosen.emit("shifted", tmp_path / "teams" / "shifted")
    qtbot.waitUntil(lambda: docked.scene.layer(Role.AGREEMENT) is not None, timeout=15_000)
    assert docked.session.mask(Role.PREDICTION).name == "shifted"
    docked.scene.layer(Role.AGREEMENT).opacity = 1.0
    picture(window, "36_leaderboard_case")
    pixels = canvas(window)
    for colour in ("#CCCCCC", "#D55E00", "#0072B2"):
        assert has_colour(pixels, colour), colour

    # by keys: one to the left is the other team, whose folder lies beside
    view.cases.setFocus()
    QTest.keyClick(view.cases, Qt.Key.Key_Left)
    QTest.keyClick(view.cases, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: docked.session.mask(Role.PREDICTION).name == "right", timeout=15_000)
    assert "teams/right" in view.masks_text.text()
    # another case, and the keyboard stays in the table
    QTest.keyClick(view.cases, Qt.Key.Key_Up)
    QTest.keyClick(view.cases, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: docked.session.case_id != "A_2", timeout=15_000)
    qtbot.waitUntil(lambda: docked.session.case is not None and docked.session.case.is_loaded)
    assert view.has_keyboard()

    left = [
        dock
        for dock in window.window._qt_window.findChildren(QDockWidget)
        if dock.objectName() in ("layer list", "layer controls")
    ]
    assert len(left) == 2
    assert not any(dock.isVisible() for dock in left)
    # reading mode knows of the docks that were put away, and gives them back
    docked.reading.enter()
    assert not any(dock.isVisible() for dock in left)
    docked.reading.leave()
    assert all(dock.isVisible() for dock in left)
    docked.show_results("Leaderboard")
    docked.results.fold_wanted.emit()
    assert not docked.results.isVisible()
    assert all(dock.isVisible() for dock in left)
