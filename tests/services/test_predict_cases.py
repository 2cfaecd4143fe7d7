"""Predicting a data set with a trained model: rows of failures, resuming, workers, time limits."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from napari_mamamia.core.errors import MissingExtraError, ModelError, SaveConflictError
from napari_mamamia.core.progress import listening
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.workspace.provenance import read_provenance
from napari_mamamia.segmentation.model.planner import LADDER
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.model_choice import (
    RunChoices,
    choice_of,
    open_model,
    segmenter_of,
)

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

_FOUND = importlib.util.spec_from_file_location(
    "made_models", Path(__file__).parents[1] / "segmentation" / "conftest.py"
)
_MADE = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = _MADE
_FOUND.loader.exec_module(_MADE)


@pytest.fixture
def model(tmp_path):
    spec = _MADE.Spec(channels=("pre", "post"), folds=("0", "1"), mirror=(0,))
    return _MADE.write_model(tmp_path / "results", spec)


@pytest.fixture
def opened(small_data_set):
    return open_data_set(small_data_set)


def trained(model, host=None, **choices):
    chosen = RunChoices(threads=1, **choices)
    return open_model(str(model), chosen, host or EngineHost())


def mask(path):
    return np.asarray(read_labels(path).dense())


def test_masks_and_what_made_them_are_written(opened, model, tmp_path):
    out = tmp_path / "out"
    seen = []
    with listening(seen.append):
        summary = predict_data_set(opened, trained(model), out)
    assert [saved.case_id for saved in summary.saved] == ["A_1", "A_2", "B_1"]
    made = read_provenance(out / "A_1.json")
    assert made.device == "cpu (1 threads)"
    assert made.peak_memory_bytes > 0
    parameters = dict(made.parameters)
    assert parameters["folds"] == "0,1"
    assert len(parameters["weights_sha256"]) == 64
    assert any(step.text.startswith("A_2: Fold 1, 2 of 2: tile") for step in seen)
    tiles = [step.fraction for step in seen if ": tile" in step.text]
    assert tiles == sorted(tiles)
    assert seen[-1].fraction == 1.0


@pytest.mark.parametrize(("missing", "backend"), [("torch", "torch"), ("openvino", "openvino")])
def test_what_is_not_installed_is_one_error_before_anything_is_written(
    opened, model, tmp_path, monkeypatch, missing, backend
):
    segmenter = trained(model, backend=backend)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(MissingExtraError, match=missing):
        predict_data_set(opened, segmenter, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_case_that_cannot_be_predicted_costs_one_row(opened, model, small_data_set, tmp_path):
    (small_data_set / "images/A_2/A_2_0001.nii.gz").write_text("this is text")
    summary = predict_data_set(opened, trained(model), tmp_path / "out")
    assert [saved.case_id for saved in summary.saved] == ["A_1", "B_1"]
    assert [failure.case_id for failure in summary.failures] == ["A_2"]


def test_resuming_redoes_what_changed_and_nothing_else(opened, model, small_data_set, tmp_path):
    out = tmp_path / "out"
    predict_data_set(opened, trained(model), out)
    (out / "A_1.nii.gz").unlink()
    image = small_data_set / "images/B_1/B_1_0000.nii.gz"
    image.write_bytes((small_data_set / "images/A_1/A_1_0000.nii.gz").read_bytes())
    summary = predict_data_set(opened, trained(model), out, existing=Existing.RESUME)
    assert [saved.case_id for saved in summary.saved] == ["A_1", "B_1"]
    assert summary.skipped == ("A_2",)


def test_other_settings_are_another_run(opened, model, tmp_path):
    out = tmp_path / "out"
    predict_data_set(opened, trained(model), out, ["A_1"])
    other = trained(model, mirroring=False)
    with pytest.raises(SaveConflictError, match="a different run"):
        predict_data_set(opened, other, out, ["A_1"], Existing.RESUME)


def test_a_choice_survives_the_way_to_another_process_and_does_not_depend_on_the_place(
    model, tmp_path
):
    here = trained(model, limit_s=60.0, give_up=LADDER)
    again = segmenter_of(choice_of(here))
    assert choice_of(again).key == choice_of(here).key
    moved = model.parents[1].rename(tmp_path / "moved")
    there = trained(moved / model.parent.name / model.name, limit_s=60.0, give_up=LADDER)
    assert choice_of(there).key == choice_of(here).key
    assert choice_of(trained(there.card.path, fast=True)).key != choice_of(here).key


def test_a_worker_process_gives_the_same_masks(opened, model, tmp_path):
    predict_data_set(opened, trained(model), tmp_path / "here", ["A_1"])
    place = Place(time_limit_s=120.0)  # a process of its own that can be ended
    summary = predict_data_set(opened, trained(model), tmp_path / "there", ["A_1"], place=place)
    assert summary.failures == ()
    name = "A_1.nii.gz"
    assert np.array_equal(mask(tmp_path / "here" / name), mask(tmp_path / "there" / name))


class SlowHost(EngineHost):
    """An engine whose tiles take a second, as its clock says."""

    __slots__ = ()

    def time_tile(self, card, settings):
        return 0.5 if settings.precision == "bf16" else 1.0


def test_over_the_limit_is_a_failure_with_the_numbers_and_nothing_is_computed(
    opened, model, tmp_path
):
    slow = trained(model, SlowHost(), limit_s=2.0)
    summary = predict_data_set(opened, slow, tmp_path / "out", ["A_1"])
    (failure,) = summary.failures
    assert "to take at most 2.0 s" in failure.reason
    assert "2 copies x 2 folds" in failure.reason
    assert not (tmp_path / "out" / "A_1.nii.gz").exists()


def test_what_is_given_up_for_the_limit_is_said_and_kept(opened, model, tmp_path):
    plain, grid = trained(model), load_case(opened.data_set.case("A_1")).grid
    tiles = plain.host.plan(plain.card, plain.settings, grid, None)
    limit = tiles.tiles * 1.0 / 0.9 + 1.0  # room for one copy of one fold in fp32 at 1 s a tile
    slow = trained(model, SlowHost(), limit_s=limit, give_up=(LADDER[3], LADDER[4]))
    summary = predict_data_set(opened, slow, tmp_path / "out", ["A_1"])
    assert summary.failures == ()
    parameters = dict(read_provenance(tmp_path / "out" / "A_1.json").parameters)
    assert (parameters["mirrored_copies"], parameters["folds"]) == (1, "0")
    assert parameters["precision"] == "fp32"
    assert "1 mirrored copies of 2" in parameters["given_up"]
    assert "1 of 2 folds" in parameters["given_up"]
    assert any(note.startswith("given up: ") for note in summary.saved[0].notes)


def test_without_postprocessing_the_recipes_last_steps_are_left_out(model):
    assert trained(model, recipe="fme", postprocessing=False, folds=("0",)).recipe.post == ()


def test_a_fold_that_is_not_there_is_refused_at_once(model):
    with pytest.raises(ModelError, match="to have the folds 3"):
        trained(model, folds=("0", "3"))


@pytest.mark.night  # by day: test_published_recipes compares a recipe through the command
@pytest.mark.real
@pytest.mark.parity
@pytest.mark.timeout(1200)  # 108 tiles: a minute where nothing else runs
def test_the_command_line_gives_the_stock_mask_of_the_real_folder(real_data, tmp_path):
    folder, out = real_data("nnunet"), tmp_path / "out"
    code = "from napari_mamamia.cli import main; main()"
    model = str(folder / "Dataset901_Phantom")
    options = ["--model", model, "--no-mirroring", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", str(folder / "images"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stock = mask(folder / "PH_901_stock.nii.gz")
    found = mask(out / "PH_901.nii.gz")
    assert int((found != stock).sum()) <= 5  # ties of half precision, if the processor differs
    assert json.loads((out / "PH_901.json").read_text())["device"].startswith("cpu (")


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        (RunChoices(device="cuda"), "the device cuda"),
        (RunChoices(fast=True), "fast"),
        (RunChoices(step=0.75), "a tile step"),
        (RunChoices(folds=("0",), mirroring=False), "folds, no mirroring"),
    ],
)
def test_the_weight_free_model_passes_no_choice_over_in_silence(choices, named):
    with pytest.raises(ModelError, match=f": {named}; omit them"):
        open_model("kinetic", choices, EngineHost())


def test_the_weight_free_model_takes_what_holds_for_it():
    allowed = RunChoices(device="cpu", backend="auto", limit_s=60.0)
    assert open_model("kinetic", allowed, EngineHost()).name == "kinetic"
