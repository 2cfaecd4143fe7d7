import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Candidate, Click
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.prompts import box_around_drag


@pytest.fixture
def predicted(qtbot, opened):
    opened.show_page("Predict")
    opened.predict_page.start.click()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    return opened


def test_the_page_names_model_note_needs_and_phases(opened):
    page = opened.predict_page
    assert page.card.title.text() == "Kinetic threshold"
    assert page.card.note.text() == "kinetic threshold, not a trained model"
    assert "not known before the first run" in page.card.needs.text()
    assert page.card.inputs.texts == (
        "before contrast ← pre",
        "early ← post 2 (180 s)",
        "no late phase",
    )


def test_a_case_that_is_still_opening_cannot_be_predicted_yet(qtbot, dock):
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None)
    if not dock.session.case.is_loaded:
        assert "still opening" in dock.predict_page.card.problem.text()
        assert not dock.predict_page.start.isEnabled()
    qtbot.waitUntil(lambda: dock.predict_page.start.isEnabled())


def test_predict_shows_saves_and_lists(predicted, world):
    assert predicted.scene.layer(Role.PREDICTION).visible
    assert ("save_prediction", "A_1", 48) in world.calls
    assert predicted.predict_page.list.count() == 2
    assert "Candidates: 2" in predicted.predict_page.result.text()
    assert "a note" in predicted.predict_page.result.text()
    assert predicted.cases_page.model.index(0, 3).data() == "kinetic"


def test_the_list_says_what_else_a_candidate_may_be(opened):
    page = opened.predict_page
    said = ("enhances by 90 % at 147 s", "0.5 ml, 9 mm long", "it lies at the chest wall: muscle?")
    one = Candidate(1, Box((0, 0, 0), (1, 1, 1)), np.ones((1, 1, 1), bool), 500.0, 1.0, said)
    page.show_result("1 candidate", (one,), 0, "candidate 1: muscle?")
    assert page.unsure.text().startswith("Is this the tumour? candidate 1: muscle?")
    assert not page.unsure.isHidden()
    assert page.list.item(0).text().splitlines() == ["1   0.50 ml", said[0], said[2]]


def test_a_click_on_a_candidate_makes_it_the_prediction_and_goes_there(qtbot, predicted, world):
    predicted.predict_page.list.setCurrentRow(1)
    qtbot.waitUntil(lambda: predicted.session.mask(Role.PREDICTION).buffer.sum() == 4)
    assert predicted.viewer.dims.current_step[1] == 5
    assert world.calls[-1] == ("save_prediction", "A_1", 4)
    made = predicted.session.mask(Role.PREDICTION).provenance
    assert ("candidate_shown", 2) in made.parameters
    assert predicted.predict_page.list.currentRow() == 1


def test_a_click_on_a_candidate_is_told_and_keeps_the_doubt(qtbot, predicted):
    predicting = predicted.predicting
    doubtful = replace(predicting._answer.prediction, unsure="candidate 1: muscle?")
    predicting._answer = replace(predicting._answer, prediction=doubtful)
    predicted.predict_page.list.setCurrentRow(1)
    qtbot.waitUntil(lambda: predicted.session.mask(Role.PREDICTION).buffer.sum() == 4)
    assert "Candidate 2 is now the prediction" in predicted.header.message.text()
    assert not predicted.predict_page.unsure.isHidden()
    assert "muscle?" in predicted.predict_page.unsure.text()
    predicted.predict_page.list.setCurrentRow(0)
    qtbot.waitUntil(lambda: predicted.session.mask(Role.PREDICTION).buffer.sum() != 4)
    assert "Candidate 1 is now the prediction" in predicted.header.message.text()


def test_while_it_runs_the_button_stops_it(opened, world):
    go_on = threading.Event()
    world.before_predicting = lambda: go_on.wait(10)
    opened.show_page("Predict")
    opened.predict_page.start.click()
    assert opened.predict_page.cancel.isVisible()
    assert not opened.predict_page.start.isVisible()
    opened.predict_page.cancel.click()
    go_on.set()
    assert opened.predict_page.start.isVisible()
    assert opened.session.mask(Role.PREDICTION) is None
    assert "stopped" in opened.predict_page.result.text()


def test_a_prediction_that_is_being_saved_is_shown_although_it_was_stopped(qtbot, opened, world):
    """Stopped there, it once said that nothing was changed, and the next run found it saved."""
    saving, go_on = threading.Event(), threading.Event()

    def wait():
        saving.set()
        go_on.wait(10)

    world.before_keeping = wait
    opened.show_page("Predict")
    opened.predict_page.start.click()
    qtbot.waitUntil(saving.is_set)
    opened.predict_page.cancel.click()
    assert "stopped" not in opened.predict_page.result.text()
    go_on.set()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    assert "saved" in opened.predict_page.result.text()
    assert opened.predict_page.start.isVisible()


