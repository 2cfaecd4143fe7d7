import threading

import numpy as np
import pytest
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, Qt
from qtpy.QtWidgets import QApplication, QWidget

from napari_mamamia.scoring.case.profiles import CLINICAL, OFFICIAL_CODE, PAPER
from napari_mamamia.services.case.show_case import Counting
from napari_mamamia.widgets.base.layers import Role, array_of
from napari_mamamia.widgets.controls.colours import AGREEMENT_COLOURS


@pytest.fixture
def compared(qtbot, opened, world, new_mask):
    """A case whose prediction lacks a column of the reference and has a voxel too many."""
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    buffer = opened.session.mask(Role.PREDICTION).buffer
    buffer[...] = new_mask(opened.session.case.grid)
    buffer[:, :, 10] = 0
    buffer[0, 2, 2] = 1
    return opened


def press_show(qtbot, dock):
    dock.show_page("Score")
    dock.findChild(QWidget, "score_agreement").click()
    qtbot.waitUntil(lambda: dock.scene.layer(Role.AGREEMENT) is not None)
    return dock.scene.layer(Role.AGREEMENT)


def voxel_on_screen(dock):
    grid = dock.session.case.grid
    shown = dock.viewer.dims.current_step[-3:]
    return tuple(round(i) for i in grid.display_frame().point_from_display(shown, grid.shape))


