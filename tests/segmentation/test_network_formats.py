"""A network in a single file: five formats, one result, and it is that of a slow implementation."""

import importlib.util
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.stepped import Stepped

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.network_spec import network_from
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.recipe_input import input_grid
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.segmentation.run.engines import load_engine
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.segmentation.worker.client import Worker

torch = pytest.importorskip("torch")
for package in ("dynamic_network_architectures", "safetensors", "onnxruntime", "openvino", "onnx"):
    pytest.importorskip(package)

_FOUND = importlib.util.spec_from_file_location(
    "network_made", Path(__file__).with_name("network_made.py")
)
made = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(made)

SHAPE = (6, 21, 12)
GRID = Grid(SHAPE, np.diag([-1.0, -1.0, 1.0, 1.0]))
ONE = EngineSettings(threads=1, keep_probability=True)
# By nnU-Net's rule: 6 is padded to 8 (1 before, 1 after); 21 needs ceil(13 / 4) + 1 = 5 tiles at
# multiples of 3.25, rounded half to even; 12 needs 2.
STARTS, OFFSET, PADDED = ([0], [0, 3, 6, 10, 13], [0, 4]), (1, 0, 0), (8, 21, 12)
FORMATS = ("script", "exported", "onnx", "ir", "safetensors")
# Sums of float32 products in another order: some ulp of values of about 1.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return made.write_all(tmp_path_factory.mktemp("networks"))


@pytest.fixture(scope="module")
def module():
    return made.unet()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def run(folder, settings=ONE, grid=GRID, arrays=None, **how):
    card = recognise_model(folder)
    assert card.missing == ()
    engine = load_engine(card, settings)
    arrays = made.volumes(grid.shape) if arrays is None else arrays
    try:
        return engine.predict(EngineInput(arrays, grid, **how))
    finally:
        engine.close()


def softmax_foreground(outputs):
    shares = np.exp(outputs - outputs.max(0))
    return 1 - shares[0] / shares.sum(0)


def sure(outputs, margin=TOLERANCE * 10):
    """Return where the largest output is ahead of the next by more than rounding."""
    ordered = np.sort(outputs, axis=0)
    return ordered[-1] - ordered[-2] > margin


def gaussian_weight():
    # a Gaussian of 1/8 of the patch around voxel 4, cut off at 4 of its widths, summing to one
    # per axis before it is scaled; only ratios matter
    line = np.exp(-((np.arange(8) - 4.0) ** 2) / 2)
    return line[:, None, None] * line[None, :, None] * line[None, None, :]


def as_expected(result, expected, values=(0, 1, 4), margin=TOLERANCE * 10):
    certain = sure(expected, margin)
    assert certain.mean() > 0.99
    wanted = np.array(values)[expected.argmax(0)]
    assert set(np.unique(wanted)) == set(values)
    np.testing.assert_array_equal(result.labels[certain], wanted[certain])
    difference = np.abs(result.probability - softmax_foreground(expected))
    assert difference.max() < 1e-3  # half precision of numbers up to 1: 2**-11


@pytest.mark.parametrize("name", FORMATS)
def test_labels_and_probability_are_those_of_a_slow_implementation(name, files, module):
    arrays = made.volumes(SHAPE)
    weight = gaussian_weight()
    expected = made.averaged(module, arrays, STARTS, OFFSET, PADDED, 3, weight)
    result = run(files[name], arrays=arrays)
    as_expected(result, expected)
    assert result.labels.dtype == np.uint8
    assert (result.ran.tiles, result.ran.passes, result.ran.folds_done) == (10, 1, ())


def test_what_ran_is_recorded(files):
    ran = {name: run(folder).ran for name, folder in files.items()}
    backends = {name: one.backend for name, one in ran.items()}
    assert backends == {
        "script": "torch", "exported": "torch", "safetensors": "torch",
        "onnx": "onnxruntime", "ir": "openvino",
    }  # fmt: skip
    assert {(one.device, one.precision, one.threads) for one in ran.values()} == {
        ("cpu", "fp32", 1)
    }


