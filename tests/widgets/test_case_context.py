"""Baseline and follow-up number their cases alike: what is written goes to the case's own one."""

import shutil
import threading

import nibabel as nib
import numpy as np
import pytest
from napari.components import ViewerModel

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.workspace.preferences import Preferences, save_preferences
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.predict.predict import predict_case
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.dock.dock import MamamiaDock


class Gate:
    """Predicts only once `let` is set, so that a test can switch data sets meanwhile."""

    def __init__(self):
        self.let = threading.Event()
        self.let.set()

    def predict_case(self, case, segmenter, prompt=None):
        while not self.let.wait(0.01):
            report_progress(0, 1, "Waiting for the test")
        return predict_case(case, segmenter, prompt)


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def two(small_data_set, tmp_path):
    """Baseline and follow-up: the same ids, other voxels, a workspace beside each."""
    baseline = small_data_set.rename(tmp_path / "baseline")
    followup = tmp_path / "follow-up"
    shutil.copytree(baseline, followup)
    for path in (followup / "images").rglob("*.nii.gz"):
        image = nib.load(path)
        moved = np.roll(np.asanyarray(image.dataobj), 3, axis=0)
        nib.save(nib.Nifti1Image(moved, image.affine, image.header), path)
    return baseline, followup


@pytest.fixture
def panel(qtbot, two, gate):
    save_preferences(Preferences(reader="Ana"))
    made = MamamiaDock(ViewerModel(), Services().replacing(predict_case=gate.predict_case))
    qtbot.addWidget(made)
    made.resize(360, 900)
    made.show()
    made.open_data_set(two[0], "A_2")
    qtbot.waitUntil(lambda: made.session.case is not None and made.session.case.is_loaded)
    yield made
    gate.let.set()
    made.jobs.cancel_all()
    made.jobs.wait(20)
    made.close_down()


def contents(data_set):
    """Return the bytes of every file of the workspace beside a data set, by its name in there."""
    root = data_set.with_name(f"{data_set.name}-workspace")
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".part"  # being written
    }


def list_other(qtbot, panel, two):
    panel.open_data_set(two[1])
    qtbot.waitUntil(lambda: panel.session.opened.data_set.root == two[1])


def open_other(qtbot, panel, two):
    panel.open_data_set(two[1], "A_2")
    qtbot.waitUntil(lambda: panel.session.case_key == (two[1], "A_2"))
    qtbot.waitUntil(lambda: panel.session.case.is_loaded)


def at_rest(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.jobs._newest, timeout=20_000)


def start_edit(qtbot, panel):
    panel.show_page("Refine")
    panel.refine_page.start_wanted.emit(Role.REFERENCE)
    qtbot.waitUntil(lambda: panel.editing.live is not None)


def paint_and_save(qtbot, panel):
    start_edit(qtbot, panel)
    panel.editing.layer.data[2, 10, 10] = 1
    panel.editing.save()


WRITES = {
    "predict": (lambda _qtbot, panel: panel.predict(), "predictions/kinetic/A_2.nii.gz"),
    "refine": (paint_and_save, "refined/Ana/A_2.nii.gz"),
    "accept": (
        lambda qtbot, panel: (start_edit(qtbot, panel), panel.accepting.accept()),
        "refined/Ana/A_2.nii.gz",
    ),
    "tag": (lambda _qtbot, panel: panel.score_page.tag_wanted.emit("clip", True), ""),
}


@pytest.mark.parametrize("name", WRITES)
def test_after_another_data_set_was_listed_a_write_goes_to_that_of_the_open_case(
    qtbot, panel, two, name
):
    write, file = WRITES[name]
    list_other(qtbot, panel, two)
    before = contents(two[1])
    write(qtbot, panel)
    qtbot.waitUntil(lambda: any(file in own and "writer" not in own for own in contents(two[0])))
    at_rest(qtbot, panel)
    assert contents(two[1]) == before


def test_a_prediction_that_began_before_goes_to_its_own_data_set_and_is_not_shown_on_another_case(
    qtbot, panel, two, gate
):
    gate.let.clear()
    panel.predict()
    qtbot.waitUntil(lambda: panel.jobs.is_running("predict"))
    open_other(qtbot, panel, two)
    gate.let.set()
    at_rest(qtbot, panel)
    assert "predictions/kinetic/A_2.nii.gz" in contents(two[0])
    assert not any(name.startswith("predictions") for name in contents(two[1]))
    assert panel.session.mask(Role.PREDICTION) is None
    assert panel.cases_page.model.index(1, 3).data() in ("", "–", None)


