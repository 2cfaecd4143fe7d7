import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.errors import FormatError, SaveConflictError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure, CaseScore, CaseTag, ScoreStatus
from napari_mamamia.features.challenge.services.rank.inputs import AlgorithmTable
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.scoring.case.failures import Failure, FailureKind
from napari_mamamia.scoring.cohort.comparison import NamedScores, compare_models
from napari_mamamia.scoring.cohort.ranking import ModelScore, sweep_weights
from napari_mamamia.scoring.cohort.results import (
    ModelComparison,
    ModelScores,
    RankedModel,
    Resampling,
)
from napari_mamamia.scoring.statistics.performance import SegmentationScores
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place
from napari_mamamia.services.case.show_case import CaseMasks, OpenMask
from napari_mamamia.services.score.inspections import CaseInspection
from napari_mamamia.services.score.score import ScoreSummary
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.batch.page import BatchDefaults, BatchPage
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.dock.dock import MamamiaDock

NUMBERS = {"net": (0.9, 0.4), "other": (0.5, 0.3)}


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
        self.has_cluster = True
        self.tags = []

    def find_pairs(self, reference, prediction, cases=None):
        self.listed = cases
        return {k: (reference / f"{k}.nii.gz", prediction / f"{k}.nii.gz") for k in self.ids}

    ids = ("A_1", "A_2", "b_1")
    clean = ()
    looks = ()
    images = None

    def score_folders(self, reference, prediction, out, settings, *, name, place, existing):
        self.asked.append((reference, prediction, out, settings, place, existing))
        self._run(out)
        return self._summary(name, out)

    def score_models(self, reference, models, out, settings, *, place, existing):
        self.asked.append((reference, models, out, settings, place, existing))
        for _model in models:
            self._run(out)
        found = tuple(self._summary(model.name, out / model.name) for model in models)
        return SimpleNamespace(models=found, comparison=self._comparison([m.name for m in models]))

    def _run(self, out):
        try:
            report_progress(0, 3, "0 of 3 cases")
            if self.error:
                raise self.error
            while not self.gate.wait(0.01):
                report_progress(1, 3, "1 of 3 cases")
            report_progress(3, 3, "3 of 3 cases")
        finally:
            self.closed.set()
        if self.has_report:
            out.mkdir(parents=True, exist_ok=True)
            (out / "report.html").write_text("<p>")

    def _summary(self, name, out):
        first, second = NUMBERS.get(name, NUMBERS["net"])
        rows = (
            CaseScore("A_1", ScoreStatus.OK, dsc=first),
            CaseScore("A_2", ScoreStatus.OK, dsc=second),
            CaseScore("b_1", ScoreStatus.UNREADABLE, reason="cut off"),
        )
        failures = (CaseFailure("b_1", "cut off"),)
        if name in self.clean:
            rows, failures = (*rows[:2], CaseScore("b_1", ScoreStatus.OK, dsc=0.7)), ()
        model = ModelScores(
            name, "clinical", 3, 2, rows, failures, None, None, None, Resampling(0, 1)
        )
        return ScoreSummary(model, out, self.looks)

    def _comparison(self, names):
        parts = [ModelScore(name, NUMBERS[name][0], NUMBERS[name][1]) for name in names]
        ranked = tuple(
            RankedModel(p.name, 2, p.performance, p.fairness, p.performance, float(k), float(k))
            for k, p in enumerate(parts, start=1)
        )
        named = [
            NamedScores(
                name, SegmentationScores(("A", "B"), np.array([0.1, 0.5]), np.array([0.2, k]))
            )
            for k, name in enumerate(names)
        ]
        return ModelComparison("clinical", 0.5, ranked, compare_models(named), sweep_weights(parts))

    def look_for_contrast(self, rows, pairs, settings, images):
        report_progress(0, 1, "Looking")
        self.images = [own.case_id for own in images]
        kinds = (Failure(FailureKind.FRAGMENTED, "in 4 parts"),)
        return (CaseInspection("A_2", (*kinds, Failure(FailureKind.LOW_CONTRAST, "0.4 SD")), None),)

    def saved_figures(self, folder, model):
        return iter(())

    def read_tags(self, workspace):
        return tuple(self.tags)

    def tag_case(self, workspace, reader, case_id, tag, on):
        self.tags = [t for t in self.tags if (t.case_id, t.tag) != (case_id, tag)]
        made = CaseTag(case_id, tag, reader, "2026-01-01T00:00:00Z")
        self.tags += [made] if on else []
        return made

    def review_masks(self, case, reference, prediction, model, counting):
        report_progress(0, 1)
        self.asked.append((reference, prediction))
        right, shifted = self.mask(case.grid), self.mask(case.grid)
        shifted[:, :, 10] = 0
        found = (("reference", "scored", right), ("prediction", model, shifted))
        return CaseMasks(tuple(OpenMask(role, name, None, data) for role, name, data in found))


