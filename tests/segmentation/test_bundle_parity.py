"""Bundles give what MONAI's own workflow makes of the same files, voxel for voxel."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.halves import third_by_day
from tests.packages import need_package

sys.path.insert(0, str(Path(__file__).parent))

torch = pytest.importorskip("torch")
need_package("monai")

from bundle_maker import (  # noqa: E402
    by_monai,
    config,
    images,
    metadata,
    network,
    oblique_grid,
    write_bundle,
)

from napari_mamamia.segmentation.model.engine import EngineInput  # noqa: E402
from napari_mamamia.segmentation.model.engine_settings import EngineSettings  # noqa: E402
from napari_mamamia.segmentation.run.engines import load_engine  # noqa: E402
from napari_mamamia.segmentation.run.weights import recognise_model  # noqa: E402

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore"),  # MONAI's and torch's own, in their own workflow
]
GRID = oblique_grid()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def engine_of(bundle):
    settings = EngineSettings(threads=1, device="cpu", keep_probability=True)
    return load_engine(recognise_model(bundle), settings)


def ours(bundle, arrays, grid=GRID):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing of MONAI's talk reaches the user
        return engine_of(bundle).predict(EngineInput(arrays, grid))


def require_equal(bundle, inference, folder, channels=2, grid=GRID, model=None):
    """Compare labels and probability; return the labels."""
    arrays = images(grid, channels)
    found = ours(bundle, arrays, grid)
    theirs = by_monai(bundle, inference, arrays, grid, folder, network=model)
    shares = by_monai(
        bundle, inference, arrays, grid, folder, without=("AsDiscreted",), network=model
    )
    assert theirs.shape == (1, *grid.shape)
    assert len(np.unique(theirs)) > 1
    assert np.array_equal(found.labels, theirs[0])
    assert np.array_equal(found.probability, shares[1:].sum(axis=0).astype(np.float16))
    return found.labels


@pytest.mark.parametrize("kind", third_by_day(["UNet", "SegResNet", "DynUNet"]))
def test_a_bundle_gives_what_monai_gives(tmp_path, kind):
    inference = config() | {"network_def": network(kind)}
    bundle = write_bundle(tmp_path / "b", inference, wrap="model" if kind == "UNet" else "")
    require_equal(bundle, inference, tmp_path)


def test_a_torchscript_bundle_gives_what_monai_gives(tmp_path):
    inference = config()
    bundle = write_bundle(tmp_path / "b", inference, scripted=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.load(str(bundle / "models" / "model.ts")).eval()
    require_equal(bundle, inference, tmp_path, model=model)


def test_one_channel_a_window_larger_than_the_volume_and_constant_blending(tmp_path):
    inference = config(channels=1)
    inference["inferer"] |= {
        "roi_size": [40, -1, 16],
        "mode": "constant",
        "overlap": [0.25, 0.5, 0.625],
        "padding_mode": "replicate",
        "sw_batch_size": 1,
    }
    bundle = write_bundle(tmp_path / "b", inference, metadata(1))
    require_equal(bundle, inference, tmp_path, channels=1)


def test_the_network_on_the_whole_volume_at_once(tmp_path):
    inference = config() | {"inferer": {"_target_": "monai.inferers.SimpleInferer"}}
    steps = inference["preprocessing"]["transforms"]
    steps.insert(4, {"_target_": "DivisiblePadd", "keys": ["image"], "k": 4})
    bundle = write_bundle(tmp_path / "b", inference)
    require_equal(bundle, inference, tmp_path)


def test_an_empty_border_that_is_cut_off_comes_back_as_background(tmp_path):
    inference = config()
    steps = inference["preprocessing"]["transforms"]
    steps.insert(
        4, {"_target_": "CropForegroundd", "keys": "image", "source_key": "image", "margin": 1}
    )
    steps[5] = {
        "_target_": "ScaleIntensityRangePercentilesd",
        "keys": "image",
        "lower": 1,
        "upper": 99,
        "b_min": 0,
        "b_max": 1,
        "clip": True,
    }
    grid = oblique_grid((14, 40, 26))
    arrays = images(grid)
    for array in arrays:
        array[:, :14] = 0
    bundle = write_bundle(tmp_path / "b", inference)
    found = ours(bundle, arrays, grid)
    theirs = by_monai(bundle, inference, arrays, grid, tmp_path)
    assert np.array_equal(found.labels, theirs[0])
    assert not found.labels[:, :8].any()
    assert not found.probability[:, :8].any()


def test_overlapping_regions_with_a_threshold_of_their_own(tmp_path):
    inference = config(outputs=2)
    inference["postprocessing"]["transforms"] = [
        {"_target_": "Activationsd", "keys": "pred", "sigmoid": True},
        {
            "_target_": "Invertd",
            "keys": "pred",
            "transform": "@preprocessing",
            "orig_keys": "image",
            "nearest_interp": False,
        },
        {"_target_": "AsDiscreted", "keys": "pred", "threshold": 0.5},
    ]
    bundle = write_bundle(tmp_path / "b", inference, metadata(2, ("whole", "core")))
    arrays = images(GRID)
    found = ours(bundle, arrays)
    whole, core = by_monai(bundle, inference, arrays, GRID, tmp_path)
    assert np.array_equal(found.labels == 2, core == 1)
    assert np.array_equal(found.labels == 1, (whole == 1) & (core == 0))
    shares = by_monai(bundle, inference, arrays, GRID, tmp_path, without=("AsDiscreted",))
    assert np.array_equal(found.probability, shares.max(axis=0).astype(np.float16))


def test_steps_after_argmax_and_labels_brought_back_by_the_nearest_voxel(tmp_path):
    inference = config()
    discrete, undo = (inference["postprocessing"]["transforms"][k] for k in (2, 1))
    inference["postprocessing"]["transforms"] = [
        discrete,
        {"_target_": "FillHolesd", "keys": "pred", "applied_labels": [1]},
        {
            "_target_": "KeepLargestConnectedComponentd",
            "keys": "pred",
            "applied_labels": [1, 2],
            "is_onehot": False,
            "independent": False,
        },
        undo | {"nearest_interp": True},
    ]
    bundle = write_bundle(tmp_path / "b", inference)
    arrays = images(GRID)
    theirs = by_monai(bundle, inference, arrays, GRID, tmp_path)
    assert np.array_equal(ours(bundle, arrays).labels, theirs[0])
    assert 0 < np.count_nonzero(theirs) < theirs.size


def test_without_a_step_back_labels_come_back_by_the_nearest_voxel(tmp_path):
    with_step = config()
    undo = with_step["postprocessing"]["transforms"].pop(1)
    bundle = write_bundle(tmp_path / "b", with_step)
    with_step["postprocessing"]["transforms"].append(undo | {"nearest_interp": True})
    arrays = images(GRID)
    theirs = by_monai(bundle, with_step, arrays, GRID, tmp_path)
    assert np.array_equal(ours(bundle, arrays).labels, theirs[0])


def test_one_image_for_each_channel(tmp_path):
    inference = config()
    steps = inference["preprocessing"]["transforms"]
    for step in steps:
        step["keys"] = ["pre", "post"]
    steps.append({"_target_": "ConcatItemsd", "keys": ["pre", "post"], "name": "image"})
    inference["postprocessing"]["transforms"][1]["orig_keys"] = "post"
    bundle = write_bundle(tmp_path / "b", inference)
    require_equal(bundle, inference, tmp_path)


def test_lazy_preprocessing_resamples_once(tmp_path):
    inference = config()
    inference["preprocessing"]["lazy"] = True
    steps = inference["preprocessing"]["transforms"]
    steps.insert(4, {"_target_": "Resized", "keys": "image", "spatial_size": [24, 24, 20]})
    bundle = write_bundle(tmp_path / "b", inference)
    require_equal(bundle, inference, tmp_path)


def test_the_plan_knows_the_shape_and_the_windows_of_the_run(tmp_path):
    inference = config()
    steps = inference["preprocessing"]["transforms"]
    steps.insert(4, {"_target_": "SpatialPadd", "keys": "image", "spatial_size": [32, 32, 32]})
    bundle = write_bundle(tmp_path / "b", inference)
    engine = engine_of(bundle)
    arrays = images(GRID)
    planned, found = engine.plan(GRID), engine.predict(EngineInput(arrays, GRID))
    data = engine.transforms.prepare(arrays, GRID)
    assert planned.model_shape == tuple(data["image"].shape[:0:-1])
    assert planned.tiles == found.ran.tiles > 3
    assert planned.passes == planned.folds == 1
