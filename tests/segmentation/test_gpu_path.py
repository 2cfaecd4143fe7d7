"""The steps that only a GPU takes, on a fake one: torch's own calls, answered by the processor.

No test here ran on a real card. The fake device is `segmentation/sandbox/cuda.py`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.model import device
from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.sandbox import cuda

torch = pytest.importorskip("torch")

ON_A_FAKE_CARD = """
import threading
import torch
from napari_mamamia.segmentation.model import device, nnunet_tiles
from napari_mamamia.segmentation.model.planner import OutOfMemoryError

device._list_devices = lambda: ("cuda", "cpu")
torch.cuda.device_count = lambda: 2
used, pinned, synchronised = [], [], []
torch.cuda.set_device = used.append
torch.cuda.synchronize = lambda *_: synchronised.append(1)
pin = torch.Tensor.pin_memory
torch.Tensor.pin_memory = lambda tile: pinned.append(threading.current_thread().name) or pin(tile)
assert [device.choose_device(name) for name in ("cuda:1", "cuda", "auto")] == ["cuda"] * 3
assert used == [1, 0, 0]

grid = nnunet_tiles.tile_grid((8, 16, 20), (8, 8, 8), 0.5)
data = torch.arange(8 * 16 * 20, dtype=torch.float32).reshape(1, 8, 16, 20) / 100
tuned = []

def forward(tile):
    tuned.append(torch.backends.cudnn.benchmark)
    return tile * 2

card = nnunet_tiles.sum_tiles(forward, data, grid, 1, device="cuda", sums_on="cuda")
assert all(tuned) and len(tuned) == len(grid.places)
assert torch.backends.cudnn.benchmark is False
assert len(pinned) == len(grid.places) and "MainThread" not in pinned
assert len(synchronised) == len(grid.places)
tuned.clear()
processor = nnunet_tiles.sum_tiles(forward, data, grid, 1)
assert not any(tuned) and len(pinned) == len(grid.places)
assert torch.equal(card, processor)

tries = []

def scarce(tile):
    tries.append(tile)
    if len(tries) in (2, 5):
        raise torch.OutOfMemoryError("CUDA out of memory")
    return tile * 2

nnunet_tiles._Sums.moved_to_processor = lambda sums: len(tries) == 2
try:
    nnunet_tiles.sum_tiles(scarce, data, grid, 1, device="cuda", sums_on="cuda")
except OutOfMemoryError:
    pass
else:
    raise AssertionError("the second lack of memory must end the run")
assert torch.equal(tries[1], tries[2])
assert threading.active_count() == 1, "the thread that cuts tiles must end"
assert torch.backends.cudnn.benchmark is False
print("done")
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_card_gets_pinned_tiles_ahead_and_gives_the_processor_s_sums(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(Path(cuda.__file__).read_text())
    (tmp_path / "run.py").write_text(ON_A_FAKE_CARD)
    finished = subprocess.run(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert finished.stdout == "done\n", finished.stderr


@pytest.mark.parametrize("name", ["cuda:x", "cuda:", "cpu:0", "gpu", "cuda:1:2", "cuda:123"])
def test_a_wrong_device_is_refused(name):
    assert not device.is_device(name)
    with pytest.raises(ModelError):
        EngineSettings(device=name)


def test_a_card_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(device, "_list_devices", lambda: ("cuda", "cpu"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    used = []
    monkeypatch.setattr(torch.cuda, "set_device", used.append)
    assert EngineSettings(device="cuda:7").device == "cuda:7"
    with pytest.raises(ModelError):
        device.choose_device("cuda:2")
    assert used == []
    assert device.choose_device("cuda:1") == "cuda"
    assert used == [1]


def test_the_command_takes_the_number_of_a_card_and_no_other_name(small_data_set, tmp_path):
    from typer.testing import CliRunner

    from napari_mamamia.cli.app import app

    words = ["predict", str(small_data_set), "--out", str(tmp_path / "out"), "--device"]
    assert CliRunner().invoke(app, [*words, "cuda:x"]).exit_code == 2
    taken = CliRunner().invoke(app, [*words, "cuda:1", "--model", str(tmp_path / "none")])
    assert "cuda:N" not in taken.output