@pytest.fixture
def scoring(world, new_mask):
    return FakeScoring(world, new_mask)


@pytest.fixture
def panel(qtbot, viewer, world, new_mask, scoring, new_case):
    world.predictions["A_1"] = new_mask(new_case().grid)
    services = world.services().replacing(
        find_pairs=scoring.find_pairs,
        score_folders=scoring.score_folders,
        score_models=scoring.score_models,
        review_masks=scoring.review_masks,
        look_for_contrast=scoring.look_for_contrast,
        saved_figures=scoring.saved_figures,
        read_tags=scoring.read_tags,
        tag_case=scoring.tag_case,
        has_cluster=lambda: scoring.has_cluster,
        read_case_list=lambda path: CaseList(path.name, ("A_1", "A_2")),
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
    assert panel.page == "Batch scoring"


def test_the_form_is_filled_from_the_open_data_set(panel, world):
    page = panel.batch_page
    workspace = panel.session.workspace or panel.session.opened.workspace
    assert Path(page.reference.text()) == world.root
    assert Path(page.models.folder.currentText()) == workspace.predictions / "kinetic"
    assert Path(page.out.text()) == workspace.scores / "kinetic"
    assert page.profile.currentText() == "clinical"
    assert "mm" in page.profile_text.text()


def test_another_prediction_folder_names_another_output_folder(panel, tmp_path):
    page = panel.batch_page
    page.models.folder.setEditText(str(tmp_path / "nnunet"))
    assert Path(page.out.text()).name == "nnunet"
    page.out.setText(str(tmp_path / "mine"))
    page.models.folder.setEditText(str(tmp_path / "other"))
    assert Path(page.out.text()) == tmp_path / "mine"


def test_the_first_run_gets_a_folder_without_results(panel, tmp_path):
    page, defaults = panel.batch_page, panel.batch_page.models.models()
    assert defaults[0].name == "kinetic"
    scores = tmp_path / "scores"
    (scores / "kinetic").mkdir(parents=True)
    (scores / "kinetic 2").mkdir()
    page.show_defaults(BatchDefaults(None, (("kinetic", tmp_path / "kinetic"),), None, scores))
    assert Path(page.out.text()) == scores / "kinetic 3"


def test_every_profile_says_what_it_means(panel):
    page = panel.batch_page
    texts = set()
    for at in range(page.profile.count()):
        page.profile.setCurrentIndex(at)
        texts.add(page.profile_text.text())
    assert len(texts) == 3


def test_an_empty_field_is_named_and_nothing_starts(panel, scoring):
    panel.batch_page.reference.clear()
    panel.batch_page.models.folder.setEditText("")
    click(panel, "batch_start")
    state = panel.batch_page.state.text()
    assert state.startswith("Choose the reference folder and the prediction folder")
    assert scoring.asked == []


def test_a_run_fills_the_table_and_says_how_it_ended(qtbot, panel, scoring):
    run(qtbot, panel)
    assert scoring.asked[0][-1] is Existing.REFUSE
    assert panel.batch_page.state.text().startswith("Finished; 1 case needs attention")
    assert "b_1 of kinetic (unreadable)" in panel.batch_page.state.text()
    assert "3 cases, 2 with a usable mask, 1 unreadable" in panel.batch_page.result.text()
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
    scoring.error = SaveConflictError("the folder is not empty: use --overwrite")
    run(qtbot, panel)
    assert panel.batch_page.taken.isVisible()
    assert panel.batch_page.state.text() == "Nothing was written: the folder is not empty."
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
    panel.results.cases.case_chosen.emit("A_2")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    assert panel.session.case_id == "A_2"
    assert panel.session.mask(Role.PREDICTION).name == "kinetic"
    assert "missed" in panel.legend.text()
    # the queue is the table: B_1 is spelled as in the data set
    assert panel.session.queue == ["B_1", "A_2", "A_1"]
    assert panel.header.position.text() == "2 / 3"


def test_the_next_case_of_a_review_is_the_next_worst_with_its_colours(qtbot, panel, scoring):
    run(qtbot, panel)
    panel.results.cases.case_chosen.emit("b_1")
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


# ------------------------------------------------------------------- several models


def add_model(panel, name, folder):
    panel.batch_page.models.add.click()
    line = panel.batch_page.models.lines[-1]
    line.name.setText(name)
    line.folder.setEditText(str(folder))
    return line


def test_one_model_is_scored_under_its_folders_name(qtbot, panel, scoring):
    run(qtbot, panel)
    prediction = scoring.asked[0][1]
    assert prediction.name == "kinetic"
    assert panel.results.cases.summary.text().startswith("kinetic · profile clinical")


def test_several_models_are_scored_together_and_compared(qtbot, panel, scoring, tmp_path):
    panel.batch_page.models.lines[0].name.setText("net")
    add_model(panel, "other", tmp_path / "other")
    assert Path(panel.batch_page.out.text()).name == "comparison and net and other"
    run(qtbot, panel)
    assert [model.name for model in scoring.asked[0][1]] == ["net", "other"]
    assert panel.results.tabs.tabText(panel.results.tabs.currentIndex()) == "Cohort"
    text = panel.results.cohort.page.toPlainText()
    assert "0 (performance only)" in text
    assert "1 (fairness only)" in text
    assert panel.batch_page.result.text().splitlines()[1].startswith("1. net: ranking score 0.900")


def test_the_table_shows_one_model_at_a_time(qtbot, panel, tmp_path):
    panel.batch_page.models.lines[0].name.setText("net")
    add_model(panel, "other", tmp_path / "other")
    run(qtbot, panel)
    cases = panel.results.cases
    assert [cases.models.itemText(k) for k in range(cases.models.count())] == ["net", "other"]
    assert cases.rows.index(1, 2).data() == "0.400"
    cases.models.setCurrentIndex(1)
    assert cases.rows.index(1, 2).data() == "0.300"
    assert cases.summary.text().startswith("other ·")


def test_the_folder_of_another_model_is_looked_for_next_to_the_first(panel, monkeypatch):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getExistingDirectory", lambda *words: asked.append(words[-1]) or ""
    )
    page = panel.batch_page
    click(panel, "batch_add_model")
    page.models.lines[1].folder.setEditText("")
    page.models.lines[1].browse.click()
    first = Path(page.models.folder.currentText())
    assert asked == [str(first.parent)]
    assert first.parent.name == "predictions"


