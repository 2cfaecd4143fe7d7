"""`mamamia predict` with several models, and what it says of other models; `models list`."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli import predicting
from napari_mamamia.cli.app import app
from napari_mamamia.core.choices import FusionRule
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import Pace
from napari_mamamia.segmentation.model.recipe import presets
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.segmentation.run.paces import remember_pace
from napari_mamamia.segmentation.run.registry import add_model, default_registry
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.model_choice import (
    RunChoices,
    choice_of,
    open_models,
    segmenter_of,
)

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

_FOUND = importlib.util.spec_from_file_location(
    "made_models", Path(__file__).parents[1] / "segmentation" / "conftest.py"
)
made = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = made
_FOUND.loader.exec_module(made)


def mamamia(*words):
    """Return the exit code and all that the command says, frames and line ends left out."""
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "400"})
    error = "" if isinstance(done.exception, SystemExit) else str(done.exception or "")
    said = f"{done.output} {error}".replace("│", " ")
    return SimpleNamespace(exit_code=done.exit_code, output=said, line=" ".join(said.split()))


def mask(path):
    return np.asarray(read_labels(path).dense())


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Let the models' process use one thread: the machine that tests is busy."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def added(tmp_path):
    """Add two models, a of two folds and b of one, and return their entries."""
    entries = []
    for name, folds, seed in (("a", ("0", "1"), 0), ("b", ("0",), 5)):
        spec = made.Spec(channels=("pre", "post"), folds=folds, mirror=(0,), seed=seed)
        folder = made.write_model(tmp_path / f"model {name}", spec)
        entries.append(add_model(folder, default_registry(), name))
    return entries


def probability_of(entry, case):
    """Return what a model alone gives, by the engine in this process."""
    host = EngineHost()
    arrays = [case.signal[0], case.signal[1]]
    settings = EngineSettings(threads=1, keep_probability=True)
    found = host.predict(entry.card, settings, EngineInput(arrays, case.grid))
    host.close()
    return found.probability


MEAN = ("--model", "a", "--model", "b", "--fuse", "mean")


@pytest.mark.parametrize(
    "has_workers",
    [False, pytest.param(True, marks=pytest.mark.night)],  # by day: those of test_batch_cluster
)
def test_the_mean_of_two_models_here_and_by_workers_and_resumed(
    has_workers, small_data_set, added, tmp_path
):
    here, there = tmp_path / "here", tmp_path / "there"
    words = ("predict", small_data_set, *MEAN, "--case", "A_1", "--out")
    done = mamamia(*words, here, "--probability")
    assert done.exit_code == 0, done.output
    assert "1 prediction saved" in done.output
    assert "mean of 2 models: a: nnU-Net v2 model a" in done.output
    case = load_case(open_data_set(small_data_set).data_set.case("A_1"))
    mean = (sum(probability_of(entry, case).astype(np.float64) for entry in added)) / 2
    clear = np.abs(mean - 0.5) > 1e-3
    assert np.array_equal(mask(here / "A_1.nii.gz")[clear] > 0, mean[clear] > 0.5)
    image = nib.load(here / "probability" / "A_1.nii.gz")
    assert image.get_data_dtype() == np.float32
    assert np.abs(np.asarray(image.dataobj).transpose() - mean).max() < 2e-3
    assert np.array_equal(image.affine, nib.load(here / "A_1.nii.gz").affine)
    kept = json.loads((here / "A_1.json").read_text())
    assert kept["name"] == "mean_a+b"
    assert kept["parameters"]["a: folds"] == "0,1"
    assert kept["parameters"]["b: weights_sha256"] == added[1].card.sha256

    if has_workers:
        done = mamamia(*words, there, "--workers", 2)
        assert done.exit_code == 0, done.output
        assert np.array_equal(mask(here / "A_1.nii.gz"), mask(there / "A_1.nii.gz"))

    again = mamamia(*words, here, "--probability", "--resume")
    assert again.exit_code == 0, again.output
    assert "1 case done in an earlier run" in again.output
    other = mamamia("predict", small_data_set, *MEAN[:-1], "staple", "--out", here, "--resume")
    assert other.exit_code == 1
    assert "results of a different run" in other.output


@pytest.mark.usefixtures("added")
def test_votes_of_the_weight_free_model_and_a_trained_one_are_kept_by_name(
    small_data_set, tmp_path
):
    out, models = tmp_path / "out", ("--model", "kinetic", "--model", "b", "--fuse", "staple")
    done = mamamia("predict", small_data_set, *models, "--case", "A_1", "--out", out)
    assert done.exit_code == 0, done.output
    kept = json.loads((out / "A_1.json").read_text())["parameters"]
    assert kept["models"] == "kinetic, b"
    assert 0 <= kept["kinetic: sensitivity (STAPLE)"] <= 1
    assert 0 <= kept["b: specificity (STAPLE)"] <= 1


def test_any_members_weights_settings_and_the_rule_change_what_resuming_compares(added, tmp_path):
    def key(wanted, rule=FusionRule.MEAN, **choices):
        chosen = RunChoices(**{"threads": 1, **choices})
        return choice_of(open_models(wanted, rule, chosen, EngineHost())).key

    first = key(["a", "b"])
    segmenter = open_models(["a", "b"], FusionRule.MEAN, RunChoices(threads=1), EngineHost())
    assert choice_of(segmenter_of(choice_of(segmenter))).key == first
    assert key(["a", "b"], threads=2) == first
    assert key(["a", "b"], FusionRule.MAJORITY) != first
    assert key(["a", "b"], step=0.75) != first
    assert key(["a", "b"], limit_s=60.0) != first
    spec = made.Spec(channels=("pre", "post"), folds=("0",), mirror=(0,), seed=6)
    folder = made.write_model(tmp_path / "another b", spec)
    add_model(folder, tmp_path / "registry", "b")
    add_model(added[0].card.path, tmp_path / "registry", "a")
    chosen = RunChoices(threads=1)
    other = open_models(["a", "b"], FusionRule.MEAN, chosen, EngineHost(), tmp_path / "registry")
    assert choice_of(other).key != first


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (
            ("--model", "a", "--model", "b"),
            "2 models (a, b) need a fusion rule: add --fuse mean",
            2,
        ),
        (
            ("--model", "a", "--fuse", "mean"),
            "--fuse mean needs at least two models, but got only a",
            2,
        ),
        (("--fuse", "staple"), "--fuse staple needs at least two models, but got only kinetic", 2),
        (
            ("--model", "a", "--model", "kinetic", "--fuse", "mean"),
            "expected every model to return a probability for the mean, but kinetic returns none",
            1,
        ),
        (("--model", "a", "--model", "a", "--fuse", "mean"), "a occurs more than once", 1),
        (("--model", "kinetic", "--probability"), ": a probability map; omit them", 1),
        (("--model", "a", "--recipe", "fmee"), "or channels such as p1-p0, but it is 'fmee'", 1),
    ],
)
@pytest.mark.usefixtures("added")
def test_what_cannot_be_fused_is_refused_before_anything_is_written(
    words, said, code, small_data_set, tmp_path
):
    done = mamamia("predict", small_data_set, *words, "--out", tmp_path / "out")
    assert done.exit_code == code
    assert said in done.line
    assert not (tmp_path / "out").exists()


def test_one_model_under_two_names_is_refused(small_data_set, added, tmp_path):
    words = ("--model", "a", "--model", added[0].card.path, "--fuse", "mean")
    done = mamamia("predict", small_data_set, *words, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "have the same weights" in done.output


def test_a_case_over_its_limit_names_the_models_that_would_fit(small_data_set, added, tmp_path):
    large, small = added
    remember_pace(large.card, EngineSettings(threads=1), Pace(1000.0, 0.0))
    remember_pace(small.card, EngineSettings(threads=1), Pace(0.001, 0.0))
    words = ("--model", "a", "--time-limit", 20, "--threads", 1, "--case", "A_1")
    words += ("--out", tmp_path / "out")
    done = mamamia("predict", small_data_set, *words)
    assert done.exit_code == 3
    assert "expected a to take at most 20 s, but its estimated time is" in done.output
    assert (
        "nothing was computed; other models on this computer that are suitable: 'b' about 0."
        in done.output
    )
    assert "'kinetic' about 0.5 s" in done.output
    assert "'a' about" not in done.output


def test_the_list_says_what_each_model_is_and_how_to_add_one(added):
    listed = mamamia("models", "list").output.splitlines()
    assert listed[0].startswith("kinetic  needs no weights")
    assert listed[1].startswith("a        nnU-Net v2, 2 channels, folds 0, 1, sha256 ")
    (default_registry() / "b.json").write_text("{}")
    assert "b        cannot be used: " in mamamia("models", "list").output
    for entry in added:
        (default_registry() / f"{entry.name}.json").unlink()
    assert "add a model with  mamamia models add PATH" in mamamia("models", "list").output


def test_adding_says_how_the_model_is_used(added):
    said = mamamia("models", "add", added[0].card.path, "--name", "my own").output
    assert "mamamia predict DATASET --model 'my own' --out DIR" in said


@pytest.mark.parametrize(
    ("given", "workers", "scheduler", "threads"),
    [
        (None, 0, "", 7),
        (None, 2, "", 3),
        (None, 20, "", 1),
        (None, 0, "tcp://a:1", None),
        (5, 2, "", 5),
    ],
)
def test_networks_use_every_core_but_one_shared_among_workers(
    given, workers, scheduler, threads, monkeypatch
):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    chosen = predicting._on_threads(RunChoices(), given, ["a"], workers, scheduler)
    assert chosen.threads == threads


def test_threads_for_a_model_that_has_no_network_are_refused(small_data_set, tmp_path):
    words = ("predict", small_data_set, "--threads", 2, "--out", tmp_path / "out")
    assert "--threads 2 is for trained models" in mamamia(*words).line


def test_the_help_names_every_published_pipeline():
    said = mamamia("predict", "--help").line
    for name, _ in presets():
        assert name in said
