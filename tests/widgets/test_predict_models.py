"""Trained models on the page Predict, with services that run nothing."""

import hashlib
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QLabel

from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.errors import (
    MissingExtraError,
    ModelError,
    RefusedCheckpointError,
    SaveConflictError,
)
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.model.card import ModelCard, WeightFile
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.planner import (
    LADDER,
    OutOfMemoryError,
    OverLimitError,
    RunPlan,
)
from napari_mamamia.segmentation.run.planned import Estimate, PlannedSegmenter
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.predict.cases import PredictSummary
from napari_mamamia.services.predict.convert_model import Converted
from napari_mamamia.services.predict.fused_models import FusedSegmenter
from napari_mamamia.services.predict.model_choice import planned
from napari_mamamia.services.predict.offers import Offer
from napari_mamamia.services.predict.predict import SavedPrediction
from napari_mamamia.services.predict.uncertainty import UncertaintyKind
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.service_record import PredictServices
from napari_mamamia.widgets.dock.dock import MamamiaDock


def entry_of(name="baseline", channels=("pre", "post"), problem=""):
    digest = hashlib.sha256(name.encode()).hexdigest()
    weights = (WeightFile("fold_0/checkpoint_final.pth", 1000, digest),)
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


def fake_predict(found):
    """Return the calls of the page that look for help, with answers from `found`."""

    def convert(entry, out):
        for step in range(3):
            report_progress(step, 3, "Opening in a closed room")
        found["asked"].append((entry.name, out.name))
        return Converted(out, entry.card, (), "isolated by bubblewrap")

    return PredictServices(
        other_models=lambda case, choices, not_these: found["offers"],
        isolation_reason=lambda: found["no_room"],
        convert=convert,
    )