@pytest.mark.parametrize("name", ["exported", "onnx"])
def test_openvino_runs_the_other_formats_when_it_is_asked_for(name, files):
    arrays = made.volumes(SHAPE)
    own = run(files[name], arrays=arrays)
    with_openvino = run(files[name], replace(ONE, backend="openvino"), arrays=arrays)
    assert with_openvino.ran.backend == "openvino"
    assert (own.labels != with_openvino.labels).mean() < 0.001
    np.testing.assert_allclose(own.probability, with_openvino.probability, atol=2e-3)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return a way to write a TorchScript file of `Tiny` with a recipe of its own."""

    def write(heads=3, **changes):
        folder = tmp_path_factory.mktemp("tiny")
        made.recipe(folder, made.section(**changes))
        made.scripted(made.Tiny(heads), folder / "net.pt")
        return folder

    return write


def test_tiles_of_equal_weight_give_the_plain_mean(tiny):
    arrays = made.volumes(SHAPE)
    expected = made.averaged(made.Tiny(), arrays, STARTS, OFFSET, PADDED, 3)
    as_expected(run(tiny(weight="constant"), arrays=arrays), expected)


@pytest.mark.parity
def test_equal_weights_agree_with_monai_where_its_tiles_lie_in_the_same_places(tiny):
    inferers = pytest.importorskip("monai.inferers")
    shape = (8, 20, 12)  # 8 + 4 k: MONAI's tiles lie at multiples of 4, as nnU-Net's do
    arrays = made.volumes(shape)
    inferer = inferers.SlidingWindowInferer(made.PATCH, overlap=0.5, mode="constant")
    with torch.no_grad():
        expected = inferer(torch.from_numpy(np.stack(arrays))[None], made.Tiny())[0].numpy()
    grid = Grid(shape, np.diag([-1.0, -1.0, 1.0, 1.0]))
    as_expected(run(tiny(weight="constant"), grid=grid, arrays=arrays), expected)


def test_mirrored_copies_are_averaged_along_the_axes_of_the_recipe_only(tiny):
    arrays = made.volumes(made.PATCH)
    grid = Grid(made.PATCH, np.diag([-1.0, -1.0, 1.0, 1.0]))
    data = torch.from_numpy(np.stack(arrays))[None]
    with torch.no_grad():
        plain = made.Tiny()(data)
        flipped = torch.flip(made.Tiny()(torch.flip(data, (3,))), (3,))
    expected = ((plain + flipped) / 2)[0].numpy()
    folder = tiny(mirror_axes=[1])
    result = run(folder, grid=grid, arrays=arrays)
    as_expected(result, expected)
    assert result.ran.passes == 2
    as_expected(
        run(folder, replace(ONE, mirroring=False), grid=grid, arrays=arrays), plain[0].numpy()
    )


def test_a_region_changes_nothing_inside_and_clears_what_lies_outside(tiny):
    folder = tiny()
    arrays = made.volumes(SHAPE)
    whole = run(folder, arrays=arrays)
    region = Box((0, 0, 0), (6, 5, 12))
    part = run(folder, arrays=arrays, region=region)
    np.testing.assert_array_equal(part.labels[region.slices], whole.labels[region.slices])
    np.testing.assert_array_equal(part.probability[region.slices], whole.probability[region.slices])
    assert part.labels[:, 5:].any() == part.probability[:, 5:].any() == False  # noqa: E712
    assert part.ran.tiles_skipped == 6  # of five places along y, those at 6, 10 and 13


def test_labels_on_their_own_count_above_the_threshold_and_later_ones_win(tiny):
    arrays = made.volumes(made.PATCH)
    grid = Grid(made.PATCH, np.diag([-1.0, -1.0, 1.0, 1.0]))
    with torch.no_grad():
        outputs = made.Tiny(2)(torch.from_numpy(np.stack(arrays))[None])[0].numpy()
    share = 1 / (1 + np.exp(-outputs.astype(float)))
    expected = np.where(share[1] > 0.6, 4, np.where(share[0] > 0.6, 1, 0))
    certain = (np.abs(share - 0.6) > 1e-5).all(0)
    folder = tiny(heads=2, output="label logits", threshold=0.6)
    result = run(folder, grid=grid, arrays=arrays)
    assert set(np.unique(expected)) == {0, 1, 4}
    np.testing.assert_array_equal(result.labels[certain], expected[certain])
    np.testing.assert_allclose(result.probability, share.max(0), atol=1e-3)


@pytest.mark.parametrize("orientation", ["RAS", "SAR", "LPI"])
def test_the_network_sees_axes_that_point_where_the_recipe_says(orientation, tiny):
    # a case whose array (z, y, x) points to left, superior, posterior
    shape = (8, 9, 10)
    affine = np.array([[0, 0, -1.0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1]])
    grid = Grid(shape, affine)
    assert "".join(grid.orientation[::-1]) == "LSP"
    arrays = made.volumes(shape)
    towards = {"RAS": ((0, 2, 1), (0, 1)), "SAR": ((1, 2, 0), (1, 2)), "LPI": ((0, 2, 1), (2,))}
    axes, flips = towards[orientation]
    turned = [np.flip(array.transpose(axes), flips) for array in arrays]
    places = {8: [0], 9: [0, 1], 10: [0, 2]}  # ceil((n - 8) / 4) + 1 tiles, evenly apart
    starts = [places[n] for n in turned[0].shape]
    expected = made.averaged(
        made.Tiny(), turned, starts, (0, 0, 0), turned[0].shape, 3, gaussian_weight()
    )
    result = run(tiny(orientation=orientation), grid=grid, arrays=arrays)
    labels, probability = (
        np.flip(found.transpose(axes), flips) for found in (result.labels, result.probability)
    )
    as_expected(replace(result, labels=labels, probability=probability), expected)


def test_a_spacing_follows_the_axes_of_the_network():
    affine = np.array([[0, 0, -1.0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1]])
    grid = Grid((8, 9, 10), affine)  # 1 mm; the array points to left, superior, posterior
    said = network_from(made.section(orientation="RAS"), "it")
    recipe = Recipe(spacing_mm=(2.0, 1.0, 0.5), network=said)  # right, anterior, superior
    assert input_grid(grid, recipe)[0].shape == (4, 18, 10)
    stored = replace(recipe, network=replace(said, orientation=""))
    assert input_grid(grid, stored)[0].shape == (4, 9, 20)


def test_a_patch_of_two_axes_goes_through_the_slices(tmp_path):
    net = torch.nn.Conv2d(2, 2, 3, padding=1)
    folder = made.recipe(tmp_path, made.section(patch=[8, 8], labels={"tumour": 1}))
    made.scripted(net, folder / "net.pt")
    arrays = made.volumes((3, 8, 8))
    with torch.no_grad():
        expected = net(torch.from_numpy(np.stack(arrays)).transpose(0, 1)).argmax(1).numpy()
    result = run(folder, grid=Grid((3, 8, 8), np.diag([-1.0, -1.0, 1.0, 1.0])), arrays=arrays)
    np.testing.assert_array_equal(result.labels, expected)


def test_the_patch_may_come_from_the_file_itself(files, tmp_path):
    for name, file in (("onnx", "net.onnx"), ("exported", "net.pt2"), ("ir", "net.xml")):
        folder = made.recipe(tmp_path / name, made.section(patch=[]))
        for one in files[name].glob("net.*"):
            (folder / one.name).write_bytes(one.read_bytes())
        card = recognise_model(folder / file)
        assert card.network.patch == made.PATCH


def test_a_header_of_safetensors_may_stand_for_the_recipe(files, tmp_path):
    from safetensors.torch import load_file, save_file

    said = json.dumps(made.section(architecture=made.unet_architecture()))
    save_file(
        load_file(files["safetensors"] / "net.safetensors"),
        tmp_path / "net.safetensors",
        {"mamamia_network": said},
    )
    arrays = made.volumes(SHAPE)
    own = run(tmp_path / "net.safetensors", arrays=arrays)
    np.testing.assert_array_equal(own.labels, run(files["safetensors"], arrays=arrays).labels)


def test_steps_and_copies_give_the_planned_number_of_tiles(tiny):
    engine = load_engine(recognise_model(tiny(mirror_axes=[0, 1, 2])), ONE)
    assert (engine.plan(GRID).tiles, engine.plan(GRID).passes, engine.plan(GRID).folds) == (
        10,
        8,
        1,
    )
    engine.settings = replace(ONE, step=1.0, most_copies=3)
    # 21 in steps of 8: ceil(13 / 8) + 1 = 3; 12: 2. Of at most 3 copies 2 are a whole axis.
    assert (engine.plan(GRID).tiles, engine.plan(GRID).passes) == (6, 2)
    assert engine.flips == ((4,),)  # the last axis of a batch stays
    assert engine.plan(GRID, Box((0, 0, 0), (6, 1, 12))).skipped == 4


def test_a_deadline_before_the_last_tile_leaves_nothing_half_done(tiny):
    with pytest.raises(ModelError, match=r"within the time limit, but its 10 tiles x 1 copies"):
        run(tiny(), deadline=time.monotonic())


def test_progress_comes_with_every_tile_and_a_cancelled_run_can_be_repeated(tiny):
    engine = load_engine(recognise_model(tiny()), ONE)
    arrays = made.volumes(SHAPE)
    job = Stepped(engine.predict, EngineInput(arrays, GRID))
    texts = [next(job).text for _ in range(6)]
    job.close()
    assert "Predicting: tile 1 of 10" in texts
    seen = []
    with listening(seen.append):
        engine.predict(EngineInput(arrays, GRID))
    assert {f"Predicting: tile {n} of 10" for n in range(1, 11)} <= {step.text for step in seen}
    assert seen[-1].fraction == 1


def test_the_models_process_gives_the_same_labels(files, module):
    card = recognise_model(files["onnx"])
    arrays = made.volumes(SHAPE)
    worker = Worker()
    try:
        far = worker.predict(card, ONE, EngineInput(arrays, GRID))
        assert worker.plan(card, ONE, GRID, None).tiles == 10
    finally:
        worker.close()
    near = EngineHost().predict(card, ONE, EngineInput(arrays, GRID))
    np.testing.assert_array_equal(far.labels, near.labels)
    np.testing.assert_array_equal(far.probability, near.probability)
    assert far.ran.backend == "onnxruntime"


def test_a_host_loads_anew_where_the_recipe_differs(files):
    host = EngineHost()
    card = recognise_model(files["script"])
    arrays = made.volumes(SHAPE)
    first = host.predict(card, ONE, EngineInput(arrays, GRID))
    other = replace(card, network=replace(card.network, labels=(("tumour", 7), ("vessel", 9))))
    second = host.predict(other, ONE, EngineInput(arrays, GRID))
    np.testing.assert_array_equal(first.labels == 1, second.labels == 7)
    assert (first.labels == 1).any()


def test_half_the_precision_is_recorded_and_stays_near(files):
    arrays = made.volumes(SHAPE)
    for name in ("script", "exported", "ir"):
        exact = run(files[name], arrays=arrays)
        short = run(files[name], replace(ONE, precision="bf16"), arrays=arrays)
        assert short.ran.precision == "bf16"
        assert np.abs(exact.probability - short.probability).max() < 0.1
        assert (exact.labels != short.labels).mean() < 0.1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("script", "TorchScript"),
        ("exported", "torch.export"),
        ("onnx", "ONNX"),
        ("ir", "OpenVINO"),
        ("safetensors", "safetensors"),
    ],
)
def test_a_card_says_what_the_recipe_says(name, kind, files):
    card = recognise_model(files[name])
    assert card.kind is ModelKind(kind)
    assert card.channels == ("pre", "post")
    assert card.labels == (("tumour", (1,)), ("vessel", (4,)))
    assert dict(card.facts)["patch"] == "8 x 8 x 8"
    assert len(card.sha256) == 64
    if name == "ir":
        assert [weight.name for weight in card.weights] == ["net.xml", "net.bin"]