def test_the_reference_folder_is_no_model(qtbot, panel, scoring):
    panel.batch_page.models.folder.setEditText(panel.batch_page.reference.text())
    run(qtbot, panel)
    assert scoring.asked == []
    assert "choose the folder of the model's masks" in panel.batch_page.state.text()


def test_the_table_of_the_model_that_needs_attention_is_shown(qtbot, panel, scoring, tmp_path):
    scoring.clean = ("net",)
    panel.batch_page.models.lines[0].name.setText("net")
    add_model(panel, "other", tmp_path / "other")
    run(qtbot, panel)
    assert "b_1 of other (unreadable)" in panel.batch_page.state.text()
    click(panel, "batch_table")
    assert panel.results.cases.models.currentText() == "other"
    assert panel.results.cases.summary.text().startswith("other ·")


def test_the_leaderboard_lists_models_that_were_scored_just_now(qtbot, panel):
    listed = []
    ranks = panel.services.ranks
    panel.context.services.__dict__["ranks"] = ranks.replacing(
        list_score_tables=lambda _scores: listed
    )
    form = panel.results.extra["Leaderboard"].form
    panel.flow("Leaderboard").list_tables()
    qtbot.waitUntil(lambda: not panel.jobs.is_running("leaderboard tables"))
    assert form.tables.count() == 0
    listed += [AlgorithmTable(name, Path(name) / "case_scores.csv") for name in ("a", "b")]
    run(qtbot, panel)
    qtbot.waitUntil(lambda: form.tables.count() == 2)


