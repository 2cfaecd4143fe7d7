import math
from dataclasses import replace

import pytest
from qtpy.QtWidgets import QLabel, QWidget

from napari_mamamia.core.grid import IDENTITY_WARNING
from napari_mamamia.core.records import CaseScore, ScoreStatus
from napari_mamamia.services.case.show_case import ShownScores
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.score.page import ScorePage


@pytest.fixture
def page(qtbot):
    made = ScorePage()
    qtbot.addWidget(made)
    made.need("")
    return made


def cell(page, role, what):
    return page.findChild(QLabel, f"score_{role}_{what}")


def shown(**fields):
    score = CaseScore("A_1", ScoreStatus.OK, **fields)
    return ShownScores({"prediction": score}, {"prediction": 4320.0}, 5000.0)


def test_numbers_carry_their_units(page):
    page.show_scores(shown(dsc=0.8731, hausdorff95_mm=4.21, assd_mm=0.714), "")
    assert cell(page, "prediction", "dsc").text() == "0.873"
    assert cell(page, "prediction", "hausdorff95_mm").text() == "4.2 mm"
    assert cell(page, "prediction", "assd_mm").text() == "0.71 mm"
    assert cell(page, "prediction", "ml").text() == "4.32 ml"
    assert cell(page, "prediction", "mm³").text() == "4,320 mm³"
    assert cell(page, "reference", "ml").text() == "5.00 ml"


def test_the_definition_stands_on_hover(page):
    page.show_scores(shown(hausdorff95_mm=4.2), "")
    tip = cell(page, "prediction", "hausdorff95_mm").toolTip()
    assert "(clinical)" in tip
    assert "95th percentile" in tip


def test_unknown_is_a_dash_with_the_reason_on_hover_and_never_zero(page):
    score = CaseScore("A_1", ScoreStatus.PREDICTION_EMPTY, reason="the prediction holds no voxel")
    page.show_scores(ShownScores({"prediction": score}, {"prediction": 0.0}, 5000.0), "")
    unknown = cell(page, "prediction", "hausdorff95_mm")
    assert unknown.text() == "–"
    assert unknown.toolTip() == "unknown: the prediction holds no voxel"
    assert cell(page, "prediction", "ml").text() == "0.00 ml"


def test_a_mask_that_is_not_there_has_dashes_that_say_so(page):
    page.show_scores(shown(dsc=0.9), "")
    assert cell(page, "refined", "dsc").text() == "–"
    assert "no refined mask" in cell(page, "refined", "dsc").toolTip()


def test_without_a_reference_only_volumes_are_known(page):
    page.show_scores(ShownScores({}, {"prediction": 4320.0}, None), "")
    assert cell(page, "prediction", "dsc").text() == "–"
    assert "no reference mask" in cell(page, "prediction", "dsc").toolTip()
    assert cell(page, "prediction", "ml").text() == "4.32 ml"
    assert cell(page, "reference", "ml").text() == "–"


def test_an_identity_grid_is_stated_below_the_volumes_once(page):
    numbers = ShownScores({}, {"prediction": 4320.0}, None, grid_warning=IDENTITY_WARNING)
    page.show_scores(numbers, "")
    assert "mm and ml are therefore counts of voxels" in page.remark.text()
    score = CaseScore("A_1", ScoreStatus.OK, dsc=0.9, warning=IDENTITY_WARNING)
    page.show_scores(replace(numbers, scores={"prediction": score}), "")
    assert page.remark.text().count("mm and ml are therefore counts of voxels") == 1


def is_there(page, name):
    return page.findChild(QWidget, name).isVisibleTo(page._content)


def test_without_a_reference_rows_that_say_nothing_go_and_one_line_says_why(page):
    page.need("")
    page.show_masks((Role.PREDICTION,))
    assert page.no_reference.text() == "This case has no reference mask, so only volumes are known."
    gone = ("score_name_dsc", "score_prediction_dsc", "score_title_reference", "score_agreement")
    assert not any(is_there(page, name) for name in gone)
    assert is_there(page, "score_prediction_ml")
    page.show_masks(())
    assert "nor any other mask yet" in page.no_reference.text()
    assert not is_there(page, "score_prediction_ml")
    page.show_masks((Role.REFERENCE,))
    assert page.no_reference.isHidden()
    assert all(is_there(page, name) for name in gone)


def test_a_case_without_reference_after_one_with_it_has_no_rows_of_dashes(qtbot, scored, world):
    world.has_reference = False
    scored.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: scored.session.case_id == "A_2" and scored.session.case.is_loaded)
    page = scored.score_page
    qtbot.waitUntil(lambda: not is_there(page, "score_name_dsc"))
    assert is_there(page, "score_no_reference")
    scored.predict()
    qtbot.waitUntil(lambda: scored.session.mask(Role.PREDICTION) is not None)
    assert "only volumes" in page.no_reference.text()
    assert is_there(page, "score_prediction_ml")
    assert not is_there(page, "score_name_dsc")


