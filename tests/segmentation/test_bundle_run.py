"""Bundles at work: cancel, time limit, region, worker, planner and command line."""

import json
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.packages import need_package

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
need_package("monai")

from bundle_maker import config, images, oblique_grid, write_bundle  # noqa: E402

from napari_mamamia.core.box import Box  # noqa: E402
from napari_mamamia.core.errors import CaseError, ModelError  # noqa: E402
from napari_mamamia.core.grid import Grid  # noqa: E402
from napari_mamamia.core.progress import Cancelled, listening  # noqa: E402
from napari_mamamia.segmentation.model.engine import EngineInput  # noqa: E402
from napari_mamamia.segmentation.model.engine_settings import EngineSettings  # noqa: E402
from napari_mamamia.segmentation.model.planner import LADDER, Budget, OverLimitError  # noqa: E402
from napari_mamamia.segmentation.run.engine_host import EngineHost  # noqa: E402
from napari_mamamia.segmentation.run.engines import load_engine  # noqa: E402
from napari_mamamia.segmentation.run.planned import PlannedSegmenter  # noqa: E402
from napari_mamamia.segmentation.run.weights import recognise_model  # noqa: E402
from napari_mamamia.segmentation.worker.client import Worker  # noqa: E402

GRID = oblique_grid()
ONE = EngineSettings(threads=1, device="cpu", keep_probability=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Return a bundle with many small windows."""
    inference = config() | {"patch_size": [12, 12, 12]}
    return write_bundle(tmp_path_factory.mktemp("bundles") / "many", inference)


def engine_of(path, settings=ONE):
    return load_engine(recognise_model(path), settings)


class Calls(torch.nn.Module):
    """Stands before a network and counts the windows that go through."""

    def __init__(self, network):
        super().__init__()
        self.network, self.windows = network, 0

    def forward(self, parts):
        self.windows += len(parts)
        return self.network(parts)


def test_progress_names_every_group_of_windows_and_ends_at_the_total(bundle):
    engine, seen = engine_of(bundle), []
    with listening(seen.append):
        found = engine.predict(EngineInput(images(GRID), GRID))
    windows = [step.text for step in seen if "window" in step.text]
    assert len(windows) == -(-found.ran.tiles // 3)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1].done == seen[-1].total
    assert any("Spacingd" in step.text for step in seen)


def test_a_cancel_between_windows_computes_no_further_one(bundle):
    engine = engine_of(bundle)
    engine.network = calls = Calls(engine.network)
    threads = []

    def stop(progress):
        if "window 7 of" in progress.text:
            threads.append(torch.get_num_threads())
            raise Cancelled

    with pytest.raises(Cancelled), listening(stop):
        engine.predict(EngineInput(images(GRID), GRID))
    assert calls.windows == 6
    assert threads == [1]
    assert engine.predict(EngineInput(images(GRID), GRID)).labels.any()


def test_at_the_deadline_no_further_window_is_begun(bundle):
    engine = engine_of(bundle)
    engine.network = calls = Calls(engine.network)
    with pytest.raises(OverLimitError, match="within the time limit"):
        engine.predict(EngineInput(images(GRID), GRID, deadline=time.monotonic()))
    assert calls.windows == 0


def test_a_region_leaves_out_windows_and_changes_nothing_inside(bundle):
    engine, grid = engine_of(bundle), oblique_grid((14, 70, 62))
    whole = engine.predict(EngineInput(images(grid), grid))
    box = Box((1, 4, 40), (5, 12, 55))
    cut = engine.predict(EngineInput(images(grid), grid, region=box))
    assert 0 < cut.ran.tiles < whole.ran.tiles
    assert cut.ran.tiles + cut.ran.tiles_skipped == whole.ran.tiles
    assert engine.plan(grid, box).tiles == cut.ran.tiles
    assert np.array_equal(cut.labels[box.slices], whole.labels[box.slices])
    assert np.array_equal(cut.probability[box.slices], whole.probability[box.slices])
    outside = np.ones(grid.shape, dtype=bool)
    outside[box.slices] = False
    assert whole.labels[outside].any()
    assert not cut.labels[outside].any()
    assert not cut.probability[outside].any()


def test_a_step_that_looks_around_gets_every_window_whatever_the_region(tmp_path):
    inference = config() | {"patch_size": [12, 12, 12]}
    inference["postprocessing"]["transforms"].append(
        {"_target_": "KeepLargestConnectedComponentd", "keys": "pred", "applied_labels": [1, 2]}
    )
    engine, grid = engine_of(write_bundle(tmp_path / "b", inference)), oblique_grid((14, 70, 62))
    box = Box((1, 4, 40), (5, 12, 55))
    whole = engine.predict(EngineInput(images(grid), grid))
    cut = engine.predict(EngineInput(images(grid), grid, region=box))
    assert cut.ran.tiles_skipped == engine.plan(grid, box).skipped == 0
    assert np.array_equal(cut.labels[box.slices], whole.labels[box.slices])


def test_wrong_channels_and_broken_images_are_said(bundle):
    engine = engine_of(bundle)
    with pytest.raises(ModelError, match=r"2 channels \(phase 0, phase 1\).*got 3"):
        engine.predict(EngineInput(images(GRID, 3), GRID))
    broken = [image.astype(np.float32) for image in images(GRID)]
    broken[1][3, 3, 3] = np.nan
    with pytest.raises(CaseError, match="finite"):
        engine.predict(EngineInput(broken, GRID))


def test_what_monai_says_of_a_step_that_fails_reaches_the_user(tmp_path):
    inference = config()
    inference["preprocessing"]["transforms"][2]["axcodes"] = "RA"
    engine = engine_of(write_bundle(tmp_path / "b", inference))
    with pytest.raises(ModelError, match=r"preprocessing#transforms#2 does not work with MONAI"):
        engine.predict(EngineInput(images(GRID), GRID))


def test_a_network_of_other_extents_than_its_window_is_refused(tmp_path):
    inference = config()
    inference["network_def"]["strides"] = [1]
    engine = engine_of(write_bundle(tmp_path / "b", inference))
    engine.network = torch.nn.Conv3d(2, 3, 1, stride=2)
    with pytest.raises(ModelError, match="one output with"):
        engine.predict(EngineInput(images(GRID), GRID))


def test_a_zip_with_a_folder_inside_runs_too(bundle, tmp_path):
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(bundle.rglob("*")):
            archive.write(file, f"inner/{file.relative_to(bundle)}")
    card = recognise_model(packed)
    assert card.is_zip
    assert card.usable
    found = engine_of(packed).predict(EngineInput(images(GRID), GRID))
    assert np.array_equal(
        found.labels, engine_of(bundle).predict(EngineInput(images(GRID), GRID)).labels
    )


@pytest.mark.night  # by day: test_predict_cases, test_network_formats have one for other kinds
def test_the_worker_gives_the_result_of_this_process(bundle):
    worker, card = Worker(), recognise_model(bundle)
    try:
        there = worker.predict(card, ONE, EngineInput(images(GRID), GRID))
        assert worker.plan(card, ONE, GRID, None) == engine_of(bundle).plan(GRID)
        assert worker.time_tile(card, ONE) > 0
        with pytest.raises(ModelError, match="no folds"):
            worker.plan(card, EngineSettings(folds=("0",)), GRID, None)
    finally:
        worker.close()
    here = engine_of(bundle).predict(EngineInput(images(GRID), GRID))
    assert np.array_equal(there.labels, here.labels)
    assert np.array_equal(there.probability, here.probability)
    assert there.ran.parameters() == here.ran.parameters()


def case_of_two():
    from napari_mamamia.core.case import Case, Phase

    grid = Grid((10, 24, 24), np.diag([-1.0, 1.0, 2.0, 1.0]))
    signal = np.stack(images(grid))
    return Case("A_1", grid, signal, (Phase(0, 0.0), Phase(1, 90.0)))


def test_the_planner_offers_a_bundle_only_what_it_can_give_up(bundle):
    segmenter = PlannedSegmenter(
        recognise_model(bundle),
        ONE,
        budget=Budget(1e-3, tuple(r for r in LADDER if r != LADDER[0])),
    )
    with pytest.raises(ModelError, match="its estimated time is"):
        segmenter.predict(case_of_two())
    assert segmenter.channels() == (("phase 0", "p0"), ("phase 1", "p1"))
    estimate = PlannedSegmenter(recognise_model(bundle), ONE).estimate(case_of_two())
    assert estimate.plan.tiles.forwards > 1


def test_the_command_line_adds_shows_and_runs_a_bundle(
    small_data_set, bundle, tmp_path, monkeypatch
):
    import nibabel as nib
    from typer.testing import CliRunner

    from napari_mamamia.cli import app
    from napari_mamamia.segmentation.worker import client as worker_client

    monkeypatch.setattr(worker_client, "Worker", EngineHost)  # one process less to start

    def said(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    said("models", "add", bundle, "--name", "mine")
    shown = said("models", "show", "mine")
    for word in ("MONAI bundle", "0: phase 0", "tumour = 1", "Copyright nobody", "model.pt"):
        assert word in shown
    said("models", "verify", "mine")
    out = tmp_path / "out"
    said("predict", small_data_set, "--model", "mine", "--case", "A_1", "--out", out)
    image = nib.load(out / "A_1.nii.gz")
    source = nib.load(small_data_set / "images" / "A_1" / "A_1_0000.nii.gz")
    assert image.shape == source.shape
    assert np.array_equal(image.affine, source.affine)
    kept = json.loads((out / "A_1.json").read_text())
    assert recognise_model(bundle).sha256 in json.dumps(kept)


@pytest.mark.parametrize("steps", ["as they are", "padded", "cells kept whole"])
def test_windows_from_the_configs_are_the_loaded_bundles(steps, tmp_path):
    from napari_mamamia.segmentation.bundle.cost import tiles_of_bundle

    inference = config()
    before = inference["preprocessing"]["transforms"]
    if steps == "padded":
        before.append({"_target_": "SpatialPadd", "keys": "image", "spatial_size": [40, 16, 60]})
    if steps == "cells kept whole":
        (spacing,) = [step for step in before if step["_target_"] == "Spacingd"]
        spacing["scale_extent"] = True
    card = recognise_model(write_bundle(tmp_path / "b", inference))
    engine = load_engine(card, EngineSettings(threads=1))
    for grid in (oblique_grid(), oblique_grid((31, 64, 57))):
        assert tiles_of_bundle(card, EngineSettings(threads=1), grid) == engine.plan(grid)
    engine.close()


@pytest.mark.parametrize("what", ["a step that only MONAI knows", "the whole volume at once"])
def test_windows_that_the_configs_do_not_tell_are_not_guessed(what, tmp_path):
    from napari_mamamia.segmentation.bundle.cost import tiles_of_bundle

    inference = config()
    if what.startswith("a step"):
        step = {"_target_": "Resized", "keys": "image", "spatial_size": [16, 16, 16]}
        inference["preprocessing"]["transforms"].append(step)
    else:
        inference["inferer"] = {"_target_": "SimpleInferer"}
    card = recognise_model(write_bundle(tmp_path / "b", inference))
    assert card.usable
    assert tiles_of_bundle(card, EngineSettings(), oblique_grid()) is None