def test_a_model_that_was_added_can_be_taken_out(qtbot, panel, tmp_path):
    line = add_model(panel, "other", tmp_path / "other")
    qtbot.waitUntil(line.remove.isVisible)
    line.remove.click()
    assert [model.name for model in panel.batch_page.models.models()] == ["kinetic"]
    assert Path(panel.batch_page.out.text()).name == "kinetic"
    assert not panel.batch_page.models.lines[0].remove.isVisible()


def test_the_progress_of_several_models_never_goes_back(qtbot, panel, scoring, tmp_path):
    seen = []
    page = panel.batch_page
    page.progress.valueChanged.connect(seen.append)
    add_model(panel, "other", tmp_path / "other")
    page.models.lines[0].name.setText("net")
    run(qtbot, panel)
    shown = [value for value in seen if value > 0]
    assert shown == sorted(shown)


# ------------------------------------------------------------------------- settings


def open_options(panel):
    panel.batch_page.options.more.click()
    return panel.batch_page.options


def test_the_further_settings_are_folded_away_until_asked_for(panel):
    options = panel.batch_page.options
    assert not options.body.isVisible()
    open_options(panel)
    assert options.body.isVisible()
    assert options.more.text().startswith("▾")


def test_without_more_a_run_is_in_this_program_with_the_defaults(qtbot, panel, scoring):
    run(qtbot, panel)
    _reference, _prediction, _out, settings, place, existing = scoring.asked[0]
    assert (settings.n_resamples, settings.seed) == (1000, 42)
    assert place is None
    assert existing is Existing.REFUSE


def test_processes_time_limit_bootstrap_and_seed_reach_the_run(qtbot, panel, scoring):
    options = open_options(panel)
    options.fields["where"].setCurrentIndex(1)
    options.fields["workers"].setMaximum(4)
    options.fields["workers"].setValue(3)
    options.fields["limit_s"].setValue(90)
    options.fields["n_resamples"].setValue(200)
    options.fields["seed"].setValue(7)
    options.fields["existing"].setCurrentIndex(2)
    run(qtbot, panel)
    _reference, _prediction, _out, settings, place, existing = scoring.asked[0]
    assert place == Place(workers=3, time_limit_s=90.0)
    assert (settings.n_resamples, settings.seed) == (200, 7)
    assert existing is Existing.OVERWRITE


def test_the_list_of_cases_and_the_rule_for_unusable_ones_reach_the_run(qtbot, panel, scoring):
    options = open_options(panel)
    options.fields["case_list"].setText("cases.txt")
    options.fields["unusable"].setCurrentIndex(
        options.fields["unusable"].findData(UnusableRule.WORST_SCORE)
    )
    run(qtbot, panel)
    settings = scoring.asked[0][3]
    assert settings.cases == scoring.listed == CaseList("cases.txt", ("A_1", "A_2"))
    assert settings.unusable is UnusableRule.WORST_SCORE


def test_without_a_list_and_a_rule_the_run_is_that_of_the_command(qtbot, panel, scoring):
    run(qtbot, panel)
    settings = scoring.asked[0][3]
    assert (settings.cases, settings.unusable) == (None, None)


def test_a_rule_that_the_profile_has_no_worst_value_for_starts_nothing(panel, scoring):
    options = open_options(panel)
    profiles = panel.batch_page.profile
    profiles.setCurrentIndex(profiles.findText("official-code"))
    options.fields["unusable"].setCurrentIndex(
        options.fields["unusable"].findData(UnusableRule.WORST_SCORE)
    )
    click(panel, "batch_start")
    assert "choose the rule reject or leave-out" in panel.batch_page.state.text()
    assert scoring.asked == []