@pytest.fixture
def models(world):
    """The fake services with a list of models that a test may fill."""
    found = {"entries": [entry_of()], "missing": "", "host": NoHost(), "asked": []}
    found |= {"offers": (), "no_room": "", "refuses": None, "goes_on": lambda: None}

    def estimate(segmenter, case, *, measure=False):
        report_progress(0, 1)
        if found["refuses"] is not None:
            raise found["refuses"]
        found["asked"].append((segmenter.budget, measure))
        plan = RunPlan(EngineSettings(), TilePlan(9, 0, 8, 2, (1, 1, 1), 10**9), 90.0)
        return Estimate(plan, 10**9, 4 * 10**9, measure)

    def add(path, name=""):
        report_progress(0, 1, "Looking")
        if path.name == "bad":
            raise ModelError("bad should be a model, but none was recognised: choose another")
        if path.name in {one.name for one in found["entries"]} and not name:
            raise SaveConflictError(f"a model called {path.name!r} was added already: rename")
        found["entries"].append(entry_of(name or path.name))
        return found["entries"][-1]

    def predict_all(opened, segmenter, out, case_ids, existing):
        report_progress(0, 1, "Predicting")
        found["asked"].append((segmenter.name, out.name, tuple(case_ids)))
        found["goes_on"]()
        return PredictSummary((SavedPrediction("A_1", out / "A_1.nii.gz", 10.0, 1.0),), (), ())

    services = world.services().replacing(
        listed_models=lambda: tuple(found["entries"]),
        add_model=add,
        forget_model=lambda name: found["entries"].clear(),
        planned=planned,
        new_host=lambda: found["host"],
        why_not_here=lambda _: found["missing"],
        predict=fake_predict(found),
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


def choose(page, row, also=False):
    """Click on a model; `also` keeps those that are chosen already."""
    shown = page.models.list
    shown.scrollToItem(shown.item(row))
    keys = Qt.KeyboardModifier.ControlModifier if also else Qt.KeyboardModifier.NoModifier
    place = shown.visualItemRect(shown.item(row)).center()
    QTest.mouseClick(shown.viewport(), Qt.MouseButton.LeftButton, keys, place)


def test_a_chosen_model_shows_its_inputs_and_what_it_would_take(qtbot, page, models):
    assert not page.options.isVisible()
    choose(page, 1)
    assert page.card.title.text() == "baseline"
    assert page.card.inputs.texts == ("channel 0 pre ← pre", "channel 1 post ← post 1")
    assert page.options.isVisible()
    qtbot.waitUntil(lambda: "time not known" in page.card.needs.text())
    page.card.measure.click()
    qtbot.waitUntil(
        lambda: "about 1 min 30 s (9 tiles x 8 copies x 2 folds)" in page.card.needs.text()
    )
    assert "1.00 GB of 4.0 GB free" in page.card.needs.text()


def test_without_torch_the_page_names_the_pip_command_and_does_not_start(page, models):
    models["missing"] = str(MissingExtraError("torch", "segment"))
    choose(page, 1)
    assert 'pip install "napari-mamamia[segment]"' in page.card.problem.text()
    assert not page.start.isEnabled()
    choose(page, 0)
    assert page.start.isEnabled()


def test_a_model_that_needs_more_phases_says_so(qtbot, page, models):
    models["entries"] = [entry_of("four", channels=("a", "b", "c", "d"))]
    page.window().predict_flow.models.reload()
    qtbot.waitUntil(lambda: "four" in page.models.list.item(1).text())
    choose(page, 1)
    assert "at least 4" in page.card.problem.text()
    assert not page.start.isEnabled()


def test_a_model_that_is_gone_says_why(qtbot, page, models):
    models["entries"] = [entry_of("gone", problem="a model should be here, but nothing is there")]
    page.window().predict_flow.models.reload()
    qtbot.waitUntil(lambda: "gone" in page.models.list.item(1).text())
    choose(page, 1)
    assert "nothing is there" in page.card.problem.text()
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
    qtbot.waitUntil(lambda: "Candidates:" in page.result.text())
    assert ("predict", "A_1", None) in world.calls


def test_predict_all_takes_the_cases_without_a_prediction(qtbot, page, models):
    choose(page, 1)
    page.all.click()
    qtbot.waitUntil(lambda: "Cases predicted and saved: 1" in page.result.text())
    assert ("baseline", "baseline", ("A_1", "A_2", "B_1")) in models["asked"]
    assert page.start.isVisible()


def test_what_was_predicted_before_a_stop_stands_in_the_list_and_the_rest_comes_with_the_next_run(
    qtbot, page, models, world, new_mask, case
):
    is_stopped = threading.Event()

    def go_on():
        if is_stopped.is_set():
            return
        world.predictions["A_1"] = new_mask(case.grid)
        try:
            while True:
                report_progress(1, 3, "A_2")
                time.sleep(0.001)
        finally:
            is_stopped.set()

    models["goes_on"] = go_on
    choose(page, 1)
    page.all.click()
    qtbot.waitUntil(lambda: "A_1" in world.predictions)
    page.cancel.click()
    assert page.result.text() == "stopped: finished predictions are kept"
    rows = page.window().session.rows
    qtbot.waitUntil(lambda: bool(rows["A_1"].predictions))
    page.all.click()
    qtbot.waitUntil(lambda: "Cases predicted and saved: 1" in page.result.text())


def test_closing_ends_the_process_of_the_models(page, models):
    page.window().close_down()
    assert models["host"].closed


def test_the_card_shows_licence_checksum_and_device(page):
    choose(page, 1)
    digest = hashlib.sha256(b"baseline").hexdigest()
    said = page.card.facts.text()
    assert "licence unknown" in said
    assert f"sha256 {digest[:12]}\n" in said
    assert "GPU if torch finds one" in said
    assert digest in page.card.facts.toolTip()
    page.options.device.setCurrentText("cpu")
    assert "on the CPU" in page.card.facts.text()


def test_each_input_has_its_picture_and_reversed_phases_are_told(qtbot, page):
    qtbot.waitUntil(lambda: page.card.inputs.has_pictures)
    assert not page.card.inputs.warning.isVisible()
    flow, case = page.window().predict_flow, page.window().session.case
    flow.models.choose(("baseline",))
    reversed_phases = replace(case, signal=case.signal[::-1].copy())
    channels = flow.models.channels(case)
    flow.pictures.show(reversed_phases, channels, whole_numbers=False)
    qtbot.waitUntil(lambda: "wrong order" in page.card.inputs.warning.text())
    assert page.card.inputs.warning.property("level") == "warning"


def drop(page, *paths):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    left, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, keys)
    event.ignore()
    page.dropEvent(event)
    return event.isAccepted()


