"""`mamamia predict` with trained models: nnU-Net's own mask, faster means, places, a kill."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.box import Box
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.segmentation.model.engine import EngineInput
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.run.engine_host import EngineHost
from napari_mamamia.segmentation.run.weights import recognise_model
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.model_choice import RunChoices, open_model

torch = pytest.importorskip("torch")
pytest.importorskip("dynamic_network_architectures")

_FOUND = importlib.util.spec_from_file_location(
    "made_models", Path(__file__).parents[1] / "segmentation" / "conftest.py"
)
made = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = made
_FOUND.loader.exec_module(made)

CASES = ("A_1", "A_2", "B_1")
LONG_S = 60.0


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Let every process use one thread: on a busy machine several wait for each other for long."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def predicted(data_set, model, out, *options):
    """Run the command and return what it printed."""
    words = ["predict", str(data_set), "--model", str(model), "--out", str(out), *options]
    words += ["--threads", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def mask(path):
    return np.asarray(read_labels(path).dense())


def parameters(path):
    found = json.loads(path.read_text())["parameters"]
    return dict(found) if isinstance(found, list) else found


# ------------------------------------------------------------------- the real model

CORNER = Box((8, 150, 100), (38, 250, 180))  # two tiles
ONE_PASS = ("--step", "1", "--no-mirroring")


@pytest.fixture
def corner(real_data, tmp_path):
    """Return the real model's folder and a data set of a corner of its case."""
    folder = real_data("nnunet")
    z, y, x = CORNER.slices
    for k in range(3):
        image = nib.load(folder / "images" / "PH_901" / f"PH_901_{k:04d}.nii.gz")
        cut = image.slicer[x, y, z]
        target = tmp_path / "data" / "images" / "PH_901" / f"PH_901_{k:04d}.nii.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        nib.save(cut, target)
    return folder / "Dataset901_Phantom", tmp_path / "data" / "images"


def stock_mask(model, images):
    """Return the mask of nnunetv2's own predictor, read and run its own way."""
    from nnunetv2.imageio.simpleitk_reader_writer import SimpleITKIO
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor

    predictor = nnUNetPredictor(
        tile_step_size=1.0,
        use_mirroring=False,
        perform_everything_on_device=False,
        device=torch.device("cpu"),
        allow_tqdm=False,
    )
    leaf = next(model.glob("*__3d_fullres"))
    predictor.initialize_from_trained_model_folder(str(leaf), (0,))
    files = sorted(map(str, (images / "PH_901").glob("*.nii.gz")))
    arrays, properties = SimpleITKIO().read_images(files)
    return predictor.predict_single_npy_array(arrays, properties)


@pytest.mark.night  # by day: in a region, test_nnunet_parity
@pytest.mark.real
@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_the_mask_of_a_real_model_is_that_of_nnunets_own_predictor(corner, tmp_path):
    pytest.importorskip("nnunetv2")
    model, images = corner
    predicted(images, model, tmp_path / "out", *ONE_PASS)
    found = parameters(tmp_path / "out" / "PH_901.json")
    assert (found["step"], found["mirrored_copies"], found["precision"]) == (1.0, 1, "fp32")
    assert found["threads"] == 1
    expected = stock_mask(model, images)
    assert 500 < np.count_nonzero(expected) < expected.size / 2
    assert np.array_equal(mask(tmp_path / "out" / "PH_901.nii.gz"), expected)


def logits_and_labels(model, images, **settings):
    """Return a run's outputs on the model's grid, and its labels, in this process."""
    from napari_mamamia.segmentation.nnunet import engine as nnunet_engine

    case = load_case(open_data_set(images).data_set.case("PH_901"))
    chosen = EngineSettings(step=1.0, mirroring=False, threads=1, **settings)
    engine = nnunet_engine.load_nnunet(recognise_model(model), chosen)
    kept = []
    export = nnunet_engine.export_labels

    def listening(logits, *rest):
        kept.append(logits.clone())
        return export(logits, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nnunet_engine, "export_labels", listening)
        result = engine.predict(EngineInput(list(case.signal), case.grid))
    return kept[0], result.labels


@pytest.fixture(scope="module")
def exact_once():
    """Return what gives the exact outputs and labels of the corner, computed once."""
    kept = {}

    def exact(model, images):
        if model not in kept:
            kept[model] = logits_and_labels(model, images)
        return kept[model]

    return exact