def test_a_cluster_needs_the_address_of_its_scheduler(qtbot, panel, scoring):
    options = open_options(panel)
    options.fields["where"].setCurrentIndex(2)
    click(panel, "batch_start")
    assert "tcp://host:8786" in panel.batch_page.state.text()
    assert scoring.asked == []
    options.fields["scheduler"].setText("tcp://node7:8786")
    run(qtbot, panel)
    assert scoring.asked[0][4] == Place(scheduler="tcp://node7:8786")


def test_without_the_extra_the_pip_command_is_shown_and_nothing_starts(qtbot, panel, scoring):
    options = open_options(panel)
    options.show_cluster(False)
    assert not options.place_note.isVisible()
    options.fields["where"].setCurrentIndex(2)
    assert 'pip install "napari-mamamia[cluster]"' in options.place_note.text()
    assert options.place_note.isVisible()
    click(panel, "batch_start")
    assert "napari-mamamia[cluster]" in panel.batch_page.state.text()
    assert scoring.asked == []
    options.fields["where"].setCurrentIndex(1)  # several processes need no extra
    assert not options.place_note.isVisible()
    run(qtbot, panel)
    assert scoring.asked[0][4].workers > 0


# ---------------------------------------------------------------------------- states


def test_a_wrong_folder_is_named_on_the_page(qtbot, panel, scoring):
    scoring.error = FormatError("expected masks in /x/empty, but it holds none: choose another")
    run(qtbot, panel)
    assert "choose another" in panel.batch_page.state.text()
    assert panel.batch_page.start.isEnabled()


def test_a_cancelled_run_goes_on_at_the_next_start_without_a_question(qtbot, panel, scoring):
    scoring.gate.clear()
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: "of 3 cases" in panel.batch_page.state.text())
    click(panel, "batch_cancel")
    scoring.gate.set()
    run(qtbot, panel)
    assert scoring.asked[-1][-1] is Existing.RESUME
    # what was finished is asked about again
    run(qtbot, panel)
    assert scoring.asked[-1][-1] is Existing.REFUSE


def test_another_request_after_a_cancelled_one_is_not_taken_for_its_rest(
    qtbot, panel, scoring, tmp_path
):
    scoring.gate.clear()
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: "of 3 cases" in panel.batch_page.state.text())
    click(panel, "batch_cancel")
    scoring.gate.set()
    panel.batch_page.out.setText(str(tmp_path / "elsewhere"))
    run(qtbot, panel)
    assert scoring.asked[-1][-1] is Existing.REFUSE


def test_a_run_waits_for_the_one_before_to_close_its_files(qtbot, panel, scoring):
    order = []
    real, left = scoring.score_folders, threading.Event()

    def slow(*arguments, **named):
        number = len(order) // 2
        order.append(f"start {number}")
        try:
            return real(*arguments, **named)
        finally:
            if number == 0:
                left.wait(2)
            order.append(f"end {number}")

    object.__setattr__(panel.services, "score_folders", slow)
    scoring.gate.clear()
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: "of 3 cases" in panel.batch_page.state.text())
    click(panel, "batch_cancel")
    scoring.gate.set()
    click(panel, "batch_start")
    qtbot.waitUntil(lambda: "Waiting" in panel.batch_page.state.text())
    left.set()
    qtbot.waitUntil(lambda: not panel.jobs.is_running("batch"))
    assert order == ["start 0", "end 0", "start 1", "end 1"]


# -------------------------------------------------------------------- results, tags


def failure_kinds(panel):
    rows = panel.results.cases.rows
    heads = [
        rows.headerData(at, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole)
        for at in range(rows.columnCount())
    ]
    return [rows.index(row, heads.index("failure")).data() for row in range(3)]


def test_kinds_of_failure_stand_in_the_table_when_the_run_ends(qtbot, panel, scoring):
    panel.session.opened = None  # no images: nothing is looked for after the run
    scoring.looks = (CaseInspection("A_2", (Failure(FailureKind.FRAGMENTED, "in 4 parts"),), None),)
    run(qtbot, panel)
    assert failure_kinds(panel) == ["", "fragmented", ""]
    assert scoring.images is None


