"""Trained models on the page Predict, with services that run nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from napari_mamamia.core.errors import MissingExtraError, ModelError
from napari_mamamia.core.progress import Progress
from napari_mamamia.segmentation.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.planner import LADDER, RunPlan
from napari_mamamia.segmentation.registry import ModelEntry
from napari_mamamia.segmentation.weights import ModelCard, ModelKind, WeightFile
from napari_mamamia.services.model_choice import planned
from napari_mamamia.services.predict import SavedPrediction
from napari_mamamia.services.predict_cases import PredictSummary
from napari_mamamia.widgets.dock import MamamiaDock


def entry_of(name="baseline", channels=("pre", "post"), problem=""):
    weights = (WeightFile("fold_0/checkpoint_final.pth", 1000, "ab" * 32),)
    card = ModelCard(
        Path("model"),
        ModelKind.NNUNET,
        name,
        folds=("0", "1"),
        checkpoints=("checkpoint_final.pth",),
        channels=channels,
        weights=weights,
    )
    return ModelEntry(name, card, problem=problem)


class NoHost:
    """A host that was never started."""

    closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def models(world):
    """The fake services with a list of models that a test may fill."""
    found = {"entries": [entry_of()], "missing": "", "host": NoHost(), "asked": []}

    def estimate(segmenter, case, *, measure=False):
        yield Progress(0, 1)
        found["asked"].append((segmenter.budget, measure))
        plan = RunPlan(EngineSettings(), TilePlan(9, 0, 8, 2, (1, 1, 1), 10**9), 90.0)
        return Estimate(plan, 10**9, 4 * 10**9, measure)

    def add(path):
        yield Progress(0, 1, "Looking")
        if path.name == "bad":
            raise ModelError("bad should be a model, but none was recognised: choose another")
        found["entries"].append(entry_of(path.name))
        return found["entries"][-1]

    def predict_all(opened, segmenter, out, case_ids, existing):
        yield Progress(0, 1, "Predicting")
        found["asked"].append((segmenter.name, out.name, tuple(case_ids)))
        return PredictSummary((SavedPrediction("A_1", out / "A_1.nii.gz", 10.0, 1.0),), (), ())

    services = replace(
        world.services(),
        listed_models=lambda: tuple(found["entries"]),
        add_model=add,
        forget_model=lambda name: found["entries"].clear(),
        planned=planned,
        new_host=lambda: found["host"],
        why_not_here=lambda: found["missing"],
        estimate_case=estimate,
        predict_data_set=predict_all,
    )
    found["services"] = services
    return found


@pytest.fixture
def page(qtbot, viewer, models):
    """The page with case A_1 open; the dock is its window."""
    dock = MamamiaDock(viewer, models["services"])
    qtbot.addWidget(dock)
    dock.resize(360, 900)
    dock.show()
    dock.open_data_set(Path("data"), "A_1")
    qtbot.waitUntil(lambda: dock.session.case is not None and dock.session.case.is_loaded)
    dock.show_page("Predict")
    qtbot.waitUntil(lambda: dock.predict_page.models.list.count() == 2)
    yield dock.predict_page
    dock.close_down()


def choose(page, row):
    page.models.list.setCurrentRow(row)


def test_a_chosen_model_shows_its_inputs_and_what_it_would_take(qtbot, page, models):
    assert not page.options.isVisible()
    choose(page, 1)
    assert page.title.text() == "baseline"
    assert page.inputs.text() == "channel 0 (pre) ← phase 0\nchannel 1 (post) ← phase 1"
    assert page.options.isVisible()
    qtbot.waitUntil(lambda: "time not known" in page.needs.text())
    page.measure.click()
    qtbot.waitUntil(lambda: "about 1 min 30 s (9 tiles x 8 copies x 2 folds)" in page.needs.text())
    assert "1.00 GB of 4.0 GB free" in page.needs.text()


def test_without_torch_the_page_names_the_pip_command_and_does_not_start(page, models):
    models["missing"] = str(MissingExtraError("torch", "segment"))
    choose(page, 1)
    assert 'pip install "napari-mamamia[segment]"' in page.inputs.text()
    assert not page.start.isEnabled()
    choose(page, 0)
    assert page.start.isEnabled()


def test_a_model_that_needs_more_phases_says_so(qtbot, page, models):
    models["entries"] = [entry_of("four", channels=("a", "b", "c", "d"))]
    page.window().predict_flow.models.reload()
    qtbot.waitUntil(lambda: "four" in page.models.list.item(1).text())
    choose(page, 1)
    assert "at least 4" in page.inputs.text()
    assert not page.start.isEnabled()


def test_a_model_that_is_gone_says_why(qtbot, page, models):
    models["entries"] = [entry_of("gone", problem="a model should be here, but nothing is there")]
    page.window().predict_flow.models.reload()
    qtbot.waitUntil(lambda: "gone" in page.models.list.item(1).text())
    choose(page, 1)
    assert "nothing is there" in page.inputs.text()
    assert not page.start.isEnabled()


def test_a_refused_model_is_told_and_a_good_one_is_chosen(qtbot, page):
    header = page.window().header
    page.model_added.emit(Path("bad"))
    qtbot.waitUntil(lambda: "none was recognised" in header.message.text())
    page.model_added.emit(Path("good"))
    qtbot.waitUntil(lambda: page.models.current == "good")
    page.models.forget.click()
    qtbot.waitUntil(lambda: page.models.list.count() == 1)


def test_what_may_be_given_up_counts_only_with_a_limit(page):
    options = page.options
    options.rungs[LADDER[1]].setChecked(True)
    assert options.choices().give_up == ()
    assert options.choices().limit_s is None
    options.limited.setChecked(True)
    assert options.choices().limit_s == 300.0
    assert options.choices().give_up == (LADDER[1],)
    assert options.ladder.isVisible() == options.isVisible()


def test_start_runs_the_chosen_model_with_its_options(qtbot, page, world, models):
    choose(page, 1)
    page.options.mirroring.setChecked(False)
    made = page.window().predict_flow.models.segmenter()
    assert isinstance(made, PlannedSegmenter)
    assert made.settings.mirroring is False
    assert made.host is models["host"]
    page.start.click()
    qtbot.waitUntil(lambda: "candidate(s)" in page.result.text())
    assert ("predict", "A_1", None) in world.calls


def test_predict_all_takes_the_cases_without_a_prediction(qtbot, page, models):
    choose(page, 1)
    page.all.click()
    qtbot.waitUntil(lambda: "1 case(s) predicted" in page.result.text())
    assert ("baseline", "baseline", ("A_1", "A_2", "B_1")) in models["asked"]
    assert page.start.isVisible()


def test_closing_ends_the_process_of_the_models(page, models):
    page.window().close_down()
    assert models["host"].closed
