"""Running a model: progress, cancelling, time limits, prompts, provenance; torch not too early."""

import re
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import CaseError, MissingExtraError, ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Cancelled, listening, report_progress
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings, Ran
from napari_mamamia.segmentation.model.planner import OutOfMemoryError
from napari_mamamia.segmentation.model.postprocess import PostKind, PostStep
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.segmenter import BoxPrompt, Click
from napari_mamamia.segmentation.run.trained import TrainedSegmenter
from napari_mamamia.segmentation.run.weights import recognise_model

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

GRID = Grid((20, 24, 28), np.diag([-1.0, -1.0, 1.0, 1.0]))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def case_of(phases=2, grid=GRID, seed=2):
    rng = np.random.default_rng(seed)
    signal = rng.integers(1, 90, (phases, *grid.shape)).astype(np.int16)
    signal[1:] += 20
    return Case("MADE_1", grid, signal, tuple(Phase(k) for k in range(phases)))


def loaded(root, **settings):
    from napari_mamamia.segmentation.nnunet.engine import load_nnunet

    return load_nnunet(recognise_model(root), EngineSettings(**settings))


def test_importing_the_rooms_brings_no_torch():
    code = (
        "import sys, importlib, pkgutil\n"
        "import napari_mamamia, napari_mamamia.segmentation.run.trained, napari_mamamia.cli\n"
        "import napari_mamamia.segmentation.run.weights\n"
        "import napari_mamamia.segmentation.model.recipe_input\n"
        "print([m for m in ('torch', 'openvino', 'nnunetv2', 'napari') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_torch_the_pip_command_is_named(made, tmp_path, monkeypatch):
    segmenter = TrainedSegmenter(recognise_model(made.write_model(tmp_path, made.Spec())))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"napari-mamamia\[segment\]"):
        segmenter.predict(case_of())


def test_progress_comes_with_every_tile_and_copy_and_ends_at_the_total(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec(mirror=(0, 1))))
    seen = []
    with listening(seen.append):
        engine.predict(EngineInput(list(case_of().signal), GRID))
    plan = engine.plan(GRID)
    assert (plan.passes, plan.folds) == (4, 1)
    assert sum("tile" in progress.text for progress in seen) == plan.tiles * 4 == plan.forwards
    assert seen[-1].fraction == 1.0
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)


def test_a_closed_run_leaves_no_thread_and_gives_torch_its_threads_back(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec(mirror=None)), threads=2)
    before = threading.active_count()
    for stop_after in (1, 5, 12):
        threads = []

        def stop(_, threads=threads, stop_after=stop_after):
            threads.append(torch.get_num_threads())
            if len(threads) == stop_after:
                raise Cancelled

        with pytest.raises(Cancelled), listening(stop):
            engine.predict(EngineInput(list(case_of().signal), GRID))
        assert threads == [2] * stop_after
        assert torch.get_num_threads() == 1
    assert threading.active_count() == before
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    assert engine.predict(EngineInput(list(case_of().signal), GRID)).labels.shape == GRID.shape


def test_a_second_run_gives_the_same_labels(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec(folds=("0", "1"), mirror=None)))
    first, second = (engine.predict(EngineInput(list(case_of().signal), GRID)) for _ in range(2))
    assert np.array_equal(first.labels, second.labels)


def test_at_the_deadline_whole_folds_are_averaged_and_the_rest_is_said(made, tmp_path, monkeypatch):
    root = made.write_model(tmp_path, made.Spec(folds=("0", "1", "2"), mirror=None))
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    engine = loaded(root)
    tiles = engine.plan(GRID).tiles
    found = engine.predict(EngineInput(list(case_of().signal), GRID, deadline=1.5 * tiles))
    assert found.ran.folds_done == ("0",)
    assert found.ran.folds_asked == ("0", "1", "2")
    assert found.ran.cut_short == "the time limit was reached after 1 of 3 folds"
    alone = loaded(root, folds=("0",)).predict(EngineInput(list(case_of().signal), GRID))
    assert np.array_equal(found.labels, alone.labels)


def test_a_deadline_within_the_first_fold_is_an_error(made, tmp_path):
    engine = loaded(made.write_model(tmp_path, made.Spec()))
    with pytest.raises(ModelError, match="one fold within the time limit"):
        engine.predict(EngineInput(list(case_of().signal), GRID, deadline=time.monotonic()))