def test_a_dropped_folder_is_added_and_two_at_once_are_not(qtbot, page, tmp_path):
    assert not drop(page, tmp_path / "one", tmp_path / "two")
    assert drop(page, tmp_path / "dropped")
    qtbot.waitUntil(lambda: page.models.names == ("dropped",))


def test_a_model_whose_name_is_taken_is_offered_under_another(qtbot, page):
    page.model_added.emit(Path("baseline"))
    qtbot.waitUntil(lambda: page.help.isVisible())
    assert page.help.buttons[0].text() == "Add model as baseline_2"
    page.help.buttons[0].click()
    qtbot.waitUntil(lambda: page.models.names == ("baseline_2",))


@pytest.fixture
def several(qtbot, page, models):
    """The page with two trained models chosen."""
    models["entries"].append(entry_of("second", channels=("a", "b", "c")))
    page.window().predict_flow.models.reload()
    qtbot.waitUntil(lambda: page.models.list.count() == 3)
    choose(page, 1)
    choose(page, 2, also=True)
    return page


def test_several_chosen_models_are_fused_by_the_rule_that_is_shown(qtbot, several):
    assert several.models.fusing_row.isVisible()
    assert [several.models.fusing.itemText(k) for k in range(3)] == [
        "mean",
        "majority vote",
        "STAPLE",
    ]
    several.models.fusing.setCurrentIndex(1)
    made = several.window().predict_flow.models.segmenter()
    assert isinstance(made, FusedSegmenter)
    assert made.rule is FusionRule.MAJORITY
    assert [one.name for one in made.members] == ["baseline", "second"]
    assert several.card.inputs.texts == ("pre", "post 1", "post 2")
    qtbot.waitUntil(lambda: "second: time not known" in several.card.needs.text())
    assert not several.options.edit.isEnabled()
    choose(several, 1)
    assert not several.models.fusing_row.isVisible()
    assert several.options.edit.isEnabled()


def test_the_mean_with_a_model_that_gives_no_probability_is_refused_on_the_page(several):
    choose(several, 0, also=True)
    assert "kinetic returns none" in several.card.problem.text()
    assert not several.start.isEnabled()
    several.models.fusing.setCurrentIndex(2)
    assert several.start.isEnabled()


def test_the_doubt_may_be_measured_by_the_variance_between_models(qtbot, several, world):
    ask = several.window().predicting
    first = world.predict_case

    def predict(case, segmenter, prompt=None):
        made = first(case, segmenter, prompt)
        half = np.full(case.grid.shape, 0.5, np.float16)
        apart = np.zeros(case.grid.shape, np.float16)
        apart[3, 9:11, 12] = 0.25
        return replace(made, probability=half, variance=apart)

    ask._services = ask._services.replacing(predict_case=predict)
    several.start.click()
    qtbot.waitUntil(lambda: several.uncertainty.isVisible())
    assert several.uncertainty.title.text() == "Uncertain regions: 1"
    several.uncertainty.kinds.setCurrentIndex(
        several.uncertainty.kinds.findData(UncertaintyKind.VARIANCE)
    )
    qtbot.waitUntil(lambda: "0.25" in several.uncertainty.list.item(0).text())
    layer = several.window().scene.layer(Role.DOUBT)
    assert "variance" in layer.name
    assert tuple(layer.contrast_limits) == (0.0, 0.25)
    several.uncertainty.next()
    assert several.window().viewer.dims.current_step[-3] == 3


