import threading
from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.progress import Progress
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.scoring.results import ModelScores, Resampling
from napari_mamamia.services.output_folder import Existing
from napari_mamamia.services.score import ScoreSummary
from napari_mamamia.services.show_case import CaseMasks, OpenMask
from napari_mamamia.widgets.dock import MamamiaDock
from napari_mamamia.widgets.layers import Role


class FakeScoring:
    """Scores three cases; `error` ends the run, `gate` holds it until a test opens it."""

    def __init__(self, world, mask):
        self.world, self.mask = world, mask
        self.error = None
        self.gate = threading.Event()
        self.gate.set()
        self.closed = threading.Event()
        self.asked = []
        self.has_report = False

    def find_pairs(self, reference, prediction):
        return {k: (reference / f"{k}.nii.gz", prediction / f"{k}.nii.gz") for k in self.ids}

    ids = ("A_1", "A_2", "b_1")

    def score_folders(self, reference, prediction, out, settings, *, existing):
        self.asked.append((reference, prediction, out, settings, existing))
        try:
            yield Progress(0, 3, "Scoring")
            if self.error:
                raise self.error
            while not self.gate.wait(0.01):
                yield Progress(1, 3, "Scoring")
            yield Progress(3, 3, "Finished")
        finally:
            self.closed.set()
        if self.has_report:
            out.mkdir(parents=True, exist_ok=True)
            (out / "report.html").write_text("<p>")
        rows = (
            CaseScore("A_1", ScoreStatus.OK, dsc=0.9),
            CaseScore("A_2", ScoreStatus.OK, dsc=0.4),
            CaseScore("b_1", ScoreStatus.UNREADABLE, reason="cut off"),
        )
        failures = (CaseFailure("b_1", "cut off"),)
        model = ModelScores(
            "net", "clinical", 3, 2, rows, failures, None, None, None, Resampling(0, 1)
        )
        return ScoreSummary(model, out)

    def review_masks(self, case, reference, prediction, model):
        yield Progress(0, 1)
        self.asked.append((reference, prediction))
        right, shifted = self.mask(case.grid), self.mask(case.grid)
        shifted[:, :, 10] = 0
        found = (("reference", "scored", right), ("prediction", model, shifted))
        return CaseMasks(tuple(OpenMask(role, name, None, data) for role, name, data in found))


@pytest.fixture
def scoring(world, new_mask):
    return FakeScoring(world, new_mask)


@pytest.fixture
def panel(qtbot, viewer, world, scoring, new_mask, case):
    """The dock with the data set listed, on the page Batch."""
    world.predictions["A_1"] = new_mask(case.grid)
    services = replace(
        world.services(),
        find_pairs=scoring.find_pairs,
        score_folders=scoring.score_folders,
        review_masks=scoring.review_masks,
    )
    made = MamamiaDock(viewer, services)
    qtbot.addWidget(made)
    made.resize(360, 900)
    made.show()
    made.open_data_set(world.root)
    qtbot.waitUntil(lambda: made.session.opened is not None)
    made.show_page("Batch scoring")
    yield made
    scoring.gate.set()
    made.close_down()


def click(panel, name):
    widget = panel.findChild(QWidget, name)
    assert widget.isVisible(), name
    widget.click()


def run(qtbot, panel):
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: not panel.jobs.is_running("batch"))


def test_the_tab_is_short_and_the_page_is_called_as_in_the_menu(panel):
    assert panel.page == "Batch scoring"
    assert panel.tabs.tabText(panel.tabs.currentIndex()) == "Batch"


def test_the_form_is_filled_from_the_open_data_set(panel, world):
    page = panel.batch_page
    workspace = panel.session.workspace or panel.session.opened.workspace
    assert Path(page.reference.text()) == world.root
    assert Path(page.prediction.currentText()) == workspace.predictions / "kinetic"
    assert Path(page.out.text()) == workspace.scores / "kinetic"
    assert page.profile.currentText() == "clinical"
    assert "mm" in page.profile_text.text()


def test_another_prediction_folder_names_another_output_folder(panel, tmp_path):
    page = panel.batch_page
    page.prediction.setEditText(str(tmp_path / "nnunet"))
    assert Path(page.out.text()).name == "nnunet"
    page.out.setText(str(tmp_path / "mine"))
    page.prediction.setEditText(str(tmp_path / "other"))
    assert Path(page.out.text()) == tmp_path / "mine"


