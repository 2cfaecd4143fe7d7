"""Submissions that ask for CUDA by name, on a computer without a card."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia

from napari_mamamia.segmentation.sandbox import cuda as external_cuda
from napari_mamamia.segmentation.sandbox.external import cuda_by_name
from napari_mamamia.segmentation.sandbox.isolation import has_graphics_card

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('device = torch.device("cuda")', 1),
        ('x = 1\nnet.to("cuda:0")', 2),
        ("net.cuda()", 1),
        ('torch.load("w.pth", map_location="cuda")', 1),
        ('torch.zeros(3, device="cuda")', 1),
        ('DEVICE = "cuda"\nnet.to(DEVICE)', 2),
        ('class M:\n    def f(self):\n        self.d = "cuda"\n        net.to(self.d)', 4),
        ('# cuda\nprint("cuda")', 0),
        ('d = "cuda" if torch.cuda.is_available() else "cpu"\nnet.to(d)', 0),
        ('if device.type == "cuda":\n    torch.cuda.empty_cache()', 0),
        ('"cuda".startswith("cuda")', 0),
        ('torch.autocast("cuda")', 0),
        ('net.to("cuda"', 0),
        ("(" * 5000 + "cuda", 0),
    ],
)
def test_cuda_is_seen_where_it_is_used_outright(text, line):
    found = cuda_by_name([(Path("a.txt"), text), (Path("model.py"), text)])
    assert found == (f"model.py line {line}" if line else "")


ASKS_EVERYWHERE = """
import threading
import numpy as np
import torch
from torch import nn

array = np.ones((1, 2, 4, 4, 4), np.float32)
device = torch.device("cuda")
assert isinstance(device, torch.device)
net = nn.Sequential(nn.Conv3d(2, 3, 1), nn.BatchNorm3d(3)).to(device).cuda().eval()
torch.save({"w": net.state_dict(), "t": torch.ones(2)}, "w.pth")
for place in ("cuda", "cuda:0", device, None, {"cuda:0": "cuda:0"}):
    kept = torch.load("w.pth", map_location=place)
net.load_state_dict(kept["w"])
x = torch.from_numpy(array).to("cuda:0", non_blocking=True)
x = torch.from_numpy(array).to(device)
x += 1
assert array.max() == 1, "the array of the processor was changed"
z = torch.from_numpy(array).pin_memory().cuda(non_blocking=True)
with torch.no_grad(), torch.autocast("cuda"), torch.cuda.device(0):
    y = net(x + torch.zeros(1, device="cuda") + torch.randn(1, device=device) * 0)
back = y.cpu()
y.zero_()
assert back.abs().sum() > 0, "the answer was changed on the card"
torch.cuda.set_device(0)
torch.cuda.synchronize()
torch.cuda.empty_cache()
torch.cuda.manual_seed_all(3)
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
made = []
class Own(threading.Thread):
    def run(self):
        made.append(torch.ones(2, device="cuda").device.type)
thread = Own()
thread.start()
thread.join()
assert made == ["cpu"]
scripted = torch.jit.script(nn.Linear(2, 1))
scripted.save("s.pt")
assert torch.jit.load("s.pt", map_location="cuda")(torch.ones(1, 2).cuda()).shape == (1, 1)
generator = torch.Generator(device="cpu")
assert not torch.cuda.is_available()
import subprocess, sys
if "inner" not in sys.argv:
    code = "import torch; print(torch.ones(1).cuda().device)"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"cpu\\n"
print("done")
"""


@pytest.mark.night  # by day: a submission that asks, below
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_whatever_asks_for_cuda_gets_the_processor(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(Path(external_cuda.__file__).read_text())
    (tmp_path / "asks.py").write_text(ASKS_EVERYWHERE)
    paths = [str(tmp_path), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "asks.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr


SUBMISSION = """
import torch
class Model:
    def __init__(self, dataset):
        self.dataset = dataset
    def predict_segmentation(self, output_dir):
        import gzip, nibabel
        from pathlib import Path
        folder = Path(output_dir, "pred_segmentations")
        folder.mkdir()
        for name in self.dataset.get_patient_id_list():
            pre, post = (nibabel.load(p) for p in self.dataset.get_dce_mri_path_list(name)[:2])
            arrays = [torch.tensor(image.get_fdata()).to("cuda") for image in (pre, post)]
            mask = (arrays[1] - arrays[0] > 60).cpu().numpy().astype("uint8")
            image = nibabel.Nifti1Image(mask, pre.affine, pre.header)
            image.set_data_dtype("uint8")
            nibabel.save(image, folder / f"{name}.nii.gz")
        return folder
"""


@pytest.mark.door
@pytest.mark.skipif(has_graphics_card(), reason="there is a card")
def test_the_command_says_it_at_once_and_runs_it_on_the_processor(small_data_set, tmp_path):
    folder = tmp_path / "asks_for_cuda"
    folder.mkdir()
    (folder / "model.py").write_text(SUBMISSION)
    command = ["run-submission", folder, small_data_set, "--out", tmp_path / "out"]
    command += ["--task", "segmentation", "--case", "A_1", "--as-root"]
    command += ["--isolation", "none", "--consent-no-isolation"]
    refused = mamamia(*command)
    assert refused.returncode == 1
    said = " ".join(refused.stderr.split())
    assert "asks_for_cuda requests CUDA by name (model.py line 13)" in said
    assert "--cuda-on-processor" in said
    assert not (tmp_path / "out").exists()
    done = mamamia(*command, "--cuda-on-processor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CUDA requests were run on the processor" in done.stdout
    made = json.loads((tmp_path / "out" / "pred_segmentations" / "A_1.json").read_text())
    assert made["parameters"]["cuda_on_processor"] is True