def test_the_button_shows_the_three_kinds_in_their_colours(qtbot, compared):
    layer = press_show(qtbot, compared)
    array = array_of(layer)
    # the blob has 2 x 4 x 6 voxels, one column of 2 x 4 is missed, one voxel is false
    assert np.bincount(array.ravel(), minlength=4)[1:].tolist() == [40, 1, 8]
    kinds = ((1, "correct"), (2, "false"), (3, "missed"))
    drawn = {name: layer.colormap.map(value) for value, name in kinds}
    for name, colour in drawn.items():
        hexadecimal = AGREEMENT_COLOURS[name]
        rgb = [int(hexadecimal[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        assert np.ravel(colour)[:3] == pytest.approx(rgb, abs=0.01), name


def test_outlines_make_way_and_come_back(qtbot, compared):
    press_show(qtbot, compared)
    masks = [compared.scene.layer(role) for role in (Role.REFERENCE, Role.PREDICTION)]
    assert [mask.visible for mask in masks] == [False, False]
    compared.findChild(QWidget, "score_agreement").click()
    assert compared.scene.layer(Role.AGREEMENT) is None
    assert [mask.visible for mask in masks] == [True, True]
    assert not compared.legend.isVisible()


def test_it_opens_at_the_largest_error_and_the_key_steps_on_and_round(qtbot, compared):
    press_show(qtbot, compared)
    assert voxel_on_screen(compared)[2] == 10
    assert "error 1 of 2 in the prediction: missed 0.07 ml" in compared.legend.text()
    compared.reviewing.next_error()
    assert voxel_on_screen(compared) == (0, 2, 2)
    assert "error 2 of 2 in the prediction: false positive 0.01 ml" in compared.legend.text()
    compared.reviewing.next_error()
    assert voxel_on_screen(compared)[2] == 10


def test_the_errors_go_round_from_the_last_to_the_first_and_back(qtbot, compared):
    press_show(qtbot, compared)
    reviewing, count = compared.reviewing, 2
    places = [reviewing._at]
    for turn in (reviewing.next_error,) * count + (reviewing.previous_error,) * count:
        turn()
        places.append(reviewing._at)
    there = [*range(count), 0]
    assert places == [*there, *there[-2::-1]]


def test_the_key_shows_the_colours_first(qtbot, compared):
    compared.reviewing.next_error()
    qtbot.waitUntil(lambda: compared.scene.layer(Role.AGREEMENT) is not None)
    assert compared.score_page.agreement.isChecked()


def test_an_edit_is_compared_anew_in_the_same_layer(qtbot, compared):
    layer = press_show(qtbot, compared)
    compared.session.mask(Role.PREDICTION).buffer[0, 2, 2] = 0
    compared.session.masks_changed.emit()
    qtbot.waitUntil(lambda: not (array_of(layer) == 2).any(), timeout=3000)
    assert compared.scene.layer(Role.AGREEMENT) is layer
    assert "of 1 in the prediction" in compared.legend.text()


def test_an_edit_that_removes_the_last_error_shows_the_one_before(qtbot, compared):
    layer = press_show(qtbot, compared)
    compared.reviewing.next_error()
    assert "error 2 of 2" in compared.legend.text()
    compared.session.mask(Role.PREDICTION).buffer[0, 2, 2] = 0
    compared.session.masks_changed.emit()
    qtbot.waitUntil(lambda: not (array_of(layer) == 2).any())
    assert "error 1 of 1" in compared.legend.text()


def test_without_a_reference_it_says_what_is_missing(qtbot, dock, world):
    world.has_reference = False
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.reviewing.turn_on()
    assert "no reference" in dock.header.message.text()
    assert not dock.score_page.agreement.isChecked()


def test_a_deleted_layer_turns_it_off(qtbot, compared):
    layer = press_show(qtbot, compared)
    compared.viewer.layers.remove(layer)
    assert not compared.reviewing.is_on
    assert compared.scene.layer(Role.REFERENCE).visible


def test_the_next_case_is_compared_too_as_long_as_it_is_on(qtbot, compared, world, new_mask):
    world.predictions["A_2"] = new_mask(compared.session.case.grid)
    press_show(qtbot, compared)
    compared.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: compared.session.case_id == "A_2")
    qtbot.waitUntil(lambda: "prediction = reference" in compared.legend.text(), timeout=5000)
    compared.reviewing.turn_off()
    assert compared.scene.layer(Role.REFERENCE).visible


def test_a_comparison_that_ends_late_does_not_show_its_case_in_the_next(qtbot, compared):
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    known = compared.reviewing._services

    def compare(*masks):
        begun.set()
        go.wait(10)
        try:
            return known.compare_masks(*masks)
        finally:
            ended.set()

    compared.reviewing._services = known.replacing(compare_masks=compare)
    compared.reviewing.turn_on()
    qtbot.waitUntil(begun.is_set)
    compared.cases_flow.open_case("B_1")  # without a prediction there is nothing to compare
    qtbot.waitUntil(lambda: "no mask to compare" in compared.legend.text())
    go.set()
    qtbot.waitUntil(ended.is_set)
    qtbot.wait(100)
    assert compared.scene.layer(Role.AGREEMENT) is None
    assert "no mask to compare" in compared.legend.text()


def test_masks_held_hidden_hide_the_colours_too(qtbot, compared):
    layer = press_show(qtbot, compared)
    compared.scene.set_masks_hidden(True)
    assert not layer.visible
    compared.scene.set_masks_hidden(False)
    assert layer.visible
    assert not compared.scene.layer(Role.REFERENCE).visible


# ------------------------------------------------------------- list of errors, both keys


def key(dock, name):
    dock._list_actions()[name]()


def cells(dock):
    rows = dock.score_page.errors.rows
    return [[rows.index(r, c).data() for c in range(3)] for r in range(rows.rowCount())]


def test_the_errors_are_listed_largest_first_with_volume_and_reach(qtbot, compared):
    press_show(qtbot, compared)
    # voxels of 3 x 2 x 1.5 mm = 9 mm3; the missed column (x = 10) lies one voxel of 1.5 mm from
    # the prediction; the false voxel (0, 2, 2) lies 2 slices of 3 mm, 6 rows of 2 mm and 8 columns
    # of 1.5 mm from the reference's corner (2, 8, 10): sqrt(6^2 + 12^2 + 12^2) = 18 mm
    assert cells(compared) == [["1  missed", "72.0", "1.5"], ["2  false", "9.0", "18.0"]]
    assert "2 errors: 1 false positive, 1 missed" in compared.score_page.errors.note.text()
    assert compared.score_page.errors.isVisible()


def test_a_click_in_the_list_goes_to_the_error_and_marks_it(qtbot, compared):
    press_show(qtbot, compared)
    errors = compared.score_page.errors
    where = errors.table.visualRect(errors.rows.index(1, 0)).center()
    qtbot.mouseClick(errors.table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert voxel_on_screen(compared) == (0, 2, 2)
    assert errors.table.selectionModel().selectedRows()[0].row() == 1
    assert "error 2 of 2" in compared.legend.text()


def test_with_the_agreement_shown_the_lesion_key_goes_to_the_next_error_and_shift_back(
    qtbot, compared
):
    press_show(qtbot, compared)
    key(compared, "lesion")
    assert voxel_on_screen(compared) == (0, 2, 2)
    key(compared, "previous_error")
    assert voxel_on_screen(compared)[2] == 10
    key(compared, "previous_error")
    assert voxel_on_screen(compared) == (0, 2, 2)


def test_without_the_agreement_the_lesion_key_goes_to_the_tumour(qtbot, compared):
    compared.scene.view.go_to((0, 0, 0))
    key(compared, "lesion")
    qtbot.waitUntil(lambda: voxel_on_screen(compared)[0] in (2, 3))
    assert not compared.reviewing.is_on


def test_the_list_goes_with_the_colours(qtbot, compared):
    press_show(qtbot, compared)
    compared.reviewing.turn_off()
    assert not compared.score_page.errors.isVisible()
    assert not compared.score_page.next_error.isVisible()


def test_equal_masks_have_an_empty_list_that_says_so(qtbot, compared, new_mask):
    compared.session.mask(Role.PREDICTION).buffer[...] = new_mask(compared.session.case.grid)
    press_show(qtbot, compared)
    assert (
        compared.score_page.errors.note.text() == "There is no error, because the masks are equal."
    )
    assert not compared.score_page.errors.table.isVisible()


# ------------------------------------------------------------- what counts as tumour


@pytest.mark.parametrize(("profile", "correct"), [(CLINICAL, 40), (PAPER, 20), (OFFICIAL_CODE, 20)])
def test_the_colours_follow_the_profile_of_the_scoring_that_is_shown(
    qtbot, compared, profile, correct
):
    # of 40 common voxels in two planes, those of one plane get the value 2, as a refined mask with
    # several labels has them: the challenge's Dice takes 1 alone for tumour
    buffer = compared.session.mask(Role.PREDICTION).buffer
    buffer[2][buffer[2] == 1] = 2
    compared.session.counting = Counting(profile)
    array = array_of(press_show(qtbot, compared))
    # the missed column has 8 voxels, the false voxel lies elsewhere
    counts = np.bincount(array.ravel(), minlength=4)[1:].tolist()
    assert counts == [correct, 1, 8 + 40 - correct]


def test_a_case_that_is_opened_counts_every_label_again(qtbot, compared):
    compared.session.counting = Counting(PAPER)
    compared.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: compared.session.case_id == "A_2")
    assert compared.session.counting == Counting(CLINICAL)


def test_the_legend_on_a_low_picture_leaves_what_the_picture_is_free(qtbot, viewer, dock):
    """With the results below the picture at text of 150 % it lay over *post 1 · 120 s*."""
    legend, overlays = dock.legend, viewer.canvas.overlays
    canvas = legend._canvas = QWidget()
    qtbot.addWidget(canvas)
    overlays["mamamia_phase"].text, overlays["mamamia_phase"].visible = "phase 1\n120 s", True
    overlays["mamamia_phase"].font_size = 17
    lines = [f"<span>■</span> {one}" for one in ("correct", "false positive", "missed")]
    whole = "<br>".join([*lines, "error 2 of 16 in the prediction: false positive 0.08 ml"])
    font = legend.font()
    font.setPointSize(14)
    legend.setFont(font)
    legend.setParent(canvas)
    shown = {}
    for high in (371, 155, 120, 371):
        canvas.resize(1000, high)
        legend.show_text(whole)
        assert legend.y() >= 2 * 17 * 96 / 72 * 1.2, high
        assert legend.geometry().bottom() <= high
        assert "error 2 of 16 in the prediction: false positive 0.08 ml" in legend.text()
        shown[high] = legend.text()
    assert shown[371] == whole
    assert all(word in shown[155] for word in ("correct", "missed")), shown[155]
    assert shown[155] != whole


def test_the_legend_of_a_panel_that_is_gone_heeds_no_text_of_the_viewer(qtbot, viewer, dock):
    legend = dock.legend
    legend._canvas = dock  # as in a window, which keeps its overlays when the panel goes
    legend.show_text("a legend")
    overlay = viewer.canvas.overlays["mamamia_map"]
    overlay.font_size += 1
    legend.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not isalive(legend)
    overlay.font_size += 1