def test_a_failed_prediction_says_why_and_can_be_started_again(qtbot, opened, world):
    world.predict_error = ModelError("phase 0 is constant: check the export")
    opened.predict_page.start.click()
    qtbot.waitUntil(lambda: "phase 0 is constant" in opened.header.message.text())
    world.predict_error = None
    opened.predict_page.start.click()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    assert opened.header.message.text() == ""


def test_a_prediction_that_cannot_be_saved_is_shown_all_the_same(qtbot, opened, world, disk_full):
    world.save_error = disk_full
    opened.predict_page.start.click()
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    assert "not saved" in opened.header.message.text()
    assert "not saved" in opened.predict_page.result.text()


def test_an_answer_for_a_case_that_was_left_is_dropped(qtbot, opened):
    opened.predict_page.start.click()
    opened.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: opened.session.case_id == "A_2")
    qtbot.waitUntil(lambda: not opened.jobs.is_running("predict"))
    assert opened.session.mask(Role.PREDICTION) is None


def test_the_command_starts_a_prediction(qtbot, opened):
    opened.predict()
    assert opened.page == "Predict"
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)


@dataclass
class Mouse:
    type: str
    position: tuple
    button: int = 1
    handled: bool = False


def press_and_drag(dock, *voxels):
    """Press at the first voxel (z, y, x), move over the others, let go."""
    grid = dock.session.case.grid
    frame = grid.display_frame()
    spacing = frame.per_axis(grid.spacing_mm)
    points = [
        (
            1.0,
            *(i * mm for i, mm in zip(frame.point_to_display(v, grid.shape), spacing, strict=True)),
        )
        for v in voxels
    ]
    event = Mouse("mouse_press", points[0])
    during = dock.prompts._follow_drag(dock.viewer, event)
    next(during, None)
    for point in points[1:]:
        event.type, event.position = "mouse_move", point
        next(during, None)
    event.type = "mouse_release"
    next(during, None)


def test_a_click_in_the_image_is_a_prompt(qtbot, opened, world):
    opened.predict_page.at_click.click()
    assert not opened.viewer.scene.camera.mouse_pan
    press_and_drag(opened, (3, 9, 12))
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    assert ("predict", "A_1", Click((3, 9, 12))) in world.calls
    assert not opened.predict_page.at_click.isChecked()
    assert opened.viewer.scene.camera.mouse_pan


def test_a_box_in_the_image_is_a_prompt(qtbot, opened, world):
    opened.predict_page.in_box.click()
    press_and_drag(opened, (3, 6, 8), (3, 10, 12), (3, 12, 17))
    qtbot.waitUntil(lambda: opened.session.mask(Role.PREDICTION) is not None)
    prompt = next(call for call in world.calls if call[0] == "predict")[2]
    assert isinstance(prompt, BoxPrompt)
    assert prompt.box == box_around_drag((3, 6, 8), (3, 12, 17), opened.session.case.grid)
    assert len(opened.viewer.layers) == 3


def test_without_a_prompt_button_a_click_in_the_image_does_nothing(opened, world):
    press_and_drag(opened, (3, 9, 12))
    assert not any(call[0] == "predict" for call in world.calls)


def test_waiting_for_a_prompt_puts_the_brush_down(qtbot, opened):
    opened.editing.start(Role.REFERENCE)
    qtbot.waitUntil(lambda: opened.scene.layer(Role.REFINED) is not None)
    opened.predict_page.at_click.click()
    assert opened.scene.layer(Role.REFINED).mode == "pan_zoom"


def test_a_dragged_box_is_as_deep_as_its_longer_side():
    # 3 mm slices, 2 mm rows, 1.5 mm columns: rows 6 to 12 are 14 mm, columns 8 to 17 are 15 mm.
    # Half of 15 mm is 2.5 slices, rounded to 2: slices 1 to 5 around slice 3.
    grid = Grid((20, 40, 40), np.diag([-1.5, 2.0, 3.0, 1.0]))
    assert box_around_drag((3, 6, 8), (3, 12, 17), grid) == Box((1, 6, 8), (6, 13, 18))


def test_a_dragged_box_ends_at_the_edge_of_the_volume():
    grid = Grid((4, 40, 40), np.diag([-1.0, 1.0, 1.0, 1.0]))
    assert box_around_drag((0, 5, 5), (0, 30, 39), grid) == Box((0, 5, 5), (4, 31, 40))