def test_low_contrast_comes_in_from_the_images_of_the_open_data_set(qtbot, panel, scoring, world):
    run(qtbot, panel)
    qtbot.waitUntil(lambda: panel.results.cases.rows.table.knows_failures)
    assert failure_kinds(panel) == ["", "fragmented, low contrast", ""]
    assert scoring.images == list(world.case_ids)


def test_a_tag_of_a_row_lands_in_the_table_and_on_page_score(qtbot, panel, scoring):
    run(qtbot, panel)
    rows = panel.results.cases.rows
    qtbot.waitUntil(lambda: rows.table.knows_failures)
    panel.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    panel.results.cases.tag_wanted.emit("A_2", "implant", True)
    qtbot.waitUntil(lambda: rows.index(1, 9).data() == "implant")
    assert scoring.tags[0].reader == "Ana"
    panel.show_page("Score")
    chip = panel.findChild(QWidget, "score_tag_implant")
    assert chip.isChecked()
    chip.click()
    qtbot.waitUntil(lambda: rows.index(1, 9).data() == "")
    assert scoring.tags == []


def test_free_words_become_a_tag_of_the_open_case(qtbot, panel, scoring):
    panel.cases_flow.open_case("A_2")
    qtbot.waitUntil(lambda: panel.session.case_id == "A_2")
    panel.show_page("Score")
    panel.score_page.tags.other.setText("lymph node")
    panel.score_page.tags.other.returnPressed.emit()
    qtbot.waitUntil(lambda: [tag.tag for tag in scoring.tags] == ["lymph node"])
    qtbot.waitUntil(lambda: panel.findChild(QWidget, "score_tag_lymph_node") is not None)
    assert panel.findChild(QWidget, "score_tag_lymph_node").isChecked()


def test_the_tag_of_another_reader_is_not_removed(qtbot, panel, scoring):
    scoring.tags = [CaseTag("A_2", "clip", "Bo", "2026")]
    panel.tagging.read()
    panel.cases_flow.open_case("A_2")
    qtbot.waitUntil(
        lambda: panel.session.case_id == "A_2" and bool(panel.tagging.all_of(panel.session.opened))
    )
    panel.show_page("Score")
    assert "clip by Bo" in panel.score_page.tags.whose.text()
    chip = panel.findChild(QWidget, "score_tag_clip")
    chip.click()
    assert "set by Bo" in panel.header.message.text()
    assert chip.isChecked()
    assert len(scoring.tags) == 1


def test_the_next_case_follows_the_table_as_it_is_filtered_now(qtbot, panel):
    run(qtbot, panel)
    panel.results.cases.case_chosen.emit("A_2")
    qtbot.waitUntil(lambda: panel.scene.layer(Role.AGREEMENT) is not None)
    assert panel.session.queue == ["B_1", "A_2", "A_1"]
    panel.results.cases.filters.search.setText("a_")
    assert panel.session.queue == ["A_2", "A_1"]


# -------------------------------------------------------------------------------- log


def test_the_log_says_what_was_done_without_names_of_cases_and_folders(qtbot, panel, world):
    panel.notifier.warn(f"A_2 at {world.root / 'A_2.nii.gz'} is odd")
    run(qtbot, panel)
    lines = panel.results.log.lines.toPlainText()
    assert "done     Batch scoring" in lines
    assert "warning  case 2 at <folder>/case 2.nii.gz is odd" in lines
    assert "A_2" not in lines
    assert str(world.root) not in lines


def test_the_log_can_be_shown_before_any_run(panel):
    click(panel, "batch_log")
    assert panel.results.tabs.tabText(panel.results.tabs.currentIndex()) == "Log"