def test_infinity_is_not_shown_as_a_number(page):
    page.show_scores(shown(hausdorff95_mm=math.inf), "")
    assert cell(page, "prediction", "hausdorff95_mm").text() == "–"


@pytest.fixture
def scored(qtbot, opened):
    """The dock on page Score with a prediction equal to the reference."""
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    opened.show_page("Score")
    qtbot.waitUntil(lambda: cell(opened, "prediction", "dsc").text() != "–", timeout=5000)
    return opened


def test_the_masks_on_screen_are_scored_when_the_page_is_shown(scored):
    # the prediction is the reference: 48 voxels of 9 mm3
    assert cell(scored, "prediction", "dsc").text() == "1.000"
    assert cell(scored, "prediction", "hausdorff95_mm").text() == "0.0 mm"
    assert cell(scored, "prediction", "mm³").text() == "432 mm³"


def test_an_edit_is_scored_again(qtbot, scored):
    scored.editing.start(None)
    qtbot.waitUntil(lambda: cell(scored, "refined", "mm³").text() == "0 mm³", timeout=5000)
    layer = scored.scene.layer(Role.REFINED)
    layer.brush_size = 1
    grid = scored.session.case.grid
    layer.paint(grid.display_frame().point_to_display((3, 9, 12), grid.shape), 1)
    # one voxel of 9 mm3 in common: Dice 2 * 1 / (48 + 1) = 0.041
    qtbot.waitUntil(lambda: cell(scored, "refined", "mm³").text() == "9 mm³", timeout=5000)
    assert cell(scored, "refined", "dsc").text() == "0.041"


def test_an_undo_is_scored_again(qtbot, scored):
    scored.editing.start(None)
    qtbot.waitUntil(lambda: scored.scene.layer(Role.REFINED) is not None)
    layer = scored.scene.layer(Role.REFINED)
    layer.paint((3, 5, 5), 1)
    qtbot.waitUntil(
        lambda: cell(scored, "refined", "mm³").text() not in ("–", "0 mm³"), timeout=5000
    )
    layer.undo()
    qtbot.waitUntil(lambda: cell(scored, "refined", "mm³").text() == "0 mm³", timeout=5000)


def test_nothing_is_scored_while_the_page_is_not_shown(qtbot, opened):
    started = []
    opened.jobs.started.connect(lambda ticket: started.append(ticket.lane))
    opened.predict()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    qtbot.wait(500)
    assert "score" not in started


def test_of_a_reference_with_several_labels_one_can_be_chosen(qtbot, dock, world):
    world.reference_value = 2
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Score")
    labels = dock.score_page.labels
    assert labels.isVisible()
    assert [labels.itemText(k) for k in range(labels.count())] == [
        "all labels",
        "label 1",
        "label 2",
    ]
    labels.setCurrentIndex(2)
    # of the 48 voxels one carries label 1
    assert dock.session.mask(Role.REFERENCE).buffer.sum() == 47
    labels.setCurrentIndex(0)
    assert dock.session.mask(Role.REFERENCE).buffer.sum() == 48


def test_the_numbers_of_refine_count_the_label_that_was_chosen_here(qtbot, dock, world):
    world.reference_value = 2
    dock.open_data_set(world.root, "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Refine")
    dock.findChild(object, "refine_from_reference").click()
    cells = dock.refine_page.numbers.cells

    def shows(volume, dice):
        names = (("volume_mm3", "reference"), ("dice", "now"), ("dice", "start"))
        return [cells[name].text() for name in names] == [volume, dice, dice]

    # 48 voxels of 9 mm3, one of them of label 1; Dice of all with label 2: 2 * 47 / (48 + 47)
    qtbot.waitUntil(lambda: shows("0.43 ml", "1.00"))
    dock.score_page.labels.setCurrentIndex(2)
    qtbot.waitUntil(lambda: shows("0.42 ml", "0.99"))
    dock.score_page.labels.setCurrentIndex(0)
    qtbot.waitUntil(lambda: shows("0.43 ml", "1.00"))


def test_the_labels_offered_are_those_of_the_next_case(qtbot, dock, world):
    page = dock.score_page
    for case_id, value, offered in (("A_1", 1, 2), ("A_2", 3, 3), ("B_1", 1, 2)):
        world.reference_value = value
        dock.open_data_set(world.root, case_id)
        qtbot.waitUntil(lambda at=case_id: dock.session.case_id == at)
        qtbot.waitUntil(lambda: dock.session.case.is_loaded and bool(dock.session.masks))
        assert page.labels.count() == offered
        assert page._label_line.isHidden() == (value == 1)
        page.labels.setCurrentIndex(offered - 1)