@pytest.mark.parametrize("kind", [OverLimitError, OutOfMemoryError])
def test_models_that_fit_are_offered_and_chosen_but_not_started(qtbot, page, world, models, kind):
    models["offers"] = (Offer("kinetic", "Kinetic threshold", 5.0),)
    choose(page, 1)
    world.predict_error = kind("baseline should take at most 300 s, but is estimated at 9 min")
    page.start.click()
    qtbot.waitUntil(lambda: page.help.isVisible())
    assert "estimated at 9 min" in page.result.text()
    assert page.help.buttons[0].text() == "Use kinetic (about 5.0 s)"
    page.help.buttons[0].click()
    assert page.models.names == ("kinetic",)
    assert page.start.isVisible()
    assert not page.help.isVisible()
    assert page.result.text() == ""
    assert len([call for call in world.calls if call[0] == "predict"]) == 1


def test_where_no_other_model_fits_that_is_said(qtbot, page, world):
    choose(page, 1)
    world.predict_error = OverLimitError("too long")
    page.start.click()
    qtbot.waitUntil(lambda: "No other model" in page.help.said.text())
    assert page.help.buttons == []


def test_a_refused_checkpoint_can_be_converted_in_a_closed_room(qtbot, page, models, tmp_path):
    models["refuses"] = RefusedCheckpointError("the checkpoint would run os.system: not opened")
    choose(page, 1)
    qtbot.waitUntil(lambda: page.help.isVisible())
    assert "would run os.system" in page.help.said.text()
    assert "see below" in page.card.needs.text()
    assert page.help.buttons[0].text() == "Convert in a sandbox…"
    models["refuses"] = None
    flow = page.window().predict_flow
    flow.failure.convert(flow.models.entry, tmp_path)
    assert page.cancel.isVisible()
    qtbot.waitUntil(lambda: page.models.names == ("baseline_converted",))
    assert ("baseline", "baseline_converted") in models["asked"]
    assert page.start.isVisible()


def test_converting_can_be_cancelled(qtbot, page, models, tmp_path):
    choose(page, 1)
    flow = page.window().predict_flow
    flow.failure.convert(flow.models.entry, tmp_path)
    page.cancel.click()
    assert "nothing was written" in page.result.text()
    assert page.start.isVisible()
    assert page.models.names == ("baseline",)


def test_without_a_closed_room_the_reason_is_said(qtbot, page, models):
    models["no_room"] = "bubblewrap is not installed: install it"
    models["refuses"] = RefusedCheckpointError("would run os.system")
    choose(page, 1)
    qtbot.waitUntil(lambda: "bubblewrap is not installed" in page.help.said.text())
    assert page.help.buttons == []


@pytest.mark.usefixtures("dressed")
def test_nothing_is_cut_beside_the_scroll_bar(qtbot, several, models, world):
    dock = several.window()
    dock.resize(dock.minimumWidth(), 700)
    models["offers"] = (Offer("kinetic", "Kinetic threshold", 5.0),)
    several.options.limited.setChecked(True)
    world.predict_error = OverLimitError("second should take at most 300 s: allow more")
    several.start.click()
    qtbot.waitUntil(lambda: several.help.isVisible())
    several.uncertainty.show_kinds(tuple(UncertaintyKind), UncertaintyKind.VARIANCE)
    several.uncertainty.show()
    qtbot.wait(10)
    assert several.area.widget().minimumSizeHint().width() <= several.area.viewport().width()
    cut = [
        widget.objectName()
        for widget in (*several.findChildren(QAbstractButton), *several.findChildren(QLabel))
        if widget.isVisible()
        and not (isinstance(widget, QLabel) and (widget.wordWrap() or widget.pixmap()))
        and widget.width() < widget.sizeHint().width()
    ]
    assert cut == []


@pytest.mark.usefixtures("dressed")
def test_a_longer_estimate_takes_the_height_it_needs(qtbot, page):
    choose(page, 1)
    qtbot.waitUntil(lambda: "time not known" in page.card.needs.text())
    page.card.show_needs("estimating this case…")
    qtbot.wait(20)
    page.card.show_needs("about 1 min (48 tiles), volumes 0.03 GB of 21.3 GB free, " * 4)
    needs = page.card.needs
    qtbot.waitUntil(lambda: needs.height() >= needs.heightForWidth(needs.width()), timeout=500)