def test_every_profile_says_what_it_means(panel):
    page = panel.batch_page
    texts = set()
    for at in range(page.profile.count()):
        page.profile.setCurrentIndex(at)
        texts.add(page.profile_text.text())
    assert len(texts) == 3


def test_an_empty_field_is_named_and_nothing_starts(panel, scoring):
    panel.batch_page.reference.clear()
    panel.batch_page.prediction.setEditText("")
    click(panel, "batch_start")
    state = panel.batch_page.state.text()
    assert state.startswith("Choose the reference folder and the prediction folder")
    assert scoring.asked == []


def test_a_run_fills_the_table_and_says_how_it_ended(qtbot, panel, scoring):
    run(qtbot, panel)
    assert scoring.asked[0][-1] is Existing.REFUSE
    assert panel.batch_page.state.text().startswith("Finished; 1 case(s) need a look")
    assert "3 case(s), 2 scored, 1 without a score" in panel.batch_page.result.text()
    assert panel.results.case_ids() == ["b_1", "A_2", "A_1"]
    assert panel.batch_page.start.isEnabled()
    assert not panel.batch_page.cancel.isVisible()


@pytest.mark.parametrize("has_report", [True, False])
def test_the_report_is_offered_where_there_is_one(qtbot, panel, scoring, has_report):
    scoring.has_report = has_report
    run(qtbot, panel)
    assert panel.batch_page.open_report.isVisible() is has_report
    assert panel.batch_page.open_folder.isVisible()


def test_cancel_ends_the_run_and_the_page_can_start_again(qtbot, panel, scoring):
    scoring.gate.clear()
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: "of 3 cases" in panel.batch_page.state.text())
    assert not panel.batch_page.start.isEnabled()
    click(panel, "batch_cancel")
    assert panel.batch_page.state.text().startswith("Cancelled")
    qtbot.waitUntil(scoring.closed.is_set, timeout=2000)
    scoring.gate.set()
    run(qtbot, panel)
    assert panel.batch_page.state.text().startswith("Finished")


def test_a_folder_that_holds_results_gives_a_choice_and_no_error(qtbot, panel, scoring):
    errors = []
    panel.notifier.said.connect(lambda *said: errors.append(said))
    scoring.error = SaveConflictError("not empty")
    run(qtbot, panel)
    assert panel.batch_page.taken.isVisible()
    assert errors == []
    scoring.error = None
    click(panel, "batch_replace")
    qtbot.waitUntil(lambda: not panel.jobs.is_running("batch"))
    assert scoring.asked[-1][-1] is Existing.OVERWRITE
    assert not panel.batch_page.taken.isVisible()
    scoring.error = SaveConflictError("not empty")
    run(qtbot, panel)
    scoring.error = None
    click(panel, "batch_resume")
    qtbot.waitUntil(lambda: not panel.jobs.is_running("batch"))
    assert scoring.asked[-1][-1] is Existing.RESUME


def test_a_failure_is_told_in_plain_words(qtbot, panel, scoring):
    scoring.error = FormatError("the folder x holds no mask")
    run(qtbot, panel)
    assert panel.batch_page.state.text().startswith("Failed")
    assert "the folder x holds no mask" in panel.header.message.text()


def test_a_row_opens_its_case_with_the_masks_that_were_scored(qtbot, panel, scoring):
    run(qtbot, panel)
    panel.results.case_chosen.emit("A_2")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    assert panel.session.case_id == "A_2"
    assert panel.session.mask(Role.PREDICTION).name == "net"
    assert "missed" in panel.header.agreement.text()
    # the queue is the table: B_1 is spelled as in the data set
    assert panel.session.queue == ["B_1", "A_2", "A_1"]
    assert panel.header.position.text() == "2 / 3"


def test_the_next_case_of_a_review_is_the_next_worst_with_its_colours(qtbot, panel, scoring):
    run(qtbot, panel)
    panel.results.case_chosen.emit("b_1")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    panel.cases_flow.open_neighbour(1)
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    qtbot.waitUntil(lambda: scoring.asked[-1][0].name == "A_2.nii.gz")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)


def test_a_case_of_another_data_set_is_not_opened(qtbot, panel):
    run(qtbot, panel)
    panel.results_flow.open_case("ELSEWHERE")
    assert "not in the open data set" in panel.header.message.text()
    assert panel.session.case is None