def test_the_probability_is_above_a_half_where_a_two_class_model_says_tumour(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(mirror=None, seed=1))
    found = loaded(root, keep_probability=True).predict(EngineInput(list(case_of().signal), GRID))
    assert found.probability.dtype == np.float16
    assert 0 < np.count_nonzero(found.labels) < found.labels.size
    assert found.probability[found.labels > 0].min() >= 0.499
    assert found.probability[found.labels == 0].max() <= 0.501


def test_a_prediction_carries_what_made_it(made, tmp_path):
    root = made.write_model(tmp_path, made.Spec(folds=("0", "1"), mirror=(0,)))
    segmenter = TrainedSegmenter(recognise_model(root), EngineSettings(folds=("1",)))
    prediction = segmenter.predict(case_of())
    kept = dict(prediction.parameters)
    assert kept["folds"] == "1"
    assert kept["mirrored_copies"] == 2
    assert kept["step"] == 0.5
    assert (kept["device"], kept["backend"], kept["precision"]) == ("cpu", "torch", "fp32")
    assert kept["threads"] == 1
    assert kept["weights_sha256"] == segmenter.card.sha256
    assert segmenter.card.sha256[:12] in segmenter.note


class FixedRunner:
    """Answers with the same labels at once, and remembers the region it was asked for."""

    def __init__(self, labels):
        self.labels = labels
        self.region = None

    def predict(self, given):
        self.region = given.region
        report_progress(0, 1)
        return EngineResult(
            self.labels, Ran(("0",), ("0",), 1, 0, 1, 0.5, "cpu", "torch", "fp32", 1)
        )

    def close(self):
        pass


def two_balls():
    labels = np.zeros(GRID.shape, dtype=np.uint8)
    labels[2:6, 2:6, 2:6] = 1
    labels[10:18, 12:20, 14:22] = 2
    return labels


def segmenter_of(made, tmp_path, recipe=None):
    card = recognise_model(made.write_model(tmp_path, made.Spec()))
    runner = FixedRunner(two_balls())
    return TrainedSegmenter(card, recipe=recipe or Recipe(), runner=runner), runner


def test_candidates_are_regions_by_size(made, tmp_path):
    segmenter, _ = segmenter_of(made, tmp_path)
    prediction = segmenter.predict(case_of())
    assert [c.volume_mm3 for c in prediction.candidates] == [512.0, 64.0]
    assert np.array_equal(prediction.mask.array, two_balls() > 0)


def test_a_click_chooses_the_nearest_region(made, tmp_path):
    segmenter, _ = segmenter_of(made, tmp_path)
    prediction = segmenter.predict(case_of(), Click((8, 8, 8)))
    assert np.array_equal(prediction.mask.array, two_balls() == 1)


def test_a_box_is_the_region_and_nothing_outside_is_kept(made, tmp_path):
    segmenter, runner = segmenter_of(made, tmp_path)
    box = Box((0, 0, 0), (12, 24, 28))
    prediction = segmenter.predict(case_of(), BoxPrompt(box))
    assert runner.region == box
    assert not prediction.mask.array[12:].any()
    assert prediction.mask.array[10:12].any()
    with pytest.raises(CaseError, match="draw it inside"):
        segmenter.predict(case_of(), BoxPrompt(Box((0, 0, 0), (99, 2, 2))))


def test_steps_after_the_network_are_applied_and_told(made, tmp_path):
    recipe = Recipe(tumour_labels=(1, 2), post=(PostStep(PostKind.LARGEST),))
    segmenter, _ = segmenter_of(made, tmp_path, recipe)
    prediction = segmenter.predict(case_of())
    assert np.array_equal(prediction.mask.array, two_balls() == 2)
    assert "largest component: removed 64 voxels (64 mm3)" in prediction.notes


def test_only_the_recipes_labels_make_the_mask(made, tmp_path):
    segmenter, _ = segmenter_of(made, tmp_path, Recipe(tumour_labels=(1,)))
    assert np.array_equal(segmenter.predict(case_of()).mask.array, two_balls() == 1)


def test_reversed_phases_are_told(made, tmp_path):
    segmenter, _ = segmenter_of(made, tmp_path)
    case = case_of()
    reverse = Case(case.case_id, case.grid, case.signal[::-1], case.phases)
    assert any("wrong order" in note for note in segmenter.predict(reverse).notes)
    assert not any("wrong order" in note for note in segmenter.predict(case).notes)