def test_predict_all_that_began_before_goes_to_its_own_data_set(qtbot, panel, two):
    panel.show_page("Predict")
    panel.predict_page.all.click()
    list_other(qtbot, panel, two)
    at_rest(qtbot, panel)
    masks = [name for name in contents(two[0]) if name.endswith(".nii.gz")]
    assert masks == [f"predictions/kinetic/{case}.nii.gz" for case in ("A_1", "A_2", "B_1")]
    assert not any(name.startswith("predictions") for name in contents(two[1]))


def test_a_mask_saved_by_itself_after_the_switch_goes_to_its_own_data_set_and_reader(
    qtbot, panel, two
):
    start_edit(qtbot, panel)
    list_other(qtbot, panel, two)
    panel.editing.layer.data[2, 10, 10] = 1
    panel.editing.saving.look()
    panel.editing.saving.autosave.timeout.emit()
    at_rest(qtbot, panel)
    assert "refined/Ana/A_2.nii.gz" in contents(two[0])
    assert not any(name.startswith("refined") for name in contents(two[1]))


def test_a_reader_who_changes_while_a_case_opens_does_not_get_the_other_readers_mask(
    qtbot, panel, two
):
    paint_and_save(qtbot, panel)
    at_rest(qtbot, panel)
    panel.cases_flow.open_case("A_1")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_1")
    at_rest(qtbot, panel)
    panel.cases_flow.open_case("A_2")  # read for Ana
    panel.session.set_reader("Bo")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    at_rest(qtbot, panel)
    assert panel.session.context.reader == "Bo"
    assert panel.session.mask(Role.REFINED) is None


def test_an_export_that_waits_for_saving_exports_the_data_set_that_its_page_named(
    qtbot, panel, two, monkeypatch
):
    asked, exported = [], []
    monkeypatch.setattr(
        panel.export_flow,
        "_export_masks",
        lambda opened, wanted: exported.append(opened.data_set.root),
    )
    with monkeypatch.context() as waiting:
        waiting.setattr(panel.editing, "save_if_needed", asked.append)
        panel.export_page.export_wanted.emit(None)
    list_other(qtbot, panel, two)
    asked[0](True)  # saved
    assert exported == [two[0]]


def test_the_header_names_the_data_set_of_a_case_that_is_not_of_the_listed_one(qtbot, panel, two):
    assert panel.header.case.text() == "A_2"
    list_other(qtbot, panel, two)
    assert panel.header.case.text() == "A_2 · baseline"
    assert panel.session.position == ""
    assert panel.session.neighbour(1) == "A_1"


def test_tags_on_the_page_score_are_those_of_the_open_cases_own_data_set(qtbot, panel, two):
    panel.score_page.tag_wanted.emit("clip", True)
    qtbot.waitUntil(lambda: bool(panel.tagging.of("A_2", panel.session.opened)))
    list_other(qtbot, panel, two)
    at_rest(qtbot, panel)
    assert panel.tagging.of("A_2", panel.session.opened) == ()
    (tag,) = panel.tagging.of("A_2", panel.session.context.opened)
    assert tag.tag == "clip"


def test_typed_times_are_not_taken_for_the_case_of_the_same_id_in_another_data_set(
    qtbot, panel, two
):
    state = panel.kinetics.case
    assert state.type_times((0.0, 60.0, 120.0, 300.0)) == ""
    assert state.source == "entered for this session"
    open_other(qtbot, panel, two)
    assert state.case.times_s == (0.0, 90.0, 180.0, 420.0)


def test_another_workspace_is_chosen_for_the_listed_data_set_without_its_case_being_swapped(
    qtbot, panel, two, tmp_path
):
    list_other(qtbot, panel, two)
    panel.cases_page.workspace_chosen.emit(tmp_path / "elsewhere")
    qtbot.waitUntil(
        lambda: panel.session.opened.workspace.root == tmp_path / "elsewhere", timeout=10_000
    )
    at_rest(qtbot, panel)
    assert panel.session.context.opened.data_set.root == two[0]


def test_a_case_cannot_be_joined_with_the_context_of_another(panel, two):
    opened = open_data_set(two[1])
    with pytest.raises(CaseError, match="A_1"):
        panel.session.set_case(panel.session.case, CaseContext(opened, "A_1"), [])
    with pytest.raises(CaseError):
        CaseContext(opened, "nobody")