@pytest.mark.night
@pytest.mark.real
def test_openvino_differs_only_where_the_classes_tie(corner, exact_once, tmp_path):
    pytest.importorskip("openvino")
    from tests.segmentation.nnunet_compare import agreement

    model, images = corner
    predicted(images, model, tmp_path / "out", *ONE_PASS, "--backend", "openvino")
    found = parameters(tmp_path / "out" / "PH_901.json")
    assert (found["backend"], found["precision"]) == ("openvino", "fp32")
    exact, labels = exact_once(model, images)
    other, same = logits_and_labels(model, images, backend="openvino")
    compared = agreement(exact, other)
    assert compared.only_ties
    given = mask(tmp_path / "out" / "PH_901.nii.gz")
    assert np.array_equal(given, same)
    # a voxel of the case lies between those of the model: two of 27 around a tie may follow it
    assert np.count_nonzero(given != labels) <= 27 * compared.differing


@pytest.mark.night
@pytest.mark.real
def test_fast_is_close_and_said(corner, exact_once, tmp_path):
    openvino = pytest.importorskip("openvino")
    has_bf16 = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    precision = "bf16" if has_bf16 else "fp32"
    model, images = corner
    said = predicted(images, model, tmp_path / "out", *ONE_PASS, "--fast")
    found = parameters(tmp_path / "out" / "PH_901.json")
    assert (found["backend"], found["precision"]) == ("openvino", precision)
    assert f"in {precision}: individual voxels at the edge may differ" in said
    _, exact = exact_once(model, images)
    fast = mask(tmp_path / "out" / "PH_901.nii.gz")
    assert dice(exact > 0, fast > 0) >= 0.99
    assert np.count_nonzero(exact != fast) < 0.02 * np.count_nonzero(exact)
    assert np.any(exact != fast) or not has_bf16


# ------------------------------------------------------------------- places and a kill


@pytest.fixture
def model(tmp_path):
    spec = made.Spec(channels=("pre", "post"), folds=("0", "1"), mirror=(0,))
    return made.write_model(tmp_path / "results", spec)


@pytest.fixture
def masks_here(small_data_set, model, tmp_path):
    """Return the masks that this process makes, by case."""
    opened = open_data_set(small_data_set)
    segmenter = open_model(str(model), RunChoices(), EngineHost())
    predict_data_set(opened, segmenter, tmp_path / "here")
    return {case: mask(tmp_path / "here" / f"{case}.nii.gz") for case in CASES}


def assert_same(masks, out):
    assert any(one.any() for one in masks.values())
    for case, one in masks.items():
        assert np.array_equal(mask(out / f"{case}.nii.gz"), one), case


@pytest.mark.night  # by day: test_predict_cases has a process beside, test_batch_cluster two
def test_two_workers_make_the_masks_of_one_process(small_data_set, model, masks_here, tmp_path):
    pytest.importorskip("distributed")
    predicted(small_data_set, model, tmp_path / "there", "--workers", "2")
    assert_same(masks_here, tmp_path / "there")


@pytest.fixture
def scheduler(tmp_path):
    """Return the address of a dask scheduler of this machine with one worker."""
    distributed = pytest.importorskip("distributed")
    file, programs = tmp_path / "scheduler.json", []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *words]
        programs.append(subprocess.Popen(command, start_new_session=True, **quiet))

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        end = time.monotonic() + LONG_S
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        start("worker", address, "--nthreads", "1", "--no-nanny")
        with distributed.Client(address) as client:
            client.wait_for_workers(1, timeout=LONG_S)
        yield address
    finally:
        for program in programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@pytest.mark.night
def test_a_cluster_makes_the_masks_of_one_process(
    small_data_set, model, masks_here, scheduler, tmp_path
):
    predicted(small_data_set, model, tmp_path / "there", "--scheduler", scheduler)
    assert_same(masks_here, tmp_path / "there")


KILLED = """
import os, signal, sys
from napari_mamamia.cli import predicting
from napari_mamamia.cli.app import app
from napari_mamamia.core.progress import listening

def report(step):
    if step.text.startswith("A_2: ") and "tile 2" in step.text:
        os.kill(os.getpid(), signal.SIGKILL)

def run(work):
    with listening(report):
        return work()

predicting.run = run
app(sys.argv[1:])
"""


@pytest.mark.night  # by day: test_predict_cases resumes, tests/fault kills every command
def test_after_a_kill_resuming_makes_what_is_missing(small_data_set, model, masks_here, tmp_path):
    out = tmp_path / "out"
    words = ["predict", str(small_data_set), "--model", str(model), "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert sorted(file.name for file in out.glob("*.nii.gz")) == ["A_1.nii.gz"]
    kept = (out / "A_1.nii.gz").stat().st_mtime_ns
    said = predicted(small_data_set, model, out, "--resume")
    assert "1 case done in an earlier run" in said
    assert "2 predictions saved" in said
    assert (out / "A_1.nii.gz").stat().st_mtime_ns == kept
    assert_same(masks_here, out)
