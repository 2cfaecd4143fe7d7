"""Files of models that are cut short, also while they are used, and pipes in their place."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("dynamic_network_architectures")
pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from tests.segmentation import network_made as made  # noqa: E402

from napari_mamamia.core.errors import MamamiaError  # noqa: E402

WORK = """
import json, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from tests.segmentation.test_cut_models import READERS

paths, mapped, ends, kept = json.loads(sys.argv[2]), set(), threading.Event(), {}

def look():
    with open("/proc/self/maps") as maps:
        text = maps.read()
    mapped.update(kind for kind, path in paths.items() if os.path.realpath(path) in text)

def watch():
    while not ends.wait(0.002):
        look()

threading.Thread(target=watch, daemon=True).start()
for kind, path in paths.items():
    kept[kind] = READERS[kind](path)
    look()
ends.set()
print(json.dumps(sorted(mapped)))
"""


def read_network(path, backend="torch"):
    from napari_mamamia.segmentation.model.engine_settings import EngineSettings
    from napari_mamamia.segmentation.network.engine import load_network
    from napari_mamamia.segmentation.run.weights import recognise_model

    settings = EngineSettings(threads=1, device="cpu", backend=backend)
    engine = load_network(recognise_model(Path(path).parent), settings)
    engine.run_one_tile()
    return engine


def read_checkpoint(path):
    from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint

    return load_checkpoint(Path(path))


def read_facts(path):
    from napari_mamamia.segmentation.network.onnx import read_onnx

    return read_onnx(Path(path))


READERS = {
    "safetensors": read_network,
    "checkpoint": read_checkpoint,
    "safetensors checkpoint": read_checkpoint,
    "facts of onnx": read_facts,
    "onnx": read_network,
    "weights of onnx": read_network,
    "weights of onnx in openvino": lambda path: read_network(path, "openvino"),
    "weights of ir": read_network,
    "script": read_network,
}
"""Reads a model and keeps it, as an engine does."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return the file of each kind: the one that is mapped or cut."""
    root = tmp_path_factory.mktemp("models")
    network, folders = made.unet(), {}
    for name in ("safetensors", "onnx", "ir", "script"):
        built = made.unet_architecture() if name == "safetensors" else None
        folders[name] = made.recipe(root / name, made.section(architecture=built))
    made.scripted_by_trace(network, folders["script"] / "net.pt")
    made.onnx_file(network, folders["onnx"] / "net.onnx")
    made.ir_file(folders["onnx"] / "net.onnx", folders["ir"] / "net.xml")
    state = {name: value.clone() for name, value in network.state_dict().items()}
    safetensors.save_file(state, folders["safetensors"] / "net.safetensors")
    model = onnx.load(folders["onnx"] / "net.onnx")
    for name in ("weights of onnx", "weights of onnx in openvino"):
        folder = made.recipe(root / name.replace(" ", "_"))
        onnx.save(
            model, folder / "net.onnx", save_as_external_data=True, location="net.data",
            size_threshold=0,
        )  # fmt: skip
        folders[name] = folder / "net.data"
        model = onnx.load(folders["onnx"] / "net.onnx")
    checkpoint = root / "checkpoint_final.pth"
    torch.save(
        {
            "network_weights": {"a": torch.zeros(100_000)}, "trainer_name": "nnUNetTrainer",
            "init_args": {"configuration": "3d_fullres"}, "inference_allowed_mirroring_axes": None,
        },
        checkpoint,
    )  # fmt: skip
    from napari_mamamia.segmentation.nnunet.safetensors import write_safetensors

    safe = root / "converted.safetensors"
    write_safetensors(read_checkpoint(checkpoint), safe, "0" * 64)
    return {
        "safetensors": folders["safetensors"] / "net.safetensors",
        "checkpoint": checkpoint,
        "safetensors checkpoint": safe,
        "facts of onnx": folders["onnx"] / "net.onnx",
        "onnx": folders["onnx"] / "net.onnx",
        "weights of onnx": folders["weights of onnx"],
        "weights of onnx in openvino": folders["weights of onnx in openvino"],
        "weights of ir": folders["ir"] / "net.bin",
        "script": folders["script"] / "net.pt",
    }


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what is mapped is not told here")
def test_no_file_of_a_model_is_mapped(models):
    """A mapped file that is cut short ends the process with SIGBUS where it is read next."""
    root, paths = Path(__file__).parents[2], {kind: str(path) for kind, path in models.items()}
    command = [sys.executable, "-c", WORK, root, json.dumps(paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("kind", READERS)
def test_a_file_that_was_cut_short_is_an_error(models, kind, tmp_path):
    """As after a copy that broke off: half of the file is there."""
    folder = tmp_path / "m"
    shutil.copytree(models[kind].parent, folder)
    path = folder / models[kind].name
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(MamamiaError):
        READERS[kind](path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("what", ["pipe", "device", "socket"])
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.timeout(60)
def test_a_pipe_device_or_socket_in_the_place_of_a_model_is_not_waited_for(
    models, kind, what, tmp_path
):
    folder = tmp_path / "m"
    shutil.copytree(models[kind].parent, folder)
    path = folder / models[kind].name
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(tmp_path / "s")
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(tmp_path / "s"))
    with pytest.raises((MamamiaError, OSError)):
        READERS[kind](path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize(
    "name", ["net.onnx", "net.pt", "net.safetensors", "net.xml", "a.pth", "a.zip"]
)
@pytest.mark.timeout(60)
def test_a_path_that_is_a_pipe_is_no_model(name, tmp_path):
    from napari_mamamia.segmentation.run.weights import recognise_model

    os.mkfifo(tmp_path / name)
    with pytest.raises(MamamiaError):
        recognise_model(tmp_path / name)