# ------------------------------------------------------- a prediction that exists


def offers(panel):
    return [one.text() for one in panel.predict_page.help.buttons if one.isVisible()]


@pytest.fixture
def predicted(qtbot, panel, two):
    panel.predict()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None)
    at_rest(qtbot, panel)
    target = two[0].with_name("baseline-workspace") / "predictions" / "kinetic" / "A_2.nii.gz"
    shutil.copy(two[0] / "segmentations" / "expert" / "A_2.nii.gz", target)  # an older model's
    panel.predict_page.start.click()
    qtbot.waitUntil(lambda: offers(panel) == ["Replace prediction", "Keep both"])
    return panel


def test_a_prediction_that_exists_is_told_of_and_stays_until_that_is_answered(predicted, two):
    said = predicted.predict_page.help.said.text()
    assert "kinetic's prediction of A_2 from 20" in said
    expert = (two[0] / "segmentations" / "expert" / "A_2.nii.gz").read_bytes()
    assert contents(two[0])["predictions/kinetic/A_2.nii.gz"] == expert


def test_keep_both_leaves_the_older_and_names_the_new_one(qtbot, predicted, two):
    before = contents(two[0])["predictions/kinetic/A_2.nii.gz"]
    predicted.predict_page.help.buttons[1].click()
    qtbot.waitUntil(lambda: predicted.session.mask(Role.PREDICTION).name == "kinetic 2")
    at_rest(qtbot, predicted)
    assert contents(two[0])["predictions/kinetic/A_2.nii.gz"] == before
    assert "predictions/kinetic 2/A_2.json" in contents(two[0])
    assert "kinetic 2" in predicted.cases_page.model.index(1, 3).data()


def test_replace_it_replaces_the_one_that_was_asked_about(qtbot, predicted, two):
    before = contents(two[0])["predictions/kinetic/A_2.nii.gz"]
    predicted.predict_page.help.buttons[0].click()
    at_rest(qtbot, predicted)
    after = contents(two[0])["predictions/kinetic/A_2.nii.gz"]
    assert after != before
    assert offers(predicted) == []


def test_a_prediction_written_by_somebody_else_meanwhile_is_not_replaced(
    qtbot, predicted, two, gate
):
    gate.let.clear()
    predicted.predict_page.help.buttons[0].click()
    target = two[0].with_name("baseline-workspace") / "predictions" / "kinetic" / "A_2.nii.gz"
    shutil.copy(two[0] / "images" / "A_2" / "A_2_0000.nii.gz", target)
    before = target.read_bytes()
    gate.let.set()
    qtbot.waitUntil(lambda: offers(predicted) == ["Replace prediction", "Keep both"])
    assert target.read_bytes() == before
    assert "not saved" in predicted.predict_page.result.text()
    predicted.predict_page.help.buttons[1].click()
    qtbot.waitUntil(lambda: "predictions/kinetic 2/A_2.json" in contents(two[0]))
    assert target.read_bytes() == before


# ------------------------------------------------------- what others write is shown


def test_after_predict_all_the_open_case_shows_its_prediction(qtbot, panel):
    panel.show_page("Predict")
    panel.predict_page.all.click()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None, timeout=20_000)
    assert panel.scene.layer(Role.PREDICTION).visible
    assert panel.session.mask(Role.PREDICTION).buffer.any()


def test_a_prediction_of_another_process_is_shown_when_the_window_is_used_again(qtbot, panel, two):
    folder = two[0].with_name("baseline-workspace") / "predictions" / "other model"
    folder.mkdir(parents=True)
    shutil.copy(two[0] / "segmentations" / "expert" / "A_2.nii.gz", folder)
    panel.refresh.look()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None)
    assert panel.session.mask(Role.PREDICTION).name == "other model"
    assert "other model" in panel.cases_page.model.index(1, 3).data()


def test_a_prediction_that_the_user_took_away_is_not_brought_back(qtbot, panel):
    panel.predict()
    qtbot.waitUntil(lambda: panel.session.mask(Role.PREDICTION) is not None)
    at_rest(qtbot, panel)
    panel.viewer.layers.remove(panel.scene.layer(Role.PREDICTION))
    panel.refresh.look()
    at_rest(qtbot, panel)
    assert panel.session.mask(Role.PREDICTION) is None