def test_too_few_phases_are_refused(made, tmp_path):
    segmenter, _ = segmenter_of(made, tmp_path)
    with pytest.raises(CaseError, match=r"to have at least 2 phases, but it has 1"):
        segmenter.predict(case_of(phases=1))


def test_a_zip_is_run_from_the_cache(made, tmp_path, monkeypatch):
    import shutil

    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    root = made.write_model(tmp_path / "results", made.Spec(mirror=None))
    path = shutil.make_archive(str(tmp_path / "model"), "zip", tmp_path / "results")
    arrays = list(case_of().signal)
    zipped = loaded(tmp_path / path).predict(EngineInput(arrays, GRID))
    assert np.array_equal(zipped.labels, loaded(root).predict(EngineInput(arrays, GRID)).labels)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"),
        RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("MPS backend out of memory (MPS allocated: 9 GB, max allowed: 9 GB)"),
    ],
    ids=str,
)
def test_without_memory_on_the_card_the_sums_move_and_the_same_tile_is_tried_again(
    monkeypatch, error
):
    from napari_mamamia.segmentation.model import nnunet_tiles

    tries = []

    def forward(tile):
        tries.append(tile.clone())
        if len(tries) == 2:
            raise error
        return tile.clone()

    grid = nnunet_tiles.tile_grid((8, 8, 12), (8, 8, 8), 0.5)
    data = torch.arange(8 * 8 * 12, dtype=torch.float32).reshape(1, 8, 8, 12) / 100
    moved = iter([True, False])
    monkeypatch.setattr(nnunet_tiles._Sums, "moved_to_processor", lambda _: next(moved))
    mean = nnunet_tiles.sum_tiles(forward, data, grid, 1)
    assert len(grid.places) == 2
    assert len(tries) == 3
    assert torch.equal(tries[1], tries[2])
    assert torch.equal(mean, nnunet_tiles.sum_tiles(torch.clone, data, grid, 1))
    assert torch.allclose(mean[:, 3:5, 3:5].float(), data[:, 3:5, 3:5], rtol=2e-2)
    tries.clear()
    with pytest.raises(OutOfMemoryError, match="after the sums were moved"):
        nnunet_tiles.sum_tiles(forward, data, grid, 1)


def test_sums_that_do_not_fit_on_the_card_are_kept_on_the_processor(monkeypatch):
    from napari_mamamia.segmentation.model import nnunet_tiles

    zeros = torch.zeros

    def without_memory(*size, device="cpu", **options):
        if device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return zeros(*size, device=device, **options)

    monkeypatch.setattr(torch, "zeros", without_memory)
    grid = nnunet_tiles.tile_grid((8, 8, 12), (8, 8, 8), 0.5)
    # "meta" stands for a card: it has the same functions, and no memory.
    sums = nnunet_tiles._Sums(
        grid, 2, "meta", lambda patch, device: torch.ones(patch, device=device).half()
    )
    assert sums._sums.device.type == "cpu"
    assert sums._importance.device.type == "cpu"


def test_another_failure_of_a_tile_is_not_tried_again():
    from napari_mamamia.segmentation.model import nnunet_tiles

    tries = []

    def forward(tile):
        tries.append(tile)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    grid = nnunet_tiles.tile_grid((8, 8, 8), (8, 8, 8), 0.5)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        nnunet_tiles.sum_tiles(forward, torch.zeros((1, 8, 8, 8)), grid, 1)
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), OutOfMemoryError),
        (MemoryError(), OutOfMemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), OutOfMemoryError),
        (RuntimeError("CUDA error: no kernel image is available"), ModelError),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"), ModelError),
    ],
    ids=str,
)
@pytest.mark.parametrize("step", ["loading", "a tile", "the run"])
def test_memory_and_card_errors_of_every_step_name_the_model(
    made, tmp_path, monkeypatch, error, kind, step
):
    from napari_mamamia.segmentation.run import engine_host

    class Broken:
        def run_one_tile(self):
            raise error

        def predict(self, given):
            raise error

        def close(self):
            pass

    def load(card, settings):
        if step == "loading":
            raise error
        return Broken()

    card = recognise_model(made.write_model(tmp_path / "results", made.Spec(mirror=None)))
    monkeypatch.setattr(engine_host, "load_engine", load)
    host = engine_host.EngineHost()
    given = (card, EngineSettings())
    run = host.time_tile if step == "a tile" else partial(host.predict, given=EngineInput([], GRID))
    with pytest.raises(kind, match=re.escape(card.name)) as raised:
        run(*given)
    assert type(raised.value) is kind
