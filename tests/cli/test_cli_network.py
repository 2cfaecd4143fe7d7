"""A network in a single file from the command line, with a result that is worked out by hand."""

import json
import warnings

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia

torch = pytest.importorskip("torch")
for package in ("dynamic_network_architectures", "onnx", "onnxruntime"):
    pytest.importorskip(package)


def enhancing_net(folder, above):
    """Write a network whose tumour is where phase 1 exceeds phase 0 by more than `above`."""
    network = torch.nn.Conv3d(2, 2, 1).eval()
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 0.0], [-1.0, 1.0]]).reshape(2, 2, 1, 1, 1))
        network.bias.copy_(torch.tensor([above, 0.0]))
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (torch.zeros(1, 2, 8, 16, 16),), str(folder / "net.onnx"), dynamo=False
        )
    said = {
        "format": "napari-mamamia recipe",
        "version": 1,
        "title": "Enhancing",
        "network": {
            "channels": ["before", "after"], "labels": {"tumour": 1}, "output": "logits",
            "patch": [8, 16, 16], "orientation": "SAR",
        },
    }  # fmt: skip
    (folder / "mamamia_model.json").write_text(json.dumps(said))
    return folder


def test_an_onnx_file_is_added_shown_and_predicts(small_data_set, tmp_path):
    folder, registry, out = (
        enhancing_net(tmp_path / "net", 50.5),
        tmp_path / "reg",
        tmp_path / "out",
    )
    own = ("--registry", registry)
    done = mamamia("models", "add", folder, "--name", "enhancing", *own)
    assert done.returncode == 0, done.stderr
    shown = mamamia("models", "show", "enhancing", *own).stdout
    for said in ("ONNX", "0: before", "1: after", "tumour = 1", "8 x 16 x 16", "net.onnx"):
        assert said in shown
    refused = mamamia(
        "predict", small_data_set, "--model", "enhancing", "--folds", "0", "--out", out, *own
    )
    assert refused.returncode == 1
    assert "so folds 0 cannot be used" in " ".join(refused.stderr.split())
    done = mamamia(
        "predict", small_data_set, "--model", "enhancing", "--case", "A_1", "--out", out, *own
    )
    assert done.returncode == 0, done.stderr
    images = [
        np.asarray(nib.load(small_data_set / f"images/A_1/A_1_{k:04d}.nii.gz").dataobj, np.float32)
        for k in (0, 1)
    ]
    expected = images[1] - images[0] > 50.5
    assert 0 < expected.sum() < expected.size
    found = np.asarray(nib.load(out / "A_1.nii.gz").dataobj)
    np.testing.assert_array_equal(found > 0, expected)
    kept = json.loads((out / "A_1.json").read_text())
    assert "onnxruntime" in json.dumps(kept)
    assert "Enhancing" in json.dumps(kept)
