"""`mamamia score`, the real command: what it writes of ids that others chose, and of damage."""

import csv
import gzip
import os
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

pytestmark = pytest.mark.door

_NOT_EVERY_CASE = 3
FORMULA = "=1+1"


def _save(array, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array, np.diag([-1.0, 1.0, 1.0, 1.0])), path)


def test_a_formula_for_an_id_is_a_text_and_a_damaged_image_is_an_error_of_its_case(tmp_path):
    mask = np.zeros((48, 48, 48), np.uint8)
    mask[20:25, 20:25, 20:25] = 1
    for case_id in (FORMULA, "B"):
        for folder in ("reference", "prediction"):
            _save(mask, tmp_path / folder / f"{case_id}.nii.gz")
    image = tmp_path / "B.nii.gz"
    _save(np.random.default_rng(1).integers(0, 2000, (48, 48, 48, 4), np.int16), image)
    data = bytearray(image.read_bytes())
    data[-8] ^= 1  # the checksum, behind all four phases
    image.write_bytes(data)
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(data)
    out = tmp_path / "scores"
    folders = [f"--{name}={tmp_path / name}" for name in ("reference", "prediction")]
    done = subprocess.run(
        [Path(sys.executable).with_name("mamamia"), "score", *folders, f"--out={out}",
         f"--images={image}", "--bootstrap=0"],
        capture_output=True, text=True, timeout=240, env={**os.environ, "COLUMNS": "400"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == _NOT_EVERY_CASE, said
    assert "B.nii.gz" in said
    assert "damaged" in said
    with (out / "case_scores.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["case_id"] for row in rows} >= {f"'{FORMULA}"}
    (good,) = (row for row in rows if row["case_id"] == f"'{FORMULA}")
    assert float(good["dsc"]) == 1.0
    assert not any(cell.startswith(("=", "@", "\t")) for row in rows for cell in row.values())
