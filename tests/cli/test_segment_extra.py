"""What the extra `segment` brings is enough: an nnU-Net model predicts where nothing else is."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import venv
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

import napari_mamamia

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
_FOUND = importlib.util.spec_from_file_location(
    "made_models", ROOT / "tests" / "segmentation" / "conftest.py"
)
made = importlib.util.module_from_spec(_FOUND)
sys.modules["made_models"] = made
_FOUND.loader.exec_module(made)


def locked(name):
    """The packages of a lock file."""
    text = (ROOT / "locks" / f"{name}.txt").read_text("utf-8")
    return {re.split("[=<>]", line)[0] for line in text.splitlines() if re.match("[a-z]", line)}


def link_package(name, site, of=""):
    """Link what a package installed into another folder; nothing where it is not installed."""
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    for top in {file.parts[0] for file in package.files or ()} - {".."}:
        if top.endswith(of) and not (site / top).exists():
            (site / top).symlink_to(package.locate_file(top))


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that finds this software and the packages of ``locks/segment.txt``, no others."""
    folder = tmp_path_factory.mktemp("segment")
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in locked("segment"):
        link_package(name, site)
    link_package("napari-mamamia", site, of=".dist-info")
    (site / "ours.pth").write_text(str(Path(napari_mamamia.__file__).parents[1]))
    return folder / "bin" / "python"


def test_the_extra_brings_no_package_of_nnunets_training():
    names = locked("segment")
    assert {"torch", "dynamic-network-architectures", "safetensors"} <= names
    assert not names & {"nnunetv2", "simpleitk", "scikit-learn", "seaborn", "batchgenerators"}
    assert "nnunetv2" in locked("test")


@pytest.mark.night  # by day: what the lock holds, above
@pytest.mark.door
def test_an_nnunet_model_predicts_with_nothing_but_the_extra(python, small_data_set, tmp_path):
    model = made.write_model(tmp_path / "model", made.Spec())
    words = [python, "-c", "import nnunetv2"]
    assert (
        "No module named 'nnunetv2'"
        in subprocess.run(words, capture_output=True, text=True, check=False).stderr
    )
    start = "from napari_mamamia.cli import main; main()"
    words = [python, "-c", start, "predict", small_data_set, "--model", model]
    done = subprocess.run(
        [*map(str, words), "--case", "A_1", "--out", str(tmp_path / "out"), "--threads", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    mask = np.asarray(nib.load(tmp_path / "out" / "A_1.nii.gz").dataobj)
    assert set(np.unique(mask)) <= {0, 1}
    assert mask.any()
