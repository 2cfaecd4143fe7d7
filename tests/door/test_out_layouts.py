"""What leaves in other people's layouts, judged by their own programs as they are typed."""

import json
import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

pytestmark = [pytest.mark.door, pytest.mark.parity]

BIN = Path(sys.executable).parent
CASES = ("A_1", "A_2", "B_1")


@pytest.fixture(scope="module")
def bundle(data_set_of_module, tmp_path_factory):
    """Return what one command writes; the label's name would break a table."""
    folder = tmp_path_factory.mktemp("layouts")
    rules = folder / "labels.json"
    rules.write_text(json.dumps({"rules": [{"source": 1, "target": 1, "name": "tumour\tcore\nx"}]}))
    layouts = ("bids", "nnunet", "challenge")
    words = ["export", data_set_of_module, "--masks", data_set_of_module / "segmentations/expert",
             "--label-map", rules, "--harmonise", "ras", "--no-quality", "--out", folder / "out",
             *(word for name in layouts for word in ("--format", name))]  # fmt: skip
    done = typed("mamamia", words)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


def typed(name, words, **environment):
    return subprocess.run(
        [BIN / name, *map(str, words)], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def bids_issues(root):
    found = [f for f in metadata.files("bids-validator-deno") if f.name == "bids-validator-deno"]
    done = typed(found[0].locate().resolve(), [root, "--format", "json"])
    issues = json.loads(done.stdout)["issues"]["issues"]
    return {(issue["severity"], issue["code"], issue.get("subCode")) for issue in issues}


def test_the_official_bids_validator_finds_no_error(bundle, tmp_path):
    found = bids_issues(bundle / "bids")
    assert {issue for issue in found if issue[0] == "error"} == set()
    assert found <= {
        ("warning", "TOO_FEW_AUTHORS", None),  # nobody but the reader knows them
        ("warning", "SIDECAR_KEY_RECOMMENDED", "Description"),  # of dseg.tsv
        ("warning", "SIDECAR_KEY_RECOMMENDED", "SpatialReference"),  # of dseg.tsv
    }


def test_the_validator_misses_what_a_mask_lies_on_where_it_is_not_said(bundle, tmp_path):
    (copied := tmp_path / "bids").mkdir()
    for file in (bundle / "bids").rglob("*"):
        if file.is_file():
            target = copied / file.relative_to(bundle / "bids")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes().replace(b"SpatialReference", b"Elsewhere"))
    assert ("error", "SIDECAR_KEY_REQUIRED", "SpatialReference") in bids_issues(copied)


@pytest.mark.night
def test_nnunets_own_command_finds_the_data_set_sound(bundle, tmp_path):
    pytest.importorskip("nnunetv2")
    places = {name: str(tmp_path) for name in ("nnUNet_preprocessed", "nnUNet_results")}
    words = ["-d", "501", "--verify_dataset_integrity", "-np", "1"]
    done = typed("nnUNetv2_extract_fingerprint", words, nnUNet_raw=bundle / "nnunet", **places)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "verify_dataset_integrity Done" in told
    assert "Warning" not in told
    assert "Error" not in told


def test_the_challenges_scoring_finds_a_mask_of_every_patient_on_the_experts_voxels(
    bundle, data_set_of_module, tmp_path
):
    """As scoring_task1.py of LidiaGarrucho/MAMA-MIA@bfc321a4 reads them, with SimpleITK."""
    sitk = pytest.importorskip("SimpleITK")
    with zipfile.ZipFile(bundle / "challenge/submission.zip") as archive:
        assert archive.namelist() == [f"pred_segmentations/{name}.nii.gz" for name in CASES]
        archive.extractall(tmp_path)
    for name in CASES:
        drawn = sitk.ReadImage(str(data_set_of_module / f"segmentations/expert/{name}.nii.gz"))
        sent = sitk.ReadImage(str(tmp_path / f"pred_segmentations/{name}.nii.gz"))
        assert sent.GetPixelID() == sitk.sitkUInt8
        assert sent.GetDirection() == drawn.GetDirection()
        np.testing.assert_array_equal(sitk.GetArrayFromImage(sent), sitk.GetArrayFromImage(drawn))


def test_the_names_of_labels_stay_in_their_cells(bundle):
    assert (bundle / "bids/dseg.tsv").read_text() == "index\tname\n1\ttumour core x\n"
    sidecar = json.loads(
        (bundle / "bids/sub-A1/anat/sub-A1_space-orig_desc-expert_dseg.json").read_text()
    )
    assert sidecar["SpatialReference"] == "orig"
    assert sidecar["case_id"] == "A_1"
    image = nib.load(bundle / "bids/sub-A1/anat/sub-A1_space-orig_desc-expert_dseg.nii.gz")
    assert image.get_data_dtype() == np.uint8