def test_a_clinical_table_shows_coverage_and_its_columns_are_used_once_confirmed(
    qtbot, panel, scoring, tmp_path
):
    table = tmp_path / "foreign.csv"
    table.write_text("patient_id,Age (y),menopause\nA_1,41,pre\nA_2,62,post\n")
    page = panel.batch_page
    look = page.clinical_summary
    page.clinical.setText(str(table))
    qtbot.waitUntil(lambda: bool(look.question.text()))
    assert look.confirm.isVisible()
    assert look.coverage.text().startswith("clinical table: 2 cases; age 0 of 2, menopausal")
    assert "age: “Age (y)” for its name, its unit y, and 2 values" in look.question.text()
    assert "breast density: there is no column" in look.question.text()
    run(qtbot, panel)
    assert scoring.asked[-1][3].columns.names == ()
    page.out.setText(str(tmp_path / "second"))
    click(panel, "batch_confirm_columns")
    qtbot.waitUntil(lambda: "age 2 of 2" in look.coverage.text())
    assert not look.confirm.isVisible()
    run(qtbot, panel)
    columns = dict(scoring.asked[-1][3].columns.names)
    assert (columns["age"], columns["breast_density"]) == ("Age (y)", None)
    table.with_name("other.csv").write_text("patient_id,age\n")
    page.clinical.setText(str(table.with_name("other.csv")))
    assert look.columns.names == ()


def test_start_stays_in_sight_however_low_the_page_is(qtbot):
    page = BatchPage()
    qtbot.addWidget(page)
    page.resize(500, 220)
    page.show()
    qtbot.waitUntil(lambda: page.start.visibleRegion().boundingRect() == page.start.rect())


@pytest.mark.parametrize("height", [600, 260])
def test_the_form_scrolls_where_it_has_no_room_and_start_stays_in_sight(qtbot, height):
    page = BatchPage()
    qtbot.addWidget(page)
    page.setFixedSize(1100, height)
    page.show()
    bar = page.findChild(PageArea).verticalScrollBar()
    qtbot.waitUntil(lambda: (bar.maximum() > 0) == (height < 300))
    assert page.rect().contains(page.start.geometry().translated(page.start.parent().pos()))


def test_what_a_start_asks_stays_in_sight_on_a_low_screen(qtbot):
    """The page grew below the screen: a press on Start seemed to do nothing."""
    page = BatchPage()
    area = PageArea(page, "batch_area")
    qtbot.addWidget(area)
    area.resize(600, 300)
    area.show()
    qtbot.waitExposed(area)
    page.show_taken(True)
    page.say("Nothing was written: /a/folder is not empty (score, 2026-11-28 08:32).")
    qtbot.wait(50)
    for control in (page.resume, page.replace, page.start, page.state):
        place = QRect(control.mapTo(area, QPoint(0, 0)), control.size())
        assert area.viewport().rect().contains(place), control.objectName()
    assert area.verticalScrollBar().maximum() == 0


def test_a_second_tag_does_not_cancel_the_save_of_the_first(qtbot, panel, scoring):
    tagging, tag_case = panel.tagging, scoring.tag_case
    gate = threading.Event()

    def tag_slowly(workspace, reader, case_id, tag, on):
        if tag == "implant":
            gate.wait(20)
        return tag_case(workspace, reader, case_id, tag, on)

    tagging._services = tagging._services.replacing(tag_case=tag_slowly)
    for tag in ("implant", "clip"):
        tagging.tag("A_1", tag, True, panel.session.opened)
    qtbot.waitUntil(lambda: "clip" in {one.tag for one in scoring.tags})
    gate.set()
    expected = {"implant", "clip"}
    qtbot.waitUntil(
        lambda: {one.tag for one in tagging.of("A_1", panel.session.opened)} == expected
    )


def test_an_earlier_reading_of_tags_that_ends_late_is_not_taken(qtbot, panel, scoring):
    tagging, read_tags = panel.tagging, scoring.read_tags
    gate, waits = threading.Event(), threading.Event()

    def read_slowly(workspace):
        tags = tuple(read_tags(workspace))
        if {one.tag for one in tags} == {"clip"}:
            waits.set()
            gate.wait(20)
        return tags

    tagging._services = tagging._services.replacing(read_tags=read_slowly)
    tagging.tag("A_1", "clip", True, panel.session.opened)
    qtbot.waitUntil(waits.is_set)
    tagging.tag("A_1", "implant", True, panel.session.opened)
    tags = lambda: {one.tag for one in tagging.of("A_1", panel.session.opened)}  # noqa: E731
    qtbot.waitUntil(lambda: tags() == {"clip", "implant"})
    with qtbot.waitSignal(tagging.changed):
        gate.set()
    assert tags() == {"clip", "implant"}
